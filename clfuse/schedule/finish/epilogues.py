"""Epilogues of matrix products: the map that follows is computed on the product's registers.

    product = a @ b         one launch instead of two, and the product is neither stored nor loaded
    maximum(product * s + bias, 0)

This is for products that our own kernel makes. On a CPU the host's BLAS makes them: there the map
is a kernel of its own, in place.
"""

from __future__ import annotations

from dataclasses import replace

from clfuse.ir.layout import contiguous_strides
from clfuse.schedule.device_libraries import is_ours
from clfuse.schedule.lower.lowering import Lowering, Pending
from clfuse.schedule.memory.buffers import reads_of
from clfuse.schedule.records import Access, Kernel, LibraryCall, Load
from clfuse.target.traits import DeviceTraits


def join_epilogues(lowering: Lowering, traits: DeviceTraits) -> None:
    """Give every product that only one map reads, element by element, that map as its epilogue."""
    kept = lowering.values_needed_later()
    readers: dict[int, list[int]] = {}
    for index, entry in enumerate(lowering.pending):
        for value in {value for value, _ in reads_of(entry.launch)}:
            readers.setdefault(value, []).append(index)
    gone: set[int] = set()
    for index, entry in enumerate(lowering.pending):
        call = entry.launch
        if not isinstance(call, LibraryCall) or call.target in kept or not is_ours(call, traits):
            continue
        places = readers.get(call.target, [])
        if len(places) != 1 or not _follows(call, lowering.pending[places[0]]):
            continue
        following = lowering.pending[places[0]]
        kernel = following.launch
        assert isinstance(kernel, Kernel)
        lowering.pending[places[0]] = Pending(following.level, replace(call, epilogue=kernel))
        gone.add(index)
    if gone:
        lowering.pending = [
            entry for index, entry in enumerate(lowering.pending) if index not in gone
        ]


def _follows(call: LibraryCall, entry: Pending) -> bool:
    kernel = entry.launch
    if not isinstance(kernel, Kernel) or not kernel.kind.elementwise:
        return False
    if kernel.boxed or kernel.then:
        return False
    if entry.updates or kernel.extents != call.shape:
        return False
    access = Access(0, contiguous_strides(call.shape))
    loads = [item for item in kernel.body if isinstance(item, Load)]
    return all(
        item.access == access and item.position is None
        for item in loads
        if item.value == call.target
    )
