"""Evaluation order of a snapshot: views come before writes, so that writes can reuse old memory.

    t = a[5]; a[5] = a[7]; a[7] = t         two UPDATEs; the second writes a VIEW of `a` as it was

A snapshot lists nodes after their operands, and says nothing about a VIEW and an UPDATE of one
value: the view may come last. In that order the interpreter would have to keep the array as it was,
that is to copy all of it for the first write. So views of an array are taken before it is written
to. Those views that are needed afterwards are copied, if they are small beside the array.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Final

from clfuse.dataclass import mutable
from clfuse.ir.nodes import Kind
from clfuse.ir.snapshot import Snapshot, shape_at

if TYPE_CHECKING:
    from .blocks import Group

SMALLER: Final = 4
"""Views are copied, rather than what they are views of, that have at most one of so many
elements: reading them takes longer than that copy."""


@mutable
class Calculation:
    """How to go through a snapshot.

    Attributes
    ----------
    order : iterable of int
        The positions; ``-1 - number`` stands for a `blocks.Group`.
    copied : set of int, views that get memory of their own
    last : dict of int to list of int
        Step -> what is read there for the last time and is not to be kept. Empty where nobody
        has to know: nothing is written to, nor is memory to be spared.
    """

    order: Iterable[int]
    copied: Collection[int]
    last: dict[int, list[int]]


def calculation(snapshot: Snapshot, kept: Collection[int], sparing: bool = False) -> Calculation:
    """The order for a snapshot of which the values at the positions `kept` must stay.

    `sparing` asks for what is read for the last time in any case.
    """
    items = snapshot.items
    overwritten: dict[int, int] = {}
    for position, item in enumerate(items):
        if item[0] is not None and item[0].kind is Kind.UPDATE:
            overwritten[item[3]] = position
    if not overwritten:
        order: Iterable[int] = range(len(items))
        last = last_readers(reads_of(snapshot, order), kept) if sparing else {}
        return Calculation(order, (), last)
    views = _views(snapshot, overwritten)
    order = _order(snapshot, views, overwritten)
    copied: set[int] = set()
    if views:
        readers = _readers(snapshot, views)
        for array, seen in views.items():
            if items[array][0] is not None and array not in kept:
                copied |= _copied(snapshot, array, seen, overwritten[array], readers, kept)
    return Calculation(order, copied, last_readers(reads_of(snapshot, order), kept))


def _views(snapshot: Snapshot, overwritten: Collection[int]) -> dict[int, list[int]]:
    """Array that is written to -> the views of it, and of its views."""
    array_of: dict[int, int] = {}
    views: dict[int, list[int]] = {}
    for position, item in enumerate(snapshot.items):
        if item[0] is not None and item[0].kind is Kind.VIEW:
            below = item[3]
            array = below if below in overwritten else array_of.get(below, -1)
            if array >= 0:
                array_of[position] = array
                views.setdefault(array, []).append(position)
    return views


def _order(
    snapshot: Snapshot, views: dict[int, list[int]], overwritten: dict[int, int]
) -> Iterable[int]:
    """All positions, views before what their array is overwritten by."""
    earlier: dict[int, list[int]] = {}
    for array, seen in views.items():
        late = [view for view in seen if view > overwritten[array]]
        if late:
            earlier[overwritten[array]] = late
    count = len(snapshot.items)
    if not earlier:
        return range(count)
    moved = set(chain.from_iterable(earlier.values()))
    order: list[int] = []
    for position in range(count):
        if position in earlier:
            order += earlier[position]
        if position not in moved:
            order.append(position)
    return order


def _readers(snapshot: Snapshot, views: dict[int, list[int]]) -> dict[int, list[int]]:
    """View -> the positions that read it."""
    readers: dict[int, list[int]] = {
        view: [] for view in chain.from_iterable(views.values())
    }
    for position, item in enumerate(snapshot.items):
        if item[0] is not None:
            for number in item[3:]:
                if number in readers:
                    readers[number].append(position)
    return readers


def _copied(
    snapshot: Snapshot,
    array: int,
    views: list[int],
    update: int,
    readers: dict[int, list[int]],
    kept: Collection[int],
) -> set[int]:
    """The small views of `array` that are needed by `update` or after it."""
    items = snapshot.items
    most = prod(shape_at(items, array)) // SMALLER
    copied: set[int] = set()
    needed: set[int] = set()
    among = set(views)
    for view in reversed(views):
        if view in kept or any(
            reader in needed if reader in among else reader >= update for reader in readers[view]
        ):
            if prod(shape_at(items, view)) <= most:
                copied.add(view)
            else:
                needed.add(view)
    return copied


def last_readers(
    reads: Iterable[tuple[int, Iterable[int]]], kept: Collection[int]
) -> dict[int, list[int]]:
    """Step -> what is read there for the last time; from steps and the positions that each reads,
    in order."""
    reader = {number: step for step, numbers in reads for number in numbers}
    last: dict[int, list[int]] = {}
    for number, step in reader.items():
        if number not in kept:
            last.setdefault(step, []).append(number)
    return last


def reads_of(
    snapshot: Snapshot, order: Iterable[int], groups: Sequence[Group] = ()
) -> Iterator[tuple[int, Iterable[int]]]:
    """Every step of an order, and what is read there; of `groups` those are that it names."""
    items = snapshot.items
    for step in order:
        if step < 0:
            yield step, groups[-1 - step].inputs
        elif items[step][0] is not None:
            yield step, items[step][3:]
