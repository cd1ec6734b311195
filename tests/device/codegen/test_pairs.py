"""Kernels of many operations take two vectors at a time; whatever is left of a row or an array is
computed too, and only where it belongs."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import Batch

STEPS = 25
"""Of three operations each: more than `schedule.shape.unroll2` asks for."""


def many(m: Any, x: Any, y: Any) -> Any:
    for _ in range(STEPS):
        x = x * y + 1
        x = m.where(x > 3, x - 3, x)
    return x


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
def test_vectors_of_any_length_are_computed_to_their_end(xp: ModuleType, dtype: str) -> None:
    batch = Batch(xp)
    grid = (np.arange(5000) * 37 % 101 / 25).astype(dtype)
    for length in (1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 95, 4097):
        x, y = grid[:length], grid[-length:]
        batch.same(f"{length}", lambda m, x=x, y=y: many(m, m.asarray(x), m.asarray(y)))

        def written(m: Any, x: Any = x, y: Any = y) -> Any:
            result = m.asarray(x) * 1
            result[1:-1] = many(m, result, m.asarray(y))[1:-1]
            return result

        batch.same(f"{length}, in place", written)
    batch.check()
    (kernel,) = xp.explain(many(xp, xp.asarray(grid), xp.asarray(grid))).kernels
    assert ("j_" in kernel.source) == (xp.get_device().traits.schedule == "cpu")


@pytest.mark.parametrize("width", [64, 65, 79, 96, 129])
def test_rows_are_computed_to_their_end(xp: ModuleType, width: int) -> None:
    grid = (np.arange(40 * 130) * 37 % 101 / 25).reshape(40, 130)[:, :width].astype("f4")
    row = np.linspace(0, 1, width, dtype="f4")
    batch = Batch(xp)
    batch.same("a row for all", lambda m: many(m, m.asarray(grid), m.asarray(row)))
    batch.same("prepared", lambda m: many(m, m.asarray(np.tile(grid, (100, 1))), m.asarray(row)))
    batch.same("backwards", lambda m: many(m, m.asarray(grid)[:, ::-1], m.asarray(row)))
    batch.same("seams", lambda m: many(m, m.roll(m.asarray(grid), 3, 1), m.asarray(row)))
    batch.same(
        "gathered", lambda m: many(m, m.asarray(grid)[:, np.arange(width) * 7 % 60], m.asarray(row))
    )

    def inside(m: Any) -> Any:
        a = m.asarray(grid) * 1
        a[1:-1, 1:-1] = many(m, a[:-2, 1:-1], a[1:-1, 2:])
        return a

    batch.same("inside", inside)
    batch.check()


@pytest.mark.parametrize("length", [1, 31, 33, 95, 4097])
def test_folds_of_many_operations_see_every_element_once(xp: ModuleType, length: int) -> None:
    grid = (np.arange(3 * length) * 37 % 101 / 25).reshape(3, length)
    batch = Batch(xp)
    for dtype in ("float64", "float32"):
        x = grid.astype(dtype)
        row = np.linspace(0, 1, length, dtype=dtype)
        # Integers add up without rounding, in whatever order.
        batch.same(
            f"{dtype} sums",
            lambda m, x=x, y=row: m.rint(many(m, m.asarray(x), m.asarray(y))).sum(1),
        )
        for name in ("argmax", "argmin", "max"):
            batch.same(
                f"{dtype} {name}",
                lambda m, x=x, y=row, f=name: getattr(m, f)(many(m, m.asarray(x), m.asarray(y)), 1),
            )
    batch.check()
    # What a fold of pieces follows, where the rows are split.
    kernel = xp.explain(many(xp, xp.asarray(x), xp.asarray(row)).sum(1)).kernels[0]
    assert length == 1 or ("u1" in kernel.source) == (xp.get_device().traits.schedule == "cpu")
