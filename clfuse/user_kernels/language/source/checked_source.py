"""`Source`: a function's checked source, and what the names in it mean."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from clfuse.errors import KernelError

MISSING: Final = object()
"""What `Source.dotted` gives for what is no name of the surroundings."""


def root_of(node: ast.expr) -> ast.expr:
    """What an attribute is of in the end: ``np`` of ``np.random.random``."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


@dataclass(slots=True, eq=False)
class Source:
    """A function's source, checked.

    tree: with the line numbers of the file.
    whole: that, or where kernels run in Python also what only says something: `print`, `breakpoint`
        and ``assert``.
    locals: names that the function assigns to.
    free: names that it takes from its surroundings.
    defaults: of the last parameters.
    cells: of the variables of the function around this one.
    """

    function: Callable[..., Any]
    tree: ast.FunctionDef
    filename: str
    parameters: tuple[str, ...]
    whole: ast.FunctionDef
    locals: frozenset[str] = frozenset()
    free: tuple[str, ...] = ()
    returns_value: bool = False
    defaults: dict[str, Any] = field(default_factory=dict)
    cells: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The function's name."""
        return self.tree.name

    def error(self, node: ast.AST | int, message: str) -> KernelError:
        """The error for a place in this source."""
        line = node if isinstance(node, int) else getattr(node, "lineno", self.tree.lineno)
        text = ""
        if isinstance(node, ast.AST):
            text = ast.unparse(node).splitlines()[0]
            text = f"`{text}`: "
        return KernelError(
            f"{self.filename}:{line}: in kernel {self.name}: {text}{message}", self.filename, line
        )

    def is_own(self, name: str) -> bool:
        """Whether a name is a variable or a parameter of the function."""
        return name in self.locals or name in self.parameters

    def cell_of(self, name: str) -> Any:
        """The cell of a variable of the function around this one; None for other names."""
        return self.cells.get(name)

    def lookup(self, name: str) -> Any:
        """What a free name means now; NameError where it means nothing."""
        cell = self.cells.get(name)
        if cell is not None:
            try:
                return cell.cell_contents
            except ValueError:
                raise NameError(f"name {name!r} is not defined yet") from None
        scope = getattr(self.function, "__globals__", {})
        if name in scope:
            return scope[name]
        found = getattr(builtins, name, MISSING)
        if found is MISSING:
            raise NameError(f"name {name!r} is not defined (used in kernel {self.name})")
        return found

    def dotted(self, node: ast.expr) -> Any:
        """What ``math.pi`` or ``np.float32`` means: attributes of a module; `MISSING` otherwise.

        Raises
        ------
        NameError, KernelError
        """
        if isinstance(node, ast.Name):
            if node.id in self.locals or node.id in self.parameters:
                return MISSING
            return self.lookup(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.dotted(node.value)
            if owner is MISSING:
                return MISSING
            try:
                return getattr(owner, node.attr)
            except AttributeError:
                raise self.error(node, "there is no such name") from None
        return MISSING
