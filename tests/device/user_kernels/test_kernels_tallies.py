"""Atomic sums at few places are kept by each work-item on CPUs, and are what Python gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clfuse as cf
from tests.support.agreement import SIMULATED

pytestmark = pytest.mark.clfuse_only
COUNT = 20_000
"""Some hundred iterations a work-item."""


@cf.kernel
def counted(i, x, bins, counts):
    if x[i] >= 0.0:
        k = int(x[i] * bins)
        cf.atomic.add(counts, k, 1)
        if x[i] > 0.9:
            cf.atomic.sub(counts, (k * 7) % len(counts), 2)


@cf.kernel
def weighted(i, x, w, sums):
    for k in range(3):
        cf.atomic.add(sums, (k, int(x[i] * sums.shape[1])), w[i])


def keeps(kernel: Any, *args: Any) -> bool:
    return "_keeping(" in kernel.source(*args)


def values(random: np.random.Generator) -> np.ndarray:
    x = random.random(COUNT)
    x[::9] -= 1.5
    return x


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64", "float32", "float64"])
@pytest.mark.parametrize("bins", [1, 24, 700, 3000])
def test_counts_of_all_dtypes_and_lengths(dtype: str, bins: int) -> None:
    x = values(np.random.default_rng(bins))
    counts = (np.arange(bins) % 5).astype(dtype)
    actual, expected = cf.asarray(counts), counts.copy()
    cpu = cf.get_device().traits.schedule == "cpu"
    assert keeps(counted, COUNT, x, bins, actual) is cpu
    counted(COUNT, x, bins, actual)
    with np.errstate(over="ignore"):
        counted.python(COUNT, x, bins, expected)
    np.testing.assert_array_equal(actual.get(), expected)


def test_sums_in_views_of_two_axes_leave_the_rest_alone() -> None:
    random = np.random.default_rng(3)
    x, w = np.abs(values(random)) % 1.0, random.standard_normal(COUNT)
    whole = random.standard_normal((8, 40))
    actual, expected = cf.asarray(whole), whole.copy()
    weighted(COUNT, x, w, actual[6:0:-2, 3:30:3])
    weighted.python(COUNT, x, w, expected[6:0:-2, 3:30:3])
    np.testing.assert_allclose(actual.get(), expected, 1e-10, 1e-10)
    assert (actual.get()[1::2] == whole[1::2]).all()


def test_places_that_nothing_is_added_to_keep_their_zero_s_sign() -> None:
    @cf.kernel
    def added(i, places, x, sums):
        cf.atomic.add(sums, places[i], x[i])

    places = np.arange(COUNT) % 3
    x = np.where(places == 0, 0.0, np.where(places == 1, -0.0, np.inf))
    sums = np.array([-0.0, -0.0, 1.0, -0.0, np.nan])
    actual, expected = cf.asarray(sums), sums.copy()
    added(COUNT, places, x, actual)
    added.python(COUNT, places, x, expected)
    np.testing.assert_array_equal(actual.get(), expected)
    np.testing.assert_array_equal(np.signbit(actual.get()), np.signbit(expected))


@cf.kernel
def numbered(i, x, counts, order):
    order[i] = cf.atomic.add(counts, int(x[i] * 4), 1)


@cf.kernel
def greatest(i, x, counts):
    cf.atomic.max(counts, int(x[i] * 4), i)


@cf.kernel
def looked_at(i, x, counts):
    if counts[0] >= 0:
        cf.atomic.add(counts, int(x[i] * 4), 1)


@cf.kernel
def two(i, x, counts, others):
    cf.atomic.add(counts, int(x[i] * 4), 1)
    cf.atomic.add(others, int(x[i] * 4), 1)


def test_what_is_looked_at_or_no_sum_is_not_kept() -> None:
    x = np.random.default_rng(4).random(COUNT)
    counts = cf.zeros(4, dtype=np.int64)
    for kernel, more in ((numbered, 1), (greatest, 0), (looked_at, 0), (two, 1)):
        others = [cf.zeros(COUNT, dtype=np.int64)] * more
        assert not keeps(kernel, COUNT, x, counts, *others)
        kernel(COUNT, x, counts, *others)
    with cf.config.override(check="bounds"):
        assert not keeps(counted, COUNT, x, 4, counts)


def test_additions_out_of_bounds_change_nothing_of_their_item() -> None:
    x = np.random.default_rng(5).random(COUNT)
    counts = cf.zeros(4, dtype=np.int64)
    if SIMULATED or not keeps(counted, COUNT, x, 40_000, counts):
        return  # they are wherever the index says
    counted(COUNT, cf.asarray(x), 40_000, counts)
    assert counts.get().sum() <= COUNT
