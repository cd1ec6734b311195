"""Special functions in kernels, and arrays of one storage, against the same body in Python."""

from __future__ import annotations

import math

import numpy as np
import pytest

import clfuse as cf

pytestmark = pytest.mark.clfuse_only


def test_special_functions_of_math() -> None:
    @cf.kernel
    def specials(i, x, out):
        out[i, 0] = math.erf(x[i])
        out[i, 1] = math.erfc(x[i])
        out[i, 2] = math.gamma(x[i])
        out[i, 3] = math.lgamma(x[i]) + math.erf(0.5)

    poles = [0.0, -0.0, -1.0, -3.0, 171.7, np.inf, -np.inf, np.nan, 1e-9]
    x = np.r_[np.linspace(-6.1, 30, 77), poles]
    for dtype, precision in ((np.float64, 1e-14), (np.float32, 1e-5)):
        values = x.astype(dtype)
        out = np.zeros((len(x), 4), dtype)
        expected = out.copy()
        specials.python(len(x), values, expected)
        np.testing.assert_allclose(expected[:77, 0], [math.erf(v) for v in values[:77]], precision)
        actual = cf.asarray(out)
        specials(len(x), cf.asarray(values), actual)
        np.testing.assert_allclose(actual.get(), expected, precision, precision)


def test_black_and_scholes_with_erf_is_one_array_kernel() -> None:
    @cf.device_function
    def normal(x):
        return 0.5 * (1 + math.erf(x / math.sqrt(2.0)))

    @cf.kernel
    def call(i, spot, strike, years, price):
        spread = 0.3 * math.sqrt(years[i])
        up = (math.log(spot[i] / strike[i]) + 0.045 * years[i]) / spread
        paid = strike[i] * math.exp(-0.02 * years[i])
        price[i] = spot[i] * normal(up) - paid * normal(up - spread)

    spot, strike, years = np.random.default_rng(1).uniform(0.5, 2, (3, 500))
    expected = np.zeros(500)
    call.python(500, spot, strike, years, expected)
    price = cf.zeros(500)
    call(500, *map(cf.asarray, (spot, strike, years)), price)
    assert len(cf.explain(price).kernels) == 1
    np.testing.assert_allclose(price.get(), expected, 1e-12, 1e-14)


def test_arrays_of_one_storage_may_be_written_through_another() -> None:
    @cf.kernel
    def shifted(i, places, old, new):
        for k in range(4):
            new[places[i]] = old[i] + k
            new[places[i]] = old[i] * 2.0 + new[places[i]]

    places = np.arange(50)
    values = np.linspace(0, 1, 60)
    one, other = cf.asarray(values), cf.asarray(values)
    assert "restrict" in shifted.source(50, places, one, other)
    assert "restrict" not in shifted.source(50, places, one, one[:])
    expected = values.copy()
    shifted.python(50, places, expected, expected)
    shifted(50, places, one, one[:])
    np.testing.assert_array_equal(one.get(), expected)
    np.testing.assert_array_equal(other.get(), values)


@cf.device_function
def doubled(k, whole, part):
    part[k] = whole[k] * 2
    return whole[k]


@cf.kernel
def through_parts(i, whole, part):
    part[i] = whole[i]
    whole[i] = whole[i] + doubled(i, whole, part)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "float16", "float32", "float64"])
def test_a_write_to_a_view_of_another_dtype_is_read_back(dtype: str) -> None:
    last = 8 // np.dtype(dtype).itemsize - 1
    start = np.arange(1, 5) * 7
    expected, a = start.copy(), cf.asarray(start)
    through_parts.python(1, expected[:1], expected.view(dtype)[last:])
    through_parts(1, a[:1], a.view(dtype)[last:])
    np.testing.assert_array_equal(a.get(), expected)


@cf.kernel
def handed_back(i, number):
    rounds = 0
    while rounds < i:
        rounds += 1
    return number


@pytest.mark.parametrize("computed", [False, True], ids=["given", "computed"])
@pytest.mark.parametrize("dtype", [
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
    "float32", "float64", "complex64", "complex128",
])
def test_a_launch_takes_and_returns_numbers_of_every_dtype(dtype: str, computed: bool) -> None:
    number = np.dtype(dtype).type(0.1 if np.dtype(dtype).kind in "fc" else 1)
    passed = np.maximum(cf.asarray(np.zeros(3, dtype)), number)[1] if computed else number
    assert handed_back.route(4, passed).startswith("a launch")
    values = handed_back.scan(4, passed, op="max")
    assert values.dtype == dtype
    assert values.tolist() == [number.item()] * 4
