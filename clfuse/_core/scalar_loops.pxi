"""Arithmetic on a few numbers, without NumPy's way to it: a part of `compiled.pyx`.

To find the loop of a ufunc, to look at its operands and to make an iterator takes NumPy 0.2 us a
call, and a number among the operands as long again. For a row of a matrix that is all of the time.
So additions, subtractions, products, quotients and comparisons of the commonest dtypes have loops
here, and where the loop remains NumPy's, a number comes as an array of no axes.

The bits are NumPy's: every operation is one of IEEE 754's, or wraps. Where the processor has noted a
floating-point error, NumPy does it again, and warns.
"""

cdef extern from *:
    """
    #define CLFUSE_MOST_ELEMENTS 512  /* NumPy's vectors have caught up by then */
    #define CLFUSE_MOST_EXTENTS 4

    #if defined(__SSE2__) || defined(_M_X64)
    #include <xmmintrin.h>
    #define CLFUSE_FLAGS (0x01 | 0x04 | 0x08)  /* invalid, divide by zero, overflow */
    #define CLFUSE_UNDERFLOW 0x10
    static int clfuse_minded = CLFUSE_FLAGS;
    static int clfuse_errors(void) { return _mm_getcsr() & clfuse_minded; }
    static void clfuse_forget_errors(void) { _mm_setcsr(_mm_getcsr() & ~0x3fu); }
    #else
    #include <fenv.h>
    #define CLFUSE_FLAGS (FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW)
    #define CLFUSE_UNDERFLOW FE_UNDERFLOW
    static int clfuse_minded = CLFUSE_FLAGS;
    static int clfuse_errors(void) { return fetestexcept(clfuse_minded); }
    static void clfuse_forget_errors(void) { feclearexcept(FE_ALL_EXCEPT); }
    #endif

    #if defined(__GNUC__)
    #define CLFUSE_APART __attribute__((noinline))  /* calculated when flags are looked at */
    #elif defined(_MSC_VER)
    #define CLFUSE_APART __declspec(noinline)
    #else
    #define CLFUSE_APART
    #endif

    typedef void (*clfuse_loop)(
        const char *, npy_intp, const char *, npy_intp, char *, npy_intp);

    /* Of n elements, so many bytes apart; what is made lies side by side. */
    #define CLFUSE_LOOP(name, in, out, expression) \\
    static CLFUSE_APART void name( \\
        const char *one, npy_intp step, const char *two, npy_intp other_step, char *to, npy_intp n) \\
    { \\
        out *made = (out *)to; \\
        npy_intp i; \\
        if (step == sizeof(in) && other_step == sizeof(in)) { \\
            const in *first = (const in *)one, *second = (const in *)two; \\
            for (i = 0; i < n; i++) { in a = first[i], b = second[i]; made[i] = (expression); } \\
        } else if (step == sizeof(in) && other_step == 0) { \\
            const in *first = (const in *)one; in b = *(const in *)two; \\
            for (i = 0; i < n; i++) { in a = first[i]; made[i] = (expression); } \\
        } else if (step == 0 && other_step == sizeof(in)) { \\
            const in *second = (const in *)two; in a = *(const in *)one; \\
            for (i = 0; i < n; i++) { in b = second[i]; made[i] = (expression); } \\
        } else { \\
            for (i = 0; i < n; i++) { \\
                in a = *(const in *)(one + i * step), b = *(const in *)(two + i * other_step); \\
                made[i] = (expression); \\
            } \\
        } \\
    }

    #define CLFUSE_LOOPS(type, add, subtract, multiply) \\
    CLFUSE_LOOP(clfuse_add_##type, type, type, add) \\
    CLFUSE_LOOP(clfuse_subtract_##type, type, type, subtract) \\
    CLFUSE_LOOP(clfuse_multiply_##type, type, type, multiply) \\
    CLFUSE_LOOP(clfuse_less_##type, type, npy_bool, a < b) \\
    CLFUSE_LOOP(clfuse_less_equal_##type, type, npy_bool, a <= b) \\
    CLFUSE_LOOP(clfuse_equal_##type, type, npy_bool, a == b) \\
    CLFUSE_LOOP(clfuse_not_equal_##type, type, npy_bool, a != b) \\
    CLFUSE_LOOP(clfuse_greater_##type, type, npy_bool, a > b) \\
    CLFUSE_LOOP(clfuse_greater_equal_##type, type, npy_bool, a >= b)

    /* Integers wrap, which C knows of unsigned ones alone. */
    #define CLFUSE_WRAPPED(type, wide, sign) (type)((wide)a sign (wide)b)
    #define CLFUSE_INTEGERS(type, wide) CLFUSE_LOOPS(type, \\
        CLFUSE_WRAPPED(type, wide, +), CLFUSE_WRAPPED(type, wide, -), CLFUSE_WRAPPED(type, wide, *))

    CLFUSE_LOOPS(npy_double, a + b, a - b, a * b)
    CLFUSE_LOOPS(npy_float, a + b, a - b, a * b)
    CLFUSE_INTEGERS(npy_int64, npy_uint64)
    CLFUSE_INTEGERS(npy_int32, npy_uint32)
    CLFUSE_LOOP(clfuse_divide_npy_double, npy_double, npy_double, a / b)
    CLFUSE_LOOP(clfuse_divide_npy_float, npy_float, npy_float, a / b)

    #define CLFUSE_ROW(type, divide) { \\
        clfuse_add_##type, clfuse_subtract_##type, clfuse_multiply_##type, divide, \\
        clfuse_less_##type, clfuse_less_equal_##type, clfuse_equal_##type, \\
        clfuse_not_equal_##type, clfuse_greater_##type, clfuse_greater_equal_##type}

    static const clfuse_loop clfuse_loops[4][10] = {
        CLFUSE_ROW(npy_double, clfuse_divide_npy_double),
        CLFUSE_ROW(npy_float, clfuse_divide_npy_float),
        CLFUSE_ROW(npy_int64, NULL),
        CLFUSE_ROW(npy_int32, NULL)};

    /* The row of a dtype in the table, or -1. */
    static int clfuse_row_of(int type) {
        switch (type) {
            case NPY_DOUBLE: return 0;
            case NPY_FLOAT: return 1;
            case NPY_INT64: return 2;
            case NPY_INT32: return 3;
            default: return -1;
        }
    }

    /* One operand by the bytes from element to element along each axis of the result. */
    typedef struct {
        const char *data;
        npy_intp steps[CLFUSE_MOST_EXTENTS];
    } clfuse_side;

    typedef struct {
        int rank;
        npy_intp size;
        npy_intp extents[CLFUSE_MOST_EXTENTS];
        clfuse_side sides[2];
    } clfuse_work;

    /* Lay an array out along the axes of the result. False where NumPy would make the result in
       another order than that of C. */
    static int clfuse_lay_out(clfuse_work *work, int side, PyArrayObject *array) {
        int place, rank = PyArray_NDIM(array), lead = work->rank - rank;
        npy_intp last = -1;
        work->sides[side].data = PyArray_BYTES(array);
        for (place = 0; place < work->rank; place++) {
            npy_intp step = 0;
            if (place >= lead && PyArray_DIM(array, place - lead) != 1)
                step = PyArray_STRIDE(array, place - lead);
            if (step) {
                npy_intp far = step < 0 ? -step : step;
                if (last >= 0 && far > last)
                    return 0;
                last = far;
            }
            work->sides[side].steps[place] = step;
        }
        return 1;
    }

    /* Stretch the extents of the result to those of an array. */
    static int clfuse_stretch(clfuse_work *work, PyArrayObject *array) {
        int place, rank = PyArray_NDIM(array), lead = work->rank - rank;
        for (place = 0; place < rank; place++) {
            npy_intp extent = PyArray_DIM(array, place), *known = &work->extents[place + lead];
            if (extent == *known || extent == 1)
                continue;
            if (*known != 1)
                return 0;
            *known = extent;
        }
        return 1;
    }

    /* What two operands, the second perhaps a number's bytes, need; false where it is NumPy's. */
    static int clfuse_prepare(
        clfuse_work *work, PyArrayObject *one, PyArrayObject *two, const char *number)
    {
        int place;
        work->rank = PyArray_NDIM(one);
        if (two != NULL && PyArray_NDIM(two) > work->rank)
            work->rank = PyArray_NDIM(two);
        if (!work->rank || work->rank > CLFUSE_MOST_EXTENTS || !PyArray_ISALIGNED(one))
            return 0;
        for (place = 0; place < work->rank; place++)
            work->extents[place] = 1;
        if (!clfuse_stretch(work, one) || !clfuse_lay_out(work, 0, one))
            return 0;
        if (two == NULL) {
            work->sides[1].data = number;
            for (place = 0; place < work->rank; place++)
                work->sides[1].steps[place] = 0;
        } else if (!PyArray_ISALIGNED(two) || !clfuse_stretch(work, two) ||
                   !clfuse_lay_out(work, 1, two)) {
            return 0;
        }
        work->size = 1;
        for (place = 0; place < work->rank; place++)
            work->size *= work->extents[place];
        return work->size > 0 && work->size <= CLFUSE_MOST_ELEMENTS;
    }

    /* Let the loop make all elements, which lie side by side. */
    static void clfuse_make(
        clfuse_loop loop, const clfuse_work *work, int first, npy_intp size, char *to)
    {
        const clfuse_side *one = &work->sides[first], *two = &work->sides[!first];
        const char *left = one->data, *right = two->data;
        npy_intp at[CLFUSE_MOST_EXTENTS] = {0};
        int place, last = work->rank - 1;
        npy_intp length = work->extents[last];
        npy_intp step = one->steps[last], other_step = two->steps[last];
        /* Axes that lie on without a gap are one. */
        while (last > 0 && one->steps[last - 1] == one->steps[last] * work->extents[last] &&
               two->steps[last - 1] == two->steps[last] * work->extents[last])
            length *= work->extents[--last];
        for (;;) {
            loop(left, step, right, other_step, to, length);
            to += length * size;
            for (place = last - 1; place >= 0; place--) {
                left += one->steps[place];
                right += two->steps[place];
                if (++at[place] < work->extents[place])
                    break;
                left -= one->steps[place] * at[place];
                right -= two->steps[place] * at[place];
                at[place] = 0;
            }
            if (place < 0)
                break;
        }
    }

    /* The same; true where nothing was wrong. */
    static int clfuse_run(
        clfuse_loop loop, const clfuse_work *work, int first, int is_silent, npy_intp size, char *to)
    {
        clfuse_make(loop, work, first, size, to);
        if (!clfuse_errors())
            return 1;
        clfuse_forget_errors();
        if (is_silent)
            return 1;
        /* It may have been somebody else, before. */
        clfuse_make(loop, work, first, size, to);
        if (!clfuse_errors())
            return 1;
        clfuse_forget_errors();
        return 0;
    }

    /* Write elements that lie side by side to those of an array of as many. */
    static void clfuse_spread(PyArrayObject *array, const char *from, npy_intp size) {
        int place, rank = PyArray_NDIM(array), last = rank - 1;
        char *to = PyArray_BYTES(array);
        npy_intp at[CLFUSE_MOST_EXTENTS] = {0};
        npy_intp i, length = PyArray_DIM(array, last), step = PyArray_STRIDE(array, last);
        for (;;) {
            if (step == size)
                memcpy(to, from, length * size);
            else if (size == 8)
                for (i = 0; i < length; i++)
                    memcpy(to + i * step, from + i * 8, 8);
            else
                for (i = 0; i < length; i++)
                    memcpy(to + i * step, from + i * size, size);
            from += length * size;
            for (place = last - 1; place >= 0; place--) {
                to += PyArray_STRIDE(array, place);
                if (++at[place] < PyArray_DIM(array, place))
                    break;
                to -= PyArray_STRIDE(array, place) * at[place];
                at[place] = 0;
            }
            if (place < 0)
                break;
        }
    }
    """
    enum:
        CLFUSE_MOST_ELEMENTS
    ctypedef void (*clfuse_loop)(const char *, npy_intp, const char *, npy_intp, char *, npy_intp)
    ctypedef struct clfuse_work:
        int rank
        npy_intp size
        npy_intp extents[4]
    const clfuse_loop clfuse_loops[4][10]
    int clfuse_row_of(int)
    int clfuse_prepare(clfuse_work *, PyArrayObject *, PyArrayObject *, const char *)
    int clfuse_run(clfuse_loop, const clfuse_work *, int, int, npy_intp, char *)
    void clfuse_spread(PyArrayObject *, const char *, npy_intp)
    int clfuse_errors()
    int clfuse_minded, CLFUSE_FLAGS, CLFUSE_UNDERFLOW
    void clfuse_forget_errors()

cdef extern from "numpy/arrayobject.h":
    ctypedef int (*dotfunc "PyArray_DotFunc *")(void *, npy_intp, void *, npy_intp, void *, npy_intp, void *)
    ctypedef struct PyArray_ArrFuncs:
        dotfunc dotfunc
    PyArray_ArrFuncs *PyDataType_GetArrFuncs(PyArray_Descr *)
    object PyArray_Scalar(void *, PyArray_Descr *, PyObject *)
    int PyArray_ISALIGNED(PyArrayObject *)
    int NPY_DOUBLE, NPY_FLOAT, NPY_INT64, NPY_INT32, NPY_CDOUBLE, NPY_BOOL
    object PyArray_EMPTY(int, npy_intp *, int, int)
    void PyArray_ScalarAsCtype(object, void *)

cdef extern from "Python.h":
    double PyComplex_RealAsDouble(object)
    double PyComplex_ImagAsDouble(object)

cdef enum:
    # The loops that there are, in the order of the table; comparisons in that of `PyObject_RichCompare`.
    ADDING
    SUBTRACTING
    MULTIPLYING
    DIVIDING
    COMPARING
    NO_LOOP = -1

cdef long long MOST_EXACT = 1 << 53  # integers up to here are float64's

NAMES_OF_LOOPS = (
    "add", "subtract", "multiply", "divide", "less", "less_equal", "equal", "not_equal", "greater",
    "greater_equal",
)
"""The ufuncs of the loops, as they are numbered here."""


# -- numbers ---------------------------------------------------------------------------------------

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


def mind_underflow(bint is_minded):
    """Leave it to NumPy, or not, where an operation of a loop underflows."""
    global clfuse_minded
    clfuse_minded = CLFUSE_FLAGS | CLFUSE_UNDERFLOW if is_minded else CLFUSE_FLAGS


# -- loops -----------------------------------------------------------------------------------------

cdef inline bint is_quick(int which, PyObject *one, object two) noexcept:
    """Whether there may be a loop: the flags are looked at where errors are warned of or not, and
    arrays are of one dtype."""
    cdef PyObject *mood = PyList_GET_ITEM(mode, 0)
    if which < 0 or not array_rank(one) or array_size(one) > CLFUSE_MOST_ELEMENTS:
        return False
    if mood != <PyObject *>LOUD and mood != <PyObject *>QUIET:
        return False
    return type(two) is not NUMPY or array_descr(<PyObject *>two) == array_descr(one)


cdef clfuse_loop loop_for(
    int which, PyObject *one, object two, Number *number, clfuse_work *work
) except? NULL:
    """The loop for an array and another one or a number, and what it needs; NULL where NumPy has
    to do it."""
    cdef int row
    cdef PyObject *dtype = array_descr(one)
    if not is_quick(which, one, two):
        return NULL
    row = clfuse_row_of((<PyArray_Descr *>dtype).type_num)
    if row < 0 or native_dtype(one) == NULL or clfuse_loops[row][which] == NULL:
        return NULL
    if type(two) is NUMPY:
        if not clfuse_prepare(work, <PyArrayObject *>one, <PyArrayObject *>two, NULL):
            return NULL
    elif not number_as(dtype, two, number):
        return NULL
    elif not clfuse_prepare(work, <PyArrayObject *>one, NULL, <char *>number):
        return NULL
    return clfuse_loops[row][which]


cdef object quick(int which, PyObject *one, object two, bint is_second):
    """What NumPy would give for an array and another one or a number, in the other order where the
    first `is_second`, as NumPy's; None where NumPy has to do it."""
    cdef Number number
    cdef clfuse_work work
    cdef clfuse_loop loop = loop_for(which, one, two, &number, &work)
    cdef int type_of = (<PyArray_Descr *>array_descr(one)).type_num
    if loop == NULL:
        return None
    if which >= COMPARING:
        type_of = NPY_BOOL
    made = PyArray_EMPTY(work.rank, work.extents, type_of, 0)
    # Comparisons with NaN warn of nothing.
    if clfuse_run(
        loop, &work, is_second, which >= COMPARING, nbytes_of(type_of),
        array_data(<PyObject *>made),
    ):
        return made
    return None


cdef bint quickly_changed(int which, PyObject *array, object other) except -1:
    """Make ``array += other`` as NumPy would; False where NumPy has to do it, and nothing was
    changed."""
    cdef Number number
    cdef clfuse_work work
    cdef double made[CLFUSE_MOST_ELEMENTS]
    cdef clfuse_loop loop
    cdef int place
    cdef npy_intp size
    if which >= COMPARING:
        return False
    loop = loop_for(which, array, other, &number, &work)
    if loop == NULL or work.rank != array_rank(array):
        return False
    for place in range(work.rank):
        if work.extents[place] != array_extents(array)[place]:
            return False
    size = nbytes_of((<PyArray_Descr *>array_descr(array)).type_num)
    # All is made before any of it is written: operands may overlap, and errors come first.
    if not clfuse_run(loop, &work, False, False, size, <char *>made):
        return False
    clfuse_spread(<PyArrayObject *>array, <char *>made, size)
    return True


cdef object product_of_vectors(PyObject *one, PyObject *two):
    """``one @ two`` of vectors of one dtype, by NumPy's function for it; None where they are
    something else, or there was an error to warn of."""
    cdef Number number
    cdef PyObject *mood = PyList_GET_ITEM(mode, 0)
    cdef PyArray_Descr *dtype = <PyArray_Descr *>array_descr(one)
    cdef npy_intp length
    if array_rank(one) != 1 or array_rank(two) != 1 or array_descr(two) != <PyObject *>dtype:
        return None
    if dtype.type_num not in (NPY_DOUBLE, NPY_FLOAT, NPY_CDOUBLE) or native_dtype(one) == NULL:
        return None
    if mood != <PyObject *>LOUD and mood != <PyObject *>QUIET:
        return None
    length = array_extents(one)[0]
    if not 0 < length == array_extents(two)[0]:
        return None
    if not PyArray_ISALIGNED(<PyArrayObject *>one) or not PyArray_ISALIGNED(<PyArrayObject *>two):
        return None
    PyDataType_GetArrFuncs(dtype).dotfunc(
        array_data(one), array_strides(one)[0], array_data(two), array_strides(two)[0], &number,
        length, one,
    )
    if clfuse_errors():
        clfuse_forget_errors()
        return None
    return PyArray_Scalar(&number, dtype, NULL)


cdef object call_product(object self, PyObject **args, size_t given, PyObject *names):
    cdef Front ours = <Front>self
    if names == NULL and PyVectorcall_NARGS(given) == 2:
        one, two = <object>args[0], <object>args[1]
        if is_ours(one) and is_ours(two):
            if not is_on_host(one) or not is_on_host(two):
                bring_factors(one, two)
                return asked_plain(ours, args, 2, NULL)
            left, right = here(one), here(two)
            if left is not None and right is not None and not standard[0] and (
                is_affordable(array_size(<PyObject *>left) / product_share)
            ):
                answer = product_of_vectors(<PyObject *>left, <PyObject *>right)
                if answer is not None:
                    return answer
    return asked_plain(ours, args, PyVectorcall_NARGS(given), names)


def product_of_two(plain):
    """``dot(one, two)``, before `plain`."""
    return front(plain, <vectorcallfunc>call_product)
