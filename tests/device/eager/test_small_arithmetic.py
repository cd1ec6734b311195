"""Operators on a few numbers on the host give NumPy's values, bits and warnings, in whatever order
the elements lie, whatever the other operand is, and however they overlap."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import clfuse
from clfuse._core import loading
from tests.support.agreement import assert_bitwise
from tests.support.hostile import hostile
from tests.support.marks import compiled
from tests.support.releases import IS_BEFORE_2_4

pytestmark = [pytest.mark.clfuse_only, pytest.mark.usefixtures("host_calculates")]
COMPILED = loading.load() is not None
"""Whether it is calculated at the call; else it is recorded, and lazy scalars come of it."""

OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge,
]  # fmt: skip
IN_PLACE = [operator.iadd, operator.isub, operator.imul, operator.itruediv]
KINDS = ("float64", "float32", "int64", "int32", "complex128", "uint8")
NUMBERS = [
    2, 2.5, -0.0, 0, 0.1, True, 2j, 300, 2**40, 2**53 + 1, 2**70, 1e39, 1e300, float("nan"),
    float("inf"), np.float64(0.1), np.float32(0.1), np.int64(3), np.int32(-3),
    np.complex128(1 + 2j), np.float64(0.0), np.int64(2**60), np.bool_(True), np.array(0.5),
    np.array(7, "i4"),
]  # fmt: skip
if IS_BEFORE_2_4:  # NumPy 2.0 ends the process: `np.zeros((2, 2), "i4")[:, 1:] < 2**40`
    NUMBERS = [number for number in NUMBERS if type(number) is not int or abs(number) < 128]
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "a row": lambda m: m[1],
    "a column": lambda m: m[:, 1],
    "backwards": lambda m: m[0, ::-1],
    "every second": lambda m: m[0, ::2],
    "all": lambda m: m[:],
    "turned": lambda m: m.T,
    "a part": lambda m: m[1:, 1:-1],
    "rows backwards": lambda m: m[::-1],
    "one row": lambda m: m[:1],
    "one column": lambda m: m[:, :1],
    "between": lambda m: m[:, None, :],
    "one": lambda m: m[2:3, 3:4],
}


@pytest.fixture(autouse=True)
def on_the_host() -> Iterator[None]:
    with clfuse.config.override(host_us=50):
        yield


def told(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What a call gives or raises, and of what it warns."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            answer = call()
            answer = answer.get() if hasattr(answer, "get") else answer
        except Exception as error:
            answer = type(error)
    return answer, sorted(str(warning.message) for warning in seen)


def matrix(kind: str, seed: int) -> np.ndarray[Any, Any]:
    """Hostile and ordinary values, 6 by 7."""
    random = np.random.default_rng(seed)
    values = random.choice(hostile(kind), 42)
    values[:20] = random.integers(1, 100, 20)
    return random.permutation(values).reshape(6, 7)


def agree(actual: tuple[Any, list[str]], expected: tuple[Any, list[str]]) -> None:
    assert actual[1] == expected[1]
    if isinstance(expected[0], type):
        assert actual[0] is expected[0]
    else:
        assert np.asarray(actual[0]).dtype == np.asarray(expected[0]).dtype
        assert_bitwise(np.asarray(actual[0]), np.asarray(expected[0]))


def both(kind: str, seed: int = 0) -> tuple[np.ndarray[Any, Any], Any]:
    """A matrix as NumPy's and as ours, whose rows were asked for."""
    theirs = matrix(kind, seed)
    ours = clfuse.asarray(theirs.copy())
    ours[0, 0]
    return theirs, ours


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_number_and_an_array(kind: str, layout: str) -> None:
    theirs, ours = [LAYOUTS[layout](m) for m in both(kind)]
    before = clfuse.stats()["nodes_recorded"]
    assert ours.strides == theirs.strides
    for number in NUMBERS:
        for apply in OPERATORS:
            actual = told(lambda: apply(ours, number))  # noqa: B023
            agree(actual, told(lambda: apply(theirs, number)))  # noqa: B023
            if not isinstance(number, np.ndarray):
                actual = told(lambda: apply(number, ours))  # noqa: B023
                agree(actual, told(lambda: apply(number, theirs)))  # noqa: B023
        for function in ("maximum", "arctan2", "add", "less", "ldexp", "hypot", "divide"):
            actual = told(lambda: getattr(clfuse, function)(ours, number))  # noqa: B023
            agree(actual, told(lambda: getattr(np, function)(theirs, number)))  # noqa: B023
    usual = told(lambda: ours + ours.dtype.type(1))[0]
    assert usual.flags.c_contiguous == (theirs + theirs.dtype.type(1)).flags.c_contiguous
    if kind == "float64":
        assert type(ours * 2.0) is clfuse.ndarray
        assert before == clfuse.stats()["nodes_recorded"] or not COMPILED


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("apply", OPERATORS)
def test_two_arrays_in_all_orders(kind: str, apply: Callable[[Any, Any], Any]) -> None:
    theirs, ours = both(kind)
    others, other = both(kind, 1)
    for first in LAYOUTS.values():
        for second in LAYOUTS.values():
            actual = told(lambda: apply(first(ours), second(other)))  # noqa: B023
            expected = told(lambda: apply(first(theirs), second(others)))  # noqa: B023
            agree(actual, expected)
    mixed = both("float32")
    agree(told(lambda: apply(ours, mixed[1])), told(lambda: apply(theirs, mixed[0])))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("apply", IN_PLACE)
def test_in_place_with_what_overlaps(kind: str, apply: Callable[[Any, Any], Any]) -> None:
    for first in LAYOUTS.values():
        for second in (*LAYOUTS.values(), *NUMBERS):
            theirs, ours = both(kind)
            call = second if callable(second) else lambda m, number=second: number
            agree(
                told(lambda: apply(first(ours), call(ours))),  # noqa: B023
                told(lambda: apply(first(theirs), call(theirs))),  # noqa: B023
            )
            assert_bitwise(ours.get(), theirs)


@pytest.mark.parametrize("kind", ["float64", "float32", "complex128", "int64"])
@pytest.mark.parametrize("product", ["dot", "matmul"])
def test_products_of_vectors(kind: str, product: str) -> None:
    if kind == "complex128" and not COMPILED:
        pytest.skip("what BLAS makes of complex infinities no kernel does")
    theirs, ours = both(kind)
    others, other = both(kind, 1)
    vectors = [lambda m: m[1], lambda m: m[2, ::-1], lambda m: m[0, 1:3], lambda m: m[1:, 2],
               lambda m: m[:, 1], lambda m: m[0, :0], lambda m: m[3, 1:2], lambda m: m[:6:2, 4],
               lambda m: abs(m[4] % 100) if m.dtype.kind == "i" else m[0, :0]]  # fmt: skip
    for one in vectors:
        for two in vectors:
            actual = told(lambda: getattr(clfuse, product)(one(ours), two(other)))  # noqa: B023
            expected = told(lambda: getattr(np, product)(one(theirs), two(others)))  # noqa: B023
            agree(actual, expected)
            assert type(actual[0]) is type(expected[0]) or not COMPILED


def test_errors_that_are_to_be_raised_are() -> None:
    x = clfuse.asarray(np.array([1.0, 0.0, 1e300]))
    x[0]
    with clfuse.errstate(all="raise"):
        with pytest.raises(FloatingPointError, match="divide by zero"):
            1.0 / x
        with pytest.raises(FloatingPointError, match="overflow"):
            x @ x
        with pytest.raises(FloatingPointError, match="overflow"):
            x *= np.float64(1e10)
    x = clfuse.asarray(np.array([1.0, 0.0, 1e300]))
    x[0]
    with clfuse.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (np.float64(1.0) / x).tolist() == [1.0, np.inf, 1e-300]
        assert x @ x == np.inf


def test_scalars_of_numpys_still_calculate_with_everything_else() -> None:
    for one in (np.float64(2.5), np.float32(2.5), np.int64(3), np.int32(3), np.complex128(1j)):
        for two in (2, 2.5, 1j, np.float32(3), np.ones(3), np.int64(2), np.ma.ones(2)):
            for name in ("add", "sub", "mul", "truediv"):
                direct = getattr(operator, name)(one, two)
                long = {"sub": "subtract", "mul": "multiply", "truediv": "divide"}.get(name, name)
                assert_bitwise(np.asarray(direct), np.asarray(getattr(np, long)(one, two)))
        with pytest.raises(TypeError):
            one + object()
        assert bool(one == object()) is False
    assert np.int64(2) * [1] == [1, 1]


def test_a_scalar_and_what_is_only_recorded() -> None:
    with clfuse.config.override(host_us=0):
        x = clfuse.arange(5.0)
        assert clfuse.explain(np.float64(2.0) * x).kernels
        for kind in (np.float64, np.float32, np.int64, np.int32, np.complex128):
            for apply in OPERATORS[:4] + OPERATORS[6:]:
                agree(told(lambda: apply(kind(2), x + 1)),  # noqa: B023
                      told(lambda: apply(kind(2), np.arange(5.0) + 1)))  # noqa: B023


INDICES = [
    0, -1, (2, 3), (-6, -7), (5, 7), (1, 2, 3), (), slice(None), slice(1, 4), (slice(None), 2),
    (slice(4, 0, -2), slice(1, None, 3)), (None, 1), (1, None, slice(2, 5)), (slice(3, 3), 1), ...,
    (..., 1), np.int64(2), (2, np.int64(1)), 6, -7, 2**70, True, 1.5, (slice(None, 2**70), 1),
    slice(1.0, 2), (slice(1, 2), slice(1, 2)), (None, None, None, None, None, None, None, 1),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_parts_are_read_and_written_to_as_numpys(kind: str) -> None:
    for index in INDICES:
        theirs, ours = both(kind)
        actual, expected = told(lambda: ours[index]), told(lambda: theirs[index])  # noqa: B023
        agree(actual, expected)
        if isinstance(expected[0], np.ndarray) and expected[0].size:
            assert ours[index].strides == expected[0].strides
            assert np.shares_memory(np.asarray(ours), np.asarray(ours[index]))
        elif not isinstance(expected[0], type):
            assert type(actual[0]) is type(expected[0]) or not COMPILED
        for value in (*NUMBERS, "itself", "turned", "a row", "of another dtype", None):
            theirs, ours = both(kind)
            held = ours[1:]
            if isinstance(value, str):
                given = [
                    {"itself": m[index] if not isinstance(expected[0], type) else 0,
                     "turned": m[::-1, ::-1], "a row": m[3],
                     "of another dtype": m[3].astype("f4")}[value]
                    for m in (ours, theirs)
                ]  # fmt: skip
            else:
                given = [value, value]
            agree(
                told(lambda: ours.__setitem__(index, given[0])),  # noqa: B023
                told(lambda: theirs.__setitem__(index, given[1])),  # noqa: B023
            )
            assert_bitwise(ours.get(), theirs)
            assert_bitwise(held.get(), theirs[1:])


LISTS = [
    [1, 2, 3], (1, 0, 1), (2.5, -0.0, float("nan")), [True, 2j, 1e300], (2**40, -1, 0),
    [2**63, 1, 2], [], [[1], [2]], [np.float32(3), 1, 2], (1, 2),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_lists_of_numbers_beside_arrays(kind: str) -> None:
    whole = matrix(kind, 5)[:, :3].copy()
    array = clfuse.array(whole)
    for given in LISTS:
        for apply in (*OPERATORS, np.maximum, np.logical_and):
            ours = getattr(clfuse, apply.__name__) if isinstance(apply, np.ufunc) else apply
            for place, part in ((1, whole[1]), (slice(None), whole)):
                actual = told(lambda: ours(array[place], given))  # noqa: B023
                agree(actual, told(lambda: apply(part, given)))  # noqa: B023
                actual = told(lambda: ours(given, array[place]))  # noqa: B023
                agree(actual, told(lambda: apply(given, part)))  # noqa: B023
    before = clfuse.stats()["nodes_recorded"]
    assert not (clfuse.bitwise_and((1, 0, 1), clfuse.array([1, 1, 0])) == (1, 0, 1)).all()
    assert clfuse.stats()["nodes_recorded"] == before or not COMPILED


@compiled
@pytest.mark.parametrize("kind", ["float64", "float32", "int32", "complex128", "?", "O", "matrix"])
def test_products_with_numpys_arrays_are_made_at_the_call(kind: str) -> None:
    """On either side, as rows, turned, of other dtypes and of shapes that do not fit."""
    values = np.arange(16.0).reshape(4, 4)
    theirs = np.matrix(values) if kind == "matrix" else values.astype(kind)
    ours = clfuse.asarray(values + 1)
    before = clfuse.stats()["nodes_recorded"]
    for one in (lambda m: m, lambda m: m.T, lambda m: m[1], lambda m: m[:, ::-2], lambda m: m[:3]):
        for product in (operator.matmul, lambda a, b: b @ a, clfuse.matmul, clfuse.dot):
            expected = told(lambda: product(one(values + 1), theirs))  # noqa: B023
            agree(told(lambda: product(one(ours), theirs)), expected)  # noqa: B023
    if kind not in ("matrix", "O"):
        assert clfuse.stats()["nodes_recorded"] == before
