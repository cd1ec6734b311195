"""Loop unrolling by two: the lines of a loop for two vectors in turn.

    const double8 r3 = (r1 * r1);      the vector at ``j``
    const double8 u3 = (u1 * u1);      the one behind it, at ``j_``
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from clfuse.schedule.records import Kernel

from .body import Body
from .expressions import Register
from .loops import asked_once

__all__ = ["pair"]

NAMES: Final = (("j", "r"), ("j_", "u"))
"""Each vector's index and the first letter of its registers."""


def pair(
    body: Body, kernel: Kernel, known: dict[int, Register], made: Collection[int]
) -> tuple[list[str], tuple[dict[int, Register], dict[int, Register]]]:
    """As `loops.compute` at the kernel's width, for the vectors at ``j`` and at ``j_``; the lines
    of both in turn, and the registers of each.

    What `known` holds of whole rows lies in arrays, at ``[v]`` for the first vector.
    """
    _, inside = body.split(kernel.body)
    behind = {
        var: replace(register, text=register.text.replace("[v]", "[v + 1]"))
        for var, register in known.items()
    }
    registers = (dict(known), behind)
    lines = [f"const {body.arguments.index_type} j_ = j + {kernel.width};"]
    try:
        items = [item for item in inside if item.var not in made]
        at = 0
        for first, end, rounds in [*body.stretches(items), (len(items), len(items), None)]:
            for item in items[at:first]:
                for copy, (body.index, letter) in enumerate(NAMES):
                    one = asked_once([item], kernel.width, copy)
                    lines += body.lines(one, kernel.width, registers[copy], letter)
            if rounds is not None:
                copies = [(name[1], own) for name, own in zip(NAMES, registers, strict=True)]
                lines += body.loop(rounds, items[first:end], kernel.width, copies)
            at = end
        for (body.index, _), own in zip(NAMES, registers, strict=True):
            lines += body.stores(kernel.stores, kernel.width, own)
    finally:
        body.index = NAMES[0][0]
    return lines, registers
