"""Arrays whose elements lie on the host: found, viewed by indices, and brought there.

To record an operation, to plan it and to return its result takes longer than NumPy needs for some
thousand elements. A loop over elements (``a[i, j] -= a[i, k] * a[k, j]``) would wait for that at
every step. So an operation that costs NumPy next to nothing is eager where all operands lie on the
host already (`runtime.memory.buffers.HostBuffer`: small arrays that came from there, or that were
observed). An operation on anything that is only recorded, or that lies on the device, is recorded.
The compiled part does these operations (`eager`); without it all are recorded.

An element, and every other value for which NumPy returns a scalar, is then a NumPy scalar.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from clfuse.config import settings
from clfuse.engine.evaluate import evaluate_nodes, lock
from clfuse.interpreter.prepared import VIEWED
from clfuse.ir import build, trace
from clfuse.ir.launch_nodes import Part
from clfuse.ir.nodes import Kind, LateNode, Node, Op, Storage, structural
from clfuse.policy.choice import known_works
from clfuse.runtime.devices.selection import current_device
from clfuse.runtime.memory.blocks import pool_of
from clfuse.runtime.memory.buffers import (
    AS_A_WHOLE,
    BY_ROWS,
    HOST_NBYTES,
    IN_PARTS,
    SELECTED,
    Buffer,
    HostBuffer,
    hold_result,
    lend_memory,
    on_host,
)
from clfuse.target.costs import COSTS

from . import handle as handles
from .basic_index import locate
from .handle import DTYPES, Handle, View, node_of
from .memory_order import stride_order, turned_back
from .view_steps import Step

Array = np.ndarray[Any, np.dtype[Any]]

AT_ONCE: Final = 8
"""A part of CLFUSE_HOST_US, one in so many, that an operation may take NumPy to be calculated at
once: 6 us. Of programs of that few operations all would be left to NumPy."""

ADDITIONS_A_US: Final = 1000.0 / (AT_ONCE * COSTS.addition_ns)

FRESH_SHARE: Final = 8 * COSTS.fresh_nbyte_ns / COSTS.addition_ns
"""Additions that memory takes for an element of a large result."""

FEW_ADDITIONS: Final = 600
"""Up to so much work NumPy has done an operation before it could be recorded, and a kernel had done
it together with all others. More work on arrays that came as a whole (`AS_A_WHOLE`) is recorded."""

SELECTED_SHARE: Final = 8 * AT_ONCE
"""The same of arrays that masks select from (`SELECTED`): the size of what is selected is waited
for, and what comes next has another size each time, so a plan and launches of its own. In a loop of
selections a round with a few operations took 2 to 4 ms on PoCL, for 10,000 to 250,000 elements."""

ROWS_SHARE: Final = AT_ONCE
"""Times that part of CLFUSE_HOST_US that an operation may take with arrays of which a loop reads
rows (`BY_ROWS`): to evaluate it takes longer, and the next row needs it."""

DEFER: Final = object()
"""The answer of functions here that leave an operation to be recorded."""

LOOKED_AT_NBYTES: Final = 1 << 15
"""Up to this size a stored array that is read is copied to the host: nobody waits for the device
when it is written to then. Larger ones are read in their own memory
(`runtime.memory.buffers.lend_memory`)."""

ROW_NBYTES: Final = 1 << 20
"""As `LOOKED_AT_NBYTES`, where the device does not work in the host's memory, for an array of which
a row is asked for; of any device, for one of one value all over that is written to in part: in a
loop, as a rule, of a launch for each row. Copied in 0.1 ms."""

LOOP_NBYTES: Final = 1 << 25
"""As `ROW_NBYTES`, for a recorded array of which a loop reads or writes rows, where the device
works in the host's memory: nothing is copied, but what is recorded later does not fuse with it."""

PRODUCT_SHARE: Final = 4
"""Times CLFUSE_HOST_US that a product of vectors and matrices may take: a kernel would read the
same operands as long, besides its launch, and most programs do no more with them than that."""

ROWS_OF_A_LOOP: Final = 16
"""So many rows of one recorded array are asked for, or written to, by a loop. A part of the same
number of axes is such a row, a window, where so many of them are no more than the array."""

ROWS_OF_A_STATEMENT: Final = 8

ROWS_OF_A_PRODUCT: Final = 4
"""For so many rows counts one that is multiplied by a vector or matrix: a pass over its data each,
and a kernel for each shape where rows are of different lengths."""

PLAIN: Final = frozenset((float, int, bool, complex))
INTEGERS: Final = frozenset((int, *[np.dtype(char).type for char in "bBhHiIlLqQ"]))
SCALARS: Final = frozenset((*PLAIN, *[dtype.type for dtype in DTYPES.values()]))

NATIVE_DTYPES: Final[dict[np.dtype, np.dtype]] = {dtype: dtype for dtype in DTYPES.values()}
LEAVES: Final[dict[np.dtype, Op]] = {
    dtype: structural(Kind.LEAF, "leaf", dtype) for dtype in DTYPES.values()
}
_new: Final[Any] = object.__new__



# -- reading --------------------------------------------------------------------------------------


class Indexed(View):
    """A view by NumPy's basic indices, whose offset and strides nobody has asked for yet.

    start: the view that was indexed, None for the whole storage in C order.
    path: the indices, or `Step`, each for what the one before gives; up to `LONGEST_PATH`.
    """

    __slots__ = ("_layout", "_shape", "path", "start")
    path: tuple[Any, ...]
    start: tuple[tuple[int, ...], View] | None
    _shape: tuple[int, ...]
    _layout: tuple[int, tuple[int, ...]] | None

    def _locate(self) -> tuple[int, tuple[int, ...]]:
        if self._layout is None:
            shape, offset = self._shape, 0
            if self.start is None:
                strides = handles.c_strides(shape)
            else:
                offset, strides = self.start[1].offset, self.start[1].strides
            for index in self.path:
                if type(index) is Step:
                    shape, offset, strides = index.layout(shape, offset, strides)
                    continue
                found = locate(shape, offset, strides, index)
                assert found is not None
                shape, offset, strides, _ = found
            self._layout = offset, strides
        return self._layout

    @property
    def offset(self) -> int:  # type: ignore[override]
        """In elements, as of every view."""
        return self._locate()[0]

    @property
    def strides(self) -> tuple[int, ...]:  # type: ignore[override]
        """In elements, as of every view."""
        return self._locate()[1]


def host_elements(handle: Handle) -> Array | None:
    """The array's elements in their own memory, if that is on the host. Not to be written to."""
    buffer = handle._storage.node.buffer
    if type(buffer) is not HostBuffer:
        return None
    return buffer.array if handle._view is None else view_elements(buffer.array, handle)


def known_elements(handle: Handle) -> Array | None:
    """`host_elements`, and one value all over: what is known without anything to wait for."""
    node = handle._storage.node
    if node.buffer is None and node.op.kind is Kind.VIEW:
        (node,) = node.inputs
    if node.buffer is None and node.op.kind is Kind.CONSTANT:
        return np.broadcast_to(node.param, handle._shape)
    return host_elements(handle)


def operand_of(handle: Handle) -> Node:
    """`arrays.handle.node_of`, and of one number that lies on the host a constant of the program,
    which kernels take without memory."""
    if not is_number(handle):
        return node_of(handle)
    node = handle._storage.node
    value = node.buffer.array.reshape(-1)[0]
    return build.full(value, node.shape) if value.dtype is node.dtype else node


def is_number(handle: Handle) -> bool:
    """Whether it is one number that lies on the host."""
    buffer = handle._storage.node.buffer
    return type(buffer) is HostBuffer and buffer.array.size == 1 and handle._view is None


def view_elements(array: Array, handle: Handle) -> Array:
    """What a view sees of the elements of its storage, in their memory."""
    view = handle._view
    if type(view) is Indexed:
        if view.start is not None:
            shape, view_below = view.start
            array = strided_elements(array, shape, handle._dtype, view_below)
        for index in view.path:
            array = index.taken(array) if type(index) is Step else array[index]
        return array
    return strided_elements(array, handle._shape, handle._dtype, view)  # type: ignore[arg-type]


def strided_elements(array: Array, shape: tuple[int, ...], dtype: np.dtype, view: View) -> Array:
    """Elements of a storage by offset and strides, in their memory."""
    if 0 in shape:
        return np.empty(shape, dtype)
    size = dtype.itemsize
    return np.ndarray(
        shape, dtype, array, view.offset * size, [stride * size for stride in view.strides]
    )


LONGEST_PATH: Final = 8
"""Steps of a view of views that are made one by one; more come of ``x = x[1:]`` in a loop."""

_BASIC: Final = frozenset((*INTEGERS, slice, type(None), type(Ellipsis)))


def _is_basic(index: Any) -> bool:
    return all(type(item) in _BASIC for item in (index if type(index) is tuple else (index,)))


def is_at(view: Handle, handle: Handle, index: Any) -> bool:
    """Whether `view` is known to be ``handle[index]``, without a look at where that is."""
    found = view._view
    return (
        type(found) is Indexed
        and _is_basic(index)
        and found.start is None
        and handle._view is None
        and view._dtype is handle._dtype
        and found.path == (index,)
    )


def host_element(handle: Handle, offset: int) -> Any:
    """The element at a storage position as a scalar of NumPy's; `DEFER` where it is not here."""
    node = handle._storage.node
    array = None if standard[0] else stored_elements(node)
    if array is None:
        return DEFER
    dtype = handle._dtype
    if dtype is node.dtype:
        return array.flat[offset]
    return np.ndarray((), dtype, array, offset * dtype.itemsize)[()]


def stored_elements(node: Node) -> Array | None:
    """The elements of a node where they can be read on the host; waits for those that a device
    computes. For the length of one operation, and not to be written to."""
    buffer = node.buffer
    if type(buffer) is HostBuffer:
        return buffer.array
    if type(buffer) is not Buffer:
        return None
    return node.buffer.array if bring_to_host(node, LOOKED_AT_NBYTES) else None


def is_calculated_here(device: Any) -> bool:
    """Whether NumPy may do what is recorded for a device."""
    return bool(settings.host_us and settings.fusion and device.fp64)


def is_seen_here(device: Any) -> bool:
    """Whether NumPy may look into a device's memory at the call: no copy, and nobody traces."""
    return trace.active() is None and is_calculated_here(device) and device.shares_memory


def bring_to_host(node: Node, most_nbytes: int = ROW_NBYTES) -> bool:
    """Whether an array that was stored in memory of the device lies on the host now: a small one
    copied, a large one where it was, if the device works in the host's memory.

    A program that reads a row will read the next one. On a device with memory of its own the read
    is recorded instead: its value would have to wait for everything that is under way.
    """
    buffer = node.buffer
    if not buffer.device.traits.unified_memory or not is_calculated_here(buffer.device):
        return False
    with lock:
        if type(node.buffer) is not Buffer:  # another thread was faster
            return type(node.buffer) is HostBuffer
        is_small = buffer.nbytes <= most_nbytes
        found = (on_host if is_small else lend_memory)(buffer, node.dtype, node.shape)
        if found is not None:
            node.buffer = found
    return found is not None


def expect_rows(storage: Storage, shape: tuple[int, ...], count: int = 1) -> None:
    """Bring an array to the host, of which a row or window of `shape` is asked for, or written to:
    the next ones will be, too. `count` says for how many rows this one stands.

    One that was only recorded is computed, once so many rows of it were asked for that it must be a
    loop. Large ones, of large rows, stay where they are.
    """
    node = storage.node
    buffer = node.buffer
    if buffer is None and (
        # Of a launch: its next call takes the next row.
        isinstance(node, LateNode | Part) or not settings.host_us or node.op.kind in VIEWED
    ):
        return
    nbytes = math.prod(node.shape) * node.dtype.itemsize
    if nbytes > ROW_NBYTES and not affordable(math.prod(shape)):
        return
    if type(buffer) is Buffer:
        bring_to_host(node)
        return
    if buffer is not None or not affordable(math.prod(shape)):
        return
    if nbytes > ROW_NBYTES and (nbytes > LOOP_NBYTES or not works_in_place()):
        return
    rows = storage.rows = getattr(storage, "rows", 0) + count
    # Not once alone: the statement that it comes in the midst of may have recorded a part already.
    if rows >= ROWS_OF_A_LOOP and rows % ROWS_OF_A_LOOP < ROWS_OF_A_STATEMENT and (
        trace.active() is None
    ):
        evaluate_nodes([node])
        if type(node.buffer) is Buffer:
            bring_to_host(node)


def is_passed(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    """Whether a part of `shape` is one of many that a loop goes through, as it seems: a row, or a
    window of a small share of the array. Stencils and halves are no windows."""
    if len(shape) < len(whole):
        return True
    return 0 < math.prod(shape) * ROWS_OF_A_LOOP <= math.prod(whole)


def expect_writes(storage: Storage, shape: tuple[int, ...]) -> bool:
    """Whether the array lies on the host now, to whose part of `shape` something is written.

    One of which nothing was recorded lately but writes to parts is computed: it must be a loop.
    """
    node = storage.node
    if not settings.host_us or not affordable(math.prod(shape)) or trace.active() is not None:
        return False
    for _ in range(ROWS_OF_A_LOOP):
        if node.buffer is not None or isinstance(node, LateNode):
            return False
        if node.op.kind is not Kind.UPDATE:
            return False
        node = node.inputs[0]
    node = storage.node
    if math.prod(node.shape) * node.dtype.itemsize > LOOP_NBYTES or not works_in_place():
        return False
    del node  # what is written to lies in its old memory where nobody else holds it
    evaluate_nodes([storage.node])
    node = storage.node
    return type(node.buffer) is HostBuffer or (type(node.buffer) is Buffer and bring_to_host(node))


def works_in_place() -> bool:
    """Whether the device that computes what was recorded works in the host's memory; until one is
    opened NumPy does."""
    device = current_device()
    return device.may_wait or pool_of(device).in_place


standard: Final = [False]
"""Whether somebody has asked an array for its namespace (``__array_namespace__``): by the array API
standard what comes of arrays is of their namespace, and NumPy's scalars are of another."""

# -- results --------------------------------------------------------------------------------------


def wrap_result(value: Any, device: Any) -> Any:
    """What NumPy has calculated as one of ours: scalars stay NumPy's, unless `standard`."""
    if type(value) is not np.ndarray:
        if standard[0] and type(value) in SCALARS:
            return handles.result(wrap_result(np.asarray(value), device)._storage.node)
        return value
    found = value.dtype
    dtype = NATIVE_DTYPES.get(found)
    if dtype is None or (dtype is not found and found.metadata is not None):
        return value
    if not value.flags.c_contiguous:
        return _turned(value, device)
    # Objects are made without their constructors: it takes half the time.
    shape = value.shape
    if value.nbytes > HOST_NBYTES:
        buffer = hold_result(device, value)
    else:
        buffer = _new(HostBuffer)
        buffer.device = device
        buffer.array = value
        buffer.copy = buffer.memory = buffer.window = None
        buffer.use = IN_PARTS
    storage = _new(Storage)
    storage.node = leaf(buffer, shape, dtype)
    handle = _new(handles.ARRAY)
    handle._storage = storage
    handle._shape = shape
    handle._dtype = dtype
    handle._view = None
    return handle


def _turned(value: Array, device: Any) -> Any:
    """`wrap_result` of an array whose axes lie in another order, or that is a view."""
    order = stride_order(value.shape, value.strides)
    if order is None:
        return wrap_result(np.ascontiguousarray(value), device)
    return turned_back(wrap_result(np.ascontiguousarray(value.transpose(order)), device), order)


def make_filled(value: np.generic, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """A small array of one value all over, to be written to and calculated with at once, or
    `DEFER`."""
    size = math.prod(shape)
    if size < 2 or not affordable(size) or trace.active() is not None:
        return DEFER
    device = current_device()
    return wrap_result(np.full(shape, value, dtype), device) if device.fp64 else DEFER


def leaf(buffer: HostBuffer, shape: tuple[int, ...], dtype: np.dtype) -> Node:
    """A node for elements that lie in a buffer."""
    node = _new(Node)
    node.op = LEAVES[dtype]
    node.inputs = ()
    node.shape = shape
    node.dtype = dtype
    node.param = None
    node.buffer = buffer
    node.computed = False
    return node  # type: ignore[no-any-return]


# -- what is done at once -------------------------------------------------------------------------


def affordable(additions: float, *operands: Any) -> bool:
    """Whether so much work is done at once; with these operands, by what was done with them."""
    if operands and additions > FEW_ADDITIONS:
        use = max([use_of(operand) for operand in operands])
        if additions in known_works:
            use = max(use, BY_ROWS)
        if use == AS_A_WHOLE:
            return False
        if use == BY_ROWS:
            additions /= ROWS_SHARE
        elif use == SELECTED:
            additions /= SELECTED_SHARE
    return additions <= settings.host_us * ADDITIONS_A_US and settings.fusion


def use_of(operand: Any) -> int:
    """What was done with an operand that lies on the host; with all others nothing that counts."""
    if not isinstance(operand, Handle):
        return AS_A_WHOLE
    buffer = operand._storage.node.buffer
    return buffer.use if type(buffer) is HostBuffer else AS_A_WHOLE
