"""Guards: whether globals, closures and attributes that a trace depends on are still the same.

A replay runs no Python, so every name that the function would look up must lead to what it led to
during the trace. Arrays need no guard: their storage cells are inputs of the replay. For all else,
the names that the code of the function can look up are followed, also through its helper functions,
methods and containers, and compared by identity before every replay.
"""

from __future__ import annotations

import dis
import functools
import os
import sys
import sysconfig
import types
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from clfuse.arrays.handle import Handle
from clfuse.errors import JitError

__all__ = ["Surroundings"]

MISSING: Final = object()
"""Found where a name, an attribute or the content of a closure's cell is not there."""

MOST: Final = 4096
"""Names and elements that are compared before every replay: some 0.1 ms of looking."""

_LIBRARIES: Final = tuple(
    os.path.abspath(path) + os.sep
    for path in {
        *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
        os.path.dirname(os.path.dirname(np.__file__)),
        os.path.dirname(os.path.dirname(__file__)),
    }
)
"""What lies in these does not change while a program runs."""

_FIXED: Final = (
    Handle, type(None), bool, int, float, complex, str, bytes, range,
    np.dtype, np.generic, np.ufunc,
    types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType,
)  # fmt: skip
"""Types of values in which there is nothing to look for."""


class Surroundings:
    """What `functions` and `objects` depend on besides arguments, as it is now.

    Raises
    ------
    JitError
        A NumPy array among it, whose changes nobody would see; or more than `MOST` values.
    """

    def __init__(self, name: str, functions: list[Any], objects: list[Any]) -> None:
        self._name = name
        # The function's own package is watched also where it is installed.
        packages = {_module_name(getattr(f, "func", f)).partition(".")[0] for f in functions}
        self._own = frozenset(packages - {"clfuse", "numpy"})
        self._names: set[str] = set()
        self._seen: dict[int, Any] = {}
        self._owners: list[Any] = []
        self._watched: set[tuple[int, str]] = set()
        # What is compared: attributes and globals, closure cells, sequences, dictionaries.
        self._lookups: list[tuple[Mapping[str, Any], str, Any]] = []
        self._cells: list[tuple[types.CellType, str, Any]] = []
        self._sequences: list[tuple[list[Any], list[Any]]] = []
        self._dicts: list[tuple[dict[Any, Any], list[Any], list[Any]]] = []
        for found in (*functions, *objects):
            self._follow(found, name)
            called = vars(type(found)).get("__call__")
            if called is not None:
                self._follow(called, name)
        self._watch_attributes()
        self._seen.clear()
        self._owners.clear()

    # -- finding ----------------------------------------------------------------------------------

    def _follow(self, root: Any, where: str) -> None:
        stack = [(root, where)]
        while stack:
            value, path = stack.pop()
            if isinstance(value, _FIXED) or id(value) in self._seen:
                continue
            if isinstance(value, np.ndarray):
                raise JitError(
                    f"{path}: a numpy.ndarray that {self._name} takes from its surroundings; a "
                    "replay would not see it change: pass it as an argument, or make it an array "
                    "of clfuse's once, with clfuse.asarray"
                )
            self._seen[id(value)] = value
            stack += self._inside(value, path)
            if self._size() > MOST:
                raise JitError(
                    f"{self._name} depends on more than {MOST:,} values beyond its arguments "
                    f"(the last one in {path}); pass what it needs as arguments"
                )

    def _size(self) -> int:
        sequences = sum(len(stored) for _, stored in self._sequences)
        dicts = sum(len(keys) for _, keys, _ in self._dicts)
        return len(self._lookups) + len(self._cells) + sequences + dicts

    def _inside(self, value: Any, path: str) -> Iterator[tuple[Any, str]]:
        """What can be reached from a value; notes what has to be compared."""
        if isinstance(value, types.FunctionType):
            yield from self._of_function(value)
        elif isinstance(value, types.MethodType):
            yield value.__self__, path
            yield value.__func__, path
        elif isinstance(value, functools.partial):
            yield value.func, path
            yield value.args, path
            yield value.keywords, path
        elif isinstance(value, list):
            self._sequences.append((value, list(value)))
            for item in value:
                yield item, f"{path}[...]"
        elif isinstance(value, tuple | set | frozenset):
            for item in value:
                yield item, f"{path}[...]"
        elif isinstance(value, dict):
            self._dicts.append((value, list(value.keys()), list(value.values())))
            for key, item in value.items():
                yield item, f"{path}[{key!r}]"
        elif isinstance(value, property):
            yield value.fget, path
        elif isinstance(value, staticmethod | classmethod):
            yield value.__func__, path
        elif not _is_library(value, self._own):
            self._owners.append((value, path))

    def _of_function(self, function: types.FunctionType) -> Iterator[tuple[Any, str]]:
        wrapped = getattr(function, "__wrapped__", None)
        if wrapped is not None:
            yield wrapped, function.__name__
        if _is_library(function, self._own):
            return
        scope = function.__globals__
        for name in _global_names(function.__code__, self._names):
            if (id(scope), name) in self._watched:
                continue
            self._watched.add((id(scope), name))
            value = scope.get(name, MISSING)
            self._lookups.append((scope, name, value))
            yield value, name
        closure = function.__closure__ or ()
        for name, cell in zip(function.__code__.co_freevars, closure, strict=True):
            value = _contents(cell)
            self._cells.append((cell, name, value))
            yield value, name
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            yield value, f"a default of {function.__name__}"

    def _watch_attributes(self) -> None:
        """Compare those attributes of objects, classes and modules that some code names.

        Each may lead to more code and more objects.
        """
        count = -1
        while count != len(self._watched) + len(self._names):
            count = len(self._watched) + len(self._names)
            for owner, path in list(self._owners):
                namespace = getattr(owner, "__dict__", None)
                if namespace is None:
                    continue
                for name in sorted(self._names):
                    if (id(owner), name) in self._watched:
                        continue
                    self._watched.add((id(owner), name))
                    value = namespace.get(name, MISSING)
                    if value is not MISSING or not isinstance(owner, type | types.ModuleType):
                        self._lookups.append((namespace, name, value))
                        self._follow(value, f"{path}.{name}")
                    if value is MISSING and not isinstance(owner, type | types.ModuleType):
                        for kind in type(owner).__mro__:
                            if name in vars(kind) and not _is_library(kind, self._own):
                                self._follow(vars(kind)[name], f"{path}.{name}")
                                break

    # -- comparing --------------------------------------------------------------------------------

    def are_same(self) -> bool:
        """Whether everything is what it was."""
        for namespace, name, value in self._lookups:
            if namespace.get(name, MISSING) is not value:
                return False
        for cell, _, value in self._cells:
            if _contents(cell) is not value:
                return False
        for sequence, items in self._sequences:
            if not _same_items(sequence, items):
                return False
        for dictionary, keys, values in self._dicts:
            if not (_same_items(dictionary, keys) and _same_items(dictionary.values(), values)):
                return False
        return True

    def restore(self) -> str:
        """Put back what is not what it was; returns a name of it, empty where nothing changed."""
        changed = ""
        for namespace, name, value in self._lookups:
            if namespace.get(name, MISSING) is not value:
                changed = changed or name
                if isinstance(namespace, dict):
                    if value is MISSING:
                        del namespace[name]
                    else:
                        namespace[name] = value
        for cell, name, value in self._cells:
            if _contents(cell) is not value:
                changed = changed or name
                if value is MISSING:
                    del cell.cell_contents
                else:
                    cell.cell_contents = value
        for sequence, items in self._sequences:
            if not _same_items(sequence, items):
                changed = changed or "a list"
                sequence[:] = items
        for dictionary, keys, values in self._dicts:
            if not (_same_items(dictionary, keys) and _same_items(dictionary.values(), values)):
                changed = changed or "a dict"
                dictionary.clear()
                dictionary.update(zip(keys, values, strict=True))
        return changed


def _same_items(found: Any, stored: list[Any]) -> bool:
    return len(found) == len(stored) and all(map(_is, found, stored))


def _is(one: Any, other: Any) -> bool:
    return one is other


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing in it yet
        return MISSING


def _global_names(code: types.CodeType, names: set[str]) -> list[str]:
    """Global names that the code loads, nested functions included; adds all its names to
    `names`."""
    names.update(code.co_names)
    found = [
        instruction.argval
        for instruction in dis.get_instructions(code)
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    ]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found += _global_names(constant, names)
    return list(dict.fromkeys(found))


def _module_name(value: Any) -> str:
    """The module that a function, class, module or object comes from."""
    if isinstance(value, types.ModuleType):
        return value.__name__
    if isinstance(value, types.FunctionType):
        # Not `__module__`, which functools.wraps copies from the wrapped function.
        return str(value.__globals__.get("__name__", ""))
    if isinstance(value, type):
        return value.__module__
    return type(value).__module__


def _is_library(value: Any, own: frozenset[str]) -> bool:
    """Whether a function, class, module or object is the standard library's or an installed
    package's; packages in `own` are not."""
    name = _module_name(value)
    if name.partition(".")[0] in own:
        return False
    if isinstance(value, types.FunctionType):
        return value.__code__.co_filename.startswith(_LIBRARIES)
    module = sys.modules.get(name)
    if module is None:
        return True
    file: str | None = getattr(module, "__file__", None)
    if file is None:
        return name != "__main__"  # a builtin module, or an interactive session
    return os.path.abspath(file).startswith(_LIBRARIES)
