"""Along which dimension the vectors of a kernel lie.

Where the dimensions are long, it is the one along which most is read and written one after the
other. Where some are shorter than a vector, it is counted what each takes:

`points * scale[:, None]` of a million points has rows of three elements, less than a vector. Along
the rows vectors are narrow; down the columns they are whole, but each element is loaded and stored
by itself, and all of the memory comes once for every column: 2,000,000 doubles in rows of two to
seven take 2.2 to 5.9 ms down the columns, .5 to .8 along the rows. An exponential of each element
makes up for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clfuse.schedule.cost import weight_of
from clfuse.schedule.records import Access, Index, Kernel, Load
from clfuse.target.traits import DeviceTraits

__all__ = ["PLACED", "accesses", "best_along", "suits_vectors"]

PLACED: Final = (Load, Index)
"""Items with an access; a tuple, because to write ``Load | Index`` makes a type at every look."""

STRIDED_NS: Final = 1.1
"""An element that is loaded or stored by itself."""

SCALAR_NS: Final = 1.0
"""An operation of weight 1 on one lane."""

ROW_NS: Final = 1.0
"""The loop around a row."""


def accesses(kernel: Kernel) -> Iterator[Access]:
    """Where the loops of all phases read and write."""
    for phase in kernel.phases:
        for item in phase.body:
            if isinstance(item, PLACED):
                yield item.access
        for store in phase.stores:
            yield store.access


def suits_vectors(kernel: Kernel, dim: int, lanes: int) -> float:
    """How well the loop's memory accesses run along `dim`; higher is better."""
    if not kernel.extents:
        return 0.0
    score = 0.0
    for access in accesses(kernel):
        stride = abs(access.strides[dim])
        score += 1.0 if stride == 1 else 0.5 if stride == 0 else -1.0
    return score - (4.0 if kernel.extents[dim] < lanes else 0.0)


def best_along(kernel: Kernel, traits: DeviceTraits, lanes: int) -> int:
    """The dimension of a map that vectors of so many lanes lie along."""
    dims = range(len(kernel.extents))
    if traits.schedule == "gpu" or len(dims) == 1 or min(kernel.extents) >= lanes:
        return max(dims, key=lambda dim: (suits_vectors(kernel, dim, lanes), dim))
    return min(dims, key=lambda dim: (_cost_along(kernel, dim, lanes), -dim))


def _cost_along(kernel: Kernel, dim: int, lanes: int) -> float:
    """Nanoseconds of an element with vectors along `dim`, but for what all dimensions take."""
    extent = kernel.extents[dim]
    width = min(lanes, 1 << (extent.bit_length() - 1))
    strided = sum([abs(access.strides[dim]) > 1 for access in accesses(kernel)])
    return SCALAR_NS * weight_of(kernel.body) / width + ROW_NS / extent + STRIDED_NS * strided
