"""Kernels whose loops end elsewhere in each iteration run in lanes, with the bits that each
iteration has by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse.user_kernels.language.launch_route import spmd_lanes
from tests.support.agreement import SIMULATED

pytestmark = pytest.mark.clfuse_only
N, M = 13, 21


@cf.kernel
def escapes(i, j, x, starts, out):
    a, b = x[i, j], 0.0
    c, d = a, starts[j]
    n = 0
    while a * a + b * b < 4.0 and n < 40:
        a, b = a * a - b * b + c, 2.0 * a * b + d
        n += 1
    out[i, j] = n + a


@cf.kernel
def roots(i, j, x, starts, out):
    y = 1.0
    for k in range(j - 5, 60):
        step = (y * y - x[i, j]) / (2.0 * y)
        if k == 7:
            continue
        y -= step
        if abs(step) < 0.001:
            break
        if not y < 30.0:
            y = -1.0
            return
    out[i, j] = y


@cf.device_function
def collatz(first):
    n, steps = first, 0
    while True:
        if n <= 1:
            return steps, n
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
        if steps > 70:
            return -1, n


@cf.kernel
def hailstones(i, j, x, starts, out):
    steps, last = collatz(i * 21 + j)
    out[i, j] = steps if last == 1 else last


@cf.kernel
def searches(i, j, x, starts, out):
    """In a sorted row, backwards too; a lane that has found its place reads nothing."""
    low, high = 0, starts.shape[0]
    while low < high:
        middle = (low + high) // 2
        if starts[middle] < x[i, j]:
            low = middle + 1
        else:
            high = middle
    last = -1
    for k in range(starts.shape[0] - 1, -1, -2):
        if starts[k] < x[i, j]:
            last = k
            break
    out[i, j] = low * 100 + last


@cf.kernel
def nested(i, j, x, starts, out):
    total = 0.0
    k = j
    while k > 1:
        k -= 2
        if x[i, k] < 0.0:
            continue
        m = 0
        while True:
            m += 1
            if m > 3 and x[i, j] > 0.25:
                break
            if m * k > 40:
                return
            total += x[i, k] / m
            if m == 6:
                break
        for r in range(3):
            if r == 2 and total > 3.0:
                break
            total -= 0.125 * r
    if j % 3 == 1:
        return
    out[i, j] = total


WRITTEN = [escapes, roots, hailstones, searches, nested]


@pytest.mark.parametrize("nbytes", [64, 16])
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=lambda d: d.__name__)
@pytest.mark.parametrize("kernel", WRITTEN, ids=lambda k: k.__name__)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_loops_that_end_apart_have_the_bits_of_single_ones(
    kernel: Any, dtype: Any, nbytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(3)
    x = random.uniform(-2, 2, (N, M)).astype(dtype)
    starts = np.sort(random.uniform(-1, 1, M)).astype(dtype)
    for where in (((0, N), (0, M)), ((2, N), (1, M - 3)), (N, 3)):
        found = []
        for width_of in (spmd_lanes.width_of, lambda *_: 1):
            monkeypatch.setattr(spmd_lanes, "width_of", width_of)
            own = cf.kernel(kernel.__wrapped__)
            for shape in ((N, M), (M, N)):
                out = cf.zeros(shape, dtype)
                with cf.config.override(vector_bytes=nbytes, schedule="cpu"):
                    own(where, x, starts, out if shape == (N, M) else out.T)
                    found.append(out.get() if shape == (N, M) else out.T.get())
            monkeypatch.undo()
        expected = np.zeros((N, M), dtype)
        kernel.python(where, x, starts, expected)
        if not SIMULATED:
            for each in found:
                np.testing.assert_array_equal(each, expected)


@cf.kernel
def rounds(i, x, limit):
    y, n = x[i], 0
    while y > 1.0:
        if n == limit:
            return n, y, False
        y = y / 3.0 - 0.125
        n += 1
    return n, y, y < 0.5


def test_what_such_kernels_return() -> None:
    x = np.random.default_rng(4).uniform(-5, 4000, 203)
    counts, values, small = rounds.python(203, x, 6)
    with cf.config.override(schedule="cpu", vector_bytes=64):
        on_device = cf.asarray(x)
        assert "rounds_8_lanes(" in rounds.source(203, on_device, 6)
        found = rounds.reduce(203, on_device, 6)
        every = rounds.scan(203, on_device, 6, op="max")
        if not SIMULATED:
            assert (int(found[0]), int(found[2])) == (counts.sum(), small.sum())
            assert float(found[1]) == pytest.approx(values.sum())
            np.testing.assert_array_equal(every[1].get(), np.maximum.accumulate(values))


def test_lanes_that_have_left_divide_and_read_nothing() -> None:
    @cf.kernel
    def gcds(i, a, b, table, out):
        m, n = a[i], b[i]
        while n != 0:
            m, n = n, m % n
        k = 0
        while k < table.shape[0] and table[k] != m:
            k += 1
        out[i] = m * 100 + k

    random = np.random.default_rng(5)
    a, b = random.integers(0, 60, (2, 90)).astype(np.int32)
    table = np.array([1, 3, 2, 6, 59], np.int32)
    expected = np.zeros(90, np.int64)
    gcds.python(90, a, b, table, expected)
    out = cf.zeros(90, np.int64)
    arrays = [cf.asarray(each) for each in (a, b, table)]
    gcds(90, *arrays, out)
    actual = out.get()
    if not SIMULATED:
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("kernel", WRITTEN, ids=lambda k: k.__name__)
def test_such_kernels_are_vectors(kernel: Any) -> None:
    x, starts, out = cf.zeros((N, M)), cf.zeros(M), cf.zeros((N, M))
    with cf.config.override(schedule="cpu", vector_bytes=64):
        assert f"{kernel.__name__}_8_lanes(" in kernel.source((N, M), x, starts, out)
        with cf.config.override(check="bounds"):
            assert "_lanes(" not in kernel.source((N, M), x, starts, out)


@cf.kernel
def sorts(i, x):
    for k in range(1, x.shape[1]):
        v, m = x[i, k], k
        while m > 0 and x[i, m - 1] > v:
            x[i, m] = x[i, m - 1]
            m -= 1
        x[i, m] = v


@cf.kernel
def counts(i, x, seen):
    n = i
    while n > 0:
        cf.atomic.add(seen, n, 1)
        n = n // 2


def test_loops_that_write_run_as_they_stand() -> None:
    values = np.random.default_rng(6).random((30, 11))
    x, seen = cf.asarray(values), cf.zeros(64, np.int32)
    assert "_lanes(" not in sorts.source(30, x) + counts.source(64, x, seen)
    sorts(30, x)
    counts(64, x, seen)
    np.testing.assert_array_equal(x.get(), np.sort(values, 1))
    assert seen.get()[[1, 2, 32, 63]].tolist() == [63, 31, 1, 1]
