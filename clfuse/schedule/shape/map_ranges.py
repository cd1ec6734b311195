"""Element-wise kernels on GPUs: vectors that lie at multiples of their size, and a work-item each.

    a row         0 | 1 2 3 4 | 5 6 7 8 | 9 ...     ``lead`` elements, vectors, and what is left
    work-items    3 |    0    |    1    | 4 ...     vectors first: only a row's last ones diverge

Work-items along a row are the range's first dimension, rows the second one, and what is outside of
these the third: no index is divided. An H100 moves 3.03 TB/s so (a triad of 128 million float32),
2.76 with an element a work-item, and 2.31 with vectors of which the compiler does not know where
they lie: it loads them element by element. Where memory of the host's may be a buffer, nothing is
known.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Final

from clfuse.dtypes import register_nbytes
from clfuse.schedule.records import Access, Index, Kernel, Load, Step, Store
from clfuse.target.traits import DeviceTraits

__all__ = ["lay", "lies_on_vectors", "spread"]

MOST_ROWS: Final = (1 << 16) - 1
"""Work-items of the second and third dimension, which stride over what is left: NVIDIA's grids have
as many groups there, and indices do not go past the end by more than `LEAST_RESERVE`."""

MOST_DEEP: Final = 64
"""Work-items of a group in the third dimension (an H100's CL_DEVICE_MAX_WORK_ITEM_SIZES)."""

LEAST_LANES: Final = 32
"""Work-items side by side of a group, where rows are as long: a warp."""

WASTED_PART: Final = 8
"""Of this part of the work-items along a row none need have work, or the groups are narrower."""

WORD_NBYTES: Final = 4

OWN_PART: Final = 2
"""Of this part of a work-item's registers values may take all: the rest is for addresses, and for
what built-in functions and compilers need besides."""


def lay(kernel: Kernel, traits: DeviceTraits) -> None:
    """Narrow the vectors of a map whose lanes and `width` are chosen, to what lies at multiples of
    their size and fits into registers; fix its `lead` and its range of work-items."""
    rank = len(kernel.extents)
    if kernel.seams(rank - 1):  # no vector lies across a seam: an element an item
        kernel.width = 1
    while kernel.width > 1 and _words(kernel) * kernel.width * OWN_PART > traits.item_words:
        kernel.width //= 2
    if traits.buffer_alignment > 1 and not traits.unaligned_vectors:
        _align(kernel, traits)
    spread(kernel, traits.work_group)


def spread(kernel: Kernel, group: int) -> None:
    """Fix the range of work-items of a map, in groups of up to `group`."""
    rank = len(kernel.extents)
    extents = [_units(kernel), *reversed(kernel.extents[:-1])]
    if rank > 3:
        extents[2:] = [math.prod(extents[2:])]
    local = _group(extents, group)
    sizes = [_round_up(extents[0], local[0])]
    for extent, side in zip(extents[1:], local[1:], strict=True):
        sizes.append(min(_round_up(extent, side), MOST_ROWS // side * side))
    kernel.nd_range = tuple(sizes), local
    kernel.work_items, kernel.work_group = math.prod(sizes), math.prod(local)


def lies_on_vectors(kernel: Kernel, access: Access, width: int) -> bool:
    """Whether all vectors of a load or store lie at multiples of their size, in a buffer that does.

    Where one that is said to does not, NVIDIA's devices fault. So all that is added to the index
    must be a multiple of the width: the offset and the lead, rows, and jumps at seams. They are
    known here: a view at another offset is another kernel.
    """
    lanes = access.strides[kernel.vector]
    lead = kernel.lead or (0,) * len(access.strides)
    # Backwards, a vector's first element in memory is that of its last lane.
    places = [access.offset + lanes * lead[-1] - (width - 1 if lanes == -1 else 0)]
    places += [by for _, _, by in access.jumps]
    for dim, stride in enumerate(access.strides):
        if dim != kernel.vector:
            places.append(stride + lanes * lead[dim])
    return all(place % width == 0 for place in places)


def _align(kernel: Kernel, traits: DeviceTraits) -> None:
    """Choose the widest vectors of which most bytes lie at multiples of their size, and the lead
    with which they do. Loads of the others are several instructions, which lie apart: single
    elements, side by side, are better than vectors of which most are such."""
    moved = [(access, nbytes) for access, nbytes in _moved(kernel) if nbytes]
    everything = sum([nbytes for _, nbytes in moved])
    while kernel.width > 1:
        leads: Counter[tuple[int, ...]] = Counter()
        for access, nbytes in moved:
            if abs(access.strides[-1]) == 1:
                leads[_lead_of(access, kernel.width)] += nbytes
        # Of equally good ones the least: none, where arrays begin with whole vectors.
        kernel.lead = min(leads, key=lambda lead: (-leads[lead], lead), default=())
        if not any(kernel.lead):
            kernel.lead = ()
        on_vectors = sum(
            [nbytes for access, nbytes in moved if lies_on_vectors(kernel, access, kernel.width)]
        )
        if 2 * on_vectors >= everything:
            return
        kernel.width //= 2
    kernel.lead = ()


def _lead_of(access: Access, width: int) -> tuple[int, ...]:
    """With which lead an access lies on vectors: for each index of the dimensions outside so many
    elements more, and so many at their beginning; all up to multiples of the width."""
    if access.strides[-1] == 1:
        return (*[-stride % width for stride in access.strides[:-1]], -access.offset % width)
    return (*[stride % width for stride in access.strides[:-1]], (access.offset + 1) % width)


def _moved(kernel: Kernel) -> Iterator[tuple[Access, int]]:
    """Where vectors are loaded and stored, and how many bytes, each place once."""
    for phase in kernel.phases:
        boxes = phase.where or ([(0, extent) for extent in kernel.extents],)
        seen = set()
        touched: list[Load | Store] = [item for item in phase.body if isinstance(item, Load)]
        for item in [*touched, *phase.stores]:
            if (isinstance(item, Load) and item.position is not None) or item.dtype.kind == "c":
                continue
            access = item.access
            if abs(access.strides[-1]) != 1 or (item.value, access) in seen:
                continue
            seen.add((item.value, access))
            elements = 0
            for box in boxes:
                sides = zip(box, access.strides, strict=True)
                elements += math.prod([high - low for (low, high), stride in sides if stride])
            yield access, elements * item.dtype.itemsize


def _words(kernel: Kernel) -> int:
    """Words of 32 bits that a lane's values take at most, side by side, where each is made as soon
    as it is in the body and lives until its last reader; compilers load all that is loaded first,
    so that loads wait together."""
    most = 0
    for phase in kernel.phases:
        ends: dict[int, int] = {}
        for place, item in enumerate(phase.body):
            if isinstance(item, Step):
                ends.update(dict.fromkeys(item.operands, place))
            elif isinstance(item, Load):
                ends.update(dict.fromkeys([v for v in (item.position, item.other) if v], place))
        living: dict[int, int] = {}
        for place, item in enumerate(phase.body):
            living = {var: words for var, words in living.items() if ends.get(var, -1) >= place}
            if isinstance(item, Index):
                living[item.var] = 2
            elif isinstance(item, Step) or (isinstance(item, Load) and item.access.strides[-1]):
                living[item.var] = max(1, register_nbytes(item.dtype) // WORD_NBYTES)
            most = max(most, sum(living.values()))
        loads = {
            (item.value, item.access): max(1, register_nbytes(item.dtype) // WORD_NBYTES)
            for item in phase.body
            if isinstance(item, Load) and item.access.strides[-1]
        }
        most = max(most, sum(loads.values()))
    return most


def _units(kernel: Kernel) -> int:
    """Work-items of a row: of those with different leads, the most."""
    n, width, lead = kernel.extents[-1], kernel.width, kernel.lead
    leads = list(range(width)) if any(lead[:-1]) else [*lead[-1:], 0][:1]
    counts = []
    for first in leads:
        vectors = max(n - first, 0) // width
        counts.append(vectors + n - vectors * width)
    return max(counts)


def _group(extents: list[int], most: int) -> tuple[int, ...]:
    """The sides of a group of up to `most` work-items."""
    if len(extents) == 1:
        return (most,)
    side = min(_power_from(extents[0]), most)
    sides = [side]
    while side > LEAST_LANES:
        side //= 2
        sides.append(side)

    def idle(side: int) -> int:
        return _round_up(extents[0], side) - extents[0]

    enough = [side for side in sides if idle(side) * WASTED_PART <= extents[0]]
    along = enough[0] if enough else min(sides, key=idle)
    down = min(_power_from(extents[1]), most // along)
    if len(extents) == 2:
        return along, most // along
    return along, down, min(most // (along * down), MOST_DEEP)


def _power_from(count: int) -> int:
    """The least power of two from `count` up."""
    return 1 << max(count - 1, 0).bit_length()


def _round_up(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple
