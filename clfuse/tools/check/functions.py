"""The rounded functions, and how each is called.

They are the rows of the op tables that promise so many units in the last place, and NumPy's
functions that are composed of them. A new row of these tables is a new function here.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

import numpy as np

from clfuse.dataclass import frozen
from clfuse.interop.scipy_ufuncs import NAMES as OF_SCIPY
from clfuse.ops.table import UFUNCS

__all__ = ["COMPLEXES", "FLOATS", "FUNCTIONS", "Function"]

FLOATS: Final = ("float16", "float32", "float64")
COMPLEXES: Final = ("complex64", "complex128")

COMPOSED: Final = ("sinc",)
"""NumPy's functions of one float that are made of rounded ones, and recorded as kernels."""

OF_KERNELS: Final = ("gamma", "gammaln")


@frozen
class Function:
    """One function with one dtype.

    name: NumPy's, or SciPy's.
    arity: how many operands it has, all of one dtype.
    dtype: theirs.
    limit: how many units in the last place its row promises; of what is composed: those of its
        parts.
    """

    name: str
    arity: int
    dtype: str
    limit: int

    @property
    def is_complex(self) -> bool:
        return self.dtype in COMPLEXES

    @property
    def label(self) -> str:
        return f"{self.name}({self.dtype})"

    def calculate(self, xp: ModuleType, operands: tuple[Any, ...]) -> Any:
        """The function under NumPy (also of longdouble) or clfuse, on NumPy's arrays; None where it
        has none."""
        arrays = [xp.asarray(operand) for operand in operands]
        if self.name in OF_KERNELS:
            return None if xp is np else _of_kernel(self.name, arrays[0])
        if self.name in OF_SCIPY and arrays[0].dtype == np.longdouble:
            return None
        function = _function(xp, self.name)
        return None if function is None else function(*arrays)


def _function(xp: ModuleType, name: str) -> Callable[..., Any] | None:
    if name not in OF_SCIPY:
        found: Callable[..., Any] = getattr(xp, name)
        return found
    try:
        from scipy import special
    except ModuleNotFoundError:
        return None
    function: Callable[..., Any] = getattr(special, name)
    return function


def _of_kernel(name: str, x: Any) -> Any:
    """The function as it is in kernels: ``math.gamma``, ``math.lgamma``."""
    import clfuse

    global _kernels
    if not _kernels:
        import math

        @clfuse.kernel
        def gamma(i, x, y):  # type: ignore[no-untyped-def]
            y[i] = math.gamma(x[i])

        @clfuse.kernel
        def gammaln(i, x, y):  # type: ignore[no-untyped-def]
            y[i] = math.lgamma(x[i])

        _kernels = {"gamma": gamma, "gammaln": gammaln}
    y = clfuse.empty_like(x)
    _kernels[name](len(x), x, y)
    return y


_kernels: dict[str, Any] = {}


def _has_loop(name: str, letter: str) -> bool:
    return any(set(loop.replace("->", "")) <= {letter, "?", letter.lower()} and
               loop.startswith(letter) for loop in getattr(np, name).types)


def _functions() -> tuple[Function, ...]:
    found = []
    for row in UFUNCS.values():
        if not row.ulp and not row.complex_ulp:
            continue
        for dtype in (*FLOATS, *COMPLEXES):
            limit = row.complex_ulp if dtype in COMPLEXES else row.ulp
            if row.key((dtype,) * row.arity) is None or not limit:
                continue
            if hasattr(np, row.name) and not _has_loop(row.name, np.dtype(dtype).char):
                continue
            # Kernels calculate them, and SciPy has no float16 of its own.
            if not hasattr(np, row.name) and dtype == "float16":
                continue
            found.append(Function(row.name, row.arity, dtype, limit))
    found += [Function(name, 1, dtype, 4) for name in COMPOSED for dtype in FLOATS]
    return tuple(found)


FUNCTIONS: Final = _functions()
