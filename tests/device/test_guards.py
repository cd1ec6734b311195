"""Kernels over unequal ranges that are one give what each gives alone, wherever they begin."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.agreement import Batch

pytestmark = pytest.mark.clfuse_only


def statements(m: Any, arrays: list[Any], first: tuple[int, int], last: tuple[int, int]) -> Any:
    """Over all of it, and over a part of it that begins and ends there."""
    a, b, c = arrays
    part = tuple(
        slice(low, extent - high) for low, extent, high in zip(first, a.shape, last, strict=True)
    )
    c[:] = a * 2
    b[part] += a[part] * 0.5 + c[part]
    return m.asarray(b), m.asarray(c)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "complex64"])
def test_parts_of_all_kinds_within_the_whole(xp: ModuleType, dtype: str) -> None:
    batch = Batch(xp)
    random = np.random.default_rng(6)
    parts = (((0, 1), (0, 1)), ((0, 0), (0, 3)), ((0, 2), (0, 0)), ((1, 1), (1, 1)))
    with xp.config.override(stream_bytes=0, debug=True):
        for shape in ((7, 200), (3, 67), (1, 300)):
            made = [random.integers(0, 9, shape).astype(dtype) for _ in range(3)]
            for first, last in parts:
                if first[0] + last[0] < shape[0]:
                    batch.same(
                        f"{shape} {first} {last}",
                        lambda m, g=made, f=first, s=last: statements(
                            m, [m.array(each) for each in g], f, s
                        ),
                    )
        batch.check()


def test_a_step_over_neighbours_and_one_over_all_are_one_launch(xp: ModuleType) -> None:
    @xp.kernel
    def star(i, j, old, new):
        new[i, j] += old[i + 1, j] - old[i - 1, j] + old[i, j + 1] - old[i, j - 1]

    @xp.kernel
    def increment(i, j, a):
        a[i, j] += 1

    @xp.kernel
    def largest(i, j, a):
        return abs(a[i, j])

    values = np.random.default_rng(7).random((40, 130))
    expected = [values.copy(), np.zeros((40, 130))]
    star.python(((1, 39), (1, 129)), *expected)
    increment.python((40, 130), expected[0])
    old, new = xp.asarray(values), xp.zeros((40, 130))
    xp.evaluate(old, new)
    star(((1, 39), (1, 129)), old, new)
    increment((40, 130), old)
    plan = xp.explain(old, new)
    assert len(plan.kernels) == 1
    assert plan.nbytes < 4.1 * values.nbytes
    np.testing.assert_array_equal(old.get(), expected[0])
    np.testing.assert_array_equal(new.get(), expected[1])
    found = float(largest.reduce((40, 130), new, op="max"))
    np.testing.assert_allclose(found, abs(expected[1]).max())
