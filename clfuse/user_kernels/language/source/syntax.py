"""The parser: reads a kernel's source at decoration, and says what in it is not in the language.

The language is a subset of Python: what it has means what Python and NumPy mean by it.
"""

from __future__ import annotations

import ast
import builtins
import copy
import inspect
import types
from collections.abc import Callable
from typing import Any, Final, NoReturn

import numpy as np

from clfuse.config import settings
from clfuse.errors import KernelError

from . import definite_assignment
from .checked_source import Source, root_of
from .operators import COMPARISONS

_STATEMENTS: Final[dict[str, str]] = {
    "Assert": "kernels raise nothing: CLFUSE_CHECK=bounds checks indices, and with"
    " CLFUSE_KERNELS=python they may assert",
    "AsyncFor": "write `for k in range(...)`",
    "AsyncFunctionDef": "write a function with @clfuse.device_function outside of the kernel",
    "AsyncWith": "there is nothing to enter or leave in a kernel",
    "ClassDef": "write the class outside of the kernel, and pass numbers and arrays",
    "Delete": "names of a kernel end with it",
    "FunctionDef": "write a function with @clfuse.device_function outside of the kernel",
    "Global": "a kernel changes only arrays that it is given: return the value, or write to one",
    "Import": "import it outside of the kernel",
    "ImportFrom": "import it outside of the kernel",
    "Match": "write if, elif and else",
    "Nonlocal": "a kernel changes only arrays that it is given: return the value, or write to one",
    "Raise": "kernels raise nothing: write a code to an array, and look at it after the call",
    "Try": "kernels raise nothing, so nothing is caught",
    "TryStar": "kernels raise nothing, so nothing is caught",
    "TypeAlias": "types are inferred",
    "With": "there is nothing to enter or leave in a kernel",
}
"""Statements that are not in the language -> what to write instead."""

_EXPRESSIONS: Final[dict[str, str]] = {
    "Await": "kernels do not wait",
    "Dict": "use local arrays: clfuse.local_array(size, dtype)",
    "DictComp": "use local arrays: clfuse.local_array(size, dtype)",
    "FormattedValue": "kernels have no text",
    "GeneratorExp": "write a for loop",
    "JoinedStr": "kernels have no text",
    "Lambda": "write a function with @clfuse.device_function outside of the kernel",
    "List": "use local arrays: clfuse.local_array(size, dtype)",
    "ListComp": "write a for loop, into clfuse.local_array(size, dtype)",
    "NamedExpr": "assign on a line of its own",
    "Set": "use local arrays: clfuse.local_array(size, dtype)",
    "SetComp": "write a for loop",
    "Slice": "write a loop over the indices, or pass a view: kernel(n, x[1:])",
    "Starred": "name every element",
    "Yield": "return the value",
    "YieldFrom": "return the value",
}
"""Expressions that are not in the language -> what to write instead."""

_TAKES_TUPLES: Final = frozenset(
    "local_array add sub min max and_ or_ xor exchange compare_exchange".split()
)
"""What takes the indices of an element, or a shape."""



def is_shape(node: ast.expr) -> bool:
    """Whether it is the shape of an array by its name: ``x.shape``."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "shape"
        and isinstance(node.value, ast.Name)
    )


def is_divmod(source: Source, node: ast.expr) -> bool:
    """Whether it is ``divmod(x, y)``, Python's or NumPy's."""
    if not isinstance(node, ast.Call) or len(node.args) != 2 or node.keywords:
        return False
    try:
        called = source.dotted(node.func)
    except (NameError, KernelError):
        return False
    return called in (divmod, np.divmod) or getattr(called, "numpy", None) is np.divmod


_UNCALLABLE: Final = {
    "print": "look at the arrays after the call, or set CLFUSE_KERNELS=python, where it prints",
    "breakpoint": "set CLFUSE_KERNELS=python, where it stops",
    "sum": "write a loop, or let the kernel return the term: kernel.reduce(n, ...)",
    "range": "only `for k in range(...)` has it",
    "enumerate": "write `for k in range(...)`",
    "zip": "write `for k in range(...)`",
    "list": "use local arrays: clfuse.local_array(size, dtype)",
    "sorted": "sort the array outside of the kernel",
    "divmod": "write x // y and x % y, or q, r = divmod(x, y)",
    "isinstance": "types are known when a kernel is called: write two kernels",
    "all": "write a loop",
    "any": "write a loop",
}
"""Builtins that are not in the language -> what to write instead."""


def read_source(function: Callable[..., Any]) -> Source:
    """The checked source of a function.

    Raises KernelError: what is not in the language, with file and line, or a function without
        source.
    """
    if not isinstance(function, types.FunctionType):
        raise KernelError(f"{function!r} is no Python function: decorate a `def`")
    if hasattr(function, "__wrapped__"):
        raise KernelError(
            f"{function.__name__} is what another decorator made of it, which its source does not "
            "show: decorate the `def` itself"
        )
    filename = function.__code__.co_filename
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise KernelError(
            f"the source of {function.__name__} cannot be read ({filename}): kernels must be "
            "written in a file or a notebook cell",
            filename,
        ) from None
    # Comments and text may be further left than the `def`: it is read as part of a block.
    tree = ast.parse("".join(["if True:\n" if lines[0][0].isspace() else "\n", *lines]))
    body = getattr(tree.body[0], "body", []) if lines[0][0].isspace() else tree.body
    found = body[0] if len(body) == 1 else None
    if not isinstance(found, ast.FunctionDef):
        raise KernelError(
            f"{filename}:{first}: {function.__name__} is no `def` of its own: decorate a `def`",
            filename,
            first,
        )
    ast.increment_lineno(tree, first - 2)
    whole = found
    if settings.kernels == "python":
        found = _Silent().visit(copy.deepcopy(whole))
        assert isinstance(found, ast.FunctionDef)
    arguments = found.args
    source = Source(function, found, filename, tuple([a.arg for a in arguments.args]), whole)
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.posonlyargs:
        raise source.error(found.lineno, "kernels take plain positional arguments: no *, ** or /")
    source.defaults = _defaults_of(source)
    names = [node for node in ast.walk(found) if isinstance(node, ast.Name)]
    source.locals = frozenset([node.id for node in names if isinstance(node.ctx, ast.Store)])
    closure = function.__closure__ or ()
    source.cells = dict(zip(function.__code__.co_freevars, closure, strict=True))
    checker = _Checker(source)
    checker.block(_without_docstring(found.body))
    source.returns_value = checker.returns_value
    source.free = tuple(dict.fromkeys(checker.free))
    definite_assignment.check(source, _without_docstring(found.body))
    return source


class _Silent(ast.NodeTransformer):
    """A kernel without what only says something."""

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node)

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        called = node.value.func if isinstance(node.value, ast.Call) else None
        if isinstance(called, ast.Name) and called.id in ("print", "breakpoint"):
            return ast.copy_location(ast.Pass(), node)
        return node


def _defaults_of(source: Source) -> dict[str, Any]:
    """The defaults of the last parameters: numbers, as they were at decoration."""
    values = source.function.__defaults__ or ()
    found = dict(zip(source.parameters[len(source.parameters) - len(values):], values, strict=True))
    for name, value in found.items():
        if not isinstance(value, bool | int | float | complex | np.generic):
            raise source.error(
                source.tree.lineno,
                f"the default of `{name}` is {type(value).__name__}: defaults are numbers; pass "
                "arrays in every call",
            )
    return found


def body_of(source: Source) -> list[ast.stmt]:
    """The statements of a source, without its docstring."""
    return _without_docstring(source.tree.body)


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0] if body else None
    value = first.value if isinstance(first, ast.Expr) else None
    is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
    return body[1:] if is_text else body


class _Checker:
    """Walks over a function's body; raises for the first thing that is not in the language."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.free: list[str] = []
        self.returns_value = False
        self.loops = 0

    def refuse(self, node: ast.AST, message: str) -> NoReturn:
        raise self.source.error(node, message)

    def block(self, body: list[ast.stmt]) -> None:
        for statement in body:
            name = type(statement).__name__
            known = getattr(self, name, None)
            if known is None or not name[0].isupper():
                advice = _STATEMENTS.get(name, "")
                self.refuse(statement, f"not in the language of kernels; {advice}")
            known(statement)

    # -- statements -------------------------------------------------------------------------------

    def Pass(self, node: ast.Pass) -> None:
        """Nothing."""

    def Assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            if not all(isinstance(each, ast.Name | ast.Subscript) for each in node.targets):
                self.refuse(node, "write one assignment a line")
            for each in node.targets:
                self.target(each)
            self.expression(node.value)
            return
        (target,) = node.targets
        if isinstance(target, ast.Tuple):
            for element in target.elts:
                if not isinstance(element, ast.Name | ast.Subscript):
                    self.refuse(target, "write names and elements of arrays left of `=`")
                self.target(element)
            if isinstance(node.value, ast.Tuple):
                if len(node.value.elts) != len(target.elts):
                    self.refuse(node, "as many values as names are needed")
                for element in node.value.elts:
                    self.expression(element)
                return
            if is_shape(node.value):
                return
            if is_divmod(self.source, node.value):
                assert isinstance(node.value, ast.Call)
                for element in node.value.args:
                    self.expression(element)
                return
        else:
            self.target(target)
        self.expression(node.value)

    def target(self, node: ast.expr) -> None:
        if isinstance(node, ast.Subscript):
            if not isinstance(node.value, ast.Name):
                self.refuse(node, "write to elements of an array by its name: y[i] = ...")
            self.index(node)
        elif not isinstance(node, ast.Name):
            self.refuse(node, "only names and elements of arrays can be assigned to")

    def AnnAssign(self, node: ast.AnnAssign) -> None:
        """As without the annotation, which means nothing to Python either."""
        self.target(node.target)
        if node.value is not None:
            self.expression(node.value)

    def AugAssign(self, node: ast.AugAssign) -> None:
        self.target(node.target)
        if isinstance(node.op, ast.MatMult):
            self.refuse(node, "write a loop, or multiply the matrices outside of the kernel")
        self.expression(node.value)

    def If(self, node: ast.If) -> None:
        self.expression(node.test)
        self.block(node.body)
        self.block(node.orelse)

    def For(self, node: ast.For) -> None:
        if not isinstance(node.target, ast.Name):
            self.refuse(node.target, "a loop has one name: write `for k in range(len(x))`")
        call = node.iter
        plain = isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        if not plain or call.func.id != "range" or call.keywords:  # type: ignore[attr-defined]
            self.refuse(node.iter, "loops run over range: write `for k in range(len(x))`")
        assert isinstance(call, ast.Call)
        if not 1 <= len(call.args) <= 3:
            self.refuse(call, "range takes one to three numbers")
        for argument in call.args:
            self.expression(argument)
        self.loop(node.body)
        self.block(node.orelse)

    def While(self, node: ast.While) -> None:
        self.expression(node.test)
        self.loop(node.body)
        self.block(node.orelse)

    def loop(self, body: list[ast.stmt]) -> None:
        self.loops += 1
        self.block(body)
        self.loops -= 1

    def Break(self, node: ast.Break) -> None:
        """Python has made sure that it stands in a loop."""

    def Continue(self, node: ast.Continue) -> None:
        """Python has made sure that it stands in a loop."""

    def Return(self, node: ast.Return) -> None:
        if node.value is None:
            return
        self.returns_value = True
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        for value in values:
            self.expression(value)

    def Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Call):
            if isinstance(node.value, ast.Yield | ast.YieldFrom | ast.Await):
                self.refuse(node, "a kernel returns one value an index, or writes to arrays")
            self.refuse(node, "calculated and thrown away: assign it, or leave it out")
        self.expression(node.value)

    # -- expressions ------------------------------------------------------------------------------

    def expression(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant):
            if not isinstance(node.value, bool | int | float | complex):
                is_infinite = str(node.value).strip("+-").lower() in ("inf", "infinity", "nan")
                self.refuse(
                    node,
                    "write math.inf or math.nan" if is_infinite else
                    "kernels have numbers and arrays of numbers, no text and no None",
                )
        elif isinstance(node, ast.Name):
            self.name(node)
        elif isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.MatMult):
                self.refuse(node, "write a loop, or multiply the matrices outside of the kernel")
            self.expression(node.left)
            self.expression(node.right)
        elif isinstance(node, ast.UnaryOp):
            self.expression(node.operand)
        elif isinstance(node, ast.BoolOp):
            for value in node.values:
                self.expression(value)
        elif isinstance(node, ast.Compare):
            for operator in node.ops:
                if not isinstance(operator, tuple(COMPARISONS)):
                    self.refuse(node, "`in` and `is` are not in the language; write == or a loop")
            for value in (node.left, *node.comparators):
                self.expression(value)
        elif isinstance(node, ast.IfExp):
            for value in (node.test, node.body, node.orelse):
                self.expression(value)
        elif isinstance(node, ast.Call):
            self.call(node)
        elif isinstance(node, ast.Subscript):
            self.subscript(node)
        elif isinstance(node, ast.Attribute):
            self.attribute(node)
        elif isinstance(node, ast.Tuple):
            self.refuse(node, "tuples stand in `return` and in `a, b = ...` only")
        else:
            advice = _EXPRESSIONS.get(type(node).__name__, "")
            self.refuse(node, f"not in the language of kernels; {advice}")

    def name(self, node: ast.Name) -> None:
        if not self.source.is_own(node.id):
            self.free.append(node.id)

    def subscript(self, node: ast.Subscript) -> None:
        value = node.value
        if isinstance(value, ast.Attribute) and value.attr == "shape":
            if not isinstance(value.value, ast.Name):
                self.refuse(node, "shapes are those of arrays by their name: x.shape[0]")
            self.index(node)
            return
        if not isinstance(value, ast.Name):
            self.refuse(node, "arrays are indexed at once and by their name: x[i, j]")
        self.index(node)

    def index(self, node: ast.Subscript) -> None:
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for index in indices:
            if isinstance(index, ast.Slice):
                self.refuse(node, _EXPRESSIONS["Slice"])
            if isinstance(index, ast.Constant) and (index.value is None or index.value is ...):
                self.refuse(node, "an element has one number an axis: x[i, j]")
            self.expression(index)

    def attribute(self, node: ast.Attribute) -> None:
        root = root_of(node)
        if isinstance(root, ast.Name) and not self.source.is_own(root.id):
            self.free.append(root.id)
        elif node.attr in ("real", "imag", "size", "ndim"):
            self.expression(node.value)
        elif node.attr == "shape":
            self.refuse(node, "write x.shape[0], or n, m = x.shape")
        else:
            self.refuse(
                node,
                "arrays have .shape[k], .size and .ndim in kernels, numbers .real and .imag",
            )

    def call(self, node: ast.Call) -> None:
        function = node.func
        if not isinstance(function, ast.Name | ast.Attribute):
            self.refuse(node, "functions are called by their name")
        root = root_of(function)
        if not isinstance(root, ast.Name) or self.source.is_own(root.id):
            what = getattr(function, "attr", getattr(function, "id", ""))
            instead = f"numpy.{what}(x) of numbers, or a loop"
            if what == "astype":
                instead = "numpy.float32(x), or another dtype's name"
            elif not isinstance(getattr(np, what, None), np.ufunc):
                instead = "a loop, or calculate it before the call and pass it"
            self.refuse(node, f"methods of arrays are not in the language: write {instead}")
        assert isinstance(root, ast.Name)
        if isinstance(function, ast.Name) and function.id in _UNCALLABLE:
            is_builtin = getattr(builtins, function.id, None) is _known(self.source, function.id)
            if is_builtin:
                self.refuse(node, f"not in the language of kernels; {_UNCALLABLE[function.id]}")
        self.free.append(root.id)
        for keyword in node.keywords:
            if keyword.arg is None:
                self.refuse(node, "name every argument: no **")
            self.expression(keyword.value) if keyword.arg != "dtype" else None
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                self.refuse(node, "name every argument: no *")
            name = getattr(function, "attr", getattr(function, "id", ""))
            is_index = isinstance(argument, ast.Tuple) and name in _TAKES_TUPLES
            for part in argument.elts if is_index else [argument]:  # type: ignore[attr-defined]
                self.expression(part)


def _known(source: Source, name: str) -> Any:
    """What a name means now, None if nothing yet."""
    try:
        return source.lookup(name)
    except NameError:
        return None
