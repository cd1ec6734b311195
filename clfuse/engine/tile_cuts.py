"""Tile cuts: how an array is cut into tiles that fit, and what has to be computed before.

Several cuts may be possible: parts of the array along any axis; of a fold or a scan, parts of its
input along the folded axis. The first one is taken of which one index of the axis fits. Outer axes
come before inner ones, because neighbours in memory are copied together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from clfuse.dataclass import mutable
from clfuse.ir import build
from clfuse.ir.layout import contiguous_strides
from clfuse.ir.nodes import Kind, Node
from clfuse.runtime.memory.buffers import HostBuffer

from .tile_nodes import Slices, is_given

if TYPE_CHECKING:
    from clfuse.runtime.context.pool import Pool
    from clfuse.runtime.devices.device import Device

__all__ = [
    "FOLD", "PART", "SCAN", "TILES_IN_MEMORY", "TILE_NBYTES", "WHOLE", "Target", "below",
    "compact_view", "is_streamed", "nbytes_of", "rows_of", "targets", "view_part",
]  # fmt: skip

TILE_NBYTES: Final = 1 << 28
"""What a tile takes of operands and results, at most: the transfer of so much takes longer than all
else that a tile costs."""

TILES_IN_MEMORY: Final = 8
"""As many tiles would be in memory at the same time: operands of the next one, the one that is
computed with its temporaries, and results of the one before."""

STREAMED_NBYTES: Final = 1 << 12
"""Up to this size an operand on the host goes to the device as a whole."""

MEASURED_ROWS: Final = 256
"""Indices of an axis of which it is looked how much they need, to know what one more takes."""

MOST_AXES: Final = 4
"""Axes that are tried, the first one first, then the longest ones."""

PART, FOLD, SCAN = "part", "fold", "scan"


@mutable
class Target:
    """An array that is computed in tiles.

    `how` says whether tiles are parts of it along `axis`, or it is a fold, or a scan, of such parts
    of its input. `row_nbytes` is what an index of that axis takes in operands and results,
    `fixed_nbytes` what all tiles need; `before` what has to be computed first.
    """

    node: Node
    how: str
    axis: int
    extent: int
    row_nbytes: int
    fixed_nbytes: int
    before: list[Node]


def nbytes_of(node: Node) -> int:
    return math.prod(node.shape) * node.dtype.itemsize


def _nbytes_read(node: Node) -> int:
    """What all of a node takes: a view no more than what it is a view of."""
    nbytes = nbytes_of(node)
    while node.buffer is None and node.op.kind is Kind.VIEW:
        (node,) = node.inputs
        nbytes = min(nbytes, nbytes_of(node))
    return nbytes


def _ways(node: Node, pool: Pool) -> Iterator[tuple[str, int]]:
    """How a node may be computed in tiles, and along which axis; the best way first."""
    inputs, kind = node.inputs, node.op.kind  # in this order, of late nodes
    longest = sorted(range(1, len(node.shape)), key=lambda axis: -node.shape[axis])
    parts = [(PART, axis) for axis in [0, *longest][:MOST_AXES] if axis < len(node.shape)]
    if kind is Kind.REDUCE or (kind is Kind.ARGREDUCE and node.inputs[0].dtype.kind != "c"):
        axis = next((axis for axis in node.param if inputs[0].shape[axis] > 1), node.param[0])
        fold = (FOLD, axis)
        # Rows of the input lie together; but the result of each tile has to be kept.
        is_first = axis == 0 and TILES_IN_MEMORY * nbytes_of(node) <= pool.limit_nbytes
        yield from [fold, *parts] if is_first else [*parts, fold]
    elif kind is Kind.SCAN:
        (axis,) = node.param
        scan = (SCAN, axis)
        others = [(how, other) for how, other in parts if other != axis]
        yield from [scan, *others] if axis == 0 else [*others, scan]
    else:
        yield from parts


def targets(node: Node, pool: Pool) -> Iterator[Target]:
    """The ways to compute a node in tiles, as far as one index of the axis fits into memory."""
    for how, axis in _ways(node, pool):
        source = node if how == PART else node.inputs[0]
        extent = source.shape[axis]
        if extent < 2 or 0 in source.shape:
            continue
        few = _measure(source, axis, 1)
        many = _measure(source, axis, min(extent, MEASURED_ROWS))
        row = -(-(many.streamed - few.streamed) // (min(extent, MEASURED_ROWS) - 1))
        fixed = few.fixed + max(few.streamed - row, 0)
        if how == FOLD:
            fixed += nbytes_of(node)
        else:
            row += nbytes_of(node) // extent
        if row + fixed <= pool.limit_nbytes and node not in few.before:
            yield Target(node, how, axis, extent, max(row, 1), fixed, few.before)


@mutable
class _Measured:
    """What a part of a node takes: bytes that are brought for it, bytes that every part needs, and
    what has to be computed before."""

    streamed: int
    fixed: int
    before: list[Node]


def _measure(source: Node, axis: int, rows: int) -> _Measured:
    """What the first `rows` indices along an axis take."""
    parts: dict[tuple[Node, int], int] = {}

    def cut(leaf: Node, along: int, start: int, stop: int) -> Node:
        made = view_part(leaf, along, start, stop)
        key = leaf, along
        parts[key] = max(parts.get(key, 0), nbytes_of(made)) if is_streamed(leaf) else 0
        return made

    slices = Slices(cut)
    slices.part(source, axis, 0, rows)
    resident = [leaf for leaf, _ in parts if not is_streamed(leaf)]
    read = dict.fromkeys([*slices.whole, *resident])
    later = sum([count * node.dtype.itemsize for node, count in slices.later.items()])
    return _Measured(sum(parts.values()) + later, sum(map(_nbytes_read, read)), slices.missing())


def is_streamed(leaf: Node) -> bool:
    """Whether tiles bring their parts of it to the device."""
    buffer = leaf.buffer
    return (
        type(buffer) is HostBuffer and buffer.memory is None and nbytes_of(leaf) > STREAMED_NBYTES
    )


def below(node: Node) -> list[Node]:
    """What to compute before a node that is computed as a whole, so that it takes less memory."""
    if node.op.kind not in WHOLE:
        return _whole_below(node)
    found = [each for each in node.inputs if not is_given(each)]
    launches = [each for each in found if each.op.kind is Kind.LAUNCH]
    for launch in launches:
        found.remove(launch)
        found += [each for each in launch.inputs if not is_given(each)]
    return list(dict.fromkeys(found))


def _whole_below(node: Node) -> list[Node]:
    """The folds, and what else takes more operands than results, that are next below a node."""
    found: dict[Node, None] = {}
    stack, seen = list(node.inputs), set(node.inputs)
    while stack:
        each = stack.pop()
        inputs = each.inputs
        if is_given(each):
            continue
        if each.op.kind in WHOLE or each.op.kind in _FOLDS:
            found[each] = None
            continue
        for operand in inputs:
            if operand not in seen:
                seen.add(operand)
                stack.append(operand)
    return list(found)


_FOLDS: Final = frozenset((Kind.REDUCE, Kind.ARGREDUCE, Kind.SCAN))
WHOLE: Final = frozenset((Kind.LIBRARY, Kind.COUNTS, Kind.COMPACT, Kind.EXPAND, Kind.PART))
"""Kinds that are computed as a whole, of operands in memory."""


def rows_of(targets: Sequence[Target], pool: Pool) -> int:
    """How many indices of the axis a tile has at first."""
    extent = targets[0].extent
    row = sum([target.row_nbytes for target in targets])
    room = max(pool.limit_nbytes - sum([target.fixed_nbytes for target in targets]), 0)
    most = min(TILE_NBYTES, room // TILES_IN_MEMORY, pool.largest_nbytes // 2)
    return min(max(most // row, 2), -(-extent // 2))


def compact_view(node: Node, device: Device) -> Node:
    """A leaf with the elements of a view, where these are fewer than an array on the host has."""
    views = []
    below = node
    while below.buffer is None and below.op.kind is Kind.VIEW:
        views.append(below)
        (below,) = below.inputs
    if below.buffer is None or not is_streamed(below) or 0 in node.shape:
        return node
    if nbytes_of(node) >= nbytes_of(below):
        return node
    array = below.buffer.read(below.dtype, below.shape)
    for view in reversed(views):
        offset, strides = view.param
        array = np.ascontiguousarray(array)  # as for every view, what it counts is in C order
        size = array.itemsize
        array = np.ndarray(
            view.shape, array.dtype, array, offset * size, tuple([each * size for each in strides])
        )
    return build.leaf(HostBuffer(device, array.copy()), node.shape, node.dtype)


def view_part(node: Node, axis: int, start: int, stop: int) -> Node:
    """A part of a node as a view of it."""
    strides = contiguous_strides(node.shape)
    shape = (*node.shape[:axis], stop - start, *node.shape[axis + 1 :])
    return build.view(node, shape, start * strides[axis], strides)
