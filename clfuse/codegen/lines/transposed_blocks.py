"""Blocks of a map kernel, as many rows as columns, whose column loads are transposed in registers.

    row 0   a[0, i]  a[1, i]  a[2, i]  a[3, i]        from four vectors, one of each column:
    row 1   a[0, i+1]  ...                            a[0, i .. i+3], a[1, i .. i+3], ...
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Final

from clfuse.schedule.records import Kernel, Load

from .body import Body
from .components import components
from .expressions import Register
from .loops import compute

MOST_UNROLLED: Final = 8
"""Rows of a block whose loop is unrolled, so that the turned vectors stay in registers: PoCL's
compiler alone keeps the loop, and them in memory. Blocks of four and eight rows (doubles, floats)
took .6 to .9 of the time on PoCL and as long on Intel's runtime; of 32 (bytes) .6 to 1.4 (EPYC,
Zen 5)."""


def write_block(kernel: Kernel, body: Body, uniform: dict[int, Register]) -> SimpleNamespace:
    """What the template needs of a block.

    uniform: what is the same along a row.

    Returns
    -------
    SimpleNamespace
        `size`, rows and lanes; whether its loop over rows is `unrolled`; the lines `declared`,
        before a block; `loads`, once a block; `row`, in each row ``r`` of it.
    """
    width = kernel.block
    writer = body.writer(width)
    declared, loads = [], []
    for item in kernel.body:
        if not isinstance(item, Load) or not item.turned:
            continue
        kind = writer.in_memory(item.dtype)
        pointer = body.pointer(item.value, item.dtype)
        declared.append(f"{kind} t_{item.var}[{width}];")
        columns = [f"q_{item.var}_{number}" for number in range(width)]
        for number, column in enumerate(columns):
            place = f"{pointer} + {body.place(item.access, number)}"
            loads.append(f"const {kind} {column} = {writer.loaded(item.dtype, place)};")
        for number in range(width):
            lanes = [f"{column}.s{components(item.dtype, number)}" for column in columns]
            loads.append(f"t_{item.var}[{number}] = ({kind})({', '.join(lanes)});")
        body.turned[item.var] = f"t_{item.var}[r]"
    lines, _ = compute(body, kernel, width, uniform)
    body.turned.clear()
    return SimpleNamespace(
        size=width, unrolled=width <= MOST_UNROLLED, declared=declared, loads=loads, row=lines
    )
