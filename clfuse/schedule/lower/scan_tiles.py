"""Tiles of scans along rows on a GPU: how many elements a work-item takes, and whether a long row
is one pass, in which the groups of its tiles look back (`codegen.kinds.scan_tiles`)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from clfuse.dtypes import register_nbytes
from clfuse.schedule.kinds import MAP
from clfuse.schedule.records import Access, Index, Kernel, Prefix, Store
from clfuse.schedule.shape import geometry as g
from clfuse.target.traits import DeviceTraits

from .emission import ValueTable

ITEM_NBYTES: Final = 64
"""What a work-item has of a tile: 16 elements of 4 bytes. Tiles of 256 such items are long enough
that as many groups as look back at once are not what takes the time."""

MOST_NBYTES: Final = 24 << 10
"""Local memory of a group: a multiprocessor has room for several."""

BANKS_NBYTES: Final = 128
"""Of local memory, 32 of 4 bytes: an element more after as many, and work-items whose elements
follow one another find theirs in different ones."""

LEAST_GROUP: Final = 32
"""Work-items of a group at least, where rows are short: a warp."""

TICKET_WORDS: Final = 32
"""Words before those of the tiles: the first is the number of the next tile."""

BITS_NBYTES: Final = 2
"""Of a word that groups leave for each other."""


def lay_tiles(kernel: Kernel, scans: list[Prefix], traits: DeviceTraits) -> int:
    """Fix the group and the elements of a work-item; returns those of a tile."""
    length = kernel.extents[-1]
    sizes = [fold_nbytes(scan.dtype) for scan in scans]
    room = min(MOST_NBYTES, traits.local_nbytes // 2)
    group = min(traits.work_group, max(LEAST_GROUP, _power_from(length)))
    each = max(1, min(ITEM_NBYTES // max(*sizes, 4), _power_from(-(-length // group))))

    def nbytes() -> int:
        return sum([(padded(group * each, size) + group) * size for size in sizes])

    while each > 1 and nbytes() > room:
        each //= 2
    while group > 1 and nbytes() > room:
        group //= 2
    kernel.work_group, kernel.unroll = group, each
    return group * each


def look_back(
    kernel: Kernel, scans: list[Prefix], traits: DeviceTraits, values: ValueTable, tile: int
) -> list[Kernel]:
    """The scan in one pass, a group for each tile, behind the kernel that clears its words."""
    rows, length = math.prod(kernel.extents[:-1]), kernel.extents[-1]
    axis = len(kernel.extents) - 1
    kernel.chunk, kernel.chunks, kernel.chunk_length = axis, -(-length // tile), tile
    kernel.looks_back = True
    tiles = rows * kernel.chunks
    count = TICKET_WORDS + 2 * tiles * sum([words_of(scan.dtype) for scan in scans])
    state = values.temporary(
        count * 4, "folds up to tiles", "a scan in one pass, whose groups look back at others"
    )
    for body in kernel.phases:
        body.body = [
            replace(item, partial=state) if isinstance(item, Prefix) else item
            for item in body.body
        ]
    kernel.work_items = tiles * kernel.work_group
    word = np.dtype(np.uint32)
    cleared = Kernel(
        MAP,
        (count,),
        [Index(0, Access(0, (0,)))],
        [Store(0, np.dtype(np.int64), state, word, Access(0, (1,)))],
        label=f"{kernel.label}_words",
    )
    return [g.finish_map(cleared, traits), kernel]


def fold_nbytes(dtype: np.dtype) -> int:
    """Bytes of a fold in a register or in local memory; a truth value is an int."""
    return 4 if dtype.kind == "b" else register_nbytes(dtype)


def words_of(dtype: np.dtype) -> int:
    """Words that hold a fold, 16 bits each."""
    return max(1, fold_nbytes(dtype) // BITS_NBYTES)


def pad_of(nbytes: int) -> int:
    """After how many elements of a tile in local memory one is left out."""
    return BANKS_NBYTES // max(nbytes, 4)


def padded(count: int, nbytes: int) -> int:
    """Elements that `count` of them take in local memory."""
    return count + count // pad_of(nbytes)


def _power_from(count: int) -> int:
    """The least power of two from `count` up."""
    return 1 << max(count - 1, 0).bit_length()
