"""Sets of rows and of complex numbers on devices whose sorts are kernels.

NumPy sees a row as one structured element, and keeps complex numbers in a table. Kernels sort by
real keys: a lexicographic order is several stable ones, from the last key on. Elsewhere NumPy's own
code makes these sets, on the device's memory.

Of equal rows the first one is kept. So does NumPy where it returns indices; otherwise its sort may
leave another one of them, which differs in the signs of zeros.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.lib import _arraysetops_impl as sets

from clfuse.arrays.conversion import NotNative, as_handle
from clfuse.arrays.handle import Handle, native_dtype
from clfuse.dispatch.library_steps import has_sorts

from .sorting import MOST_KEYS, keys_of, order_by

__all__ = ["unique_numbers", "unique_rows"]

_UNIQUE: Final = inspect.signature(np.unique)
_WORD_BITS: Final = 64
_BEYOND_HALF: Final = 1e5
"""No number of half precision is so large."""

_HALF_FIRST: Final = np.array([(0.0,), (np.nan,)], [("f0", "e")]).argsort()[0] == 1
"""Whether NaN of half precision comes before numbers in NumPy's order of structured elements."""

_FEWEST_AXES: Final = 1 if len(np.unique(np.full(2, np.nan), axis=0)) == 2 else 2
"""Of an array of rows: in older releases a vector had rows, too, each NaN one by itself."""

_FLAT: Final = np.unique(np.zeros((1, 1)), axis=0, return_inverse=True)[1].ndim == 1
"""Whether the inverse of a set of rows is a vector: not in NumPy 2.0."""


def unique_rows(*args: Any, **kwargs: Any) -> Any:
    """`numpy.unique` along an axis; NotImplemented where the call is another one.

    Raises NotNative: of rows of very many columns.
    """
    try:
        given = _UNIQUE.bind(*args, **kwargs).arguments
    except TypeError:  # NumPy's code has the error
        return NotImplemented
    axis, array = given.get("axis"), given["ar"]
    if not isinstance(array, Handle | np.ndarray) or native_dtype(array.dtype) is None:
        return NotImplemented
    rank = len(array.shape)
    if axis is None or rank < _FEWEST_AXES or not has_sorts():
        return NotImplemented
    if not hasattr(type(axis), "__index__"):
        return NotImplemented
    axis = axis.__index__()
    if not -rank <= axis < rank or not array.shape[axis]:
        return NotImplemented
    turned = np.moveaxis(as_handle(array), axis, 0)
    rows = turned.reshape(turned.shape[0], math.prod(turned.shape[1:]))
    order = order_by(_keys_of_rows(rows), 0) if rows.shape[1] else np.arange(len(rows), like=rows)
    inside = rows[order]
    first = _with_first(np.any(inside[1:] != inside[:-1], axis=1))
    places = np.flatnonzero(first)
    found = inside[places].reshape(len(places), *turned.shape[1:])
    results = [np.moveaxis(found, 0, axis)]
    if given.get("return_index"):
        results.append(order[places])
    if given.get("return_inverse"):
        inverse = np.empty_like(order)
        inverse[order] = np.cumsum(first) - 1
        shape = [1] * rank
        shape[axis] = len(order)
        results.append(inverse if _FLAT else inverse.reshape(shape))
    if given.get("return_counts"):
        results.append(np.diff(np.append(places, len(order))))
    return results[0] if len(results) == 1 else tuple(results)


def _with_first(differs: Any) -> Any:
    """Which of sorted elements begin a group, of whether each differs from the one before."""
    return np.concatenate((np.ones_like(differs, shape=1), differs))


def _keys_of_rows(rows: Any) -> list[Any]:
    """What rows are sorted by, the least important first."""
    kind, bits = rows.dtype.kind, 1 if rows.dtype.kind == "b" else 8 * rows.dtype.itemsize
    count = rows.shape[1]
    together = _WORD_BITS // bits if kind in "bui" else 1
    if -(-count // together) * (3 if kind == "c" else 1) > MOST_KEYS:
        raise NotNative("of rows of very many columns")
    columns = [rows[:, place] for place in range(count)]
    if together == 1:
        return [key for column in reversed(columns) for key in _keys_of_field(column)]
    groups = [columns[place : place + together] for place in range(0, count, together)]
    return [_joined(group, bits) for group in reversed(groups)]


def _keys_of_field(column: Any) -> list[Any]:
    """As `keys_of`, in the order in which NumPy compares structured elements."""
    if column.dtype.char != "e" or not _HALF_FIRST:
        return keys_of(column)
    number = np.clip(column.astype(np.float32), -_BEYOND_HALF, _BEYOND_HALF)
    return [np.where(np.isnan(column), np.float32(-2 * _BEYOND_HALF), number)]


def _joined(columns: Sequence[Any], bits: int) -> Any:
    """One unsigned key whose digits are whole numbers of so many bits, the first the highest."""
    if len(columns) == 1:
        return columns[0]
    joined: Any = None
    for column in columns:
        digit = column.astype(np.uint64)
        if column.dtype.kind == "i":
            digit = (digit + np.uint64(1 << (bits - 1))) & np.uint64((1 << bits) - 1)
        joined = digit if joined is None else joined << np.uint64(bits) | digit
    least = next(size for size in (8, 16, 32, 64) if size >= bits * len(columns))
    return joined.astype(f"u{least // 8}")


def unique_numbers(array: Any, *, equal_nan: bool = True) -> Any:
    """The different numbers of a vector, where NumPy keeps them in a table, which has the first of
    equal ones; NotImplemented where it does not, or where a sort finds the same."""
    if array.dtype.kind != "c" or not len(array) or not _has_table(array.dtype):
        return NotImplemented
    is_nan = np.isnan(array)
    keys = keys_of(array)
    if equal_nan:
        keys = [*[np.where(is_nan, 0, key) for key in keys[:-1]], is_nan]
    order = order_by(keys, 0)
    inside = array[order]
    differs = inside[1:] != inside[:-1]
    if equal_nan:
        there = is_nan[order]
        differs &= ~(there[1:] & there[:-1])
    return inside[_with_first(differs)]


def _has_table(dtype: np.dtype) -> bool:
    found = sets._unique_hash(  # type: ignore[attr-defined]
        np.zeros(1, dtype), equal_nan=True
    )
    return found is not NotImplemented

