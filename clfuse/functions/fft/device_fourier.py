"""Fourier transforms by VkFFT: library steps, and expressions for what VkFFT does not do.

VkFFT transforms arrays in C order, along any axes where both sides are complex, and with the last
axis among them where one side is real. It does not scale forward transforms, and divides backward
ones by the number of points. All else (lengths, norms, a halved axis that is not the last, dtypes)
is expressions, which fuse with the rest of the program.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from clfuse.arrays import errstate
from clfuse.arrays.expressions import choose, combine, convert, scalar
from clfuse.arrays.promotion import INT64
from clfuse.functions.shaping.manipulation import sliced
from clfuse.ir import build
from clfuse.ir.layout import contiguous_strides
from clfuse.ir.nodes import TRANSFORM, Node

_TURNED: Final = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}
"""The norm of the opposite direction: of `hfft`, which is an inverse, and of `ihfft`."""


def transformed(
    name: str, node: Node, points: Sequence[int], axes: Sequence[int], norm: Any, dtype: np.dtype
) -> Node:
    """What the function of `numpy.fft` gives.

    name: the function.
    node: its operand.
    points: extents along `axes` on the side that has all of them.
    axes: each once, none negative.
    norm (str or None): as NumPy has it.
    dtype: of the result.
    """
    plain = name.rstrip("2n")
    if plain == "hfft":
        turned = combine(np.conjugate, node) if node.dtype.kind == "c" else node
        return transformed("irfft", turned, points, axes, _TURNED[norm], dtype)
    if plain == "ihfft":
        made = transformed("rfft", node, points, axes, _TURNED[norm], dtype)
        return combine(np.conjugate, made)
    single = dtype.char in "fF"
    real, full = np.dtype("f" if single else "d"), np.dtype("F" if single else "D")
    *others, last = axes
    for axis, count in zip(axes, points, strict=True):
        kept = count // 2 + 1 if plain == "irfft" and axis == last else count
        node = _of_length(node, axis, kept)
    if plain in ("fft", "ifft"):
        made = _recorded(f"{plain}n", convert(node, full), node.shape, tuple(axes), full)
    else:
        node = _moved(node, last, len(node.shape) - 1)
        # The axes before the last one stay in order.
        before = tuple([axis - (axis > last) for axis in others])
        end = len(node.shape) - 1
        if plain == "rfft":
            shape = (*node.shape[:-1], points[-1] // 2 + 1)
            made = _recorded("rfftn", convert(node, real), shape, (*before, end), full)
        else:
            node = convert(node, full)
            if before:
                node = _recorded("ifftn", node, node.shape, before, full)
            node = _without_odd_parts(node, points[-1], real, full)
            shape = (*node.shape[:-1], points[-1])
            made = _recorded("irfft", node, shape, end, real, points[-1])
        made = _moved(made, end, last)
    factor = _factor(norm, math.prod(points), plain[0] != "i")
    return made if factor == 1 else combine(np.multiply, made, scalar(factor, real))


def _factor(norm: Any, points: int, is_forward: bool) -> float:
    if norm == "ortho":
        return 1 / math.sqrt(points) if is_forward else math.sqrt(points)
    if norm == "forward":
        return 1 / points if is_forward else float(points)
    return 1.0


def _recorded(
    name: str, node: Node, shape: tuple[int, ...], axes: Any, dtype: np.dtype, points: Any = None
) -> Node:
    called = {"rfftn": "rfft_n_even", "irfft": "irfft"}.get(name, name[:-1])
    param = ((node.shape,), (name, points, axes, None))
    return errstate.apply_errstate(build.library(TRANSFORM, (node,), shape, dtype, param), called)


def _of_length(node: Node, axis: int, count: int) -> Node:
    """The node with so many elements along an axis: the first ones, or zeros behind them."""
    extent = node.shape[axis]
    if count <= extent:
        return node if count == extent else sliced(node, axis, 0, count)
    shape = (*node.shape[:axis], count - extent, *node.shape[axis + 1 :])
    zeros = build.broadcast(scalar(0, node.dtype), shape)
    return build.concatenate([node, zeros], axis)


def _moved(node: Node, source: int, target: int) -> Node:
    """The node with one axis moved to another place, as a view."""
    if source == target:
        return node
    order = [axis for axis in range(len(node.shape)) if axis != source]
    order.insert(target, source)
    strides = contiguous_strides(node.shape)
    return build.view(
        node,
        tuple([node.shape[axis] for axis in order]),
        0,
        tuple([strides[axis] for axis in order]),
    )


def _without_odd_parts(node: Node, points: int, real: np.dtype, full: np.dtype) -> Node:
    """Half a spectrum, without the imaginary parts that no real values have: NumPy ignores them."""
    place = build.iota(node.shape[-1])
    is_real = combine(np.equal, place, scalar(0, INT64))
    if points % 2 == 0:
        is_last = combine(np.equal, place, scalar(points // 2, INT64))
        is_real = combine(np.logical_or, is_real, is_last)
    return choose(is_real, convert(node, real), node, full, node.shape)
