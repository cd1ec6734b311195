"""Memory between guard pages: an access outside of a block faults, and is noted.

One range of addresses is reserved, much larger than the machine's memory, and nothing in it may be
read or written but the blocks. Each ends at the end of a page and starts at a multiple of
`ALIGNMENT`, so that the first byte behind it lies in a page that may not be touched; between two
blocks are `GAP` bytes at least. No address is given twice, so that the use of a block that was
given back is seen, too.

The compiled part handles the faults (``_core/guard_pages.pxi``): it makes the page accessible and
notes the access, which `Arena.watched` gives to its caller. Without the compiled part such an
access ends the process, and faulthandler prints the lines that led to it.
"""

from __future__ import annotations

import bisect
import ctypes
import faulthandler
import mmap
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clfuse._core import loading
from clfuse.dataclass import frozen
from clfuse.process import locks
from clfuse.runtime.context.pool import LentMemory

__all__ = ["PATTERN", "Access", "Arena", "Guarded", "arena", "distance", "guarded"]

PATTERN: Final = 0x7FFA
"""What undefined memory holds, every two bytes: NaN as half, float and double, and a number far
from all indices as an integer of any width."""

ALIGNMENT: Final = 128
"""Of a block's start: the largest OpenCL C type."""

GAP: Final = 1 << 20
"""Bytes between blocks."""

RESERVED: Final = (1 << 44, 1 << 42, 1 << 40, 1 << 38)
"""Bytes of addresses, as many as the system gives: a process on x86-64 has 2**47."""

MARGIN: Final = 1 / 8
"""The part of them that is left free at either end: `PATTERN` as an index of 32 bits is up to 34 GB
away (double2)."""

CHECKED_NBYTES: Final = 1 << 16
"""Bytes behind the requested ones that are compared after each launch."""

_FAILED: Final = ctypes.c_void_p(-1).value


@frozen
class Access:
    """An access outside every block.

    address: the first in its page.
    wrote: whether it was a write; None where the system does not say.
    """

    address: int
    wrote: bool | None


class Guarded:
    """A block: NumPy makes an array of it, and it goes back with the last such array.

    address, size (int): its bytes.
    used (int): how many of them were requested; the others are `PATTERN`, and stay so.
    turn (int): how often it was requested.
    """

    def __init__(self, owner: Arena, address: int, size: int) -> None:
        self.owner = owner
        self.address = address
        self.size = self.used = size
        self.turn = 0
        # The block is filled when it is taken; what lies before it in its first page is not.
        self._pages()[: self.lead].view(np.uint16)[...] = PATTERN
        self.__array_interface__ = {
            "version": 3, "data": (address, False), "shape": (size,), "typestr": "|u1",
        }  # fmt: skip

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing():  # else it goes with the process
            self.owner.take_back(self.address, self.size)

    @property
    def lead(self) -> int:
        """Bytes of its first page before it."""
        return self.address % mmap.PAGESIZE

    def _pages(self) -> npt.NDArray[np.uint8]:
        nbytes = self.lead + self.size
        memory = (ctypes.c_uint8 * nbytes).from_address(self.address - self.lead)
        return np.ctypeslib.as_array(memory)

    def overwritten(self) -> int | None:
        """The first byte that was written to though it was not requested, counted from the block's
        start; None where there is none. It is `PATTERN` again afterwards."""
        memory, lead = self._pages(), self.lead
        behind = lead + self.used
        for part in (slice(0, lead), slice(behind, behind + CHECKED_NBYTES)):
            found = memory[part]
            expected = _PATTERN_BYTES[(part.start + np.arange(len(found))) % 2]
            if not np.array_equal(found, expected):
                place = int(np.flatnonzero(found != expected)[0])
                found[...] = expected
                return part.start + place - lead
        return None


_PATTERN_BYTES: Final = np.array([PATTERN], np.uint16).view(np.uint8)


_core: Final = loading.load()
if _core is not None:
    Guarded.__del__ = _core.undisturbed(Guarded.__del__)  # type: ignore[method-assign]


class Arena:
    """The range of addresses that blocks lie in.

    Raises
    ------
    OSError
        The system has no such memory.
    """

    def __init__(self) -> None:
        self._map, self._protect = _system_calls()
        # Of one thread, too: a block may go back whenever Python collects garbage.
        self._lock = locks.make()
        self._starts: list[int] = []
        self._ends: list[int] = []
        self.start, self.end = self._reserve()
        margin = int(MARGIN * (self.end - self.start))
        self._next, self._last = self.start + margin, self.end - margin
        core = loading.load()
        handles = core is not None and core.guard(self.start, self.end, mmap.PAGESIZE, PATTERN)
        self._core: Any = core if handles else None
        if self._core is None and not faulthandler.is_enabled():
            faulthandler.enable()

    @property
    def handles_faults(self) -> bool:
        """Whether an access outside is noted; else it ends the process."""
        return self._core is not None

    def _reserve(self) -> tuple[int, int]:
        for nbytes in RESERVED:
            start = self._map(None, nbytes, _NOBODY, _PRIVATE, -1, 0)
            if start not in (None, _FAILED):
                return start, start + nbytes
        raise OSError("the system reserves no addresses for a simulated device's memory")

    def take(self, nbytes: int) -> Guarded:
        """Return a block of at least so many bytes, of undefined contents.

        Raises
        ------
        MemoryError
            No memory, or no addresses are left.
        """
        size = -(-nbytes // ALIGNMENT) * ALIGNMENT
        pages = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        with self._lock:
            start, end = self._next, self._next + pages
            if end > self._last:
                raise MemoryError("no addresses are left for a simulated device's memory")
            if self._protect(start, pages, mmap.PROT_READ | mmap.PROT_WRITE) != 0:
                raise MemoryError(f"the system has no {pages:,} bytes more")
            self._next = end + GAP
            self._starts.append(end - size)
            self._ends.append(end)
        return Guarded(self, end - size, size)

    def take_back(self, address: int, size: int) -> None:
        """Make every access to a block a fault from here on."""
        with self._lock:
            place = bisect.bisect_left(self._starts, address)
            if self._starts[place : place + 1] == [address]:  # not: again, after an interrupt
                del self._starts[place], self._ends[place]
        self._close(address // mmap.PAGESIZE * mmap.PAGESIZE, address + size)

    def _close(self, start: int, end: int) -> None:
        """Give pages back to the system; their addresses stay reserved."""
        self._map(start, end - start, _NOBODY, _PRIVATE | _FIXED, -1, 0)

    def watch(self, name: str) -> None:
        """Note accesses outside from here on; if one ends the process, `name` is said."""
        if self._core is not None:
            self._core.watch(name.encode())

    def unwatch(self) -> list[Access]:
        """Return what was noted since `watch`; the pages may not be touched again."""
        if self._core is None:
            return []
        found = [Access(address, wrote) for address, wrote in self._core.unwatch() if address]
        pages = {access.address // mmap.PAGESIZE * mmap.PAGESIZE for access in found}
        for page in pages:
            self._close(page, page + mmap.PAGESIZE)
        return found

    def nearest(self, address: int) -> tuple[int, int]:
        """The start and the end of the block that is nearest to an address outside.

        Raises LookupError: there are none.
        """
        with self._lock:
            place = bisect.bisect_right(self._starts, address)
            beside = [
                (self._starts[each], self._ends[each])
                for each in (place - 1, place)
                if 0 <= each < len(self._starts)
            ]
        if not beside:
            raise LookupError("there are no blocks")
        return min(beside, key=lambda block: distance(address, *block))


def distance(address: int, start: int, end: int) -> int:
    """How many bytes an address outside lies from a block: 1 is the first byte behind it."""
    return start - address if address < start else address - end + 1


_PRIVATE: Final = (
    getattr(mmap, "MAP_PRIVATE", 0)
    | getattr(mmap, "MAP_ANONYMOUS", 0)
    | getattr(mmap, "MAP_NORESERVE", 0x4000)
)
"""Python has a name for the last since 3.13; the number is Linux's."""

_NOBODY: Final = 0
"""PROT_NONE."""

_FIXED: Final = 0x10
"""MAP_FIXED, on Linux and on macOS."""


def _system_calls() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The functions mmap and mprotect."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
        map_, protect = library.mmap, library.mprotect
    except (AttributeError, OSError, TypeError) as error:  # Windows
        raise OSError(f"the system has no mmap and mprotect: {error}") from error
    size = ctypes.c_size_t
    map_.restype = ctypes.c_void_p
    map_.argtypes = [ctypes.c_void_p, size, *[ctypes.c_int] * 3, ctypes.c_longlong]
    protect.argtypes = [ctypes.c_void_p, size, ctypes.c_int]
    return map_, protect


@cache
def arena() -> Arena | None:
    """The one of this process; None where the system has no such memory."""
    try:
        return Arena()
    except OSError:
        return None


def guarded(block: Any) -> Guarded | None:
    """The memory of a block, if it is `Guarded`."""
    memory: Any = getattr(block, "hostbuf", None)
    lent = None if memory is None else memory.base
    base = lent.array.base if isinstance(lent, LentMemory) else None
    return base if isinstance(base, Guarded) else None
