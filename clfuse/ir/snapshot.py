"""Snapshots: the graph below the requested nodes as plain tuples, the key of the plan cache.

`take` lists the reachable nodes in topological order. The list of `items` names every node's
operation, shape, parameters and inputs by position, with constants and buffers by position only, so
two recordings of the same step have equal items. Looking a plan up compares items instead of
hashing them: tuples of the same objects compare by identity, which is several times faster.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from operator import sub
from typing import Any, Final, TypeVar

import numpy as np

from .launch_nodes import add_siblings
from .nodes import Kind, Node, loop, structural

_Fact = TypeVar("_Fact")

MOST_FACTS: Final = 64
"""Facts that are kept of a structure; some are of where its arguments lie, which changes."""

LIVE = 1
"""Flag: an object outside the evaluated graph still refers to the node (or its bytes)."""
COMPUTED = 2
"""Flag: computed by an earlier evaluation without being stored."""


class Snapshot:
    """The nodes below the requested ones.

    nodes: topological
    items (list of tuple): ``(op, shape, param, input positions...)``; a buffer is ``(None, shape,
        number, dtype)``, a constant ``(op,)``: its value is not part of the structure.
    flags: LIVE and COMPUTED bits a node
    roots: positions of what was asked for
    structure (Snapshot or None): of a graph that was recognised: the snapshot without nodes and
        buffers that all like it share.
    ready (object): of a structure that is known: what evaluates the next one like it
        (`engine.evaluate`), or None.
    prepared (dict): of a structure that is known: how NumPy goes through it
        (`interpreter.interpret`).
    facts (dict): of a structure that is known: what else was found out about it (`fact`).
    """

    __slots__ = (
        "buffers", "facts", "flags", "items", "nodes", "prepared", "ready", "roots", "structure",
    )  # fmt: skip

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
        self.structure: Snapshot | None = None
        self.ready: Any = None
        self.prepared: dict[bool, Any] = {}
        self.facts: dict[Any, Any] = {}

    def fact(self, name: Any, find: Callable[[], _Fact]) -> _Fact:
        """What ``find()`` gives, which follows from the structure and from what `name` says of it
        besides; found once for a structure that is known."""
        if self.structure is None:
            return find()
        facts = self.structure.facts
        if name not in facts:
            if len(facts) >= MOST_FACTS:
                facts.clear()
            facts[name] = find()
        return facts[name]  # type: ignore[no-any-return]

    def same_structure(self, other: Snapshot) -> bool:
        """Whether a plan made for `other` is a plan for this."""
        if self.items is other.items:  # recognised
            return True
        return self.flags == other.flags and self.roots == other.roots and self.items == other.items


class _Walk:
    """What `take` finds below the roots; `uses` counts who in it holds a node."""

    __slots__ = ("buffers", "index", "items", "nodes", "uses")

    def __init__(self) -> None:
        self.index: dict[Node, int] = {}
        self.nodes: list[Node] = []
        self.items: list[tuple[Any, ...]] = []
        self.uses: list[int] = []
        self.buffers: dict[Any, int] = {}


def _walk(roots: Sequence[Node]) -> _Walk:
    found = _Walk()
    index, nodes, items, uses = found.index, found.nodes, found.items, found.uses
    buffers = found.buffers
    # Nodes with several results (divmod) may share one tuple of inputs: it holds them once.
    # The entry is the tuple, and how many nodes here have it.
    shared: dict[int, list[Any]] = {}
    constant = Kind.CONSTANT
    own = _OWN_TUPLE
    references = sys.getrefcount
    stack: list[Node] = []
    push = stack.append
    pop = stack.pop
    position = index.get
    for root in roots[::-1]:
        push(root)
    while stack or add_siblings(stack, index):
        node = pop()
        if node in index:
            continue
        while True:  # down to what is known or has no inputs
            inputs = node.inputs
            if not inputs or node.buffer is not None:
                buffer = node.buffer
                if buffer is not None:
                    number = buffers.setdefault(buffer, len(buffers))
                    item: tuple[Any, ...] = (None, node.shape, number, node.dtype)
                else:
                    op = node.op
                    item = (op,) if op.kind is constant else (op, node.shape, node.param)
                break
            # Up to three inputs, as most nodes have, are spelled out: half the time.
            if len(inputs) == 2:
                first, second = inputs
                one, two = position(first), position(second)
                if two is None:
                    push(node)
                    if one is None:
                        push(first)
                    node = second
                    continue
                if one is None:
                    push(node)
                    node = first
                    continue
                item = (node.op, node.shape, node.param, one, two)
                uses[one] += 1
                uses[two] += 1
            elif len(inputs) == 1:
                (first,) = inputs
                one = position(first)
                if one is None:
                    push(node)
                    node = first
                    continue
                item = (node.op, node.shape, node.param, one)
                uses[one] += 1
            elif len(inputs) == 3:
                first, second, third = inputs
                one, two, three = position(first), position(second), position(third)
                if one is None or two is None or three is None:
                    push(node)
                    if one is None:
                        push(first)
                    if two is None:
                        push(second)
                    node = pop() if three is not None else third
                    continue
                item = (node.op, node.shape, node.param, one, two, three)
                uses[one] += 1
                uses[two] += 1
                uses[three] += 1
            else:
                places = [position(operand) for operand in inputs]
                if None in places:
                    push(node)
                    stack += [operand for operand in inputs if operand not in index]
                    node = pop()
                    continue
                item = (node.op, node.shape, node.param, *places)
                for place in places:
                    uses[place] += 1  # type: ignore[index]
            if references(inputs) > own:
                known = shared.get(id(inputs))
                if known is None:
                    shared[id(inputs)] = [inputs, 1]
                else:
                    known[1] += 1
                    for operand in inputs:
                        uses[index[operand]] -= 1
            break
        index[node] = len(nodes)
        nodes.append(node)
        items.append(item)
        uses.append(0)
    for inputs, count in shared.values():
        if references(inputs) > own + count:  # a node that was not requested has it too
            for operand in inputs:
                uses[index[operand]] -= 1
    for root in roots:
        uses[index[root]] += 1  # by `roots`
    return found


def take(roots: Sequence[Node]) -> Snapshot:
    """Snapshot everything that `roots` need; no recursion, so depth does not matter."""
    found = _walk(roots)
    nodes = found.nodes
    flags = _flags(nodes, found.uses)
    root_positions = tuple([found.index[root] for root in roots])
    return Snapshot(nodes, found.items, flags, root_positions, list(found.buffers))


def shape_at(items: Sequence[tuple[Any, ...]], number: int) -> tuple[int, ...]:
    """The shape of an item's value; items of constants have none, because it is ``()``."""
    item = items[number]
    return () if len(item) == 1 else item[1]


def _references(nodes: list[Node], uses: list[int]) -> list[int]:
    """References to every node beyond those of the walked graph (and a fixed few of our own)."""
    return list(map(sub, map(sys.getrefcount, nodes), uses))


def _buffer_references(node: Node) -> int:
    return sys.getrefcount(node.buffer)


def _flags(nodes: list[Node], uses: list[int]) -> bytes:
    dead = _DEAD[0]
    result = [LIVE if references > dead else 0 for references in _references(nodes, uses)]
    for position, node in enumerate(nodes):
        if node.buffer is not None and (
            node.buffer.exported or _buffer_references(node) > _DEAD[1]
        ):
            result[position] = LIVE
        if node.computed:
            result[position] |= COMPUTED
    return bytes(result)


def _own_tuple() -> int:
    """The references that the walk sees to a tuple of inputs that one node has."""
    dtype = np.dtype(np.float64)
    source = Node(structural(Kind.LEAF, "leaf", dtype), (), (2,), dtype)
    node = Node(loop("negative", (dtype,), dtype), (source,), (2,), dtype)
    inputs = node.inputs
    references = sys.getrefcount
    return references(inputs)


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
    found = _walk(roots)
    references = _references(found.nodes, found.uses)
    result = references[1], _buffer_references(found.nodes[0])
    if references[0] != references[1] or len(found.items) != 3 or len(found.buffers) != 1:
        return -1, -1
    return result


_OWN_TUPLE = _own_tuple()
_DEAD = _calibrate()
