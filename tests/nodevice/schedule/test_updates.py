"""Which memory is written to: parts of arrays where those lie, results over what is dead, nothing
over what somebody still reads. As counts of kernels and bytes."""

from __future__ import annotations

import numpy as np

from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.schedule.records import Copy, Kernel, Load
from tests.support.recording import FLOAT64, array, call, kernels, moved_nbytes, number, planned

N = 1_000_000


def shifted(node: Node, rows: int, columns: int) -> Node:
    """The interior of a 2-D array, moved."""
    height, width = node.shape
    offset = (1 + rows) * width + 1 + columns
    return build.view(node, (height - 2, width - 2), offset, (width, 1))


def five_point(grid: Node) -> Node:
    total = shifted(grid, 0, 0)
    for rows, columns in ((-1, 0), (1, 0), (0, -1), (0, 1)):
        total = call("add", total, shifted(grid, rows, columns))
    return call("multiply", total, number(0.2))


def interior_update(grid: Node, value: Node) -> Node:
    width = grid.shape[1]
    return build.update(grid, value, width + 1, (width, 1))


def test_a_stencil_reads_its_array_once() -> None:
    schedule = planned(five_point(array(1000, 1000)))
    (kernel,) = kernels(schedule)
    assert sum(isinstance(item, Load) for item in kernel.body) == 5
    assert moved_nbytes(schedule) <= 8 * (N + 998 * 998)


def test_an_update_of_the_interior_copies_only_the_border() -> None:
    grid = array(1000, 1000)
    schedule = planned(interior_update(grid, five_point(grid)))
    assert not any(isinstance(launch, Copy) for launch in schedule.launches)
    stored = sum(int(np.prod(kernel.extents)) for kernel in kernels(schedule))
    assert stored == N
    assert schedule.slots == [8 * N]


def test_repeated_updates_alternate_between_two_buffers() -> None:
    grid = array(1000, 1000)
    for _ in range(10):
        grid = interior_update(grid, five_point(grid))
    schedule = planned(grid)
    assert schedule.slots == [8 * N, 8 * N]
    # The border is copied into the first buffer only; after that it is in both.
    assert len(kernels(schedule)) == 10 + 4


def test_a_loop_of_writes_alternates_between_two_buffers() -> None:
    grid = array(1000, 1000)
    for _ in range(10):
        grid = interior_update(grid, five_point(grid))
        grid = build.update(grid, array(1000), 0, (1,))
    schedule = planned(grid)
    stored = sum(int(np.prod(kernel.extents)) for kernel in kernels(schedule))
    assert stored == 10 * (998 * 998 + 1000) + (N - 998 * 998)
    assert schedule.slots.count(8 * N) == 2


def test_updates_of_other_parts_copy_what_the_old_buffer_lacks() -> None:
    grid = array(1000, 1000)
    for _ in range(3):
        grid = interior_update(grid, five_point(grid))
        grid = build.update(grid, build.view(grid, (1000,), 1000, (1,)), 0, (1,))
    stored = sum(int(np.prod(kernel.extents)) for kernel in kernels(planned(grid)))
    assert stored >= 3 * (998 * 998 + 1000) + 2 * (N - 998 * 998)


def test_writes_to_parts_that_do_not_touch_are_one_kernel() -> None:
    x, y = array(1000), array(1000)
    joined = array(1000, 3)
    for column, value in enumerate((call("add", x, y), call("subtract", x, y), call("exp", x))):
        joined = build.update(joined, value, column, (3,))
    schedule = planned(joined)
    (kernel,) = schedule.launches
    assert isinstance(kernel, Kernel)
    assert [store.access.offset for store in kernel.stores] == [0, 1, 2]
    assert len([item for item in kernel.body if isinstance(item, Load)]) == 2
    assert not schedule.cuts


def test_writes_that_touch_are_made_one_after_the_other() -> None:
    x = build.update(array(1000), array(500), 0, (1,))
    schedule = planned(build.update(x, array(500), 499, (1,)))
    assert len(kernels(schedule)) >= 2


def test_a_write_looked_at_before_the_next_is_made_by_itself() -> None:
    x = build.update(array(1000), array(500), 0, (1,))
    total = build.reduce("add", x, (0,), FLOAT64)
    schedule = planned(build.update(x, array(500), 500, (1,)), total)
    assert len(kernels(schedule)) >= 3


def test_writes_of_one_launch_leave_what_others_read_as_it_was() -> None:
    x = array(1000, 2)
    columns = [build.view(x, (1000,), column, (2,)) for column in range(2)]
    row = build.view(x, (2,), 0, (1,))
    x = build.update(x, columns[1], 0, (2,))
    x = build.update(x, call("negative", columns[0]), 1, (2,))
    planned(x, call("exp", row))  # which follows every byte


def test_an_update_of_a_dead_array_writes_in_place() -> None:
    schedule = planned(build.update(array(N), array(10), 0, (1,)))
    (kernel,) = kernels(schedule)
    assert kernel.extents == (10,)
    assert schedule.reuses


def test_an_update_of_an_array_that_somebody_holds_copies_it() -> None:
    old = array(N)
    schedule = planned(build.update(old, array(10), 0, (1,)))
    assert 8 * N not in [schedule.slots[slot] for slot in schedule.reuses]
    assert old.buffer is not None


def test_a_dead_input_gives_its_memory_to_the_result() -> None:
    schedule = planned(call("negative", array(N)))
    assert schedule.reuses


def test_an_exported_buffer_is_never_written() -> None:
    source = array(N)
    source.buffer.exported = True
    schedule = planned(call("negative", source))
    del source
    assert not schedule.reuses


def test_inputs_of_a_pending_value_are_not_overwritten() -> None:
    old = array(N)
    pending = call("sqrt", old)
    root = call("add", build.update(old, array(10), 0, (1,)), pending)
    del old
    schedule = planned(root)
    assert 8 * N not in [schedule.slots[slot] for slot in schedule.reuses]
    assert pending.shape == (N,)


def test_a_result_of_another_dtype_or_size_takes_over_no_memory() -> None:
    assert not planned(build.cast(array(N), np.dtype(np.int64))).reuses
    assert not planned(call("negative", build.view(array(N), (N // 2,), 0, (2,)))).reuses
    assert not planned(call("negative", build.view(array(N // 2), (N,), 0, (0,)))).reuses


def test_what_a_later_pass_reads_is_not_overwritten_before() -> None:
    """x * 2 is stored, as somebody asks for it, before the second pass reads x again."""
    x = array(1000, 1000)
    total = build.reduce("add", x, (1,), FLOAT64)
    apart = call("subtract", x, build.view(total, (1000, 1000), 0, (1, 0)))
    twice = call("multiply", x, number(2.0))
    del x
    schedule = planned(apart, twice)  # which follows every byte
    places = [schedule.values[value].slot for value in schedule.keeps.values()]
    assert len(set(places)) == len(places) >= 2
