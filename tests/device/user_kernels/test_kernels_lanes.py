"""Loops of launches that add up run with a round in every lane, and give what Python gives."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from tests.support.agreement import SIMULATED
from tests.support.kernel_loops import random_loop

pytestmark = pytest.mark.clfuse_only
PROGRAMS = max(int(os.environ.get("CLFUSE_FUZZ_PROGRAMS", "60")) // 5, 1)
SEED = int(os.environ.get("CLFUSE_FUZZ_SEED", "20"))
ROWS, LONGEST = 45, 40
LIMIT = 0.25


def agree(actual: Any, expected: Any, precision: float) -> None:
    """Oclgrind calculates vectors wrongly, and is asked about memory alone."""
    values = actual.get()
    if not SIMULATED:
        np.testing.assert_allclose(values, expected, precision, precision)


@cf.device_function
def bent(v, limit):
    w = v
    if v < limit:
        w = limit - v
    return w, w * w


@cf.device_function
def halved(x, k):
    return x[k] * 0.5


@cf.kernel
def plain(i, start, stop, values, places, out):
    total = 0.0
    for k in range(start[i], stop[i]):
        total += values[k]
    out[i] = total


@cf.kernel
def conditions(i, start, stop, values, places, out):
    one, two, count = 0.0, 1.0, 0
    for k in range(start[i], stop[i]):
        v = values[places[k]]
        if v > LIMIT and values[k] < 2.0:
            w = v * v
            if w < 1.0 or k % 2 == 0:
                w = w + 1.0
                one += w
            else:
                two *= 0.5 + 0.25 * v
            count += 1
        elif i > 3:
            one -= 2.0 * v
    out[i] = one + two * count


@cf.kernel
def guarded(i, start, stop, values, places, out):
    n = len(values)
    total = 0.0
    for k in range(start[i], stop[i]):
        here = values[k + 1000] if k + 1000 < n else -1.0
        if k - 5 >= 0 and values[k - 5] > 0.0:
            total += values[k - 5] / values[k]
        if places[k] % 3 == 0:
            continue
        total += here + values[2 * k % n]
        if values[k] < 0.1 * values[i]:
            continue
        total -= values[n - 1 - k]
    out[i] = total


@cf.kernel
def functions(i, start, stop, values, places, out):
    total = 0.0
    for k in range(start[i], stop[i]):
        one, square = bent(values[k], 0.5)
        two, _ = bent(halved(values, places[k]), one)
        total += square - two
    out[i] = total


@cf.kernel
def backwards(i, start, stop, values, places, out):
    total, last, k = 0.0, 0, 0
    for k in range(stop[i] - 1, start[i] - 1, -3):
        total += values[k] * k
        last += k
    if last:
        total += k
    out[i] = total + last


@cf.kernel
def nested(i, start, stop, values, places, out):
    total = 0.0
    for r in range(3):
        part = 0.0
        for k in range(start[i] + r, stop[i]):
            j = places[k]
            part += values[j] * (r + 1)
        for k in range(start[i], stop[i] - r):
            j = places[k] // 2
            part -= values[j]
        if part > 0:
            total += part
    out[i] = total


@cf.kernel
def of_local_arrays(i, start, stop, values, places, out):
    weights = cf.local_array(7, np.float64)
    for r in range(7):
        weights[r] = 1.0 / (r + 1)
    total = 0.0
    for k in range(start[i], stop[i]):
        total += values[k] * weights[k % 7]
    out[i] = total


@cf.kernel
def first_here(i, start, stop, values, places, out):
    """Variables that get their first value under a condition, and others after it."""
    total = 0.0
    for k in range(start[i], stop[i]):
        v = values[places[k]]
        if v < 0.4:
            low = v * 3.0
            if low < 0.5:
                inner = low - 1.0
            else:
                inner = 2.0 * low
                total -= inner
            chosen = inner + low
        elif v < 0.7:
            if k % 3 == 0:
                continue
            low = 1.0 - v
            chosen = low * low
        else:
            chosen = 0.25 / v
        total += chosen if chosen < 1.0 else chosen * 0.5
        if chosen > 0.3:
            again = chosen
            total += again * again
    out[i] = total


WRITTEN = [
    plain, conditions, guarded, functions, backwards, nested, of_local_arrays, first_here,
]


def ragged(random: np.random.Generator, dtype: Any) -> list[Any]:
    """Rows of all lengths from none on, one behind the other."""
    counts = random.permutation(ROWS) % (LONGEST + 1)
    stop = np.cumsum(counts)
    values = random.uniform(-1, 1, int(stop[-1])).astype(dtype)
    places = random.integers(0, len(values), len(values)).astype(np.int32)
    return [stop - counts, stop, values, places, np.zeros(ROWS, dtype)]


@pytest.mark.parametrize("nbytes", [64, 16])
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=lambda d: d.__name__)
@pytest.mark.parametrize("kernel", WRITTEN, ids=lambda k: k.__name__)
def test_sums_over_rows_of_all_lengths(kernel: Any, dtype: Any, nbytes: int) -> None:
    arrays = ragged(np.random.default_rng(1), dtype)
    expected = [array.copy() for array in arrays]
    kernel.python(ROWS, *expected)
    with cf.config.override(vector_bytes=nbytes):
        on_device = [cf.asarray(array) for array in arrays]
        kernel(ROWS, *on_device)
        agree(on_device[-1], expected[-1], 1e-12 if dtype == np.float64 else 2e-5)


@cf.kernel
def counted(i, start, stop, values, out):
    total = np.int64(0)
    product = np.int64(1)
    small = np.uint8(250)
    for k in range(start[i], stop[i]):
        total += values[k] * 3
        product *= values[k] | 1
        if values[k] > 0:
            small += np.uint8(1)
    out[0, i] = total
    out[1, i] = product
    out[2, i] = small


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint32], ids=lambda d: d.__name__)
def test_sums_of_integers_wrap_as_they_do_in_python(dtype: Any) -> None:
    random = np.random.default_rng(2)
    start, stop, *_ = ragged(random, np.float64)
    values = random.integers(0, 255, int(stop[-1])).astype(dtype)
    out = np.zeros((3, ROWS), np.int64)
    expected = out.copy()
    with np.errstate(all="ignore"):
        counted.python(ROWS, start, stop, values, expected)
    actual = cf.asarray(out)
    counted(ROWS, start, stop, values, actual)
    agree(actual, expected, 0)


@cf.kernel
def of_conditions(i, start, stop, marked, values, out):
    total = 0.0
    for k in range(start[i], stop[i]):
        if marked[k] or values[k] > 0.5:
            total += values[k]
        found = marked[k] and values[k] < 0.0
        if not found:
            total += 1.0
    out[i] = total


def test_arrays_of_bools_are_conditions_of_lanes() -> None:
    random = np.random.default_rng(3)
    start, stop, values, _, out = ragged(random, np.float64)
    marked = random.random(len(values)) < 0.5
    expected = out.copy()
    of_conditions.python(ROWS, start, stop, marked, values, expected)
    actual = cf.asarray(out)
    of_conditions(ROWS, start, stop, marked, values, actual)
    agree(actual, expected, 1e-12)


def test_lanes_that_do_not_count_leave_no_trace() -> None:
    """Not of what is not finite there, not of a sum's sign, not of elements that are not there."""
    @cf.kernel
    def chosen(i, count, x, y, out):
        total = out[i]
        for k in range(count[i]):
            if x[k] != 0.0:
                total += 1.0 / x[k] * y[k]
        out[i] = total

    x = np.array([0.0, np.nan, np.inf, 0.0, 2.0] * 5)
    x[1::5] = 4.0
    y = np.where(x == 0, np.nan, 1.0)
    count = np.array([0, 1, 2, 5, 13, 25])
    out = np.full(6, -0.0)
    expected = out.copy()
    chosen.python(6, count, x, y, expected)
    actual = cf.asarray(out)
    chosen(6, count, x, y, actual)
    agree(actual, expected, 1e-15)
    agree(cf.copysign(1, actual), np.copysign(1, expected), 0)
    nothing = cf.zeros(0)
    actual = cf.asarray(out)
    chosen(6, np.zeros(6, np.int32), nothing, nothing, actual)
    agree(cf.signbit(actual), True, 0)


def test_bounds_may_lie_anywhere_in_64_bits() -> None:
    @cf.kernel
    def many(i, start, stop, out):
        total = 0
        for k in range(start[i], stop[i], 3):
            total += k - start[i]
        out[i] = total

    low = np.array([2**31 - 5, 2**63 - 60, -(2**63), -(2**63), 7, 2**62], np.int64)
    high = np.array([2**31 + 70, 2**63 - 1, -(2**63) + 31, -(2**63), -9, -(2**62)], np.int64)
    expected = [sum(range(0, max(int(b) - int(a), 0), 3)) for a, b in zip(low, high, strict=True)]
    out = cf.zeros(6, dtype=np.int64)
    many(6, low, high, out)
    agree(out, expected, 0)


@pytest.mark.parametrize("kernel", WRITTEN, ids=lambda k: k.__name__)
def test_such_loops_are_vectors(kernel: Any) -> None:
    arrays = [cf.asarray(array) for array in ragged(np.random.default_rng(4), np.float64)]
    with cf.config.override(schedule="cpu", vector_bytes=64):
        assert "(0, 1, 2, 3" in kernel.source(ROWS, *arrays)
    with cf.config.override(check="bounds"):
        assert "(0, 1, 2, 3" not in kernel.source(ROWS, *arrays)


@cf.kernel
def remembers(i, start, stop, values, out):
    total, before = 0.0, 0.0
    for k in range(start[i], stop[i]):
        total += values[k] * before
        before = values[k]
    out[i] = total


@cf.kernel
def kept_after(i, start, stop, values, out):
    total, last = 0.0, -1.0
    for k in range(start[i], stop[i]):
        last = values[k]
        total += last
    out[i] = total * last


@cf.kernel
def looked_at(i, start, stop, values, out):
    total, most = 0.0, 0.0
    for k in range(start[i], stop[i]):
        total += values[k]
        if total > 1.0:
            most += 1.0
    out[i] = most


@cf.kernel
def writes(i, start, stop, values, out):
    total = 0.0
    for k in range(start[i], stop[i]):
        total += values[k]
        out[i] = total * 2.0 + out[i]


@cf.kernel
def asked_by_the_loop_around(i, start, stop, values, out):
    total, last, n = 0.0, 0.0, 0
    while last < 0.5 and n < 4:
        for k in range(start[i], stop[i]):
            last = values[k] + 0.1 * n
            total += last
        n += 1
    out[i] = total


IN_ORDER = [remembers, kept_after, looked_at, writes, asked_by_the_loop_around]


@pytest.mark.parametrize("kernel", IN_ORDER, ids=lambda k: k.__name__)
def test_loops_whose_rounds_depend_on_each_other_run_in_order(kernel: Any) -> None:
    start, stop, values, _, out = ragged(np.random.default_rng(5), np.float64)
    expected = out.copy()
    kernel.python(ROWS, start, stop, values, expected)
    actual = cf.asarray(out)
    kernel(ROWS, start, stop, values, actual)
    # Intel's compiler makes vectors of plain sums by itself, and adds in another order then.
    agree(actual, expected, 1e-13)
    assert "any_lane" not in kernel.source(ROWS, start, stop, values, actual)


@pytest.mark.parametrize("seed", range(SEED, SEED + PROGRAMS))
def test_random_loops_that_add_up(seed: int) -> None:
    kernel, text = random_loop(seed)
    random = np.random.default_rng(seed)
    dtype = random.choice([np.float64, np.float32])

    def quarters(*shape: int) -> np.ndarray:
        return (random.integers(-8, 9, shape) * 0.25).astype(dtype)

    count = random.permutation(30) % 27
    stop = np.cumsum(count)
    total = int(stop[-1])
    places = random.integers(0, total, total).astype(random.choice([np.int32, np.uint16]))
    arrays = [stop - count, stop, quarters(total), quarters(total), places, quarters(7),
              quarters(5, 3), np.zeros((30, 3))]
    expected = arrays[-1].copy()
    kernel.python(30, *arrays[:-1], expected)
    on_device = [cf.asarray(array) for array in arrays]
    kernel(30, *on_device)
    precision = 1e-9 if dtype == np.float64 else 1e-3
    if not SIMULATED:
        actual = on_device[-1].get()
        np.testing.assert_allclose(actual, expected, precision, precision, err_msg=text)
