"""`clfuse.random`: a number is a function of seed, position and element, made where it is used."""

from __future__ import annotations

import copy
import gc
import hashlib
import math
import pickle
import threading
from collections.abc import Callable
from statistics import NormalDist
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.fuzz.functions import uniform_of, words

pytestmark = pytest.mark.clfuse_only
Setting = Callable[..., None]
Array = npt.NDArray[Any]


def expected_bits(rng: Any, count: int) -> tuple[Array, Array]:
    """What the next draw of `rng` is made of."""
    state = rng.bit_generator.state["state"]
    return words(state["key"], state["position"], count)


@pytest.fixture(params=["cpu", "gpu", "off"])
def way(request: pytest.FixtureRequest, setting: Setting) -> str:
    """The schedules, and one kernel per operation."""
    if request.param == "off":
        setting(fusion="off")
    else:
        setting(schedule=request.param)
    return str(request.param)


# -- the numbers -----------------------------------------------------------------------------------


def test_uniform_numbers_are_bits_of_seed_position_and_element(xp: ModuleType,
                                                                   way: str) -> None:
    rng = xp.random.default_rng(12)
    for shape in ((), (0,), (1,), (7,), (3, 0), (5, 1, 13), 1001, (2, 8), np.int64(3), [2, 2]):
        first, _ = expected_bits(rng, int(np.prod(shape)))
        drawn = rng.random(shape)
        assert drawn.dtype == np.float64
        assert drawn.shape == np.empty(shape).shape
        assert (np.asarray(drawn).ravel() == uniform_of(first)).all()
    first, _ = expected_bits(rng, 1003)
    single = rng.random(1003, dtype=np.float32)
    assert single.dtype == np.float32
    assert (np.asarray(single) == uniform_of(first, 24)).all()
    # Whatever reads it, in whichever order: sliced, turned, reversed, joined, reduced.
    if way == "off":
        return
    first, _ = expected_bits(rng, 6 * 35)
    drawn, wanted = rng.random((6, 35)), uniform_of(first).reshape(6, 35)
    for look in (lambda x: x.T[::-1, 1:], lambda x: x[:, ::-3] + x[:, ::3],
                 lambda x: x[:, None, 4:9] - x[::-1, 4:9], lambda x: x.max(0),
                 lambda x: np.concatenate([x[2], x.reshape(7, 30)[:, 1]])):
        assert (np.asarray(look(drawn)) == look(wanted)).all()


def test_numbers_do_not_depend_on_vectors_or_work_items(xp: ModuleType, setting: Setting) -> None:
    reference = uniform_of(words(xp.random.Philox4x32(1).state["state"]["key"], 0, 70_001)[0])
    for options in ({"vector_bytes": 8}, {"vector_bytes": 16}, {"vector_bytes": 32},
                    {"work_items": 1}, {"work_items": 7}):
        setting(**options)
        assert (np.asarray(xp.random.default_rng(1).random(70_001)) == reference).all(), options


def test_normal_numbers_lie_where_the_inverse_distribution_says(xp: ModuleType, way: str) -> None:
    rng = xp.random.default_rng(5)
    for dtype, ulps in ((np.float64, 16), (np.float32, 16)):
        first, _ = expected_bits(rng, 4000)
        drawn = np.asarray(rng.standard_normal(4000, dtype=dtype))
        assert drawn.dtype == dtype
        whole = first.view(np.int64) >> 11
        tail = ((2**52 - 1 - np.where(whole < 0, ~whole, whole)) + 0.5) / 2.0**53
        size = np.array([-NormalDist().inv_cdf(t) for t in tail])
        wanted = np.where(whole < 0, -size, size)
        # Near 0 the distance to the middle, not the number, is what has so many digits.
        error = np.abs(drawn - wanted) / np.maximum(np.abs(wanted), 1e-3 if ulps else 0)
        assert error.max() < ulps * np.finfo(dtype).eps
    assert (np.asarray(rng.normal([1.0, -2.0], [[0.0], [0.0], [0.0]])) == [[1, -2]] * 3).all()


def test_every_device_and_every_version_draws_the_same_bits(xp: ModuleType, way: str) -> None:
    rng = xp.random.default_rng(2024)
    drawn = (rng.standard_normal(100_001), rng.standard_normal(100_001, np.float32),
             rng.random(1001), rng.integers(-5, 2**40, 1001))
    xp.evaluate(*drawn)
    sums = [hashlib.sha256(np.asarray(numbers).tobytes()).hexdigest()[:12] for numbers in drawn]
    assert sums == ["dbd1efcbaff8", "9d78daca870e", "6f5cc10d6710", "4252ac27f41e"]
    assert [f"{z:.6f}" for z in np.asarray(drawn[0])[:3]] == ["0.498784", "-0.725665", "-0.377277"]


INTEGER_RANGES = [
    (0, 10, np.int64), (-5, 7, np.int8), (0, 2, np.bool_), (250, 256, np.uint8),
    (-(2**31), 2**31, np.int32), (3, 4, np.int64), (0, 2**32 + 1, np.uint64),
    (-(2**63), 2**63, np.int64), (-(2**63), 2**62 + 12345, np.int64), (0, 2**64, np.uint64),
    (1, 2**64 - 2, np.uint64),
]


@pytest.mark.parametrize("schedule", ["cpu", "gpu"])
def test_integers_are_the_upper_part_of_a_product(xp: ModuleType, setting: Setting,
                                                  schedule: str) -> None:
    setting(schedule=schedule)
    rng = xp.random.default_rng(77)
    cases = []
    for low, high, dtype in INTEGER_RANGES:
        bits = expected_bits(rng, 333)
        alone = copy.deepcopy(rng).integers(low, high - 1, dtype=dtype, endpoint=True)
        assert type(alone) is dtype
        cases.append((low, high, dtype, bits, alone, rng.integers(low, high, 333, dtype)))
    xp.evaluate(*[drawn for *_, drawn in cases])
    for low, high, dtype, (first, more), alone, drawn in cases:
        count = high - low
        if count == 2**64:
            wanted = [low + int(a) for a in first]
        elif count <= 2**32:
            wanted = [low + (int(a) * count >> 64) for a in first]
        else:
            wanted = [low + ((int(a) << 64 | int(b)) * count >> 128)
                      for a, b in zip(first, more, strict=True)]
        assert drawn.dtype == dtype
        assert drawn.tolist() == wanted, (low, high)
        assert alone == wanted[0]


def test_integers_take_arrays_of_bounds(xp: ModuleType) -> None:
    rng = xp.random.default_rng(78)
    low = np.array([[0], [-5], [-(2**63)], [7]])
    high = np.array([10, 2**40, 2**63 - 1])
    first, more = expected_bits(rng, 24)
    drawn = rng.integers(xp.asarray(low), high, (2, 4, 3), endpoint=True)
    lows, highs = np.broadcast_to(low, (2, 4, 3)), np.broadcast_to(high, (2, 4, 3))
    wanted = [int(a) + ((int(one) << 64 | int(two)) * (int(b) - int(a) + 1) >> 128)
              for a, b, one, two in zip(lows.flat, highs.flat, first, more, strict=True)]
    assert drawn.dtype == np.int64
    assert np.asarray(drawn).ravel().tolist() == wanted
    small = xp.random.RandomState(1).randint([1, 250], 256, (1000, 2), np.uint8)
    assert small.dtype == np.uint8
    assert (np.asarray(small).min(0) == [1, 250]).all()
    assert (np.asarray(small).max(0) == 255).all()
    assert rng.integers([], 5).shape == (0,)
    for call in (lambda r: r.integers([1, 9], 5), lambda r: r.integers([1, 2], [5, 6, 7]),
                 lambda r: r.integers([1, 2], 5, 3), lambda r: r.integers([0, -1], 5, dtype="u1")):
        wanted_error = failure(call, np.random.default_rng(1))
        assert failure(call, rng)[0] is wanted_error[0] is not type(None), wanted_error


# -- where they are made ---------------------------------------------------------------------------


def test_estimating_pi_needs_no_memory_and_one_plan(xp: ModuleType) -> None:
    rng = xp.random.default_rng(3)
    count = 1_000_000

    def estimate() -> float:
        return float(4 * (rng.random(count) ** 2 + rng.random(count) ** 2 < 1).mean())

    assert abs(estimate() - math.pi) < 5 * 1.64 / math.sqrt(count)
    assert abs(rng.random() - 0.5) <= 0.5  # another position in between changes nothing
    from clfuse.counters import reset_peak

    reset_peak()
    before = xp.stats()
    estimates = [estimate() for _ in range(4)]
    after = xp.stats()
    assert len(set(estimates)) == 4
    assert after["kernels_launched"] - before["kernels_launched"] <= 2 * 4  # two stages
    for name in ("plans_made", "programs_built", "fallbacks", "bytes_to_device"):
        assert after[name] == before[name], name
    assert after["device_bytes_peak"] - before["device_bytes_now"] < 100_000
    plan = xp.explain((rng.random(count) < 0.5).sum())
    assert sum(kernel.nbytes for kernel in plan.kernels) < 100_000


def test_a_draw_read_again_has_its_numbers_and_may_be_stored(
        xp: ModuleType) -> None:
    rng = xp.random.default_rng(8)
    first, _ = expected_bits(rng, 100_000)
    x = rng.random(100_000)
    gc.collect()
    before = xp.stats()["device_bytes_now"]
    means = [float(x.mean())]
    assert xp.stats()["device_bytes_now"] - before < x.nbytes  # once: not stored
    means += [float(x.mean()) for _ in range(2)]
    assert xp.stats()["device_bytes_now"] - before >= x.nbytes
    assert means == [means[0]] * 3
    assert (np.asarray(x) == uniform_of(first)).all()
    x[3:10] = 2
    assert float(x.max()) == 2


# -- one number ------------------------------------------------------------------------------------


def test_numbers_drawn_one_by_one_each_have_their_position(xp: ModuleType) -> None:
    alone, many = xp.random.default_rng(21), xp.random.default_rng(21)
    wanted = [float(many.random(1)[0]) for _ in range(4)]
    many.bit_generator.advance(600)
    wanted.append(float(many.random(1)[0]))
    row = [alone.random() for _ in range(605)]  # made ahead in blocks
    assert row[:4] + row[-1:] == wanted
    assert len(set(row)) == 605
    assert alone.bit_generator.state == many.bit_generator.state
    assert alone.weibull(0) == many.weibull(0, 1)[0] == 0


# -- parameters ------------------------------------------------------------------------------------

CALLS = r"""
g.random(-1)
g.random(2.5)
g.random((2,-1))
g.random(True)
g.random('a')
g.random(dtype=int)
g.random(3,'f2')
g.random(3,out=e(4))
g.random(out=e((4,4))[::2])
g.random(out=e(4,'f4'))
g.random(3,'f4',e(3))
g.standard_normal(3,'i4')
g.normal(0,-1)
g.normal(0,-1,5)
g.normal(size=3.0)
g.normal([1,2],size=(3,3))
g.normal('a')
g.normal(1j)
g.normal(a([1j]))
g.normal(0,a([1.,-0.]))
g.normal(a([[0.,1.]]),a([1.,-1.]),(2,2))
g.normal(a([1.,2.]),a([1.,2.,3.]))
g.normal(loc=a([1.,2.]),scale=[1,-2])
g.exponential(-1)
g.exponential(-0.0)
g.exponential([-0.0,1])
g.uniform(2,1)
g.uniform(0,float('inf'))
g.uniform(a([1.,2.]),[0,3])
g.uniform(a([1.,2.]),float('inf'))
g.lognormal(0,-1)
g.rayleigh(-1)
g.rayleigh(a([-1.]))
g.weibull(-1)
g.power(0)
g.power(a([1.,0.]))
g.pareto(0)
g.pareto(a([0.,1.]),2)
g.triangular(1,0,2)
g.triangular(1,1,1)
g.triangular(0,3,2)
g.triangular(0,a([3.]),2)
g.triangular(0,0,a([2.,0.]))
g.binomial(1,1.5)
g.binomial(1,float('nan'))
g.binomial(1,a([0.5,2.]))
g.integers(0)
g.integers(3,2)
g.integers(0,300,dtype='u1')
g.integers(-1,2,dtype='u4',size=4)
g.integers(0,2**64+1,dtype='u8')
g.integers(5,dtype='f8')
g.integers([1,2],[5,2])
g.integers(5,size=-1)
g.choice(0)
g.choice(-1)
g.choice([])
g.choice(2.5)
g.choice(5,3,p=[.5,.5])
g.choice(5,6,replace=False)
g.random(2,3)
g.nonsense()
g.standard_gamma(-1)
"""


def failure(call: Callable[..., Any], *arguments: Any) -> tuple[type, str]:
    """The error that a call raises, and the beginning of its message."""
    try:
        call(*arguments)
    except Exception as error:
        return type(error), str(error)[:60]
    return type(None), ""


def test_generators_count_as_numpys(xp: ModuleType) -> None:
    for made in (xp.random.default_rng(3), xp.random.Generator(np.random.PCG64(3))):
        assert isinstance(made, np.random.Generator)
        assert not isinstance(made, np.random.RandomState)
        assert xp.random.default_rng(made) is made
    assert isinstance(xp.random.RandomState(3), np.random.RandomState)
    assert isinstance(xp.random.RandomState(3), xp.random.RandomState)


def test_errors_are_numpys(xp: ModuleType) -> None:
    for line in CALLS.split("\n")[1:-1]:
        wanted, actual = [
            failure(eval, line, {"g": m.random.default_rng(1), "a": m.array, "e": m.empty})
            for m in (np, xp)]
        if actual[0] is getattr(xp, "DeviceDtypeError", None):
            continue  # an array of doubles on a device that has none
        if line in ("g.random(2.5)", "g.random('a')", "g.normal(size=3.0)", "g.nonsense()",
                    "g.random(2,3)", "g.normal('a')", "g.normal(a([1j]))",
                    "g.normal([1,2],size=(3,3))", "g.normal(a([1.,2.]),a([1.,2.,3.]))",
                    "g.random(out=e((4,4))[::2])"):
            wanted, actual = wanted[:1], actual[:1]  # worded otherwise
        assert actual == wanted, line
        assert wanted[0] is not type(None), line


def test_parameters_broadcast_as_in_numpy(xp: ModuleType) -> None:
    rng, numpys = xp.random.default_rng(1), np.random.default_rng(1)
    column, row = np.arange(3.0)[:, None], np.array([0.5, 2.0])
    for make in (lambda g, a: g.normal(a(column), a(row)),
                 lambda g, a: g.normal(a(column), 1, (2, 3, 4)),
                 lambda g, a: g.uniform(a(row), 7, size=(5, 2)), lambda g, a: g.normal(a(1.0), 2),
                 lambda g, a: g.exponential(a(row[:0])), lambda g, a: g.normal(a(np.float32(2)), 1),
                 lambda g, a: g.binomial(1, a(row / 2)), lambda g, a: g.normal([[1]], [1, 2]),
                 lambda g, a: g.integers(a([1, 5]), 9), lambda g, a: g.exponential(2, ())):
        wanted = np.asarray(make(numpys, np.array))
        drawn = np.asarray(make(rng, xp.array))
        assert (drawn.shape, drawn.dtype) == (wanted.shape, wanted.dtype)
    # A lazy location stays lazy, and is not asked for its value.
    noise = xp.random.default_rng(4).normal(size=50)
    shifted = xp.random.default_rng(4).normal(xp.arange(50.0).sum() * xp.ones(50), 1.0)
    np.testing.assert_array_equal(np.asarray(shifted), np.asarray(noise) + 1225)


def test_out_is_filled(xp: ModuleType) -> None:
    for dtype in (np.float64, np.float32):
        wanted = np.asarray(xp.random.default_rng(2).standard_normal((3, 4), dtype))
        for module in (xp, np):
            out = module.zeros((3, 4), dtype)
            assert xp.random.default_rng(2).standard_normal(out=out, dtype=dtype) is out
            assert (np.asarray(out) == wanted).all()
    base = xp.zeros(10)
    xp.random.default_rng(2).random(out=base[2:5], size=3)
    assert (np.asarray(base) != 0).tolist() == [False] * 2 + [True] * 3 + [False] * 5


def test_float32_stands_for_float64_where_that_is_asked_for(
        xp: ModuleType, setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    from clfuse.arrays import handle

    setting(fp64="downcast")
    monkeypatch.setattr(handle, "lacks_fp64", lambda: True)
    rng = xp.random.default_rng(1)
    out = xp.empty(100)
    drawn = [rng.random(100), rng.normal(2, xp.ones(100)), rng.laplace(size=100),
             rng.weibull(2.0, 100), rng.random(out=out)]
    xp.evaluate(*drawn)
    for numbers in drawn:
        assert numbers.dtype == np.float32
        assert np.isfinite(np.asarray(numbers)).all()


# -- statistics ------------------------------------------------------------------------------------

SAMPLES = 200_000


def chi_squared(uniform: Array, cells: int = 128) -> float:
    """How far the counts are from even, in standard deviations of chi-squared."""
    counts = np.bincount(np.clip((uniform * cells).astype(int), 0, cells - 1), minlength=cells)
    mean = len(uniform) / cells
    return (((counts - mean) ** 2).sum() / mean - (cells - 1)) / math.sqrt(2 * (cells - 1))


def normal_cdf(x: Array) -> Array:
    return np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in x])


DISTRIBUTIONS: list[tuple[str, tuple[float, ...], Callable[[Array], Array]]] = [
    ("random", (), lambda x: x),
    ("uniform", (-2, 6), lambda x: (x + 2) / 8),
    ("standard_normal", (), normal_cdf),
    ("normal", (3, 2), lambda x: normal_cdf((x - 3) / 2)),
    ("lognormal", (0.5, 1.5), lambda x: normal_cdf((np.log(x) - 0.5) / 1.5)),
    ("standard_exponential", (), lambda x: -np.expm1(-x)),
    ("exponential", (3,), lambda x: -np.expm1(-x / 3)),
    ("laplace", (1, 2), lambda x: 0.5 + 0.5 * np.sign(x - 1) * -np.expm1(-np.abs(x - 1) / 2)),
    ("logistic", (1, 2), lambda x: 1 / (1 + np.exp(-(x - 1) / 2))),
    ("gumbel", (1, 2), lambda x: np.exp(-np.exp(-(x - 1) / 2))),
    ("rayleigh", (2,), lambda x: -np.expm1(-(x**2) / 8)),
    ("weibull", (1.5,), lambda x: -np.expm1(-(x**1.5))),
    ("pareto", (3,), lambda x: 1 - (1 + x) ** -3.0),
    ("power", (2.5,), lambda x: x**2.5),
    ("triangular", (0, 1, 4), lambda x: np.where(x < 1, x**2 / 4, 1 - (4 - x) ** 2 / 12)),
    ("standard_cauchy", (), lambda x: 0.5 + np.arctan(x) / np.pi),
]


def test_distributions_have_numpys_distribution_functions(xp: ModuleType) -> None:
    rng, numpys = xp.random.default_rng(99), np.random.default_rng(99)
    single = xp.random.default_rng(99)
    drawn = [getattr(rng, name)(*parameters, size=SAMPLES)
             for name, parameters, _ in DISTRIBUTIONS]
    ones = rng.binomial(1, 0.3, SAMPLES)
    dice = rng.integers(1, 7, SAMPLES)
    xp.evaluate(*drawn, ones, dice)
    for (name, parameters, cdf), numbers in zip(DISTRIBUTIONS, drawn, strict=True):
        one = getattr(single, name)(*parameters)
        assert type(one) is float
        np.testing.assert_allclose(one, np.asarray(numbers)[0], rtol=1e-13, err_msg=name)
        uniform = cdf(np.asarray(numbers))
        assert uniform.min() >= 0
        assert uniform.max() <= 1
        assert abs(chi_squared(uniform)) < 5, name
        reference = getattr(numpys, name)(*parameters, size=SAMPLES)
        assert abs(chi_squared(cdf(reference))) < 5, f"NumPy's {name}: the test is wrong"
        # Neighbours, and elements far apart.
        for distance in (1, 2, 8, 64, 1000):
            pairs = np.corrcoef(uniform[:-distance], uniform[distance:])[0, 1]
            assert abs(pairs) * math.sqrt(SAMPLES) < 5, (name, distance)
    assert set(ones.tolist()) == {0, 1}
    assert abs(np.asarray(ones).mean() - 0.3) < 5 * math.sqrt(0.21 / SAMPLES)
    assert type(single.binomial(1, 0.3)) is int
    faces = np.bincount(np.asarray(dice), minlength=7)
    assert faces[0] == 0
    assert abs(((faces[1:] - SAMPLES / 6) ** 2).sum() / (SAMPLES / 6) - 5) < 5 * math.sqrt(10)


def test_every_bit_is_even_and_streams_are_unrelated(xp: ModuleType) -> None:
    def bits(rng: Any) -> Array:
        return np.asarray(rng.integers(0, 2**64, SAMPLES // 4, np.uint64))

    rng = xp.random.default_rng(0)
    children = xp.random.default_rng(0).spawn(2)
    streams = [bits(rng), bits(rng), bits(xp.random.default_rng(1)), *map(bits, children)]
    count = len(streams[0])
    for number, one in enumerate(streams):
        planes = np.unpackbits(one.view(np.uint8)).reshape(count, 64)
        bound = 6 * math.sqrt(count) / 2
        assert np.abs(planes.sum(0, dtype=int) - count / 2).max() < bound
        for other in (*streams[:number], np.roll(one, 1)):
            differing = np.unpackbits((one ^ other).view(np.uint8)).reshape(count, 64)
            assert np.abs(differing.sum(0, dtype=int) - count / 2).max() < bound


# -- state -----------------------------------------------------------------------------------------


def test_a_generator_can_be_saved_copied_spawned_and_seeded(xp: ModuleType) -> None:
    random = xp.random
    rng = random.default_rng(42)
    rng.random(10), rng.poisson(2.0, 3), rng.normal()
    assert rng.bit_generator.state["state"]["position"] == 3
    others = [pickle.loads(pickle.dumps(rng)), copy.deepcopy(rng), random.default_rng(1)]
    others[2].bit_generator.state = rng.bit_generator.state
    shared = random.Generator(rng.bit_generator)
    assert random.default_rng(rng) is rng
    assert random.default_rng(rng.bit_generator).bit_generator is rng.bit_generator
    wanted = [rng.random(3).tolist(), rng.gamma(2.0, size=3).tolist(), rng.random()]
    for other in others:
        assert [other.random(3).tolist(), other.gamma(2.0, size=3).tolist(), other.random()
                ] == wanted
    assert shared.bit_generator.state["state"]["position"] == 6
    for bad in ({"bit_generator": "PCG64"}, {"bit_generator": "Philox4x32", "state": {
            "key": -1, "position": 0}}):
        with pytest.raises(ValueError, match=r"state|2\*\*64"):
            rng.bit_generator.state = bad
    with pytest.raises(TypeError, match="spawning"):
        others[2].spawn(1)
    # Seeds.
    sequence = np.random.SeedSequence(42)
    start = random.default_rng(42).random(4).tolist()
    assert random.default_rng(sequence).random(4).tolist() == start
    assert random.default_rng([42]).random(4).tolist() == start
    assert random.default_rng(xp.array([42])).random(4).tolist() == start
    assert random.default_rng().random(4).tolist() != random.default_rng().random(4).tolist()
    one, two = random.default_rng(42).spawn(2)
    again = random.default_rng(42).spawn(2)
    assert again[1].random(4).tolist() == two.random(4).tolist() != one.random(4).tolist()
    for bad in (-1, 2.5, "x"):
        wanted_error = failure(lambda r, seed=bad: r.default_rng(seed), np.random)
        assert failure(lambda r, seed=bad: r.default_rng(seed), random) == wanted_error


def test_what_numpy_draws_on_the_host_is_counted_and_repeatable(xp: ModuleType) -> None:
    calls: list[Callable[[Any], Any]] = [
        lambda g: g.integers([3.5, 400], [5, 500]), lambda g: g.dirichlet([0.0, 0.0]),
        lambda g: g.permuted(np.arange(6.0).astype(np.longdouble)),
        lambda g: g.multivariate_hypergeometric([], 0),
    ]
    rng, again = xp.random.default_rng(6), xp.random.default_rng(6)
    for call in calls:
        before = xp.stats()["fallbacks"]
        drawn = call(rng)
        assert xp.stats()["fallbacks"] == before + 1
        assert isinstance(drawn, xp.ndarray | np.ndarray)
        assert np.array_equal(drawn, call(again))
    shuffled, host = xp.arange(20), np.arange(20)
    rng.shuffle(shuffled), again.shuffle(host)
    assert sorted(shuffled.tolist()) == list(range(20)) != shuffled.tolist()
    assert shuffled.tolist() == host.tolist()
    before = xp.stats()["fallbacks"]
    picked = rng.choice(7, (4, 3))
    assert picked.shape == (4, 3)
    assert set(picked.ravel().tolist()) <= set(range(7))
    assert rng.choice(xp.arange(5) * 10.0) in (0, 10, 20, 30, 40)
    assert xp.stats()["fallbacks"] == before
    table = xp.arange(6).reshape(2, 3)
    assert rng.choice(table, 4, axis=1).shape == (2, 4)
    assert rng.choice(["a", "b"], 5).dtype == np.dtype("<U1")
    assert rng.choice(0, 0).shape == (0,)


def test_threads_share_a_generator_without_drawing_the_same(xp: ModuleType) -> None:
    rng = xp.random.default_rng(0)
    drawn: list[float] = []
    threads = [threading.Thread(target=lambda: drawn.extend(rng.random() for _ in range(500)))
               for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    again = xp.random.default_rng(0)
    assert sorted(drawn) == sorted(again.random() for _ in range(2000))


# -- the older interface, and NumPy's own streams --------------------------------------------------


def test_functions_of_the_module_have_the_same_bits_and_a_state(xp: ModuleType) -> None:
    random = xp.random
    kept = random.get_state()
    random.seed(11)
    rng = random.default_rng(11)
    assert random.rand(2, 3).tolist() == rng.random((2, 3)).tolist()
    assert random.randn(4).tolist() == rng.standard_normal(4).tolist()
    assert random.randn() == rng.standard_normal()
    assert random.randint(3, 9, 5).tolist() == rng.integers(3, 9, 5).tolist()
    assert random.uniform(1, 2, (2,)).tolist() == rng.uniform(1, 2, 2).tolist()
    assert random.choice(9, 3).tolist() == rng.choice(9, 3).tolist()
    for name in ("random", "random_sample", "ranf", "sample"):
        assert getattr(random, name)(3).tolist() == rng.random(3).tolist()
    assert type(random.random()) is float
    assert type(random.randint(5)) is int
    state = random.get_state()
    first = [random.normal(0, 1, 3).tolist(), random.poisson(3, 3).tolist(), random.rand()]
    random.set_state(state)
    assert [random.normal(0, 1, 3).tolist(), random.poisson(3, 3).tolist(), random.rand()] == first
    legacy = random.RandomState(11)
    random.seed(11)
    assert legacy.exponential(size=3).tolist() == random.exponential(size=3).tolist()
    copied = pickle.loads(pickle.dumps(legacy))
    assert copied.tomaxint(3).tolist() == legacy.tomaxint(3).tolist()
    assert random.default_rng(legacy).bit_generator is legacy._bit_generator
    for call in (lambda r: r.rand(-1), lambda r: r.rand(2.5), lambda r: r.random_sample(2, 3),
                 lambda r: r.randint(0), lambda r: r.seed(-1), lambda r: r.RandomState(2**32),
                 lambda r: r.normal(0, -1), lambda r: r.choice([[1]]), lambda r: r.choice([]),
                 lambda r: r.random(dtype="f4"), lambda r: r.set_state({"bit_generator": "x"})):
        wanted, actual = failure(call, np.random), failure(call, random)
        assert actual[0] is wanted[0] is not type(None), (actual, wanted)
    # A state of NumPy's asks for NumPy's stream.
    other = random.RandomState(1)
    other.set_state(np.random.RandomState(5).get_state())
    assert other.rand(3).tolist() == np.random.RandomState(5).rand(3).tolist()
    random.set_state(kept)


def test_numpys_own_streams_are_drawn_where_they_are_asked_for(xp: ModuleType,
                                                               setting: Setting) -> None:
    def drawn(random: Any) -> list[Any]:
        rng = random.default_rng(3)
        random.seed(3)
        old = random.RandomState(3)
        return [np.asarray(x).tolist() for x in (
            rng.random(3), rng.normal(size=2), rng.integers(9, size=3), rng.permutation(4),
            random.rand(3), random.randint(0, 9, 3), random.normal(), random.choice(5, 2),
            old.randn(2), old.uniform(size=2), rng.spawn(1)[0].random(2))]

    def explicit(random: Any) -> list[Any]:
        return [random.Generator(np.random.PCG64(3)).random(3).tolist(),
                random.default_rng(np.random.SFC64(3)).normal(size=2).tolist(),
                random.RandomState(np.random.MT19937(3)).rand(3).tolist(),
                random.Generator(random.MT19937(4)).integers(0, 9, 3).tolist()]

    assert explicit(xp.random) == explicit(np.random)
    assert drawn(xp.random) != drawn(np.random)
    setting(exact_random=True)
    before = xp.stats()["fallbacks"]
    assert drawn(xp.random) == drawn(np.random)
    assert xp.stats()["fallbacks"] > before
    rng = pickle.loads(pickle.dumps(xp.random.default_rng(3)))
    assert rng.random(3).tolist() == np.random.default_rng(3).random(3).tolist()
    assert xp.random.default_rng(rng) is rng
