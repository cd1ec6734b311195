"""The memory pool of a device: freed blocks, kept for their next owner.

Touching fresh memory is what makes a temporary expensive: 20 to 50 ms for 64 MB in 4 KiB pages, 3
ms the second time. On a CPU device a block is therefore host memory of our own, in huge pages
where the system has them, which the driver is told to use in place: the first touch takes half as
long as with the drivers' own allocations, and streaming kernels are 3 to 15 % faster. An allocation
served from the pool takes 0.8 us, the `Buffer` included.

A freed block may be handed out at once, while commands of its last owner are still under way: the
queue is in order.
"""

from __future__ import annotations

import gc
import itertools
import mmap
import os
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clfuse import config
from clfuse._core import loading
from clfuse.config import settings
from clfuse.errors import AllocationError, DeviceError

from . import lost
from .base import DeviceBase

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyopencl as cl

__all__ = [
    "LentMemory", "Pool", "all_pools", "block_size", "host_nbytes", "when_short", "when_tight",
]  # fmt: skip

#: Alignment and least size of a block: the largest OpenCL C type (double16, long16) and two cache
#: lines.
ALIGNMENT = 128

#: Block sizes per octave, as a power of two: a block is at most a sixteenth larger than asked for.
SIZE_STEPS_LOG2 = 4

#: From this size on a block is mapped by itself, in whole huge pages (2 MiB on x86-64 and most of
#: Arm).
HUGE_PAGE = 2 << 20

#: Successive blocks start this much further into their first page, in turns: arrays of one kernel
#: that all start at the same place of a page compete for the same sets of the caches, and a load
#: looks as if it depended on the last store.
STAGGER, STAGGER_TURNS = 4096 + 2 * ALIGNMENT, 16

#: What makes a driver allocate a block. It lives as long as the module: a driver may read it when
#: the command runs, not when it is enqueued.
FIRST_TOUCH = np.zeros(16, np.uint8)

#: Where Linux says what a container may use (control groups, version 2).
CONTAINER_LIMIT = "/sys/fs/cgroup/memory.max"

#: Blocks without an owner go back to the system before they would hold more than this part of the
#: memory.
HELD_SHARE = 0.25


CALM_EVALUATIONS: Final = 64
"""After so many evaluations that had the memory that they took, it is short no longer."""

when_tight: Final[list[Callable[[], None]]] = []
"""Functions that are called when a pool becomes tight: to end fast paths that do not test it."""

when_short: Final[list[Callable[[Pool, int], int]]] = []
"""Functions that are called before an allocation fails, with the pool and the bytes that are needed
(`memory.spilling`). Each gives memory of idle arrays back and returns how much: 0 where there is
none to give."""

all_pools: Final[weakref.WeakSet[Pool]] = weakref.WeakSet()
"""Of every device that was used."""


def block_size(nbytes: int) -> int:
    """Return the size of the block that serves `nbytes`.

    >>> block_size(0), block_size(1000), block_size(1_000_000)
    (128, 1024, 1015808)
    """
    if nbytes <= ALIGNMENT:
        return ALIGNMENT
    shift = max(nbytes.bit_length() - 1 - SIZE_STEPS_LOG2, ALIGNMENT.bit_length() - 1)
    return -(-nbytes >> shift) << shift


class Pool:
    """The memory of one device.

    Parameters
    ----------
    device : DeviceBase
        An opened device.

    managed_nbytes (int): bytes of all blocks, owned or held.
    limit_nbytes (int): what `managed_nbytes` may reach: the memory that there is, or
        ``CLFUSE_MEMORY_LIMIT``.
    largest_nbytes (int): what one allocation may have.
    is_tight (bool): memory is limited, or was short once: evaluations note which buffers they use
        (`memory.spilling`), and take only paths that can handle a shortage.
    in_place (bool): whether the device works in the host memory that blocks are made of, so that
        between its commands the host may, too, without mapping.
    """

    #: Whether blocks are as large as ever under CLFUSE_DEBUG=1: their ends are guarded.
    rounds_up_in_debug = False

    def __init__(self, device: DeviceBase) -> None:
        traits = device.traits
        self.device = device
        self.managed_nbytes = 0
        self.host_backed = traits.kind == "cpu" and traits.unified_memory
        # A CPU driver may report less than there is (PoCL: 7 of 23 GB); blocks of our own know no
        # such limit.
        self._whole_nbytes = max(traits.global_nbytes, host_nbytes() if self.host_backed else 0)
        self.limit_nbytes = self._whole_nbytes
        self.largest_nbytes = traits.max_alloc_nbytes
        self.is_tight = False
        self._was_short = False
        self._calm = 0  # evaluations since memory was short
        self._asked_limit = 0
        self._bins: dict[int, list[cl.Buffer]] = {}
        self._is_closed = False
        self.in_place = self.host_backed and lost.call_driver(
            device, "the first buffer", _works_in_place, device
        )
        all_pools.add(self)
        self.heed_limit()

    def heed_limit(self) -> None:
        """Have the limit that ``CLFUSE_MEMORY_LIMIT`` says from here on."""
        asked = settings.memory_limit
        if asked == self._asked_limit:
            return
        self._asked_limit = asked
        self.limit_nbytes = min(self._whole_nbytes, asked or self._whole_nbytes)
        self._set_tight(bool(asked) or self._was_short)
        if self.managed_nbytes > self.limit_nbytes and not self.device.lost:
            self.trim()

    def is_calm(self) -> bool:
        """Whether memory, which was short, is not any longer; asked once an evaluation."""
        if self._asked_limit:
            return False
        self._calm += 1
        if self._calm < CALM_EVALUATIONS:
            return False
        self.relax()
        return True

    def relax(self) -> None:
        """Go on as if memory had not been short; a limit that the user has set stays."""
        self._was_short = False
        self._set_tight(bool(self._asked_limit))

    def _set_tight(self, is_tight: bool) -> None:
        was, self.is_tight = self.is_tight, is_tight
        if is_tight and not was:
            for function in when_tight:
                function()

    @property
    def spills(self) -> bool:
        """Whether arrays can be moved out of its memory, so that there is more of it.

        Blocks of host memory are where spilled arrays would be, too: it is done there for the sake
        of the limit alone.
        """
        return bool(self._asked_limit) or not self.host_backed

    def take(self, nbytes: int) -> tuple[cl.Buffer, int]:
        """Return a block for `nbytes`, and the size with which to `give` it back (0: not kept).

        Raises
        ------
        AllocationError
            More than the largest allocation, or more than is left after everything unused was
            returned.
        """
        size = block_size(nbytes)
        held = self._bins.get(size)
        if held:
            try:
                return held.pop(), size
            except IndexError:  # another thread took the last one
                pass
        return self._take_fresh(nbytes, size)

    def give(self, block: cl.Buffer, size: int) -> None:
        """Take a block back for its next owner."""
        if not size or self._is_closed:
            return
        held = self._bins.get(size)
        if held is None:
            # setdefault, not assignment: two threads may get here with the first block of a size.
            held = self._bins.setdefault(size, [])
        held.append(block)

    @property
    def held_nbytes(self) -> int:
        """Bytes of the blocks without an owner."""
        return sum(size * len(held) for size, held in self._held())

    def _held(self) -> list[tuple[int, list[cl.Buffer]]]:
        """The blocks of each size. The sizes are listed first: what makes pairs of them may run the
        collector, and destructors give blocks of new sizes back."""
        return [(size, self._bins.get(size, [])) for size in list(self._bins)]

    @property
    def used_nbytes(self) -> int:
        """Bytes of the blocks that have an owner."""
        return max(self.managed_nbytes - self.held_nbytes, 0)

    def trim(self) -> None:
        """Return all blocks without an owner to the system."""
        unused: list[tuple[int, list[cl.Buffer]]] = []
        try:
            for size, held in self._held():
                unused.append((size, []))
                # In C up to the end: no interrupt comes between the two lists.
                with suppress(IndexError):  # empty; another thread may take and give meanwhile
                    unused[-1][1].extend(map(list.pop, itertools.repeat(held)))
            # A driver keeps its own memory until the commands that use it are done; ours goes at
            # once. What was given back before this line was used by commands from before it only.
            self.device.finish()
        except BaseException:
            for size, blocks in unused:
                for block in blocks:
                    self.give(block, size)
            raise
        for size, blocks in unused:
            for block in blocks:
                memory: Any = block.hostbuf
                if memory is not None:
                    memory.base.nbytes = 0
                self.managed_nbytes -= size
                block.release()

    def close(self) -> None:
        """Keep no block any more: the device was lost, and its memory is freed with the last one.

        Blocks of host memory stay as long as the pool: commands that can no longer be waited for
        may still use them.
        """
        if not self.host_backed:
            self._is_closed = True
            self._bins.clear()

    def _take_fresh(self, nbytes: int, size: int) -> tuple[cl.Buffer, int]:
        if nbytes > self.largest_nbytes or size > self.limit_nbytes:
            raise AllocationError(self._too_much(nbytes))
        if settings.debug_level and not self.rounds_up_in_debug and not self._asked_limit:
            # Not a byte more than asked for, so that Oclgrind sees an access past the end.
            return self._make_exact(max(nbytes, 1)), 0
        with self.device.lock:
            if self.held_nbytes + size > HELD_SHARE * self.limit_nbytes:
                self.trim()
            block = self._make(nbytes, size)
        if block is None:
            # Arrays in reference cycles still own their blocks until the collector finds them. Not
            # with the lock: a destructor may wait for an evaluation that waits for it.
            gc.collect()
            with self.device.lock:
                block = self._take_short(nbytes, size)
        return block, size

    def _take_short(self, nbytes: int, size: int) -> cl.Buffer:
        """A block where memory is short."""
        self.trim()
        block = self._make(nbytes, size)
        if block is None:
            self._calm = 0
            self._was_short = self._was_short or not self._asked_limit
            self._set_tight(True)
        while block is None and self.spills and any(give(self, size) for give in when_short):
            self.trim()
            block = self._make(nbytes, size)
        if block is None:
            if not lost.is_alive(self.device):
                raise lost.mark(self.device, f"{nbytes:,} bytes could not be allocated")
            raise AllocationError(self._too_much(nbytes))
        return block

    def _make(self, nbytes: int, size: int) -> cl.Buffer | None:
        """Return a new block, or None where there is no memory for it."""
        from clfuse.runtime.drivers import opencl as cl

        if self.managed_nbytes + size > self.limit_nbytes:
            return None
        # Rounding up must not push a legal allocation over the device's limit.
        counted, size = size, min(size, max(nbytes, self.largest_nbytes))
        flags = cl.mem_flags.READ_WRITE
        try:
            if self.host_backed:
                return self._lend(_host_block(size), counted)
            block = cl.Buffer(self.device.context, flags, size)
            # Makes the driver allocate now, where something can still be done about a failure. Not
            # clEnqueueMigrateMemObjects: NVIDIA's driver crashes in a thread of its own when that
            # command was held back (580.159). Nobody waits for the fill; it has its place in the
            # queue before whatever the block's owner puts there.
            cl.enqueue_fill_buffer(self.device.queue, block, FIRST_TOUCH, 0, FIRST_TOUCH.nbytes)
            self.managed_nbytes += counted
            return block
        except (MemoryError, OSError):
            return None
        except cl.Error as error:
            if lost.status_of(error) in lost.MEMORY:
                return None
            raise lost.error_of_driver(self.device, error, f"{nbytes:,} bytes") from error

    def _lend(self, memory: npt.NDArray[np.uint8], counted: int) -> cl.Buffer:
        """Return a block of memory of the host, as large as is counted for it, or smaller."""
        from clfuse.runtime.drivers import opencl as cl

        lent = LentMemory(self, memory)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        block = cl.Buffer(self.device.context, flags, hostbuf=np.asarray(lent))
        lent.nbytes = counted
        self.managed_nbytes += counted
        return block

    def _make_exact(self, nbytes: int) -> cl.Buffer:
        from clfuse.runtime.drivers import opencl as cl

        device, what = self.device, f"{nbytes:,} bytes"
        try:
            return lost.call_driver(
                device, what, cl.Buffer, device.context, cl.mem_flags.READ_WRITE, nbytes
            )
        except AllocationError as error:
            raise AllocationError(self._too_much(nbytes)) from error

    def _too_much(self, nbytes: int) -> str:
        used = self.used_nbytes
        free = max(self.limit_nbytes - used, 0)
        by = " (CLFUSE_MEMORY_LIMIT)" if self.limit_nbytes == self._asked_limit else ""
        return (
            f"{nbytes:,} bytes asked for on {self.device.name}: one allocation may have"
            f" {min(self.largest_nbytes, self.limit_nbytes):,} bytes, {used:,} of"
            f" {self.limit_nbytes:,}{by} are in use, {free:,} are free; use smaller arrays or work"
            " in parts, drop arrays that are no longer needed,"
            f"{' raise CLFUSE_MEMORY_LIMIT,' if by else ''} or choose another device with"
            " CLFUSE_DEVICE"
        )


class LentMemory:
    """Memory of the host that a driver was told to use, for one block of a pool: it goes once no
    command may use it.

    A block goes with `Pool.trim`, which waits for the queue. One that an interrupt has lost
    between the pool and its owner goes at any moment: commands of its last owner, or the one that
    fills it, may be under way. A driver keeps its own memory until they are done; this is not the
    driver's.

    Parameters
    ----------
    pool : Pool
        Which counts it.
    array : numpy.ndarray
        The memory.

    nbytes (int): what the pool counts for it; 0 as long as no command may use it: it was not given
        to anybody yet, or the queue was waited for.
    """

    __slots__ = ("__array_interface__", "_pool", "array", "nbytes")

    def __init__(self, pool: Pool, array: npt.NDArray[np.uint8]) -> None:
        self._pool = weakref.ref(pool)  # pyopencl's buffers hold what the collector does not see
        self.array = array
        self.nbytes = 0
        self.__array_interface__ = array.__array_interface__

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        # Called again where an interrupt ends it.
        try:
            pool = self._pool() if self.nbytes else None
        except AttributeError:
            return  # half made: an interrupt has ended the constructor
        # The queues were finished when the interpreter began to end, and before a fork.
        if pool is None or is_finalizing() or pool.device.forked:
            return
        from clfuse.runtime.drivers import opencl as cl

        device = pool.device
        try:
            device.pinned.append((cl.enqueue_marker(device.queue), self.array))
        except (cl.Error, DeviceError) as error:
            # The next use of the device raises. There is no way to wait for the commands.
            lost.waiting(device, error)
            lost.abandon(self.array)
        pool.managed_nbytes -= self.nbytes
        self.nbytes = 0


_core: Final = loading.load()
if _core is not None:
    LentMemory.__del__ = _core.undisturbed(LentMemory.__del__)  # type: ignore[method-assign]


def _heed_limits() -> None:
    """Settings have changed."""
    if vars(settings):  # else they are read later, and this is called again
        for pool in list(all_pools):
            pool.heed_limit()


config.changed.append(_heed_limits)


def _works_in_place(device: DeviceBase) -> bool:
    """Whether what the device writes to host memory shows there, and the reverse, without mapping.

    OpenCL lets a driver keep a copy of memory that it was told to use; rusticl does, PoCL and
    Intel's runtime do not.
    """
    from clfuse.runtime.drivers import opencl as cl

    memory = _host_block(2 * ALIGNMENT)[: 2 * ALIGNMENT]
    memory[:] = 0
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    buffer = cl.Buffer(device.context, flags, hostbuf=memory)
    cl.enqueue_fill_buffer(device.queue, buffer, np.ones(1, np.uint8), 0, ALIGNMENT)
    device.queue.finish()
    shows = bool((memory[:ALIGNMENT] == 1).all())
    memory[:ALIGNMENT] = 2
    cl.enqueue_copy(
        device.queue, buffer, buffer, byte_count=ALIGNMENT, src_offset=0, dst_offset=ALIGNMENT
    )
    device.queue.finish()
    shows = shows and bool((memory[ALIGNMENT:] == 2).all())
    buffer.release()
    return shows


_stagger = itertools.cycle(range(0, STAGGER * STAGGER_TURNS, STAGGER))


def _host_block(size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return untouched, aligned host memory."""
    if size < HUGE_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        memory: np.ndarray[Any, np.dtype[np.uint8]] = np.empty(size + ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % ALIGNMENT
        return memory[start : start + size]
    # Private: Python's default is shared memory, which gets no huge pages.
    pages = mmap.mmap(-1, size + 2 * HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pages.madvise(mmap.MADV_HUGEPAGE)
    memory = np.frombuffer(pages, np.uint8)
    start = -memory.ctypes.data % HUGE_PAGE + next(_stagger)
    return memory[start : start + size]


def host_nbytes() -> int:
    """Return the memory that this process may fill, 0 where the system does not say."""
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0
    try:
        with open(CONTAINER_LIMIT, encoding="ascii") as file:
            return min(physical, int(file.read()))
    except (OSError, ValueError):  # no container, or one without a limit ("max")
        return physical
