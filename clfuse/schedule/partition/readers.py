"""Readers of values: how often each value is read, and whether element by element."""

from __future__ import annotations

from collections.abc import Container

from clfuse.ir.layout import Side, contiguous_strides, delinearize, region_box
from clfuse.ir.nodes import Kind
from clfuse.schedule import cost
from clfuse.schedule.graph import Graph


def spread_reads(graph: Graph) -> list[float]:
    """How often each element is read other than element by element, for every node."""
    spread = [0.0] * len(graph)
    for node in range(len(graph)):
        kind = graph.kinds[node]
        if kind is Kind.VIEW or kind is Kind.MAP or kind is Kind.GATHER:
            for operand in graph.inputs[node]:
                if kind is Kind.VIEW or graph.shapes[operand] != graph.shapes[node]:
                    spread[operand] += graph.sizes[node] / max(graph.sizes[operand], 1)
                else:
                    spread[operand] += 1.0
        elif kind is Kind.UPDATE:
            old, value = graph.inputs[node]
            spread[old] += 1.0 - graph.sizes[value] / max(graph.sizes[node], 1)
            spread[value] += 1.0
        else:
            for operand in graph.inputs[node]:
                spread[operand] += 1.0
    return spread


def count_views(graph: Graph) -> list[int]:
    """How many views every node is read through."""
    views = [0] * len(graph)
    for kind, operands in zip(graph.kinds, graph.inputs, strict=True):
        if kind is Kind.VIEW:
            views[operands[0]] += 1
    return views


def read_element_wise(
    graph: Graph, refused: frozenset[int], boxed: Container[int]
) -> tuple[set[int], set[int]]:
    """Concatenations, and reshapes that merge axes, whose readers go element by element.

    Those need no memory: the reader runs over boxes in which every element comes from one part,
    or over an iteration that has the axes before the merge (which only a kernel without folds
    can). `boxed` writes are such concatenations, of what is written and what was there. `refused`
    were tried, and could not be read so.
    """
    piecewise: set[int] = set()
    refining: set[int] = set()
    joins = [True] * len(graph)
    merges = [True] * len(graph)
    for node in range(len(graph) - 1, -1, -1):
        kind = graph.kinds[node]
        reshapes = kind is Kind.VIEW and has_same_order(graph, node, graph.inputs[node][0])
        if graph.sizes[node] and node not in refused:
            if (kind is Kind.CONCATENATE or node in boxed) and joins[node]:
                piecewise.add(node)
            elif reshapes and merges[node]:
                refining.add(node)
        for place, operand in enumerate(graph.inputs[node]):
            computes = kind is Kind.MAP or (kind is Kind.GATHER and place == 1)
            if computes or kind is Kind.CONCATENATE or node in boxed:
                requested = graph.requested[node]
                joins[operand] = joins[operand] and (joins[node] or requested)
                merges[operand] = merges[operand] and (merges[node] or requested)
            elif kind is Kind.VIEW:
                keeps_axes = not reshapes and (
                    delinearize(graph.shapes[operand], graph.shapes[node], *graph.params[node])
                    is not None
                )
                joins[operand] = joins[operand] and joins[node] and keeps_axes
                merges[operand] = merges[operand] and merges[node] and keeps_axes
            elif kind in (Kind.REDUCE, Kind.ARGREDUCE):
                merges[operand] = False
            elif kind is not Kind.UPDATE:
                joins[operand] = merges[operand] = False
    return piecewise, refining


def boxes_written(graph: Graph) -> dict[int, tuple[Side, ...]]:
    """The writes to a box of an array, and the box; but not of long chains, nor of an array in
    memory: there only the box is written."""
    found: dict[int, tuple[Side, ...]] = {}
    length: dict[int, int] = {}
    before: dict[int, int] = {}
    for node, kind in enumerate(graph.kinds):
        if kind is not Kind.UPDATE:
            continue
        old, value = graph.inputs[node]
        if graph.kinds[old] is Kind.UPDATE:
            before[node] = old
            length[node] = length[old] + 1
        else:
            length[node] = 1
        if graph.kinds[old] is Kind.LEAF or graph.sizes[node] == 1 or not graph.sizes[value]:
            continue
        box = region_box(graph.shapes[node], graph.shapes[value], *graph.params[node])
        if box is not None:
            found[node] = box
    for node in sorted(before, reverse=True):  # the whole chain is as long as its end says
        length[before[node]] = max(length[before[node]], length[node])
    return {node: box for node, box in found.items() if length[node] <= cost.MAX_WRITES}


def has_same_order(graph: Graph, node: int, operand: int) -> bool:
    """Whether element k of `node` is element k of `operand`, both in C order."""
    if graph.sizes[node] != graph.sizes[operand]:
        return False
    if graph.kinds[node] is Kind.VIEW:
        return bool(graph.params[node] == (0, contiguous_strides(graph.shapes[node])))
    return squeezed(graph.shapes[node]) == squeezed(graph.shapes[operand])


def is_of_windows(graph: Graph, node: int) -> bool:
    """Whether a fold is of overlapping windows, whose neighbours begin at neighbours."""
    (operand,) = graph.inputs[node]
    if graph.kinds[operand] is not Kind.VIEW:
        return False
    if graph.sizes[operand] <= graph.sizes[graph.inputs[operand][0]]:
        return False
    _, strides = graph.params[operand]
    kept = [
        stride
        for axis, stride in enumerate(strides)
        if axis not in graph.params[node] and graph.shapes[operand][axis] > 1
    ]
    return bool(kept) and kept[-1] == 1


def elements_written_out(graph: Graph, node: int, weight: float, costs: cost.Cost) -> int:
    """Elements of a fold so short that it is written out, as in ``(p - q).sum(-1)`` of points in
    space; else 0. `weight` is that of the operations on each.

    Halves are folded as floats, which single steps of them are not; NumPy's sums of complex numbers
    start at 0, which a sum of negative zeros shows.
    """
    (operand,) = graph.inputs[node]
    if graph.kinds[node] is not Kind.REDUCE:
        return 0
    if graph.dtypes[node].char == "e" or graph.dtypes[node].kind == "c":
        return 0
    count = graph.sizes[operand] // max(graph.sizes[node], 1)
    longest = cost.MAX_UNROLLED_WINDOW if is_of_windows(graph, node) else cost.MAX_UNROLLED
    if not 1 <= count <= longest or not graph.sizes[node]:
        return 0
    return count if count * (weight + 1) <= costs.max_unrolled_weight else 0


def squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The extents other than 1."""
    return tuple([extent for extent in shape if extent != 1])
