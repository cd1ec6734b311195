"""Which axis of a new array varies fastest: NumPy's order "K", kept so that results lie as NumPy's
do.

A result of transposed operands is itself transposed. That shows in strides, flags and in whether
``ravel`` gives a view; and it saves the transposition. Storage is in C order always, so such a
result is a transposed view that owns its storage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph.ir import Node
from .handle import Handle, View, c_strides, fresh, is_ordered, layout, node_of, view_of

Permutation = tuple[int, ...]
"""Axes from the slowest to the fastest."""


def copy_order(handle: Handle) -> Permutation | None:
    """The order in which a copy of the array lies; None for C order.

    By the strides, largest first, as NumPy sorts them for ``copy`` and ``astype``.
    """
    view = handle._view
    if view is None or view.ordered or 0 in handle._shape:
        return None
    axes = sorted(range(len(handle._shape)), key=lambda axis: -abs(view.strides[axis]))
    placed = [axis for axis in axes if handle._shape[axis] != 1]
    return None if placed == sorted(placed) else tuple(axes)


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


def permuted_node(handle: Handle, shape: tuple[int, ...], order: Permutation) -> Node:
    """The handle stretched to `shape`, with its axes in `order`, as one view."""
    strides = stretched_strides(handle, shape)
    turned = view_of(
        handle,
        tuple([shape[axis] for axis in order]),
        layout(handle)[0],
        tuple([strides[axis] for axis in order]),
        rearranged=True,
    )
    return node_of(turned)


def result_order(args: Sequence[Any], shape: tuple[int, ...]) -> Permutation | None:
    """The order in which new results of a call lie; None for C order, which most operands have."""
    if len(shape) < 2:
        return None
    arrays = [arg for arg in args if isinstance(arg, Handle)]
    if all(array._view is None or array._view.ordered for array in arrays):
        return None
    if not all(isinstance(arg, Handle) or np.ndim(arg) == 0 for arg in args):
        return None  # a host array among them lies in C order once it is uploaded
    return loop_order(shape, [stretched_strides(array, shape) for array in arrays])


def turned_nodes(
    args: Sequence[Any], nodes: Sequence[Node], shape: tuple[int, ...], order: Permutation
) -> tuple[Node, ...]:
    """The operands of a call with their axes in `order`; scalars as they are."""
    return tuple(
        [
            permuted_node(arg, shape, order) if isinstance(arg, Handle) else nodes[place]
            for place, arg in enumerate(args)
        ]
    )


def arranged(node: Node, order: Permutation) -> Any:
    """A new array whose axes, taken in `order`, are those of `node`."""
    handle = fresh(node)
    strides = c_strides(node.shape)
    shape = [0] * len(order)
    turned = [0] * len(order)
    for place, axis in enumerate(order):
        shape[axis] = node.shape[place]
        turned[axis] = strides[place]
    handle._shape = tuple(shape)
    handle._view = View(0, tuple(turned), None, is_ordered(handle._shape, tuple(turned)))
    return handle


def copied(handle: Handle) -> Any:
    """A new array with the same values, lying as NumPy's copy in order "K" does."""
    order = copy_order(handle)
    if order is None:
        return fresh(node_of(handle))
    return arranged(permuted_node(handle, handle._shape, order), order)
