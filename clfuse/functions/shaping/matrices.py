"""Matrices by diagonals and triangles (eye, tri, diag), and `numpy.matrix` in shared memory."""

from __future__ import annotations

import math
import re
from operator import index as as_index
from typing import Any

import numpy as np

from clfuse.arrays import handle as handles
from clfuse.arrays.conversion import NotNative, as_handle, requested_dtype
from clfuse.arrays.expressions import choose, combine, convert
from clfuse.arrays.handle import fresh, node_of, result
from clfuse.arrays.shared_storage import seen_by_numpy
from clfuse.arrays.views import diagonal_of
from clfuse.dispatch.host_call import host_call, native
from clfuse.dispatch.registry import AT_CALL
from clfuse.functions.math.selection import where
from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.ir.size_limits import require_room
from clfuse.user_frames import user_frame

from .creation import laid_out


def _rows_and_columns(rows: int, columns: int) -> tuple[Node, Node]:
    """Row numbers as a column, column numbers as a row: they broadcast to a matrix."""
    return build.reshape(build.iota(rows), (rows, 1)), build.iota(columns)


def _shifted(node: Node, distance: int) -> Node:
    return combine(np.subtract, node, build.constant(np.int64(distance))) if distance else node


@native(np.eye)
def eye(
    N: Any,
    M: Any = None,
    k: Any = 0,
    dtype: Any = float,
    order: Any = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Any:
    """A matrix with ones on one diagonal."""
    wanted = requested_dtype(float if dtype is None else dtype)
    rows, columns = as_index(N), as_index(N if M is None else M)
    if rows < 0 or columns < 0:
        raise ValueError("negative dimensions are not allowed")
    assert wanted is not None
    require_room((rows, columns), wanted)
    row, column = _rows_and_columns(rows, columns)
    distance = min(max(as_index(k), -rows), columns)  # beyond these no diagonal is in the matrix
    node = combine(np.equal, row, _shifted(column, distance))
    return laid_out(convert(node, wanted), order)


@native(np.identity)
def identity(n: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """A square matrix with ones on its main diagonal."""
    return eye(n, dtype=dtype)


def _diagonal(k: Any) -> int:
    """The number of a diagonal. What is no integer NumPy takes in ways of its releases."""
    if not hasattr(type(k), "__index__"):
        raise NotNative("the number of a diagonal is no integer")
    return as_index(k)


def triangle(rows: int, columns: int, k: int) -> Node:
    """True at and below the `k`-th diagonal."""
    k = min(max(k, -rows), columns)  # beyond these all is the same
    row, column = _rows_and_columns(rows, columns)
    return combine(np.greater_equal, row, _shifted(column, k))


@native(np.tri)
def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = float, *, like: Any = None) -> Any:
    """A matrix with ones at and below a diagonal."""
    wanted = requested_dtype(float if dtype is None else dtype)
    rows = max(as_index(N), 0)
    columns = rows if M is None else max(as_index(M), 0)
    assert wanted is not None
    require_room((rows, columns), wanted)
    return fresh(convert(triangle(rows, columns, _diagonal(k)), wanted))


def _masked_triangle(m: Any, k: int, *, keep_lower: bool) -> Any:
    handle = as_handle(m)
    node = node_of(handle)
    rank = len(node.shape)
    if rank == 0:
        raise TypeError("tri() missing 1 required positional argument: 'N'")
    rows = node.shape[-2] if rank > 1 else node.shape[0]
    columns = node.shape[-1]
    mask = triangle(rows, columns, k)
    zero = build.constant(handle._dtype.type(0))
    shape = node.shape if rank > 1 else (rows, columns)
    if rank == 1:
        chosen, other = (node, zero) if keep_lower else (zero, node)
        return fresh(choose(mask, chosen, other, handle._dtype, shape))
    return where(fresh(mask), *((handle, result(zero)) if keep_lower else (result(zero), handle)))


@native(np.tril)
def tril(m: Any, k: Any = 0) -> Any:
    """The array with zeros above a diagonal."""
    return _masked_triangle(m, _diagonal(k), keep_lower=True)


@native(np.triu)
def triu(m: Any, k: Any = 0) -> Any:
    """The array with zeros below a diagonal."""
    return _masked_triangle(m, _diagonal(k - 1), keep_lower=False)


@native(np.diag)
def diag(v: Any, k: Any = 0) -> Any:
    """A vector on a diagonal of a matrix, or a diagonal of a matrix (read-only)."""
    handle = as_handle(v)
    rank = len(handle._shape)
    if rank == 2:
        return diagonal_of(handle, k)
    if rank != 1:
        raise ValueError("Input must be 1- or 2-d.")
    distance = as_index(k)
    size = handle._shape[0] + abs(distance)
    zeros = build.full(handle._dtype.type(0), (size, size))
    first = distance if distance >= 0 else -distance * size
    return fresh(build.update(zeros, node_of(handle), first, (size + 1,)))


@native(np.diagflat)
def diagflat(v: Any, k: Any = 0) -> Any:
    """The elements on a diagonal of a matrix."""
    handle = as_handle(v)
    flat = build.reshape(node_of(handle), (math.prod(handle._shape),))
    return diag(fresh(flat), k)


@native(np.asmatrix)
def asmatrix(data: Any, dtype: Any = None) -> Any:
    """A `numpy.matrix` in the memory of an array, which shares it."""
    if type(data) is not handles.ARRAY or len(data._shape) > 2:
        raise NotNative(f"of {type(data).__name__}")
    return np.asmatrix(seen_by_numpy(data), dtype)


AT_CALL.add(np.asmatrix)


@native(np.bmat)
def bmat(obj: Any, ldict: Any = None, gdict: Any = None) -> Any:
    """A `numpy.matrix` of blocks. Names in a string are those that the caller sees."""
    if isinstance(obj, str) and gdict is None:
        frame, _ = user_frame()
        gdict, ldict = frame.f_globals, frame.f_locals
    if isinstance(obj, str):
        named = set(re.findall(r"\w+", obj))  # not everything that there is
        gdict, ldict = (
            {name: value for name, value in (seen or {}).items() if name in named}
            for seen in (gdict, ldict)
        )
    return host_call(np.bmat, (obj, ldict, gdict), {}, library=True)


AT_CALL.add(np.bmat)
