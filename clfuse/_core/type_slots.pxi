"""Slots of Python's classes, read and filled where they lie: a part of `compiled.pyx`."""

cdef Py_ssize_t _offset(cls, name) except -1:
    """Where a slot lies in the instances of a class, or of one derived from it."""
    descriptor = cls.__dict__[name]
    if type(descriptor) is not type(_Slotted.__dict__["slot"]):
        raise TypeError(f"{cls.__name__}.{name} is no slot")
    return (<PyMemberDescrObject *><PyObject *>descriptor).d_member.offset


cdef inline PyObject *peek(object owner, Py_ssize_t offset) noexcept:
    """What a slot holds, without a reference to it; NULL where it was never filled."""
    return (<PyObject **>((<char *><PyObject *>owner) + offset))[0]


cdef inline PyObject *look(PyObject *owner, Py_ssize_t offset) noexcept:
    return (<PyObject **>((<char *>owner) + offset))[0]


cdef inline object get(object owner, Py_ssize_t offset):
    """What a slot holds, which was filled when the object was made."""
    return <object>(<PyObject **>((<char *><PyObject *>owner) + offset))[0]


cdef inline void fill(object owner, Py_ssize_t offset, object value) noexcept:
    """Fill a slot of a new object."""
    Py_INCREF(value)
    (<PyObject **>((<char *><PyObject *>owner) + offset))[0] = <PyObject *>value


cdef void refill(object owner, Py_ssize_t offset, object value) noexcept:
    """Let a slot hold something else."""
    cdef PyObject *before = peek(owner, offset)
    fill(owner, offset, value)
    Py_DECREF(<object>before)


cdef Py_ssize_t h_cell, h_shape, h_dtype, h_view, h_host, h_device, h_use, h_owner, h_seen
cdef Py_ssize_t s_node
cdef set known_works, works_of_kernels
cdef dict updates
cdef Py_ssize_t n_buffer, n_op, n_inputs, n_shape, n_dtype, n_param, n_computed
cdef Py_ssize_t b_device, b_array, b_copy, b_memory, b_use, b_window
cdef Py_ssize_t o_dtype, o_input_dtypes, o_kind
cdef Py_ssize_t v_base, v_offset, v_strides, v_ordered, v_writeable
cdef Py_ssize_t i_layout, i_shape, i_path, i_start, y_due

cdef object ARRAY, Node, Storage, HostBuffer, View, Indexed, NUMPY, FLOAT64, DEFER, LOUD
cdef object CONSTANT, SUSPENDED, UPDATE, VIEW
cdef object AS_A_WHOLE, IN_PARTS, BY_ROWS, SELECTED
cdef tuple uses  # these, by their numbers
cdef object check, boundary
cdef Py_ssize_t rows_of_a_loop
cdef object plain_made, plain_part, node_of, expect_rows, element, c_strides
cdef dict settings, leaves, constants, native, views
cdef list recorded, operations, recorders, check_at, tracers, mode, standard
cdef frozenset scalars
cdef double additions_a_us, few_additions, fresh_share, rows_share, selected_share, loop_additions
cdef Py_ssize_t longest_path
cdef bint inside = False
cdef object NONE_ALIVE = 0  # of `ir.trace.tracers`: nobody traces


class _Slotted:
    __slots__ = ("slot",)


def connect_graph(node, op, kind):
    """Take the classes of recorded operations."""
    global Node, CONSTANT, SUSPENDED, UPDATE, VIEW, n_buffer, n_op, n_inputs, n_shape, n_dtype
    global n_param, n_computed, o_dtype, o_input_dtypes, o_kind
    Node = node
    CONSTANT, UPDATE, VIEW = kind.CONSTANT, kind.UPDATE, kind.VIEW
    SUSPENDED = kind.SUSPENDED
    n_buffer, n_op = _offset(node, "buffer"), _offset(node, "op")
    n_inputs, n_shape = _offset(node, "inputs"), _offset(node, "shape")
    n_dtype, n_param = _offset(node, "dtype"), _offset(node, "param")
    n_computed = _offset(node, "computed")
    o_dtype, o_kind = _offset(op, "dtype"), _offset(op, "kind")
    o_input_dtypes = _offset(op, "input_dtypes")


def connect(names):
    """Take the other classes, functions and tables of clfuse that are used here, by name."""
    global h_cell, h_shape, h_dtype, h_view, s_node, b_device, b_array, b_copy, b_memory
    global h_host, h_device, h_use, h_owner, h_seen, b_window
    global b_use, uses, AS_A_WHOLE, IN_PARTS, BY_ROWS, SELECTED, few_additions, selected_share
    global v_base, v_offset, v_strides, v_ordered, v_writeable, i_layout, i_shape, i_path, i_start
    global ARRAY, Storage, HostBuffer, View, Indexed, NUMPY, FLOAT64, DEFER, LOUD
    global check, boundary, plain_made, plain_part, node_of
    global expect_rows, rows_of_a_loop, element, c_strides, settings, leaves, constants, native, views
    global recorded, operations, recorders, check_at, tracers, mode, standard, scalars
    global additions_a_us, fresh_share, loop_additions
    global longest_path, rows_share, known_works, works_of_kernels, updates, y_due
    ARRAY, Storage = names["ARRAY"], names["Storage"]
    HostBuffer, View, Indexed = names["HostBuffer"], names["View"], names["Indexed"]
    handle, buffer = names["Handle"], names["Buffer"]
    h_cell, h_shape = _offset(handle, "_storage"), _offset(handle, "_shape")
    h_dtype, h_view = _offset(handle, "_dtype"), _offset(handle, "_view")
    h_host, h_device = _offset(handle, "_host"), _offset(handle, "_device")
    h_use = _offset(handle, "_use")
    h_owner, h_seen = _offset(handle, "_owner"), _offset(handle, "_seen")
    s_node = _offset(Storage, "node")
    b_device, b_array = _offset(buffer, "device"), _offset(HostBuffer, "array")
    b_copy, b_memory = _offset(HostBuffer, "copy"), _offset(HostBuffer, "memory")
    b_use, b_window = _offset(HostBuffer, "use"), _offset(HostBuffer, "window")
    uses = names["uses"]
    AS_A_WHOLE, IN_PARTS, BY_ROWS, SELECTED = uses
    selected_share = names["selected_share"]
    few_additions, rows_share = names["few_additions"], names["rows_share"]
    fresh_share, loop_additions = names["fresh_share"], names["loop_additions"]
    v_base, v_offset = _offset(View, "base"), _offset(View, "offset")
    v_strides = _offset(View, "strides")
    v_ordered, v_writeable = _offset(View, "ordered"), _offset(View, "writeable")
    i_layout, i_shape = _offset(Indexed, "_layout"), _offset(Indexed, "_shape")
    i_path, i_start = _offset(Indexed, "path"), _offset(Indexed, "start")
    NUMPY, FLOAT64, DEFER, LOUD = names["NUMPY"], names["FLOAT64"], names["DEFER"], names["LOUD"]
    check, boundary = names["check"], names["boundary"]
    y_due = _offset(type(boundary), "due")
    plain_made, plain_part, node_of = names["made"], names["part"], names["node_of"]
    expect_rows, rows_of_a_loop = names["expect_rows"], names["rows_of_a_loop"]
    element, c_strides = names["element"], names["c_strides"]
    updates = names["updates"]
    known_works, works_of_kernels = names["known_works"], names["works_of_kernels"]
    settings, leaves, constants = names["settings"], names["leaves"], names["constants"]
    native, views = names["native"], names["views"]
    recorded, tracers = names["recorded"], names["tracers"]
    operations, check_at = names["operations"], names["check_at"]
    recorders = names["recorders"]
    mode, standard, scalars = names["mode"], names["standard"], names["scalars"]
    additions_a_us, longest_path = names["additions_a_us"], names["longest_path"]

