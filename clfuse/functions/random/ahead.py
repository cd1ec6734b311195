"""Draws of one number: by the compiled part, or many at a time, before they are asked for.

    for each in events:
        count += rng.poisson(rate)      a formula of one number takes 10 us of NumPy's calls

What is uniform, normal or exponential is drawn by one call (`drawing_one`). A draw is a function of
its position alone, so those of the positions that a loop is thought to come to are made at once, by
the same functions of arrays, whoever asks for them in the end (`single`). The first draw of a kind
makes one number, the next one that follows soon makes many.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from clfuse._core import loading
from clfuse.arrays.promotion import FLOAT64
from clfuse.config import settings
from clfuse.interpreter.host_functions import host_function

from .bits import FEW, KIND_OF, Philox4x32, accepted_loop, bits_at
from .small_draws import RowsOfBits

__all__ = ["ONE_NUMBER", "drawing_one", "single"]

MOST_KINDS: Final = 16
"""Kinds of which numbers are kept: ever other parameters would fill them."""

_core: Final = loading.load()

ONE_NUMBER: Final = {
    **dict.fromkeys(("random", "random_sample", "ranf", "sample", "rand", "uniform"), "uniform"),
    **dict.fromkeys(("randn", "standard_normal", "normal"), "normal"),
    **dict.fromkeys(("exponential", "standard_exponential"), "positive"),
}
"""Functions that draw one number, scaled or not -> which, as in `bits.KIND_OF`. Of positive ones
minus the logarithm."""


def drawing_one(plain: Callable[..., Any], name: str, holders: Any = None) -> Callable[..., Any]:
    """`plain`, a method `name` or a function that draws from the first of `holders`: the compiled
    part draws one number, and a few."""
    if _core is None or name not in ONE_NUMBER:
        return plain
    number = ONE_NUMBER[name]
    log = np.log if number == "positive" else None
    made = _core.drawing(plain, name, KIND_OF[number], *FEW, log, holders, settings)
    return functools.update_wrapper(made, plain)


def single(
    generator: Philox4x32, formula: Callable[..., Any], parameters: tuple[Any, ...], draws: int = 1
) -> Any:
    """What a formula makes of so many draws of one number and of parameters, which are Python's
    numbers; for the compiled part."""
    position = generator.next_position(draws)
    about = formula, parameters
    kept = generator.ahead.get(about)
    if kept is None:
        if len(generator.ahead) >= MOST_KINDS:
            generator.ahead.clear()
        kept = generator.ahead[about] = _core.DrawsAhead()  # type: ignore[union-attr]
    number = kept.take(position)
    if number is not None:
        return number
    count, step = kept.positions_wanted(position)
    positions = np.uint64(position) + np.arange(count, dtype=np.uint64) * np.uint64(step)
    given = [_Draws(generator, positions + np.uint64(each)) for each in range(draws)]
    with np.errstate(all="ignore"):
        made = np.broadcast_to(formula(*given, *parameters), (count,)).tolist()
    kept.put(position, step, made)
    return made[0]


class _Draws(RowsOfBits):
    """Draws of one number each, of positions in a row, as `Draw` is one of many numbers."""

    def __init__(self, generator: Philox4x32, positions: np.ndarray) -> None:
        self._generator = generator
        self._positions = positions

    def _row(self, name: str, dtype: np.dtype) -> np.ndarray:
        kind = _core.MADE_OF_BITS[f"{name}_of_bits_float{8 * dtype.itemsize}"]  # type: ignore[union-attr]
        made = np.empty(len(self._positions), dtype)
        _core.numbers_made(kind, bits_at(self._generator._key, self._positions), made)  # type: ignore[union-attr]
        return made

    def accepted(self, name: str, *parameters: Any, dtype: np.dtype = FLOAT64) -> np.ndarray:
        """As of `Draw`."""
        key = np.array([self._generator._key], np.uint64).view(np.int64)
        counter = np.zeros(1, np.int64), key, self._positions.view(np.int64)
        draw = host_function(accepted_loop(name, len(parameters), dtype))
        given = [np.asarray(each, dtype) for each in parameters]
        return draw(*counter, *given)  # type: ignore[misc,no-any-return]
