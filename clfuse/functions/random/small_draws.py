"""Small draws on the host: formulas of them are NumPy's, at the call."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from clfuse._core import loading
from clfuse.arrays.conversion import from_host
from clfuse.arrays.promotion import FLOAT64
from clfuse.interpreter.host_functions import host_function

from .bits import DRAWN, Draw, Philox4x32, accepted_loop, as_array, few_of, key_and_position

__all__ = ["Maker", "RowsOfBits", "made_here"]

_core: Final = loading.load()


class Maker:
    """Makes draws one after the other: on the host, of NumPy's arrays, or recorded.

    Parameters
    ----------
    generator : Philox4x32
    shape : tuple of int
        Of the largest of the draws.
    weight : float
        What the host takes for a number, in additions.
    """

    def __init__(self, generator: Philox4x32, shape: tuple[int, ...], weight: float) -> None:
        self._generator = generator
        self._weight = weight
        device = None
        if _core is not None:
            device = _core.device_of_draws(shape, few_of(weight), weight)
        self._device = device if device is not None and device.fp64 else None

    def draw(self, shape: tuple[int, ...]) -> Any:
        """The next draw."""
        if self._device is None:
            return Draw(self._generator, shape, self._weight)
        return _DrawHere(self._generator, self._generator.take()[1], shape)

    def known(self, array: np.ndarray) -> Any:
        """What the host has, for formulas of these draws."""
        return from_host(array) if self._device is None else array

    def delivered(self, value: Any) -> Any:
        """What was made of draws as an array of its own."""
        if self._device is None:
            return as_array(value)
        return _core.result(np.ascontiguousarray(value), self._device)  # type: ignore[union-attr]


def made_here(
    generator: Philox4x32,
    size: Any,
    draws: int,
    weight: float,
    formula: Callable[..., Any],
    parameters: Sequence[Any],
) -> Any:
    """What NumPy makes of so many small draws of one `size` by a formula of them and of numbers, as
    an array; None where they are recorded."""
    if _core is None:
        return None
    device = _core.device_of_draws(size, few_of(weight), weight)
    if device is None or not device.fp64:
        return None
    shape = (size,) if type(size) is int else size
    here = [_DrawHere(generator, generator.take()[1], shape) for _ in range(draws)]
    with np.errstate(all="ignore"):
        made = formula(*here, *parameters)
    return _core.result(made, device)


class RowsOfBits:
    """What a draw makes of bits, for those that have them on the host."""

    def _row(self, name: str, dtype: np.dtype) -> np.ndarray:
        raise NotImplementedError

    def uniform(self, dtype: np.dtype = FLOAT64) -> np.ndarray:
        """As of `Draw`."""
        return self._row("uniform", dtype)

    def inner(self) -> np.ndarray:
        """As of `Draw`."""
        return self._row("open", FLOAT64)

    def positive(self, dtype: np.dtype = FLOAT64) -> np.ndarray:
        """As of `Draw`."""
        return self._row("positive", dtype)

    def normal(self, dtype: np.dtype = FLOAT64) -> np.ndarray:
        """As of `Draw`."""
        return self._row("normal", dtype)


class _DrawHere(RowsOfBits):
    """The numbers of a small `Draw` as arrays of NumPy's."""

    def __init__(self, generator: Philox4x32, position: int, shape: tuple[int, ...]) -> None:
        self._generator = generator
        self._at = position
        self._shape = shape

    def _row(self, name: str, dtype: np.dtype) -> np.ndarray:
        kind = _core.MADE_OF_BITS[f"{name}_of_bits_float{8 * dtype.itemsize}"]  # type: ignore[union-attr]
        made = np.empty(self._shape, dtype)
        _core.draw(kind, made, made.size, self._generator._key, self._at)  # type: ignore[union-attr]
        return made

    def accepted(self, name: str, *parameters: Any, dtype: np.dtype = FLOAT64) -> np.ndarray:
        """As of `Draw`."""
        count = math.prod(self._shape)
        at = self._generator._key, self._at
        if dtype is FLOAT64 and all(type(each) is float for each in parameters):
            made = np.empty(self._shape)
            _core.draw_alike(DRAWN[name], made, count, *at, parameters)  # type: ignore[union-attr]
            return made
        given = [self._whole(each) for each in parameters]
        if dtype is FLOAT64 and all(each is not None for each in given):
            made = np.empty(self._shape)
            _core.draw_each(DRAWN[name], made, count, *at, tuple(given))  # type: ignore[union-attr]
            return made
        index = np.arange(count).reshape(self._shape)
        counter = index, *key_and_position(*at)
        draw = host_function(accepted_loop(name, len(parameters), dtype))
        return draw(*counter, *parameters)  # type: ignore[misc,no-any-return]

    def _whole(self, given: Any) -> Any:
        """A parameter for each number of this draw, or one for all; None where they do not fit."""
        if type(given) is float:
            return given
        array = np.asarray(given, np.float64, order="C")
        if array.ndim == 0:
            return float(array)
        if array.shape == self._shape:
            return array
        try:
            return np.ascontiguousarray(np.broadcast_to(array, self._shape))
        except ValueError:  # the draw has another shape: the loop of all draws takes it
            return None
