"""Conversion between NumPy arrays, or Python objects, and handles: in both directions.

A conversion to a handle is a snapshot: later changes of the NumPy array do not change it. An array
of one element takes no memory on the device: it is a constant of the program.
"""

from __future__ import annotations

import array
from collections.abc import Iterable
from contextlib import nullcontext
from functools import lru_cache
from typing import Any, Final

import numpy as np

from clfuse.engine.evaluate import host_copy as stored_copy
from clfuse.engine.evaluate import host_view as stored_view
from clfuse.engine.evaluate import share, upload
from clfuse.interpreter.interpret import warning_of
from clfuse.ir import build
from clfuse.ir.nodes import Kind, Node, Storage
from clfuse.ir.size_limits import MOST_AXES
from clfuse.ir.traced_number import TracedNumber
from clfuse.runtime.devices.selection import current_device
from clfuse.runtime.memory.buffers import AS_A_WHOLE, most_held

from . import errstate
from . import handle as handles
from .expressions import convert
from .handle import DTYPES, Handle, bytes_of, fresh, layout, native_dtype, node_of
from .host_array import is_calculated_here, wrap_result
from .memory_order import copy_order, permuted_node, stride_order, turned_back
from .promotion import BOOL, COMPLEX128, FLOAT64, INT64

_COMPLEX_TO_REAL = "Casting complex values to real discards the imaginary part"


class NotNative(Exception):
    """Internal: what was asked for has no kernel; `host_call.native` leaves it to NumPy."""


class Foreign(NotNative):
    """Internal: an argument has an ``__array_function__`` of its own, which answers."""

    def __init__(self, value: Any) -> None:
        super().__init__(f"{type(value).__name__} answers for itself")
        self.value = value


# -- nodes ----------------------------------------------------------------------------------------


def host_node(array: np.ndarray) -> Node:
    """The node of a host array whose dtype is native: uploaded, or a constant where that will
    do."""
    dtype = native_dtype(array.dtype)
    if dtype is None:
        raise NotNative(f"dtype {array.dtype} does not live on devices")
    if array.dtype is not dtype:
        array = array.astype(dtype)
    if array.size == 1:
        return build.full(array.reshape(-1)[0], array.shape)  # `flat` takes 32 dimensions
    if array.size == 0:
        return build.full(dtype.type(0), array.shape)
    return upload(array)


def wrap_node(node: Node) -> Any:
    """A new array for a node whose bytes exist already: nothing to compute, nothing to record."""
    handle = object.__new__(handles.ARRAY)
    handle._storage = Storage(node)
    handle._shape = node.shape
    handle._dtype = node.dtype
    handle._view = None
    return handle


def from_host(array: np.ndarray) -> Any:
    """A new array with the values that a NumPy array of a native dtype has now; it lies in memory
    as a copy of that array would."""
    order = stride_order(array.shape, array.strides) if array.ndim > 1 else None
    if order is None:
        return wrap_node(host_node(array))
    return turned_back(wrap_node(host_node(array.transpose(order))), order)


ADOPTED_NBYTES: Final = 1 << 16
"""Arrays from this size on are shared with the device rather than copied to it."""


def adopt_host_array(array: np.ndarray, *, is_given: bool = False, use: int = AS_A_WHOLE) -> Any:
    """`from_host` for an array that nobody else has: where memory is shared, its own memory.

    It is only read there, and copied before it is written to: it is not aligned as the device's
    own memory is. `is_given` says that nobody has the memory either where a NumPy array does not
    own it; `use` what is done with it on the host, if it is small (`runtime.memory.buffers`).
    """
    order = stride_order(array.shape, array.strides) if array.ndim > 1 else None
    turned = array if order is None else array.transpose(order)
    if array.flags.owndata and not is_given and array.size > 1:
        here = _kept(array, use)
        if here is not None:
            return here
    is_owned = (is_given or array.flags.owndata) and array.nbytes >= ADOPTED_NBYTES
    if not is_owned or not turned.flags.c_contiguous or native_dtype(array.dtype) != array.dtype:
        return from_host(array)
    node = share(turned, exported=True)
    if node is None:
        return from_host(array)
    turned.flags.writeable = False
    made = wrap_node(build.leaf(node.buffer, node.shape, DTYPES[node.dtype.name]))
    return made if order is None else turned_back(made, order)


def _kept(array: np.ndarray, use: int) -> Any:
    """A small array that nobody else has, in its own memory, where NumPy may be the one to
    calculate with it; None where it is not."""
    device = current_device()
    if array.nbytes > most_held(device) or not is_calculated_here(device):
        return None
    if native_dtype(array.dtype) != array.dtype:
        return None
    kept = wrap_result(array, device)
    kept._storage.node.buffer.use = use
    return kept


# -- handles from anything ------------------------------------------------------------------------


def as_handle(value: Any) -> Any:
    """`value` as a handle; itself if it is one. `NotNative` for dtypes that stay on the host."""
    if isinstance(value, Handle):
        return value
    kind = type(value)
    if kind is float or kind is int or kind is bool or kind is complex:
        return wrap_node(host_node(np.asarray(value)))
    if (kind is list or kind is tuple) and contains_handles(value):
        return stack_sequence(value)
    if is_subclass(kind):
        raise NotNative(f"{kind.__name__} is a subclass of numpy.ndarray")
    is_numpys = kind in _PLAIN_KINDS or isinstance(value, np.ndarray | np.generic)
    if not is_numpys and hasattr(kind, "__array_function__"):
        raise Foreign(value)
    found = mapped_file(value)
    if found is None:
        found = array_of(value)
    return found if isinstance(found, Handle) else from_host(found)


def is_subclass(kind: type) -> bool:
    """Whether a class derives from NumPy's arrays, and may mean something else by an operation."""
    return issubclass(kind, np.ndarray) and kind is not np.ndarray and kind is not np.memmap


_PLAIN_KINDS: Final = frozenset({list, tuple, np.ndarray})


def mapped_file(value: Any) -> Any:
    """A `numpy.memmap` of mode "r" as an array on its own memory; None for all else, and where the
    device cannot: then it is copied.

    Nothing in this process writes there; who changes the file meanwhile gets what he deserves.
    """
    if type(value) is not np.memmap or value.mode != "r" or value.nbytes < ADOPTED_NBYTES:
        return None
    dtype = native_dtype(value.dtype)
    if dtype is None or dtype != value.dtype or not value.flags.c_contiguous:
        return None
    node = share(value)
    return None if node is None else wrap_node(build.leaf(node.buffer, node.shape, dtype))


def array_of(value: Any, *args: Any, **options: Any) -> Any:
    """``numpy.array(value)``; where the ``__array__`` of a class gives an array of ours, that one.

    NumPy takes nothing but its own arrays from ``__array__``.
    """
    if not args and not options and hasattr(getattr(value, "__array__", None), OF_PROGRAM):
        found = own_array(value)
        if isinstance(found, Handle):
            return found
    try:
        return np.array(value, *args, copy=None, **options)
    except ValueError:
        found = own_array(value)
        if found is value:
            raise
        return found if isinstance(found, Handle) else stack_sequence(found)


def own_array(value: Any) -> Any:
    """`value` with arrays of ours in place of what gives such by ``__array__``; also in lists."""
    if type(value) is list or type(value) is tuple:
        items = [own_array(item) for item in value]
        is_same = all(item is old for item, old in zip(items, value, strict=True))
        return value if is_same else items
    if isinstance(value, np.ndarray | Handle) or not hasattr(type(value), "__array__"):
        return value
    method = type(value).__array__
    found = getattr(method, OF_PROGRAM, method)(value)
    return found if isinstance(found, Handle) else value


OF_PROGRAM: Final = "of_program"
"""What has the program's own method, where another stands in its place (`protocols.for_numpy`)."""


def contains_handles(items: Iterable[Any], depth: int = 1) -> bool:
    """Whether a nested list or tuple has an array of ours in it."""
    kinds = set(map(type, items))
    if any(issubclass(kind, Handle) for kind in kinds):
        return True
    if depth < MOST_AXES and (list in kinds or tuple in kinds):
        return any(
            contains_handles(item, depth + 1)
            for item in items
            if type(item) is list or type(item) is tuple
        )
    return False


def stack_sequence(items: Any, dtype: np.dtype | None = None) -> Any:
    """What ``numpy.array`` makes of a nested list that holds arrays: they are joined on the
    device."""
    parts = [
        stack_sequence(item)
        if isinstance(item, list | tuple) and contains_handles(item)
        else as_handle(item)
        for item in items
    ]
    shapes = {part._shape for part in parts}
    if len(shapes) != 1:
        raise ValueError(
            "setting an array element with a sequence. The requested array has an inhomogeneous "
            f"shape after 1 dimensions. The detected shape was ({len(parts)},) + inhomogeneous "
            "part."
        )
    (shape,) = shapes
    if len(shape) >= MOST_AXES:
        raise ValueError(
            "setting an array element with a sequence. The requested array would exceed the "
            f"maximum number of dimension of {MOST_AXES}."
        )
    if dtype is None:
        dtype = native_dtype(np.result_type(*{part._dtype for part in parts}))
        assert dtype is not None
    nodes = [build.reshape(_stored(part, dtype), (1, *shape)) for part in parts]
    return fresh(build.concatenate(nodes, 0))


def _stored(part: Any, dtype: np.dtype) -> Node:
    """An item of a list as a node of `dtype`: a scalar has to fit, as in an assignment."""
    if type(part) in handles.SCALARS and part._dtype is not dtype:
        return value_node(part, dtype)
    return convert(node_of(part), dtype)


_BUFFERS: Final = (array.array, memoryview)


def as_mask(where: Any) -> Handle:
    """A ``where=`` argument: arrays, and buffers, must be bool, anything else is taken for one by
    truth."""
    if isinstance(where, _BUFFERS) or hasattr(type(where), "__array__"):
        where = where if isinstance(where, Handle) else np.asarray(where)
    elif not hasattr(type(where), "__array_function__"):
        is_mixed = isinstance(where, list | tuple) and contains_handles(where)
        where = stack_sequence(where) if is_mixed else np.asarray(where, dtype=BOOL)
    mask: Handle = as_handle(where)
    if mask._dtype is not BOOL:
        raise TypeError(
            f"Cannot cast array data from {mask._dtype!r} to dtype('bool') "
            "according to the rule 'safe'"
        )
    return mask


def requested_dtype(dtype: Any) -> np.dtype | None:
    """A dtype argument as one of the native dtypes; None stays None, others are `NotNative`.

    >>> requested_dtype(float), requested_dtype("i4")
    (dtype('float64'), dtype('int32'))
    """
    if dtype is None:
        return None
    if dtype is float:
        return native_dtype(FLOAT64)
    if dtype is int:
        return INT64
    if dtype is bool:
        return BOOL
    if dtype is complex:
        return native_dtype(COMPLEX128)
    if isinstance(dtype, Handle):  # whose attribute `dtype` NumPy would take
        raise TypeError("Cannot construct a dtype from an array")
    wanted = np.dtype(dtype)
    found = native_dtype(wanted)
    if found is None:
        raise NotNative(f"dtype {wanted} does not live on devices")
    return found


def value_node(value: Any, dtype: np.dtype) -> Node:
    """What an assignment stores: `value` as a node of `dtype`, cast the way NumPy's assignment
    casts."""
    if isinstance(value, Handle):
        fits = dtype.kind not in "iu" or np.can_cast(value._dtype, dtype, "safe")
        if fits or type(value) not in handles.SCALARS:
            return cast_for_assignment(node_of(value), dtype)
        value = host_scalar(value)  # NumPy refuses a scalar that does not fit: it has to be seen
    kind = type(value)
    if kind is TracedNumber and value.fits(dtype):
        return value.node(dtype)  # type: ignore[no-any-return]
    if (kind is float and dtype.kind in "fc") or (kind is int and dtype.kind in "iu"):
        return build.constant(dtype.type(value))
    if isinstance(value, int | float | complex | np.generic):
        cell = np.empty((), dtype)
        cell[()] = value  # NumPy's conversion of one element, with its errors
        return build.constant(cell[()])  # type: ignore[arg-type] # a scalar, for stubs an array
    if isinstance(value, np.ndarray):
        if native_dtype(value.dtype) is None:
            return host_node(np.asarray(value).astype(dtype))
        return cast_for_assignment(host_node(np.asarray(value)), dtype)
    if (kind is list or kind is tuple) and contains_handles(value):
        return cast_for_assignment(node_of(stack_sequence(value)), dtype)
    if hasattr(value, "__array__") or hasattr(value, "__dlpack__"):
        return value_node(array_of(value), dtype)
    return host_node(np.asarray(value, dtype))


def copied_node(value: Any, dtype: np.dtype) -> Node:
    """What a copy into an array of `dtype` stores: like `value_node`, but a scalar that has a dtype
    is cast, however large.

    So NumPy does through index arrays and masks, in `copyto` and in `full`; what it assigns to an
    element or a slice must fit.
    """
    if isinstance(value, Handle):
        return cast_for_assignment(node_of(value), dtype)
    return value_node(np.asarray(value) if isinstance(value, np.generic) else value, dtype)


def cast_for_assignment(node: Node, dtype: np.dtype, called: str = "cast") -> Node:
    """`node` cast to `dtype`, with NumPy's warning where an imaginary part is dropped."""
    if node.dtype.kind == "c" and dtype.kind not in "cb":
        import warnings

        from clfuse.user_frames import user_stacklevel

        warnings.warn(_COMPLEX_TO_REAL, np.exceptions.ComplexWarning, user_stacklevel())
    return cast(node, dtype, called)


def cast(node: Node, dtype: np.dtype, called: str = "cast") -> Node:
    """`convert` where the user wants the dtype: floating-point errors are met under the name
    `called`, as the mode in force wants it (see `errstate`)."""
    if node.dtype is dtype:
        return node
    if errstate.mode[0] is errstate.QUIET or not _cast_may_err(node.dtype, dtype):
        return convert(node, dtype)
    is_constant = node.op.kind is Kind.CONSTANT
    if is_constant or errstate.mode[0] is errstate.STRICT:
        values = node.param if is_constant else stored_view(node)
        if dtype.kind not in "cb":
            values = values.real
        with warning_of(called) if errstate.mode[0] is errstate.LOUD else nullcontext():
            return host_node(np.asarray(values.astype(dtype)))
    made = convert(node, dtype)
    return errstate.apply_errstate(made, called) if made.op.name == "cast" else made


@lru_cache(maxsize=256)
def _cast_may_err(source: np.dtype, target: np.dtype) -> bool:
    """Whether a cast may meet a floating-point error: where a number is too large for the target,
    or there is none that it could become."""
    if source.kind in "fc" and target.kind in "fc":
        return not np.can_cast(source.char.lower(), target.char.lower())
    return (source.kind in "fc" and target.kind in "iu") or (
        target.char == "e" and not np.can_cast(source, target)
    )


# -- back to the host -----------------------------------------------------------------------------


def host_view(handle: Handle) -> np.ndarray:
    """What the array holds now, as a read-only NumPy array; without a copy where memory is
    shared."""
    view = handle._view
    if view is None:
        return stored_view(handle._storage.node)
    node = handle._storage.node
    buffer = node.buffer
    if buffer is not None and node.dtype is handle._dtype and buffer.seen_by_host:
        offset, strides = layout(handle)
        return _strided(stored_view(node), handle._shape, offset, strides)
    if (held := bytes_of(handle)) is not None:
        return host_view(held).view(handle._dtype)
    order = copy_order(handle)
    if order is None:
        return stored_view(node_of(handle))
    turned = stored_view(permuted_node(handle, handle._shape, order))
    return turned.transpose(np.argsort(order))


def _strided(
    stored: np.ndarray, shape: tuple[int, ...], offset: int, strides: tuple[int, ...]
) -> np.ndarray:
    """The elements of a view, seen through NumPy in the C-ordered bytes of its storage."""
    flat = stored.reshape(-1)
    if 0 in shape:
        return np.broadcast_to(flat[:1], shape) if flat.size else np.empty(shape, stored.dtype)
    return np.lib.stride_tricks.as_strided(
        flat[offset:], shape, [stride * stored.itemsize for stride in strides], writeable=False
    )


def host_copy(handle: Handle) -> np.ndarray:
    """What the array holds now, as a NumPy array of its own that may be written to."""
    if handle._view is None:
        return stored_copy(handle._storage.node)
    return np.array(host_view(handle))


def host_scalar(handle: Handle) -> np.generic:
    """The one element of an array, as a NumPy scalar."""
    return host_view(handle).reshape(())[()]  # type: ignore[return-value] # for stubs an array


def asnumpy(value: Any) -> np.ndarray:
    """A copy on the host, as a `numpy.ndarray` that may be written to.

    Parameters
    ----------
    value : array_like
        An array of clfuse's, or anything that `numpy.array` takes.

    Examples
    --------
    >>> import clfuse as np
    >>> type(np.asnumpy(np.arange(3) * 2))
    <class 'numpy.ndarray'>
    """
    return host_copy(value) if isinstance(value, Handle) else np.array(value)


# -- devices --------------------------------------------------------------------------------------


def device_of(handle: Handle) -> Any:
    """The device that holds the array, or will: the current one while it is not computed."""
    buffer = handle._storage.node.buffer
    return current_device() if buffer is None else buffer.device


def move_to_device(handle: Handle, device: Any, stream: Any) -> Any:
    """The array with its elements on another device."""
    from clfuse.runtime.devices import selection

    if stream is not None:
        raise ValueError("The stream argument in to_device() is not supported")
    target = device_of(handle) if device == "cpu" else selection.find(device)
    if target is device_of(handle):
        return handle
    host = host_view(handle)
    with selection.device(target):
        # One element or none would be a constant of the program, which lies on no device.
        return wrap_node(upload(host)) if host.size <= 1 else from_host(host)
