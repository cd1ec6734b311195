"""Row fusion: launches that walk the same rows become phases of one kernel.

    softmax of rows:   max of the row  ->  exp(a - max), stored, and its sum  ->  divided

As kernels of their own each of these reads the whole array from memory. As phases of one kernel,
run row by row, only the first does: the row is still in the cache when the next begins, and a
row's results are registers. That takes enough rows to share among the device's units; long rows
in small numbers are better split, so they stay separate kernels of two stages. Where a later phase
reads what another kernel makes meanwhile, the first ones wait for that.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from clfuse.ir.nodes import Kind
from clfuse.schedule import cost
from clfuse.schedule.lower.lowering import Lowering, Pending
from clfuse.schedule.memory.buffers import reads_of, writes_of
from clfuse.schedule.records import (
    Access,
    Carried,
    Cut,
    Index,
    Item,
    Kernel,
    Load,
    Step,
    Store,
    UserLaunch,
)
from clfuse.schedule.shape.strips import independent_units
from clfuse.target.traits import DeviceTraits

ROWS_PER_UNIT: Final = 4
"""Rows for every compute unit that make sharing whole rows as good as splitting them."""


def join_rows(lowering: Lowering, traits: DeviceTraits) -> None:
    """Turn launches that follow a reduction over the same rows into its phases, in place."""
    Rows(lowering, traits).join()


def contents_before(lowering: Lowering, update: int) -> list[int]:
    """The values that an update's old contents lie in or are made of.

    No launch loads them yet: `memory.buffers` lets the update write into them, or copies them
    first.
    """
    graph, placement = lowering.graph, lowering.placement
    found = []
    stack = [placement.writes.base(update)]
    seen = set(stack)
    while stack:
        node = stack.pop()
        if graph.kinds[node] is Kind.LEAF:
            continue
        if placement.stored[node] and placement.level[node] < placement.level[update]:
            found.append(lowering.values.of_node[node])
            continue
        new = [operand for operand in graph.inputs[node] if operand not in seen]
        seen.update(new)
        stack += new
    return found


class Rows:
    """The pass: who writes and reads every value, and the launches that were joined."""

    def __init__(self, lowering: Lowering, traits: DeviceTraits) -> None:
        self.lowering = lowering
        self.traits = traits
        self.readers: defaultdict[int, list[int]] = defaultdict(list)
        self.written_at: dict[int, int] = {}
        self.base_of: dict[int, int] = {}
        self.delayed_to: dict[int, int] = {}
        for number, entry in enumerate(lowering.pending):
            read = [value for value, _ in reads_of(entry.launch)]
            for node in entry.updates:
                read += contents_before(lowering, node)
            for value in dict.fromkeys(read):
                self.readers[value].append(number)
            for value in writes_of(entry.launch):
                self.written_at[value] = max(number, self.written_at.get(value, -1))
        self.nodes_of: defaultdict[int, list[int]] = defaultdict(list)
        for node, value in lowering.values.of_node.items():
            self.nodes_of[value].append(node)

    def join(self) -> None:
        """Join what can be joined and drop row results that are no longer needed in memory."""
        pending = self.lowering.pending
        for number, entry in enumerate(pending):
            launch = entry.launch
            if number not in self.base_of and isinstance(launch, Kernel) and launch.accumulators:
                self._extend(number, entry, launch)
        left = [number for number in range(len(pending)) if number not in self.base_of]
        left.sort(key=lambda number: self.delayed_to.get(number, number))
        self.lowering.pending = [pending[number] for number in left]

    def _extend(self, number: int, entry: Pending, base: Kernel) -> None:
        """Append phases to `base` as long as one that reads its results suits."""
        suits: bool | None = None
        candidates = self._readers_of(base, number)
        tried = set(candidates)
        while candidates:
            candidate = candidates.pop(0)
            place = self.delayed_to.get(number, number)
            phase = self._as_phase(place, entry, base, self.lowering.pending[candidate])
            if phase is None and self._may_wait(base, number, candidate):
                place = candidate
                phase = self._as_phase(place, entry, base, self.lowering.pending[candidate])
            if phase is None:
                continue
            if suits is None:
                suits = self._has_rows_enough(base)
            if not suits:
                return
            base.then.append(phase)
            self.base_of[candidate] = number
            if place > number:
                self.delayed_to[number] = place
                entry.level = self.lowering.pending[candidate].level
            for written in base.phases:
                for value in writes_of(written):
                    self.written_at[value] = place
            new = [reader for reader in self._readers_of(phase, number) if reader not in tried]
            tried.update(new)
            candidates = sorted(candidates + new)
        if base.then:
            self._drop_results(number, base)

    def _may_wait(self, base: Kernel, number: int, candidate: int) -> bool:
        """Whether `base` may run in the place of a launch that reads it: all who read its results
        come later, and nothing is written over what it reads until then.

        ``u - u.mean(0) - u.mean(1)[:, None]``: the means of the rows wait for those of the columns.
        They do so where the arrays come from memory: from the third-level cache, one pass more
        took no longer (2000 x 2000), or less (by up to a fifth, float32), while of 5000 x 5000
        float64 it took a quarter more processor time (both runtimes, EPYC).
        """
        nbytes = self.lowering.values.nbytes
        launch = self.lowering.pending[candidate].launch
        touched = {value for value, _ in reads_of(launch)}.union(writes_of(launch))
        if sum(nbytes[value] for value in touched) < self.traits.stream_nbytes:
            return False
        written = {value for phase in base.phases for value in writes_of(phase)}
        for value in written:
            for reader in self.readers[value]:
                runs_in = self.base_of.get(reader, reader)
                place = self.delayed_to.get(runs_in, runs_in)
                if runs_in != number and reader != candidate and place < candidate:
                    return False
        return not any(
            entry.updates or isinstance(entry.launch, UserLaunch)
            for entry in self.lowering.pending[number : candidate + 1]
        )

    def _readers_of(self, kernel: Kernel, number: int) -> list[int]:
        found = {reader for value in writes_of(kernel) for reader in self.readers[value]}
        return sorted(reader for reader in found if reader > number and reader not in self.base_of)

    def _has_rows_enough(self, base: Kernel) -> bool:
        # So few elements one unit may walk alone: launches cost more than sharing wins.
        if math.prod(base.extents) <= cost.min_elements_per_piece(self.traits):
            return True
        wanted = ROWS_PER_UNIT * self.traits.compute_units
        found = independent_units(base, self.traits)
        if found >= wanted:
            return True
        folds = ", ".join(dict.fromkeys(fold.name for fold in base.accumulators))
        extents = "x".join(map(str, base.extents))
        self.lowering.placement.cuts.append(
            Cut(
                f"{folds} over {extents}",
                f"what follows is not in the same kernel: {found} rows are too few for "
                f"{self.traits.compute_units} units, which want {wanted}; in pieces, all have work",
                0,
            )
        )
        return False

    def _as_phase(self, number: int, entry: Pending, base: Kernel, other: Pending) -> Kernel | None:
        """`other` as the next phase of `base`, or None where it has to stay a launch."""
        kernel = other.launch
        if not isinstance(kernel, Kernel) or other.shape != entry.shape or other.updates:
            return None
        if entry.shape is None or kernel.where or _has_seams(kernel):
            return None
        if kernel.accumulators and (other.order != entry.order or kernel.reduced != base.reduced):
            return None
        if not kernel.accumulators and other.order != tuple(range(len(entry.shape))):
            return None
        graph, values = self.lowering.graph, self.lowering.values
        for store in kernel.stores + kernel.results:
            owner = values.node[store.value]
            if owner is None or graph.kinds[owner] is Kind.CONCATENATE:
                return None
        kept = len(base.extents) - base.reduced

        def turned(access: Access) -> Access:
            if kernel.accumulators:
                return access
            return access.over(entry.order)

        return _Phase(self, number, base, kept).of(kernel, turned)

    def _drop_results(self, number: int, base: Kernel) -> None:
        """Row results that only the phases read, and no array holds, need no memory."""
        placement = self.lowering.placement
        loaded = {value for value, _ in reads_of(base)}
        dropped = set()
        for phase in base.phases:
            results = []
            for store in phase.results:
                if self._is_read_elsewhere(store.value, number) or store.value in loaded:
                    results.append(store)
                else:
                    dropped.update(self.nodes_of[store.value])
            phase.results = results
        placement.cuts = [cut for cut in placement.cuts if cut.node not in dropped]
        base.inner = frozenset(
            [
                store.value
                for phase in base.phases
                for store in phase.stores
                if not self._is_read_elsewhere(store.value, number)
            ]
        )

    def _is_read_elsewhere(self, value: int, number: int) -> bool:
        """Whether anyone but the phases of launch `number` wants a value."""
        graph, placement = self.lowering.graph, self.lowering.placement
        held = any(
            graph.requested[node] or (graph.live[node] and placement.stored[node])
            for node in self.nodes_of[value]
        )
        return held or any(self.base_of.get(reader) != number for reader in self.readers[value])


class _Phase:
    """Turns one kernel into a phase of `base`: its registers behind all others."""

    def __init__(self, rows: Rows, number: int, base: Kernel, kept: int) -> None:
        self.rows = rows
        self.number = number
        self.base = base
        self.kept = kept
        self.results: dict[int, Store] = {}
        self.stores: dict[int, Store] = {}
        self.registers = 0
        for phase in base.phases:
            self.results.update({store.value: store for store in phase.results})
            self.stores.update({store.value: store for store in phase.stores})
            for item in [*phase.body, *phase.epilogue, *phase.accumulators]:
                self.registers = max(self.registers, item.var + 1)

    def of(self, kernel: Kernel, turned: Callable[[Access], Access]) -> Kernel | None:
        """The phase, or None where it reads something else than its own row."""
        body = self._items(kernel.body, turned, False)
        epilogue = self._items(kernel.epilogue, turned, True)
        if body is None or epilogue is None or self._is_too_large(kernel):
            return None
        first = self.registers
        return replace(
            kernel,
            extents=self.base.extents,
            reduced=self.base.reduced,
            body=body,
            epilogue=epilogue,
            stores=[
                replace(store, var=store.var + first, access=turned(store.access))
                for store in kernel.stores
            ],
            results=[replace(store, var=store.var + first) for store in kernel.results],
            accumulators=[
                replace(
                    accumulator,
                    var=accumulator.var + first,
                    operand=accumulator.operand + first,
                    position=None if accumulator.position is None else accumulator.position + first,
                )
                for accumulator in kernel.accumulators
            ],
        )

    def _is_too_large(self, kernel: Kernel) -> bool:
        phases = [*self.base.phases, kernel]
        steps = sum(len(phase.body) + len(phase.epilogue) for phase in phases)
        values = {value for phase in phases for value, _ in reads_of(phase)}
        values.update(value for phase in phases for value in writes_of(phase))
        traits = self.rows.traits
        return steps > traits.max_steps or 3 * len(values) > cost.max_arguments(traits)

    def _items(
        self, items: list[Item], turned: Callable[[Access], Access], after: bool
    ) -> list[Item] | None:
        found: list[Item] = []
        first = self.registers
        for item in items:
            var = item.var + first
            if isinstance(item, Step):
                operands = tuple([operand + first for operand in item.operands])
                found.append(replace(item, var=var, operands=operands))
            elif isinstance(item, Load):
                loaded = self._load(item, item.access if after else turned(item.access), after)
                if loaded is None:
                    return None
                found.append(loaded)
            elif isinstance(item, Index):
                access = item.access if after else turned(item.access)
                found.append(replace(item, var=var, access=access))
            else:
                found.append(replace(item, var=var))
        return found

    def _load(self, item: Load, access: Access, after: bool) -> Item | None:
        """A load as the phase's: a register for a row's result, memory for what is there."""
        var = item.var + self.registers
        other = None if item.other is None else item.other + self.registers
        if item.position is not None:
            # A gather reads any row.
            if self.rows.written_at.get(item.value, -1) >= self.number:
                return None
            position = item.position + self.registers
            return replace(item, var=var, access=access, position=position, other=other)
        result = self.results.get(item.value)
        if result is not None:
            strides = access.strides[: self.kept]
            along = access.strides[self.kept :]
            own_row = access.offset == result.access.offset and not any(along) and not access.seams
            if own_row and strides == result.access.strides and result.dtype is result.var_dtype:
                return Carried(var, result.var, item.dtype)
            return None
        store = self.stores.get(item.value)
        if store is not None:
            if after or access != store.access or store.dtype is not item.dtype:
                return None
        elif self.rows.written_at.get(item.value, -1) >= self.number:
            return None
        return replace(item, var=var, access=access, other=other)


def _has_seams(kernel: Kernel) -> bool:
    """Whether a kernel reads joined arrays in place: seams might lie across the base's lanes."""
    return any(item.access.seams for item in kernel.body if isinstance(item, Load | Index))
