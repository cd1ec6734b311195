"""SPMD vectorization on CPUs: kernels whose loops have other lengths in each iteration.

No compiler that we know vectorizes

    while zx * zx + zy * zy < 4.0 and n < limit:
        ...

So on CPUs a kernel has a second function that computes an iteration in every lane; the remainder is
computed one by one. A lane that has left a loop waits for the others:

    long8 t7 = ...;                                        /* the lanes that go on */
    for (;;) { t7 &= v0 * v0 + v1 * v1 < 4.0; if (!any_lane(t7)) break; ... }

Its variables keep their values then, it stores nothing, and it reads the first element where others
read theirs. Every lane calculates what it would by itself, operation by operation: the same bits.
Loops that write to arrays stay as they are: lanes write one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np

from clfuse.codegen.lines.expressions import Expressions, Register, vector
from clfuse.dataclass import mutable
from clfuse.dtypes import memory_type
from clfuse.ir.identifiers import symbol
from clfuse.user_kernels.language.source import tree
from clfuse.user_kernels.language.source.accumulations import IN_LANES, NUMBERS, expressions
from clfuse.user_kernels.language.source.literals import literal

from .c import Writer, parameters_of
from .c_expressions import Text
from .lanes import LANES, Frame, Round, lane_nbytes, place_in

_BOOL: Final = np.dtype(np.bool_)
_INT64: Final = np.dtype(np.int64)

_SHORT: Final = 64
"""Rounds of a loop that leaves nothing early, up to which a kernel may have it beside others: a
longer one is better off with its rounds in lanes, or as it stands."""


def width_of(function: tree.Function, vector_bytes: int) -> int:
    """Iterations that are made at once; 1 where all are made one by one."""
    if not any(_ends_elsewhere(each) for each in _within(function.body)) or not _fits(function):
        return 1
    sizes = [each.type.dtype.itemsize for each in _expressions(function)
             if each.type.kind == "f" and not each.type.weak]
    return min(16, vector_bytes // max(sizes, default=8))


def function_for(text: Text, function: tree.Function, width: int) -> str:
    """Write the C function that makes so many iterations; its name.

    It takes what the one for a single iteration takes, the first one's indices, and gives vectors.
    """
    name = symbol(f"{function.name}_{width}_lanes")
    writer = Writer(text, function, name)
    Abreast(writer, width).write()
    declared = [f"const long i{axis}" for axis in range(len(function.indices))]
    declared += parameters_of(text, function)
    c = Expressions(width, text.traits, text.preamble)
    nbytes = lane_nbytes(width)
    declared += [
        f"{c.type_of(kind.dtype, nbytes)} *r{k}" for k, kind in enumerate(function.results)
    ]
    head = f"static inline void {name}({', '.join(declared)})"
    text.parts.append("\n".join([head, "{", *writer.lines, "}", ""]))
    return name


def _within(body: list[tree.Stmt]) -> Iterator[tree.Stmt]:
    waiting: list[Any] = list(body)
    while waiting:
        each = waiting.pop()
        yield each
        waiting += getattr(each, "body", [])
        waiting += getattr(each, "orelse", [])
        waiting += [
            statement for part in expressions(each) if isinstance(part, tree.Call)
            for statement in part.function.body
        ]


def _expressions(function: tree.Function) -> Iterator[tree.Expr]:
    for statement in _within(function.body):
        yield from expressions(statement)


def _ends_elsewhere(node: tree.Stmt) -> bool:
    return isinstance(node, tree.While) or (isinstance(node, tree.For) and _leaves(node.body))


def _leaves(body: list[tree.Stmt]) -> bool:
    """Whether a loop may end, or a round, before its last statement."""
    for each in body:
        if isinstance(each, tree.Return) or (isinstance(each, tree.Jump) and each.word == "break"):
            return True
        if isinstance(each, tree.If) and (_leaves(each.body) or _leaves(each.orelse)):
            return True
        if isinstance(each, tree.For | tree.While) and any(
            isinstance(s, tree.Return) for s in each.body
        ):
            return True
    return False


def _fits(function: tree.Function) -> bool:
    """Whether all that is in it has a form for lanes."""
    if function.local_arrays or function.atomics:
        return False
    kinds = [*function.locals.values(), *function.results, *function.scalars.values()]
    dtypes = [kind.dtype for kind in kinds] + [kind.dtype for kind in function.arrays.values()]
    if any(dtype.char not in NUMBERS for dtype in dtypes):
        return False
    for each in _within(function.body):
        if isinstance(each, tree.For):
            if not isinstance(each.step, tree.Const) or not each.step.value:
                return False
            if not _ends_elsewhere(each) and not _is_short(each):
                return False
            if _stores(each):
                return False
        elif isinstance(each, tree.While):
            if _stores(each):
                return False
        elif isinstance(each, tree.Store):
            if each.is_local:
                return False
        elif not isinstance(
            each, tree.Assign | tree.AssignMany | tree.If | tree.Jump | tree.Return
        ):
            return False
    for part in _expressions(function):
        if not isinstance(part, IN_LANES) or part.type.dtype.char not in NUMBERS:
            return False
        if isinstance(part, tree.Load) and part.is_local:
            return False
        if isinstance(part, tree.Apply) and any(
            d.char not in NUMBERS for d in part.op.input_dtypes
        ):
            return False
        if isinstance(part, tree.Call) and (
            part.function.local_arrays or part.function.atomics or part.function.writes
        ):
            return False
    return True


def _stores(node: tree.For | tree.While) -> bool:
    return any(isinstance(each, tree.Store) for each in _within(node.body))


def _is_short(node: tree.For) -> bool:
    bounds = (node.start, node.stop, node.step)
    return all(isinstance(part, tree.Const) for part in bounds) and (
        len(range(*[part.value for part in bounds])) <= _SHORT  # type: ignore[attr-defined]
    )


@mutable
class _Scope:
    """A function or a loop: variables with the lanes that stay in it, and that do what follows.

    They differ in loops, by the lanes that a ``continue`` has sent to the next round.
    """

    stays: str
    active: str
    results: tuple[Register, ...] = ()
    is_loop: bool = False


class Abreast(Round):
    """Writes a kernel's function for several iterations at once."""

    def __init__(self, writer: Writer, width: int) -> None:
        function = writer.function
        self.writer = writer
        self.c = Expressions(width, writer.shared.traits, writer.shared.preamble)
        writer.shared.preamble.libraries["lanes.cl"] = None
        self.counter, self.step, self.sums = "", 1, {}
        self.lane_nbytes = lane_nbytes(width)
        self.frame = Frame(function, {}, is_own=True)
        self.mask = None
        self.alive = ""
        self.unset = set()  # a variable may hold what another round gave it
        self.last = len(function.indices) - 1
        self.scopes: list[_Scope] = []

    def write(self) -> None:
        """The statements of the function."""
        function, width = self.frame.function, self.c.width
        numbers = ", ".join(map(str, range(width)))
        self.writer.put(f"const long{width} lanes = (long{width})(i{self.last}) + "
                        f"(long{width})({numbers});")
        self._declare(function)
        results = tuple([
            Register(f"(*r{k})", kind.dtype, self.lane_nbytes)
            for k, kind in enumerate(function.results)
        ])
        self._function(function, results)

    def _declare(self, function: tree.Function) -> None:
        """Give every variable of a function its vector."""
        for name, kind in function.locals.items():
            self.frame.names[name] = self._zero(kind.dtype, name)

    def _zero(self, dtype: np.dtype, what: str) -> Register:
        kind = self.c.type_of(dtype, self.lane_nbytes)
        name = self.writer.fresh()
        self.writer.put(f"{kind} {name} = ({kind})(0);  /* {what} */")
        return Register(name, dtype, self.lane_nbytes)

    def _lanes_here(self, what: str) -> str:
        """A new variable with the lanes that come here."""
        kind = self.c.type_of(_BOOL, self.lane_nbytes)
        name = self.writer.fresh()
        first = f"({kind})(-1)" if self.mask is None else self.mask.text
        self.writer.put(f"{kind} {name} = {first};  /* {what} */")
        return name

    def _function(self, function: tree.Function, results: tuple[Register, ...]) -> None:
        active = self._lanes_here(f"have not returned from {function.name}")
        outer, self.scopes = self.scopes, [_Scope(active, active, results)]
        self.block(function.body)
        self.scopes = outer

    # -- expressions ------------------------------------------------------------------------------

    def _is_uniform(self, node: tree.Expr) -> bool:
        return super()._is_uniform(node) and not any(
            isinstance(each, tree.Index) and each.axis == self.last for each in expressions(node)
        )

    def _is_run(self, node: tree.Expr) -> bool:
        if isinstance(node, tree.Index):
            return node.axis == self.last
        return super()._is_run(node)

    def value(self, node: tree.Expr) -> Register:
        """An expression in a register: of vectors, or `uniform`."""
        if isinstance(node, tree.Index) and node.axis == self.last:
            return Register("lanes", _INT64)
        return super().value(node)

    def _results(self, node: tree.Call) -> list[Register]:
        """A function's statements in the place of a call; its results."""
        function = node.function
        inner = self.frame_of(node)
        results = tuple([self._zero(kind.dtype, "result") for kind in function.results])
        outer, self.frame = self.frame, inner
        self._declare(function)
        self._function(function, results)
        self.frame = outer
        return list(results)

    # -- statements -------------------------------------------------------------------------------

    def block(self, body: list[tree.Stmt]) -> None:
        """The statements in the lanes that count."""
        for place, statement in enumerate(body):
            _STATEMENTS[type(statement)](self, statement)
            if _jumps(statement):
                if body[place + 1 :] and not isinstance(statement, tree.Jump | tree.Return):
                    active = Register(self.scopes[-1].active, _BOOL, self.lane_nbytes)
                    self.under(active, partial(self.block, body[place + 1 :]))
                return

    def _assign(self, node: tree.Assign) -> None:
        variable = self.frame.names[node.name]
        if "'" in node.name:  # of an assignment to several variables, read in the next statements
            text = self.full(self.as_type(node.value, variable.dtype))
            self.writer.put(f"{variable.text} = {text};")
        else:
            self._into(variable, node.value)

    def _assign_many(self, node: tree.AssignMany) -> None:
        for name, found in zip(node.names, self._results(node.call), strict=False):
            variable = self.frame.names[name]
            self._set(variable, self.c.cast(found, variable.dtype, self.lane_nbytes))

    def _jump(self, node: tree.Jump) -> None:
        scope = self.scopes[-1]
        self._end(scope.active)
        if node.word == "break":
            self._end(scope.stays)

    def _end(self, variable: str) -> None:
        ended = "0" if self.mask is None else f"~{self.mask.text}"
        self.writer.put(f"{variable} &= {ended};")

    def _return(self, node: tree.Return) -> None:
        for value, result in zip(node.values, self.scopes[0].results, strict=True):
            self._into(result, value)
        for variable in dict.fromkeys(v for s in self.scopes for v in (s.active, s.stays)):
            self._end(variable)

    def _while(self, node: tree.While) -> None:
        def goes_on(stays: Register) -> None:
            self.mask = stays
            test = self.c.mask(self.value(node.test), self.lane_nbytes)
            self.writer.put(f"{stays.text} &= {test};")

        self._loop("for (;;)", node.body, goes_on)

    def _for(self, node: tree.For) -> None:
        assert isinstance(node.step, tree.Const)
        step = int(node.step.value)
        start, stop = [self.kept(self.full(self.as_type(part, _INT64)), _INT64).text
                       for part in (node.start, node.stop)]
        low, high = (start, stop) if step > 0 else (stop, start)
        kind = f"ulong{self.c.width}"
        less = f"(as_{kind}({high}) - as_{kind}({low}) - 1)"
        rounds = self.writer.fresh()
        each = less if abs(step) == 1 else f"{less} / ({kind})({abs(step)})"
        self.writer.put(f"const {kind} {rounds} = {low} < {high} ? {each} + 1 : ({kind})(0);")
        number = self.writer.fresh()

        def goes_on(stays: Register) -> None:
            test = Register(f"(({kind})({number}) < {rounds})", _BOOL, 8)
            self.writer.put(f"{stays.text} &= {self.c.mask(test, self.lane_nbytes)};")

        def begin() -> None:
            own = literal(step, np.dtype(np.uint64)) if step > 0 else f"-{abs(step)}UL"
            text = f"as_long{self.c.width}(as_{kind}({start}) + ({kind})({number} * {own}))"
            self._set(self.frame.names[node.name], text)

        self._loop(f"for (ulong {number} = 0;; {number}++)", node.body, goes_on, begin)

    def _loop(self, head: str, body: list[tree.Stmt], goes_on: Any, begin: Any = None) -> None:
        outer = self.mask
        stays = Register(self._lanes_here("go on"), _BOOL, self.lane_nbytes)
        self.writer.open(head)
        goes_on(stays)
        self.writer.put(f"if (!any_lane({stays.text})) break;")
        self.mask = self.kept(stays.text, _BOOL, self.lane_nbytes)
        if begin is not None:
            begin()
        scope = _Scope(stays.text, self._lanes_here("are in this round"), is_loop=True)
        self.scopes.append(scope)
        self.block(body)
        self.scopes.pop()
        self.writer.close()
        self.mask = outer

    def _store(self, node: tree.Store) -> None:
        """Lane by lane, or as a vector where the lanes' elements lie side by side."""
        array = self.frame.arrays.get(node.array, node.array)
        dtype = self.frame.function.arrays[node.array].dtype
        pointer, steps = self.writer.layout_of(array, False)
        found = [self.as_type(index, _INT64) for index in node.indices]
        stored, width = vector(memory_type(dtype), self.c.width), self.c.width
        value = self.full(self.as_type(node.value, dtype))
        if dtype.kind == "b":
            value = f"convert_{stored}(-{value})"
        kept = self.writer.fresh()
        self.writer.put(f"const {stored} {kept} = {value};")

        places = [place_in(lane, found, steps) for lane in range(width)]
        varying = [axis for axis, each in enumerate(found) if not each.uniform]
        one_by_one = not (
            self.mask is None and len(varying) == 1 and self._is_run(node.indices[varying[0]])
        )
        if not one_by_one:
            self.writer.put(f"if ({steps[varying[0]]} == 1) "
                            f"vstore{width}({kept}, 0, {pointer} + {places[0]});")
            self.writer.open("else")
        for lane, place in enumerate(places):
            test = f"if ({self.mask.text}.s{LANES[lane]}) " if self.mask is not None else ""
            self.writer.put(f"{test}{pointer}[{place}] = {kept}.s{LANES[lane]};")
        if not one_by_one:
            self.writer.close()


def _jumps(node: tree.Stmt, in_loop: bool = False) -> bool:
    """Whether lanes may not come to the statement after one."""
    if isinstance(node, tree.Return):
        return True
    if isinstance(node, tree.Jump):
        return not in_loop
    inner = in_loop or isinstance(node, tree.For | tree.While)
    bodies = [*getattr(node, "body", []), *getattr(node, "orelse", [])]
    return any(_jumps(each, inner) for each in bodies)


_STATEMENTS: Final[dict[type, Any]] = {
    tree.Assign: Abreast._assign,
    tree.AssignMany: Abreast._assign_many,
    tree.Store: Abreast._store,
    tree.If: Abreast._if,
    tree.For: Abreast._for,
    tree.While: Abreast._while,
    tree.Jump: Abreast._jump,
    tree.Return: Abreast._return,
}
