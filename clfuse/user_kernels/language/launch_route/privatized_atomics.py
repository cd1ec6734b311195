"""Privatized atomic sums: on CPUs each work-item sums into its own array, and adds that at its end.

An atomic addition takes a core 5 ns, a plain one less than half of one. So where an array is used
for nothing but

    clfuse.atomic.add(counts, bin, 1)

a launch has two loops, and the device takes the second if the array is short:

    if (n0_counts <= 2048 && count >= 8 * n0_counts) {
        long w_counts[2048];                            /* all 0 */
        for (...) { ...; w_counts[bin] += 1; }
        for (long k = 0; k < n0_counts; k++) atom_add(counts + k, w_counts[k]);
    }

The sums of floats are in another order then, as they are in every run of atomic ones.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from clfuse.dtypes import register_type
from clfuse.ir.identifiers import symbol
from clfuse.user_kernels.language.source import tree
from clfuse.user_kernels.language.source.accumulations import expressions
from clfuse.user_kernels.language.source.literals import literal

from .c_expressions import ExpressionWriter

MOST: Final = 2048
"""Elements that a work-item keeps: 16 KB, half of a core's first cache."""

FEWEST_EACH: Final = 8
"""Iterations of a work-item for each element, from which on keeping them is worth it."""

_SUMMING: Final = ("add", "sub")


def tallied(function: tree.Function) -> str:
    """The array that could be kept so; empty if there is none."""
    if len(function.atomics) != 1 or function.local_arrays:
        return ""
    (array,) = function.atomics
    for statement in tree.statements(function.body):
        own = statement.value if isinstance(statement, tree.Do) else None
        if isinstance(statement, tree.Store) and statement.array == array:
            return ""
        for part in expressions(statement):
            if isinstance(part, tree.Call) and array in part.arrays.values():
                return ""
            if isinstance(part, tree.Load) and not part.is_local and part.array == array:
                return ""
            is_used = isinstance(part, tree.Atomic) and part is not own
            if is_used or (isinstance(part, tree.Atomic) and part.operation not in _SUMMING):
                return ""
    return array


def identity(dtype: np.dtype) -> str:
    """What changes nothing, not even -0.0."""
    return literal(-0.0 if dtype.kind == "f" else 0, dtype)


def add(writer: ExpressionWriter, node: tree.Atomic) -> None:
    """Write an addition to what this work-item keeps, in row-major order; one that is out of bounds
    would be to whatever else is on its stack."""
    dtype = node.type.dtype
    (value,) = [writer.as_type(argument, dtype) for argument in node.args]
    indices = [writer.as_type(index, np.dtype(np.int64)) for index in node.indices]
    array, place = symbol(node.array), indices[0]
    for axis, index in enumerate(indices[1:], 1):
        place = f"({place}) * n{axis}_{array} + {index}"
    at = writer.fresh()
    writer.put(f"const ulong {at} = {place};")
    sign = "+" if node.operation == "add" else "-"
    element = f"w_{array}[{at}]"
    changed = f"{element} {sign} {value}"
    if dtype.kind == "i":
        kind = register_type(dtype)
        changed = f"({kind})((u{kind}){element} {sign} (u{kind}){value})"
    extents = " * ".join(f"n{axis}_{array}" for axis in range(len(indices)))
    writer.put(f"if ({at} < (ulong)({extents})) {element} = {changed};")


def loops(array: str, kind: Any, addition: str, plain: list[str], keeping: list[str]) -> list[str]:
    """The two loops of a work-item: of atomic additions, and with sums of its own.

    `plain` and `keeping` are the loops themselves; `addition` is the atomic function.
    """
    lane, array = register_type(kind.dtype), symbol(array)
    extents = " * ".join(f"n{axis}_{array}" for axis in range(kind.ndim))
    rest, places = "k", []
    for axis in reversed(range(kind.ndim)):
        at = f"{rest} % n{axis}_{array}" if axis else rest
        places.append(f"({at}) * s{axis}_{array}")
        rest = f"({rest}) / n{axis}_{array}"
    nothing = identity(kind.dtype)
    signed = "" if kind.dtype.kind != "f" else f"as_{'long' if kind.dtype.itemsize == 8 else 'int'}"
    return [
        f"const long places = {extents};",
        f"if (places <= {MOST} && count >= {FEWEST_EACH} * places) {{",
        f"    {lane} w_{array}[{MOST}];",
        f"    for (long k = 0; k < places; k++) w_{array}[k] = {nothing};",
        *[f"    {line}" for line in keeping],
        "    for (long k = 0; k < places; k++) {",
        f"        if ({signed}(w_{array}[k]) == {signed}({nothing})) continue;",
        f"        {addition}(&p_{array}[{' + '.join(places)}], w_{array}[k]);",
        "    }",
        "} else {", *[f"    {line}" for line in plain], "}",
    ]
