"""searchsorted, digitize, interp and bincount against NumPy, NaN and equal elements included."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import Batch, assert_bitwise, host
from tests.support.hostile import ordinary

KEYS = np.array([0, 1, 2.5, -1, np.nan, np.inf, -np.inf, 7, 0.5, -0.0, 8, 3] * 3)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "uint8"])
def test_places_among_sorted_elements(dtype: str, xp: ModuleType) -> None:
    rng = np.random.default_rng(11)
    batch = Batch(xp)
    for count in (1, 2, 5, 100):
        table = np.sort(rng.integers(0, 9, count)).astype(dtype)
        if dtype.startswith("float") and count > 2:
            table[0], table[-1] = -np.inf, np.nan
        keys = KEYS if dtype.startswith("float") else np.arange(12).reshape(3, 4)
        for side in ("left", "right"):
            batch.same(f"{count} {side}", lambda m, table=table, keys=keys, side=side:
                       m.searchsorted(m.asarray(table), m.asarray(keys), side))
    batch.check()


def test_interpolation_is_numpys_bit_for_bit(xp: ModuleType) -> None:
    rng = np.random.default_rng(13)
    batch = Batch(xp)
    for count in (1, 2, 3, 50):
        places, heights = np.sort(rng.random(count)), rng.random(count)
        if count > 5:
            heights[1:4] = np.nan, np.inf, np.inf
            places[8] = places[9]
        x = np.concatenate([rng.random(60) * 1.4 - 0.2, places, [np.nan, np.inf, -np.inf]])
        for options in ({}, {"left": -1.0, "right": float("nan")}):
            batch.same(f"{count} {options}", lambda m, x=x, xs=places, ys=heights, options=options:
                       m.interp(m.asarray(x), m.asarray(xs), m.asarray(ys), **options))
    batch.check()


def test_counts_bins_and_errors(xp: ModuleType) -> None:
    rng = np.random.default_rng(17)
    numbers, weights = rng.integers(0, 20, 501), rng.random(501)
    batch = Batch(xp)
    for text in ("m.bincount(q)", "m.bincount(q, minlength=50)", "m.bincount(q, w)",
                 "m.bincount(q % 3 == 0)", "m.bincount(q[::-2] + 1, w[::2])", "m.bincount([])",
                 "m.bincount(q - 1)", "m.bincount(q, [1])", "m.bincount(q, minlength=-1)",
                 "m.bincount(w)", "m.bincount(q.reshape(3, 167))",
                 "m.digitize(w, [0.1, 0.5, 0.9])", "m.digitize(w, [0.9, 0.5, 0.1], right=True)",
                 "m.digitize(w, [1, 3, 2])", "m.searchsorted([1, 2, 3], 2)",
                 "m.searchsorted([3, 1, 2], q, sorter=[1, 2, 0])",
                 "m.searchsorted([3, 1, 2], q, sorter=[1, 2, 9])", "m.searchsorted(w, q, 'x')",
                 "m.interp(0.5, [0, 1], [3, 4])", "m.interp(q, [0, 9], [3, 4], period=5)"):
        batch.same(text, lambda m, text=text: eval(
            text, {"m": m, "q": m.asarray(numbers), "w": m.asarray(weights)}))
    batch.check()


def test_histograms_are_numpys_also_where_rounding_decides(xp: ModuleType) -> None:
    rng = np.random.default_rng(19)
    data = {"normal": rng.standard_normal(3000), "on edges": np.repeat(0.1 * np.arange(30), 10),
            "wide": rng.integers(-128, 128, 999), "single": rng.random(3000).astype("f4"),
            "ends": np.array([2**63, 5, 2**64 - 1], "u8"), "nan": np.array([1, np.nan, 2.0])}
    texts = {"m.histogram(x)": data, "m.histogram(x, 30, (0.0, 2.9), density=True)": ["on edges"],
             "m.histogram(x, [-1, 0, 0.5, 2])": ["normal", "wide", "nan"],
             "m.histogram(x, bins=m.arange(-5, 6))": ["wide"],
             "m.histogram(x, [1, 0])": ["wide"], "m.histogram(x, 0)": ["wide"],
             "m.histogram(x, range=(2, 1))": ["wide"], "m.histogram(x, [[1]])": ["wide"],
             "m.histogram(x, 3, (0, m.inf))": ["wide"]}
    batch = Batch(xp)
    for text, names in texts.items():
        for name in names:
            batch.same(f"{text} {name}", lambda m, text=text, values=data[name]: eval(
                text, {"m": m, "x": m.asarray(values)}))
    batch.check()


@pytest.mark.clfuse_only
def test_a_search_is_one_kernel_with_what_is_around_it(xp: ModuleType) -> None:
    table, x = xp.asarray(np.sort(np.random.default_rng(3).random(1000))), xp.linspace(0, 1, 5000)
    plan = xp.explain(xp.searchsorted(table, xp.sqrt(x)) * 2.0)
    assert len(plan.kernels) == 1
    assert plan.kernels[0].ops.count("gather") == 11


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "i1", "?"])
def test_weighted_histograms_are_numpys(dtype: str, xp: ModuleType) -> None:
    # Kernels add the weights in an order of their own: each sum rounds by half an ulp of at most
    # 150,001 * 30.
    adds = dtype in ("f4", "f8")
    bound = 150_001 * 150_001 * 30 * 2.0**-53 if adds else None
    if adds and dtype == "f4":
        bound = 150_001 * 30 * 2.0**-23
    rng = np.random.default_rng(23)
    x = rng.normal(size=150_001)
    x[7] = 3.0
    weights = (rng.random(x.size) * 50 - 20).astype(dtype)
    batch = Batch(xp)
    for text in ("m.histogram(x, 100, weights=w)", "m.histogram(x, 7, (-1, 2), weights=w)",
                 "m.histogram(x, 9, (-1, 2), weights=w, density=True)",
                 "m.histogram(x[1:].reshape(3, -1), 5, weights=w[:0:-1].reshape(3, -1))",
                 "m.histogram(x, 5, weights=w[1:])",
                 "m.histogram(x[:6].reshape(2, 3), 5, weights=w[:6])",
                 "m.histogram(x, 0, weights=w)", "m.histogram(x, [0, 1, 1.5], weights=w > 3)",
                 "m.histogram(x[:4], 3, weights=[1, 2, 3, 4])", "m.histogram(x, 3, weights=2.0)"):
        def call(m: ModuleType, text: str = text) -> object:
            return eval(text, {"m": m, "x": m.asarray(x), "w": m.asarray(weights)})

        batch.same(text, call, bound=bound)
    batch.check()


@pytest.mark.clfuse_only
def test_a_weighted_histogram_is_a_few_launches(xp: ModuleType) -> None:
    rng = np.random.default_rng(29)
    x, weights = xp.asarray(rng.random(300_000)), xp.asarray(rng.random(300_000))
    xp.evaluate(x, weights)
    before = xp.stats()
    counts, _ = xp.histogram(x, 50, weights=weights)
    xp.evaluate(counts)
    after = xp.stats()
    assert after["fallbacks"] - before["fallbacks"] <= 1  # one, on devices with their own memory
    assert after["kernels_launched"] - before["kernels_launched"] <= 6


@pytest.mark.clfuse_only
def test_few_keys_are_sought_where_a_stored_vector_lies(
    xp: ModuleType, launched: Callable[[Callable[[], object]], int]
) -> None:
    if not xp.get_device().traits.unified_memory:
        pytest.skip("the device has memory of its own")
    table = np.resize(ordinary(5, 3000, "float64"), 30_000)
    order = table.argsort(kind="stable")
    rising, x, places = [xp.asarray(a) for a in (table[order], table, order)]
    xp.evaluate(rising, x, places)
    keys = np.append(ordinary(6, 20, "float64"), [np.nan, np.inf, table[7]])
    found: list[Any] = []

    def search() -> None:
        for side in ("left", "right"):
            found.append(xp.searchsorted(rising, keys, side))
            found.append(xp.searchsorted(x, keys, side, sorter=places))
            found.append(xp.searchsorted(rising[::2], keys[0], side))

    with xp.config.override(host_us=50):
        assert launched(search) == 0
    expected: list[Any] = []
    for side in ("left", "right"):
        expected.append(np.searchsorted(table[order], keys, side))
        expected.append(np.searchsorted(table, keys, side, sorter=order))
        expected.append(np.searchsorted(table[order][::2], keys[0], side))
    for one, other in zip(found, expected, strict=True):
        assert_bitwise(host(one), other)
    assert type(found[2]) is type(expected[2])


@pytest.mark.clfuse_only
def test_a_sorter_is_followed_by_few_keys_not_by_the_vector(xp: ModuleType) -> None:
    table = np.resize(ordinary(5, 3000, "float64"), 30_000)
    x = xp.asarray(table)
    keys = ordinary(6, 20, "float64")
    with xp.config.override(host_us=0, build_after_ms=0):
        places = xp.argsort(x, kind="stable")
        found = xp.searchsorted(x, keys, sorter=places)
        xp.evaluate(places)
        kernels = [k for k in xp.explain(found).kernels if k.kind != "library"]
        assert len(kernels) == 1
        assert sum(write.nbytes for write in kernels[0].writes) <= 8 * len(keys)
        expected = np.searchsorted(table, keys, sorter=table.argsort(kind="stable"))
        assert_bitwise(host(found), expected)
