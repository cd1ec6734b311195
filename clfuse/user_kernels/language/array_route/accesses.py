"""Dependence analysis: the bytes that iterations touch, and whether iterations conflict.

Iterations run in any order. So a kernel means something only if no iteration reads or writes what
another one writes. Then all iterations may take one statement before any takes the next, as array
operations do. `conflict` proves it, or names the two accesses for which it cannot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from clfuse.dataclass import frozen

Domain = tuple[tuple[int, int], ...]
"""Of every index, from where to before which it runs."""


@frozen
class Affine:
    """An integer of the form ``constant + sum(coefficient * index)``."""

    constant: int
    coefficients: tuple[int, ...] = ()

    def __add__(self, other: Affine) -> Affine:
        return Affine(self.constant + other.constant, _added(self, other, 1))

    def __sub__(self, other: Affine) -> Affine:
        return Affine(self.constant - other.constant, _added(self, other, -1))

    def times(self, factor: int) -> Affine:
        """The integer multiplied."""
        return Affine(self.constant * factor, _packed([factor * c for c in self.coefficients]))

    def coefficient(self, axis: int) -> int:
        """Of one index."""
        return self.coefficients[axis] if axis < len(self.coefficients) else 0

    def bounds(self, domain: Domain) -> tuple[int, int]:
        """Smallest and largest value over a domain that is not empty."""
        low = high = self.constant
        for axis, factor in enumerate(self.coefficients):
            start, stop = domain[axis]
            ends = factor * start, factor * (stop - 1)
            low += min(ends)
            high += max(ends)
        return low, high


def _added(one: Affine, other: Affine, sign: int) -> tuple[int, ...]:
    rank = max(len(one.coefficients), len(other.coefficients))
    return _packed([one.coefficient(axis) + sign * other.coefficient(axis) for axis in range(rank)])


def _packed(coefficients: list[int]) -> tuple[int, ...]:
    """Without zeros at the end, so that equal integers are equal."""
    while coefficients and not coefficients[-1]:
        coefficients.pop()
    return tuple(coefficients)


def is_injective(steps: Sequence[int], extents: Sequence[int], unit: int = 1) -> bool:
    """Whether ``sum(step * index)`` names another place for every index; elements take `unit`.

    >>> is_injective((6, 1), (4, 6)), is_injective((5, 1), (4, 6)), is_injective((0, 1), (2, 3))
    (True, False, False)
    """
    reach = unit
    walks = [(abs(s), n) for s, n in zip(steps, extents, strict=True) if n > 1]
    for step, extent in sorted(walks):
        if step < reach:
            return False
        reach += step * (extent - 1)
    return True


@frozen
class Access:
    """One access of one statement.

    storage: which bytes: arrays that share them have the same number.
    place: byte in the storage; None where the indices are computed from data.
    nbytes: of an element.
    domain: for which indices it happens, at most.
    indices: one an axis of the array; empty where they are computed from data.
    layout: offset, strides and shape of the array, in elements.
    text: for messages, with the line.
    """

    storage: int
    array: str
    writes: bool
    place: Affine | None
    nbytes: int
    domain: Domain
    indices: tuple[Affine, ...]
    layout: tuple[int, tuple[int, ...], tuple[int, ...]]
    text: str

    def span(self) -> tuple[int, int]:
        """First byte, and the one after the last."""
        if self.place is not None:
            low, high = self.place.bounds(self.domain)
            return low, high + self.nbytes
        offset, strides, shape = self.layout
        low = high = offset
        for step, extent in zip(strides, shape, strict=True):
            low += min(0, step * (extent - 1))
            high += max(0, step * (extent - 1))
        return low * self.nbytes, (high + 1) * self.nbytes


    def row(self) -> tuple[int, int, int]:
        """Bytes from one value of the first index to the next; first byte at its first value, and
        the one after the last."""
        if self.place is not None:
            rest = Affine(self.place.constant, (0, *self.place.coefficients[1:]))
            step = self.place.coefficient(0)
            low, high = rest.bounds(self.domain)
            first = step * self.domain[0][0]
            return step, low + first, high + first + self.nbytes
        _, strides, shape = self.layout
        row = replace(self, layout=(self.layout[0], strides[1:], shape[1:]))
        return strides[0] * self.nbytes, *row.span()


def _extents(domain: Domain) -> list[int]:
    return [stop - start for start, stop in domain]


def _steps(place: Affine, domain: Domain) -> list[int]:
    return [place.coefficient(axis) for axis in range(len(domain))]


def _same_element(one: Access, other: Access) -> bool:
    """Whether every iteration touches one element with both, and no other iteration touches it."""
    if one.place is None or one.place != other.place or one.nbytes != other.nbytes:
        return False
    if len(one.domain) != len(other.domain):
        return False
    hull = tuple([
        (min(a[0], b[0]), max(a[1], b[1])) for a, b in zip(one.domain, other.domain, strict=True)
    ])
    return is_injective(_steps(one.place, hull), _extents(hull), one.nbytes)


def _apart(one: Access, other: Access) -> bool:
    """Whether the two touch no common byte, in any two iterations."""
    (low, high), (other_low, other_high) = one.span(), other.span()
    if high <= other_low or other_high <= low:
        return True
    if one.place is None or other.place is None:
        return False
    if _different_rows(one, other):
        return True
    # All distances between them are equal modulo the largest common divisor of their steps.
    steps, starts = [], []
    for access in (one, other):
        assert access.place is not None
        start = access.place.constant
        for axis, (first, stop) in enumerate(access.domain):
            step = access.place.coefficient(axis)
            start += step * first
            if stop - first > 1:
                steps.append(step)
        starts.append(start)
    divisor = math.gcd(*steps)
    if not divisor:
        return False  # single elements that overlap: the spans have said so
    distance = (starts[0] - starts[1]) % divisor
    return distance >= other.nbytes and divisor - distance >= one.nbytes


def _different_rows(one: Access, other: Access) -> bool:
    """Whether an axis of one array shows that their elements are different ones."""
    _, strides, shape = one.layout
    if one.layout != other.layout or one.nbytes != other.nbytes:
        return False  # layouts are in elements
    if not is_injective(strides, shape):
        return False
    for mine, theirs in zip(one.indices, other.indices, strict=True):
        (low, high), (other_low, other_high) = mine.bounds(one.domain), theirs.bounds(other.domain)
        if high < other_low or other_high < low:
            return True
    return False


_PAIRS: Final = 20_000
"""Pairs that are looked at; a kernel with more accesses is not taken apart."""


def conflict(accesses: Sequence[Access]) -> str | None:
    """Why iterations may depend on each other; None where it is proven that they do not."""
    writes = [access for access in accesses if access.writes]
    for access in writes:
        if access.place is None:
            return f"{access.text} is written at a place computed from data"
        steps = _steps(access.place, access.domain)
        if not is_injective(steps, _extents(access.domain), access.nbytes):
            return f"several iterations write to {access.text}"
    if len(writes) * len(accesses) > _PAIRS:
        return "it has too many accesses to compare"
    for write in writes:
        for other in accesses:
            if other is write or other.storage != write.storage:
                continue
            if not _same_element(write, other) and not _apart(write, other):
                verb = "writes" if other.writes else "reads"
                return f"an iteration may write {write.text} where another {verb} {other.text}"
    return None


def crossing(earlier: Sequence[Access], later: Sequence[Access], in_step: bool) -> bool:
    """Whether it matters that every round of `earlier` comes before all rounds of `later`.

    The first index is the number of the round; `in_step` where the same number means the same round
    in both.
    """
    if len(earlier) * len(later) > _PAIRS:
        return True
    for one in earlier:
        for other in later:
            if one.storage != other.storage or not (one.writes or other.writes):
                continue
            if not _apart(one, other) and not (in_step and _in_own_rows(one, other)):
                return True
    return False


def _in_own_rows(one: Access, other: Access) -> bool:
    """Whether the two touch common bytes only in rounds of the same number."""
    if one.layout == other.layout and one.nbytes == other.nbytes:
        _, strides, shape = one.layout
        if is_injective(strides, shape):
            return True
    (step, low, high), (other_step, other_low, other_high) = one.row(), other.row()
    reach = max(high, other_high) - min(low, other_low)
    return step == other_step and abs(step) >= reach
