"""``ufunc.reduceat``: folds of slices of an axis, by kernels on devices with work-groups.

The bounds are looked at. Slices of about the same length, up to twice of each other, are the rows
of one table of computed places, which a reduction folds as it reads them:

    x  0 1 2 3 4 5    bounds 0 4 2    0 1 2 3 | 4 . . . | 2 3 4 5    rows of 4: one is short

Short rows are filled up with what changes nothing, or with their last element again where that
does not. So any order of the bounds will do, also one where slices overlap.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from clfuse.arrays import errstate
from clfuse.arrays.conversion import (
    NotNative,
    as_handle,
    cast_for_assignment,
    from_host,
    host_view,
)
from clfuse.arrays.expressions import choose, combine, scalar
from clfuse.arrays.handle import Handle, fresh, node_of
from clfuse.arrays.views import strict_axis
from clfuse.ir import build
from clfuse.ir.layout import contiguous_strides
from clfuse.ir.nodes import Node
from clfuse.runtime.devices.selection import current_device
from clfuse.target.scatters import scatters

from .folds import accumulator_dtype

__all__ = ["reduceat_array"]

FILLED_BY_LAST: Final = frozenset(
    ["maximum", "minimum", "fmax", "fmin", "logical_and", "logical_or", "bitwise_and", "bitwise_or"]
)
"""Folds that an element may be part of twice."""

FILLED_BY: Final = {"add": 0, "multiply": 1, "logical_xor": 0, "bitwise_xor": 0}
"""Other folds -> what changes nothing."""

MOST_ELEMENTS: Final = 1 << 30
"""Places are counted in 32 bits."""


def reduceat_array(ours: Any, array: Any, indices: Any, axis: Any, dtype: Any, out: Any) -> Any:
    """``ours.reduceat(array, ...)`` as a node; `ours` is our ufunc.

    Raises NotNative: on devices that share the host's memory, and for what NumPy refuses.
    """
    if errstate.mode[0] is errstate.STRICT:
        raise NotNative(errstate.CHECKED)
    if not scatters(current_device().assumed_traits):
        raise NotNative("the host folds where it lies")
    name = ours.__name__
    if out is not None or (name not in FILLED_BY_LAST and name not in FILLED_BY):
        raise NotNative("not by this ufunc, or into an array that is there")
    handle = as_handle(array)
    shape = handle._shape
    if not shape or not 0 < np.prod(shape, dtype=float) < MOST_ELEMENTS:
        raise NotNative("of so many elements")
    place = strict_axis(axis, len(shape))
    starts = np.asarray(host_view(indices) if isinstance(indices, Handle) else indices)
    if starts.ndim != 1 or starts.dtype.kind not in "iu" or not starts.size:
        raise NotNative("bounds of another kind")
    if starts.min() < 0 or starts.max() >= shape[place]:
        raise NotNative("bounds outside of the axis")
    found = accumulator_dtype(ours.numpy, handle._dtype, dtype, None)
    if found.kind == "c" and name != "add":
        raise NotNative("not for complex numbers")
    source = cast_for_assignment(node_of(handle), found, "reduceat")
    starts = starts.astype(np.int64)
    ends = np.append(starts[1:], shape[place])
    lengths = np.where(ends > starts, ends - starts, 1)
    parts, members = [], []
    for chosen in _alike(lengths):
        values = _table(name, source, place, starts[chosen], lengths[chosen])
        parts.append(node_of(ours.reduce(fresh(values), axis=place + 1, dtype=found)))
        members.append(chosen)
    if len(parts) == 1:
        return fresh(parts[0])
    joined = build.concatenate(tuple(parts), place)
    made = (*shape[:place], len(starts), *shape[place + 1 :])
    strides = list(contiguous_strides(made))
    order = np.argsort(np.concatenate(members)) * strides[place]
    strides[place] = 0
    position = _column(order, len(made) - place)
    return fresh(build.gather(joined, position, made, 0, tuple(strides)))


def _alike(lengths: np.ndarray) -> list[np.ndarray]:
    """The numbers of slices that are about as long; of all of them where little is wasted."""
    if lengths.max() * len(lengths) <= 2 * lengths.sum():
        return [np.arange(len(lengths))]
    classes = np.ceil(np.log2(lengths)).astype(np.int64)
    return [np.flatnonzero(classes == each) for each in np.unique(classes)]


def _table(
    name: str, source: Node, axis: int, starts: np.ndarray, lengths: np.ndarray
) -> Node:
    """The slices as rows of equal length: a dimension more behind `axis`."""
    shape, strides = source.shape, contiguous_strides(source.shape)
    length, rank = int(lengths.max()), len(source.shape) + 1
    after = rank - axis - 1
    full = (*shape[:axis], len(starts), length, *shape[axis + 1 :])
    step = build.reshape(build.iota(length), (length, *(1,) * (after - 1)))
    ends = _column(starts + lengths - 1, rank - axis)
    place = combine(np.minimum, combine(np.add, _column(starts, rank - axis), step), ends)
    moved = combine(np.multiply, place, scalar(strides[axis], np.dtype(np.int64)))
    steps = (*strides[:axis], 0, 0, *strides[axis + 1 :])
    values = build.gather(source, moved, full, 0, steps)
    if name in FILLED_BY_LAST or (lengths == length).all():
        return values
    is_there = combine(np.less, step, _column(lengths, rank - axis))
    filler = scalar(FILLED_BY[name], source.dtype)
    return choose(is_there, values, filler, source.dtype, full)


def _column(numbers: np.ndarray, rank: int) -> Node:
    """Numbers along the first of so many dimensions."""
    node: Node = node_of(from_host(np.ascontiguousarray(numbers, np.int64)))
    return build.reshape(node, (len(numbers), *(1,) * (rank - 1)))
