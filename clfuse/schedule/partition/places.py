"""Operands of what selects by a mask, counts, or stores at computed places: which of them the same
kernel computes, and which must lie in memory."""

from __future__ import annotations

from collections.abc import Sequence

from clfuse.ir.nodes import Kind
from clfuse.schedule.graph import Graph
from clfuse.target.scatters import is_scattered
from clfuse.target.traits import DeviceTraits

Needed = tuple[int, str, bool]
"""Operand, why a carried one is stored for it, whether it must lie in memory in any case."""


def scattered_nodes(graph: Graph, traits: DeviceTraits) -> set[int]:
    """The library operations that kernels of this device make."""
    return {
        node
        for node, op in enumerate(graph.ops)
        if op is not None and op.kind is Kind.LIBRARY and is_scattered(op.name, traits)
    }


def operands_at_places(
    graph: Graph, sealed: Sequence[bool], node: int
) -> tuple[list[Needed], str]:
    """The operands of such a node, and why its result is stored."""
    first, *others = graph.inputs[node]
    kind = graph.kinds[node]
    if kind is Kind.COUNTS:
        why = "counted piece by piece"
        return [(first, why, False)], f"what a mask selects, {why}"
    if kind is not Kind.LIBRARY:
        value, *known = others
        needed = [(first, "selects by mask", False), (value, "selected by a mask", False)]
        needed += [(each, "read at positions that a mask decides", True) for each in known]
        return needed, "elements selected by a mask lie side by side in memory"
    op = graph.ops[node]
    assert op is not None
    reason = "elements are counted or stored at computed places"
    if op.name == "tally":
        why = "read where elements are counted"
        return [(each, why, False) for each in (first, *others)], reason
    needed = [(first, "written to at computed places", True)]
    for each in others:
        if op.name == "segments":
            needed.append((each, "read in order of its places", True))
        elif _reads_elsewhere(graph, sealed, each, node):
            why = "made of other elements of the array that is stored to"
            needed.append((each, why, True))
        else:
            needed.append((each, "read where elements are scattered", False))
    return needed, reason


def _reads_elsewhere(graph: Graph, sealed: Sequence[bool], operand: int, node: int) -> bool:
    """Whether an operand of a scatter is computed of elements of the old array other than that
    which it replaces: those may be gone when they are read."""
    old, position, _ = graph.inputs[node]
    how, _, offset, strides, *_ = graph.params[node]
    stack, seen = [operand], {operand}
    while stack:
        each = stack.pop()
        if each == old:
            return True
        if sealed[each]:
            continue
        inputs = graph.inputs[each]
        is_set = how == "set" and graph.kinds[each] is Kind.GATHER
        if is_set and graph.params[each] == (offset, strides) and inputs == (old, position):
            inputs = inputs[1:]
        stack += [other for other in inputs if other not in seen]
        seen.update(inputs)
    return False
