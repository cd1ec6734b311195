"""mean, var, std and average, computed as NumPy computes them: sums, divided by counts."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from clfuse.arrays import errstate
from clfuse.arrays.conversion import (
    NotNative,
    as_handle,
    as_mask,
    cast_for_assignment,
    contains_handles,
    from_host,
    requested_dtype,
)
from clfuse.arrays.expressions import broadcast_shapes, choose, combine, convert
from clfuse.arrays.handle import Handle, native_dtype, node_of, result
from clfuse.arrays.host_array import affordable, known_elements
from clfuse.arrays.memory_order import Permutation, copy_in_order, copy_order, permuted_node
from clfuse.arrays.promotion import BOOL, FLOAT16, FLOAT32, FLOAT64, INT64
from clfuse.arrays.views import normalized_axes
from clfuse.dispatch.host_call import native
from clfuse.dispatch.record_cache import cache_recording
from clfuse.dispatch.registry import UFUNCS
from clfuse.engine.evaluate import evaluate_nodes
from clfuse.errors import warn_user
from clfuse.functions.indexing.masks import is_of_selected
from clfuse.ir import build, trace
from clfuse.ir.nodes import Node
from clfuse.numpy_releases import MEAN_OF_NOTHING
from clfuse.user_frames import user_stacklevel

from . import block_moments
from .folds import (
    deliver_reduction,
    fold_axes,
    in_memory_order,
    reduction_axes,
    together_in_memory_order,
)
from .reductions import element_count

_Missing = np._NoValue


class _Count:
    """How many elements go into each result: a number, or under a mask a node of counts."""

    def __init__(self, handle: Handle, axes: tuple[int, ...], where: Any) -> None:
        self.number = element_count(handle, axes)
        self.node: Node | None = None
        self.mask: Any = True
        if where is not True and where is not _Missing:
            self.mask = as_mask(where)
            full = build.broadcast(
                convert(node_of(self.mask), INT64),
                broadcast_shapes(self.mask._shape, handle._shape),
            )
            self.node = fold_axes(np.add, full, axes, INT64)
            self._shape, self._axes = full.shape, axes

    @property
    def is_nothing(self) -> bool:
        """Whether no element goes into any result, as is known without a mask."""
        return self.mask is True and not self.number

    @property
    def least(self) -> int | None:
        """The smallest count; None where a mask would have to be calculated first."""
        if self.mask is True:
            return self.number
        seen = known_elements(self.mask)
        if seen is None or not affordable(math.prod(self._shape)):
            return None
        counts = np.count_nonzero(np.broadcast_to(seen, self._shape), axis=self._axes)
        return int(np.min(counts)) if np.size(counts) else None

    def divide(
        self,
        total: Node,
        ddof: Any,
        shape: tuple[int, ...] | None = None,
        *,
        few_are_nan: bool = False,
        warns: bool = False,
    ) -> Node:
        """`total` by the count less `ddof`, in the dtype of `total`; where that is below 0 it is 0,
        or NaN. `warns` as NumPy's division does."""
        dtype = total.dtype
        if warns and self.is_nothing and dtype.kind in "fc":
            return _nothing_by_nothing(dtype, total.shape if shape is None else shape)
        real = np.dtype(f"float{4 * dtype.itemsize}") if dtype.kind == "c" else dtype
        if dtype.kind in "biu":
            double = requested_dtype(float)
            assert double is not None
            real = double
        if self.node is None:
            count = build.constant(real.type(builtin_max(self.number - ddof, 0)))
        else:
            count = convert(self.node, real)
            if ddof:
                less = combine(np.subtract, count, build.constant(real.type(ddof)))
                least = build.constant(real.type(0))
                if few_are_nan:
                    nan = build.constant(real.type(np.nan))
                    count = choose(combine(np.greater, less, least), less, nan, real, less.shape)
                else:
                    count = combine(np.maximum, less, least)
            if shape is not None:
                count = build.reshape(count, shape)
        divided = _by_number(total, count)
        if warns and self.least is not None and self.least <= ddof:  # 0 / 0
            divided = errstate.apply_errstate(divided, "divide" if total.shape else "scalar divide")
        return convert(divided, dtype)


builtin_max = max


def _nothing_by_nothing(dtype: np.dtype, shape: tuple[int, ...]) -> Node:
    """The sums of no elements by their number. NumPy warns of it at the call."""
    if math.prod(shape) and errstate.mode[0] is errstate.LOUD and np.geterr()["invalid"] == "warn":
        is_scalars = not shape and dtype.char in "dD"  # others are divided in a wider dtype
        called = "scalar divide" if is_scalars else "divide"
        warn_user(f"invalid value encountered in {called}", RuntimeWarning)
    not_a_number = complex(np.nan, np.nan) if dtype.kind == "c" else np.nan
    return build.full(dtype.type(not_a_number), shape)


def _by_number(total: Node, count: Node) -> Node:
    """The quotient. NumPy divides complex64 by counts in double precision; as a complex number the
    count would be multiplied by as its reciprocal, which is rounded once more."""
    if total.dtype.char != "F":
        return combine(np.divide, total, count)
    part = count.dtype
    nothing = build.constant(part.type(0))
    real, imaginary = (
        build.apply(name, (total,), part, total.shape) for name in ("real", "imag")
    )
    # Both are NaN where one part is infinite, as in a quotient of complex numbers.
    turned = (
        combine(np.add, real, combine(np.multiply, imaginary, nothing)),
        combine(np.subtract, imaginary, combine(np.multiply, real, nothing)),
    )
    quotients = [combine(np.divide, each, count) for each in turned]
    return build.apply("make_complex", tuple(quotients), total.dtype, quotients[0].shape)


def _require_array(where: Any) -> None:
    """`NotNative` for masks that NumPy has to say of what they are: numbers, texts, objects, and
    lists of them. NumPy takes the elements that are true, and divides by the sum of the list."""
    if isinstance(where, bool) or where is _Missing:
        return
    if not isinstance(where, Handle | np.ndarray | np.generic | list | tuple):
        raise NotNative("a mask that is no array")
    is_list = isinstance(where, list | tuple) and not contains_handles(where)
    if is_list and np.asarray(where).dtype != BOOL:
        raise NotNative("a mask that is a list of numbers")


def _axes(handle: Handle, axis: Any, where: Any = True) -> tuple[int, ...]:
    """The axes named; unlike the ufuncs' reductions these know no axis 0 of a 0-d array."""
    if (
        axis is not None
        and not handle._shape
        and axis != ()
        and (where is True or where is _Missing)
    ):
        raise np.exceptions.AxisError(axis[0] if isinstance(axis, tuple) else axis, 0)
    return reduction_axes(axis, len(handle._shape))


def _computing_dtype(handle: Handle, dtype: Any) -> np.dtype:
    """In what the sums are made: float64 for integers, float32 for float16."""
    wanted = requested_dtype(dtype)
    if wanted is not None:
        return wanted
    if handle._dtype.kind in "biu":
        wanted = native_dtype(FLOAT64)
        assert wanted is not None
        return wanted
    return FLOAT32 if handle._dtype is FLOAT16 else handle._dtype


def _through(total: Node, out: Any) -> Node:
    """A sum as NumPy divides it: it lies in `out` already, in its dtype."""
    if not isinstance(out, Handle | np.ndarray):
        return total
    dtype = requested_dtype(out.dtype)
    assert dtype is not None
    return cast_for_assignment(total, dtype) if total.dtype.kind == "c" else convert(total, dtype)


def _kept(handle: Handle, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([1 if place in axes else n for place, n in enumerate(handle._shape)])


@native(np.mean, method=True, numbers=True)
@cache_recording
def mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = _Missing,
    *,
    where: Any = _Missing,
) -> Any:
    """Arithmetic mean over axes; integers in float64, float16 through float32."""
    return _mean(a, axis, dtype, out, keepdims, where, MEAN_OF_NOTHING)


def _mean(
    a: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, where: Any, of_nothing: str
) -> Any:
    """`mean`, and what it warns with where there is no element."""
    handle = as_handle(a)
    _require_array(where)
    axes = _axes(handle, axis, where)
    computing = _computing_dtype(handle, dtype)
    handle, axes, where, order = in_memory_order(handle, axes, where, out)
    count = _Count(handle, axes, where)
    if count.least == 0:
        warnings.warn(of_nothing, RuntimeWarning, user_stacklevel())
    node = node_of(handle)
    is_selection = len(axes) == len(handle._shape) and is_of_selected(node)
    if (
        count.mask is True
        and not is_selection
        and block_moments.are_worth_while(handle._shape, axes, computing)
    ):
        total = block_moments.Blocks(node, axes, computing).total()
    else:
        total = fold_axes(np.add, node, axes, computing, where=count.mask, called="reduce")
    # With a mask it may be `nanmean`, which says nothing of the division.
    node = count.divide(_through(total, out), 0, warns=count.mask is True)
    if dtype is None and out is None and handle._dtype is FLOAT16:
        node = convert(node, FLOAT16)
    return deliver_reduction(node, handle._shape, axes, out, keepdims, order)


def _variance(
    a: Any,
    axis: Any,
    dtype: Any,
    out: Any,
    ddof: Any,
    where: Any,
    mean: Any,
    correction: Any,
    *,
    few_are_nan: bool = False,
) -> tuple[Node, Handle, tuple[int, ...], Permutation | None]:
    """The variance without its reduced axes, in the computing dtype; what was reduced, its axes and
    their order in memory."""
    if correction is not _Missing:
        if ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    handle = as_handle(a)
    _require_array(where)
    axes = _axes(handle, axis, where)
    computing = _computing_dtype(handle, dtype)
    shape = handle._shape
    given = None if mean is _Missing else as_handle(mean)
    if given is not None and broadcast_shapes(shape, given._shape) != shape:
        raise NotNative("about means of another shape")
    handle, axes, where, order = in_memory_order(handle, axes, where, out)
    count = _Count(handle, axes, where)
    least = count.least
    if least is not None and ddof >= least:
        dot = "." if few_are_nan else ""
        warnings.warn(f"Degrees of freedom <= 0 for slice{dot}", RuntimeWarning, user_stacklevel())
    node = node_of(handle)
    kept = _kept(handle, axes)
    in_blocks = given is None and count.mask is True and out is None and node.dtype is computing
    if in_blocks and block_moments.are_worth_while(node.shape, axes, computing):
        squares = block_moments.Blocks(node, axes, computing).squares()
        return count.divide(squares, ddof), handle, axes, order
    # What is masked may be an infinity less an infinity.
    warned = ("reduce", "subtract", "square") if count.mask is True else ("", "", "")
    summed, subtracted, squared = warned
    if given is None:
        total = fold_axes(np.add, node, axes, computing, where=count.mask, called=summed)
        loud = count.is_nothing and not few_are_nan
        center = count.divide(build.reshape(total, kept), 0, kept, warns=loud)
    else:
        center = node_of(given) if order is None else permuted_node(given, shape, order)
    distance = errstate.apply_errstate(combine(np.subtract, node, center), subtracted)
    if node.dtype.kind == "c":  # of real numbers in a complex dtype it is a complex one
        part = np.dtype(f"float{4 * distance.dtype.itemsize}")
        parts = [build.apply(name, (distance,), part, distance.shape) for name in ("real", "imag")]
        square = combine(np.add, *[combine(np.multiply, p, p) for p in parts])
        computing = part if computing.kind == "c" and dtype is None else computing
    else:
        square = errstate.apply_errstate(combine(np.multiply, distance, distance), squared)
    if given is not None and dtype is None:  # NumPy knows no dtype but the differences'
        computing = np.result_type(computing, square.dtype)
    total = fold_axes(np.add, square, axes, computing, where=count.mask, called=summed)
    loud = not few_are_nan
    divided = count.divide(_through(total, out), ddof, few_are_nan=few_are_nan, warns=loud)
    return divided, handle, axes, order


def _spread(
    node: Node,
    handle: Handle,
    axes: Any,
    order: Permutation | None,
    dtype: Any,
    out: Any,
    keepdims: Any,
    mean: Any,
) -> Any:
    halves = handle._dtype is FLOAT16 and (mean is _Missing or as_handle(mean)._dtype is FLOAT16)
    if dtype is None and out is None and halves:
        node = convert(node, FLOAT16)
    return deliver_reduction(node, handle._shape, axes, out, keepdims, order)


def _root(variance: Node, out: Any, keepdims: Any) -> Node:
    """The square root of a variance, in its dtype.

    Raises UFuncTypeError: `out`, or the dtype that was asked for, holds integers and the result is
        an array: the variance may be cast to them, the root may not.
    """
    written = out.dtype if isinstance(out, Handle | np.ndarray) else variance.dtype
    is_array = out is not None or variance.shape or (keepdims is not _Missing and keepdims)
    if is_array and written.kind in "biu":
        refused = np.empty(0, written)
        np.sqrt(refused, out=refused)
    return convert(combine(np.sqrt, variance), variance.dtype)


@native(np.var, method=True, numbers=True)
@cache_recording
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = _Missing,
    *,
    where: Any = _Missing,
    mean: Any = _Missing,
    correction: Any = _Missing,
) -> Any:
    """Variance over axes, in two passes as NumPy makes it: over rows, or over blocks of them."""
    node, handle, axes, order = _variance(a, axis, dtype, out, ddof, where, mean, correction)
    return _spread(node, handle, axes, order, dtype, out, keepdims, mean)


@native(np.std, method=True, numbers=True)
@cache_recording
def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = _Missing,
    *,
    where: Any = _Missing,
    mean: Any = _Missing,
    correction: Any = _Missing,
) -> Any:
    """Standard deviation over axes: the square root of the variance."""
    node, handle, axes, order = _variance(a, axis, dtype, out, ddof, where, mean, correction)
    root = _root(node, out, keepdims)
    return _spread(root, handle, axes, order, dtype, out, keepdims, mean)


@native(np.average)
def average(
    a: Any,
    axis: Any = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: Any = _Missing,
) -> Any:
    """Weighted mean over axes.

    Whether weights add up to zero, which is an error, is looked at here: with weights it is
    computed at the call, but in functions that are traced.

    Raises
    ------
    ZeroDivisionError
        The weights of a result add up to zero.
    """
    handle = as_handle(a)
    axis = None if axis is None else normalized_axes(axis, len(handle._shape))
    if weights is None:
        value = mean(handle, axis, keepdims=keepdims)
        if 0 in value._shape:
            raise ZeroDivisionError("division by zero")  # NumPy's sum of no weights
        if not returned:
            return value
        axes = _axes(handle, axis)
        number = build.constant(value._dtype.type(element_count(handle, axes)))
        return value, result(build.broadcast(number, value._shape))
    weight = as_handle(weights)
    if weight._shape != handle._shape or returned:
        raise NotNative("weights of another shape, or their sum returned")
    axes = _axes(handle, axis)
    common = np.result_type(handle._dtype, weight._dtype)
    if handle._dtype.kind in "biu":
        common = np.result_type(common, FLOAT64)
    dtype = requested_dtype(common)
    assert dtype is not None
    (handle, weight), axes, order = together_in_memory_order((handle, weight), axes)
    total = fold_axes(np.add, convert(node_of(weight), dtype), axes, dtype)
    product = combine(np.multiply, convert(node_of(handle), dtype), convert(node_of(weight), dtype))
    node = combine(np.divide, fold_axes(np.add, product, axes, dtype), total)
    if trace.active() is None:
        evaluate_nodes((total, node))  # together: the weights are read once
        if not np.asarray(result(total)).all():
            raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    return deliver_reduction(node, handle._shape, axes, None, keepdims, order)


# -- without NaN ----------------------------------------------------------------------------------


def _present(a: Any, where: Any) -> tuple[Handle, Any]:
    """The array, and as a mask which of its elements count: those that are not NaN."""
    handle = as_handle(a)
    if handle._dtype.kind not in "fc":
        return handle, where
    if copy_order(handle) is not None:
        handle = copy_in_order(handle)
    seen = known_elements(handle)
    if seen is not None and affordable(2 * seen.size):
        present = from_host(~np.isnan(seen))
    else:
        present = UFUNCS["logical_not"](UFUNCS["isnan"](handle))
    if where is not _Missing:
        present = UFUNCS["logical_and"](present, as_mask(where))
    return handle, present


def _check_inexact(handle: Any, dtype: Any, out: Any) -> None:
    """Raise what NumPy raises for results that cannot hold the mean of floating-point numbers."""
    if handle._dtype.kind in "fc":
        if dtype is not None and np.dtype(dtype).kind not in "fc":
            raise TypeError("If a is inexact, then dtype must be inexact")
        if out is not None and out.dtype.kind not in "fc":
            raise TypeError("If a is inexact, then out must be inexact")


@native(np.nanmean)
def nanmean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = _Missing,
    *,
    where: Any = _Missing,
) -> Any:
    """Mean over axes of what is not NaN."""
    handle, mask = _present(a, where)
    _check_inexact(handle, dtype, out)
    return _mean(handle, axis, dtype, out, keepdims, mask, "Mean of empty slice")


def _nan_variance(
    a: Any, axis: Any, dtype: Any, out: Any, ddof: Any, where: Any, mean: Any, correction: Any
) -> tuple[Node, Handle, tuple[int, ...], Permutation | None]:
    """`_variance` of what is not NaN."""
    handle, mask = _present(a, where)
    _check_inexact(handle, dtype, out)
    wide = handle._dtype if mean is _Missing else as_handle(mean)._dtype
    if np.result_type(handle._dtype, wide) != handle._dtype:
        raise NotNative("about means of a wider dtype")  # NumPy puts the distances into a copy
    few_are_nan = handle._dtype.kind in "fc"  # of integers it is `var`
    return _variance(
        handle, axis, dtype, out, ddof, mask, mean, correction, few_are_nan=few_are_nan
    )


@native(np.nanvar)
def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = _Missing,
    *,
    where: Any = _Missing,
    mean: Any = _Missing,
    correction: Any = _Missing,
) -> Any:
    """Variance over axes of what is not NaN."""
    node, handle, axes, order = _nan_variance(a, axis, dtype, out, ddof, where, mean, correction)
    return _spread(node, handle, axes, order, dtype, out, keepdims, mean)


@native(np.nanstd)
def nanstd(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = _Missing,
    *,
    where: Any = _Missing,
    mean: Any = _Missing,
    correction: Any = _Missing,
) -> Any:
    """Standard deviation over axes of what is not NaN."""
    node, handle, axes, order = _nan_variance(a, axis, dtype, out, ddof, where, mean, correction)
    root = _root(node, out, keepdims)
    return _spread(root, handle, axes, order, dtype, out, keepdims, mean)
