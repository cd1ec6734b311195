"""Other geometries of finished kernels in which they compute the same bits, for tuning to choose.

`KernelKind.free` says on which fields no result of a kind depends. Two things narrow that down for
a kernel: only exact arithmetic has the same bits in vectors, in narrower ones and element by
element, so that a kernel with other functions keeps its text and the vectors that its elements are
in; and where a geometry follows from more than a few fields (tiles, blocks, pieces of a fold),
nothing is free.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from clfuse.ops.row import Ufunc
from clfuse.schedule.kinds import MAP
from clfuse.schedule.records import Kernel, Step
from clfuse.target.traits import DeviceTraits

from . import map_ranges
from .geometry import MAX_LANES, items_for, round_up
from .unroll2 import has_pairs

__all__ = ["choices", "is_exact", "varied"]

FACTORS: Final[Mapping[str, tuple[float, ...]]] = {
    "work_items": (2, 0.5, 4, 0.25, 8, 16),
    "work_group": (0.5, 2, 0.25, 4),
    "width": (0.5, 2, 0.25),
}
"""Of a field, by which its value is multiplied, in the order in which they are tried."""

LEAST_GROUP: Final = 32
"""Work-items of a group: a warp."""

MOST_ITEMS: Final = 1 << 12
"""Work-items of a CPU's launch: from thousands on each costs more than it evens out."""

_INEXACT: Final = "normal.cl"
"""A file of ``kernels/lib`` whose functions promise no places, and call built-in functions."""

_ROUNDED: Final = frozenset("fF")
"""dtypes whose quotients and roots may not be rounded correctly: float32 and complex64."""


def choices(kernel: Kernel, traits: DeviceTraits) -> list[tuple[str, int]]:
    """Fields with other values than the kernel has, in the order in which they should be tried;
    those that need no other text first."""
    free = _free(kernel, traits)
    found: list[tuple[str, int]] = []
    for name in ("work_items", "work_group", "unroll", "width"):
        if name not in free:
            continue
        now = int(getattr(kernel, name))
        if name == "unroll":
            values = [3 - now] if now in (1, 2) else []
        else:
            values = [math.ceil(now * factor) for factor in FACTORS[name]]
        for value in dict.fromkeys(values):
            if value != now and varied(kernel, {name: value}, traits) is not None:
                found.append((name, value))
    return found


def varied(kernel: Kernel, chosen: Mapping[str, int], traits: DeviceTraits) -> Kernel | None:
    """The kernel with these values of its fields; None where it cannot have one of them, or its
    results might have other bits.

    kernel: as the planner has made it.
    chosen: names among `KernelKind.free`, and whole numbers.
    traits: the device's that it was planned for.
    """
    if not chosen or not _free(kernel, traits).issuperset(chosen):
        return None
    if kernel.kind is not MAP:
        return _with_items(kernel, chosen["work_items"])
    if kernel.schedule == "gpu":
        return _gpu_map(kernel, chosen, traits)
    return _cpu_map(kernel, chosen, traits)


def is_exact(kernel: Kernel, traits: DeviceTraits) -> bool:
    """Whether every step of a kernel has the bits that IEEE 754 or NumPy's integers define: the
    same in vectors of any width."""
    own = {name for name, _ in traits.expressions}
    steps = {
        (item.op, item.dtype, item.dtypes)
        for phase in kernel.computed
        for item in phase.body + phase.epilogue
        if isinstance(item, Step)
    }
    for op, dtype, others in steps:
        row = op.row
        dtypes = (dtype, *others, *op.input_dtypes)
        if row is None:
            continue  # a cast
        if not isinstance(row, Ufunc) or row.ulp or _INEXACT in row.libraries:
            return False
        if row.complex_ulp and any(dtype.kind == "c" for dtype in dtypes):
            return False
        if not traits.correctly_rounded_divide and _is_rounded(row, dtypes):
            return False
        if row.name in own and any((row.name, each.name) in traits.expressions for each in dtypes):
            return False
    return True


def _is_rounded(row: Ufunc, dtypes: tuple[np.dtype, ...]) -> bool:
    """Whether a row divides or takes roots of what the device need not round correctly."""
    return row.weight > 1 and any(dtype.char in _ROUNDED for dtype in dtypes)


def _free(kernel: Kernel, traits: DeviceTraits) -> frozenset[str]:
    """The fields of a kernel that may have other values."""
    free = kernel.kind.free
    if not free or kernel.follows or kernel.tiling is not None or kernel.selection is not None:
        return frozenset()
    if kernel.kind is not MAP:
        # A group of a GPU folds together; pieces of a CPU's rows are what adds up where.
        if kernel.schedule == "gpu" or kernel.chunk >= 0 or kernel.chunks > 1:
            return frozenset()
        return free & {"work_items"}
    if kernel.tile_rows or kernel.block or any(kernel.local_tile):
        return frozenset()
    if kernel.schedule == "gpu":
        free &= {"work_group", "width"}
    else:
        free -= {"work_group"}
    if kernel.then:
        free &= {"work_items", "work_group"}
    if not is_exact(kernel, traits):
        free &= {"work_items", "work_group"}
        if kernel.streams or kernel.unroll > 1:
            # Where a piece ends decides which elements are in vectors.
            free -= {"work_items"}
    elif kernel.width == 1:
        free -= {"unroll", "width"}
    return free


def _with_items(kernel: Kernel, items: int) -> Kernel | None:
    """A CPU's kernel whose rows are dealt out to so many work-items."""
    along = 1 if kernel.kind.scans else kernel.reduced
    rows = math.prod(kernel.extents[: len(kernel.extents) - along])
    if not 1 <= items <= min(rows, MOST_ITEMS):
        return None
    return replace(kernel, work_items=items)


def _cpu_map(kernel: Kernel, chosen: Mapping[str, int], traits: DeviceTraits) -> Kernel | None:
    width = chosen.get("width", kernel.width)
    unroll = chosen.get("unroll", kernel.unroll)
    if not 1 <= width <= MAX_LANES or width & (width - 1) or unroll not in (1, 2):
        return None
    extent = kernel.extents[-1]
    if width > extent and width > kernel.width:
        return None
    made = replace(kernel, width=width, unroll=unroll)
    if unroll == 2 and (width == 1 or not has_pairs(made)):
        return None
    made.then = [replace(sister, width=min(sister.width, width)) for sister in kernel.then]
    rows = math.prod(kernel.extents[:-1])
    items = chosen.get("work_items", kernel.work_items)
    if not 1 <= items <= MOST_ITEMS:
        return None
    pieces = 1 if rows >= items else -(-items // max(rows, 1))
    length = round_up(-(-extent // pieces), width)
    pieces = min(pieces, -(-extent // length)) if rows <= 1 else pieces
    if length != kernel.chunk_length and (rows > 1 or kernel.then) and not is_exact(kernel, traits):
        # Of a row's last piece, elements are in vectors only where it is long enough for one.
        return None
    made.chunks, made.chunk_length = pieces, length
    made.work_items = items_for(max(1, pieces * rows), items)
    return made


def _gpu_map(kernel: Kernel, chosen: Mapping[str, int], traits: DeviceTraits) -> Kernel | None:
    width = chosen.get("width", kernel.width)
    group = chosen.get("work_group", kernel.work_group)
    if not 1 <= width <= kernel.width or width & (width - 1):
        return None
    if group & (group - 1) or not LEAST_GROUP <= group <= traits.max_work_group:
        return None
    made = replace(kernel)
    if width != kernel.width:
        made.width, made.lead = width, ()
        map_ranges.lay(made, traits)
        if made.width != width:
            return None
    map_ranges.spread(made, group)
    if made.work_group != group:
        return None
    return made
