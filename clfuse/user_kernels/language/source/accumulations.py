"""Accumulations: loops whose rounds depend on each other by sums alone, and the terms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any, Final

from clfuse.ir.nodes import Op, loop

from . import tree

FOLDED: Final = frozenset({"add", "multiply"})
SUMS: Final = FOLDED | {"subtract"}

FEWEST: Final = 8
"""Rounds, if their number is known: fewer are no vector of doubles."""

NUMBERS: Final = "?bBhHiIlLqQfd"
"""Dtypes that have vectors: complex numbers are vectors themselves, halves are converted."""


def accumulators(node: tree.For) -> dict[str, tuple[Op, tree.Expr]] | None:
    """Variable to operation and term, of a loop whose rounds depend on each other by these alone.

    None where a round does something else, or needs another variable of the round before.
    """
    found: dict[str, tuple[Op, tree.Expr]] = {}
    assigned: set[str] = set()
    names = [statement.name for statement in node.body if isinstance(statement, tree.Assign)]
    if len(names) < len(node.body) or len(set(names)) < len(names) or node.name in names:
        return None
    for statement in node.body:
        assert isinstance(statement, tree.Assign)
        read = set(read_by(statement.value))
        if statement.name in read:
            term = term_of(statement)
            if term is None:
                return None
            found[statement.name] = term
            read = set(read_by(term[1]))
        later = read & (set(names) - assigned)
        if later:  # of the round before
            return None
        if statement.name not in found:
            assigned.add(statement.name)
    return found or None


def term_of(
    statement: tree.Assign, operations: frozenset[str] = FOLDED
) -> tuple[Op, tree.Expr] | None:
    """The operation and the term of ``s = s + term``; None where it is nothing of the kind."""
    value = statement.value
    if not isinstance(value, tree.Apply) or value.op.name not in operations or len(value.args) != 2:
        return None
    one, other = value.args
    if isinstance(other, tree.Local) and other.name == statement.name and value.op.name in FOLDED:
        one, other = other, one
    is_own = isinstance(one, tree.Local) and one.name == statement.name
    plain = value.op.dtype is not None and value.op.dtype.kind in "iufc"
    same = all(dtype == value.op.dtype for dtype in value.op.input_dtypes)
    if not (is_own and plain and same and one.type.dtype == value.op.dtype):
        return None
    return value.op, other


def read_by(node: Any) -> Iterator[str]:
    """The local variables that an expression reads."""
    if isinstance(node, tree.Local):
        yield node.name
    if isinstance(node, tree.Expr):
        for each in fields(node):
            yield from read_by(getattr(node, each.name))
    elif isinstance(node, list | tuple):
        for part in node:
            yield from read_by(part)
    elif isinstance(node, dict):
        for part in node.values():
            yield from read_by(part)


# -- in launches ----------------------------------------------------------------------------------

IN_LANES: Final = (
    tree.Apply, tree.Call, tree.Const, tree.Convert, tree.Extent, tree.Index, tree.Load, tree.Local,
    tree.Logic, tree.Not, tree.Scalar, tree.Select,
)
"""Expressions that have a form for lanes."""


def sums_of(
    function: tree.Function, node: tree.For, after: list[list[tree.Stmt]]
) -> dict[str, Op] | None:
    """Variable to the operation by which rounds are put together; None where rounds depend on each
    other otherwise, or where what comes `after` needs a variable of the last round."""
    rounds = (node.start, node.stop, node.step)
    if all(isinstance(part, tree.Const) for part in rounds):
        if len(range(*[part.value for part in rounds])) < FEWEST:  # type: ignore[attr-defined]
            return None
    elif not isinstance(node.step, tree.Const) or not node.step.value:
        return None
    if not _is_plain(function, node.body):
        return None
    terms: dict[str, list[tuple[Op, tree.Expr] | None]] = {}
    for statement in assignments(node.body):
        for name in statement.names if isinstance(statement, tree.AssignMany) else [statement.name]:
            is_one = isinstance(statement, tree.Assign)
            terms.setdefault(name, []).append(term_of(statement, SUMS) if is_one else None)
    found: dict[str, Op] = {}
    added: list[tree.Expr] = []
    for name, each in terms.items():
        folds = {_fold(term[0]) for term in each if term is not None}
        if None not in each and len(folds) == 1:
            found[name] = folds.pop()
            added += [term[1] for term in each if term is not None]
    if not found or node.name in terms or any(found.keys() & set(read_by(t)) for t in added):
        return None
    # What else is read must have got its value in this round, and be of no use after the loop.
    before, _ = _exposed(node.body, frozenset(found))
    others = terms.keys() - found.keys()
    later = set().union(*[_exposed(body, frozenset())[0] for body in after])
    if before & terms.keys() or others & later:
        return None
    return found


def _fold(op: Op) -> Op:
    """What puts results of `op` together: what was subtracted is added up."""
    assert op.dtype is not None
    return loop("add", op.input_dtypes, op.dtype) if op.name == "subtract" else op


def _is_plain(function: tree.Function, body: list[tree.Stmt]) -> bool:
    """Whether there is nothing in it but assignments, conditions and ``continue``, of numbers."""
    for statement in body:
        if isinstance(statement, tree.If):
            parts: list[tree.Expr] = [statement.test]
            branches = (statement.body, statement.orelse)
            if not all(_is_plain(function, branch) for branch in branches):
                return False
        elif isinstance(statement, tree.Assign | tree.AssignMany):
            parts = [statement.value if isinstance(statement, tree.Assign) else statement.call]
            names = [statement.name] if isinstance(statement, tree.Assign) else statement.names
            if any(function.locals[name].dtype.char not in NUMBERS for name in names):
                return False
        elif isinstance(statement, tree.Jump) and statement.word == "continue":
            parts = []
        else:
            return False
        if not all(_is_writable(part) for part in parts):
            return False
    return True


def _is_writable(node: tree.Expr) -> bool:
    """Whether a vectorized loop can compute an expression in all lanes."""
    if node.type.dtype.char not in NUMBERS:
        return False
    if isinstance(node, tree.Call):
        return _is_inline(node.function) and all(map(_is_writable, node.args.values()))
    if isinstance(node, tree.Apply) and not all(d.char in NUMBERS for d in node.op.input_dtypes):
        return False
    if not isinstance(node, IN_LANES):
        return False
    return all(map(_is_writable, _parts(node)))


def _is_inline(function: tree.Function) -> bool:
    """Whether a function's statements can stand in the round: no loops, one return at its end."""
    body, last = function.body[:-1], function.body[-1:]
    if not last or not isinstance(last[0], tree.Return) or function.local_arrays or jumps(body):
        return False
    return _is_plain(function, body) and all(map(_is_writable, last[0].values))


def jumps(body: list[tree.Stmt]) -> bool:
    """Whether there is a ``continue`` in it."""
    return any(isinstance(statement, tree.Jump) for statement in tree.statements(body))


def assignments(body: list[tree.Stmt]) -> Iterator[Any]:
    """All of it, those under conditions too."""
    return (
        each for each in tree.statements(body) if isinstance(each, tree.Assign | tree.AssignMany)
    )


def _parts(node: Any) -> Iterator[tree.Expr]:
    """The expressions of which one is made."""
    for each in fields(node):
        part = getattr(node, each.name)
        several = part.values() if isinstance(part, dict) else part
        for own in several if isinstance(several, Iterable) else (part,):
            if isinstance(own, tree.Expr):
                yield own


def _exposed(body: list[tree.Stmt], sums: frozenset[str]) -> tuple[set[str], set[str]]:
    """Variables that are read before they have surely got a value in it, and those that surely
    get one. `sums` may add to themselves."""
    read: set[str] = set()
    given: set[str] = set()
    for statement in body:
        if isinstance(statement, tree.If):
            read |= set(read_by(statement.test)) - given
            branches = [_exposed(part, sums) for part in (statement.body, statement.orelse)]
            for found, _ in branches:
                read |= found - given
            given |= branches[0][1] & branches[1][1]
            continue
        inner: list[tree.Stmt] = getattr(statement, "body", [])
        if inner:  # a loop, which may have no round
            found, _ = _exposed(inner, sums)
            read |= found - given - {getattr(statement, "name", "")}
        for each in fields(statement):
            if each.name != "body":
                used = set(read_by(getattr(statement, each.name)))
                if isinstance(statement, tree.Assign) and statement.name in sums:
                    used -= {statement.name}
                read |= used - given
        if isinstance(statement, tree.Assign):
            given |= {statement.name} - sums
        elif isinstance(statement, tree.AssignMany):
            given.update(statement.names)
    return read, given


def expressions(node: Any) -> Iterator[tree.Expr]:
    """An expression, and all that it is made of; those of a statement."""
    if isinstance(node, tree.Expr):
        yield node
    for part in _parts(node):
        yield from expressions(part)


def is_cheap(node: tree.Expr) -> bool:
    """Whether an expression may as well be evaluated where it is not chosen: it loads nothing."""
    if isinstance(node, tree.Apply):
        return node.op.weight <= 4 and all(is_cheap(argument) for argument in node.args)
    if isinstance(node, tree.Convert):
        return is_cheap(node.arg)
    return isinstance(node, tree.Const | tree.Index | tree.Scalar | tree.Local | tree.Extent)
