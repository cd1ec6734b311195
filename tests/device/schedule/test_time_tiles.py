"""Steps over neighbours that are one kernel, tile by tile, leave what NumPy leaves, bit for bit."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse.schedule.fuse import tile_layouts, time_tiles
from tests.support.hostile import hostile
from tests.support.rounds import rounds

pytestmark = pytest.mark.clfuse_only

Program = Callable[[Any, list[Any]], list[Any]]


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tiles of a few lines, of small arrays, however much is computed again."""
    monkeypatch.setattr(time_tiles, "LEAST_NBYTES", 0)
    monkeypatch.setattr(tile_layouts, "MOST_OVERHEAD", 50.0)
    monkeypatch.setattr(tile_layouts, "ROWS", (8, 32))
    with cf.config.override(tile_bytes=4096, debug=True, schedule="cpu"):
        yield


def filled(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    """Ordinary numbers, and every hostile one somewhere."""
    rng = np.random.default_rng(seed)
    size = int(np.prod(shape))
    found = (rng.standard_normal(size) * 50).astype(dtype)
    values = hostile(np.dtype(dtype))
    places = rng.random(size) < 0.05
    found[places] = rng.choice(values, int(places.sum()))
    return found.reshape(shape)


def tiles_of(*arrays: Any) -> list[Any]:
    return [kernel for kernel in cf.explain(*arrays).kernels if kernel.kind == "tiles"]


def assert_same(program: Program, inputs: list[Any], *, merges: bool | None = True) -> None:
    """Both give the same, twice: the second time the plan is known."""
    expected = program(np, [each.copy() for each in inputs])
    ours = [cf.asarray(each) for each in inputs]
    for _ in range(2):
        found = program(cf, [each.copy() for each in ours])
        if merges is not None:
            assert bool(tiles_of(*found)) == merges
        cf.evaluate(*found)
        for actual, wanted in zip(found, expected, strict=True):
            assert actual.dtype == wanted.dtype
            assert actual.shape == wanted.shape
            np.testing.assert_array_equal(np.asarray(actual), wanted)


def five_points(a: Any) -> Any:
    return a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]


def jacobi(xp: Any, arrays: list[Any]) -> list[Any]:
    (a, *_) = arrays
    for _ in range(5):
        a[1:-1, 1:-1] = five_points(a) * a.dtype.type(2)
    return [a]


def turns(xp: Any, arrays: list[Any]) -> list[Any]:
    a, b = arrays
    for _ in range(5):
        b[1:-1, 1:-1] = five_points(a)
        a, b = b, a
    return [a, b]


def heat(xp: Any, arrays: list[Any]) -> list[Any]:
    (a,) = arrays
    for _ in range(6):
        a[1:-1] = a[1:-1] + a.dtype.type(3) * (a[2:] - 2 * a[1:-1] + a[:-2])
    return [a]


def life(xp: Any, arrays: list[Any]) -> list[Any]:
    (cells,) = arrays
    for _ in range(4):
        rows = xp.roll(cells, 1, 0) + cells + xp.roll(cells, -1, 0)
        around = xp.roll(rows, 1, 1) + rows + xp.roll(rows, -1, 1) - cells
        cells = ((around == 3) | ((cells == 1) & (around == 2))).astype(cells.dtype)
    return [cells]


def far(xp: Any, arrays: list[Any]) -> list[Any]:
    """Around one axis, by several elements; the other one has an end."""
    (a,) = arrays
    for _ in range(3):
        a = sum([xp.roll(a, shift, 1) * (shift + 7) for shift in (-3, -2, 0, 1, 3)]) ^ 5
    return [a]


def edges(xp: Any, arrays: list[Any]) -> list[Any]:
    """Different steps in turn, over shrinking shapes, another dtype at the end."""
    (a,) = arrays
    for axis in (0, 1):
        for _ in range(2):
            a = xp.moveaxis(a, axis, 0)
            a = (xp.sin(a[:-2]) + xp.sin(a[1:-1]) * 2 + xp.sin(a[2:])) * a.dtype.type(0.25)
            a = xp.moveaxis(a, 0, axis)
    return [(a[1:] > a[:-1]) & (a[1:] >= 0)]


SIZES = [(3, 3), (4, 40), (40, 4), (33, 65), (70, 131)]


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "i8", "u1", "i2"])
def test_steps_are_the_same_of_every_dtype(dtype):
    assert_same(turns, [filled((45, 77), dtype, seed) for seed in range(2)])


@pytest.mark.parametrize("shape", SIZES, ids=str)
@pytest.mark.parametrize("program", [jacobi, turns, life, far], ids=lambda each: each.__name__)
def test_steps_are_the_same_of_every_size(program, shape):
    if program in (life, far):
        inputs = [(filled(shape, "f8") > 0).astype("i4")]
    else:
        inputs = [filled(shape, "f8", seed) for seed in range(2)]
    assert_same(program, inputs[: 1 if program is jacobi else 2], merges=None)


@pytest.mark.parametrize("dtype", ["f8", "i4"])
@pytest.mark.parametrize("size", [3, 64, 3001])
def test_vectors_are_the_same(size, dtype):
    assert_same(heat, [filled((size,), dtype)], merges=True if size > 64 else None)


@pytest.mark.parametrize("program", [life, far], ids=lambda each: each.__name__)
def test_rolled_arrays_are_the_same(program):
    with cf.config.override(tile_bytes=1 << 16):
        assert_same(program, [(filled((130, 200), "f8") > 0).astype("i4")])


def test_different_steps_in_turn_are_the_same():
    with cf.config.override(tile_bytes=1 << 17):
        a, b = (filled((160, 200), "f8", seed) for seed in range(2))
        a, b = np.nan_to_num(np.clip(a, -9, 9)), np.nan_to_num(np.clip(b, -9, 9))

        def program(xp: Any, arrays: list[Any]) -> list[Any]:
            a, b = arrays
            for _ in range(3):
                a[1:-1, 1:-1] = five_points(b) * 0.2
                higher = a[2:-2, 2:-2] > b[:-4, 1:-3]
                b[2:-2, 2:-2] = xp.where(higher, a[4:, 2:-2], b[2:-2, 2:-2] * 0.5)
            return [a, b]

        assert_same(program, [a, b])
        assert_same(edges, [a], merges=None)


def test_what_was_kept_of_a_step_stays():
    def program(xp: Any, arrays: list[Any]) -> list[Any]:
        (a,) = arrays
        kept = []
        for number in range(6):
            a[1:-1, 1:-1] = five_points(a)
            if number in (1, 3):
                kept += [a.copy(), a[1:7, ::2] * 2]
        return [*kept, a, a[2:-2].sum(0)]

    assert_same(program, [filled((45, 77), "i4")])


def test_a_view_of_the_array_sees_the_last_step():
    def program(xp: Any, arrays: list[Any]) -> list[Any]:
        (a,) = arrays
        view = a[3:9, 5:]
        for _ in range(4):
            a[1:-1, 1:-1] = five_points(a)
        return [view, a]

    assert_same(program, [filled((45, 77), "f8")])


def test_borders_that_change_between_steps_are_the_new_ones():
    def program(xp: Any, arrays: list[Any]) -> list[Any]:
        (a,) = arrays
        for _ in range(2):
            for _ in range(3):
                a[1:-1, 1:-1] = five_points(a)
            a[0] = a[1]
            a[:, -1] = 7
        return [a]

    assert_same(program, [filled((45, 77), "i4")])


def test_sources_and_rows_added_each_step_are_read_in_place():
    def program(xp: Any, arrays: list[Any]) -> list[Any]:
        a, b = arrays
        row = b[3].copy()
        for number in range(4):
            a[1:-1, 1:-1] = five_points(a) + b[2:, 1:-1] * number + row[1:-1]
            a[1:-1, 1:-1] += xp.arange(75)
        for _ in range(3):
            a = xp.roll(a, 1, 0) + xp.roll(b, 2, 1) - row
        return [a, b]

    assert_same(program, [filled((45, 77), "i8", seed) for seed in range(2)])


def test_a_traced_loop_is_the_same():
    @cf.jit
    def steps(a):
        for _ in range(4):
            a = cf.roll(a, 1, 0) + cf.roll(a, -1, 1)
        return a

    a = filled((45, 77), "i4")
    for scale in (1, 2, 3):
        expected = a * np.int32(scale)
        for _ in range(4):
            expected = np.roll(expected, 1, 0) + np.roll(expected, -1, 1)
        found = steps(cf.asarray(a) * np.int32(scale))
        np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize("changes", [{"tile_bytes": 0}, {"schedule": "gpu"}, {"fusion": "off"}])
def test_other_settings_take_a_kernel_a_step(changes):
    with cf.config.override(**changes):
        assert_same(jacobi, [filled((45, 77), "f8")], merges=False)


def test_large_arrays_become_tiles_by_themselves(monkeypatch, planned_for):
    monkeypatch.undo()
    planned_for("cpu")
    with cf.config.override(tile_bytes=-1, schedule="auto"):
        assert_same(jacobi, [filled((1100, 1030), "f8")])
        found = cf.ones((1100, 1030))
        for _ in range(10):
            found[1:-1, 1:-1] = five_points(found)
        plan = cf.explain(found)
        assert len([kernel for kernel in plan.kernels if kernel.kind == "tiles"]) == 3
        assert any("are one kernel" in cut.reason for cut in plan.cuts)


def program_of(seed: int) -> tuple[Program, list[Any]]:
    """A loop of random statements over neighbours."""
    chance = random.Random(seed)
    rank = chance.choice([1, 2, 2])
    longest = (17, 300, 3001) if rank == 1 else (5, 20, 66, 131)
    shape = tuple([chance.choice(longest) for _ in range(rank)])
    dtype = chance.choice(["f8", "f8", "f4", "i4", "i8", "u1"])
    count = chance.randint(1, 3)
    rounds = chance.randint(2, 7)
    statements = []
    for _ in range(chance.randint(1, 4)):
        kind = chance.choice(
            ["write", "write", "turn", "turn", "copy", "edge", "keep", "add", "new", "roll", "roll"]
        )
        width = tuple([chance.choice([1, 1, 2]) for _ in shape])
        shifts = [
            tuple([chance.randint(-most, most) for most in width])
            for _ in range(chance.randint(1, 4))
        ]
        one, other = chance.randrange(count), chance.randrange(count)
        statements.append((kind, one, other, width, shifts, chance.randrange(rank)))

    def neighbours(a: Any, width: tuple[int, ...], shifts: list[tuple[int, ...]]) -> Any:
        total = None
        for shift in shifts:
            place = tuple(
                [slice(w + s, n - w + s) for w, s, n in zip(width, shift, a.shape, strict=True)]
            )
            total = a[place] if total is None else total * a.dtype.type(2) + a[place]
        return total

    def program(xp: Any, arrays: list[Any]) -> list[Any]:
        arrays = [*arrays]
        kept = []
        for _ in range(rounds):
            for kind, one, other, width, shifts, axis in statements:
                a, b = arrays[one], arrays[other]
                inner = tuple([slice(w, n - w) for w, n in zip(width, a.shape, strict=True)])
                if kind == "write":
                    b[inner] = neighbours(a, width, shifts)
                elif kind == "turn":
                    b[inner] = neighbours(a, width, shifts)
                    arrays[one], arrays[other] = b, a
                elif kind == "copy":
                    arrays[one] = a.copy()
                    arrays[one][inner] = neighbours(a, width, shifts)
                elif kind == "edge":
                    edge = [slice(None)] * rank
                    edge[axis] = 0
                    a[tuple(edge)] = b[(*edge[:axis], -1, *edge[axis + 1 :])]
                elif kind == "keep":
                    kept.append(a[inner])
                elif kind == "add":
                    a += b
                elif kind == "new":
                    arrays[one] = xp.where(a > b, a, b + b.dtype.type(1))
                else:
                    arrays[one] = xp.roll(a, shifts[0][0] or 3, axis) + b
        return [*arrays, *kept]

    return program, [filled(shape, dtype, seed + number) for number in range(count)]


@pytest.mark.parametrize("seed", range(rounds(32)))
def test_random_loops_of_statements_are_the_same(seed):
    program, inputs = program_of(seed)
    tile_bytes = random.Random(seed).choice([1024, 4096, 1 << 18])
    with cf.config.override(tile_bytes=tile_bytes):
        assert_same(program, inputs, merges=None)
