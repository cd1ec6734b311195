"""Writes to boxes of what is computed are read where they come from, in one kernel: the border of a
field, the terms of a stencil that are added side by side."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse.schedule import planner
from tests.device.functions.test_joins import scheduled
from tests.support.agreement import assert_bitwise
from tests.support.rounds import rounds

PROGRAMS = rounds(48)


def negative_laplacian(u: Any) -> Any:
    v = 4 * u
    v[1:] -= u[:-1]
    v[:-1] -= u[1:]
    v[:, 1:] -= u[:, :-1]
    v[:, :-1] -= u[:, 1:]
    return v


def with_border(u: Any) -> Any:
    v = u * 0.25 + 1
    v[0] = v[-1] = 0
    v[:, 0] = 3
    v[:, -1] = v[:, -2]
    return v


def reversed_inside(u: Any) -> Any:
    v = abs(u)
    v[2:-2, 3:-3] = u[2:-2, 3:-3][::-1, ::-1]
    v[4:2:-1, ::-1] += u[2:4]
    return v


def shifted_into_itself(u: Any) -> Any:
    v = u - 1
    v[1:] = v[:-1] * 2
    v[:, 2:] = v[:, :-2] + 1
    return v


def laid_into_zeros(xp: ModuleType, u: Any) -> Any:
    v = xp.zeros((u.shape[0] + 4, u.shape[1] + 2))
    v[2:-2, 1:-1] = u * 2
    return v


FIELDS = [negative_laplacian, with_border, reversed_inside, shifted_into_itself]


def field(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.random.default_rng(len(shape)).standard_normal(shape)


def launches(value: Any) -> tuple[int, int]:
    """Kernels, and bytes that they move."""
    plan = cf.explain(value)
    return len(plan.kernels), sum(kernel.nbytes for kernel in plan.kernels)


@pytest.mark.clfuse_only
@pytest.mark.parametrize("program", FIELDS, ids=lambda program: program.__name__)
def test_writes_to_boxes_of_a_result_read_the_input_once(
    program: Any,
) -> None:
    given = field((70, 90))
    u = cf.asarray(given)
    v = program(u)
    kernels, nbytes = launches(v)
    assert kernels == 1
    # Borders that are constant are written, and nothing read for them.
    assert 1.95 * given.nbytes < nbytes <= 2 * given.nbytes
    assert_bitwise(v, program(given))


@pytest.mark.clfuse_only
def test_a_frame_of_zeros_is_not_filled_first() -> None:
    given = field((70, 90))
    v = laid_into_zeros(cf, cf.asarray(given))
    assert launches(v) == (1, given.nbytes + v.nbytes)
    assert_bitwise(v, laid_into_zeros(np, given))


@pytest.mark.clfuse_only
def test_what_lies_in_memory_is_written_in_place() -> None:
    given = field((70, 90))
    u = cf.asarray(given) + 0.5
    cf.evaluate(u)
    u[10:20, 10:20] = 7
    assert launches(u) == (1, 100 * 8)
    expected = given + 0.5
    expected[10:20, 10:20] = 7
    assert_bitwise(u, expected)


@pytest.mark.clfuse_only
def test_many_writes_to_one_array_are_not_read_by_each_other() -> None:
    given = field((40, 8))
    u, expected = cf.asarray(given) * 2, given * 2
    for row in range(0, 40, 3):
        u[row] = u[row - 1] + row
        expected[row] = expected[row - 1] + row
    longest = max(len(kernel.source) for kernel in cf.explain(u).kernels)
    assert longest < 20_000
    assert_bitwise(u, expected)


@pytest.mark.parametrize("schedule", ["cpu", "gpu"])
@pytest.mark.parametrize("program", FIELDS, ids=lambda program: program.__name__)
def test_results_of_all_kinds_read_what_was_written(
    xp: ModuleType, schedule: str, program: Any
) -> None:
    given = field((13, 21))

    def results(m: ModuleType, u: Any) -> tuple[Any, ...]:
        v = program(u)
        kept = v[1:, ::2].T * 2
        return v.max(0), v.max(), m.where(v > 0, v, u), kept, m.cumsum(v, 1), v[:, [3, 1]], v

    with scheduled(xp, schedule):
        actual = results(xp, xp.asarray(given))
        for got, want in zip(actual, results(np, given), strict=True):
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-13)


def part(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """A random box of an array: slices in both directions, single indices, whole axes."""
    index: list[Any] = []
    for extent in shape:
        low = int(rng.integers(0, extent))
        high = int(rng.integers(low, extent)) + 1
        kind = rng.integers(5)
        if kind == 0:
            index.append(slice(None))
        elif kind == 1:
            index.append(low - (extent if rng.integers(2) else 0))
        elif kind == 2:
            index.append(slice(high - 1, low - 1 if low else None, -1))
        elif kind == 3 and rng.integers(4) == 0:
            index.append(slice(low, high, 2))
        else:
            index.append(slice(low, high))
    return tuple(index)


def random_program(rng: np.random.Generator, m: ModuleType, given: Any) -> list[Any]:
    """Writes to random parts of what is computed, of values that read what was written."""
    u = m.asarray(given)
    v = u * 0.5 + 1 if rng.integers(4) else m.zeros(u.shape)
    results = []
    for _ in range(rng.integers(1, 7)):
        index = part(rng, v.shape)
        kind = rng.integers(6)
        if kind == 0:
            v[index] = float(rng.integers(9))
        elif kind == 1:
            v[index] += u[index]
        elif kind == 2:
            v[index] = v[index] * 2 - u[index]
        elif kind == 3:
            shift = int(rng.integers(1, v.shape[0]))
            count = v.shape[0] - shift
            v[shift:] = v[:count] + 1
        elif kind == 4:
            w = m.abs(v)
            w[index] = v[index] - 3
            v = w + v
        else:
            results.append(v * 1 if rng.integers(2) else v.max(int(rng.integers(v.ndim))))
    results += [v, m.roll(v, 1, 0) - v, v.T + 1, v.max()]
    return results


@pytest.mark.parametrize("schedule", ["cpu", "gpu"])
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_writes_to_boxes_agree_with_numpy(
    xp: ModuleType, seed: int, schedule: str
) -> None:
    shape = [(40,), (7, 33), (5, 6, 9)][seed % 3]
    given = field(shape)
    expected = random_program(np.random.default_rng(seed), np, given)
    with scheduled(xp, schedule):
        actual = random_program(np.random.default_rng(seed), xp, given)
        for number in np.random.default_rng(seed).permutation(len(expected)):
            assert_bitwise(actual[number], expected[number])


def curl(xp: ModuleType, field: Any, ahead: bool) -> Any:
    """Yee's: of neighbours one further (`ahead`) or one back."""
    here, there = slice(None, -1), slice(1, None)
    whole = slice(None)
    result = xp.zeros_like(field)
    for axis in range(3):
        for sign, one, other in ((1, 1, 2), (-1, 2, 1)):
            along = (axis + one) % 3
            box = [whole] * 3
            upper, lower = list(box), list(box)
            upper[along], lower[along] = there, here
            box[along] = here if ahead else there
            part = field[(axis + other) % 3]
            result[(axis, *box)] += sign * (part[tuple(upper)] - part[tuple(lower)])
    return result


def test_rounds_that_cannot_be_read_in_parts_are_found_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each value that turns out to have to be stored costs planning anew: those of other rounds are
    stored with it, or a loop of n rounds would be planned several times n times."""
    attempts = []
    place = planner.Placement

    def counted(*args: Any, **named: Any) -> Any:
        attempts.append(args)
        return place(*args, **named)

    monkeypatch.setattr(planner, "Placement", counted)

    def run(xp: ModuleType, rounds: int) -> Any:
        electric = xp.asarray(np.sin(np.arange(3 * 12.0**3)).reshape(3, 12, 12, 12))
        magnetic = xp.zeros_like(electric) + electric.sum() * 0
        for number in range(rounds):
            electric += 0.5 * curl(xp, magnetic, ahead=False)
            electric[2, 6, 6, 6] += np.sin(0.3 * number)
            magnetic -= 0.5 * curl(xp, electric, ahead=True)
        return magnetic

    tries = []
    with cf.config.override(host_us=0, build_after_ms=0, loop_nodes=0):
        for rounds in (2, 8):
            attempts.clear()
            cf.explain(run(cf, rounds))
            tries.append(len(attempts))
        np.testing.assert_allclose(np.asarray(run(cf, 3)), run(np, 3), rtol=1e-12, atol=1e-12)
    assert tries[0] > 1, tries
    assert tries[1] <= 2 * tries[0]


@pytest.mark.parametrize("dtype", ["i8", "f8"])
@pytest.mark.parametrize("length", [7, 60_000])
def test_scans_of_scans_of_joined_arrays(length: int, dtype: str, xp: ModuleType) -> None:
    """Where the first is folded piece by piece, nothing is scanned yet."""
    for module in (np, xp):
        x = (module.arange(length) % 16).astype(dtype)
        x[1:-1] += 1
        joined = module.concatenate([x, x[::-1]])
        made = [
            module.cumsum(module.cumsum(x) % 5), module.cumsum(module.cumsum(joined) % 7) % 3,
            module.cumprod(module.cumsum(joined % 2) % 2), module.cumsum(x) % 5 + x,
        ]  # fmt: skip
        if module is np:
            wanted = made
    for one, other in zip(made, wanted, strict=True):
        assert_bitwise(one, other)
