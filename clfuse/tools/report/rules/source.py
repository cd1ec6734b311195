"""What advice reads in the text of a program: loops over elements, loops of calls of NumPy's, and
whole powers.

A program has many more lines than those that take time. Its tree is walked by statements; only a
loop that takes time, or a statement of a line that does, is looked through.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

__all__ = [
    "CallLoop", "ElementLoop", "lines_that_store", "loops_of_calls", "loops_over_elements",
    "whole_powers",
]  # fmt: skip

FOLDS: Final = frozenset(
    "all any argmax argmin average max mean median min percentile prod quantile std sum var".split()
)
"""Functions and methods that take ``axis=``, and make one value of a row without it."""

LOOP: Final = re.compile(r"\bfor\s+(.+?)\s+in\b")

WORD: Final = re.compile(r"\w+")

LARGEST_EXPONENT: Final = 8
"""Of whole powers that are worth to be written as products."""


@dataclass(frozen=True)
class ElementLoop:
    """A ``for`` loop, from its first to its last line.

    `folds` are the functions that it calls and that make one value of a row, in their order.
    `has_windows` says that it takes the elements around the present one (``a[i - 1 : i + 2]``),
    `is_nested` that a loop in it goes over elements, too.
    """

    first: int
    last: int
    folds: list[str]
    has_windows: bool = False
    is_nested: bool = False


@dataclass(frozen=True)
class CallLoop:
    """A loop that calls NumPy's functions, or methods of arrays, by itself or in functions of the
    file.

    `spans` are the lines of the loop, and of these functions. `carried` are the names that a round
    has from the one before, in their order.
    """

    first: int
    spans: list[tuple[int, int]]
    carried: list[str]


@lru_cache(maxsize=1)
def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except SyntaxError:
        return None


def _inner(statement: ast.AST) -> Iterator[ast.stmt]:
    """The statements that a statement or a module holds, but not those in them."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for each in getattr(statement, name, ()):
            if isinstance(each, ast.stmt):
                yield each
            else:  # a handler or a case
                yield from _inner(each)


def _statements(tree: ast.AST) -> Iterator[ast.stmt]:
    for each in _inner(tree):
        yield each
        yield from _statements(each)


def _names(tree: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}


def _modules_of(tree: ast.Module) -> set[str]:
    """The names by which a program has NumPy and clfuse."""
    return {
        alias.asname or alias.name
        for each in _statements(tree) if isinstance(each, ast.Import)
        for alias in each.names if alias.name in ("numpy", "clfuse")
    }  # fmt: skip


def _is_of_modules(function: ast.expr, modules: set[str]) -> bool:
    while isinstance(function, ast.Attribute):
        function = function.value
    return isinstance(function, ast.Name) and function.id in modules


def _may_go_over_elements(lines: Sequence[str]) -> bool:
    """Whether the variable of a loop stands anywhere after the loop has begun. The text says this
    sooner than the tree: parsing takes 15 us a line."""
    variables: set[str] = set()
    for line in lines:
        head = LOOP.search(line)
        if head is not None:
            variables.update(WORD.findall(head[1]))
            line = line[head.end() :]
        if variables and not variables.isdisjoint(WORD.findall(line)):
            return True
    return False


def _goes_over_elements(loop: ast.For, modules: set[str]) -> bool:
    """Whether a loop reads or writes elements or rows at its variable, or calls functions of
    `modules` with it."""
    names = _names(loop.target)
    for each in ast.walk(loop):
        if isinstance(each, ast.Subscript) and _names(each.slice) & names:
            return True
        if (
            isinstance(each, ast.Call) and _is_of_modules(each.func, modules)
            and any(_names(argument) & names for argument in each.args)
        ):  # fmt: skip
            return True
    return False


def _folds_of(loop: ast.For) -> list[str]:
    """What the loop calls that makes one value of a row."""
    found: dict[str, tuple[int, int]] = {}
    for each in ast.walk(loop):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
            has_axis = any(keyword.arg == "axis" for keyword in each.keywords)
            if each.func.attr in FOLDS and not has_axis:
                found.setdefault(each.func.attr, (each.lineno, each.col_offset))
    return sorted(found, key=lambda name: found[name])


def loops_over_elements(
    lines: Sequence[str], host_ns: Callable[[int, int], float], least_ns: float
) -> Iterator[ElementLoop]:
    """The outermost loops over elements or rows.

    lines: the source.
    host_ns: what the lines from the first to the last have taken, in nanoseconds.
    least_ns: loops that have taken less are left out.
    """
    if host_ns(1, len(lines)) < least_ns or not _may_go_over_elements(lines):
        return
    tree = _parsed("\n".join(lines))
    if tree is None:
        return
    modules = _modules_of(tree)
    stack: list[ast.AST] = [tree]
    while stack:
        statement = stack.pop()
        if isinstance(statement, ast.For):
            last = statement.end_lineno or statement.lineno
            if host_ns(statement.lineno, last) < least_ns:
                continue  # nor have those in it
            if _goes_over_elements(statement, modules):
                yield ElementLoop(
                    statement.lineno, last, _folds_of(statement), _has_windows(statement),
                    any(_goes_over_elements(each, modules) for each in _loops_in(statement)),
                )  # fmt: skip
                continue
        stack += reversed(list(_inner(statement)))


def _loops_in(loop: ast.For) -> Iterator[ast.For]:
    return (each for each in _statements(loop) if isinstance(each, ast.For))


def _has_windows(loop: ast.For) -> bool:
    """Whether a slice with bounds that are calculated from a variable of the loops is taken."""
    names = _names(loop.target).union(*[_names(each.target) for each in _loops_in(loop)])
    return any(
        isinstance(bound, ast.BinOp) and bool(_names(bound) & names)
        for each in ast.walk(loop) if isinstance(each, ast.Slice)
        for bound in (each.lower, each.upper)
    )  # fmt: skip


METHODS: Final = FOLDS | frozenset(
    "argsort astype clip conj copy cumprod cumsum diagonal dot fill flatten ravel repeat reshape"
    " round sort squeeze swapaxes take trace transpose".split()
)
"""Methods by which arrays are known; strings, lists and the like have none of most of them."""

SHARED_METHODS: Final = frozenset(["copy", "sort"])
"""Methods that lists and dictionaries have, too."""


def _calls(tree: ast.AST, modules: set[str]) -> Iterator[ast.Call]:
    """Calls of NumPy's functions, and of methods of arrays."""
    for each in ast.walk(tree):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and (
            _is_of_modules(each.func, modules)
            or each.func.attr in METHODS - SHARED_METHODS
        ):  # fmt: skip
            yield each


def _called_functions(
    tree: ast.AST, functions: dict[str, ast.FunctionDef]
) -> dict[str, ast.FunctionDef]:
    """The functions of the file that a statement calls by name, and those that these call."""
    found: dict[str, ast.FunctionDef] = {}
    stack = [tree]
    while stack:
        for each in ast.walk(stack.pop()):
            if isinstance(each, ast.Call) and isinstance(each.func, ast.Name | ast.Attribute):
                name = each.func.id if isinstance(each.func, ast.Name) else each.func.attr
                if name in functions and name not in found:
                    found[name] = functions[name]
                    stack.append(functions[name])
    return found


def _stores_of(statement: ast.stmt) -> tuple[Sequence[ast.AST], Sequence[ast.AST]]:
    """What a statement evaluates before it stores, and what it stores to, without the statements
    in it."""
    if isinstance(statement, ast.Assign):
        return [statement.value], list(statement.targets)
    if isinstance(statement, ast.AugAssign):
        return [statement.value], [statement.target]
    if isinstance(statement, ast.AnnAssign):
        return [each for each in [statement.value] if each is not None], [statement.target]
    if isinstance(statement, ast.For):
        return [statement.iter], [statement.target]
    if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return [], []
    return [each for each in ast.iter_child_nodes(statement) if not isinstance(each, ast.stmt)], []


def _carried(loop: ast.For | ast.While) -> list[str]:
    """The names that a round reads before it has set them, and sets or changes. What is only added
    to (``total += x``) is none of them."""
    seen: dict[str, None] = {}  # read before they are set
    made: set[str] = set()
    changed: set[str] = set()
    added = [each.target for each in _statements(loop) if isinstance(each, ast.AugAssign)]
    parts = [_stores_of(each) for each in (loop, *_statements(loop))]
    for values, targets in parts:
        for value in values:
            own = {
                name for each in ast.walk(value) if isinstance(each, ast.comprehension)
                for name in _names(each.target)
            }  # fmt: skip
            for each in ast.walk(value):
                if isinstance(each, ast.Name) and each.id not in made | own:
                    seen.setdefault(each.id)
        for target in targets:
            for each in ast.walk(target):
                if isinstance(each, ast.Name):
                    changed.add(each.id)
                    if target not in added and isinstance(each.ctx, ast.Store):
                        made.add(each.id)
    return [name for name in seen if name in changed]


def loops_of_calls(
    lines: Sequence[str], host_ns: Callable[[int, int], float], least_ns: float
) -> Iterator[CallLoop]:
    """The outermost loops that call NumPy's functions, but go over no elements.

    The parameters are those of `loops_over_elements`.
    """
    if host_ns(1, len(lines)) < least_ns:
        return
    tree = _parsed("\n".join(lines))
    if tree is None:
        return
    modules = _modules_of(tree)
    functions = {each.name: each for each in _statements(tree) if isinstance(each, ast.FunctionDef)}
    stack: list[ast.AST] = [tree]
    while stack:
        statement = stack.pop()
        if isinstance(statement, ast.For | ast.While):
            called = _called_functions(statement, functions)
            parts = [statement, *called.values()]
            spans = [(each.lineno, each.end_lineno or each.lineno) for each in parts]
            if sum([host_ns(*span) for span in spans]) < least_ns:
                continue
            inner = [each for part in parts for each in (part, *_statements(part))]
            over_elements = [
                (each.lineno, each.end_lineno or each.lineno) for each in inner
                if isinstance(each, ast.For) and _goes_over_elements(each, modules)
            ]  # fmt: skip
            if any(host_ns(*span) >= least_ns for span in over_elements):
                continue  # `loops_over_elements` has these
            if any(True for part in parts for _ in _calls(part, modules)):
                yield CallLoop(statement.lineno, spans, _carried(statement))
                continue
        stack += reversed(list(_inner(statement)))


def lines_that_store(lines: Sequence[str]) -> set[int]:
    """The lines of statements that store to elements (``x[mask] = y``)."""
    tree = _parsed("\n".join(lines))
    return {
        number
        for each in ([] if tree is None else _statements(tree))
        if isinstance(each, ast.Assign | ast.AugAssign)
        and any(isinstance(target, ast.Subscript) for target in _stores_of(each)[1])
        for number in range(each.lineno, (each.end_lineno or each.lineno) + 1)
    }


def _whole_power(each: ast.AST) -> tuple[ast.expr, int] | None:
    """What is raised to which whole power, of an expression that does that."""
    base: ast.expr
    if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Pow):
        base, exponent = each.left, each.right
    elif (
        isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute)
        and each.func.attr == "power" and len(each.args) == 2
    ):  # fmt: skip
        base, exponent = each.args
    else:
        return None
    number = exponent.value if isinstance(exponent, ast.Constant) else None
    if isinstance(number, int | float) and number in range(3, LARGEST_EXPONENT + 1):
        return base, int(number)
    return None


def whole_powers(lines: Sequence[str], numbers: set[int]) -> Iterator[tuple[str, int, int]]:
    """Base, exponent and line of what is raised to a small whole power at these lines, once a line.

    The base is ``x`` where it is no name.
    """
    tree = _parsed("\n".join(lines)) if numbers else None
    if tree is None:
        return
    left = set(numbers)
    for statement in _statements(tree):
        if left.isdisjoint(range(statement.lineno, (statement.end_lineno or 0) + 1)):
            continue
        for each in _expressions(statement):
            found = _whole_power(each)
            if found is None:
                continue
            own = range(each.lineno, (each.end_lineno or each.lineno) + 1)
            number = next((number for number in own if number in left), None)
            if number is not None:
                left.difference_update(own)
                yield found[0].id if isinstance(found[0], ast.Name) else "x", found[1], number


def _expressions(tree: ast.AST) -> Iterator[ast.expr]:
    """The expressions of a statement, but not those of statements in it."""
    for each in ast.iter_child_nodes(tree):
        if isinstance(each, ast.expr):
            yield each
        if not isinstance(each, ast.stmt):
            yield from _expressions(each)
