"""Lowering: the stored nodes of a placement are gathered into kernels, level by level.

Element-wise results of one level and shape share a kernel; so do reductions of one level, shape and
axes with what has their operands' shape. Writes to a part of an array run over that part alone.
"""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any, Final

from clfuse.dataclass import mutable
from clfuse.ir.layout import contiguous_strides
from clfuse.ir.nodes import Kind
from clfuse.schedule import cost
from clfuse.schedule.graph import Graph
from clfuse.schedule.kinds import MAP, REDUCE, SCAN
from clfuse.schedule.partition.placement import Placement
from clfuse.schedule.records import (
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
    UserLaunch,
)
from clfuse.schedule.shape import tiles
from clfuse.schedule.shape.geometry import lane_nbytes, merge_dimensions
from clfuse.schedule.shape.vector_axis import suits_vectors
from clfuse.target.traits import DeviceTraits

from . import breakpoints
from .emission import Emitter, Refines, Registers, Straddles, ValueTable, identity
from .iterations import Lift, complement, extents_of, inside
from .scatters import scatter_kernels
from .selections import masked_kernels
from .user_launches import launches_of

JOINS: Final = (Kind.CONCATENATE, Kind.UPDATE)
"""What cuts an iteration into boxes."""


@mutable
class Sink:
    """`node` is computed over its shape and stored to `value` at `access`."""

    node: int
    value: int
    access: Access


@mutable
class Pending:
    """One launch being put together, with what decides its place and its hazards."""

    level: int
    launch: Launch
    updates: list[int] = field(default_factory=list)
    shape: tuple[int, ...] | None = None  # of the iteration, if its dimensions are these axes
    order: tuple[int, ...] = ()  # the axes of `shape`, as the kernel's dimensions have them


class Lowering:
    """The pass and its result.

    pending: in order of execution
    values (ValueTable)
    apart (dict, value -> Cut): why what reads it is another launch, unless they are joined after
        all.
    """

    def __init__(self, placement: Placement, traits: DeviceTraits) -> None:
        self.placement = placement
        self.traits = traits
        self.graph: Graph = placement.graph
        self.values = ValueTable(self.graph)
        self.pending: list[Pending] = []
        self.apart: dict[int, Cut] = {}
        maps: dict[Any, list[Sink]] = {}
        reductions: dict[Any, list[int]] = {}
        libraries: list[int] = []
        masked: list[int] = []
        self._number_values()
        for level, launch in launches_of(placement, self.values):
            self.pending.append(Pending(level, launch))
        for node in range(len(self.graph)):
            kind = self.graph.kinds[node]
            if kind is Kind.PART or not self._computed_here(node):
                continue
            level = placement.level[node]
            target = self.values.of_node[node]
            if kind is Kind.LIBRARY:
                libraries.append(node)
            elif kind in (Kind.COUNTS, Kind.COMPACT, Kind.EXPAND):
                masked.append(node)
            elif kind is Kind.UPDATE and node not in placement.boxed:
                for member in placement.writes.members(node):
                    value = self.graph.inputs[member][1]
                    access = Access(*self.graph.params[member])
                    self._add(maps, level, value, Sink(value, target, access), node)
            elif kind is Kind.CONCATENATE and not self._is_one_kernel(node):
                for sink in self._pieces(node, target):
                    self._add(maps, level, sink.node, sink, node)
            elif placement.carrier[node] is not None:
                reductions.setdefault(placement.carrier[node], []).append(node)
            else:
                sink = Sink(node, target, identity(self.graph.shapes[node]))
                self._add(maps, level, node, sink, node)
        for level, kernel, emitter in masked_kernels(placement, self.values, masked):
            if kernel.kind.folds:
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
            if node in placement.scattered:
                level = placement.level[node]
                kernels = scatter_kernels(placement, self.values, node)
                self.pending += [Pending(level, kernel) for kernel in kernels]
            else:
                self._library(node)
        # What writes into bytes that others of its level read comes after them.
        self.pending.sort(
            key=lambda each: (each.level, bool(each.updates) or isinstance(each.launch, UserLaunch))
        )

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
        """The values that are requested, or held."""
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

    def is_written_in_place(self, node: int) -> bool:
        """Whether a stored node is a write to a part of an array, made where that array lies."""
        return self.graph.kinds[node] is Kind.UPDATE and node not in self.placement.boxed

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
        shared = self.placement.fuse and node not in self.placement.refused
        group: Any = shape if shared else ("apart", owner, node)  # which no shape is equal to
        maps.setdefault((level, group), []).append(sink)

    def _is_one_kernel(self, node: int) -> bool:
        """Whether a stored concatenation should be written as a whole.

        Parts of one shape are computed side by side instead, each stored to its place.
        """
        graph = self.graph
        if not self.placement.fuse:
            return False
        if len({graph.shapes[part] for part in graph.inputs[node] if graph.sizes[part]}) < 2:
            return False
        shape = graph.shapes[node]
        try:
            parts = self._parts(self.placement.level[node], [node], shape, identity(shape))
        except (Straddles, Refines):
            return False
        return breakpoints.join(parts, shape, self.traits.max_steps) is not None

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
        """One kernel for these results; or one a box, where they read joined arrays otherwise."""
        shape = self.graph.shapes[sinks[0].node]
        owners = dict.fromkeys([self.values.node[sink.value] for sink in sinks])
        updates = [
            owner for owner in owners if owner is not None and self.is_written_in_place(owner)
        ]
        lift = Lift(shape)
        while True:
            try:
                nodes = [sink.node for sink in sinks]
                parts = self._parts(level, nodes, lift.extents, identity(lift.extents))
                break
            except Refines as finer:
                lift = lift.refined(finer)
        bodies = breakpoints.join(parts, lift.extents, self.traits.max_steps)
        if bodies is None and len(sinks) > 1:  # each for itself may be one kernel
            for sink in sinks:
                self._map(level, [sink])
            return
        if bodies is None:
            written = self._joined_below(nodes, level, (Kind.UPDATE,))
            if written is not None:  # in memory it is fewer kernels than one for each box
                raise Straddles(written, None, 0)
        places = [lift.access(sink.access) for sink in sinks]
        unbroken = shape if lift.extents == shape and bodies is not None else None
        kernels = self._kernels(sinks, places, lift.extents, parts, bodies)
        if len(kernels) == 1 and (groups := tiles.apart(kernels[0], self.traits)):
            for group in groups:
                self._map(level, [sinks[number] for number in group])
            return
        order = tuple(range(len(shape)))
        self.pending += [Pending(level, kernel, updates, unbroken, order) for kernel in kernels]
        if bodies is None:
            label = self.graph.label(sinks[0].node)
            reason = f"{len(parts)} kernels: each reads one part of what was joined, where it lies"
            self.placement.cuts.append(Cut(label, reason, 0))

    def _kernels(
        self,
        sinks: list[Sink],
        places: list[Access],
        extents: tuple[int, ...],
        parts: list[breakpoints.Part],
        bodies: list[breakpoints.Body] | None,
    ) -> list[Kernel]:
        """One kernel of these bodies, else one a part; results are stored at `places`."""

        def stored(roots: list[int], box: breakpoints.Box) -> list[Store]:
            return [
                self._store(var, sink.node, sink.value, inside(place, box))
                for var, sink, place in zip(roots, sinks, places, strict=True)
            ]

        if bodies is None:
            return [
                Kernel(
                    MAP, extents_of(part.box), part.items, stored(part.roots, part.box), boxed=True
                )
                for part in parts
            ]
        whole = tuple([(0, extent) for extent in extents])
        first, *others = [
            Kernel(MAP, extents, body.items, stored(body.roots, whole), where=body.where)
            for body in bodies
        ]
        first.then = others
        return [first]

    def _parts(
        self,
        level: int,
        nodes: list[int],
        extents: tuple[int, ...],
        whole: Access,
    ) -> list[breakpoints.Part]:
        """`nodes` at `whole` over `extents`, box by box where they read joined arrays."""
        boxes: list[breakpoints.Box] = [tuple([(0, extent) for extent in extents])]
        parts: list[breakpoints.Part] = []
        while boxes:
            box = boxes.pop()
            emitter = Emitter(self.placement, self.values, level, extents_of(box), Registers())
            try:
                roots = [emitter.emit(node, inside(whole, box)) for node in nodes]
            except Straddles as cut:
                if cut.dim is None or len(boxes) + len(parts) >= cost.MAX_BOXES:
                    raise
                boxes += breakpoints.cut_box(box, cut.dim, cut.position)
                continue
            parts.append(breakpoints.Part(box, emitter.items, roots, emitter.variables))
        return parts

    def _owner(self, sink: Sink) -> int:
        """The node whose value a sink is a part of, or all."""
        owner = self.values.node[sink.value]
        assert owner is not None
        return owner

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
        folds = self._reductions_below(nodes, carrier)
        operands = [graph.inputs[node][0] for node in folds]
        whole = identity(shape, order)
        parts = self._parts(level, operands, extents, whole)
        along = self._taken_along(parts, level, shape, whole, maps, updates=True)
        bodies = breakpoints.join(parts, extents, self.traits.max_steps)
        if bodies is None or len(bodies) > 1:
            raise self._refusal(operands, level)
        items, roots, registers = bodies[0].items, bodies[0].roots, bodies[0].registers
        accumulators = []
        folded: dict[int, int] = {}
        for node, var in zip(folds, roots, strict=False):
            op = graph.ops[node]
            assert op is not None
            position = None
            if graph.kinds[node] is Kind.ARGREDUCE:
                position = registers.new()
                within = contiguous_strides(tuple([shape[axis] for axis in axes]))
                items.append(Index(position, Access(0, (0,) * len(kept) + within)))
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
            epilogue.forget_constants()
        kernel = Kernel(
            REDUCE, extents, items, self._stores_along(along, roots, order), len(axes),
            accumulators, epilogue.items, results,
        )
        if len(parts) > 1 and self._prefers_memory(kernel):
            raise self._refusal(operands, level)
        if math.prod(kept_extents):
            updates = [node for node in map(self._owner, along) if self.is_written_in_place(node)]
            self.pending.append(Pending(level, kernel, updates, shape, order))

    def _prefers_memory(self, kernel: Kernel) -> bool:
        """Whether the joined arrays that a reduction reads should be stored first.

        On a CPU, where seams lie across its columns: strips of whole vectors are worth more than
        the bytes.
        """
        if self.traits.schedule != "cpu":
            return False
        merged = merge_dimensions(kernel)
        kept = len(merged.extents) - merged.reduced
        seamed = [dim for dim in range(kept) if merged.seams(dim)]
        lanes = max(1, self.traits.vector_bytes // max(1, lane_nbytes(merged) or 64))
        dims = range(len(merged.extents))
        return max(dims, key=lambda dim: (suits_vectors(merged, dim, lanes), dim)) in seamed

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
        kernel = Kernel(SCAN, extents, emitter.items, stores, 1)
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

    def _taken_along(
        self,
        parts: list[breakpoints.Part],
        level: int,
        shape: tuple[int, ...],
        whole: Access,
        maps: dict[Any, list[Sink]],
        *,
        updates: bool = False,
    ) -> list[Sink]:
        """Results that the parts compute anyway, while they pass over all elements of `shape`;
        with `updates` also those that are written into a part of an array.

        Their registers become the last roots of the parts.
        """
        strides = contiguous_strides(shape)
        taken = []
        rest = []
        for sink in maps.pop((level, shape), ()):
            keys = [(sink.node, inside(whole, part.box)) for part in parts]
            owner = self._owner(sink)
            fits = owner == sink.node and sink.access == Access(0, strides)
            fits = fits or (updates and self.is_written_in_place(owner))
            if fits and all(key in part.known for key, part in zip(keys, parts, strict=True)):
                for key, part in zip(keys, parts, strict=True):
                    part.roots.append(part.known[key])
                taken.append(sink)
            else:
                rest.append(sink)
        if rest:
            maps[level, shape] = rest
        return taken

    def _stores_along(
        self, sinks: list[Sink], roots: list[int], order: tuple[int, ...]
    ) -> list[Store]:
        """What `_taken_along` found, stored from the last of these registers; `order` is that of
        the kernel's dimensions."""
        return [
            self._store(var, sink.node, sink.value, sink.access.over(order))
            for sink, var in zip(sinks, roots[len(roots) - len(sinks) :], strict=True)
        ]

    def _take_along(
        self,
        kernel: Kernel,
        loop: Emitter,
        level: int,
        shape: tuple[int, ...],
        order: tuple[int, ...],
        maps: dict[Any, list[Sink]],
    ) -> None:
        """Let a kernel over all of `shape` store results that it computes anyway."""
        whole = identity(shape, order)
        box = tuple([(0, shape[axis]) for axis in order])
        part = breakpoints.Part(box, loop.items, [], loop.variables)
        sinks = self._taken_along([part], level, shape, whole, maps)
        kernel.stores += self._stores_along(sinks, part.roots, order)

    def _joined_below(
        self, nodes: list[int], level: int, kinds: tuple[Kind, ...] = JOINS
    ) -> int | None:
        """A concatenation that these are computed from, element by element, in one kernel."""
        placement = self.placement
        stack = list(nodes)
        seen = set(stack)
        while stack:
            node = stack.pop()
            if placement.stored[node] and placement.level[node] < level:
                continue
            if self.graph.kinds[node] in kinds and (
                node in placement.piecewise or node in placement.boxed
            ):
                return node
            new = [operand for operand in self.graph.inputs[node] if operand not in seen]
            seen.update(new)
            stack += new
        return None

    def _refusal(self, nodes: list[int], level: int) -> Straddles:
        """What makes something that these are computed from lie in memory, in the next attempt."""
        joined = self._joined_below(nodes, level)
        if joined is None:
            raise AssertionError("planner error: boxes without a joined array")
        return Straddles(joined, None, 0)

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
            if self.placement.is_read_as_view(node, operand):
                offset, strides = graph.params[operand]
                source = graph.inputs[operand][0]
            value = self.values.of(source)
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
            called="" if op.plain is op else op.called,
        )
        self.pending.append(Pending(self.placement.level[node], call))

    def prefill(self, node: int) -> list[Pending]:
        """Launches that bring the old contents of an UPDATE into its own memory.

        Only what the update does not write itself is copied, where that is a few boxes; of several
        writes made at once what the largest leaves, unless they leave nothing.
        """
        graph = self.graph
        old = self.placement.writes.base(node)
        regions = self.placement.writes.regions(node)
        level = self.placement.level[node]
        target = self.values.of_node[node]
        shape = graph.shapes[node]
        if sum([math.prod(region) for region, _, _ in regions]) == graph.sizes[node]:
            return []
        boxes = complement(shape, *max(regions, key=lambda region: math.prod(region[0])))
        emits = Emitter(self.placement, self.values, level, shape, Registers())
        if boxes is None:
            if emits.in_memory(old):
                return [Pending(level, Copy(self.values.of(old), target, graph.nbytes(node)))]
            boxes = [tuple([(0, extent) for extent in shape])]
        launches = []
        whole = Access(0, contiguous_strides(shape))
        for box in boxes:
            extents = tuple([stop - start for start, stop in box])
            access = inside(whole, box)
            emitter = Emitter(self.placement, self.values, level, extents, Registers())
            var = emitter.emit(old, access)
            store = Store(var, graph.dtypes[old], target, graph.dtypes[node], access)
            kernel = Kernel(MAP, extents, emitter.items, [store], boxed=len(boxes) > 1)
            launches.append(Pending(level, kernel))
        return launches
