"""Arrays that lie across the rows of a GPU's kernel give what NumPy's do, through local memory."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import Batch
from tests.support.hostile import hostile

pytestmark = pytest.mark.clfuse_only

Plan = Callable[..., None]
EDGES = (33, 64, 95)
"""Sides: a border of one, none, one that lacks one."""


@pytest.fixture(params=[{}, {"local_nbytes": 3 << 10, "max_work_group": 64}], ids=["", "small"])
def on_gpu(request: pytest.FixtureRequest, xp: ModuleType, planned_for: Plan) -> None:
    """Plans of a GPU; of one with little local memory."""
    planned_for("gpu", compute_units=2, **request.param)


def tiles_in(xp: ModuleType, *results: Any) -> list[int]:
    """How many arrays in local memory each kernel has."""
    return [kernel.source.count("__local") for kernel in xp.explain(*results).kernels]


def filled(dtype: str, *shape: int) -> np.ndarray:
    """Numbers that differ from their neighbours, and hostile ones but -0.0: which of two zeros is
    the greater NumPy leaves open."""
    values = np.resize(hostile(dtype), shape).astype(dtype) + np.zeros(1, dtype)
    ranks = np.arange(values.size).reshape(shape) % 121
    return np.where(ranks % 5 == 0, values, ranks.astype(dtype))


@pytest.mark.parametrize("dtype", [
    "float64", "float32", "float16", "complex128", "complex64", "int64", "uint16", "int8", "bool",
])
def test_transposed_operands_agree_with_numpys(xp: ModuleType, on_gpu: None, dtype: str) -> None:
    batch = Batch(xp)
    combine = "logical_xor" if dtype == "bool" else "maximum"
    for rows in EDGES:
        square, tall = filled(dtype, rows, rows), filled(dtype, 2 * rows + 1, rows)

        def both_ways(m: ModuleType, values: np.ndarray = square) -> Any:
            x = m.asarray(values)
            return getattr(m, combine)(x, x.T)

        def with_another(m: ModuleType, values: np.ndarray = tall) -> Any:
            x, y = m.asarray(values), m.asarray(values[::-1].T.copy())
            return [m.where(y != y[:, :1], x.T, y), y == x.T]

        def across(m: ModuleType, values: np.ndarray = tall) -> Any:
            x, y = m.asarray(values), m.asarray(values[:, ::-1].copy())
            return getattr(m, combine)(x.T, y.T)

        batch.same(f"{rows}, both ways", both_ways)
        batch.same(f"{rows}, with another", with_another)
        batch.same(f"{rows}, a result across", across)
        batch.same(f"{rows}, copied", lambda m, v=tall: m.asarray(v).T.copy())
    batch.check()


def test_stacks_of_matrices_and_axes_in_every_order(xp: ModuleType, on_gpu: None) -> None:
    batch = Batch(xp)
    stack = np.arange(3 * 2 * 37 * 37.0).reshape(3, 2, 37, 37)

    def both_ways(m: ModuleType) -> Any:
        x = m.asarray(stack)
        return x - 2 * m.swapaxes(x, 2, 3)

    batch.same("a stack, both ways", both_ways)
    matrix = stack[1, 0].T.copy()
    batch.same("a stack and a matrix", lambda m: m.asarray(stack) * m.asarray(matrix).T)
    for shape in ((5, 40, 17), (40, 5, 33), (4, 9, 100)):
        values = np.arange(float(np.prod(shape))).reshape(shape)
        for axes in ((2, 1, 0), (0, 2, 1), (2, 0, 1), (1, 0, 2), (1, 2, 0)):
            batch.same(f"{shape} {axes}", lambda m, v=values, a=axes: m.asarray(v).transpose(a) + 1)
    batch.check()


def test_views_joints_and_boxes_across_the_rows(xp: ModuleType, on_gpu: None) -> None:
    values = filled("float32", 70, 70)
    batch = Batch(xp)

    def of(function: Callable[[ModuleType, Any], Any]) -> Callable[[ModuleType], Any]:
        return lambda m: function(m, m.array(values))

    batch.same("flipped", of(lambda m, x: m.maximum(x[::-1].T, x[:, ::-1])))
    batch.same("shifted alike", of(lambda m, x: m.maximum(x[1:, :-1].T, x[1:, :-1])))
    batch.same("shifted apart", of(lambda m, x: m.maximum(x[1:, :-1].T, x[:-1, 1:])))
    batch.same("every second", of(lambda m, x: m.maximum(x[::2, ::2].T, x[1::2, 1::2])))
    batch.same("rolled down", of(lambda m, x: m.maximum(m.roll(x.T, 5, 0), x)))
    batch.same("rolled along", of(lambda m, x: m.roll(x.T, 5, 1) * 2))
    batch.same("joined", of(lambda m, x: m.concatenate([x.T, x[:, :9], x[::-1].T], axis=1)))
    batch.same("joined below", of(lambda m, x: m.concatenate([x.T, x[:9], x[::-1].T])))
    batch.same("taken", of(lambda m, x: m.take(x[0], x != x.T, mode="clip") + x.T))
    batch.same("a row and a column", of(lambda m, x: m.where(x[0] < 9, x.T, x[:, :1])))

    def written(m: ModuleType, x: Any) -> Any:
        result = m.zeros((80, 90), "f4")
        result[3:73, 4:74] = x.T
        result[0] = 7
        return result

    def in_place(m: ModuleType, x: Any) -> Any:
        x[...] = m.maximum(x, x.T)
        return x

    def across_itself(m: ModuleType, x: Any) -> Any:
        x.T[...] = m.minimum(x, 50)
        return x

    def several(m: ModuleType, x: Any) -> Any:
        out = m.zeros((70, 70), "f4")
        out.T[...] = x * 3
        return [out, x + 1, x.T]

    for function in (written, in_place, across_itself, several):
        batch.same(function.__name__, of(function))
    batch.check()


def test_local_memory_is_used(xp: ModuleType, planned_for: Plan) -> None:
    planned_for("gpu", compute_units=2)
    a, b = xp.asarray(np.ones((70, 70))), xp.asarray(np.ones((70, 70)))
    assert tiles_in(xp, a + a.T) == [1]
    assert tiles_in(xp, b + a.T) == [1]
    assert tiles_in(xp, b.T + a.T) == [1]
    assert tiles_in(xp, b + a) == [0]
