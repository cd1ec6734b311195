"""Scatters: which devices write through computed places by kernels, and how they count.

Where the device has a schedule of work-groups, counts are made piece by piece in local memory, and
elements are stored at computed places by the kernel that computes them. On a CPU, whose memory is
the host's, NumPy stores; many elements are counted by kernels there, too, piece by piece in the
caches.
"""

from __future__ import annotations

from typing import Final

from clfuse.target.traits import DeviceTraits

SCATTERS: Final = frozenset(["tally", "scatter", "segments"])
"""Library operations that kernels compute on such devices; all but the last one together with their
operands."""

COUNTING_GROUP: Final = 256
"""Work-items that count a piece together."""

WEIGHING_GROUP: Final = 64
"""Work-items that add up the weights of a piece: each looks at all that the group has loaded."""

COUNTED_TOGETHER: Final = 4
"""Elements that a work-item loads before it counts them: loads overlap with each other."""

LEAST_PIECE: Final = 4096
"""Elements of a piece at least: fewer than that are no work for a group."""

GROUPS_PER_UNIT: Final = 8
"""Pieces for each multiprocessor: as many groups are there at a time."""

COPIED_NBYTES: Final = 8 << 10
"""Local memory up to which a group has several counters for each place: neighbours that fall into
one place wait for each other less."""

MOST_NBYTES: Final = 48 << 10
"""Local memory of a group at most: with more there are too few groups at a time."""

MOST_COPIES: Final = 16

CPU_PIECES: Final = 32
"""Pieces that a CPU counts, whatever cores it has: sums of weights are the same on all of them."""

CPU_LEAST: Final = 1 << 15
"""Elements of a piece there: NumPy counts two of them in the time of a launch and of the sum."""

PLACES_SHARE: Final = 4
"""Elements of a piece for each place, whose counter is cleared, written, and added to the sum."""


def scatters(traits: DeviceTraits) -> bool:
    """Whether kernels of this device count and write through places, not the host.

    >>> scatters(DeviceTraits()), scatters(DeviceTraits(schedule="gpu", unified_memory=False))
    (False, True)
    """
    return traits.schedule == "gpu"


def is_scattered(name: str, traits: DeviceTraits) -> bool:
    """Whether kernels of this device make a library operation of this name. A CPU's plan has a
    tally only where it counts in pieces (`schedule.rewrite.counting`)."""
    return name == "tally" or (name in SCATTERS and scatters(traits))


def counted_pieces(traits: DeviceTraits, count: int, bins: int) -> int:
    """Into how many pieces a CPU divides `count` elements to count them by `bins` places; 0 where
    NumPy counts them, or the device has a schedule of work-groups.

    >>> cpu = DeviceTraits()
    >>> [counted_pieces(cpu, 8_000_000, bins) for bins in (256, 100_000, 8_000_000)]
    [32, 20, 0]
    >>> counted_pieces(cpu, 10_000, 256)
    0
    """
    pieces = min(CPU_PIECES, count // max(CPU_LEAST, PLACES_SHARE * bins))
    return pieces if traits.schedule == "cpu" and pieces > 1 else 0


def room_for(bins: int) -> int:
    """Places that a group has counters for: few sizes, so that kernels are built for few."""
    if bins <= 1024:
        return max(16, 1 << (bins - 1).bit_length())
    return -(-bins // 1024) * 1024


def copies_of(bins: int, nbytes: int) -> int:
    """Counters of a group for each place."""
    return max(1, min(MOST_COPIES, COPIED_NBYTES // (room_for(bins) * nbytes)))


def tally_pieces(traits: DeviceTraits, count: int, bins: int, nbytes: int, *, weighs: bool) -> int:
    """Into how many pieces `count` elements are divided to be counted by `bins` places.

    `nbytes` has a counter. 0 where the counters of a group do not fit its local memory: all groups
    share them in global memory then.

    >>> h100 = DeviceTraits(schedule="gpu", compute_units=132, local_nbytes=48 << 10)
    >>> tally_pieces(h100, 64_000_000, 1024, 4, weighs=False)
    1056
    >>> tally_pieces(h100, 64_000_000, 100_000, 4, weighs=False)
    0
    """
    room = room_for(bins) * nbytes
    if weighs:
        room += WEIGHING_GROUP * (4 + nbytes)
    if room > min(traits.local_nbytes, MOST_NBYTES):
        return 0
    group = min(COUNTING_GROUP, traits.max_work_group)
    units = max(traits.compute_units, 1) * GROUPS_PER_UNIT
    if weighs:
        units *= COUNTING_GROUP // WEIGHING_GROUP
        group = min(WEIGHING_GROUP, traits.max_work_group)
    # The counts of all pieces are written and read again: less than what is counted.
    return max(1, min(units, -(-count // max(LEAST_PIECE, bins, group))))
