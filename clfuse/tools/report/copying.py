"""The speed of a copy on the device: what a kernel's bandwidth is compared with."""

from __future__ import annotations

import time
from typing import Any, Final

from clfuse.errors import AllocationError
from clfuse.runtime.host import host_steps
from clfuse.runtime.memory import buffers

__all__ = ["copy_rate"]

NBYTES: Final = 1 << 26
"""That are copied: more than the caches hold, and 10 to 30 ms on a CPU."""

TIMES: Final = 6
"""The first one touches new pages."""


def copy_rate(device: Any) -> float | None:
    """Bytes a second that a copy on the device reads and writes, together; None where that is not
    known: there is no memory for it, or the device is simulated."""
    if device.simulation is not None or device.lost or device.forked:
        return None
    try:
        source, target = buffers.allocate(device, NBYTES), buffers.allocate(device, NBYTES)
    except AllocationError:
        return None
    best = float("inf")
    for _ in range(TIMES):
        device.finish()
        start = time.perf_counter()
        host_steps.copy(source, target, NBYTES)
        device.finish()
        best = min(best, time.perf_counter() - start)
    return 2 * NBYTES / best
