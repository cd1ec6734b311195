"""Records again the nodes that a plan has not computed, on top of the values that it has computed.

The plan has ended early, and the new nodes can be computed in another way.

    t = x * 2; x += 1; y = t @ w       the plan has t and the new x; the product is refused
    -> y = matmul(leaf t, leaf w)      the old x is not needed
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from clfuse.ir import build
from clfuse.ir.nodes import Kind, Node, structural
from clfuse.ir.snapshot import shape_at
from clfuse.runtime.memory.buffers import Buffer
from clfuse.schedule.memory.buffers import writes_of
from clfuse.schedule.memory.hazards import Place, place_of
from clfuse.schedule.memory.partial_updates import partly_there, updated_region
from clfuse.schedule.records import (
    Kernel,
    Launch,
    Load,
    Pass,
    Schedule,
    Store,
    UserLaunch,
)

__all__ = ["is_host_step", "latest_values", "record_again"]

_BY_IDENTITY: Final = (Kind.LAUNCH, Kind.PART)
"""Nodes of kernels that somebody wrote: those of one launch know each other."""


def is_host_step(step: Sequence[Launch]) -> bool:
    """Whether a step may have written a part of its result when it fails."""
    return not isinstance(step[0], Kernel | Pass | UserLaunch)


def latest_values(schedule: Schedule, step: Sequence[Launch]) -> dict[Place | None, int]:
    """What lies in each place that a step writes to, after it.

    One step may make several updates of an array: the last one is made of the others.
    """
    first: dict[int, int] = {}
    for position, value in schedule.stored.items():
        first[value] = min(first.get(value, position), position)
    found: dict[Place | None, int] = {}
    for launch in step:
        for value in writes_of(launch):
            place = place_of(schedule, value)
            if first.get(value, 0) >= first.get(found.get(place, value), 0):
                found[place] = value
    return found


def record_again(
    position: int,
    items: Sequence[tuple[Any, ...]],
    constants: Sequence[Node | None],
    schedule: Schedule,
    places: Sequence[Buffer | None],
    is_done: Sequence[bool],
    begun: Collection[int],
) -> Node | None:
    """A node that computes what the node at `position` would be; None where that cannot be
    recorded, because what it is computed from was overwritten.

    items: of the snapshot that the plan is for.
    constants: the snapshot's constants, by position.
    places: where each value of the plan lies.
    is_done: of every step, whether it was done.
    begun: steps on the host that may have written a part.
    """
    whole, written = _whole_values(schedule, is_done, begun)
    partly = partly_there(items, schedule, is_done, begun)
    copies = _copied_reads(schedule, is_done, whole)
    inputs: dict[int, Buffer] = {}
    for number, known in enumerate(schedule.values):
        buffer = places[number]
        is_input = known.buffer is not None and known.slot is None and buffer is not None
        if is_input and place_of(schedule, number) not in written:
            whole.add(number)
            inputs[known.buffer] = buffer  # type: ignore[index, assignment]

    def value_at(number: int) -> int | None:
        """The value whose place holds what the node at this position is."""
        value = schedule.stored.get(number)
        if value in whole:
            return value
        found = partly.get(number)
        return found.value if found is not None and not found.stale else None

    def is_there(number: int) -> bool:
        return value_at(number) is not None

    def copy_of(number: int) -> Store | None:
        """What stores a copy of the elements that the node at this position is a view of."""
        item = items[number]
        if item[0] is None or item[0].kind is not Kind.VIEW or items[item[3]][0] is not None:
            return None
        return copies.get((items[item[3]][2], item[1], *item[2]))

    def place_shown(number: int) -> int | None:
        """The value whose place holds the elements that the node at this position is a view of,
        where it does not hold all of what they are of."""
        item = items[number]
        if item[0] is None or item[0].kind is not Kind.VIEW:
            return None
        found = partly.get(item[3])
        return found.value if found is not None and found.shows(item[1], *item[2]) else None

    def updates_of(number: int) -> tuple[int, ...] | None:
        """The updates that make the node at this position of what lies in a place."""
        found = partly.get(number)
        is_update = items[number][0] is not None and items[number][0].kind is Kind.UPDATE
        return found.missing if found is not None and is_update else None

    needed, stack = {position}, [position]
    while stack:
        number = stack.pop()
        item = items[number]
        if len(item) == 1 or is_there(number) or copy_of(number) is not None:
            continue
        if place_shown(number) is not None:
            continue
        if item[0] is None:
            if item[2] not in inputs:
                return None
            continue
        if item[0].kind in _BY_IDENTITY or item[0].dtype is None:
            return None
        updates = updates_of(number)
        if updates is None:
            numbers = _operands(items, number, is_there)
        else:
            numbers = tuple([items[update][4] for update in updates])
        for operand in numbers:
            if operand not in needed:
                needed.add(operand)
                stack.append(operand)
    made: dict[int, Node] = {}
    for number in sorted(needed):  # operands come first
        item = items[number]
        if len(item) == 1:
            constant = constants[number]
            if constant is None:
                return None
            made[number] = constant
        elif item[0] is None:
            _, shape, buffer_number, dtype = item
            made[number] = _leaf(inputs[buffer_number], shape, dtype)
        elif is_there(number):
            value = value_at(number)
            buffer = None if value is None else places[value]
            assert buffer is not None
            made[number] = _leaf(buffer, item[1], item[0].dtype)
        elif (copy := copy_of(number)) is not None:
            buffer = places[copy.value]
            assert buffer is not None
            count = schedule.values[copy.value].nbytes // copy.dtype.itemsize
            whole_copy = _leaf(buffer, (count,), copy.dtype)
            made[number] = build.view(whole_copy, item[1], copy.access.offset, copy.access.strides)
        elif (shown := place_shown(number)) is not None:
            buffer = places[shown]
            assert buffer is not None
            whole_array = _leaf(buffer, items[item[3]][1], item[0].dtype)
            made[number] = build.view(whole_array, item[1], *item[2])
        elif (updates := updates_of(number)) is not None:
            buffer = places[partly[number].value]
            assert buffer is not None
            node = _leaf(buffer, item[1], item[0].dtype)
            for update in updates:
                op, shape, param = items[update][:3]
                node = Node(op, (node, made[items[update][4]]), shape, op.dtype, param)
            made[number] = node
        else:
            op, shape, param = item[:3]
            operands = tuple([made[operand] for operand in _operands(items, number, is_there)])
            if op.kind is Kind.UPDATE and len(operands) == 1:
                operands = (build.full(op.dtype.type(0), shape), *operands)
            made[number] = Node(op, operands, shape, op.dtype, param)
    return made[position]


def _operands(
    items: Sequence[tuple[Any, ...]], number: int, is_there: Callable[[int], bool]
) -> tuple[int, ...]:
    """What a node is computed from: an update not from earlier ones of the same elements, unless
    they are in memory; and one of all elements from its value alone, as the plan has it."""
    item = items[number]
    operands = item[3:]
    if item[0].kind is not Kind.UPDATE:
        return operands
    base, value = operands
    if updated_region(items, number) == (0, ((math.prod(item[1]), 1),)):
        return (value,)
    while (
        not is_there(base)
        and items[base][0] is not None
        and items[base][0].kind is Kind.UPDATE
        and items[base][2] == item[2]
        and shape_at(items, items[base][4]) == shape_at(items, value)
    ):
        base = items[base][3]
    return base, value


def _leaf(buffer: Buffer, shape: tuple[int, ...], dtype: Any) -> Node:
    leaf = Node(structural(Kind.LEAF, "leaf", dtype), (), shape, dtype)
    leaf.buffer = buffer.of(dtype, shape)
    return leaf


def _copied_reads(
    schedule: Schedule, is_done: Sequence[bool], whole: Collection[int]
) -> dict[tuple[int, tuple[int, ...], int, tuple[int, ...]], Store]:
    """What was copied of inputs before it was written over, for reads that come later: number of
    the input's buffer, shape, offset and strides -> what stores the copy."""
    found = {}
    done = [step for step, is_over in zip(schedule.steps, is_done, strict=True) if is_over]
    for launch in [launch for step in done for launch in step]:
        if not isinstance(launch, Kernel) or launch.where:
            continue
        for phase in launch.phases:
            loads = {item.var: item for item in phase.body if isinstance(item, Load)}
            for store in phase.stores:
                load = loads.get(store.var)
                copied = schedule.values[store.value]
                if load is None or copied.node is not None or store.value not in whole:
                    continue
                source = schedule.values[load.value]
                if source.buffer is None or source.slot is not None:
                    continue
                is_plain = load.position is None and load.dtype == store.dtype and not any(
                    access.jumps or access.within for access in (load.access, store.access)
                )
                if is_plain:
                    place, strides = load.access.offset, load.access.strides
                    found[source.buffer, phase.extents, place, strides] = store
    return found


def _whole_values(
    schedule: Schedule, is_done: Sequence[bool], begun: Collection[int]
) -> tuple[set[int], set[Place | None]]:
    """The values that lie in memory as they shall be, and all places that were written to."""
    holds: dict[Place | None, int | None] = {}
    left: set[int] = set()
    for number, (step, done) in enumerate(zip(schedule.steps, is_done, strict=True)):
        if done:
            holds.update(latest_values(schedule, step))
            continue
        for launch in step:
            for value in writes_of(launch):
                left.add(value)
                if number in begun:
                    holds[place_of(schedule, value)] = None
    whole = {value for value in holds.values() if value is not None and value not in left}
    return whole, set(holds)
