"""Numbers of a kernel as literals of OpenCL C."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from clfuse.dtypes import register_type


def literal(value: Any, dtype: np.dtype) -> str:
    """A number as OpenCL C, of the register type of `dtype`.

    >>> literal(0.1, np.dtype(np.float32)), literal(-3, np.dtype(np.int8))
    ('((float)(0x1.99999a0000000p-4f))', '((char)(-3L))')
    """
    with np.errstate(all="ignore"):
        # NumPy's types take no NaN or infinity as an integer, its conversions of arrays do.
        is_converted = dtype.kind in "iu" and isinstance(value, float)
        number = np.asarray(value).astype(dtype)[()] if is_converted else dtype.type(value)
    if dtype.kind == "b":
        return str(int(number))
    if dtype.kind == "c":
        part = np.dtype(f"float{4 * dtype.itemsize}")
        return f"({register_type(dtype)})({literal(number.real, part)}, " \
               f"{literal(number.imag, part)})"
    kind = register_type(dtype)
    if dtype.kind in "iu":
        whole = int(number)
        if whole == -(1 << 63):
            return "LONG_MIN"
        return f"(({kind})({whole}{'UL' if dtype.kind == 'u' else 'L'}))"
    real = float(number)
    if math.isnan(real):
        return f"(({kind})(NAN))"
    if math.isinf(real):
        return f"(({kind})({'-' if real < 0 else ''}INFINITY))"
    return f"(({kind})({real.hex()}{'' if kind == 'double' else 'f'}))"
