"""Threads record and evaluate at the same time; each sees what it would see alone."""

from __future__ import annotations

import operator
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import host, problem_bitwise
from tests.support.hostile import ordinary
from tests.support.rounds import IS_LONG, covering

THREADS = 8
ROUNDS = 12


def run_together(work: Callable[[int], Any]) -> list[Any]:
    """The results of `work(0..THREADS-1)`, all started at the same moment; errors are raised."""
    gate = threading.Barrier(THREADS)

    def wait_and_work(number: int) -> Any:
        gate.wait(60)
        with np.errstate(all="ignore"):
            return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(wait_and_work, range(THREADS), timeout=300))


def program(m: ModuleType, seed: int) -> list[Any]:
    """Arithmetic, writes through views, a reduction, a look in the middle."""
    x = m.array(ordinary(seed, (20, 30), "float64"))
    for step in range(ROUNDS):
        view = x[1:-1, ::2]
        view += m.sqrt(m.abs(x[:-2, ::2])) * (step + 1)
        x[:, 3] = x[:, 4] - seed
        if step % 4 == seed % 4:
            float(x[0, 0])
    return [x, x.max(axis=0), (x > 0).sum(), x.T[::-1]]


def test_threads_with_arrays_of_their_own_do_not_interfere(xp: ModuleType) -> None:
    def work(number: int) -> list[Any]:
        return [host(r) for r in program(xp, number)]

    for seed, results in enumerate(run_together(work)):
        for actual, expected in zip(results, program(np, seed), strict=True):
            assert problem_bitwise(actual, np.asarray(expected)) is None


@pytest.mark.clfuse_only
def test_first_calls_of_borrowed_functions_may_coincide() -> None:
    """In a process of its own: what NumPy's code calls is looked up at the first call."""
    code = """
import sys, threading, warnings
import numpy as np, clfuse
sys.setswitchinterval(1e-6)
x = clfuse.arange(9.0)
gate, failures = threading.Barrier(8), []
calls = [lambda: clfuse.percentile(x, 50), lambda: clfuse.median(x), lambda: clfuse.unique(x),
         lambda: clfuse.cov(x), lambda: clfuse.polyfit(x, x, 1), lambda: clfuse.isin(x, x),
         lambda: clfuse.quantile(x, 0.5), lambda: clfuse.insert(x, 2, 5)]
def work(call):
    gate.wait()
    try:
        np.asarray(call())
    except Exception as error:
        failures.append(repr(error))
threads = [threading.Thread(target=work, args=(call,)) for call in calls]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(failures)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                           env={**os.environ, "CLFUSE_HOST_US": "1000"}, check=True)
    assert found.stdout.strip() == "[]"


def test_threads_may_read_one_array(xp: ModuleType) -> None:
    data = ordinary(1, 5000, "float64")
    shared = xp.array(data)
    pending = shared * 2 + 1  # recorded by this thread, evaluated by whichever comes first

    def work(number: int) -> list[Any]:
        return [host(pending + number), host((shared * number).max()), host(pending[::2])]

    for number, results in enumerate(run_together(work)):
        for actual, expected in zip(results, [data * 2 + 1 + number, (data * number).max(),
                                              (data * 2 + 1)[::2]], strict=True):
            assert problem_bitwise(actual, np.asarray(expected)) is None


def test_one_expression_built_by_all_threads_at_once(xp: ModuleType) -> None:
    data = ordinary(2, 3000, "float32")

    def work(number: int) -> Any:
        return host(xp.sqrt(xp.abs(xp.array(data)) + 0.376) * 1.77 - number)

    for number, result in enumerate(run_together(work)):
        expected = np.sqrt(np.abs(data) + np.float32(0.376)) * np.float32(1.77) - number
        assert problem_bitwise(result, expected) is None


def test_threads_writing_to_one_array_lose_nothing_with_a_lock(xp: ModuleType) -> None:
    x = xp.zeros((THREADS, 100))
    lock = threading.Lock()

    def work(number: int) -> None:
        for _ in range(ROUNDS):
            with lock:
                x[number] += number + 1

    run_together(work)
    expected = np.repeat(np.arange(1.0, THREADS + 1)[:, None] * ROUNDS, 100, axis=1)
    assert problem_bitwise(x, expected) is None


@pytest.mark.clfuse_only
def test_evaluate_of_everything_while_others_record(xp: ModuleType) -> None:
    def work(number: int) -> Any:
        x = xp.arange(200.0)
        for step in range(ROUNDS):
            x = x * 0.5 + number
            if number % 2:
                xp.evaluate()
            else:
                x[step] = step
        return host(x)

    def alone(number: int) -> Any:
        x = np.arange(200.0)
        for step in range(ROUNDS):
            x = x * 0.5 + number
            if not number % 2:
                x[step] = step
        return x

    for number, result in enumerate(run_together(work)):
        assert problem_bitwise(result, alone(number)) is None


@pytest.mark.clfuse_only
def test_a_device_chosen_in_a_thread_is_that_threads_choice(xp: ModuleType) -> None:
    device = xp.get_device()

    def work(number: int) -> bool:
        if number % 2:
            return bool(xp.get_device() is device)
        with xp.device(device):
            return bool(xp.get_device() is device and host(xp.arange(3) + 1)[2] == 3)

    assert all(run_together(work))


def test_an_error_in_one_thread_leaves_the_others_alone(xp: ModuleType) -> None:
    def work(number: int) -> Any:
        x = xp.arange(50.0) + number
        if number == 0:
            with pytest.raises(ValueError, match=r"shape|broadcast"):
                x + xp.ones(7)
        return host(x * 2)

    for number, result in enumerate(run_together(work)):
        assert problem_bitwise(result, (np.arange(50.0) + number) * 2) is None


def row_of(x: Any, i: int) -> Any:
    """The mask of a row."""
    return np.broadcast_to(np.arange(x.shape[0])[:, None] == i, x.shape)


WRITES: dict[str, Callable[[ModuleType, Any, int, int], Any]] = {
    "x[i] = number": lambda module, x, i, r: x.__setitem__(i, float(r + i)),
    "x[i] = array": lambda module, x, i, r: operator.setitem(x, i, np.full(x.shape[1], r + i)),
    "x[i] = lazy": lambda module, x, i, r: operator.setitem(
        x, i, module.ones(x.shape[1]) * (r + i)
    ),
    "x[i] += 1": lambda module, x, i, r: operator.iadd(x[i], 1.0),
    "out=x[i]": lambda module, x, i, r: module.add(x[i], 1.0, out=x[i]),
    "x[i].fill": lambda module, x, i, r: x[i].fill(r + i),
    "x[i, places]": lambda module, x, i, r: operator.setitem(
        x, (i, np.arange(x.shape[1])), float(r + i)
    ),
    "copyto": lambda module, x, i, r: module.copyto(x[i], float(r + i)),
    "x[mask] = number": lambda module, x, i, r: operator.setitem(x, row_of(x, i), float(r + i)),
    "x[mask] = array": lambda module, x, i, r: operator.setitem(
        x, row_of(x, i), np.full(x.shape[1], r + i, float)
    ),
    "put": lambda module, x, i, r: module.put(
        x, i * x.shape[1] + np.arange(x.shape[1]), float(r + i)
    ),
    "putmask": lambda module, x, i, r: module.putmask(x, row_of(x, i), float(r + i)),
    "place": lambda module, x, i, r: module.place(x, row_of(x, i), [float(r + i)]),
}


@pytest.mark.clfuse_only
@pytest.mark.parametrize(
    ("width", "host_us", "name"), covering([10, 2000, 40_000], [0, 50], [*WRITES])
)
def test_threads_writing_to_different_parts_lose_nothing(
    xp: ModuleType, name: str, host_us: int, width: int
) -> None:
    """What an executor does that fills the rows of a result."""
    before = sys.getswitchinterval()
    rounds = 20
    with xp.config.override(host_us=host_us, build_after_ms=0):
        x = xp.zeros((THREADS, width))

        def work(number: int) -> None:
            for turn in range(rounds):
                WRITES[name](xp, x, number, turn)

        sys.setswitchinterval(1e-6)
        try:
            run_together(work)
        finally:
            sys.setswitchinterval(before)
        last = np.arange(THREADS) + rounds - 1.0
        if "1" in name or "out" in name:
            last[:] = rounds
        np.testing.assert_array_equal(np.asarray(x), np.repeat(last[:, None], width, axis=1))


@pytest.mark.clfuse_only
@pytest.mark.parametrize("max_nodes", [40, 100_000])
@pytest.mark.parametrize("written", ["in Python", "in OpenCL C"])
def test_threads_calling_kernels_on_rows_lose_no_calls(
    xp: ModuleType, max_nodes: int, written: str
) -> None:
    """Batches are closed by whoever looks, also in the midst of another thread's evaluation."""
    before = sys.getswitchinterval()
    rounds, width = 24 if IS_LONG else 8, 50

    @xp.kernel
    def add_to(i: Any, value: Any, row: Any, other: Any) -> None:
        row[i] = row[i] + value + 0 * other[i]

    source = """kernel void add_to(float value, global float *row, global const float *other) {
        size_t i = get_global_id(0);
        row[i] += value + 0 * other[i];
    }"""
    raw = xp.RawKernel(source, "add_to")

    def call(value: float, row: Any, other: Any) -> None:
        if written == "in Python":
            add_to(width, value, row, other)
        else:
            raw((1,), (width,), (np.float32(value), row, other))

    with xp.config.override(host_us=0, max_nodes=max_nodes):
        x, y = (xp.zeros((THREADS, width), "float32") for _ in range(2))

        def work(number: int) -> None:
            for turn in range(rounds):
                call(1.0, x[number], y[(number + turn) % THREADS])
                call(2.0, y[number], x[(number + 1) % THREADS])
                if turn % 4 == number % 4:
                    assert float(x[number, 0]) == turn + 1
                    y[number, :5] += x[number, 0]

        sys.setswitchinterval(1e-6)
        try:
            run_together(work)
        finally:
            sys.setswitchinterval(before)
        np.testing.assert_array_equal(np.asarray(x), np.full((THREADS, width), float(rounds)))
        total = [sum(t + 1.0 for t in range(rounds) if t % 4 == k % 4) for k in range(THREADS)]
        expected = np.full((THREADS, width), 2.0 * rounds)
        expected[:, :5] += np.array(total)[:, None]
        np.testing.assert_array_equal(np.asarray(y), expected)
