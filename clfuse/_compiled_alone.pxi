"""Arrays on the host without a storage cell: a part of `_compiled.pyx`.

What NumPy has calculated is held by the array of ours itself, in slots of its own (`Handle._host`),
until somebody asks for its storage: a cell, a node and a buffer, which most results of operations
at the call never need. `Cell` makes them then, for everybody who asks in Python. Whoever asks here
has seen that the array `is_ours`.
"""

cdef object new_alone(object array, object shape, object dtype, object device):
    """A new array of ours on memory that nobody else has; in C order."""
    handle = new_handle_without_storage(shape, dtype)
    fill(handle, h_host, array)
    fill(handle, h_device, device)
    fill(handle, h_use, IN_PARTS)
    return handle


cdef inline object new_handle_without_storage(object shape, object dtype):
    handle = PyType_GenericAlloc(<PyTypeObject *>ARRAY, 0)
    fill(handle, h_shape, shape)
    fill(handle, h_dtype, dtype)
    fill(handle, h_view, None)
    return handle


cdef object storage_of(object handle):
    """The cell of an array of ours, made now if there is none."""
    cdef PyObject *found = peek(handle, h_cell)
    if found != NULL:
        return <object>found
    if peek(handle, h_host) == NULL:
        raise AttributeError("_storage")
    array = get(handle, h_host)
    dtype = native[array.dtype]
    buffer = PyType_GenericAlloc(<PyTypeObject *>HostBuffer, 0)
    fill(buffer, b_device, get(handle, h_device))
    fill(buffer, b_array, array)
    fill(buffer, b_copy, None)
    fill(buffer, b_memory, None)
    fill(buffer, b_use, get(handle, h_use))
    storage = new_storage(new_node(leaves[dtype], (), array.shape, dtype, buffer))
    found = peek(handle, h_cell)
    if found != NULL:  # another thread was here while the collector ran
        return <object>found
    fill(handle, h_cell, storage)
    forget_host(handle)
    return storage


cdef void forget_host(object handle) noexcept:
    """Let go of what is held without a storage."""
    cdef PyObject *host = peek(handle, h_host)
    if host == NULL:
        return
    (<PyObject **>((<char *><PyObject *>handle) + h_host))[0] = NULL
    Py_DECREF(<object>host)


cdef class Cell:
    """`Handle._storage`: the slot of that name, filled when somebody asks for it."""

    def __get__(self, handle, owner):
        return self if handle is None else storage_of(handle)

    def __set__(self, handle, storage):
        cdef PyObject *before = peek(handle, h_cell)
        fill(handle, h_cell, storage)
        if before != NULL:
            Py_DECREF(<object>before)
        forget_host(handle)


cdef inline object host_of(object handle):
    """NumPy's array with the elements of the storage of an array that `is_ours`, if it lies on the
    host, or None."""
    cdef PyObject *host = peek(handle, h_host)
    if host != NULL:
        return <object>host
    buffer = get(get(get(handle, h_cell), s_node), n_buffer)
    return get(buffer, b_array) if type(buffer) is HostBuffer else None


cdef inline object device_of(object handle):
    """The device of an array that lies on the host."""
    if peek(handle, h_host) != NULL:
        return get(handle, h_device)
    return get(get(get(get(handle, h_cell), s_node), n_buffer), b_device)


cdef inline object use_here(object handle):
    """`use_of` the buffer of an array that lies on the host."""
    if peek(handle, h_host) != NULL:
        return get(handle, h_use)
    return use_of(get(get(get(handle, h_cell), s_node), n_buffer))


cdef void note_here(object handle, object use) noexcept:
    """`note` for an array that lies on the host."""
    if peek(handle, h_host) != NULL:
        refill(handle, h_use, use)
    else:
        note(get(get(get(handle, h_cell), s_node), n_buffer), use)
