"""Floats that are assigned to integers on the host: NumPy truncates them at the call, or warns."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.marks import compiled

pytestmark = pytest.mark.clfuse_only

INTEGERS = ("uint8", "int8", "int16", "uint32", "int64", "uint64", "bool")
FLOATS = ("float64", "float32", "float16")
NUMBERS = (
    2.7, -2.7, -0.5, 0.0, -0.0, 127.9, 128.0, 255.9, 256.0, -1.0, -129.0, 3e9, 9.3e18, 1.9e19, 1e30,
    np.inf, -np.inf, np.nan,
)  # fmt: skip


@pytest.fixture(autouse=True)
def small(xp: ModuleType) -> Iterator[None]:
    with xp.config.override(host_us=50):
        yield


def told(x: Any, index: Any, value: Any) -> Any:
    """What the array holds after ``x[index] = value``, or the error; and what was warned of."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            x[index] = value
            after = np.asarray(x).tolist()
        except (ValueError, OverflowError) as error:
            after = type(error)
    return after, [(str(warning.message), warning.category) for warning in seen]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("source", FLOATS)
def test_floats_become_the_integers_that_numpy_makes(
    xp: ModuleType, dtype: str, source: str
) -> None:
    for number in NUMBERS:
        with np.errstate(all="ignore"):
            value = np.dtype(source).type(number)
        row = np.array([1.5, value, 2.5], source)
        for index, theirs, ours in (
            ((1, 0), value, value), (1, row, xp.asarray(row)), (slice(0, 1), value, value),
            ([0, 1], row, xp.asarray(row)), (np.array([True, False]), row, row),
        ):  # fmt: skip
            expected = told(np.ones((2, 3), dtype), index, theirs)
            found = told(xp.asarray(np.ones((2, 3), dtype)), index, ours)
            assert found == expected, (number, index)


@compiled
def test_what_is_out_of_range_is_warned_of_at_the_call(xp: ModuleType) -> None:
    nan, row = xp.array(np.nan), xp.array([np.nan, 1.0])
    for index, value in (
        (0, nan), (slice(None), nan), (..., nan), ([0, 1], nan), ([0, 1], row), (slice(2), row),
        (xp.array([True, False, True]), row), (xp.array([0, 1]), row), (slice(2), np.asarray(row)),
    ):  # fmt: skip
        x = xp.array([1, 2, 3])
        with np.errstate(invalid="warn"), pytest.warns(RuntimeWarning, match="in cast") as seen:
            x[index] = value
        assert (len(seen), seen[0].filename) == (1, __file__)
        with np.errstate(invalid="ignore"):
            expected = np.array([1, 2, 3])
            there = np.asarray(index) if isinstance(index, xp.ndarray) else index
            expected[there] = np.asarray(value)
            assert x.tolist() == expected.tolist()


@compiled
def test_colours_of_pixels_are_written_at_once(xp: ModuleType) -> None:
    def shaded(m: ModuleType) -> Any:
        image = m.zeros((6, 5, 3), m.uint8)
        colour = m.array([200.0, 100.5, 3.25])
        for i in range(6):
            for j in range(5):
                image[i, j] = colour * m.cos(i * 0.1)
                image[i, j, 2] = m.sqrt(m.float64(i + j))
                image[i, j, 1] += m.uint8(1)
        return image

    before = xp.stats()["nodes_recorded"]
    image = shaded(xp)
    assert xp.stats()["nodes_recorded"] == before
    assert image.tolist() == shaded(np).tolist()


def test_a_float_that_is_refused_leaves_the_array(xp: ModuleType) -> None:
    for module in (np, xp):
        x = module.array([0, 1, 2, 3])
        with module.errstate(invalid="raise"):
            with pytest.raises(FloatingPointError):
                x[1:3] = module.array([7.0, np.nan])
                x.tolist()
            with pytest.raises(ValueError, match="NaN"):
                x[1] = np.float64(np.nan)
            assert (int(x[0]), int(x[3])) == (0, 3)
