"""Eager indexing: ``x[index]`` with arrays in the index, and ``x[index] = value``.

`arrays.host_array` says which arrays are indexed eagerly.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from clfuse.arrays import handle as handles
from clfuse.arrays.handle import Handle
from clfuse.arrays.host_array import (
    AT_ONCE,
    INTEGERS,
    DEFER,
    LOOP_NBYTES,
    PLAIN,
    ROW_NBYTES,
    ROWS_OF_A_PRODUCT,
    SCALARS,
    SELECTED_SHARE,
    affordable,
    bring_to_host,
    expect_rows,
    host_elements,
    is_seen_here,
    stored_elements,
    use_of,
    view_elements,
    wrap_result,
)
from clfuse.engine.evaluate import evaluate_nodes, lock
from clfuse.ir.launch_nodes import Part
from clfuse.ir.nodes import Kind, LateNode, Node
from clfuse.runtime.memory.buffers import BY_ROWS, IN_PARTS, SELECTED, Buffer, HostBuffer
from clfuse.target.costs import COSTS

from .sequences import array_of_sequence, numbers
from .writes import is_writable_here, writable_view

MASK_ADDITIONS: Final = 4
"""Additions an element of a mask that selects."""


def get_by_arrays(handle: Handle, index: Any) -> Any:
    """``handle[index]`` for an index with arrays in it, or `DEFER`."""
    node = handle._storage.node
    is_selected = type(index) is handles.ARRAY and index._dtype.kind == "b"
    if is_selected:
        _select(node, index._storage.node)
    if node.buffer is None and not is_selected:
        _expect_choices(handle, index)
        node = handle._storage.node
    if type(node.buffer) is not HostBuffer and type(node.buffer) is not Buffer:
        return DEFER
    index = _with_arrays(index)
    found = DEFER if index is DEFER else _index(handle, index)
    if found is DEFER:
        return DEFER
    array = stored_elements(node)
    if array is None:
        return DEFER
    if handle._view is not None:
        array = view_elements(array, handle)
    made_of_it = wrap_result(array[found], node.buffer.device)
    if is_selected:
        made_of_it._storage.node.buffer.use = SELECTED
        if type(node.buffer) is HostBuffer:
            node.buffer.use = SELECTED
    return made_of_it


def _expect_choices(handle: Handle, index: Any) -> None:
    """Bring a recorded array to the host of which a loop takes parts by index arrays that lie
    there, as batches of a table: each would be recorded, with all that the table is made of."""
    items = index if type(index) is tuple else (index,)
    count = 0
    for item in items:
        kind = type(item)
        if kind is handles.ARRAY:
            if item._dtype.kind not in "iu" or host_elements(item) is None:
                return
            count = max(count, math.prod(item._shape))
        elif kind is np.ndarray or kind is list:
            count = max(count, np.size(item))
        elif kind not in INTEGERS and kind is not slice:
            return
    shape = handle._shape[len(items) :]
    if count:
        expect_rows(handle._storage, (count, *shape), ROWS_OF_A_PRODUCT)


def _select(node: Node, mask: Node) -> None:
    """Have an array and a mask of its elements lie on the host, where both are small: who selects
    waits for the mask, and what is selected from or written to comes from the same arrays."""
    if _is_selectable(node) and _is_selectable(mask):
        evaluate_nodes([node, mask])
        if type(node.buffer) is Buffer:
            bring_to_host(node)


def _is_selectable(node: Node) -> bool:
    return is_brief(node, SELECTED_SHARE, LOOP_NBYTES)


def is_brief(node: Node, share: int = AT_ONCE, most_nbytes: int = ROW_NBYTES) -> bool:
    """Whether an array lies on the host, or is so small that it may be computed at once: NumPy
    does what is to be done with it in less time than a launch takes."""
    buffer = node.buffer
    if type(buffer) is HostBuffer:
        return True
    if node.op.kind is Kind.CONSTANT or not affordable(
        math.prod(node.shape) * MASK_ADDITIONS / share
    ):
        return False
    if math.prod(node.shape) * node.dtype.itemsize > most_nbytes:
        return False
    from clfuse.runtime.devices.selection import current_device

    return is_seen_here(current_device() if buffer is None else buffer.device)


def _with_arrays(index: Any) -> Any:
    """The index with arrays of integers or booleans in place of lists of them; `DEFER` where there
    is a list of anything else."""
    if type(index) is list:
        found = array_of_sequence(index)
        return found if found is DEFER or found.dtype.kind in "iub" else DEFER
    if type(index) is not tuple:
        return index
    items = [
        _with_arrays(list(item) if type(item) is tuple else item) for item in index
    ]
    return DEFER if any(item is DEFER for item in items) else tuple(items)


def _is_scattering(index: Any) -> bool:
    """Whether integer arrays say where something is written, and no masks: NumPy does that in any
    case, and a program that waits for their bounds can wait for all of it."""
    items = index if type(index) is tuple else (index,)
    kinds = [item.dtype.kind for item in items if type(item) in (handles.ARRAY, np.ndarray)]
    return bool(kinds) and "b" not in kinds


def _is_awaited(handle: Handle, index: Any, value: Handle) -> bool:
    """Whether a recorded value lies on the host now: of an array whose elements are asked for one
    by one the next is soon, and what index arrays say where to write is stored in any case."""
    if not _is_read_in_parts(handle) or not _is_scattering(index):
        return False
    return _is_brought(value._storage.node) and host_elements(value) is not None


def _is_read_in_parts(handle: Handle) -> bool:
    return host_elements(handle) is not None and use_of(handle) in (IN_PARTS, BY_ROWS)


def _is_brought(node: Node) -> bool:
    """Whether an array that was recorded lies on the host now: computed, where the device works in
    the host's memory."""
    from clfuse.runtime.devices.selection import current_device

    buffer = node.buffer
    if buffer is not None or isinstance(node, LateNode | Part):
        return False
    if math.prod(node.shape) * node.dtype.itemsize > LOOP_NBYTES:
        return False
    if not is_seen_here(current_device()):
        return False
    evaluate_nodes([node])
    buffer = node.buffer
    return type(buffer) is HostBuffer or (type(buffer) is Buffer and bring_to_host(node))


def _index(handle: Handle, index: Any, is_scattered: bool = False) -> Any:
    """An index of arrays on the host and of what NumPy's own indices consist of, or `DEFER`.

    Whoever selects by a mask waits for it: it may cost as much as what else would be done then, and
    so may the rows that it selects of the array.
    """
    items = index if type(index) is tuple else (index,)
    found = []
    work: float = 0
    share = AT_ONCE
    for item in items:
        kind = type(item)
        if kind is handles.ARRAY:
            array = host_elements(item)
            if array is None and item._dtype.kind == "b" and _is_selectable(item._storage.node):
                evaluate_nodes([item._storage.node])
                if stored_elements(item._storage.node) is not None:
                    array = host_elements(item)
            elif (
                array is None
                and _is_read_in_parts(handle)
                and affordable(math.prod(item._shape))
                and _is_brought(item._storage.node)
            ):
                array = host_elements(item)
            if array is None or array.dtype.kind not in "iub":
                return DEFER
            if item._dtype.kind == "b":
                work += max(array.size * MASK_ADDITIONS, math.prod(handle._shape))
                share = SELECTED_SHARE
            else:
                work += array.size * COSTS.gather_additions
            item = array
        elif kind is slice:
            if isinstance(item.start, Handle) or isinstance(item.stop, Handle):
                return DEFER
            if isinstance(item.step, Handle):
                return DEFER
        elif kind is np.ndarray:
            work += item.size * COSTS.gather_additions
        elif not (item is None or item is Ellipsis or kind in INTEGERS):
            return DEFER
        found.append(item)
    if use_of(handle) == SELECTED:
        share = SELECTED_SHARE
    if not is_scattered and not affordable(work / share):
        return DEFER
    return tuple(found) if type(index) is tuple else found[0]


def set_in_place(handle: Handle, index: Any, value: Any) -> bool:
    """Make ``handle[index] = value`` in place; False where that has to be recorded.

    The caller has seen that the array may be written to.
    """
    dtype = handle._dtype
    kind = type(value)
    fits_already = kind is dtype.type or (kind is float and dtype.char == "d")
    if kind is list or kind is tuple:
        value = numbers(value)
        if value is DEFER:
            return False
        fits_already = True
    if not fits_already:
        if kind is handles.ARRAY:
            if not fits(value._dtype, dtype):
                return False
            if host_elements(value) is None and not _is_awaited(handle, index, value):
                return False
        elif kind not in PLAIN and not (kind in SCALARS and fits(value.dtype, dtype)):
            return False
    index = _with_arrays(index)
    if index is DEFER:
        return False
    if type(index) is handles.ARRAY and index._dtype.kind == "b":
        _select(handle._storage.node, index._storage.node)
    found = index
    is_scattered = False
    if type(index) not in INTEGERS:
        for item in index if type(index) is tuple else (index,):
            if type(item) not in INTEGERS:
                is_scattered = _is_scattering(index)
                found = _index(handle, index, is_scattered)
                if found is DEFER:
                    return False
                break
    if kind is handles.ARRAY and not is_scattered:
        size = math.prod(value._shape)
        if not affordable(size) and not affordable(size, handle):
            return False
    with lock:
        if not is_writable_here(handle, found, value) and not (
            is_scattered and _is_brought(handle._storage.node)
        ):
            return False
        array = writable_view(handle)
        if array is None:
            return False
        if kind is handles.ARRAY:
            value = host_elements(value)
        array[found] = value
    return True


_fitting: Final[dict[tuple[np.dtype, np.dtype], bool]] = {}


def fits(source: np.dtype, target: np.dtype) -> bool:
    """Whether NumPy converts from one to the other without a word."""
    try:
        return _fitting[source, target]
    except KeyError:
        return _fitting.setdefault((source, target), np.can_cast(source, target, "same_kind"))
