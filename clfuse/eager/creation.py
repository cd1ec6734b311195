"""Eager creation: small arrays of ``arange``, ``zeros``, ``linspace`` and their kind.

A recorded creation needs no memory: a kernel that reads the array computes what it reads. That
matters where the array is large. NumPy makes a small array sooner than its operation is recorded,
and operations on that array can be eager too (`arrays.host_array`). Beside large arrays it is an
argument of their kernel, of a few hundred bytes.

Creation is eager where the arguments are numbers, dtypes and the like (and lists of numbers, or
arrays that lie on the host), and where the number of elements is known without computing anything.
One element stays a constant of the program, which kernels take without memory. While `jit` traces,
nothing is made here: the trace would replay an upload in the place of the creation.

`_core/eager_creation.pxi` has the same rules in C.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from clfuse._core import loading
from clfuse.arrays import handle as handles
from clfuse.arrays.host_array import (
    ADDITIONS_A_US,
    FEW_ADDITIONS,
    INTEGERS,
    DEFER,
    NATIVE_DTYPES,
    SCALARS,
    affordable,
    host_elements,
    wrap_result,
)
from clfuse.config import settings
from clfuse.ir import trace
from clfuse.runtime.memory.buffers import AS_A_WHOLE, HOST_NBYTES

from .arithmetic import calculate_at_user_line
from .sequences import DEEPEST, IN_A_LIST, counted

__all__ = ["SOURCES", "at_the_call"]

_NAMES: Final = frozenset(
    "M N base copy d dtype endpoint fill_value k n ndmin num order shape subok".split()
)
"""Arguments that may be given by name, where they are plain; others are for those who record."""

def _is_plain(value: Any) -> bool:
    """Whether an argument is one that NumPy only reads a number, a word or a native dtype from."""
    kind = type(value)
    if kind in SCALARS or value is None:
        return True
    if kind is not str and not isinstance(value, np.dtype | type):
        return False
    known = _known.get(value)
    return _is_native(value) if known is None else known


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


# -- how many elements a call asks for: -1 where that is not known ---------------------------------


def _extent(value: Any) -> int:
    return int(value) if type(value) in INTEGERS else -1


def _product(shape: Any) -> int:
    size = 1
    for item in shape if type(shape) is tuple else (shape,):
        extent = _extent(item)
        if extent < 0:
            return -1
        size *= extent
    return size


def _of_shape(args: tuple[Any, ...], named: Mapping[str, Any]) -> int:
    return _product(args[0] if args else named.get("shape"))


def _of_indices(args: tuple[Any, ...], named: Mapping[str, Any]) -> int:
    return _product(args[0]) * len(args[0]) if args and type(args[0]) is tuple else -1


def _of_range(args: tuple[Any, ...], named: Mapping[str, Any]) -> int:
    """Give or take one, where a step is no whole number."""
    if not args or any(type(item) not in _REALS for item in args[:3]):
        return -1
    start, stop = (0, args[0]) if len(args) == 1 else args[:2]
    try:
        return max(math.ceil((float(stop) - float(start)) / float(args[2] if args[2:] else 1)), 0)
    except (ArithmeticError, ValueError):  # the recorded operation raises what is wrong
        return -1


_REALS: Final = frozenset((*INTEGERS, float, np.float64, np.float32))


def _of_count(args: tuple[Any, ...], named: Mapping[str, Any]) -> int:
    if len(args) < 2:
        return -1
    return _extent(args[2] if args[2:] else named.get("num", _USUAL_COUNT))


_USUAL_COUNT: Final = 50
"""What ``linspace`` and its kind give where no number is asked for."""


def _of_matrix(args: tuple[Any, ...], named: Mapping[str, Any]) -> int:
    rows = _extent(args[0]) if args else -1
    columns = args[1] if args[1:] else named.get("M")
    width = rows if columns is None else _extent(columns)
    return -1 if rows < 0 or width < 0 else rows * width


def _of_identity(args: tuple[Any, ...], named: Mapping[str, Any]) -> int:
    rows = _extent(args[0]) if args else -1
    return -1 if rows < 0 else rows * rows


_SIZES: Final[Mapping[str, Callable[[tuple[Any, ...], Mapping[str, Any]], int]]] = {
    "shape": _of_shape,
    "indices": _of_indices,
    "range": _of_range,
    "count": _of_count,
    "matrix": _of_matrix,
    "identity": _of_identity,
}
"""By the rule that `SOURCES` names. Two more, "like" and "values", go by their first argument."""


SOURCES: Final[Mapping[Any, tuple[Callable[..., Any], str]]] = {
    np.zeros: (np.zeros, "shape"),
    np.ones: (np.ones, "shape"),
    np.empty: (np.zeros, "shape"),  # what nobody may rely on is the same every time
    np.full: (np.full, "shape"),
    np.zeros_like: (np.zeros_like, "like"),
    np.ones_like: (np.ones_like, "like"),
    np.empty_like: (np.zeros_like, "like"),
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
        function: (function, "shape")
        for function in (
            np.fft.fftfreq, np.fft.rfftfreq, np.hanning, np.hamming, np.blackman, np.bartlett,
        )
    },
    np.array: (np.array, "values"),
    np.asarray: (np.asarray, "values"),
    np.asanyarray: (np.asanyarray, "values"),
    np.ascontiguousarray: (np.ascontiguousarray, "values"),
}
"""Functions that make arrays: NumPy's that makes them at the call, and how many elements its
arguments ask for."""


def at_the_call(plain: Callable[..., Any], reference: Any) -> Callable[..., Any]:
    """`plain`, which records what NumPy's `reference` makes; small arrays are made at the call."""
    make, rule = SOURCES[reference]
    core = loading.load()
    if core is not None:
        front = core.source(plain, make, rule)
    else:

        def front(*args: Any, **named: Any) -> Any:
            value = DEFER if trace.active() else _made(plain, make, rule, args, named)
            return plain(*args, **named) if value is DEFER else value

    return functools.wraps(plain)(front)


def compiled_names(get_device: Callable[[], Any], device_state: dict[str, Any]) -> dict[str, Any]:
    """What the compiled cases use of this module."""
    return {
        "array": np.array,
        "asanyarray": np.asanyarray,
        "asarray": np.asarray,
        "deepest": DEEPEST,
        "device_state": device_state,
        "in_a_list": IN_A_LIST,
        "kept_nbytes": HOST_NBYTES,
        "scoped_device": device_state["_scoped"],
        "get_device": get_device,
        "integers": INTEGERS,
        "is_native": _is_native,
        "known_words": _known,
        "read_settings": lambda: settings.host_us,
        "source_names": _NAMES,
        "usual_count": _USUAL_COUNT,
    }


def _made(
    plain: Callable[..., Any],
    make: Callable[..., Any],
    rule: str,
    args: tuple[Any, ...],
    named: Mapping[str, Any],
) -> Any:
    """``make(*args, **named)`` as an array of ours, or `DEFER`."""
    for name, value in named.items():
        # An array that may not be copied is looked at where it is.
        if name not in _NAMES or not _is_plain(value) or (name == "copy" and value is False):
            return DEFER
    if not all(map(_is_plain, args[1:])):
        return DEFER
    find = _SIZES.get(rule)
    if find is None:
        is_alone = len(args) == 1 and not named
        given, size = _given(make, rule, args[0], is_alone) if args else (DEFER, 0)
        if given is DEFER or type(given) is handles.ARRAY:
            return given
        args = (given, *args[1:])
    elif args and type(args[0]) is not tuple and not _is_plain(args[0]):
        return DEFER
    else:
        size = find(args, named)
    if size < 0 or size == 1 or not affordable(size):
        return DEFER
    from clfuse.runtime.devices.selection import current_device

    device = current_device()
    if not device.fp64:
        return DEFER
    value = calculate_at_user_line(make, *args, **named)
    if type(value) is not np.ndarray or value.size == 1 or value.dtype not in NATIVE_DTYPES:
        return DEFER
    if value.base is not None or (args and value is args[0]):  # somebody else has that memory
        value = np.array(value)
    if value.nbytes > HOST_NBYTES:
        return plain(value) if rule == "values" else DEFER
    size = value.size
    array = wrap_result(value, device)
    if size > FEW_ADDITIONS and rule not in _WRITTEN_TO:
        array._storage.node.buffer.use = AS_A_WHOLE
    return array


def _given(make: Callable[..., Any], rule: str, value: Any, is_alone: bool) -> tuple[Any, int]:
    """The first argument of a call that goes by it, as NumPy's function gets it, and its elements;
    `DEFER`; or what the call gives, if that is an array of ours. `is_alone`: there is no other."""
    if type(value) is not handles.ARRAY:
        if rule == "like" and type(value) is not np.ndarray:
            return DEFER, 0
        return counted(value, settings.host_us * ADDITIONS_A_US)
    if rule == "values":
        if is_alone and make in (np.asarray, np.asanyarray):
            return value, 0
        # A copy of many elements is made when one of the two is written to.
        if not is_alone or make is not np.array or math.prod(value._shape) > FEW_ADDITIONS:
            return DEFER, 0
    found = host_elements(value)
    return (DEFER, 0) if found is None else (found, found.size)


_WRITTEN_TO: Final = frozenset(("shape", "like"))
"""What these make is there to be written to: in a loop, as a rule."""
