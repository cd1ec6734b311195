"""Wrong calls that NumPy's own tests make: what stands under `assert_raises` or `pytest.raises`.

NumPy's wheel holds its tests. A test function without parameters and decorators is rewritten: every
call that it expects to fail is made, and the class of the exception noted; its other assertions are
left out, because they are not the subject. It is run under NumPy and under the module under test,
which stands where the test's module has NumPy.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

import numpy as np
import pytest

from tests.fuzz.wrong_calls import public

MODULES: Final = (
    "_core.tests.test_einsum", "_core.tests.test_function_base", "_core.tests.test_indexerrors",
    "_core.tests.test_indexing", "_core.tests.test_item_selection", "_core.tests.test_multiarray",
    "_core.tests.test_numeric", "_core.tests.test_shape_base", "_core.tests.test_ufunc",
    "_core.tests.test_umath", "_core.tests.test_nep50_promotions", "fft.tests.test_pocketfft",
    "lib.tests.test_arraypad", "lib.tests.test_arraysetops", "lib.tests.test_function_base",
    "lib.tests.test_histograms", "lib.tests.test_index_tricks", "lib.tests.test_nanfunctions",
    "lib.tests.test_packbits", "lib.tests.test_polynomial", "lib.tests.test_shape_base",
    "lib.tests.test_stride_tricks", "lib.tests.test_twodim_base", "lib.tests.test_ufunclike",
    "linalg.tests.test_linalg", "linalg.tests.test_regression",
    "random.tests.test_generator_mt19937", "random.tests.test_random",
    "random.tests.test_randomstate",
)  # fmt: skip
"""Of NumPy's test modules: those of arrays and functions, not of dtypes, files and C internals."""

_EXPECTING: Final = ("assert_raises", "assert_raises_regex", "raises")
_WARNING: Final = ("warns", "assert_warns", "deprecated_call")
_RECORD: Final = "_note_refusal"


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


class _Rewriting(ast.NodeTransformer):
    """Notes what is expected to fail, and drops all other assertions."""

    def __init__(self) -> None:
        self.found = 0

    def _noted(self, body: list[ast.stmt], line: int) -> ast.stmt:
        self.found += 1
        source = (f"try:\n    pass\nexcept Exception as _error:\n    {_RECORD}({line}, _error)\n"
                  f"else:\n    {_RECORD}({line}, None)")
        made = ast.parse(source).body[0]
        assert isinstance(made, ast.Try)
        made.body = body
        return made

    def visit_With(self, node: ast.With) -> ast.stmt:
        self.generic_visit(node)
        for item in node.items:
            call = item.context_expr
            if isinstance(call, ast.Call) and _name(call.func) in _EXPECTING:
                return self._noted(node.body, node.lineno)
            if isinstance(call, ast.Call) and _name(call.func) in _WARNING:
                return ast.If(ast.Constant(True), node.body, [])
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        call = node.value
        if not isinstance(call, ast.Call):
            return node
        name = _name(call.func)
        if name in _EXPECTING and len(call.args) > 1:
            called = call.args[2:] if name == "assert_raises_regex" else call.args[1:]
            if called:
                made = ast.Expr(ast.Call(called[0], called[1:], call.keywords))
                return self._noted([made], node.lineno)
        return ast.Pass() if name.startswith("assert_") else node

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        return ast.Pass()


@dataclass(frozen=True)
class Refusing:
    """One test function: ``module::Class::name``, and how to run it under a library."""

    name: str
    run: Callable[[ModuleType], dict[tuple[int, int], BaseException | None]]


def _globals(module: ModuleType, library: ModuleType) -> dict[str, Any]:
    """The names of a test module, with the library's for NumPy's."""
    found = dict(vars(module))
    if library is np:
        return found
    for name, value in list(found.items()):
        if value is np:
            found[name] = library
        elif name[:2] != "__" and getattr(np, name, None) is value and value is not None:
            found[name] = getattr(library, name)
        elif any(value is known for known in (np.linalg, np.fft, np.random)):
            found[name] = getattr(library, value.__name__.rpartition(".")[2])
        elif callable(value):
            for part in ("linalg", "random"):
                if getattr(getattr(np, part), name, None) is value:
                    found[name] = getattr(getattr(library, part), name)
    return found


def _runner(module: ModuleType, owner: type | None, tree: ast.FunctionDef) -> Callable[..., Any]:
    def run(library: ModuleType) -> dict[tuple[int, int], BaseException | None]:
        noted: dict[tuple[int, int], BaseException | None] = {}

        def note(line: int, error: BaseException | None) -> None:
            times = sum(known == line for known, _ in noted)
            noted[line, times] = error

        namespace = {**_globals(module, library), _RECORD: note}
        wrapper = ast.fix_missing_locations(ast.Module([tree], []))
        exec(compile(wrapper, module.__file__ or "", "exec"), namespace)
        arguments = []
        if owner is not None:
            instance = owner()
            if hasattr(instance, "setup_method"):
                instance.setup_method()
            for name, value in list(vars(instance).items()):
                if library is not np and type(value) is np.ndarray:
                    setattr(instance, name, library.array(value))
            arguments = [instance]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                namespace[tree.name](*arguments)
            except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
                # What follows in the test is not reached.
                noted[-1, 0] = error
        return noted

    return run


def refusing() -> Iterator[Refusing]:
    """NumPy's test functions that expect something to be refused."""
    for path in MODULES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numpy.matrix
            try:
                module = importlib.import_module(f"numpy.{path}")
            except ImportError:  # another version of NumPy
                continue
        tree = ast.parse(inspect.getsource(module))
        for item in tree.body:
            functions = item.body if isinstance(item, ast.ClassDef) else [item]
            owner = getattr(module, item.name) if isinstance(item, ast.ClassDef) else None
            for function in functions:
                if not isinstance(function, ast.FunctionDef) or function.decorator_list:
                    continue
                if not function.name.startswith("test"):
                    continue
                if len(function.args.args) != (owner is not None):
                    continue
                rewriting = _Rewriting()
                made = rewriting.visit(function)
                if rewriting.found:
                    names = [path, *([owner.__name__] if owner else []), function.name]
                    yield Refusing("::".join(names), _runner(module, owner, made))


def differences(case: Refusing, library: ModuleType) -> tuple[int, list[str]]:
    """How many refusals of NumPy's were compared, and what differs, in words."""
    expected = case.run(np)
    actual = case.run(library)
    compared, found = 0, []
    for place, error in expected.items():
        if error is None or place[0] < 0 or place not in actual:
            continue  # NumPy takes it, or the test went another way
        compared += 1
        ours = actual[place]
        if not isinstance(ours, public(type(error))):
            raised = "nothing was raised" if ours is None else f"{type(ours).__name__}: {ours}"
            found.append(f"{case.name}, line {place[0]}: NumPy raises {type(error).__name__} "
                         f"({textwrap.shorten(str(error), 60)}), here: {raised[:120]}")
    return compared, found
