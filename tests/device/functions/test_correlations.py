"""Correlations of vectors with long kernels: exact for whole numbers, on every device."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import clfuse

DTYPES = "bool int8 uint16 int64 float16 float32 float64 complex64 complex128".split()
SIZES = ((300, 70), (70, 300), (200, 200), (40, 33))
ERRORS = {"float16": 2e-3, "float32": 3e-6, "complex64": 3e-6}
"""Of the sum of the magnitudes; that of others is below `LEAST`."""
LEAST = 1e-14


def vector(count: int, dtype: str, seed: int) -> Any:
    values = np.random.default_rng(seed).random(count)
    return values > 0.9 if dtype == "bool" else (values * 20 - 0.5).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["correlate", "convolve"])
@pytest.mark.parametrize("mode", ["valid", "same", "full"])
def test_long_kernels_slide_as_numpys(xp: ModuleType, name: str, mode: str, dtype: str) -> None:
    for count, length in SIZES:
        a, b = vector(count, dtype, 1), vector(length, dtype, 2)
        expected = getattr(np, name)(a, b, mode)
        actual = getattr(xp, name)(xp.asarray(a), xp.asarray(b), mode)
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        found = np.asarray(actual)
        if expected.dtype.kind in "biu":
            np.testing.assert_array_equal(found, expected)
            continue
        sizes = getattr(np, name)(abs(a).astype(float), abs(b).astype(float), mode)
        error = abs(found.astype(complex) - expected.astype(complex))
        assert (error <= ERRORS.get(dtype, LEAST) * sizes).all()


def test_nothing_is_added_beyond_the_ends(xp: ModuleType) -> None:
    a, b = np.arange(90.0), np.ones(50)
    a[4], b[2] = np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        expected = np.convolve(a, b)
    np.testing.assert_array_equal(np.asarray(xp.convolve(xp.asarray(a), xp.asarray(b))), expected)


@pytest.mark.clfuse_only
def test_long_kernels_fall_back_nowhere(device: Any) -> None:
    before = clfuse.stats()["fallbacks"]
    with clfuse.config.override(host_us=0, build_after_ms=0), clfuse.device(device):
        x = clfuse.asarray(np.arange(500.0))
        product = clfuse.polymul(x, x[:60])
        np.testing.assert_array_equal(product.get(), np.polymul(np.arange(500.0), np.arange(60.0)))
    assert clfuse.stats()["fallbacks"] == before
