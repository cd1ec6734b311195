"""The planner's graph: a snapshot as columns, with equal nodes merged (value numbering)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from clfuse.ir.nodes import Kind, Op
from clfuse.ir.snapshot import COMPUTED, LIVE, Snapshot


class Graph:
    """Columns over merged nodes, in topological order.

    kinds, ops, shapes, dtypes, params, inputs, sizes: one entry a node
    buffer: the graph buffer a leaf lies in
    constant: position of a constant in the snapshot
    live, computed, requested (list of bool)
    members: snapshot positions merged into the node
    original: what `rewrite.rerolling` made this graph of
    moved: where its nodes are in this one; -1 for those that are gone
    """

    def __init__(self, snapshot: Snapshot | None = None) -> None:
        """The nodes of `snapshot`; without one, none yet."""
        self.kinds: list[Kind] = []
        self.ops: list[Op | None] = []
        self.shapes: list[tuple[int, ...]] = []
        self.sizes: list[int] = []
        self.dtypes: list[np.dtype] = []
        self.params: list[Any] = []
        self.inputs: list[tuple[int, ...]] = []
        self.buffer: list[int | None] = []
        self.constant: list[int | None] = []
        self.live: list[bool] = []
        self.computed: list[bool] = []
        self.requested: list[bool] = []
        self.members: list[list[int]] = []
        self.buffer_live: dict[int, bool] = {}
        self.original: Graph | None = None
        self.moved: list[int] = []
        if snapshot is not None:
            self._read(snapshot)

    def _read(self, snapshot: Snapshot) -> None:
        items, nodes = snapshot.items, snapshot.nodes
        # Kernels have no flags for floating-point errors; a library call may warn of them.
        items = [
            (item[0].plain, *item[1:])
            if len(item) > 3
            and item[0] is not None
            and item[0].plain is not item[0]
            and item[0].kind is not Kind.LIBRARY
            else item
            for item in items
        ]
        numbers: dict[Any, int] = {}
        where: list[int] = []
        firsts: list[int] = []  # the snapshot positions that the columns are made of
        merged: list[tuple[int, int]] = []
        for position, item in enumerate(items):
            key: Any = item
            if len(item) == 1:
                key = position  # a constant: its value is not known here
            elif merged and item[0] is not None:
                key = (*item[:3], *[where[operand] for operand in item[3:]])
            number = numbers.setdefault(key, len(firsts))
            if number == len(firsts):
                firsts.append(position)
            else:
                merged.append((number, position))
            where.append(number)
        count = len(firsts)
        chosen = items if not merged else [items[position] for position in firsts]
        leaf = Kind.LEAF
        self.ops = [item[0] for item in chosen]
        self.kinds = [leaf if op is None else op.kind for op in self.ops]
        self.shapes = [item[1] if len(item) > 1 else () for item in chosen]
        sizes = {shape: math.prod(shape) for shape in set(self.shapes)}
        self.sizes = [sizes[shape] for shape in self.shapes]
        self.dtypes = [nodes[position].dtype for position in firsts]
        self.params = [item[2] if len(item) > 1 and item[0] else None for item in chosen]
        self.inputs = [item[3:] if item[0] else () for item in chosen]
        if merged:
            self.inputs = [
                tuple([where[operand] for operand in operands]) for operands in self.inputs
            ]
        self.buffer = [None] * count
        self.constant = [None] * count
        self.live = [False] * count
        self.computed = [False] * count
        self.requested = [False] * count
        self.members = [[position] for position in firsts]
        for number, position in merged:
            self.members[number].append(position)
        for number, item in enumerate(chosen):
            if len(item) == 1:
                self.constant[number] = firsts[number]
            elif item[0] is None:
                self.buffer[number] = item[2]
        for position, flag in enumerate(snapshot.flags):
            if flag:
                self._mark(where[position], flag)
        for root in snapshot.roots:
            self.requested[where[root]] = True

    def _mark(self, number: int, flag: int) -> None:
        if flag & LIVE and self.kinds[number] is not Kind.CONSTANT:
            self.live[number] = True
            buffer = self.buffer[number]
            if buffer is not None:
                self.buffer_live[buffer] = True
        if flag & COMPUTED:
            self.computed[number] = True

    def append(
        self,
        kind: Kind,
        op: Op | None,
        shape: tuple[int, ...],
        dtype: np.dtype,
        param: Any,
        operands: tuple[int, ...],
        buffer: int | None = None,
        constant: int | None = None,
    ) -> int:
        """Add a node that is neither held nor requested yet; its number."""
        self.kinds.append(kind)
        self.ops.append(op)
        self.shapes.append(shape)
        self.sizes.append(math.prod(shape))
        self.dtypes.append(dtype)
        self.params.append(param)
        self.inputs.append(operands)
        self.buffer.append(buffer)
        self.constant.append(constant)
        self.live.append(False)
        self.computed.append(False)
        self.requested.append(False)
        self.members.append([])
        return len(self.kinds) - 1

    def __len__(self) -> int:
        return len(self.kinds)

    def nbytes(self, node: int) -> int:
        """Bytes of the node's array in memory."""
        return self.sizes[node] * self.dtypes[node].itemsize

    def label(self, node: int) -> str:
        """A short name for messages: operation, dtype and shape."""
        op = self.ops[node]
        name = "array" if op is None else op.name
        shape = "x".join(map(str, self.shapes[node])) or "scalar"
        return f"{name} {self.dtypes[node]} {shape}"
