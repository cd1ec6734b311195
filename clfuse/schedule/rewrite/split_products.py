"""Matrix products of few results and a long inner extent, on GPUs: pieces of the inner extent are
products of their own, side by side, and a fold adds them in order.

    x.T @ x, 64 x 250,000 x 64      one group of work-items would make all of it
    ->  250 products of 64 x 1,000 x 64, as one batch, and the sum of the batch

What is left over where no divisor of the extent is near is one more product.
"""

from __future__ import annotations

import numpy as np

from clfuse.ir.layout import contiguous_strides
from clfuse.ir.nodes import Kind, loop, reduction
from clfuse.schedule.graph import Graph
from clfuse.target.products import pieces_of_inner
from clfuse.target.traits import DeviceTraits

from .rebuilding import Replacing


def split_products(graph: Graph, traits: DeviceTraits) -> Graph:
    """`graph` with these products in pieces; itself where there are none, or a library of the
    device multiplies."""
    if traits.schedule != "gpu" or "clblast" in traits.libraries:
        return graph
    pieces = {}
    for node, op in enumerate(graph.ops):
        if op is None or op.kind is not Kind.LIBRARY or op.name != "matmul":
            continue
        shape, inputs = graph.shapes[node], graph.inputs[node]
        if len(inputs) != 2 or any(len(graph.shapes[each]) < 2 for each in inputs):
            continue
        if 0 in shape or any(graph.constant[each] is not None for each in inputs):
            continue
        inner = graph.shapes[inputs[0]][-1]
        count = pieces_of_inner(shape, inner, graph.dtypes[node], traits)
        if count > 1:
            pieces[node] = count
    return _InPieces(graph, pieces).result if pieces else graph


class _InPieces(Replacing):
    """The graph with these products in pieces."""

    def _replaced(self, node: int, count: int) -> int:
        graph = self.graph
        shape, dtype, param = graph.shapes[node], graph.dtypes[node], graph.params[node]
        inner = graph.shapes[graph.inputs[node][0]][-1]
        length = inner // count
        operands = [self.moved[each] for each in self._inputs(node)]
        batched = tuple([
            self._cut(operand, axis, len(shape), 0, length, count)
            for operand, axis in zip(operands, (-1, -2), strict=True)
        ])  # fmt: skip
        products = self._like(node, (count, *shape), param, batched)
        folds = reduction(Kind.REDUCE, "add", dtype, dtype)
        total = self._node(folds, shape, (products,), (0,))
        if length * count == inner:
            return total
        left_over = tuple([
            self._cut(operand, axis, len(shape) - 1, length * count, inner - length * count)
            for operand, axis in zip(operands, (-1, -2), strict=True)
        ])  # fmt: skip
        return self._sum(total, self._like(node, shape, param, left_over), dtype)

    def _cut(
        self, operand: int, axis: int, rank: int, start: int, length: int, count: int = 0
    ) -> int:
        """`count` pieces of an axis, side by side along a new first axis of `rank` + 1; where it is
        0, one piece without that axis."""
        result = self.result
        shape = result.shapes[operand]
        offset, strides = 0, contiguous_strides(shape)
        if result.kinds[operand] is Kind.VIEW:
            offset, strides = result.params[operand]
            (operand,) = result.inputs[operand]
        step = strides[axis]
        shape = (*shape[:-2], *(length if place == axis else shape[place] for place in (-2, -1)))
        if count:
            missing = rank - len(shape)
            shape = (count, *[1] * missing, *shape)
            strides = (length * step, *[0] * missing, *strides)
        return self._view(operand, shape, offset + start * step, strides)

    def _sum(self, one: int, other: int, dtype: np.dtype) -> int:
        """The sum of two results."""
        both = loop("add", (dtype, dtype), dtype)
        return self._node(both, self.result.shapes[one], (one, other))
