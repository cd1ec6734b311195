"""Memory of large results of NumPy's is kept for the next ones."""

from __future__ import annotations

import platform
import threading
from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
from numpy._core.multiarray import get_handler_name  # type: ignore[attr-defined]
from numpy.testing import assert_array_equal

from clfuse._core import loading
from clfuse.interpreter import interpret

CORE = loading.load()
MOST = 1 << 26
"""Bytes that are kept."""

pytestmark = [
    pytest.mark.clfuse_only,
    pytest.mark.skipif(CORE is None, reason="the compiled part is off"),
    pytest.mark.skipif(
        platform.libc_ver()[0] != "glibc", reason="memory is kept where glibc's is trimmed"
    ),
]

SIZE = 40_000  # of eight bytes: the system's allocator would map it


def add(one: np.ndarray) -> np.ndarray:
    """What NumPy computes for an interpreted evaluation."""
    with interpret._kept_memory():
        return one + 1


def where(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def kept() -> int:
    return int(CORE.kept_memory_nbytes())  # type: ignore[union-attr]


def test_freed_memory_is_the_next_results() -> None:
    ones = np.ones(SIZE)
    first = add(ones)
    place = where(first)
    assert get_handler_name(first) == "clfuse"
    del first
    second = add(ones * 3)
    assert where(second) == place
    assert_array_equal(second, np.full(SIZE, 4.0))


def test_few_bytes_are_kept() -> None:
    for nbytes in (1 << 18, 1 << 22, 1 << 25, 1 << 26, 1 << 27):
        results = [add(np.zeros(nbytes // 8)) for _ in range(3)]
        del results
        assert kept() <= MOST


def test_smaller_and_larger_results_are_right() -> None:
    held = []
    for size in (SIZE, SIZE - 1, SIZE * 4 // 5, SIZE + 1, 17, SIZE // 3, SIZE):
        for number in range(4):
            result = add(np.full(size, float(number)))
            if number % 2:
                held.append((result, number + 1.0))
    for result, value in held:
        assert_array_equal(result, np.full(len(result), value))


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: x + x,
        lambda x: np.sqrt(x),
        lambda x: x.sum(),
        lambda x: np.concatenate((x, x)),
        lambda x: np.add(x, x, dtype="f4"),
    ],
)
def test_the_users_arrays_are_numpys(xp: ModuleType, ask: Callable[..., object]) -> None:
    with xp.config.override(host_us=10_000):
        x = xp.array(np.ones(SIZE))
        value = ask(x + 1)
        assert_array_equal(np.asarray(value), ask(np.ones(SIZE) + 1))
    assert get_handler_name(np.empty(SIZE)) == "default_allocator"


def test_an_error_leaves_numpys_allocator(xp: ModuleType) -> None:
    with xp.config.override(host_us=10_000):
        x = xp.array(np.ones(SIZE))
        with pytest.raises(ValueError, match="broadcast"):
            _ = x + xp.array(np.ones(SIZE - 1))
        with pytest.raises(FloatingPointError), xp.errstate(divide="raise"):
            xp.evaluate(x / (x - x))
    assert get_handler_name(np.empty(SIZE)) == "default_allocator"


def test_threads_have_memory_of_their_own() -> None:
    wrong = []

    def work(number: int) -> None:
        source = np.full(SIZE, float(number))
        for _ in range(200):
            result = add(source)
            if not (result == number + 1).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_results_can_be_resized_and_outlive() -> None:
    result = add(np.arange(float(SIZE)))
    result.resize(2 * SIZE, refcheck=False)
    assert_array_equal(result[:SIZE], np.arange(1.0, SIZE + 1))
    assert not result[SIZE:].any()
    result.resize(SIZE // 2, refcheck=False)
    assert_array_equal(result, np.arange(1.0, SIZE // 2 + 1))
