"""Functions of other packages that ask for NumPy's own class of arrays are given it: `clfuse`
installs them.

Most packages take what `numpy.asarray` takes. Some ask ``isinstance(x, numpy.ndarray)`` first, and
do something else, or refuse, where it is not: pandas looks a mask up as column names. `DOORS` names
the functions in which they ask, as few and as far inside as there are; ours are put before them,
which turn our arrays into NumPy's and leave everything else alone. A package that is not imported
is not touched; a function that a version does not have is left out. In `PACKAGES` nearly every
function would be named: compiled code in them asks for memory that it may write to.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Mapping
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any, Final

import numpy as np

from . import handle as handles
from .conversion import host_copy, host_view
from .handle import Handle
from .shared_storage import seen_by_numpy

Turn = Callable[[Handle], Any]

DOORS: Final[Mapping[str, Mapping[str, Turn]]] = {
    # What is given as an index (a mask is no list of names) passes the first, what a Series or a
    # column is made of, to be written to later, the second; operands pass the third.
    "pandas.core.common": {"apply_if_callable": host_view, "maybe_iterable_to_list": host_copy},
    "pandas.core.ops.common": {"item_from_zerodim": host_view},
    "pandas.core.algorithms": {"_ensure_arraylike": host_view},
    "pandas.core.groupby.grouper": {"get_grouper": host_view},
    "numpy.ctypeslib": {"as_ctypes": seen_by_numpy},
    "numpy.ctypeslib._ctypeslib": {"as_ctypes": seen_by_numpy},  # there since NumPy 2.3
    "scipy.sparse.linalg._interface": {"aslinearoperator": host_view},
}
"""Module -> function in it -> what it gets of an array of ours."""

PACKAGES: Final[Mapping[str, Turn]] = {"skimage": seen_by_numpy}
"""Package -> what its public functions, all that are written in Python, get of an array of ours."""


def open_to_ours(function: Callable[..., Any], turn: Turn) -> Callable[..., Any]:
    """`function`, which gets `turn` of every array of ours among its arguments, also in lists."""

    def turned(value: Any) -> Any:
        if isinstance(value, Handle):
            return turn(value)
        if type(value) is list and any(isinstance(item, Handle) for item in value):
            return [turn(item) if isinstance(item, Handle) else item for item in value]
        return value

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        named = {name: turned(value) for name, value in kwargs.items()} if kwargs else kwargs
        return function(*map(turned, args), **named)

    return call


def open_doors(module: types.ModuleType) -> None:
    """Put our functions before those of the module, also where they were imported from it."""
    package = module.__name__.partition(".")[0]
    for name, turn in _doors_of(module).items():
        function = vars(module).get(name)
        if not callable(function) or isinstance(function, type):
            continue
        made = open_to_ours(function, turn)
        setattr(module, name, made)
        if getattr(function, "__module__", None) != module.__name__:
            continue
        for known, other in list(sys.modules.items()):
            if known.partition(".")[0] == package and vars(other).get(name) is function:
                setattr(other, name, made)


def _has_doors(name: str) -> bool:
    return name in DOORS or name.partition(".")[0] in PACKAGES


def _doors_of(module: types.ModuleType) -> Mapping[str, Turn]:
    name = module.__name__
    if name in DOORS:
        return DOORS[name]
    turn = PACKAGES[name.partition(".")[0]]
    return {
        key: turn
        for key, value in vars(module).items()
        if key[0] != "_" and type(value) is types.FunctionType and value.__module__ == name
    }


class Doors(MetaPathFinder):
    """A finder that finds nothing by itself: it opens the doors of modules that others find."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The spec that the others find for a module with doors; None for all others."""
        if not _has_doors(name):
            return None
        found = None
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                found = finder.find_spec(name, path, target)
                if found is not None:
                    break
        loader = getattr(found, "loader", None)
        if loader is not None:
            execute = loader.exec_module

            def exec_module(module: types.ModuleType) -> None:
                execute(module)
                open_doors(module)

            loader.exec_module = exec_module
        return found


def _open_pointers() -> None:
    """Let C functions whose arguments are declared by `numpy.ctypeslib.ndpointer` write to ours."""
    for kind in np.ctypeslib.ndpointer().__mro__:
        method = vars(kind).get("from_param")
        if isinstance(method, classmethod):
            plain = method.__func__

            def from_param(cls: Any, obj: Any, plain: Any = plain) -> Any:
                return plain(cls, seen_by_numpy(obj) if type(obj) is handles.ARRAY else obj)

            kind.from_param = classmethod(from_param)  # type: ignore[attr-defined]


def install() -> None:
    """Open the doors of what is imported already, and of what will be."""
    _open_pointers()
    for name, module in list(sys.modules.items()):
        if _has_doors(name):
            open_doors(module)
    sys.meta_path.insert(0, Doors())
