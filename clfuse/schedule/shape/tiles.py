"""Tiling of element-wise kernels with transposed operands, and blocks that are turned in registers.

What a row of a transposed array needs lies in as many lines of memory as the row is long, and the
next rows need the same lines again: by then they are in no near cache. So such a kernel takes some
rows of a piece before it comes to the next piece:

    low .. low + 512       the next piece
    0   1   2   3          512 513 514 515
    4   5   6   7          516 517 ...
    ...

Of 64 MB of doubles this takes .5 of the time of whole rows for ``a.T.copy()`` of 2896 x 2896, .7
for ``a.T + b``, .3 for rows of 4096 (two cores of an EPYC, PoCL and Intel's runtime). Pieces of 256
take up to 1.4 times as long as those of 512.

Loads across the rows are turned in registers where that gains something: a block is four rows of
four doubles, loaded as a vector of each column. That takes .6 to 1.0 of the time of tiles without.
Rows of 2897 doubles lie astride of lines: blocks of those take up to 1.9 times as long, as they may
not go past the caches; so do complex numbers. With blocks a tile has 32 rows: 128 take 1.2 times as
long.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Final

from clfuse.schedule.dataflow import needed_items
from clfuse.schedule.records import Kernel, Load, Store
from clfuse.target.traits import DeviceTraits

__all__ = ["LONGEST_PIECE", "apart", "beside", "rows_of"]

LONGEST_PIECE: Final = 512
"""Elements of a row in a tile."""

LONGEST_ROW: Final = 1024
"""Rows up to here are not cut: what their loads need is still in the second cache for the next row.
Tiles took 1.1 to 1.5 times as long for rows of 700 to 900 elements, as long for 1024 to 1200."""

MOST_ROWS, LEAST_ROWS = 128, 16
"""Of a tile: several times the elements of a line, or two lines' where the device has more to do at
once than there are tiles."""

MOST_BLOCK_ROWS: Final = 32
"""Of a tile in blocks."""

BLOCK_NBYTES: Final = 32
"""Of a row in a block."""

MOST_ASTRIDE, MOST_ASTRIDE_CACHED = 1, 4
"""Bytes of an element, up to which blocks are worth it where their rows lie astride of lines; and
where what is moved stays in the caches."""

CACHED_NBYTES: Final = 32 << 20
"""What stays there."""

LEAST_NBYTES: Final = 1 << 20
"""An array of less lies in the second cache of a core."""

LINE_NBYTES: Final = 64
"""Of memory, in the caches of x86-64 and of most of Arm."""


def beside(kernel: Kernel, vector: int, traits: DeviceTraits) -> int | None:
    """The dimension that the rows of a tile are taken from, for lanes along `vector`; None where
    whole rows are as good."""
    extents = kernel.extents
    if kernel.schedule != "cpu" or len(extents) == 1 or extents[vector] <= LONGEST_ROW:
        return None
    least = min(LEAST_NBYTES, traits.stream_nbytes)
    found: Counter[int] = Counter()
    for phase in kernel.phases:
        moved: list[Load | Store] = [
            item for item in phase.body if isinstance(item, Load) and item.position is None
        ]
        for item in [*moved, *phase.stores]:
            steps = [abs(stride) * item.dtype.itemsize for stride in item.access.strides]
            if steps[vector] < LINE_NBYTES:
                continue
            nbytes = item.dtype.itemsize * math.prod(
                [extent for extent, step in zip(extents, steps, strict=True) if step]
            )
            near = [
                (step, dim)
                for dim, step in enumerate(steps)
                if 0 < step < LINE_NBYTES and extents[dim] > 1
            ]
            if near and nbytes >= least:
                found[min(near)[1]] += 1
    return found.most_common(1)[0][0] if found else None


def apart(kernel: Kernel, traits: DeviceTraits) -> list[list[int]] | None:
    """The numbers of the stores that are better made by two kernels: those that go across the rows
    of some array, and those that do not; None where they read something together, or are few.

    An array that is read along its rows and across them comes from memory twice, in one kernel or
    in two, and in blocks everything takes narrow vectors: ``b += a.T; a += 1`` took 1.06 to 1.14
    times as long in one (2896 x 2896, both runtimes of an EPYC).
    """
    if traits.schedule != "cpu" or kernel.then or len(kernel.extents) == 1:
        return None
    if len(kernel.stores) == 1:
        return None
    size = math.prod(kernel.extents)
    if size * sum([store.dtype.itemsize for store in kernel.stores]) < CACHED_NBYTES:
        return None
    loads = [_loads_of(kernel, store) for store in kernel.stores]
    across = [
        any(
            abs(strides[-1]) * nbytes >= LINE_NBYTES and 1 in strides
            for _, strides, nbytes in each
        )
        for each in loads
    ]
    groups = [
        [number for number, is_across in enumerate(across) if is_across == which]
        for which in (True, False)
    ]
    read = [set().union(*[loads[number] for number in group]) for group in groups]
    return groups if all(read) and read[0].isdisjoint(read[1]) else None


def _loads_of(kernel: Kernel, store: Store) -> set[tuple[int, tuple[int, ...], int]]:
    """What a store needs from memory: values, how they are gone through, bytes of an element."""
    return {
        (item.value, item.access.strides, item.dtype.itemsize)
        for item in needed_items(kernel.body, {store.var})
        if isinstance(item, Load) and item.position is None
    }


def turn(kernel: Kernel, lane_nbytes: int, moved_nbytes: int) -> None:
    """Mark the loads whose vectors run down the rows of a tile in memory, and give the kernel
    blocks for them: the dimension of the rows is the last but one, that of the lanes the last."""
    down, along = len(kernel.extents) - 2, len(kernel.extents) - 1
    lanes = min(BLOCK_NBYTES // max(1, lane_nbytes), kernel.width)
    if kernel.where or kernel.then or kernel.seams(along) or lanes < 2:
        return
    stays = moved_nbytes <= CACHED_NBYTES
    if lane_nbytes > (MOST_ASTRIDE_CACHED if stays else MOST_ASTRIDE) and any(
        place % lanes for store in kernel.stores
        for place in (store.access.offset, *store.access.strides[:-1])
    ):
        return
    for place, item in enumerate(kernel.body):
        if not isinstance(item, Load) or item.position is not None or item.access.within:
            continue
        if item.dtype.kind == "c":
            continue
        strides = item.access.strides
        is_far = abs(strides[along]) * item.dtype.itemsize >= LINE_NBYTES
        if is_far and strides[down] == 1 and all(dim != down for dim, _, _ in item.access.jumps):
            kernel.body[place] = replace(item, turned=True)
            kernel.block = lanes


def most_rows(kernel: Kernel) -> int:
    """Of a tile of this kernel."""
    return MOST_BLOCK_ROWS if kernel.block else MOST_ROWS


def rows_of(rows: int, pieces: int, items: int, most: int) -> int:
    """How many rows a tile has, of so many with so many pieces each, for `items` work-items; at
    most so many.

    >>> rows_of(2896, 6, 64, 128), rows_of(2896, 6, 256, 128)
    (128, 64)
    """
    tall = most
    while tall > LEAST_ROWS and -(-rows // tall) * pieces < items:
        tall //= 2
    return tall
