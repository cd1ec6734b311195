"""Functions that Numba compiles, beside our arrays.

A compiled function reads the memory of NumPy's arrays and no other, and knows NumPy's functions by
identity. So it gets such arrays in the place of ours, in memory that they share, for it may write
to them; and where its source names clfuse, as in a program under ``python -m clfuse run``, Numba
finds NumPy. What it returns is NumPy's.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from clfuse.arrays import handle as handles
from clfuse.arrays.handle import Handle

__all__ = ["of_numpy", "patch"]

Turn = Callable[[Any], Any]
"""What NumPy's arrays and numbers stand in the place of ours."""
Patch = Callable[[types.ModuleType, Turn], None]


def of_numpy(value: Any, argument: Turn) -> Any:
    """What stands in NumPy where `value` stands in clfuse; of arrays and all else what a call is
    given as its `argument`."""
    if isinstance(value, types.ModuleType):
        name = value.__name__
        return sys.modules.get(_below_numpy(name), value) if _is_ours(name) else value
    module = getattr(value, "__module__", None)
    if not isinstance(module, str) or not _is_ours(module) or isinstance(value, Handle):
        return argument(value)
    name = getattr(value, "__name__", "")
    home = sys.modules.get(_below_numpy(module))
    for place in (home, np, np.random):
        found = getattr(place, name, None)
        if found is not None:
            return found
    return value


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] == "clfuse"


def _below_numpy(name: str) -> str:
    return "numpy" + name.removeprefix("clfuse")


# -- what is patched ------------------------------------------------------------------------------


def _with_arguments(kind: Any, argument: Turn) -> None:
    """Have calls of a class's objects take ours."""
    plain = kind.__call__

    @functools.wraps(plain)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        for value in args:
            if isinstance(value, _LOOKED_INTO):
                args = tuple([argument(value) for value in args])
                break
        if kwargs:
            kwargs = {name: argument(value) for name, value in kwargs.items()}
        return plain(self, *args, **kwargs)

    kind.__call__ = call


_LOOKED_INTO: Final = (Handle, tuple, list)


def _with_types(typeof: types.ModuleType, argument: Turn) -> None:
    """Give our arrays and numbers the types of NumPy's: containers of Numba's ask for them."""

    type_of_numpys = getattr(typeof, "typeof_impl", None)
    if type_of_numpys is not None:
        for kind in (handles.ARRAY, *handles.SCALARS):
            type_of_numpys.register(
                kind, lambda value, context: type_of_numpys(argument(value), context)
            )


def _with_numpys_names(interpreter: types.ModuleType, argument: Turn) -> None:
    """Have the names of a function's source mean NumPy's."""
    kind = getattr(interpreter, "Interpreter", None)
    for name in ("get_global_value", "get_closure_value"):
        plain = getattr(kind, name, None)
        if plain is not None:
            setattr(kind, name, _translated(plain, argument))


def _translated(plain: Callable[..., Any], argument: Turn) -> Callable[..., Any]:
    @functools.wraps(plain)
    def value(self: Any, which: Any) -> Any:
        return of_numpy(plain(self, which), argument)

    return value


def _calls_of(name: str) -> Patch:
    def patch(module: types.ModuleType, argument: Turn) -> None:
        kind = getattr(module, name, None)
        if kind is not None:
            _with_arguments(kind, argument)

    return patch


PATCHES: Final[Mapping[str, Patch]] = {
    "numba.core.dispatcher": _calls_of("Dispatcher"),
    "numba.np.ufunc.dufunc": _calls_of("DUFunc"),
    "numba.np.ufunc.gufunc": _calls_of("GUFunc"),
    "numba.stencils.stencil": _calls_of("StencilFunc"),
    "numba.core.typing.typeof": _with_types,
    "numba.core.interpreter": _with_numpys_names,
}
"""Module -> what is done to it when it is imported."""


def patch(module: types.ModuleType, argument: Turn) -> None:
    """Change one of Numba's modules, if there is something to change, when it is imported; calls
    are given ``argument(value)`` of each value."""
    if module.__name__ in PATCHES:
        PATCHES[module.__name__](module, argument)
