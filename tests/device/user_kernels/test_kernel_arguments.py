"""Names of kernels and parameters, defaults, and strange arguments: a call gives what it gives in
plain Python, or an error that says what is wrong.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from tests.support.kernel_bodies import compare, kernel_of

pytestmark = pytest.mark.clfuse_only


class Color(enum.IntEnum):
    GREEN = 2


@cf.device_function
def add(one, other):
    return one + other


SCOPE = {"cf": cf, "add": add}


def written(body: str, head: str, name: str = "") -> Any:
    return kernel_of(body, head, SCOPE, name)


# Names that OpenCL C, or what is written for it, has for itself.
@pytest.mark.parametrize("name", ["dot", "half", "double", "kernel", "min", "main", "Été"])
def test_a_kernel_may_have_any_name(name: str, route: str) -> None:
    kernel = written("x[i] = x[i] * 2 if x[i] > 3 else i", "i, x", name)
    compare(kernel, 12, [np.arange(12.0)])


@pytest.mark.parametrize("head", ["i, x, x_n0, n0_x, s0_x", "i, k, count, place, total", "i, α, β",
                                  "i, double, int, x", "i, p_x, a_x, x, q_x"])
def test_parameters_may_have_any_name(head: str, route: str) -> None:
    names = head.split(", ")[1:]
    body = f"{names[-1]}[i] = {names[0]}[i] * 2 + i + len({names[1]})"
    given = [np.arange(12.0) + place for place in range(len(names))]
    compare(written(body, head), 12, given)


@pytest.mark.parametrize(("body", "head", "given", "ranges"), [
    ("x[i] = s * 2", "i, s, x", [np.array(2.5), np.arange(12.0)], 12),
    ("x[i] = 2", "i, x", [np.zeros(0)], 0),
    ("x[i] = len(e)", "i, e, x", [np.zeros(0), np.arange(12.0)], 12),
    ("x[i] = 2", "i, x", [np.arange(12.0)], ((5, 3),)),
    ("x[i] = 2", "i, x", [np.arange(12.0)], -3),
    ("x[i] = 2", "i, x", [np.arange(12.0)], range(3, 12)),
    ("x[i] = 2", "i, x", [np.arange(12.0)], np.int64(4)),
    ("x[i, j] = 2", "i, j, x", [np.zeros((0, 4))], (0, 4)),
    ("x[i] = e", "i, e, x", [Color.GREEN, np.arange(12.0)], 3),
    ("x[i] = e", "i, e, x", [np.float32(0.1), np.arange(12.0)], 3),
    ("t = s\nx[i] = t * 2 if x[i] > 3 else t", "i, s, x", [np.float32(0.1), np.arange(12.0)], 12),
    ("t = i\nif x[i] > 3:\n    t = s\nx[i] = t", "i, s, x", [np.int16(7), np.arange(12.0)], 12),
    ("if s and x[i] > 3 or not s:\n    x[i] = 2", "i, s, x", [np.True_, np.arange(12.0)], 12),
    ("x[i] = x[s] + x[s + i // 12]", "i, s, x", [np.int64(12), np.arange(13.0)], 12),
    ("x[i] *= s", "i, s, x", [0x9E3779B97F4A7C15, np.arange(12, dtype=np.uint64)], 12),
    ("x[i] = 2", "i, x", [np.arange(12.0)], [(3, 5)]),
    ("x[i] = 2", "i, x", [np.arange(12.0)], ([3, 5],)),
    ("x[i] = 2", "i, x", [np.arange(12.0)], np.array(4)),
    ("x[i] = i", "i, x", [np.arange(24.0)[::-2]], 12),
    ("x[i, j] = i * 10 + j", "i, j, x", [np.zeros((5, 4)).T], (4, 5)),
])
def test_arguments_and_ranges_may_be_strange(
    body: str, head: str, given: list[Any], ranges: Any, route: str
) -> None:
    compare(written(body, head), ranges, given)


def test_a_range_may_be_longer_than_any_memory() -> None:
    x = cf.zeros(3)
    kernel = written("if i == 2**61:\n    x[0] = 3", "i, x")
    kernel(((2**61 - 3, 2**61 + 3),), x)
    assert x.tolist() == [3, 0, 0]


def test_an_integer_of_more_than_64_bits_is_refused(route: str) -> None:
    kernel = written("x[i] = x[i] + s", "i, s, x")
    for number in (2**64, -(2**63) - 1):
        with pytest.raises(OverflowError, match=r"argument 1 is .*64 bits"):
            kernel(3, number, cf.zeros(3))


def test_an_integer_that_an_operation_does_not_take_is_refused(route: str) -> None:
    kernel = written("x[i] = add(x[i], s) + 1", "i, s, x")
    for number in (256, -1):
        with pytest.raises(OverflowError, match=rf"integer {number} out of bounds for uint8"):
            kernel(3, number, cf.zeros(3, np.uint8))
    left_out = written("if s >= 0:\n    x[i] += s", "i, s, x")
    compare(left_out, 3, [-1, np.ones(3, np.uint8)])


def test_indices_that_leave_64_bits_wrap(route: str) -> None:
    kernel, x = written("x[i] = s * s * s + i * s * s", "i, s, x"), cf.zeros(3, np.int64)
    kernel(3, 2**31 + 1, x)
    number = 2**31 + 1
    wide = [number**3 + i * number**2 for i in range(3)]
    assert x.tolist() == [(each + 2**63) % 2**64 - 2**63 for each in wide]


def test_arguments_may_be_named_and_have_defaults(route: str) -> None:
    kernel = written("y[i] = a * x[i] + b + i", "i, x, y, a=2.0, b=1")
    for named in ({}, {"a": 3}, {"b": 2, "a": 0.5}, {"a": np.float32(3)}):
        x, y, wanted = cf.arange(12.0), cf.zeros(12), np.zeros(12)
        kernel(12, x, y=y, **named)
        kernel.python(12, np.arange(12.0), wanted, **named)
        np.testing.assert_array_equal(y.get(), wanted)
    kernel(12, x, y, 1.0, 0)
    np.testing.assert_array_equal(y.get(), np.arange(12.0) * 2)
    term = written("return x[i] * a", "i, x, a=2")
    x = cf.asarray([1.0, 3.0, 2.0])
    assert term.reduce(3, x) == 12
    assert term.reduce(3, x=x, a=3, op="max") == 9
    assert term.scan(3, x=x, exclusive=True).tolist() == [0, 2, 8]
    assert term.python(3, x=np.ones(3), a=5).tolist() == [5, 5, 5]
    assert "launch" in term.route(3, x=x) or route == "arrays"
    assert "__kernel" in term.source(3, x=x)


def test_defaults_are_those_of_decoration_and_batches_have_them(route: str) -> None:
    scale = 3
    SCOPE["scale"] = scale
    kernel = written("x[i] = x[i] * a", "i, x, a=scale")
    SCOPE["scale"] = 5
    x = cf.ones((40, 10))
    for row in range(40):
        kernel(10, x[row])
    for row in range(0, 40, 2):
        kernel(10, x=x[row], a=2)
    expected = np.full((40, 10), 3.0)
    expected[::2] *= 2
    np.testing.assert_array_equal(x.get(), expected)


@pytest.mark.parametrize(("args", "named", "message"), [
    ((), {}, r"misses y"),
    ((1, 2, 3), {}, r"1 index\(es\) and 3 argument\(s\) given"),
    ((1,), {"y": 2}, "multiple values for argument 'y'"),
    ((1,), {"c": 2}, "unexpected keyword argument 'c'; behind 1 index.* there are y, a"),
    ((1,), {"i": 2}, "unexpected keyword argument 'i'"),
])
def test_arguments_that_do_not_fit_are_type_errors(
    args: tuple[Any, ...], named: dict[str, Any], message: str
) -> None:
    kernel = written("y[i] = a", "i, y, a=2")
    given = [cf.zeros(3) if each == 1 else each for each in args]
    with pytest.raises(TypeError, match=message):
        kernel(3, *given, **named)


@cf.kernel
def Été(größe, масштаб, ñandú, out):
    straße = ñandú[größe] * масштаб
    out[größe] = straße + 1


@cf.kernel
def enqueue(i, x):
    x[i] += 1


@cf.kernel
def a_name_that_no_table_of_kernels_has_a_column_for_and_that_is_longer_than_what_compilers_promise(
    i, x
):
    x[i] *= 2


def test_kernels_have_any_name_whatever_opencl_c_takes(route: str) -> None:
    x, out = cf.arange(5.0), cf.zeros(5)
    Été(5, 3.0, x, out)
    np.testing.assert_array_equal(out, np.arange(5) * 3.0 + 1)
    for kernel in (
        enqueue,
        a_name_that_no_table_of_kernels_has_a_column_for_and_that_is_longer_than_what_compilers_promise,
    ):
        kernel(5, x)
    np.testing.assert_array_equal(x, (np.arange(5) + 1) * 2.0)
    exec_ = cf.ElementwiseKernel("raw T x, T c", "T y", "y = x[i] + c", "exec")
    np.testing.assert_array_equal(exec_(x, cf.ones(5)), (np.arange(5) + 1) * 2.0 + 1)
