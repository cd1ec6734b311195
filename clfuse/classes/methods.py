"""Methods of arrays that are functions with `self` in front."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from operator import index as as_index
from typing import Any

import numpy as np

from clfuse.arrays import handle as handles
from clfuse.arrays import views
from clfuse.arrays.conversion import host_view, move_to_device
from clfuse.arrays.handle import Handle, fresh, is_writeable, node_of
from clfuse.arrays.memory_order import copy_in_order
from clfuse.arrays.promotion import Casting
from clfuse.dispatch.host_call import announced, host_call
from clfuse.dispatch.registry import UFUNCS
from clfuse.functions import attributes
from clfuse.functions.indexing import masks, subscripts, taking
from clfuse.functions.linalg import products
from clfuse.functions.math import cumulative, reductions, selection, statistics
from clfuse.functions.shaping import creation, manipulation
from clfuse.functions.sorting import searching, sorting
from clfuse.ir import build

_Missing = np._NoValue


def _host_method(name: str) -> Callable[..., Any]:
    """A method that NumPy does on the host; `sort`, `put` and their kind write into the array."""
    method = getattr(np.ndarray, name)

    @functools.wraps(method)
    def call(self: Handle, *args: Any, **kwargs: Any) -> Any:
        return host_call(method, (self, *args), kwargs, name=f"ndarray.{name}")

    call.__doc__ = f"`numpy.ndarray.{name}`, on the host."
    return call


def _host_method_in_place(name: str) -> Callable[..., Any]:
    method = getattr(np.ndarray, name)

    @functools.wraps(method)
    def call(self: Handle, *args: Any, **kwargs: Any) -> Any:
        from clfuse.dispatch.host_call import HostArguments

        arguments = HostArguments()
        with announced(f"ndarray.{name}"):
            host = arguments.writable(self)
            value = method(
                host,
                *[arguments.to_host(item) for item in args],
                **{key: arguments.to_host(item) for key, item in kwargs.items()},
            )
        arguments.write_back()
        return arguments.to_device(value)

    call.__doc__ = f"`numpy.ndarray.{name}`, on the host."
    return call


class ArrayMethods(Handle):
    """Methods that arrays and lazy scalars have."""

    __slots__ = ()

    # -- reductions -------------------------------------------------------------------------------

    def sum(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = _Missing,
        initial: Any = _Missing,
        where: Any = _Missing,
    ) -> Any:
        """`numpy.sum`."""
        return reductions.sum(self, axis, dtype, out, keepdims, initial, where)

    def prod(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = _Missing,
        initial: Any = _Missing,
        where: Any = _Missing,
    ) -> Any:
        """`numpy.prod`."""
        return reductions.prod(self, axis, dtype, out, keepdims, initial, where)

    def max(
        self,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = _Missing,
        initial: Any = _Missing,
        where: Any = _Missing,
    ) -> Any:
        """`numpy.max`."""
        return reductions.max(self, axis, out, keepdims, initial, where)

    def min(
        self,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = _Missing,
        initial: Any = _Missing,
        where: Any = _Missing,
    ) -> Any:
        """`numpy.min`."""
        return reductions.min(self, axis, out, keepdims, initial, where)

    def any(
        self, axis: Any = None, out: Any = None, keepdims: Any = _Missing, *, where: Any = _Missing
    ) -> Any:
        """`numpy.any`."""
        return reductions.any(self, axis, out, keepdims, where=where)

    def all(
        self, axis: Any = None, out: Any = None, keepdims: Any = _Missing, *, where: Any = _Missing
    ) -> Any:
        """`numpy.all`."""
        return reductions.all(self, axis, out, keepdims, where=where)

    def argmax(self, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        """`numpy.argmax`."""
        return reductions.argmax(self, axis, out, keepdims=keepdims)

    def argmin(self, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        """`numpy.argmin`."""
        return reductions.argmin(self, axis, out, keepdims=keepdims)

    def mean(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = _Missing,
        *,
        where: Any = _Missing,
    ) -> Any:
        """`numpy.mean`."""
        return statistics.mean(self, axis, dtype, out, keepdims, where=where)

    def var(
        self,
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
        """`numpy.var`."""
        return statistics.var(
            self, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction
        )

    def std(
        self,
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
        """`numpy.std`."""
        return statistics.std(
            self, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction
        )

    def trace(
        self, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None
    ) -> Any:
        """`numpy.trace`."""
        return products.trace(self, offset, axis1, axis2, dtype, out)

    def cumsum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """`numpy.cumsum`."""
        return cumulative.cumsum(self, axis, dtype, out)

    def cumprod(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """`numpy.cumprod`."""
        return cumulative.cumprod(self, axis, dtype, out)

    def nonzero(self) -> Any:
        """`numpy.nonzero`."""
        return masks.nonzero(self)

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> Any:
        """`numpy.compress`."""
        return masks.compress(condition, self, axis, out)

    # -- shapes -----------------------------------------------------------------------------------

    def reshape(self, *shape: Any, order: Any = "C", copy: bool | None = None) -> Any:
        """`numpy.reshape`; the shape as one argument or as several."""
        if not shape:
            raise TypeError("reshape() takes exactly 1 argument (0 given)")
        if len(shape) == 1 and shape[0] is None:  # NumPy's method takes it, its function does not
            np.empty(0).reshape(None, order=order, copy=copy)
            return self.view()
        if len(shape) == 1:
            return manipulation.reshape(self, shape[0], order, copy=copy)
        return manipulation.reshape(self, shape, order, copy=copy)

    def ravel(self, order: Any = "C") -> Any:
        """`numpy.ravel`."""
        return manipulation.ravel(self, order)

    def flatten(self, order: Any = "C") -> Any:
        """The elements as a new vector."""
        return copy_in_order(manipulation.ravel(self, order), "C")

    def transpose(self, *axes: Any) -> Any:
        """`numpy.transpose`; the axes as one argument or as several."""
        if len(axes) == 1 and not isinstance(axes[0], int):
            (axes,) = axes
        return views.transpose_view(self, None if type(axes) is tuple and not axes else axes)

    def swapaxes(self, axis1: Any, axis2: Any, /) -> Any:
        """`numpy.swapaxes`."""
        return views.swap_axes(self, axis1, axis2)

    def squeeze(self, axis: Any = None) -> Any:
        """`numpy.squeeze`."""
        return views.squeeze_axes(self, axis)

    def diagonal(self, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
        """`numpy.diagonal`."""
        return views.diagonal_of(self, offset, axis1, axis2)

    def repeat(self, repeats: Any, axis: Any = None) -> Any:
        """`numpy.repeat`."""
        return manipulation.repeat(self, repeats, axis)

    def take(self, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
        """`numpy.take`."""
        return taking.take(self, indices, axis, out, mode)

    def choose(self, *choices: Any, out: Any = None, mode: str = "raise") -> Any:
        """`numpy.choose`; the choices as one argument or as several."""
        if not choices:
            raise TypeError("choose() takes at least 1 positional argument (0 given)")
        if len(choices) == 1:
            (choices,) = choices
        return taking.choose(self, choices, out, mode)

    def searchsorted(self, v: Any, side: str = "left", sorter: Any = None) -> Any:
        """`numpy.searchsorted`."""
        return searching.searchsorted(self, v, side, sorter)

    def argsort(
        self,
        axis: Any = -1,
        kind: Any = None,
        order: Any = None,
        *,
        stable: Any = None,
        descending: Any = None,
    ) -> Any:
        """`numpy.argsort`."""
        newer = {} if descending is None else {"descending": descending}
        return sorting.argsort(self, axis, kind, order, stable=stable, **newer)

    # -- values -----------------------------------------------------------------------------------

    def astype(
        self,
        dtype: Any,
        order: Any = "K",
        casting: Casting = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> Any:
        """The array with its elements cast to `dtype`."""
        return attributes.cast_to(self, dtype, order, casting, subok, copy)

    def view(self, dtype: Any = _Missing, type: Any = None) -> Any:
        """The same bytes as another dtype."""
        return attributes.viewed(self, dtype, type)

    def copy(self, order: Any = "C") -> Any:
        """A new array with the same values."""
        if type(self) in handles.SCALARS:
            return self
        return creation.array(self, order="C" if order is None else order)

    def clip(self, min: Any = _Missing, max: Any = _Missing, out: Any = None, **kwargs: Any) -> Any:
        """`numpy.clip`."""
        low = None if min is _Missing else min
        high = None if max is _Missing else max
        return selection.clip(self, low, high, out, **kwargs)

    def round(self, decimals: Any = 0, out: Any = None) -> Any:
        """`numpy.round`."""
        return selection.round(self, decimals, out)

    def conj(self, out: Any = None) -> Any:
        """`numpy.conjugate`."""
        if out is not None:
            return UFUNCS["conjugate"](self, out=out)
        return UFUNCS["conjugate"](self) if self._dtype.kind == "c" else self

    conjugate = conj

    def byteswap(self, inplace: bool = False) -> Any:
        """The elements with their bytes in the opposite order."""
        if type(self) in handles.SCALARS:
            given = (self, inplace)  # NumPy's error, where it is in place
            return host_call(self._dtype.type.byteswap, given, {}, name="ndarray.byteswap")
        swapped = host_call(np.ndarray.byteswap, (self,), {}, name="ndarray.byteswap")
        if inplace:
            subscripts.put(self, Ellipsis, swapped)
        return self if inplace else swapped

    # -- to the host ------------------------------------------------------------------------------

    def item(self, *args: Any) -> Any:
        """One element as a Python number."""
        return host_view(self).item(*args)

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return host_view(self).tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        """The elements as bytes."""
        return host_view(self).tobytes(order)

    def tofile(self, fid: Any, /, sep: str = "", format: str = "%s") -> None:
        """Write the elements to a file."""
        host_view(self).tofile(fid, sep, format)

    def dump(self, file: Any) -> None:
        """Pickle the array to a file, as a `numpy.ndarray`."""
        host_view(self).dump(file)

    def dumps(self) -> bytes:
        """The array pickled, as a `numpy.ndarray`."""
        return host_view(self).dumps()

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """The array on a device; on the one where it is, itself."""
        return move_to_device(self, device, stream)

    getfield = _host_method("getfield")


class MutatingMethods(Handle):
    """Methods that write into the array; lazy scalars have none of them."""

    __slots__ = ()

    def fill(self, value: Any, /) -> None:
        """Write one value everywhere."""
        if isinstance(value, list | tuple) or (hasattr(value, "ndim") and value.ndim):
            raise ValueError("setting an array element with a sequence.")
        value = subscripts.as_element(value, self._dtype)
        subscripts.put(self, Ellipsis, value)

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        """`numpy.put`."""
        taking.put(self, indices, values, mode)

    def sort(
        self,
        axis: Any = -1,
        kind: Any = None,
        order: Any = None,
        *,
        stable: Any = None,
        descending: Any = None,
    ) -> None:
        """Sort the array where it lies."""
        sorting.sort_in_place(self, axis, kind, order, stable, descending)

    def partition(
        self, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None
    ) -> None:
        """Bring every element of `kth` to where it is in a sorted array, smaller ones before."""
        sorting.partition_in_place(self, kth, axis, kind, order)

    def argpartition(
        self, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None
    ) -> Any:
        """`numpy.argpartition`."""
        return sorting.argpartition(self, kth, axis, kind, order)

    def dot(self, b: Any, out: Any = None) -> Any:
        """`numpy.dot`."""
        return products.dot(self, b, out)

    def setflags(self, write: Any = None, align: Any = None, uic: Any = None) -> None:
        """Let the array be written to, or not."""
        if uic:
            raise ValueError("cannot set WRITEBACKIFCOPY flag to True")
        if write is not None:
            self.flags.writeable = bool(write)

    def resize(self, *new_shape: Any, refcheck: bool = True) -> None:
        """Change shape and size in place; new elements are 0."""
        as_index(refcheck)  # nothing more: who refers to the array is not looked at
        if not new_shape:
            return
        wanted = new_shape[0] if len(new_shape) == 1 else new_shape
        if wanted is not None:
            _resize_in_place(self, views.requested_shape(wanted))

    setfield = _host_method_in_place("setfield")


def _resize_in_place(handle: Handle, shape: tuple[int, ...]) -> None:
    if any(extent < 0 for extent in shape):
        raise ValueError("negative dimensions not allowed")
    if math.prod(handle._shape) == math.prod(shape):
        attributes.reshape_in_place(handle, shape)
        return
    if handle._view is not None and handle._view.base is not None:
        raise ValueError("cannot resize this array: it does not own its data")
    if not is_writeable(handle):
        raise ValueError("cannot resize an array that references or is referenced")
    old, new = math.prod(handle._shape), math.prod(shape)
    flat = build.reshape(node_of(handle), (old,))
    if new > old:
        zeros = build.full(handle._dtype.type(0), (new - old,))
        flat = build.concatenate((flat, zeros), 0) if old else zeros
    elif new < old:
        flat = build.view(flat, (new,), 0, (1,))
    changed = fresh(build.reshape(flat, shape))
    # Views that others hold keep the old storage: NumPy forbids them (refcheck), nobody looks.
    handle._storage, handle._shape, handle._view = changed._storage, shape, None
