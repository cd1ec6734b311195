"""Elementwise ufuncs on arrays that are not large, and products of vectors, by NumPy's own loops: a part
of `compiled.pyx`.

To find the loop of a ufunc, to look at its operands and to make an iterator takes NumPy 0.5 to 1 us a
call. For a thousand elements that is half of the time. So the loops of operands of one dtype are
kept by ufunc, and called here: on whole arrays where they lie without gaps, else row by row.

The bits are NumPy's, for the loop is. Where the processor has noted a floating-point error, NumPy
does it again and warns; or warns only, where the result has been written over an operand.
"""

cdef extern from *:
    """
    #include <fenv.h>
    #include <numpy/ufuncobject.h>

    #define CLFUSE_MOST_EXTENTS 8
    #define CLFUSE_MOST_SCRATCH 4096  /* bytes of a result that is written over an operand later */

    /* NumPy's loops note some in the registers of the old unit: `fetestexcept` looks at both. */
    #define CLFUSE_FLAGS (FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW)
    #define CLFUSE_UNDERFLOW FE_UNDERFLOW
    static int clfuse_flags(void) { return fetestexcept(CLFUSE_FLAGS | CLFUSE_UNDERFLOW); }
    static void clfuse_forget_errors(void) { feclearexcept(FE_ALL_EXCEPT); }

    static int clfuse_minded = CLFUSE_FLAGS;

    /* The same as NumPy numbers them. */
    static int clfuse_as_numpys(int flags) {
        return (flags & FE_INVALID ? NPY_FPE_INVALID : 0) |
            (flags & FE_DIVBYZERO ? NPY_FPE_DIVIDEBYZERO : 0) |
            (flags & FE_OVERFLOW ? NPY_FPE_OVERFLOW : 0) |
            (flags & FE_UNDERFLOW ? NPY_FPE_UNDERFLOW : 0);
    }

    enum { CLFUSE_ONE, CLFUSE_TWO, CLFUSE_RESULT, CLFUSE_SIDES };

    /* Arrays along the axes of a result, which are as few as can be: those of one element are left
       out, and those that lie on without a gap are one. */
    typedef struct {
        int rank;                              /* of the result */
        npy_intp shape[CLFUSE_MOST_EXTENTS];
        npy_intp size;
        int axes;                              /* of the loops */
        npy_intp extents[CLFUSE_MOST_EXTENTS];
        npy_intp steps[CLFUSE_SIDES][CLFUSE_MOST_EXTENTS];  /* bytes from element to element */
        char *data[CLFUSE_SIDES];
    } clfuse_work;

    /* Stretch the shape of the result to that of an array. */
    static int clfuse_stretch(clfuse_work *work, PyArrayObject *array) {
        int place, rank = PyArray_NDIM(array), lead = work->rank - rank;
        for (place = 0; place < rank; place++) {
            npy_intp extent = PyArray_DIM(array, place), *known = &work->shape[place + lead];
            if (extent == *known || extent == 1)
                continue;
            if (*known != 1)
                return 0;
            *known = extent;
        }
        return 1;
    }

    static npy_intp clfuse_step_of(PyArrayObject *array, int place) {
        return place >= 0 && PyArray_DIM(array, place) != 1 ? PyArray_STRIDE(array, place) : 0;
    }

    static npy_intp clfuse_far(npy_intp step) { return step < 0 ? -step : step; }

    /* Lay out one or two arrays, or an array and a number's bytes; false where that is NumPy's, who
       makes the result in another order than that of C, or of no axes. The result has elements of
       `itemsize` bytes, or, where that is 0, lies as the first array. */
    static int clfuse_prepare(
        clfuse_work *work, PyArrayObject *one, PyArrayObject *two, char *number, npy_intp itemsize)
    {
        npy_intp step, before[2] = {-1, -1}, steps[CLFUSE_SIDES], extent, made = itemsize;
        int place, side, axes = 0, rank = PyArray_NDIM(one);
        if (two != NULL && PyArray_NDIM(two) > rank)
            rank = PyArray_NDIM(two);
        work->rank = rank;
        if (!rank || rank > CLFUSE_MOST_EXTENTS || !PyArray_ISALIGNED(one) ||
            (two != NULL && !PyArray_ISALIGNED(two)))
            return 0;
        for (place = 0; place < rank; place++)
            work->shape[place] = 1;
        if (!clfuse_stretch(work, one) || (two != NULL && !clfuse_stretch(work, two)))
            return 0;
        work->data[CLFUSE_ONE] = work->data[CLFUSE_RESULT] = PyArray_BYTES(one);
        work->data[CLFUSE_TWO] = two == NULL ? number : PyArray_BYTES(two);
        work->size = 1;
        for (place = rank; place--;) {
            extent = work->shape[place];
            if (extent == 1)
                continue;
            work->size *= extent;
            steps[CLFUSE_ONE] = clfuse_step_of(one, place - rank + PyArray_NDIM(one));
            steps[CLFUSE_TWO] =
                two == NULL ? 0 : clfuse_step_of(two, place - rank + PyArray_NDIM(two));
            steps[CLFUSE_RESULT] = itemsize ? made : steps[CLFUSE_ONE];
            made *= extent;
            for (side = CLFUSE_ONE; side <= CLFUSE_TWO; side++) {
                step = clfuse_far(steps[side]);
                if (!step)
                    continue;
                if (before[side] > step)
                    return 0;
                before[side] = step;
            }
            if (axes) {
                for (side = CLFUSE_ONE; side < CLFUSE_SIDES; side++)
                    if (steps[side] != work->steps[side][axes - 1] * work->extents[axes - 1])
                        break;
                if (side == CLFUSE_SIDES) {
                    work->extents[axes - 1] *= extent;
                    continue;
                }
            }
            work->extents[axes] = extent;
            for (side = CLFUSE_ONE; side < CLFUSE_SIDES; side++)
                work->steps[side][axes] = steps[side];
            axes++;
        }
        if (!axes) {  /* one element */
            work->extents[axes] = 1;
            for (side = CLFUSE_ONE; side < CLFUSE_SIDES; side++)
                work->steps[side][axes] = itemsize ? itemsize : PyArray_ITEMSIZE(one);
            axes++;
        }
        work->axes = axes;
        return work->size > 0;
    }

    /* Whether the elements of the first array, which the result is written over, are all apart from
       each other, and each from all of the second array but the one that it is made of. */
    static int clfuse_is_apart(const clfuse_work *work, npy_intp itemsize, npy_intp other_itemsize) {
        npy_intp reach = itemsize, least[2] = {0, 0}, most[2] = {itemsize, other_itemsize};
        const npy_intp *one = work->steps[CLFUSE_ONE], *two = work->steps[CLFUSE_TWO];
        int axis, side, same = work->data[CLFUSE_ONE] == work->data[CLFUSE_TWO];
        for (axis = 0; axis < work->axes; axis++) {
            npy_intp last = work->extents[axis] - 1;
            if (last && clfuse_far(one[axis]) < reach)
                return 0;
            reach = clfuse_far(one[axis]) * last + reach;
            same = same && one[axis] == two[axis];
            for (side = CLFUSE_ONE; side <= CLFUSE_TWO; side++) {
                npy_intp way = work->steps[side][axis] * last;
                if (way < 0)
                    least[side] += way;
                else
                    most[side] += way;
            }
        }
        return same ||
            work->data[CLFUSE_ONE] + most[CLFUSE_ONE] <= work->data[CLFUSE_TWO] + least[CLFUSE_TWO] ||
            work->data[CLFUSE_TWO] + most[CLFUSE_TWO] <= work->data[CLFUSE_ONE] + least[CLFUSE_ONE];
    }

    /* Let the loop make all elements, of the operands in this order; the errors that were noted. */
    static int clfuse_make(
        PyUFuncGenericFunction loop, void *data, int operands, int first, const clfuse_work *work)
    {
        const int sides[CLFUSE_SIDES] = {
            first, operands == 1 ? CLFUSE_RESULT : !first, CLFUSE_RESULT};
        char *at[CLFUSE_SIDES], *now[CLFUSE_SIDES];
        npy_intp steps[CLFUSE_SIDES], places[CLFUSE_MOST_EXTENTS] = {0};
        npy_intp length = work->extents[0];
        int side, axis;
        if (clfuse_flags())
            clfuse_forget_errors();  /* somebody else's */
        for (side = 0; side <= operands; side++) {
            at[side] = work->data[sides[side]];
            steps[side] = work->steps[sides[side]][0];
        }
        for (;;) {
            for (side = 0; side <= operands; side++)
                now[side] = at[side];
            loop(now, &length, steps, data);
            for (axis = 1; axis < work->axes; axis++) {
                for (side = 0; side <= operands; side++)
                    at[side] += work->steps[sides[side]][axis];
                if (++places[axis] < work->extents[axis])
                    break;
                for (side = 0; side <= operands; side++)
                    at[side] -= work->steps[sides[side]][axis] * places[axis];
                places[axis] = 0;
            }
            if (axis == work->axes)
                break;
        }
        return clfuse_flags();
    }

    /* Write elements that lie side by side to those of the first array. */
    static void clfuse_spread(const clfuse_work *work, const char *from, npy_intp size) {
        npy_intp places[CLFUSE_MOST_EXTENTS] = {0};
        npy_intp i, length = work->extents[0], step = work->steps[CLFUSE_ONE][0];
        char *to = work->data[CLFUSE_ONE];
        int axis;
        for (;;) {
            if (step == size)
                memcpy(to, from, length * size);
            else
                for (i = 0; i < length; i++)
                    memcpy(to + i * step, from + i * size, size);
            from += length * size;
            for (axis = 1; axis < work->axes; axis++) {
                to += work->steps[CLFUSE_ONE][axis];
                if (++places[axis] < work->extents[axis])
                    break;
                to -= work->steps[CLFUSE_ONE][axis] * places[axis];
                places[axis] = 0;
            }
            if (axis == work->axes)
                break;
        }
    }
    """
    enum:
        CLFUSE_MOST_SCRATCH
        CLFUSE_ONE
        CLFUSE_TWO
        CLFUSE_RESULT
    ctypedef struct clfuse_work:
        int rank
        npy_intp shape[8]
        npy_intp size
        char *data[3]
    ctypedef void (*ufunc_loop "PyUFuncGenericFunction")(
        char **, const npy_intp *, const npy_intp *, void *
    ) noexcept
    ctypedef struct PyUFuncObject:
        int nin
        int nout
        int ntypes
        ufunc_loop *functions
        void **data
        char *types
    int clfuse_prepare(clfuse_work *, PyArrayObject *, PyArrayObject *, char *, npy_intp) noexcept
    int clfuse_is_apart(const clfuse_work *, npy_intp, npy_intp) noexcept
    int clfuse_make(ufunc_loop, void *, int, int, const clfuse_work *) noexcept
    void clfuse_spread(const clfuse_work *, const char *, npy_intp) noexcept
    int clfuse_flags() noexcept
    int clfuse_as_numpys(int) noexcept
    int clfuse_minded, CLFUSE_FLAGS, CLFUSE_UNDERFLOW
    void clfuse_forget_errors() noexcept
    int _import_umath() except -1
    int PyUFunc_GiveFloatingpointErrors(const char *, int) except -1
    PyTypeObject PyUFunc_Type

cdef extern from "numpy/arrayobject.h":
    ctypedef int (*dotfunc "PyArray_DotFunc *")(void *, npy_intp, void *, npy_intp, void *, npy_intp, void *)
    ctypedef struct PyArray_ArrFuncs:
        dotfunc dotfunc
    PyArray_ArrFuncs *PyDataType_GetArrFuncs(PyArray_Descr *)
    object PyArray_Scalar(void *, PyArray_Descr *, PyObject *)
    int PyArray_ISALIGNED(PyArrayObject *)
    PyArray_Descr *PyArray_DescrFromType(int) except NULL
    int NPY_CFLOAT, NPY_HALF

cdef extern from "Python.h":
    PyObject *PyErr_Occurred()
    void PyErr_Clear()

_import_umath()

cdef enum:
    MOST_LOOPED = 1 << 15  # additions: beyond them NumPy's way to the loop takes less than 1 in 50

def mind_underflow(bint is_minded):
    """Leave it to NumPy, or not, where an operation of a loop underflows."""
    global clfuse_minded
    clfuse_minded = CLFUSE_FLAGS | CLFUSE_UNDERFLOW if is_minded else CLFUSE_FLAGS


cdef class UfuncLoops:
    """The loops of a ufunc of NumPy's for operands of one dtype, by that dtype's number."""

    cdef object name
    cdef int operands
    cdef ufunc_loop functions[MOST_TYPES]
    cdef void *data[MOST_TYPES]
    cdef int results[MOST_TYPES]  # the numbers of the dtypes of results
    cdef npy_intp sizes[MOST_TYPES]  # and their bytes

    def __cinit__(self, ufunc):
        cdef PyUFuncObject *numpys_own = <PyUFuncObject *><PyObject *>ufunc
        cdef int place, operand, number, made
        cdef bint is_of_one
        cdef PyObject *dtype
        if <void *>(<PyObject *>ufunc).ob_type != <void *>&PyUFunc_Type or ufunc.signature is not None:
            return
        if numpys_own.nout != 1 or not 0 < numpys_own.nin < 3:
            return
        self.name = ufunc.__name__.encode()
        self.operands = numpys_own.nin
        for place in range(numpys_own.ntypes):
            types = numpys_own.types + place * (self.operands + 1)
            number, made = types[0], types[self.operands]
            is_of_one = True
            for operand in range(1, self.operands):
                is_of_one = is_of_one and types[operand] == number
            if not is_of_one or not is_of_numbers(number) or not is_of_numbers(made):
                continue
            if self.functions[number] == NULL:  # NumPy takes the first
                self.functions[number] = numpys_own.functions[place]
                self.data[number] = numpys_own.data[place] if numpys_own.data != NULL else NULL
                self.results[number] = made
                dtype = <PyObject *>PyArray_DescrFromType(made)
                self.sizes[number] = (<object>dtype).itemsize
                Py_DECREF(<object>dtype)


cdef inline bint is_of_numbers(int number) noexcept:
    """Whether arrays of the dtype of this number hold numbers of the processor's."""
    return 0 <= number <= NPY_DOUBLE or number in (NPY_CFLOAT, NPY_CDOUBLE, NPY_HALF)


cdef inline int looped_type(UfuncLoops loops, PyObject *one, object two) noexcept:
    """The number of the dtype of an array and of another one, or None; -1 where it is NumPy's to call
    a loop: it looks at errors in its own way, or there is none."""
    cdef PyObject *mood = PyList_GET_ITEM(mode, 0)
    cdef PyObject *dtype = array_descr(one)
    cdef int number = (<PyArray_Descr *>dtype).type_num
    if mood != <PyObject *>LOUD and mood != <PyObject *>QUIET:
        return -1
    if not 0 <= number < MOST_TYPES or dtypes[number] != dtype or not array_rank(one):
        return -1
    if type(two) is NUMPY and array_descr(<PyObject *>two) != dtype:
        return -1
    return -1 if loops.functions[number] == NULL else number


cdef object new_result(clfuse_work *work, int number):
    """An array of NumPy's for what is prepared."""
    if not is_large_work:
        made = PyArray_EMPTY(work.rank, work.shape, number, 0)
    else:
        before = PyDataMem_SetHandler(keeper)
        try:
            made = PyArray_EMPTY(work.rank, work.shape, number, 0)
        finally:
            PyDataMem_SetHandler(before)
    work.data[CLFUSE_RESULT] = array_data(<PyObject *>made)
    return made


cdef object looped(UfuncLoops loops, PyObject *one, object two, bint is_second):
    """What NumPy would give for an array and another one, a number or None, in the other order where
    the first `is_second`, as NumPy's; None where NumPy has to do it."""
    cdef Number number
    cdef clfuse_work work
    cdef int kind = looped_type(loops, one, two)
    cdef PyArrayObject *other = NULL
    if kind < 0:
        return None
    if type(two) is NUMPY:
        other = <PyArrayObject *><PyObject *>two
    elif two is not None and not number_as(array_descr(one), two, &number):
        return None
    if not clfuse_prepare(&work, <PyArrayObject *>one, other, <char *>&number, loops.sizes[kind]):
        return None
    made = new_result(&work, loops.results[kind])
    if clfuse_minded & clfuse_make(
        loops.functions[kind], loops.data[kind], loops.operands, is_second, &work
    ):
        clfuse_forget_errors()
        return None
    if PyErr_Occurred() != NULL:
        PyErr_Clear()  # NumPy says it again
        return None
    return made


cdef bint is_changed_by_loop(UfuncLoops loops, PyObject *array, object other) except -1:
    """Make ``array += other`` as NumPy would; False where NumPy has to do it, and nothing was
    changed."""
    cdef Number number
    cdef clfuse_work work
    cdef char made[CLFUSE_MOST_SCRATCH]
    cdef int place, kind = looped_type(loops, array, other)
    cdef PyArrayObject *two = NULL
    cdef npy_intp size
    cdef int flags
    if kind < 0 or loops.results[kind] != kind or loops.operands != 2:
        return False
    if type(other) is NUMPY:
        two = <PyArrayObject *><PyObject *>other
    elif not number_as(array_descr(array), other, &number):
        return False
    size = loops.sizes[kind]
    if not clfuse_prepare(&work, <PyArrayObject *>array, two, <char *>&number, 0):
        return False
    if work.rank != array_rank(array):
        return False
    for place in range(work.rank):
        if work.shape[place] != array_extents(array)[place]:
            return False
    if is_left_to_numpy() and clfuse_is_apart(&work, size, size):
        flags = clfuse_make(loops.functions[kind], loops.data[kind], 2, CLFUSE_ONE, &work)
        if flags & clfuse_minded:
            clfuse_forget_errors()
            PyUFunc_GiveFloatingpointErrors(<bytes>loops.name, clfuse_as_numpys(flags))
        return True
    if work.size * size > CLFUSE_MOST_SCRATCH:
        return False
    # All is made before any of it is written: operands may overlap, and errors come first.
    clfuse_prepare(&work, <PyArrayObject *>array, two, <char *>&number, size)
    work.data[CLFUSE_RESULT] = made
    if clfuse_minded & clfuse_make(
        loops.functions[kind], loops.data[kind], 2, CLFUSE_ONE, &work
    ):
        clfuse_forget_errors()
        return False
    clfuse_spread(&work, made, size)
    return True


# -- products of vectors ---------------------------------------------------------------------------

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
    if clfuse_flags() & clfuse_minded:
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
