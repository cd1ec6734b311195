"""Previews: the corners of an array that is not computed, without computing all of it.

At a prompt and in a notebook the text of a large array shows three elements at either end of each
axis. Where these depend on few others, they are recorded as operations on parts (`tile_nodes`), and
the array stays recorded. A program that is run from a file computes the array: it prints in loops,
and would compute every round from the beginning.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from clfuse.ir import build
from clfuse.ir.nodes import Kind, Node
from clfuse.runtime.memory.buffers import HostBuffer

from .evaluate import evaluate_nodes, host_view
from .tile_cuts import view_part
from .tile_nodes import Slices

__all__ = ["corners"]

LEAST_ELEMENTS: Final = 1 << 20
"""Of smaller arrays all is computed."""

MOST_NODES: Final = 2000
"""Operations that a corner may take: more are quicker as one plan of the whole."""

SHARE: Final = 16
"""So many times the elements of the corners' operations are in the array."""

Span = tuple[int, int]
"""Of an axis: first index and end."""


def corners(node: Node, places: Sequence[Sequence[Span]]) -> list[np.ndarray] | None:
    """The elements of a node in some boxes, one span an axis; None where there is no cheaper way
    than to compute all of it."""
    if node.buffer is not None or math.prod(node.shape) < LEAST_ELEMENTS:
        return None
    if _count([node], MOST_NODES) is None:
        return None
    axes = range(len(node.shape))
    # What lies across the rows is cut by columns first.
    made = _parts(node, places, axes) or _parts(node, places, axes[::-1])
    if made is None:
        return None
    evaluate_nodes(made)
    return [host_view(part) for part in made]


def _parts(node: Node, places: Sequence[Sequence[Span]], axes: Sequence[int]) -> list[Node] | None:
    """Nodes for the boxes, cut along one axis after the other; None where they take more than few
    elements."""
    slices = Slices(_cut)
    made = []
    for place in places:
        part = node
        for axis in axes:
            start, stop = place[axis]
            if (start, stop) != (0, part.shape[axis]):
                part = slices.part(part, axis, start, stop)
        made.append(part)
    elements = _count(made, MOST_NODES)
    if elements is None or elements * SHARE > math.prod(node.shape):
        return None
    return made


def _cut(leaf: Node, axis: int, start: int, stop: int) -> Node:
    buffer: Any = leaf.buffer
    if type(buffer) is not HostBuffer:
        return view_part(leaf, axis, start, stop)
    # Not the whole of it goes to the device.
    array = buffer.read(leaf.dtype, leaf.shape)[(slice(None),) * axis + (slice(start, stop),)]
    return build.leaf(HostBuffer(buffer.device, array.copy()), array.shape, array.dtype)


def _count(nodes: Iterable[Node], most: int) -> int | None:
    """The elements of all operations that have to be computed for nodes; None where these are more
    than so many operations."""
    seen: set[Node] = set()
    stack = list(nodes)
    elements = 0
    while stack:
        node = stack.pop()
        if node in seen or node.buffer is not None:
            continue
        seen.add(node)
        if len(seen) > most:
            return None
        if node.op.kind not in (Kind.VIEW, Kind.CONSTANT, Kind.IOTA):
            elements += math.prod(node.shape)
            # A fold reads more than it gives.
            elements += sum([math.prod(each.shape) for each in node.inputs])
        stack += node.inputs
    return elements
