"""Minima and maxima of floats along rows, whose vectors leave NaN to a mask beside them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse.config import override
from tests.support.agreement import Batch
from tests.support.hostile import hostile

WATCHED = "|= "
"""What a kernel does that keeps a mask of NaN."""

Rows = np.ndarray[Any, Any]


def pair(batch: Batch, label: str, rows: Rows) -> None:
    for name in ("min", "max"):
        batch.same(f"{label} {name}", lambda m, n=name: getattr(m, n)(m.asarray(rows), axis=-1))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_nan_at_every_position_is_the_result(dtype: str, xp: ModuleType) -> None:
    batch = Batch(xp)
    length = 203
    background = np.random.default_rng(5).random(length).astype(dtype)
    for name, special in (("least", -5), ("most", 5), ("nan", np.nan), ("inf", np.inf),
                          ("minus inf", -np.inf)):
        rows = np.tile(background, (length, 1))
        np.fill_diagonal(rows, special)
        pair(batch, name, rows)
    pair(batch, "nothing but nan", np.full((5, length), np.nan, dtype))
    batch.check()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_hostile_values_are_ordered_as_numpy_does(dtype: str, xp: ModuleType) -> None:
    batch = Batch(xp)
    random = np.random.default_rng(8)
    values = hostile(dtype)
    numbers = values[~np.isnan(values) & (values != 0)]
    for length in (16, 67, 259):
        for label, chosen in (("all", values[values != 0]), ("numbers", numbers)):
            pair(batch, f"{label} {length}", random.choice(chosen, (9, length)))
        for value in values:
            pair(batch, f"only {value} {length}", np.full((2, length), value))
    batch.check()


def test_what_surrounds_them_may_be_anything(xp: ModuleType) -> None:
    batch = Batch(xp)
    random = np.random.default_rng(7)
    a = random.standard_normal((24, 12, 70)).astype("f4")
    a[3, 4, 69] = a[5, 0, 0] = a[7] = np.nan
    flat = random.standard_normal(99_991)
    holed = flat.copy()
    holed[77_777] = np.nan
    vector = random.standard_normal(70).astype("f4")
    batch.same("two axes", lambda m: m.asarray(a).max((0, 2)))
    batch.same("a view", lambda m: m.asarray(a)[:, ::2, 3:].min((1, 2)))
    batch.same("all", lambda m: m.asarray(a).max())
    batch.same("pieces", lambda m: m.asarray(flat).max() - m.asarray(flat).min())
    batch.same("pieces with nan", lambda m: m.asarray(holed).max())
    batch.same("rows that share", lambda m: (m.asarray(a[0]) * m.asarray(vector)).max(1))
    batch.same("rows with nan that share",
               lambda m: (m.asarray(a[:, 4]) * m.asarray(vector)).min(1))
    batch.same("later phases", lambda m: m.asarray(a) - m.asarray(a).max(2, keepdims=True))
    batch.same("both and a sum", lambda m: (m.asarray(a).max(2) - m.asarray(a).min(2)) *
               (m.asarray(a) > 0).sum(2))
    batch.same("joined", lambda m: m.concatenate([m.asarray(a[0]), m.asarray(a[1])], 1).max(1))
    batch.same("initial", lambda m: m.asarray(a).max(2, initial=1))
    batch.same("where", lambda m: m.asarray(a).min(2, initial=9, where=m.asarray(a) > -0.5))
    batch.check()


def test_floats_are_watched_and_integers_need_not_be(xp: ModuleType) -> None:
    with override(schedule="cpu"):
        def text(dtype: str, axis: int) -> str:
            most = xp.asarray(np.ones((300, 200), dtype)).max(axis)
            return str(xp.explain(most).kernels[0].source)

        assert WATCHED in text("float32", 1)
        assert WATCHED in text("float64", 1)
        assert WATCHED not in text("int32", 1)
        assert WATCHED not in text("float32", 0)
