"""What launches cost: as much work NumPy does before kernels would have begun."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.ir.snapshot import take
from clfuse.policy.cost import launch_ns
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
