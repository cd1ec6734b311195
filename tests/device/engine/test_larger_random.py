"""Random programs on arrays that are larger than a device's memory have NumPy's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse.config import override
from clfuse.runtime.memory.blocks import pool_of

pytestmark = pytest.mark.clfuse_only

Program = Callable[..., Any]
SHAPES = [(20_000,), (200, 100), (50, 20, 20)]


def random_program(seed: int) -> Program:
    """A program of maps, folds, rows, scans, writes and views, the same for both modules."""

    def program(xp: Any, *arrays: Any) -> Any:
        rng = np.random.default_rng(seed)
        values = [xp.asarray(array) + 0 for array in arrays]
        for _ in range(rng.integers(3, 9)):
            x = values[rng.integers(len(values))]
            y = values[rng.integers(len(values))]
            values.append(_step(xp, rng, x, y))
        return tuple(values[-3:])

    return program


def _step(xp: Any, rng: Any, x: Any, y: Any) -> Any:
    """One more array, of one that is there or of two, of which one is not changed afterwards."""
    kind = rng.integers(9)
    axis = int(rng.integers(x.ndim)) if x.ndim else 0
    if kind == 0 or not x.ndim:
        return xp.sin(x) + (y if y.shape == x.shape else 0.5)
    if kind == 1:
        return x - x.mean(axis=axis, keepdims=True)
    if kind == 2:
        return x.sum(axis=axis) if x.ndim > 1 else x[::2] * 1.5
    if kind == 3:
        return xp.cumsum(x, axis=axis) * 0.01
    if kind == 4:
        return x.T + 1 if rng.integers(2) else x.reshape(-1)[:: 1 + int(rng.integers(3))]
    if kind == 5:
        start = int(rng.integers(1, 4))
        place = (slice(None),) * axis + (slice(start, None),)
        before = (slice(None),) * axis + (slice(None, -start),)
        made = x + 0
        made[place] -= x[before] * 0.25
        return made
    if kind == 6:
        made = x * 1.0
        made[::3] = 1.25
        made[-1] += made[0]
        return made
    if kind == 7:
        return xp.where(x > 0, x, -0.5) if rng.integers(2) else xp.flip(x, axis) * 0.5
    if rng.integers(2):
        return xp.concatenate([x, x[:3] * 2])
    return x.max(axis=axis, keepdims=True) - x


@pytest.mark.parametrize("seed", range(24))
def test_random_programs_have_numpys_results(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = SHAPES[rng.integers(len(SHAPES))]
    arrays = [rng.uniform(-1, 1, shape) for _ in range(2)]
    program = random_program(seed)
    expected = program(np, *arrays)
    with override(memory_limit=int(rng.integers(60_000, 140_000)), host_us=0):
        pool = pool_of(cf.get_device())
        found = program(cf, *arrays)
        order = rng.permutation(len(found))
        if rng.integers(2):
            cf.evaluate(*found)
        for number in order:
            np.testing.assert_allclose(
                np.asarray(found[number]), expected[number], rtol=1e-9, atol=1e-9
            )
        assert pool.managed_nbytes <= pool.limit_nbytes
