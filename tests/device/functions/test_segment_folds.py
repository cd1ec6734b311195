"""``ufunc.reduceat`` agrees with NumPy, by kernels where the device has work-groups."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse.target.scatters import scatters
from tests.support.agreement import Batch

BOUNDS = {
    "rising": [0, 4, 9, 30], "equal ones": [0, 4, 4, 9, 9, 9], "falling": [30, 9, 0],
    "overlapping": [5, 40, 2, 30, 7], "one": [3], "the last": [0, 49], "alike": [0, 10, 20, 30, 40],
}
KINDS = [
    ("add", "?"), ("add", "b"), ("add", "i"), ("add", "f"), ("add", "d"), ("add", "F"),
    ("add", "e"), ("multiply", "B"), ("multiply", "d"), ("maximum", "h"), ("minimum", "f"),
    ("fmax", "d"), ("logical_and", "i"), ("logical_or", "d"), ("logical_xor", "?"),
    ("bitwise_xor", "Q"), ("bitwise_and", "l"), ("subtract", "d"), ("maximum", "D"),
]


@pytest.mark.parametrize(("name", "char"), KINDS)
def test_every_order_of_bounds_along_every_axis(xp: ModuleType, name: str, char: str) -> None:
    batch = Batch(xp)
    rng = np.random.default_rng(4)
    for shape, axis in (((50,), 0), ((3, 50), 1), ((50, 4), 0), ((2, 50, 3), -2)):
        data = (rng.integers(0, 3, shape) - (char not in "?BQ")).astype(char)
        for label, bounds in BOUNDS.items():
            batch.same(f"{label} {shape}", lambda m, d=data, k=bounds, a=axis:
                       getattr(m, name).reduceat(m.array(d), k, axis=a))
    batch.check()


def test_a_dtype_and_views(xp: ModuleType) -> None:
    batch = Batch(xp)
    data = np.arange(60, dtype=np.int8).reshape(6, 10)
    batch.same("a dtype", lambda m: m.add.reduceat(m.array(data), [0, 3], dtype=np.float32))
    batch.same("a view", lambda m: m.add.reduceat(m.array(data)[::-1, ::2].T, [0, 3, 1]))
    batch.same("an array", lambda m: m.add.reduceat(m.array(data), m.array([0, 3, 5])))
    batch.same("into", lambda m: into(m, data))
    batch.check()


def into(m: Any, data: np.ndarray[Any, Any]) -> Any:
    out = m.zeros((2, 10), np.int64)
    m.add.reduceat(m.array(data), [0, 3], out=out)
    return out


@pytest.mark.parametrize("bounds", [[5], [-1], [[0]], [0.5], []])
def test_what_numpy_refuses(xp: ModuleType, bounds: Any) -> None:
    batch = Batch(xp)
    batch.same(str(bounds), lambda m: m.add.reduceat(m.arange(5), bounds))
    batch.check()


def test_many_slices_of_any_length_stay_on_the_device(xp: ModuleType) -> None:
    rng = np.random.default_rng(9)
    data = rng.integers(0, 100, 100_000)
    bounds = np.sort(rng.integers(0, 100_000, 500)) ** 2 // 100_000
    array = xp.array(data)
    before = xp.stats()["fallbacks"]
    found = xp.add.reduceat(array, bounds)
    np.testing.assert_array_equal(np.asarray(found), np.add.reduceat(data, bounds))
    if scatters(xp.get_device().traits):
        assert xp.stats()["fallbacks"] == before
