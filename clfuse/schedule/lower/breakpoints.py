"""Bodies of the boxes of one iteration, merged into one body whose loads jump at breakpoints.

`lower.emission` cuts an iteration into boxes in which every element of a joined array comes from
one part. Here the boxes' bodies are laid side by side: where they perform the same operations they
differ only in where they load from, and that becomes jumps of an offset, or a choice of sources.

    np.roll(a, 1) * 2       box [0, 1)   load a at n - 1 + i      box [1, n)   load a at -1 + i
    as one:                 load a at n - 1 + i, from i = 1 on -n

    np.pad(a, 1) * 2        box [0, 1)   the constant   [1, n + 1)   load a at -1 + i   ...
    as one:                 load a at -1 + i within [1, n + 1), elsewhere the constant
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clfuse.dataclass import mutable
from clfuse.schedule.records import Access, Index, Item, Load, Scalar, Step

from .emission import Registers

if TYPE_CHECKING:
    import numpy.typing as npt

Box = tuple[tuple[int, int], ...]
"""(first index, end) of every dimension."""

MAX_CELLS: Final = 4096
"""Cells that the seams of all dimensions cut an iteration into: what planning looks at."""

MAX_SOURCES: Final = 4
"""Places that one register may be loaded from: each is a test for every vector."""

MAX_BODIES: Final = 16
"""Bodies of one kernel, each for other boxes: its text, and what it takes to build it."""

MAX_LIMITED: Final = 24
"""Tested loads of one kernel: beyond, their branches cost more than a launch for every box."""


@mutable
class Part:
    """What was emitted over a box: its items, and the registers that are wanted of them.

    `known` are the registers of nodes at accesses of the box.
    """

    box: Box
    items: list[Item]
    roots: list[int]
    known: dict[tuple[int, Access | None], int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Elements of the box."""
        return math.prod([high - low for low, high in self.box])


@mutable
class Body:
    """What replaces some parts: items, and the registers that are wanted of them.

    `where` are the boxes that it belongs to; none where it belongs to all of the iteration.
    """

    items: list[Item]
    roots: list[int]
    where: tuple[Box, ...]
    registers: Registers


def join(parts: Sequence[Part], extents: tuple[int, ...], max_steps: int) -> list[Body] | None:
    """Bodies over `extents` that do together what each part does in its box, the largest first.

    Parts that perform the same operations share one. None where their loads cannot be written as
    few jumps and choices, or there are too many bodies for a kernel.
    """
    try:
        cells = _Cells(parts, extents)
    except _Apart:
        return None
    for exactness in range(3):
        groups = _groups(parts, exactness)
        if len(groups) > MAX_BODIES:
            break
        try:
            bodies = [_body(parts, numbers, cells) for numbers in groups]
        except _Apart:
            continue
        is_too_long = sum([len(body.items) for body in bodies]) > max_steps
        return None if is_too_long and len(bodies) > 1 else bodies
    return None


def _groups(parts: Sequence[Part], exactness: int) -> list[list[int]]:
    """The numbers of parts that may share a body, the group with most elements first.

    0: those that perform the same operations; 1: also on the same arrays and constants, loaded in
    the same directions; 2: each for itself.
    """
    if exactness == 2:
        groups = [[number] for number in range(len(parts))]
    else:
        interned: dict[Any, int] = {}
        alike: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
        for number, part in enumerate(parts):
            alike[tuple(_structure(part, interned, exactness == 1))].append(number)
        groups = list(alike.values())
    return sorted(groups, key=lambda numbers: -sum([parts[number].size for number in numbers]))


def _body(parts: Sequence[Part], numbers: list[int], cells: _Cells) -> Body:
    """The common body of the parts with these numbers, which perform the same operations."""
    chosen = [parts[number] for number in numbers]
    where: tuple[Box, ...] = ()
    if len(chosen) < len(parts):
        cells = cells.of(numbers)
        where = tuple(map(cells.box, _rectangles(cells.owner >= 0)))
    if len(chosen) == 1:
        (part,) = chosen
        registers = Registers()
        registers.count = max([item.var + 1 for item in part.items], default=0)
        return Body([_uncut(item, part.box) for item in part.items], part.roots, where, registers)
    joint = _Joint(chosen, cells)
    wanted = zip(*[part.roots for part in chosen], strict=True)
    roots = [joint.register(registers) for registers in wanted]
    return Body(joint.items, roots, where, joint.registers)


def _uncut(item: Item, box: Box) -> Item:
    """An item of a box with its access counted from the start of the whole iteration."""
    if not isinstance(item, Load | Index):
        return item
    strides = item.access.strides
    offset = item.access.offset - sum(
        [low * stride for (low, _), stride in zip(box, strides, strict=True)]
    )
    return replace(item, access=Access(offset, strides))


class _Apart(Exception):
    """The parts cannot be written as one body."""


def _structure(part: Part, interned: dict[Any, int], exact: bool) -> list[int]:
    """A number for what each root computes; `exact`: from what, else whatever is loaded."""
    kinds: dict[int, int] = {}
    for item in part.items:
        key: Any
        if isinstance(item, Step):
            operands = tuple([kinds[operand] for operand in item.operands])
            key = ("step", item.op, operands, item.dtypes, item.dtype)
        elif isinstance(item, Load):
            position = None if item.position is None else kinds[item.position]
            source = (item.value, _directions(item.access, part.box)) if exact else ()
            key = ("leaf", item.dtype, position, source)
        elif isinstance(item, Scalar):
            key = ("leaf", item.dtype, None, item.constant if exact else ())
        elif isinstance(item, Index):
            key = ("index", _directions(item.access, part.box))
        else:
            raise AssertionError(f"planner error: {item} in a part of an iteration")
        kinds[item.var] = interned.setdefault(key, len(interned))
    return [kinds[root] for root in part.roots]


def _directions(access: Access, box: Box) -> tuple[int | None, ...]:
    """The strides of an access; None where the box is one index long, and the stride anything."""
    return tuple(
        [
            None if high - low == 1 else stride
            for (low, high), stride in zip(box, access.strides, strict=True)
        ]
    )


class _Cells:
    """The grid that the boxes' bounds cut the iteration into.

    starts (list of list of int, one a dimension): where its intervals begin, and the extent at the
        end.
    owner (int64 array, a dimension a dimension): the part that every cell belongs to; -1 for none
        of those that are looked at.
    """

    def __init__(self, parts: Sequence[Part], extents: tuple[int, ...]) -> None:
        self.starts = [
            [*sorted({part.box[dim][0] for part in parts}), extent]
            for dim, extent in enumerate(extents)
        ]
        counts = [len(starts) - 1 for starts in self.starts]
        if math.prod(counts) > MAX_CELLS:
            raise _Apart
        self.owner = np.zeros(counts, np.int64)
        for number, part in enumerate(parts):
            where = tuple(
                [
                    slice(bisect_left(starts, low), bisect_left(starts, high))
                    for starts, (low, high) in zip(self.starts, part.box, strict=True)
                ]
            )
            self.owner[where] = number

    def of(self, numbers: Sequence[int]) -> _Cells:
        """The same grid for these parts alone, which are numbered anew."""
        renumbered = np.full(int(self.owner.max()) + 2, -1, np.int64)
        renumbered[list(numbers)] = range(len(numbers))
        cells = copy(self)
        cells.owner = renumbered[self.owner]
        return cells

    def box(self, rectangle: Sequence[slice]) -> Box:
        """The indices that a rectangle of cells covers."""
        return tuple(
            [
                (starts[cells.start], starts[cells.stop])
                for starts, cells in zip(self.starts, rectangle, strict=True)
            ]
        )


@mutable
class _Source:
    """A value that some parts load with the same strides (None: their boxes are 1 long there)."""

    value: int
    strides: list[int | None]
    offsets: dict[int, int]  # part -> the element that its first iteration loads

    def takes(self, part: int, item: Load | Index, box: Box) -> bool:
        """Take the part in if it loads the same value with the same strides."""
        merged = list(self.strides)
        for dim, stride in enumerate(_directions(item.access, box)):
            if merged[dim] is None:
                merged[dim] = stride
            elif stride is not None and merged[dim] != stride:
                return False
        self.strides = merged
        self.offsets[part] = item.access.offset
        return True


class _Joint:
    """Builds the common body from the roots down."""

    def __init__(self, parts: Sequence[Part], cells: _Cells) -> None:
        self.parts = parts
        self.cells = cells
        self.registers = Registers()
        self.items: list[Item] = []
        self._items_of = [{item.var: item for item in part.items} for part in parts]
        self._order = sorted(range(len(parts)), key=lambda number: -parts[number].size)
        self._known: dict[tuple[int, ...], int] = {}
        self._same: dict[Item, int] = {}
        self._limited = 0

    def register(self, wanted: tuple[int, ...]) -> int:
        """The register that holds, in the box of each part, what that part's register holds."""
        stack = [wanted]
        while stack:
            variables = stack[-1]
            if variables in self._known:
                stack.pop()
                continue
            items = [
                items[variable] for items, variable in zip(self._items_of, variables, strict=True)
            ]
            operands = _operands(items)
            waiting = [operand for operand in operands if operand not in self._known]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            stack.pop()
            self._known[variables] = self._item(items, [self._known[each] for each in operands])
        return self._known[wanted]

    def _add(self, item: Item) -> int:
        """The register of `item`, whose own register does not count: an equal one's, or a new."""
        known = self._same.get(item)
        if known is None:
            known = self._same[item] = self.registers.new()
            self.items.append(replace(item, var=known))
        return known

    def _item(self, items: list[Any], operands: list[int]) -> int:
        first = items[0]
        if isinstance(first, Step):
            return self._add(replace(first, var=-1, operands=tuple(operands)))
        if isinstance(first, Index):
            accesses = [access for each in self._sources(items) for access in self._accesses(each)]
            access = accesses[0]
            if len(accesses) > 1 or access.within:
                raise _Apart
            return self._add(Index(-1, access))
        if not isinstance(first, Load | Scalar):
            raise _Apart
        position = operands[0] if operands else None
        scalars = dict.fromkeys(item.constant for item in items if isinstance(item, Scalar))
        if len(scalars) > 1:
            raise _Apart
        other = None
        for constant in scalars:
            other = self._add(Scalar(-1, constant, first.dtype))
        loads = [
            Load(-1, source.value, first.dtype, access, position)
            for source in self._sources(items)
            for access in self._accesses(source)
        ]
        if len(loads) > MAX_SOURCES:
            raise _Apart
        for load in reversed(loads):
            if load.access.within:
                self._limited += 1
                if self._limited > MAX_LIMITED:
                    raise _Apart
                load = replace(load, other=other)
            other = self._add(load)
        assert other is not None
        return other

    def _sources(self, items: list[Any]) -> list[_Source]:
        """What the parts load from, largest first."""
        sources: list[_Source] = []
        for number in self._order:
            item = items[number]
            if isinstance(item, Scalar):
                continue
            value = item.value if isinstance(item, Load) else -1
            box = self.parts[number].box
            if not any(
                source.value == value and source.takes(number, item, box) for source in sources
            ):
                source = _Source(value, [None] * len(box), {})
                source.takes(number, item, box)
                sources.append(source)
                if len(sources) > MAX_SOURCES:
                    raise _Apart
        return sources

    def _accesses(self, source: _Source) -> list[Access]:
        """The accesses of a source, each over a rectangle of cells."""
        strides = tuple([stride or 0 for stride in source.strides])
        offsets = np.zeros(len(self.parts), np.int64)
        loaded = np.zeros(len(self.parts), np.bool_)
        for number, offset in source.offsets.items():
            starts = [low for low, _ in self.parts[number].box]
            loaded[number] = True
            offsets[number] = offset - sum(map(int.__mul__, starts, strides))
        owner = self.cells.owner
        mask = loaded[owner] & (owner >= 0)
        everywhere = tuple([slice(0, count) for count in owner.shape])
        if (mask == (owner >= 0)).all():
            return [self._access(_filled(offsets[owner], mask), strides, everywhere)]
        return [
            self._access(offsets[owner[rectangle]], strides, rectangle)
            for rectangle in _rectangles(mask)
        ]

    def _access(
        self,
        offsets: npt.NDArray[np.int64],
        strides: tuple[int, ...],
        rectangle: tuple[slice, ...],
    ) -> Access:
        """The access with these offsets in the cells of a rectangle, and none elsewhere."""
        within = tuple(
            [
                (dim, *bounds)
                for dim, bounds in enumerate(self.cells.box(rectangle))
                if bounds != (0, self.cells.starts[dim][-1])
            ]
        )
        jumps = tuple(self._jumps(offsets, rectangle))
        return Access(int(offsets.flat[0]), strides, jumps, within)

    def _jumps(
        self, offsets: npt.NDArray[np.int64], rectangle: tuple[slice, ...]
    ) -> Iterator[tuple[int, int, int]]:
        """How the offset changes from interval to interval: in each dimension for itself."""
        for dim, starts in enumerate(self.cells.starts):
            if offsets.shape[dim] == 1:
                continue
            steps = np.diff(offsets, axis=dim)
            along = np.moveaxis(steps, dim, 0).reshape(steps.shape[dim], -1)
            if (along != along[:, :1]).any():
                raise _Apart
            for number, by in enumerate(along[:, 0].tolist(), 1):
                if by:
                    yield dim, starts[rectangle[dim].start + number], by


def _filled(offsets: npt.NDArray[np.int64], known: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """The offsets with those of unknown cells taken from known ones in a line with them."""
    offsets, known = offsets.copy(), known.copy()
    for dim in range(offsets.ndim):
        rows, marks = np.moveaxis(offsets, dim, 0), np.moveaxis(known, dim, 0)
        places = [*range(1, len(rows)), *range(len(rows) - 2, -1, -1)]
        for number, place in enumerate(places):
            source = place - 1 if number < len(rows) - 1 else place + 1
            take = ~marks[place] & marks[source]
            rows[place] = np.where(take, rows[source], rows[place])
            marks[place] |= take
    return offsets


def _operands(items: list[Any]) -> list[tuple[int, ...]]:
    """What the items of all parts are computed from, place by place."""
    first = items[0]
    if isinstance(first, Step):
        return list(zip(*[item.operands for item in items], strict=True))
    if isinstance(first, Load) and first.position is not None:
        return [tuple([item.position for item in items])]
    return []


def _rectangles(mask: npt.NDArray[np.bool_]) -> Iterator[tuple[slice, ...]]:
    """Rectangles that cover the true cells of a grid, each cell once."""
    left = mask.copy()
    while left.any():
        corner = np.unravel_index(int(left.argmax()), left.shape)
        rectangle = [slice(int(at), int(at) + 1) for at in corner]
        for dim in reversed(range(left.ndim)):
            while rectangle[dim].stop < left.shape[dim]:
                stop = rectangle[dim].stop
                rectangle[dim] = slice(stop, stop + 1)
                free = left[tuple(rectangle)].all()
                rectangle[dim] = slice(int(corner[dim]), stop + int(free))
                if not free:
                    break
        left[tuple(rectangle)] = False
        yield tuple(rectangle)


def cut_box(box: Box, dim: int, position: int) -> list[Box]:
    """The two boxes before and from index `position` of `box` in a dimension, the second first."""
    low, high = box[dim]
    bounds: Iterable[tuple[int, int]] = ((low + position, high), (low, low + position))
    return [(*box[:dim], part, *box[dim + 1 :]) for part in bounds]
