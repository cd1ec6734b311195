"""Library calls made on the device itself: products by CLBlast, Fourier transforms by VkFFT.

They are used where these packages are installed and the device does not share the host's memory.
Without them products are kernels of ours (`codegen.matmul`), and transforms are NumPy's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from clfuse.ir.layout import contiguous_strides
from clfuse.ir.nodes import TRANSFORM
from clfuse.target.traits import DeviceTraits

from .library_forms import Matrix, Product, Transform
from .records import LibraryCall, Operand

LEAST_SIDE: Final = 128
"""Rows, columns and inner extent from which on CLBlast multiplies: it is tuned for the device.
Smaller products want the map behind them in the same launch. Not measured on a GPU."""


def is_renderable(call: LibraryCall) -> bool:
    """Whether `codegen.matmul` can write this call: matrices of numbers, not bools."""
    return (
        call.name == "matmul"
        and call.dtype.kind in "iufc"
        and len(call.operands) == 2
        and all(len(operand.shape) > 1 for operand in call.operands)
        and 0 not in call.shape
    )


def device_call(call: LibraryCall, traits: DeviceTraits) -> Product | Transform | None:
    """The call as a library of the device takes it; None where none does."""
    if "clblast" in traits.libraries and is_renderable(call):
        return _product(call)
    if "vkfft" in traits.libraries and call.name == TRANSFORM:
        return _transform(call)
    return None


def is_ours(call: LibraryCall, traits: DeviceTraits) -> bool:
    """Whether a kernel of ours makes the call."""
    return traits.schedule == "gpu" and is_renderable(call) and device_call(call, traits) is None


def _product(call: LibraryCall) -> Product | None:
    left, right = call.operands
    rows, inner, columns = call.shape[-2], left.shape[-1], call.shape[-1]
    if call.dtype.char not in "fdFD" or min(rows, columns, inner) < LEAST_SIDE:
        return None
    if left.dtype != call.dtype or right.dtype != call.dtype:
        return None
    batch = call.shape[:-2]
    matrices = [_matrix(operand, batch) for operand in call.operands]
    if matrices[0] is None or matrices[1] is None:
        return None
    return Product(rows, columns, inner, math.prod(batch), matrices[0], matrices[1])


def _matrix(operand: Operand, batch: Sequence[int]) -> Matrix | None:
    """One of its axes must be dense, and the matrices of a batch evenly spaced."""
    rows, columns = operand.shape[-2:]
    down, along = operand.strides[-2:]
    if along == 1 and down >= columns:
        leading, turned = down, False
    elif down == 1 and along >= rows:
        leading, turned = along, True
    else:
        return None
    own = [0] * (len(batch) - len(operand.shape) + 2)
    own += [
        0 if extent == 1 else stride
        for extent, stride in zip(operand.shape[:-2], operand.strides, strict=False)
    ]
    step = count = 0
    for extent, stride in zip(reversed(batch), reversed(own), strict=True):
        if extent == 1:
            continue
        if not count:
            step, count = stride, extent
        elif stride == step * count:
            count *= extent
        else:
            return None
    return Matrix(operand.value, operand.offset, leading, turned, step) if step >= 0 else None


def _transform(call: LibraryCall) -> Transform | None:
    (operand,) = call.operands
    if operand.offset or operand.strides != contiguous_strides(operand.shape):
        return None
    name, _, axes, _ = call.param[1]
    places = (axes,) if isinstance(axes, int) else tuple(axes)
    kind = "real" if name.startswith("rfft") else "halved" if name == "irfft" else "complex"
    shape = call.shape if kind == "halved" else operand.shape
    is_forward = not name.startswith("i")
    return Transform(kind, is_forward, shape, tuple(sorted(places)), operand.value)
