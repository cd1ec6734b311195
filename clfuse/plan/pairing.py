"""Which element-wise kernels take two vectors at a time; `plan.planner` calls it for finished maps.

A core looks only so far ahead in its instructions (512 in the one measured): where one vector needs
hundreds, each waiting for the one before, the arithmetic units wait too. Lines of two vectors in
turn give them twice as much to do. Measured on two cores of a Xeon (time with two vectors by time
with one, PoCL / Intel's runtime): Mandelbrot of 20 iterations in float64 .75 / .75, Black-Scholes
in float32 .82 / .78, in float64 .93 / .87. One after the other instead of line by line gained
nothing: compilers keep the order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ..traits import DeviceTraits
from .schedule import Kernel, Step

__all__ = ["pair_vectors"]

LEAST_WEIGHT: Final = 64.0
"""Operations of an element, in additions: with fewer, several vectors are in the core's view."""

LEAST_ROW: Final = 4
"""Vectors of a row: of shorter ones too much is left behind the last pair."""

MAX_STEPS: Final = 300
"""Steps of an element: the text grows by a half, and with it the time to build it."""


def pair_vectors(kernel: Kernel, traits: DeviceTraits) -> Kernel:
    """Let `kernel` work on two vectors at a time where that hides how long its operations take."""
    if traits.schedule != "cpu" or kernel.kind != "map" or kernel.then or kernel.width == 1:
        return kernel
    if len(kernel.extents) > 1 and kernel.extents[kernel.vector] < LEAST_ROW * kernel.width:
        return kernel
    steps = [item for item in kernel.body if isinstance(item, Step)]
    if len(steps) > MAX_STEPS or sum([step.op.weight for step in steps]) < LEAST_WEIGHT:
        return kernel
    return replace(kernel, unroll=2)
