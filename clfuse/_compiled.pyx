# cython: language_level=3, annotation_typing=False, binding=True, auto_pickle=False
"""The common cases of recording and of operations done at the call, in C: `clfuse.compiled` loads
it, `clfuse.api.acceleration` puts it before the methods of arrays.

Every function here has a plain one that it is given. It answers what that would answer, for arrays
of the usual kind only, and asks the plain one in every other case: the plain one is what clfuse
does, this is how it does it sooner. So a rule that `clfuse.api.present`, `at_once` and `readers`
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
from libc.math cimport ceil
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
    long PyLong_AsLongAndOverflow(object, int *) except? -1
    double PyFloat_AS_DOUBLE(object)
    object PyObject_CallObject(object, object)

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
    fill(handle, h_cell, storage)
    fill(handle, h_shape, shape)
    fill(handle, h_dtype, dtype)
    fill(handle, h_view, view)
    return handle


cdef object new_storage(object node):
    storage = PyType_GenericAlloc(<PyTypeObject *>Storage, 0)
    fill(storage, s_node, node)
    return storage


include "_compiled_alone.pxi"


cdef object record(object op, object inputs, object shape):
    """As `handle.recorded_array`."""
    dtype = get(op, o_dtype)
    storage = new_storage(new_node(op, inputs, shape, dtype, None))
    recorded.append(PyWeakref_NewRef(storage, None))
    operations.append(op)
    if len(recorded) >= <Py_ssize_t>check_at[0]:
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
    return new_alone(value, shape, dtype, device)


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
    if mode[0] is QUIET:
        return apply(left) if right is None else apply(left, right)
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
    return get(get(storage_of(handle), s_node), n_buffer)


cdef object memory(object array, object handle):
    """What a handle sees of the elements of its storage: `present.part`."""
    view = get(handle, h_view)
    if view is None:
        return array
    if type(view) is Indexed:
        start = get(view, i_start)
        found = array
        if start is not None:
            found = seen(array, <tuple>(<tuple>start)[0], get(handle, h_dtype), (<tuple>start)[1])
        for index in <tuple>get(view, i_path):
            found = taken(index, found) if type(index) is Step else found[index]
        return found
    if type(view) is View:
        return seen(array, <tuple>get(handle, h_shape), get(handle, h_dtype), view)
    return plain_part(array, handle)


cdef object seen(object array, tuple shape, object dtype, object view):
    """As `present.seen`."""
    if type(view) is not View or 0 in shape:
        return plain_seen(array, shape, dtype, view)
    cdef Py_ssize_t size = dtype.itemsize
    strides = [<Py_ssize_t>stride * size for stride in <tuple>get(view, v_strides)]
    return NUMPY(shape, dtype, array, <Py_ssize_t>get(view, v_offset) * size, strides)


cdef inline object use_of(object buffer):
    """What was done with an array on the host, of those three in `runtime.buffers`."""
    return get(buffer, b_use)


cdef inline void note(object buffer, object use) noexcept:
    if use_of(buffer) is not use:
        refill(buffer, b_use, use)


cdef object at_once(object apply, double weight, object self, object other, object left):
    """``apply(self, other)``, of which the first lies on the host, in `left`; as `at_once.pair`.
    `LATER` where that has to be done elsewhere."""
    cdef double additions
    cdef bint is_little
    cdef bint is_same = True
    kind = type(other)
    shape = get(self, h_shape)
    is_whole = peek(self, h_view) == <PyObject *>None
    use = use_here(self)
    if kind is ARRAY:
        right = host_of(other) if is_ours(other) else None
        if right is None:
            return LATER
        use = max(use, use_here(other))
        if peek(other, h_view) != <PyObject *>None:
            right = memory(right, other)
            is_whole = False
        is_same = shape is get(other, h_shape) or shape == get(other, h_shape)
    elif kind is float or kind is int or kind in scalars:
        right = other
    elif kind is NUMPY and other.dtype in native:
        right = other
        is_same = False
    else:
        return LATER
    if peek(self, h_view) != <PyObject *>None:
        left = memory(left, self)
    if is_same:
        additions = left.size * weight
    else:
        is_whole = False
        additions = of_both(<tuple>shape, <tuple>right.shape) * weight
        if additions < 0:
            return LATER
    is_little = additions <= few_additions
    if not is_affordable(additions) or (use is AS_A_WHOLE and not is_little):
        return LATER
    value = calculated(apply, left, right)
    if value is LATER:
        return LATER
    answer = made(value, shape if is_whole else None, device_of(self))
    if use is BY_ROWS and not is_little and type(answer) is ARRAY:
        note_here(answer, use)
    return answer


cdef double of_both(tuple one, tuple two):
    """Elements of two arrays stretched to each other; -1 where they do not fit."""
    cdef Py_ssize_t place, first, second
    cdef Py_ssize_t rank = max(PyTuple_GET_SIZE(one), PyTuple_GET_SIZE(two))
    cdef double size = 1
    for place in range(1, rank + 1):
        first = one[PyTuple_GET_SIZE(one) - place] if place <= PyTuple_GET_SIZE(one) else 1
        second = two[PyTuple_GET_SIZE(two) - place] if place <= PyTuple_GET_SIZE(two) else 1
        if first != second and first != 1 and second != 1:
            return -1
        size *= second if first == 1 else first
    return size


def product(plain, apply, double share):
    """``apply(one, two)``, a product of vectors and matrices, before `plain`: `at_once.product`."""

    def method(one, two):
        cdef double additions
        if not is_ours(one) or not is_ours(two):
            return plain(one, two)
        left = host_of(one)
        right = host_of(two)
        if left is None or right is None:
            return plain(one, two)
        left = memory(left, one)
        right = memory(right, two)
        shape = get(two, h_shape)
        additions = left.size
        if PyTuple_GET_SIZE(shape) > 1:
            additions *= <Py_ssize_t>(<tuple>shape)[-1]
        if not is_affordable(max(additions, <double>right.size) / share):
            return plain(one, two)
        value = calculated(apply, left, right)
        return plain(one, two) if value is LATER else made(value, None, device_of(one))

    return method


def result(value, device):
    """`present.made`."""
    return made(value, None, device)


# -- recording -------------------------------------------------------------------------------------

cdef object orderly(object handle):
    """The node of an array that lies in C order, or None: `handle.node_of`, `build.view`."""
    view = get(handle, h_view)
    if view is None:
        return get(storage_of(handle), s_node)
    if get(view, v_ordered) is not True:
        return None
    node = get(storage_of(handle), s_node)
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
        if not is_ours(self):
            return plain(self, other)
        host = host_of(self)
        if host is not None:
            answer = at_once(apply, weight, self, other, host)
            return plain(self, other) if answer is LATER else answer
        shape = get(self, h_shape)
        kind = type(other)
        if kind is ARRAY:
            if not is_ours(other):
                return plain(self, other)
            if buffer_of(self) is not None and host_of(other) is not None:
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
        if not is_ours(self) or not (kind is float or kind is int):
            return plain(self, other)
        host = host_of(self)
        if host is not None:
            answer = at_once(swapped, weight, self, other, host)
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
        if not is_ours(self):
            return plain(self)
        array = host_of(self)
        shape = get(self, h_shape)
        if array is not None:
            array = memory(array, self)
            if not is_affordable(array.size * weight):
                return plain(self)
            if use_here(self) is AS_A_WHOLE and array.size * weight > few_additions:
                return plain(self)
            value = calculated(apply, array, None)
            if value is LATER:
                return plain(self)
            is_whole = peek(self, h_view) == <PyObject *>None
            return made(value, shape if is_whole else None, device_of(self))
        op = loops.get(get(self, h_dtype))
        if op is None or not <tuple>shape:
            return plain(self)
        node = orderly(self)
        return plain(self) if node is None else record(op, (node,), shape)

    return method


include "_compiled_calls.pxi"
include "_compiled_views.pxi"
include "_compiled_subscripts.pxi"


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
        answer = with_options(self, args, kwargs)
        return plain(self, *args, **kwargs) if answer is LATER else answer

    return __call__


include "_compiled_creation.pxi"
include "_compiled_graph.pxi"
include "_compiled_buffers.pxi"
