"""Minima and maxima of floats that find NaN in a mask beside the comparison, along rows.

    v0_0 = r3 > v0_0 ? r3 : v0_0;     one instruction, which drops a NaN
    u0_0 |= r3 != r3;                 two that wait for nothing: in the end, NaN is the result

To keep the NaN in the value takes as many instructions, but each has to wait for the one before:
rows in the first cache take 1.3 to 1.5 times as long with four accumulators, 4 times with two.
"""

from __future__ import annotations

from typing import Final

from clfuse.dtypes import mask_type
from clfuse.schedule.records import Accumulator, Kernel

from .expressions import Expressions, vector
from .folds import Fold

__all__ = ["WatchedFold", "is_watched"]

_BETTER: Final = {"minimum": "<", "maximum": ">"}


def is_watched(kernel: Kernel, accumulator: Accumulator) -> bool:
    """Whether a phase folds so: on CPUs, in vectors along its rows."""
    return (
        accumulator.name in _BETTER
        and accumulator.dtype.kind == "f"
        and kernel.schedule == "cpu"
        and kernel.width > 1
        and kernel.vector >= len(kernel.extents) - kernel.reduced
    )


def watch(value: str) -> str:
    """The mask beside a vector of values: ``u0_1`` of ``v0_1``, ``U0[r]`` of ``V0[r]``."""
    return f"{'u' if value[0] == 'v' else 'U'}{value[1:]}"


class WatchedFold(Fold):
    """A fold whose vectors of values never hold NaN; masks beside them know of it."""

    def masks(self, writer: Expressions) -> str:
        """The type of the masks."""
        return vector(mask_type(self.lane_nbytes), writer.width)

    def _chosen(self, value: str, item: str) -> str:
        return f"({item} {_BETTER[self.accumulator.name]} {value} ? {item} : {value})"

    def start(self, writer: Expressions, value: str, position: str) -> list[str]:
        """As `Fold.start`; of vectors the mask, too."""
        lines = super().start(writer, value, position)
        if writer.width > 1:
            kind = self.masks(writer)
            lines.append(f"{kind} {watch(value)} = ({kind})(0);")
        return lines

    def fold(
        self, writer: Expressions, value: str, position: str, item: str, item_position: str
    ) -> list[str]:
        """As `Fold.fold`, into value and mask."""
        if writer.width == 1:
            return super().fold(writer, value, position, item, item_position)
        return [f"{value} = {self._chosen(value, item)};", f"{watch(value)} |= {item} != {item};"]

    def join_copies(self, writer: Expressions, copies: int) -> list[str]:
        """Fold all vectors and their masks into the first."""
        first, lines = f"v{self.number}_0", []
        for copy in range(1, copies):
            other = f"v{self.number}_{copy}"
            lines.append(f"{first} = {self._chosen(first, other)};")
            lines.append(f"{watch(first)} |= {watch(other)};")
        return lines

    def renamed(self, writer: Expressions, value: str) -> list[str]:
        """As `Fold.renamed`, the mask, too."""
        lines = super().renamed(writer, value)
        return [*lines, f"const {self.masks(writer)} u{self.number}_0 = {watch(value)};"]

    def across_lanes(self, writers: dict[int, Expressions], width: int) -> list[str]:
        """As `Fold.across_lanes`; NaN where there was one."""
        value, seen, lines = f"v{self.number}_0", watch(f"v{self.number}_0"), []
        while width > 1:
            width //= 2
            low, high = ("x", "y") if width == 1 else ("lo", "hi")
            chosen = self._chosen(f"{value}.{low}", f"{value}.{high}")
            value = f"h{self.number}_{width}"
            lines.append(f"const {self.type_at(writers[width])} {value} = {chosen};")
        kind = self.type_at(writers[1])
        lines.append(f"{kind} l{self.number} = any({seen}) ? ({kind})(NAN) : {value};")
        return lines
