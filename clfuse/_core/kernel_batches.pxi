"""Calls of kernels that are like the one before: a part of `compiled.pyx`. The same rule in Python
is `Series.again` in `clfuse.user_kernels.language.calls.call_batching`, which says what it is for."""

cdef extern from "Python.h":
    bint PyWeakref_CheckRefExact(object)
    Py_ssize_t PyList_GET_SIZE(object)

cdef Py_ssize_t r_batch, r_check, r_expected, r_number, r_ranges, r_numbers, r_offsets, r_widths
cdef Py_ssize_t c_is_open, c_nodes, c_order, c_present, c_written
cdef Py_ssize_t most_calls
cdef object Pending = None, Part = None, Series, checking
cdef dict numbers_of_python
cdef list bodies_running
cdef bint may_append = False, may_launch_ahead = False
cdef callfunc usual_call_of_kernels


def connect_batches(kernel, names):
    """Take what is used here, and be the call of this class."""
    global r_batch, r_check, r_expected, r_number, r_ranges, r_numbers, r_offsets, r_widths
    global c_is_open, c_nodes, c_order, c_present, c_written, most_calls
    global Pending, Part, Series, numbers_of_python, bodies_running, usual_call_of_kernels
    Series, batch = names["Series"], names["Batch"]
    r_batch, r_check = _offset(Series, "_batch"), _offset(Series, "_check")
    r_expected, r_number = _offset(Series, "_expected"), _offset(Series, "_number")
    r_ranges, r_numbers = _offset(Series, "_ranges"), _offset(Series, "numbers")
    r_offsets, r_widths = _offset(Series, "offsets"), _offset(Series, "widths")
    c_is_open, c_nodes = _offset(batch, "is_open"), _offset(batch, "_nodes")
    c_order, c_present = _offset(batch, "order"), _offset(batch, "present")
    c_written = _offset(batch, "written")
    Pending, Part = names["Pending"], names["Part"]
    numbers_of_python, bodies_running = names["DTYPES"], names["running"]
    most_calls = names["MOST"]
    settle_batches()
    usual_call_of_kernels = (<Class *><PyObject *>kernel).tp_call
    (<Class *><PyObject *>kernel).tp_call = slot_call_of_kernel
    PyType_Modified(<PyTypeObject *>kernel)


cdef int settle_batches() except -1:
    """Settings have changed."""
    global may_append, may_launch_ahead, checking
    checking = settings.get("check")
    may_append = settings.get("kernels") == "compiled" and settings.get("fusion") is True
    may_launch_ahead = may_append and settings.get("ahead") is True and checking == "off"
    return 0


cdef inline bint expects_no_rows(PyObject *node) noexcept:
    """Whether `arrays.host_array.expect_rows` need not be asked: calls of kernels have written to it."""
    kind = type(<object>node)
    return (kind is Pending or kind is Part) and look(node, n_buffer) == <PyObject *>None


cdef bint is_as_before(object argument, tuple wanted, object batch) except -1:
    """Whether an argument is what `Series._of_first` has seen, but for its offset or value."""
    cdef PyObject *cell
    cdef PyObject *node
    cdef PyObject *view
    cdef Py_ssize_t number
    if type(argument) is not <object>PyTuple_GET_ITEM(wanted, 0):
        return False
    if PyTuple_GET_ITEM(wanted, 1) == <PyObject *>None:
        return type(argument) is not int or wanted[2] <= argument <= wanted[3]
    if not is_ours(argument):
        return False
    cell = cell_in(argument)
    view = peek(argument, h_view)
    if cell == NULL or view == NULL:  # on the host: Python makes them
        return False
    if get(argument, h_dtype) is not <object>PyTuple_GET_ITEM(wanted, 2):
        return False
    if not is_same(<PyObject *>argument, h_shape, <object>PyTuple_GET_ITEM(wanted, 1)):
        return False
    if view == <PyObject *>None:
        if PyTuple_GET_ITEM(wanted, 3) != <PyObject *>None:
            return False
    elif (
        type(<object>view) is not View
        or look(view, v_writeable) != PyTuple_GET_ITEM(wanted, 4)
        or not is_same(view, v_strides, <object>PyTuple_GET_ITEM(wanted, 3))
    ):
        return False
    number = <object>PyTuple_GET_ITEM(wanted, 5)
    node = look(cell, s_node)
    if <object>PyList_GET_ITEM(get(batch, c_written), number) is False:
        return node == PyList_GET_ITEM(get(batch, c_nodes), number)
    if Py_REFCNT(node) != 1:  # the cell's; no name here counts
        return False
    present = clfuse_referent(<object>PyList_GET_ITEM(get(batch, c_present), number))
    return node == <PyObject *>present


cdef inline object offset_in(object argument):
    view = get(argument, h_view)
    return 0 if view is None else get(view, v_offset)


cdef bint repeats(list taken, tuple args) except -1:
    """Whether the last two calls had the same offsets: nothing that could be one call."""
    cdef Py_ssize_t place, last = PyList_GET_SIZE(taken), width = 0
    for place in range(1, PyTuple_GET_SIZE(args)):
        if type(<object>PyTuple_GET_ITEM(args, place)) is ARRAY:
            width += 1
    if last < 2 * width:
        return False
    for place in range(PyTuple_GET_SIZE(args) - 1, 0, -1):
        argument = <object>PyTuple_GET_ITEM(args, place)
        if type(argument) is ARRAY:
            last -= 1
            offset = offset_in(argument)
            if taken[last] != offset or taken[last - width] != offset:
                return False
    return True


cdef bint was_taken(object last, tuple args) except -1:
    """Whether a call is in the series of the one before, as `Series.again`."""
    cdef Py_ssize_t place, wide, many, count = PyTuple_GET_SIZE(args)
    if not may_append or PyList_GET_SIZE(bodies_running) or not PyWeakref_CheckRefExact(last):
        return False
    series = clfuse_referent(last)
    if type(series) is not Series or get(series, r_check) is not checking:
        return False
    wanted = get(series, r_expected)
    if wanted is None or PyList_GET_SIZE(wanted) != count - 1:
        return False
    ranges, first = <object>PyTuple_GET_ITEM(args, 0), get(series, r_ranges)
    if ranges is not first and (type(ranges) is not type(first) or ranges != first):
        return False
    # From here on nothing lets another thread in, so `ir.nodes.finding` is not needed.
    batch = clfuse_referent(get(series, r_batch))
    if batch is None or get(batch, c_is_open) is not True:
        return False
    for place in range(count - 1):
        argument = <object>PyTuple_GET_ITEM(args, place + 1)
        expected = <tuple><object>PyList_GET_ITEM(wanted, place)
        if not is_as_before(argument, expected, batch):
            return False
    offsets, numbers = <list>get(series, r_offsets), <list>get(series, r_numbers)
    wide, many = <tuple>get(series, r_widths)
    order = <list>get(batch, c_order)
    if (
        PyList_GET_SIZE(order) >= most_calls
        or PyList_GET_SIZE(offsets) * many != PyList_GET_SIZE(numbers) * wide  # half of one is in
        or repeats(offsets, args)
    ):
        return False
    for place in range(1, count):
        argument = <object>PyTuple_GET_ITEM(args, place)
        if type(argument) is ARRAY:
            offsets.append(offset_in(argument))
        else:
            numbers.append(argument)
    order.append(get(series, r_number))
    return True


cdef object slot_call_of_kernel(object self, object args, PyObject *kwargs):
    if unseen is not None:
        was_in_vain()
    if (
        PyTuple_GET_SIZE(<tuple>args) > 1
        and (kwargs == NULL or not PyDict_Size(<object>kwargs))
        and get(boundary, y_due) is False
        and (
            was_taken(self._last, <tuple>args)
            or values_again(self, <tuple>args, 0, None) is not DEFER
        )
    ):
        return None
    return usual_call_of_kernels(self, args, kwargs)
