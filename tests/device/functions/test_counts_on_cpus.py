"""Many elements are counted by kernels on a CPU, piece by piece, with NumPy's results."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse.numpy_releases import COUNTS_UNSIGNED
from clfuse.target.scatters import CPU_LEAST
from tests.support.agreement import assert_same_error

pytestmark = [pytest.mark.clfuse_only, pytest.mark.usefixtures("by_kernels_of_a_cpu")]

RNG = np.random.default_rng(41)

SIZES = (2 * CPU_LEAST, 5 * CPU_LEAST + 7)


@pytest.fixture
def by_kernels_of_a_cpu(xp: ModuleType) -> Any:
    if xp.get_device().traits.schedule != "cpu":
        pytest.skip("counts in local memory: test_scattering")
    with xp.config.override(host_us=0):
        yield


def kinds(xp: ModuleType, value: Any) -> list[str]:
    return [kernel.kind for kernel in xp.explain(value).kernels]


@pytest.mark.parametrize("dtype", ["i8", "i4", "u2", "i1", "u8"])
@pytest.mark.parametrize("bins", [1, 100, 5000])
def test_counts_are_numpys(xp: ModuleType, dtype: str, bins: int) -> None:
    if bins > np.iinfo(dtype).max:
        pytest.skip("no such numbers")
    for size in SIZES:
        x = RNG.integers(0, bins, size).astype(dtype)
        for least in (0, bins + 7):
            if dtype == "u8" and not COUNTS_UNSIGNED:
                assert_same_error(lambda m, x=x: m.bincount(m.asarray(x)), xp)
                continue
            found = xp.bincount(xp.asarray(x), minlength=least)
            assert kinds(xp, found) in (["tally", "map"], ["tally", "reduce"])
            expected = np.bincount(x, minlength=least)
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == expected.dtype


def test_places_are_computed_where_they_are_counted(xp: ModuleType) -> None:
    x = RNG.integers(0, 50, SIZES[1])
    found = xp.bincount((xp.asarray(x)[::-1] * 3 + 1) % 64, minlength=64)
    plan = xp.explain(found)
    assert {"multiply", "add", "remainder"} <= set(plan.kernels[0].ops)
    np.testing.assert_array_equal(found, np.bincount((x * 3 + 1) % 64, minlength=64))


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i4", "u1"])
@pytest.mark.parametrize("bins", [1, 10, 37])
def test_histograms_are_numpys_also_on_edges(xp: ModuleType, dtype: str, bins: int) -> None:
    x = (RNG.integers(0, 100, SIZES[1]) * 0.1).astype(dtype)
    ranges: list[Any] = [None, (1, 3), (0.25, 0.75)]
    if dtype.startswith("f"):
        ranges = ranges[1:]
        x[::1001] = np.resize([np.nan, np.inf, -np.inf, -0.0], x[::1001].shape)
    for wanted in ranges:
        found = xp.histogram(xp.asarray(x), bins, wanted)
        assert "tally" in kinds(xp, found[0])
        for one, other in zip(found, np.histogram(x, bins, wanted), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u8"])
def test_sums_of_weights_are_numpys_but_for_their_last_bits(xp: ModuleType, dtype: str) -> None:
    x = RNG.integers(0, 300, SIZES[1])
    weights = np.abs(RNG.standard_normal(x.size) * 100).astype(dtype)
    for call in (
        lambda m, x, w: m.bincount(x, w), lambda m, x, w: m.histogram(x, 40, weights=w)[0]
    ):
        expected = call(np, x, weights)
        found = [call(xp, xp.asarray(x), xp.asarray(weights)) for _ in range(3)]
        assert "tally" in kinds(xp, found[0])
        assert found[0].dtype == expected.dtype
        assert len({np.asarray(each).tobytes() for each in found}) == 1
        rounding = 0 if dtype in ("i4", "u8") else np.finfo(dtype).eps
        np.testing.assert_allclose(found[0], expected, rtol=len(x) * rounding / 100)


def test_a_fold_or_a_map_follows(xp: ModuleType) -> None:
    x = RNG.integers(0, 300, SIZES[0])
    counts = xp.bincount(xp.asarray(x))
    made = counts / counts.sum()
    expected = np.bincount(x) / x.size
    np.testing.assert_allclose(made, expected, rtol=1e-15)
    np.testing.assert_array_equal(counts, np.bincount(x))
