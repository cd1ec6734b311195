"""Bounds of integer expressions: never narrower than what NumPy's elements reach, and as narrow as
the expression tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.ir.value_ranges import known_within, range_of
from tests.support.recording import array, call

INT64 = np.dtype(np.int64)
LIMITS = -(2**63), 2**63 - 1

Pair = tuple[Node, np.ndarray[Any, Any]]


def scalar(value: int) -> Node:
    return build.constant(np.int64(value))


def counted(low: int, high: int) -> Pair:
    """All numbers from `low` to `high`."""
    count = high - low + 1
    return call("add", build.iota(count), scalar(low)), np.arange(low, high + 1)


SPANS = [(0, 6), (-5, 4), (-7, -2), (3, 9), (1, 1), (0, 0)]

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "remainder": np.remainder,
    "bitwise_and": np.bitwise_and,
    "floor_divide": np.floor_divide,
    "right_shift": np.right_shift,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_result_of_an_operation_lies_in_its_range(name: str) -> None:
    for first in SPANS:
        for second in SPANS:
            if name == "right_shift" and second[0] < 0:
                continue
            left, ours = counted(*first)
            right, others = counted(*second)
            size = len(ours), len(others)
            node = call(
                name,
                build.broadcast(build.reshape(left, (size[0], 1)), size),
                build.broadcast(right, size),
            )
            with np.errstate(divide="ignore"):
                wanted = FUNCTIONS[name](ours[:, None], others)
            low, high = range_of(node)
            assert low <= wanted.min(), (first, second)
            assert wanted.max() <= high, (first, second)
            if name in ("add", "subtract", "multiply", "minimum", "maximum"):
                assert (low, high) == (wanted.min(), wanted.max()), (first, second)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (lambda: call("remainder", array(9, dtype="i8"), scalar(10)), (0, 9)),
        (lambda: call("remainder", counted(0, 4)[0], scalar(10)), (0, 4)),
        (lambda: call("remainder", counted(-3, 4)[0], scalar(10)), (0, 9)),
        (lambda: call("remainder", array(9, dtype="i8"), scalar(0)), (0, 0)),
        (lambda: call("remainder", array(9, dtype="i8"), scalar(-10)), LIMITS),
        (lambda: call("bitwise_and", array(9, dtype="i8"), scalar(7)), (0, 7)),
        (lambda: call("bitwise_and", array(9, dtype="i8"), scalar(-8)), LIMITS),
        (lambda: call("floor_divide", counted(-7, 9)[0], scalar(2)), (-4, 4)),
        (lambda: call("floor_divide", counted(-7, 9)[0], scalar(-2)), LIMITS),
        (lambda: call("right_shift", counted(-8, 9)[0], scalar(1)), (-4, 4)),
        (lambda: call("right_shift", counted(-8, 9)[0], scalar(-1)), LIMITS),
        (lambda: call("right_shift", counted(-8, 9)[0], scalar(64)), LIMITS),
        (lambda: call("clip", array(9, dtype="i8"), scalar(-2), scalar(5)), (-2, 5)),
        (lambda: call("clip", counted(3, 4)[0], scalar(-2), scalar(50)), (3, 4)),
        (lambda: call("clip", counted(3, 4)[0], scalar(6), scalar(5)), (5, 5)),
        (lambda: call("negative", counted(-3, 4)[0]), (-4, 3)),
        (lambda: call("invert", counted(-3, 4)[0]), LIMITS),
        (lambda: call("multiply", array(9, dtype="i8"), scalar(2)), LIMITS),
        (lambda: build.arg_reduce("argmin", array(4, 6), (1,)), (0, 5)),
        (lambda: build.arg_reduce("argmin", array(4, 6), (0, 1)), (0, 23)),
        (lambda: build.reduce("add", counted(-3, 4)[0], (0,), INT64), (-24, 32)),
        (lambda: build.reduce("maximum", counted(-3, 4)[0], (0,), INT64), (-3, 4)),
        (lambda: build.reduce("multiply", counted(2, 4)[0], (0,), INT64), LIMITS),
        (lambda: build.concatenate([counted(-3, 4)[0], counted(7, 9)[0]], 0), (-3, 9)),
        (lambda: build.update(counted(0, 9)[0], counted(20, 21)[0], 3, (1,)), (0, 21)),
        (lambda: build.view(build.iota(30), (3, 2), 20, (-4, 1)), (12, 21)),
        (lambda: known_within(array(9, dtype="i8"), 12), (0, 11)),
        (lambda: known_within(array(9, dtype="i8"), 0), LIMITS),
        (lambda: array(9, dtype="u1"), (0, 255)),
        (lambda: array(9, dtype="?"), (0, 1)),
    ],
)
def test_the_range_is_what_the_expression_tells(
    node: Callable[[], Node], expected: tuple[int, int]
) -> None:
    assert range_of(node()) == expected


def test_a_condition_does_not_count() -> None:
    mask = array(8, dtype="?")
    chosen = call("where", mask, counted(-3, 4)[0], scalar(20), dtype=INT64)
    assert range_of(chosen) == (-3, 20)


def test_what_may_wrap_around_may_be_anything() -> None:
    small = np.dtype(np.int8)
    x = build.cast(counted(0, 100)[0], small)
    assert range_of(x) == (0, 100)
    assert range_of(call("add", x, x)) == (-128, 127)
    assert range_of(call("subtract", x, x)) == (-100, 100)
    assert range_of(build.cast(counted(0, 200)[0], small)) == (-128, 127)


def test_deep_expressions_are_not_looked_through() -> None:
    x, _ = counted(0, 1)
    for _ in range(20):
        x = call("maximum", x, scalar(0))
    assert range_of(x) == (0, LIMITS[1])
