"""Where integers and slices point in an array on the host, found here: a part of `compiled.pyx`.

What an index says is looked up once: an element is read or written where it lies, a view is made
without NumPy's steps to it, and a few elements are written here. All else, and every error, is
NumPy's.
"""

cdef extern from *:
    """
    #define CLFUSE_MOST_PART_EXTENTS 8

    typedef struct {
        int rank;
        npy_intp extents[CLFUSE_MOST_PART_EXTENTS], strides[CLFUSE_MOST_PART_EXTENTS];
        char *data;
    } clfuse_part;

    /* One item of an index; false where NumPy has to look at it. */
    static int clfuse_take_item(
        PyArrayObject *array, PyObject *item, int *axis, clfuse_part *part)
    {
        if (item == Py_None) {
            if (part->rank == CLFUSE_MOST_PART_EXTENTS)
                return 0;
            part->extents[part->rank] = 1;
            part->strides[part->rank++] = 0;
            return 1;
        }
        if (*axis >= PyArray_NDIM(array))
            return 0;
        if (PyLong_CheckExact(item)) {
            int overflow;
            long place = PyLong_AsLongAndOverflow(item, &overflow);
            npy_intp extent = PyArray_DIM(array, *axis);
            if (overflow || place >= extent || place < -extent)
                return 0;
            part->data += (place < 0 ? place + extent : place) * PyArray_STRIDE(array, *axis);
        } else if (PySlice_Check(item)) {
            Py_ssize_t start, stop, step;
            if (part->rank == CLFUSE_MOST_PART_EXTENTS)
                return 0;
            if (PySlice_Unpack(item, &start, &stop, &step) < 0) {
                PyErr_Clear();  /* NumPy raises it again */
                return 0;
            }
            part->extents[part->rank] =
                PySlice_AdjustIndices(PyArray_DIM(array, *axis), &start, &stop, step);
            if (!part->extents[part->rank])
                return 0;
            part->data += start * PyArray_STRIDE(array, *axis);
            part->strides[part->rank++] = step * PyArray_STRIDE(array, *axis);
        } else {
            return 0;
        }
        ++*axis;
        return 1;
    }

    /* What an index of integers, slices and None points at: 0 that is NumPy's to say, 1 a part,
       2 an element. */
    static int clfuse_take(PyArrayObject *array, PyObject *index, clfuse_part *part) {
        int axis = 0;
        part->rank = 0;
        part->data = PyArray_BYTES(array);
        if (PyTuple_CheckExact(index)) {
            Py_ssize_t place;
            for (place = 0; place < PyTuple_GET_SIZE(index); place++)
                if (!clfuse_take_item(array, PyTuple_GET_ITEM(index, place), &axis, part))
                    return 0;
        } else if (!clfuse_take_item(array, index, &axis, part)) {
            return 0;
        }
        if (axis == PyArray_NDIM(array) && !part->rank)
            return PyTuple_CheckExact(index) || axis ? 2 : 0;
        for (; axis < PyArray_NDIM(array); axis++) {
            if (part->rank == CLFUSE_MOST_PART_EXTENTS || !PyArray_DIM(array, axis))
                return 0;
            part->extents[part->rank] = PyArray_DIM(array, axis);
            part->strides[part->rank++] = PyArray_STRIDE(array, axis);
        }
        return 1;
    }

    /* Write to all elements of a part what lies at `from`, so many bytes on for each of them. */
    static void clfuse_write(const clfuse_part *part, const char *from, npy_intp next, npy_intp size)
    {
        int place, last = part->rank - 1;
        char *to = part->data;
        npy_intp at[CLFUSE_MOST_PART_EXTENTS] = {0};
        npy_intp i, length = part->rank ? part->extents[last] : 1;
        npy_intp step = part->rank ? part->strides[last] : 0;
        for (;;) {
            if (size == 8)
                for (i = 0; i < length; i++, from += next)
                    memcpy(to + i * step, from, 8);
            else if (size == 4)
                for (i = 0; i < length; i++, from += next)
                    memcpy(to + i * step, from, 4);
            else
                for (i = 0; i < length; i++, from += next)
                    memcpy(to + i * step, from, size);
            for (place = last - 1; place >= 0; place--) {
                to += part->strides[place];
                if (++at[place] < part->extents[place])
                    break;
                to -= part->strides[place] * at[place];
                at[place] = 0;
            }
            if (place < 0)
                break;
        }
    }

    /* Read all elements of an array, one after the other. */
    static void clfuse_read(PyArrayObject *array, char *to, npy_intp size) {
        int place, last = PyArray_NDIM(array) - 1;
        const char *from = PyArray_BYTES(array);
        npy_intp at[CLFUSE_MOST_PART_EXTENTS] = {0};
        npy_intp i, length = PyArray_DIM(array, last), step = PyArray_STRIDE(array, last);
        for (;;) {
            if (size == 8)
                for (i = 0; i < length; i++, to += 8)
                    memcpy(to, from + i * step, 8);
            else
                for (i = 0; i < length; i++, to += size)
                    memcpy(to, from + i * step, size);
            for (place = last - 1; place >= 0; place--) {
                from += PyArray_STRIDE(array, place);
                if (++at[place] < PyArray_DIM(array, place))
                    break;
                from -= PyArray_STRIDE(array, place) * at[place];
                at[place] = 0;
            }
            if (place < 0)
                break;
        }
    }
    """
    enum:
        CLFUSE_MOST_PART_EXTENTS
    ctypedef struct clfuse_part:
        int rank
        npy_intp extents[8]
        npy_intp strides[8]
        char *data
    int clfuse_take(PyArrayObject *, PyObject *, clfuse_part *) except -1
    void clfuse_write(const clfuse_part *, const char *, npy_intp, npy_intp)
    void clfuse_read(PyArrayObject *, char *, npy_intp)


cdef enum:
    MOST_WRITTEN_NBYTES = 4096  # at a time; more is NumPy's


cdef object taken_at(object array, object index):
    """``array[index]`` of NumPy's array."""
    cdef clfuse_part part
    cdef int kind = clfuse_take(<PyArrayObject *><PyObject *>array, <PyObject *>index, &part)
    if kind == 1:
        return view_at(
            <PyObject *>array, part.rank, part.extents, part.strides, part.data, array
        )
    if kind == 2 and native_dtype(<PyObject *>array) != NULL:
        return PyArray_Scalar(
            part.data, <PyArray_Descr *>array_descr(<PyObject *>array), <PyObject *>array
        )
    return numpys_indices.mp_subscript(array, index)


cdef bint is_written_at(PyObject *array, object index, object value) except -1:
    """Make ``array[index] = value`` of NumPy's arrays, and of numbers; False where NumPy has to do
    it, and nothing was written."""
    cdef clfuse_part part
    cdef Number number
    cdef char kept[MOST_WRITTEN_NBYTES]
    cdef PyObject *dtype = array_descr(array)
    cdef PyObject *source = <PyObject *>value
    cdef npy_intp size = nbytes_of((<PyArray_Descr *>dtype).type_num)
    cdef npy_intp nbytes = size
    cdef int place
    cdef bint is_same
    if (<PyArray_Descr *>dtype).type_num not in (NPY_DOUBLE, NPY_FLOAT, NPY_INT64, NPY_INT32) or (
        native_dtype(array) == NULL
    ):
        return False
    if not clfuse_take(<PyArrayObject *>array, <PyObject *>index, &part):
        return False
    for place in range(part.rank):
        nbytes *= part.extents[place]
    if nbytes > MOST_WRITTEN_NBYTES:
        return False
    if type(value) is not NUMPY:
        if not number_as(dtype, value, &number):
            return False
        clfuse_write(&part, <char *>&number, 0, size)
        return True
    if array_descr(source) != dtype or array_rank(source) != part.rank or not part.rank:
        return False
    is_same = array_data(source) == part.data
    for place in range(part.rank):
        if array_extents(source)[place] != part.extents[place]:
            return False
        is_same = is_same and array_strides(source)[place] == part.strides[place]
    if is_same:
        return True  # what `x[i:j] += y` ends with
    # All is read before any of it is written: both may be of one array.
    clfuse_read(<PyArrayObject *>source, kept, size)
    clfuse_write(&part, kept, size, size)
    return True
