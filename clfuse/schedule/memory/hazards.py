"""Data hazards of a schedule: which value every byte of its memory holds, launch by launch.

A value may lie in the bytes of others: an update is written into its old contents, or into those
that they were made of; dead inputs are overwritten. So it matters which launch comes first, and
which elements it touches:

    value 3: x[0] = ..., over value 1 (x)      byte 0..7 holds 3, the rest holds 1
    a load of value 3, anywhere                right: outside of what 3 writes, 1 is what it shows
    a load of value 1, element 0               read after write: an error
    a load of value 1, element 5               right
    one kernel: loads element i + 1, stores i  write after read, in no order: an error

Arrays of more than `MAX_NBYTES` are followed as a whole, without their parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clfuse.schedule.records import (
    Access,
    Copy,
    Item,
    Kernel,
    Launch,
    LibraryCall,
    Load,
    Pass,
    Prefix,
    Schedule,
    SortPass,
    Store,
    UserLaunch,
)
from clfuse.schedule.rewrite.write_regions import apart

if TYPE_CHECKING:
    import numpy.typing as npt

MAX_NBYTES: Final = 1 << 20
"""Bytes of an array that are followed one by one: each is an entry of the books."""

_NOTHING: Final = -1

Place = tuple[str, int]
Regions = tuple[tuple[tuple[int, ...], "Access"], ...]
Boxes = tuple[tuple[tuple[int, int], ...], ...]
Touch = tuple[int, int, "Access | None", tuple[int, ...]]
"""Value, bytes of an element, access (None: all of it), and the extents that it runs over."""


def place_of(schedule: Schedule, value: int) -> Place | None:
    """Where a value lies: a slot, a buffer of the graph, or nowhere."""
    known = schedule.values[value]
    if known.slot is not None:
        if known.slot in schedule.reuses:
            return "buffer", schedule.reuses[known.slot]
        return "slot", known.slot
    return None if known.buffer is None else ("buffer", known.buffer)


class Hazards:
    """What lies where, at one moment of the plan.

    Parameters
    ----------
    schedule : Schedule
    fail : callable
        Called with a message for what is wrong; raises.
    """

    def __init__(self, schedule: Schedule, fail: Callable[[str], Any]) -> None:
        self._schedule = schedule
        self._fail = fail
        self._holders: dict[Place, npt.NDArray[np.int32]] = {}
        self._whole: dict[Place, int] = {}
        for number, known in enumerate(schedule.values):
            if known.buffer is not None:
                self._fill(("buffer", known.buffer), number)

    def _fill(self, place: Place, value: int) -> None:
        self._whole[place] = value
        nbytes = self._schedule.values[value].nbytes
        if nbytes <= MAX_NBYTES:
            self._holders[place] = np.full(nbytes, value, np.int32)
        else:
            self._holders.pop(place, None)

    def run(self, launch: Launch, where: str) -> None:
        """Check one launch against what the bytes hold, and note what it writes."""
        phases = launch.phases if isinstance(launch, Kernel) else [launch]
        touched = [(_loads(phase, self._schedule), _stores(phase, self._schedule))
                   for phase in phases]
        written = {store[0] for _, stores in touched for store in stores}
        is_beside = isinstance(launch, Kernel) and bool(launch.where)  # each in boxes of its own
        for number, (loads, stores) in enumerate(touched):
            for load in loads:
                self._check_load(load, written, where)
                if isinstance(launch, SortPass):
                    continue  # the scan of its counters is in place, in order of its barriers
                if isinstance(launch, Kernel) and _is_changed(load, launch):
                    continue  # it combines with what lies where it stores, and reads nothing else
                if isinstance(launch, UserLaunch) and load[0] in launch.changed:
                    continue  # it sees what it writes: that is its author's business
                if isinstance(launch, LibraryCall) and launch.epilogue is None:
                    continue  # NumPy looks after operands that overlap
                tiles = isinstance(launch, Kernel) and launch.kind.by_tiles
                for later, (_, others) in enumerate(touched[0 if tiles or is_beside else number :]):
                    for store in others:
                        self._check_order(
                            load, store, where, same_phase=not later, is_alone=not tiles
                        )
            for position, store in enumerate(stores):
                for other in stores[:position]:
                    if other[0] != store[0]:
                        self._check_order(other, store, where, same_phase=False)
            if not is_beside:
                for store in stores:
                    self._write(store, where)
        for _, stores in touched if is_beside else ():
            for store in stores:
                self._write(store, where)

    def check_whole(self, value: int, what: str) -> None:
        """Check that all of a value is there."""
        if self._schedule.values[value].nbytes:
            self._check_load((value, 1, None, ()), set(), what)

    def _check_load(self, load: Touch, written: set[int], where: str) -> None:
        value, itemsize, access, extents = load
        if 0 in extents or not self._schedule.values[value].nbytes:
            return
        place = place_of(self._schedule, value)
        if place is None:
            self._fail(f"{where} reads value {value}, which has no memory")
            return
        holder = self._holders.get(place)
        if holder is None or self._schedule.values[value].nbytes > MAX_NBYTES:
            now = self._whole.get(place)
            # What is written in several launches may be read where it is not written yet.
            if now == value or (now in written and value in self._under(now)):
                return
            if not self._shows(now, load):
                self._fail(f"{where} reads value {value}, but {place} holds {now}")
            return
        held = _elements(holder, itemsize, access, extents)
        if (held == value).all():
            return
        nbytes = self._schedule.values[value].nbytes
        holder = holder[:nbytes]
        right = holder == value
        outside = np.ones(nbytes, bool)
        for older, (regions, size) in self._older(value):
            for shape, of_region in regions:
                _elements(outside, size, of_region, shape)[...] = False
            right |= outside & (holder == older)
        if not _elements(right, itemsize, access, extents).all():
            wrong = sorted(set(held[~_elements(right, itemsize, access, extents)].tolist()))
            self._fail(
                f"{where} reads value {value}, but {place} holds {_names(wrong)} where it reads"
            )

    def _older(self, value: int) -> list[tuple[int, tuple[Regions, int]]]:
        """The values that an update shows outside of what it writes, nearest first."""
        found = []
        update = self._schedule.values[value].update
        while update is not None:
            found.append((update.old, (update.regions, update.itemsize)))
            update = self._schedule.values[update.old].update
        return found

    def _shows(self, now: int | None, load: Touch) -> bool:
        """Whether `now` is an update of what is loaded, and the same where it is."""
        value, itemsize, access, extents = load
        if now is None or access is None:
            return False
        for older, (regions, size) in self._older(now):
            loaded = extents, access.offset, access.strides
            if size != itemsize or not all(
                apart((shape, region.offset, region.strides), loaded) for shape, region in regions
            ):
                return False
            if older == value:
                return True
        return False

    def _under(self, value: int | None) -> set[int]:
        return set() if value is None else {older for older, _ in self._older(value)}

    def _check_order(
        self, one: Touch, store: Touch, where: str, *, same_phase: bool, is_alone: bool = True
    ) -> None:
        """A launch may not touch an element twice that it writes, but by the same work-item; which
        is alone with its elements, but for tiles."""
        place = place_of(self._schedule, one[0])
        if place is None or place != place_of(self._schedule, store[0]):
            return
        if 0 in one[3] or 0 in store[3]:
            return
        if is_alone and one[1:] == store[1:] and one[2] is not None:
            return
        nbytes = max(self._schedule.values[touch[0]].nbytes for touch in (one, store))
        if nbytes > MAX_NBYTES:
            return
        touched = np.zeros(nbytes, bool)
        _elements(touched, *store[1:])[...] = True
        if _elements(touched, *one[1:]).any():
            when = "" if same_phase else ", in another phase or to another value"
            self._fail(
                f"{where} touches value {one[0]} where it writes value {store[0]}: both lie in "
                f"{place}, and nothing says which comes first{when}"
            )

    def _write(self, store: Touch, where: str) -> None:
        value, itemsize, access, extents = store
        place = place_of(self._schedule, value)
        nbytes = self._schedule.values[value].nbytes
        if 0 in extents or not nbytes:
            return
        if place is None:
            self._fail(f"{where} writes value {value}, which has no memory")
            return
        self._whole[place] = value
        if nbytes > MAX_NBYTES:
            self._holders.pop(place, None)
            return
        if place not in self._holders:
            self._holders[place] = np.full(nbytes, _NOTHING, np.int32)
        _elements(self._holders[place], itemsize, access, extents)[...] = value


def _elements(
    books: npt.NDArray[Any], itemsize: int, access: Access | None, extents: tuple[int, ...]
) -> npt.NDArray[Any]:
    """The entries of the bytes that an access touches: one more axis, of the bytes of an element.

    The bounds were checked before.
    """
    if access is None:
        return books
    entry = books.itemsize
    return np.lib.stride_tricks.as_strided(
        books[access.offset * itemsize :],
        (*extents, itemsize),
        (*[stride * itemsize * entry for stride in access.strides], entry),
    )


def _runs(
    access: Access,
    extents: tuple[int, ...],
    where: Boxes,
) -> list[tuple[Access, tuple[int, ...]]]:
    """An access between its seams, in the boxes `where` (none: everywhere); and how far it runs."""
    if not where and not access.seams:
        return [(access, extents)]
    found = []
    for box in where or (tuple([(0, extent) for extent in extents]),):
        bounds = list(box)
        for dim, first, end in access.within:
            bounds[dim] = max(bounds[dim][0], first), min(bounds[dim][1], end)
        edges = []
        for dim, (low, high) in enumerate(bounds):
            cuts = {first for at, first, _ in access.jumps if at == dim and low < first < high}
            edges.append(list(pairwise([low, *sorted(cuts), high])) if low < high else [])
        for run in product(*edges):
            offset = access.offset + sum(
                [low * stride for (low, _), stride in zip(run, access.strides, strict=True)]
            )
            offset += sum([by for dim, first, by in access.jumps if first <= run[dim][0]])
            lengths = tuple([high - low for low, high in run])
            found.append((Access(offset, access.strides), lengths))
    return found


def _is_changed(load: Touch, kernel: Kernel) -> bool:
    scatter = kernel.scatter
    if scatter is None or load[0] != scatter.old:
        return False
    access = kernel.stores[0].access
    others = [item for item in kernel.body if isinstance(item, Load) and item.value == scatter.old]
    return all(item.access == access and item.position == scatter.position for item in others)


def _loads(phase: Launch, schedule: Schedule) -> list[Touch]:
    if isinstance(phase, Pass):
        return [(value, 1, None, ()) for value in phase.reads]
    if isinstance(phase, UserLaunch):
        return [(value, 1, None, ()) for value in phase.reads]
    if isinstance(phase, Copy):
        return [(phase.source, 1, None, ())]
    if isinstance(phase, LibraryCall):
        operands: list[Touch] = [
            (o.value, o.dtype.itemsize, Access(o.offset, o.strides), o.shape)
            for o in phase.operands
        ]
        if phase.epilogue is not None:
            loads = _loads(phase.epilogue, schedule)
            operands += [load for load in loads if load[0] != phase.target]
        return operands
    found: list[Touch] = []
    kept = phase.extents[: len(phase.extents) - phase.reduced]
    parts: tuple[tuple[Sequence[Item], tuple[int, ...], Boxes], ...] = (
        (phase.body, phase.extents, phase.where),
        (phase.epilogue, kept, ()),
    )
    for items, extents, where in parts:
        for item in items:
            if isinstance(item, Load):
                size = item.dtype.itemsize
                if item.position is not None:
                    found.append((item.value, size, None, extents))
                    continue
                found += [(item.value, size, *run) for run in _runs(item.access, extents, where)]
            elif isinstance(item, Prefix) and item.partial is not None:
                found.append((item.partial, 1, None, ()))
    if phase.selection is not None:
        found.append((phase.selection.starts, 1, None, ()))
        if phase.selection.packed is not None:
            found.append((phase.selection.packed.value, 1, None, ()))
    if phase.scatter is not None:
        for value in (phase.scatter.old, phase.scatter.table):
            if value is not None:
                found.append((value, 1, None, ()))
    return found


def _stores(phase: Launch, schedule: Schedule) -> list[Touch]:
    if isinstance(phase, Pass):
        return [(value, 1, None, ()) for value in phase.writes]
    if isinstance(phase, UserLaunch):
        return [(phase.buffers[slot], 1, None, ()) for slot in phase.written]
    if isinstance(phase, LibraryCall) and phase.epilogue is not None:
        return _stores(phase.epilogue, schedule)
    if isinstance(phase, Copy | LibraryCall):
        return [(phase.target, 1, None, ())]
    found: list[Touch] = []
    kept = phase.extents[: len(phase.extents) - phase.reduced]
    groups: tuple[tuple[Sequence[Store], tuple[int, ...], Boxes], ...] = (
        (phase.stores, phase.extents, phase.where),
        (phase.results, kept, ()),
    )
    for stores, extents, where in groups:
        for store in stores:
            size = store.dtype.itemsize
            if phase.kind.stores_side_by_side:
                found.append((store.value, size, None, extents))
                continue
            runs = _runs(store.access, extents, where)
            found += [(store.value, size, *run) for run in runs]
    for accumulator in phase.accumulators:
        for partial in (accumulator.partial, accumulator.partial_position):
            if partial is not None:
                found.append((partial, 1, None, ()))
    return found


def _names(values: list[int]) -> str:
    return ", ".join("nothing" if value == _NOTHING else f"value {value}" for value in values)
