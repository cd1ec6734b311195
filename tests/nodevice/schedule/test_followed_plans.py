"""Plans, followed launch by launch in NumPy, compute what NumPy computes: writes to parts of arrays
that are joined, moved or made in place, reads of what was there before, folds that share a pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.schedule.records import Schedule
from clfuse.target.traits import DeviceTraits, with_schedule
from tests.support.followed_plans import HeldBuffer, NotFollowed, computed
from tests.support.recording import FLOAT64, TRAITS, call
from tests.support.rounds import rounds

GPU = with_schedule(DeviceTraits(kind="gpu", unified_memory=False), "gpu")
NARROW = replace(TRAITS, max_parameter_nbytes=256)

KINDS = {"cpu": TRAITS, "gpu": GPU, "few parameters": NARROW}


class Array:
    """A node and NumPy's array of the same values; parts of it are read and written as NumPy's."""

    def __init__(self, node: Node, values: Any) -> None:
        self.node = node
        self.values = np.asarray(values, order="C")

    @classmethod
    def of(cls, values: Any) -> Array:
        values = np.ascontiguousarray(values, np.float64)
        return cls(build.leaf(HeldBuffer(values.copy()), values.shape, FLOAT64), values.copy())

    def __getitem__(self, key: Any) -> Array:
        seen, offset, strides = self._part(key)
        return Array(build.view(self.node, seen.shape, offset, strides), seen.copy())

    def __setitem__(self, key: Any, value: Any) -> None:
        values = self.values.copy()
        seen, offset, strides = self._part(key)
        value = value if isinstance(value, Array) else scalar(value)
        node = build.broadcast(value.node, seen.shape)
        self.node = build.update(self.node, node, offset, strides)
        values[key] = value.values
        self.values = values

    def _part(self, key: Any) -> tuple[Any, int, tuple[int, ...]]:
        """A view of NumPy's, also of one element; its first element and strides, in elements."""
        seen = self.values[(*(key if isinstance(key, tuple) else (key,)), ...)]
        start = seen.__array_interface__["data"][0] - self.values.__array_interface__["data"][0]
        return seen, start // 8, tuple([stride // 8 for stride in seen.strides])

    def copy(self) -> Array:
        return Array(self.node, self.values)

    def sum(self, *axes: int) -> Array:
        return self._folded("add", axes)

    def max(self, *axes: int) -> Array:
        return self._folded("maximum", axes)

    def _folded(self, name: str, axes: tuple[int, ...]) -> Array:
        values = getattr(np, name).reduce(self.values, axis=axes)
        return Array(build.reduce(name, self.node, axes, FLOAT64), np.asarray(values))

    def spread(self, *shape: int) -> Array:
        values = np.broadcast_to(self.values, shape)
        return Array(build.broadcast(self.node, shape), np.ascontiguousarray(values))

    def cumsum(self, axis: int) -> Array:
        return Array(build.scan("add", self.node, axis, FLOAT64), self.values.cumsum(axis))


def scalar(value: float) -> Array:
    return Array(build.constant(np.float64(value)), np.float64(value))


def do(name: str, *operands: Array | float) -> Array:
    arrays = [each if isinstance(each, Array) else scalar(each) for each in operands]
    values = getattr(np, name)(*[each.values for each in arrays])
    return Array(call(name, *[each.node for each in arrays]), np.asarray(values))


def joined(arrays: list[Array], axis: int) -> Array:
    return Array(build.concatenate([each.node for each in arrays], axis),
                 np.concatenate([each.values for each in arrays], axis))


def check(arrays: list[Array], traits: DeviceTraits = TRAITS, *, fuse: bool = True) -> Schedule:
    """What the plan for these computes is what NumPy has; arrays that go are written over."""
    arrays = [each for each in arrays if each.node.buffer is None]  # what is in memory is there
    expected = [each.values for each in arrays]
    roots = [each.node for each in arrays]
    for each in arrays:
        del each.node  # nobody holds the arrays that they were made of
    found, schedule = computed(roots, traits, fuse=fuse)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    return schedule


# -- random programs -------------------------------------------------------------------------------


ROWS, COLUMNS = 12, 10


class Program:
    """Statements on three arrays, drawn at random."""

    def __init__(self, seed: int) -> None:
        self.draw = np.random.default_rng(seed)
        self.names = {
            name: Array.of(self.draw.integers(0, 30, (ROWS, COLUMNS))) for name in "xyz"
        }
        self.held: list[Array] = []
        for _ in range(int(self.draw.integers(3, 9))):
            statement = STATEMENTS[int(self.draw.integers(len(STATEMENTS)))]
            statement(self)
        for name in "xyz"[int(self.draw.integers(3)):]:
            self.held.append(self.names[name])
        self.names.clear()

    def number(self, most: int) -> int:
        return int(self.draw.integers(most))

    def array(self) -> Array:
        return self.names["xyz"[self.number(3)]]

    def name(self) -> str:
        return "xyz"[self.number(3)]

    def part(self, *, rows: int, columns: int) -> Any:
        """A slice of so many rows and columns."""
        keys = []
        for count, extent in ((rows, ROWS), (columns, COLUMNS)):
            step = 2 if self.number(4) == 0 and 2 * count - 1 <= extent else 1
            first = self.number(extent - (count - 1) * step)
            last = first + (count - 1) * step
            if self.number(5) == 0:
                keys.append(slice(last, first - 1 if first else None, -step))
            else:
                keys.append(slice(first, last + 1, step))
        return tuple(keys)


def whole(p: Program) -> None:
    p.names[p.name()] = do(["add", "subtract", "maximum"][p.number(3)], p.array(), p.array())


def part_of_another(p: Program) -> None:
    size = {"rows": 1 + p.number(ROWS), "columns": 1 + p.number(COLUMNS)}
    target, key = p.array(), p.part(**size)
    value = do("add", p.array()[p.part(**size)], p.array()[p.part(**size)])
    target[key] = value


def increment(p: Program) -> None:
    size = {"rows": 1 + p.number(ROWS), "columns": 1 + p.number(COLUMNS)}
    target, key = p.array(), p.part(**size)
    target[key] = do("add", target[key], float(p.number(9)))


def row_by_row(p: Program) -> None:
    target, other, ahead = p.array(), p.array(), p.number(3) - 1
    rows = list(range(ROWS)) if p.number(2) else p.draw.permutation(ROWS).tolist()
    for row in rows:
        if 0 <= row + ahead < ROWS:
            value = do("maximum", target[row + ahead], other[row])
            target[row] = do("add", value, float(row % 3) if p.number(2) else 1.0)


def column_by_column(p: Program) -> None:
    target, other, shift = p.array(), p.array(), p.number(COLUMNS)
    for column in range(COLUMNS - p.number(2)):
        step = do("subtract", other[:, (column + shift) % COLUMNS], target[:, column])
        target[:, column] = do("add", target[:, column], step)


def scattered_rows(p: Program) -> None:
    target = p.array()
    for row in sorted(p.draw.choice(ROWS, 9, replace=False).tolist()):
        target[row] = do("add", target[row], float(row * row))


def folds_of_rows(p: Program) -> None:
    source, target = p.array(), p.array()
    for row in range(ROWS):
        target[row, 1] = do("add", source[row].sum(0), 1.0)


def minus_its_fold(p: Program) -> None:
    source = p.array()
    axis = p.number(2)
    shape = (ROWS, 1) if axis else (1, COLUMNS)
    total = source.sum(axis) if p.number(2) else source.max(axis)
    total = Array(build.reshape(total.node, shape), total.values.reshape(shape))
    p.names[p.name()] = do("subtract", source, total.spread(ROWS, COLUMNS))


def as_it_was(p: Program) -> None:
    """What is held of an array, and written to afterwards."""
    target = p.array()
    before = do("negative", target[p.part(rows=3, columns=4)])
    target[p.part(rows=3, columns=4)] = 7.0
    p.held.append(before)


def swapped(p: Program) -> None:
    target, one, other = p.array(), p.number(ROWS), p.number(ROWS)
    first, second = target[one], target[other]
    target[one] = second
    target[other] = first


def rolled(p: Program) -> None:
    source, count = p.array(), 1 + p.number(ROWS - 1)
    p.names[p.name()] = do("add", joined([source[-count:], source[:-count]], 0), p.array())


def scanned(p: Program) -> None:
    p.names[p.name()] = do("minimum", p.array().cumsum(p.number(2)), 1e6)


def asked_for(p: Program) -> None:
    p.held.append(p.array().copy())


def grid_steps(p: Program) -> None:
    name = p.name()
    for _ in range(2 + p.number(4)):
        grid = p.names[name]
        value = do("maximum", grid[1:-1, :-2], grid[2:, 1:-1])
        grid[1:-1, 1:-1] = do("add", value, 1.0)


STATEMENTS: list[Callable[[Program], None]] = [
    whole, part_of_another, part_of_another, increment, increment, row_by_row, column_by_column,
    scattered_rows, folds_of_rows, minus_its_fold, as_it_was, swapped, rolled, scanned, asked_for,
    grid_steps,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch", range(4))
def test_random_programs_have_numpys_values(batch: int, kind: str) -> None:
    followed, count = 0, rounds(160)
    for seed in range(1000 * batch, 1000 * batch + count):
        try:
            check(Program(seed).held, KINDS[kind], fuse=seed % 8 != 0)
            followed += 1
        except NotFollowed:
            continue
        except Exception as error:
            error.add_note(f"seed {seed}, {kind}")
            raise
    assert followed > 0.8 * count


