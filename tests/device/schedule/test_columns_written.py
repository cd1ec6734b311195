"""Columns and rows of arrays that are written to, one after the other, from others of the same
arrays."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.rounds import rounds

COLUMNS = 4


def drawn(rows: int, draw: random.Random) -> Callable[[Any, list[Any]], list[Any]]:
    """A program of some writes to columns and rows of two arrays, from columns and rows of both."""

    def region() -> tuple[Any, ...]:
        column = draw.randrange(COLUMNS)
        return draw.choice([
            (slice(None), column), (slice(None), column), (slice(None), column),
            (slice(0, rows - 1), column), (slice(1, rows), column),
            (slice(None, None, -1), column), (draw.randrange(rows), slice(None)),
        ])

    statements = [
        (draw.randrange(2), region(), [(draw.randrange(2), region()) for _ in range(2)],
         draw.choice(["add", "set", "fill", "again", "scale", "fold", "keep"]))
        for _ in range(draw.randint(3, 9))
    ]

    def program(m: Any, arrays: list[Any]) -> list[Any]:
        kept = []
        for target, where, sources, what in statements:
            array = arrays[target]
            u, v = [
                part if part.shape == array[where].shape else part[:1]
                for part in [arrays[place][view] for place, view in sources]
            ]
            if what == "add":
                array[where] += u * 2 - v
            elif what == "set":
                array[where] = m.abs(u) - v
            elif what == "fill":
                array[where] = 3
            elif what == "again":
                array[where] = array[where] * 2 + v % 7
            elif what == "scale":
                array[where] *= 2
            elif what == "fold":
                array[where] += u.max()
            else:
                kept.append(u + v)
        return [*arrays, *kept]

    return program


@pytest.mark.parametrize("rows", [5, 64])
@pytest.mark.parametrize("are_kept", [False, True])
def test_random_writes_from_random_columns(xp: ModuleType, rows: int, are_kept: bool) -> None:
    draw = random.Random(rows)
    made = [np.random.default_rng(place).integers(-9, 9, (rows, COLUMNS)) for place in range(2)]
    values = [each.astype("float64") for each in made]
    with xp.config.override(debug=True, host_us=0):
        for _ in range(rounds(10)):
            program = drawn(rows, draw)
            expected = program(np, [each.copy() for each in values])
            arrays = [xp.array(each) for each in values]
            copies = [each.copy() for each in arrays] if are_kept else []
            found = program(xp, arrays)
            xp.evaluate(*found)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other)
            for one, other in zip(copies, values, strict=False):
                np.testing.assert_array_equal(one, other)


@pytest.mark.clfuse_only
def test_a_step_of_particles_is_one_launch(xp: ModuleType) -> None:
    @xp.kernel
    def step(i, places, velocities, forces, dt):
        velocities[i, 0] += dt * forces[i, 0]
        places[i, 0] += dt * velocities[i, 0]
        velocities[i, 1] += dt * forces[i, 1]
        places[i, 1] += dt * velocities[i, 1]
        velocities[i, 2] += dt * forces[i, 2]
        places[i, 2] += dt * velocities[i, 2]

    def stepped(places: Any, velocities: Any, forces: Any) -> None:
        for axis in range(3):
            velocities[:, axis] += 0.5 * forces[:, axis]
            places[:, axis] += 0.5 * velocities[:, axis]

    draw = np.random.default_rng(1)
    values = [draw.integers(-9, 9, (1000, 3)).astype(float) for _ in range(3)]
    expected = [each.copy() for each in values]
    stepped(*expected)
    for way in (stepped, lambda p, v, f: step(len(p), p, v, f, 0.5)):
        arrays = [xp.array(each) for each in values]
        with xp.config.override(debug=True, host_us=0):
            xp.evaluate(*arrays)
            way(*arrays)
            assert len(xp.explain(*arrays).kernels) == 1
            xp.evaluate(*arrays)
        for one, other in zip(arrays, expected, strict=True):
            np.testing.assert_array_equal(one, other)
