"""Opening: the functions of `third_party_patches` are put before those of packages.

An import hook opens a module when it has been executed, wherever its functions were imported from
it by then.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.machinery import ModuleSpec
from typing import Any, Final

from clfuse._core import loading
from clfuse.arrays import handle as handles
from clfuse.config import at_import
from clfuse.dispatch.overrides import PLAIN_VALUES
from clfuse.dispatch.stand_ins import GENERATORS
from clfuse.functions.math.ufunc import ufunc
from clfuse.functions.rebound import for_ours
from clfuse.user_frames import passed_over

from .protocols import INSTALLED
from .third_party_patches import (
    APART,
    CALLED,
    COMPILED,
    COMPOSED,
    DEEPEST_LIST,
    DOORS,
    IN_PYTHON,
    METHODS,
    PACKAGES,
    PATCHES,
    SOLVERS,
    Turn,
    in_host_view,
    in_shared_memory,
    is_called,
    is_plain,
)

__all__ = ["install", "open_compiled", "open_doors"]

Opened = Callable[[Any], Callable[..., Any]]

_CONTAINERS: Final = (dict, list, slice, tuple, types.ModuleType)
"""Classes of arguments that may have others in them."""

_nobodys: Final[set[tuple[type, ...]]] = set()
"""Classes of arguments, in the order of calls, of which none concerns us."""

MOST_KINDS: Final = 4096

OUTPUTS: Final = frozenset(("distances", "indices", "out", "output"))
"""Parameters to which functions of SciPy's and others write: these share memory."""

COPIES: Final = frozenset(("copy", "copy_X", "copy_x"))
"""Parameters, and attributes of estimators, that are false where what is given is written to."""

IN_PLACE: Final = frozenset((
    "cKDTree.count_neighbors", "KDTree.count_neighbors", "NdPPoly.__init__",
    "NdPPoly.construct_fast", "incr_mean_variance_axis", "lobpcg", "splprep",
))  # fmt: skip
"""Functions whose compiled code writes to what they are given, or asks as if it did, then or
later."""

COUNTING: Final = ("skimage",)
"""Packages whose warnings name a line by how often a function is wrapped, ours among it."""

ESTIMATORS: Final = ("sklearn",)
"""Packages whose objects keep what they are made of as it is, and may write to it later."""


def _package_of(function: Callable[..., Any]) -> str:
    return (getattr(function, "__module__", None) or "").partition(".")[0]


def _keeps(function: Callable[..., Any]) -> bool:
    is_of_estimators = _package_of(function) in ESTIMATORS
    return is_of_estimators and function.__name__ in ("__init__", "set_params")


def _as_it_is(value: Any) -> Any:
    return value


def _overwrites(options: Mapping[str, Any]) -> bool:
    return any(
        name in COPIES if value is False else value is True and name.startswith("overwrite_")
        for name, value in options.items()
    )


def open_to_ours(function: Callable[..., Any], turned: Turn) -> Callable[..., Any]:
    """`function`, which gets what `turned` gives of each of its arguments; where it is allowed to
    write to these, or has asked for memory that it may write to, they share memory."""
    always = getattr(function, "__qualname__", "") in IN_PLACE or _keeps(function)
    is_python = type(inspect.unwrap(function)) is types.FunctionType
    begins = getattr(function, "__name__", "") == "__init__"  # what it fills may be a tuple of ours
    path = getattr(function, "__qualname__", ".").rpartition("<locals>.")[2]
    repeats = begins or "." not in path  # a method may have changed its object before

    def shared(value: Any) -> Any:
        return turned(in_shared_memory(value))

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal always
        given = (*args, *kwargs.values()) if kwargs else args
        key = tuple(map(type, given))
        if key in _nobodys or _is_nobodys(key, given):
            return function(*args, **kwargs)
        places = _places_of_parameters(function) if is_python else {}
        options = {name: args[place] for name, place in places.items() if place < len(args)}
        options |= kwargs
        owner = getattr(args[0], "__dict__", {}) if args else {}
        turn = shared if always or _overwrites(options) or _overwrites(owner) else turned
        written = _written_by(function) if is_python and _may_hold_ours(given) else OUTPUTS
        named = {
            name: (shared if name in written else turn)(value) for name, value in kwargs.items()
        }
        turns = [turn] * len(args)
        for name in written & options.keys() - kwargs.keys():
            turns[places[name]] = shared
        if begins:
            turns[:1] = [_as_it_is]
        placed = [turn(value) for turn, value in zip(turns, args, strict=True)]
        if len(placed) > 1:
            _keep_identity(args, placed)
        try:
            made = function(*placed, **named)
        except ValueError as error:
            draws = not GENERATORS.isdisjoint(key)  # and would draw again
            if turn is shared or draws or not (repeats and asks_for_memory(error)):
                raise
        else:
            for name in OUTPUTS & options.keys():  # ``cdist(x, y, out=z) is z``
                if made is (named[name] if name in kwargs else placed[places[name]]):
                    return options[name]
            return made
        always = True
        return call(*args, **kwargs)

    return call if _package_of(function) in COUNTING else passed_over(call)


def _is_nobodys(key: tuple[type, ...], given: tuple[Any, ...]) -> bool:
    """Whether none of the arguments, of these classes, is ours, has ours in it or calls ours."""
    kinds = set(key)
    if not (_ours().isdisjoint(kinds) and GENERATORS.isdisjoint(kinds)):
        return False
    has_lists = any(issubclass(kind, _CONTAINERS) for kind in kinds)
    if (has_lists and not all(map(is_plain, given))) or any(map(is_called, kinds)):
        return False
    if not has_lists and len(_nobodys) < MOST_KINDS:
        _nobodys.add(key)
    return True


def _may_hold_ours(values: Iterable[Any], depth: int = DEEPEST_LIST) -> bool:
    """Whether an array of ours, or a function that may give one, is among values, or in lists,
    tuples and dicts there."""
    for value in values:
        kind = type(value)
        if kind in CALLED or issubclass(kind, handles.Handle):
            return True
        if depth and isinstance(value, dict | list | tuple):
            items = value.values() if isinstance(value, dict) else value
            if not PLAIN_VALUES.issuperset(map(type, items)) and _may_hold_ours(items, depth - 1):
                return True
    return False


@functools.cache
def _ours() -> frozenset[type]:
    """Classes of arguments that are turned into others."""
    return handles.SCALARS | {handles.ARRAY, type(handles.ARRAY), ufunc, *CALLED}  # type: ignore[no-any-return]


def _keep_identity(args: tuple[Any, ...], placed: list[Any]) -> None:
    """Let an array that is given twice be one object (``csd(x, x)`` is a spectrum of real numbers),
    in the memory that is shared if one of both is."""
    first: dict[int, int] = {}
    for place, value in enumerate(args):
        before = first.setdefault(id(value), place)
        if before != place and type(value) is handles.ARRAY:
            if placed[place].flags.writeable:
                placed[before] = placed[place]
            else:
                placed[place] = placed[before]


def asks_for_memory(error: ValueError) -> bool:
    """Whether a function has raised an error because it may not write to an array: NumPy's words,
    Cython's of a memoryview, which may want to read alone, and pybind11's."""
    text = str(error)
    return "read-only" in text or "not writeable" in text or "not writable" in text


@functools.cache
def _written_by(function: Callable[..., Any]) -> frozenset[str]:
    """The parameters of a package's function to which it writes."""
    from .receivers import parameters_written  # few programs hand arrays to packages

    return OUTPUTS | parameters_written(function)


@functools.cache
def _places_of_parameters(function: Callable[..., Any]) -> Mapping[str, int]:
    """Where the parameters of a function in Python are given by place."""
    code = inspect.unwrap(function).__code__
    return {name: place for place, name in enumerate(code.co_varnames[: code.co_argcount])}


def open_doors(module: types.ModuleType) -> None:
    """Put our functions before those of the module, also where they were imported from it."""
    package = module.__name__.partition(".")[0]
    if not _has_doors(module.__name__):
        return  # what is compiled may name itself otherwise than it was found
    if module.__name__ == "numpy.ctypeslib":
        from .opened_objects import open_pointers

        open_pointers(module)
    if module.__name__.startswith(COMPILED):
        from . import numba_functions

        numba_functions.patch(module, in_shared_memory)
        return
    if module.__name__ in PATCHES:
        before = dict(vars(module))
        PATCHES[module.__name__](module)
        _replace_copies(module, {
            name: (before[name], value) for name, value in vars(module).items()
            if before.get(name, value) is not value
        })
        if module.__name__ not in DOORS:
            return
    if package in PACKAGES and not (_is_installed(module) and _takes_numpys_alone(package)):
        return
    for below in list(vars(module).values()) if package in PACKAGES else ():
        if isinstance(below, types.ModuleType) and _is_made_by(below, module):
            open_doors(below)
    _open(module, _doors_of(module))


def _takes_numpys_alone(package: str) -> bool:
    """Whether a package does not keep to the array API standard, as SciPy and scikit-learn do where
    they are told to."""
    return package not in ("scipy", "sklearn") or os.environ.get("SCIPY_ARRAY_API", "0") == "0"


def _is_installed(module: types.ModuleType) -> bool:
    """Whether a module is none of the program's own that is called as a package is; what compiled
    code has made has no file."""
    file = getattr(module, "__file__", None)
    return file is None or not INSTALLED.isdisjoint(file.split(os.sep))

def open_compiled(module: types.ModuleType) -> None:
    """Have the functions of a compiled module of the program's take our arrays, in whose memory
    they may write, and the methods of its classes where these take others."""
    _open(module, _all_doors(module, in_shared_memory))


def _open(module: types.ModuleType, doors: Mapping[str, Opened]) -> None:
    from .opened_objects import name_for_pickle, open_subclass

    made: dict[str, tuple[Any, Any]] = {}
    homes = module.__name__, module.__name__.partition(".")[0]  # pandas' functions say the latter
    for name, opened in doors.items():
        kind, is_method, method = name.partition(".")
        if is_method:
            _open_method(vars(module).get(kind), method, opened)
            continue
        function = vars(module).get(name)
        if not callable(function):
            continue
        is_class = isinstance(function, type)
        open_one = open_subclass(function, opened) if is_class else opened(function)
        setattr(module, name, open_one)
        name_for_pickle(open_one, module.__name__, name)
        if getattr(function, "__module__", None) in homes:
            made[name] = function, open_one
    _replace_copies(module, made)


def _replace_copies(module: types.ModuleType, made: Mapping[str, tuple[Any, Any]]) -> None:
    """Put what is new in a module where other modules of its package have imported what was."""
    for other in _family(module) if made else ():
        for name in made.keys() & vars(other).keys():
            if vars(other)[name] is made[name][0]:
                setattr(other, name, made[name][1])


def _family(module: types.ModuleType) -> list[types.ModuleType]:
    """The modules of the package that may have imported something from `module`.

    While it is being imported these are the ones that were begun after it, and those that wait for
    it: `sys.modules` holds them in the order in which they were begun, or ended.
    """
    package = module.__name__.partition(".")[0]
    prefix = f"{package}."
    family = []
    for name, other in reversed(list(sys.modules.items())):
        if other is module and _is_executed(module):
            break
        if name == package or name.startswith(prefix):
            family.append(other)
    return family + list(_executed)


def _is_executed(module: types.ModuleType) -> bool:
    return any(other is module for other in _executed)


_executed: Final[list[types.ModuleType]] = []
"""The modules with doors whose import has begun and not ended."""


def _is_made_by(below: types.ModuleType, module: types.ModuleType) -> bool:
    """Whether the compiled code of a module has made another within it, which no finder sees."""
    return below.__spec__ is None and below.__name__.startswith(f"{module.__name__}.")


def _open_method(kind: Any, name: str, opened: Opened) -> None:
    function = vars(kind).get(name) if isinstance(kind, type) else None
    if isinstance(vars(type(kind)).get(name), property):
        return  # the class's own class has one of that name, which would be asked to set it
    if isinstance(function, staticmethod | classmethod):  # Python makes one of `__new__`
        setattr(kind, name, type(function)(opened(function.__func__)))
    elif inspect.isroutine(function) and callable(function) and hasattr(function, "__get__"):
        _put(kind, name, opened(function))  # what has no `__get__` is no method
    elif isinstance(function, types.GetSetDescriptorType):
        plain = function.__get__, function.__set__, function.__delete__, function.__doc__
        setattr(kind, name, property(plain[0], opened(plain[1]), *plain[2:]))
    elif isinstance(function, property) and function.fset is not None:
        setattr(kind, name, function.setter(opened(function.fset)))


def _put(kind: type, name: str, method: Any) -> None:
    """``kind.name = method``; of a class in C that lets nobody do so by the compiled part alone."""
    if _is_open(kind):
        setattr(kind, name, method)
        return
    core = loading.load()
    if core is not None and name[:2] != "__":
        core.put_method(kind, name, method)


def _has_doors(name: str) -> bool:
    is_listed = name in DOORS or name in SOLVERS or name in PATCHES
    return is_listed or name.startswith((COMPOSED, COMPILED)) or _is_of_package(name)


def _is_of_package(name: str) -> bool:
    package, _, rest = name.partition(".")
    if package not in PACKAGES:
        return False
    return package not in IN_PYTHON or APART.isdisjoint(rest.split("."))


def _doors_of(module: types.ModuleType) -> Mapping[str, Opened]:
    name = module.__name__
    if name in DOORS:
        turns = DOORS[name].items()
        return {key: functools.partial(open_to_ours, turned=turn) for key, turn in turns}
    if name in SOLVERS:
        from .opened_objects import with_open_method

        whole = functools.partial(open_to_ours, turned=in_shared_memory)
        read = functools.partial(open_to_ours, turned=in_host_view)
        return {
            key: functools.partial(
                with_open_method, name=method, opened=whole if method == "__call__" else read
            )
            for key, method in SOLVERS[name].items()
        }
    if name.startswith(COMPOSED):
        return {
            key: for_ours
            for key, value in vars(module).items()
            if key[0] != "_" and type(value) is types.FunctionType and value.__module__ == name
        }
    return _all_doors(module, PACKAGES[name.partition(".")[0]])


def _all_doors(module: types.ModuleType, turn: Turn) -> Mapping[str, Opened]:
    """What opens all that is public of a module."""

    def open_once(function: Callable[..., Any]) -> Callable[..., Any]:
        is_python = type(function) is types.FunctionType  # what is compiled may have no hash
        known: Any = _opened.get(function) if is_python else None
        if known is None:
            known = open_to_ours(function, turn)
            known.of_package = True
            if is_python:
                _opened[function] = known
        return known  # type: ignore[no-any-return]

    return dict.fromkeys(_public(module), open_once)


_opened: Final[dict[Callable[..., Any], Any]] = {}
"""What stands for a function, wherever it is found."""


def _public(module: types.ModuleType) -> Iterator[str]:
    """The names of a module's own functions, and of its classes' methods."""
    package, _, rest = module.__name__.partition(".")
    if package in IN_PYTHON:
        parts = rest.split(".")
        # The transforms of `scipy.fft` call what stands in such modules.
        is_private = any(part[:1] == "_" for part in parts) and not parts[-1].endswith("_backend")
        yield from _public_in_python(module, package, is_private)
        return
    if any(name.endswith(_SWIG) for name in vars(module)):
        return
    for key, value in vars(module).items():
        # Of what cannot be called nothing is asked: it may be a module that is imported at that.
        if key[0] == "_" or not callable(value) or hasattr(value, "of_package"):
            continue
        home = getattr(value, "__module__", None)  # compiled functions may not know it
        if home is not None and home != module.__name__:
            continue
        if type(value).__module__.startswith(COMPILED):
            continue  # `numba_functions` opens it, and other compiled functions call it
        if inspect.isroutine(value):
            yield key
        elif isinstance(value, type) and _is_open(value):
            for name in vars(value):
                if name[0] != "_" or name in METHODS:
                    yield f"{key}.{name}"


def _public_in_python(module: types.ModuleType, package: str, is_private: bool) -> Iterator[str]:
    """`_public` of one of `IN_PYTHON`."""
    for key, value in vars(module).items():
        if key[0] == "_":
            if module.__name__.startswith(WITH_BASES) and _is_class_of(module, value):
                for name, method in vars(value).items():
                    if name[0] != "_" and type(method) is types.FunctionType:
                        yield f"{key}.{name}"
            continue
        if type(value) is types.FunctionType:
            of_package = (value.__module__ or "").partition(".")[0] == package
            if of_package and not is_private and not hasattr(value, "of_package"):
                yield key
        elif _is_class_of(module, value):
            for name, method in vars(value).items():
                is_opened = type(method) in _DESCRIBED or type(method).__name__ == CYTHONS
                if is_opened and (name[0] != "_" or name in METHODS):
                    yield f"{key}.{name}"


WITH_BASES: Final = "scipy.sparse._"
"""Modules whose private classes have the methods of the public ones; the operators of these know
our arrays."""


def _is_class_of(module: types.ModuleType, value: Any) -> bool:
    is_class = issubclass(type(value), type) and value.__module__ == module.__name__
    return is_class and _is_open(value)


_DESCRIBED: Final = frozenset((types.FunctionType, staticmethod, classmethod, property))

CYTHONS: Final = "cython_function_or_method"
"""The class of the methods of a class in Python that Cython has compiled, in each of its modules;
those of scipy.spatial's are called by programs."""

_SWIG: Final = "_swigregister"
"""Names of what gives a class the functions of a module that SWIG has made, which must be those of
C: the classes, which are written in Python, are opened instead."""


def _is_open(kind: type) -> bool:
    """Whether a class takes other methods than it has; of the compiled ones not all do."""
    return bool(kind.__flags__ & HEAP_TYPE) and not kind.__flags__ & IMMUTABLE_TYPE


HEAP_TYPE: Final = 1 << 9
IMMUTABLE_TYPE: Final = 1 << 8
"""Py_TPFLAGS_HEAPTYPE, Py_TPFLAGS_IMMUTABLETYPE: https://docs.python.org/3/c-api/typeobj.html"""


class Doors:
    """A finder that finds nothing by itself: it patches the modules that other finders find."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The spec that the others find for a module to be patched; None for all others."""
        if not _has_doors(name):
            return None
        found = None
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                found = finder.find_spec(name, path, target)
                if found is not None:
                    break
        loader = getattr(found, "loader", None)
        if loader is not None and not isinstance(loader, type):  # a class loads what is built in
            execute = loader.exec_module

            @passed_over
            def exec_module(module: types.ModuleType) -> None:
                _executed.append(module)
                try:
                    execute(module)
                    open_doors(module)
                finally:
                    _executed.remove(module)

            loader.exec_module = exec_module
        return found


def install() -> None:
    """Patch the modules that are imported already, and those that will be."""
    named = str(at_import("numpy_packages")).split(",")
    for package in filter(None, map(str.strip, named)):
        PACKAGES.setdefault(package, in_shared_memory)
    known = list(sys.modules.items())
    sys.meta_path.insert(0, Doors())
    for name, module in known:
        if _has_doors(name) and _is_complete(name, module):
            open_doors(module)


def _is_complete(name: str, module: types.ModuleType) -> bool:
    """Whether a module was imported: one that another thread is just importing is waited for; not
    one that has imported us."""
    if not getattr(getattr(module, "__spec__", None), "_initializing", False):
        return True
    try:
        importlib.import_module(name)
    except ImportError:  # it has failed there
        return False
    return not getattr(getattr(module, "__spec__", None), "_initializing", False)
