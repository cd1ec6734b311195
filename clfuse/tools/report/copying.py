"""The speed of a copy on the device: what a kernel's bandwidth is compared with."""

from __future__ import annotations

import math
import time
from typing import Any, Final

from clfuse.errors import AllocationError
from clfuse.runtime.host import host_steps
from clfuse.runtime.memory import buffers

__all__ = ["copy_rate"]

NBYTES: Final = 1 << 25
"""That are copied: both arrays together are more than the caches hold, and 5 to 15 ms on a CPU."""

FEWEST: Final = 2
"""Copies: the first one touches new pages."""

MOST: Final = 6


def copy_rate(device: Any, most_s: float = math.inf) -> float | None:
    """Bytes a second that a copy on the device reads and writes, together; None where that is not
    known: there is no memory for it, or the device is simulated. Copies end after `most_s`
    seconds."""
    if device.simulation is not None or device.lost or device.forked:
        return None
    try:
        source, target = buffers.allocate(device, NBYTES), buffers.allocate(device, NBYTES)
    except AllocationError:
        return None
    best = float("inf")
    device.finish()
    begin = time.perf_counter()
    for number in range(MOST):
        start = time.perf_counter()
        if number >= FEWEST and start - begin > most_s:
            break
        host_steps.copy(source, target, NBYTES)
        device.finish()
        best = min(best, time.perf_counter() - start)
    return 2 * NBYTES / best
