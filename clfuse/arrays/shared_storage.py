"""Storage cells that share host memory with NumPy arrays: for ``x.data`` and for host-only dtypes.

``x.view(dtype)`` gives a NumPy array where the dtype lives on no device. A program writes to such
an array without our knowledge. So the bytes of the storage are copied to the host, into memory that
its cell and the NumPy arrays share. Reading the cell compares this memory with the last known value
and makes a new leaf where it differs. A write to the cell is computed, and put into this memory, at
once. When the last of the NumPy arrays is gone, the cell is an ordinary one again.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any, Final

import numpy as np

from clfuse.engine.evaluate import host_copy, host_view
from clfuse.ir import trace
from clfuse.ir.nodes import Node, Storage
from clfuse.process import locks
from clfuse.runtime.devices.selection import current_device
from clfuse.runtime.memory.buffers import HostBuffer

from .handle import Handle, is_writeable, layout
from .host_array import leaf

Array = np.ndarray[Any, np.dtype[Any]]

_memories: Final[weakref.WeakKeyDictionary[Storage, Array]] = weakref.WeakKeyDictionary()
_changing: Final = locks.make()
"""Held while a cell becomes a shared one or ceases to be one; nothing is computed meanwhile."""

_cell: Final[Any] = Storage.node  # type: ignore[misc]


class SharedStorage(Storage):
    """A cell that shares its memory: `node` is a leaf with what lies there at the time.

    Cells become such, and cease to be, in place: all arrays on them are concerned.
    """

    __slots__ = ()

    @property
    def node(self) -> Node:
        """The value now: the same node as before, unless something was written meanwhile. In a
        trace what stands for the value at every call."""
        traced = trace.active()
        if traced is not None:
            return traced.read(self)
        known: Node = _cell.__get__(self)
        device = known.buffer.device
        before = host_view(known)
        with _changing:
            memory = _memories.get(self)
            if memory is None:  # another thread has just made it an ordinary one
                return self.node
            is_alone = _references(memory) == _ALONE  # then nobody writes from here on
            is_same = _same_bytes(memory, before)
            if is_alone:
                del _memories[self]
                self.__class__ = Storage  # type: ignore[assignment]
                if not is_same:
                    known = leaf(HostBuffer(device, memory), known.shape, known.dtype)
                self.node = known
            elif not is_same:
                known = leaf(HostBuffer(device, memory.copy()), known.shape, known.dtype)
                _cell.__set__(self, known)
        return known

    @node.setter
    def node(self, node: Node) -> None:
        traced = trace.active()
        if traced is not None:
            traced.write(self, node)
            return
        memory = _memories.get(self)
        if memory is None:  # another thread has just made it an ordinary one
            self.node = node
            return
        memory[...] = host_view(node)
        _cell.__set__(self, _kept(node, memory, _cell.__get__(self).buffer.device))

    @property
    def memory(self) -> Array:
        """What is written to in place."""
        return _memories[self]


def seen_by_numpy(handle: Handle) -> Array:
    """The array as one of NumPy's, in the same memory from now on; read-only if it is."""
    memory = _shared_memory(handle._storage)
    offset, strides = layout(handle)
    size = handle._dtype.itemsize
    if 0 in handle._shape:
        seen = np.empty(handle._shape, handle._dtype)
    else:
        steps = [stride * size for stride in strides]
        seen = np.ndarray(handle._shape, handle._dtype, memory, offset * size, steps)
    seen.flags.writeable = is_writeable(handle)
    return seen


def _shared_memory(storage: Storage) -> Array:
    """The memory of a cell, which shares it from now on; the same for every thread that asks."""
    while True:
        with _changing:
            if type(storage) is SharedStorage:
                return _memories[storage]
        node = storage.node
        memory = host_copy(node)
        device = current_device() if node.buffer is None else node.buffer.device
        kept = _kept(node, memory, device)
        with _changing:
            if type(storage) is SharedStorage or storage.node is not node:
                continue
            storage.node = kept
            _memories[storage] = memory
            storage.__class__ = SharedStorage
            return memory


def _kept(node: Node, memory: Array, device: Any) -> Node:
    """What each read of the cell compares with `memory`, which has the value of `node`: that node,
    where the host sees its bytes without a copy."""
    buffer = node.buffer
    if buffer is not None and buffer.seen_by_host:
        return node
    return leaf(HostBuffer(device, memory.copy()), node.shape, node.dtype)


def _same_bytes(one: Array, two: Array) -> bool:
    return np.array_equal(one.reshape(-1).view(np.uint8), two.reshape(-1).view(np.uint8))


_references: Final = sys.getrefcount


def _alone() -> int:
    """The references that `SharedStorage.node` sees to memory that nobody else has; without exact
    counts (no GIL) there is always somebody else."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return -1
    cell = Storage(None)  # type: ignore[arg-type]
    _memories[cell] = np.zeros(1)
    memory = _memories[cell]
    return _references(memory)


_ALONE: Final = _alone()
