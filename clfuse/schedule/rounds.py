"""Steps of a body that repeat: a loop of the program, which is written as a loop of registers.

    for k in range(100):               recorded as 200 steps: 100 rounds of two
        y = y - sin(x)
        x = x + y

Rounds have the same operations. An operand is of the same round, of one of the last `FURTHEST`
rounds, or the same register in all rounds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from clfuse.frozen import frozen
from clfuse.ir.nodes import Kind
from clfuse.schedule.dataflow import operands_of
from clfuse.schedule.graph import Graph
from clfuse.schedule.records import Item, Kernel, Step
from clfuse.target.traits import MAX_STEPS, DeviceTraits

__all__ = ["Kept", "Own", "Rounds", "Stretch", "find", "most_steps", "outer_uses", "text_length"]

FURTHEST: Final = 3
"""How many rounds back an operand may lie."""

LEAST: Final = 5
"""Rounds that make a loop."""

LEAST_WEIGHT: Final = 128.0
"""What a loop must spare the compiler, in additions: in shorter texts it finds more by itself."""

MAX_REPEATED: Final = 4096
"""Operations of one kernel where they are rounds of a loop: planning and rendering take them one by
one, compilers do not."""

LOOP_SHARE: Final = 0.75
"""The part of a program's operations that must be rounds of a loop for that."""

ENOUGH: Final = 0.9
"""The part of all operations that a loop spares when no longer rounds are looked for."""

EQUAL_WEIGHT: Final = 128.0
"""Operations of a kernel, in additions, of which many equal ones do the rounds of a loop that have
numbers of their own. Building 120 sines and cosines took Intel's compiler a minute."""


class Own(NamedTuple):
    """An operand that step number `position` of the same round makes."""

    position: int


class Kept(NamedTuple):
    """An operand that step number `position` made `back` rounds ago."""

    position: int
    back: int


class Same(NamedTuple):
    """An operand that is one register in all rounds."""

    var: int


Source = Own | Kept | Same


@frozen
class Rounds:
    """A loop of registers.

    Attributes
    ----------
    steps : tuple of Step, those of the first round
    sources : for each of these steps, where its operands come from
    count : int, how many rounds there are
    initial : dict, (position, back) -> the register that stands for it in the first round
    left : dict, register -> (position, back): what is used after the loop
    """

    steps: tuple[Step, ...]
    sources: tuple[tuple[Source, ...], ...]
    count: int
    initial: Mapping[tuple[int, int], int]
    left: Mapping[int, tuple[int, int]]

    @property
    def carried(self) -> list[tuple[int, int]]:
        """(position, back) of all that is carried, those further back first."""
        furthest: dict[int, int] = {}
        kept = [one[:2] for row in self.sources for one in row if isinstance(one, Kept)]
        for position, back in [*kept, *self.left.values()]:
            furthest[position] = max(furthest.get(position, 0), back)
        return [
            (position, back)
            for position in sorted(furthest)
            for back in range(furthest[position], 0, -1)
        ]


Stretch = tuple[int, int, Rounds]
"""The number of a loop's first item, that of the item behind it, and the loop."""


def outer_uses(kernel: Kernel, items: Sequence[Item]) -> set[int]:
    """The registers that something of a kernel wants which is not one of these items."""
    own = {item.var for item in items}
    used: set[int] = set()
    for phase in kernel.phases:
        used.update(store.var for store in (*phase.stores, *phase.results))
        used |= phase.lent
        for accumulator in phase.accumulators:
            used.add(accumulator.operand)
            if accumulator.position is not None:
                used.add(accumulator.position)
        if phase.selection is not None:
            used |= {phase.selection.mask, phase.selection.other}
        if phase.scatter is not None:
            used |= {phase.scatter.position, phase.scatter.turn}
        for item in (*phase.body, *phase.epilogue):
            if item.var not in own:
                used.update(operands_of(item))
    return used


def find(items: Sequence[Item], used: Collection[int]) -> list[Stretch]:
    """The loops in the items, in order.

    `used` are the registers that something else wants: a loop leaves those of its last rounds.
    """
    found = _best(items, used)
    if found is None:
        return []
    first, end, _ = found
    behind = {var for item in items[first:] for var in operands_of(item)}
    later = find(items[end:], used)
    return [
        *find(items[:first], {*used, *behind}),
        found,
        *[(low + end, high + end, rounds) for low, high, rounds in later],
    ]


def _best(items: Sequence[Item], used: Collection[int]) -> Stretch | None:
    """The loop that spares most; None where none spares much."""
    weights = [item.op.weight if isinstance(item, Step) else 0.0 for item in items]
    total = sum(weights)
    if total < LEAST_WEIGHT:
        return None
    made_at = {item.var: number for number, item in enumerate(items)}
    best: tuple[float, int, int, int] | None = None
    for period, low, high in _repeats_of(items, made_at):
        spared = sum(weights[low + period : high])
        if spared >= LEAST_WEIGHT and (best is None or spared > best[0]):
            best = spared, period, low, high
            if spared >= ENOUGH * total:
                break
    if best is None:
        return None
    _, period, low, high = best
    # Where a register of the middle is wanted, the rounds up to there may still be a loop.
    for end in range(high, low + (LEAST - 1) * period, -period):
        found = _written(items, made_at, used, period, end)
        if found is not None:
            first, rounds = found
            if (rounds.count - 1) * sum(step.op.weight for step in rounds.steps) >= LEAST_WEIGHT:
                return first, end, rounds
    return None


def _repeats(
    kinds: Sequence[object], operands: Sequence[Sequence[int]]
) -> Iterator[tuple[int, int, int]]:
    """(period, first, end) of the longest stretch for each period: the same kinds of operations,
    whose operands (numbers of operations; negative: something else) lie as far back or are the
    same."""
    count = len(kinds)
    numbers: dict[object, int] = {}
    kind = np.array([numbers.setdefault(each, len(numbers)) for each in kinds])
    widest = max(map(len, operands), default=0)
    made = np.array([[*each, *[-1] * (widest - len(each))] for each in operands]).T
    # What else there is lies nowhere: no two are as far back.
    place = np.where(made >= 0, np.arange(count) - made, -count - np.arange(count))
    for period in range(1, count // LEAST + 1):
        same = kind[period:] == kind[:-period]
        if np.count_nonzero(same) < (LEAST - 1) * period:
            continue
        for ids, far in zip(made, place, strict=True):
            same &= (far[period:] == far[:-period]) | (ids[period:] == ids[:-period])
        ends = np.flatnonzero(np.diff(np.concatenate(([0], same.view(np.int8), [0]))))
        if ends.size:
            longest = int(np.argmax(ends[1::2] - ends[::2]))
            yield period, int(ends[2 * longest]), int(ends[2 * longest + 1]) + period


def _repeats_of(
    items: Sequence[Item], made_at: Mapping[int, int]
) -> Iterator[tuple[int, int, int]]:
    kinds = [
        (item.op, item.dtypes, item.dtype) if isinstance(item, Step) else number
        for number, item in enumerate(items)
    ]
    operands = [
        [made_at.get(var, -2 - var) for var in item.operands] if isinstance(item, Step) else []
        for item in items
    ]
    return _repeats(kinds, operands)


def _written(
    items: Sequence[Item], made_at: Mapping[int, int], used: Collection[int], period: int, end: int
) -> tuple[int, Rounds] | None:
    """(first item, the rounds) of as many rounds as there can be before `end`."""
    sources = _sources(items, made_at, period, end) if end >= LEAST * period else None
    if sources is None:
        return None
    wanted = {var for item in items[end:] for var in operands_of(item)} | set(used)
    left: dict[int, tuple[int, int]] = {}
    first = end
    while first >= period and _is_round(items, made_at, sources, first - period, end):
        back = (end - first) // period + 1
        steps = items[first - period : first]
        here = [(item.var, place) for place, item in enumerate(steps) if item.var in wanted]
        if here and back > FURTHEST:
            break
        left.update({var: (place, back) for var, place in here})
        first -= period
    # What stands for earlier rounds may not fit together: then the first rounds stay outside.
    while (initial := _initial(items, sources, period, first, end)) is None and first < end:
        first += period
    count = (end - first) // period
    if initial is None or count < LEAST:
        return None
    own = tuple([item for item in items[first : first + period] if isinstance(item, Step)])
    return first, Rounds(own, sources, count, initial, left)


def _sources(
    items: Sequence[Item], made_at: Mapping[int, int], period: int, end: int
) -> tuple[tuple[Source, ...], ...] | None:
    """Where the operands of the round before `end` come from; None if it has no such form."""
    found: list[tuple[Source, ...]] = []
    start = end - period
    for item, before in zip(items[start:end], items[start - period : start], strict=True):
        if not isinstance(item, Step) or not isinstance(before, Step):
            return None
        row: list[Source] = []
        for var, earlier in zip(item.operands, before.operands, strict=True):
            at = made_at.get(var)
            if var == earlier:
                row.append(Same(var))
            elif at is None:
                return None
            elif at >= start:
                row.append(Own(at - start))
            else:
                back = -((at - start) // period)
                if back > FURTHEST:
                    return None
                row.append(Kept(at - start + back * period, back))
        found.append(tuple(row))
    return tuple(found)


def _is_round(
    items: Sequence[Item],
    made_at: Mapping[int, int],
    sources: tuple[tuple[Source, ...], ...],
    start: int,
    end: int,
) -> bool:
    """Whether the steps from `start` on are a round; what it takes of earlier ones may be any
    registers."""
    period = len(sources)
    for position, row in enumerate(sources):
        item, model = items[start + position], items[end - period + position]
        if not isinstance(item, Step) or not isinstance(model, Step):
            return False
        if (item.op, item.dtypes, item.dtype) != (model.op, model.dtypes, model.dtype):
            return False
        for var, source in zip(item.operands, row, strict=True):
            if isinstance(source, Same):
                if var != source.var:
                    return False
            elif isinstance(source, Own):
                if made_at.get(var) != start + source.position:
                    return False
            elif start <= made_at.get(var, -1):
                return False
    # The rounds behind take from this one what the model takes of its own predecessors.
    for later in range(start + period, min(end, start + (FURTHEST + 1) * period), period):
        for position, row in enumerate(sources):
            item = items[later + position]
            assert isinstance(item, Step)
            for var, source in zip(item.operands, row, strict=True):
                if isinstance(source, Kept):
                    place = later - source.back * period
                    if place == start and made_at.get(var) != start + source.position:
                        return False
                    if start <= made_at.get(var, -1) < start + period and place != start:
                        return False
                elif isinstance(source, Same) and made_at.get(var, -1) >= start:
                    return False
    return True


def _initial(
    items: Sequence[Item],
    sources: tuple[tuple[Source, ...], ...],
    period: int,
    first: int,
    end: int,
) -> dict[tuple[int, int], int] | None:
    """What stands for registers of rounds before the one at `first`; None if two steps take
    different ones for one."""
    initial: dict[tuple[int, int], int] = {}
    for start in range(first, min(end, first + FURTHEST * period), period):
        number = (start - first) // period
        for item, row in zip(items[start : start + period], sources, strict=True):
            assert isinstance(item, Step)
            for var, source in zip(item.operands, row, strict=True):
                if isinstance(source, Kept) and source.back > number:
                    key = (source.position, source.back - number)
                    if initial.setdefault(key, var) != var:
                        return None
    return initial


def text_length(kernel: Kernel) -> int:
    """Items of a kernel's loop as they are written: those of a loop of registers once."""
    items = kernel.body
    loops = find(items, outer_uses(kernel, items)) if len(items) >= LEAST else []
    return len(items) - sum([end - first - len(rounds.steps) for first, end, rounds in loops])


def most_steps(graph: Graph, traits: DeviceTraits) -> int:
    """How many operations one kernel of a program may have.

    More where they are rounds of a loop. Where rounds have numbers of their own, as many as some
    whole rounds have: then the kernels are equal, and one text serves them all.
    """
    if len(graph) <= traits.max_steps or traits.max_steps < MAX_STEPS:
        return traits.max_steps
    if _round_of(graph, with_numbers=False):
        return max(traits.max_steps, MAX_REPEATED)
    weights = _round_of(graph, with_numbers=True)
    if not weights or len(weights) > traits.max_steps // 2:
        return traits.max_steps
    return max(int(EQUAL_WEIGHT / sum(weights)), 1) * len(weights)


def _round_of(graph: Graph, *, with_numbers: bool) -> list[float]:
    """The operations of a round, in additions each, where most of the graph is rounds of a loop;
    `with_numbers`, also of one whose rounds have numbers of their own."""
    is_step = [kind is Kind.MAP for kind in graph.kinds]
    kinds = [
        (graph.ops[number], graph.shapes[number]) if step else number
        for number, step in enumerate(is_step)
    ]
    operands: Sequence[Sequence[int]] = graph.inputs
    if with_numbers:
        constant = [kind is Kind.CONSTANT for kind in graph.kinds]
        operands = [[-2 if constant[one] else one for one in row] for row in graph.inputs]
    for period, first, end in _repeats(kinds, operands):
        if end - first >= LOOP_SHARE * sum(is_step):
            operations = [graph.ops[number] for number in range(end - period, end)]
            return [op.weight for op in operations if op is not None]
    return []
