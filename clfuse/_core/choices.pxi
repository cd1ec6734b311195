"""Choices by a mask, ``where(mask, x, y)``, recorded: a part of `compiled.pyx`."""

cdef object chosen_node(
    object value, object shape, object dtype, object op, Py_ssize_t place, dict loops
):
    """A choice of ``where`` as a node of this dtype and shape, or of a number; None where plain has to
    look at it."""
    kind = type(value)
    if kind is ARRAY:
        if not is_ours(value) or is_on_host(value) or get(value, h_dtype) is not dtype:
            return None
        if get(value, h_shape) is not shape and get(value, h_shape) != shape:
            return None
        return orderly(value)
    if (kind is float or kind is int) and (dtype, kind) in loops:
        return constant_for(op, value, place)
    return None


cdef object choice(dict loops, object condition, object x, object y):
    """``where(condition, x, y)`` of a mask, arrays of its shape and of one dtype, and numbers,
    recorded; `DEFER` where plain has to. `loops` has the operation by dtype, and by dtype and class
    of number what may be a number."""
    if type(condition) is not ARRAY or not is_ours(condition) or is_on_host(condition):
        return DEFER
    if type(x) is ARRAY:
        dtype = get(x, h_dtype)
    elif type(y) is ARRAY:
        dtype = get(y, h_dtype)
    else:
        return DEFER
    op = loops.get(dtype)
    shape = get(condition, h_shape)
    if op is None or not <tuple>shape:
        return DEFER
    if get(condition, h_dtype) is not (<tuple>get(op, o_input_dtypes))[0]:
        return DEFER
    chosen = chosen_node(x, shape, dtype, op, 1, loops)
    other = None if chosen is None else chosen_node(y, shape, dtype, op, 2, loops)
    mask = None if other is None else orderly(condition)
    return DEFER if mask is None else record(op, (mask, chosen, other), shape)


def chooser(plain, dict loops):
    """``where(condition, x, y)``, before `plain`."""

    def call(*args, **kwargs):
        if not kwargs and PyTuple_GET_SIZE(args) == 3:
            answer = choice(loops, args[0], args[1], args[2])
            if answer is not DEFER:
                return answer
        return plain(*args, **kwargs)

    return call
