"""Evaluations that end early, by an interrupt or by a failure: every array has its right value
afterwards, and what was begun is finished by who looks."""

from __future__ import annotations

import gc
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse.engine import executable, refused_builds
from clfuse.ir import journal
from clfuse.ir.nodes import Kind
from clfuse.tools.check import driver_faults, ended_early
from tests.device.engine.test_refused_launches import N, arrays, turned
from tests.support.rounds import IS_LONG

pytestmark = pytest.mark.clfuse_only


@pytest.fixture
def ends_at(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """``ends_at(2)``: the next plan is interrupted before its third step; with ``after=True`` right
    behind it."""

    def end(step: int, *, after: bool = False) -> None:
        launch, count = executable._launch, [0]

        def launched(*arguments: Any) -> None:
            count[0] += 1
            if count[0] == step + 1 and not after:
                raise KeyboardInterrupt
            launch(*arguments)
            if count[0] == step + 1:
                raise KeyboardInterrupt

        monkeypatch.setattr(executable, "_launch", launched)

    return end


def interrupted(*wanted: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        cf.evaluate(*wanted)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", range(3))
def test_what_was_written_in_place_is_written_once(
    ends_at: Callable[..., None], monkeypatch: pytest.MonkeyPatch, step: int, after: bool
) -> None:
    x, w = arrays()
    expected = np.array(x)
    x += 1
    y = (x + w) @ w
    x[::2] += 3
    wanted = (expected + 1 + np.eye(N) * 2) @ (np.eye(N) * 2)
    expected = expected + 1
    expected[::2] += 3
    ends_at(step, after=after)
    interrupted(x, y)
    monkeypatch.undo()
    np.testing.assert_array_equal(x.get(), expected)
    np.testing.assert_array_equal(y.get(), wanted)
    assert not journal.rests


def test_the_rest_is_done_where_operands_were_overwritten(
    ends_at: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = 0
    for step in range(1, 3):
        x, w = arrays()
        old = np.array(x)
        twice = x * 2
        x += 1
        y = twice @ w
        y += cf.roll(y, 1)
        del twice
        ends_at(step)
        interrupted(x, y)
        begun += len(journal.rests)
        monkeypatch.undo()
        product = old * 4
        np.testing.assert_array_equal(y.get(), product + np.roll(product, 1))
        np.testing.assert_array_equal(x.get(), old + 1)
    assert begun
    assert not journal.rests


def test_what_depends_on_the_rest_may_be_recorded_meanwhile(
    ends_at: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, w = arrays()
    old = np.array(x)
    y = (x * 2) @ w
    x += 1
    ends_at(1)
    interrupted(x, y)
    monkeypatch.undo()
    z = y + x
    y[0] = 5
    assert "launch" in str(cf.explain(z))
    np.testing.assert_array_equal(z.get(), old * 4 + old + 1)
    expected = old * 4
    expected[0] = 5
    np.testing.assert_array_equal(y.get(), expected)


def test_a_rest_that_nobody_wants_is_let_go(
    ends_at: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, w = arrays()
    twice = x * 2
    x += 1
    y = twice @ w
    del twice
    ends_at(1)
    interrupted(x, y)
    monkeypatch.undo()
    assert len(journal.rests) == 1
    del x, y
    gc.collect()
    assert not journal.rests


@pytest.mark.filterwarnings("ignore::clfuse.KernelBuildWarning")
def test_what_was_computed_without_the_rest_does_not_hold_it() -> None:
    x, w = arrays()
    old = np.array(x)
    n = cf.zeros(N)
    cf.evaluate(n)
    device = cf.get_device()

    def is_users(*arguments: Any) -> bool:
        return "turned" in driver_faults.kernel_of(*arguments)

    with (
        cf.config.override(host_us=0),
        driver_faults.failing(device, "clEnqueueNDRangeKernel", -5, which=is_users),
    ):
        twice = x * 2
        x += 1
        turned(N, n)
        y = twice @ w
        del twice
        with pytest.raises(cf.AllocationError):
            cf.evaluate(n, x, y)
        np.testing.assert_array_equal(y.get(), old * 4)
    del n
    gc.collect()
    assert not journal.rests
    np.testing.assert_array_equal(x.get(), old + 1)


def test_a_second_interrupt_leaves_the_work_to_who_comes_next(
    ends_at: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupts(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    x, w = arrays()
    old = np.array(x)
    x += 1
    y = (x + w) @ w
    ends_at(1)
    monkeypatch.setattr(executable, "leave", interrupts)
    interrupted(x, y)
    monkeypatch.undo()
    assert journal.journal[0] is not None
    np.testing.assert_array_equal(x.get(), old + 1)
    assert journal.journal[0] is None
    np.testing.assert_array_equal(y.get(), (old + 1 + np.eye(N) * 2) * 2)


def test_a_warning_as_an_error_changes_only_what_it_is_about() -> None:
    x, w = arrays()
    old = np.array(x)
    w[0] = np.inf
    cf.evaluate(w)
    for _ in range(2):
        with cf.config.override(host_us=0), warnings.catch_warnings():
            warnings.simplefilter("error")
            x += 1
            y = (x - 1) @ w
            with suppress(RuntimeWarning):
                cf.evaluate(x, y)
        old = old + 1
        np.testing.assert_array_equal(x.get(), old)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(y.get(), (old - 1) @ np.array(w))


def test_a_launch_that_is_refused_for_good_is_made_otherwise() -> None:
    device = cf.get_device()
    for turn in range(6):  # known plans are run without Python
        x, w = arrays()
        old = np.array(x)
        x += 1
        y = (x + w).sum(0)
        x *= 3
        refused_builds._warned.clear()
        with driver_faults.failing(device, "clEnqueueNDRangeKernel", -5, first=1):
            with pytest.warns(cf.KernelBuildWarning, match="NumPy computes its value") as caught:
                cf.evaluate(x, y)
            np.testing.assert_array_equal(x.get(), (old + 1) * 3)
            np.testing.assert_array_equal(y.get(), (old + 1 + np.eye(N) * 2).sum(0))
        assert "clEnqueueNDRangeKernel failed: OUT_OF_RESOURCES" in str(caught[0].message), turn
    assert not device.lost


def test_smaller_kernels_do_what_a_launch_is_refused_of() -> None:
    launched: list[str] = []

    def is_first(*arguments: Any) -> bool:
        launched.append(driver_faults.kernel_of(*arguments))
        return launched[-1] == launched[0]

    x, w = arrays()
    y = (x * 3 + w - 1) * (w + 2)
    refused_builds._warned.clear()
    with (
        cf.config.override(host_us=0),
        driver_faults.failing(cf.get_device(), "clEnqueueNDRangeKernel", -54, which=is_first),
        pytest.warns(cf.KernelBuildWarning, match="smaller kernels"),
    ):
        found = y.get()
    assert len(set(launched)) > 1
    old, eye = np.array(x), np.eye(N) * 2
    np.testing.assert_array_equal(found, (old * 3 + eye - 1) * (eye + 2))


@pytest.mark.parametrize("first", range(4))
@pytest.mark.filterwarnings("ignore::clfuse.KernelBuildWarning")
def test_what_is_refused_is_computed_from_kept_operands(first: int) -> None:
    x, _ = arrays()
    old = np.array(x)
    with (
        cf.config.override(host_us=0),
        driver_faults.failing(cf.get_device(), "clEnqueueNDRangeKernel", -5, first=first),
    ):
        twice = x * 2
        x += 1
        y = (twice + 1).cumsum(0)
        x[1:] += x[:-1] * 3
        del twice
        cf.evaluate(x, y)
        np.testing.assert_array_equal(y.get(), (old * 2 + 1).cumsum(0))
        expected = old + 1
        expected[1:] += expected[:-1] * 3
        np.testing.assert_array_equal(x.get(), expected)
    assert not journal.rests


@pytest.mark.parametrize("status", [-4, -54])
@pytest.mark.filterwarnings("ignore::clfuse.KernelBuildWarning")
def test_what_is_written_whole_is_computed_without_the_old(status: int) -> None:
    """The plan does not read the old x, and what kernels have left of y was written in place."""

    def is_remainder(*arguments: Any) -> bool:
        return driver_faults.kernel_of(*arguments) == "map_remainder"

    def program(np: Any, x: Any, y: Any, z: Any) -> None:
        y[1:] += 1
        y[0] = 5
        y %= 16
        x *= 2
        x.T[...] = y
        x %= 7
        y.sort(axis=0)
        y += 1
        z[:, 0] = x[:, 1]
        z %= 16

    old = [np.arange(N * N, dtype="f8").reshape(N, N) % size for size in (5, 9, 19)]
    expected = [each.copy() for each in old]
    program(np, *expected)
    with cf.config.override(host_us=0):
        ours = [cf.array(each) for each in old]
        cf.evaluate(*ours)
        program(cf, *ours)
        with driver_faults.failing(
            cf.get_device(), "clEnqueueNDRangeKernel", status, which=is_remainder
        ):
            cf.evaluate(*ours)
            for found, wanted in zip(ours, expected, strict=True):
                np.testing.assert_array_equal(found.get(), wanted)
    assert not journal.rests


@pytest.mark.parametrize("status", [-5, -54])
@pytest.mark.filterwarnings("ignore::clfuse.KernelBuildWarning")
def test_what_was_copied_before_a_write_is_read_from_the_copy(status: int) -> None:
    def is_product(*arguments: Any) -> bool:
        return driver_faults.kernel_of(*arguments) == "map_multiply_add"

    def program(np: Any, x: Any, y: Any, z: Any) -> None:
        y.reshape(5, -1)[:, 0] += 2 * x.reshape(5, -1)[:, 0]
        for row in range(4):
            x[row] += x[row - 1]
            z[row] -= 1

    old = [np.arange(125.0).reshape(5, 5, 5) % size for size in (9, 7, 5)]
    expected = [each.copy() for each in old]
    program(np, *expected)
    launched: list[str] = []
    with cf.config.override(host_us=0):
        for which in (lambda *arguments: launched.append(driver_faults.kernel_of(*arguments)),
                      is_product):
            ours = [cf.array(each) for each in old]
            cf.evaluate(*ours)
            program(cf, *ours)
            with driver_faults.failing(
                cf.get_device(), "clEnqueueNDRangeKernel", status, which=which
            ):
                cf.evaluate(*ours)
                for found, wanted in zip(ours, expected, strict=True):
                    np.testing.assert_array_equal(found.get(), wanted)
    assert "map_copy" in launched, launched
    assert not journal.rests


def write_in_parts(np: Any, x: Any, y: Any) -> Any:
    """The second launch of three for `y` multiplies, in the place where the first one wrote."""
    x -= 1
    y[1:] += 1
    y[0] = 5
    y[2:, 1:] *= 3
    y += 1
    y %= 16
    return y


def write_again(np: Any, x: Any, y: Any) -> Any:
    """What is multiplied has been written to by an update of the same elements, which is stored."""
    y %= 16
    y[2:, 1:] *= 3
    z = np.concatenate([y[1:], x[:1]])
    y[2:, 1:] *= 3
    y %= 16
    y[[2, 0]] = 3
    return z


@pytest.mark.parametrize("program", [write_in_parts, write_again])
@pytest.mark.parametrize("status", [-5, -54])
@pytest.mark.filterwarnings("ignore::clfuse.KernelBuildWarning")
def test_a_refused_part_is_written_over_what_is_in_memory(
    program: Callable[..., Any], status: int
) -> None:
    def is_product(*arguments: Any) -> bool:
        return driver_faults.kernel_of(*arguments) == "map_multiply"

    x, y = arrays()
    old = np.array(x), np.array(y)
    expected = [program(np, *old).tolist(), old[1].tolist()]
    device = cf.get_device()
    with (
        cf.config.override(host_us=0),
        driver_faults.failing(device, "clEnqueueNDRangeKernel", status, which=is_product),
    ):
        found = program(cf, x, y)
        assert [np.array(found).tolist(), np.array(y).tolist()] == expected
    assert not journal.rests


def test_a_donated_array_holds_the_result_of_an_ended_replay() -> None:
    @cf.jit(donate="a")
    def step(a: Any, w: Any) -> Any:
        a += 1
        total = a.sum(0)
        a[...] = cf.roll(a, 1, 0) * 2
        return a @ w + total

    def plain(a: Any, w: Any) -> tuple[Any, Any]:
        a = a + 1
        total = a.sum(0)
        a = np.roll(a, 1, 0) * 2
        return a, a @ w + total

    device = cf.get_device()
    ended = 0
    for first in range(6):
        a, w = arrays()
        before, after = np.array(a), plain(np.array(a), np.array(w))
        try:
            with driver_faults.failing(device, "clEnqueueNDRangeKernel", -5, first=first):
                step(a, w)
        except cf.AllocationError:
            ended += 1
            found = a.get()
            assert (found == before).all() or (found == after[0]).all()
    assert ended
    assert not device.lost


def test_a_look_at_a_donated_array_finishes_the_replay() -> None:
    a, w = arrays()
    kept = cf.zeros((N, N))

    @cf.jit(donate="a")
    def step(a: Any, w: Any) -> None:
        a += 1
        kept[...] = a @ w
        kept[1:] -= 3

    step(a, w)
    eye, ended = np.eye(N) * 2, 0
    for first in range(4):
        a, _ = arrays()
        kept[...] = first
        cf.evaluate(a, kept)
        old = np.array(a)
        with suppress(cf.AllocationError):
            with driver_faults.failing(
                cf.get_device(), "clEnqueueNDRangeKernel", -5, first=first
            ):
                step(a, w)
            continue
        ended += 1
        expected = (old + 1) @ eye
        expected[1:] -= 3
        found = np.array(a), np.array(kept)
        if (found[0] == old).all():  # the first launch has failed
            assert (found[1] == first).all()
        else:
            np.testing.assert_array_equal(found[0], old + 1)
            np.testing.assert_array_equal(found[1], expected)
    assert ended
    assert not journal.rests


@pytest.mark.filterwarnings("ignore::clfuse.KernelBuildWarning")
def test_a_refused_launch_of_a_replay_is_computed_otherwise() -> None:
    @cf.jit
    def step(a: Any, w: Any) -> Any:
        return (a + 1) @ w + a.sum(0)

    @cf.jit
    def other(a: Any, w: Any) -> Any:
        return a * w - a.max(0)

    a, w = arrays()
    old, eye = np.array(a), np.eye(N) * 2
    np.testing.assert_array_equal(step(a, w).get(), (old + 1) @ eye + old.sum(0))
    with driver_faults.failing(cf.get_device(), "clEnqueueNDRangeKernel", -5):
        np.testing.assert_array_equal(step(a, w).get(), (old + 1) @ eye + old.sum(0))
        np.testing.assert_array_equal(other(a, w).get(), old * eye - old.max(0))
    before = cf.stats()["jit_replays"]
    np.testing.assert_array_equal(step(a, w).get(), (old + 1) @ eye + old.sum(0))
    assert cf.stats()["jit_replays"] == before + 1


@cf.kernel
def counted(i, x):
    x[i] += 1


@pytest.mark.filterwarnings("ignore::clfuse.KernelBuildWarning")
def test_a_launch_ahead_that_is_refused_has_not_been_made() -> None:
    device = cf.get_device()
    with cf.config.override(host_us=0):
        x = cf.zeros(1000)
        for _ in range(30):  # from some call on they are launched ahead of the look
            counted(1000, x)
            cf.evaluate(x)
        for round_ in range(30, 34):
            with (
                suppress(cf.AllocationError),
                driver_faults.failing(device, "clEnqueueNDRangeKernel", -5),
            ):
                counted(1000, x)
                cf.evaluate(x)
            found = set(x.get().tolist())
            assert found in ({round_}, {round_ + 1}), found
            x[...] = round_ + 1
    assert not device.lost


def test_what_numpy_calculates_in_place_is_calculated_once() -> None:
    with cf.config.override(host_us=1_000_000):
        for at in range(1, 400, 7):
            x = cf.arange(12.0)
            cf.evaluate(x)
            x[1:] += 2
            y = x * 3
            x[::2] += cf.ones(6)
            with suppress(KeyboardInterrupt), ended_early.Interrupt(at) as interrupt:
                cf.evaluate(x, y)
            expected = np.arange(12.0)
            expected[1:] += 2
            wanted = expected * 3
            expected[::2] += 1
            np.testing.assert_array_equal(x.get(), expected, interrupt.where)
            np.testing.assert_array_equal(y.get(), wanted, interrupt.where)


def test_no_node_of_a_finished_plan_waits() -> None:
    x, w = arrays()
    y = x @ w
    cf.evaluate(y)
    assert y._storage.node.op.kind is not Kind.SUSPENDED


@pytest.mark.parametrize("batch", range(4 if IS_LONG else 2))
def test_random_programs_that_end_early_have_numpys_values(batch: int) -> None:
    count, problems = ended_early.run(cf, range(1000 * batch, 1000 * batch + 3), 4)
    assert count == 60
    assert not problems, "\n".join(problems)


def test_the_rest_of_a_plan_is_done_after_memory_was_short() -> None:
    """What runs in tiles then is computed as a whole by plans that know nothing of a rest."""
    count, problems = ended_early.run(cf, [14, *range(3000, 3003)], 6, [ended_early.faulty])
    assert count == 24
    assert not problems, "\n".join(problems)


def test_caught_interrupts_do_not_change_the_exit_status() -> None:
    told = ["--programs", "1", "--trials", "4", "--way", "drawn", "--start", "3300000"]
    found = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.ended_early", *told], capture_output=True, text=True,
        cwd=Path(__file__).parents[3], check=False,
    )  # fmt: skip
    assert (found.stdout, found.returncode) == ("4 trials, 0 wrong\n", 0), found.stderr
