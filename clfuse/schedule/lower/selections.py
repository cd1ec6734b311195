"""Boolean masks as kernels: the selected elements are counted by pieces, then packed or unpacked.

    mask     1 0 1 1 | 0 0 1 0 | 1 1 0 0     COUNTS    3 1 2: one pass over the mask
    value    a b c d | e f g h | i j k l     starts    0 3 4 6: made on the host
                                             COMPACT   a c d | g | i j: a piece knows its place
                                             EXPAND    the same places, read instead of written

`masked_kernels` makes the kernels, `finish_selection` fixes their geometry.
"""

from __future__ import annotations

import math

import numpy as np

from clfuse.ir.nodes import Kind
from clfuse.schedule import cost
from clfuse.schedule.kinds import COMPACT, COUNT, EXPAND
from clfuse.schedule.partition.placement import Placement
from clfuse.schedule.records import Access, Accumulator, Kernel, Load, Selection, Store
from clfuse.schedule.shape import geometry as g
from clfuse.target.traits import DeviceTraits

from .emission import Emitter, Registers, ValueTable, identity

_INT32 = np.dtype(np.int32)


def masked_kernels(
    placement: Placement, values: ValueTable, nodes: list[int]
) -> list[tuple[int, Kernel, Emitter]]:
    """(level, kernel, its emitter) of COUNTS, COMPACT and EXPAND nodes; equal masks share one."""
    graph = placement.graph
    groups: dict[object, list[int]] = {}
    for node in nodes:
        kind = graph.kinds[node]
        key: object = node
        if kind is Kind.COMPACT and placement.fuse:
            mask, _, starts = graph.inputs[node]
            key = (placement.level[node], mask, starts)
        groups.setdefault(key, []).append(node)
    found = []
    for members in groups.values():
        for start in range(0, len(members), cost.MAX_STORES):
            part = members[start : start + cost.MAX_STORES]
            level = placement.level[part[0]]
            (count,) = graph.shapes[graph.inputs[part[0]][0]]
            emitter = Emitter(placement, values, level, (count,), Registers())
            make = _counting if graph.kinds[part[0]] is Kind.COUNTS else _selecting
            kernel = make(part, emitter, values)
            kernel.chunk_length = graph.params[part[0]]
            kernel.chunks = -(-count // kernel.chunk_length)
            found.append((level, kernel, emitter))
    return found


def _counting(nodes: list[int], emitter: Emitter, values: ValueTable) -> Kernel:
    """The first half of a sum: every piece has a result of its own."""
    (node,) = nodes
    (mask,) = emitter.graph.inputs[node]
    var = emitter.emit(mask, identity(emitter.extents))
    total = Accumulator(emitter.registers.new(), "add", var, _INT32, partial=values.of_node[node])
    return Kernel(COUNT, emitter.extents, emitter.items, [], 1, [total], chunk=0)


def _selecting(nodes: list[int], emitter: Emitter, values: ValueTable) -> Kernel:
    graph = emitter.graph
    access = identity(emitter.extents)
    expands = graph.kinds[nodes[0]] is Kind.EXPAND
    stores = []
    packed = None
    other = -1
    for node in nodes:
        mask, value, starts, *more = graph.inputs[node]
        selector = emitter.emit(mask, access)
        var = emitter.emit(value, access)
        for operand in more:
            other = var
            var = emitter.registers.new()
            packed = Load(var, values.of(operand), graph.dtypes[operand], Access(0, (0,)))
        dtype = graph.dtypes[node]
        place = access if expands else Access(0, (0,))
        stores.append(Store(var, graph.dtypes[value], values.of_node[node], dtype, place))
    selection = Selection(selector, values.of(starts), packed, other)
    return Kernel(
        EXPAND if expands else COMPACT, emitter.extents, emitter.items, stores, 1, chunk=0,
        selection=selection,
    )


def finish_selection(kernel: Kernel, traits: DeviceTraits) -> list[Kernel]:
    """Fix the geometry of a kernel whose pieces are given."""
    pieces, length = kernel.chunks, kernel.chunk_length
    kernel.schedule = traits.schedule
    kernel.wide_index = g.needs_wide_index(kernel, traits)
    kernel.vector = 0
    if traits.schedule == "gpu":
        kernel.work_group = traits.work_group
        # One counter of a work-item, or what the tree over the counts of a group takes.
        while kernel.work_group > 1 and 8 * kernel.work_group > traits.local_nbytes:
            kernel.work_group //= 2
    else:
        kernel.width = g.width_for(kernel, traits, math.prod(kernel.extents))
        kernel.unroll = 4 if kernel.kind.folds else 1
    g.count_items(kernel, traits, 1, pieces * length)
    return [kernel]
