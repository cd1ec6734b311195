"""Products of vectors and matrices, and norms.

`matmul` runs the host's BLAS on the device's own memory. Products with a vector are multiplications
and sums, which fuse with the operations around them.
"""

from __future__ import annotations

import math
from functools import cache
from operator import index as as_index
from typing import Any, Final

import numpy as np

from clfuse.arrays import errstate
from clfuse.arrays.conversion import NotNative, as_handle, requested_dtype
from clfuse.arrays.expressions import combine, convert, scalar, shape_text
from clfuse.arrays.handle import Handle, fresh, native_dtype, node_of, result
from clfuse.arrays.promotion import BOOL
from clfuse.arrays.views import (
    completed_shape,
    diagonal_of,
    normalized_axis,
    permute_axes,
    reshape_view,
    with_possible_rank,
)
from clfuse.dispatch.host_call import host_call, native
from clfuse.dispatch.numpy_errors import preferred_error
from clfuse.dispatch.overrides import answers_itself, refuse_foreign
from clfuse.dispatch.record_cache import cache_recording
from clfuse.dispatch.registry import BY_NUMPY, UFUNCS
from clfuse.eager import before
from clfuse.functions.math.folds import deliver_reduction, fold, fold_axes
from clfuse.functions.math.ufunc import ufunc
from clfuse.functions.shaping.joining import deliver_joined as written
from clfuse.functions.shaping.joining import stack
from clfuse.functions.shaping.manipulation import moveaxis
from clfuse.ir import build
from clfuse.ir.nodes import Kind, Node

_Missing = np._NoValue


def _product_dtype(left: Handle, right: Handle) -> np.dtype:
    dtype = native_dtype(_resolved(left._dtype, right._dtype))
    if dtype is None:
        raise NotNative(f"of {left._dtype} and {right._dtype}")
    return dtype


@cache
def _resolved(left: np.dtype, right: np.dtype) -> np.dtype:
    return np.matmul.resolve_dtypes((left, right, None))[2]


def _inner(left: Node, right: Node, dtype: np.dtype, called: str) -> Node:
    """Sum of products over the last axis of operands that broadcast; wraps as `dtype` does.

    `called` is the name under which NumPy warns of floating-point errors.
    """
    product = combine(np.multiply, convert(left, dtype), convert(right, dtype))
    if dtype.kind in "fc":
        errstate.apply_errstate(product, called)
    function = np.logical_or if dtype is BOOL else np.add
    return fold_axes(function, product, (len(product.shape) - 1,), dtype, called=called)


def product_node(left: Handle, right: Handle, called: str = "matmul") -> Node:
    """``left @ right`` as a node; NumPy warns of floating-point errors in what it has `called`."""
    dtype = _product_dtype(left, right)
    shapes = left._shape, right._shape
    for position, shape in enumerate(shapes):
        if not shape:
            raise ValueError(
                f"matmul: Input operand {position} does not have enough dimensions (has 0, gufunc "
                "core with signature (n?,k),(k,m?)->(n?,m?) requires 1)"
            )
    one, two = shapes
    inner = two[0] if len(two) == 1 else two[-2]
    if one[-1] != inner:
        raise ValueError(
            "matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc "
            f"signature (n?,k),(k,m?)->(n?,m?) (size {inner} is different from {one[-1]})"
        )
    a, b = node_of(left), node_of(right)
    if len(two) == 1:
        return _inner(a, b, dtype, called)
    if len(one) == 1:
        transposed = node_of(right.swapaxes(-1, -2))
        return _inner(a, transposed, dtype, called)
    batch = np.broadcast_shapes(one[:-2], two[:-2]) if len(one) + len(two) > 4 else ()
    shape = (*batch, one[-2], two[-1])
    if 0 in one or 0 in two:
        return build.full(dtype.type(0), shape)
    made = build.library("matmul", (convert(a, dtype), convert(b, dtype)), shape, dtype)
    return errstate.apply_errstate(made, called) if dtype.kind in "fc" else made


def _weak_operand(value: Any, other: Any) -> Any:
    """An operand; a Python scalar, which `matmul` refuses, first has to fit the other's dtype."""
    if type(value) is int and isinstance(other, Handle) and other._dtype.kind in "iu":
        other._dtype.type(value)
    return as_handle(value)


_OPTIONS: Final = {
    "casting": "same_kind", "order": "K", "subok": True, "dtype": None, "signature": None,
}  # fmt: skip
"""Options that change nothing."""


def matmul(x1: Any, x2: Any, /, out: Any = None, **options: Any) -> Any:
    """The product of matrices, of stacks of them, and of vectors."""
    if isinstance(out, tuple) and len(out) == 1:
        (out,) = out
    try:
        if errstate.mode[0] is errstate.STRICT:
            raise NotNative(errstate.CHECKED)
        if not all(_OPTIONS.get(name, np._NoValue) == value for name, value in options.items()):
            raise NotNative("with options of a generalized ufunc")
        if answers_itself(x1) or answers_itself(x2):
            return np.matmul(x1, x2, **options, **({} if out is None else {"out": out}))
        refuse_foreign(x1)
        refuse_foreign(x2)
        if out is not None and not isinstance(out, Handle | np.ndarray):
            raise NotNative("to what is no array")
        if out is not None and not out.shape:  # to NumPy vectors are missing their axes there
            raise NotNative("to an output without axes")
        left, right = (_weak_operand(one, two) for one, two in ((x1, x2), (x2, x1)))
        node = product_node(left, right)
        if out is None:
            return result(node)
        if not np.can_cast(node.dtype, out.dtype, "same_kind"):
            raise NotNative("to an output of another kind")  # NumPy's error, from NumPy
        if tuple(out.shape) != node.shape:
            raise NotNative("to an output of another shape")
        return written(node, out)
    except NotNative as missing:
        reason = str(missing)
    except Exception as error:  # noqa: BLE001 (NumPy says which it is)
        wrong = preferred_error(error, np.matmul, (x1, x2), {**options, "out": out})
        if wrong is not None:
            raise wrong from None
        reason = str(error)
    if out is not None:
        options["out"] = out
    return host_call(np.matmul, (x1, x2), options, reason, library=True)


class _Matmul(ufunc):
    """`numpy.matmul` as a ufunc object."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return matmul(*args, **kwargs)


def _conjugated(handle: Handle) -> Node:
    node = node_of(handle)
    return combine(np.conjugate, node) if node.dtype.kind == "c" else node


def _with_axis(node: Node, place: int) -> Node:
    """The node with an axis of one element more, counted from the back."""
    shape = list(node.shape)
    shape.insert(len(shape) + 1 + place, 1)
    return build.reshape(node, tuple(shape))


def vector_product(function: np.ufunc, left: Handle, right: Handle) -> Node:
    """``vecdot``, ``matvec`` and ``vecmat`` as a node: products and sums, which fuse."""
    name = function.__name__
    dtype = native_dtype(function.resolve_dtypes((left._dtype, right._dtype, None))[2])
    ranks = {"vecdot": (1, 1), "matvec": (2, 1), "vecmat": (1, 2)}[name]
    shapes = left._shape, right._shape
    if dtype is None or any(len(s) < least for s, least in zip(shapes, ranks, strict=True)):
        raise NotNative("of other dtypes, or of too few axes")
    one = node_of(left) if name == "matvec" else _conjugated(left)
    two = node_of(right)
    if name == "matvec":
        two = _with_axis(two, -2)
    elif name == "vecmat":
        one, two = _with_axis(one, -2), node_of(right.swapaxes(-1, -2))
    if one.shape[-1] != two.shape[-1]:
        raise NotNative("of vectors of other lengths")
    return _inner(one, two, dtype, name)


def _is_default(name: str, value: Any) -> bool:
    """Whether an option of a vector product says what is done without it."""
    return value is None if name == "out" else name == "axis" and type(value) is int and value == -1


class _VectorProduct(ufunc):
    """A generalized ufunc that multiplies vectors."""

    def __init__(self, function: np.ufunc) -> None:
        super().__init__(function)
        self._call = before(function, self._record)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def _record(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 3 and "out" not in kwargs:
            kwargs = {**kwargs, "out": args[2]}
            args = args[:2]
        try:
            if errstate.mode[0] is errstate.STRICT:
                raise NotNative(errstate.CHECKED)
            if len(args) != 2 or not all(map(_is_default, kwargs, kwargs.values())):
                raise NotNative("with options of a generalized ufunc")
            left, right = (_weak_operand(*pair) for pair in (args, args[::-1]))
            return result(vector_product(self.numpy, left, right))
        except NotNative as missing:
            return host_call(self.numpy, args, kwargs, str(missing), library=True)


for _function in list(BY_NUMPY):
    if _function.signature is not None:
        _ours = (_Matmul if _function is np.matmul else _VectorProduct)(_function)
        BY_NUMPY[_function] = UFUNCS[_function.__name__] = _ours
vecdot = UFUNCS["vecdot"]


@native(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """The product of two arrays: of vectors a sum, of matrices `matmul`."""
    left, right = as_handle(a), as_handle(b)
    return _dot(left, right, out, "dot")


def _dot(left: Handle, right: Handle, out: Any, called: str) -> Any:
    if not left._shape or not right._shape:
        # NumPy asks BLAS where BLAS knows the dtype, and that wants an exact `out`.
        dtype = np.result_type(left._dtype, right._dtype)
        exact = dtype.char in "fdFD" and max(len(left._shape), len(right._shape)) <= 2
        made = UFUNCS["multiply"](left, right, out=None if exact else out)
        if isinstance(made, Handle) and made._storage.node.op.kind is Kind.MAP:
            errstate.apply_errstate(made._storage.node, called)
        return _exactly(node_of(as_handle(made)), out) if exact and out is not None else made
    axis = -1 if len(right._shape) == 1 else -2
    if left._shape[-1] != right._shape[axis]:
        place = len(right._shape) + axis
        raise ValueError(
            f"shapes {_text(left)} and {_text(right)} not aligned: {left._shape[-1]} "
            f"(dim {len(left._shape) - 1}) != {right._shape[axis]} (dim {place})"
        )
    if len(right._shape) > 2 or (len(left._shape) > 2 and len(right._shape) > 1):
        made = tensordot(left, right, (-1, -2))
        return made if out is None else _exactly(node_of(as_handle(made)), out)
    node = product_node(left, right, called)
    return result(node) if out is None else _exactly(node, out)


def _exactly(node: Node, out: Any) -> Any:
    if tuple(out.shape) != node.shape or out.dtype != node.dtype or not out.flags.c_contiguous:
        raise ValueError(
            "output array is not acceptable (must have the right datatype, number of dimensions, "
            "and be a C-Array)"
        )
    return written(node, out)


def _text(handle: Handle) -> str:
    return shape_text(handle._shape)


@native(np.vdot)
def vdot(a: Any, b: Any, /) -> Any:
    """The sum of products of all elements, those of `a` conjugated."""
    left, right = as_handle(a), as_handle(b)
    size = math.prod(left._shape)
    left = reshape_view(left, (size,))
    right = reshape_view(right, completed_shape((size,), math.prod(right._shape)))
    if left._dtype.kind == "c":
        left = UFUNCS["conjugate"](left)
    return _dot(left, right, None, "")  # which does not warn


@native(np.inner)
def inner(a: Any, b: Any, /) -> Any:
    """Sums of products over the last axes."""
    left, right = as_handle(a), as_handle(b)
    if not left._shape or not right._shape:
        return dot(left, right)
    if left._shape[-1] != right._shape[-1]:
        raise ValueError(
            f"shapes {_text(left)} and {_text(right)} not aligned: {left._shape[-1]} "
            f"(dim {len(left._shape) - 1}) != {right._shape[-1]} (dim {len(right._shape) - 1})"
        )
    if len(right._shape) == 1:
        return dot(left, right)
    return tensordot(left, right, (-1, -1))


@native(np.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    """Products of all pairs of elements."""
    left, right = as_handle(a), as_handle(b)
    column = reshape_view(left, (math.prod(left._shape), 1))
    return UFUNCS["multiply"](column, reshape_view(right, (math.prod(right._shape),)), out=out)


def _listed_axes(chosen: Any) -> list[Any]:
    try:
        len(chosen)
    except TypeError:
        return [chosen]
    return list(chosen)


@native(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Sums of products over chosen axes of two arrays."""
    left, right = as_handle(a), as_handle(b)
    ranks = len(left._shape), len(right._shape)
    try:
        first, second = axes
    except TypeError:
        count = as_index(axes)
        first, second = list(range(-count, 0)), list(range(count))
    first, second = _listed_axes(first), _listed_axes(second)
    if any(len(set(chosen)) != len(chosen) for chosen in (first, second)):
        raise ValueError("duplicate axes are not allowed in tensordot")
    if len(first) != len(second):
        raise ValueError("shape-mismatch for sum")
    first, second = list(map(as_index, first)), list(map(as_index, second))
    if any(
        not -rank <= axis < rank
        for rank, chosen in zip(ranks, (first, second), strict=True)
        for axis in chosen
    ):
        raise ValueError("shape-mismatch for sum")
    first = [axis % ranks[0] for axis in first]
    second = [axis % ranks[1] for axis in second]
    extents = [left._shape[axis] for axis in first]
    if extents != [right._shape[axis] for axis in second]:
        raise ValueError("shape-mismatch for sum")
    free_left = [axis for axis in range(ranks[0]) if axis not in first]
    free_right = [axis for axis in range(ranks[1]) if axis not in second]
    shape = with_possible_rank(tuple(
        [left._shape[axis] for axis in free_left] + [right._shape[axis] for axis in free_right]
    ))
    summed = math.prod(extents)
    rows = math.prod([left._shape[axis] for axis in free_left])
    columns = math.prod([right._shape[axis] for axis in free_right])
    one = reshape_view(permute_axes(left, free_left + first), (rows, summed))
    two = reshape_view(permute_axes(right, second + free_right), (summed, columns))
    if not free_right:
        node = product_node(one, reshape_view(two, (summed,)), "dot")
    elif not free_left:
        node = product_node(reshape_view(one, (summed,)), two, "dot")
    else:
        node = product_node(one, two, "dot")
    return fresh(build.reshape(node, shape))


@native(np.kron)
def kron(a: Any, b: Any) -> Any:
    """Every element of `a` times all of `b`, in blocks."""
    left, right = as_handle(a), as_handle(b)
    rank = max(len(left._shape), len(right._shape))
    shapes = [(1,) * (rank - len(h._shape)) + h._shape for h in (left, right)]
    spread = [
        [extent for pair in zip(shapes[0], (1,) * rank, strict=True) for extent in pair],
        [extent for pair in zip((1,) * rank, shapes[1], strict=True) for extent in pair],
    ]
    product = UFUNCS["multiply"](
        reshape_view(left, tuple(spread[0])), reshape_view(right, tuple(spread[1]))
    )
    extents = tuple([one * two for one, two in zip(*shapes, strict=True)])
    return result(build.reshape(node_of(product), extents))


@native(np.cross)
def cross(
    a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None
) -> Any:
    """The vector products of vectors of three components."""
    if axis is not None:
        axisa = axisb = axisc = axis
    left, right = as_handle(a), as_handle(b)
    if not left._shape or not right._shape:
        raise ValueError("At least one array has zero dimension")
    normalized_axis(axisa, len(left._shape), "axisa")
    normalized_axis(axisb, len(right._shape), "axisb")
    left, right = moveaxis(left, axisa, -1), moveaxis(right, axisb, -1)
    if left._shape[-1] != 3 or right._shape[-1] != 3:
        raise NotNative("of vectors that have not three components")
    a0, a1, a2 = (left[..., place] for place in range(3))
    b0, b1, b2 = (right[..., place] for place in range(3))
    parts = [a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0]
    return moveaxis(stack(parts, -1), -1, axisc)


@native(np.trace, method=True)
def trace(
    a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None
) -> Any:
    """The sum of a diagonal."""
    return fold(
        np.add,
        diagonal_of(as_handle(a), offset, axis1, axis2),
        -1,
        dtype,
        out,
        False,
        _Missing,
        True,
    )


# -- numpy.linalg ---------------------------------------------------------------------------------


def _root_of_squares(node: Node, axes: tuple[int, ...], called: tuple[str, str]) -> Node:
    """The root of the sum of squares along `axes`; the squares and their sum err by the names
    `called`."""
    squared, summed = called
    if node.dtype.kind == "c":
        part = np.dtype(f"float{4 * node.dtype.itemsize}")
        parts = [build.apply(name, (node,), part, node.shape) for name in ("real", "imag")]
        squares = [combine(np.multiply, item, item) for item in parts]
        total = combine(np.add, *[errstate.apply_errstate(item, squared) for item in squares])
    else:
        total = errstate.apply_errstate(combine(np.multiply, node, node), squared)
    return combine(np.sqrt, fold_axes(np.add, total, axes, total.dtype, called=summed))


_BY_DOT: Final = ("dot", "dot")
_BY_PARTS: Final = ("multiply", "reduce")
"""The names by which NumPy's norms make squares and their sum."""


def _power_of(node: Node, exponent: Any) -> Node:
    made = combine(np.power, node, scalar(exponent, node.dtype))
    return errstate.apply_errstate(made, "reciprocal" if exponent == -1 else "power")


def _vector_norm(node: Node, ord: Any, axes: tuple[int, ...], called: tuple[str, str]) -> Node:
    if ord in (None, 2):
        return _root_of_squares(node, axes, called)
    size = combine(np.absolute, node)
    if ord == 0:
        nonzero = combine(np.not_equal, node, build.constant(node.dtype.type(0)))
        return fold_axes(np.add, convert(nonzero, size.dtype), axes, size.dtype)
    if ord == 1:
        return fold_axes(np.add, size, axes, size.dtype, called="reduce")
    if ord in _FOLDS:
        return fold_axes(_FOLDS[ord], size, axes, size.dtype)
    if isinstance(ord, bool) or not isinstance(ord, int | float):
        raise NotNative(f"order {ord}")
    powers = _power_of(size, ord)
    total = fold_axes(np.add, powers, axes, size.dtype, called="reduce")
    inverse = np.reciprocal(ord, dtype=size.dtype)
    if not total.shape:
        return errstate.apply_errstate(
            combine(np.power, total, build.constant(inverse)), "scalar power"
        )
    return _power_of(total, inverse)


_FOLDS = {np.inf: np.maximum, -np.inf: np.minimum}


def _matrix_norm(node: Node, ord: Any, axes: tuple[int, ...], called: tuple[str, str]) -> Node:
    if ord in (None, "fro", "f"):
        return _root_of_squares(node, tuple(sorted(axes)), called)
    if isinstance(ord, str) or ord not in (1, -1, np.inf, -np.inf):
        raise NotNative(f"order {ord}")
    summed, other = axes if abs(ord) == 1 else axes[::-1]
    size = combine(np.absolute, node)
    totals = fold_axes(np.add, size, (summed,), size.dtype, called="reduce")
    extreme = np.maximum if ord > 0 else np.minimum
    return fold_axes(extreme, totals, (other - (other > summed),), size.dtype)


@native(np.linalg.norm, library=True)
@cache_recording
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of vectors or matrices; those of matrices that need singular values by LAPACK."""
    handle = as_handle(x)
    node = node_of(handle)
    if node.dtype.kind in "biu":
        double = requested_dtype(float)
        assert double is not None
        node = convert(node, double)
    rank = len(node.shape)
    given = tuple(range(rank)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = tuple([normalized_axis(item, rank) for item in given])
    if 0 in node.shape or not rank or len(set(axes)) != len(axes):
        raise NotNative("of an empty array, or along the same axis twice")
    called = _BY_DOT if axis is None else _BY_PARTS
    if len(axes) == 1 or (axis is None and ord is None):
        total = _vector_norm(node, ord, axes, called)
    elif len(axes) == 2:
        total = _matrix_norm(node, ord, axes, called)
    else:
        raise NotNative("along so many axes")
    return deliver_reduction(total, node.shape, tuple(sorted(axes)), None, keepdims)
