"""Calls of kernels that are launched at once, ahead of the look that always comes next: a part of
`compiled.pyx`.

``step(n, x, y)`` is recorded, so that it may be fused with what comes next. In a loop that looks at
`y` after every call nothing comes next: after `least_alone` calls in a row that were evaluated by
themselves the next one like them, on the same arrays, is launched at the call. Nothing is recorded
or recognised then, and what Python does from there to the look it does beside the kernel. Between
kernels that read large arrays, when the caches hold nothing of Python's, that is 30 to 45 us.

It is a guess: where something else comes before the look, that might have been fused with the call.
The kernel records again then, and has to be alone `MORE` times as often as before until it is
guessed at once more. Values never depend on it: what is launched is what an evaluation right after
the call would launch.
"""

cdef enum:
    LIVE_FLAG = 1  # as `ir.snapshot.LIVE`
    MORE = 4
    USUAL = 16  # calls in a row that were not alone: one in as many is watched from there on
    MOST_ALONE = 1 << 24  # never

cdef Py_ssize_t least_alone = 8

cdef KnownCall begun = None
"""The call that is being recorded, where a fold of its values comes first."""

cdef KnownCall latest = None
"""The call recorded last, until something is evaluated."""

cdef KnownCall unseen = None
"""The call that was launched ahead and that nobody has looked at yet."""

cdef list turns  # `ir.nodes.turn`


def launch_ahead_after(Py_ssize_t calls):
    """Let `least_alone` be another number, for signatures that are met from here on; answer what it
    was."""
    global least_alone
    before, least_alone = least_alone, calls
    return before


cdef int begin_alone(KnownCall call, PyObject **cells, list offsets, object fold) except -1:
    """A call is recorded: what its arrays are now."""
    global begun
    cdef Py_ssize_t number
    cdef PyObject *node
    if call.waits:
        was_not_alone(call)
    call.waits, call.fold, call.offsets, call.mode = True, fold, offsets, mode[0]
    call.shapes = []
    for number in range(call.cells):
        node = look(cells[number], s_node)
        call.places[number], call.before[number] = cells[number], look(node, n_buffer)
        call.shapes.append(<object>look(node, n_shape))
    begun = None if fold is None else call
    return 0


cdef int end_alone(KnownCall call, list storages) except -1:
    """It was recorded, and these hold what it has made."""
    global latest, begun
    cdef Py_ssize_t number
    begun = latest = None
    call.roots = PyList_GET_SIZE(storages)
    if not 0 < call.roots <= MOST_CELLS:
        return 0
    call.marks = []
    for number in range(call.roots):
        storage = <object>PyList_GET_ITEM(storages, number)
        if type(storage) is not Storage:
            return 0
        call.after[number] = peek(storage, s_node)
        call.marks.append(PyWeakref_NewRef(storage, None))
    call.turn, call.moment = turns[0], PyList_GET_SIZE(operations)
    latest = call
    return 0


cdef bint is_all_of(KnownCall call, list roots) except -1:
    """Whether these are what a call has made, and nothing was recorded or computed since."""
    cdef Py_ssize_t number
    if call.turn != <Py_ssize_t>turns[0] or call.moment != PyList_GET_SIZE(operations):
        return False
    if PyList_GET_SIZE(roots) != call.roots:
        return False
    for number in range(call.roots):
        storage = clfuse_referent(<object>PyList_GET_ITEM(call.marks, number))
        if storage is None or peek(storage, s_node) != PyList_GET_ITEM(roots, number):
            return False
        if call.after[number] != PyList_GET_ITEM(roots, number):
            return False
    return True


cdef class Ahead:
    """What evaluations of calls like one before were: its plan, and where that has its buffers from.

    `leaves` has for every buffer of the plan the number of a cell and whether somebody else held
    its contents; `written` has cells with the positions of what is put into them; `numbers` has
    positions of constants with the argument and the dtype that they come from, and with the only
    node that it may be, if others may not be there.
    """

    cdef object structure, fold, mode
    cdef object failed  # what the last launch ended with, after it had overwritten arrays
    cdef Ready ready
    cdef list offsets, shapes, template
    cdef list leaves, written, numbers
    cdef Py_ssize_t count
    cdef PyObject *cells[MOST_CELLS]  # no references: they are only compared

    cdef bint is_of(self, PyObject **cells, list offsets) except -1:
        """Whether a call is on the same arrays, in any order."""
        cdef Py_ssize_t number, other
        for number in range(self.count):
            if self.cells[number] != cells[number]:
                for other in range(self.count):
                    if self.cells[other] == cells[number]:
                        break
                else:
                    return False
        return offsets == self.offsets

    cdef list buffers_of(self, PyObject **cells):
        """The plan's buffers, if the cells hold what they have held; None else."""
        cdef PyObject *node
        cdef PyObject *buffer
        cdef Py_ssize_t number, other
        for number in range(self.count):
            node = look(cells[number], s_node)
            if type(<object>node) is not Node:
                return None
            if not is_same(node, n_shape, <object>PyList_GET_ITEM(self.shapes, number)):
                return None
        found = []
        for item in self.leaves:
            number = <object>PyTuple_GET_ITEM(item, 0)
            node = look(cells[number], s_node)
            buffer = look(node, n_buffer)
            if buffer == <PyObject *>None or <object>look(node, n_computed) is True:
                return None
            if PyTuple_GET_ITEM(item, 1) != <PyObject *>None:  # no name here counts
                is_held = Py_REFCNT(node) > 1 or Py_REFCNT(buffer) > 1 or bool(
                    (<object>buffer).exported
                )
                if is_held is not <object>PyTuple_GET_ITEM(item, 1):
                    return None
            for other in range(PyList_GET_SIZE(found)):
                if PyList_GET_ITEM(found, other) == buffer:
                    return None
            found.append(<object>buffer)
        return found

    cdef list nodes_of(self, tuple args, Py_ssize_t first):
        """The plan's nodes, as far as it needs them: constants; None where numbers are others that
        cannot be told from its own constants."""
        cdef Py_ssize_t number
        nodes = list(self.template)
        if not self.numbers:
            return nodes
        given = scalars_of(args, first)
        for number in range(PyList_GET_SIZE(given)):
            if is_plain_node(<object>PyList_GET_ITEM(given, number)):
                return None  # a lazy scalar
        for position, place, dtype, only in self.numbers:
            node = numbered(given[place], dtype)
            if only is not None and node is not only:
                return None
            nodes[position] = node
        return nodes

    cdef tuple launched(self, tuple args, Py_ssize_t first, PyObject **cells):
        """What was written, as new nodes, once it is launched; None where it has to be recorded."""
        buffers = self.buffers_of(cells)
        if buffers is None or self.structure.ready is not self.ready or journal[0] is not None:
            return None
        if not self.ready.suits(buffers):
            return None
        nodes = self.nodes_of(args, first)
        if nodes is None:
            return None
        made = []
        for _, position, op, shape, dtype in self.written:
            node = new_node(op, (), shape, dtype, None)
            nodes[position] = node
            made.append(node)
        try:
            places = self.ready.places(buffers)
        except MemoryError:
            return None  # the look says so, as it ever did, and nothing is lost
        self.failed = None
        try:
            self.ready.run(nodes, places, True)
        except BaseException as error:
            # Arrays that were overwritten hold what is to come; else the call has done nothing.
            for node in made:
                if peek(node, n_buffer) != <PyObject *>None or get(node, n_op).kind is SUSPENDED:
                    self.failed = error
                    break
            else:
                raise
        return tuple(made)


cdef object launched_ahead(KnownCall call, tuple args, Py_ssize_t first, PyObject **cells, fold):
    """Launch a call, if that is what will be asked for next: a fold's values, or something else that
    is not `DEFER`, which says that it has to be recorded."""
    global unseen
    cdef Ahead ahead = call.ahead
    cdef Py_ssize_t number
    if ahead.fold != fold or ahead.mode is not mode[0]:
        return DEFER
    if not ahead.is_of(cells, offsets_of(args, first)):
        return DEFER
    made = ahead.launched(args, first, cells)
    if made is None:
        return DEFER
    for number in range(PyTuple_GET_SIZE(made)):
        node = <object>PyTuple_GET_ITEM(made, number)
        call.after[number] = <PyObject *>node
        if fold is None:
            cell = <object>cells[<Py_ssize_t>ahead.written[number][0]]
            refill(cell, s_node, node)
    if ahead.failed is not None:
        error, ahead.failed = ahead.failed, None
        raise error
    after_evaluation()
    unseen, call.turn = call, turns[0]
    return made if fold is None else tuple([holding(new_storage(node)) for node in made])


cdef int was_in_vain() except -1:
    """Something came before the look at what was launched ahead: it might have been fused."""
    global unseen
    waits_longer(unseen)
    unseen = None
    return 0


cdef void was_not_alone(KnownCall call) noexcept:
    call.alone = 0
    call.together += 1
    if call.together >= USUAL:
        call.together = call.unwatched = USUAL - 1


cdef void waits_longer(KnownCall call) noexcept:
    call.ahead, call.alone = None, 0
    call.needed = min(call.needed * MORE, MOST_ALONE - 1)


cdef int were_seen(object nodes) except -1:
    """Somebody looks at these; where there are none, at all that there is."""
    global unseen
    cdef Py_ssize_t number, found = 0
    if unseen.turn != <Py_ssize_t>turns[0] or PyList_GET_SIZE(operations):
        return was_in_vain()
    for number in range(unseen.roots):
        for node in nodes:
            if unseen.after[number] == <PyObject *>node:
                found += 1
                break
    if found == unseen.roots or not nodes:
        unseen = None
    elif found:
        was_in_vain()
    return 0


cdef int count_alone(
    KnownCall call, list roots, list nodes, list buffers, object structure, Ready ready
) except -1:
    """A graph is about to be evaluated, and this call was recorded last: count it where it is all
    of that, and know how to launch it after enough of them."""
    call.waits = False
    if not is_all_of(call, roots):
        was_not_alone(call)
        return 0
    call.together = 0
    call.alone += 1
    if call.alone >= call.needed and (
        call.ahead is None or not (<Ahead>call.ahead).is_of(call.places, call.offsets)
    ):
        call.ahead = ahead_of(call, nodes, buffers, structure, ready)
        call.alone = 0
        if call.ahead is None:
            waits_longer(call)
    return 0


cdef bint holds(object items, object node) except -1:
    """Whether a node is anywhere in lists and tuples of them."""
    for item in items:
        if item is node:
            return True
        if (type(item) is tuple or type(item) is list) and holds(item, node):
            return True
    return False


cdef Ahead ahead_of(KnownCall call, list nodes, list buffers, object structure, Ready ready):
    """How to launch the next call like this one, which is about to be evaluated; None where that
    cannot be said."""
    cdef Py_ssize_t number, position
    cdef PyObject *node
    cdef Ahead made = Ahead()
    roots = list(structure.roots)
    kept = sorted([place for place, _ in ready.keeps])
    if kept != sorted(roots) or ready.recomputed or not buffers:
        return None
    made.structure, made.ready, made.fold, made.mode = structure, ready, call.fold, call.mode
    made.offsets, made.count = call.offsets, call.cells
    made.shapes = []
    for number in range(call.cells):
        made.cells[number] = call.places[number]
        made.shapes.append(call.shapes[number])
    made.leaves, made.template, made.numbers, made.written = [None] * len(buffers), [], [], []
    for position, item in enumerate(structure.items):
        node = PyList_GET_ITEM(nodes, position)
        flag = structure.flags[position]
        made.template.append(None)
        if item[0] is None:
            buffer = buffers[item[2]]
            for number in range(call.cells):
                if call.before[number] == <PyObject *>buffer:
                    break
            else:
                return None
            is_written = call.fold is None and number in call.written
            is_live = (flag & LIVE_FLAG) != 0
            if made.leaves[item[2]] is not None or flag & ~LIVE_FLAG or not (is_written or is_live):
                return None
            made.leaves[item[2]] = (number, is_live if is_written else None)
        elif item[0].kind is CONSTANT:
            made.template[position] = <object>node
            found = []
            for number in range(PyList_GET_SIZE(call.sources)):
                if call.numbered[number] == node:
                    found.append(call.sources[number][1:])
            # Of a value that two arguments have, or that is a constant of the kernel or of the
            # fold, too, there is one node.
            is_several = len(found) > 1 or call.fold is not None or (
                found and holds(call.steps, <object>node)
            )
            for place, dtype in found:
                made.numbers.append((position, place, dtype, <object>node if is_several else None))
        elif flag & ~LIVE_FLAG:
            return None
    for number in range(call.roots):
        position = roots[number]
        node = PyList_GET_ITEM(nodes, position)
        dtype, shape = get(<object>node, n_dtype), get(<object>node, n_shape)
        if type(<object>node) is not Node or leaves.get(dtype) is None:
            return None
        cell = None if call.fold is not None else call.written[number]
        made.written.append((cell, position, leaves[dtype], shape, dtype))
    return None if None in made.leaves else made
