"""Refuses barriers that not all work-items of a group come to; `calls` asks once a signature.

OpenCL C leaves undefined what happens then: a device may wait for ever. What differs between the
work-items of a group is the innermost index, ``local_id()``, what is read at such places or from
arrays that the kernel writes to, what is calculated from these, and what is assigned where only
some of them come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .folding import expressions
from .syntax import Source
from .tree import (
    Assign,
    AssignMany,
    Atomic,
    Barrier,
    Call,
    Expr,
    For,
    Function,
    Group,
    If,
    Index,
    Jump,
    Load,
    Local,
    Return,
    Stmt,
    While,
)

_NEEDED: Final = "local_id, size, group_id, barrier and local_array of clfuse.group"


def check(source: Source, function: Function, group: int) -> None:
    """Raise KernelError for a barrier that only some work-items of a group come to.

    Also for what needs groups in a kernel that has none (`group` is 0).
    """
    if not group:
        line = _needs_groups(function.body)
        if not line and any(array.shared for array in function.local_arrays.values()):
            line = source.tree.lineno
        if line:
            raise source.error(
                line, f"{_NEEDED} need work-groups: write @clfuse.kernel(group=64)"
            )
    elif _lines_of(function.body, Barrier):
        _Walk(source, function).run()


def _needs_groups(body: list[Stmt]) -> int:
    """The line of the first barrier, or question about the group; 0 where there is none."""
    for statement in body:
        if isinstance(statement, Barrier):
            return statement.line
        for part in (getattr(statement, "body", []), getattr(statement, "orelse", [])):
            line = _needs_groups(part)
            if line:
                return line
        for each in expressions(statement):
            if isinstance(each, Group):
                return each.line
            if isinstance(each, Call) and _needs_groups(each.function.body):
                return each.line
    return 0


def _lines_of(body: list[Stmt], *kinds: type) -> list[int]:
    found: list[int] = []
    for statement in body:
        if isinstance(statement, kinds):
            found.append(statement.line)
        for part in (getattr(statement, "body", []), getattr(statement, "orelse", [])):
            found += _lines_of(part, *kinds)
    return found


@dataclass(frozen=True, slots=True)
class _Some:
    """Why only some work-items come to a place."""

    line: int
    what: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.what} in line {self.line}{self.reason}"


class _Walk:
    """Goes over the statements until no variable more is found to differ."""

    def __init__(self, source: Source, function: Function) -> None:
        self.source = source
        self.function = function
        self.varying: set[str] = set()
        self.left: _Some | None = None  # a return that some have taken
        self.breaks: list[_Some | None] = []  # one that some have taken, a loop each
        self.continues: list[_Some | None] = []  # one that some have taken in this round

    def run(self) -> None:
        while True:
            before = set(self.varying)
            self.left = None
            self._block(self.function.body, None, False)
            if self.varying == before:
                break
        self.left = None
        self._block(self.function.body, None, True)

    def _block(self, body: list[Stmt], some: _Some | None, refuses: bool) -> None:
        for statement in body:
            jumps = (*self.breaks, *self.continues)
            here = some or self.left or next((why for why in jumps if why), None)
            if isinstance(statement, Barrier):
                if here is not None and refuses:
                    raise self.source.error(
                        statement.line,
                        f"not all work-items of a group come to this barrier: the {here} is not "
                        "the same for all of them; write the barrier where all come by, and put "
                        "conditions around the statements between barriers",
                    )
            elif isinstance(statement, Assign):
                if here is not None or self._varies(statement.value):
                    self.varying.add(statement.name)
            elif isinstance(statement, AssignMany):
                if here is not None or self._varies(statement.call):
                    self.varying.update(statement.names)
            elif isinstance(statement, If):
                inner = here
                if inner is None and self._varies(statement.test):
                    inner = _Some(statement.line, "condition")
                self._block(statement.body, inner, refuses)
                self._block(statement.orelse, inner, refuses)
            elif isinstance(statement, For | While):
                self._loop(statement, here, refuses)
            elif isinstance(statement, Return):
                if here is not None:
                    self.left = self.left or _Some(statement.line, "return", f" (under the {here})")
            elif isinstance(statement, Jump) and here is not None:
                jumps_of = self.breaks if statement.word == "break" else self.continues
                why = _Some(statement.line, f"`{statement.word}`", f" (under the {here})")
                jumps_of[-1] = jumps_of[-1] or why

    def _loop(self, node: For | While, some: _Some | None, refuses: bool) -> None:
        bounds: list[Expr] = (
            [node.test] if isinstance(node, While) else [node.start, node.stop, node.step]
        )
        if some is None and any(self._varies(bound) for bound in bounds):
            some = _Some(node.line, "loop")
        if isinstance(node, For) and some is not None:
            self.varying.add(node.name)
        # Who leaves the loop is missing in the next round: the body is looked at once for that.
        self.breaks.append(None)
        self.continues.append(None)
        self._block(node.body, some, False)
        self.continues[-1] = None
        self._block(node.body, some, refuses)
        self.continues.pop()
        self.breaks.pop()

    def _varies(self, node: Expr) -> bool:
        return any(self._is_varying(each) for each in expressions(node))

    def _is_varying(self, node: Expr) -> bool:
        if isinstance(node, Index):
            return node.axis == len(self.function.indices) - 1
        if isinstance(node, Group):
            return node.what == "local_id"
        if isinstance(node, Local):
            return node.name in self.varying
        if isinstance(node, Load):
            return node.is_local or node.array in self.function.writes
        if isinstance(node, Call):
            return _looks_around(node.function)
        return isinstance(node, Atomic)


def _looks_around(function: Function) -> bool:
    """Whether a function may give work-items that call it alike different results."""
    return bool(
        function.writes or function.local_arrays or _needs_groups(function.body)
        or function.arrays.keys() & function.reads
    )
