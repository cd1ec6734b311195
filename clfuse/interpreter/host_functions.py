"""NumPy's functions for element-wise operations, of the dtypes that were recorded."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from clfuse.ir.nodes import Op

from .rng import NUMBERS

__all__ = ["cast", "host_function", "is_part_of_product"]

Array = Any
"""An array of NumPy's or one of its scalars."""


def host_function(op: Op) -> Callable[..., Array] | None:
    """NumPy's function for an element-wise operation; None where it has none."""
    try:
        return op.host
    except AttributeError:
        op.host = _find_function(op)
        return op.host


def _find_function(op: Op) -> Callable[..., Array] | None:
    dtype = op.dtype
    assert dtype is not None
    if op.name == "cast":
        return lambda value: cast(value, dtype)
    if op.name == "bitcast":
        return lambda value: np.array(value, order="C", ndmin=1).view(dtype).reshape(value.shape)
    if op.row is None:
        return None
    make = _INTERNAL.get(op.name)
    if op.row.output or make is not None:
        return None if make is None else make(dtype)
    ufunc = getattr(np, op.name, None)
    if not isinstance(ufunc, np.ufunc) or ufunc.nout != 1:
        return None
    try:
        natural = ufunc.resolve_dtypes((*op.input_dtypes, None))
        if natural == (*op.input_dtypes, dtype):
            return ufunc
        ufunc.resolve_dtypes((*op.input_dtypes, dtype), signature=(*op.input_dtypes, dtype))
    except TypeError:
        return None
    return partial(ufunc, signature=(*op.input_dtypes, dtype))


def cast(value: Array, dtype: np.dtype[Any]) -> Array:
    if value.dtype is dtype:
        return value
    if value.dtype.kind == "c" and dtype.kind not in "cb":
        value = value.real
    return value.astype(dtype)


_CALLED: Final = frozenset(("matmul", "dot"))


def is_part_of_product(op: Op) -> bool:
    """Whether a multiplication was recorded for a product of vectors (`gemv`)."""
    return op.name == "multiply" and op.called in _CALLED


def _power(dtype: np.dtype[Any]) -> Callable[..., Array]:
    """Negative exponents of integers are refused at the call, but where a mask hides them."""
    if dtype.kind != "i":
        return np.power
    return lambda base, exponent: np.power(base, np.maximum(exponent, 0))


def _make_complex(dtype: np.dtype[Any]) -> Callable[..., Array]:
    def make(real: Array, imag: Array) -> Array:
        out = np.empty(np.broadcast_shapes(real.shape, imag.shape), dtype)
        out.real, out.imag = real, imag
        return out

    return make


_WORD: Final = np.uint64(0xFFFFFFFF)
_BITS: Final = np.uint64(32)


def _multiply_high(dtype: np.dtype[Any]) -> Callable[..., Array]:
    def high(left: Array, right: Array) -> Array:
        left0, left1 = left & _WORD, left >> _BITS
        right0, right1 = right & _WORD, right >> _BITS
        middle = left1 * right0 + ((left0 * right0) >> _BITS)
        other = left0 * right1 + (middle & _WORD)
        return left1 * right1 + (middle >> _BITS) + (other >> _BITS)

    return high


_INTERNAL: Final[dict[str, Callable[[np.dtype[Any]], Callable[..., Array]]]] = {
    "where": lambda dtype: np.where,
    "clip": lambda dtype: np._core.umath.clip,  # type: ignore[attr-defined]
    "wrap_index": lambda dtype: lambda index, length: np.where(
        index < 0, index + length, index
    ).astype(dtype),
    "from_zero": lambda dtype: lambda value: value + dtype.type(0),
    "real": lambda dtype: lambda value: value.real,
    "imag": lambda dtype: lambda value: value.imag,
    "make_complex": _make_complex,
    "power": _power,
    "modf_fraction": lambda dtype: lambda value: np.modf(value)[0],
    "modf_integer": lambda dtype: lambda value: np.modf(value)[1],
    "frexp_mantissa": lambda dtype: lambda value: np.frexp(value)[0],
    "frexp_exponent": lambda dtype: lambda value: np.frexp(value)[1],
    "multiply_high": _multiply_high,
    "sorts_before": lambda dtype: lambda it, key: (it < key) | ((key != key) & (it == it)),
    "sorts_before_or_with": lambda dtype: lambda it, key: (it <= key) | (key != key),
    **NUMBERS,
}
"""Rows that are no ufuncs of NumPy's: result's dtype -> function of the operands."""
