"""The registry: tables that lead from NumPy's functions and ufuncs to ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

NATIVE: Final[dict[Any, Callable[..., Any]]] = {}
"""NumPy's function -> ours, which records it."""

OTHERWISE: Final[dict[Any, Callable[..., Any]]] = {}
"""NumPy's function -> what computes the calls that ours leaves to NumPy, if not the host."""

HOSTED: Final[dict[Any, Callable[..., Any]]] = {}
"""NumPy's function -> what runs it on the host, of those that have none of ours."""

AT_CALL: Final[set[Any]] = set()
"""Functions of NumPy's among them that are never recorded: see `host_call.at_call`."""

UFUNCS: Final[dict[str, Any]] = {}
"""Every public ufunc of NumPy's, by its own name."""

BY_NUMPY: Final[dict[np.ufunc, Any]] = {}
"""NumPy's ufunc -> ours."""


def shown(function: Any, reference: Any, path: str) -> Any:
    """`function`, which says of itself that it is below clfuse where `reference` is below NumPy;
    where that names a private module, as a program finds it (`path`, below ``numpy``).

    Functions are pickled by that, and classes with ``__array_function__`` look for a module of
    their own by it.
    """
    module = getattr(reference, "__module__", None) or "numpy"  # a ufunc's, in some releases
    if module.split(".")[0] == "numpy" and function.__module__ != "clfuse":
        folder = f".{path}".rpartition(".")[0] if "._" in module else module.removeprefix("numpy")
        function.__module__ = f"clfuse{folder}"
        if function.__name__[0] == "_":
            function.__name__ = reference.__name__
        function.__qualname__ = function.__name__
    return function
