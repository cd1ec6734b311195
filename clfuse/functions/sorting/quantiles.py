"""Medians and quantiles that leave NaN out.

NumPy takes the lanes of an array one by one, because the number of elements that are not NaN
differs from lane to lane. Here all lanes are sorted, NaN last, and each takes its own elements from
its front. The formulas of the methods are NumPy's own functions of the number of elements.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, Final

import numpy as np
from numpy.lib import _function_base_impl as formulas

from clfuse.arrays.conversion import NotNative, as_handle, host_view
from clfuse.arrays.handle import Handle, downcasts, is_writeable, lacks_fp64, node_of, result
from clfuse.arrays.promotion import INT64
from clfuse.arrays.views import one_or_several, reshape_view
from clfuse.dispatch.host_call import native, shares_memory
from clfuse.dispatch.registry import NATIVE, UFUNCS
from clfuse.functions.attributes import cast_to
from clfuse.functions.indexing.subscripts import get
from clfuse.functions.indexing.taking import take_along_axis
from clfuse.functions.math import reductions
from clfuse.functions.math.folds import reduction_axes
from clfuse.functions.math.selection import where
from clfuse.functions.rebound import LEAST_RANKED, rehomed
from clfuse.functions.shaping.joining import deliver_joined as written
from clfuse.functions.shaping.manipulation import moveaxis
from clfuse.ir import build
from clfuse.user_frames import user_stacklevel

from .sorting import sort

_Missing = np._NoValue
_METHODS: Final[dict[str, dict[str, Any]]] = vars(formulas)["_QuantileMethods"]
"""NumPy's formulas by the name of the method."""


class _Lanes:
    """The elements along some axes side by side, sorted; how many are not NaN in each lane.

    shape (tuple of int): of the lanes.
    kept (tuple of int): the same with the reduced axes as extents of 1.
    counts: of the lanes, int64.
    """

    def __init__(self, handle: Handle, axis: Any) -> None:
        shape = handle._shape
        axes = reduction_axes(None if axis is None else one_or_several(axis), len(shape))
        rest = [place for place in range(len(shape)) if place not in axes]
        self.shape = tuple([shape[place] for place in rest])
        self.kept = tuple([1 if place in axes else n for place, n in enumerate(shape)])
        turned = moveaxis(handle, axes, tuple(range(len(rest), len(shape))))
        length = math.prod([shape[place] for place in axes])
        lanes = reshape_view(turned, (*self.shape, length))
        if 0 in lanes._shape or not shape:
            raise NotNative("of an empty array")
        self.sorted = sort(lanes, -1)
        present = UFUNCS["equal"](lanes, lanes)
        self.counts = reductions.sum(present, -1, INT64)

    def at(self, places: Any) -> Any:
        """Elements at places of each lane, cut to those it has: (*lanes, number of places)."""
        last = UFUNCS["subtract"](self.counts, 1)[..., None]
        inside = UFUNCS["maximum"](UFUNCS["minimum"](places, last), 0)
        return take_along_axis(self.sorted, inside, -1)

    def warn(self, *, each: bool = False) -> bool:
        """As NumPy does where nothing in a lane is a number, once or for each such lane; waits.

        Whether that is so in the first lane.
        """
        empty = int(reductions.sum(UFUNCS["equal"](self.counts, 0)))
        for _ in range(empty if each else min(empty, 1)):
            warnings.warn("All-NaN slice encountered", RuntimeWarning, user_stacklevel())
        return empty > 0 and not int(self.counts[(0,) * len(self.shape)])


def _delivered(made: Any, lanes: _Lanes, leading: tuple[int, ...], keepdims: Any, out: Any) -> Any:
    """A result of shape ``(*leading, *lanes)``."""
    shape = leading + (lanes.kept if keepdims and keepdims is not _Missing else lanes.shape)
    node = build.reshape(node_of(made), shape)
    if out is None:
        return result(node)
    if tuple(out.shape) != shape:
        raise NotNative("into an array of another shape")
    return written(node, out)


def _of_numbers(
    reference: Any, a: Any, axis: Any, out: Any, keepdims: Any, **options: Any
) -> Any:
    """What NumPy's function for arrays without NaN makes of integers."""
    if out is not None:
        raise NotNative("into an array: NumPy's functions without NaN are stricter there")
    kept = keepdims is not _Missing and bool(keepdims)
    return NATIVE[reference](a, axis=axis, keepdims=kept, **options)


def _numbers_of_lane(handle: Handle, axis: Any, out: Any, keepdims: Any) -> Any:
    """What is not NaN of floats that are one long lane, whose elements NumPy's functions for arrays
    without NaN find by their ranks; None of others, and where nothing is a number."""
    size = math.prod(handle._shape)
    if handle._dtype.kind != "f" or size < LEAST_RANKED or not shares_memory():
        return None
    if out is not None or (keepdims is not _Missing and keepdims):
        return None
    if axis is not None and (len(handle._shape) != 1 or axis not in (0, -1)):
        return None
    lane = reshape_view(handle, (size,))
    numbers = get(lane, UFUNCS["equal"](lane, lane))
    return numbers if numbers._shape[0] else None


def _require_scratch(a: Any, overwrite_input: Any) -> None:
    """`NotNative` where NumPy is to sort in an array that it cannot write to."""
    if overwrite_input and isinstance(a, Handle) and not is_writeable(a):
        raise NotNative("in a read-only array")


@native(np.nanmedian, numbers=True)
def nanmedian(
    a: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    keepdims: Any = _Missing,
) -> Any:
    """Median over axes of what is not NaN."""
    _require_scratch(a, overwrite_input)
    handle = as_handle(a)
    if handle._dtype.kind != "f":
        if handle._dtype.kind == "c" or 0 in handle._shape:
            raise NotNative("of complex numbers, or of nothing")
        return _of_numbers(np.median, a, axis, out, keepdims)
    lane = _numbers_of_lane(handle, axis, out, keepdims)
    if lane is not None:
        return NATIVE[np.median](lane)
    lanes = _Lanes(handle, axis)
    lanes.warn(each=True)
    count = lanes.counts[..., None]
    low = lanes.at(UFUNCS["floor_divide"](UFUNCS["subtract"](count, 1), 2))
    high = lanes.at(UFUNCS["floor_divide"](count, 2))
    wide = np.float32 if handle._dtype.itemsize == 2 else handle._dtype
    mean = UFUNCS["divide"](UFUNCS["add"](cast_to(low, wide), cast_to(high, wide)), 2)
    odd = UFUNCS["equal"](UFUNCS["remainder"](count, 2), 1)
    made = cast_to(where(odd, low, mean), handle._dtype)
    return _delivered(made[..., 0], lanes, (), keepdims, out)


def _between(low: Any, high: Any, part: Any, rest: Any) -> Any:
    """Linear interpolation from whichever end is nearer, as NumPy's ``_lerp``."""
    distance = high - low
    return where(part >= 0.5, high - distance * rest, low + distance * part)


def _quantiles(
    a: Any,
    q: tuple[np.ndarray, bool],
    axis: Any,
    out: Any,
    method: str,
    keepdims: Any,
    weights: Any,
) -> Any:
    handle = as_handle(a)
    quantiles, is_weak = q
    if weights is not None or handle._dtype.kind != "f" or method not in _METHODS:
        raise NotNative("with weights, or of these elements")
    if lacks_fp64() and not downcasts():
        raise NotNative("in double precision, which the device has not")
    wanted = quantiles.reshape(-1)
    lanes = _Lanes(handle, axis)
    begins_empty = lanes.warn()
    # NumPy calculates with one number of elements; its formulas take an array of them as well.
    properties = _METHODS[method]
    count = lanes.counts[..., None]
    if not is_weak and wanted.dtype.kind == "f":  # NumPy's number has none of its own
        count = cast_to(count, wanted.dtype)
    formula = rehomed(properties["get_virtual_index"])
    virtual = formula(count, as_handle(wanted))
    if virtual.dtype.kind in "iu":
        made = lanes.at(virtual)
    else:
        below = UFUNCS["floor"](virtual)
        place = cast_to(below, INT64)
        gamma = rehomed(properties["fix_gamma"])(UFUNCS["subtract"](virtual, below), virtual)
        # What lies beyond an end is that end, however far.
        inside = UFUNCS["logical_and"](virtual >= 0, virtual < count - 1)
        gamma = where(inside, gamma, 0.0)
        rest = 1 - gamma
        if is_weak:
            gamma, rest = cast_to(gamma, handle._dtype), cast_to(rest, handle._dtype)
        low, high = lanes.at(place), lanes.at(UFUNCS["add"](place, 1))
        made = _between(low, high, gamma, rest)
    made = where(UFUNCS["equal"](count, 0), handle._dtype.type(np.nan), made)
    if begins_empty:  # the first lane decides in NumPy, and has no calculated number
        made = cast_to(made, handle._dtype)
    made = moveaxis(made, -1, 0)
    return _delivered(made, lanes, quantiles.shape, keepdims, out)


def _checked(q: Any, scale: int) -> tuple[np.ndarray, bool]:
    """The quantiles on the host, which are given as numbers from 0 to `scale`, and whether they are
    a number of Python's."""
    quantiles = np.asanyarray(host_view(q) if isinstance(q, Handle) else q)
    if quantiles.dtype.kind not in "iuf" or quantiles.ndim > 2 or not quantiles.size:
        raise NotNative("of quantiles of another kind")
    if scale != 1:
        quantiles = np.true_divide(quantiles, scale, out=...)
    if quantiles.dtype.kind in "iu":
        quantiles = quantiles.astype(float)
    if not np.all((quantiles >= 0) & (quantiles <= 1)):
        what = "Quantiles" if scale == 1 else "Percentiles"
        raise ValueError(f"{what} must be in the range [0, {scale}]")
    return quantiles, type(q) in (int, float)  # Python's numbers have no say about the dtype


def _has_only_numbers(a: Any) -> bool:
    """Whether it holds integers; of none of them, other than of no floats, NumPy has no quantile
    unless NaNs are left out."""
    handle = as_handle(a)
    return handle._dtype.kind in "iu" and math.prod(handle._shape) > 0


def _without_nans(
    reference: Any, scale: int, a: Any, q: Any, axis: Any, out: Any, method: str, keepdims: Any,
    weights: Any,
) -> Any:  # fmt: skip
    """Quantiles of what is not NaN; `reference` is NumPy's function for arrays that hold none."""
    if isinstance(axis, tuple | list) and len(axis) != 1 and np.ndim(q) > 1:
        raise NotNative("a table of quantiles over several axes: NumPy's order of axes is its own")
    if weights is None and _has_only_numbers(a):
        return _of_numbers(reference, a, axis, out, keepdims, q=q, method=method)
    if weights is None:
        lane = _numbers_of_lane(as_handle(a), axis, out, keepdims)
        if lane is not None:
            return NATIVE[reference](lane, q, method=method)
    return _quantiles(a, _checked(q, scale), axis, out, method, keepdims, weights)


@native(np.nanquantile, numbers=True)
def nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = _Missing,
    *,
    weights: Any = None,
) -> Any:
    """Quantiles over axes of what is not NaN; all of NumPy's methods."""
    _require_scratch(a, overwrite_input)
    return _without_nans(np.quantile, 1, a, q, axis, out, method, keepdims, weights)


@native(np.nanpercentile, numbers=True)
def nanpercentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = _Missing,
    *,
    weights: Any = None,
) -> Any:
    """Percentiles over axes of what is not NaN; all of NumPy's methods."""
    _require_scratch(a, overwrite_input)
    return _without_nans(np.percentile, 100, a, q, axis, out, method, keepdims, weights)
