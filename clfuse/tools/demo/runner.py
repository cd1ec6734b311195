"""Runs each demo program under NumPy and under clfuse, times both and compares the results.

A program is one source file with three functions and a title:

``prepare(quick) -> tuple``
    makes the inputs, which stay out of the measured time; random ones are NumPy's under both;
``main(*inputs) -> dict``
    computes named results; called again for every repetition;
``draw(results, folder) -> path``
    optional, writes a picture;
``TITLE``
    is formatted with the inputs.

The file is executed twice: as it is, and under `clfuse.tools.substitution.Substitution`, which is
what ``python -m clfuse run`` uses.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy

import clfuse
from clfuse import config
from clfuse.dataclass import mutable
from clfuse.tools.substitution import Substitution, load

__all__ = ["PROGRAMS", "Measurement", "measure", "program_paths"]

PROGRAMS = Path(__file__).parent / "programs"

# What a program's inputs and results may be besides clfuse's own types.
HOST_TYPES = (bool, int, float, complex, str, numpy.generic, numpy.ndarray)

REPETITIONS = 7
# A slow program is repeated less: its time varies less, too.
BUDGET_S = 4.0
LEAST_REPETITIONS = 2
MOST_WARM_RUNS = 5

# What float64 programs of a few hundred operations may differ by, as a part of the largest value:
# the transcendental functions are within 4 ulp, and sums are taken in another order.
LARGEST_ERROR = 1e-9
# Two estimates that differ by more than this many standard errors disagree (one time in 1.7 million
# by chance).
LARGEST_STANDARD_ERRORS = 5.0


@mutable
class Measurement:
    """What was measured of one program.

    name, title: the file's name without its suffix, and what the program says that it does.
    numpy_s, first_s, steady_s: seconds: NumPy (median), clfuse's first run with all planning and
        compiling, and its later ones (median).
    kernels: kernels launched by one later run.
    nbytes: bytes of device memory that those kernels read and write, by the plan.
    complete: whether `nbytes` covers the whole run: a program that looks at values on its way is
        planned in parts.
    fallbacks: operations of one later run that NumPy did on the host.
    error: largest difference from NumPy as a part of the largest value; in standard errors for an
        estimate.
    statistical: whether `error` is in standard errors.
    picture: what the program drew.
    """

    name: str
    title: str
    numpy_s: float = 0.0
    first_s: float = 0.0
    steady_s: float = 0.0
    kernels: int = 0
    nbytes: int = 0
    complete: bool = True
    fallbacks: int = 0
    error: float = 0.0
    statistical: bool = False
    picture: Path | None = None
    numpy_times: list[float] = field(default_factory=list)
    steady_times: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """How many times faster than NumPy the later runs are."""
        return self.numpy_s / self.steady_s

    @property
    def agrees(self) -> bool:
        """Whether the results are NumPy's, as far as rounding and chance allow."""
        return self.error <= (LARGEST_STANDARD_ERRORS if self.statistical else LARGEST_ERROR)


def program_paths() -> dict[str, Path]:
    """The demo's programs: name -> source file."""
    return {path.stem: path for path in sorted(PROGRAMS.glob("*.py"))}


class Contender:
    """One program under one library: its module, its inputs, and how a run of it is brought to an
    end."""

    def __init__(
        self,
        path: Path,
        quick: bool,
        context: AbstractContextManager[object],
        finish: Callable[..., None],
    ) -> None:
        self.context = context
        self.finish = finish
        with context:
            self.module: ModuleType = load(str(path), f"demo_{path.stem}")
            with config.override(exact_random=True):
                self.inputs: tuple[Any, ...] = self.module.prepare(quick)
            self.finish(*self.inputs)

    def run(self) -> tuple[dict[str, Any], float]:
        """One run from the inputs to results in memory: results, seconds."""
        with self.context:
            start = time.perf_counter()
            results = self.module.main(*self.inputs)
            self.finish(*results.values())
            return results, time.perf_counter() - start


def finish_clfuse(*values: Any) -> None:
    """Compute the arrays among `values` and wait until the device has them."""
    clfuse.evaluate(*device_arrays(values))
    clfuse.synchronize()


def finish_numpy(*values: Any) -> None:
    """NumPy has computed its results when it returns them."""


def device_arrays(values: Any) -> Iterator[Any]:
    """Those of `values` that clfuse may still have to compute: its arrays and its lazy scalars."""
    # A lazy scalar says to isinstance that it is NumPy's: ask for the type itself.
    return (value for value in values if not issubclass(type(value), HOST_TYPES))


def _build_kernels(fused: Contender, progress: Callable[[str], None]) -> None:
    """Run a program until its kernels are there: one run waits for what a program would have built
    beside NumPy's work after some runs more."""
    with clfuse.config.override(build_after_ms=0):
        fused.run()
    for number in range(2, MOST_WARM_RUNS + 1):
        before = clfuse.stats()["programs_built"]
        progress(f"clfuse, run {number}")
        fused.run()
        if clfuse.stats()["programs_built"] == before:
            break


def disagreement(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> tuple[float, bool]:
    """The largest difference of results from NumPy's, and whether it is in standard errors."""
    if "standard_error" in expected:
        difference = abs(float(expected["estimate"]) - float(actual["estimate"]))
        spread = numpy.hypot(float(expected["standard_error"]), float(actual["standard_error"]))
        return float(difference / spread), True
    return max(largest_error(expected[name], actual[name]) for name in expected), False


def largest_error(expected: Any, actual: Any) -> float:
    """The largest difference of two arrays as a part of the largest value; infinite for another
    shape or dtype."""
    wanted, got = numpy.asarray(expected), numpy.asarray(clfuse.asnumpy(actual))
    if wanted.shape != got.shape or wanted.dtype != got.dtype:
        return float("inf")
    if wanted.dtype == bool:
        return float(numpy.mean(wanted != got))
    with numpy.errstate(invalid="ignore"):
        difference = numpy.abs(wanted.astype(float) - got.astype(float))
    if numpy.isnan(difference).any():
        return float("inf")
    return float(difference.max(initial=0.0) / max(numpy.abs(wanted).max(initial=0.0), 1e-300))


def measure(
    path: Path,
    *,
    quick: bool = False,
    folder: Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Measurement:
    """Run the program in `path` under both libraries.

    path: the program's source file.
    quick: whether it is to take small inputs.
    folder: where its picture goes; without one it draws none.
    progress: called with a few words before each stage.
    """
    progress("NumPy")
    plain = Contender(path, quick, nullcontext(), finish_numpy)
    expected, _ = plain.run()
    result = Measurement(path.stem, str(plain.module.TITLE).format(plain.inputs))

    progress("clfuse, first run")
    fused = Contender(path, quick, Substitution([str(path.parent)]), finish_clfuse)
    actual, result.first_s = fused.run()
    result.error, result.statistical = disagreement(expected, actual)
    if folder is not None and hasattr(fused.module, "draw"):
        folder.mkdir(parents=True, exist_ok=True)
        with fused.context:
            result.picture = Path(fused.module.draw(actual, folder))

    # Results that stayed alive would be found again instead of computed: they have to go before
    # each run.
    del actual, expected
    _build_kernels(fused, progress)
    deadline = time.perf_counter() + BUDGET_S
    for repetition in range(REPETITIONS):
        if repetition >= LEAST_REPETITIONS and time.perf_counter() > deadline:
            break
        progress(f"both, repetition {repetition + 1}")
        result.numpy_times.append(plain.run()[1])
        before = clfuse.stats()
        result.steady_times.append(fused.run()[1])
        after = clfuse.stats()
        result.kernels = after["kernels_launched"] - before["kernels_launched"]
        result.fallbacks = after["fallbacks"] - before["fallbacks"]
    result.numpy_s = statistics.median(result.numpy_times)
    result.steady_s = statistics.median(result.steady_times)

    progress("the plan")
    with fused.context:
        before = clfuse.stats()
        results = fused.module.main(*fused.inputs)
        result.complete = clfuse.stats()["kernels_launched"] == before["kernels_launched"]
        plan = clfuse.explain(*device_arrays(results.values()))
        result.nbytes = sum(kernel.nbytes for kernel in plan.kernels)
    return result
