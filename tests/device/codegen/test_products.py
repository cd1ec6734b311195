"""Matrix products of the GPU schedule: blocks and tails, strides, batches, every dtype, and what is
fused behind them."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

from tests.support.agreement import Batch

RNG = np.random.default_rng(3)
SHAPES = [((65, 33), (33, 70)), ((2, 1, 9, 4), (3, 4, 8)), ((5, 1), (1, 3)), ((130, 7), (7, 90))]


@pytest.fixture(autouse=True)
def gpu(setting: Callable[..., None]) -> None:
    setting(schedule="gpu")


@pytest.mark.parametrize("char", "bqefD")
def test_products_of_whole_numbers_are_exact(xp: ModuleType, char: str) -> None:
    batch = Batch(xp)
    for one, two in SHAPES:
        a, b = (RNG.integers(-5, 5, shape).astype(char) for shape in (one, two))
        batch.same(f"{one} {two}", lambda m, a=a, b=b: m.asarray(a) @ m.asarray(b),
                   zero_signs=False)
        turned = np.swapaxes(b, -1, -2).copy()
        batch.same(
            f"{one} {two} turned",
            lambda m, a=a, t=turned: m.asarray(a) @ m.swapaxes(m.asarray(t), -1, -2),
            zero_signs=False,
        )
    before = xp.stats()["library_calls"]
    batch.check()
    assert xp.stats()["library_calls"] == before


def test_what_follows_is_part_of_the_product(xp: ModuleType) -> None:
    x, w = RNG.integers(-9, 9, (60, 40)) / 4, RNG.integers(-9, 9, (40, 70)) / 4
    bias, scale = RNG.random(70), RNG.random((60, 1))
    x[3, 5], w[7, 7] = np.nan, np.inf
    arrays = [xp.asarray(item) for item in (x, w, bias, scale)]

    def dense(m, x, w, bias, scale):
        return m.maximum(x @ w * scale + bias, 0)

    def mask(m, x, w, bias, scale):
        return x @ w > bias

    def stacked(m, x, w, bias, scale):
        return (m.stack([x, x + 1]) @ w + bias).astype("f4")

    def chain(m, x, w, bias, scale):
        return m.maximum(x @ w, bias) @ w.T - x

    for function, launches in ((dense, 1), (mask, 1), (stacked, 2), (chain, 2)):
        before = xp.stats()["kernels_launched"]
        made = function(xp, *arrays)
        xp.evaluate(made)
        assert xp.stats()["kernels_launched"] - before == launches, function.__name__
        expected = function(np, x, w, bias, scale)
        assert made.dtype == expected.dtype
        np.testing.assert_allclose(np.asarray(made), expected, rtol=1e-12)


def assert_large(xp: ModuleType, made: object, *, is_large: bool = True) -> None:
    """Whether the last kernel has tiles whose work-items have blocks in registers."""
    *_, kernel = xp.explain(made).kernels
    assert ("staged" in kernel.source) == is_large


def test_products_in_large_tiles_are_exact(
    xp: ModuleType, planned_for: Callable[..., None]
) -> None:
    planned_for("gpu", compute_units=2, local_nbytes=48 << 10)
    batch = Batch(xp)

    def compared(one: tuple[int, ...], two: tuple[int, ...], char: str, turns: str) -> None:
        sides = []
        for shape, is_turned in zip((one, two), turns, strict=True):
            values = RNG.integers(0, 9, shape).astype(char)
            sides.append(np.swapaxes(values, -1, -2).copy() if is_turned == "t" else values)

        def product(m: ModuleType) -> object:
            x, y = (
                m.swapaxes(m.asarray(values), -1, -2) if is_turned == "t" else m.asarray(values)
                for values, is_turned in zip(sides, turns, strict=True)
            )
            return x @ y

        batch.same(f"{one} {two} {char} {turns}", product)
        assert_large(xp, product(xp))

    for turns in ("..", ".t", "t.", "tt"):
        for one, two in (((256, 8), (8, 128)), ((257, 21), (21, 300)), ((300, 3), (3, 301))):
            compared(one, two, "f", turns)
    compared((3, 1, 130, 16), (2, 16, 129), "f", "..")
    compared((257, 21), (21, 300), "i", "..")
    compared((257, 21), (21, 300), "I", "..")
    batch.check()


def test_what_follows_a_product_in_large_tiles(
    xp: ModuleType, planned_for: Callable[..., None]
) -> None:
    planned_for("gpu", compute_units=2, local_nbytes=48 << 10)
    x, w, bias = (RNG.integers(-9, 9, shape).astype("f4") / 4 for shape in
                  ((2, 261, 40), (40, 137), (137,)))
    batch = Batch(xp)

    def dense(m: ModuleType) -> object:
        return m.maximum(m.asarray(x) @ m.asarray(w) * 2 + m.asarray(bias), 0)

    def mask(m: ModuleType) -> object:
        return m.asarray(x) @ m.asarray(w) > m.asarray(bias)

    def rows(m: ModuleType) -> object:
        return (m.asarray(x)[:, ::-1] @ m.asarray(w)[:, 2:])[:, 1:] - m.asarray(x)[:, :-1, :1]

    for function in (dense, mask, rows):
        batch.same(function.__name__, function)
    assert_large(xp, dense(xp))
    assert len(xp.explain(dense(xp)).kernels) == 1
    batch.check()


def test_tiles_are_large_where_the_device_has_room_for_them(
    xp: ModuleType, planned_for: Callable[..., None]
) -> None:
    def product(char: str = "f") -> object:
        a, b = np.ones((260, 9), char), np.ones((9, 260), char)
        return xp.asarray(a) @ xp.asarray(b)

    planned_for("gpu", compute_units=4, local_nbytes=48 << 10)
    assert_large(xp, product())
    assert_large(xp, product("d"))
    for other in ({"local_nbytes": 4 << 10}, {"max_work_group": 64}):
        planned_for("gpu", **{"compute_units": 4, "local_nbytes": 48 << 10} | other)
        assert_large(xp, product(), is_large=False)
