"""Operands of random calls: `made` gives the same array under every module."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

import numpy as np

DTYPES: Final = (
    "bool",
    "int8",
    "uint8",
    "int16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
    "float64",
    "complex64",
    "complex128",
)
SHAPES: Final = (
    (),
    (0,),
    (1,),
    (3,),
    (4,),
    (6,),
    (2, 3),
    (3, 3),
    (1, 4),
    (0, 3),
    (2, 1, 3),
    (2, 2, 2),
    (2, 3, 3),
)
LAYOUTS: Final = (
    "plain",
    "plain",
    "plain",
    "recorded",
    "reversed",
    "transposed",
    "strided",
    "offset",
    "broadcast",
    "numpy",
    "list",
    "read_only",
)


def data(dtype: str, shape: tuple[int, ...], seed: int) -> Any:
    """Small numbers of either sign; every third seed has ends of the dtype and what is no number
    among them."""
    draw = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    values = draw.integers(0 if kind in "bu" else -4, 2 if kind == "b" else 6, shape)
    if kind == "f":
        values = values / 2
    if kind == "c":
        values = values / 2 + 1j * (draw.integers(-4, 6, shape) / 2)
    made = np.array(values, dtype)
    if seed % 3 == 0 and made.size:
        if kind in "iu":
            ends = [np.iinfo(dtype).min, np.iinfo(dtype).max]
        elif kind == "b":
            ends = [True]
        else:
            ends = [np.nan, np.inf, -np.inf, -0.0, 1e4]
        made.flat[draw.integers(0, made.size)] = ends[int(draw.integers(0, len(ends)))]
    return made


def made(m: ModuleType, dtype: str, shape: tuple[int, ...], seed: int, layout: str) -> Any:
    """An operand of a call, under the module `m`."""
    values = data(dtype, shape, seed)
    if layout == "numpy":
        return values
    if layout == "list":
        return values.tolist()
    if layout == "recorded":
        return m.maximum(m.array(values), m.array(values))
    if layout == "transposed":
        return m.array(values.T.copy("C")).T
    if layout == "broadcast":
        return m.broadcast_to(m.array(data(dtype, shape[1:], seed)), shape)
    if layout == "read_only":
        array = m.array(values)
        array.flags.writeable = False
        return array
    if not shape or layout == "plain":
        return m.array(values)
    if layout == "reversed":
        everywhere = (slice(None, None, -1),) * len(shape)
        return m.array(values[everywhere])[everywhere]
    if layout == "strided":
        base = np.zeros((*shape[:-1], 2 * shape[-1]), dtype)
        base[..., ::2] = values
        return m.array(base)[..., ::2]
    base = np.zeros((shape[0] + 1, *shape[1:]), dtype)
    base[1:] = values
    return m.array(base)[1:]
