"""`numpy.fft`: transforms as library steps, frequencies and shifts as expressions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from clfuse.arrays.conversion import NotNative, as_handle
from clfuse.arrays.expressions import choose, combine, convert, scalar
from clfuse.arrays.handle import Handle, fresh, node_of
from clfuse.arrays.memory_order import arrange_axes, copy_order, permuted_node
from clfuse.arrays.promotion import FLOAT64, INT64
from clfuse.dispatch.host_call import native
from clfuse.dispatch.library_steps import dtype_of, recorded, step
from clfuse.functions.shaping.joining import deliver_joined as written
from clfuse.functions.shaping.manipulation import roll
from clfuse.ir import build
from clfuse.runtime.devices.selection import current_device
from clfuse.target.fourier import transforms

_NORMS: Final = (None, "backward", "ortho", "forward")
_HALVED: Final = ("rfft", "ihfft", "rfft2", "rfftn")
"""Transforms of real values: of the result, only half is there."""

_DOUBLED: Final = ("irfft", "hfft", "irfft2", "irfftn")
"""Their inverses."""


def _length(name: str, points: int) -> int:
    return points // 2 + 1 if name in _HALVED else points


def _called(name: str, points: int) -> str:
    """The name of NumPy's that a transform's floating-point errors are warned of by."""
    name = name.rstrip("2n")
    stage = {"hfft": "irfft", "ihfft": "rfft"}.get(name, name)
    return f"rfft_n_{'odd' if points % 2 else 'even'}" if stage == "rfft" else stage


def _transformed(
    name: str, handle: Handle, sizes: Sequence[int] | None, axes: Sequence[int], norm: Any, out: Any
) -> Any:
    """The array with axes transformed by a function of `numpy.fft`, as a library step; in `out`, if
    that is not None.

    `NotNative` for whatever is not plain: NumPy then raises, or warns, at the call.
    """
    shape = handle._shape
    rank = len(shape)
    several = name[-1] in "2n"
    if norm not in _NORMS or not axes:
        raise NotNative("with a norm that there is not, or of no axis")
    if not all(isinstance(axis, int | np.integer) and -rank <= axis < rank for axis in axes):
        raise NotNative("along an axis that there is not")
    places = [int(axis) % rank for axis in axes]
    if len(set(places)) != len(places):
        raise NotNative("along an axis more than once")
    extents = list(shape)
    if sizes is not None:
        whole = all(isinstance(points, int | np.integer) and points > 0 for points in sizes)
        if len(sizes) != len(places) or not whole:
            raise NotNative("of other sizes")
        for place, points in zip(places, sizes, strict=True):
            extents[place] = int(points)
    elif name in _DOUBLED:
        extents[places[-1]] = 2 * (shape[places[-1]] - 1)
    whole_extents = [extents[place] for place in places]
    if min(whole_extents) < 1:
        raise NotNative("of no points")
    called = _called(name, extents[places[-1]])
    extents[places[-1]] = _length(name, extents[places[-1]])
    function = getattr(np.fft, f"{name[:-1]}n" if several else name)
    dtype = dtype_of(function, handle._dtype, (2,) * len(places))
    if out is not None:
        return _into(out, _transformed(name, handle, sizes, axes, norm, None), several, sizes)
    if 0 in shape or 0 in extents:  # nothing, or the transform of zeros
        return fresh(build.broadcast(scalar(0, dtype), tuple(extents)))
    order = copy_order(handle)
    if order is None:
        node = node_of(handle)
    else:  # NumPy's result lies in memory as its operand does
        node = permuted_node(handle, shape, order)
        places = [order.index(place) for place in places]
        extents = [extents[place] for place in order]
    if "vkfft" in current_device().assumed_traits.libraries:
        from .device_fourier import transformed  # few programs need it

        made = transformed(name, node, whole_extents, places, norm, dtype)
        return fresh(made) if order is None else arrange_axes(made, order)
    given: Any = None if sizes is None else tuple([int(points) for points in sizes])
    where: Any = tuple(places)
    if not several:
        given, where = None if given is None else given[0], where[0]
    makes = step
    traits = current_device().assumed_traits
    if all(transforms(traits, dtype, points) for points in whole_extents):
        makes = recorded  # by kernels
    made = makes("fourier", [node], tuple(extents), dtype, (name, given, where, norm), called)
    return fresh(made) if order is None else arrange_axes(made, order)


def _into(out: Any, made: Any, several: bool, sizes: Any) -> Any:
    """The result in an array that takes it as it is."""
    if several and sizes is not None:
        raise NotNative("into an array, of other sizes")  # NumPy's steps have others between
    if not isinstance(out, Handle) or (out._shape, out._dtype) != (made._shape, made._dtype):
        raise NotNative("into an array of another kind")
    return written(node_of(made), out)


def _along_axis(name: str) -> Callable[..., Any]:
    reference = getattr(np.fft, name)

    def call(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
        return _transformed(name, as_handle(a), None if n is None else (n,), (axis,), norm, out)

    call.__doc__ = f"`numpy.fft.{name}`: along one axis."
    return native(reference, library=True)(functools.wraps(reference)(call))


def _along_axes(name: str, default: tuple[int, ...] | None) -> Callable[..., Any]:
    reference = getattr(np.fft, name)

    def call(a: Any, s: Any = None, axes: Any = default, norm: Any = None, out: Any = None) -> Any:
        if s is not None and axes is None:
            raise NotNative("of sizes without axes")
        if out is not None and name in ("ifft2", "irfft2"):
            raise NotNative("into an array, which releases of NumPy's forget")
        handle = as_handle(a)
        if axes is None:
            axes = tuple(range(len(handle._shape)))
        if not isinstance(axes, tuple | list) or not (s is None or isinstance(s, tuple | list)):
            raise NotNative("along something else")
        return _transformed(name, handle, s, axes, norm, out)

    call.__doc__ = f"`numpy.fft.{name}`: along several axes."
    return native(reference, library=True)(functools.wraps(reference)(call))


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    _along_axis(_name)
for _name in ("fftn", "ifftn", "rfftn", "irfftn"):
    _along_axes(_name, None)
for _name in ("fft2", "ifft2", "rfft2", "irfft2"):
    _along_axes(_name, (-2, -1))


# -- frequencies and shifts -----------------------------------------------------------------------


def _scaled(n: Any, d: Any, device: Any, count: Callable[[int], int]) -> tuple[int, Any]:
    if not isinstance(n, int | np.integer):
        raise ValueError("n should be an integer")
    if type(n) is bool:
        raise TypeError("an integer is required, not a bool")
    if device not in (None, "cpu") or not isinstance(d, int | float | np.generic) or n < 1:
        raise NotNative("of something else")
    factor = 1.0 / (n * d)  # type: ignore[operator] # Python's error for what is no number
    if np.asarray(factor).dtype != FLOAT64:
        raise NotNative("of a spacing of another kind")
    return count(int(n)), scalar(factor, FLOAT64)


@native(np.fft.fftfreq)
def fftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Any:
    """The frequencies of the elements of a transform: 0 and the positive ones, then the others."""
    count, factor = _scaled(n, d, device, lambda n: n)
    place = build.iota(count)
    first = combine(np.less, place, scalar((count - 1) // 2 + 1, INT64))
    turned = combine(np.subtract, place, scalar(count, INT64))
    whole = choose(first, place, turned, INT64, (count,))
    return fresh(combine(np.multiply, convert(whole, FLOAT64), factor))


@native(np.fft.rfftfreq)
def rfftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Any:
    """The frequencies of the elements of a transform of real values."""
    count, factor = _scaled(n, d, device, lambda n: n // 2 + 1)
    return fresh(combine(np.multiply, convert(build.iota(count), FLOAT64), factor))


def _shifts(x: Any, axes: Any) -> tuple[Any, list[int], Any]:
    handle = as_handle(x)
    if axes is None:
        axes = tuple(range(len(handle._shape)))
    named = axes if isinstance(axes, tuple | list) else (axes,)
    return handle, [handle._shape[axis] // 2 for axis in named], tuple(named)


@native(np.fft.fftshift)
def fftshift(x: Any, axes: Any = None) -> Any:
    """The elements moved so that those of frequency 0 are in the middle."""
    handle, shifts, named = _shifts(x, axes)
    return roll(handle, shifts, named)


@native(np.fft.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Any:
    """The inverse of `fftshift`."""
    handle, shifts, named = _shifts(x, axes)
    return roll(handle, [-shift for shift in shifts], named)
