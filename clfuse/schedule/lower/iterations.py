"""Iteration spaces and their parts: dimensions that are split, boxes, and what is outside a box."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from clfuse.ir.layout import region_box
from clfuse.schedule.records import Access

from .breakpoints import Box
from .emission import Refines, Straddles


class Lift:
    """An iteration over `shape` whose dimensions are split further, into `extents`."""

    def __init__(self, shape: tuple[int, ...], extents: tuple[int, ...] | None = None) -> None:
        self.shape = shape
        self.extents = shape if extents is None else extents

    def refined(self, finer: Refines) -> Lift:
        """Split so that the axes of another shape of the same size are dimensions, too.

        The products of the last extents, of both shapes, are where dimensions begin; they must
        divide one another, as 24 = 4 x 6 and 24 = 4 x 2 x 3 do, but 4 x 6 and 3 x 8 do not.
        """
        starts = {1}
        for extents in (self.extents, finer.shape):
            product = 1
            for extent in reversed(extents):
                product *= extent
                starts.add(product)
        ordered = sorted(starts, reverse=True)
        parts = []
        for large, small in pairwise(ordered):
            if large % small:
                raise Straddles(finer.node, None, 0)
            parts.append(large // small)
        if tuple(parts) == self.extents:
            raise Straddles(finer.node, None, 0)
        return Lift(self.shape, tuple(parts))

    def access(self, access: Access) -> Access:
        """An access over `shape` as one over `extents`."""
        if self.extents == self.shape:
            return access
        strides = []
        dims = [
            (extent, stride)
            for extent, stride in zip(self.shape, access.strides, strict=True)
            if extent != 1
        ]
        left, stride = dims.pop() if dims else (1, 0)
        for extent in reversed(self.extents):
            if left == 1 and dims:
                left, stride = dims.pop()
            strides.append(stride)
            stride *= extent
            left //= extent
        return Access(access.offset, tuple(reversed(strides)))


def extents_of(box: Box) -> tuple[int, ...]:
    """How many indices a box has in every dimension."""
    return tuple([stop - start for start, stop in box])


def inside(access: Access, box: tuple[tuple[int, int], ...]) -> Access:
    """An access to a whole iteration, as one over a box of it."""
    offset = access.offset
    strides = []
    for (start, stop), stride in zip(box, access.strides, strict=True):
        offset += start * stride
        strides.append(stride if stop - start != 1 else 0)
    return Access(offset, tuple(strides))


def complement(
    shape: tuple[int, ...], region: tuple[int, ...], offset: int, strides: tuple[int, ...]
) -> list[tuple[tuple[int, int], ...]] | None:
    """Boxes of `shape` outside the region that the map covers; None when it is not a box."""
    box = region_box(shape, region, offset, strides)
    if box is None:
        return None
    return list(outside([(start, stop) for start, stop, _, _ in box], shape))


def outside(box: Sequence[tuple[int, int]], shape: Sequence[int]) -> Iterator[Box]:
    """What is left of `shape` without a box in it, as boxes that do not touch."""
    for axis, (start, stop) in enumerate(box):
        for low, high in ((0, start), (stop, shape[axis])):
            if low < high:
                after = [(0, extent) for extent in shape[axis + 1 :]]
                yield (*box[:axis], (low, high), *after)
