"""Sums of floats lose no more than NumPy's: root mean squares of the errors, against exact sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.accuracy import sums

MORE = 1.15
"""What is measured differs by some hundredths from one sample to the next; until two thirds of the
error were in adding up the pieces of a long sum, it was 1.4 to 4."""


def ratio(
    xp: ModuleType, values: list[np.ndarray], call: Callable[[ModuleType, Any], Any],
    exact: list[np.ndarray],
) -> float:  # fmt: skip
    """The error of `xp` as a multiple of NumPy's."""

    def error(module: ModuleType) -> float:
        found = [np.asarray(call(module, module.asarray(value))) for value in values]
        off = [np.ravel(np.abs(one - other)) for one, other in zip(found, exact, strict=True)]
        return float(np.sqrt(np.mean(np.square(np.concatenate(off), dtype=np.longdouble))))

    return error(xp) / error(np)


@pytest.mark.parametrize("count", [3_000, 100_000, 1_000_000])
def test_a_sum_of_all_elements_loses_no_more_than_numpys(xp: ModuleType, count: int) -> None:
    rng = np.random.default_rng(count)
    values = [rng.random(count, dtype=np.float32) for _ in range(30)]
    exact = [np.float64(math.fsum(value.tolist())) for value in values]
    assert ratio(xp, values, lambda m, x: m.sum(x), exact) < MORE


@pytest.mark.parametrize(
    ("dtype", "shape", "axis"),
    [
        ("float32", (1000, 1000), 1),
        ("float32", (500, 2999), 1),
        ("complex64", (500, 1003), 1),
        ("float32", (3000, 200), 0),
        ("float32", (2000, 10, 60), (1, 2)),
    ],
)
def test_a_sum_along_axes_loses_no_more_than_numpys(
    xp: ModuleType, dtype: str, shape: tuple[int, ...], axis: Any
) -> None:
    rng = np.random.default_rng(3)
    parts = rng.random((2, *shape), dtype=np.float32)
    value = parts[0] if dtype == "float32" else (parts[0] + 1j * parts[1]).astype(dtype)
    exact = value.astype("f8" if dtype == "float32" else "c16").sum(axis)
    for call in (lambda m, x: m.sum(x, axis=axis), lambda m, x: m.mean(x, axis=axis)):
        count = 1 if call(np, value).flat[0].real > 1 else value.size // exact.size
        assert ratio(xp, [value], call, [exact / count]) < MORE


@pytest.mark.parametrize(
    ("dtype", "kind", "shape", "axis"),
    [
        # Magnitudes that are six powers of ten apart: a large number and 31 small ones in one lane
        # lost 1.2 times as much as NumPy's 16, 63 of them 1.5 times.
        ("float32", "wide", (2000,), None),
        ("float32", "wide", (4097,), None),
        ("float64", "wide", (4097,), None),
        ("float32", "wide", (2, 30_000), 1),
        # Blocks of a long array, of which there are few.
        ("float32", "uniform", (100_000,), None),
        ("float32", "offset", (100_000,), None),
        # NumPy divides by the count in double precision.
        ("complex64", "offset", (1000,), None),
        ("complex64", "wide", (3,), None),
        ("complex128", "normal", (1000,), None),
        ("float16", "uniform", (1000,), None),
    ],
)
def test_means_and_variances_lose_no_more_than_numpys(
    xp: ModuleType, dtype: str, kind: str, shape: tuple[int, ...], axis: Any
) -> None:
    calls = ("sum", "mean", "var", "std")
    measured = list(sums.compared(xp, dtype, kind, shape, axis, sampled=5_000_000, calls=calls))
    assert [found.call for found in measured] == [*calls]
    for found in measured:
        assert found.samples >= 50
        assert found.ratio < MORE, str(found)


def test_infinities_and_nans_stay_what_they_are_in_every_lane(xp: ModuleType) -> None:
    for length in (700, 5000, 300_000):
        for place in (0, 37, length - 1):
            x = np.ones(length, np.float32)
            x[place] = np.inf
            assert float(xp.sum(xp.asarray(x))) == np.inf
            x[place - 1] = -np.inf
            assert np.isnan(float(xp.sum(xp.asarray(x))))
