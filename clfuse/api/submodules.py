"""``import clfuse.ma``: submodules that only NumPy has, found under clfuse's name; `namespace`
registers the finder.

What has submodules of its own there is either a module of NumPy's, whose files must not be loaded a
second time, or one that `namespace` has made and that has no files. So this finder comes before
Python's, which answers for clfuse's own files alone.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Final

PREFIX: Final = "clfuse."


class NumPysModules:
    """Finds ``clfuse.<name>`` where only ``numpy.<name>`` is a module: it is that one.

    Examples
    --------
    >>> import clfuse.polynomial.chebyshev as chebyshev
    >>> chebyshev.__name__
    'numpy.polynomial.chebyshev'
    """

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """A spec where the module is NumPy's; None where it is clfuse's own, or nobody's."""
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
