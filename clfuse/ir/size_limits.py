"""Sizes that no array can have: the errors that NumPy raises at the call, as it allocates there.

What is recorded needs no memory until it is computed. What is folded in the same kernel never needs
any: distances of all pairs may take more than any memory holds. So there are two limits. A shape,
or a number of elements, that a program gives must have an address. What broadcasting gives must be
possible to compute at all.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

MOST_AXES: Final = 64
"""NumPy's NPY_MAXDIMS."""

ADDRESSABLE_NBYTES: Final = 1 << 47
"""By a process, on the processors that there are."""

CONCEIVABLE_NBYTES: Final = 1 << 52
"""A device that moves 10 TB/s takes some minutes for as many."""

COUNTED_NBYTES: Final = int(np.iinfo(np.intp).max)
"""What a view may have, which needs no memory."""


def require_room(
    shape: tuple[int, ...], dtype: np.dtype, most: int = ADDRESSABLE_NBYTES
) -> tuple[int, ...]:
    """`shape`, if an array of it is possible.

    Raises ValueError: NumPy's, for more bytes than an integer counts.
    Raises MemoryError: NumPy's, for more than `most`.

    Examples
    --------
    >>> require_room((2**50,), np.dtype(np.int8))
    Traceback (most recent call last):
    numpy._core._exceptions._ArrayMemoryError: Unable to allocate 1.00 PiB for an array with \
shape (1125899906842624,) and data type int8
    """
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes > most:
        if nbytes > COUNTED_NBYTES:
            raise ValueError(
                "array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum "
                "possible size."
            )
        raise np._core._exceptions._ArrayMemoryError(shape, dtype)  # type: ignore[attr-defined]
    return shape
