"""Small arrays made by NumPy at the call: a part of `compiled.pyx`. The functions that make them are
in a table, `clfuse.eager.creation`."""

cdef enum:
    BY_SHAPE
    BY_INDICES
    BY_RANGE
    BY_COUNT
    BY_MATRIX
    BY_IDENTITY
    BY_TRIANGLE
    BY_LIKENESS
    BY_VALUES

cdef dict RULES = {
    "shape": BY_SHAPE, "indices": BY_INDICES, "range": BY_RANGE, "count": BY_COUNT,
    "matrix": BY_MATRIX, "identity": BY_IDENTITY, "triangle": BY_TRIANGLE, "like": BY_LIKENESS, "values": BY_VALUES,
}

cdef frozenset integers, source_names
cdef dict known_words
cdef object is_native, read_settings
cdef object get_device, np_array, np_asarray, np_asanyarray, np_empty, INT64
cdef object fp64_device = None
cdef object awaited_device = None  # one that was not settled when it was asked last
cdef object awaited_class = None  # and is not as long as it is of this class
cdef object scoped_device  # the context variable of `runtime.devices.selection`
cdef dict device_state  # and its globals
cdef double in_a_list, kept_nbytes
cdef Py_ssize_t deepest, usual_count


def connect_sources(names):
    """Take what is used here alone."""
    global integers, source_names, get_device, np_array, np_asarray, np_asanyarray, np_empty, INT64
    global deepest, usual_count, known_words, is_native, read_settings
    global scoped_device, device_state, in_a_list, kept_nbytes
    in_a_list, kept_nbytes = names["in_a_list"], names["kept_nbytes"]
    scoped_device, device_state = names["scoped_device"], names["device_state"]
    integers, source_names = names["integers"], names["source_names"]
    np_array, np_asarray, np_asanyarray = names["array"], names["asarray"], names["asanyarray"]
    np_empty, INT64 = names["empty"], names["int64"]
    get_device, read_settings = names["get_device"], names["read_settings"]
    known_words, is_native = names["known_words"], names["is_native"]
    deepest, usual_count = names["deepest"], names["usual_count"]


cdef inline bint is_plain_argument(object value):
    kind = type(value)
    if value is None or kind is int or kind is float or kind in scalars:
        return True
    if kind is not type and kind is not str and not isinstance(value, DTYPE):
        return isinstance(value, type) and is_native(value)
    known = known_words.get(value)
    if known is None:
        known = is_native(value)
    if known and kind is not type and kind is not str and value.kind in "biufc":
        return value.metadata is None  # equal to one without; StringDType has no memory for it
    return known


cdef inline double extent_of(object value):
    """A number of elements; -1 where it is none."""
    cdef int overflow = 0
    cdef long extent
    if type(value) is not int and type(value) not in integers:
        return -1
    extent = PyLong_AsLongAndOverflow(value, &overflow)
    return -1 if overflow or extent < 0 else extent


cdef double product_of(object shape):
    cdef double size = 1
    cdef double extent
    if type(shape) is not tuple and type(shape) is not list:
        return extent_of(shape)
    for item in shape:
        extent = extent_of(item)
        if extent < 0:
            return -1
        size *= extent
    return size


cdef double number_of(object value, bint *is_number):
    """A real number as one of C's."""
    kind = type(value)
    if kind is float or <PyObject *>kind == FLOAT64_SCALAR:
        return PyFloat_AS_DOUBLE(value)
    if kind is int or kind in integers:
        return extent_or_less(value, is_number)
    is_number[0] = False
    return 0


cdef double extent_or_less(object value, bint *is_number):
    cdef int overflow = 0
    cdef long number = PyLong_AsLongAndOverflow(value, &overflow)
    if overflow:
        is_number[0] = False
    return number


cdef double length_of_range(
    PyObject **args, Py_ssize_t given, PyObject *named_stop, PyObject *named_step
):
    cdef bint is_number = True
    cdef double start = 0, step = 1, stop, length
    if given == 1 and named_stop == NULL:
        stop = number_of(<object>args[0], &is_number)
    else:
        start = number_of(<object>args[0], &is_number)
        stop = number_of(<object>(named_stop if given == 1 else args[1]), &is_number)
        if given > 2:
            step = number_of(<object>args[2], &is_number)
        elif named_step != NULL:
            step = number_of(<object>named_step, &is_number)
    if not is_number or step == 0:
        return -1
    length = ceil((stop - start) / step)
    if length != length:
        return -1
    return length if length > 0 else 0


cdef PyObject *argument_named(str name, PyObject **args, Py_ssize_t given, PyObject *names):
    """What a call gives by name; NULL where it does not."""
    cdef Py_ssize_t place
    if names != NULL:
        for place in range(PyTuple_GET_SIZE(<object>names)):
            if <str>PyTuple_GET_ITEM(<object>names, place) == name:
                return args[given + place]
    return NULL


cdef double size_by(int rule, PyObject **args, Py_ssize_t given, PyObject *names):
    """How many elements a call asks for; -1 where that is not known."""
    cdef PyObject *shape
    cdef PyObject *columns = NULL
    cdef PyObject *step
    cdef PyObject *stop
    cdef double rows
    if rule == BY_SHAPE:
        shape = args[0] if given else argument_named("shape", args, given, names)
        return -1 if shape == NULL else product_of(<object>shape)
    if rule == BY_COUNT:
        if given < 2 and given + (argument_named("start", args, given, names) != NULL) + (
            argument_named("stop", args, given, names) != NULL
        ) < 2:
            return -1
        shape = args[2] if given > 2 else argument_named("num", args, given, names)
        return usual_count if shape == NULL else extent_of(<object>shape)
    if not given:
        return -1
    if rule == BY_RANGE:
        step = argument_named("step", args, given, names)
        stop = argument_named("stop", args, given, names)
        if step != NULL and given < 2 and stop == NULL:
            return -1
        return length_of_range(args, given, stop, step)
    if rule == BY_INDICES:
        if type(<object>args[0]) is not tuple:
            return -1
        return product_of(<object>args[0]) * PyTuple_GET_SIZE(<object>args[0])
    rows = extent_of(<object>args[0])
    if rows < 0:
        return -1
    if rule == BY_MATRIX:
        columns = args[1] if given > 1 else argument_named("M", args, given, names)
    elif rule == BY_TRIANGLE:
        columns = args[2] if given > 2 else argument_named("m", args, given, names)
    if columns == NULL or columns == <PyObject *>None:
        return rows * rows
    return -1 if extent_of(<object>columns) < 0 else rows * extent_of(<object>columns)


cdef object counted(object value, double most, double *total, Py_ssize_t depth):
    """Numbers, nested in lists, with NumPy's arrays for those of ours that lie on the host; how many
    these are is added to `total`. A list without arrays of ours as it is; `DEFER` where there is
    anything else in it, or more than `most`."""
    cdef Py_ssize_t place
    cdef Py_ssize_t length
    kind = type(value)
    if kind is float or kind is int or kind in scalars:
        total[0] += 1
        return value
    if kind is list or kind is tuple:
        length = len(value)
        if depth > deepest or (length > most and type(value[0]) is not ARRAY):
            return DEFER
        replaced = None
        for place in range(length):
            item = <object>(
                PyList_GET_ITEM(value, place) if kind is list else PyTuple_GET_ITEM(value, place)
            )
            inner = type(item)
            if inner is float or inner is int or <PyObject *>inner == FLOAT64_SCALAR:
                total[0] += 1
                continue
            found = counted(item, most, total, depth + 1)
            if found is DEFER or total[0] > most:
                return DEFER
            if found is not item:
                if replaced is None:
                    replaced = list(value)
                replaced[place] = found
        return value if replaced is None else replaced
    if kind is NUMPY:
        total[0] += <double>value.size
        return value if value.dtype in native else DEFER
    if kind is ARRAY and depth:
        found = here(value) if is_ours(value) else None
        if found is None:
            return DEFER
        total[0] += max(<double>array_size(<PyObject *>found) - in_a_list, 0)
        return found
    return DEFER


cdef object listed(object value):
    """A list of numbers, and of arrays on the host, as an array of NumPy's. To NumPy a list is an
    array that is made at the call: as an index, as what is assigned, as an operand."""
    found = numbers_of(value)
    if found is DEFER:
        return DEFER
    try:
        array = np_array(found)
    except (ValueError, TypeError, OverflowError):  # `plain` raises it
        return DEFER
    return array if array.dtype in native else DEFER


cdef object numbers_of(object value):
    """The list with NumPy's arrays in it. Not while `jit` traces: it may hold traced numbers."""
    cdef double size = 0
    kind = type(value)
    if (kind is not list and kind is not tuple) or tracers is None or tracers[0]:
        return DEFER
    if not settings:
        read_settings()
    found = counted(value, <double>settings["host_us"] * additions_a_us, &size, 0)
    if size > 0 or (len(value) and type(value[0]) is ARRAY):
        return found
    return DEFER


cdef object current_device():
    """The device that new arrays are for, as `runtime.devices.selection.current_device`; None where it has no double precision."""
    global fp64_device, awaited_device, awaited_class
    cdef PyObject *scoped = NULL
    PyContextVar_Get(scoped_device, NULL, &scoped)
    device = <object>scoped  # a new reference, which is `device`'s from here on
    Py_DECREF(device)
    if device is None:
        device = device_state["_chosen"]
        if device is None:
            device = (<dict>device_state["_defaults"]).get(settings.get("device"))
            if device is None:
                device = get_device()
    if device is fp64_device or (device is awaited_device and type(device) is awaited_class):
        return device
    if not device.fp64:
        return None
    if device.is_settled:
        fp64_device = device
    else:
        awaited_device, awaited_class = device, type(device)
    return device


cdef object made_here(
    object plain, object make, int rule, PyObject **args, Py_ssize_t given, PyObject *names
):
    """``make(*args, **named)`` as an array of ours, or `DEFER`."""
    cdef double size = 0
    cdef Py_ssize_t place, count_of_names = 0
    cdef PyObject *first = NULL
    cdef PyObject *shape
    cdef PyObject *moved[MOST_ARGUMENTS]
    cdef PyObject *array
    cdef PyObject *dtype
    if tracers is None or tracers[0]:  # None: clfuse is being imported
        return DEFER
    if not settings:
        read_settings()  # the first array of a program
    if names != NULL:
        count_of_names = PyTuple_GET_SIZE(<object>names)
        for place in range(count_of_names):
            name = <object>PyTuple_GET_ITEM(<object>names, place)
            value = <object>args[given + place]
            if name not in source_names or not is_plain_argument(value):
                return DEFER
            if value is False and name == "copy":
                return DEFER
    for place in range(1, given):
        if not is_plain_argument(<object>args[place]):
            return DEFER
    own = None
    if rule < BY_LIKENESS:
        if given and type(<object>args[0]) is not tuple and type(<object>args[0]) is not list and (
            not is_plain_argument(<object>args[0])
        ):
            return DEFER
        size = size_by(rule, args, given, names)
    elif not given:
        return DEFER
    else:
        own = <object>args[0]
        first = args[0]
        if type(own) is ARRAY:
            if rule == BY_VALUES and given + count_of_names > 1:
                return DEFER
            if make is np_asarray or make is np_asanyarray:
                return own
            found = here(own) if is_ours(own) else None
            if found is None or (rule == BY_VALUES and make is not np_array):
                return DEFER
            own = found
            size = array_size(<PyObject *>found)
            if rule == BY_VALUES and size > few_additions:
                return DEFER
        else:
            own = counted(own, most_additions, &size, 0)
            if own is DEFER:
                return DEFER
        shape = argument_named("shape", args, given, names)
        if shape != NULL and <object>shape is not None:
            size = product_of(<object>shape)
    if size < 0 or not is_affordable(size):
        return DEFER
    device = current_device()
    if device is None:
        return DEFER
    if first != NULL and <PyObject *>own != first:  # whoever calls keeps what `args` holds
        if given + count_of_names > MOST_ARGUMENTS:
            return DEFER
        for place in range(1, given + count_of_names):
            moved[place] = args[place]
        moved[0] = <PyObject *>own
        args = moved
    value = PyObject_Vectorcall(make, args, given, names)
    if type(value) is tuple:
        return made_each(<tuple>value, device)
    if type(value) is not NUMPY:
        return DEFER
    array = <PyObject *>value
    if native_dtype(array) == NULL:
        return DEFER
    if value is own or array_base(array) != NULL:
        value = np_array(value)
        array = <PyObject *>value
    dtype = native_dtype(array)
    size = array_size(array)
    if size * nbytes_of((<PyArray_Descr *>dtype).type_num) > kept_nbytes:
        return DEFER if plain is None or rule != BY_VALUES else plain(value)
    if array_flags(array) & IN_C_ORDER:
        made_array = new_alone(value, shape_of(array), <object>dtype, device)
    else:
        made_array = made(value, None, device)
    if size > few_additions and rule != BY_SHAPE and rule != BY_LIKENESS:
        note_here(made_array, AS_A_WHOLE)
    return made_array


cdef object made_each(tuple values, object device):
    """Arrays of indices as ours, or `DEFER`. One that is there twice is one."""
    cdef Py_ssize_t place
    found = []
    for place in range(PyTuple_GET_SIZE(values)):
        value = values[place]
        if type(value) is not NUMPY or native_dtype(<PyObject *>value) == NULL:
            return DEFER
        if array_size(<PyObject *>value) * <double>value.itemsize > kept_nbytes:
            return DEFER
        if place and value is values[place - 1]:
            found.append(found[place - 1])
        else:
            found.append(made(value if value.base is None else value.copy(), None, device))
    return tuple(found)


cdef object call_source(object self, PyObject **args, size_t given, PyObject *names):
    cdef Source ours = <Source>self
    array = made_here(
        ours.plain, ours.apply, ours.cost, args, PyVectorcall_NARGS(given), names
    )
    return asked_plain(ours, args, PyVectorcall_NARGS(given), names) if array is DEFER else array


cdef class Source(Front):
    """A front that is a method of a class that has it as an attribute only where NumPy's function is
    one: not what is written in C."""

    cdef readonly bint is_method

    def __get__(self, owner, kind):
        return self if owner is None or not self.is_method else PyMethod_New(self, owner)


clfuse_take_vectorcalls(<PyTypeObject *>Source, slot_offset, False)


def source(plain, make, name, bint is_method):
    """``make(...)`` of NumPy's, which makes a new array, before `plain`, which records it."""
    found = <Source>Source.__new__(Source)
    found.plain, found.slot, found.is_method = plain, <vectorcallfunc>call_source, is_method
    found.apply, found.cost = make, RULES[name]
    return found
