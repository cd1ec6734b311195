"""Names of the components of a vector, as in ``v.s7``: of elements, which are two where they are
complex."""

from __future__ import annotations

from typing import Final

import numpy as np

LANES: Final = "0123456789abcdef"
"""A letter for each component of the widest vector."""


def components(dtype: np.dtype, number: int) -> str:
    """The components that hold an element of a vector."""
    return LANES[2 * number : 2 * number + 2] if dtype.kind == "c" else LANES[number]


def turned(dtype: np.dtype, width: int) -> str:
    """The components of a vector's elements from the last to the first."""
    return "".join([components(dtype, number) for number in reversed(range(width))])
