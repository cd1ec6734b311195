"""``x[index]`` with arrays in the index, and ``x[index] = value``, of arrays that lie on the host;
`indexing` asks here before it records. See `present`."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from ..evaluate import evaluate_nodes
from ..graph import trace
from ..graph.ir import Kind, Node
from ..runtime.buffers import BY_ROWS, Buffer, HostBuffer
from ..smallness import GATHER_ADDITIONS
from . import handle as handles
from .handle import Handle
from .present import (
    AT_ONCE,
    INTEGERS,
    LATER,
    PLAIN,
    ROW_NBYTES,
    SCALARS,
    affordable,
    brought,
    is_calculated_here,
    is_writable_here,
    made,
    part,
    present,
    stored,
    written,
)

MASK_ADDITIONS: Final = 4
"""Additions an element of a mask that selects."""


def chosen(handle: Handle, index: Any) -> Any:
    """``handle[index]`` for an index with arrays in it, or `LATER`."""
    node = handle._storage.node
    is_selected = type(index) is handles.ARRAY and index._dtype.kind == "b"
    if is_selected and is_brief(node) and is_brief(index._storage.node):
        evaluate_nodes([node, index._storage.node])
        if type(node.buffer) is Buffer:
            brought(node)
    if type(node.buffer) is not HostBuffer and type(node.buffer) is not Buffer:
        return LATER
    found = _index(handle, index)
    if found is LATER:
        return LATER
    array = stored(node)
    if array is None:
        return LATER
    if handle._view is not None:
        array = part(array, handle)
    made_of_it = made(array[found], node.buffer.device)
    if is_selected:
        made_of_it._storage.node.buffer.use = BY_ROWS
        if type(node.buffer) is HostBuffer:
            node.buffer.use = BY_ROWS
    return made_of_it


def is_brief(node: Node) -> bool:
    """Whether an array lies on the host, or is so small that it is computed for who waits anyway,
    to select by it, say: NumPy does that in less time than a launch takes."""
    buffer = node.buffer
    if type(buffer) is HostBuffer:
        return True
    if node.op.kind is Kind.CONSTANT or not affordable(
        math.prod(node.shape) * MASK_ADDITIONS / AT_ONCE
    ):
        return False
    if trace.active() is not None or math.prod(node.shape) * node.dtype.itemsize > ROW_NBYTES:
        return False
    from ..runtime.device import get_device

    device = get_device() if buffer is None else buffer.device
    return bool(device.traits.unified_memory and is_calculated_here(device))


def _index(handle: Handle, index: Any) -> Any:
    """An index of arrays on the host and of what NumPy's own indices consist of, or `LATER`.

    Whoever selects by a mask waits for it: it may cost as much as a small program may, and so may
    the rows that it selects of the array.
    """
    items = index if type(index) is tuple else (index,)
    found = []
    work = 0
    for item in items:
        kind = type(item)
        if kind is handles.ARRAY:
            array = present(item)
            if array is None and item._dtype.kind == "b" and is_brief(item._storage.node):
                evaluate_nodes([item._storage.node])
                if stored(item._storage.node) is not None:
                    array = present(item)
            if array is None or array.dtype.kind not in "iub":
                return LATER
            if item._dtype.kind == "b":
                work += max(array.size * MASK_ADDITIONS, math.prod(handle._shape))
            else:
                work += array.size * GATHER_ADDITIONS
            item = array
        elif kind is slice:
            if isinstance(item.start, Handle) or isinstance(item.stop, Handle):
                return LATER
            if isinstance(item.step, Handle):
                return LATER
        elif kind is np.ndarray:
            work += item.size * GATHER_ADDITIONS
        elif not (item is None or item is Ellipsis or kind in INTEGERS):
            return LATER
        found.append(item)
    if not affordable(work / AT_ONCE):
        return LATER
    return tuple(found) if type(index) is tuple else found[0]


def assigned(handle: Handle, index: Any, value: Any) -> bool:
    """Make ``handle[index] = value`` in place; False where that has to be recorded.

    The caller has seen that the array may be written to.
    """
    dtype = handle._dtype
    kind = type(value)
    is_same = kind is dtype.type or (kind is float and dtype.char == "d")
    if not is_same:
        if kind is handles.ARRAY:
            if present(value) is None or not fits(value._dtype, dtype):
                return False
            size = math.prod(value._shape)
            if not affordable(size) and not affordable(size, handle):
                return False
        elif kind not in PLAIN and not (kind in SCALARS and fits(value.dtype, dtype)):
            return False
    found = index
    if type(index) not in INTEGERS:
        for item in index if type(index) is tuple else (index,):
            if type(item) not in INTEGERS:
                found = _index(handle, index)
                if found is LATER:
                    return False
                break
    if not is_writable_here(handle, value):
        return False
    array = written(handle)
    if array is None:
        return False
    if is_same:
        array[found] = value
        return True
    array[found] = present(value) if kind is handles.ARRAY else value
    return True


_fitting: Final[dict[tuple[np.dtype, np.dtype], bool]] = {}


def fits(source: np.dtype, target: np.dtype) -> bool:
    """Whether NumPy converts from one to the other without a word."""
    try:
        return _fitting[source, target]
    except KeyError:
        return _fitting.setdefault((source, target), np.can_cast(source, target, "same_kind"))
