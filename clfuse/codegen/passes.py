"""The launches that make a library call together, as OpenCL C."""

from __future__ import annotations

from collections.abc import Callable

from clfuse.schedule.records import Pass, SortPass
from clfuse.target.traits import DeviceTraits

from .fourier import render_fourier
from .kernels import Rendered
from .sorting import render_sort


def render_pass(step: Pass, traits: DeviceTraits, root: Callable[[int], int]) -> Rendered:
    """Write one of them."""
    if isinstance(step, SortPass):
        return render_sort(step, traits, root)
    return render_fourier(step, traits, root)
