"""What the code of a package does with the array that it asks ours for: whether it writes to it.

``numpy.asarray(x)`` of an array of ours is a read-only snapshot, because memory that is shared
costs a look at all of it with each operation on ``x``. Where an installed package goes on to write
to what it got (``x = np.asarray(x); x += step``), it gets shared memory, as it would of NumPy's
array. Its source says so: the value is followed from the call through the names that it gets,
through views (``x.T``, ``x[1:]``, ``x.reshape(-1)``), and through ``return`` into the caller, which
may be the program (``dataset.values[0] = 5``). What is kept in attributes or handed to other
functions is not followed.

The same is asked of a function of a package before it gets an array: to which of its parameters it
writes (``def unwrap(angle): angle[1:] += correction``).
"""

from __future__ import annotations

import ast
import dis
import enum
import functools
import inspect
import linecache
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

__all__ = ["is_written_to", "parameters_written"]


class Use(enum.Enum):
    """What becomes of a value."""

    READ = enum.auto()
    WRITTEN = enum.auto()
    RETURNED = enum.auto()


def is_written_to(asking: types.FrameType) -> bool:
    """Whether the package whose code asks for memory, or whoever it returns that to,
    writes to it; where no source is found, nobody does."""
    frame: types.FrameType | None = asking
    while frame is not None:
        known = _known.get((id(frame.f_code), frame.f_lasti))
        use = _use(frame) if known is None else known[1]
        if use is not Use.RETURNED:
            return use is Use.WRITTEN
        frame = frame.f_back
    return False


_known: Final[dict[tuple[int, int], tuple[types.CodeType, Use]]] = {}
"""By a code's identity and the place in it: the code, which has to live as long, and the use."""

MOST_KNOWN: Final = 4096


def _use(frame: types.FrameType) -> Use:
    """The use of what the call that a frame is in gives, which is known then."""
    if len(_known) >= MOST_KNOWN:
        _known.clear()
    use = _judged(frame)
    _known[id(frame.f_code), frame.f_lasti] = frame.f_code, use
    return use


def _judged(frame: types.FrameType) -> Use:
    code = frame.f_code
    positions = getattr(code, "co_positions", None)  # there since Python 3.11
    if positions is None:
        return Use.READ
    place = list(positions())[frame.f_lasti // 2]
    lines = tuple(linecache.getlines(code.co_filename, frame.f_globals))
    first = 0 if code.co_name == "<module>" else code.co_firstlineno
    flow = None if None in place else _flow(lines, first)
    return Use.READ if flow is None else flow.use_at(place)


@functools.lru_cache(maxsize=8)  # a program that asks at many places is read once
def _flow(lines: tuple[str, ...], first: int) -> _Flow | None:
    """That of a file's function whose text begins in line `first`, or of the whole file."""
    before = 0
    if first:
        before = first - 1
        try:
            lines = tuple(inspect.getblock(lines[before:]))
        except SyntaxError:  # the file is another one by now
            return None
        if lines and lines[0][:1].isspace():
            lines, before = ("if 1:\n", *lines), before - 1
    try:
        return _Flow(ast.parse("".join(lines)), before)
    except SyntaxError:  # as that of a lambda alone
        return None


def _may_write(code: types.CodeType) -> bool:
    """Whether a function's instructions can write to an array; to read its source takes longer."""
    if not _WRITERS.isdisjoint(code.co_names):
        return True
    return any(
        instruction.opname in _STORES
        or instruction.opname.startswith("INPLACE_")
        or (instruction.opname == "BINARY_OP" and instruction.argrepr.endswith("="))
        for instruction in dis.get_instructions(code)
    )


_STORES: Final = frozenset((
    "STORE_SUBSCR", "STORE_SLICE", "KW_NAMES", "CALL_FUNCTION_KW", "CALL_KW",
))  # fmt: skip
"""Instructions of ``x[i] = ...`` and of calls with ``out=``, in one or other release of Python."""


def _copied(body: list[ast.stmt]) -> frozenset[str]:
    """The names that get other values, whatever the function is given."""
    return frozenset(
        target.id
        for statement in body
        if isinstance(statement, ast.Assign) and not _shows(statement.value)
        for targets in statement.targets
        for target in (targets.elts if isinstance(targets, ast.Tuple) else [targets])
        if isinstance(target, ast.Name)
    )


def _shows(value: ast.expr) -> bool:
    """Whether a value may be the memory of another."""
    if isinstance(value, ast.Call):
        value = value.func
        return isinstance(value, ast.Attribute) and value.attr in _SAME_MEMORY
    return isinstance(value, ast.Attribute | ast.Name | ast.Subscript)


def _place(node: ast.expr) -> tuple[int | None, ...]:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


_SAME_MEMORY: Final = frozenset((
    "T", "asanyarray", "asarray", "ascontiguousarray", "atleast_1d", "atleast_2d", "atleast_3d",
    "base", "data", "flat", "imag", "ravel", "real", "require", "reshape", "squeeze", "swapaxes",
    "transpose", "values", "view",
))  # fmt: skip
"""Attributes, methods and functions of an array that show its memory."""

_WRITERS: Final = frozenset((
    "at", "copyto", "fill", "fill_diagonal", "itemset", "partition", "place", "put",
    "put_along_axis", "putmask", "shuffle", "sort",
))  # fmt: skip
"""Methods that write to their array, and functions that write to their first argument."""

_FUNCTIONS_ONLY: Final = frozenset(("sort", "partition"))
"""Of `_WRITERS`, those whose functions make a new array."""


def parameters_written(function: Callable[..., Any]) -> frozenset[str]:
    """The parameters of a function in Python to which it writes, by its source: not those whose
    names it gives to a copy, or to another value, before anything else can happen."""
    function = inspect.unwrap(function)
    if type(function) is not types.FunctionType or not _may_write(function.__code__):
        return frozenset()
    code = function.__code__
    lines = tuple(linecache.getlines(code.co_filename, function.__globals__))
    flow = _flow(lines, code.co_firstlineno) if lines else None
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return frozenset() if flow is None else flow.written_of(code.co_name, names)


class _Flow:
    """The ways of values through a function's source."""

    def __init__(self, tree: ast.AST, before: int) -> None:
        self._tree = tree
        self._before = before  # lines of the file before it
        self._parents: dict[ast.AST, ast.AST] = {
            child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)
        }

    def use_at(self, place: tuple[int, int, int, int]) -> Use:
        """What becomes of the value of the expression at a place of the file."""
        line, last = place[0] - self._before, place[1] - self._before
        for node in ast.walk(self._tree):
            if isinstance(node, ast.expr) and _place(node) == (line, last, *place[2:]):
                return self.use(node)
        return Use.READ

    def written_of(self, function: str, parameters: Iterable[str]) -> frozenset[str]:
        """Those of a function's parameters that are written to."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.FunctionDef) and node.name == function:
                copied = _copied(node.body)
                return frozenset(
                    name for name in parameters
                    if name not in copied and self._use_of(self._named(name), {name}) is Use.WRITTEN
                )
        return frozenset()

    def use(self, node: ast.expr) -> Use:
        """What becomes of the value of an expression."""
        return self._use_of([node], set())

    def _use_of(self, nodes: Iterable[ast.expr], names: set[str]) -> Use:
        uses = set()
        waiting = list(nodes)
        while waiting:
            for found in self._steps(waiting.pop()):
                if isinstance(found, Use):
                    uses.add(found)
                elif found not in names:
                    names.add(found)
                    waiting += self._named(found)
            if Use.WRITTEN in uses:
                return Use.WRITTEN
        return Use.RETURNED if uses else Use.READ

    def _named(self, name: str) -> Iterator[ast.expr]:
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Name) and node.id == name:
                parent = self._parents[node]
                is_changed = isinstance(parent, ast.AugAssign) and parent.target is node
                if is_changed or isinstance(node.ctx, ast.Load):
                    yield node

    def _steps(self, node: ast.expr) -> Iterator[Use | str]:
        """The uses of a value, and the names that it gets."""
        parent = self._parents[node]
        match parent:
            case ast.Attribute(attr=attr, ctx=context):
                called = self._parents[parent]
                is_called = isinstance(called, ast.Call) and called.func is parent
                if is_called and attr in _WRITERS:
                    yield Use.WRITTEN
                elif attr in _SAME_MEMORY:
                    if not isinstance(context, ast.Load):
                        yield Use.WRITTEN
                    yield from self._steps(called if is_called else parent)  # type: ignore[arg-type]
            case ast.Subscript(value=value) if value is node:
                if isinstance(parent.ctx, ast.Store):
                    yield Use.WRITTEN
                else:
                    yield from self._steps(parent)
            case ast.Assign() | ast.AnnAssign() | ast.NamedExpr():
                targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
                yield from (target.id for target in targets if isinstance(target, ast.Name))
                if isinstance(parent, ast.NamedExpr):
                    yield from self._steps(parent)
            case ast.AugAssign(target=target) if target is node:
                yield Use.WRITTEN
            case ast.Return():
                yield Use.RETURNED
            case ast.IfExp(test=test) if test is not node:
                yield from self._steps(parent)
            case ast.keyword(arg="out"):
                yield Use.WRITTEN
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[first, *_]):
                if first is not node:
                    return
                if name in _SAME_MEMORY:
                    yield from self._steps(parent)
                elif name in _WRITERS - _FUNCTIONS_ONLY:
                    yield Use.WRITTEN
