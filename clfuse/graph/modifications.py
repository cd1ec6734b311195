"""``a[i] += c``: recorded as one object a statement, joined to one node a loop when somebody asks.

    for b in range(100): a[b] += 1         100 `Modification`s, each of (n,), in a chain
    a[0:100] += 1                          what their inputs are, asked for after the loop

Nobody asks before a plan is made. Statements that differ only in where they write, and in which
view of one array they take, are joined where they touch disjoint elements on regular grids and
nobody holds what is between them. `plan.rolling` does so for all other writes, which takes it ten
times longer: it has to find out what belongs together.
"""

from __future__ import annotations

import math
import sys
import threading
from typing import Any, Final

import numpy as np

from ..config import settings
from .build import UPDATES, update, update_of, view
from .grids import grids
from .ir import Kind, Node, Op, loop, structural

__all__ = ["Modification", "modified"]

LEAST: Final = 8
"""Statements that are worth joining."""

MOST_CHANGES: Final = 0.75
"""How often the distance from one part to the next may change: a grid with rows of three parts and
more changes less. Most irregular ones are left alone without a closer look."""

_new: Final[Any] = object.__new__

_joining: Final = threading.RLock()

_Shape = tuple[int, ...]


class Modification(Node):
    """UPDATE of a part of an array with an operation on that part.

    The operation and the view that it reads are made when somebody asks for the inputs. Until then
    a loop of such statements leaves one object each, where there would be six for Python's
    collector to look through again and again (a third of the time).

    Whoever reads `op` and `param` reads the inputs before: joined statements have others.
    """

    __slots__ = ("_loop", "_old", "_operand", "_region")
    _old: Node | None
    _loop: Op | None
    _operand: Node | None
    _region: _Shape

    @property
    def inputs(self) -> tuple[Node, ...]:
        """(old, value), as of every UPDATE; of the value, where all of the array is written."""
        with _joining:
            if self._loop is not None:
                # No name for what is before: references to it are counted.
                joined = _joined(self) if settings.fusion else None
                if joined is None:
                    self._expand()
                else:
                    self.op, self.param = joined.op, joined.param
                    self.inputs = joined.inputs
            return _get_inputs(self)  # type: ignore[no-any-return]

    @inputs.setter
    def inputs(self, inputs: tuple[Node, ...]) -> None:
        self._old = self._operand = self._loop = None
        _set_inputs(self, inputs)

    def _expand(self) -> None:
        """Be an UPDATE of its own."""
        old, op, operand = self._old, self._loop, self._operand
        assert old is not None
        assert op is not None
        assert operand is not None
        part = view(old, self._region, *self.param)
        self.inputs = (old, Node(op, (part, operand), self._region, self.dtype))


_get_inputs: Final[Any] = Node.__dict__["inputs"].__get__
_set_inputs: Final[Any] = Node.__dict__["inputs"].__set__


def modified(
    old: Node, op: Op, operand: Node, shape: _Shape, offset: int, strides: _Shape
) -> Node:
    """``update(old, op(view(old, shape, offset, strides), operand), offset, strides)``.

    `op` gives elements of the dtype of `old`; `operand` broadcasts to `shape`.
    """
    dtype = old.dtype
    if not 0 < math.prod(shape) < math.prod(old.shape):
        value = Node(op, (view(old, shape, offset, strides), operand), shape, dtype)
        return update(old, value, offset, strides)
    made: Modification = _new(Modification)
    made._old = old
    made._operand = operand
    made._loop = op
    made._region = shape
    made.op = UPDATES.get(dtype) or update_of(dtype)
    made.shape = old.shape
    made.dtype = dtype
    made.param = (offset, strides)
    made.buffer = None
    made.computed = False
    return made


# -- joining --------------------------------------------------------------------------------------


def _run(last: Modification, alone: int) -> tuple[Node, list[tuple[int, ...]]]:
    """What `last` and the statements like it before it have changed, and where each wrote: its
    offset, and that of the view that it took, latest first.

    `alone` is how often a statement is referred to that nobody looks at but the next one.
    """
    op, operand, region, (_, strides) = last._loop, last._operand, last._region, last.param
    assert operand is not None
    source, taken = None, ()
    if type(operand) is Node and operand.op.kind is Kind.VIEW and operand.buffer is None:
        (source,) = operand.inputs
        taken = operand.param[1]
    offsets: list[tuple[int, ...]] = []
    references = sys.getrefcount
    node = last
    while True:
        other: Any = node._operand
        offset = node.param[0]
        offsets.append((offset,) if source is None else (offset, other.param[0]))
        old = node._old
        if (
            type(old) is not Modification
            or references(old) > alone
            or old._loop is not op
            or old._region != region
            or old.param[1] != strides
        ):
            break
        other = old._operand
        if other is not operand and (
            source is None
            or type(other) is not Node
            or other.op is not operand.op
            or other.buffer is not None
            or other.inputs[0] is not source
            or other.shape != operand.shape
            or other.param[1] != taken
        ):
            break
        node = old
    assert old is not None
    return old, offsets


def _joined(last: Modification) -> Node | None:
    """What `last` and the statements before it give, as one write a grid; None where they do not
    go together, and never will: those before it have become UPDATEs of their own then."""
    node, offsets = _run(last, _ALONE)
    if len(offsets) < LEAST:
        return None
    joined = _written(last, node, offsets)
    if joined is None:
        before = last._old
        for _ in offsets[1:]:
            assert type(before) is Modification
            earlier = before._old
            before._expand()
            before = earlier
    return joined


def _written(last: Modification, node: Node, offsets: list[tuple[int, ...]]) -> Node | None:
    """`node` after the statements that wrote at `offsets`, of which `last` is one."""
    op, operand = last._loop, last._operand
    assert op is not None
    assert operand is not None
    places = np.array(offsets, np.int64)
    places = places[np.argsort(places[:, 0], kind="stable")]
    distances = np.diff(places[:, 0])
    changes = np.count_nonzero(np.diff(distances))
    if not distances.all() or changes > MOST_CHANGES * len(places):
        return None
    found = grids(places)
    if len(found) * LEAST > len(places):
        return None
    region, inner = last._region, last.param[1]
    end = -1
    for rows, extents, steps in found:
        start = places[rows[0]].tolist()
        shape = extents + region
        strides = (*[step[0] for step in steps], *inner)
        low, high = _reach(shape, start[0], strides)
        if low <= end or not _is_injective(shape, strides):
            return None
        end = high
        other = operand
        if len(start) == 2:
            wanted, ahead = operand.shape, operand.param[1]
            if any(step[1] for step in steps):
                wanted = (*extents, *(1,) * (len(region) - len(wanted)), *wanted)
                missing = len(wanted) - len(extents) - len(ahead)
                ahead = (*[step[1] for step in steps], *(0,) * missing, *ahead)
            other = view(operand.inputs[0], wanted, start[1], ahead)
        value = Node(op, (view(node, shape, start[0], strides), other), shape, last.dtype)
        node = update(node, value, start[0], strides)
    return node


def _reach(shape: _Shape, offset: int, strides: _Shape) -> tuple[int, int]:
    """The first and the last element of a region."""
    low = high = offset
    for extent, stride in zip(shape, strides, strict=True):
        if stride > 0:
            high += (extent - 1) * stride
        else:
            low += (extent - 1) * stride
    return low, high


def _is_injective(shape: _Shape, strides: _Shape) -> bool:
    """Whether every stride is longer than what the shorter ones reach: no element twice."""
    reach = 0
    for stride, extent in sorted(zip(map(abs, strides), shape, strict=True)):
        if extent > 1:
            if stride <= reach:
                return False
            reach += stride * (extent - 1)
    return True


def _calibrate() -> int:
    """How often a statement is referred to, inside `_run`, that nobody holds; counts are not exact
    without the interpreter's lock, where nothing is joined."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return -1
    dtype = np.dtype(np.float64)
    op = loop("add", (dtype, dtype), dtype)
    node = operand = Node(structural(Kind.LEAF, "leaf", dtype), (), (3,), dtype)
    for offset in range(3):
        node = modified(node, op, operand, (1,), offset, (0,))
    assert type(node) is Modification
    last = node
    del node
    return next((count for count in range(9) if len(_run(last, count)[1]) == 3), -1)


_ALONE: Final = _calibrate()
