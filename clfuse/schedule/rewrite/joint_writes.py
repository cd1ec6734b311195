"""Joint writes: updates of parts of one array that may be made at once, by one kernel or several.

    a[:, 0] = x + y         one kernel, which loads x and y once and stores two columns of a
    a[:, 1] = x - y

That is so where the second write touches nothing that the first one does, and nothing reads the
array in between. Each of such writes is a node; the last one stands for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from clfuse.ir.layout import Side, region_box
from clfuse.ir.nodes import Kind
from clfuse.schedule import cost
from clfuse.schedule.graph import Graph

from .write_regions import Region, apart_at_a_glance


class JointWrites:
    """Which updates are made together, of the nodes that are placed so far.

    Parameters
    ----------
    graph : Graph
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._between = seen_between(graph)
        self._members: dict[int, tuple[int, ...]] = {}
        self._bases: dict[int, int] = {}
        self._boxes: dict[int, tuple[Side, ...] | None] = {}

    def members(self, node: int) -> tuple[int, ...]:
        """The updates that `node` stands for, in the program's order; itself is the last."""
        return self._members.get(node, (node,))

    def base(self, node: int) -> int:
        """What the array was before the first of them."""
        base = self._bases.get(node)
        if base is not None:
            return base
        return self._graph.inputs[self.members(node)[0]][0]

    def rebase(self, node: int, base: int) -> None:
        """Let `node` be an update of `base`, which is the same outside of what `node` writes."""
        self._bases[node] = base

    def regions(self, node: int) -> list[Region]:
        """What they write, each."""
        return [self._region(member) for member in self.members(node)]

    def can_join(self, node: int) -> bool:
        """Whether `node` may be made together with the update that it is one of."""
        old = self._graph.inputs[node][0]
        if self._graph.kinds[old] is not Kind.UPDATE or old in self._between:
            return False
        members = self.members(old)
        return len(members) < cost.MAX_STORES and all(
            self._are_apart(member, node) for member in members
        )

    def join(self, node: int) -> None:
        """Let `node` stand for what the update before it stood for, too."""
        old = self._graph.inputs[node][0]
        self._members[node] = (*self._members.pop(old, (old,)), node)

    def _are_apart(self, one: int, other: int) -> bool:
        return are_apart(self._box(one), self._box(other), self._region(one), self._region(other))

    def _region(self, node: int) -> Region:
        graph = self._graph
        return (graph.shapes[graph.inputs[node][1]], *graph.params[node])

    def _box(self, node: int) -> tuple[Side, ...] | None:
        if node not in self._boxes:
            self._boxes[node] = region_box(self._graph.shapes[node], *self._region(node))
        return self._boxes[node]


def are_apart(
    one_box: tuple[Side, ...] | None, other_box: tuple[Side, ...] | None, one: Region, other: Region
) -> bool:
    """Whether two regions of an array are known to have no element in common, as boxes of it where
    both are some."""
    if one_box is None or other_box is None:
        return apart_at_a_glance(one, other)
    sides = zip(one_box, other_box, strict=True)
    return any(first[1] <= second[0] or second[1] <= first[0] for first, second in sides)


def seen_between(graph: Graph) -> set[int]:
    """The updates that anybody but one more update of the same array looks at."""
    seen = {
        node
        for node, kind in enumerate(graph.kinds)
        if kind is Kind.UPDATE
        and (graph.requested[node] or graph.live[node] or graph.computed[node])
    }
    updated: set[int] = set()
    for node, operands in enumerate(graph.inputs):
        looked_at: Sequence[int] = operands
        if graph.kinds[node] is Kind.UPDATE:
            old, *looked_at = operands
            if old in updated:
                seen.add(old)
            updated.add(old)
        seen.update([other for other in looked_at if graph.kinds[other] is Kind.UPDATE])
    return seen
