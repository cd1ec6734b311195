"""Constructors of nodes, one function for each kind.

Arguments are not checked: shapes must fit, dtypes be those of the loop, and axes lie in range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from .layout import contiguous_strides
from .nodes import Kind, Node, Op, bitcast_loop, cast_loop, loop, reduction, structural
from .size_limits import CONCEIVABLE_NBYTES, require_room

_new: Final[Any] = object.__new__

INT64 = np.dtype(np.int64)
BOOL = np.dtype(np.bool_)
INT8 = np.dtype(np.int8)
INT32 = np.dtype(np.int32)


def leaf(buffer: Any, shape: tuple[int, ...], dtype: np.dtype) -> Node:
    """Bytes that lie in a device buffer, C-contiguous from its start."""
    node = Node(structural(Kind.LEAF, "leaf", dtype), (), shape, dtype)
    node.buffer = buffer
    return node


@lru_cache(maxsize=4096)
def _constant(dtype: np.dtype, contents: bytes) -> Node:
    value = np.frombuffer(contents, dtype)[0]
    return Node(structural(Kind.CONSTANT, "constant", dtype), (), (), dtype, value)


def constant(value: np.generic) -> Node:
    """A scalar of the program, shape (); a kernel argument, so it never specialises the source."""
    return _constant(value.dtype, value.tobytes())


def full(value: np.generic, shape: tuple[int, ...]) -> Node:
    """`value` everywhere; takes no memory until it is stored."""
    return view(constant(value), shape, 0, (0,) * len(shape))


def iota(count: int) -> Node:
    """0, 1, ... count-1 as int64, shape (count,); takes no memory until it is stored."""
    shape = require_room((count,), INT64, CONCEIVABLE_NBYTES)
    return Node(structural(Kind.IOTA, "iota", INT64), (), shape, INT64)


def elementwise(op: Op, inputs: tuple[Node, ...], shape: tuple[int, ...]) -> Node:
    """A loop over `shape`; inputs broadcast to it and are cast to the loop's input dtypes."""
    return Node(op, inputs, shape, op.dtype)  # type: ignore[arg-type]


def apply(name: str, inputs: Sequence[Node], dtype: np.dtype, shape: tuple[int, ...]) -> Node:
    """The op-table row `name` on inputs whose dtypes are the loop's input dtypes."""
    op = loop(name, tuple(node.dtype for node in inputs), dtype)
    return Node(op, tuple(inputs), shape, dtype)


def cast(node: Node, dtype: np.dtype) -> Node:
    """`node` converted to `dtype`; itself if it has it."""
    if node.dtype == dtype:
        return node
    if node.op.kind is Kind.CONSTANT:
        with np.errstate(all="ignore"):
            return constant(node.param.astype(dtype))
    return Node(cast_loop(node.dtype, dtype), (node,), node.shape, dtype)


def bitcast(node: Node, dtype: np.dtype) -> Node:
    """The bytes of `node` as a dtype of the same item size."""
    if node.dtype == dtype:
        return node
    return Node(bitcast_loop(node.dtype, dtype), (node,), node.shape, dtype)


def view(node: Node, shape: tuple[int, ...], offset: int, strides: tuple[int, ...]) -> Node:
    """The element at ``offset + sum(index * strides)`` of the C order of `node`.

    Strides count elements. Slices, transposes, broadcasts, reshapes, diagonals and windows are all
    of this form. The identity gives `node` itself; a view of a constant ignores the map.
    """
    if offset == 0 and shape == node.shape and strides == contiguous_strides(shape):
        return node
    if 0 in strides:
        require_room(shape, node.dtype, CONCEIVABLE_NBYTES)
    if node.op.kind is Kind.VIEW and node.buffer is None:
        inner = node.inputs[0]
        if math.prod(inner.shape) == 1:
            return view(inner, shape, 0, (0,) * len(shape))
    if math.prod(node.shape) == 1:
        offset, strides = 0, (0,) * len(shape)
    dtype = node.dtype
    made: Node = _new(Node)  # as its constructor does, in half the time
    made.op = VIEWS.get(dtype) or _view_of(dtype)
    made.inputs = (node,)
    made.shape = shape
    made.dtype = dtype
    made.param = (offset, strides)
    made.buffer = None
    made.computed = False
    return made


VIEWS: Final[dict[np.dtype, Op]] = {}
"""`structural` of views, remembered by the dtype alone: there are many."""


def _view_of(dtype: np.dtype) -> Op:
    op = VIEWS[dtype] = structural(Kind.VIEW, "view", dtype)
    return op


UPDATES: Final[dict[np.dtype, Op]] = {}
"""The same of updates; `update_of` makes what is not there."""


def update_of(dtype: np.dtype) -> Op:
    """The operation of updates, from then on in `UPDATES`."""
    op = UPDATES[dtype] = structural(Kind.UPDATE, "update", dtype)
    return op


def broadcast(node: Node, shape: tuple[int, ...]) -> Node:
    """`node` stretched to `shape` by NumPy's rules (already checked)."""
    if node.shape == shape:
        return node
    lead = len(shape) - len(node.shape)
    strides = (0,) * lead + tuple(
        0 if extent == 1 else stride
        for extent, stride in zip(node.shape, contiguous_strides(node.shape), strict=True)
    )
    return view(node, shape, 0, strides)


def reshape(node: Node, shape: tuple[int, ...]) -> Node:
    """The same elements in C order under another shape of the same size."""
    return view(node, shape, 0, contiguous_strides(shape))


def reduce(name: str, node: Node, axes: tuple[int, ...], dtype: np.dtype) -> Node:
    """Fold `axes` (ascending, not empty) with the REDUCTIONS row `name`, accumulating in `dtype`.

    The input is cast to `dtype` first. Logical reductions take and give bool.
    """
    shape = tuple(extent for axis, extent in enumerate(node.shape) if axis not in axes)
    op = reduction(Kind.REDUCE, name, dtype, dtype)
    return Node(op, (cast(node, dtype),), shape, dtype, axes)


def scan(name: str, node: Node, axis: int, dtype: np.dtype) -> Node:
    """Every partial result of folding `axis` with the REDUCTIONS row `name`, in `dtype`.

    Element k along the axis is the fold of elements 0 to k of the input, which is cast to `dtype`
    first. Along an axis of at most one element there is nothing to fold.
    """
    node = cast(node, dtype)
    if node.shape[axis] < 2 or math.prod(node.shape) == 0:
        return node
    return Node(reduction(Kind.SCAN, name, dtype, dtype), (node,), node.shape, dtype, (axis,))


def arg_reduce(name: str, node: Node, axes: tuple[int, ...]) -> Node:
    """argmax or argmin: the first position, in C order of `axes`, of the extreme (or first NaN)."""
    if node.dtype == BOOL:
        node = cast(node, INT8)
    shape = tuple(extent for axis, extent in enumerate(node.shape) if axis not in axes)
    op = reduction(Kind.ARGREDUCE, name, node.dtype, INT64)
    return Node(op, (node,), shape, INT64, axes)


def update(old: Node, value: Node, offset: int, strides: tuple[int, ...]) -> Node:
    """`old` with `value` written at ``offset + sum(index * strides)`` of it.

    The map must be injective on `value.shape` (a view that can be written to). Writing everything
    in order is just the value.
    """
    dtype = old.dtype
    if value.dtype is not dtype:
        value = cast(value, dtype)
    size = math.prod(value.shape)
    if size == 0:
        return old
    if offset == 0 and size == math.prod(old.shape):
        packed = [
            (stride, extent)
            for stride, extent in zip(strides, value.shape, strict=True)
            if extent != 1
        ]
        wanted = contiguous_strides(tuple(extent for _, extent in packed))
        if tuple(stride for stride, _ in packed) == wanted:
            return reshape(value, old.shape)
    made: Node = _new(Node)
    made.op = UPDATES.get(dtype) or update_of(dtype)
    made.inputs = (old, value)
    made.shape = old.shape
    made.dtype = dtype
    made.param = (offset, strides)
    made.buffer = None
    made.computed = False
    return made


def counts(mask: Node, piece: int) -> Node:
    """How many elements of a mask (n,) are true in each piece of `piece` elements, as int32."""
    pieces = -(-mask.shape[0] // piece)
    # Not a cast: Oclgrind, with which the tests look for wild accesses, casts masks wrongly.
    select = loop("where", (BOOL, INT32, INT32), INT32)
    one, zero = constant(np.int32(1)), constant(np.int32(0))
    ones = elementwise(select, (mask, one, zero), mask.shape)
    op = structural(Kind.COUNTS, "counts", INT32)
    return Node(op, (ones,), (pieces,), INT32, piece)


def compact(mask: Node, value: Node, starts: Node, count: int, piece: int) -> Node:
    """The `count` elements of `value` (n,) where `mask` (n,) is true, in order.

    `starts` (pieces + 1,), int64, holds how many elements are true before each piece of `piece`
    elements, and `count`. It decides where a piece's elements go, so it must be right.
    """
    op = structural(Kind.COMPACT, "compact", value.dtype)
    return Node(op, (mask, value, starts), (count,), value.dtype, piece)


def expand(mask: Node, other: Node, starts: Node, packed: Node, piece: int) -> Node:
    """`other` (n,) with the elements of `packed` (count,), in order, where `mask` is true.

    The inverse of `compact`; `starts` and `piece` as there, `packed` not empty.
    """
    op = structural(Kind.EXPAND, "expand", other.dtype)
    inputs = (mask, other, starts, cast(packed, other.dtype))
    return Node(op, inputs, other.shape, other.dtype, piece)


def concatenate(nodes: Sequence[Node], axis: int) -> Node:
    """Join nodes of one dtype along `axis` (not negative; other extents equal)."""
    if len(nodes) == 1:
        return nodes[0]
    first = nodes[0].shape
    total = sum(node.shape[axis] for node in nodes)
    shape = (*first[:axis], total, *first[axis + 1 :])
    require_room(shape, nodes[0].dtype, CONCEIVABLE_NBYTES)
    op = structural(Kind.CONCATENATE, "concatenate", nodes[0].dtype)
    return Node(op, tuple(nodes), shape, nodes[0].dtype, axis)


def gather(
    source: Node, position: Node, shape: tuple[int, ...], offset: int, strides: tuple[int, ...]
) -> Node:
    """The element at ``position + offset + sum(index * strides)`` of the C order of `source`.

    `position` holds int32 or int64 and broadcasts to `shape`. The caller has made sure that every
    such element exists, and also the one for position 0.
    """
    while source.op.kind is Kind.VIEW and source.buffer is None:
        (inner,) = source.inputs
        size = math.prod(inner.shape)
        is_reshape = size == math.prod(source.shape) and source.param == (
            0,
            contiguous_strides(source.shape),
        )
        if size != 1 and not is_reshape:
            break
        source = inner
    if math.prod(source.shape) == 1:
        return view(source, shape, 0, (0,) * len(shape))
    strides = tuple(
        [0 if extent == 1 else stride for extent, stride in zip(shape, strides, strict=True)]
    )
    op = structural(Kind.GATHER, "gather", source.dtype)
    return Node(op, (source, position), shape, source.dtype, (offset, strides))


def library(
    name: str, nodes: Sequence[Node], shape: tuple[int, ...], dtype: np.dtype, param: Any = None
) -> Node:
    """A call that no generated kernel makes (matmul, sort); inputs and result lie in memory."""
    require_room(shape, dtype)  # it lies in memory
    return Node(structural(Kind.LIBRARY, name, dtype), tuple(nodes), shape, dtype, param)
