# cython: language_level=3, annotation_typing=False, binding=True, auto_pickle=False
"""The common cases of recording and of operations done at the call, in C: `clfuse.compiled` loads
it, `clfuse.api.acceleration` puts it before the methods of arrays.

Every function here has a plain one that it is given. It answers what that would answer, for arrays
of the usual kind only, and asks the plain one in every other case: the plain one is what clfuse
does, this is how it does it sooner. So a rule that `clfuse.api.present` and `clfuse.api.at_once`
have about what is done at the call may become wider there at will; one that becomes narrower has to
become narrower here.

Objects keep the classes that they have in Python. Their slots are read and filled where the class's
own descriptors say that they lie, which takes a fifth of asking for an attribute. New objects come
from `PyType_GenericAlloc`, as from ``object.__new__``.
"""

from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from cpython.weakref cimport PyWeakref_NewRef
from libc.stdlib cimport calloc, free

cdef extern from "Python.h":
    ctypedef struct PyMemberDef:
        Py_ssize_t offset
    ctypedef struct PyMemberDescrObject:
        PyMemberDef *d_member
    object PyType_GenericAlloc(PyTypeObject *, Py_ssize_t)
    int PyContext_Enter(object) except -1
    int PyContext_Exit(object) except -1
    Py_ssize_t Py_REFCNT(PyObject *)
    int PySlice_Unpack(object, Py_ssize_t *, Py_ssize_t *, Py_ssize_t *) except -1
    Py_ssize_t PySlice_AdjustIndices(Py_ssize_t, Py_ssize_t *, Py_ssize_t *, Py_ssize_t)

cdef extern from *:
    """
    #ifndef CLFUSE_SOURCE
    #define CLFUSE_SOURCE ""
    #endif
    """
    const char *CLFUSE_SOURCE

SOURCE = CLFUSE_SOURCE.decode()
"""The hash of the text that this was compiled from."""


include "_compiled_slots.pxi"


# -- new objects -----------------------------------------------------------------------------------

cdef object new_node(object op, object inputs, object shape, object dtype, object buffer):
    node = PyType_GenericAlloc(<PyTypeObject *>Node, 0)
    fill(node, n_op, op)
    fill(node, n_inputs, inputs)
    fill(node, n_shape, shape)
    fill(node, n_dtype, dtype)
    fill(node, n_param, None)
    fill(node, n_buffer, buffer)
    fill(node, n_computed, False)
    return node


cdef object new_handle(object storage, object shape, object dtype, object view):
    handle = PyType_GenericAlloc(<PyTypeObject *>ARRAY, 0)
    fill(handle, h_storage, storage)
    fill(handle, h_shape, shape)
    fill(handle, h_dtype, dtype)
    fill(handle, h_view, view)
    return handle


cdef object new_storage(object node):
    storage = PyType_GenericAlloc(<PyTypeObject *>Storage, 0)
    fill(storage, s_node, node)
    return storage


cdef object record(object op, object inputs, object shape):
    """As `handle.recorded_array`."""
    dtype = get(op, o_dtype)
    storage = new_storage(new_node(op, inputs, shape, dtype, None))
    recorded.append(PyWeakref_NewRef(storage, None))
    if not len(recorded) & check_mask:
        check()
    return new_handle(storage, shape, dtype, None)


cdef object made(object value, object shape, object device):
    """As `present.made`; `shape` is that of the value where it is known to lie in C order."""
    if type(value) is not NUMPY:
        return plain_made(value, device)
    dtype = native.get(value.dtype)
    if dtype is None:
        return value
    if shape is None:
        if not value.flags.c_contiguous:
            return plain_made(value, device)
        shape = value.shape
    buffer = PyType_GenericAlloc(<PyTypeObject *>HostBuffer, 0)
    fill(buffer, b_device, device)
    fill(buffer, b_array, value)
    fill(buffer, b_copy, None)
    fill(buffer, b_memory, None)
    fill(buffer, b_use, IN_PARTS)
    return new_handle(
        new_storage(new_node(leaves[dtype], (), shape, dtype, buffer)), shape, dtype, None
    )


# -- operations at the call ------------------------------------------------------------------------

cdef inline bint is_affordable(double additions):
    """As `present.affordable`."""
    host_us = settings.get("host_us")  # None where no setting has been read
    return (
        host_us is not None
        and additions <= <double>host_us * additions_a_us
        and settings["fusion"] is True
    )


cdef object calculated(object apply, object left, object right):
    """As `at_once.calculated`, of two operands, or of one where `right` is None; `LATER` also
    where somebody is inside of the context."""
    global inside
    if mode[0] is not LOUD or inside:
        return LATER
    PyContext_Enter(context)
    inside = True
    try:
        return apply(left) if right is None else apply(left, right)
    except FloatingPointError:
        return LATER
    finally:
        inside = False
        PyContext_Exit(context)


cdef inline object buffer_of(object handle):
    return get(get(get(handle, h_storage), s_node), n_buffer)


cdef object memory(object array, object handle):
    """What a handle sees of the elements of its storage: `present.part`."""
    view = get(handle, h_view)
    if view is None:
        return array
    if type(view) is Indexed and peek(view, i_start) == <PyObject *>None:
        found = array
        for index in <tuple>get(view, i_path):
            if type(index) is Axes:
                return plain_part(array, handle)
            found = found[index]
        return found
    return plain_part(array, handle)


cdef inline object use_of(object buffer):
    """What was done with an array on the host, of those three in `runtime.buffers`."""
    return get(buffer, b_use)


cdef inline void note(object buffer, object use) noexcept:
    if use_of(buffer) is not use:
        refill(buffer, b_use, use)


cdef object at_once(object apply, double weight, object self, object other, object buffer):
    """``apply(self, other)``, of which the first lies in `buffer` on the host; as `at_once.pair`,
    for operands of one shape. `LATER` in all other cases."""
    cdef double additions
    cdef bint is_little
    kind = type(other)
    shape = get(self, h_shape)
    is_whole = peek(self, h_view) == <PyObject *>None
    use = use_of(buffer)
    if kind is ARRAY:
        right = buffer_of(other) if is_usual(other) else None
        if type(right) is not HostBuffer:
            return LATER
        if shape is not get(other, h_shape) and shape != get(other, h_shape):
            return LATER
        use = max(use, use_of(right))
        right = get(right, b_array)
        if peek(other, h_view) != <PyObject *>None:
            right = memory(right, other)
            is_whole = False
    elif kind is float or kind is int or kind in scalars:
        right = other
    else:
        return LATER
    left = memory(get(buffer, b_array), self)
    additions = left.size * weight
    is_little = additions <= few_additions
    if not is_affordable(additions) or (use is AS_A_WHOLE and not is_little):
        return LATER
    value = calculated(apply, left, right)
    if value is LATER:
        return LATER
    answer = made(value, shape if is_whole else None, get(buffer, b_device))
    if use is BY_ROWS and not is_little and type(answer) is ARRAY:
        note(buffer_of(answer), use)
    return answer


def product(plain, apply, double share):
    """``apply(one, two)``, a product of vectors and matrices, before `plain`: `at_once.product`."""

    def method(one, two):
        cdef double additions
        if not is_usual(one) or not is_usual(two):
            return plain(one, two)
        device = buffer_of(one)
        right = buffer_of(two)
        if type(device) is not HostBuffer or type(right) is not HostBuffer:
            return plain(one, two)
        left = memory(get(device, b_array), one)
        right = memory(get(right, b_array), two)
        shape = get(two, h_shape)
        additions = left.size
        if PyTuple_GET_SIZE(shape) > 1:
            additions *= <Py_ssize_t>(<tuple>shape)[-1]
        if not is_affordable(max(additions, <double>right.size) / share):
            return plain(one, two)
        value = calculated(apply, left, right)
        return plain(one, two) if value is LATER else made(value, None, get(device, b_device))

    return method


def result(value, device):
    """`present.made`."""
    return made(value, None, device)


# -- recording -------------------------------------------------------------------------------------

cdef object orderly(object handle):
    """The node of an array that lies in C order, or None: `handle.node_of`, `build.view`."""
    view = get(handle, h_view)
    if view is None:
        return get(get(handle, h_storage), s_node)
    if get(view, v_ordered) is not True:
        return None
    node = get(get(handle, h_storage), s_node)
    shape = get(handle, h_shape)
    if type(view) is not View or type(node) is not Node:
        return node_of(handle)
    if get(node, n_dtype) is not get(handle, h_dtype):
        return node_of(handle)
    if get(get(node, n_op), o_kind) is VIEW and peek(node, n_buffer) == <PyObject *>None:
        return node_of(handle)
    offset = get(view, v_offset)
    op = views.get(get(node, n_dtype))
    if op is None or 1 in <tuple>shape or (offset == 0 and shape == get(node, n_shape)):
        return node_of(handle)
    for extent in <tuple>get(node, n_shape):
        if extent != 1:
            break
    else:
        return node_of(handle)
    made = new_node(op, (node,), shape, get(handle, h_dtype), None)
    refill(made, n_param, (offset, get(view, v_strides)))
    return made


cdef inline object constant_for(object op, object value, Py_ssize_t place):
    """The node of a Python number that was met before, or None: `promotion.constant_of`."""
    if not value or value != value:
        return None
    return constants.get(((<tuple>get(op, o_input_dtypes))[place], value))


def binary(plain, apply, double weight, dict loops, bint of_numbers):
    """``self + other``, before `plain`; without `of_numbers` plain records those with numbers."""

    def method(self, other):
        if not is_usual(self):
            return plain(self, other)
        buffer = buffer_of(self)
        if type(buffer) is HostBuffer:
            answer = at_once(apply, weight, self, other, buffer)
            return plain(self, other) if answer is LATER else answer
        shape = get(self, h_shape)
        kind = type(other)
        if kind is ARRAY:
            if not is_usual(other):
                return plain(self, other)
            if buffer is not None and type(buffer_of(other)) is HostBuffer:
                return plain(self, other)
            op = loops.get((get(self, h_dtype), get(other, h_dtype)))
            if op is None:
                return plain(self, other)
            if shape is not get(other, h_shape) and shape != get(other, h_shape):
                shape = broadcast_shapes(shape, get(other, h_shape))
            if not <tuple>shape:
                return plain(self, other)
            left = orderly(self)
            right = None if left is None else orderly(other)
            if right is None:
                return plain(self, other)
            return record(op, (left, right), shape)
        if of_numbers and (kind is float or kind is int) and <tuple>shape:
            op = loops.get((get(self, h_dtype), kind))
            if op is None:
                return plain(self, other)
            right = constant_for(op, other, 1)
            left = None if right is None else orderly(self)
            if left is None:
                return plain(self, other)
            return record(op, (left, right), shape)
        return plain(self, other)

    return method


def reflected(plain, apply, double weight, dict loops):
    """``other + self``, of a number, before `plain`; `apply` takes the operands in this order."""

    def swapped(self, other):
        return apply(other, self)

    def method(self, other):
        kind = type(other)
        if not is_usual(self) or not (kind is float or kind is int):
            return plain(self, other)
        buffer = buffer_of(self)
        if type(buffer) is HostBuffer:
            answer = at_once(swapped, weight, self, other, buffer)
            return plain(self, other) if answer is LATER else answer
        shape = get(self, h_shape)
        op = loops.get((kind, get(self, h_dtype)))
        if op is None or not <tuple>shape:
            return plain(self, other)
        left = constant_for(op, other, 0)
        right = None if left is None else orderly(self)
        if right is None:
            return plain(self, other)
        return record(op, (left, right), shape)

    return method


def unary(plain, apply, double weight, dict loops):
    """``-self``, before `plain`."""

    def method(self):
        if not is_usual(self):
            return plain(self)
        buffer = buffer_of(self)
        shape = get(self, h_shape)
        if type(buffer) is HostBuffer:
            array = memory(get(buffer, b_array), self)
            if not is_affordable(array.size * weight):
                return plain(self)
            if use_of(buffer) is AS_A_WHOLE and array.size * weight > few_additions:
                return plain(self)
            value = calculated(apply, array, None)
            if value is LATER:
                return plain(self)
            is_whole = peek(self, h_view) == <PyObject *>None
            return made(value, shape if is_whole else None, get(buffer, b_device))
        op = loops.get(get(self, h_dtype))
        if op is None or not <tuple>shape:
            return plain(self)
        node = orderly(self)
        return plain(self) if node is None else record(op, (node,), shape)

    return method


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
    if look(node, n_dtype) != <PyObject *>FLOAT64 and (<object>look(node, n_dtype)).kind in "biu":
        return None
    found = <object>array
    if found.base is not None:
        return None
    refill(<object>buffer, b_copy, None)
    if use_of(<object>buffer) is AS_A_WHOLE:
        note(<object>buffer, IN_PARTS)
    return found


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
        if not is_usual(self) or not is_writeable(self) or mode[0] is not LOUD:
            return plain(self, other)
        if type(buffer_of(self)) is not HostBuffer or use_of(buffer_of(self)) is AS_A_WHOLE:
            return plain(self, other)
        if kind is ARRAY:
            if not is_usual(other) or type(buffer_of(other)) is not HostBuffer:
                return plain(self, other)
        elif not (kind is float or kind is int or kind in scalars):
            return plain(self, other)
        array = owned(get(self, h_storage))
        if array is None:
            return plain(self, other)
        array = memory(array, self)
        if not is_affordable(array.size * weight):
            return plain(self, other)
        right = memory(get(buffer_of(other), b_array), other) if kind is ARRAY else other
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
        if not is_usual(self) or not is_writeable(self) or not is_plain_index(index):
            plain(self, index, value)
            return
        if type(buffer_of(self)) is not HostBuffer:
            plain(self, index, value)
            return
        kind = type(value)
        dtype = get(self, h_dtype)
        if kind is ARRAY:
            storage = get(value, h_storage)
            if storage is get(self, h_storage):
                if not is_view_at(self, index, value):
                    plain(self, index, value)
                return
            buffer = buffer_of(value) if is_usual(value) else None
            if type(buffer) is not HostBuffer or get(value, h_dtype) is not dtype:
                plain(self, index, value)
                return
            given = memory(get(buffer, b_array), value)
            if not is_affordable(given.size):
                plain(self, index, value)
                return
        elif (kind is float and dtype is FLOAT64) or kind is dtype.type:
            given = value
        else:
            plain(self, index, value)
            return
        array = owned(get(self, h_storage))
        if array is None:
            plain(self, index, value)
            return
        memory(array, self)[index] = given

    return __setitem__


# -- reading ---------------------------------------------------------------------------------------

cdef object view_on_host(object self, object buffer, object index):
    """As `present.indexed`; `LATER` where `plain` has to do it."""
    old = get(self, h_view)
    if old is not None and (
        type(old) is not Indexed
        or peek(old, i_start) != <PyObject *>None
        or get(old, v_ordered) is not True
        or PyTuple_GET_SIZE(<tuple>get(old, i_path)) >= longest_path
    ):
        return LATER
    found = memory(get(buffer, b_array), self)[index]
    if type(found) is not NUMPY:
        note(buffer, BY_ROWS)
        return LATER if standard[0] else found
    if use_of(buffer) is not BY_ROWS:
        is_row = PyTuple_GET_SIZE(found.shape) < PyTuple_GET_SIZE(get(self, h_shape))
        note(buffer, BY_ROWS if is_row else IN_PARTS)
    view = PyType_GenericAlloc(<PyTypeObject *>Indexed, 0)
    fill(view, i_layout, None)
    fill(view, i_start, None)
    fill(view, v_ordered, True)
    if old is None:
        fill(view, i_path, (index,))
        fill(view, i_shape, get(self, h_shape))
        fill(view, v_base, self)
        fill(view, v_writeable, True)
    else:
        fill(view, i_path, <tuple>get(old, i_path) + (index,))
        fill(view, i_shape, get(old, i_shape))
        base = get(old, v_base)
        fill(view, v_base, self if base is None else base)
        fill(view, v_writeable, get(old, v_writeable))
    return new_handle(get(self, h_storage), found.shape, get(self, h_dtype), view)


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
        expect_rows(get(self, h_storage), found)
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
    return new_handle(get(self, h_storage), found, get(self, h_dtype), made)


def getitem(plain):
    """``self[index]`` by integers and slices, before `plain`."""

    def __getitem__(self, index):
        if not is_usual(self) or not is_plain_index(index):
            return plain(self, index)
        buffer = buffer_of(self)
        if type(buffer) is HostBuffer:
            answer = view_on_host(self, buffer, index)
        else:
            answer = recorded_view(self, index)
        return plain(self, index) if answer is LATER else answer

    return __getitem__


# -- ufuncs ----------------------------------------------------------------------------------------

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
        return plain(self, *args, **kwargs)

    return __call__


include "_compiled_graph.pxi"
