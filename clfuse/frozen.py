"""Dataclasses that a type checker keeps from being changed: `frozen`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform

    Class = TypeVar("Class")

    @dataclass_transform(frozen_default=True, field_specifiers=(field,))
    def frozen(kind: type[Class], /) -> type[Class]:
        """As below."""

else:

    def frozen(kind: Any, /) -> Any:
        """``dataclass(frozen=True, slots=True)``, where the type checker alone sees to the first.

        Python would write and compile three functions more for each class, at every start: half of
        what it took to import the planner. It would also take twice as long to make each object.
        """
        return dataclass(slots=True, unsafe_hash=True)(kind)


__all__ = ["frozen"]
