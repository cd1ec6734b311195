"""Writes through ``x.flat``: which values it takes, and the errors and warnings of the others."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import numpy as np
import pytest

VALUES: list[Any] = [
    300, -1, 2 ** 70, 1e300, np.inf, 1j, "a", "3", None, True, [1, 2 ** 40], [1j, 2], [None], [],
    np.complex64(1j), np.float64(1e300), np.array([1, 2.5]), np.array([]), np.array(2.5),
    np.array(["a"]), [[1, 2], [3, 4]], np.arange(30),
]
PLACES: list[Any] = [slice(None, None, 2), [0, 3], slice(3, 3), Ellipsis]


def outcomes(m: ModuleType, dtype: str, value: Any) -> list[Any]:
    """What each write leaves, or the class of its error; and the classes of warnings."""
    found: list[Any] = []
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for place in PLACES:
            x = m.zeros((3, 2), dtype)
            try:
                x.flat[place] = value
            except (TypeError, ValueError, OverflowError) as error:
                found.append(next(c for c in type(error).__mro__ if c.__module__ == "builtins"))
            found.append(repr(x.tolist()))
    return [*found, {w.category for w in seen} - {RuntimeWarning}]


@pytest.mark.parametrize("dtype", ["i1", "u8", "f4", "?", "c8", "f2"])
def test_flat_takes_the_values_that_numpys_takes(dtype: str, xp: ModuleType) -> None:
    for value in VALUES:
        assert outcomes(xp, dtype, value) == outcomes(np, dtype, value), repr(value)
