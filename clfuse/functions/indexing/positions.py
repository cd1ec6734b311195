"""Positions in arrays: several indices to one and back, and writes to diagonals."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from clfuse.arrays.conversion import NotNative, as_handle, copied_node
from clfuse.arrays.expressions import broadcast_shapes, combine, convert, scalar
from clfuse.arrays.handle import (
    Handle,
    c_strides,
    is_writeable,
    layout,
    node_of,
    result,
    view_of,
    write,
)
from clfuse.arrays.promotion import INT64
from clfuse.arrays.views import requested_shape
from clfuse.dispatch.host_call import native
from clfuse.ir import build
from clfuse.ir.nodes import Node

from .gathering import exact_bounds_of, within

INTP_MAX: Final = int(np.iinfo(np.intp).max)


def _steps(shape: tuple[int, ...], order: Any) -> tuple[int, ...]:
    if order not in ("C", "F"):
        raise NotNative("by this order")
    return c_strides(shape) if order == "C" else c_strides(shape[::-1])[::-1]


def _indices(value: Any) -> Node:
    handle = as_handle(value)
    if handle._dtype.kind not in "iu" or 0 in handle._shape:
        raise NotNative("by indices of another kind")
    return node_of(handle)


@native(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: Any = "C") -> Any:
    """Where elements with these indices lie in the flat array.

    Indices that may be outside are looked at, that is waited for.
    """
    shape = requested_shape(dims)
    if math.prod(shape) > INTP_MAX:
        raise ValueError(
            "invalid dims: array size defined by dims is larger than the maximum possible size."
        )
    parts = [_indices(part) for part in multi_index]
    modes = [mode] * len(parts) if isinstance(mode, str) else list(mode)
    if len(parts) != len(shape) or len(modes) != len(parts) or not parts or 0 in shape:
        raise NotNative("of these dimensions")
    total: Node | None = None
    for node, extent, step, how in zip(parts, shape, _steps(shape, order), modes, strict=True):
        node = _inside(node, extent, how)
        node = combine(np.multiply, node, scalar(step, INT64))
        total = node if total is None else combine(np.add, total, node)
    assert total is not None
    return result(build.broadcast(total, broadcast_shapes(*[node.shape for node in parts])))


def _inside(node: Node, extent: int, mode: Any) -> Node:
    wide = convert(node, INT64)
    if mode == "wrap":
        return combine(np.remainder, wide, scalar(extent, INT64))
    if mode == "clip":
        low = combine(np.maximum, wide, scalar(0, INT64))
        return combine(np.minimum, low, scalar(extent - 1, INT64))
    if mode != "raise":
        raise NotNative(f"in the mode {mode!r}")
    if not _is_inside(node, extent):
        raise ValueError("invalid entry in coordinates array")
    return wide


def _is_inside(node: Node, extent: int) -> bool:
    found = within(node, extent)
    return found is not None and (found[0] >= 0 or exact_bounds_of(node)[0] >= 0)


@native(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: Any = "C") -> Any:
    """The indices of elements that lie at these places of the flat array; waits for them."""
    extents = requested_shape(shape)
    node = _indices(indices)
    size = math.prod(extents)
    if size > INTP_MAX:
        raise ValueError(
            "dimensions are too large; arrays and shapes with a total size greater than 'intp' "
            "are not supported."
        )
    if not _is_inside(node, size):
        low, high = exact_bounds_of(node)
        wrong = low if low < 0 else high
        raise ValueError(f"index {wrong} is out of bounds for array with size {size}")
    if not extents:
        raise NotNative("of a shape without axes")
    node = convert(node, INT64)
    found = []
    for extent, step in zip(extents, _steps(extents, order), strict=True):
        place = combine(np.floor_divide, node, scalar(step, INT64))
        found.append(result(combine(np.remainder, place, scalar(extent, INT64))))
    return tuple(found)


@native(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Write to the main diagonal, from the start again where the value has fewer elements."""
    if not isinstance(a, Handle):
        raise NotNative("the array is not one of clfuse's")
    shape = a._shape
    if len(shape) < 2:
        raise ValueError("array must be at least 2-d")
    if len(shape) > 2 and len(set(shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    if not is_writeable(a):
        raise ValueError("assignment destination is read-only")
    if wrap and len(shape) == 2 and shape[0] > shape[1]:
        _fill_wrapped(a, val)
        return
    count = min(shape)
    if not count:
        return
    offset, strides = layout(a)
    write(view_of(a, (count,), offset, (sum(strides),), rearranged=True), _cycled(val, a, count))


def _cycled(value: Any, target: Handle, count: int) -> Node:
    """A value as a vector of `count` elements, as assigning to ``a.flat`` repeats it."""
    node = copied_node(value, target._dtype)
    size = math.prod(node.shape)
    if not size:
        raise NotNative("with nothing")
    flat = build.reshape(node, (size,))
    if size < count and size > 1:
        repeats = -(-count // size)
        spread = build.view(flat, (repeats, size), 0, (0, 1))
        flat = build.reshape(spread, (repeats * size,))
    if size == 1:
        return build.broadcast(flat, (count,))
    return build.view(flat, (count,), 0, (1,))


def _fill_wrapped(a: Handle, value: Any) -> None:
    """Write to every ``columns + 1``-th element of a tall matrix: a diagonal that starts again."""
    rows, columns = a._shape
    count = -(-rows * columns // (columns + 1))
    offset, strides = layout(a)
    node = _cycled(value, a, count)
    done = 0
    # After each diagonal one row is left out.
    for start in range(0, rows, columns + 1):
        here = min(columns, rows - start)
        target = view_of(
            a, (here,), offset + start * strides[0], (strides[0] + strides[1],), rearranged=True
        )
        write(target, build.view(node, (here,), done, (1,)))
        done += here
