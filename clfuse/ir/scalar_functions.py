"""Scalar functions that users write in OpenCL C, as element-wise operations that are fused.

A `Function` takes the place of the op table's row in an operation; `codegen.lines.expressions`
writes its calls, in vectors lane by lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from clfuse.dataclass import frozen
from clfuse.dtypes import register_type

from .nodes import Kind, Node, Op

FUNCTIONS_KEPT: Final = 1024
"""Functions that are one operation each; one that was forgotten is another operation the next time.
"""


@frozen
class Function:
    """A function in OpenCL C; equal functions have equal text.

    name: an identifier that belongs to this text alone, in every kernel that it may come into.
    text: what defines it: ``static inline``, of `register_type` parameters.
    dtypes: of the parameters; no bool. A half is a float here, rounded to a half before and after.
    dtype: of the result; no bool.
    weight: what a call costs, in additions.
    preamble: what stands above it, once in a source that needs it; all names in it are its own.
    """

    name: str
    text: str
    dtypes: tuple[np.dtype, ...]
    dtype: np.dtype
    weight: float
    preamble: str = ""

    @property
    def output(self) -> str:
        """Not empty: no ufunc of NumPy's does this."""
        return "written"

    def lanes(self, width: int) -> str:
        """What defines the function for vectors, `name` with ``_v`` and the width: lane by lane.

        Needs `text` above it.
        """
        kinds = [f"{register_type(dtype)}{width}" for dtype in self.dtypes]
        parameters = ", ".join([f"const {kind} p{n}" for n, kind in enumerate(kinds)])
        calls = [
            f"{self.name}({', '.join([f'p{n}.s{lane:x}' for n in range(len(kinds))])})"
            for lane in range(width)
        ]
        kind = f"{register_type(self.dtype)}{width}"
        head = f"static inline {kind} {self.name}_v{width}({parameters})"
        return f"{head}\n{{\n    return ({kind})({', '.join(calls)});\n}}"


@lru_cache(FUNCTIONS_KEPT)
def operation(name: str, function: Function) -> Op:
    """The element-wise operation that a function is; `name` is for people."""
    op = Op(Kind.MAP, name, None, function.dtypes, function.dtype)
    op.row = function
    op.weight = function.weight
    return op


def call_function(
    name: str, function: Function, inputs: Sequence[Node], shape: tuple[int, ...]
) -> Node:
    """`function` of every element; inputs broadcast to `shape` and are cast to its dtypes."""
    return Node(operation(name, function), tuple(inputs), shape, function.dtype)
