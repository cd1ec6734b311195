"""The planner's decisions, as counts of kernels and bytes; no device is needed."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.schedule import cost
from clfuse.schedule.records import Kernel, Load, Step
from clfuse.schedule.rounds import MAX_REPEATED
from clfuse.target.traits import DeviceTraits, with_schedule
from tests.support.recording import (
    BOOL,
    FLOAT64,
    TRAITS,
    array,
    call,
    kernels,
    moved_nbytes,
    number,
    planned,
    roll,
    softmax,
)

N = 1_000_000


def test_a_chain_is_one_kernel_that_moves_inputs_and_output() -> None:
    b, c = array(N), array(N)
    schedule = planned(call("add", b, call("multiply", c, number(3.0))))
    assert len(schedule.launches) == 1
    assert moved_nbytes(schedule) == 3 * 8 * N
    assert schedule.slots == [8 * N]


def test_a_shared_expression_is_computed_once() -> None:
    x = array(N)
    sine = call("sin", x)
    schedule = planned(call("add", call("multiply", sine, sine), sine))
    (kernel,) = kernels(schedule)
    assert [item.op.name for item in kernel.body if isinstance(item, Step)].count("sin") == 1


def test_equal_expressions_recorded_twice_are_computed_once() -> None:
    x = array(N)
    schedule = planned(call("multiply", call("sin", x), call("sin", x)))
    (kernel,) = kernels(schedule)
    assert sum(isinstance(item, Step) for item in kernel.body) == 2


def test_results_of_one_shape_share_a_kernel_and_its_loads() -> None:
    x, y = array(N), array(N)
    schedule = planned(call("add", x, y), call("subtract", x, y))
    assert len(kernels(schedule)) == 1
    assert moved_nbytes(schedule) == 4 * 8 * N


def test_constants_are_arguments_not_structure() -> None:
    x = array(N)
    first = planned(call("add", x, number(1.0)))
    second = planned(call("add", x, number(2.0)))
    assert str(kernels(first)[0].body) == str(kernels(second)[0].body)


@pytest.mark.parametrize(
    ("shape", "offset", "strides"),
    [
        pytest.param((500, 1000), 0, (2000, 1), id="every other row"),
        pytest.param((1000, 1000), 0, (1, 1000), id="transposed"),
        pytest.param((1000, 1000), 999, (1000, -1), id="flipped"),
        pytest.param((1000,), 0, (1001,), id="diagonal"),
        pytest.param((1000, 1000, 3), 0, (1000, 1, 0), id="broadcast"),
    ],
)
def test_views_cost_no_copy(
    shape: tuple[int, ...], offset: int, strides: tuple[int, ...]
) -> None:
    x = array(1000, 1000)
    schedule = planned(call("negative", build.view(x, shape, offset, strides)))
    assert len(schedule.launches) == 1
    assert len(schedule.slots) == 1


def test_a_view_of_an_expression_computes_only_what_it_shows() -> None:
    x = array(1000, 1000)
    doubled = call("multiply", x, number(2.0))
    row = build.view(doubled, (1000,), 5000, (1,))
    schedule = planned(call("sqrt", row))
    (kernel,) = kernels(schedule)
    assert kernel.extents == (1000,)
    assert moved_nbytes(schedule) == 2 * 8 * 1000


def test_a_reshaped_expression_is_not_copied() -> None:
    x = array(1000, 1000)
    flat = build.reshape(call("multiply", x, number(2.0)), (N,))
    assert len(planned(call("add", flat, array(N))).launches) == 1


def test_sources_read_no_memory() -> None:
    index = build.cast(build.iota(N), FLOAT64)
    schedule = planned(call("sin", call("multiply", index, number(0.1))))
    assert moved_nbytes(schedule) == 8 * N


def test_a_large_sum_is_two_kernels_without_a_temporary() -> None:
    x = array(N)
    centred = call("subtract", x, number(0.5))
    schedule = planned(build.reduce("add", call("multiply", centred, centred), (0,), FLOAT64))
    assert len(kernels(schedule)) == 2
    assert sum(schedule.slots) < 64 * 1024


def test_a_small_sum_is_one_kernel() -> None:
    assert len(kernels(planned(build.reduce("add", array(1000), (0,), FLOAT64)))) == 1


def test_sums_over_one_space_share_a_kernel() -> None:
    n = 1500
    x, y, mass = array(n), array(n), array(n)

    def difference(v: Node) -> Node:
        return call("subtract", build.view(v, (1, n), 0, (0, 1)), build.view(v, (n, 1), 0, (1, 0)))

    dx, dy = difference(x), difference(y)
    distance = call("sqrt", call("add", call("multiply", dx, dx), call("multiply", dy, dy)))
    weight = call("divide", build.view(mass, (1, n), 0, (0, 1)), distance)
    sums = [build.reduce("add", call("multiply", d, weight), (1,), FLOAT64) for d in (dx, dy)]
    schedule = planned(*sums)
    assert len(kernels(schedule)) == 1
    assert moved_nbytes(schedule) == 5 * 8 * n


def test_minimum_and_maximum_read_their_array_once() -> None:
    x = array(1000, 1000)
    extremes = [build.reduce(name, x, (1,), FLOAT64) for name in ("minimum", "maximum")]
    schedule = planned(*extremes)
    assert len(kernels(schedule)) == 1
    assert moved_nbytes(schedule) == 8 * N + 2 * 8 * 1000


@pytest.mark.parametrize(
    ("columns", "read"),
    [
        ([0, 1, 2], 3),
        ([0, 2, 0], 2),
        ([1], 1),
    ],
)
def test_columns_of_points_are_bytes_of_their_own(columns: list[int], read: int) -> None:
    points = array(N, 3)
    total = build.view(points, (N,), columns[0], (3,))
    for column in columns[1:]:
        total = call("add", total, build.view(points, (N,), column, (3,)))
    schedule = planned(call("negative", total))
    assert moved_nbytes(schedule) == (read + 1) * 8 * N


def test_shifted_reads_are_the_same_bytes() -> None:
    x = array(N)
    views = [build.view(x, (N - 2,), shift, (1,)) for shift in range(3)]
    schedule = planned(call("add", call("add", views[0], views[1]), views[2]))
    assert moved_nbytes(schedule) == 2 * 8 * (N - 2)


def test_what_follows_a_sum_by_element_runs_in_its_kernel() -> None:
    x = array(1000, 1000)
    mean = call("divide", build.reduce("add", x, (1,), FLOAT64), number(1000.0))
    assert len(kernels(planned(call("sqrt", mean)))) == 1


def test_a_result_that_the_sum_passes_over_is_stored_on_the_way() -> None:
    x = array(1000, 1000)
    squares = call("multiply", x, x)
    schedule = planned(squares, build.reduce("add", squares, (1,), FLOAT64))
    assert len(kernels(schedule)) == 1
    assert moved_nbytes(schedule) == 2 * 8 * N + 8 * 1000


def variance(x: Node) -> Node:
    """Of the last axis, from deviations."""
    length = number(float(x.shape[-1]))
    mean = call("divide", build.reduce("add", x, (len(x.shape) - 1,), FLOAT64), length)
    deviation = call("subtract", x, build.reshape(mean, (*x.shape[:-1], 1)))
    square = call("multiply", deviation, deviation)
    return call("divide", build.reduce("add", square, (len(x.shape) - 1,), FLOAT64), length)


def test_variances_of_few_long_rows_read_twice_without_stores() -> None:
    schedule = planned(variance(array(2, 500_000)))
    assert len(kernels(schedule)) == 4
    assert moved_nbytes(schedule) < 2.1 * 8 * N


def test_variances_of_many_rows_are_one_kernel_that_reads_once() -> None:
    schedule = planned(variance(array(1000, 1000)))
    (kernel,) = kernels(schedule)
    assert [len(phase.accumulators) for phase in kernel.phases] == [1, 1]
    assert moved_nbytes(schedule) == 8 * N + 8 * 1000


def test_softmax_is_one_kernel_whose_powers_lie_in_the_result() -> None:
    x = array(1000, 1000)
    schedule = planned(softmax(x))
    (kernel,) = kernels(schedule)
    assert len(kernel.phases) == 3
    assert not any(phase.results for phase in kernel.phases)
    assert len(schedule.slots) == 1


def test_softmax_along_columns_is_one_kernel_with_enough_strips() -> None:
    def columns(x: Node) -> Node:
        turned = build.view(x, x.shape[::-1], 0, (1, x.shape[1]))
        return softmax(turned)

    assert len(kernels(planned(columns(array(1000, 1000))))) == 1
    assert len(kernels(planned(columns(array(100_000, 10))))) > 3


def test_a_row_result_that_somebody_else_reads_is_stored_too() -> None:
    x = array(1000, 1000)
    total = build.reduce("add", x, (1,), FLOAT64)
    share = call("divide", x, build.reshape(total, (1000, 1)))
    turned = call("exp", build.view(total, (1000,), 999, (-1,)))
    first, second = kernels(planned(share, turned))
    assert len(first.phases) == 2
    assert first.results
    assert not second.accumulators


def test_row_results_that_an_update_leaves_alone_are_stored() -> None:
    def results() -> Node:
        x = array(1000, 10)
        totals = build.reduce("add", x, (1,), FLOAT64)
        centred = call("subtract", x, build.view(totals, (1000, 10), 0, (1, 0)))
        return build.reduce("maximum", centred, (1,), FLOAT64)

    schedule = planned(build.update(results(), array(10), 0, (1,)))
    rows, *_ = kernels(schedule)
    assert rows.then
    assert sum(len(phase.results) + len(phase.stores) for phase in rows.phases) == 1


def test_what_reads_another_row_is_no_phase() -> None:
    x = array(1000, 1000)
    total = build.reshape(build.reduce("add", x, (1,), FLOAT64), (1000, 1))
    flipped = build.view(total, (1000, 1), 999, (-1, 0))
    first, second = kernels(planned(call("divide", x, flipped)))
    assert not first.then
    assert not second.then


def test_phases_overwrite_a_dead_array_but_not_one_that_is_held() -> None:
    x = array(1000, 1000)
    assert len(planned(softmax(x), build.view(x, (3,), 0, (1,))).slots) > 1


def test_a_costly_value_for_a_later_kernel_is_stored_and_why() -> None:
    x = array(1000, 1000)
    powers = call("exp", call("sin", x))
    total = build.reduce("add", powers, (1,), FLOAT64)
    schedule = planned(call("divide", powers, build.reshape(total, (1000, 1))))
    assert any("later kernel" in cut.reason and "exp" in cut.what for cut in schedule.cuts)


def test_only_large_memory_bound_kernels_store_past_the_caches() -> None:
    def streams(size: int, *names: str) -> bool:
        value = array(size)
        for name in names:
            value = call(name, value)
        (kernel,) = kernels(planned(value))
        return kernel.streams

    large = TRAITS.stream_nbytes // 16
    assert streams(large, "negative", "sqrt")
    assert not streams(large - 1, "negative", "sqrt")
    assert not streams(large, "negative", "sin")


def test_rows_that_follow_their_own_sums_do_so_too() -> None:
    def streams(rows: int, columns: int) -> list[bool]:
        x = array(rows, columns)
        total = build.reshape(build.reduce("add", x, (1,), FLOAT64), (rows, 1))
        (kernel,) = kernels(planned(call("subtract", x, total)))
        return [phase.streams for phase in kernel.phases]

    large = TRAITS.stream_nbytes // 16
    assert streams(large // 1024 + 1, 1024) == [False, True]
    assert streams(large // 1025 + 1, 1025) == [False, True]
    assert streams(large // 1024 - 1, 1024) == [False, False]


def test_rolled_arrays_are_read_in_place() -> None:
    grid = array(1000, 1000)
    total = call("add", roll(grid, 1, 0), roll(roll(grid, 999, 0), 1, 1))
    schedule = planned(total)
    assert schedule.slots == [8 * N]
    assert sum(int(np.prod(kernel.extents)) for kernel in kernels(schedule)) == N


def test_a_scan_of_a_joined_array_still_works_through_memory() -> None:
    x = array(1000)
    schedule = planned(build.scan("add", build.concatenate([x, x], 0), 0, FLOAT64))
    assert 8 * 2000 in schedule.slots


def test_without_fusion_every_operation_is_a_kernel() -> None:
    x = array(N)
    value = call("add", call("multiply", call("sin", x), x), number(1.0))
    assert len(kernels(planned(value, fuse=False))) == 3


@pytest.mark.parametrize(
    ("is_loop", "most"), [(False, TRAITS.max_steps), (True, MAX_REPEATED)], ids=["chain", "loop"]
)
def test_a_very_long_chain_is_cut_into_kernels_of_bounded_size(is_loop: bool, most: int) -> None:
    value = array(1000)
    draws = random.Random(1)
    for _ in range(5000):
        name = "add" if is_loop else draws.choice(["add", "subtract", "multiply"])
        value = call(name, value, number(1.0))
    schedule = planned(value)
    sizes = [sum(isinstance(item, Step) for item in kernel.body) for kernel in kernels(schedule)]
    assert sum(sizes) == 5000
    assert max(sizes) <= most
    assert len(sizes) == -(-5000 // most)


def test_a_hundred_thousand_operations_plan_without_recursion() -> None:
    value = array(1000)
    for _ in range(100_000):
        value = call("negative", value)
    assert len(kernels(planned(value))) == -(-100_000 // MAX_REPEATED)


def test_kernels_stay_within_the_number_of_arguments() -> None:
    total = array(1000)
    for _ in range(200):
        total = call("add", total, array(1000))
    schedule = planned(total)
    for kernel in kernels(schedule):
        loads = {item.value for item in kernel.body if isinstance(item, Load)}
        assert len(loads) <= cost.MAX_ARGUMENTS + 2


def test_masks_and_selections_fuse() -> None:
    x = array(N)
    mask = call("less", x, number(0.5), dtype=BOOL)
    schedule = planned(build.elementwise(
        build_where(), (mask, x, call("negative", x)), x.shape
    ))
    assert len(kernels(schedule)) == 1


def build_where() -> object:
    from clfuse.ir import nodes

    return nodes.loop("where", (BOOL, FLOAT64, FLOAT64), FLOAT64)


def test_the_gpu_schedule_has_work_groups() -> None:
    traits = DeviceTraits(kind="gpu", schedule="gpu", vector_bytes=16, work_group=256,
                          work_items=65536)
    schedule = planned(build.reduce("add", array(N), (0,), FLOAT64), traits=traits)
    assert all(kernel.work_group == 256 for kernel in kernels(schedule))


def test_memory_bound_kernels_of_many_arrays_take_their_vectors() -> None:
    traits = DeviceTraits(vector_bytes=64, light_vector_bytes=32, work_items=64)
    x, y = array(N), array(N)
    cells = build.iota(N)
    widths = {
        "two arrays": (call("add", x, call("multiply", y, number(3.0))), 4),
        "one array": (call("multiply", x, number(3.0)), 8),
        "arithmetic": (call("add", call("sin", x), call("exp", y)), 8),
        "computed": (call("add", x, call("multiply", y, build.cast(cells, FLOAT64))), 8),
        "a fold": (build.reduce("add", call("multiply", x, y), (0,), FLOAT64), 8),
    }
    for what, (root, width) in widths.items():
        assert kernels(planned(root, traits=traits))[0].width == width, what
    without = DeviceTraits(vector_bytes=64, work_items=64)
    assert kernels(planned(widths["two arrays"][0], traits=without))[0].width == 8


def test_side_by_side_reductions_fit_into_local_memory() -> None:
    traits = DeviceTraits(
        kind="gpu", schedule="gpu", vector_bytes=16, work_group=256, work_items=65536,
        local_nbytes=32768,
    )
    sums = [build.reduce("add", array(1000, 1000), (1,), FLOAT64) for _ in range(40)]
    for kernel in kernels(planned(*sums, traits=traits)):
        assert kernel.work_group * 8 * len(kernel.accumulators) <= 32768
        assert len(kernel.results) <= cost.MAX_STORES


def repeat(node: Node, count: int) -> Node:
    (extent,) = node.shape
    spread = build.view(node, (extent, count), 0, (1, 0))
    return build.reshape(spread, (extent * count,))


def test_repeated_elements_are_read_in_place() -> None:
    schedule = planned(call("add", repeat(array(1000), 3), array(3000)))
    (kernel,) = kernels(schedule)
    assert sorted(kernel.extents) == [3, 1000]
    assert len(schedule.launches) == 1


def test_a_repeated_array_that_a_sum_reads_goes_through_memory() -> None:
    doubled = call("multiply", repeat(array(1000), 2), number(2.0))
    schedule = planned(doubled, build.reduce("add", doubled, (0,), FLOAT64))
    assert 8 * 2000 in schedule.slots


def folded(x: Node, axis: int, name: str = "add") -> list[Kernel]:
    return kernels(planned(build.reduce(name, x, (axis,), FLOAT64)))


def test_few_columns_are_read_once_as_whole_rows_in_pieces() -> None:
    first, second = folded(array(125_000, 64), 0)
    assert first.width * first.strips == 64
    assert first.chunks == 64
    assert first.extents == (64, 125_000)
    assert second.extents == (64, 64)
    schedule = planned(build.reduce("add", array(125_000, 64), (0,), FLOAT64))
    assert 0 < moved_nbytes(schedule) - 8 * 8 * N < 10 * 64 * 64 * 8


def test_narrow_rows_are_folded_side_by_side_with_the_rest() -> None:
    wide, rest, second = folded(array(1_000_001, 3), 0)
    assert wide.extents == (3 * 16, 62_500)
    assert rest.extents == (3, 1)
    assert second.extents == (3, wide.chunks * 16 + 1)
    wide, second = folded(array(10, 1000, 8), 1, "maximum")
    assert wide.extents == (10, 32, 250)
    # Positions are not side by side, and short columns are not worth a second launch.
    assert len(folded(array(500, 3), 0)) == 1


def test_what_one_work_item_folds_is_no_own_launch_on_a_cpu() -> None:
    for shape, axis, follows in (
        ((1 << 22,), 0, [False, True]),
        ((4, 1 << 20), 1, [False, True]),
        ((125_000, 64), 0, [False, True]),
        ((1_000_001, 3), 0, [False, True, True]),  # the last row, and the pieces
        ((200_000, 400), 0, [False, True]),
    ):
        assert [kernel.follows for kernel in folded(array(*shape), axis)] == follows, shape
    total = build.reduce("add", array(1 << 22), (0,), FLOAT64)
    gpu = DeviceTraits(kind="gpu", schedule="gpu", vector_bytes=16, work_group=256)
    for schedule in (planned(total, traits=gpu), planned(total, fuse=False)):
        assert not any(kernel.follows for kernel in kernels(schedule))
    # Results of rows are folded there, too; what reads nothing of them has a launch of its own.
    means = call("divide", build.reduce("add", array(4000, 4000), (1,), FLOAT64), number(4000.0))
    schedule = planned(build.reduce("maximum", means, (0,), FLOAT64))
    assert [kernel.follows for kernel in kernels(schedule)] == [False, True]
    many = build.reduce("add", array(200_000, 400), (1,), FLOAT64)  # others have begun by then
    schedule = planned(build.reduce("maximum", many, (0,), FLOAT64))
    assert [kernel.follows for kernel in kernels(schedule)] == [False, False, True]
    schedule = planned(means, build.reduce("add", array(3000), (0,), FLOAT64))
    assert [kernel.follows for kernel in kernels(schedule)] == [False, False]


def test_sums_beyond_the_caches_take_narrow_vectors_if_asked_to():
    traits = replace(TRAITS, light_vector_bytes=32)

    def width(count: int) -> int:
        arrays = [array(1 << 24) for _ in range(count)]
        product = arrays[0]
        for other in arrays[1:]:
            product = call("multiply", product, other)
        return kernels(planned(build.reduce("add", product, (0,), FLOAT64), traits=traits))[0].width

    assert [width(count) for count in (1, 2, 3)] == [8, 4, 4]
    small = build.reduce("add", call("multiply", array(1 << 20), array(1 << 20)), (0,), FLOAT64)
    assert kernels(planned(small, traits=traits))[0].width == 8
    matrix = array(1 << 14, 1 << 10)
    vector = build.view(array(1 << 10), (1 << 14, 1 << 10), 0, (0, 1))
    product = build.reduce("add", call("multiply", matrix, vector), (1,), FLOAT64)
    assert kernels(planned(product, traits=traits))[0].width == 8  # the vector stays in the caches


def test_many_columns_are_one_kernel_down_strips_of_cache_lines() -> None:
    (kernel,) = folded(array(100, 100_000), 0)
    assert kernel.strips >= 8
    assert kernel.strips <= kernel.held
    (kernel,) = folded(array(8, 1000, 1000), 1)
    assert kernel.chunks == 1


def test_row_and_column_products_are_read_in_their_directions() -> None:
    a, x, y = array(1000, 1000), array(1000), array(1000)
    turned = build.view(a, a.shape, 0, (1, 1000))
    products = [
        build.reduce("add", call("multiply", matrix, build.broadcast(vector, a.shape)),
                     (1,), FLOAT64)
        for matrix, vector in ((a, x), (turned, y), (a, y), (turned, x))
    ]
    schedule = planned(*products)
    assert [len(kernel.accumulators) for kernel in kernels(schedule)] == [2, 2]
    assert moved_nbytes(schedule) < 2.1 * 8 * N
    assert all(kernel.vector == dim for kernel, dim in zip(kernels(schedule), (1, 0), strict=True))


def _long_chain(x: Node, y: Node) -> Node:
    for step in range(40):
        x = call("multiply" if step % 2 else "add", x, y)
    return call("exp", call("exp", call("exp", x)))


def test_long_chains_of_operations_take_two_vectors_at_a_time() -> None:
    (long,) = kernels(planned(_long_chain(array(1000), array(1000))))
    assert (long.width, long.unroll) == (8, 2)
    (short,) = kernels(planned(call("exp", call("add", array(1000), number(1.0)))))
    assert short.unroll == 1
    apart = [call("exp", array(1000)) for _ in range(8)]
    for other in apart[1:]:
        apart[0] = call("add", apart[0], other)
    (side_by_side,) = kernels(planned(apart[0]))
    assert side_by_side.unroll == 1  # nothing waits for long
    (rows,) = kernels(planned(_long_chain(array(300, 31), array(31))))
    assert rows.unroll == 1  # most of a row would be left behind its pairs
    (rows,) = kernels(planned(_long_chain(array(300, 33), array(33))))
    assert rows.unroll == 2
    gpu = with_schedule(DeviceTraits(compute_units=2), "gpu")
    (many,) = kernels(planned(_long_chain(array(1000), array(1000)), traits=gpu))
    assert many.unroll == 1
