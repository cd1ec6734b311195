"""Many small equal writes become few large ones, before anything is placed; called by `planner`.

    for b in range(100): a[b] = a[b] * 2 + c[b]         100 UPDATEs, each over (n,), in a chain
    a[0:100] = a[0:100] * 2 + c[0:100]                  what is made of it: one over (100, n)

Writes of one `chains.Stretch` may happen in any order. Those whose values have the same structure,
and whose offsets (of the region, and of every view that the value reads) lie on a regular grid, are
one write with the grid's dimensions in front. Scalars that differ from write to write, as in
``a[b] = b``, become an array that is filled when the plan runs. What does not fit stays a write of
its own, and a graph without such writes stays as it was.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import numpy as np

from ..graph.grids import grids
from ..graph.ir import Kind, structural
from ..graph.layout import contiguous_strides
from .chains import MIN_WRITES, Source, Stretch, Stretches, overwritten
from .graph import Graph
from .schedule import TABLE

SHARED_READS: Final = 16
"""A value that is read this often is one for all writes, not computed for each of them."""

MAX_INSTRUCTIONS: Final = 1000
"""Nodes of one write's value: larger ones are worth a kernel each."""

MAX_ROUNDS: Final = 4
"""How often what is left is looked at again when some writes turn out not to fit."""

_COMPUTED: Final = (Kind.MAP, Kind.REDUCE, Kind.ARGREDUCE, Kind.GATHER)
_FOLDS: Final = (Kind.REDUCE, Kind.ARGREDUCE)


class Circle(Exception):
    """Stretches need each other's results: they cannot be done one after the other."""


def roll(graph: Graph) -> Graph:
    """`graph` with small equal writes joined; itself where there are none.

    Nodes that somebody holds or asked for are in the result, computed from what they were computed
    from. `Graph.original` and `Graph.moved` say where each node of the old graph went.
    """
    if graph.kinds.count(Kind.UPDATE) < MIN_WRITES:
        return graph
    instead = overwritten(graph)
    if instead:
        graph = Rebuilding(graph, {}, {}, instead).result
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


@dataclass(slots=True)
class Instruction:
    """One node of a value that is computed for all writes of a grid together.

    `node` is that of the first write. A `slot` is a view whose offset moves from write to write; a
    `table` is a scalar of the program that changes; `shared` is the same for all; others are
    computed from `operands` (numbers of instructions).
    """

    node: int
    operands: tuple[int, ...] = ()
    slot: int = -1
    table: int = -1
    shared: bool = False
    steady: bool = False  # a slot whose views are the same at every moment of their stretch


@dataclass(slots=True)
class Grid:
    """Writes ``starts + sum(index * steps)``: `starts` and every steps are (1 + slots,) offsets."""

    extents: tuple[int, ...]
    starts: list[int]
    steps: list[list[int]]
    instructions: list[Instruction]
    tables: list[list[int]]
    """The constants of every table, in C order of `extents`."""
    update: int
    """One of the writes, for its region's shape and strides."""


@dataclass(slots=True)
class StretchPlan:
    """What a stretch becomes: grids, then the writes that fit in none."""

    stretch: Stretch
    grids: list[Grid]
    rest: list[int]


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
        for members, extents, steps in grids(offsets):
            if math.prod(extents) < MIN_WRITES:
                plan.rest += [updates[member] for member in members]
                continue
            starts = offsets[members[0]].tolist()
            chosen = [[table[member] for member in members] for table in tables]
            first = updates[members[0]]
            plan.grids.append(Grid(extents, starts, steps, instructions, chosen, first))

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


class Rebuilding:
    """The new graph: everything that was asked for or is held, and what that needs."""

    def __init__(
        self,
        graph: Graph,
        sources: dict[int, Source],
        plans: dict[int, StretchPlan],
        instead: dict[int, int],
    ) -> None:
        self.graph = graph
        self.sources = sources
        self.plans = plans
        self.instead = instead
        self.result = Graph()
        self.result.buffer_live = graph.buffer_live
        self.moved: list[int] = [-1] * len(graph)
        self._numbers: dict[Any, int] = {}
        gone = set(instead)
        for plan in plans.values():
            gone.update(plan.stretch.updates[:-1])
        for node in range(len(graph)):
            if graph.requested[node] or (graph.live[node] and node not in gone):
                self._move(node)
        self._carry_marks()

    def _carry_marks(self) -> None:
        graph, result = self.graph, self.result
        for node, moved in enumerate(self.moved):
            if moved >= 0:
                result.members[moved] += graph.members[node]
                for old, new in (
                    (graph.live, result.live),
                    (graph.computed, result.computed),
                    (graph.requested, result.requested),
                ):
                    new[moved] = new[moved] or old[node]
        result.original, result.moved = graph, self.moved
        if graph.original is not None:
            result.original = graph.original
            result.moved = [self.moved[node] if node >= 0 else -1 for node in graph.moved]

    def _move(self, root: int) -> None:
        moved = self.moved
        entered: set[int] = set()
        stack = [root]
        while stack:
            node = stack[-1]
            if moved[node] >= 0:
                stack.pop()
                continue
            needs = [need for need in self._needs(node) if moved[need] < 0]
            if needs:
                if node in entered:
                    raise Circle
                entered.add(node)
                stack += reversed(needs)
                continue
            stack.pop()
            moved[node] = self._made(node)

    def _needs(self, node: int) -> list[int]:
        """Nodes of the old graph that the new one of `node` is made from."""
        graph = self.graph
        plan = self.plans.get(node)
        if plan is None:
            if node in self.sources:
                return [self._seen(node)]
            return self._inputs(node)
        needs = [plan.stretch.base]
        for grid in plan.grids:
            for instruction in grid.instructions:
                if instruction.shared:
                    needs.append(instruction.node)
                elif instruction.slot >= 0:
                    needs.append(self._seen(instruction.node))
            needs += chain.from_iterable(grid.tables)
        needs += [graph.inputs[update][1] for update in plan.rest]
        return needs

    def _inputs(self, node: int) -> list[int]:
        return [self.instead.get(operand, operand) for operand in self.graph.inputs[node]]

    def _seen(self, view: int) -> int:
        """What a view reads, in the old graph's numbers."""
        source = self.sources.get(view)
        if source is None:
            return self._inputs(view)[0]
        return source.stretch.updates[-1] if source.place == "end" else source.stretch.base

    def _made(self, node: int) -> int:
        graph, moved = self.graph, self.moved
        if node in self.plans:
            return self._written(node, self.plans[node])
        kind = graph.kinds[node]
        if kind is Kind.VIEW:
            offset, strides = graph.params[node]
            return self._view(moved[self._seen(node)], graph.shapes[node], offset, strides)
        if kind is Kind.LEAF or kind is Kind.CONSTANT:
            return self.result.append(
                kind,
                graph.ops[node],
                graph.shapes[node],
                graph.dtypes[node],
                graph.params[node],
                (),
                graph.buffer[node],
                graph.constant[node],
            )
        inputs = tuple([moved[operand] for operand in self._inputs(node)])
        return self._like(node, graph.shapes[node], graph.params[node], inputs)

    def _written(self, node: int, plan: StretchPlan) -> int:
        """The last of the writes that a stretch becomes; the array itself where zeros are written
        over zeros."""
        graph = self.graph
        array = self.moved[plan.stretch.base]
        for grid in plan.grids:
            value = self._value(grid, plan.stretch, array)
            offset = grid.starts[0]
            _, inner = graph.params[grid.update]
            strides = (*[step[0] for step in grid.steps], *inner)
            array = self._update(node, array, value, offset, strides)
        for update in plan.rest:
            value = self.moved[graph.inputs[update][1]]
            array = self._update(node, array, value, *graph.params[update])
        return array

    def _update(
        self, like: int, old: int, value: int, offset: int, strides: tuple[int, ...]
    ) -> int:
        """`build.update` on the new graph."""
        result, shape = self.result, self.graph.shapes[like]
        extents = result.shapes[value]
        whole = result.sizes[value] == result.sizes[old] and offset == 0
        if whole and strides == contiguous_strides(extents):
            return self._view(value, shape, 0, contiguous_strides(shape))
        return self._like(like, shape, (offset, strides), (old, value))

    def _value(self, grid: Grid, stretch: Stretch, array: int) -> int:
        """The values of all writes of a grid as one, its extents in front."""
        made: list[int] = []
        graph, result, moved = self.graph, self.result, self.moved
        lead = grid.extents
        count = len(lead)
        for instruction in grid.instructions:
            node = instruction.node
            shape = graph.shapes[node]
            if instruction.shared:
                made.append(moved[node])
                continue
            if instruction.table >= 0:
                made.append(self._table(grid.tables[instruction.table], lead))
                continue
            if instruction.slot >= 0:
                place = instruction.slot + 1
                source = self.sources.get(node)
                # What is the same before and after all these writes is read from the latest array.
                seen = moved[self._seen(node)]
                if instruction.steady and source is not None and source.stretch is stretch:
                    seen = array
                strides = (*[step[place] for step in grid.steps], *graph.params[node][1])
                made.append(self._view(seen, lead + shape, grid.starts[place], strides))
                continue
            operands = [made[number] for number in instruction.operands]
            spread = [not grid.instructions[number].shared for number in instruction.operands]
            kind = graph.kinds[node]
            param = graph.params[node]
            if kind is Kind.VIEW:
                (operand,) = operands
                whole = contiguous_strides(result.shapes[operand])[:count]
                made.append(self._view(operand, lead + shape, param[0], (*whole, *param[1])))
                continue
            if kind in _FOLDS:
                param = tuple([axis + count for axis in param])
            else:
                if kind is Kind.GATHER:
                    param = (param[0], (0,) * count + param[1])
                operands = [
                    self._aligned(operand, count, len(shape)) if is_spread else operand
                    for operand, is_spread in zip(operands, spread, strict=True)
                ]
            made.append(self._like(node, lead + shape, param, tuple(operands)))
        value = made[-1]
        if grid.instructions[-1].shared:
            shape = result.shapes[value]
            value = self._view(value, lead + shape, 0, (0,) * count + contiguous_strides(shape))
        return value

    def _table(self, constants: list[int], shape: tuple[int, ...]) -> int:
        """An array of scalars of the program, which is filled when the plan runs."""
        result = self.result
        dtype = self.graph.dtypes[constants[0]]
        op = structural(Kind.LIBRARY, TABLE, dtype)
        inputs = tuple([self.moved[constant] for constant in constants])
        return self._numbered(
            (op, shape, inputs), lambda: result.append(Kind.LIBRARY, op, shape, dtype, None, inputs)
        )

    def _aligned(self, node: int, lead: int, rank: int) -> int:
        """`node`, whose first `lead` axes are a grid's, with `rank` axes behind them."""
        shape = self.result.shapes[node]
        missing = rank - (len(shape) - lead)
        if not missing:
            return node
        wanted = (*shape[:lead], *(1,) * missing, *shape[lead:])
        return self._view(node, wanted, 0, contiguous_strides(wanted))

    def _view(
        self, source: int, shape: tuple[int, ...], offset: int, strides: tuple[int, ...]
    ) -> int:
        """`build.view` on the new graph."""
        result = self.result
        if shape == result.shapes[source] and offset == 0 and strides == contiguous_strides(shape):
            return source
        if result.sizes[source] == 1:
            offset, strides = 0, (0,) * len(shape)
        key = (Kind.VIEW, shape, (offset, strides), (source,))
        return self._numbered(
            key,
            lambda: result.append(
                Kind.VIEW,
                structural(Kind.VIEW, "view", result.dtypes[source]),
                shape,
                result.dtypes[source],
                (offset, strides),
                (source,),
            ),
        )

    def _like(self, node: int, shape: tuple[int, ...], param: Any, inputs: tuple[int, ...]) -> int:
        """The operation of `node`, of the old graph, on other inputs."""
        graph, result = self.graph, self.result
        key = (graph.ops[node], shape, param, inputs)
        return self._numbered(
            key,
            lambda: result.append(
                graph.kinds[node], graph.ops[node], shape, graph.dtypes[node], param, inputs
            ),
        )

    def _numbered(self, key: Any, make: Callable[[], int]) -> int:
        """Equal nodes once."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = make()
        return number
