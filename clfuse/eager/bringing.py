"""Arrays that are brought to the host because a loop reads or writes their parts there.

The compiled part indexes, writes to and multiplies what lies on the host. Where something of that
is only recorded, or lies in memory of the device, the functions here decide whether it is computed
and brought to the host first; then the compiled part is asked once more. Without the compiled part
nothing is brought: all is recorded.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from clfuse._core import loading
from clfuse.arrays import handle as handles
from clfuse.arrays.handle import Handle
from clfuse.arrays.host_array import (
    AT_ONCE,
    DEFER,
    INTEGERS,
    LOOP_NBYTES,
    PLAIN,
    PRODUCT_SHARE,
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
)
from clfuse.engine.evaluate import evaluate_nodes, lock
from clfuse.ir.launch_nodes import Part
from clfuse.ir.nodes import Kind, LateNode, Node
from clfuse.runtime.devices.selection import current_device
from clfuse.runtime.memory.buffers import BY_ROWS, IN_PARTS, Buffer, HostBuffer

from .writes import is_writable_here

MASK_ADDITIONS: Final = 4
"""Additions an element of a mask that selects."""


# -- reading --------------------------------------------------------------------------------------


def get_by_arrays(handle: Handle, index: Any) -> Any:
    """``handle[index]`` for an index with arrays in it, or `DEFER`."""
    core = loading.load()
    if core is None:
        return DEFER
    if _is_mask(index):
        _select(handle._storage.node, index._storage.node)
    elif handle._storage.node.buffer is None:
        _expect_choices(handle, index)
    if handle._storage.node.buffer is None or not _is_index_here(handle, index):
        return DEFER
    return core.choose(handle, index)


def _is_mask(index: Any) -> bool:
    return type(index) is handles.ARRAY and index._dtype.kind == "b"


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
    return is_seen_here(current_device() if buffer is None else buffer.device)


def _is_index_here(handle: Handle, index: Any) -> bool:
    """Whether the arrays of an index lie on the host now. Whoever selects by a mask waits for it;
    of an array whose elements are asked for one by one the next is soon."""
    for item in index if type(index) is tuple else (index,):
        if type(item) is not handles.ARRAY or host_elements(item) is not None:
            continue
        node = item._storage.node
        if item._dtype.kind == "b":
            if not _is_selectable(node):
                return False
            evaluate_nodes([node])
            if stored_elements(node) is None:
                return False
        elif not (
            _is_read_in_parts(handle) and affordable(math.prod(item._shape)) and _is_brought(node)
        ):
            return False
    return True


def _is_read_in_parts(handle: Handle) -> bool:
    return host_elements(handle) is not None and use_of(handle) in (IN_PARTS, BY_ROWS)


def _is_brought(node: Node) -> bool:
    """Whether an array that was recorded lies on the host now: computed, where the device works in
    the host's memory."""
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


# -- writing --------------------------------------------------------------------------------------


def set_in_place(handle: Handle, index: Any, value: Any) -> bool:
    """Make ``handle[index] = value`` in place; False where that has to be recorded.

    The caller has seen that the array may be written to.
    """
    core = loading.load()
    if core is None:
        return False
    is_scattered = _is_scattering(index)
    kind = type(value)
    if kind is handles.ARRAY:
        if not is_converted(value._dtype, handle._dtype):
            return False
        if host_elements(value) is None and not (is_scattered and _is_awaited(handle, value)):
            return False
        size = math.prod(value._shape)
        if not (is_scattered or affordable(size) or affordable(size, handle)):
            return False
    elif not (
        kind is list or kind is tuple or kind in PLAIN
        or (kind in SCALARS and is_converted(value.dtype, handle._dtype))
    ):
        return False
    if _is_mask(index):
        _select(handle._storage.node, index._storage.node)
    if not _is_index_here(handle, index):
        return False
    with lock:
        if not is_writable_here(handle, index, value) and not (
            is_scattered and _is_brought(handle._storage.node)
        ):
            return False
        return core.put(handle, index, value)  # type: ignore[no-any-return]


def _is_scattering(index: Any) -> bool:
    """Whether integer arrays say where something is written, and no masks: NumPy does that in any
    case, and a program that waits for their bounds can wait for all of it."""
    kinds = [_kind_of(item) for item in (index if type(index) is tuple else (index,))]
    return any(kinds) and all(kind in "iu" for kind in kinds)


def _kind_of(item: Any) -> str:
    """The kind of dtype of an index that is an array, or a list of integers, say; else nothing."""
    if type(item) is handles.ARRAY or type(item) is np.ndarray:
        return str(item.dtype.kind)
    if type(item) is not list:
        return ""
    return "i" if item and all(type(number) in INTEGERS for number in item) else "O"


def _is_awaited(handle: Handle, value: Handle) -> bool:
    """Whether a recorded value lies on the host now: of an array whose elements are asked for one
    by one the next is soon, and what index arrays say where to write is stored in any case."""
    if not _is_read_in_parts(handle):
        return False
    return _is_brought(value._storage.node) and host_elements(value) is not None


MOST_FITTING: Final = 1024
"""Entries of `_fitting`: a program that makes ever other dtypes of records would fill it."""

_fitting: Final[dict[tuple[np.dtype, np.dtype], bool]] = {}


def is_converted(source: np.dtype, target: np.dtype) -> bool:
    """Whether NumPy may convert from one to the other without a word, by the values that there are:
    of floats to integers the compiled part looks at those."""
    return fits(source, target) or (source.kind == "f" and target.kind in "iu")


def fits(source: np.dtype, target: np.dtype) -> bool:
    """Whether NumPy converts from one to the other without a word."""
    try:
        return _fitting[source, target]
    except KeyError:
        if len(_fitting) >= MOST_FITTING:
            _fitting.clear()
        return _fitting.setdefault((source, target), np.can_cast(source, target, "same_kind"))


# -- products -------------------------------------------------------------------------------------


def bring_factors(one: Handle, two: Handle) -> bool:
    """Whether both factors of a product, at least one of which did not lie on the host, do now: of
    one that lies there and one that a device has stored, or of a row of a matrix that a loop goes
    through."""
    nodes = one._storage.node, two._storage.node
    if type(nodes[0].buffer) is not HostBuffer and type(nodes[1].buffer) is not HostBuffer:
        row = one if len(one._shape) == 1 else two
        if row._view is None or len(row._shape) != 1 or len(row._storage.node.shape) == 1:
            return False
        expect_rows(row._storage, row._shape, ROWS_OF_A_PRODUCT)
        if type(row._storage.node.buffer) is not HostBuffer:
            return False
    columns = 1 if len(two._shape) < 2 else two._shape[-1]
    additions = max(math.prod(one._shape) * columns, math.prod(two._shape))
    if not affordable(additions / (AT_ONCE * PRODUCT_SHARE)):
        return False
    return all(stored_elements(array._storage.node) is not None for array in (one, two))
