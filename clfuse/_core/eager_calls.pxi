"""Calls of functions, methods and ufuncs that NumPy answers at once, for arrays on the host: a part
of `compiled.pyx`. The table of them is `clfuse.eager.table`."""

cdef enum:
    MOST_AXES = 64  # NumPy's NPY_MAXDIMS

cdef Py_ssize_t t_function, t_arguments
cdef Py_ssize_t n_measured, n_tally
cdef object Step, DTYPE, QUIET, plain_seen
cdef frozenset plain_options, refused_names
cdef Py_ssize_t deepest_list, longest_list
cdef int ELEMENTS, STRETCHED, PAIRS, TIMES, PRODUCT, CUBED, SQUARED, COUNTED, TAKEN, LABELLED
cdef int COMOMENTS, DIAGONAL
cdef double mask_additions, gather_additions, at_once_share
cdef object fits, context, raising, warning_of, name_in
cdef object bring, bring_factors, plain_owned
cdef double product_share
cdef object looked_at_nbytes


def connect_calls(names):
    """As `connect`, for operations at the call."""
    global fits, context, raising, warning_of, name_in, bring, bring_factors, plain_owned
    global looked_at_nbytes, product_share
    global t_function, t_arguments, n_measured, n_tally, Step, DTYPE, QUIET, plain_options
    global plain_seen
    global refused_names, deepest_list, longest_list
    global ELEMENTS, STRETCHED, PAIRS, TIMES, PRODUCT, CUBED, SQUARED, COUNTED, TAKEN, LABELLED
    global COMOMENTS, DIAGONAL
    global mask_additions, gather_additions, at_once_share
    Step, plain_seen = names["Step"], names["seen"]
    t_function, t_arguments = _offset(Step, "function"), _offset(Step, "arguments")
    n_measured, n_tally = _offset(Node, "measured"), _offset(Node, "tally")
    DTYPE, QUIET = names["DTYPE"], names["QUIET"]
    plain_options, refused_names = names["options"], names["refused"]
    deepest_list, longest_list = names["lists"]
    (
        ELEMENTS, STRETCHED, PAIRS, TIMES, PRODUCT, CUBED, SQUARED, COUNTED, TAKEN, LABELLED,
        COMOMENTS, DIAGONAL,
    ) = names["costs"]
    mask_additions, gather_additions = names["mask_additions"], names["gather_additions"]
    at_once_share, fits = names["at_once_share"], names["fits"]
    context, raising = names["context"], names["raising"]
    warning_of, name_in = names["warning_of"], names["name_in"]
    bring, bring_factors = names["bring"], names["bring_factors"]
    looked_at_nbytes, plain_owned = names["looked_at_nbytes"], names["owned"]
    product_share = names["product_share"]


# -- what a call costs -----------------------------------------------------------------------------

cdef struct Work:
    PyObject *device  # of the arrays that are ours; no reference
    int use  # what was done with them, in `runtime.memory.buffers`; the most
    double elements  # of all operands together
    double pairs  # the product of their sizes
    double longest  # of their last two extents
    double first, second, columns  # sizes of the first two, and the last extent of the second
    int operands
    int rank
    Py_ssize_t extents[MOST_AXES]  # of all operands stretched to each other, the last one first


cdef inline void nothing_yet(Work *work) noexcept:
    work.device = NULL
    work.use = 0  # as a whole
    work.elements = work.longest = work.first = work.second = 0
    work.pairs = work.columns = 1
    work.operands = work.rank = 0


cdef void count(Work *work, tuple shape) except *:
    cdef Py_ssize_t extent, place, rank = PyTuple_GET_SIZE(shape)
    cdef double size = 1
    if rank > MOST_AXES:
        rank = MOST_AXES
    for place in range(rank):
        extent = <object>PyTuple_GET_ITEM(shape, rank - 1 - place)
        size *= extent
        if place == work.rank:
            work.extents[place] = extent
            work.rank += 1
        elif extent > work.extents[place]:
            work.extents[place] = extent
        if place < 2 and extent > work.longest:
            work.longest = extent
    work.elements += size
    if size > 1:
        work.pairs *= size
    work.operands += 1
    if work.operands == 1:
        work.first = size
    elif work.operands == 2:
        work.second = size
        if rank > 1:
            work.columns = <Py_ssize_t>shape[rank - 1]


cdef double stretched(Work *work) noexcept:
    cdef double size = 1
    cdef int place
    for place in range(work.rank):
        size *= work.extents[place]
    return size


cdef enum:
    LOOPS_OF_A_FOLD = 3  # what one of a fold takes, in those of an operation by elements
    SHORT_ROW = 32  # as `policy.cost.SHORT_ROW`


cdef void note_loops(Work *work, bint by_axes) noexcept:
    """Set `inner_loops` for what reads arrays, along axes or as a whole."""
    global inner_loops
    inner_loops = 0
    if by_axes and work.rank > 1 and 0 < work.extents[0] < SHORT_ROW:
        inner_loops = LOOPS_OF_A_FOLD * work.elements / work.extents[0]


cdef enum:
    TAKEN_SHARE = 16  # of the pairs of what is taken from and of what is taken


cdef double cost_of(Work *work, int cost) noexcept:
    """As `eager.table.Cost`."""
    if cost == ELEMENTS or cost == COUNTED:
        return work.elements
    if cost == SQUARED:
        return work.elements * work.elements
    if cost == STRETCHED:
        return stretched(work)
    if cost == PRODUCT:
        return max(work.first * work.columns, work.second)
    if cost == CUBED:
        return work.elements * work.longest
    if cost == COMOMENTS:
        return work.elements * (work.operands if work.rank < 2 else work.extents[1])
    if cost == DIAGONAL:
        return work.elements / max(work.longest, 1)
    if cost == TAKEN:
        return work.elements if work.rank < 2 else work.pairs / TAKEN_SHARE
    return work.pairs


# -- arguments -------------------------------------------------------------------------------------

cdef object operand(object value, Work *work, Py_ssize_t depth):
    """What NumPy is given in place of an argument; `DEFER` where that is not on the host."""
    cdef Py_ssize_t place, length
    cdef double before
    kind = type(value)
    if kind is ARRAY:
        array = here(value) if is_ours(value) else None
        if array is None:
            return DEFER
        device = device_of(value)
        if work.device == NULL:
            work.device = <PyObject *>device
        elif work.device != <PyObject *>device:
            return DEFER
        work.use = max(work.use, <int>use_here(value))
        count(work, <tuple>get(value, h_shape))
        return array
    if kind in plain_options:
        return value
    if kind is NUMPY:
        if native_dtype(<PyObject *>value) == NULL:
            return DEFER
        count(work, shape_of(<PyObject *>value))
        return value
    if kind is tuple or kind is list:
        length = len(value)
        if depth == deepest_list or (length > longest_list and type(value[0]) is not ARRAY):
            return DEFER
        before = work.elements
        made = None
        for place in range(length):
            item = value[place]
            given = operand(item, work, depth + 1)
            if given is DEFER:
                return DEFER
            if given is not item:
                if made is None:
                    made = list(value)
                (<list>made)[place] = given
        if length > longest_list:  # to record each of them takes longer
            work.elements = max(before, work.elements - in_a_list * length)
        if made is None:
            count(work, (length,))
            return value
        return tuple(<list>made) if kind is tuple else made
    if isinstance(value, DTYPE):
        return value
    number = number_on_host(value)
    if number is not DEFER:
        count(work, ())
    return number


cdef bint is_option(object value) except -1:
    """Whether it is what NumPy may have as it is: numbers, text, dtypes, or several of them."""
    kind = type(value)
    if kind in plain_options:
        return True
    if kind is tuple or kind is list:
        if len(value) > longest_list:
            return False
        for item in value:
            if type(item) not in plain_options:
                return False
        return True
    return isinstance(value, DTYPE)


# -- results ---------------------------------------------------------------------------------------

cdef bint sees(object value, object operand) except -1:
    """Whether an array is an operand, or a view of its memory."""
    if type(operand) is NUMPY:
        if value is operand:
            return True
        base = value.base
        return base is operand or (base is not None and base is operand.base)
    if type(operand) is tuple or type(operand) is list:
        for item in operand:
            if type(item) is NUMPY and sees(value, item):
                return True
    return False


cdef object answered(object value, tuple held, PyObject **args, object device):
    """What NumPy has made of what is `held` in the place of the arguments, as ours; `DEFER` where it
    is a view of those."""
    cdef Py_ssize_t place
    kind = type(value)
    if kind is NUMPY:
        for place in range(PyTuple_GET_SIZE(held)):
            if PyTuple_GET_ITEM(held, place) == <PyObject *>value:
                found = <object>args[place]
                return found if type(found) is ARRAY else DEFER
        if array_base(<PyObject *>value) == NULL:
            return made(value, None, device)
        for item in held:
            if sees(value, item):
                return DEFER
        return made(value.copy("K"), None, device)
    if isinstance(value, tuple):
        items = []
        for item in value:
            item = answered(item, held, args, device)
            if item is DEFER:
                return DEFER
            items.append(item)
        return tuple(items) if kind is tuple else kind(*items)
    return plain_made(value, device) if standard[0] else value


# -- functions and methods that read ---------------------------------------------------------------

cdef double times(object value) except -1:
    """How many times an argument of `Cost.TIMES` lets something be there; 0 where that is not
    known."""
    cdef double count = 1
    if type(value) is int:
        return max(1, abs(value))
    if type(value) is tuple:
        for extent in <tuple>value:
            if type(extent) is not int:
                return 0
            count *= max(1, abs(extent))
        return count
    return value is None


cdef double labelled(tuple given) except -1:
    """The product of the extents of all labels of ``einsum(subscripts, *operands)``; 0 where that is
    not known."""
    cdef double extents[128]
    cdef double size = 1
    cdef Py_ssize_t place, axis = 0, operand = 1, count = PyTuple_GET_SIZE(given)
    cdef Py_UCS4 label
    subscripts = given[0]
    if type(subscripts) is not str or count < 2:
        return 0
    for place in range(128):
        extents[place] = 1
    shape = given[1].shape if type(given[1]) is NUMPY else None
    for label in <str>subscripts:
        if label == 32:  # a space
            continue
        if label == 45:  # "->"
            break
        if label == 44:  # ","
            operand += 1
            axis = 0
            if operand == count:
                return 0
            shape = given[operand].shape if type(given[operand]) is NUMPY else None
        elif shape is None or label >= 128 or label == 46 or axis >= PyTuple_GET_SIZE(shape):
            return 0
        else:
            extents[label] = max(extents[label], <double><Py_ssize_t>shape[axis])
            axis += 1
    for place in range(128):
        size *= extents[place]
    return size


cdef bint is_numpys_own(object value) except -1:
    """Whether it is an array of NumPy's own, and nobody traces."""
    return type(value) is NUMPY and tracers is not None and not tracers[0]


cdef bint is_given_here(PyObject **args, Py_ssize_t operands) except -1:
    """Whether one of the operands is an array of NumPy's own, a number or a list of numbers, from
    which NumPy makes an array at the call; not while `jit` traces."""
    cdef Py_ssize_t place
    if tracers is None or tracers[0]:
        return False
    for place in range(operands):
        item = <object>args[place]
        kind = type(item)
        if kind is NUMPY or kind is float or kind is int or kind in scalars:
            return True
        if (kind is list or kind is tuple) and (not len(item) or numbers_of(item) is not DEFER):
            return True
    return False


cdef object composed(object apply, tuple held, tuple names, bint is_loop):
    """A call that may be composed of others: `DEFER` where NumPy would warn under the name of one
    of those, unless it `is_loop`."""
    if is_loop:
        return called(apply, held, names)
    # Not where NumPy would warn at the user's line, either: that may be one of its own, in Python.
    if mode[0] is QUIET:
        return asked_with(apply, held, names)
    if mode[0] is not LOUD:
        return DEFER
    value = attempted(NULL, apply, None, None, held, names)
    return DEFER if type(value) is FloatingPointError else value


cdef object read(
    object apply, object method, int operands, int most, int cost, double weight, bint as_is,
    bint is_loop, frozenset refused, PyObject **args, Py_ssize_t given, tuple names,
):
    """``apply(*args, **named)`` or `DEFER`, by its row of the table; `names` is None where none is
    given by name. What writes to an `out` takes its turn among threads."""
    cdef Py_ssize_t place, to = -1
    if names is not None:
        for place in range(PyTuple_GET_SIZE(names)):
            if <object>PyTuple_GET_ITEM(names, place) == "out":
                to = given + place
    if to < 0 or type(<object>args[to]) is not ARRAY:
        to = -1
    elif clfuse_has_company():
        with turn_to_write:
            return read_to(
                apply, method, operands, most, cost, weight, as_is, is_loop, refused, args, given,
                names, to,
            )
    return read_to(
        apply, method, operands, most, cost, weight, as_is, is_loop, refused, args, given, names, to
    )


cdef object read_to(
    object apply, object method, int operands, int most, int cost, double weight, bint as_is,
    bint is_loop, frozenset refused, PyObject **args, Py_ssize_t given, tuple names, Py_ssize_t to,
):
    """As `read`; `to` is the place of an `out` of ours among all arguments, or -1."""
    cdef Work work
    cdef Py_ssize_t place, named = 0 if names is None else PyTuple_GET_SIZE(names)
    cdef double many = 1, asked
    if given == 0 or given > most or (named and cost == TIMES and given < operands):
        return DEFER
    nothing_yet(&work)
    target = None
    if to >= 0:
        item = <object>args[to]
        if not is_ours(item) or not is_writeable(item) or not is_on_host(item):
            return DEFER
        target = written(item)
        if target is None:
            return DEFER
        device = device_of(item)
        work.device = <PyObject *>device
        work.use = max(<int>IN_PARTS, <int>use_here(item))
    held = PyTuple_New(given + named)
    for place in range(given + named):
        item = <object>args[place]
        if place == to:
            Py_INCREF(target)
            PyTuple_SET_ITEM(held, place, <PyObject *>target)
            continue
        if place >= given and <object>PyTuple_GET_ITEM(names, place - given) in refused and not (
            item is None and <object>PyTuple_GET_ITEM(names, place - given) == "out"
        ):
            return DEFER
        if place < operands or place >= given:
            if cost == TIMES and 0 < place < given:
                many *= times(item)
                if many == 0:
                    return DEFER
            elif cost == COUNTED and place and (type(item) is int or type(item) is tuple):
                asked = times(item)
                if asked == 0:
                    return DEFER
                work.elements += asked
            item = operand(item, &work, 0)
            if item is DEFER:
                return DEFER
        elif not is_option(item):
            return DEFER
        Py_INCREF(item)
        PyTuple_SET_ITEM(held, place, <PyObject *>item)
    if work.device == NULL and is_given_here(args, min(operands, given)):
        own = current_device()
        work.device = NULL if own is None else <PyObject *>own
    if cost == LABELLED:
        asked = labelled(held[:given])
        if asked > 0:
            work.pairs = asked
    note_loops(&work, given > operands or named)
    if work.device == NULL or not is_read_now(
        BY_ROWS if work.use >= <int>BY_ROWS else IN_PARTS, cost_of(&work, cost) * many * weight
    ):
        return DEFER
    is_array = method is not None and type(<object>PyTuple_GET_ITEM(held, 0)) is NUMPY
    if to >= 0:
        return put_to(
            method if is_array else apply, is_array, held, names, args, target,
            <object>work.device, is_needed(args, given + named, to, names),
        )
    try:
        value = composed(method if is_array else apply, held, names, is_loop)
    except TypeError:
        if not is_array:
            raise
        return DEFER  # the method's error names the method: `_sum()`
    if value is DEFER or as_is:
        return value
    return answered(value, held, args, <object>work.device)


cdef bint is_needed(PyObject **args, Py_ssize_t count, Py_ssize_t to, tuple names) except -1:
    """Whether what the call of `read_to` writes over may be needed once more: it may be an operand,
    or stays in part."""
    cdef Py_ssize_t place
    if "where" in names:
        return True
    for place in range(count):
        item = <object>args[place]
        kind = type(item)
        if place == to or kind in plain_options:
            continue
        if kind is not ARRAY or not is_ours(item) or share_cell(item, <object>args[to]):
            return True
    return False


cdef object put_to(
    object apply, bint is_method, tuple held, tuple names, PyObject **args, object target,
    object device, bint is_kept,
):
    """The call of `read_to`, which writes to `target`: where it `is_kept`, `DEFER` leaves that as it
    was; else whoever does it then writes over all of it."""
    if mode[0] is not QUIET and mode[0] is not LOUD:
        return DEFER
    before = target.copy() if is_kept else None
    try:
        if mode[0] is QUIET:
            value = asked_with(apply, held, names)
        else:
            value = attempted(NULL, apply, None, None, held, names)
        if type(value) is not FloatingPointError:
            value = answered(value, held, args, device)
            if value is not DEFER:
                return value
    except TypeError:
        if not is_method:
            raise
    if before is not None:
        target[...] = before
    return DEFER


cdef object call_reader(object self, PyObject **args, size_t given, PyObject *names):
    cdef Front ours = <Front>self
    answer = read(
        ours.apply, ours.method, ours.operands, ours.most, ours.cost, ours.weight, ours.as_is,
        ours.is_loop, ours.names, args, PyVectorcall_NARGS(given),
        None if names == NULL else <tuple>names,
    )
    return asked_plain(ours, args, PyVectorcall_NARGS(given), names) if answer is DEFER else answer


def reader(
    plain, apply, method, int operands, int most, int cost, double weight, bint as_is, bint is_loop,
    frozenset refused,
):
    """``apply(*args, **kwargs)``, which reads and gives new arrays, before `plain`.

    `method` is what NumPy calls where the first argument is an array, or None; `refused` are names
    of arguments that it does not take here.
    """
    found = front(plain, <vectorcallfunc>call_reader)
    found.apply, found.method, found.operands, found.most = apply, method, operands, most
    found.cost, found.weight, found.as_is, found.is_loop = cost, weight, as_is, is_loop
    found.names = refused
    return found


cdef object call_itself(object self, PyObject **args, size_t given, PyObject *names):
    if names == NULL and PyVectorcall_NARGS(given) == 1 and type(<object>args[0]) is ARRAY:
        return <object>args[0]
    return asked_plain(<Front>self, args, PyVectorcall_NARGS(given), names)


def itself(plain):
    """``function(array)``, which gives an array of ours back, before `plain`."""
    return front(plain, <vectorcallfunc>call_itself)


cdef object call_listed(object self, PyObject **args, size_t given, PyObject *names):
    cdef Front ours = <Front>self
    cdef Py_ssize_t count = PyVectorcall_NARGS(given)
    if count and type(<object>args[0]) is not ARRAY and (
        ours.numbers or type(<object>args[0]) is list or type(<object>args[0]) is NUMPY
    ):
        array = array_of_numbers(<object>args[0], ours.scalars)
        if array is not DEFER:
            return with_first(ours, array, args, count, names)
    return asked_plain(ours, args, count, names)


cdef object with_first(
    Front self, object first, PyObject **args, Py_ssize_t given, PyObject *names
):
    """The plain function of other arguments than these, of which the first one is `first`."""
    cdef Py_ssize_t place
    cdef Py_ssize_t count = given + (0 if names == NULL else PyTuple_GET_SIZE(<object>names))
    held = PyTuple_New(count)
    for place in range(count):
        item = <object>args[place] if place else first
        Py_INCREF(item)
        PyTuple_SET_ITEM(held, place, <PyObject *>item)
    return asked_plain(self, items_of(held), given, names)


def of_listed(plain, bint numbers, frozenset scalars):
    """`plain` of an array of ours on the host, where its first argument is a list of numbers, an
    array of NumPy's, or also (`numbers`) a number, or one of NumPy's of these classes."""
    found = front(plain, <vectorcallfunc>call_listed)
    found.numbers, found.scalars = numbers, scalars
    return found


cdef object array_of_numbers(object value, frozenset scalars):
    """A number of Python's, or of one of these classes of NumPy's, or a list of numbers, or an array
    of NumPy's, as an array of ours on the host, or `DEFER`. What NumPy does with scalars of its own
    often gives scalars."""
    cdef PyObject *first[1]
    kind = type(value)
    if kind is NUMPY:
        first[0] = <PyObject *>value
        return made_here(None, np_asarray, BY_VALUES, first, 1, NULL)
    if kind is list or kind is tuple:
        found = listed(value)
    elif kind is float or kind is int or kind in scalars:
        if tracers is None or tracers[0]:
            return DEFER
        found = np_array(value)
    else:
        return DEFER
    if found is DEFER or native_dtype(<PyObject *>found) == NULL:
        return DEFER
    device = current_device()
    if device is None or array_size(<PyObject *>found) * <double>found.itemsize > kept_nbytes:
        return DEFER
    if not is_affordable(array_size(<PyObject *>found)):
        return DEFER
    return made(found, None, device)


cdef object call_of_one(object self, PyObject **args, size_t given, PyObject *names):
    cdef Front ours = <Front>self
    if names == NULL and PyVectorcall_NARGS(given) == 1:
        return PyObject_Vectorcall(ours.apply, args, 1, NULL)
    return asked_plain(ours, args, PyVectorcall_NARGS(given), names)


def of_one(plain, before):
    """`before` in place of `plain` where there is one argument, and no name."""
    found = front(plain, <vectorcallfunc>call_of_one)
    found.apply = before
    return found


cdef object call_of_arrays(object self, PyObject **args, size_t given, PyObject *names):
    cdef Front ours = <Front>self
    if PyVectorcall_NARGS(given):
        first = <object>args[0]
        if (type(first) is list or type(first) is tuple) and len(first):
            first = first[0]
        if type(first) is ARRAY:
            made = PyObject_Vectorcall(ours.apply, args, PyVectorcall_NARGS(given), names)
            # What NumPy was given for arrays of ours in a list may be elements now.
            if first is <object>args[0] or type(made) is not NUMPY or not made.dtype.hasobject:
                return made
    return asked_plain(ours, args, PyVectorcall_NARGS(given), names)


def of_arrays(plain, before):
    """`before` in place of `plain` where the first argument is an array, or starts with one."""
    found = front(plain, <vectorcallfunc>call_of_arrays)
    found.apply = before
    return found
