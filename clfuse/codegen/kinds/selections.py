"""Stream compaction as OpenCL C: kernels that pack what a mask selects, or put it back.

On a CPU eight lanes are computed together. Their mask as bytes of one number, times 0x0101..., has
in every byte how many lanes up to there are selected, so there is no branch on single lanes:

    const ulong bits0 = as_ulong(ones) & ONES;             0 1 1 0 1 0 0 0   (lane 0 first)
    const ulong before0 = bits0 * ONES << 8;               0 0 1 2 2 3 3 3
    a2[q + (int)(before0 & 255)] = w0.s0;                  the next one that is selected
    a2[q + (int)(before0 >> 8 & 255)] = w0.s1;             overwrites what is not
    ...

`limit` is where the next piece's elements start: what is past it belongs to another work-item.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from clfuse.codegen.lines.body import Body
from clfuse.codegen.lines.components import LANES
from clfuse.codegen.lines.expressions import Register, lanes_like, vector
from clfuse.codegen.lines.names import UNIFORM
from clfuse.dtypes import mask_type, memory_type
from clfuse.schedule.kinds import EXPAND
from clfuse.schedule.records import Item, Kernel, Store

from .writing import Writing

ITEM_ELEMENTS: Final = 4
"""Elements of a work-item whose numbers a group finds together: their counts are 16 bits each of a
word, and the group waits for itself a quarter as often."""

_INT64 = np.dtype(np.int64)
_BOOL = np.dtype(np.bool_)


def fill(kernel: Kernel, writing: Writing) -> str:
    """Fill the context of the template."""
    body, k = writing.body(kernel), writing.context
    selection = kernel.selection
    assert selection is not None
    arguments = body.arguments
    k.extent = arguments.integer("n0", kernel.extents[0])
    arguments.integer("chunks", kernel.chunks)
    arguments.integer("chunk_length", kernel.chunk_length)
    k.starts = arguments.buffer(selection.starts, _INT64)
    k.group = kernel.work_group
    k.expands = kernel.kind is EXPAND
    before, inside = body.split(kernel.body)
    uniform: dict[int, Register] = {}
    k.before = body.lines(before, 1, uniform, UNIFORM)
    registers = dict(uniform)
    k.scalar_body = body.lines(inside, 1, registers)
    k.mask = body.writer(1).cast(registers[selection.mask], _BOOL)
    k.each, k.kept, k.keeps = ITEM_ELEMENTS, [], []
    if k.expands:
        k.selected = _expanded(kernel, body, registers)
    elif kernel.schedule == "gpu":
        _keep(kernel, body, registers, k)
    else:
        k.selected = _packed(kernel, body, registers)
    k.vector_body, k.buffers = [], []
    if kernel.width > 1:
        _write_lanes(kernel, body, inside, uniform, k)
    k.groups = body.group_lines
    return "select.cl.mako"


def _pointer(body: Body, store: Store) -> str:
    return body.arguments.buffer(store.value, store.dtype, written=True)


def _keep(kernel: Kernel, body: Body, registers: dict[int, Register], k: Any) -> None:
    """What a work-item keeps of its elements until it knows where they go, and stores then."""
    writer, k.selected = body.writer(1), []
    for number, store in enumerate(kernel.stores):
        text = body.memory_text(writer, registers[store.var], store.dtype)
        k.kept.append(f"{memory_type(store.dtype)} w{number}[{ITEM_ELEMENTS}];")
        k.keeps.append(f"w{number}[slot] = {text};")
        k.selected.append(f"{_pointer(body, store)}[q] = w{number}[slot];")


def _packed(kernel: Kernel, body: Body, registers: dict[int, Register]) -> list[str]:
    """Stores of one element at ``q``."""
    writer = body.writer(1)
    return [
        f"{_pointer(body, store)}[q] = "
        f"{body.memory_text(writer, registers[store.var], store.dtype)};"
        for store in kernel.stores
    ]


def _expanded(kernel: Kernel, body: Body, registers: dict[int, Register]) -> list[str]:
    """The next selected element, or the other, stored in its own place."""
    selection = kernel.selection
    assert selection is not None
    packed = selection.packed
    assert packed is not None
    writer = body.writer(1)
    pointer = body.arguments.buffer(packed.value, packed.dtype)
    text = f"{pointer}[at]"
    if packed.dtype.kind == "b":
        text = f"({text} != 0)"
    elif packed.dtype.char == "e":
        text = writer.from_half(text)
    kind = writer.type_of(packed.dtype)
    other = writer.cast(registers[selection.other], packed.dtype)
    name = f"r{packed.var}"
    registers[packed.var] = Register(name, packed.dtype)
    lines = [f"const {kind} {name} = taken ? {text} : {other};"]
    for store in kernel.stores:
        lines += body.store(store, 1, registers[store.var])
    return lines


def _write_lanes(
    kernel: Kernel, body: Body, inside: list[Item], uniform: dict[int, Register], k: Any
) -> None:
    """The vector body: computes the lanes, then packs or unpacks them eight at a time."""
    selection = kernel.selection
    assert selection is not None
    width = kernel.width
    writer = body.writer(width)
    registers = dict(uniform)
    lines = body.lines(inside, width, registers)
    mask = registers[selection.mask]
    kind = vector(mask_type(mask.lane_nbytes), width)
    lines.append(f"const {kind} chosen = {writer.cast(mask, _BOOL, mask.lane_nbytes)};")
    octets = vector("uchar", width)
    lines.append(f"const {octets} ones = convert_{octets}(chosen);")
    write = _unpack_lanes if k.expands else _pack_lanes
    k.vector_body = lines + write(kernel, body, registers, k)


def _groups(width: int) -> list[tuple[int, int, str]]:
    """(first lane, lanes, their bytes as a number) of each group of up to eight."""
    if width == 16:
        return [(0, 8, "as_ulong(ones.lo)"), (8, 8, "as_ulong(ones.hi)")]
    number = {8: "ulong", 4: "uint", 2: "ushort"}[width]
    return [(0, width, f"(ulong)as_{number}(ones)")]


def _numbered(first: int, text: str) -> list[str]:
    """Declare the bytes of a group and how many lanes before each are selected."""
    return [
        f"const ulong bits{first} = {text} & 0x0101010101010101UL;",
        f"const ulong upto{first} = bits{first} * 0x0101010101010101UL;",
        f"const ulong before{first} = upto{first} << 8;",
    ]


def _place(first: int, lane: int) -> str:
    shift = f"before{first} >> {8 * lane} & 255" if lane else f"before{first} & 255"
    return f"q + (int)({shift})"


def _pack_lanes(kernel: Kernel, body: Body, registers: dict[int, Register], k: Any) -> list[str]:
    width = kernel.width
    writer = body.writer(width)
    lines, targets = [], []
    for number, store in enumerate(kernel.stores):
        text = body.memory_text(writer, registers[store.var], store.dtype)
        lines.append(f"const {vector(memory_type(store.dtype), width)} w{number} = {text};")
        targets.append((_pointer(body, store), f"w{number}"))
    for first, lanes, text in _groups(width):
        half = "" if lanes == width else ".hi" if first else ".lo"
        each = [
            [
                f"{pointer}[{_place(first, lane)}] = {name}.s{LANES[first + lane]};"
                for pointer, name in targets
            ]
            for lane in range(lanes)
        ]
        lines += [
            *_numbered(first, text),
            f"if (bits{first} == 0x{'01' * lanes}UL) {{",
            *[f"    vstore{lanes}({name}{half}, 0, {pointer} + q);" for pointer, name in targets],
            f"}} else if (bits{first} && q + {lanes} <= limit) {{",
            *[f"    {line}" for stores in each for line in stores],
            f"}} else if (bits{first}) {{",
            *[
                f"    if (bits{first} >> {8 * lane} & 1) {{ {' '.join(stores)} }}"
                for lane, stores in enumerate(each)
            ],
            "}",
            f"q += (int)(upto{first} >> 56);",
        ]
    return lines


def _unpack_lanes(kernel: Kernel, body: Body, registers: dict[int, Register], k: Any) -> list[str]:
    selection = kernel.selection
    assert selection is not None
    packed = selection.packed
    assert packed is not None
    width, dtype = kernel.width, packed.dtype
    writer = body.writer(width)
    pointer = body.arguments.buffer(packed.value, dtype)
    memory = memory_type(dtype)
    k.buffers.append(f"{memory} b[{width}] = {{0}};")
    lines = []
    for first, lanes, text in _groups(width):
        into = f"b + {first}"
        lines += [
            *_numbered(first, text),
            f"if (bits{first} == 0x{'01' * lanes}UL) {{",
            f"    vstore{lanes}(vload{lanes}(0, {pointer} + q), 0, {into});",
            f"}} else if (bits{first}) {{",
            *[
                f"    b[{first + lane}] = {pointer}[min({_place(first, lane)}, end)];"
                for lane in range(lanes)
            ],
            "}",
            f"q += (int)(upto{first} >> 56);",
        ]
    text = f"vload{width}(0, b)"
    lanes = registers[selection.mask].lane_nbytes
    if dtype.kind == "b":
        text = f"({text} != ({vector('uchar', width)})(0))"
        text = writer.mask(Register(text, dtype, 1), lanes)
    else:
        lanes = lanes_like(dtype)
        text = writer.from_half(text) if dtype.char == "e" else text
    chosen = writer.cast(registers[selection.mask], _BOOL, lanes)
    other = writer.cast(registers[selection.other], dtype, lanes)
    name = f"r{packed.var}"
    registers[packed.var] = Register(name, dtype, lanes)
    lines.append(
        f"const {writer.type_of(dtype, lanes)} {name} = ({chosen}) ? ({text}) : ({other});"
    )
    for store in kernel.stores:
        lines += body.store(store, width, registers[store.var])
    return lines
