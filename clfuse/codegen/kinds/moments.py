"""Moments in one pass: sums of rows, and of squared distances from the mean, read each row once.

    sum((x - m)**2)  =  squares - d * (2 * off - n * d)     off = sum(x - g), d = m - g,
                                                            squares = sum((x - g)**2)

for any guess g of the mean m. The sum itself is added up beside them: from that of the distances,
``off + n * g``, sums of whole numbers would not be whole. Other folds of the first phase, such as
`minimum`, are in the same pass.

The mean is known when a row has been read, so two phases read it twice, the second time from the
cache, while nothing comes from memory. The rows before suggest where the mean lies. Where that was
no good guess, so that digits cancel, or a sum is not finite, the row goes through both phases.

The last row is no part of the guess: its mean is known long after the processor has begun with the
next one. The guess lies on a line through the means of the two rows before it.

Rows of one array (blocks of a long axis): the distance of two neighbours' means, squared, as often
as a row is long, is at most twice the squared distances of all from the mean of all, and a guess is
some such distances off. So nothing that the guess costs is seen in the variance of the whole.

Columns on a CPU (`codegen.kinds.column_moments`) do so where a unit's accumulators are registers:
three arrays of them cost as much as to read the rows again, which are in the second-level cache
(1.0 to 1.2 times the processor time of two phases). They guess from the column itself: the mean of
its first `SAMPLES` elements is a quarter of the standard deviation off, where they are in no order.
A unit has some hundred columns, and one that cancels sends all of them through both phases: fewer
samples would be too few. After that half of them come from the other end, which suits columns that
rise or fall; where the first rows do, they are better, as the pass begins with them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final

import numpy as np

from clfuse.codegen.lines.body import Body
from clfuse.codegen.lines.expressions import Expressions, Register
from clfuse.codegen.lines.folds import Fold
from clfuse.dataclass import frozen
from clfuse.dtypes import register_type
from clfuse.schedule.dataflow import needed_items
from clfuse.schedule.records import Accumulator, Carried, Item, Kernel, Load, Scalar, Step
from clfuse.schedule.shape.geometry import MANY_ROWS

LEAST_LENGTH: Final = 256
"""Shorter rows take no longer twice than what is asked of a guess."""

MOST_CANCELLED: Final = 2
"""The squares around the guess may be so many times those around the mean: a bit is lost."""

SAMPLES: Final = 16
"""Elements of a column that its guess is the mean of."""

GUESS: Final = -1
"""What the guess has for a register's number."""


@frozen
class Moments:
    """What the template needs beside its phases.

    phase: the pass around a guess; its folds are the sum and the squares of the distances from it,
        then all those of the first phase.
    mean: the register of the mean, in the first phase's epilogue.
    squares: the number of the squares among the second phase's folds; all others are distances.
    sample: the first phase with nothing but what the mean is of: its fold is `Guess`.
    """

    phase: Kernel
    mean: int
    squares: int
    sample: Kernel

    @property
    def dtype(self) -> np.dtype[Any]:
        """The sums' type."""
        return self.phase.accumulators[0].dtype

    def carry(self, body: Body, text: str = "guess") -> None:
        """Let the body of `phase` know the guess."""
        body.carried[GUESS] = Register(text, self.dtype)

    def kind(self) -> str:
        """The type of the sums."""
        return register_type(self.dtype)

    def known(self, number: int, mean: str, guess: str, off: str, squares: str) -> str:
        """The second phase's fold `number`, from the sums around `guess`."""
        if number == self.squares:
            return f"{squares} - ({mean} - {guess}) * (2 * {off} - length * ({mean} - {guess}))"
        return f"{off} - length * ({mean} - {guess})"


class Guess(Fold):
    """The mean of what is sampled of a column; the very value where all are equal."""

    def fold(
        self, writer: Expressions, value: str, position: str, item: str, item_position: str
    ) -> list[str]:
        """As `Fold.fold`, with a ``share`` of 1, 1/2, 1/3, ..."""
        return [f"{value} = {value} + ({item} - {value}) * share;"]


def moments_of(kernel: Kernel) -> Moments | None:
    """One pass for the first two phases, where they are a sum and the squares around its mean."""
    if len(kernel.phases) < 2 or kernel.schedule != "cpu" or kernel.width == 1:
        return None
    first, second = kernel.phases[:2]
    columns = kernel.vector < len(kernel.extents) - kernel.reduced
    if kernel.reduced != 1 or kernel.extents[-1] < LEAST_LENGTH:
        return None
    if columns and not kernel.even:
        return None
    if not columns and math.prod(kernel.extents[:-1]) < MANY_ROWS:
        return None
    if not _only_folds(first, columns) or not _only_folds(second, columns):
        return None
    for number, fold in enumerate(first.accumulators):
        if fold.name == "add" and fold.dtype.char in "fd":
            found = _around_a_guess(kernel, number)
            if found is not None:
                return found
    return None


def _around_a_guess(kernel: Kernel, number: int) -> Moments | None:
    """The pass where the mean is that of the first phase's fold `number`."""
    first, second = kernel.phases[:2]
    sum_ = first.accumulators[number]
    if any(fold.name != "add" or fold.dtype != sum_.dtype for fold in second.accumulators):
        return None
    steps = {item.var: item for item in second.body if isinstance(item, Step)}
    found = [_squared(steps, fold.operand) for fold in second.accumulators]
    square = next((each for each in found if each is not None), None)
    if square is None or square.dtype != sum_.dtype:
        return None
    folded = [fold.operand for fold in second.accumulators]
    if folded.count(square.var) != 1 or set(folded) - {square.var, *square.operands}:
        return None
    distance = steps.get(square.operands[0])
    if distance is None or distance.op.name != "subtract" or distance.dtype != sum_.dtype:
        return None
    if any(dtype != sum_.dtype for dtype in distance.dtypes):
        return None
    carried = [item for item in second.body if isinstance(item, Carried)]
    if len(carried) != 1 or carried[0].var != distance.operands[1]:
        return None
    added = (carried[0].var, distance.var, square.var)
    sampled = needed_items(first.body, {sum_.operand})
    value = _same_value(
        sampled, [item for item in second.body if item.var not in added], sum_.operand
    )
    if value is None or value != distance.operands[0] or not _is_after(first, carried[0].source):
        return None
    var = max(item.var for phase in kernel.phases for item in [*phase.body, *phase.epilogue])
    guess, off, off_squared = range(var + 1, var + 4)
    body: list[Item] = [
        *first.body,
        replace(carried[0], var=guess, source=GUESS),
        replace(distance, var=off, operands=(sum_.operand, guess)),
        replace(square, var=off_squared, operands=(off,) * len(square.operands)),
    ]
    folds = [
        Accumulator(off, "add", off, sum_.dtype),
        Accumulator(off_squared, "add", off_squared, sum_.dtype),
        *first.accumulators,
    ]
    phase = replace(first, body=body, accumulators=folds, epilogue=[], results=[], then=[])
    sample = replace(phase, body=sampled, accumulators=[sum_], compensated=False)
    return Moments(phase, carried[0].source, found.index(square), sample)


def _squared(steps: dict[int, Step], register: int) -> Step | None:
    """What makes a register, where that is the square of another."""
    step = steps.get(register)
    if step is None or step.op.name not in ("multiply", "square") or len(set(step.operands)) != 1:
        return None
    return step


def _only_folds(phase: Kernel, columns: bool) -> bool:
    """Whether a phase only folds; rows do so plainly, and no positions."""
    if phase.stores or phase.chunk >= 0 or not phase.accumulators:
        return False
    if not columns and (
        phase.compensated or any(fold.position is not None for fold in phase.accumulators)
    ):
        return False
    return not any(isinstance(item, Load) and item.access.seams for item in phase.body)


def _is_after(phase: Kernel, register: int) -> bool:
    """Whether the phase's epilogue has this register."""
    return any(item.var == register for item in phase.epilogue)


def _same_value(first: list[Item], second: list[Item], register: int) -> int | None:
    """The register of `second` that has what `register` of `first` has, if they are the same."""
    if len(first) != len(second):
        return None
    of: dict[int, int] = {}
    for one, other in zip(first, second, strict=True):
        of[one.var] = other.var
        if isinstance(one, Step):
            if any(operand not in of for operand in one.operands):
                return None
            renamed: Item = replace(one, operands=tuple([of[item] for item in one.operands]))
        elif isinstance(one, Load):
            if one.position is not None or one.other is not None:
                return None
            renamed = one
        elif isinstance(one, Scalar):
            renamed = one
        else:
            return None
        if _fetched_alike(replace(renamed, var=other.var)) != _fetched_alike(other):
            return None
    return of.get(register)


def _fetched_alike(item: Item) -> Item:
    """The item without how its load goes through the caches, which changes no value: only the first
    pass over a row asks for what comes next, where the device does at all."""
    return replace(item, ahead=None, past=False) if isinstance(item, Load) else item
