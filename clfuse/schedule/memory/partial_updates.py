"""What lies in an array's memory when only some of the updates of it were made, in any order.

Updates of one array are several steps of one value, where nothing reads what is between them. Those
that touch different elements may be made in another order than they were recorded in:

    y[2:, 1:] *= 3; y[:, 0] += x       the second is done, the first is refused
    -> update(leaf y, y[2:, 1:] * 3)   and y[2:, 1:] is read there, too: the second is elsewhere
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from clfuse.dataclass import frozen
from clfuse.ir.nodes import Kind
from clfuse.ir.snapshot import shape_at
from clfuse.schedule.records import Kernel, Launch, Schedule
from clfuse.schedule.rewrite.write_regions import apart, normal_form

from .buffers import writes_of
from .hazards import place_of

__all__ = ["PartlyThere", "partly_there", "updated_region"]

Region = tuple[int, tuple[tuple[int, int], ...]]
"""First element, and (extent, stride) a dimension: equal for the same elements."""


@frozen
class PartlyThere:
    """A node of which a place of the plan holds all elements but some.

    value: the value of the plan that will lie in the place.
    stale: regions where the place does not hold what the node is.
    missing: positions of the updates, in the order of the program, that make the node of what lies
        in the place; None where others would be lost with them.
    """

    value: int
    stale: tuple[Region, ...]
    missing: tuple[int, ...] | None

    def shows(self, shape: tuple[int, ...], offset: int, strides: tuple[int, ...]) -> bool:
        """Whether the place holds the node's elements in this region."""
        region = _region(shape, offset, strides)
        return all(_apart(region, each) for each in self.stale)


def partly_there(
    items: Sequence[tuple[Any, ...]],
    schedule: Schedule,
    is_done: Sequence[bool],
    begun: Collection[int],
) -> dict[int, PartlyThere]:
    """By position: updates whose steps are partly done, and what they are made of.

    Parameters are those of `rerecord.record_again`.
    """
    found: dict[int, PartlyThere] = {}
    for position, value in schedule.stored.items():
        chain = []
        number = position
        while (
            items[number][0] is not None and items[number][0].kind is Kind.UPDATE
            and schedule.stored.get(number, value) == value
        ):
            chain.append(number)
            number = items[number][3]
        chain.reverse()
        steps = [
            place for place, step in enumerate(schedule.steps)
            if any(value in writes_of(launch) for launch in step)
        ]
        done = [place for place in steps if is_done[place]]
        if not 0 < len(done) < len(steps) or any(place in begun for place in steps):
            continue
        if len(chain) != len(steps):
            continue
        regions = [updated_region(items, each) for each in chain]
        stored = [_stored_region(schedule.steps[place], value) for place in done]
        if any(each is None or regions.count(each) != 1 for each in stored):
            continue  # it cannot be said which of them a step is
        made = {regions.index(each) for each in stored if each is not None}
        for end in range(len(chain) + 1):
            if end:
                at = chain[end - 1]
            elif _lies_there(items, schedule, number, value, is_done):
                at = number
            else:
                continue
            missing = [each for each in range(end) if each not in made]
            later = [each for each in made if each >= end]
            stale = tuple([regions[each] for each in (*missing, *later)])
            is_lost = bool(later) or any(
                other > each and not _apart(regions[each], regions[other])
                for each in missing for other in made
            )
            found[at] = PartlyThere(
                value, stale, None if is_lost else tuple([chain[each] for each in missing])
            )
    return found


def _lies_there(
    items: Sequence[tuple[Any, ...]],
    schedule: Schedule,
    number: int,
    value: int,
    is_done: Sequence[bool],
) -> bool:
    """Whether the place of `value` held what the node at `number` is, before its updates."""
    item, place = items[number], place_of(schedule, value)
    if len(item) == 1:
        return False
    if item[0] is None:
        return place == ("buffer", item[2])
    before = schedule.stored.get(number)
    if before is None or before == value or place_of(schedule, before) != place:
        return False
    return all(done
        for step, done in zip(schedule.steps, is_done, strict=True)
        if any(before in writes_of(launch) for launch in step))


def _stored_region(step: Sequence[Launch], value: int) -> Region | None:
    """The elements that a step stores of a value; None where that is more than one region."""
    kernels = [launch for launch in step if value in writes_of(launch)]
    (launch,) = kernels if len(kernels) == 1 else (None,)
    if not isinstance(launch, Kernel) or not launch.kind.elementwise or launch.phases != [launch]:
        return None
    stores = [store for store in launch.stores if store.value == value]
    if len(stores) != 1 or launch.where or stores[0].access.jumps or stores[0].access.within:
        return None
    access = stores[0].access
    return _region(launch.extents, access.offset, access.strides)


def updated_region(items: Sequence[tuple[Any, ...]], number: int) -> Region:
    """The elements that the update at `number` writes."""
    offset, strides = items[number][2]
    return _region(shape_at(items, items[number][4]), offset, strides)


def _region(shape: tuple[int, ...], offset: int, strides: tuple[int, ...]) -> Region:
    shift, dims = normal_form(shape, strides)
    return offset + shift, tuple(dims)


def _apart(one: Region, other: Region) -> bool:
    def shaped(region: Region) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
        first, dims = region
        return tuple([n for n, _ in dims]), first, tuple([stride for _, stride in dims])

    return apart(shaped(one), shaped(other))
