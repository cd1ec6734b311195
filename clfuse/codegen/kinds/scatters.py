"""Scatters as OpenCL C: kernels that count in local memory, and that store at computed places."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Final

import numpy as np

from clfuse.codegen.lines.body import Body
from clfuse.codegen.lines.expressions import Expressions, Register
from clfuse.codegen.lines.loops import decode
from clfuse.codegen.lines.names import UNIFORM
from clfuse.dtypes import memory_type, register_type
from clfuse.ir.nodes import loop
from clfuse.schedule.dataflow import needed_items
from clfuse.schedule.lower.scatters import combined_among
from clfuse.schedule.records import Item, Kernel, Load, Scatter
from clfuse.target.scatters import COUNTED_TOGETHER, copies_of, room_for

from .writing import Writing

_COUNTER: Final = 4
"""Bytes of a counter."""

_NATIVE: Final = {
    "add": "atomic_add",
    "subtract": "atomic_sub",
    "maximum": "atomic_max",
    "minimum": "atomic_min",
    "bitwise_and": "atomic_and",
    "bitwise_or": "atomic_or",
    "bitwise_xor": "atomic_xor",
    "exchange": "atomic_xchg",
}
"""Operations on integers of 32 bits that OpenCL C has as one function."""

_BY_HALVES: Final = frozenset(["bitwise_and", "bitwise_or", "bitwise_xor"])
"""Operations on integers of 64 bits that are made of two on their halves."""


def fill_tally(kernel: Kernel, writing: Writing) -> str:
    """Fill the context of the template that counts, or adds up weights."""
    body, k, scatter = writing.body(kernel), writing.context, kernel.scatter
    assert scatter is not None
    (store,) = kernel.stores
    arguments = body.arguments
    k.extent = arguments.integer("n0", kernel.extents[0])
    arguments.integer("chunks", kernel.chunks)
    arguments.integer("chunk_length", kernel.chunk_length)
    arguments.integer("bins", scatter.bins)
    before, inside = body.split(kernel.body)
    uniform: dict[int, Register] = {}
    k.before = body.lines(before, 1, uniform, UNIFORM)
    registers = dict(uniform)
    k.body = body.lines(inside, 1, registers)
    place = registers[scatter.position]
    k.weighs = scatter.how == "add"
    k.wide = place.dtype.itemsize == 8
    k.place = f"({'long' if k.wide else 'int'})({place.text})"
    k.value = body.memory_text(body.writer(1), registers[store.var], store.dtype)
    if kernel.schedule == "cpu":
        k.kind = memory_type(store.dtype)
        k.lanes = _tally_lanes(kernel, body, inside, uniform) if kernel.width > 1 else []
        k.out = arguments.buffer(store.value, store.dtype, written=True)
        k.groups = body.group_lines
        return "tally_rows.cl.mako"
    k.out = arguments.buffer(store.value, store.dtype, written=True)
    k.groups = body.group_lines
    k.group = kernel.work_group
    k.together = COUNTED_TOGETHER
    k.room = room_for(scatter.bins)
    k.copies = 1 if k.weighs else copies_of(scatter.bins, _COUNTER)
    k.kind = memory_type(store.dtype) if k.weighs else "uint"
    return "tally.cl.mako"


def _tally_lanes(
    kernel: Kernel, body: Body, inside: list[Item], uniform: dict[int, Register]
) -> list[str]:
    """Statements that leave the places, and weights, of a vector of elements in arrays."""
    scatter, (store,), width = kernel.scatter, kernel.stores, kernel.width
    assert scatter is not None
    registers = dict(uniform)
    lines = body.lines(inside, width, registers)
    place = registers[scatter.position]
    kept = [("found", place, place.dtype)]
    if scatter.how == "add":
        kept.append(("weights", registers[store.var], store.dtype))
    for name, register, dtype in kept:
        text = body.memory_text(body.writer(width), register, dtype)
        lines.append(f"{memory_type(dtype)} {name}[{width}];")
        lines.append(f"vstore{width}({text}, 0, {name});")
    return lines


def fill_scatter(kernel: Kernel, writing: Writing) -> str:
    """Fill the context of the template that stores at computed places."""
    body, k, scatter = writing.body(kernel), writing.context, kernel.scatter
    assert scatter is not None
    store = kernel.stores[0]
    if scatter.ordered:
        return _fill_segments(kernel, body, k, scatter)
    arguments = body.arguments
    dims = list(range(len(kernel.extents) - 1))
    arguments.integer("n", kernel.extents[-1])
    k.row_extents = [arguments.integer(f"n{dim}", kernel.extents[dim]) for dim in dims]
    k.decode = decode(body, dims, "row")
    # The elements that others replace are computed of nothing: what they would read may be changed.
    wanted = {scatter.position, scatter.turn}
    first = {item.var for item in needed_items(kernel.body, wanted)}
    before, inside = body.split(kernel.body)
    registers: dict[int, Register] = {}
    k.before = body.lines([item for item in before if item.var in first], 1, registers, UNIFORM)
    k.body = body.lines([item for item in inside if item.var in first], 1, registers)
    rest = [item for item in before if item.var not in first]
    k.value = body.lines(rest, 1, registers, UNIFORM)
    k.value += body.lines([item for item in inside if item.var not in first], 1, registers)
    position = body.position(registers[scatter.position])
    pointer = arguments.buffer(store.value, store.dtype, written=True)
    k.place = f"{pointer} + ({body.place(store.access)} + {position})"
    k.memory = memory_type(store.dtype)
    k.test = ""
    k.declared, k.settled = [], []
    k.backwards = scatter.how == "last"
    if scatter.table is not None:
        table = arguments.buffer(scatter.table, np.dtype(np.int32))
        base = arguments.integer("base", scatter.base)
        k.test = f"{table}[{base} + {position}] == {registers[scatter.turn].text}"
        if scatter.tested:
            k.declared = [f"const int distinct = {table}[0] == 0;"]
            k.test = f"distinct || {k.test}"
    elif scatter.how == "mark":
        # A bit of its own for each place behind the word that says whether one was set before.
        bit = f"({body.place(store.access)} + {position})"
        k.place = f"{pointer} + 1 + ({bit} >> 5)"
        k.bit = f"1u << ({bit} & 31)"
        k.declared = ["int repeats = 0;"]
        k.settled = ["if (repeats)", f"    atomic_or((volatile __global uint *){pointer}, 1u);"]
    elif scatter.tested:
        k.declared = [f"if ({pointer}[0] == 0)", "    return;  // all places are distinct"]
    if scatter.how == "mark":
        k.store = [
            f"const uint bit = {k.bit};",
            "// A work-item that knows of a place that repeats marks no more.",
            "if (!repeats)",
            "    repeats = (atomic_or((volatile __global uint *)place, bit) & bit) != 0;",
        ]
    else:
        k.store = _combination(body, scatter, registers[store.var], store.dtype)
    k.groups = body.group_lines
    return "scatter.cl.mako"


def _combination(body: Body, scatter: Scatter, register: Register, dtype: np.dtype) -> list[str]:
    """Statements that store a register at ``place``, or combine it with what lies there."""
    writer, how = body.writer(1), scatter.how
    text = body.memory_text(writer, register, dtype)
    if how == "set":
        return [f"*place = {text};"]
    if how == "last":
        # The last ones come first: most of the others see that.
        return [
            f"const int turn = {text};",
            "if (*(volatile __global int *)place < turn)",
            "    atomic_max((volatile __global int *)place, turn);",
        ]
    size = dtype.itemsize
    whole = dtype.kind in "iu"
    if whole and size == 4 and how in _NATIVE:
        kind = "uint" if dtype.kind == "u" else "int"
        return [f"{_NATIVE[how]}((volatile __global {kind} *)place, {text});"]
    if whole and size == 8 and how in ("add", "subtract"):
        body.preamble.libraries["atomics.cl"] = None
        sign = "-" if how == "subtract" else ""
        return [f"add_by_halves((volatile __global uint *)place, {sign}(ulong)({text}));"]
    if whole and size == 8 and how in _BY_HALVES:
        body.preamble.libraries["atomics.cl"] = None
        return [
            f"const ulong value = (ulong)({text});",
            f"{_NATIVE[how]}((volatile __global uint *)place + LOW_HALF, (uint)value);",
            f"{_NATIVE[how]}((volatile __global uint *)place + 1 - LOW_HALF, (uint)(value >> 32));",
        ]
    # What is left has 32 bits (`functions.indexing.scattering.combines`).
    kind = memory_type(dtype)
    operands = [Register("there", dtype), Register("value", dtype)]
    made, combined = writer.step(loop(how, (dtype, dtype), dtype), operands, "made")
    following = writer.cast(Register(f"({made})", combined.dtype, combined.lane_nbytes), dtype)
    return [
        f"const {kind} value = {text};",
        "volatile __global uint *word = (volatile __global uint *)place;",
        "uint seen = atomic_cmpxchg(word, 0, 0), expected;",
        "do {",
        "    expected = seen;",
        f"    const {kind} there = as_{kind}(expected);",
        f"    seen = atomic_cmpxchg(word, expected, as_uint(({kind})({following})));",
        "} while (seen != expected);",
    ]


def _fill_segments(kernel: Kernel, body: Body, k: SimpleNamespace, scatter: Scatter) -> str:
    """Fill the context of the template that folds what is in order of its places."""
    store = kernel.stores[0]
    arguments, writer = body.arguments, body.writer(1)
    loads = {item.var: item for item in kernel.body if isinstance(item, Load)}
    places, values = loads[scatter.position], loads[store.var]
    arguments.integer("n", kernel.extents[0])
    k.total_kind = register_type(store.dtype)
    k.place_kind = memory_type(places.dtype)
    k.places = f"{arguments.buffer(places.value, places.dtype)} + {places.access.offset}"
    k.values = f"{arguments.buffer(values.value, values.dtype)} + {values.access.offset}"
    k.out = arguments.buffer(store.value, store.dtype, written=True)
    k.memory = memory_type(values.dtype)
    k.value_kind = register_type(values.dtype)
    dtype, inner = store.dtype, values.dtype
    k.there = _in_register(writer, f"{k.out}[place]", dtype)
    k.value_at = {at: _in_register(writer, f"values[{at}]", inner) for at in ("j", "low")}
    k.stored = _in_memory(writer, "total", dtype)
    k.combined = _together(writer, scatter.how, inner, Register("total", dtype), "value")
    if not scatter.piece:
        return "segments.cl.mako"
    k.piece = scatter.piece
    k.applied = _together(writer, scatter.how, inner, Register("there", dtype), "total")
    how = combined_among(scatter.how)
    k.combined = _together(writer, how, inner, Register("total", inner), "value")
    k.applied = _in_memory(writer, k.applied, dtype)
    k.ends = [_in_memory(writer, name, inner) for name in ("first", "last")]
    _, left_places, left_values = kernel.stores
    k.left_places = arguments.buffer(left_places.value, left_places.dtype, written=True)
    k.left_values = arguments.buffer(left_values.value, left_values.dtype, written=True)
    return "segment_pieces.cl.mako"


def _in_register(writer: Expressions, text: str, dtype: np.dtype) -> str:
    """An element of memory as a number."""
    return writer.from_half(text) if dtype.char == "e" else text


def _in_memory(writer: Expressions, text: str, dtype: np.dtype) -> str:
    """A number as an element of memory."""
    return writer.to_half(text) if dtype.char == "e" else text


def _together(writer: Expressions, how: str, inner: np.dtype, left: Register, right: str) -> str:
    """`left` combined with an element of dtype `inner` in that dtype's loop, in its own dtype."""
    operands = [left, Register(right, inner)]
    made, combined = writer.step(loop(how, (inner, inner), inner), operands, "made")
    return writer.cast(Register(f"({made})", combined.dtype, combined.lane_nbytes), left.dtype)
