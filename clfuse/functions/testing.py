"""``clfuse.testing``: NumPy's assertions, which look at our arrays on the host.

NumPy's own assertions test for instances of its own class before they compare element by element,
and compare in several steps, of which each would be recorded. To look at a value is no fallback:
nothing is counted.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from clfuse.arrays.conversion import own_array
from clfuse.dispatch.host_call import HostArguments
from clfuse.dispatch.registry import shown

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


def contents() -> dict[str, Any]:
    """What is in the module."""
    assertions = np.testing
    found: dict[str, Any] = {"__doc__": __doc__, "__all__": list(assertions.__all__)}
    for name in dir(assertions):
        if name.startswith("__"):
            continue
        value = getattr(assertions, name)
        is_assertion = name.startswith("assert_") and not name.startswith(_CALLERS)
        path = f"testing.{name}"
        found[name] = shown(seen_on_the_host(value), value, path) if is_assertion else value
    return found
