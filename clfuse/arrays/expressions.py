"""Expressions of nodes for functions that are no ufuncs: broadcasts, casts, selections."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np

from clfuse.ir import build
from clfuse.ir.nodes import Kind, Node, Op, loop
from clfuse.ir.size_limits import CONCEIVABLE_NBYTES, require_room

from .promotion import BOOL, resolve

INT8: Final = np.dtype(np.int8)


@lru_cache(maxsize=8192)
def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape of operands, with the error that NumPy's ufuncs raise.

    >>> broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    rank = max(map(len, shapes), default=0)
    common = [1] * rank
    for shape in shapes:
        for axis, extent in enumerate(shape, rank - len(shape)):
            if extent == 1 or extent == common[axis]:
                continue
            if common[axis] != 1:
                texts = " ".join(map(shape_text, shapes))
                raise ValueError(f"operands could not be broadcast together with shapes {texts} ")
            common[axis] = extent
    return require_room(tuple(common), INT8, CONCEIVABLE_NBYTES)


def shape_text(shape: tuple[int, ...]) -> str:
    """A shape as NumPy's error messages write it.

    >>> shape_text((3,)), shape_text((2, 3))
    ('(3,)', '(2,3)')
    """
    return "(" + ",".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def convert(node: Node, dtype: np.dtype) -> Node:
    """`node` cast to `dtype` as ``astype`` does; of complex numbers the real part."""
    source = node.dtype
    if source is dtype:
        return node
    if node.op.kind is Kind.CONSTANT:
        value = node.param
        if source.kind == "c" and dtype.kind not in "cb":
            value = value.real
        with np.errstate(all="ignore"):
            return build.constant(value.astype(dtype))
    if source.kind == "c" and dtype.kind not in "cb":
        part = np.dtype(f"float{4 * source.itemsize}")
        return build.cast(build.apply("real", (node,), part, node.shape), dtype)
    if source.kind == "c" and dtype.kind == "b":
        return combine(np.not_equal, node, build.constant(source.type(0)))
    return build.cast(node, dtype)


def combine(function: np.ufunc, *nodes: Node) -> Node:
    """The ufunc on nodes of any native dtypes and shapes that broadcast; its loop must be
    native."""
    op = _loop_of(function, tuple([node.dtype for node in nodes]))
    shape = broadcast_shapes(*[node.shape for node in nodes])
    return build.elementwise(op, nodes, shape)


@lru_cache(maxsize=4096)
def _loop_of(function: np.ufunc, dtypes: tuple[np.dtype, ...]) -> Op:
    resolution = resolve(function, dtypes)
    if resolution.ops is None:
        raise AssertionError(f"{function.__name__} is composed of but not native: {dtypes}")
    return resolution.ops[0]


def choose(mask: Node, chosen: Node, other: Node, dtype: np.dtype, shape: tuple[int, ...]) -> Node:
    """`chosen` where `mask` is true, else `other`; broadcast to `shape`, of `dtype`."""
    op = loop("where", (BOOL, dtype, dtype), dtype)
    operands = (convert(mask, BOOL), convert(chosen, dtype), convert(other, dtype))
    return build.elementwise(op, operands, shape)


def scalar(value: Any, dtype: np.dtype) -> Node:
    """A constant of `dtype`."""
    return build.constant(dtype.type(value))
