"""Distributions that are drawn until a number is accepted, and what is made of them: against exact
probabilities, the same bits on every device, NumPy's dtypes, shapes and odd parameters."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from clfuse.functions.random import distributions
from clfuse.functions.random.formulas import DISTRIBUTIONS
from clfuse.interpreter.rejection import DRAWN

pytestmark = pytest.mark.clfuse_only
Setting = Callable[..., None]
Array = npt.NDArray[Any]

SAMPLES = 20_000
LEAST_CHANCE = 1e-3
"""Of what is seen. Numbers are the same on every run, so it is no matter of luck."""

FEWEST = 8
"""Numbers that a cell of a chi-squared test has in the mean."""


@pytest.fixture(params=["cpu", "gpu"])
def way(request: pytest.FixtureRequest, setting: Setting) -> str:
    """The schedules."""
    setting(schedule=request.param, fallback="raise")
    return str(request.param)


@pytest.fixture
def by_kernels(setting: Setting) -> None:
    """NumPy draws nothing."""
    setting(fallback="raise")


@pytest.fixture
def on_host(setting: Setting) -> None:
    """Few numbers are made on the host, as outside of tests."""
    setting(host_us=50, build_after_ms=50)


# -- against exact probabilities ------------------------------------------------------------------


def exact(name: str, parameters: tuple[Any, ...]) -> Any:
    """SciPy's distribution of that name and those parameters of NumPy's."""
    stats = pytest.importorskip("scipy.stats")
    made: dict[str, Callable[..., Any]] = {
        "gamma": lambda a, scale: stats.gamma(a, scale=scale),
        "standard_gamma": stats.gamma, "chisquare": stats.chi2, "noncentral_chisquare": stats.ncx2,
        "f": stats.f, "noncentral_f": stats.ncf, "standard_t": stats.t, "beta": stats.beta,
        "wald": lambda mean, scale: stats.invgauss(mean / scale, scale=scale),
        "vonmises": lambda mu, kappa: stats.vonmises(kappa, loc=mu),
        "geometric": stats.geom, "logseries": stats.logser, "poisson": stats.poisson,
        "negative_binomial": stats.nbinom, "binomial": stats.binom, "zipf": stats.zipf,
        "hypergeometric": lambda good, bad, n: stats.hypergeom(good + bad, good, n),
    }  # fmt: skip
    return made[name](*parameters)


CONTINUOUS: dict[str, list[tuple[float, ...]]] = {
    "standard_gamma": [(0.05,), (0.4,), (1.0,), (1.7,), (40.0,), (1e5,)],
    "gamma": [(2.0, 3.0), (0.7, 0.1)],
    "chisquare": [(0.8,), (3.0,), (60.0,)],
    "noncentral_chisquare": [(0.5, 3.0), (3.0, 1.0), (2.0, 50.0)],
    "f": [(2.0, 3.0), (9.0, 0.8), (40.0, 60.0)],
    "noncentral_f": [(3.0, 9.0, 2.0), (1.5, 20.0, 8.0)],
    "standard_t": [(0.9,), (3.0,), (50.0,)],
    "beta": [(0.05, 0.2), (0.5, 0.5), (2.0, 3.0), (60.0, 0.8), (1e4, 2e4)],
    "wald": [(1.0, 1.0), (3.0, 0.4), (0.5, 60.0)],
    "vonmises": [(0.0, 1e-6), (0.0, 1.5), (0.0, 4e3)],
}

WHOLE: dict[str, list[tuple[Any, ...]]] = {
    "geometric": [(0.9,), (0.3,), (0.004,)],
    "logseries": [(0.05,), (0.6,), (0.995,)],
    "poisson": [(0.02,), (0.8,), (4.0,), (9.99,), (10.0,), (14.0,), (80.0,), (3e6,)],
    "negative_binomial": [(3.0, 0.5), (0.6, 0.2), (70.0, 0.9)],
    "binomial": [(1, 0.2), (7, 0.5), (12, 0.99), (40, 0.26), (60, 0.5), (900, 0.02), (5000, 0.8)],
    "hypergeometric": [(1, 1, 1), (5, 4, 3), (4, 700, 90), (60, 50, 40), (300, 900, 700)],
    "zipf": [(1.6,), (2.0,), (5.0,)],
}


def columns(xp: ModuleType, name: str, sets: list[tuple[Any, ...]]) -> Array:
    """A row of numbers for each set of parameters, in one draw."""
    given = [np.array(column)[:, None] for column in zip(*sets, strict=True)]
    drawn = getattr(xp.random.default_rng(2026), name)(*given, size=(len(sets), SAMPLES))
    assert drawn.dtype == (np.int64 if name in WHOLE else np.float64)
    return np.asarray(drawn)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_numbers_have_the_distribution_function(xp: ModuleType, name: str) -> None:
    stats = pytest.importorskip("scipy.stats")
    for parameters, row in zip(CONTINUOUS[name], columns(xp, name, CONTINUOUS[name]), strict=True):
        dist = exact(name, parameters)
        assert stats.kstest(row, dist.cdf).pvalue > LEAST_CHANCE, parameters
        check_moments(dist, row, parameters)


def check_moments(dist: Any, row: Array, parameters: tuple[Any, ...]) -> None:
    """Mean and variance, where the distribution has as many moments as their errors follow from."""
    mean, variance, excess = [float(each) for each in dist.stats(moments="mvk")]
    if not math.isfinite(mean + variance + excess) or variance == 0:
        return
    away = (row.mean() - mean) / math.sqrt(variance / len(row))
    assert abs(away) < 4, (parameters, "mean", away)
    away = (row.var() - variance) / (variance * math.sqrt(max(excess + 2, 0.01) / len(row)))
    assert abs(away) < 5, (parameters, "variance", away)


def cells(dist: Any, row: Array) -> tuple[Array, Array]:
    """How many numbers fall into each of some ranges, and how many should."""
    ends = np.unique([dist.ppf(q) for q in np.linspace(0.001, 0.999, 60)])
    chances = np.diff(dist.cdf(ends), prepend=0.0, append=1.0)
    seen = np.bincount(np.searchsorted(ends, row), minlength=len(chances))
    found, wanted = [0], [0.0]
    for count, chance in zip(seen, chances, strict=True):
        found[-1] += count
        wanted[-1] += chance * len(row)
        if wanted[-1] >= FEWEST:
            found.append(0)
            wanted.append(0.0)
    rest = found.pop(), wanted.pop()
    found[-1] += rest[0]
    wanted[-1] += rest[1]
    return np.array(found), np.array(wanted)


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_have_their_probabilities(xp: ModuleType, name: str) -> None:
    stats = pytest.importorskip("scipy.stats")
    for parameters, row in zip(WHOLE[name], columns(xp, name, WHOLE[name]), strict=True):
        dist = exact(name, parameters)
        seen, wanted = cells(dist, row)
        assert len(seen) > 1, parameters
        assert stats.chisquare(seen, wanted).pvalue > LEAST_CHANCE, parameters
        assert row.min() >= dist.support()[0]
        assert row.max() <= dist.support()[1]
        check_moments(dist, row, parameters)


def test_neighbours_and_draws_are_unrelated(xp: ModuleType) -> None:
    rng = xp.random.default_rng(8)
    for draw in (lambda: rng.gamma(0.6, size=SAMPLES), lambda: rng.poisson(33.0, SAMPLES)):
        one, other = [np.asarray(draw()).astype(float) for _ in range(2)]
        assert abs(np.corrcoef(one, other)[0, 1]) * math.sqrt(SAMPLES) < 4
        for distance in (1, 2, 8, 64):
            pairs = np.corrcoef(one[:-distance], one[distance:])[0, 1]
            assert abs(pairs) * math.sqrt(SAMPLES) < 4, distance


# -- the same numbers everywhere ------------------------------------------------------------------

COUNT = 3001


def spread(low: int, high: int, seed: int = 1) -> Array:
    """Parameters of very different size, from 2**low on, exactly the same ones everywhere."""
    rng = np.random.default_rng(seed)
    return np.ldexp(1 + rng.random(COUNT), rng.integers(low, high, COUNT))


RARE, OTHER = np.floor(spread(0, 13)), np.floor(spread(0, 13, 2))
BASIC: dict[str, tuple[Array, ...]] = {
    "gamma": (spread(-7, 20),),
    "poisson": (spread(-10, 26),),
    "binomial": (np.floor(spread(0, 23)), np.random.default_rng(3).random(COUNT)),
    "hypergeometric": (RARE, OTHER, np.floor((RARE + OTHER) * spread(-7, 0, 4) / 2)),
    "zipf": (1 + spread(-7, 4),),
    "vonmises": (np.zeros(COUNT), spread(-30, 20)),
}
"""Numbers that are drawn until one is accepted: all ways of all algorithms."""


def basic(xp: ModuleType) -> Iterator[tuple[str, Any]]:
    for name, parameters in BASIC.items():
        given = [each.astype(np.int64) for each in parameters]
        if name == "binomial":
            given[1] = parameters[1]  # type: ignore[assignment]
        elif name != "hypergeometric":
            given = list(parameters)
        yield name, getattr(xp.random.default_rng(77), name)(*map(xp.asarray, given))
    shape = xp.asarray(BASIC["gamma"][0].astype(np.float32))
    yield "float32", xp.random.default_rng(77).standard_gamma(shape, dtype=np.float32)


def test_every_device_accepts_the_same_numbers(xp: ModuleType, way: str) -> None:
    drawn = dict(basic(xp))
    angles = np.tan(np.asarray(drawn.pop("vonmises")) / 2)  # an arctangent may differ in a bit
    sums = {
        name: hashlib.sha256(np.asarray(numbers).tobytes()).hexdigest()[:8]
        for name, numbers in drawn.items()
    }
    assert sums == {
        "gamma": "ad351f53", "poisson": "925611c8", "binomial": "05480981",
        "hypergeometric": "cf5d15d1", "zipf": "1bc0eaf5", "float32": "b1bea0b9",
    }  # fmt: skip
    assert [f"{angle:.6f}" for angle in angles[:3]] == ["-0.015308", "0.003110", "-0.573195"]


def near(name: str, *parameters: Array, dtype: Any = np.float64) -> Array:
    """What NumPy makes of the first draw of seed 77, by formulas of its own."""
    import clfuse

    key = np.uint64(clfuse.random.Philox4x32(77).state["state"]["key"]).view(np.int64)
    counter = np.arange(COUNT), key, np.int64(0)
    return DRAWN[f"{name}_draw_{np.dtype(dtype)}"](
        *counter, *[each.astype(dtype) for each in parameters]
    )


def test_numpys_functions_accept_the_same_numbers(xp: ModuleType) -> None:
    drawn = {name: np.asarray(numbers) for name, numbers in basic(xp)}
    (shape,), (mean,), (trials, p) = BASIC["gamma"], BASIC["poisson"], BASIC["binomial"]
    np.testing.assert_allclose(drawn["gamma"], near("gamma", shape), rtol=1e-12)
    wide = near("gamma", shape, dtype=np.float32)
    np.testing.assert_allclose(drawn["float32"], wide, rtol=1e-4)
    np.testing.assert_array_equal(drawn["poisson"], near("poisson", mean))
    rarer = near("binomial", trials, np.minimum(p, 1 - p))
    np.testing.assert_array_equal(drawn["binomial"], np.where(p > 0.5, trials - rarer, rarer))
    np.testing.assert_allclose(drawn["zipf"], near("zipf", *BASIC["zipf"]), rtol=1e-11)
    half = np.tan(drawn["vonmises"] / 2)
    np.testing.assert_allclose(half, near("von_mises", BASIC["vonmises"][1]), rtol=1e-9)
    good, bad, sample = BASIC["hypergeometric"]
    part = np.minimum(sample, good + bad - sample)
    found = near("hypergeometric", np.minimum(good, bad), np.maximum(good, bad), part)
    found = np.where(good > bad, part - found, found)
    found = np.where(part < sample, good - found, found)
    np.testing.assert_array_equal(drawn["hypergeometric"], found)


def test_traced_functions_draw_new_numbers_at_every_call(xp: ModuleType) -> None:
    def draw(generator: Any, scale: Any) -> Any:
        return scale * generator.gamma(2.5, 1.0, 40) + generator.poisson(40.0, 40)

    rng, plain = xp.random.default_rng(5), xp.random.default_rng(5)
    traced = xp.jit(lambda scale: draw(rng, scale))
    scale = xp.asarray(3.0)
    for _ in range(3):
        np.testing.assert_allclose(np.asarray(traced(scale)), np.asarray(draw(plain, 3.0)), 1e-14)


# -- parameters -----------------------------------------------------------------------------------


def test_parameters_at_their_ends(xp: ModuleType, by_kernels: None) -> None:
    rng, nan, inf, most = xp.random.default_rng(4), np.nan, np.inf, np.iinfo(np.int64).max
    none = np.zeros(3, int)
    for drawn, wanted in (
        (rng.standard_gamma([0.0, nan, inf]), [0, nan, inf]), (rng.poisson([0.0]), [0]),
        (rng.binomial([9, 9, 0], [0.0, 1.0, 0.5]), [0, 9, 0]), (rng.zipf([1e9]), [1]),
        (rng.geometric([1.0, 1e-300]), [1, most]), (rng.logseries([0.0]), [1]),
        (rng.negative_binomial([5.0], 1.0), [0]), (rng.wald([nan], 1), [nan]),
        (rng.hypergeometric([0, 7, 7], [0, 0, 9], [0, 5, 16]), [0, 5, 7]),
        (rng.vonmises([1.0, 1.0, nan], [inf, nan, 1.0]), [1, nan, nan]),
        (rng.noncentral_chisquare([1.0, nan], [nan, 1.0]), [nan, nan]),
        (rng.standard_t([nan]), [nan]), (rng.beta([nan], [1.0]), [nan]),
    ):  # fmt: skip
        np.testing.assert_array_equal(np.asarray(drawn), wanted)
    p = np.array([0.5, 1e-15, 1 - 1e-15])
    for drawn, mean in (
        (rng.binomial(none + most, p), most * p), (rng.poisson([9.2e18, 1e12]), [9.2e18, 1e12]),
        (rng.standard_gamma([1e18, 1e12]), [1e18, 1e12]),
    ):  # fmt: skip
        away = np.asarray(drawn).astype(float) - mean
        assert (np.abs(away) < 6 * np.sqrt(mean) + 4096).all()
    tiny = np.asarray(rng.beta(np.full(300, 1e-200), np.full(300, 2e-200)))
    assert set(tiny.tolist()) == {0.0, 1.0}


def test_numpy_draws_nothing_to_check_parameters() -> None:
    """Before 2.1 it would look without end for a number of `zipf` with this parameter."""
    drawn = []

    def examiner(*given: Any) -> None:
        drawn.append(np.random.default_rng(1).zipf(*given))

    for parameter in (np.array([2000.0, 3.0]), np.zeros(0)):
        distributions._check(DISTRIBUTIONS["zipf"], examiner, [parameter])
    assert [each.size for each in drawn] == [0, 0]
    with pytest.raises(ValueError, match="a <= 1"):
        distributions._check(DISTRIBUTIONS["zipf"], examiner, [np.array([2000.0, 0.5])])


@pytest.mark.parametrize("count", [5, 6000])
def test_nothing_is_warned_of_at_the_ends(xp: ModuleType, on_host: None, count: int) -> None:
    """Few numbers are made on the host, where NumPy would warn; more are recorded."""
    rng = xp.random.default_rng(4)
    for drawn, wanted in (
        (rng.geometric(1.0, count), 1), (rng.logseries(0.0, count), 1),
        (rng.geometric(1e-310, count), np.iinfo(np.int64).max), (rng.standard_gamma(0.0, count), 0),
        (rng.f(2.0, 1e-300, count), np.inf), (rng.noncentral_f(2.0, 1e-300, 1.0, count), np.inf),
        (xp.abs(rng.standard_t(1e-300, count)), np.inf), (rng.beta(1.0, 1e-300, count), 1),
        (rng.binomial(7, 1.0, count), 7), (rng.negative_binomial(3, 1.0, count), 0),
    ):  # fmt: skip
        np.testing.assert_array_equal(np.asarray(drawn), wanted)
    assert rng.geometric(1.0) == rng.logseries(0.0) == rng.zipf(1e6) == 1


SHAPES = (
    "g.gamma(a([1.,2.]),a([[1.],[3.]]))|g.poisson(a([[1.],[30.]]),(3,2,4))|g.poisson(3.)"
    "|g.binomial(a([5,90]),.5)|g.binomial(9,a([.2,.7]),(2,2))|g.binomial(5.5,.5)|g.geometric(.3,())"
    "|g.hypergeometric(5,a([6,7]),3)|g.beta(a([.5,2.]),2)|g.standard_gamma(2,3,dtype='f4')"
    "|g.standard_gamma(2,dtype='f4')|g.dirichlet([1.,2.,.5])|g.dirichlet(a([1.,2.]),(3,2))"
    "|g.multinomial(9,[.2,.3,.5])|g.multinomial(a([9,4]),[.2,.8])|g.multinomial(9,[.2,.8],(2,3))"
    "|g.multinomial([[4],[7]],[[.2,.8],[.5,.5],[1.,0.]])|g.multinomial(3,[1.],2)"
    "|g.multivariate_hypergeometric([3,4,5],6)|g.multivariate_hypergeometric([3,4,5],6,(2,1))"
    "|g.multivariate_normal([0.,1.],[[2.,.3],[.3,1.]])|g.permuted(a([[1,2],[3,4]]),axis=0)"
    "|g.multivariate_normal(a([0.,1.]),a([[2.,.3],[.3,1.]]),(2,3),method='cholesky')|g.zipf(3.,0)"
    "|g.gamma(a([]))|g.poisson(a(np.float32(2)))|g.vonmises(0,[[1.]],(2,1,1))|g.f(2,a([3.,4.]),2)"
    "|r.poisson(a([1.,20.]))|r.binomial(10,.5,3)|r.standard_gamma(2.,(2,2))|r.multinomial(5,[.5,.5])"
    "|r.dirichlet([1.,2.],2)|r.hypergeometric(5,5,3,2)|r.logseries(.5)|r.multivariate_normal([0],[[1]])"
)


def test_shapes_and_dtypes_are_numpys(xp: ModuleType, on_host: None) -> None:
    for call in SHAPES.split("|"):
        wanted, drawn = [
            eval(call, {"g": m.random.default_rng(1), "r": m.random.RandomState(1), "a": m.array,
                        "np": np})
            for m in (np, xp)
        ]  # fmt: skip
        assert np.asarray(drawn).dtype == np.asarray(wanted).dtype, call
        assert np.shape(drawn) == np.shape(wanted), call
        assert (type(drawn) in (int, float)) == (type(wanted) in (int, float)), call


WRONG = (
    "poisson(-1)|poisson(nan)|poisson(1e19)|poisson(a([1,-1.]))|poisson(a([1,nan]))|binomial(-1,.5)"
    "|poisson(a([1,1e19]))|poisson('a')|poisson(1j)|binomial(5,1.5)|binomial(a([5.,6.]),.5)"
    "|binomial(a([5,-1]),.5)|binomial(a([5,6]),a([.5,2]))|binomial(nan,.5)|binomial(2**63,.5)"
    "|geometric(0)|geometric(nan)|geometric(a([.5,0]))|wald(0,1)|wald(1,a([1,-1.]))|zipf(1)"
    "|standard_gamma(-1)|standard_gamma(-0.)|standard_gamma(a([1,-0.]))|gamma(1,a([1,-1.]))"
    "|standard_gamma(2,3,dtype='f2')|chisquare(a([1,0]))|beta(a([1.,0]),1)|f(1,a([0,1.]))"
    "|standard_t(0)|dirichlet([-1,1])|dirichlet([[1,2]])|dirichlet(5)|noncentral_chisquare(1,-1)"
    "|noncentral_f(1,1,a([0,-1.]))|negative_binomial(a([3,0.]),.5)|negative_binomial(a([nan,1]),.5)"
    "|negative_binomial(3,a([.5,0]))|negative_binomial(a([1e300,1]),.5)|vonmises(0,a([1.,-1]))"
    "|logseries(1)|logseries(a([.5,1.]))|zipf(a([2.,nan]))|hypergeometric(5,5,11)|permuted(5)"
    "|hypergeometric(a([5,-1]),5,3)|hypergeometric(a([5,6]),5,a([3,12]))|hypergeometric(10**9,5,3)"
    "|hypergeometric(5,a([5,-1]),3)|hypergeometric(a([5.,6.]),5,3)|multinomial(-1,[.5,.5])"
    "|multinomial(5,[.5,.6,.1])|multinomial(5,[.5,-.1])|multinomial(5,.5)|multinomial(5,[])"
    "|multinomial(a([5,-1]),[.5,.5])|multinomial(a([5,6,7]),[.5,.5],size=2)"
    "|multivariate_hypergeometric([3,4],8)|multivariate_hypergeometric([3,-4],1)"
    "|multivariate_hypergeometric([3,4],1,method='x')|multivariate_normal([[0,0]],[[1,0],[0,1]])"
    "|multivariate_normal([0],[[1,0],[0,1]])|multivariate_normal([0,0],[[1,2],[2,1]])"
    "|multivariate_normal([0,0],[[1,2],[2,1]],check_valid='raise')|permuted(a([1,2,3]),axis=1)"
    "|permuted(a([1,2,3]),out=[1])|choice(5,3,replace=False,p=[.5,.5,0,0,0])|poisson(2.,-1)"
    "|choice(5,6,replace=False,p=[.2]*5)|gamma(a([1.,2.]),size=3)"
)


@pytest.mark.parametrize("module", ["numpy", "clfuse"])
def test_wrong_parameters_are_refused_as_by_numpy(xp: ModuleType, module: str) -> None:
    arrays = np.array if module == "numpy" else xp.asarray
    for call in WRONG.split("|"):
        errors = []
        for m, a in ((np, np.array), (xp, arrays)):
            names = {"g": m.random.default_rng(1), "a": a, "nan": np.nan}
            with pytest.raises((ValueError, TypeError, OverflowError, RuntimeWarning)) as found:
                eval(f"g.{call}", names)
            errors.append((found.type, str(found.value)))
        if "shape mismatch" in errors[0][1] and "gamma" in call:  # worded otherwise
            errors = [error[:1] for error in errors]  # type: ignore[misc]
        if errors[1][0] is not getattr(xp, "DeviceDtypeError", None):
            assert errors[0] == errors[1], call


def test_older_interface_refuses_what_numpys_does(xp: ModuleType, on_host: None) -> None:
    for call in (
        "hypergeometric(5,5,0)", "dirichlet([0.,1.])", "multinomial([3,4],[.5,.5])", "zipf(1)",
        "hypergeometric(5,5,11,4)", "poisson(-1,3)", "binomial(3,2,4)", "standard_gamma(-1.)",
        "multinomial(5,[.5,.6,.1])", "poisson([1,-1])", "dirichlet([-1.,1.],2)",
    ):  # fmt: skip
        errors = []
        for m in (np, xp):
            with pytest.raises((ValueError, TypeError)) as found:
                eval(f"r.{call}", {"r": m.random.RandomState(1)})
            errors.append((found.type, str(found.value)))
        assert errors[0] == errors[1], call
    one, other = xp.random.RandomState(9), xp.random.default_rng(9)
    for draw in (
        lambda r: r.poisson(30.0, 5), lambda r: r.gamma(0.3, 2.0, 5), lambda r: r.binomial(9, 0.4),
        lambda r: r.multinomial(9, [0.2, 0.8], 2), lambda r: r.logseries(0.4), lambda r: r.f(2, 3),
    ):  # fmt: skip
        assert np.asarray(draw(one)).tolist() == np.asarray(draw(other)).tolist()


def test_whole_numbers_want_double_precision(
    xp: ModuleType, setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    from clfuse.arrays import handle

    setting(fp64="downcast")
    monkeypatch.setattr(handle, "lacks_fp64", lambda: True)
    rng = xp.random.default_rng(1)
    before = xp.stats()["fallbacks"]
    single = [rng.gamma(2.0, 3.0, 500), rng.beta(2.0, 0.5, 500), rng.standard_t(3.0, 500)]
    xp.evaluate(*single)
    assert xp.stats()["fallbacks"] == before
    for numbers in single:
        assert numbers.dtype == np.float32
        assert np.isfinite(np.asarray(numbers)).all()
    setting(fallback="allow")
    assert abs(float(rng.poisson(30.0, 500).mean()) - 30) < 2
    assert np.asarray(rng.multinomial(9, [0.5, 0.5], 3)).sum(1).tolist() == [9] * 3
    assert xp.stats()["fallbacks"] == before + 2


# -- several numbers together ---------------------------------------------------------------------


def test_parts_of_one_have_their_distribution(xp: ModuleType, by_kernels: None) -> None:
    stats = pytest.importorskip("scipy.stats")
    for alpha in ([2.0, 3.0, 5.0], [0.02, 0.1, 1.5], [0.0, 1.0, 2.0]):
        drawn = np.asarray(xp.random.default_rng(3).dirichlet(alpha, SAMPLES))
        np.testing.assert_allclose(drawn.sum(1), 1, rtol=1e-14)
        for place, shape in enumerate(alpha):
            if shape:
                dist = stats.beta(shape, sum(alpha) - shape)
                assert stats.kstest(drawn[:, place], dist.cdf).pvalue > LEAST_CHANCE, alpha
            else:
                assert not drawn[:, place].any()


def test_outcomes_of_many_trials_add_up(xp: ModuleType, by_kernels: None) -> None:
    stats = pytest.importorskip("scipy.stats")
    chances = np.array([0.1, 0.0, 0.25, 0.05, 0.3, 0.1, 0.2])
    drawn = np.asarray(xp.random.default_rng(3).multinomial(40, chances, SAMPLES))
    assert (drawn.sum(1) == 40).all()
    for place, p in enumerate(chances):
        if p:
            seen, wanted = cells(stats.binom(40, p), drawn[:, place])
            assert stats.chisquare(seen, wanted).pvalue > LEAST_CHANCE, place
    between = np.cov(drawn.T) / 40
    exactly = np.diag(chances) - np.outer(chances, chances)
    assert np.abs(between - exactly).max() < 6 * 0.3 / math.sqrt(SAMPLES)


def test_colors_of_a_sample_add_up(xp: ModuleType, by_kernels: None) -> None:
    stats = pytest.importorskip("scipy.stats")
    colors = [30, 0, 50, 9, 40]
    drawn = np.asarray(xp.random.default_rng(3).multivariate_hypergeometric(colors, 60, SAMPLES))
    assert (drawn.sum(1) == 60).all()
    assert (drawn <= colors).all()
    for place, count in enumerate(colors):
        if count:
            seen, wanted = cells(stats.hypergeom(129, count, 60), drawn[:, place])
            assert stats.chisquare(seen, wanted).pvalue > LEAST_CHANCE, place


@pytest.mark.parametrize("method", ["svd", "eigh", "cholesky"])
def test_normal_vectors_have_their_covariance(
    xp: ModuleType, by_kernels: None, method: str
) -> None:
    stats = pytest.importorskip("scipy.stats")
    mean = np.array([1.0, -2.0, 0.5])
    cov = np.array([[4, 1.5, 0.3], [1.5, 2, -0.4], [0.3, -0.4, 1]])
    rng = xp.random.default_rng(3)
    drawn = np.asarray(rng.multivariate_normal(mean, cov, SAMPLES, method=method))
    plain = np.linalg.solve(np.linalg.cholesky(cov), (drawn - mean).T)
    for row in plain:
        assert stats.kstest(row, "norm").pvalue > LEAST_CHANCE
    assert np.abs(np.cov(plain) - np.eye(3)).max() < 5 / math.sqrt(SAMPLES)


@pytest.mark.parametrize("shape", [(3, 40), (90, 64)], ids=["few", "many"])
def test_slices_are_permuted_each_in_its_own_order(
    xp: ModuleType, by_kernels: None, shape: tuple[int, int]
) -> None:
    rows = np.arange(math.prod(shape)).reshape(shape)
    for axis in (0, 1, -1):
        drawn = np.asarray(xp.random.default_rng(3).permuted(xp.asarray(rows), axis=axis))
        np.testing.assert_array_equal(np.sort(drawn, axis), rows)
        if shape[axis] > 9:
            other = np.moveaxis(drawn - rows, axis, 0)
            assert (other[:, 1:] != other[:, :1]).any(0).all()
    whole = np.asarray(xp.random.default_rng(3).permuted(xp.asarray(rows)))
    assert whole.shape == shape
    np.testing.assert_array_equal(np.sort(whole, axis=None), rows.ravel())
    kept = xp.asarray(rows)
    assert xp.random.default_rng(3).permuted(kept, axis=1, out=kept) is kept
    np.testing.assert_array_equal(np.sort(np.asarray(kept), 1), rows)
    assert (np.asarray(kept) != rows).any()


def test_every_place_of_a_permuted_slice_is_as_likely(xp: ModuleType, by_kernels: None) -> None:
    stats = pytest.importorskip("scipy.stats")
    rows = xp.asarray(np.tile(np.arange(6), (SAMPLES, 1)))
    drawn = np.asarray(xp.random.default_rng(3).permuted(rows, axis=1))
    for place in range(6):
        assert stats.chisquare(np.bincount(drawn[:, place])).pvalue > LEAST_CHANCE


def test_choice_once_and_with_chances_goes_one_by_one(xp: ModuleType, on_host: None) -> None:
    stats = pytest.importorskip("scipy.stats")
    p, rng = np.array([0.1, 0.2, 0.0, 0.7]), xp.random.default_rng(3)
    drawn = np.array([rng.choice(4, 2, replace=False, p=p) for _ in range(300)])
    assert (drawn[:, 0] != drawn[:, 1]).all()
    pairs = [(a, b) for a in (0, 1, 3) for b in (0, 1, 3) if a != b]
    seen = [(drawn == pair).all(1).sum() for pair in pairs]
    wanted = [p[a] * p[b] / (1 - p[a]) * len(drawn) for a, b in pairs]
    assert stats.chisquare(seen, wanted).pvalue > LEAST_CHANCE
    assert rng.choice(xp.arange(4) * 10, (3, 1), replace=False, p=p).shape == (3, 1)
