"""Provenance: which recorded operations each step of a plan computes, and of which lines they are.

The planner numbers values, not statements. What a step stores is known by its position in the
snapshot, and so is all that was stored before: what lies between is what the step computes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from clfuse.ir.nodes import Kind
from clfuse.schedule.records import (
    Copy,
    Cut,
    Kernel,
    Launch,
    LibraryCall,
    Pass,
    Schedule,
    UserLaunch,
)
from clfuse.schedule.traffic import reads_of, reads_of_call, writes_of, writes_of_call

from .places import NOWHERE

__all__ = ["computed_by", "lines_of", "position_of_cut", "shares"]


def lines_of(nodes: Sequence[Any]) -> tuple[int, ...]:
    """The number of the statement that has recorded each node, `NOWHERE` where that is unknown."""
    return tuple([getattr(node, "line", NOWHERE) for node in nodes])


def with_readers(lines: Sequence[int], items: Sequence[tuple[Any, ...]]) -> list[int]:
    """`lines`, where a node that no statement has recorded by itself has the line of what reads
    it."""
    found = list(lines)
    for position in range(len(items) - 1, -1, -1):
        item = items[position]
        if found[position] != NOWHERE and len(item) > 3 and item[0] is not None:
            for operand in item[3:]:
                if found[operand] == NOWHERE:
                    found[operand] = found[position]
    return found


def _writes(launch: Launch, schedule: Schedule) -> list[int]:
    if isinstance(launch, Copy):
        return [launch.target]
    if isinstance(launch, Pass):
        return [*launch.writes, launch.call.target]
    if isinstance(launch, UserLaunch):
        return [launch.buffers[slot] for slot in launch.written]
    if isinstance(launch, LibraryCall):
        return [value for value, _, _ in writes_of_call(launch, schedule)]
    return [value for value, _, _ in writes_of(launch, schedule)]


def _reads(launch: Launch, schedule: Schedule) -> list[int]:
    if isinstance(launch, Copy):
        return [launch.source]
    if isinstance(launch, Pass):
        return list(launch.reads)
    if isinstance(launch, UserLaunch):
        return launch.reads
    if isinstance(launch, LibraryCall):
        return [value for value, _, _ in reads_of_call(launch, schedule)]
    return [value for value, _, _ in reads_of(launch, schedule)]


def computed_by(schedule: Schedule, items: Sequence[tuple[Any, ...]]) -> list[list[int]]:
    """The positions of the operations that each of ``schedule.steps`` computes, ascending."""
    of_value: dict[int, list[int]] = {}
    for position, value in schedule.stored.items():
        of_value.setdefault(value, []).append(position)
    steps = schedule.steps
    written = [{v for each in step for v in _writes(each, schedule)} for step in steps]
    read = [{v for each in step for v in _reads(each, schedule)} for step in steps]
    roots: list[set[int]] = []
    for values in written:
        roots.append({position for value in values for position in of_value.get(value, ())})
    # What stores partial results alone belongs to the step that folds them.
    for number in range(len(steps) - 1, -1, -1):
        if not roots[number]:
            for later in range(number + 1, len(steps)):
                if written[number] & read[later]:
                    roots[number] = set(roots[later])
                    break
    return [_between(own, schedule.stored, items) for own in roots]


def _between(
    roots: set[int], stored: dict[int, int], items: Sequence[tuple[Any, ...]]
) -> list[int]:
    """What is computed for `roots` from what was stored before."""
    found = set(roots)
    stack = list(roots)
    while stack:
        item = items[stack.pop()]
        if len(item) < 4 or item[0] is None:
            continue
        for operand in item[3:]:
            if operand not in found and operand not in stored and items[operand][0] is not None:
                found.add(operand)
                stack.append(operand)
    return sorted(found)


_WITHOUT_WORK: Final = (Kind.LEAF, Kind.CONSTANT, Kind.VIEW, Kind.IOTA, Kind.PART)


def shares(
    positions: Sequence[int], lines: Sequence[int], items: Sequence[tuple[Any, ...]]
) -> dict[int, float]:
    """Line -> its part of the work of a step; together 1. By operations: their weights, times the
    elements that they go through."""
    work: dict[int, float] = {}
    for position in positions:
        item = items[position]
        op = item[0]
        weight = 0.0
        if op is not None and op.kind not in _WITHOUT_WORK:
            sizes = [math.prod(item[1]) if len(item) > 1 else 1]
            sizes += [
                math.prod(items[operand][1])
                for operand in item[3:]
                if op.kind in (Kind.REDUCE, Kind.ARGREDUCE) and len(items[operand]) > 1
            ]
            weight = op.weight * max(sizes)
        work[lines[position]] = work.get(lines[position], 0.0) + weight
    whole = sum(work.values())
    if not whole:
        return {line: 1 / len(work) for line in work}
    return {line: each / whole for line, each in work.items() if each}


def position_of_cut(cut: Cut, schedule: Schedule) -> int | None:
    """The position in the snapshot of a value that goes through memory, where it is known."""
    for position, value in schedule.stored.items():
        if schedule.values[value].node == cut.node:
            return position
    return None


def kind_of(step: Sequence[Launch]) -> str:
    """What a step is, as `clfuse.explain` calls it."""
    first = step[0]
    if isinstance(first, Copy):
        return "copy"
    if isinstance(first, LibraryCall | Pass):
        return "library"
    return first.kind.name if isinstance(first, Kernel) else "launch"
