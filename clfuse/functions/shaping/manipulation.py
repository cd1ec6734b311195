"""Shapes changed and elements moved, with NumPy's signatures.

Functions that give a view in NumPy give one here. Functions that copy in NumPy (roll, repeat, tile,
pad) are recorded as views and concatenations, which cost nothing where a fused kernel reads them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import index as as_index
from typing import Any, Final

import numpy as np

from clfuse.arrays import views
from clfuse.arrays.conversion import NotNative, as_handle, host_view
from clfuse.arrays.handle import (
    Handle,
    fresh,
    is_contiguous,
    is_writeable,
    layout,
    native_dtype,
    node_of,
    view_of,
)
from clfuse.arrays.memory_order import (
    arrange_axes,
    asked_order,
    copy_order,
    is_fortran,
    parse_order,
    permute_view,
    permuted_node,
    result_order,
)
from clfuse.arrays.views import (
    broadcast_view,
    completed_shape,
    flip_axes,
    insert_axes,
    normalized_axes,
    normalized_axis,
    one_or_several,
    permute_axes,
    requested_shape,
    reshape_view,
    squeeze_axes,
    strict_axis,
    swap_axes,
    transpose_view,
)
from clfuse.dispatch.host_call import HostArguments, native
from clfuse.dispatch.record_cache import cache_recording
from clfuse.functions.indexing import subscripts
from clfuse.functions.indexing.repeating import repeat_by_counts
from clfuse.ir import build, trace
from clfuse.ir.layout import contiguous_strides
from clfuse.ir.nodes import Node
from clfuse.ir.size_limits import COUNTED_NBYTES, require_room
from clfuse.numpy_releases import CHECKS_STRIDES, ROLLS_BY_FLOATS, TURNS_BY_VECTORS

# -- reshape --------------------------------------------------------------------------------------


def _is_numpys_scalar(value: Any) -> bool:
    """Whether it is a scalar of NumPy's own, which its methods leave one."""
    return isinstance(value, np.generic) and not isinstance(value, Handle)


@native(np.reshape, method=True)
def reshape(a: Any, /, shape: Any, order: Any = "C", *, copy: bool | None = None) -> Any:
    """The same elements under another shape: a view where strides allow it."""
    if type(shape) is tuple and not shape and _is_numpys_scalar(a):
        return a.reshape((), order=order, copy=copy)
    handle = as_handle(a)
    letter = "C" if order is None else parse_order(order)
    if letter == "K":
        raise ValueError("order 'K' is not permitted for reshaping")
    wanted = completed_shape(requested_shape(shape), math.prod(handle._shape))
    if letter == "F" or (letter == "A" and is_fortran(handle) and not is_contiguous(handle)):
        return transpose_view(reshape(transpose_view(handle), wanted[::-1], copy=copy))
    made = reshape_view(handle, wanted)
    if copy:
        return fresh(node_of(made))
    if copy is not None and made._storage is not handle._storage:
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return made


@native(np.ravel)
def ravel(a: Any, order: Any = "C") -> Any:
    """The elements as a vector: a view where they lie in that order."""
    handle = as_handle(a)
    size = (math.prod(handle._shape),)
    kept = result_order((handle,), handle._shape)
    axes = asked_order(order, handle._shape, (handle,), kept)
    if axes is not None:
        handle = permute_view(handle, handle._shape, axes)
    if not is_contiguous(handle):
        # NumPy copies here even where strides would allow a view.
        return fresh(build.reshape(node_of(handle), size))
    return reshape_view(handle, size)


@native(np.resize)
def resize(a: Any, new_shape: Any) -> Any:
    """The elements repeated until they fill a new shape."""
    handle = as_handle(a)
    shape = requested_shape(new_shape)
    if any(extent < 0 for extent in shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    have, want = math.prod(handle._shape), math.prod(shape)
    if have == 0 or want == 0:
        return fresh(build.full(handle._dtype.type(0), shape))
    repeats = -(-want // have)
    flat = build.reshape(node_of(handle), (have,))
    tiled = build.reshape(build.broadcast(flat, (repeats, have)), (repeats * have,))
    return fresh(build.reshape(build.view(tiled, (want,), 0, (1,)), shape))


# -- axes -----------------------------------------------------------------------------------------


@native(np.transpose, np.permute_dims)
def transpose(a: Any, axes: Any = None) -> Any:
    """The array with its axes reversed, or in the order given: a view."""
    return a.transpose(axes) if _is_numpys_scalar(a) else transpose_view(as_handle(a), axes)


@native(np.matrix_transpose)
def matrix_transpose(x: Any, /) -> Any:
    """The array with its last two axes swapped: a view."""
    handle = as_handle(x)
    if len(handle._shape) < 2:
        raise ValueError(
            f"Input array must be at least 2-dimensional, but it is {len(handle._shape)}"
        )
    return swap_axes(handle, -1, -2)


@native(np.swapaxes)
def swapaxes(a: Any, axis1: Any, axis2: Any) -> Any:
    """The array with two axes swapped: a view."""
    return swap_axes(as_handle(a), axis1, axis2)


@native(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """The array with axes moved to other places: a view."""
    handle = as_handle(a)
    rank = len(handle._shape)
    sources = normalized_axes(source, rank, "source")
    destinations = normalized_axes(destination, rank, "destination")
    if len(sources) != len(destinations):
        raise ValueError(
            "`source` and `destination` arguments must have the same number of elements"
        )
    order = [axis for axis in range(rank) if axis not in sources]
    for place, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(place, axis)
    return permute_axes(handle, order)


@native(np.rollaxis)
def rollaxis(a: Any, axis: Any, start: Any = 0) -> Any:
    """The array with one axis moved back to a place: a view."""
    handle = as_handle(a)
    rank = len(handle._shape)
    axis = normalized_axis(axis, rank)
    start = start + rank if start < 0 else start
    if not 0 <= start <= rank:
        raise views.AxisError(
            f"'start' arg requires {-rank} <= start < {rank + 1}, but {start} was passed in"
        )
    order = list(range(rank))
    order.remove(axis)
    order.insert(start - 1 if axis < start else start, axis)
    return permute_axes(handle, order)


@native(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Any:
    """The array with new axes of extent 1: a view."""
    return insert_axes(as_handle(a), axis)


@native(np.squeeze)
def squeeze(a: Any, axis: Any = None) -> Any:
    """The array without axes of extent 1: a view."""
    return a.squeeze(axis) if _is_numpys_scalar(a) else squeeze_axes(as_handle(a), axis)


@native(np.diagonal)
def diagonal(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    """A diagonal: a read-only view."""
    return views.diagonal_of(as_handle(a), offset, axis1, axis2)


def _at_least(arrays: tuple[Any, ...], widen: Any) -> Any:
    made = tuple([widen(as_handle(array)) for array in arrays])
    return made[0] if len(made) == 1 else made


@native(np.atleast_1d)
def atleast_1d(*arys: Any) -> Any:
    """Arrays with at least one axis."""
    return _at_least(arys, lambda h: h if h._shape else reshape_view(h, (1,)))


@native(np.atleast_2d)
def atleast_2d(*arys: Any) -> Any:
    """Arrays with at least two axes: new ones come first."""
    return _at_least(
        arys, lambda h: h if len(h._shape) > 1 else insert_axes(h, tuple(range(2 - len(h._shape))))
    )


def _widened_to_3d(handle: Handle) -> Any:
    rank = len(handle._shape)
    if rank == 0:
        return reshape_view(handle, (1, 1, 1))
    if rank == 1:
        return insert_axes(handle, (0, 2))
    return insert_axes(handle, 2) if rank == 2 else handle


@native(np.atleast_3d)
def atleast_3d(*arys: Any) -> Any:
    """Arrays with at least three axes."""
    return _at_least(arys, _widened_to_3d)


# -- broadcasting ---------------------------------------------------------------------------------


@native(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    """The array stretched to a shape: a read-only view."""
    handle, extents = as_handle(array), requested_shape(one_or_several(shape))
    return broadcast_view(handle, require_room(extents, handle._dtype, COUNTED_NBYTES))


@native(np.broadcast_shapes)
def broadcast_shapes(*args: Any) -> tuple[int, ...]:
    """The shape that arrays of these shapes have together."""
    return np.broadcast_shapes(*[requested_shape(shape) for shape in args])


@native(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    """The arrays stretched to their common shape: views."""
    arrays = [as_handle(array) for array in args]
    shape = np.broadcast_shapes(*[array._shape for array in arrays])
    return tuple(
        [
            array if array._shape == shape else broadcast_view(array, shape, writeable=True)
            for array in arrays
        ]
    )


@native(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    """Every window of this shape over the array, along new last axes: a view."""
    handle = as_handle(x)
    rank = len(handle._shape)
    windows = tuple([as_index(extent) for extent in one_or_several(window_shape)])
    if any(extent < 0 for extent in windows):
        raise ValueError("`window_shape` cannot contain negative values")
    if axis is None:
        axes = tuple(range(rank))
        if len(windows) != rank:
            raise ValueError(
                "Since axis is `None`, must provide window_shape for all dimensions of `x`; got "
                f"{len(windows)} window_shape elements and `x.ndim` is {rank}."
            )
    else:
        axes = tuple([normalized_axis(a, rank) for a in one_or_several(axis)])
        if len(windows) != len(axes):
            raise ValueError(
                "Must provide matching length window_shape and axis; got "
                f"{len(windows)} window_shape elements and {len(axes)} axes elements."
            )
    offset, strides = layout(handle)
    shape = list(handle._shape)
    for place, extent in zip(axes, windows, strict=True):
        if shape[place] < extent:
            raise ValueError("window shape cannot be larger than input array shape")
        shape[place] -= extent - 1
    return view_of(
        handle,
        (*shape, *windows),
        offset,
        (*strides, *[strides[place] for place in axes]),
        writeable=writeable,
        rearranged=True,
    )


@native(np.lib.stride_tricks.as_strided)
def as_strided(
    x: Any,
    shape: Any = None,
    strides: Any = None,
    subok: bool = False,
    writeable: bool = True,
    *,
    check_bounds: Any = None,
) -> Any:
    """The array's memory under another shape and other strides, in bytes: a view.

    It may be written to where no two of its elements are the same one.

    Raises
    ------
    ValueError
        The view would reach outside of the memory; NumPy looks if `check_bounds` is true.
    """
    if check_bounds is not None and not CHECKS_STRIDES:
        raise TypeError("as_strided() got an unexpected keyword argument 'check_bounds'")
    handle = as_handle(x)
    return views.strided_view(handle, shape, strides, writeable=writeable)


# -- order of elements ----------------------------------------------------------------------------


def _has_axes_of_its_own(value: Any) -> bool:
    """Whether NumPy indexes it as it stands: what is no array, and has `ndim` (pandas)."""
    return not isinstance(value, Handle | np.ndarray) and hasattr(value, "ndim")


@native(np.flip)
def flip(m: Any, axis: Any = None) -> Any:
    """The array with axes run through backwards: a view."""
    if _has_axes_of_its_own(m):
        return np.flip(m, axis)
    handle = as_handle(m)
    rank = len(handle._shape)
    axes = tuple(range(rank)) if axis is None else normalized_axes(axis, rank)
    if not rank:
        return subscripts.get(handle, ())  # what NumPy indexes with; it gives a scalar
    return flip_axes(handle, axes)


@native(np.fliplr)
def fliplr(m: Any) -> Any:
    """The array with its second axis backwards: a view."""
    handle = as_handle(m)
    if len(handle._shape) < 2:
        raise ValueError("Input must be >= 2-d.")
    return flip_axes(handle, (1,))


@native(np.flipud)
def flipud(m: Any) -> Any:
    """The array with its first axis backwards: a view."""
    handle = as_handle(m)
    if len(handle._shape) < 1:
        raise ValueError("Input must be >= 1-d.")
    return flip_axes(handle, (0,))


@native(np.rot90)
def rot90(m: Any, k: Any = 1, axes: Any = (0, 1)) -> Any:
    """The array turned by quarters in the plane of two axes: a view."""
    axes = tuple(axes)
    if len(axes) != 2:
        raise ValueError("len(axes) must be 2.")
    handle = as_handle(m)
    rank = len(handle._shape)
    if axes[0] == axes[1] or abs(axes[0] - axes[1]) == rank:
        raise ValueError("Axes must be different.")
    if not all(-rank <= axis < rank for axis in axes):
        raise ValueError(f"Axes={tuple(axes)} out of range for array of ndim={rank}.")
    first, second = (axis % rank for axis in axes)
    if isinstance(k, Handle | np.ndarray):
        if np.size(k) != 1 or (np.ndim(k) and not TURNS_BY_VECTORS):  # type: ignore[arg-type]
            raise NotNative("by what is no integer")
        k = host_view(k).item() if isinstance(k, Handle) else k.item()
    if not hasattr(type(k), "__index__"):
        raise NotNative("by what is no integer")  # NumPy before 2.5 takes it, and then warns
    turns = as_index(k) % 4
    if turns == 0:
        return flip_axes(handle, ())
    if turns == 2:
        return flip_axes(handle, (first, second))
    if turns == 1:
        return swap_axes(flip_axes(handle, (second,)), first, second)
    return flip_axes(swap_axes(handle, first, second), (second,))


def sliced(node: Node, axis: int, start: int, count: int, step: int = 1) -> Node:
    """`count` elements of one axis from `start` on, as a node."""
    strides = list(contiguous_strides(node.shape))
    offset = start * strides[axis]
    strides[axis] = strides[axis] * step if count != 1 else 0
    shape = (*node.shape[:axis], count, *node.shape[axis + 1 :])
    return build.view(node, shape, offset, tuple(strides))


def rolled(node: Node, axis: int, shift: int) -> Node:
    """The node with one axis moved in a circle."""
    extent = node.shape[axis]
    if extent == 0 or shift % extent == 0:
        return node
    tail = shift % extent
    return build.concatenate(
        [sliced(node, axis, extent - tail, tail), sliced(node, axis, 0, extent - tail)], axis
    )


@native(np.roll)
@cache_recording
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """The elements moved in a circle along axes."""
    handle = as_handle(a)
    if axis is None:
        node = node_of(handle)
        flat = build.reshape(node, (math.prod(node.shape),))
        distances = _distances(shift)
        if distances.ndim > 1:
            raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
        total = sum([int(distance) for distance in distances.flat])
        return fresh(build.reshape(rolled(flat, 0, total), node.shape))
    places = [normalized_axis(item, len(handle._shape)) for item in one_or_several(axis)]
    pairs = np.broadcast(_distances(shift), places)
    if pairs.ndim > 1:
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    order = copy_order(handle)
    node = node_of(handle) if order is None else permuted_node(handle, handle._shape, order)
    for distance, place in pairs:
        node = rolled(node, order.index(place) if order else int(place), int(distance))
    return fresh(node) if order is None else arrange_axes(node, order)


def _distances(shift: Any) -> Any:
    found = _plain_integers(shift)
    if found.dtype.kind == "f" and found.size and not ROLLS_BY_FLOATS:
        raise NotNative("by what this NumPy does not roll")
    return found


def _plain_integers(value: Any) -> Any:
    return np.asarray(host_view(value) if isinstance(value, Handle) else value)


@native(np.repeat, method=True)
@cache_recording
def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    """Every element several times."""
    handle = as_handle(a)
    if np.ndim(repeats) == 1 and np.size(repeats) != 1:
        return repeat_by_counts(handle, repeats, axis)
    counts = _plain_integers(repeats)
    if counts.size != 1 or counts.dtype.kind not in "iu":
        raise NotNative("a number of repeats for every element")
    count = int(counts.reshape(())[()])
    node = node_of(handle)
    if axis is None or not node.shape:
        node = build.reshape(node, (math.prod(node.shape),))
        axis = axis or 0
    place = strict_axis(axis, len(node.shape))
    if count < 0:
        if node.shape[place]:
            raise ValueError("negative dimensions are not allowed")
        count = 0
    inner = (*node.shape[: place + 1], 1, *node.shape[place + 1 :])
    outer = (*node.shape[: place + 1], count, *node.shape[place + 1 :])
    extent = node.shape[place] * count
    shape = require_room((*node.shape[:place], extent, *node.shape[place + 1 :]), node.dtype)
    return fresh(build.reshape(build.broadcast(build.reshape(node, inner), outer), shape))


@native(np.tile)
@cache_recording
def tile(A: Any, reps: Any) -> Any:
    """The array put side by side with itself."""
    handle = as_handle(A)
    counts = requested_shape(one_or_several(reps))
    rank = max(len(counts), len(handle._shape))
    counts = (1,) * (rank - len(counts)) + counts
    extents = (1,) * (rank - len(handle._shape)) + handle._shape
    if any(count < 0 for count in counts):
        raise ValueError("negative dimensions are not allowed")
    narrow: list[int] = []
    wide: list[int] = []
    for count, extent in zip(counts, extents, strict=True):
        narrow += (1, extent)
        wide += (count, extent)
    shape = tuple([count * extent for count, extent in zip(counts, extents, strict=True)])
    require_room(shape, handle._dtype)
    if 0 in extents:  # NumPy copies nothing
        return reshape_view(handle, shape)
    node = build.broadcast(build.reshape(node_of(handle), tuple(narrow)), tuple(wide))
    return fresh(build.reshape(node, shape))


# -- by functions of the user's -------------------------------------------------------------------

LONG_ROW: Final = 1 << 16
"""Elements of a row from which on kernels are quicker than NumPy: a function is called once a row.
"""


@native(np.apply_along_axis)
def apply_along_axis(
    func1d: Callable[..., Any], axis: Any, arr: Any, *args: Any, **kwargs: Any
) -> Any:
    """What a function makes of every row along an axis.

    Short rows are NumPy's, whose functions take a microsecond for them. Long ones are views of
    ours, so what the function does with them is recorded. Results that are no arrays of dtypes
    that live on devices are NumPy's.
    """
    handle = as_handle(arr)
    rank = len(handle._shape)
    place = normalized_axis(axis, rank)
    if handle._shape[place] < LONG_ROW and trace.active() is None:
        if isinstance(arr, Handle):
            return _rows_by_numpy(func1d, place, arr, args, kwargs)
        by_numpy = np.apply_along_axis(func1d, place, arr, *args, **kwargs)
        return HostArguments(owned=True).to_device(by_numpy)
    others = [other for other in range(rank) if other != place]
    rows = permute_axes(handle, [*others, place])
    kept = rows._shape[:-1]
    if 0 in kept:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    made: Any = None
    for position in np.ndindex(kept):
        found = func1d(subscripts.get(rows, (*position, Ellipsis)), *args, **kwargs)
        if not isinstance(found, Handle):
            found = np.asanyarray(found)
        if made is None:
            shape = (*kept, *found.shape)
            dtype = native_dtype(found.dtype)
            if dtype is None or (not isinstance(found, Handle) and type(found) is not np.ndarray):
                made = np.zeros_like(found, shape=shape, subok=not isinstance(found, np.matrix))
            else:
                made = fresh(build.full(dtype.type(0), shape))
        made[(*position, Ellipsis)] = found
    axes = list(range(len(made.shape)))
    return made.transpose([*axes[:place], *axes[len(kept) :], *axes[place : len(kept)]])


def _rows_by_numpy(
    func1d: Callable[..., Any], axis: int, given: Handle, args: Any, kwargs: dict[str, Any]
) -> Any:
    """`apply_along_axis` on the host; what the function writes into its rows is in the array,
    beside what it writes there otherwise."""
    before = np.array(host_view(given), order="C")
    rows = before.copy()
    rows.flags.writeable = is_writeable(given)
    try:
        made = np.apply_along_axis(func1d, axis, rows, *args, **kwargs)
    finally:
        changed = rows.view(np.uint8) != before.view(np.uint8)
        if changed.any():
            written = changed.reshape(*rows.shape, rows.itemsize).any(-1)
            subscripts.put(given, written, rows[written])
    return HostArguments(owned=True).to_device(made)
