"""The expressions of a kernel with their types; `lower` derives its statements from this.

Operators and functions take the loops that NumPy takes, `math` means the ufuncs of the same
names, and what is known is calculated here, by Python.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any, Final, NoReturn

import numpy as np

from ..api.handle import DTYPES, Handle, native_dtype
from ..api.ufunc import ufunc
from .intrinsics import MATH, atomic, group, local_array, philox
from .syntax import MISSING, Source
from .tree import (
    Apply,
    Atomic,
    Call,
    Const,
    Convert,
    Expr,
    Extent,
    Function,
    Group,
    Index,
    Load,
    Local,
    Logic,
    Not,
    Scalar,
    Select,
)
from .types import (
    BOOL,
    FLOAT,
    INT,
    WEAK_BOOL,
    ArrayType,
    Disagreement,
    Type,
    element_type,
    join,
    operation,
    row,
    strong,
    weak_of,
)

_BINARY: Final[dict[type, tuple[str, Callable[[Any, Any], Any]]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("subtract", operator.sub),
    ast.Mult: ("multiply", operator.mul),
    ast.Div: ("divide", operator.truediv),
    ast.FloorDiv: ("floor_divide", operator.floordiv),
    ast.Mod: ("remainder", operator.mod),
    ast.Pow: ("power", operator.pow),
    ast.BitAnd: ("bitwise_and", operator.and_),
    ast.BitOr: ("bitwise_or", operator.or_),
    ast.BitXor: ("bitwise_xor", operator.xor),
    ast.LShift: ("left_shift", operator.lshift),
    ast.RShift: ("right_shift", operator.rshift),
}
_UNARY: Final[dict[type, tuple[str, Callable[[Any], Any]]]] = {
    ast.USub: ("negative", operator.neg),
    ast.UAdd: ("positive", operator.pos),
    ast.Invert: ("invert", operator.invert),
}
_COMPARE: Final[dict[type, tuple[str, Callable[[Any, Any], Any]]]] = {
    ast.Eq: ("equal", operator.eq),
    ast.NotEq: ("not_equal", operator.ne),
    ast.Lt: ("less", operator.lt),
    ast.LtE: ("less_equal", operator.le),
    ast.Gt: ("greater", operator.gt),
    ast.GtE: ("greater_equal", operator.ge),
}
_POWERS: Final = {-1: "reciprocal", 0.5: "sqrt", 1: "positive", 2: "square"}
_ROUNDED_TO_INT: Final = (math.floor, math.ceil, math.trunc)
_ATOMIC_INTEGERS: Final = "int32, uint32, int64, uint64"
_KEPT_LITERAL: Final = 1 << 63


class Expressions:
    """What is known while one function is typed."""

    def __init__(
        self,
        source: Source,
        function: Function,
        functions: dict[Any, Function],
        calling: tuple[Source, ...],
        types: dict[str, Type],
    ) -> None:
        self.source = source
        self.function = function
        self.functions = functions
        self.calling = calling
        self.types = types

    def reason(self, node: ast.AST, what: str) -> None:
        """Note why this function cannot be array operations."""
        line = getattr(node, "lineno", 0)
        self.function.reasons.append(f"{what} in line {line}")

    def refuse(self, node: ast.AST, message: str) -> NoReturn:
        """Raise KernelError for a place in the source."""
        raise self.source.error(node, message)

    # -- numbers and names ------------------------------------------------------------------------

    def number(self, value: Any, node: ast.AST) -> Const:
        """A known number; Python's are weak."""
        line = getattr(node, "lineno", 0)
        if isinstance(value, np.generic):
            dtype = native_dtype(value.dtype)
            if dtype is None:
                self.refuse(node, f"kernels have no {value.dtype}")
            return Const(strong(dtype), line, value)
        if isinstance(value, int) and not -_KEPT_LITERAL <= value < 2 * _KEPT_LITERAL:
            self.refuse(node, "integers of kernels have 64 bits")
        if isinstance(value, int) and value >= _KEPT_LITERAL:
            return Const(strong(DTYPES["uint64"]), line, np.uint64(value))
        return Const(weak_of(value), line, value)

    def constant(self, node: ast.expr) -> Any:
        """The Python number that an expression is, None where it is not known."""
        found = self.value(node)
        return found.value if isinstance(found, Const) and found.type.weak else None

    def local(self, name: str, node: ast.AST) -> Expr:
        """A local variable's value."""
        found = self.types.get(name)
        if found is None:
            if name in self.function.local_arrays:
                self.refuse(node, f"`{name}` is an array: give the indices of an element")
            self.refuse(node, f"`{name}` is read before it is assigned")
        return Local(found, getattr(node, "lineno", 0), name)

    def _name(self, node: ast.Name) -> Expr:
        name = node.id
        if name in self.function.indices:
            return Index(INT, node.lineno, self.function.indices.index(name))
        if name in self.function.scalars:
            return Scalar(self.function.scalars[name], node.lineno, name)
        if name in self.function.arrays:
            self.refuse(node, f"`{name}` is an array: give the indices of an element, {name}[i]")
        if name in self.source.locals:
            return self.local(name, node)
        return self._captured(node)

    def _captured(self, node: ast.expr) -> Expr:
        """A number of the surroundings."""
        try:
            value = self.source.dotted(node)
        except NameError as missing:
            self.refuse(node, str(missing))
        if isinstance(value, Handle | np.ndarray):
            self.refuse(node, "arrays are passed as arguments: add a parameter for it")
        if not isinstance(value, bool | int | float | complex | np.generic):
            self.refuse(node, f"{type(value).__name__} is nothing that kernels calculate with")
        self.function.captured[(self.source, ast.unparse(node))] = (node, value)
        return self.number(value, node)

    # -- everything -------------------------------------------------------------------------------

    def value(self, node: ast.expr) -> Expr:
        """Any expression that is one number."""
        if isinstance(node, ast.Constant):
            return self.number(node.value, node)
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.BinOp):
            return self.binary(node, node.op, self.value(node.left), self.value(node.right))
        if isinstance(node, ast.UnaryOp):
            return self._unary(node)
        if isinstance(node, ast.BoolOp):
            return self._bool_op(node)
        if isinstance(node, ast.Compare):
            return self._compare(node)
        if isinstance(node, ast.IfExp):
            return self._conditional(node)
        if isinstance(node, ast.Subscript):
            return self.subscript(node)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Call):
            call = self.call_of_function(node)
            if call is not None:
                if len(call.function.results) != 1:
                    self.refuse(node, "returns no single value: write `a, b = f(...)`")
                return call
            return self._call(node)
        self.refuse(node, "one number is needed here")

    def integer(self, node: ast.expr) -> Expr:
        """An expression that must be an integer, as int64."""
        found = self.value(node)
        if found.type.kind not in "iu":
            self.refuse(node, f"is {found.type}: an integer is needed, int(...) makes one")
        return found

    def condition(self, value: Expr, node: ast.AST) -> Expr:
        """The truth of a value."""
        if value.type.kind == "b":
            return value
        if isinstance(value, Const):
            return self.number(bool(value.value), node)
        return self.apply("not_equal", [value, self.number(0, node)], node)

    def apply(self, name: str, args: list[Expr], node: ast.AST, *, weak: bool = True) -> Expr:
        """The ufunc `name`; with `weak` numbers of Python give one of Python's."""
        types = tuple([argument.type for argument in args])
        try:
            found = operation(name, types)
        except (TypeError, Disagreement):
            found = None
        if found is None:
            described = ", ".join(map(str, types))
            self.refuse(node, f"numpy.{name} is not for {described}")
        for argument, dtype in zip(args, found.op.input_dtypes, strict=True):
            self.fits(argument, dtype, node)
        result = found.type
        if not weak and result.weak:
            result = strong(result.dtype)
        return Apply(result, getattr(node, "lineno", 0), found.op, args)

    def fits(self, value: Expr, dtype: np.dtype, node: ast.AST) -> None:
        """Refuse a Python integer that an integer dtype cannot hold, as NumPy does."""
        if isinstance(value, Const) and type(value.value) is int and dtype.kind in "iu":
            limits = np.iinfo(dtype)
            if not limits.min <= value.value <= limits.max:
                self.refuse(node, f"Python integer {value.value} out of bounds for {dtype.name}")

    def converted(self, value: Expr, wanted: Type) -> Expr:
        """The value as another type."""
        if value.type == wanted:
            return value
        if isinstance(value, Const) and wanted.weak and wanted.kind in "fc":
            convert = float if wanted.kind == "f" else complex
            return Const(wanted, value.line, convert(value.value))
        return Convert(wanted, value.line, value)

    def stored(self, value: Expr, dtype: np.dtype, node: ast.AST) -> Expr:
        """The value as an element of an array."""
        if value.type.kind == "c" and dtype.kind not in "cb":
            self.refuse(node, f"a complex number cannot be stored as {dtype.name}: write .real")
        self.fits(value, dtype, node)
        if value.type.dtype is dtype:
            return value
        return Convert(strong(dtype), value.line, value)

    # -- operators --------------------------------------------------------------------------------

    def binary(self, node: ast.AST, symbol: ast.operator, left: Expr, right: Expr) -> Expr:
        """``left + right`` and its kind."""
        name, function = _BINARY[type(symbol)]
        if isinstance(left, Const) and isinstance(right, Const):
            return self._folded(node, function, left, right)
        if name == "power":
            return self._power(node, left, right)
        return self.apply(name, [left, right], node)

    def _folded(self, node: ast.AST, function: Callable[..., Any], *known: Const) -> Expr:
        try:
            with np.errstate(all="ignore"):
                return self.number(function(*[item.value for item in known]), node)
        except (ArithmeticError, ValueError, TypeError) as error:
            self.refuse(node, f"{type(error).__name__}: {error}")

    def _power(self, node: ast.AST, left: Expr, right: Expr) -> Expr:
        exponent = right.value if isinstance(right, Const) and right.type.weak else None
        is_integer = left.type.kind in "iub"
        if exponent is not None and not isinstance(exponent, complex):
            if is_integer and isinstance(exponent, int) and exponent < 0:
                if not left.type.weak:
                    self.refuse(
                        node, "Integers to negative integer powers are not allowed; write "
                        "float(x) ** n"
                    )
                return self.apply("power", [self.converted(left, FLOAT),
                                            self.converted(right, FLOAT)], node)
            name = _POWERS.get(exponent)
            if name is not None and (name == "square" or not is_integer):
                if name != "square" or left.type.kind != "b":
                    return self.apply(name, [left], node)
        elif left.type.weak and right.type.weak and is_integer and right.type.kind in "ib":
            self.refuse(
                node, "an int to a power that is not known may be a float: write float(i) ** j"
            )
        return self.apply("power", [left, right], node)

    def _unary(self, node: ast.UnaryOp) -> Expr:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            test = self.condition(value, node.operand)
            if isinstance(test, Const):
                return self.number(not test.value, node)
            return Not(BOOL if not test.type.weak else WEAK_BOOL, node.lineno, test)
        name, function = _UNARY[type(node.op)]
        if isinstance(value, Const):
            return self._folded(node, function, value)
        return self.apply(name, [value], node)

    def _bool_op(self, node: ast.BoolOp) -> Expr:
        values = [self.value(part) for part in node.values]
        both = isinstance(node.op, ast.And)
        if all(value.type.kind == "b" for value in values):
            weak = all(value.type.weak for value in values)
            return Logic(WEAK_BOOL if weak else BOOL, node.lineno, both, values)
        # Of numbers Python gives one of them: `a or b` is `a if a else b`.
        found = values[-1]
        for value, part in zip(values[-2::-1], node.values[-2::-1], strict=True):
            test = self.condition(value, part)
            chosen, other = (found, value) if both else (value, found)
            found = self._select(node, test, chosen, other)
        return found

    def _compare(self, node: ast.Compare) -> Expr:
        values = [self.value(node.left), *[self.value(part) for part in node.comparators]]
        parts: list[Expr] = []
        for place, symbol in enumerate(node.ops):
            name, function = _COMPARE[type(symbol)]
            pair = values[place : place + 2]
            one, other = pair
            if isinstance(one, Const) and isinstance(other, Const):
                parts.append(self._folded(node, function, one, other))
            else:
                parts.append(self._compared(node, name, one, other))
        if len(parts) == 1:
            return parts[0]
        weak = all(part.type.weak for part in parts)
        return Logic(WEAK_BOOL if weak else BOOL, node.lineno, True, parts)

    def _compared(self, node: ast.AST, name: str, one: Expr, other: Expr) -> Expr:
        types = (one.type, other.type)
        if any(t.kind == "c" for t in types) and name not in ("equal", "not_equal"):
            self.refuse(node, "complex numbers have no order: compare .real, .imag or abs(z)")
        found = operation(name, types)
        if found is None:
            self.refuse(node, f"cannot compare {types[0]} and {types[1]}")
        return Apply(found.type, getattr(node, "lineno", 0), found.op, [one, other])

    def _conditional(self, node: ast.IfExp) -> Expr:
        test = self.condition(self.value(node.test), node.test)
        return self._select(node, test, self.value(node.body), self.value(node.orelse))

    def _select(self, node: ast.AST, test: Expr, chosen: Expr, other: Expr) -> Expr:
        try:
            found = join(chosen.type, other.type)
        except Disagreement:
            self.refuse(
                node,
                f"is {chosen.type} or {other.type}: convert one of them, "
                f"numpy.{chosen.type.dtype.name}(...)",
            )
        line = getattr(node, "lineno", 0)
        if isinstance(test, Const):
            return self.converted(chosen if test.value else other, found)
        return Select(
            found, line, test, self.converted(chosen, found), self.converted(other, found)
        )

    # -- arrays -----------------------------------------------------------------------------------

    def element(self, name: str) -> np.dtype:
        """The dtype of an array's elements."""
        local = self.function.local_arrays.get(name)
        return self.function.arrays[name].dtype if local is None else local.dtype

    def place(self, node: ast.Subscript) -> tuple[str, list[Expr], bool]:
        """Array, indices, and whether the array is a local one."""
        assert isinstance(node.value, ast.Name)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return self._element_at(node, node.value, parts)

    def _element_at(
        self, node: ast.AST, array: ast.expr, parts: list[ast.expr]
    ) -> tuple[str, list[Expr], bool]:
        name = array.id if isinstance(array, ast.Name) else ""
        local = self.function.local_arrays.get(name)
        known = self.function.arrays.get(name)
        if local is None and known is None:
            if name in self.function.scalars or name in self.function.indices:
                self.refuse(node, f"`{name}` is a number here: it has no elements")
            if name in self.source.locals:
                self.refuse(node, f"`{name}` is no array here: clfuse.local_array makes one")
            if name:
                self._captured(array)
            self.refuse(node, "an array is needed here, by its name")
        rank = len(local.shape) if local is not None else known.ndim  # type: ignore[union-attr]
        if len(parts) != rank:
            self.refuse(node, f"`{name}` has {rank} axes, and {len(parts)} indices are given")
        indices = []
        for axis, part in enumerate(parts):
            index = self.integer(part)
            if isinstance(index, Const) and index.value < 0:
                if local is not None:
                    index = self.number(int(index.value) + local.shape[axis], part)
                else:
                    extent = Extent(INT, index.line, name, axis)
                    index = self.apply("add", [extent, index], part)
            indices.append(index)
        return name, indices, local is not None

    def subscript(self, node: ast.Subscript) -> Expr:
        """``x[i, j]`` and ``x.shape[0]``."""
        if isinstance(node.value, ast.Attribute):
            return self._extent(node, node.value)
        name, indices, is_local = self.place(node)
        if not is_local:
            self.function.reads.add(name)
        return Load(strong(self.element(name)), node.lineno, name, indices, is_local)

    def _extent(self, node: ast.AST, shape: ast.Attribute) -> Expr:
        assert isinstance(node, ast.Subscript)
        axis = self.constant(node.slice)
        known = shape.value
        if type(axis) is not int or not isinstance(known, ast.Name):
            self.refuse(node, "axes are known when the kernel is written: x.shape[0]")
        return self._size(node, known.id, axis)

    def _size(self, node: ast.AST, name: str, axis: int) -> Expr:
        local = self.function.local_arrays.get(name)
        known = self.function.arrays.get(name)
        if local is None and known is None:
            self.refuse(node, f"`{name}` is no array here")
        rank = len(local.shape) if local is not None else known.ndim  # type: ignore[union-attr]
        if not -rank <= axis < rank:
            self.refuse(node, f"`{name}` has {rank} axes")
        if local is not None:
            return self.number(local.shape[axis], node)
        return Extent(INT, getattr(node, "lineno", 0), name, axis % rank)

    def _attribute(self, node: ast.Attribute) -> Expr:
        owner = node.value
        if isinstance(owner, ast.Name) and node.attr in ("size", "ndim"):
            local = self.function.local_arrays.get(owner.id)
            known = self.function.arrays.get(owner.id)
            if local is not None or known is not None:
                rank = len(local.shape) if local else known.ndim  # type: ignore[union-attr]
                if node.attr == "ndim":
                    return self.number(rank, node)
                found: Expr = self.number(1, node)
                for axis in range(rank):
                    part = self._size(node, owner.id, axis)
                    found = part if axis == 0 else self.apply("multiply", [found, part], node)
                return found
        if node.attr in ("real", "imag") and self._is_number(owner):
            return self._part(node, self.value(owner))
        return self._captured(node)

    def _is_number(self, node: ast.expr) -> bool:
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name):
            return True
        name = root.id
        return name in self.source.locals or name in self.source.parameters

    def _part(self, node: ast.Attribute, value: Expr) -> Expr:
        if value.type.kind == "c":
            dtype = DTYPES["float32" if value.type.dtype.itemsize == 8 else "float64"]
            op = row(node.attr, (value.type.dtype,), dtype)
            return Apply(FLOAT if value.type.weak else strong(dtype), node.lineno, op, [value])
        if node.attr == "real":
            return value
        zero = self.number(0, node)
        return self.converted(zero, value.type)

    # -- calls ------------------------------------------------------------------------------------

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
        given: dict[str, ast.expr] = dict(zip(other.parameters, node.args, strict=False))
        for word in node.keywords:
            if word.arg in given or word.arg not in other.parameters:
                self.refuse(node, f"{other.name} takes ({', '.join(other.parameters)})")
            given[word.arg] = word.value
        if len(given) != len(other.parameters) or len(node.args) > len(other.parameters):
            self.refuse(node, f"{other.name} takes ({', '.join(other.parameters)})")
        kinds: dict[str, Type | ArrayType] = {}
        args: dict[str, Expr] = {}
        arrays: dict[str, str] = {}
        for name in other.parameters:
            part = given[name]
            if isinstance(part, ast.Name) and part.id in self.function.arrays:
                kinds[name] = self.function.arrays[part.id]
                arrays[name] = part.id
            else:
                args[name] = self.value(part)
                kinds[name] = args[name].type
        function = self._typed(other, kinds)
        own = self.function
        for mine, theirs in ((own.reads, function.reads), (own.writes, function.writes),
                             (own.atomics, function.atomics)):
            mine.update(arrays[name] for name in theirs)
        own.reasons += [f"{why} of {other.name}" for why in function.reasons]
        own.captured.update(function.captured)
        type_ = function.results[0] if len(function.results) == 1 else BOOL
        return Call(type_, node.lineno, function, args, arrays)

    def _typed(self, other: Source, kinds: dict[str, Type | ArrayType]) -> Function:
        from .lower import lower

        key = (id(other), tuple(kinds.items()))
        found = self.functions.get(key)
        if found is None:
            found = lower(other, kinds, (), self.functions, self.calling)
            self.functions[key] = found
        return found

    def _call(self, node: ast.Call) -> Expr:
        called = self.source.dotted(node.func)
        if called is len:
            (array,) = node.args if len(node.args) == 1 else (None,)
            if not isinstance(array, ast.Name):
                self.refuse(node, "len takes an array by its name")
            return self._size(node, array.id, 0)
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
        found = self._call(node)
        if not isinstance(found, Atomic):
            self.refuse(node, "calculated and thrown away: assign it, or leave it out")
        return found

    def _function(self, node: ast.Call, called: Any, args: list[Expr]) -> Expr:
        known = all(isinstance(argument, Const) and argument.type.weak for argument in args)
        if isinstance(called, ufunc):
            called = called.numpy
        try:
            is_math = called in MATH
        except TypeError:
            is_math = False
        if is_math:
            return self._math(node, called, args, known)
        if isinstance(called, np.ufunc):
            self._expects(node, args, called.nin, called.__name__)
            return self.apply(called.__name__, args, node, weak=False)
        if called is abs:
            self._expects(node, args, 1, "abs")
            return self.apply("absolute", args, node)
        if called in (min, max) and len(args) >= 2:
            found = args[0]
            for other in args[1:]:
                found = self._extreme(node, "less" if called is min else "greater", found, other)
            return found
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
        self.refuse(
            node,
            "not in the language of kernels: it has NumPy's ufuncs, math, abs, min, max, int, "
            "float, bool, len, numpy.where and clip, and functions with @clfuse.device_function",
        )

    def _expects(self, node: ast.AST, args: list[Expr], count: int, name: str) -> None:
        if len(args) != count:
            self.refuse(node, f"{name} takes {count} argument(s)")

    def _math(self, node: ast.Call, called: Any, args: list[Expr], known: bool) -> Expr:
        if known and args:
            return self._folded(node, called, *args)  # type: ignore[arg-type]
        name = MATH[called]
        self._expects(node, args, getattr(np, name).nin, called.__name__)
        if called in _ROUNDED_TO_INT:
            if args[0].type.kind in "iub":
                return self.converted(args[0], INT)
            return Convert(INT, node.lineno, self.apply(name, args, node))
        return self.apply(name, args, node)

    def _extreme(self, node: ast.AST, name: str, one: Expr, other: Expr) -> Expr:
        if isinstance(one, Const) and isinstance(other, Const):
            return self._folded(node, min if name == "less" else max, one, other)
        try:
            found = operation("maximum", (one.type, other.type))
        except TypeError:
            found = None
        if found is None:
            self.refuse(node, f"no order of {one.type} and {other.type}")
        one, other = self.converted(one, found.type), self.converted(other, found.type)
        test = self._compared(node, name, other, one)
        return Select(found.type, getattr(node, "lineno", 0), test, other, one)

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
            return self._folded(node, called, value)
        return self.converted(value, weak_of(called(0)))

    def _where(self, node: ast.AST, test: Expr, chosen: Expr, other: Expr) -> Expr:
        examples = [e.type.dtype.type(0).item() if e.type.weak else e.type.dtype
                    for e in (chosen, other)]
        dtype = native_dtype(np.result_type(*examples))
        if dtype is None:
            self.refuse(node, "there is no such dtype in kernels")
        found = strong(dtype)
        return Select(found, getattr(node, "lineno", 0), self.condition(test, node),
                      self.converted(chosen, found), self.converted(other, found))

    def _atomic(self, node: ast.Call, name: str) -> Expr:
        values = 2 if name == "compare_exchange" else 1
        if len(node.args) != 2 + values or node.keywords:
            self.refuse(node, f"write clfuse.atomic.{name}(x, i, value)")
        at = node.args[1]
        parts = at.elts if isinstance(at, ast.Tuple) else [at]
        array, indices, is_local = self._element_at(node, node.args[0], parts)
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
