"""Decompositions and solvers of `numpy.linalg`: LAPACK on the device's memory.

Functions that can raise `LinAlgError` because of values are computed at the call, as in NumPy.
Determinants cannot, and are recorded. The functions of `numpy.linalg` that came with the array API
(`vecdot`, `matrix_norm`) call those of `products`.
"""

from __future__ import annotations

import math
from operator import index as as_index
from typing import Any

import numpy as np

from clfuse.arrays.conversion import NotNative, as_handle
from clfuse.arrays.expressions import convert
from clfuse.arrays.handle import Handle, node_of, result
from clfuse.arrays.views import diagonal_of, normalized_axis, reshape_view, swap_axes
from clfuse.dispatch.host_call import at_call, native
from clfuse.dispatch.library_steps import dtype_of, size_of, step
from clfuse.dispatch.registry import NATIVE
from clfuse.functions.shaping.matrices import eye
from clfuse.ir import build
from clfuse.ir.layout import contiguous_strides

from . import products

at_call(
    np.linalg.cholesky,
    np.linalg.cond,
    np.linalg.eig,
    np.linalg.eigh,
    np.linalg.eigvals,
    np.linalg.eigvalsh,
    np.linalg.inv,
    np.linalg.lstsq,
    np.linalg.matrix_rank,
    np.linalg.pinv,
    np.linalg.qr,
    np.linalg.solve,
    np.linalg.svd,
    np.linalg.svdvals,
    np.linalg.tensorinv,
    np.linalg.tensorsolve,
)


def _square(a: Any) -> Handle:
    """Square matrices, one or a stack, that are not empty; the rest is NumPy's to refuse."""
    handle: Handle = as_handle(a)
    if len(handle._shape) < 2 or handle._shape[-1] != handle._shape[-2]:
        raise NotNative("of no square matrices")
    size_of(handle._shape)
    return handle


@native(np.linalg.det, library=True)
def det(a: Any) -> Any:
    """Determinants of matrices."""
    handle = _square(a)
    dtype = dtype_of(np.linalg.det, handle._dtype, (1, 1))
    return result(step("det", [node_of(handle)], handle._shape[:-2], dtype, None, "det"))


@native(np.linalg.slogdet, library=True)
def slogdet(a: Any) -> Any:
    """Sign and logarithm of determinants: one library step for both."""
    handle = _square(a)
    dtype = dtype_of(np.linalg.det, handle._dtype, (1, 1))
    batch = handle._shape[:-2]
    both = step("slogdet", [node_of(handle)], (2, *batch), dtype, None, "slogdet")
    size = math.prod(batch)
    strides = contiguous_strides(batch)
    sign, logarithm = (build.view(both, batch, place * size, strides) for place in (0, 1))
    real = np.dtype(f"float{4 * dtype.itemsize}") if dtype.kind == "c" else dtype
    kind = type(np.linalg.slogdet(np.ones((1, 1))))
    return kind(result(sign), result(convert(logarithm, real)))


@native(np.linalg.matrix_power)
def matrix_power(a: Any, n: Any) -> Any:
    """A matrix multiplied by itself; by its inverse for negative powers."""
    handle: Any = as_handle(a)
    if len(handle._shape) < 2 or handle._shape[-1] != handle._shape[-2]:
        raise NotNative("of no square matrices")
    try:
        n = as_index(n)
    except TypeError as error:
        raise TypeError("exponent must be an integer") from error
    if n == 0:
        made = NATIVE[np.empty_like](handle)
        made[...] = eye(handle._shape[-2], dtype=handle._dtype)
        return made
    if n < 0:
        handle = NATIVE[np.linalg.inv](handle)
        n = -n
    if n == 1:
        return handle
    if n == 3:
        return products.matmul(products.matmul(handle, handle), handle)
    power = made = None
    while n > 0:
        power = handle if power is None else products.matmul(power, power)
        n, bit = divmod(n, 2)
        if bit:
            made = power if made is None else products.matmul(made, power)
    return made


@native(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """The product of several matrices, in the order that takes the fewest multiplications."""
    parts = [as_handle(array) for array in arrays]
    if len(parts) < 2:
        raise ValueError("Expecting at least two arrays.")
    if len(parts) == 2:
        return products.dot(parts[0], parts[1], out=out)
    starts_flat, ends_flat = len(parts[0]._shape) == 1, len(parts[-1]._shape) == 1
    if starts_flat:
        parts[0] = reshape_view(parts[0], (1, *parts[0]._shape))
    if ends_flat:
        parts[-1] = reshape_view(parts[-1], (*parts[-1]._shape, 1))
    if any(len(part._shape) != 2 for part in parts):
        raise NotNative("of arrays that are no matrices")
    extents = [part._shape[0] for part in parts] + [parts[-1]._shape[1]]
    split = _cheapest(extents)

    def product(first: int, last: int) -> Any:
        if first == last:
            return parts[first]
        middle = split[first, last]
        left, right = product(first, middle), product(middle + 1, last)
        outermost = (first, last) == (0, len(parts) - 1)
        return products.dot(left, right, out=out if outermost and not flat else None)

    flat = starts_flat or ends_flat
    if flat and out is not None:
        raise NotNative("of vectors, into an array")
    made = product(0, len(parts) - 1)
    if starts_flat and ends_flat:
        return result(build.reshape(node_of(made), ()))
    return reshape_view(made, (math.prod(made._shape),)) if flat else made


def _cheapest(extents: list[int]) -> dict[tuple[int, int], int]:
    """Behind which matrix to split each run of matrices of these extents."""
    count = len(extents) - 1
    cost: dict[tuple[int, int], int] = {(place, place): 0 for place in range(count)}
    split: dict[tuple[int, int], int] = {}
    for span in range(1, count):
        for first in range(count - span):
            last = first + span
            costs = [
                cost[first, middle]
                + cost[middle + 1, last]
                + extents[first] * extents[middle + 1] * extents[last + 1]
                for middle in range(first, last)
            ]
            cost[first, last] = min(costs)
            split[first, last] = first + costs.index(min(costs))
    return split


# -- other names ----------------------------------------------------------------------------------


@native(np.linalg.matmul)
def _matmul(x1: Any, x2: Any, /) -> Any:
    return products.matmul(x1, x2)


@native(np.linalg.tensordot)
def _tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    return products.tensordot(x1, x2, axes)


@native(np.linalg.outer)
def _outer(x1: Any, x2: Any, /) -> Any:
    left, right = as_handle(x1), as_handle(x2)
    if len(left._shape) != 1 or len(right._shape) != 1:
        raise NotNative("of arrays that are no vectors")
    return products.outer(left, right)


@native(np.linalg.cross)
def _cross(x1: Any, x2: Any, /, *, axis: Any = -1) -> Any:
    left, right = as_handle(x1), as_handle(x2)
    lengths = [item._shape[normalized_axis(axis, len(item._shape))] for item in (left, right)]
    if lengths != [3, 3]:
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, but they are "
            f"{lengths[0]} and {lengths[1]} dimensional instead."
        )
    return products.cross(left, right, axis=axis)


@native(np.linalg.vecdot)
def _vecdot(x1: Any, x2: Any, /, *, axis: Any = -1) -> Any:
    if axis != -1:
        raise NotNative("along another axis")
    return products.vecdot(x1, x2)


@native(np.linalg.matrix_transpose)
def _matrix_transpose(x: Any, /) -> Any:
    handle = as_handle(x)
    if len(handle._shape) < 2:
        raise NotNative("of no matrices")
    return swap_axes(handle, -1, -2)


@native(np.linalg.diagonal)
def _diagonal(x: Any, /, *, offset: Any = 0) -> Any:
    return diagonal_of(as_handle(x), offset, -2, -1)


@native(np.linalg.trace)
def _trace(x: Any, /, *, offset: Any = 0, dtype: Any = None) -> Any:
    return products.trace(as_handle(x), offset, -2, -1, dtype)


@native(np.linalg.matrix_norm)
def _matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    return products.norm(as_handle(x), ord, (-2, -1), keepdims)


@native(np.linalg.vector_norm)
def _vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    handle = as_handle(x)
    if axis is None and not keepdims:
        return products.norm(reshape_view(handle, (math.prod(handle._shape),)), ord)
    if not isinstance(axis, int):
        raise NotNative("over several axes")
    return products.norm(handle, ord, axis, keepdims)
