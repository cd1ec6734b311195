"""Lists of numbers beside arrays that lie on the host, as NumPy's arrays.

To NumPy a list is an array that is made at the call: as an index, as the value of an assignment, as
an operand. So ``x[[0, 2]] += [1, 2]`` on an array on the host is eager, as it is with arrays in the
places of the lists. While `jit` traces, lists are left alone: they may hold traced numbers.

`_core/eager_creation.pxi` has the same rules in C.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from clfuse.arrays import handle as handles
from clfuse.arrays.host_array import ADDITIONS_A_US, DEFER, NATIVE_DTYPES, SCALARS, host_elements
from clfuse.config import settings
from clfuse.ir import trace


def array_of_sequence(value: Any) -> Any:
    """A list or tuple of numbers, and of arrays on the host, as an array of NumPy's; `DEFER` where
    it is anything else, large, or an error, which the recorded operation raises."""
    found = numbers(value)
    if found is DEFER:
        return DEFER
    try:
        array = np.array(found)
    except (ValueError, TypeError, OverflowError):
        return DEFER
    return array if array.dtype in NATIVE_DTYPES else DEFER


def numbers(value: Any) -> Any:
    """Such a list with NumPy's arrays in place of those of ours, or `DEFER`."""
    if (type(value) is not list and type(value) is not tuple) or trace.active() is not None:
        return DEFER
    found, size = counted(value, settings.host_us * ADDITIONS_A_US)
    return found if size or (value and type(value[0]) is handles.ARRAY) else DEFER


def counted(value: Any, most: float, depth: int = 0) -> tuple[Any, int]:
    """Numbers, nested in lists, with NumPy's arrays for those of ours that lie on the host; and how
    many these are. `DEFER` where there is anything else in it, or more than `most`."""
    kind = type(value)
    if kind in SCALARS:
        return value, 1
    if kind is np.ndarray:
        return (value if value.dtype in NATIVE_DTYPES else DEFER), value.size
    if kind is handles.ARRAY and depth:
        size = max(math.prod(value._shape) - IN_A_LIST, 0)
        return (DEFER if (array := host_elements(value)) is None else array), size
    if (kind is not list and kind is not tuple) or depth > DEEPEST:
        return DEFER, 0
    if len(value) > most and type(value[0]) is not handles.ARRAY:
        return DEFER, 0
    total, items = 0, []
    for item in value:
        found, size = counted(item, most, depth + 1)
        total += size
        if found is DEFER or total > most:
            return DEFER, 0
        items.append(found)
    return items, total


IN_A_LIST: Final = 2500
"""Elements of an array in a list that count nothing: to record it there takes 10 us, as long as
NumPy takes for ten times as many."""

DEEPEST: Final = 8
"""Lists in lists that are looked into here; what contains itself has no end."""
