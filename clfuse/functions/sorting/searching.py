"""Searches and counts: searchsorted, digitize, interp, bincount, histogram.

A binary search over n elements is about log2(n) loads at computed positions, each of which depends
on the comparison before. All of them are operations on the element that is looked for. So a search
is one kernel, and fuses with the operations that make the elements and that read the places:

    place = -1                      of the last element known to come before the key
    for half in (n/2, n/4 ...):     the same lengths whatever the key is: nothing to branch on
        probe = place + half
        place = probe if table[probe] < key else place
    place + 1
"""

from __future__ import annotations

import math
from operator import index as as_index
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from clfuse.arrays.conversion import NotNative, as_handle, from_host, host_scalar, host_view
from clfuse.arrays.expressions import choose, combine, convert, scalar
from clfuse.arrays.handle import Handle, fresh, native_dtype, node_of, result
from clfuse.arrays.host_array import is_seen_here, wrap_result
from clfuse.arrays.promotion import BOOL, FLOAT64, INT64
from clfuse.arrays.views import reshape_view
from clfuse.dispatch.host_call import native
from clfuse.dispatch.registry import UFUNCS
from clfuse.functions.attributes import cast_to
from clfuse.functions.indexing.gathering import (
    INDEX_LIMIT,
    POSITION,
    exact_bounds_of,
)
from clfuse.functions.indexing.subscripts import get
from clfuse.functions.indexing.taking import take
from clfuse.ir import build
from clfuse.ir.nodes import Kind, Node, Storage, loop
from clfuse.ir.value_ranges import range_of
from clfuse.numpy_releases import COUNTS_UNSIGNED
from clfuse.runtime.devices.selection import current_device

from .counts import tallied

if TYPE_CHECKING:
    import numpy.typing as npt

FEW_KEYS: Final = 512
"""Keys up to which NumPy finds their places in a stored vector: at 0.05 us each it takes no longer
than to launch a kernel on PoCL."""


def _is_nan(node: Node) -> Node:
    return combine(np.isnan, node)


def count_before(table: Node, key: Node, *, right: bool, order: Node | None = None) -> Node:
    """How many elements of a sorted vector come before each key; int32, of the keys' shape.

    They are compared in the keys' dtype; the table is not empty, and sorted when its elements are
    taken in this order.
    """
    shape = key.shape
    zeros = (0,) * len(shape)
    name = "sorts_before_or_with" if right else "sorts_before"
    before = loop(name, (key.dtype, key.dtype), BOOL)
    place = build.broadcast(scalar(-1, POSITION), shape)
    length = table.shape[0]
    while length:
        half = max(length // 2, 1)
        probe = combine(np.add, place, scalar(half, POSITION))
        at = probe
        if order is not None:
            at = convert(build.gather(order, probe, shape, 0, zeros), POSITION)
        element = convert(build.gather(table, at, shape, 0, zeros), key.dtype)
        is_before = build.elementwise(before, (element, key), shape)
        place = choose(is_before, probe, place, POSITION, shape)
        length -= half if length > 1 else 1
    return combine(np.add, place, scalar(1, POSITION))


def _sorted_table(a: Any) -> Handle:
    table: Handle = as_handle(a)
    if len(table._shape) != 1 or not 0 < table._shape[0] < INDEX_LIMIT:
        raise NotNative("not in a vector of this length")
    return table


@native(np.searchsorted, method=True)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """The places where elements would have to be inserted into a sorted vector to keep it so."""
    table, keys = _sorted_table(a), as_handle(v)
    dtype = native_dtype(np.result_type(table._dtype, keys._dtype))
    if dtype is None or dtype.kind == "c" or 0 in keys._shape or side not in ("left", "right"):
        raise NotNative("not by this order")
    made_here = _found_on_host(table, keys, side, sorter)
    if made_here is not None:
        return made_here
    order_node = None
    if sorter is not None:
        order = as_handle(sorter)
        if order._dtype.kind not in "iu" or order._shape != table._shape:
            raise NotNative("the sorter is of another kind")
        low, high = exact_bounds_of(node_of(order))
        if low < 0 or high >= table._shape[0]:
            raise NotNative("the sorter leaves the vector")
        if math.prod(keys._shape) * table._shape[0].bit_length() < table._shape[0]:
            order_node = node_of(order)
        else:
            table = take(table, order)
    key = convert(node_of(keys), dtype)
    places = count_before(node_of(table), key, right=side == "right", order=order_node)
    return result(convert(places, INT64))


def _found_on_host(table: Handle, keys: Handle, side: str, sorter: Any) -> Any:
    """The places of few keys in what is stored already, found by NumPy; None where they are to be
    recorded."""
    device = current_device()
    if math.prod(keys._shape) > FEW_KEYS or not is_seen_here(device):
        return None
    given = [table, keys] if sorter is None else [table, keys, as_handle(sorter)]
    for handle in given:
        node = handle._storage.node
        if node.buffer is None and node.op.kind is not Kind.CONSTANT:
            return None
    table_view, key_view, *order = [host_view(handle) for handle in given]
    return wrap_result(np.searchsorted(table_view, key_view, side, *order), device)  # type: ignore[call-overload]


FEW_EDGES: Final = 4096
"""Edges up to which it is remembered how they lie, which holds them."""

_slopes: Final[WeakKeyDictionary[Storage, tuple[Node, int]]] = WeakKeyDictionary()
"""How edges lie that were looked at before, which waits for the device, with their node: its values
never change."""


def _slope_of(edges: Handle) -> int:
    """`_slope` of edges, remembered where they are a whole array that is computed."""
    storage = edges._storage
    node = storage.node
    known = _slopes.get(storage)
    if known is not None and known[0] is node and node_of(edges) is node:
        return known[1]
    slope = _slope(host_view(edges))
    if node.buffer is not None and node_of(edges) is node and edges._shape[0] <= FEW_EDGES:
        _slopes[storage] = node, slope
    return slope


def _slope(steps: npt.NDArray[Any]) -> int:
    """1 where numbers rise, -1 where they fall, 0 where they do both."""
    if np.isnan(steps).any():
        raise NotNative("between edges that are on no side of others")
    if np.all(steps[:-1] <= steps[1:]):
        return 1
    return -1 if np.all(steps[:-1] >= steps[1:]) else 0


@native(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """The numbers of the bins that elements belong to; the bins rise or fall."""
    handle, edges = as_handle(x), _sorted_table(bins)
    if handle._dtype.kind == "c" or edges._dtype.kind == "c":
        raise NotNative("of complex numbers")
    side = "left" if right else "right"
    slope = _slope_of(edges)
    if slope > 0:
        return searchsorted(edges, handle, side)
    if not slope:
        raise ValueError("bins must be monotonically increasing or decreasing")
    places = searchsorted(edges[::-1], handle, side)
    return edges._shape[0] - places


@native(np.interp)
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """Piecewise linear interpolation between the points ``(xp, fp)``, with NumPy's formula."""
    if period is not None:
        raise NotNative("of a periodic function")
    if any(np.iscomplexobj(end) for end in (left, right) if not isinstance(end, Handle)):
        raise NotNative("of these ends")
    handle, places, values = as_handle(x), _sorted_table(xp), as_handle(fp)
    count = places._shape[0]
    inputs = (handle, places, values)
    if values._shape != places._shape or count < 2 or 0 in handle._shape:
        raise NotNative("of these points")
    if any(item._dtype.kind == "c" for item in inputs) or native_dtype(FLOAT64) is not FLOAT64:
        raise NotNative("of these dtypes")
    at, table, heights = [convert(node_of(item), FLOAT64) for item in inputs]
    shape = at.shape
    found = count_before(table, at, right=True)
    low = combine(np.subtract, found, scalar(1, POSITION))
    low = combine(np.minimum, low, scalar(count - 2, POSITION))
    low = combine(np.maximum, low, scalar(0, POSITION))
    zeros = (0,) * len(shape)
    x0, y0 = (build.gather(node, low, shape, 0, zeros) for node in (table, heights))
    x1, y1 = (build.gather(node, low, shape, 1, zeros) for node in (table, heights))
    slope = combine(np.divide, combine(np.subtract, y1, y0), combine(np.subtract, x1, x0))

    def pick(mask: Node, chosen: Node, other: Node) -> Node:
        return choose(mask, chosen, other, FLOAT64, shape)

    def from_point(place: Node, height: Node) -> Node:
        run = combine(np.subtract, at, place)
        return combine(np.add, combine(np.multiply, slope, run), height)

    line, back = from_point(x0, y0), from_point(x1, y1)
    flat = pick(combine(np.equal, y0, y1), y0, back)
    line = pick(_is_nan(line), pick(_is_nan(back), flat, back), line)
    line = pick(combine(np.equal, x0, at), y0, line)
    first = build.view(heights, (), 0, ())
    last = build.view(heights, (), count - 1, ())
    ends = [
        default if given is None else convert(node_of(as_handle(given)), FLOAT64)
        for given, default in ((left, first), (right, last))
    ]
    if any(end.shape for end in ends):
        raise NotNative("the value outside is no scalar")
    is_last = combine(np.equal, found, scalar(count, POSITION))
    is_beyond = combine(np.greater, at, build.view(table, (), count - 1, ()))
    line = pick(is_beyond, ends[1], pick(is_last, last, line))
    is_before = combine(np.less, at, build.view(table, (), 0, ()))
    line = pick(is_before, ends[0], line)
    return result(pick(_is_nan(at), at, line))


@native(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    """How often each number from 0 on occurs, or the sum of the weights where it does.

    The length of the result is known only when the largest number is: that is waited for, unless it
    is known to be below `minlength` (a remainder, numbers of 8 bits).
    """
    handle = as_handle(x)
    if len(handle._shape) != 1 or not handle._shape[0] or handle._dtype.kind not in "biu":
        raise NotNative("not of a vector of integers")
    if handle._dtype == np.uint64 and not COUNTS_UNSIGNED:
        raise NotNative("of what this NumPy does not count")
    length = as_index(minlength)
    if length < 0:
        raise ValueError("'minlength' must not be negative")
    node = convert(node_of(handle), INT64) if handle._dtype.kind == "b" else node_of(handle)
    low, high = range_of(node)
    if low < 0 or high >= length:
        low, high = exact_bounds_of(node)
    if low < 0:
        raise ValueError("'list' argument must have no negative elements")
    given = None
    if weights is not None:
        weight = as_handle(weights)
        if weight._dtype.kind == "c" or len(weight._shape) != 1:
            raise NotNative("with weights of another kind")
        if weight._shape != handle._shape:
            raise ValueError("The weights and list don't have the same length.")
        given = convert(node_of(weight), FLOAT64)
    return fresh(tallied(node, max(high + 1, length), given, "bincount"))


@native(np.histogram)
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    """How many elements fall into each bin, and the bins' edges.

    The numbers of the bins are computed by NumPy's formulas and counted as `tallied` says; or the
    weights in each bin are added up. Without a range, smallest and largest element are waited for.
    """
    if isinstance(bins, str):
        raise NotNative("with bins by a rule")
    handle = as_handle(a)
    given = None if weights is None else _weights(as_handle(weights), handle, bins)
    handle = reshape_view(handle, (math.prod(handle._shape),))
    if not handle._shape[0] or handle._dtype.kind not in "iuf":
        raise NotNative("not of these elements")
    if np.ndim(bins) == 0:
        count = as_index(bins)
        if count < 1:
            raise ValueError("`bins` must be positive, when an integer")
        edges, kept, number = _even_bins(handle, count, range)
    elif np.ndim(bins) == 1:
        edges, kept, number = _given_bins(handle, as_handle(bins))
        count = edges._shape[0] - 1
    else:
        raise ValueError("`bins` must be 1d, when an array")
    outside = build.constant(np.int64(count))
    place = choose(kept, number, outside, INT64, handle._shape)
    counts = fresh(tallied(place, count, given, "histogram"))
    if density:
        widths = UFUNCS["subtract"](edges[1:], edges[:-1]).astype(float)
        total = UFUNCS["add"].reduce(counts)
        return UFUNCS["divide"](UFUNCS["divide"](counts, widths), total), edges
    return counts, edges


def _weights(weights: Handle, handle: Handle, bins: Any) -> Node:
    """The weights of a histogram, one for each element of the flat array."""
    if weights._shape != handle._shape:
        raise ValueError("weights should have the same shape as a.")
    # NumPy sorts for bins that are given, and adds bools and complex numbers in ways of their own.
    if np.ndim(bins) != 0 or weights._dtype.kind not in "iuf":
        raise NotNative("with weights, and with bins that are given, or of another kind")
    return node_of(reshape_view(weights, (math.prod(weights._shape),)))


def _outer_edges(handle: Handle, given: Any) -> tuple[Any, Any]:
    """The ends of a histogram, as numbers; NumPy's errors for those that are none."""
    if given is None:
        found = "autodetected"
        ends = UFUNCS["minimum"].reduce(handle), UFUNCS["maximum"].reduce(handle)
        first, last = [np.asarray(end).flat[0] for end in ends]
    else:
        found = "supplied"
        first, last = (
            host_scalar(end) if isinstance(end, Handle) else end for end in given
        )
        if first > last:  # type: ignore[operator] # Python's error for what has no order
            raise ValueError("max must be larger than min in range parameter.")
    if not (np.isfinite(first) and np.isfinite(last)):
        raise ValueError(f"{found} range of [{first}, {last}] is not finite")
    if first == last:
        return first - 0.5, last + 0.5
    return first, last


def _even_bins(handle: Handle, count: int, given: Any) -> tuple[Any, Node, Node]:
    """Edges, which elements lie inside, and their bins: corrected where rounding was off by one."""
    first, last = _outer_edges(handle, given)
    dtype = np.result_type(first, last, handle._dtype)
    if dtype.kind in "iu":
        dtype = np.result_type(dtype, float)
    if isinstance(first, np.integer):
        width = np.float64(int(last) - int(first))
    else:
        width = last - first
    steps = np.linspace(first, last, count + 1, dtype=dtype)
    if np.any(steps[:-1] >= steps[1:]):
        raise ValueError(
            f"Too many bins for data range. Cannot create {count} finite-sized bins."
        )
    edges = from_host(steps)
    less, both = UFUNCS["less"], UFUNCS["logical_and"]
    kept = both(UFUNCS["greater_equal"](handle, first), UFUNCS["less_equal"](handle, last))
    values = cast_to(handle, dtype)
    scaled = UFUNCS["divide"](UFUNCS["subtract"](values, first), width)
    number = cast_to(UFUNCS["multiply"](scaled, count), INT64)
    number = UFUNCS["clip"](number, 0, count - 1)
    early = less(values, get(edges, number))
    number = UFUNCS["subtract"](number, early)
    following = get(edges, UFUNCS["clip"](UFUNCS["add"](number, 1), 0, count))
    late = both(UFUNCS["greater_equal"](values, following), less(number, count - 1))
    return edges, node_of(kept), node_of(UFUNCS["add"](number, late))


def _given_bins(handle: Handle, edges: Handle) -> tuple[Any, Node, Node]:
    """The same for edges that need not lie evenly; the last bin has both its ends."""
    steps = host_view(edges)
    if len(steps) < 2 or edges._dtype.kind == "c":
        raise NotNative("with these bins")
    if np.any(steps[:-1] > steps[1:]):
        raise ValueError("`bins` must increase monotonically, when an array")
    count = len(steps) - 1
    found = searchsorted(edges, handle, "right")
    at_end = UFUNCS["equal"](handle, get(edges, -1))
    number = UFUNCS["subtract"](UFUNCS["minimum"](found, count), 1)
    beyond = UFUNCS["logical_and"](UFUNCS["greater"](found, count), UFUNCS["logical_not"](at_end))
    inside = UFUNCS["logical_and"](UFUNCS["greater"](found, 0), UFUNCS["logical_not"](beyond))
    return edges, node_of(inside), node_of(number)
