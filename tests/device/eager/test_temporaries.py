"""Operators write into the memory of operands that nobody will see again, and into no other."""

from __future__ import annotations

import ctypes
import functools
import itertools
import operator
import platform
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from clfuse._core import loading

CORE = loading.load()
SIZE = 50_000  # of eight bytes: at least what is reused
NBYTES = 8 * SIZE

pytestmark = pytest.mark.clfuse_only

reused = pytest.mark.skipif(
    CORE is None
    or platform.libc_ver()[0] != "glibc"
    or not getattr(sys, "_is_gil_enabled", lambda: True)(),
    reason="nothing is reused here",
)


@pytest.fixture(autouse=True)
def by_numpy(xp: ModuleType) -> Iterator[None]:
    with xp.config.override(host_us=1_000_000):
        yield


@pytest.fixture
def all_sizes() -> Iterator[None]:
    """The memory of small temporaries is reused, too."""
    if CORE is None:
        yield
        return
    before = CORE.reuse_from(1)
    yield
    CORE.reuse_from(before)


def peak(call: Callable[[], Any]) -> int:
    """Bytes of NumPy's arrays at most at a time while something is called, beyond those before."""
    call()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@reused
@pytest.mark.parametrize("formula", [
    lambda x, y: x * y + x,
    lambda x, y: x - x * y,
    lambda x, y: y * 2 / (x + 1) - 3,
    lambda x, y: -(x * y),
    lambda x, y: abs(x - y) ** 2,
    lambda x, y: (x - y) * 3 % 2,
])  # fmt: skip
def test_steps_of_an_expression_share_memory(
    xp: ModuleType, formula: Callable[[Any, Any], Any]
) -> None:
    values = np.random.default_rng(0).random((2, SIZE))
    x, y = (xp.array(row) for row in values)
    assert_array_equal(formula(x, y), formula(*values))
    numpys = peak(lambda: formula(*values))
    assert peak(lambda: formula(x, y)) < max(numpys, NBYTES) + NBYTES // 2


OPERATORS = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.pow,
)  # fmt: skip


@pytest.mark.parametrize("dtype", ["?", "u1", "i4", "i8", "f2", "f4", "f8", "c16"])
@pytest.mark.parametrize("other", ["f8", "i4", 2, 2.5, "same", "row", "column"])
def test_every_operator_has_numpys_results(
    xp: ModuleType, all_sizes: None, dtype: str, other: Any
) -> None:
    values = (np.arange(12).reshape(3, 4) % 7 + 1).astype(dtype)
    beside = values if other == "same" else other
    if other in ("row", "column"):
        beside = values[:1] if other == "row" else values[:, :1]
    elif isinstance(other, str) and other != "same":
        beside = np.arange(1, 13).reshape(3, 4).astype(other)
    array = xp.array(values)
    ours = xp.array(beside) if isinstance(beside, np.ndarray) else beside
    for text in ("+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "**"):
        for order in (f"(a.copy()) {text} b", f"b {text} (a.copy())"):
            outcomes = []
            for names in ({"a": values, "b": beside}, {"a": array, "b": ours}):
                try:
                    with np.errstate(all="ignore"):
                        outcomes.append(np.asarray(eval(order, names)))
                except TypeError:
                    outcomes.append(TypeError)
            wanted, found = outcomes
            if wanted is TypeError:
                assert found is TypeError, order
                continue
            assert found.dtype == wanted.dtype, order
            assert_array_equal(found, wanted, err_msg=order)
    assert_array_equal(array, values)


def test_what_a_name_holds_stays(xp: ModuleType, all_sizes: None) -> None:
    x = xp.array([1.0, 2.0, 3.0])
    product = x % 7
    alias = [product % 5]
    view = (x % 9)[:2]
    for _ in range(2):
        assert_array_equal(product % 2 + product, [2, 2, 4])
        assert_array_equal(alias[0] % 2, [1, 0, 1])
        assert_array_equal(view % 2 % 2, [1, 0])
        assert_array_equal(x % 2 % x, [0, 0, 1])
    assert_array_equal(product, [1, 2, 3])
    assert_array_equal(alias[0], [1, 2, 3])
    assert_array_equal(view, [1, 2])
    assert_array_equal(x, [1, 2, 3])


def test_views_of_a_temporary_see_it_as_it_was(xp: ModuleType, all_sizes: None) -> None:
    seen: list[Any] = []

    def shown(array: Any) -> Any:
        # Without the compiled part our arrays are no buffers.
        memory = np.array([2, 4, 1]) if CORE is None else memoryview(array)
        seen.append((array[1:], np.asarray(array), memory))
        return array

    x = xp.array([1.0, 2.0, 3.0])
    assert_array_equal(shown(x * 7 % 5) % 2, [0, 0, 1])
    assert_array_equal(shown(x * 7 % 5) * 0 % 2, [0, 0, 0])
    for part, array, memory in seen:
        assert_array_equal(part, [4, 1])
        assert_array_equal(array, [2, 4, 1])
        assert_array_equal(memory, [2, 4, 1])


def test_loops_over_objects_leave_them_as_they_are(xp: ModuleType, all_sizes: None) -> None:
    # Such an array refers to each of its elements once, and calls their operators from C.
    holder = np.empty(2, object)
    for place in range(2):
        holder[place] = xp.array([3.0, 4.0, 5.0]) % 7
    for change in (
        lambda: holder % 2, lambda: 2 - holder, lambda: -holder, lambda: abs(holder),
        lambda: holder**2, lambda: np.add.reduce(holder), lambda: np.subtract.outer(holder, holder),
    ):  # fmt: skip
        change()
        for item in holder:
            assert_array_equal(item, [3, 4, 5])
    nested = xp.array([3.0, 4.0]) % 7
    assert_array_equal((holder + nested)[1], [7, 8, 9])
    assert_array_equal(nested, [3, 4])


def test_callers_in_c_keep_their_operands(xp: ModuleType, all_sizes: None) -> None:
    remainder = ctypes.pythonapi.PyNumber_Remainder
    remainder.restype, remainder.argtypes = ctypes.py_object, [ctypes.py_object] * 2
    held = [xp.array([3.0, 4.0, 5.0]) % 7, xp.array([2.0, 2.0, 2.0])]
    assert_array_equal(remainder(held[0], held[1]), [1, 0, 1])
    assert_array_equal(held[0], [3, 4, 5])


def test_functions_of_operators_have_numpys_results(xp: ModuleType, all_sizes: None) -> None:
    def rows(module: ModuleType) -> list[Any]:
        return [module.array([5.0, 7.0, 9.0]) % each for each in (4, 6, 8)]

    def results(module: ModuleType) -> list[Any]:
        kept = rows(module)
        return [
            sum(rows(module)),
            functools.reduce(operator.sub, rows(module)),
            list(itertools.accumulate(rows(module), operator.mul)),
            list(map(operator.mod, rows(module), rows(module)[::-1])),
            [each + each % 2 for each in kept],
            kept,
        ]

    for found, wanted in zip(results(xp), results(np), strict=True):
        assert_array_equal(found, wanted)


def test_an_error_is_numpys_and_loses_nothing_named(xp: ModuleType, all_sizes: None) -> None:
    x = xp.array([1.0, 0.0, 3.0])
    with xp.errstate(divide="raise"), pytest.raises(FloatingPointError):
        1 / (x % 2) % x
    with pytest.raises(TypeError):
        (x % 2) % "text"
    with pytest.raises(ValueError, match="broadcast"):
        (x % 2) % xp.array([1.0, 2.0])
    assert_array_equal(x, [1, 0, 3])
