"""Intrinsics: what kernels may call beyond arithmetic.

They are atomics, work-groups, local arrays and random numbers. In a kernel these names are
translated. Called from Python, as `Kernel.python` does, they do the same on NumPy arrays, one
work-item after the other.
"""

from __future__ import annotations

import math
import threading
from typing import Any, Final

import numpy as np

from clfuse.functions.random.bits import SingleDraw
from clfuse.functions.random.bits import philox as philox_counter

_WORD: Final = 0xFFFFFFFFFFFFFFFF


def local_array(shape: Any, dtype: Any = float) -> np.ndarray:
    """An array of a constant size that every iteration has for itself, all zeros.

    Parameters
    ----------
    shape : int or tuple of int
        Numbers that are known when the kernel is called: literals, numbers of its surroundings.
    dtype : dtype

    Examples
    --------
    >>> import clfuse as np
    >>> @np.kernel
    ... def middle(i, x, y):
    ...     three = np.local_array(3)
    ...     for k in range(3):
    ...         three[k] = x[i, k]
    ...     for k in range(2):
    ...         if three[k] > three[k + 1]:
    ...             three[k], three[k + 1] = three[k + 1], three[k]
    ...     y[i] = max(three[0], three[1])
    >>> y = np.zeros(2)
    >>> middle(2, np.array([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]]), y)
    >>> y
    array([2., 5.])
    """
    return np.zeros(shape, dtype)


class _Atomics:
    """``clfuse.atomic.add(x, i, value)``: change an element that others change too.

    Every function returns the element as it was. Elements are int32, uint32, int64 or uint64;
    `add` and `sub` take float32 and float64 too, whose sums depend on the order of the iterations
    in the last digits. Several indices are a tuple: ``add(x, (i, j), value)``.

    Examples
    --------
    >>> import clfuse as np
    >>> @np.kernel
    ... def count(i, x, bins):
    ...     np.atomic.add(bins, int(x[i]), 1)
    >>> bins = np.zeros(3, np.int64)
    >>> count(4, np.array([0.5, 2.5, 2.1, 0.1]), bins)
    >>> bins
    array([2, 0, 2])
    """

    NAMES: Final = ("add", "sub", "min", "max", "and_", "or_", "xor", "exchange")

    @staticmethod
    def _change(array: Any, index: Any, value: Any) -> Any:
        old = array[index]
        array[index] = value
        return old

    def add(self, array: Any, index: Any, value: Any) -> Any:
        """``x[i] += value``."""
        return self._change(array, index, array[index] + value)

    def sub(self, array: Any, index: Any, value: Any) -> Any:
        """``x[i] -= value``."""
        return self._change(array, index, array[index] - value)

    def min(self, array: Any, index: Any, value: Any) -> Any:
        """``x[i] = min(x[i], value)``."""
        return self._change(array, index, min(array[index], value))

    def max(self, array: Any, index: Any, value: Any) -> Any:
        """``x[i] = max(x[i], value)``."""
        return self._change(array, index, max(array[index], value))

    def and_(self, array: Any, index: Any, value: Any) -> Any:
        """``x[i] &= value``."""
        return self._change(array, index, array[index] & value)

    def or_(self, array: Any, index: Any, value: Any) -> Any:
        """``x[i] |= value``."""
        return self._change(array, index, array[index] | value)

    def xor(self, array: Any, index: Any, value: Any) -> Any:
        """``x[i] ^= value``."""
        return self._change(array, index, array[index] ^ value)

    def exchange(self, array: Any, index: Any, value: Any) -> Any:
        """``x[i] = value``."""
        return self._change(array, index, value)

    def compare_exchange(self, array: Any, index: Any, expected: Any, value: Any) -> Any:
        """``x[i] = value``, if it is `expected`."""
        old = array[index]
        if old == expected:
            array[index] = value
        return old


class _Groups(threading.local):
    """Work-groups, for kernels made with ``@clfuse.kernel(group=64)``.

    ``local_id()``, ``group_id()`` and ``size()`` are those of the innermost index; `barrier` waits
    for all work-items of the group, and `local_array` is shared by them. Each thread that runs a
    kernel in plain Python has its own.

    Examples
    --------
    >>> import clfuse as np
    >>> @np.kernel(group=4)
    ... def reverse(i, x, y):
    ...     part = np.group.local_array(4)
    ...     here = np.group.local_id()
    ...     part[here] = x[i]
    ...     np.group.barrier()
    ...     y[i] = part[3 - here]
    >>> y = np.zeros(8)
    >>> reverse(8, np.arange(8.0), y)
    >>> y
    array([3., 2., 1., 0., 7., 6., 5., 4.])
    """

    def __init__(self) -> None:
        self._local = 0
        self._group = 0
        self._size = 1
        self._shared: dict[Any, np.ndarray] = {}

    def local_id(self) -> int:
        """The work-item's place in its group."""
        return self._local

    def group_id(self) -> int:
        """The number of the group."""
        return self._group

    def size(self) -> int:
        """How many work-items a group has."""
        return self._size

    def barrier(self) -> None:
        """Wait until all work-items of the group are here; at the kernel's own level only."""

    def local_array(self, shape: Any, dtype: Any = float, place: Any = None) -> np.ndarray:
        """An array that the work-items of a group share; what it holds at first is undefined."""
        found = self._shared.get(place)
        if found is None:
            found = self._shared[place] = np.zeros(shape, dtype)
        return found


class _Drawn:
    """Bits, where `SingleDraw` expects a generator."""

    def __init__(self, bits: int) -> None:
        self._bits = bits

    def single(self) -> tuple[int, int, int]:
        """They, and none more, of no draw."""
        return self._bits, 0, 0


class _Philox:
    """Random numbers by counter: functions of (seed, counter, stream) and nothing else.

    The same numbers on every device, in every order: Philox4x32-10 (J. K. Salmon et al., SC 2011).

    Examples
    --------
    >>> import clfuse as np
    >>> @np.kernel
    ... def draw(i, seed, x):
    ...     x[i] = np.philox.uniform(seed, i)
    >>> x = np.zeros(1000)
    >>> draw(1000, 1, x)
    >>> bool(x[7] == np.philox.uniform(1, 7)), bool(0.4 < x.mean() < 0.6)
    (True, True)
    """

    NAMES: Final = ("bits", "uniform", "normal")

    def bits(self, seed: int, counter: int, stream: int = 0) -> np.uint64:
        """64 random bits."""
        return np.uint64(philox_counter(int(counter) & _WORD, int(seed) & _WORD,
                                        int(stream) & _WORD)[0])

    def uniform(self, seed: int, counter: int, stream: int = 0) -> np.float64:
        """A float64 in [0, 1)."""
        return np.float64((int(self.bits(seed, counter, stream)) >> 11) * 2.0**-53)

    def normal(self, seed: int, counter: int, stream: int = 0) -> np.float64:
        """A float64 of the standard normal distribution."""
        return SingleDraw(_Drawn(int(self.bits(seed, counter, stream)))).normal()  # type: ignore[arg-type,no-any-return]


atomic: Final = _Atomics()
group: Final = _Groups()
philox: Final = _Philox()


def is_of_group(called: Any, name: str) -> bool:
    """Whether it is `group`'s function of this name."""
    return getattr(called, "__self__", None) is group and called.__name__ == name


MATH: Final[dict[Any, str]] = {
    getattr(math, name): ufunc
    for name, ufunc in {
        "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh",
        "atan": "arctan", "atan2": "arctan2", "atanh": "arctanh", "cbrt": "cbrt", "ceil": "ceil",
        "copysign": "copysign", "cos": "cos", "cosh": "cosh", "degrees": "degrees", "exp": "exp",
        "exp2": "exp2", "expm1": "expm1", "fabs": "fabs", "floor": "floor", "fmod": "fmod",
        "gcd": "gcd", "hypot": "hypot", "isfinite": "isfinite", "isinf": "isinf",
        "isnan": "isnan", "lcm": "lcm", "ldexp": "ldexp", "log": "log", "log10": "log10",
        "log1p": "log1p", "log2": "log2", "nextafter": "nextafter", "pow": "power",
        "radians": "radians", "sin": "sin", "sinh": "sinh", "sqrt": "sqrt", "tan": "tan",
        "tanh": "tanh", "trunc": "trunc",
    }.items()
    if hasattr(math, name)
}
"""Functions of `math` -> the ufunc that they mean in kernels."""

SPECIAL: Final[dict[Any, str]] = {
    math.erf: "erf", math.erfc: "erfc", math.gamma: "gamma", math.lgamma: "gammaln",
}
"""Those for which NumPy has no ufunc -> their rows in the op tables."""

POLES: Final = {"gamma": math.nan, "gammaln": math.inf}
"""What kernels give at negative integers, where Python raises ValueError."""


def special(function: Any) -> Any:
    """One of `SPECIAL` as a kernel has it, in Python: no errors, and NumPy's dtypes."""

    def call(value: Any) -> Any:
        dtype = np.exp(value).dtype if isinstance(value, np.generic) else None
        number = float(value)
        try:
            found = function(number)
        except OverflowError:
            found = math.inf
        except ValueError:
            at_zero = number == 0 and function is math.gamma
            found = math.copysign(math.inf, number) if at_zero else POLES[SPECIAL[function]]
            if number == -math.inf:
                found = math.nan if function is math.gamma else math.inf
        return found if dtype is None else dtype.type(found)

    return call
