"""Views by new strides: reshape, transpose and their kind.

The functions on handles take and give handles that share storage where NumPy's results do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import index as as_index
from typing import Any

import numpy as np

from clfuse.ir import build
from clfuse.ir.layout import is_injective
from clfuse.ir.size_limits import MOST_AXES

from . import handle as handles
from .conversion import NotNative
from .expressions import broadcast_shapes
from .handle import Handle, fresh, layout, node_of, view_of

AxisError = np.exceptions.AxisError

# -- axes -----------------------------------------------------------------------------------------


def normalized_axis(axis: Any, rank: int, prefix: str | None = None) -> int:
    """An axis counted from the front; AxisError when the array has none of that number."""
    number = as_index(axis)
    if not -rank <= number < rank:
        raise AxisError(number, rank, prefix)
    return number + rank if number < 0 else number


def strict_axis(axis: Any, rank: int) -> int:
    """`normalized_axis` where NumPy does not take a bool for an axis."""
    if type(axis) is bool:
        raise TypeError("an integer is required for the axis")
    return normalized_axis(axis, rank)


def one_or_several(given: Any) -> tuple[Any, ...]:
    """One whole number, or the items of whatever is none: arrays, ranges, iterators."""
    if isinstance(given, tuple | list):
        return tuple(given)
    try:
        return (as_index(given),)
    except TypeError:
        return tuple(given)


def normalized_axes(axes: Any, rank: int, name: str = "axis") -> tuple[int, ...]:
    """One axis or several, counted from the front; ValueError when one is named twice."""
    prefix = None if name == "axis" else name
    found = tuple([normalized_axis(axis, rank, prefix) for axis in one_or_several(axes)])
    if len(set(found)) != len(found):
        raise ValueError(
            f"repeated axis in `{name}` argument" if name != "axis" else "repeated axis"
        )
    return found


# -- strides --------------------------------------------------------------------------------------


def strided_view(
    handle: Handle, shape: Any = None, strides: Any = None, *, writeable: bool = True
) -> Any:
    """A view of any shape and strides (in bytes) that stays within the storage."""
    extents = handle._shape if shape is None else requested_shape(one_or_several(shape))
    offset, steps = layout(handle)
    if strides is not None:
        itemsize = handle._dtype.itemsize
        given = requested_shape(one_or_several(strides))
        if len(given) != len(extents):
            raise ValueError("strides must be the same length as shape")
        pairs = zip(extents, given, strict=True)
        if any(step % itemsize for extent, step in pairs if extent > 1):
            raise NotNative("between elements")
        steps = tuple([step // itemsize for step in given])
    elif len(steps) != len(extents):
        steps = handles.c_strides(extents)
    check_reach(handle, extents, offset, steps)
    own = 0 in extents or is_injective(extents, steps)
    return view_of(handle, extents, offset, steps, writeable=writeable and own, rearranged=True)


def check_reach(
    handle: Handle, shape: tuple[int, ...], offset: int, strides: tuple[int, ...]
) -> None:
    """ValueError where a view would reach outside of its storage."""
    if 0 in shape:
        return
    node = handle._storage.node
    size = math.prod(node.shape) * node.dtype.itemsize // handle._dtype.itemsize
    reach = [step * (extent - 1) for extent, step in zip(shape, strides, strict=True)]
    first = offset + sum(step for step in reach if step < 0)
    last = offset + sum(step for step in reach if step > 0)
    if first < 0 or last >= size:
        raise ValueError(
            f"strides {strides} of {shape} elements reach from {first} to {last}: the memory has "
            f"elements 0 to {size - 1}"
        )


# -- reshape --------------------------------------------------------------------------------------


def requested_shape(shape: Any) -> tuple[int, ...]:
    """A shape argument, an int or several, as a tuple; their values are not checked."""
    if type(shape) is tuple and all(type(extent) is int for extent in shape):
        return with_possible_rank(shape)
    if type(shape) is int:
        return (shape,)
    if isinstance(shape, Handle) and shape._shape:
        shape = shape.tolist()
    is_number = isinstance(shape, Handle | np.ndarray) and not shape.shape
    if isinstance(shape, Iterable) and not is_number:
        if not hasattr(type(shape), "__getitem__") or isinstance(shape, dict):
            raise TypeError(f"expected a sequence of integers or a single integer, got '{shape}'")
        extents = tuple(shape)
        if any(type(extent) is bool for extent in extents):
            raise TypeError("an integer is required")
        return with_possible_rank(tuple([as_index(extent) for extent in extents]))
    if shape is None:
        raise TypeError("Use () not None as shape arguments")
    if type(shape) is bool or isinstance(shape, float):
        raise TypeError(f"expected a sequence of integers or a single integer, got '{shape}'")
    return (as_index(shape),)


def with_possible_rank(shape: tuple[int, ...]) -> tuple[int, ...]:
    """`shape`; ValueError as NumPy's where no array has so many axes."""
    if len(shape) > MOST_AXES:
        raise ValueError(
            f"maximum supported dimension for an ndarray is currently {MOST_AXES}, found "
            f"{len(shape)}"
        )
    return shape


def completed_shape(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """`shape` with its one -1 replaced; ValueError as NumPy's when it does not hold `size`
    elements."""
    unknown = [axis for axis, extent in enumerate(shape) if extent < 0]
    if len(unknown) > 1:
        raise ValueError("can only specify one unknown dimension")
    known = math.prod([extent for extent in shape if extent >= 0])
    text = handles_text(shape)
    if unknown:
        if known == 0 or size % known:
            raise ValueError(f"cannot reshape array of size {size} into shape {text}")
        axis = unknown[0]
        return (*shape[:axis], size // known, *shape[axis + 1 :])
    if known != size:
        raise ValueError(f"cannot reshape array of size {size} into shape {text}")
    return shape


def handles_text(shape: tuple[int, ...]) -> str:
    """A shape in reshape's error message: an unknown extent is named so."""
    texts = ["newaxis" if extent < 0 else str(extent) for extent in shape]
    return "(" + ",".join(texts) + ("," if len(shape) == 1 else "") + ")"


def reshaped_strides(
    shape: tuple[int, ...], strides: tuple[int, ...], new_shape: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Strides that give the same elements in C order under another shape; None if there are none.

    >>> reshaped_strides((4, 6), (12, 2), (2, 2, 6))
    (24, 12, 2)
    >>> reshaped_strides((4, 6), (1, 4), (24,)) is None
    True
    """
    if math.prod(shape) == 0 or math.prod(new_shape) == 0:
        return handles.c_strides(new_shape)
    old = [(extent, stride) for extent, stride in zip(shape, strides, strict=True) if extent != 1]
    new_strides = [0] * len(new_shape)
    position = 0
    axis = 0
    while axis < len(new_shape):
        if new_shape[axis] == 1:
            axis += 1
            continue
        if position == len(old):
            return None
        # A run of old axes and a run of new ones that hold equally many elements.
        first, first_axis = position, axis
        old_count, new_count = old[position][0], new_shape[axis]
        while old_count != new_count:
            if old_count < new_count:
                position += 1
                old_count *= old[position][0]
            else:
                axis += 1
                new_count *= new_shape[axis]
        for left, right in zip(old[first:position], old[first + 1 : position + 1], strict=True):
            if left[1] != right[1] * right[0]:
                return None
        step = old[position][1]
        for place in range(axis, first_axis - 1, -1):
            if new_shape[place] != 1:
                new_strides[place] = step
                step *= new_shape[place]
        position += 1
        axis += 1
    # Strides of extents 1 are never used; NumPy gives them what a C-ordered array would have.
    step = new_strides[-1] if new_strides and new_shape[-1] != 1 else 1
    for place in range(len(new_shape) - 1, -1, -1):
        if new_shape[place] == 1:
            following = place + 1
            new_strides[place] = (
                new_strides[following] * new_shape[following]
                if following < len(new_shape)
                else (old[-1][1] if old else 1)
            )
    return tuple(new_strides)


def reshape_view(handle: Handle, shape: tuple[int, ...]) -> Any:
    """The elements in C order under a complete new shape: a view where strides allow it."""
    view = handle._view
    if shape == handle._shape:
        return view_of(handle, shape, *layout(handle))
    if view is None:
        return view_of(handle, shape, 0, handles.c_strides(shape))
    strides = reshaped_strides(handle._shape, view.strides, shape)
    if strides is None:
        return fresh(build.reshape(node_of(handle), shape))
    return view_of(handle, shape, view.offset, strides)


# -- axes moved -----------------------------------------------------------------------------------


def permute_axes(handle: Handle, axes: Sequence[int]) -> Any:
    """The array with its axes in this order (normalized, a permutation)."""
    offset, strides = layout(handle)
    shape = handle._shape
    return view_of(
        handle, tuple([shape[axis] for axis in axes]), offset, tuple([strides[a] for a in axes]),
        rearranged=True,
    )


def transpose_view(handle: Handle, axes: Any = None) -> Any:
    """`numpy.transpose`: axes reversed, or in the order given."""
    rank = len(handle._shape)
    if axes is None:
        return permute_axes(handle, range(rank)[::-1])
    if isinstance(axes, Handle | np.ndarray) and axes.ndim == 1:
        axes = axes.tolist()
    if not isinstance(axes, tuple | list):
        axes = (as_index(axes),)
    if len([as_index(axis) for axis in axes]) != rank:
        raise ValueError("axes don't match array")
    order = [strict_axis(axis, rank) for axis in axes]
    if len(set(order)) != rank:
        raise ValueError("repeated axis in transpose")
    return permute_axes(handle, order)


def swap_axes(handle: Handle, axis1: Any, axis2: Any) -> Any:
    """`numpy.swapaxes`."""
    rank = len(handle._shape)
    axis1, axis2 = as_index(axis1), as_index(axis2)
    one = normalized_axis(axis1, rank, "axis1")
    two = normalized_axis(axis2, rank, "axis2")
    order = list(range(rank))
    order[one], order[two] = two, one
    return permute_axes(handle, order)


def squeeze_axes(handle: Handle, axis: Any = None) -> Any:
    """`numpy.squeeze`: without axes of extent 1."""
    shape = handle._shape
    if axis is None:
        dropped = {place for place, extent in enumerate(shape) if extent == 1}
    else:
        axes = axis if isinstance(axis, tuple) else (axis,)
        if not shape and all(as_index(item) in (0, -1) for item in axes):
            axes = ()  # a 0-d array has an axis 0 here
        found = [strict_axis(item, len(shape)) for item in axes]
        if len(set(found)) != len(found):
            raise ValueError("duplicate value in 'axis'")
        dropped = set(found)
        if any(shape[place] != 1 for place in dropped):
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    if not dropped:
        return handle
    offset, strides = layout(handle)
    kept = [place for place in range(len(shape)) if place not in dropped]
    return view_of(
        handle, tuple([shape[k] for k in kept]), offset, tuple([strides[k] for k in kept])
    )


def insert_axes(handle: Handle, axis: Any) -> Any:
    """`numpy.expand_dims`: with new axes of extent 1 at these places of the result."""
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    places = normalized_axes(tuple(axes), len(axes) + len(handle._shape))
    offset, strides = layout(handle)
    old = iter(zip(handle._shape, strides, strict=True))
    both = [
        (1, 0) if place in places else next(old) for place in range(len(axes) + len(handle._shape))
    ]
    shape = with_possible_rank(tuple([extent for extent, _ in both]))
    return view_of(handle, shape, offset, tuple([stride for _, stride in both]))


def flip_axes(handle: Handle, axes: Iterable[int]) -> Any:
    """The array with these axes (normalized) run through backwards."""
    offset, strides = layout(handle)
    steps = list(strides)
    for axis in axes:
        offset += max(handle._shape[axis] - 1, 0) * steps[axis]
        steps[axis] = -steps[axis]
    return view_of(handle, handle._shape, offset, tuple(steps))


def diagonal_of(handle: Handle, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    """`numpy.diagonal`: a read-only view, its elements along a new last axis."""
    rank = len(handle._shape)
    if rank < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    one = normalized_axis(axis1, rank, "axis1")
    two = normalized_axis(axis2, rank, "axis2")
    if one == two:
        raise ValueError("axis1 and axis2 cannot be the same")
    shape = handle._shape
    start, strides = layout(handle)
    distance = as_index(offset)
    if distance >= 0:
        count = max(min(shape[one], shape[two] - distance), 0)
        first = distance * strides[two]
    else:
        count = max(min(shape[one] + distance, shape[two]), 0)
        first = -distance * strides[one]
    kept = [place for place in range(rank) if place not in (one, two)]
    return view_of(
        handle,
        (*[shape[k] for k in kept], count),
        start + first if count else start,
        (*[strides[k] for k in kept], strides[one] + strides[two]),
        writeable=False,
        rearranged=True,
    )


def broadcast_view(handle: Handle, shape: tuple[int, ...], *, writeable: bool = False) -> Any:
    """The array stretched to `shape` (checked to fit), without a copy."""
    if any(extent < 0 for extent in shape):
        raise ValueError("all elements of broadcast shape must be non-negative")
    lead = len(shape) - len(handle._shape)
    fits = lead >= 0 and all(
        have in (1, want) for have, want in zip(handle._shape, shape[lead:], strict=True)
    )
    if not fits:
        if lead < 0:
            raise ValueError("input operand has more dimensions than allowed by the axis remapping")
        # The message names both shapes, the way NumPy's iterator writes them.
        np.broadcast_to(np.broadcast_to(np.int8(0), handle._shape), shape)
        broadcast_shapes(handle._shape, shape)
    offset, strides = layout(handle)
    steps = (0,) * lead + tuple(
        [
            0 if have == 1 and want != 1 else stride
            for have, want, stride in zip(handle._shape, shape[lead:], strides, strict=True)
        ]
    )
    return view_of(handle, shape, offset, steps, writeable=writeable, rearranged=True)
