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


def chances_of(count: int, seed: int) -> np.ndarray:
    """Some of them 0, others nearly 1; they sum up to 1 or less."""
    random = np.random.default_rng(seed)
    chances = random.random(count) ** 8 * (random.random(count) < 0.7)
    return chances / max(chances.sum(), 1.0)


@pytest.mark.parametrize("count", [1, 2, 3, 9, 16, 33, 128, 129])
def test_few_outcomes_are_those_of_kernels(xp: ModuleType, setting: Setting, count: int) -> None:
    def outcomes() -> list[Any]:
        rng = xp.random.default_rng(count)
        rng.bit_generator.advance(2**64 - 3)
        found = []
        for trials in (0, 1, 7, 1000, 2**40):
            chances = chances_of(count, trials % 1009)
            found += [rng.multinomial(trials, chances), rng.multinomial(trials, [*chances])]
            found += [rng.multinomial(trials, xp.asarray(chances))]
        return [*found, rng.random()]

    expected = [np.array(each) for each in outcomes()]
    setting(host_us=50, build_after_ms=50)
    for given, wanted in zip(outcomes(), expected, strict=True):
        np.testing.assert_array_equal(given, wanted, strict=wanted.ndim > 0)
    assert {each.sum() for each in expected[:-1]} == {0, 1, 7, 1000, 2**40}


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, a: rng.poisson(a(np.array([[0.5], [20.0]])), (2, 3)),
        lambda rng, a: rng.poisson(a(np.array([0.0, 3.0, 1e5]))),
        lambda rng, a: rng.binomial(a(np.array([5, 60, 2**40])), 0.3),
        lambda rng, a: rng.binomial(40, a(np.array([0.0, 0.01, 0.6, 1.0]))),
        lambda rng, a: rng.gamma(a(np.array([[0.5, 1.0, 9.0]])), a(np.array([[2.0], [1e-3]]))),
        lambda rng, a: rng.hypergeometric(a(np.array([5, 500])), 70, 50),
        lambda rng, a: rng.standard_gamma(a(np.arange(1, 25.0).reshape(2, 3, 4).T)),
        lambda rng, a: rng.zipf(a(np.array([1.2, 4.0])), (5, 2)),
        lambda rng, a: rng.dirichlet(a(np.array([0.1, 1.0, 20.0]))),
        lambda rng, a: rng.dirichlet(a(np.array([0.1, 1.0, 20.0])), (2, 2)),
    ],
)  # fmt: skip
def test_parameters_of_each_number_draw_what_kernels_draw(
    xp: ModuleType, setting: Setting, draw: Callable[[Any, Any], Any]
) -> None:
    def made() -> list[Any]:
        rng = xp.random.default_rng(2**70 + 5)
        return [draw(rng, xp.asarray), draw(rng, np.asarray), rng.random()]

    expected = [np.array(each) for each in made()]
    setting(host_us=50, build_after_ms=50)
    for given, wanted in zip(made(), expected, strict=True):
        assert np.asarray(given).dtype == wanted.dtype
        np.testing.assert_allclose(given, wanted, rtol=1e-14)


def test_what_is_wrong_with_chances_is_said_as_numpy_says_it(
    xp: ModuleType, setting: Setting
) -> None:
    setting(host_us=50)
    for trials, chances in (
        (10, [0.5, 0.6, 0.1]), (-1, [0.5, 0.5]), (10, [0.5, -0.1, 0.6]), (10, []),
        (3, [np.nan, 0.5]), (2**63, [0.5, 0.5]), (-(2**70), [0.5, 0.5]), (3, [0.2, np.inf]),
        (True, [1.5]),
    ):  # fmt: skip
        errors = []
        for module in (np, xp):
            rng = module.random.default_rng(0)
            with pytest.raises((ValueError, OverflowError)) as caught:
                rng.multinomial(trials, module.asarray(chances))
            errors.append((type(caught.value), str(caught.value)))
        assert errors[0] == errors[1], (trials, chances)


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
