"""Sets and orders of complex numbers and of rows, which kernels sort by several keys on GPUs."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.lib import _arraysetops_impl

from tests.support.agreement import Batch

KEEPS_THE_FIRST = hasattr(_arraysetops_impl, "_unique_hash")
"""Of equal complex numbers: NumPy with a table of them. Older releases sort, in any order."""

Setting = Callable[..., None]
FLOATS = np.array([0.0, -0.0, 1, -1, np.nan, np.inf, -np.inf, 2])
ALL = {"return_index": True, "return_inverse": True, "return_counts": True}
FEW = 12
"""Elements that NumPy's sorts leave in their order where they are equal."""


def numbers(char: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Many equal numbers; of floats also zeros of both signs, NaN and infinities."""
    rng = np.random.default_rng(seed)
    if np.dtype(char).kind not in "fc":
        ends = np.array([0, 1] if char == "?" else [np.iinfo(char).min, np.iinfo(char).max, 0, 1])
        return ends[rng.integers(0, len(ends), shape)].astype(char)
    found = FLOATS[rng.integers(0, len(FLOATS), shape)].astype(char)
    if found.dtype.kind == "c":
        found.imag = FLOATS[rng.integers(0, len(FLOATS), shape)]
    return found


@pytest.fixture
def by_kernels(xp: ModuleType, setting: Setting) -> None:
    """As `way`, of a GPU's schedule alone."""
    if xp is not np:
        setting(schedule="gpu", fallback="raise")


@pytest.fixture(params=["cpu", "gpu"])
def way(request: pytest.FixtureRequest, xp: ModuleType, setting: Setting) -> str:
    """Both schedules; kernels alone on a GPU's."""
    if xp is not np:
        setting(schedule=request.param)
        if request.param == "gpu":
            setting(fallback="raise")
    return str(request.param)


@pytest.mark.parametrize("char", "?bqefD")
def test_different_rows_are_found(xp: ModuleType, by_kernels: None, char: str) -> None:
    rows = numbers(char, (60, 3), 1)
    batch = Batch(xp)
    batch.same("rows", lambda m: m.unique(m.asarray(rows), axis=0, **ALL))
    batch.same("alone", lambda m: m.unique(m.asarray(rows), axis=0), zero_signs=False)
    batch.same("few", lambda m: m.unique(m.asarray(rows[:FEW]), axis=0))
    batch.check()


def test_rows_lie_along_any_axis(xp: ModuleType, way: str) -> None:
    cube = numbers("d", (7, 2, 5), 1)
    batch = Batch(xp)
    for axis in (0, 1, -1):
        batch.same(f"{axis}", lambda m, axis=axis: m.unique(m.asarray(cube), axis=axis, **ALL))
    batch.same("one", lambda m: m.unique(m.asarray(cube[:1, 0]), axis=0, **ALL))
    batch.same("none", lambda m: m.unique(m.asarray(cube[:, :0]), False, True, False, -1))
    batch.same("vector", lambda m: m.unique(m.asarray(cube[0, 0]), axis=0))
    odd = np.array([3, np.nan, 1, np.nan, 0.0, -0.0])
    batch.same("NaN in a vector", lambda m: m.unique(m.asarray(odd), axis=0, **ALL))
    batch.same("outside", lambda m: m.unique(m.asarray(cube), axis=3))
    batch.check()


def test_rows_of_many_narrow_columns_are_joined_keys(xp: ModuleType, by_kernels: None) -> None:
    batch = Batch(xp)
    for char, columns in (("b", 19), ("?", 70), ("H", 3)):
        rows = np.repeat(numbers(char, (40, columns), 2), 3, 0)
        rows[::3, 1:] = rows[:1, 1:]
        batch.same(char, lambda m, rows=rows: m.unique(m.asarray(rows), axis=0, **ALL))
    batch.check()


@pytest.mark.clfuse_only
def test_rows_of_very_many_columns_are_numpys(xp: ModuleType, setting: Setting) -> None:
    setting(schedule="gpu", fallback="allow")
    rows = numbers("d", (3, 300), 3)
    before = xp.stats()["fallbacks"]
    assert np.array_equal(xp.unique(xp.asarray(rows), axis=0), np.unique(rows, axis=0), True)
    assert xp.stats()["fallbacks"] == before + (not xp.get_device().shares_memory)


def test_sets_of_complex_numbers(xp: ModuleType, way: str) -> None:
    one, other = numbers("F", (200,), 4), numbers("F", (90,), 5)
    batch = Batch(xp)

    def same(label: str, call: Callable[..., Any], *, signs: bool = False) -> None:
        batch.same(label, lambda m: call(m, m.asarray(one), m.asarray(other)), zero_signs=signs)

    same("unique", lambda m, x, y: m.unique(x), signs=KEEPS_THE_FIRST)
    same("indices", lambda m, x, y: m.unique(x, True, True, True), signs=True)
    same("counts", lambda m, x, y: m.unique(x, return_counts=True))
    same("every NaN", lambda m, x, y: m.unique(x, equal_nan=False))
    same("few", lambda m, x, y: m.unique_inverse(x[:FEW]), signs=True)
    same("both", lambda m, x, y: m.intersect1d(x, y))
    same("places", lambda m, x, y: m.intersect1d(x, y, return_indices=True), signs=True)
    same("either", lambda m, x, y: m.union1d(x, y))
    same("one", lambda m, x, y: m.setxor1d(x, y))
    same("difference", lambda m, x, y: m.setdiff1d(x, y))
    same("members", lambda m, x, y: m.isin(x, y), signs=True)
    same("none", lambda m, x, y: m.unique(x[:0]), signs=True)
    batch.check()


def test_first_of_equal_complex_numbers_stays(xp: ModuleType, way: str) -> None:
    """As in NumPy's table: of zeros, and of numbers that are NaN in either part."""
    batch = Batch(xp)
    for seed in range(6):
        drawn = numbers("D", (FEW,), seed)
        batch.same(f"{drawn}", lambda m, drawn=drawn: m.unique(m.asarray(drawn)))
    batch.check()


def test_complex_keys_of_a_lexicographic_order(xp: ModuleType, way: str) -> None:
    real, short = numbers("d", (3, 70), 6), numbers("b", (3, 70), 7)
    long = numbers("D", (3, 70), 8)
    batch = Batch(xp)
    for axis in (0, 1):
        for keys in ((long, real), (real, long, short), (long,), (short, long, long[::-1])):
            batch.same(f"{len(keys)} {axis}", lambda m, keys=keys, axis=axis: m.lexsort(
                [m.asarray(key) for key in keys], axis))
    batch.same("one array", lambda m: m.lexsort(m.asarray(long)))
    batch.check()
