"""Puts built kernels into a device's queue; `clfuse.evaluate` calls it for every kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from clfuse.counters import counters
from clfuse.errors import AllocationError
from clfuse.runtime.device import Device
from clfuse.runtime.program import Program

if TYPE_CHECKING:
    import pyopencl as cl

__all__ = ["enqueue", "finish", "flush", "observed"]

#: Who wants to see every launch: (program, event) -> None.
_observers: list[Callable[[Program, Any], None]] = []


def enqueue(
    program: Program,
    global_size: tuple[int, ...],
    local_size: tuple[int, ...] | None,
    args: Sequence[Any],
) -> cl.Event:
    """Put one launch of a kernel into its device's queue and return its event, without waiting.

    Parameters
    ----------
    program : Program
        From `runtime.program.build`.
    global_size, local_size : tuple of int
        Work-items, and work-items of a group (None: the driver's choice).
    args : sequence
        In the kernel's order: `Buffer.mem` for buffers, Python or NumPy scalars for scalars. The
        buffers must live until this returns, not longer: the queue is in order, so that the next
        owner of their memory comes later.
    """
    device = program.device
    try:
        # A kernel object holds its arguments, so setting them and the launch are one step.
        with device.lock:
            event = program.kernel(device.queue, global_size, local_size, *args)
    except Exception as error:
        raise _explained(program, error) from error
    counters["kernels_launched"] += 1
    for observer in _observers:
        observer(program, event)
    return event


def _explained(program: Program, error: Exception) -> Exception:
    """Return the error to raise: the driver's own, unless it is about memory."""
    import pyopencl as cl

    if isinstance(error, cl.MemoryError):
        return AllocationError(
            f"{program.name}: {program.device.name} has not the memory for a launch: {error}"
        )
    return error


def flush(device: Device) -> None:
    """Hand what is enqueued to the device, without waiting."""
    device.queue.flush()


def finish(device: Device) -> None:
    """Wait until the device has done all that was enqueued."""
    device.queue.finish()


@contextmanager
def observed(device: Device, observer: Callable[[Program, Any], None]) -> Iterator[None]:
    """Show every launch on any device to `observer` for the length of a block.

    Parameters
    ----------
    device : Device
        Whose events get times: ``event.profile.start`` and ``.end``, in nanoseconds, once it is
        done. Timing makes a launch up to 1 us slower, hence not always.
    observer : callable
        Called with the program and its event, in the thread that launched it.
    """
    device.renew_queue(profiling=True)
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)
        device.renew_queue(profiling=False)
