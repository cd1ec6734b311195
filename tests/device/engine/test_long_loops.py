"""Loops of many steps: plans, launches and memory stay bounded."""

from __future__ import annotations

import gc
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse.ir import nodes

Step = Callable[[Any, Any, list[Any]], Any]


def centred(xp: Any, x: Any, kept: list[Any]) -> Any:
    return (x - x.mean()) * 1.25


def scanned(xp: Any, x: Any, kept: list[Any]) -> Any:
    return xp.cumsum(x) * 0.0625


def gathered(xp: Any, x: Any, kept: list[Any]) -> Any:
    return x[[*range(1, 40), 0]] * 1.25


def updated(xp: Any, x: Any, kept: list[Any]) -> Any:
    x[1:-1] = (x[:-2] + x[2:]) * 0.5
    return x


def noted(xp: Any, x: Any, kept: list[Any]) -> Any:
    x = x * 0.75 + 1
    kept.append(x.sum())
    return x


STEPS: list[Step] = [centred, scanned, gathered, updated, noted]


def run(step: Step, xp: Any, steps: int, after: Callable[[Any], None]) -> list[Any]:
    x = xp.arange(40.0) / 8
    kept: list[Any] = []
    for _ in range(steps):
        x = step(xp, x, kept)
        after(x)
    return [x, *kept]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_equal_steps_use_one_plan(step: Step) -> None:
    made = []

    def after(x: Any) -> None:
        cf.evaluate(x)
        made.append((cf.stats()["plans_made"], cf.stats()["programs_built"]))

    actual = run(step, cf, 40, after)
    assert made[-1] == made[2]
    expected = run(step, np, 40, lambda x: None)
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_steps_that_are_never_looked_at_take_bounded_memory(step: Step) -> None:
    held = []
    plans = []

    def after(x: Any) -> None:
        held.append((len(nodes.recorded), cf.stats()["device_bytes_now"]))
        plans.append(cf.stats()["plans_made"])

    with cf.config.override(max_nodes=64):
        actual = run(step, cf, 400, after)
    results = 8 * len(actual)
    limit = len(actual) + 64 + 64 // 8 + nodes.CHECK_EVERY
    assert max(recorded for recorded, _ in held[200:]) <= limit
    assert max(now for _, now in held[200:]) <= max(now for _, now in held[:200]) + results
    assert plans[-1] == plans[200]
    expected = run(step, np, 400, lambda x: None)
    for one, other in zip(actual[-3:], expected[-3:], strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("step", [centred, scanned, gathered, updated], ids=lambda s: s.__name__)
def test_a_loop_that_looks_at_every_step_is_not_cut_within_one(step: Step) -> None:
    gc.collect()
    cf.evaluate()  # what other tests have recorded counts, too, and would be cut off sometime
    plans = []

    def after(x: Any) -> None:
        cf.evaluate(x, (x * 0.5 + 0.25) * (x - 1))  # a cut could fall between any two operations
        plans.append(cf.stats()["plans_made"])

    with cf.config.override(max_nodes=100):
        run(step, cf, 400, after)
    assert plans[-1] == plans[4]


@pytest.mark.parametrize("held", [False, True])
def test_what_was_computed_leaves_no_list_of_what_was_recorded(held: bool) -> None:
    cf.evaluate()
    before = cf.stats()["nodes_recorded"]
    x = cf.arange(40.0)
    pending = [x + number for number in range(10)] if held else []
    first = nodes.forget_at[0]  # earlier tests may have left more that waited
    most = 0
    with cf.config.override(loop_nodes=0, host_us=0):
        for step in range(100):
            y = x
            for _ in range(20):
                y = y * 0.5 + step
            cf.evaluate(y)
            most = max(most, len(nodes.recorded))
    usual = nodes.FORGET_AT + 2 * len(pending)
    assert most < max(first, usual) + 41
    assert len(nodes.recorded) < usual + 41
    assert cf.stats()["nodes_recorded"] - before == 100 * 40 + 1 + len(pending)
    assert nodes.waiting_count() >= len(pending)
    for number, each in enumerate(pending):
        np.testing.assert_array_equal(each.get(), np.arange(40.0) + number)


def test_inputs_that_are_needed_no_more_are_let_go_of() -> None:
    nbytes = 8 * 10_000
    total = cf.zeros(10_000)
    cf.evaluate(total)
    before = cf.stats()["device_bytes_now"]
    most = 0
    with cf.config.override(max_pinned_bytes=10 * nbytes):
        for number in range(100):
            total = total + cf.asarray(np.full(10_000, float(number)))
            most = max(most, cf.stats()["device_bytes_now"] - before)
    assert most <= 13 * nbytes
    assert float(total[17]) == 4950.0


def test_an_expression_over_many_lengths_is_one_program() -> None:
    """One for the calling thread, too, where short ones run there."""
    programs = 1 if cf.get_device().inline is None else 2
    before = cf.stats()["programs_built"]
    with cf.config.override(host_us=0, max_nodes=64):  # as if much had been recorded before
        for length in [2, 3, 5, 8, 15, 16, 17, 100, 101, 1000, 4095, 4096, 10_007, 65_536, 300_001]:
            x = cf.asarray(np.arange(1.0, length + 1))
            x = cf.hypot(x, 1.0) * 0.125 - x / 3.0
            expected = np.hypot(np.arange(1.0, length + 1), 1.0) * 0.125
            np.testing.assert_allclose(x.get(), expected - np.arange(1.0, length + 1) / 3.0)
    assert cf.stats()["programs_built"] - before == programs


def standardized(xp: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
    a = (x - x.mean()) / (x.std() + 1e-9)
    b = (y - y.mean()) / (y.std() + 1e-9)
    return a * 0.5 + b * 0.1, b + 0.01 * a, a


def by_columns(xp: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
    a, b = x.reshape(8, -1), y.reshape(8, -1)
    a = a - a.mean(0)
    b = b / (1 + xp.abs(b).max(1, keepdims=True))
    return (a * 0.5 + b).ravel(), (b + 0.5 * a + 0.25).ravel(), a


def summed_up(xp: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
    a = xp.cumsum(x) * 0.01
    b = xp.cumsum(y) * 0.01 + 0.1
    return a * 0.5 + b, b - 0.25 * a, a


def multiplied(xp: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
    a, b = x.reshape(8, -1), y.reshape(8, -1)
    a = a - (a @ a.T) @ b * 0.01
    b = b - (b @ b.T) @ a * 0.01
    return (a * 0.5).ravel(), (b * 0.5).ravel(), a


def pointed(xp: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
    a = x + 0.001 * xp.argmax(x)
    b = y + 0.001 * xp.argmin(y)
    return a * 0.5 + b * 0.25, b * 0.5 - a * 0.25, a


@pytest.mark.parametrize(
    "step", [standardized, by_columns, summed_up, multiplied, pointed], ids=lambda s: s.__name__
)
def test_rounds_cost_the_same_where_one_of_two_is_looked_at(step: Any) -> None:
    """What holds the other is computed on the way, in every round, with folds below it."""

    def rounds(xp: Any, after: Callable[[], None]) -> list[float]:
        x, y = xp.arange(64.0) / 16, xp.cos(xp.arange(64.0)) + 2
        seen = []
        for _ in range(18):
            x, y, a = step(xp, x, y)
            seen.append(float(a.ravel()[3]))
            after()
        return [*seen, float(x.sum()), float(y.sum())]

    counts: list[tuple[int, int]] = []

    def after() -> None:
        counts.append((cf.stats()["plans_made"], cf.stats()["kernels_launched"]))

    actual = rounds(cf, after)
    assert counts[-1][0] == counts[9][0], "plans of rounds"
    launched = [after - before for (_, before), (_, after) in pairwise(counts)]
    assert max(launched[10:]) <= max(launched[:4])
    np.testing.assert_allclose(actual, rounds(np, lambda: None), rtol=1e-9, atol=1e-9)
