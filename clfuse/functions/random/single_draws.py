"""Draws of one number: formulas of arrays as steps that the compiled part takes with doubles.

    for each in events:
        waited += rng.weibull(shape)    a formula of one number takes 10 to 40 us of NumPy's calls

A formula is called once, with symbols for its draws and for its parameters (`traced`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from clfuse._core import loading
from clfuse.arrays.promotion import FLOAT64
from clfuse.config import settings

from .bits import DRAWN, FEW, KIND_OF, Philox4x32

__all__ = ["ONE_NUMBER", "drawing_one", "single", "traced"]

_core: Final = loading.load()

ONE_NUMBER: Final = {
    **dict.fromkeys(("random", "random_sample", "ranf", "sample", "rand", "uniform"), "uniform"),
    **dict.fromkeys(("randn", "standard_normal", "normal"), "normal"),
    **dict.fromkeys(("exponential", "standard_exponential"), "positive"),
}
"""Functions that draw one number, scaled or not -> which, as in `bits.KIND_OF`. Of positive ones
minus the logarithm."""

MOST_PARAMETERS: Final = 3
"""Of what is drawn until it is accepted."""


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
    kinds = tuple(map(type, parameters))
    return traced(formula, kinds, draws).number(generator._key, position, parameters)


@functools.cache
def traced(formula: Callable[..., Any], kinds: tuple[type, ...], draws: int) -> Any:
    """The steps of a formula of so many draws, and of parameters that are floats or whole numbers
    below 2**53, as a `ScalarFormula`."""
    steps = _Steps(len(kinds))
    given = [
        _Symbol(steps, ("number", place), is_whole=kind is int) for place, kind in enumerate(kinds)
    ]
    made = formula(*[_SymbolOfDraw(steps, each) for each in range(draws)], *given)
    return steps.as_formula(made, draws)


_Place = tuple[str, int]
"""``number`` or ``step``, and which."""


class _Steps:
    """What a formula does: numbers that are known before, and steps.

    Attributes
    ----------
    constants : list of float
        After the parameters.
    """

    def __init__(self, parameters: int) -> None:
        self._parameters = parameters
        self.constants: list[float] = []
        self._steps: list[tuple[int, list[int], list[_Place]]] = []

    def add(self, name: str, operands: tuple[Any, ...], before: tuple[int, ...] = ()) -> _Symbol:
        """A step of a name of `SCALAR_STEPS`: some numbers, then operands."""
        places = [self._place(each) for each in operands]
        self._steps.append((_core.SCALAR_STEPS[name], [*before], places))  # type: ignore[union-attr]
        return _Symbol(self, ("step", len(self._steps) - 1))

    def _place(self, value: Any) -> _Place:
        if isinstance(value, _Symbol):
            return value.place
        number = float(value)
        if number not in self.constants:
            self.constants.append(number)
        return "number", self._parameters + self.constants.index(number)

    def as_formula(self, made: _Symbol, draws: int) -> Any:
        """The steps up to `made`."""
        known = self._parameters + len(self.constants)
        kind, last = made.place
        assert kind == "step"
        steps = [
            (code, before + [at if kind == "number" else known + at for kind, at in places])
            for code, before, places in self._steps[: last + 1]
        ]
        constants = self.constants
        return _core.ScalarFormula(self._parameters, constants, steps, draws, made.is_whole)  # type: ignore[union-attr]


_OF_WHOLE: Final = frozenset({np.add, np.subtract, np.multiply, np.minimum, np.maximum})
"""Of whole numbers they make whole ones."""


def _is_whole(value: Any) -> bool:
    return value.is_whole if isinstance(value, _Symbol) else isinstance(value, int | np.integer)


class _Symbol(NDArrayOperatorsMixin):
    """A number of a formula that is traced.

    Attributes
    ----------
    place : tuple of str and int
    is_whole : bool
        Whether it is of int64.
    """

    def __init__(self, steps: _Steps, place: _Place, *, is_whole: bool = False) -> None:
        self._steps = steps
        self.place = place
        self.is_whole = is_whole

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any) -> Any:
        assert method == "__call__"
        made = self._steps.add(ufunc.__name__, inputs)
        made.is_whole = ufunc in _OF_WHOLE and all(map(_is_whole, inputs))
        return made

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        assert function is np.where
        assert not kwargs
        chosen = self._steps.add("where", args)
        chosen.is_whole = all(map(_is_whole, args[1:]))
        return chosen

    def astype(self, dtype: Any) -> _Symbol:
        """As of an array."""
        is_whole = np.dtype(dtype).kind == "i"
        assert is_whole or dtype == FLOAT64
        return _Symbol(
            self._steps,
            self._steps.add("trunc", (self,)).place if is_whole else self.place,
            is_whole=is_whole,
        )


class _SymbolOfDraw:
    """A draw of a formula that is traced, as `Draw` is one of numbers."""

    def __init__(self, steps: _Steps, which: int) -> None:
        self._steps = steps
        self._which = which

    def _of_bits(self, name: str) -> _Symbol:
        return self._steps.add("of bits", (), (KIND_OF[name], self._which))

    def uniform(self, dtype: np.dtype = FLOAT64) -> _Symbol:
        """As of `Draw`."""
        return self._of_bits("uniform")

    def inner(self) -> _Symbol:
        """As of `Draw`."""
        return self._of_bits("open")

    def positive(self, dtype: np.dtype = FLOAT64) -> _Symbol:
        """As of `Draw`."""
        return self._of_bits("positive")

    def normal(self, dtype: np.dtype = FLOAT64) -> _Symbol:
        """As of `Draw`."""
        return self._of_bits("normal")

    def accepted(self, name: str, *parameters: Any, dtype: np.dtype = FLOAT64) -> _Symbol:
        """As of `Draw`."""
        given = (*parameters, *[0.0] * (MOST_PARAMETERS - len(parameters)))
        return self._steps.add("accepted", given, (DRAWN[name], self._which))
