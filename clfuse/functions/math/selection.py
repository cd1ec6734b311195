"""Elements chosen by conditions and bounds: where, select, clip, copyto, round, nan_to_num."""

from __future__ import annotations

import math
import warnings
from operator import index as as_index
from typing import Any

import numpy as np

from clfuse.arrays import handle as handles
from clfuse.arrays.conversion import (
    NotNative,
    as_handle,
    copied_node,
    host_view,
    requested_dtype,
    value_node,
)
from clfuse.arrays.expressions import broadcast_shapes, choose, combine, convert, scalar
from clfuse.arrays.handle import DTYPES, Handle, fresh, is_writeable, node_of, result, write
from clfuse.arrays.memory_order import (
    Permutation,
    arrange_axes,
    copy_in_order,
    copy_order,
    permuted_node,
    result_order,
    turned_nodes,
)
from clfuse.arrays.promotion import BOOL, WEAK, Casting, constant_of, weak_kind
from clfuse.arrays.views import reshape_view
from clfuse.dispatch.host_call import native
from clfuse.dispatch.registry import UFUNCS
from clfuse.functions import attributes
from clfuse.functions.indexing.masks import nonzero
from clfuse.functions.indexing.subscripts import fit_to_shape, put
from clfuse.ir import build
from clfuse.ir.nodes import Node, Op, loop
from clfuse.ir.traced_number import TracedNumber, concrete
from clfuse.numpy_releases import CHECKS_BOUNDS, CHECKS_CHOSEN, DEPRECATED_FUNCTIONS
from clfuse.user_frames import user_stacklevel

_Missing = np._NoValue


def _operand(value: Any) -> tuple[Any, Any]:
    """A value as what `numpy.result_type` is asked about, and as a handle or a weak Python
    scalar."""
    kind = weak_kind(value)
    if kind is not None:
        return (value if type(value) is kind else kind(1)), value
    handle = as_handle(value)
    return handle._dtype, handle


def _looked_at_ints(*values: Any) -> list[Any]:
    """A traced int may be one that the dtype does not hold, which decides what happens to it."""
    return [concrete(value) if weak_kind(value) is int else value for value in values]


def _as_node(value: Any, dtype: np.dtype) -> Node:
    if weak_kind(value) is not None:
        return constant_of(value, dtype)
    return convert(node_of(value), dtype)


def _wrapped_node(value: Any, dtype: np.dtype) -> Node:
    """Unlike operators, `select` wraps a Python int that the dtype does not hold."""
    if type(value) in WEAK:
        number = np.asarray(value).astype(dtype)[()]
        return build.constant(number)  # type: ignore[arg-type] # a scalar, for the stubs an array
    return _as_node(value, dtype)


_loops: dict[np.dtype, Op] = {
    dtype: loop("where", (BOOL, dtype, dtype), dtype) for dtype in DTYPES.values()
}


def _plain_node(value: Any, shape: tuple[int, ...], dtype: np.dtype) -> Node | None:
    """An operand of the usual kind as a node: an array of this shape and dtype that lies in C
    order, or a Python scalar that the dtype holds; None for all others."""
    kind = type(value)
    if kind is handles.ARRAY:
        view = value._view
        if value._dtype is not dtype or value._shape != shape:
            return None
        if view is None:
            return value._storage.node  # type: ignore[no-any-return]
        return node_of(value) if view.ordered else None
    if kind is TracedNumber and (value.kind is float or dtype.kind in "fc"):
        kind = value.kind
    if (kind is float and dtype.kind in "fc") or (kind is int and dtype.kind in "iufc"):
        try:
            return constant_of(value, dtype)
        except OverflowError:
            return None
    return None


def _where_alike(mask: Any, x: Any, y: Any) -> Any:
    """`where` of arrays of one shape and dtype, and scalars; None where it is not that simple."""
    shape = mask._shape
    if mask._dtype is not BOOL or not shape:
        return None
    dtype = x._dtype if type(x) is handles.ARRAY else y._dtype
    nodes = (
        _plain_node(mask, shape, BOOL),
        _plain_node(x, shape, dtype),
        _plain_node(y, shape, dtype),
    )
    if None in nodes:
        return None
    return handles.recorded_array(_loops[dtype], nodes, shape, dtype)  # type: ignore[arg-type]


@native(np.where)
def where(condition: Any, x: Any = _Missing, y: Any = _Missing, /) -> Any:
    """`x` where the condition is true, else `y`."""
    array = handles.ARRAY
    if type(condition) is array and (type(x) is array or type(y) is array):
        handle = _where_alike(condition, x, y)
        if handle is not None:
            return handle
    if x is _Missing:
        return nonzero(condition)
    if y is _Missing:
        raise ValueError("either both or neither of x and y should be given")
    x, y = _looked_at_ints(x, y)
    mask = as_handle(condition)
    (x_key, chosen), (y_key, other) = _operand(x), _operand(y)
    dtype = requested_dtype(np.result_type(x_key, y_key))
    assert dtype is not None
    node_for = _as_node if CHECKS_CHOSEN else _wrapped_node
    condition_node, x_node, y_node = node_of(mask), node_for(chosen, dtype), node_for(other, dtype)
    shape = broadcast_shapes(mask._shape, x_node.shape, y_node.shape)
    args = (mask, chosen, other)
    order = result_order(args, shape)
    if order is None:
        return fresh(choose(condition_node, x_node, y_node, dtype, shape))
    nodes = turned_nodes(args, (condition_node, x_node, y_node), shape, order)
    condition_node, x_node, y_node = nodes
    extents = tuple([shape[axis] for axis in order])
    return arrange_axes(choose(condition_node, x_node, y_node, dtype, extents), order)


@native(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """Of several arrays the one whose condition is the first to be true."""
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if len(condlist) == 0:
        raise ValueError("select with an empty condition list is not possible")
    conditions = [as_handle(condition) for condition in condlist]
    for place, condition in enumerate(conditions):
        if condition._dtype is not BOOL:
            raise TypeError(f"invalid entry {place} in condlist: should be boolean ndarray")
    operands = [_operand(choice) for choice in _looked_at_ints(*choicelist, default)]
    dtype = requested_dtype(np.result_type(*[key for key, _ in operands]))
    assert dtype is not None
    for _, item in operands[:-1]:  # NumPy casts the default unsafely
        if type(item) in WEAK and not np.can_cast(np.asarray(item).dtype, dtype, "same_kind"):
            raise NotNative("a choice that does not fit")
    nodes = [_wrapped_node(item, dtype) for _, item in operands]
    shape = broadcast_shapes(*[c._shape for c in conditions], *[node.shape for node in nodes])
    node = build.broadcast(nodes[-1], shape)
    for condition, chosen in zip(conditions[::-1], nodes[-2::-1], strict=True):
        node = choose(node_of(condition), chosen, node, dtype, shape)
    return fresh(node)


@native(np.copyto)
def copyto(dst: Any, src: Any, casting: Casting = "same_kind", where: Any = True) -> None:
    """Write one array into another, where a mask lets it."""
    if not isinstance(dst, Handle):
        raise NotNative("the target is not an array of clfuse's")
    if type(src) in (bool, int, float, complex):
        cast = np.empty((), dst._dtype)
        np.copyto(cast, src, casting=casting)  # infinities, too, where it is unsafe
        node = build.constant(cast[()])  # type: ignore[arg-type] # a scalar, for the stubs an array
    elif type(src) in WEAK:
        node = value_node(src, dst._dtype)
    else:
        source = as_handle(src)
        if not np.can_cast(source._dtype, dst._dtype, casting):
            raise TypeError(
                f"Cannot cast array data from {source._dtype!r} to {dst._dtype!r} according to the "
                f"rule '{casting}'"
            )
        node = copied_node(source, dst._dtype)
    if not is_writeable(dst):
        raise ValueError("assignment destination is read-only")
    node = fit_to_shape(node, dst._shape)
    if where is not True:
        mask = as_handle(where)
        if mask._dtype is not BOOL:
            raise TypeError(
                f"Cannot cast array data from {mask._dtype!r} to dtype('bool') according to the "
                "rule 'safe'"
            )
        chooser = fit_to_shape(node_of(mask), dst._shape)
        node = choose(chooser, node, node_of(dst), dst._dtype, dst._shape)
    write(dst, node)


# -- bounds and rounding --------------------------------------------------------------------------


@native(np.clip, method=True, numbers=True)
def clip(
    a: Any,
    a_min: Any = _Missing,
    a_max: Any = _Missing,
    out: Any = None,
    *,
    min: Any = _Missing,
    max: Any = _Missing,
    **kwargs: Any,
) -> Any:
    """The elements, none below `a_min` and none above `a_max`."""
    if a_min is _Missing and a_max is _Missing:
        low = None if min is _Missing else min
        high = None if max is _Missing else max
    elif a_min is _Missing or a_max is _Missing:
        missing = "a_min" if a_min is _Missing else "a_max"
        if min is not _Missing or max is not _Missing:
            raise ValueError(
                "Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is "
                "forbidden."
            )
        raise TypeError(f"clip() missing 1 required positional argument: '{missing}'")
    elif min is not _Missing or max is not _Missing:
        raise ValueError(
            "Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is "
            "forbidden."
        )
    else:
        low, high = a_min, a_max
    return clipped(a, low, high, out, **kwargs)


def clipped(a: Any, low: Any, high: Any, out: Any = None, **kwargs: Any) -> Any:
    """The elements between two bounds, of which either may be None."""
    handle = as_handle(a)
    if handle._dtype.kind in "iu" and not CHECKS_BOUNDS:
        # Bounds beyond what the dtype holds bound nothing.
        low, high = concrete(low), concrete(high)
        limits = np.iinfo(handle._dtype)
        low = None if type(low) is int and low <= limits.min else low
        high = None if type(high) is int and high >= limits.max else high
    if low is None and high is None:
        return UFUNCS["positive"](handle, out=out, **kwargs)
    if low is None:
        return UFUNCS["minimum"](handle, high, out=out, **kwargs)
    if high is None:
        return UFUNCS["maximum"](handle, low, out=out, **kwargs)
    return UFUNCS["clip"](handle, low, high, out=out, **kwargs)


@native(np.round, np.around, method=True, numbers=True)
def round(a: Any, decimals: Any = 0, out: Any = None) -> Any:
    """The elements rounded to a number of decimals, halves to even."""
    handle = as_handle(a)
    places = as_index(decimals)
    is_array = isinstance(out, handles.ARRAY | np.ndarray)
    if is_array and math.prod(out.shape) != math.prod(handle._shape):
        raise ValueError("invalid output shape")
    is_exact = handle._dtype.kind in "iu" and places >= 0
    shape = handle._shape
    more = len(shape) - len(out.shape) if is_array else 0
    if more > 0 and set(shape[:more]) == {1} and (is_exact or handle._dtype.kind == "c"):
        handle = reshape_view(handle, shape[more:])  # NumPy assigns them: axes of 1 may be missing
    if is_exact:
        return UFUNCS["positive"](handle, out=out)
    if handle._dtype.kind not in "fc":
        raise NotNative(f"of {handle._dtype} to {places} decimals")
    if places == 0:
        return UFUNCS["rint"](handle, out=out)
    if handle._dtype.kind == "c":
        # A product of complex numbers would lose the signs of zeros, and make NaN of infinities.
        made = copy_in_order(handle)
        for part in (attributes.real_part, attributes.imaginary_part):
            put(part(made), Ellipsis, round(part(handle), places))
        return UFUNCS["positive"](made, out=out)
    factor = 10.0 ** abs(places)
    first, last = ("multiply", "divide") if places > 0 else ("divide", "multiply")
    rounded = UFUNCS["rint"](UFUNCS[first](handle, factor, order="A"))
    return UFUNCS[last](rounded, factor, out=out)


around = round


@native(np.fix, numbers=True)
def fix(x: Any, out: Any = None) -> Any:
    """The elements rounded toward zero."""
    if np.fix in DEPRECATED_FUNCTIONS:
        warnings.warn(DEPRECATED_FUNCTIONS[np.fix], DeprecationWarning, user_stacklevel())
    return UFUNCS["trunc"](x, out=out)


@native(np.nan_to_num, numbers=True)
def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """The elements with numbers for NaN and the infinities."""
    if not copy and isinstance(x, np.ndarray):  # it is written to where it lies
        given: list[Any] = [
            host_view(each) if isinstance(each, Handle) else each for each in (nan, posinf, neginf)
        ]
        return np.nan_to_num(x, False, *given)
    if not copy and not isinstance(x, Handle):
        raise NotNative("of what is no array, in place")
    handle = as_handle(x)
    dtype = handle._dtype
    if dtype.kind != "f":
        if dtype.kind == "c" or not copy:
            raise NotNative(f"of {dtype}")
        return copy_in_order(handle) if handle._shape else result(node_of(handle))
    limits = np.finfo(dtype)
    order = None if not copy else copy_order(handle)
    node = node_of(handle) if order is None else permuted_node(handle, handle._shape, order)
    largest = limits.max if posinf is None else posinf
    least = limits.min if neginf is None else neginf
    infinity = scalar(np.inf, dtype)
    for test, value in (
        (combine(np.isnan, node), nan),
        (combine(np.equal, node, infinity), largest),
        (combine(np.equal, node, scalar(-np.inf, dtype)), least),
    ):
        replacement = _replacement(value, handle, order)
        node = choose(test, replacement, node, dtype, node.shape)
    if not copy:
        if not is_writeable(x):
            raise ValueError("assignment destination is read-only")
        write(x, node)
        return x if x._shape else result(node)
    return result(node) if order is None else arrange_axes(node, order)


def _replacement(value: Any, handle: Handle, order: Permutation | None) -> Node:
    """What stands in for elements of the array, with its axes in `order`: assigned to them as
    `numpy.copyto` does."""
    kind = value._dtype if isinstance(value, Handle) else np.asarray(value).dtype
    if not np.can_cast(kind, handle._dtype, "same_kind"):
        raise NotNative(f"with {kind} in place of what is none")
    node = value_node(value, handle._dtype)
    if not node.shape:
        return node
    stretched = fresh(fit_to_shape(node, handle._shape))
    return node_of(stretched) if order is None else permuted_node(stretched, handle._shape, order)
