"""Parts of a kernel's loops: indices from a running number, a body's lines, pieces and results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import numpy as np

from clfuse.dtypes import register_nbytes
from clfuse.schedule.finish.prefetching import LINE_NBYTES
from clfuse.schedule.records import Accumulator, Index, Item, Kernel, Load, Step

from .body import Body
from .expressions import Expressions, Register
from .folds import Fold
from .names import EPILOGUE, UNIFORM

COLUMN_PLACE: Final = "row * pitch + base + piece * n + j"
"""Where the partial results of a piece lie, of the columns from ``j`` on."""


def decode(body: Body, dims: list[int], counter: str) -> list[str]:
    """Split the running number ``counter`` into the indices ``i<dim>``, last one fastest."""
    index = body.arguments.index_type
    lines = []
    rest = counter
    for position, dim in enumerate(reversed(dims)):
        extent = body.arguments.integer(f"n{dim}", body.kernel.extents[dim])
        if position == len(dims) - 1:
            lines.append(f"const {index} i{dim} = {rest};")
        else:
            following = f"rest{dim}"
            lines.append(f"const {index} {following} = {rest} / {extent};")
            lines.append(f"const {index} i{dim} = {rest} - {following} * {extent};")
            rest = following
    return lines


def compute(
    body: Body,
    kernel: Kernel,
    width: int,
    known: dict[int, Register],
    made: Collection[int] = (),
) -> tuple[list[str], dict[int, Register]]:
    """The loop's lines at one width, stores included, and its registers.

    The items of the registers `made` are left out: what is used of them is `known`, as are those
    that do not change along the lanes.
    """
    _, inside = body.split(kernel.body)
    registers = dict(known)
    lines = body.lines([item for item in inside if item.var not in made], width, registers)
    return lines + body.stores(kernel.stores, width, registers), registers


def unasked(items: list[Item]) -> list[Item]:
    """The same without asking for memory ahead, for loops that read several rows at once.

    So many streams keep the processor's own prefetching busy: asking took a fifth longer.
    """
    return [
        replace(item, ahead=None) if isinstance(item, Load) and item.ahead else item
        for item in items
    ]


def asked_once(items: Sequence[Item], width: int, copy: int) -> list[Item]:
    """The items of the vector of `width` that is number `copy` of those side by side: lines past
    the caches are asked for by the first vector that has elements of them."""
    return [
        replace(item, ahead=None)
        if isinstance(item, Load)
        and item.past
        and copy * width * item.dtype.itemsize % LINE_NBYTES
        else item
        for item in items
    ]


def before(body: Body, kernel: Kernel) -> tuple[list[str], dict[int, Register]]:
    same, _ = body.split(kernel.body)
    registers: dict[int, Register] = {}
    return body.lines(same, 1, registers, UNIFORM), registers


def mask_lanes(kernel: Kernel, accumulator: Accumulator) -> int:
    """The lane size of a bool accumulator: that of the widest operand in the loop."""
    if accumulator.dtype.kind != "b":
        return 4
    widest = 1
    for item in kernel.body:
        if isinstance(item, Load):
            widest = max(widest, min(register_nbytes(item.dtype), 8))
        elif isinstance(item, Step):
            for dtype in (item.dtype, *item.op.input_dtypes):
                widest = max(widest, min(register_nbytes(dtype), 8))
    return widest


def folding(kernel: Kernel, fold: Fold) -> Callable[..., list[str]]:
    """How the loop folds its next element: more simply where positions only grow."""
    kept = len(kernel.extents) - kernel.reduced
    for item in kernel.body:
        if isinstance(item, Index) and item.var == fold.accumulator.position:
            strides = item.access.strides[kept:]
            if all(outer >= inner for outer, inner in pairwise(strides)):
                return fold.fold_next
    return fold.fold


def chunk_arguments(kernel: Kernel, body: Body, k: Any) -> None:
    k.chunked = kernel.chunk >= 0
    if k.chunked:
        body.arguments.integer("chunks", kernel.chunks)
        body.arguments.integer("chunk_length", kernel.chunk_length)
        k.chunk_extent = body.arguments.integer(f"n{kernel.chunk}", kernel.extents[kernel.chunk])
    else:
        k.chunk_extent = ""


def outer_loops(kernel: Kernel, body: Body, dims: list[int]) -> list[tuple[int, str, str]]:
    loops = []
    for dim in dims:
        extent = body.arguments.integer(f"n{dim}", kernel.extents[dim])
        loops.append((dim, "low", "high") if dim == kernel.chunk else (dim, "0", extent))
    return loops


def column_arguments(kernel: Kernel, body: Body, k: Any) -> None:
    """What all kernels over columns need: ``n`` of them, the dimensions outside, the pieces."""
    body.arguments.integer("n", kernel.extents[kernel.vector])
    outer = list(range(len(kernel.extents) - kernel.reduced - 1))
    k.row_extents = [body.arguments.integer(f"n{dim}", kernel.extents[dim]) for dim in outer]
    chunk_arguments(kernel, body, k)
    if k.chunked:
        pitch, base = kernel.partials
        body.arguments.integer("pitch", pitch)
        body.arguments.integer("base", base)
    k.decode = decode(body, outer, "row")


def partial_lines(
    body: Body,
    writer: Expressions,
    folds: list[Fold],
    names: list[tuple[str, str]],
    place: str,
) -> list[str]:
    """Stores of a piece's folds, whose texts (value, position) are `names`, from `place` on."""
    lines = []
    for fold, (value, position) in zip(folds, names, strict=True):
        accumulator = fold.accumulator
        assert accumulator.partial is not None
        stored = np.dtype(np.float32) if fold.dtype.char == "e" else fold.dtype
        pointer = body.arguments.buffer(accumulator.partial, stored, written=True)
        register = Register(value, fold.dtype, fold.lane_nbytes)
        text = value if stored != fold.dtype else body.memory_text(writer, register, stored)
        lines.append(_stored(writer, stored, text, pointer, place))
        if accumulator.partial_position is not None:
            pointer = body.arguments.buffer(
                accumulator.partial_position, np.dtype(np.int64), written=True
            )
            lines.append(_stored(writer, np.dtype(np.int64), position, pointer, place))
    return lines


def _stored(writer: Expressions, dtype: np.dtype, text: str, pointer: str, place: str) -> str:
    if writer.width == 1:
        return f"{pointer}[{place}] = {text};"
    return writer.stored(dtype, text, f"{pointer} + {place}", whole=False)


def epilogue_lines(
    kernel: Kernel, body: Body, width: int, folded: dict[int, Register]
) -> tuple[list[str], list[str], dict[int, Register]]:
    """(the epilogue, its stores, all its registers) at one width."""
    registers = dict(folded)
    computed = body.lines(kernel.epilogue, width, registers, EPILOGUE)
    stores = []
    for store in kernel.results:
        stores += body.store(store, width, registers[store.var])
    return computed, stores, registers
