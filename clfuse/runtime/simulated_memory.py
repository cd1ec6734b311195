"""Memory of a simulated device: fresh and reused blocks hold a pattern, not zeros or old values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from clfuse.runtime.pool import Pool

if TYPE_CHECKING:
    import pyopencl as cl

__all__ = ["PATTERN", "SimulatedPool"]

PATTERN: Final = 0x7FFA
"""What undefined memory holds, every two bytes: NaN as half, float and double, and a number far
from all indices as an integer of any width."""


class SimulatedPool(Pool):
    """A pool whose blocks have undefined contents that show: `PATTERN`."""

    def take(self, nbytes: int) -> tuple[cl.Buffer, int]:
        """As `Pool.take`."""
        import pyopencl as cl

        block, size = super().take(nbytes)
        pattern = np.array(PATTERN, np.uint16)
        cl.enqueue_fill_buffer(
            self.device.queue, block, pattern, 0, block.size // pattern.itemsize * pattern.itemsize
        )
        return block, size

    def _make(self, nbytes: int, size: int) -> cl.Buffer | None:
        import pyopencl as cl

        if self.managed_nbytes + size > self.limit_nbytes:
            return None
        size = min(size, max(nbytes, self.largest_nbytes))
        try:
            return cl.Buffer(self.device.context, cl.mem_flags.READ_WRITE, size)
        except (MemoryError, cl.MemoryError):
            return None
