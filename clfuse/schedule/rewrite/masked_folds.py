"""Selections that are only folded: the fold goes over all elements, and those that the mask does
not select count as its identity. Nothing is packed.

    (x[m] * 2).min()     compact(m, x)  ->  * 2  ->  minimum        packed, stored, loaded again
                         x * 2  ->  m ? it : inf  ->  minimum       one kernel

A selection that somebody else needs is packed, and all read it. So is one that an array of the
program still holds when it is folded for the second time: later folds would go over everything
again. And so is one of few elements with much to compute for each.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clfuse.dataclass import frozen
from clfuse.ir.layout import contiguous_strides
from clfuse.ir.nodes import Kind, loop
from clfuse.ops.table import SELECTED
from clfuse.schedule.cost import Cost
from clfuse.schedule.graph import Graph
from clfuse.target.traits import DeviceTraits

from .rebuilding import Rebuilding

MOST_LOOKED_AT: Final = 64
"""Operations between a selection and its fold that are looked through."""

_BOOL: Final = np.dtype(np.bool_)


@frozen
class Masked:
    """A fold of what a mask selects.

    mask: the flat mask.
    inside: the nodes that have an element for each that is selected; selections among them.
    """

    mask: int
    inside: tuple[int, ...]


def fold_by_mask(graph: Graph, traits: DeviceTraits) -> Graph:
    """`graph` with these folds over all elements; itself where there are none."""
    if Kind.COMPACT not in graph.kinds:
        return graph
    cost = Cost(traits)
    folds: dict[int, Masked] = {}
    for node, kind in enumerate(graph.kinds):
        if kind is Kind.REDUCE:
            masked = _masked(graph, node)
            if masked is not None and _pays(graph, masked, cost):
                folds[node] = masked
    while folds:
        packed = _packed(graph, folds)
        apart = [node for node, masked in folds.items() if not packed.isdisjoint(masked.inside)]
        if not apart:
            return _ByMask(graph, folds).result
        for node in apart:
            del folds[node]
    return graph


def _masked(graph: Graph, fold: int) -> Masked | None:
    """What is selected and folded, where a fold goes over all of that and nothing else."""
    (operand,) = graph.inputs[fold]
    op, dtype, size = graph.ops[fold], graph.dtypes[fold], graph.sizes[operand]
    assert op is not None
    if f"selected_{op.name}" not in SELECTED or graph.dtypes[operand] is not dtype:
        return None
    if dtype.kind == "c" or len(graph.params[fold]) != len(graph.shapes[operand]) or size < 2:
        return None
    selector: tuple[int, ...] | None = None
    seen = {operand}
    stack = [operand]
    inside: list[int] = []
    while stack:
        node = stack.pop()
        kind = graph.kinds[node]
        if len(seen) > MOST_LOOKED_AT or graph.sizes[node] != size:
            return None
        inside.append(node)
        if kind is Kind.COMPACT:
            mask, _, starts = graph.inputs[node]
            if selector not in (None, (mask, starts)):
                return None
            selector = mask, starts
            continue
        if kind is Kind.VIEW:
            if graph.params[node] != (0, contiguous_strides(graph.shapes[node])):
                if graph.sizes[graph.inputs[node][0]] != 1:
                    return None
                inside.pop()
                continue
        elif kind is not Kind.MAP:
            return None
        new = [
            below for below in graph.inputs[node] if below not in seen and graph.sizes[below] != 1
        ]
        seen.update(new)
        stack += new
    return None if selector is None else Masked(selector[0], tuple(inside))


def _pays(graph: Graph, masked: Masked, cost: Cost) -> bool:
    """Whether computing what is not selected costs no more than the mask read once more, and the
    selections stored and loaded."""
    whole = graph.sizes[masked.mask]
    count = graph.sizes[masked.inside[0]]
    weight, spared = 0.0, float(whole * _BOOL.itemsize)
    for node in masked.inside:
        kind, op = graph.kinds[node], graph.ops[node]
        if kind is Kind.COMPACT:
            spared += count * cost.through_memory(graph.dtypes[node].itemsize)
        elif kind is Kind.MAP:
            assert op is not None
            weight += op.weight
    return cost.again(weight, 0.0) * (whole - count) <= spared


def _packed(graph: Graph, folds: dict[int, Masked]) -> set[int]:
    """What is needed by others than these folds, or is held and was computed before."""
    held = {
        node
        for masked in folds.values()
        for node in masked.inside
        if graph.live[node] and graph.computed[node]
    }
    stack = [node for node in range(len(graph)) if graph.requested[node] or node in held]
    needed = set(stack)
    while stack:
        node = stack.pop()
        below = graph.inputs[node]
        if node in folds:
            inside = set(folds[node].inside)
            below = tuple(
                [each for one in inside for each in graph.inputs[one] if each not in inside]
            )
        new = [each for each in below if each not in needed]
        needed.update(new)
        stack += new
    return needed


class _ByMask(Rebuilding):
    """The graph with these folds over all elements."""

    def __init__(self, graph: Graph, folds: dict[int, Masked]) -> None:
        self.folds = folds
        pending = [node for masked in folds.values() for node in masked.inside if graph.live[node]]
        super().__init__(graph, {}, {}, {}, pending)

    def _needs(self, node: int) -> list[int]:
        masked = self.folds.get(node)
        if masked is None:
            return super()._needs(node)
        graph = self.graph
        inside = set(masked.inside)
        needs = [masked.mask]
        for one in masked.inside:
            if graph.kinds[one] is Kind.COMPACT:
                needs.append(graph.inputs[one][1])
            else:
                needs += [each for each in graph.inputs[one] if each not in inside]
        return needs

    def _made(self, node: int) -> int:
        masked = self.folds.get(node)
        if masked is None:
            return super()._made(node)
        graph = self.graph
        op, dtype = graph.ops[node], graph.dtypes[node]
        assert op is not None
        whole = (graph.sizes[masked.mask],)
        made: dict[int, int] = {}
        for one in sorted(masked.inside):  # operands come before what is made of them
            kind = graph.kinds[one]
            if kind is Kind.COMPACT:
                made[one] = self.moved[graph.inputs[one][1]]
            elif kind is Kind.VIEW:
                made[one] = made[graph.inputs[one][0]]
            else:
                operands = [
                    made[each] if each in made else self._spread(each, whole)
                    for each in graph.inputs[one]
                ]
                made[one] = self._like(one, whole, graph.params[one], tuple(operands))
        value = made[graph.inputs[node][0]]
        selected = loop(f"selected_{op.name}", (_BOOL, dtype), dtype)
        chosen = self._node(selected, whole, (self.moved[masked.mask], value))
        return self._like(node, (), (0,), (chosen,))

    def _spread(self, operand: int, whole: tuple[int, ...]) -> int:
        """An operand that is one number for all."""
        graph = self.graph
        if graph.kinds[operand] is Kind.VIEW and graph.sizes[operand] != 1:
            return self._view(self.moved[graph.inputs[operand][0]], whole, 0, (0,))
        moved = self.moved[operand]
        return self._view(moved, (), 0, ()) if self.result.shapes[moved] else moved
