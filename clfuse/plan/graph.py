"""A snapshot as columns, with equal nodes merged: what the planner's passes read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..graph.ir import Kind, Op
from ..graph.snapshot import COMPUTED, LIVE, Snapshot


class Graph:
    """Columns over merged nodes, in topological order.

    Attributes
    ----------
    kinds, ops, shapes, dtypes, params, inputs, sizes : list, one entry a node
    buffer : list of int or None, the graph buffer a leaf lies in
    constant : list of int or None, position of a constant in the snapshot
    live, computed, requested : list of bool
    members : list of list of int, snapshot positions merged into the node
    """

    def __init__(self, snapshot: Snapshot) -> None:
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
        numbers: dict[Any, int] = {}
        where: list[int] = []
        for position, item in enumerate(snapshot.items):
            flags = snapshot.flags[position]
            key: Any
            operands: tuple[int, ...] = ()
            if item[0] is None:
                key = item
            elif len(item) == 1:
                key = (position,)
            else:
                operands = tuple([where[i] for i in item[3:]])
                key = (item[0], item[1], item[2], operands)
            number = numbers.setdefault(key, len(numbers))
            if number == len(self.kinds):
                node = snapshot.nodes[position]
                self._append(item, node.dtype, position, operands)
            where.append(number)
            self.members[number].append(position)
            if flags & LIVE and self.kinds[number] is not Kind.CONSTANT:
                self.live[number] = True
                if item[0] is None:
                    self.buffer_live[item[2]] = True
            if flags & COMPUTED:
                self.computed[number] = True
        for root in snapshot.roots:
            self.requested[where[root]] = True

    def _append(
        self, item: tuple[Any, ...], dtype: np.dtype, position: int, operands: tuple[int, ...]
    ) -> None:
        op = item[0]
        shape: tuple[int, ...] = item[1] if len(item) > 1 else ()
        self.kinds.append(Kind.LEAF if op is None else op.kind)
        self.ops.append(op)
        self.shapes.append(shape)
        self.sizes.append(math.prod(shape))
        self.dtypes.append(dtype)
        self.params.append(item[2] if op is not None and len(item) > 1 else None)
        self.inputs.append(operands)
        self.buffer.append(item[2] if op is None else None)
        self.constant.append(position if len(item) == 1 else None)
        self.live.append(False)
        self.computed.append(False)
        self.requested.append(False)
        self.members.append([])

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
