"""Row blocking: rows of a reduction side by side, so that a vector they share is loaded once.

    A @ x       a0 a1 a2 a3 ...   each vector of x is loaded once for all rows of a block: row by
                b0 b1 b2 b3 ...   row, it comes from the second-level cache as often as A from
                c0 c1 c2 c3 ...   memory
                ...

Every row has one vector of accumulators, ``V0[r]``; single elements after the last vector, and what
follows the loop, are done row by row, as for a row alone. Rows that are left over are such.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final

from clfuse.codegen.lines.body import Body
from clfuse.codegen.lines.expressions import Register, vector
from clfuse.codegen.lines.folds import Fold
from clfuse.codegen.lines.loops import compute, folding, unasked
from clfuse.codegen.lines.nan_tracking import WatchedFold
from clfuse.schedule.records import Kernel, Load, Step
from clfuse.schedule.shape.geometry import SHORT_SUM

from .searches import SearchedFold

ROWS, FEW_ROWS = 8, 4
"""Rows of a block, and of one with two folds, or where the rows are no multiple of more: so many
additions hide the latency of one, and so many streams of memory are under way. Products of (4000,
4000) float64 with a vector took 1.0 to 1.9 times as long with four rows as with eight, of (2000,
2000) 1.1 to 1.5 (PoCL and Intel's runtime on two cores of an EPYC); row by row longer still."""

MAX_ITEMS: Final = 16
"""Loads and operations of a body that is repeated for so many rows: what calculates longer does not
wait for its loads."""

MAX_ACCUMULATORS: Final = 2
"""More would not lie in registers for so many rows."""


def of(
    kernel: Kernel, body: Body, folds: list[Fold], uniform: dict[int, Register]
) -> SimpleNamespace | None:
    """What the template needs for blocks of rows; None where they would not gain."""
    if not _gains(kernel, body) or any(isinstance(fold, SearchedFold) for fold in folds):
        return None
    b = SimpleNamespace(rows=_rows(kernel), dim=len(kernel.extents) - kernel.reduced - 1)
    width = kernel.width
    writer = body.writer(width)
    b.step = width
    b.length = f"{width * SHORT_SUM}"
    b.arrays, b.start, b.pause, b.taken = [], [], [], []
    b.body, registers = compute(body, replace(kernel, body=unasked(kernel.body)), width, uniform)
    for fold in folds:
        number, kind = fold.number, fold.type_at(writer)
        value, position = f"V{number}[r]", f"P{number}[r]" if fold.is_argument else ""
        item, item_position = fold.item(writer, registers)
        b.body += folding(kernel, fold)(writer, value, position, item, item_position)
        _array(b, kind, f"V{number}", fold.identity(writer), f"v{number}_0")
        if fold.is_argument:
            long = vector("long", width)
            _array(b, long, f"P{number}", f"({long})(LONG_MAX)", f"p{number}_0")
        if isinstance(fold, WatchedFold):
            masks = fold.masks(writer)
            _array(b, masks, f"U{number}", f"({masks})(0)", f"u{number}_0")
        if kernel.compensated and fold.compensates:
            _array(b, kind, f"tV{number}", f"({kind})(0)", f"tv{number}")
            _array(b, kind, f"eV{number}", f"({kind})(0)", f"ev{number}")
            b.pause += fold.add_to_total(writer, value, value)
            b.pause.append(f"{value} = {fold.identity(writer)};")
    return b


def _gains(kernel: Kernel, body: Body) -> bool:
    """Whether rows that follow one another load the same vectors, and little is done with them."""
    kept = len(kernel.extents) - kernel.reduced
    if kernel.schedule != "cpu" or kernel.width == 1 or kernel.reduced != 1 or not kept:
        return False
    if kernel.then or kernel.chunk >= 0 or kernel.stores or body.seams:
        return False
    if len(kernel.body) > MAX_ITEMS or not 1 <= len(kernel.accumulators) <= MAX_ACCUMULATORS:
        return False
    rows = kernel.extents[kept - 1]
    if rows < 2 * FEW_ROWS or (kept > 1 and rows % FEW_ROWS):
        return False
    same, _ = body.split(kernel.body)
    if any(isinstance(item, Step) for item in same):
        return False
    loads = [item.access.strides for item in kernel.body if isinstance(item, Load)]
    along = [strides for strides in loads if strides[kernel.vector]]
    shared = [not strides[kept - 1] for strides in along]
    return any(shared) and not all(shared)


def _rows(kernel: Kernel) -> int:
    """How many rows a block has; where there are outer dimensions, none may reach into the next."""
    kept = len(kernel.extents) - kernel.reduced
    rows = kernel.extents[kept - 1]
    fits = rows >= 2 * ROWS and (kept == 1 or rows % ROWS == 0)
    return ROWS if fits and len(kernel.accumulators) == 1 else FEW_ROWS


def _array(b: Any, kind: str, name: str, start: str, alone: str) -> None:
    """An accumulator of all rows; `alone` is its name where one row goes on."""
    b.arrays.append(f"{kind} {name}[{b.rows}];")
    b.start.append(f"{name}[r] = {start};")
    b.taken.append(f"{alone} = {name}[r];")
