"""Arg-reductions along rows that look for the best value's position afterwards: the first of equal
ones, the first NaN, wherever blocks of vectors, single elements and pieces of rows begin and end.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse.config import override
from tests.support.agreement import Batch, host
from tests.support.hostile import hostile

KEPT = "long16 p0_0", "long8 p0_0", "long4 p0_0", "long2 p0_0"
"""What a kernel declares that keeps positions in vectors."""

LENGTHS = (257, 1024, 1151)

Rows = np.ndarray[Any, Any]


def pair(batch: Batch, label: str, rows: Rows) -> None:
    for name in ("argmin", "argmax"):
        batch.same(f"{label} {name}", lambda m, n=name: getattr(m, n)(m.asarray(rows), axis=-1))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "uint32", "int16",
                                   "uint8", "int8"])
def test_the_first_of_equal_values_is_found(dtype: str, xp: ModuleType) -> None:
    batch = Batch(xp)
    random = np.random.default_rng(3)
    for length in LENGTHS:
        pair(batch, f"few values {length}", random.integers(0, 5, (20, length)).astype(dtype))
        pair(batch, f"many values {length}", random.integers(0, 99, (20, length)).astype(dtype))
        pair(batch, f"all the same {length}", np.full((3, length), 7, dtype))
    batch.check()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_every_position_can_be_the_best_or_the_first_nan(dtype: str, xp: ModuleType) -> None:
    batch = Batch(xp)
    length = 1043
    background = np.random.default_rng(5).random(length).astype(dtype)
    for name, special in (("least", -5), ("most", 5), ("nan", np.nan), ("inf", np.inf)):
        rows = np.tile(background, (length, 1))
        np.fill_diagonal(rows, special)
        pair(batch, name, rows)
    rows = np.tile(background, (length, 1))
    rows[np.triu_indices(length)] = np.nan
    pair(batch, "nan from there on", rows)
    batch.check()


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int8"])
def test_hostile_values_are_ordered_as_numpy_does(dtype: str, xp: ModuleType) -> None:
    batch = Batch(xp)
    random = np.random.default_rng(8)
    values = hostile(dtype)
    numbers = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    for length in LENGTHS:
        pair(batch, f"all {length}", random.choice(values, (9, length)))
        pair(batch, f"numbers {length}", random.choice(numbers, (9, length)))
        for value in values:
            pair(batch, f"only {value} {length}", np.full((2, length), value))
    batch.check()


def test_infinities_of_both_signs_are_no_nan(xp: ModuleType) -> None:
    batch = Batch(xp)
    rows = np.random.default_rng(2).random((40, 1100)) - 0.5
    rows[::2, 500] = np.inf
    rows[:, 900] = -np.inf
    rows[::4, 901] = np.inf
    rows[:3, 1099] = np.nan
    rows[5:8, 0] = np.nan
    for dtype in ("float64", "float32"):
        pair(batch, dtype, rows.astype(dtype))
    with np.errstate(over="ignore"):
        pair(batch, "sums that overflow", np.sign(rows) * 1.7e308)
    batch.check()


def test_pieces_of_one_row_are_numpys(xp: ModuleType) -> None:
    batch = Batch(xp)
    random = np.random.default_rng(6)
    for count in (99_991, 262_144):
        for dtype in ("float32", "float64", "int32"):
            values = random.integers(-1000, 1000, count).astype(dtype)
            pair(batch, f"{count} {dtype}", values)
            if values.dtype.kind == "f":
                values = values.copy()
                values[[count // 3, count // 2, count - 1]] = np.nan
                pair(batch, f"{count} {dtype} with nan", values)
    batch.check()


def test_what_the_row_is_made_of_may_be_anything(xp: ModuleType) -> None:
    batch = Batch(xp)
    random = np.random.default_rng(7)
    p, q = random.random((37, 3)), random.random((301, 3))
    a = random.standard_normal((25, 640)).astype("f4")
    batch.same("nearest", lambda m: ((m.asarray(p)[:, None] - m.asarray(q)[None]) ** 2).sum(2)
               .argmin(1))
    batch.same("reversed", lambda m: m.asarray(a)[:, ::-1].argmax(1))
    batch.same("every second", lambda m: m.asarray(a)[:, ::2].argmax(1))
    batch.same("indices too", lambda m: (m.asarray(a) + m.arange(640) % 7).argmin(1))
    batch.same("of positions", lambda m: (m.arange(640) * 37 % 101 + m.asarray(a[:, :1])).argmax(1))
    batch.same("two at once", lambda m: m.asarray(a).argmin(1) - m.asarray(a).argmax(1))
    batch.same("beside the least", lambda m: m.asarray(a).argmin(1) + m.asarray(a).min(1))
    batch.same("beside a sum", lambda m: m.asarray(a).argmin(1) + (m.asarray(a) > 0).sum(1))
    batch.same("after a fold", lambda m: (m.asarray(a) - m.asarray(a).mean(1, keepdims=True) > 0.5)
               .argmax(1))
    batch.same("gathered", lambda m: m.asarray(a)[:, m.asarray(np.arange(639, -1, -1))].argmin(1))
    batch.same("flat", lambda m: m.asarray(a).argmin())
    batch.same("all but one axis", lambda m: m.asarray(a).reshape(5, 5, 640).argmax(2))
    batch.check()


def test_vectors_hold_no_positions(xp: ModuleType) -> None:
    with override(schedule="cpu"):
        for dtype in ("float64", "float32", "int16"):
            lazy = xp.asarray(np.ones((30, 2000), dtype)).argmin(1)
            text = xp.explain(lazy).kernels[0].source
            assert not any(kept in text for kept in KEPT)
            assert "b0" in text
            assert (host(lazy) == 0).all()
