"""Tiles in local memory: element-wise kernels on GPUs that touch some array across its rows.

Lanes of a GPU that run along a row of the result have a line of memory each where an operand is
transposed. So a work-group takes a tile, and copies it to local memory with lanes that run down
the rows, as the operand lies in memory; then it computes with lanes along the rows. Results that
lie across the rows go the same way back.

    operand    lanes down the rows        local memory    lanes along the rows        result
    0 4 8          -------->                0 1 2 3            -------->              0 1 2 3
    1 5 9                                   4 5 6 7                                   4 5 6 7
    2 6 10                                  8 9 ...                                   8 9 ...

A square that is read both ways (``a + a.T``) is taken by pairs of tiles that mirror each other:
all of it comes from memory once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from clfuse.schedule.records import Access, Kernel, Load, Store
from clfuse.target.traits import DeviceTraits

__all__ = ["beside", "lay", "mirror_of", "pitch_of", "tiles_of"]

SECTOR_NBYTES: Final = 32
"""What GPUs move at once: lanes whose elements are as far apart share nothing."""

LEAST_EXTENT: Final = 4
"""Fewer elements beside each other are no better than what lanes find in the first cache."""

TILE_SIDE, SMALL_TILE_SIDE, LEAST_SIDE = 32, 64, 16
"""Elements of a row and of a column: of elements up to `SMALL_NBYTES`, whose rows would fill no
more than a sector or two; and where local memory is short."""

SMALL_NBYTES: Final = 2

MOST_NBYTES: Final = 20 << 10
"""Local memory of a work-group: a multiprocessor of 2,048 work-items has room for all its groups,
and two arrays of doubles in pairs of whole tiles stay within it."""

BANK_NBYTES: Final = 4
"""Of local memory: as many more in each row, and the elements of a column lie in different
banks."""

_Place = tuple[int, Access, np.dtype]


def beside(kernel: Kernel, along: int) -> int | None:
    """The dimension that lanes run along in arrays whose rows do not lie along dimension `along`;
    None where there are no such arrays."""
    if len(kernel.extents) == 1:
        return None
    found: Counter[int] = Counter()
    for item in _moved(kernel):
        near = _near(kernel, item, along)
        if near is not None:
            found[near] += 1
    return found.most_common(1)[0][0] if found else None


def lay(kernel: Kernel, traits: DeviceTraits) -> None:
    """Give the kernel a tile, and mark what goes through local memory: the dimension of the rows
    is the last but one, that of the columns the last. Nothing where there is no room."""
    down, along = len(kernel.extents) - 2, len(kernel.extents) - 1
    places: dict[_Place, int] = {}
    for item in _moved(kernel):
        if _near(kernel, item, along) == down:
            places[_place(item)] = item.dtype.itemsize
    mirrored = bool(places) and not kernel.then and all(
        mirror_of(kernel, item) is not None
        for item in [*kernel.body, *kernel.stores]
        if isinstance(item, Load | Store) and _place(item) in places
    )
    room = min(MOST_NBYTES, traits.local_nbytes // 2)
    side = TILE_SIDE if max(places.values(), default=0) > SMALL_NBYTES else SMALL_TILE_SIDE

    def nbytes(place: _Place) -> int:
        return side * (side + BANK_NBYTES) * place[2].itemsize * (2 if mirrored else 1)

    while side > LEAST_SIDE and sum(map(nbytes, places)) > room:
        side //= 2
    while places and sum(map(nbytes, places)) > room:
        places.popitem()
    if not places:
        return
    kernel.local_tile = side, side
    kernel.mirrored = mirrored and all(
        _place(item) in places
        for item in _moved(kernel)
        if _near(kernel, item, along) == down
    )
    if not kernel.mirrored:
        rows = min(side, _power(kernel.extents[down]))
        columns = min(side * side // rows, _power(kernel.extents[along]))
        kernel.local_tile = min(side * side // columns, _power(kernel.extents[down])), columns
    for phase in kernel.phases:
        phase.body[:] = [
            replace(item, turned=True)
            if isinstance(item, Load) and item.position is None and _place(item) in places
            else item
            for item in phase.body
        ]
        phase.stores[:] = [
            replace(store, turned=True) if _place(store) in places else store
            for store in phase.stores
        ]


def mirror_of(kernel: Kernel, item: Load | Store) -> Load | None:
    """The load of the same square with rows and columns changed, in kernels of one body; None where
    there is none, or of a store."""
    if isinstance(item, Store) or kernel.extents[-1] != kernel.extents[-2]:
        return None
    access = item.access
    if item.position is not None or access.jumps or access.within:
        return None
    *outer, below, beside = access.strides
    changed = access._replace(strides=(*outer, beside, below))
    for other in kernel.body:
        if (
            isinstance(other, Load) and other.position is None and other.value == item.value
            and other.access == changed and other.dtype == item.dtype
        ):
            return other
    return None


def pitch_of(length: int, dtype: np.dtype) -> int:
    """Elements from one row of a tile to the next."""
    return length + max(1, BANK_NBYTES // dtype.itemsize)


def tiles_of(kernel: Kernel) -> int:
    """How many tiles, or pairs of these, there are."""
    rows, columns = kernel.local_tile
    tall, wide = -(-kernel.extents[-2] // rows), -(-kernel.extents[-1] // columns)
    if kernel.mirrored:
        half = -(-wide // 2)
        return math.prod(kernel.extents[:-2]) * half * (2 * half + 1)
    return math.prod(kernel.extents[:-2]) * tall * wide


def _moved(kernel: Kernel) -> Iterator[Load | Store]:
    for phase in kernel.phases:
        for item in phase.body:
            if isinstance(item, Load) and item.position is None:
                yield item
        yield from phase.stores


def _near(kernel: Kernel, item: Load | Store, along: int) -> int | None:
    """The dimension along which the elements of an array lie beside each other; None where this is
    no other than `along`."""
    nbytes = item.dtype.itemsize
    steps = [abs(stride) * nbytes for stride in item.access.strides]
    if steps[along] < SECTOR_NBYTES or kernel.extents[along] < LEAST_EXTENT:
        return None
    near = [
        (step, dim)
        for dim, step in enumerate(steps)
        if 0 < step < min(SECTOR_NBYTES, steps[along]) or abs(item.access.strides[dim]) == 1
    ]
    near = [(step, dim) for step, dim in near if kernel.extents[dim] >= LEAST_EXTENT]
    return min(near)[1] if near else None


def _place(item: Load | Store) -> _Place:
    return item.value, item.access, item.dtype


def _power(extent: int) -> int:
    """The least power of two from `extent` up."""
    return 1 << (extent - 1).bit_length()
