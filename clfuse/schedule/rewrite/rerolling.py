"""Loop rerolling: many small equal writes become few large ones, before anything is placed.

    for b in range(100): a[b] = a[b] * 2 + c[b]         100 UPDATEs, each over (n,), in a chain
    a[0:100] = a[0:100] * 2 + c[0:100]                  what is made of it: one over (100, n)

Writes of one `chains.Stretch` may happen in any order. Those whose values have the same structure,
and whose offsets (of the region, and of every view that the value reads) lie on a regular grid, are
one write with the grid's dimensions in front. Scalars that differ from write to write, as in
``a[b] = b``, become an array that is filled when the plan runs. Scattered offsets are a grid with a
table of the elements that are written. A write that fits no grid stays a write of its own, and a
graph without such writes stays as it was.

The result is a `rebuilding.StretchPlan` for each stretch; `rebuilding` makes the new graph.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clfuse.ir.layout import is_injective
from clfuse.ir.nodes import Kind
from clfuse.ir.offset_grids import grids
from clfuse.ir.updates import MOST_PASSED_OVER
from clfuse.schedule.graph import Graph

from .chains import MIN_WRITES, Stretch, Stretches, overwritten
from .rebuilding import Circle, Grid, Instruction, Rebuilding, StretchPlan

if TYPE_CHECKING:
    import numpy.typing as npt

SHARED_READS: Final = 16
"""A value that is read this often is one for all writes, not computed for each of them."""

MAX_INSTRUCTIONS: Final = 1000
"""Nodes of one write's value: larger ones are worth a kernel each."""

MAX_ROUNDS: Final = 4
"""How often what is left is looked at again when some writes turn out not to fit."""

MOST_GRIDS: Final = 2
"""Regular grids that are written one by one where other writes, which lie anyhow, are left."""

MOST_PLACES: Final = 8
"""Places for each write that a table of scalars is made for."""

_COMPUTED: Final = (Kind.MAP, Kind.REDUCE, Kind.ARGREDUCE, Kind.GATHER)


def roll(graph: Graph) -> Graph:
    """`graph` with small equal writes joined; itself where there are none.

    Nodes that are held or requested are in the result, computed from what they were computed
    from. `Graph.original` and `Graph.moved` say where each node of the old graph went.
    """
    writes = graph.kinds.count(Kind.UPDATE)
    if writes < 2:
        return graph
    instead = overwritten(graph)
    if instead:
        graph = Rebuilding(graph, {}, {}, instead).result
    if writes - len(instead) < MIN_WRITES:
        return graph
    for ends in (True, False):
        stretches = Stretches(graph, ends=ends)
        plans = _plans(graph, stretches)
        if not plans:
            return graph
        try:
            return Rebuilding(graph, stretches.sources, plans, {}).result
        except Circle:
            continue
    raise AssertionError("planner error: a circle of writes that were recorded one after another")


def _plans(graph: Graph, stretches: Stretches) -> dict[int, StretchPlan]:
    """Last update of a stretch -> what it becomes. Stretches that stay as they were are forgotten:
    their views read what they did, and may be in another stretch's way."""
    for _ in range(MAX_ROUNDS):
        plans = Signatures(graph, stretches).plans()
        if len(plans) == len(stretches.found):
            return plans
        stretches.keep(set(plans))
    return {}


class Signatures:
    """Numbers that are equal for nodes which differ only in where their views begin."""

    def __init__(self, graph: Graph, stretches: Stretches) -> None:
        self.graph = graph
        self.stretches = stretches
        self.sources = stretches.sources
        self._numbers: dict[Any, int] = {}
        self.signature = [~node for node in range(len(graph))]
        """Negative: the node itself, which is the same for all writes."""
        self._slots: set[int] = set()
        self._scalars: set[int] = set()
        """Constants, stretched ones too: only their values differ from write to write."""
        if stretches.found:
            self._sign()

    def _sign(self) -> None:
        graph = self.graph
        signature = self.signature
        sources = self.sources
        numbers = self._numbers
        slots = self._slots
        shapes, params, ops = graph.shapes, graph.params, graph.ops
        scalars = self._scalars
        view, gather, constant = Kind.VIEW, Kind.GATHER, Kind.CONSTANT
        reads = Counter(chain.from_iterable(graph.inputs))
        often = {node for node, count in reads.items() if count >= SHARED_READS}
        for node, (kind, inputs) in enumerate(zip(graph.kinds, graph.inputs, strict=True)):
            key: Any = None
            is_slot = False
            if kind is view:
                (operand,) = inputs
                source = sources.get(node)
                if source is not None:
                    key = (shapes[node], params[node][1], source.place == "end", id(source.stretch))
                    is_slot = True
                elif signature[operand] < 0:
                    key = (shapes[node], params[node][1], operand)
                    is_slot = True
                else:
                    key = (kind, shapes[node], params[node], signature[operand])
                    if operand in scalars:
                        scalars.add(node)
            elif kind is constant:
                key = (kind, graph.dtypes[node])
                scalars.add(node)
            elif kind in _COMPUTED:
                below = tuple([signature[operand] for operand in inputs])
                if max(below) >= 0 and not (kind is gather and below[0] >= 0):
                    key = (ops[node], shapes[node], params[node], below)
            if key is None or (node in often and node not in scalars):
                continue
            if is_slot:
                slots.add(node)
            signature[node] = numbers.setdefault(key, len(numbers))

    def plans(self) -> dict[int, StretchPlan]:
        """Last update of a stretch -> what it becomes, where anything can be joined."""
        found = {}
        for stretch in self.stretches.found:
            plan = self._plan(stretch)
            if plan.grids:
                found[stretch.updates[-1]] = plan
        return found

    def _plan(self, stretch: Stretch) -> StretchPlan:
        graph = self.graph
        groups: dict[Any, list[int]] = {}
        for update in stretch.updates:
            value = graph.inputs[update][1]
            _, strides = graph.params[update]
            key = (self.signature[value], graph.shapes[value], strides)
            groups.setdefault(key, []).append(update)
        plan = StretchPlan(stretch, [], [])
        for updates in groups.values():
            if len(updates) < MIN_WRITES:
                plan.rest += updates
            else:
                self._join(updates, plan)
        plan.rest.sort()
        return plan

    def _join(self, updates: list[int], plan: StretchPlan) -> None:
        """Find the grids among writes of equal signature."""
        graph = self.graph
        updates = sorted(updates, key=lambda update: graph.params[update][0])
        instructions, slots, tables = self._instructions([graph.inputs[u][1] for u in updates])
        if not instructions:
            plan.rest += updates
            return
        columns = [[graph.params[update][0] for update in updates]]
        columns += [[graph.params[view][0] for view in views] for views in slots]
        offsets = np.array(columns, np.int64).T
        regular = []
        left: list[int] = []
        for members, extents, steps in grids(offsets):
            if math.prod(extents) < MIN_WRITES:
                left += members
            else:
                regular.append((members, extents, steps))
        if left and len(regular) > MOST_GRIDS:
            everything = self._scattered(updates, offsets, instructions, tables)
            if everything is not None:
                plan.grids.append(everything)
                return
        for members, extents, steps in regular:
            starts = offsets[members[0]].tolist()
            chosen = [[table[member] for member in members] for table in tables]
            first = updates[members[0]]
            plan.grids.append(Grid(extents, starts, steps, instructions, chosen, first))
        left.sort()
        scattered = self._scattered(
            [updates[member] for member in left],
            offsets[left],
            instructions,
            [[table[member] for member in left] for table in tables],
        )
        if scattered is None:
            plan.rest += [updates[member] for member in left]
        else:
            plan.grids.append(scattered)

    def _scattered(
        self,
        updates: list[int],
        offsets: npt.NDArray[np.int64],
        instructions: list[Instruction],
        tables: list[list[int]],
    ) -> Grid | None:
        """All places between the first and the last of these writes; None where that is too many,
        or views that the value reads move in another way."""
        graph = self.graph
        if len(updates) < MIN_WRITES or any(
            graph.kinds[each.node] is Kind.GATHER and not each.shared for each in instructions
        ):
            return None  # which elements computed positions read elsewhere is not known
        ahead = offsets - offsets[0]
        step = int(np.gcd.reduce(ahead[:, 0]))
        rows = ahead[:, 0] // step
        count = int(rows[-1]) + 1
        steps = ahead[-1] // int(rows[-1])
        region = graph.shapes[graph.inputs[updates[0]][1]]
        strides = (step, *graph.params[updates[0]][1])
        if (
            count * math.prod(region) > MOST_PASSED_OVER * len(updates)
            or (tables and count > MOST_PLACES * len(updates))
            or not is_injective((count, *region), strides)
            or (rows[:, None] * steps != ahead).any()
        ):
            return None
        written = np.zeros(count, np.bool_)
        written[rows] = True
        member = np.maximum(np.cumsum(written) - 1, 0).tolist()
        filled = [[table[number] for number in member] for table in tables]
        return Grid(
            (count,), offsets[0].tolist(), [steps.tolist()], instructions, filled, updates[0],
            written.tobytes(),
        )

    def _instructions(
        self, values: list[int]
    ) -> tuple[list[Instruction], list[list[int]], list[list[int]]]:
        """What computes `values`, which have one signature, in order; and the views of each slot,
        the constants of each table.

        Nodes are visited as lists, one node a write: what two places of a value share must be
        shared in all of them.
        """
        graph = self.graph
        made: list[Instruction] = []
        slots: list[list[int]] = []
        tables: list[list[int]] = []
        known: dict[int, list[tuple[list[int], int]]] = {}

        def number_of(nodes: list[int]) -> int | None:
            for others, number in known.get(nodes[0], ()):
                if others == nodes:
                    return number
            return None

        stack = [values]
        while stack:
            nodes = stack[-1]
            if number_of(nodes) is not None:
                stack.pop()
                continue
            node = nodes[0]
            if self.signature[node] < 0 or (node in self._scalars and set(nodes) == {node}):
                made.append(Instruction(node, shared=True))
            elif graph.kinds[node] is Kind.CONSTANT:
                made.append(Instruction(node, table=len(tables)))
                tables.append(nodes)
            elif node in self._slots:
                found = [self.sources.get(view) for view in nodes]
                steady = all(source is not None and source.place == "any" for source in found)
                made.append(Instruction(node, slot=len(slots), steady=steady))
                slots.append(nodes)
            else:
                operands = []
                waiting = []
                for place in range(len(graph.inputs[node])):
                    below = [graph.inputs[each][place] for each in nodes]
                    number = number_of(below)
                    if number is None:
                        waiting.append(below)
                    else:
                        operands.append(number)
                if waiting:
                    stack += reversed(waiting)
                    continue
                made.append(Instruction(node, tuple(operands)))
            stack.pop()
            known.setdefault(node, []).append((nodes, len(made) - 1))
            if len(made) > MAX_INSTRUCTIONS:
                return [], [], []
        return made, slots, tables
