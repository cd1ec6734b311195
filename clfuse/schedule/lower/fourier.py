"""Fourier transforms as launches, on devices whose own kernels make them.

Every axis is transformed by itself, in the order that NumPy has. An axis of one launch is a
transform in local memory. Of several factors, ``n = f0 * f1 * ...``, step ``t`` transforms the
digit ``t`` of the position, and multiplies by the roots of the digits behind it::

    position of an element    j = (j0 * f1 + j1) * f2 + j2            the digits of what goes in
    of its result             k = k0 + f0 * (k1 + f1 * k2)            ... and of what comes out

Between steps ``k0 .. kt`` lie where ``j0 .. jt`` were; the last step puts them into their order.
A convolution is a transform whose elements are multiplied by a chirp when they are loaded, and by
the chirp's spectrum when they are stored; then its inverse, multiplied by the chirp again.
Real values are transformed as complex ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from clfuse.ir.layout import contiguous_strides
from clfuse.schedule.fourier_tables import Table
from clfuse.schedule.library_forms import Dim, Side
from clfuse.schedule.records import FourierPass, LibraryCall
from clfuse.target.fourier import Division, complex_of, divided, transforms
from clfuse.target.traits import DeviceTraits

from .emission import ValueTable

FOURIER: Final = "fourier"
"""The library operation; its param ends with (function, sizes, axes, norm)."""

_TURNED: Final = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}
"""The norm of the opposite direction: of `hfft`, which is an inverse, and of `ihfft`."""


class _Axis:
    """One axis to be transformed: how many points, what is loaded and what stored of it."""

    def __init__(self, axis: int, points: int, stored: int, *, is_inverse: bool) -> None:
        self.axis = axis
        self.points = points
        self.stored = stored
        self.is_inverse = is_inverse
        self.forms = "complex", "complex"
        self.conjugates = False, False
        self.scale = 1.0


def is_fourier(call: LibraryCall, traits: DeviceTraits) -> bool:
    """Whether launches of ours make this call."""
    if call.name != FOURIER or len(call.operands) != 1 or 0 in call.shape:
        return False
    return all(transforms(traits, call.dtype, each.points) for each in _axes(call))


def expand_fourier(
    call: LibraryCall, values: ValueTable, traits: DeviceTraits
) -> list[FourierPass]:
    """The launches that transform, with memory of their own between them."""
    (operand,) = call.operands
    dtype = complex_of(call.dtype)
    axes = _axes(call)
    shape = operand.shape
    side = _Array(operand.value, operand.dtype, operand.offset, operand.strides)
    passes: list[FourierPass] = []
    for number, each in enumerate(axes):
        is_last = number == len(axes) - 1
        stored = (*shape[: each.axis], each.stored, *shape[each.axis + 1 :])
        if is_last:
            target = _Array(call.target, call.dtype, 0, contiguous_strides(stored))
        else:
            value = values.new(math.prod(stored) * dtype.itemsize)
            target = _Array(value, dtype, 0, contiguous_strides(stored))
        maker = _Maker(call, values, traits, dtype, each)
        passes += maker.passes(shape, side, target)
        shape, side = stored, target
    return passes


def _axes(call: LibraryCall) -> list[_Axis]:
    """The axes of a call in the order of their transforms."""
    (operand,) = call.operands
    name, sizes, places, norm = call.param[-1]
    rank = len(operand.shape)
    axes = [places] if isinstance(places, int) else list(places)
    axes = [axis % rank for axis in axes]
    plain = name.rstrip("2n")
    given: list[Any] = [None] * len(axes)
    if sizes is not None:
        given = [sizes] if isinstance(sizes, int) else list(sizes)
    whole = [
        operand.shape[axis] if points is None else int(points)
        for axis, points in zip(axes, given, strict=True)
    ]
    if plain in ("irfft", "hfft") and given[-1] is None:
        whole[-1] = 2 * (operand.shape[axes[-1]] - 1)
    if plain in ("hfft", "ihfft"):
        norm = _TURNED[norm]
    is_inverse = plain in ("ifft", "irfft", "hfft")
    made = [
        _Axis(axis, points, points, is_inverse=is_inverse)
        for axis, points in zip(axes, whole, strict=True)
    ]
    last, points = made[-1], whole[-1]
    if plain in ("rfft", "ihfft"):
        last.stored = points // 2 + 1
        last.conjugates = False, plain == "ihfft"
    elif plain in ("irfft", "hfft"):
        last.forms = "halved", "real"
        last.conjugates = plain == "hfft", False
    # NumPy transforms the last axis first, but where half of a spectrum lies along it.
    ordered = made if plain == "irfft" else made[::-1]
    real = np.dtype(complex_of(call.dtype).char.lower())
    for number, each in enumerate(ordered):
        # NumPy's factor has the precision of what goes in.
        is_half = number == 0 and operand.dtype.char == "e" and real.char == "f"
        each.scale = _factor(norm, each.points, is_inverse, np.dtype("e") if is_half else real)
    return ordered


def _factor(norm: Any, points: int, is_inverse: bool, real: np.dtype) -> float:
    """By what NumPy multiplies the results along one axis."""
    with np.errstate(all="ignore"):
        if norm == "ortho":
            return float(np.reciprocal(np.sqrt(points, dtype=real)))
        is_divided = (norm == "forward") != is_inverse
        return float(np.reciprocal(points, dtype=real)) if is_divided else 1.0


class _Array:
    """Where the elements of an array lie."""

    def __init__(self, value: int, dtype: np.dtype, offset: int, strides: Sequence[int]) -> None:
        self.value = value
        self.dtype = dtype
        self.offset = offset
        self.strides = tuple(strides)


class _Maker:
    """Makes the launches of one axis."""

    def __init__(
        self, call: LibraryCall, values: ValueTable, traits: DeviceTraits, dtype: np.dtype,
        how: _Axis,
    ) -> None:  # fmt: skip
        self._call = call
        self._values = values
        self._dtype = dtype
        self._how = how
        division = divided(traits, dtype, how.points)
        assert division is not None
        self._division: Division = division

    def passes(self, shape: tuple[int, ...], source: _Array, target: _Array) -> list[FourierPass]:
        """From an array of `shape` to one that has another extent along the axis."""
        how, division = self._how, self._division
        others = [dim for dim in range(len(shape)) if dim != how.axis and shape[dim] != 1]
        batch = [
            Dim(shape[dim], source.strides[dim], 0, target.strides[dim], 0)
            for dim in reversed(others)
        ]
        rows = math.prod([dim.extent for dim in batch])
        load = Side(
            source.value, source.dtype, source.offset, source.strides[how.axis],
            min(shape[how.axis], how.points), how.forms[0], how.conjugates[0], None,
        )  # fmt: skip
        if how.forms[0] == "halved":
            load = replace(load, count=min(shape[how.axis], how.points // 2 + 1))
        store = Side(
            target.value, target.dtype, target.offset, target.strides[how.axis],
            how.stored, how.forms[1], how.conjugates[1], None,
        )  # fmt: skip
        length = division.length
        if not division.by_chirp:
            return self._steps(batch, rows, load, store, how.is_inverse, how.scale)
        char = self._dtype.char
        chirp = Table("chirp", how.points, how.is_inverse, char)
        spectrum = Table("spectrum", how.points, how.is_inverse, char, length)
        between = self._between(rows)
        there = [replace(dim, store_stride=stride) for dim, stride in zip(
            batch, self._packed(batch), strict=True)]
        back = [replace(dim, load_stride=stride) for dim, stride in zip(
            batch, self._packed(batch), strict=True)]
        return [
            *self._steps(
                there, rows, replace(load, table=chirp), replace(between, table=spectrum),
                False, 1.0,
            ),
            *self._steps(back, rows, between, replace(store, table=chirp), True, how.scale),
        ]  # fmt: skip

    def _between(self, rows: int) -> Side:
        """New memory for all rows of the axis, one after the other."""
        length = self._division.length
        value = self._values.new(rows * length * self._dtype.itemsize)
        return Side(value, self._dtype, 0, 1, length, "complex", False, None)

    def _packed(self, batch: Sequence[Dim]) -> list[int]:
        """The strides of rows in such memory."""
        strides, size = [], self._division.length
        for dim in batch:
            strides.append(size)
            size *= dim.extent
        return strides

    def _steps(
        self, batch: Sequence[Dim], rows: int, load: Side, store: Side, is_inverse: bool,
        scale: float,
    ) -> list[FourierPass]:  # fmt: skip
        factors = self._division.factors
        passes = []
        length = self._division.length
        packed = self._packed(batch)
        behind = length
        for t, factor in enumerate(factors):
            is_first, is_last = t == 0, t == len(factors) - 1
            whole, behind = behind, behind // factor  # of this digit and those behind it
            dims: list[Dim] = []
            if is_last:
                place = 1
                rest = length
                for digit in factors[:-1]:
                    rest //= digit
                    dims.append(Dim(digit, 0, rest, 0, place))
                    place *= digit
                steps = 1, place
            else:
                dims.append(Dim(behind, 0, 1, 0, 1))
                if not is_first:
                    dims.append(Dim(length // whole, 0, whole, 0, whole))
                steps = behind, behind
            target = store if is_last else self._between(rows)
            for dim, stride in zip(batch, packed, strict=True):
                dims.append(
                    replace(
                        dim,
                        load_stride=dim.load_stride if is_first else stride,
                        store_stride=dim.store_stride if is_last else stride,
                    )
                )
            passes.append(
                FourierPass(
                    self._call, factor, is_inverse, self._dtype, tuple(dims), load, target,
                    steps, self._how.points, 0 if is_last else whole, scale if is_last else 1.0,
                )
            )  # fmt: skip
            load = target
        return passes
