"""Range analysis: bounds of the elements of an integer node, as far as its expression tells.

A gather whose index cannot leave the axis (a remainder, a position found by argmin, a byte in a
table of 256) needs no look at the values of its index, so it stays unevaluated and fuses.

    (x % 10)        0 .. 9          whatever x is
    d.argmin(1)     0 .. columns-1
    i * 4 + j       from the ranges of i and j, where nothing can wrap around
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np

from .nodes import Kind, Node

Range = tuple[int, int]

MAX_DEPTH: Final = 12
"""Nested operations that are looked through: an index rarely has more, and every one costs 1 us."""


def range_of(node: Node, depth: int = MAX_DEPTH) -> Range:
    """Least and greatest number that an element of a bool or integer node may be.

    What is not known is answered by the ends of the dtype.

    >>> from clfuse.ir import build
    >>> range_of(build.view(build.iota(5), (2,), 1, (1,)))
    (1, 2)
    """
    limits = _limits(node.dtype)
    try:
        return _inside(node.measured, limits)
    except AttributeError:
        pass
    if node.op.kind is Kind.CONSTANT:
        value = int(node.param)
        return value, value
    if node.buffer is not None or depth == 0 or not math.prod(node.shape):
        return limits
    rule = _KINDS.get(node.op.kind)
    found = None if rule is None else rule(node, depth - 1)
    return limits if found is None else _inside(found, limits)


def known_within(node: Node, extent: int) -> Node:
    """`node`, all positions on an axis of so many elements: known also once it is computed."""
    if extent:
        node.measured = 0, extent - 1
    return node


@cache
def _limits(dtype: np.dtype) -> Range:
    if dtype.kind == "b":
        return 0, 1
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _inside(found: Range, limits: Range) -> Range:
    """`found`, or everything where a result beyond the dtype would have wrapped around."""
    return found if limits[0] <= found[0] and found[1] <= limits[1] else limits


def _iota(node: Node, depth: int) -> Range:
    return 0, node.shape[0] - 1


def _view(node: Node, depth: int) -> Range:
    (operand,) = node.inputs
    if operand.op.kind is not Kind.IOTA or operand.buffer is not None:
        return range_of(operand, depth)
    low, strides = node.param
    high = low
    for extent, stride in zip(node.shape, strides, strict=True):
        reach = stride * (extent - 1)
        low, high = (low, high + reach) if reach > 0 else (low + reach, high)
    return low, high


def _same(node: Node, depth: int) -> Range:
    return range_of(node.inputs[0], depth)


def _union(node: Node, depth: int) -> Range:
    ranges = [range_of(operand, depth) for operand in node.inputs if math.prod(operand.shape)]
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _arg_reduce(node: Node, depth: int) -> Range:
    (operand,) = node.inputs
    return 0, max(math.prod([operand.shape[axis] for axis in node.param]) - 1, 0)


def _reduce(node: Node, depth: int) -> Range | None:
    (operand,) = node.inputs
    count = math.prod([operand.shape[axis] for axis in node.param])
    if operand.dtype.kind not in "biu" or not count:
        return None
    low, high = range_of(operand, depth)
    if node.op.name in ("minimum", "maximum"):
        return low, high
    return (low * count, high * count) if node.op.name == "add" else None


def _map(node: Node, depth: int) -> Range | None:
    inputs = node.inputs[1:] if node.op.name == "where" else node.inputs
    # An operand that the loop casts to a narrower type may wrap around before the operation.
    for operand, dtype in zip(node.inputs, node.op.input_dtypes, strict=True):
        if operand.dtype.kind not in "biu" or dtype.kind not in "biu":
            return None
    rule = _LOOPS.get(node.op.name)
    if rule is None:
        return None
    dtypes = node.op.input_dtypes[-len(inputs) :]
    return rule(
        *[
            _inside(range_of(operand, depth), _limits(dtype))
            for operand, dtype in zip(inputs, dtypes, strict=True)
        ]
    )


def _corners(combine: Callable[[int, int], int]) -> Callable[[Range, Range], Range]:
    """The rule of an operation that is monotonic in each operand: look at the corners."""

    def rule(left: Range, right: Range) -> Range:
        found = [combine(one, other) for one in left for other in right]
        return min(found), max(found)

    return rule


def _remainder(left: Range, right: Range) -> Range | None:
    """Of the divisor's sign, and 0 where that is 0."""
    if right[0] < 0:
        return None
    high = max(right[1] - 1, 0)
    return (0, min(high, left[1])) if left[0] >= 0 else (0, high)


def _bitwise_and(left: Range, right: Range) -> Range | None:
    tops = [high for low, high in (left, right) if low >= 0]
    return (0, min(tops)) if tops else None


def _floor_divide(left: Range, right: Range) -> Range | None:
    return _corners(lambda one, other: one // other)(left, right) if right[0] > 0 else None


def _right_shift(left: Range, right: Range) -> Range | None:
    if right[0] < 0 or right[1] > 63:
        return None
    return _corners(lambda one, other: one >> other)(left, right)


def _clip(item: Range, low: Range, high: Range) -> Range:
    above = max(item[0], low[0]), max(item[1], low[1])
    return min(above[0], high[0]), min(above[1], high[1])


_LOOPS: Final[dict[str, Callable[..., Range | None]]] = {
    "cast": lambda item: item,
    "add": _corners(lambda one, other: one + other),
    "subtract": _corners(lambda one, other: one - other),
    "multiply": _corners(lambda one, other: one * other),
    "minimum": lambda left, right: (min(left[0], right[0]), min(left[1], right[1])),
    "maximum": lambda left, right: (max(left[0], right[0]), max(left[1], right[1])),
    "remainder": _remainder,
    "bitwise_and": _bitwise_and,
    "floor_divide": _floor_divide,
    "right_shift": _right_shift,
    "clip": _clip,
    "where": lambda left, right: (min(left[0], right[0]), max(left[1], right[1])),
    "wrap_index": lambda item, extent: (0, extent[1] - 1),  # of an index that was checked
    "positive": lambda item: item,
    "negative": lambda item: (-item[1], -item[0]),
}
"""Element-wise operation -> the range of its result, from those of its operands in the loop."""

_KINDS: Final[dict[Kind, Callable[[Node, int], Any]]] = {
    Kind.IOTA: _iota,
    Kind.MAP: _map,
    Kind.VIEW: _view,
    Kind.REDUCE: _reduce,
    Kind.ARGREDUCE: _arg_reduce,
    Kind.UPDATE: _union,
    Kind.CONCATENATE: _union,
    Kind.GATHER: _same,
}
