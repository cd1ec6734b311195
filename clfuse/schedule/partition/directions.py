"""The direction of a fold: whether the elements that it reads lie side by side along kept axes."""

from __future__ import annotations

from collections.abc import Sequence

from clfuse.ir.layout import contiguous_strides
from clfuse.ir.nodes import Kind
from clfuse.schedule.cost import MAX_LOOKED_AT
from clfuse.schedule.graph import Graph


def is_read_across(
    graph: Graph, node: int, stored: Sequence[bool], linear: Sequence[bool]
) -> bool:
    """Whether what a fold reads lies side by side along the axes that it keeps, as columns do.

    One kernel cannot follow rows and columns of arrays of one shape, as ``A @ x`` and ``y @ A`` of
    a square matrix: the columns would be read element by element (5500 x 5500 float64 on two cores:
    200 ms instead of 60). Only arrays as large as what is folded are looked at, and of those that
    are computed only the few operations down to memory; where they differ, rows decide. A view of
    what is computed from memory in order (`linear`) reads that memory as the view says.
    """
    (operand,) = graph.inputs[node]
    if graph.kinds[node] is not Kind.REDUCE or len(graph.shapes[operand]) < 2:
        return False
    across = False
    stack, seen = [operand], {operand}
    while stack:
        value = stack.pop()
        shape, source = graph.shapes[value], value
        strides = contiguous_strides(shape)
        if graph.kinds[value] is Kind.VIEW:
            (source,) = graph.inputs[value]
            _, strides = graph.params[value]
        if stored[source] or (
            source != value and linear[source] and graph.kinds[source] is Kind.MAP
        ):
            if graph.sizes[source] < graph.sizes[operand] or shape != graph.shapes[operand]:
                continue
            steps = [
                (abs(stride), axis in graph.params[node])
                for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True))
                if extent > 1 and stride
            ]
            if not steps or min(steps)[1]:
                return False
            across = True
        elif graph.kinds[value] is Kind.MAP:
            new = [other for other in graph.inputs[value] if other not in seen]
            seen.update(new)
            stack += new
            if len(seen) > MAX_LOOKED_AT:
                return False
    return across
