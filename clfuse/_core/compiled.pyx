# cython: language_level=3, annotation_typing=False, binding=True, auto_pickle=False
"""The common cases of recording, in C, and operations on small arrays that are done at the call.

`clfuse._core.loading` loads it, `clfuse.classes.acceleration` puts it before the methods of arrays
and into the slots of their class. Every function here is given a plain one, which it asks in every
case that is not its own. Of what is recorded the plain one does the same: this is how it is done
sooner. Small arrays (``eager_*.pxi``) are calculated here alone; the plain one records them.

Objects keep the classes that they have in Python. Their slots are read and filled where the class's
own descriptors say that they lie, which takes a fifth of asking for an attribute. New objects come
from `PyType_GenericAlloc`, as from ``object.__new__``.
"""

cimport cython
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from cpython.weakref cimport PyWeakref_NewRef
from libc.math cimport ceil, signbit
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

cdef extern from "Python.h":
    ctypedef struct PyMemberDef:
        Py_ssize_t offset
    ctypedef struct PyMemberDescrObject:
        PyMemberDef *d_member
    object PyType_GenericAlloc(PyTypeObject *, Py_ssize_t)
    int PyContext_Enter(object) except -1
    int PyContext_Exit(object) except -1
    int PyContextVar_Get(object, PyObject *, PyObject **) except -1
    Py_ssize_t Py_REFCNT(PyObject *)
    int PySlice_Unpack(object, Py_ssize_t *, Py_ssize_t *, Py_ssize_t *) except -1
    Py_ssize_t PySlice_AdjustIndices(Py_ssize_t, Py_ssize_t *, Py_ssize_t *, Py_ssize_t)
    long PyLong_AsLongAndOverflow(object, int *) except? -1
    double PyFloat_AS_DOUBLE(object)
    object PyObject_CallObject(object, object)
    PyObject *PyList_GET_ITEM(object, Py_ssize_t)
    Py_ssize_t PyDict_Size(object) except -1
    PyObject *PyEval_GetGlobals()
    object PyObject_Vectorcall(object, PyObject **, size_t, PyObject *)
    tuple PyTuple_New(Py_ssize_t)
    void PyTuple_SET_ITEM(tuple, Py_ssize_t, PyObject *)
    ctypedef struct PyTupleObject:
        PyObject *ob_item[1]
    object PyObject_Call(object, object, PyObject *)
    object PyVectorcall_Call(object, object, object)
    object PyMethod_New(object, object)
    Py_ssize_t PyVectorcall_NARGS(size_t)
    ctypedef object (*vectorcallfunc)(object, PyObject **, size_t, PyObject *)

cdef extern from *:
    """
    #ifndef CLFUSE_SOURCE
    #define CLFUSE_SOURCE ""
    #endif
    """
    const char *CLFUSE_SOURCE

SOURCE = CLFUSE_SOURCE.decode()
"""The hash of the text that this was compiled from."""


include "type_slots.pxi"
include "writing_threads.pxi"
include "numpy_api.pxi"
include "kept_memory.pxi"
include "free_lists.pxi"
include "fronts.pxi"
include "scalar_operands.pxi"
include "ufunc_loops.pxi"


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
    handle = clfuse_new_array(<PyTypeObject *>ARRAY)
    fill(handle, h_cell, storage)
    fill(handle, h_shape, shape)
    fill(handle, h_dtype, dtype)
    fill(handle, h_view, view)
    return handle


cdef object new_storage(object node):
    storage = PyType_GenericAlloc(<PyTypeObject *>Storage, 0)
    fill(storage, s_node, node)
    return storage


include "unstored_arrays.pxi"
include "host_memory.pxi"
include "basic_indices.pxi"
include "temporaries.pxi"


cdef extern from *:
    """
    #if PY_VERSION_HEX >= 0x030D0000
    static PyObject *clfuse_referent(PyObject *reference) {  /* a new reference, to None where it is gone */
        PyObject *found;
        int state = PyWeakref_GetRef(reference, &found);
        return state > 0 ? found : state < 0 ? NULL : Py_NewRef(Py_None);
    }
    #else
    static PyObject *clfuse_referent(PyObject *reference) {  /* a new reference, to None where it is gone */
        PyObject *found = PyWeakref_GET_OBJECT(reference);
        Py_INCREF(found);
        return found;
    }
    #endif
    """
    object clfuse_referent(object)
    void PyObject_GC_UnTrack(PyObject *)


def pending(list references):
    """As `ir.nodes.pending`."""
    cdef list kept = []
    for reference in references:
        found = clfuse_referent(reference)
        if found is None:
            continue
        if look(look(<PyObject *>found, s_node), n_buffer) == <PyObject *>None:
            kept.append(reference)
    return kept


cdef int tell(object node) except -1:
    """Tell who wants to know that a node was recorded (`events.recorders`)."""
    for each in recorders:
        each(node)
    return 0


cdef object record(object op, object inputs, object shape):
    """As `arrays.handle.recorded_array`."""
    dtype = get(op, o_dtype)
    node = new_node(op, inputs, shape, dtype, None)
    storage = new_storage(node)
    reference = PyWeakref_NewRef(storage, None)
    # Python's collector has nothing to find in what is recorded: an operation refers to what was
    # there before it. It would look through all of that again and again.
    PyObject_GC_UnTrack(<PyObject *>node)
    PyObject_GC_UnTrack(<PyObject *>inputs)
    PyObject_GC_UnTrack(<PyObject *>reference)
    recorded.append(reference)
    operations.append(op)
    if recorders:
        tell(node)
    if len(recorded) >= <Py_ssize_t>check_at[0]:
        check()
    return new_handle(storage, shape, dtype, None)


cdef object made(object value, object like, object device):
    """As `arrays.host_array.wrap_result`; `like` is a shape that is used again where it is that of the value."""
    cdef PyObject *array = <PyObject *>value
    cdef PyObject *dtype
    if type(value) is not NUMPY:
        return plain_made(value, device) if standard[0] else value
    dtype = native_dtype(array)
    if dtype == NULL:
        return value
    if array_size(array) * nbytes_of((<PyArray_Descr *>dtype).type_num) > kept_nbytes:
        return plain_made(value, device)
    if not array_flags(array) & IN_C_ORDER:
        if not array_flags(array) & IN_FORTRAN_ORDER:
            return plain_made(value, device)
        return made_in_fortran_order(value, <object>dtype, device)
    shape = like if like is not None and is_shape(array, <tuple>like) else shape_of(array)
    return new_alone(value, shape, <object>dtype, device)


cdef object made_in_fortran_order(object value, object dtype, object device):
    """As `arrays.memory_order.turned_back`, of all axes."""
    cdef PyObject *array = <PyObject *>value
    cdef Py_ssize_t stride = 1
    cdef int place
    turned = value.T
    whole = new_alone(turned, shape_of(<PyObject *>turned), dtype, device)
    strides = []
    for place in range(array_rank(array)):
        strides.append(stride)
        stride *= array_extents(array)[place]
    view = PyType_GenericAlloc(<PyTypeObject *>View, 0)
    shape = shape_of(array)
    fill(view, v_base, None)
    fill(view, v_offset, 0)
    steps = tuple(strides)
    fill(view, v_strides, steps)
    fill(view, v_ordered, in_order(shape, steps))
    fill(view, v_writeable, True)
    return new_handle(storage_of(whole), shape, dtype, view)


# -- operations at the call ------------------------------------------------------------------------

cdef double most_additions = -1  # that are done at once
cdef double allowed_most = 0, allowance = 0  # additions: of one operation, and of all that come
cdef double allowed_so_far = 0
cdef double fresh_most = 0  # additions that memory takes for a large result, at most
cdef bint is_cut = False  # an allowance has ended, maybe in the midst of a round
cdef bint is_allowing = False  # by the settings
cdef bint is_allowed_kernels = False  # the work of kernels, too


def settle():
    """Settings have changed."""
    global most_additions, is_allowing
    host_us = settings.get("host_us")  # None where no setting has been read
    is_asked_for = host_us is not None and settings["fusion"] is True
    most_additions = <double>host_us * additions_a_us if is_asked_for else -1
    is_allowing = most_additions > 0 and settings.get("build_after_ms") != 0
    settle_batches()


def allow(double most, double additions, bint with_kernels=False, double fresh=0):
    """Let so much work be done at once by operations of at most so much each, also those that
    kernels do as a rule: `policy.allowance`. The memory of the largest results is `fresh`, in
    additions."""
    global allowed_most, allowance, is_allowed_kernels, fresh_most
    allowed_most, allowance, is_allowed_kernels, fresh_most = most, additions, with_kernels, fresh


def allowed():
    """What is left of it, the most work of one operation, and the memory of a result."""
    return allowance, allowed_most, fresh_most


def end_allowance():
    """Record everything from here on, wherever the program is."""
    global allowance, is_cut
    is_cut = is_cut or allowance > 0
    allowance = 0


def was_cut():
    """Whether an allowance has ended since this was asked for last, by its use or by another thread."""
    global is_cut
    before, is_cut = is_cut, False
    return before


def done_by_allowance():
    """Additions that were done at the call because an allowance covered them, since the start."""
    return allowed_so_far


cdef inline bint is_allowed(double additions) except -1:
    global allowance, allowed_so_far, is_cut, inner_loops
    cdef double taken, more = inner_loops * loop_additions
    inner_loops = 0
    if additions > allowed_most or not allowance or not is_allowing:
        return False
    if not is_allowed_kernels and additions in works_of_kernels:
        return False
    taken = additions + more + min(additions * fresh_share, fresh_most)
    if taken > allowance:
        allowance = 0  # from here on all is recorded, and not the large ones alone
        is_cut = True
        return False
    allowance -= taken
    allowed_so_far += additions + more
    return True


cdef inline bint is_affordable(double additions) except -1:
    """As `arrays.host_array.affordable`."""
    return additions <= most_additions or is_allowed(additions)


cdef inline bint is_little_by(object use, double additions) noexcept:
    """Whether it is little work, by what was done with the operands."""
    return additions <= most_additions or (
        use is BY_ROWS and additions <= most_additions * rows_share
    ) or (
        use is SELECTED and additions <= most_additions * selected_share
    )


cdef inline bint is_affordable_by(object use, double additions) except -1:
    """`is_affordable`, by what was done with the operands."""
    return is_little_by(use, additions) or is_allowed(additions)


cdef inline bint is_for_now(object use, double additions) except -1:
    """Whether work is not left to a kernel, with all that comes next: `arrays.host_array.affordable`."""
    note_work(additions)
    return (use is not AS_A_WHOLE and is_little_by(use, additions)) or is_known(additions)


cdef inline bint is_read_now(object use, double additions) except -1:
    """The same of functions that read, which have no chain to begin."""
    note_work(additions)
    return is_little_by(use, additions) or is_known(additions)


cdef inline bint is_known(double additions) except -1:
    if additions <= most_additions * rows_share and additions in known_works:
        return True
    return is_allowed(additions)


def is_done_at_once(double additions):
    """Whether so much work, of an operation without operands, is NumPy's at the call."""
    return is_known(additions)


cdef PyObject *users = NULL  # globals of the program; no reference, they are only compared


cdef bint is_users_line() except -1:
    """Whether no code of clfuse's own has called: NumPy's warnings name the right line then."""
    global users
    cdef PyObject *space = PyEval_GetGlobals()
    if space == users:
        return users != NULL
    if space == NULL:
        return False
    name = (<dict>space).get("__name__")
    if type(name) is str and (name == "clfuse" or (<str>name).startswith("clfuse.")):
        return False
    users = space
    return True


cdef inline bint is_left_to_numpy() except -1:
    """Whether NumPy may warn as it likes of what it does for a call now."""
    cdef PyObject *mood = PyList_GET_ITEM(mode, 0)
    return mood == <PyObject *>QUIET or (mood == <PyObject *>LOUD and is_users_line())


cdef object asked(binaryfunc operator, object function, object one, object two):
    """``operator(one, two)``, where there is one, or `function` of one or two operands."""
    if not is_large_work:
        return asked_plainly(operator, function, one, two)
    before = PyDataMem_SetHandler(keeper)
    try:
        return asked_plainly(operator, function, one, two)
    finally:
        PyDataMem_SetHandler(before)


cdef object asked_with(object function, tuple held, tuple names):
    """A call of a function of NumPy's; the last of the arguments have these names, if any."""
    cdef Py_ssize_t given = PyTuple_GET_SIZE(held)
    cdef PyObject *named = NULL
    if names is not None:
        given -= PyTuple_GET_SIZE(names)
        named = <PyObject *>names
    if not is_large_work:
        return PyObject_Vectorcall(function, items_of(held), given, named)
    before = PyDataMem_SetHandler(keeper)
    try:
        return PyObject_Vectorcall(function, items_of(held), given, named)
    finally:
        PyDataMem_SetHandler(before)


cdef inline object asked_plainly(binaryfunc operator, object function, object one, object two):
    cdef PyObject *operands[2]
    if operator != NULL:
        return operator(one, two)
    operands[0] = <PyObject *>one
    operands[1] = <PyObject *>two
    return PyObject_Vectorcall(function, operands, 1 if two is None else 2, NULL)


cdef object attempted(
    binaryfunc operator, object function, object one, object two, tuple held, tuple names
):
    """What NumPy answers; its error where it would warn. Of `asked`, or of `asked_with` where
    arguments are `held`."""
    global inside
    cdef bint is_first = not inside
    # One at a time may be in a context.
    entered = context if is_first else raising()
    PyContext_Enter(entered)
    if is_first:
        inside = True
    try:
        if held is not None:
            return asked_with(function, held, names)
        return asked(operator, function, one, two)
    except FloatingPointError as error:
        return error
    finally:
        if is_first:
            inside = False
        PyContext_Exit(entered)


cdef object calculated(binaryfunc operator, object function, object one, object two):
    """What NumPy answers, with warnings that name the user's line, as
    `arrays.numpy_calls.call_at_user_line`."""
    if mode[0] is not LOUD or is_users_line():
        return asked(operator, function, one, two)
    value = attempted(operator, function, one, two, None, None)
    if type(value) is not FloatingPointError:
        return value
    with warning_of(name_in(value)):
        return asked(operator, function, one, two)


cdef object called(object function, tuple held, tuple names):
    """The same of `asked_with`, one loop of NumPy's."""
    if mode[0] is not LOUD or is_users_line():
        return asked_with(function, held, names)
    value = attempted(NULL, function, None, None, held, names)
    if type(value) is not FloatingPointError:
        return value
    with warning_of(name_in(value)):
        return asked_with(function, held, names)


cdef object number_on_host(object value):
    """The scalar of NumPy's that a lazy one on the host is; `DEFER` of all else."""
    cdef PyObject *cell
    if type(value) not in lazy_scalars:
        return DEFER
    cell = peek(value, h_cell)
    if cell == NULL or type(<object>cell) is not Storage or (
        type(<object>look(look(cell, s_node), n_buffer)) is not HostBuffer
    ):
        return DEFER
    return computed_number(value)


cdef object stored_here(object handle, object beside, double weight):
    """`here` of an array that a device has stored, brought to the host to be calculated with
    another one that lies there; None where nobody waits for that."""
    cdef double additions = size_of(handle) * weight
    use = IN_PARTS if additions <= few_additions else use_here(beside)
    return stored(handle) if is_for_now(use, additions) else None


cdef object stored(object handle):
    """`here` of an array that is ours and not on the host: brought there, if a device has stored
    it; else None."""
    node = get(storage_of(handle), s_node)
    if type(<object>peek(node, n_buffer)) is not DeviceBuffer or not bring(node, looked_at_nbytes):
        return None
    return here(handle)


cdef bint is_for_kernels = False
"""Whether the last answer `DEFER` of the two functions below was because of the work alone: what they
were asked is recorded then, and nobody has to look at the operands again."""


cdef object at_once(
    binaryfunc operator, object function, double weight, UfuncLoops own_loops, bint of_one_dtype, object ours,
    object other, bint is_second, int number_of_operator, int spare
):
    """``operator(ours, other)``, or of these in the other order where ours `is_second`; `DEFER`
    where not all lies on the host or it has to be done elsewhere.

    `own_loops` are those of its ufunc, or None; `of_one_dtype` is whether a number may come as
    an array of the other operand's dtype; `spare`, which operands may be temporaries: only with the
    `number_of_operator`."""
    global is_for_kernels, inner_loops
    cdef double additions
    cdef bint is_little, is_number = False
    kind = type(other)
    is_for_kernels = False
    inner_loops = 0
    one = here(ours)
    if one is None:
        return DEFER
    if kind is list or kind is tuple:
        other = listed(other)
        if other is DEFER:
            return DEFER
        kind = NUMPY
    if kind is ARRAY:
        if not is_ours(other):
            return DEFER
        two = here(other) if is_on_host(other) else stored_here(other, ours, weight)
        if two is None:
            return DEFER
        additions = stretched_size(<PyObject *>one, <PyObject *>two) * weight
    elif kind is float or kind is int or kind in scalars:
        two = other
        is_number = True
        additions = array_size(<PyObject *>one) * weight
    elif kind is NUMPY and native_dtype(<PyObject *>other) != NULL:
        two = other
        additions = stretched_size(<PyObject *>one, <PyObject *>two) * weight
    else:
        two = number_on_host(other)
        if two is DEFER:
            return DEFER
        is_number = True
        additions = array_size(<PyObject *>one) * weight
    # Where they do not fit it is less than nothing, and NumPy says so.
    is_little = additions <= few_additions
    use = IN_PARTS
    if not is_little:
        use = use_here(ours)
        if kind is ARRAY:
            use = max(use, use_here(other))
        # All pairs of what was selected are the beginning of something else.
        if use is SELECTED and additions > weight * array_size(<PyObject *>one) and (
            is_number or additions > weight * array_size(<PyObject *>two)
        ):
            use = IN_PARTS
    if not is_for_now(use, additions):
        is_for_kernels = True
        return DEFER
    value = None
    if own_loops is not None and additions <= MOST_LOOPED:
        value = looped(own_loops, <PyObject *>one, two, is_second)
    if value is None:
        number = None
        if is_number and of_one_dtype:
            number = number_like(<PyObject *>one, two)
            if number is not None:
                two = number
        answer = DEFER
        if spare and type(two) is NUMPY:
            answer = reused(number_of_operator, spare, ours, other, one, two, is_second)
        if answer is DEFER:
            if is_second:
                value = calculated(operator, function, two, one)
            else:
                value = calculated(operator, function, one, two)
        if number is not None:
            two = None
            number_back(number)
        if answer is not DEFER:
            if use is BY_ROWS or use is SELECTED:
                note_here(answer, use)
            return answer
    answer = made(value, get(ours, h_shape), device_of(ours))
    if (use is BY_ROWS or use is SELECTED) and type(answer) is ARRAY:
        note_here(answer, use)
    return answer


cdef object at_once_alone(
    unaryfunc operator, object function, double weight, UfuncLoops own_loops, object ours, bint is_spare
):
    """As `at_once`, of one operand, which may be a temporary if it `is_spare`."""
    global is_for_kernels, inner_loops
    cdef double additions
    is_for_kernels = False
    inner_loops = 0
    one = here(ours)
    if one is None:
        return DEFER
    additions = array_size(<PyObject *>one) * weight
    use = IN_PARTS if additions <= few_additions else use_here(ours)
    if not is_for_now(use, additions):
        is_for_kernels = True
        return DEFER
    if is_spare and is_reused_alone(ours, one, function):
        if use is SELECTED:
            note_here(ours, use)
        return ours
    value = None
    if own_loops is not None and additions <= MOST_LOOPED:
        value = looped(own_loops, <PyObject *>one, None, False)
    if value is None and operator != NULL and not is_large_work and is_left_to_numpy():
        value = operator(one)
    elif value is None:
        value = calculated(NULL, function, one, None)
    answer = made(value, get(ours, h_shape), device_of(ours))
    if use is SELECTED and type(answer) is ARRAY:
        note_here(answer, use)
    return answer


cdef object product_at_once(object one, object two):
    """``one @ two``, or `DEFER`."""
    cdef double additions
    cdef PyObject *second
    left = factor(one, two)
    right = DEFER if left is DEFER else factor(two, one)
    if right is DEFER:
        if not is_ours(one) or not is_ours(two) or not bring_factors(one, two):
            return DEFER
        left, right = factor(one, two), factor(two, one)
        if left is DEFER or right is DEFER:
            return DEFER
    second = <PyObject *>right
    additions = array_size(<PyObject *>left)
    if array_rank(second) > 1:
        additions *= array_extents(second)[array_rank(second) - 1]
    if not is_affordable(max(additions, array_size(second)) / product_share):
        return DEFER
    if type(one) is ARRAY or type(two) is ARRAY:
        device = device_of(one if type(one) is ARRAY else two)
    else:
        device = current_device()
        if device is None:
            return DEFER
    value = product_of_vectors(<PyObject *>left, second)
    if value is None:
        value = calculated(numpys.nb_matrix_multiply, None, left, right)
    return made(value, None, device)


cdef object factor(object one, object other):
    """A vector or matrix on the host, or NumPy's or a list beside one, as NumPy's array; or `DEFER`."""
    if type(one) is ARRAY:
        array = here(one) if is_ours(one) else None
        return DEFER if array is None else array
    if type(one) is NUMPY:
        return one if is_numpys_own(one) and native_dtype(<PyObject *>one) != NULL else DEFER
    return listed(one) if type(other) is ARRAY else DEFER


def product(plain):
    """``one @ two``, a product of vectors and matrices, before `plain`."""

    def method(one, two):
        answer = product_at_once(one, two)
        return plain(one, two) if answer is DEFER else answer

    return method


def result(value, device):
    """`arrays.host_array.wrap_result`."""
    return made(value, None, device)


# -- recording -------------------------------------------------------------------------------------

cdef object orderly(object handle):
    """The node of an array that lies in C order, or None: `arrays.handle.node_of`, `ir.build.view`."""
    view = sight_of(handle)
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
    offset, strides = get(view, v_offset), get(view, v_strides)
    op = views.get(get(node, n_dtype))
    if op is None:
        return node_of(handle)
    for extent in <tuple>get(node, n_shape):
        if extent != 1:
            break
    else:
        return node_of(handle)
    if 1 in <tuple>shape:
        strides = without_unit_strides(<tuple>shape, <tuple>strides)
    if offset == 0 and shape == get(node, n_shape) and is_contiguous(<tuple>shape, <tuple>strides):
        return node
    made = new_node(op, (node,), shape, get(handle, h_dtype), None)
    refill(made, n_param, (offset, strides))
    return made


cdef inline bint is_number_here(object handle):
    """Whether it is one number that lies on the host: `arrays.host_array.operand_of` takes it."""
    for extent in <tuple>get(handle, h_shape):
        if extent != 1:
            return False
    return is_on_host(handle)


cdef inline object constant_for(object op, object value, Py_ssize_t place):
    """The node of a Python number that was met before, or None: `arrays.promotion.constant_of`."""
    if value != value or (not value and type(value) is float and signbit(PyFloat_AS_DOUBLE(value))):
        return None
    return constants.get(((<tuple>get(op, o_input_dtypes))[place], value))


def binary(plain, apply, double weight, dict loops, bint of_numbers):
    """``self + other``, before `plain`; without `of_numbers` plain records those with numbers."""

    def method(self, other):
        if not is_ours(self):
            return plain(self, other)
        is_here = is_on_host(self)
        if is_here:
            answer = at_once(
                NULL, apply, weight, None, False, self, other, False, 0, NOTHING_SPARE
            )
            if answer is not DEFER:
                return answer
            if not is_for_kernels:
                return plain(self, other)
        shape = get(self, h_shape)
        kind = type(other)
        if kind is ARRAY:
            if not is_ours(other):
                return plain(self, other)
            if not is_here and is_on_host(other) and (
                stored_here(self, other, weight) is not None
            ):
                answer = at_once(
                    NULL, apply, weight, None, False, self, other, False, 0, NOTHING_SPARE
                )
                if answer is not DEFER:
                    return answer
            op = loops.get((get(self, h_dtype), get(other, h_dtype)))
            if op is None:
                return plain(self, other)
            if shape is not get(other, h_shape) and shape != get(other, h_shape):
                if is_number_here(self) or is_number_here(other):
                    return plain(self, other)
                shape = common_shape(<tuple>shape, <tuple>get(other, h_shape))
            if not shape:  # none, or that of a scalar
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

    def method(self, other):
        kind = type(other)
        if not is_ours(self) or not (kind is float or kind is int):
            return plain(self, other)
        if is_on_host(self):
            answer = at_once(
                NULL, apply, weight, None, False, self, other, True, 0, NOTHING_SPARE
            )
            if answer is not DEFER:
                return answer
            if not is_for_kernels:
                return plain(self, other)
        answer = recorded_after(loops, other, self)
        return plain(self, other) if answer is DEFER else answer

    return method


cdef object recorded_after(dict loops, object number, object self):
    """``operator(number, self)``, of a Python number and an array that does not lie on the host,
    recorded; `DEFER` where plain has to."""
    shape = get(self, h_shape)
    op = loops.get((type(number), get(self, h_dtype)))
    if op is None or not <tuple>shape:
        return DEFER
    left = constant_for(op, number, 0)
    right = None if left is None else orderly(self)
    return DEFER if right is None else record(op, (left, right), shape)


def unary(plain, apply, double weight, dict loops):
    """``-self``, before `plain`."""

    def method(self):
        if not is_ours(self):
            return plain(self)
        if is_on_host(self):
            answer = at_once_alone(NULL, apply, weight, None, self, False)
            if answer is not DEFER:
                return answer
            if not is_for_kernels:
                return plain(self)
        shape = get(self, h_shape)
        op = loops.get(get(self, h_dtype))
        if op is None or not <tuple>shape:
            return plain(self)
        node = orderly(self)
        return plain(self) if node is None else record(op, (node,), shape)

    return method


include "choices.pxi"
include "kernel_batches.pxi"
include "kernel_calls.pxi"
include "eager_calls.pxi"
include "record_cache.pxi"
include "eager_views.pxi"
include "eager_indexing.pxi"


include "eager_operators.pxi"
include "numpy_scalars.pxi"
include "numpy_class.pxi"
include "eager_ufuncs.pxi"
include "eager_creation.pxi"
include "known_graphs.pxi"
include "launches.pxi"
include "guard_pages.pxi"
include "known_evaluations.pxi"
include "speculative_launches.pxi"
include "looks.pxi"
include "computed_scalars.pxi"
include "number_receivers.pxi"
include "buffer_protocol.pxi"
include "philox.pxi"
include "single_draws.pxi"
include "rejection.pxi"
include "rejection_blocks.pxi"
include "several_draws.pxi"
include "scalar_formulas.pxi"
include "known_draws.pxi"
include "permutations.pxi"
