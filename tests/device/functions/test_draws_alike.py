"""Draws with numbers for parameters, which the host makes by blocks and from tables: the same bits
as of arrays of parameters, element by element."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse._core import loading
from clfuse.functions.random.formulas import DISTRIBUTIONS
from clfuse.functions.random.single_draws import traced

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


SINGLES: list[tuple[str, tuple[Any, ...]]] = [
    ("random", ()), ("standard_normal", ()), ("standard_exponential", ()), ("standard_cauchy", ()),
    ("uniform", (-1, 2.5)), ("uniform", (0.5,)), ("normal", (2, 0.5)), ("normal", (1,)),
    ("exponential", (2.0,)), ("exponential", (3,)), ("rayleigh", (0.5,)), ("logistic", (1.0, 2.0)),
    ("gumbel", (-1.0, 0.5)), ("laplace", (0.0, 1.0)), ("weibull", (2.0,)), ("pareto", (3.0,)),
    ("power", (0.5,)), ("triangular", (-1.0, 0.0, 2.0)), ("lognormal", (0.0, 0.25)),
    ("geometric", (0.3,)), ("logseries", (0.6,)), ("poisson", (3.0,)), ("binomial", (1, 0.3)),
    ("binomial", (20, 0.3)), ("negative_binomial", (5, 0.4)), ("wald", (1.0, 2.0)), ("f", (3, 4)),
    ("noncentral_chisquare", (3.0, 1.5)), ("noncentral_f", (3.0, 4.0, 1.0)), ("gamma", (0.7, 2.0)),
    ("standard_t", (4.0,)), ("beta", (2.0, 0.5)), ("vonmises", (0.5, 2.0)), ("integers", (3, 9)),
]  # fmt: skip


def test_single_draws_in_any_order_are_those_of_one_element(
    xp: ModuleType, on_host: None
) -> None:
    """Ever other parameters, too: some are made ahead, and others have come in between."""
    rng, other = xp.random.default_rng(9), xp.random.default_rng(9)
    for each in (rng, other):
        each.bit_generator.advance(2**64 - 50)  # positions go round
    order = random.Random(3)
    chosen = SINGLES
    for turn in range(900):
        if turn % 100 == 0:
            chosen = order.sample(SINGLES, order.choice([1, 2, 3, len(SINGLES)]))
        name, parameters = order.choice(chosen)
        if name == "exponential" and turn % 3:
            parameters = (1.0 / (turn + 1),)
        one = getattr(rng, name)(*parameters)
        few = np.asarray(getattr(other, name)(*parameters, size=1))
        np.testing.assert_allclose(one, few[0], rtol=1e-11, err_msg=f"{name}{parameters}")
        kinds = {"f": float, "i": np.int64 if name == "integers" else int}
        assert type(one) is kinds[few.dtype.kind], name
        assert rng.bit_generator.state == other.bit_generator.state
    # What was made ahead is of that key, and of those positions.
    state = rng.bit_generator.state
    expected = [rng.exponential(2.0) for _ in range(5)]
    rng.bit_generator.state = {"bit_generator": "Philox4x32", "state": {"key": 5, "position": 7}}
    assert not {rng.exponential(2.0) for _ in range(5)} & set(expected)
    rng.bit_generator.state = state
    assert [rng.exponential(2.0) for _ in range(5)] == expected


@pytest.mark.parametrize("names", [
    ["weibull", "poisson"], ["beta"], ["beta", "random", "geometric", "f"], ["laplace", "gamma"],
])  # fmt: skip
def test_single_draws_of_a_loop_are_those_of_one_element(
    xp: ModuleType, on_host: None, names: list[str]
) -> None:
    """Every round comes to positions at the same distance; now and then one comes in between."""
    rng, other = xp.random.default_rng(3), xp.random.default_rng(3)
    parameters = dict(SINGLES)
    for turn in range(200):
        for name in [*names, *(["random"] if turn in (90, 91, 150) else [])]:
            one = getattr(rng, name)(*parameters[name])
            few = np.asarray(getattr(other, name)(*parameters[name], size=1))
            np.testing.assert_allclose(one, few[0], rtol=1e-11, err_msg=name)


def _answer(method: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """What a call gives, as its type and shape; or raises."""
    try:
        found = method(*args, **named)
    except Exception as error:
        return type(error)
    return type(found) if np.ndim(found) == 0 else found.shape


ODD_CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("poisson", ((1, 2.0),), {}), ("poisson", (-1.0,), {}), ("poisson", (3.0, 2, 2), {}),
    ("poisson", (3.0,), {"lam": 3.0}), ("poisson", (), {"lam": 3.0, "size": None}),
    ("poisson", (), {}), ("poisson", (3.0, (2, 1)), {}), ("poisson", ("3",), {}),
    ("poisson", (3.0, -1), {}), ("poisson", (3.0, 2.5), {}), ("poisson", (3.0,), {"size": (1, 2)}),
    ("lognormal", (0.0, 1.0), {}), ("lognormal", (0.0, -0.0), {}), ("lognormal", (-0.0, 1), {}),
    ("lognormal", (), {"sigma": 0.25}), ("lognormal", (), {"sigma": -1}),
    ("binomial", (5, 0.5), {}), ("binomial", (5.5, 0.5), {}), ("binomial", (1, 2.0), {}),
    ("binomial", (1, 0.5), {}), ("binomial", (True, 0.5), {}), ("binomial", (5,), {}),
    ("geometric", (0.3,), {}), ("geometric", (0.0,), {}), ("geometric", (1.0,), {}),
    ("geometric", (), {"p": 0.3}), ("geometric", (), {"q": 0.3}), ("weibull", (0.0,), {}),
    ("beta", (2.0, 3.0), {}), ("beta", (2.0,), {"a": 2.0}), ("beta", (2.0,), {"b": 3.0}),
    ("hypergeometric", (5, 5, 3), {}), ("hypergeometric", (0, 5, 3), {}), ("zipf", (1.0,), {}),
    ("hypergeometric", (5, 5, 0), {}), ("logseries", (0.0,), {}), ("logseries", (0.5,), {}),
    ("standard_gamma", (2.0,), {"dtype": np.float64}), ("gamma", (2.0, np.float64(3)), {}),
    ("triangular", (0.0, 1.0, 2.0), {}), ("triangular", (2.0, 1.0, 0.0), {}),
]  # fmt: skip


@pytest.mark.parametrize("interface", ["default_rng", "RandomState"])
def test_single_draws_take_what_numpy_takes(
    xp: ModuleType, on_host: None, interface: str
) -> None:
    """At every one of several calls: what is known of earlier ones refuses nothing else."""
    for name, args, named in ODD_CALLS:
        ours, numpys = (getattr(each.random, interface)(1) for each in (xp, np))
        expected = _answer(getattr(numpys, name), *args, **named)
        for _ in range(4):
            found = _answer(getattr(ours, name), *args, **named)
            assert found == expected, (name, args, named)


def test_single_draws_of_threads_have_positions_of_their_own(
    xp: ModuleType, on_host: None
) -> None:
    rng = xp.random.default_rng(2)
    drawn: list[list[float]] = [[], [], []]

    def draw(found: list[float]) -> None:
        for _ in range(3000):
            found += [rng.random(), rng.normal(0, 1), rng.exponential(2.0)]

    threads = [threading.Thread(target=draw, args=(found,)) for found in drawn]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rng.bit_generator.state["state"]["position"] == 3 * 9000
    assert len({number for found in drawn for number in found}) == 3 * 9000


def test_functions_of_the_module_draw_single_numbers(
    xp: ModuleType, on_host: None
) -> None:
    state = xp.random.RandomState(4)
    expected = [state.random_sample(1)[0], state.normal(1, 2, 1)[0], state.standard_normal(1)[0]]
    state = xp.random.RandomState(4)
    single = [state.random_sample(), state.normal(1, 2), state.randn()]
    np.testing.assert_allclose(single, [float(each) for each in expected], rtol=1e-13)
    with pytest.raises(ValueError, match="scale < 0"):
        state.normal(0, -1)
    with pytest.raises(OverflowError):
        state.uniform(0, float("inf"))
    for wrong in ({"loc": 1, "scal": 2}, {"low": 1}, {"size": 2, "of": 3}):
        with pytest.raises(TypeError):
            state.normal(**wrong)
    with pytest.raises(TypeError):
        state.normal(1, loc=1)
    with pytest.raises(TypeError):
        state.normal(0, 1, 2, 3)
    with pytest.raises(TypeError):
        state.rand(size=3)
    named = [
        xp.random.RandomState(8).normal(scale=2.0, loc=1), xp.random.RandomState(8).normal(1, 2),
        xp.random.RandomState(8).normal(1, scale=2, size=None),
        float(xp.random.RandomState(8).normal(size=1, loc=1, scale=2)[0]),
    ]
    np.testing.assert_allclose(named, named[0], rtol=1e-13)
    shapes = [xp.random.uniform(size=3), xp.random.uniform(low=2, high=3, size=(2, 1))]
    assert [each.shape for each in shapes] == [(3,), (2, 1)]
    assert bool((shapes[1] >= 2).all())
    numpys = xp.random.RandomState(np.random.MT19937(7))
    assert numpys.random_sample() == np.random.RandomState(np.random.MT19937(7)).random_sample()
    before = xp.random.get_state()
    xp.random.seed(12)
    drawn = [xp.random.rand(), xp.random.randn(), xp.random.uniform(2, 3), xp.random.normal(5, 1)]
    xp.random.seed(12)
    arrays = [
        xp.random.rand(1), xp.random.randn(1), xp.random.uniform(2, 3, 1), xp.random.normal(5, 1, 1)
    ]
    np.testing.assert_allclose(drawn, [float(each[0]) for each in arrays], rtol=1e-13)
    xp.random.set_state(before)
    assert np.isnan(state.normal(float("nan"), 1.0))
    assert xp.random.uniform.__name__ == "uniform"


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


@pytest.mark.skipif(loading.load() is None, reason="the compiled part takes the steps")
def test_every_operation_of_a_formula_is_a_step() -> None:
    for name, row in DISTRIBUTIONS.items():
        count = row.formula.__code__.co_argcount - row.draws
        kinds = tuple(int if place in row.whole else float for place in range(count))
        if "float32" not in name:
            assert traced(row.formula, kinds, row.draws).draws == row.draws
