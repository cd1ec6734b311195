"""Checks a finished schedule: `evaluate` calls it with ``CLFUSE_DEBUG=1``, tests always.

What is checked is what would otherwise corrupt memory silently: every access stays inside its
array, and every load finds the value that it wants in the bytes that it reads.
"""

from __future__ import annotations

from dataclasses import replace

from .memory import reads_of, writes_of
from .schedule import Access, Copy, Index, Kernel, Launch, LibraryCall, Load, Schedule, Store


class PlanError(AssertionError):
    """A plan that breaks an invariant: an error of clfuse's, never of its user's."""


def verify(schedule: Schedule) -> None:
    """Raise PlanError unless the schedule can run.

    Raises
    ------
    PlanError
        Naming the launch, the value and the invariant.
    """
    contents: dict[object, int] = {}
    for number, known in enumerate(schedule.values):
        if known.buffer is not None:
            contents["buffer", known.buffer] = number
    for position, launch in enumerate(schedule.launches):
        where = f"launch {position} ({launch.label if isinstance(launch, Kernel) else launch})"
        phases: list[Launch] = [launch]
        if isinstance(launch, Kernel):
            phases = [replace(phase, then=[]) for phase in launch.phases]
        for phase in phases:
            for value, _ in reads_of(phase):
                place = _place(schedule, value)
                if place is None or contents.get(place) != value:
                    raise PlanError(
                        f"{where} reads value {value}, but {place} holds {contents.get(place)}"
                    )
            _check_bounds(phase, schedule, where)
            for value in writes_of(phase):
                place = _place(schedule, value)
                if place is None:
                    raise PlanError(f"{where} writes value {value}, which has no memory")
                contents[place] = value
    for node, value in schedule.keeps.items():
        place = _place(schedule, value)
        if schedule.values[value].nbytes and contents.get(place) != value:
            raise PlanError(f"node {node} should be value {value}; {place} holds something else")


def _place(schedule: Schedule, value: int) -> object:
    known = schedule.values[value]
    if known.slot is not None:
        if known.slot in schedule.reuses:
            return "buffer", schedule.reuses[known.slot]
        return "slot", known.slot
    return None if known.buffer is None else ("buffer", known.buffer)


def _check_bounds(launch: Launch, schedule: Schedule, where: str) -> None:
    if isinstance(launch, Copy):
        for value in (launch.source, launch.target):
            if schedule.values[value].nbytes < launch.nbytes:
                raise PlanError(f"{where} copies {launch.nbytes} bytes of a smaller value {value}")
        return
    if isinstance(launch, LibraryCall):
        for operand in launch.operands:
            _check_access(
                Access(operand.offset, operand.strides),
                operand.shape,
                schedule.values[operand.value].nbytes // operand.dtype.itemsize,
                f"{where}, operand {operand.value}",
            )
        return
    kept = launch.extents[: len(launch.extents) - launch.reduced]
    for items, extents in ((launch.body, launch.extents), (launch.epilogue, kept)):
        for item in items:
            if isinstance(item, Load):
                # Of a gather, the element for position 0; `api.gathering` bounds positions.
                _check_element(item, extents, schedule, where)
            elif isinstance(item, Index) and len(item.access.strides) != len(extents):
                raise PlanError(f"{where}: an index of another rank, {item}")
    for stores, extents in ((launch.stores, launch.extents), (launch.results, kept)):
        for store in stores:
            _check_element(store, extents, schedule, where)


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
    for stride, extent in zip(access.strides, extents, strict=True):
        reach = stride * (extent - 1)
        low, high = (low, high + reach) if reach > 0 else (low + reach, high)
    if low < 0 or high >= count:
        raise PlanError(f"{where}: elements {low} to {high} of {count}, {access} over {extents}")
