"""Moments of columns on a CPU, in one pass: samples give a guess, sums around it give both phases.

    for (int sample = 0; sample < 16; sample++) { ... q4[v] = q4[v] + (r0 - q4[v]) * share; }
    for (int i1 = 0; i1 < n1; i1++) { ... q2[v] = q2[v] + r5; q3[v] = q3[v] + r6; }
    fits &= all(q3[v] <= 2 * (q3[v] - q2[v] * (q2[v] / length)));
"""

from __future__ import annotations

from clfuse.codegen.lines.body import Body
from clfuse.codegen.lines.expressions import Register
from clfuse.codegen.lines.folds import Fold
from clfuse.codegen.lines.lanes import Lanes
from clfuse.dataclass import mutable

from .moments import GUESS, MOST_CANCELLED, Guess, Moments

__all__ = ["AroundGuess"]

Names = list[list[tuple[str, str]]]
"""The texts of value and position of every fold, by way."""


@mutable
class AroundGuess:
    """A pass around a guess, as `strips` writes it.

    moments: what is passed over.
    body_of_sample, body: of the samples, and of the pass.
    folds: the pass's: the sum and the squares around the guess, then the first phase's.
    names: their texts, by way, when the pass is written.
    """

    moments: Moments
    body_of_sample: Body
    body: Body
    folds: list[Fold]
    names: Names | None = None

    def guess(self) -> Guess:
        """The fold of the samples."""
        (accumulator,) = self.moments.sample.accumulators
        return Guess(self.folds[-1].number + 1, accumulator, self.folds[0].lane_nbytes)

    def carry(self, ways: list[Lanes], names: Names) -> None:
        """Let the pass know the guesses, whose texts are `names`."""
        for way, ((value, _),) in zip(ways, names, strict=True):
            way.carried[GUESS] = Register(value, self.moments.dtype)

    def check(self, ways: list[Lanes]) -> list[list[str]]:
        """Lines that take ``fits`` back where digits cancel, by way."""
        assert self.names is not None
        found = []
        for way, names in zip(ways, self.names, strict=True):
            (off, _), (squares, _), *_ = names
            around = f"{MOST_CANCELLED} * ({squares} - {off} * ({off} / length))"
            if way.width == 1:
                found.append([f"fits &= {squares} < INFINITY && {squares} <= {around};"])
            else:
                infinity = f"({way.writer.type_of(self.moments.dtype, 0)})(INFINITY)"
                found.append([f"fits &= all(({squares} < {infinity}) & ({squares} <= {around}));"])
        return found

    def known_of_folds(self, ways: list[Lanes], names: Names) -> list[list[str]]:
        """What the first phase's folds are, whose texts are `names`, by way."""
        assert self.names is not None
        found = []
        for own, theirs in zip(self.names, names, strict=True):
            lines = []
            for mine, its in zip(own[2:], theirs, strict=True):
                lines += [f"{new} = {old};" for new, old in zip(its, mine, strict=True) if old]
            found.append(lines)
        return found

    def known_of_distances(self, ways: list[Lanes], names: Names) -> list[list[str]]:
        """The same of the second phase's."""
        assert self.names is not None
        found = []
        for way, own, theirs in zip(ways, self.names, names, strict=True):
            guess, mean = way.carried[GUESS].text, way.carried[self.moments.mean].text
            (off, _), (squares, _), *_ = own
            found.append(
                [
                    f"{text} = {self.moments.known(number, mean, guess, off, squares)};"
                    for number, (text, _) in enumerate(theirs)
                ]
            )
        return found
