"""Memory order: which axis of a new array varies fastest, as NumPy's `order` says.

Results lie in memory as NumPy's do. The result of transposed operands is itself transposed. This
shows in strides, in flags and in whether ``ravel`` gives a view; it also saves the transposition.
Storage is always in C order, so such a result is a transposed view that owns its storage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from clfuse.ir.nodes import Node

from . import reinterpret
from .handle import (
    Handle,
    View,
    bytes_of,
    c_strides,
    fresh,
    is_contiguous,
    is_ordered,
    layout,
    node_of,
    view_of,
)

Permutation = tuple[int, ...]
"""Axes from the slowest to the fastest."""


def copy_order(handle: Handle) -> Permutation | None:
    """The order in which a copy of the array lies; None for C order.

    By the strides, largest first, as NumPy sorts them for ``copy`` and ``astype``.
    """
    view = handle._view
    if view is None or view.ordered:
        return None
    return stride_order(handle._shape, view.strides)


def stride_order(shape: tuple[int, ...], strides: tuple[int, ...]) -> Permutation | None:
    """The axes by these strides, largest first; None for C order.

    >>> stride_order((2, 3, 4), (1, 8, 2)), stride_order((2, 1), (1, 9))
    ((1, 2, 0), None)
    """
    if 0 in shape:
        return None
    axes = sorted(range(len(shape)), key=lambda axis: -abs(strides[axis]))
    placed = [axis for axis in axes if shape[axis] != 1]
    return None if placed == sorted(placed) else tuple(axes)


def is_fortran(handle: Handle) -> bool:
    """Whether the elements lie side by side in Fortran order."""
    shape = handle._shape
    if 0 in shape:
        return True
    step = 1
    for extent, stride in zip(shape, layout(handle)[1], strict=True):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True


def parse_order(order: Any) -> str:
    """An `order` argument as one capital letter, None as "K".

    Raises ValueError: it is none of the four.
    """
    letter = "K" if order is None else order
    if not isinstance(letter, str):
        raise TypeError(f"order must be str, not {type(order).__name__}")
    if letter.upper() not in ("C", "F", "A", "K"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    return letter.upper()


def asked_order(
    order: Any, shape: tuple[int, ...], operands: Sequence[Handle], kept: Permutation | None
) -> Permutation | None:
    """The order of a new array for NumPy's `order` argument: `kept` is what "K" stands for.

    "A" is Fortran order where all operands lie in it and not all in C order.
    """
    letter = parse_order(order)
    if letter == "K":
        return kept
    if letter == "A":
        fortran = [operand for operand in operands if is_fortran(operand)]
        all_fortran = len(fortran) == len(operands)
        letter = "F" if all_fortran and not all(map(is_contiguous, operands)) else "C"
    return tuple(range(len(shape)))[::-1] if letter == "F" and len(shape) > 1 else None


def loop_order(shape: tuple[int, ...], operands: Sequence[tuple[int, ...]]) -> Permutation | None:
    """The order in which NumPy's iterator runs over operands with these strides; None for C order.

    Strides belong to the common shape, 0 where an operand is broadcast. Where operands disagree, C
    order wins.

    >>> loop_order((2, 3), [(1, 2), (1, 2)]), loop_order((2, 3), [(1, 2), (3, 1)])
    ((1, 0), None)
    """
    rank = len(shape)
    order = list(range(rank))[::-1]  # fastest first
    for place in range(1, rank):
        axis = order[place]
        target = place
        for earlier in range(place - 1, -1, -1):
            verdict = _runs_faster(axis, order[earlier], operands)
            if verdict is None:
                continue
            if not verdict:
                break
            target = earlier
        order.insert(target, order.pop(place))
    placed = [axis for axis in reversed(order) if shape[axis] != 1]
    return None if placed == sorted(placed) else tuple(reversed(order))


def _runs_faster(axis: int, other: int, operands: Sequence[tuple[int, ...]]) -> bool | None:
    """Whether `axis` goes inside `other`; None if no operand can tell."""
    verdict: bool | None = None
    for strides in operands:
        one, two = abs(strides[axis]), abs(strides[other])
        if one and two:
            if two <= one:
                return False
            verdict = True
    return verdict


def stretched_strides(handle: Handle, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The handle's strides over a shape that it broadcasts to."""
    _, strides = layout(handle)
    lead = len(shape) - len(handle._shape)
    return (0,) * lead + tuple(
        [0 if n == 1 else stride for n, stride in zip(handle._shape, strides, strict=True)]
    )


def permute_view(handle: Handle, shape: tuple[int, ...], order: Permutation) -> Any:
    """The handle stretched to `shape`, with its axes in `order`: a view."""
    strides = stretched_strides(handle, shape)
    return view_of(
        handle,
        tuple([shape[axis] for axis in order]),
        layout(handle)[0],
        tuple([strides[axis] for axis in order]),
        rearranged=True,
    )


def permuted_node(handle: Handle, shape: tuple[int, ...], order: Permutation) -> Node:
    """The handle stretched to `shape`, with its axes in `order`, as one view."""
    return node_of(permute_view(handle, shape, order))


def result_order(args: Sequence[Any], shape: tuple[int, ...]) -> Permutation | None:
    """The order in which new results of a call lie; None for C order, which most operands have."""
    if len(shape) < 2:
        return None
    if all(_lies_in_c_order(arg) for arg in args):
        return None
    operands = []
    for arg in args:
        if isinstance(arg, Handle):
            operands.append(stretched_strides(arg, shape))
        elif np.ndim(arg) > 0:
            array = np.asarray(arg)  # lists lie in C order
            lead = (0,) * (len(shape) - array.ndim)
            lengths = zip(array.shape, array.strides, strict=True)
            operands.append(lead + tuple([0 if n == 1 else stride for n, stride in lengths]))
    return loop_order(shape, operands)


def _lies_in_c_order(arg: Any) -> bool:
    if isinstance(arg, Handle):
        return arg._view is None or arg._view.ordered
    return not isinstance(arg, np.ndarray) or is_ordered(arg.shape, arg.strides)


def turned_nodes(
    args: Sequence[Any], nodes: Sequence[Node], shape: tuple[int, ...], order: Permutation
) -> tuple[Node, ...]:
    """The operands of a call with their axes in `order`; scalars as they are.

    `nodes` are the operands' values, of whatever dtype the call needs them in.
    """
    return tuple(
        [
            permuted_node(arg, shape, order)
            if isinstance(arg, Handle)
            else _permuted(node, shape, order)
            for arg, node in zip(args, nodes, strict=True)
        ]
    )


def _permuted(node: Node, shape: tuple[int, ...], order: Permutation) -> Node:
    """A node stretched to `shape`, with its axes in `order`; a scalar as it is."""
    if not node.shape:
        return node
    lead = (0,) * (len(shape) - len(node.shape))
    lengths = zip(node.shape, c_strides(node.shape), strict=True)
    strides = lead + tuple([0 if n == 1 else stride for n, stride in lengths])
    extents = tuple([shape[axis] for axis in order])
    turned_strides = tuple([strides[axis] for axis in order])
    return reinterpret.read_as(node, extents, node.dtype, 0, turned_strides)


def arrange_axes(node: Node, order: Permutation) -> Any:
    """A new array whose axes, taken in `order`, are those of `node`."""
    return turned_back(fresh(node), order)


def turned_back(handle: Any, order: Permutation) -> Any:
    """A new array (C-ordered, nobody else's) from now on with other axes: taken in `order` they are
    those that it had."""
    shape = [0] * len(order)
    strides = [0] * len(order)
    for place, (axis, stride) in enumerate(zip(order, c_strides(handle._shape), strict=True)):
        shape[axis] = handle._shape[place]
        strides[axis] = stride
    handle._shape = tuple(shape)
    handle._view = View(0, tuple(strides), None, is_ordered(handle._shape, tuple(strides)))
    return handle


def copy_in_order(handle: Handle, order: Any = "K") -> Any:
    """A new array with the same bytes, lying as NumPy's copy in `order` does."""
    held = bytes_of(handle)
    if held is None:
        return map_in_order(handle, lambda node: node, order)
    made = map_in_order(held, lambda node: node, order)
    made._dtype = handle._dtype
    if made._view is None:
        made._view = View(0, c_strides(made._shape), None, True)
    return made


def map_in_order(handle: Handle, compute: Callable[[Node], Node], order: Any = "K") -> Any:
    """A new array of what `compute` makes of the elements, one for one, in memory as a copy in
    `order` is."""
    kept = asked_order(order, handle._shape, (handle,), copy_order(handle))
    if kept is None:
        return fresh(compute(node_of(handle)))
    return arrange_axes(compute(permuted_node(handle, handle._shape, kept)), kept)
