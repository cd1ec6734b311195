"""Reductions over every axis give NumPy's dtype, shape and value, also of nothing and of NaN.

Sums of floats are no less accurate than NumPy's pairwise sums and the same on every run; sums that
no rounding touches are bit-identical.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.fuzz.bounds import for_reduction
from tests.support.agreement import Batch, given, host
from tests.support.hostile import COMPLEXES, DTYPES, FLOATS, INTEGERS, hostile, layouts, ordinary
from tests.support.rounds import HERE, covering

Array = NDArray[Any]

REDUCTIONS = ("sum", "prod", "min", "max", "any", "all", "mean", "var", "std", "argmin", "argmax",
              "count_nonzero")
SHAPES = ((), (0,), (1,), (5,), (67,), (0, 3), (3, 0), (3, 4), (1, 7), (7, 1), (2, 3, 4),
          (2, 1, 0, 3), (2, 3, 1, 5))
LONG = 10_007  # several chunks and a tail, whatever the vector width


def axes_of(ndim: int) -> Iterator[Any]:
    """None, every axis from both ends, every pair, all of them, none of them."""
    yield None
    yield from range(-ndim, ndim)
    yield from itertools.combinations(range(ndim), 2)
    if ndim:
        yield tuple(range(ndim))
        yield (-1,)
    yield ()


def takes_one_axis(name: str) -> bool:
    return name.startswith("arg")


def bound_of(name: str, data: Array, axis: Any, **options: Any) -> Any:
    """How far a correct reduction may be from NumPy's; None where NumPy raises."""
    try:
        result = np.asarray(getattr(np, name)(data, axis=axis, **options))
    except (ValueError, TypeError):
        return None
    if result.dtype.kind not in "fc":
        return np.zeros(result.shape)
    value = data if name in ("var", "std") else data.astype(
        options.get("dtype") or result.dtype)
    bound = for_reduction(name, value, np.zeros(data.shape), result, axis,
                          where=options.get("where", True), ddof=options.get("ddof", 0),
                          initial=options.get("initial"))
    if result.dtype.kind != "c":
        return bound
    parts = np.empty(np.shape(bound), complex)  # infinity times 1j has NaN in it
    parts.real = parts.imag = bound
    return parts


def compare(batch: Batch, name: str, data: Array, x: Callable[[Any], Any], axis: Any,
            keepdims: bool = False) -> None:
    """Add one reduction of the data, which `x` makes an array, to the batch."""
    options = {"keepdims": True} if keepdims else {}
    batch.same(f"{name} of {data.dtype}{data.shape} axis={axis} keepdims={keepdims}",
               lambda m: getattr(m, name)(x(m), axis=axis, **options),
               bound=bound_of(name, data, axis, **options), zero_signs=False)


@pytest.mark.parametrize("names", ["sum argmin", "prod max any", "mean var min",
                                   "std argmax all count_nonzero"])
def test_a_reduction_over_any_axes_agrees_with_numpy(names: str, xp: ModuleType) -> None:
    # Several to a test: over one space they are one program.
    batch = Batch(xp)
    for shape in SHAPES:
        data = ordinary(1, shape, "float64")
        x = given(data)
        for name, axis, keepdims in covering(
            names.split(), list(axes_of(len(shape))), (False, True), key=(names, shape, HERE),
            allows=lambda name, axis, _: not (takes_one_axis(name) and isinstance(axis, tuple)),
        ):
            compare(batch, name, data, x, axis, keepdims)
    batch.check()


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_reduces_to_numpys_dtype_and_value(dtype: str, xp: ModuleType) -> None:
    batch = Batch(xp)
    for shape, axes in (((67,), (None,)), ((5, 33), (0, -1)), ((0,), (None,)), ((), (None,))):
        data = ordinary(1, shape, dtype)
        x = given(data)
        for name, axis in itertools.product(REDUCTIONS, axes):
            compare(batch, name, data, x, axis)
    batch.check()


@pytest.mark.parametrize("dtype", DTYPES)
def test_long_arrays_reduce_like_short_ones(dtype: str, xp: ModuleType) -> None:
    batch = Batch(xp)
    # How work is cut depends on the size of an element only: one dtype of each size gets them all.
    shapes = ((LONG,), (100, 100), (10, 1000), (1000, 10), (5000, 2))
    if dtype not in ("int8", "int16", "float32", "float64", "complex128"):
        shapes = shapes[:2]
    for character in ("small", "unit") if dtype in (*FLOATS, *COMPLEXES) else ("small",):
        flat = ordinary(2, LONG, dtype, character)
        names = [name for name in REDUCTIONS  # a product of floats overflows
                 if name != "prod" or dtype not in (*FLOATS, *COMPLEXES)]
        for shape, name, axis in covering(
            shapes, names, (None, 0, -1), key=(dtype, HERE),
            allows=lambda shape, _, axis: axis is None or len(shape) > 1,
        ):
            data = flat[:math.prod(shape)].reshape(shape)
            x = given(data)
            batch.same(f"{name} {shape} axis={axis} {character}",
                       lambda m, n=name, x=x, a=axis: getattr(m, n)(x(m), axis=a),
                       bound=bound_of(name, data, axis))
        batch.check()  # the other data then need no other program


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_infinity_and_signed_zeros_reduce_as_under_numpy(dtype: str, xp: ModuleType) -> None:
    values = hostile(dtype)
    rows = [values, values[np.isfinite(values)], values[~np.isnan(values)], values[:1], -values[:1],
            np.array([np.nan, 1, np.nan, 0], dtype), np.array([np.inf, -np.inf], dtype),
            np.array([0.0, -0.0], dtype), np.array([3, 3, np.inf, 1, np.inf], dtype)]
    batch = Batch(xp)
    for number, row in enumerate(rows):
        for data, axis in ((row, None), (np.tile(row, (3, 1)), 1),
                           (np.tile(row, (3, 1)).T.copy(), 0)):
            x = given(data)
            for name in REDUCTIONS:
                batch.same(f"{name} of row {number} axis={axis}",
                           lambda m, n=name, x=x, a=axis: getattr(m, n)(x(m), axis=a),
                           bound=bound_of(name, data, axis), inputs=[])
        batch.check()  # another row of such a length then needs no other program


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap_and_find_their_extremes_as_under_numpy(dtype: str, xp: ModuleType) -> None:
    data = np.tile(hostile(dtype), 5)
    x, rows = given(data), given(data.reshape(5, -1))
    batch = Batch(xp)
    for name in ("sum", "prod", "min", "max", "argmin", "argmax", "any", "all", "count_nonzero"):
        batch.same(name, lambda m, n=name: getattr(m, n)(x(m)))
        batch.same(f"{name} of rows", lambda m, n=name: getattr(m, n)(rows(m), axis=0))
    batch.check()


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_complex_order_is_by_real_then_imaginary_part(dtype: str,
                                                                xp: ModuleType) -> None:
    values = hostile(dtype)
    data = values[~np.isnan(values)]
    batch = Batch(xp)
    for name in ("min", "max", "argmin", "argmax"):
        batch.same(name, lambda m, n=name: getattr(m, n)(m.array(data)), zero_signs=False)
        batch.same(f"{name} in pairs", lambda m, n=name: getattr(m, n)(
            m.array(data[:100].reshape(2, 50)), axis=0), zero_signs=False)
        batch.same(f"{name} with NaN", lambda m, n=name: m.isnan(getattr(m, n)(m.array(values))))
    batch.check()


def test_the_first_of_equal_extremes_is_found(xp: ModuleType) -> None:
    batch = Batch(xp)
    data = np.zeros(LONG, "float32")
    data[[77, 5000, 9999]] = 1
    data[[123, 6000]] = np.nan
    for values in (data, np.nan_to_num(data), -np.nan_to_num(data), np.ones(LONG, "int8")):
        for name in ("argmin", "argmax"):
            batch.same(name, lambda m, n=name, v=values: getattr(m, n)(m.array(v)))
            batch.same(f"{name} of columns", lambda m, n=name, v=values: getattr(m, n)(
                m.array(v[:10_000].reshape(100, 100)), axis=0))
    batch.check()


@pytest.mark.parametrize("name", ["sum", "prod", "mean"])
def test_dtype_says_in_what_a_sum_is_done(name: str, xp: ModuleType) -> None:
    batch = Batch(xp)
    for dtype in ("bool", "int8", "uint64", "float16", "float32", "complex64"):
        data = ordinary(3, (3, 4), dtype, "positive")
        for wanted in ("bool", "int8", "int64", "float16", "float64", "complex128"):
            if np.dtype(wanted).kind in "biu" and np.dtype(dtype).kind in "fc":
                continue
            batch.same(f"{name} of {dtype} in {wanted}",
                       lambda m, d=data, w=wanted: getattr(m, name)(m.array(d), axis=1, dtype=w),
                       bound=bound_of(name, data, 1, dtype=wanted))
    batch.check()


def test_initial_enters_the_reduction(xp: ModuleType) -> None:
    batch = Batch(xp)
    for dtype in ("int32", "float32", "float64", "uint8", "bool"):
        for shape in ((5,), (0,), (3, 0)):
            data = ordinary(4, shape, dtype)
            for name in ("sum", "prod", "min", "max"):
                for initial in (0, 3, 2.0, -7):
                    batch.same(f"{name} {dtype} {shape} initial={initial}",
                               lambda m, n=name, d=data, i=initial: getattr(m, n)(
                                   m.array(d), initial=i), ulp=4)
    batch.check()


def test_an_initial_value_stands_for_slices_of_nan(
    xp: ModuleType, setting: Callable[..., None]
) -> None:
    """So nobody is warned of them, nor is it looked for them on the host."""
    setting(host_us=50)
    data = np.array([[np.nan, np.nan], [np.nan, 3]])
    before = 0 if xp is np else xp.stats()["fallbacks"]
    batch = Batch(xp)
    for name, start in (("nanmax", -1.0), ("nanmin", 9.0)):
        for axis in (None, 0, 1):
            batch.same(f"{name} {axis}", lambda m, n=name, s=start, a=axis: getattr(m, n)(
                m.asarray(data), axis=a, initial=s))
        batch.same(f"{name} where", lambda m, n=name, s=start: getattr(m, n)(
            m.asarray(data), axis=0, initial=s, where=np.array([True, False])))
    batch.check()
    assert xp is np or xp.stats()["fallbacks"] == before


def test_where_says_which_elements_count(xp: ModuleType) -> None:
    batch = Batch(xp)
    data, mask = ordinary(5, (4, 6), "float64"), ordinary(6, (4, 6), "bool")
    mask[2] = False
    x = given(data)
    masks = [(chosen, given(chosen)) for chosen in (mask, mask[0], np.array(False))]
    for name in ("sum", "prod", "any", "all", "mean", "var", "std"):
        for axis in (None, 0, 1):
            for chosen, where in masks:
                batch.same(f"{name} axis={axis} mask {chosen.shape}",
                           lambda m, n=name, a=axis, w=where: getattr(m, n)(
                               x(m), axis=a, where=w(m)),
                           bound=bound_of(name, data, axis, where=chosen))
    for name in ("min", "max"):
        batch.same(f"{name} needs initial", lambda m, n=name: getattr(m, n)(
            m.array(data), where=m.array(mask)))
        batch.same(name, lambda m, n=name: getattr(m, n)(
            m.array(data), axis=1, where=m.array(mask), initial=2))
    batch.check()


@pytest.mark.parametrize("name", ["var", "std"])
def test_ddof_divides_by_fewer(name: str, xp: ModuleType) -> None:
    batch = Batch(xp)
    for dtype in ("bool", "int16", *FLOATS, *COMPLEXES):
        data = ordinary(7, (5, 3), dtype, "unit")
        x = given(data)
        for ddof in (0, 1, 2, 3, 4):
            for axis in (None, 0, 1):
                batch.same(f"{name} {dtype} ddof={ddof} axis={axis}",
                           lambda m, x=x, f=ddof, a=axis: getattr(m, name)(
                               x(m), axis=a, ddof=f),
                           bound=bound_of(name, data, axis, ddof=ddof))
    batch.check()


def test_methods_and_functions_are_the_same(xp: ModuleType) -> None:
    batch = Batch(xp)
    data = ordinary(8, (3, 4), "float32")
    for name in REDUCTIONS[:-1]:
        batch.same(f".{name}()", lambda m, n=name: getattr(m.array(data), n)(), ulp=4)
        batch.same(f".{name}(0)", lambda m, n=name: getattr(m.array(data), n)(0), ulp=4)
        batch.same(f"np.{name}(list)", lambda m, n=name: getattr(m, n)([[1, 2], [3, 4]]), ulp=4)
    for name in ("amin", "amax", "ptp", "nansum", "nanmax", "median", "average"):
        batch.same(f"np.{name}", lambda m, n=name: getattr(m, n)(m.array(data)), ulp=4)
    batch.check()


def test_out_takes_the_result(xp: ModuleType) -> None:
    data = ordinary(9, (4, 5), "float32")

    def call(m: ModuleType, name: str, dtype: str) -> Any:
        out = m.zeros(5, dtype)
        returned = getattr(m, name)(m.array(data), axis=0, out=out)
        assert returned is out
        return out

    batch = Batch(xp)
    for name in ("sum", "max", "mean", "any", "argmax"):
        for dtype in ("float32", "float64", "int64", "bool", "float16"):
            batch.same(f"{name} into {dtype}", lambda m, n=name, d=dtype: call(m, n, d), ulp=4)
    batch.check()


# Where the elements lie is the same question of every reduction and dtype: one shape gets more.
@pytest.mark.parametrize(("shape", "dtype", "names"), [
    ((7,), "float64", "sum argmin"), ((6, 9), "float64", "sum argmin max any"),
    ((6, 9), "int16", "sum argmin max any"), ((3, 4, 5), "float64", "sum argmin")], ids=str)
def test_views_reduce_like_arrays(shape: tuple[int, ...], dtype: str, names: str,
                                  xp: ModuleType) -> None:
    batch = Batch(xp)
    data = ordinary(10, shape, dtype)
    x = given(data)
    for name, (label, key), axis in covering(
        names.split(), list(layouts(data)), (None, 0, -1), key=(shape, dtype, HERE)
    ):
        batch.same(f"{name} {dtype} {shape} {label} axis={axis}",
                   lambda m, n=name, k=key, a=axis: getattr(m, n)(
                       x(m).T if k is None else x(m)[k], axis=a))
    batch.check()


def test_broadcast_arrays_reduce_like_arrays(xp: ModuleType) -> None:
    batch = Batch(xp)
    x = given(ordinary(11, (5, 1), "float32"))
    for name in ("sum", "max", "any"):
        batch.same(name, lambda m, n=name: getattr(m, n)(
            m.broadcast_to(x(m), (3, 5, 4)), axis=(0, 2)))
    batch.check()


def test_what_is_reduced_may_be_an_expression(xp: ModuleType) -> None:
    a, b = ordinary(12, (40, 50), "float64"), ordinary(13, 50, "float64")
    batch = Batch(xp)
    batch.same("sum of squares", lambda m: (m.array(a) ** 2).sum(axis=1))
    batch.same("broadcast operand", lambda m: (m.array(a) - m.array(b)).max(axis=0))
    batch.same("of a comparison", lambda m: (m.array(a) > m.array(b)).sum(axis=0))
    batch.same("of a view of an expression", lambda m: (m.array(a) * 2)[::2, ::-3].sum(axis=0))
    batch.same("reduction of a reduction", lambda m: m.array(a).sum(axis=0).max())
    batch.same("normalised", lambda m: m.array(a) - m.array(a).max(axis=1, keepdims=True))
    batch.same("of a source", lambda m: m.arange(1000).sum())
    batch.same("two at once", lambda m: (lambda x: (x.min(), x.max(), x.sum(0)))(m.array(a)))
    batch.same("of a constant", lambda m: m.ones((3, 1000)).sum(axis=1))
    batch.check()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_float_sum_is_as_accurate_as_numpys_pairwise_sum(dtype: str,
                                                                  xp: ModuleType) -> None:
    data = ordinary(14, 1_000_003, dtype, "positive")
    exact = math.fsum(data.tolist())
    numpys = abs(float(data.sum()) - exact)
    ours = abs(float(xp.array(data).sum()) - exact)
    one = float(np.spacing(np.dtype(dtype).type(exact)))
    assert ours <= max(2 * numpys, 4 * one), f"{ours / one:.1f} units off, NumPy {numpys / one:.1f}"


def test_a_sum_is_the_same_on_every_run(xp: ModuleType) -> None:
    data = ordinary(15, 300_001, "float32", "unit")
    sums = {host(xp.array(data).sum()).tobytes() for _ in range(5)}
    assert len(sums) == 1


def test_reductions_give_0d_results_that_are_numbers(xp: ModuleType) -> None:
    total = xp.array(ordinary(16, 10, "float64")).sum()
    assert total.shape == ()
    assert total.ndim == 0
    assert isinstance(float(total), float)
    kept = total
    total += 1
    assert float(total) == float(kept) + 1, "the name is bound anew, the old sum stays"


def test_averages_with_weights_of_many_elements_are_numpys(xp: ModuleType) -> None:
    random = np.random.default_rng(5)
    data = random.integers(-8, 9, (400, 300)).astype("float32")
    weights = random.integers(1, 5, data.shape).astype("int16")
    batch = Batch(xp)
    for axis in (None, 0):
        for turn in (lambda a: a, lambda a: a.T):
            batch.same(f"along {axis}", lambda m, t=turn, a=axis: m.average(
                t(m.asarray(data)), axis=a, weights=t(m.asarray(weights))))
    batch.same("in another order, by truth", lambda m: m.average(
        m.asarray(data)[::-1, ::2], axis=-1, weights=m.asarray(weights)[:, ::2] > 2, keepdims=True))
    batch.check()


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "complex64", "bool"])
@pytest.mark.parametrize("shape", [(70_001,), (37, 333), (40, 256), (400, 72)], ids=str)
def test_stores_beside_a_fold_bypass_caches_at_any_row_start(
    xp: ModuleType, dtype: str, shape: tuple[int, ...]
) -> None:
    values = np.random.default_rng(3).integers(-3, 9, shape).astype(dtype)

    def program(a: Any, b: Any, first: int, fold: str, axis: int | None) -> tuple[Any, Any]:
        part = (..., slice(first, None))
        b[part] = a[part] | b[part] if dtype == "bool" else a[part] * 2
        return b, getattr(b[part], fold)(axis=axis)

    with xp.config.override(stream_bytes=0, debug=True, host_us=0):
        for first, fold, axis in covering(
            (0, 1, 3), ("sum", "max", "argmax"), (None, -1, 0), key=(dtype, shape, HERE)
        ):
            expected = program(values, np.ones(shape, dtype), first, fold, axis)
            a, b = xp.array(values), xp.ones(shape, dtype)
            xp.evaluate(a, b)
            found = program(a, b, first, fold, axis)
            xp.evaluate(*found)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-4)


def test_a_fold_in_pieces_stores_past_the_caches(xp: ModuleType) -> None:
    a, b = xp.ones(100_001), xp.zeros(100_001)
    xp.evaluate(a, b)
    b[1:] = a[1:] * 2
    with xp.config.override(stream_bytes=0, host_us=0):
        first = xp.explain(b, b[1:].sum()).kernels[0]
        assert ("STREAM(" in first.source) == (xp.get_device().traits.schedule == "cpu")
        assert float(b[1:].sum()) == 200_000


def test_folds_of_halves_are_rounded_once_whatever_follows(xp: ModuleType) -> None:
    """NumPy adds them up as floats, and makes a half of the result."""
    data = np.random.default_rng(5).integers(0, 17, (3, 60_000)).astype(np.float16) / 8
    few = np.full((3, 40), 4000, np.float16)
    with xp.config.override(host_us=0), np.errstate(over="ignore"):
        for made in (data[0], data, np.asfortranarray(data), few, few[0]):
            for axis in (None, -1):
                exact = made.sum(axis=axis, dtype=np.float64)
                rounded = np.asarray(exact).astype(np.float16)
                np.testing.assert_array_equal(xp.asarray(made).sum(axis=axis), rounded)
                np.testing.assert_array_equal(xp.sqrt(xp.asarray(made).sum(axis=axis)),
                                              np.sqrt(rounded))
