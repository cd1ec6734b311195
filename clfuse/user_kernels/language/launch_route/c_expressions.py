"""Expressions of the language as OpenCL C: operations, elements, atomics.

Every operation is written by `codegen.lines.expressions`, as it is in fused kernels, so that both
routes have the same bits. What is calculated or loaded gets a variable of its own.
``a * x[i + 1]``:

    const long t1 = i0 + 1;
    const double t2 = p_x[t1 * s0_x];
    const double t3 = a_a * t2;
"""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any, Final

import numpy as np

from clfuse.codegen.lines.expressions import Expressions, Preamble, Register
from clfuse.dataclass import mutable
from clfuse.dtypes import memory_type, register_type
from clfuse.ir.identifiers import symbol
from clfuse.target.traits import DeviceTraits
from clfuse.user_kernels.language.source import tree
from clfuse.user_kernels.language.source.accumulations import is_cheap
from clfuse.user_kernels.language.source.literals import literal
from clfuse.user_kernels.language.source.shifts import shift_division

_BOOL: Final = np.dtype(np.bool_)
_INT64: Final = np.dtype(np.int64)
_GROUP: Final = {
    "local_id": "get_local_id(0)", "group_id": "get_group_id(0)", "size": "get_local_size(0)",
}
_BITS: Final = {4: "uint", 8: "ulong"}


@mutable
class Site:
    """Where an index is checked: function, array, line, and indices that count from the end."""

    function: str
    filename: str
    array: str
    line: int
    literals: list[int | None]


@mutable
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
    apart: tree.Function | None = None
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


def loaded(c: Expressions, place: str, dtype: np.dtype) -> str:
    """What lies in global memory, as a register holds it."""
    if dtype.kind == "b":
        return f"({place} != 0)"
    return c.from_half(place) if dtype.char == "e" else place


def stored(c: Expressions, text: str, dtype: np.dtype) -> str:
    """What a register holds, as it lies in global memory."""
    if dtype.kind == "b":
        return f"({text} != 0)"
    return c.to_half(text) if dtype.char == "e" else text


class ExpressionWriter:
    """Writes the expressions of one function, line by line."""

    def __init__(self, text: Text, function: tree.Function) -> None:
        self.shared = text
        self.function = function
        self.c = Expressions(1, text.traits, text.preamble)
        self.lines: list[str] = []
        self.depth = 1
        self.count = 0
        self.variables = {n: f"v{k}" for k, n in enumerate(function.locals)}
        self.locals = {n: f"m{k}" for k, n in enumerate(function.local_arrays)}

    def results(self, node: tree.Call) -> list[Register]:
        """Call a function; its results in variables."""
        raise NotImplementedError

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

    def value(self, node: tree.Expr) -> Register:
        """An expression in a register, of the dtype of its type."""
        return _VALUES[type(node)](self, node)  # type: ignore[no-any-return]

    def operand(self, node: tree.Expr, dtype: np.dtype) -> Register:
        """An expression as an operand of a loop that takes `dtype`."""
        if isinstance(node, tree.Const) and node.type.weak:
            return Register(literal(node.value, dtype), dtype)
        return self.value(node)

    def as_type(self, node: tree.Expr, dtype: np.dtype) -> str:
        """An expression converted."""
        return self.c.cast(self.operand(node, dtype), dtype)

    def _const(self, node: tree.Const) -> Register:
        return Register(literal(node.value, node.type.dtype), node.type.dtype)

    def _index(self, node: tree.Index) -> Register:
        return Register(f"i{node.axis}", _INT64)

    def _scalar(self, node: tree.Scalar) -> Register:
        return Register(f"a_{symbol(node.name)}", node.type.dtype)

    def _local(self, node: tree.Local) -> Register:
        return Register(self.variables[node.name], node.type.dtype)

    def _extent(self, node: tree.Extent) -> Register:
        return Register(f"n{node.axis}_{symbol(node.array)}", _INT64)

    def _apply(self, node: tree.Apply) -> Register:
        node = shift_division(node)
        dtypes = node.op.input_dtypes
        operands = [self.operand(a, dtype) for a, dtype in zip(node.args, dtypes, strict=True)]
        text, register = self.c.step(node.op, operands, "")
        return self.kept(text, register.dtype)

    def _convert(self, node: tree.Convert) -> Register:
        return self.kept(self.as_type(node.arg, node.type.dtype), node.type.dtype)

    def _not(self, node: tree.Not) -> Register:
        return self.kept(f"!{self.value(node.arg).text}", _BOOL)

    def _logic(self, node: tree.Logic) -> Register:
        name = self.fresh()
        self.put(f"int {name} = {self.value(node.args[0]).text} != 0;")
        for argument in node.args[1:]:
            self.open(f"if ({name if node.both else '!' + name})")
            self.put(f"{name} = {self.value(argument).text} != 0;")
            self.close()
        return Register(name, _BOOL)

    def _select(self, node: tree.Select) -> Register:
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
        self, array: str, indices: list[tree.Expr], is_local: bool, line: int
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
            literals = [tree.from_end(index) for index in indices]
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
        return place if is_local else loaded(self.c, place, dtype)

    def _load(self, node: tree.Load) -> Register:
        dtype = node.type.dtype
        place, test = self.place(node.array, node.indices, node.is_local, node.line)
        if not test:
            return self.kept(self.loaded(place, dtype, node.is_local), dtype)
        name = self.fresh()
        self.put(f"{self.c.type_of(dtype)} {name} = {literal(0, dtype)};")
        self.put(f"if ({test}) {name} = {self.loaded(place, dtype, node.is_local)};")
        return Register(name, dtype)

    def _atomic(self, node: tree.Atomic) -> Register:
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

    def _bound(self, node: tree.Bound) -> Register:
        variable, dtype = self.variables[node.name], self.function.locals[node.name].dtype
        self.put(f"{variable} = {self.as_type(node.arg, dtype)};")
        return Register(variable, dtype)

    def _group(self, node: tree.Group) -> Register:
        return Register(f"((long)({_GROUP[node.what]}))", _INT64)

    def _call(self, node: tree.Call) -> Register:
        return self.results(node)[node.result]


_VALUES: Final[dict[type, Any]] = {
    tree.Const: ExpressionWriter._const,
    tree.Index: ExpressionWriter._index,
    tree.Scalar: ExpressionWriter._scalar,
    tree.Local: ExpressionWriter._local,
    tree.Extent: ExpressionWriter._extent,
    tree.Apply: ExpressionWriter._apply,
    tree.Convert: ExpressionWriter._convert,
    tree.Not: ExpressionWriter._not,
    tree.Logic: ExpressionWriter._logic,
    tree.Select: ExpressionWriter._select,
    tree.Load: ExpressionWriter._load,
    tree.Atomic: ExpressionWriter._atomic,
    tree.Bound: ExpressionWriter._bound,
    tree.Group: ExpressionWriter._group,
    tree.Call: ExpressionWriter._call,
}
