"""Ufuncs of arrays on the host call NumPy's own loops: NumPy's bits, dtypes, order and warnings.

Sizes are on both sides of where a result goes to scratch memory, and of where NumPy is asked."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import clfuse
from tests.support.agreement import assert_bitwise
from tests.support.hostile import hostile
from tests.support.marks import compiled

pytestmark = [
    pytest.mark.clfuse_only, pytest.mark.usefixtures("host_calculates", "shared_memory"),
]  # fmt: skip

SIZES = (7, 513, 4_000, 40_000)
KINDS = ("bool", "int8", "uint16", "int32", "int64", "uint64", "float16", "float32", "float64",
         "complex64", "complex128")  # fmt: skip
ONE = ("absolute", "negative", "square", "sqrt", "exp", "sin", "reciprocal", "isnan", "logical_not",
       "invert", "sign", "floor", "conjugate")  # fmt: skip
TWO = ("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "power", "maximum",
       "fmin", "less", "not_equal", "logical_and", "bitwise_xor", "left_shift", "hypot", "arctan2",
       "copysign", "gcd", "float_power", "ldexp")  # fmt: skip
IN_PLACE = [operator.iadd, operator.isub, operator.itruediv, operator.imod, operator.ixor]
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda x: x,
    "backwards": lambda x: x[::-1],
    "every second": lambda x: x[::2],
    "a matrix": lambda x: x[: x.size // 4 * 4].reshape(4, -1),
    "a part": lambda x: x[: x.size // 6 * 6].reshape(2, 3, -1)[:, 1:],
    "turned": lambda x: x[: x.size // 5 * 5].reshape(5, -1).T,
}


@pytest.fixture(autouse=True)
def on_the_host() -> Iterator[None]:
    with clfuse.config.override(host_us=500), np.errstate(all="warn", under="ignore"):
        yield


def held(x: np.ndarray[Any, Any]) -> Any:
    """An array of ours whose elements a loop reads: little work on it is done at the call."""
    made = clfuse.array(x)
    for place in range(8):
        made[place % made.size].item()
    return made


def told(call: Callable[[], Any]) -> tuple[Any, list[tuple[str, str]]]:
    """What a call gives or raises, and of what it warns."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            answer = call()
            answer = answer.get() if hasattr(answer, "get") else answer
        except (TypeError, ValueError, FloatingPointError) as error:
            answer = type(error)
    return answer, sorted((str(one.message), one.filename) for one in seen)


def values(kind: str, size: int, seed: int) -> np.ndarray[Any, Any]:
    """Ordinary values, and a few hostile ones."""
    random = np.random.default_rng(seed)
    found = random.integers(1, 100, size).astype(kind)
    found[random.integers(0, size, max(1, size // 50))] = random.choice(hostile(kind))
    return found


def check(call: Callable[..., Any], ours: tuple[Any, ...], numpys: tuple[Any, ...]) -> None:
    """Compare what a call gives of our arrays, and of NumPy's."""
    found, expected = told(lambda: call(*ours)), told(lambda: call(*numpys))
    assert found[1] == expected[1]
    if isinstance(expected[0], type):
        assert found[0] is expected[0]
        return
    assert_bitwise(found[0], expected[0])
    assert found[0].flags.f_contiguous == expected[0].flags.f_contiguous


def function(name: str, layout: str) -> Callable[..., Any]:
    """The function of that name, of a module and of arrays, which lie as the layout says."""
    return lambda module, *arrays: getattr(module, name)(*map(LAYOUTS[layout], arrays))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_functions_of_one_array(kind: str, layout: str) -> None:
    for size in SIZES:
        x = values(kind, size, size)
        ours = held(x)
        for name in ONE:
            check(function(name, layout), (clfuse, ours), (np, x))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_functions_of_two_arrays(kind: str, layout: str) -> None:
    for size in SIZES:
        x, y = values(kind, size, size), values(kind, size, size + 1)
        ours, other = held(x), held(y)
        for name in TWO:
            check(function(name, layout), (clfuse, ours, other), (np, x, y))


@pytest.mark.parametrize("kind", ["int32", "float64", "complex64"])
def test_operands_are_stretched(kind: str) -> None:
    m = values(kind, 1200, 1).reshape(30, 40)
    ours = clfuse.array(m)
    pairs: list[Callable[[Any], tuple[Any, Any]]] = [
        lambda a: (a, a[3]), lambda a: (a[:, :1], a), lambda a: (a[:, :1], a[:1]),
        lambda a: (a[:, None], a[3]), lambda a: (a[None, :1], a[5, 6]), lambda a: (a[:5], a[:4]),
        lambda a: (a[:0], a[0]), lambda a: (a[:, ::-1], a[3, ::-1]),
    ]  # fmt: skip
    for pair in pairs:
        for apply in (operator.add, operator.mul, operator.le, operator.floordiv):
            check(lambda a, apply=apply, pair=pair: apply(*pair(a)), (ours,), (m,))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_changes_in_place_where_operands_overlap(kind: str, size: int) -> None:
    x, y = values(kind, size, size), values(kind, size, 5)
    pairs: list[Callable[[Any, Any], tuple[Any, Any]]] = [
        lambda a, b: (a, b), lambda a, b: (a, a), lambda a, b: (a, a[::-1]),
        lambda a, b: (a[1:], a[:-1]), lambda a, b: (a[:-1], a[1:]), lambda a, b: (a[::2], b[::2]),
        lambda a, b: (a[::-1], b), lambda a, b: (a, 3), lambda a, b: (a, a[2:3]),
        lambda a, b: (a[:2], b[:3]),
    ]  # fmt: skip
    for pair in pairs:
        for apply in IN_PLACE:

            def change(a: Any, b: Any, apply: Any = apply, pair: Any = pair) -> Any:
                apply(*pair(a, b))
                return a

            check(change, (held(x), held(y)), (x.copy(), y))


@compiled
@pytest.mark.parametrize("size", SIZES)
def test_a_warning_in_place_comes_after_the_change(size: int) -> None:
    x, y = np.ones(size), np.zeros(size)
    ours, other = held(x), held(y)
    for action in ("error", "always"):
        with warnings.catch_warnings():
            warnings.simplefilter(action, RuntimeWarning)  # type: ignore[arg-type]
            found = told(lambda: operator.itruediv(ours, other) is None)
            assert found == told(lambda: operator.itruediv(x, y) is None)
    assert_bitwise(ours.get(), x)
    with np.errstate(divide="raise", invalid="ignore"), clfuse.errstate(divide="raise"):
        assert told(lambda: operator.itruediv(clfuse.ones(size), other))[0] is FloatingPointError


@compiled
def test_underflow_is_seen_where_somebody_minds() -> None:
    x = np.full(2000, 1e-200)
    with clfuse.errstate(under="warn"):
        check(lambda a: a * a, (held(x),), (x,))
        assert told(lambda: x * x)[1]
