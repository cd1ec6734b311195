"""What the array API standard asks beyond NumPy's functions: devices by name, DLPack, inspection.

Source: https://data-apis.org/array-api/2024.12
"""

from __future__ import annotations

import dataclasses
import gc
import pickle
from collections.abc import Callable
from contextlib import nullcontext
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse.numpy_releases import HAS_DLPACK_1
from tests.support.agreement import assert_bitwise


class LegacyConsumer:
    """An exporter that hands on what an array exports, as consumers before DLPack 1.0 ask."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(copy=False)


knows_dlpack_1 = pytest.mark.skipif(not HAS_DLPACK_1, reason="NumPy 2.1 knows DLPack 1.0")


@pytest.mark.clfuse_only
def test_dlpack_before_version_1_gives_copies(xp: ModuleType) -> None:
    x = xp.arange(6.0).reshape(2, 3)[:, ::-1]
    takers = [x]
    if xp.get_device().traits.unified_memory:
        takers.append(LegacyConsumer(xp.asarray(x)))
    else:
        with pytest.raises(BufferError):
            x.__dlpack__(copy=False)
    for taker in takers:
        assert np.array_equal(np.from_dlpack(taker), [[2, 1, 0], [5, 4, 3]])
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 0))


@knows_dlpack_1
@pytest.mark.clfuse_only
@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f4", "c16"])
@pytest.mark.usefixtures("shared_memory")
def test_dlpack_without_a_copy_is_a_snapshot_in_shared_memory(
    dtype: str, xp: ModuleType
) -> None:
    x = xp.asarray(np.arange(12).astype(dtype).reshape(3, 4))
    before = np.array(x[:, ::-2])
    part = x[:, ::-2]
    for given in (np.from_dlpack(part, copy=False), np.from_dlpack(LegacyConsumer(part)),
                  np.from_dlpack(part)):
        assert_bitwise(given, before)
    seen = np.from_dlpack(x, copy=False)
    legacy = np.from_dlpack(LegacyConsumer(x))
    assert not seen.flags.writeable
    assert np.shares_memory(seen, legacy)
    expected = np.array(x)
    x[...] = 1
    del x
    assert_bitwise(seen, expected)
    assert_bitwise(legacy, expected)
    assert np.from_dlpack(xp.zeros((0, 3), dtype), copy=False).shape == (0, 3)
    with pytest.raises(BufferError):
        xp.zeros(3).__dlpack__(dl_device=(2, 0))


@knows_dlpack_1
@pytest.mark.clfuse_only
def test_dlpack_from_a_devices_own_memory_is_a_copy(xp: ModuleType) -> None:
    device = xp.get_device()
    traits = dataclasses.replace(device.untuned_traits, unified_memory=False)
    values = np.arange(12.0).reshape(3, 4)
    with device.trying(traits):
        for x in (xp.asarray(values), xp.asarray(values) + 0, (xp.asarray(values) + 0)[:, ::-2]):
            xp.evaluate(x)
            for wanted in ({}, {"copy": None}, {"copy": True}):
                given = np.from_dlpack(x, **wanted)
                assert_bitwise(given, np.array(x))
                assert given.flags.writeable
            with pytest.raises(BufferError, match="belongs to the device"):
                np.from_dlpack(x, copy=False)


def test_from_dlpack_copies_unless_told_not_to(xp: ModuleType, shares_memory: bool) -> None:
    source = np.arange(100.0)
    taken = [xp.from_dlpack(source, copy=True), xp.from_dlpack(source)]
    if shares_memory:
        looked_at = xp.from_dlpack(source, copy=False)
        source[0] = 7
        assert float(looked_at[0]) == 7
    else:
        with pytest.raises(BufferError, match="avoid copy"):
            xp.from_dlpack(source, copy=False)
        source[0] = 7
    assert float(taken[0][0]) == 0
    own = xp.arange(3.0)
    assert xp.from_dlpack(own, copy=None) is own or xp is np


has_info = pytest.mark.skipif(
    not hasattr(np, "__array_namespace_info__"), reason="NumPy 2.1 has __array_namespace_info__"
)


@has_info
@pytest.mark.clfuse_only
def test_functions_put_results_on_the_device_they_are_given(xp: ModuleType) -> None:
    info = xp.__array_namespace_info__()
    assert info.devices() == xp.devices()
    assert info.default_device() is xp.get_device()
    makers = [lambda d: xp.zeros((2, 3), device=d), lambda d: xp.asarray(np.arange(6), device=d),
              lambda d: xp.arange(5.0, device=d), lambda d: xp.linspace(0, 1, 5, device=d),
              lambda d: xp.ones_like(xp.arange(4), device=d), lambda d: xp.eye(3, device=d),
              lambda d: xp.full((2, 2), 3, device=d), lambda d: xp.fft.fftfreq(4, device=d)]
    for device in info.devices():
        assert set(info.dtypes(device=device)) <= set(np.__array_namespace_info__().dtypes())
        for make in makers:
            here = make("cpu")
            made = make(device)
            assert made.device is device
            assert here.device is xp.get_device()
            assert_bitwise(np.array(made), np.array(here))
    for make in makers:
        with pytest.raises(ValueError, match="nowhere"):
            make("nowhere")
    with pytest.raises(ValueError, match="nowhere"):
        info.default_dtypes(device="nowhere")


@has_info
def test_inspection_gives_what_numpys_does(xp: ModuleType) -> None:
    ours, numpys = xp.__array_namespace_info__(), np.__array_namespace_info__()
    assert ours.capabilities() == numpys.capabilities()
    default, absent = numpys.default_dtypes(), set()
    if xp is not np and not xp.get_device().traits.fp64:  # what the device has
        default |= {"real floating": np.dtype("f4"), "complex floating": np.dtype("c8")}
        absent = {"float64", "complex128"}
    assert ours.default_dtypes() == default
    for kind in (None, "bool", "integral", "complex floating", ("bool", "real floating")):
        expected = numpys.dtypes(device="cpu", kind=kind)
        found = ours.dtypes(device="cpu", kind=kind)
        assert found == {name: expected[name] for name in expected if name not in absent}
    with pytest.raises(ValueError, match="kind"):
        ours.dtypes(kind="strange")


def test_axes_may_be_a_list_where_numpys_functions_take_one(xp: ModuleType) -> None:
    values = np.array([[1.0, np.nan, 2.0], [3.0, 4.0, 5.0]])
    for axis in ([0], [0, 1], [-1]):
        for name, *rest in (("nanmedian",), ("nanpercentile", 30), ("nanquantile", 0.3),
                            ("average",), ("median",)):
            actual = getattr(xp, name)(xp.array(values), *rest, axis=axis)
            expected = getattr(np, name)(values, *rest, axis=axis)
            np.testing.assert_allclose(np.asarray(actual), expected)
    with pytest.raises(TypeError):
        xp.sum(xp.array(values), axis=[0])


def test_dtype_of_arange_by_position(xp: ModuleType) -> None:
    assert xp.arange(0, 9, 2, "i2").dtype == np.arange(0, 9, 2, "i2").dtype == np.int16
    with pytest.raises(TypeError):
        xp.arange(0, 9, 2, "i2", "cpu")


@pytest.mark.clfuse_only
def test_sharing_with_views_on_the_host_is_known(xp: ModuleType) -> None:
    x = xp.arange(20_000.0) * 2
    assert not np.may_share_memory(np.zeros(3), x)
    view = np.asarray(x)
    shares = xp.get_device().traits.unified_memory
    assert np.may_share_memory(view, x) == np.shares_memory(x[5:], view) == shares
    assert not np.shares_memory(view[:5], x[5:])
    x += 1
    xp.evaluate(x)
    assert not np.shares_memory(view, x)


class Described:
    """An object whose memory is an array's."""

    def __init__(self, array: Any) -> None:
        self.array = array

    @property
    def __array_interface__(self) -> Any:
        return self.array.__array_interface__


@pytest.mark.clfuse_only
def test_what_describes_an_array_shares_its_memory(xp: ModuleType) -> None:
    shares = xp.get_device().traits.unified_memory
    x = xp.arange(5)
    assert xp.may_share_memory(Described(x[::2]), x[1::2]) == shares
    y = xp.arange(5)
    assert xp.shares_memory(y[::2], Described(y[1::3])) == shares
    assert not xp.shares_memory(Described(y[::2]), y[1::2])


@pytest.mark.clfuse_only
def test_descending_as_in_the_standard(xp: ModuleType) -> None:
    for values in (np.array([3, 1, 2, 3, 1, 9, 9]), np.array([[3.0, 1, 2], [1, 1, 9]]),
                   np.zeros((2, 0))):
        for axis in range(values.ndim):
            backwards = np.flip(np.sort(values, axis), axis)
            found = xp.sort(xp.array(values), axis=axis, descending=True)
            np.testing.assert_array_equal(np.asarray(found), backwards)
            order = np.asarray(xp.argsort(xp.array(values), axis=axis, descending=True))
            np.testing.assert_array_equal(np.take_along_axis(values, order, axis), backwards)
            stable = np.lexsort((np.arange(values.size).reshape(values.shape), -values), axis=axis)
            assert values.ndim > 1 or (order == stable).all()


@pytest.mark.clfuse_only
def test_printing_copies_no_more_than_is_printed(xp: ModuleType) -> None:
    device = xp.get_device()
    traits = dataclasses.replace(device.untuned_traits, unified_memory=False)
    values = np.arange(90_000.0).reshape(300, 300) * 1.5
    x = xp.array(values) * 1
    with device.trying(traits):
        for actual, expected in ((x, values), (x[::2, 1:].T, values[::2, 1:].T), (x[0], values[0]),
                                 (x > 5, values > 5), (x.reshape(-1, 2), values.reshape(-1, 2))):
            xp.evaluate(actual)
            before = xp.stats()["bytes_to_host"]
            assert repr(actual) == repr(expected)
            assert str(actual) == str(expected)
            copied = xp.stats()["bytes_to_host"] - before
            assert copied <= 2 * min(actual.nbytes, 36 * actual.itemsize) or actual.size <= 1000


@pytest.mark.clfuse_only
def test_errors_survive_a_pickle(xp: ModuleType) -> None:
    with pytest.raises(MemoryError) as caught:
        xp.evaluate(xp.zeros(10 ** 13) + 1)
    kind = type(caught.value)
    assert kind is xp.AllocationError
    made = kind.__new__(kind, *caught.value.args)  # what tblib does with an error that has no more
    assert (type(made), made.args) == (kind, caught.value.args)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    # The frames of the error hold the array, which later tests would be asked to compute.
    del caught, made
    gc.collect()


VIEWS: tuple[Callable[[ModuleType, Any], Any], ...] = (
    lambda xp, x: x, lambda xp, x: x.T, lambda xp, x: x[:-1, :-1], lambda xp, x: x[::-1, 1::2],
    lambda xp, x: x[2], lambda xp, x: x[:, -1], lambda xp, x: x.real[1:], lambda xp, x: x[:0],
    lambda xp, x: xp.broadcast_to(x[0, :2], (3, 2)), lambda xp, x: x[1:2, 1:2].reshape(()),
    lambda xp, x: x.reshape(3, 2, 7).transpose(2, 0, 1)[1:], lambda xp, x: x.view("u1")[:, 3:7],
)  # fmt: skip


@pytest.mark.parametrize("dtype", ["i2", "f8", "c8"])
@pytest.mark.parametrize("is_computed", [False, True])
@pytest.mark.parametrize("has_own_memory", [False, True])
def test_what_numpy_gets_lies_as_the_array_says(
    dtype: str, is_computed: bool, has_own_memory: bool, xp: ModuleType
) -> None:
    values = np.arange(42).astype(dtype).reshape(6, 7)
    x = xp.asarray(values) * 2
    if is_computed and xp is not np:
        xp.evaluate(x)
    within = nullcontext()
    if has_own_memory and xp is not np:
        device = xp.get_device()
        within = device.trying(dataclasses.replace(device.untuned_traits, unified_memory=False))
    with within:
        for view in VIEWS:
            ours, expected = view(xp, x), view(np, values * 2)
            seen = np.asarray(ours)
            assert_bitwise(seen, expected)
            assert seen.strides == ours.strides or 0 in seen.shape
            assert xp is np or not seen.flags.writeable


def test_windows_stepped_by_strides_stay_in_the_arrays_memory(xp: ModuleType) -> None:
    """As matplotlib cuts surfaces into patches."""
    values = np.linspace(0, 6, 81).reshape(9, 9)
    for x in (xp.asarray(values), xp.asarray(values) + 0):
        part = x[:-1, 1:]
        steps = (*part.strides, part.strides[0])
        windows = np.lib.stride_tricks.as_strided(part, (7, 8, 2), steps, writeable=False)
        assert_bitwise(np.array(windows), np.stack([values[:7, 1:], values[1:8, 1:]], axis=-1))


@pytest.mark.parametrize("size", [5, 30_000])
def test_masked_arrays_write_to_their_array_and_mask(
    size: int, xp: ModuleType
) -> None:
    x = xp.arange(float(size)) * 2
    mask = x > 4
    masked = np.ma.array(x, mask=mask)
    masked[0] = 9
    masked[3] = 7
    masked[1] = np.ma.masked
    masked += 1
    assert [float(value) for value in x[:5]] == [10, 2, 5, 8, 8]
    assert [bool(value) for value in mask[:5]] == [False, True, False, False, True]
    x[2] = -3
    assert masked.filled(0)[:5].tolist() == [10, 0, -3, 8, 0]
    del masked
    x += 1
    assert float(x[2]) == -2
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        np.ma.array(x)[0] = 1
