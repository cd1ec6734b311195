"""Layouts of time tiles: which part of each value a tile needs (its halo), and how large tiles are.

    stage 3      p .. q          the result's part that is the tile's own
    stage 2    p-1 .. q+1        what stage 3 reads of stage 2
    stage 1  p-2   ..   q+2      what stage 2 reads of stage 1

Along axes that a chain rolls around, tiles go past the ends: index -1 is the last one again.
"""

from __future__ import annotations

import math
from dataclasses import field
from functools import lru_cache
from typing import Final

import numpy as np

from clfuse.dataclass import frozen, mutable
from clfuse.ir.layout import contiguous_strides
from clfuse.schedule import cost
from clfuse.schedule.kinds import MAP
from clfuse.schedule.lower.iterations import complement
from clfuse.schedule.records import Access, Border, Kernel, Load, Scalar, Scratch, Step, Store
from clfuse.schedule.shape.geometry import round_up
from clfuse.target.traits import DeviceTraits

MOST_OVERHEAD: Final = 0.15
"""Of the operations, those that are done again for another tile."""

ROWS: Final = (32, 64, 128, 256, 512, 1024)
"""Elements of a tile's rows that are tried."""

ROW_COST: Final = 32
"""Elements that could be computed while a row begins and ends."""

TILES_PER_UNIT: Final = 2
"""A device's units have this many tiles each at least, or the tiles become smaller."""

_LINE: Final = 64
"""Bytes."""

Ints = tuple[int, ...]


@frozen
class Walk:
    """An access that goes through a box of an array axis by axis and element by element: its first
    indices, and the axes along which it goes on at the beginning when it has come to the end (there
    the first index may be negative)."""

    start: Ints
    around: frozenset[int]


@lru_cache(maxsize=4096)
def walk_of(access: Access, shape: Ints, extents: Ints) -> Walk | None:
    """What an access does over these extents in an array of that shape; None for anything else.

    >>> walk_of(Access(7, (6, 1)), (4, 6), (2, 4))
    Walk(start=(1, 1), around=frozenset())
    >>> walk_of(Access(3, (1,), jumps=((0, 1, -4),)), (4,), (4,))  # a roll by 1
    Walk(start=(-1,), around=frozenset({0}))
    >>> walk_of(Access(0, (1, 6)), (4, 6), (4, 4)) is None
    True
    """
    if access.within or access.offset < 0 or len(shape) != len(extents) or 0 in shape:
        return None
    around = {dim: (first, by) for dim, first, by in access.jumps}
    if len(around) != len(access.jumps):
        return None
    rest = access.offset
    found = []
    for dim, (stride, step, length, extent) in enumerate(
        zip(access.strides, contiguous_strides(shape), shape, extents, strict=True)
    ):
        if stride != step and extent > 1:
            return None
        start, rest = divmod(rest, step) if step else (0, rest)  # 0: of a length of 1
        if dim in around:
            if extent != length or around[dim] != (length - start, -length * step):
                return None
            if 2 * start > length:
                start -= length
        elif start + extent > length:
            return None
        found.append(start)
    if rest:
        return None
    return Walk(tuple(found), frozenset(around))


@mutable
class Made:
    """A value that a map stores: over what shape, and from which index on along each axis."""

    value: int
    dtype: np.dtype
    shape: Ints
    start: Ints
    store: Store
    node: int
    is_update: bool


@mutable
class Member:
    """A map that may be a stage.

    `reads` are bytes by value, `written` those of all results; `around` are the dimensions along
    which a load begins again; `numbers_elements` says that it calculates with indices.
    """

    index: int
    kernel: Kernel
    made: list[Made]
    weight: float
    reads: dict[int, int]
    written: int
    around: frozenset[int]
    numbers_elements: bool


@mutable
class Group:
    """Members in order, and what they make.

    `walks` has for each member how it reads what tiles have: value -> (access, walk) of its loads.
    `inputs` are values from elsewhere which tiles have a copy of: dtype and shape.
    """

    members: list[Member] = field(default_factory=list)
    made: dict[int, Made] = field(default_factory=dict)
    walks: list[dict[int, list[tuple[Access, Walk]]]] = field(default_factory=list)
    around: frozenset[int] = frozenset()
    inputs: dict[int, tuple[np.dtype, Ints]] = field(default_factory=dict)


@mutable
class Layout:
    """Where a group's values lie.

    `low` and `high` are what stages compute beyond a tile, `need` the same of values; `direct` says
    of a stage that its results go straight to memory, `loaded` before which stage an input is
    copied. `overhead` is the share of operations that are done again.
    """

    low: list[Ints]
    high: list[Ints]
    direct: list[bool]
    need: dict[int, tuple[Ints, Ints]]
    loaded: dict[int, int]
    scratch: dict[int, Scratch]
    arrays: list[tuple[np.dtype, int]]
    lengths: Ints
    extents: Ints
    overhead: float


def lay_out(group: Group, outputs: set[int], traits: DeviceTraits) -> Layout | str:
    """Tiles for a group of which `outputs` are needed in memory; a reason where there are none."""
    low, high, need, readers = _needs(group, outputs)
    rank = len(low[0])
    for value in group.inputs:
        shape = group.inputs[value][1]
        lows, highs = need[value]
        if any(-lows[d] > shape[d] or highs[d] > shape[d] for d in group.around):
            return "tiles would go around more than once"
    direct = [
        len({made.start for made in member.made}) == 1
        and not any(made.value in readers for made in member.made)
        for member in group.members
    ]
    loaded = {value: min(readers[value]) for value in group.inputs}
    arrays, array_of = _arrays(group, need, low, high, direct, loaded, readers)
    ends = [
        tuple([s + e for s, e in zip(made.start, member.kernel.extents, strict=True)])
        for member in group.members
        for made in member.made
        if made.value in outputs
    ]
    extents = tuple([max(end[d] for end in ends) for d in range(rank)])
    chosen = _lengths(group, low, high, arrays, extents, traits)
    if chosen is None:
        return f"no tile of them fits {traits.tile_nbytes} bytes"
    most, overhead = chosen
    if overhead > MOST_OVERHEAD:
        return f"{overhead:.0%} of the operations would be done again for neighbouring tiles"
    strides_of: list[Ints] = []
    sizes = []
    for dtype, span in arrays:
        lengths = _padded(most, span, dtype)
        strides_of.append(tuple([math.prod(lengths[d + 1 :]) for d in range(rank)]))
        sizes.append((dtype, math.prod(lengths)))
    scratch = {}
    for value, place in array_of.items():
        if value in group.inputs:
            shape, lows = group.inputs[value][1], need[value][0]
        else:
            made = group.made[value]
            number = next(n for n, each in enumerate(group.members) if made in each.made)
            shape, lows = made.shape, _sum(low[number], made.start)
        scratch[value] = Scratch(place, shape, lows, strides_of[place])
    lengths = _balanced(most, extents, traits)
    return Layout(low, high, direct, need, loaded, scratch, sizes, lengths, extents, overhead)


def _sum(one: Ints, other: Ints) -> Ints:
    return tuple([a + b for a, b in zip(one, other, strict=True)])


def _needs(
    group: Group, outputs: set[int]
) -> tuple[list[Ints], list[Ints], dict[int, tuple[Ints, Ints]], dict[int, list[int]]]:
    """What is needed beyond a tile: of each stage's iterations, of each value; and who reads."""
    members = group.members
    rank = len(members[0].kernel.extents)
    zero = (0,) * rank
    need = dict.fromkeys(outputs, (zero, zero))
    readers: dict[int, list[int]] = {}
    lows: list[Ints] = []
    highs: list[Ints] = []
    for number in range(len(members) - 1, -1, -1):
        wanted = [(made.start, *need[made.value]) for made in members[number].made]
        low = tuple([min(a[d] - start[d] for start, a, _ in wanted) for d in range(rank)])
        high = tuple([max(b[d] - start[d] for start, _, b in wanted) for d in range(rank)])
        lows.append(low)
        highs.append(high)
        for value, walks in group.walks[number].items():
            readers.setdefault(value, []).append(number)
            for _, walk in walks:
                first, last = _sum(low, walk.start), _sum(high, walk.start)
                if value in need:
                    first = tuple(map(min, first, need[value][0]))
                    last = tuple(map(max, last, need[value][1]))
                need[value] = first, last
    return lows[::-1], highs[::-1], need, readers


def _arrays(
    group: Group,
    need: dict[int, tuple[Ints, Ints]],
    low: list[Ints],
    high: list[Ints],
    direct: list[bool],
    loaded: dict[int, int],
    readers: dict[int, list[int]],
) -> tuple[list[tuple[np.dtype, Ints]], dict[int, int]]:
    """Local arrays (dtype, how much longer than a tile) and which of them has each value: one is
    free again after the last stage that reads it."""
    arrays: list[tuple[np.dtype, Ints]] = []
    free_from: list[int] = []
    array_of: dict[int, int] = {}
    for number, member in enumerate(group.members):
        held = [
            (value, group.inputs[value][0], *need[value])
            for value, stage in loaded.items()
            if stage == number
        ]
        if not direct[number]:
            held += [(made.value, made.dtype, low[number], high[number]) for made in member.made]
        for value, dtype, lows, highs in held:
            span = tuple([b - a for a, b in zip(lows, highs, strict=True)])
            place = next(
                (
                    place
                    for place, (kind, _) in enumerate(arrays)
                    if kind == dtype and free_from[place] <= number
                ),
                len(arrays),
            )
            if place == len(arrays):
                arrays.append((dtype, span))
                free_from.append(0)
            arrays[place] = dtype, tuple(map(max, arrays[place][1], span))
            array_of[value] = place
            free_from[place] = max(readers.get(value, [number])) + 1
    return arrays, array_of


def _padded(lengths: Ints, span: Ints, dtype: np.dtype) -> Ints:
    """The lengths of a local array: rows begin at lines of the cache."""
    padded = list(_sum(lengths, span))
    padded[-1] = round_up(padded[-1], _LINE // dtype.itemsize)
    return tuple(padded)


def _lengths(
    group: Group,
    low: list[Ints],
    high: list[Ints],
    arrays: list[tuple[np.dtype, Ints]],
    extents: Ints,
    traits: DeviceTraits,
) -> tuple[Ints, float] | None:
    """The tile that takes least time, and the share of operations that are done again."""
    best: tuple[bool, float, Ints, float] | None = None
    total = sum([member.weight for member in group.members])
    for row in ROWS if len(extents) == 2 else (0,):
        # Bytes without an element along the first dimension, and for each.
        none = each = 0
        for dtype, span in arrays:
            nbytes = dtype.itemsize
            if len(extents) == 2:
                nbytes *= _padded((0, row), span, dtype)[1]
                none += nbytes * span[0]
            else:
                none += nbytes * span[0] + _LINE
            each += nbytes
        first = (traits.tile_nbytes - none) // max(each, 1)
        if len(extents) == 1:
            first -= first % _LINE
        if first < 1:
            continue
        lengths = (first, row)[: len(extents)]
        again = 0.0
        for member, lows, highs in zip(group.members, low, high, strict=True):
            volume = 1.0
            for d, (length, extent) in enumerate(zip(lengths, extents, strict=True)):
                if length < extent or d in group.around:
                    volume *= 1 + (highs[d] - lows[d]) / min(length, extent)
            again += member.weight * volume
        spent = again * (1 + ROW_COST / min(lengths[-1], extents[-1]))
        overhead = again / total - 1
        found = overhead > MOST_OVERHEAD, spent, lengths, overhead
        best = found if best is None else min(best, found)
    return None if best is None else best[2:]


def _balanced(most: Ints, extents: Ints, traits: DeviceTraits) -> Ints:
    """Tiles of at most these lengths, so many that all units have work to the end."""
    across = math.prod(
        [-(-extent // length) for length, extent in zip(most[1:], extents[1:], strict=True)]
    )
    wanted = -(-TILES_PER_UNIT * traits.compute_units // across)
    pieces = round_up(max(1, -(-extents[0] // most[0])), wanted)
    first = max(1, -(-extents[0] // pieces))
    if len(most) == 1:
        first = round_up(first, _LINE)
    return (min(first, most[0]), *most[1:])


def excess_of(group: Group, traits: DeviceTraits) -> str:
    """What there would be too much of in one kernel; empty if nothing."""
    items = [item for member in group.members for item in member.kernel.body]
    if sum(isinstance(item, Step) for item in items) > traits.max_steps:
        return f"one kernel has {traits.max_steps} operations at most"
    buffers = {item.value for item in items if isinstance(item, Load)} | set(group.made)
    scalars = sum(isinstance(item, Scalar) for item in items)
    nbytes = cost.BUFFER_NBYTES * len(buffers) + 8.0 * scalars
    if nbytes > max(traits.max_parameter_nbytes, 4 * cost.BUFFER_NBYTES):
        return "one kernel has no more arguments"
    return ""


def is_plain(dtype: np.dtype) -> bool:
    """Whether elements in memory and in registers are the same, or bools."""
    return dtype.kind in "biuf" and dtype.char != "e"


def is_in_place(member: Member, made: Made, base: int | None) -> bool:
    """Whether a kernel of its own would read of `base` the very elements that it writes, and no
    others."""
    if not made.is_update:
        return False
    read = {
        item.access
        for item in member.kernel.body
        if isinstance(item, Load) and item.value == base
    }
    return read == {made.store.access}


def around_region(border: Border, made: Made, kernel: Kernel) -> list[Kernel]:
    """Kernels that read what is around the region of an update."""
    access = made.store.access
    boxes = complement(made.shape, kernel.extents, access.offset, access.strides)
    assert boxes is not None
    strides = contiguous_strides(made.shape)
    found = []
    for box in boxes:
        offset = sum([low * stride for (low, _), stride in zip(box, strides, strict=True)])
        load = Load(0, border.base, made.dtype, Access(offset, strides))
        found.append(Kernel(MAP, tuple([high - low for low, high in box]), [load], []))
    return found


def is_read_around(group: Group, made: Made, kernel: Kernel) -> bool:
    """Whether any stage reads an update outside of the region that `kernel` writes."""
    return any(
        start < low or start + extent > low + length
        for reader, walks in zip(group.members, group.walks, strict=True)
        for _, walk in walks.get(made.value, ())
        for start, extent, low, length in zip(
            walk.start, reader.kernel.extents, made.start, kernel.extents, strict=True
        )
    )


def border_of(made: Made, kernel: Kernel, base: int, layout: Layout) -> Border:
    """What tiles have of an update outside of its region: what `base` has there."""
    box = tuple([(s, s + e) for s, e in zip(made.start, kernel.extents, strict=True)])
    return Border(made.value, base, made.dtype, made.shape, box, *layout.need[made.value])
