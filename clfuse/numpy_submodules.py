"""The finder of ``import clfuse.ma`` and its like, and modules filled when a name is looked up.

It finds submodules that only NumPy has, under clfuse's name. Such a module either is NumPy's, and
its files must not be loaded a second time, or `namespace` has made it, and it has no files. So this
finder comes before Python's, which finds clfuse's own files alone.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Final

from clfuse.process import locks

PREFIX: Final = "clfuse."


class Submodule(ModuleType):
    """One of NumPy's submodules with clfuse's functions, filled when a name is first looked up.

    `numpy.random` and `numpy.testing` import so much that they take as long as much of clfuse.

    Parameters
    ----------
    name : str
        What it is called below NumPy and below clfuse.
    fill : callable
        Gives what is in it, by name.
    is_package : bool
        Whether there are modules below it (without files: `NumPysModules` finds them).
    """

    def __init__(
        self, name: str, fill: Callable[[], Mapping[str, Any]], *, is_package: bool = False
    ) -> None:
        super().__init__(PREFIX + name)
        if is_package:
            self.__path__: list[str] = []
        self._fill = fill

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            # ``__path__`` would make a package of it, with files of NumPy's.
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        contents = self.__dict__
        if name in contents:
            return contents[name]
        return getattr(importlib.import_module(f"numpy.{self._path()}"), name)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """What is in it: ``vars(numpy.fft)`` is how packages that wrap all of it find that."""
        contents: dict[str, Any] = _contents_of(self)
        with _filling:
            fill = contents.get("_fill")
            if fill is not None:
                contents.update({**fill(), **_modules_in(contents)})
                contents.pop("_fill", None)
        return contents

    def __dir__(self) -> list[str]:
        return sorted(self.__dict__)

    def _path(self) -> str:
        return self.__name__.removeprefix(PREFIX)


def _modules_in(contents: Mapping[str, Any]) -> dict[str, ModuleType]:
    """The modules below one that were imported before it was filled."""
    below = {name: value for name, value in contents.items() if name[0] != "_"}
    return {name: value for name, value in below.items() if isinstance(value, ModuleType)}


_contents_of: Final = vars(ModuleType)["__dict__"].__get__
"""The dictionary of a module, as it is: not the property above."""
_filling = locks.make()


class NumPysModules:
    """Finds ``clfuse.<name>`` where only ``numpy.<name>`` is a module: it is that one.

    Examples
    --------
    >>> import clfuse.polynomial.chebyshev as chebyshev
    >>> chebyshev.__name__
    'numpy.polynomial.chebyshev'
    """

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """A spec where the module is NumPy's; None where it is clfuse's own, or there is none."""
        if not name.startswith(PREFIX):
            return None
        parent = sys.modules[name.rpartition(".")[0]]
        is_ours = parent.__name__.startswith(PREFIX[:-1]) and bool(getattr(parent, "__file__", ""))
        if is_ours and (parent.__name__ != PREFIX[:-1] or PathFinder.find_spec(name, path)):
            return None
        try:
            found = importlib.util.find_spec(f"numpy.{name.removeprefix(PREFIX)}")
        except ModuleNotFoundError:  # its parent is none
            return None
        return None if found is None else ModuleSpec(name, self)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave it to the import system: another module comes into its place."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Put NumPy's module into the place of `module`."""
        name = module.__name__
        sys.modules[name] = importlib.import_module(f"numpy.{name.removeprefix(PREFIX)}")
