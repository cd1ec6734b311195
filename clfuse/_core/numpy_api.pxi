"""NumPy's arrays and operators as C sees them: a part of `compiled.pyx`."""

cdef extern from "numpy/arrayobject.h":
    ctypedef Py_ssize_t npy_intp
    ctypedef struct PyArrayObject:
        pass
    ctypedef struct PyArray_Descr:
        PyTypeObject *typeobj
        int type_num
    int NPY_ARRAY_C_CONTIGUOUS
    int NPY_ARRAY_F_CONTIGUOUS
    int NPY_ARRAY_WRITEABLE
    int NPY_ARRAY_ALIGNED
    int _import_array() except -1
    int PyArray_NDIM(PyArrayObject *)
    npy_intp *PyArray_DIMS(PyArrayObject *)
    npy_intp *PyArray_STRIDES(PyArrayObject *)
    char *PyArray_BYTES(PyArrayObject *)
    PyObject *PyArray_BASE(PyArrayObject *)
    PyArray_Descr *PyArray_DESCR(PyArrayObject *)
    int PyArray_FLAGS(PyArrayObject *)
    int PyArray_ITEMSIZE(PyArrayObject *)
    object PyArray_NewFromDescr(
        PyTypeObject *, PyArray_Descr *, int, npy_intp *, npy_intp *, void *, int, PyObject *
    )
    int PyArray_SetBaseObject(PyArrayObject *, PyObject *) except -1

cdef extern from "Python.h":
    ctypedef object (*unaryfunc)(object)
    ctypedef object (*binaryfunc)(object, object)
    ctypedef object (*ternaryfunc)(object, object, object)
    ctypedef object (*richcmpfunc)(object, object, int)
    ctypedef object (*callfunc "ternaryfunc")(object, object, PyObject *)
    ctypedef int (*objobjargproc)(object, object, PyObject *) except -1
    ctypedef Py_ssize_t (*lenfunc)(object) except -1
    ctypedef struct PyNumberMethods:
        binaryfunc nb_add
        binaryfunc nb_subtract
        binaryfunc nb_multiply
        binaryfunc nb_remainder
        ternaryfunc nb_power
        unaryfunc nb_negative
        unaryfunc nb_absolute
        unaryfunc nb_invert
        binaryfunc nb_lshift
        binaryfunc nb_rshift
        binaryfunc nb_and
        binaryfunc nb_xor
        binaryfunc nb_or
        binaryfunc nb_inplace_add
        binaryfunc nb_inplace_subtract
        binaryfunc nb_inplace_multiply
        binaryfunc nb_inplace_remainder
        binaryfunc nb_inplace_lshift
        binaryfunc nb_inplace_rshift
        binaryfunc nb_inplace_and
        binaryfunc nb_inplace_xor
        binaryfunc nb_inplace_or
        binaryfunc nb_floor_divide
        binaryfunc nb_true_divide
        binaryfunc nb_inplace_floor_divide
        binaryfunc nb_inplace_true_divide
        binaryfunc nb_matrix_multiply
    ctypedef struct PyMappingMethods:
        lenfunc mp_length
        binaryfunc mp_subscript
        objobjargproc mp_ass_subscript
    ctypedef struct PySequenceMethods:
        lenfunc sq_length
    ctypedef struct Class "PyTypeObject":
        PyNumberMethods *tp_as_number
        PyMappingMethods *tp_as_mapping
        PySequenceMethods *tp_as_sequence
        richcmpfunc tp_richcompare
        callfunc tp_call
    void PyType_Modified(PyTypeObject *)

_import_array()

cdef enum:
    MOST_TYPES = 32  # NumPy's own have smaller numbers

cdef int IN_C_ORDER = NPY_ARRAY_C_CONTIGUOUS
cdef int IN_FORTRAN_ORDER = NPY_ARRAY_F_CONTIGUOUS
cdef int WRITEABLE = NPY_ARRAY_WRITEABLE
cdef PyNumberMethods *numpys  # the operators of NumPy's arrays
cdef PyMappingMethods *numpys_indices
cdef richcmpfunc numpys_comparison
cdef PyObject *FLOAT64_SCALAR  # NumPy's class, which lives for ever
cdef PyObject *dtypes[MOST_TYPES]  # of arrays of ours, by their numbers; the table has them, too


def connect_numpy():
    """Take NumPy's operators and dtypes."""
    global numpys, numpys_indices, numpys_comparison, FLOAT64_SCALAR
    cdef Class *kind = <Class *><PyObject *>NUMPY
    cdef int number
    numpys, numpys_indices = kind.tp_as_number, kind.tp_as_mapping
    numpys_comparison = kind.tp_richcompare
    FLOAT64_SCALAR = <PyObject *>FLOAT64.type
    for dtype in native:
        number = dtype.num
        if number < MOST_TYPES:
            dtypes[number] = <PyObject *>dtype


cdef inline int array_rank(PyObject *array) noexcept:
    return PyArray_NDIM(<PyArrayObject *>array)


cdef inline npy_intp *array_extents(PyObject *array) noexcept:
    return PyArray_DIMS(<PyArrayObject *>array)


cdef inline npy_intp *array_strides(PyObject *array) noexcept:
    return PyArray_STRIDES(<PyArrayObject *>array)


cdef inline char *array_data(PyObject *array) noexcept:
    return PyArray_BYTES(<PyArrayObject *>array)


cdef inline PyObject *array_base(PyObject *array) noexcept:
    return PyArray_BASE(<PyArrayObject *>array)


cdef inline PyObject *array_descr(PyObject *array) noexcept:
    return <PyObject *>PyArray_DESCR(<PyArrayObject *>array)


cdef inline int array_flags(PyObject *array) noexcept:
    return PyArray_FLAGS(<PyArrayObject *>array)


cdef inline double array_size(PyObject *array) noexcept:
    cdef double size = 1
    cdef int place
    for place in range(array_rank(array)):
        size *= array_extents(array)[place]
    return size


cdef double inner_loops = 0  # that NumPy makes for the operation at hand, where rows are apart


cdef double stretched_size(PyObject *one, PyObject *two) noexcept:
    """Elements of two arrays stretched to each other; -1 where they do not fit. Also sets
    `inner_loops`, as `policy.cost.inner_loops`."""
    global inner_loops
    cdef int first = array_rank(one), second = array_rank(two), stretch, before = -1
    cdef npy_intp *some = array_extents(one)
    cdef npy_intp *others = array_extents(two)
    cdef npy_intp extent, other
    cdef double size = 1, inner = 0
    inner_loops = 0
    while first or second:
        extent = other = 1
        if first:
            first -= 1
            extent = some[first]
        if second:
            second -= 1
            other = others[second]
        stretch = 0
        if extent != other:
            stretch = 1
            if extent == 1:
                stretch, extent = 2, other
            elif other != 1:
                return -1
        if extent != 1:
            if stretch != before and before >= 0 and not inner:
                inner = size
            before = stretch
        size *= extent
    if inner:
        inner_loops = size / inner
    return size


def inner_loops_of(one, two):
    """`inner_loops` of an operation on two arrays of NumPy's."""
    stretched_size(<PyObject *>one, <PyObject *>two)
    return inner_loops


cdef tuple shape_of(PyObject *array):
    cdef int place, rank = array_rank(array)
    cdef npy_intp *extents = array_extents(array)
    if rank == 1:
        return (extents[0],)
    if rank == 2:
        return (extents[0], extents[1])
    return tuple([extents[place] for place in range(rank)])


cdef bint is_shape(PyObject *array, tuple shape) except -1:
    cdef int place, rank = array_rank(array)
    if PyTuple_GET_SIZE(shape) != rank:
        return False
    for place in range(rank):
        if <npy_intp><object>PyTuple_GET_ITEM(shape, place) != array_extents(array)[place]:
            return False
    return True


cdef PyObject *native_dtype(PyObject *array) except? NULL:
    """The dtype of an array, if arrays of ours may have it, or NULL; no reference."""
    cdef PyObject *dtype = array_descr(array)
    cdef int number = (<PyArray_Descr *>dtype).type_num
    if 0 <= number < MOST_TYPES and dtypes[number] == dtype:
        return dtype
    found = native.get(<object>dtype)
    if found is not None and (<object>dtype).metadata is not None:
        return NULL  # equal to one without
    return NULL if found is None else <PyObject *>found
