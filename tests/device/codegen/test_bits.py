"""``+ - * /`` and sqrt of floats have NumPy's bits: of float16 every number, of others a million
pairs of random bits. ``python -m tests.accuracy bits`` compares a hundred million."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from tests.accuracy import bits


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_arithmetic_has_numpys_bits(xp: ModuleType, dtype: str) -> None:
    if dtype == "float16":
        others = bits.hard_halves()[::12]
        pairs = list(bits.halves(others))
        assert sum(x.size for x, _ in pairs) == len(others) << 16
    else:
        pairs = list(bits.random_pairs(dtype, 1_000_000))
    for name in (*bits.OPERATIONS, "sqrt"):
        found = bits.Bits()
        for x, y in pairs:
            bits.compare(xp, name, x, y, found)
        assert found.compared >= 65_536
        assert not found.wrong, found.example


def test_random_pairs_have_what_is_hard() -> None:
    (x, y), = bits.random_pairs("float32", 100_000)
    tiny = np.finfo("f4").tiny
    for each in (x, y):
        finite = each[np.isfinite(each)]
        assert ((np.abs(finite) < tiny) & (finite != 0)).sum() > 100
        assert np.isnan(each).sum() > 100
    near = np.abs(x[:25_000] - y[:25_000]) < np.abs(x[:25_000]) * 2.0**-8
    assert near.sum() > 20_000


def test_one_wrong_bit_is_seen() -> None:
    one = np.array([1.0, np.nan, 0.0, np.nan], "f4")
    other = np.array([1.0000001, -np.nan, -0.0, 1.0], "f4")
    assert bits.wrong_bits(one, other).tolist() == [True, False, True, True]
