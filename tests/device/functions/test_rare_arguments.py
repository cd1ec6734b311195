"""Arguments that programs rarely give: what NumPy says of them, or makes of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse.numpy_releases import PADS_BY_AXIS

FLOAT64_WAS_PYTHONS = np.nanquantile(np.ones(1, "e"), np.float64(0.5)).dtype == np.float16
"""Whether the installed NumPy, an older one, takes a float64 for a number of Python's there."""


def _raises(function: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as found:
        function()
    assert text in str(found.value)


@pytest.mark.parametrize("q", [0.25, [0.25, 0.75]])
@pytest.mark.parametrize("name", ["nanquantile", "nanpercentile"])
def test_quantiles_have_the_precision_of_a_given_dtype(
    xp: ModuleType, name: str, q: float | list[float]
) -> None:
    values = np.array([[1, 2.5, np.nan], [3, 4, 5]], np.float16)
    for dtype in ("float16", "float32", "float64"):
        given = np.array(q, dtype)[()]
        expected = getattr(np, name)(values, given, axis=1)
        found = getattr(xp, name)(xp.asarray(values), given, axis=1)
        is_pythons = FLOAT64_WAS_PYTHONS and isinstance(given, float)
        assert found.dtype == ("float64" if is_pythons else expected.dtype)
        np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize("decimals", [0, 1])
@pytest.mark.parametrize("dtype", ["float64", "int64", "complex128"])
def test_rounded_numbers_go_to_as_many(xp: ModuleType, dtype: str, decimals: int) -> None:
    x = xp.ones((3,), dtype)
    for shape in ((2, 3), (4,), ()):
        _raises(lambda shape=shape: xp.round(x, decimals, out=xp.zeros(shape, dtype)),
                ValueError, "invalid output shape")
        _raises(lambda shape=shape: x.round(decimals, out=xp.zeros(shape, dtype)),
                ValueError, "invalid output shape")


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_of_nothing_no_copy_is_made(xp: ModuleType, shape: tuple[int, ...]) -> None:
    host = np.zeros(shape, "f4")
    assert xp.asarray(host, copy=False).shape == shape
    assert xp.array(host, copy=False).dtype == np.float32
    _raises(lambda: xp.asarray(host, "f8", copy=False), ValueError, "Unable to avoid copy")


def test_scalars_have_the_methods_of_numpys(xp: ModuleType) -> None:
    scalar = xp.maximum(xp.array(3.0), xp.array(2.0))
    for name in ("argpartition", "partition", "dot"):
        assert not hasattr(scalar, name), name
    assert scalar.byteswap() == np.float64(3).byteswap()
    _raises(lambda: scalar.byteswap(True), ValueError, "cannot byteswap a scalar in-place")
    assert xp.argpartition(scalar, 0).tolist() == [0]


def test_variances_about_means_of_more_elements(xp: ModuleType) -> None:
    for values, mean, axis in (
        (3.0, [2.0], None), (3.0, [1.0, 2.0], None), ([1.0, 4.0], [[1.0], [2.0]], None),
        ([1.0, 4.0], [[1.0], [2.0]], 0), (3.0, 2.0, None),
    ):
        for name in ("var", "std"):
            expected = getattr(np, name)(np.array(values), axis=axis, mean=np.array(mean))
            found = getattr(xp, name)(xp.array(values), axis=axis, mean=xp.array(mean))
            np.testing.assert_array_equal(np.asarray(found), expected)
            assert found.shape == expected.shape


def test_widths_of_padding_by_axis(xp: ModuleType) -> None:
    if not PADS_BY_AXIS:
        _raises(lambda: xp.pad(xp.ones(2), {0: 1}), TypeError, "integral")
        return
    assert xp.pad(xp.ones(2), {-1: (1, 2)}).tolist() == [0, 1, 1, 0, 0]
    assert xp.pad(xp.ones((1, 1)), {1: 1}).tolist() == [[0, 1, 0]]
    for x, width in ((xp.array(3.0), {0: 1}), (xp.ones(1), {1: 1}), (xp.ones(1), {-2: 1})):
        _raises(lambda x=x, width=width: xp.pad(x, width), IndexError, "out of range")
    _raises(lambda: xp.pad(xp.array(3.0), {}), TypeError, "integral")
    _raises(lambda: xp.pad(xp.ones(1), {0: 1.5}), AssertionError, "")


def test_lists_are_not_split_into_equal_parts(xp: ModuleType) -> None:
    for function, values in (
        (xp.split, [1, 2]), (xp.vsplit, [[1], [2]]), (xp.dsplit, [[[1, 2]]]),
    ):
        _raises(lambda f=function, v=values: f(v, 2), AttributeError, "has no attribute 'shape'")
    assert [part.tolist() for part in xp.split([1, 2, 3], [1])] == [[1], [2, 3]]
    rows = [[1, 2, 3], [4, 5, 6]]  # NumPy counts rows, whatever the axis is
    assert [part.tolist() for part in xp.array_split(rows, 3, -1)] == [[[1], [4]], [[2], [5]],
                                                                       [[], []]]


def test_what_is_no_array_is_not_changed_in_place(xp: ModuleType) -> None:
    for values in ([1, np.nan], (1.0,), [], [1, 2]):
        _raises(lambda values=values: xp.nan_to_num(values, copy=False), ValueError,
                "Unable to avoid copy")
    host = np.array([1, np.nan])
    xp.nan_to_num(host, copy=False)
    assert host.tolist() == [1, 0]


def test_nothing_is_put_into_what_is_read_only(xp: ModuleType) -> None:
    x = xp.arange(4)
    x.flags.writeable = False
    for places, values in (([9], [1]), ([], [1]), ([1], [])):
        _raises(lambda p=places, v=values: xp.put(x, p, v), ValueError,
                "put: output array is read-only")


def test_integers_are_assigned_where_they_are_rounded_to(xp: ModuleType) -> None:
    for shape, of_out in (((1,), ()), ((1, 2, 3), (2, 3)), ((1, 1), (1,))):
        out = xp.zeros(of_out, "i4")
        assert xp.round(xp.ones(shape, "i4"), out=out) is out
        assert out.tolist() == np.ones(of_out, "i4").tolist()
    _raises(lambda: xp.round(xp.ones((2, 3), "i4"), out=xp.zeros(6, "i4")), ValueError, "")


def test_pads_of_a_number_are_not_negative(xp: ModuleType) -> None:
    _raises(lambda: xp.pad(xp.array(3.0), -1, "edge"), ValueError, "negative values")


def test_views_of_nothing_stay_read_only(xp: ModuleType) -> None:
    x = xp.zeros((0, 3))
    x.flags.writeable = False
    tiled = xp.tile(x, 2)
    assert tiled.shape == (0, 6)
    assert not tiled.flags.writeable


@pytest.mark.skipif("copy" not in inspect.signature(np.reshape).parameters, reason="since 2.1")
def test_no_copy_is_any_false_number(xp: ModuleType) -> None:
    wide = xp.broadcast_to(xp.arange(3), (2, 3))
    _raises(lambda: xp.reshape(wide, (6,), copy=0), ValueError, "Unable to avoid creating a copy")


def test_axes_that_are_swapped_are_numbers_first(xp: ModuleType) -> None:
    _raises(lambda: xp.zeros((3, 3)).swapaxes(2, None), TypeError, "interpreted as an integer")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_variances_of_halves_about_floats_are_halves(xp: ModuleType) -> None:
    for values in ([], [1.0, np.nan, 2.5]):
        x, mean = np.array(values, np.float16), np.float32([1.5])
        expected = np.nanvar(x, mean=mean)
        found = xp.nanvar(xp.asarray(x), mean=xp.asarray(mean))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(found), expected)
