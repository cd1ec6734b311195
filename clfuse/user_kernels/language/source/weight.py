"""The cost of one iteration of a kernel, in additions, as far as its text tells."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from .accumulations import expressions
from .tree import Apply, Atomic, Call, Const, Expr, For, Function, If, Load, Stmt, Store, While

ACCESS: Final = 4.0
"""Of an element that is loaded or stored, in additions; of an atomic operation five times it."""


def weight_of(function: Function) -> float | None:
    """In additions; None where loops end by what they calculate, or work-groups wait."""
    if any(array.shared for array in function.local_arrays.values()):
        return None
    return _of_block(function.body)


def _of_block(body: Iterable[Stmt]) -> float | None:
    total = 0.0
    for statement in body:
        inner: float | None = 0.0
        rounds = 1
        if isinstance(statement, While):
            return None
        if isinstance(statement, For):
            bounds = (statement.start, statement.stop, statement.step)
            values = [part.value for part in bounds if isinstance(part, Const)]
            if len(values) < len(bounds):
                return None
            rounds = len(range(*values))
            inner = _of_block(statement.body)
        elif isinstance(statement, If):
            inner = _of_block([*statement.body, *statement.orelse])
        if inner is None:
            return None
        total += inner * rounds + (ACCESS if isinstance(statement, Store) else 1.0)
        for part in expressions(statement):
            own = _of_expression(part)
            if own is None:
                return None
            total += own
    return total


def _of_expression(node: Expr) -> float | None:
    if isinstance(node, Apply):
        return node.op.weight
    if isinstance(node, Load):
        return ACCESS
    if isinstance(node, Atomic):
        return 5 * ACCESS
    if isinstance(node, Call):
        return weight_of(node.function)
    return 0.0
