"""Vectorization of loops whose rounds depend on each other by sums alone: a round in every lane.

No compiler that we know vectorizes a loop with a gather or a condition in it, and bounds that are
data keep a kernel from being array operations. So on CPUs

    for k in range(counts[i]):
        d = x - place[neighbours[i, k]]
        if d * d < limit:
            total += 1 / d

becomes, with a remainder under a mask:

    double8 z1 = (double8)(-0.0);                          /* total, by lanes */
    ulong n = 0;
    for (; n + 8 <= rounds; n += 8) { ...; z1 = t9 ? z1 + t12 : z1; }
    if (n < rounds) { ... the same under a mask, and nothing read past the last round ... }
    total = total + (z1 of all lanes);

Lanes whose condition is false calculate as the others do, but read the first element instead of one
that may not be there. Expressions that are long, or that read, are left out where no lane's
condition is true (`any_lane`). Sums of floats are in another order then, as they are where a loop
becomes a reduction of arrays. Loops that write to arrays, leave early or need the round before stay
as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field, replace
from functools import partial
from typing import Any, Final

import numpy as np

from clfuse.codegen.lines.expressions import Expressions, Register, lanes_like, vector
from clfuse.dataclass import mutable
from clfuse.dtypes import memory_type, register_type
from clfuse.ir.identifiers import symbol
from clfuse.ir.nodes import Op
from clfuse.user_kernels.language.source import tree
from clfuse.user_kernels.language.source.accumulations import (
    SUMS,
    assignments,
    expressions,
    is_cheap,
    jumps,
    read_by,
    sums_of,
    term_of,
)
from clfuse.user_kernels.language.source.literals import literal
from clfuse.user_kernels.language.source.shifts import shift_division
from clfuse.user_kernels.language.source.types import INT

from .c_expressions import ExpressionWriter

_BOOL: Final = np.dtype(np.bool_)
_INT64: Final = np.dtype(np.int64)
STRAIGHT: Final = 16.0
"""Weight of statements that are calculated under a mask without asking whether any lane's condition
is true. The forces of Lennard and Jones within a distance weigh as much: they take 0.86 of the time
on PoCL without the question, which nearly every eight lanes answer with yes."""
LANES: Final = "0123456789abcdef"
_IDENTITIES: Final = {"add": -0.0, "multiply": 1}
"""What an accumulator starts with: adding -0.0 changes nothing, not even -0.0."""


def written(writer: ExpressionWriter, node: tree.For, after: list[list[tree.Stmt]]) -> bool:
    """Write a loop with vectors; False, and nothing written, where it must stay as it is.

    `after` has what may follow the loop, part by part.
    """
    if writer.shared.checked or not writer.shared.vectors:
        return False
    dtype = writer.function.locals[node.name].dtype
    sums = sums_of(writer.function, node, after) if dtype == _INT64 else None
    if sums is None:
        return False
    widths = [op.dtype.itemsize for op in sums.values() if op.dtype is not None]
    widths += [each.type.dtype.itemsize for statement in assignments(node.body)
               for each in expressions(statement) if each.type.kind == "f"]
    width = min(16, writer.shared.traits.vector_bytes // max(widths))
    if width < 2:
        return False
    _Loop(writer, node, sums, width).write()
    return True


def lane_nbytes(width: int) -> int:
    """Of a mask."""
    return 8 if width <= 8 else 4


class _Loop:
    """One loop: its bounds, its rounds, and what comes of them."""

    def __init__(
        self, writer: ExpressionWriter, node: tree.For, sums: dict[str, Op], width: int
    ) -> None:
        self.writer = writer
        self.node = node
        self.sums = sums
        self.c = Expressions(width, writer.shared.traits, writer.shared.preamble)

    def write(self) -> None:
        writer, node, c = self.writer, self.node, self.c
        width = c.width
        writer.shared.preamble.libraries["lanes.cl"] = None
        start, stop = [
            writer.kept(writer.as_type(part, _INT64), _INT64).text
            for part in (node.start, node.stop)
        ]
        assert isinstance(node.step, tree.Const)
        step = int(node.step.value)
        low, high = (start, stop) if step > 0 else (stop, start)
        rounds, done = writer.fresh(), writer.fresh()
        writer.put(f"const ulong {rounds} = {low} < {high} ? "
                   f"((ulong){high} - (ulong){low} - 1) / {abs(step)} + 1 : 0;")
        sums = {name: f"z{writer.fresh()}" for name in self.sums}
        for name, op in self.sums.items():
            assert op.dtype is not None
            first = literal(_IDENTITIES[op.name], op.dtype)
            kind = c.type_of(op.dtype)
            writer.put(f"{kind} {sums[name]} = ({kind})({first});  /* {name}, by lanes */")
        numbers = f"(ulong{width})({', '.join(map(str, range(width)))})"
        writer.put(f"ulong {done} = 0;")
        writer.open(f"for (; {done} + {width} <= {rounds}; {done} += {width})")
        self._round(start, step, f"({done} + {numbers})", None, sums)
        writer.close()
        writer.open(f"if ({done} < {rounds})")
        lane = writer.fresh()
        writer.put(f"const ulong{width} {lane} = {done} + {numbers};")
        mask = f"({lane} < (ulong{width})({rounds}))"
        number = f"min({lane}, (ulong{width})({rounds} - 1))"
        self._round(start, step, number, Register(mask, _BOOL, 8), sums)
        writer.close()
        for name, op in self.sums.items():
            self._fold(name, op, sums[name])
        variable = writer.variables[node.name]
        writer.put(f"if ({rounds}) {variable} = {start} + (long)({rounds} - 1) * {step};")

    def _round(
        self, start: str, step: int, number: str, mask: Register | None, sums: dict[str, str]
    ) -> None:
        kind = f"long{self.c.width}"
        counter = self.writer.fresh()
        times = f" * ({kind})({step})" if step != 1 else ""
        self.writer.put(f"const {kind} {counter} = ({kind})({start}) + "
                        f"convert_{kind}({number}){times};  /* {self.node.name} */")
        body = Round(self, counter, step, sums)
        if mask is not None:
            body.mask = body.kept_mask(mask)
        body.begin(self.node.body)
        body.block(self.node.body)

    def _fold(self, name: str, op: Op, text: str) -> None:
        """Add the lanes up, the upper half to the lower one, and to the variable."""
        writer, dtype = self.writer, op.dtype
        assert dtype is not None
        width = self.c.width
        while width > 1:
            width //= 2
            c = Expressions(width, self.c.traits, self.c.preamble)
            halves = [Register(f"{text}.{half}", dtype) for half in ("lo", "hi")]
            text = writer.fresh()
            total, _ = c.step(op, halves, "")
            writer.put(f"const {c.type_of(dtype)} {text} = {total};")
        variable = writer.variables[name]
        total, _ = writer.c.step(op, [Register(variable, dtype), Register(text, dtype)], "")
        writer.put(f"{variable} = {total};")


def place_in(lane: int, indices: list[Register], steps: list[str]) -> str:
    """How far a lane's element is from the first one; a step is "" where an index has it in it."""
    texts = [each.text if each.uniform else f"{each.text}.s{LANES[lane]}" for each in indices]
    return " + ".join(
        f"(long){text} * {step}" if step else text
        for text, step in zip(texts, steps, strict=True)
    ) or "0"


@mutable
class Frame:
    """Where names lead: of the loop, or of a function that stands in its round.

    `is_own` is true of the loop's, whose uniform expressions are the writer's.
    """

    function: tree.Function
    names: dict[str, Register]
    scalars: dict[str, Register] = field(default_factory=dict)
    arrays: dict[str, str] = field(default_factory=dict)
    is_own: bool = False


class Round:
    """Writes the statements of a round for all lanes.

    mask (Register or None): the lanes that count, if not all of them do.
    alive (str): the variable with the lanes that no ``continue`` has ended; empty where there is
        none.
    unset (set of str): variables that nothing was assigned to so far. What other lanes get with the
        first assignment is overwritten before somebody reads it: `sums_of` looks that every path to
        a reader assigns.
    """

    def __init__(self, owner: _Loop, counter: str, step: int, sums: dict[str, str]) -> None:
        self.writer = owner.writer
        self.c = owner.c
        self.counter, self.step = owner.node.name, step
        self.sums = sums
        self.lane_nbytes = lane_nbytes(owner.c.width)
        names = {self.counter: Register(counter, _INT64)}
        for name, text in sums.items():
            dtype = owner.sums[name].dtype
            assert dtype is not None
            names[name] = Register(text, dtype)
        self.frame = Frame(owner.writer.function, names, is_own=True)
        self.mask: Register | None = None
        self.alive = ""
        self.unset: set[str] = set()

    def begin(self, body: list[tree.Stmt]) -> None:
        """Declare what the round assigns to."""
        names = [
            name for each in assignments(body)
            for name in (each.names if isinstance(each, tree.AssignMany) else [each.name])
        ]
        for name in dict.fromkeys(names):
            if name not in self.frame.names:
                dtype = self.frame.function.locals[name].dtype
                kind = self.c.type_of(dtype, self.lane_nbytes)
                variable = self.writer.fresh()
                self.writer.put(f"{kind} {variable} = ({kind})(0);  /* {name} */")
                self.frame.names[name] = Register(variable, dtype, self.lane_nbytes)
                self.unset.add(variable)
        if self.frame.is_own and jumps(body):
            self.alive = self.writer.fresh()
            kind = self.c.type_of(_BOOL, self.lane_nbytes)
            self.writer.put(f"{kind} {self.alive} = ({kind})(-1);")

    # -- lines ------------------------------------------------------------------------------------

    def kept(self, text: str, dtype: np.dtype, lane_nbytes: int = 4) -> Register:
        """A value in a variable of its own."""
        name = self.writer.fresh()
        self.writer.put(f"const {self.c.type_of(dtype, lane_nbytes)} {name} = {text};")
        return Register(name, dtype, lane_nbytes)

    def kept_mask(self, register: Register) -> Register:
        """A condition with the lanes that all masks have here."""
        text = self.c.mask(register, self.lane_nbytes)
        return self.kept(text, _BOOL, self.lane_nbytes)

    def _and(self, test: Register) -> Register:
        """The lanes that count where `test` is true."""
        text = self.c.mask(test, self.lane_nbytes)
        if self.mask is not None:
            text = f"{self.mask.text} & {text}"
        return self.kept(text, _BOOL, self.lane_nbytes)

    def _inverse(self, test: Register) -> Register:
        if test.uniform:
            return replace(test, text=f"!{test.text}")
        return replace(test, text=f"(~{test.text})")

    def under(self, test: Register, run: Callable[[], Any], *, asks: bool = True) -> None:
        """What `run` writes, where some lane's `test` is true; nothing is read for the others.

        Unless it `asks`, it is calculated where no lane's is true, too.
        """
        outer = self.mask
        if test.uniform:
            self.writer.open(f"if ({test.text})")
        else:
            self.mask = self._and(test)
            self.writer.open(f"if (any_lane({self.mask.text}))" if asks else "")
        run()
        self.writer.close()
        self.mask = outer

    def chosen(self, mask: Register, one: str, other: str, dtype: np.dtype) -> str:
        """`one` in the lanes of a mask, else `other`."""
        lanes = self.lane_nbytes if dtype.kind == "b" else dtype.itemsize
        return f"({self.c.mask(mask, lanes)} ? {one} : {other})"

    # -- expressions ------------------------------------------------------------------------------

    def _is_uniform(self, node: tree.Expr) -> bool:
        return self.frame.is_own and not self.frame.names.keys() & set(read_by(node))

    def value(self, node: tree.Expr) -> Register:
        """An expression in a register: of vectors, or `uniform`."""
        if isinstance(node, tree.Const) or self._is_uniform(node):
            return replace(self.writer.value(node), uniform=True)
        return _VALUES[type(node)](self, node)  # type: ignore[no-any-return]

    def operand(self, node: tree.Expr, dtype: np.dtype) -> Register:
        """An expression as an operand of a loop that takes `dtype`."""
        if isinstance(node, tree.Const) and node.type.weak:
            return Register(literal(node.value, dtype), dtype, uniform=True)
        return self.value(node)

    def as_type(self, node: tree.Expr, dtype: np.dtype) -> Register:
        """An expression converted; a mask has the lanes of all masks."""
        found = self.operand(node, dtype)
        if found.dtype == dtype and dtype.kind != "b":
            return found
        if found.uniform:
            return Register(self.writer.c.cast(found, dtype), dtype, uniform=True)
        text = self.c.cast(found, dtype, self.lane_nbytes)
        return self.kept(text, dtype, self.lane_nbytes)

    def full(self, register: Register) -> str:
        """A register as a vector."""
        if register.dtype.kind == "b":
            return self.c.mask(register, self.lane_nbytes)
        return self.c.number(register)

    def _local(self, node: tree.Local) -> Register:
        return self.frame.names[node.name]

    def _scalar(self, node: tree.Scalar) -> Register:
        return self.frame.scalars[node.name]

    def _extent(self, node: tree.Extent) -> Register:
        array = self.frame.arrays.get(node.array, node.array)
        return Register(f"n{node.axis}_{symbol(array)}", _INT64, uniform=True)

    def _apply(self, node: tree.Apply) -> Register:
        node = shift_division(node)
        dtypes = node.op.input_dtypes
        operands = [self.operand(a, dtype) for a, dtype in zip(node.args, dtypes, strict=True)]
        text, register = self.c.step(node.op, operands, "")
        return self.kept(text, register.dtype, register.lane_nbytes)

    def _convert(self, node: tree.Convert) -> Register:
        found = self.value(node.arg)
        lanes = found.lane_nbytes if found.dtype.kind == "b" else lanes_like(found.dtype)
        return self.kept(self.c.cast(found, node.type.dtype, lanes), node.type.dtype, lanes)

    def _not(self, node: tree.Not) -> Register:
        found = self._inverse(self.value(node.arg))
        return found if found.uniform else self.kept(found.text, _BOOL, found.lane_nbytes)

    def _logic(self, node: tree.Logic) -> Register:
        kind = self.c.type_of(_BOOL, self.lane_nbytes)
        total = Register(self.writer.fresh(), _BOOL, self.lane_nbytes)
        first = self.c.mask(self.value(node.args[0]), self.lane_nbytes)
        self.writer.put(f"{kind} {total.text} = {first};")
        for argument in node.args[1:]:
            if is_cheap(argument):
                self._more(total.text, node.both, argument)
                continue
            open_lanes = total if node.both else self._inverse(total)
            self.under(open_lanes, partial(self._more, total.text, node.both, argument))
        return total

    def _more(self, total: str, both: bool, argument: tree.Expr) -> None:
        text = self.c.mask(self.value(argument), self.lane_nbytes)
        self.writer.put(f"{total} {'&=' if both else '|='} {text};")

    def _select(self, node: tree.Select) -> Register:
        dtype = node.type.dtype
        kind = self.c.type_of(dtype, self.lane_nbytes)
        test = self.value(node.test)
        found = Register(self.writer.fresh(), dtype, self.lane_nbytes)
        self.writer.put(f"{kind} {found.text} = ({kind})(0);")
        for taken, part in ((test, node.chosen), (self._inverse(test), node.other)):
            asks = _weight(part) > STRAIGHT
            self.under(taken, partial(self._into, found, part), asks=asks)
        return found

    def _into(self, variable: Register, node: tree.Expr) -> None:
        """Assign an expression in the lanes that count."""
        text = self.full(self.as_type(node, variable.dtype))
        self._set(variable, text)

    def _set(self, variable: Register, text: str) -> None:
        if self.mask is not None and variable.text not in self.unset:
            text = self.chosen(self.mask, text, variable.text, variable.dtype)
        self.unset.discard(variable.text)
        self.writer.put(f"{variable.text} = {text};")

    def _load(self, node: tree.Load) -> Register:
        """Lane by lane, or as a vector where the lanes' elements lie side by side."""
        dtype, width = node.type.dtype, self.c.width
        array = self.frame.arrays.get(node.array, node.array)
        pointer, steps = self.writer.layout_of(array, node.is_local)
        found = [self.value(index) for index in node.indices]
        varying = [axis for axis, each in enumerate(found) if not each.uniform]
        if self.mask is not None:
            # A lane that does not count reads the first element: that one is there for others.
            for axis in varying:
                own = found[axis]
                zero = f"({self.c.type_of(own.dtype)})(0)"
                text = self.chosen(self.mask, own.text, zero, own.dtype)
                found[axis] = self.kept(text, own.dtype)

        side_by_side = (
            self.mask is None and len(varying) == 1 and self._is_run(node.indices[varying[0]])
        )
        if self.writer.shared.traits.whole_vectors and not side_by_side:
            # PoCL's compiler multiplies lane by lane otherwise: .92 of the time for the forces of
            # Lennard and Jones. Intel's has an instruction for lanes as they are written below.
            for axis in varying:
                text = (f"{self.c.cast(found[axis], _INT64)} * "
                        f"({vector('long', width)})({steps[axis]})")
                found[axis] = self.kept(text, _INT64)
                steps[axis] = ""

        scalar = register_type(dtype) if node.is_local else memory_type(dtype)
        kind = vector(scalar, width)
        places = [place_in(lane, found, steps) for lane in range(width)]
        gathered = f"({kind})({', '.join(f'{pointer}[{place}]' for place in places)})"
        if side_by_side:
            name, step = self.writer.fresh(), steps[varying[0]]
            self.writer.put(f"{kind} {name};")
            self.writer.put(f"if ({step} == 1) {name} = vload{width}(0, {pointer} + {places[0]});")
            self.writer.put(f"else {name} = {gathered};")
        else:
            name = self.writer.fresh()
            self.writer.put(f"const {kind} {name} = {gathered};")
        if dtype.kind != "b":
            return Register(name, dtype)
        lanes = 4 if node.is_local else 1
        return self.kept(f"({name} != ({kind})(0))", _BOOL, lanes)

    def _is_run(self, node: tree.Expr) -> bool:
        """Whether an index grows by one from lane to lane."""
        if isinstance(node, tree.Local):
            return self.frame.is_own and node.name == self.counter and self.step == 1
        if isinstance(node, tree.Apply) and node.type == INT and len(node.args) == 2:
            one, other = node.args
            if node.op.name == "add":
                return (self._is_run(one) and self._is_uniform(other)) or (
                    self._is_uniform(one) and self._is_run(other)
                )
            return (
                node.op.name == "subtract" and self._is_run(one) and self._is_uniform(other)
            )
        return False

    def _call(self, node: tree.Call) -> Register:
        return self._results(node)[node.result]

    def frame_of(self, node: tree.Call) -> Frame:
        """Where the names of a function lead that is called here."""
        scalars = {name: self.as_type(node.args[name], kind.dtype)
                   for name, kind in node.function.scalars.items()}
        arrays = {name: self.frame.arrays.get(own, own) for name, own in node.arrays.items()}
        return Frame(node.function, {}, scalars, arrays)

    def _results(self, node: tree.Call) -> list[Register]:
        """A function's statements in the round; its results."""
        function = node.function
        outer, self.frame = self.frame, self.frame_of(node)
        *body, last = function.body
        assert isinstance(last, tree.Return)
        self.begin(body)
        self.block(body)
        results = [
            self.as_type(value, kind.dtype)
            for value, kind in zip(last.values, function.results, strict=True)
        ]
        self.frame = outer
        return results

    # -- statements -------------------------------------------------------------------------------

    def block(self, body: list[tree.Stmt]) -> None:
        for place, statement in enumerate(body):
            if isinstance(statement, tree.If):
                self._if(statement)
                if self.alive and jumps([statement]):
                    alive = Register(self.alive, _BOOL, self.lane_nbytes)
                    self.under(alive, partial(self.block, body[place + 1 :]))
                    return
            elif isinstance(statement, tree.Assign):
                self._assign(statement)
            elif isinstance(statement, tree.AssignMany):
                for name, found in zip(
                    statement.names, self._results(statement.call), strict=False
                ):
                    variable = self.frame.names[name]
                    self._set(variable, self.c.cast(found, variable.dtype, self.lane_nbytes))
            else:  # continue
                ended = "0" if self.mask is None else f"~{self.mask.text}"
                self.writer.put(f"{self.alive} &= {ended};")
                return

    def _assign(self, node: tree.Assign) -> None:
        variable = self.frame.names[node.name]
        found = term_of(node, SUMS)
        if found is None or not self.frame.is_own or node.name not in self.sums:
            self._into(variable, node.value)
            return
        op, term = found
        operands = [variable, self.operand(term, op.input_dtypes[1])]
        text, _ = self.c.step(op, operands, "")
        self._set(variable, text)

    def _if(self, node: tree.If) -> None:
        test = self.value(node.test)
        if node.orelse and not test.uniform:
            test = self.kept_mask(test)  # the first branch may change what the condition reads
        for taken, body in ((test, node.body), (self._inverse(test), node.orelse)):
            if body:
                asks = _weight(body) > STRAIGHT
                self.under(taken, partial(self.block, body), asks=asks)


def _weight(node: tree.Expr | list[tree.Stmt]) -> float:
    """What it costs to calculate; infinite for what must not be where it does not count, or may
    cost anything."""
    if isinstance(node, list):
        if not all(isinstance(statement, tree.Assign | tree.If) for statement in node):
            return math.inf
        parts = [part for statement in node for part in expressions(statement)]
        inner = [getattr(statement, "body", []) + getattr(statement, "orelse", [])
                 for statement in node]
        return sum(map(_own_weight, parts)) + sum(map(_weight, filter(None, inner)))
    return sum(map(_own_weight, expressions(node)))


def _own_weight(node: tree.Expr) -> float:
    if isinstance(node, tree.Apply):
        return node.op.weight
    return math.inf if isinstance(node, tree.Load | tree.Call) else 0.0


_VALUES: Final[dict[type, Any]] = {
    tree.Local: Round._local,
    tree.Scalar: Round._scalar,
    tree.Extent: Round._extent,
    tree.Apply: Round._apply,
    tree.Convert: Round._convert,
    tree.Not: Round._not,
    tree.Logic: Round._logic,
    tree.Select: Round._select,
    tree.Load: Round._load,
    tree.Call: Round._call,
}
