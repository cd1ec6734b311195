"""Simulated devices: a CPU device that appears as another one (``CLFUSE_SIMULATE``).

For machines that have no other device. The CPU device stays what compiles and runs. Its traits are
those of a row of `target.simulated_devices`, its memory is apart from the host's
(`simulated.memory`), and every build and launch is held to that device's limits. Each launch is
waited for, so that what is wrong with it is raised by it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from clfuse.errors import KernelBuildError
from clfuse.process import locks
from clfuse.runtime.context import lost
from clfuse.runtime.context.base import DeviceBase
from clfuse.target.simulated_devices import SIMULATED_DEVICES, SimulatedDevice
from clfuse.target.traits import QUIRKS, DeviceTraits, apply_quirks, with_schedule

from .guard_memory import arena
from .memory import SimulatedPool
from .memory_watch import MemoryWatch
from .sources import problem_of, restricted

if TYPE_CHECKING:
    import pyopencl as cl

__all__ = ["Simulation"]

HOST_SHARE: Final = 0.5
"""The part of the host's memory that a simulated device may have: programs, and what the host keeps
of the same arrays, need the rest."""

_lock = locks.make()
"""Held while a kernel runs on any simulated device: a process has one handler of faults."""

COMPILED: Final = {
    "expressions", "builtins_read", "subgroups_read", "build_options", "group_options",
    "correctly_rounded_divide", "narrow_positions",
}  # fmt: skip
"""Traits that are about the compiler at hand."""

HELD_SECONDS: Final = 5.0
"""A launch that has not begun after this time is held back by an event of the user's, and is not
waited for, nor is what comes after it: what they did is looked at when they are done, by the next
launch or wait. (A machine with much else to do takes a second.)"""

POLL_SECONDS: Final = 20e-6, 1e-3
"""How long it takes to look again whether a launch is done: at first, and at most."""


class Simulation:
    """What a device does in place of another one.

    key: of `SIMULATED_DEVICES`.
    """

    def __init__(self, key: str) -> None:
        self.row: SimulatedDevice = SIMULATED_DEVICES[key]
        self._watch = MemoryWatch()
        self._held: cl.Event | None = None

    def __str__(self) -> str:
        memory, row = arena(), self.row
        guarded = "are not seen"
        if memory is not None:
            guarded = "are errors" if memory.handles_faults else "end the process"
        return (
            f"{row.local_nbytes >> 10} KiB of local memory, {row.max_parameter_nbytes:,} bytes of"
            f" arguments, groups of {row.max_work_group}, {row.wave} work-items in lockstep,"
            f" {row.language}; accesses outside arrays {guarded}"
        )

    def name_on(self, native: str) -> str:
        """What the device is called."""
        return f"{self.row.name}, simulated on {native}"

    def traits(self, native: DeviceTraits, host_nbytes: int) -> DeviceTraits:
        """The simulated device's traits.

        native: those of the CPU device. Its quirks that are about the compiler hold here, too.
        host_nbytes: the host's memory; 0 where it is not known.
        """
        row = self.row
        largest = HOST_SHARE * host_nbytes if host_nbytes else native.global_nbytes
        scale = min(1.0, largest / row.global_nbytes)
        traits = DeviceTraits(
            name=f"{row.name} (simulated)",
            vendor=row.vendor,
            platform=row.platform,
            driver=f"{native.driver}, {native.platform}",
            version=row.version,
            kind="gpu",
            compute_units=row.compute_units,
            fp64=row.fp64 and native.fp64,
            fp16=row.fp16 and native.fp16,
            unified_memory=row.unified_memory,
            # It only says whether the compiler takes an option.
            correctly_rounded_divide=row.correctly_rounded_divide
            and native.correctly_rounded_divide,
            max_alloc_nbytes=min(int(scale * row.max_alloc_nbytes), native.max_alloc_nbytes),
            global_nbytes=int(scale * row.global_nbytes),
            local_nbytes=min(row.local_nbytes, native.local_nbytes),
            max_parameter_nbytes=row.max_parameter_nbytes,
            max_work_group=min(row.max_work_group, native.max_work_group),
        )
        traits = apply_quirks(with_schedule(traits, "gpu"))
        # What is wrong with the simulated device's builtins is avoided in a way that is right
        # anywhere; what is wrong with those of the compiler at hand has to be avoided.
        return replace(
            traits,
            expressions={**traits.expressions, **native.expressions},
            builtins_read=native.builtins_read,
            subgroups_read=native.subgroups_read,
            narrow_positions=native.narrow_positions,
            group_options=native.group_options,
            build_options=f"{native.build_options} -cl-std={_language(row, native)}".strip(),
            quirks=(*traits.quirks, *_about_compiler(native.quirks)),
        )

    def pool(self, device: DeviceBase) -> SimulatedPool:
        """The device's memory."""
        return SimulatedPool(device)

    # -- builds and launches -----------------------------------------------------------------------

    def source(self, source: str) -> str:
        """OpenCL C in which the compiler at hand knows no type that the simulated one does not."""
        return restricted(source, self.row)

    def problem_of_build(
        self, program: cl.Kernel, source: str, arguments: Sequence[Any], device: DeviceBase
    ) -> str:
        """Why the simulated device's compiler would refuse a kernel; empty where it would not."""
        from clfuse.runtime.drivers import opencl as cl

        row = self.row
        problem = problem_of(source)
        if problem:
            return problem
        nbytes = 0
        for dtype in arguments:
            size = 8 if dtype is None else dtype.itemsize  # a pointer, or a number
            nbytes = -(-nbytes // size) * size + size
        if nbytes > row.max_parameter_nbytes:
            return (
                f"error: its arguments have {nbytes:,} bytes, the device takes"
                f" {row.max_parameter_nbytes:,}"
            )
        local = program.get_work_group_info(cl.kernel_work_group_info.LOCAL_MEM_SIZE, device.handle)
        if local > row.local_nbytes:
            return f"error: it has {local:,} bytes of local memory, the device {row.local_nbytes:,}"
        return ""

    def problem_of_launch(
        self,
        global_size: tuple[int, ...],
        local_size: tuple[int, ...] | None,
        local_nbytes: int = 0,
    ) -> str:
        """Why the simulated device would refuse a launch; empty where it would not."""
        row = self.row
        if local_size is not None:
            if math.prod(local_size) > row.max_work_group:
                return f"a group has {row.max_work_group} work-items at most"
            if any(n > most for n, most in zip(local_size, row.max_work_items, strict=False)):
                return f"a group has {row.max_work_items} work-items at most, by dimension"
            if any(n % each for n, each in zip(global_size, local_size, strict=True)):
                return "work-items must be a multiple of a group's"
        if local_nbytes > row.local_nbytes:
            return (
                f"the kernel has {local_nbytes:,} bytes of local memory, the device"
                f" {row.local_nbytes:,}"
            )
        return ""

    def launch(
        self,
        device: DeviceBase,
        name: str,
        compiled: cl._cl._Program,
        global_size: tuple[int, ...],
        local_size: tuple[int, ...] | None,
        arguments: Mapping[int, Any],
        enqueue: Callable[[], cl.Event],
    ) -> cl.Event:
        """Launch, wait, and say what was wrong.

        device: where.
        name: the kernel's.
        compiled: from which the kernel is.
        global_size, local_size: as for `runtime.launches.launch.enqueue`.
        arguments: number -> buffer, or what else it takes.
        enqueue: puts the kernel into the queue.
        """
        from clfuse.runtime.drivers import opencl as cl

        local = sum(value.size for value in arguments.values() if isinstance(value, cl.LocalMemory))
        if local:
            # What the kernel has by itself: a new kernel object, which has no arguments yet.
            fresh = cl.Kernel(compiled, name)
            local += fresh.get_work_group_info(
                cl.kernel_work_group_info.LOCAL_MEM_SIZE, device.handle
            )
        problem = self.problem_of_launch(global_size, local_size, local)
        if problem:
            raise KernelBuildError(
                f"{name}: {global_size} work-items in groups of {local_size} on"
                f" {device.name}: {problem}"
            )
        with _lock:
            held = self._held
            if held is not None and _is_done(held):
                self.finished(device)
                held = None
            self._watch.begin(name, arguments)
            try:
                event = enqueue()
            except BaseException:
                # It may have been taken all the same, where an interrupt has come behind that.
                self._held = cl.enqueue_marker(device.queue)
                if held is None and _wait(device, self._held):
                    self.finished(device)
                raise
            self._held = event
            try:
                is_done = held is None and _wait(device, event)
            except cl.Error as error:  # it was taken: it must not be launched again
                raise lost.waiting(device, error, name) from error
            if is_done:
                self.finished(device)
        return event

    def finished(self, device: DeviceBase) -> None:
        """All that was enqueued is done: say what was wrong with launches that were held back.

        Raises DeviceError: one of them has read or written outside its arrays.
        """
        with _lock:
            self._held = None
            self._watch.end(device.name)


def _language(row: SimulatedDevice, native: DeviceTraits) -> str:
    """What ``-cl-std`` is given."""
    if row.language == "CL2.0" and native.platform == "Portable Computing Language":
        return "CL3.0"  # PoCL's header has no vload4 and vstore4 for 2.0 (3.1)
    return row.language


def _about_compiler(names: Sequence[str]) -> list[str]:
    """Those quirks that say what a compiler gets wrong."""
    return [quirk.name for quirk in QUIRKS if quirk.name in names and COMPILED & set(quirk.change)]


def _is_done(event: cl.Event) -> bool:
    from clfuse.runtime.drivers import opencl as cl

    return bool(event.command_execution_status <= cl.command_execution_status.COMPLETE)


def _wait(device: DeviceBase, event: cl.Event) -> bool:
    """Wait for a launch; False where it is held back."""
    from clfuse.runtime.drivers import opencl as cl

    status = cl.command_execution_status
    device.queue.flush()
    pause, longest = POLL_SECONDS
    since = time.monotonic()
    while (now := event.command_execution_status) > status.COMPLETE:
        if now > status.RUNNING and time.monotonic() - since > HELD_SECONDS:
            return False
        time.sleep(pause)
        pause = min(2 * pause, longest)
    return True
