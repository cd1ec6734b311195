"""Functions that draw one number, before NumPy's checks: what the compiled part draws by itself.

    for each in events:
        count += rng.poisson(rate)      NumPy takes .4 us; checks and formulas in Python took 3 to 6

What is uniform, normal or exponential it knows (`ahead.drawing_one`). Of other distributions it
asks here what its own draws or a formula of them give for parameters, once for the same ones.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from clfuse._core import loading
from clfuse.config import settings

from . import formulas
from .ahead import ONE_NUMBER, drawing_one
from .bits import DRAWN, Drawn, few_of
from .distributions import LINEAR
from .formulas import DISTRIBUTIONS

__all__ = ["drawing_single"]

_core: Final = loading.load()

_OTHER_ARGUMENTS: Final = frozenset({"self", "size", "dtype", "out"})
"""Those of a method that are no parameters."""


def drawing_single(
    plain: Callable[..., Any],
    name: str,
    examiner: Any,
    holders: list[Any] | None = None,
    *,
    stricter: Any = None,
) -> Callable[..., Any]:
    """`plain`, a method `name` or a function that draws from the first of `holders`, with one
    number drawn by the compiled part.

    `examiner` is a generator of NumPy's, whose methods say what is wrong with parameters; what one
    that is `stricter` refuses is for `plain`, too.
    """
    if _core is None or name in ONE_NUMBER or name not in DISTRIBUTIONS:
        return drawing_one(plain, name, holders)
    look_up = _LookUp(name, getattr(examiner, name), getattr(stricter, name, None))
    weight = DISTRIBUTIONS[name].weight
    about = len(look_up.names), few_of(weight), weight
    made = _core.drawing_known(plain, look_up, *about, holders, settings)
    return functools.update_wrapper(made, plain)


class _LookUp:
    """Finds how the compiled part draws one number of a distribution.

    Attributes
    ----------
    name : str
    names : tuple of str
        Of the parameters.
    defaults : tuple
        What NumPy takes for those that are not given.
    """

    def __init__(
        self, name: str, examine: Callable[..., Any], refuse: Callable[..., Any] | None
    ) -> None:
        self.name = name
        self._examine = examine
        self._refuse = refuse
        given = inspect.signature(getattr(np.random.Generator, name)).parameters
        self.names = tuple(each for each in given if each not in _OTHER_ARGUMENTS)
        self.defaults = tuple(given[each].default for each in self.names)

    def __call__(self, args: tuple[Any, ...], named: dict[str, Any], again: bool) -> Any:
        """A `KnownDraw` for arguments that are Python's numbers; None where they are not good, or
        where a formula may never meet them again."""
        parameters = self._parameters(args, named)
        if parameters is None or (self._refuse and not _takes(self._refuse, parameters)):
            return None
        name, examined = self.name, parameters
        if name == "binomial" and type(parameters[0]) is int and parameters[0] == 1:
            name, parameters = "bernoulli", (parameters[1],)
        row = DISTRIBUTIONS[name]
        if any(type(parameters[place]) is not int for place in row.whole):
            return None
        if row.few is not None:
            asked = row.few(*parameters)
            return None if asked is None else _drawn(asked)
        numbers = tuple(
            value if place in row.whole else float(value)
            for place, value in enumerate(parameters)
        )
        if name in LINEAR:
            standard, scaled = LINEAR[name]
            found = scaled(*numbers)
            about = formulas.STANDARD[standard], ()
            return None if found is None else _of_formula(about, 1, *found)
        if not again or not _takes(self._examine, examined):
            return None
        return _of_formula((row.formula, numbers), row.draws, is_wide=row.is_wide)

    def _parameters(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...] | None:
        """All parameters in their order; None where the arguments are others."""
        count = len(args)
        if count > len(self.names):
            return None
        parameters = args + self.defaults[count:]
        if named:
            given = list(parameters)
            for name, value in named.items():
                if name not in self.names[count:]:
                    return None
                given[self.names.index(name)] = value
            parameters = tuple(given)
        return None if inspect.Parameter.empty in parameters else parameters


def _takes(method: Callable[..., Any], parameters: tuple[Any, ...]) -> bool:
    """Whether a method of NumPy's, asked for no numbers, finds nothing wrong with parameters."""
    try:
        method(*parameters, 0)
    except (OverflowError, TypeError, ValueError):
        return False
    return True


def _drawn(asked: Drawn) -> Any:
    kind, parameters, start, scale, whole = asked
    return _core.KnownDraw(DRAWN[kind], parameters, 1, start, scale, whole, True)  # type: ignore[union-attr]


def _of_formula(
    about: tuple[Any, ...], draws: int, start: float = 0.0, scale: float = 1.0, *,
    is_wide: bool = False,
) -> Any:
    return _core.KnownDraw(-1, about, draws, start, scale, False, is_wide)  # type: ignore[union-attr]
