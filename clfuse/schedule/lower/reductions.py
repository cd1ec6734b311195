"""Reductions on a device: along their rows or across them, whole or in pieces.

A reduction with few results is split into pieces, whose partial results a second kernel folds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np

from clfuse.ir.layout import contiguous_strides
from clfuse.schedule.kinds import REDUCE
from clfuse.schedule.records import Access, Accumulator, Item, Kernel, Launch, Load, Step
from clfuse.schedule.shape import geometry as g
from clfuse.schedule.shape.groups import count_groups, is_sum, lay_groups
from clfuse.schedule.shape.strips import lay_strips, widened
from clfuse.schedule.shape.unroll2 import waits_long
from clfuse.target.traits import DeviceTraits

from .emission import Registers, ValueTable

LEAST_CUT: Final = 4
"""Indices of a dimension for every piece that it is cut into: of fewer, some pieces are much longer
than others."""


FOLDED_MEANWHILE: Final = 1 << 16
"""Elements that one core has folded before the work-items of another launch would have begun."""


def finish_reduction(
    kernel: Kernel, traits: DeviceTraits, values: ValueTable, registers: Registers
) -> list[Kernel]:
    """Fix the geometry of `kernel`; one with few results becomes two kernels.

    `registers` are its own, for what the second kernel loads.
    """
    kernel = g.begin(kernel, traits)
    wide = widened(kernel, traits)
    if wide is not None:
        kernel, rest, together = wide
        groups, length, split = _lay(kernel, traits, splits=True)
        return _stages_of_columns(kernel, rest, together, split, groups, traits, values, registers)
    kernel = g.orient_reduction(kernel, traits)
    groups, length, split = _lay(kernel, traits, splits=len(kernel.passes) == 1)
    if split <= 1 and not kernel.kept:
        _whole(kernel, traits, groups, length)
        return [kernel]
    if kernel.vector < _kept(kernel):
        return _stages_of_columns(kernel, None, 1, split, groups, traits, values, registers)
    return _stages_of_rows(kernel, split, groups, traits, values, registers)


def join_folds(launches: Sequence[Launch]) -> None:
    """See to it that what a reduction leaves is folded further in its launch, where one work-item
    does that, or would be done before others had begun: pieces, or results of rows.

    On CPUs: there a launch takes 30 to 60 us, and work-items are few. On a GPU launches follow each
    other closely, and the fold keeps a work-group busy.
    """
    written: set[int | None] = set()
    for before, launch in pairwise(launches):
        if not isinstance(launch, Kernel) or not isinstance(before, Kernel):
            continue
        if not before.follows:
            written = set()
        written |= _written_by(before)
        folds_further = launch.kind.folds and before.kind.folds and not written.isdisjoint(
            _read_by(launch)
        )
        is_small = math.prod(launch.extents) <= FOLDED_MEANWHILE
        if folds_further and is_small:
            for phase in launch.phases:
                phase.compensated = phase.compensated or _adds_up(phase)
        can_follow = folds_further and launch.schedule == before.schedule == "cpu"
        if can_follow and is_small:
            launch.work_items = 1
        launch.follows = can_follow and launch.work_items == 1


def _written_by(kernel: Kernel) -> set[int | None]:
    values: set[int | None] = set()
    for phase in kernel.phases:
        values |= {store.value for store in [*phase.stores, *phase.results]}
        for accumulator in phase.accumulators:
            values |= {accumulator.partial, accumulator.partial_position}
    return values - {None}


def _read_by(kernel: Kernel) -> set[int | None]:
    values: set[int | None] = set()
    for phase in kernel.phases:
        loads = [item for item in [*phase.body, *phase.epilogue] if isinstance(item, Load)]
        values |= {load.value for load in loads}
        values |= {accumulator.partial for accumulator in phase.accumulators}
    return values


def _kept(kernel: Kernel) -> int:
    return len(kernel.extents) - kernel.reduced


def _lay(kernel: Kernel, traits: DeviceTraits, *, splits: bool) -> tuple[int, int, int]:
    """Fix width, unrolling or strips, and work-groups.

    Returns (units, elements folded into one result, pieces of each); a unit is a row, or some
    columns.
    """
    kept = _kept(kernel)
    rows, length = math.prod(kernel.extents[:kept]), math.prod(kernel.extents[kept:])
    if traits.schedule == "gpu":
        return lay_groups(kernel, traits, splits=splits)
    kernel.width = g.width_for(kernel, traits, kernel.extents[kernel.vector])
    if kernel.vector < kept:
        units, pieces = lay_strips(kernel, traits, length, splits=splits)
        return units, length, pieces
    for phase in kernel.phases:
        phase.unroll = _unroll(phase, traits)
    return rows, length, g.pieces_of(kernel, traits, rows, length) if splits else 1


def _whole(kernel: Kernel, traits: DeviceTraits, groups: int, length: int) -> None:
    """Fix the rest for a kernel that is not split."""
    _count_items(kernel, traits, groups, length)
    for phase in kernel.phases:
        phase.schedule, phase.vector, phase.width = traits.schedule, kernel.vector, kernel.width
        phase.wide_index, phase.work_group = kernel.wide_index, kernel.work_group
        phase.strips, phase.held = kernel.strips, kernel.held
        phase.fold_items = kernel.fold_items
        phase.compensated = g.is_long(phase, length, passes=len(kernel.passes))
        phase.streams = _streams(phase, kernel, traits)


def _streams(phase: Kernel, kernel: Kernel, traits: DeviceTraits) -> bool:
    """Whether what a phase stores goes past the caches: along rows one by one up to where it is
    aligned; strips of columns have no such way."""
    stored = [part for part in (phase.phases if phase.where else [phase]) if part.stores]
    along_rows = kernel.vector >= _kept(kernel)
    are_aligned = along_rows or all(g.rows_are_aligned(kernel, part) for part in stored)
    return bool(stored) and are_aligned and g.should_stream(kernel, traits)


def _unroll(phase: Kernel, traits: DeviceTraits) -> int:
    """Independent accumulators of each fold, to hide the latency of an addition."""
    steps = sum(isinstance(item, Step) for item in phase.body)
    if not phase.accumulators or len(phase.accumulators) > 4:
        return 1
    if steps <= 6:
        return 4
    return 2 if steps <= 20 or waits_long(phase, traits) else 1


def _count_items(kernel: Kernel, traits: DeviceTraits, groups: int, length: int) -> None:
    """Fix the work-items of a kernel whose pieces are fixed."""
    if traits.schedule == "gpu":
        kernel.work_items = min(max(count_groups(kernel), 1), g.MOST_GROUPS) * kernel.work_group
    else:
        g.count_items(kernel, traits, groups, length)


def _stages_of_rows(
    kernel: Kernel,
    split: int,
    groups: int,
    traits: DeviceTraits,
    values: ValueTable,
    registers: Registers,
) -> list[Kernel]:
    """Pieces of rows first, their partial results after."""
    kept = _kept(kernel)
    piece = _cut(kernel, split)
    pieces = kernel.chunks
    rows = math.prod(kernel.extents[:kept])
    length = math.prod(kernel.extents[kept:])
    strides = contiguous_strides((*kernel.extents[:kept], pieces))
    folding = _second(kernel, pieces, rows * pieces, strides, values, registers)
    _count_items(kernel, traits, groups, length)
    kernel.streams = _streams(kernel, kernel, traits)
    kernel.compensated = g.is_long(kernel, length // kernel.extents[kernel.chunk] * piece)
    folding.vector = kept
    if traits.schedule == "gpu":
        lay_groups(folding, traits, splits=False)
    _count_items(folding, traits, rows, pieces)
    folding.compensated = _adds_up(folding)
    return [kernel, folding]


def _adds_up(folding: Kernel) -> bool:
    """Whether partial sums are added, each of which has a large part of the result: every addition
    rounds as much as the whole sum may lose, so all of them are compensated."""
    return any(map(is_sum, folding.accumulators))


def _cut(kernel: Kernel, split: int) -> int:
    """Cut a folded dimension into about `split` pieces; returns the length of one.

    The first one that is long enough: a piece is then what lies together. Else the longest.
    """
    reduced = range(_kept(kernel), len(kernel.extents))
    long = [dim for dim in reduced if kernel.extents[dim] >= LEAST_CUT * split]
    dim = long[0] if long else max(reduced, key=lambda dim: (kernel.extents[dim], dim))
    piece = -(-kernel.extents[dim] // split)
    if dim == kernel.vector:
        piece = g.round_up(piece, kernel.width * kernel.unroll)
    kernel.chunk, kernel.chunk_length = dim, piece
    kernel.chunks = -(-kernel.extents[dim] // piece)
    return piece


def _second(
    kernel: Kernel,
    pieces: int,
    count: int,
    strides: tuple[int, ...],
    values: ValueTable,
    registers: Registers,
    extents: tuple[int, ...] = (),
) -> Kernel:
    """The kernel that folds `pieces` partial results of `kernel`, which loses its epilogue to it.

    There are results for each index of the kept dimensions, or of what is kept of them, or of
    `extents`; `count` partial results are stored, which lie `strides` apart.
    """
    kept = kernel.kept or [(0, extent) for extent in extents or kernel.extents[: _kept(kernel)]]
    starts = [low * stride for (low, _), stride in zip(kept, strides, strict=False)]
    access = Access(sum(starts), strides)
    first: list[Accumulator] = []
    body: list[Item] = []
    second: list[Accumulator] = []
    for accumulator in kernel.accumulators:
        # Halves are folded as floats, and a piece's result must not lose what the next fold needs.
        stored = accumulator.dtype
        if stored.char == "e":
            stored = np.dtype(np.float32)
        why = f"a fold in {pieces} pieces: whole, it would not occupy the device"
        what = f"{accumulator.name} of pieces"
        partial = values.temporary(count * stored.itemsize, what, why)
        position = None
        load = registers.new()
        body.append(Load(load, partial, stored, access))
        load_position = None
        if accumulator.position is not None:
            position = values.temporary(count * 8, f"positions of {what}", why)
            load_position = registers.new()
            body.append(Load(load_position, position, np.dtype(np.int64), access))
        first.append(replace(accumulator, partial=partial, partial_position=position))
        second.append(replace(accumulator, operand=load, position=load_position, dtype=stored))
    folding = Kernel(
        REDUCE,
        (*[high - low for low, high in kept], pieces),
        body,
        [],
        1,
        second,
        kernel.epilogue,
        kernel.results,
        schedule=kernel.schedule,
        wide_index=kernel.wide_index,
        work_group=kernel.work_group,
        label=f"{kernel.label}_pieces",
    )
    kernel.accumulators = first
    kernel.epilogue = []
    kernel.results = []
    kernel.kept = ()
    return folding


def _stages_of_columns(
    kernel: Kernel,
    rest: Kernel | None,
    together: int,
    split: int,
    groups: int,
    traits: DeviceTraits,
    values: ValueTable,
    registers: Registers,
) -> list[Kernel]:
    """Pieces of columns first, `rest` as one piece more, their partial results after.

    Of the columns of `kernel`, `together` are one result's.
    """
    kept = _kept(kernel)
    *outer, wide = kernel.extents[:kept]
    columns = wide // together
    length = math.prod(kernel.extents[kept:])
    piece = _cut(kernel, split)
    pieces = kernel.chunks * together + (rest is not None)
    pitch = pieces * columns
    strides = [stride * pitch for stride in contiguous_strides(tuple(outer))]
    count = math.prod(outer) * pitch
    folding = _second(
        kernel, pieces, count, (*strides, 1, columns), values, registers, (*outer, columns)
    )
    kernel.partials = (pitch, 0)
    _count_items(kernel, traits, groups, length)
    kernel.streams = _streams(kernel, kernel, traits)
    kernel.compensated = g.is_long(kernel, length // kernel.extents[kernel.chunk] * piece)
    launches = [kernel]
    if rest is not None:
        rest.accumulators, rest.epilogue, rest.results = kernel.accumulators, [], []
        rest.partials = (pitch, kernel.chunks * wide)
        rest.chunk, rest.chunks, rest.chunk_length = kernel.chunk, 1, rest.extents[kernel.chunk]
        groups, length, _ = _lay(rest, traits, splits=False)
        _whole(rest, traits, groups, length)
        launches.append(rest)
    folding.vector = kept - 1
    groups, length, _ = _lay(folding, traits, splits=False)
    _whole(folding, traits, groups, length)
    folding.compensated = _adds_up(folding)
    return [*launches, folding]
