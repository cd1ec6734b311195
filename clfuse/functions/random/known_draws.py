"""Functions that draw one number, before NumPy's checks: what the compiled part draws by itself.

    for each in events:
        count += rng.poisson(rate)      NumPy takes .4 us, its checks and our own in Python 3 to 6

What is uniform, normal or exponential it knows (`single_draws.drawing_one`). Of other distributions
it asks here how it is to draw for parameters, once for the same ones.
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
from .bits import DRAWN, few_of
from .distributions import LINEAR
from .formulas import DISTRIBUTIONS
from .single_draws import ONE_NUMBER, drawing_one, traced

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

    def __call__(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """A `KnownDraw` for arguments that are Python's numbers; None where they are not good."""
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
            return None if asked is None else _known(DRAWN[asked[0]], None, *asked[1:])
        numbers = tuple(map(float, parameters))
        if name in LINEAR:
            standard, scaled = LINEAR[name]
            found = scaled(*numbers)
            steps = traced(formulas.STANDARD[standard], (), 1)
            return None if found is None else _known(0, steps, (), *found, is_wide=False)
        if not _takes(self._examine, examined):
            return None
        steps = traced(row.formula, (float,) * len(numbers), row.draws)
        return _known(0, steps, numbers, is_wide=row.is_wide)

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



def _known(
    kind: int,
    steps: Any,
    parameters: tuple[float, ...],
    start: float = 0.0,
    scale: float = 1.0,
    whole: bool = False,
    *,
    is_wide: bool = True,
) -> Any:
    """`KnownDraw` of a kind, or of the steps of a formula."""
    return _core.KnownDraw(kind, steps, parameters, start, scale, whole, is_wide)  # type: ignore[union-attr]
