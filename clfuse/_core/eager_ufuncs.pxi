"""Calls of ufuncs on arrays on the host: a part of `compiled.pyx`."""

cdef class Quick:
    """What a call of a ufunc of ours asks of it, in one object: its slot `quick`."""

    cdef readonly object function, fast
    cdef dict loops
    cdef double weight
    cdef int operands, results
    cdef UfuncLoops own_loops
    cdef bint is_elementwise, of_one_dtype

    def __init__(self, ours):
        function = self.function = ours.numpy
        self.fast, self.loops = ours.fast, ours.loops
        self.weight = ours.weight
        self.operands, self.results = function.nin, function.nout
        self.is_elementwise = function.signature is None
        self.own_loops = UfuncLoops(function)
        # Of ldexp the operands are of different dtypes.
        self.of_one_dtype = function.nin == 2 and all(
            [types[0] == types[1] for types in function.types]
        )

cdef callfunc usual_call  # what Python had put there


cdef inline bint is_brought(object value):
    """Whether it is a list, or an array of NumPy's own: what a call brings along that is not ours.
    """
    return type(value) is list or type(value) is NUMPY


cdef object answer_of_ufunc(object self, tuple args, PyObject *kwargs):
    """``self(*args, **kwargs)``, of one of our ufuncs, or `DEFER`."""
    cdef Py_ssize_t given = PyTuple_GET_SIZE(args)
    cdef Quick quick = <Quick>self.quick
    if quick is None:
        return DEFER
    if given == quick.operands + 1 and quick.results == 1 and quick.is_elementwise and (
        kwargs == NULL or not PyDict_Size(<object>kwargs)
    ):
        # The last one is where the result goes, of which NumPy warns for two ufuncs.
        if self.__name__ == "maximum" or self.__name__ == "minimum":
            return DEFER
        out = <object>PyTuple_GET_ITEM(args, given - 1)
        return written_to(quick, args[:-1], {"out": out}) if type(out) is ARRAY else DEFER
    if given != quick.operands or not 0 < given < 3:
        return DEFER
    if not quick.is_elementwise:
        if quick.fast is None:
            return DEFER
        if kwargs != NULL and PyDict_Size(<object>kwargs):
            return product_with(quick.function, args, <dict>kwargs)
        return product_at_once(args[0], args[1]) if given == 2 else DEFER
    if kwargs != NULL and PyDict_Size(<object>kwargs):
        if "out" in <dict>kwargs:
            return written_to(quick, args, <dict>kwargs)
        return with_options(quick, args, <dict>kwargs)
    one = <object>PyTuple_GET_ITEM(args, 0)
    if given == 1:
        if type(one) is not ARRAY:
            if type(one) in scalars:
                return called(quick.function, args, None)
            if type(one) in lazy_scalars:
                return of_known_numbers(quick.function, one, None)
            return with_options(quick, args, {}) if is_brought(one) else DEFER
        if quick.results != 1:
            return with_options(quick, args, {})
        if is_ours(one) and is_on_host(one):
            answer = at_once_alone(NULL, quick.function, quick.weight, quick.own_loops, one, False)
            if answer is not DEFER or not is_for_kernels:
                return answer
        return DEFER if quick.fast is None else quick.fast(one)
    if quick.results != 1:
        return with_options(quick, args, {})
    two = <object>PyTuple_GET_ITEM(args, 1)
    if type(one) is ARRAY:
        if is_ours(one) and is_on_host(one):
            answer = at_once(
                NULL, quick.function, quick.weight, quick.own_loops, quick.of_one_dtype, one, two, False,
                0, NOTHING_SPARE
            )
            if answer is not DEFER or not is_for_kernels:
                return answer
        kind = type(two)
        if quick.fast is not None and (kind is ARRAY or kind is float or kind is int):
            return quick.fast(one, two)
        return DEFER
    if type(two) is ARRAY:
        if is_ours(two) and is_on_host(two):
            answer = at_once(
                NULL, quick.function, quick.weight, quick.own_loops, quick.of_one_dtype, two, one, True,
                0, NOTHING_SPARE
            )
            if answer is not DEFER or not is_for_kernels:
                return answer
        if quick.fast is not None and (type(one) is float or type(one) is int) and is_ours(two):
            return recorded_after(quick.loops, one, two)
        return DEFER
    if type(one) in scalars and type(two) in scalars:
        return called(quick.function, args, None)
    if type(one) in lazy_scalars or type(two) in lazy_scalars:
        return of_known_numbers(quick.function, one, two)
    return with_options(quick, args, {}) if is_brought(one) or is_brought(two) else DEFER


cdef object product_with(object function, tuple args, dict kwargs):
    """``matmul(one, two, out=array)``, or `DEFER`: of other options as well."""
    if PyDict_Size(kwargs) != 1 or "out" not in kwargs or PyTuple_GET_SIZE(args) != 2:
        return DEFER
    held = (*args, kwargs["out"])
    return read(
        function, None, 2, 2, PRODUCT, 1 / product_share, False, True, refused_names,
        items_of(held), 2, OUT,
    )


cdef object slot_call(object self, object args, PyObject *kwargs):
    answer = answer_of_ufunc(self, <tuple>args, kwargs)
    return usual_call(self, args, kwargs) if answer is DEFER else answer


def put_into_slot_of_calls(*kinds):
    """Let these classes of ufuncs, written in Python, have the function above for their calls."""
    global usual_call
    for kind in kinds:
        usual_call = (<Class *><PyObject *>kind).tp_call  # of all of them the same
        (<Class *><PyObject *>kind).tp_call = slot_call
        PyType_Modified(<PyTypeObject *>kind)


# -- ufuncs with options ---------------------------------------------------------------------------

cdef object written_to(Quick quick, tuple args, dict kwargs):
    """`with_options`, one thread after the other."""
    if not clfuse_has_company():
        return with_options(quick, args, kwargs)
    with turn_to_write:
        return with_options(quick, args, kwargs)


cdef object with_options(Quick quick, tuple args, dict kwargs):
    """A call of one of our ufuncs that its operator does not do; `DEFER` for `plain`."""
    cdef Work work
    cdef double additions
    cdef Py_ssize_t place, given = PyTuple_GET_SIZE(args)
    function = quick.function
    out = array = where = None
    for key, item in kwargs.items():
        if key == "out":
            if type(item) is tuple and PyTuple_GET_SIZE(item) == 1 and quick.results == 1:
                item = (<tuple>item)[0]
            if type(item) is not ARRAY or not is_ours(item) or not is_writeable(item):
                return DEFER
            if not is_on_host(item):
                return DEFER
            out = item
        elif key == "where":
            where = item
        elif (key != "dtype" and key != "casting" and key != "order") or not is_option(item):
            return DEFER
    nothing_yet(&work)
    if out is not None:
        array = written(out)
        if array is None:
            return DEFER
        count(&work, <tuple>get(out, h_shape))
        device = device_of(out)
        work.device = <PyObject *>device
        work.use = max(<int>IN_PARTS, <int>use_here(out))
    elif where is not None:
        return DEFER
    is_alone = where is None
    is_listed = False
    found = []
    for place in range(given):
        item = <object>PyTuple_GET_ITEM(args, place)
        if type(item) is tuple or type(item) is list:
            item = listed(item)
            if item is DEFER:
                return DEFER
            is_listed = True
        elif type(item) is NUMPY:
            if not is_numpys_own(item):
                return DEFER
            is_listed = True
        if out is not None and type(item) is ARRAY and share_cell(item, out):
            is_alone = False
        item = operand(item, &work, 0)
        if item is DEFER:
            return DEFER
        found.append(item)
    if work.device == NULL:
        own = current_device() if is_listed else None
        if own is None:
            return DEFER
        work.device = <PyObject *>own
        work.use = IN_PARTS
    named = kwargs if kwargs else None
    if out is not None or where is not None:
        named = dict(kwargs)
    if where is not None:
        where = operand(where, &work, 0)
        if where is DEFER:
            return DEFER
        named["where"] = where
    additions = stretched(&work) * quick.weight
    if not is_for_now(IN_PARTS if additions <= few_additions else uses[work.use], additions):
        return DEFER
    if out is None:
        value = called(function, with_names(found, named), tuple(named) if named else None)
        return answered(value, (), NULL, <object>work.device)
    named["out"] = array
    held = with_names(found, named)
    names = tuple(named)
    if mode[0] is not LOUD or is_users_line():
        asked_with(function, held, names)
        return out
    # What was to be written over is needed once more where it counts.
    before = None if is_alone else array.copy()
    value = attempted(NULL, function, None, None, held, names)
    if type(value) is FloatingPointError:
        if before is not None:
            array[...] = before
        with warning_of(name_in(value)):
            asked_with(function, held, names)
    return out


def method_of_ufunc(plain, name, int operands, int cost):
    """``function.reduce(*args, **kwargs)`` and its like, before `plain`."""

    def method(self, *args, **kwargs):
        function = self.numpy
        if function.signature is None:
            held = (*args, *kwargs.values())
            answer = read(
                getattr(function, name), None, operands, MOST_AXES, cost, self.weight, False, False,
                refused_names, items_of(held), len(args), tuple(kwargs) if kwargs else None,
            )
            if answer is not DEFER:
                return answer
        return plain(self, *args, **kwargs)

    return method


def writing_method_of_ufunc(plain, name, int operands):
    """``function.at(array, *args)``, before `plain`."""

    def method(self, *args, **kwargs):
        with turn_to_write:
            answer = write(getattr(self.numpy, name), operands, False, args, kwargs)
        return plain(self, *args, **kwargs) if answer is DEFER else answer

    return method
