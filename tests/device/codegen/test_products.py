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
