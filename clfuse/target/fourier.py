"""Fourier transforms: which devices make them by kernels, and how a length is divided.

A transform whose elements fit a work-group's local memory twice is one launch. A longer one of
small primes goes by several launches, a factor of the length each. Any other length is a
convolution with a chirp, of a padded length (Bluestein,
https://doi.org/10.1109/TAU.1970.1162132).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np

from clfuse.dataclass import frozen
from clfuse.target.traits import DeviceTraits

PRIMES: Final = (2, 3, 5, 7, 11, 13)
"""Primes that there are butterflies for: larger ones hold too many numbers in registers."""

ROWS_OF_STEPS: Final = 4
"""Transforms of a group at least, where several launches make one: neighbours are 32 bytes and more
side by side, which is what a GPU's memory moves at once."""

MOST_GROUP: Final = 256
"""Work-items of a group: enough to load from memory what the others wait for."""

ITEM_POINTS: Final = 4
"""Points of a work-item: those of a butterfly, about."""

GROUP_POINTS: Final = 1024
"""Points of a group, where there are enough transforms."""

MOST_POINTS: Final = 1 << 30
"""Points of a transform at most: positions are 32 bits wide."""

MOST_BY_CHIRP: Final = 1 << 22
"""Points of a transform by convolution at most: the chirp's own is made on the host, and kept."""


@frozen
class Division:
    """How a transform of `points` points is made.

    `length` is the length that `factors` have as their product: `points`, or that of a convolution.
    Each factor is a launch.
    """

    points: int
    length: int
    factors: tuple[int, ...]

    @property
    def by_chirp(self) -> bool:
        """Whether it is a convolution."""
        return self.length != self.points


def transforms(traits: DeviceTraits, dtype: np.dtype, points: int) -> bool:
    """Whether kernels of this device transform `points` points to complex or real `dtype`.

    >>> from dataclasses import replace
    >>> gpu = DeviceTraits(schedule="gpu", fp64=False)
    >>> transforms(gpu, np.dtype("F"), 1000), transforms(gpu, np.dtype("D"), 1000)
    (True, False)
    """
    if traits.schedule != "gpu" or dtype.char not in "efdFD":
        return False
    if dtype.char in "dD" and not traits.fp64:
        return False
    return divided(traits, complex_of(dtype), points) is not None


def complex_of(dtype: np.dtype) -> np.dtype:
    """The complex dtype of a precision."""
    return np.dtype("F" if dtype.char in "efF" else "D")


def divided(traits: DeviceTraits, dtype: np.dtype, points: int) -> Division | None:
    """How this device transforms `points` points of complex `dtype`; None where the host does.

    >>> from clfuse.target.traits import with_schedule
    >>> h100 = DeviceTraits(schedule="gpu", local_nbytes=48 << 10)
    >>> divided(h100, np.dtype("F"), 1024)
    Division(points=1024, length=1024, factors=(1024,))
    >>> divided(h100, np.dtype("F"), 1 << 16).factors
    (256, 256)
    >>> divided(h100, np.dtype("F"), 1009)
    Division(points=1009, length=2048, factors=(2048,))
    """
    return _divided(traits.local_nbytes // (2 * dtype.itemsize), points)


@lru_cache(maxsize=1024)
def _divided(room: int, points: int) -> Division | None:
    """`room` is how many elements fit into a group's local memory twice."""
    if not 0 < points < MOST_POINTS:
        return None
    length = points
    if not _is_smooth(points):
        if points > MOST_BY_CHIRP:
            return None
        length = padded(2 * points - 1)
    factors = (length,) if length <= room else _factors(length, room // ROWS_OF_STEPS - 1)
    return None if factors is None else Division(points, length, factors)


def _rest(points: int) -> int:
    """What is left of a length without its small primes."""
    for prime in PRIMES:
        while points % prime == 0:
            points //= prime
    return points


def _is_smooth(points: int) -> bool:
    return _rest(points) == 1


def padded(least: int) -> int:
    """The smallest length of a convolution: a power of two, or three, five or nine such.

    >>> padded(1000), padded(1100)
    (1024, 1152)
    """
    powers = [(odd, -(-least // odd)) for odd in (1, 3, 5, 9)]
    return min([odd << max(0, (count - 1).bit_length()) for odd, count in powers])


def _factors(length: int, most: int) -> tuple[int, ...] | None:
    """Few factors of a length, of at most `most` and about equal, the largest first."""
    if most < max(PRIMES):
        return None
    for count in range(2, length.bit_length() + 1):
        found = _split(length, count, most)
        if found is not None:
            return tuple(sorted(found, reverse=True))
    return None


def _split(length: int, count: int, most: int) -> list[int] | None:
    if count == 1:
        return [length] if length <= most else None
    if length > most**count:
        return None
    even = length ** (1 / count)
    divisors = [each for each in range(1, min(most, length) + 1) if length % each == 0]
    for each in sorted(divisors, key=lambda divisor: abs(math.log(divisor / even))):
        rest = _split(length // each, count - 1, most)
        if rest is not None:
            return [each, *rest]
    return None


def radices(length: int) -> tuple[int, ...]:
    """The butterflies of a transform in local memory: few rounds, of at most 13 points.

    >>> radices(1024), radices(360), radices(1)
    ((8, 8, 4, 4), (8, 5, 3, 3), ())
    """
    found = []
    for prime in reversed(PRIMES[1:]):
        while length % prime == 0:
            found.append(prime)
            length //= prime
    twos = length.bit_length() - 1
    # 16 is twice 4, not 8 and 2: of the same number of rounds the largest should be small.
    eights = twos // 3 - (1 if twos % 3 == 1 and twos > 1 else 0)
    left = twos - 3 * eights
    powers = [8] * eights + [4] * (left // 2) + [2] * (left % 2)
    return (*powers, *found)


def rows_of_group(traits: DeviceTraits, dtype: np.dtype, length: int, rows: int) -> int:
    """Transforms that a group makes side by side in its local memory."""
    room = traits.local_nbytes // (2 * dtype.itemsize)
    if length == room:
        return 1
    return max(1, min(rows, room // (length + 1), max(8, GROUP_POINTS // length)))


def items_of_group(traits: DeviceTraits, points: int) -> int:
    """Work-items of a group that holds so many points."""
    wanted = 1 << max(0, (-(-points // ITEM_POINTS) - 1).bit_length())
    most = min(MOST_GROUP, 1 << (traits.max_work_group.bit_length() - 1))
    return max(1, min(most, max(32, wanted)))
