"""What launches cost: as much work NumPy does before kernels would have begun."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from clfuse.config import override
from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.ir.snapshot import take
from clfuse.policy.cost import cost_ns, launch_ns
from clfuse.runtime.memory.buffers import HostBuffer
from clfuse.target.costs import Costs
from tests.support.recording import FLOAT64, array, call, number, softmax

COSTS = Costs(wake_ns=40_000, launch_ns=10_000, kernel_share=0.5)
X = array(1000)


def total(x: Node) -> Node:
    return build.reduce("add", x, (0,), FLOAT64)


def standardized(x: Node) -> Node:
    rest = call("subtract", x, total(x))
    return call("divide", rest, total(call("multiply", rest, rest)))


@pytest.mark.parametrize(
    ("root", "launches"),
    [
        (call("add", call("sqrt", X), number(1)), 1),
        (total(call("sqrt", X)), 1),
        (call("add", total(X), number(1)), 2),
        (call("divide", X, total(X)), 2),
        (total(call("divide", X, total(X))), 2),
        (standardized(X), 3),
        (total(standardized(X)), 3),
        (call("add", standardized(X), standardized(array(1000))), 3),
        (softmax(array(30, 40)), 1),  # rows are folded and divided by one kernel
    ],
)
def test_folds_to_numbers_are_launches_one_after_the_other(root: Node, launches: int) -> None:
    device: Any = SimpleNamespace(shares_memory=True, costs=COSTS)
    expected = (COSTS.wake_ns + launches * COSTS.launch_ns) / (1 - COSTS.kernel_share)
    assert launch_ns(take([root]), device) == expected


def test_what_lies_on_a_device_is_not_brought_for_that() -> None:
    device: Any = SimpleNamespace(shares_memory=False, costs=COSTS)
    assert launch_ns(take([call("sqrt", X)]), device) == 0


def test_costs_of_a_known_structure_are_those_of_each_device() -> None:
    """They are found once; devices of the same costs may have a memory of their own, or not."""
    x = array(1000)
    assert type(x.buffer) is not HostBuffer, "on a device"
    snapshot = take([call("sqrt", x)])
    snapshot.structure = take([call("sqrt", x)])
    costs = []
    for _ in range(2):
        for is_unified in (True, False):
            device: Any = SimpleNamespace(costs=COSTS, fp64=True, shares_memory=is_unified)
            with override(host_us=50):
                costs.append(cost_ns(snapshot, device, 1e9))
    assert costs[0] is not None
    assert costs == [costs[0], None] * 2
    cheap: Any = SimpleNamespace(
        costs=Costs(addition_ns=COSTS.addition_ns / 2), fp64=True, shares_memory=True
    )
    with override(host_us=50):
        found = cost_ns(snapshot, cheap, 1e9)
        assert found is not None
        assert found < costs[0]
        assert cost_ns(snapshot, cheap, found / 2) is None
