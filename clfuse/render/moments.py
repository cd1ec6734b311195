"""Sums of rows, and of squares of what is left without their means, in one pass over each row;
`render.reductions` asks.

    sum((x - m)**2)  =  squares - d * (2 * off - n * d)     off = sum(x - g), d = m - g,
                                                            squares = sum((x - g)**2)

for any guess g of the mean m.

The mean is known when a row has been read, so two phases read it twice, the second time from the
cache, while nothing comes from memory. The rows before suggest where the mean lies. Where that was
no good guess, so that digits cancel, or a sum is not finite, the row goes through both phases.

The last row has no say in it: its mean is known long after the processor has begun with the next
one, and to wait for it took 2 to 5% longer (PoCL and Intel's runtime, EPYC). What two rows before
it suggest is a line through their means.

Rows of one array (blocks of a long axis): the distance of two neighbours' means, squared, as often
as a row is long, is at most twice the squared distances of all from the mean of all, and a guess is
some such distances off. So nothing that the guess costs is seen in the variance of the whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from ..dtypes import register_type
from ..plan.schedule import Accumulator, Carried, Item, Kernel, Load, Scalar, Step
from .body import Body
from .expressions import Register

LEAST_LENGTH: Final = 256
"""Shorter rows take no longer twice than what is asked of a guess."""

LEAST_ROWS: Final = 1024
"""Of fewer rows most work-items have only some."""

MOST_CANCELLED: Final = 2
"""The squares around the guess may be so many times those around the mean: a bit is lost."""

GUESS: Final = -1
"""What the guess has for a register's number."""


@dataclass(frozen=True, slots=True)
class Moments:
    """What the template needs beside its phases.

    Attributes
    ----------
    phase : Kernel
        The pass around a guess; its folds are the sum and the squares.
    mean : int
        The register of the mean, in the first phase's epilogue.
    """

    phase: Kernel
    mean: int

    def carry(self, body: Body) -> None:
        """Let the body of `phase` know the guess."""
        dtype = self.phase.accumulators[0].dtype
        body.carried[GUESS] = Register("guess", dtype)

    def kind(self) -> str:
        """The type of the sums."""
        return register_type(self.phase.accumulators[0].dtype)

    def squares(self, mean: Register) -> str:
        """The squared distances from the mean, added up."""
        return f"squares - ({mean.text} - guess) * (2 * off - length * ({mean.text} - guess))"


def moments_of(kernel: Kernel) -> Moments | None:
    """One pass for the first two phases, where they are a sum and the squares around its mean."""
    if len(kernel.phases) < 2 or kernel.schedule != "cpu" or kernel.width == 1:
        return None
    first, second = kernel.phases[:2]
    if not _folds_one_sum(first) or not _folds_one_sum(second):
        return None
    *kept, length = kernel.extents
    if kernel.reduced != 1 or length < LEAST_LENGTH or math.prod(kept) < LEAST_ROWS:
        return None
    sum_, squares = first.accumulators[0], second.accumulators[0]
    steps = {item.var: item for item in second.body if isinstance(item, Step)}
    square = steps.get(squares.operand)
    if square is None or sum_.dtype != squares.dtype or square.dtype != sum_.dtype:
        return None
    if square.op.name not in ("multiply", "square") or len(set(square.operands)) != 1:
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
    value = _same_value(
        first.body, [item for item in second.body if item.var not in added], sum_.operand
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
    ]
    phase = replace(first, body=body, accumulators=folds, epilogue=[], results=[], then=[])
    return Moments(phase, carried[0].source)


def _folds_one_sum(phase: Kernel) -> bool:
    """Whether a phase adds up one value of each element, plainly, and stores nothing else."""
    if len(phase.accumulators) != 1 or phase.stores or phase.compensated or phase.chunk >= 0:
        return False
    fold = phase.accumulators[0]
    seamed = any(isinstance(item, Load) and item.access.seams for item in phase.body)
    return fold.name == "add" and fold.dtype.char in "fd" and not seamed


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
        if replace(renamed, var=other.var) != other:
            return None
    return of.get(register)
