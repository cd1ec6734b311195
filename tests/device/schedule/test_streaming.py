"""Stores that go past the caches give the same arrays, wherever rows begin."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import Batch
from tests.support.rounds import covering


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
    asking = replace(device._own_traits, asks_ahead=True, reads_past=False)
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


@pytest.fixture
def reading_past(xp: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every array is large enough to be read past the caches, on any processor."""
    device = xp.get_device()
    traits = replace(device._own_traits, reads_past=True, vector_bytes=32, light_vector_bytes=0)
    monkeypatch.setattr(device, "_own_traits", traits)
    monkeypatch.setattr(device, "_forced", None)
    with xp.config.override(stream_bytes=0):
        yield


READ: dict[str, Callable[[Any, Any], Any]] = {
    "map": lambda m, x: [x * 2 + 1, m.sqrt(x.astype("f4"))],
    "in place": lambda m, x: m.add(y := x * 1, y, out=y),
    "beside": lambda m, x: x[..., 1:].astype("f8") * x[..., :-1] - 1,
    "stencil": lambda m, x: x[1:] + x[:-1] * 3,
    "folds": lambda m, x: [x.max(), x.sum(dtype="f8"), x.argmin(-1)],
    "columns": lambda m, x: [x.max(0), (x.astype("f8") * 2 - 1).sum(0)],
    "scan": lambda m, x: m.cumsum(x.astype("i8") % 5, -1),
    "gather": lambda m, x: (x.base if x.base is not None else x).ravel()[x.astype("i8")],
    "rows": lambda m, x: x - x.max(-1, keepdims=True).astype("f8"),
}
PARTS = (np.s_[1:, 3:], np.s_[::-1, ::2], np.s_[:, ::-1], np.s_[2, :5])


READ_DTYPES = ("float64", "float32", "float16", "int16", "bool")


@pytest.mark.usefixtures("reading_past")
@pytest.mark.parametrize("dtype", READ_DTYPES)
def test_what_is_read_past_the_caches_is_the_same(xp: ModuleType, dtype: str) -> None:
    grid = ((np.arange(48 * 192) * 7) % 251).reshape(48, 192).astype(dtype)
    batch = Batch(xp)
    for part, name, of in covering(PARTS, [*READ], READ_DTYPES):
        if of == dtype:
            batch.same(f"{name} {part}",
                       lambda m, p=part, read=READ[name]: read(m, m.asarray(grid)[p]))
    batch.check()


@pytest.mark.usefixtures("reading_past")
def test_lines_are_read_past_the_caches_only_if_read_once(
    xp: ModuleType,
) -> None:
    x, y = (xp.asarray(np.arange(192.0 * 192).reshape(192, 192) + first) for first in (0, 1))
    is_cpu = xp.get_device().traits.schedule == "cpu"

    def asks(result: object) -> list[str]:
        sources = [kernel.source for kernel in xp.explain(result).kernels]
        return re.findall(r"PREFETCH_ONCE\((a\d+)", "".join(sources))

    def asked(result: object) -> int:
        return len(set(asks(result)))

    assert len(asks(x * y + 1)) == asked(x * y + 1) == 2 * is_cpu, "two vectors are a line"
    assert len(asks((x * y).sum())) == 2 * (2 + 1) * is_cpu, "four vectors, then what is left"
    assert asked(x[:, 1:] - x[:, :-1]) == is_cpu
    assert asked(x[1:] - x[:-1]) == 0, "the next row comes back to it"
    assert asked(x + x.T) == 0
    assert asked(x - x.max(1, keepdims=True)) == 0, "read twice, row by row"
    assert asked(x + xp.asarray(np.arange(192.0))) == is_cpu, "the row is kept"
    assert asked((x * y).sum()) == 2 * is_cpu
    with xp.config.override(stream_bytes=1 << 30):
        assert asked(x * y + 1) == 0


def test_gathers_from_large_arrays_ask_for_lines_ahead(xp: ModuleType) -> None:
    values = (np.arange(13 << 20) % 1021).astype("float32")  # 52 MB
    places = (np.arange(3000) * 7919) % len(values)
    places[-40:] = len(values) - 1 - np.arange(40)
    is_cpu = xp.get_device().traits.schedule == "cpu"
    large, small = xp.asarray(values), xp.asarray(values[: 1 << 20])
    batch = Batch(xp)

    def of(m: ModuleType) -> object:
        return large if m is xp else values

    def at(m: ModuleType, dtype: str = "int64") -> object:
        return m.asarray(places.astype(dtype))

    for dtype in ("int64", "int32", "uint32"):
        batch.same(dtype, lambda m, d=dtype: of(m)[at(m, d)] * 2)
    batch.same("sum", lambda m: of(m)[at(m)].astype("f8").sum())
    batch.same("rows", lambda m: of(m)[at(m).reshape(4, 750)].astype("f8").sum(1))
    batch.same("turned", lambda m: of(m)[::-1][at(m)[::-1]] - of(m)[at(m)])
    batch.same("clipped", lambda m: m.take(of(m), at(m) * 3 - 9, mode="clip") + 1)
    batch.same("twice", lambda m: m.exp(of(m)[at(m)] / 512)[::2] + of(m)[at(m)][1::2], ulp=4)
    batch.same("short rows", lambda m: of(m)[at(m).reshape(300, 10)[:, :9]].max(1))
    batch.check()

    def asks(result: object) -> bool:
        return any("PREFETCH(a" in kernel.source for kernel in xp.explain(result).kernels)

    where = at(xp)
    assert asks(large[where] + 1) is is_cpu
    assert asks((large[where] * 0.5).max()) is is_cpu
    assert not asks(small[where % 1000] + 1)
    assert not asks(large[where.reshape(300, 10)[:, :9]] + 1)


def gathering(xp: ModuleType) -> Any:
    @xp.kernel
    def gathered(i, values, places, out):
        out[i] = 2 * values[places[i]]

    return gathered


@pytest.mark.clfuse_only
def test_gathering_kernels_prefetch_and_clip_at_the_load(xp: ModuleType) -> None:
    values = (np.arange(13 << 20) % 1021).astype("float32")
    places = (np.arange(3000) * 7919) % len(values)
    large, where, out = xp.asarray(values), xp.asarray(places), xp.zeros(3000, "f4")
    gathering(xp)(3000, large, where, out)
    (kernel,) = xp.explain(out).kernels
    if xp.get_device().traits.schedule == "cpu":
        asked = kernel.source[kernel.source.index("ahead ="): kernel.source.index("PREFETCH(a")]
        assert "max(" not in asked.split("\n", 1)[1]
    np.testing.assert_array_equal(out.get(), 2 * values[places])


@pytest.mark.clfuse_only
def test_joined_indices_are_not_read_ahead_beyond_their_arrays(xp: ModuleType) -> None:
    values = (np.arange(13 << 20) % 1021).astype("float32")
    places = (np.arange(1400) * 7919) % len(values)
    where, out = xp.roll(xp.asarray(places), 5), xp.zeros(1400, "f4")
    gathering(xp)(1400, xp.asarray(values), where, out)
    (kernel,) = xp.explain(out).kernels
    assert "PREFETCH(a" not in kernel.source
    np.testing.assert_array_equal(out.get(), 2 * values[np.roll(places, 5)])
