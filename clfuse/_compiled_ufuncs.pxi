"""Calls of ufuncs on arrays on the host: a part of `_compiled.pyx`."""

def call(plain):
    """``function(*args)``, before `plain`: by its operator where that is compiled (`fast`)."""

    def __call__(self, *args, **kwargs):
        cdef Py_ssize_t given = PyTuple_GET_SIZE(args)
        if given and not kwargs and type(args[0]) is ARRAY:
            fast = self.fast
            if fast is not None and given == <Py_ssize_t>self.nin:
                if given == 1:
                    return fast(args[0])
                kind = type(args[1])
                if kind is ARRAY or kind is float or kind is int:
                    return fast(args[0], args[1])
        answer = with_options(self, args, kwargs)
        return plain(self, *args, **kwargs) if answer is LATER else answer

    return __call__


# -- ufuncs with options ---------------------------------------------------------------------------

cdef object with_options(object self, tuple args, dict kwargs):
    """A call of one of our ufuncs that its operator does not do; `LATER` for `plain`."""
    cdef Work work
    cdef double additions
    cdef Py_ssize_t place, given = PyTuple_GET_SIZE(args)
    function = self.numpy
    if given != <Py_ssize_t>function.nin or function.signature is not None:
        return LATER
    out = array = where = None
    for key, item in kwargs.items():
        if key == "out":
            if type(item) is tuple and PyTuple_GET_SIZE(item) == 1:
                item = (<tuple>item)[0]
            if type(item) is not ARRAY or not is_ours(item) or not is_writeable(item):
                return LATER
            if not is_on_host(item):
                return LATER
            out = item
        elif key == "where":
            where = item
        elif (key != "dtype" and key != "casting" and key != "order") or not is_option(item):
            return LATER
    nothing_yet(&work)
    if out is not None:
        array = written(out)
        if array is None:
            return LATER
        count(&work, <tuple>get(out, h_shape))
        device = device_of(out)
        work.device = <PyObject *>device
        work.used = True
    elif where is not None:
        return LATER
    is_alone = where is None
    found = []
    for place in range(given):
        item = <object>PyTuple_GET_ITEM(args, place)
        if type(item) is tuple or type(item) is list:
            return LATER
        if out is not None and type(item) is ARRAY and share_cell(item, out):
            is_alone = False
        item = operand(item, &work, 0)
        if item is LATER:
            return LATER
        found.append(item)
    if work.device == NULL:
        return LATER
    named = kwargs if kwargs else None
    if out is not None or where is not None:
        named = dict(kwargs)
    if where is not None:
        where = operand(where, &work, 0)
        if where is LATER:
            return LATER
        named["where"] = where
    additions = stretched(&work) * <double>self.weight
    if not is_affordable(additions) or (additions > few_additions and not work.used):
        return LATER
    if out is None:
        value = attempted(function, tuple(found), named)
        if value is LATER:
            return LATER
        return answered(value, (), (), None, None, <object>work.device)
    named["out"] = array
    # What was to be written over is needed once more where it counts.
    before = None if is_alone else array.copy()
    if attempted(function, tuple(found), named) is LATER:
        if before is not None:
            array[...] = before
        return LATER
    return out


def method_of_ufunc(plain, name, int operands, int cost):
    """``function.reduce(*args, **kwargs)`` and its like, before `plain`."""

    def method(self, *args, **kwargs):
        function = self.numpy
        if function.signature is None:
            answer = read(
                getattr(function, name), None, operands, MOST_AXES, cost, self.weight, False, args,
                kwargs,
            )
            if answer is not LATER:
                return answer
        return plain(self, *args, **kwargs)

    return method


def writing_method_of_ufunc(plain, name, int operands):
    """``function.at(array, *args)``, before `plain`."""

    def method(self, *args, **kwargs):
        answer = write(getattr(self.numpy, name), operands, args, kwargs)
        return plain(self, *args, **kwargs) if answer is LATER else answer

    return method
