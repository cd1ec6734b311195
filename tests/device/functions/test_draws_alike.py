"""Draws with numbers for parameters, which the host makes by blocks and from tables: the same bits
as of arrays of parameters, element by element."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.clfuse_only

PARAMETERS: dict[str, list[tuple[Any, ...]]] = {
    "gamma": [(2.0, 1.0), (0.5, 3.0), (1.0, 0.25), (1e-3, 1.0), (1e10, 1.0), (0.0, 1.0), (3, 2)],
    "standard_gamma": [(2.0,), (0.7,)],
    "chisquare": [(3.0,), (0.5,), (4,)],
    "poisson": [(0.0,), (1e-20,), (3.0,), (9.99,), (10.0,), (50.0,), (1e6,), (1e15,), (7,)],
    "binomial": [
        (0, 0.5), (9, 0.5), (20, 0.5), (90, 0.5), (90, 0.8), (9, 0.9), (1000, 0.001), (10**9, 0.3),
        (10**15, 1e-15), (10, 0.0), (10, 1.0), (7, 1),
    ],
    "hypergeometric": [
        (5, 5, 3), (500, 500, 300), (500, 300, 700), (10, 10_000, 5000), (10_000, 10, 9000),
        (10**8, 5 * 10**8, 10**8), (0, 0, 0), (50, 50, 50),
    ],
    "zipf": [(2.0,), (1.1,), (1.001,), (30.0,), (5000.0,), (3,)],
}  # fmt: skip


@pytest.fixture
def on_host(setting: Callable[..., None]) -> None:
    """Few numbers are made on the host, as outside of tests."""
    setting(host_us=50, build_after_ms=50)


@pytest.mark.parametrize("count", [3, 700, 3000])
@pytest.mark.parametrize("name", PARAMETERS)
def test_numbers_as_parameters_are_as_arrays_of_them(
    xp: ModuleType, on_host: None, name: str, count: int
) -> None:
    for parameters in PARAMETERS[name]:
        alike = getattr(xp.random.default_rng(5), name)(*parameters, count)
        whole = name == "hypergeometric"
        arrays = [
            xp.full(count, each, np.int64 if whole or (name == "binomial" and not place) else float)
            for place, each in enumerate(parameters)
        ]
        one_by_one = getattr(xp.random.default_rng(5), name)(*arrays)
        assert alike.dtype == one_by_one.dtype
        np.testing.assert_array_equal(np.asarray(alike), np.asarray(one_by_one), str(parameters))


@pytest.mark.parametrize("name", PARAMETERS)
def test_one_number_is_the_first_of_a_draw(xp: ModuleType, on_host: None, name: str) -> None:
    for parameters in PARAMETERS[name]:
        rng, other = xp.random.default_rng(6), xp.random.default_rng(6)
        for _ in range(3):
            one = getattr(rng, name)(*parameters)
            few = np.asarray(getattr(other, name)(*parameters, 20))
            np.testing.assert_allclose(one, few[0], rtol=1e-12)
            assert type(one) is (float if few.dtype.kind == "f" else int)
        assert rng.bit_generator.state == other.bit_generator.state


def test_normal_numbers_are_the_inverse_of_their_distribution() -> None:
    from statistics import NormalDist

    from clfuse.interpreter.rng import NEARLY, NUMBERS

    middle = [k << 53 for k in range(1, 2048)]
    ends = [0, 1 << 11, (1 << 63) - (1 << 11), 1 << 63, (1 << 63) + (1 << 11), (1 << 64) - 1]
    bits = np.array([*middle, *ends, *[1 << k for k in range(64)]], np.uint64)
    row = "normal_of_bits_float64"
    made = NUMBERS[row](np.dtype(np.float64))(bits) if row in NUMBERS else NEARLY[row](bits)
    whole = [(int(each) >> 11) - (1 << 53) * (int(each) >> 63) for each in bits]
    for number, word in zip(made.tolist(), whole, strict=True):
        size = word if word >= 0 else -1 - word
        wanted = -NormalDist().inv_cdf(((1 << 52) - 1 - size + 0.5) * 2.0**-53)
        assert abs(abs(number) - wanted) <= 1e-13 * wanted + 1e-29
        assert (number > 0) == (word >= 0)
