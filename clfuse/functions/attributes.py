"""Attributes and dtype changes of arrays: real, imag, ``view(dtype)``, shape set in place."""

from __future__ import annotations

import math
import warnings
from operator import index as as_index
from typing import Any

import numpy as np

from clfuse.arrays import errstate, reinterpret
from clfuse.arrays import handle as handles
from clfuse.arrays.conversion import (
    NotNative,
    cast,
    host_copy,
    host_scalar,
    host_view,
    requested_dtype,
)
from clfuse.arrays.handle import (
    Handle,
    View,
    fresh,
    is_contiguous,
    is_ordered,
    layout,
    native_dtype,
    node_of,
    result,
    view_of,
)
from clfuse.arrays.memory_order import (
    asked_order,
    copy_in_order,
    is_fortran,
    map_in_order,
    parse_order,
    turned_back,
)
from clfuse.arrays.promotion import Casting
from clfuse.arrays.shared_storage import seen_by_numpy
from clfuse.arrays.views import completed_shape, requested_shape, reshaped_strides, strided_view
from clfuse.dispatch.host_call import announced, host_call
from clfuse.ir import build
from clfuse.numpy_releases import CHECKS_PARTS, DEPRECATED_SETTERS
from clfuse.user_frames import user_stacklevel

from .indexing.subscripts import put

_NOT_GIVEN = np._NoValue
_COMPLEX_TO_REAL = "Casting complex values to real discards the imaginary part"


def real_part(handle: Handle) -> Any:
    """``x.real``: a view of the real parts; the array itself where it is not complex."""
    return handle if handle._dtype.kind != "c" else _component(handle, 0)


def imaginary_part(handle: Handle) -> Any:
    """``x.imag``: a view of the imaginary parts; read-only zeros where there are none."""
    if handle._dtype.kind == "c":
        return _component(handle, 1)
    zero = handle._dtype.type(0)
    if type(handle) in handles.SCALARS:
        return result(build.full(zero, ()))
    kept = asked_order("A", handle._shape, (handle,), None)
    array = fresh(build.full(zero, handle._shape[::-1] if kept else handle._shape))
    if kept:
        turned_back(array, kept)
    array.flags.writeable = False
    return array


def set_part(part: Handle, value: Any) -> None:
    """``x.real = value``: NumPy makes an array of the value first, before 2.5 not yet of the dtype,
    so a number that this does not hold wraps there."""
    if not isinstance(value, Handle | np.ndarray | np.generic):
        value = np.asarray(value, part._dtype if CHECKS_PARTS else None)
    put(part, Ellipsis, value)


def _component(handle: Handle, part: int) -> Any:
    half = native_dtype(np.dtype(f"float{4 * handle._dtype.itemsize}"))
    assert half is not None
    if type(handle) in handles.SCALARS:
        name = "imag" if part else "real"
        return result(build.apply(name, (node_of(handle),), half, ()))
    offset, strides = layout(handle)
    doubled = tuple([2 * stride for stride in strides])
    return view_of(handle, handle._shape, 2 * offset + part, doubled, half)


def _layout_as(handle: Handle, dtype: np.dtype) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
    """Shape, offset and strides of the same bytes as `dtype`; NumPy's ValueError where they do
    not fit."""
    shape = handle._shape
    offset, strides = layout(handle)
    old, new = handle._dtype.itemsize, dtype.itemsize
    if old == new:
        return shape, offset, strides
    if not shape:
        raise ValueError(
            "Changing the dtype of a 0d array is only supported if the itemsize is unchanged"
        )
    if shape[-1] != 1 and strides[-1] != 1 and 0 not in shape:
        raise ValueError(
            "To change to a dtype of a different size, the last axis must be contiguous"
        )
    if old > new:
        ratio = old // new
        return (
            (*shape[:-1], shape[-1] * ratio),
            offset * ratio,
            (*[stride * ratio for stride in strides[:-1]], 1),
        )
    ratio = new // old
    if shape[-1] % ratio:
        raise ValueError(
            "When changing to a larger dtype, its size must be a divisor of the total size in "
            "bytes of the last axis of the array."
        )
    if offset % ratio or any(stride % ratio for stride in strides[:-1]):
        raise NotNative("the view would not be aligned")
    return (
        (*shape[:-1], shape[-1] // ratio),
        offset // ratio,
        (*[stride // ratio for stride in strides[:-1]], 1),
    )


def viewed(handle: Handle, dtype: Any = _NOT_GIVEN, type: Any = None) -> Any:
    """``x.view(dtype)``: the same bytes as another dtype; written through either, seen in both.

    A view of a dtype that lives on no device, or that is not aligned, is NumPy's array, and so is
    ``x.view(Subclass)``: the bytes lie on the host as long as there is one.
    """
    if isinstance(dtype, builtin_type) and issubclass(dtype, np.ndarray | Handle):
        dtype, type = _NOT_GIVEN, dtype
    if type is not None and type not in (handles.ARRAY, np.ndarray):
        if not (isinstance(type, builtin_type) and issubclass(type, np.ndarray)):
            raise ValueError("Type must be a sub-type of ndarray type")
        with announced("view", f"{type.__name__} is a subclass"):
            host = _on_host(handle)
            return host.view(type) if dtype is _NOT_GIVEN else host.view(dtype, type)
    if dtype is _NOT_GIVEN:
        return view_of(handle, handle._shape, *layout(handle))
    if dtype is None:
        dtype = float  # as everywhere in NumPy
    try:
        wanted = requested_dtype(dtype)
    except NotNative as missing:
        with announced("view", str(missing)):
            return _on_host(handle).view(dtype)
    assert wanted is not None
    try:
        shape, offset, strides = _layout_as(handle, wanted)
    except NotNative as missing:
        with announced("view", str(missing)):
            return _on_host(handle).view(wanted)
    if builtin_type(handle) in handles.SCALARS:
        return result(reinterpret.read_as(handle._storage.node, shape, wanted, 0, ()))
    return view_of(handle, shape, offset, strides, wanted)


builtin_type = type


def _on_host(handle: Handle) -> np.ndarray:
    """The array as NumPy's, in memory that both of them have; of a scalar a copy."""
    return host_copy(handle) if type(handle) in handles.SCALARS else seen_by_numpy(handle)


def _settle(handle: Handle, shape: tuple[int, ...], offset: int, strides: tuple[int, ...]) -> None:
    """Give an array another layout on its storage, in place."""
    view = handle._view
    base, writeable = (None, True) if view is None else (view.base, view.writeable)
    handle._shape = shape
    handle._view = View(offset, strides, base, is_ordered(shape, strides), writeable)


def _warn_of_setting(attribute: str) -> None:
    """The installed NumPy's warning of setting an attribute, if it has one."""
    if attribute in DEPRECATED_SETTERS:
        warnings.warn(DEPRECATED_SETTERS[attribute], DeprecationWarning, user_stacklevel())


def set_shape(handle: Handle, shape: Any) -> None:
    """``x.shape = shape``: AttributeError where that takes a copy."""
    _warn_of_setting("shape")
    reshape_in_place(handle, shape)


def reshape_in_place(handle: Handle, shape: Any) -> None:
    """`set_shape` for methods that no release deprecates."""
    wanted = completed_shape(requested_shape(shape), math.prod(handle._shape))
    offset, strides = layout(handle)
    found = reshaped_strides(handle._shape, strides, wanted)
    if found is None:
        raise AttributeError(
            "Incompatible shape for in-place modification. Use `.reshape()` to make a copy with "
            "the desired shape."
        )
    _settle(handle, wanted, offset, found)


def set_strides(handle: Handle, strides: Any) -> None:
    """``x.strides = strides``: other elements of the same memory, in place."""
    _warn_of_setting("strides")
    if strides is None:
        raise TypeError("invalid strides")
    try:
        found = strided_view(handle, None, strides)
    except NotNative as missing:
        raise ValueError(f"strides {strides}: {missing}") from None
    _settle(handle, found._shape, *layout(found))


def set_dtype(handle: Handle, dtype: Any) -> None:
    """``x.dtype = dtype``: the same bytes under another dtype, in place."""
    _warn_of_setting("dtype")
    wanted = native_dtype(np.dtype(dtype))
    if wanted is None:
        raise TypeError(f"{np.dtype(dtype)}: an array on a device keeps a dtype that lives there")
    try:
        found = _layout_as(handle, wanted)
    except NotNative as missing:
        raise ValueError(f"{wanted}: {missing}; a copy of the array can take this dtype") from None
    _settle(handle, *found)
    handle._dtype = wanted


def cast_to(
    handle: Handle,
    dtype: Any,
    order: Any = "K",
    casting: Casting = "unsafe",
    subok: bool = True,
    copy: bool = True,
) -> Any:
    """``x.astype(dtype)``: a new array, unless it may be the same one and `copy` is false."""
    as_index(subok)  # nothing more: arrays have no subclasses
    try:
        wanted = requested_dtype(dtype if dtype is not None else float)
    except NotNative as missing:
        with announced("astype", str(missing)):
            if type(handle) in handles.SCALARS:
                return host_scalar(handle).astype(dtype, casting=casting)
            return host_view(handle).astype(dtype, order=order, casting=casting, copy=True)
    assert wanted is not None
    reason = ""
    if errstate.mode[0] is errstate.STRICT and handle._dtype.kind in "fc":
        reason = errstate.CHECKED
    elif isinstance(casting, str) and casting == "same_value":
        reason = "an error that depends on the values"
    if reason:
        options = {"order": order, "casting": casting, "copy": copy}
        is_scalar = type(handle) in handles.SCALARS
        method = handle._dtype.type.astype if is_scalar else np.ndarray.astype
        return host_call(method, (handle, wanted), options, reason, "ndarray.astype")
    if not np.can_cast(handle._dtype, wanted, casting):
        what = "scalar" if type(handle) in handles.SCALARS else "array data"
        raise TypeError(
            f"Cannot cast {what} from {handle._dtype!r} to {wanted!r} according to the rule "
            f"'{casting}'"
        )
    letter = parse_order(order)
    if not copy and wanted is handle._dtype and _lies_in(handle, letter):
        return handle
    if handle._dtype.kind == "c" and wanted.kind not in "cb":
        warnings.warn(_COMPLEX_TO_REAL, np.exceptions.ComplexWarning, user_stacklevel())
    if type(handle) in handles.SCALARS:
        return result(cast(node_of(handle), wanted))
    if wanted is handle._dtype:
        return copy_in_order(handle, letter)
    return map_in_order(handle, lambda node: cast(node, wanted), letter)


def _lies_in(handle: Handle, order: str) -> bool:
    """Whether the array lies in memory as `order` asks for."""
    if order == "C":
        return is_contiguous(handle)
    if order == "F":
        return is_fortran(handle)
    return order == "K" or is_contiguous(handle) or is_fortran(handle)
