"""Convolution, correlation, and bits packed into bytes.

A short kernel that slides over a long vector is a sum over windows: it fuses with the expressions
before and after it. A convolution with a long kernel is NumPy's own loop where it can read the
device's memory; elsewhere it is a sum over windows, too.
"""

from __future__ import annotations

import math
from operator import index as as_index
from typing import Any, Final

import numpy as np

from clfuse.arrays.conversion import NotNative, as_handle
from clfuse.arrays.expressions import choose, combine, convert, scalar
from clfuse.arrays.handle import DTYPES, Handle, fresh, native_dtype, node_of
from clfuse.arrays.promotion import BOOL, FLOAT16, FLOAT32, INT64
from clfuse.arrays.views import normalized_axis, reshape_view
from clfuse.dispatch.host_call import native, shares_memory
from clfuse.dispatch.library_steps import step
from clfuse.functions.math.folds import fold_axes
from clfuse.functions.shaping.manipulation import moveaxis
from clfuse.ir import build
from clfuse.ir.layout import contiguous_strides
from clfuse.ir.nodes import Node

SHORT: Final = 32
"""Length of a kernel up to which a sum over windows is a kernel: that many multiplications an
element take as long as to read it from memory, or little more."""

_MODES: Final = {"valid": 0, "same": 1, "full": 2, 0: 0, 1: 1, 2: 2}

UINT8: Final = DTYPES["uint8"]


def _vectors(a: Any, v: Any, mode: Any) -> tuple[Node, Node, int]:
    left, right = as_handle(a), as_handle(v)
    if len(left._shape) != 1 or len(right._shape) != 1 or type(mode) is bool or mode not in _MODES:
        raise NotNative("of these operands")
    if not left._shape[0] or not right._shape[0]:
        raise NotNative("of empty vectors")
    dtype = native_dtype(np.result_type(left._dtype, right._dtype))
    if dtype is None:
        raise NotNative(f"of {left._dtype} and {right._dtype}")
    return convert(node_of(left), dtype), convert(node_of(right), dtype), _MODES[mode]


def _slid(signal: Node, kernel: Node, mode: int) -> Node:
    """``sum(signal[k + i] * kernel[i])`` for every k that `mode` asks for; kernel not longer."""
    (n,), (m,) = signal.shape, kernel.shape
    before, after = ((0, 0), (m // 2, m - m // 2 - 1), (m - 1, m - 1))[mode]
    count = n + before + after - m + 1
    if signal.dtype is FLOAT16 and not shares_memory():  # which NumPy adds in float32
        wide = _slid(convert(signal, FLOAT32), convert(kernel, FLOAT32), mode)
        return convert(wide, FLOAT16)
    if (m > SHORT or signal.dtype is FLOAT16) and shares_memory():
        name = ("valid", "same", "full")[mode]
        return step("correlate", [signal, kernel], (count,), signal.dtype, name)
    dtype = signal.dtype
    parts = [
        build.full(dtype.type(0), (before,)), signal, build.full(dtype.type(0), (after,))
    ]  # fmt: skip
    padded = build.concatenate([part for part in parts if part.shape[0]], 0)
    windows = build.view(padded, (count, m), 0, (1, 1))
    product = combine(np.multiply, windows, kernel)
    if before or after:
        # Beyond the ends nothing is added: 0 times infinity would be.
        first = build.view(build.iota(count), (count, m), 0, (1, 0))
        place = combine(np.add, first, build.view(build.iota(m), (count, m), 0, (0, 1)))
        inside = combine(
            np.logical_and,
            combine(np.greater_equal, place, scalar(before, INT64)),
            combine(np.less, place, scalar(before + n, INT64)),
        )
        product = choose(inside, product, scalar(0, dtype), dtype, product.shape)
    return fold_axes(np.logical_or if dtype is BOOL else np.add, product, (1,), dtype)


def _reversed(node: Node) -> Node:
    (count,) = node.shape
    return build.view(node, node.shape, count - 1, (-1,)) if count > 1 else node


@native(np.convolve)
def convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    """The discrete convolution of two vectors."""
    one, two = (
        reshape_view(handle, (1,)) if not handle._shape else handle
        for handle in (as_handle(a), as_handle(v))
    )
    if len(two._shape) == 1 and len(one._shape) == 1 and two._shape > one._shape:
        one, two = two, one
    signal, kernel, kind = _vectors(one, two, mode)
    return fresh(_slid(signal, _reversed(kernel), kind))


@native(np.correlate)
def correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    """The cross-correlation of two vectors; the second one is conjugated."""
    signal, kernel, kind = _vectors(a, v, mode)
    if kernel.dtype.kind == "c":
        kernel = combine(np.conjugate, kernel)
    if kernel.shape[0] > signal.shape[0]:
        return fresh(_reversed(_slid(kernel, signal, kind)))
    return fresh(_slid(signal, kernel, kind))


# -- bits -----------------------------------------------------------------------------------------


def _places(bitorder: Any) -> Node:
    """By how much each of eight bits is shifted."""
    if not isinstance(bitorder, str):
        raise TypeError(f"argument 3 must be str, not {type(bitorder).__name__}")
    if bitorder not in ("big", "little"):
        raise ValueError("'order' must be either 'little' or 'big'")
    places = build.cast(build.iota(8), UINT8)
    return combine(np.subtract, scalar(7, UINT8), places) if bitorder == "big" else places


def _turned(a: Any, axis: Any) -> tuple[Handle, int | None]:
    """The array with the axis to work along last; flat where none is named."""
    handle = as_handle(a)
    if axis is None:
        return reshape_view(handle, (math.prod(handle._shape),)), None
    place = normalized_axis(axis, len(handle._shape))
    return moveaxis(handle, place, -1), place


def _back(node: Node, place: int | None) -> Any:
    made = fresh(node)
    return made if place is None else moveaxis(made, -1, place).copy()


@native(np.packbits)
def packbits(a: Any, /, axis: Any = None, bitorder: Any = "big") -> Any:
    """The elements as bits, eight of them in a byte; zeros fill the last one."""
    places = _places(bitorder)
    handle, place = _turned(a, axis)
    if handle._dtype.kind not in "biu" or 0 in handle._shape or not handle._shape:
        raise NotNative("of these elements")
    *rest, count = handle._shape
    bits = combine(np.not_equal, node_of(handle), scalar(0, handle._dtype))
    if count % 8:
        missing = build.full(np.bool_(False), (*rest, -count % 8))
        bits = build.concatenate([bits, missing], len(rest))
    nbytes = -(-count // 8)
    bits = build.reshape(bits, (*rest, nbytes, 8))
    weights = combine(np.left_shift, scalar(1, UINT8), places)
    values = choose(bits, weights, scalar(0, UINT8), UINT8, bits.shape)
    return _back(fold_axes(np.add, values, (len(rest) + 1,), UINT8), place)


@native(np.unpackbits)
def unpackbits(a: Any, /, axis: Any = None, count: Any = None, bitorder: Any = "big") -> Any:
    """The bits of bytes, each as an element; `count` of them, or but so many where it is below
    zero."""
    places = _places(bitorder)
    handle, place = _turned(a, axis)
    if handle._dtype is not UINT8 or 0 in handle._shape or not handle._shape:
        raise NotNative("of these elements")
    *rest, nbytes = handle._shape
    node = build.reshape(node_of(handle), (*rest, nbytes, 1))
    shifted = combine(np.right_shift, node, places)
    bits = combine(np.bitwise_and, shifted, scalar(1, UINT8))
    bits = build.reshape(bits, (*rest, 8 * nbytes))
    if count is not None:
        wanted = as_index(count)
        if wanted < -8 * nbytes:
            raise NotNative("of fewer elements than there are")
        wanted = 8 * nbytes + wanted if wanted < 0 else wanted
        if wanted > 8 * nbytes:
            zeros = build.full(np.uint8(0), (*rest, wanted - 8 * nbytes))
            bits = build.concatenate([bits, zeros], len(rest))
        elif not wanted:
            bits = build.full(np.uint8(0), (*rest, 0))
        else:
            strides = contiguous_strides(bits.shape)
            bits = build.view(bits, (*rest, wanted), 0, strides)
    return _back(bits, place)
