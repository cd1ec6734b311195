"""Kernels and statements in random order on parts of the same small arrays, as programs without any
setting run them: NumPy has the small ones, batches wait, and values that nobody has looked at must
stay what they were."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import clfuse as cf

pytestmark = pytest.mark.clfuse_only

ROWS, STEPS = 20, 24

Arrays = dict[str, Any]
Statement = Callable[[Arrays, list[Any]], None]
"""What it does to the arrays, and appends to what is held until the end."""


@cf.kernel
def add_up_rows(i, table, sums):
    total = 0.0
    for j in range(table.shape[1]):
        total += table[i, j]
    sums[i] = total


@cf.kernel
def exchange(i, x, y):
    kept = x[i]
    x[i] = y[i]
    y[i] = kept


@cf.kernel
def add_the_last(i, x, y):
    y[i] = x[i] + x[-1]


@cf.kernel
def turn_round(i, x, y):
    y[i] = x[len(x) - 1 - i] + 1


@cf.kernel
def keep_large(i, least, x, y):
    if x[i] > least:
        y[i] = x[i]
    elif x[i] < -least:
        y[i] = -x[i]


@cf.kernel
def count_up(i, x):
    x[i] += 1


def arrays(module: ModuleType, width: int) -> Arrays:
    return {
        "table": module.array(np.arange(float(ROWS * width)).reshape(ROWS, width)),
        "x": module.array(np.arange(float(ROWS)) - 7),
        "y": module.array(np.arange(float(ROWS))[::-1].copy()),
        "z": module.zeros(ROWS),
    }


def a_vector(chance: random.Random, width: int) -> tuple[Callable[[Arrays], Any], int, str]:
    """(how to get it, its length, the array that it is a part of)"""
    name = chance.choice("xyz")
    kind = chance.randrange(5)
    if kind == 0:
        return (lambda a: a[name]), ROWS, name
    if kind == 1:
        start = chance.randrange(10)
        return (lambda a: a[name][start : start + 9]), 9, name
    if kind == 2:
        return (lambda a: a[name][::2]), ROWS // 2, name
    if kind == 3:
        column = chance.randrange(width)
        return (lambda a: a["table"][:, column]), ROWS, "table"
    row = chance.randrange(-ROWS, ROWS)
    return (lambda a: a["table"][row]), width, "table"


def call_of_a_kernel(chance: random.Random, width: int) -> Statement:
    """As in Python where the arrays are NumPy's; never on two parts of one array, which work-items
    may write to in any order."""
    (one, length, whole), (two, other_length, other) = a_vector(chance, width), a_vector(
        chance, width
    )
    count = chance.randint(1, min(length, other_length))

    def called(kernel: Any, *given: Any) -> None:
        (kernel.python if type(given[-1]) is np.ndarray else kernel)(count, *given)

    if whole == other or chance.random() < 0.2:
        if other == "table" or chance.random() < 0.5:
            return lambda a, held: called(count_up, one(a))
        return lambda a, held: called(add_up_rows, a["table"], two(a))
    kernel = chance.choice((exchange, add_the_last, turn_round, keep_large))
    if kernel is keep_large:
        least = chance.randrange(12)
        return lambda a, held: called(kernel, least, one(a), two(a))
    return lambda a, held: called(kernel, one(a), two(a))


def statement(chance: random.Random, width: int) -> Statement:
    """One with arrays: writing, holding what is not evaluated, looking."""
    part, _, name = a_vector(chance, width)
    place, number = chance.randrange(ROWS), chance.randrange(9)
    return chance.choice((
        lambda a, held: a["table"].__setitem__(slice(0, place), a["table"][:place] % 101 + number),
        lambda a, held: a[name].__setitem__(slice(1, None), a[name][:-1] % 101),
        lambda a, held: a["x"].__iadd__(a["y"]),
        lambda a, held: part(a).__imul__(-1),
        lambda a, held: held.append(part(a) * 2 + number),
        lambda a, held: held.append(a["table"].sum(1) - a["z"]),
        lambda a, held: held.append(part(a).copy()),
        lambda a, held: held.append(float(a[name].reshape(-1)[place])),
        lambda a, held: held.append(np.array(part(a))),
    ))


@pytest.mark.parametrize(
    ("host_us", "build_after_ms", "sequences"), [(50, 50, 300), (0, 50, 6), (50, 0, 20), (0, 0, 1)]
)
def test_sequences_do_what_they_do_in_python(
    host_us: int, build_after_ms: int, sequences: int
) -> None:
    for seed in range(sequences):
        chance = random.Random(seed)
        width = chance.choice((1, 2, 3))
        program = [
            (call_of_a_kernel if chance.random() < 0.5 else statement)(chance, width)
            for _ in range(STEPS)
        ]
        ours, wanted = arrays(cf, width), arrays(np, width)
        held: list[Any] = []
        expected: list[Any] = []
        with cf.config.override(host_us=host_us, build_after_ms=build_after_ms):
            for step in program:
                step(ours, held)
                step(wanted, expected)
            found = [*held, *ours.values()]
            for number, (value, right) in enumerate(
                zip(found, [*expected, *wanted.values()], strict=True)
            ):
                np.testing.assert_array_equal(
                    np.asarray(value), right, err_msg=f"seed {seed}, value {number}"
                )


def test_sums_not_looked_at_do_not_follow_later_writes() -> None:
    """The sum of one column is a view of it, and NumPy writes to its memory in place."""
    with cf.config.override(host_us=50):
        table, sums = cf.asarray(np.arange(20.0).reshape(20, 1)), cf.zeros(3)
        add_up_rows(3, table, sums)
        add_the_last(1, sums[::2], table[-1])
        table[:8] = cf.full((8, 1), 7.0)
        expected = np.arange(20.0).reshape(20, 1)
        expected[:8], expected[-1] = 7, 2
        np.testing.assert_array_equal(table.get(), expected)
        np.testing.assert_array_equal(sums.get(), [0, 1, 2])


@pytest.mark.parametrize("host_us", [0, 50])
def test_an_expression_may_overwrite_what_a_kernel_wrote(host_us: int) -> None:
    """It may not know yet which operation it is: equal calls are one."""
    with cf.config.override(host_us=host_us):
        for n in (1, 3):
            table = cf.asarray(np.arange(20.0).reshape(20, 1))
            add_the_last(n, cf.ones(5), table[-n:, 0])
            table[:8] = cf.full((8, 1), 7.0) * 2
            expected = np.arange(20.0).reshape(20, 1)
            expected[:8], expected[-n:] = 14, 2
            np.testing.assert_array_equal(table.get(), expected)
