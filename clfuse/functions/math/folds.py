"""Reductions of axes by a ufunc, and arg-reductions."""

from __future__ import annotations

import math
from functools import lru_cache
from operator import index as as_index
from typing import Any, Final

import numpy as np

from clfuse.arrays import errstate
from clfuse.arrays import handle as handles
from clfuse.arrays.conversion import (
    NotNative,
    as_handle,
    as_mask,
    cast_for_assignment,
    requested_dtype,
)
from clfuse.arrays.expressions import (
    broadcast_shapes,
    choose,
    combine,
    convert,
    scalar,
    shape_text,
)
from clfuse.arrays.handle import (
    Handle,
    downcasts,
    is_writeable,
    native_dtype,
    node_of,
    result,
    write,
)
from clfuse.arrays.memory_order import Permutation, arrange_axes, permute_view, result_order
from clfuse.arrays.promotion import BOOL, INT64, UINT64, is_native
from clfuse.arrays.views import strict_axis
from clfuse.dispatch.overrides import ANSWERS_ITSELF, is_for_numpy
from clfuse.dtypes import name_of
from clfuse.functions.indexing.masks import spread_sum
from clfuse.ir import build
from clfuse.ir.nodes import Node, loop
from clfuse.ir.traced_number import TracedNumber
from clfuse.ops.table import REDUCTIONS

AxisError = np.exceptions.AxisError
_LOGICAL = ("logical_and", "logical_or", "logical_xor")
_WIDENED = ("add", "multiply")


def reduction_axes(axis: Any, rank: int) -> tuple[int, ...]:
    """The axes that an `axis` argument names, ascending; errors as in NumPy's reductions."""
    if axis is None:
        return tuple(range(rank))
    if type(axis) is int:
        if rank == 0 and axis in (0, -1):
            return ()
        return (strict_axis(axis, rank),)
    if isinstance(axis, tuple | list):
        if isinstance(axis, list):
            raise TypeError("'list' object cannot be interpreted as an integer")
        found = [strict_axis(item, rank) for item in axis]
        if len(set(found)) != len(found):
            raise ValueError("duplicate value in 'axis'")
        return tuple(sorted(found))
    return reduction_axes(as_index(axis) if type(axis) is not bool else (axis,), rank)


def accumulator_dtype(function: np.ufunc, operand: np.dtype, dtype: Any, out: Any) -> np.dtype:
    """The dtype in which `function` folds elements of dtype `operand`."""
    wanted = requested_dtype(dtype)
    return _accumulator(function, operand, wanted, getattr(out, "dtype", None), downcasts())


@lru_cache(maxsize=1024)
def _accumulator(
    function: np.ufunc,
    operand: np.dtype,
    wanted: np.dtype | None,
    out: np.dtype | None,
    _downcasts: bool,
) -> np.dtype:
    name = function.__name__
    if name in _LOGICAL:
        if wanted is not None and wanted is not BOOL:
            raise NotNative(f"{name} in {wanted}")
        return BOOL
    first = operand
    if wanted is None and out is not None:
        # NumPy resolves the loop with the output in the accumulator's place.
        first = native_dtype(out) or operand
    elif wanted is None and name in _WIDENED and operand.kind in "biu" and operand.itemsize < 8:
        wanted = UINT64 if operand.kind == "u" else INT64
    operands = (first, operand, None)
    if wanted is None:
        dtypes = function.resolve_dtypes(operands)
    else:
        signature = (wanted, wanted, wanted)
        dtypes = function.resolve_dtypes(operands, signature=signature, casting="unsafe")
    found = native_dtype(dtypes[2])
    if found is None or dtypes[0] != dtypes[2]:
        raise NotNative(f"accumulates in {dtypes}")
    row = REDUCTIONS.get(name)
    is_folded = row is None or row.identity_of(name_of(found)) is not None
    if not is_folded or not is_native(name, (found, found)):
        raise NotNative(f"not for {found}")
    return found


def fold(
    function: np.ufunc,
    array: Any,
    axis: Any,
    dtype: Any,
    out: Any,
    keepdims: bool,
    initial: Any,
    where: Any,
) -> Any:
    """``function.reduce(array, ...)`` as a node; `NotNative` where the op tables have no such
    fold."""
    if type(array) is not handles.ARRAY and is_for_numpy(array):
        raise NotNative(ANSWERS_ITSELF)
    handle = as_handle(array)
    if isinstance(out, tuple):
        if len(out) != 1:
            raise ValueError("The 'out' tuple must have exactly one entry")
        (out,) = out
        if out is Ellipsis:
            raise TypeError("must use `...` as `out=...` and not per-operand/in a tuple")
    shape = handle._shape
    axes = reduction_axes(axis, len(shape))
    name = function.__name__
    if name not in REDUCTIONS:
        raise NotNative("it is no reduction of the op tables")
    accumulator = accumulator_dtype(function, handle._dtype, dtype, out)
    if name in _CHOOSING and out is not None and out is not Ellipsis:
        _require_room(accumulator, out)
    if where is not True:
        where = as_mask(where)
    handle, axes, where, order = in_memory_order(handle, axes, where, out)
    node = fold_axes(function, node_of(handle), axes, accumulator, initial, where, called="reduce")
    return deliver_reduction(node, handle._shape, axes, out, keepdims, order)


_CHOOSING: Final = frozenset(("maximum", "minimum", "fmax", "fmin"))
"""Folds that begin with the first element, which NumPy puts into the output."""


def _require_room(accumulator: np.dtype, out: Any) -> None:
    """`NotNative` where an output cannot hold each element: NumPy compares what is left of the
    first one there with the others."""
    dtype = getattr(out, "dtype", accumulator)
    is_shorter = accumulator.kind == dtype.kind and accumulator.kind in "fc"
    if not is_shorter and not np.can_cast(accumulator, dtype):
        raise NotNative("into an output that cannot hold every element")


def in_memory_order(
    handle: Handle, axes: tuple[int, ...], where: Any = True, out: Any = None
) -> tuple[Handle, tuple[int, ...], Any, Permutation | None]:
    """What a reduction works on, its axes as they lie in memory, so that its result lies as
    NumPy's: array, axes to fold, mask, and the order for `deliver_reduction`; None if nothing is
    turned."""
    if where is True or where is np._NoValue:
        (handle,), axes, order = together_in_memory_order((handle,), axes, out)
        return handle, axes, where, order
    where = as_mask(where)
    (handle, where), axes, order = together_in_memory_order((handle, where), axes, out)
    return handle, axes, where, order


def together_in_memory_order(
    operands: tuple[Handle, ...], axes: tuple[int, ...], out: Any = None
) -> tuple[tuple[Handle, ...], tuple[int, ...], Permutation | None]:
    """The same of an array and what is folded with it, of its shape or stretched to it."""
    shape = operands[0]._shape
    order = result_order(operands, shape)
    if order is None or out is not None:
        return operands, axes, None
    if any(broadcast_shapes(shape, operand._shape) != shape for operand in operands[1:]):
        return operands, axes, None  # an error, which names the shapes as they are
    places = tuple([place for place, axis in enumerate(order) if axis in axes])
    return tuple([permute_view(operand, shape, order) for operand in operands]), places, order


def fold_axes(
    function: np.ufunc,
    node: Node,
    axes: tuple[int, ...],
    dtype: np.dtype,
    initial: Any = np._NoValue,
    where: Any = True,
    *,
    called: str = "",
) -> Node:
    """The fold itself, without the reduced axes, of `dtype`; `called` is the name under which NumPy
    warns of what it meets there, if it folds too."""
    name = function.__name__
    row = REDUCTIONS[name]
    if name == "add" and len(axes) == len(node.shape) and where is True and node.shape:
        spread = spread_sum(node)
        if spread is not node:
            node, axes = spread, (0,)
    node = cast_for_assignment(node, dtype, called) if called else convert(node, dtype)
    start = None if initial is np._NoValue or initial is None else _initial_node(initial, dtype)
    if name == "multiply" and dtype.kind in "fc" and start is not None and _is_zero(initial):
        # NumPy begins with it: nothing overflows on the way, and what is no number stays so.
        node = combine(np.multiply, node, scalar(0, dtype))
    has_identity = row.neutral and initial is not None
    if where is not True:
        if start is None and not has_identity:
            raise ValueError(
                f"reduction operation '{name}' does not have an identity, so to use a where mask "
                "one has to specify 'initial'"
            )
        if start is None or row.neutral:
            neutral = build.constant(_identity(function, dtype))
        else:
            neutral = start
        mask = as_handle(where)
        common = broadcast_shapes(node.shape, mask._shape)
        if common != node.shape:
            raise ValueError(
                "non-broadcastable operand with shape "
                f"{shape_text(mask._shape)} as mask of shape {shape_text(node.shape)}"
            )
        node = choose(node_of(mask), node, neutral, dtype, common)
    shape = node.shape
    kept = tuple([extent for place, extent in enumerate(shape) if place not in axes])
    if math.prod([shape[place] for place in axes]) == 0:
        if start is not None:
            return build.broadcast(start, kept)
        if not has_identity:
            raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
        return build.full(_identity(function, dtype), kept)
    folded_node = build.reduce(name, node, axes, dtype) if axes else node
    may_warn = bool(called) and dtype.kind in "fc"
    if may_warn and axes:
        errstate.apply_errstate(folded_node, called)
    if start is not None:
        op = loop(name, (dtype, dtype), dtype)
        folded_node = build.elementwise(op, (folded_node, start), folded_node.shape)
        if may_warn:
            errstate.apply_errstate(folded_node, called)
    return folded_node


def _identity(function: np.ufunc, dtype: np.dtype) -> np.generic:
    """The ufunc's identity; that of `bitwise_and` is -1, which stands for all bits."""
    identity = np.asarray(function.identity).astype(dtype)
    return identity[()]  # type: ignore[return-value] # a scalar, for the stubs an array


def _is_zero(initial: Any) -> bool:
    """Whether it is known to be zero: the number of an array that is not computed is not."""
    return not isinstance(initial, Handle | TracedNumber) and not np.any(initial)


def _initial_node(initial: Any, dtype: np.dtype) -> Node:
    if isinstance(initial, Handle):
        if initial._shape:
            raise ValueError("Input object to reduce initial value must be a scalar")
        return convert(node_of(initial), dtype)
    is_traced = isinstance(initial, TracedNumber)
    if not is_traced and np.ndim(initial):
        raise ValueError("Input object to reduce initial value must be a scalar")
    if isinstance(initial, np.ndarray | np.generic):
        number = np.asarray(initial)[()]
        return convert(build.constant(number), dtype)  # type: ignore[arg-type] # the same
    return scalar(initial, dtype)


def deliver_reduction(
    node: Node,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    out: Any,
    keepdims: Any,
    order: Permutation | None = None,
) -> Any:
    """A reduction's result: with its axes kept as extents of 1 if wanted, and in `out` if given.

    `order` is that in which `in_memory_order` has turned the axes of what was reduced.
    """
    is_kept = keepdims is True or (
        keepdims is not False and keepdims is not np._NoValue and as_index(keepdims)
    )
    if is_kept:
        node = build.reshape(
            node, tuple([1 if place in axes else extent for place, extent in enumerate(shape)])
        )
    if order is not None:
        kept = list(order)
        if len(node.shape) != len(order):
            kept = [axis for place, axis in enumerate(order) if place not in axes]
        if len(kept) > 1:
            return arrange_axes(node, tuple([sorted(kept).index(axis) for axis in kept]))
    if out is None:
        return result(node)
    if out is Ellipsis:
        return handles.fresh(node)
    if not isinstance(out, handles.ARRAY | np.ndarray):
        raise TypeError("return arrays must be of ArrayType")
    if tuple(out.shape) != node.shape:
        raise ValueError(
            "output parameter for reduction operation has the wrong shape: "
            f"{shape_text(tuple(out.shape))}; it must have shape {shape_text(node.shape)}"
        )
    if isinstance(out, np.ndarray):
        np.copyto(out, np.asarray(handles.fresh(node)), casting="unsafe")
        return out
    if not is_writeable(out):
        raise ValueError("output array is read-only")
    write(out, cast_for_assignment(node, out._dtype))
    return out


def arg_fold(name: str, array: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    """`numpy.argmax` and `numpy.argmin`: the first position of the extreme."""
    handle = as_handle(array)
    shape = handle._shape
    node = node_of(handle)
    if axis is None:
        axes = tuple(range(len(shape)))
    elif not shape and as_index(axis) in (0, -1):
        axes = ()
    else:
        axes = (strict_axis(axis, len(shape)),)
    if math.prod([shape[place] for place in axes]) == 0:
        raise ValueError(f"attempt to get {name} of an empty sequence")
    if axes:
        found = build.arg_reduce(name, node, axes)
    else:
        found = build.full(np.int64(0), shape)
    if isinstance(out, Handle | np.ndarray):
        kept = tuple([extent for place, extent in enumerate(shape) if place not in axes])
        if not keepdims and tuple(out.shape) != kept:
            raise ValueError(f"output array does not match result of np.{name}.")
        if not np.can_cast(out.dtype, INT64, "safe"):
            raise TypeError(
                f"Cannot cast array data from {out.dtype!r} to dtype('int64') according to the "
                "rule 'safe'"
            )
    return deliver_reduction(found, shape, axes, out, bool(keepdims))
