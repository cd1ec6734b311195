"""Writes to parts of an array that read other parts of it, or what was just written, are one
kernel."""

from __future__ import annotations

import pytest

from clfuse.ir import build
from clfuse.ir.nodes import Node
from tests.support.recording import FLOAT64, array, call, kernels, number, planned

N = 10_000


def column(points: Node, index: int) -> Node:
    return build.view(points, (N,), index, (3,))


def written(points: Node, index: int, value: Node) -> Node:
    return build.update(points, value, index, (3,))


def moved(points: Node, by: list[Node]) -> Node:
    """``points[:, index] += by[index]``, column by column."""
    for index, step in enumerate(by):
        points = written(points, index, call("add", column(points, index), step))
    return points


def test_columns_incremented_one_by_one_are_one_kernel() -> None:
    schedule = planned(moved(array(N, 3), [array(N) for _ in range(3)]))
    (kernel,) = kernels(schedule)
    assert len(kernel.stores) == 3


def test_velocities_and_their_positions_are_one_kernel() -> None:
    positions, velocities, forces = [array(N, 3) for _ in range(3)]
    for index in range(3):
        step = call("multiply", column(forces, index), number(0.1))
        velocities = written(velocities, index, call("add", column(velocities, index), step))
        by = call("multiply", column(velocities, index), number(0.1))
        positions = written(positions, index, call("add", column(positions, index), by))
    schedule = planned(positions, velocities)
    (kernel,) = kernels(schedule)
    assert len(kernel.stores) == 6


def seen_by_a_fold() -> list[Node]:
    once = moved(array(N, 3), [array(N)])
    return [written(once, 1, array(N)), build.reduce("add", once, (0,), FLOAT64)]


def asked_for() -> list[Node]:
    once = moved(array(N, 3), [array(N)])
    return [written(once, 1, array(N)), once]


def read_where_it_was_written() -> list[Node]:
    once = moved(array(N, 3), [array(N)])
    shifted = build.view(once, (N - 1,), 3, (3,))
    return [build.update(once, call("negative", shifted), 1, (3,))]


def that_wait_for_a_fold() -> list[Node]:
    total = build.reduce("add", array(N), (0,), FLOAT64)
    once = written(array(N, 3), 0, call("exp", build.view(total, (N,), 0, (0,))))
    return [written(once, 1, call("negative", column(once, 0)))]


@pytest.mark.parametrize(
    "program", [seen_by_a_fold, asked_for, read_where_it_was_written, that_wait_for_a_fold]
)
def test_what_somebody_sees_in_between_is_there(program) -> None:
    schedule = planned(*program())  # which follows every byte
    assert not any(len(kernel.stores) > 1 for kernel in kernels(schedule) if not kernel.then)
