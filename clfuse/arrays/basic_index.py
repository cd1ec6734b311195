"""Layouts of views by basic indices: integers, slices, Ellipsis and newaxis."""

from __future__ import annotations

from operator import index as as_index
from typing import Any

import numpy as np

from clfuse.ir.layout import tail
from clfuse.ir.size_limits import MOST_AXES

from . import handle as handles
from .handle import Handle

Layout = tuple[tuple[int, ...], int, tuple[int, ...], bool]

_INVALID = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean "
    "arrays are valid indices"
)


def locate(
    shape: tuple[int, ...], offset: int, strides: tuple[int, ...], index: Any
) -> Layout | None:
    """Shape, offset and strides of a basic index, and whether it names a single element.

    None where the index is an advanced one. Raises what NumPy raises.

    >>> locate((4, 6), 0, (6, 1), (slice(1, 3), -1))
    ((2,), 11, (6,), False)
    """
    if type(index) is not tuple:
        if type(index) is int and shape:  # a row: most indices are, in loops
            extent = shape[0]
            if -extent <= index < extent:
                offset += (index if index >= 0 else index + extent) * strides[0]
                return tail(shape), offset, tail(strides), len(shape) == 1
        index = tuple(index) if isinstance(index, tuple) else (index,)
    axis = 0
    rank = len(shape)
    new_shape: list[int] = []
    new_strides: list[int] = []
    ellipsis = False
    is_element = True
    for position, item in enumerate(index):
        kind = type(item)
        if kind is slice:
            is_element = False
            if axis >= rank:
                raise _too_many(rank, index)
            extent = shape[axis]
            stride = strides[axis]
            if item.start is None and item.stop is None and item.step is None:
                new_shape.append(extent)
                new_strides.append(stride)
            else:
                try:
                    start, stop, step = item.indices(extent)
                except TypeError:
                    check_kinds(index)  # NumPy looks at the kinds of all items before it uses one
                    raise
                count = len(range(start, stop, step))
                if count:
                    offset += start * stride
                new_shape.append(count)
                new_strides.append(stride * step)
            axis += 1
        elif item is None:
            is_element = False
            new_shape.append(1)
            new_strides.append(0)
        elif item is Ellipsis:
            if ellipsis:
                raise IndexError("an index can only have a single ellipsis ('...')")
            ellipsis = True
            is_element = False
            rest = sum(1 for later in index[position + 1 :] if later is not None)
            end = max(rank - rest, axis)
            new_shape.extend(shape[axis:end])
            new_strides.extend(strides[axis:end])
            axis = end
        else:
            if kind is not int:
                number = None if kind is bool else integer_of(item)
                if number is None:
                    return None
                item = number
            if axis >= rank:
                is_huge = not shape and len(index) == 1 and abs(item) >> 63
                raise IndexError(_INVALID) if is_huge else _too_many(rank, index)
            extent = shape[axis]
            if not -extent <= item < extent:
                raise _out_of_bounds(item, axis, shape, index)
            offset += (item + extent if item < 0 else item) * strides[axis]
            axis += 1
    if axis < rank:
        is_element = False
        new_shape.extend(shape[axis:])
        new_strides.extend(strides[axis:])
    if len(new_shape) > MOST_AXES:
        raise IndexError(
            f"number of dimensions must be within [0, {MOST_AXES}], indexing result would have "
            f"{len(new_shape)}"
        )
    return tuple(new_shape), offset, tuple(new_strides), is_element


def _is_integer(item: Any) -> bool:
    """Whether an index item stands for one integer; arrays, lists and masks do not."""
    if isinstance(item, Handle):
        return type(item) in handles.SCALARS and item._dtype.kind in "iu"
    if isinstance(item, np.ndarray | list | tuple | np.bool_ | str | float):
        return False
    return hasattr(type(item), "__index__")


def integer_of(item: Any) -> int | None:
    """The integer that an index item stands for; None where it stands for none, as an array of
    another library, of which only some are integers."""
    if not _is_integer(item):
        return None
    try:
        return as_index(item)
    except Exception:  # noqa: BLE001 (NumPy, too, looks for an array then)
        return None


def _out_of_bounds(
    item: int, axis: int, shape: tuple[int, ...], index: tuple[Any, ...]
) -> IndexError:
    """NumPy counts the indices before it uses one, and knows no numbers that fit in no register."""
    if sum(1 for other in index if other is not None and other is not Ellipsis) > len(shape):
        return _too_many(len(shape), index)
    if abs(item) >> 63:
        return IndexError(_INVALID)
    return IndexError(f"index {item} is out of bounds for axis {axis} with size {shape[axis]}")


def _too_many(rank: int, index: tuple[Any, ...]) -> IndexError:
    given = sum(1 for item in index if item is not None and item is not Ellipsis)
    return IndexError(
        f"too many indices for array: array is {rank}-dimensional, but {given} were indexed"
    )


def check_kinds(index: Any) -> None:
    """Raise what NumPy raises for indices of the wrong kind, before anything is computed."""
    for item in index if isinstance(index, tuple) else (index,):
        if isinstance(item, str | float | complex | np.floating | np.complexfloating):
            raise IndexError(_INVALID)
