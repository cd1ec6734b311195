"""Errors have NumPy's words where no value of an array is in them: what a program that compares
texts sees, and what a reader looks up."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

SIZES = ((3, 4, 5), (30, 40, 50))

CALLS: dict[str, Callable[[ModuleType, Any], Any]] = {
    "one axis too many in out": lambda m, x: m.max(x, axis=1, out=m.zeros((1, x.shape[0]))),
    "out of another shape": lambda m, x: x.sum(axis=1, out=m.zeros(x.shape[:2])),
    "out of a fold to one number": lambda m, x: m.all(x, out=m.zeros(1)),
    "out of a mean": lambda m, x: m.mean(x, axis=2, out=m.zeros(x.shape[1:])),
    "out of a trace": lambda m, x: m.trace(x, out=m.zeros((1, x.shape[2]))),
    "out of clip": lambda m, x: m.clip(x, 2, 8, out=m.zeros(3)),
    "out of dot": lambda m, x: m.dot(x[0], x[0].T, out=m.zeros((2, 2))),
    "out of outer": lambda m, x: m.outer(x[0, 0], x[0, 1], out=m.zeros((1, 20))),
    "out of stack": lambda m, x: m.stack([x, x], out=m.zeros(x.shape)),
    "axis of linspace": lambda m, x: m.linspace(x[0], x[1], 3, axis=-4),
    "a float as an axis": lambda m, x: m.moveaxis(x, [0.0, 1], [1, 0]),
    "a float as repeats": lambda m, x: m.tile(x, 2.2),
    "text as an extent": lambda m, x: m.tri(10, M="x"),
    "nothing as an extent": lambda m, x: m.tri(None),
    "a complex extent": lambda m, x: m.ones(200 + 20j),
    "three widths of padding": lambda m, x: m.pad(x, [1, 2, 3]),
    "keys that are none": lambda m, x: m.lexsort(None),
    "one out for two results": lambda m, x: m.frexp(x, out=(x,)),
    "three outs for two results": lambda m, x: m.divmod(x, x, out=(x, x, x)),
    "no tuple for two results": lambda m, x: m.modf(x, out=x),
    "an index that is out of bounds": lambda m, x: x[0, 77],
    "a mask of another shape": lambda m, x: x[m.ones(2, bool)],
}


def words(call: Callable[[ModuleType, Any], Any], m: ModuleType, shape: tuple[int, ...]) -> str:
    x = m.arange(float(np.prod(shape))).reshape(shape)
    with warnings.catch_warnings(), pytest.raises(Exception) as caught:  # noqa: PT011
        warnings.simplefilter("ignore", DeprecationWarning)
        call(m, x)
    return f"{caught.type.__name__}: {caught.value}"


@pytest.mark.parametrize("shape", SIZES, ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_an_error_has_numpys_words(xp: ModuleType, name: str, shape: tuple[int, ...]) -> None:
    assert words(CALLS[name], xp, shape) == words(CALLS[name], np, shape)


def test_words_about_values_tell_of_the_values_of_the_call(xp: ModuleType) -> None:
    x = xp.arange(5000.0)
    with pytest.raises(IndexError, match="index 7777 is out of bounds for axis 0 with size 5000"):
        x[xp.array([3, 7777])]
    with pytest.raises(ValueError, match="index 31 is out of bounds for array with size 30"):
        xp.unravel_index(xp.array([3, 31]), (5, 6))
