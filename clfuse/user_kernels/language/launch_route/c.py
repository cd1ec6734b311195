"""The launch route's text: a function's tree as OpenCL C; `launches` records what it makes.

Every operation is written by `codegen.lines.expressions`, as it is in fused kernels, so that both
routes have the same bits. A kernel of the language becomes a function of one iteration, and an
OpenCL kernel that calls it: on a CPU a few work-items with a run of iterations each, on a GPU one a
work-item. ``y[idx[i]] = x[i]`` over ``range(n)``, on a CPU:

    static inline void scatter_0(const long i0, __global double *x, const long n0_x, ...)
    {
        const long t0 = s0_x * i0;
        ...
    }
    __kernel void scatter_kernel(const long low0, const long high0, __global double *x, ...)
    {
        const long total = (high0 - low0);
        const long items = get_global_size(0), item = get_global_id(0);
        long place = total / items * item + min(item, total % items);
        ...
        for (long k = 0; k < count; k++) { scatter_0(i0, x, n0_x, ...); i0++; }
    }
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from clfuse.codegen.lines.expressions import Expressions, Preamble, Register
from clfuse.dtypes import memory_type, register_type
from clfuse.ir.identifiers import symbol
from clfuse.target.traits import DeviceTraits
from clfuse.user_kernels.language.source.accumulations import is_cheap
from clfuse.user_kernels.language.source.literals import literal
from clfuse.user_kernels.language.source.shifts import shifted
from clfuse.user_kernels.language.source.tree import (
    Apply,
    Assign,
    AssignMany,
    Atomic,
    Barrier,
    Bound,
    Call,
    Cleared,
    Const,
    Convert,
    Do,
    Expr,
    Extent,
    For,
    Function,
    Group,
    If,
    Index,
    Jump,
    Load,
    Local,
    Logic,
    Not,
    Return,
    Scalar,
    Select,
    Stmt,
    Store,
    While,
    from_end,
)
from clfuse.user_kernels.language.source.types import ArrayType

from . import lanes, privatized_atomics

_BOOL: Final = np.dtype(np.bool_)
_INT64: Final = np.dtype(np.int64)
_GROUP: Final = {
    "local_id": "get_local_id(0)", "group_id": "get_group_id(0)", "size": "get_local_size(0)",
}
_BITS: Final = {4: "uint", 8: "ulong"}


@dataclass(slots=True)
class Site:
    """Where an index is checked: function, array, line, and indices that count from the end."""

    function: str
    filename: str
    array: str
    line: int
    literals: list[int | None]


@dataclass(slots=True)
class Text:
    """The functions of one launch, and what must stand above them.

    `vectors` says whether loops are written with explicit vectors, `mixed` whether arrays of
    different dtypes share their bytes; the arrays of the function `apart` lie in memory of their
    own, each.
    """

    traits: DeviceTraits
    checked: bool
    vectors: bool
    mixed: bool
    apart: Function | None = None
    preamble: Preamble = field(default_factory=Preamble)
    parts: list[str] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    sites: list[Site] = field(default_factory=list)
    above: dict[str, None] = field(default_factory=dict)

    def memory_type(self, dtype: np.dtype) -> str:
        """The C type of an array's elements. Compilers take what is written to elements of one type
        for no change of those of another one, unless they are told (C99 6.5, paragraph 7)."""
        plain = memory_type(dtype)
        if not self.mixed:
            return plain
        name = f"{plain}_among_others"
        self.above[f"typedef {plain} __attribute__((may_alias)) {name};\n"] = None
        return name

    def name_of(self, function: Function) -> str:
        """The C function for a function of the language; written now if it is new."""
        found = self.names.get(id(function))
        if found is None:
            found = self.names[id(function)] = symbol(
                f"{function.name}_{len(self.names)}"
            )
            self.parts.append(Writer(self, function, found).text())
        return found


def parameters_of(text: Text, function: Function) -> list[str]:
    """The C parameters of its scalars and arrays."""
    restrict = "restrict " if text.apart is function else ""
    found = [f"const {register_type(t.dtype)} a_{symbol(n)}" for n, t in function.scalars.items()]
    for name, kind in function.arrays.items():
        found.append(f"__global {text.memory_type(kind.dtype)} *{restrict}p_{symbol(name)}")
        found += [f"const long n{axis}_{symbol(name)}" for axis in range(kind.ndim)]
        found += [f"const long s{axis}_{symbol(name)}" for axis in range(kind.ndim)]
    return found


def array_arguments(name: str, kind: ArrayType) -> list[str]:
    """An array of the caller's as arguments."""
    known = symbol(name)
    return [f"p_{known}", *[f"n{axis}_{known}" for axis in range(kind.ndim)],
            *[f"s{axis}_{known}" for axis in range(kind.ndim)]]


class Writer:
    """Writes one function."""

    def __init__(self, text: Text, function: Function, name: str, tallied: str = "") -> None:
        self.shared = text
        self.tallied = tallied  # the array whose sums a work-item keeps
        self.function = function
        self.name = name
        self.c = Expressions(1, text.traits, text.preamble)
        self.lines: list[str] = []
        self.depth = 1
        self.count = 0
        self.variables = {n: f"v{k}" for k, n in enumerate(function.locals)}
        self.locals = {n: f"m{k}" for k, n in enumerate(function.local_arrays)}
        self.after: list[list[Stmt]] = []  # what may follow the present statement, part by part

    def text(self) -> str:
        """The whole function."""
        function = self.function
        for name, kind in function.locals.items():
            self.put(f"{self.c.type_of(kind.dtype)} {self.variables[name]} = "
                     f"{literal(0, kind.dtype)};  /* {name} */")
        for name, array in function.local_arrays.items():
            if not array.shared:
                size = math.prod(array.shape)
                variable = self.locals[name]
                self.put(f"{register_type(array.dtype)} {variable}[{size}];  /* {name} */")
        self.block(function.body)
        parameters = [f"const long i{axis}" for axis in range(len(function.indices))]
        parameters += parameters_of(self.shared, function)
        parameters += [
            f"__local {register_type(a.dtype)} *{self.locals[n]}"
            for n, a in function.local_arrays.items() if a.shared
        ]
        if self.tallied:
            lane = register_type(function.arrays[self.tallied].dtype)
            parameters.append(f"{lane} *w_{symbol(self.tallied)}")
        parameters += [
            f"{self.c.type_of(kind.dtype)} *r{k}" for k, kind in enumerate(function.results)
        ]
        if self.shared.checked:
            parameters.append("__global long *faults")
        head = f"static inline void {self.name}({', '.join(parameters)})"
        return "\n".join([head, "{", *self.lines, "}", ""])

    # -- lines ------------------------------------------------------------------------------------

    def put(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def open(self, line: str) -> None:
        self.put(line + " {")
        self.depth += 1

    def close(self) -> None:
        self.depth -= 1
        self.put("}")

    def fresh(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def kept(self, text: str, dtype: np.dtype) -> Register:
        """A value in a variable of its own."""
        name = self.fresh()
        self.put(f"const {self.c.type_of(dtype)} {name} = {text};")
        return Register(name, dtype)

    # -- expressions ------------------------------------------------------------------------------

    def value(self, node: Expr) -> Register:
        """An expression in a register, of the dtype of its type."""
        return _VALUES[type(node)](self, node)  # type: ignore[no-any-return]

    def operand(self, node: Expr, dtype: np.dtype) -> Register:
        """An expression as an operand of a loop that takes `dtype`."""
        if isinstance(node, Const) and node.type.weak:
            return Register(literal(node.value, dtype), dtype)
        return self.value(node)

    def as_type(self, node: Expr, dtype: np.dtype) -> str:
        """An expression converted."""
        return self.c.cast(self.operand(node, dtype), dtype)

    def _const(self, node: Const) -> Register:
        return Register(literal(node.value, node.type.dtype), node.type.dtype)

    def _index(self, node: Index) -> Register:
        return Register(f"i{node.axis}", _INT64)

    def _scalar(self, node: Scalar) -> Register:
        return Register(f"a_{symbol(node.name)}", node.type.dtype)

    def _local(self, node: Local) -> Register:
        return Register(self.variables[node.name], node.type.dtype)

    def _extent(self, node: Extent) -> Register:
        return Register(f"n{node.axis}_{symbol(node.array)}", _INT64)

    def _apply(self, node: Apply) -> Register:
        node = shifted(node)
        dtypes = node.op.input_dtypes
        operands = [self.operand(a, dtype) for a, dtype in zip(node.args, dtypes, strict=True)]
        text, register = self.c.step(node.op, operands, "")
        return self.kept(text, register.dtype)

    def _convert(self, node: Convert) -> Register:
        return self.kept(self.as_type(node.arg, node.type.dtype), node.type.dtype)

    def _not(self, node: Not) -> Register:
        return self.kept(f"!{self.value(node.arg).text}", _BOOL)

    def _logic(self, node: Logic) -> Register:
        name = self.fresh()
        self.put(f"int {name} = {self.value(node.args[0]).text} != 0;")
        for argument in node.args[1:]:
            self.open(f"if ({name if node.both else '!' + name})")
            self.put(f"{name} = {self.value(argument).text} != 0;")
            self.close()
        return Register(name, _BOOL)

    def _select(self, node: Select) -> Register:
        name, dtype = self.fresh(), node.type.dtype
        test = self.value(node.test).text
        if node.both and self.shared.checked:
            one, other = (
                self.kept(self.as_type(part, dtype), dtype).text
                for part in (node.chosen, node.other)
            )
            return self.kept(f"{test} ? {one} : {other}", dtype)
        if is_cheap(node.chosen) and is_cheap(node.other):
            one, other = (self.as_type(part, dtype) for part in (node.chosen, node.other))
            return self.kept(f"{test} ? {one} : {other}", dtype)
        self.put(f"{self.c.type_of(dtype)} {name};")
        self.open(f"if ({test})")
        self.put(f"{name} = {self.as_type(node.chosen, dtype)};")
        self.close()
        self.open("else")
        self.put(f"{name} = {self.as_type(node.other, dtype)};")
        self.close()
        return Register(name, dtype)

    # -- arrays -----------------------------------------------------------------------------------

    def place(
        self, array: str, indices: list[Expr], is_local: bool, line: int
    ) -> tuple[str, str]:
        """The element as C, and the condition under which it is there ("" without checks)."""
        texts = [self.as_type(index, _INT64) for index in indices]
        pointer, steps = self.layout_of(array, is_local)
        test = ""
        if self.shared.checked:
            extents = [f"n{axis}_{symbol(array)}" for axis in range(len(steps))]
            if is_local:
                extents = [f"{extent}L" for extent in self.function.local_arrays[array].shape]
            texts = [self.kept(text, _INT64).text for text in texts]
            literals = [from_end(index) for index in indices]
            test = self._checked(array, texts, extents, line, literals)
        sums = " + ".join(f"{text} * {step}" for text, step in zip(texts, steps, strict=True))
        return f"{pointer}[{sums or '0'}]", test

    def layout_of(self, array: str, is_local: bool) -> tuple[str, list[str]]:
        """An array's first element, and how far it is from one element to the next by axis."""
        if is_local:
            shape = self.function.local_arrays[array].shape
            steps = [str(math.prod(shape[axis + 1 :])) for axis in range(len(shape))]
            return self.locals[array], steps
        rank = self.function.arrays[array].ndim
        return f"p_{symbol(array)}", [f"s{axis}_{symbol(array)}" for axis in range(rank)]

    def _checked(
        self, array: str, texts: list[str], extents: list[str], line: int,
        literals: list[int | None],
    ) -> str:
        sites = self.shared.sites
        sites.append(Site(self.function.name, self.function.filename, array, line, literals))
        tests = []
        for axis, (text, extent) in enumerate(zip(texts, extents, strict=True)):
            name = self.fresh()
            self.put(f"const int {name} = {text} >= 0 && {text} < {extent};")
            self.put(f"if (!{name}) report_fault(faults, {len(sites)}, {axis}, {text}, {extent});")
            tests.append(name)
        return " && ".join(tests) or "1"

    def loaded(self, place: str, dtype: np.dtype, is_local: bool) -> str:
        """An element as a register holds it."""
        if is_local:
            return place
        if dtype.kind == "b":
            return f"({place} != 0)"
        return self.c.from_half(place) if dtype.char == "e" else place

    def _load(self, node: Load) -> Register:
        dtype = node.type.dtype
        place, test = self.place(node.array, node.indices, node.is_local, node.line)
        if not test:
            return self.kept(self.loaded(place, dtype, node.is_local), dtype)
        name = self.fresh()
        self.put(f"{self.c.type_of(dtype)} {name} = {literal(0, dtype)};")
        self.put(f"if ({test}) {name} = {self.loaded(place, dtype, node.is_local)};")
        return Register(name, dtype)

    def _atomic(self, node: Atomic) -> Register:
        dtype = node.type.dtype
        values = [self.kept(self.as_type(a, dtype), dtype).text for a in node.args]
        place, test = self.place(node.array, node.indices, node.is_local, node.line)
        function = self.atomic_function(node.operation, dtype, node.is_local)
        name = self.fresh()
        self.put(f"{register_type(dtype)} {name} = {literal(0, dtype)};")
        guard = f"if ({test}) " if test else ""
        self.put(f"{guard}{name} = {function}(&{place}, {', '.join(values)});")
        return Register(name, dtype)

    def atomic_function(self, operation: str, dtype: np.dtype, is_local: bool) -> str:
        """OpenCL's function for an operation; of floats one that we write."""
        wide = dtype.itemsize == 8
        space = "__local" if is_local else "__global"
        if wide:
            self.shared.above[
                "#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable\n"
                "#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable\n"
            ] = None
        if dtype.kind != "f":
            word = {"and_": "and", "or_": "or", "exchange": "xchg",
                    "compare_exchange": "cmpxchg"}.get(operation, operation)
            return f"atom_{word}" if wide else f"atomic_{word}"
        kind, bits = register_type(dtype), _BITS[dtype.itemsize]
        name = f"atomic_{operation}_{kind}_{space[2:]}"
        sign = "+" if operation == "add" else "-"
        exchange = "atom_cmpxchg" if wide else "atomic_cmpxchg"
        self.shared.above[
            f"static inline {kind} {name}(volatile {space} {kind} *place, const {kind} value)\n"
            "{\n"
            f"    volatile {space} {bits} *word = (volatile {space} {bits} *)place;\n"
            f"    {bits} old = *word, seen;\n"
            "    for (;;) {\n"
            f"        seen = {exchange}(word, old, as_{bits}(as_{kind}(old) {sign} value));\n"
            f"        if (seen == old) return as_{kind}(old);\n"
            "        old = seen;\n"
            "    }\n"
            "}\n"
        ] = None
        return name

    def _bound(self, node: Bound) -> Register:
        variable, dtype = self.variables[node.name], self.function.locals[node.name].dtype
        self.put(f"{variable} = {self.as_type(node.arg, dtype)};")
        return Register(variable, dtype)

    def _group(self, node: Group) -> Register:
        return Register(f"((long)({_GROUP[node.what]}))", _INT64)

    # -- calls ------------------------------------------------------------------------------------

    def _call(self, node: Call) -> Register:
        return self.results(node)[node.result]

    def results(self, node: Call) -> list[Register]:
        """Call a function; its results in variables."""
        function = node.function
        name = self.shared.name_of(function)
        passed = [self.as_type(node.args[n], t.dtype) for n, t in function.scalars.items()]
        for parameter, kind in function.arrays.items():
            passed += array_arguments(node.arrays[parameter], kind)
        found = []
        for result in function.results:
            variable = self.fresh()
            self.put(f"{self.c.type_of(result.dtype)} {variable};")
            passed.append(f"&{variable}")
            found.append(Register(variable, result.dtype))
        if self.shared.checked:
            passed.append("faults")
        self.put(f"{name}({', '.join(passed)});")
        return found

    # -- statements -------------------------------------------------------------------------------

    def block(self, body: list[Stmt]) -> None:
        for place, statement in enumerate(body):
            self.after.append(body[place + 1 :])
            _STATEMENTS[type(statement)](self, statement)
            self.after.pop()

    def rounds(self, node: For | While) -> None:
        """The body of a loop: what follows a statement may be all of the loop once more."""
        self.after.append([node])
        self.block(node.body)
        self.after.pop()

    def _assign(self, node: Assign) -> None:
        dtype = self.function.locals[node.name].dtype
        self.put(f"{self.variables[node.name]} = {self.as_type(node.value, dtype)};")

    def _assign_many(self, node: AssignMany) -> None:
        for name, register in zip(node.names, self.results(node.call), strict=False):
            dtype = self.function.locals[name].dtype
            self.put(f"{self.variables[name]} = {self.c.cast(register, dtype)};")

    def _store(self, node: Store) -> None:
        if node.is_local:
            dtype = self.function.local_arrays[node.array].dtype
        else:
            dtype = self.function.arrays[node.array].dtype
        value = self.as_type(node.value, dtype)
        if not node.is_local:
            if dtype.kind == "b":
                value = f"({value} != 0)"
            elif dtype.char == "e":
                value = self.c.to_half(value)
        place, test = self.place(node.array, node.indices, node.is_local, node.line)
        self.put(f"{f'if ({test}) ' if test else ''}{place} = {value};")

    def _if(self, node: If) -> None:
        self.open(f"if ({self.value(node.test).text})")
        self.block(node.body)
        self.close()
        if node.orelse:
            self.open("else")
            self.block(node.orelse)
            self.close()

    def _for(self, node: For) -> None:
        if lanes.written(self, node):
            return
        start, stop, step = [
            self.kept(self.as_type(part, _INT64), _INT64).text
            for part in (node.start, node.stop, node.step)
        ]
        variable, known = self.variables[node.name], None
        if isinstance(node.step, Const):
            known, step = node.step.value, literal(node.step.value, _INT64)
        counter = self.fresh()
        if known in (1, -1):
            test, move = ("<", "++") if known == 1 else (">", "--")
            self.open(f"for (long {counter} = {start}; {counter} {test} {stop}; {counter}{move})")
            self.put(f"{variable} = {counter};")
        else:  # what follows the last round may not fit into 64 bits
            rounds = self.fresh()
            up = f"((ulong){stop} - (ulong){start} - 1) / (ulong){step} + 1"
            down = f"((ulong){start} - (ulong){stop} - 1) / -(ulong){step} + 1"
            self.put(f"const ulong {rounds} = {step} > 0 && {start} < {stop} ? {up} : "
                     f"{step} < 0 && {start} > {stop} ? {down} : 0;")
            self.open(f"for (ulong {counter} = 0; {counter} < {rounds}; {counter}++)")
            self.put(f"{variable} = (long)((ulong){start} + {counter} * (ulong){step});")
        self.rounds(node)
        self.close()

    def _while(self, node: While) -> None:
        self.open("for (;;)")
        self.put(f"if (!{self.value(node.test).text}) break;")
        self.rounds(node)
        self.close()

    def _jump(self, node: Jump) -> None:
        self.put(f"{node.word};")

    def _return(self, node: Return) -> None:
        for place, (value, result) in enumerate(
            zip(node.values, self.function.results, strict=True)
        ):
            self.put(f"*r{place} = {self.as_type(value, result.dtype)};")
        self.put("return;")

    def _do(self, node: Do) -> None:
        if isinstance(node.value, Atomic) and node.value.array == self.tallied:
            privatized_atomics.add(self, node.value)
        else:
            self.value(node.value)

    def _cleared(self, node: Cleared) -> None:
        array = self.function.local_arrays[node.name]
        self.put(f"for (int k = 0; k < {math.prod(array.shape)}; k++) "
                 f"{self.locals[node.name]}[k] = {literal(0, array.dtype)};")

    def _barrier(self, node: Barrier) -> None:
        self.put("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);")


_VALUES: Final[dict[type, Any]] = {
    Const: Writer._const,
    Index: Writer._index,
    Scalar: Writer._scalar,
    Local: Writer._local,
    Extent: Writer._extent,
    Apply: Writer._apply,
    Convert: Writer._convert,
    Not: Writer._not,
    Logic: Writer._logic,
    Select: Writer._select,
    Load: Writer._load,
    Atomic: Writer._atomic,
    Bound: Writer._bound,
    Group: Writer._group,
    Call: Writer._call,
}
_STATEMENTS: Final[dict[type, Any]] = {
    Assign: Writer._assign,
    AssignMany: Writer._assign_many,
    Store: Writer._store,
    If: Writer._if,
    For: Writer._for,
    While: Writer._while,
    Jump: Writer._jump,
    Return: Writer._return,
    Do: Writer._do,
    Cleared: Writer._cleared,
    Barrier: Writer._barrier,
}
