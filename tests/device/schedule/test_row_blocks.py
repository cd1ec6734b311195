"""Reductions whose rows read something together: some rows at once, the rest row by row.

The shapes are those at which the kernel changes: rows that are left over, single elements after the
last vector, rows enough for one block alone, two kept axes.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import Batch
from tests.support.hostile import hostile

BLOCKS = " V0["
"""What a kernel declares that takes rows in blocks; how many follows."""


def sources(xp: ModuleType, lazy: Any) -> str:
    return "\n".join(kernel.source for kernel in xp.explain(lazy).kernels)


def whole_numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    return np.random.default_rng(5).integers(0, 5, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "complex64", "float16"])
def test_rows_times_a_vector_are_numpys_whatever_is_left_over(dtype: str, xp: ModuleType) -> None:
    batch = Batch(xp)
    for rows, columns in ((8, 40), (11, 67), (16, 40), (19, 67), (1030, 129), (4, 4099)):
        a, b = whole_numbers((rows, columns), dtype), whole_numbers((columns,), dtype)
        for name in ("sum", "max", "argmin"):
            batch.same(f"{name} {dtype} {a.shape}", lambda m, n=name, a=a, b=b:
                       getattr(m.asarray(a) * m.asarray(b), n)(1))
    batch.check()


def test_batches_of_rows_are_numpys(xp: ModuleType) -> None:
    batch = Batch(xp)
    for kept in ((3, 8), (5, 12), (7, 9), (2, 3, 16), (3, 20)):
        p, q = whole_numbers((*kept[:-1], 70), "float64"), whole_numbers((kept[-1], 70), "float64")
        batch.same(f"distances {kept}", lambda m, p=p, q=q:
                   ((m.asarray(p)[..., None, :] - m.asarray(q)) ** 2).sum(-1))
        batch.same(f"reversed {kept}", lambda m, p=p, q=q:
                   (m.asarray(p)[..., None, ::-1] * m.asarray(q)[::-1]).max(-1))
    batch.check()


def test_special_values_stay_in_their_row(xp: ModuleType) -> None:
    batch = Batch(xp)
    special = hostile("float64")
    data = np.ones((21, 2 * len(special)))
    data[3, : len(special)] = special
    data[20, ::2] = special
    data[8] = -0.0
    vector = np.ones(data.shape[1])
    for name in ("min", "max", "argmax", "any"):
        batch.same(name, lambda m, n=name: getattr(m.asarray(data) * m.asarray(vector), n)(1))
    batch.check()


def test_long_rows_are_as_accurate_as_numpys(xp: ModuleType) -> None:
    random = np.random.default_rng(7)
    data = (random.random((9, 50_001)) - 0.5).astype(np.float32) * 1e4
    vector = random.random(50_001).astype(np.float32)
    exact = (data.astype(np.float64) * vector).sum(1)
    scale = np.abs(data.astype(np.float64) * vector).sum(1)
    found = np.asarray((xp.asarray(data) * xp.asarray(vector)).sum(1))
    np.testing.assert_array_less(np.abs(found - exact) / scale, 1e-7)


def test_a_vector_that_rows_share_is_loaded_once_for_several(xp: ModuleType) -> None:
    a, b = xp.asarray(np.ones((64, 3000))), xp.asarray(np.ones(3000))
    with xp.config.override(schedule="cpu"):
        for rows, block in ((64, 8), (19, 8), (15, 4), (8, 4)):
            assert f"{BLOCKS}{block}]" in sources(xp, (a[:rows] * b).sum(1))
        for rows, block in ((24, 8), (20, 4), (8, 4)):
            assert f"{BLOCKS}{block}]" in sources(xp, ((a[:, None] - a[:rows]) ** 2).sum(2))


@pytest.mark.parametrize("schedule", ["cpu", "gpu"])
def test_rows_that_share_nothing_are_walked_one_by_one(xp: ModuleType, schedule: str) -> None:
    a, b = xp.asarray(np.ones((64, 3000))), xp.asarray(np.ones((64, 1)))
    with xp.config.override(schedule=schedule):
        assert BLOCKS not in sources(xp, a.sum(1))
        assert BLOCKS not in sources(xp, (a * b).sum(1))
