"""The translation of a kernel over a range of indices to array operations on views.

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

from typing import Any, Final

import numpy as np

from clfuse.ir import build
from clfuse.ir.nodes import loop
from clfuse.user_kernels.language.source import tree
from clfuse.user_kernels.language.source.accumulations import accumulators
from clfuse.user_kernels.language.source.types import BOOL, Type

from . import steps
from .accesses import Access, Affine, Domain, conflict, is_injective
from .boxes import NotArrays, Segments
from .operands import Array, Column, Frame, Given, Known, OutOfBounds, Value
from .recipe import Cell, Place, Recipe, Term, update, write
from .values import Values, text_of

__all__ = ["UNROLLED", "Array", "Given", "NotArrays", "OutOfBounds", "Translation"]

UNROLLED: Final = 64
"""Rounds of a loop that are written out; from some hundred on a kernel takes long to compile."""


class Translation(Values):
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
    lead : int
        1 for a batch: see `Values`.

    structural (set of str): numbers whose value the recipe depends on.
    """

    def __init__(
        self,
        function: tree.Function,
        domain: Domain,
        arrays: dict[str, Array],
        scalars: dict[str, Any],
        integers: dict[str, int],
        lead: int = 0,
    ) -> None:
        self.lead = lead
        if function.reasons:
            raise NotArrays(function.reasons[0])
        self.recipe = Recipe(function.name)
        self.domain = domain
        self.mask: Any = None
        self.integers = integers
        self.structural: set[str] = set()
        self.accesses: list[Access] = []
        self.boxes = 1
        self._known: dict[Any, Any] = {}
        tables = {n: self.along_calls(s) for n, s in scalars.items() if isinstance(s, Column)}
        self.frame = Frame(function, arrays, {**scalars, **tables})
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

    def call(self, node: tree.Call) -> list[Any]:
        """The results of a function."""
        scalars = {name: self.value(argument) for name, argument in node.args.items()}
        arrays = {name: self.frame.arrays[own] for name, own in node.arrays.items()}
        outer, self.frame = self.frame, Frame(node.function, arrays, scalars)
        self._run(node.function.body)
        results = self.frame.results or []
        self.frame = outer
        return results

    # -- statements -------------------------------------------------------------------------------

    def _run(self, body: list[tree.Stmt]) -> None:
        for place, statement in enumerate(body):
            if isinstance(statement, tree.If):
                self._if(statement, body[place + 1 :])
                return
            if isinstance(statement, tree.Return):
                self.frame.results = [self.value(value) for value in statement.values]
                return
            _STATEMENTS[type(statement)](self, statement)

    def _assign(self, node: tree.Assign) -> None:
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
        return self._emit(steps.convert_node, (operand, dtype), shape, dtype)

    def _assign_many(self, node: tree.AssignMany) -> None:
        results = self.call(node.call)
        for name, value, found in zip(
            node.names, results, node.call.function.results, strict=False
        ):
            self._set(name, value, found)

    def _store(self, node: tree.Store) -> None:
        array = self.frame.arrays[node.array]
        values = self.indices(node.indices)
        places = [self.affine(value) for value in values]
        text = text_of(node.array, node)
        if any(place is None for place in places):
            raise NotArrays(f"{text} is written at a place computed from data")
        known = [place for place in places if place is not None]
        if not self._inside(array, known, text, node.indices):
            raise NotArrays(f"{text} is written under a condition on data, beyond the array")
        if self.mask is True:
            raise NotArrays(f"{text} is written while a condition is evaluated")
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

    def _for(self, node: tree.For) -> None:
        parts = [self.affine(self.value(part)) for part in (node.start, node.stop, node.step)]
        if any(part is None or part.coefficients for part in parts):
            raise NotArrays(f"the loop in line {node.line} has bounds that are data")
        start, stop, step = [part.constant for part in parts if part is not None]
        if not step:
            raise NotArrays(f"the loop in line {node.line} has a step of 0")
        rounds = range(start, stop, step)
        if len(rounds) > UNROLLED and step == 1 and self._folded(node, rounds):
            return
        if len(rounds) > UNROLLED:
            raise NotArrays(f"the loop in line {node.line} has {len(rounds)} rounds")
        for number in rounds:
            self.frame.names[node.name] = Affine(number)
            self._run(node.body)

    def _folded(self, node: tree.For, rounds: range) -> bool:
        """A loop that adds up, or multiplies, as a reduction over one index more; False where it
        does anything else.

        Sums of floats are grouped otherwise then, as those of `Kernel.reduce` are.
        """
        found = accumulators(node)
        if found is None:
            return False
        outer, mask = self.domain, self.mask
        names = self.frame.names
        self.frame.names = {**names, node.name: Affine(0, (0,) * len(outer) + (1,))}
        self.domain = (*outer, (rounds.start, rounds.stop))
        self.mask = None if mask is None else True
        sums: dict[str, Any] = {}
        for statement in node.body:
            assert isinstance(statement, tree.Assign)
            if statement.name not in found:
                self._assign(statement)
                continue
            op, term = found[statement.name]
            assert op.dtype is not None
            full = self._full(self.value(term), op.dtype)
            arguments = (op.name, full, (len(outer),), op.dtype)
            shape = full.shape[:-1]
            sums[statement.name] = self.recipe.emit(build.reduce, arguments, shape, op.dtype)
        self.domain, self.mask, self.frame.names = outer, mask, names
        for name, total in sums.items():
            op, _ = found[name]
            assert op.dtype is not None
            before = self._operand(names.get(name, Known(0, Type(op.dtype))), op.input_dtypes[0])
            self.frame.names[name] = self._apply_op(op, [before, total])
        self.frame.names[node.name] = Affine(rounds[-1])
        for statement in node.body:  # what other variables have after the last round
            assert isinstance(statement, tree.Assign)
            if statement.name not in found:
                self._assign(statement)
        return True

    def _do(self, node: tree.Do) -> None:
        raise NotArrays(f"line {node.line} is called for its effect")

    def _if(self, node: tree.If, rest: list[tree.Stmt]) -> None:
        """The condition, both branches, and what follows.

        Where a branch returns, what follows belongs to the other one.
        """
        body, orelse = node.body, node.orelse
        leaves = _may_return(body) or _may_return(orelse)
        if leaves:
            body, orelse = body + rest, orelse + rest
            rest = []
        if isinstance(node.test, tree.Logic):
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
        self, test: tree.Logic, body: list[tree.Stmt], orelse: list[tree.Stmt], line: int
    ) -> tree.If | None:
        """``if a and b`` as ``if a: if b``, conditions on indices first; None where there is
        none."""
        if self.segments(test) is not None:
            return None
        first = next((part for part in test.args if self.segments(part) is not None), None)
        if first is None:
            return None
        others = [part for part in test.args if part is not first]
        second = others[0] if len(others) == 1 else tree.Logic(test.type, line, test.both, others)
        inner: list[tree.Stmt] = [tree.If(line, second, body, orelse)]
        return (
            tree.If(line, first, inner, orelse) if test.both else tree.If(line, first, body, inner)
        )

    def _if_boxed(self, segments: Segments, body: list[tree.Stmt], orelse: list[tree.Stmt]) -> None:
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

    def _if_masked(self, test: Any, body: list[tree.Stmt], orelse: list[tree.Stmt]) -> None:
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


def _may_return(body: list[tree.Stmt]) -> bool:
    for statement in body:
        if isinstance(statement, tree.Return):
            return True
        if isinstance(statement, tree.If) and (
            _may_return(statement.body) or _may_return(statement.orelse)
        ):
            return True
    return False


_STATEMENTS: Final[dict[type, Any]] = {
    tree.Assign: Translation._assign,
    tree.AssignMany: Translation._assign_many,
    tree.Store: Translation._store,
    tree.For: Translation._for,
    tree.Do: Translation._do,
}
