"""Types of the values in a kernel, and the loops that operations on them take.

A value is *strong*, of a NumPy dtype, or *weak* as a number of Python's: literals, indices, sizes
and Python numbers that the kernel was called with. Where both meet, the weak one adapts (NEP 50),
so ``0.5 * x[i]`` of a float32 is a float32. Among themselves weak numbers follow Python's rules,
with 64 bits: ``i / 2`` is a float.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np

from clfuse.arrays.handle import DTYPES, downcasts, native_dtype
from clfuse.arrays.promotion import is_native, resolve
from clfuse.dataclass import frozen
from clfuse.ir.nodes import Op, loop

LEAST: Final = -(1 << 63)
MOST: Final = (1 << 63) - 1
"""Integers that have room in an int64: those of Python's that kernels calculate with."""


@frozen
class Type:
    """A dtype, and whether it is that of a Python number."""

    dtype: np.dtype
    weak: bool = False

    def __str__(self) -> str:
        return _WEAK_NAMES[self.dtype.kind] if self.weak else self.dtype.name

    @property
    def kind(self) -> str:
        """NumPy's character: b, i, u, f or c."""
        return self.dtype.kind

    @property
    def key(self) -> Any:
        """What `promotion.resolve` takes: a dtype, or Python's type."""
        return _WEAK_KEYS[self.dtype.kind] if self.weak else self.dtype


_WEAK_NAMES: Final = {"b": "bool", "i": "int", "f": "float", "c": "complex"}
_WEAK_KEYS: Final = {"b": DTYPES["bool"], "i": int, "f": float, "c": complex}

BOOL: Final = Type(DTYPES["bool"])
WEAK_BOOL: Final = Type(DTYPES["bool"], True)
INT: Final = Type(DTYPES["int64"], True)
FLOAT: Final = Type(DTYPES["float64"], True)
COMPLEX: Final = Type(DTYPES["complex128"], True)
_OF_KIND: Final = {"b": WEAK_BOOL, "i": INT, "f": FLOAT, "c": COMPLEX}
_RANK: Final = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


@frozen
class ArrayType:
    """A dtype and a number of axes."""

    dtype: np.dtype
    ndim: int

    def __str__(self) -> str:
        return f"array of {self.dtype.name} with {self.ndim} axes"


array_type: Final = lru_cache(maxsize=256)(ArrayType)
"""The same object for the same dtype and number of axes: every call of a kernel asks for some."""


@lru_cache(maxsize=64)
def strong(dtype: np.dtype) -> Type:
    """The type of elements of an array."""
    return Type(dtype)


def weak_of(value: Any) -> Type:
    """The type of a Python number."""
    if isinstance(value, bool):
        return WEAK_BOOL
    if isinstance(value, int):
        return INT
    return FLOAT if isinstance(value, float) else COMPLEX


class Disagreement(Exception):
    """Two types that a variable, or the branches of an expression, cannot both have."""


@lru_cache(maxsize=1024)
def join(one: Type, other: Type) -> Type:
    """The type of a variable that holds either; weak ones adapt, strong ones must be equal.

    Raises
    ------
    Disagreement

    >>> str(join(INT, strong(np.dtype("float32")))), str(join(INT, FLOAT))
    ('float32', 'float')
    """
    if one == other:
        return one
    if one.weak and other.weak:
        if "b" in (one.kind, other.kind):
            raise Disagreement
        return max(one, other, key=lambda t: _RANK[t.kind])
    if one.weak or other.weak:
        weak, fixed = (one, other) if one.weak else (other, one)
        if weak.kind == fixed.kind == "b":
            return fixed
        if weak.kind != "b" and fixed.kind != "b" and _RANK[weak.kind] <= _RANK[fixed.kind]:
            return fixed
    raise Disagreement


_ARITHMETIC: Final = frozenset(
    "add subtract multiply floor_divide remainder power left_shift right_shift negative positive"
    " absolute".split()
)
"""What Python does with bools as with integers."""

COMPARISONS: Final = frozenset("equal not_equal less less_equal greater greater_equal".split())


@frozen
class Operation:
    """A row of the op tables for operands of certain types.

    op: its `input_dtypes` are what the operands are converted to.
    type: of the result.
    """

    op: Op
    type: Type


def operation(name: str, types: tuple[Type, ...]) -> Operation | None:
    """The loop that NumPy takes for the ufunc `name`; None where the op tables lack it.

    Raises TypeError: NumPy's, where there is no such loop.
    """
    return _operation(name, types, downcasts())


@lru_cache(maxsize=8192)
def _operation(name: str, types: tuple[Type, ...], _downcasts: bool) -> Operation | None:
    all_weak = all(t.weak for t in types)
    if all_weak and name in _ARITHMETIC:
        types = tuple([INT if t.kind == "b" else t for t in types])
    keys = tuple([t.dtype if all_weak else t.key for t in types])
    if name in COMPARISONS and not all_weak:
        # An index beside small integers: Python's int may be larger than these can be.
        keys = tuple([
            DTYPES["int64"] if key is int and any(t.kind in "iu" for t in types if not t.weak)
            else key for key in keys
        ])
    found = resolve(getattr(np, name), keys)
    if found.ops is None or len(found.ops) != 1:
        return None
    (op,) = found.ops
    assert op.dtype is not None
    if all_weak and op.dtype.kind in _OF_KIND:
        return Operation(op, _OF_KIND[op.dtype.kind])
    return Operation(op, strong(op.dtype))


@lru_cache(maxsize=256)
def row(name: str, inputs: tuple[np.dtype, ...], output: np.dtype) -> Op:
    """An internal row of the op tables."""
    if not is_native(name, inputs):
        raise Disagreement
    return loop(name, inputs, output)


def element_type(dtype: Any) -> np.dtype | None:
    """The native dtype that ``np.float32``, ``"float32"`` or ``float`` mean; None for others."""
    try:
        return native_dtype(np.dtype(dtype))
    except TypeError:
        return None
