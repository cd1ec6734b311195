"""The array route: a kernel over a range of indices as array operations on views.

All iterations take a statement together: ``y[i] = a * x[i]`` over ``range(lo, hi)`` becomes
``y[lo:hi] = a * x[lo:hi]``, recorded as if the user had written that. So kernels fuse with array
code, with reductions and with each other by the planner's own rules. `accesses.conflict` proves
that the order of the iterations does not matter; where it cannot, `NotArrays` says why, and the
kernel becomes a launch of its own.

Conditions on the indices alone (``if 0 < i < n - 1``) cut the range into boxes, in each of which
they are constant: nothing outside of the arrays is ever read, and nothing is masked. Where a
variable gets different values in the boxes, the parts are joined. Other conditions become masks:
both branches are calculated, and what would be read out of bounds is read at the edge instead.
Short loops with known bounds are written out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from ..api.gathering import INDEX_LIMIT, POSITION
from ..api.handle import DTYPES
from ..api.promotion import constant_of
from ..config import settings
from ..graph import build
from ..graph.ir import loop
from ..graph.layout import contiguous_strides
from ..graph.ranges import range_of
from .accesses import Access, Affine, Domain, conflict, is_injective
from .boxes import Boxes, Segments
from .recipe import (
    Cell,
    Number,
    Place,
    Recipe,
    Term,
    broadcast,
    concatenate,
    elementwise,
    read,
    update,
    view,
    write,
)
from .tree import (
    Apply,
    Assign,
    AssignMany,
    Call,
    Const,
    Convert,
    Do,
    Expr,
    Extent,
    For,
    Function,
    If,
    Index,
    Load,
    Local,
    Logic,
    Not,
    Return,
    Scalar,
    Select,
    Stmt,
    Store,
)
from .types import BOOL, INT, Type

UNROLLED: Final = 64
"""Rounds of a loop that are written out; from some hundred on a kernel takes long to compile."""

STEPS: Final = 4000
"""Steps of a recipe: twenty times what a kernel of ours holds at most."""

BOXES: Final = 64
"""Boxes that conditions may cut the range into."""

INT64: Final = DTYPES["int64"]
_AFFINE: Final = frozenset({"add", "subtract", "multiply", "negative", "positive"})
_FOLDED: Final[dict[str, Callable[[int, int], int]]] = {
    "floor_divide": lambda a, b: a // b if b else 0,
    "remainder": lambda a, b: a % b if b else 0,
    "left_shift": lambda a, b: a << b if 0 <= b < 64 else 0,
    "right_shift": lambda a, b: a >> min(max(b, 0), 63),
}


class NotArrays(Exception):
    """Why a kernel is a launch of its own."""


class OutOfBounds(Exception):
    """An index leaves its axis; the message is the IndexError's."""


@dataclass(slots=True)
class Array:
    """An argument: how it lies on which storage cell."""

    name: str
    number: int
    cell: int
    shape: tuple[int, ...]
    dtype: np.dtype
    stored: np.dtype
    offset: int
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """A number that is the same for all calls of the signature."""

    value: Any
    type: Type


@dataclass(frozen=True, slots=True)
class Given:
    """A number that the kernel is called with."""

    name: str
    position: int
    type: Type


@dataclass(frozen=True, slots=True)
class Value:
    """Calculated, over a domain; a shape of () is one number for all of it."""

    term: Any
    domain: Domain


@dataclass(slots=True)
class Frame:
    """One function's variables while it runs."""

    function: Function
    arrays: dict[str, Array]
    scalars: dict[str, Any]
    names: dict[str, Any] = field(default_factory=dict)
    results: list[Any] | None = None


class Translation(Boxes):
    """Runs a function's tree over all iterations at once, writing down a recipe.

    Parameters
    ----------
    function : Function
    domain : Domain
        Not empty.
    arrays : dict
        Parameter to `Array`.
    scalars : dict
        Parameter to `Given` or `Known`.
    integers : dict
        Python integers among the numbers: their values.

    Attributes
    ----------
    structural : set of str
        Numbers whose value the recipe depends on.
    """

    def __init__(
        self,
        function: Function,
        domain: Domain,
        arrays: dict[str, Array],
        scalars: dict[str, Any],
        integers: dict[str, int],
    ) -> None:
        if function.reasons:
            raise NotArrays(function.reasons[0])
        self.recipe = Recipe()
        self.domain = domain
        self.mask: Any = None
        self.integers = integers
        self.structural: set[str] = set()
        self.accesses: list[Access] = []
        self.boxes = 1
        self._known: dict[Any, Any] = {}
        self.frame = Frame(function, arrays, scalars)
        self._root = self.frame
        self._run(function.body)
        reason = conflict(self.accesses)
        if reason is not None:
            raise NotArrays(reason)
        if function.results:
            results = self.frame.results or []
            self.recipe.results = [
                self._full(value, result.dtype)
                for value, result in zip(results, function.results, strict=True)
            ]

    # -- values -----------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the present domain."""
        return tuple([stop - start for start, stop in self.domain])

    def _emit(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], shape: tuple[int, ...],
        dtype: np.dtype,
    ) -> Value:
        if len(self.recipe.steps) >= STEPS:
            raise NotArrays("it has too many operations when its loops are written out")
        return Value(self.recipe.emit(function, arguments, shape, dtype), self.domain)

    def _operand(self, value: Any, dtype: np.dtype) -> Any:
        """A value as an operand of a loop that takes `dtype`: a term, or a constant's node."""
        if isinstance(value, Affine):
            if value.coefficients:
                return self._positions(value).term
            value = Known(value.constant, INT)
        if isinstance(value, Known):
            if value.type.weak:
                return constant_of(_adapted(value.value, dtype), dtype)
            return build.constant(value.value)
        if isinstance(value, Given):
            if not value.type.weak:
                return Number(value.position)
            wanted = dtype if dtype.kind != "b" else value.type.dtype
            return self.recipe.emit(_number, (Number(value.position), wanted), (), wanted)
        return self._here(value).term

    def _here(self, value: Value) -> Value:
        """A value of a larger domain over the present one."""
        if value.domain == self.domain or not value.term.shape:
            return value
        shape = value.term.shape
        offset, strides = 0, contiguous_strides(shape)
        for (start, _), (first, _), step in zip(self.domain, value.domain, strides, strict=True):
            offset += (start - first) * step
        return self._view(value.term, self.shape, offset, strides)

    def _view(
        self, term: Term, shape: tuple[int, ...], offset: int, strides: tuple[int, ...]
    ) -> Value:
        strides = tuple([0 if n == 1 else s for n, s in zip(shape, strides, strict=True)])
        return self._emit(view, (term, shape, offset, strides), shape, term.dtype)

    def _positions(self, value: Affine) -> Value:
        """``constant + sum(coefficient * index)`` over the domain, int64; takes no memory."""
        key = (value, self.domain)
        found = self._known.get(key)
        if found is not None:
            return found  # type: ignore[no-any-return]
        low, high = value.bounds(self.domain)
        shift = min(low, 0)
        line = self.recipe.emit(build.iota, (high - shift + 1,), (high - shift + 1,), INT64)
        offset = value.constant - shift
        strides = []
        for axis, (start, _) in enumerate(self.domain):
            factor = value.coefficient(axis)
            offset += factor * start
            strides.append(factor)
        found = self._view(line, self.shape, offset, tuple(strides))
        if shift:
            constant = constant_of(shift, INT64)
            found = self._map("add", [found.term, constant], INT64)
        self._known[key] = found
        return found

    def _map(self, name: str, operands: list[Any], dtype: np.dtype) -> Value:
        """A row of the op tables on operands of its dtypes."""
        op = loop(name, tuple([operand.dtype for operand in operands]), dtype)
        return self._apply_op(op, operands)

    def _apply_op(self, op: Any, operands: list[Any]) -> Value:
        shape: tuple[int, ...] = ()
        if any(getattr(operand, "shape", ()) for operand in operands):
            shape = self.shape
        return self._emit(elementwise, (op, tuple(operands), shape), shape, op.dtype)

    def _full(self, value: Any, dtype: np.dtype) -> Any:
        """A value of `dtype` for every index of the domain."""
        operand = self._operand(value, dtype)
        made = self._emit(_filled, (operand, dtype, self.shape), self.shape, dtype)
        return made.term

    # -- expressions ------------------------------------------------------------------------------

    def value(self, node: Expr) -> Any:
        """The value of an expression over the present domain."""
        return _VALUES[type(node)](self, node)

    def _const(self, node: Const) -> Any:
        if node.type == INT:
            return Affine(node.value)
        return Known(node.value, node.type)

    def _index(self, node: Index) -> Any:
        return Affine(0, (0,) * node.axis + (1,))

    def _scalar(self, node: Scalar) -> Any:
        return self.frame.scalars[node.name]

    def _local(self, node: Local) -> Any:
        found = self.frame.names.get(node.name)
        return Known(node.type.dtype.type(0), node.type) if found is None else found

    def _extent(self, node: Extent) -> Any:
        return Affine(self.frame.arrays[node.array].shape[node.axis])

    def _apply(self, node: Apply) -> Any:
        values = [self.value(argument) for argument in node.args]
        if node.type == INT:
            found = self.whole(node.op.name, values)
            if found is not None:
                return found
        dtypes = node.op.input_dtypes
        operands = [self._operand(v, dtype) for v, dtype in zip(values, dtypes, strict=True)]
        return self._apply_op(node.op, operands)

    def whole(self, name: str, values: list[Any]) -> Affine | None:
        """Arithmetic of indices, sizes and known integers."""
        known = [self.affine(value) for value in values]
        if any(item is None for item in known):
            return None
        one = known[0]
        assert one is not None
        if name == "positive":
            return one
        if name == "negative":
            return one.times(-1)
        if name == "square":
            return None if one.coefficients else Affine(one.constant**2)
        if len(known) != 2:
            return None
        other = known[1]
        assert other is not None
        if name == "add":
            return one + other
        if name == "subtract":
            return one - other
        if name == "multiply" and not (one.coefficients and other.coefficients):
            return one.times(other.constant) if one.coefficients else other.times(one.constant)
        if name in _FOLDED and not one.coefficients and not other.coefficients:
            return Affine(_FOLDED[name](one.constant, other.constant))
        return None

    def affine(self, value: Any) -> Affine | None:
        """The value as an integer of the indices; None where it is something else.

        A number that the kernel is called with becomes part of the signature.
        """
        if isinstance(value, Affine):
            return value
        if isinstance(value, Known) and type(value.value) in (int, bool):
            return Affine(int(value.value))
        if isinstance(value, Given) and value.name in self.integers and value.type == INT:
            self.structural.add(value.name)
            return Affine(self.integers[value.name])
        return None

    def _convert(self, node: Convert) -> Any:
        value = self.value(node.arg)
        if isinstance(value, Known | Given | Affine) and node.arg.type.weak and node.type.weak:
            if node.type == INT and node.arg.type.kind == "b" and isinstance(value, Known):
                return Affine(int(value.value))
        source = node.arg.type.dtype
        operand = self._operand(value, source)
        return self._emit(_converted, (operand, node.type.dtype), operand.shape
                          if isinstance(operand, Term) else (), node.type.dtype)

    def _not(self, node: Not) -> Any:
        value = self.value(node.arg)
        if isinstance(value, Known):
            return Known(not value.value, node.type)
        return self._map("logical_not", [self._truth(value)], BOOL.dtype)

    def _truth(self, value: Any) -> Any:
        return self._operand(value, BOOL.dtype)

    def _logic(self, node: Logic) -> Any:
        boxed = [self.segments(argument) for argument in node.args]
        if any(item is not None for item in boxed):
            found = node.args[-1]
            for argument in node.args[-2::-1]:
                other = Const(node.type, node.line, not node.both)
                branches = (found, other) if node.both else (other, found)
                found = Select(node.type, node.line, argument, *branches)
            return self.value(found)
        name = "logical_and" if node.both else "logical_or"
        outer = self.mask
        total = self.value(node.args[0])
        for argument in node.args[1:]:
            self.mask = True  # whatever is read from here on may be guarded by what came before
            value = self.value(argument)
            total = self._map(name, [self._truth(total), self._truth(value)], BOOL.dtype)
        self.mask = outer
        return total

    def _select(self, node: Select) -> Any:
        segments = self.segments(node.test)
        if segments is not None:
            parts = []
            for part, truth in self.parts(segments):
                outer, self.domain = self.domain, part
                parts.append((part, self.value(node.chosen if truth else node.other)))
                self.domain = outer
            return self._joined(segments.axis, parts, node.type.dtype)
        test = self.value(node.test)
        chosen = self._masked(test, True, lambda: self.value(node.chosen))
        other = self._masked(test, False, lambda: self.value(node.other))
        return self._choose(test, chosen, other, node.type.dtype)

    def _choose(self, test: Any, chosen: Any, other: Any, dtype: np.dtype) -> Any:
        if chosen == other and not isinstance(chosen, Value):
            return chosen
        operands = [self._operand(test, BOOL.dtype), *[
            self._typed(value, dtype) for value in (chosen, other)
        ]]
        op = loop("where", (BOOL.dtype, dtype, dtype), dtype)
        return self._apply_op(op, operands)

    def _typed(self, value: Any, dtype: np.dtype) -> Any:
        operand = self._operand(value, dtype)
        if operand.dtype == dtype:
            return operand
        shape = operand.shape if isinstance(operand, Term) else ()
        return self._emit(_converted, (operand, dtype), shape, dtype).term

    def _masked(self, test: Any, truth: bool, run: Callable[[], Any]) -> Any:
        """What `run` gives where `test` is `truth`, and elsewhere nothing that matters."""
        outer = self.mask
        self.mask = self._both(outer, test, truth)
        try:
            return run()
        finally:
            self.mask = outer

    def _both(self, mask: Any, test: Any, truth: bool) -> Any:
        value = test
        if not truth:
            value = self._map("logical_not", [self._truth(test)], BOOL.dtype)
        if mask is None or mask is True:
            return value
        return self._map("logical_and", [self._truth(mask), self._truth(value)], BOOL.dtype)

    def _joined(
        self, axis: int, parts: Sequence[tuple[Domain, Any]], dtype: np.dtype
    ) -> Any:
        """One value from those of the boxes along an axis."""
        values = [value for _, value in parts]
        if all(value == values[0] for value in values[1:]) and not isinstance(values[0], Value):
            return values[0]
        if len(values) == 1:
            return values[0]
        terms = []
        outer = self.domain
        for part, value in parts:
            self.domain = part
            terms.append(self._full(value, dtype))
        self.domain = outer
        return self._emit(concatenate, (tuple(terms), axis), self.shape, dtype)

    # -- arrays -----------------------------------------------------------------------------------

    def _load(self, node: Load) -> Any:
        array = self.frame.arrays[node.array]
        values = [self.value(index) for index in node.indices]
        places = [self.affine(value) for value in values]
        text = _text(node.array, node)
        if any(place is None for place in places):
            return self._gathered(array, values, places, text)
        known = [place for place in places if place is not None]
        if not self._inside(array, known, text):
            return self._gathered(array, values, [None] * len(values), text)
        offset, strides = self._walk(array, known)
        self._note(array, known, False, text)
        key = (array.cell, array.dtype, array.offset + offset, strides, self.domain)
        found = self._known.get(key)
        if found is None:
            shape = self.shape if any(strides) else ()
            found = self._known[key] = self._read(array, shape, offset, strides)
        return found

    def _read(
        self, array: Array, shape: tuple[int, ...], offset: int, strides: tuple[int, ...]
    ) -> Value:
        cell, place = Cell(array.cell), Place(array.number, offset)
        strides = strides if shape else ()
        if array.stored is array.dtype:
            strides = tuple([0 if n == 1 else s for n, s in zip(shape, strides, strict=True)])
            return self._emit(view, (cell, shape, place, strides), shape, array.dtype)
        return self._emit(read, (cell, shape, array.dtype, place, strides), shape, array.dtype)

    def _inside(self, array: Array, places: list[Affine], text: str) -> bool:
        """Whether all of the domain is within the array; False where a mask may be the reason.

        Raises
        ------
        OutOfBounds
        """
        for axis, (place, extent) in enumerate(zip(places, array.shape, strict=True)):
            low, high = place.bounds(self.domain)
            if low < 0 or high >= extent:
                if self.mask is not None:
                    return False
                raise OutOfBounds(
                    f"{text}: index {low if low < 0 else high} is out of bounds for axis {axis} "
                    f"with size {extent}; negative indices count from the end only as literals"
                )
        return True

    def _walk(self, array: Array, places: list[Affine]) -> tuple[int, tuple[int, ...]]:
        """Offset from the array's own, and a stride for every index of the domain."""
        offset = 0
        strides = [0] * len(self.domain)
        for place, step in zip(places, array.strides, strict=True):
            offset += step * place.constant
            for axis, (start, _) in enumerate(self.domain):
                factor = place.coefficient(axis)
                offset += step * factor * start
                strides[axis] += step * factor
        extents = self.shape
        return offset, tuple([0 if n == 1 else s for n, s in zip(extents, strides, strict=True)])

    def _note(self, array: Array, places: list[Affine] | None, writes: bool, text: str) -> None:
        place = None
        if places is not None:
            place = Affine(array.offset)
            for index, step in zip(places, array.strides, strict=True):
                place = place + index.times(step)
            place = place.times(array.dtype.itemsize)
        layout = (array.offset, array.strides, array.shape)
        self.accesses.append(Access(
            array.cell, array.name, writes, place, array.dtype.itemsize, self.domain,
            tuple(places or ()), layout, text,
        ))

    def _gathered(
        self, array: Array, values: list[Any], places: list[Affine | None], text: str
    ) -> Value:
        """Elements at computed places; places outside of the array are those at its edge."""
        if settings.check == "bounds":
            raise NotArrays(f"CLFUSE_CHECK=bounds looks at the index of {text}")
        if 0 in array.shape:
            raise OutOfBounds(f"{text}: the array is empty")
        size = 1
        for extent, step in zip(array.shape, array.strides, strict=True):
            size += abs(step) * (extent - 1)
        dtype = POSITION if size < INDEX_LIMIT else INT64
        total: Any = None
        offset = 0
        strides = [0] * len(self.domain)
        for axis, (value, place) in enumerate(zip(values, places, strict=True)):
            step, extent = array.strides[axis], array.shape[axis]
            if place is not None:
                if not self._inside_axis(array, axis, place):
                    return self._gathered(array, values, [None] * len(values), text)
                offset += step * place.constant
                for index, (start, _) in enumerate(self.domain):
                    offset += step * place.coefficient(index) * start
                    strides[index] += step * place.coefficient(index)
                continue
            operand = self._operand(value, INT64)
            shape = getattr(operand, "shape", ())
            term = self._emit(_clamped, (operand, extent, step, dtype), shape, dtype).term
            if total is None:
                total = term
            else:
                total = self._map("add", [total, term], dtype).term
        self._note(array, None, False, text)
        shape = self.shape
        arguments = (
            Cell(array.cell), array.dtype, array.shape, Place(array.number, 0), array.strides,
            total, shape, offset, tuple(strides),
        )
        return self._emit(_gather, arguments, shape, array.dtype)

    def _inside_axis(self, array: Array, axis: int, place: Affine) -> bool:
        low, high = place.bounds(self.domain)
        if 0 <= low and high < array.shape[axis]:
            return True
        if self.mask is None:
            raise OutOfBounds(
                f"`{array.name}`: index {low if low < 0 else high} is out of bounds for axis "
                f"{axis} with size {array.shape[axis]}"
            )
        return False

    def _call(self, node: Call) -> Any:
        return self.call(node)[node.result]

    def call(self, node: Call) -> list[Any]:
        """The results of a function."""
        scalars = {name: self.value(argument) for name, argument in node.args.items()}
        arrays = {name: self.frame.arrays[own] for name, own in node.arrays.items()}
        outer, self.frame = self.frame, Frame(node.function, arrays, scalars)
        self._run(node.function.body)
        results = self.frame.results or []
        self.frame = outer
        return results

    # -- statements -------------------------------------------------------------------------------

    def _run(self, body: list[Stmt]) -> None:
        for place, statement in enumerate(body):
            if isinstance(statement, If):
                self._if(statement, body[place + 1 :])
                return
            if isinstance(statement, Return):
                self.frame.results = [self.value(value) for value in statement.values]
                return
            _STATEMENTS[type(statement)](self, statement)

    def _assign(self, node: Assign) -> None:
        self._set(node.name, self.value(node.value), node.value.type)

    def _set(self, name: str, value: Any, found: Type) -> None:
        """A variable's new value, of the variable's own type."""
        wanted = self.frame.function.locals[name]
        if wanted != found and not (isinstance(value, Known | Affine) and wanted.weak):
            value = self._retyped(value, wanted.dtype)
        self.frame.names[name] = value

    def _retyped(self, value: Any, dtype: np.dtype) -> Any:
        if isinstance(value, Known | Affine) and not getattr(value, "coefficients", ()):
            number = value.constant if isinstance(value, Affine) else value.value
            with np.errstate(all="ignore"):
                return Known(dtype.type(number), Type(dtype))
        operand = self._operand(value, dtype)
        if operand.dtype == dtype:
            return Value(operand, self.domain) if isinstance(operand, Term) else value
        shape = operand.shape if isinstance(operand, Term) else ()
        return self._emit(_converted, (operand, dtype), shape, dtype)

    def _assign_many(self, node: AssignMany) -> None:
        results = self.call(node.call)
        for name, value, found in zip(
            node.names, results, node.call.function.results, strict=False
        ):
            self._set(name, value, found)

    def _store(self, node: Store) -> None:
        array = self.frame.arrays[node.array]
        values = [self.value(index) for index in node.indices]
        places = [self.affine(value) for value in values]
        text = _text(node.array, node)
        if any(place is None for place in places):
            raise NotArrays(f"{text} is written at a place computed from data")
        known = [place for place in places if place is not None]
        if not self._inside(array, known, text):
            raise NotArrays(f"{text} is written under a condition on data, beyond the array")
        offset, strides = self._walk(array, known)
        value = self.value(node.value)
        shape = self.shape
        if not is_injective(strides, shape):
            raise NotArrays(f"several iterations write to {text}")
        term = self._full(value, array.dtype)
        if self.mask is not None:
            old = self._read(array, shape, offset, strides)
            where = loop("where", (BOOL.dtype, array.dtype, array.dtype), array.dtype)
            term = self._apply_op(where, [self._truth(self.mask), term, old.term]).term
        self._note(array, known, True, text)
        cell, place = Cell(array.cell), Place(array.number, offset)
        if array.stored is array.dtype:
            self.recipe.write(array.cell, update, (cell, term, place, strides))
        else:
            self.recipe.write(array.cell, write, (cell, term, array.dtype, place, strides))
        self._known = {key: v for key, v in self._known.items() if key[0] != array.cell}
        key = (array.cell, array.dtype, array.offset + offset, strides, self.domain)
        self._known[key] = Value(term, self.domain)

    def _for(self, node: For) -> None:
        parts = [self.affine(self.value(part)) for part in (node.start, node.stop, node.step)]
        if any(part is None or part.coefficients for part in parts):
            raise NotArrays(f"the loop in line {node.line} has bounds that are data")
        start, stop, step = [part.constant for part in parts if part is not None]
        if not step:
            raise NotArrays(f"the loop in line {node.line} has a step of 0")
        rounds = range(start, stop, step)
        if len(rounds) > UNROLLED:
            raise NotArrays(f"the loop in line {node.line} has {len(rounds)} rounds")
        for number in rounds:
            self.frame.names[node.name] = Affine(number)
            self._run(node.body)

    def _do(self, node: Do) -> None:
        raise NotArrays(f"line {node.line} is called for its effect")

    def _if(self, node: If, rest: list[Stmt]) -> None:
        """The condition, both branches, and what follows.

        Where a branch returns, what follows belongs to the other one.
        """
        body, orelse = node.body, node.orelse
        leaves = _may_return(body) or _may_return(orelse)
        if leaves:
            body, orelse = body + rest, orelse + rest
            rest = []
        if isinstance(node.test, Logic):
            nested = self._taken_apart(node.test, body, orelse, node.line)
            if nested is not None:
                self._if(nested, [])
                self._run(rest)
                return
        segments = self.segments(node.test)
        if segments is None:
            self._if_masked(self.value(node.test), body, orelse)
        else:
            self._if_boxed(segments, body, orelse)
        self._run(rest)

    def _taken_apart(
        self, test: Logic, body: list[Stmt], orelse: list[Stmt], line: int
    ) -> If | None:
        """``if a and b`` as ``if a: if b``, conditions on indices first; None where there is
        none."""
        if self.segments(test) is not None:
            return None
        first = next((part for part in test.args if self.segments(part) is not None), None)
        if first is None:
            return None
        others = [part for part in test.args if part is not first]
        second = others[0] if len(others) == 1 else Logic(test.type, line, test.both, others)
        inner = [If(line, second, body, orelse)]
        return If(line, first, inner, orelse) if test.both else If(line, first, body, inner)

    def _if_boxed(self, segments: Segments, body: list[Stmt], orelse: list[Stmt]) -> None:
        before, outer = self.frame.names, self.domain
        results = self.frame.results
        parts: list[tuple[Domain, dict[str, Any], list[Any] | None]] = []
        for part, truth in self.parts(segments):
            self.domain = part
            self.frame.names = dict(before)
            self.frame.results = results
            mask, self.mask = self.mask, self._restricted(self.mask)
            self._run(body if truth else orelse)
            self.mask = mask
            parts.append((part, self.frame.names, self.frame.results))
        self.domain = outer
        self.frame.names = before = dict(before)
        kept = {name for _, names, _ in parts for name in names}
        for name in kept:
            found = [(part, names.get(name)) for part, names, _ in parts]
            if all(value is before.get(name) for _, value in found):
                continue
            wanted = self.frame.function.locals[name]
            zero = Known(wanted.dtype.type(0), wanted)
            filled = [(part, zero if value is None else value) for part, value in found]
            before[name] = self._joined(segments.axis, filled, wanted.dtype)
        self._join_results(segments.axis, parts)

    def _join_results(
        self, axis: int, parts: list[tuple[Domain, dict[str, Any], list[Any] | None]]
    ) -> None:
        lists = [results for _, _, results in parts]
        self.frame.results = None
        if any(found is not None for found in lists):
            types = self.frame.function.results
            self.frame.results = [
                self._joined(axis, [
                    (part, found[k] if found is not None else Known(t.dtype.type(0), t))
                    for part, _, found in parts
                ], t.dtype)
                for k, t in enumerate(types)
            ]

    def _restricted(self, mask: Any) -> Any:
        return self._here(mask) if isinstance(mask, Value) else mask

    def _if_masked(self, test: Any, body: list[Stmt], orelse: list[Stmt]) -> None:
        before, results = self.frame.names, self.frame.results
        found = []
        for truth, statements in ((True, body), (False, orelse)):
            self.frame.names = dict(before)
            self.frame.results = results
            if statements:
                self._masked(test, truth, lambda s=statements: self._run(s))  # type: ignore[misc]
            found.append((self.frame.names, self.frame.results))
        (names, chosen), (others, other) = found
        merged = dict(before)
        for name in {*names, *others}:
            one, two = names.get(name), others.get(name)
            if one is None or two is None or one is two:
                merged[name] = two if one is None else one
            else:
                dtype = self.frame.function.locals[name].dtype
                merged[name] = self._choose(test, one, two, dtype)
        self.frame.names = merged
        self.frame.results = chosen if other is None else other
        if chosen is not None and other is not None:
            types = self.frame.function.results
            self.frame.results = [
                self._choose(test, one, two, t.dtype)
                for one, two, t in zip(chosen, other, types, strict=True)
            ]


def _may_return(body: list[Stmt]) -> bool:
    for statement in body:
        if isinstance(statement, Return):
            return True
        if isinstance(statement, If) and (
            _may_return(statement.body) or _may_return(statement.orelse)
        ):
            return True
    return False


def _text(name: str, node: Any) -> str:
    return f"`{name}` in line {node.line}"


def _adapted(value: Any, dtype: np.dtype) -> Any:
    """A Python number as one that a constant of `dtype` is made of."""
    if dtype.kind in "iu" and isinstance(value, float):
        return int(value)
    return value


_VALUES: Final[dict[type, Any]] = {
    Const: Translation._const,
    Index: Translation._index,
    Scalar: Translation._scalar,
    Local: Translation._local,
    Extent: Translation._extent,
    Apply: Translation._apply,
    Convert: Translation._convert,
    Not: Translation._not,
    Logic: Translation._logic,
    Select: Translation._select,
    Load: Translation._load,
    Call: Translation._call,
}
_STATEMENTS: Final[dict[type, Any]] = {
    Assign: Translation._assign,
    AssignMany: Translation._assign_many,
    Store: Translation._store,
    For: Translation._for,
    Do: Translation._do,
}


# -- steps that are more than one function of `graph.build` -----------------------------------------


def _number(value: Any, dtype: np.dtype) -> Any:
    """A number of the call as a constant of the loop's dtype."""
    return constant_of(value, dtype)


def _converted(node: Any, dtype: np.dtype) -> Any:
    """A node of another dtype: what is no bool yet is true unless it is zero."""
    from ..api.expressions import convert

    return convert(node, dtype)


def _filled(node: Any, dtype: np.dtype, shape: tuple[int, ...]) -> Any:
    """A node for every index."""
    return broadcast(_converted(node, dtype), shape)


def _clamped(node: Any, extent: int, step: int, dtype: np.dtype) -> Any:
    """``step * index`` with the index within 0 and extent - 1."""
    low, high = range_of(node)
    inside = 0 <= low and high < extent
    if not inside:
        node = build.cast(node, INT64)
        limits = (constant_of(0, INT64), constant_of(extent - 1, INT64))
        node = build.apply("clip", (node, *limits), INT64, node.shape)
    node = build.cast(node, dtype)
    if step != 1:
        node = build.apply("multiply", (node, constant_of(step, dtype)), dtype, node.shape)
    return node


def _gather(
    stored: Any,
    dtype: np.dtype,
    extents: tuple[int, ...],
    place: int,
    steps: tuple[int, ...],
    position: Any,
    shape: tuple[int, ...],
    offset: int,
    strides: tuple[int, ...],
) -> Any:
    """Elements of an array that lies so on its storage, at computed positions."""
    if stored.dtype is not dtype:
        # The bytes seen as another dtype are no array yet: all that the view spans is made one.
        low = sum([min(0, s * (n - 1)) for n, s in zip(extents, steps, strict=True)])
        high = sum([max(0, s * (n - 1)) for n, s in zip(extents, steps, strict=True)])
        stored = read(stored, (high - low + 1,), dtype, place + low, (1,))
        place = -low
    return build.gather(stored, position, shape, place + offset, strides)


