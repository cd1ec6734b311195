"""Recomputation: the cost of computing a value again at a later level instead of storing it.

    y = f(x)            nothing else reads y, nor x: all of it moves to the level of z, for nothing
    z = y / total       which waits for the total

A value that is also read where it is computed is computed a second time; what only leads to the one
later reader is computed there and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence

from clfuse.ir.nodes import Kind
from clfuse.schedule import cost
from clfuse.schedule.graph import Graph

_COMPUTED = (Kind.MAP, Kind.GATHER, Kind.UPDATE, Kind.CONCATENATE)
"""What is computed element by element."""


class Recomputing:
    """What recomputing values costs, in lists that `placement` goes on filling.

    Parameters
    ----------
    graph : Graph
    costs : Cost
    level : list of int
    stored : list of bool

    Attributes
    ----------
    moved : int
        Operations that would leave their level altogether, by the last answer.
    """

    def __init__(
        self, graph: Graph, costs: cost.Cost, level: Sequence[int], stored: Sequence[bool]
    ) -> None:
        self._graph = graph
        self._cost = costs
        self._level = level
        self._stored = stored
        self.moved = 0
        self._loaded_at: set[tuple[int, int]] = set()
        self._is_shared = [
            graph.live[node] or graph.requested[node] for node in range(len(graph))
        ]
        read = [False] * len(graph)
        for operands in graph.inputs:
            for operand in operands:
                self._is_shared[operand] |= read[operand]
                read[operand] = True

    def load(self, node: int, level: int) -> None:
        """Note that something of `level` loads `node` from memory."""
        self._loaded_at.add((node, level))

    def is_costly(self, operand: int, level: int, *, moves: bool) -> bool:
        """Whether storing is better than computing at `level` from what is in memory by now.

        What is shared counts once, what others load at that level not at all; nor, with `moves`,
        does what only leads to `operand`. This looks at the operations down to memory: true where
        there are many, or not only element-wise ones.
        """
        graph = self._graph
        weight = loaded = 0.0
        stack = [(operand, moves and not self._is_shared[operand])]
        seen = {operand}
        self.moved = 0
        while stack:
            node, alone = stack.pop()
            if self._stored[node] and self._level[node] < level:
                if not alone and (node, level) not in self._loaded_at:
                    loaded += graph.dtypes[node].itemsize
                continue
            op = graph.ops[node]
            if graph.kinds[node] is Kind.MAP and op is not None:
                weight += 0.0 if alone else op.weight
            elif graph.kinds[node] not in (Kind.CONSTANT, Kind.IOTA, Kind.VIEW):
                return True
            self.moved += alone
            new = [other for other in graph.inputs[node] if other not in seen]
            seen.update(new)
            stack += [(other, alone and not self._is_shared[other]) for other in new]
            if len(seen) - self.moved > cost.MAX_LOOKED_AT or self.moved > cost.MAX_MOVED:
                return True
        return self._cost.stores(weight, loaded, graph.dtypes[operand].itemsize)

    def viewed(self, node: int, views: Sequence[int]) -> set[int]:
        """What is not in memory and read through several views, one of them by `node` (itself such
        a view, or computed of some): as long as a few steps lead there."""
        graph = self._graph
        found: set[int] = set()
        seen = {node}
        stack = [node]
        while stack and len(seen) <= cost.MAX_LOOKED_AT:
            other = stack.pop()
            if self._stored[other]:
                continue
            operands = graph.inputs[other]
            if graph.kinds[other] is Kind.VIEW:
                (source,) = operands
                if (
                    not self._stored[source]
                    and graph.kinds[source] in _COMPUTED
                    and views[source] > 1
                ):
                    found.add(source)
                    continue
            new = [operand for operand in operands if operand not in seen]
            seen.update(new)
            stack += new
        return found
