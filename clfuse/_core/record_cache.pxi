"""What composed functions and reductions recorded before, recorded again: a part of
`compiled.pyx`. The same in Python, and what learns it, is `clfuse.dispatch.record_cache`."""

cdef object COMPACT, no_value, native_dtype_now
cdef dict scalar_classes


def connect_remembered(names):
    """As `connect`, for what is used here alone."""
    global COMPACT, no_value, native_dtype_now, scalar_classes
    COMPACT, no_value = names["COMPACT"], names["no_value"]
    native_dtype_now, scalar_classes = names["native_dtype"], names["scalar_classes"]


cdef object simple(object value):
    """An argument as a part of a key, or `DEFER` where it is not simple: `dispatch.record_cache._simple`."""
    kind = type(value)
    if value is None or value is no_value or kind is int or kind is str:
        return value
    if kind is bool:
        return (bool, value)
    if kind is tuple:
        for item in <tuple>value:
            if type(item) is not int:
                return DEFER
        return value
    return DEFER


cdef object recorded_again(
    object function, dict known, PyObject **args, Py_ssize_t given, tuple names
):
    """``function(*args, **named)`` as it was recorded before; `DEFER` where it was not."""
    cdef Py_ssize_t place
    if given == 0:
        return DEFER
    source = <object>args[0]
    if type(source) is not ARRAY or not is_ours(source) or sight_of(source) is not None:
        return DEFER
    node = get(storage_of(source), s_node)
    if type(node) is not Node:
        return DEFER
    kind = get(get(node, n_op), o_kind)
    if kind is VIEW or kind is CONSTANT or kind is COMPACT:
        return DEFER
    key = key_of(function, get(source, h_shape), get(source, h_dtype))
    for place in range(1, given):
        value = simple(<object>args[place])
        if value is DEFER:
            return DEFER
        key.append(value)
    if names is not None:
        for place, name in enumerate(names, given):
            value = simple(<object>args[place])
            if value is DEFER:
                return DEFER
            key.append((name, value))
    steps = known.get(tuple(key))
    if steps is None:
        return DEFER
    return followed(node, <list>steps)


cdef list key_of(object function, object shape, object dtype):
    """What a function of an array is known under begins with."""
    usual = native_dtype_now(FLOAT64) if settings.get("fp64") == "downcast" else FLOAT64
    return [function, shape, dtype, usual, mode[0]]


cdef object folded_again(object function, dict known, object node):
    """``function(array)`` of the array that `node` is, as it was recorded before; `DEFER` where it
    was not."""
    if type(node) is not Node:
        return DEFER
    kind = get(get(node, n_op), o_kind)
    if kind is VIEW or kind is CONSTANT or kind is COMPACT:
        return DEFER
    steps = known.get(tuple(key_of(function, get(node, n_shape), get(node, n_dtype))))
    return DEFER if steps is None else followed(node, <list>steps)


cdef object followed(object node, list steps):
    """The array, or lazy scalar, that `steps` make of `node`."""
    nodes = [node]
    for op, numbers, shape, dtype, param in steps:
        inputs = tuple([
            nodes[number] if type(number) is int else number for number in <tuple>numbers
        ])
        node = new_node(op, inputs, shape, dtype, None)
        refill(node, n_param, param)
        PyObject_GC_UnTrack(<PyObject *>node)
        PyObject_GC_UnTrack(<PyObject *>inputs)
        nodes.append(node)
    return held(node)


cdef object held(object node):
    """`arrays.handle.fresh` of a plain node."""
    storage = new_storage(node)
    reference = PyWeakref_NewRef(storage, None)
    PyObject_GC_UnTrack(<PyObject *>reference)
    recorded.append(reference)
    operations.append(get(node, n_op))
    if recorders:
        tell(node)
    if len(recorded) >= <Py_ssize_t>check_at[0]:
        check()
    return holding(storage)


cdef object call_copier(object self, PyObject **args, size_t given, PyObject *names):
    if names == NULL and PyVectorcall_NARGS(given) == 1:
        array = <object>args[0]
        if is_ours(array) and <tuple>get(array, h_shape) and not is_on_host(array):
            node = orderly(array)
            if type(node) is Node and not is_of_bytes(array):
                return held(node)
    return asked_plain(<Front>self, args, PyVectorcall_NARGS(given), names)


def copier(plain):
    """``array.copy()`` of an array that lies in C order, but not on the host, before `plain`: nodes do
    not change, so that a copy is the same one. Bytes that are seen as bools are copied as bytes."""
    return front(plain, <vectorcallfunc>call_copier)


cdef bint is_of_bytes(object array):
    """Whether an array of bools, not on the host, lies in a cell of another dtype."""
    dtype = get(array, h_dtype)
    return (<PyArray_Descr *>dtype).type_num == NPY_BOOL and (
        get(get(get(array, h_cell), s_node), n_dtype) is not dtype
    )


cdef object holding(object storage):
    """The array, or lazy scalar, of all of a cell."""
    node = get(storage, s_node)
    shape, dtype = get(node, n_shape), get(node, n_dtype)
    if <tuple>shape:
        return new_handle(storage, shape, dtype, None)
    scalar = PyType_GenericAlloc(<PyTypeObject *>scalar_classes[dtype], 0)
    fill(scalar, h_cell, storage)
    fill(scalar, h_shape, shape)
    fill(scalar, h_dtype, dtype)
    fill(scalar, h_view, None)
    return scalar


cdef object call_recalling(object self, PyObject **args, size_t given, PyObject *names):
    cdef Front ours = <Front>self
    answer = recorded_again(
        ours.apply, ours.known, args, PyVectorcall_NARGS(given),
        None if names == NULL else <tuple>names,
    )
    return asked_plain(ours, args, PyVectorcall_NARGS(given), names) if answer is DEFER else answer


def recalling(plain, function, dict known):
    """``function(*args, **kwargs)``, where it is known, before `plain`."""
    found = front(plain, <vectorcallfunc>call_recalling)
    found.apply, found.known = function, known
    return found
