"""Overrides: third-party `__array_ufunc__` and `__array_function__`, called with our functions.

NumPy calls these methods with its own ufuncs and functions. A program with clfuse in NumPy's place
knows ours by their names, and compares ``ufunc is np.multiply``. So the methods of a class whose
module knows clfuse are wrapped, and the wrapper passes our functions. Classes of other packages,
which know NumPy, are left alone.

What nobody has to be asked about is here, too: arguments of which NumPy makes what it does, as they
are.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import numpy as np

from clfuse.arrays import handle as handles
from clfuse.arrays.conversion import NotNative
from clfuse.arrays.handle import Handle

from .registry import BY_NUMPY, HOSTED, NATIVE

METHODS: Final = ("__array_ufunc__", "__array_function__")

ANSWERS_ITSELF: Final = "the argument's class answers for ufuncs itself"
"""Why a call is left to NumPy, which asks the class."""

_told: Final[weakref.WeakSet[type]] = weakref.WeakSet()


def tell(kind: type) -> None:
    """Let the methods of `kind` be given our functions, if they were written for them."""
    if kind in _told:
        return
    _told.add(kind)
    for name in METHODS:
        owner = next((base for base in kind.__mro__ if name in vars(base)), None)
        method = vars(owner)[name] if owner is not None else None
        if isinstance(method, types.FunctionType) and _knows_ours(method):
            setattr(owner, name, _asked(method))


def answers_itself(value: Any) -> bool:
    """Whether `value` is no array of ours or NumPy's and has an `__array_ufunc__`."""
    if value is None or isinstance(value, Handle | np.ndarray):
        return False
    kind = type(value)
    if not hasattr(kind, "__array_ufunc__"):
        return False
    tell(kind)
    return True


WRAPS_RESULTS: Final = "the argument's class makes objects of its own of ufuncs' results"


def wraps_results(value: Any) -> bool:
    """Whether `value`, which is no array and answers for no ufunc, has an `__array_wrap__`:
    NumPy's ufuncs hand it their results, as to a tensor of PyTorch's."""
    if isinstance(value, Handle | np.ndarray | np.generic):
        return False
    return hasattr(type(value), "__array_wrap__")


def is_for_numpy(value: Any) -> bool:
    """Whether a ufunc or its methods are NumPy's where `value` is an operand."""
    return answers_itself(value) or wraps_results(value)


class AnswersItself(Exception):
    """Internal: an operand has an `__array_ufunc__`: NumPy finds out who answers."""


def refuse_foreign(operand: Any) -> None:
    """Raise for an operand of a ufunc that leaves the call to NumPy: `AnswersItself`, else
    `NotNative`, where arrays of ours become NumPy's."""
    if answers_itself(operand):
        raise AnswersItself
    if wraps_results(operand):
        raise NotNative(WRAPS_RESULTS)


def _knows_ours(method: types.FunctionType) -> bool:
    clfuse = sys.modules["clfuse"]
    enclosing = inspect.getclosurevars(method).nonlocals
    return any(
        value is clfuse or type(value) is clfuse.ufunc
        for value in (*method.__globals__.values(), *enclosing.values())
    )


def _asked(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
        return method(self, ours(function), *args, **kwargs)

    return call


def ours(function: Any) -> Any:
    """Our function for NumPy's; itself, where there is none."""
    if isinstance(function, np.ufunc):
        return BY_NUMPY.get(function, function)
    found = NATIVE.get(function)
    return HOSTED.get(function, function) if found is None else found


_back: Final[dict[Any, Any]] = {}


def numpys(function: Any) -> Any:
    """NumPy's function for ours; itself, where it is none of ours."""
    found = getattr(function, "numpy", None)
    if isinstance(found, np.ufunc):
        return found
    if len(_back) < len(NATIVE) + len(HOSTED):
        _back.update({id(made): known for known, made in (*NATIVE.items(), *HOSTED.items())})
    return _back.get(id(function), function)


class Mixin(np.lib.mixins.NDArrayOperatorsMixin):
    """`numpy.lib.mixins.NDArrayOperatorsMixin`, whose classes are told of as they are made."""

    __slots__ = ()
    __module__ = "clfuse.lib.mixins"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        tell(cls)


Mixin.__name__ = Mixin.__qualname__ = "NDArrayOperatorsMixin"


# -- arguments that are not ours ------------------------------------------------------------------


def are_numpys(arguments: Iterable[Any]) -> bool:
    """Whether arguments are NumPy's arrays and numbers, plain values of Python's, or short lists
    and tuples of those: nothing is to be converted, and nothing to be written back."""
    for value in arguments:
        kind = type(value)
        if kind in PLAIN_VALUES or issubclass(kind, np.ndarray):
            continue
        if (kind is not tuple and kind is not list) or len(value) > _MOST_LOOKED_AT:
            return False
        for item in value:
            if type(item) not in PLAIN_VALUES and not issubclass(type(item), np.ndarray):
                return False
    return True


PLAIN_VALUES: Final = frozenset((
    bool, int, float, complex, str, bytes, type, type(None), type(Ellipsis),
    *np.sctypeDict.values(), *{type(np.dtype(char)) for char in np.typecodes["All"]},
)) - handles.SCALARS  # fmt: skip

_MOST_LOOKED_AT: Final = 16
"""Items of a list or tuple."""


def answers_by_method(value: Any, name: str, kwargs: Mapping[str, Any]) -> bool:
    """Whether NumPy's function leaves the call to a method of this argument: of a table, say, with
    labels that an array does not have."""
    kind = type(value)
    if kind in _PLAIN or isinstance(value, Handle | np.ndarray | np.generic):
        return False
    if hasattr(kind, "__array_function__") or isinstance(kwargs.get("out"), Handle):
        return False
    return callable(getattr(kind, name, None)) and hasattr(kind, "__array__")


def is_number(value: Any) -> bool:
    """Whether it is a number of Python's or NumPy's."""
    kind = type(value)
    is_numpys = issubclass(kind, np.number | np.bool_) and kind not in handles.SCALARS
    return kind in _NUMBERS or is_numpys


def no_array(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether no argument is an array or a lazy scalar of ours."""
    return not any(isinstance(item, Handle) for item in (*args, *kwargs.values()))


_NUMBERS: Final = frozenset({bool, int, float, complex})
_PLAIN: Final = frozenset({*_NUMBERS, list, tuple, range, str, bytes, type(None)})
