"""Predicates: closeness and equality, kinds of elements, shared memory."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from clfuse.arrays.conversion import array_of, as_handle, host_view, requested_dtype
from clfuse.arrays.errstate import errstate
from clfuse.arrays.handle import Handle, layout, result
from clfuse.arrays.memory_order import map_in_order
from clfuse.arrays.shared_storage import SharedStorage, seen_by_numpy
from clfuse.arrays.views import normalized_axes
from clfuse.dispatch.host_call import native
from clfuse.dispatch.registry import UFUNCS
from clfuse.ir import build
from clfuse.user_frames import user_stacklevel

from . import reductions
from .selection import where


@native(np.isclose, numbers=True)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether elements agree within a tolerance."""
    left, right = as_handle(a), as_handle(b)
    _check_tolerances(rtol, atol)
    weak = type(b) in (int, float)
    if not weak:
        wanted = np.result_type(right._dtype, 1.0)
        right = right if right._dtype == wanted else right.astype(wanted)
    other: Any = float(b) if weak else right
    with errstate(invalid="ignore"):  # of equal infinities
        distance = UFUNCS["absolute"](UFUNCS["subtract"](left, other))
    allowed = atol + rtol * abs(other)
    near = UFUNCS["less_equal"](distance, allowed)
    answer = (near & UFUNCS["isfinite"](other)) | UFUNCS["equal"](left, other)
    if equal_nan:
        answer = answer | (UFUNCS["isnan"](left) & UFUNCS["isnan"](other))
    return answer


def _check_tolerances(rtol: Any, atol: Any) -> None:
    """NumPy's complaint about tolerances that are no finite numbers; lazy ones are not waited
    for."""
    given = [value for value in (rtol, atol) if not isinstance(value, Handle)]
    action = np.geterr()["invalid"]
    if action in ("warn", "raise") and not all(np.all(np.isfinite(value)) for value in given):
        message = f"One of rtol or atol is not valid, atol: {atol}, rtol: {rtol}"
        if action == "raise":
            raise FloatingPointError(message)
        warnings.warn(message, RuntimeWarning, user_stacklevel())


@native(np.allclose, numbers=True)
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements agree within a tolerance."""
    return bool(reductions.all(isclose(a, b, rtol, atol, equal_nan)))


def _both(a1: Any, a2: Any) -> tuple[Handle, Handle] | None:
    """Two arrays; None where one is no array, such as a ragged list: nothing is equal to it."""
    try:
        return as_handle(a1), as_handle(a2)
    except (TypeError, ValueError):
        return None


@native(np.array_equal, numbers=True)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Whether two arrays have the same shape and elements."""
    pair = _both(a1, a2)
    if pair is None:
        return False
    left, right = pair
    if left._shape != right._shape:
        return False
    answer = UFUNCS["equal"](left, right)
    if equal_nan and "b" not in (left._dtype.kind, right._dtype.kind):
        both = [UFUNCS["isnan"](side) for side in (left, right)]
        answer = answer | (both[0] & both[1])
    return bool(reductions.all(answer))


@native(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> bool:
    """Whether two arrays have the same elements once they are broadcast."""
    pair = _both(a1, a2)
    if pair is None:
        return False
    left, right = pair
    try:
        np.broadcast_shapes(left._shape, right._shape)
    except ValueError:
        return False
    return bool(reductions.all(UFUNCS["equal"](left, right)))


# -- kinds of elements ----------------------------------------------------------------------------


@native(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex."""
    return x._dtype.kind == "c" if isinstance(x, Handle) else np.iscomplexobj(x)


@native(np.isrealobj)
def isrealobj(x: Any) -> bool:
    """Whether the dtype is not complex."""
    return not iscomplexobj(x)


@native(np.iscomplex, numbers=True)
def iscomplex(x: Any) -> Any:
    """Whether elements have an imaginary part that is not zero."""
    handle = as_handle(x)
    if handle._dtype.kind == "c":
        return UFUNCS["not_equal"](handle.imag, 0)
    return result(build.full(np.bool_(False), handle._shape))


@native(np.isreal, numbers=True)
def isreal(x: Any) -> Any:
    """Whether elements have no imaginary part, or one that is zero."""
    handle = as_handle(x)
    if handle._dtype.kind == "c":
        return UFUNCS["equal"](handle.imag, 0)
    if not handle._shape:
        return result(build.constant(np.bool_(True)))
    return map_in_order(handle, lambda node: build.full(np.bool_(True), node.shape))


def _signed_infinity(x: Any, out: Any, *, negative: bool) -> Any:
    handle = as_handle(x)
    if handle._dtype.kind == "c":
        raise TypeError(
            f"This operation is not supported for {handle._dtype} values because it would be "
            "ambiguous."
        )
    infinite = UFUNCS["isinf"](handle)
    sign = UFUNCS["signbit"](handle if handle._dtype.kind == "f" else handle.astype(float))
    side = sign if negative else UFUNCS["logical_not"](sign)
    return UFUNCS["logical_and"](infinite, side, out=out)


@native(np.isposinf, numbers=True)
def isposinf(x: Any, out: Any = None) -> Any:
    """Whether elements are positive infinity."""
    return _signed_infinity(x, out, negative=False)


@native(np.isneginf, numbers=True)
def isneginf(x: Any, out: Any = None) -> Any:
    """Whether elements are negative infinity."""
    return _signed_infinity(x, out, negative=True)


@native(np.real, numbers=True)
def real(val: Any) -> Any:
    """The real parts: a view."""
    try:
        return val.real
    except AttributeError:
        return as_handle(val).real


@native(np.imag, numbers=True)
def imag(val: Any) -> Any:
    """The imaginary parts: a view."""
    try:
        return val.imag
    except AttributeError:
        return as_handle(val).imag


@native(np.angle, numbers=True)
def angle(z: Any, deg: bool = False) -> Any:
    """The argument of complex numbers."""
    handle = as_handle(z)
    if handle._dtype.kind == "c":
        made = UFUNCS["arctan2"](handle.imag, handle.real)
    else:
        made = UFUNCS["arctan2"](0, handle)
    return made * (180 / math.pi) if deg else made


@native(np.sinc, numbers=True)
def sinc(x: Any) -> Any:
    """sin(pi x) / (pi x)."""
    handle = as_handle(x)
    if handle._dtype.kind in "biu":
        handle = handle.astype(requested_dtype(float))
    scaled = math.pi * handle
    smallest = float(np.finfo(scaled.dtype).eps) if scaled.dtype.kind == "f" else 1e-20
    scaled = where(UFUNCS["equal"](scaled, 0), smallest, scaled)
    return UFUNCS["sin"](scaled) / scaled


# -- plain questions ------------------------------------------------------------------------------


@native(np.shape)
def shape(a: Any) -> tuple[int, ...]:
    """Extents, one an axis."""
    return a._shape if isinstance(a, Handle) else np.shape(a)


@native(np.ndim)
def ndim(a: Any) -> int:
    """Number of axes."""
    return len(a._shape) if isinstance(a, Handle) else np.ndim(a)


@native(np.size)
def size(a: Any, axis: Any = None) -> int:
    """Number of elements, or extent of an axis."""
    if not isinstance(a, Handle):
        return np.size(a, axis)
    if axis is None:
        return math.prod(a._shape)
    axes = normalized_axes(axis if isinstance(axis, tuple) else (axis,), len(a._shape))
    return math.prod([a._shape[place] for place in axes])


def _plain(operand: Any) -> Any:
    return operand._dtype if isinstance(operand, Handle) else operand


@native(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """The dtype that NumPy's promotion gives to operands."""
    return np.result_type(*map(_plain, arrays_and_dtypes))


@native(np.can_cast)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Whether a cast follows a rule."""
    return np.can_cast(_plain(from_), to, casting)


@native(np.min_scalar_type)
def min_scalar_type(a: Any, /) -> np.dtype:
    """The smallest dtype that holds a scalar; an array's own dtype."""
    if isinstance(a, Handle):
        return a._dtype if a._shape else np.min_scalar_type(np.asarray(a))
    return np.min_scalar_type(a)


@native(np.common_type)
def common_type(*arrays: Any) -> Any:
    """The scalar type that inexact results of arrays have."""
    return np.common_type(*[np.empty((0,), array.dtype) for array in arrays])


def _stand_in(handle: Handle, memory: np.ndarray) -> np.ndarray:
    """An array that lies in `memory` as the handle lies on its storage; nobody reads it."""
    offset, strides = layout(handle)
    itemsize = handle._dtype.itemsize
    return np.ndarray(
        handle._shape,
        handle._dtype,
        memory.data,
        offset * itemsize,
        tuple([stride * itemsize for stride in strides]),
    )


def _own_array(value: Any) -> Any:
    """`value`, or the array that it is made of."""
    if isinstance(value, Handle | np.ndarray):
        return value
    if hasattr(type(value), "__array__"):
        return array_of(value)
    # It may describe memory of ours, which lies on the host from then on.
    return np.asarray(value) if hasattr(value, "__array_interface__") else value


def _shared(question: Any, a: Any, b: Any, max_work: Any) -> bool:
    a, b = _own_array(a), _own_array(b)
    if isinstance(a, Handle) != isinstance(b, Handle):
        handle, other = (a, b) if isinstance(a, Handle) else (b, a)
        if type(handle._storage) is SharedStorage:
            return bool(question(seen_by_numpy(handle), other, max_work))
        # What `numpy.asarray` gave is the array's own memory, on devices that work in the host's.
        buffer = handle._storage.node.buffer
        is_host = buffer is not None and buffer.seen_by_host
        return bool(question(host_view(handle) if is_host else np.empty(0), other, max_work))
    if not isinstance(a, Handle) or a._storage is not b._storage:
        # No memory in common; NumPy says whether these are arrays, and `max_work` a number.
        hosts = [np.empty(0) if isinstance(item, Handle) else item for item in (a, b)]
        return bool(question(*hosts, max_work))
    node = a._storage.node
    memory = np.empty(max(math.prod(node.shape) * node.dtype.itemsize, 1), np.uint8)
    return bool(question(_stand_in(a, memory), _stand_in(b, memory), max_work))


@native(np.shares_memory)
def shares_memory(a: Any, b: Any, /, max_work: Any = -1) -> bool:
    """Whether an element of one array is an element of the other."""
    return _shared(np.shares_memory, a, b, max_work)


@native(np.may_share_memory)
def may_share_memory(a: Any, b: Any, /, max_work: Any = 0) -> bool:
    """Whether the extents of two arrays in memory overlap."""
    return _shared(np.may_share_memory, a, b, max_work)
