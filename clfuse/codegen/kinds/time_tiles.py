"""Time tiles (kernels of kind ``tiles``) as the contents of their template.

A stage whose result stays in local memory, for ``b[1:-1] = a[:-2] + a[2:]``:

    for (int j = max(p0 - 1, 0); j < high; j += 8) {
        const double8 r0 = vload8(0, a0 + j);
        const double8 r1 = vload8(0, a0 + o0 + j);
        vstore8(r0 + r1, 0, tile0 + y0 + j);
    }
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace

import numpy as np

from clfuse.codegen.arguments import Arguments
from clfuse.codegen.lines.body import Body
from clfuse.codegen.lines.expressions import Expressions, Preamble, Register
from clfuse.codegen.lines.loops import before, compute
from clfuse.dtypes import memory_type
from clfuse.ir.layout import contiguous_strides
from clfuse.schedule.records import (
    Access,
    Border,
    Input,
    Kernel,
    Load,
    Scratch,
    Stage,
    Store,
    Tiling,
)
from clfuse.target.traits import DeviceTraits

from .writing import Writing

Ints = tuple[int, ...]


def fill(kernel: Kernel, writing: Writing) -> str:
    """Fill in what the template needs."""
    tiling, arguments, k = kernel.tiling, writing.arguments, writing.context
    assert tiling is not None
    rank = len(tiling.extents)
    k.lengths = [arguments.integer(f"l{dim}", length) for dim, length in enumerate(tiling.lengths)]
    k.extents = [arguments.integer(f"m{dim}", extent) for dim, extent in enumerate(tiling.extents)]
    k.arrays = [
        f"__local {memory_type(dtype)} tile{number}[{elements}]"
        for number, (dtype, elements) in enumerate(tiling.arrays)
    ]
    k.last = rank - 1
    names = _Names(arguments)
    numbers: Iterator[int] | None = None
    k.stages = []
    for stage in tiling.stages:
        body = _StageBody(writing.traits, arguments, writing.preamble, numbers, tiling, stage)
        numbers = body.group_numbers
        k.stages.append(_stage(stage, body, tiling, names))
    return "time_tiles.cl.mako"


class _Names:
    """Arguments with extents and the like: what is equal along all dimensions is one."""

    def __init__(self, arguments: Arguments) -> None:
        self.arguments = arguments
        self._known: dict[tuple[str, Ints], int] = {}

    def of(self, prefix: str, numbers: Ints) -> list[str]:
        """The names of these numbers."""
        count = sum(known == prefix for known, _ in self._known)
        place = self._known.setdefault((prefix, numbers), count)
        return [
            self.arguments.integer(f"{prefix}{place}_{dim}", number)
            for dim, number in enumerate(numbers)
        ]


def _bounds(
    names: _Names, tiling: Tiling, extents: Ints, low: Ints, high: Ints
) -> list[tuple[str, str]]:
    """First index and end along each dimension, of what a tile needs within the extents."""
    found = []
    for dim, (end, below, above) in enumerate(zip(names.of("n", extents), low, high, strict=True)):
        first, last = f"p{dim}{_plus(below)}", f"q{dim}{_plus(above)}"
        if dim not in tiling.around:
            first, last = f"max({first}, 0)", f"min({last}, {end})"
        found.append((first, last))
    return found


def _plus(number: int) -> str:
    return f" + {number}" if number > 0 else f" - {-number}" if number else ""


def _stage(stage: Stage, body: _StageBody, tiling: Tiling, names: _Names) -> SimpleNamespace:
    kernel = stage.kernel
    s = SimpleNamespace(width=kernel.width)
    s.bounds = _bounds(names, tiling, kernel.extents, stage.low, stage.high)
    s.before, uniform = before(body, kernel)
    s.scalar_body, _ = compute(body, kernel, 1, uniform)
    s.body = []
    if kernel.width > 1:
        s.body, _ = compute(body, kernel, kernel.width, uniform)
    s.groups = body.group_lines
    s.inputs = [_input(each, body, tiling, names) for each in stage.inputs]
    s.borders = [_border(border, tiling, names) for border in stage.borders]
    s.copied = [_copied(store, start, stage, body, tiling, names) for store, start in stage.copied]
    return s


def _scratch_row(scratch: Scratch, start: Ints) -> str:
    """The number in scratch of the element of a value that is `start` before index ``i`` of a
    row, for ``j`` of 0."""
    terms = []
    last = len(scratch.strides) - 1
    for dim, (stride, low, first) in enumerate(
        zip(scratch.strides, scratch.low, start, strict=True)
    ):
        if dim < last:
            terms.append(f"(i{dim} - p{dim}{_plus(first - low)}) * {stride}")
        else:
            terms.append(f"({first - low} - p{dim})")
    return " + ".join(terms)


def _memory_row(shape: Ints, names: _Names) -> str:
    """The number in memory of element 0 of a row of a value."""
    strides = names.of("pitch", contiguous_strides(shape)[:-1])
    return " + ".join([f"i{dim} * {stride}" for dim, stride in enumerate(strides)]) or "0"


def _input(each: Input, body: _StageBody, tiling: Tiling, names: _Names) -> SimpleNamespace:
    """A copy of what a tile needs of an array; `runs` are the parts of a row: first index, end, and
    how far away from there the elements lie."""
    scratch = tiling.scratch[each.value]
    last = len(each.shape) - 1
    n = SimpleNamespace(bounds=_bounds(names, tiling, each.shape, each.low, each.high))
    extents = names.of("n", each.shape)
    n.rows = [f"const int to = {_scratch_row(scratch, (0,) * len(each.shape))};"]
    terms = []
    for dim, stride in enumerate(names.of("pitch", contiguous_strides(each.shape)[:-1])):
        row = f"i{dim}"
        if dim in tiling.around:
            end = extents[dim]
            n.rows.append(f"const int r{dim} = {row} < 0 ? {row} + {end} : {row};")
            row = f"(r{dim} < {end} ? r{dim} : r{dim} - {end})"
        terms.append(f"{row} * {stride}")
    n.rows.append(f"const int from = {' + '.join(terms) or '0'};")
    n.runs = [("low", "high", "")]
    if last in tiling.around:
        end = extents[last]
        n.runs = [
            ("low", "min(high, 0)", f" + {end}"),
            ("max(low, 0)", f"min(high, {end})", ""),
            (f"max(low, {end})", "high", f" - {end}"),
        ]
    pointer = names.arguments.buffer(each.value, each.dtype)
    n.width = body.kernel.width
    n.scalar = lambda moved: f"tile{scratch.array}[to + j] = {pointer}[from + j{moved}];"
    writer = body.writer(n.width)

    def copied(moved: str) -> str:
        loaded = writer.loaded(each.dtype, f"{pointer} + from + j{moved}")
        return writer.stored(each.dtype, loaded, f"tile{scratch.array} + to + j", space="__local")

    n.vector = copied if n.width > 1 else None
    return n


def _border(border: Border, tiling: Tiling, names: _Names) -> SimpleNamespace:
    """What is around the region of an update."""
    b = SimpleNamespace()
    b.bounds = _bounds(names, tiling, border.shape, border.low, border.high)
    lows, highs = zip(*border.box, strict=True)
    b.box = list(zip(names.of("b", lows), names.of("e", highs), strict=True))
    scratch = tiling.scratch[border.value]
    pointer = names.arguments.buffer(border.base, border.dtype)
    b.rows = [
        f"const int to = {_scratch_row(scratch, (0,) * len(scratch.low))};",
        f"const int from = {_memory_row(border.shape, names)};",
    ]
    b.copy = f"tile{scratch.array}[to + j] = {pointer}[from + j];"
    return b


def _copied(
    store: Store,
    start: Ints,
    stage: Stage,
    body: _StageBody,
    tiling: Tiling,
    names: _Names,
) -> SimpleNamespace:
    """A result on its way from scratch to memory: the part of it that belongs to the tile."""
    c = SimpleNamespace()
    ends = tuple(
        [first + extent for first, extent in zip(start, stage.kernel.extents, strict=True)]
    )
    c.bounds = [
        (f"max(p{dim}, {low})", f"min(q{dim}, {end})")
        for dim, (low, end) in enumerate(
            zip(names.of("b", start), names.of("e", ends), strict=True)
        )
    ]
    scratch = tiling.scratch[store.value]
    pointer = names.arguments.buffer(store.value, store.dtype, written=True)
    c.rows = [
        f"const int from = {_scratch_row(scratch, (0,) * len(start))};",
        f"const int to = {_memory_row(scratch.shape, names)};",
    ]
    width = c.width = stage.kernel.width
    writer = body.writer(width)
    c.scalar = f"{pointer}[to + j] = tile{scratch.array}[from + j];"
    c.vector = ""
    if width > 1:
        loaded = writer.loaded(store.dtype, f"tile{scratch.array} + from + j", space="__local")
        c.vector = writer.stored(store.dtype, loaded, f"{pointer} + to + j")
    return c


class _StageBody(Body):
    """Lines of a stage: what has scratch is loaded from there, and stored there."""

    def __init__(
        self,
        traits: DeviceTraits,
        arguments: Arguments,
        preamble: Preamble,
        group_numbers: Iterator[int] | None,
        tiling: Tiling,
        stage: Stage,
    ) -> None:
        super().__init__(stage.kernel, traits, arguments, preamble, group_numbers)
        self.starts = stage.starts
        self.scratch = tiling.scratch

    def pointer(self, value: int, dtype: np.dtype) -> str:
        scratch = self.scratch.get(value)
        return super().pointer(value, dtype) if scratch is None else f"tile{scratch.array}"

    def _in_scratch(self, scratch: Scratch, access: Access) -> str:
        """Where in scratch the element for ``j`` lies."""
        key = (scratch, access)
        if key not in self.groups:
            name = self.groups[key] = f"y{len(self.groups)}"
            kind = self.arguments.index_type
            row = _scratch_row(scratch, self.starts[access])
            self.group_lines.append(f"const {kind} {name} = {row};")
        return f"{self.groups[key]} + {self.index}"

    def _loaded(self, pointer: str, item: Load, width: int) -> str:
        scratch = self.scratch.get(item.value)
        if scratch is None:
            return super()._loaded(pointer, item, width)
        place = self._in_scratch(scratch, item.access)
        if width == 1:
            return f"{pointer}[{place}]"
        return self.writer(width).loaded(item.dtype, f"{pointer} + {place}", space="__local")

    def stores(
        self, stores: Sequence[Store], width: int, registers: Mapping[int, Register]
    ) -> list[str]:
        return [line for store in stores for line in self.store(store, width, registers[store.var])]

    def store(self, store: Store, width: int, register: Register) -> list[str]:
        scratch = self.scratch.get(store.value)
        if scratch is None:
            return super().store(store, width, register)
        writer: Expressions = self.writer(width)
        text = self.memory_text(writer, register, store.dtype)
        place = f"tile{scratch.array} + {self._in_scratch(scratch, store.access)}"
        if width == 1:
            return [f"*({place}) = {text};"]
        return [writer.stored(store.dtype, text, place, space="__local")]
