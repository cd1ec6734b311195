"""Arrays on the host read and written to by indices, and in place: a part of `compiled.pyx`."""

# -- indices ---------------------------------------------------------------------------------------

cdef bint is_basic_index(object index):
    """Whether it consists of integers, NumPy's too, slices, None and Ellipsis."""
    cdef Py_ssize_t place
    kind = type(index)
    if kind is tuple:
        for place in range(PyTuple_GET_SIZE(index)):
            item = <object>PyTuple_GET_ITEM(index, place)
            kind = type(item)
            if not (
                kind is int or kind is slice or item is None or item is Ellipsis
                or kind in integers
            ):
                return False
        return True
    return (
        kind is int or kind is slice or index is None or index is Ellipsis or kind in integers
    )


cdef bint is_plain_index(object index):
    """Whether it consists of integers, slices, None and Ellipsis alone."""
    cdef Py_ssize_t place
    kind = type(index)
    if kind is tuple:
        for place in range(PyTuple_GET_SIZE(index)):
            item = <object>PyTuple_GET_ITEM(index, place)
            kind = type(item)
            if kind is not int and kind is not slice and not (item is None or item is Ellipsis):
                return False
        return True
    return kind is int or kind is slice or index is None or index is Ellipsis


# -- writing ---------------------------------------------------------------------------------------

cdef bint put_into(object self, object index, object value) except -1:
    """``self[index] = value``, where that can be done at once; whether it was."""
    cdef bint is_mask = True
    if not is_ours(self) or not is_on_host(self) or not is_writeable(self):
        return False
    where = index
    if not is_basic_index(index):
        if not is_array_index(index):
            return False
        where = index_of(self, index, &is_mask, True)
        if where is DEFER:
            return False
    kind = type(value)
    if kind is ARRAY:
        if not is_ours(value) or not is_on_host(value):
            return False
        dtype = get(self, h_dtype)
        # Where index arrays say, NumPy writes sooner or later.
        if is_mask and not is_affordable_by(use_here(self), size_of(value)):
            return False
        if get(value, h_dtype) is dtype or fits(get(value, h_dtype), dtype):
            array = written(self)
            if array is None:
                return False
            value = here(value)
        else:
            value = truncated(here(value), dtype)
            if value is DEFER:
                return False
            array = written(self)
            if array is None:
                return False
    else:
        value = given_to(value, get(self, h_dtype), not is_mask)
        if value is DEFER:
            return False
        array = written(self)
        if array is None:
            return False
    if where is not index or not is_written_at(<PyObject *>array, where, value):
        numpys_indices.mp_ass_subscript(array, where, <PyObject *>value)
    return True


def put(self, index, value):
    """`put_into`, of one thread after the other."""
    with turn_to_write:
        return put_into(self, index, value)


cdef inline bint is_set(object self, object index, object value) except -1:
    """Whether ``self[index] = value`` is done here."""
    return put_into(self, index, value) or record_write(self, index, value)


def setitem(plain):
    """``self[index] = value``, where the array lies on the host, before `plain`."""

    def __setitem__(self, index, value):
        cdef bint is_done = False
        with turn_to_write:
            is_done = is_set(self, index, value)
        if not is_done:
            plain(self, index, value)

    return __setitem__


# -- reading ---------------------------------------------------------------------------------------

cdef object view_on_host(object self, object index):
    """``self[index]`` of an array that lies on the host; `DEFER` where `plain` has to do it."""
    array = indexable(self)
    if array is None:
        return indexed_view(self, index)
    found = taken_at(array, index)
    if type(found) is not NUMPY:
        note_here(self, BY_ROWS)
        return DEFER if standard[0] else found
    if use_here(self) is not BY_ROWS and use_here(self) is not SELECTED:
        is_row = array_rank(<PyObject *>found) < array_rank(<PyObject *>array)
        note_here(self, BY_ROWS if is_row else IN_PARTS)
    return new_view(owner_of(self), get(self, h_dtype), found)


cdef inline object owner_of(object handle):
    """The array that owns the memory that it sees, itself perhaps."""
    cdef PyObject *owner = peek(handle, h_owner)
    cdef PyObject *view = peek(handle, h_view)
    if owner != NULL:
        return <object>owner
    return handle if view == <PyObject *>None else get(<object>view, v_base)


cdef object indexed_view(object self, object index):
    """As `view_on_host`, of memory that may not be written to, by the index."""
    array = here(self)
    if array is None or not takes_a_step(self):
        return DEFER
    found = array[index]
    if type(found) is not NUMPY:
        note_here(self, BY_ROWS)
        return DEFER if standard[0] else found
    shape = found.shape
    if use_here(self) is not BY_ROWS and use_here(self) is not SELECTED:
        is_row = PyTuple_GET_SIZE(shape) < PyTuple_GET_SIZE(get(self, h_shape))
        note_here(self, BY_ROWS if is_row else IN_PARTS)
    old = sight_of(self)
    ordered = old is None or get(old, v_ordered) is True
    return view_from(self, found, index, ordered or in_order(<tuple>shape, <tuple>found.strides))


cdef bint is_located(
    object self, object index, Py_ssize_t *at, list new_shape, list new_strides
) except -1:
    """Whether integers, slices of small numbers, None and one Ellipsis point at something in an
    array that was recorded; where: as `arrays.basic_index.locate`. `plain` has to look at all others."""
    cdef Py_ssize_t start, stop, step, count, extent, stride, place, given, rank, used, axis = 0
    cdef bint skips = False
    view = sight_of(self)
    shape = <tuple>get(self, h_shape)
    rank = PyTuple_GET_SIZE(shape)
    if view is None:
        at[0] = 0
        strides = <tuple>c_strides(shape)
    elif type(view) is View and get(view, v_ordered) is True:
        at[0] = get(view, v_offset)
        strides = <tuple>get(view, v_strides)
    else:
        return False
    if type(index) is not tuple:
        index = (index,)
    given = PyTuple_GET_SIZE(index)
    if get(boundary, y_due) is not False:
        return False
    used = 0
    for place in range(given):
        item = <object>PyTuple_GET_ITEM(index, place)
        if item is Ellipsis:
            if skips:
                return False
            skips = True
        elif item is not None:
            used += 1
    if used > rank or (skips and used == rank) or given - used + rank > MOST_AXES:
        return False
    for place in range(given):
        item = <object>PyTuple_GET_ITEM(index, place)
        if item is None:
            new_shape.append(1)
            new_strides.append(0)
            continue
        if item is Ellipsis:
            for axis in range(axis, axis + rank - used):
                new_shape.append((<tuple>shape)[axis])
                new_strides.append((<tuple>strides)[axis])
            axis += 1
            continue
        extent = (<tuple>shape)[axis]
        stride = (<tuple>strides)[axis]
        axis += 1
        if type(item) is int:
            if not -extent <= item < extent:
                return False
            start = item
            at[0] += (start + extent if start < 0 else start) * stride
            continue
        try:
            PySlice_Unpack(item, &start, &stop, &step)
        except (TypeError, ValueError):  # `plain` raises what NumPy does
            return False
        count = PySlice_AdjustIndices(extent, &start, &stop, step)
        if count:
            at[0] += start * stride
        new_shape.append(count)
        new_strides.append(stride * step)
    if axis < rank:
        new_shape.extend((<tuple>shape)[axis:])
        new_strides.extend((<tuple>strides)[axis:])
    return True


cdef object whole = None  # the shape of the array whose row was looked at last
cdef tuple row_shape, row_strides
cdef Py_ssize_t row_size


cdef bint is_row(object self, object index, Py_ssize_t *at) except -1:
    """Whether an integer points at a row of an array in C order, whose layout is known from then
    on: a loop asks for one after the other."""
    global whole, row_shape, row_strides, row_size
    cdef Py_ssize_t extent, start
    if type(index) is not int or peek(self, h_view) != <PyObject *>None:
        return False
    shape = <tuple>get(self, h_shape)
    if shape is not whole:
        if PyTuple_GET_SIZE(shape) < 2 or 0 in shape:
            return False
        strides = <tuple>c_strides(shape)
        row_shape, row_strides = shape[1:], strides[1:]
        row_size, whole = strides[0], shape
    extent = <object>PyTuple_GET_ITEM(shape, 0)
    if get(boundary, y_due) is not False or not -extent <= index < extent:
        return False
    start = index
    at[0] = (start + extent if start < 0 else start) * row_size
    return True


cdef bint is_passed(tuple part, tuple whole) except -1:
    """As `arrays.host_array.is_passed`."""
    cdef double size = 1, all_of_it = 1
    if PyTuple_GET_SIZE(part) < PyTuple_GET_SIZE(whole):
        return True
    for extent in part:
        size *= <Py_ssize_t>extent
    for extent in whole:
        all_of_it *= <Py_ssize_t>extent
    return 0 < size * rows_of_a_loop <= all_of_it


cdef object recorded_view(object self, object index):
    """As `functions.indexing.subscripts.get`, by what `is_located` takes; `DEFER` where `plain` has to."""
    cdef Py_ssize_t offset = 0
    if is_row(self, index, &offset):
        found, strides = row_shape, row_strides
    else:
        new_shape = []
        new_strides = []
        if not is_located(self, index, &offset, new_shape, new_strides):
            return DEFER
        if not new_shape:
            return element(self, offset)
        found, strides = tuple(new_shape), tuple(new_strides)
    if is_passed(<tuple>found, <tuple>get(self, h_shape)):
        storage = storage_of(self)
        if not expects_no_rows(peek(storage, s_node)):
            expect_rows(storage, found)
    view = sight_of(self)
    made = PyType_GenericAlloc(<PyTypeObject *>View, 0)
    fill(made, v_offset, offset)
    fill(made, v_strides, strides)
    fill(made, v_ordered, True)
    if view is None:
        fill(made, v_base, self)
        fill(made, v_writeable, True)
    else:
        base = get(view, v_base)
        fill(made, v_base, self if base is None else base)
        fill(made, v_writeable, get(view, v_writeable))
    return new_handle(storage_of(self), found, get(self, h_dtype), made)


cdef bint record_write(object self, object index, object value) except -1:
    """Record ``self[index] = value`` of two arrays that do not lie on the host, the usual case of
    `functions.indexing.subscripts.put`: the value has the dtype of the array and the shape of the part, which is not all
    of it. Whether it was."""
    cdef Py_ssize_t extent, offset = 0
    cdef double size = 1, whole = 1
    if type(value) is not ARRAY or not is_ours(self) or not is_ours(value):
        return False
    if is_on_host(self) or is_on_host(value) or not is_writeable(self):
        return False
    dtype = get(self, h_dtype)
    if get(value, h_dtype) is not dtype or share_cell(self, value) or not is_plain_index(index):
        return False
    storage = storage_of(self)
    old = get(storage, s_node)
    op = updates.get(dtype)
    if op is None or get(old, n_dtype) is not dtype:
        return False
    # What a kernel leaves may not know yet which operation it is.
    if type(old) is not Node and (
        peek(old, n_op) == NULL or get(get(old, n_op), o_kind) is not UPDATE
    ):
        return False
    shape = []
    strides = []
    if not is_located(self, index, &offset, shape, strides) or not shape:
        return False
    if tuple(shape) != get(value, h_shape) or 1 in shape:
        return False
    for extent in shape:
        size *= extent
    for extent in <tuple>get(old, n_shape):
        whole *= extent
    if not 0 < size < whole:
        return False
    node = orderly(value)
    if node is None:
        return False
    made = new_node(op, (old, node), get(old, n_shape), dtype, None)
    refill(made, n_param, (offset, tuple(strides)))
    refill(storage, s_node, made)
    recorded.append(PyWeakref_NewRef(storage, None))
    operations.append(made.place())
    if recorders:
        tell(made)
    if len(recorded) >= <Py_ssize_t>check_at[0]:
        check()
    if boundary.full:
        refill(boundary, y_due, True)
    return True


cdef object part_of(object self, object index):
    """``self[index]``, or `DEFER`."""
    if not is_ours(self):
        return DEFER
    if is_on_host(self):
        if is_basic_index(index):
            return view_on_host(self, index)
        return chosen(self, index) if is_array_index(index) else DEFER
    return recorded_view(self, index) if is_plain_index(index) else DEFER


def getitem(plain):
    """``self[index]`` by integers and slices, before `plain`."""

    def __getitem__(self, index):
        answer = part_of(self, index)
        return plain(self, index) if answer is DEFER else answer

    return __getitem__


# -- scalars of NumPy's ----------------------------------------------------------------------------

cdef object by_first(Quick quick, object self, object first):
    return at_once(
        NULL, quick.function, quick.weight, quick.own_loops, quick.of_one_dtype, self, first, True,
        0, NOTHING_SPARE
    )


def array_ufunc(plain, dict known):
    """``scalar + self``, by a scalar or an array of NumPy's and a ufunc of which there is a `Quick`,
    before `plain`: what an element of an array on the host is, comes first in many a loop."""

    def __array_ufunc__(*args, **kwargs):
        # The array, NumPy's ufunc, its method, operands.
        if PyTuple_GET_SIZE(args) == 5 and not kwargs:
            self = <object>PyTuple_GET_ITEM(args, 0)
            first = <object>PyTuple_GET_ITEM(args, 3)
            if (
                PyTuple_GET_ITEM(args, 4) == <PyObject *>self
                and (type(first) in scalars or type(first) is NUMPY)
                and is_ours(self)
                and <object>PyTuple_GET_ITEM(args, 2) == "__call__"
            ):
                function = <object>PyTuple_GET_ITEM(args, 1)
                about = known.get(function)
                if about is not None:
                    answer = by_first(<Quick>about, self, first)
                    if answer is not DEFER:
                        return answer
        return plain(*args, **kwargs)

    return __array_ufunc__
