"""Matrix products around the sides of a GPU's tiles: results, edges, views, batches, long inner
extents whose pieces are products of their own.

Elements are small integers, so that every order of additions gives the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import assert_bitwise

DTYPES = ("float32", "float64", "int32")


@pytest.fixture(autouse=True)
def schedule(xp: ModuleType) -> Iterator[None]:
    """The schedule of a GPU, everywhere: on a CPU's, the host's BLAS multiplies."""
    if xp is np:
        yield
        return
    with xp.config.override(schedule="gpu", debug=True):
        yield


def integers(seed: int, shape: tuple[int, ...], dtype: str) -> Any:
    return np.random.default_rng(seed).integers(-5, 6, shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "inner", "columns", "turned"), [
    (128, 8, 128, ""),  # one tile, one step
    (128, 72, 256, "both"),
    (129, 9, 132, "left"),  # a little more than that
    (132, 12, 64, "right"),  # vectors that lie at their places, rows outside
    (255, 31, 65, ""),  # nothing does
    (68, 1, 100, "both"),  # less than a step
])  # fmt: skip
def test_tiles_and_their_edges(
    rows: int, inner: int, columns: int, turned: str, dtype: str, xp: ModuleType
) -> None:
    is_left, is_right = turned in ("left", "both"), turned in ("right", "both")
    a = integers(1, (inner, rows) if is_left else (rows, inner), dtype)
    b = integers(2, (columns, inner) if is_right else (inner, columns), dtype)

    def product(m: ModuleType) -> Any:
        x, y = m.asarray(a), m.asarray(b)
        return (x.T if is_left else x) @ (y.T if is_right else y)

    assert_bitwise(product(xp), product(np))


def test_what_follows_is_done_with_every_element_of_a_tile(xp: ModuleType) -> None:
    a, b, c = (integers(number, shape, "float32") for number, shape in
               enumerate([(130, 20), (20, 70), (70,)]))
    x, y, z = xp.asarray(a), xp.asarray(b), xp.asarray(c)
    assert_bitwise(xp.maximum(x @ y * 2 + z, 0), np.maximum(a @ b * 2 + c, 0))


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_outside_of_views_are_not_read(dtype: str, xp: ModuleType) -> None:
    if dtype[0] == "f":
        outside: Any = np.nan
    else:
        outside = np.iinfo(dtype).max
    whole = np.full((150, 150), outside, dtype)
    whole[3:137, 5:79] = integers(3, (134, 74), dtype)
    other = np.full((90, 150), outside, dtype)
    other[7:81, 4:140] = integers(4, (74, 136), dtype)
    x, y = xp.asarray(whole), xp.asarray(other)
    assert_bitwise(
        x[3:137:2, 5:79] @ y[7:81, 139:3:-1], whole[3:137:2, 5:79] @ other[7:81, 139:3:-1]
    )
    assert_bitwise(x[3:137, 5:79] @ y[7:81, 4:140], whole[3:137, 5:79] @ other[7:81, 4:140])


@pytest.mark.parametrize(("left", "right"), [
    ((3, 70, 24), (3, 24, 68)),
    ((70, 24), (5, 24, 68)),
    ((2, 1, 68, 20), (3, 20, 72)),
])  # fmt: skip
def test_batches_of_tiles(
    left: tuple[int, ...], right: tuple[int, ...], xp: ModuleType
) -> None:
    a, b = integers(5, left, "float64"), integers(6, right, "float64")
    assert_bitwise(xp.asarray(a) @ xp.asarray(b), a @ b)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("inner", [20_000, 20_011], ids=["even", "prime"])
def test_long_inner_extents_are_added_in_pieces(inner: int, dtype: str, xp: ModuleType) -> None:
    a, b = integers(7, (inner, 64), dtype), integers(8, (inner, 68), dtype)
    x, y = xp.asarray(a), xp.asarray(b)
    assert_bitwise(x[1:].T @ (y[:-1] * 2) + 1, a[1:].T @ (b[:-1] * 2) + 1)


def test_floats_of_a_long_product_are_near(xp: ModuleType) -> None:
    random = np.random.default_rng(0)
    a, b = random.standard_normal((40_003, 64)), random.standard_normal((40_003, 64))
    found = np.asarray((xp.asarray(a).T @ xp.asarray(b)).tolist())
    assert np.abs(found - a.T @ b).max() < 1e-10
