"""Prefetching: loads that ask for memory before they need it, and loads that bypass the caches.

The processor's own prefetching keeps few lines under way where a loop only reads: sums of 128 MB
take 1.4 to 1.6 times as long without asking 8 KiB ahead (Xeon). Loops that also store as much as
they read gain nothing, nor do AMD's processors (`DeviceTraits.asks_ahead`).

What is gathered lies anywhere: no processor guesses the next line, and it looks for few of them at
once, since each waits for its index, which is loaded, too. So the positions of later elements are
computed ahead of the loop. Gathers of doubles from 64 MB take .6 to 1.0 of the time (EPYC, Zen 5);
from what the third cache holds, 16 MB and less there, they take 1.0 to 1.7 times as long.

What is read once need not push everything else out of the caches. On AMD's processors lines that
were asked for as such go from the first cache nowhere, and the work of handing them down goes with
them: ``a += b + s * c`` over 64 MB each takes .92 to .95 of the time, sums of products and gathers
.86 to .92 (EPYC, Zen 4). A part of it is that Python finds its own lines in the third cache at the
next launch (`DeviceTraits.reads_past`).
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from typing import Final

from clfuse.schedule.lower.emission import ValueTable
from clfuse.schedule.records import Index, Item, Kernel, Load, Scalar, Step
from clfuse.schedule.shape.geometry import should_stream
from clfuse.schedule.shape.unroll2 import has_pairs
from clfuse.target.traits import DeviceTraits

__all__ = ["ask_ahead"]

AHEAD_NBYTES: Final = 8 << 10
"""How far ahead memory is asked for, by all loads of a loop together; 4 to 16 KiB do equally well
for one, and half of the first cache should be left for what was read before."""

LEAST_NBYTES: Final = 4 << 20
"""An array of less than this may lie in the caches already."""

GATHERED_AHEAD: Final = 128
"""Elements that a gather asks ahead; 64 to 256 did equally well."""

PAST_NBYTES: Final = 128
"""How far ahead what goes past the caches is asked for; 0 to 384 did equally well, 512 worse."""

LINE_NBYTES: Final = 64

SIDE_BY_SIDE_NBYTES: Final = 1 << 10
"""Views of an array that lie so close read a line while it is in the first cache."""

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
    if (kernel.kind.elementwise or kernel.kind.folds) and kernel.width > 1:
        for phase in kernel.phases:
            _ask_for_gathered(phase, values)
    least = min(LEAST_NBYTES, traits.stream_nbytes)
    if traits.reads_past and should_stream(kernel, traits):
        _read_past(kernel, least)
        return kernel
    walks_rows = kernel.kind.folds or kernel.kind.scans
    if not traits.asks_ahead or not walks_rows or kernel.width == 1:
        return kernel
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


def _read_past(kernel: Kernel, least: int) -> None:
    """Mark the loads whose lines are used up at once: of views side by side, the one that comes to
    them first."""
    if kernel.width == 1 or kernel.tile_rows:
        return
    found: dict[int, list[tuple[Kernel, int, Load]]] = {}
    for phase in kernel.phases:
        for place, item in enumerate(phase.body):
            if isinstance(item, Load):
                found.setdefault(item.value, []).append((phase, place, item))
    vector_nbytes = LINE_NBYTES
    for loads in found.values():
        # A second pass over a row reads it again.
        again = not kernel.where and any(phase is not loads[0][0] for phase, _, _ in loads)
        if again or not _is_used_up(loads, least):
            continue
        for phase in kernel.phases:
            own = [(place, load) for other, place, load in loads if other is phase]
            if own:
                place, load = max(own, key=lambda pair: _along(phase, pair[1]))
                nbytes = load.dtype.itemsize
                # Strips of columns: what is further on is another strip's.
                count = PAST_NBYTES // nbytes if kernel.vector == len(kernel.extents) - 1 else 0
                phase.body[place] = replace(load, ahead=(kernel.vector, count), past=True)
                vector_nbytes = min(vector_nbytes, phase.width * nbytes)
    is_map = kernel.kind.elementwise and not kernel.then
    if vector_nbytes < LINE_NBYTES and is_map and has_pairs(kernel):
        kernel.unroll = 2  # each line is asked for once


def _is_used_up(loads: list[tuple[Kernel, int, Load]], least: int) -> bool:
    """Whether a loop reads an array of `least` bytes or more once, from one end to the other."""
    phase, _, first = loads[0]
    if math.prod(phase.extents) * first.dtype.itemsize < least:
        return False
    offsets = [load.access.offset for _, _, load in loads]
    return max(offsets) - min(offsets) <= SIDE_BY_SIDE_NBYTES // first.dtype.itemsize and all(
        load.access.strides == first.access.strides and _is_stream(other, load)
        for other, _, load in loads
    )


def _along(kernel: Kernel, load: Load) -> int:
    """How far before others of the same array a load comes to a line."""
    return load.access.offset * load.access.strides[kernel.vector]


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
