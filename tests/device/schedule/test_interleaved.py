"""Rows of a few elements of which several are wanted for each index: loaded whole, they are what
lane by lane they are."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import Batch
from tests.support.hostile import DTYPES, ordinary
from tests.support.rounds import HERE, covering

pytestmark = pytest.mark.clfuse_only


@pytest.mark.parametrize("dtype", DTYPES)
def test_folds_of_short_rows_are_numpys(dtype: str, xp: ModuleType) -> None:
    batch = Batch(xp)
    for columns, rows, name in covering(
        (2, 3, 4, 7, 8), (1, 31, 64, 67), ("max", "any", "argmin"), key=(dtype, HERE)
    ):
        points = ordinary(rows, (rows, columns), dtype)
        batch.same(f"{name} {dtype} {points.shape}",
                   lambda m, p=points, n=name: getattr(m.asarray(p), n)(axis=1))
    batch.check()


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "uint8", "bool"])
def test_first_and_last_columns_of_views_in_any_place(dtype: str, xp: ModuleType) -> None:
    batch = Batch(xp)
    points = np.random.default_rng(2).integers(0, 9, (70, 11)).astype(dtype)

    def ends(m: ModuleType, part: Any) -> Any:
        view = m.asarray(points)[part]
        return view[:, 0] ^ view[:, -1] if dtype == "bool" else view[:, 0] * 2 + view[:, -1]

    for part in (np.s_[:, :3], np.s_[1:, 2:6], np.s_[::-1, 4:8], np.s_[:, ::-1], np.s_[3:, :9:2]):
        batch.same(f"{part} {dtype}", lambda m, p=part: ends(m, p))
        whole = np.ascontiguousarray(points[part])
        batch.same(f"copy {part} {dtype}", lambda m, w=whole: m.asarray(w)[:, 0]
                   ^ m.asarray(w)[:, -1] if dtype == "bool" else
                   m.asarray(w)[:, 0] + m.asarray(w)[:, -1])
    batch.check()


def test_points_that_are_changed_where_they_lie(xp: ModuleType) -> None:
    def program(p: Any) -> list[Any]:
        p[:, 0] += p[:, 1] * p[:, 2]
        length = p[:, 0] ** 2 + p[:, 1] ** 2 + p[:, 2] ** 2
        p[1:, 2] -= p[:-1, 0]
        return [p, length, (p * p).sum(axis=1)]

    points = np.random.default_rng(4).integers(-5, 5, (203, 3)).astype(float)
    expected = program(points.copy())
    with xp.config.override(debug=True, host_us=0):
        p = xp.array(points)
        xp.evaluate(p)
        found = program(p)
        xp.evaluate(*found)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_row_is_one_load_after_the_other(xp: ModuleType) -> None:
    p = xp.ones((1000, 4))
    xp.evaluate(p)
    with xp.config.override(host_us=0):
        (kernel,) = xp.explain(p.sum(axis=1)).kernels
        if xp.config.settings.schedule != "gpu":
            assert "a0[x0 + (j + 1)" not in kernel.source
            assert "_3.s" in kernel.source
        np.testing.assert_array_equal(p.sum(axis=1), np.full(1000, 4.0))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("settings", [{}, {"stream_bytes": 0}], ids=["cached", "streamed"])
def test_columns_that_are_written_together(
    dtype: str, settings: dict[str, int], xp: ModuleType
) -> None:
    def written(m: ModuleType, columns: int, rows: int, part: Any) -> Any:
        source = m.asarray(ordinary(rows, (columns, rows), dtype))
        made = m.zeros((rows + 2, columns + part), dtype)
        for column in reversed(range(columns)):
            made[part : rows + part, column] = m.maximum(source[column], source[column - 1])
        return made

    batch = Batch(xp)
    with xp.config.override(**settings):
        for columns, rows, how in covering(
            (2, 3, 4, 8), (1, 31, 64, 67), ("stacked", 0, 1), key=(dtype, *settings, HERE)
        ):
            if how == "stacked":
                sides = ordinary(rows, (columns, rows), dtype)
                batch.same(f"stack {dtype} {columns} {rows}",
                           lambda m, s=sides: m.stack([*m.asarray(s)], axis=-1))
            else:
                batch.same(f"written {dtype} {columns} {rows} {how}",
                           lambda m, c=columns, r=rows, p=how: written(m, c, r, p))
        batch.check()


def test_rows_are_stored_whole_where_all_of_them_is_written(xp: ModuleType) -> None:
    columns = [xp.asarray(np.arange(200.0) + place) for place in range(3)]
    xp.evaluate(*columns)

    def stores_lane_by_lane(result: Any) -> bool:
        return any(".s1;" in kernel.source for kernel in xp.explain(result).kernels)

    assert not stores_lane_by_lane(xp.stack(columns, axis=-1))
    some = xp.ones((200, 3))
    xp.evaluate(some)
    some[:, 0], some[:, 2] = columns[0], columns[2]
    assert stores_lane_by_lane(some)
    expected = np.ones((200, 3))
    expected[:, 0], expected[:, 2] = np.arange(200.0), np.arange(200.0) + 2
    np.testing.assert_array_equal(some, expected)


def test_rows_that_others_write_to_are_not_loaded_whole(xp: ModuleType) -> None:
    """Also not for elements of them that nobody writes to: the rest would be loaded meanwhile."""
    points = np.random.default_rng(5).integers(-5, 5, (203, 4)).astype(float)

    def program(p: Any, step: int) -> Any:
        p[::step, 1] = p[:, 0] * 2 + p[:, 3]
        return p

    for step, is_whole in ((1, True), (-1, False)):
        with xp.config.override(debug=True, host_us=0):
            p = xp.array(points)
            xp.evaluate(p)
            program(p, step)
            sources = [kernel.source for kernel in xp.explain(p).kernels]
            assert any(re.search(r"r\d+_0 = ", source) for source in sources) is is_whole
            np.testing.assert_array_equal(p, program(points.copy(), step))
