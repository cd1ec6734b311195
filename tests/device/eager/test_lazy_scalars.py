"""A lazy scalar that was computed is a number; arrays of NumPy's own that are small are NumPy's to
calculate."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.marks import compiled

pytestmark = [
    pytest.mark.clfuse_only,
    compiled,
]

OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge,
]  # fmt: skip
NUMBERS = [
    2, 2.5, True, 1j, np.float64(1.5), np.float32(1.5), np.int64(3), np.int8(3), np.bool_(True),
    np.complex64(1 + 2j), float("nan"), "text", None, [1, 2],
]  # fmt: skip
VALUES = np.arange(1.0, 40_001.0)


def told(call: Callable[[], Any]) -> Any:
    """What a call gives, or the class of its error."""
    try:
        with np.errstate(all="ignore"):
            value = call()
    except Exception as error:
        return type(error)
    return value if value is NotImplemented else np.asarray(value)


def assert_told_alike(ours: Any, theirs: Any, label: str) -> None:
    if isinstance(theirs, type):
        assert isinstance(ours, type), label
        assert issubclass(ours, theirs), label
        return
    assert ours.dtype == theirs.dtype, label
    np.testing.assert_array_equal(ours, theirs, label)


def scalars(xp: ModuleType, dtype: str) -> tuple[Any, Any]:
    """A lazy scalar that was looked at, and NumPy's."""
    lazy = xp.asarray(VALUES.astype(dtype)).max()
    assert lazy.item() == 40_000
    return lazy, VALUES.astype(dtype).max()


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "complex64"])
def test_arithmetic_with_numbers_is_numpys(dtype: str, xp: ModuleType) -> None:
    with xp.config.override(host_us=50):
        lazy, number = scalars(xp, dtype)
        other, another = scalars(xp, "float32")
        for apply in OPERATORS:
            for given in NUMBERS:
                label = f"{apply.__name__} {given!r}"
                assert_told_alike(
                    told(lambda: apply(lazy, given)), told(lambda: apply(number, given)), label)  # noqa: B023
                assert_told_alike(
                    told(lambda: apply(given, lazy)), told(lambda: apply(given, number)), label)  # noqa: B023
            assert_told_alike(
                told(lambda: apply(lazy, other)), told(lambda: apply(number, another)), "lazy")  # noqa: B023
        for alone in (operator.neg, abs, np.sqrt, np.sin):
            assert_told_alike(told(lambda: alone(lazy)), told(lambda: alone(number)), repr(alone))  # noqa: B023
        assert told(lambda: pow(lazy, 2, 3)) is told(lambda: pow(number, 2, 3))


def test_a_computed_scalar_is_a_number_and_another_is_recorded(xp: ModuleType) -> None:
    with xp.config.override(host_us=50):
        lazy, _ = scalars(xp, "float64")
        assert type(lazy * 2) is type(np.float32(3) + lazy) is type(-lazy) is np.float64
        assert type(lazy > 3) is type(np.float64(3) < lazy) is np.bool_
        assert type(xp.sqrt(lazy)) is type(xp.maximum(lazy, 3)) is np.float64
        waiting = xp.asarray(VALUES).min()
        assert type(waiting * 2) is type(waiting)
        assert type(waiting * lazy) is type(waiting)
        assert type(lazy * xp.arange(3.0)) is xp.ndarray
    with xp.config.override(host_us=0):  # kernels alone
        assert type(lazy * 2) is type(waiting)


def test_warnings_name_the_users_line(xp: ModuleType) -> None:
    with xp.config.override(host_us=50):
        lazy, _ = scalars(xp, "float64")
        expected = pytest.warns(RuntimeWarning, match="divide by zero")
        with np.errstate(all="warn"), expected as seen:
            lazy / 0
        assert [warning.filename for warning in seen] == [__file__]
        with np.errstate(all="raise"), pytest.raises(FloatingPointError):
            float(lazy / 0)


def test_a_traced_scalar_is_an_argument(xp: ModuleType) -> None:
    @xp.jit
    def scaled(x: Any, factor: Any) -> Any:
        return x * (factor * 2)

    with xp.config.override(host_us=50):
        x = xp.asarray(VALUES)
        for number in (1.0, 5.0, 9.0):
            factor = x.min() * number
            float(factor)
            np.testing.assert_array_equal(scaled(x, factor).get(), VALUES * number * 2)


CALLS: dict[str, Callable[[ModuleType, np.ndarray], Any]] = {
    "exp": lambda m, a: m.exp(a),
    "modf": lambda m, a: m.modf(a)[1],
    "add": lambda m, a: m.add(a, 1),
    "greater": lambda m, a: m.greater(2, a),
    "sum": lambda m, a: m.sum(a > 2),
    "norm": lambda m, a: m.linalg.norm(a),
    "cumsum": lambda m, a: m.cumsum(a),
    "clip": lambda m, a: m.clip(a, 1, 2),
    "reduce": lambda m, a: m.add.reduce(a),
    "where": lambda m, a: m.where(a > 2, a, 0),
    "dot": lambda m, a: m.dot(a, a),
    "before ours": lambda m, a: a * m.asarray(a),
    "after ours": lambda m, a: m.asarray(a) - a,
    "of another shape": lambda m, a: a[:, None] + m.asarray(a),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("host_us", [50, 0])
def test_calls_of_numpys_own_arrays(name: str, host_us: int, xp: ModuleType) -> None:
    call = CALLS[name]
    with xp.config.override(host_us=host_us):
        for dtype in ("float64", "float32", "int32"):
            given = np.arange(1, 30).astype(dtype)
            before = xp.stats()["kernels_launched"]
            made, expected = call(xp, given), call(np, given)
            assert isinstance(made, xp.ndarray) or not np.ndim(expected)
            assert made.dtype == expected.dtype
            kept = np.array(made)
            given[:] = 0  # the result is its own
            np.testing.assert_allclose(kept, expected, rtol=1e-6)
            np.testing.assert_array_equal(np.array(made), kept)
            if host_us and xp.get_device().traits.fp64:  # else NumPy calculates nothing
                assert xp.stats()["kernels_launched"] == before


def test_whole_numbers_of_numpys_bound_draws(xp: ModuleType) -> None:
    for kind in (np.int64, np.int32, np.uint8):
        drawn = [xp.random.default_rng(3).integers(kind(7), kind(90)) for _ in range(2)]
        assert drawn[0] == drawn[1] == xp.random.default_rng(3).integers(7, 90)
        xp.random.seed(3)
        first = xp.random.randint(kind(90))
        xp.random.seed(3)
        assert first == xp.random.randint(90)
        assert type(first) is int


@pytest.mark.parametrize("dtype", ["float64", "int64", "bool"])
def test_arithmetic_with_small_arrays_is_done_at_the_call(dtype: str, xp: ModuleType) -> None:
    small = np.arange(-2, 5).astype(dtype)
    bits = [operator.and_, operator.or_, operator.xor]
    for operate in OPERATORS + (bits if dtype != "float64" else []):
        if dtype == "bool" and operate is operator.sub:
            continue
        with xp.config.override(host_us=50):
            lazy = xp.asarray(np.arange(40_000) % 4).max()
            assert lazy.item() == 3
            lazy = lazy if dtype != "bool" else lazy > 1
            theirs = np.int64(3) if dtype != "bool" else np.bool_(True)
            ours = xp.asarray(small)
            label = operate.__name__
            assert_told_alike(
                told(lambda: operate(lazy, ours)), told(lambda: operate(theirs, small)), label  # noqa: B023
            )
            assert_told_alike(
                told(lambda: operate(ours, lazy)), told(lambda: operate(small, theirs)), label  # noqa: B023
            )
            before = xp.stats()["nodes_recorded"]
            if type(told(lambda: operate(theirs, small))) is not type:  # noqa: B023
                with np.errstate(all="ignore"):
                    operate(lazy, ours)
                assert xp.stats()["nodes_recorded"] == before, label
