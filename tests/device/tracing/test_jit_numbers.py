"""`clfuse.jit` and Python's numbers: inputs while they are calculated with, part of the signature
where the function looks at them. Every call is compared with NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.device.tracing.test_jit import assert_same, counted
from tests.support.agreement import host
from tests.support.hostile import ordinary

pytestmark = pytest.mark.clfuse_only

FLOATS = [0.5, -0.0, 3.0, float("inf"), float("nan"), 1e300]
INTS = [3, 0, -2, 100]


def of_arrays(m: Any, x: Any, t: Any) -> Any:
    """Every operator that takes numbers as they come, from both sides."""
    y = x * t + t
    y = t - y / 2
    y += t
    y -= 0.25
    return {"y": [y, -y], "less": (x < t, t >= x, x != t), "more": m.copysign(x, t)}


def calculated(m: Any, x: Any, t: Any) -> Any:
    """Arithmetic of numbers is Python's, also in what is returned."""
    u = (t + 1) * 2.0 - t
    v = abs(-u) + 2 * t
    return x + u, x * (v / 4), u, [v, t], t


def written(m: Any, x: Any, t: Any) -> Any:
    y = x.copy()
    y[1:] = t
    y[0] += t
    whole = m.full(x.shape, t, x.dtype)
    nothing = m.zeros((), x.dtype)
    nothing[...] = t
    return y, whole + 1, nothing, m.where(x > 0.25, x, t)


def looked_at(m: Any, x: Any, t: Any) -> Any:
    if t > 1:
        return x + t
    return x - math.floor(t) if t == t and abs(t) < 2 else x * 2


def as_a_size(m: Any, x: Any, n: Any) -> Any:
    return m.zeros(abs(n)) + x[0] * n, x[: n % 3], x.repeat(abs(n) % 4), n


def powers(m: Any, x: Any, t: Any) -> Any:
    return x**t, m.power(m.abs(x), t), (m.abs(x) + 1) ** (t * 0.5)


def on_other_ways(m: Any, x: Any, t: Any) -> Any:
    """What takes a number for an array, or asks what it is."""
    assert isinstance(t, float | int)
    y = m.clip(x, -t, t) if t >= 0 else x
    return y, m.add(t, t) * x, m.stack([x, x * t]).sum(0), m.linspace(0, 1, 4) * t, f"{t}"


def run(
    xp: ModuleType,
    function: Any,
    dtype: str,
    numbers: list[Any],
    container: Callable[..., Any],
    reference: ModuleType = np,
) -> list[int]:
    """Traces of each call; results are compared with those of the plain function."""
    jitted = xp.jit(lambda x, given: function(xp, x, given["t"][0]))
    traces = []
    for step, number in enumerate(numbers):
        data = ordinary(step, (5,), dtype, "small")
        with np.errstate(all="ignore"):
            expected = plain_error = actual_error = actual = None
            try:
                expected = function(reference, reference.array(data), number)
                if reference is xp:
                    expected = tuple([host(array) for array in expected])
            except (OverflowError, ZeroDivisionError, ValueError) as error:
                plain_error = error
        made: list[Any] = []
        x = xp.asarray(data)

        def call(x: Any = x, number: Any = number, made: list[Any] = made) -> None:
            made.append(jitted(x, {"t": container([number])}))

        try:
            traces.append(counted(xp, call)[0])
            (actual,) = made
        except (OverflowError, ZeroDivisionError, ValueError) as error:
            actual_error = error
        assert type(actual_error) is type(plain_error), (function, number)
        if plain_error is None:
            same(actual, expected)
    return traces


def same(actual: Any, expected: Any) -> None:
    """Like `assert_same`, with NaN equal to itself."""
    if isinstance(expected, float):
        assert type(actual) is float
        assert repr(actual) == repr(expected)
    elif isinstance(expected, list | tuple):
        assert type(actual) is type(expected)
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            same(one, other)
    elif isinstance(expected, dict):
        same(list(actual.values()), list(expected.values()))
    else:
        assert_same(actual, expected)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int32"])
def test_a_number_that_changes_is_an_input(xp: ModuleType, dtype: str) -> None:
    for function in (of_arrays, calculated, written):
        floats = FLOATS[:4] if dtype != "int32" else FLOATS[:3]
        if not (dtype == "int32" and function is written):
            assert run(xp, function, dtype, floats, list) == [1] + [0] * (len(floats) - 1)
    assert run(xp, calculated, dtype, INTS, tuple) == [1, 0, 0, 0]
    if dtype == "float64":
        assert run(xp, of_arrays, dtype, FLOATS, tuple) == [1, 0, 0, 0, 0, 0]


def test_a_number_that_is_looked_at_belongs_to_the_signature(xp: ModuleType) -> None:
    numbers = [0.5, 2.0, 0.5, 3.0, 2.0, -1.5, float("nan"), float("nan")]
    assert run(xp, looked_at, "float64", numbers, list) == [1, 1, 0, 1, 0, 1, 1, 0]
    assert run(xp, as_a_size, "float64", [3, 4, 3, -5], list) == [1, 1, 0, 1]
    assert run(xp, powers, "float64", [2, 3, 2, -1], list, xp) == [1, 1, 0, 1]
    assert run(xp, on_other_ways, "float32", [2.0, 0.5, 2.0, -1.0], list) == [1, 1, 0, 1]


def test_a_number_is_only_looked_at_where_it_is_reached(xp: ModuleType) -> None:
    @xp.jit
    def f(x: Any, n: Any, t: Any) -> Any:
        if n > 0:
            return x * t if t > 0 else x
        return x + t

    def plain(x: Any, n: Any, t: Any) -> Any:
        if n > 0:
            return x * t if t > 0 else x
        return x + t

    x = xp.arange(3.0)
    traces = []
    for n, t in [(0, 1.0), (0, 2.0), (1, 2.0), (1, 3.0), (0, 4.0), (1, 2.0), (1, -1.0)]:
        made: list[Any] = []
        traces.append(counted(xp, lambda n=n, t=t, made=made: made.append(f(x, n, t)))[0])
        assert_same(made[0], plain(np.arange(3.0), n, t))
    assert traces == [1, 0, 1, 1, 0, 0, 1]


def test_ints_that_a_dtype_does_not_hold(xp: ModuleType) -> None:
    def f(m: Any, x: Any, n: Any) -> Any:
        return x + n

    def g(m: Any, x: Any, n: Any) -> Any:
        return x < n, n == x, m.clip(x, -n, n)

    def h(m: Any, x: Any, n: Any) -> Any:
        return m.where(x > 2, x, n)

    numbers = [3, 300, -4, -300, 10**30, 5]
    assert run(xp, f, "int8", numbers, list)[0] == 1
    run(xp, g, "int8", numbers, list)
    run(xp, h, "uint8", [3, 200, 5], list)
    with pytest.raises(OverflowError):
        xp.jit(lambda x, n: x + n)(xp.arange(3, dtype="uint8"), -1)


def test_a_division_by_zero_is_the_functions_error(xp: ModuleType) -> None:
    @xp.jit
    def f(x: Any, t: Any) -> None:
        x += 1
        1 / t

    x = xp.zeros(3)
    f(x, 2.0)
    with pytest.raises(ZeroDivisionError):
        f(x, 0.0)
    f(x, 4.0)
    assert host(x).tolist() == [2, 2, 2]


def test_long_loops_over_numbers_take_time_in_proportion(xp: ModuleType) -> None:
    @xp.jit
    def f(x: Any, t: Any) -> Any:
        for _ in range(200):
            t = (t + t) * 0.5
        return x + t, t

    x = xp.zeros(2)
    for t in (0.1, 0.7):
        array, number = f(x, t)
        assert number == t
        assert host(array).tolist() == [t, t]
    assert counted(xp, lambda: f(x, 0.2)) == (0, 1)


def test_numbers_in_masks_gathers_and_closures(xp: ModuleType) -> None:
    table = xp.arange(10.0) * 10

    @xp.jit
    def f(x: Any, index: Any, low: Any, scale: float = 1.0) -> Any:
        inside = x >= low
        return xp.where(inside, table[index] * scale, low), (x * inside).sum(), {"n": low}

    x, index = np.linspace(0, 1, 10), np.arange(10)[::-1]
    ours = xp.asarray(x), xp.asarray(index)
    for low, scale in [(0.5, 1.0), (0.25, 2.0), (2.0, 0.5)]:
        picked, total, named = f(*ours, low, scale=scale)
        inside = x >= low
        assert_same(picked, np.where(inside, np.arange(10.0)[index] * 10 * scale, low))
        assert np.isclose(float(total), (x * inside).sum())
        assert named == {"n": low}
    assert counted(xp, lambda: f(*ours, 0.75, scale=3.0)) == (0, 1)


def test_index_arrays_are_checked_at_every_call(xp: ModuleType) -> None:
    @xp.jit
    def f(x: Any, index: Any) -> Any:
        return x[index[1:]] + 1, x.take(index[:2], mode="clip")

    x = xp.arange(5.0)
    for number, values in enumerate(([9, 1, -5], [3, 4, 4], [0, -1, 2])):
        made: list[Any] = []
        index = xp.asarray(np.array(values))
        traces = counted(xp, lambda index=index, made=made: made.append(f(x, index)))[0]
        assert traces == (number == 0)
        theirs = np.arange(5.0)
        assert_same(made[0], (theirs[values[1:]] + 1, theirs.take(values[:2], mode="clip")))
    for wrong in (5, -6):
        with pytest.raises(IndexError, match=f"index {wrong} is out of bounds"):
            f(x, xp.asarray(np.array([0, wrong, 1])))
    with pytest.raises(xp.JitError, match="a value is looked at"):
        xp.jit(lambda x, i: x[i * 2])(x, xp.arange(3))


def test_selecting_by_a_mask_is_refused_with_the_way_out(xp: ModuleType) -> None:
    x = xp.arange(4.0)
    with pytest.raises(xp.JitError, match=r"np\.where"):
        xp.jit(lambda x, t: x[x > t])(x, 0.5)
    assert host(x).tolist() == [0, 1, 2, 3]


def test_a_number_as_text_or_key_or_in_python_functions(xp: ModuleType) -> None:
    def f(m: Any, x: Any, t: Any) -> Any:
        table = {0.5: 1.0, 2.0: 3.0}
        return x * table.get(t, 7.0), str(t), round(t), divmod(t, 2), min(t, 1), t.is_integer()

    assert run(xp, f, "float64", [0.5, 2.0, 0.5], list) == [1, 1, 0]
