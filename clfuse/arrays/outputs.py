"""``out=`` of ufuncs: the arrays that a call names, their shape, and how a result gets there; and
how new results lie in memory, by the operands, the mask and ``order=``."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from clfuse.ir import build
from clfuse.ir.nodes import Node

from . import handle as handles
from .conversion import as_handle, cast, host_view
from .expressions import broadcast_shapes, choose, convert, shape_text
from .handle import Handle, is_writeable, node_of, result, write
from .memory_order import Permutation, arrange_axes, asked_order, permuted_node, result_order

NO_OUT: Final = object()
"""There was no ``out=``."""


def given_outputs(positional: tuple[Any, ...], out: Any) -> tuple[Any, ...]:
    """What the call names, whatever it is, before anybody has looked at it."""
    return positional + (out if isinstance(out, tuple) else (out,))


def outputs(nout: int, positional: tuple[Any, ...], out: Any) -> tuple[list[Any], bool]:
    """One entry an output: the array to write to, or None; and whether `out` was Ellipsis."""
    as_array = out is Ellipsis
    if any(item is Ellipsis for item in positional):
        raise TypeError("out=... is only allowed as a keyword argument.")
    if isinstance(out, tuple) and any(item is Ellipsis for item in out):
        raise TypeError("must use `...` as `out=...` and not per-operand/in a tuple")
    if out is NO_OUT or out is None or as_array:
        outs = [*positional, *[None] * (nout - len(positional))]
    elif isinstance(out, tuple):
        outs = list(out)
    else:
        outs = [out]
    if len(outs) != nout:
        if isinstance(out, tuple):
            raise ValueError("The 'out' tuple must have exactly one entry per ufunc output")
        raise TypeError("'out' must be a tuple of arrays")
    if not all(item is None or isinstance(item, handles.ARRAY | np.ndarray) for item in outs):
        raise TypeError("return arrays must be of ArrayType")
    for item in outs:
        if isinstance(item, Handle) and not is_writeable(item):
            raise ValueError("output array is read-only")
    return outs, as_array


def shape_with_outputs(shapes: list[tuple[int, ...]], outs: list[Any]) -> tuple[int, ...]:
    """The common shape of operands and outputs, which no output may have to be stretched to."""
    common = broadcast_shapes(*shapes, *[tuple(out.shape) for out in outs])
    for out in outs:
        if tuple(out.shape) != common:
            raise ValueError(
                f"non-broadcastable output operand with shape {shape_text(tuple(out.shape))} "
                f"doesn't match the broadcast shape {shape_text(common)}"
            )
    return common


def deliver(node: Node, out: Any, mask: Node | None, as_array: bool, called: str) -> Any:
    """Write a result of the ufunc `called` to `out` where the mask lets it, or make a new array."""
    if out is None:
        if mask is not None:
            zero = build.constant(node.dtype.type(0))
            node = choose(mask, node, zero, node.dtype, node.shape)
        return handles.fresh(node) if as_array else result(node)
    if isinstance(out, Handle):
        value = convert(node, out._dtype) if mask is not None else cast(node, out._dtype, called)
        if mask is not None:
            value = choose(mask, value, node_of(out), out._dtype, node.shape)
        write(out, value)
        return out
    host_mask: Any = True
    if mask is not None:
        host_mask = host_view(handles.fresh(mask))
    np.copyto(out, host_view(handles.fresh(node)), casting="unsafe", where=host_mask)
    return out


def order_of_result(
    args: tuple[Any, ...], shape: tuple[int, ...], asked: str
) -> Permutation | None:
    """How new results of these operands lie in memory under ``order=asked``; None for C order."""
    order = result_order(args, shape)
    if asked == "K":
        return order
    arrays = [arg if isinstance(arg, Handle) else as_handle(arg) for arg in args]
    return asked_order(asked, shape, [a for a in arrays if a._shape], order)


def arranged(made: Any, args: tuple[Any, ...], shape: tuple[int, ...], asked: str) -> Any:
    """A new result, or a copy of it that lies as NumPy's would."""
    order = order_of_result(args, shape, asked) if len(shape) > 1 else None
    return made if order is None else arrange_axes(permuted_node(made, shape, order), order)
