"""Timing of contenders side by side: one process, repetitions in turn, results checked first.

In turn, because a machine's speed drifts: times to be compared must be measured within the same
second. Ratios are those of one turn, and the median of the turns is kept. The order of the
contenders changes from turn to turn. Every repetition starts with calls that are not timed: a core
that slept through a contender with one thread is slow to wake. Medians and minima are kept, too.
"""

from __future__ import annotations

import gc
import math
import random
import statistics
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Any

from clfuse.dataclass import mutable

from .contenders import Clfuse, Contender, Footprint, NumPy, Run
from .limit import Copy
from .programs import Program, error, share_apart

__all__ = ["Row", "Timing", "measure"]

REPETITIONS = 9
# A call that takes less is repeated within one repetition, so that the clock and the waking of
# threads and cores do not count: the steady state is what is compared.
LEAST_S = 0.02
MOST_CALLS = 50
WARMING_CALLS = 5
# Worker threads of other libraries spin for a while after their last work; on few cores that would
# be at the next one's cost.
SETTLE_S = 0.003
# One program is given this long; a slow one gets fewer repetitions, but not less than three.
BUDGET_S = 20.0
LEAST_REPETITIONS = 3
# Where NumPy takes this long, it is measured once.
SLOW_S = 2.0
# What a compiler that contracts a*b + c may differ by from NumPy in float32, and which part of the
# elements by more.
CONTRACTION = 1e-6
TIPPED = 1e-3


@mutable
class Timing:
    """What was measured of one contender on one program; seconds."""

    first_s: float
    error: float
    times: list[float] = field(default_factory=list)
    failure: str = ""

    @property
    def median_s(self) -> float:
        """The middle of the repetitions."""
        return statistics.median(self.times) if self.times else math.nan

    @property
    def least_s(self) -> float:
        """The shortest repetition."""
        return min(self.times, default=math.nan)


@mutable
class Row:
    """What was measured of one program.

    program: which.
    timings: contender's name -> `Timing`; those that cannot express the program are not in it.
    footprint: what a run under clfuse does to the device.
    copy_s: the median of the copies that ran between the repetitions, or NaN.
    copy_nbytes: bytes that one of them reads and writes.
    """

    program: Program
    timings: dict[str, Timing] = field(default_factory=dict)
    footprint: Footprint | None = None
    copy_s: float = math.nan
    copy_nbytes: int = 0

    def seconds(self, name: str) -> float:
        """A contender's median; NaN where there is none, or where its result was wrong."""
        timing = self.timings.get(name)
        return math.nan if timing is None or timing.failure else timing.median_s

    def ratio(self, name: str) -> float:
        """How many times faster clfuse is than a contender: above 1, clfuse is faster."""
        if math.isnan(self.seconds(name)) or math.isnan(self.seconds("clfuse")):
            return math.nan
        return ratio(self.timings[name].times, self.timings["clfuse"].times)

    @property
    def best_peer(self) -> str:
        """The fastest of the contenders that are neither NumPy nor OpenCL; empty if none is."""
        others = {
            name: self.seconds(name)
            for name in self.timings
            if name not in ("numpy", "clfuse", "jit", "unfused", "limit")
            and not math.isnan(self.seconds(name))
        }
        return min(others, key=others.__getitem__, default="")

    @property
    def bandwidth(self) -> float:
        """Bytes that clfuse's kernels move per second, by the plan."""
        return (
            math.nan if self.footprint is None else self.footprint.nbytes / self.seconds("clfuse")
        )

    @property
    def copy_fraction(self) -> float:
        """`bandwidth` as a part of a copy's."""
        return self.bandwidth / (self.copy_nbytes / self.copy_s) if self.copy_nbytes else math.nan


def measure(
    program: Program,
    contenders: Sequence[Contender],
    *,
    quick: bool = False,
    scale: float = 1,
    repetitions: int = REPETITIONS,
    copy: Copy | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Row:
    """Check every contender on a program against NumPy, then time those that are right.

    A contender that fails is not timed; its `Timing.failure` says why.

    program: what to compute.
    contenders: by whom; NumPy is always measured.
    quick: whether to take small inputs.
    scale: how many times the usual number of elements otherwise.
    repetitions: how often, at most.
    copy: timed beside them.
    progress: called with a few words before each stage.
    """
    inputs = program.make_inputs(quick, scale)
    numpy = NumPy()
    expected = numpy.bind(program, inputs)()
    row = Row(program)
    runs: dict[str, Run] = {}
    for contender in (numpy, *(other for other in contenders if other.name != numpy.name)):
        progress(f"{contender.name}, first run")
        bound = first_run(contender, program, inputs, expected)
        if bound is None:
            continue
        timing, run = bound
        row.timings[contender.name] = timing
        if not timing.failure:
            runs[contender.name] = run
    for contender in contenders:
        if isinstance(contender, Clfuse) and contender.fusion and contender.name in runs:
            progress("the plan")
            row.footprint = contender.footprint(program, inputs)
    copies = Timing(0.0, 0.0)
    if row.timings[numpy.name].first_s > SLOW_S and numpy.name in runs:
        # It compiles nothing: its first run is one like the others.
        row.timings[numpy.name].times.append(row.timings[numpy.name].first_s)
        del runs[numpy.name]
    everybody: list[tuple[Timing, Run]] = [(row.timings[name], run) for name, run in runs.items()]
    if copy is not None:
        everybody.append((copies, copy.run))
        row.copy_nbytes = copy.nbytes
    del expected
    repeat(everybody, repetitions, progress)
    row.copy_s = copies.median_s
    return row


def first_run(
    contender: Contender, program: Program, inputs: tuple[Any, ...], expected: tuple[Any, ...]
) -> tuple[Timing, Run] | None:
    """Run a contender once, with all its compiling, and check what it computes; None where it
    cannot express the program."""
    try:
        with warnings.catch_warnings():
            # What a library has to say about its own compiling and fallbacks is not the
            # benchmark's; results are checked.
            warnings.simplefilter("ignore")
            run = contender.bind(program, inputs)
            if run is None:
                return None
            start = time.perf_counter()
            values = run()
            timing = Timing(time.perf_counter() - start, math.inf)
            results = contender.to_host(values)
    except Exception as problem:  # noqa: BLE001, a library that fails must not end the others' run
        failure = f"{type(problem).__name__}: {problem}".splitlines()[0][:300]
        return Timing(math.nan, math.inf, failure=failure), lambda: ()
    timing.error = max(error(want, got) for want, got in zip(expected, results, strict=True))
    # NumPy's bits are asked of clfuse only: others contract a*b + c, which may also tip a
    # comparison here and there.
    exact = program.rtol == 0 and contender.name not in ("clfuse", "jit", "unfused")
    if timing.error > (CONTRACTION if exact else program.rtol) and not (
        exact and max(map(share_apart, expected, results)) < TIPPED
    ):
        timing.failure = f"wrong: largest error {timing.error:.1e} of the largest value"
    return timing, run


def ratio(theirs: Sequence[float], ours: Sequence[float]) -> float:
    """How many times longer the one takes than the other, in the middle of all turns.

    The ratio of two medians is another one where the machine changes its speed: the one may be of a
    fast turn, the other of a slow one.
    """
    if len(theirs) == 1 and ours:  # it was slow
        return theirs[0] / statistics.median(ours)
    turns = [one / other for one, other in zip(theirs, ours, strict=True)]
    return statistics.median(turns) if turns else math.nan


def repeat(
    everybody: Iterable[tuple[Timing, Run]], repetitions: int, progress: Callable[[str], None]
) -> None:
    """Time each in turn, `repetitions` times; a function that takes next to no time is called
    several times in a row."""
    entries = [(timing, run, calls_for(run)) for timing, run in everybody]
    order = random.Random(0)
    deadline = time.perf_counter() + BUDGET_S
    collecting = gc.isenabled()
    gc.disable()
    try:
        for repetition in range(repetitions):
            if repetition >= LEAST_REPETITIONS and time.perf_counter() > deadline:
                break
            progress(f"repetition {repetition + 1} of {repetitions}")
            gc.collect()
            order.shuffle(entries)
            for timing, run, calls in entries:
                time.sleep(SETTLE_S)
                # The steady state: caches hold this contender's arrays, not the last one's, and
                # all cores are awake.
                for _ in range(min(calls, WARMING_CALLS)):
                    run()
                start = time.perf_counter()
                for _ in range(calls):
                    # Results must not live on: clfuse would find them instead of computing them
                    # again.
                    run()
                timing.times.append((time.perf_counter() - start) / calls)
    finally:
        if collecting:
            gc.enable()


def calls_for(run: Run) -> int:
    """How often to call `run` so that it takes `LEAST_S`; it also warms up."""
    start = time.perf_counter()
    run()
    elapsed = time.perf_counter() - start
    return min(max(math.ceil(LEAST_S / max(elapsed, 1e-9)), 1), MOST_CALLS)
