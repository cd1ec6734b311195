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
