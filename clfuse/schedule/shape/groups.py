"""Work-groups of reductions on a GPU: how many work-items fold one result together.

    along rows       a result's work-items are neighbours; a group has several short rows
    down columns     neighbours have neighbouring columns, and take every so many-th row

What they fold is put together in local memory. A fold with few results is split into pieces as
well.
"""

from __future__ import annotations

import math
from typing import Final

from clfuse.dtypes import register_nbytes
from clfuse.schedule.records import Accumulator, Kernel
from clfuse.target.traits import DeviceTraits

from .geometry import element_nbytes, pieces_of

ITEM_ELEMENTS: Final = 8
"""Elements of a row that a work-item folds where the row is short: their loads wait together."""

COLUMN_ELEMENTS: Final = 4
"""The same of a column at least, before work-items share it."""

PIECE_ELEMENTS: Final = 8
"""Rows of a piece for each of its work-items at least: so much less is stored than is read."""

ENOUGH_PART: Final = 4
"""A quarter of the work-items of a large launch keeps a device busy that folds columns. An H100
took .114 ms for column sums of (64000, 1000) float32 with 128 to 256 pieces, .8 with 5."""

SECTOR_NBYTES: Final = 32
"""What a GPU's memory hands out at once: neighbours in a row take as much of it, at least."""

MOST_HELD: Final = 32
"""Elements of a result that a work-item of a row program has in registers at most: so many copies
of the phases' bodies are written out."""

USUALLY_HELD: Final = 16
"""So many it has of a column, where work-items enough share it."""

HALVED_NBYTES: Final = 4
"""Bytes of an element up to which twice as many fit in the registers of a work-item: softmax of
(64000, 1000) float32 has 64 registers then (ptxas for sm_90), and 46 instructions an element where
it had 60."""

WARP: Final = 32
"""Work-items that run together."""

COLUMN_LANES: Final = 32
"""Columns side by side where there is a choice: the lanes of a warp."""


def folding_items(kernel: Kernel) -> int:
    """Work-items of a group that fold one result together."""
    if kernel.fold_items:
        return kernel.fold_items
    return kernel.work_group if runs_along_rows(kernel) else 1


def runs_along_rows(kernel: Kernel) -> bool:
    """Whether neighbours take elements of one result, and not of neighbouring ones."""
    return kernel.vector >= len(kernel.extents) - kernel.reduced


def lay_groups(kernel: Kernel, traits: DeviceTraits, *, splits: bool) -> tuple[int, int, int]:
    """Fix the work-groups of a reduction.

    Returns (results, elements folded into each, pieces of each): one piece unless it `splits`.
    """
    kept = len(kernel.extents) - kernel.reduced
    rows, length = math.prod(kernel.extents[:kept]), math.prod(kernel.extents[kept:])
    kernel.width = 1
    kernel.work_group = group_that_fits(kernel, traits)
    enough = max(1, traits.work_items // ENOUGH_PART)
    if runs_along_rows(kernel):
        kernel.fold_items = _items_of_row(kernel, rows, length, enough)
        return rows, length, pieces_of(kernel, traits, rows, length) if splits else 1
    kernel.fold_items = _items_of_column(kernel, -(-enough // max(rows, 1)), length, splits)
    if not splits:
        return rows, length, 1
    together = kernel.fold_items
    wanted = -(-enough // max(rows * together, 1))
    longest = max(kernel.extents[kept:], default=1)
    return rows, length, max(1, min(wanted, length // (together * PIECE_ELEMENTS), longest))


def count_groups(kernel: Kernel) -> int:
    """How many work-groups have something to do."""
    kept = len(kernel.extents) - kernel.reduced
    beside = kernel.work_group // folding_items(kernel)
    if runs_along_rows(kernel):
        return -(-math.prod(kernel.extents[:kept]) * kernel.chunks // beside)
    *outer, columns = kernel.extents[:kept]
    return math.prod(outer) * kernel.chunks * -(-columns // beside)


def group_that_fits(kernel: Kernel, traits: DeviceTraits) -> int:
    """Work-items of a group whose folds fit into local memory together."""
    each = sum(
        register_nbytes(accumulator.dtype)
        * (4 if accumulator.dtype.kind == "b" else 2 if is_sum(accumulator) else 1)
        + (8 if accumulator.position is not None else 0)
        for phase in kernel.passes
        for accumulator in phase.accumulators
    )
    group = traits.work_group
    while group > 1 and group * each > traits.local_nbytes:
        group //= 2
    return group


def is_sum(accumulator: Accumulator) -> bool:
    """Whether it may keep the errors of its additions."""
    return accumulator.name == "add" and accumulator.dtype.kind in "fc"


def _items_of_row(kernel: Kernel, rows: int, length: int, enough: int) -> int:
    """Work-items of a row: as many as leave each some elements, a sector's lanes at least.

    Of row programs half as many, where these are `enough` for the device: what a row's items tell
    each other costs less, and more of their loads wait together.
    """
    lanes = max(1, SECTOR_NBYTES // max(element_nbytes(kernel), 1))
    wanted = max(-(-length // ITEM_ELEMENTS), min(lanes, length), 1)
    items = min(_power_from(wanted), kernel.work_group)
    if len(kernel.passes) > 1 and element_nbytes(kernel) <= HALVED_NBYTES:
        fewer = _power_from(-(-length // (2 * ITEM_ELEMENTS)))
        if WARP <= fewer < items and rows * fewer >= enough:
            return fewer
    return items


def _items_of_column(kernel: Kernel, wanted: int, length: int, splits: bool) -> int:
    """Work-items of a column, of which `wanted` would be enough.

    What is not split may have fewer columns side by side, but whole sectors.
    """
    columns = kernel.extents[kernel.vector]
    beside = COLUMN_LANES if splits else max(1, SECTOR_NBYTES // max(element_nbytes(kernel), 1))
    deepest = max(1, kernel.work_group // min(_power_from(columns), beside))
    if len(kernel.passes) > 1:
        wanted = max(wanted, -(-length // USUALLY_HELD))
    needed = _power_from(wanted)
    while needed > 1 and needed * COLUMN_ELEMENTS > length:
        needed //= 2
    return max(1, min(needed, deepest))


def _power_from(count: int) -> int:
    """The least power of two from `count` up."""
    return 1 << max(count - 1, 0).bit_length()
