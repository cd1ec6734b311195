"""Types of a kernel's expressions, with constant folding.

Operators and functions take the loops that NumPy takes, `math` means the ufuncs of the same names,
and Python computes expressions of known numbers here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final, NoReturn

import numpy as np

from clfuse.arrays.handle import DTYPES, Handle, native_dtype
from clfuse.errors import KernelError

from . import tree
from .accumulations import expressions
from .checked_source import Source, root_of
from .operators import BINARY, COMPARISONS, UNARY
from .types import (
    BOOL,
    FLOAT,
    INT,
    WEAK_BOOL,
    Disagreement,
    Type,
    join,
    operation,
    row,
    strong,
    weak_of,
)

_POWERS: Final = {-1: "reciprocal", 0.5: "sqrt", 1: "positive", 2: "square"}
_KEPT_LITERAL: Final = 1 << 63


class Expressions:
    """What is known while one function is typed."""

    def __init__(
        self,
        source: Source,
        function: tree.Function,
        functions: dict[Any, tree.Function],
        calling: tuple[Source, ...],
        types: dict[str, Type],
    ) -> None:
        self.source = source
        self.function = function
        self.functions = functions
        self.calling = calling
        self.types = types
        self.is_conditional = False  # whether what comes now may not be evaluated

    def call_of_function(self, node: ast.expr) -> tree.Call | None:
        """The call of another function of the language; None for all else."""
        raise NotImplementedError

    def called(self, node: ast.Call) -> tree.Expr:
        """Any other call."""
        raise NotImplementedError

    def reason(self, node: ast.AST, what: str) -> None:
        """Note why this function cannot be array operations."""
        line = getattr(node, "lineno", 0)
        self.function.reasons.append(f"{what} in line {line}")

    def refuse(self, node: ast.AST, message: str) -> NoReturn:
        """Raise KernelError for a place in the source."""
        raise self.source.error(node, message)

    # -- numbers and names ------------------------------------------------------------------------

    def number(self, value: Any, node: ast.AST) -> tree.Const:
        """A known number; Python's are weak."""
        line = getattr(node, "lineno", 0)
        if isinstance(value, np.generic):
            dtype = native_dtype(value.dtype)
            if dtype is None:
                self.refuse(node, f"kernels have no {value.dtype}")
            return tree.Const(strong(dtype), line, value)
        if isinstance(value, int) and not -_KEPT_LITERAL <= value < 2 * _KEPT_LITERAL:
            self.refuse(node, "integers of kernels have 64 bits")
        if isinstance(value, int) and value >= _KEPT_LITERAL:
            # A Python integer still: what is calculated of it here may be an int again.
            return tree.Const(strong(DTYPES["uint64"]), line, value)
        return tree.Const(weak_of(value), line, value)

    def constant(self, node: ast.expr) -> Any:
        """The Python number that an expression is, None where it is not known."""
        found = self.value(node)
        return found.value if isinstance(found, tree.Const) and found.type.weak else None

    def local(self, name: str, node: ast.AST) -> tree.Expr:
        """A local variable's value."""
        found = self.types.get(name)
        if found is None:
            if name in self.function.local_arrays:
                self.refuse(node, f"`{name}` is an array: give the indices of an element")
            self.refuse(node, f"`{name}` is read before it is assigned")
        return tree.Local(found, getattr(node, "lineno", 0), name)

    def _name(self, node: ast.Name) -> tree.Expr:
        name = node.id
        if name in self.source.locals and name not in self.function.arrays:
            return self.local(name, node)
        if name in self.function.indices:
            return tree.Index(INT, node.lineno, self.function.indices.index(name))
        if name in self.function.scalars:
            return tree.Scalar(self.function.scalars[name], node.lineno, name)
        if name in self.function.arrays:
            self.refuse(node, f"`{name}` is an array: give the indices of an element, {name}[i]")
        return self._captured(node)

    def _captured(self, node: ast.expr) -> tree.Expr:
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

    def value(self, node: ast.expr) -> tree.Expr:
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
                if not call.function.results:
                    self.refuse(node, "returns nothing: call it on a line of its own")
                if len(call.function.results) != 1:
                    self.refuse(node, "returns no single value: write `a, b = f(...)`")
                return call
            return self.called(node)
        raise self.source.error(node, "one number is needed here")

    def integer(self, node: ast.expr) -> tree.Expr:
        """An expression that must be an integer, as int64."""
        found = self.value(node)
        if found.type.kind not in "iu":
            self.refuse(node, f"is {found.type}: an integer is needed, int(...) makes one")
        return found

    def truth(self, node: ast.expr) -> tree.Expr:
        """An expression as a condition: of what ``and``, ``or`` and ``not`` join only the truth
        counts, whatever their types are."""
        if isinstance(node, ast.BoolOp):
            self.is_conditional = True
            parts = [self.truth(part) for part in node.values]
            return self._logic(node, isinstance(node.op, ast.And), parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            test = self.truth(node.operand)
            if isinstance(test, tree.Const):
                return self.number(not test.value, node)
            return tree.Not(BOOL if not test.type.weak else WEAK_BOOL, node.lineno, test)
        return self.condition(self.value(node), node)

    @staticmethod
    def _logic(node: ast.expr, both: bool, parts: list[tree.Expr]) -> tree.Logic:
        weak = all(part.type.weak for part in parts)
        return tree.Logic(WEAK_BOOL if weak else BOOL, node.lineno, both, parts)

    def condition(self, value: tree.Expr, node: ast.AST) -> tree.Expr:
        """The truth of a value."""
        if value.type.kind == "b":
            return value
        if isinstance(value, tree.Const):
            return self.number(bool(value.value), node)
        return self.apply("not_equal", [value, self.number(0, node)], node)

    def apply(
        self, name: str, args: list[tree.Expr], node: ast.AST, *, weak: bool = True
    ) -> tree.Expr:
        """The ufunc `name`; with `weak` numbers of Python give one of Python's."""
        types = tuple([argument.type for argument in args])
        if any(not argument.type.weak and not _is_large(argument) for argument in args):
            types = tuple([INT if _is_large(argument) else argument.type for argument in args])
        try:
            found = operation(name, types)
        except (TypeError, Disagreement):
            found = None
        if found is None:
            described = ", ".join(map(str, types))
            self.refuse(node, f"numpy.{name} is not for {described}")
        for argument, dtype in zip(args, found.op.input_dtypes, strict=True):
            self.fits(argument, dtype, node)
            if dtype.kind in "iu" and dtype != INT.dtype:
                self.taken_as(argument, {dtype})
        result = found.type
        if not weak and result.weak:
            result = strong(result.dtype)
        return tree.Apply(result, getattr(node, "lineno", 0), found.op, args)

    def fits(self, value: tree.Expr, dtype: np.dtype, node: ast.AST) -> None:
        """Refuse a Python integer that an integer dtype cannot hold, as NumPy does."""
        if isinstance(value, tree.Const) and type(value.value) is int and dtype.kind in "iu":
            limits = np.iinfo(dtype)
            if not limits.min <= value.value <= limits.max:
                self.refuse(node, f"Python integer {value.value} out of bounds for {dtype.name}")

    def taken_as(self, value: tree.Expr, dtypes: set[np.dtype]) -> None:
        """Note that an operation takes a value as such integers: calls look at what is passed,
        unless the operation may be left out."""
        if isinstance(value, tree.Scalar) and value.type == INT and not self.is_conditional:
            self.function.narrow.setdefault(value.name, set()).update(dtypes)

    def once(self, value: tree.Expr, node: ast.expr) -> tuple[tree.Expr, tree.Expr]:
        """A value for two places of a statement, where it stands first and further right: what
        changes arrays is evaluated in the first of them alone."""
        if not changes_arrays(value):
            return value, value
        return self.bound(value, node)

    def bound(
        self, value: tree.Expr, node: ast.expr, number: int = 0
    ) -> tuple[tree.Expr, tree.Expr]:
        """`once`, for whatever value; one expression may have several, by their `number`."""
        place = f"{node.lineno}'{node.col_offset}'{node.end_col_offset}'{number}"
        name = f"{ast.unparse(node)}'{place}"
        self.declare(name, value.type, node)
        return tree.Bound(value.type, value.line, name, value), self.local(name, node)

    def declare(self, name: str, found: Type, node: ast.AST) -> None:
        """Note a variable, and the type of what is assigned to it."""
        raise NotImplementedError

    def converted(self, value: tree.Expr, wanted: Type) -> tree.Expr:
        """The value as another type."""
        if value.type == wanted:
            return value
        if isinstance(value, tree.Const) and wanted.weak and wanted.kind in "fc":
            convert = float if wanted.kind == "f" else complex
            return tree.Const(wanted, value.line, convert(value.value))
        return tree.Convert(wanted, value.line, value)

    def stored(self, value: tree.Expr, dtype: np.dtype, node: ast.AST) -> tree.Expr:
        """The value as an element of an array."""
        if value.type.kind == "c" and dtype.kind not in "cb":
            self.refuse(node, f"a complex number cannot be stored as {dtype.name}: write .real")
        self.fits(value, dtype, node)
        if value.type.dtype is dtype:
            return value
        return tree.Convert(strong(dtype), value.line, value)

    # -- operators --------------------------------------------------------------------------------

    def binary(
        self, node: ast.AST, symbol: ast.operator, left: tree.Expr, right: tree.Expr
    ) -> tree.Expr:
        """``left + right`` and its kind."""
        name, function = BINARY[type(symbol)]
        if isinstance(left, tree.Const) and isinstance(right, tree.Const):
            return self.folded(node, function, left, right)
        if name == "power":
            return self._power(node, left, right)
        return self.apply(name, [left, right], node)

    def folded(self, node: ast.AST, function: Callable[..., Any], *known: tree.Const) -> tree.Expr:
        """What Python makes of known numbers."""
        try:
            with np.errstate(all="ignore"):
                return self.number(function(*[item.value for item in known]), node)
        except KernelError:
            raise
        except (ArithmeticError, ValueError, TypeError) as error:
            self.refuse(node, f"{type(error).__name__}: {error}")

    def _power(self, node: ast.AST, left: tree.Expr, right: tree.Expr) -> tree.Expr:
        exponent = right.value if isinstance(right, tree.Const) and right.type.weak else None
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
            is_square = name == "square" and left.type.kind != "b"
            if name is not None and (is_square or not is_integer):
                return self.apply(name, [left], node)
        elif left.type.weak and right.type.weak and is_integer and right.type.kind in "ib":
            self.refuse(
                node, "an int to a power that is not known may be a float: write float(i) ** j"
            )
        return self.apply("power", [left, right], node)

    def _unary(self, node: ast.UnaryOp) -> tree.Expr:
        if isinstance(node.op, ast.Not):
            return self.truth(node)
        value = self.value(node.operand)
        name, function = UNARY[type(node.op)]
        if isinstance(value, tree.Const):
            return self.folded(node, function, value)
        return self.apply(name, [value], node)

    def _bool_op(self, node: ast.BoolOp) -> tree.Expr:
        self.is_conditional = True
        values = [self.value(part) for part in node.values]
        both = isinstance(node.op, ast.And)
        if all(value.type.kind == "b" for value in values):
            return self._logic(node, both, values)
        # Of numbers Python gives one of them: `a or b` is `a if a else b`.
        found = values[-1]
        for value, part in zip(values[-2::-1], node.values[-2::-1], strict=True):
            value, again = self.once(value, part)
            test, value = self.condition(value, part), again
            chosen, other = (found, value) if both else (value, found)
            found = self.select(node, test, chosen, other)
        return found

    def _compare(self, node: ast.Compare) -> tree.Expr:
        self.is_conditional = self.is_conditional or len(node.ops) > 1
        values = [self.value(node.left), *[self.value(part) for part in node.comparators]]
        parts: list[tree.Expr] = []
        other = values[0]
        for symbol, value, part in zip(node.ops, values[1:], node.comparators, strict=True):
            name, function = COMPARISONS[type(symbol)]
            one = other
            value, again = self.once(value, part)
            other = value
            if isinstance(one, tree.Const) and isinstance(other, tree.Const):
                parts.append(self.folded(node, function, one, other))
            else:
                parts.append(self.compared(node, name, one, other))
            other = again
        if len(parts) == 1:
            return parts[0]
        return self._logic(node, True, parts)

    def compared(self, node: ast.AST, name: str, one: tree.Expr, other: tree.Expr) -> tree.Expr:
        """One comparison."""
        types = (one.type, other.type)
        if any(t.kind == "c" for t in types) and name not in ("equal", "not_equal"):
            self.refuse(node, "complex numbers have no order: compare .real, .imag or abs(z)")
        found = operation(name, types)
        if found is None:
            self.refuse(node, f"cannot compare {types[0]} and {types[1]}")
        return tree.Apply(found.type, getattr(node, "lineno", 0), found.op, [one, other])

    def _conditional(self, node: ast.IfExp) -> tree.Expr:
        test = self.truth(node.test)
        self.is_conditional = True
        return self.select(node, test, self.value(node.body), self.value(node.orelse))

    def select(
        self, node: ast.AST, test: tree.Expr, chosen: tree.Expr, other: tree.Expr
    ) -> tree.Expr:
        """``chosen if test else other``."""
        try:
            found = join(chosen.type, other.type)
        except Disagreement:
            self.refuse(
                node,
                f"is {chosen.type} or {other.type}: convert one of them, "
                f"numpy.{chosen.type.dtype.name}(...)",
            )
        line = getattr(node, "lineno", 0)
        self.fits(chosen, found.dtype, node)
        self.fits(other, found.dtype, node)
        if isinstance(test, tree.Const):
            return self.converted(chosen if test.value else other, found)
        return tree.Select(
            found, line, test, self.converted(chosen, found), self.converted(other, found)
        )

    # -- arrays -----------------------------------------------------------------------------------

    def element(self, name: str) -> np.dtype:
        """The dtype of an array's elements."""
        local = self.function.local_arrays.get(name)
        return self.function.arrays[name].dtype if local is None else local.dtype

    def place(self, node: ast.Subscript) -> tuple[str, list[tree.Expr], bool]:
        """`element_at` for ``x[i, j]``."""
        assert isinstance(node.value, ast.Name)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return self.element_at(node, node.value, parts)

    def element_at(
        self, node: ast.AST, array: ast.expr, parts: list[ast.expr]
    ) -> tuple[str, list[tree.Expr], bool]:
        """Array, indices, and whether the array is a local one."""
        name = array.id if isinstance(array, ast.Name) else ""
        local = self.function.local_arrays.get(name)
        known = self.function.arrays.get(name)
        if local is None and known is None:
            if name in self.function.scalars or name in self.function.indices:
                self.refuse(
                    node, f"`{name}` is a number here: it has no elements; of an array without "
                    f"axes pass {name}.reshape(1), and write {name}[0]"
                )
            if name in self.source.locals:
                self.refuse(node, f"`{name}` is no array here: clfuse.local_array makes one")
            if name:
                self._captured(array)
            self.refuse(node, "an array is needed here, by its name")
        rank = self.rank(name)
        if len(parts) != rank:
            self.refuse(node, f"`{name}` has {rank} axes, and {len(parts)} indices are given")
        indices = []
        for axis, part in enumerate(parts):
            index = self.integer(part)
            if isinstance(index, tree.Const) and local is not None:
                index = self.number(self._inside(name, int(index.value), axis, part), part)
            elif isinstance(index, tree.Const) and index.value < 0:
                extent = tree.Extent(INT, index.line, name, axis)
                index = self.apply("add", [extent, index], part)
            indices.append(index)
        return name, indices, local is not None

    def _inside(self, name: str, index: int, axis: int, node: ast.expr) -> int:
        """A known index of a local array, from the beginning.

        Raises
        ------
        IndexError
        """
        extent = self.function.local_arrays[name].shape[axis]
        if not -extent <= index < extent:
            raise IndexError(
                f"kernel {self.source.name} ({self.source.filename}), `{name}` in line "
                f"{node.lineno}: index {index} is out of bounds for axis {axis} with size {extent}"
            )
        return index % extent

    def subscript(self, node: ast.Subscript) -> tree.Expr:
        """``x[i, j]`` and ``x.shape[0]``."""
        if isinstance(node.value, ast.Attribute):
            return self._extent(node, node.value)
        name, indices, is_local = self.place(node)
        if not is_local:
            self.function.reads.add(name)
        return tree.Load(strong(self.element(name)), node.lineno, name, indices, is_local)

    def _extent(self, node: ast.AST, shape: ast.Attribute) -> tree.Expr:
        assert isinstance(node, ast.Subscript)
        axis = self.constant(node.slice)
        known = shape.value
        if type(axis) is not int or not isinstance(known, ast.Name):
            self.refuse(node, "axes are known when the kernel is written: x.shape[0]")
        return self.size(node, known.id, axis)

    def shape(self, node: ast.expr, count: int) -> list[tree.Expr]:
        """The sizes of ``n, m = x.shape``."""
        assert isinstance(node, ast.Attribute)
        assert isinstance(node.value, ast.Name)
        name = node.value.id
        known = self.function.arrays.get(name) or self.function.local_arrays.get(name)
        rank = count if known is None else self.rank(name)
        if rank != count:
            self.refuse(node, f"`{name}` has {rank} axes, and there are {count} names")
        return [self.size(node, name, axis) for axis in range(count)]

    def rank(self, name: str) -> int:
        """How many axes an array has."""
        local = self.function.local_arrays.get(name)
        return len(local.shape) if local is not None else self.function.arrays[name].ndim

    def size(self, node: ast.AST, name: str, axis: int) -> tree.Expr:
        """``x.shape[axis]``."""
        local = self.function.local_arrays.get(name)
        known = self.function.arrays.get(name)
        if local is None and known is None:
            self.refuse(node, f"`{name}` is no array here")
        rank = self.rank(name)
        if not -rank <= axis < rank:
            self.refuse(node, f"`{name}` has {rank} axes")
        if local is not None:
            return self.number(local.shape[axis], node)
        return tree.Extent(INT, getattr(node, "lineno", 0), name, axis % rank)

    def _attribute(self, node: ast.Attribute) -> tree.Expr:
        owner = node.value
        if isinstance(owner, ast.Name) and node.attr in ("size", "ndim"):
            local = self.function.local_arrays.get(owner.id)
            known = self.function.arrays.get(owner.id)
            if local is not None or known is not None:
                rank = len(local.shape) if local else known.ndim  # type: ignore[union-attr]
                if node.attr == "ndim":
                    return self.number(rank, node)
                found: tree.Expr = self.number(1, node)
                for axis in range(rank):
                    part = self.size(node, owner.id, axis)
                    found = part if axis == 0 else self.apply("multiply", [found, part], node)
                return found
        if node.attr in ("real", "imag") and self._is_number(owner):
            return self._part(node, self.value(owner))
        return self._captured(node)

    def _is_number(self, node: ast.expr) -> bool:
        root = root_of(node)
        return not isinstance(root, ast.Name) or self.source.is_own(root.id)

    def _part(self, node: ast.Attribute, value: tree.Expr) -> tree.Expr:
        if value.type.kind == "c":
            dtype = DTYPES["float32" if value.type.dtype.itemsize == 8 else "float64"]
            op = row(node.attr, (value.type.dtype,), dtype)
            return tree.Apply(FLOAT if value.type.weak else strong(dtype), node.lineno, op, [value])
        if node.attr == "real":
            return value
        zero = self.number(0, node)
        return self.converted(zero, value.type)


def changes_arrays(value: tree.Expr) -> bool:
    """Whether an expression changes arrays, or keeps what does: it must not be evaluated twice."""
    return any(
        isinstance(part, tree.Atomic | tree.Bound)
        or (isinstance(part, tree.Call) and bool(part.function.writes))
        for part in expressions(value)
    )


def _is_large(value: tree.Expr) -> bool:
    """Whether it is a Python integer that an int64 does not hold: of NumPy's numbers it takes the
    type, as smaller ones do."""
    return isinstance(value, tree.Const) and not value.type.weak and type(value.value) is int
