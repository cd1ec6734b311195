"""Boxes of a kernel's range, and cells: what the kernel does in each box, and in which registers.

    c[1:-1] = a + 1     a cell for the box [1, n - 1)
    joined arrays       a cell for all boxes that load the same of them, none with a seam inside
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field, replace
from math import prod
from typing import Any, Final

from clfuse.dataclass import mutable
from clfuse.schedule.dataflow import (
    fold_of_registers,
    needed_items,
    of_registers,
    operands_of,
    prefixes,
)
from clfuse.schedule.lower.breakpoints import Box, cut_box
from clfuse.schedule.lower.iterations import outside
from clfuse.schedule.records import Access, Accumulator, Index, Item, Kernel, Load, Store
from clfuse.schedule.rewrite.write_regions import elements_at_least
from clfuse.schedule.shape.geometry import with_accesses
from clfuse.schedule.shape.vector_axis import accesses

MAX_CELLS: Final = 4
"""Bodies of one kernel: the text of each is built."""

MAX_BOXES: Final = 16
"""Boxes of all cells: where a run lies is tested against them one by one."""


class Apart(Exception):
    """Two kernels stay two; the message is the reason, which becomes a cut."""


@mutable
class Cell:
    """Some boxes and what is done in them; `folds` where they are part of a reduction."""

    boxes: tuple[Box, ...]
    items: list[Item] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)
    folds: list[Accumulator] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Elements of the boxes."""
        return sum([prod([high - low for low, high in box]) for box in self.boxes])

    @property
    def folded(self) -> set[int]:
        """What it folds and scans, by register."""
        return {fold.var for fold in self.folds} | {scan.var for scan in prefixes(self.items)}

    def needed(self, more: Collection[int] = ()) -> list[Item]:
        """The items that its stores and folds, and the registers in `more`, are made of."""
        used = {store.var for store in self.stores} | {fold.operand for fold in self.folds}
        used |= {fold.position for fold in self.folds if fold.position is not None}
        return needed_items(self.items, used.union(more))


def cells_of(kernel: Kernel, start: Sequence[int]) -> list[Cell]:
    """Its bodies, with indices that begin at `start`; where arrays are joined, box by box."""
    whole = tuple([(0, extent) for extent in kernel.extents])
    return [
        Cell(
            tuple([shift_box(box, start) for box in cell.boxes]),
            *move_box(cell.items, cell.stores, start), cell.folds,
        )
        for body in kernel.phases
        for cell in _uncut(Cell(body.where or (whole,), body.body, body.stores, body.accumulators))
    ]


def has_parts(kernel: Kernel) -> bool:
    """Whether it does something else in some boxes, as where it makes or reads a joined array."""
    return bool(kernel.where) or any(access.jumps or access.within for access in accesses(kernel))


def _uncut(cell: Cell) -> list[Cell]:
    """The same where each access has one array: a cell for all boxes that do the same."""
    seams: dict[int, set[int]] = {}
    for item in cell.items:
        if isinstance(item, Load | Index):
            for dim, index in item.access.seams:
                seams.setdefault(dim, set()).add(index)
    if not seams:
        return [cell]
    boxes = list(cell.boxes)
    for dim, indices in seams.items():
        for index in indices:
            boxes = [part for box in boxes for part in _cut(box, dim, index)]
            if len(boxes) > MAX_BOXES:
                raise Apart("one of them reads arrays of many parts")
    alike: dict[tuple[Any, ...], Cell] = {}
    for box in boxes:
        made = _within(cell, box)
        known = alike.setdefault((*made.items, None, *made.stores, *made.folds), made)
        if known is not made:
            known.boxes += made.boxes
    if len(alike) > MAX_CELLS:
        raise Apart(f"one of them reads joined arrays, which takes {len(alike)} bodies")
    return list(alike.values())


def _within(cell: Cell, box: Box) -> Cell:
    """What a cell does in a box that no seam goes through."""
    registers: dict[int, int] = {}
    items: list[Item] = []
    for item in cell.items:
        if isinstance(item, Load) and not _has_element(item.access, box):
            if item.other in registers:
                registers[item.var] = registers[item.other]
            continue
        if isinstance(item, Load):
            item = replace(item, other=None)
        if not all(operand in registers for operand in operands_of(item)):
            continue  # it is of an element that is not there, and is not used here
        if isinstance(item, Load | Index):
            jumps = sum([by for dim, first, by in item.access.jumps if box[dim][0] >= first])
            access = Access(item.access.offset + jumps, item.access.strides)
            item = replace(item, access=access)
        registers[item.var] = item.var
        items.append(of_registers(item, registers))
    made = Cell(
        (box,),
        items,
        [replace(store, var=registers[store.var]) for store in cell.stores],
        [fold_of_registers(fold, registers) for fold in cell.folds],
    )
    made.items = made.needed()
    return made


def _has_element(access: Access, box: Box) -> bool:
    """Whether a limited access has elements in a box."""
    return all(first <= box[dim][0] and box[dim][1] <= end for dim, first, end in access.within)


def _cut(box: Box, dim: int, index: int) -> list[Box]:
    """A box in two, where an index of a dimension lies inside of it."""
    low, high = box[dim]
    return cut_box(box, dim, index - low) if low < index < high else [box]


def shift_box(box: Box, start: Sequence[int]) -> Box:
    """The same box, so many indices further."""
    return tuple([(low + by, high + by) for (low, high), by in zip(box, start, strict=True)])


def move_box(
    items: Sequence[Item], stores: Sequence[Store], start: Sequence[int]
) -> tuple[list[Item], list[Store]]:
    """The same with indices that begin at `start`."""
    if not any(start):
        return list(items), list(stores)

    def later(access: Access) -> Access:
        back = sum(begin * step for begin, step in zip(start, access.strides, strict=True))
        return Access(access.offset - back, access.strides)

    return (
        with_accesses(list(items), later),
        [replace(store, access=later(store.access)) for store in stores],
    )


def decompose_offset(
    distance: int, strides: tuple[int, ...], single: Sequence[int]
) -> list[tuple[int, ...]]:
    """Steps along the dimensions that are together so many elements, none along those that are
    `single`: the smallest ones, and those without a step back, where there are others."""
    found: dict[tuple[int, ...], None] = {}
    for is_nearest in (True, False):
        start, left = [0] * len(strides), distance
        for dim in sorted(range(len(strides)), key=lambda dim: -strides[dim]):
            stride = strides[dim]
            if dim in single:
                continue
            if stride <= 0:
                return []
            start[dim] = (left + (stride // 2 if is_nearest else 0)) // stride
            left -= start[dim] * stride
        if not left:
            found[tuple(start)] = None
    return list(found)


def is_one_to_one(access: Access, box: Box) -> bool:
    """Whether each index of a box is another element, for all that its extents and strides say."""
    shape = tuple([high - low for low, high in box])
    return elements_at_least((shape, 0, access.strides)) == prod(shape)


def hull(boxes: Sequence[Box]) -> Box:
    """The smallest box that holds all of these."""
    return tuple(
        [
            (min([low for low, _ in sides]), max([high for _, high in sides]))
            for sides in zip(*boxes, strict=True)
        ]
    )


def overlaps(boxes: Iterable[Box], other: Box) -> Iterator[Box]:
    """What the boxes and another one have in common, where they have anything."""
    for box in boxes:
        both = tuple(
            [
                (max(one[0], two[0]), min(one[1], two[1]))
                for one, two in zip(box, other, strict=True)
            ]
        )
        if all(low < high for low, high in both):
            yield both


def remainder(box: Box, other: Box) -> Iterator[Box]:
    """What is left of a box without another one."""
    common = next(overlaps([box], other), None)
    if common is None:
        yield box
        return
    start = [low for low, _ in box]
    inner = shift_box(common, [-low for low in start])
    for part in outside(inner, [high - low for low, high in box]):
        yield shift_box(part, start)
