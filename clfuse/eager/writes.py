"""Writes in place: the host memory of an array, if nobody else can see it.

Reference counts show whether anything else holds the node, its buffer or the memory. If so, the
storage cell gets a copy.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clfuse.arrays.handle import DTYPES, Handle
from clfuse.arrays.host_array import (
    LOOP_NBYTES,
    ROW_NBYTES,
    affordable,
    bring_to_host,
    host_elements,
    is_calculated_here,
    leaf,
    works_in_place,
)
from clfuse.errors import AllocationError
from clfuse.ir import trace
from clfuse.ir.nodes import Kind, Node, Storage
from clfuse.runtime.devices.selection import current_device
from clfuse.runtime.memory.buffers import (
    AS_A_WHOLE,
    IN_PARTS,
    Buffer,
    HostBuffer,
    allocate,
    has_sole_memory,
    lend_memory,
)

if TYPE_CHECKING:
    from clfuse.runtime.devices.device import Device


def writable_memory(storage: Storage) -> Any:
    """The memory of a cell that lies on the host, to be written to: nobody else can see it.

    None where that were a copy of a large array: the write is recorded then.
    """
    if type(storage) is not Storage:
        return storage.memory  # type: ignore[attr-defined]  # of a `shared_storage.SharedStorage`
    node = storage.node
    buffer = node.buffer
    if type(buffer) is not HostBuffer:  # another thread has written to it
        return None
    array = buffer.array
    if (
        _references(node) == _ALONE[0]
        and _references(buffer) == _ALONE[1]
        and _references(array) == _ALONE[2] + (buffer.window is not None)
        and (array.base is None or _is_returned(buffer))
    ):
        buffer.copy = None
        if buffer.use == AS_A_WHOLE:
            buffer.use = IN_PARTS
        if node.dtype.kind in _MEASURED:
            storage.node = leaf(buffer, node.shape, node.dtype)
    elif buffer.memory is not None and buffer.nbytes > ROW_NBYTES:
        return None
    else:
        array = array.copy()
        storage.node = leaf(HostBuffer(buffer.device, array), node.shape, node.dtype)
    return array


def _is_returned(buffer: HostBuffer) -> bool:
    """Whether the array is memory of the device that nobody else has; the device is done with it.

    A small one is copied rather: then nobody has to wait for the device at every write.
    """
    if buffer.memory is None or buffer.nbytes <= ROW_NBYTES or not has_sole_memory(buffer):
        return False
    if buffer.device.lost:  # nobody can wait for what it does with the memory
        return False
    buffer.device.finish()
    return True


_MEASURED: Final = "biu"
"""Kinds of dtypes whose nodes may know something of their values (`Node.measured`, `Node.tally`):
a cell that is written to gets another node."""

_references: Final = sys.getrefcount


def _alone() -> tuple[int, int, int]:
    """The references that `writable_memory` sees to a node, its buffer and its memory that nobody
    else has.

    Without exact counts (no GIL) everything is somebody else's too.
    """
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return -1, -1, -1

    def cell() -> Storage:
        made = HostBuffer(None, np.zeros(2))  # type: ignore[arg-type]
        return Storage(leaf(made, (2,), DTYPES["float64"]))

    def counts(storage: Storage) -> tuple[int, int, int]:
        node = storage.node
        buffer = node.buffer
        array = buffer.array
        return _references(node), _references(buffer), _references(array)

    return counts(cell())


_ALONE: Final = _alone()


def is_writable_here(handle: Handle, index: Any, value: Any) -> bool:
    """Whether the array's memory is on the host, or will be: a small one of one value all over,
    that was recorded alone, is made now. A large one where the device works in the host's memory,
    if `value`, which is to be written to a small part of it, is an array that lies there, or a list
    of numbers."""
    node = handle._storage.node
    buffer = node.buffer
    if type(buffer) is HostBuffer:
        return True
    if type(buffer) is Buffer:
        return bring_to_host(node)
    if buffer is not None or node.op.kind is not Kind.VIEW:
        return False
    (source,) = node.inputs
    if source.op.kind is not Kind.CONSTANT or source.buffer is not None:
        return False
    nbytes = math.prod(node.shape) * node.dtype.itemsize
    device = current_device()
    if not is_calculated_here(device) or trace.active() is not None:
        return False
    if nbytes <= ROW_NBYTES:
        here = HostBuffer(device, np.full(node.shape, source.param, node.dtype))
    elif isinstance(value, Handle | list | tuple) and nbytes <= LOOP_NBYTES and works_in_place():
        if not affordable(_part_size(handle._shape, index)):
            return False
        memory = _memory(device, node)
        if memory is None:
            return False
        here = memory
        here.array.fill(source.param)
    else:
        return False
    handle._storage.node = leaf(here, node.shape, node.dtype)
    return True


def _memory(device: Device, node: Node) -> HostBuffer | None:
    """Memory of a device that works in the host's, or of NumPy while it is not opened; None without
    room for it."""
    if device.may_wait:
        return HostBuffer(device, np.empty(node.shape, node.dtype))
    nbytes = math.prod(node.shape) * node.dtype.itemsize
    try:
        return lend_memory(allocate(device, nbytes), node.dtype, node.shape)
    except AllocationError:
        return None  # what is written is recorded, and computed in tiles


def _part_size(shape: tuple[int, ...], index: Any) -> int:
    """Elements of the part that an index points at; its arrays lie on the host."""
    items = [
        host_elements(item) if isinstance(item, Handle) else item
        for item in (index if type(index) is tuple else (index,))
    ]
    return np.broadcast_to(np.False_, shape)[tuple(items)].size
