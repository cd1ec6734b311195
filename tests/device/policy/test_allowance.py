"""What NumPy does at the call while a loop has not earned its kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from clfuse.arrays import handle
from clfuse.engine import auto_flush
from clfuse.ir.snapshot import Snapshot, take
from clfuse.policy import allowance, choice, tiering
from tests.device.policy.test_small_programs import counted
from tests.support.marks import compiled

pytestmark = [pytest.mark.clfuse_only, compiled, pytest.mark.usefixtures("first_run")]

SIZE = 20_011
VALUES = np.linspace(0.1, 0.9, SIZE)


def step(module: ModuleType, x: Any, y: Any) -> Any:
    """A round of a loop, of 0.3 ms."""
    x = module.exp(-((x - y) ** 2)) + 0.1 * x
    return module.where(x > 0.5, x, module.sqrt(x))


def rounds(xp: ModuleType, most: int, make: Callable[..., Any] = step) -> list[tuple[int, int]]:
    """Of each round the evaluations that were NumPy's and the kernels, until there are kernels."""
    x, y = xp.asarray(VALUES), xp.asarray(VALUES[::-1].copy())
    theirs, other = VALUES, VALUES[::-1]
    found = []
    for _ in range(most):
        x, theirs = make(xp, x, y), make(np, theirs, other)
        _, host, kernels = counted(xp, partial(xp.evaluate, x))
        assert_allclose(x.get(), theirs, rtol=1e-12)
        found.append((host, kernels))
        if kernels:
            break
    return found


def test_a_loop_is_numpys_until_it_has_earned_kernels(xp: ModuleType) -> None:
    found = rounds(xp, 2000)
    assert found[0] == (1, 0), "it is recorded, and interpreted"
    assert found[1:20] == [(0, 0)] * 19, "nothing is recorded"
    assert 30 < len(found) < 2000
    assert found[-1][1], "it has kernels"
    recorded = [host for host, _ in found[1:] if host]
    assert len(recorded) <= 4, "those that show that it is a loop"


def test_what_waits_beside_is_computed_too(xp: ModuleType) -> None:
    """Otherwise what depends on it would be recorded in all rounds."""
    x, y = xp.asarray(VALUES), xp.asarray(VALUES[::-1].copy())
    theirs, other = VALUES, VALUES[::-1]
    seen = []
    for _ in range(12):
        a, b = step(xp, x, y), step(xp, y, x)
        mine, others = step(np, theirs, other), step(np, other, theirs)
        x, y, theirs, other = b + 0.01 * a, a * 0.5, others + 0.01 * mine, mine * 0.5
        found, host, kernels = counted(xp, lambda a=a: float(a.sum()))
        assert_allclose(found, mine.sum(), rtol=1e-12)
        assert not kernels
        seen.append(host)
    assert not any(seen[3:])


def test_a_program_without_a_loop_gets_ever_larger_allowances(
    xp: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []
    allow = allowance._core.allow

    class Watched:
        allowed = staticmethod(allowance._core.allowed)
        was_cut = staticmethod(allowance._core.was_cut)

        @staticmethod
        def allow(most: float, additions: float, *others: float) -> None:
            given.append(additions)
            allow(most, additions, *others)

    monkeypatch.setattr(allowance, "_core", Watched)
    with xp.config.override(build_after_ms=2):
        for number in range(400):
            x = xp.asarray(VALUES[: SIZE - number])
            y = xp.exp(x) - x[::-1]
            _, _, kernels = counted(xp, partial(xp.evaluate, y))
            assert not kernels
            wanted = VALUES[: SIZE - number]
            assert_array_equal(y, np.exp(wanted) - wanted[::-1])
    amounts = [amount for amount in given if amount]
    assert len(amounts) > 3
    assert max(amounts) > 3 * amounts[0]
    assert max(amounts) < 1.5 * allowance.MOST_TIMES * amounts[0]


def test_work_of_kernels_is_not_done_at_the_call(xp: ModuleType) -> None:
    """A loop that has kernels keeps them while another one is waiting for its own."""
    with xp.config.override(build_after_ms=1):
        rounds(xp, 200)
        rounds(xp, 200)  # its plans come back, and are worth it
        x, y = xp.asarray(VALUES), xp.asarray(VALUES[::-1].copy())

    def other(fewer: int) -> None:
        z = xp.asarray(VALUES[:-fewer])
        for _ in range(3):
            z = xp.log1p(z * z + 1.5)
            xp.evaluate(z)

    for fewer in (100, 101, 102):  # the program is watched for some time after the first one
        other(fewer)
        tiering._turns[0] += allowance.MOST_TURNS
    assert allowance.is_given()
    for _ in range(3):
        x = step(xp, x, y)
        _, host, kernels = counted(xp, partial(xp.evaluate, x))
        assert (host, kernels) == (0, 1)


@pytest.mark.parametrize("change", [{"host_us": 0}, {"build_after_ms": 0}])
def test_settings_that_want_kernels_end_an_allowance(
    xp: ModuleType, change: dict[str, int]
) -> None:
    rounds(xp, 2)
    assert allowance.is_given()
    with xp.config.override(**change):
        x = xp.asarray(VALUES)
        y = step(xp, x, x)
        _, host, kernels = counted(xp, partial(xp.evaluate, y))
        assert (host, kernels) == (0, 1)
        assert_allclose(y.get(), step(np, VALUES, VALUES), rtol=1e-12)


def test_warnings_and_errors_are_numpys(xp: ModuleType) -> None:
    rounds(xp, 2)
    assert allowance.is_given()
    x = xp.asarray(VALUES - 0.5)
    with (
        xp.errstate(invalid="warn"),
        pytest.warns(RuntimeWarning, match="invalid value encountered in sqrt") as seen,
    ):
        y = xp.sqrt(x)
    assert Path(seen[0].filename).name == Path(__file__).name
    with np.errstate(invalid="ignore"):
        assert_array_equal(y, np.sqrt(VALUES - 0.5))
    with pytest.raises(ValueError, match="could not be broadcast"):
        x + xp.asarray(VALUES[:-1])
    with xp.errstate(invalid="raise"), pytest.raises(FloatingPointError):
        xp.sqrt(x)


def test_writes_change_nobody_elses_values(xp: ModuleType) -> None:
    rounds(xp, 2)
    assert allowance.is_given()
    x = xp.asarray(VALUES)
    kept, view, mine = x + 0, x[10:], VALUES.copy()
    old = x.copy()
    x[1:-1] += 0.1 * (x[2:] - 2 * x[1:-1] + x[:-2])
    mine[1:-1] += 0.1 * (mine[2:] - 2 * mine[1:-1] + mine[:-2])
    x[x > 0.5] = 0.25
    mine[mine > 0.5] = 0.25
    assert_array_equal(x, mine)
    assert_array_equal(view, mine[10:])
    for array in (kept, old):
        assert_array_equal(array, VALUES)


LARGE = 1 << 20  # elements: a result is fresh memory


def test_memory_of_large_results_counts(xp: ModuleType) -> None:
    """An element takes NumPy an addition, and two for its memory; where arrays are small none."""
    core = allowance._core

    def taken(structure: Any, additions: float) -> float:
        allowance.forget()
        allowance.lend(take([handle.node_of(structure)]), 1e9)
        before, _, _ = core.allowed()
        assert core.is_done_at_once(additions)
        left, _, _ = core.allowed()
        return float(before - left)

    small = xp.exp(xp.asarray(VALUES))
    structure = xp.exp(xp.asarray(np.ones(LARGE)))  # some additions an element
    assert taken(structure, LARGE) == 3 * LARGE
    assert taken(structure, 8 * LARGE) == 10 * LARGE
    assert taken(structure, LARGE / 2) == 1.5 * LARGE
    assert taken(small, 8 * SIZE) == 8 * SIZE, "it stays in the cache"


def test_the_rest_of_a_round_is_forgotten(xp: ModuleType) -> None:
    """An allowance ends anywhere: what is left of that round is no structure of the loop."""
    x, y = xp.asarray(VALUES), xp.asarray(VALUES[::-1].copy())
    xp.evaluate(step(xp, x, y))
    assert allowance.is_given()
    x, theirs = step(xp, x, y), step(np, VALUES, VALUES[::-1])
    allowance._core.allow(allowance._core.allowed()[1], 1.5 * SIZE)
    before = dict(tiering._waiting)
    x, theirs = step(xp, x, y), step(np, theirs, VALUES[::-1])
    _, host, kernels = counted(xp, partial(xp.evaluate, x))
    assert (host, kernels) == (1, 0)
    assert tiering._waiting == before, "nothing is noted of it"
    assert not allowance.is_given(), "nothing is given for it"
    x, theirs = step(xp, x, y), step(np, theirs, VALUES[::-1])
    _, _, kernels = counted(xp, partial(xp.evaluate, x))
    assert kernels, "the whole round comes a second time, in a program that is watched"
    assert_allclose(x.get(), theirs, rtol=1e-12)


def test_a_reset_forgets_an_allowance(xp: ModuleType) -> None:
    rounds(xp, 2)
    assert allowance.is_given()
    tiering.forget()
    assert not allowance.is_given()
    assert allowance.used_ns() == 0


def test_explaining_begins_no_watch(xp: ModuleType) -> None:
    rounds(xp, 2)
    x = xp.asarray(VALUES)
    while allowance.is_given():
        xp.exp(x)
    before = allowance._state[0].begun
    for _ in range(2):
        assert xp.explain(xp.log1p(xp.asarray(VALUES[:-7]) * 1.5)).waiting
    assert allowance._state[0].begun is before is None


def light_step(module: ModuleType, x: Any, y: Any) -> Any:
    """A round of many operations that are light each."""
    for _ in range(12):
        x = 0.5 * x + 0.25 * y
    return x


def test_a_program_begins_with_an_allowance(xp: ModuleType) -> None:
    tiering.forget()
    allowance.begin()
    found = rounds(xp, 400, light_step)
    # Some rounds at the call. Then the loop is met, gets an allowance, and earns its kernels.
    assert found[:3] == [(0, 0)] * 3
    assert sum(host for host, _ in found) >= 1
    assert found[-1][1] > 0


def test_what_it_begins_with_is_for_small_operations(xp: ModuleType) -> None:
    tiering.forget()
    allowance.begin()
    left = allowance.left_ns()
    few = xp.asarray(VALUES[:1000])
    _, host, _ = counted(xp, lambda: xp.evaluate(few * 0.5 + 1))
    assert host == 0
    assert 0 < left - allowance.left_ns() < 1e5
    many = xp.asarray(np.linspace(0, 1, allowance.FIRST_MOST + 1))
    before = xp.stats()["nodes_recorded"]
    xp.evaluate(many * 0.5 + 1)
    assert xp.stats()["nodes_recorded"] > before


def test_the_first_allowance_ends_with_the_first_wait(xp: ModuleType) -> None:
    """What comes next is seen as a whole, and may be known of an earlier run."""
    tiering.forget()
    allowance.begin()
    x = xp.asarray(VALUES)
    assert counted(xp, lambda: xp.evaluate(step(xp, x, 0.1)))[1] == 1
    assert not allowance.is_given()
    assert counted(xp, lambda: xp.evaluate(step(xp, x, 0.1)))[1] == 1
    assert allowance.is_given()  # one that counts


def test_nothing_is_begun_with_where_kernels_are_wanted(xp: ModuleType) -> None:
    tiering.forget()
    allowance.begin()
    with xp.config.override(build_after_ms=0):
        values = xp.asarray(VALUES)
        _, host, kernels = counted(xp, lambda: xp.evaluate(step(xp, values, 0.1)))
    assert (host, kernels) == (0, 1)


def test_the_first_rounds_of_a_program_record_nothing() -> None:
    program = """
import clfuse as np
from clfuse.counters import counters
x, y = np.linspace(0, 1, 1000), np.linspace(1, 2, 1000)
before = counters["nodes_recorded"]
for _ in range(20):
    x = np.exp(-(x - y) ** 2) + .1 * x
print(counters["nodes_recorded"] - before, float(x.sum()))
"""
    environment = {**os.environ, "CLFUSE_HOST_US": "50", "CLFUSE_BUILD_AFTER_MS": "50"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    recorded, total = done.stdout.split()
    x, y = np.linspace(0, 1, 1000), np.linspace(1, 2, 1000)
    for _ in range(20):
        x = np.exp(-((x - y) ** 2)) + 0.1 * x
    assert int(recorded) == 0
    assert_allclose(float(total), x.sum(), rtol=1e-12)


def diffused(module: ModuleType, u: Any) -> Any:
    return u + 0.1 * (module.roll(u, 1) + module.roll(u, -1) - 2 * u)


def grown(module: ModuleType, u: Any) -> Any:
    around = module.roll(u, 1) + module.roll(u, -1) + module.roll(u, 7)
    return module.where((around > 1) | (u < 0.5), 0.9 * u, u + 0.1 * around)


@pytest.mark.parametrize("turn", [diffused, grown], ids=lambda turn: turn.__name__)
def test_pieces_of_a_loop_begin_alike_after_an_allowance(
    xp: ModuleType, turn: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends in the midst of a round: after each, the loop was another structure."""
    pieces: list[tuple[int, bool]] = []
    choose = choice.choose

    def watched(snapshot: Snapshot, *args: Any, **kwargs: Any) -> Any:
        pieces.append((hash(tuple(snapshot.items)), auto_flush._loop.is_rest))
        return choose(snapshot, *args, **kwargs)

    monkeypatch.setattr(auto_flush, "_loop", auto_flush._Loop())
    theirs, ours = VALUES, xp.asarray(VALUES)
    with xp.config.override(loop_nodes=100):
        monkeypatch.setattr(choice, "choose", watched)
        before = xp.stats()["kernels_launched"]
        for number in range(20_000):
            theirs, ours = turn(np, theirs), turn(xp, ours)
            if xp.stats()["kernels_launched"] > before and not number % 100:
                break
        assert_allclose(ours.get(), theirs, rtol=1e-12)
    rests = [structure for structure, is_rest in pieces if is_rest]
    wholes = [structure for structure, is_rest in pieces[:-1] if not is_rest]
    assert rests, "a turn has begun in the midst of a round"
    assert len(wholes) > 1
    assert len(set(wholes)) == 1, "the others are alike"
