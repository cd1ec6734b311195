"""Placement becomes launches: stored nodes are gathered into kernels, level by level.

All element-wise results of one level and one shape share a kernel; all reductions of one level,
shape and axes share one, together with what they carry and with results of the shape that they pass
over.
Writes into a part of an array run over that part alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ..graph.ir import Kind
from ..graph.layout import contiguous_strides, delinearize
from . import cost
from .emission import Emitter, Refines, Registers, Straddles, ValueTable, identity
from .graph import Graph
from .placement import Placement
from .schedule import (
    Access,
    Accumulator,
    Copy,
    Cut,
    Index,
    Kernel,
    Launch,
    LibraryCall,
    Operand,
    Store,
)
from .selections import masked_kernels


@dataclass(slots=True)
class Sink:
    """`node` is computed over its shape and stored to `value` at `access`."""

    node: int
    value: int
    access: Access


@dataclass(slots=True)
class Pending:
    """One launch being put together, with what decides its place and its hazards."""

    level: int
    launch: Launch
    updates: list[int] = field(default_factory=list)
    shape: tuple[int, ...] | None = None  # of the iteration, if its dimensions are these axes
    order: tuple[int, ...] = ()  # the axes of `shape`, as the kernel's dimensions have them


class Lowering:
    """The pass and its result.

    Attributes
    ----------
    pending : list of Pending, in order of execution
    values : ValueTable
    aliases : dict, node -> node whose bytes are its own
    """

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self.graph: Graph = placement.graph
        self.values = ValueTable(self.graph)
        self.pending: list[Pending] = []
        maps: dict[Any, list[Sink]] = {}
        reductions: dict[Any, list[int]] = {}
        libraries: list[int] = []
        masked: list[int] = []
        self._number_values()
        for node in range(len(self.graph)):
            if not self._computed_here(node):
                continue
            kind = self.graph.kinds[node]
            level = placement.level[node]
            target = self.values.of_node[node]
            if kind is Kind.LIBRARY:
                libraries.append(node)
            elif kind in (Kind.COUNTS, Kind.COMPACT, Kind.EXPAND):
                masked.append(node)
            elif kind is Kind.UPDATE:
                value = self.graph.inputs[node][1]
                access = Access(*self.graph.params[node])
                self._add(maps, level, value, Sink(value, target, access), node)
            elif kind is Kind.CONCATENATE:
                for sink in self._pieces(node, target):
                    self._add(maps, level, sink.node, sink, node)
            elif placement.carrier[node] is not None:
                reductions.setdefault(placement.carrier[node], []).append(node)
            else:
                sink = Sink(node, target, identity(self.graph.shapes[node]))
                self._add(maps, level, node, sink, node)
        for level, kernel, emitter in masked_kernels(placement, self.values, masked):
            if kernel.kind == "reduce":
                self._take_along(kernel, emitter, level, kernel.extents, (0,), maps)
            self.pending.append(Pending(level, kernel))
        for carrier, nodes in reductions.items():
            self._note_split(nodes[0], len(nodes))
            for start in range(0, len(nodes), cost.MAX_STORES):
                self._reduction(carrier, nodes[start : start + cost.MAX_STORES], maps)
        for (level, _), sinks in maps.items():
            self._note_split(sinks[0].node, len(sinks))
            for start in range(0, len(sinks), cost.MAX_STORES):
                self._map(level, sinks[start : start + cost.MAX_STORES])
        for node in libraries:
            self._library(node)
        self.pending.sort(key=lambda pending: (pending.level, bool(pending.updates)))

    def _note_split(self, node: int, count: int) -> None:
        """Say why results that could share a kernel, `node` the first, do not."""
        if count > cost.MAX_STORES:
            kernels = -(-count // cost.MAX_STORES)
            self.placement.cuts.append(
                Cut(
                    f"{count} results like {self.graph.label(node)}",
                    f"{kernels} kernels: one has {cost.MAX_STORES} results at most",
                    0,
                )
            )

    def values_needed_later(self) -> set[int]:
        """The values that somebody asked for, or holds."""
        graph, placement = self.graph, self.placement
        kept = set()
        for node, value in self.values.of_node.items():
            if graph.requested[node] or (graph.live[node] and placement.stored[node]):
                kept.add(value)
        return kept

    def _computed_here(self, node: int) -> bool:
        return (
            self.placement.stored[node]
            and self.graph.kinds[node] is not Kind.LEAF
            and self.values.node[self.values.of_node[node]] == node
        )

    def _number_values(self) -> None:
        """Give every stored node a value; a reshape of something stored has that one's."""
        graph, placement = self.graph, self.placement
        for node in range(len(graph)):
            if not placement.stored[node] or graph.kinds[node] is Kind.LEAF:
                continue
            if graph.kinds[node] is Kind.VIEW:
                (operand,) = graph.inputs[node]
                whole = graph.sizes[node] == graph.sizes[operand] and graph.params[node] == (
                    0,
                    contiguous_strides(graph.shapes[node]),
                )
                if whole and graph.kinds[operand] is Kind.LEAF:
                    self.values.of_node[node] = self.values.leaf(operand)
                    continue
                if whole and placement.stored[operand]:
                    self.values.of_node[node] = self.values.of_node[operand]
                    continue
            self.values.of_node[node] = self.values.new(graph.nbytes(node), node)

    def _add(
        self, maps: dict[Any, list[Sink]], level: int, node: int, sink: Sink, owner: int
    ) -> None:
        shape = self.graph.shapes[node]
        if math.prod(shape) == 0:
            return
        group: Any = shape if self.placement.fuse else (owner, node)
        maps.setdefault((level, group), []).append(sink)

    def _pieces(self, node: int, target: int) -> list[Sink]:
        """The operands of a concatenation, each stored to its place."""
        axis = self.graph.params[node]
        strides = contiguous_strides(self.graph.shapes[node])
        step = math.prod(self.graph.shapes[node][axis + 1 :])
        sinks = []
        start = 0
        for operand in self.graph.inputs[node]:
            shape = self.graph.shapes[operand]
            kept = tuple(
                [
                    0 if extent == 1 else stride
                    for extent, stride in zip(shape, strides, strict=True)
                ]
            )
            sinks.append(Sink(operand, target, Access(start * step, kept)))
            start += shape[axis]
        return sinks

    def _map(self, level: int, sinks: list[Sink]) -> None:
        """One kernel for these results, or one a box where they read concatenations."""
        shape = self.graph.shapes[sinks[0].node]
        updates = []
        for sink in sinks:
            owner = self.values.node[sink.value]
            if owner is not None and self.graph.kinds[owner] is Kind.UPDATE:
                updates.append(owner)
        boxes = [tuple([(0, extent) for extent in shape])]
        done = 0
        lift = _Lift(shape)
        while boxes:
            box = boxes.pop()
            try:
                kernel = self._over_box(level, sinks, lift, box)
            except Refines as finer:
                lift = lift.refined(finer)
                boxes = [tuple([(0, extent) for extent in lift.extents])]
                continue
            except Straddles as cut:
                if cut.dim is None or len(boxes) + done >= cost.MAX_BOXES:
                    raise
                low, high = box[cut.dim]
                for part in ((low + cut.position, high), (low, low + cut.position)):
                    boxes.append((*box[: cut.dim], part, *box[cut.dim + 1 :]))
                continue
            kernel.boxed = done > 0 or bool(boxes)
            whole = shape if lift.extents == shape and not kernel.boxed else None
            self.pending.append(Pending(level, kernel, updates, whole, tuple(range(len(shape)))))
            done += 1
        if done > 1:
            label = self.graph.label(sinks[0].node)
            reason = f"{done} kernels: each reads one part of what was joined, where it lies"
            self.placement.cuts.append(Cut(label, reason, 0))

    def _over_box(
        self,
        level: int,
        sinks: list[Sink],
        lift: _Lift,
        box: tuple[tuple[int, int], ...],
    ) -> Kernel:
        """The kernel that computes `sinks` over a part of their iteration."""
        extents = tuple([stop - start for start, stop in box])
        emitter = Emitter(self.placement, self.values, level, extents, Registers())
        stores = []
        for sink in sinks:
            var = emitter.emit(sink.node, _inside(identity(lift.extents), box))
            place = _inside(lift.access(sink.access), box)
            stores.append(self._store(var, sink.node, sink.value, place))
        return Kernel("map", extents, emitter.items, stores)

    def _store(self, var: int, node: int, value: int, access: Access) -> Store:
        owner = self.values.node[value]
        assert owner is not None
        return Store(var, self.graph.dtypes[node], value, self.graph.dtypes[owner], access)

    def _reduction(self, carrier: Any, nodes: list[int], maps: dict[Any, list[Sink]]) -> None:
        level, shape, axes, (scans, _) = carrier
        if scans:
            self._scan(carrier, nodes, maps)
            return
        graph = self.graph
        kept = tuple([axis for axis in range(len(shape)) if axis not in axes])
        order = kept + tuple(axes)
        extents = tuple([shape[axis] for axis in order])
        registers = Registers()
        loop = Emitter(self.placement, self.values, level, extents, registers)
        accumulators = []
        folded: dict[int, int] = {}
        for node in self._reductions_below(nodes, carrier):
            (operand,) = graph.inputs[node]
            var = loop.emit(operand, identity(shape, order))
            op = graph.ops[node]
            assert op is not None
            position = None
            if graph.kinds[node] is Kind.ARGREDUCE:
                position = registers.new()
                within = contiguous_strides(tuple([shape[axis] for axis in axes]))
                loop.items.append(Index(position, Access(0, (0,) * len(kept) + within)))
            folded[node] = registers.new()
            accumulators.append(
                Accumulator(folded[node], op.name, var, op.input_dtypes[0], position)
            )
        kept_extents = extents[: len(kept)]
        epilogue = Emitter(self.placement, self.values, level, kept_extents, registers, folded)
        results = []
        access = identity(kept_extents)
        for node in nodes:
            var = epilogue.emit(node, access)
            results.append(self._store(var, node, self.values.of_node[node], access))
        kernel = Kernel(
            "reduce",
            extents,
            loop.items,
            [],
            len(axes),
            accumulators,
            epilogue.items,
            results,
        )
        self._take_along(kernel, loop, level, shape, order, maps)
        if math.prod(kept_extents):
            self.pending.append(Pending(level, kernel, [], shape, order))

    def _scan(self, carrier: Any, nodes: list[int], maps: dict[Any, list[Sink]]) -> None:
        """One kernel for scans over one shape along one axis, and for what they carry."""
        level, shape, (axis,), _ = carrier
        order = (*[other for other in range(len(shape)) if other != axis], axis)
        extents = tuple([shape[other] for other in order])
        emitter = Emitter(self.placement, self.values, level, extents, Registers())
        access = emitter.scanned = identity(shape, order)
        stores = []
        for node in nodes:
            var = emitter.emit(node, access)
            stores.append(self._store(var, node, self.values.of_node[node], access))
        kernel = Kernel("scan", extents, emitter.items, stores, 1)
        self._take_along(kernel, emitter, level, shape, order, maps)
        self.pending.append(Pending(level, kernel))

    def _reductions_below(self, nodes: list[int], carrier: Any) -> list[int]:
        """The reductions that the carried `nodes` are made of, each once, in graph order."""
        graph = self.graph
        found: set[int] = set()
        seen: set[int] = set()
        stack = list(nodes)
        while stack:
            node = stack.pop()
            if node in seen or self.placement.carrier[node] != carrier:
                continue
            seen.add(node)
            if graph.kinds[node] in (Kind.REDUCE, Kind.ARGREDUCE):
                found.add(node)
            else:
                stack.extend(graph.inputs[node])
        return sorted(found)

    def _take_along(
        self,
        kernel: Kernel,
        loop: Emitter,
        level: int,
        shape: tuple[int, ...],
        order: tuple[int, ...],
        maps: dict[Any, list[Sink]],
    ) -> None:
        """Store results that the reduction computes anyway, while it passes over their elements."""
        sinks = maps.get((level, shape))
        if not sinks:
            return
        strides = contiguous_strides(shape)
        rest = []
        for sink in sinks:
            key = (sink.node, identity(shape, order))
            whole = self.values.node[sink.value] == sink.node and sink.access == Access(0, strides)
            if whole and key in loop.variables:
                var = loop.variables[key]
                kernel.stores.append(
                    self._store(var, sink.node, sink.value, identity(shape, order))
                )
            else:
                rest.append(sink)
        maps[level, shape] = rest
        if not rest:
            del maps[level, shape]

    def _library(self, node: int) -> None:
        graph = self.graph
        operands = []
        scalars = []
        for place, operand in enumerate(graph.inputs[node]):
            constant = graph.constant[operand]
            if constant is not None:
                scalars.append((place, constant))
                continue
            offset, strides = 0, contiguous_strides(graph.shapes[operand])
            source = operand
            if self.placement.is_view_of_memory(operand):
                offset, strides = graph.params[operand]
                source = graph.inputs[operand][0]
            value = (
                self.values.leaf(source)
                if graph.kinds[source] is Kind.LEAF
                else self.values.of_node[source]
            )
            operands.append(
                Operand(value, graph.dtypes[operand], graph.shapes[operand], offset, strides)
            )
        op = graph.ops[node]
        assert op is not None
        call = LibraryCall(
            op.name,
            operands,
            self.values.of_node[node],
            graph.shapes[node],
            graph.dtypes[node],
            graph.params[node],
            tuple(scalars),
        )
        self.pending.append(Pending(self.placement.level[node], call))

    def prefill(self, node: int) -> list[Pending]:
        """Launches that bring the old contents of an UPDATE into its own memory.

        Only what the update does not write itself is copied, where that is a few boxes.
        """
        graph = self.graph
        old, value = graph.inputs[node]
        level = self.placement.level[node]
        target = self.values.of_node[node]
        shape = graph.shapes[node]
        boxes = _complement(shape, graph.shapes[value], *graph.params[node])
        emits = Emitter(self.placement, self.values, level, shape, Registers())
        if boxes is None:
            if emits.in_memory(old):
                source = (
                    self.values.leaf(old)
                    if graph.kinds[old] is Kind.LEAF
                    else self.values.of_node[old]
                )
                return [Pending(level, Copy(source, target, graph.nbytes(node)))]
            boxes = [tuple([(0, extent) for extent in shape])]
        launches = []
        whole = Access(0, contiguous_strides(shape))
        for box in boxes:
            extents = tuple([stop - start for start, stop in box])
            access = _inside(whole, box)
            emitter = Emitter(self.placement, self.values, level, extents, Registers())
            var = emitter.emit(old, access)
            store = Store(var, graph.dtypes[old], target, graph.dtypes[node], access)
            kernel = Kernel("map", extents, emitter.items, [store], boxed=len(boxes) > 1)
            launches.append(Pending(level, kernel))
        return launches


class _Lift:
    """An iteration over `shape` whose dimensions are split further, into `extents`."""

    def __init__(self, shape: tuple[int, ...], extents: tuple[int, ...] | None = None) -> None:
        self.shape = shape
        self.extents = shape if extents is None else extents

    def refined(self, finer: Refines) -> _Lift:
        """Split so that the axes of another shape of the same size are dimensions, too.

        The products of the last extents, of both shapes, are where dimensions begin; they must
        divide one another, as 24 = 4 x 6 and 24 = 4 x 2 x 3 do, but 4 x 6 and 3 x 8 do not.
        """
        starts = {1}
        for extents in (self.extents, finer.shape):
            product = 1
            for extent in reversed(extents):
                product *= extent
                starts.add(product)
        ordered = sorted(starts, reverse=True)
        parts = []
        for large, small in pairwise(ordered):
            if large % small:
                raise Straddles(finer.node, None, 0)
            parts.append(large // small)
        if tuple(parts) == self.extents:
            raise Straddles(finer.node, None, 0)
        return _Lift(self.shape, tuple(parts))

    def access(self, access: Access) -> Access:
        """An access over `shape` as one over `extents`."""
        if self.extents == self.shape:
            return access
        strides = []
        dims = [
            (extent, stride)
            for extent, stride in zip(self.shape, access.strides, strict=True)
            if extent != 1
        ]
        left, stride = dims.pop() if dims else (1, 0)
        for extent in reversed(self.extents):
            if left == 1 and dims:
                left, stride = dims.pop()
            strides.append(stride)
            stride *= extent
            left //= extent
        return Access(access.offset, tuple(reversed(strides)))


def _inside(access: Access, box: tuple[tuple[int, int], ...]) -> Access:
    """An access to a whole iteration, as one over a box of it."""
    offset = access.offset
    strides = []
    for (start, stop), stride in zip(box, access.strides, strict=True):
        offset += start * stride
        strides.append(stride if stop - start != 1 else 0)
    return Access(offset, tuple(strides))


def _complement(
    shape: tuple[int, ...], region: tuple[int, ...], offset: int, strides: tuple[int, ...]
) -> list[tuple[tuple[int, int], ...]] | None:
    """Boxes of `shape` outside the region that the map covers; None when it is not a box."""
    axes = delinearize(shape, region, offset, strides)
    if axes is None:
        return None
    inner = []
    used: set[int] = set()
    for start, coefficients in axes:
        moving = [dim for dim, coefficient in enumerate(coefficients) if coefficient]
        if not moving:
            inner.append((start, start + 1))
            continue
        (dim, *more) = moving
        if more or dim in used or abs(coefficients[dim]) != 1:
            return None
        used.add(dim)
        count = region[dim]
        first = start if coefficients[dim] == 1 else start - count + 1
        inner.append((first, first + count))
    boxes = []
    for axis, (start, stop) in enumerate(inner):
        for low, high in ((0, start), (stop, shape[axis])):
            if low < high:
                boxes.append(
                    (
                        *inner[:axis],
                        (low, high),
                        *[(0, extent) for extent in shape[axis + 1 :]],
                    )
                )
    return boxes
