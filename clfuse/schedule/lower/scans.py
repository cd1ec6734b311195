"""Scans on a device: along their rows or across them, whole or in pieces.

    fold the pieces      s0 = x0+..+x3     s1 = x4+..+x7     ...       one read
    scan each of them    x0, x0+x1, ..     s0+x4, ..         ...       one read, one write

Rows enough for every work-item are scanned in one pass, and long rows on a GPU whose groups look
back at each other (`scan_tiles`). Producers are computed in both passes, or
where that moves more, the first stores them where the second writes its results.

Pieces and lanes regroup what is folded, which changes the rounding of sums of floats. The scans
that `kinds.is_sequential` names keep NumPy's order on a CPU: every row is one walk. On a GPU
`rewrite.scaled_scans` has made others of them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from clfuse.schedule import cost
from clfuse.schedule.dataflow import needed_items, prefixes
from clfuse.schedule.kinds import REDUCE, is_sequential
from clfuse.schedule.records import (
    Access,
    Accumulator,
    Cut,
    Kernel,
    Load,
    Prefix,
    Store,
)
from clfuse.schedule.shape import geometry as g
from clfuse.schedule.shape.strips import lay_strips
from clfuse.schedule.shape.vector_axis import suits_vectors
from clfuse.target.traits import DeviceTraits

from .emission import Registers, ValueTable
from .scan_tiles import lay_tiles, look_back

LEAST_OF_COLUMN: Final = 16
"""Elements of a piece of a column at least: its fold is stored, and loaded by those after it."""

FEW_COLUMNS: Final = 1 << 13
"""Columns up to which a GPU scans products of floats tile by tile, though neighbours lie apart: it
has more work-items for that than columns."""

MIN_COLUMNS: Final = 4
"""Columns that are scanned side by side: along rows that lie apart, lanes are loaded one by one."""


def finish_scan(
    kernel: Kernel, traits: DeviceTraits, values: ValueTable, *, registers: Registers
) -> list[Kernel]:
    """Fix the geometry of a scan; one with few rows becomes two kernels."""
    kernel = g.merge_dimensions(kernel)
    kernel.schedule = traits.schedule
    kernel.wide_index = g.needs_wide_index(kernel, traits)
    scans = prefixes(kernel.body)
    sequential = is_sequential(scans[0].name, scans[0].dtype)  # they share a kernel by that
    if sequential and len(kernel.extents) == 1:
        kernel = _with_row(kernel)
    axis = len(kernel.extents) - 1
    # What comes before matters as a whole: pieces that are folded in any order do not tell it.
    whole = any(scan.name == "multiply_scaled" for scan in scans)
    along = _lanes_along(kernel, traits, sequential)
    if whole and math.prod(kernel.extents[:axis]) < FEW_COLUMNS:
        along = axis
    if along < axis:
        kernel = g.last(kernel, along)
    kernel.vector = axis if along == axis else axis - 1
    extent = kernel.extents[kernel.vector]
    kernel.width = 1 if traits.schedule == "gpu" else g.width_for(kernel, traits, extent)
    groups = math.prod(kernel.extents[:axis])
    length = kernel.extents[axis]
    tile = 1
    if traits.schedule == "gpu":
        kernel.work_group = traits.work_group
        if along == axis:
            tile = lay_tiles(kernel, scans, traits)
    if traits.schedule == "cpu" and along < axis:
        groups, split = lay_strips(
            kernel, traits, length, splits=not sequential, folds=3 * len(scans)
        )
    elif along < axis:
        split = 1 if sequential or whole else _pieces_of_columns(traits, groups, length)
    else:
        split = 1 if sequential else g.pieces_of(kernel, traits, groups, length)
        if whole and not traits.groups_progress:
            split = 1
    unroll = 4 if traits.schedule == "cpu" and along == axis else 1
    if tile > 1 and traits.groups_progress and split > 1 and along == axis and length > tile:
        return look_back(kernel, scans, traits, values, tile)
    piece = -(-length // split)
    if along == axis:
        piece = g.round_up(piece, kernel.width * unroll)
    # Along a row one by one up to where the result is aligned; strips of columns have no such way.
    kernel.streams = (
        along == axis or g.rows_are_aligned(kernel, kernel)
    ) and g.should_stream(kernel, traits)
    if piece >= length:
        g.count_items(kernel, traits, groups, length)
        return [kernel]
    kernel.chunk, kernel.chunks, kernel.chunk_length = axis, -(-length // piece), piece
    if along < axis:
        kernel.partials = (kernel.chunks * extent, 0)
    first = _folds_of_pieces(kernel, scans, values, unroll)
    partials = {fold.var: fold.partial for fold in first.accumulators}
    for body in kernel.phases:
        body.body = [
            replace(item, partial=partials[item.var]) if isinstance(item, Prefix) else item
            for item in body.body
        ]
    if not kernel.where:  # else the first pass would have to write what was written before, too
        _store_costly_operand(first, kernel, scans, traits, values)
    for launch in (first, kernel):
        g.count_items(launch, traits, groups, length)
    first.compensated = g.is_long(first, piece)
    return [first, kernel]


def _pieces_of_columns(traits: DeviceTraits, columns: int, length: int) -> int:
    """Into how many pieces a GPU's columns are split, each of which is a work-item.

    A work-item folds what the pieces before its own have left: no more of them than a piece is
    long.
    """
    if columns * 2 > traits.work_items:
        return 1
    wanted = -(-traits.work_items // max(columns, 1))
    return max(1, min(wanted, math.isqrt(length), length // LEAST_OF_COLUMN))


def _lanes_along(kernel: Kernel, traits: DeviceTraits, sequential: bool) -> int:
    """The dimension that suits vectors best, of those that the lanes may run along."""
    lanes = max(1, traits.vector_bytes // max(1, g.lane_nbytes(kernel) or 64))
    if traits.schedule == "cpu":
        lanes = min(lanes, MIN_COLUMNS)
    axis = len(kernel.extents) - 1
    candidates = range(axis if sequential else axis + 1)
    return max(candidates, key=lambda dim: (suits_vectors(kernel, dim, lanes), dim))


def _with_row(kernel: Kernel) -> Kernel:
    """The same kernel with one row more, which the lanes may run across."""
    return replace(
        kernel,
        extents=(1, *kernel.extents),
        where=tuple([((0, 1), *box) for box in kernel.where]),
        body=g.with_accesses(
            kernel.body, lambda access: Access(access.offset, (0, *access.strides))
        ),
        stores=[
            replace(store, access=Access(store.access.offset, (0, *store.access.strides)))
            for store in kernel.stores
        ],
        then=[_with_row(body) for body in kernel.then],
    )


def _folds_of_pieces(
    kernel: Kernel, scans: list[Prefix], values: ValueTable, unroll: int
) -> Kernel:
    """The first pass: every piece of every row folded, into values of their own."""
    rows = math.prod(kernel.extents[:-1])
    accumulators = []
    for scan in scans:
        # Halves are folded as floats, as everywhere.
        nbytes = 4 if scan.dtype.char == "e" else scan.dtype.itemsize
        partial = values.temporary(
            rows * kernel.chunks * nbytes,
            f"{scan.name} of pieces",
            f"a scan in {kernel.chunks} pieces, for {rows} rows are too few work-items",
        )
        accumulators.append(
            Accumulator(scan.var, scan.name, scan.operand, scan.dtype, partial=partial)
        )
    first, *others = [_folds_of(body, accumulators) for body in kernel.phases]
    return replace(
        first,
        then=others,
        unroll=unroll if len(scans) <= 4 else 1,
        label=f"{kernel.label}_pieces",
    )


def _folds_of(body: Kernel, accumulators: list[Accumulator]) -> Kernel:
    """What one body of a scan folds into these accumulators, if it scans at all."""
    operands = {item.var: item.operand for item in prefixes(body.body)}
    return replace(
        body,
        kind=REDUCE,
        body=needed_items(body.body, set(operands.values())),
        stores=[],
        streams=False,
        then=[],
        accumulators=[
            replace(fold, operand=operands[fold.var])
            for fold in accumulators if fold.var in operands
        ],
    )


def _store_costly_operand(
    first: Kernel,
    second: Kernel,
    scans: list[Prefix],
    traits: DeviceTraits,
    values: ValueTable,
) -> None:
    """Let the first pass store what is scanned, if computing it twice costs more.

    It goes where the second pass writes the result, which must read nothing else then: the result
    may lie in the bytes of an input.
    """
    (scan, *more) = scans
    targets = [store for store in second.stores if store.var == scan.var]
    weight = cost.weight_of(first.body)
    loads = {item.value: item.dtype.itemsize for item in first.body if isinstance(item, Load)}
    costs = weight, sum(loads.values()), scan.dtype.itemsize
    model = cost.Cost(traits)
    if more or not targets or not model.stores(*costs):
        return
    target = targets[0]
    if target.dtype != scan.dtype:
        return
    body = [
        Load(item.var, target.value, target.dtype, target.access)
        if item.var == scan.operand
        else item
        for item in second.body
    ]
    body = needed_items(body, {store.var for store in second.stores})
    if sum(isinstance(item, Load) for item in body) > 1:
        return
    values.cuts.append(
        Cut(
            f"what {scan.name} accumulates",
            f"stored where the result goes: {model.reason(*costs)}",
            math.prod(second.extents) * scan.dtype.itemsize,
        )
    )
    first.stores = [Store(scan.operand, scan.dtype, target.value, target.dtype, target.access)]
    second.body = body
