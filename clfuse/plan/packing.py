"""Strided arrays that a kernel reads again and again are copied side by side first.

A load whose lanes lie apart takes one instruction a lane. Where every element is read often (the
points of ``p[:, None] - q``, coordinate by coordinate), a small kernel before packs them, so that
the large one loads whole vectors. Called by `planner` for finished CPU kernels.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ..graph.layout import contiguous_strides
from ..traits import DeviceTraits
from . import cost
from .emission import ValueTable
from .geometry import finish_map
from .schedule import Access, Kernel, Load, Store


def pack(kernel: Kernel, traits: DeviceTraits, values: ValueTable) -> list[Kernel]:
    """Kernels that must run before `kernel`, whose loads are changed to read what they store."""
    if kernel.schedule != "cpu" or kernel.width == 1:
        return []
    copies: dict[tuple[int, ...], dict[Load, Store]] = {}
    packed: dict[int, Load] = {}
    for position, item in enumerate(kernel.body):
        if not isinstance(item, Load) or not _is_apart(item, kernel):
            continue
        dims = [dim for dim, stride in enumerate(item.access.strides) if stride]
        extents = tuple([kernel.extents[dim] for dim in dims])
        elements = max(math.prod(extents), 1)
        nbytes = elements * item.dtype.itemsize
        reads = math.prod(kernel.extents)
        if nbytes > cost.MAX_PACKED_NBYTES or not _pays(reads, elements, nbytes, traits):
            continue
        # The lanes' dimension last, whatever the order of the loops.
        dims.sort(key=lambda dim: dim == kernel.vector)
        extents = tuple([kernel.extents[dim] for dim in dims])
        strides = [0] * len(kernel.extents)
        for dim, stride in zip(dims, contiguous_strides(extents), strict=True):
            strides[dim] = stride
        what = f"an operand {item.dtype} {'x'.join(map(str, extents))}"
        reason = f"packed: its lanes lie apart, and every element is read {reads // elements} times"
        value = values.temporary(nbytes, what, reason)
        packed[position] = replace(item, value=value, access=Access(0, tuple(strides)))
        source = replace(
            item,
            var=len(copies.setdefault(extents, {})),
            access=Access(item.access.offset, tuple([item.access.strides[dim] for dim in dims])),
        )
        target = Access(0, contiguous_strides(extents))
        copies[extents][source] = Store(source.var, item.dtype, value, item.dtype, target)
    for position, load in packed.items():
        kernel.body[position] = load
    first: list[Kernel] = []
    for extents, moves in copies.items():
        copy = Kernel("map", extents, list(moves), list(moves.values()), label="map_pack")
        first.append(finish_map(copy, traits))
    return first


def _pays(reads: int, elements: int, nbytes: int, traits: DeviceTraits) -> bool:
    """Whether `reads` loads of single lanes cost more than packing an array of `nbytes` first.

    That is a launch, `elements` such loads, and the array written and read once more.
    """
    scattered = (reads - elements) * traits.gather_weight * traits.operation_nbytes
    return scattered > traits.launch_nbytes + 2 * nbytes


def _is_apart(load: Load, kernel: Kernel) -> bool:
    """Whether the lanes of a load do not lie side by side, nor anywhere (a gather's)."""
    strides = load.access.strides
    return (
        load.position is None
        and not load.access.seams
        and kernel.vector < len(strides)
        and abs(strides[kernel.vector]) > 1
    )
