"""One cost decides what is stored and what is computed again, and every cut says why."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.ir.snapshot import take
from clfuse.schedule import cost
from clfuse.schedule.planner import plan
from clfuse.schedule.records import Schedule, Step
from clfuse.schedule.verify import verify
from tests.support.recording import (
    FLOAT64,
    TRAITS,
    array,
    call,
    joined_apart,
    kernels,
    moved_nbytes,
    number,
    planned,
    softmax,
)

N = 1_000_000
FREE = replace(TRAITS, operation_nbytes=1e-3)
DEAR = replace(TRAITS, operation_nbytes=100.0)


def polynomial(x: Node, operations: int) -> Node:
    value = x
    for term in range(operations):
        value = call("multiply" if term % 2 else "add", value, x)
    return value


def neighbours(value: Node, reads: int) -> Node:
    (count,) = value.shape
    total = build.view(value, (count - reads,), 0, (1,))
    for start in range(1, reads):
        total = call("add", total, build.view(value, (count - reads,), start, (1,)))
    return total


@pytest.mark.parametrize("size", [1000, N, 1 << 33])
@pytest.mark.parametrize(
    ("operations", "reads", "count"), [(12, 2, 1), (20, 2, 1), (5, 5, 1), (20, 5, 2), (4, 30, 2)]
)
def test_what_neighbours_read_is_stored_where_that_is_cheaper(
    operations: int, reads: int, count: int, size: int
) -> None:
    schedule = planned(neighbours(polynomial(array(size), operations), reads))
    assert len(schedule.launches) == count
    reasons = [cut.reason for cut in schedule.cuts]
    assert bool(reasons) is (count == 2)
    assert all(re.search(r"read [\d.]+ times: [\d.]+ bytes", reason) for reason in reasons)


def test_devices_that_calculate_faster_store_less() -> None:
    def program() -> Node:
        return neighbours(polynomial(array(N), 20), 5)

    def later() -> Node:
        x = call("sin", array(1000, 1000))
        return call("subtract", x, build.view(
            build.reduce("maximum", x, (0, 1), FLOAT64), (1000, 1000), 0, (0, 0)))

    assert [len(planned(program(), traits=traits).launches) for traits in (FREE, DEAR)] == [1, 2]
    moved = [moved_nbytes(planned(later(), traits=traits)) // (8 * N) for traits in (FREE, DEAR)]
    assert moved == [3, 4]


def test_the_largest_kernel_follows_the_device() -> None:
    value = array(N)
    for _ in range(100):
        value = call("add", value, number(1.0))
    schedule = planned(value, traits=replace(TRAITS, max_steps=30))
    assert [sum(isinstance(item, Step) for item in kernel.body) for kernel in kernels(schedule)
            ] == [30, 30, 30, 10]
    assert len(schedule.cuts) == 3
    assert all("30 operations at most" in cut.reason for cut in schedule.cuts)
    small = replace(TRAITS, max_parameter_nbytes=256)
    total = array(N)
    for _ in range(30):
        total = call("add", total, array(N))
    cuts = planned(total, traits=small).cuts
    assert cuts
    assert all("12 arguments at most" in cut.reason for cut in cuts)


def large_sum() -> Node:
    return build.reduce("add", array(N), (0,), FLOAT64)


HELD = array(N)


def update_of_a_held_array() -> Node:
    return build.update(HELD, array(10), 0, (1,))


def twenty_results() -> tuple[Node, ...]:
    x = array(N)
    return tuple([call("add", x, array(N)) for _ in range(20)])


def scan_of_joined() -> Node:
    return build.scan("multiply", build.concatenate([array(N), array(N)], 0), 0, FLOAT64)


def rows_too_few() -> Node:
    return softmax(array(2, 500_000))


def packed_points() -> Node:
    points = array(1500, 3)
    columns = [build.view(points, (1500,), axis, (3,)) for axis in range(2)]
    pairs = [call("subtract", build.view(column, (1500, 1500), 0, (1, 0)),
                  build.view(column, (1500, 1500), 0, (0, 1))) for column in columns]
    return build.reduce("add", call("multiply", *pairs), (1,), FLOAT64)


def scan_of_costly() -> Node:
    return build.scan("add", call("sin", call("exp", array(N))), 0, FLOAT64)


@pytest.mark.parametrize(
    ("program", "what", "reason"),
    [
        pytest.param(large_sum, "add of pieces", "pieces", id="pieces"),
        pytest.param(update_of_a_held_array, "outside of", "copied from", id="copy"),
        pytest.param(twenty_results, "20 results", "16 results at most", id="results"),
        pytest.param(scan_of_joined, "concatenate", "part by part", id="joined"),
        pytest.param(lambda: call("sqrt", joined_apart(N)), "sqrt", "lies", id="boxes"),
        pytest.param(rows_too_few, "maximum over", "2 rows are too few", id="rows"),
        pytest.param(packed_points, "an operand", "lanes lie apart", id="packed"),
        pytest.param(scan_of_costly, "accumulates", "to compute it again", id="scan"),
    ],
)
def test_every_cut_has_a_reason_that_names_what_was_cut(
    program: Callable[[], Node | tuple[Node, ...]], what: str, reason: str
) -> None:
    roots = program()
    schedule = planned(*(roots if isinstance(roots, tuple) else (roots,)))
    found = [cut for cut in schedule.cuts if what in cut.what and reason in cut.reason]
    assert found, schedule.cuts


def test_without_fusion_every_cut_says_so() -> None:
    schedule = planned(polynomial(array(N), 3), fuse=False)
    assert [("fusion is off" in cut.reason, cut.nbytes) for cut in schedule.cuts] == [
        (True, 8 * N)] * 2


# -- values that somebody holds -------------------------------------------------------------------


def evaluated(root: Node) -> Schedule:
    """Plan `root`, and do to its nodes what `evaluate` does."""
    snapshot = take([root])
    schedule = plan(snapshot, TRAITS)
    verify(schedule)
    for position in schedule.keeps:
        snapshot.nodes[position].buffer = array(1).buffer
        snapshot.nodes[position].inputs = ()
    for position in schedule.recomputed:
        snapshot.nodes[position].computed = True
    return schedule


def test_a_cheap_held_value_is_stored_only_when_asked_for() -> None:
    y = call("multiply", array(N), number(2.0))
    for _ in range(5):
        assert moved_nbytes(evaluated(call("add", y, number(1.0)))) == 16 * N
        assert y.buffer is None
    assert moved_nbytes(evaluated(y)) == 16 * N
    assert y.buffer is not None


def test_a_costly_held_value_is_stored_when_computed_again() -> None:
    y = call("sin", call("exp", array(N)))
    moved = [moved_nbytes(evaluated(call("add", y, number(1.0)))) for _ in range(4)]
    assert moved == [16 * N, 24 * N, 16 * N, 16 * N]
    assert y.buffer is not None


def test_a_dead_value_is_never_stored() -> None:
    for _ in range(3):
        schedule = evaluated(call("add", call("sin", call("exp", array(N))), number(1.0)))
        assert moved_nbytes(schedule) == 16 * N


def test_looking_at_a_held_chain_takes_proportional_operations() -> None:
    """Each step reads the one before twice; what is printed is one operation behind it."""
    values = [array(N)]
    operations = []
    for _ in range(40):
        values.append(neighbours(values[-1], 2))
        schedule = evaluated(call("add", values[-1], number(1.0)))
        operations.append(
            sum(isinstance(item, Step) for kernel in kernels(schedule) for item in kernel.body)
        )
    assert max(operations) <= 16
    assert sum(operations) <= 40 * 8


def test_what_only_a_later_kernel_reads_is_computed_there() -> None:
    total = build.reduce("add", array(N), (0,), FLOAT64)
    schedule = planned(call("divide", call("exp", call("add", array(N), array(N))), total))
    *sums, last = kernels(schedule)
    assert {kernel.kind.name for kernel in sums} == {"reduce"}
    steps = [item.op.name for item in last.body if isinstance(item, Step)]
    assert steps == ["add", "exp", "divide"]
    assert not any(cut.nbytes == 8 * N for cut in schedule.cuts)


def test_what_two_kernels_read_is_stored_if_it_is_dear() -> None:
    shared = call("exp", call("add", array(N), array(N)))
    total = build.reduce("add", shared, (0,), FLOAT64)
    schedule = planned(call("divide", shared, call("negative", total)), call("exp", total))
    assert any(cut.nbytes == 8 * N for cut in schedule.cuts)


def test_values_for_a_later_kernel_do_not_make_one_too_long() -> None:
    total = build.reduce("add", array(N), (0,), FLOAT64)
    value = total
    for _ in range(40):
        term = array(N)
        for _ in range(30):
            term = call("negative", term)
        value = call("multiply", term, value)
    schedule = planned(value)
    longest = max(
        sum(isinstance(item, Step) for item in kernel.body) for kernel in kernels(schedule)
    )
    assert longest <= TRAITS.max_steps + cost.MAX_MOVED


def test_overlapping_views_for_a_later_kernel_store_their_base() -> None:
    grid = call("exp", call("add", array(N), array(N)))
    total = build.reduce("add", array(N), (0,), FLOAT64)
    shifted = [build.view(grid, (N - 4,), start, (1,)) for start in range(3)]
    early = call("add", *shifted[:2])
    late = [call("multiply", view, total) for view in shifted]
    schedule = planned(early, *late)
    stored = [cut.nbytes for cut in schedule.cuts if cut.nbytes > 1000]
    assert stored == [8 * N]
