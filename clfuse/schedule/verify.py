"""The verifier of finished schedules, for ``CLFUSE_DEBUG=1`` and tests.

It checks what would otherwise corrupt memory silently: every access stays inside its array, and
every load finds the value that it wants in the bytes that it reads (`hazards`). It also checks that
nothing goes through memory without a reason in the cuts.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from clfuse.ir.launch_nodes import ArrayParameter, ends_of

from .memory.buffers import writes_of
from .memory.hazards import Hazards
from .records import (
    Access,
    Copy,
    Index,
    Kernel,
    Launch,
    LibraryCall,
    Load,
    Pass,
    Schedule,
    Store,
    Tiling,
    UserLaunch,
)
from .shape.geometry import with_accesses


class PlanError(AssertionError):
    """A plan that breaks an invariant: an error of clfuse's, never of its user's."""


def verify(schedule: Schedule) -> None:
    """Raise PlanError unless the schedule can run.

    Raises PlanError: naming the launch, the value and the invariant.
    """
    hazards = Hazards(schedule, _fail)
    for position, launch in enumerate(schedule.launches):
        where = f"launch {position} ({launch.label if isinstance(launch, Kernel) else launch})"
        phases: list[Launch] = [launch]
        if isinstance(launch, Kernel) and not launch.where:  # sisters run side by side
            phases = [replace(phase, then=[]) for phase in launch.phases]
        for phase in phases:
            _check_bounds(phase, schedule, where)
        if isinstance(launch, Kernel) and launch.tiling is not None:
            _check_tiling(launch.tiling, where)
        hazards.run(launch, where)
    for node, value in schedule.keeps.items():
        hazards.check_whole(value, f"node {node}, after the plan,")
    _check_reasons(schedule)


def _fail(message: str) -> None:
    raise PlanError(message)


def _check_reasons(schedule: Schedule) -> None:
    """Whatever goes through memory was asked for, or there is a reason for it."""
    explained = {cut.node for cut in schedule.cuts} | {
        schedule.values[value].node for value in schedule.keeps.values()
    }
    for launch in schedule.launches:
        for value in writes_of(launch):
            node = schedule.values[value].node
            if node is not None and node not in explained:
                raise PlanError(f"value {value}, of node {node}, is stored without a reason")


def _check_bounds(launch: Launch, schedule: Schedule, where: str) -> None:
    if isinstance(launch, Copy):
        for value in (launch.source, launch.target):
            if schedule.values[value].nbytes < launch.nbytes:
                raise PlanError(f"{where} copies {launch.nbytes} bytes of a smaller value {value}")
        return
    if isinstance(launch, UserLaunch):
        _check_pointers(launch, schedule, where)
        return
    if isinstance(launch, Pass):
        if launch.call.operands[0].value in launch.reads:
            _check_bounds(launch.call, schedule, where)
        return
    if isinstance(launch, LibraryCall):
        for operand in launch.operands:
            _check_access(
                Access(operand.offset, operand.strides),
                operand.shape,
                schedule.values[operand.value].nbytes // operand.dtype.itemsize,
                f"{where}, operand {operand.value}",
            )
        if launch.epilogue is not None:
            body = [
                item
                for item in launch.epilogue.body
                if not isinstance(item, Load) or item.value != launch.target
            ]
            _check_bounds(replace(launch.epilogue, body=body), schedule, where)
        return
    if launch.where:
        for phase in launch.phases:
            for box in phase.where:
                _check_bounds(_only(replace(phase, then=[], where=()), box), schedule, where)
        return
    kept = launch.extents[: len(launch.extents) - launch.reduced]
    for items, extents in ((launch.body, launch.extents), (launch.epilogue, kept)):
        for item in items:
            if isinstance(item, Load):
                # Of a gather, the element for position 0; `functions.indexing.gathering` bounds
                # positions.
                _check_element(item, extents, schedule, where)
            elif isinstance(item, Index) and len(item.access.strides) != len(extents):
                raise PlanError(f"{where}: an index of another rank, {item}")
    for stores, extents in ((launch.stores, launch.extents), (launch.results, kept)):
        for store in stores:
            _check_element(store, extents, schedule, where)


def _check_tiling(tiling: Tiling, where: str) -> None:
    """Whether stages stay inside the local memory that a tile has for their values."""
    for stage in tiling.stages:
        touched = [
            (item.value, item.access)
            for item in [*stage.kernel.body, *stage.kernel.stores]
            if isinstance(item, Load | Store) and item.value in tiling.scratch
        ]
        reached = [
            (value, stage.starts[access], stage.low, stage.high) for value, access in touched
        ]
        still = (0,) * len(tiling.lengths)
        reached += [(each.value, still, each.low, each.high) for each in stage.inputs]
        reached += [(each.value, still, each.low, each.high) for each in stage.borders]
        for value, start, low, high in reached:
            scratch = tiling.scratch[value]
            first = last = 0
            for dim, stride in enumerate(scratch.strides):
                begin = start[dim] + low[dim] - scratch.low[dim]
                end = start[dim] + high[dim] - scratch.low[dim] + tiling.lengths[dim]
                room = scratch.strides[dim - 1] // stride if dim else end
                if begin < 0 or end > room:
                    raise PlanError(f"{where}: value {value} leaves its tile along axis {dim}")
                first += begin * stride
                last += (end - 1) * stride
            if first < 0 or last >= tiling.arrays[scratch.array][1]:
                raise PlanError(f"{where}: value {value} leaves its local memory")


def _check_pointers(launch: UserLaunch, schedule: Schedule, where: str) -> None:
    """Whether the views that a user's kernel gets lie in their base buffers."""
    arrays = [each for each in launch.spec.parameters if isinstance(each, ArrayParameter)]
    for parameter, column in zip(arrays, launch.round.offsets, strict=True):
        value = launch.buffers[parameter.slot]
        count = schedule.values[value].nbytes // parameter.dtype.itemsize
        for offset in ends_of(column, launch.round.count):
            access = Access(offset, parameter.strides)
            _check_access(access, parameter.shape, count, f"{where}, value {value}")


def _only(kernel: Kernel, box: tuple[tuple[int, int], ...]) -> Kernel:
    """The same kernel with its loads and stores limited to a box."""
    limits = tuple([(dim, low, high) for dim, (low, high) in enumerate(box)])

    def limited(access: Access) -> Access:
        return access._replace(within=(*access.within, *limits))

    return replace(
        kernel,
        body=with_accesses(kernel.body, limited),
        stores=[replace(store, access=limited(store.access)) for store in kernel.stores],
    )


def _check_element(
    item: Load | Store, extents: tuple[int, ...], schedule: Schedule, where: str
) -> None:
    count = schedule.values[item.value].nbytes // item.dtype.itemsize
    _check_access(item.access, extents, count, f"{where}, value {item.value}")


def _check_access(access: Access, extents: tuple[int, ...], count: int, where: str) -> None:
    if len(access.strides) != len(extents):
        raise PlanError(f"{where}: {access} has another rank than {extents}")
    if 0 in extents:
        return
    low = high = access.offset
    for dim, (stride, extent) in enumerate(zip(access.strides, extents, strict=True)):
        reached = _reached(access, dim, stride, extent)
        if not reached:
            return
        low, high = low + min(reached), high + max(reached)
    if low < 0 or high >= count:
        raise PlanError(f"{where}: elements {low} to {high} of {count}, {access} over {extents}")


def _reached(access: Access, dim: int, stride: int, extent: int) -> list[int]:
    """What dimension `dim` adds at the ends of every run between two seams; empty for none."""
    begin, end = 0, extent
    for where, first, stop in access.within:
        if where == dim:
            begin, end = max(begin, first), min(end, stop)
    jumps = [(first, by) for where, first, by in access.jumps if where == dim]
    edges = [begin, *sorted({first for first, _ in jumps if begin < first < end}), end]
    return [
        index * stride + sum([by for first, by in jumps if first <= index])
        for start, stop in pairwise(edges)
        if start < stop
        for index in (start, stop - 1)
    ]
