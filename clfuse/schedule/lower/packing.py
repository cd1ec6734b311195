"""Packing: strided arrays that a CPU kernel reads again and again are first copied side by side.

A load whose lanes lie apart takes one instruction a lane. Where every element is read often (the
points of ``p[:, None] - q``, coordinate by coordinate), a small kernel before packs them, so that
the large one loads whole vectors.
"""

from __future__ import annotations

import math
from dataclasses import replace

from clfuse.ir.layout import contiguous_strides
from clfuse.schedule import cost
from clfuse.schedule.kinds import MAP
from clfuse.schedule.records import Access, Kernel, Load, Store
from clfuse.schedule.shape.geometry import finish_map
from clfuse.target.traits import DeviceTraits

from .emission import ValueTable


def pack(kernel: Kernel, traits: DeviceTraits, values: ValueTable) -> list[Kernel]:
    """Kernels that must run before `kernel`, whose loads are changed to read what they store."""
    if kernel.schedule != "cpu" or kernel.width == 1:
        return []
    copies = Copies(values)
    packed: dict[int, Load] = {}
    for position, item in enumerate(kernel.body):
        if not isinstance(item, Load) or not _is_apart(item, kernel):
            continue
        elements = copied_elements(item, kernel.extents)
        nbytes = elements * item.dtype.itemsize
        reads = math.prod(kernel.extents)
        if nbytes > cost.MAX_PACKED_NBYTES or not _pays(reads, elements, nbytes, traits):
            continue
        reason = f"packed: its lanes lie apart, and every element is read {reads // elements} times"
        packed[position] = copies.add(item, kernel.extents, kernel.vector, reason)
    for position, load in packed.items():
        kernel.body[position] = load
    first = copies.kernels()
    for copy in first:
        copy.label = "map_pack"
    return [finish_map(copy, traits) for copy in first]


def copied_elements(load: Load, extents: tuple[int, ...]) -> int:
    """How many elements a load over `extents` touches, each counted once."""
    strides = load.access.strides
    return math.prod([extent for extent, stride in zip(extents, strides, strict=True) if stride])


class Copies:
    """Kernels that copy what loads touch into arrays of their own, in C order."""

    def __init__(self, values: ValueTable) -> None:
        self._values = values
        self._moves: dict[tuple[int, ...], dict[Load, Store]] = {}

    def add(self, load: Load, extents: tuple[int, ...], last: int, reason: str) -> Load:
        """`load`, which runs over `extents`, from a copy; dimension `last` is the copy's last."""
        dims = [dim for dim, stride in enumerate(load.access.strides) if stride]
        dims.sort(key=lambda dim: dim == last)
        copied = tuple([extents[dim] for dim in dims])
        strides = [0] * len(extents)
        for dim, stride in zip(dims, contiguous_strides(copied), strict=True):
            strides[dim] = stride
        moves = self._moves.setdefault(copied, {})
        inner = Access(load.access.offset, tuple([load.access.strides[dim] for dim in dims]))
        source = replace(load, var=-1, access=inner)
        store = moves.get(source)
        if store is None:
            nbytes = math.prod(copied) * load.dtype.itemsize
            what = f"an operand {load.dtype} {'x'.join(map(str, copied)) or 'scalar'}"
            value = self._values.temporary(nbytes, what, reason)
            target = Access(0, contiguous_strides(copied))
            store = moves[source] = Store(len(moves), load.dtype, value, load.dtype, target)
        return replace(load, value=store.value, access=Access(0, tuple(strides)))

    def kernels(self) -> list[Kernel]:
        """The kernels, which are not finished yet."""
        return [
            Kernel(
                MAP,
                extents,
                [replace(load, var=store.var) for load, store in moves.items()],
                list(moves.values()),
            )
            for extents, moves in self._moves.items()
        ]


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
