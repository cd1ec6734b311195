"""Arrays on the host read and written to by indices, and in place: a part of `_compiled.pyx`."""

# -- writing ---------------------------------------------------------------------------------------

cdef object owned(object storage):
    """The memory of a cell on the host, to be written to; None where somebody else may see it, and
    `present.owned` has to look closer."""
    # No names that count: one reference each, the cell's, the node's and the buffer's.
    cdef PyObject *node = peek(storage, s_node)
    cdef PyObject *buffer = look(node, n_buffer)
    cdef PyObject *array = look(buffer, b_array)
    if Py_REFCNT(node) != 1 or Py_REFCNT(buffer) != 1 or Py_REFCNT(array) != 1:
        return None
    found = <object>array
    if found.base is not None:
        return None
    refill(<object>buffer, b_copy, None)
    if use_of(<object>buffer) is AS_A_WHOLE:
        note(<object>buffer, IN_PARTS)
    if look(node, n_measured) != NULL or look(node, n_tally) != NULL:
        # What is known of the values holds no longer.
        dtype = <object>look(node, n_dtype)
        shape = <object>look(node, n_shape)
        refill(storage, s_node, new_node(leaves[dtype], (), shape, dtype, <object>buffer))
    return found


cdef object owned_by(object handle):
    """`owned`, of an array that lies on the host, with a storage or without."""
    cdef PyObject *host = peek(handle, h_host)
    if host == NULL or Py_REFCNT(host) != 1:
        return owned(storage_of(handle))
    array = <object>host
    if array.base is not None:
        return None
    if use_here(handle) is AS_A_WHOLE:
        note_here(handle, IN_PARTS)
    return array


cdef inline bint share_cell(object one, object two):
    """Whether two arrays see the same storage."""
    cdef PyObject *cell = peek(one, h_cell)
    return one is two or (cell != NULL and cell == peek(two, h_cell))


cdef bint is_basic_index(object index):
    """Whether it consists of integers, slices, None and Ellipsis."""
    cdef Py_ssize_t place
    kind = type(index)
    if kind is tuple:
        for place in range(PyTuple_GET_SIZE(index)):
            item = <object>PyTuple_GET_ITEM(index, place)
            kind = type(item)
            if not (kind is int or kind is slice or item is None or item is Ellipsis):
                return False
        return True
    return kind is int or kind is slice or index is None or index is Ellipsis


cdef bint is_plain_index(object index):
    """Whether it consists of integers and slices alone."""
    cdef Py_ssize_t place
    kind = type(index)
    if kind is tuple:
        for place in range(PyTuple_GET_SIZE(index)):
            kind = type(<object>PyTuple_GET_ITEM(index, place))
            if kind is not int and kind is not slice:
                return False
        return True
    return kind is int or kind is slice


cdef inline bint is_writeable(object handle):
    view = get(handle, h_view)
    return view is None or get(view, v_writeable) is True


def in_place(plain, apply, double weight):
    """``self += other``, where the array lies on the host, before `plain`."""

    def method(self, other):
        kind = type(other)
        if not is_ours(self) or not is_writeable(self) or mode[0] is not LOUD:
            return plain(self, other)
        if host_of(self) is None or use_here(self) is AS_A_WHOLE:
            return plain(self, other)
        if kind is ARRAY:
            if not is_ours(other) or host_of(other) is None:
                return plain(self, other)
        elif not (kind is float or kind is int or kind in scalars):
            return plain(self, other)
        array = owned_by(self)
        if array is None:
            return plain(self, other)
        array = memory(array, self)
        if not is_affordable(array.size * weight):
            return plain(self, other)
        right = memory(host_of(other), other) if kind is ARRAY else other
        before = array.copy()
        if calculated(apply, array, right) is LATER:
            array[...] = before
            array = right = None  # `plain` counts the references
            return plain(self, other)
        return self

    return method


cdef bint is_view_at(object self, object index, object value):
    """As `present.is_at`."""
    if peek(self, h_view) != <PyObject *>None or get(value, h_dtype) is not get(self, h_dtype):
        return False
    view = get(value, h_view)
    if type(view) is not Indexed or peek(view, i_start) != <PyObject *>None:
        return False
    path = <tuple>get(view, i_path)
    return PyTuple_GET_SIZE(path) == 1 and path[0] == index


def setitem(plain):
    """``self[index] = value``, where the array lies on the host, before `plain`."""

    def __setitem__(self, index, value):
        cdef bint is_mask
        if not is_ours(self) or not is_writeable(self):
            plain(self, index, value)
            return
        if host_of(self) is None:
            plain(self, index, value)
            return
        if not is_basic_index(index):
            if not is_array_index(index):
                plain(self, index, value)
                return
            where = index_of(self, index, &is_mask)
            if where is LATER:
                plain(self, index, value)
                return
        else:
            where = index
        if type(value) is ARRAY and share_cell(value, self):
            if where is index and is_view_at(self, index, value):
                return
        given = given_to(value, get(self, h_dtype))
        if given is LATER:
            plain(self, index, value)
            return
        if type(given) is NUMPY and type(value) is ARRAY and share_cell(value, self):
            given = where = None  # `plain` looks closer at what is written to itself
            plain(self, index, value)
            return
        array = owned_by(self)
        if array is None:
            plain(self, index, value)
            return
        memory(array, self)[where] = given

    return __setitem__


# -- reading ---------------------------------------------------------------------------------------

cdef object view_on_host(object self, object host, object index):
    """As `present.indexed`, of an array that lies in `host`; `LATER` where `plain` has to do it."""
    if not takes_a_step(self):
        return LATER
    found = memory(host, self)[index]
    if type(found) is not NUMPY:
        note_here(self, BY_ROWS)
        return LATER if standard[0] else found
    shape = found.shape
    if use_here(self) is not BY_ROWS:
        is_row = PyTuple_GET_SIZE(shape) < PyTuple_GET_SIZE(get(self, h_shape))
        note_here(self, BY_ROWS if is_row else IN_PARTS)
    old = get(self, h_view)
    ordered = old is None or get(old, v_ordered) is True
    return view_from(self, found, index, ordered or in_order(<tuple>shape, <tuple>found.strides))


cdef object recorded_view(object self, object index):
    """As `indexing.get`, by integers and slices of small numbers; `LATER` where `plain` has to."""
    cdef Py_ssize_t start, stop, step, count, extent, stride, offset, place, given, rank
    view = get(self, h_view)
    shape = <tuple>get(self, h_shape)
    rank = PyTuple_GET_SIZE(shape)
    if view is None:
        offset = 0
        strides = <tuple>c_strides(shape)
    elif type(view) is View and get(view, v_ordered) is True:
        offset = get(view, v_offset)
        strides = <tuple>get(view, v_strides)
    else:
        return LATER
    if type(index) is not tuple:
        index = (index,)
    given = PyTuple_GET_SIZE(index)
    if given > rank or boundary.due:
        return LATER
    new_shape = []
    new_strides = []
    for place in range(given):
        item = (<tuple>index)[place]
        extent = (<tuple>shape)[place]
        stride = (<tuple>strides)[place]
        if type(item) is int:
            if not -extent <= item < extent:
                return LATER
            start = item
            offset += (start + extent if start < 0 else start) * stride
            continue
        try:
            PySlice_Unpack(item, &start, &stop, &step)
        except (TypeError, ValueError):  # `plain` raises what NumPy does
            return LATER
        count = PySlice_AdjustIndices(extent, &start, &stop, step)
        if count:
            offset += start * stride
        new_shape.append(count)
        new_strides.append(stride * step)
    if given < rank:
        new_shape.extend((<tuple>shape)[given:])
        new_strides.extend((<tuple>strides)[given:])
    elif not new_shape:
        return element(self, offset)
    found = tuple(new_shape)
    if PyTuple_GET_SIZE(found) < rank:
        expect_rows(storage_of(self), found)
    made = PyType_GenericAlloc(<PyTypeObject *>View, 0)
    fill(made, v_offset, offset)
    fill(made, v_strides, tuple(new_strides))
    fill(made, v_ordered, True)
    if view is None:
        fill(made, v_base, self)
        fill(made, v_writeable, True)
    else:
        base = get(view, v_base)
        fill(made, v_base, self if base is None else base)
        fill(made, v_writeable, get(view, v_writeable))
    return new_handle(storage_of(self), found, get(self, h_dtype), made)


def getitem(plain):
    """``self[index]`` by integers and slices, before `plain`."""

    def __getitem__(self, index):
        if not is_ours(self):
            return plain(self, index)
        host = host_of(self)
        if host is not None:
            if is_basic_index(index):
                answer = view_on_host(self, host, index)
            elif is_array_index(index):
                answer = chosen(self, host, index)
            else:
                return plain(self, index)
        elif not is_plain_index(index):
            return plain(self, index)
        else:
            answer = recorded_view(self, index)
        return plain(self, index) if answer is LATER else answer

    return __getitem__


# -- scalars of NumPy's ----------------------------------------------------------------------------

def array_ufunc(plain, dict reversed_of):
    """``scalar + self``, by a scalar of NumPy's and a ufunc of `reversed_of`, before `plain`: what
    an element of an array on the host is, comes first in many a loop."""

    def __array_ufunc__(self, function, method, *inputs, **kwargs):
        if (
            PyTuple_GET_SIZE(inputs) == 2
            and not kwargs
            and inputs[1] is self
            and type(inputs[0]) in scalars
            and is_ours(self)
            and method == "__call__"
        ):
            host = host_of(self)
            about = None if host is None else reversed_of.get(function)
            if about is not None:
                answer = at_once(about[0], about[1], self, inputs[0], host)
                if answer is not LATER:
                    return answer
        return plain(self, function, method, *inputs, **kwargs)

    return __array_ufunc__
