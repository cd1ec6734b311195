"""Differences of neighbours, derivatives and integrals: diff, gradient, trapezoid."""

from __future__ import annotations

from operator import index as as_index
from typing import Any

import numpy as np

from clfuse.arrays.conversion import NotNative, as_handle
from clfuse.arrays.handle import Handle
from clfuse.arrays.memory_order import copy_in_order, copy_order, permute_view, turned_back
from clfuse.arrays.views import normalized_axes, normalized_axis
from clfuse.dispatch.host_call import native
from clfuse.dispatch.record_cache import cache_recording
from clfuse.dispatch.registry import UFUNCS

from .joining import concatenate
from .manipulation import broadcast_to, ravel

_Missing = np._NoValue


def _along(axis: int, part: slice | int) -> tuple[Any, ...]:
    return (slice(None),) * axis + (part,)


@native(np.diff)
@cache_recording
def diff(
    a: Any, n: Any = 1, axis: Any = -1, prepend: Any = _Missing, append: Any = _Missing
) -> Any:
    """Differences of neighbours along an axis, taken `n` times."""
    times = as_index(n)
    if times == 0:
        return a
    if times < 0:
        raise ValueError("order must be non-negative but got " + repr(times))
    array = as_handle(a)
    if not array._shape:
        raise ValueError("diff requires input that is at least one dimensional")
    place = normalized_axis(axis, len(array._shape))
    parts = [array]
    for end, before in ((prepend, True), (append, False)):
        if end is _Missing:
            continue
        piece = as_handle(end)
        if not piece._shape:
            shape = list(array._shape)
            shape[place] = 1
            piece = broadcast_to(piece, tuple(shape))
        parts.insert(0, piece) if before else parts.append(piece)
    if len(parts) > 1:
        array = concatenate(parts, place)
    function = UFUNCS["not_equal" if array._dtype.kind == "b" else "subtract"]
    for _ in range(times):
        array = function(
            array[_along(place, slice(1, None))], array[_along(place, slice(None, -1))]
        )
    return array


@native(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of neighbours of all elements, with values put around them."""
    array = ravel(as_handle(ary))
    parts = [array[1:] - array[:-1]]
    for end, before in ((to_begin, True), (to_end, False)):
        if end is None:
            continue
        piece = ravel(as_handle(end))
        if not np.can_cast(piece._dtype, array._dtype, "same_kind"):
            name = "to_begin" if before else "to_end"
            raise TypeError(
                f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule."
            )
        piece = piece.astype(array._dtype)
        parts.insert(0, piece) if before else parts.append(piece)
    return concatenate(parts)


# -- gradient -------------------------------------------------------------------------------------


def _spacings(spacing: tuple[Any, ...], array: Handle, axes: tuple[int, ...]) -> list[Any]:
    """One spacing an axis: a number, or the differences of coordinates."""
    if not spacing:
        return [1.0] * len(axes)
    if len(spacing) == 1 and np.ndim(spacing[0]) == 0:
        return list(spacing) * len(axes)
    if len(spacing) != len(axes):
        raise TypeError("invalid number of arguments")
    found: list[Any] = []
    for item, axis in zip(spacing, axes, strict=True):
        if np.ndim(item) == 0:
            found.append(item)
            continue
        if np.ndim(item) != 1:
            raise ValueError("distances must be either scalars or 1d")
        coordinates = as_handle(item)
        if coordinates._shape[0] != array._shape[axis]:
            raise ValueError(
                "when 1d, distances must match the length of the corresponding dimension"
            )
        if coordinates._dtype.kind in "iu":
            coordinates = coordinates.astype(np.float64)
        distances = diff(coordinates)
        # Equal distances make the formula simpler, and its last bits others: NumPy looks, too.
        if bool((distances == distances[0]).all()):
            distances = distances[0]
        found.append(distances)
    return found


def _edge(array: Any, axis: int, spacing: Any, order: int, *, last: bool) -> Any:
    """The one-sided difference at one end of an axis."""
    at = [array[_along(axis, -1 - k if last else k)] for k in range(order + 1)]
    uniform = np.ndim(spacing) == 0
    if order == 1:
        step = spacing if uniform else spacing[-1 if last else 0]
        return ((at[0] - at[1]) if last else (at[1] - at[0])) / step
    if uniform:
        factors = (
            [1.5 / spacing, -2.0 / spacing, 0.5 / spacing]
            if last
            else [
                -1.5 / spacing,
                2.0 / spacing,
                -0.5 / spacing,
            ]
        )
    elif last:
        one, two = spacing[-2], spacing[-1]
        factors = [
            (2.0 * two + one) / (two * (one + two)),
            -(two + one) / (one * two),
            two / (one * (one + two)),
        ]
    else:
        one, two = spacing[0], spacing[1]
        factors = [
            -(2.0 * one + two) / (one * (one + two)),
            (one + two) / (one * two),
            -one / (two * (one + two)),
        ]
    terms = [factor * value for factor, value in zip(factors, at, strict=True)]
    return terms[2] + terms[1] + terms[0] if last else terms[0] + terms[1] + terms[2]


def _interior(array: Any, axis: int, spacing: Any) -> Any:
    before = array[_along(axis, slice(None, -2))]
    after = array[_along(axis, slice(2, None))]
    if np.ndim(spacing) == 0:
        return (after - before) / (2.0 * spacing)
    middle = array[_along(axis, slice(1, -1))]
    one, two = spacing[:-1], spacing[1:]
    shape = [1] * array.ndim
    shape[axis] = -1
    factors = (
        -two / (one * (one + two)),
        (two - one) / (one * two),
        one / (two * (one + two)),
    )
    a, b, c = (factor.reshape(shape) for factor in factors)
    return a * before + b * middle + c * after


@native(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Derivatives along axes, by central differences inside and one-sided ones at the ends."""
    array = as_handle(f)
    rank = len(array._shape)
    if axis is None:
        axes = tuple(range(rank))
    else:
        axes = normalized_axes(axis, rank)
    spacings = _spacings(varargs, array, axes)
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    if array._dtype.kind in "biu":
        if array._dtype.kind == "b":
            raise NotNative("of bool")
        array = array.astype(np.float64)
    made = []
    order = copy_order(array)
    if order is not None:
        array = permute_view(copy_in_order(array), array._shape, order)
    for axis, spacing in zip(axes, spacings, strict=True):
        place = axis if order is None else order.index(axis)
        if array._shape[place] < edge_order + 1:
            raise ValueError(
                "Shape of array too small to calculate a numerical gradient, "
                "at least (edge_order + 1) elements are required."
            )
        parts = [
            _edge(array, place, spacing, edge_order, last=False)[_along(place, None)],  # type: ignore[arg-type]
            _interior(array, place, spacing),
            _edge(array, place, spacing, edge_order, last=True)[_along(place, None)],  # type: ignore[arg-type]
        ]
        joined = concatenate([part.astype(array._dtype, copy=False) for part in parts], place)
        made.append(joined if order is None else turned_back(joined, order))
    return made[0] if len(axes) == 1 else tuple(made)


@native(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    """The integral along an axis, by the trapezoidal rule."""
    values = as_handle(y)
    rank = len(values._shape)
    place = list(range(rank))[axis]  # NumPy's IndexError
    step: Any = dx
    if x is not None:
        coordinates = as_handle(x)
        if len(coordinates._shape) == 1:
            step = diff(coordinates)
            shape = [1] * rank
            shape[place] = step.shape[0]
            step = step.reshape(shape)
        else:
            step = diff(coordinates, axis=axis)
    pairs = values[_along(place, slice(1, None))] + values[_along(place, slice(None, -1))]
    return (step * pairs / 2.0).sum(axis)
