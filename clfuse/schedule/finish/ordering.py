"""The order of a kernel's steps: round by round, where they are rounds of a loop.

A body lists its steps by what needs what. Of ``x = sin(x); n = n + (x > .5)``, all sines may come
first, and all of them wait in registers for the additions: that is no loop (`schedule.rounds`).
Operations of one class that come equally often are taken to be of the same rounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from typing import Any

from clfuse.schedule.cost import weight_of
from clfuse.schedule.dataflow import operands_of
from clfuse.schedule.records import Item, Kernel, Load, Prefix, Scalar, Step
from clfuse.schedule.rounds import LEAST, LEAST_WEIGHT, Numbers, find, numbers_of, outer_uses
from clfuse.target.traits import DeviceTraits

__all__ = ["in_rounds"]

FOUND_SHARE = 0.5
"""The part of a body's operations that its loops must spare: then its order is left as it is."""


def in_rounds(kernel: Kernel, traits: DeviceTraits) -> Kernel:
    """`kernel` with its steps in the order of rounds, if there are more loops in that, and with
    what waits for no loop before it."""
    if kernel.tiling is not None or len(kernel.body) < LEAST:
        return kernel
    weight = weight_of(kernel.body)
    if weight < LEAST_WEIGHT or any(isinstance(item, Prefix) for item in kernel.body):
        return kernel
    body = kernel.body
    numbers = numbers_of(kernel, traits)
    spared = _spared(kernel, body, numbers)
    for reordered in (_numbers_first, _ordered):
        ordered = reordered(body) if spared < FOUND_SHARE * weight else []
        if ordered and (more := _spared(kernel, ordered, numbers)) > spared:
            body, spared = ordered, more
    body = _early(kernel, body, numbers)
    return kernel if body is kernel.body else replace(kernel, body=body)


def _spared(kernel: Kernel, items: Sequence[Item], numbers: Numbers) -> float:
    """What loops spare the compiler in these items, in additions."""
    return sum([
        (rounds.count - 1) * weight_of(rounds.steps)
        for _, _, rounds in find(items, outer_uses(kernel, items), numbers)
    ])


def _early(kernel: Kernel, items: list[Item], numbers: Numbers) -> list[Item]:
    """The items with those before a loop that do not wait for it: compilers move nothing across
    one, and what these are made of would take registers all the while."""
    for first, end, _ in reversed(find(items, outer_uses(kernel, items), numbers)):
        late = {item.var for item in items[first:end]}
        early: list[Item] = []
        behind: list[Item] = []
        for item in items[end:]:
            if late.isdisjoint(operands_of(item)):
                early.append(item)
            else:
                late.add(item.var)
                behind.append(item)
        if early:
            items = [*items[:first], *early, *items[first:end], *behind]
    return items


def _numbers_first(items: Sequence[Item]) -> list[Item]:
    """The items with the program's numbers before all others, where these stand between the rounds
    that use them first; none where they are first already."""
    behind = [not isinstance(item, Scalar) for item in items]
    if behind == sorted(behind):
        return []
    return sorted(items, key=lambda item: not isinstance(item, Scalar))


def _ordered(items: Sequence[Item]) -> list[Item]:
    """The items round by round; none where loads wait for steps."""
    first = [item for item in items if not isinstance(item, Step)]
    if any(isinstance(item, Load) and not (item.position is item.other is None) for item in first):
        return []
    steps = [item for item in items if isinstance(item, Step)]
    classes = _classes(steps)
    counts = Counter(classes)
    # How many rounds there are: as often as most of the operations come.
    alike = Counter(counts[each] for each in classes)
    rounds = max(alike, key=lambda count: alike[count])
    numbers = {each: number for number, each in enumerate(counts)}
    seen: Counter[Any] = Counter()
    keys = []
    for number, each in enumerate(classes):
        a_round = max(1, round(counts[each] / rounds))
        keys.append((seen[each] // a_round, numbers[each], number))
        seen[each] += 1
    return [*first, *_topological(steps, keys)]


def _classes(steps: Sequence[Step]) -> list[Any]:
    """What is alike for each step: its operation, and those that make its operands."""
    made = {step.var: step for step in steps}

    def kind(var: int) -> Any:
        step = made.get(var)
        return var if step is None else (step.op, step.dtype)

    return [(step.op, step.dtypes, step.dtype, tuple(map(kind, step.operands))) for step in steps]


def _topological(steps: Sequence[Step], keys: Sequence[tuple[int, int, int]]) -> list[Step]:
    """The steps by their keys, each behind those that it waits for."""
    place = {step.var: number for number, step in enumerate(steps)}
    waits = []
    readers: list[list[int]] = [[] for _ in steps]
    for number, step in enumerate(steps):
        operands = {place[var] for var in step.operands if var in place}
        waits.append(len(operands))
        for operand in operands:
            readers[operand].append(number)
    ready = [keys[number] for number, count in enumerate(waits) if not count]
    heapify(ready)
    ordered = []
    while ready:
        number = heappop(ready)[2]
        ordered.append(steps[number])
        for reader in readers[number]:
            waits[reader] -= 1
            if not waits[reader]:
                heappush(ready, keys[reader])
    return ordered
