"""Plans that were made, by structure: the least recently used go first."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from clfuse.config import settings
from clfuse.counters import counters
from clfuse.ir import known_graphs
from clfuse.ir.snapshot import Snapshot
from clfuse.policy import choice
from clfuse.runtime.devices.device import Device
from clfuse.runtime.devices.selection import while_loading

from . import background

if TYPE_CHECKING:
    from .executable import Planned

__all__ = ["find", "forget", "forget_ready", "kept", "look", "make"]

PLANS_KEPT: Final = 256
"""Plans that are kept. A plan holds its programs, which take megabytes each."""

ITEMS_KEPT: Final = 1 << 20
"""Recorded operations that they were made for, all together: each has a tuple of about 150 bytes,
and a long loop leaves plans of CLFUSE_MAX_NODES that are never used again."""

kept: Final[OrderedDict[tuple[Any, int], Planned]] = OrderedDict()
"""(summary of the structure, running number) -> plan: plans of one summary are compared in full."""

_numbers: Final[dict[Any, list[int]]] = {}
"""Summary -> the running numbers of its plans, which are there. An interrupt may come at any call:
so a plan is listed here after it was put there, and unlisted before it goes."""


def find(snapshot: Snapshot, device: Device) -> Planned | None:
    """The plan for this structure, if it was made before; this is a use of it, unless its kernels
    are built in the background."""
    key = _key(snapshot, device)
    for number in _numbers.get(key, ()):
        planned = kept[key, number]
        if planned.structure.same_structure(snapshot):
            if planned.kernels is not None:
                return planned
            planned.uses += 1
            if planned.uses == 1:
                choice.note_return()
            if planned.uses == known_graphs.LEARN_AFTER:
                known_graphs.learn(snapshot, planned.structure)
            kept.move_to_end((key, number))
            return planned
    return None


def look(snapshot: Snapshot, device: Device) -> Planned | None:
    """The plan for this structure, if it was made before; this is no use of it."""
    key = _key(snapshot, device)
    for number in _numbers.get(key, ()):
        planned = kept[key, number]
        if planned.structure.same_structure(snapshot):
            return planned
    return None


def import_planner() -> None:
    """Import what makes plans, and what renders their kernels."""
    from . import executable  # noqa: F401


while_loading.append(import_planner)


def begin(planned: Planned, device: Device) -> background.Work:
    """Begin to build a plan's kernels in the background."""
    work = planned.kernels = background.begin(planned.builds(device), choice.note_kernels)
    return work


def make(snapshot: Snapshot, device: Device) -> Planned:
    """A plan whose kernels are not built yet."""
    from .executable import make_plan  # the planner, the renderers: nothing for small programs

    key = _key(snapshot, device)
    planned = make_plan(snapshot, device, fuse=settings.fusion)
    counters["plans_made"] += 1
    number = counters["plans_made"]
    kept[key, number] = planned
    _numbers.setdefault(key, []).append(number)
    items = sum(len(each.structure.items) for each in kept.values())
    while len(kept) > 1 and (len(kept) > PLANS_KEPT or items > ITEMS_KEPT):
        oldest = next(iter(kept))
        old = kept[oldest]
        ready = old.structure.ready
        if old is planned or (ready is not None and ready.is_used):
            # What runs by `ready` alone does not move to the end by that.
            kept.move_to_end(oldest)
            if ready is not None:
                ready.is_used = False
            continue
        old.structure.ready = None
        items -= len(old.structure.items)
        known_graphs.unlist(_numbers, *oldest)
        del kept[oldest]
    return planned


def forget() -> None:
    """Keep no plan."""
    forget_ready()
    _numbers.clear()
    kept.clear()


def forget_ready() -> None:
    """Have every evaluation look its plan up from here on: where memory is short, it notes what is
    used."""
    for planned in kept.values():
        planned.structure.ready = None


def _key(snapshot: Snapshot, device: Device) -> tuple[Any, ...]:
    """What plans are kept under."""
    return (
        device,
        settings.planning,
        len(snapshot.items),
        snapshot.roots,
        snapshot.items[snapshot.roots[0]][1],
    )
