"""``clfuse.testing``: NumPy's assertions, which look at our arrays on the host; for `namespace`.

NumPy's own ask for instances of its own class before they compare element by element, and compare
in several steps of which each would be recorded. Looking at a value is no fallback: nothing is
counted.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from .conversion import own_array
from .fallback import HostArguments

_CALLERS = ("assert_raises", "assert_warns", "assert_no_warnings", "assert_no_gc_cycles")
"""Assertions about what a function does, whose arguments are that function's."""


def seen_on_the_host(assertion: Callable[..., Any]) -> Callable[..., Any]:
    """`assertion` with arrays of NumPy's in place of ours, also inside lists, tuples and dicts."""

    @functools.wraps(assertion)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        arguments = HostArguments()

        def to_host(value: Any) -> Any:
            return arguments.to_host(own_array(value))

        return assertion(
            *map(to_host, args), **{key: to_host(value) for key, value in kwargs.items()}
        )

    return call


class Assertions(types.ModuleType):
    """The module, filled when it is first looked at: NumPy's own takes a tenth of what clfuse takes
    to import."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        assertions = np.testing
        found = getattr(assertions, name)
        for known in dir(assertions):
            value = getattr(assertions, known)
            is_assertion = known.startswith("assert_") and not known.startswith(_CALLERS)
            self.__dict__.setdefault(known, seen_on_the_host(value) if is_assertion else value)
        return self.__dict__.get(name, found)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(np.testing)})


def build_namespace() -> types.ModuleType:
    """The module."""
    return Assertions("clfuse.testing", "NumPy's assertions, which look at our arrays.")
