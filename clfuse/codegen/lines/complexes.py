"""Vectors of complex numbers: their layout, and the operations that are not one expression.

They lie in registers as in memory, real and imaginary parts in turns, in the lanes of a vector of
real numbers that is twice as long:

    double8    x0 y0 x1 y1 x2 y2 x3 y3        four complex128;  .even are the real parts

So sums, loads and stores are those of real vectors. Functions that have no text for such vectors
(`Ufunc.expressions`, ``"complexes"``) are computed number by number, in a loop over an array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from clfuse.dtypes import mask_type, register_type

__all__ = ["MAX_NUMBERS", "by_numbers", "part_type", "vector_of"]

MAX_NUMBERS: Final = 8
"""Complex numbers of one vector: OpenCL C has at most 16 lanes."""


def part_type(dtype: np.dtype) -> str:
    """The OpenCL C type of a complex number's parts."""
    return "float" if dtype.char == "F" else "double"


def vector_of(dtype: np.dtype, width: int) -> str:
    """The type of a register of `width` complex numbers; ``double2`` is one."""
    return f"{part_type(dtype)}{2 * width}"


def by_numbers(
    name: str, dtypes: Sequence[np.dtype], output: np.dtype, expression: str, width: int
) -> str:
    """A function ``name`` of vectors of complex numbers, which computes one after the other.

    `expression` has ``{0}``, ``{1}``, ... for the operands of one number. Truth values come as
    masks with lanes of the size of a part, and are returned as such.

    >>> dtype = np.dtype("complex128")
    >>> print(by_numbers("each_f", [dtype], dtype, "f({0})", 4)[:47])
    static inline double8 each_f_double8(double8 a)
    """
    part = next(part_type(dtype) for dtype in (*dtypes, output) if dtype.kind == "c")
    mask = mask_type(4 if part == "float" else 8)

    def types(dtype: np.dtype) -> tuple[str, str, str, int]:
        """(vector, element of the array, lane of the vector, lanes)."""
        if dtype.kind == "c":
            lane = part_type(dtype)
            return f"{lane}{2 * width}", f"{lane}2", lane, 2 * width
        lane = mask if dtype.kind == "b" else register_type(dtype)
        return f"{lane}{width}", lane, lane, width

    letters = "abcd"[: len(dtypes)]
    vectors = [types(dtype) for dtype in dtypes]
    result, element, lane, lanes = types(output)
    parameters = ", ".join(f"{v[0]} {letter}" for v, letter in zip(vectors, letters, strict=True))
    lines = [f"static inline {result} {name}_{vectors[0][0]}({parameters}) {{"]
    for (_, each, single, count), letter in zip(vectors, letters, strict=True):
        lines.append(f"{each} {letter}s[{width}];")
        lines.append(f"vstore{count}({letter}, 0, (__private {single} *){letter}s);")
    text = expression.format(*[f"{letter}s[lane]" for letter in letters])
    if output.kind == "b":
        text = f"-(({text}) != 0)"
    lines.append(f"{element} found[{width}];")
    lines.append(f"for (int lane = 0; lane < {width}; lane++) found[lane] = {text};")
    lines.append(f"return vload{lanes}(0, (__private const {lane} *)found); }}")
    return " ".join(lines)
