"""New arrays from values, shapes and other arrays.

Arrays of one value take no memory until they are written to. dtypes that do not live on devices
(object, strings, datetime64, structured, longdouble, foreign byte order) give a real
`numpy.ndarray`: they stay on the host.
"""

from __future__ import annotations

from operator import index as as_index
from typing import Any, Final

import numpy as np

from clfuse.arrays import handle as handles
from clfuse.arrays.conversion import (
    NotNative,
    array_of,
    as_handle,
    cast_for_assignment,
    contains_handles,
    copied_node,
    from_host,
    host_view,
    mapped_file,
    requested_dtype,
    stack_sequence,
    wrap_node,
)
from clfuse.arrays.handle import (
    Handle,
    fresh,
    is_contiguous,
    is_writeable,
    native_dtype,
    node_of,
    view_of,
)
from clfuse.arrays.host_array import DEFER, make_filled
from clfuse.arrays.memory_order import (
    Permutation,
    arrange_axes,
    asked_order,
    copy_in_order,
    is_fortran,
    map_in_order,
    parse_order,
    permuted_node,
    stride_order,
)
from clfuse.arrays.views import permute_axes, requested_shape
from clfuse.dispatch.host_call import native
from clfuse.engine.evaluate import share
from clfuse.functions.indexing.subscripts import fit_to_shape
from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.ir.size_limits import MOST_AXES, require_room
from clfuse.ir.traced_number import TracedNumber, concrete
from clfuse.numpy_releases import HAS_DLPACK_1

_CANNOT_AVOID_COPY = (
    "Unable to avoid copy while creating an array as requested.\n"
    "If using `np.array(obj, copy=False)` replace it with `np.asarray(obj)` to allow a copy when "
    "needed"
)

# -- from values ----------------------------------------------------------------------------------


def _converted(handle: Handle, dtype: Any, copy: bool | None, order: Any) -> Any:
    """A handle as an array of `dtype`: itself where that is allowed and nothing changes."""
    wanted = requested_dtype(dtype) or handle._dtype
    is_array = type(handle) not in handles.SCALARS
    if wanted is handle._dtype and is_array and not copy:
        return handle
    if copy is False:
        raise ValueError(_CANNOT_AVOID_COPY)
    if wanted is handle._dtype:
        return copy_in_order(handle, order)
    return map_in_order(handle, lambda node: cast_for_assignment(node, wanted), order)


@native(np.array)
def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int | None = None,
    like: Any = None,
) -> Any:
    """A new array with the values of `object`: a snapshot, whatever happens to `object` afterwards.

    Parameters
    ----------
    object : array_like
    dtype : dtype, optional
    copy : bool or None
        None copies only where it must. False is a ValueError wherever a copy would be made: CPU
        devices can look at the memory of a C-contiguous NumPy array. The caller then promises not
        to change it: recorded work that has not run yet would see the change.
    order : {"K", "A", "C", "F"}
        "K" keeps the order of the axes in memory, "A" Fortran order only.
    subok : bool
        Leave instances of subclasses of `ndarray` what they are: NumPy's, on the host.
    ndmin : int
        Least number of axes; new ones come first.
    """
    if type(copy) is not bool:
        copy = _copying(copy)
    most = MOST_AXES if ndmax is None else as_index(ndmax)
    if not 0 <= most <= MOST_AXES:
        raise ValueError(f"ndmax must be in the range [0, NPY_MAXDIMS ({MOST_AXES})]")
    if as_index(ndmin) > most:
        raise ValueError(f"ndmin must be <= ndmax ({most})")
    if isinstance(object, Handle):
        wanted = requested_dtype(dtype)  # float64 is equal to None
        if len(object._shape) > most and wanted is not None and wanted is not object._dtype:
            raise ValueError("object too deep for desired array")
        made = _converted(object, dtype, copy, order)
    elif _stays_on_host(object, dtype, subok):
        return np.array(object, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin)
    elif not copy and not isinstance(object, list | tuple | np.ndarray) and _is_buffer(object):
        found = np.array(object, dtype, copy=copy, order=order, ndmin=ndmin)
        if np.may_share_memory(found, np.asarray(object)) and found.flags.writeable:
            return found
        made = _as_writeable(from_host(found), found.flags.writeable)
    elif copy is None and dtype is None and (mapped := mapped_file(object)) is not None:
        made = mapped
    elif copy is False:
        made = _sharing(object, dtype)
    elif isinstance(object, list | tuple) and contains_handles(object):
        if ndmax is not None:
            raise NotNative("of a list of arrays, with so many axes at most")
        wanted = requested_dtype(dtype)
        made = stack_sequence(object, wanted)
    else:
        if isinstance(dtype, Handle):
            requested_dtype(dtype)  # NumPy would take its attribute of that name
        options = {} if ndmax is None else {"ndmax": ndmax}
        host = array_of(object, *(() if dtype is None else (dtype,)), **options)
        if isinstance(host, Handle):
            return array(host, dtype, copy=copy, order=order, ndmin=ndmin)
        if native_dtype(host.dtype) is None:
            return np.array(host, copy=None, order=order, ndmin=ndmin)
        made = from_host(host)
    if len(made._shape) < ndmin:
        made = _with_leading_axes(made, ndmin)
    ordered = order_array(made, order)
    if copy is False and ordered is not made:
        raise ValueError(_CANNOT_AVOID_COPY)
    return ordered


_BUFFERS: Final = frozenset(("array.array", "mmap.mmap", "_ctypes.Array"))


def _is_buffer(value: Any) -> bool:
    """Whether NumPy's array of this lies in its memory, which others may write to: as of
    `frombuffer`, the array is NumPy's own then."""
    return isinstance(value, bytearray | memoryview) or any(
        f"{kind.__module__}.{kind.__qualname__}" in _BUFFERS for kind in type(value).__mro__
    )


def _copying(copy: Any) -> bool | None:
    """`copy` as True, False or None (where needed): NumPy's `_CopyMode`, or by truth."""
    if isinstance(copy, str):
        raise ValueError("strings are not allowed for 'copy' keyword. Use True/False/None instead.")
    named = {"ALWAYS": True, "NEVER": False, "IF_NEEDED": None}
    if isinstance(copy, np._CopyMode):
        return named[copy.name]
    return None if copy is None else bool(copy)


def _stays_on_host(value: Any, dtype: Any, subok: bool) -> bool:
    """Whether `value` is an array of NumPy's, and what is made of it is one too."""
    if not isinstance(value, np.ndarray):
        return False
    if subok and type(value) not in (np.ndarray, np.memmap):
        return True
    return native_dtype(value.dtype if dtype is None else np.dtype(dtype)) is None


def _sharing(value: Any, dtype: Any) -> Any:
    """An array on a NumPy array's own memory; ValueError where the device cannot look at it."""
    node = None
    is_numpys = isinstance(value, np.ndarray) and type(value) in (np.ndarray, np.memmap)
    is_native = is_numpys and native_dtype(value.dtype) is not None
    if is_native and (dtype is None or value.dtype == np.dtype(dtype)):
        if not value.size:  # there is no memory to share
            return from_host(value)
        node = share(value)
    if node is None:
        raise ValueError(_CANNOT_AVOID_COPY)
    return wrap_node(node)


def _with_leading_axes(handle: Any, rank: int) -> Any:
    lead = rank - len(handle._shape)
    offset, strides = handles.layout(handle)
    return view_of(handle, (1,) * lead + handle._shape, offset, (0,) * lead + strides)


@native(np.asarray)
def asarray(
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    device: Any = None,
    copy: bool | None = None,
    like: Any = None,
) -> Any:
    """`a` as an array; itself if it is one and nothing has to change."""
    return array(a, dtype, copy=copy, order="K" if order is None else order)


@native(np.asanyarray)
def asanyarray(
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    device: Any = None,
    copy: bool | None = None,
    like: Any = None,
) -> Any:
    """`a` as an array; itself if it is one, or of a subclass, and nothing has to change."""
    return array(a, dtype, copy=copy, order="K" if order is None else order, subok=True)


@native(np.ascontiguousarray)
def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """`a` as an array in C order, of at least one axis."""
    made = array(a, dtype, copy=None, ndmin=1)
    if isinstance(made, np.ndarray):
        return np.ascontiguousarray(made)
    if made.flags.c_contiguous:
        return made
    return fresh(node_of(made))


@native(np.asfortranarray)
def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """`a` as an array in Fortran order, of at least one axis."""
    return array(a, dtype, copy=None, ndmin=1, order="F")


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """The array with its elements cast to `dtype`."""
    if not isinstance(x, Handle | np.ndarray | np.generic):
        raise TypeError(f"Input should be a NumPy array or scalar. It is a {type(x)} instead.")
    if isinstance(x, np.generic):
        return x.astype(dtype, copy=copy)
    return as_handle(x).astype(dtype, copy=copy)


if hasattr(np, "astype"):  # since NumPy 2.1
    astype = native(np.astype)(astype)


@native(np.copy)
def copy(a: Any, order: Any = "K", subok: bool = False) -> Any:
    """A new array with the same values."""
    return array(a, order=order, copy=True, subok=subok)


def order_array(made: Any, order: Any) -> Any:
    """The array, or a copy of it where it does not lie as `order` says."""
    order = parse_order(order)
    if order == "C" and not is_contiguous(made):
        return fresh(node_of(made))
    if order != "F" or is_fortran(made):
        return made
    if len(made._shape) < 2:
        return fresh(node_of(made))
    backwards = range(len(made._shape))[::-1]
    transposed = fresh(node_of(permute_axes(made, backwards)))
    turned = permute_axes(transposed, backwards)
    turned._view.base = None
    return turned


# -- filled ---------------------------------------------------------------------------------------


def _filled(value: Any, shape: Any, dtype: Any, order: Any) -> Any:
    wanted = requested_dtype(float if dtype is None else dtype)
    assert wanted is not None
    extents = _checked_shape(shape, wanted)
    if order == "C":
        made = make_filled(wanted.type(value), extents, wanted)
        if made is not DEFER:
            return made
    return laid_out(build.full(wanted.type(value), extents), order)


def _checked_shape(shape: Any, dtype: np.dtype) -> tuple[int, ...]:
    extents = requested_shape(shape)
    if any(extent < 0 for extent in extents):
        raise ValueError("negative dimensions are not allowed")
    return require_room(extents, dtype)


def laid_out(node: Node, order: Any) -> Any:
    """A new array, which nothing is copied from.

    Raises ValueError: `order` says that the array lies as another one does.
    """
    if order is not None and parse_order(order) not in "CF":
        raise ValueError("only 'C' or 'F' order is permitted")
    return order_array(fresh(node), order)


@native(np.zeros)
def zeros(
    shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None
) -> Any:
    """An array of zeros."""
    return _filled(0, shape, dtype, order)


@native(np.ones)
def ones(
    shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None
) -> Any:
    """An array of ones."""
    return _filled(1, shape, dtype, order)


@native(np.empty)
def empty(
    shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None
) -> Any:
    """An array whose contents nobody may rely on; they are zeros, which cost nothing."""
    return _filled(0, shape, dtype, order)


@native(np.full)
def full(
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Any:
    """An array with `fill_value`, broadcast, everywhere."""
    if type(fill_value) is TracedNumber and fill_value.kind is int:
        fill_value = concrete(fill_value)  # whether it fits decides
    traced = type(fill_value) is TracedNumber
    if dtype is None and traced:
        dtype = float
    elif dtype is None:
        dtype = fill_value.dtype if isinstance(fill_value, Handle) else np.asarray(fill_value).dtype
    wanted = requested_dtype(dtype)
    assert wanted is not None
    extents = _checked_shape(shape, wanted)
    if traced and fill_value.fits(wanted):
        return laid_out(fit_to_shape(fill_value.node(wanted), extents), order)
    is_listed = isinstance(fill_value, Handle | list | tuple | np.ndarray)
    is_number = type(fill_value) in (bool, int, float, complex)
    if not (is_listed or is_number) and np.ndim(fill_value):
        fill_value, is_listed = np.asarray(fill_value), True  # a range, a buffer, an array-like
    if not is_listed:
        fill_value = np.full((), fill_value, wanted)  # NumPy's cast, with its warnings and errors
        if order == "C":
            made = make_filled(fill_value[()], extents, wanted)
            if made is not DEFER:
                return made
    return laid_out(fit_to_shape(copied_node(fill_value, wanted), extents), order)


def _like(prototype: Any, dtype: Any, shape: Any) -> tuple[Any, Any]:
    """dtype and shape of an array that is to be like another."""
    if not isinstance(prototype, Handle | np.ndarray):
        prototype = as_handle(prototype)
    return (
        prototype.dtype if dtype is None else dtype,
        tuple(prototype.shape) if shape is None else shape,
    )


def _refuse_subclass(prototype: Any, subok: bool) -> None:
    kind = type(prototype)
    if subok and issubclass(kind, np.ndarray) and kind not in (np.ndarray, np.memmap):
        raise NotNative(f"{kind.__name__} is a subclass of numpy.ndarray")


def _filled_like(
    value: Any, prototype: Any, dtype: Any, shape: Any, order: Any, subok: bool
) -> Any:
    _refuse_subclass(prototype, subok)
    kept = _order_like(prototype, shape, order)
    dtype, shape = _like(prototype, dtype, shape)
    if kept is None:
        return _filled(value, shape, dtype, "C")
    wanted = requested_dtype(dtype)
    assert wanted is not None
    extents = _checked_shape(shape, wanted)
    return arrange_axes(build.full(wanted.type(value), tuple([extents[a] for a in kept])), kept)


def _order_like(prototype: Any, shape: Any, order: Any) -> Permutation | None:
    """The order in which an array like `prototype` lies, of `shape` where that is not None."""
    letter = parse_order(order)
    extents = None if shape is None else requested_shape(shape)
    if not isinstance(prototype, Handle):
        model = np.empty_like(prototype, order=letter, shape=extents)  # type: ignore[call-overload]
        return stride_order(model.shape, model.strides)
    extents = prototype._shape if extents is None else extents
    kept = None
    if len(extents) == len(prototype._shape) and not is_contiguous(prototype):
        kept = stride_order(extents, handles.layout(prototype)[1])
    return asked_order(letter, extents, (prototype,), kept)


@native(np.zeros_like)
def zeros_like(
    a: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    """Zeros in the shape and dtype of `a`."""
    return _filled_like(0, a, dtype, shape, order, subok)


@native(np.ones_like)
def ones_like(
    a: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    """Ones in the shape and dtype of `a`."""
    return _filled_like(1, a, dtype, shape, order, subok)


@native(np.empty_like)
def empty_like(
    prototype: Any,
    /,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    """An array of unspecified contents in the shape and dtype of `prototype`."""
    return _filled_like(0, prototype, dtype, shape, order, subok)


@native(np.full_like)
def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    """`fill_value` everywhere, in the shape and dtype of `a`."""
    _refuse_subclass(a, subok)
    kept = _order_like(a, shape, order)
    dtype, shape = _like(a, dtype, shape)
    if kept is None:
        return full(shape, fill_value, dtype)
    filled = full(shape, fill_value, dtype)
    return arrange_axes(permuted_node(filled, filled._shape, kept), kept)


# -- from other memory ----------------------------------------------------------------------------


@native(np.frombuffer)
def frombuffer(
    buffer: Any, dtype: Any = float, count: Any = -1, offset: Any = 0, *, like: Any = None
) -> Any:
    """The contents of a buffer as a vector: a read-only one where the buffer is; one that may be
    written to, and by others, as NumPy's own array on that memory. Of an array of ours a view."""
    if isinstance(buffer, Handle):
        if not is_contiguous(buffer):
            raise ValueError("ndarray is not C-contiguous")
        found = np.frombuffer(host_view(buffer), dtype, count, offset)  # NumPy's checks
        if found.size and buffer._shape:
            octets = buffer.reshape(-1).view(np.uint8)
            return octets[offset : offset + found.nbytes].view(found.dtype)
        return _as_writeable(array(found), is_writeable(buffer))  # nothing, or a number's bytes
    found = np.frombuffer(buffer, dtype, count, offset)
    return found if found.flags.writeable else _as_writeable(array(found), False)


def _as_writeable(made: Any, writeable: bool) -> Any:
    made.flags.writeable = writeable
    return made


@native(np.fromiter)
def fromiter(iter: Any, dtype: Any, count: Any = -1, *, like: Any = None) -> Any:
    """A vector of what an iterator gives."""
    return array(np.fromiter(iter, dtype, count))


@native(np.fromstring)
def fromstring(
    string: Any, dtype: Any = float, count: Any = -1, *, sep: Any = "", like: Any = None
) -> Any:
    """A vector of the numbers that a text holds."""
    return array(np.fromstring(string, dtype, count, sep=sep))


@native(np.fromfile)
def fromfile(
    file: Any,
    dtype: Any = float,
    count: Any = -1,
    sep: Any = "",
    offset: Any = 0,
    *,
    like: Any = None,
) -> Any:
    """A vector of the numbers that a file holds."""
    return array(np.fromfile(file, dtype, count, sep, offset))


@native(np.from_dlpack)
def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """What a DLPack exporter holds now, as an array; ``copy=False`` looks at its memory, as for
    `array`, and is a BufferError where the device cannot."""
    if isinstance(x, Handle):
        return array(x, copy=copy)
    # Before 2.1 it has no such parameter, and never copies.
    host = np.from_dlpack(x, copy=False) if copy is False and HAS_DLPACK_1 else np.from_dlpack(x)
    try:
        made = array(host, copy=copy is not False)
    except ValueError as error:
        if copy is not False:
            raise
        raise BufferError(str(error)) from None
    if not host.flags.writeable:
        made.flags.writeable = False
    return made


_REQUIREMENTS = {
    name: name[0]
    for word in "CONTIGUOUS FORTRAN ALIGNED WRITEABLE OWNDATA ENSUREARRAY".split()
    for name in (word, word[0])
} | {"C_CONTIGUOUS": "C", "F_CONTIGUOUS": "F"}


@native(np.require)
def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Any:
    """`a` as an array with these flags: "C", "F", "A", "W", "O", "E"."""
    names = {_REQUIREMENTS[str(name).upper()] for name in requirements or ()}
    if {"C", "F"} <= names:
        raise ValueError('Cannot specify both "C" and "F" order')
    made = array(a, dtype, copy=None, order="F" if "F" in names else "C" if "C" in names else "K")
    if ("O" in names and not made.flags.owndata) or ("W" in names and not made.flags.writeable):
        return array(made, copy=True)
    return made
