"""The typed tree: a kernel with its types, which `lower` makes of the source.

Expressions and statements are plain records. An operand of another dtype than its operation takes
is converted where the operation is computed: `Apply.op.input_dtypes` says to what.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from clfuse.dataclass import mutable
from clfuse.ir.nodes import Op

from .types import ArrayType, Type


@dataclass(slots=True, eq=False)
class Expr:
    """Something with a value of `type`; `line` of the file."""

    type: Type
    line: int


@dataclass(slots=True, eq=False)
class Const(Expr):
    """A literal, or a number of the surroundings."""

    value: Any


@dataclass(slots=True, eq=False)
class Index(Expr):
    """The kernel's index number `axis`."""

    axis: int


@dataclass(slots=True, eq=False)
class Scalar(Expr):
    """A parameter that is a number."""

    name: str


@dataclass(slots=True, eq=False)
class Local(Expr):
    """A local variable."""

    name: str


@dataclass(slots=True, eq=False)
class Extent(Expr):
    """``x.shape[axis]``."""

    array: str
    axis: int


@dataclass(slots=True, eq=False)
class Load(Expr):
    """``x[i, j]``; of a local array too (`is_local`)."""

    array: str
    indices: list[Expr]
    is_local: bool = False


@dataclass(slots=True, eq=False)
class Apply(Expr):
    """A row of the op tables."""

    op: Op
    args: list[Expr]


def from_end(index: Expr) -> int | None:
    """The negative literal that an index of an array was written as; None for all others."""
    if isinstance(index, Apply) and isinstance(index.args[0], Extent):
        last = index.args[-1]
        if index.op.name == "add" and isinstance(last, Const) and last.value < 0:
            return int(last.value)
    return None


@dataclass(slots=True, eq=False)
class Convert(Expr):
    """A conversion to the dtype of `type`, by C's rules."""

    arg: Expr


@dataclass(slots=True, eq=False)
class Logic(Expr):
    """``and`` (`both`) or ``or`` of conditions: the second is evaluated if need be."""

    both: bool
    args: list[Expr]


@dataclass(slots=True, eq=False)
class Not(Expr):
    """``not`` of a condition."""

    arg: Expr


@dataclass(slots=True, eq=False)
class Select(Expr):
    """``a if test else b``: only one of them is evaluated.

    Of ``where(test, a, b)`` `both` would be: nothing is to be seen of that but indices out of
    bounds, where those are checked.
    """

    test: Expr
    chosen: Expr
    other: Expr
    both: bool = False


@dataclass(slots=True, eq=False)
class Call(Expr):
    """A function of the language; `arrays` binds its array parameters to names of the caller's.

    `result` is the place in what it returns (of a tuple).
    """

    function: Function
    args: dict[str, Expr]
    arrays: dict[str, str]
    result: int = 0


@dataclass(slots=True, eq=False)
class Atomic(Expr):
    """``clfuse.atomic.add(x, i, value)``: the element as it was."""

    operation: str
    array: str
    indices: list[Expr]
    args: list[Expr]
    is_local: bool = False


@dataclass(slots=True, eq=False)
class Bound(Expr):
    """A value that is kept in a variable: a `Local` further right in the same statement reads it.

    What changes arrays is evaluated once: ``0 <= clfuse.atomic.add(x, 0, 1) < 5``.
    """

    name: str
    arg: Expr


@dataclass(slots=True, eq=False)
class Group(Expr):
    """``clfuse.group.local_id()`` and its kind."""

    what: str


@dataclass(slots=True, eq=False)
class Stmt:
    """A statement; `line` of the file."""

    line: int


@dataclass(slots=True, eq=False)
class Assign(Stmt):
    """A local variable gets a value, converted to the variable's type."""

    name: str
    value: Expr


@dataclass(slots=True, eq=False)
class AssignMany(Stmt):
    """``a, b = f(...)``: the results of one call."""

    names: list[str]
    call: Call


@dataclass(slots=True, eq=False)
class Store(Stmt):
    """``x[i, j] = value``."""

    array: str
    indices: list[Expr]
    value: Expr
    is_local: bool = False


@dataclass(slots=True, eq=False)
class If(Stmt):
    """Conditions are bools."""

    test: Expr
    body: list[Stmt]
    orelse: list[Stmt]


@dataclass(slots=True, eq=False)
class For(Stmt):
    """``for name in range(start, stop, step)``."""

    name: str
    start: Expr
    stop: Expr
    step: Expr
    body: list[Stmt]


@dataclass(slots=True, eq=False)
class While(Stmt):
    """A loop with a condition."""

    test: Expr
    body: list[Stmt]


@dataclass(slots=True, eq=False)
class Jump(Stmt):
    """``break`` or ``continue``."""

    word: str


@dataclass(slots=True, eq=False)
class Return(Stmt):
    """The values that the function returns."""

    values: list[Expr]


@dataclass(slots=True, eq=False)
class Do(Stmt):
    """A call for its effect."""

    value: Expr


@dataclass(slots=True, eq=False)
class Cleared(Stmt):
    """``name = clfuse.local_array(...)``: from here on it holds zeros."""

    name: str


@dataclass(slots=True, eq=False)
class Barrier(Stmt):
    """All work-items of a group come here before any goes on."""


@mutable
class LocalArray:
    """A fixed-size array; `shared` by a work-group or of one work-item alone."""

    dtype: np.dtype
    shape: tuple[int, ...]
    shared: bool


@dataclass(slots=True, eq=False)
class Function:
    """A kernel or a function of the language, for one signature.

    indices: the first parameters of a kernel
    parameters: the others
    scalars: parameter to type
    arrays: parameter to ArrayType
    locals: variable to type
    local_arrays: variable to LocalArray
    writes, reads: array parameters
    reasons: what in it cannot be array operations, with the line.
    captured: numbers that it took from its surroundings, by dotted name.
    narrow: parameter to the dtypes, other than int64, as which operations take a Python int there.
    """

    name: str
    filename: str
    indices: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    scalars: dict[str, Type] = field(default_factory=dict)
    arrays: dict[str, ArrayType] = field(default_factory=dict)
    locals: dict[str, Type] = field(default_factory=dict)
    local_arrays: dict[str, LocalArray] = field(default_factory=dict)
    results: tuple[Type, ...] = ()
    body: list[Stmt] = field(default_factory=list)
    writes: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)
    atomics: set[str] = field(default_factory=set)
    reasons: list[str] = field(default_factory=list)
    captured: dict[Any, Any] = field(default_factory=dict)
    narrow: dict[str, set[np.dtype]] = field(default_factory=dict)


def statements(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """The statements, and those inside of them, in the order of the text."""
    for statement in body:
        yield statement
        yield from statements(getattr(statement, "body", ()))
        yield from statements(getattr(statement, "orelse", ()))
