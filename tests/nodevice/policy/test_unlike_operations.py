"""What a policy counts of a graph: operations that are unlike each other."""

from __future__ import annotations

import numpy as np

from clfuse.ir.nodes import Node
from clfuse.ir.snapshot import Snapshot, take
from clfuse.policy.cost import unlike_functions, unlike_operations
from tests.support.recording import array, call, number


def steps(count: int) -> Snapshot:
    """A pendulum, six operations a step, with a number that is another one each time."""
    x = y = array(1000)
    for turn in range(count):
        y = call("subtract", y, call("multiply", call("sin", x), number(0.01)))
        x = call("add", x, call("multiply", y, number(turn)))
    return take([x])


def chain(seed: int, count: int) -> Snapshot:
    """Operations in no order."""
    x: Node = array(1000)
    for name in np.random.default_rng(seed).choice(["sin", "cos", "sqrt", "square"], count):
        x = call(name, x)
    return take([x])


def test_steps_that_are_repeated_count_once() -> None:
    assert unlike_operations(steps(100)) == unlike_operations(steps(50))
    assert unlike_operations(steps(100)) < 100


def test_few_steps_count_whole() -> None:
    assert unlike_operations(steps(3)) == 5 * 3


def test_operations_in_another_order_are_unlike() -> None:
    assert unlike_operations(chain(1, 400)) > 360


def test_functions_are_those_that_compilers_take_long_for() -> None:
    assert unlike_functions(steps(3)) == 3
    assert unlike_functions(steps(100)) == unlike_functions(steps(50)) < 50
    names = np.random.default_rng(1).choice(["sin", "cos", "sqrt", "square"], 400)
    every = sum(name in ("sin", "cos") for name in names)
    assert 0.9 * every < unlike_functions(chain(1, 400)) <= every
