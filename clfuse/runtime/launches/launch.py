"""Launches: built kernels with their arguments, put into a device's queue."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clfuse._core import loading
from clfuse.counters import counters
from clfuse.errors import KernelBuildError
from clfuse.ir.nodes import Node
from clfuse.runtime.context import lost, waits
from clfuse.runtime.devices.device import Device

from .program import Program

if TYPE_CHECKING:
    import pyopencl as cl

__all__ = [
    "BoundKernel",
    "begin_timing",
    "check_sizes",
    "end_timing",
    "enqueue",
    "finish",
    "kernel_name",
    "observe_launches",
    "pack_scalar",
    "times_of",
]

#: Who wants to see every launch: (program, event) -> None.
observers: list[Callable[[Program, Any], None]] = []


def enqueue(
    program: Program,
    global_size: tuple[int, ...],
    local_size: tuple[int, ...] | None,
    args: Sequence[Any],
    tickets: list[Any] | None = None,
) -> cl.Event:
    """Put one launch of a kernel into its device's queue and return its event, without waiting.

    program: from `runtime.launches.program.build`.
    global_size, local_size: work-items, and work-items of a group (None: the driver's choice).
    args: in the kernel's order: `Buffer.mem` for buffers, Python or NumPy scalars for scalars. The
        buffers must live until this returns, not longer: the queue is in order, so that the next
        owner of their memory comes later.
    tickets: the event is added once the driver has taken the launch, before any Python runs.
    """
    device = program.device
    taken = [] if tickets is None else tickets

    def launch() -> cl.Event:
        # A kernel object holds its arguments, so setting them and the launch are one step.
        with device.lock, _queue_of(program) as queue:
            kernel = program.kernel
            # Not by calling the kernel object: pyopencl writes and compiles Python for each list of
            # types of arguments, which takes .4 to 1 ms.
            for number, (value, dtype) in enumerate(zip(args, program.arguments, strict=True)):
                kernel.set_arg(number, value if dtype is None else pack_scalar(value, dtype))
            if device.simulation is None:
                return _put(taken, queue, kernel, global_size, local_size)
            return device.simulation.launch(
                device, program.name, program.compiled, global_size, local_size,
                dict(enumerate(args)),
                lambda: _put(taken, queue, kernel, global_size, local_size),
            )  # fmt: skip

    event = lost.call_driver(device, program.name, launch)
    lost.latest[0] = program
    counters["kernels_launched"] += 1
    if not program.brought_in:
        _expect(program)
    for observer in observers:
        observer(program, event)
    return event


def _put(tickets: list[Any], *launch: Any) -> cl.Event:
    """Launch a kernel whose arguments are set, and add its event to `tickets` by one call of C: no
    signal handler runs between the two."""
    from clfuse.runtime.drivers import opencl as cl

    tickets.extend(map(cl.enqueue_nd_range_kernel, *[(each,) for each in launch]))
    return tickets[-1]  # type: ignore[no-any-return]


@contextmanager
def _queue_of(program: Program) -> Iterator[cl.CommandQueue]:
    """The queue that a kernel is put into, for the length of a block.

    What is in the device's queue is done before the calling thread runs a kernel, and that is done
    before anything else is put there.
    """
    device = program.device
    if not program.inline:
        yield device.queue
        return
    device.finish()
    assert device.inline is not None
    try:
        yield device.inline.queue
    finally:
        try:
            device.inline.queue.finish()
        except lost.driver_error() as error:
            raise lost.waiting(device, error, program.name) from error


class BoundKernel:
    """A launch that comes again and again: what stays the same is set once.

    Measured for a kernel of 52 arguments, two of them buffers: 3 to 5 us to set them all, 0.3 us to
    set the two (1.3 to 1.8 us more for the launch). Where clfuse is compiled, the driver is called
    without pyopencl (`_core/launches.pxi`), and a scalar that was passed last stays set.

    program: from `runtime.launches.program.build`.
    global_size, local_size: as for `enqueue`.
    fixed: argument number -> scalar, of any type that the argument's dtype takes; or local memory.
    buffers, scalars: argument number, and the number among `enqueue`'s of what is set for each
        launch.
    work: what `runtime.context.waits` counts for a launch.
    """

    __slots__ = (
        "_buffers", "_direct", "_fixed", "_global_size", "_kernel", "_local_size", "_scalars",
        "_work", "program",
    )  # fmt: skip

    def __init__(
        self,
        program: Program,
        global_size: tuple[int, ...],
        local_size: tuple[int, ...] | None,
        fixed: Mapping[int, Any],
        buffers: Sequence[tuple[int, int]],
        scalars: Sequence[tuple[int, int]],
        work: float = 0.0,
    ) -> None:
        from clfuse.runtime.drivers import opencl as cl

        if not program.brought_in:
            _expect(program)
            _bring_in_absent()
        self.program = program
        self._work = work
        self._kernel = lost.call_driver(
            program.device, program.name, cl.Kernel, program.compiled, program.name
        )
        self._global_size = global_size
        self._local_size = local_size
        self._buffers = tuple(buffers)
        self._fixed = dict(fixed)
        self._scalars = tuple(scalars)
        for number, value in fixed.items():
            dtype = program.arguments[number]
            content = value if dtype is None else pack_scalar(value, dtype)
            lost.call_driver(program.device, program.name, self._kernel.set_arg, number, content)
        # A simulated device looks at every launch.
        core = _direct_core() if program.device.simulation is None else None
        self._direct = None
        if core is not None:
            dtypes = [program.arguments[number] for number, _ in self._scalars]
            self._direct = core.Direct(
                self._kernel, global_size, local_size, self._buffers, self._scalars, dtypes,
                pack_scalar, program.inline, work,
            )

    @property
    def is_direct(self) -> bool:
        """Whether the driver is called without pyopencl."""
        return self._direct is not None

    def enqueue(
        self,
        buffers: list[Any],
        scalars: Sequence[Any],
        tickets: list[Any],
        *,
        wants_event: bool = False,
    ) -> cl.Event | None:
        """Launch with these buffers, and scalars or the nodes of constants, as `enqueue` does.

        The event is returned where it is wanted. The caller sees to it that no other thread
        launches the same object.
        """
        program = self.program
        direct = self._direct
        if direct is not None:
            if not wants_event and not observers:
                device = program.device
                queue, inline = device.queue.int_ptr, 0
                if program.inline:
                    inline = device.inline.queue.int_ptr  # type: ignore[union-attr]
                if direct(queue, inline, buffers, scalars, tickets):
                    counters["kernels_launched"] += 1
                    lost.latest[0] = program
                    return None
                return self.enqueue_again(buffers, scalars, tickets)
            direct.forget()
        return self._enqueue_by_pyopencl(buffers, scalars, tickets)

    def enqueue_again(
        self, buffers: list[Any], scalars: Sequence[Any], tickets: list[Any]
    ) -> cl.Event:
        """As `enqueue`, after the driver has refused the launch without pyopencl.

        Raises DeviceError: something has failed before the launch, or it was taken, and has failed:
            it must not be tried again.
        Raises AllocationError: as `lost.call_driver`.
        """
        assert self._direct is not None
        routine, status, was_taken = self._direct.refusal()
        if routine == "clFinish" or lost.means_lost(status):
            program = self.program
            error = lost.status_error(routine, status)
            raise lost.waiting(program.device, error, program.name if was_taken else "") from error
        self._direct.forget()
        return self._enqueue_by_pyopencl(buffers, scalars, tickets)

    def enqueue_timed(
        self, buffers: list[Any], scalars: Sequence[Any], tickets: list[Any]
    ) -> cl.Event:
        """As `enqueue`, on a queue of its own whose events hold times, in the same order with all
        that is in the device's queue before and after; nothing is waited for.

        For programs that are not `inline`.
        """
        from clfuse.runtime.drivers import opencl as cl

        device = self.program.device
        if self._direct is not None:
            self._direct.forget()
        timed = device.timed_queue
        with device.lock:
            # The queue may have gone between two launches.
            before = lost.call_driver(device, self.program.name, cl.enqueue_marker, device.queue)
            event = self._enqueue_by_pyopencl(buffers, scalars, tickets, timed, [before])
            try:
                cl.enqueue_barrier(device.queue, wait_for=[event])
                device.queue.flush()
                timed.flush()
            except cl.Error as error:  # it was launched, and what comes next must come after it
                try:
                    timed.finish()
                except cl.Error as failed:
                    raise lost.waiting(device, failed, self.program.name) from error
        return event

    def _enqueue_by_pyopencl(
        self,
        buffers: list[Any],
        scalars: Sequence[Any],
        tickets: list[Any],
        queue: cl.CommandQueue | None = None,
        wait_for: list[cl.Event] | None = None,
    ) -> cl.Event:
        """On a queue instead of the program's, if one is given, after some events."""
        program = self.program

        def launch() -> cl.Event:
            kernel = self._kernel
            set_argument = kernel.set_arg
            for number, place in self._buffers:
                set_argument(number, buffers[place].mem)
            for number, place in self._scalars:
                value = scalars[place]
                if isinstance(value, Node):
                    value = value.param
                set_argument(number, pack_scalar(value, program.arguments[number]))
            simulation = program.device.simulation
            sizes = self._global_size, self._local_size
            with _queue_of(program) if queue is None else nullcontext(queue) as into:
                if simulation is None:
                    return _put(tickets, into, kernel, *sizes, None, wait_for)
                return simulation.launch(
                    program.device, program.name, program.compiled, *sizes,
                    self._fixed | {n: buffers[place].mem for n, place in self._buffers},
                    lambda: _put(tickets, into, kernel, *sizes, None, wait_for),
                )  # fmt: skip

        event = lost.call_driver(program.device, program.name, launch)
        lost.latest[0] = program
        counters["kernels_launched"] += 1
        if not program.inline:
            waits.add(self._work)
        for observer in observers:
            observer(program, event)
        return event


_absent: dict[Program, int] = {}
"""Programs that were launched or bound, and whose constants nobody has brought into memory yet ->
how many waits were over since."""

_brought_in: set[bytes] = set()
"""Paths of those that are there: another kernel of the same name has another one."""

MOST_WAITS: Final = 8
"""After so many a kernel that is not found is taken to be loaded otherwise."""


def _expect(program: Program) -> None:
    _absent.setdefault(program, 0)
    waits.ask()


def _bring_in_absent(is_over: bool = False) -> bool:
    """Have the constants of kernels in memory that a driver has loaded meanwhile; whether some are
    not loaded yet."""
    if not _absent:
        return False
    from clfuse.runtime.drivers.loaded_pages import bring_in

    wanted = list(_absent.items())
    found = bring_in({program.name for program, _ in wanted})
    for program, waits_over in wanted:
        fresh = found[program.name] - _brought_in
        if fresh or waits_over >= MOST_WAITS:
            _brought_in.update([fresh.pop()] if fresh else [])
            program.brought_in.append(True)
            _absent.pop(program, None)
        elif is_over:
            _absent[program] = waits_over + 1
    return bool(_absent)


# The first launch on large arrays is under way when they come.
waits.before_waits.append(_bring_in_absent)


@cache
def _direct_core() -> Any:
    """What is compiled, once it knows the driver's functions; None where one of both is missing."""
    core = loading.load()
    if core is None:
        return None
    from clfuse.runtime.drivers import opencl as cl

    try:
        library = cl.library()
        addresses = [
            ctypes.cast(function, ctypes.c_void_p).value
            for function in (
                library.clSetKernelArg, library.clEnqueueNDRangeKernel, library.clFinish
            )
        ]
    except (AttributeError, OSError):
        return None
    core.connect_driver(*addresses)
    return core


def check_sizes(
    program: Program,
    global_size: tuple[int, ...],
    local_size: tuple[int, ...] | None,
    local_nbytes: int = 0,
) -> None:
    """Raise KernelBuildError where a driver would refuse a launch, before anything has run.

    `local_nbytes` are the bytes of local memory that are passed as arguments.
    """
    from clfuse.runtime.drivers import opencl as cl

    inline = program.device.inline if program.inline else None
    device = program.device.handle if inline is None else inline.handle

    def info_of(which: Any) -> Any:
        return lost.call_driver(
            program.device, program.name, program.kernel.get_work_group_info, which, device
        )

    wanted = info_of(cl.kernel_work_group_info.COMPILE_WORK_GROUP_SIZE)
    required = tuple(wanted[: len(global_size)])
    problem = ""
    if any(required) and local_size != required:
        problem = f"the kernel asks for groups of {required}"
    elif local_size is not None:
        most = info_of(cl.kernel_work_group_info.WORK_GROUP_SIZE)
        sizes = device.max_work_item_sizes
        if math.prod(local_size) > most:
            problem = f"a group has {most} work-items at most"
        elif any(n > limit for n, limit in zip(local_size, sizes, strict=False)):
            problem = f"a group has {tuple(sizes)} work-items at most, by dimension"
        elif any(n % each for n, each in zip(global_size, local_size, strict=True)):
            problem = "work-items must be a multiple of a group's"
    local_nbytes += program.kernel.get_work_group_info(
        cl.kernel_work_group_info.LOCAL_MEM_SIZE, device
    )
    most_local = program.device.traits.local_nbytes
    if not problem and local_nbytes > most_local:
        problem = f"{local_nbytes:,} bytes of local memory, but the device has {most_local:,}"
    if not problem and program.device.simulation is not None:
        problem = program.device.simulation.problem_of_launch(global_size, local_size)
    if problem:
        raise KernelBuildError(
            f"{program.name}: {global_size} work-items in groups of {local_size} on "
            f"{program.device.name}: {problem}"
        )


def kernel_name(address: int) -> str:
    """The name of the kernel that is the driver's object at an address."""
    from clfuse.runtime.drivers import opencl as cl

    return str(cl.Kernel.from_int_ptr(address, retain=True).function_name)


def local_memory(nbytes: int) -> Any:
    """An argument for a ``__local`` pointer."""
    from clfuse.runtime.drivers import opencl as cl

    return cl.LocalMemory(nbytes)


def count_of_items(device: Device) -> cl.Buffer:
    """The device's memory for a number that is 0 between launches (`codegen.joined`)."""
    if device.count is None:
        from clfuse.runtime.drivers import opencl as cl

        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        device.count = lost.call_driver(
            device, "a counter", cl.Buffer, device.context, flags, hostbuf=np.zeros(1, np.int32)
        )
    return device.count


def pack_scalar(value: Any, dtype: np.dtype[Any] | None) -> bytes:
    """A scalar argument as the bytes that a kernel object takes without asking for their type."""
    assert dtype is not None
    return np.asarray(value, dtype).tobytes()


def finish(device: Device) -> None:
    """Wait until the device has done all that was enqueued."""
    device.finish()


@contextmanager
def observe_launches(device: Device, observer: Callable[[Program, Any], None]) -> Iterator[None]:
    """Show every launch on any device to `observer` for the length of a block.

    device: whose events get times: ``event.profile.start`` and ``.end``, in nanoseconds, once it is
        done. Timing makes a launch up to 1 us slower, hence not always.
    observer: called with the program and its event, in the thread that launched it.
    """
    begin_timing(device)
    observers.append(observer)
    try:
        yield
    finally:
        observers.remove(observer)
        end_timing(device)


_timing: dict[Device, int] = {}
"""How many want the times of a device's events."""


def begin_timing(device: Device) -> None:
    """Have the events of a device hold times until `end_timing`; waits for the device."""
    count = _timing.get(device, 0)
    if not count:
        device.renew_queue(profiling=True)
    _timing[device] = count + 1


def end_timing(device: Device) -> None:
    """The caller wants no more times; waits for the device where nobody else does."""
    count = _timing.pop(device) - 1
    if count:
        _timing[device] = count
    else:
        device.renew_queue(profiling=False)


def times_of(event: cl.Event) -> tuple[int, int, int] | None:
    """When a launch was queued, began and ended, in nanoseconds on the device's clock.

    None where it is not done yet; -1 for each where its queue held no times, or it has failed.
    """
    from clfuse.runtime.drivers import opencl as cl

    try:
        status = event.command_execution_status
        if status > cl.command_execution_status.COMPLETE:
            return None
        profile = event.profile
        return profile.queued, profile.start, profile.end
    except cl.Error:
        return -1, -1, -1
