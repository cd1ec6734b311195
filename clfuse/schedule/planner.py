"""The planner: runs the passes in order, from a graph and a device's traits to a Schedule.

merge equal nodes  ->  reroll (small equal writes into large ones)  ->  fold by masks what is only
folded, and by the blocks of others  ->  forward stores (reads of what was written elsewhere)
->  place (levels, what is stored)  ->  lower (kernels)  ->  rows (phases)
->  epilogues (of matrix products)  ->  time tiles  ->  memory (in-place, copies, slots)
->  geometry (vectors, pieces, work-items)
"""

from __future__ import annotations

import gc
import itertools
from typing import Any, Final

from clfuse.ir.identifiers import symbol
from clfuse.ir.snapshot import Snapshot
from clfuse.target.traits import DeviceTraits

from .dataflow import operations_of
from .device_libraries import device_call
from .finish.epilogues import join_epilogues
from .finish.finishers import finish
from .fuse.multi_domain import join_guarded
from .fuse.rows import join_rows
from .fuse.time_tiles import join_stages
from .graph import Graph
from .lower.emission import Refines, Straddles
from .lower.fourier import expand_fourier, is_fourier
from .lower.lowering import Lowering
from .lower.reductions import join_folds
from .lower.sorting import expand_sort, is_by_passes
from .memory.buffers import Memory, slots_of
from .partition.placement import Placement
from .records import Access, Cut, Kernel, Launch, LibraryCall, Load, Schedule, Value, Written
from .rewrite.block_folds import fold_in_blocks
from .rewrite.counting import count_in_pieces
from .rewrite.masked_folds import fold_by_mask
from .rewrite.rerolling import roll
from .rewrite.scaled_scans import scan_in_any_order
from .rewrite.split_products import split_products
from .rewrite.store_forwarding import read_through

REFUSED_SINGLY: Final = 4
"""Values that turn out not to be readable in parts, each at the cost of planning anew, before all
that are alike are stored with one: a loop of rounds that no array holds has as many as rounds."""


def plan(snapshot: Snapshot, traits: DeviceTraits, *, fuse: bool = True) -> Schedule:
    """Decide how `snapshot` is computed on a device with these traits."""
    # The collector would look through the many small records again and again and find nothing: it
    # took half of the time of large plans.
    collects = gc.isenabled()
    gc.disable()
    try:
        return _plan(snapshot, traits, fuse)
    finally:
        if collects:
            gc.enable()


def _plan(snapshot: Snapshot, traits: DeviceTraits, fuse: bool) -> Schedule:
    graph = Graph(snapshot)
    if fuse:
        graph = read_through(fold_in_blocks(fold_by_mask(roll(graph), traits)))
        graph = split_products(graph, traits)
    graph = count_in_pieces(scan_in_any_order(graph, traits), traits)
    placement, lowering, memory = _place_and_lower(graph, traits, fuse)
    values = lowering.values
    launches: list[Launch] = []
    for launch in memory.launches:
        if isinstance(launch, Kernel):
            launch.label = _label(launch)
            launches += finish(launch, traits, values)
        elif isinstance(launch, LibraryCall) and is_by_passes(launch, traits):
            launches += expand_sort(launch, values, traits)
        elif isinstance(launch, LibraryCall) and is_fourier(launch, traits):
            launches += expand_fourier(launch, values, traits)
        else:
            if isinstance(launch, LibraryCall):
                launch.maker = device_call(launch, traits)
                if launch.epilogue is not None:
                    launch.epilogue.label = _label(launch.epilogue)
            launches.append(launch)
    if fuse:
        join_folds(launches)
    dropped = {
        value for launch in launches if isinstance(launch, Kernel) for value in launch.dropped
    }
    kept = {
        value
        for node, value in values.of_node.items()
        if graph.requested[node] or (graph.live[node] and placement.stored[node])
    }
    dead_buffers = {
        buffer
        for buffer in values.buffer
        if buffer is not None and not graph.buffer_live.get(buffer)
    }
    slots, sizes, reuses = slots_of(
        launches, values.nbytes, values.buffer, memory.takes_over, kept, dead_buffers
    )
    for value in kept:  # no kernel writes an empty array, but an array of the program holds it
        if slots[value] is None and values.buffer[value] is None:
            slots[value] = len(sizes)
            sizes.append(values.nbytes[value])
    keeps: dict[int, int] = {}
    recomputed: list[int] = []
    for node in range(len(graph)):
        if graph.buffer[node] is not None:
            continue
        if placement.stored[node] and (graph.requested[node] or graph.live[node]):
            for member in graph.members[node]:
                keeps[member] = values.of_node[node]
        elif graph.live[node]:
            recomputed += graph.members[node]
    if graph.original is not None:  # what went into a larger write is as if never kept
        recomputed += [
            member
            for node, moved in enumerate(graph.moved)
            if moved < 0 and graph.original.live[node]
            for member in graph.original.members[node]
        ]
    return Schedule(
        launches,
        [
            Value(nbytes, node, buffer, slot, _written(node, lowering, memory))
            for nbytes, node, buffer, slot in zip(
                values.nbytes, values.node, values.buffer, slots, strict=True
            )
        ],
        sizes,
        keeps,
        recomputed,
        _of_others(placement.cuts + values.cuts, {values.node[value] for value in dropped}),
        reuses,
        {
            member: value
            for node, value in values.of_node.items()
            if graph.buffer[node] is None and value not in dropped
            for member in graph.members[node]
        },
    )


def _of_others(cuts: list[Cut], dropped: set[int | None]) -> list[Cut]:
    """Why values are stored, without those that are not after all."""
    return [cut for cut in cuts if cut.node not in dropped] if dropped else cuts


def _place_and_lower(
    graph: Graph, traits: DeviceTraits, fuse: bool
) -> tuple[Placement, Lowering, Memory]:
    """The passes up to memory; what cannot be read in parts after all is stored."""
    refused: frozenset[int] = frozenset()
    in_place: frozenset[int] = frozenset()
    for attempt in itertools.count():
        placement = Placement(graph, traits, fuse=fuse, refused=refused, in_place=in_place)
        _keep_inputs_of_pending(graph, placement)
        try:
            lowering = Lowering(placement, traits)
            if fuse:
                join_rows(lowering, traits)
                if traits.schedule == "gpu":
                    join_epilogues(lowering, traits)
                join_stages(lowering, traits)
                join_guarded(lowering, traits)
            placement.cuts += lowering.apart.values()
            return placement, lowering, Memory(lowering)
        except (Straddles, Refines) as cut:
            nodes = _alike(graph, cut.node) if attempt >= REFUSED_SINGLY else (cut.node,)
            if cut.node in refused:
                in_place = in_place.union(nodes)
            refused = refused.union(nodes)
    raise AssertionError("planner error: no end of attempts")


def _alike(graph: Graph, node: int) -> list[int]:
    """`node` and what joins parts of the same shapes at the same places: the same statement in
    other rounds of a loop, for one."""
    signature = _signature(graph, node)
    kind = graph.kinds[node]
    return [
        other
        for other in range(len(graph))
        if graph.kinds[other] is kind and _signature(graph, other) == signature
    ]


def _signature(graph: Graph, node: int) -> tuple[Any, ...]:
    shapes = [graph.shapes[operand] for operand in graph.inputs[node]]
    return graph.shapes[node], graph.dtypes[node], graph.params[node], shapes


def _keep_inputs_of_pending(graph: Graph, placement: Placement) -> None:
    """Buffers below a value that stays pending are needed after the plan, whatever else reads them.

    A value that is held may be computed on the way without being stored: it is computed again when
    it is looked at, from the same inputs.
    """
    original = graph if graph.original is None else graph.original
    pending = [False] * len(original)
    for node in range(len(original) - 1, -1, -1):
        moved = node if graph.original is None else graph.moved[node]
        held = original.requested[node] or original.live[node]
        kept = moved >= 0 and placement.stored[moved] and held
        buffer = original.buffer[node]
        if buffer is not None:
            if pending[node]:
                graph.buffer_live[buffer] = True
        elif not kept and (pending[node] or original.live[node]):
            for operand in original.inputs[node]:
                pending[operand] = True


def _written(node: int | None, lowering: Lowering, memory: Memory) -> Written | None:
    """What a value has in common with the one that it is an update of (`verify` checks it)."""
    graph = lowering.graph
    if node is None or not lowering.is_written_in_place(node):
        return None
    old = memory.old_value(node)
    if old is None:
        return None
    regions = tuple(
        [
            (shape, Access(offset, strides))
            for shape, offset, strides in lowering.placement.writes.regions(node)
        ]
    )
    return Written(old, regions, graph.dtypes[node].itemsize)


_LABEL_OPERATIONS = 4


def _label(kernel: Kernel) -> str:
    """A readable name of the kernel: its kind and first operations; an OpenCL C identifier."""
    phases = kernel.computed
    items = [item for phase in phases for item in phase.body + phase.epilogue]
    names = operations_of(items)
    folds = [accumulator.name for phase in phases for accumulator in phase.accumulators]
    words = list(dict.fromkeys(names))[:_LABEL_OPERATIONS] + list(dict.fromkeys(folds))
    if not words:
        words = ["copy" if any(isinstance(item, Load) for item in items) else "fill"]
    is_rows = kernel.then and not kernel.where and kernel.tiling is None
    kind = "rows" if is_rows else kernel.kind.name
    return symbol("_".join([kind, *words]).replace(" ", "_"))
