"""Random orders: `permutation`, `shuffle`, `permuted` and `choice` without replacement.

Few elements (`FEW`) are put in order on the host, with NumPy's algorithm. Of more, every element
finds its place by itself (``kernels/lib/permutation.cl``): the order needs no memory, no sort and
no host, and is the same on every device.
"""

from __future__ import annotations

import math
from operator import index as as_index
from typing import Any, Final

import numpy as np

from clfuse._core import loading
from clfuse.arrays.conversion import NotNative, as_handle, from_host, host_view
from clfuse.arrays.expressions import combine, convert, scalar
from clfuse.arrays.handle import Handle, fresh, is_writeable, native_dtype, node_of
from clfuse.arrays.host_array import affordable, is_calculated_here, wrap_result
from clfuse.arrays.promotion import INT64, UINT64
from clfuse.arrays.views import reshape_view, strict_axis
from clfuse.functions.indexing.taking import take_along_axis
from clfuse.ir import build
from clfuse.ir.layout import contiguous_strides
from clfuse.ir.nodes import Node, loop
from clfuse.ir.trace import active
from clfuse.ir.value_ranges import known_within
from clfuse.runtime.devices.selection import current_device
from clfuse.runtime.memory.buffers import HostBuffer

from .bits import Draw, Philox4x32, few_of
from .formulas import exponential
from .small_draws import made_here

__all__ = [
    "FEW", "as_array", "chosen_once", "numbers", "order", "ordered", "permuted", "probable",
    "probable_once", "shuffle_in_place",
]  # fmt: skip

FEW: Final = 4096
"""Elements that NumPy puts in order on the host, in 20 us."""

MOST: Final = 1 << 31
"""Places have 32 bits."""

_SHUFFLED: Final = 40.0
"""Additions that finding a place takes on the host, by the compiled part."""

_UINT32: Final = np.dtype(np.uint32)
_core: Final = loading.load()
_PLACE: Final = loop("shuffled_place", (_UINT32,) * 4, _UINT32)


def _order_of_few(bits: Philox4x32, host: Any, count: int) -> np.ndarray:
    if _core is not None:
        return _orders_of_few(bits, 1, count)
    order: np.ndarray = host.drawn(bits, host.generator.permutation, count)
    return order


def _orders_of_few(bits: Philox4x32, rows: int, count: int) -> np.ndarray:
    """Orders as NumPy's generator draws them one after the other; by the compiled part."""
    key, position, _ = bits.take()
    orders: np.ndarray = _core.numpys_orders(key, position, rows, count)  # type: ignore[union-attr]
    return orders


def _is_few(count: int) -> bool:
    return count <= FEW and active() is None


def _order_here(bits: Philox4x32, count: int) -> np.ndarray | None:
    """A random order of more than few elements, by the compiled part where NumPy would do such work
    at the call; None where it is recorded."""
    if _core is None or active() is not None or count >= MOST:
        return None
    if _core.device_of_draws(count, few_of(_SHUFFLED), _SHUFFLED) is None:
        return None
    seed = bits.single()[0]
    places = np.arange(count, dtype=np.uint32)
    random = np.array([seed & 0xFFFFFFFF, seed >> 32], np.uint32)
    _core.shuffled_places(places, count, random[:1], random[1:])
    return places.astype(np.int64)


def order(bits: Philox4x32, host: Any, count: int) -> Node:
    """A random order of `count` elements: (count,) int64. `host` draws for few of them."""
    if _is_few(count):
        return known_within(node_of(from_host(_order_of_few(bits, host, count))), count)
    if count >= MOST:
        raise NotNative("of so many elements")
    seed = Draw(bits, (1,)).node()
    key, other = convert(seed, _UINT32), convert(
        combine(np.right_shift, seed, scalar(32, UINT64)), _UINT32
    )
    places = convert(build.iota(count), _UINT32)
    found = build.elementwise(_PLACE, (places, scalar(count, _UINT32), key, other), (count,))
    return known_within(convert(found, INT64), count)


def ordered(bits: Philox4x32, host: Any, array: Any, axis: int) -> Any:
    """The elements of an array along an axis, in a random order."""
    place = strict_axis(axis, len(array._shape))
    count = array._shape[place]
    if _lies_here(array):
        few = _order_of_few(bits, host, count) if _is_few(count) else _order_here(bits, count)
        if few is not None:
            return array.take(few, place)
    return _taken(array, order(bits, host, count), place)


def numbers(bits: Philox4x32, host: Any, count: int) -> Any:
    """The numbers below `count` in a random order: (count,) int64."""
    if _is_few(count) and is_calculated_here(device := current_device()):
        return wrap_result(_order_of_few(bits, host, count), device)
    if not _is_few(count) and (found := _order_here(bits, count)) is not None:
        return wrap_result(found, current_device())
    return fresh(order(bits, host, count))


def _lies_here(array: Handle) -> bool:
    """Whether NumPy puts the elements in order where they are."""
    storage = array._storage
    return type(storage.node.buffer) is HostBuffer and affordable(math.prod(array._shape), array)


def shuffle_in_place(bits: Philox4x32, host: Any, array: Any, axis: Any) -> None:
    """Put an array's elements along an axis into a random order.

    Raises
    ------
    ValueError
        The array is read-only.
    """
    if not isinstance(array, Handle) or not array._shape:
        raise NotNative("not an array of ours")
    if not is_writeable(array):
        raise ValueError("array is read-only")
    place = strict_axis(as_index(axis), len(array._shape))
    if array._shape[place] > 1:
        values = ordered(bits, host, array, place)
        array[...] = values  # type: ignore[index] # it is an array


def chosen_once(bits: Philox4x32, host: Any, count: int, shape: tuple[int, ...]) -> Any:
    """Different numbers below `count`, as many as the shape has elements."""
    size = math.prod(shape)
    if not 0 < size <= count:
        raise NotNative("none, or more than there are")
    if _is_few(size):
        few = host.drawn(bits, host.generator.choice, count, size, replace=False)
        if shape and is_calculated_here(device := current_device()):
            return wrap_result(few.reshape(shape), device)
        return fresh(build.reshape(known_within(node_of(from_host(few)), count), shape))
    first = build.view(order(bits, host, count), (size,), 0, (1,))
    return fresh(known_within(build.reshape(first, shape), count))


_SURE: Final = 1e-9
"""By how much chances may differ from 1 in all, and nobody doubts it: NumPy allows 1.5e-8."""

_SEARCHED: Final = 30.0
"""Additions that a number takes which looks for its place."""


def _are_chances(given: np.ndarray, count: int) -> bool:
    """Whether NumPy need not be asked what is wrong with the chances of `count` elements."""
    if given.dtype != np.float64 or given.shape != (count,) or not count:
        return False
    return bool(given.min() >= 0.0 and abs(given.sum() - 1.0) < _SURE)


def probable(bits: Philox4x32, examiner: Any, count: int, p: Any, shape: Any) -> Any:
    """Numbers below `count`, each with its probability; NumPy's errors for bad ones."""
    given = np.asarray(host_view(p) if isinstance(p, Handle) else p)
    if not _are_chances(given, count):
        examiner.choice(count, 1, p=given)
    ends = given.astype(np.float64).cumsum()
    ends /= ends[-1]
    few = made_here(
        bits, shape, 1, _SEARCHED, lambda draw: ends.searchsorted(draw.uniform(), side="right"), ()
    )
    if few is not None:
        return few
    table = fresh(node_of(from_host(ends)))
    drawn = Draw(bits, shape).uniform()
    return np.searchsorted(table, drawn, side="right")


def permuted(bits: Philox4x32, host: Any, array: Any, axis: Any) -> Any:
    """The elements along an axis in random orders, another one for each slice; all of them in one
    order where no axis is named."""
    shape = array._shape
    if axis is None:
        flat = reshape_view(array, (math.prod(shape),))
        return reshape_view(ordered(bits, host, flat, 0), shape)
    place = strict_axis(as_index(axis), len(shape))
    count = shape[place]
    if math.prod(shape) <= FEW and active() is None:
        if _core is not None:
            others = (*shape[:place], *shape[place + 1 :])
            height = math.prod(others)
            orders = _orders_of_few(bits, height, count)
            if place == len(shape) - 1 and _lies_here(array):
                orders.reshape(height, count)[...] += np.arange(0, height * count, count)[:, None]
                return reshape_view(reshape_view(array, (height * count,)).take(orders), shape)
            by_slice = np.moveaxis(orders.reshape(*others, count), -1, place)
            return take_along_axis(array, from_host(by_slice), place)
        steps = np.arange(count).reshape(-1, *(1,) * (len(shape) - place - 1))
        whole = np.broadcast_to(steps, shape)
        return take_along_axis(
            array, from_host(host.drawn(bits, host.generator.permuted, whole, axis=place)), place
        )
    if count >= MOST:
        raise NotNative("of so many elements")
    rows = (*shape[:place], 1, *shape[place + 1 :])
    seed = Draw(bits, rows).node()
    key, other = convert(seed, _UINT32), convert(
        combine(np.right_shift, seed, scalar(32, UINT64)), _UINT32
    )
    along = (count, *(1,) * (len(shape) - place - 1))
    places = build.reshape(convert(build.iota(count), _UINT32), along)
    found = build.elementwise(_PLACE, (places, scalar(count, _UINT32), key, other), shape)
    return take_along_axis(array, fresh(known_within(convert(found, INT64), count)), place)


def probable_once(bits: Philox4x32, examiner: Any, count: int, p: Any, shape: Any) -> Any:
    """Different numbers below `count`, one after the other, each with its probability among those
    that are left; NumPy's errors for bad ones.

    That is the order in which exponential numbers of these rates come: P. S. Efraimidis, P. G.
    Spirakis, Weighted random sampling with a reservoir (2006).
    """
    given = np.asarray(host_view(p) if isinstance(p, Handle) else p)
    if not _are_chances(given, count):
        examiner.choice(count, 1, p=given)
    size = math.prod(shape)
    if size > count:
        raise NotNative("more than there are")
    if np.count_nonzero(given > 0) < size:
        raise ValueError("Fewer non-zero entries in p than size")
    with np.errstate(divide="ignore"):
        means = from_host(1.0 / given.astype(np.float64))
    order = np.argsort(exponential(Draw(bits, (count,))) * means, kind="stable")
    return np.reshape(order[:size], shape)


def _taken(array: Handle, at: Node, axis: int) -> Any:
    shape = array._shape
    strides = contiguous_strides(shape)
    rest = len(shape) - axis - 1
    place = build.reshape(at, (shape[axis], *(1,) * rest))
    if strides[axis] != 1:
        place = combine(np.multiply, place, scalar(strides[axis], INT64))
    steps = (*strides[:axis], 0, *strides[axis + 1 :])
    return fresh(build.gather(node_of(array), place, shape, 0, steps))


def as_array(value: Any) -> Any:
    """What is put in order, as an array of ours."""
    array = as_handle(value)
    if native_dtype(array._dtype) is None or not array._shape or 0 in array._shape:
        raise NotNative("of no elements")
    return array
