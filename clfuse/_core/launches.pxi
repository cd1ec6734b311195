"""Launches of kernels whose arguments mostly stay as they are, for `clfuse.runtime.launches.launch`: a part of
`compiled.pyx`.

The driver's two functions are called by their addresses. What they refuse is left to pyopencl, which
does it again and says why.
"""

from libc.stdint cimport int32_t, uint32_t, uintptr_t

cdef extern from "numpy/arrayobject.h":
    void PyArray_ScalarAsCtype(object, void *)

ctypedef int32_t (*set_function)(void *, uint32_t, size_t, const void *) noexcept nogil
ctypedef int32_t (*enqueue_function)(
    void *, void *, uint32_t, const size_t *, const size_t *, const size_t *,
    uint32_t, const void *, void *,
) noexcept nogil
ctypedef int32_t (*finish_function)(void *) noexcept nogil

cdef set_function set_argument = NULL
cdef enqueue_function enqueue_kernel = NULL
cdef finish_function finish_queue = NULL

cdef enum:
    MOST_DIMENSIONS = 3
    LARGEST_SCALAR = 16  # bytes: complex128

cdef enum Refused:
    SETTING, WAITING, LAUNCHING, ENDING  # what was done when the driver refused something

cdef struct Slot:
    uint32_t number  # of the argument
    Py_ssize_t place  # among the buffers or the scalars of a launch
    Py_ssize_t nbytes  # of a scalar


cdef object wait_failed, check_pinned
cdef list latest_launch


def connect_losses(waiting, check, list latest):
    """Take what `runtime.context.lost` has for errors of waits, for uploads that are done, and its note of
    what was launched last."""
    global wait_failed, check_pinned, latest_launch
    wait_failed, check_pinned, latest_launch = waiting, check, latest


cdef Py_ssize_t waiting_threads = 0


def is_waiting():
    """Whether a thread waits for a device without a frame of Python's that would say so."""
    return waiting_threads > 0


cdef long long waited = 0


cdef long long now_ns() noexcept:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <long long>now.tv_sec * 1_000_000_000 + now.tv_nsec


def waited_ns():
    """How long all waits for devices were that have ended, in nanoseconds."""
    return waited


def add_waited(long long elapsed_ns):
    """Note a wait that was none of the compiled part's."""
    global waited
    waited += elapsed_ns


cdef double added_work = 0, long_work = 0
cdef double unmarked_work = 0, deep_work = 0, launch_work = 0
cdef object wait_in_steps, keep_up_with


def connect_long_waits(in_steps, double work):
    """Take what waits for a queue where so much work was added: see `runtime.context.waits`."""
    global wait_in_steps, long_work
    wait_in_steps, long_work = in_steps, work


def connect_deep_queues(keep_up, double work, double of_launch):
    """Take what a plan calls before its launches where so much work was added: see
    `runtime.context.waits`."""
    global keep_up_with, deep_work, launch_work
    keep_up_with, deep_work, launch_work = keep_up, work, of_launch


def add_work(double work):
    """Note that something was put into a queue, of so much work."""
    global added_work, unmarked_work
    added_work += work
    unmarked_work += work + launch_work


def work_added():
    """What was put into queues since the last wait."""
    return added_work


def work_unmarked():
    """What was put into queues since the last marker."""
    return unmarked_work


def forget_unmarked():
    """There is a new marker."""
    global unmarked_work
    unmarked_work = 0


def forget_work():
    """What was put into queues is done."""
    global added_work, unmarked_work
    added_work = unmarked_work = 0


cdef int wait_for(object device, object queue) except -1:
    """Wait until a device's queue is done; DeviceError where something in it has failed."""
    global waiting_threads, added_work, unmarked_work, waited
    cdef long long start_ns = now_ns()
    waiting_threads += 1
    try:
        if added_work >= long_work and wait_in_steps is not None:
            wait_in_steps(queue)
        queue.finish()
        added_work = unmarked_work = 0
    except Exception as error:
        raise wait_failed(device, error) from error
    finally:
        waiting_threads -= 1
        waited += now_ns() - start_ns
    if device.pinned:
        check_pinned(device)
    return 0


def connect_driver(uintptr_t set_address, uintptr_t enqueue_address, uintptr_t finish_address):
    """Take the addresses of ``clSetKernelArg``, ``clEnqueueNDRangeKernel`` and ``clFinish``."""
    global set_argument, enqueue_kernel, finish_queue
    finish_queue = <finish_function>finish_address
    set_argument = <set_function>set_address
    enqueue_kernel = <enqueue_function>enqueue_address


cdef object on_device(object buffer):
    """As the method of buffers."""
    cdef PyObject *found
    if type(buffer) is DeviceBuffer:
        return buffer
    if type(buffer) is HostBuffer:
        found = peek(buffer, b_memory)
        if found == <PyObject *>None:
            found = peek(buffer, b_copy)
        if found != <PyObject *>None:
            return <object>found
    return buffer.on_device()


cdef void *memory_object(object buffer) except? NULL:
    """The driver's memory object of a buffer; of one on a device its address is kept."""
    cdef PyObject *known
    if type(buffer) is HostBuffer:
        buffer = on_device(buffer)
    if type(buffer) is not DeviceBuffer:  # memory of somebody else, or none: it says why
        return <void *><uintptr_t>buffer.mem.int_ptr
    known = peek(buffer, b_address)
    if known != NULL:
        return <void *><uintptr_t><object>known
    address = get(buffer, b_mem).int_ptr
    if peek(buffer, b_address) == NULL:
        fill(buffer, b_address, address)
    return <void *><uintptr_t>address


cdef class Direct:
    """A kernel object that nobody else sets arguments of; called, it is launched.

    `buffers` and `scalars` are pairs: the argument's number, and the place among those of a launch.
    `dtypes` are those of the scalars, and `packed` gives one's bytes where its type is another.
    `work` is what `runtime.context.waits` counts. An
    `inline` one is run by the calling thread, once the device's queue is empty.
    """

    cdef object kernel, packed
    cdef void *handle
    cdef size_t global_size[MOST_DIMENSIONS]
    cdef size_t local_size[MOST_DIMENSIONS]
    cdef bint has_local_size, inline
    cdef uint32_t dimensions
    cdef Refused refused
    cdef int32_t status  # what was refused with
    cdef Slot *slots
    cdef Py_ssize_t buffers, scalars
    cdef list dtypes, types, before
    cdef double work

    def __init__(
        self, kernel, global_size, local_size, buffers, scalars, dtypes, packed, inline, double work
    ):
        cdef Py_ssize_t number
        if not 0 < len(global_size) <= MOST_DIMENSIONS or set_argument == NULL:
            raise ValueError
        self.kernel, self.packed, self.inline, self.work = kernel, packed, inline, work
        self.handle = <void *><uintptr_t>kernel.int_ptr
        self.dimensions = len(global_size)
        self.has_local_size = local_size is not None
        for number in range(self.dimensions):
            self.global_size[number] = global_size[number]
            self.local_size[number] = local_size[number] if self.has_local_size else 0
        self.buffers, self.scalars = len(buffers), len(scalars)
        self.slots = <Slot *>calloc(self.buffers + self.scalars + 1, sizeof(Slot))
        if self.slots == NULL:
            raise MemoryError
        for number, (argument, place) in enumerate([*buffers, *scalars]):
            self.slots[number].number, self.slots[number].place = argument, place
        self.dtypes = list(dtypes)
        self.types = [dtype.type for dtype in self.dtypes]
        for number, dtype in enumerate(self.dtypes):
            if dtype.itemsize > LARGEST_SCALAR:
                raise ValueError
            self.slots[self.buffers + number].nbytes = dtype.itemsize
        # What was passed last; it stays set.
        self.before = [None] * self.scalars

    def __dealloc__(self):
        free(self.slots)

    def forget(self):
        """Set every scalar at the next launch: somebody else has set them."""
        self.before = [None] * self.scalars

    def refusal(self):
        """What the driver has refused last, with which status, and whether the launch was taken."""
        if self.refused == SETTING:
            return "clSetKernelArg", self.status, False
        if self.refused == LAUNCHING:
            return "clEnqueueNDRangeKernel", self.status, False
        return "clFinish", self.status, self.refused == ENDING

    def __call__(
        self, uintptr_t queue, uintptr_t inline, list places, list values, list tickets
    ):
        """Whether the driver has taken the launch: see `launched`. `tickets` is longer then."""
        taken = self.launched(queue, inline, places, values)
        if taken:
            tickets.append(None)
        return taken

    cdef bint launched(
        self, uintptr_t queue, uintptr_t inline, list places, list values
    ) except -1:
        """Whether the driver has taken the launch.

        `inline` is the queue of the calling thread's device, if there is one; `places` has buffers,
        `values` scalars, or the nodes of constants. The caller sees to it that no other thread is
        here.
        """
        cdef Py_ssize_t number
        cdef Slot *slot
        cdef void *memory
        cdef int32_t status
        cdef Refused doing
        global added_work, unmarked_work
        cdef size_t *local_size = self.local_size if self.has_local_size else NULL
        for number in range(self.buffers):
            slot = &self.slots[number]
            memory = memory_object(<object>PyList_GET_ITEM(places, slot.place))
            status = set_argument(self.handle, slot.number, sizeof(void *), &memory)
            if status != 0:
                self.refused, self.status = SETTING, status
                return False
        for number in range(self.scalars):
            slot = &self.slots[self.buffers + number]
            value = values[slot.place]
            if type(value) is Node:
                value = get(value, n_param)
            if value is not self.before[number] and not self.set_scalar(number, slot, value):
                return False
        with nogil:
            status, doing = 0, LAUNCHING
            if self.inline:
                doing = WAITING
                status = finish_queue(<void *>queue)
                queue = inline
            if status == 0:
                doing = LAUNCHING
                status = enqueue_kernel(
                    <void *>queue, self.handle, self.dimensions, NULL, self.global_size,
                    local_size, 0, NULL, NULL,
                )
            if self.inline and status == 0:
                doing = ENDING
                status = finish_queue(<void *>queue)
        if status != 0:
            self.refused, self.status = doing, status
        elif not self.inline:
            added_work += self.work
            unmarked_work += self.work + launch_work
        return status == 0

    cdef bint set_scalar(self, Py_ssize_t number, Slot *slot, object value) except -1:
        cdef char content[LARGEST_SCALAR]
        cdef const char *given
        cdef int32_t status
        self.before[number] = None
        if type(value) is self.types[number]:
            PyArray_ScalarAsCtype(value, content)
            status = set_argument(self.handle, slot.number, slot.nbytes, content)
        else:
            text = self.packed(value, self.dtypes[number])
            given = <bytes>text
            status = set_argument(self.handle, slot.number, slot.nbytes, given)
        if status == 0:
            self.before[number] = value
        else:
            self.refused, self.status = SETTING, status
        return status == 0
