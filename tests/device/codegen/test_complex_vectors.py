"""Vectors of complex numbers compute what single ones do, at every width and through every kind of
kernel.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import host, same_bits
from tests.support.hostile import COMPLEXES, hostile

EXACT: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda m, z, w: z + w,
    "subtract": lambda m, z, w: z - w,
    "multiply": lambda m, z, w: z * w,
    "square": lambda m, z, w: m.square(z),
    "divide": lambda m, z, w: z / w,
    "reciprocal": lambda m, z, w: m.reciprocal(z),
    "negative": lambda m, z, w: -z,
    "conjugate": lambda m, z, w: m.conjugate(z),
    "rint": lambda m, z, w: m.rint(z),
    "sign": lambda m, z, w: m.sign(z),
    "real": lambda m, z, w: z.real + w.imag,
    "from real": lambda m, z, w: z.imag * w,
    "scalar": lambda m, z, w: z * 2.5 - (1 - 2j),
    "where": lambda m, z, w: m.where(z.real > w.real, z, w),
    "maximum": lambda m, z, w: m.maximum(z, w),
    "minimum": lambda m, z, w: m.minimum(z, w),
    "isnan": lambda m, z, w: m.isnan(z),
    "isinf": lambda m, z, w: m.isinf(z),
    "isfinite": lambda m, z, w: m.isfinite(z),
    "logical_and": lambda m, z, w: m.logical_and(z, w),
    "logical_not": lambda m, z, w: m.logical_not(z),
    "logical_xor": lambda m, z, w: m.logical_xor(z, w),
    "to bool": lambda m, z, w: z.astype("bool"),
    "from bool": lambda m, z, w: (z.real > w.real).astype(z.dtype) + w,
    "other precision": lambda m, z, w: z.astype("complex128") - w.astype("complex64"),
    "flipped": lambda m, z, w: z[::-1] + w,
    "strided": lambda m, z, w: z[::3] * w[1::3][: len(z[::3])],
    "gathered": lambda m, z, w: z[m.arange(len(z)) * 7 % len(z)] + w,
    **{
        name: lambda m, z, w, name=name: getattr(operator, name)(z, w)
        for name in ("eq", "ne", "lt", "le", "gt", "ge")
    },
}

ROUNDED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "absolute": lambda m, z, w: abs(z),
    "exp": lambda m, z, w: m.exp(z),
    "sqrt": lambda m, z, w: m.sqrt(z),
    "log": lambda m, z, w: m.log(z),
    **{
        name: lambda m, z, w, name=name: getattr(m, name)(z)
        for name in ("log2", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh")
    },
    "angle": lambda m, z, w: m.angle(z),
}
"""Functions whose builtins may differ between vectors and single numbers in their last bits."""


def operands(dtype: str) -> tuple[Any, Any]:
    """Every hostile number with others, and ordinary ones; no multiple of a vector's length."""
    values = hostile(dtype)
    rng = np.random.default_rng(3)
    plain = (rng.normal(size=403) + 1j * rng.normal(size=403)).astype(dtype)
    first = np.concatenate([values, plain, values])
    return first, np.concatenate([plain[:200], np.roll(values, 11), plain[200:], values[::-1]])


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
@pytest.mark.parametrize("dtype", COMPLEXES)
def test_vectors_have_the_bits_of_single_numbers(
    dtype: str, vector_bytes: int, xp: ModuleType
) -> None:
    first, second = map(xp.asarray, operands(dtype))

    def computed(nbytes: int) -> dict[str, Any]:
        with xp.config.override(vector_bytes=nbytes, schedule="cpu"):
            found = {name: f(xp, first, second) for name, f in EXACT.items()}
            xp.evaluate(*found.values())
        return {name: host(value) for name, value in found.items()}

    single, several = computed(8), computed(vector_bytes)
    for name in EXACT:
        same = same_bits(several[name], single[name])
        wrong = np.flatnonzero(~same)
        assert same.all(), (name, wrong[:5], several[name][wrong[:5]], single[name][wrong[:5]])


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_functions_of_vectors_are_as_near_as_of_single_numbers(
    dtype: str, xp: ModuleType
) -> None:
    first, second = operands(dtype)
    with np.errstate(all="ignore"):
        expected = {name: f(np, first, second) for name, f in ROUNDED.items()}
    with xp.config.override(vector_bytes=64, schedule="cpu"):
        z, w = map(xp.asarray, (first, second))
        found = {name: f(xp, z, w) for name, f in ROUNDED.items()}
        xp.evaluate(*found.values())
    limit = 8 * np.finfo(dtype).eps
    for name, want in expected.items():
        actual = host(found[name])
        finite = np.isfinite(want) & np.isfinite(actual)
        size = np.maximum(np.abs(want), np.finfo(dtype).tiny)
        with np.errstate(all="ignore"):
            apart = np.abs(actual - want) / size
        # A largest number may be an infinity; what has no number has none in both.
        overflowed = np.isinf(want) | np.isinf(actual)
        assert (apart[finite] <= limit).all(), name
        other = ~finite & ~overflowed
        assert same_bits(np.isnan(actual[other]), np.isnan(want[other])).all(), name


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_complex_sums_along_every_axis_agree_with_numpy(
    dtype: str, xp: ModuleType
) -> None:
    rng = np.random.default_rng(5)
    values = (rng.normal(size=(37, 5, 211)) + 1j * rng.normal(size=(37, 5, 211))).astype(dtype)
    wide = values.astype("complex128")
    x = xp.asarray(values)
    with xp.config.override(schedule="cpu"):
        for axis in (None, 0, 1, 2, (0, 2), (1, 2)):
            total = host((x * 2 - 1j).sum(axis))
            exact = (wide * 2 - 1j).sum(axis)
            scale = np.abs(wide * 2 - 1j).sum(axis)
            assert (np.abs(total - exact) <= 4 * np.finfo(dtype).eps * scale).all(), axis
        product = host(xp.prod(x[:, 0, :9] / 2, axis=1))
        assert np.allclose(product, np.prod(wide[:, 0, :9] / 2, axis=1), rtol=1e-5)
        norms = host((abs(x) ** 2).sum(2))
        assert np.allclose(norms, (np.abs(wide) ** 2).sum(2), rtol=1e-5)
        # A row program: the mean, and what follows in the same kernel.
        centred = host(x - x.mean(2, keepdims=True))
        assert np.allclose(centred, wide - wide.mean(2, keepdims=True), atol=1e-5)


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_long_sums_of_complex_numbers_lose_nothing(dtype: str, xp: ModuleType) -> None:
    x = np.full(3_000_001, 0.1 + 0.7j, dtype)
    total = host(xp.asarray(x).sum())
    exact = complex(x[0]) * len(x)
    assert abs(total - exact) <= 8 * np.finfo(dtype).eps * abs(exact)


def test_kernels_over_complex_numbers_load_vectors(xp: ModuleType) -> None:
    with xp.config.override(schedule="cpu", vector_bytes=64, build_after_ms=0, host_us=0):
        z = xp.ones((1000, 1000), "complex128") * xp.exp(xp.arange(1000.0))
        for value in (xp.exp(z * z.conj()), xp.angle(z), (z * 2).sum(), z.sum(0), abs(z).mean(1)):
            # A second kernel may fold the few sums that the first one leaves.
            first = xp.explain(value).kernels[0]
            assert "double16" in first.source, first.source
