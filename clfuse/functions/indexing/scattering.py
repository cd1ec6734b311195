"""Writes through index arrays by kernels: ``x[i] = v`` and ``ufunc.at``.

On devices with work-groups a write is recorded as a library operation that the planner makes a
kernel of: the places and the values are computed where they are stored (`schedule.lower.scatters`).
Bounds are checked before, as for reading (`gathering`). Where several elements go to one place the
last one stays, as in NumPy; this costs two launches more, unless there is one value for all of
them, or the places are known to be distinct. ``ufunc.at`` is made of atomic operations where their
order cannot matter, on integers. Elsewhere elements are sorted by their places, which keeps the
order of equal ones, and folded in this order: the results have NumPy's bits. Many floats that are
added to few places are added up in local memory, piece by piece: more exact than in NumPy's order,
and the same on every run. So are those of many elements that are folded piece by piece after the
sort (`schedule.lower.scatters`), however many there are of one place.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from clfuse.arrays.expressions import choose, combine, convert, scalar
from clfuse.arrays.handle import Handle, native_dtype
from clfuse.arrays.promotion import FLOAT64, INT64
from clfuse.engine.evaluate import lock
from clfuse.ir import build
from clfuse.ir.nodes import Kind, Node, rebind
from clfuse.ops.table import UFUNCS
from clfuse.runtime.devices.selection import current_device
from clfuse.target.scatters import scatters, tally_pieces

from .gathering import INDEX_LIMIT, POSITION, Selection

SORTED_ELEMENTS: Final = 1 << 29
"""Elements from which on a sort by places would not be one of kernels."""

SUMMED: Final = 1 << 15
"""Floats from which on those of few places are added up piece by piece: fewer are added in NumPy's
order, by one work-item for each place."""

ROUNDING: Final = frozenset(["add", "subtract", "multiply"])
"""Operations whose grouping changes the digits of floats."""

FLOAT32: Final = np.dtype(np.float32)
UINT8: Final = np.dtype(np.uint8)
UINT16: Final = np.dtype(np.uint16)

SET: Final = "set"

_IN_ANY_ORDER: Final = frozenset(
    ["add", "subtract", "multiply", "maximum", "minimum",
     "bitwise_and", "bitwise_or", "bitwise_xor"]
)  # fmt: skip
"""Operations on integers whose result does not depend on the order of the elements."""

_BY_HALVES: Final = frozenset(["add", "subtract", "bitwise_and", "bitwise_or", "bitwise_xor"])
"""Those that atomic operations of 32 bits make on integers of 64 bits."""


def combines(name: str, dtype_size: int, kind: str) -> bool:
    """Whether kernels combine integers of this kind and size through places that may repeat."""
    if kind not in "iu" or name not in _IN_ANY_ORDER:
        return False
    return dtype_size == 4 or (dtype_size == 8 and name in _BY_HALVES)


def scatter(handle: Handle, chosen: Selection, value: Node, how: str = SET) -> bool:
    """Record that a kernel stores `value`, of the array's dtype, at the elements of a selection, or
    combines it with them; False where the device has none, or not for this array."""
    storage = handle._storage
    old = storage.node
    size = math.prod(old.shape)
    if not old.shape or not size or handle._dtype is not old.dtype:
        return False
    if not scatters(current_device().assumed_traits) or math.prod(chosen.common) >= INDEX_LIMIT:
        return False
    position = chosen.position(size)
    if position is None:
        position = scalar(0, POSITION)
    shape, strides = chosen.shape or (1,), chosen.strides or (0,)
    strides = tuple(
        [0 if extent == 1 else stride for extent, stride in zip(shape, strides, strict=True)]
    )
    base = sum(
        [-array.stride * (array.extent - 1) for array in chosen.arrays if array.stride < 0]
    )
    plain = math.prod(position.shape) == 1 or _is_one(value) or _are_distinct(chosen)
    param = (how, shape, chosen.offset, strides, base, plain)
    with lock:
        old = storage.node  # another thread may have written since
        made = build.library("scatter", (old, position, value), old.shape, old.dtype, param)
        rebind(storage, made)
    return True


def fold_in_order(handle: Handle, chosen: Selection, value: Node, how: str) -> bool:
    """Record that a kernel combines `value` with the elements of a selection one after another, in
    the value's dtype, as NumPy does; False where the device has none, or not for this array."""
    storage = handle._storage
    old = storage.node
    count = math.prod(chosen.shape)
    if not old.shape or handle._dtype is not old.dtype:
        return False
    if not scatters(current_device().assumed_traits) or count >= SORTED_ELEMENTS:
        return False
    size = math.prod(old.shape)
    if value.dtype.char == "e" and how in ROUNDING and count >= SUMMED:
        value = convert(value, FLOAT32)  # halves that are grouped would be rounded again and again
    dtype = POSITION if size < INDEX_LIMIT else INT64
    grid = build.view(build.iota(size), chosen.shape, chosen.offset, chosen.strides)
    place = convert(grid, dtype)
    position = chosen.position(size)
    if position is not None:
        place = combine(np.add, place, convert(position, dtype))
    flat = build.reshape(build.broadcast(value, chosen.shape), (count,))
    place = build.reshape(place, (count,))
    pieces = _pieces_of_sums(size, count, flat.dtype, how)
    with lock:
        old = storage.node
        if pieces:
            made = _summed(old, place, flat, how, pieces)
        else:
            made = folded(old, place, flat, how)
        rebind(storage, made)
    return True


def _pieces_of_sums(size: int, count: int, dtype: np.dtype, how: str) -> int:
    """Into how many pieces so many floats are divided to be added up for each of `size` places in
    local memory; 0 where they are folded in order."""
    if how not in ("add", "subtract") or dtype.kind != "f" or count < max(SUMMED, 4 * size):
        return 0
    return tally_pieces(
        current_device().assumed_traits, count, size, _wide(dtype).itemsize, weighs=True
    )


def _wide(dtype: np.dtype) -> np.dtype:
    """The dtype in which floats are added up."""
    return FLOAT64 if native_dtype(FLOAT64) is FLOAT64 else dtype


def _summed(old: Node, place: Node, value: Node, how: str, pieces: int) -> Node:
    """`old` with the sums of `value` at each place added or subtracted, once."""
    wide = _wide(value.dtype)
    size = math.prod(old.shape)
    sums = build.library("tally", [place, convert(value, wide)], (pieces, size), wide)
    total = build.reshape(build.reduce("add", sums, (0,), wide), old.shape)
    changed = combine(getattr(np, how), convert(old, wide), total)
    # Where nothing goes -0.0 stays.
    is_same = combine(np.equal, total, scalar(0, wide))
    return choose(is_same, old, convert(changed, old.dtype), old.dtype, old.shape)


def folded(old: Node, place: Node, value: Node, how: str) -> Node:
    """`old` with each element of the vector `value` combined with the element at its place, one
    after another."""
    shape = place.shape
    how_sorted = ((shape,), (("axis", 0), ("kind", "stable")))
    size = math.prod(old.shape)
    # A sort goes over keys of two bytes half as often.
    key = place if size > 1 << 16 else convert(place, UINT16 if size > 1 << 8 else UINT8)
    order = build.library("argsort", (key,), shape, INT64, how_sorted)
    at = convert(order, POSITION)
    places, values = [build.gather(node, at, shape, 0, (0,)) for node in (place, value)]
    return build.library("segments", (old, places, values), old.shape, old.dtype, how)


def folding_dtype(function: np.ufunc, dtype: np.dtype, other: np.dtype) -> np.dtype | None:
    """The dtype in which a kernel combines elements of `dtype` with others by a ufunc, as NumPy's
    loop does; None where kernels have no such loop."""
    name = function.__name__
    row = UFUNCS.get(name)
    if row is None or getattr(np, name, None) is not function or function.nin != 2:
        return None
    try:
        left, right, out = function.resolve_dtypes((dtype, other, None))
    except TypeError:
        return None
    found = native_dtype(out)
    if left != out or right != out or found is None or row.key([found.name] * 2) is None:
        return None
    has_memory_type = dtype.kind in "iufc" and found.kind in "iufc"
    # A conversion of floats to integers would have to be NumPy's in every step.
    is_narrowed = dtype.kind in "iu" and found.kind not in "iu"
    return found if has_memory_type and not is_narrowed else None


def wraps_around(name: str, dtype: np.dtype, wide: np.dtype) -> bool:
    """Whether integers of `dtype` come out the same as from the wider loop, which is cut off."""
    wrapping = _IN_ANY_ORDER - {"maximum", "minimum"}
    return name in wrapping and dtype.kind in "iu" and wide.kind in "iu"


def _is_one(value: Node) -> bool:
    """Whether all places get the same."""
    while value.op.kind is Kind.VIEW and value.buffer is None:
        if not any(value.param[1]):
            return True
        (value,) = value.inputs
    return math.prod(value.shape) == 1


def _are_distinct(chosen: Selection) -> bool:
    """Whether no place is named twice, as far as is known without looking."""
    if len(chosen.arrays) != 1 or chosen.arrays[0].node.shape != chosen.common:
        return False
    index = chosen.arrays[0].node
    return len(index.shape) == 1 and index.op.kind is Kind.LIBRARY and index.op.name == "argsort"
