"""Dataclasses that are made quickly: `frozen`, which a type checker keeps from being changed, and
`mutable`.

`dataclasses.dataclass` writes and compiles the text of each method, at every start: of the time
that importing the planner takes, this was two thirds. Here only ``__init__`` is compiled; the other
methods are the same functions for all classes, which ask for the fields in C.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["frozen", "mutable"]

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform

    Class = TypeVar("Class")

    @dataclass_transform(frozen_default=True, field_specifiers=(field,))
    def frozen(kind: type[Class], /) -> type[Class]:
        """As below."""

    @dataclass_transform(field_specifiers=(field,))
    def mutable(kind: type[Class], /) -> type[Class]:
        """As below."""

else:

    def frozen(kind: Any, /) -> Any:
        """``dataclass(frozen=True, slots=True)``, where the type checker alone sees to the first:
        otherwise it would take twice as long to make each object."""
        kind = _with_methods(kind)
        if "__hash__" not in kind.__dict__:
            hashed = [
                each.name for each in fields(kind)
                if (each.compare if each.hash is None else each.hash)
            ]  # fmt: skip
            kind.__hash__ = _hash(_values(hashed))
        return kind

    def mutable(kind: Any, /) -> Any:
        """``dataclass(slots=True)``: objects are compared by their fields and have no hash."""
        kind = _with_methods(kind)
        if "__hash__" not in kind.__dict__:
            kind.__hash__ = None
        return kind


def _with_methods(kind: Any) -> Any:
    # What the class itself defines stays, as with `dataclass`.
    kind = dataclass(slots=True, eq=False, repr=False)(kind)
    if "__eq__" not in kind.__dict__:
        kind.__eq__ = _equals(_values([each.name for each in fields(kind) if each.compare]))
    if "__repr__" not in kind.__dict__:
        kind.__repr__ = _repr([each.name for each in fields(kind) if each.repr])
    return kind


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that gives these attributes of an object, as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda made: tuple(getattr(made, name) for name in names)


def _equals(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, object], bool]:
    def __eq__(self: Any, other: object) -> bool:
        if other.__class__ is self.__class__:
            return values(self) == values(other)
        return NotImplemented

    return __eq__


def _hash(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__


def _repr(names: list[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def __repr__(self: Any) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({shown})"

    return __repr__
