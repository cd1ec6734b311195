"""Steps of recipes that need more than one function of `ir.build`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from clfuse.arrays.expressions import convert
from clfuse.arrays.handle import DTYPES
from clfuse.arrays.promotion import constant_of
from clfuse.ir import build
from clfuse.ir.value_ranges import range_of

from .recipe import broadcast, read

INT64: Final = DTYPES["int64"]


def number(value: Any, dtype: np.dtype) -> Any:
    """A number of the call as a constant of the loop's dtype."""
    return constant_of(value, dtype)


def convert_node(node: Any, dtype: np.dtype) -> Any:
    """A node of another dtype: what is no bool yet is true unless it is zero."""
    return convert(node, dtype)


def fill_indices(node: Any, dtype: np.dtype, shape: tuple[int, ...]) -> Any:
    """A node for every index."""
    if node.dtype is dtype and node.shape == shape:
        return node
    return broadcast(convert_node(node, dtype), shape)


def clamp_index(node: Any, extent: int, step: int, dtype: np.dtype) -> Any:
    """``step * index`` with the index within 0 and extent - 1."""
    low, high = range_of(node)
    inside = low >= 0 and high < extent
    if not inside:
        node = build.cast(node, INT64)
        limits = (constant_of(0, INT64), constant_of(extent - 1, INT64))
        node = build.apply("clip", (node, *limits), INT64, node.shape)
    node = build.cast(node, dtype)
    if step != 1:
        node = build.apply("multiply", (node, constant_of(step, dtype)), dtype, node.shape)
    return node


def gather(
    stored: Any,
    dtype: np.dtype,
    extents: tuple[int, ...],
    place: int,
    steps: tuple[int, ...],
    position: Any,
    shape: tuple[int, ...],
    offset: int,
    strides: tuple[int, ...],
) -> Any:
    """Elements of an array that lies so on its storage, at computed positions."""
    if stored.dtype is not dtype:
        # The bytes seen as another dtype are no array yet: all that the view spans is made one.
        low = sum([min(0, s * (n - 1)) for n, s in zip(extents, steps, strict=True)])
        high = sum([max(0, s * (n - 1)) for n, s in zip(extents, steps, strict=True)])
        stored = read(stored, (high - low + 1,), dtype, place + low, (1,))
        place = -low
    return build.gather(stored, position, shape, place + offset, strides)


