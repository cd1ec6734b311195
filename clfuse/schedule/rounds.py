"""Steps of a body that repeat: a loop of the program, which is written as a loop of registers.

    for k in range(100):               recorded as 200 steps: 100 rounds of two
        y = y - sin(x)
        x = x + y

Rounds have the same operations. An operand is of the same round, of one of the last `FURTHEST`
rounds, the same register in all rounds, or a number of the program, another one in each round: the
place of a random draw, a time. On CPUs these lie in a table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from clfuse.dataclass import frozen
from clfuse.ir.nodes import Kind
from clfuse.schedule.dataflow import operands_of
from clfuse.schedule.graph import Graph
from clfuse.schedule.records import Item, Kernel, Scalar, Step
from clfuse.target.traits import MAX_STEPS, DeviceTraits

__all__ = [
    "Each", "Kept", "Own", "Rounds", "Stretch", "find", "most_steps", "numbers_of", "outer_uses",
    "text_length",
]  # fmt: skip

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


LISTED_WEIGHT: Final = 256.0
"""What a loop must spare the compiler where a table of numbers is read in each round."""

MOST_LISTED: Final = 64
"""Rounds of one kernel with numbers of their own, which are its arguments."""


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


class Each(NamedTuple):
    """An operand that is another number of the program in each round."""

    row: int
    """Which of `Rounds.numbers`."""


Source = Own | Kept | Same | Each

Numbers = Mapping[int, np.dtype]
"""Registers that are numbers of the program, and may lie in a table."""


@frozen
class Rounds:
    """A loop of registers.

    steps: those of the first round
    sources: where its operands come from
    count: how many rounds there are
    initial: (position, back) -> the register that stands for it in the first round
    left: register -> (position, back): what is used after the loop
    numbers: for each operand that is `Each`: the register in each round
    """

    steps: tuple[Step, ...]
    sources: tuple[tuple[Source, ...], ...]
    count: int
    initial: Mapping[tuple[int, int], int]
    left: Mapping[int, tuple[int, int]]
    numbers: tuple[tuple[int, ...], ...] = ()

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


def _may_be_listed(dtype: np.dtype) -> bool:
    return dtype.kind in "iuf" and dtype.itemsize >= 4


def numbers_of(kernel: Kernel, traits: DeviceTraits) -> Numbers:
    """The numbers of the program that a kernel's steps read; none on GPUs, where each work-item
    would have its own copy of a table."""
    if traits.schedule != "cpu":
        return {}
    return {
        item.var: item.dtype
        for phase in kernel.phases
        for item in (*phase.body, *phase.epilogue)
        if isinstance(item, Scalar) and _may_be_listed(item.dtype)
    }


def find(items: Sequence[Item], used: Collection[int], numbers: Numbers) -> list[Stretch]:
    """The loops in the items, in order.

    `used` are the registers that something else wants: a loop leaves those of its last rounds.
    Those of `numbers` may be others in each round.
    """
    found = _best(items, used, {})
    if found is None and numbers:
        found = _best(items, used, numbers)
    if found is None:
        return []
    first, end, _ = found
    behind = {var for item in items[first:] for var in operands_of(item)}
    later = find(items[end:], used, numbers)
    return [
        *find(items[:first], {*used, *behind}, numbers),
        found,
        *[(low + end, high + end, rounds) for low, high, rounds in later],
    ]


def _best(items: Sequence[Item], used: Collection[int], numbers: Numbers) -> Stretch | None:
    """The loop that spares most; None where none spares much."""
    least = LISTED_WEIGHT if numbers else LEAST_WEIGHT
    weights = [item.op.weight if isinstance(item, Step) else 0.0 for item in items]
    total = sum(weights)
    if total < least:
        return None
    made_at = {item.var: number for number, item in enumerate(items)}
    best: tuple[float, int, int, int] | None = None
    for period, low, high in _repeats_of(items, made_at, numbers):
        spared = sum(weights[low + period : high])
        if spared >= least and (best is None or spared > best[0]):
            best = spared, period, low, high
            if spared >= ENOUGH * total:
                break
    if best is None:
        return None
    _, period, low, high = best
    # Where a register of the middle is wanted, the rounds up to there may still be a loop.
    for end in range(high, low + (LEAST - 1) * period, -period):
        found = _written(items, made_at, numbers, used, period, end)
        if found is not None:
            first, rounds = found
            if (rounds.count - 1) * sum(step.op.weight for step in rounds.steps) >= least:
                return first, end, rounds
    return None


def _repeats(
    kinds: Sequence[object], operands: Sequence[Sequence[int]], longest_period: int
) -> Iterator[tuple[int, int, int]]:
    """(period, first, end) of the longest stretch for each period: the same kinds of operations,
    whose operands (numbers of operations; negative: something else) lie as far back or are the
    same. Each period takes as long as there are operations."""
    count = len(kinds)
    numbers: dict[object, int] = {}
    kind = np.array([numbers.setdefault(each, len(numbers)) for each in kinds])
    widest = max(map(len, operands), default=0)
    made = np.array([[*each, *[-1] * (widest - len(each))] for each in operands]).T
    # What else there is lies nowhere: no two are as far back.
    place = np.where(made >= 0, np.arange(count) - made, -count - np.arange(count))
    for period in range(1, min(count // LEAST, longest_period) + 1):
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
    items: Sequence[Item], made_at: Mapping[int, int], numbers: Numbers
) -> Iterator[tuple[int, int, int]]:
    behind = -2 - max((item.var for item in items), default=0) - max(numbers, default=0)

    def place(var: int) -> int:
        # Numbers of a dtype are alike.
        return behind - 1 - numbers[var].num if var in numbers else made_at.get(var, -2 - var)

    kinds = [
        (item.op, item.dtypes, item.dtype) if isinstance(item, Step) else number
        for number, item in enumerate(items)
    ]
    operands = [
        [place(var) for var in item.operands] if isinstance(item, Step) else []
        for item in items
    ]
    return _repeats(kinds, operands, len(items))


def _written(
    items: Sequence[Item], made_at: Mapping[int, int], numbers: Numbers, used: Collection[int],
    period: int, end: int,
) -> tuple[int, Rounds] | None:  # fmt: skip
    """(first item, the rounds) of as many rounds as there can be before `end`."""
    sources = _sources(items, made_at, numbers, period, end) if end >= LEAST * period else None
    if sources is None:
        return None
    wanted = {var for item in items[end:] for var in operands_of(item)} | set(used)
    left: dict[int, tuple[int, int]] = {}
    first = end
    while first >= period and _is_round(items, made_at, numbers, sources, first - period, end):
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
    listed = _listed(items, sources, first, end)
    return first, Rounds(own, sources, count, initial, left, listed)


def _listed(
    items: Sequence[Item], sources: tuple[tuple[Source, ...], ...], first: int, end: int
) -> tuple[tuple[int, ...], ...]:
    """The registers of each operand that is `Each`, round by round."""
    return tuple([
        tuple([items[start + position].operands[place]  # type: ignore[union-attr]
               for start in range(first, end, len(sources))])
        for position, row in enumerate(sources)
        for place, source in enumerate(row)
        if isinstance(source, Each)
    ])  # fmt: skip


def _sources(
    items: Sequence[Item], made_at: Mapping[int, int], numbers: Numbers, period: int, end: int
) -> tuple[tuple[Source, ...], ...] | None:
    """Where the operands of the round before `end` come from; None if it has no such form."""
    found: list[tuple[Source, ...]] = []
    rows = 0
    start = end - period
    for item, before in zip(items[start:end], items[start - period : start], strict=True):
        if not isinstance(item, Step) or not isinstance(before, Step):
            return None
        row: list[Source] = []
        for var, earlier in zip(item.operands, before.operands, strict=True):
            at = made_at.get(var)
            if var == earlier:
                row.append(Same(var))
            elif var in numbers and numbers[var] == numbers.get(earlier):
                row.append(Each(rows))
                rows += 1
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
    numbers: Numbers,
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
        for var, source, last in zip(item.operands, row, model.operands, strict=True):
            if isinstance(source, Same):
                if var != source.var:
                    return False
            elif isinstance(source, Each):
                if numbers.get(var) != numbers[last]:
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


def text_length(kernel: Kernel, traits: DeviceTraits) -> int:
    """Items of a kernel's loop as they are written: those of a loop of registers once."""
    items = kernel.body
    uses, numbers = outer_uses(kernel, items), numbers_of(kernel, traits)
    loops = find(items, uses, numbers) if len(items) >= LEAST else []
    return len(items) - sum([end - first - len(rounds.steps) for first, end, rounds in loops])


def most_steps(graph: Graph, traits: DeviceTraits) -> int:
    """How many operations one kernel of a program may have.

    More where they are rounds of a loop. Where rounds have numbers of their own, as many as some
    whole rounds have: then the kernels are equal, and one text serves them all.
    """
    if len(graph) <= traits.max_steps or traits.max_steps < MAX_STEPS:
        return traits.max_steps
    if _round_of(graph, MAX_REPEATED // LEAST, with_numbers=False):
        return max(traits.max_steps, MAX_REPEATED)
    weights = _round_of(graph, traits.max_steps // 2, with_numbers=True)
    if not weights:
        return traits.max_steps
    rounds = max(int(EQUAL_WEIGHT / sum(weights)), 1)
    is_listed = traits.schedule == "cpu" and all(
        _may_be_listed(dtype)
        for kind, dtype in zip(graph.kinds, graph.dtypes, strict=True)
        if kind is Kind.CONSTANT
    )
    if is_listed and MOST_LISTED * sum(weights) >= 2 * LISTED_WEIGHT:
        rounds = max(rounds, MOST_LISTED)
    return rounds * len(weights)


def _round_of(graph: Graph, longest: int, *, with_numbers: bool) -> list[float]:
    """The operations of a round, in additions each, where most of the graph is rounds of a loop
    that are not longer; `with_numbers`, also of one whose rounds have numbers of their own."""
    # Numbers stand where they are first used: between the operations.
    nodes = [number for number, kind in enumerate(graph.kinds) if kind is not Kind.CONSTANT]
    place = {number: position for position, number in enumerate(nodes)}
    is_step = [graph.kinds[number] is Kind.MAP for number in nodes]
    kinds = [
        (graph.ops[number], graph.shapes[number]) if step else number
        for number, step in zip(nodes, is_step, strict=True)
    ]
    # What is no step is like no other, and a join may have thousands of operands.
    operands = [
        [place.get(one, -2 if with_numbers else -3 - one) for one in graph.inputs[number]]
        if step else []
        for number, step in zip(nodes, is_step, strict=True)
    ]
    least = LOOP_SHARE * sum(is_step)
    for period, first, end in _repeats(kinds, operands, longest):
        if end - first >= least:
            operations = [graph.ops[number] for number in nodes[end - period : end]]
            return [op.weight for op in operations if op is not None]
    return []
