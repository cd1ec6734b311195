"""Loop-invariant code motion: values that are the same in every row are made once a work-item.

    (a - m) / s  over (125000, 64)      m and s are 64 columns: loaded into arrays before the rows

    float16 h1[64], h3[64];
    for (int j = 0, v = 0; j < wide; j += 16, v++) { h1[v] = vload16(0, a1 + x1 + j); ... }

A row never reads another row's results: a load that shares memory with a result is not hoisted.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, Final

from clfuse.schedule.records import Index, Item, Kernel, Load, Scalar, Step
from clfuse.schedule.shape.geometry import element_nbytes

from .body import Body
from .expressions import Register
from .names import UNIFORM

HELD: Final = 64
"""Vectors of a row that are kept, of each array: a page."""

MAX_NBYTES: Final = 1 << 14
"""All of them together: a part of the first-level cache."""

MIN_ROWS: Final = 8
"""Rows of a work-item that are worth the preparation."""


def hoist(kernel: Kernel, body: Body, k: Any) -> tuple[set[int], list[dict[int, Register]]]:
    """Fill in the template's preparation.

    Returns the registers that the loops need not compute, and what stands for those of them that
    they use: in whole vectors, and in the single elements after them.
    """
    if body.first_aligned():
        return set(), [{}, {}]
    fixed = _fixed_items(kernel, body)
    _, inside = body.split(fixed)
    made = {item.var for item in inside}
    used = [item for item in inside if item.var in _used_by_others(kernel, fixed)]
    nbytes = HELD * kernel.width * element_nbytes(kernel) * len(used)
    rows = math.prod(kernel.extents[:-1])
    if (
        not used
        or kernel.width == 1
        or nbytes > MAX_NBYTES
        or kernel.extents[-1] > HELD * kernel.width
        or rows < MIN_ROWS * kernel.work_items
    ):
        return set(), [{}, {}]
    before, _ = body.split(fixed)
    uniform: dict[int, Register] = {}
    k.hoisted = SimpleNamespace(arrays=[], loops=[])
    uniform_lines = body.lines(before, 1, uniform, UNIFORM)
    stands = []
    for width, mark, length in ((kernel.width, "", HELD), (1, "y", kernel.width)):
        writer = body.writer(width)
        registers = dict(uniform)
        lines = body.lines(inside, width, registers)
        kept = {}
        for item in used:
            register = registers[item.var]
            kind = writer.type_of(register.dtype, register.lane_nbytes)
            k.hoisted.arrays.append(f"{kind} h{item.var}{mark}[{length}];")
            kept[item.var] = Register(f"h{item.var}{mark}[v]", register.dtype, register.lane_nbytes)
            lines.append(f"{kept[item.var].text} = {register.text};")
        k.hoisted.loops.append(lines)
        stands.append(kept)
    k.hoisted.before = [*body.group_lines, *uniform_lines]
    body.group_lines.clear()
    return made, stands


def has_seams(kernel: Kernel) -> bool:
    """Whether what is read, or done, depends on where in its rows an element is."""
    if kernel.then or kernel.where:
        return True
    return any(
        item.access.jumps or item.access.within
        for item in kernel.body
        if isinstance(item, Load | Index)
    )


def _fixed_items(kernel: Kernel, body: Body) -> list[Item]:
    """The items that are the same in every row, in order."""
    written = [store.value for store in kernel.stores]
    fixed: set[int] = set()
    found: list[Item] = []
    for item in kernel.body:
        if isinstance(item, Load):
            same = not any(item.access.strides[:-1]) and not any(
                body.arguments.shares(item.value, value) for value in written
            )
            if item.position is not None:
                same = same and item.position in fixed
        elif isinstance(item, Index):
            same = not any(item.access.strides[:-1])
        elif isinstance(item, Step):
            same = all(operand in fixed for operand in item.operands)
        else:
            same = isinstance(item, Scalar)
        if same:
            fixed.add(item.var)
            found.append(item)
    return found


def _used_by_others(kernel: Kernel, fixed: list[Item]) -> set[int]:
    """Registers that stores, or items that are not `fixed`, want."""
    known = {item.var for item in fixed}
    used = {store.var for store in kernel.stores}
    for item in kernel.body:
        if item.var in known:
            continue
        if isinstance(item, Step):
            used.update(item.operands)
        elif isinstance(item, Load) and item.position is not None:
            used.add(item.position)
    return used
