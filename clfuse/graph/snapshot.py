"""What is to be computed as plain tuples: the key of the plan cache; called once an evaluation.

`take` lists the reachable nodes in topological order. The list of `items` names every node's
operation, shape, parameters and inputs by position, with constants and buffers by position only, so
two recordings of the same step have equal items. Looking a plan up compares items instead of
hashing them: tuples of the same objects compare by identity, which is several times faster.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from .ir import Kind, Node, loop, structural

LIVE = 1
"""Flag: somebody outside the evaluated graph still refers to the node (or its bytes)."""
COMPUTED = 2
"""Flag: computed by an earlier evaluation without being stored."""


class Snapshot:
    """The nodes below the requested ones.

    Attributes
    ----------
    nodes : list of Node, topological
    items : list of tuple
        ``(op, shape, param, input positions...)``; a buffer is ``(None, shape, number, dtype)``, a
        constant ``(op,)``: its value is not part of the structure.
    flags : bytes, LIVE and COMPUTED bits a node
    roots : tuple of int, positions of what was asked for
    """

    __slots__ = ("buffers", "flags", "items", "nodes", "roots")

    def __init__(
        self,
        nodes: list[Node],
        items: list[tuple[Any, ...]],
        flags: bytes,
        roots: tuple[int, ...],
        buffers: list[Any],
    ) -> None:
        self.nodes = nodes
        self.items = items
        self.flags = flags
        self.roots = roots
        self.buffers = buffers

    def same_structure(self, other: Snapshot) -> bool:
        """Whether a plan made for `other` is a plan for this."""
        return self.flags == other.flags and self.roots == other.roots and self.items == other.items


def _walk(
    roots: Sequence[Node],
) -> tuple[dict[Node, int], list[Node], list[tuple[Any, ...]], dict[Any, int]]:
    index: dict[Node, int] = {}
    nodes: list[Node] = []
    items: list[tuple[Any, ...]] = []
    buffers: dict[Any, int] = {}
    constant = Kind.CONSTANT
    stack = list(reversed(roots))
    push = stack.append
    pop = stack.pop
    position = index.get
    while stack:
        node = pop()
        if node in index:
            continue
        if node.buffer is not None:
            number = buffers.setdefault(node.buffer, len(buffers))
            item: tuple[Any, ...] = (None, node.shape, number, node.dtype)
        else:
            inputs = node.inputs
            if len(inputs) == 2:  # most nodes: spelled out, it takes half the time
                first, second = inputs
                one, two = position(first), position(second)
                if one is None or two is None:
                    push(node)
                    if one is None:
                        push(first)
                    if two is None:
                        push(second)
                    continue
                item = (node.op, node.shape, node.param, one, two)
            elif inputs:
                places = [position(operand) for operand in inputs]
                if None in places:
                    push(node)
                    stack += [operand for operand in inputs if operand not in index]
                    continue
                item = (node.op, node.shape, node.param, *places)
            else:
                op = node.op
                item = (op,) if op.kind is constant else (op, node.shape, node.param)
        index[node] = len(nodes)
        nodes.append(node)
        items.append(item)
    return index, nodes, items, buffers


def take(roots: Sequence[Node]) -> Snapshot:
    """Snapshot everything that `roots` need; no recursion, so depth does not matter."""
    index, nodes, items, buffers = _walk(roots)
    flags = _flags(nodes)
    root_positions = tuple([index[root] for root in roots])
    return Snapshot(nodes, items, flags, root_positions, list(buffers))


def _references(nodes: list[Node]) -> list[int]:
    """References to every node beyond those of the walked graph (and a fixed few of our own)."""
    # By identity: nodes with several results (divmod) may share one tuple of inputs.
    tuples = {id(node.inputs): node.inputs for node in nodes}
    inner = Counter(chain.from_iterable(tuples.values()))
    totals = list(map(sys.getrefcount, nodes))
    return [total - inner[node] for total, node in zip(totals, nodes)]  # noqa: B905 (speed)


def _buffer_references(node: Node) -> int:
    return sys.getrefcount(node.buffer)


def _flags(nodes: list[Node]) -> bytes:
    dead = _DEAD[0]
    result = [LIVE if references > dead else 0 for references in _references(nodes)]
    for position, node in enumerate(nodes):
        if node.buffer is not None and (
            node.buffer.exported or _buffer_references(node) > _DEAD[1]
        ):
            result[position] = LIVE
        if node.computed:
            result[position] |= COMPUTED
    return bytes(result)


def _calibrate() -> tuple[int, int]:
    """How many references a dead node, and the buffer of a dead leaf, have inside `take`.

    CPython versions differ in which temporaries hold references; a graph that is known to be dead
    shows the numbers. Without exact counts (no GIL) everything counts as live: correct, with more
    memory.
    """
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return -1, -1
    dtype = np.dtype(np.float64)
    op = loop("negative", (dtype,), dtype)

    def dead_chain() -> list[Node]:
        source = Node(structural(Kind.LEAF, "leaf", dtype), (), (2,), dtype)
        source.buffer = object()
        return [Node(op, (Node(op, (source,), (2,), dtype),), (2,), dtype)]

    roots = dead_chain()
    index, nodes, items, buffers = _walk(roots)
    references = _references(nodes)
    result = references[1], _buffer_references(nodes[0])
    if references[0] != references[1] or len(index) != 3 or len(items) != 3 or len(buffers) != 1:
        return -1, -1
    return result


_DEAD = _calibrate()
