"""The pool of a simulated device: blocks between guard pages, filled with a pattern that shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clfuse.runtime.context import lost
from clfuse.runtime.context.base import DeviceBase
from clfuse.runtime.context.pool import Pool

from .guard_memory import PATTERN, arena, guarded

if TYPE_CHECKING:
    import pyopencl as cl


__all__ = ["SimulatedPool"]


class SimulatedPool(Pool):
    """A pool whose blocks are `Guarded`, where the system can, and hold `PATTERN` when they are
    taken, whatever they held before.

    The CPU device works in place there; nothing else does: its memory is apart from the host's.
    """

    rounds_up_in_debug = True

    def __init__(self, device: DeviceBase) -> None:
        super().__init__(device)
        self._arena = arena()

    def take(self, nbytes: int) -> tuple[cl.Buffer, int]:
        """As `Pool.take`."""
        from clfuse.runtime.drivers import opencl as cl

        block, size = super().take(nbytes)
        memory = guarded(block)
        if memory is not None:
            memory.used = nbytes
            memory.turn += 1
        pattern = np.array(PATTERN, np.uint16)
        whole = block.size // pattern.itemsize * pattern.itemsize
        # In the queue: commands of the last owner may still be under way.
        lost.call_driver(
            self.device, f"{nbytes:,} bytes", cl.enqueue_fill_buffer, self.device.queue, block,
            pattern, 0, whole,
        )  # fmt: skip
        return block, size

    def _make(self, nbytes: int, size: int) -> cl.Buffer | None:
        from clfuse.runtime.drivers import opencl as cl

        if self.managed_nbytes + size > self.limit_nbytes:
            return None
        counted, size = size, min(size, max(nbytes, self.largest_nbytes))
        try:
            if self._arena is not None:
                return self._lend(np.asarray(self._arena.take(size)), counted)
            block = cl.Buffer(self.device.context, cl.mem_flags.READ_WRITE, size)
            self.managed_nbytes += counted
            return block
        except MemoryError:
            return None
        except cl.Error as error:
            if error.code in lost.MEMORY:
                return None
            raise lost.error_of_driver(self.device, error, f"{nbytes:,} bytes") from error
