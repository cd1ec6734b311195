"""Rolled, padded, concatenated, stacked, repeated and windowed arrays agree with NumPy bit for bit,
under both schedules: read in place by element-wise results and folds, stored, and written over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import assert_bitwise
from tests.support.hostile import DTYPES, hostile

SHAPES = [(37, 53), (3, 2)]
SCHEDULES = [(dtype, "cpu") for dtype in DTYPES] + [("bool", "gpu"), ("float16", "gpu")]


@contextmanager
def scheduled(xp: ModuleType, schedule: str) -> Iterator[None]:
    if not hasattr(xp, "config"):
        yield
        return
    with xp.config.override(schedule=schedule, debug=True):
        yield


@pytest.fixture(params=["cpu", "gpu"])
def schedule(request: pytest.FixtureRequest, xp: ModuleType) -> Iterator[None]:
    with scheduled(xp, request.param):
        yield


def agree(xp: ModuleType, program: Callable[..., Any], *given: np.ndarray[Any, Any]) -> None:
    with np.errstate(all="ignore"):
        expected = program(np, *given)
        actual = program(xp, *map(xp.asarray, given))
    if not isinstance(expected, tuple):
        expected, actual = (expected,), (actual,)
    for want, got in zip(expected, actual, strict=True):
        assert_bitwise(got, want)


@pytest.mark.parametrize(("dtype", "schedule"), SCHEDULES)
def test_every_dtype_is_joined_without_a_change_of_bits(
    xp: ModuleType, dtype: str, schedule: str
) -> None:
    values = hostile(dtype)
    grid = np.resize(values, (21, 45))

    def program(m: Any, x: Any) -> Any:
        up, left = m.roll(x, 2, 0), m.roll(x, -3, 1)
        rim, edge = m.pad(x, 1), m.pad(x, 1, mode="edge")
        kept = m.where(up == left, rim[:-2, 1:-1], edge[1:-1, 2:])
        return m.where(kept == x, m.pad(x, 2, mode="reflect")[4:, 2:-2], kept)

    with scheduled(xp, schedule):
        agree(xp, program, grid)


def life(m: Any, x: Any) -> Any:
    for _ in range(2):
        rows = m.roll(x, 1, 0) + x + m.roll(x, -1, 0)
        around = m.roll(rows, 1, 1) + rows + m.roll(rows, -1, 1) - x
        x = ((around == 3) | ((x == 1) & (around == 2))).astype(x.dtype)
    return x


def around(m: Any, x: Any) -> Any:
    def of(p: Any) -> Any:
        return p[1:-1, :-2] + p[1:-1, 2:] - p[:-2, 1:-1] * p[2:, 1:-1]

    wrapped, symmetric = m.pad(x, 1, mode="wrap"), m.pad(x, 1, mode="symmetric")
    return of(wrapped), of(symmetric) > of(m.pad(x, 1, constant_values=-0.0))


def stored(m: Any, x: Any) -> Any:
    return (
        m.roll(x, (1, -2), (0, 1)),
        m.concatenate([x, x[:1] * 2, x[::-1]]),
        m.concatenate([x[:, :1], -x, m.zeros_like(x)[:, 1:], x], 1),
        m.pad(x, ((1, 0), (0, 1)), constant_values=((1, 2), (3, np.nan))),
        m.stack([x, x[::-1], x * 0], 1),
        m.block([[x, x[:, :1]], [x[:1] + 1, x[:1, :1]]]),
    )


def folded(m: Any, x: Any) -> Any:
    moved = m.roll(x, 1, 1)
    return (
        (moved > x).sum(1),
        (m.maximum(moved, x) + 0.0).max(0),
        m.pad(x, 1, mode="edge").argmax(1),
        m.concatenate([x, x[:, :1]], 1).argmin(),
        m.concatenate([x, m.roll(x, 1, 0) > 0], 0).any(0),
    )


def moved(m: Any, x: Any) -> Any:
    return (
        m.flip(m.roll(x, 2, 1)) - m.rot90(m.roll(x, 1, 0), 2),
        m.tile(m.roll(x, 1, 0), (2, 2))[1:] * 2,
        m.repeat(m.pad(x, ((0, 0), (1, 0))), 2, 1) + 1,
        m.roll(x.T, 1, 0) + x.T,
        m.roll(m.roll(x, 1) * 3, -2),
        m.diff(x, axis=1, prepend=x[:, -1:]),
    )


def written(m: Any, x: Any) -> Any:
    a, b, c = x.copy(), x.copy(), x.copy()
    before = a[:1] + 0
    a[...] = m.roll(a, 1, 0)
    b[:, 1:] = m.roll(b, 1, 1)[:, 1:] - b[:, :-1]
    c += m.pad(c, 1)[2:, 1:-1]
    c[::2] = m.roll(c, 1, 1)[::2]
    return a, b, c, before, a[:, :1]


PROGRAMS = [life, around, stored, folded, moved, written]


@pytest.mark.usefixtures("schedule")
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_agree_on_every_shape(xp: ModuleType, program: Callable[..., Any]) -> None:
    special = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, 1.0, 3.0, 2.0]
    random = np.random.default_rng(3)
    for shape in SHAPES:
        agree(xp, program, random.choice(special, shape))


@pytest.mark.usefixtures("schedule")
def test_gradients_and_windows(xp: ModuleType) -> None:
    x = np.random.default_rng(4).integers(-1000, 1000, (33, 41)).astype(np.float64)

    def program(m: Any, x: Any) -> Any:
        windows = m.lib.stride_tricks.sliding_window_view
        rows, columns = m.gradient(x)
        return (
            rows * columns,
            m.gradient(x, 0.5, axis=1, edge_order=2),
            windows(x, 5, 1).sum(-1),
            windows(x, 19, 1).sum(-1),
            windows(m.pad(x, 1, mode="edge"), (3, 3), (0, 1)).max((-1, -2)),
        )

    agree(xp, program, x)


@pytest.mark.usefixtures("schedule")
def test_stencils_of_three_dimensions(xp: ModuleType) -> None:
    x = np.random.default_rng(5).integers(-99, 99, (5, 6, 35)).astype(np.int16)

    def program(m: Any, x: Any) -> Any:
        total = -6 * x
        p = m.pad(x, 1)
        for axis in range(3):
            for first in (0, 2):
                key = [slice(1, -1)] * 3
                key[axis] = slice(first, first + x.shape[axis])
                total = total + m.roll(x, first - 1, axis) * p[tuple(key)]
        return total, total.sum((0, 2)), m.roll(x, (1, 2, 3), (0, 1, 2))[:, ::2]

    agree(xp, program, x)


@pytest.mark.usefixtures("schedule")
def test_parts_that_differ_may_share_collapsed_dimensions(
    xp: ModuleType,
) -> None:
    def program(m: Any, x: Any) -> Any:
        bands = [m.clip(3 * x - band, 0, 1) for band in range(3)]
        return (255 * m.stack(bands, axis=-1)).astype(m.uint8), m.stack(bands, axis=1) * 2

    agree(xp, program, np.linspace(-1, 2, 60 * 7).reshape(60, 7))


@pytest.mark.clfuse_only
def test_a_stored_array_has_no_other_arrays_shape(xp: ModuleType) -> None:
    # Node 20, which has a kernel of its own, once shared it with arrays of 20 x 20.
    for side in range(8, 40):
        given = xp.asarray(np.ones((side, side), np.float32))
        scaled = xp.zeros((side, side), np.float32) + given
        scaled[1:2, :] = 1
        padded = xp.pad(scaled * 2, [(1, 1), (1, 1)], mode="wrap")
        inner = padded[2:side + 2, 2:side + 2]
        rolled = xp.roll(inner, 3, axis=0)
        inner[...] = inner + rolled
        assert xp.explain(padded, inner, rolled).kernels


@pytest.mark.parametrize("program", [
    lambda m, a, row: m.concatenate([row[None], a]).mean(1),
    lambda m, a, row: m.vstack([row, a]).max(1) / 2,
    lambda m, a, row: m.pad(a, ((0, 3), (0, 0)), "mean").max(1) / 4 - 1,
], ids=["mean", "most", "padded"])
def test_a_row_above_an_array_is_folded_with_what_follows(
    xp: ModuleType, program: Callable[..., Any]
) -> None:
    """Registers of what follows a fold and limits of loads have had one name."""
    a = np.arange(20 * 16.0).reshape(20, 16) % 32
    with scheduled(xp, "cpu"):
        agree(xp, program, a, np.arange(16.0) / 4)
