"""Sorts of the GPU schedule, and of long rows on CPUs, are kernels: NaN last, zeros equal and in
order, any axis, in place."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.rounds import covering

RNG = np.random.default_rng(8)


def values(char: str, shape: tuple[int, ...]) -> np.ndarray:
    """Many equal elements; floats with NaN of both signs, infinities, both zeros, subnormals."""
    if np.dtype(char).kind != "f":
        limits = (0, 2) if char == "?" else (np.iinfo(char).min, np.iinfo(char).max)
        ends = np.array(limits, char)
        found = RNG.integers(0, 9, shape).astype(char)
        return np.where(RNG.random(shape) < 0.2, ends[RNG.integers(0, 2, shape)], found)
    found = RNG.standard_normal(shape).astype(char)
    tiny = np.finfo(char).smallest_subnormal
    special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny], char)
    return np.where(RNG.random(shape) < 0.5, special[RNG.integers(0, 8, shape)], found)


@pytest.mark.parametrize("local", [48 << 10, 1100], ids=["", "small"])
@pytest.mark.parametrize("char", "?bHQed")
def test_sorts_are_numpys(
    xp: ModuleType,
    char: str,
    local: int,
    setting: Callable[..., None],
    planned_for: Callable[..., None],
) -> None:
    there = xp.get_device().untuned_traits.local_nbytes
    planned_for("gpu", local_nbytes=min(local, there))
    setting(fallback="raise", host_us=0)
    before = xp.stats()["library_calls"]
    for shape in ((1000,), (5, 140)):
        array = values(char, shape)
        for axis in range(len(shape)):
            given = xp.asarray(array)
            stable = np.asarray(xp.sort(given, axis, kind="stable"))
            expected = np.sort(array, axis, kind="stable")
            np.testing.assert_array_equal(stable, expected)
            if stable.dtype.kind == "f":
                np.testing.assert_array_equal(np.signbit(stable), np.signbit(expected))
            np.testing.assert_array_equal(xp.sort(given, axis), expected)
            np.testing.assert_array_equal(
                xp.argsort(given, axis), np.argsort(array, axis, kind="stable")
            )
        given = xp.asarray(array)
        given.sort()
        np.testing.assert_array_equal(given, np.sort(array))
    assert xp.stats()["library_calls"] == before


def assert_sorted(made: Any, stable: Any, places: Any, array: np.ndarray, axis: int) -> None:
    """A sort, a stable one, and the places of that."""
    expected = np.sort(array, axis, kind="stable")
    np.testing.assert_array_equal(places, np.argsort(array, axis, kind="stable"))
    np.testing.assert_array_equal(stable, expected)
    if array.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(stable), np.signbit(expected))
    # NumPy's own sort that is not stable misplaces some float16.
    np.testing.assert_array_equal(made, expected)


TILED = covering("?bHqedf", (48, 25), ((2049,), (140_001,), (4097,), (3, 5000), (9000, 2)))


@pytest.mark.parametrize("local", [48, 25], ids=["", "small"])
@pytest.mark.parametrize("char", "?bHqedf")
def test_tiles_of_long_rows_on_a_gpu_are_numpys(
    xp: ModuleType, char: str, local: int, planned_for: Callable[..., None]
) -> None:
    """Of one tile and of several, with and without a rest; in more pieces than one group scans.
    Each shape meets each dtype and each size of local memory: all are built anew."""
    there = xp.get_device().untuned_traits.local_nbytes
    planned_for("gpu", compute_units=6, local_nbytes=min(local << 10, there))
    for shape in [shape for *case, shape in TILED if case == [char, local]]:
        axis = int(np.argmax(shape))
        array = values(char, shape)
        given = xp.asarray(array)
        places, stable = xp.argsort(given, axis), xp.sort(given, axis, kind="stable")
        names = [kernel.name for kernel in xp.explain(places).kernels]
        assert "radix_scatter" in names
        if shape == (140_001,) and local == 25 and array.itemsize < 8:  # there is room for tiles
            assert "radix_sums" in names
        assert_sorted(xp.sort(given, axis), stable, places, array, axis)


@pytest.mark.parametrize("char", "?bHqedf")
def test_short_rows_are_sorted_in_one_launch(
    xp: ModuleType, char: str, planned_for: Callable[..., None], setting: Callable[..., None]
) -> None:
    """In registers alone, by one group and by several, the last of them with rows missing; down
    columns; of lengths that are powers of two and that are not; of groups that have less room."""
    for shape, axis, local in (
        ((1,), 0, 48), ((700, 3), 1, 48), ((9, 8), 0, 48), ((150, 64), 1, 48), ((7, 33, 5), 1, 9),
        ((2, 1500), 1, 48),
    ):  # fmt: skip
        there = xp.get_device().untuned_traits.local_nbytes
        planned_for("gpu", local_nbytes=min(local << 10, there))
        setting(fallback="raise", host_us=0)
        array = values(char, shape)
        given = xp.asarray(array)
        places, stable = xp.argsort(given, axis), xp.sort(given, axis, kind="stable")
        if shape != (2, 1500):  # for which local memory may be too small
            assert xp.explain(places).kernels[-1].name == "argsort_rows"
        expected = np.sort(array, axis, kind="stable")
        assert_sorted(xp.sort(given, axis), stable, places, array, axis)
        given.sort(axis)
        np.testing.assert_array_equal(given, expected)


def test_equal_and_ordered_keys_are_sorted_in_tiles(
    xp: ModuleType, planned_for: Callable[..., None]
) -> None:
    planned_for("gpu", compute_units=2, local_nbytes=32 << 10)
    count = 20_000
    for array in (
        np.ones(count), np.arange(count), np.arange(count)[::-1] // 7 - 900,
        (np.arange(count) % 91).astype("i1"), np.arange(count)[::-1].astype("u2"),
    ):  # fmt: skip
        given = xp.array(array)
        xp.evaluate(given)
        np.testing.assert_array_equal(xp.argsort(given), np.argsort(array, kind="stable"))
        np.testing.assert_array_equal(xp.sort(given), np.sort(array))
        given.sort()  # in the memory that the first pass reads
        np.testing.assert_array_equal(given, np.sort(array))


def test_what_a_view_shows_is_sorted_with_what_makes_it(
    xp: ModuleType, setting: Callable[..., None]
) -> None:
    setting(schedule="gpu")
    array = values("d", (30, 41))
    made = xp.sort((xp.asarray(array).T * 2)[::-2], 0)
    names = [kernel.name for kernel in xp.explain(made).kernels if kernel.kind == "library"]
    assert names == ["sort_rows"]
    np.testing.assert_array_equal(made, np.sort((array.T * 2)[::-2], 0))
    complex_array = array[:3] + 1j
    np.testing.assert_array_equal(xp.sort(xp.asarray(complex_array)), np.sort(complex_array))


@pytest.mark.usefixtures("shared_memory")
@pytest.mark.parametrize("char", "?bHqed")
@pytest.mark.parametrize("shape", [(1 << 17,), (3, (1 << 17) + 5), ((1 << 17) + 1, 2)])
def test_sorts_of_long_rows_on_a_cpu_are_numpys(
    xp: ModuleType, char: str, shape: tuple[int, ...], setting: Callable[..., None]
) -> None:
    setting(schedule="cpu", fallback="raise")
    array = values(char, shape)
    axis = int(np.argmax(shape))
    before = xp.stats()["library_calls"]
    places = np.asarray(xp.argsort(xp.asarray(array), axis))
    assert xp.stats()["library_calls"] == before
    np.testing.assert_array_equal(places, np.argsort(array, axis, kind="stable"))
    for how in ({}, {"kind": "stable"}):
        found = np.asarray(xp.sort(xp.asarray(array), axis, **how))
        expected = np.sort(array, axis, **how)
        np.testing.assert_array_equal(found, expected)
        if how and found.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
    turned = xp.asarray(array)[::-1]
    np.testing.assert_array_equal(
        xp.sort(turned, axis, stable=True), np.sort(array[::-1], axis, stable=True)
    )


def test_a_long_array_is_sorted_where_it_lies(xp: ModuleType, setting: Callable[..., None]) -> None:
    setting(schedule="cpu")
    array = values("d", (1 << 17,))
    x = xp.asarray(array) + 0.0
    whole = x[:]
    x.sort(kind="stable")
    np.testing.assert_array_equal(whole, np.sort(array + 0.0))
