"""Partitions and order statistics of devices that sort by kernels: nothing goes to the host."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.device.codegen.test_radix_sort import values

pytestmark = pytest.mark.clfuse_only


@pytest.fixture
def gpu(xp: ModuleType, setting: Callable[..., None]) -> ModuleType:
    """The library, where sorts are kernels and nothing may be left to NumPy."""
    setting(schedule="gpu", fallback="raise", host_us=0)
    return xp


def assert_partitioned(made: np.ndarray, data: np.ndarray, places: Any, axis: int) -> None:
    expected, made = (np.moveaxis(array, axis, -1) for array in (np.sort(data, axis), made))
    np.testing.assert_array_equal(np.sort(made), expected)
    for place in np.atleast_1d(places):
        place %= made.shape[-1]
        np.testing.assert_array_equal(made[..., place], expected[..., place])
        np.testing.assert_array_equal(np.sort(made[..., :place]), expected[..., :place])


@pytest.mark.parametrize("char", "?bHqedf")
def test_partitions_are_kernels(gpu: ModuleType, char: str) -> None:
    before = gpu.stats()["library_calls"]
    for shape in ((1,), (6, 50), (3, 2100)):
        data = values(char, shape)
        x = gpu.asarray(data)
        for axis in range(len(shape)):
            for places in (0, -1, [0, shape[axis] // 2]):
                found = np.asarray(gpu.partition(x, places, axis))
                assert_partitioned(found, data, places, axis)
                order = np.asarray(gpu.argpartition(x, places, axis))
                assert order.dtype == np.int64
                assert_partitioned(np.take_along_axis(data, order, axis), data, places, axis)
                moved = x.copy()
                moved.partition(places, axis)
                assert_partitioned(np.asarray(moved), data, places, axis)
        flat = gpu.partition(x, 0, None)
        assert_partitioned(np.asarray(flat), data.reshape(-1), 0, 0)
    assert gpu.stats()["library_calls"] == before


@pytest.mark.parametrize("name", ["sort", "partition"])
def test_views_are_sorted_where_they_lie(gpu: ModuleType, name: str) -> None:
    data = values("d", (6, 40, 5))
    views: tuple[Callable[[Any], Any], ...] = (
        lambda x: x.T, lambda x: x.transpose(1, 0, 2), lambda x: x[::2, 1:], lambda x: x[::-1],
        lambda x: x.reshape(40, 30), lambda x: x[2], lambda x: x[:, :, 1], lambda x: x.view("i8"),
    )  # fmt: skip
    for view in views:
        x, expected = gpu.array(data), data.copy()
        for axis in range(view(data).ndim):
            view(expected).sort(axis)
            if name == "sort":
                view(x).sort(axis)
            else:  # kernels sort
                view(x).partition(0, axis)
            np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("char", "qfd")
def test_order_statistics_are_kernels(gpu: ModuleType, char: str) -> None:
    for shape in ((1,), (501,), (30, 41), (5, 6, 8)):
        data = np.random.default_rng(3).integers(-50, 50, shape).astype(char)
        if char != "q":
            data.reshape(-1)[0] = np.nan
        x = gpu.asarray(data)
        for axis in (None, 0, -1):
            for call in (
                lambda m, x, axis=axis: m.median(x, axis),
                lambda m, x, axis=axis: m.percentile(x, 30, axis=axis),
                lambda m, x, axis=axis: m.quantile(x, [0.1, 0.5, 1], axis=axis, keepdims=True),
                lambda m, x, axis=axis: m.quantile(x, 0.4, axis=axis, method="nearest"),
            ):
                found, expected = call(gpu, x), call(np, data)
                assert found.dtype == expected.dtype
                np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(x, data)


def test_values_of_sets_stay_on_the_device(gpu: ModuleType) -> None:
    data = np.arange(9000) // 3
    x = gpu.asarray(data)
    gpu.evaluate(x)
    for call in (
        lambda m, x: m.unique(x), lambda m, x: m.insert(x, 5, 7), lambda m, x: m.delete(x, 3),
    ):  # fmt: skip
        before = gpu.stats()["bytes_to_host"]
        found = call(gpu, x)
        gpu.evaluate(found)
        assert gpu.stats()["bytes_to_host"] - before < 1000
        np.testing.assert_array_equal(found, call(np, data))


def complex_values(char: str, shape: tuple[int, ...]) -> np.ndarray:
    """With ties, zeros of both signs, infinities, and NaN in either part and in both."""
    draw = np.random.default_rng(1)
    data = (draw.integers(-3, 3, shape) + 1j * draw.integers(-3, 3, shape)).astype(char)
    odd = [complex(np.nan, 1), complex(2, np.nan), complex(np.nan, np.nan), complex(-0.0, 1), 1j,
           complex(np.nan, -2), complex(np.inf, np.nan), complex(-np.inf, 3)]  # fmt: skip
    flat = data.reshape(-1)
    flat[draw.permutation(flat.size)[: len(odd)]] = odd[: flat.size]
    return data


@pytest.mark.parametrize("char", "FD")
def test_complex_numbers_are_sorted_by_their_parts(gpu: ModuleType, char: str) -> None:
    before = gpu.stats()["library_calls"]
    for shape, axis in (((50,), 0), ((7, 300), 1), ((300, 7), 0), ((4, 5, 60), None)):
        data = complex_values(char, shape)
        x = gpu.asarray(data)
        stable = np.argsort(data, axis, kind="stable")
        np.testing.assert_array_equal(gpu.argsort(x, axis, kind="stable"), stable)
        np.testing.assert_array_equal(gpu.sort(x, axis), np.sort(data, axis))
        along, flat = (0, data.reshape(-1)) if axis is None else (axis, data)
        place = flat.shape[along] // 2
        found = np.asarray(gpu.partition(x, place, axis))
        assert_partitioned(found, flat, place, along)
        order = np.asarray(gpu.argpartition(x, place, axis))
        assert_partitioned(np.take_along_axis(flat, order, along), flat, place, along)
        if axis is not None:
            moved = x.copy()
            moved.T.sort(data.ndim - 1 - axis)
            np.testing.assert_array_equal(moved, np.sort(data, axis))
    assert gpu.stats()["library_calls"] == before


def test_several_keys_are_sorted_by_kernels(gpu: ModuleType) -> None:
    before = gpu.stats()["library_calls"]
    draw = np.random.default_rng(2)
    for shape in ((1,), (20,), (3000,), (5, 70)):
        keys = [draw.integers(0, 3, shape).astype(char) for char in "bHfd?q"]
        keys[2][keys[2] == 1] = np.nan
        for axis in range(-len(shape), len(shape)):
            for some in (keys[:1], keys[1:3], keys):
                found = gpu.lexsort([gpu.asarray(key) for key in some], axis)
                np.testing.assert_array_equal(found, np.lexsort(some, axis))
    assert gpu.stats()["library_calls"] == before


def test_very_many_keys_are_numpys(gpu: ModuleType, setting: Callable[..., None]) -> None:
    """Each key would be a sort and a gather of the plan."""
    setting(fallback="allow")
    keys = np.random.default_rng(3).integers(0, 3, (2000, 6))
    x = gpu.asarray(keys)
    before = gpu.stats()["nodes_recorded"]
    for given in (x, [gpu.asarray(key) for key in keys]):
        np.testing.assert_array_equal(gpu.lexsort(given), np.lexsort(keys))
    assert gpu.stats()["nodes_recorded"] - before < len(keys)
