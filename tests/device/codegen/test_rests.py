"""What is left of short rows behind their vectors: in shorter vectors, then element by element."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse.config import override
from tests.support.agreement import Batch

SHORTER = "_r8"
"""What a kernel declares that folds shorter vectors."""


def softmax(m: Any, rows: Any) -> Any:
    e = m.exp(rows - rows.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex64"])
def test_rows_of_any_length_are_numpys(dtype: str, xp: ModuleType) -> None:
    batch = Batch(xp)
    random = np.random.default_rng(4)
    for length in (9, 15, 20, 30, 47, 79, 100):
        a = random.integers(-4, 5, (7, length)).astype(dtype)
        label = f"{dtype} {length}"
        batch.same(f"{label} max", lambda m, a=a: m.asarray(a).max(1))
        batch.same(f"{label} min of sums", lambda m, a=a: (m.asarray(a) + m.asarray(a[0])).min(1))
        batch.same(f"{label} product", lambda m, a=a: m.abs(m.asarray(a) * 2).prod(1), ulp=8)
        batch.same(f"{label} quotients", lambda m, a=a: (m.asarray(a) / 4 / 2).sum(1))
        batch.same(f"{label} any", lambda m, a=a: (m.asarray(a) / 2 / 2 == 1).any(1))
        batch.same(f"{label} count", lambda m, a=a: (m.asarray(a) / 2 / 2 > 0.3).sum(1))
        if a.dtype.kind == "f" and a.dtype.itemsize > 2:
            bound = 1e-6 if dtype == "float32" else 1e-14
            batch.same(f"{label} softmax", lambda m, a=a: softmax(m, m.asarray(a)),
                       bound=np.full(a.shape, bound))
            batch.same(f"{label} logarithm", lambda m, a=a: m.log(m.exp(m.asarray(a)).sum(1)),
                       ulp=16)
    batch.check()


def test_nan_in_the_rest_is_seen(xp: ModuleType) -> None:
    batch = Batch(xp)
    for dtype, length in (("float32", 31), ("float64", 15), ("float32", 60)):
        rows = np.tile(np.arange(length, dtype=dtype), (length, 1))
        np.fill_diagonal(rows, np.nan)
        batch.same(f"max {dtype}", lambda m, a=rows: m.asarray(a).max(1))
        batch.same(f"sum {dtype}", lambda m, a=rows: (m.asarray(a) / 2 / 2).sum(1))
    batch.check()


def test_two_folded_axes_and_views_have_rests(xp: ModuleType) -> None:
    batch = Batch(xp)
    a = np.random.default_rng(9).integers(-4, 5, (5, 6, 30)).astype("f4")
    batch.same("two axes", lambda m: (m.asarray(a)[:, ::2] / 2 / 4).sum((1, 2)))
    batch.same("reversed", lambda m: (m.asarray(a)[..., ::-1] / 2 / 4).max(2))
    batch.same("strided", lambda m: (m.asarray(a)[..., ::3] / 2 / 4).max(2))
    batch.same("broadcast", lambda m: (m.asarray(a) / 2 / m.asarray(a[:, :1, :1] + 9)).min(2))
    batch.same("joined", lambda m: m.concatenate([m.asarray(a) / 2, m.asarray(a) / 4], 2).max(2))
    batch.check()


def test_much_of_a_short_row_is_taken_in_shorter_vectors(xp: ModuleType) -> None:
    with override(schedule="cpu", vector_bytes=64):
        def text(length: int) -> str:
            rows = xp.asarray(np.ones((300, length), "f4"))
            return str(xp.explain(xp.exp(rows).sum(1)).kernels[0].source)

        assert SHORTER in text(1000)
        assert SHORTER not in text(1008)
        assert SHORTER not in text(3000)
