"""Strided layouts as pure functions: views of C-ordered storage, in elements.

A layout is ``(shape, offset, strides)`` over the flat C order of some storage, strides in elements,
as NumPy's are in bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache


@lru_cache(maxsize=4096)
def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """C-order strides of `shape`, in elements; an extent of 1 has stride 0.

    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    >>> contiguous_strides((2, 1, 4))
    (4, 0, 1)
    """
    strides = []
    step = 1
    for extent in reversed(shape):
        strides.append(step if extent != 1 else 0)
        step *= max(extent, 1)
    return tuple(reversed(strides))


@lru_cache(maxsize=4096)
def tail(extents: tuple[int, ...]) -> tuple[int, ...]:
    """All but the first, one object for equal ones: rows of an array share shape and strides."""
    return extents[1:]


@lru_cache(maxsize=4096)
def without_unit_strides(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """`strides` with 0 where the extent is 1, so that equal regions have equal strides.

    >>> without_unit_strides((1, 4), (7, 1))
    (0, 1)
    """
    return tuple(
        [0 if extent == 1 else stride for extent, stride in zip(shape, strides, strict=True)]
    )


@lru_cache(maxsize=8192)
def delinearize(
    shape: tuple[int, ...], extents: tuple[int, ...], offset: int, strides: tuple[int, ...]
) -> tuple[tuple[int, tuple[int, ...]], ...] | None:
    """Split an affine map into C order of `shape` into one affine map an axis.

    ``offset + sum(i * strides)`` for ``0 <= i < extents`` becomes, for every axis of `shape`,
    ``start + sum(i * coefficients)``; None when no such split stays within the axes (a reshape that
    merges axes which were not adjacent in memory).

    >>> delinearize((4, 6), (3, 2), 7, (6, 2))
    ((1, (1, 0)), (1, (0, 2)))
    >>> delinearize((4, 6), (24,), 0, (1,)) is None
    True
    """
    if math.prod(extents) == 0:
        return tuple((0, (0,) * len(extents)) for _ in shape)
    steps = contiguous_strides(shape)
    starts = []
    rest = offset
    for step in steps:
        index = rest // step if step else 0
        starts.append(index)
        rest -= index * step
    if rest:
        return None
    coefficients = [[0] * len(extents) for _ in shape]
    for dim, (extent, stride) in enumerate(zip(extents, strides, strict=True)):
        if extent == 1 or stride == 0:
            continue
        rest = abs(stride)
        sign = 1 if stride > 0 else -1
        # A stride may move along several axes at once (a diagonal), largest axis first.
        for axis, step in enumerate(steps):
            if step and rest >= step:
                count = rest // step
                # Prefer the axis that can carry the whole walk: 24 of (4, 6) by 2 is axis 1 only
                # while it stays inside; a remainder goes on to the axes further right.
                coefficients[axis][dim] += sign * count
                rest -= count * step
        if rest:
            return None
    for axis, extent in enumerate(shape):
        low = high = starts[axis]
        for count, coefficient in zip(extents, coefficients[axis], strict=True):
            if coefficient > 0:
                high += coefficient * (count - 1)
            else:
                low += coefficient * (count - 1)
        if low < 0 or high >= extent:
            return None
    return tuple((start, tuple(row)) for start, row in zip(starts, coefficients, strict=True))


Side = tuple[int, int, int | None, int]
"""One axis of a box: first index, end, the dimension that runs along it (None: one index), and in
which direction."""


def region_box(
    shape: tuple[int, ...], region: tuple[int, ...], offset: int, strides: tuple[int, ...]
) -> tuple[Side, ...] | None:
    """The box of `shape` that a map of `region` into its C order covers; None where it is none.

    >>> region_box((4, 6), (2, 6), 6, (6, 1))  # rows 1 and 2
    ((1, 3, 0, 1), (0, 6, 1, 1))
    >>> region_box((4, 6), (4,), 5, (6,))  # the last column
    ((0, 4, 0, 1), (5, 6, None, 1))
    >>> region_box((6,), (3,), 0, (2,)) is None
    True
    """
    axes = delinearize(shape, region, offset, strides)
    if axes is None:
        return None
    box: list[Side] = []
    used: set[int] = set()
    for start, coefficients in axes:
        moving = [dim for dim, coefficient in enumerate(coefficients) if coefficient]
        if not moving:
            box.append((start, start + 1, None, 1))
            continue
        (dim, *more) = moving
        step = coefficients[dim]
        if more or dim in used or abs(step) != 1:
            return None
        used.add(dim)
        first = start if step == 1 else start - region[dim] + 1
        box.append((first, first + region[dim], dim, step))
    return tuple(box)


def linearize(
    shape: tuple[int, ...], axes: Sequence[tuple[int, tuple[int, ...]]], rank: int
) -> tuple[int, tuple[int, ...]]:
    """The inverse of `delinearize`: one affine map an axis of `shape` as one into its C order."""
    offset = 0
    strides = [0] * rank
    for (start, coefficients), step in zip(axes, contiguous_strides(shape), strict=True):
        offset += start * step
        for dim, coefficient in enumerate(coefficients):
            strides[dim] += coefficient * step
    return offset, tuple(strides)


def reach(shape: tuple[int, ...], offset: int, strides: tuple[int, ...]) -> tuple[int, int]:
    """The first and the last element of a region that is not empty.

    >>> reach((2, 3), 10, (-4, 1))
    (6, 12)
    """
    low = high = offset
    for extent, stride in zip(shape, strides, strict=True):
        if stride > 0:
            high += (extent - 1) * stride
        else:
            low += (extent - 1) * stride
    return low, high


def is_injective(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether every stride is longer than what the shorter ones reach: no element twice.

    >>> is_injective((2, 3), (-3, 1)), is_injective((5, 3), (1, 1))
    (True, False)
    """
    reach = 0
    for stride, extent in sorted(zip(map(abs, strides), shape, strict=True)):
        if extent > 1:
            if stride <= reach:
                return False
            reach += stride * (extent - 1)
    return True
