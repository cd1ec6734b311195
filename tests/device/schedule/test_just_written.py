"""Statements on a part of an array that follow each other: one kernel, which has what was just
written at hand; and what such a kernel must not change."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from tests.support.agreement import assert_bitwise

HOSTILE = [np.nan, np.inf, -np.inf, -0.0, 0.0, 5e-324, -1e308]

Fields = tuple[Any, Any, Any]
Program = Callable[[ModuleType, Any, Any, Any], tuple[Any, ...]]


def in_place(xp: ModuleType, u: Any, v: Any, w: Any) -> tuple[Any, ...]:
    u[1:-1] += v[1:-1]
    u[1:-1] *= 2
    u[1:-1] -= w[:-2]
    return (u,)


def of_columns(xp: ModuleType, u: Any, v: Any, w: Any) -> tuple[Any, ...]:
    u[:, ::2] *= v[:, ::2]
    u[:, ::2] += 1
    return (u,)


def step_and_error(xp: ModuleType, u: Any, v: Any, w: Any) -> tuple[Any, ...]:
    v[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
    return v, abs(v[1:-1, 1:-1] - u[1:-1, 1:-1]).max()


def step_and_place(xp: ModuleType, u: Any, v: Any, w: Any) -> tuple[Any, ...]:
    v[2:] = u[2:] - u[:-2]
    return v, v[2:].argmax()


def change_of_itself(xp: ModuleType, u: Any, v: Any, w: Any) -> tuple[Any, ...]:
    before = u[1:-1].copy()
    u[1:-1] = xp.sqrt(abs(u[1:-1]))
    return u, abs(u[1:-1] - before).max()


def read_by_a_map(xp: ModuleType, u: Any, v: Any, w: Any) -> tuple[Any, ...]:
    u[1:] = v[1:] * w[1:]
    return u, u[1:] - v[1:]


ONE_PASS: list[tuple[Program, int]] = [
    (in_place, 4), (of_columns, 3), (step_and_error, 2), (step_and_place, 2),
    (change_of_itself, 2), (read_by_a_map, 4),
]
"""Programs, and how many fields' bytes they move at most."""


def places_in_itself(xp: ModuleType, u: Any, v: Any, w: Any) -> tuple[Any, ...]:
    u[1:-1] *= -3
    return u, u[1:-1].argmax(1), xp.isnan(u[1:-1].max(1))


def folded_in_all_ways(xp: ModuleType, u: Any, v: Any, w: Any) -> tuple[Any, ...]:
    v[2:] = u[2:] - u[:-2]
    return v, v[2:].argmax(), v[2:].min(0), v[2:].max(1)


def shifted(xp: ModuleType, u: Any, v: Any, w: Any) -> tuple[Any, ...]:
    u[1:-1] = v[1:-1] + 1
    # Of 1e308 and -1e308 in one row, what is added between them is lost or not, as the order is.
    change = xp.clip(u[2:] - u[:-2], -9, 9)
    return u, change.sum(1), u[1:-1].T - w.T[:, 1:-1]


def after_a_sum(xp: ModuleType, u: Any, v: Any, w: Any) -> tuple[Any, ...]:
    u[1:-1] = xp.sqrt(abs(v[1:-1]))
    total = u[1:-1].max()
    return u, u[1:-1] / total, total


def neighbours_of_itself(xp: ModuleType, u: Any, v: Any, w: Any) -> tuple[Any, ...]:
    u[1:-1, 1:-1] = 0.5 * (u[:-2, 1:-1] + u[2:, 1:-1])
    change = abs(u[1:-1, 1:-1] - v[1:-1, 1:-1]).max(0)
    u[1:-1, 1:-1] *= 0.5
    return u, change, u[1:-1, 1:-1].max()


def looked_at_between(xp: ModuleType, u: Any, v: Any, w: Any) -> tuple[Any, ...]:
    u[1:] = v[1:]
    kept = u * 1
    u[1:] += w[1:]
    u[1:] *= kept[1:]
    return u, kept, u[1:].min(1)


def another_dtype(xp: ModuleType, u: Any, v: Any, w: Any) -> tuple[Any, ...]:
    small = u.astype(np.float32)
    small[1:] = v[1:] * 3
    return small, (small[1:] - w[1:]).max(), small[1:].astype(np.float64) - v[1:]


def backwards(xp: ModuleType, u: Any, v: Any, w: Any) -> tuple[Any, ...]:
    u[::-1] = v * 2
    u[::-1] -= w
    part = u[::-1]
    return u, part.max(0), part.argmin()


def constant_border(xp: ModuleType, u: Any, v: Any, w: Any) -> tuple[Any, ...]:
    u[0] = 3
    u[0] += v[0]
    u[:, -1] = u[:, 0]
    u[:, -1] *= 2
    return u, u[0].max(), u[:, -1].max()


ALL: list[Program] = [
    *[program for program, _ in ONE_PASS], places_in_itself, folded_in_all_ways,
    shifted, after_a_sum, neighbours_of_itself, looked_at_between, another_dtype, backwards,
    constant_border,
]


def fields(shape: tuple[int, ...], dtype: Any = np.float64) -> Fields:
    random = np.random.default_rng(shape[0])
    u, v, w = random.standard_normal((3, *shape)).astype(dtype)
    return u, v, w


@pytest.mark.clfuse_only
@pytest.mark.parametrize(("program", "passes"), ONE_PASS, ids=lambda p: getattr(p, "__name__", ""))
def test_what_was_just_written_is_at_hand(program: Program, passes: int) -> None:
    given = fields((300, 400))
    plan = cf.explain(*program(cf, *[cf.asarray(each) for each in given]))
    large = [kernel for kernel in plan.kernels if kernel.nbytes > given[0].nbytes / 2]
    assert len(large) == 1
    assert plan.nbytes <= 1.02 * passes * given[0].nbytes


@pytest.mark.parametrize("shape", [(300, 400), (37, 5), (3, 64), (64, 3)], ids=str)
@pytest.mark.parametrize("program", ALL, ids=lambda program: program.__name__)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_values_are_numpys(program: Program, shape: tuple[int, ...]) -> None:
    given = fields(shape)
    for number, field in enumerate(given):
        places = np.random.default_rng(number).integers(0, field.size, 3 * len(HOSTILE))
        field.flat[places] = HOSTILE * 3
    ours = program(cf, *[cf.asarray(each) for each in given])
    cf.evaluate(*ours)
    for result, expected in zip(ours, program(np, *given), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-12)


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("program", ALL, ids=lambda program: program.__name__)
def test_rounds_of_them_keep_what_somebody_holds(program: Program, kept: bool) -> None:
    given = fields((40, 50))
    ours: Any = [cf.asarray(each) for each in given]
    theirs: Any = [each.copy() for each in given]
    copies, expected = [], []
    for _ in range(4):
        ours[0], theirs[0] = program(cf, *ours)[0], program(np, *theirs)[0]
        ours[0], theirs[0] = ours[0].astype(float), theirs[0].astype(float)
        if kept:
            copies.append(ours[0].copy())
            expected.append(theirs[0].copy())
        ours = [ours[1], ours[2], ours[0]]
        theirs = [theirs[1], theirs[2], theirs[0]]
    for result, wanted in zip([*ours, *copies], [*theirs, *expected], strict=True):
        assert_bitwise(result, wanted)
