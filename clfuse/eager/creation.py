"""Eager creation: small arrays of ``arange``, ``zeros``, ``linspace`` and their kind.

A recorded creation needs no memory: a kernel that reads the array computes what it reads. That
matters where the array is large. NumPy makes a small array sooner than its operation is recorded,
and operations on that array can be eager too (`arrays.host_array`). Beside large arrays it is an
argument of their kernel, of a few hundred bytes.

Creation is eager where the arguments are numbers, dtypes and the like (and lists of numbers, or
arrays that lie on the host), and where the number of elements is known without computing anything.
One number is a constant again for what is recorded with it. While `jit` traces, nothing is made
here: the trace would replay an upload in the place of the creation.

The functions are in a table here, the rules in ``_core/eager_creation.pxi``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from clfuse.arrays.host_array import INTEGERS, NATIVE_DTYPES
from clfuse.config import settings
from clfuse.runtime.devices import selection
from clfuse.runtime.memory.buffers import HOST_NBYTES

__all__ = ["SOURCES", "compiled_names"]


def _blank_like(*args: Any, **kwargs: Any) -> Any:
    """``empty_like(...)`` with zeros in it: NumPy's `zeros_like` takes three times as long."""
    made = np.empty_like(*args, **kwargs)
    made.fill(0)
    return made


SOURCES: Final[Mapping[Any, tuple[Callable[..., Any], str]]] = {
    np.zeros: (np.zeros, "shape"),
    np.ones: (np.ones, "shape"),
    np.empty: (np.zeros, "shape"),  # what nobody may rely on is the same every time
    np.full: (np.full, "shape"),
    np.zeros_like: (np.zeros_like, "like"),
    np.ones_like: (np.ones_like, "like"),
    np.empty_like: (_blank_like, "like"),
    np.full_like: (np.full_like, "like"),
    np.arange: (np.arange, "range"),
    np.linspace: (np.linspace, "count"),
    np.logspace: (np.logspace, "count"),
    np.geomspace: (np.geomspace, "count"),
    np.indices: (np.indices, "indices"),
    np.eye: (np.eye, "matrix"),
    np.tri: (np.tri, "matrix"),
    np.identity: (np.identity, "identity"),
    **{
        window: (window, "shape")
        for window in (np.bartlett, np.blackman, np.hamming, np.hanning, np.kaiser)
    },
    np.diag_indices: (np.diag_indices, "shape"),
    **{function: (function, "triangle") for function in (np.tril_indices, np.triu_indices)},
    np.fft.fftfreq: (np.fft.fftfreq, "shape"),
    np.fft.rfftfreq: (np.fft.rfftfreq, "shape"),
    np.array: (np.array, "values"),
    np.asarray: (np.asarray, "values"),
    np.asanyarray: (np.asanyarray, "values"),
    np.ascontiguousarray: (np.ascontiguousarray, "values"),
}
"""Functions that make arrays: NumPy's that makes them at the call, and how many elements its
arguments ask for."""

_NAMES: Final = frozenset(
    "M N base copy d dtype endpoint fill_value k m n ndmin num order shape start step stop"
    " subok".split()
)
"""Arguments that may be given by name, where they are plain; others are for those who record."""

_USUAL_COUNT: Final = 50
"""What ``linspace`` and its kind give where no number is asked for."""

_IN_A_LIST: Final = 2500
"""Elements of an array in a list that count nothing: to record it there takes 10 us, as long as
NumPy takes for ten times as many."""

_DEEPEST: Final = 8
"""Lists in lists that are looked into; what contains itself has no end."""

_known: Final[dict[Any, bool]] = {}
"""Words, dtypes and classes that were arguments -> whether arrays of that dtype are ours. What is
no dtype, such as an order, counts as one: NumPy says what it is."""

_MOST_KNOWN: Final = 256
"""Entries of `_known`; a program uses a few."""


def _is_native(value: Any) -> bool:
    try:
        with warnings.catch_warnings():  # NumPy has something to say of some words
            warnings.simplefilter("ignore")
            found = np.dtype(value) in NATIVE_DTYPES
    except (TypeError, ValueError):
        found = True
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known[value] = found
    return found


def compiled_names() -> dict[str, Any]:
    """What ``_core/eager_creation.pxi`` uses of clfuse besides."""
    return {
        "array": np.array,
        "asanyarray": np.asanyarray,
        "asarray": np.asarray,
        "deepest": _DEEPEST,
        "device_state": vars(selection),
        "empty": np.empty,
        "get_device": selection.current_device,
        "in_a_list": _IN_A_LIST,
        "int64": np.dtype(np.int64),
        "integers": INTEGERS,
        "is_native": _is_native,
        "kept_nbytes": HOST_NBYTES,
        "known_words": _known,
        "read_settings": lambda: settings.host_us,
        "scoped_device": selection._scoped,
        "source_names": _NAMES,
        "usual_count": _USUAL_COUNT,
    }
