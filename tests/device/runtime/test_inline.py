"""Small kernels in the calling thread: the same results, in order with the device's threads."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import clfuse as xp
from clfuse import config
from clfuse.counters import counters
from clfuse.engine import executable
from clfuse.runtime.launches import program
from tests.support.agreement import assert_bitwise
from tests.support.threads import in_threads

pytestmark = pytest.mark.clfuse_only

HOSTILE = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e308, -1e-308, 5e-324, 1.5, -2.5, 3e7])


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the calling thread runs it, for each program that was asked for."""
    if xp.get_device().inline is None:
        pytest.skip("the driver has no device of the calling thread")
    asked: list[bool] = []
    build = program.build

    def watched(*args: Any, inline: bool = False, **options: Any) -> program.Program:
        asked.append(inline)
        return build(*args, inline=inline, **options)

    monkeypatch.setattr(executable.program, "build", watched)
    return asked


def python(code: str, **environment: str) -> str:
    """What a program prints in a fresh interpreter, with this environment."""
    variables = {k: v for k, v in os.environ.items() if k not in ("POCL_DEVICES", "CLFUSE_INLINE")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**variables, **environment},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_small_plan_is_run_inline_and_a_large_one_is_not(inline: list[bool]) -> None:
    x = np.arange(1000.0)
    assert_bitwise(xp.asarray(x) * 3 + 0.25, x * 3 + 0.25)
    assert inline == [True]
    large = np.arange(1e6)
    assert_bitwise(xp.asarray(large) * 3 + 0.125, large * 3 + 0.125)
    assert inline == [True, False]


@xp.kernel
def shortened(i, j, k, ways):
    there = ways[i, k] + ways[k, j]
    if there < ways[i, j]:
        ways[i, j] = there


def test_calls_of_a_kernel_in_a_row_run_inline_without_tables(
    inline: list[bool],
) -> None:
    for size, expects in ((30, {True}), (1500, {False})):
        ways = np.random.default_rng(2).random((size, size))
        expected, actual = ways.copy(), xp.asarray(ways)
        xp.evaluate(actual)
        inline.clear()
        before = counters["kernels_launched"]
        for k in range(4):
            expected = np.minimum(expected, expected[:, k, None] + expected[k])
            shortened((size, size), k, actual)
        assert "table" not in str(xp.explain(actual))
        xp.evaluate(actual)
        assert set(inline) == expects
        assert counters["kernels_launched"] - before == 4
        assert_bitwise(actual, expected)


def test_what_a_loop_without_known_end_takes_nobody_knows(inline: list[bool]) -> None:
    @xp.kernel
    def halved(i, x):
        v = x[i]
        while v > 1.0:
            v = 0.5 * v
        x[i] = v

    x = xp.asarray(np.array([8.0, 0.5, 5.0]))
    halved(3, x)
    assert_bitwise(x, np.array([1.0, 0.5, 0.625]))
    assert inline == [False]


def test_the_setting_leaves_all_to_the_threads(inline: list[bool]) -> None:
    x = np.arange(1000.0)
    with config.override(inline=False):
        assert_bitwise(xp.asarray(x) * 5 - 0.25, x * 5 - 0.25)
    assert inline == [False]


def test_the_same_length_of_many_operations_is_not_small(inline: list[bool]) -> None:
    x = xp.asarray(np.linspace(0.0, 1.0, 5000))
    y = x
    for _ in range(60):
        y = xp.sin(y) + x
    assert np.isfinite(np.asarray(y)).all()
    assert inline == [False]


@pytest.mark.parametrize("name", ["sqrt", "exp", "arctan", "floor", "sign"])
def test_functions_have_the_same_bits_in_either_thread(name: str) -> None:
    results = []
    for on in (True, False):
        with config.override(inline=on), np.errstate(all="ignore"):
            results.append(np.asarray(getattr(xp, name)(xp.asarray(HOSTILE)) + 0.0))
    assert_bitwise(results[0], results[1])


@pytest.mark.parametrize(
    "function",
    [
        lambda np, x: x.sum(),
        lambda np, x: x.std(axis=0),
        lambda np, x: np.cumsum(x, axis=1),
        lambda np, x: x[x > 0.5],
        lambda np, x: np.sort(x, axis=1)[:, 3] + x.argmax(axis=1),
        lambda np, x: np.where(x > 0.5, x[::-1], -x) @ x.T,
        lambda np, x: np.concatenate([x, x * 2])[::3],
    ],
)
def test_programs_are_numpys_in_either_thread(function: Any) -> None:
    x = np.random.default_rng(3).random((30, 40))
    for on in (True, False):
        with config.override(inline=on):
            result = np.asarray(function(xp, xp.asarray(x)))
        np.testing.assert_allclose(result, function(np, x), rtol=1e-13)


def test_what_threads_work_on_is_done_before_it_is_read_inline(inline: list[bool]) -> None:
    large = np.linspace(0.0, 1.0, 1 << 21)
    for shift in range(5):
        y = xp.asarray(large)
        for _ in range(10):
            y = xp.sin(y) + shift
        xp.evaluate(y, wait=False)
        part = y[-3:] * 2.0
        expected = large[-3:]
        for _ in range(10):
            expected = np.sin(expected) + shift
        np.testing.assert_allclose(np.asarray(part), expected * 2.0, rtol=1e-13)
    assert set(inline) == {True, False}


def test_what_was_written_inline_is_there_for_the_threads(inline: list[bool]) -> None:
    x = xp.zeros(1 << 20)
    expected = np.zeros(1 << 20)
    for step in range(1, 6):
        small = xp.full(7, float(step)) * 0.5
        xp.evaluate(small, wait=False)
        x[10:17] += small
        x += 1.0
        expected[10:17] += step * 0.5
        expected += 1.0
    assert_bitwise(x, expected)
    assert set(inline) == {True, False}


def test_many_threads_may_run_small_and_large_plans() -> None:
    wrong: list[Any] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(15):
            for size in (100, 300_000):
                x = rng.random(size)
                total = float((xp.asarray(x) * 2 + seed).sum())
                if not np.isclose(total, (x * 2 + seed).sum(), rtol=1e-12):
                    wrong.append((seed, size, total))

    in_threads(work)
    assert wrong == []


def test_a_known_plan_is_run_again_with_other_memory(inline: list[bool]) -> None:
    x = np.arange(500.0)
    before = counters["kernels_launched"]
    for step in range(12):
        assert_bitwise(xp.asarray(x + step) * 7 - 0.5, (x + step) * 7 - 0.5)
    assert inline == [True]
    assert counters["kernels_launched"] == before + 12


def test_profiles_have_times_of_what_ran_inline(inline: list[bool]) -> None:
    xp.evaluate()  # what other tests have left, which the profile would have, too
    inline.clear()
    with xp.profile() as profile:
        np.asarray(xp.arange(3000.0) * 3.5)
    assert inline == [True]
    assert profile.kernels
    assert all(kernel.elapsed_ns > 0 for kernel in profile.kernels)


def test_what_a_kernel_in_opencl_c_takes_nobody_knows(inline: list[bool]) -> None:
    code = "__kernel void grow(__global double *x) { x[get_global_id(0)] += 1; }"
    x = xp.zeros(10)
    xp.RawKernel(code, "grow")((10,), (1,), (x,))
    assert_bitwise(x, np.ones(10))
    assert inline[-1] is False


def test_a_small_kernel_that_fuses_with_nothing_is_run_inline(inline: list[bool]) -> None:
    @xp.kernel
    def scattered(i, places, x, y):
        y[places[i]] = 2 * x[i]

    order = np.random.default_rng(5).permutation(100)
    expected = np.zeros(100)
    expected[order] = 2 * np.arange(100.0)
    x, y = np.arange(100.0), xp.zeros(100)
    scattered(100, xp.asarray(order), xp.asarray(x), y)
    assert_bitwise(y, expected)
    assert inline[-1] is True


def test_one_device_is_listed_and_the_environment_is_unchanged() -> None:
    code = (
        "import os, clfuse\n"
        "found = [d for d in clfuse.devices() if d.platform_name.startswith('Portable')]\n"
        "print([(d.index.split(':')[1], d.inline is not None) for d in found],"
        " os.environ.get('POCL_DEVICES'))"
    )
    on, off = python(code), python(code, CLFUSE_INLINE="off")
    assert on in ("[('0', True)] None", "[('0', False)] None", "[] None")
    assert off in ("[('0', False)] None", "[] None")
    assert (on == "[] None") == (off == "[] None")


def test_what_the_user_has_pocl_make_is_what_there_is() -> None:
    code = "import clfuse; print(sum(d.inline is not None for d in clfuse.devices()))"
    assert python(code, POCL_DEVICES="pthread") == "0"
