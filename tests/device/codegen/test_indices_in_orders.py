"""Indices of 64 bits that are numbers too, in maxima and minima.

Intel's compiler (2026.2, AVX-512) keeps such numbers in a vector's register, and then took any
other register for the index.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest


def _chosen(m: ModuleType, test: Any, one: Any, other: Any) -> Any:
    return m.where(test(one, other), one, other)


def _less(one: Any, other: Any) -> Any:
    return one < other


def _greater(one: Any, other: Any) -> Any:
    return one > other


CASES: dict[str, Callable[..., Any]] = {
    "minimum of maximum": lambda m, x, i, j: m.minimum(m.maximum(i, x[i]), x[j]),
    "maximum": lambda m, x, i, j: m.maximum(50 + i - x[i], 50 + j - x[j]),
    "fmax": lambda m, x, i, j: m.fmin(m.fmax(i + 5, x[i]), x[j]),
    "clip": lambda m, x, i, j: m.clip(x[i], i, j),
    "where": lambda m, x, i, j: _chosen(m, _less, _chosen(m, _greater, i, x[i]), x[j]),
    "mixed": lambda m, x, i, j: m.minimum(_chosen(m, _greater, i, x[i]), x[j]),
}


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32"])
@pytest.mark.parametrize("size", [3, 37])
@pytest.mark.parametrize("case", CASES)
def test_indices_take_part_in_orders(xp: ModuleType, case: str, size: int, dtype: str) -> None:
    x = (np.arange(64) * 3 % 7).astype(dtype)
    i = (np.arange(size) % 6).astype(dtype)
    j = ((np.arange(size) + 3) % 6).astype(dtype)
    expected = CASES[case](np, x, i, j)
    for schedule in ("cpu", "gpu") if xp is not np else ("",):
        if schedule:
            with xp.config.override(schedule=schedule):
                found = np.asarray(CASES[case](xp, *map(xp.asarray, (x, i, j))))
        else:
            found = np.asarray(CASES[case](xp, x, i, j))
        np.testing.assert_array_equal(found, expected)


def test_positions_take_part_in_a_maximum(xp: ModuleType) -> None:
    """All elements of a row, each by an address of its own that is a number too."""
    x = xp.asarray(np.arange(5) * 3)
    down = xp.arange(5, 0, -1)
    found = (down - x + xp.roll(down, 3)).max(axis=0, keepdims=True)
    assert found.tolist() == [8]
    np.testing.assert_array_equal(np.asarray(down - found), np.arange(5, 0, -1) - 8)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_orders_of_extremes_are_numpys(xp: ModuleType, dtype: str) -> None:
    """One number at a time: differences of these are in no dtype."""
    ends = np.iinfo(dtype)
    values = np.array([ends.min, ends.max, 0, 1, ends.max // 2, ends.max // 2 + 1], dtype)
    for one in values:
        for other in values:
            a, b = np.array([one]), np.array([other])
            for name in ("maximum", "minimum", "fmax", "fmin"):
                found = np.asarray(getattr(xp, name)(xp.asarray(a), xp.asarray(b)))
                assert found.tolist() == getattr(np, name)(a, b).tolist()
            found = np.asarray(xp.clip(xp.asarray(values[4:5]), xp.asarray(a), xp.asarray(b)))
            assert found.tolist() == np.clip(values[4:5], a, b).tolist()
