"""Counts and writes through index arrays by kernels: NumPy's results, the last of equal places, and
nothing on the host."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse.errors import JitError
from tests.support.rounds import covering

RNG = np.random.default_rng(36)


@pytest.fixture(autouse=True)
def kernels(xp: ModuleType, setting: Callable[..., None]) -> Iterator[None]:
    """Kernels of the schedule with work-groups, on any device, whatever the size; NumPy's copies
    are errors."""
    setting(schedule="gpu", fallback="raise", host_us=0)
    before = xp.stats()["fallbacks"]
    yield
    assert xp.stats()["fallbacks"] == before


def launched(xp: ModuleType, value: Any) -> list[str]:
    """The kinds of the kernels that a value takes."""
    return [kernel.kind for kernel in xp.explain(value).kernels]


def same(xp: ModuleType, function: Callable[..., None], *arrays: np.ndarray) -> None:
    """Compare what a function of (module, arrays) leaves in its first array."""
    expected = [array.copy() for array in arrays]
    given = [xp.asarray(array) for array in arrays]
    function(np, *expected)
    before = xp.stats()["library_calls"]
    function(xp, *given)
    actual = np.asarray(given[0])
    assert xp.stats()["library_calls"] == before
    np.testing.assert_array_equal(actual, expected[0])


# -- counts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["i8", "i4", "u2", "i1"])
@pytest.mark.parametrize("bins", [1, 3, 100, 5000])
def test_counts_are_numpys(xp: ModuleType, dtype: str, bins: int) -> None:
    if bins > np.iinfo(dtype).max:
        pytest.skip("no such numbers")
    for count in (1, 1000, 70_001):
        x = RNG.integers(0, bins, count).astype(dtype)
        for least in (0, bins + 7):
            found = xp.bincount(xp.asarray(x), minlength=least)
            assert launched(xp, found)[0] == "tally"
            np.testing.assert_array_equal(found, np.bincount(x, minlength=least))


def test_counts_beyond_local_memory_are_made_in_global_memory(xp: ModuleType) -> None:
    x = RNG.integers(0, 200_000, 30_000)
    found = xp.bincount(xp.asarray(x))
    assert "scatter" in launched(xp, found)
    np.testing.assert_array_equal(found, np.bincount(x))
    counts, _ = xp.histogram(xp.asarray(x), 100_000)
    np.testing.assert_array_equal(counts, np.histogram(x, 100_000)[0])


def test_places_are_computed_in_the_kernel_that_counts(xp: ModuleType) -> None:
    x = RNG.integers(0, 50, 9000)
    found = xp.bincount((xp.asarray(x) * 3 + 1) % 64, minlength=64)
    plan = xp.explain(found)
    assert len(plan.kernels) == 2
    assert plan.kernels[0].kind == "tally"
    assert {"multiply", "add", "remainder"} <= set(plan.kernels[0].ops)
    np.testing.assert_array_equal(found, np.bincount((x * 3 + 1) % 64, minlength=64))


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u1"])
def test_bins_of_histograms_are_numpys_also_on_edges(xp: ModuleType, dtype: str) -> None:
    if not xp.get_device().traits.fp64:
        pytest.skip("edges are of double precision")
    x = (RNG.integers(0, 100, 20_000) * 0.1).astype(dtype)
    for options in ({}, {"range": (1, 3)}, {"range": (0.25, 0.75), "density": True}):
        for bins in (1, 10, 37, np.linspace(0, 9, 31), [0, 1, 1, 4]):
            expected = np.histogram(x, bins, **options)
            for one, other in zip(xp.histogram(xp.asarray(x), bins, **options), expected,
                                  strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4"])
def test_sums_of_weights_are_the_same_on_every_run(xp: ModuleType, dtype: str) -> None:
    if not xp.get_device().traits.fp64:
        pytest.skip("sums are of double precision")
    x = RNG.integers(0, 300, 90_000)
    weights = (RNG.standard_normal(x.size) * 100).astype(dtype)
    expected = np.bincount(x, weights)
    found = [np.asarray(xp.bincount(xp.asarray(x), xp.asarray(weights))) for _ in range(3)]
    assert len({each.tobytes() for each in found}) == 1
    # Each sum rounds by half an ulp of what it has reached.
    bound = np.bincount(x, np.abs(weights.astype("f8"))) * x.size * 2.0**-53
    assert (np.abs(found[0] - expected) <= bound).all()
    exact = np.histogram(x, 40, weights=weights.astype("i4"))[0]
    np.testing.assert_array_equal(
        xp.histogram(xp.asarray(x), 40, weights=xp.asarray(weights.astype("i4")))[0], exact
    )


def test_wrong_counts_are_refused_at_the_call(xp: ModuleType) -> None:
    for wrong in (lambda: xp.bincount(xp.asarray([1, -1])),
                  lambda: xp.bincount(xp.asarray([1, 2]), minlength=-1),
                  lambda: xp.bincount(xp.asarray([1, 2]), xp.asarray([1.0]))):
        with pytest.raises(ValueError, match=r"negative|length"):
            wrong()


def test_few_elements_are_counted_and_written_in_every_way(xp: ModuleType) -> None:
    """Small enough for a simulator that looks for races."""
    def change(m: Any, x: Any, i: Any, v: Any) -> None:
        x[i] = v
        x[i] += v[::-1]
        x[i[:9]] = x[i[1:10]]
        m.add.at(x, i, v)
        m.multiply.at(x, i, v)
        x[m.bincount(i % 16, minlength=16)] = 4

    places = RNG.integers(0, 16, 300)
    for dtype in ("i8", "f4", "u1"):
        x = RNG.integers(1, 9, 400).astype(dtype)
        values = RNG.integers(1, 2, 300).astype(dtype)
        same(xp, change, x, places, values)


# -- writes ---------------------------------------------------------------------------------------


def set_values(m: Any, x: Any, i: Any, v: Any) -> None:
    x[i] = v


def set_one(m: Any, x: Any, i: Any, v: Any) -> None:
    x[i] = 7


def add(m: Any, x: Any, i: Any, v: Any) -> None:
    x[i] += v


def read_others(m: Any, x: Any, i: Any, v: Any) -> None:
    x[i] = x[(i + 1) % len(x)]


def from_the_end(m: Any, x: Any, i: Any, v: Any) -> None:
    x[i - len(x)] = v


def of_a_copy(m: Any, x: Any, i: Any, v: Any) -> None:
    y = x.copy()
    y[i] = v
    x[1:] = y[:-1]


def through_a_view(m: Any, x: Any, i: Any, v: Any) -> None:
    x[::-2][i // 3] = v


def twice(m: Any, x: Any, i: Any, v: Any) -> None:
    x[i] = v
    x[i[::3]] = v[::3]
    x[5] = 1


def put_few(m: Any, x: Any, i: Any, v: Any) -> None:
    m.put(x, i, v[:3])


def put_around(m: Any, x: Any, i: Any, v: Any) -> None:
    m.put(x, i * 3 - 5, v, mode="wrap")


def put_clipped(m: Any, x: Any, i: Any, v: Any) -> None:
    m.put(x, i * 3 - 5, v, mode="clip")


def put_masked(m: Any, x: Any, i: Any, v: Any) -> None:
    m.putmask(x, x > 0, v[:7])


def place_masked(m: Any, x: Any, i: Any, v: Any) -> None:
    m.place(x, x > 0, v[:7])


@pytest.mark.parametrize(("dtype", "change", "sizes"), covering(
    ("f4", "i8", "i2", "u1", "?", "c8"),
    (set_values, set_one, read_others, from_the_end, of_a_copy, through_a_view, twice, put_few,
     put_around, put_clipped),
    ((40, 300), (5000, 3000), (5000, 200)),
))  # fmt: skip
def test_of_equal_places_the_last_one_stays(
    xp: ModuleType, dtype: str, change: Callable[..., None], sizes: tuple[int, int]
) -> None:
    size, count = sizes
    x = RNG.integers(0, 100, size).astype(dtype)
    values = RNG.integers(0, 100, count).astype(dtype)
    same(xp, change, x, RNG.integers(0, size, count), values)


@pytest.mark.parametrize("count", [5000, 3000, 200])
def test_distinct_places_are_written_at_once(
    xp: ModuleType, count: int
) -> None:
    x, values = RNG.integers(0, 100, 5000), RNG.integers(0, 100, count)
    places = RNG.permutation(x.size)[:count]
    same(xp, set_values, x, places, values)
    same(xp, through_a_view, x, places, values)
    places[-1] = places[0]  # one repeats
    same(xp, set_values, x, places, values)
    same(xp, read_others, x, places, values)


@pytest.mark.parametrize("dtype", ["f4", "i8", "u1"])
@pytest.mark.parametrize("change", [add, put_masked, place_masked])
def test_changes_of_numbers(xp: ModuleType, change: Callable[..., None], dtype: str) -> None:
    x = RNG.integers(0, 100, 5000).astype(dtype)
    values = RNG.integers(0, 100, 3000).astype(dtype)
    same(xp, change, x, RNG.integers(0, x.size, 3000), values)


def test_an_addition_through_indices_copies_nothing(xp: ModuleType) -> None:
    x, i = xp.asarray(np.zeros(10_000, "f4")), xp.asarray(RNG.integers(0, 10_000, 500))
    x += 1
    xp.evaluate(x, i, x[i])
    x[i] += xp.asarray(np.float32(2))
    plan = xp.explain(x)
    assert [kernel.kind for kernel in plan.kernels] == ["map"] + ["scatter"] * 4
    assert plan.kernels[-1].ops == ("gather", "add")
    assert not any("copied" in cut.reason for cut in plan.cuts)


def test_one_value_for_all_places_is_one_launch(xp: ModuleType) -> None:
    x, i = xp.asarray(np.zeros(10_000, "f4")), xp.asarray(RNG.integers(0, 10_000, 500))
    xp.evaluate(x, i, x[i])
    x[i] = 3
    assert launched(xp, x) == ["scatter"]


@pytest.mark.parametrize(
    "change",
    [
        lambda m, x, i, j, v: x.__setitem__(i, v),
        lambda m, x, i, j, v: x.__setitem__((slice(None), j), v[: len(j), 0]),
        lambda m, x, i, j, v: x.__setitem__((i, j), v[:, 0]),
        lambda m, x, i, j, v: x.T.__setitem__((j, i), v[:, 0]),
        lambda m, x, i, j, v: x.__setitem__((i, slice(None, None, -2)), 5),
        lambda m, x, i, j, v: x.__setitem__((slice(2, 9), None, j), v[: len(j), 1]),
        lambda m, x, i, j, v: x[::-1, ::-1].__setitem__((i, j), v[:, 0]),
        lambda m, x, i, j, v: x.__setitem__((i[:6, None], j[:5]), v[:6, :5]),
        lambda m, x, i, j, v: m.put_along_axis(x, m.argsort(x, axis=1)[:, :3], 9.5, 1),
        lambda m, x, i, j, v: x.__setitem__((i, 3), v[:, 1]),
        lambda m, x, i, j, v: x.__setitem__(x[:, 0] > 20, v[0]),
    ],
)
def test_rows_columns_and_points(xp: ModuleType, change: Callable[..., None]) -> None:
    for rows, count in ((60, 50), (60, 400)):
        x = np.argsort(RNG.random((rows, 9)), axis=1).astype("f4") * 5
        i, j = RNG.integers(-rows, rows, count), RNG.integers(-9, 9, count)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            same(xp, change, x, i, j, RNG.random((count, 9)).astype("f4"))


def test_what_is_out_of_bounds_changes_nothing(xp: ModuleType) -> None:
    x = xp.asarray(np.arange(100.0, dtype="f4"))
    for index in ([1, 100], [-101, 2]):
        with pytest.raises(IndexError, match="out of bounds"):
            x[xp.asarray(index)] = 5
        with pytest.raises(IndexError, match="out of bounds"):
            xp.put(x, xp.asarray(index), 5)
    np.testing.assert_array_equal(x, np.arange(100.0))


# -- ufunc.at -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["i4", "u4", "i8", "u8"])
@pytest.mark.parametrize(
    "name",
    ["add", "subtract", "multiply", "maximum", "minimum", "bitwise_and", "bitwise_or",
     "bitwise_xor"],
)  # fmt: skip
def test_integers_are_combined_as_often_as_a_place_is_named(
    xp: ModuleType, name: str, dtype: str
) -> None:
    ends = np.iinfo(dtype)
    x, values = [RNG.integers(ends.min, ends.max, n, dtype) for n in (700, 20_000)]
    i = RNG.integers(-x.size, x.size, values.size)

    def change(m: Any, x: Any, i: Any, v: Any) -> None:
        getattr(m, name).at(x, i, v)
        getattr(m, name).at(x, i, x[i])

    same(xp, change, x, i, values)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "i2"])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "divide"])
def test_elements_of_one_place_are_folded_in_their_order(
    xp: ModuleType, name: str, dtype: str
) -> None:
    if name == "divide" and dtype == "i2":
        pytest.skip("gives another dtype")
    if dtype == "f8" and not xp.get_device().traits.fp64:
        pytest.skip("no double precision")
    x, values = [RNG.integers(1, 60, n).astype(dtype) for n in (400, 3000)]
    values = values if dtype == "i2" else (1 + values / 1000).astype(dtype)

    def change(m: Any, x: Any, i: Any, v: Any) -> None:
        getattr(m, name).at(x, i, v)

    same(xp, change, x, RNG.integers(-x.size, x.size, values.size), values)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ["add", "subtract"])
def test_many_elements_of_few_places_are_tallied(
    xp: ModuleType, name: str, dtype: str
) -> None:
    if not xp.get_device().traits.fp64:
        pytest.skip("sums are of double precision")
    x, values = RNG.random((5, 80)).astype(dtype), RNG.random(70_001).astype(dtype)
    x[0, 0] = -0.0
    rows, columns = RNG.integers(0, 5, 70_001), RNG.integers(1, 80, 70_001)
    expected = x.astype("f8")
    getattr(np, name).at(expected, (rows, columns), values.astype("f8"))
    found = []
    for _ in range(2):
        y = xp.asarray(x)
        getattr(xp, name).at(y, (xp.asarray(rows), xp.asarray(columns)), xp.asarray(values))
        assert "tally" in launched(xp, y)
        found.append(np.asarray(y))
    assert found[0].tobytes() == found[1].tobytes()
    assert found[0].dtype == dtype
    assert np.signbit(found[0][0, 0])  # no element goes there
    np.testing.assert_allclose(found[0], expected, rtol=1e-6 if dtype == "f4" else 1e-13)


@pytest.mark.parametrize("dtype", ["f4", "i2", "u4", "c8"])
@pytest.mark.parametrize("places", ["any", "one", "few", "each", "the end"])
def test_long_and_short_runs_are_folded_in_pieces(
    xp: ModuleType, places: str, dtype: str
) -> None:
    size, count = 60_000, 40_003
    index = {
        "any": RNG.integers(0, size, count), "one": np.full(count, 5),
        "few": RNG.choice([0, 3, size - 1], count), "each": RNG.permutation(size)[:count],
        "the end": np.maximum(np.arange(count), count - 500) + size - count,
    }[places]
    names = ["add", "subtract", "multiply"] + ["maximum", "minimum"] * (dtype != "c8")
    for name in names:
        # No sum is rounded, and no product: small integers, and powers of two.
        powers = [*[1] * 200, -1, 2, 0.5]  # so few that their product stays in range
        choice = powers if name == "multiply" and dtype in ("f4", "c8") else range(9)
        x = RNG.integers(0, 9, size).astype(dtype)
        values = RNG.permutation(np.resize(choice, count)).astype(dtype)

        def change(m: Any, x: Any, i: Any, v: Any, name: str = name) -> None:
            getattr(m, name).at(x, i, v)

        same(xp, change, x, index, values)


@pytest.mark.parametrize("size", [700, 30_000])
def test_many_halves_are_added_with_more_digits(xp: ModuleType, size: int) -> None:
    index, values = RNG.integers(0, size, 40_003), RNG.random(40_003).astype("f2")
    x = xp.zeros(size, "f2")
    xp.add.at(x, xp.asarray(index), xp.asarray(values))
    expected = np.bincount(index, values.astype(float), size)
    rounded = expected.astype("f2").astype(float)
    assert (np.abs(np.asarray(x) - rounded) <= np.spacing(expected.astype("f2"))).all()
    least, most = xp.asarray(np.full(size, 1, "f2")), xp.zeros(size, "f2")
    xp.minimum.at(least, xp.asarray(index), xp.asarray(values))
    xp.maximum.at(most, xp.asarray(index), xp.asarray(values))
    for found, name, start in ((least, "minimum", 1), (most, "maximum", 0)):
        wanted = np.full(size, start, "f2")
        getattr(np, name).at(wanted, index, values)
        np.testing.assert_array_equal(np.asarray(found), wanted)


@pytest.mark.parametrize("dtypes", ["ef", "fe", "eb"])
def test_halves_are_combined_in_numpys_loops(xp: ModuleType, dtypes: str) -> None:
    x, values = [RNG.random(n) * 20 for n in (200, 900)]
    x, values = x.astype(dtypes[0]), values.astype(dtypes[1])
    for name in ("add", "multiply", "fmax"):
        same(xp, lambda m, x, i, v, name=name: getattr(m, name).at(x, i, v), x,
             RNG.integers(0, 200, 900), values)


def test_rows_are_folded_into_views_in_their_order(xp: ModuleType) -> None:
    def change(m: Any, x: Any, i: Any, v: Any) -> None:
        m.add.at(x[1:, ::-2], i, v)
        m.subtract.at(x, (i, 2), v[:, 0])
        m.add.at(x, i[:1], 0.125)

    x, values = RNG.random((50, 9)).astype("f4"), RNG.random((300, 5)).astype("f4")
    same(xp, change, x, RNG.integers(0, 49, 300), values)


@pytest.mark.parametrize("dtype", ["f4", "i4", "u1", "i8"])
@pytest.mark.parametrize("name", ["add", "multiply", "maximum"])
def test_values_of_other_dtypes_are_combined_in_numpys_loops(
    xp: ModuleType, name: str, dtype: str
) -> None:
    if not xp.get_device().traits.fp64:
        pytest.skip("loops of double precision")
    x, i = RNG.integers(0, 200, 300).astype(dtype), RNG.integers(0, 300, 1000)
    for value in (1, 3, 0.1) if dtype == "f4" else (1, 3):
        same(xp, lambda m, x, i, value=value: getattr(m, name).at(x, i, value), x, i)


def test_sums_of_weights_at_many_places_have_numpys_bits(
    xp: ModuleType,
) -> None:
    if not xp.get_device().traits.fp64:
        pytest.skip("sums are of double precision")
    places, weights = RNG.integers(0, 30_000, 5000), RNG.standard_normal(5000)
    found = xp.bincount(xp.asarray(places), xp.asarray(weights))
    np.testing.assert_array_equal(found, np.bincount(places, weights))


def test_elements_are_repeated_as_often_as_a_vector_says(xp: ModuleType) -> None:
    x, counts = RNG.random((300, 4)).astype("f4"), RNG.integers(0, 5, 300)
    for function in (
        lambda m, x, n: m.repeat(x, n, axis=0), lambda m, x, n: m.repeat(x[:, 1], n),
        lambda m, x, n: m.repeat(x.T, n, axis=-1), lambda m, x, n: m.repeat(x[:4], n[:4] + 1, 0),
        lambda m, x, n: m.repeat(x[::-1, 0], n * 0 + 1), lambda m, x, n: m.repeat(x[:2], [0, 3], 0),
    ):
        found = function(xp, xp.asarray(x), xp.asarray(counts))
        np.testing.assert_array_equal(found, function(np, x, counts))
    with pytest.raises(ValueError, match="negative"):
        xp.repeat(xp.asarray(x[:, 0]), xp.asarray(counts - 1))


# -- traces ---------------------------------------------------------------------------------------


def test_traced_functions_count_and_write(xp: ModuleType) -> None:
    @xp.jit
    def counted(x: Any, i: Any) -> Any:
        counts = xp.histogram(x, 16, range=(0, 1))[0]
        counts[i] = counts[::-1][i] + 3
        return counts

    for seed in range(3):
        rng = np.random.default_rng(seed)
        x, i = rng.random(3000).astype("f4"), rng.integers(0, 16, 9)
        expected = np.histogram(x, 16, range=(0, 1))[0]
        expected[i] = expected[::-1][i] + 3
        np.testing.assert_array_equal(counted(xp.asarray(x), xp.asarray(i)), expected)
    residues = xp.jit(lambda x: xp.bincount(x % 8, minlength=8))
    for seed in range(3):
        x = np.random.default_rng(seed).integers(0, 100, 2000)
        np.testing.assert_array_equal(residues(xp.asarray(x)), np.bincount(x % 8, minlength=8))
    with pytest.raises(JitError):
        xp.jit(xp.bincount)(xp.asarray([1, 2, 3]))
