"""Small draws are made by the host at the call: the same numbers as those of kernels, one by one or
many at once, and no device is looked for."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.clfuse_only
Setting = Callable[..., None]

DRAWS: dict[str, Callable[[Any, Any], Any]] = {
    "random": lambda rng, size: rng.random(size),
    "random float32": lambda rng, size: rng.random(size, dtype=np.float32),
    "standard_normal": lambda rng, size: rng.standard_normal(size),
    "standard_normal float32": lambda rng, size: rng.standard_normal(size, dtype=np.float32),
    "uniform": lambda rng, size: rng.uniform(-2.5, 4, size),
    "normal": lambda rng, size: rng.normal(-1.5, 3, size=size),
    "normal around 0": lambda rng, size: rng.normal(0, 0.5, size),
    "integers": lambda rng, size: rng.integers(-5, 17, size),
    "integers of one bound": lambda rng, size: rng.integers(7, size=size, endpoint=True),
    "integers of 33 bits": lambda rng, size: rng.integers(-(1 << 32), 1 << 32, size),
    "integers of 8 bits": lambda rng, size: rng.integers(0, 200, size, dtype=np.uint8),
    "gamma": lambda rng, size: rng.gamma(0.7, 3, size),
    "gamma float32": lambda rng, size: rng.standard_gamma(2.5, size, dtype=np.float32),
    "poisson": lambda rng, size: rng.poisson(7.5, size),
    "negative_binomial": lambda rng, size: rng.negative_binomial(60, 0.7, size),
    "binomial": lambda rng, size: rng.binomial(60, 0.7, size),
    "hypergeometric": lambda rng, size: rng.hypergeometric(60, 70, 80, size),
    "zipf": lambda rng, size: rng.zipf(1.5, size),
}


def drawn(xp: ModuleType, name: str, sizes: list[Any]) -> list[Any]:
    rng = xp.random.default_rng(2**70 + 5)
    rng.bit_generator.advance(2**64 - 3)  # positions go round
    return [DRAWS[name](rng, size) for size in sizes]


@pytest.mark.parametrize("name", DRAWS)
def test_small_draws_have_the_bits_of_kernels(xp: ModuleType, setting: Setting, name: str) -> None:
    sizes: list[Any] = [1, 3, (2, 3), (1,), (5, 1, 4), 1024, (32, 33), 4096, 4097]
    expected = [np.array(each) for each in drawn(xp, name, sizes)]
    setting(host_us=50, build_after_ms=50)
    for given, wanted in zip(drawn(xp, name, sizes), expected, strict=True):
        assert given.dtype == wanted.dtype
        assert given.shape == wanted.shape
        assert np.asarray(given).tobytes() == wanted.tobytes()


SINGLES = {
    "random": float, "uniform": float, "standard_normal": float, "normal": float,
    "integers": np.int64, "gamma": float, "poisson": int, "zipf": int,
}  # fmt: skip


@pytest.mark.parametrize("name", SINGLES)
def test_one_number_is_the_first_of_a_draw_of_its_own(
    xp: ModuleType, setting: Setting, name: str
) -> None:
    arrays = np.array([np.asarray(each)[0] for each in drawn(xp, name, [1] * 300)])
    setting(host_us=50, build_after_ms=50)
    singles = drawn(xp, name, [None] * 300)
    assert {type(single) for single in singles} == {SINGLES[name]}
    if "normal" in name or name == "gamma":  # without the compiled part, to a few ulp
        np.testing.assert_allclose(singles, arrays, rtol=1e-13)
    else:
        assert np.array(singles).tobytes() == arrays.tobytes()


EXPONENTIAL: dict[str, Callable[[Any, Any], Any]] = {
    "scaled": lambda rng, size: rng.exponential(2.5, size),
    "by name": lambda rng, size: rng.exponential(scale=3, size=size),
    "standard": lambda rng, size: rng.standard_exponential(size),
    "nothing": lambda rng, size: rng.exponential(0, size),
}


@pytest.mark.parametrize("name", EXPONENTIAL)
def test_exponential_numbers_at_the_call_are_those_of_kernels(
    xp: ModuleType, setting: Setting, name: str
) -> None:
    draw = EXPONENTIAL[name]
    sizes: list[Any] = [1, 3, (2, 3), 1024]
    rng = xp.random.default_rng(9)
    wanted = [np.asarray(draw(rng, size)) for size in (*sizes, *[1] * 50)]
    setting(host_us=50, build_after_ms=50)
    rng = xp.random.default_rng(9)
    for size, expected in zip(sizes, wanted, strict=False):
        given = draw(rng, size)
        assert given.shape == expected.shape
        np.testing.assert_allclose(np.asarray(given), expected, rtol=1e-13)
    singles = [draw(rng, None) for _ in range(50)]
    assert {type(single) for single in singles} == {float}
    np.testing.assert_allclose(singles, np.concatenate(wanted[len(sizes) :]), rtol=1e-13)
    assert not np.signbit(singles).any()


def test_small_draws_are_arrays_of_their_own(xp: ModuleType, setting: Setting) -> None:
    setting(host_us=50, build_after_ms=50)
    rng = xp.random.default_rng(3)
    one, other = rng.random(5), rng.random(5)
    kept = one.tolist()
    other += 1
    one[0] = 7
    assert one.tolist() == [7, *kept[1:]]
    again = xp.random.default_rng(3)
    assert again.random(5).tolist() == kept


WRONG: list[Callable[[Any], Any]] = [
    lambda random: random.normal(0, -1, 3),
    lambda random: random.normal(0, -1),
    lambda random: random.uniform(0, np.inf),
    lambda random: random.uniform(0, np.inf, 3),
    lambda random: random.uniform(2, 1, 3),
    lambda random: random.random(-1),
    lambda random: random.random((2, -1)),
    lambda random: random.random(2.0),
    lambda random: random.random("a"),
    lambda random: random.random(3, nothing=1),
    lambda random: random.normal(0, 1, 3, 4),
    lambda random: random.normal("a", 1, 3),
    lambda random: random.uniform(0, 1, low=2),
]


@pytest.mark.parametrize("call", WRONG)
@pytest.mark.parametrize("make", ["default_rng", "RandomState"])
def test_wrong_calls_are_refused_as_by_numpy(
    xp: ModuleType, setting: Setting, make: str, call: Callable[[Any], Any]
) -> None:
    setting(host_us=50, build_after_ms=50)
    try:
        call(getattr(np.random, make)(0))
    except Exception as error:
        with pytest.raises(type(error)) as found:
            call(getattr(xp.random, make)(0))
        # Of wrong arguments Python speaks in other words than Cython.
        assert str(found.value) == str(error) or type(error) is TypeError  # noqa: PT017
    else:  # the older interface takes a range that goes down
        numbers = np.asarray(call(getattr(xp.random, make)(0)))
        assert numbers.shape == (3,)
        assert ((numbers >= 1) & (numbers <= 2)).all()


def test_odd_parameters_are_drawn_with(xp: ModuleType, setting: Setting) -> None:
    setting(host_us=50, build_after_ms=50)
    for random in (xp.random.default_rng(1), xp.random.RandomState(1)):
        assert random.normal(2, 0, 3).tolist() == [2, 2, 2]
        assert random.normal(2, 0) == 2
        assert random.uniform(3, 3) == 3
        assert np.isnan(random.normal(np.nan, 1))
        assert random.random(()).shape == ()
        assert random.random(0).shape == (0,)
        assert random.random((3, 0)).shape == (3, 0)
        assert random.random(np.int64(2)).shape == (2,)
        assert random.random([2, 1]).shape == (2, 1)
