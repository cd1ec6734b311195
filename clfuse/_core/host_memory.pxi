"""The memory of arrays on the host, to be read and to be written to: a part of `compiled.pyx`.

NumPy's views of it are kept, for the next who asks. They may not count where it is looked who else
holds the memory, so of a buffer they see a `window`: an array on the same bytes, whose base is not
an array but a tuple with one, because NumPy would let views have that one for their base. Of an
array without a cell nobody else can hold the memory. Where the memory was replaced by another (a
copy, because somebody else holds it), views see by their base that they are out of date.

What is kept here is never given away: what NumPy makes of it is asked whether it is a view.
"""

cdef bint is_ours(object array) noexcept:
    """Whether it is an array of ours whose storage may be read, or that has none yet: no cell is a
    property, by `ir.trace` of all or by `shared_storage` of this one."""
    cdef PyObject *storage
    if type(array) is not ARRAY or PyList_GET_ITEM(tracers, 0) != <PyObject *>NONE_ALIVE:
        return False
    storage = cell_in(array)
    return storage == NULL or type(<object>storage) is Storage


cdef inline PyObject *buffer_on_host(object handle) noexcept:
    """The buffer of an array that `is_ours` and has a cell, if it lies on the host, or NULL."""
    cdef PyObject *buffer = look(look(cell_in(handle), s_node), n_buffer)
    return buffer if type(<object>buffer) is HostBuffer else NULL


cdef inline bint is_on_host(object handle) noexcept:
    """Whether the elements of an array that `is_ours` lie on the host."""
    cdef PyObject *owner = peek(handle, h_owner)
    if peek(handle, h_host) != NULL or (owner != NULL and look(owner, h_host) != NULL):
        return True
    return buffer_on_host(handle) != NULL


cdef object window_of(PyObject *buffer):
    """The window of a buffer on the host, made now if there is none."""
    cdef PyObject *found = look(buffer, b_window)
    cdef PyObject *array
    if found != NULL and found != <PyObject *>None:
        return <object>found
    array = look(buffer, b_array)
    window = view_at(
        array, array_rank(array), array_extents(array), array_strides(array), array_data(array),
        (<object>array,),
    )
    if found == NULL:
        fill(<object>buffer, b_window, window)
    else:
        refill(<object>buffer, b_window, window)
    return window


cdef object view_at(
    PyObject *like, int rank, npy_intp *extents, npy_intp *strides, char *data, object base
):
    """NumPy's array on memory of `base`, of the dtype of another one."""
    descr = <object>array_descr(like)
    Py_INCREF(descr)  # it is taken
    found = PyArray_NewFromDescr(
        <PyTypeObject *>NUMPY, <PyArray_Descr *>descr, rank, extents, strides, data, WRITEABLE, NULL
    )
    Py_INCREF(base)
    PyArray_SetBaseObject(<PyArrayObject *>found, <PyObject *>base)
    return found


cdef object moved(object handle, PyObject *seen, object memory):
    """The view of an array with an owner, in other memory of its storage."""
    cdef char *data = array_data(<PyObject *>memory)
    data += array_data(seen) - array_data(array_base(seen))
    found = view_at(
        seen, array_rank(seen), array_extents(seen), array_strides(seen), data, memory
    )
    refill(handle, h_seen, found)
    return found


cdef object here(object handle):
    """NumPy's array of the elements of an array that `is_ours`, in their memory, if that is on the
    host, or None. Not to be written to, and not to be given away."""
    cdef PyObject *host = peek(handle, h_host)
    cdef PyObject *seen
    cdef PyObject *owner
    cdef PyObject *buffer
    cdef PyObject *window
    if host != NULL:
        return <object>host
    seen = peek(handle, h_seen)
    owner = peek(handle, h_owner)
    if owner != NULL:
        host = look(owner, h_host)
        if host != NULL:
            if array_base(seen) == host:
                return <object>seen
            return moved(handle, seen, <object>host)
    buffer = buffer_on_host(handle)
    if buffer == NULL:
        return None
    window = look(buffer, b_window)
    if owner != NULL:
        if array_base(seen) == window or array_base(seen) == look(buffer, b_array):
            return <object>seen
        return moved(handle, seen, window_of(buffer))
    if peek(handle, h_view) == <PyObject *>None:
        return <object>look(buffer, b_array)
    if seen != NULL and window != NULL and array_base(seen) == window:
        return <object>seen
    held = window_of(buffer)
    found = memory(held, handle)
    if type(found) is NUMPY and array_base(<PyObject *>found) == <PyObject *>held:
        empty(handle, h_seen)
        fill(handle, h_seen, found)
    return found


cdef object indexable(object handle):
    """As `here`, to make views of that may be kept; None where these may not be written to."""
    cdef PyObject *host = peek(handle, h_host)
    cdef PyObject *buffer
    cdef PyObject *base
    if not is_writeable(handle):  # as `setflags` left it
        return None
    if host != NULL and array_base(host) == NULL:
        return <object>host
    if peek(handle, h_owner) == NULL:
        storage_of(handle)
        buffer = buffer_on_host(handle)
        if buffer == NULL:
            return None
        if peek(handle, h_view) == <PyObject *>None:
            return window_of(buffer)
        view = get(handle, h_view)
        if get(view, v_writeable) is not True or get(view, v_base) is None:
            return None
        found = here(handle)
        base = NULL if found is None else array_base(<PyObject *>found)
        return found if base != NULL and base == look(buffer, b_window) else None
    return here(handle)


cdef object memory(object array, object handle):
    """What a handle sees of the elements of its storage: `arrays.host_array.view_elements`."""
    view = sight_of(handle)
    if view is None:
        return array
    if type(view) is Indexed:
        start = get(view, i_start)
        found = array
        if start is not None:
            found = seen(array, <tuple>(<tuple>start)[0], get(handle, h_dtype), (<tuple>start)[1])
        for index in <tuple>get(view, i_path):
            found = taken(index, found) if type(index) is Step else found[index]
        return found
    if type(view) is View:
        return seen(array, <tuple>get(handle, h_shape), get(handle, h_dtype), view)
    return plain_part(array, handle)


cdef object seen(object array, tuple shape, object dtype, object view):
    """As `arrays.host_array.strided_elements`."""
    if type(view) is not View or 0 in shape:
        return plain_seen(array, shape, dtype, view)
    cdef Py_ssize_t size = dtype.itemsize
    strides = [<Py_ssize_t>stride * size for stride in <tuple>get(view, v_strides)]
    return NUMPY(shape, dtype, array, <Py_ssize_t>get(view, v_offset) * size, strides)


# -- what is known of it ---------------------------------------------------------------------------

cdef inline object device_of(object handle):
    """The device of an array that lies on the host."""
    root = root_of(handle)
    if peek(root, h_host) != NULL:
        return get(root, h_device)
    return <object>look(buffer_on_host(handle), b_device)


cdef inline object use_here(object handle):
    """What was done with an array that lies on the host, of those three in `runtime.memory.buffers`."""
    root = root_of(handle)
    if peek(root, h_host) != NULL:
        return get(root, h_use)
    return <object>look(buffer_on_host(handle), b_use)


cdef inline void note_here(object handle, object use) noexcept:
    root = root_of(handle)
    cdef PyObject *before
    if peek(root, h_host) != NULL:
        before = peek(root, h_use)
        if before != <PyObject *>use and before != <PyObject *>SELECTED:
            refill(root, h_use, use)
        return
    buffer = <object>buffer_on_host(handle)
    before = peek(buffer, b_use)
    if before != <PyObject *>use and before != <PyObject *>SELECTED:
        refill(buffer, b_use, use)


cdef inline bint is_writeable(object handle):
    view = <object>peek(handle, h_view) if peek(handle, h_view) != NULL else None
    return view is None or get(view, v_writeable) is True


cdef inline bint share_cell(object one, object two):
    """Whether two arrays see the same storage."""
    cdef PyObject *cell
    if root_of(one) is root_of(two):
        return True
    cell = cell_in(one)
    return cell != NULL and cell == cell_in(two)


# -- writing ---------------------------------------------------------------------------------------

cdef bint is_owned(object storage, int names) except -1:
    """Whether the memory of a cell on the host may be written to; where not, somebody else may see
    it, and `eager.writes.writable_memory` has to look closer. The array there has so many `names`.
    """
    # Without them one reference each, the cell's, the node's and the buffer's.
    cdef PyObject *node = peek(storage, s_node)
    cdef PyObject *buffer = look(node, n_buffer)
    cdef PyObject *array = look(buffer, b_array)
    cdef PyObject *window = look(buffer, b_window)
    cdef Py_ssize_t count = names + (1 if window == NULL or window == <PyObject *>None else 2)
    if Py_REFCNT(node) != 1 or Py_REFCNT(buffer) != 1 or Py_REFCNT(array) != count:
        return False
    if array_base(array) != NULL:
        return False
    if look(buffer, b_copy) != <PyObject *>None:
        refill(<object>buffer, b_copy, None)
    if look(buffer, b_use) == <PyObject *>AS_A_WHOLE:
        refill(<object>buffer, b_use, IN_PARTS)
    if look(node, n_measured) != NULL or look(node, n_tally) != NULL:
        # What is known of the values holds no longer.
        dtype = <object>look(node, n_dtype)
        shape = <object>look(node, n_shape)
        refill(storage, s_node, new_node(leaves[dtype], (), shape, dtype, <object>buffer))
    return True


cdef inline bint puts_bytes(object handle, object stored) noexcept:
    """Whether other bytes than 0 and 1 may get into bools: `arrays.handle` keeps them as bytes
    before."""
    return (<PyArray_Descr *>stored).type_num == NPY_BOOL and (
        (<PyArray_Descr *>peek(handle, h_dtype)).type_num != NPY_BOOL
    )


cdef object written(object handle):
    """As `here`, to be written to, of an array that lies on the host; None where `plain` has to
    look closer."""
    root = root_of(handle)
    cdef PyObject *host = peek(root, h_host)
    if host != NULL:
        if array_base(host) != NULL or puts_bytes(handle, get(root, h_dtype)):
            return None
        if peek(root, h_use) == <PyObject *>AS_A_WHOLE:
            refill(root, h_use, IN_PARTS)
        return here(handle)
    storage = <object>cell_in(handle)
    if puts_bytes(handle, <object>look(peek(storage, s_node), n_dtype)):
        return None
    if not is_owned(storage, 0) and plain_owned(storage) is None:
        return None
    return here(handle)
