"""Arrays on the host without a storage cell: a part of `compiled.pyx`.

What NumPy has calculated is held by the array of ours itself, in slots of its own (`Handle._host`),
until somebody asks for its storage: a cell, a node and a buffer, which most results of operations
at the call never need. `Cell` makes them then, for everybody who asks in Python.

A view of an array on the host holds that array (`Handle._owner`) and NumPy's view (`Handle._seen`),
and nothing that says where it lies: `Sight` makes its `View` when somebody asks.
"""

cdef object new_alone(object array, object shape, object dtype, object device):
    """A new array of ours on memory that nobody else has; in C order."""
    handle = clfuse_new_array(<PyTypeObject *>ARRAY)
    fill(handle, h_shape, shape)
    fill(handle, h_dtype, dtype)
    fill(handle, h_view, None)
    fill(handle, h_host, array)
    fill(handle, h_device, device)
    fill(handle, h_use, IN_PARTS)
    return handle


cdef object new_view(object owner, object dtype, object seen):
    """A new array of ours that sees a part of the memory of another one, which owns it."""
    handle = clfuse_new_array(<PyTypeObject *>ARRAY)
    fill(handle, h_shape, shape_of(<PyObject *>seen))
    fill(handle, h_dtype, dtype)
    fill(handle, h_owner, owner)
    fill(handle, h_seen, seen)
    return handle


cdef inline object root_of(object handle):
    """The array whose memory it sees: its own, or that of the owner."""
    cdef PyObject *owner = peek(handle, h_owner)
    return handle if owner == NULL else <object>owner


cdef inline PyObject *cell_in(object handle) noexcept:
    """The cell of an array of ours or of its owner; NULL where there is none yet."""
    cdef PyObject *owner = peek(handle, h_owner)
    return peek(handle, h_cell) if owner == NULL else look(owner, h_cell)


cdef object storage_of(object handle):
    """The cell of an array of ours, made now if there is none."""
    cdef PyObject *found = peek(handle, h_cell)
    cdef PyObject *owner = peek(handle, h_owner)
    if found != NULL:
        return <object>found
    if owner != NULL:
        storage = storage_of(<object>owner)
        if peek(handle, h_cell) == NULL:
            fill(handle, h_cell, storage)
        return storage
    if peek(handle, h_host) == NULL:
        raise AttributeError("_storage")
    array = get(handle, h_host)
    dtype = native[array.dtype]
    buffer = PyType_GenericAlloc(<PyTypeObject *>HostBuffer, 0)
    fill(buffer, b_device, get(handle, h_device))
    fill(buffer, b_array, array)
    fill(buffer, b_copy, None)
    fill(buffer, b_memory, None)
    fill(buffer, b_window, None)
    fill(buffer, b_use, get(handle, h_use))
    storage = new_storage(new_node(leaves[dtype], (), array.shape, dtype, buffer))
    found = peek(handle, h_cell)
    if found != NULL:  # another thread was here while the collector ran
        return <object>found
    fill(handle, h_cell, storage)
    empty(handle, h_host)
    return storage


cdef object sight_of(object handle):
    """How an array of ours lies on its storage: a `View`, or None for all of it in C order."""
    cdef PyObject *found = peek(handle, h_view)
    cdef PyObject *seen = peek(handle, h_seen)
    cdef Py_ssize_t place, size, offset = 0
    if found != NULL:
        return <object>found
    if seen == NULL or peek(handle, h_owner) == NULL:
        raise AttributeError("_view")
    size = get(handle, h_dtype).itemsize
    shape = <tuple>get(handle, h_shape)
    strides = tuple([
        array_strides(seen)[place] // size for place in range(array_rank(seen))
    ])
    if 0 not in shape:
        offset = (array_data(seen) - array_data(array_base(seen))) // size
    view = PyType_GenericAlloc(<PyTypeObject *>View, 0)
    fill(view, v_base, get(handle, h_owner))
    fill(view, v_offset, offset)
    fill(view, v_strides, strides)
    fill(view, v_ordered, in_order(shape, strides))
    fill(view, v_writeable, True)
    found = peek(handle, h_view)
    if found != NULL:
        return <object>found
    fill(handle, h_view, view)
    return view


cdef void empty(object owner, Py_ssize_t offset) noexcept:
    """Let a slot hold nothing."""
    cdef PyObject *before = peek(owner, offset)
    if before == NULL:
        return
    (<PyObject **>((<char *><PyObject *>owner) + offset))[0] = NULL
    Py_DECREF(<object>before)


cdef class Cell:
    """`Handle._storage`: the slot of that name, filled when somebody asks for it."""

    def __get__(self, handle, owner):
        return self if handle is None else storage_of(handle)

    def __set__(self, handle, storage):
        if peek(handle, h_owner) != NULL:
            sight_of(handle)
        empty(handle, h_cell)
        fill(handle, h_cell, storage)
        empty(handle, h_host)
        empty(handle, h_owner)
        empty(handle, h_seen)


cdef class Sight:
    """`Handle._view`: the slot of that name, filled when somebody asks for it."""

    def __get__(self, handle, owner):
        return self if handle is None else sight_of(handle)

    def __set__(self, handle, view):
        if peek(handle, h_owner) != NULL or peek(handle, h_host) != NULL:
            storage_of(handle)
        empty(handle, h_view)
        fill(handle, h_view, view)
        empty(handle, h_owner)
        empty(handle, h_seen)
