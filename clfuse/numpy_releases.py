"""Differences between NumPy's releases, found by calls of the installed one when this is imported.

Where no call shows the difference, `at_least` compares the number of the release. A name that only
some releases have is looked up with ``hasattr`` where it is used.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.lib.stride_tricks import as_strided


def at_least(release: str) -> bool:
    """Whether the installed NumPy is of this release or of a later one."""
    return bool(np.lib.NumpyVersion(np.__version__) >= release)


def _warning(call: Callable[[], object], category: type[Warning] = DeprecationWarning) -> str:
    """The text of the first such warning of a call; empty where there is none, or an error."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            call()
        except (TypeError, ValueError):
            return ""
    texts = [str(one.message) for one in seen if issubclass(one.category, category)]
    return texts[0] if texts else ""


def _works(call: Callable[[], object]) -> bool:
    """Whether there is no error, whatever it warns of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _takes(call)


def _takes(call: Callable[[], object]) -> bool:
    """Whether the arguments of a call are parameters there."""
    try:
        call()
    except TypeError:
        return False
    return True


def _is_refused(call: Callable[[], object]) -> bool:
    """Whether a Python integer that the dtype does not hold is an error there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
        except OverflowError:
            return True
    return False


def _error_of_at_read_only() -> str:
    """What `ufunc.at` says of a read-only array; empty where it writes to it."""
    target = np.zeros(1)
    target.flags.writeable = False
    try:
        np.add.at(target, [0], 1.0)
    except ValueError as error:
        return str(error)
    return ""


def _sets(attribute: str, value: Any) -> Callable[[], object]:
    return lambda: setattr(np.zeros(1, np.uint8), attribute, value)


DEPRECATED_SETTERS: Final = {
    name: text
    for name, value in (("shape", (1,)), ("strides", (1,)), ("dtype", np.int8))
    if (text := _warning(_sets(name, value)))
}
"""Attributes that may be set, though they should not: what NumPy says of it (2.4, 2.5)."""

DEPRECATED_FUNCTIONS: Final = {
    function: text
    for function, argument in ((np.fix, 0.0),)
    if (text := _warning(lambda: function(argument)))  # noqa: B023 (it is called here)
}
"""Functions that are recorded, though they should not be called: what NumPy says of it (2.5)."""

EMPTY_IS_FALSE: Final = _warning(lambda: bool(np.zeros(0)))
"""What NumPy says of the truth of an empty array; an error since 2.2, where this is empty."""

ONE_IS_A_NUMBER: Final = _warning(lambda: float(np.zeros(1)))
"""What NumPy says of an array of one element as a number; an error since 2.4, where it has axes."""

FLAT_BY_FLOATS: Final = _warning(lambda: np.zeros(1).flat[[0.5]])
"""What NumPy says of floats that index ``x.flat`` (2.4); before it took lists of them silently."""

FLAT_BY_BOOL: Final = _warning(lambda: np.zeros(1).flat[True])
"""What NumPy says of a bool that indexes ``x.flat`` (2.4)."""

POWERS_OF_SCALARS: Final = (np.ones(1, np.float32) ** np.float64(2)).dtype == np.float32
"""Whether scalars of NumPy's as exponents select squares and roots (2.0), as Python's do."""

HAS_DLPACK_1: Final = _takes(lambda: np.zeros(1).__dlpack__(max_version=(1, 0)))
"""Whether ``__dlpack__`` and `from_dlpack` know version 1.0 of the protocol (2.1)."""

MEAN_OF_NOTHING: Final = _warning(lambda: np.mean(np.zeros(0)), RuntimeWarning)
"""What NumPy says of a mean of no elements."""

UNINITIALIZED: Final = _warning(
    lambda: np.negative(np.zeros(1), where=np.array([True])), UserWarning
)
"""What NumPy says of ``where`` without ``out``; older releases say nothing."""

PADS_BY_AXIS: Final = _takes(lambda: np.pad(np.zeros(1), {0: 1}))
"""Whether `pad` takes a dict of widths."""

_ONE_TURN: Final[Any] = np.array([1])
TURNS_BY_VECTORS: Final = _works(lambda: np.rot90(np.zeros((1, 1)), _ONE_TURN))
"""Whether `rot90` takes the number of turns in an array that has axes; an error since 2.5."""

SORTS_DESCENDING: Final = "descending" in inspect.signature(np.sort).parameters
"""Whether `sort` and `argsort`, functions and methods, take ``descending`` (2.5)."""

CHECKS_STRIDES: Final = "check_bounds" in inspect.signature(as_strided).parameters
"""Whether `as_strided` takes ``check_bounds`` (2.5)."""

CHECKS_CHOSEN: Final = _is_refused(lambda: np.where(np.True_, np.uint8(0), 300))
"""Whether `where` refuses a Python integer that the dtype does not hold (2.5); it wraps before."""

AT_READ_ONLY: Final = _error_of_at_read_only()
"""What `ufunc.at` says of a read-only array (2.5). Before, it writes to it if index arrays alone
say where."""

CHECKS_PARTS: Final = _is_refused(_sets("real", 300))
"""Whether ``x.real = 300`` does so (2.5). Before it made an array of the number first."""

CHECKS_BOUNDS: Final = _is_refused(lambda: np.clip(np.zeros(1, np.uint8), 0, 300))
"""Whether the bounds of `clip` must be held by its dtype (2.0); they need not be later."""

COUNTS_UNSIGNED: Final = _works(lambda: np.bincount(np.zeros(1, np.uint64)))
"""Whether `bincount` takes uint64; older releases refuse it."""

_HALF_A_PLACE: Final[Any] = 1.5
ROLLS_BY_FLOATS: Final = _works(lambda: np.roll(np.zeros(2), _HALF_A_PLACE))
"""Whether `roll` cuts distances that are floats; an error in older releases."""

HALVES_STEP_TO_ZEROS: Final = bool(np.signbit(np.nextafter(np.float16(0), np.float16(-0.0))))
"""Whether `nextafter` of equal halves is the second one (2.5): zeros have signs."""
