"""Stores that go past the caches give the same arrays, wherever rows begin."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from tests.agreement import Batch


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
def test_results_are_the_same_from_every_first_element_on(xp: ModuleType, dtype: str) -> None:
    grid = (np.arange(13 * 77) % 251).reshape(13, 77).astype(dtype)
    batch = Batch(xp)
    with xp.config.override(stream_bytes=0):
        for first in range(4):

            def written(m: ModuleType, first: int = first) -> object:
                x = m.asarray(grid)
                result = x + 1
                width = 77 - 3 * first
                result[2:-1, first : first + width] = x[1:-2, :width] + x[2:-1, -width:]
                return result

            batch.same(f"rows from {first} on", written)
        batch.same("two widths", lambda m: [m.asarray(grid) * 2, m.asarray(grid) > 5])
        batch.same("short", lambda m: m.asarray(grid)[0, :5] * 3)
        batch.same("in place", lambda m: m.add(y := m.asarray(grid).ravel() * 1, 1, out=y))
        batch.check()
        x = xp.asarray(grid)
        (kernel,) = xp.explain(x[:, 1:] + x[:, :-1]).kernels
        assert ("STREAM(" in kernel.source) == (xp.get_device().traits.schedule == "cpu")


def test_folds_that_ask_for_memory_ahead_are_the_same(
    xp: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = xp.get_device()
    asking = replace(device._own_traits, asks_ahead=True)
    monkeypatch.setattr(device, "_own_traits", asking)
    monkeypatch.setattr(device, "_forced", None)
    grid = ((np.arange(48 * 192) * 7) % 251).reshape(48, 192) - 100.0
    grid[5, 7], grid[6, 7], grid[9, 100] = np.nan, np.inf, -0.0
    batch = Batch(xp)
    with xp.config.override(stream_bytes=0):
        for dtype in ("float32", "int16"):
            with np.errstate(invalid="ignore"):
                values = grid.astype(dtype)
            for part in (np.s_[1:, 3:], np.s_[::-1, ::2], np.s_[:, ::-1]):
                for axis in (None, 0, 1):
                    batch.same(
                        f"{dtype} {part} {axis}",
                        lambda m, v=values, p=part, a=axis: [
                            m.asarray(v)[p].max(a),
                            (m.asarray(v)[p] * 2 - 1).sum(a, dtype="f8"),
                            m.cumsum(m.asarray(v)[p] % 5, a),
                        ],
                    )
            batch.same("spread", lambda m, v=values: m.asarray(v[:5]).std(0), ulp=8)
        batch.check()
        x = xp.asarray(grid)
        kernels = xp.explain(((x[1:] - x[:-1]) ** 2).sum(1)).kernels
        # The two views are one array: its lines are asked for once.
        is_cpu = xp.get_device().traits.schedule == "cpu"
        assert sum(k.source.count("PREFETCH(a") for k in kernels) == 5 * is_cpu
    monkeypatch.setattr(device, "_own_traits", replace(asking, asks_ahead=False))
    monkeypatch.setattr(device, "_forced", None)
    with xp.config.override(stream_bytes=1):
        (kernel,) = xp.explain(x.max(1)).kernels
        assert "PREFETCH(a" not in kernel.source
