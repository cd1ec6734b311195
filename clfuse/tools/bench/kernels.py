"""``python -m clfuse bench kernels``: user-written kernels with and without fusion, and in Numba.

The same programs are timed as array code and in OpenCL C, too.

Every way of a program of `kernel_programs` is timed by turns in one run beside a copy by hand, and
what comes of its first run is compared with NumPy's. A copy of a whole array moves no bytes here:
both are one value.

What fusion can gain depends on what there is to fuse: of one kernel nothing. So the launches
without and with fusion stand beside the times, and there are means of all programs, of those with
several launches, and of these with programs that their authors run several times over the same
arrays before they look (stream10, nstream10 and their kind).
"""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy

import clfuse as np
from clfuse import config

from .kernel_programs import Program, programs
from .limit import Copy
from .measure import Timing, ratio, repeat

__all__ = ["Row", "lines", "measure"]

WAYS = ("unfused", "arrays", "opencl", "numba", "reassoc")
"""What the kernels in Python are compared with; the last is Numba where it may add in any order."""

ARRAYS_APART, SUMS_APART = 1e-12, 1e-9
"""Part of the largest value by which results may differ: an element adds up 60 numbers, a sum
8 million, which Numba adds one after the other."""


@dataclass
class Row:
    """What was measured of one program.

    seconds: median of every way: ``kernels`` and those of `WAYS` in which it is written.
    ratios: how many times faster the kernels are than each way, and than the copy, in the middle of
        all turns.
    launches: kernels that a run of ``kernels`` and ``unfused`` launches.
    wrong: the ways that did not give what NumPy gives.
    """

    program: Program
    seconds: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)
    launches: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    @property
    def can_fuse(self) -> bool:
        """Whether it has more than one operation on arrays: of one there is nothing to fuse."""
        return self.launches["unfused"] > 1

    def ratio(self, way: str) -> float:
        """How many times faster the kernels in Python are than another way; NaN without it."""
        return self.ratios.get(way, math.nan)


def numba_programs() -> tuple[dict[str, dict[str, Any]], str]:
    """Numba's programs by way and name, and why there are none."""
    try:
        from .numba_programs import PROGRAMS, REASSOCIATED
    except ImportError as error:
        return {}, f"Numba is not measured: {error}; pip install numba, or bash ci/bench kernels"
    return {"numba": PROGRAMS, "reassoc": REASSOCIATED}, ""


def _lazy(run: Callable[..., list[Any]], given: list[Any]) -> Callable[[], Any]:
    def start() -> list[Any]:
        results = run(np, given)
        np.evaluate(*results)  # waits, too
        return results

    return start


def _without_fusion(start: Callable[[], Any]) -> Callable[[], Any]:
    def started() -> Any:
        with config.override(fusion=False):
            return start()

    return started


def measure(
    program: Program, repetitions: int, copy: Copy, progress: Callable[[str], None] = print
) -> Row:
    """Compare all ways with NumPy, then time them by turns."""
    with config.override(fusion=True, build_after_ms=0):  # the steady state
        return _measured(program, repetitions, copy, progress)


def _measured(
    program: Program, repetitions: int, copy: Copy, progress: Callable[[str], None]
) -> Row:
    row = Row(program)
    others, _ = numba_programs()
    ways: dict[str, tuple[Any, bool]] = {
        "kernels": (program.kernels, True), "unfused": (program.kernels, False),
        "arrays": (program.arrays, True),
    }
    if program.opencl is not None:
        ways["opencl"] = (program.opencl, True)
    runs: dict[str, Callable[[], Any]] = {}
    for name, (run, fusion) in ways.items():
        part = program.unfused_part if name == "unfused" else 1
        given = [np.array(each[: len(each) // part]) for each in program.made()]
        np.evaluate(*given)
        start = _lazy(run, given)
        runs[name] = start if fusion else _without_fusion(start)
    for name, compiled in others.items():
        if program.name in compiled:
            runs[name] = partial(
                compiled[program.name], numpy, [each.copy() for each in program.made()]
            )
    expected = [
        numpy.array(each)
        for each in program.arrays(numpy, [each.copy() for each in program.made()])
    ]
    for name, start in runs.items():
        progress(f"{program.name}: {name}, first run")
        before = np.stats()["kernels_launched"]
        with warnings.catch_warnings():
            # What Numba has to say about its own compiling is not the benchmark's.
            warnings.simplefilter("ignore")
            results = start()
        row.launches[name] = (np.stats()["kernels_launched"] - before) * (
            program.unfused_part if name == "unfused" else 1
        )
        results = [numpy.asarray(each) for each in results]
        wanted = expected
        if name == "unfused" and program.unfused_part > 1:
            wanted = [array[: len(array) // program.unfused_part] for array in expected]
        if not all(_agree(*pair) for pair in zip(results, wanted, strict=True)):
            row.wrong.append(name)
    timings = {name: Timing(0.0, 0.0) for name in (*runs, "copy")}
    runs["copy"] = copy.run
    repeat([(timings[name], run) for name, run in runs.items()], repetitions,
           lambda stage: progress(f"{program.name}: {stage}"))
    row.seconds = {name: timing.median_s for name, timing in timings.items()}
    row.ratios = {name: ratio(timings[name].times, timings["kernels"].times) for name in timings}
    row.seconds["unfused"] *= program.unfused_part
    row.ratios["unfused"] *= program.unfused_part
    return row


def _agree(ours: Any, theirs: Any) -> bool:
    """Whether they differ by what another order of a sum makes of it, at most."""
    bound = ARRAYS_APART if numpy.ndim(theirs) else SUMS_APART
    scale = float(numpy.max(numpy.abs(theirs), initial=0))
    return bool(numpy.allclose(ours, theirs, rtol=bound, atol=bound * scale))


def lines(
    *,
    quick: bool,
    repetitions: int,
    names: Collection[str] = (),
    progress: Callable[[str], None] = lambda text: None,
) -> Iterator[str]:
    """The table, line by line; ratios above 1: kernels in Python are faster.

    `names` chooses programs; all without it.
    """
    yield f"{'kernels':13} {'launches':>16} {'ms':>8} {'GB/s':>7} {'of copy':>8} " + " ".join(
        f"{way:>8}" for way in WAYS
    )
    copy = Copy(np.get_device(), 1_000_000) if quick else Copy(np.get_device())
    rows = []
    for program in programs(quick=quick):
        if names and program.name not in names:
            continue
        row = measure(program, repetitions, copy, progress)
        rows.append(row)
        own = row.seconds["kernels"]
        rate = program.nbytes / own / 1e9
        part = program.nbytes / copy.nbytes * row.ratio("copy")
        ratios = " ".join(
            f"{row.ratio(way):7.2f}x" if way in row.seconds else " " * 8 for way in WAYS
        )
        wrong = f"  {' and '.join(row.wrong)} WRONG" if row.wrong else ""
        launches = f"{row.launches['unfused']} -> {row.launches['kernels']}"
        yield (
            f"{program.name:13} {launches:>16} {own * 1e3:8.2f} {rate:7.2f} {part:8.2f} "
            f"{ratios}{wrong}"
        )
    once = [row for row in rows if row.program.steps == 1]
    yield from _means("all but copy, once", [r for r in once if r.program.name != "copy"])
    yield from _means("of several launches, once", [row for row in once if row.can_fuse])
    yield from _means("those, and stream10 and its kind", [row for row in rows if row.can_fuse])
    _, missing = numba_programs()
    if missing:
        yield missing


def _means(of: str, rows: Sequence[Row]) -> Iterator[str]:
    for what, mean in (("mean", statistics.fmean), ("geometric", statistics.geometric_mean)):
        cells = [[row.ratio(way) for row in rows if way in row.seconds] for way in WAYS]
        yield f"{what + ', ' + of:56} " + " ".join(
            f"{mean(found):7.2f}x" if found else " " * 8 for found in cells
        )
