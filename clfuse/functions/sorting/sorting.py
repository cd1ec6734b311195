"""Sorting and partitioning, by kernels or by NumPy's vectorised sorts on the device's memory.

The elements are written to the memory of the result and sorted there, so an expression is sorted
without another copy of it. Methods sort the array where it lies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import index as as_index
from typing import Any

import numpy as np

from clfuse.arrays.conversion import NotNative, as_handle, host_view
from clfuse.arrays.handle import (
    Handle,
    c_strides,
    fresh,
    is_contiguous,
    is_writeable,
    layout,
    node_of,
)
from clfuse.arrays.memory_order import arrange_axes, copy_order, permuted_node, stride_order
from clfuse.arrays.promotion import INT64
from clfuse.arrays.views import normalized_axis, permute_axes, reshape_view
from clfuse.dispatch.host_call import count_copies, native
from clfuse.dispatch.library_steps import has_sorts, size_of, step
from clfuse.dispatch.registry import UFUNCS
from clfuse.functions.indexing.gathering import mutate
from clfuse.functions.indexing.subscripts import put
from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.ir.value_ranges import known_within
from clfuse.numpy_releases import SORTS_DESCENDING
from clfuse.target.traits import LEAST_SORTED

How = tuple[tuple[str, Any], ...]
"""Keyword arguments of a sort, sorted out: what a node carries."""

_BY_KERNELS = ("sort", "argsort", "partition", "argpartition")
"""A sort is a partition at all places, by kernels in little more time than one."""

MOST_KEYS = 256
"""Of a lexsort. Each is a sort and a gather of the plan, which takes 4 ms to make; the keys of an
array whose rows were meant to be its columns are hundred thousands."""

_NOT_GIVEN = (None, np._NoValue)


def _checked(
    function: Callable[..., Any],
    handle: Handle,
    axis: Any,
    kind: Any,
    order: Any,
    stable: Any,
    descending: Any,
) -> How:
    """How to sort, but for the direction; NumPy's errors, from NumPy."""
    is_plain = kind is None and order is None and stable is None and descending in _NOT_GIVEN
    if type(axis) is int and is_plain:
        normalized_axis(axis, len(handle._shape))
        return ()
    newer = {"descending": descending} if SORTS_DESCENDING else {}
    one = np.zeros((1,) * len(handle._shape), handle._dtype)
    function(one, axis, kind, order, stable=stable, **newer)
    if stable is not None:
        return (("stable", bool(stable)),)
    return () if kind is None else (("kind", str(kind)),)


def _flattened(a: Any, axis: Any) -> tuple[Handle, int]:
    """The array and the axis to work along; both of the flat array where no axis is named."""
    handle = as_handle(a)
    if axis is None:
        return reshape_view(handle, (math.prod(handle._shape),)), 0
    return handle, normalized_axis(axis, len(handle._shape))


def _is_true(descending: Any) -> bool:
    return descending is not np._NoValue and bool(descending)


def _reversed(handle: Handle) -> Handle:
    """The elements as others that sort the other way around: done twice it is nothing. NaN stays
    NaN, which comes last in both directions."""
    name = {"b": "logical_not", "i": "invert", "u": "invert"}.get(handle._dtype.kind, "negative")
    return UFUNCS[name](handle)  # type: ignore[no-any-return]


def _has_kernels(name: str, dtype: np.dtype) -> bool:
    """Whether the current device does this sort by kernels of ours."""
    return name in _BY_KERNELS and dtype.kind != "c" and has_sorts()


def _has_keys(dtype: np.dtype) -> bool:
    """Whether it sorts complex numbers by kernels, as several keys."""
    return dtype.kind == "c" and has_sorts()


def keys_of(array: Any) -> list[Any]:
    """The real keys that numbers are sorted by, the least important first: of real ones themselves.
    Of complex ones NaN in the imaginary part goes behind all numbers, NaN in the real part behind
    that."""
    if array.dtype.kind != "c":
        return [array]
    real, imaginary = array.real, array.imag
    return [imaginary, real, np.isnan(real) * np.uint8(2) + np.isnan(imaginary)]


def order_by(keys: Sequence[Any], place: int) -> Any:
    """The indices that sort by the last key, then by the one before it: stable sorts from the first
    one on."""
    order: Any = None
    for key in keys:
        turned = key if order is None else np.take_along_axis(key, order, place)
        found = argsort(turned, place, kind="stable")
        order = found if order is None else np.take_along_axis(order, found, place)
    return order


def _sorted_by_keys(array: Any, place: int) -> Any:
    return np.take_along_axis(array, order_by(keys_of(array), place), place)


def _changed(handle: Handle, axis: int, name: str, extra: Callable[[int], Any]) -> Any:
    """A copy of the array, as NumPy's copies lie, changed by a library step.

    `extra` makes the step's arguments, given the axis.
    """
    size_of(handle._shape)
    if not _has_kernels(name, handle._dtype):
        count_copies(name)
    order = copy_order(handle)
    if order is None:
        return fresh(_change(node_of(handle), name, extra(axis)))
    node = permuted_node(handle, handle._shape, order)
    return arrange_axes(_change(node, name, extra(order.index(axis))), order)


def _change(node: Node, name: str, extra: Any) -> Node:
    whole = (node.dtype.char, node.shape, 0, c_strides(node.shape))
    return build.library(name, (node,), node.shape, node.dtype, (whole, (), extra))


@native(np.sort, library=True)
def sort(
    a: Any,
    axis: Any = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: Any = None,
    descending: Any = np._NoValue,
) -> Any:
    """A sorted copy. `descending` is the array API standard's, and NumPy's since 2.5."""
    how = _checked(np.sort, as_handle(a), axis, kind, order, stable, descending)
    handle, place = _flattened(a, axis)
    if _is_true(descending):
        return _reversed(sort(_reversed(handle), place, kind, order, stable=stable))
    if _has_keys(handle._dtype) and size_of(handle._shape):
        return _sorted_by_keys(handle, place)
    return _changed(handle, place, "sort", lambda axis: (("axis", axis), *how))


@native(np.argsort, library=True)
def argsort(
    a: Any,
    axis: Any = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: Any = None,
    descending: Any = np._NoValue,
) -> Any:
    """The indices that sort an array along an axis. `descending` is the array API standard's, and
    NumPy's since 2.5; what is equal stays in its order then."""
    handle = as_handle(a)
    if not handle._shape:
        raise NotNative("of a 0-d array")
    how = _checked(np.argsort, handle, axis, kind, order, stable, descending)
    handle, place = _flattened(handle, axis)
    if _is_true(descending):
        if stable is None and kind is None:
            stable = True
        return argsort(_reversed(handle), place, kind, order, stable=stable)
    size_of(handle._shape)
    if _has_keys(handle._dtype):
        return order_by(keys_of(handle), place)
    if not how and handle._shape[place] >= LEAST_SORTED:
        how = (("kind", "stable"),)
    if not _has_kernels("argsort", handle._dtype):
        count_copies("argsort")
    node = _order(handle, (("axis", place), *how))
    return fresh(known_within(node, handle._shape[place]))


def _order(handle: Handle, how: How) -> Node:
    param = ((handle._shape,), how)
    return build.library("argsort", (node_of(handle),), handle._shape, INT64, param)


def _places(kth: Any, extent: int) -> tuple[int, ...]:
    """Where to partition: counted from the front, each once; NumPy's errors where there is none."""
    given = host_view(kth) if isinstance(kth, Handle) else np.asarray(kth)
    if given.dtype.kind not in "iu" or given.ndim > 1:
        np.zeros(extent and 1).partition(given)  # NumPy's error
        raise NotNative("at places of another kind")
    places = [int(place) for place in given.reshape(-1)]
    for place in places:
        if not -extent <= place < extent:
            raise ValueError(
                f"kth(={place + extent if place < 0 else place}) out of bounds ({extent})"
            )
    return tuple(sorted({place % extent for place in places}))


def _check_partition(handle: Handle, axis: Any, kind: Any, order: Any) -> None:
    np.partition(np.zeros((1,) * len(handle._shape), handle._dtype), 0, axis, kind, order)


@native(np.partition, library=True)
def partition(
    a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None
) -> Any:
    """A copy in which elements of `kth` are where they are in a sorted one, smaller ones before."""
    _check_partition(as_handle(a), axis, kind, order)
    handle, place = _flattened(a, axis)
    size_of(handle._shape)
    places = _places(kth, handle._shape[place])
    if _has_keys(handle._dtype):
        return _sorted_by_keys(handle, place)
    if _has_kernels("partition", handle._dtype):
        return _changed(handle, place, "sort", lambda axis: (("axis", axis),))
    return _changed(handle, place, "partition", lambda axis: (places, axis))


@native(np.argpartition, library=True)
def argpartition(
    a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None
) -> Any:
    """The indices that partition an array along an axis."""
    handle = as_handle(a)
    if not handle._shape:
        raise NotNative("of a 0-d array")
    _check_partition(handle, axis, kind, order)
    handle, place = _flattened(handle, axis)
    size_of(handle._shape)
    places = _places(kth, handle._shape[place])
    if _has_keys(handle._dtype):
        return order_by(keys_of(handle), place)
    if _has_kernels("argpartition", handle._dtype):
        node = _order(handle, (("axis", place), ("kind", "stable")))
    else:
        node = step("argpartition", [node_of(handle)], handle._shape, INT64, (places, place))
    return fresh(known_within(node, handle._shape[place]))


@native(np.lexsort, library=True)
def lexsort(keys: Any, axis: Any = -1) -> Any:
    """The indices that sort by the last key, then by the one before it, and so on."""
    if isinstance(keys, Handle):
        if not keys._shape:
            raise NotNative("of no sequence")
        if keys._shape[0] > MOST_KEYS:
            raise NotNative("of very many keys")
        keys = [keys[place] for place in range(keys._shape[0])]
    parts = [as_handle(key) for key in keys]
    if len(parts) > MOST_KEYS:
        raise NotNative("of very many keys")
    shapes = {part._shape for part in parts}
    if len(shapes) != 1 or () in shapes:
        raise NotNative("of keys of other shapes")
    (shape,) = shapes
    size_of(shape)
    if not -len(shape) <= as_index(axis) < len(shape):
        raise NotNative("along an axis that there is not")
    if has_sorts():
        whole = [key for part in parts for key in keys_of(part)]
        return order_by(whole, as_index(axis) % len(shape))
    nodes = [node_of(part) for part in parts]
    return fresh(step("lexsort", nodes, shape, INT64, axis % len(shape)))


def sort_in_place(
    handle: Handle, axis: Any, kind: Any, order: Any, stable: Any, descending: Any = None
) -> None:
    """``a.sort()``."""
    how = _checked(np.sort, handle, axis, kind, order, stable, descending)
    if _is_true(descending):
        if not is_writeable(handle):
            raise ValueError("sort array is read-only")
        place = normalized_axis(axis, len(handle._shape))
        named = {} if stable is None else {"stable": stable}
        put(handle, Ellipsis, sort(handle, place, kind, order, descending=True, **named))
        return
    _change_in_place(handle, axis, "sort", lambda place: (("axis", place), *how))


def partition_in_place(handle: Handle, kth: Any, axis: Any, kind: Any, order: Any) -> None:
    """``a.partition(kth)``."""
    _check_partition(handle, axis, kind, order)
    if not is_writeable(handle):
        raise ValueError("partition array is read-only")
    extent = handle._shape[axis] if handle._shape else 1
    if math.prod(handle._shape):
        places = _places(kth, extent)
        _change_in_place(handle, axis, "partition", lambda place: (places, place))


def _change_in_place(handle: Handle, axis: Any, name: str, extra: Callable[[int], Any]) -> None:
    if not is_writeable(handle):
        raise ValueError("sort array is read-only")
    place = normalized_axis(axis, len(handle._shape))
    if not math.prod(handle._shape) or (name == "sort" and handle._shape[place] < 2):
        return
    if _has_keys(handle._dtype):
        put(handle, Ellipsis, _sorted_by_keys(handle, place))
        return
    if not _has_kernels(name, handle._dtype):
        mutate(handle, name, [], extra(place))
        return
    how = dict(extra(place)) if name == "sort" else {}
    order = _storage_order(handle)
    if order is None:
        how.pop("axis", None)
        put(handle, Ellipsis, sort(handle, place, **how))
        return
    how["axis"] = order.index(place)
    mutate(permute_axes(handle, order), "sort", [], tuple(how.items()), counted=False)


def _storage_order(handle: Handle) -> tuple[int, ...] | None:
    """The handle's axes in the order in which they are those of its storage; None where the handle
    shows a part of it, or reads it as another array."""
    node = handle._storage.node
    order = stride_order(handle._shape, layout(handle)[1]) or tuple(range(len(handle._shape)))
    turned = permute_axes(handle, order)
    is_whole = turned._shape == node.shape and layout(turned)[0] == 0 and is_contiguous(turned)
    return order if is_whole and handle._dtype is node.dtype else None
