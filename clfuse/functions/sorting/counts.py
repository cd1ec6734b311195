"""Counts of integers, and sums of weights by integers: what bincount and histograms come down to.

On devices with work-groups kernels count, piece by piece in local memory, and compute the places on
the way; a reduction adds up the pieces (`schedule.lower.scatters`). On a CPU NumPy counts few
elements, whose sums of weights have its bits, and plans of many are rewritten to do the same
(`schedule.rewrite.counting`). Kernels add the weights of a piece in their order, and then the
pieces, so their sums are the same on every run. For more places than a group has memory for,
elements are sorted by their places, and added in their order.
"""

from __future__ import annotations

import numpy as np

from clfuse.arrays.expressions import convert, scalar
from clfuse.arrays.handle import native_dtype
from clfuse.arrays.promotion import FLOAT64, INT64
from clfuse.functions.indexing.gathering import INDEX_LIMIT, POSITION, count_host_library
from clfuse.functions.indexing.scattering import SORTED_ELEMENTS, folded
from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.runtime.devices.selection import current_device
from clfuse.target.scatters import scatters, tally_pieces


def tallied(place: Node, bins: int, weights: Node | None, name: str) -> Node:
    """How many elements of `place`, a vector of numbers from 0 to `bins`, are each number below
    `bins`; int64. Or the sums of their weights, in the weights' dtype.

    `name` is the function that the user has called.
    """
    traits = current_device().assumed_traits
    (count,) = place.shape
    if scatters(traits) and count < INDEX_LIMIT and bins < INDEX_LIMIT:
        if weights is None:
            return _counted(place, bins)
        added = _added(place, bins, weights)
        if added is not None:
            return added
    count_host_library(name)
    if weights is None:
        return build.library("bincount", [place], (bins,), INT64)
    how = "bincount" if name == "bincount" else "weigh"
    return build.library(how, [place, weights], (bins,), weights.dtype)


def _counted(place: Node, bins: int) -> Node:
    traits = current_device().assumed_traits
    pieces = tally_pieces(traits, place.shape[0], bins, POSITION.itemsize, weighs=False)
    if pieces:
        counts = build.library("tally", [place], (pieces, bins), POSITION)
        return build.reduce("add", convert(counts, INT64), (0,), INT64)
    # One place more is for what falls into none.
    zeros = build.full(np.int32(0), (bins + 1,))
    param = ("add", place.shape, 0, (0,), 0, True)
    counts = build.library(
        "scatter", [zeros, place, scalar(1, POSITION)], (bins + 1,), POSITION, param
    )
    return convert(build.view(counts, (bins,), 0, (1,)), INT64)


def _added(place: Node, bins: int, weights: Node) -> Node | None:
    """Sums of weights; None where no kernels make them."""
    dtype = weights.dtype
    if dtype.kind in "iu":
        wide = INT64  # they wrap around as NumPy's do
    else:
        wide = FLOAT64 if native_dtype(FLOAT64) is FLOAT64 else dtype
        if wide.char == "e":
            return None
    traits = current_device().assumed_traits
    pieces = tally_pieces(traits, place.shape[0], bins, wide.itemsize, weighs=True)
    if not pieces and place.shape[0] >= SORTED_ELEMENTS:
        return None
    if not pieces:
        # One place more is for what falls into none.
        zeros = build.full(wide.type(0), (bins + 1,))
        sums = folded(zeros, convert(place, POSITION), convert(weights, wide), "add")
        return convert(build.view(sums, (bins,), 0, (1,)), dtype)
    sums = build.library("tally", [place, convert(weights, wide)], (pieces, bins), wide)
    return convert(build.reduce("add", sums, (0,), wide), dtype)
