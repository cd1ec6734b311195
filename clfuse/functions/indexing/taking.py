"""Functions that select or write by integer indices: take, choose, put and their kind."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from clfuse.arrays import errstate
from clfuse.arrays import handle as handles
from clfuse.arrays.conversion import (
    NotNative,
    as_handle,
    cast_for_assignment,
    contains_handles,
    host_node,
    is_subclass,
)
from clfuse.arrays.expressions import choose as select_by_mask
from clfuse.arrays.expressions import combine, convert, scalar
from clfuse.arrays.handle import (
    Handle,
    c_strides,
    is_writeable,
    layout,
    native_dtype,
    node_of,
    result,
    write,
)
from clfuse.arrays.promotion import BOOL, INT64, WEAK
from clfuse.arrays.views import reshape_view, strict_axis
from clfuse.dispatch.host_call import HostArguments, native
from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.numpy_releases import AT_READ_ONLY
from clfuse.runtime.devices.selection import current_device
from clfuse.target.scatters import scatters

from .gathering import (
    Indexed,
    Selection,
    gather_elements,
    index_array,
    index_into_axis,
    mutate,
    numpys_selection,
    parse,
    source_of,
    within,
)
from .masks import choose_by_mask, nonzero, tally_of, write_by_mask
from .scattering import combines, fold_in_order, folding_dtype, scatter, wraps_around
from .subscripts import put as assign
from .subscripts import stretching

_MODES: Final = ("raise", "wrap", "clip")
_MOST_CHOICES: Final = 32
"""Of `choose`: NumPy's own limit before version 2."""


def _plain_indices(indices: Any) -> Any:
    """Indices of `take` and its kind as a handle or NumPy array of integers; bools are 0 and 1."""
    if isinstance(indices, bool | np.bool_):
        indices = int(indices)
    if isinstance(indices, int | np.integer):
        indices = np.asarray(indices)
    if isinstance(indices, Handle | np.ndarray) and indices.dtype == BOOL:
        handle = as_handle(indices)
        return result(convert(node_of(handle), INT64))
    found = index_array(indices)
    if found is None:
        raise NotNative("the indices are no integers")
    return found


def _moded(indices: Any, extent: int, stride: int, mode: str) -> Indexed | None:
    """The indices into an axis, those beyond its ends wrapped or clipped; None: one is beyond."""
    if mode == "raise":
        return index_into_axis(indices, extent, stride)
    node = node_of(indices) if isinstance(indices, Handle) else host_node(indices)
    node = convert(node, INT64)
    if mode == "wrap":
        node = combine(np.remainder, node, scalar(extent, INT64))
    else:
        node = combine(np.maximum, node, scalar(0, INT64))
        node = combine(np.minimum, node, scalar(extent - 1, INT64))
    return Indexed(node, extent, stride, (0, extent - 1))


@native(np.take, method=True)
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    """The elements of an axis that indices name; without an axis, of the flattened array."""
    handle = as_handle(a)
    chosen_by = _plain_indices(indices)
    if axis is None:
        handle, axis = reshape_view(handle, (math.prod(handle._shape),)), 0
    elif not handle._shape:  # to take, a 0-d array is a vector of one element
        handle = reshape_view(handle, (1,))
    rank = len(handle._shape)
    axis = strict_axis(axis, rank)
    if mode not in _MODES:
        raise NotNative(f"mode {mode!r}")
    shape = handle._shape
    wanted = (*shape[:axis], *chosen_by.shape, *shape[axis + 1 :])
    if mode == "wrap" and not math.prod(wanted):  # NumPy 2.4 never ends, if the axis is empty
        return _delivered(build.full(handle._dtype.type(0), wanted), out)
    if not math.prod(wanted) or not shape[axis]:
        raise NotNative("of no elements")
    source, offset, strides = source_of(handle)
    found = _moded(chosen_by, shape[axis], strides[axis], mode)
    if found is None:
        dummy = np.broadcast_to(np.False_, shape)
        np.take(dummy, HostArguments().to_host(chosen_by), axis)  # NumPy's error
        raise AssertionError("NumPy takes what is out of bounds")
    common = tuple(chosen_by.shape)
    steps = (*strides[:axis], *[0] * len(common), *strides[axis + 1 :])
    behind = rank - axis - 1
    node = gather_elements(source, Selection(wanted, offset, steps, [found], common, behind))
    return _delivered(node, out)


def _delivered(node: Node, out: Any) -> Any:
    if out is None:
        return result(node)
    if not isinstance(out, Handle) or out._dtype is not node.dtype or out._shape != node.shape:
        raise NotNative("out is of another kind")
    if not is_writeable(out):
        raise NotNative("out is read-only")
    write(out, node)
    return out


@native(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    """The elements that indices name along an axis, each in its own row."""
    if not isinstance(indices, Handle | np.ndarray) or isinstance(arr, list | tuple):
        raise NotNative("a list stands for an array")
    handle = as_handle(arr)
    if axis is None:
        if len(indices.shape) != 1:
            raise NotNative("the indices are no vector")
        handle, axis = reshape_view(handle, (math.prod(handle._shape),)), 0
    shape = handle._shape
    rank = len(shape)
    axis = np.lib.array_utils.normalize_axis_index(axis, rank)
    if indices.dtype.kind not in "iu" or len(indices.shape) != rank:
        raise NotNative("the indices are no integers of the array's rank")
    rest = (*shape[:axis], 1, *shape[axis + 1 :])
    wanted = np.broadcast_shapes(rest, tuple(indices.shape))
    if not math.prod(wanted) or not shape[axis]:
        raise NotNative("of no elements")
    source, offset, strides = source_of(handle)
    found = index_into_axis(indices, shape[axis], strides[axis])
    if found is None:
        np.take_along_axis(np.broadcast_to(np.False_, shape), _on_host(indices), axis)
        raise AssertionError("NumPy takes what is out of bounds")
    steps = tuple([0 if n == 1 else s for n, s in zip(rest, strides, strict=True)])
    common = tuple(indices.shape)
    return result(gather_elements(source, Selection(wanted, offset, steps, [found], common)))


def _on_host(value: Any) -> Any:
    return HostArguments().to_host(value)


@native(np.ix_)
def ix_(*args: Any) -> tuple[Any, ...]:
    """Vectors of indices as an open mesh: ``a[ix_(rows, columns)]`` is a rectangle of `a`."""
    if any(is_subclass(type(item)) for item in args):
        raise NotNative("of a subclass of numpy.ndarray")
    made = []
    for place, item in enumerate(args):
        array = item if isinstance(item, Handle) else np.asarray(item)
        if len(array.shape) != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if array.dtype == BOOL:
            array = nonzero(array)[0] if isinstance(array, Handle) else np.nonzero(array)[0]
        if not math.prod(array.shape) and not isinstance(item, Handle | np.ndarray):
            array = np.zeros(0, np.intp)
        handle = array if isinstance(array, Handle) else _with_bounds(array)
        behind = (1,) * (len(args) - place - 1)
        made.append(reshape_view(handle, (1,) * place + handle._shape + behind))
    return tuple(made)


def _with_bounds(array: np.ndarray) -> Any:
    """A host array as one of ours that is known not to leave its bounds: no wait to find out."""
    handle = as_handle(array)
    if array.dtype.kind in "iu" and array.size:
        handle._storage.node.measured = int(array.min()), int(array.max())
    return handle


@native(np.choose, method=True)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """Of several arrays, at each place the element of the one that an integer names."""
    selector = _plain_indices(a)
    if isinstance(choices, Handle | np.ndarray):
        of_rows = len(choices.shape) > 1
        choices = list(choices if of_rows else _on_host(choices))  # type: ignore[arg-type] # no scalar
    count = len(choices)
    if selector.dtype.name == "uint64" or not 0 < count <= _MOST_CHOICES or mode not in _MODES:
        raise NotNative("not this many choices, or not by these")
    arrays = [as_handle(choice) for choice in choices]
    dtype = native_dtype(np.result_type(*[_type_of(choice) for choice in choices]))
    if dtype is None:
        raise NotNative("the choices are of another kind")
    nodes = [convert(node_of(array), dtype) for array in arrays]
    shape = np.broadcast_shapes(*[node.shape for node in nodes], tuple(selector.shape))
    if not math.prod(shape) or not math.prod(selector.shape):
        raise NotNative("of no elements")
    if mode == "raise":
        handle = as_handle(selector)
        found = within(node_of(handle), count)
        if found is None or found[0] < 0:
            raise ValueError("invalid entry in choice array")
        by = node_of(handle)
    else:
        moded = _moded(selector, count, 1, mode)
        assert moded is not None
        by = moded.node
    node = nodes[-1]
    for number in range(count - 2, -1, -1):
        mask = combine(np.equal, by, scalar(number, by.dtype))
        node = select_by_mask(mask, nodes[number], node, dtype, shape)
    return _delivered(build.broadcast(node, shape), out)


def _type_of(choice: Any) -> Any:
    return choice if type(choice) in (int, float, complex) else as_handle(choice)._dtype


# -- writing --------------------------------------------------------------------------------------


def _target(a: Any, what: str = "assignment destination") -> Handle:
    if isinstance(a, Handle) and not is_writeable(a):
        raise ValueError(f"{what} is read-only")
    return _array_of_elements(a)


def _array_of_elements(a: Any) -> Handle:
    if not isinstance(a, Handle):
        raise NotNative("the target is not an array of clfuse's")
    if type(a) in handles.SCALARS:
        raise TypeError("first operand must be array")
    if 0 in a._shape:
        raise NotNative("of no elements")
    return a


@native(np.put)
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write values to places of the flattened array; the last of several at one place stays."""
    if mode not in _MODES:
        raise NotNative("the places are of another kind")
    target = _target(a, "put: output array")
    places = _plain_indices(ind)
    values = _converted(v, target._dtype)
    if places.dtype.name == "uint64":
        raise NotNative("the places are of another kind")
    if not math.prod(places.shape) or not math.prod(values._shape):
        return
    if _put_by_kernel(target, places, values, mode):
        return
    if mode == "raise":
        size = math.prod(target._shape)
        if (found := index_into_axis(places, size, 1)) is None:
            numpys_selection((size,), _on_host(places).reshape(-1))
            raise AssertionError("NumPy puts what is out of bounds")
        node = found.node
    else:
        node = node_of(as_handle(places))
    mutate(target, "put", [node, cast_for_assignment(node_of(values), target._dtype)], mode)


def _put_by_kernel(target: Handle, places: Any, values: Handle, mode: str) -> bool:
    """`put` as a kernel, where the array lies in order; False where not."""
    size, count = math.prod(target._shape), math.prod(places.shape)
    offset, strides = layout(target)
    if strides != c_strides(target._shape) or not scatters(current_device().assumed_traits):
        return False
    found = _moded(places, size, 1, mode)
    if found is None:
        return False
    node = cast_for_assignment(node_of(values), target._dtype)
    chosen = Selection(tuple(places.shape), offset, (0,) * len(places.shape), [found])
    chosen.common = chosen.shape
    return scatter(target, chosen, build.reshape(repeated(node, count), chosen.shape))


def repeated(values: Node, count: int) -> Node:
    """The first `count` values, again from the first where there are fewer: (count,)."""
    size = math.prod(values.shape)
    flat = build.reshape(values, (size,))
    if size == 1:
        return build.broadcast(flat, (count,))
    if size >= count:
        return build.view(flat, (count,), 0, (1,))
    place = combine(np.remainder, build.iota(count), scalar(size, INT64))
    return build.gather(flat, place, (count,), 0, (0,))


def _mask_of(target: Handle, mask: Any, name: str) -> Node:
    handle = as_handle(mask)
    if math.prod(handle._shape) != math.prod(target._shape):
        raise ValueError(f"{name}: mask and data must be the same size")
    return build.reshape(convert(node_of(handle), BOOL), target._shape)


def _converted(values: Any, dtype: np.dtype) -> Handle:
    """What is written, as an array; NumPy converts what has no dtype of its own, and raises where
    `dtype` does not hold it."""
    kind = type(values)
    is_plain = kind in WEAK or (kind in (list, tuple) and not contains_handles(values))
    handle: Handle = as_handle(np.asarray(values, dtype) if is_plain else values)
    return handle


def _require_safe(function: Any, target: Handle, values: Any) -> None:
    """NumPy's TypeError where an array's values may not fit; those of lists are converted."""
    if isinstance(values, Handle | np.ndarray | np.generic) and not np.can_cast(
        values.dtype, target._dtype
    ):
        function(np.zeros(1, target._dtype), [False], np.zeros((1,) * values.ndim, values.dtype))


@native(np.putmask)
def putmask(a: Any, /, mask: Any, values: Any) -> None:
    """Write the value at each place where a mask is true; short values are repeated."""
    target = _target(a)
    chooser = _mask_of(target, mask, "putmask")
    given = _converted(values, target._dtype)
    size = math.prod(given._shape)
    if not size:
        return
    _require_safe(np.putmask, target, values)
    node = cast_for_assignment(node_of(given), target._dtype)
    if size == 1 or size == math.prod(target._shape):
        shape = target._shape if size > 1 else ()
        node = build.reshape(node, shape)
        choose_by_mask(target, chooser, node)
    elif scatters(current_device().assumed_traits):
        node = build.reshape(repeated(node, math.prod(target._shape)), target._shape)
        choose_by_mask(target, chooser, node)
    else:
        mutate(target, "putmask", [chooser, node], None)


@native(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    """Write the first values to the places where a mask is true, in order; again from the first."""
    target = _target(arr)
    chooser = _mask_of(target, mask, "place")
    given = _converted(vals, target._dtype)
    if not math.prod(given._shape):
        raise NotNative("of no values")
    _require_safe(np.place, target, vals)
    if scatters(current_device().assumed_traits) and math.prod(chooser.shape) > 1:
        count = tally_of(chooser).count
        if count:
            node = cast_for_assignment(node_of(given), target._dtype)
            written = write_by_mask(target, chooser, repeated(node, count))
            assert written
        return
    mutate(target, "place", [chooser, cast_for_assignment(node_of(given), target._dtype)], None)


@native(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    """Write values to the places that indices name along an axis, each in its own row."""
    target = _target(arr)
    if not isinstance(indices, Handle | np.ndarray) or indices.dtype.kind not in "iu":
        raise NotNative("the indices are no integer array")
    rank = len(target._shape)
    if axis is None or len(indices.shape) != rank or not math.prod(indices.shape):
        raise NotNative("not along one axis of the array")
    axis = np.lib.array_utils.normalize_axis_index(axis, rank)
    index = [
        np.arange(extent).reshape([-1 if other == dim else 1 for other in range(rank)])
        for dim, extent in enumerate(target._shape)
    ]
    assign(target, (*index[:axis], indices, *index[axis + 1 :]), values)


def at(function: np.ufunc, a: Any, indices: Any, operands: tuple[Any, ...]) -> None:
    """``ufunc.at``: through indices, once for every time that a place is named."""
    if errstate.mode[0] is errstate.STRICT:
        raise NotNative(errstate.CHECKED)
    target = _array_of_elements(a)
    if not is_writeable(target) and (
        # NumPy before 2.5 writes to it where index arrays name all that is written.
        AT_READ_ONLY or len(target._shape) != 1 or isinstance(indices, slice) or indices is ...
    ):
        raise NotNative("an error that depends on the indices")
    given = [
        as_handle(operand if isinstance(operand, Handle) else np.asarray(operand))
        for operand in operands
    ]
    if len(given) != function.nin - 1 or function is np.power:
        raise NotNative("an error that depends on the values")
    nothing = np.zeros(0, np.intp)
    function.at(np.zeros(1, target._dtype), nothing, *[np.zeros(0, g._dtype) for g in given])
    chosen = parse(target._shape, *layout(target), indices)
    if chosen is None:
        numpys_selection(target._shape, _on_host(indices))
        raise NotNative("the index selects nothing")
    nodes = []
    for operand in given:
        if len(operand._shape) > len(chosen.shape):  # not even extents of 1, as assignment takes
            raise ValueError("array is not broadcastable to correct shape")
        try:
            nodes.append(stretching(node_of(operand), chosen.shape))
        except ValueError:
            raise ValueError("array is not broadcastable to correct shape") from None
    if _combined(function, target, chosen, nodes):
        return
    arrays = [item.node for item in chosen.arrays]
    extra = function, chosen.template, len(arrays)
    mutate(target, "at", [*arrays, *nodes], extra, called=function.__name__)


def _combined(function: np.ufunc, target: Handle, chosen: Selection, nodes: list[Node]) -> bool:
    """``ufunc.at`` by kernels; False where they have not this operation on these dtypes."""
    if len(nodes) != 1:
        return False
    dtype, name = target._dtype, function.__name__
    loop_dtype = folding_dtype(function, dtype, nodes[0].dtype)
    if loop_dtype is None:
        return False
    if wraps_around(name, dtype, loop_dtype):
        loop_dtype = dtype
    node = convert(nodes[0], loop_dtype)
    if loop_dtype is dtype and combines(name, dtype.itemsize, dtype.kind):
        return scatter(target, chosen, node, name)
    return fold_in_order(target, chosen, node, name)
