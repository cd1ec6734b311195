"""Which element-wise kernels go through their elements tile by tile; `plan.geometry` asks.

What a row of a transposed array needs lies in as many lines of memory as the row is long, and the
next rows need the same lines again: by then they are in no near cache. So such a kernel takes some
rows of a piece before it comes to the next piece:

    low .. low + 512       the next piece
    0   1   2   3          512 513 514 515
    4   5   6   7          516 517 ...
    ...

Measured on two cores of an EPYC (Zen 4), 64 MB of doubles, time of the cores by that of whole rows
(PoCL / Intel's runtime): ``a.T.copy()`` of 2896 x 2896 .47 / .50, ``a.T + b`` .66 / .67,
``b += a.T; a += 1`` .77 / .77; rows of 4096 .26 / .33, of 131072 .15. With pieces of 256 up to 1.4
times as long as with 512, with 16 more than whole rows; with 64 to 256 rows the same. A tile copied
to memory of its own first gained nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

from ..traits import DeviceTraits
from .schedule import Kernel, Load, Store

__all__ = ["LONGEST_PIECE", "beside", "rows_of"]

LONGEST_PIECE: Final = 512
"""Elements of a row in a tile."""

LONGEST_ROW: Final = 1024
"""Rows up to here are not cut: what their loads need is still in the second cache for the next row.
Tiles took 1.1 to 1.5 times as long for rows of 700 to 900 elements, as long for 1024 to 1200."""

MOST_ROWS, LEAST_ROWS = 128, 16
"""Of a tile: several times the elements of a line, or two lines' where the device has more to do at
once than there are tiles."""

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


def rows_of(rows: int, pieces: int, items: int) -> int:
    """How many rows a tile has, of so many with so many pieces each, for `items` work-items.

    >>> rows_of(2896, 6, 64), rows_of(2896, 6, 256)
    (128, 64)
    """
    tall = MOST_ROWS
    while tall > LEAST_ROWS and -(-rows // tall) * pieces < items:
        tall //= 2
    return tall
