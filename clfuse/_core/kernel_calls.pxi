"""Calls of kernels that came before: a part of `compiled.pyx`. What is compared, and the steps
that are carried out, are written down by `clfuse.user_kernels.language.calls.call_cache`, which says what it is for."""

from functools import update_wrapper

cdef extern from "Python.h":
    PyObject *PyCell_GET(PyObject *)
    PyObject *PyDict_GetItemWithError(object, object) except? NULL

cdef enum:
    MOST_CELLS = 16  # as `user_kernels.language.calls.call_cache.MOST_CELLS`
    VIEW_STEP = 0  # as `user_kernels.language.calls.call_cache._Code`
    ELEMENTWISE_STEP
    FILLED_STEP
    UPDATE_STEP
    NUMBER_STEP
    CONVERTED_STEP
    ITSELF = 0  # as `user_kernels.language.calls.call_cache._Argument`
    VALUE
    PLACE
    NUMBER
    SEVERAL

cdef Py_ssize_t n_kernel, y_full
cdef object KernelClass = None, PartNode
cdef object step_view, step_update, step_filled, step_number, step_converted


def connect_kernels(kernel, names):
    """Take what is used here, and come before the methods of this class."""
    global n_kernel, y_full, KernelClass, PartNode
    global step_view, step_update, step_filled, step_number, step_converted
    if names["MOST_CELLS"] > MOST_CELLS:
        raise ValueError(f"at most {MOST_CELLS} cells are compared")
    n_kernel, y_full = _offset(names["Node"], "kernel"), _offset(type(boundary), "full")
    KernelClass, PartNode = kernel, names["Part"]
    step_view, step_update, step_filled = names["view"], names["update"], names["filled"]
    step_number, step_converted = names["number"], names["converted"]
    kernel.reduce = update_wrapper(reducing(kernel.reduce, names["operations"]), kernel.reduce)
    kernel._values = update_wrapper(valued(kernel._values), kernel._values)


# -- steps of recipes ------------------------------------------------------------------------------

cdef inline bint is_plain_node(object node) noexcept:
    """Whether its slots say what it is."""
    return type(node) is Node or type(node) is PartNode


cdef double elements(object shape) except -1:
    cdef double size = 1
    cdef Py_ssize_t extent
    for extent in <tuple>shape:
        size *= extent
    return size


cdef object viewed(object node, object shape, object offset, object strides, bint is_whole):
    """As `ir.build.view`; `is_whole`: the strides are those of C order."""
    cdef Py_ssize_t extent
    own = get(node, n_shape)
    if is_whole and offset == 0 and (shape is own or shape == own):
        return node
    op = views.get(get(node, n_dtype))
    if op is None or not is_plain_node(node):
        return step_view(node, shape, offset, strides)
    if get(get(node, n_op), o_kind) is VIEW and peek(node, n_buffer) == <PyObject *>None:
        return step_view(node, shape, offset, strides)
    for extent in <tuple>own:
        if extent != 1:
            break
    else:
        return step_view(node, shape, offset, strides)
    inputs = (node,)
    made = new_node(op, inputs, shape, get(node, n_dtype), None)
    refill(made, n_param, (offset, strides))
    return untracked(made, inputs)


cdef object updated(object old, object value, object offset, object strides, bint is_whole):
    """As `ir.build.update`; `is_whole`: the strides are those of the value's C order."""
    cdef double size
    dtype, shape = get(old, n_dtype), get(value, n_shape)
    op = updates.get(dtype)
    if op is None or get(value, n_dtype) is not dtype:
        return step_update(old, value, offset, strides)
    size = elements(shape)
    if size == 0:
        return old
    if offset == 0 and size == elements(get(old, n_shape)):
        if is_whole and shape == get(old, n_shape):
            return value
        return step_update(old, value, offset, strides)
    inputs = (old, value)
    made = new_node(op, inputs, get(old, n_shape), dtype, None)
    refill(made, n_param, (offset, strides))
    return untracked(made, inputs)


cdef inline object untracked(object node, object inputs):
    """As in `record`."""
    PyObject_GC_UnTrack(<PyObject *>node)
    PyObject_GC_UnTrack(<PyObject *>inputs)
    return node


cdef object numbered(object value, object dtype):
    """As `user_kernels.language.array_route.steps.number`."""
    if type(value) is complex or value != value or (
        not value and type(value) is float and signbit(PyFloat_AS_DOUBLE(value))
    ):
        return step_number(value, dtype)
    node = constants.get((dtype, value))
    return step_number(value, dtype) if node is None else node


cdef object standing_for(tuple item, list values, list offsets, list numbers):
    """An argument of a step of another kind."""
    cdef int kind = item[0]
    if kind == VALUE:
        return values[<Py_ssize_t>item[1]]
    if kind == PLACE:
        return offsets[<Py_ssize_t>item[1]] + item[2]
    if kind == NUMBER:
        return numbers[<Py_ssize_t>item[1]]
    if kind == SEVERAL:
        return tuple([standing_for(part, values, offsets, numbers) for part in item[1]])
    return item[1]


cdef object carried_out(tuple step, list values, list offsets, list numbers):
    """What a step gives."""
    cdef int code = step[0]
    cdef Py_ssize_t array
    if code == ELEMENTWISE_STEP:
        _, _, op, operands, shape = step
        inputs = tuple([
            values[<Py_ssize_t>operand] if type(operand) is int else operand
            for operand in <tuple>operands
        ])
        return untracked(new_node(op, inputs, shape, get(op, o_dtype), None), inputs)
    if code == VIEW_STEP:
        _, _, source, shape, number, offset, strides, is_whole = step
        array = number
        if array >= 0:
            offset = offsets[array] + offset
        return viewed(values[<Py_ssize_t>source], shape, offset, strides, is_whole)
    if code == FILLED_STEP:
        _, _, source, dtype, shape = step
        node = values[<Py_ssize_t>source]
        if get(node, n_dtype) is dtype and get(node, n_shape) == shape:
            return node
        return step_filled(node, dtype, shape)
    if code == UPDATE_STEP:
        _, _, old, value, number, offset, strides, is_whole = step
        array = number
        if array >= 0:
            offset = offsets[array] + offset
        return updated(
            values[<Py_ssize_t>old], values[<Py_ssize_t>value], offset, strides, is_whole
        )
    if code == NUMBER_STEP:
        return numbered(numbers[<Py_ssize_t>step[2]], step[3])
    if code == CONVERTED_STEP:
        node = values[<Py_ssize_t>step[2]]
        return node if get(node, n_dtype) is step[3] else step_converted(node, step[3])
    arguments = tuple([standing_for(item, values, offsets, numbers) for item in step[3]])
    return PyObject_CallObject(step[2], arguments)


cdef int rebind(object storage, object node) except -1:
    """As `ir.nodes.rebind`."""
    refill(storage, s_node, node)
    noted(storage)
    if type(node) is not Node:
        operations.append(node.place())
    elif get(get(node, n_op), o_kind) is UPDATE:
        operations.append(get(node, n_param))
    else:
        operations.append(Storage)
    if recorders:
        tell(node)
    if len(recorded) >= <Py_ssize_t>check_at[0]:
        check()
    if get(boundary, y_full) is True:
        refill(boundary, y_due, True)
    return 0


cdef int noted(object storage) except -1:
    reference = PyWeakref_NewRef(storage, None)
    PyObject_GC_UnTrack(<PyObject *>reference)
    recorded.append(reference)
    return 0


cdef object fresh(object node):
    """As `arrays.handle.fresh`."""
    storage = new_storage(node)
    noted(storage)
    operations.append(get(node, n_op) if type(node) is Node else object())
    if recorders:
        tell(node)
    if len(recorded) >= <Py_ssize_t>check_at[0]:
        check()
    return new_handle(storage, get(node, n_shape), get(node, n_dtype), None)


# -- calls -----------------------------------------------------------------------------------------

cdef bint are_same_ranges(object given, object known) except -1:
    cdef Py_ssize_t place
    if given is known:
        return True
    if type(given) is not type(known):
        return False
    if type(given) is tuple:
        if PyTuple_GET_SIZE(given) != PyTuple_GET_SIZE(known):
            return False
        for place in range(PyTuple_GET_SIZE(given)):
            if not are_same_ranges(
                <object>PyTuple_GET_ITEM(given, place), <object>PyTuple_GET_ITEM(known, place)
            ):
                return False
        return True
    return (type(given) is int or type(given) is range) and given == known


cdef PyObject *cell_as_known(object argument, tuple wanted) except? NULL:
    """The cell of an array whose type and layout are those of the earlier call; NULL else."""
    cdef PyObject *cell = cell_in(argument)
    cdef PyObject *view = peek(argument, h_view)
    if cell == NULL or view == NULL or type(<object>cell) is not Storage:
        return NULL  # on the host: Python makes them
    if get(argument, h_dtype) is not <object>PyTuple_GET_ITEM(wanted, 2):
        return NULL
    if get(argument, h_shape) != <object>PyTuple_GET_ITEM(wanted, 1):
        return NULL
    if view == <PyObject *>None:
        if PyTuple_GET_ITEM(wanted, 3) != <PyObject *>None:
            return NULL
    elif (
        type(<object>view) is not View
        or look(view, v_writeable) != PyTuple_GET_ITEM(wanted, 4)
        or get(<object>view, v_strides) != <object>PyTuple_GET_ITEM(wanted, 3)
    ):
        return NULL
    node = <object>look(cell, s_node)
    if not is_plain_node(node) or get(node, n_dtype) is not <object>PyTuple_GET_ITEM(wanted, 5):
        return NULL
    return cell


cdef bint is_known_number(object argument, tuple wanted) except -1:
    """Whether a number, or a lazy scalar, is of the kind of the earlier call; and of its value,
    where the recipe depends on that."""
    cdef PyObject *cell
    about = <object>PyTuple_GET_ITEM(wanted, 2)
    if type(argument) not in lazy_scalars:
        return about is None or argument == about
    cell = peek(argument, h_cell)
    return (
        cell != NULL
        and type(<object>cell) is Storage
        and peek(argument, h_view) == <PyObject *>None
        and is_plain_node(<object>look(cell, s_node))
        and get(<object>look(cell, s_node), n_dtype) is about
    )


cdef class KnownCall:
    """What a call of a kernel was, and what it became: see `user_kernels.language.calls.call_cache.remember`.

    `cells` is how many storage cells it had; values are numbered by these, then by the terms.
    """

    cdef readonly object recipe
    cdef object ranges, check, name
    cdef list expected, scopes, steps
    cdef tuple written, results
    cdef Py_ssize_t cells
    cdef bint may_batch
    # Of the call recorded last, for `speculative_launches.pxi`: pointers hold nothing.
    cdef bint waits
    cdef object ahead, fold, mode
    cdef list offsets, marks, shapes, sources
    cdef Py_ssize_t alone, together, unwatched, needed, roots, turn, moment
    cdef PyObject *places[MOST_CELLS]
    cdef PyObject *before[MOST_CELLS]
    cdef PyObject *after[MOST_CELLS]
    cdef PyObject *numbered[MOST_CELLS]

    def __init__(
        self, recipe, ranges, check, expected, scopes, cells, steps, written, results, may_batch
    ):
        self.recipe, self.ranges, self.check, self.name = recipe, ranges, check, recipe.name
        self.expected, self.scopes, self.steps = expected, scopes, steps
        self.written, self.results = written, results
        self.cells, self.may_batch = cells, may_batch
        self.needed = least_alone
        self.sources = [
            (place, step[2], step[3])
            for place, step in enumerate(steps) if step[0] == NUMBER_STEP
        ]
        if max(len(self.sources), len(written), len(results)) > MOST_CELLS or (
            written and results  # a fold is looked at without what it writes
        ):
            self.needed = MOST_ALONE

    cdef bint suits(self, tuple args, Py_ssize_t first, PyObject **cells) except -1:
        """Whether ``args[first:]``, ranges and arguments, are like those of the earlier call;
        `cells` are filled then."""
        cdef Py_ssize_t place, other, number, known = 0
        cdef Py_ssize_t starts[MOST_CELLS]
        cdef PyObject *cell
        cdef PyObject *found
        if PyTuple_GET_SIZE(args) - first - 1 != PyList_GET_SIZE(self.expected):
            return False
        if self.check is not checking:
            return False
        if not are_same_ranges(<object>PyTuple_GET_ITEM(args, first), self.ranges):
            return False
        for place in range(PyList_GET_SIZE(self.expected)):
            argument = <object>PyTuple_GET_ITEM(args, first + 1 + place)
            wanted = <tuple><object>PyList_GET_ITEM(self.expected, place)
            if type(argument) is not <object>PyTuple_GET_ITEM(wanted, 0):
                return False
            if PyTuple_GET_ITEM(wanted, 1) == <PyObject *>None:
                if not is_known_number(argument, wanted):
                    return False
                continue
            cell = cell_as_known(argument, wanted)
            if cell == NULL:
                return False
            offset = offset_in(argument)
            number = <object>PyTuple_GET_ITEM(wanted, 6)
            if number == known:
                for other in range(known):
                    if cells[other] == cell:
                        return False
                cells[known] = cell
                starts[known] = offset
                known += 1
            elif cells[number] != cell or offset != starts[number] + <Py_ssize_t>wanted[7]:
                return False
        for scope, name, value in self.scopes:
            if type(scope) is dict:
                found = PyDict_GetItemWithError(scope, name)
            else:
                found = PyCell_GET(<PyObject *>scope)
            if found != <PyObject *>value:
                return False
        return True

    cdef bint is_alone(
        self, object kernel, tuple args, Py_ssize_t first, PyObject **cells
    ) except -1:
        """Whether `Kernel._run` would not begin a batch with this call."""
        cdef Py_ssize_t number
        last = kernel._last
        if PyWeakref_CheckRefExact(last) and clfuse_referent(last) is not None:
            return False
        where = [<object><size_t><PyObject *>self.recipe]
        for number in range(self.cells):
            where.append(<object><size_t>cells[number])
        where += offsets_of(args, first)
        return tuple(where) in kernel._repeated

    cdef list made_again(self, tuple args, Py_ssize_t first, PyObject **cells, object fold):
        """Record the call; the nodes of what the kernel returns, which `fold` is for."""
        cdef Py_ssize_t number
        cdef bint may_be_alone = (
            may_launch_ahead and fold is not DEFER and self.needed < MOST_ALONE
        )
        if may_be_alone and self.unwatched:
            self.unwatched -= 1
            may_be_alone = False
        storages = [<object>cells[number] for number in range(self.cells)]
        values = [get(storage, s_node) for storage in storages]
        offsets, numbers = offsets_of(args, first), scalars_of(args, first)
        if may_be_alone:
            begin_alone(self, cells, offsets, fold)
        for item in self.steps:
            step = <tuple>item
            node = carried_out(step, values, offsets, numbers)
            number = step[1]
            if number < self.cells:
                values[number] = node
            else:
                while PyList_GET_SIZE(values) <= number:
                    values.append(None)
                values[number] = node
        results = [
            values[<Py_ssize_t>item] if type(item) is int else item for item in self.results
        ]
        nodes = [values[<Py_ssize_t>item] for item in self.written]
        if may_be_alone:
            for number in range(PyList_GET_SIZE(self.sources)):
                step = <tuple>self.steps[<Py_ssize_t>self.sources[number][0]]
                self.numbered[number] = PyList_GET_ITEM(values, <Py_ssize_t>step[1])
        values = None
        for number in range(PyList_GET_SIZE(nodes)):
            node = nodes[number]
            name_after(node, self.name)
            rebind(storages[<Py_ssize_t>self.written[number]], node)
        for node in results:
            name_after(node, self.name)
        if may_be_alone and fold is None:
            end_alone(self, [storages[<Py_ssize_t>item] for item in self.written])
        return results


cdef list offsets_of(tuple args, Py_ssize_t first):
    """Where the arrays of a call begin in their storages."""
    cdef Py_ssize_t place
    offsets = []
    for place in range(first + 1, PyTuple_GET_SIZE(args)):
        argument = <object>PyTuple_GET_ITEM(args, place)
        if type(argument) is ARRAY:
            offsets.append(offset_in(argument))
    return offsets


cdef list scalars_of(tuple args, Py_ssize_t first):
    """The numbers of a call; of lazy scalars their nodes."""
    cdef Py_ssize_t place
    numbers = []
    for place in range(first + 1, PyTuple_GET_SIZE(args)):
        argument = <object>PyTuple_GET_ITEM(args, place)
        if type(argument) in lazy_scalars:
            numbers.append(get(get(argument, h_cell), s_node))
        elif type(argument) is not ARRAY:
            numbers.append(argument)
    return numbers


cdef void name_after(object node, object kernel) noexcept:
    """Set `Node.kernel`."""
    empty(node, n_kernel)
    fill(node, n_kernel, kernel)


cdef object values_again(object kernel, tuple args, Py_ssize_t first, object fold):
    """Record a call as an earlier one, ``args[first:]`` being ranges and arguments: the nodes that
    the kernel returns, or a tuple of what `fold` makes of them where it was launched; `DEFER` where
    it has to be recorded in Python.

    `fold` is None where the kernel returns no value, and `DEFER` for what is no fold."""
    global begun
    cdef PyObject *cells[MOST_CELLS]
    if not may_append or PyList_GET_SIZE(bodies_running) or (
        get(boundary, y_due) is not False or PyList_GET_ITEM(tracers, 0) != <PyObject *>NONE_ALIVE
    ):
        return DEFER
    for item in <list>kernel.known:
        call = <KnownCall>item
        if (PyTuple_GET_SIZE(call.results) > 0) is (fold is None):
            continue
        if call.suits(args, first, cells):
            begun = None
            if not clfuse_has_company():
                return made_now(call, kernel, args, first, cells, fold)
            with turn_to_write:
                return made_now(call, kernel, args, first, cells, fold)
    return DEFER


cdef object made_now(
    KnownCall call, object kernel, tuple args, Py_ssize_t first, PyObject **cells, object fold
):
    """Launch a call or record it: as `values_again`."""
    if may_launch_ahead and call.ahead is not None:
        made = launched_ahead(call, args, first, cells, fold)
        if made is not DEFER:
            return made
    if call.may_batch and not call.is_alone(kernel, args, first, cells):
        return DEFER
    return call.made_again(args, first, cells, fold)


cdef list folded(list nodes, tuple how):
    """What a fold makes of the values that a kernel returns."""
    fold, function, known = how
    made = []
    for node in nodes:
        value = folded_again(function, <dict>known, node)
        made.append(fold(fresh(node)) if value is DEFER else value)
    if begun is not None:
        for value in made:
            if type(value) not in lazy_scalars or (
                type(value) is not scalar_classes.get(get(value, h_dtype))
            ):
                return made
        end_alone(begun, [get(value, h_cell) for value in made])
    return made


def valued(plain):
    """``kernel._values(ranges, args, named)``, before `plain`."""

    def _values(self, ranges, args, named):
        if not named and type(self) is KernelClass:
            nodes = values_again(self, (ranges, *args), 0, DEFER)
            if nodes is not DEFER:
                return [fresh(node) for node in <list>nodes]
        return plain(self, ranges, args, named)

    return _values


def reducing(plain, dict folds):
    """``kernel.reduce(ranges, *args, op=op)``, before `plain`.

    `folds` has by name a function, what `remembered` made it of, and what that knows."""

    def reduce(*args, **kwargs):
        if unseen is not None:
            was_in_vain()
        op = "sum"
        if kwargs:
            op = kwargs.get("op")
            if len(kwargs) > 1 or type(op) is not str:
                return plain(*args, **kwargs)
        found = folds.get(op)
        if found is None or PyTuple_GET_SIZE(args) < 2 or type(args[0]) is not KernelClass:
            return plain(*args, **kwargs)
        nodes = values_again(args[0], args, 1, op)
        if nodes is DEFER:
            return plain(*args, **kwargs)
        if type(nodes) is tuple:
            made = list(nodes)
        else:
            made = folded(<list>nodes, <tuple>found)
        return made[0] if len(made) == 1 else tuple(made)

    return reduce
