"""Store-to-load forwarding: views of an array as they were before a write to other elements.

    p[:, 0] += x            p1 = p with column 0 written to
    p[:, 1] += y            reads column 1 of p1, which is that of p; and writes to it

Where every read of an array between two writes is forwarded like this, or reads just what was
written, which is in a register, nothing reads the array in between: both writes are one kernel
(`joint_writes`), which goes through the lines of `p` once.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from clfuse.ir.layout import region_box
from clfuse.ir.nodes import Kind
from clfuse.schedule.graph import Graph

from .forwarding import just_written
from .joint_writes import are_apart
from .write_regions import Region, apart_at_a_glance

__all__ = ["read_through"]

MOST_LOOKS: Final = 1 << 17
"""Pairs of a view and a write that are compared in one plan, at 1 to 2 us each."""

MOST_DEEP: Final = 2
"""Values in registers of which one is made of the other: ``y[i + 1] = f(y[i])`` in one kernel would
have ever more text, and a text for each length, where all its rows are one program otherwise."""


def read_through(graph: Graph) -> Graph:
    """`graph`, in which views that a write does not touch have operands from before it."""
    if graph.kinds.count(Kind.UPDATE) > 1:
        _Reading(graph).run()
    return graph


class _Reading:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._views: defaultdict[int, list[int]] = defaultdict(list)
        self._readers: defaultdict[int, list[int]] = defaultdict(list)
        self._looks = 0
        self._depths = [0] * len(graph)  # values forwarded on the way to a node
        self._seen: set[int] = set()
        self._updated: set[int] = set()
        kinds = graph.kinds
        for node, operands in enumerate(graph.inputs):
            for place, operand in enumerate(operands):
                self._readers[operand].append(node)
                if kinds[operand] is not Kind.UPDATE:
                    continue
                if kinds[node] is Kind.VIEW:
                    self._views[operand].append(node)
                elif kinds[node] is not Kind.UPDATE or place or operand in self._updated:
                    self._seen.add(operand)
                else:
                    self._updated.add(operand)
        self._written = just_written(graph)
        self._plain = self._find_plain()

    def run(self) -> None:
        graph = self._graph
        for node, kind in enumerate(graph.kinds):
            if kind is Kind.MAP:
                below = [self._depths[operand] for operand in graph.inputs[node]]
                self._depths[node] = max([self._depths[node], *below])
            elif node in self._updated and node not in self._seen:
                self._read_through(node)

    def _read_through(self, update: int) -> None:
        graph, views = self._graph, self._views[update]
        if views and not (graph.requested[update] or graph.live[update] or graph.computed[update]):
            bases = [self._base(view, update) for view in views]
            at_hand = [view for view, base in zip(views, bases, strict=True) if base is None]
            if all(map(self._is_at_hand, at_hand)):
                for view, base in zip(views, bases, strict=True):
                    if base is None:
                        self._replace(view, self._written[view])
                    else:
                        graph.inputs[view] = (base,)
                        if graph.kinds[base] is Kind.UPDATE:
                            self._views[base].append(view)

    def _base(self, view: int, update: int) -> int | None:
        """What the array was before this update and those before it that write elsewhere; None
        where a view looks at what the update writes."""
        graph = self._graph
        region: Region = (graph.shapes[view], *graph.params[view])
        base = update
        while graph.kinds[base] is Kind.UPDATE and self._are_apart(base, region):
            base = graph.inputs[base][0]
            self._looks += 1
            if self._looks > MOST_LOOKS:
                return None
        return None if base == update else base

    def _are_apart(self, update: int, region: Region) -> bool:
        graph = self._graph
        old, value = graph.inputs[update]
        if graph.dtypes[old] != graph.dtypes[update]:
            return False
        written: Region = (graph.shapes[value], *graph.params[update])
        if apart_at_a_glance(region, written):  # which takes less than to find their boxes
            return True
        one, other = (region_box(graph.shapes[update], *each) for each in (region, written))
        return are_apart(one, other, region, written)

    def _is_at_hand(self, view: int) -> bool:
        """Whether a view is just what was written, and all that reads it waits for nothing else."""
        graph = self._graph
        value = self._written.get(view)
        if value is None or not self._plain[value] or graph.requested[view] or graph.live[view]:
            return False
        if self._depths[value] == MOST_DEEP:
            return False
        return all(
            graph.kinds[reader] is Kind.MAP and self._plain[reader]
            for reader in self._readers[view]
        )

    def _replace(self, view: int, value: int) -> None:
        graph = self._graph
        for reader in self._readers[view]:
            self._depths[reader] = max(self._depths[reader], self._depths[value] + 1)
            graph.inputs[reader] = tuple(
                [value if operand == view else operand for operand in graph.inputs[reader]]
            )
            self._readers[value].append(reader)
        self._readers[view] = []
        (base,) = graph.inputs[view]
        while graph.kinds[base] is Kind.UPDATE:
            base = graph.inputs[base][0]
        graph.inputs[view] = (base,)  # it is not read, and does not keep the update

    def _find_plain(self) -> list[bool]:
        """Of each node, whether it is made element by element of what is in memory from the start.
        """
        graph = self._graph
        plain: list[bool] = []
        for node, kind in enumerate(graph.kinds):
            operands = graph.inputs[node]
            if kind is Kind.VIEW:
                (operand,) = operands
                value = self._written.get(node)
                plain.append(
                    plain[value] if value is not None
                    else graph.kinds[operand] in (Kind.LEAF, Kind.CONSTANT, Kind.UPDATE)
                )
            else:
                plain.append(
                    kind in (Kind.LEAF, Kind.CONSTANT, Kind.IOTA)
                    or (kind is Kind.MAP and all(plain[operand] for operand in operands))
                )
        return plain
