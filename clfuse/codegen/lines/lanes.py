"""The two loops over a row of columns on a CPU: whole vectors, and the remaining single columns.

Where a body begins or ends within a vector, single columns are lanes of the vectors' arrays, each
taken out for its row, and put back:

    double q0y = ((__private double *)q0)[v];  ...  ((__private double *)q0)[v] = q0y;
"""

from __future__ import annotations

import re

from clfuse.schedule.records import Kernel

from .body import Body
from .expressions import Register

__all__ = ["Lanes", "both"]


class Lanes:
    """One of the two ways through a row: whole vectors, or the single columns beside them."""

    def __init__(self, kernel: Kernel, body: Body, wide: bool) -> None:
        self.width = kernel.width if wide else 1
        self.writer = body.writer(self.width)
        self.mark = "" if wide else "y"
        self.length = kernel.held if wide or kernel.width == 1 else kernel.width
        self.takes_out = bool(kernel.where) and not wide and kernel.width > 1
        """Whether single columns are lanes of the vectors' arrays."""
        self.arrays: list[str] = []
        self.carried: dict[int, Register] = {}
        self._lanes: dict[str, tuple[str, str]] = {}

    def array(self, name: str, kind: str, mask: str = "") -> str:
        """Declare an array; the text of its element. `mask` is the type of a truth's lanes."""
        own = f"{name}{self.mark}"
        if not self.takes_out:
            self.arrays.append(f"{kind} {own}[{self.length}];")
            return f"{own}[v]"
        lane = f"((__private {mask or kind} *){name})[v]"
        taken, back = (f"{lane} != 0", f"-({own} != 0)") if mask else (lane, own)
        self._lanes[own] = f"{kind} {own} = {taken};", f"{lane} = {back};"
        return own

    def around(self, lines: list[str]) -> list[str]:
        """Lines for a column, with what takes the lanes of which they speak out, and puts them
        back."""
        spoken = set(re.findall(r"\w+", "\n".join(lines))) if self._lanes else set()
        used = [pair for name, pair in self._lanes.items() if name in spoken]
        return [*[take for take, _ in used], *lines, *[back for _, back in used]]


def both(kernel: Kernel, body: Body) -> list[Lanes]:
    """The ways through a row: lanes of one element need only the second, even strips the first."""
    if kernel.even:
        return [Lanes(kernel, body, True)]
    single = Lanes(kernel, body, False)
    return [Lanes(kernel, body, True), single] if kernel.width > 1 else [single]
