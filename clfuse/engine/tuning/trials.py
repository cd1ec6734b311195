"""Trials: which geometry of a kernel is timed at which of its launches, and which one is kept.

    launches   1 ... 64   as planned, nothing is timed
               65, 67, .. as planned, timed: the time that all others are compared with
               ...        the first candidate, as planned, the first candidate, ... timed by turns
               ...        the next one, beside the best so far
               ...        the best of them beside what was planned, once more
               from then  the best

Nothing here reads a clock or launches anything: times come in, decisions go out. What the timed
launches cost is added up, and none is asked for unless all of it, with the most that is expected of
the next one, is less than `SHARE` of what the kernel has run. What a launch takes cannot be known
before it was done: a candidate of which one takes more than twice as long is not launched again.
Its first launch alone counts for nothing, where drivers finish their work on a program and the
caches know none of it; a second chance is all that it gets.
"""

from __future__ import annotations

import math
import statistics
from enum import Enum
from typing import Final

from clfuse.dataclass import frozen

__all__ = ["AT_ONCE", "NEVER", "ORDINARY", "Action", "Limits", "Trials", "What"]

NEVER: Final = 1 << 60
"""Launches until something is due, where nothing is."""

REPEATS: Final = 5
"""Times of a candidate that are compared with as many of the best."""

MOST_REPEATS: Final = 15
"""The same, where fewer do not tell: other work on the machine comes and goes."""

SURE: Final = 2.6
"""Standard deviations by which the sum of a candidate's ranks must be less than by chance, or it is
not better (Mann and Whitney 1947): of five and five times each of the one is less than all of the
other."""

UNSURE: Final = 1.0
"""Where it is less by no more than so many, more times are not worth it."""

FEWEST: Final = 2
"""Times after which a candidate is dropped if none of them is better than the best's usual one."""

CLEARLY: Final = 0.95
"""A geometry is better than another if it takes this part of its time."""

SLOW: Final = 2.0
"""So many times the usual time is too long for any launch."""

OVERHEAD_NS: Final = 150_000.0
"""Of a timed launch, until one was made: Python's way to it, and markers in two queues."""

BUILD_NS: Final = 250e6
"""Of a program in the background, until one was built: its compiler may have taken the cores on
which the kernels run."""

WRITING_NS: Final = 2e6
"""Of a candidate's text, until one was written."""

SPACING: Final = 2
"""Launches from one that is timed to the next, at least: the time of the first is there then, where
launches are waited for."""


@frozen
class Limits:
    """What tuning may cost.

    share: the part of the time which a kernel has run, that may be lost.
    least_launches: launches before the first that is timed. Caches are warm then, and it is no
        short run.
    least_ns: the usual time of kernels that are worth it.
    """

    share: float
    least_launches: int
    least_ns: float


ORDINARY: Final = Limits(share=0.02, least_launches=64, least_ns=20_000.0)

AT_ONCE: Final = Limits(share=math.inf, least_launches=1, least_ns=20_000.0)
"""For ``bench --tune``."""


class What(Enum):
    """What is done at a kernel's next launch."""

    RUN = "run"
    WRITE = "write"
    BUILD = "build"
    TIME = "time"


@frozen
class Action:
    """What is to be done at a launch, with candidate `number`; 0 is what was planned.

    A candidate that is to be written or built is not launched yet; the launch is an ordinary one.
    """

    what: What
    number: int = 0


RUN: Final = Action(What.RUN)


class Trials:
    """The trials of one kernel.

    Candidates are numbered from 1; the geometry that was planned is 0.

    Parameters
    ----------
    candidates : int
        How many there are.
    limits : Limits
    guess_ns : float
        What a launch takes, as far as a model knows: the first that is timed waits until the kernel
        has run long enough by that.

    best (int): the geometry that ordinary launches should have.
    is_done (bool): whether nothing more is tried.
    launches (int): launches so far.
    lost_ns (float): what timing, trying and building have cost so far.
    """

    def __init__(
        self, candidates: int, limits: Limits = ORDINARY, guess_ns: float = math.inf
    ) -> None:
        self._limits = limits
        self._least = max(
            limits.least_launches, math.ceil(OVERHEAD_NS / (limits.share * max(guess_ns, 1.0)))
        )
        self._left = list(range(1, candidates + 1))
        self._steps = [What.TIME, *[What.WRITE] * candidates]
        self._overhead_ns = OVERHEAD_NS
        self._writing_ns = WRITING_NS
        self._build_ns = BUILD_NS
        self._building = False
        self._usual_ns = 0.0  # of the best
        self._part = 1.0  # of the time of what was planned, that the best takes
        self._ran_ns = 0.0
        self._own: list[float] = []  # of the candidate that is tried, its first launch left out
        self._others: list[float] = []  # of the best, since it is tried
        self._first_ns: float | None = None  # its first launch
        self._is_last = False  # whether the best is compared with what was planned
        self.best = 0
        self.is_done = not self._left
        self.launches = 0
        self.lost_ns = 0.0

    # -- what comes in -----------------------------------------------------------------------------

    def ran(self, launches: int) -> None:
        """There were so many launches more, timed ones among them."""
        self.launches += launches
        self._ran_ns += launches * self._usual_ns

    def timed(self, number: int, elapsed_ns: float, overhead_ns: float) -> None:
        """A launch that was asked for took so long, on the device; all around it so much more."""
        if self.is_done:
            return
        self._overhead_ns = overhead_ns
        self.lost_ns += overhead_ns
        if self._usual_ns == 0.0:
            self._others.append(elapsed_ns)
            if len(self._others) > FEWEST:
                self._begin()
            return
        tried = self._tried
        if number == tried:
            self.lost_ns += max(elapsed_ns - self._usual_ns, 0.0)
            self._note_own(elapsed_ns)
        else:
            self._others.append(elapsed_ns)
        if not self.is_done and min(len(self._own), len(self._others)) >= REPEATS:
            self._compare()

    def lost(self, elapsed_ns: float) -> None:
        """Something else has cost so much."""
        self.lost_ns += elapsed_ns

    def refused(self, number: int) -> None:
        """A candidate cannot be, does not build, or the driver does not launch it with a time.
        Where that is so of the best, nothing can be compared."""
        self._building = False
        if self.is_done:
            return
        if number == self.best:
            self.is_done = True
        elif number == self._tried:
            self._drop()

    def written(self, number: int, elapsed_ns: float, *, is_built: bool) -> None:
        """A candidate that was to be written is there, after so long; whether it needs no program
        of its own."""
        self._steps[number] = What.TIME if is_built else What.BUILD
        self._writing_ns = elapsed_ns
        self.lost_ns += elapsed_ns

    def built(self, number: int, elapsed_ns: float) -> None:
        """A candidate that was to be built is there; so long it has kept the device's cores."""
        self._building = False
        self._steps[number] = What.TIME
        self._build_ns = elapsed_ns
        self.lost_ns += elapsed_ns

    # -- what goes out -----------------------------------------------------------------------------

    @property
    def tried(self) -> int:
        """How many candidates, in their order, are tried no more."""
        return len(self._steps) - 1 - len(self._left)

    def times_ns(self) -> tuple[float, float]:
        """The usual times of what was planned and of the best, as far as they are known; 0 where
        they are not."""
        return self._usual_ns / self._part, self._usual_ns

    def next(self) -> Action:
        """What the next launch is for."""
        if self.is_done or self._building or self.launches < self._least:
            return RUN
        if self.lost_ns + self._expected_ns() > self._spare_ns():
            return RUN
        if self._usual_ns == 0.0:
            return Action(What.TIME)
        tried = self._tried
        step = self._steps[tried]
        if step is not What.TIME:
            self._building = step is What.BUILD
            return Action(step, tried)
        if len(self._own) > len(self._others) or (self._first_ns is None and not self._others):
            return Action(What.TIME, self.best)
        return Action(What.TIME, tried)

    def due_after(self) -> int:
        """After how many launches more it should be asked what is `next`."""
        if self.is_done:
            return NEVER
        if self.launches < self._least:
            return self._least - self.launches
        missing = self.lost_ns + self._expected_ns() - self._spare_ns()
        if missing <= 0.0:
            return SPACING
        return max(SPACING, math.ceil(missing / (self._limits.share * self._launch_ns())))

    # -- inside ------------------------------------------------------------------------------------

    @property
    def _tried(self) -> int:
        """The candidate that is tried; what was planned where the best is compared with that."""
        return 0 if self._is_last else self._left[0]

    def _launch_ns(self) -> float:
        """What a launch takes, as far as it is known; infinite before one was timed."""
        return self._usual_ns or min(self._others, default=math.inf)

    def _spare_ns(self) -> float:
        """What may be lost of what the kernel has run."""
        ran_ns = self._ran_ns if self._usual_ns else self.launches * self._launch_ns()
        return self._limits.share * ran_ns

    def _expected_ns(self) -> float:
        """The most that the next step is expected to cost."""
        if self._usual_ns == 0.0:
            return self._overhead_ns
        step = self._steps[self._tried]
        if step is not What.TIME:
            return self._writing_ns if step is What.WRITE else self._build_ns
        longest = max([self._first_ns or 0.0, *self._own], default=0.0)
        if self._first_ns is None:
            longest = SLOW * self._usual_ns
        return self._overhead_ns + max(longest - self._usual_ns, 0.0)

    def _begin(self) -> None:
        """The usual time is known."""
        self._usual_ns = statistics.median(self._others)
        self._ran_ns = self.launches * self._usual_ns
        self._others = []
        if self._usual_ns < self._limits.least_ns:
            self.is_done = True

    def _note_own(self, elapsed_ns: float) -> None:
        """The candidate has run once more."""
        if self._first_ns is None:
            self._first_ns = elapsed_ns
            return
        self._own.append(elapsed_ns)
        if self._is_last:  # it is what was planned
            return
        usual = max([self._usual_ns, *self._others[-1:]])
        is_hopeless = len(self._own) == FEWEST and min(self._own) > usual
        if is_hopeless or elapsed_ns > SLOW * self._usual_ns:
            self._drop()

    def _compare(self) -> None:
        """Keep the candidate if it is clearly better than the best beside which it ran."""
        own, others = statistics.median(self._own), statistics.median(self._others)
        better, worse = (self._others, self._own) if self._is_last else (self._own, self._others)
        sure = _deviations(better, worse)
        if UNSURE < sure < SURE and len(better) + len(worse) < 2 * MOST_REPEATS:
            return
        is_better = sure >= SURE and statistics.median(better) < CLEARLY * statistics.median(worse)
        if self._is_last:  # the candidate is what was planned
            self._part, self._usual_ns = others / own, others
            if not is_better:
                self.best, self._part, self._usual_ns = 0, 1.0, own
            self.is_done = True
            return
        if is_better:
            self.best, self._usual_ns = self._tried, own
            self._part *= own / others
        else:
            self._usual_ns = others
        self._drop()

    def _drop(self) -> None:
        """Come to the next candidate."""
        self._own, self._others, self._first_ns = [], [], None
        if self._is_last:
            self.is_done = True
            return
        del self._left[0]
        if self._left:
            return
        if self.best == 0:
            self.is_done = True
        else:
            self._is_last = True


def _deviations(shorter: list[float], longer: list[float]) -> float:
    """By how many standard deviations more often than by chance one of the first times is less than
    one of the others."""
    wins = sum([(a < b) + 0.5 * (a == b) for a in shorter for b in longer])
    count, other = len(shorter), len(longer)
    return (wins - count * other / 2) / math.sqrt(count * other * (count + other + 1) / 12)
