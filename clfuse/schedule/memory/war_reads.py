"""Write-after-read hazards: reads of the elements that an update is about to overwrite in place.

    t = a[5]; a[5] = a[7]; a[7] = t         the second launch loads element 5 as it was at first

Most loads of the old array touch other elements than those that are written: then they may come at
any time. Small loads that do touch them are moved: what they load is copied before the write.
Without this, all of the array would be copied for a write of one element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from clfuse.dataclass import mutable
from clfuse.schedule.lower.emission import ValueTable
from clfuse.schedule.lower.packing import Copies, copied_elements
from clfuse.schedule.records import Access, Item, Kernel, Launch, LibraryCall, Load
from clfuse.schedule.rewrite.write_regions import Region, apart

SMALLER: Final = 4
"""What is copied for later reads is at most one in so many bytes of the array: a copy of it all
needs no launch of its own, and is done once for all reads."""

MOST_MOVED: Final = 16
"""Loads that are moved for one write."""

MOST_READS: Final = 64
"""Launches that are asked what they read, for one write."""


@mutable
class Moved:
    """A load that must come before a write: entry `place` of `items`, run over `extents`."""

    launch: int
    items: list[Item]
    place: int
    extents: tuple[int, ...]


def clashing(
    number: int,
    launch: Launch,
    value: int,
    written: Sequence[Region],
    itemsize: int,
    same: Sequence[Access],
) -> tuple[list[Moved], bool] | None:
    """The loads of `value` by launch `number` that touch what is written, and whether it has
    others; None where that is not known, or a load cannot be moved.

    `same` is where the launch itself writes: what it loads there is used by the same work-item,
    before it writes anything.
    """
    if isinstance(launch, LibraryCall) and launch.epilogue is None:
        operands = [operand for operand in launch.operands if operand.value == value]
        for operand in operands:
            region = operand.shape, operand.offset, operand.strides
            if operand.dtype.itemsize != itemsize or not _are_apart(region, written):
                return None
        return [], True
    if not isinstance(launch, Kernel) or launch.where or launch.selection is not None:
        return None
    found: list[Moved] = []
    has_others = False
    for phase in launch.phases:
        if any(isinstance(item, Load) and item.value == value for item in phase.epilogue):
            return None
        for place, item in enumerate(phase.body):
            if not isinstance(item, Load) or item.value != value:
                continue
            if item.position is not None or item.dtype.itemsize != itemsize:
                return None
            if item.access in same:
                has_others = True
                continue
            if item.access.seams:
                return None
            region = phase.extents, item.access.offset, item.access.strides
            if _are_apart(region, written):
                has_others = True
            elif launch.kind.by_tiles:
                return None
            else:
                found.append(Moved(number, phase.body, place, phase.extents))
    return (found, has_others) if found or has_others else None


def _are_apart(region: Region, written: Sequence[Region]) -> bool:
    return all(apart(region, each) for each in written)


def moved_before(moved: Sequence[Moved], nbytes: int, values: ValueTable) -> list[Kernel]:
    """Kernels that copy what these loads touch, which read the copies from now on; none where that
    is too much beside an array of `nbytes`."""
    distinct = {}
    for each in moved:
        load = each.items[each.place]
        assert isinstance(load, Load)
        copied = copied_elements(load, each.extents) * load.dtype.itemsize
        distinct[load.value, load.access, each.extents] = copied
    if len(distinct) > MOST_MOVED or sum(distinct.values()) * SMALLER > nbytes:
        return []
    copies = Copies(values)
    for each in moved:
        load = each.items[each.place]
        assert isinstance(load, Load)
        reason = "copied: it is read after the array that it is a part of was written to"
        each.items[each.place] = copies.add(load, each.extents, len(each.extents) - 1, reason)
    return copies.kernels()
