"""``CLFUSE_FP64=downcast``: what stands for float64 follows from the setting and from the device
that is current where it is asked; nothing that was remembered elsewhere counts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse.config import override
from clfuse.engine import auto_flush
from clfuse.runtime.devices.device import Device
from tests.device.runtime.test_simulation import simulated

pytestmark = pytest.mark.clfuse_only


@pytest.fixture(scope="module")
def arc() -> Device:
    return simulated("arc")


@cf.kernel
def halved(i: Any, x: Any, y: Any) -> None:
    y[i] = x[i] / 2


@cf.kernel
def root(i: Any, x: Any) -> Any:
    return cf.sqrt(x[i])


twice = cf.ElementwiseKernel("float64 x", "float64 y", "y = x * 2", "twice")
whole = cf.ElementwiseKernel("int32 k", "float64 y", "y = k * .5", "whole")
traced = cf.jit(lambda x: x / 3 + 1.5)


def with_kernel(n: Any) -> Any:
    y = cf.zeros(4, dtype="float32")
    halved(4, n, y)
    return root.reduce(4, n)


CALLS: dict[str, Callable[[Any], Any]] = {
    "operator with a number": lambda n: n / 2,
    "operator": lambda n: n / (n + 7),
    "ufunc": lambda n: cf.sqrt(n),
    "ufunc with an option": lambda n: cf.add(n, 1, dtype=float),
    "reflected": lambda n: 2.5 * n,
    "mean": lambda n: n.mean(),
    "sum": lambda n: cf.sum(n, dtype=float),
    "scan": lambda n: cf.cumsum(n, dtype=float),
    "fft": lambda n: cf.fft.fft(n).real,
    "kernel": with_kernel,
    "elementwise kernel": lambda n: whole(n.astype("int32")),
    "jit": lambda n: traced(n),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_answer_of_one_device_or_setting_is_none_of_another(name: str, arc: Device) -> None:
    here, call = cf.get_device(), CALLS[name]
    doubles = np.float64 if here.traits.fp64 else None

    def found(device: Device) -> Any:
        with cf.device(device):
            return [call(cf.arange(4, dtype="int64")).dtype for _ in range(3)][-1]

    with override(host_us=0):
        with override(fp64="downcast"):
            assert found(arc) == np.float32
            if doubles:
                assert found(here) == doubles
            assert found(arc) == np.float32
        if doubles:
            assert found(here) == doubles
        with override(fp64="downcast"):
            assert found(arc) == np.float32


def test_declared_types_are_those_of_the_device_of_the_call(arc: Device) -> None:
    with override(host_us=0, fp64="downcast"), cf.device(arc):
        made = twice(cf.arange(4, dtype="float32"))
        assert made.dtype == np.float32
        assert made.tolist() == [0, 2, 4, 6]
    if cf.get_device().traits.fp64:
        assert twice(cf.arange(4.0)).dtype == np.float64


def test_a_thread_has_its_own_device(arc: Device) -> None:
    if not cf.get_device().traits.fp64:
        pytest.skip("it takes a device with double precision beside one without")
    found: list[Any] = []

    def work() -> None:
        found.append((cf.arange(5, dtype="int64") / 5).dtype)

    with override(host_us=0, fp64="downcast"), cf.device(arc):
        assert (cf.arange(5, dtype="int64") / 5).dtype == np.float32
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert (cf.arange(5, dtype="int64") / 5).dtype == np.float32
    assert found == [np.float64]


def test_what_cannot_be_computed_fails_no_other_statement(arc: Device) -> None:
    with override(host_us=0, max_nodes=50):
        with cf.device(arc):
            lost = cf.asarray(np.arange(10)) < cf.arange(10, dtype="float32")  # in float64
        x = cf.arange(8, dtype="float32")
        kept = [x + number for number in range(200)]  # so many that they are computed meanwhile
        auto_flush._when_full()
        np.testing.assert_array_equal(kept[199].get(), np.arange(8, dtype="f4") + 199)
        for _ in range(2):
            with pytest.raises(cf.DeviceDtypeError, match="no double precision"):
                lost.get()
        cf.evaluate()  # nor does it fail again along with everything else


@pytest.mark.parametrize("name", ["quantile", "nanquantile", "percentile", "nanpercentile"])
def test_quantiles_of_single_precision_need_no_double(name: str, arc: Device) -> None:
    """NumPy calculates them in double precision; the result has the array's dtype."""
    values = np.random.default_rng(5).random((40, 50)).astype(np.float32)
    if name.startswith("nan"):
        values[3, 7] = np.nan
    q = 0.3 if name.endswith("quantile") else 30
    for axis in (None, 0, 1):
        expected = getattr(np, name)(values, q, axis=axis)
        for fp64 in ("error", "downcast"):
            with override(host_us=0, fp64=fp64, fallback="allow"), cf.device(arc):
                found = getattr(cf, name)(cf.asarray(values), q, axis=axis)
                assert found.dtype == np.float32
                np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5)
