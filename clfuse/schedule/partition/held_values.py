"""Which values are stored because an array of the program holds them, though nobody looks at them
yet: `HeldValues`."""

from __future__ import annotations

from typing import Final

from clfuse.ir.nodes import Kind
from clfuse.schedule.cost import Cost
from clfuse.schedule.graph import Graph

__all__ = ["HeldValues"]

_READ_WHOLE = (Kind.REDUCE, Kind.ARGREDUCE, Kind.SCAN, Kind.COUNTS, Kind.COMPACT, Kind.LIBRARY)
"""What reads all of its operands for any element."""

DEAR: Final = 4.0
"""So many times what it costs to store a value: computing it again costs so much that it is stored
the first time. Of a loop that looks at a sum of its state in each round every second round would
otherwise compute the round before it, too."""


class HeldValues:
    """The decision for one node after the other, in their order.

    What is held is not stored the first time that it is computed on the way to something else,
    unless it is dear: many names in a script are never looked at. When it is computed a second
    time, it is, unless computing it costs less than storing. So is what has taken the place of such
    a value: in ``r = r - a * q`` every r is computed once only, but never ends as long as none is
    stored. What is stored for this plan alone is lost with it: computing it again writes it again.

    Parameters
    ----------
    stored, weight, loaded : list
        The placement's own: what is stored so far; what computing an element takes.
    """

    def __init__(
        self, graph: Graph, model: Cost, stored: list[bool], weight: list[float],
        loaded: list[float],
    ) -> None:  # fmt: skip
        self._graph, self._model = graph, model
        self._stored, self._weight, self._loaded = stored, weight, loaded
        count = len(graph)
        # Made of what was computed before, and is held no more.
        self._repeats = [False] * count
        # Bytes for what is lost with the plan.
        self._lost = [0.0] * count
        # Operations from what is held on, in additions.
        self._since = [0.0] * count

    def reason_to_store(self, node: int) -> str:
        """Why `node` is stored, which is not; empty if it is not to be."""
        graph = self._graph
        if not graph.live[node]:
            return ""
        computed = graph.computed[node]
        itemsize = graph.dtypes[node].itemsize
        stored = self._model.through_memory(itemsize)
        if computed or self._is_repeated(node):
            costs = self._weight[node], self._loaded[node], itemsize
            lost = self._lost_before(node) / max(graph.sizes[node], 1)
            if self._model.again(*costs[:2]) + lost < stored:
                return ""
            what = "held, and" if computed else "held in the place of what is"
            return f"{what} computed a second time: {self._model.reason(*costs)}"
        costs = self._since_with(node), 0.0, itemsize
        if self._model.again(*costs[:2]) < DEAR * stored:
            return ""
        return f"held, and dear: {self._model.reason(*costs)}"

    def note(self, node: int) -> None:
        """It is decided whether `node` is stored."""
        graph = self._graph
        held = graph.live[node] and (self._stored[node] or graph.computed[node])
        if held or graph.requested[node] or graph.buffer[node] is not None:
            return
        self._repeats[node] = graph.computed[node] or self._is_repeated(node)
        self._lost[node] = self._lost_before(node) + self._whole(node)
        self._since[node] = self._since_with(node)

    def replace(self, old: int, base: int) -> None:
        """`old` is a part of a write to `base`, and nothing of its own."""
        self._lost[old], self._since[old] = self._lost[base], self._since[base]

    def _is_repeated(self, node: int) -> bool:
        return any(self._repeats[operand] for operand in self._graph.inputs[node])

    def _lost_before(self, node: int) -> float:
        return max([self._lost[operand] for operand in self._graph.inputs[node]], default=0.0)

    def _since_with(self, node: int) -> float:
        graph = self._graph
        op = graph.ops[node]
        own = op.weight if op is not None and graph.kinds[node] is Kind.MAP else 0.0
        before = sum([
            self._since[operand]
            for operand in set(graph.inputs[node])
            if not (graph.live[operand] and self._stored[operand])  # for a reader, maybe
        ])
        return min(own + before, 1e12)

    def _whole(self, node: int) -> float:
        """Bytes for computing a value again that the plan stores for itself alone. What folds its
        operands reads them whole, however few elements it leaves."""
        graph, model = self._graph, self._model
        nbytes = 0.0
        if self._stored[node]:
            nbytes += model.through_memory(graph.nbytes(node))
        if graph.kinds[node] in _READ_WHOLE:
            for operand in graph.inputs[node]:
                costs = self._weight[operand], self._loaded[operand]
                nbytes += graph.sizes[operand] * model.again(*costs)
        return nbytes
