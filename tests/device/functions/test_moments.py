"""Squared distances from the means of rows, which one pass around a guess of the mean adds up.

The guess is what the means of the two rows before the last one suggest, so the data here are rows
that such a guess suits, rows that it does not, and rows after ones that have no mean. Columns guess
from their own ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse.engine.evaluate import forget_plans

ROWS, COLUMNS = 1300, 300
GUESSED = "int fits"
"""What a kernel says that makes one pass."""


def sources(xp: ModuleType, lazy: Any) -> str:
    return "\n".join(kernel.source for kernel in xp.explain(lazy).kernels)


def tables(dtype: str) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Rows of spread 1 and less, by what their means do."""
    rng = np.random.default_rng(11)
    noise = rng.standard_normal((ROWS, COLUMNS))
    number = np.arange(ROWS)[:, None]
    yield "the same", noise
    yield "rising", noise + number
    yield "rising ever faster", noise + number**2
    yield "far off", noise + 1000
    yield "up and down", noise + 1000 * (number % 2)
    yield "steps", noise + 1000 * (number // 100)
    yield "single jumps", noise + 1000 * (number % 97 == 0)
    yield "no spread", np.full((ROWS, COLUMNS), 0.25) + number % 3
    yield "ramps", number * COLUMNS + np.arange(COLUMNS)
    wide = noise.copy()
    wide[::50, 0] = 1e6
    yield "single large values", wide


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_variances_of_rows_do_not_depend_on_rows_before(
    dtype: str, xp: ModuleType
) -> None:
    bound = 40 * np.finfo(dtype).eps
    for name, table in tables(dtype):
        data = table.astype(dtype)
        exact = data.astype(np.longdouble)
        # The mean is rounded to the dtype, by NumPy's own as well; its error counts squared.
        slack = (2 * np.finfo(dtype).eps * np.abs(exact).max(1)) ** 2
        actual = np.asarray(xp.asarray(data).var(1))
        wrong = np.abs(actual - exact.var(1)) > bound * exact.var(1) + slack
        assert not wrong.any(), (name, int(wrong.argmax()))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_without_a_mean_do_not_disturb_the_rows_after_them(
    dtype: str, xp: ModuleType
) -> None:
    data = np.random.default_rng(12).standard_normal((ROWS, COLUMNS)).astype(dtype)
    most = np.finfo(dtype).max
    for row, value in ((100, np.inf), (200, -np.inf), (300, np.nan), (400, most), (500, -most)):
        data[row, 7] = value
    data[600], data[601, ::2], data[602] = most / 4, -most / 4, np.inf
    lazy = xp.asarray(data)
    with np.errstate(all="ignore"):
        expected = data.var(1), data.mean(1), data - data.mean(1, keepdims=True)
    actual = lazy.var(1), lazy.mean(1), lazy - lazy.mean(1, keepdims=True)
    rtol = 100 * np.finfo(dtype).eps
    for wanted, got in zip(expected, actual, strict=True):
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_variance_of_a_long_axis_is_exact_in_unequal_blocks(
    dtype: str, xp: ModuleType
) -> None:
    for name, table in tables(dtype):
        data = np.tile(table.astype(dtype).ravel(), 8)
        exact = data.astype(np.longdouble).var()
        actual = np.asarray(xp.asarray(data).var())
        largest = float(np.abs(data).max())
        slack = (4 * np.finfo(dtype).eps * largest) ** 2
        assert abs(actual - exact) <= 40 * np.finfo(dtype).eps * exact + slack, name


def test_only_distances_from_what_the_sum_is_of_are_guessed(xp: ModuleType) -> None:
    rng = np.random.default_rng(13)
    data, other = rng.random((2, ROWS, COLUMNS))
    x, y = xp.asarray(data), xp.asarray(other)

    def about(values: Any, mean: Any) -> Any:
        return ((values - mean[:, None]) ** 2).sum(1)

    for lazy, expected, guessed in (
        (x.var(1), data.var(1), True),
        ((x * y + 1).var(1), (data * other + 1).var(1), False),  # stored by the first phase
        (about(x, x.sum(1) / 5.0), about(data, data.sum(1) / 5), True),
        (about(x, x.sum(1) / 7.0), about(data, data.sum(1) / 7), True),
        (about(y, x.sum(1) / 300.0), about(other, data.sum(1) / 300), False),
        (about(x, (x * x).sum(1)), about(data, (data * data).sum(1)), False),
        (about(x, x.max(1)), about(data, data.max(1)), False),
    ):
        guessed = guessed and xp.get_device().traits.schedule == "cpu"
        assert (GUESSED in sources(xp, lazy)) == guessed
        np.testing.assert_allclose(np.asarray(lazy), expected, rtol=1e-12)


def near_misses(np: ModuleType, x: Any, y: Any, whole: Any, f: Any) -> Iterator[tuple[Any, bool]]:
    """What is added up around means of rows, and whether it is their squared distances."""
    mean = x.mean(1)[:, None]
    yield (x * 2.5 + 1).var(1), True
    yield ((x * 2.5 - (x * 2.5).mean(1)[:, None]) ** 2).sum(1), True
    yield (x * np.arange(float(COLUMNS))).var(1), False  # recorded: nobody looks at indices
    yield f.var(1), True
    yield ((mean - x) ** 2).sum(1), False
    yield ((x + mean) ** 2).sum(1), False
    yield (x - mean).max(1), False
    yield np.abs(x - mean).sum(1), False
    yield ((x - mean) ** 3).sum(1), False
    yield ((x - mean) * (y - mean)).sum(1), False
    yield ((x - mean) ** 2).sum(1) + ((y - mean) ** 2).sum(1), False
    yield ((x - mean) ** 2).sum(1) + (x - mean).max(1), False
    yield ((x * 2.5 - (x * 3.5).mean(1)[:, None]) ** 2).sum(1), False
    yield ((x[:, ::-1] - mean) ** 2).sum(1), False
    yield np.where(x > 0.5, x, y).var(1), False
    yield whole.var(1), False
    yield ((f - f.mean(1, dtype="f8")[:, None]) ** 2).sum(1), False
    yield ((f - f.mean(1)[:, None]) ** 2).sum(1, dtype="f8"), False


def test_what_is_nearly_a_squared_distance_is_computed_as_it_is(
    xp: ModuleType,
) -> None:
    x, y = np.random.default_rng(14).random((2, ROWS, COLUMNS))
    operands = x, y, (x * 100).astype(np.int32), x.astype(np.float32)
    is_cpu = xp.get_device().traits.schedule == "cpu"
    wanted = near_misses(np, *operands)
    with xp.config.override(host_us=0):
        found = list(near_misses(xp, *map(xp.asarray, operands)))
    for number, (lazy, guessed) in enumerate(found):
        assert (GUESSED in sources(xp, lazy)) == (guessed and is_cpu), number
        is_single = lazy.dtype == np.float32 or number >= len(found) - 2  # the mean is
        rtol = 1e-4 if is_single else 1e-10
        np.testing.assert_allclose(np.asarray(lazy), next(wanted)[0], rtol, err_msg=str(number))


def even(dtype: str) -> int:
    """Columns that are strips of eight vectors, whose accumulators are registers."""
    return 4096 // np.dtype(dtype).itemsize


def columns(dtype: str) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Tables whose columns are what `tables` has for rows, and some that only columns find hard."""
    for name, table in tables(dtype):
        yield name, np.ascontiguousarray(table.T)
        yield name, np.ascontiguousarray(table.T[:, : even(dtype)])
    rng = np.random.default_rng(15)
    noise = rng.standard_normal((COLUMNS, even(dtype)))
    number = np.arange(COLUMNS)[:, None]
    yield "rising, in pieces", noise + 10 * number
    yield "other first elements", noise + 100 * (number < 16)
    inner = (number >= 10) & (number < COLUMNS - 10)
    yield "other elements at both ends", noise + 100 * ~inner
    constant = noise.copy()
    constant[:, 5], constant[:, 6] = 0.1, 1e12
    yield "some are constant", constant


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_variances_of_columns_do_not_depend_on_their_ends(
    dtype: str, xp: ModuleType
) -> None:
    eps = float(np.finfo(dtype).eps)
    for name, table in columns(dtype):
        data = table.astype(dtype)
        exact = data.astype(np.longdouble)
        # What the mean is off counts squared; NumPy's own is off by up to 24 eps here.
        slack = (8 * eps * np.abs(exact).max(0)) ** 2
        device = xp.asarray(data)
        for lazy in (device, xp.asarray(np.ascontiguousarray(data[::-1, ::-1]))[::-1, ::-1]):
            wanted = exact.var(0)
            off = np.abs(np.asarray(lazy.var(0)) - wanted)
            wrong = (off > 40 * eps * wanted + slack) & (off > np.abs(data.var(0) - wanted))
            assert not wrong.any(), (name, int(wrong.argmax()))
            np.testing.assert_allclose(
                np.asarray(lazy.mean(0)), exact.mean(0).astype(dtype), rtol=64 * eps, atol=64 * eps
            )


@pytest.mark.parametrize("shape", [(ROWS, COLUMNS), (COLUMNS, ROWS), (40 * ROWS,), (3, 9000, 7)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_small_deviations_from_a_large_mean_keep_their_digits(
    dtype: str, shape: tuple[int, ...], xp: ModuleType
) -> None:
    eps = float(np.finfo(dtype).eps)
    noise = np.random.default_rng(18).standard_normal(shape)
    for mean, spread in ((1e3, 1), (1e6, 1), (1e4, 1e-3), (1e12, 1)):
        data = (mean + spread * noise).astype(dtype)
        exact = data.astype(np.longdouble)
        for axis in range(-1, data.ndim - 1):
            wanted = exact.var(axis)
            off = np.abs(np.asarray(xp.asarray(data).var(axis)) - wanted)
            slack = 40 * eps * wanted + (16 * eps * np.abs(exact).max()) ** 2
            assert (off <= slack).all(), (mean, spread, axis, float((off / wanted).max()))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_whole_numbers_beside_a_variance_are_whole(
    axis: int, dtype: str, xp: ModuleType
) -> None:
    rng = np.random.default_rng(19)
    for most in (2, 10, 250):
        data = rng.integers(0, most, (4 * COLUMNS, ROWS)[:: 1 - 2 * axis]).astype(dtype)
        lazy = xp.asarray(data)
        total, mean, variance = lazy.sum(axis), lazy.mean(axis), lazy.var(axis)
        xp.evaluate(total, mean, variance)
        np.testing.assert_array_equal(np.asarray(total), data.sum(axis))
        np.testing.assert_array_equal(np.asarray(mean), data.mean(axis))
        np.testing.assert_allclose(np.asarray(variance), data.astype(float).var(axis), rtol=1e-5)


def test_variances_of_numbers_whose_sum_overflows_are_as_numpys(xp: ModuleType) -> None:
    data = np.random.default_rng(20).uniform(1e36, 1e38, (ROWS, 70)).astype(np.float32)
    data[:, 1] *= -1
    data[:, 2] *= 1e-20
    data[7, 3], data[8, 4], data[9, 5] = np.inf, -np.inf, np.nan
    with np.errstate(all="ignore"):
        expected = data.var(0)
        flat = np.ascontiguousarray(data[:, :2].T).repeat(60, 1)
        for lazy, wanted in (
            (xp.asarray(data).var(0), expected),
            (xp.asarray(flat).var(1), flat.var(1)),
            (xp.asarray(flat[0]).std(), flat[0].std()),
        ):
            np.testing.assert_allclose(np.asarray(lazy), wanted, rtol=1e-5)


WIDE = {"vector_bytes": 64, "light_vector_bytes": 64}
"""Vectors with which a unit's accumulators are registers, so that one pass is made; of 32 bytes,
which a processor may ask for, it is not worth it for all of these."""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_columns_without_a_mean_do_not_disturb_the_others(dtype: str, xp: ModuleType) -> None:
    data = np.random.default_rng(16).standard_normal((COLUMNS, even(dtype))).astype(dtype)
    most = np.finfo(dtype).max
    for column, value in ((10, np.inf), (20, -np.inf), (30, np.nan), (40, most), (255, np.nan)):
        data[(7 * column) % len(data), column] = value
    data[:, 60], data[::2, 61], data[3, 62] = most / 4, -most / 4, np.inf
    lazy = xp.asarray(data)
    with np.errstate(all="ignore"):
        expected = data.var(0), data.mean(0), data.min(0), data.argmax(0)
    device = xp.get_device()
    rtol = 100 * np.finfo(dtype).eps
    for wide in ({}, WIDE) if device.traits.schedule == "cpu" else ({},):
        with device.trying(replace(device.traits, **wide)):
            forget_plans()
            assert not wide or GUESSED in sources(xp, lazy.var(0))
            actual = lazy.var(0), lazy.mean(0), lazy.min(0), lazy.argmax(0)
            for wanted, got in zip(expected, actual, strict=True):
                np.testing.assert_allclose(np.asarray(got), wanted, rtol=rtol, atol=rtol)
    forget_plans()


@pytest.fixture(params=[False, True], ids=["loads as they come", "asks ahead"])
def asking_ahead(request: pytest.FixtureRequest, xp: ModuleType) -> Iterator[None]:
    """The device without and with requests for what comes next, whichever suits its processor."""
    device = xp.get_device()
    traits = replace(device.traits, asks_ahead=request.param)
    if traits.schedule == "cpu":
        traits = replace(traits, **WIDE)
    if traits.schedule == "gpu":  # with many more units sums are made in pieces
        traits = replace(traits, compute_units=132, work_items=1_081_344)
    with device.trying(traits):
        forget_plans()
        yield
    forget_plans()


@pytest.mark.usefixtures("asking_ahead")
@pytest.mark.parametrize("axis", [0, 1])
def test_other_folds_of_the_same_pass_are_made_beside_the_sums(axis: int, xp: ModuleType) -> None:
    rng = np.random.default_rng(17)
    data = rng.standard_normal((1024, 1024)).astype(np.float32)
    data[5, 900], data[900, 5] = np.nan, -np.inf
    data[700:, :] *= 1000  # no guess suits all
    lazy = xp.asarray(data)

    def folds(values: Any) -> tuple[Any, ...]:
        above = values > 0
        return (
            values.min(axis), values.max(axis), values.mean(axis), values.var(axis),
            above.any(axis), values.sum(axis), abs(values).sum(axis),
        )  # fmt: skip

    actual = folds(lazy)
    kernels = xp.explain(*actual).kernels
    assert len(kernels) == 1
    if xp.get_device().traits.schedule == "cpu":
        assert GUESSED in kernels[0].source
    with np.errstate(all="ignore"):
        expected = folds(data.astype(np.float64))
    xp.evaluate(*actual)
    # Partial sums are as large as 10,000, whatever is left of them in the end: some hundred
    # roundings of 1e-3 each, in an order that depends on the width of vectors.
    for wanted, got in zip(expected, actual, strict=True):
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=2e-5, atol=1e-1)
