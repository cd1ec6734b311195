"""In-place updates such as ``a[i] += c``: one object a statement, one node for a loop of them.

    for b in range(100): a[b] += 1         100 `Modification`s, each of (n,), in a chain
    a[0:100] += 1                          what their inputs are when they are read after the loop

Their inputs are not read before a plan is made. Statements that differ only in where they write,
and in which view of one array they take, are joined where nothing holds what is between them. Those
that write to disjoint parts on regular grids, or to scattered ones (``for b in
permutation[:40]``), become one write each. Those that write to a part for the second time come
after all that write for the first time. `schedule.rewrite.rerolling` does so for all other writes,
and takes ten times longer, because it has to find out which belong together.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clfuse.config import settings

from .build import UPDATES, update, update_of, view
from .layout import is_injective, reach
from .nodes import TABLE, Kind, Node, Op, finding, loop, structural
from .offset_grids import grids

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Modification", "modify_view"]

LEAST: Final = 8
"""Statements that are worth joining."""

MOST_CHANGES: Final = 0.75
"""How often the distance from one part to the next may change: a grid with rows of three parts and
more changes less. Irregular ones have no grids that are worth looking for."""

MOST_PASSED_OVER: Final = 4096
"""Elements for each statement that are read and written as they are, where the parts lie anyhow: it
takes less than planning and launching the statement (20 us)."""

MOST_LEFT_TO_NUMPY: Final = 4000
"""Elements for each of ``CLFUSE_HOST_US`` that NumPy may be left with. It would warn of elements
that are only passed over."""

_BOOL: Final = np.dtype(np.bool_)

_new: Final[Any] = object.__new__

_Shape = tuple[int, ...]


class Modification(Node):
    """UPDATE of a part of an array with an operation on that part.

    The operation and the view that it reads are made when the inputs are first read. Until then
    a loop of such statements leaves one object each, where there would be six for Python's
    collector to look through again and again (a third of the time).

    Read the inputs before `op` and `param`: joined statements have others.
    """

    __slots__ = ("_loop", "_old", "_operand", "_region")
    _old: Node | None
    _loop: Any  # operation on the part; the node that all of it is, once that was found; None
    _operand: Node | None
    _region: _Shape

    @property
    def inputs(self) -> tuple[Node, ...]:
        """(old, value), as of every UPDATE; of the value, where all of the array is written."""
        with finding:
            if self._loop is not None:
                if type(self._loop) is Op:
                    # No name for what is before: references to it are counted. One assignment says
                    # what this is, so that it is the same after an interrupt.
                    self._loop = (_joined(self) if settings.fusion else None) or self._expanded()
                made = self._loop
                self.op, self.param = made.op, made.param
                self.inputs = made.inputs
            return _get_inputs(self)  # type: ignore[no-any-return]

    @inputs.setter
    def inputs(self, inputs: tuple[Node, ...]) -> None:
        _set_inputs(self, inputs)
        self._loop = None
        self._old = self._operand = None

    def place(self) -> Any:
        """As of every UPDATE: in a loop over places every round has another, and is joined."""
        return self.param

    def _expanded(self) -> Node:
        """The UPDATE that it is by itself."""
        old, op, operand = self._old, self._loop, self._operand
        assert old is not None
        assert type(op) is Op
        assert operand is not None
        part = view(old, self._region, *self.param)
        value = Node(op, (part, operand), self._region, self.dtype)
        return Node(self.op, (old, value), self.shape, self.dtype, self.param)


_get_inputs: Final[Any] = Node.__dict__["inputs"].__get__
_set_inputs: Final[Any] = Node.__dict__["inputs"].__set__


def modify_view(
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

    `alone` is how often a statement is referred to that only the next one reads.
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
            before._loop = before._expanded()
            before = earlier
    return joined


def _written(last: Modification, node: Node, offsets: list[tuple[int, ...]]) -> Node | None:
    """`node` after the statements that wrote at `offsets`, of which `last` is one."""
    places = np.array(offsets[::-1], np.int64)
    turns = _turns(places[:, 0])
    if len(turns) * LEAST > len(places):
        return None
    for turn in turns:
        taken = places[turn]
        written = None
        if len(taken) < LEAST:
            written = _one_by_one(last, node, taken)
        else:
            if np.count_nonzero(np.diff(taken[:, 0], 2)) <= MOST_CHANGES * len(taken):
                written = _on_grids(last, node, taken)
            written = written or _scattered(last, node, taken)
            # Few that lie far apart, but not those of the first turn: it shows that none overlap.
            if written is None and len(taken) * LEAST <= len(places):
                written = _one_by_one(last, node, taken)
        if written is None:
            return None
        node = written
    return node


def _turns(offsets: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    """The statements that write to a part for the first time, those that do so for the second time,
    ...; each in order of their offsets."""
    order = np.argsort(offsets, kind="stable")
    ordered = offsets[order]
    numbers = np.arange(len(order))
    (begins,) = np.nonzero(np.append(True, ordered[1:] != ordered[:-1]))
    turn = numbers - np.repeat(begins, np.diff(np.append(begins, len(order))))
    if not turn.any():
        return [order]
    stops = np.cumsum(np.bincount(turn))
    return np.split(order[np.argsort(turn, kind="stable")], stops[:-1])


def _changed(
    last: Modification, node: Node, shape: _Shape, offset: int, strides: _Shape, operand: Node
) -> Node:
    """What the statement's operation makes of a region of `node`."""
    assert last._loop is not None
    return Node(last._loop, (view(node, shape, offset, strides), operand), shape, last.dtype)


def _one_by_one(last: Modification, node: Node, places: npt.NDArray[np.int64]) -> Node:
    operand = last._operand
    assert operand is not None
    region, inner = last._region, last.param[1]
    for start in places.tolist():
        other = operand
        if len(start) == 2:
            other = view(operand.inputs[0], operand.shape, start[1], operand.param[1])
        value = _changed(last, node, region, start[0], inner, other)
        node = update(node, value, start[0], inner)
    return node


def _on_grids(last: Modification, node: Node, places: npt.NDArray[np.int64]) -> Node | None:
    """One write a grid; None where there are too many, or where parts overlap."""
    operand = last._operand
    assert operand is not None
    found = grids(places)
    if len(found) * LEAST > len(places):
        return None
    region, inner = last._region, last.param[1]
    end = -1
    for rows, extents, steps in found:
        start = places[rows[0]].tolist()
        shape = extents + region
        strides = (*[step[0] for step in steps], *inner)
        low, high = reach(shape, start[0], strides)
        if low <= end or not is_injective(shape, strides):
            return None
        end = high
        other = operand
        if len(start) == 2:
            other = _spread(operand, extents, start[1], tuple([step[1] for step in steps]), region)
        value = _changed(last, node, shape, start[0], strides, other)
        node = update(node, value, start[0], strides)
    return node


def _spread(operand: Node, extents: _Shape, offset: int, steps: _Shape, region: _Shape) -> Node:
    """The views that statements take, on a grid of `extents`, in front of the axes of `region`."""
    wanted, strides = operand.shape, operand.param[1]
    if any(steps):
        wanted = (*extents, *(1,) * (len(region) - len(wanted)), *wanted)
        missing = len(wanted) - len(extents) - len(strides)
        strides = (*steps, *(0,) * missing, *strides)
    return view(operand.inputs[0], wanted, offset, strides)


def _scattered(last: Modification, node: Node, places: npt.NDArray[np.int64]) -> Node | None:
    """One write over all parts that lie between those that are written, of which the others stay
    as they are: a table says which. None where that is too many, or where parts overlap."""
    op, operand = last._loop, last._operand
    assert op is not None
    assert operand is not None
    starts = places[:, 0] - places[0, 0]
    step = int(np.gcd.reduce(starts))
    rows = starts // step
    count = int(rows[-1]) + 1
    region = last._region
    shape, strides = (count, *region), (step, *last.param[1])
    size = math.prod(shape)
    if size > MOST_PASSED_OVER * len(places) or not is_injective(shape, strides):
        return None
    if op is not op.plain and size <= MOST_LEFT_TO_NUMPY * settings.host_us:
        return None
    offset = int(places[0, 0])
    ones = (1,) * len(region)
    is_written = np.zeros(count, np.bool_)
    is_written[rows] = True
    other = operand
    if places.shape[1] == 2:
        other = _spread_anyhow(operand, rows, places[:, 1], count, region)
    before = view(node, shape, offset, strides)
    dtype = last.dtype
    after = Node(op.plain, (before, other), shape, dtype)
    select = loop("where", (_BOOL, dtype, dtype), dtype)
    mask = _table(is_written, (count, *ones))
    return update(node, Node(select, (mask, after, before), shape, dtype), offset, strides)


def _spread_anyhow(
    operand: Node,
    rows: npt.NDArray[np.int64],
    offsets: npt.NDArray[np.int64],
    count: int,
    region: _Shape,
) -> Node:
    """The views that the statements of `rows` take, in an array of `count` rows."""
    first, ahead = int(offsets[0]), offsets - offsets[0]
    step = int(ahead[-1]) // int(rows[-1])
    if (rows * step == ahead).all():
        return _spread(operand, (count,), first, (step,), region)
    start_of = np.full(count, first, np.int64)
    start_of[rows] = offsets
    shape = (*(1,) * (len(region) - len(operand.shape)), *operand.shape)
    strides = (*(0,) * (len(shape) - len(operand.shape)), *operand.param[1])
    position = _table(start_of, (count, *(1,) * len(shape)))
    gather = structural(Kind.GATHER, "gather", operand.dtype)
    param = 0, (0, *strides)
    return Node(gather, (operand.inputs[0], position), (count, *shape), operand.dtype, param)


def _table(values: npt.NDArray[Any], shape: _Shape) -> Node:
    """Numbers of the program's structure, which go to the device when the plan runs."""
    op = structural(Kind.LIBRARY, TABLE, values.dtype)
    return Node(op, (), shape, values.dtype, values.tobytes())


def _calibrate() -> int:
    """How often a statement that is not held is referred to inside `_run`; counts are not exact
    without the interpreter's lock, where nothing is joined."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return -1
    dtype = np.dtype(np.float64)
    op = loop("add", (dtype, dtype), dtype)
    node = operand = Node(structural(Kind.LEAF, "leaf", dtype), (), (3,), dtype)
    for offset in range(3):
        node = modify_view(node, op, operand, (1,), offset, (0,))
    assert type(node) is Modification
    last = node
    del node
    return next((count for count in range(9) if len(_run(last, count)[1]) == 3), -1)


_ALONE: Final = _calibrate()
