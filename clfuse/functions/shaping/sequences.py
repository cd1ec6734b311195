"""Evenly spaced numbers and grids, with NumPy's arithmetic.

They are computed where they are read, and never stored.

NumPy fills ``arange`` as ``start + i * delta`` with `delta` the rounded difference of the first two
elements, and sets the last element of ``linspace`` to `stop`. Where these give other bits than the
formula does, which is known when the call is recorded, a selection puts them in.
"""

from __future__ import annotations

import math
from operator import index as as_index
from typing import Any, Final

import numpy as np

from clfuse.arrays import errstate
from clfuse.arrays.conversion import (
    NotNative,
    adopt_host_array,
    as_handle,
    from_host,
    host_scalar,
    host_view,
    requested_dtype,
)
from clfuse.arrays.expressions import choose, combine, convert, scalar
from clfuse.arrays.handle import Handle, fresh, lacks_fp64, native_dtype, node_of
from clfuse.arrays.host_array import affordable
from clfuse.arrays.promotion import BOOL, FLOAT16, FLOAT32, FLOAT64, INT64
from clfuse.arrays.views import normalized_axis, permute_axes, reshape_view
from clfuse.dispatch.host_call import native
from clfuse.dispatch.overrides import WRAPS_RESULTS, wraps_results
from clfuse.dispatch.registry import UFUNCS
from clfuse.dtypes import needs_fp64
from clfuse.ir import build, trace
from clfuse.ir.nodes import Node
from clfuse.ir.size_limits import MOST_AXES, require_room

from .manipulation import broadcast_arrays

_Missing = np._NoValue
_LARGEST = np.iinfo(np.intp).max  # elements that an array may have


def _plain(value: Any) -> Any:
    """A number that decides how long an array gets: lazy scalars are computed."""
    if isinstance(value, Handle):
        return host_scalar(value) if not value._shape else host_view(value)
    return value


# -- arange ---------------------------------------------------------------------------------------


@native(np.arange)
def arange(
    start_or_stop: Any = _Missing,
    /,
    stop: Any = _Missing,
    step: Any = 1,
    dtype: Any = None,
    *,
    device: Any = None,
    like: Any = None,
    start: Any = _Missing,
) -> Any:
    """Evenly spaced numbers in a half-open interval."""
    if start_or_stop is _Missing:
        start_or_stop = 0 if start is _Missing else start
        if stop is _Missing:
            raise TypeError("arange() requires stop to be specified.")
    if stop is _Missing or stop is None:
        first, last = 0, start_or_stop
    else:
        first, last = start_or_stop, stop
    first, last, step = _plain(first), _plain(last), _plain(1 if step is None else step)
    if dtype is None:
        if any(np.asarray(number).dtype.kind in "mM" for number in (first, last, step)):
            raise NotNative("of times")
        # At least C's long, as in NumPy: float32 numbers give float64, int8 numbers int64.
        dtype = np.result_type(INT64, *[np.asarray(number).dtype for number in (first, last, step)])
    wanted = requested_dtype(dtype)
    assert wanted is not None
    try:
        count = max(math.ceil((last - first) / step), 0)
    except (ArithmeticError, ValueError, TypeError):
        return from_host(np.arange(first, last, step, dtype=dtype))  # NumPy's error
    if count > _LARGEST:
        raise ValueError("Maximum allowed size exceeded")
    if count <= 2 or wanted.kind == "b" or (first == 0 and math.copysign(1, first.real) < 0):
        return from_host(np.arange(first, last, step, dtype=dtype))
    require_room((count,), wanted)
    second = np.empty(2, wanted)
    second[0], second[1] = first, first + step
    return fresh(_progression(second, count))


def _progression(ends: np.ndarray, count: int) -> Node:
    """``ends[0] + i * (ends[1] - ends[0])``, as NumPy's fill functions compute it; its dtype."""
    dtype = native_dtype(ends.dtype)
    assert dtype is not None
    index = build.iota(count)
    if dtype.kind == "c":
        part = np.dtype(f"float{4 * dtype.itemsize}")
        real, imag = (_progression(np.ascontiguousarray(e), count) for e in (ends.real, ends.imag))
        return build.apply(
            "make_complex", (convert(real, part), convert(imag, part)), dtype, (count,)
        )
    computing = FLOAT32 if dtype is FLOAT16 else dtype
    start = ends[0].astype(computing)
    with np.errstate(all="ignore"):
        delta = ends[1].astype(computing) - start
        made = (start + np.arange(2, dtype=computing) * delta).astype(dtype)
    node = convert(index, computing)
    if delta != 1:
        node = combine(np.multiply, node, build.constant(delta))
    if start != 0 or not delta > 0:  # 0 * -1.0 is -0.0, and + 0.0 makes it 0.0 again
        node = combine(np.add, build.constant(start), node)
    node = convert(node, dtype)
    for place in range(2):  # the first one where the difference is no number
        if made[place] != ends[place] and ends[place] == ends[place]:
            is_there = combine(np.equal, index, build.constant(np.int64(place)))
            node = choose(is_there, build.constant(ends[place]), node, dtype, (count,))
    return node


# -- linspace -------------------------------------------------------------------------------------


_WITH_DTYPE: Final = (np.dtype, np.ndarray, np.generic, complex, float, int)
"""What `numpy.result_type` takes as it is."""


@native(np.linspace)
def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: Any = 0,
    *,
    device: Any = None,
) -> Any:
    """`num` evenly spaced numbers from `start` to `stop`."""
    count = as_index(num)
    if count < 0:
        raise ValueError(f"Number of samples, {count}, must be non-negative.")
    if wraps_results(start) or wraps_results(stop):
        raise NotNative(WRAPS_RESULTS)
    keys = [item._dtype if isinstance(item, Handle) else item for item in (start, stop)]
    keys = [key if isinstance(key, _WITH_DTYPE) else np.asarray(key) for key in keys]
    computing = requested_dtype(np.result_type(*keys, 0.0))
    wanted = requested_dtype(dtype) or computing
    assert computing is not None
    assert wanted is not None
    _require_precision(computing, wanted)
    ends = [convert(node_of(as_handle(item)), computing) for item in (start, stop)]
    rank = max(len(end.shape) for end in ends)
    node, step = _spaced(ends[0], ends[1], count, bool(endpoint), computing, rank)
    if wanted.kind in "iu":
        node = combine(np.floor, node)
    spaced = fresh(convert(node, wanted))
    if axis != 0:
        rank = len(spaced._shape)
        place = normalized_axis(axis, rank)
        order = list(range(1, rank))
        order.insert(place, 0)
        spaced = permute_axes(spaced, order)
    if not retstep:
        return spaced
    if count <= int(bool(endpoint)):
        return spaced, math.nan  # Python's, of any dtype
    if step.op.name == "constant":
        return spaced, step.param
    return spaced, fresh(step) if step.shape else host_scalar(fresh(step))


def _require_precision(computing: np.dtype, wanted: np.dtype) -> None:
    """Leave to NumPy what has to be computed in double precision on a device that has none, where
    the result asks for none.

    Raises NotNative: that is so.
    """
    if needs_fp64(computing) and not needs_fp64(wanted) and lacks_fp64():
        raise NotNative("in double precision, which the device has not")


def _spaced(
    start: Node, stop: Node, count: int, endpoint: bool, dtype: np.dtype, rank: int
) -> tuple[Node, Node]:
    """The numbers along a new first axis, and the step between them."""
    require_room((count,), dtype)
    intervals = count - 1 if endpoint else count
    index = build.reshape(convert(build.iota(count), dtype), (count,) + (1,) * rank)
    both_known = start.op.name == "constant" and stop.op.name == "constant"
    if both_known:
        with np.errstate(all="ignore"):
            delta = build.constant(stop.param - start.param)
    else:
        delta = combine(np.subtract, stop, start)
    divisor = scalar(max(intervals, 1), dtype)
    if intervals <= 0:
        step = scalar(math.nan, dtype)
        scaled = combine(np.multiply, index, delta)
    elif both_known:
        with np.errstate(all="ignore"):
            step = build.constant(delta.param / divisor.param)
        if step.param == 0:
            scaled = combine(np.multiply, combine(np.divide, index, divisor), delta)
        else:
            scaled = combine(np.multiply, index, step)
            if not np.isfinite(step.param):
                errstate.apply_errstate(scaled, "multiply")
    else:
        # A step that underflows to 0 is avoided by dividing first (NumPy issue 5437).
        step = combine(np.divide, delta, divisor)
        careful = combine(np.multiply, combine(np.divide, index, divisor), delta)
        plain = combine(np.multiply, index, step)
        is_zero = combine(np.equal, step, scalar(0, dtype))
        scaled = choose(is_zero, careful, plain, dtype, plain.shape)
    node = combine(np.add, scaled, start)
    if endpoint and count > 1 and not (both_known and _ends_at(start, stop, step, count)):
        is_last = combine(np.equal, index, scalar(count - 1, dtype))
        if float(dtype.type(count - 1).real) != count - 1 or dtype is FLOAT16:
            whole = build.reshape(build.iota(count), index.shape)
            is_last = combine(np.equal, whole, build.constant(np.int64(count - 1)))
        node = choose(is_last, stop, node, dtype, node.shape)
    return node, step


def _ends_at(start: Node, stop: Node, step: Node, count: int) -> bool:
    """Whether the formula gives `stop` as the last number anyway, to the bit."""
    if step.param == 0 or step.dtype is FLOAT16:
        return False
    with np.errstate(all="ignore"):
        last = step.dtype.type(count - 1) * step.param + start.param
    return bool(last.tobytes() == stop.param.tobytes())


@native(np.logspace)
def logspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: Any = 0,
) -> Any:
    """`num` numbers whose logarithms are evenly spaced."""
    if not isinstance(base, int | float) and np.ndim(base):
        raise NotNative("several bases")
    if dtype is not None:
        _require_precision(FLOAT64, np.dtype(dtype))
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    powers = UFUNCS["power"](base, exponents)
    return powers if dtype is None else powers.astype(dtype, copy=False)


@native(np.geomspace)
def geomspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: Any = 0
) -> Any:
    """`num` numbers of which each is a constant multiple of the one before."""
    if any(not isinstance(end, int | float | np.floating | np.integer) for end in (start, stop)):
        raise NotNative("ends that are not real numbers")
    if start == 0 or stop == 0:
        raise ValueError("Geometric sequence cannot include zero")
    computing = requested_dtype(np.result_type(np.asarray(start), np.asarray(stop), float(num)))
    assert computing is not None
    wanted = requested_dtype(dtype) or computing
    if computing is not FLOAT64 or (start < 0) != (stop < 0):
        raise NotNative("ends of different signs")
    _require_precision(computing, wanted)
    sign = float(np.sign(float(start)))
    first, last = (np.float64(end) / sign for end in (start, stop))
    made = logspace(np.log10(first), np.log10(last), num, endpoint)
    np.moveaxis(np.empty(0), 0, axis)  # NumPy's error, where it is no axis of a vector
    if as_index(num) > 0:
        made[0] = first
        if as_index(num) > 1 and endpoint:
            made[-1] = last
    if sign < 0:
        made *= sign
    return made.astype(wanted, copy=False)


# -- grids ----------------------------------------------------------------------------------------


@native(np.indices)
def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    """The index of every element of an array of this shape, one array an axis."""
    wanted = requested_dtype(dtype)
    assert wanted is not None
    extents = tuple([as_index(extent) for extent in dimensions])
    rank = len(extents)
    if wanted is BOOL and max(extents, default=0) > 2:
        raise NotNative("an error of NumPy's: bool counts to 1")
    if any(extent < 0 for extent in extents):
        raise ValueError("negative dimensions are not allowed")
    if rank >= MOST_AXES:
        raise ValueError(f"maximum supported dimension for an ndarray is {MOST_AXES}")
    require_room(extents if sparse else (rank, *extents), wanted)
    rows = []
    for axis, extent in enumerate(extents):
        shape = (1,) * axis + (extent,) + (1,) * (rank - axis - 1)
        rows.append(build.reshape(convert(build.iota(extent), wanted), shape))
    if sparse:
        return tuple([fresh(row) for row in rows])
    if not rows:
        return fresh(build.full(wanted.type(0), (0,)))
    stacked = [build.reshape(build.broadcast(row, extents), (1, *extents)) for row in rows]
    return fresh(build.concatenate(stacked, 0))


@native(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Coordinates of a grid, one array a vector given."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    rank = len(xi)
    if rank > MOST_AXES:
        raise ValueError(f"maximum supported dimension for an ndarray is {MOST_AXES}, found {rank}")
    nodes, arrays = [], []
    for axis, vector in enumerate(xi):
        array = as_handle(vector)
        node = node_of(array)
        place = 1 - axis if indexing == "xy" and rank > 1 and axis < 2 else axis
        shape = (1,) * place + (math.prod(node.shape),) + (1,) * (rank - place - 1)
        if not copy:
            arrays.append(reshape_view(array, shape))
        nodes.append(build.reshape(node, shape))
    if not copy:
        return arrays if sparse else broadcast_arrays(*arrays)
    if not sparse and nodes:
        common = tuple(
            max(extents) if 0 not in extents else 0
            for extents in zip(*[node.shape for node in nodes], strict=True)
        )
        nodes = [build.broadcast(node, common) for node in nodes]
    return tuple([fresh(node) for node in nodes])


class _Grid:
    """``mgrid`` and ``ogrid``: NumPy's index tricks, with the dense grid made on the device."""

    def __init__(self, grid: Any, *, sparse: bool) -> None:
        self._numpy = grid
        self.sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, tuple):
            if isinstance(key, slice) and not isinstance(key.step, complex):
                return arange(
                    0 if key.start is None else key.start,
                    key.stop,
                    1 if key.step is None else key.step,
                )
            return from_host(self._numpy[key])
        points = math.inf if self.sparse else len(key) * math.prod(map(_points, key))
        if points < math.inf and affordable(points) and trace.active() is None:
            return adopt_host_array(self._numpy[key])
        lines = np.ogrid[key]
        # Arrays stand in for numbers, or nothing is asked for, which NumPy may refuse.
        if any(line.ndim != len(lines) or not line.size for line in lines):
            found = self._numpy[key]
            return tuple(map(from_host, found)) if self.sparse else from_host(found)
        axes = [from_host(line) for line in lines]
        if self.sparse:
            return tuple(axes)
        common = tuple([axis.size for axis in axes])
        rows = [build.broadcast(node_of(axis), common) for axis in axes]
        return fresh(build.concatenate([build.reshape(row, (1, *common)) for row in rows], 0))

    def __len__(self) -> int:
        return 0


def _points(item: Any) -> float:
    """How many points an item of a grid's index asks for; infinitely many where that is not
    known."""
    if type(item) is not slice or not _REAL.issuperset((type(item.start), type(item.stop))):
        return math.inf
    if type(item.step) is complex:
        return abs(item.step)
    step = 1 if item.step is None else item.step
    if type(step) not in _REAL or not step:
        return math.inf
    return max(((item.stop or 0) - (item.start or 0)) / step, 0)


_REAL: Final = frozenset((int, float, type(None)))

mgrid = _Grid(np.mgrid, sparse=False)
ogrid = _Grid(np.ogrid, sparse=True)


@native(np.fromfunction)
def fromfunction(
    function: Any, shape: Any, *, dtype: Any = float, like: Any = None, **kwargs: Any
) -> Any:
    """What a function makes of the indices of an array of this shape."""
    return function(*indices(shape, dtype=dtype), **kwargs)


@native(np.vander)
def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    """Powers of a vector as the columns of a matrix."""
    handle = as_handle(x)
    if len(handle._shape) != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    columns = handle._shape[0] if N is None else as_index(N)
    if columns < 0:
        raise ValueError("negative dimensions are not allowed")
    computing = requested_dtype(np.promote_types(handle._dtype, int))
    assert computing is not None
    node = convert(node_of(handle), computing)
    powers = [build.full(computing.type(1), handle._shape)]
    while len(powers) < columns:
        powers.append(combine(np.multiply, powers[-1], node))
    powers = powers[:columns]
    if not powers:
        return fresh(build.full(computing.type(0), (handle._shape[0], 0)))
    column_shape = (handle._shape[0], 1)
    chosen = powers if increasing else powers[::-1]
    return fresh(build.concatenate([build.reshape(power, column_shape) for power in chosen], 1))
