"""Assignment of memory to the values of a plan: in-place writes, donation of dead buffers, slots.

A value may take over the bytes of another one when nothing reads those afterwards, and the launch
that writes reads them only at the very element that it writes. An update may also do so where other
reads are of other elements, or of few elements: see `war_reads`. Updates that cannot take over
their old contents get them copied first (`Lowering.prefill`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from clfuse.ir.layout import contiguous_strides
from clfuse.ir.nodes import ONCE, Kind
from clfuse.schedule.graph import Graph
from clfuse.schedule.lower.lowering import Lowering, Pending
from clfuse.schedule.records import (
    MUTATIONS,
    Access,
    Copy,
    Cut,
    Kernel,
    Launch,
    LibraryCall,
    Load,
    Pass,
    Prefix,
    Scatter,
    UserLaunch,
)
from clfuse.schedule.shape.geometry import stored_nbytes

from .war_reads import MOST_READS, Moved, clashing, moved_before

_WRITTEN_IN_PARTS = (Kind.UPDATE, Kind.CONCATENATE)
"""Several launches write these, so their bytes may not be an input of a later one before."""

WHOLE: Final = Access(0, ())
"""Where a kernel that stores at computed places finds what it changes: anywhere, but only where it
stores."""

Stored = tuple["Access | None", ...]
"""Where a launch stores to one array; None: anywhere in it."""


def reads_of(launch: Launch) -> list[tuple[int, Access | None]]:
    """(value, access) of everything a launch loads; access None: anywhere in it."""
    if isinstance(launch, Pass):
        return [(value, None) for value in launch.reads]
    if isinstance(launch, UserLaunch):
        return [(value, None) for value in launch.reads]
    if isinstance(launch, Copy):
        return [(launch.source, None)]
    if isinstance(launch, LibraryCall):
        reads: list[tuple[int, Access | None]] = [(o.value, None) for o in launch.operands]
        if launch.epilogue is not None:
            reads += [(v, None) for v, _ in reads_of(launch.epilogue) if v != launch.target]
        return reads
    found: list[tuple[int, Access | None]] = []
    for phase in launch.phases:
        found += [
            (item.value, _touched(item, launch)) for item in phase.body if isinstance(item, Load)
        ]
        found += [(item.value, None) for item in phase.epilogue if isinstance(item, Load)]
        found += [
            (item.partial, None)
            for item in phase.body
            if isinstance(item, Prefix) and item.partial is not None
        ]
    if launch.selection is not None:
        found.append((launch.selection.starts, None))
        if launch.selection.packed is not None:
            found.append((launch.selection.packed.value, None))
    if launch.scatter is not None:
        if launch.scatter.old is not None:
            found.append((launch.scatter.old, WHOLE))
        if launch.scatter.table is not None:
            found.append((launch.scatter.table, None))
    return found


def _touched(load: Load, kernel: Kernel) -> Access | None:
    """Where a kernel loads: for a gather anywhere, or where it stores, at the same places."""
    if load.position is None:
        return load.access
    scatter = kernel.scatter
    if scatter is None or scatter.how != "set" or load.value != scatter.old:
        return None
    if load.position != scatter.position:
        return None
    return WHOLE if load.access == kernel.stores[0].access else None


def writes_of(launch: Launch) -> list[int]:
    """The values that a launch stores to."""
    if isinstance(launch, Pass):
        return list(launch.writes)
    if isinstance(launch, UserLaunch):
        return [launch.buffers[slot] for slot in launch.written]
    if isinstance(launch, LibraryCall) and launch.epilogue is not None:
        return writes_of(launch.epilogue)
    if isinstance(launch, Copy | LibraryCall):
        return [launch.target]
    found = []
    for phase in launch.phases:
        found += [store.value for store in phase.stores + phase.results]
        for accumulator in phase.accumulators:
            if accumulator.partial is not None:
                found.append(accumulator.partial)
            if accumulator.partial_position is not None:
                found.append(accumulator.partial_position)
    return found


class Memory:
    """The pass and its result.

    launches: with the copies that updates needed
    takes_over: value -> value whose bytes it is written into
    """

    def __init__(self, lowering: Lowering) -> None:
        self.lowering = lowering
        self.graph: Graph = lowering.graph
        self.values = lowering.values
        self.takes_over: dict[int, int] = {}
        self._taken: set[int] = set()
        self._filled_from: defaultdict[int, set[int]] = defaultdict(set)
        """Value -> the launches before which others are filled from it."""
        self._borrowed: dict[int, list[tuple[int, int]]] = {}
        """Value -> (launch, older value in the same bytes that it still reads)."""
        self._readers: defaultdict[int, set[int]] = defaultdict(set)
        pending = lowering.pending
        for index, entry in enumerate(pending):
            for value, _ in reads_of(entry.launch):
                self._readers[value].add(index)
        self._writes = lowering.placement.writes
        self._kept = lowering.values_needed_later()
        before = self._before = defaultdict[int, list[Pending]](list)
        writers: dict[int, list[int]] = {}
        for index, entry in enumerate(pending):
            for node in entry.updates:
                writers.setdefault(node, []).append(index)
        # An update that cannot be in place reads its old contents just before it. Decisions about
        # those bytes depend on that, so this comes first.
        self._copies: defaultdict[int, dict[int, int]] = defaultdict(dict)
        for node, indices in writers.items():
            source = self.old_value(node)
            if source is None:
                before[indices[0]] += self._prefill(node, indices[0])
            else:
                self._copies[source][node] = indices[0]
        for node, indices in writers.items():
            source = self.old_value(node)
            if source is None:
                continue
            if (
                self._take_if_free(node, indices, source)
                or self._update_in_turn(node, indices)
                or self._take_if_free(node, indices, source, moves=True)
            ):
                del self._copies[source][node]
            else:
                before[indices[0]] += self._prefill(node, indices[0])
        for index, entry in enumerate(pending):
            if isinstance(entry.launch, UserLaunch):
                before[index] += self._write_in_place(index, entry.launch)
            elif isinstance(entry.launch, LibraryCall):
                self._mutate_in_place(index, entry.launch)
            elif isinstance(entry.launch, Kernel) and entry.launch.scatter is not None:
                before[index] += self._scatter_in_place(index, entry.launch, entry.launch.scatter)
            else:
                self._donate(index, entry.launch)
        self.launches: list[Launch] = []
        for index, entry in enumerate(pending):
            self.launches += [filling.launch for filling in before.get(index, ())]
            self.launches.append(entry.launch)

    def _needed_later(self, value: int) -> bool:
        buffer = self.values.buffer[value]
        if buffer is not None and self.graph.buffer_live.get(buffer):
            return True
        return value in self._kept

    def _prefill(self, node: int, index: int) -> list[Pending]:
        filling = self.lowering.prefill(node)
        nbytes = sum(writing.launch.nbytes if isinstance(writing.launch, Copy) else
                     stored_nbytes(writing.launch.stores, writing.launch.extents)
                     for writing in filling if isinstance(writing.launch, Copy | Kernel))
        if nbytes:
            graph = self.graph
            label, region = graph.label(node), graph.label(graph.inputs[node][1])
            old = graph.label(self._writes.base(node))
            self.lowering.placement.cuts.append(
                Cut(
                    f"{label}, outside of {region}",
                    f"copied from {old}, which somebody still reads or which is computed here",
                    nbytes,
                )
            )
        for launch in filling:
            for value, _ in reads_of(launch.launch):
                self._filled_from[value].add(index)
        return filling

    def old_value(self, node: int) -> int | None:
        """The value that an update's old contents lie in, None where they are computed instead."""
        if self.lowering.placement.is_filled(node):
            return None
        old = self._writes.base(node)
        is_leaf = self.graph.kinds[old] is Kind.LEAF
        return self.values.leaf(old) if is_leaf else self.values.of_node[old]

    def _free_after(self, value: int, stores: Mapping[int, Stored]) -> bool:
        """Whether `value` may be overwritten by these launches (number -> accesses of its stores).

        They may read it too, but only at the very elements that they write.
        """
        return self._reads_after(value, stores) == []

    def _reads_after(
        self, value: int, stores: Mapping[int, Stored], update: int = -1
    ) -> list[tuple[int, int]] | None:
        """The launches that read the bytes of `value` after these have written there, and which
        value they read; None where the bytes are not theirs to write to, or many do."""
        if self._needed_later(value) or value in self._taken:
            return None
        first = min(stores)
        for node, index in self._copies[value].items():
            if node != update and index >= first:
                return None
        if any(index > first for index in self._filled_from[value]):
            return None
        found = [each for each in self._borrowed.get(value, ()) if each[0] >= first]
        for reader in self._readers[value]:
            if reader < first:
                continue
            if reader in stores:
                launch = self.lowering.pending[reader].launch
                where = stores[reader]
                if all(at in where for read, at in reads_of(launch) if read == value):
                    continue
            found.append((reader, value))
            if len(found) > MOST_READS:
                return None
        return found

    def _update_in_turn(self, node: int, writers: list[int]) -> bool:
        """Let an update take over the bytes of the array that its old contents were updated from.

        As in a loop of ``a[1:-1] = f(a)``, which reads neighbours: two buffers take turns. What
        lies outside the region is the same in both from the first turn on: nothing is copied.
        """
        graph = self.graph
        old = self._writes.base(node)
        if graph.kinds[old] is not Kind.UPDATE or not self.lowering.is_written_in_place(old):
            return False
        earlier = self._writes.base(old)
        if self._writes.regions(old) != self._writes.regions(node):
            return False
        if graph.dtypes[earlier] is not graph.dtypes[node]:
            return False
        source = self.old_value(old)
        if source is None or self.takes_over.get(self.values.of_node[old]) == source:
            return False
        return self._take_if_free(node, writers, source)

    def _take_if_free(
        self, node: int, writers: list[int], source: int, *, moves: bool = False
    ) -> bool:
        """Write an update into the bytes of `source`, if nothing reads them afterwards, or only
        elsewhere; with `moves`, if what is read there can be copied before."""
        target = self.values.of_node[node]
        nbytes = self.values.nbytes[source]
        if nbytes != self.values.nbytes[target]:
            return False
        stores: dict[int, tuple[Access, ...]] = {}
        for index in writers:
            launch = self.lowering.pending[index].launch
            assert isinstance(launch, Kernel)
            # Another tile may need what a tile has read where it writes.
            stores[index] = () if launch.kind.by_tiles else tuple(
                [
                    store.access
                    for phase in launch.phases
                    for store in phase.stores
                    if store.value == target
                ]
            )
        reads = self._reads_after(source, stores, node)
        if reads is None:
            return False
        graph = self.graph
        regions = self._writes.regions(node)
        itemsize = graph.dtypes[node].itemsize
        moved: list[Moved] = []
        late = []
        for index, value in reads:
            launch = self.lowering.pending[index].launch
            found = clashing(index, launch, value, regions, itemsize, stores.get(index, ()))
            if found is None or (found[0] and not moves):
                return False
            moved += found[0]
            if found[1]:
                late.append((index, value))
        if moved:
            kernels = moved_before(moved, nbytes, self.values)
            if not kernels:
                return False
            level = self.lowering.pending[min(stores)].level
            self._before[min(stores)] += [Pending(level, kernel) for kernel in kernels]
            for each in moved:
                load = each.items[each.place]
                assert isinstance(load, Load)
                self._readers[load.value].add(each.launch)
        self._take(target, source)
        self._borrowed[target] = late
        return True

    def _mutate_in_place(self, index: int, call: LibraryCall) -> None:
        """Let a library call change its first operand itself, where that dies with the call."""
        if call.name not in MUTATIONS or not call.operands or 0 in dict(call.scalars):
            return
        if call.name in ONCE and not self.lowering.traits.unified_memory:
            return
        old = call.operands[0]
        whole = old.offset == 0 and old.strides == contiguous_strides(old.shape)
        if (
            whole
            and self.values.nbytes[old.value] == self.values.nbytes[call.target]
            and self._free_after(old.value, {index: (None,)})
        ):
            self._take(call.target, old.value)

    def _scatter_in_place(self, index: int, kernel: Kernel, scatter: Scatter) -> list[Pending]:
        """Let a kernel store at computed places of its array itself; of a copy, where somebody else
        still needs the array, or where the kernel reads other elements of it."""
        old, (store,) = scatter.old, kernel.stores
        if old is None or old == store.value:
            return []
        nbytes = self.values.nbytes[store.value]
        if self.values.nbytes[old] == nbytes and self._free_after(old, {index: (WHOLE,)}):
            self._take(store.value, old)
            return []
        self.lowering.placement.cuts.append(
            Cut(
                f"an array of {nbytes} bytes that is stored to at computed places",
                "copied first: somebody still reads it as it was",
                nbytes,
            )
        )
        kernel.scatter = replace(scatter, old=store.value)
        return [Pending(self.lowering.pending[index].level, Copy(old, store.value, nbytes))]

    def _write_in_place(self, index: int, launch: UserLaunch) -> list[Pending]:
        """Let a user's kernel write into the old bytes of its arrays; copies of those that are
        still needed, or that it also reads as they were."""
        copies = []
        kept = {old for slot, old in enumerate(launch.olds) if slot not in launch.written}
        for slot in launch.written:
            old, target = launch.olds[slot], launch.buffers[slot]
            if old is None or old == target:
                continue
            same_size = self.values.nbytes[old] == self.values.nbytes[target]
            if old not in kept and same_size and self._free_after(old, {index: (None,)}):
                self._take(target, old)
                continue
            nbytes = self.values.nbytes[target]
            self.lowering.placement.cuts.append(
                Cut(
                    f"an array of {nbytes} bytes that {launch.spec.name} writes to",
                    "copied first: somebody still reads it as it was",
                    nbytes,
                )
            )
            copies.append(Pending(self.lowering.pending[index].level, Copy(old, target, nbytes)))
            launch.olds[slot] = target
        return copies

    def _donate(self, index: int, launch: Launch) -> None:
        """Write results over inputs that die in this launch, where reads and writes coincide."""
        if not isinstance(launch, Kernel) or launch.boxed or launch.kind.by_tiles:
            return
        if launch.kind.stores_elsewhere and not launch.then:
            return
        phases = launch.phases
        for number, phase in enumerate(phases):
            later = {
                item.value
                for other in phases[number + 1 :]
                for item in other.body
                if isinstance(item, Load)
            }
            self._donate_phase(index, phase, later)

    def _donate_phase(self, index: int, phase: Kernel, later: set[int]) -> None:
        """The same for one phase of a launch; values that `later` phases read stay."""
        loads = {
            item.value: item.dtype
            for item in phase.body
            if isinstance(item, Load) and item.value not in later
        }
        for store in phase.stores:
            owner = self.values.node[store.value]
            if store.value in self.takes_over or (
                owner is not None and self.graph.kinds[owner] in _WRITTEN_IN_PARTS
            ):
                continue
            for value, dtype in loads.items():
                if (
                    dtype == store.dtype
                    and self.values.nbytes[value] == self.values.nbytes[store.value]
                    and self._free_after(value, {index: (store.access,)})
                ):
                    self._take(store.value, value)
                    break

    def _take(self, target: int, source: int) -> None:
        self.takes_over[target] = source
        self._taken.add(source)


def slots_of(
    launches: list[Launch],
    nbytes: list[int],
    buffers: list[int | None],
    takes_over: dict[int, int],
    kept: set[int],
    dead_buffers: set[int],
) -> tuple[list[int | None], list[int], dict[int, int]]:
    """Number the allocations: values with disjoint lives share one.

    `dead_buffers` are graph buffers that are free after the plan: once read for the last time,
    their memory is as free as a temporary's.

    Returns
    -------
    (slot of each value or None, bytes of each slot, slot -> graph buffer that it takes over)
    """
    last: dict[int, int] = {}
    root: dict[int, int] = {}
    for value in range(len(nbytes)):
        source = value
        while source in takes_over:
            source = takes_over[source]
            source = root.get(source, source)  # long chains are walked once
        root[value] = source
    for index, launch in enumerate(launches):
        for value in [value for value, _ in reads_of(launch)] + writes_of(launch):
            last[root[value]] = index
    keep_roots = {root[value] for value in kept}
    slots: list[int | None] = [None] * len(nbytes)
    sizes: list[int] = []
    reuses: dict[int, int] = {}
    free: defaultdict[int, list[int]] = defaultdict(list)
    slot_of_root: dict[int, int] = {}
    ending: defaultdict[int, list[int]] = defaultdict(list)
    for value, index in last.items():
        if value not in keep_roots and (buffers[value] is None or buffers[value] in dead_buffers):
            ending[index].append(value)
    for index, launch in enumerate(launches):
        for value in writes_of(launch):
            source = root[value]
            if source not in slot_of_root:
                buffer = buffers[source]
                size = nbytes[source]
                if buffer is None and free[size]:
                    slot_of_root[source] = free[size].pop()
                else:
                    slot_of_root[source] = len(sizes)
                    sizes.append(size)
                    if buffer is not None:
                        reuses[slot_of_root[source]] = buffer
            slots[value] = slot_of_root[source]
        for value in ending[index]:
            buffer = buffers[value]
            if value not in slot_of_root and buffer is not None:
                slot_of_root[value] = len(sizes)
                reuses[slot_of_root[value]] = buffer
                sizes.append(nbytes[value])
            if value in slot_of_root:
                free[nbytes[value]].append(slot_of_root[value])
    return slots, sizes, reuses
