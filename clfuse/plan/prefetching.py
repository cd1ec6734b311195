"""Which loads ask for memory before they need it; `plan.planner` calls it for finished kernels.

The processor's own prefetching keeps few lines under way where a loop only reads: sums of 128 MB
took 1.4 to 1.6 times as long without asking 8 KiB ahead (PoCL and Intel's runtime on two cores of a
Xeon, 28 against 40 GB/s). Loops that also store as much as they read gained nothing, nor did
AMD's processors (`DeviceTraits.asks_ahead`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from ..traits import DeviceTraits
from .schedule import Kernel, Load

__all__ = ["ask_ahead"]

AHEAD_NBYTES: Final = 8 << 10
"""How far ahead memory is asked for, by all loads of a loop together; 4 to 16 KiB do equally well
for one, and half of the first cache should be left for what was read before."""

LEAST_NBYTES: Final = 4 << 20
"""An array of less than this may lie in the caches already."""


def ask_ahead(kernel: Kernel, traits: DeviceTraits) -> Kernel:
    """Mark the loads of `kernel` that read a large array once, from one end to the other."""
    if not traits.asks_ahead or kernel.schedule != "cpu":
        return kernel
    if kernel.kind not in ("reduce", "scan") or kernel.width == 1:
        return kernel
    least = min(LEAST_NBYTES, traits.stream_nbytes)
    seen: set[int] = set()
    for phase in kernel.phases:
        found: dict[int, tuple[int, int]] = {}
        for place, item in enumerate(phase.body):
            if not isinstance(item, Load) or item.value in seen or not _is_stream(phase, item):
                continue
            nbytes = math.prod(phase.extents) * item.dtype.itemsize
            if nbytes < least:
                continue
            offset = item.access.offset
            if item.value not in found or offset > found[item.value][1]:
                found[item.value] = (place, offset)
        seen.update(item.value for item in phase.body if isinstance(item, Load))
        for place, _ in found.values():
            item = phase.body[place]
            assert isinstance(item, Load)
            ahead = _ahead(kernel, phase, item, AHEAD_NBYTES // len(found))
            phase.body[place] = replace(item, ahead=ahead)
    return kernel


def _is_stream(kernel: Kernel, load: Load) -> bool:
    """Whether every iteration reads other elements, side by side along the lanes."""
    strides = load.access.strides
    walked = zip(kernel.extents, strides, strict=True)
    return (
        load.position is None
        and abs(strides[kernel.vector]) == 1
        and all(stride for extent, stride in walked if extent > 1)
    )


def _ahead(kernel: Kernel, phase: Kernel, load: Load, nbytes: int) -> tuple[int, int]:
    """(dimension, indices of it) to look ahead."""
    dim = len(phase.extents) - 1
    if kernel.vector == dim:
        return dim, nbytes // load.dtype.itemsize
    # Strips of columns: the next rows of the same strip.
    row = min(kernel.strips * kernel.width, kernel.extents[kernel.vector]) * load.dtype.itemsize
    return dim, max(1, nbytes // row)
