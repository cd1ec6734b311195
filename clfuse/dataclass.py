"""Dataclasses that are made quickly: `frozen`, which a type checker keeps from being changed, and
`mutable`.

`dataclasses.dataclass` writes and compiles the text of each method, at every start: of the time
that importing the planner takes, this was two thirds. Here one ``__init__`` is compiled for each
number of fields, and copied under the names of the class; the other methods are the same functions
for all classes, which ask for the fields in C.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from types import CodeType, FunctionType
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
    stores = "__init__" not in kind.__dict__ and _is_plain(kind)
    kind = dataclass(init=not stores, slots=True, eq=False, repr=False)(kind)
    if stores:
        kind.__init__ = _init(kind)
    if "__eq__" not in kind.__dict__:
        kind.__eq__ = _equals(_values([each.name for each in fields(kind) if each.compare]))
    if "__repr__" not in kind.__dict__:
        kind.__repr__ = _repr([each.name for each in fields(kind) if each.repr])
    return kind


def _is_plain(kind: Any) -> bool:
    """Return whether a class's ``__init__`` stores its arguments, and does no more."""
    declared = [each for each in vars(kind).values() if isinstance(each, Field)]
    declared += getattr(kind, "__dataclass_fields__", {}).values()
    return not hasattr(kind, "__post_init__") and all(
        each.init and each.default_factory is MISSING and each.kw_only in (False, MISSING)
        for each in declared
    )


def _init(kind: Any) -> Callable[..., None]:
    """Return the ``__init__`` that `dataclass` would write for a plain class."""
    names = tuple(each.name for each in fields(kind))
    defaults = [each.default for each in fields(kind) if each.default is not MISSING]
    for each in fields(kind)[len(names) - len(defaults) :]:
        if each.default is MISSING:
            raise TypeError(f"non-default argument {each.name!r} follows default argument")
    code = _code_of_init(len(names)).replace(co_varnames=("self", *names), co_names=names)
    made = FunctionType(code, {}, "__init__", tuple(defaults))
    made.__qualname__ = f"{kind.__qualname__}.__init__"
    return made


@cache
def _code_of_init(count: int) -> CodeType:
    """Return the code of an ``__init__`` that stores its arguments, whatever their names."""
    values = "".join(f", value{place}" for place in range(count))
    lines = "".join(f"\n self.name{place} = value{place}" for place in range(count))
    made: dict[str, Any] = {}
    exec(f"def __init__(self{values}):{lines or ' pass'}", made)
    code: CodeType = made["__init__"].__code__
    return code


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
