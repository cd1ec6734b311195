"""Kernels of kind ``tiles`` as the contents of their template; called by `render.kernels`.

A stage whose result stays in local memory, for ``b[1:-1] = a[:-2] + a[2:]``:

    for (int j = max(p0 - 1, 0); j < high; j += 8) {
        const double8 r0 = vload8(0, a0 + j);
        const double8 r1 = vload8(0, a0 + o0 + j);
        vstore8(r0 + r1, 0, t0 + y0 + j);
    }
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..dtypes import memory_type
from ..graph.layout import contiguous_strides
from ..plan.schedule import Access, Border, Kernel, Load, Scratch, Stage, Store, Tiling
from ..traits import DeviceTraits
from .arguments import Arguments
from .body import Body
from .expressions import Expressions, Preamble, Register
from .loops import before, compute

Ints = tuple[int, ...]


def fill(
    kernel: Kernel,
    tiling: Tiling,
    traits: DeviceTraits,
    arguments: Arguments,
    preamble: Preamble,
    k: Any,
) -> None:
    """Fill in what the template needs."""
    rank = len(tiling.extents)
    k.lengths = [
        arguments.integer(f"l{dim}", length) for dim, length in enumerate(tiling.lengths)
    ]
    k.extents = [
        arguments.integer(f"m{dim}", extent) for dim, extent in enumerate(tiling.extents)
    ]
    k.arrays = [
        f"__local {memory_type(dtype)} t{number}[{elements}]"
        for number, (dtype, elements) in enumerate(tiling.arrays)
    ]
    k.last = rank - 1
    numbers: Iterator[int] | None = None
    k.stages = []
    for number, stage in enumerate(tiling.stages):
        body = _StageBody(stage.kernel, traits, arguments, preamble, numbers, tiling)
        numbers = body.group_numbers
        k.stages.append(_stage(number, stage, body, tiling))


def _bounds(
    arguments: Arguments, name: str, extents: Ints, low: Ints, high: Ints
) -> list[tuple[str, str]]:
    """First index and end along each dimension, of what a tile needs within the extents."""
    found = []
    for dim, (extent, below, above) in enumerate(zip(extents, low, high, strict=True)):
        end = arguments.integer(f"{name}_{dim}", extent)
        found.append(
            (f"max(p{dim}{_plus(below)}, 0)", f"min(q{dim}{_plus(above)}, {end})")
        )
    return found


def _plus(number: int) -> str:
    return f" + {number}" if number > 0 else f" - {-number}" if number else ""


def _stage(number: int, stage: Stage, body: _StageBody, tiling: Tiling) -> SimpleNamespace:
    kernel = stage.kernel
    arguments = body.arguments
    s = SimpleNamespace(width=kernel.width)
    s.bounds = _bounds(arguments, f"n{number}", kernel.extents, stage.low, stage.high)
    s.before, uniform = before(body, kernel)
    s.scalar_body, _ = compute(body, kernel, 1, uniform)
    s.body = []
    if kernel.width > 1:
        s.body, _ = compute(body, kernel, kernel.width, uniform)
    s.groups = body.group_lines
    s.borders = [
        _border(number, place, border, body, tiling) for place, border in enumerate(stage.borders)
    ]
    s.copied = [
        _copied(number, place, store, start, stage, body, tiling)
        for place, (store, start) in enumerate(stage.copied)
    ]
    return s


def _row(scratch: Scratch) -> str:
    """The number of a row's element 0 in scratch, for the indices ``i`` of a value."""
    terms = []
    for dim, (stride, low) in enumerate(zip(scratch.strides, scratch.low, strict=True)):
        if dim < len(scratch.strides) - 1:
            terms.append(f"(i{dim} - p{dim}{_plus(-low)}) * {stride}")
        else:
            terms.append(f"({-low} - p{dim})")
    return " + ".join(terms)


def _memory_row(arguments: Arguments, name: str, shape: Ints) -> str:
    """The same in memory."""
    terms = [
        f"i{dim} * {arguments.integer(f'{name}_{dim}', stride)}"
        for dim, stride in enumerate(contiguous_strides(shape)[:-1])
    ]
    return " + ".join(terms) or "0"


def _border(
    number: int, place: int, border: Border, body: _StageBody, tiling: Tiling
) -> SimpleNamespace:
    """What is around the region of an update."""
    arguments = body.arguments
    b = SimpleNamespace()
    name = f"{number}_{place}"
    b.bounds = _bounds(arguments, f"e{name}", border.shape, border.low, border.high)
    b.box = [
        (
            arguments.integer(f"f{name}_{dim}", low),
            arguments.integer(f"g{name}_{dim}", high),
        )
        for dim, (low, high) in enumerate(border.box)
    ]
    scratch = tiling.scratch[border.value]
    pointer = arguments.buffer(border.base, border.dtype)
    b.rows = [
        f"const int to = {_row(scratch)};",
        f"const int from = {_memory_row(arguments, f's{name}', border.shape)};",
    ]
    b.copy = f"t{scratch.array}[to + j] = {pointer}[from + j];"
    return b


def _copied(
    number: int,
    place: int,
    store: Store,
    start: Ints,
    stage: Stage,
    body: _StageBody,
    tiling: Tiling,
) -> SimpleNamespace:
    """A result on its way from scratch to memory: the part of it that belongs to the tile."""
    arguments = body.arguments
    c = SimpleNamespace()
    name = f"{number}_{place}"
    c.bounds = []
    for dim, (first, extent) in enumerate(zip(start, stage.kernel.extents, strict=True)):
        low = arguments.integer(f"b{name}_{dim}", first)
        end = arguments.integer(f"d{name}_{dim}", first + extent)
        c.bounds.append((f"max(p{dim}, {low})", f"min(q{dim}, {end})"))
    scratch = tiling.scratch[store.value]
    pointer = arguments.buffer(store.value, store.dtype, written=True)
    c.rows = [
        f"const int from = {_row(scratch)};",
        f"const int to = {_memory_row(arguments, f'c{name}', scratch.shape)};",
    ]
    width = c.width = stage.kernel.width
    writer = body.writer(width)
    c.scalar = f"{pointer}[to + j] = t{scratch.array}[from + j];"
    c.vector = ""
    if width > 1:
        loaded = writer.loaded(store.dtype, f"t{scratch.array} + from + j", space="__local")
        c.vector = writer.stored(store.dtype, loaded, f"{pointer} + to + j")
    return c


class _StageBody(Body):
    """Lines of a stage: what has scratch is loaded from there, and stored there."""

    def __init__(
        self,
        kernel: Kernel,
        traits: DeviceTraits,
        arguments: Arguments,
        preamble: Preamble,
        group_numbers: Iterator[int] | None,
        tiling: Tiling,
    ) -> None:
        super().__init__(kernel, traits, arguments, preamble, group_numbers)
        self.scratch = tiling.scratch

    def pointer(self, value: int, dtype: np.dtype) -> str:
        scratch = self.scratch.get(value)
        return super().pointer(value, dtype) if scratch is None else f"t{scratch.array}"

    def _in_scratch(self, scratch: Scratch, access: Access) -> str:
        """Where in scratch the element for ``j`` lies."""
        key = (scratch, access)
        if key not in self.groups:
            rest = access.offset
            terms = []
            for dim, step in enumerate(contiguous_strides(scratch.shape)):
                start, rest = divmod(rest, step)
                moved = start - scratch.low[dim]
                if dim == self.vector:
                    terms.append(f"({moved} - p{dim})")
                else:
                    terms.append(f"(i{dim} - p{dim}{_plus(moved)}) * {scratch.strides[dim]}")
            name = self.groups[key] = f"y{len(self.groups)}"
            kind = self.arguments.index_type
            self.group_lines.append(f"const {kind} {name} = {' + '.join(terms)};")
        return f"{self.groups[key]} + {self.index}"

    def _loaded(self, pointer: str, item: Load, width: int) -> str:
        scratch = self.scratch.get(item.value)
        if scratch is None:
            return super()._loaded(pointer, item, width)
        place = self._in_scratch(scratch, item.access)
        if width == 1:
            return f"{pointer}[{place}]"
        return self.writer(width).loaded(item.dtype, f"{pointer} + {place}", space="__local")

    def store(self, store: Store, width: int, register: Register) -> list[str]:
        scratch = self.scratch.get(store.value)
        if scratch is None:
            return super().store(store, width, register)
        writer: Expressions = self.writer(width)
        text = self.memory_text(writer, register, store.dtype)
        place = f"t{scratch.array} + {self._in_scratch(scratch, store.access)}"
        if width == 1:
            return [f"*({place}) = {text};"]
        return [writer.stored(store.dtype, text, place, space="__local")]
