"""Cumulative sums and products with NumPy's signatures."""

from __future__ import annotations

from typing import Any

import numpy as np

from clfuse.arrays.conversion import NotNative, as_handle
from clfuse.arrays.handle import fresh, node_of
from clfuse.arrays.views import normalized_axis
from clfuse.dispatch.host_call import native
from clfuse.ir import build

from .reductions import without_nan
from .scans import along


@native(np.cumsum, method=True)
def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Sums of the elements up to each one; small integers are added in 64 bits.

    Sums of float32, float64 and complex numbers may differ from NumPy's in the last digits: they
    are grouped otherwise (see `scans`).
    """
    return along(np.add, a, axis, dtype, out)


@native(np.cumprod, method=True)
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Products of the elements up to each one, in NumPy's order."""
    return along(np.multiply, a, axis, dtype, out)


@native(np.nancumsum)
def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Sums of the elements up to each one, NaN counted as 0."""
    return along(np.add, without_nan(a, 0), axis, dtype, out)


@native(np.nancumprod)
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Products of the elements up to each one, NaN counted as 1."""
    return along(np.multiply, without_nan(a, 1), axis, dtype, out)


def _cumulative(
    function: np.ufunc, x: Any, axis: Any, dtype: Any, out: Any, include_initial: bool
) -> Any:
    handle = as_handle(x)
    if not handle._shape:
        handle = fresh(build.reshape(node_of(handle), (1,)))
    rank = len(handle._shape)
    if axis is None:
        if rank > 1:
            raise ValueError(
                "For arrays which have more than one dimension ``axis`` argument is required."
            )
        axis = 0
    if not include_initial:
        return along(function, handle, axis, dtype, out)
    if out is not None:
        raise NotNative("into an array, with the initial value")
    made = along(function, handle, axis, dtype, None)
    place = normalized_axis(axis, rank)
    first = tuple([1 if n == place else extent for n, extent in enumerate(handle._shape)])
    start = build.full(made._dtype.type(function.identity), first)
    return fresh(build.concatenate((start, node_of(made)), place))


if hasattr(np, "cumulative_sum"):  # NumPy 2.1

    @native(np.cumulative_sum)
    def cumulative_sum(
        x: Any,
        /,
        *,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        include_initial: bool = False,
    ) -> Any:
        """Sums of the elements up to each one; `include_initial` puts a 0 in front."""
        return _cumulative(np.add, x, axis, dtype, out, include_initial)

    @native(np.cumulative_prod)
    def cumulative_prod(
        x: Any,
        /,
        *,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        include_initial: bool = False,
    ) -> Any:
        """Products of the elements up to each one; `include_initial` puts a 1 in front."""
        return _cumulative(np.multiply, x, axis, dtype, out, include_initial)
