"""Programs that write to parts of arrays again and again, hold what was there between, and look at
some of it: all launches find what they need in the bytes that they read (plans are verified), and
the values are NumPy's."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse import config
from clfuse.schedule.fuse import multi_domain
from tests.support.rounds import rounds

pytestmark = pytest.mark.clfuse_only

LENGTH = 600
PLANE = 30, 40


@pytest.fixture(autouse=True)
def whatever_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Join whatever may be joined."""
    monkeypatch.setattr(multi_domain, "LEAST_ROW", 2)
    monkeypatch.setattr(multi_domain, "LEAST_PART", 0.1)


def a_part(random: np.random.Generator, extent: int) -> tuple[int, int]:
    """Where a part begins, and how long it is: of few, so that they meet."""
    length = (extent // 2, extent // 2, extent // 3)[random.integers(3)]
    starts = (0, 0, extent // 6, extent // 3, extent // 2)
    return starts[random.integers(len(starts))], length


def three(xp: ModuleType, base: np.ndarray[Any, Any]) -> list[Any]:
    """The arrays of a program, in memory."""
    made = [xp.array(base % 7), xp.array(base * 0 + 3), xp.array(base % 5)]
    if xp is cf:
        cf.evaluate(*made)
    return made


def along(xp: ModuleType, random: np.random.Generator) -> list[Any]:
    """A program over three vectors: what is held at the end, and the vectors."""
    x, y, z = three(xp, np.arange(float(LENGTH)))
    held: list[Any] = []
    for _ in range(random.integers(3, 10)):
        start, length = a_part(random, LENGTH)
        from_start, _ = a_part(random, LENGTH)
        number = float(random.integers(2, 4))
        to, of = slice(start, start + length), slice(from_start, from_start + length)
        match random.integers(12):
            case 0 | 1 | 2:
                y[to] = number * x[of]
            case 3:
                held.append(y.copy())
            case 4:
                y[...] = y + number
            case 5:
                held.append(float((x[of] * y[to]).sum()))
            case 6:
                z[to] = y[of] + x[to]
            case 7:
                y[...] = z * 2 + y
            case 8:
                held.append(float(y[to].max()))
            case 9:
                held.append(y * 2 - z)
            case 10:
                held.append(xp.cumsum(y[to]))
            case 11:
                y[to] += x[of]
        looks(xp, random, y, held)
    return [*held, x, y, z]


def across(xp: ModuleType, random: np.random.Generator) -> list[Any]:
    """The same over matrices, whose rows, columns and blocks are written to."""
    x, y, z = three(xp, np.arange(float(PLANE[0] * PLANE[1])).reshape(PLANE))
    held: list[Any] = []
    for _ in range(random.integers(3, 9)):
        parts = [a_part(random, extent) for extent in PLANE]
        to: list[slice] = [slice(start, start + length) for start, length in parts]
        of = [
            slice(start, start + length)
            for (start, _), (_, length) in zip(
                [a_part(random, extent) for extent in PLANE], parts, strict=True
            )
        ]
        for axis in range(2):
            if random.random() < 0.4:
                to[axis] = of[axis] = slice(None)
        number = float(random.integers(2, 4))
        a, b = tuple(to), tuple(of)
        match random.integers(12):
            case 0 | 1 | 2:
                y[a] = number * x[b]
            case 3:
                held.append(y.copy())
            case 4:
                y[...] = y + number * z[:1]
            case 5:
                held.append((x[b] * y[a]).sum(axis=int(random.integers(2))))
            case 6:
                z[a] = y[b] + x[a]
            case 7:
                y[...] = z * 2 + y
            case 8:
                held.append(xp.cumsum(y[a], axis=int(random.integers(2))))
            case 9:
                held.append(y[a].T * 2)
            case 10:
                y[:, int(random.integers(4))] += x[:, 0]
            case 11:
                y[a] += z[b].mean(axis=0)
        looks(xp, random, y, held)
    return [*held, x, y, z]


def looks(xp: ModuleType, random: np.random.Generator, y: Any, held: list[Any]) -> None:
    """Sometimes: at `y`, at what was held last, or that is held no longer."""
    which = random.integers(8)
    if which == 0 and xp is cf:
        cf.evaluate(y)
    elif which == 1 and held and xp is cf:
        cf.evaluate(held[-1])
    elif which == 2 and held:
        held.pop()


def drawn(program: Any, seed: int) -> None:
    """Compare a program with NumPy."""
    expected = program(np, np.random.default_rng(seed))
    with config.override(debug=True, build_after_ms=0):
        found = program(cf, np.random.default_rng(seed))
        for number, (one, two) in enumerate(zip(found, expected, strict=True)):
            np.testing.assert_allclose(
                np.asarray(one), two, rtol=1e-12, err_msg=f"seed {seed}, result {number}"
            )


@pytest.mark.parametrize("first", range(0, 100, 10))
@pytest.mark.parametrize("program", [along, across])
def test_what_was_written_and_what_was_held_are_numpys(program: Any, first: int) -> None:
    for seed in range(first, first + rounds(10)):
        drawn(program, seed)


def test_what_the_rest_of_an_array_is_computed_from_is_stored() -> None:
    """The rest of `y`, around what is written last, is what the sum was: whoever has joined the
    first write with it must store that, too."""
    x, y = cf.array(np.arange(600.0)), cf.array(np.full(600, 3.0))
    cf.evaluate(x, y)
    y[:300] = 2 * x[200:500]
    y[...] = y + 8
    kept = y.copy()
    y[:300] = 2 * x[200:500]
    total = float((x[:300] * y[300:]).sum())
    expected = np.full(600, 11.0)
    expected[:300] = 2 * np.arange(200.0, 500)
    np.testing.assert_array_equal(y.get(), expected)
    expected[:300] += 8
    np.testing.assert_array_equal(kept.get(), expected)
    assert total == 11 * np.arange(300.0).sum()


def test_what_another_launch_writes_is_not_read_as_before() -> None:
    """Two launches write parts of `y`: who is joined with one of them reads the other's part after
    that was written."""

    def program(x: Any, y: Any, z: Any) -> None:
        y[300:600] = 2 * x[300:600]
        y[0:200] += x[0:200]
        z[0:300] = y[0:300] + x[0:300]
        y[...] = y + 3
        y[0:200] = 2 * x[0:200]

    theirs = [np.arange(600.0) % 7, np.full(600, 3.0), np.arange(600.0) % 5]
    ours = [cf.array(array) for array in theirs]
    cf.evaluate(*ours)
    program(*ours)
    program(*theirs)
    with config.override(debug=True):
        for mine, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(mine.get(), other)
