"""What things cost, in bytes of global memory moved: the one currency of every planner decision."""

from __future__ import annotations

from typing import Final

BYTES_PER_WEIGHT: Final = 1.0
"""Bytes that move in the time of one addition's lane: measured on two-core CPUs (an exp of weight 8
costs about 1 ns an element, as do 8 to 10 bytes), and generous for GPUs: they compute faster."""

CHEAP_WEIGHT: Final = 3.0
"""An expression of at most this weight is computed again for every shifted or broadcast read: its
loads hit the cache, and storing it would move at least twice its bytes."""

GATHER_WEIGHT: Final = 4.0
"""A load at a computed position, in additions: lanes are loaded one by one."""

MAX_STEPS: Final = 400
"""Operations of one kernel: PoCL's and NVIDIA's build time grows faster than linearly beyond."""

MAX_ARGUMENTS: Final = 48
"""Buffers and scalars of one kernel as the passes count them: 1,024 bytes of parameters (the least
that OpenCL 1.2's full profile promises) hold this many with their offsets and strides."""

MAX_UNROLLED: Final = 8
"""Elements of a fold that is written out as operations of an element-wise kernel; NumPy's own sums
are as simple up to here, so the bits are the same."""

MAX_UNROLLED_WEIGHT: Final = 64.0
"""What such a fold may cost an element: a loop of its own is better from there on."""

MAX_STORES: Final = 16
"""Results of one kernel: more streams than the caches' ways and write buffers follow."""


def recompute_nbytes(weight: float, loaded_nbytes: float) -> float:
    """Cost of computing one element again: what it loads, and its operations."""
    return loaded_nbytes + weight * BYTES_PER_WEIGHT


def store_nbytes(itemsize: int) -> float:
    """Cost of storing one element and loading it once."""
    return 2.0 * itemsize


MAX_BOXES: Final = 64
"""Boxes that results are cut into for reading concatenations in place: each is a launch."""
