"""Errors for what a driver refuses: memory that is short, or a device that was lost.

A kernel that faults takes its context with it: every later call fails, as a rule with
OUT_OF_RESOURCES, INVALID_COMMAND_QUEUE or a number of the driver's own (NVIDIA: -9999), and reads
give nothing. Such a device is marked: its queue is not used again, and every use of it raises
DeviceError. Arrays that are on the host stay. `set_device` opens the hardware anew, as another
`Device`.

OUT_OF_RESOURCES is also what a driver says of one launch that is too large. Where a call without a
wait is refused with it, the context is probed. Where a *wait* fails, something unknown that was
enqueued before has failed: then the device is lost in any case, because its memory may hold
anything.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from clfuse.errors import AllocationError, DeviceError

from .base import DeviceBase
from .remedies import broken

if TYPE_CHECKING:
    import pyopencl as cl

__all__ = [
    "abandon",
    "call_driver",
    "canary",
    "check_pinned",
    "driver_error",
    "error_of_driver",
    "latest",
    "let_go",
    "mark",
    "require_alive",
    "waiting",
]  # fmt: skip

#: Not enough memory or registers, which may be true of one call alone:
#: CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY.
MEMORY: Final = frozenset({-4, -5, -6})

#: What is only said of a context that is gone: CL_DEVICE_NOT_AVAILABLE,
#: CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, CL_INVALID_CONTEXT, CL_INVALID_COMMAND_QUEUE.
GONE: Final = frozenset({-2, -14, -34, -36})

#: The errors that OpenCL 3.0 and the extensions of its registry have, all of them.
DEFINED: Final = (range(-19, 0), range(-72, -29), range(-1199, -999))

CAUSE_CHARACTERS: Final = 200
"""What is kept of a driver's message."""

MOST_NAMES: Final = 4
"""Kernels of the last plan that an error names."""

latest: Final[list[Any]] = [None]
"""What was launched last: a program, or the bound kernels of a plan. A guess at what has failed."""

TOUCH: Final = np.zeros(16, np.uint8)

_Result = TypeVar("_Result")


def driver_error() -> type[Exception]:
    """The class of what pyopencl raises; an ``except`` clause asks only when something failed."""
    from clfuse.runtime.drivers import opencl as cl

    return cl.Error


def status_of(error: Exception) -> int:
    """The driver's status in an error of pyopencl's; 0 in those that pyopencl makes by itself, of a
    text, but for memory."""
    from clfuse.runtime.drivers import opencl as cl

    record = error.args[0] if error.args else None
    if isinstance(record, cl._ErrorRecord):
        return record.code()
    return -4 if isinstance(error, cl.MemoryError) else 0


def means_lost(code: int) -> bool:
    """Whether a driver says by this that the context is gone.

    >>> means_lost(-36), means_lost(-9999), means_lost(-5), means_lost(-54)
    (True, True, False, False)
    """
    return code in GONE or (code < 0 and not any(code in codes for codes in DEFINED))


def call_driver(
    device: DeviceBase, what: str, call: Callable[..., _Result], *args: Any, **options: Any
) -> _Result:
    """Return what ``call(*args, **options)`` does, a call of the driver.

    Where there is not the memory for it, it is made once more after all memory that is not used
    went back. To be used for what has no effect if it fails.

    what: what it is, for the message: "an upload".

    Raises AllocationError: there still is not.
    Raises DeviceError: the device was lost.
    Raises pyopencl.Error: what else the driver says.
    """
    try:
        return call(*args, **options)
    except driver_error() as error:
        code = status_of(error)
        if means_lost(code):
            raise error_of_driver(device, error, what) from error
        if code not in MEMORY:
            raise
        make_room(device, error)
    try:
        return call(*args, **options)
    except driver_error() as error:
        raise error_of_driver(device, error, what) from error


def make_room(device: DeviceBase, error: Exception) -> None:
    """Give back unused memory, after the driver has refused something with `error`.

    Raises DeviceError: the device was lost.
    """
    require_alive(device, error)
    gc.collect()  # arrays in reference cycles still own their blocks
    if device.pool is not None:
        device.pool.trim()


def error_of_driver(device: DeviceBase, error: Exception, what: str) -> Exception:
    """The error to raise for one of pyopencl's from a call that enqueues, allocates or asks.

    To be raised from `error`; for what is about the call alone it is another object of the same
    contents.
    """
    code = status_of(error)
    if means_lost(code) or (code in MEMORY and not is_alive(device)):
        return mark(device, _one_line(error), "")
    if code in MEMORY:
        return AllocationError(
            f"{what} on {device.name}: the driver has not the memory or the registers for it:"
            f" {_one_line(error)}; nothing is lost: use smaller arrays, or drop those that are no"
            " longer needed"
        )
    return type(error)(error.what)  # type: ignore[attr-defined]


def waiting(device: DeviceBase, error: Exception, kernel: str = "") -> Exception:
    """The error to raise for one of pyopencl's from a wait: something enqueued before has failed,
    `kernel` if that is known."""
    if not isinstance(error, driver_error()):
        return error
    return mark(device, _one_line(error), kernel)


def status_error(routine: str, status: int) -> Exception:
    """The error that pyopencl would raise, for calls that were made without it."""
    from clfuse.runtime.drivers import opencl as cl

    record: Any = cl._ErrorRecord(routine, status, "")
    return cl.Error(record)


def require_alive(device: DeviceBase, error: Exception) -> None:
    """Raise DeviceError where the device does no work any more, which `error` hints at."""
    if not is_alive(device):
        raise mark(device, _one_line(error)) from error


def is_alive(device: DeviceBase) -> bool:
    """Whether the device still does what it is told; waits for what was enqueued."""
    from clfuse.runtime.drivers import opencl as cl

    if device.lost:
        return False
    queue, touched = device._queue, device.canary
    if queue is None or touched is None:
        return True
    try:
        cl.enqueue_fill_buffer(queue, touched, TOUCH, 0, TOUCH.nbytes)
        queue.finish()
    except cl.Error:
        return False
    return True


def canary(queue: cl.CommandQueue) -> cl.Buffer:
    """A small buffer to probe the context by, which the driver has allocated: later there may be no
    memory for it."""
    from clfuse.runtime.drivers import opencl as cl

    buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, TOUCH.nbytes)
    cl.enqueue_fill_buffer(queue, buffer, TOUCH, 0, TOUCH.nbytes)
    queue.finish()
    return buffer


def mark(device: DeviceBase, cause: str, kernel: str = "") -> DeviceError:
    """Note that a device was lost, and return the error that says so; the first one says most."""
    if device.lost:
        return DeviceError(broken(device))
    who = f"kernel {kernel} failed" if kernel else "a command failed"
    device.cause = f"{who}: {cause}"
    device.lost = True
    hint = ""
    if not kernel:
        names = _latest_names(device)
        if names:
            hint = f" (launched last: {names})"
        hint += "; CLFUSE_DEBUG=sync says which kernel it is"
    _let_end(device)
    if device.pool is not None:
        device.pool.close()
    return DeviceError(f"{broken(device)}{hint}")


def _let_end(device: DeviceBase) -> None:
    """Wait for what a lost device may yet be doing, before memory of its commands goes.

    A context that is gone says so at once; but it may also be one call that was refused, while
    kernels run that were taken before.
    """
    inline = device.inline
    for queue in (device._queue, None if inline is None else getattr(inline, "queue", None)):
        if queue is not None:
            with suppress(driver_error()):
                queue.finish()


def let_go(device: DeviceBase) -> None:
    """Let a lost device's context go, as far as this is its only owner."""
    # Host memory of commands that the driver never ended stays: pyopencl's event waits for its
    # command when it goes, and a thread of the driver may still read the memory.
    for event, owner in list(device.pinned):
        try:
            is_done = event.command_execution_status <= 0
        except driver_error():
            is_done = False
        if not is_done:
            abandon((event, owner))
    device.pinned.clear()
    latest[0] = None
    device._queue = device._timed_queue = device._context = None
    device.canary = device.count = None
    device.tables.clear()


def abandon(memory: object) -> None:
    """Keep host memory for ever: there is no way to wait for what a lost device does with it."""
    _abandoned.append(memory)


_abandoned: Final[list[Any]] = []


def check_pinned(device: DeviceBase) -> None:
    """Let go of host memory whose commands are done.

    Raises DeviceError: one of them has failed: what was uploaded is not there.
    """
    pinned = device.pinned
    try:
        while pinned:
            event, owner = pinned.popleft()
            status = event.command_execution_status
            if status > 0:
                pinned.appendleft((event, owner))
                return
            if status < 0:
                raise mark(device, f"an upload ended with status {status}")
    except IndexError:  # another thread took the last one
        return
    except driver_error() as error:
        pinned.appendleft((event, owner))
        raise waiting(device, error) from error


def _latest_names(device: DeviceBase) -> str:
    """The kernels that this device was given last, in a few words."""
    found = latest[0]
    listed = found if type(found) is list else [found]
    programs = [getattr(each, "program", each) for each in listed]
    names = [each.name for each in programs if each is not None and each.device is device]
    shown = ", ".join(names[:MOST_NAMES])
    return shown + ", ..." if len(names) > MOST_NAMES else shown


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:CAUSE_CHARACTERS]
