"""Kernels with a mistake in them: with checked bounds, and in plain Python."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clfuse as cf

pytestmark = pytest.mark.clfuse_only

MODES: dict[str, dict[str, Any]] = {"bounds": {"check": "bounds"}, "python": {"kernels": "python"}}


@pytest.fixture(params=list(MODES))
def mode(request: pytest.FixtureRequest) -> Any:
    with cf.config.override(**MODES[request.param]):
        yield request.param


@cf.device_function
def deeper(values, place):
    return element(values, place)


@cf.device_function
def element(values, place):
    return values[place]  # here


@cf.kernel
def read(i, x, at, y):
    y[i] += x[at[i]]  # here


@cf.kernel
def scattered(i, x, at, y):
    y[at[i]] = x[i]  # here


@cf.kernel
def counted(i, x, at, y):
    cf.atomic.add(y, at[i], x[i])  # here


@cf.kernel
def kept(i, x, at, y):
    m = cf.local_array((2, 4), np.float64)
    m[1, at[i]] = x[i]  # here
    y[i] = m[1, 1] + m[1, 2]


@cf.kernel
def summed(i, x, at, y):
    total = 0.0
    for k in range(at[i] + 1):
        total += x[k]  # here
    y[i] = total


@cf.kernel
def walked(i, x, at, y):
    k = at[i]
    while k != 2:
        y[i] += x[k]  # here
        k += 1 if k < 2 else -2


@cf.kernel
def chosen(i, x, at, y):
    y[i] = cf.where(at[i] < 4, x[at[i]], -1.0)  # here


@cf.kernel
def looked_at_if_there(i, x, at, y):
    y[i] = x[at[i]] if at[i] < 4 else -1.0


@cf.kernel
def called(i, x, at, y):
    y[i] = deeper(x, at[i])


@cf.kernel(group=2)
def shared(i, x, at, y):
    s = cf.group.local_array(2, np.float64)
    s[at[i] - 1] = x[i]  # here
    cf.group.barrier()
    y[i] = s[0]


PLANTED = [
    (read, [0, 1, 4, 3], "x", 0, 4, 4), (read, [0, -1, 2, 3], "x", 0, -1, 4),
    (scattered, [0, 1, 2, 4], "y", 0, 4, 4), (counted, [-5, 1, 2, 3], "y", 0, -5, 4),
    (kept, [0, 1, 2, 4], "m", 1, 4, 4), (summed, [0, 1, 4, 3], "x", 0, 4, 4),
    (walked, [0, 3, -2, 3], "x", 0, -2, 4), (chosen, [0, 9, 1, 2], "x", 0, 9, 4),
    (shared, [1, 2, 1, 0], "s", 0, -1, 2),
]


def line_of(kernel: Any) -> int:
    lines, first = inspect.getsourcelines(getattr(kernel, "__wrapped__", kernel))
    return first + next(n for n, line in enumerate(lines) if line.endswith("# here\n"))


@pytest.mark.parametrize(("kernel", "at", "array", "axis", "index", "extent"), PLANTED)
def test_an_error_names_the_place_and_leaves_arrays_alone(
    kernel: Any, at: list[int], array: str, axis: int, index: int, extent: int, mode: str
) -> None:
    whole = cf.zeros((3, 4))
    x, y = cf.arange(1.0, 5), whole[1]
    wrong = (
        rf"kernel {kernel.__name__} .*`{array}` in line {line_of(kernel)}: index {index} is out of "
        rf"bounds for axis {axis} with size {extent}"
    )
    with pytest.raises(IndexError, match=wrong):
        kernel(4, x, cf.array(at), y)
    np.testing.assert_array_equal(whole, np.zeros((3, 4)))
    kernel(4, x, cf.array([1, 2, 2, 1]), y)
    assert whole[1].any()
    assert not whole[::2].any()


def test_what_a_condition_leaves_out_is_not_read(mode: str) -> None:
    y = cf.zeros(4)
    looked_at_if_there(4, cf.arange(1.0, 5), cf.array([0, 9, 3, 4]), y)
    np.testing.assert_array_equal(y, [1, -1, 4, -1])


def test_an_error_in_a_device_function_names_the_kernel_too(mode: str) -> None:
    x, y = cf.arange(4.0), cf.ones(4)
    with pytest.raises(IndexError, match=rf"kernel called .* in line {line_of(element)}: index 4 "):
        called(4, x, cf.array([0, 1, 4, 3]), y)
    assert y.tolist() == [1, 1, 1, 1]


def test_a_literal_that_counts_from_the_end_is_shown_as_written(mode: str, route: str) -> None:
    @cf.kernel
    def last(i, x, y):
        y[i] = x[-3]

    last(2, cf.arange(3.0), y := cf.ones(2))
    assert y.tolist() == [0, 0]
    with pytest.raises(IndexError, match=r"index -3 is out of bounds .* size 2"):
        last(2, cf.arange(2.0), y)
    off: dict[str, Any] = {"check": "off", "kernels": "compiled"}
    with cf.config.override(**off):
        assert "array" in last.route(2, cf.arange(3.0), y) or route == "launch"
        if route == "arrays":  # then it is known at the call
            with pytest.raises(IndexError, match=r"index -3 is out of bounds .* size 2"):
                last(2, cf.arange(2.0), y)


def test_functions_with_jit_are_called_as_they_stand(mode: str) -> None:
    @cf.jit
    def step(x: Any, at: Any) -> Any:
        y = cf.zeros(4)
        read(4, x, at, y)
        return y * 2

    assert step(cf.arange(4.0), cf.array([3, 2, 1, 0])).tolist() == [6, 4, 2, 0]
    with pytest.raises(IndexError, match="index 4 "):
        step(cf.arange(4.0), cf.array([3, 2, 4, 0]))


def test_kernels_in_python_print_assert_and_stop(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def make() -> Callable[..., Any]:
        @cf.device_function
        def half(v):
            print(f"half of {v}")
            return v / 2

        @cf.kernel
        def told(i, x, y):
            assert x[i] >= 0, "negative"
            y[i] = half(x[i])
            if y[i] > 1:
                breakpoint()  # noqa: T100

        return told

    with pytest.raises(cf.KernelError, match="CLFUSE_KERNELS=python"):
        make()
    stops = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: stops.append(sys._getframe(1).f_lineno))
    y = cf.zeros(3)
    with cf.config.override(kernels="python"):
        told = make()
        told(3, cf.array([0.0, 3.0, 2.0]), y)
        assert capsys.readouterr().out == "half of 0.0\nhalf of 3.0\nhalf of 2.0\n"
        assert len(stops) == 1
        with pytest.raises(AssertionError, match="negative"):
            told(3, cf.array([4.0, -3.0, 2.0]), y)
    assert y.tolist() == [0, 1.5, 1]
    told(3, cf.array([4.0, -3.0, 2.0]), y)  # compiled it says nothing
    assert y.tolist() == [2, -1.5, 1]
