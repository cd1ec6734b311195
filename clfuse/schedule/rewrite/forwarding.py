"""Views of exactly the part that was just written, replaced by the value that was written there.

    u[1:-1] = f(v)
    error = abs(u[1:-1] - w[1:-1]).max()        one kernel, which has f(v) in a register

Readers that wait for something else load it from memory, one level later.
"""

from __future__ import annotations

from clfuse.ir.nodes import Kind
from clfuse.schedule.graph import Graph

_FOLDS = (Kind.REDUCE, Kind.ARGREDUCE)


def just_written(graph: Graph) -> dict[int, int]:
    """View -> value, for views of exactly what an update writes, where all that reads them goes
    over them element by element in one loop: elsewhere the value would be computed again."""
    found: dict[int, int] = {}
    folded: dict[int, tuple[int, ...]] = {}
    kinds, shapes = graph.kinds, graph.shapes
    if Kind.UPDATE not in kinds:
        return found
    for node, kind in enumerate(kinds):
        operands = graph.inputs[node]
        if kind is Kind.VIEW and kinds[operands[0]] is Kind.UPDATE:
            update = operands[0]
            value = graph.inputs[update][1]
            if graph.params[node] == graph.params[update] and shapes[node] == shapes[value]:
                found[node] = value
        elif found:
            for operand in operands:
                if operand not in found:
                    continue
                if kind in _FOLDS:
                    axes = graph.params[node]
                    fits = folded.setdefault(operand, axes) == axes
                else:
                    fits = kind is Kind.MAP and shapes[operand] == shapes[node]
                if not fits:
                    del found[operand]
    return found
