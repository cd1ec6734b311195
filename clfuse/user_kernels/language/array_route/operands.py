"""Records for a kernel's arguments and variables while it becomes array operations."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

from clfuse.dataclass import frozen, mutable
from clfuse.user_kernels.language.source.tree import Function
from clfuse.user_kernels.language.source.types import Type

from .accesses import Domain


class OutOfBounds(Exception):
    """An index leaves its axis; the message is the IndexError's."""


@mutable
class Array:
    """An argument: how it lies on which storage cell."""

    name: str
    number: int
    cell: int
    shape: tuple[int, ...]
    dtype: np.dtype
    stored: np.dtype
    offset: int
    strides: tuple[int, ...]


@frozen
class Known:
    """A number that is the same for all calls of the signature."""

    value: Any
    type: Type


@frozen
class Given:
    """A number that the kernel is called with."""

    name: str
    position: int
    type: Type


@frozen
class Column:
    """A number that every call of a batch has for itself: a vector of them."""

    position: int
    type: Type


@frozen
class Value:
    """Calculated, over a domain; a shape of () is one number for all of it."""

    term: Any
    domain: Domain


@mutable
class Frame:
    """One function's variables while it runs."""

    function: Function
    arrays: dict[str, Array]
    scalars: dict[str, Any]
    names: dict[str, Any] = field(default_factory=dict)
    results: list[Any] | None = None
