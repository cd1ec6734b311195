"""Numbers as operands of NumPy's: a part of `compiled.pyx`.

To find out which dtype a number has beside an array takes NumPy 0.2 us a call. So a number comes as
an array of no axes, or as its bytes.
"""

cdef extern from "numpy/arrayobject.h":
    int NPY_DOUBLE, NPY_FLOAT, NPY_INT64, NPY_INT32, NPY_CDOUBLE, NPY_BOOL
    object PyArray_EMPTY(int, npy_intp *, int, int)
    void PyArray_ScalarAsCtype(object, void *)

cdef extern from "Python.h":
    double PyComplex_RealAsDouble(object)
    double PyComplex_ImagAsDouble(object)

cdef long long MOST_EXACT = 1 << 53  # integers up to here are float64's


cdef union Number:
    double f8
    float f4
    long long i8
    int i4
    double pair[2]


cdef bint number_as(PyObject *dtype, object value, Number *number) except -1:
    """A number as an array of `dtype` takes it; False where that is not sure, or another dtype
    comes of the two."""
    cdef int overflow, type_of = (<PyArray_Descr *>dtype).type_num
    cdef long whole
    cdef PyObject *kind = <PyObject *>(<PyObject *>value).ob_type
    if kind == <PyObject *>(<PyArray_Descr *>dtype).typeobj:
        if type_of == NPY_DOUBLE:
            number.f8 = PyFloat_AS_DOUBLE(value)
            return True
        if type_of in (NPY_FLOAT, NPY_INT64, NPY_INT32, NPY_CDOUBLE):
            PyArray_ScalarAsCtype(value, number)
            return True
        return False
    if kind == <PyObject *>float or (kind == FLOAT64_SCALAR and type_of == NPY_CDOUBLE):
        if type_of == NPY_DOUBLE:
            number.f8 = PyFloat_AS_DOUBLE(value)
        elif type_of == NPY_CDOUBLE:
            number.pair[0] = PyFloat_AS_DOUBLE(value)
            number.pair[1] = 0
        elif type_of == NPY_FLOAT:
            number.f4 = <float>PyFloat_AS_DOUBLE(value)
            # NumPy warns where that overflows.
            return not -3e38 > PyFloat_AS_DOUBLE(value) and not PyFloat_AS_DOUBLE(value) > 3e38
        else:
            return False
        return True
    if kind == <PyObject *>int:
        whole = PyLong_AsLongAndOverflow(value, &overflow)
        if overflow:
            return False
        if type_of == NPY_INT64:
            number.i8 = whole
            return True
        if type_of == NPY_INT32:
            number.i4 = <int>whole
            return number.i4 == whole
        if not -MOST_EXACT <= whole <= MOST_EXACT:
            return False
        if type_of == NPY_DOUBLE:
            number.f8 = whole
        elif type_of == NPY_CDOUBLE:
            number.pair[0] = whole
            number.pair[1] = 0
        elif type_of == NPY_FLOAT:
            number.f4 = <float>whole
        else:
            return False
        return True
    if kind == <PyObject *>complex and type_of == NPY_CDOUBLE:
        number.pair[0] = PyComplex_RealAsDouble(value)
        number.pair[1] = PyComplex_ImagAsDouble(value)
        return True
    return False


cdef PyObject *numbers[MOST_TYPES]  # arrays of no axes, one a dtype, while nobody uses them


cdef object number_like(PyObject *array, object value):
    """A number as an array of no axes of another one's dtype, for one call of NumPy's; None where
    it has to be as it is. It goes to `number_back` after that."""
    cdef Number number
    cdef PyObject *dtype = array_descr(array)
    cdef int type_of = (<PyArray_Descr *>dtype).type_num
    if not array_rank(array) or not 0 <= type_of < MOST_TYPES:
        return None
    if not number_as(dtype, value, &number):
        return None
    if numbers[type_of] == NULL:
        made = PyArray_EMPTY(0, NULL, type_of, 0)
    else:
        made = <object>numbers[type_of]
        Py_DECREF(made)
        numbers[type_of] = NULL
    memcpy(array_data(<PyObject *>made), &number, nbytes_of(type_of))
    return made


cdef inline npy_intp nbytes_of(int type_of) noexcept:
    if type_of == NPY_BOOL:
        return 1
    if type_of == NPY_CDOUBLE:
        return 16
    return 8 if type_of == NPY_DOUBLE or type_of == NPY_INT64 else 4


cdef inline void number_back(object array) noexcept:
    """Keep an array of `number_like` for the next number."""
    cdef int type_of = (<PyArray_Descr *>array_descr(<PyObject *>array)).type_num
    # The caller's name for it, and nobody else's.
    if numbers[type_of] == NULL and Py_REFCNT(<PyObject *>array) == 1:
        Py_INCREF(array)
        numbers[type_of] = <PyObject *>array
