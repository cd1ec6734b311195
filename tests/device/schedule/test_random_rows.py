"""Random programs of rows and columns: folds, what is made of them, writes to parts in between.

All numbers are small integers, so that results are the same in every order of additions.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import host

PROGRAMS = max(20, int(os.environ.get("CLFUSE_FUZZ_PROGRAMS", "500")) // 12)
ROWS = (3, 37, 130, 600)
COLUMNS = (5, 32, 257, 400, 1100)
FOLDS = ("sum", "max", "min")
BELOW = 17.0
"""What elements are kept below: sums of squares of the longest rows are exact in float32."""


class Rows:
    """A program, drawn from its seed again at each run; `arrays` are three of one shape."""

    def __init__(self, seed: int, module: ModuleType, arrays: list[Any]) -> None:
        self.draw = random.Random(seed)
        self.module = module
        self.arrays = arrays
        self.results: list[Any] = []

    def run(self) -> list[Any]:
        """What the program computes."""
        for _ in range(self.draw.randint(3, 7)):
            self.draw.choice(STATEMENTS)(self)
        return [*self.results, *self.arrays[: self.draw.randint(1, 3)]]

    def array(self) -> Any:
        return self.draw.choice(self.arrays)

    def put(self, array: Any) -> None:
        self.arrays[self.draw.randrange(len(self.arrays))] = array

    def small(self, array: Any) -> Any:
        return self.module.remainder(array, self.array().dtype.type(BELOW))

    def fold(self, array: Any, axis: int, *, keepdims: bool) -> Any:
        return getattr(array, self.draw.choice(FOLDS))(axis=axis, keepdims=keepdims)


def write_rows(p: Rows) -> None:
    target, value, other = p.array(), p.array(), p.array()
    target[1:-1] = p.small(value[2:] + other[:-2])


def write_columns(p: Rows) -> None:
    target, value, step = p.array(), p.array(), p.draw.randint(1, 3)
    target[:, ::step] = p.small(value[:, ::step] * 3 + 1)


def write_from_row(p: Rows) -> None:
    target, first = p.array(), p.draw.randrange(3)
    target[first:, 1:] += p.array()[0, 1:]
    target[:] = p.small(target)


def subtract_fold(p: Rows) -> None:
    array = p.array()
    p.put(p.small(array - p.fold(array, p.draw.randrange(2), keepdims=True)))


def subtract_twice(p: Rows) -> None:
    array, axis = p.array(), p.draw.randrange(2)
    apart = abs(array - p.fold(array, axis, keepdims=True)) % 11
    p.put(p.small(apart + p.fold(apart, axis, keepdims=True)))


def keep_between(p: Rows) -> None:
    array, axis = p.array(), p.draw.randrange(2)
    apart = p.small(array + p.fold(array, axis, keepdims=True))
    p.results.append(apart if p.draw.random() < 0.5 else p.fold(apart, axis, keepdims=False))
    p.put(p.small(apart * p.fold(apart * apart, axis, keepdims=True)))


def keep_fold(p: Rows) -> None:
    p.results.append(p.fold(p.array(), p.draw.randrange(2), keepdims=False))


def keep_fold_of_part(p: Rows) -> None:
    array = p.array()
    p.results.append(p.fold(array[2:] - array[:-2], p.draw.randrange(2), keepdims=False))


def step_by_step(p: Rows) -> None:
    """Rounds of a loop, of which one in the middle is read later as well."""
    array, axis, between = p.array(), p.draw.randrange(2), p.draw.choice((1, 12, 40))
    array = array - p.fold(array, axis, keepdims=True)
    for _ in range(between):
        array = p.small(array * 3 + 1)
    middle = array
    for _ in range(p.draw.choice((1, 12, 40))):
        array = p.small(array * 3 + 1)
    p.put(p.small(middle + p.fold(array, axis, keepdims=True)))


def fold_selected(p: Rows) -> None:
    array = p.array()
    chosen = array[array > 4]
    p.results.append((chosen * 2).sum())
    p.results.append(chosen.sum() if p.draw.random() < 0.5 else (chosen + 1).min(initial=99))


STATEMENTS: list[Callable[[Rows], None]] = [
    write_rows, write_columns, write_from_row, subtract_fold, subtract_twice, subtract_twice,
    keep_between, keep_fold, keep_fold_of_part, step_by_step, fold_selected,
]


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_programs_of_rows_are_numpys(xp: ModuleType, seed: int) -> None:
    draw = np.random.default_rng(seed)
    shape = draw.choice(ROWS), draw.choice(COLUMNS)
    given = draw.integers(0, 9, (3, *shape)).astype(draw.choice(["f4", "f8"]))
    expected = Rows(seed, np, [each.copy() for each in given]).run()
    results = Rows(seed, xp, [xp.asarray(each) for each in given]).run()
    if xp is not np:
        xp.evaluate(*results)
    for result, wanted in zip(results, expected, strict=True):
        assert result.dtype == wanted.dtype
        np.testing.assert_array_equal(host(result), wanted)
