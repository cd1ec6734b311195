"""The loops of a scan as OpenCL C: a function for each way.

On a CPU, along a row of doubles, eight lanes at a time (q is the fold of all that came before):

    double8 u0 = r1;                                      1  2  3  4  5  6  7  8
    u0 = (double8)(z0, u0.s0123, u0.s45, u0.s6) + u0;     1  3  5  7  9 11 13 15
    ...                                                   two steps more, by 2 and by 4
    const double8 r2 = q0 + u0;
    q0 = r2.s7;

Across rows a lane is a row and nothing has to be shifted. What a GPU does along rows is in
`scan_tiles`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clfuse.codegen.lines.body import Body
from clfuse.codegen.lines.components import LANES
from clfuse.codegen.lines.expressions import Expressions, Register
from clfuse.codegen.lines.folds import Fold
from clfuse.dtypes import mask_type
from clfuse.schedule.dataflow import prefixes
from clfuse.schedule.kinds import is_sequential
from clfuse.schedule.records import Accumulator, Kernel, Prefix


class PrefixFold:
    """One `Prefix` of a kernel: its text at any width; names end in its number."""

    def __init__(self, number: int, prefix: Prefix, mask_lanes: int) -> None:
        self.number = number
        self.prefix = prefix
        self.dtype = prefix.dtype
        accumulator = Accumulator(prefix.var, prefix.name, prefix.operand, prefix.dtype)
        self.fold = Fold(number, accumulator, mask_lanes)
        self.carry = f"q{number}"
        """The fold so far; where columns are walked side by side, an element of an array."""

    def reading(self, prefix: Prefix) -> PrefixFold:
        """The same in a body where `prefix` is the scan, of another register."""
        if prefix.operand == self.prefix.operand:
            return self
        made = PrefixFold(self.number, prefix, self.fold.lane_nbytes)
        made.carry = self.carry
        return made

    def identity(self, writer: Expressions) -> str:
        """What changes nothing; of sums -0.0, so that a sum of that alone stays it."""
        if self.prefix.name == "add" and self.dtype.kind in "fc":
            parts = ", ".join(["-0.0f"] * (2 if self.dtype.kind == "c" else 1))
            return f"({self.fold.type_at(writer)})({parts})"
        return self.fold.identity(writer)

    def start(self, writer: Expressions) -> list[str]:
        """Declare the fold of what comes before the first element."""
        return [f"{self.fold.type_at(writer)} {self.carry} = {self.identity(writer)};"]

    def neutral_operand(self, writer: Expressions) -> str:
        """Declare what a work-item scans: nothing, until it has an element."""
        return f"{self.fold.type_at(writer)} u{self.number} = {self.identity(writer)};"

    def taken(self, writer: Expressions, registers: dict[int, Register], prefix: Prefix) -> str:
        """Let a work-item scan its element, the operand of `prefix` in its body."""
        item, _ = self.reading(prefix).fold.item(writer, registers)
        return f"u{self.number} = {item};"

    def combined(self, writer: Expressions, before: str, after: str) -> str:
        """Two folds of neighbours as one; both are names."""
        text = self.fold.combined(writer, before, after)
        rounds = self.dtype.char == "e" and is_sequential(self.prefix.name, self.dtype)
        return writer.half(text) if rounds else text

    def register(self, name: str) -> Register:
        """The scanned value."""
        return Register(name, self.dtype, self.fold.lane_nbytes)

    def partial(self, body: Body, place: str) -> str:
        """The fold of one piece, loaded as a scalar of the carry's type."""
        assert self.prefix.partial is not None
        stored = np.dtype(np.float32) if self.dtype.char == "e" else self.dtype
        text = f"{body.arguments.buffer(self.prefix.partial, stored)}[{place}]"
        return f"({text} != 0)" if self.dtype.kind == "b" else text

    def partials(self, body: Body, writer: Expressions, place: str) -> str:
        """The folds of neighbouring pieces, loaded at the writer's width."""
        if writer.width == 1:
            return self.partial(body, place)
        assert self.prefix.partial is not None
        stored = np.dtype(np.float32) if self.dtype.char == "e" else self.dtype
        pointer = body.arguments.buffer(self.prefix.partial, stored)
        text = writer.loaded(stored, f"{pointer} + {place}")
        if self.dtype.kind == "b":
            kind = self.fold.type_at(writer)
            return f"convert_{kind}({text} != (uchar{writer.width})(0))"
        return text


def running_lines(
    fold: PrefixFold, writer: Expressions, registers: dict[int, Register], name: str
) -> tuple[list[str], Register]:
    """One element after the other: the carry takes each one in."""
    kind = fold.fold.type_at(writer)
    item, _ = fold.fold.item(writer, registers)
    value = f"u{fold.number}"
    return [
        f"const {kind} {value} = {item};",
        f"{fold.carry} = {fold.combined(writer, fold.carry, value)};",
        f"const {kind} {name} = {fold.carry};",
    ], fold.register(name)


def lane_lines(
    fold: PrefixFold, writer: Expressions, registers: dict[int, Register], name: str
) -> tuple[list[str], Register]:
    """The lanes of a vector are neighbours of a row: shifted folds, then what came before them."""
    width = writer.width
    kind = fold.fold.type_at(writer)
    item, _ = fold.fold.item(writer, registers)
    value, shifted, neutral = f"u{fold.number}", f"w{fold.number}", f"z{fold.number}"
    lines = [f"{kind} {value} = {item};"]
    step = 1
    while step < width:
        lines.append(
            f"{{ const {kind} {shifted} = {_shifted(kind, value, neutral, width, step)}; "
            f"{value} = {fold.combined(writer, shifted, value)}; }}"
        )
        step *= 2
    before = fold.carry
    if fold.dtype.kind == "b":
        before = f"(({kind})(-({fold.carry} != 0)))"
    else:
        before = f"(({kind})({fold.carry}))"
    lines.append(f"const {kind} {name} = {fold.combined(writer, before, value)};")
    last = f"{name}.s{LANES[width - 1]}"
    lines.append(f"{fold.carry} = {f'({last} != 0)' if fold.dtype.kind == 'b' else last};")
    return lines, fold.register(name)


def _shifted(kind: str, value: str, neutral: str, width: int, step: int) -> str:
    """``value`` moved up by `step` lanes, as parts of 1, 2, 4 and 8 lanes, which shuffle best."""
    parts = [neutral] * step
    lane = 0
    left = width - step
    while left:
        size = 1 << (left.bit_length() - 1)
        parts.append(f"{value}.s{LANES[lane : lane + size]}")
        lane += size
        left -= size
    return f"({kind})({', '.join(parts)})"


def carries_before(fold: PrefixFold, body: Body, writer: Expressions) -> list[str]:
    """Fold the pieces of the row before this one into the carry."""
    kind = fold.fold.type_at(writer)
    return [
        f"for ({body.arguments.index_type} before = 0; before < piece; before++) {{",
        f"    const {kind} fold = {fold.partial(body, 'row * chunks + before')};",
        f"    {fold.carry} = {fold.combined(writer, fold.carry, 'fold')};",
        "}",
    ]


def carries_of_columns(fold: PrefixFold, body: Body, writer: Expressions) -> list[str]:
    """Fold the pieces before this one into the carry; lanes are neighbouring columns."""
    kind = fold.fold.type_at(writer)
    return [
        f"for ({body.arguments.index_type} before = 0; before < piece; before++) {{",
        f"    const {kind} fold = {fold.partials(body, writer, 'row * pitch + before * n + j')};",
        f"    {fold.carry} = {fold.combined(writer, fold.carry, 'fold')};",
        "}",
    ]


def neutral_line(fold: PrefixFold, writers: dict[int, Expressions], width: int) -> str:
    """Declare the scalar that fills shifted lanes."""
    if fold.dtype.kind == "b":
        lane = mask_type(fold.fold.lane_nbytes)
        text = fold.fold.identity(writers[width])
        return f"const {lane} z{fold.number} = ({text}).s0;"
    return f"const {fold.fold.type_at(writers[1])} z{fold.number} = {fold.identity(writers[1])};"


def folds_of(kernel: Kernel, mask_lanes: Any) -> dict[int, PrefixFold]:
    """Register -> its fold; `mask_lanes` tells the lane size of a bool accumulator."""
    found: dict[int, PrefixFold] = {}
    for item in prefixes(kernel.body):
        accumulator = Accumulator(item.var, item.name, item.operand, item.dtype)
        found[item.var] = PrefixFold(len(found), item, mask_lanes(kernel, accumulator))
    return found
