"""Strips: how a CPU walks down columns, several vectors side by side.

    row 0     | v0 | v1 | v2 | v3 |        a unit: `strips` vectors side by side, and the rows of
    row 1     | v0 | v1 | v2 | v3 |        one piece; it reads whole cache lines, row after row
    ...         |    |    |    |
              accumulators, an array of them in the first-level cache

One vector at a time reads a line of a page and leaves for the next page: of (2000, 4000) float32 it
gets 7 GB/s, eight side by side get 45, a contiguous sum 55.

Narrow arrays are folded as wider ones: of (1000000, 8) the first stage makes 64 columns of 125,000
rows, the second folds what belongs together.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from clfuse.schedule import cost
from clfuse.schedule.records import Access, Accumulator, Carried, Kernel
from clfuse.target.traits import REREAD_NBYTES, WHOLE_NBYTES, DeviceTraits

from . import geometry as g
from .vector_axis import accesses

ACCUMULATORS_NBYTES: Final = 1 << 14
"""Accumulators of a unit, all together: they share the first-level cache with what is read."""

ROW_NBYTES: Final = 1 << 12
"""Bytes of a row that a unit takes: longer runs do not come faster (measured)."""

MIN_STRIPS: Final = 8
"""Vectors side by side that a row program or a whole scan should have. Where a unit has fewer,
reading whole rows in pieces is faster, even if a scan then reads everything twice."""

MIN_UNSPLIT_STRIPS: Final = 2
"""So many will do for few elements: splitting them would cost a launch."""

MIN_SPLIT_ELEMENTS: Final = 1 << 20
"""Fewer elements are few in this sense."""

UNITS_PER_UNIT: Final = 4
"""Units of work for every compute unit that even out what one of them takes longer."""

MIN_WIDE_STRIPS: Final = 4
"""Arrays of fewer vectors a row are folded as wider ones."""

MAX_EVEN_STRIPS: Final = 8
"""So many vectors side by side have their accumulators in registers, if no unit has fewer or single
columns; an array of them costs a load and a store for every addition."""

MAX_UNEVEN_STRIPS: Final = 16
"""So are those of fewer vectors than this, where a rest of single columns is left over."""


def compensates(accumulator: Accumulator) -> bool:
    """Whether a fold keeps a total and its error."""
    return accumulator.name == "add" and accumulator.dtype.kind in "fc"


def carried_registers(kernel: Kernel) -> set[int]:
    """Registers that later phases of a row program want to know."""
    return {
        item.source
        for phase in kernel.phases
        for item in phase.body + phase.epilogue
        if isinstance(item, Carried)
    }


def _held(kernel: Kernel, folds: int) -> int:
    """Vectors side by side for which there is room: a power of two."""
    strip_nbytes = kernel.width * g.element_nbytes(kernel)
    arrays = folds + len(carried_registers(kernel))
    for phase in kernel.passes:
        for accumulator in phase.accumulators:
            arrays += 3 if compensates(accumulator) else 1
            arrays += accumulator.position is not None
    most = min(ACCUMULATORS_NBYTES // max(arrays, 1), ROW_NBYTES) // strip_nbytes
    return 1 << (max(most, 1).bit_length() - 1)


def lay_strips(
    kernel: Kernel, traits: DeviceTraits, length: int, *, splits: bool, folds: int = 0
) -> tuple[int, int]:
    """Fix how many vectors a unit takes side by side; returns (units, pieces of each).

    `splits` says whether few columns may be split into pieces of their rows. `folds` are arrays
    of vectors that the kernel needs beside its accumulators.
    """
    kept = len(kernel.extents) - kernel.reduced
    outer = math.prod(kernel.extents[: kept - 1])
    vectors = max(1, -(-kernel.extents[kept - 1] // kernel.width))
    kernel.held = limit = _held(kernel, folds)
    if len(kernel.passes) > 1:
        row_nbytes = kernel.width * g.element_nbytes(kernel)
        if vectors * row_nbytes <= WHOLE_NBYTES:
            kernel.held = limit = max(limit, vectors)
        limit = max(1, min(limit, REREAD_NBYTES // max(length * row_nbytes, 1)))
    wanted = UNITS_PER_UNIT * traits.compute_units
    most = vectors * outer // max(wanted, 1)
    enough = MIN_STRIPS if kernel.kind.scans else limit
    if math.prod(kernel.extents) < MIN_SPLIT_ELEMENTS:
        enough = MIN_UNSPLIT_STRIPS
    few = splits and most < min(enough, limit)
    if few:
        strips = limit  # whole rows, in pieces
    else:
        strips = max(1, min(limit, most))
    groups = -(-vectors // strips)
    kernel.strips = -(-vectors // groups)
    tile = kernel.strips * kernel.width
    kernel.even = (
        kernel.kind.folds
        and not kernel.where
        and kernel.width > 1
        and kernel.strips <= MAX_EVEN_STRIPS
        and kernel.extents[kept - 1] % tile == 0
    )
    if kernel.even:
        kernel.held = kernel.strips
    units = outer * -(-vectors // kernel.strips)
    return units, g.pieces_of(kernel, traits, units, length) if few else 1


def independent_units(kernel: Kernel, traits: DeviceTraits) -> int:
    """Rows of a row program that can run side by side; of columns, strips that stay in the cache.

    Strips are as wide as reads well; 0 where one is too long for the cache then.
    """
    kernel = g.orient_reduction(g.merge_dimensions(kernel), traits)
    kept = len(kernel.extents) - kernel.reduced
    rows = math.prod(kernel.extents[:kept])
    if kernel.vector >= kept or traits.schedule == "gpu":
        return rows
    extent = kernel.extents[kernel.vector]
    width = g.width_for(kernel, traits, extent)
    strips = min(MIN_STRIPS, -(-extent // width))
    nbytes = strips * width * g.element_nbytes(kernel)
    if math.prod(kernel.extents[kept:]) * nbytes > REREAD_NBYTES:
        return 0
    return rows // (strips * width)


def widened(kernel: Kernel, traits: DeviceTraits) -> tuple[Kernel, Kernel | None, int] | None:
    """A narrow reduction as one of rows side by side.

    Returns (the kernel over rows that are some in one, the kernel for the rows that are left, how
    many make one), or None where the rows do not lie side by side or are long enough. Both have
    their columns as the last kept dimension.
    """
    lane_nbytes = g.lane_nbytes(kernel)
    kept = len(kernel.extents) - kernel.reduced
    if any(access.seams for access in accesses(kernel)):
        return None
    if kernel.then or not kept or lane_nbytes == 0 or traits.schedule != "cpu":
        return None
    if math.prod(kernel.extents) < cost.min_elements_per_piece(traits):
        return None
    lanes = min(g.MAX_LANES, max(1, traits.vector_bytes // lane_nbytes))
    strides = {access.strides for access in accesses(kernel)}
    for down in range(kept, len(kernel.extents)):
        for along in range(kept):
            columns, rows = kernel.extents[along], kernel.extents[down]
            beside = all(one[down] == columns * one[along] for one in strides)
            if not beside or not any(abs(one[along]) == 1 for one in strides):
                continue
            even = columns % lanes == 0 or columns >= MAX_UNEVEN_STRIPS * lanes
            if even and columns >= MIN_WIDE_STRIPS * lanes:
                return None
            together = lanes // math.gcd(columns, lanes)
            while columns * together < MIN_WIDE_STRIPS * lanes:
                together *= 2
            if rows < 4 * together:
                return None
            return (*_side_by_side(g.last(kernel, along), down, together), together)
    return None


def _side_by_side(kernel: Kernel, down: int, together: int) -> tuple[Kernel, Kernel | None]:
    along = len(kernel.extents) - kernel.reduced - 1
    columns, rows = kernel.extents[along], kernel.extents[down]
    whole, rest = divmod(rows, together)

    def over(columns: int, rows: int, step: int, start: int) -> Kernel:
        extents = list(kernel.extents)
        extents[along], extents[down] = columns, rows

        def moved(access: Access) -> Access:
            strides = list(access.strides)
            offset = access.offset + start * strides[down]
            strides[down] *= step
            return Access(offset, tuple(strides))

        return replace(
            kernel,
            extents=tuple(extents),
            vector=along,
            body=g.with_accesses(kernel.body, moved),
            stores=[replace(store, access=moved(store.access)) for store in kernel.stores],
        )

    wide = over(columns * together, whole, together, 0)
    return wide, over(columns, rest, 1, whole * together) if rest else None
