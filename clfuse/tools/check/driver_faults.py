"""Fault injection: calls of an OpenCL driver that fail, to see what clfuse does then.

Every object of a driver begins with a pointer to the table of its functions, by which the loader
calls it: pyopencl's calls go there, and those that clfuse makes without it. `failing` puts a
function of this module into that table.

Source: the structure `cl_icd_dispatch` of cl_icd.h in the Khronos OpenCL headers.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from clfuse.runtime.launches import launch

Pointer, Size, Int, UInt, Flags = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int32, ctypes.c_uint32, ctypes.c_uint64,
)  # fmt: skip
WAITS: Final = (UInt, Pointer, Pointer)

#: Name -> place in the table, types of the arguments, whether it waits for what was enqueued before
#: it fails, and where the address of a status is, in functions that return an object.
FUNCTIONS: Final[dict[str, tuple[int, tuple[Any, ...], bool, int | None]]] = {
    "clCreateBuffer": (14, (Pointer, Flags, Size, Pointer, Pointer), False, 4),
    "clBuildProgram": (30, (Pointer, UInt, Pointer, Pointer, Pointer, Pointer), False, None),
    "clCreateKernel": (34, (Pointer, Pointer, Pointer), False, 2),
    "clSetKernelArg": (38, (Pointer, UInt, Size, Pointer), False, None),
    "clWaitForEvents": (41, (UInt, Pointer), True, None),
    "clGetEventInfo": (42, (Pointer, UInt, Size, Pointer, Pointer), False, None),
    "clFinish": (47, (Pointer,), True, None),
    "clEnqueueReadBuffer":
        (48, (Pointer, Pointer, UInt, Size, Size, Pointer, *WAITS), True, None),
    "clEnqueueWriteBuffer":
        (49, (Pointer, Pointer, UInt, Size, Size, Pointer, *WAITS), False, None),
    "clEnqueueCopyBuffer":
        (50, (Pointer, Pointer, Pointer, Size, Size, Size, *WAITS), False, None),
    "clEnqueueMapBuffer":
        (56, (Pointer, Pointer, UInt, Flags, Size, Size, *WAITS, Pointer), True, 9),
    "clEnqueueUnmapMemObject": (58, (Pointer, Pointer, Pointer, *WAITS), False, None),
    "clEnqueueNDRangeKernel":
        (59, (Pointer, Pointer, UInt, Pointer, Pointer, Pointer, *WAITS), False, None),
    "clEnqueueFillBuffer":
        (102, (Pointer, Pointer, Pointer, Size, Size, Size, *WAITS), False, None),
    "clEnqueueMigrateMemObjects": (104, (Pointer, UInt, Pointer, Flags, *WAITS), False, None),
    "clEnqueueMarkerWithWaitList": (105, (Pointer, *WAITS), False, None),
}  # fmt: skip

FINISH: Final = FUNCTIONS["clFinish"][0]

CAN_FAIL: Final = sys.platform == "linux"
"""Elsewhere there may be no such table, or no way to write to it."""


class Fault:
    """A function that fails.

    calls (int): how often it was called.
    failed (int): how often it has failed.
    """

    def __init__(self, name: str, status: int, first: int, times: int | None) -> None:
        self.name = name
        self.status = status
        self.first = first
        self.times = times
        self.calls = self.failed = 0

    def strikes(self) -> bool:
        """Whether this call of it fails."""
        self.calls += 1
        if self.calls <= self.first or (self.times is not None and self.failed >= self.times):
            return False
        self.failed += 1
        return True


@contextmanager
def failing(
    device: Any, name: str, status: int, *, first: int = 0, times: int | None = None,
    which: Callable[..., bool] = lambda *args: True,
) -> Iterator[Fault]:
    """Have a driver's function fail for the length of a block.

    device (Device): of which driver.
    name: a key of `FUNCTIONS`.
    status: what it returns.
    first: how many calls succeed before.
    times: how many fail; None: all.
    which: whether a call with these arguments counts.
    """
    if not CAN_FAIL:
        raise OSError("the driver's table of functions is written on Linux alone")
    table = ctypes.cast(device.handle.int_ptr, ctypes.POINTER(ctypes.POINTER(Pointer)))[0]
    place, types, waits, at = FUNCTIONS[name]
    kind = ctypes.CFUNCTYPE(Int if at is None else Pointer, *types)
    original = kind(table[place])
    finish = ctypes.CFUNCTYPE(Int, Pointer)(table[FINISH])
    fault = Fault(name, status, first, times)

    def called(*args: Any) -> Any:
        if not which(*args) or not fault.strikes():
            return original(*args)
        if waits and name != "clWaitForEvents":
            # As a driver that notices: nothing runs any more when it says so.
            finish(args[0])
        elif waits:
            original(*args)
        if at is None:
            return status
        if args[at]:
            ctypes.cast(args[at], ctypes.POINTER(Int))[0] = status
        return None

    mine = kind(called)
    with ExitStack() as stack:
        _write(table, place, ctypes.cast(mine, Pointer).value)
        stack.callback(_write, table, place, ctypes.cast(original, Pointer).value)
        yield fault
    _kept.append(mine)  # a thread of the driver's may be in it


_kept: list[Any] = []


def kernel_of(*arguments: Any) -> str:
    """The name of the kernel that clEnqueueNDRangeKernel with these arguments launches."""
    return launch.kernel_name(arguments[1])


def _write(table: Any, place: int, address: int | None) -> None:
    start = ctypes.addressof(table.contents) + place * ctypes.sizeof(Pointer)
    page = start & -mmap.PAGESIZE
    library = ctypes.CDLL(None, use_errno=True)
    length = start + ctypes.sizeof(Pointer) - page
    if library.mprotect(Pointer(page), Size(length), mmap.PROT_READ | mmap.PROT_WRITE):
        raise OSError(ctypes.get_errno(), "the driver's table of functions cannot be written")
    table[place] = address


def calls_of(device: Any, name: str, work: Any) -> int:
    """How often `work()` has the driver's function called."""
    with failing(device, name, 0, times=0) as fault:
        work()
    return fault.calls


ALL: Final[Sequence[str]] = tuple(FUNCTIONS)
