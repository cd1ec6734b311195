"""Types of calls in a kernel: `math`, ufuncs, conversions, atomics, functions of the language."""

from __future__ import annotations

import ast
import math
from types import FunctionType
from typing import Any, Final

import numpy as np

from clfuse.arrays.handle import DTYPES, native_dtype
from clfuse.errors import KernelError
from clfuse.functions.math.ufunc import ufunc
from clfuse.ir.nodes import loop

from .checked_source import MISSING, Source
from .expressions import Expressions, changes_arrays
from .intrinsics import MATH, SPECIAL, atomic, group, local_array, philox, special
from .tree import Apply, Atomic, Call, Const, Convert, Expr, Function, Group, Select
from .types import BOOL, FLOAT, INT, ArrayType, Type, element_type, operation, row, strong, weak_of

_ROUNDED_TO_INT: Final = (math.floor, math.ceil, math.trunc)
_ATOMIC_INTEGERS: Final = "int32, uint32, int64, uint64"


_DRAW: Final = "write clfuse.philox.uniform(seed, i), normal or bits: numbers by their place"
_FOLD: Final = "write a loop, or let the kernel return the term: kernel.reduce(n, ...)"
_MAKE: Final = "write clfuse.local_array(size, dtype) with a size that is known, or pass an array"
_INSTEAD: Final = {
    **dict.fromkeys(
        ("random", "rand", "randn", "uniform", "normal", "standard_normal", "randint", "integers"),
        _DRAW,
    ),
    **dict.fromkeys(("zeros", "ones", "empty", "full", "array", "asarray"), _MAKE),
    **dict.fromkeys(("round", "around"), "write numpy.rint(x)"),
    **dict.fromkeys(
        ("sum", "prod", "fsum", "sumprod", "mean", "dot", "vdot", "dist", "norm", "any", "all",
         "amin", "amax"),
        _FOLD,
    ),
    **dict.fromkeys(("comb", "factorial", "perm"), "write a loop"),
    **dict.fromkeys(("modf", "frexp"), "write math.trunc(x) and x - math.trunc(x)"),
    "isclose": "write abs(x - y) <= limit",
    "isqrt": "write int(math.sqrt(n))",
    "remainder": "write x - y * numpy.rint(x / y)",
    "real": "write x.real",
    "imag": "write x.imag",
}
"""Functions that are not in the language -> what to write instead."""

_PAIR: Final = "write q, r = divmod(x, y)"
_PYTHONS: Final = (abs, pow, round, min, max, int, float, bool, complex, len)
_ANY_NUMBER: Final = (math.gcd, math.hypot, math.lcm)
"""Functions of `math` that take any number of numbers; two at a time, as their ufuncs do."""


class Functions(Expressions):
    """`Expressions`, with calls."""

    def type_function(self, other: Source, kinds: dict[str, Type | ArrayType]) -> Function:
        """Another function of the language with its types."""
        raise NotImplementedError

    def call_of_function(self, node: ast.expr) -> Call | None:
        """The call of another function of the language; None for all else."""
        if not isinstance(node, ast.Call):
            return None
        try:
            called = self.source.dotted(node.func)
        except NameError as missing:
            self.refuse(node, str(missing))
        other = getattr(called, "__clfuse_source__", None)
        if not isinstance(other, Source):
            return None
        if other in self.calling:
            self.refuse(node, "functions of kernels cannot call themselves: write a loop")
        given: dict[str, Any] = dict(zip(other.parameters, node.args, strict=False))
        for word in node.keywords:
            if word.arg in given or word.arg not in other.parameters:
                self.refuse(node, f"{other.name} takes ({', '.join(other.parameters)})")
            given[word.arg] = word.value
        given = other.defaults | given
        if len(given) != len(other.parameters) or len(node.args) > len(other.parameters):
            self.refuse(node, f"{other.name} takes ({', '.join(other.parameters)})")
        kinds: dict[str, Type | ArrayType] = {}
        args: dict[str, Expr] = {}
        arrays: dict[str, str] = {}
        for name in other.parameters:
            part = given[name]
            if not isinstance(part, ast.expr):
                args[name] = self.number(part, node)
                kinds[name] = args[name].type
            elif isinstance(part, ast.Name) and part.id in self.function.arrays:
                kinds[name] = self.function.arrays[part.id]
                arrays[name] = part.id
            else:
                if isinstance(part, ast.Name) and part.id in self.function.local_arrays:
                    self.refuse(node, f"`{part.id}` is a local array, which no function is given: "
                                      "pass its elements")
                args[name] = self.value(part)
                kinds[name] = args[name].type
        function = self.type_function(other, kinds)
        own = self.function
        for mine, theirs in ((own.reads, function.reads), (own.writes, function.writes),
                             (own.atomics, function.atomics)):
            mine.update(arrays[name] for name in theirs)
        own.reasons += [f"{why} of {other.name}" for why in function.reasons]
        own.captured.update(function.captured)
        for name, dtypes in function.narrow.items():
            if name in args:
                self.taken_as(args[name], dtypes)
        type_ = function.results[0] if len(function.results) == 1 else BOOL
        return Call(type_, node.lineno, function, args, arrays)

    def called(self, node: ast.Call) -> Expr:
        called = self.source.dotted(node.func)
        _check_call(self.source, node, called)
        if called is len:
            (array,) = node.args if len(node.args) == 1 else (None,)
            if not isinstance(array, ast.Name):
                self.refuse(node, "len takes an array by its name")
            return self.size(node, array.id, 0)
        owner = getattr(called, "__self__", None)
        if owner is atomic:
            return self._atomic(node, called.__name__)
        if owner is group:
            return self._group(node, called.__name__)
        if called is local_array:
            self.refuse(node, "a local array stands alone: name = clfuse.local_array(...)")
        if node.keywords:
            self.refuse(node, "pass the arguments by their place")
        args = [self.value(argument) for argument in node.args]
        if owner is philox:
            return self._random(node, called.__name__, args)
        return self._function(node, called, args)

    def effect(self, node: ast.Call) -> Expr:
        """A call whose value is not used."""
        found = self.called(node)
        if not isinstance(found, Atomic):
            self.refuse(node, "calculated and thrown away: assign it, or leave it out")
        return found

    def _function(self, node: ast.Call, called: Any, args: list[Expr]) -> Expr:
        known = all(isinstance(argument, Const) and argument.type.weak for argument in args)
        if ufunc.is_class_of(called):
            called = called.numpy
        try:
            is_math = called in MATH or called in SPECIAL
        except TypeError:
            is_math = False
        if is_math:
            return self._math(node, called, args, known)
        if isinstance(called, np.ufunc):
            if called.nout != 1:
                self.refuse(node, f"gives several numbers; {_INSTEAD.get(called.__name__, _PAIR)}")
            self._expects(node, args, called.nin, called.__name__)
            return self.apply(called.__name__, args, node, weak=False)
        if called is abs:
            self._expects(node, args, 1, "abs")
            return self.apply("absolute", args, node)
        if called is pow:
            if len(args) != 2:
                self.refuse(node, "pow takes two numbers: write x ** y % m")
            return self.binary(node, ast.Pow(), *args)
        if called is round:
            return self._rounded(node, args)
        if called in (min, max):
            return self._extremes(node, called, args)
        if called in (int, float, bool, complex):
            return self._conversion(node, called, args)
        if getattr(called, "__module__", "").startswith("clfuse"):
            called = getattr(np, getattr(called, "__name__", ""), called)
        if called is np.where:
            self._expects(node, args, 3, "where")
            return self._where(node, *args)
        if called is np.clip:
            self._expects(node, args, 3, "clip")
            low = self.apply("maximum", args[:2], node, weak=False)
            return self.apply("minimum", [low, args[2]], node, weak=False)
        if isinstance(called, type) and issubclass(called, np.generic):
            dtype = element_type(called)
            if dtype is not None and len(args) == 1:
                if args[0].type.kind == "c" and dtype.kind not in "cb":
                    self.refuse(node, "of a complex number, write .real or .imag")
                self.fits(args[0], dtype, node)
                return Convert(strong(dtype), node.lineno, args[0])
        raise self.source.error(node, "there is no such dtype in kernels, or not one number given")

    def _rounded(self, node: ast.Call, args: list[Expr]) -> Expr:
        if len(args) != 1:
            self.refuse(node, "round takes one number here: write numpy.rint(x * 100) / 100")
        if isinstance(args[0], Const):
            return self.folded(node, round, args[0])
        if args[0].type.kind == "c":
            self.refuse(node, "of a complex number, write .real or .imag")
        if args[0].type.kind in "iub":
            return self.converted(args[0], INT)
        return Convert(INT, node.lineno, self.apply("rint", args, node))

    def _expects(self, node: ast.AST, args: list[Expr], count: int, name: str) -> None:
        if len(args) != count:
            self.refuse(node, f"{name} takes {count} argument(s)")

    def _math(self, node: ast.Call, called: Any, args: list[Expr], known: bool) -> Expr:
        if called in SPECIAL:
            return self._special(node, called, args)
        if known and args:
            return self.folded(node, called, *args)  # type: ignore[arg-type]
        name = MATH[called]
        if called in _ANY_NUMBER and len(args) > 2:
            found = self.apply(name, args[:2], node)
            for other in args[2:]:
                found = self.apply(name, [found, other], node)
            return found
        if called is math.log and len(args) == 2:
            logarithms = [self.apply(name, [part], node) for part in args]
            return self.apply("divide", logarithms, node)
        self._expects(node, args, getattr(np, name).nin, called.__name__)
        if called in _ROUNDED_TO_INT:
            if args[0].type.kind in "iub":
                return self.converted(args[0], INT)
            return Convert(INT, node.lineno, self.apply(name, args, node))
        return self.apply(name, args, node)

    def _special(self, node: ast.Call, called: Any, args: list[Expr]) -> Expr:
        """A function of `math` that is no ufunc: of the dtype that an exponential would have."""
        self._expects(node, args, 1, called.__name__)
        if isinstance(args[0], Const) and args[0].type.weak:
            return self.folded(node, special(called), args[0])
        like = self.apply("exp", args, node)
        dtype = like.type.dtype
        if dtype.kind != "f":
            self.refuse(node, f"math.{called.__name__} is not for {args[0].type}")
        return Apply(like.type, node.lineno, row(SPECIAL[called], (dtype,), dtype), args)

    def _extremes(self, node: ast.Call, called: Any, args: list[Expr]) -> Expr:
        """Python's min and max: each value is compared with the best of those before it."""
        found = args[0]
        keeps = any(map(changes_arrays, args))
        for place, other in enumerate(args[1:]):
            if isinstance(found, Const) and isinstance(other, Const):
                found = self.folded(node, called, found, other)
                continue
            common = self._common(node, found, other)
            pair = found, other
            if keeps:
                found, again = self.bound(found, node, 2 * place)
                other, other_again = self.bound(other, node, 2 * place + 1)
                pair = again, other_again
            # `other < found`, in the order of the values.
            test = self.compared(node, "greater" if called is min else "less", found, other)
            for each in pair:
                self.fits(each, common.dtype, node)
            one, two = [self.converted(each, common) for each in pair]
            found = Select(common, node.lineno, test, two, one)
        return found

    def _common(self, node: ast.AST, one: Expr, other: Expr) -> Type:
        """The type of the lesser or the greater of two values."""
        try:
            found = operation("maximum", (one.type, other.type))
        except TypeError:
            found = None
        if found is None:
            self.refuse(node, f"no order of {one.type} and {other.type}")
        dtype = found.type.dtype
        if dtype.kind in "iu" and dtype.itemsize < INT.dtype.itemsize:
            weak = [each for each in (one, other) if each.type == INT]
            if not all(isinstance(each, Const) and _holds(dtype, each.value) for each in weak):
                return INT  # it may be a Python integer that these have no room for
        return found.type

    def _conversion(self, node: ast.Call, called: Any, args: list[Expr]) -> Expr:
        if called is complex and len(args) == 2:
            parts = [self.converted(part, FLOAT) for part in args]
            op = row("make_complex", (DTYPES["float64"],) * 2, DTYPES["complex128"])
            return Apply(weak_of(0j), node.lineno, op, parts)
        self._expects(node, args, 1, called.__name__)
        (value,) = args
        if called is bool:
            return self.condition(value, node)
        if value.type.kind == "c" and called is not complex:
            self.refuse(node, "of a complex number, write .real or .imag")
        if isinstance(value, Const):
            return self.folded(node, called, value)
        return self.converted(value, weak_of(called(0)))

    def _where(self, node: ast.AST, test: Expr, chosen: Expr, other: Expr) -> Expr:
        examples = [e.type.dtype.type(0).item() if e.type.weak else e.type.dtype
                    for e in (chosen, other)]
        dtype = native_dtype(np.result_type(*examples))
        if dtype is None:
            self.refuse(node, "there is no such dtype in kernels")
        found, line = strong(dtype), getattr(node, "lineno", 0)
        test = self.condition(test, node)
        self.fits(chosen, dtype, node)
        self.fits(other, dtype, node)
        chosen, other = self.converted(chosen, found), self.converted(other, found)
        if changes_arrays(chosen) or changes_arrays(other):  # a call evaluates all its arguments
            op = loop("where", (BOOL.dtype, dtype, dtype), dtype)
            return Apply(found, line, op, [test, chosen, other])
        return Select(found, line, test, chosen, other, both=True)

    def _atomic(self, node: ast.Call, name: str) -> Expr:
        values = 2 if name == "compare_exchange" else 1
        if len(node.args) != 2 + values or node.keywords:
            self.refuse(node, f"write clfuse.atomic.{name}(x, i, value)")
        at = node.args[1]
        parts = at.elts if isinstance(at, ast.Tuple) else [at]
        array, indices, is_local = self.element_at(node, node.args[0], parts)
        dtype = self.element(array)
        floats = name in ("add", "sub") and dtype.char in "fd"
        if dtype.name not in _ATOMIC_INTEGERS.split(", ") and not floats:
            self.refuse(
                node, f"atomics are for {_ATOMIC_INTEGERS} (add and sub: float32, float64 too), "
                f"`{array}` is {dtype.name}"
            )
        args = [self.stored(self.value(part), dtype, node) for part in node.args[2:]]
        if not is_local:
            self.function.atomics.add(array)
            self.function.reads.add(array)
            self.function.writes.add(array)
        self.reason(node, "an atomic operation")
        return Atomic(strong(dtype), node.lineno, name, array, indices, args, is_local)

    def _group(self, node: ast.Call, name: str) -> Expr:
        if name not in ("local_id", "group_id", "size") or node.args:
            self.refuse(node, "clfuse.group has local_id(), group_id(), size(), barrier() and "
                              "local_array(shape, dtype)")
        self.reason(node, "work-groups")
        return Group(INT, node.lineno, name)

    def _random(self, node: ast.Call, name: str, args: list[Expr]) -> Expr:
        if len(args) not in (2, 3) or any(a.type.kind not in "iub" for a in args):
            self.refuse(node, f"write clfuse.philox.{name}(seed, counter), both integers")
        if len(args) == 2:
            args = [*args, self.number(0, node)]
        seed, counter, stream = [self.converted(argument, INT) for argument in args]
        int64, uint64 = DTYPES["int64"], DTYPES["uint64"]
        bits = Apply(strong(uint64), node.lineno, row("philox_bits", (int64,) * 3, uint64),
                     [counter, seed, stream])
        if name == "bits":
            return bits
        dtype = native_dtype(DTYPES["float64"]) or DTYPES["float64"]
        op = row(f"{name}_of_bits_{dtype.name}", (uint64,), dtype)
        return Apply(strong(dtype), node.lineno, op, [bits])


def _holds(dtype: np.dtype, value: int) -> bool:
    limits = np.iinfo(dtype)
    return int(limits.min) <= value <= int(limits.max)


def check_calls(source: Source) -> None:
    """Raise KernelError for the first call of what no kernel can call, as far as names mean
    something at decoration; `Functions` checks again what they mean at a call."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and node not in source.tree.decorator_list:
            try:
                called = source.dotted(node.func)
            except (NameError, KernelError):
                continue  # it may come to mean something: `Functions` says what is missing
            if called not in (MISSING, range, divmod):  # `syntax` has looked at these
                _check_call(source, node, called)


def _check_call(source: Source, node: ast.Call, called: Any) -> None:
    """Refuse what is no function of the language, whatever its arguments are."""
    if called in (min, max) and len(node.args) < 2:
        raise source.error(
            node, f"{called.__name__} takes two numbers or more; of an array {_FOLD}"
        )
    if _is_known(called):
        return
    name = getattr(called, "__name__", "")
    instead = _FOLD if called in (np.max, np.min) else _INSTEAD.get(name)
    if instead is None and isinstance(called, FunctionType) and not _is_numpys(called):
        instead = f"decorate {name} with @clfuse.device_function"
    if instead is None and called in vars(math).values():
        known = sorted(function.__name__ for function in (*MATH, *SPECIAL))
        instead = f"of math it has {', '.join(known)}; calculate others before the call"
    if instead is not None:
        raise source.error(node, f"not in the language of kernels; {instead}")
    raise source.error(
        node,
        "not in the language of kernels: it has NumPy's ufuncs, math, abs, min, max, int, "
        "float, bool, len, numpy.where and clip, and functions with @clfuse.device_function",
    )


def _is_known(called: Any) -> bool:
    if isinstance(called, ufunc | np.ufunc) or isinstance(
        getattr(called, "__clfuse_source__", None), Source
    ):
        return True
    if getattr(called, "__self__", None) in (atomic, group, philox) or called is local_array:
        return True
    if _is_numpys(called):
        called = getattr(np, getattr(called, "__name__", ""), called)
    try:
        if any(called in known for known in (MATH, SPECIAL, _PYTHONS, (np.where, np.clip))):
            return True
    except TypeError:  # what cannot be hashed
        return False
    return isinstance(called, type) and issubclass(called, np.generic)


def _is_numpys(called: Any) -> bool:
    """Whether a function is one of NumPy's or of clfuse's."""
    return str(getattr(called, "__module__", "")).split(".")[0] in ("numpy", "clfuse")
