"""Repeated reads: values that are stored because several places or several views read them.

    y = f(x);  y[:, None] - z        every element of y is read for a row: computed each time?
    x = x[0::2] + x[1::2]            no element is read twice, but the text doubles with each step
"""

from __future__ import annotations

from collections.abc import Sequence

from clfuse.schedule import cost
from clfuse.schedule.graph import Graph

from .readers import count_views, spread_reads


class RepeatedReads:
    """Whether repeated reads of a value are worth storing it, from lists that `placement` fills.

    Parameters
    ----------
    graph : Graph
    costs : Cost
    weight : list of float
        What it takes to compute an element, in additions.
    loaded : list of float
        Bytes that are loaded for an element.

    Attributes
    ----------
    views : list of int
        Of each node, how many views of it are read.
    """

    def __init__(
        self, graph: Graph, costs: cost.Cost, weight: Sequence[float], loaded: Sequence[float]
    ) -> None:
        self._graph = graph
        self._cost = costs
        self._weight = weight
        self._loaded = loaded
        self._spread = spread_reads(graph)
        self.views = count_views(graph)

    def call_for_memory(self, operand: int) -> bool:
        """Whether reading `operand` more than once an element does."""
        weight = self._weight[operand]
        if self._spread[operand] <= 1.0 or not weight:
            return False
        graph = self._graph
        if graph.sizes[operand] <= 1 and weight <= self._cost.max_steps:
            return False
        itemsize = graph.dtypes[operand].itemsize
        return self._cost.stores_for_reads(
            weight, self._loaded[operand], itemsize, self._spread[operand]
        )

    def reason(self, operand: int) -> str:
        """What `call_for_memory` has compared."""
        return self._cost.reason_for_reads(
            self._weight[operand],
            self._loaded[operand],
            self._graph.dtypes[operand].itemsize,
            self._spread[operand],
        )

    def make_kernels_grow(self, operand: int) -> bool:
        """Whether a kernel would have the operations of `operand` too often."""
        return self.views[operand] > 1 and self._weight[operand] > cost.MAX_VIEWED_WEIGHT
