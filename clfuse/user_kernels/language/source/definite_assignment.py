"""Definite assignment: refuses a variable that is read where some path has not assigned it.

Python raises UnboundLocalError where such a path is taken. A kernel cannot raise, and any other
value would be wrong without a word, so every path to a reader has to assign first. A loop may have
no round, unless its bounds are known; a branch may not be taken, unless its condition is known.
Numbers of the surroundings count as they are at the check.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import field
from typing import Any, Final

from clfuse.dataclass import mutable

from .checked_source import Source
from .operators import BINARY, COMPARISONS

_KNOWN: Final[dict[type, Callable[[Any, Any], Any]]] = {
    kind: (BINARY | COMPARISONS)[kind][1]
    for kind in (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, *COMPARISONS)
}
"""Operators of conditions and bounds that are calculated here."""

_UNKNOWN: Final = object()

State = frozenset[str] | None
"""Variables that have a value; None where no path leads to."""


def check(source: Source, body: list[ast.stmt]) -> None:
    """Raise KernelError for the first variable that may be read before it is assigned."""
    _Paths(source).block(body, frozenset())


@mutable
class _Loop:
    """What is assigned where a loop is left, and where a round is."""

    breaks: list[State] = field(default_factory=list)
    continues: list[State] = field(default_factory=list)


def _both(states: list[State]) -> State:
    """What is assigned whichever of these paths was taken."""
    reached = [state for state in states if state is not None]
    return frozenset.intersection(*reached) if reached else None


class _Paths:
    """Follows all paths through a function at once."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.loops: list[_Loop] = []
        self.variables = source.locals - set(source.parameters)

    def block(self, body: list[ast.stmt], state: State) -> State:
        for statement in body:
            state = self.statement(statement, state)
        return state

    def statement(self, node: ast.stmt, state: State) -> State:
        if isinstance(node, ast.If):
            return self._if(node, state)
        if isinstance(node, ast.For | ast.While):
            return self._loop(node, state)
        if isinstance(node, ast.AugAssign):
            self.reads(node.value, state)
            self.reads(node.target, state, target_too=True)
            return state
        value = getattr(node, "value", None)
        if isinstance(value, ast.expr):
            self.reads(value, state)
        if isinstance(node, ast.Return):
            return None
        if isinstance(node, ast.Break | ast.Continue):
            loop = self.loops[-1]
            (loop.breaks if isinstance(node, ast.Break) else loop.continues).append(state)
            return None
        targets: list[ast.expr] = getattr(node, "targets", [])
        if isinstance(node, ast.AnnAssign):
            targets = [node.target] if node.value is not None else []
        for target in targets:
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            for part in parts:
                if isinstance(part, ast.Name):
                    state = None if state is None else state | {part.id}
                else:
                    self.reads(part, state)
        return state

    def _if(self, node: ast.If, state: State) -> State:
        self.reads(node.test, state)
        test = self.known(node.test)
        taken = state if test is _UNKNOWN or test else None
        other = state if test is _UNKNOWN or not test else None
        return _both([self.block(node.body, taken), self.block(node.orelse, other)])

    def _loop(self, node: ast.For | ast.While, state: State) -> State:
        loop = _Loop()
        begins = state
        if isinstance(node, ast.While):
            self.reads(node.test, state)
            test = self.known(node.test)
            runs, ends = test is not _UNKNOWN and bool(test), True
            if runs:
                ends = False  # by `break` alone
        else:
            assert isinstance(node.iter, ast.Call)
            for argument in node.iter.args:
                self.reads(argument, state)
            runs, ends = self._has_rounds(node.iter.args), True
            if isinstance(node.target, ast.Name) and state is not None:
                begins = state | {node.target.id}
        self.loops.append(loop)
        last = self.block(node.body, begins)
        self.loops.pop()
        after = None
        if ends:
            after = _both([last, *loop.continues] if runs else [state])
        return _both([self.block(node.orelse, after), *loop.breaks])

    def _has_rounds(self, arguments: list[ast.expr]) -> bool:
        bounds = [self.known(argument) for argument in arguments]
        try:
            return len(range(*bounds)[:1]) > 0
        except (TypeError, ValueError):
            return False

    def reads(self, node: ast.expr, state: State, *, target_too: bool = False) -> None:
        if state is None:
            return
        for part in ast.walk(node):
            is_read = isinstance(part, ast.Name) and (isinstance(part.ctx, ast.Load) or target_too)
            if is_read and part.id in self.variables and part.id not in state:  # type: ignore[attr-defined]
                self._refuse(part)  # type: ignore[arg-type]

    def _refuse(self, node: ast.Name) -> None:
        lines = sorted({
            part.lineno for part in ast.walk(self.source.tree)
            if isinstance(part, ast.Name) and part.id == node.id and isinstance(part.ctx, ast.Store)
        })
        before = [str(line) for line in lines if line < node.lineno]
        if not before:
            raise self.source.error(node, f"`{node.id}` is read before it is assigned")
        raise self.source.error(
            node,
            f"`{node.id}` may be read before it is assigned: not every path comes by line "
            f"{' or '.join(before)} (a branch may not be taken, a loop may have no round): give "
            f"it a value above",
        )

    def known(self, node: ast.expr) -> Any:
        """What a condition or a bound is, if that does not depend on the call."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name | ast.Attribute):
            try:
                found = self.source.dotted(node)
            except (NameError, TypeError):
                return _UNKNOWN
            return found if isinstance(found, bool | int | float) else _UNKNOWN
        if isinstance(node, ast.UnaryOp):
            value = self.known(node.operand)
            if value is _UNKNOWN or isinstance(node.op, ast.Invert):
                return _UNKNOWN
            return not value if isinstance(node.op, ast.Not) else (
                -value if isinstance(node.op, ast.USub) else value)
        if isinstance(node, ast.BinOp):
            return self._binary(type(node.op), node.left, node.right)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._binary(type(node.ops[0]), node.left, node.comparators[0])
        return _UNKNOWN

    def _binary(self, kind: type, left: ast.expr, right: ast.expr) -> Any:
        one, other = self.known(left), self.known(right)
        function = _KNOWN.get(kind)
        if function is None or one is _UNKNOWN or other is _UNKNOWN:
            return _UNKNOWN
        try:
            return function(one, other)
        except ArithmeticError:
            return _UNKNOWN
