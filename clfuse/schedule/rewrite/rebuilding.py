"""The graph after rerolling: the writes of a stretch as few writes, one for each grid.

    Grid((100,), starts [0, 0], steps [[10, 10]])       a[0:100] = f(a[0:100]), of rows of ten
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import chain
from typing import Any, Final

import numpy as np

from clfuse.dataclass import mutable
from clfuse.ir.layout import contiguous_strides
from clfuse.ir.nodes import TABLE, Kind, Op, cast_loop, loop, structural
from clfuse.schedule.graph import Graph

from .chains import Source, Stretch

_BOOL: Final = np.dtype(np.bool_)
_FOLDS: Final = (Kind.REDUCE, Kind.ARGREDUCE)


class Circle(Exception):
    """Stretches need each other's results: they cannot be done one after the other."""


@mutable
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


@mutable
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
    written: bytes = b""
    """Which of the grid's places are written to, as bools; empty for all of them."""


@mutable
class StretchPlan:
    """What a stretch becomes: grids, then the writes that fit in none."""

    stretch: Stretch
    grids: list[Grid]
    rest: list[int]


class Rebuilding:
    """The new graph: everything that was asked for or is held, and what that needs."""

    def __init__(
        self,
        graph: Graph,
        sources: dict[int, Source],
        plans: dict[int, StretchPlan],
        instead: dict[int, int],
        pending: Collection[int] = (),
    ) -> None:
        """`pending` are held values that nothing asks for: they are computed when it does."""
        self.graph = graph
        self.sources = sources
        self.plans = plans
        self.instead = instead
        self.result = Graph()
        self.result.buffer_live = graph.buffer_live
        self.moved: list[int] = [-1] * len(graph)
        self._numbers: dict[Any, int] = {}
        gone = {*instead, *pending}
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
                kind, graph.ops[node], graph.shapes[node], graph.dtypes[node], graph.params[node],
                (), graph.buffer[node], graph.constant[node],
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
            if grid.written:
                value = self._selected(grid.written, value, array, offset, strides)
            array = self._update(node, array, value, offset, strides)
        for update in plan.rest:
            value = self.moved[graph.inputs[update][1]]
            array = self._update(node, array, value, *graph.params[update])
        return array

    def _selected(
        self, written: bytes, value: int, array: int, offset: int, strides: tuple[int, ...]
    ) -> int:
        """`value` at the places that are written to, and what `array` holds there at others."""
        result = self.result
        shape, dtype = result.shapes[value], result.dtypes[value]
        flags = (len(written), *(1,) * (len(shape) - 1))
        op = structural(Kind.LIBRARY, TABLE, _BOOL)
        mask = self._node(op, flags, (), written)
        before = self._view(array, shape, offset, strides)
        select = loop("where", (_BOOL, dtype, dtype), dtype)
        return self._node(select, shape, (mask, value, before))

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
        op = structural(Kind.LIBRARY, TABLE, self.graph.dtypes[constants[0]])
        return self._node(op, shape, tuple([self.moved[constant] for constant in constants]))

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
        op = structural(Kind.VIEW, "view", result.dtypes[source])
        return self._node(op, shape, (source,), (offset, strides))

    def _map(self, name: str, value: int, dtype: np.dtype) -> int:
        """An element-wise operation; nothing where a cast changes nothing."""
        source = self.result.dtypes[value]
        if name == "cast" and source == dtype:
            return value
        op = cast_loop(source, dtype) if name == "cast" else loop(name, (source,), dtype)
        return self._node(op, self.result.shapes[value], (value,))

    def _like(self, node: int, shape: tuple[int, ...], param: Any, inputs: tuple[int, ...]) -> int:
        """The operation of `node`, of the old graph, on other inputs."""
        op = self.graph.ops[node]
        assert op is not None
        return self._node(op, shape, inputs, param)

    def _node(
        self, op: Op, shape: tuple[int, ...], inputs: tuple[int, ...], param: Any = None
    ) -> int:
        """An operation on nodes of the new graph; equal ones once."""
        key = op, shape, param, inputs
        number = self._numbers.get(key)
        if number is None:
            assert op.dtype is not None
            number = self.result.append(op.kind, op, shape, op.dtype, param, inputs)
            self._numbers[key] = number
        return number


class Replacing(Rebuilding):
    """The graph with other operations in place of some nodes; `found` says how, node by node."""

    def __init__(self, graph: Graph, found: Mapping[int, Any]) -> None:
        self.found = found
        super().__init__(graph, {}, {}, {})

    def _made(self, node: int) -> int:
        found = self.found.get(node)
        return super()._made(node) if found is None else self._replaced(node, found)

    def _replaced(self, node: int, found: Any) -> int:
        raise NotImplementedError
