"""Draws by counter are sources without memory: the planner makes their numbers where they are read,
and stores them only where making them again would cost more."""

from __future__ import annotations

import numpy as np

from clfuse.arrays.handle import node_of
from clfuse.functions.random.bits import Draw, Philox4x32
from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.ir.snapshot import take
from clfuse.schedule.records import Load
from tests.support.recording import BOOL, FLOAT64, call, kernels, moved_nbytes, number, planned

COUNT = 1 << 20
GENERATOR = Philox4x32(1)


def uniform(*shape: int) -> Node:
    return node_of(Draw(GENERATOR, shape).uniform())


def inside() -> Node:
    """How many of `COUNT` random points lie in the quarter of a circle."""
    x, y = uniform(COUNT), uniform(COUNT)
    near = call("less", call("add", call("square", x), call("square", y)), number(1), dtype=BOOL)
    return build.reduce("add", near, (0,), np.dtype(np.int64))


def test_counting_random_points_reads_nothing():
    schedule = planned(inside())
    assert len(kernels(schedule)) == 2  # the second folds the pieces
    assert not any(isinstance(item, Load) for item in kernels(schedule)[0].body)
    assert moved_nbytes(schedule) < 64 * 3 * 8
    assert [cut.what for cut in schedule.cuts] == ["add of pieces"]


def test_the_next_draw_has_the_same_structure_at_any_position():
    one, other = take([inside()]), take([inside()])
    assert one.same_structure(other)
    GENERATOR.state = {"bit_generator": "Philox4x32", "state": {"key": 5, "position": 5}}
    assert one.same_structure(take([inside()]))  # key and position equal: still two constants


def test_a_draw_read_by_two_kernels_is_stored_for_its_cost():
    x = uniform(COUNT)
    mean = call("divide", build.reduce("add", x, (0,), FLOAT64), number(COUNT))
    schedule = planned(call("subtract", x, mean))
    assert [cut.nbytes for cut in schedule.cuts if cut.what.startswith("uniform")] == [COUNT * 8]
    assert moved_nbytes(schedule) < COUNT * 8 * 3.1  # x stored, x read, the result
    assert len(kernels(schedule)) == 3
    # Asked for by itself it is one kernel that reads nothing.
    assert moved_nbytes(planned(uniform(COUNT))) == COUNT * 8


def test_a_random_row_beside_a_column_is_stored_not_repeated():
    row, column = uniform(1, 1000), uniform(1000, 1)
    pairs = call("multiply", row, column)
    schedule = planned(build.reduce("maximum", pairs, (0, 1), FLOAT64))
    assert moved_nbytes(schedule) < 200_000
    assert {cut.nbytes for cut in schedule.cuts if cut.node >= 0} == {8000}
