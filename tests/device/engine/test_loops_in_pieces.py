"""Loops that nobody looks at are computed round by round, with one plan; chains stay short."""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse.engine import auto_flush
from clfuse.ir import nodes

Round = Callable[[ModuleType, Any], Any]


def diffused(xp: ModuleType, u: Any) -> Any:
    return u + 0.1 * (np.roll(u, 1) + np.roll(u, -1) - 2 * u)


def written(xp: ModuleType, u: Any) -> Any:
    u[1:-1] = 0.5 * u[1:-1] + 0.25 * (u[:-2] + u[2:])
    u[0] = u[1]
    return u


def in_place(xp: ModuleType, u: Any) -> Any:
    u *= 0.99
    u += 0.01
    return u


def coupled(xp: ModuleType, u: Any) -> Any:
    u, v = u[:4000], u[4000:]
    return xp.concatenate([u - 0.1 * v, v + 0.1 * u])


ROUNDS: list[Round] = [diffused, written, in_place, coupled]


@pytest.fixture(autouse=True)
def _nothing_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits, and no loop of an earlier test is expected to go on, whose rounds may be long:
    the next one would be looked at only after one of these."""
    gc.collect()
    cf.evaluate()
    monkeypatch.setattr(auto_flush, "_loop", auto_flush._Loop())


def run(xp: ModuleType, turn: Round, rounds: int, after: Callable[[], None]) -> Any:
    u = xp.asarray(np.sin(np.arange(8000.0)))
    for _ in range(rounds):
        u = turn(xp, u)
        after()
    return u


@pytest.mark.parametrize("turn", ROUNDS, ids=lambda turn: turn.__name__)
def test_a_loop_is_computed_in_pieces_that_share_a_plan(turn: Round) -> None:
    plans = []
    recorded = []

    def after() -> None:
        plans.append(cf.stats()["plans_made"])
        recorded.append(len(nodes.recorded))

    with cf.config.override(loop_nodes=64, host_us=0, build_after_ms=0):
        actual = run(cf, turn, 400, after)
    np.testing.assert_allclose(np.asarray(actual), run(np, turn, 400, lambda: None), rtol=1e-12)
    assert plans[-1] > plans[0], "a part of the loop was computed before somebody looked"
    assert plans[-1] == plans[120], "and what came later has used the same plans"
    assert max(recorded) < 64 + 64 + nodes.CHECK_EVERY


@pytest.mark.parametrize("turn", ROUNDS, ids=lambda turn: turn.__name__)
def test_zero_computes_no_loop_before_somebody_looks(turn: Round) -> None:
    with cf.config.override(loop_nodes=0, host_us=0, build_after_ms=0):
        before = cf.stats()["kernels_launched"]
        run(cf, turn, 100, lambda: None)
        assert cf.stats()["kernels_launched"] == before


def test_a_loop_that_comes_after_another_has_its_own_rounds() -> None:
    def program(xp: ModuleType) -> Any:
        u = run(xp, diffused, 60, lambda: None)
        for number in range(200):
            u = in_place(xp, u) if number % 2 else diffused(xp, u)
        return u

    with cf.config.override(loop_nodes=64, host_us=0, build_after_ms=0):
        np.testing.assert_allclose(np.asarray(program(cf)), program(np), rtol=1e-12)


def test_what_no_loop_records_is_not_cut() -> None:
    with cf.config.override(loop_nodes=64, host_us=0, build_after_ms=0):
        x = cf.asarray(np.linspace(0, 1, 5000))
        before = cf.stats()["kernels_launched"]
        rng = np.random.default_rng(1)
        y = x
        for _ in range(300):
            number = rng.integers(4)
            y = y * 1.01 if number == 0 else y - x if number == 1 else abs(y) if number == 2 else -y
        assert cf.stats()["kernels_launched"] == before


def test_results_that_only_recorded_work_holds_are_let_go_of() -> None:
    """In the method of conjugate gradients x collects every direction, and nobody looks at it."""
    nbytes = 8 * 100_000
    x = cf.zeros(100_000)
    r = cf.asarray(np.ones(100_000))
    most = before = cf.stats()["device_bytes_now"]
    with cf.config.override(max_pinned_bytes=8 * nbytes, loop_nodes=0):
        for _ in range(100):
            r = r * 0.5 + 0.25
            assert float(r.sum()) > 0
            cf.evaluate(r)
            x = x + r
            most = max(most, cf.stats()["device_bytes_now"])
    assert most - before <= 14 * nbytes
    np.testing.assert_allclose(float(x[3]), 51.0, atol=1)


def test_what_takes_the_place_of_a_computed_value_is_stored() -> None:
    """Otherwise every look computes the chain from its beginning."""
    with cf.config.override(host_us=0, build_after_ms=0):
        r = cf.asarray(np.linspace(0, 1, 50_000))
        expected = np.linspace(0, 1, 50_000)
        operations = []
        for _ in range(12):
            r = np.sin(r) * 1.1
            expected = np.sin(expected) * 1.1
            total = r.sum()
            operations.append(sum(len(kernel.ops) for kernel in cf.explain(total).kernels))
            np.testing.assert_allclose(float(total), expected.sum(), rtol=1e-12)
    assert max(operations) == max(operations[:4])


def test_what_replaces_an_array_of_a_temporary_is_stored() -> None:
    """In a search by fronts, each of which is written to box by box, only whether one is empty is
    looked at: a temporary of the plan between two fronts must not hide that they come again."""
    free = np.sin(np.arange(250_000.0)).reshape(500, 500) > -0.9

    def spread(xp: ModuleType, front: Any, distance: Any, level: int, free: Any) -> Any:
        following = xp.zeros_like(front)
        following[1:] |= front[:-1]
        following[:-1] |= front[1:]
        following[:, 1:] |= front[:, :-1]
        following[:, :-1] |= front[:, 1:]
        following &= free & (distance < 0)
        distance[following] = level
        return following

    expected_distance, expected = np.full((500, 500), -1), np.zeros((500, 500), bool)
    expected[0, 0], expected_distance[0, 0] = True, 0
    with cf.config.override(host_us=0, build_after_ms=0):
        walls, front, distance = map(cf.asarray, (free, expected, expected_distance))
        launches, held = [], []
        for level in range(1, 13):
            front = spread(cf, front, distance, level, walls)
            expected = spread(np, expected, expected_distance, level, free)
            before = cf.stats()["kernels_launched"]
            assert bool(front.any())
            launches.append(cf.stats()["kernels_launched"] - before)
            held.append(cf.stats()["device_bytes_now"])
        np.testing.assert_array_equal(np.asarray(distance), expected_distance)
    assert max(launches[4:]) <= max(launches[:4])
    assert max(held[4:]) <= max(held[:4])


def test_what_replaces_an_array_behind_a_library_call_is_stored() -> None:
    """The ranks of pages: what each gives its links is held and stored; the ranks hold no less."""
    links = np.random.default_rng(1).integers(0, 5000, (2, 40_000))

    def turn(
        xp: ModuleType, ranks: Any, target: Any, source: Any, lost: Any, degree: Any
    ) -> tuple[Any, Any]:
        given = xp.where(lost, 0, ranks / xp.maximum(degree, 1))
        new = xp.bincount(target, weights=given[source], minlength=5000)
        return given, 0.85 * (new + ranks[lost].sum() / 5000) + 0.15 / 5000

    degree = np.bincount(links[1], minlength=5000)
    ranks, lost = np.full(5000, 1 / 5000), np.arange(5000) % 7 == 0
    expected = ranks
    with cf.config.override(host_us=0, build_after_ms=0):
        actual, *fixed = map(cf.asarray, (ranks, *links, lost, degree))
        launches = []
        for _ in range(10):
            before = cf.stats()["kernels_launched"] + cf.stats()["library_calls"]
            given, new = turn(cf, actual, *fixed)
            change = abs(new - actual).sum()
            actual = new
            wanted_given, wanted = turn(np, expected, *links, lost, degree)
            np.testing.assert_allclose(float(change), abs(wanted - expected).sum(), rtol=1e-9)
            expected = wanted
            done = cf.stats()["kernels_launched"] + cf.stats()["library_calls"]
            launches.append(done - before)
        np.testing.assert_allclose(np.asarray(given), wanted_given, rtol=1e-12)
        np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-12)
    assert max(launches[1:]) <= launches[0], launches


def test_sums_of_pairs_do_not_double_the_kernel() -> None:
    values = np.sin(np.arange(2.0**15))
    with cf.config.override(host_us=0, build_after_ms=0):
        x, expected = cf.asarray(values), values
        while len(x) > 1:
            x, expected = x[0::2] * 0.5 + x[1::2], expected[0::2] * 0.5 + expected[1::2]
        longest = max(len(kernel.source) for kernel in cf.explain(x).kernels)
        np.testing.assert_allclose(np.asarray(x), expected, rtol=1e-12)
    assert longest < 40_000


def test_a_loop_that_writes_one_element_a_round_is_a_loop_too() -> None:
    plans = []

    def fed(xp: ModuleType, u: Any) -> Any:
        u[4000] += 0.5
        return diffused(xp, u)

    with cf.config.override(loop_nodes=64, host_us=0, build_after_ms=0):
        actual = run(cf, fed, 300, lambda: plans.append(cf.stats()["plans_made"]))
    np.testing.assert_allclose(np.asarray(actual), run(np, fed, 300, lambda: None), rtol=1e-12)
    assert plans[-1] == plans[120] > plans[0]
