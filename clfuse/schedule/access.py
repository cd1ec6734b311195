"""Which elements of a value the iterations of a kernel touch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Access(NamedTuple):
    """Which element an iteration touches: ``offset + sum(index * stride)``, in elements.

    `jumps` (dimension, first index, elements) are added from that index of the dimension on, as
    where a rolled array begins again. `within` (dimension, first index, end) are the only indices
    for which there is such an element; elsewhere nothing is touched. A tuple, because making and
    hashing one is what planning does most.
    """

    offset: int
    strides: tuple[int, ...]
    jumps: tuple[tuple[int, int, int], ...] = ()
    within: tuple[tuple[int, int, int], ...] = ()

    def over(self, dims: Sequence[int]) -> Access:
        """The same where dimension k of the iteration is what dimension ``dims[k]`` was."""
        strides = tuple([self.strides[dim] for dim in dims])
        if not self.jumps and not self.within:
            return Access(self.offset, strides)
        place = {dim: position for position, dim in enumerate(dims)}
        return Access(
            self.offset,
            strides,
            tuple([(place[dim], first, by) for dim, first, by in self.jumps]),
            tuple([(place[dim], first, end) for dim, first, end in self.within]),
        )

    @property
    def seams(self) -> list[tuple[int, int]]:
        """(dimension, index) of everything that changes from an index on; ends included."""
        found = [(dim, first) for dim, first, _ in self.jumps]
        for dim, first, end in self.within:
            found += [(dim, first), (dim, end)]
        return found
