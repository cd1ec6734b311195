"""Reductions with NumPy's signatures: sum, max, all, argmin and their kind."""

from __future__ import annotations

import math
import warnings
from typing import Any, Final

import numpy as np

from clfuse.arrays import errstate
from clfuse.arrays.conversion import NotNative, as_handle
from clfuse.arrays.expressions import choose, combine, convert
from clfuse.arrays.handle import Handle, node_of
from clfuse.arrays.host_array import affordable, known_elements
from clfuse.arrays.memory_order import map_in_order
from clfuse.arrays.promotion import BOOL, INT64
from clfuse.dispatch.host_call import native
from clfuse.dispatch.record_cache import cache_recording
from clfuse.ir import build
from clfuse.user_frames import user_stacklevel

from .folds import arg_fold, deliver_reduction, fold, fold_axes, in_memory_order, reduction_axes

_Missing = np._NoValue


def _fold(
    function: np.ufunc,
    a: Any,
    axis: Any,
    dtype: Any,
    out: Any,
    keepdims: Any,
    initial: Any = _Missing,
    where: Any = _Missing,
) -> Any:
    mask = True if where is _Missing else where
    return fold(function, a, axis, dtype, out, keepdims is not _Missing and keepdims, initial, mask)


@native(np.sum, method=True, numbers=True)
@cache_recording
def sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = _Missing,
    initial: Any = _Missing,
    where: Any = _Missing,
) -> Any:
    """Sum over axes; small integers are added in 64 bits."""
    return _fold(np.add, a, axis, dtype, out, keepdims, initial, where)


@native(np.prod, method=True, numbers=True)
@cache_recording
def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = _Missing,
    initial: Any = _Missing,
    where: Any = _Missing,
) -> Any:
    """Product over axes; small integers are multiplied in 64 bits."""
    return _fold(np.multiply, a, axis, dtype, out, keepdims, initial, where)


@native(np.max, np.amax, method=True, numbers=True)
@cache_recording
def max(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = _Missing,
    initial: Any = _Missing,
    where: Any = _Missing,
) -> Any:
    """Greatest element over axes; NaN if there is one."""
    return _fold(np.maximum, a, axis, None, out, keepdims, initial, where)


@native(np.min, np.amin, method=True, numbers=True)
@cache_recording
def min(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = _Missing,
    initial: Any = _Missing,
    where: Any = _Missing,
) -> Any:
    """Least element over axes; NaN if there is one."""
    return _fold(np.minimum, a, axis, None, out, keepdims, initial, where)


amax = max
amin = min


@native(np.any, method=True, numbers=True)
@cache_recording
def any(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = _Missing, *, where: Any = _Missing
) -> Any:
    """Whether an element is true over axes."""
    return _fold(np.logical_or, a, axis, None, out, keepdims, _Missing, where)


@native(np.all, method=True, numbers=True)
@cache_recording
def all(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = _Missing, *, where: Any = _Missing
) -> Any:
    """Whether every element is true over axes."""
    return _fold(np.logical_and, a, axis, None, out, keepdims, _Missing, where)


@native(np.argmax, method=True, numbers=True)
@cache_recording
def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = _Missing) -> Any:
    """First position of the greatest element (or of the first NaN)."""
    return arg_fold("argmax", a, axis, out, keepdims is not _Missing and keepdims)


@native(np.argmin, method=True, numbers=True)
@cache_recording
def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = _Missing) -> Any:
    """First position of the least element (or of the first NaN)."""
    return arg_fold("argmin", a, axis, out, keepdims is not _Missing and keepdims)


@native(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """How many elements are not zero, over axes."""
    handle = as_handle(a)
    axes = reduction_axes(axis, len(handle._shape))
    if handle._dtype is not BOOL:
        handle = map_in_order(handle, lambda node: convert(node, BOOL))
    handle, axes, _, order = in_memory_order(handle, axes)
    node = fold_axes(np.add, convert(node_of(handle), INT64), axes, INT64)
    return deliver_reduction(node, handle._shape, axes, None, keepdims, order)


@native(np.ptp)
@cache_recording
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = _Missing) -> Any:
    """Greatest minus least element over axes."""
    handle = as_handle(a)
    axes = reduction_axes(axis, len(handle._shape))
    if handle._dtype is BOOL:
        raise NotNative("not for bool")
    if isinstance(out, Handle | np.ndarray):  # NumPy subtracts in it, and refuses what does not fit
        refused = np.empty(0, out.dtype)
        np.subtract(refused, np.empty(0, handle._dtype), out=refused)
    handle, axes, _, order = in_memory_order(handle, axes, True, out)
    node = node_of(handle)
    extremes = [
        fold_axes(function, node, axes, handle._dtype) for function in (np.maximum, np.minimum)
    ]
    difference = combine(np.subtract, *extremes)
    if difference.dtype.kind in "fc":
        errstate.apply_errstate(difference, "subtract")
    kept = keepdims is not _Missing and keepdims
    return deliver_reduction(difference, handle._shape, axes, out, kept, order)


# -- without NaN ----------------------------------------------------------------------------------


def without_nan(a: Any, replacement: float) -> Any:
    """The array with `replacement` for every NaN; itself where its dtype has none."""
    handle = as_handle(a)
    if handle._dtype.kind not in "fc":
        return handle
    other = build.constant(handle._dtype.type(replacement))
    return map_in_order(
        handle,
        lambda node: choose(combine(np.isnan, node), other, node, handle._dtype, node.shape),
    )


@native(np.nansum)
def nansum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = _Missing,
    initial: Any = _Missing,
    where: Any = _Missing,
) -> Any:
    """Sum over axes, NaN counted as 0."""
    return sum(without_nan(a, 0), axis, dtype, out, keepdims, initial, where)


@native(np.nanprod)
def nanprod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = _Missing,
    initial: Any = _Missing,
    where: Any = _Missing,
) -> Any:
    """Product over axes, NaN counted as 1."""
    return prod(without_nan(a, 1), axis, dtype, out, keepdims, initial, where)


_SEARCHED: Final = 4
"""Additions an element of looking for NaN."""


def _nan_extreme(
    function: np.ufunc, a: Any, axis: Any, out: Any, keepdims: Any, **options: Any
) -> Any:
    handle = as_handle(a)
    made = _fold(function, handle, axis, None, out, keepdims, **options)
    # Otherwise it is not known now whether a slice holds nothing but NaN.
    seen = known_elements(handle) if handle._dtype.kind in "fc" else None
    given = [value for value in options.values() if value is not _Missing]
    if seen is not None and affordable(seen.size * _SEARCHED) and not given:
        axes = reduction_axes(axis, len(handle._shape))
        if seen.size and np.isnan(seen).all(axis=axes).any():
            warnings.warn("All-NaN slice encountered", RuntimeWarning, user_stacklevel())
    return made


@native(np.nanmax)
def nanmax(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = _Missing,
    initial: Any = _Missing,
    where: Any = _Missing,
) -> Any:
    """Greatest element over axes that is not NaN."""
    return _nan_extreme(np.fmax, a, axis, out, keepdims, initial=initial, where=where)


@native(np.nanmin)
def nanmin(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = _Missing,
    initial: Any = _Missing,
    where: Any = _Missing,
) -> Any:
    """Least element over axes that is not NaN."""
    return _nan_extreme(np.fmin, a, axis, out, keepdims, initial=initial, where=where)


def element_count(handle: Handle, axes: tuple[int, ...]) -> int:
    """How many elements go into one result."""
    return math.prod([handle._shape[place] for place in axes])
