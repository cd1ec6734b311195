"""Loops of the program that become loops of registers have NumPy's values, bit for bit."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import Batch
from tests.support.time_steps import DTYPES, TimeSteps

ROUNDS = 150

QUICK = [dtype for dtype in DTYPES if dtype != "complex128"]
"""Those that take compilers little time."""


@pytest.mark.parametrize("first", range(0, 12, 4))
def test_random_loops_of_time_steps(xp: ModuleType, first: int) -> None:
    batch = Batch(xp)
    for seed in range(first, first + 4):
        program = functools.cache(TimeSteps(seed, dtypes=QUICK))  # one run has all the results
        with np.errstate(all="ignore"):
            for place, _ in enumerate(program(np)):
                batch.same(f"{seed}: {place}", lambda m, p=program, n=place: p(m)[n])
    with np.errstate(all="ignore"):
        batch.check()


def logistic(m: Any, length: int) -> Any:
    rate, x = m.linspace(2.5, 4, length), m.full(length, 0.3)
    for _ in range(ROUNDS):
        x = rate * x * (1 - x)
    return x


def leapfrog(m: Any, length: int) -> Any:
    before = m.linspace(-1, 1, length)
    now = before * 0.5
    for _ in range(ROUNDS):
        before, now = now, 1.5 * now - 0.75 * before
    return m.stack([before, now])


def escaping(m: Any, length: int) -> Any:
    c = m.linspace(-2, 1, length) + 0.1j
    z, count = m.zeros_like(c), m.zeros(length, m.int32)
    for _ in range(ROUNDS // 3):
        inside = z.real * z.real + z.imag * z.imag < 4
        z = m.where(inside, z * z + c, z)
        count = count + inside
    return count


def halves(m: Any, length: int) -> Any:
    x = m.linspace(0, 1, length).astype(m.float16)
    for _ in range(ROUNDS):
        x = x * x - m.float16(0.75)
    return x


def in_place(m: Any, length: int) -> Any:
    x, y = m.linspace(0, 1, length), m.ones(length)
    for _ in range(ROUNDS):
        y -= x * 0.25
        x += y * 0.25
    return x


def with_times(m: Any, length: int) -> Any:
    x, n = m.linspace(0, 1, length), m.arange(length)
    for turn in range(70):
        x = m.sqrt(x * x + turn / 8) - m.float64(turn)
        n = (n * 3 + turn) % (turn + 7)
    return x + n


def with_floats(m: Any, length: int) -> Any:
    x = m.linspace(0, 1, length).astype(m.float32)
    for turn in range(70):
        x = m.sqrt(abs(x * m.float32(1 / (turn + 1)) + m.float32(turn)))
    return x


@pytest.mark.parametrize(
    "program", [logistic, leapfrog, escaping, halves, in_place, with_times, with_floats]
)
def test_loops_have_the_same_values_at_any_length(xp: ModuleType, program: Any) -> None:
    batch = Batch(xp)
    with np.errstate(all="ignore"):
        for length in (1, 7, 17, 1000, 4099):
            batch.same(f"{length}", lambda m, length=length: program(m, length))
            batch.same(f"sum of {length}", lambda m, length=length: program(m, length).max())
        batch.check()


def test_loops_of_any_number_of_rounds_are_one_program(xp: ModuleType) -> None:
    def step(rounds: int) -> Any:
        x = xp.asarray(start)
        for _ in range(rounds):
            x = xp.sin(x) * 1.25
        return x

    start = np.linspace(0.1, 2, 20_000)
    xp.evaluate(step(70), build=True)
    before = xp.stats()["programs_built"]
    for rounds in (80, 93, 200):
        result = step(rounds)
        xp.evaluate(result, build=True)
        expected = start
        for _ in range(rounds):
            expected = np.sin(expected) * 1.25
        np.testing.assert_allclose(result.get(), expected, rtol=1e-11)
    assert xp.stats()["programs_built"] == before


def test_loops_with_numbers_of_their_own_have_their_values(xp: ModuleType) -> None:
    def forced(m: Any) -> Any:
        x = m.linspace(-1, 1, 3000)
        for turn in range(ROUNDS):
            x = x * 0.5 + turn / 8
            x = m.where(x > 3, x - turn, x * 1.5)
        return x

    batch = Batch(xp)
    batch.same("forced", forced)
    batch.check()


def test_draws_in_a_loop_are_those_of_single_draws(xp: ModuleType) -> None:
    """Each round has a place of its own in the stream."""

    def walked(rng: Any, *, together: bool) -> Any:
        x = xp.full(20_000, 100.0)
        for _ in range(24):
            x = x * xp.exp(0.001 + 0.02 * rng.standard_normal(20_000))
            if not together:
                xp.evaluate(x)
        return xp.asnumpy(x)

    once = walked(xp.random.default_rng(5), together=True)
    np.testing.assert_array_equal(once, walked(xp.random.default_rng(5), together=False))
