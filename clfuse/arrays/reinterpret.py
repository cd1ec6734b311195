"""Storage read and written as another dtype, as nodes.

``x.real``, ``x.imag`` and ``x.view(dtype)`` see the bytes of a storage as elements of a dtype of
the same, a smaller or a larger size. Elements of the same size are bitcast. A smaller element is
part of a stored one: a component of a complex number, or bits that are shifted down. Where the
strides walk over whole stored elements nothing else is needed. Otherwise the storage is taken apart
as a whole.
"""

from __future__ import annotations

import math

import numpy as np

from clfuse.ir import build
from clfuse.ir.layout import contiguous_strides, without_unit_strides
from clfuse.ir.nodes import Node

_UNSIGNED = {size: np.dtype(f"uint{8 * size}") for size in (1, 2, 4, 8)}
_FLOAT_HALF: dict[str, np.dtype] = {
    "complex64": np.dtype(np.float32), "complex128": np.dtype(np.float64),
}  # fmt: skip


def read_as(
    node: Node, shape: tuple[int, ...], dtype: np.dtype, offset: int, strides: tuple[int, ...]
) -> Node:
    """Elements of `dtype` at ``offset + sum(index * strides)`` of the bytes of `node`."""
    stored = node.dtype
    if 1 in shape:
        strides = without_unit_strides(shape, strides)
    if stored is dtype:
        return build.view(node, shape, offset, strides)
    if math.prod(shape) == 0:
        return build.full(dtype.type(0), shape)
    if stored.itemsize == dtype.itemsize:
        return _same_size(build.view(node, shape, offset, strides), dtype)
    parts = stored.itemsize // dtype.itemsize
    if parts and not any(stride % parts for stride in strides):
        whole = tuple(stride // parts for stride in strides)
        return _part(build.view(node, shape, offset // parts, whole), offset % parts, dtype)
    flat = _take_apart(node, dtype) if parts else _put_together(node, dtype)
    return build.view(flat, shape, offset, strides)


def write(node: Node, value: Node, dtype: np.dtype, offset: int, strides: tuple[int, ...]) -> Node:
    """`node` after `value` (of `dtype`) was written where `read_as` would have read."""
    stored = node.dtype
    shape = value.shape
    if 1 in shape:
        strides = without_unit_strides(shape, strides)
    if stored is dtype:
        return build.update(node, value, offset, strides)
    if math.prod(shape) == 0:
        return node
    if stored.itemsize == dtype.itemsize:
        return build.update(node, _same_size(value, stored), offset, strides)
    parts = stored.itemsize // dtype.itemsize
    if _FLOAT_HALF.get(stored.name) is dtype and not any(stride % 2 for stride in strides):
        whole = tuple(stride // 2 for stride in strides)
        old = build.view(node, shape, offset // 2, whole)
        if offset % 2:
            merged = _complex(build.apply("real", (old,), dtype, shape), value, stored)
        else:
            merged = _complex(value, build.apply("imag", (old,), dtype, shape), stored)
        return build.update(node, merged, offset // 2, whole)
    if parts:
        flat = build.update(_take_apart(node, dtype), value, offset, strides)
        return build.reshape(_put_together(flat, stored), node.shape)
    flat = _take_apart(build.update(_put_together(node, dtype), value, offset, strides), stored)
    rest = math.prod(node.shape) - flat.shape[0]
    if rest:  # what the larger elements leave at the end
        flat = build.concatenate([flat, build.view(node, (rest,), flat.shape[0], (1,))], 0)
    return build.reshape(flat, node.shape)


def _complex(real: Node, imag: Node, dtype: np.dtype) -> Node:
    return build.apply("make_complex", (real, imag), dtype, real.shape)


def _same_size(node: Node, dtype: np.dtype) -> Node:
    """The bytes of every element as `dtype`, which has the same size."""
    if "b" in (node.dtype.kind, dtype.kind):
        # A bool is a mask in registers, and one byte of 0 or 1 in memory: its value as a number.
        return build.cast(build.cast(node, _UNSIGNED[1]), dtype)
    return build.bitcast(node, dtype)


def _part(node: Node, position: int, dtype: np.dtype) -> Node:
    """The bytes ``position * dtype.itemsize ...`` of every element, as a smaller `dtype`."""
    stored = node.dtype
    if stored.kind == "c":
        half = _FLOAT_HALF[stored.name]
        parts_of_half = half.itemsize // dtype.itemsize
        name = "real" if position < parts_of_half else "imag"
        component = build.apply(name, (node,), half, node.shape)
        if half.itemsize == dtype.itemsize:
            return component if half is dtype else _same_size(component, dtype)
        return _part(component, position % parts_of_half, dtype)
    bits = _same_size(node, _UNSIGNED[stored.itemsize])
    if position:
        amount = build.constant(bits.dtype.type(8 * dtype.itemsize * position))
        bits = build.apply("right_shift", (bits, amount), bits.dtype, bits.shape)
    return _same_size(build.cast(bits, _UNSIGNED[dtype.itemsize]), dtype)


def _take_apart(node: Node, dtype: np.dtype) -> Node:
    """All bytes of `node` as a flat array of a smaller `dtype`."""
    parts = node.dtype.itemsize // dtype.itemsize
    size = math.prod(node.shape)
    flat = build.reshape(node, (size, 1))
    columns = [_part(flat, position, dtype) for position in range(parts)]
    return build.reshape(build.concatenate(columns, 1), (size * parts,))


def _put_together(node: Node, dtype: np.dtype) -> Node:
    """All bytes of `node` as a flat array of a larger `dtype`."""
    if dtype.kind == "c":
        half = _FLOAT_HALF[dtype.name]
        if node.dtype.itemsize == half.itemsize:
            flat = build.reshape(_same_size(node, half), (math.prod(node.shape),))
        else:
            flat = _put_together(node, half)
        count = flat.shape[0] // 2
        return _complex(
            build.view(flat, (count,), 0, (2,)), build.view(flat, (count,), 1, (2,)), dtype
        )
    if node.dtype.kind == "c":
        node = _take_apart(node, _FLOAT_HALF[node.dtype.name])
    parts = dtype.itemsize // node.dtype.itemsize
    count = math.prod(node.shape) // parts
    pieces = _same_size(node, _UNSIGNED[node.dtype.itemsize])
    wide = _UNSIGNED[dtype.itemsize]
    bits: Node | None = None
    for position in range(parts):
        strides = (parts,) if count > 1 else contiguous_strides((count,))
        piece = build.cast(build.view(pieces, (count,), position, strides), wide)
        if bits is None:
            bits = piece
            continue
        amount = build.constant(wide.type(8 * node.dtype.itemsize * position))
        piece = build.apply("left_shift", (piece, amount), wide, piece.shape)
        bits = build.apply("bitwise_or", (bits, piece), wide, piece.shape)
    assert bits is not None
    return _same_size(bits, dtype)
