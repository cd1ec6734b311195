"""Unrolling by two vectors: which kernels take two at a time to hide the latency of operations.

A core looks only so far ahead in its instructions (512 in the one measured): where one vector needs
hundreds, each waiting for the one before, the arithmetic units wait too. Lines of two vectors in
turn give them twice as much to do: Mandelbrot of 20 iterations takes .75 of the time, Black-Scholes
.78 to .93, sums of 60 operations .81 to .91 (two cores of a Xeon, PoCL and Intel's runtime). One
vector after the other instead of line by line gains nothing: compilers keep the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from clfuse.schedule.records import Item, Kernel, Step
from clfuse.schedule.rounds import text_length
from clfuse.target.traits import DeviceTraits

__all__ = ["has_pairs", "pair_vectors", "waits_long"]

LEAST_CHAIN: Final = 24.0
"""Operations, in additions, of which each waits for the one before. Where fewer do, several vectors
are in the core's view. With two vectors 24 or more took .56 to 1.08 of the time, fewer .92 to 1.17
(17 programs on values in the caches, float32 and float64, on both runtimes)."""

LEAST_ROW: Final = 4
"""Vectors of a row: of shorter ones too much is left behind the last pair."""

MAX_STEPS: Final = 300
"""Loads and steps of an element: the text grows by a half, and with it the time to build it."""


def pair_vectors(kernel: Kernel, traits: DeviceTraits) -> Kernel:
    """Let `kernel` work on two vectors at a time where that hides how long its operations take."""
    if traits.schedule != "cpu" or not kernel.kind.elementwise or kernel.then or kernel.width == 1:
        return kernel
    return replace(kernel, unroll=2) if has_pairs(kernel) and waits_long(kernel, traits) else kernel


def has_pairs(kernel: Kernel) -> bool:
    """Whether the rows of a kernel are long enough to take two vectors at a time."""
    return len(kernel.extents) == 1 or kernel.extents[kernel.vector] >= LEAST_ROW * kernel.width


def waits_long(kernel: Kernel, traits: DeviceTraits) -> bool:
    """Whether the loop's operations wait for each other so long that a second vector should be
    computed meanwhile."""
    return longest_chain(kernel.body) >= LEAST_CHAIN and text_length(kernel, traits) <= MAX_STEPS


def longest_chain(items: Sequence[Item]) -> float:
    """The most operations, in additions, that wait for each other."""
    chains: dict[int, float] = {}
    for item in items:
        if isinstance(item, Step):
            before = max([chains.get(operand, 0.0) for operand in item.operands], default=0.0)
            chains[item.var] = before + item.op.weight
    return max(chains.values(), default=0.0)
