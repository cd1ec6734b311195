"""Gathers: integer arrays as indices, checked at the call.

A selected element is loaded at a computed position: its place in the C order of the storage is a
sum of ``index * stride`` over the indexed axes, an expression of the index arrays like any other,
plus the affine part of slices. So index arrays fuse into the kernel that loads, and the loaded
elements fuse into the operations that read them. Only the array that is selected from must lie in
memory.

No kernel may load outside of that array, and NumPy raises at the call. So every index is bounded
before a node is recorded. Index arrays on the host are read at the call. Of those on the device,
`ir.value_ranges` knows many bounds without reading them (bytes into a table of 256, remainders,
results of argmin): these stay lazy. For the others the smallest and the largest element are
computed and waited for, once for an array. The bounds stay with its node, so a loop over the same
index array, or over parts of it, waits the first time only. Clamping in the kernel and raising
later would save that wait, but the error would not come from the place of the mistake, and
``except IndexError`` would not see it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np

from clfuse.arrays import errstate
from clfuse.arrays import handle as handles
from clfuse.arrays.basic_index import integer_of
from clfuse.arrays.conversion import NotNative, as_handle, contains_handles, host_node
from clfuse.arrays.expressions import combine, convert, scalar
from clfuse.arrays.handle import DTYPES, Handle, keep_bytes, layout, node_of
from clfuse.arrays.promotion import INT64, UINT64
from clfuse.dataclass import mutable
from clfuse.dispatch.host_call import count_copies
from clfuse.engine.evaluate import evaluate_nodes, lock
from clfuse.engine.evaluate import host_view as stored_view
from clfuse.ir import build, trace
from clfuse.ir.nodes import Kind, Node, rebind
from clfuse.ir.value_ranges import Range, range_of

INDEX_LIMIT: Final = 2**31 - 2**16
"""Storages of fewer elements have positions of 32 bits: twice the lanes."""

POSITION: Final = DTYPES["int32"]

_MOST_ARRAYS: Final = 32
"""From so many index arrays on NumPy raises: its iterator takes 64 operands, two for each."""

_WORTH_COMPUTING: Final = 8
"""How much larger than a part of it an array may be to be computed and measured as a whole."""


@mutable
class Indexed:
    """One array among the indices, and the axis that it selects from."""

    node: Node
    extent: int
    stride: int
    range: Range


@mutable
class Selection:
    """A checked index with arrays in it.

    shape: of what is selected.
    offset, strides: where slices and integers lead, in elements of the storage; strides over
        `shape`.
    common: the shape that the arrays have together.
    behind: axes of `shape` behind those of `common`.
    template: the index itself, as `host_steps.index_of` reads it.
    """

    shape: tuple[int, ...] = ()
    offset: int = 0
    strides: tuple[int, ...] = ()
    arrays: list[Indexed] = field(default_factory=list)
    common: tuple[int, ...] = ()
    behind: int = 0
    template: tuple[Any, ...] = ()

    def position(self, size: int) -> Node | None:
        """The sum of ``index * stride``, for a storage of `size` elements; None where it is 0."""
        # Narrowing what is loaded wide would cost an operation and win no lanes.
        wide = any(array.node.dtype.itemsize > 4 for array in self.arrays)
        dtype = INT64 if wide or size >= INDEX_LIMIT else POSITION
        total: Node | None = None
        for array in self.arrays:
            if array.extent == 1:
                continue
            term = convert(array.node, dtype)
            if array.range[0] < 0:
                extent = scalar(array.extent, dtype)
                term = build.apply("wrap_index", (term, extent), dtype, term.shape)
            if array.stride != 1:
                term = combine(np.multiply, term, scalar(array.stride, dtype))
            total = term if total is None else combine(np.add, total, term)
        if total is None:
            return None
        if total.shape != self.common:
            total = build.broadcast(total, self.common)
        return build.reshape(total, self.common + (1,) * self.behind) if self.behind else total


# -- bounds ---------------------------------------------------------------------------------------


def _measured_base(node: Node) -> Node:
    """The array whose bounds answer for `node`: what it is a view of."""
    base = node
    while base.op.kind is Kind.VIEW and base.buffer is None:
        (base,) = base.inputs
    computed = base.buffer is not None or base.op.kind is Kind.CONSTANT
    if computed or math.prod(base.shape) <= _WORTH_COMPUTING * math.prod(node.shape):
        return base
    return node


def bounds_of(node: Node) -> Range:
    """What the elements of an integer node that is not empty lie between; waits for the device.

    What is found stays with the node; of a view, with what it looks at, unless that would have to
    be computed first and is much larger.
    """
    base = _measured_base(node)
    known = getattr(base, "measured", None)
    if known is None:
        axes = tuple(range(len(base.shape)))
        if base.op.kind is Kind.CONSTANT or not axes:
            evaluate_nodes([base])
            value = int(stored_view(base)) if base.buffer is not None else int(base.param)
            known = value, value
        else:
            low, high = (build.reduce(n, base, axes, base.dtype) for n in ("minimum", "maximum"))
            evaluate_nodes([low, high] if base.buffer is not None else [base, low, high])
            known = int(stored_view(low)), int(stored_view(high))
        base.measured = known
    return known


def exact_bounds_of(node: Node) -> Range:
    """`bounds_of` these elements and no others: of a view, not of the array that it looks at."""
    if _measured_base(node) is not node:
        node = build.apply("positive", (node,), node.dtype, node.shape)
    return bounds_of(node)


def _is_checked_at_calls(node: Node, extent: int, tracing: trace.Trace) -> bool:
    """Whether `node` is an array that a traced function was given, or a view of one: every call
    looks at its bounds, as it would without `jit`."""
    views = []
    base = node
    while base.op.kind is Kind.VIEW and base.buffer is None:
        views.append((base.shape, *base.param))
        (base,) = base.inputs
    if type(base.buffer) is not trace.Placeholder:
        return False
    tracing.indices.append((base.buffer.number, tuple(reversed(views)), extent))
    return True


def check_bounds(node: Node, views: tuple[Any, ...], extent: int) -> None:
    """Raise IndexError where the view of an index array leaves its axis."""
    for shape, offset, strides in views:
        node = build.view(node, shape, offset, strides)
    if within(node, extent) is None:
        low, high = exact_bounds_of(node)
        raise IndexError(
            f"index {low if low < -extent else high} is out of bounds for an axis with size "
            f"{extent}"
        )


def within(node: Node, extent: int) -> Range | None:
    """The range of an index array; None where an element of it is outside of the axis."""
    found = range_of(node)
    if -extent <= found[0] and found[1] < extent:
        return found
    tracing = trace.active()
    if tracing is not None and _is_checked_at_calls(node, extent, tracing):
        return -extent, extent - 1
    found = bounds_of(node)
    if -extent <= found[0] and found[1] < extent:
        return found
    if _measured_base(node) is node:
        return None
    # A part of the array that was measured may be inside where the whole is not.
    found = exact_bounds_of(node)
    return found if -extent <= found[0] and found[1] < extent else None


# -- index arrays ---------------------------------------------------------------------------------


def index_array(item: Any) -> Any:
    """An index item as an integer handle or NumPy array; None where NumPy would refuse it.

    Raises NotNative: for masks.
    """
    if isinstance(item, Handle):
        found: Any = item
    elif isinstance(item, list | tuple) and contains_handles(item):
        found = as_handle(item)
    elif isinstance(item, list | tuple | np.ndarray):
        try:
            found = np.asarray(item)
        except ValueError:
            return None
        if not found.size and not isinstance(item, np.ndarray):
            found = found.astype(np.intp)
    else:
        return None
    if found.dtype.kind == "b":
        raise NotNative("an index holds a mask")
    return found if found.dtype.kind in "iu" else None


def index_into_axis(array: Any, extent: int, stride: int) -> Indexed | None:
    """The array as an index into an axis; None where it leaves the axis. It is not empty."""
    if isinstance(array, Handle):
        node = node_of(array)
        if node.dtype is UINT64:
            node = build.cast(node, INT64)
        found = within(node, extent)
        return None if found is None else Indexed(node, extent, stride, found)
    if array.dtype == UINT64 or not array.dtype.isnative:
        array = array.astype(np.int64)
    low, high = int(array.min()), int(array.max())
    if low < -extent or high >= extent:
        return None
    if low < 0:
        array = np.where(array < 0, array.astype(np.int64) + extent, array)
    if extent < INDEX_LIMIT and array.dtype.itemsize > 4:
        array = array.astype(np.int32)
    return Indexed(host_node(array), extent, stride, (0, extent - 1))


# -- parsing --------------------------------------------------------------------------------------


def parse(
    shape: tuple[int, ...], offset: int, strides: tuple[int, ...], index: Any
) -> Selection | None:
    """What an index selects from an array that lies so on its storage.

    Returns
    -------
    Selection or None
        None where NumPy has to say what happens: it raises, or nothing is selected.

    Raises
    ------
    NotNative
        For masks.
    """
    if type(index) is handles.ARRAY and shape and index._dtype.kind in "iu":
        return _along_first(shape, offset, strides, index)
    items = _spread(index if type(index) is tuple else (index,), len(shape))
    if items is None:
        return None
    chosen = Selection(offset=offset)
    dims: list[tuple[int, int]] = []
    arrays: list[tuple[Any, int]] = []
    template: list[Any] = []
    groups: list[int] = []  # places among `dims` where a run of arrays and integers begins
    runs = False
    axis = 0
    for item in items:
        if item is None or item is Ellipsis or type(item) is slice:
            runs = False
            if item is None:
                dims.append((1, 0))
            elif item is not Ellipsis:
                start, stop, step = item.indices(shape[axis])
                count = len(range(start, stop, step))
                if count:
                    chosen.offset += start * strides[axis]
                dims.append((count, strides[axis] * step))
                item = ("slice", item.start, item.stop, item.step)
                axis += 1
            template.append(item)
            continue
        if not runs:
            groups.append(len(dims))
        runs = True
        if isinstance(item, int):
            if not -shape[axis] <= item < shape[axis]:
                return None
            chosen.offset += item % shape[axis] * strides[axis]
            template.append(item)
        else:
            template.append(("array", len(arrays)))
            arrays.append((item, axis))
        axis += 1
    if len(arrays) >= _MOST_ARRAYS:
        return None
    try:
        chosen.common = np.broadcast_shapes(*[tuple(array.shape) for array, _ in arrays])
    except ValueError:
        return None
    place = groups[0] if len(groups) == 1 else 0
    common = [(extent, 0) for extent in chosen.common]
    every = dims[:place] + common + dims[place:]
    chosen.shape = tuple([extent for extent, _ in every])
    chosen.strides = tuple([stride for _, stride in every])
    chosen.behind = len(dims) - place
    chosen.template = tuple(template)
    if 0 in chosen.shape or any(0 in array.shape for array, _ in arrays):
        return None
    for array, axis in arrays:
        found = index_into_axis(array, shape[axis], strides[axis])
        if found is None:
            return None
        chosen.arrays.append(found)
    return chosen


def _along_first(
    shape: tuple[int, ...], offset: int, strides: tuple[int, ...], index: Handle
) -> Selection | None:
    """`parse` for one array of the device alone: what programs write most."""
    common = index._shape
    chosen = common + shape[1:]
    if 0 in chosen or not shape[0]:
        return None
    found = index_into_axis(index, shape[0], strides[0])
    if found is None:
        return None
    steps = (0,) * len(common) + strides[1:]
    template = (("array", 0),)
    return Selection(chosen, offset, steps, [found], common, len(shape) - 1, template)


def _spread(index: tuple[Any, ...], rank: int) -> list[Any] | None:
    """The items of an index, one an axis; an Ellipsis stays in front of the slices it stands for.

    Integers are plain ones, arrays handles or NumPy's. None where NumPy refuses the index.
    """
    items: list[Any] = []
    for item in index:
        if item is None or item is Ellipsis or type(item) is slice:
            items.append(item)
        elif type(item) is bool or isinstance(item, np.bool_):
            raise NotNative("an index holds a mask")
        elif isinstance(item, int | np.integer) or (
            type(item) in handles.SCALARS and item._dtype.kind in "iu"
        ):
            items.append(int(item))
        elif (number := integer_of(item)) is not None:
            items.append(number)
        else:
            array = index_array(item)
            if array is None:
                return None
            items.append(array)
    given = sum(1 for item in items if item is not None and item is not Ellipsis)
    dots = [place for place, item in enumerate(items) if item is Ellipsis]
    if given > rank or len(dots) > 1:
        return None
    rest = [slice(None)] * (rank - given)
    if not dots:
        return items + rest
    place = dots[0]
    return items[: place + 1] + rest + items[place + 1 :]


# -- reading --------------------------------------------------------------------------------------


def source_of(handle: Handle) -> tuple[Node, int, tuple[int, ...]]:
    """The node to load an array's elements from, with offset and strides of the array in it.

    That is the storage, unless only a small part of it would have to be computed.
    """
    stored = handle._storage.node
    if stored.dtype is handle._dtype and (
        stored.buffer is not None or 2 * math.prod(handle._shape) >= math.prod(stored.shape)
    ):
        return stored, *layout(handle)
    return node_of(handle), 0, handles.c_strides(handle._shape)


def gather_elements(source: Node, chosen: Selection) -> Node:
    """What a selection selects from the storage `source`."""
    position = chosen.position(math.prod(source.shape))
    if position is None:
        strides = tuple(
            [0 if n == 1 else s for n, s in zip(chosen.shape, chosen.strides, strict=True)]
        )
        return build.view(source, chosen.shape, chosen.offset, strides)
    return build.gather(source, position, chosen.shape, chosen.offset, chosen.strides)


def numpys_selection(shape: Sequence[int], index: Any) -> np.ndarray:
    """What NumPy says about an index into an array of this shape: mostly its error.

    The array has no contents; what is selected from it has, and must be small.
    """
    selection: np.ndarray = np.broadcast_to(np.False_, tuple(shape))[index]
    return selection


# -- writing --------------------------------------------------------------------------------------


def mutate(
    handle: Handle,
    name: str,
    operands: Sequence[Node],
    extra: Any,
    *,
    counted: bool = True,
    called: str = "",
) -> None:
    """Record that NumPy changes the array through `host_steps.FUNCTIONS[name]`.

    On a device that shares the host's memory nothing is copied, except the array itself where
    somebody else still needs its old contents; other devices copy, which counts as a fallback.

    Parameters
    ----------
    handle : Handle
        May be written to; has elements.
    operands : sequence of Node
        Besides the array.
    extra : hashable
    counted : bool
        Whether the host does it, also on devices that do not share its memory.
    called : str
        What NumPy warns of floating-point errors in, if it does.
    """
    if counted:
        count_host_library(name)
    storage = handle._storage
    char = handle._dtype.char
    view = (char, handle._shape, *layout(handle))
    shapes = tuple([node.shape for node in operands])
    others = [_unstretched(node) for node in operands]
    with lock:
        keep_bytes(handle)
        old = storage.node
        made = build.library(name, (old, *others), old.shape, old.dtype, (view, shapes, extra))
        rebind(storage, errstate.apply_errstate(made, called))


def count_host_library(name: str) -> None:
    """Count a step that NumPy makes as a fallback, on devices where it copies."""
    count_copies(name, "only the host counts and writes through indices")


def _unstretched(node: Node) -> Node:
    """The constant that `node` repeats; itself if it is no such thing."""
    if node.op.kind is Kind.VIEW and node.buffer is None:
        (inner,) = node.inputs
        if inner.op.kind is Kind.CONSTANT:
            return inner
    return node
