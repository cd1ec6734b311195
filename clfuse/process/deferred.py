"""Modules whose text runs when somebody asks for a name that they lack.

A package that is needed for one of its parts brings all that it imports: the whole of pyopencl is
60 ms, what Mako asks for entry points 10. Such a module is imported as usual, by the import system
and under its lock, with a loader that leaves its text for later. Who uses it later finds all of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Final

from . import locks

__all__ = ["Deferring", "Module", "Wrapping", "found_by", "run"]

Around = Callable[[ModuleType], AbstractContextManager[object]]

_lock = locks.make()
_running: Final[set[str]] = set()
_around: Final[dict[str, Around]] = {}


class Module(ModuleType):
    """A module whose text has not run."""

    def __getattr__(self, name: str) -> Any:
        dunder = name.startswith("__") and name not in ("__all__", "__version__")
        if not dunder and run(self):
            return getattr(self, name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        # Importing a submodule sets it. Anything else would be overwritten by the text.
        if not name.startswith("__") and not isinstance(value, ModuleType):
            run(self)
        ModuleType.__setattr__(self, name, value)  # the class is another one by now

    def __dir__(self) -> list[str]:
        run(self)
        return list(ModuleType.__dir__(self))


def run(module: ModuleType) -> bool:
    """Run a module's text if it has not run; return False if this thread is about it already."""
    with _lock:
        if module.__name__ in _running:
            return False
        if not isinstance(module, Module):
            return True
        spec = module.__spec__
        assert spec is not None
        assert spec.loader is not None
        _running.add(module.__name__)
        try:
            with _around.get(module.__name__, nullcontext)(module):
                spec.loader.exec_module(module)
            module.__class__ = ModuleType  # type: ignore[assignment]  # it was the subclass
        finally:
            _running.discard(module.__name__)
    return True


class Wrapping:
    """A loader around the one that the import system has found, which the module is given back."""

    def __init__(self, original: Any) -> None:
        self.original = original

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self.original.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self.original


class Deferring(Wrapping):
    """Leaves a module's text for later, when the original loader runs it.

    original: the loader that the import system has found.
    names: what the module has meanwhile.
    around: a context in which its text is to run.
    """

    def __init__(
        self, original: Any, names: Mapping[str, object] | None = None, around: Around | None = None
    ) -> None:
        super().__init__(original)
        self.names = names or {}
        self.around = around

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        vars(module).update(self.names)
        if self.around is not None:
            _around[module.__name__] = self.around
        module.__class__ = Module


@contextmanager
def found_by(loaders: Mapping[str, Callable[[Any], Any]]) -> Iterator[None]:
    """Have modules loaded by these loaders, made of those that the import system has found, if they
    are imported in this block for the first time."""
    finder = _Finder(loaders)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder:
    def __init__(self, loaders: Mapping[str, Callable[[Any], Any]]) -> None:
        self.loaders = loaders

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self.loaders:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or not hasattr(spec.loader, "get_code"):
            return None
        spec.loader = self.loaders[name](spec.loader)
        return spec
