"""On a CPU what folds the pieces of a reduction runs at the end of the launch that makes them: the
results are NumPy's, every time, whoever else computes meanwhile."""

from __future__ import annotations

import threading
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

LENGTH = 400_003


@pytest.fixture
def pieces(xp: ModuleType) -> int:
    """Launches of a reduction in pieces."""
    return 1 if xp.get_device().traits.schedule == "cpu" else 2


def launched(xp: ModuleType, make: Any) -> int:
    before = xp.stats()["kernels_launched"]
    xp.evaluate(make())
    return xp.stats()["kernels_launched"] - before


def test_a_reduction_in_pieces_is_one_launch(xp: ModuleType, pieces: int) -> None:
    whole = np.arange(LENGTH) % 1013
    x = xp.array(whole)
    xp.evaluate(x)
    plan = xp.explain(x.sum())
    assert len(plan.kernels) == 2
    assert [kernel.follows for kernel in plan.kernels] == [False, pieces == 1]
    assert f"{pieces} launch(es)" in str(plan)
    assert launched(xp, lambda: x.sum()) == pieces
    assert launched(xp, lambda: (x.astype(float) ** 0.5).max()) == pieces
    assert launched(xp, lambda: xp.multiply(x, 3).argmin()) == pieces
    assert x.sum() == whole.sum()
    assert (x == 1012).argmax() == 1012
    assert np.sqrt(x[::-2].mean()) == pytest.approx(np.sqrt(whole[::-2].mean()), rel=1e-15)


@pytest.mark.parametrize("columns", [2, 3, 7, 64])
def test_so_are_sums_of_columns_with_rows_left_over(
    xp: ModuleType, pieces: int, columns: int
) -> None:
    whole = (np.arange((LENGTH // columns) * columns) % 89).reshape(-1, columns)
    x = xp.array(whole)
    xp.evaluate(x)
    assert launched(xp, lambda: x.sum(0)) == 1 or pieces == 2
    assert_array_equal(np.asarray(x.sum(0)), whole.sum(0))
    assert_array_equal(np.asarray(x[:, ::-1].max(0) - x.min(0)), whole[:, ::-1].max(0))


def test_so_are_folds_of_what_rows_have_left(xp: ModuleType, pieces: int) -> None:
    values = np.random.default_rng(5).normal(7, 2, (1000, 400))
    x = xp.array(values)
    xp.evaluate(x)
    for make in (
        lambda a: a.var(),
        lambda a: a.mean(1).max(),
        lambda a: (a / a.sum(1)[:, None]).max(1).argmin(),
        lambda a: a.var(1).sum(),
    ):
        launches = launched(xp, partial(make, x))
        assert launches == 1 if pieces == 1 else pieces <= launches <= 2 * pieces
        assert float(make(x)) == pytest.approx(float(make(values)), rel=1e-13)


def test_pieces_done_in_another_order_are_folded_in_theirs(xp: ModuleType) -> None:
    """The count of work-items is 0 again after every launch, and nothing is folded too soon."""
    values = np.random.default_rng(8).normal(size=LENGTH) * 1e8
    x = xp.array(values)
    xp.evaluate(x)
    first = float(x.sum())
    for number in range(1500):
        total, largest = x.sum(), (x + 0).max()
        if number % 2:
            xp.evaluate(largest)
        xp.evaluate(total, largest)
        assert float(total) == first, number
        assert float(largest) == values.max(), number


def test_results_may_lie_where_the_operands_were(xp: ModuleType) -> None:
    values = np.random.default_rng(9).integers(0, 99, (LENGTH // 3, 3))
    for _ in range(3):
        x = xp.array(values) * 1
        xp.evaluate(x)
        x = (x + 1).sum(0) * 2
        assert_array_equal(np.asarray(x), (values + 1).sum(0) * 2)
        x = xp.array(values[:, 0]) * 1
        xp.evaluate(x)
        x -= x.max()
        x += x.sum() // len(x)
        own = values[:, 0] - values[:, 0].max()
        assert_array_equal(np.asarray(x), own + own.sum() // len(own))


def test_threads_and_jitted_functions_share_a_device(xp: ModuleType) -> None:
    values = [np.arange(LENGTH + 1000 * number) % (11 + number) for number in range(4)]
    jitted = xp.jit(lambda x: ((x * 3).sum(), x.max() + x.min()))
    wrong: list[Any] = []

    def compute(number: int) -> None:
        x, own = xp.array(values[number]), values[number]
        for turn in range(60):
            total, spread = jitted(x)
            if (int(total), int(spread)) != ((own * 3).sum(), own.max()):
                wrong.append(("jit", number, turn))
            if int((x + turn).sum()) != (own + turn).sum():
                wrong.append(("sum", number, turn))

    threads = [threading.Thread(target=compute, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_profile_counts_one_launch_with_the_bytes_of_both(xp: ModuleType, pieces: int) -> None:
    x = xp.array(np.ones(LENGTH))
    xp.evaluate(x, x.sum())
    with xp.profile() as profile:
        for _ in range(3):
            xp.evaluate(x.sum() + 1)
    assert len(profile.kernels) == 3 * pieces
    assert sum(kernel.nbytes for kernel in profile.kernels) >= 3 * 8 * LENGTH
