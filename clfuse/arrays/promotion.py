"""Promotion: the loop that a ufunc call takes, by `numpy.ufunc.resolve_dtypes`; results are cached.

A key has one entry an operand: its dtype, or `int`, `float` or `complex` for a Python scalar, which
NumPy treats as weak (NEP 50). bool is not weak; NumPy scalars and 0-d arrays are not weak either.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from clfuse.dtypes import name_of, needs_fp64
from clfuse.ir import build
from clfuse.ir.nodes import Node, Op, loop
from clfuse.ir.traced_number import TracedNumber, concrete
from clfuse.ops.table import UFUNCS

from .handle import DTYPES, native_dtype

Casting: TypeAlias = Literal["no", "equiv", "safe", "same_kind", "same_value", "unsafe"]
"""What NumPy's argument `casting` may be."""

WEAK: Final = frozenset({int, float, complex})
"""Types of the Python scalars that adapt to the arrays beside them."""

ROWS_OF_OUTPUTS: Final = {
    "divmod": ("floor_divide", "remainder"),
    "modf": ("modf_fraction", "modf_integer"),
    "frexp": ("frexp_mantissa", "frexp_exponent"),
}
"""Ufuncs with several outputs: the row of each."""

_LITTLE: Final = 4096  # remembered constants; more than any program has literals


class Resolution:
    """The dtypes of one loop, and its operations, one an output; `ops` is None if it is not
    native.

    `is_double` says that NumPy's loop has double precision: under ``CLFUSE_FP64=downcast`` it is
    another loop on another device.
    """

    __slots__ = ("inputs", "is_double", "ops", "outputs")

    def __init__(self, function: np.ufunc, dtypes: tuple[np.dtype, ...]) -> None:
        natives = [native for dtype in dtypes if (native := native_dtype(dtype)) is not None]
        self.is_double = any(map(needs_fp64, dtypes))
        self.inputs = tuple(dtypes[: function.nin])
        self.outputs = tuple(dtypes[function.nin :])
        self.ops: tuple[Op, ...] | None = None
        if len(natives) == len(dtypes):
            self.inputs = tuple(natives[: function.nin])
            self.outputs = tuple(natives[function.nin :])
            self.ops = _operations(function.__name__, self.inputs, self.outputs)


def _operations(
    name: str, inputs: tuple[np.dtype, ...], outputs: tuple[np.dtype, ...]
) -> tuple[Op, ...] | None:
    rows = ROWS_OF_OUTPUTS.get(name, (name,))
    if len(rows) != len(outputs):
        return None
    names = [name_of(dtype) for dtype in inputs]
    for row in rows:
        if row not in UFUNCS or UFUNCS[row].key(names) is None:
            return None
    return tuple(loop(row, inputs, output) for row, output in zip(rows, outputs, strict=True))


def is_native(name: str, inputs: tuple[np.dtype, ...]) -> bool:
    """Whether the op tables have the ufunc or internal row `name` for these input dtypes."""
    return name in UFUNCS and UFUNCS[name].key([name_of(dtype) for dtype in inputs]) is not None


def resolve(
    function: np.ufunc,
    keys: tuple[Any, ...],
    outputs: tuple[np.dtype | None, ...] = (None,),
    signature: Any = None,
    casting: Casting = "same_kind",
    scalars: Sequence[Any] = (),
) -> Resolution:
    """The loop that NumPy takes for operands with these keys; raises what NumPy raises.

    `scalars` holds the operands, of which the Python scalars are looked at.

    >>> resolve(np.add, (np.dtype("float32"), float)).outputs
    (dtype('float32'),)
    """
    options = {} if signature is None else {"signature": signature}
    if options or casting != "same_kind":
        # NumPy 2.4 crashes when resolve_dtypes has to name a Python scalar in an error. A call on
        # empty arrays raises the same errors.
        operands = [
            np.empty(0, key) if key not in WEAK else concrete(value)
            for key, value in zip(keys, scalars, strict=True)
        ]
        outs = tuple([None if dtype is None else np.empty(0, dtype) for dtype in outputs])
        function(*operands, out=outs, casting=casting, **options)
        casting = "unsafe"
    dtypes = function.resolve_dtypes((*keys, *outputs), casting=casting, **options)
    return Resolution(function, dtypes)


def weak_kind(value: Any) -> type | None:
    """The key of a Python scalar that adapts to the arrays beside it; None for all else."""
    kind = type(value)
    if kind is TracedNumber:
        return value.kind  # type: ignore[no-any-return]
    return kind if kind in WEAK else None


constants: Final[dict[tuple[np.dtype, Any], Node]] = {}
"""(dtype, value) -> node, of Python's numbers."""


def constant_of(value: Any, dtype: np.dtype) -> Node:
    """A Python scalar as a node of `dtype`; OverflowError as in NumPy when an int does not fit."""
    if type(value) is TracedNumber:
        return value.node(dtype)
    if value.__class__ is complex or value != value or (not value and copysign(1.0, value) < 0):
        # 0.0 and -0.0 are equal keys (also inside a complex), and a NaN is not equal to itself.
        return build.constant(dtype.type(value))
    try:
        return constants[dtype, value]
    except KeyError:
        node = build.constant(dtype.type(value))
        if len(constants) >= _LITTLE:
            constants.clear()
        constants[dtype, value] = node
        return node


COMPARISONS_OF_INTS: Final = {
    # name -> (answer when the int is above the dtype's range, answer when it is below)
    "equal": (False, False),
    "not_equal": (True, True),
    "less": (True, False),
    "less_equal": (True, False),
    "greater": (False, True),
    "greater_equal": (False, True),
}


def comparison_with_unrepresentable(
    name: str, dtype: np.dtype, value: Any, *, scalar_first: bool
) -> Node | None:
    """The answer that needs no comparison: an int beyond the range of an integer dtype; else
    None."""
    answers = COMPARISONS_OF_INTS.get(name)
    if answers is None or dtype.kind not in "iu" or not isinstance(value, int):
        return None
    limits = np.iinfo(dtype)
    if limits.min <= value <= limits.max:
        return None
    above = value > limits.max
    if scalar_first and name not in ("equal", "not_equal"):
        above = not above
    return build.constant(np.bool_(answers[0] if above else answers[1]))


BOOL: Final = DTYPES["bool"]
INT64: Final = DTYPES["int64"]
UINT64: Final = DTYPES["uint64"]
FLOAT16: Final = DTYPES["float16"]
FLOAT32: Final = DTYPES["float32"]
FLOAT64: Final = DTYPES["float64"]
COMPLEX128: Final = DTYPES["complex128"]
