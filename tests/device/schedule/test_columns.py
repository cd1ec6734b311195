"""Reductions, row programs and scans down columns: strips side by side, pieces, narrow rows.

The shapes are those at which the kernels change: narrow rows that are walked as wider ones, with
rows left over; rows of whole vectors with single columns left over; axes in the middle; columns so
few that their rows are split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import Batch, given, host
from tests.support.hostile import hostile, ordinary

SHAPES = (((5471, 3), 0), ((1031, 20), 0), ((515, 131), 0), ((7, 263, 20), 1), ((17, 2003), 0))
# How work is cut depends on the size of an element only: one dtype of each size gets all shapes.
DTYPES = {"float32": SHAPES, "float64": SHAPES, "float16": SHAPES, "int8": SHAPES,
          "uint64": SHAPES[::2], "bool": SHAPES[::2], "complex64": SHAPES[::2]}


@pytest.fixture(autouse=True, params=["cpu", "gpu"])
def schedule(request: pytest.FixtureRequest, xp: ModuleType) -> Iterator[None]:
    """Every test under both schedules."""
    if xp is np:
        yield
        return
    with xp.config.override(schedule=request.param, debug=True):
        yield


def whole_numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    """Small whole numbers, whose sums no rounding touches, and here and there a special column."""
    data = np.random.default_rng(3).integers(0, 4, shape).astype(dtype)
    if dtype == "float16":
        data[np.arange(shape[0]) % 8 > 0] = 0  # no sum leaves the whole numbers that it knows
    if data.dtype.kind in "fc":
        data[..., 1::7] *= -1
        data[shape[0] // 2, ..., 0] = np.nan
        data[1, ..., -1] = np.inf
    elif data.dtype.kind in "iu":
        data[..., ::5] += np.iinfo(dtype).max  # wraps around
    return data


AFTER_FOLDS: dict[str, Callable[[ModuleType, Any], Any]] = {
    "a number of its dtype": lambda m, x: x.max(-2) * x.dtype.type(3),
    "numbers of choices": lambda m, x: m.where(
        (x != 0).all(-2), 2, m.where(x.any(-2), x.max(-2), 1)),
    "true": lambda m, x: m.logical_xor(x.any(-2), True),
    "a comparison with true": lambda m, x: (x > 0).any(-2) == m.True_,
    "the index of the column": lambda m, x: x.max(-2) + m.arange(x.shape[-1]) % 3,
    "another index": lambda m, x: m.where(
        m.arange(x.shape[0])[:, None] % 2 == 0, x.max(-2), x.min(-2)),
    "both indices": lambda m, x: (
        (x != 0).sum(-2) * m.arange(x.shape[-1]) + 3 * m.arange(x.shape[0])[:, None]),
}


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64"])
def test_numbers_and_indices_behind_column_folds_are_numpys(
    dtype: str, xp: ModuleType
) -> None:
    batch = Batch(xp)
    for shape in ((515, 131), (3, 41, 64)):
        data = whole_numbers(shape, dtype)
        for name, function in AFTER_FOLDS.items():
            if len(shape) == 3 or "ind" not in name:
                batch.same(f"{name} {shape}", lambda m, f=function, d=data: f(m, m.asarray(d)))
    batch.check()


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_reduction_down_columns_is_numpys(dtype: str, xp: ModuleType) -> None:
    batch = Batch(xp)
    for shape, axis in DTYPES[dtype]:
        x = given(whole_numbers(shape, dtype))
        for name in ("sum", "max", "min", "all", "argmax"):
            batch.same(f"{name} {dtype} {shape}", lambda m, n=name, x=x, a=axis:
                       getattr(x(m), n)(a), zero_signs=False)
        if dtype == "int8":
            batch.same(f"prod {shape}", lambda m, x=x, a=axis: x(m).prod(a))
        batch.same(f"view {dtype} {shape}", lambda m, x=x, a=axis:
                   x(m)[::-1, ..., ::-1].argmin(a))
    batch.check()


def test_a_step_down_of_several_rows_leaves_none_out(xp: ModuleType) -> None:
    batch = Batch(xp)
    for shape in ((21, 131), (150, 67)):  # 8 rows a step; a pause in which totals are kept
        data = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 97
        weights = np.arange(shape[0], dtype=np.float32)[:, None] % 5
        x, w = given(data), given(weights)
        for name in ("sum", "argmax"):
            batch.same(f"{name} {shape}", lambda m, n=name, x=x, w=w:
                       getattr(x(m) * w(m), n)(0))
    batch.check()


def test_special_values_of_a_column_stay_in_it(xp: ModuleType) -> None:
    batch = Batch(xp)
    special = hostile("float32")
    data = np.ones((2048, len(special)), np.float32)
    data[1000] = special
    data[1999, ::2] = special[::2]
    for shape in (data.shape, (4, 512, len(special))):
        x, axis = given(data.reshape(shape)), len(shape) - 2
        for name in ("max", "min", "any", "argmin", "argmax"):
            batch.same(f"{name} {shape}", lambda m, n=name, x=x, a=axis:
                       getattr(x(m), n)(a))
    zeros = np.full((20_001, 2), -0.0, np.float32)
    batch.same("negative zeros", lambda m: m.asarray(zeros).sum(0))
    batch.same("of nothing", lambda m: m.zeros((0, 5)).sum(0))
    batch.same("of one", lambda m: m.full((1, 5), np.nan).max(0))
    batch.check()


@pytest.mark.parametrize("shape", [(9001, 3), (4201, 67), (3, 9000, 8)])
def test_spreads_of_long_columns_are_as_accurate_as_two_passes(
    shape: tuple[int, ...], xp: ModuleType
) -> None:
    axis = len(shape) - 2
    for dtype, rtol in (("float32", 1e-6), ("float64", 3e-15)):
        data = np.random.default_rng(8).standard_normal(shape) * 3 + 10
        data = data.astype(dtype)
        data[..., 100, 1] = np.inf
        data[..., 200, 2] = np.nan
        exact = data.astype(np.longdouble)
        x = xp.asarray(data)
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(host(x.var(axis)), exact.var(axis), rtol=rtol)
            np.testing.assert_allclose(host(x.mean(axis)), exact.mean(axis), rtol=rtol)


def softmax(m: Any, a: Any) -> Any:
    powers = m.exp(a - a.max(0))
    return powers / powers.sum(0)


def centred_in_place(m: Any, a: Any) -> Any:
    a -= a.mean(0)
    a[1:] *= 2
    return a, a.std(0)


def ranked(m: Any, a: Any) -> Any:
    return m.abs(a - a.mean(0)).argmax(0), (a > a.mean(0)).sum(0)


@pytest.mark.parametrize("program", [softmax, centred_in_place, ranked])
def test_programs_down_columns_agree_with_numpy(
    xp: ModuleType, program: Callable[..., Any]
) -> None:
    for shape, dtype in (((500, 149), "f4"), ((1500, 67), "f8"), ((70, 300), "f4")):
        data = np.random.default_rng(5).standard_normal(shape).astype(dtype)
        data[20, 3] = np.nan
        data[30, 5] = np.inf
        with np.errstate(invalid="ignore"):
            expected = program(np, data.copy())
        actual = program(xp, xp.array(data))
        pairs = list(zip(expected, actual, strict=True)) if isinstance(expected, tuple) else [
            (expected, actual)]
        if xp is not np:
            xp.evaluate(*(got for _, got in pairs))
        for want, got in pairs:
            got = host(got)
            assert got.dtype == want.dtype
            if want.dtype.kind == "i":
                np.testing.assert_array_equal(got, want)
            else:
                tolerance = 2e-5 if dtype == "f4" else 1e-13
                np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def test_scans_down_columns_are_numpys(xp: ModuleType) -> None:
    batch = Batch(xp)
    for name, dtype in (("add", "float32"), ("add", "float16"), ("maximum", "float64"),
                        ("multiply", "float32"), ("logical_or", "bool"), ("add", "int8")):
        for shape, axis in (((5471, 5), 0), ((3, 1031, 20), 1), ((40_000, 67), 0), ((300, 131), 0)):
            data = whole_numbers(shape, dtype)
            if dtype == "float16":
                data = np.minimum(data, 1) * np.float16(0.25)
            if shape[0] == 40_000 and dtype not in ("float32", "bool"):
                continue
            batch.same(f"{name} {dtype} {shape}", lambda m, n=name, d=data, a=axis:
                       getattr(m, n).accumulate(m.asarray(d), a), zero_signs=False)
    batch.check()


@pytest.mark.parametrize("schedule", ["cpu"], indirect=True)
def test_standardized_columns_are_read_twice_and_written_once(
    xp: ModuleType, planned_for: Callable[..., None]
) -> None:
    planned_for("cpu")
    data = ordinary(1, (40_000, 64), "float32")
    x = xp.asarray(data)
    result = (x - x.mean(0)) / x.std(0)
    plan = xp.explain(result)
    assert len(plan.kernels) == 3
    moved = sum(kernel.nbytes for kernel in plan.kernels)
    assert 3 * data.nbytes <= moved < 3.05 * data.nbytes
    wanted = data.astype("f8")
    wanted = (wanted - wanted.mean(0)) / wanted.std(0)
    np.testing.assert_allclose(host(result), wanted, rtol=1e-5, atol=1e-5)


def test_what_is_the_same_in_every_row_is_made_once(xp: ModuleType) -> None:
    batch = Batch(xp)

    def from_own_row(m: Any, data: Any) -> Any:
        a = m.array(data)
        a -= a[5]
        a[:] = a[::-1] + a[-1]
        return a

    for dtype in ("float32", "int16", "float16"):
        data = whole_numbers((3001, 67), dtype)
        row = hostile(dtype)[:67] if dtype != "int16" else np.arange(-33, 34, dtype=dtype)
        row = np.resize(row, 67)
        batch.same(f"{dtype} chosen", lambda m, d=data, r=row: m.where(
            m.asarray(r) > 0, m.asarray(d), m.asarray(r) * m.arange(67, dtype=d.dtype)))
        batch.same(f"{dtype} taken", lambda m, d=data, r=row: m.asarray(d) * m.asarray(r)[::-1] + (
            m.asarray(d)[:, :1] - m.asarray(r)[m.arange(67) % 5]))
        batch.same(f"{dtype} own row", lambda m, d=data: from_own_row(m, d))
    batch.check()
    data = ordinary(3, (9000, 64), "float32")
    row = xp.asarray(data[7])
    result = xp.asarray(data) / (row * row)
    if xp.config.settings.schedule == "cpu":
        (kernel,) = xp.explain(result).kernels
        before, rows = kernel.source.split("unit = first; unit < last")
        loads = "vload" if not xp.get_device().traits.whole_vectors else "*)("
        assert before.count(loads) == 1
        assert rows.count(f"= {loads}" if loads == "vload" else "= (*(") == 1
    np.testing.assert_array_equal(host(result), data / (data[7] * data[7]))
