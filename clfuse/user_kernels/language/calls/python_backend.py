"""The Python backend: a kernel in plain Python, index by index, with checked bounds.

It is for debugging and for tests. The body is compiled anew from its source, with its own line
numbers, so that debuggers stop in it. It differs from calling the function itself: arrays check
every index, `math` on NumPy's numbers keeps their dtypes, and at a barrier the work-items of a
group wait for each other.
"""

from __future__ import annotations

import ast
import copy
import functools
import itertools
import math
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from clfuse.arrays.conversion import as_handle, host_node, host_scalar
from clfuse.arrays.handle import Handle, layout
from clfuse.engine.evaluate import host_copy
from clfuse.ir import build
from clfuse.ir.nodes import Node, rebind
from clfuse.user_kernels.language.array_route.accesses import Domain
from clfuse.user_kernels.language.source.checked_source import Source
from clfuse.user_kernels.language.source.intrinsics import (
    MATH,
    SPECIAL,
    atomic,
    group,
    is_of_group,
    local_array,
    special,
)
from clfuse.user_kernels.language.source.operators import BINARY
from clfuse.user_kernels.language.source.types import ArrayType

from .arguments import given_by
from .specializations import Specializations

_PREFIX: Final = "__clfuse_"
_WORD: Final = (1 << 64) - 1
class _State(threading.local):
    """A thread's: how many kernels call each other in plain Python, and the bodies they run."""

    depth = 0
    bodies: dict[int, Any]


_state = _State()


ANYWHERE: Final[list[None]] = []
"""An entry for each kernel that runs in plain Python in any thread: where there is none, no kernel
runs so in this one."""


def running() -> bool:
    """Whether a kernel runs in plain Python in this thread."""
    return bool(ANYWHERE) and _state.depth > 0


@contextmanager
def _running() -> Iterator[None]:
    ANYWHERE.append(None)
    _state.depth += 1
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _state.depth -= 1
        ANYWHERE.pop()


class FromEnd(int):
    """An index that does not depend on the call: a negative one counts from the end."""


class Checked:
    """An array whose elements are read and written one by one, within its bounds."""

    __slots__ = ("_array", "_kernel", "_name", "_source")

    def __init__(self, array: np.ndarray, name: str, source: Source) -> None:
        self._array = array
        self._name = name
        self._source = source

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        return self._array.shape

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._array.size

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._array.ndim

    @property
    def dtype(self) -> np.dtype:
        """Of the elements."""
        return self._array.dtype

    def __len__(self) -> int:
        return len(self._array)

    def __repr__(self) -> str:
        return repr(self._array)

    def _index(self, index: Any) -> tuple[int, ...]:
        given = index if isinstance(index, tuple) else (index,)
        found = []
        for axis, (item, extent) in enumerate(zip(given, self._array.shape, strict=True)):
            place = int(item)
            if isinstance(item, FromEnd) and item < 0:
                place += extent
            if not 0 <= place < extent:
                raise IndexError(
                    f"kernel {self._source.name} ({self._source.filename}), `{self._name}` in line "
                    f"{_line(self._source.filename)}: index {int(item)} is out of bounds for axis "
                    f"{axis} with size {extent}; negative indices count from the end only as "
                    "literals"
                )
            found.append(place)
        return tuple(found)

    def __getitem__(self, index: Any) -> Any:
        return self._array[self._index(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        place = self._index(index)
        if isinstance(value, float | np.floating) and self._array.dtype.kind in "iu":
            value = np.float64(value).astype(self._array.dtype)  # as C does it, also of NaN
        elif isinstance(value, np.generic):
            value = value.astype(self._array.dtype)
        elif type(value) is int and self._array.dtype.kind in "iu":
            value = np.uint64(value & _WORD).astype(self._array.dtype)  # indices wrap
        self._array[place] = value


def _line(filename: str) -> int:
    """The line of the innermost frame in a file."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename != filename:
        frame = frame.f_back
    return frame.f_lineno


# -- the body --------------------------------------------------------------------------------------


def _ufunc_of(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """`math`'s function for Python's numbers, the ufunc for NumPy's."""
    found = getattr(np, name)

    def as_numpy(*args: Any) -> Any:
        if len(args) <= found.nin:
            return found(*args)
        if function is math.log:
            return found(args[0]) / found(args[1])
        return functools.reduce(found, args)

    def call(*args: Any) -> Any:
        if any(isinstance(argument, np.generic) for argument in args):
            return as_numpy(*args)
        try:
            return function(*args)
        except (ValueError, OverflowError, ZeroDivisionError):
            return as_numpy(*args)  # NaN and infinities, as in a kernel

    return call


_RAISING: Final[dict[type, tuple[str, Callable[[Any, Any], Any]]]] = {
    kind: BINARY[kind]
    for kind in (ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift)
}
"""Operators with which Python's numbers raise where NumPy's, and kernels, have a result."""


def _operator_of(name: str, function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Python's operator; where it raises what NumPy makes of the same numbers."""
    ufunc = getattr(np, name)

    def call(one: Any, other: Any) -> Any:
        try:
            found = function(one, other)
        except (ZeroDivisionError, OverflowError, ValueError):
            return ufunc(one, other).item()
        is_root = isinstance(found, complex) and not isinstance(one, complex | np.complexfloating)
        if is_root and not isinstance(other, complex | np.complexfloating):
            return math.nan  # a root of a negative number
        return found

    return call


def _divmod(one: Any, other: Any) -> tuple[Any, Any]:
    return tuple([_operator_of(*_RAISING[kind])(one, other) for kind in (ast.FloorDiv, ast.Mod)])


def _where(test: Any, chosen: Any, other: Any) -> Any:
    return np.where(test, chosen, other)[()]


def _clip(value: Any, low: Any, high: Any) -> Any:
    return np.minimum(np.maximum(value, low), high)


class _Transform(ast.NodeTransformer):
    """The body with what is put here in the place of a few names; they end up in `injected`."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.injected: dict[str, Any] = {
            f"{_PREFIX}from_end": FromEnd,
            f"{_PREFIX}checked": lambda array, name: Checked(array, name, source),
        }

    @staticmethod
    def _is_ours(node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id.startswith(_PREFIX)

    def _meaning(self, node: ast.expr) -> Any:
        try:
            return self.source.dotted(node)
        except NameError:
            return None

    def _inject(self, name: str, value: Any, node: ast.AST) -> ast.expr:
        self.injected[_PREFIX + name] = value
        return ast.copy_location(ast.Name(_PREFIX + name, ast.Load()), node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        if isinstance(node.value, ast.Attribute):
            return node
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        marked = [self._marked(part) for part in parts]
        index = marked[0] if len(marked) == 1 else ast.Tuple(marked, ast.Load())
        node.slice = ast.copy_location(index, node.slice)
        return node

    def _marked(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Constant) or any(
            isinstance(part, ast.Subscript)
            or (isinstance(part, ast.Call) and not self._is_ours(part.func))
            or (isinstance(part, ast.Name) and self.source.is_own(part.id))
            for part in ast.walk(node)
        ):
            return node
        name = ast.copy_location(ast.Name(f"{_PREFIX}from_end", ast.Load()), node)
        return ast.copy_location(ast.Call(name, [node], []), node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        found = _RAISING.get(type(node.op))
        if found is None:
            return node
        function = self._inject(found[0], _operator_of(*found), node)
        return ast.copy_location(ast.Call(function, [node.left, node.right], []), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        if not isinstance(node.target, ast.Name) or type(node.op) not in _RAISING:
            self.generic_visit(node)  # elements of arrays are NumPy's numbers
            return node
        old = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        value = ast.copy_location(ast.BinOp(old, node.op, node.value), node)
        assigned = ast.copy_location(ast.Assign([node.target], value), node)
        self.generic_visit(assigned)
        return assigned

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        called = self._meaning(node.func)
        if called is divmod:
            node.func = self._inject("divmod", _divmod, node.func)
        if getattr(called, "__self__", None) is atomic and len(node.args) > 1:
            at = node.args[1]
            if isinstance(at, ast.Tuple):
                at.elts = [self._marked(part) for part in at.elts]
            else:
                node.args[1] = self._marked(at)
        try:
            ufunc = MATH.get(called)
            own = SPECIAL.get(called)
        except TypeError:
            ufunc = own = None
        if own is not None:
            node.func = self._inject(f"math_{own}", special(called), node.func)
        elif ufunc is not None and called not in (math.floor, math.ceil, math.trunc):
            node.func = self._inject(f"math_{ufunc}", _ufunc_of(ufunc, called), node.func)
        elif getattr(called, "__name__", "") in ("where", "clip") and (
            getattr(called, "__module__", "").split(".")[0] in ("numpy", "clfuse")
        ):
            name = called.__name__
            node.func = self._inject(name, _where if name == "where" else _clip, node.func)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return node
        assigned = ast.Assign([node.target], node.value)
        return self.visit_Assign(ast.copy_location(assigned, node))

    def visit_Assign(self, node: ast.Assign) -> Any:
        called: Any = None
        if isinstance(node.value, ast.Call):
            called = self._meaning(node.value.func)
        shared = is_of_group(called, "local_array")
        self.generic_visit(node)
        if shared:
            assert isinstance(node.value, ast.Call)
            # One array a name, as on the device: line and column would make two of one that is
            # bound twice.
            variable = ast.copy_location(ast.Constant(ast.unparse(node.targets[0])), node.value)
            node.value.keywords.append(ast.keyword("place", variable))
        if called is local_array or shared:
            name = ast.Name(f"{_PREFIX}checked", ast.Load())
            text = ast.Constant(ast.unparse(node.targets[0]))
            node.value = ast.copy_location(ast.Call(name, [node.value, text], []), node.value)
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        if isinstance(node.value, ast.Call):
            called = self._meaning(node.value.func)
            if is_of_group(called, "barrier"):
                return ast.copy_location(ast.Expr(ast.Yield(None)), node)
        self.generic_visit(node)
        return node


def body(source: Source) -> Callable[..., Any]:
    """The function as Python runs it here, with its surroundings as they are now."""
    tree = copy.deepcopy(source.whole)
    tree.decorator_list = []
    tree.returns = None
    tree.args.defaults = []  # they are values, made at decoration
    transform = _Transform(source)
    transform.visit(tree)
    free = source.function.__code__.co_freevars
    arguments = ast.arguments([], [ast.arg(name) for name in free], None, [], [], None, [])
    factory = ast.FunctionDef(
        f"{_PREFIX}factory", arguments, [tree, ast.Return(ast.Name(tree.name, ast.Load()))], [],
        None, None,
    )
    if sys.version_info >= (3, 12):
        factory.type_params = []
    ast.copy_location(factory, tree)
    module = ast.fix_missing_locations(ast.Module([factory], []))
    scope = {**source.function.__globals__, **transform.injected}
    exec(compile(module, source.filename, "exec"), scope)
    values = [source.lookup(name) for name in free]
    made = scope[f"{_PREFIX}factory"](*values)
    made.__defaults__ = source.function.__defaults__
    return made  # type: ignore[no-any-return]


def call(function: Any, args: tuple[Any, ...], named: dict[str, Any] | None = None) -> Any:
    """A function of the language called from Python, or from a kernel that runs in Python."""
    if not running():
        return function.__wrapped__(*args, **(named or {}))
    found = _state.__dict__.setdefault("bodies", {})
    source = function.__clfuse_source__
    if id(source) not in found:
        found[id(source)] = body(source)
    return found[id(source)](*args, **(named or {}))


# -- running ---------------------------------------------------------------------------------------


def _launch(
    source: Source, size: int, domain: Domain, args: list[Any], out: list[np.ndarray]
) -> None:
    """Every index in turn; groups of `size` work-item by work-item between barriers."""
    with _running():
        _state.bodies = {}
        function = body(source)
        ranges = [range(*each) for each in domain]
        if size:
            _groups(size, function, ranges, args)
            return
        for index in itertools.product(*ranges):
            found = function(*index, *args)
            values = found if isinstance(found, tuple) else (found,)
            for array, value in zip(out, values, strict=False):
                place = tuple([k - start for k, (start, _) in zip(index, domain, strict=True)])
                array[place] = value


def _groups(size: int, function: Callable[..., Any], ranges: list[range], args: list[Any]) -> None:
    group._size = size
    for outer in itertools.product(*ranges[:-1]):
        for number, first in enumerate(range(0, len(ranges[-1]), size)):
            group._shared = {}
            group._group = number
            waiting = []
            for item in range(size):
                group._local = item
                found = function(*outer, ranges[-1][first + item], *args)
                if found is not None:
                    waiting.append((item, found))
            while waiting:
                going = []
                for item, steps in waiting:
                    group._local = item
                    if next(steps, _DONE) is not _DONE:
                        going.append((item, steps))
                waiting = going


_DONE: Final = object()


def run(kernel: Specializations, domain: Domain, args: tuple[Any, ...]) -> Any:
    """`Kernel.python`."""
    nodes = on_arrays(kernel, domain, args)
    arrays = [np.array(host_copy(node)) for node in nodes]
    if not arrays:
        return None
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def on_arrays(kernel: Specializations, domain: Domain, args: tuple[Any, ...]) -> list[Node]:
    """Run the kernel at once; what it writes is in the arrays afterwards, what it returns in
    nodes."""
    source = kernel.source
    given = given_by(source.function.__name__, args)
    typed = kernel.function(given.kinds, len(domain))
    kernel.check_groups(domain)
    copies: dict[int, np.ndarray] = {}
    passed: list[Any] = []
    for name, argument, kind in zip(typed.parameters, args, given.kinds, strict=True):
        if isinstance(kind, ArrayType):
            if isinstance(argument, Handle):
                cell = argument._storage
                if id(cell) not in copies:
                    copies[id(cell)] = host_copy(cell.node).reshape(-1)
                array = _as_view(argument, copies[id(cell)])
            else:
                array = argument
            passed.append(Checked(array, name, source))
        elif isinstance(argument, Handle | np.ndarray):
            passed.append(host_scalar(as_handle(argument)))
        elif isinstance(argument, int) and kind.kind == "u":
            passed.append(np.uint64(argument))  # a Python integer that an int64 does not hold
        else:
            passed.append(argument)
    shape = tuple([max(stop - start, 0) for start, stop in domain])
    out = [np.zeros(shape, result.dtype) for result in typed.results]
    _launch(source, kernel.group, domain, passed, out)
    written: dict[int, Any] = {}
    for name, argument in zip(typed.parameters, args, strict=True):
        if name in typed.writes and isinstance(argument, Handle):
            written[id(argument._storage)] = argument._storage
    for number, cell in written.items():
        rebind(cell, _node(copies[number].reshape(cell.node.shape)))
    return [_node(values) for values in out]


def _node(array: np.ndarray) -> Node:
    return host_node(array) if array.size else build.full(array.dtype.type(0), array.shape)


def _as_view(handle: Handle, base: np.ndarray) -> np.ndarray:
    offset, strides = layout(handle)
    size = handle._dtype.itemsize
    return np.ndarray(handle._shape, handle._dtype, base.data if base.size else None,
                      offset * size, tuple([step * size for step in strides]))

