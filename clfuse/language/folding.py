"""Loops that do nothing but add up: which variables they add to, and what; `arrays` asks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final

from ..graph.ir import Op
from .tree import Apply, Assign, Expr, For, Local

_FOLDED: Final = frozenset({"add", "multiply"})


def accumulators(node: For) -> dict[str, tuple[Op, Expr]] | None:
    """Variable to operation and term, of a loop whose rounds depend on each other by these alone.

    None where a round does something else, or needs another variable of the round before.
    """
    found: dict[str, tuple[Op, Expr]] = {}
    assigned: set[str] = set()
    names = [statement.name for statement in node.body if isinstance(statement, Assign)]
    if len(names) < len(node.body) or len(set(names)) < len(names) or node.name in names:
        return None
    for statement in node.body:
        assert isinstance(statement, Assign)
        read = set(_read(statement.value))
        if statement.name in read:
            term = _term(statement)
            if term is None:
                return None
            found[statement.name] = term
            read = set(_read(term[1]))
        later = read & (set(names) - assigned)
        if later:  # of the round before
            return None
        if statement.name not in found:
            assigned.add(statement.name)
    return found or None


def _term(statement: Assign) -> tuple[Op, Expr] | None:
    """The operation and the term of ``s = s + term``."""
    value = statement.value
    if not isinstance(value, Apply) or value.op.name not in _FOLDED or len(value.args) != 2:
        return None
    one, other = value.args
    if isinstance(other, Local) and other.name == statement.name:
        one, other = other, one
    is_own = isinstance(one, Local) and one.name == statement.name
    plain = value.op.dtype is not None and value.op.dtype.kind in "iufc"
    same = all(dtype == value.op.dtype for dtype in value.op.input_dtypes)
    if not (is_own and plain and same and one.type.dtype == value.op.dtype):
        return None
    return value.op, other


def _read(node: Any) -> Iterator[str]:
    """The local variables that an expression reads."""
    if isinstance(node, Local):
        yield node.name
    if isinstance(node, Expr):
        for each in fields(node):
            yield from _read(getattr(node, each.name))
    elif isinstance(node, list | tuple):
        for part in node:
            yield from _read(part)
    elif isinstance(node, dict):
        for part in node.values():
            yield from _read(part)
