"""``python -m clfuse bench recording``: what laziness itself costs.

It measures recording, planning, and building anew for another size. Nothing here is compared with
NumPy. The targets are those of the project's first issue: 2 us to record an operation, 50 us and 1
us a node for a plan that is known, 30 us for a call of a jitted function, 3 s to plan 100,000
operations, two programs for twenty lengths.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy

import clfuse
from clfuse import config
from clfuse.arrays.handle import node_of
from clfuse.dataclass import frozen
from clfuse.ir import snapshot
from clfuse.schedule import planner

__all__ = ["Figure", "figures"]

RECORDED = 5_000
PLAN_NODES = 120
LONG = 100_000
QUICK_LONG = 2_000
LENGTHS = 20
REPETITIONS = 15
REPLAYS = 500


@frozen
class Figure:
    """One measured cost and what it should be at most."""

    name: str
    value: float
    unit: str
    target: float

    @property
    def reached(self) -> bool:
        """Whether the target is reached."""
        return self.value <= self.target


def chain(x: Any, operations: int, start: float) -> Any:
    """A value that takes that many operations, each a new node: two a step, with a constant of its
    own."""
    y = x
    for step in range(operations // 2):
        y = y * x + (start + step)
    return y


def recorded_us() -> float:
    """Microseconds to record one operation; the best of several runs, as a busy machine only ever
    adds."""
    x = clfuse.asarray(numpy.ones(1000))
    best = float("inf")
    with config.override(max_nodes=10 * RECORDED, loop_nodes=0):
        for repetition in range(REPETITIONS):
            start = time.perf_counter()
            y = chain(x, RECORDED, float(repetition))
            best = min(best, (time.perf_counter() - start) / RECORDED)
            # Dropped unevaluated: only recording is measured.
            del y
    return best * 1e6


def known_plan_us() -> float:
    """Microseconds from `evaluate` to the last launch, for a plan of 120 nodes made before."""
    x = clfuse.asarray(numpy.random.default_rng(1).random(1000))
    times = []
    for repetition in range(REPETITIONS + 2):
        # Constants are arguments, not structure: another start is the same plan on other values.
        y = chain(x, PLAN_NODES, 0.25 + repetition)
        clfuse.synchronize()
        start = time.perf_counter()
        clfuse.evaluate(y, wait=False)
        times.append(time.perf_counter() - start)
    clfuse.synchronize()
    return statistics.median(times[2:]) * 1e6


def replay_us() -> float:
    """Microseconds of a call of a jitted function of 120 nodes, with its launches, without waiting;
    the best of many, as a busy machine only ever adds."""
    x = clfuse.asarray(numpy.random.default_rng(1).random(1000))
    jitted = clfuse.jit(functools.partial(chain, operations=PLAN_NODES, start=0.25))
    best = float("inf")
    for _ in range(REPLAYS):
        start = time.perf_counter()
        jitted(x)
        best = min(best, time.perf_counter() - start)
    clfuse.synchronize()
    return best * 1e6


def long_plan_s(operations: int = LONG) -> float:
    """Seconds to plan so many recorded operations, without rendering or building a kernel."""
    x = clfuse.asarray(numpy.ones(16))
    with config.override(max_nodes=2 * operations, loop_nodes=0):
        y = chain(x, operations, 0.0)
        traits = clfuse.get_device().traits
        start = time.perf_counter()
        schedule = planner.plan(snapshot.take([node_of(y)]), traits, fuse=True)
        found = time.perf_counter() - start
        assert schedule.launches
        return found


def programs_of_lengths() -> int:
    """Programs built for one expression over twenty lengths, even and odd, below and above every
    vector's width."""
    before: int = clfuse.stats()["programs_built"]
    for number in range(LENGTHS):
        x = clfuse.asarray(numpy.arange(1.0, 4.0 + 37 * number**2))
        clfuse.evaluate(clfuse.sqrt(x) * 0.125 - x / 3.0)
    clfuse.synchronize()
    after: int = clfuse.stats()["programs_built"]
    return after - before


def figures(*, quick: bool = False) -> Iterator[Figure]:
    """Measure one after the other: what a device takes, so nothing is left to NumPy. `quick`: a
    shorter plan."""
    operations = QUICK_LONG if quick else LONG
    asked: tuple[tuple[str, Callable[[], float], str, float], ...] = (
        ("record one operation", recorded_us, "us", 2.0),
        (f"start a known plan of {PLAN_NODES} nodes", known_plan_us, "us", 50.0 + PLAN_NODES),
        (f"call a jitted function of {PLAN_NODES} nodes", replay_us, "us", 30.0),
        (
            f"plan {operations:,} operations", functools.partial(long_plan_s, operations), "s",
            3.0 * operations / LONG,
        ),
        (
            f"programs built for {LENGTHS} lengths of one expression", programs_of_lengths,
            "programs", 2,
        ),
    )  # fmt: skip
    for name, measured, unit, target in asked:
        with config.override(host_us=0):
            figure = Figure(name, measured(), unit, target)
        yield figure
