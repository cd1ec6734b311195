"""NumPy calculates until kernels are worth building, and later runs know what was worth it."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from clfuse.counters import counters
from clfuse.engine import plans
from clfuse.engine.evaluate import forget_plans
from clfuse.policy import allowance, tiering, warm_start
from clfuse.target.costs import COSTS
from tests.device.policy.test_small_programs import counted

pytestmark = pytest.mark.clfuse_only


@pytest.fixture(autouse=True)
def first_run(xp: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tiering, "TRUSTED_PLANS", -math.inf)
    monkeypatch.setattr(allowance, "_core", None)  # everything is recorded: test_allowance has them
    with xp.config.override(host_us=0, build_after_ms=0):
        xp.evaluate(xp.arange(3.0) * 2)  # what plans is there
    forget()
    with xp.config.override(host_us=50):
        yield


def forget() -> None:
    """Be as a process that has just started."""
    forget_plans()
    warm_start.forget()


def evaluations_before_kernels(
    xp: ModuleType, size: int, most: int, between: Callable[[], object] = lambda: None
) -> int:
    """How many evaluations of one expression were NumPy's before a kernel was."""
    x = np.arange(float(size))
    scale = 1 + len(x) / 7
    expected = np.sqrt(x * scale) - x[::-1] / (x + scale)
    for number in range(most):
        array = xp.asarray(x)
        program = xp.sqrt(array * scale) - array[::-1] / (array + scale)
        found, host, kernels = counted(xp, program.get)
        assert not (host and kernels)
        assert_allclose(found, expected, rtol=1e-13, atol=1e-13)
        if kernels:
            return number
        between()
    return most


def test_numpy_works_as_long_as_a_build_and_less_on_a_loop(
    xp: ModuleType, shares_memory: bool
) -> None:
    xp.evaluate(xp.zeros(3))
    assert evaluations_before_kernels(xp, 901, 30) == 30, "small"
    assert 60 < evaluations_before_kernels(xp, 30_001, 3000) < 3000, "it takes NumPy 0.15 ms"
    assert evaluations_before_kernels(xp, 65_001, 9) == 2, "the third evaluation is of a loop"
    for size in (130_001, 900_001):  # longer ones go to the device when they are made
        assert evaluations_before_kernels(xp, size, 9) == (2 if shares_memory else 0)
    with xp.config.override(build_after_ms=1):
        assert evaluations_before_kernels(xp, 900_002, 9) == 0, "longer than building"


def test_loops_of_milliseconds_open_no_device(
    xp: ModuleType, shares_memory: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(counters, "plans_made", 0)
    monkeypatch.setattr(type(xp.get_device()), "is_open", False)
    assert evaluations_before_kernels(xp, 65_003, 30) == 30
    if shares_memory:
        monkeypatch.setattr(type(xp.get_device()), "may_wait", True)
        assert evaluations_before_kernels(xp, 300_001, 30) == 30
    forget()
    monkeypatch.setattr(tiering, "COSTS", replace(COSTS, opening_ns=2e6))
    monkeypatch.setattr(type(xp.get_device()), "costs", replace(COSTS, opening_ns=2e6))
    assert 3 < evaluations_before_kernels(xp, 65_005, 30) < 30


def test_what_numpy_does_before_a_launch_earns_nothing(
    xp: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = replace(COSTS, launch_ns=1e9)
    monkeypatch.setattr(type(xp.get_device()), "costs", costs)
    with xp.config.override(build_after_ms=1):
        most = evaluations_before_kernels(xp, 30_003, 200)
    assert (most == 200) == xp.get_device().shares_memory


@pytest.mark.usefixtures("shared_memory")
def test_what_reads_kernel_results_in_a_loop_waits_no_longer(xp: ModuleType) -> None:
    """NumPy and kernels by turns would bring each other their results in every round."""
    x = xp.asarray(np.arange(30_001.0))
    for turn in range(3):
        with xp.config.override(host_us=0, build_after_ms=0):
            array = x * (turn + 1.5)
            xp.evaluate(array)
        program = xp.sqrt(array) - array[::-1] / (array + 1.5)
        found, host, kernels = counted(xp, program.get)
        expected = np.arange(30_001.0) * (turn + 1.5)
        assert_allclose(found, np.sqrt(expected) - expected[::-1] / (expected + 1.5), rtol=1e-13)
        assert (bool(host), bool(kernels)) == (turn < 2, turn == 2)


@pytest.mark.usefixtures("shared_memory")
def test_large_arrays_of_recurring_plans_have_kernels_at_once(
    xp: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    xp.evaluate(xp.zeros(3))
    monkeypatch.setattr(tiering, "TRUSTED_PLANS", 3)
    assert evaluations_before_kernels(xp, 130_001, 9) == 2, "not large"
    for size in (200_001, 200_002):
        assert evaluations_before_kernels(xp, size, 9) == 0
    assert evaluations_before_kernels(xp, 200_003, 9) == 2, "four plans were used once"
    for _ in range(5):
        evaluations_before_kernels(xp, 200_001, 1)
    assert evaluations_before_kernels(xp, 200_004, 9) == 2, "one that comes often is one"
    for size in (200_002, 200_003, 200_004):
        evaluations_before_kernels(xp, size, 1)
    assert evaluations_before_kernels(xp, 200_005, 9) == 0, "and others came again"


@pytest.mark.usefixtures("shared_memory")
def test_many_small_operations_on_a_large_array_are_numpys(
    xp: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recurrence over rows is a launch each, and planning it takes longer than NumPy does."""
    monkeypatch.setattr(tiering, "TRUSTED_PLANS", math.inf)
    steps = 1 + np.sin(np.arange(400.0 * 1000)).reshape(400, 1000)

    def recurrence(module: ModuleType, table: object) -> object:
        h = module.sqrt(table) * 0
        for number in range(1, 400):
            h[number, 1:] = module.maximum(h[number - 1, :-1] * 0.9, 0.5) + table[number, 1:]
        return h

    table = xp.asarray(steps)
    xp.evaluate(table)
    with xp.config.override(loop_nodes=0):
        found, host, kernels = counted(xp, lambda: np.asarray(recurrence(xp, table)))
    assert host
    assert not kernels
    assert_array_equal(found, recurrence(np, steps))


@pytest.mark.usefixtures("shared_memory")
def test_a_program_of_many_structures_does_not_build_them_all(
    xp: ModuleType,
) -> None:
    rows = np.arange(40 * 5000.0).reshape(40, 5000) % 17
    large = xp.asarray(rows)
    xp.evaluate(large)

    def turn() -> None:
        for count in range(20, 40):
            found = xp.sqrt(large[:count]).sum(axis=0).get()
            assert_allclose(found, np.sqrt(rows[:count]).sum(axis=0), rtol=1e-14)

    _, host, kernels = counted(xp, lambda: [turn() for _ in range(4)])
    assert (host, kernels) == (80, 0)


def test_kernels_of_an_earlier_run_come_at_once(
    xp: ModuleType,
) -> None:
    size = 30_005
    first = evaluations_before_kernels(xp, size, 3000)
    assert first > 60
    forget()
    assert evaluations_before_kernels(xp, size, 3000) == 0
    forget()
    with xp.config.override(stream_bytes=1):  # other kernels
        assert evaluations_before_kernels(xp, size, 50) == 50
    forget()
    warm_start._path().unlink()
    assert evaluations_before_kernels(xp, size, 50) == 50


def test_what_earned_kernels_waits_behind_too_many_others(
    xp: ModuleType,
) -> None:
    """Their plans would push each other out of the cache, and be made again in every turn."""
    sizes = range(65_000, 65_000 + 2 * tiering.EARNED_STRUCTURES)
    for size in (sizes[0], sizes[1]):
        assert evaluations_before_kernels(xp, size, 9) == 2
    forget()
    assert evaluations_before_kernels(xp, sizes[1], 9) == 0
    others = sizes[2:]

    def many() -> None:
        x = xp.asarray(np.arange(65_000.0))
        for size in others:
            xp.evaluate(xp.sqrt(x[: size - 15_000]) * 2 + 1)

    assert evaluations_before_kernels(xp, sizes[0], 2) == 0
    plans.forget()
    many()
    assert evaluations_before_kernels(xp, sizes[0], 2, many) == 2


def test_another_process_knows_what_earned_its_kernels(xp: ModuleType, tmp_path: Path) -> None:
    script = (
        "import clfuse as np\n"
        "x = np.arange(60_007.0) + 0\n"
        "np.evaluate(x)\n"
        "for number in range(3000):\n"
        "    (np.sqrt(x) * 3.5 + x[::-1]).get()\n"  # the root is too much for `allowance.begin`
        "    if np.stats()['kernels_launched']:\n"
        "        break\n"
        "print(number)\n"
    )
    environment = {
        **os.environ, "CLFUSE_HOST_US": "50", "XDG_CACHE_HOME": str(tmp_path / "own"),
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[3]), *sys.path]),
    }
    first, second = [
        int(subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True,
            check=True,
        ).stdout)
        for _ in range(2)
    ]
    assert first > 20
    assert second == 0


def test_runs_too_short_to_earn_kernels_earn_them_together(
    xp: ModuleType,
) -> None:
    size = 30_009
    whole = evaluations_before_kernels(xp, size, 3000)
    for part, known in ((whole // 3, False), (2 * whole // 3, True)):
        forget()
        warm_start._path().unlink(missing_ok=True)
        assert evaluations_before_kernels(xp, size, part) == part
        tiering.note_half_earned()
        forget()
        assert evaluations_before_kernels(xp, size, 9) == (0 if known else 9)


def test_explain_says_that_numpy_goes_first(xp: ModuleType) -> None:
    x = xp.asarray(np.arange(65_003.0))  # on the host until a kernel reads it

    def program() -> object:
        return xp.sqrt(x * 3.25) - x[::-1] / (x + 3.25)

    plan = xp.explain(program())
    assert plan.waiting
    assert not plan.small
    assert "CLFUSE_BUILD_AFTER_MS" in str(plan)
    assert "CLFUSE_BUILD_AFTER_MS" in plan._repr_html_()
    for _ in range(3):
        _, host, kernels = counted(xp, lambda: xp.evaluate(program()))
    assert (host, kernels) == (0, 1)
    plan = xp.explain(program())
    assert not plan.waiting
    assert "CLFUSE_BUILD_AFTER_MS" not in str(plan)


# -- writing in place ------------------------------------------------------------------------------


def stored(xp: ModuleType, values: np.ndarray) -> object:
    """An array of the device, that nobody looks at."""
    with xp.config.override(host_us=0):
        x = xp.asarray(values) + 0
        xp.evaluate(x)
        xp.synchronize()
    return x


VALUES = np.arange(600_000.0).reshape(6, -1) + 1


@pytest.mark.usefixtures("shared_memory", "uncollected")
def test_an_array_that_nobody_else_has_is_written_in_place(xp: ModuleType) -> None:
    x, mine = stored(xp, VALUES), VALUES.copy()
    before = xp.stats()["device_bytes_now"]
    tracemalloc.start()
    try:
        for row in range(5):
            x[row] = np.sqrt(x[row + 1]) * 2 + x[row]
            mine[row] = np.sqrt(mine[row + 1]) * 2 + mine[row]
            assert counted(xp, lambda: xp.evaluate(x))[1:] == (1, 0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < VALUES.nbytes * 0.7  # three rows of six, and what else is recorded
    assert xp.stats()["device_bytes_now"] == before
    assert_array_equal(x, mine)


@pytest.mark.usefixtures("shared_memory", "uncollected")
def test_what_numpy_computed_is_counted_while_it_is_held(xp: ModuleType) -> None:
    x = stored(xp, VALUES)
    before = xp.stats()["device_bytes_now"]
    y = xp.sqrt(x) + 2.5
    assert counted(xp, lambda: xp.evaluate(y))[1:] == (1, 0)
    assert xp.stats()["device_bytes_now"] == before + VALUES.nbytes
    y[1] = xp.sqrt(x[2])
    xp.evaluate(y)
    assert xp.stats()["device_bytes_now"] == before + VALUES.nbytes
    y = None
    assert xp.stats()["device_bytes_now"] == before


def test_whoever_holds_the_old_values_keeps_them(xp: ModuleType) -> None:
    holders: list[Callable[[object], object]] = [
        lambda x: x.copy(), lambda x: x + 0, lambda x: x[::-1].copy(), np.asarray,
        lambda x: np.asarray(x)[2:], lambda x: xp.sqrt(x[1:3]),
    ]
    expected = [lambda x: x, lambda x: x, lambda x: x[::-1], lambda x: x, lambda x: x[2:],
                lambda x: np.sqrt(x[1:3])]
    for hold, wanted in zip(holders, expected, strict=True):
        x = stored(xp, VALUES)
        kept = hold(x)
        before = VALUES.copy()
        x[1:3] = xp.exp(x[0] * 1e-6) + x[1:3]
        x[2] -= 1
        after = VALUES.copy()
        after[1:3] = np.exp(after[0] * 1e-6) + after[1:3]
        after[2] -= 1
        xp.evaluate(x)
        assert_array_equal(x, after)
        assert_array_equal(kept, wanted(before))


@pytest.mark.usefixtures("shared_memory")
def test_what_was_calculated_is_kept_when_the_rest_fails(
    xp: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    import clfuse.interpreter.interpret as interpret

    x = stored(xp, VALUES)
    total = x.sum(axis=1) * 2
    x[1] = xp.sqrt(x[0]) + 1
    x[2, :3] = [1, 2, 3]
    last = xp.cumsum(x[1])

    def fail(*operands: object) -> None:
        raise KeyboardInterrupt

    mine = VALUES.copy()
    sums = mine.sum(axis=1) * 2
    mine[1] = np.sqrt(mine[0]) + 1
    mine[2, :3] = [1, 2, 3]
    with monkeypatch.context() as patched:
        patched.setitem(interpret._STRUCTURAL, interpret.Kind.SCAN, fail)
        with pytest.raises(KeyboardInterrupt):
            xp.evaluate(total, x, last)
    xp.evaluate(total, x, last)
    assert_allclose(total, sums, rtol=1e-14)
    assert_array_equal(x, mine)
    assert_allclose(last, np.cumsum(mine[1]), rtol=1e-14)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16", "i4"])
def test_products_of_vectors_are_numpys_while_they_wait(
    xp: ModuleType, dtype: str, shares_memory: bool, host_calculates: None
) -> None:
    rng = np.random.default_rng(3)
    columns = 5000 if shares_memory else 1000  # more of them do not stay on the host
    matrix = (rng.random((30, columns)) * 9).astype(dtype)
    long, short = (rng.random(columns) * 9).astype(dtype), (rng.random(30) * 9).astype(dtype)
    a, x, y = [stored(xp, array) if shares_memory else xp.asarray(array)
               for array in (matrix, long, short)]
    rtol = 1e-4 if dtype == "f4" else 1e-12
    programs = [lambda a, x, y: a[:29] @ x, lambda a, x, y: y @ a, lambda a, x, y: x @ x,
                lambda a, x, y: (a * x).sum(axis=1), lambda a, x, y: (a[:, ::2] @ x[::2]) + y,
                lambda a, x, y: a.T @ y]

    def wanted(program: Callable[..., object]) -> object:
        return xp.asnumpy(program(a, x, y))

    for program in programs:
        found, _, kernels = counted(xp, partial(wanted, program))
        assert kernels == 0
        assert found.dtype == program(matrix, long, short).dtype
        assert_allclose(found, program(matrix, long, short), rtol=rtol)


def test_kernels_in_python_on_small_arrays_earn_their_launches(xp: ModuleType) -> None:
    @xp.kernel
    def smoothed(i, old, new):
        new[i + 1] = 0.25 * old[i] + 0.5 * old[i + 1] + 0.25 * old[i + 2]

    old = xp.asarray(np.arange(70.0) ** 2)
    new = xp.zeros(70)
    expected = np.asarray(old.get())
    smoothed.python(68, expected, found := np.zeros(70))

    def step() -> object:
        smoothed(68, old, new)
        return new.get()

    def first_of_kernels(most: int) -> int:
        for number in range(most):
            new[:] = 0
            result, host, kernels = counted(xp, step)
            assert_array_equal(result, found)
            assert not (host and kernels)
            if kernels:
                return number
        return most

    with xp.config.override(build_after_ms=2):
        assert 5 < first_of_kernels(500) < 500, "NumPy works for 2 ms first"
    with xp.config.override(build_after_ms=0):
        assert first_of_kernels(3) == 0
    assert first_of_kernels(3) == 0, "its kernels are there"
    array = xp.asarray(np.arange(70.0))
    _, _, kernels = counted(xp, lambda: (array * 2 + 1).get())
    assert not kernels, "array code of this size stays NumPy's"
