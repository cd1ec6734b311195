"""What NumPy's inner loops cost: rows of three elements take it ten times as long as their
elements."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from clfuse._core import loading
from clfuse.config import override
from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.ir.snapshot import take
from clfuse.policy.cost import cost_ns, inner_loops
from clfuse.target.costs import Costs
from tests.support.recording import FLOAT64, array, call, number

COSTS = Costs(addition_ns=1.0, loop_additions=10.0, fold_loop_additions=30.0, map_ns=0.0)
DEVICE: Any = SimpleNamespace(shares_memory=True, costs=COSTS, fp64=True)


@pytest.mark.parametrize(("shape", "operands", "loops"), [
    ((1000, 3), [(1000, 3), (1000, 3)], 0),
    ((1000, 3), [(1000, 3), ()], 0),
    ((1000, 3), [(1000, 3), (1, 1)], 0),
    ((1000, 3), [(1000, 3), (3,)], 1000),
    ((1000, 3), [(1000, 1), (1000, 3)], 1000),
    ((1000, 3), [(1000, 1), (3,)], 1000),
    ((1000, 1), [(1000, 1), (1,)], 0),
    ((20, 50, 3), [(20, 50, 3), (3,)], 1000),
    ((20, 50, 3), [(20, 50, 3), (50, 3)], 20),
    ((20, 50, 3), [(20, 1, 3), (20, 50, 3)], 1000),
    ((20, 50, 3), [(20, 1, 1), (20, 50, 3)], 20),
    ((0, 3), [(0, 3), (3,)], 0),
])  # fmt: skip
def test_rows_are_apart_where_an_operand_is_stretched(
    shape: tuple[int, ...], operands: list[tuple[int, ...]], loops: float
) -> None:
    assert inner_loops(shape, operands) == loops


def cost(root: Node) -> float:
    with override(host_us=1e6):
        found = cost_ns(take([root]), DEVICE, 1e12)
    assert found is not None
    return found


def test_rows_that_are_apart_cost_a_loop_each() -> None:
    x = array(1000, 3)
    alike, apart = call("add", x, array(1000, 3)), call("add", x, array(3))
    assert cost(call("add", x, number(1))) == cost(alike) == 3000
    assert cost(apart) == 3000 + 1000 * COSTS.loop_additions
    along = build.reduce("add", x, (1,), FLOAT64)
    assert cost(along) == 4000 + 4000 / 3 * COSTS.fold_loop_additions
    assert cost(build.reduce("add", array(3000), (0,), FLOAT64)) == 3001
    assert cost(build.reduce("add", array(1, 3000, 1), (1,), FLOAT64)) == 3001
    assert cost(build.reduce("add", array(30, 100), (1,), FLOAT64)) == 3030


def test_the_compiled_part_counts_the_same_loops() -> None:
    core = loading.load()
    if core is None:
        pytest.skip("there is none")
    random = np.random.default_rng(0)
    for _ in range(300):
        shape = tuple(random.choice([1, 2, 3, 5], random.integers(0, 5)).tolist())
        one, two = (
            tuple(int(each) if random.random() < 0.7 else 1 for each in shape[int(cut):])
            for cut in random.integers(0, len(shape) + 1, 2)
        )  # fmt: skip
        full = np.broadcast_shapes(one, two)
        expected = inner_loops(full, [one, two])
        assert core.inner_loops_of(np.empty(one), np.empty(two)) == expected, (one, two)
