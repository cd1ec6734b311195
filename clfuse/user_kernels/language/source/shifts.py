"""Strength reduction: integers divided by known powers of two are shifted, remainders masked.

Compilers do that for single numbers. For vectors they do not: ours divide by way of floats
(``kernels/lib/quotients.cl``), and the number of steps of Collatz' sequences took 1.7 times as
long.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from .tree import Apply, Const
from .types import operation, strong

_SHIFTED: Final = {"floor_divide": "right_shift", "remainder": "bitwise_and"}


def shift_division(node: Apply) -> Apply:
    """The same value without a division, where there is one by a power of two.

    Towards minus infinity, as NumPy divides, so that it is true of negative numbers too.
    """
    name = _SHIFTED.get(node.op.name)
    divisor = node.args[-1]
    if name is None or not isinstance(divisor, Const) or type(divisor.value) is not int:
        return node
    dtype = node.op.dtype
    assert dtype is not None
    size = divisor.value
    if dtype.kind not in "iu" or size <= 0 or size & (size - 1) or size > np.iinfo(dtype).max:
        return node
    found = operation(name, (strong(dtype), strong(dtype)))
    assert found is not None
    count = size.bit_length() - 1 if name == "right_shift" else size - 1
    return Apply(
        node.type, node.line, found.op, [node.args[0], Const(strong(dtype), node.line, count)]
    )
