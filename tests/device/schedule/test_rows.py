"""Row programs: reductions with maps between and after them, in one kernel, on hostile values."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import host

SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e38, -1e38, 1.0]


def softmax(m: Any, a: Any, axis: int) -> Any:
    powers = m.exp(a - a.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def log_softmax(m: Any, a: Any, axis: int) -> Any:
    below = a - a.max(axis, keepdims=True)
    return below - m.log(m.exp(below).sum(axis, keepdims=True))


def layer_norm(m: Any, a: Any, axis: int) -> Any:
    mean = a.mean(axis, keepdims=True)
    variance = ((a - mean) ** 2).mean(axis, keepdims=True)
    return (a - mean) / m.sqrt(variance + 1e-5) * 2 + 1


def standardized(m: Any, a: Any, axis: int) -> Any:
    return (a - a.mean(axis, keepdims=True)) / a.std(axis, keepdims=True)


def unit(m: Any, a: Any, axis: int) -> Any:
    return a / m.sqrt((a * a).sum(axis, keepdims=True))


def farthest(m: Any, a: Any, axis: int) -> Any:
    return m.abs(a - a.mean(axis, keepdims=True)).argmax(axis)


def several(m: Any, a: Any, axis: int) -> Any:
    powers = m.exp(a - a.max(axis, keepdims=True))
    total = powers.sum(axis, keepdims=True)
    above = a > a.mean(axis, keepdims=True)
    return powers, powers / total, total, above.sum(axis), m.where(above, a, total)


PROGRAMS = [softmax, log_softmax, layer_norm, standardized, unit, farthest, several]


def agree(xp: ModuleType, program: Callable[..., Any], a: np.ndarray[Any, Any], axis: int) -> None:
    with np.errstate(all="ignore"):
        expected = program(np, a, axis)
    actual = program(xp, xp.asarray(a), axis)
    if not isinstance(expected, tuple):
        expected, actual = (expected,), (actual,)
    if xp is not np:
        xp.evaluate(*actual)
    rtol = {2: 4e-3, 4: 2e-6, 8: 1e-14}[a.itemsize]
    for want, got in zip(expected, map(host, actual), strict=True):
        assert got.dtype == want.dtype
        scale = np.nanmax(np.abs(np.where(np.isfinite(want), want, 0)), initial=1)
        np.testing.assert_allclose(got, want, rtol=16 * rtol, atol=rtol * float(scale))


@pytest.mark.parametrize("program", PROGRAMS)
def test_rows_and_columns_agree_with_numpy(xp: ModuleType, program: Callable[..., Any]) -> None:
    rng = np.random.default_rng(5)
    for shape, dtype in (((64, 33), "f4"), ((40, 300), "f8"), ((9, 40, 5), "f4"), ((50, 1), "f8")):
        a = rng.standard_normal(shape).astype(dtype) * 3
        for axis in range(len(shape)):
            agree(xp, program, a, axis)


def test_rows_of_special_values_agree_with_numpy(xp: ModuleType) -> None:
    rng = np.random.default_rng(6)
    a = rng.standard_normal((40, 19)).astype("f4")
    a[np.arange(len(SPECIAL)), np.arange(len(SPECIAL))] = SPECIAL
    a[20] = np.inf
    a[21] = 7
    a[22, ::2] = np.nan
    for program in (softmax, log_softmax, unit):
        agree(xp, program, a, 1)
        agree(xp, program, np.asfortranarray(a), 1)


def test_halves_are_rounded_between_the_phases_as_in_memory(xp: ModuleType) -> None:
    a = (np.arange(64 * 20) % 37).reshape(64, 20).astype("f2")
    x = xp.asarray(a)
    expected = a - (a / 3).max(1, keepdims=True)
    np.testing.assert_array_equal(host(x - (x / 3).max(1, keepdims=True)), expected)


@pytest.mark.parametrize("program", [softmax, layer_norm, standardized, several])
def test_a_row_program_is_one_kernel(xp: ModuleType, program: Callable[..., Any]) -> None:
    x = xp.asarray(np.ones((4096, 33), "f4"))
    results = program(xp, x, 1)
    plan = xp.explain(*(results if isinstance(results, tuple) else (results,)))
    assert len(plan.kernels) == 1


def test_a_held_array_is_not_overwritten_by_a_row_program(xp: ModuleType) -> None:
    a = np.random.default_rng(7).random((128, 50))
    x = xp.asarray(a)
    shifted = x - 1
    result = softmax(xp, shifted, 1)
    np.testing.assert_allclose(host(result), softmax(np, a - 1, 1), rtol=1e-13)
    np.testing.assert_array_equal(host(shifted), a - 1)
    np.testing.assert_array_equal(host(x), a)


def test_nested_reductions_agree_with_numpy(xp: ModuleType) -> None:
    rng = np.random.default_rng(8)
    p, q = rng.random((60, 3)), rng.random((45, 3))

    def nearest(m: Any, p: Any, q: Any) -> Any:
        return ((p[:, None] - q[None]) ** 2).sum(2).argmin(1)

    x, y = xp.asarray(p), xp.asarray(q)
    np.testing.assert_array_equal(host(nearest(xp, x, y)), nearest(np, p, q))
    assert len(xp.explain(nearest(xp, x, y)).kernels) <= 2
    image = rng.integers(0, 256, (50, 40, 3)).astype("u1")
    np.testing.assert_array_equal(host(xp.asarray(image).max(-1).sum(0)), image.max(-1).sum(0))
    wide = rng.random((70, 8))
    np.testing.assert_array_equal(host(xp.asarray(wide).sum(1)), wide.sum(1))


def test_rows_of_one_array_in_other_numbers_are_other_rows(xp: ModuleType) -> None:
    data = np.arange(8 * 40.0).reshape(8, 40)
    x = xp.asarray(data)
    total = x.sum()
    rows = (x * total).sum(1)
    xp.evaluate(total, rows)
    assert float(total) == data.sum()
    assert np.array_equal(host(rows), (data * data.sum()).sum(1))


def test_row_results_are_there_for_what_writes_into_them(xp: ModuleType) -> None:
    a = np.random.default_rng(9).standard_normal((40, 33)).astype("f4")

    def written(m: Any, a: Any) -> Any:
        deviation, most = a.std(0), (a - a.mean(1, keepdims=True)).max(1)
        deviation[5] = 1
        most[::2] = deviation[:20]
        moved = (a - a.mean(1, keepdims=True)).sum(1, keepdims=True) + m.arange(2, dtype="f4")
        moved[1:-1] = -1
        return deviation, most, moved

    for want, got in zip(written(np, a.copy()), written(xp, xp.asarray(a)), strict=True):
        np.testing.assert_allclose(host(got), want, rtol=1e-5, atol=1e-5)


def test_short_sums_of_negative_zeros_have_numpys_signs(xp: ModuleType) -> None:
    for dtype in ("f4", "c8"):
        for count in (1, 2, 8):
            a = np.full((5, count), -0.0, dtype)
            if dtype == "c8":
                a.imag = -0.0
            for name in ("positive", "square", "absolute"):
                want = getattr(np, name)(a).sum(1)
                got = host(getattr(xp, name)(xp.asarray(a)).sum(1))
                assert got.tobytes() == want.tobytes(), (dtype, count, name)


@pytest.mark.parametrize(("rows", "length"), [
    (9, 257), (9, 512), (9, 513), (9, 961), (9, 1000), (9, 1024), (9001, 513), (9001, 961),
])  # fmt: skip
def test_rows_whose_last_elements_are_few_or_all(xp: ModuleType, rows: int, length: int) -> None:
    a = np.random.default_rng(length).standard_normal((rows, length), "f4")
    agree(xp, softmax, a, 1)


def test_rows_left_over_are_written_once(xp: ModuleType) -> None:
    a = np.random.default_rng(6).standard_normal((4227, 300), "f4")  # two rows a group, or more
    x = xp.array(a)
    x -= x.max(1, keepdims=True)
    x *= x.sum(1, keepdims=True)
    a -= a.max(1, keepdims=True)
    a *= a.sum(1, keepdims=True, dtype="f8").astype("f4")
    np.testing.assert_allclose(host(x), a, rtol=1e-4)
