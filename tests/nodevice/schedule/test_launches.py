"""Launches of kernels that somebody wrote: what runs, in which order, in whose bytes."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from clfuse.arrays.conversion import wrap_node
from clfuse.arrays.handle import fresh, view_of
from clfuse.ir import build
from clfuse.ir.nodes import Kind, Node
from clfuse.schedule.records import Copy, Kernel, LibraryCall, Schedule, UserLaunch
from clfuse.schedule.verify import PlanError, verify
from clfuse.user_kernels.opencl.record_launch import MAX_CALLS, record_launch
from tests.support.recording import array, call, number, planned

SOURCE = "__kernel void f() {}"
Offsets = list[tuple[int | tuple[int, int] | bytes, ...]]


def stored(*shape: int) -> Any:
    """An array whose bytes exist and that nobody else holds."""
    return wrap_node(array(*shape))


def view(owner: Any, shape: tuple[int, ...], offset: int, strides: tuple[int, ...]) -> Any:
    return view_of(owner, shape, offset, strides)


def launched(*arguments: Any, name: str = "f", size: tuple[int, ...] = (4,)) -> None:
    record_launch(SOURCE, name, list(arguments), size)


def value_of(handle: Any) -> Node:
    node: Node = handle._storage.node
    return node


def names(schedule: Schedule) -> list[str]:
    return [type(launch).__name__ for launch in schedule.launches]


def rounds_of(node: Node) -> list[int]:
    return [each.count for each in node.inputs[0].param.rounds]


def test_an_array_is_written_where_it_lies() -> None:
    a, b = stored(10), stored(10)
    launched((a, "r"), (b, "rw"))
    schedule = planned(value_of(b))
    assert names(schedule) == ["UserLaunch"]
    assert not [size for number, size in enumerate(schedule.slots) if number not in schedule.reuses]


def test_what_is_pending_and_reads_the_old_array_comes_first() -> None:
    a = stored(10)
    before = fresh(call("negative", value_of(a)))
    launched((a, "rw"))
    schedule = planned(value_of(before), value_of(a))
    assert names(schedule) == ["Kernel", "UserLaunch"]
    assert len(schedule.reuses) == 1, "and then the array is written where it lies"


def test_a_result_asked_for_later_still_sees_the_old_array() -> None:
    a = stored(10)
    before = fresh(call("negative", value_of(a)))
    launched((a, "rw"))
    assert names(planned(value_of(a))) == ["Copy", "UserLaunch"]
    del before
    assert names(planned(value_of(a))) == ["UserLaunch"]


def test_old_contents_that_nobody_needs_are_not_copied() -> None:
    a, b, c = stored(10), stored(2, 5), stored(10)
    kept = [wrap_node(value_of(each)) for each in (a, b, c)]
    launched((a, "w"), (view(b, (5, 2), 9, (-1, -5)), "w", "strides"), (c, "rw"))
    schedule = planned(*[value_of(each) for each in (a, b, c)])
    assert names(schedule) == ["Copy", "UserLaunch"]
    assert len(kept) == 3
    part = stored(10)
    kept = [wrap_node(value_of(part))]
    launched((view(part, (9,), 0, (1,)), "w"))
    assert names(planned(value_of(part))) == ["Copy", "UserLaunch"]


def test_producers_are_fused_before_and_consumers_after() -> None:
    a, b = stored(10), stored(10)
    inner = fresh(call("add", call("negative", value_of(a)), number(1)))
    launched((inner, "r"), (b, "rw"))
    after = call("multiply", call("negative", value_of(b)), value_of(inner))
    schedule = planned(after)
    assert names(schedule) == ["Kernel", "UserLaunch", "Kernel"]
    assert any("f" in cut.reason for cut in schedule.cuts)


def test_a_launch_that_nobody_observes_does_not_run() -> None:
    a, b = stored(10), stored(10)
    launched((a, "r"), (b, "rw"))
    assert names(planned(call("negative", value_of(a)))) == ["Kernel"]


def test_held_arrays_of_a_launch_are_kept_the_others_scratch() -> None:
    a, b, c = stored(10), stored(10), stored(10)
    launched((a, "rw"), (b, "rw"), (c, "rw"))
    wanted = value_of(a)
    del c
    gc.collect()
    schedule = planned(wanted)
    assert names(schedule) == ["UserLaunch"]
    assert len(schedule.keeps) == 2, "of a launch that runs once"
    (launch,) = schedule.launches
    assert isinstance(launch, UserLaunch)
    assert len({schedule.values[value].slot for value in launch.buffers}) == 3


def test_two_arrays_of_one_value_do_not_share_a_write() -> None:
    a = stored(10)
    b = wrap_node(value_of(a))
    launched((a, "rw"), (b, "r"))
    assert names(planned(value_of(a))) == ["Copy", "UserLaunch"]
    c = fresh(call("negative", array(10)))
    d = wrap_node(value_of(c))
    launched((c, "rw"), (d, "rw"))
    assert names(planned(value_of(c), value_of(d))) == ["Kernel", "Copy", "UserLaunch"]


def test_views_of_one_array_are_one_buffer() -> None:
    a = stored(10)
    launched((view(a, (9,), 0, (1,)), "r"), (view(a, (9,), 1, (1,)), "rw"))
    schedule = planned(value_of(a))
    (launch,) = schedule.launches
    assert isinstance(launch, UserLaunch)
    assert len(launch.buffers) == 1
    assert launch.round.offsets == (0, 1)


def test_scalars_and_empty_arrays_have_bytes_too() -> None:
    a, empty = stored(10), stored(0)
    scalar = fresh(build.constant(np.float64(3)))
    launched((a, "rw"), (empty, "rw"), (scalar, "rw"), (empty, "r"))
    assert value_of(empty).buffer is not None, "nothing in it was written"
    assert value_of(scalar).shape == ()
    assert names(planned(value_of(a), value_of(scalar)))[-1] == "UserLaunch"
    launched((a, "rw"), size=(0,))
    assert names(planned(value_of(a))).count("UserLaunch") == 1


# -- many calls -----------------------------------------------------------------------------------


def test_calls_on_rows_are_one_launch_however_many_there_are() -> None:
    rows = 500
    a, b = stored(rows, 4), stored(rows, 4)
    for row in range(rows):
        launched((view(b, (4,), 4 * row, (1,)), "r"), (view(a, (4,), 4 * row, (1,)), "rw"))
    schedule = planned(value_of(a))
    (launch,) = schedule.launches
    assert isinstance(launch, UserLaunch)
    assert launch.round.offsets == ((0, 4), (0, 4))
    for column in range(4):
        launched((view(a, (rows,), column, (4,)), "rw", "strides"))
    assert rounds_of(value_of(a)) == [4]
    del a
    for row in np.random.default_rng(0).permutation(rows).tolist():
        launched((view(b, (4,), 4 * row, (1,)), "rw"), np.float64(row))
    assert rounds_of(value_of(b)) == [rows]
    assert names(planned(value_of(b))) == ["LibraryCall", "LibraryCall", "UserLaunch"]


def overlapping(regions: list[tuple[int, int]], size: int = 2) -> list[int]:
    """Rounds of calls that read one place and write another of one array."""
    a = stored(100)
    for source, target in regions:
        launched((view(a, (size,), source, (1,)), "r"), (view(a, (size,), target, (1,)), "rw"))
    return rounds_of(value_of(a))


@pytest.mark.parametrize(
    ("regions", "rounds"),
    [
        ([(0, 2), (4, 6), (8, 10)], [3]),
        ([(0, 2), (2, 4), (4, 6)], [1, 1, 1]),  # read after write
        ([(4, 6), (2, 4), (0, 2)], [1, 1, 1]),  # write after read
        ([(0, 2), (4, 2), (6, 8)], [1, 2]),  # write after write
        ([(0, 2), (0, 4), (0, 6), (0, 8)], [4]),  # reads alone never wait
        ([(0, 3), (6, 4)], [1, 1]),  # by one element
        ([(0, 0), (2, 2), (0, 0)], [2, 1]),  # within one call it does not matter
    ],
)
def test_calls_that_depend_on_each_other_are_rounds(
    regions: list[tuple[int, int]], rounds: list[int]
) -> None:
    assert overlapping(regions) == rounds


def test_rounds_agree_with_a_comparison_of_all_pairs() -> None:
    draw = np.random.default_rng(1)
    for _ in range(60):
        regions = [tuple(draw.integers(0, 30, 2).tolist()) for _ in range(12)]
        expected = []
        touched: list[tuple[set[int], set[int]]] = []
        for source, target in regions:
            written = set(range(target, target + 3))
            all_ = written | set(range(source, source + 3))
            if not touched or any(written & others or all_ & theirs for theirs, others in touched):
                touched = []
                expected.append(0)
            touched.append((written, all_))
            expected[-1] += 1
        assert overlapping(regions, 3) == expected, regions


def test_views_of_other_item_sizes_overlap_by_their_bytes() -> None:
    a = wrap_node(array(8, dtype=np.complex128))
    halves = np.dtype(np.float64)
    for place in range(4):
        launched((view_of(a, (2,), 2 * place, (1,)), "rw"),
                 (view_of(a, (1,), 4 * place + 1, (1,), halves), "r"))
    assert rounds_of(value_of(a)) == [4], "each reads what it writes"
    b = wrap_node(array(8, dtype=np.complex128))
    for place in range(3):
        launched((view_of(b, (1,), place, (1,)), "rw"),
                 (view_of(b, (1,), 2 * place + 2, (1,), halves), "r"))
    assert rounds_of(value_of(b)) == [1, 1, 1]


@pytest.mark.parametrize(
    ("text", "rounds"),
    [
        ("get_global_id(0) + get_group_id( 0 ) + get_num_groups(0)", [3]),
        ("get_global_id(1)", [1, 1, 1]),  # else 0
        ("get_global_size(d)", [1, 1, 1]),
        ("get_global_linear_id()", [1, 1, 1]),
        ("get_work_dim()", [1, 1, 1]),
    ],
)
def test_kernels_that_see_the_number_of_the_call_are_not_joined(
    text: str, rounds: list[int]
) -> None:
    a = stored(10, 4)
    for row in range(3):
        source = f"__kernel void f(__global double *a) {{ a[0] = {text}; }}"
        record_launch(source, "f", [(view(a, (4,), 4 * row, (1,)), "rw")], (4,))
    found = []
    node = value_of(a)
    while node.buffer is None:
        found += rounds_of(node)
        node = node.inputs[0].inputs[0]
    assert found == rounds


def test_what_somebody_has_read_between_two_calls_stays() -> None:
    a = stored(10, 4)
    launched((view(a, (4,), 0, (1,)), "rw"))
    seen = fresh(build.view(value_of(a), (4,), 0, (1,)))
    launched((view(a, (4,), 4, (1,)), "rw"))
    launched((view(a, (4,), 8, (1,)), "rw"))
    schedule = planned(value_of(a), value_of(seen))
    assert names(schedule).count("UserLaunch") == 2
    assert rounds_of(value_of(a)) == [2]


def test_calls_that_differ_in_more_than_places_stay_apart() -> None:
    a, b = stored(10, 4), stored(10, 4)
    first, second = view(a, (4,), 0, (1,)), view(a, (4,), 4, (1,))
    launched((first, "rw"))
    launched((second, "rw"))
    launched((second, "rw"), size=(2,))
    launched((second, "rw"), name="g", size=(2,))
    launched((view(a, (3,), 0, (1,)), "rw"), name="g", size=(2,))
    launched((view(a, (3,), 5, (1,)), "rw", "strides"), name="g", size=(2,))
    launched((view(a, (3,), 5, (1,)), "rw", "strides"), np.float64(1), name="g", size=(2,))
    launched((view(a, (3,), 5, (1,)), "rw", "strides"), np.float32(1), name="g", size=(2,))
    assert names(planned(value_of(a))).count("UserLaunch") == 7
    for row in range(20):  # by turns, on two arrays
        launched((view((a, b)[row % 2], (2,), row, (1,)), "rw"))
    assert rounds_of(value_of(b)) == [10]


def test_a_launch_has_an_end() -> None:
    a = stored(4)
    row = view(a, (1,), 0, (0,))
    for _ in range(MAX_CALLS + 3):
        launched((row, "r"), (view(a, (1,), 1, (0,)), "r"), (view(a, (0,), 0, (1,)), "rw"))
    assert rounds_of(value_of(a)) == [3]


# -- invariants -----------------------------------------------------------------------------------


def test_plans_that_would_corrupt_memory_are_refused() -> None:
    a, b = stored(10), stored(10)
    kept = wrap_node(value_of(b))
    launched((a, "r"), (view(b, (4,), 6, (1,)), "rw"))
    schedule = planned(value_of(b))
    copy, launch = schedule.launches
    assert isinstance(copy, Copy)
    assert isinstance(launch, UserLaunch)
    assert kept is not None

    def broken(change: Any) -> None:
        with pytest.raises(PlanError):
            verify(replace(schedule, launches=change))

    broken([launch])
    broken([launch, copy])
    broken([copy, replace(launch, buffers=launch.buffers[::-1])])
    broken([copy, replace(launch, round=replace(launch.round, offsets=(0, 7)))])
    broken([copy, replace(launch, round=replace(launch.round, count=3, offsets=((0, 4), 6)))])
    broken([copy, replace(launch, round=replace(launch.round, offsets=(0, -1)))])


def test_wrong_arguments_are_errors_at_the_call() -> None:
    a = stored(4, 4)
    columns = view(a, (4,), 0, (4,))
    locked = view_of(a, (4,), 0, (1,), writeable=False)
    with pytest.raises(ValueError, match="C order"):
        launched((columns, "r"), (a, "rw"))
    with pytest.raises(ValueError, match="read-only"):
        launched((locked, "rw"))
    with pytest.raises(ValueError, match="mode"):
        launched((a, "write"))
    launched((view(a, (4,), 0, (1,)), "rw"))
    with pytest.raises(ValueError, match="read-only"):
        launched((locked, "rw"))
    assert value_of(a).op.kind is Kind.PART
    assert rounds_of(value_of(a)) == [1]


def test_writes_around_a_launch_are_still_rolled_into_one() -> None:
    a = stored(40, 4)
    for row in range(40):
        part = build.view(value_of(a), (4,), 4 * row, (1,))
        doubled = call("multiply", part, number(2))
        a._storage.node = build.update(value_of(a), doubled, 4 * row, (1,))
    launched((a, "rw"))
    for row in range(40):
        part = build.view(value_of(a), (4,), 4 * row, (1,))
        a._storage.node = build.update(value_of(a), call("negative", part), 4 * row, (1,))
    schedule = planned(value_of(a))
    assert names(schedule) == ["Kernel", "UserLaunch", "Kernel"]
    assert not any(isinstance(launch, LibraryCall | Copy) for launch in schedule.launches)
    assert all(len(k.stores) == 1 for k in schedule.launches if isinstance(k, Kernel))
