"""Counts on a CPU: piece by piece, and the pieces are added.

    bincount(x % 9)      of 8M elements, one after another on one core
    ->  tally (32, 9)    the places are computed where they are counted, a row of counts a piece
    ->  add (9,)

Fewer elements, and those that fall into very many places, are left to the host.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clfuse.ir.nodes import Kind, reduction, structural
from clfuse.schedule.graph import Graph
from clfuse.target.scatters import counted_pieces
from clfuse.target.traits import DeviceTraits

from .rebuilding import Replacing

COUNTING: Final = frozenset(["bincount", "weigh"])

_INT32: Final = np.dtype(np.int32)
_INT64: Final = np.dtype(np.int64)
_FLOAT64: Final = np.dtype(np.float64)


def count_in_pieces(graph: Graph, traits: DeviceTraits) -> Graph:
    """`graph` with its counts and sums of weights in pieces; itself where there are none."""
    found = {}
    for node, op in enumerate(graph.ops):
        if op is None or op.kind is not Kind.LIBRARY or op.name not in COUNTING:
            continue
        places, *weights = graph.inputs[node]
        # NumPy adds up weights of other kinds in ways of their own.
        if any(graph.dtypes[each].kind not in "iuf" for each in weights) or not traits.fp64:
            continue
        pieces = counted_pieces(traits, graph.sizes[places], graph.sizes[node])
        if pieces:
            found[node] = pieces
    return _InPieces(graph, found).result if found else graph


class _InPieces(Replacing):
    """The graph with these counts in pieces."""

    def _replaced(self, node: int, pieces: int) -> int:
        graph, result = self.graph, self.result
        places, *weights = [self.moved[each] for each in self._inputs(node)]
        counter: np.dtype = _INT32
        total: np.dtype = _INT64
        if weights:
            # Integers wrap around in any width.
            counter = total = _FLOAT64 if result.dtypes[weights[0]].kind == "f" else _INT64
            weights = [self._map("cast", weights[0], total)]
        operands = (places, *weights)
        tally, shape = structural(Kind.LIBRARY, "tally", counter), (pieces, *graph.shapes[node])
        rows = self._map("cast", self._node(tally, shape, operands), total)
        fold = reduction(Kind.REDUCE, "add", total, total)
        return self._map("cast", self._node(fold, shape[1:], (rows,), (0,)), graph.dtypes[node])
