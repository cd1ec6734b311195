"""NumPy's exception for a wrong call: found by making the failed call again in NumPy.

Our functions check what they need, in their own order. NumPy alone knows which of several mistakes
in a call it finds first, and what class of exception it raises. So NumPy makes a call that failed
once more, on stand-ins of the arrays (their shapes and dtypes, filled with ones; a few whole
numbers as they are), and its exception is raised in place of ours. Where NumPy raises nothing
although our exception is about types, NumPy takes such a call, and makes it. Otherwise the values
are wrong, and our exception stays.

Of two exceptions of one class NumPy's has the right words, unless they tell of the values of
arrays, which stand-ins have not. Such words change where stand-ins have other values, so NumPy's
are taken where stand-ins full of zeros have the same.

Calls that succeed pay nothing for it.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from clfuse.arrays import handle as handles
from clfuse.arrays.conversion import host_view
from clfuse.arrays.handle import Handle, is_writeable
from clfuse.errors import ClfuseError, warn_user
from clfuse.ir.trace import tracers

MOST_ELEMENTS: Final = 1 << 16
"""Elements of all stand-ins of a call together: NumPy may have to calculate with them, and must
not take longer than a moment. Where there are more, our own exception stays."""

MOST_NUMBERS: Final = 64
"""Whole numbers of an array that may be axes, or places: the stand-in has the same."""

FLAGS: Final = frozenset(("subok", "copy", "keepdims", "overwrite_input", "shuffle"))
"""Arguments of which some functions ignore the value, as it has no meaning here."""

_USUAL: Final = frozenset((bool, np.bool_, type(None), type(np._NoValue)))


_NO_KEYWORD: Final = re.compile(
    "unexpected keyword argument '(copy|descending|device|max|min|shape)'|"
    "'copy' is an invalid keyword|missing 2 required positional arguments: 'a_min'"
)
"""What NumPy before 2.5 says of parameters that later releases have."""


_CALLED: Final = "numpys_function"
"""An attribute of exceptions: see `note_final`."""


def note_final(error: Exception, function: Callable[..., Any]) -> None:
    """Remember that NumPy's `function` has raised `error` of the program's call itself, on the
    host: `preferred_error` keeps it, as stand-ins have other values."""
    setattr(error, _CALLED, function)


class _Unanswerable(Exception):
    """A call that cannot be made twice, or that is too large."""


class _StandIns:
    """Makes arguments for NumPy, as many as are allowed, with `number` in all arrays."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._left = MOST_ELEMENTS

    def of(self, value: Any) -> Any:
        """`value` with arrays of NumPy's for handles, and copies of NumPy's own."""
        if type(value) in handles.SCALARS:
            return value._dtype.type(self._number)
        if isinstance(value, Handle):
            self._take(value._shape)
            made = np.full(value._shape, self._number, value._dtype)
            if value._dtype.kind in "iu" and made.size <= MOST_NUMBERS and not tracers[0]:
                made[...] = host_view(value)
            made.flags.writeable = is_writeable(value)
            return made
        if isinstance(value, np.ndarray):
            self._take(value.shape)
            return value.copy()
        kind = type(value)
        if kind is tuple or kind is list:
            return kind([self.of(item) for item in value])
        if kind is dict:
            return {key: self.of(item) for key, item in value.items()}
        if kind is slice:
            return slice(self.of(value.start), self.of(value.stop), self.of(value.step))
        is_consumed = hasattr(kind, "__next__") or hasattr(kind, "read")
        if is_consumed or (callable(value) and not isinstance(value, type)):
            raise _Unanswerable
        return value

    def _take(self, shape: tuple[int, ...]) -> None:
        for extent in shape:
            if extent > self._left:
                raise _Unanswerable
        self._left -= int(np.prod(shape, dtype=object))
        if self._left < 0:
            raise _Unanswerable


def numpys(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    number: int = 1,
) -> Exception | None:
    """The exception that NumPy's `function` raises on stand-ins of the arguments, or None.

    `number` is the value of all elements of the stand-ins.

    Raises _Unanswerable: no stand-ins can be made of these.
    """
    stand_ins = _StandIns(number)
    stand_in_args = stand_ins.of(args)
    stand_in_kwargs = stand_ins.of(dict(kwargs))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            function(*stand_in_args, **stand_in_kwargs)
        except Exception as error:  # noqa: BLE001 (NumPy says which it is)
            return error.with_traceback(None)
    return None


def preferred_error(
    error: Exception, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Exception | None:
    """What to raise where our counterpart of NumPy's `function` failed with `error`; None where
    NumPy takes the call, and has to make it."""
    if isinstance(error, ClfuseError | Warning | ImportError):
        return error
    if getattr(error, _CALLED, None) == function:
        return error
    try:
        found = numpys(function, args, kwargs)
    except _Unanswerable:
        return error
    if found is None and type(error) in (TypeError, AttributeError):
        return None
    # A release that lacks a parameter of a later one says nothing of the call.
    if type(found) is TypeError and _NO_KEYWORD.search(str(found)):
        return error
    if found is None:
        return error
    if not isinstance(error, type(found)):
        return found
    if str(error) == str(found):
        return error
    other = numpys(function, args, kwargs, 0)
    return found if type(other) is type(found) and str(other) == str(found) else error


def error_to_raise(
    error: Exception, function: Callable[..., Any], *args: Any, **kwargs: Any
) -> Exception:
    """What to raise where a call fails in any case: `preferred_error`."""
    return preferred_error(error, function, args, kwargs) or error


def refused_by_numpy(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a ufunc of ours which raises what NumPy's would."""
    name = method.__qualname__ = method.__name__
    is_fold = name in ("reduce", "accumulate", "reduceat")

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_fold and self.nin != 2:
            getattr(self.numpy, name)(np.zeros(1))  # NumPy's ValueError, before it looks at more
        try:
            return method(self, *args, **kwargs)
        except Exception as error:
            wrong = error_to_raise(error, getattr(self.numpy, name), *args, **kwargs)
            if wrong is error:
                raise
            raise wrong from None

    return call


def refuse_odd_flags(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> None:
    """Raise what NumPy raises where a flag is none (``keepdims="yes"``)."""
    for name in FLAGS.intersection(kwargs):
        value = kwargs[name]
        if type(value) not in _USUAL:
            try:
                found = numpys(function, args, kwargs)
            except _Unanswerable:
                return
            if found is not None:
                raise found


def deprecate_third() -> None:
    """NumPy's warning of a third operand of `maximum`, where it has one: since 2.4."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        np.maximum(np.ones(1), np.ones(1), np.ones(1))
    for warning in seen:
        warn_user(str(warning.message), warning.category)
