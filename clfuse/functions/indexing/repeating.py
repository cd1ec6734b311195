"""``repeat`` with a number of repeats for every element, by kernels that count and scan.

    counts  2 0 3        ends   2 2 5
    marks   0 0 2 0 0 0  one where the elements behind an end begin, counted by place
    index   0 0 2 2 2    the running sum of the marks: which element comes there
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from clfuse.arrays.conversion import NotNative, as_handle
from clfuse.arrays.expressions import convert, scalar
from clfuse.arrays.handle import Handle, fresh, node_of
from clfuse.arrays.promotion import INT64
from clfuse.arrays.views import reshape_view, strict_axis
from clfuse.engine.evaluate import evaluate_nodes
from clfuse.engine.evaluate import host_view as stored_view
from clfuse.ir import build
from clfuse.ir.value_ranges import known_within
from clfuse.runtime.devices.selection import current_device
from clfuse.target.scatters import scatters

from .gathering import INDEX_LIMIT, POSITION
from .taking import take


def repeat_by_counts(handle: Handle, repeats: Any, axis: Any) -> Any:
    """Every element of an axis as often as a vector says; its sum is waited for.

    Raises NotNative: the device has no such kernels, or NumPy has to say what is wrong.
    """
    if not scatters(current_device().assumed_traits):
        raise NotNative("a number of repeats for every element")
    if axis is None:
        handle, axis = reshape_view(handle, (math.prod(handle._shape),)), 0
    place = strict_axis(axis, len(handle._shape))
    extent = handle._shape[place]
    counts = as_handle(repeats)
    if counts._shape != (extent,) or extent < 2 or counts._dtype.kind not in "iu":
        raise NotNative("by repeats of another kind")
    node = convert(node_of(counts), INT64)
    total, least = (build.reduce(name, node, (0,), INT64) for name in ("add", "minimum"))
    evaluate_nodes([total, least])
    length = int(stored_view(total))
    if int(stored_view(least)) < 0:
        raise ValueError("repeats may not contain negative values.")
    if not 0 < length < INDEX_LIMIT or not math.prod(handle._shape):
        raise NotNative("of no elements")
    ends = build.view(build.scan("add", node, 0, INT64), (extent - 1,), 0, (1,))
    zeros = build.full(np.int32(0), (length + 1,))
    param = ("add", (extent - 1,), 0, (0,), 0, True)
    marks = build.library(
        "scatter", (zeros, ends, scalar(1, POSITION)), (length + 1,), POSITION, param
    )
    index = build.scan("add", build.view(marks, (length,), 0, (1,)), 0, POSITION)
    return take(handle, fresh(known_within(index, extent)), place)
