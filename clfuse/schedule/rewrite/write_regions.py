"""Exact overlap of the writes to one array: which of them touch the same elements, and when.

Regions are affine maps into the flat C order of one array. All questions about a chain of writes
are answered together, by sorting the elements that the writes touch: no pair of writes is compared.

    a[0] = ...; a[1] = ...; a[0] = ...      times 1, 2, 3
    written before 3 where 3 writes:        1
    a[1] as it was after time 2:            last written at 2, next written never (4)
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from clfuse.ir.layout import reach

if TYPE_CHECKING:
    import numpy.typing as npt

Region = tuple[tuple[int, ...], int, tuple[int, ...]]
"""Shape, offset, strides, in elements of the flat array; strides of extents of 1 do not matter."""

MAX_ELEMENTS: Final = 1 << 22
"""Elements (or blocks of them) that are sorted for one chain: 0.2 s of planning at most."""

MAX_COMPARED: Final = 1 << 12
"""Elements of two regions (or blocks) that are compared, where nothing else tells them apart."""

Dims = list[tuple[int, int]]


@lru_cache(maxsize=4096)
def apart(one: Region, other: Region) -> bool:
    """Whether two regions are known to have no element in common.

    >>> row, column = ((1, 4), 4, (4, 1)), ((3, 1), 1, (4, 1))
    >>> apart(row, ((1, 4), 8, (4, 1))), apart(column, ((3, 1), 2, (4, 1))), apart(row, column)
    (True, True, False)
    """
    if apart_at_a_glance(one, other):
        return True
    owners, elements = elements_of([one, other], MAX_COMPARED)
    if owners is None or elements is None:
        return False
    return not bool(np.isin(elements[owners == 0], elements[owners == 1]).any())


def apart_at_a_glance(one: Region, other: Region) -> bool:
    """What `apart` knows without looking at elements."""
    if 0 in one[0] or 0 in other[0]:
        return True
    (low, high), (first, last) = reach(*one), reach(*other)
    if high < first or last < low:
        return True
    steps = [
        stride
        for shape, _, strides in (one, other)
        for extent, stride in zip(shape, strides, strict=True)
        if extent > 1
    ]
    return bool((first - low) % (math.gcd(*steps) or 1))


@lru_cache(maxsize=4096)
def elements_at_least(region: Region) -> int:
    """A lower bound of the different elements of a region; exact unless strides are interleaved.

    >>> elements_at_least(((2, 3), 5, (4, 1))), elements_at_least(((2, 3), 5, (0, -1)))
    (6, 3)
    """
    shape, _, strides = region
    if 0 in shape:
        return 0
    count = 1
    within = 0  # how far the last element of the dims so far lies from the first
    for stride, extent in sorted(zip(map(abs, strides), shape, strict=True)):
        if stride > within:
            count *= extent
            within += stride * (extent - 1)
    return count


class History:
    """Writes in order of time, from 1 on, and reads of what they leave.

    known (bool): False where there are too many elements to look at; nothing else is set then.
    before (int64 array, one entry a write): the latest earlier write to any of its elements, 0 if
        there is none.
    last, following (int64 arrays, one entry a read): the latest write up to its time, and the first
        one after it, to any of its elements; 0 and the number of writes plus 1 where there is none.
    """

    def __init__(self, writes: list[Region], reads: list[tuple[Region, int]]) -> None:
        regions = writes + [region for region, _ in reads]
        owners, elements = elements_of(regions)
        self.known = owners is not None and elements is not None
        if owners is None or elements is None:
            return
        count = len(writes)
        times = np.array([*range(1, count + 1), *[time for _, time in reads]], np.int64)
        span = count + 2
        is_write = owners < count
        written, writers = elements[is_write], owners[is_write]
        # One number for (element, time): sorted, writes to one element stand in order of time.
        keys = written * span + times[writers]
        order = np.argsort(keys)
        keys, writers = keys[order], writers[order]
        same = keys[1:] // span == keys[:-1] // span
        self.before = np.zeros(count, np.int64)
        np.maximum.at(self.before, writers[1:][same], keys[:-1][same] % span)
        readers = owners[~is_write] - count
        wanted = elements[~is_write] * span + times[owners[~is_write]]
        place = np.searchsorted(keys, wanted, "right")
        padded = np.concatenate([[-1], keys, [-1]])
        self.last = np.zeros(len(reads), np.int64)
        self.following = np.full(len(reads), count + 1, np.int64)
        earlier, later = padded[place], padded[place + 1]
        hit = (earlier >= 0) & (earlier // span == wanted // span)
        np.maximum.at(self.last, readers[hit], earlier[hit] % span)
        hit = (later >= 0) & (later // span == wanted // span)
        np.minimum.at(self.following, readers[hit], later[hit] % span)


def elements_of(
    regions: list[Region], most: int = MAX_ELEMENTS
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | tuple[None, None]:
    """(number of the region, element) of everything in `regions`, in blocks of equal fate; None
    where there are more than `most`."""
    maps: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    dims_of: list[Dims] = []
    shifts: list[int] = []
    classes = np.array(
        [maps.setdefault((shape, strides), len(maps)) for shape, _, strides in regions], np.int64
    )
    for shape, strides in maps:
        shift, dims = normal_form(shape, strides)
        shifts.append(shift)
        dims_of.append(dims)
    offsets = np.array([offset for _, offset, _ in regions], np.int64)
    offsets += np.array(shifts, np.int64)[classes]
    offsets -= offsets.min()
    _drop_common(dims_of, classes, offsets)
    divisor = _divisor(dims_of, offsets)
    counts = np.bincount(classes, minlength=len(maps)).tolist()
    relative = [_walk(dims, divisor) for dims in dims_of]
    total = sum(
        count * math.prod([extent for extent, _ in dims])
        for count, dims in zip(counts, relative, strict=True)
    )
    if total > most:
        return None, None
    owners = []
    elements = []
    for kind, dims in enumerate(relative):
        (members,) = np.nonzero(classes == kind)
        within = np.zeros(1, np.int64)
        for extent, stride in dims:
            within = (within[:, None] + np.arange(extent) * stride).ravel()
        owners.append(np.repeat(members, len(within)))
        elements.append((offsets[members, None] // divisor + within).ravel())
    return np.concatenate(owners), np.concatenate(elements)


def normal_form(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, Dims]:
    """The same set of elements with positive strides, largest first, joined where they run on.

    Returns how far its first element lies from that of the region, and (extent, stride) a dim.
    """
    shift = 0
    dims = []
    for extent, stride in zip(shape, strides, strict=True):
        if extent != 1 and stride:
            if stride < 0:
                shift += stride * (extent - 1)
            dims.append((extent, abs(stride)))
    dims.sort(key=lambda dim: -dim[1])
    joined: Dims = []
    for extent, stride in dims:
        if joined and joined[-1][1] == extent * stride:
            joined[-1] = (joined[-1][0] * extent, stride)
        else:
            joined.append((extent, stride))
    return shift, joined


def _drop_common(
    dims_of: list[Dims], classes: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64]
) -> None:
    """Leave out a dim that all regions have alike, as the rows are where columns are written.

    Two regions meet in it only in the same index, where all else stays within one of its steps.
    """
    for dim in list(dims_of[0]):
        if not all(dim in dims for dims in dims_of):
            continue
        reach = np.array(
            [sum((n - 1) * step for n, step in dims if (n, step) != dim) for dims in dims_of]
        )
        if (offsets + reach[classes]).max() < dim[1] and all(
            dims.count(dim) == 1 for dims in dims_of
        ):
            for dims in dims_of:
                dims.remove(dim)


def _divisor(dims_of: list[Dims], offsets: npt.NDArray[np.int64]) -> int:
    """The largest size of aligned blocks that every region has whole or not at all."""
    divisor = int(np.gcd.reduce(offsets))
    for dims in dims_of:
        *outer, inner = dims or [(1, 1)]
        divisor = math.gcd(divisor, inner[0] if inner[1] == 1 else 1, *[step for _, step in outer])
    return divisor or 1


def _walk(dims: Dims, divisor: int) -> Dims:
    """`dims` in blocks of `divisor` elements."""
    if divisor == 1:
        return dims
    *outer, (extent, _) = dims
    return [*[(n, step // divisor) for n, step in outer], (extent // divisor, 1)]
