"""Views of arrays on the host by methods and functions, what is written to them, arrays as indices
and iteration: a part of `compiled.pyx`."""

# -- views -----------------------------------------------------------------------------------------

cdef object taken(object step, object array):
    """As `arrays.view_steps.Step.taken`."""
    return PyObject_Call(
        get(step, t_function), (array, *<tuple>get(step, t_arguments)), NULL
    )


cdef bint in_order(tuple shape, tuple strides) except -1:
    """As `arrays.handle.is_ordered`."""
    cdef Py_ssize_t place, stride, last = 0
    for place in range(PyTuple_GET_SIZE(shape) - 1, -1, -1):
        if <object>PyTuple_GET_ITEM(shape, place) != 1:
            stride = abs(<Py_ssize_t><object>PyTuple_GET_ITEM(strides, place))
            if stride == 0 or stride < last:
                return False
            last = stride
    return True


cdef tuple without_unit_strides(tuple shape, tuple strides):
    """`ir.layout.without_unit_strides`."""
    cdef Py_ssize_t place
    return tuple([
        0 if <object>PyTuple_GET_ITEM(shape, place) == 1 else <object>PyTuple_GET_ITEM(strides, place)
        for place in range(PyTuple_GET_SIZE(shape))
    ])


cdef bint is_contiguous(tuple shape, tuple strides) except -1:
    """Whether these are the strides of C order, without those of unit extents."""
    cdef Py_ssize_t place, extent, step = 1
    for place in range(PyTuple_GET_SIZE(shape) - 1, -1, -1):
        extent = <object>PyTuple_GET_ITEM(shape, place)
        if <Py_ssize_t><object>PyTuple_GET_ITEM(strides, place) != (0 if extent == 1 else step):
            return False
        step *= max(extent, 1)
    return True


cdef object common_shape(tuple one, tuple two):
    """The shape to which both broadcast, as `arrays.expressions.broadcast_shapes`; None where there is
    none."""
    cdef Py_ssize_t place, rank, missing
    if PyTuple_GET_SIZE(one) < PyTuple_GET_SIZE(two):
        one, two = two, one
    rank = PyTuple_GET_SIZE(one)
    missing = rank - PyTuple_GET_SIZE(two)
    common = []
    for place in range(rank):
        extent = <object>PyTuple_GET_ITEM(one, place)
        if place >= missing:
            other = <object>PyTuple_GET_ITEM(two, place - missing)
            if extent == 1:
                extent = other
            elif other != 1 and other != extent:
                return None
        common.append(extent)
    return tuple(common)


cdef object view_from(object self, object found, object index, object ordered):
    """An array on the storage of `self`, which sees `found` of it by one more step."""
    old = sight_of(self)
    view = PyType_GenericAlloc(<PyTypeObject *>Indexed, 0)
    fill(view, i_layout, None)
    fill(view, v_ordered, ordered)
    if old is None:
        fill(view, i_start, None)
        fill(view, i_path, (index,))
        fill(view, i_shape, get(self, h_shape))
        fill(view, v_base, self)
        fill(view, v_writeable, True)
    else:
        if type(old) is Indexed:
            fill(view, i_start, get(old, i_start))
            fill(view, i_path, <tuple>get(old, i_path) + (index,))
            fill(view, i_shape, get(old, i_shape))
        else:
            start = View(get(old, v_offset), get(old, v_strides), None, get(old, v_ordered))
            fill(view, i_start, (get(self, h_shape), start))
            fill(view, i_path, (index,))
            fill(view, i_shape, get(self, h_shape))
        base = get(old, v_base)
        fill(view, v_base, self if base is None else base)
        fill(view, v_writeable, get(old, v_writeable))
    return new_handle(storage_of(self), found.shape, get(self, h_dtype), view)


cdef bint takes_a_step(object handle) except -1:
    """Whether its view, if it is one, may have one step more."""
    old = sight_of(handle)
    if old is None or type(old) is View:
        return True
    return type(old) is Indexed and PyTuple_GET_SIZE(<tuple>get(old, i_path)) < longest_path


cdef object call_viewer(object self, PyObject **args, size_t given, PyObject *names):
    cdef Front ours = <Front>self
    cdef Py_ssize_t count = PyVectorcall_NARGS(given)
    if count and (names == NULL or count + PyTuple_GET_SIZE(<object>names) == 2 and (
        ours.first is not None and <str>PyTuple_GET_ITEM(<object>names, 0) == <str>ours.first
    )):
        answer = view_made(ours.apply, ours.most, args, count if names == NULL else 2)
        if answer is not DEFER:
            return answer
    return asked_plain(ours, args, PyVectorcall_NARGS(given), names)


def viewer(plain, apply, int most, str first=None):
    """``apply(self, *args)``, a method or a function of NumPy's that gives a view where it can,
    before `plain`, for at most so many arguments beside the array. `first` is the name of the first
    one of these, if it may be given by name."""
    found = front(plain, <vectorcallfunc>call_viewer)
    found.apply, found.most, found.first = apply, most, first
    return found


cdef object view_made(object apply, Py_ssize_t most, PyObject **args, Py_ssize_t given):
    """``apply(*args)`` as an array of ours, or `DEFER`."""
    cdef Py_ssize_t place
    cdef PyObject *moved[MOST_ARGUMENTS]
    self = <object>args[0]
    if given > min(most, MOST_ARGUMENTS - 1) + 1 or not is_ours(self) or not is_on_host(self):
        return DEFER
    for place in range(1, given):
        item = <object>args[place]
        if type(item) is list and given == 2 and is_option(item):
            return viewed_by_a_tuple(apply, most, args)
        if type(item) is not int and not (type(item) is tuple and is_option(item)):
            return DEFER
        moved[place] = args[place]
    array = indexable(self)
    is_kept = array is not None
    if not is_kept:
        array = here(self)
        if array is None or not takes_a_step(self):
            return DEFER
    moved[0] = <PyObject *>array
    found = PyObject_Vectorcall(apply, moved, given, NULL)
    if found is array:
        return self
    base = found.base
    if base is not array and (base is None or base is not array.base):
        if not is_affordable(found.size):
            return DEFER
        return made(found, None, device_of(self))
    if is_kept:
        return sight_on(self, array, found)
    if array_descr(<PyObject *>found) != array_descr(<PyObject *>array):
        return DEFER
    step = PyType_GenericAlloc(<PyTypeObject *>Step, 0)
    arguments = PyTuple_New(given - 1)
    for place in range(1, given):
        Py_INCREF(<object>args[place])
        PyTuple_SET_ITEM(arguments, place - 1, args[place])
    fill(step, t_function, apply)
    fill(step, t_arguments, arguments)
    view = view_from(self, found, step, in_order(<tuple>found.shape, <tuple>found.strides))
    if is_restricted(found, array):
        restrict(view)
    return view


cdef object viewed_by_a_tuple(object apply, Py_ssize_t most, PyObject **args):
    """`view_made` with a tuple in place of the list: a view keeps what it was made by."""
    cdef PyObject *moved[2]
    held = tuple(<list>args[1])
    moved[0], moved[1] = args[0], <PyObject *>held
    return view_made(apply, most, moved, 2)


cdef object sight_on(object self, object array, object found):
    """An array of ours that sees `found`, NumPy's view of the `array` that `self` sees."""
    cdef PyObject *dtype = native_dtype(<PyObject *>found)
    view = new_view(owner_of(self), <object>dtype, found)
    if is_restricted(found, array):
        restrict(view)
    return view


cdef inline bint is_restricted(object found, object array) noexcept:
    """Whether NumPy lets nobody write to a view of what may be written to."""
    return array_flags(<PyObject *>found) & WRITEABLE == 0 and (
        array_flags(<PyObject *>array) & WRITEABLE != 0
    )


cdef int restrict(object view) except -1:
    """Let a new view be read only."""
    refill(sight_of(view), v_writeable, False)
    return 0


cdef object call_viewer_of_parts(object self, PyObject **args, size_t given, PyObject *names):
    if PyVectorcall_NARGS(given) and type(<object>args[0]) is ARRAY and (
        <object>get(<object>args[0], h_dtype).kind == "c"
    ):
        return call_viewer(self, args, given, names)
    return asked_plain(<Front>self, args, PyVectorcall_NARGS(given), names)


def viewer_of_parts(plain, apply):
    """``apply(self)``, an attribute of NumPy's that gives a view of parts of complex numbers, of
    another dtype, before `plain`."""
    found = front(plain, <vectorcallfunc>call_viewer_of_parts)
    found.apply, found.most = apply, 0
    return found


cdef object call_viewer_of_matrices(object self, PyObject **args, size_t given, PyObject *names):
    if PyVectorcall_NARGS(given) and is_ours(<object>args[0]) and (
        PyTuple_GET_SIZE(get(<object>args[0], h_shape)) == 2
    ):
        return call_viewer(self, args, given, names)
    return asked_plain(<Front>self, args, PyVectorcall_NARGS(given), names)


def viewer_of_matrices(plain, apply, int most):
    """The same as `viewer`, for matrices alone."""
    found = front(plain, <vectorcallfunc>call_viewer_of_matrices)
    found.apply, found.most = apply, most
    return found


def viewer_of_all(plain, apply, Py_ssize_t most):
    """``apply(self, *args)``, which gives a list or tuple of views of the array, before `plain`."""

    def call(*args, **kwargs):
        answer = DEFER if kwargs else views_made(apply, most, args)
        return plain(*args, **kwargs) if answer is DEFER else answer

    return call


def viewer_of_each(plain, apply, bint as_is, frozenset scalars):
    """``apply(*args)``, which gives a view of each of these arrays, or lists of numbers, before
    `plain`. `as_is`: it gives arrays themselves, too, and takes masks and numbers, those of NumPy's
    of these classes, too."""

    def call(*args, **kwargs):
        answer = DEFER if kwargs else views_of_each(apply, as_is, scalars, args)
        return plain(*args, **kwargs) if answer is DEFER else answer

    return call


cdef bint is_view_of(object found, object array) except -1:
    """Whether NumPy has made a view of what `indexable` gave."""
    if type(found) is not NUMPY or found is array:
        return False
    base = found.base
    return base is array or (base is not None and base is array.base)


cdef object views_of_each(object apply, bint as_is, frozenset scalars, tuple args):
    cdef Py_ssize_t place
    ours = []
    arrays = []
    for item in args:
        if not is_ours(item):
            if not as_is and type(item) is not list:
                return DEFER
            item = array_of_numbers(item, scalars)
            if item is DEFER:
                return DEFER
        array = indexable(item) if is_on_host(item) else None
        if array is None:
            return DEFER
        if not as_is and (array.dtype.kind == "b" or not array_size(<PyObject *>array)):
            return DEFER  # places that a mask says; none, which NumPy takes for whole numbers
        ours.append(item)
        arrays.append(array)
    try:
        found = apply(*arrays)
    except ValueError:  # of shapes that do not fit
        return DEFER
    views = []
    for place in range(len(arrays)):
        if as_is and found[place] is arrays[place]:
            views.append(ours[place])
        elif is_view_of(found[place], arrays[place]):
            views.append(sight_on(ours[place], arrays[place], found[place]))
        else:
            return DEFER
    return tuple(views)


cdef object views_made(object apply, Py_ssize_t most, tuple args):
    cdef Py_ssize_t place, given = PyTuple_GET_SIZE(args)
    if not 1 <= given <= most + 1:
        return DEFER
    self = args[0]
    if not is_ours(self) or not is_on_host(self):
        return DEFER
    for place in range(1, given):
        if type(args[place]) is not int:
            return DEFER
    array = indexable(self)
    if array is None:
        return DEFER
    found = apply(array, *args[1:])
    views = []
    for each in found:
        if not is_view_of(each, array):
            return DEFER
        views.append(sight_on(self, array, each))
    if views and use_here(self) is not BY_ROWS and use_here(self) is not SELECTED:
        is_row = array_rank(<PyObject *>each) < array_rank(<PyObject *>array)
        note_here(self, BY_ROWS if is_row else IN_PARTS)
    return views if type(found) is list else tuple(views)


def flipper(plain):
    """``flip(array)``, of all axes, before `plain`."""

    def call(*args, **kwargs):
        cdef int place
        if kwargs or PyTuple_GET_SIZE(args) != 1:
            return plain(*args, **kwargs)
        self = args[0]
        if is_ours(self) and <tuple>get(self, h_shape) and is_on_host(self):
            rank = PyTuple_GET_SIZE(get(self, h_shape))
            answer = view_on_host(self, (backwards,) * rank)
            if answer is not DEFER:
                return answer
        return plain(self)

    return call


cdef object backwards = slice(None, None, -1)


# -- what is written to ----------------------------------------------------------------------------

cdef bint is_moved_alone(object item, object dtype) except -1:
    """Whether NumPy has nothing to warn of when it writes this into an array of `dtype`. Halves
    overflow."""
    kind = type(item)
    if kind is NUMPY:
        return item.dtype is dtype or (item.dtype.kind in "biu" and dtype.itemsize != 2)
    return item is None or kind is bool or kind is str or (
        kind is int and dtype.itemsize != 2
    ) or (kind is float and dtype is FLOAT64)


cdef object write(object apply, int operands, bint moves, tuple args, dict kwargs):
    """``apply(array, *args, **kwargs)``, which writes to the array, or `DEFER`. `moves`: it
    calculates nothing."""
    cdef Work work
    cdef Py_ssize_t place, given = PyTuple_GET_SIZE(args)
    if not given:
        return DEFER
    self = <object>PyTuple_GET_ITEM(args, 0)
    if not is_ours(self) or not is_on_host(self) or not is_writeable(self):
        return DEFER
    array = written(self)
    if array is None:
        return DEFER
    nothing_yet(&work)
    device = device_of(self)
    dtype = get(self, h_dtype)
    work.device = <PyObject *>device
    count(&work, <tuple>get(self, h_shape))
    found = [array]
    for place in range(1, given):
        item = <object>PyTuple_GET_ITEM(args, place)
        if place < operands:
            item = operand(item, &work, 0)
            if item is DEFER:
                return DEFER
        elif not is_option(item):
            return DEFER
        moves = moves and is_moved_alone(item, dtype)
        found.append(item)
    named = {}
    for key, item in kwargs.items():
        if key in refused_names:
            return DEFER
        item = operand(item, &work, 0)
        if item is DEFER:
            return DEFER
        moves = moves and is_moved_alone(item, dtype)
        named[key] = item
    if not is_affordable(work.elements):
        return DEFER
    held = with_names(found, named)
    names = tuple(named) if named else None
    if moves:
        return asked_with(apply, held, names)
    before = array.copy()
    value = composed(apply, held, names, False)
    if value is DEFER:
        array[...] = before
    return value


def writer(plain, apply, int operands, bint moves):
    """``apply(array, *args, **kwargs)``, which writes to the array, before `plain`; `moves`: as
    `write` has it."""

    def call(*args, **kwargs):
        with turn_to_write:
            answer = write(apply, operands, moves, args, kwargs)
        return plain(*args, **kwargs) if answer is DEFER else answer

    return call


# -- arrays as indices -----------------------------------------------------------------------------

cdef object index_item(object item, Work *work, double *cost, bint *is_mask):
    kind = type(item)
    if kind is list or kind is tuple:
        item = listed(item)
        if item is DEFER:
            return DEFER
        kind = NUMPY
    if kind is ARRAY or kind is NUMPY:
        found = operand(item, work, 0)
        if found is DEFER:
            return DEFER
        letter = found.dtype.kind
        if letter == "b":
            is_mask[0] = True
            cost[0] += <double>found.size * mask_additions
        elif letter == "i" or letter == "u":
            cost[0] += <double>found.size * gather_additions
        else:
            return DEFER
        return found
    if kind is slice:
        return item if type(item.start) not in lazy_scalars and (
            type(item.stop) not in lazy_scalars and type(item.step) not in lazy_scalars
        ) else DEFER
    if kind is int or item is None or item is Ellipsis or kind in integers:
        return item
    return DEFER


cdef object index_of(object self, object index, bint *is_mask, bint is_written):
    """An index of arrays as NumPy takes it, or `DEFER`. Whoever selects by a mask waits for it: it
    may cost as much as what else would be done then, and so may the rows that it selects."""
    cdef Work work
    cdef double cost = 0
    nothing_yet(&work)
    is_mask[0] = False
    if type(index) is tuple:
        items = []
        for item in <tuple>index:
            item = index_item(item, &work, &cost, is_mask)
            if item is DEFER:
                return DEFER
            items.append(item)
        found = tuple(items)
    else:
        found = index_item(index, &work, &cost, is_mask)
        if found is DEFER:
            return DEFER
    if is_written and not is_mask[0]:
        return found
    if is_mask[0]:
        cost = max(cost, size_of(self))
    is_selected = is_mask[0] or (is_on_host(self) and use_here(self) is SELECTED)
    return found if is_affordable(cost / (selected_share if is_selected else at_once_share)) else DEFER


cdef bint is_array_index(object index) except -1:
    kind = type(index)
    if kind is tuple:
        for item in <tuple>index:
            kind = type(item)
            if kind is ARRAY or kind is NUMPY or kind is list or kind is tuple:
                return True
        return False
    return kind is ARRAY or kind is NUMPY or kind is list


cdef object chosen(object self, object index):
    """``self[index]`` by arrays; `DEFER` where `plain` has to do it."""
    cdef bint is_mask
    found = index_of(self, index, &is_mask, False)
    if found is DEFER:
        return DEFER
    array = here(self) if is_on_host(self) else stored(self)
    if array is None:
        return DEFER
    value = numpys_indices.mp_subscript(array, found)
    if type(value) is not NUMPY:
        return DEFER
    if value.base is not None:
        value = value.copy("K")
    answer = made(value, None, device_of(self))
    if is_mask:
        note_here(self, SELECTED)
        if type(answer) is ARRAY:
            note_here(answer, SELECTED)
    return answer


cdef object given_to(object value, object dtype, bint of_any_size):
    """What is assigned to elements of an array of `dtype`, as NumPy takes it; `DEFER` where `plain`
    has to look closer, or where it is large, and not `of_any_size`."""
    cdef Work work
    kind = type(value)
    if kind is float or kind is int or kind is bool or kind is complex or kind is dtype.type:
        return value
    if kind in scalars:
        return value if fits(value.dtype, dtype) or is_integer_after(value, dtype) else DEFER
    nothing_yet(&work)
    if kind is list or kind is tuple:
        return numbers_of(value)
    if kind is not ARRAY and kind is not NUMPY:
        return DEFER
    found = operand(value, &work, 0)
    if found is DEFER or not (of_any_size or is_affordable(work.elements)):
        return DEFER
    return found if found.dtype is dtype or fits(found.dtype, dtype) else truncated(found, dtype)


cdef bint is_integer_after(object value, object dtype) except -1:
    """Whether a float of NumPy's is in the range of an integer dtype: to assign it warns of nothing.
    """
    cdef double number, high
    if dtype.kind not in "iu" or value.dtype.kind != "f":
        return False
    number = value
    high = 2.0 ** <double>(8 * <int>dtype.itemsize - (dtype.kind == "i"))
    return (-high if dtype.kind == "i" else -1) < number < high


cdef object truncated(object array, object dtype):
    """An array of floats as NumPy assigns it to integers, of which NumPy may warn; `DEFER` of
    others, and where a warning would name a line that is not the user's."""
    if dtype.kind not in "iu" or array.dtype.kind != "f":
        return DEFER
    if is_left_to_numpy():
        return array
    if mode[0] is not LOUD:
        return DEFER
    value = attempted(NULL, NUMPY.astype, array, dtype, None, None)
    return DEFER if type(value) is FloatingPointError else value


def choose(self, index):
    """`chosen`, of any array; what it has to do with lies on the host, if that may be."""
    return chosen(self, index) if is_ours(self) and is_array_index(index) else DEFER


# -- iteration -------------------------------------------------------------------------------------

cdef class Rows:
    """``iter(array)`` of an array on the host: as `classes.iteration.rows`."""

    cdef object array
    cdef Py_ssize_t position, length

    def __init__(self, array):
        self.array = array
        self.position = 0
        self.length = array._shape[0]

    def __iter__(self):
        return self

    def __next__(self):
        cdef Py_ssize_t position = self.position
        if position >= self.length:
            raise StopIteration
        self.position = position + 1
        array = self.array
        if is_ours(array) and is_on_host(array):
            answer = view_on_host(array, position)
            if answer is not DEFER:
                return answer
        return array[position]


def iterator(plain):
    """``iter(self)``, before `plain`."""

    def __iter__(self):
        if is_ours(self) and <tuple>get(self, h_shape) and is_on_host(self):
            return Rows(self)
        return plain(self)

    return __iter__
