"""``x[index]`` and ``x[index] = value`` for all kinds of indices.

Integers, slices, Ellipsis and newaxis give views: a new layout on the same storage. Integer arrays
are loads at computed positions (`gathering`); an assignment through them is made by a kernel
(`scattering`), or by NumPy on the device's memory. One boolean array, of the array's shape or of
that of its leading axes, selects by `masks`. Masks beside other indices go through the host.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np

from clfuse.arrays import handle as handles
from clfuse.arrays import host_array, reinterpret
from clfuse.arrays.basic_index import check_kinds, locate
from clfuse.arrays.conversion import (
    NotNative,
    array_of,
    as_handle,
    contains_handles,
    copied_node,
    from_host,
    host_node,
    host_view,
    value_node,
)
from clfuse.arrays.expressions import shape_text
from clfuse.arrays.handle import (
    Handle,
    fresh,
    is_writeable,
    layout,
    native_dtype,
    node_of,
    result,
    view_of,
    write,
    write_region,
)
from clfuse.arrays.promotion import BOOL
from clfuse.dispatch.host_call import HostArguments, announced
from clfuse.eager import get_by_arrays, set_in_place
from clfuse.ir import build
from clfuse.ir.nodes import Node, boundary
from clfuse.runtime.memory.buffers import HostBuffer

from .gathering import gather_elements, mutate, numpys_selection, parse, source_of
from .masks import (
    LITTLE,
    choose_by_mask,
    coordinates,
    little_places,
    select_by_mask,
    write_by_mask,
)
from .scattering import scatter

_BOOLS = (bool, np.bool_)




# -- reading --------------------------------------------------------------------------------------


def get(handle: Handle, index: Any) -> Any:
    """``handle[index]``: a view, a lazy scalar, or through the host a new array."""
    if boundary.due:
        boundary.reached()
    view = handle._view
    if view is None:
        offset, strides = 0, handles.c_strides(handle._shape)
    else:
        offset, strides = view.offset, view.strides
    found = locate(handle._shape, offset, strides, index)
    if found is None:
        chosen = get_by_arrays(handle, index)
        return _get_advanced(handle, index) if chosen is host_array.DEFER else chosen
    shape, offset, strides, is_element = found
    if is_element:
        return element(handle, offset)
    if host_array.is_passed(shape, handle._shape):
        host_array.expect_rows(handle._storage, shape)
    return view_of(handle, shape, offset, strides)


def element(handle: Handle, offset: int) -> Any:
    """The element at a storage position: later writes do not change it.

    A scalar of NumPy's where the array lies on the host, else a lazy one. An array that was only
    recorded is computed once so many were asked for that it must be a loop: each look at one of
    them would compute the rest again.
    """
    value = host_array.host_element(handle, offset)
    if value is host_array.DEFER and handle._storage.node.buffer is None:
        host_array.expect_rows(handle._storage, ())
        value = host_array.host_element(handle, offset)
    if value is not host_array.DEFER:
        return value
    return result(reinterpret.read_as(handle._storage.node, (), handle._dtype, offset, ()))


def _get_advanced(handle: Handle, index: Any) -> Any:
    index = _plain(index)
    mask = _single_mask(index)
    if mask is not None and mask.shape == handle._shape[: mask.ndim]:
        return fresh(select_by_mask(node_of(handle), node_of(as_handle(mask))))
    chooser = _scalar_mask(index)
    if chooser is not None:
        shape = (int(bool(chooser)), *handle._shape)
        node = node_of(handle)
        if shape[0]:
            return fresh(build.reshape(node, shape))
        return fresh(build.full(handle._dtype.type(0), shape))
    index = _without_masks(handle._shape, index)
    source, offset, strides = source_of(handle)
    try:
        chosen = parse(handle._shape, offset, strides, index)
    except NotNative as missing:
        return _get_on_host(handle, index, str(missing))
    if chosen is None:
        shape = numpys_selection(handle._shape, HostArguments().to_host(index)).shape
        if math.prod(shape):
            return _get_on_host(handle, index, "an index holds what is no array")
        return fresh(build.full(handle._dtype.type(0), shape))
    node = gather_elements(source, chosen)
    return fresh(node) if Ellipsis in chosen.template else result(node)


def _plain(index: Any) -> Any:
    """The index without subclasses of tuple and of NumPy's arrays, and with arrays of ours in place
    of what gives such by ``__array__``."""
    if isinstance(index, tuple):
        return tuple([_plain_item(item) for item in index])
    return _plain_item(index)


def _plain_item(item: Any) -> Any:
    if isinstance(item, np.ndarray):
        return item.view(np.ndarray)
    if isinstance(item, Handle | np.generic | list | tuple) or not hasattr(type(item), "__array__"):
        return item
    return array_of(item)


def _get_on_host(handle: Handle, index: Any, reason: str) -> Any:
    host_index = HostArguments().to_host(index)
    check_kinds(host_index)
    with announced("__getitem__", reason):
        chosen = host_view(handle)[host_index]
    if isinstance(chosen, np.generic):
        return result(build.constant(chosen))
    return from_host(chosen)


# -- writing --------------------------------------------------------------------------------------


def put(handle: Handle, index: Any, value: Any) -> None:
    """``handle[index] = value``."""
    if not is_writeable(handle):
        raise ValueError("assignment destination is read-only")
    is_shared = type(value) is handles.ARRAY and value._storage is handle._storage
    if is_shared and host_array.is_at(value, handle, index):
        return  # what `x[i:j] += y` ends with: the view was written to already
    if set_in_place(handle, index, value):
        return
    if boundary.due and not isinstance(value, Handle):
        boundary.reached()
    found = locate(handle._shape, *layout(handle), index)
    if found is None:
        _put_advanced(handle, index, value)
        return
    shape, offset, strides, is_element = found
    if (type(value) is list or type(value) is tuple) and not contains_handles(value):
        value = _of_sequence(value, shape, handle._dtype, is_element)
    if is_element:
        value = as_element(value, handle._dtype)
    if (
        isinstance(value, Handle)
        and value._storage is handle._storage
        and value._shape == shape
        and value._dtype is handle._dtype
        and layout(value) == (offset, strides)
    ):
        return  # what `x[i:j] += y` ends with: the view was written to already
    whole = _whole(value, handle._dtype)
    if whole is not None and not is_element:
        fit_to_shape(whole, shape)
    node = whole if whole is not None and is_element else value_node(value, handle._dtype)
    if is_element and node.shape:
        # NumPy's error, which the dtype decides; older ones take a single element, and a boolean
        # any sequence.
        one = np.empty(1, handle._dtype)
        if isinstance(value, Handle):
            one[0] = np.empty(node.shape)
        else:
            one[0] = value
            node = value_node(one[0], handle._dtype)
    if node is whole:
        node = value_node(value, handle._dtype)
    is_here = not isinstance(value, Handle) or host_array.host_elements(value) is not None
    if is_here and host_array.expect_writes(handle._storage, shape) and (
        set_in_place(handle, index, value)
    ):
        return
    if node.shape != shape:
        node = fit_to_shape(node, shape)
    write_region(handle, shape, offset, strides, node)


def _of_sequence(
    value: Any, shape: tuple[int, ...], dtype: np.dtype, is_element: bool
) -> np.ndarray | np.generic:
    """A list or a tuple as what `shape` elements are assigned. NumPy looks no deeper into it than
    there are axes: what lies below is an element each time, or an error."""
    if is_element:
        one = np.empty(1, dtype)
        one[0] = value
        return one[0]  # type: ignore[no-any-return]
    with suppress(TypeError, ValueError, OverflowError):
        made = np.asarray(value, dtype)
        if made.ndim <= len(shape):
            return made
    made = np.empty(shape, dtype)
    made[...] = value
    return made


def as_element(value: Any, dtype: np.dtype) -> Any:
    """What one element is assigned: of a class of 0-d arrays (`numpy.ma.masked`) the number that
    the class says, as Python's `float` of it."""
    if isinstance(value, np.ndarray) and not value.shape and type(value) is not np.ndarray:
        cell = np.empty((), dtype)
        cell[()] = value
        return cell[()]
    return value


def _whole(value: Any, dtype: np.dtype) -> Node | None:
    """A value whose imaginary part `dtype` drops, with it: NumPy warns of that when the shapes are
    known to fit. None for all others."""
    if dtype.kind in "cb" or not isinstance(value, Handle | np.ndarray | np.generic):
        return None
    if value.dtype.kind != "c" or native_dtype(value.dtype) is None:
        return None
    return node_of(as_handle(value))


def fit_to_shape(node: Node, shape: tuple[int, ...]) -> Node:
    """`node` stretched to `shape` as an assignment does: leading extents of 1 may be dropped."""
    given = node.shape
    if given == shape:
        return node
    wanted = given
    while len(wanted) > len(shape) and wanted[0] == 1:
        wanted = wanted[1:]
    lead = len(shape) - len(wanted)
    if lead < 0 or any(
        extent not in (1, goal) for extent, goal in zip(wanted, shape[lead:], strict=True)
    ):
        raise ValueError(
            f"could not broadcast input array from shape {shape_text(wanted)} into shape "
            f"{shape_text(shape)}"
        )
    return build.broadcast(node if wanted == given else build.reshape(node, wanted), shape)


def _put_advanced(handle: Handle, index: Any, value: Any) -> None:
    index = _plain(index)
    mask = _single_mask(index)
    if mask is not None and _put_masked(handle, mask, value):
        return
    chooser = _scalar_mask(index)
    if chooser is not None and _put_everywhere(handle, chooser, value):
        return
    try:
        positions = index if mask is not None else _without_masks(handle._shape, index)
        if _scatter(handle, positions, value):
            return
        reason = "the index or the value holds what is no array"
    except NotNative as missing:
        reason = str(missing)
    host_index = HostArguments().to_host(index)
    check_kinds(host_index)
    arguments = HostArguments()
    given = arguments.to_host(value)
    with announced("__setitem__", reason):
        changed = np.array(host_view(handle))
        changed[host_index] = given
    write(handle, host_node(changed))


def _scatter(handle: Handle, index: Any, value: Any) -> bool:
    """Record an assignment through index arrays, of which the last of several wins: by a kernel, or
    by NumPy where the device shares its memory."""
    chosen = parse(handle._shape, *layout(handle), index)
    if chosen is None:
        shape = numpys_selection(handle._shape, HostArguments().to_host(index)).shape
        if math.prod(shape):
            return False
        whole = _whole(value, handle._dtype)
        if whole is not None:
            stretching(whole, shape)
        stretching(copied_node(value, handle._dtype), shape)
        return True
    whole = _whole(value, handle._dtype)
    if whole is not None and chosen.common:
        stretching(whole, chosen.shape)
    node = copied_node(value, handle._dtype)
    if chosen.common:
        node = stretching(node, chosen.shape)
    else:  # integers in arrays of no axes are integers
        fit_to_shape(node, chosen.shape)
    if scatter(handle, chosen, node):
        return True
    mutate(handle, "setitem", [*[item.node for item in chosen.arrays], node], chosen.template)
    return True


def stretching(node: Node, shape: tuple[int, ...]) -> Node:
    """`node` without leading extents of 1 beyond those of `shape`, to which it must stretch."""
    try:
        fit_to_shape(node, shape)
    except ValueError:
        raise ValueError(
            f"shape mismatch: value array of shape {shape_text(node.shape)} could not be broadcast "
            f"to indexing result of shape {shape_text(shape)}"
        ) from None
    return build.reshape(node, node.shape[max(len(node.shape) - len(shape), 0) :])


def _single_mask(index: Any) -> Any:
    """The mask, where the index is nothing but one boolean array; else None."""
    if type(index) is tuple and len(index) == 1:
        (index,) = index
    if type(index) is tuple and len(index) == 2 and index[1] is Ellipsis:
        index = index[0]
    if type(index) is list and index and all(isinstance(item, _BOOLS) for item in index):
        return np.array(index)
    if isinstance(index, Handle | np.ndarray) and index.dtype == BOOL and index.ndim > 0:
        return index
    return None


def _scalar_mask(index: Any) -> Any:
    """The truth value, where the index is nothing but one: all of the array, or nothing of it."""
    if type(index) is tuple and len(index) == 1:
        (index,) = index
    if isinstance(index, _BOOLS):
        return index
    is_scalar = isinstance(index, Handle | np.ndarray) and index.dtype == BOOL and index.ndim == 0
    return index if is_scalar else None


def _put_everywhere(handle: Handle, chooser: Any, value: Any) -> bool:
    """Assign to the whole array if `chooser` is true; False where NumPy has to say what is
    wrong."""
    shape = handle._shape
    try:
        node = copied_node(value, handle._dtype)
    except NotNative:
        return False
    if 0 in node.shape or 0 in shape:
        return False
    node = build.reshape(fit_to_shape(node, (1, *shape)), shape)
    choose_by_mask(handle, node_of(as_handle(chooser)), node)
    return True


def _without_masks(shape: tuple[int, ...], index: Any) -> Any:
    """The index with the positions of what is true in place of its masks, where they fit.

    As NumPy defines it: a mask among other indices is its `nonzero`. What does not fit stays, so
    that NumPy raises its error.
    """
    items = index if type(index) is tuple else (index,)
    masks = {place: item for place, item in enumerate(items) if _is_mask(item)}
    if not masks:
        return index
    known = [item for item in items if item is not None and item is not Ellipsis]
    taken = sum(item.ndim if _is_mask(item) else 1 for item in known)
    found: list[Any] = []
    axis = 0
    for place, item in enumerate(items):
        if place in masks:
            if item.shape != shape[axis : axis + item.ndim]:
                return index
            found += [fresh(node) for node in coordinates(as_handle(item))]
            axis += item.ndim
            continue
        found.append(item)
        if item is Ellipsis:
            axis += len(shape) - taken
        elif item is not None:
            axis += 1
    return tuple(found)


def _is_mask(item: Any) -> bool:
    return isinstance(item, Handle | np.ndarray) and item.dtype == BOOL and item.ndim > 0


def _put_little(handle: Handle, mask: Node, value: Node) -> bool:
    """Assign what NumPy has computed through a mask that selects little; False where that is not
    so."""
    rest = handle._shape[len(mask.shape) :]
    count = math.prod(value.shape)
    if type(value.buffer) is not HostBuffer or LITTLE * count > math.prod(mask.shape):
        return False
    places = little_places(mask, math.prod(rest))
    if places is None or value.shape != (len(places), *rest):
        return False
    return _scatter(handle, np.unravel_index(places, mask.shape), fresh(value))


def _put_masked(handle: Handle, mask: Any, value: Any) -> bool:
    """Assign through a mask; False where the value does not have one element for each selected."""
    rank = len(mask.shape)
    shape = handle._shape
    if mask.shape != shape[:rank]:
        return False  # NumPy's error, from NumPy
    try:
        node = copied_node(value, handle._dtype)
        chooser = node_of(as_handle(mask))
    except NotNative:
        return False
    rest = shape[rank:]
    if len(node.shape) == len(rest) + 1 and node.shape[0] == 1:
        node = build.reshape(node, node.shape[1:])
    if len(node.shape) > len(rest) or any(
        extent not in (1, goal) for extent, goal in zip(node.shape[::-1], rest[::-1], strict=False)
    ):
        return _put_little(handle, chooser, node) or write_by_mask(handle, chooser, node)
    if rest:
        chooser = build.reshape(chooser, mask.shape + (1,) * len(rest))
    choose_by_mask(handle, chooser, node)
    return True
