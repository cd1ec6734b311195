"""Arrays joined, split and padded: views and concatenations, which fused kernels read through."""

from __future__ import annotations

import itertools
import math
from operator import index as as_index
from typing import Any

import numpy as np

from clfuse.arrays.conversion import (
    NotNative,
    as_handle,
    cast_for_assignment,
    requested_dtype,
    value_node,
)
from clfuse.arrays.handle import Handle, fresh, is_writeable, layout, native_dtype, node_of, write
from clfuse.arrays.memory_order import Permutation, arrange_axes, loop_order, permuted_node
from clfuse.arrays.promotion import WEAK, Casting
from clfuse.arrays.views import insert_axes, normalized_axis, reshape_view, strict_axis
from clfuse.dispatch.host_call import native
from clfuse.dispatch.record_cache import cache_recording
from clfuse.functions.indexing import subscripts
from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.numpy_releases import PADS_BY_AXIS

from .creation import order_array
from .manipulation import atleast_1d, atleast_2d, atleast_3d, ravel, sliced


def stand_in(handle: Handle) -> np.ndarray:
    """A NumPy array of the same shape and dtype in one element of memory: what NumPy's errors
    need."""
    return np.broadcast_to(np.zeros((), handle._dtype), handle._shape)


# -- joined ---------------------------------------------------------------------------------------


@native(np.concatenate, np.concat)
def concatenate(
    arrays: Any,
    /,
    axis: Any = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: Casting = "same_kind",
) -> Any:
    """Arrays joined along an axis that they have."""
    if dtype is not None and out is not None:
        raise TypeError(
            "concatenate() only takes `out` or `dtype` as an argument, but both were provided."
        )
    if isinstance(arrays, Handle):
        arrays = [subscripts.get(arrays, place) for place in range(len(arrays))]  # type: ignore[arg-type]
    arrays = list(arrays)
    parts = [as_handle(array) for array in arrays]
    if axis is None:
        parts = [ravel(part) for part in parts]
        axis = 0
    if not parts or not parts[0]._shape:
        np.concatenate([stand_in(part) for part in parts], axis)  # NumPy's error
    rank = len(parts[0]._shape)
    place = strict_axis(axis, rank)
    expected = list(parts[0]._shape)
    for part in parts:
        shape = list(part._shape)
        if len(shape) == rank:
            shape[place] = expected[place]
        if shape != expected:
            np.concatenate([stand_in(item) for item in parts], place)  # NumPy's error
    wanted = requested_dtype(dtype)
    if wanted is None and out is not None:
        wanted = native_dtype(out.dtype)
    if wanted is None:
        # Python's numbers, which can be joined flat only, adapt to the arrays beside them.
        weak = [array for array in arrays if type(array) in WEAK]
        strong = {
            part._dtype
            for array, part in zip(arrays, parts, strict=True)
            if type(array) not in WEAK
        }
        wanted = native_dtype(np.result_type(*strong, *weak))
    assert wanted is not None
    target = wanted if out is None else out.dtype
    for part in parts:
        if not np.can_cast(part._dtype, target, casting):
            raise TypeError(
                f"Cannot cast array data from {part._dtype!r} to {target!r} according to the rule "
                f"'{casting}'"
            )
    order = None if out is not None else _order_of(parts, place)
    if order is not None:
        turned = [
            cast_for_assignment(permuted_node(part, part._shape, order), wanted) for part in parts
        ]
        return arrange_axes(build.concatenate(turned, order.index(place)), order)
    node = build.concatenate([cast_for_assignment(node_of(part), wanted) for part in parts], place)
    return deliver_joined(node, out)


def _order_of(parts: list[Handle], axis: int) -> Permutation | None:
    """The order in which joined arrays lie: theirs, where they agree on one."""
    if all(part._view is None or part._view.ordered for part in parts):
        return None
    shape = list(parts[0]._shape)
    shape[axis] = sum(part._shape[axis] for part in parts)
    # Unlike in a ufunc, in a join the stride 0 of a stretched axis counts: as the shortest.
    return loop_order(
        tuple(shape),
        [
            tuple([0 if n == 1 else 2 * abs(s) or 1 for n, s in zip(*pair, strict=True)])
            for pair in [(part._shape, layout(part)[1]) for part in parts]
        ],
    )


def deliver_joined(node: Node, out: Any) -> Any:
    """The node as a new array, or written to `out`, whose shape has to be the same."""
    if out is None:
        return fresh(node)
    if len(out.shape) != len(node.shape):
        raise ValueError("Output array has wrong dimensionality")
    if tuple(out.shape) != node.shape:
        raise ValueError("Output array is the wrong shape")
    if isinstance(out, np.ndarray):
        out[...] = np.asarray(fresh(node))
        return out
    if not is_writeable(out):
        raise ValueError("output array is read-only")
    write(out, cast_for_assignment(node, out._dtype))
    return out


def _listed(arrays: Any, name: str) -> list[Any]:
    if isinstance(arrays, Handle):
        return [subscripts.get(arrays, place) for place in range(len(arrays))]  # type: ignore[arg-type]
    if not hasattr(arrays, "__getitem__"):
        raise TypeError(
            'arrays to stack must be passed as a "sequence" type such as list or tuple.'
        )
    return list(arrays)


@native(np.stack)
def stack(
    arrays: Any,
    axis: Any = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: Casting = "same_kind",
) -> Any:
    """Arrays of one shape joined along a new axis."""
    parts = [as_handle(array) for array in _listed(arrays, "stack")]
    if not parts:
        raise ValueError("need at least one array to stack")
    if len({part._shape for part in parts}) != 1:
        raise ValueError("all input arrays must have the same shape")
    place = normalized_axis(axis, len(parts[0]._shape) + 1)
    wider = [insert_axes(part, place) for part in parts]
    return concatenate(wider, place, out, dtype=dtype, casting=casting)


def _as_list(made: Any) -> list[Any]:
    return list(made) if isinstance(made, tuple | list) else [made]


@native(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: Casting = "same_kind") -> Any:
    """Arrays joined along their first axis, vectors as rows."""
    rows = _as_list(atleast_2d(*_listed(tup, "vstack")))
    return concatenate(rows, 0, dtype=dtype, casting=casting)


@native(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: Casting = "same_kind") -> Any:
    """Arrays joined along their second axis, vectors along their first."""
    parts = _as_list(atleast_1d(*_listed(tup, "hstack")))
    axis = 0 if parts and len(parts[0]._shape) == 1 else 1
    return concatenate(parts, axis, dtype=dtype, casting=casting)


@native(np.dstack)
def dstack(tup: Any) -> Any:
    """Arrays joined along their third axis."""
    return concatenate(_as_list(atleast_3d(*_listed(tup, "dstack"))), 2)


@native(np.column_stack)
def column_stack(tup: Any) -> Any:
    """Vectors as the columns of a matrix."""
    columns = []
    for item in _listed(tup, "column_stack"):
        part = as_handle(item)
        if len(part._shape) < 2:
            part = reshape_view(part, (math.prod(part._shape), 1))
        columns.append(part)
    return concatenate(columns, 1)


@native(np.append)
def append(arr: Any, values: Any, axis: Any = None) -> Any:
    """Values put behind an array."""
    first, second = as_handle(arr), as_handle(values)
    if axis is None:
        first, second = ravel(first), ravel(second)
        axis = len(first._shape) - 1
    return concatenate((first, second), axis)


# -- split ----------------------------------------------------------------------------------------


def _cut(handle: Any, axis: int, bounds: list[int]) -> list[Any]:
    lead = (slice(None),) * axis
    return [
        subscripts.get(handle, (*lead, slice(start, stop)))
        for start, stop in itertools.pairwise(bounds)
    ]


@native(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Any]:
    """Views of parts along an axis, as equal as may be, or cut at the places given."""
    handle = as_handle(ary)
    # NumPy's IndexError where there is no such axis. It counts the rows of a list.
    extent = ary.shape[axis] if hasattr(ary, "shape") else len(ary)
    place = normalized_axis(axis, len(handle._shape))
    try:
        len(indices_or_sections)
    except TypeError:
        sections = int(indices_or_sections)
        if sections <= 0:
            raise ValueError("number sections must be larger than 0.") from None
        each, extras = divmod(extent, sections)
        sizes = [each + 1] * extras + [each] * (sections - extras)
        bounds = [0]
        for size in sizes:
            bounds.append(bounds[-1] + size)
    else:
        bounds = [0, *[as_index(cut) for cut in indices_or_sections], extent]
    return _cut(handle, place, bounds)


@native(np.split)
def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Any]:
    """Views of equal parts along an axis, or cut at the places given."""
    try:
        len(indices_or_sections)
    except TypeError:
        if ary.shape[axis] % indices_or_sections:
            raise ValueError("array split does not result in an equal division") from None
    return array_split(ary, indices_or_sections, axis)


@native(np.hsplit)
def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Views of parts along the second axis, of a vector along its only one."""
    handle = as_handle(ary)
    if not handle._shape:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return split(ary, indices_or_sections, 1 if ary.ndim > 1 else 0)


@native(np.vsplit)
def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Views of parts along the first axis."""
    handle = as_handle(ary)
    if len(handle._shape) < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return split(ary, indices_or_sections, 0)


@native(np.dsplit)
def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Views of parts along the third axis."""
    handle = as_handle(ary)
    if len(handle._shape) < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return split(ary, indices_or_sections, 2)


def unstack(x: Any, /, *, axis: Any = 0) -> tuple[Any, ...]:
    """Views of the array at every position of an axis."""
    handle = as_handle(x)
    if not handle._shape:
        raise ValueError("Input array must be at least 1-d.")
    place = normalized_axis(axis, len(handle._shape))
    lead = (slice(None),) * place
    return tuple([subscripts.get(handle, (*lead, at)) for at in range(handle._shape[place])])


if hasattr(np, "unstack"):  # since NumPy 2.1
    unstack = native(np.unstack)(unstack)


# -- padded ---------------------------------------------------------------------------------------


def _by_axis(widths: dict[Any, Any], rank: int) -> list[tuple[int, int]]:
    """Widths that a dict gives to axes, as NumPy takes them: 0 for the others."""
    if not PADS_BY_AXIS:
        raise TypeError("`pad_width` must be of integral type.")
    pairs = [(0, 0)] * rank
    for axis, width in widths.items():
        match width:
            case int(both):
                pairs[axis] = both, both
            case tuple((int(before), int(after))):
                pairs[axis] = before, after
            case _:
                raise NotNative("widths of another kind")
    return pairs


def _pairs(value: Any, rank: int, name: str) -> list[tuple[Any, Any]]:
    """A pad argument as (before, after), one pair an axis."""
    try:
        return [tuple(pair) for pair in np.broadcast_to(np.asarray(value), (rank, 2)).tolist()]
    except ValueError as error:
        if np.ndim(value) > 2:
            raise
        raise ValueError(
            f"operands could not be broadcast together: `{name}` for {rank} axes"
        ) from error


def _beside(
    node: Node, axis: int, mode: str, width: int, fill: Node | None, *, before: bool
) -> Node:
    """What is put in front of or behind `node` along one axis."""
    extent = node.shape[axis]
    shape = (*node.shape[:axis], width, *node.shape[axis + 1 :])
    if fill is not None:
        return build.broadcast(fill, shape)
    if mode == "edge":
        return build.broadcast(sliced(node, axis, 0 if before else extent - 1, 1), shape)
    if mode == "wrap":
        return sliced(node, axis, extent - width if before else 0, width)
    skip = 1 if mode == "reflect" else 0
    start = skip + width - 1 if before else extent - 1 - skip
    return sliced(node, axis, start, width, -1)


@native(np.pad)
@cache_recording
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """The array with elements put around it."""
    handle = as_handle(array)
    rank = len(handle._shape)
    known = {
        "constant": {"constant_values"},
        "edge": set(),
        "empty": set(),
        "wrap": set(),
        "reflect": {"reflect_type"},
        "symmetric": {"reflect_type"},
    }
    if mode not in known or not kwargs.keys() <= known[mode] or kwargs.get("reflect_type") == "odd":
        raise NotNative(f"mode {mode}")
    if isinstance(pad_width, dict):
        pad_width = _by_axis(pad_width, rank)
    given = np.asarray(pad_width)
    if given.dtype.kind != "i":
        raise TypeError("`pad_width` must be of integral type.")
    if np.any(given < 0):
        raise ValueError("index can't contain negative values")
    if isinstance(kwargs.get("constant_values"), dict):
        raise NotNative("values by axis")
    widths = _pairs(pad_width, rank, "pad_width")
    values = _pairs(kwargs.get("constant_values", 0), rank, "constant_values")
    node = node_of(handle)
    for axis, (widths_here, fills) in enumerate(zip(widths, values, strict=True)):
        extent = node.shape[axis]
        limit = extent - 1 if mode == "reflect" else extent
        if mode in ("reflect", "symmetric", "wrap") and max(widths_here) > limit:
            raise NotNative(f"mode {mode} over more than the array itself")
        if mode == "edge" and extent == 0 and max(widths_here):
            raise ValueError(
                f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'"
            )
        parts = [node]
        for width, value, before in zip(widths_here, fills, (True, False), strict=True):
            if not width:
                continue
            fill = value_node(value, handle._dtype) if mode in ("constant", "empty") else None
            part = _beside(node, axis, mode, width, fill, before=before)
            parts.insert(0, part) if before else parts.append(part)
        node = build.concatenate(parts, axis)
    return order_array(fresh(node), "F" if handle.flags.fnc else "C")
