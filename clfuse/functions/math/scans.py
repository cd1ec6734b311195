"""Scans: every partial result of a fold along one axis.

Integers and bools come out as NumPy's, to the bit. So do products of floats and sums of halves on
CPUs, which are folded in NumPy's order. Other sums of floats are grouped in another order: NumPy
adds strictly one element after the other. They differ in the last digits, and where a part of the
array overflows although NumPy's running sum does not. GPUs group products of floats and sums of
halves, too: products overflow and vanish where NumPy's do, and sums of halves are rounded once
(`schedule.rewrite.scaled_scans`). What differences and quotients leave of the first element are
sums of it and of the others' opposites, which have the same bits, and products of it and of the
others' reciprocals, which have not: so quotients of floats are kernels on GPUs alone.
"""

from __future__ import annotations

from operator import index as as_index
from typing import Any, Final

import numpy as np

from clfuse.arrays import errstate
from clfuse.arrays import handle as handles
from clfuse.arrays.conversion import NotNative, as_handle, cast_for_assignment
from clfuse.arrays.expressions import choose, combine, scalar
from clfuse.arrays.handle import Handle, fresh, is_writeable, native_dtype, node_of, write
from clfuse.arrays.memory_order import arrange_axes, permute_view, result_order
from clfuse.arrays.promotion import INT64
from clfuse.arrays.views import normalized_axis, reshape_view, strict_axis
from clfuse.ir import build
from clfuse.ir.nodes import Kind, Node
from clfuse.ops.table import REDUCTIONS
from clfuse.runtime.devices.selection import current_device

from .folds import accumulator_dtype


def accumulate_array(function: np.ufunc, array: Any, axis: Any, dtype: Any, out: Any) -> Any:
    """``function.accumulate(array, ...)`` as a node.

    Raises NotNative: for ufuncs and dtypes that the op tables have no fold for.
    """
    if errstate.mode[0] is errstate.STRICT:
        raise NotNative(errstate.CHECKED)
    handle = as_handle(array)
    if isinstance(out, tuple):
        if len(out) != 1:
            raise ValueError("The 'out' tuple must have exactly one entry")
        (out,) = out
    shape = handle._shape
    name = function.__name__
    if name not in REDUCTIONS and name not in _FROM_THE_FIRST:
        raise NotNative("it is no scan of the op tables")
    if not shape:
        raise TypeError("cannot accumulate on a scalar")
    if isinstance(axis, tuple) and len(axis) == 1:
        (axis,) = axis
    if axis is None and len(shape) == 1:
        axis = 0
    if axis is None or isinstance(axis, tuple):
        raise ValueError("accumulate does not allow multiple axes")
    place = strict_axis(axis, len(shape))
    if out is not None and not isinstance(out, handles.ARRAY | np.ndarray):
        raise TypeError("return arrays must be of ArrayType")
    if isinstance(out, np.ndarray) and native_dtype(out.dtype) is None:
        raise NotNative("into an array of a dtype that does not live on devices")
    found = accumulator_dtype(function, handle._dtype, dtype, out)
    schedule = current_device().assumed_traits.schedule if name == "divide" else ""
    if name == "divide" and (found.kind != "f" or schedule != "gpu"):
        raise NotNative("each quotient is rounded before the next one")
    if name in ("fmax", "fmin") and found.kind == "c":
        raise NotNative("no complex number leaves every half NaN as it is")
    if out is not None:
        return _delivered(function, handle, place, dtype, found, out)
    order = result_order((handle,), shape)
    if order is None:
        return fresh(scan_axis(name, node_of(handle), place, found))
    node = node_of(permute_view(handle, shape, order))
    return arrange_axes(scan_axis(name, node, order.index(place), found), order)


_FROM_THE_FIRST: Final = frozenset(["subtract", "divide"])
"""Ufuncs that go on from the first element by what the others undo."""


def scan_axis(name: str, node: Node, axis: int, dtype: np.dtype) -> Node:
    """The scan itself, of `dtype`."""
    node = cast_for_assignment(node, dtype, "accumulate")
    if name == "subtract" and node.shape[axis] > 1:
        name, node = "add", _opposites_but_first(node, axis)
    made = build.scan(name, node, axis, dtype)
    is_scan = made.op.kind is Kind.SCAN and made is not node
    return errstate.apply_errstate(made, "accumulate") if is_scan and dtype.kind in "fc" else made


def _opposites_but_first(node: Node, axis: int) -> Node:
    """The first element along an axis, and minus the others."""
    shape = node.shape
    steps = tuple([int(place == axis) for place in range(len(shape))])
    first = combine(np.equal, build.iota(shape[axis]), scalar(0, INT64))
    mask = build.view(first, shape, 0, steps)
    return choose(mask, node, combine(np.negative, node), node.dtype, shape)


def _delivered(
    function: np.ufunc, handle: Handle, axis: int, dtype: Any, found: np.dtype, out: Any
) -> Any:
    if tuple(out.shape) != handle._shape:
        # NumPy's error, which depends on the ranks.
        function.accumulate(
            np.empty(handle._shape, handle._dtype), axis, out=np.empty(out.shape, out.dtype)
        )
    if isinstance(out, Handle) and not is_writeable(out):
        raise ValueError("output array is read-only")
    node = scan_axis(function.__name__, node_of(handle), axis, found)
    if isinstance(out, np.ndarray):
        np.copyto(out, np.asarray(fresh(node)), casting="unsafe")
        return out
    write(out, cast_for_assignment(node, out._dtype))
    return out


def along(function: np.ufunc, a: Any, axis: Any, dtype: Any, out: Any) -> Any:
    """`accumulate_array` with the rules of `numpy.cumsum`: no axis means the elements in C
    order."""
    handle = as_handle(a)
    if axis is not None:
        as_index(axis)  # the ufunc's own method takes a tuple of one, too
    if axis is None:
        size = 1
        for extent in handle._shape:
            size *= extent
        handle, axis = reshape_view(handle, (size,)), 0
    elif not handle._shape and as_index(axis) in (0, -1):
        handle, axis = reshape_view(handle, (1,)), 0
    elif not handle._shape:
        normalized_axis(axis, 0)
    if type(handle) in handles.SCALARS:
        handle = fresh(build.reshape(node_of(handle), (1,)))
    return accumulate_array(function, handle, axis, dtype, out)
