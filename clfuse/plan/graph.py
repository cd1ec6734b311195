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
    original : Graph or None, what `rolling` made this graph of
    moved : list of int, where its nodes are in this one; -1 for those that are gone
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
        self.append(
            Kind.LEAF if op is None else op.kind,
            op,
            item[1] if len(item) > 1 else (),
            dtype,
            item[2] if op is not None and len(item) > 1 else None,
            operands,
            item[2] if op is None else None,
            position if len(item) == 1 else None,
        )

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
        """Add a node that nobody holds or asked for yet; its number."""
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
