"""Evaluations that were done before, for `clfuse.engine.evaluate`: a part of `compiled.pyx`.

Between two kernels that read large arrays the caches hold nothing of Python's: every function of a
dozen lines takes 5 us then, and the way from `evaluate_nodes` to the first launch is twenty of them.
What is known to go that way once more goes it here.
"""

cdef enum:
    MOST_ROOTS = 32  # they are compared with each other

cdef Py_ssize_t b_nbytes, b_mem, b_address, b_exported, b_owned
cdef Py_ssize_t k_pool, k_nbytes, k_mem, k_block_nbytes
cdef object DeviceBuffer, Block, allocate, key_of_planning
cdef dict tallies
cdef list observers_of_plans, observers_of_launches
cdef object is_refusal


def connect_evaluation(names):
    """As `connect`, for what is used here alone."""
    global b_nbytes, b_mem, b_exported, b_owned, k_pool, k_nbytes, k_mem, k_block_nbytes
    global DeviceBuffer, Block, allocate, key_of_planning, tallies
    global observers_of_plans, observers_of_launches, is_refusal
    is_refusal = names["is_refusal"]
    DeviceBuffer, Block, allocate = names["Buffer"], names["Block"], names["allocate"]
    b_nbytes, b_mem = _offset(DeviceBuffer, "nbytes"), _offset(DeviceBuffer, "mem")
    b_exported, b_owned = _offset(DeviceBuffer, "exported"), _offset(DeviceBuffer, "_owned")
    k_pool, k_nbytes = _offset(Block, "pool"), _offset(Block, "nbytes")
    k_mem, k_block_nbytes = _offset(Block, "mem"), _offset(Block, "block_nbytes")
    key_of_planning, tallies = names["planning"], names["counters"]
    observers_of_plans, observers_of_launches = names["observers"]


cdef class Ready:
    """A plan of nothing but bound kernels, which runs as `engine.executable.Planned.run` does.

    `block_size` is that of `runtime.context.pool`; `hosted` is how many arguments lie on the host; `is_used`
    says whether it has run since somebody set that to False. After `left` runs Python makes one, which looks
    at the plan's tuning.
    """

    cdef object device, pool, planning, host_us, queue, leave
    cdef dict bins
    cdef uintptr_t address, inline
    cdef list bound, direct, slots, sizes, reuses, values, keeps, recomputed
    cdef Py_ssize_t launches, user_launches, hosted
    cdef public bint is_used
    cdef public Py_ssize_t left

    def __init__(self, planned, device, block_size, int user_launches, Py_ssize_t left):
        schedule = planned.schedule
        self.left = left
        self.device, self.pool = device, device.pool
        self.leave = planned.leave
        self.bins = device.pool._bins
        self.planning = settings[key_of_planning]
        self.host_us, self.hosted = planned.verdict.circumstances
        self.inline = 0
        self.take_queue(device.queue)
        self.bound = [step.bound for step in planned.steps]
        self.direct = [bound._direct for bound in self.bound]
        if not all([type(direct) is Direct for direct in self.direct]):
            raise ValueError
        self.launches, self.user_launches = len(self.bound), user_launches
        self.slots = list(schedule.slots)
        self.sizes = [block_size(nbytes) for nbytes in self.slots]
        self.reuses = [schedule.reuses.get(number) for number in range(len(self.slots))]
        self.values = [(value.slot, value.buffer) for value in schedule.values]
        self.keeps = list(schedule.keeps.items())
        self.recomputed = list(schedule.recomputed)

    cdef bint suits(self, list buffers) except -1:
        """Whether it may evaluate: nothing has changed since, and nobody wants to see the launches."""
        if self.left <= 0 or observers_of_plans or observers_of_launches:
            return False
        return self.is_meant(buffers)

    cpdef bint is_meant(self, list buffers) except -1:
        """Whether nothing has changed since, and what is read is the device's."""
        cdef Py_ssize_t hosted = 0
        for buffer in buffers:
            if type(buffer) is HostBuffer:
                hosted += 1
            elif type(buffer) is not DeviceBuffer:
                return False
            if get(buffer, b_device) is not self.device:
                return False
        if hosted != self.hosted:
            return False
        planning = settings[key_of_planning]
        if (planning is not self.planning and planning != self.planning) or (
            settings["host_us"] != self.host_us
        ):
            return False
        device = self.device
        if device.forked or device.cause is not None or device.pool is not self.pool:
            return False
        queue = device._queue
        if queue is not self.queue:  # a profile was made
            if queue is None:
                return False
            self.take_queue(queue)
        return True

    cdef int take_queue(self, queue) except -1:
        self.queue, self.address = queue, queue.int_ptr
        if self.device.inline is not None:
            self.inline = self.device.inline.queue.int_ptr
        return 0

    cdef object taken(self, object nbytes, object size):
        """As `runtime.memory.blocks.allocate`."""
        held = self.bins.get(size)
        if not held:
            return allocate(self.device, nbytes)
        try:
            mem = (<list>held).pop()
        except IndexError:  # another thread took the last one
            return allocate(self.device, nbytes)
        block = PyType_GenericAlloc(<PyTypeObject *>Block, 0)
        fill(block, k_pool, self.pool)
        fill(block, k_nbytes, nbytes)
        fill(block, k_mem, mem)
        fill(block, k_block_nbytes, size)
        now = tallies["device_bytes_now"] + nbytes
        tallies["device_bytes_now"] = now
        if now > tallies["device_bytes_peak"]:
            tallies["device_bytes_peak"] = now
        buffer = PyType_GenericAlloc(<PyTypeObject *>DeviceBuffer, 0)
        fill(buffer, b_device, self.device)
        fill(buffer, b_nbytes, nbytes)
        fill(buffer, b_mem, mem)
        fill(buffer, b_exported, 0)
        fill(buffer, b_owned, block)
        return buffer

    cdef list places(self, list buffers):
        """Where the plan's values lie; allocates."""
        cdef Py_ssize_t number
        slots = []
        for number in range(len(self.slots)):
            reused = self.reuses[number]
            if reused is None:
                slots.append(self.taken(self.slots[number], self.sizes[number]))
            else:
                slots.append(on_device(buffers[reused]))
        places = []
        for slot, place in self.values:
            if slot is not None:
                places.append(slots[slot])
            else:
                places.append(None if place is None else buffers[place])
        return places

    cdef int run(self, list nodes, list places, bint whole=False) except -1:
        """Launch, and give the nodes that somebody asks for their buffers; 1 where the driver refuses
        a launch, which Python may make otherwise.

        Where this ends early, `engine.resume.leave` puts the nodes in order, which are of no graph if `whole`.
        """
        cdef Py_ssize_t number = 0
        cdef Direct direct
        cdef list tickets = None
        if unmarked_work >= deep_work and keep_up_with is not None:
            keep_up_with(self.queue)
        latest_launch[0] = self.bound
        self.left -= 1
        try:
            while number < self.launches:
                direct = <Direct>PyList_GET_ITEM(self.direct, number)
                if direct.launched(self.address, self.inline, places, nodes):
                    tallies["kernels_launched"] += 1
                else:  # pyopencl says what is wrong
                    tickets = []
                    self.bound[number].enqueue_again(places, nodes, tickets)
                    tickets = None
                number += 1
            self.put(nodes, places)
        except BaseException as error:
            tickets = [None] * number if tickets is None else [None] * number + tickets
            journal[0] = self.leave, (nodes, places, tickets, whole)
            settle_journal()
            if whole or not is_refusal(error):
                raise
            return 1
        return 0

    cdef int put(self, list nodes, list places) except -1:
        tallies["user_launches"] += self.user_launches
        tallies["plans_reused"] += 1
        self.is_used = True
        for position, value in self.keeps:
            node = nodes[position]
            buffer = places[value]
            if type(buffer) is HostBuffer:
                buffer = buffer.of(node.dtype, node.shape)
            if type(node) is Node:
                refill(node, n_buffer, buffer)
                refill(node, n_inputs, ())
            else:
                node.buffer = buffer
                node.inputs = ()
        for position in self.recomputed:
            nodes[position].computed = True
        return 0


cdef list journal
cdef object settle_journal


cdef list when_grown, grown_from, forget_at
cdef object begin_turn


cdef int after_evaluation() except -1:
    """What `evaluate_nodes` does in the end."""
    if len(recorded) >= <Py_ssize_t>forget_at[0]:
        begin_turn()
    else:
        operations.clear()
        turns[0] += 1
    grown = tallies["device_bytes_now"] - grown_from[0]
    if grown < 0 or grown > settings["max_pinned_bytes"]:
        (<object>PyList_GET_ITEM(when_grown, 0))()
    return 0


def evaluating(plain, names):
    """``evaluate_nodes(nodes, wait=wait)``, of graphs that are known and ready, before `plain`."""
    global turns, when_grown, grown_from, forget_at, begin_turn, journal, settle_journal
    cdef dict numbers = names["numbers"]
    when_grown, grown_from = names["when_grown"], names["grown_from"]
    forget_at, turns, begin_turn = names["forget_at"], names["turn"], names["begin_turn"]
    lock, known = names["lock"], names["known"]
    journal, settle_journal = names["journal"], names["settle"]

    def evaluate_nodes(nodes, *, wait=False):
        ready = None
        if unseen is not None:
            were_seen(nodes)
        if are_there(nodes):
            if wait:
                finish(nodes)
            return
        if nodes and known:
            with lock:
                ready = evaluated_again(nodes, known, numbers)
                if ready is not None:
                    after_evaluation()
        if ready is None:
            plain(nodes, wait=wait)
        elif wait:
            wait_for((<Ready>ready).device, (<Ready>ready).queue)
            finish(nodes, (<Ready>ready).device)

    return evaluate_nodes


cdef bint are_there(object nodes) except -1:
    """Whether all of them are in a device's memory."""
    cdef PyObject *buffer
    for node in nodes:
        if type(node) is not Node:
            return False
        buffer = peek(node, n_buffer)
        if type(<object>buffer) is not DeviceBuffer:
            return False
    return True


cdef int finish(object nodes, object done=None) except -1:
    """Wait for the devices of nodes that are in memory, but for one that has been waited for."""
    for node in nodes:
        buffer = node.buffer
        if buffer is not None and buffer.device is not done:
            done = buffer.device
            if is_usable(done):
                wait_for(done, done._queue)
            else:
                done.finish()
    return 0


cdef object evaluated_again(object nodes, object known, dict numbers):
    """Compute nodes as before, and answer what has; None where that is not known."""
    global latest
    roots = []
    if journal[0] is not None:  # an evaluation ended early
        return None
    for node in nodes:
        if type(node) is Node:
            if peek(node, n_buffer) != <PyObject *>None:
                continue
            if get(get(node, n_op), o_kind) is CONSTANT:
                continue
        elif node.buffer is not None or node.op.kind is CONSTANT or node.buffer is not None:
            continue  # a late node may turn out to be one that is in memory
        for other in roots:
            if other is node:
                break
        else:
            roots.append(node)
        if len(roots) > MOST_ROOTS:
            return None
    if not roots:
        return None
    node = other = None
    key = (len(roots), roots[0].op, get(roots[0], n_shape))
    for number in numbers.get(key, ()):
        entry = known.get((key, number))
        if entry is None:
            return None
        recognise, structure = entry
        ready = structure.ready
        if type(recognise) is not Known:
            return None
        found = recognise(roots)
        if found is None:
            continue
        listed, buffers = found
        if type(ready) is not Ready or not (<Ready>ready).suits(buffers):
            return None
        known.move_to_end((key, number))
        try:
            places = (<Ready>ready).places(buffers)
        except MemoryError:
            return None  # `plain` finds other ways, or says so
        if latest is not None:
            count_alone(latest, roots, listed, buffers, structure, <Ready>ready)
            latest = None
        if (<Ready>ready).run(listed, places):
            return None
        return ready
    return None
