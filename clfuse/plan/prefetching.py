"""Which loads ask for memory before they need it; `plan.planner` calls it for finished kernels.

The processor's own prefetching keeps few lines under way where a loop only reads: sums of 128 MB
took 1.4 to 1.6 times as long without asking 8 KiB ahead (PoCL and Intel's runtime on two cores of a
Xeon, 28 against 40 GB/s). Loops that also store as much as they read gained nothing, nor did
AMD's processors (`DeviceTraits.asks_ahead`).

What is gathered lies anywhere: no processor guesses the next line, and it looks for few of them at
once, since each waits for its index, which is loaded, too. So the positions of later elements are
computed ahead of the loop. Gathers of 4 million random or sorted doubles from 64 MB took .7 of the
time on PoCL, .7 and 1.0 on Intel's runtime, of 8 million from 64 MB .66 and .62 (EPYC, Zen 5). From
what the third cache holds (16 MB and less here) they took 1.0 to 1.7 times as long.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from typing import Final

from ..traits import DeviceTraits
from .emission import ValueTable
from .schedule import Index, Item, Kernel, Load, Scalar, Step

__all__ = ["ask_ahead"]

AHEAD_NBYTES: Final = 8 << 10
"""How far ahead memory is asked for, by all loads of a loop together; 4 to 16 KiB do equally well
for one, and half of the first cache should be left for what was read before."""

LEAST_NBYTES: Final = 4 << 20
"""An array of less than this may lie in the caches already."""

GATHERED_AHEAD: Final = 128
"""Elements that a gather asks ahead; 64 to 256 did equally well."""

LEAST_GATHERED_NBYTES: Final = 48 << 20
"""An array of less than this may lie in the third cache."""

LEAST_RUN: Final = 4 * GATHERED_AHEAD
"""Elements of a row: what is ahead of shorter ones is in the next."""

MAX_POSITION_STEPS: Final = 6
"""Operations between indices and positions (a cast, a clip); those that calculate more keep the
processor busy twice."""


def ask_ahead(kernel: Kernel, traits: DeviceTraits, values: ValueTable) -> Kernel:
    """Mark the loads of `kernel` that read a large array once, from one end to the other, and those
    that gather from one."""
    if kernel.schedule != "cpu":
        return kernel
    if kernel.kind in ("map", "reduce") and kernel.width > 1:
        for phase in kernel.phases:
            _ask_for_gathered(phase, values)
    if not traits.asks_ahead or kernel.kind not in ("reduce", "scan") or kernel.width == 1:
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


def _ask_for_gathered(phase: Kernel, values: ValueTable) -> None:
    """Mark the gathers from large arrays; of those of one array at the same position, the first:
    the others' elements may lie in the same line."""
    along = len(phase.extents) - 1
    if phase.vector != along or phase.extents[along] < LEAST_RUN:
        return
    if phase.where or phase.seams(along):
        return  # further on the indices lie elsewhere, or are none
    seen = set()
    for place, item in enumerate(phase.body):
        if not isinstance(item, Load) or item.position is None or item.access.within:
            continue
        key = item.value, item.position
        if key in seen or values.nbytes[item.value] < LEAST_GATHERED_NBYTES:
            continue
        if position_chain(phase.body, item.position) is not None:
            seen.add(key)
            phase.body[place] = replace(item, ahead=(along, GATHERED_AHEAD))


def position_chain(
    items: list[Item], position: int, known: Collection[int] = ()
) -> list[Item] | None:
    """What a register is computed from but for the registers that are `known`, in order; None where
    that is more than loads of indices and a few operations."""
    wanted = {position}
    chain: list[Item] = []
    for item in reversed(items):
        if item.var not in wanted:
            continue
        if isinstance(item, Step):
            wanted.update(operand for operand in item.operands if operand not in known)
        elif isinstance(item, Load):
            if item.position is not None or item.other is not None or item.access.within:
                return None
        elif not isinstance(item, Index | Scalar):
            return None
        chain.append(item)
    if sum(isinstance(item, Step) for item in chain) > MAX_POSITION_STEPS:
        return None
    return chain[::-1]
