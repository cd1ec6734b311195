"""Objects in the place of others that take, or return, no arrays but NumPy's."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any, Final

from clfuse.arrays import handle as handles
from clfuse.arrays.shared_storage import seen_by_numpy
from clfuse.dispatch.overrides import PLAIN_VALUES
from clfuse.dispatch.stand_ins import StandInType
from clfuse.user_frames import passed_over

__all__ = [
    "Callback", "Draws", "name_for_pickle", "open_pointers", "open_subclass", "with_open_method",
]  # fmt: skip

Opened = Callable[[Any], Callable[..., Any]]


class Solver:
    """An object of C whose method `name` takes our arrays, too; all else is the object's."""

    def __init__(self, solver: Any, name: str, opened: Opened) -> None:
        self._solver = solver
        setattr(self, name, opened(getattr(solver, name)))

    @property  # type: ignore[misc] # one that cannot be set
    def __class__(self) -> Any:
        return type(self._solver)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._solver, name)

    def __dir__(self) -> list[str]:
        return dir(self._solver)

    def __repr__(self) -> str:
        return repr(self._solver)


class Compiled(Solver):
    """An object of C that is called with our arrays, too, and may write to them."""

    def __init__(self, compiled: Any, opened: Opened) -> None:
        super().__init__(compiled, "__call__", opened)
        self._opened = opened

    @passed_over
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opened(self._solver)(*args, **kwargs)


def with_open_method(function: Callable[..., Any], name: str, opened: Opened) -> Callable[..., Any]:
    """`function`, whose result's method `name` is `opened`: it takes our arrays."""

    @functools.wraps(function)
    @passed_over
    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return Compiled(result, opened) if name == "__call__" else Solver(result, name, opened)

    return call


def open_subclass(kind: type, opened: Opened) -> type:
    """A class in the place of a compiled one, whose own methods cannot be replaced.

    Objects of the compiled class are its instances, too: those that a package has made, and those
    of a class derived from it that is opened itself.
    """
    methods = {
        name: opened(method)
        for name, method in inspect.getmembers(kind, inspect.isroutine)
        if name[0] != "_" or (name in _GIVEN and method is not getattr(object, name, None))
    }

    @passed_over
    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        return made(cls, *args, **kwargs)

    made = opened(kind.__new__)
    described = {"__module__": kind.__module__, "__doc__": kind.__doc__, "__new__": new}
    if type(kind) is type:
        return StandInType(kind.__name__, (kind,), {**described, **methods}, stands_for=kind)
    return type(kind)(kind.__name__, (kind,), {**described, **methods})


_GIVEN: Final = ("__init__", "__call__", "__getitem__", "__setitem__")


def name_for_pickle(function: Any, module: str, name: str) -> None:
    """Name what stands for a function or a class after where it is found, if that is not where it
    was written: pickle looks for it there, here and in processes that have not opened it."""
    home = sys.modules.get(getattr(function, "__module__", None) or "")
    found: Any = home
    for part in getattr(function, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    if isinstance(function, types.FunctionType | type) and found is not function:
        function.__module__, function.__qualname__ = module, name


class Callback:
    """A function of the program's that another package calls: its results are NumPy's. It travels
    to other processes as the function itself.

    """

    of_package = True

    def __init__(self, function: Callable[..., Any], turned: Callable[[Any], Any]) -> None:
        own = vars(self)
        own["__wrapped__"], own["_turned"] = function, turned
        for name in functools.WRAPPER_ASSIGNMENTS:
            if hasattr(function, name):
                own[name] = getattr(function, name)

    @passed_over
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = self.__wrapped__(*args, **kwargs)
        return result if type(result) in PLAIN_VALUES else self._turned(result)

    @property  # type: ignore[misc] # one that cannot be set
    def __class__(self) -> Any:
        kind = type(self.__wrapped__)
        return Callback if issubclass(kind, types.FunctionType | types.MethodType) else kind

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__wrapped__, name, value)  # `basinhopping` sets ``take_step.stepsize``

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        is_bound = type(self.__wrapped__) is types.FunctionType and instance is not None
        return types.MethodType(self, instance) if is_bound else self

    @property
    def __code__(self) -> types.CodeType:
        """The function's: SciPy's `Rbf` counts its arguments."""
        code: types.CodeType = self.__wrapped__.__code__
        return code

    @property
    def im_func(self) -> Any:
        """What f2py finds the number of arguments by; of an object that is no function it leaves
        out the first."""
        function = self.__wrapped__
        code = function.__code__
        if type(function) is types.FunctionType:
            code = code.replace(
                co_argcount=code.co_argcount + 1,
                co_nlocals=code.co_nlocals + 1,
                co_varnames=("self", *code.co_varnames),
            )
        return types.SimpleNamespace(__code__=code, __defaults__=function.__defaults__)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__wrapped__, name)

    def __reduce__(self) -> Any:
        return _itself, (self.__wrapped__,)


def _itself(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


class Draws:
    """A random generator of ours that another package draws from: what it draws is NumPy's."""

    def __init__(self, generator: Any, turned: Callable[[Any], Any]) -> None:
        self._generator = generator
        self._turned = turned

    @property  # type: ignore[misc] # one that cannot be set
    def __class__(self) -> Any:
        return self._generator.__class__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._generator, name)
        return Callback(found, self._turned) if inspect.isroutine(found) else found

    def __repr__(self) -> str:
        return repr(self._generator)

    def __reduce__(self) -> Any:
        return Draws, (self._generator, self._turned)


def open_pointers(ctypeslib: types.ModuleType) -> None:
    """Let C functions whose arguments are declared by `numpy.ctypeslib.ndpointer` write to ours."""
    for kind in ctypeslib.ndpointer().__mro__:
        method = vars(kind).get("from_param")
        if isinstance(method, classmethod):
            plain = method.__func__

            def from_param(cls: Any, obj: Any, plain: Any = plain) -> Any:
                return plain(cls, seen_by_numpy(obj) if type(obj) is handles.ARRAY else obj)

            kind.from_param = classmethod(from_param)
