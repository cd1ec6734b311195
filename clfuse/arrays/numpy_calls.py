"""Calls of NumPy at the user's call: where NumPy warns, the warning names the user's line.

A call is tried first in a context in which what NumPy would warn of is an error. Only where there
is one, NumPy is asked again, with its warnings caught and given anew (`interpret.warning_of`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from typing import Any, Final

from numpy._core.umath import _extobj_contextvar, _make_extobj

from clfuse.interpreter.interpret import warning_of

from . import errstate

__all__ = ["call_at_user_line", "is_attempt", "name_in", "raising"]

_RAISING: Final = _make_extobj(divide="raise", over="raise", invalid="raise", under="ignore")
"""Errors of which NumPy would warn, to be raised."""


def raising() -> Context:
    """A context in which they are: to enter it takes a twentieth of `numpy.errstate`."""
    context = Context()
    context.run(_extobj_contextvar.set, _RAISING)
    return context


def is_attempt() -> bool:
    """Whether what would be warned of here is an error."""
    return _extobj_contextvar.get() is _RAISING


def name_in(error: FloatingPointError) -> str:
    """What the user has called, by the message of NumPy's error."""
    return str(error).rpartition(" encountered in ")[2]


def call_at_user_line(apply: Callable[..., Any], *args: Any) -> Any:
    """What `apply` gives; warnings name the user's line."""
    if errstate.mode[0] is not errstate.LOUD:
        return apply(*args)
    try:
        return raising().run(apply, *args)
    except FloatingPointError as error:
        called = name_in(error)
    with warning_of(called):
        return apply(*args)
