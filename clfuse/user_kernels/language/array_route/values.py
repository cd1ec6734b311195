"""Values of a kernel's expressions over all iterations at once, and the steps that make them.

A value is a number, an integer of the indices (`Affine`), or a `Term` of the recipe for every index
of the domain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from clfuse.arrays.handle import DTYPES
from clfuse.arrays.promotion import constant_of
from clfuse.config import settings
from clfuse.functions.indexing.gathering import INDEX_LIMIT, POSITION
from clfuse.ir import build
from clfuse.ir.layout import contiguous_strides
from clfuse.ir.nodes import loop
from clfuse.user_kernels.language.source import tree
from clfuse.user_kernels.language.source.types import BOOL, INT, WEAK_BOOL

from . import steps
from .accesses import Access, Affine, Domain
from .boxes import Boxes, NotArrays
from .operands import Array, Column, Frame, Given, Known, OutOfBounds, Value
from .recipe import Cell, Number, Place, Recipe, Term, concatenate, elementwise, read, view

STEPS: Final = 4000
"""Steps of a recipe: twenty times what a kernel of ours holds at most."""

INT64: Final = DTYPES["int64"]
_LIMITS: Final = np.iinfo(INT64)
_FOLDED: Final[dict[str, Callable[[int, int], int]]] = {
    "floor_divide": lambda a, b: a // b if b else 0,
    "remainder": lambda a, b: a % b if b else 0,
    "left_shift": lambda a, b: a << b if 0 <= b < 64 else 0,
    "right_shift": lambda a, b: a >> min(max(b, 0), 63),
}


class Values(Boxes):
    """Evaluates expressions over the present domain.

    domain (Domain)
    mask: where what is evaluated counts, if not everywhere; True if that is not known.
    integers: Python integers among the numbers: their values.
    structural: numbers whose value the recipe depends on.
    lead: 1 where the first index is the number of the call, and every array has an axis for it.
    """

    lead: int
    recipe: Recipe
    mask: Any
    integers: dict[str, int]
    structural: set[str]
    accesses: list[Access]
    frame: Frame
    _known: dict[Any, Any]

    def call(self, node: tree.Call) -> list[Any]:
        """The results of a function of the language."""
        raise NotImplementedError

    # -- values -----------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the present domain."""
        return tuple([stop - start for start, stop in self.domain])

    def along_calls(self, column: Column) -> Value:
        """A vector along the first index."""
        strides = tuple([int(axis == 0 and n > 1) for axis, n in enumerate(self.shape)])
        arguments = (Number(column.position), self.shape, 0, strides)
        return self._emit(view, arguments, self.shape, column.type.dtype)

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
            if not all(_LIMITS.min <= end <= _LIMITS.max for end in value.bounds(self.domain)):
                raise NotArrays("an integer of its indices leaves 64 bits")
            if value.coefficients:
                return self._positions(value).term
            value = Known(value.constant, INT)
        if isinstance(value, Known):
            if value.type.weak:
                return constant_of(_adapted(value.value, dtype), dtype)
            return build.constant(value.value)
        if isinstance(value, Given):
            if not value.type.weak:
                return Number(value.position, value.type.dtype)
            wanted = dtype if dtype.kind != "b" else value.type.dtype
            self.recipe.numbers.append((value.position, wanted))
            return self.recipe.emit(steps.number, (Number(value.position), wanted), (), wanted)
        return self._here(value).term

    def _here(self, value: Value) -> Value:
        """A value of a larger domain over the present one."""
        if value.domain == self.domain or not value.term.shape:
            return value
        shape = value.term.shape
        offset, strides = 0, contiguous_strides(shape)
        # In a loop that is folded there is one index more than where the value comes from.
        own = self.domain[: len(value.domain)]
        for (start, _), (first, _), step in zip(own, value.domain, strides, strict=True):
            offset += (start - first) * step
        strides += (0,) * (len(self.domain) - len(own))
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
        made = self._emit(steps.fill_indices, (operand, dtype, self.shape), self.shape, dtype)
        return made.term

    # -- expressions ------------------------------------------------------------------------------

    def value(self, node: tree.Expr) -> Any:
        """The value of an expression over the present domain."""
        return _VALUES[type(node)](self, node)

    def _const(self, node: tree.Const) -> Any:
        if node.type == INT:
            return Affine(node.value)
        if not node.type.weak and type(node.value) is int:  # one that an int64 does not hold
            return Known(node.type.dtype.type(node.value), node.type)
        return Known(node.value, node.type)

    def _index(self, node: tree.Index) -> Any:
        return Affine(0, (0,) * (node.axis + self.lead) + (1,))

    def _scalar(self, node: tree.Scalar) -> Any:
        return self.frame.scalars[node.name]

    def _local(self, node: tree.Local) -> Any:
        found = self.frame.names.get(node.name)
        return Known(node.type.dtype.type(0), node.type) if found is None else found

    def _extent(self, node: tree.Extent) -> Any:
        return Affine(self.frame.arrays[node.array].shape[node.axis + self.lead])

    def _apply(self, node: tree.Apply) -> Any:
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
        if name == "invert":
            return one.times(-1) + Affine(-1)
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

    def _convert(self, node: tree.Convert) -> Any:
        value = self.value(node.arg)
        if isinstance(value, Known) and node.type == INT and node.arg.type.kind == "b":
            return Affine(int(value.value))
        source = node.arg.type.dtype
        operand = self._operand(value, source)
        return self._emit(steps.convert_node, (operand, node.type.dtype), operand.shape
                          if isinstance(operand, Term) else (), node.type.dtype)

    def _not(self, node: tree.Not) -> Any:
        value = self.value(node.arg)
        if isinstance(value, Known):
            return Known(not value.value, WEAK_BOOL)
        return self._map("logical_not", [self._truth(value)], BOOL.dtype)

    def _truth(self, value: Any) -> Any:
        return self._operand(value, BOOL.dtype)

    def _logic(self, node: tree.Logic) -> Any:
        boxed = [self.segments(argument) for argument in node.args]
        if any(item is not None for item in boxed):
            found = node.args[-1]
            for argument in node.args[-2::-1]:
                other = tree.Const(WEAK_BOOL, node.line, not node.both)
                branches = (found, other) if node.both else (other, found)
                found = tree.Select(node.type, node.line, argument, *branches)
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

    def _select(self, node: tree.Select) -> Any:
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
        return self._emit(steps.convert_node, (operand, dtype), shape, dtype).term

    def _masked(self, test: Any, truth: bool, run: Callable[[], Any]) -> Any:
        """What `run` gives where `test` is `truth`, and elsewhere nothing that matters."""
        outer = self.mask
        self.mask = self._both(outer, test, truth)
        try:
            return run()
        finally:
            self.mask = outer

    def _both(self, mask: Any, test: Any, truth: bool) -> Any:
        if mask is True:
            return True
        value = test
        if not truth:
            value = self._map("logical_not", [self._truth(test)], BOOL.dtype)
        if mask is None:
            return value
        return self._map("logical_and", [self._truth(mask), self._truth(value)], BOOL.dtype)

    def _joined(self, axis: int, parts: Sequence[tuple[Domain, Any]], dtype: np.dtype) -> Any:
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

    def _load(self, node: tree.Load) -> Any:
        array = self.frame.arrays[node.array]
        values = self.indices(node.indices)
        places = [self.affine(value) for value in values]
        text = text_of(node.array, node)
        if any(place is None for place in places):
            return self._gathered(array, values, places, text)
        known = [place for place in places if place is not None]
        if not self._inside(array, known, text, node.indices):
            return self._gathered(array, values, [None] * len(values), text)
        offset, strides = self._walk(array, known)
        self._note(array, known, False, text)
        key = (array.cell, array.dtype, array.offset + offset, strides, self.domain)
        found = self._known.get(key)
        if found is None:
            shape = self.shape if any(strides) else ()
            found = self._known[key] = self._read(array, shape, offset, strides)
        return found

    def indices(self, nodes: list[tree.Expr]) -> list[Any]:
        """An element's indices; of a batch the number of the call before them."""
        values = [self.value(index) for index in nodes]
        return [Affine(0, (1,)), *values] if self.lead else values

    def _read(
        self, array: Array, shape: tuple[int, ...], offset: int, strides: tuple[int, ...]
    ) -> Value:
        cell, place = Cell(array.cell), Place(array.number, offset)
        strides = strides if shape else ()
        if array.stored is array.dtype:
            strides = tuple([0 if n == 1 else s for n, s in zip(shape, strides, strict=True)])
            return self._emit(view, (cell, shape, place, strides), shape, array.dtype)
        return self._emit(read, (cell, shape, array.dtype, place, strides), shape, array.dtype)

    def _inside(
        self, array: Array, places: list[Affine], text: str, nodes: list[tree.Expr]
    ) -> bool:
        """Whether all of the domain is within the array; False where a mask may be the reason.

        `nodes` are the indices as they were written.

        Raises
        ------
        OutOfBounds
        """
        for axis, (place, extent) in enumerate(zip(places, array.shape, strict=True)):
            low, high = place.bounds(self.domain)
            if low < 0 or high >= extent:
                if self.mask is not None:
                    return False
                found = tree.from_end(nodes[axis]) if len(nodes) == len(places) else None
                if found is None:
                    found = low if low < 0 else high
                raise OutOfBounds(
                    f"{text}: index {found} is out of bounds for axis {axis} "
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
            term = self._emit(steps.clamp_index, (operand, extent, step, dtype), shape, dtype).term
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
        return self._emit(steps.gather, arguments, shape, array.dtype)

    def _inside_axis(self, array: Array, axis: int, place: Affine) -> bool:
        low, high = place.bounds(self.domain)
        if low >= 0 and high < array.shape[axis]:
            return True
        if self.mask is None:
            raise OutOfBounds(
                f"`{array.name}`: index {low if low < 0 else high} is out of bounds for axis "
                f"{axis} with size {array.shape[axis]}"
            )
        return False

    def _bound(self, node: tree.Bound) -> Any:
        found = self.frame.names[node.name] = self.value(node.arg)
        return found

    def _call(self, node: tree.Call) -> Any:
        return self.call(node)[node.result]


def text_of(name: str, node: Any) -> str:
    return f"`{name}` in line {node.line}"


def _adapted(value: Any, dtype: np.dtype) -> Any:
    """A Python number as one that a constant of `dtype` is made of."""
    if dtype.kind in "iu" and isinstance(value, float):
        return int(value)
    return value


_VALUES: Final[dict[type, Any]] = {
    tree.Const: Values._const,
    tree.Index: Values._index,
    tree.Scalar: Values._scalar,
    tree.Local: Values._local,
    tree.Extent: Values._extent,
    tree.Apply: Values._apply,
    tree.Convert: Values._convert,
    tree.Not: Values._not,
    tree.Logic: Values._logic,
    tree.Select: Values._select,
    tree.Load: Values._load,
    tree.Bound: Values._bound,
    tree.Call: Values._call,
}
