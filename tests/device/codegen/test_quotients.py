"""Integers divided in vectors by way of floats give NumPy's quotients and rests, of all values that
could be rounded to the next whole number."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

import clfuse as cf
from tests.support.agreement import Batch

DIVISIONS = ("floor_divide", "remainder", "fmod")


def near_multiples(dtype: np.dtype, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Dividends one beside multiples of their divisors, of all sizes, and ends of the range."""
    limits = np.iinfo(dtype)
    bits = random.integers(0, limits.bits, 4000)
    with np.errstate(all="ignore"):
        divisors = (random.integers(1, 2**63, 4000) >> (63 - bits)).astype(dtype)
        divisors[divisors == 0] = 1
        sizes = random.integers(0, limits.bits, 4000)
        multiples = (random.integers(1, 2**63, 4000) >> (63 - sizes)).astype(dtype)
        dividends = multiples - multiples % divisors
        dividends += random.integers(-1, 2, 4000).astype(dtype)
        if dtype.kind == "i":
            dividends *= random.choice([-1, 1], 4000).astype(dtype)
            divisors *= random.choice([-1, 1], 4000).astype(dtype)
    ends = [limits.min, limits.max, limits.max - 1, limits.min + 1, 0, 1]
    around = [2**bits + d for bits in (22, 24, 49, 50, 51, 53) for d in (-1, 0, 1)]
    ends += [each for each in around if each <= limits.max]
    ends += [-x for x in ends if x >= 0 and dtype.kind == "i"]
    pairs = np.array([(a, b) for a in ends for b in ends], dtype)
    return np.r_[dividends, pairs[:, 0]], np.r_[divisors, pairs[:, 1]]


@pytest.mark.parametrize("dtype", [f"{u}int{bits}" for bits in (8, 16, 32, 64) for u in ("", "u")])
def test_quotients_and_rests_are_numpys(xp: ModuleType, dtype: str) -> None:
    random = np.random.default_rng(11)
    if dtype.endswith("int8"):
        info = np.iinfo(dtype)
        every = np.arange(info.min, info.max + 1).astype(dtype)
        dividends, divisors = (part.ravel() for part in np.meshgrid(every, every))
    else:
        dividends, divisors = near_multiples(np.dtype(dtype), random)
    batch = Batch(xp)
    with np.errstate(all="ignore"):
        for name in DIVISIONS:

            def divided(
                m: ModuleType, by: object, of: np.ndarray = dividends, n: str = name
            ) -> object:
                return getattr(m, n)(m.asarray(of), m.asarray(by, dtype))

            batch.same(name, lambda m, f=divided: f(m, divisors))
            for divisor in (1, 3, 10, 97, np.iinfo(dtype).max, np.iinfo(dtype).min or 2, 0):
                batch.same(f"{name} by {divisor}", lambda m, f=divided, d=divisor: f(m, d))
            few = dividends % dividends.dtype.type(100)
            batch.same(f"{name} of few", lambda m, f=divided, few=few: f(m, 7, few))
        batch.check()


def test_large_numbers_among_small_ones_are_divided_by_lane(xp: ModuleType) -> None:
    values = np.arange(-500, 500)
    values[::37] = 2**62 + np.arange(len(values[::37]))
    values[::41] = -(2**63) + np.arange(len(values[::41]))
    batch = Batch(xp)
    for name in DIVISIONS:
        batch.same(name, lambda m, n=name: getattr(m, n)(m.asarray(values), 12345))
        batch.same(f"{name} in columns", lambda m, n=name: getattr(m, n)(
            m.asarray(values).reshape(20, 50), m.asarray(values[37:57])[:, None]).sum(0))
    batch.check()


@pytest.mark.clfuse_only
def test_quotients_in_loops_of_kernels_by_lanes() -> None:
    @cf.kernel
    def digits(i, values, base, out):
        rest, found, steps = values[i], 0, 0
        while rest != 0 and rest != -1:
            found += rest % base + rest % 8 - rest // 16
            rest = rest // base
            steps += 1
        out[i] = found + steps

    random = np.random.default_rng(5)
    for dtype in ("int64", "int32", "uint8"):
        limits = np.iinfo(dtype)
        values = random.integers(limits.min, limits.max, 300, dtype=dtype)
        values[::3] //= 2**40 if dtype == "int64" else 2
        expected = np.zeros(300, np.int64)
        digits.python(300, values, 10, expected)
        out = cf.zeros(300, dtype=np.int64)
        digits(300, cf.asarray(values), 10, out)
        np.testing.assert_array_equal(out.get(), expected)
