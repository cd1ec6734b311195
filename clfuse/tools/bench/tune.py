"""``python -m clfuse bench --tune``: measures what a device's traits assume, has the benchmark's
kernels tuned, and keeps the results.

Each trait is measured with programs whose time depends on it, by the shortest of several runs:
other work on the machine only ever adds. A trait keeps its value unless another one is clearly
better, so that two runs agree. Then each program runs until all of its kernels have tried their
candidates (`engine.tuning`): what ordinary runs of any program lose two percent of their time for
takes seconds here.
"""

from __future__ import annotations

import datetime
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy

import clfuse as cf
from clfuse import config
from clfuse.dataclass import frozen
from clfuse.engine.evaluate import forget_plans
from clfuse.engine.tuning import launches as tuned_launches
from clfuse.ops.table import UFUNCS
from clfuse.runtime.devices.device import Device
from clfuse.runtime.files import geometries, tuning
from clfuse.runtime.files.geometries import Kept
from clfuse.runtime.files.tuning import Measured
from clfuse.target.traits import DeviceTraits

from .contenders import upload
from .programs import PROGRAMS, results

__all__ = ["Tuner", "lines", "tune", "tune_programs"]

REPETITIONS: Final = 7
CLEARLY: Final = 0.95
"""A value is better than the one that stands where its programs take this part of the time."""

NBYTES: Final = 32 << 20
"""Of one array; the same on a GPU takes microseconds, so there it is `GPU_FACTOR` times as much."""

GPU_FACTOR: Final = 8
QUICK_FACTOR: Final = 16

CHUNKS: Final = (1, 2, 4, 8, 16, 32, 64, 128)
"""Work-items of a CPU's large launch, or work-groups of a GPU's, for each compute unit."""

TURNS: Final = 5
LAUNCHES: Final = 200
DEEP: Final = 5
STREAMED: Final = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512)
"""Megabytes that a kernel moves, from which on results might go past the caches."""

NEVER: Final = 1 << 62

ADDED: Final = 20_000
"""Elements of additions that stay in a processor's cache."""

MOST_RUNS: Final = 1000
MOST_S: Final = 60.0
"""Of a program whose kernels are tuned: one that is not done then goes on where it is met next."""

FIRST_RUNS: Final = 3
"""After which a program's plans have come back."""

SHORT: Final = 400
"""Elements of an array of which a launch takes longer than its work."""

FOLDED: Final = 8
FOLDED_OPERATIONS: Final = (3, 7, 15)
"""Operations of an element of a fold of `FOLDED`, with its own addition."""


@frozen
class _Trial:
    """How long the programs take with one value of a trait."""

    value: int
    seconds: float


class Tuner:
    """Measures one device.

    device: the current one.
    quick: small arrays and few runs: whether it works, not what the device can do.
    progress: called with what is being measured.
    """

    def __init__(
        self, device: Device, *, quick: bool = False, progress: Callable[[str], None] = print
    ) -> None:
        self.device = device
        self.traits: DeviceTraits = device.untuned_traits
        self.progress = progress
        factor = GPU_FACTOR if self.traits.schedule == "gpu" else 1
        nbytes = NBYTES * factor // (QUICK_FACTOR if quick else 1)
        nbytes = min(nbytes, self.traits.max_alloc_nbytes // 4, self.traits.global_nbytes // 32)
        self.dtype = "float64" if self.traits.fp64 else "float32"
        self.itemsize = 8 if self.traits.fp64 else 4
        self.count = max(nbytes // self.itemsize, 1 << 12)
        self.repetitions = 2 if quick else REPETITIONS
        self.quick = quick

    def run(self) -> tuple[DeviceTraits, Measured]:
        """Measure everything: the traits, and the figures behind them."""
        try:
            self._choose_work_items()
            if self.traits.schedule == "cpu":
                self._choose_vectors()
                self._choose_stream()
                self._choose_past()
            copy = self._measure_copy()
            launch = self._measure_launch(copy)
            operation = self._measure_operation(copy)
            self._measure_gather(operation)
            self._choose_unrolled()
            if self.traits.kind == "cpu":
                self._measure_costs()
        finally:
            forget_plans()
        return self.traits, Measured(copy, launch, operation)

    # -- timing -----------------------------------------------------------------------------------

    def _array(self, count: int | None = None) -> Any:
        made = cf.linspace(0.0, 1.0, self.count if count is None else count, dtype=self.dtype)
        cf.evaluate(made)
        return made

    def _seconds(self, program: Callable[[], Any], traits: DeviceTraits, **settings: Any) -> float:
        """The shortest run of a program that records what it returns."""
        # Kernels are measured, however little there is to calculate.
        with self.device.trying(traits), config.override(host_us=0, **settings):
            forget_plans()
            times = []
            for _ in range(self.repetitions + 1):
                start = time.perf_counter()
                result = program()
                cf.evaluate(*(result if isinstance(result, tuple) else (result,)))
                cf.synchronize()
                times.append(time.perf_counter() - start)
                del result
            forget_plans()
        return min(times[1:])  # the first one builds

    def _best(self, trait: str, values: Sequence[int], programs: Sequence[Any]) -> int:
        """The value with which all programs together take least, each in parts of its own time."""
        self.progress(trait)
        now: int = getattr(self.traits, trait)
        standing = [self._seconds(program, self.traits) for program in programs]
        trials = [_Trial(now, float(len(programs)))]
        for value in values:
            if value != now:
                traits = replace(self.traits, **{trait: value})  # type: ignore[arg-type]
                parts = [
                    self._seconds(program, traits) / before
                    for program, before in zip(programs, standing, strict=True)
                ]
                trials.append(_Trial(value, sum(parts)))
        best = min(trials, key=lambda trial: trial.seconds)
        return best.value if best.seconds < CLEARLY * len(programs) else now

    # -- what is measured -------------------------------------------------------------------------

    def _programs(self) -> list[Callable[[], Any]]:
        """One that waits for memory, and one that calculates."""
        x, y = self._array(), self._array()
        return [lambda: x + 3.0 * y, lambda: cf.sin(x) * cf.exp(-y)]

    def _choose_work_items(self) -> None:
        group = self.traits.work_group
        values = [self.traits.compute_units * chunks * group for chunks in CHUNKS]
        if self.quick:
            values = values[-2:]
        chosen = self._best("work_items", values, self._programs())
        self.traits = replace(self.traits, work_items=chosen)

    def _choose_vectors(self) -> None:
        chosen = self._best("vector_bytes", (16, 32, 64), self._programs())
        self.traits = replace(self.traits, vector_bytes=chosen)

    def _choose_stream(self) -> None:
        """The least bytes of a kernel from which on streaming wins, also if its result is read."""
        self.progress("stream_nbytes")
        least = NEVER
        sizes = STREAMED[:2] if self.quick else STREAMED
        for megabytes in reversed(sizes):
            nbytes = megabytes << 20
            if 2 * nbytes > self.traits.global_nbytes // 4:
                continue
            x = self._array(nbytes // 2 // self.itemsize)

            def read_on(x: Any = x) -> Any:
                y = x + 1.0
                cf.evaluate(y)
                return y.sum()

            cached = self._seconds(read_on, replace(self.traits, stream_nbytes=NEVER))
            streamed = self._seconds(read_on, replace(self.traits, stream_nbytes=0))
            if streamed > CLEARLY * cached:
                break
            least = nbytes
        self.traits = replace(self.traits, stream_nbytes=least)

    def _choose_past(self) -> None:
        """Whether loops that move so much read past the caches: what they write to as well, and
        what they only read. By turns: others may keep the memory busy, or stop to."""
        self.progress("reads_past")
        nbytes = self.traits.stream_nbytes // 2
        if 4 * nbytes > self.traits.global_nbytes // 4:
            return
        x, y, z = [self._array(nbytes // self.itemsize) for _ in range(3)]

        def updated() -> Any:
            nonlocal x
            x += y + 0.5 * z
            return x

        programs = [updated, lambda: (y * z).sum()]
        ratios = []
        for _ in range(1 if self.quick else TURNS):
            past, cached = (
                [self._seconds(each, replace(self.traits, reads_past=way)) for each in programs]
                for way in (True, False)
            )
            ratios += [one / other for one, other in zip(past, cached, strict=True)]
        ratio = statistics.median(ratios)
        if ratio < CLEARLY or ratio > 1 / CLEARLY:
            self.traits = replace(self.traits, reads_past=ratio < 1)

    def _measure_copy(self) -> float:
        self.progress("copy")
        x = self._array()
        return 2 * self.count * self.itemsize / self._seconds(lambda: x + 1.0, self.traits)

    def _measure_launch(self, copy: float) -> float:
        """Of kernels that wait for each other."""
        self.progress("launch_nbytes")
        x = self._array(16)

        def launches() -> Any:
            y = x
            for _ in range(LAUNCHES):
                y = y * 0.5
            return y

        launch = self._seconds(launches, self.traits, fusion=False) / LAUNCHES
        self.traits = replace(self.traits, launch_nbytes=_within("launch_nbytes", launch * copy))
        return launch

    def _measure_operation(self, copy: float) -> float:
        """What one more exponential takes, by its weight: memory is not waited for."""
        self.progress("operation_nbytes")
        x = self._array()

        def chain(length: int) -> Callable[[], Any]:
            def program() -> Any:
                y = x
                for _ in range(length):
                    y = cf.exp(-y)
                return y

            return program

        short, long = (self._seconds(chain(length), self.traits) for length in (DEEP, 2 * DEEP))
        weight = DEEP * (UFUNCS["exp"].weight + UFUNCS["negative"].weight)
        operation = max(long - short, 0.0) / (weight * self.count)
        nbytes = _within("operation_nbytes", operation * copy)
        self.traits = replace(self.traits, operation_nbytes=nbytes)
        return operation

    def _measure_gather(self, operation: float) -> None:
        """Against a copy: the position takes one remainder, which keeps it in bounds."""
        self.progress("gather_weight")
        x = self._array()
        count = self.count

        def turned() -> Any:
            return x[(cf.arange(count) * 3) % count]

        def alone() -> Any:
            return ((cf.arange(count) * 3) % count).astype(self.dtype)

        gathered, positions = (self._seconds(each, self.traits) for each in (turned, alone))
        if operation > 0:
            weight = (gathered - positions) / count / operation
            self.traits = replace(self.traits, gather_weight=_within("gather_weight", weight))

    def _measure_costs(self) -> None:
        """What the policy weighs: NumPy's additions against launches, in the calling thread and on
        all cores."""
        self.progress("costs")
        a, b, out = (numpy.ones(ADDED) for _ in range(3))
        times = []
        for _ in range(100 * self.repetitions):
            start = time.perf_counter()
            numpy.add(a, b, out=out)
            times.append(time.perf_counter() - start)
        found: dict[str, Any] = {"addition_ns": min(times) * 1e9 / ADDED}
        x = self._array(SHORT)

        def launches(count: int) -> Callable[[], Any]:
            def program() -> Any:
                y = x
                for _ in range(count):
                    y = y * 0.5
                return y

            return program

        for name, inline_nbytes in (("launch_ns", 0), ("inline_launch_ns", NEVER)):
            traits = replace(self.traits, inline_nbytes=inline_nbytes)
            one, many = (
                self._seconds(launches(count), traits, fusion=False) for count in (1, LAUNCHES)
            )
            found[name] = max(many - one, 0.0) * 1e9 / (LAUNCHES - 1)
            if name == "launch_ns":
                found["wake_ns"] = max(one * 1e9 - found[name], 0.0)
        for name, value in found.items():
            _, least, most = tuning.COST_RANGES[name]
            found[name] = min(max(value, least), most)
        self.traits = replace(self.traits, costs=replace(self.traits.costs, **found))

    def _choose_unrolled(self) -> None:
        """The heaviest fold that is faster written out than as a loop."""
        self.progress("unrolled_weight")
        rows = self._array(self.count // FOLDED * FOLDED).reshape(-1, FOLDED)
        best = float(FOLDED)
        for operations in FOLDED_OPERATIONS[:1] if self.quick else FOLDED_OPERATIONS:

            def fold(operations: int = operations) -> Any:
                y = rows
                for term in range(operations):
                    y = y * rows if term % 2 else y + rows
                return y.sum(1)

            written, looped = (
                self._seconds(fold, replace(self.traits, unrolled_weight=weight))
                for weight in (1e3, 0.0)
            )
            if written > looped:
                break
            best = float(FOLDED * (operations + 1))
        self.traits = replace(self.traits, unrolled_weight=best)


def _within(trait: str, value: float) -> Any:
    """A measured value as one that the trait may have."""
    kind, least, most = tuning.RANGES[trait]
    return kind(min(max(value, least), most))


def tune(
    device: Device, *, quick: bool = False, progress: Callable[[str], None] = print
) -> tuple[DeviceTraits, Measured, Path]:
    """Measure a device, keep what was found, and use it from here on.

    Raises OSError: the results cannot be kept.
    """
    traits, measured = Tuner(device, quick=quick, progress=progress).run()
    when = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    path = tuning.write(replace(traits, tuned=when), measured, when)
    device.reread_tuning()
    return traits, measured, path


def lines(before: DeviceTraits, after: DeviceTraits, measured: Measured) -> Iterator[str]:
    """What was found, a line each."""
    yield f"copy                {measured.copy_nbytes_per_s / 1e9:.1f} GB/s"
    yield f"launch              {measured.launch_s * 1e6:.1f} us"
    yield f"operation           {measured.operation_s * 1e12:.1f} ps an element"
    for name in tuning.RANGES:
        old, new = getattr(before, name), getattr(after, name)
        yield f"{name:20}{old:g} -> {new:g}" if old != new else f"{name:20}{old:g}"
    for name in tuning.COST_RANGES:
        old, new = getattr(before.costs, name), getattr(after.costs, name)
        yield f"{name:20}{old:g} -> {new:g}" if old != new else f"{name:20}{old:g}"


def tune_programs(
    names: Sequence[str], *, quick: bool = False, progress: Callable[[str], None] = print
) -> Iterator[tuple[str, Kept]]:
    """Tune the kernels of programs on the current device.

    Yields
    ------
    name : str
        A program's.
    kept : Kept
        What was found out about one of its kernels.
    """
    device = geometries.about(cf.get_device().traits)
    for name in names:
        progress(name)
        before = {each.key: each for each in geometries.of_device(device)}
        program = PROGRAMS[name]
        arrays = upload(program.make_inputs(quick))
        with config.override(build_after_ms=0), tuned_launches.at_once():
            forget_plans()
            start = time.perf_counter()
            for run in range(MOST_RUNS):
                values = results(program.compute(cf, *arrays))
                cf.evaluate(*values)
                cf.synchronize()
                del values
                is_done = all(each.is_done for each in tuned_launches.running)
                if (run >= FIRST_RUNS and is_done) or time.perf_counter() - start > MOST_S:
                    break
        for each in geometries.of_device(device):
            if before.get(each.key) != each:
                yield name, each
    forget_plans()
