"""Functions of the language as OpenCL C: statements, parameters, and the kernel around them.

A kernel of the language becomes a function of one iteration, and an OpenCL kernel that calls it: on
a CPU a few work-items with a run of iterations each, on a GPU one a work-item. ``y[idx[i]] = x[i]``
over ``range(n)``, on a CPU:

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
from typing import Any, Final

import numpy as np

from clfuse.codegen.lines.expressions import Register
from clfuse.dtypes import register_type
from clfuse.ir.identifiers import symbol
from clfuse.user_kernels.language.source import tree
from clfuse.user_kernels.language.source.literals import literal
from clfuse.user_kernels.language.source.types import ArrayType

from . import lanes, privatized_atomics
from .c_expressions import ExpressionWriter, Text, stored

_INT64: Final = np.dtype(np.int64)


def name_of(text: Text, function: tree.Function) -> str:
    """The C function for a function of the language; written now if it is new."""
    found = text.names.get(id(function))
    if found is None:
        found = text.names[id(function)] = symbol(f"{function.name}_{len(text.names)}")
        text.parts.append(Writer(text, function, found).text())
    return found


def parameters_of(text: Text, function: tree.Function) -> list[str]:
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


class Writer(ExpressionWriter):
    """Writes one function."""

    def __init__(self, text: Text, function: tree.Function, name: str, tallied: str = "") -> None:
        super().__init__(text, function)
        self.name = name
        self.tallied = tallied  # the array whose sums a work-item keeps
        self.after: list[
            list[tree.Stmt]
        ] = []  # what may follow the present statement, part by part

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

    def results(self, node: tree.Call) -> list[Register]:
        """Call a function; its results in variables."""
        function = node.function
        name = name_of(self.shared, function)
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

    def block(self, body: list[tree.Stmt]) -> None:
        for place, statement in enumerate(body):
            self.after.append(body[place + 1 :])
            _STATEMENTS[type(statement)](self, statement)
            self.after.pop()

    def rounds(self, node: tree.For | tree.While) -> None:
        """The body of a loop: what follows a statement may be all of the loop once more."""
        self.after.append([node])
        self.block(node.body)
        self.after.pop()

    def _assign(self, node: tree.Assign) -> None:
        dtype = self.function.locals[node.name].dtype
        self.put(f"{self.variables[node.name]} = {self.as_type(node.value, dtype)};")

    def _assign_many(self, node: tree.AssignMany) -> None:
        for name, register in zip(node.names, self.results(node.call), strict=False):
            dtype = self.function.locals[name].dtype
            self.put(f"{self.variables[name]} = {self.c.cast(register, dtype)};")

    def _store(self, node: tree.Store) -> None:
        if node.is_local:
            dtype = self.function.local_arrays[node.array].dtype
        else:
            dtype = self.function.arrays[node.array].dtype
        value = self.as_type(node.value, dtype)
        if not node.is_local:
            value = stored(self.c, value, dtype)
        place, test = self.place(node.array, node.indices, node.is_local, node.line)
        self.put(f"{f'if ({test}) ' if test else ''}{place} = {value};")

    def _if(self, node: tree.If) -> None:
        self.open(f"if ({self.value(node.test).text})")
        self.block(node.body)
        self.close()
        if node.orelse:
            self.open("else")
            self.block(node.orelse)
            self.close()

    def _for(self, node: tree.For) -> None:
        if lanes.written(self, node, self.after):
            return
        start, stop, step = [
            self.kept(self.as_type(part, _INT64), _INT64).text
            for part in (node.start, node.stop, node.step)
        ]
        variable, known = self.variables[node.name], None
        if isinstance(node.step, tree.Const):
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

    def _while(self, node: tree.While) -> None:
        self.open("for (;;)")
        self.put(f"if (!{self.value(node.test).text}) break;")
        self.rounds(node)
        self.close()

    def _jump(self, node: tree.Jump) -> None:
        self.put(f"{node.word};")

    def _return(self, node: tree.Return) -> None:
        for place, (value, result) in enumerate(
            zip(node.values, self.function.results, strict=True)
        ):
            self.put(f"*r{place} = {self.as_type(value, result.dtype)};")
        self.put("return;")

    def _do(self, node: tree.Do) -> None:
        if isinstance(node.value, tree.Atomic) and node.value.array == self.tallied:
            privatized_atomics.add(self, node.value)
        else:
            self.value(node.value)

    def _cleared(self, node: tree.Cleared) -> None:
        array = self.function.local_arrays[node.name]
        self.put(f"for (int k = 0; k < {math.prod(array.shape)}; k++) "
                 f"{self.locals[node.name]}[k] = {literal(0, array.dtype)};")

    def _barrier(self, node: tree.Barrier) -> None:
        self.put("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);")


_STATEMENTS: Final[dict[type, Any]] = {
    tree.Assign: Writer._assign,
    tree.AssignMany: Writer._assign_many,
    tree.Store: Writer._store,
    tree.If: Writer._if,
    tree.For: Writer._for,
    tree.While: Writer._while,
    tree.Jump: Writer._jump,
    tree.Return: Writer._return,
    tree.Do: Writer._do,
    tree.Cleared: Writer._cleared,
    tree.Barrier: Writer._barrier,
}
