"""Placement: which values are stored in memory, and at which level the kernels run that store them.

Every node gets a *level*: kernels of one level are independent of each other, and read from memory
only what lower levels stored. A node that is not stored is computed wherever it is read. The pass
visits each node once, so planning stays linear.

    level 0:  y = (x - 0.5)**2        inline: read element by element by the sum
              s = y.sum()             stored by a reduction of level 0
    level 1:  z = y / s               y again (cheap), or loaded if it was worth storing

Reductions *carry* what follows them element by element on their kept axes in the same kernel (the
epilogue); such nodes have a `carrier`. Anything that reads a carried value in another way (spread
over the reduced axis again, say) waits one level. Scans carry what follows them element by element
on all axes.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from clfuse.ir.layout import Side, contiguous_strides, delinearize
from clfuse.ir.nodes import TRANSFORM, Kind
from clfuse.schedule import cost
from clfuse.schedule.graph import Graph
from clfuse.schedule.kinds import is_sequential
from clfuse.schedule.records import Cut
from clfuse.schedule.rewrite.forwarding import just_written
from clfuse.schedule.rewrite.joint_writes import JointWrites
from clfuse.schedule.rounds import most_steps
from clfuse.target.traits import DeviceTraits

from .directions import is_read_across
from .held_values import HeldValues
from .parameters import Parameters, Taken
from .places import operands_at_places, scattered_nodes
from .readers import (
    boxes_written,
    elements_written_out,
    has_same_order,
    read_element_wise,
    squeezed,
)
from .recomputing import Recomputing
from .repeated_reads import RepeatedReads

Carrier = tuple[int, tuple[int, ...], tuple[int, ...], tuple[bool, int]]
"""(level, shape that is reduced, axes, (whether a scan, group)): what shares one kernel."""

_OPERATIONS = (Kind.MAP, Kind.GATHER, Kind.REDUCE, Kind.ARGREDUCE, Kind.SCAN)
"""What is a kernel each without fusion."""


class Placement:
    """The pass and its result.

    Attributes
    ----------
    level : list of int; a leaf has -1
    stored : list of bool
    carrier : list of Carrier or None
    cuts : list of Cut, why values that were not requested are stored
    unrolled : set of int, short folds that are computed element by element
    forwarded : dict, views of what was just written -> that value: kernels of the write's own level
        have it at hand
    refused : frozenset of int, concatenations and reshapes that could not be read in place
    boxed : dict, writes to boxes of arrays that are computed along with what was there -> the box;
        all others (`in_place` among them) are made where the array lies
    piecewise : set of int, concatenations and such writes that need no memory
    scattered : set of int, library operations that kernels make
    """

    def __init__(
        self,
        graph: Graph,
        traits: DeviceTraits,
        *,
        fuse: bool = True,
        refused: frozenset[int] = frozenset(),
        in_place: frozenset[int] = frozenset(),
    ) -> None:
        self.graph = graph
        self.cost = cost.Cost(traits, most_steps(graph, traits))
        self.scattered = scattered_nodes(graph, traits)
        self.refused = refused
        self.fuse = fuse
        count = len(graph)
        self.level = [0] * count
        self.stored = [False] * count
        self.sealed = [False] * count
        self.carrier: list[Carrier | None] = [None] * count
        self.weight = [0.0] * count
        self.loaded = [0.0] * count
        self.linear = [False] * count
        self._held = HeldValues(graph, self.cost, self.stored, self.weight, self.loaded)
        self.cuts: list[Cut] = []
        self._reads = RepeatedReads(graph, self.cost, self.weight, self.loaded)
        self.boxed: dict[int, tuple[Side, ...]] = {}
        self.piecewise: set[int] = set()
        self.refining: set[int] = set()
        if fuse:
            self.boxed = boxes_written(graph)
            for node in in_place:
                self.boxed.pop(node, None)
            self.piecewise, self.refining = read_element_wise(graph, refused, self.boxed)
        self.unrolled: set[int] = set()
        self.writes = JointWrites(graph)
        self._just_written = just_written(graph) if fuse else {}
        self.forwarded: dict[int, int] = {}
        self._taken: defaultdict[Any, Taken] = defaultdict(Taken)
        self._parameters = Parameters(graph, self.sealed, self.cost)
        self._again = Recomputing(graph, self.cost, self.level, self.stored)
        visit = {
            Kind.LEAF: self._leaf,
            Kind.CONSTANT: self._source,
            Kind.IOTA: self._source,
            Kind.MAP: self._map,
            Kind.VIEW: self._view,
            Kind.REDUCE: self._reduce,
            Kind.ARGREDUCE: self._reduce,
            Kind.SCAN: self._reduce,
            Kind.UPDATE: self._update,
            Kind.CONCATENATE: self._concatenate,
            Kind.LIBRARY: self._library,
            Kind.GATHER: self._gather,
            Kind.COUNTS: self._at_places,
            Kind.COMPACT: self._at_places,
            Kind.EXPAND: self._at_places,
            Kind.LAUNCH: self._launch,
            Kind.PART: self._part,
        }
        for node in range(count):
            visit[graph.kinds[node]](node)
            self._keep(node)
            if not fuse and self.stored[node] and graph.kinds[node] is not Kind.VIEW:
                self.sealed[node] = True

    def _keep(self, node: int) -> None:
        """Store what was requested, and what is worth keeping because an array holds it."""
        if self.graph.requested[node]:
            self.stored[node] = True
        elif not self.fuse and self.graph.kinds[node] in _OPERATIONS:
            self._store(node, "every operation is a kernel of its own: fusion is off")
        elif not self.stored[node]:
            reason = self._held.reason_to_store(node)
            if reason:
                self._store(node, reason)
        self._held.note(node)

    def _store(self, node: int, reason: str) -> None:
        if not self.stored[node] and not self.sealed[node]:
            self.stored[node] = True
            self.cuts.append(Cut(self.graph.label(node), reason, self.graph.nbytes(node), node))

    def after(self, node: int, reason: str) -> int:
        """The first level that can load `node` from memory, storing it if it was not."""
        self._store(node, reason)
        self._again.load(node, self.level[node] + 1)
        return self.level[node] + 1

    def _leaf(self, node: int) -> None:
        self.level[node] = -1
        self.stored[node] = self.sealed[node] = self.linear[node] = True
        self.loaded[node] = self.graph.dtypes[node].itemsize

    def _source(self, node: int) -> None:
        self.linear[node] = True
        self.weight[node] = 0.0 if self.graph.kinds[node] is Kind.CONSTANT else 1.0

    def _map(self, node: int) -> None:
        op = self.graph.ops[node]
        assert op is not None
        self._element_wise(node, self.graph.inputs[node], 0, op.weight, 0.0)

    def _gather(self, node: int) -> None:
        """The source lies in memory; positions are computed, and the result is read, as any
        element-wise value."""
        graph = self.graph
        source, position = graph.inputs[node]
        if self.sealed[source]:
            level = self.level[source] + 1
        else:
            level = self.after(source, "read at computed positions")
        nbytes = graph.dtypes[node].itemsize
        self._element_wise(node, (position,), level, self.cost.gather_weight, nbytes, (source,))
        if any(graph.params[node][1]):
            self.linear[node] = False

    def _element_wise(
        self,
        node: int,
        operands: tuple[int, ...],
        level: int,
        weight: float,
        loaded: float,
        buffers: tuple[int, ...] = (),
    ) -> None:
        """Place what is computed element by element from `operands`, at `level` or above.

        `weight` and `loaded` are the operation's own; `buffers` are loaded beside the operands.
        """
        graph = self.graph
        shape = graph.shapes[node]
        carriers: list[int] = []
        for operand in operands:
            if self.sealed[operand]:
                need = self.level[operand] + 1
            elif self.carrier[operand] is not None:
                if has_same_order(graph, node, operand):
                    carriers.append(operand)
                    need = self.level[operand]
                else:
                    need = self.after(operand, "a reduction's result is read by every element")
            elif graph.shapes[operand] != shape and self._reads.call_for_memory(operand):
                need = self.after(operand, f"broadcast, {self._reads.reason(operand)}")
            else:
                need = self.level[operand]
            level = max(level, need)
        carrier = None
        why = ""
        for operand in carriers:
            if self.level[operand] == level:
                if carrier is None:
                    carrier = self.carrier[operand]
                elif carrier != self.carrier[operand]:
                    why = "beside the result of another loop"
                    level += 1
                    carrier = None
                    break
        key: Any = (level, shape if carrier is None else carrier)
        taken = self._taken[key]
        while refusal := self._take(taken, operands, buffers):
            why = refusal
            level += 1
            carrier = None
            taken = self._taken[level, shape]
        taken.steps += 1
        self.level[node] = level
        for operand in operands:
            if self.level[operand] < level and not self.sealed[operand]:
                self._keep_or_recompute(operand, node, why)
            in_memory = self.stored[operand] or operand in self.forwarded
            if in_memory and self.level[operand] < level:
                loaded += graph.dtypes[operand].itemsize * min(
                    1.0, graph.sizes[operand] / max(graph.sizes[node], 1)
                )
            else:
                weight += self.weight[operand]
                loaded += self.loaded[operand]
        self.carrier[node] = carrier
        self.weight[node] = min(weight, 1e12)
        self.loaded[node] = min(loaded, 1e12)
        self.linear[node] = all(
            graph.sizes[operand] == 1
            or (graph.shapes[operand] == shape and (self.linear[operand] or self.sealed[operand]))
            for operand in operands
        )

    def _take(self, taken: Taken, operands: tuple[int, ...], buffers: tuple[int, ...]) -> str:
        """Note the arguments of one operation more, or say why a kernel cannot take it."""
        if taken.steps >= self.cost.max_steps:
            return f"a kernel has {self.cost.max_steps} operations at most"
        return self._parameters.take(taken, operands, buffers)

    def _keep_or_recompute(self, operand: int, reader: int, why: str = "") -> None:
        """`operand` could have been computed at a lower level than its reader: store it there?

        `why` is what has put the reader on another level, if not its operands.
        """
        graph = self.graph
        if self.stored[operand] or graph.kinds[operand] in (Kind.CONSTANT, Kind.IOTA):
            return
        if graph.kinds[operand] is Kind.VIEW and not self.carrier[operand]:
            source = graph.inputs[operand][0]
            if self.sealed[source] or graph.kinds[source] in (Kind.CONSTANT, Kind.IOTA):
                return
            if self.stored[source] and self.level[source] < self.level[reader]:
                return
        costs = self.weight[operand], self.loaded[operand], graph.dtypes[operand].itemsize
        if self.carrier[operand] is not None:
            what = "a reduction's result is needed by a later kernel"
            self._store(operand, f"{what}, for {graph.label(reader)}" + (why and f": {why}"))
        elif self.cost.stores(*costs) and self._is_costly(operand, reader, moves=not why):
            why = why and f"{why}; "
            self._store(
                operand,
                f"read by a later kernel, for {graph.label(reader)}: {why}"
                f"{self.cost.reason(*costs)}",
            )

    def _is_costly(self, operand: int, reader: int, *, moves: bool) -> bool:
        """Whether `operand` should be stored for `reader`; `moves`: if not, it may be computed
        there alone, with all that leads to it."""
        level = self.level[reader]
        again = self._again
        costly = again.is_costly(operand, level, moves=moves)
        if costly and moves and self._store_viewed(operand, level):
            costly = again.is_costly(operand, level, moves=True)
        if not costly:
            self._taken[level, self.graph.shapes[reader]].steps += again.moved
        return costly

    def _store_viewed(self, operand: int, level: int) -> bool:
        """Store what `operand` and others are views of, or computed from views of, in its place.

        Each of several views would go through memory, else, though they overlap.
        """
        graph = self.graph
        room = cost.VIEWED_SIZE * graph.sizes[operand]
        before = len(self.cuts)
        for source in self._again.viewed(operand, self._reads.views):
            costs = self.weight[source], self.loaded[source], graph.dtypes[source].itemsize
            if (
                self.carrier[source] is None
                and self.level[source] < level
                and graph.sizes[source] <= room
                and self.cost.stores(*costs)
            ):
                what = f"read through {self._reads.views[source]} views, by later kernels too"
                self._store(source, f"{what}: {self.cost.reason(*costs)}")
                self._again.load(source, level)
        return len(self.cuts) > before

    def _view(self, node: int) -> None:
        graph = self.graph
        (operand,) = graph.inputs[node]
        offset, strides = graph.params[node]
        shape = graph.shapes[node]
        same_order = has_same_order(graph, node, operand)
        if self.sealed[operand]:
            self.level[node] = self.level[operand] + 1
            self.loaded[node] = graph.dtypes[node].itemsize
            self.linear[node] = (offset == 0 and same_order) or strides == contiguous_strides(shape)
            value = self._just_written.get(node)
            if value is not None and self.carrier[value] is None:
                self.forwarded[node] = value
                self.level[node] -= 1
                self.weight[node], self.loaded[node] = self.weight[value], self.loaded[value]
                self.linear[node] = self.linear[node] and self.linear[value]
            return
        carrier = self.carrier[operand]
        if carrier is not None:
            # A reshape into other axes is carried no further: what broadcasts to its axes could
            # not be read from the carrier's.
            if same_order and squeezed(shape) == squeezed(graph.shapes[operand]):
                self.level[node] = self.level[operand]
                self.carrier[node] = carrier
                self.weight[node] = self.weight[operand]
            else:
                self.level[node] = self.after(
                    operand, "a reduction's result is read in another order"
                )
                self.loaded[node] = graph.dtypes[node].itemsize
            return
        if graph.kinds[operand] is Kind.CONSTANT:
            self.linear[node] = True
            return
        possible = (
            self.linear[operand]
            or node in self.refining
            or delinearize(graph.shapes[operand], shape, offset, strides) is not None
        )
        if not possible:
            self.level[node] = self.after(operand, "reshaped across axes that do not merge")
        elif self._reads.call_for_memory(operand):
            reason = self._reads.reason(operand)
            self.level[node] = self.after(operand, f"read at several places, {reason}")
        elif self._reads.make_kernels_grow(operand):
            views, weight = self._reads.views[operand], self.weight[operand]
            reason = f"read through {views} views, each would compute {weight:.0f} operations"
            self.level[node] = self.after(operand, reason)
        else:
            self.level[node] = self.level[operand]
            self.weight[node] = self.weight[operand] + 0.5
            self.loaded[node] = self.loaded[operand]
            self.linear[node] = self.linear[operand] and strides == contiguous_strides(shape)
            return
        self.loaded[node] = graph.dtypes[node].itemsize
        self.linear[node] = strides == contiguous_strides(shape)

    def _reduce(self, node: int) -> None:
        graph = self.graph
        (operand,) = graph.inputs[node]
        weight = 0.0 if self.sealed[operand] else self.weight[operand]
        count = elements_written_out(graph, node, weight, self.cost) if self.fuse else 0
        if count:
            self.unrolled.add(node)
            self._map(node)
            self.weight[node] *= count
            self.loaded[node] *= count
            self._taken[self.level[node], graph.shapes[node]].steps += int(self.weight[node])
            return
        if self.sealed[operand]:
            level = self.level[operand] + 1
        elif self.carrier[operand] is not None:
            level = self.after(operand, "a reduction of a reduction's result")
        else:
            level = self.level[operand]
        self.level[node] = level
        group = 0 if self.fuse else node
        is_scan = graph.kinds[node] is Kind.SCAN
        if is_scan and self.fuse:
            op = graph.ops[node]
            assert op is not None
            group = int(is_sequential(op.name, graph.dtypes[node]))
        elif self.fuse and is_read_across(graph, node, self.stored, self.linear):
            group = 1
        self.carrier[node] = (level, graph.shapes[operand], graph.params[node], (is_scan, group))
        self.weight[node] = 1e12

    def _inline_level(self, operand: int, reason: str) -> int:
        """The level at which something that goes to memory can read `operand`."""
        if self.sealed[operand]:
            return self.level[operand] + 1
        if self.carrier[operand] is not None:
            return self.after(operand, reason)
        return self.level[operand]

    def _update(self, node: int) -> None:
        old, value = self.graph.inputs[node]
        level = self._inline_level(value, "written into a part of another array")
        if self._is_made_with_old(node, level):
            self._make_with_old(node)
            return
        level = max(level, self._inline_level(old, "written to afterwards"))
        self.level[node] = level
        for operand in (old, value):
            if self.level[operand] < level and not self.sealed[operand]:
                self._keep_or_recompute(operand, node)
        if node not in self.boxed or self.stored[old]:
            self.boxed.pop(node, None)
            self.piecewise.discard(node)
            reason = "a part of an array is written where the array lies"
            self._in_memory(node, level, reason)
            return
        if node not in self.piecewise:
            reason = "joined in memory with what was there: what reads it does not go part by part"
            self._in_memory(node, level, reason)
            return
        self.weight[node] = 0.5 + max(self.weight[old], self.weight[value])
        self.loaded[node] = max(self.loaded[old], self.loaded[value])

    def _is_made_with_old(self, node: int, level: int) -> bool:
        """Whether an update, whose value is there at `level`, is made together with the one before.
        """
        old, _ = self.graph.inputs[node]
        return (
            self.fuse
            and self.sealed[old]
            and level <= self.level[old]
            and self.writes.can_join(node)
        )

    def _make_with_old(self, node: int) -> None:
        old, value = self.graph.inputs[node]
        level = self.level[node] = self.level[old]
        if self.level[value] < level and not self.sealed[value]:
            self._keep_or_recompute(value, node)
        self.writes.join(node)
        self.boxed.pop(node, None)
        self.piecewise.discard(node)
        self.stored[old] = False
        self._held.replace(old, self.writes.base(node))
        for position in reversed(range(len(self.cuts))):
            if self.cuts[position].node == old:
                del self.cuts[position]
                break
        self._in_memory(node, level, "parts of an array are written where the array lies")

    def _at_places(self, node: int) -> None:
        """Elements that a mask or computed places select, with what computes them."""
        operands, reason = operands_at_places(self.graph, self.sealed, node)
        level = 0
        for operand, why, stored in operands:
            inline = self.sealed[operand] or not stored
            above = self._inline_level(operand, why) if inline else self.after(operand, why)
            level = max(level, above)
        self.level[node] = level
        for operand, _, stored in operands:
            if not stored and self.level[operand] < level and not self.sealed[operand]:
                self._keep_or_recompute(operand, node)
        self._in_memory(node, level, reason)

    def _concatenate(self, node: int) -> None:
        operands = self.graph.inputs[node]
        level = max(self._inline_level(operand, "joined with others") for operand in operands)
        self.level[node] = level
        for operand in operands:
            if self.level[operand] < level and not self.sealed[operand]:
                self._keep_or_recompute(operand, node)
        if node not in self.piecewise:
            reason = "joined in memory: what reads it does not go part by part"
            if node in self.refused:
                reason = "joined in memory: its parts do not fit into few boxes of what reads it"
            self._in_memory(node, level, reason)
            return
        self.weight[node] = 0.5 + max(self.weight[operand] for operand in operands)
        self.loaded[node] = max(self.loaded[operand] for operand in operands)

    def _library(self, node: int) -> None:
        if node in self.scattered:
            self._at_places(node)
            return
        level = 0
        for operand in self.graph.inputs[node]:
            if self.graph.kinds[operand] is Kind.CONSTANT:
                continue
            if self.sealed[operand]:
                level = max(level, self.level[operand] + 1)
            elif self.is_read_as_view(node, operand):
                level = max(level, self.level[operand])
            else:
                level = max(level, self.after(operand, "an operand of a library call"))
        self._in_memory(node, level, "the result of a library call")

    def _launch(self, node: int) -> None:
        level = 0
        reason = f"an array of the kernel {self.graph.params[node].name}"
        for operand in self.graph.inputs[node]:
            if self.graph.kinds[operand] is not Kind.CONSTANT:
                sealed = self.sealed[operand]
                above = self.level[operand] + 1 if sealed else self.after(operand, reason)
                level = max(level, above)
        self.level[node] = level
        self.sealed[node] = True

    def _part(self, node: int) -> None:
        (launch,) = self.graph.inputs[node]
        name = self.graph.params[launch].name
        self._in_memory(node, self.level[launch], f"written by the kernel {name}")

    def is_view_of_memory(self, node: int) -> bool:
        """Whether `node` is a view of a value that lies in memory in any case."""
        return self.graph.kinds[node] is Kind.VIEW and self.sealed[self.graph.inputs[node][0]]

    def is_filled(self, update: int) -> bool:
        """Whether an update's old contents are computed into its array: they lie nowhere then."""
        base = self.writes.base(update)
        return self.graph.kinds[base] is not Kind.LEAF and not (
            self.stored[base] and self.level[base] < self.level[update]
        )

    def is_read_as_view(self, node: int, operand: int) -> bool:
        """Whether a library call reads an operand where a view says: not all take strides."""
        op = self.graph.ops[node]
        return (op is None or op.name != TRANSFORM) and self.is_view_of_memory(operand)

    def _in_memory(self, node: int, level: int, reason: str) -> None:
        self.level[node] = level
        if not self.graph.requested[node]:
            self._store(node, reason)
        self.stored[node] = self.sealed[node] = True
        self.loaded[node] = self.graph.dtypes[node].itemsize
