"""Kernels over unequal ranges that read the same are one: how many there are, and their bytes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.target.traits import with_schedule
from tests.support.recording import FLOAT64, TRAITS, array, call, kernels, moved_nbytes, planned

ROWS, COLUMNS = 300, 500
NBYTES = 8 * ROWS * COLUMNS


def inner(node: Node, down: int = 0, along: int = 0) -> Node:
    """All but the border, so many elements further."""
    start = (1 + down) * COLUMNS + 1 + along
    return build.view(node, (ROWS - 2, COLUMNS - 2), start, (COLUMNS, 1))


def written(old: Node, value: Node) -> Node:
    """`old` with `value` inside of its border."""
    return build.update(old, value, COLUMNS + 1, (COLUMNS, 1))


def neighbours(a: Node) -> Node:
    across = call("add", inner(a, 0, -1), inner(a, 0, 1))
    return call("add", call("add", inner(a, -1), inner(a, 1)), across)


def both_read_one() -> tuple[int, list[Node]]:
    a, b = array(ROWS, COLUMNS), array(ROWS, COLUMNS)
    return 3, [call("negative", a), written(b, neighbours(a))]


def one_reads_what_the_other_stores() -> tuple[int, list[Node]]:
    a, b = array(ROWS, COLUMNS), array(ROWS, COLUMNS)
    twice = call("add", a, a)
    return 3, [twice, written(b, call("negative", inner(twice)))]


def the_narrow_one_first() -> tuple[int, list[Node]]:
    a, b = array(ROWS, COLUMNS), array(ROWS, COLUMNS)
    inside = written(b, call("negative", inner(a)))
    return 3, [inside, call("add", inside, inside)]


def differences_along_and_down() -> tuple[int, list[Node]]:
    a = array(ROWS, COLUMNS)
    high = build.view(a, (ROWS, COLUMNS - 1), 1, (COLUMNS, 1))
    low = build.view(a, (ROWS, COLUMNS - 1), 0, (COLUMNS, 1))
    along = build.update(array(ROWS, COLUMNS), call("subtract", high, low), 0, (COLUMNS, 1))
    high = build.view(a, (ROWS - 1, COLUMNS), COLUMNS, (COLUMNS, 1))
    low = build.view(a, (ROWS - 1, COLUMNS), 0, (COLUMNS, 1))
    down = build.update(array(ROWS, COLUMNS), call("subtract", high, low), 0, (COLUMNS, 1))
    return 3, [along, down]


def an_update_of_itself() -> tuple[int, list[Node]]:
    a, b = array(ROWS, COLUMNS), array(ROWS, COLUMNS)
    return 4, [call("negative", a), written(b, call("add", inner(b), neighbours(a)))]


def of_its_own_size() -> tuple[int, list[Node]]:
    a = array(ROWS * COLUMNS)
    low, high = [build.view(a, (ROWS * COLUMNS - 1,), start, (1,)) for start in (0, 1)]
    return 3, [call("negative", a), call("subtract", high, low)]


@pytest.mark.parametrize("program", [
    both_read_one, one_reads_what_the_other_stores, the_narrow_one_first, an_update_of_itself,
    of_its_own_size, differences_along_and_down,
])
def test_overlapping_ranges_are_one_kernel_with_a_body_a_part(
    program: Callable[[], tuple[int, list[Node]]],
) -> None:
    arrays, nodes = program()
    schedule = planned(*nodes)
    (kernel,) = kernels(schedule)
    assert len(kernel.stores) == 2
    assert all(len(rest.stores) < 2 for rest in kernel.then)
    assert moved_nbytes(schedule) == pytest.approx(arrays * NBYTES, rel=0.02)


def three_ranges() -> list[Node]:
    a, b, c = [array(ROWS, COLUMNS) for _ in range(3)]
    second = written(b, neighbours(a))
    part = build.view(second, (ROWS - 4, COLUMNS - 4), 2 * COLUMNS + 2, (COLUMNS, 1))
    third = build.update(c, call("absolute", part), 2 * COLUMNS + 2, (COLUMNS, 1))
    return [call("negative", a), second, third]


def test_three_ranges_are_one_kernel() -> None:
    schedule = planned(*three_ranges())
    (kernel,) = kernels(schedule)
    assert sorted(len(body.stores) for body in kernel.phases) == [1, 2, 3]
    assert moved_nbytes(schedule) == pytest.approx(4 * NBYTES, rel=0.03)


def total(node: Node) -> Node:
    return build.reduce("add", node, (0, 1), FLOAT64)


def norm_of_a_part() -> list[Node]:
    a, b = array(ROWS, COLUMNS), array(ROWS, COLUMNS)
    inside = written(b, neighbours(a))
    return [inside, total(call("multiply", inside, inside))]


def test_what_is_folded_is_written_by_the_kernel_that_folds() -> None:
    schedule = planned(*norm_of_a_part())
    first, *_ = kernels(schedule)
    assert (first.kind.name, len(first.where)) == ("reduce", 1)
    assert [bool(body.accumulators) for body in first.phases] == [True, True]
    assert [len(body.stores) for body in first.phases] == [1, 0]
    assert moved_nbytes(schedule) == pytest.approx(2 * NBYTES, rel=0.03)


def test_what_a_row_fold_reads_is_counted_once_a_row() -> None:
    a, b = array(ROWS, COLUMNS), array(ROWS, COLUMNS)
    c = call("negative", build.view(a, (ROWS, COLUMNS - 2), 1, (COLUMNS, 1)))
    rows = build.reduce("add", call("multiply", a, b), (1,), FLOAT64)
    schedule = planned(c, call("add", rows, array(ROWS)))
    (kernel,) = kernels(schedule)
    assert kernel.epilogue
    assert moved_nbytes(schedule) == pytest.approx(3 * NBYTES, rel=0.03)


def norm_of_what_nobody_keeps() -> Node:
    return norm_of_a_part()[1]


def test_what_only_the_kernel_itself_reads_is_not_stored() -> None:
    schedule = planned(norm_of_what_nobody_keeps())
    first, *_ = kernels(schedule)
    assert not any(body.stores for body in first.phases)
    assert moved_nbytes(schedule) == pytest.approx(NBYTES, rel=0.03)
    assert not any("written where the array lies" in cut.reason for cut in schedule.cuts)


def test_rows_of_what_is_written_are_folded_on_the_way() -> None:
    a, b = array(ROWS, COLUMNS), array(ROWS, COLUMNS)
    rows = [build.reduce("add", call("multiply", a, b), (1,), FLOAT64)]
    c = call("negative", build.view(a, (ROWS, COLUMNS - 2), 1, (COLUMNS, 1)))
    schedule = planned(c, *rows)
    (kernel,) = kernels(schedule)
    assert (kernel.kind.name, kernel.extents) == ("reduce", (ROWS, COLUMNS))
    assert moved_nbytes(schedule) == pytest.approx(3 * NBYTES, rel=0.03)


def test_a_part_of_what_a_kernel_writes_is_folded_by_it() -> None:
    a, b = array(ROWS, COLUMNS), array(ROWS, COLUMNS)
    product = call("multiply", a, b)
    schedule = planned(product, total(inner(product)))
    first, *_ = kernels(schedule)
    assert [bool(body.accumulators) for body in first.phases] == [True, False]
    assert [len(body.stores) for body in first.phases] == [1, 1]
    assert moved_nbytes(schedule) == pytest.approx(3 * NBYTES, rel=0.03)


def test_two_folds_over_unequal_ranges_read_shared_data_once() -> None:
    a, b = array(ROWS, COLUMNS), array(ROWS, COLUMNS)
    schedule = planned(total(call("multiply", a, b)), total(inner(a)))
    first, *_ = kernels(schedule)
    assert sorted(len(body.accumulators) for body in first.phases) == [1, 2]
    assert moved_nbytes(schedule) == pytest.approx(2 * NBYTES, rel=0.03)


@pytest.mark.parametrize("axis", [0, 1])
def test_results_of_some_rows_or_columns_are_folded_with_all(axis: int) -> None:
    a = array(ROWS, COLUMNS)
    twice = call("add", a, a)
    schedule = planned(twice, build.reduce("add", inner(twice), (axis,), FLOAT64))
    first, second = kernels(schedule)
    assert first.where
    assert second.extents[0] == (ROWS if axis else COLUMNS) - 2
    assert moved_nbytes(schedule) == pytest.approx(2 * NBYTES, rel=0.03)


@pytest.mark.parametrize("name", ["add", "multiply"])
def test_scans_down_columns_join_what_writes_a_part(name: str) -> None:
    a, b = array(ROWS, COLUMNS), array(ROWS, COLUMNS)
    inside = written(b, neighbours(a))
    schedule = planned(inside, build.scan(name, inside, 0, FLOAT64))
    (kernel,) = [each for each in kernels(schedule) if each.kind.name == "scan"]
    assert kernel.where
    assert [len(body.stores) for body in kernel.phases] == [2, 1]
    assert moved_nbytes(schedule) == pytest.approx(3 * NBYTES, rel=0.03)


@pytest.mark.parametrize("rows", [1, 3])
def test_a_scan_in_a_part_of_a_joined_array_is_stored_there(rows: int) -> None:
    """As the sums of what comes before each element are."""
    x, start = array(rows, 100_000), build.full(np.float64(0), (rows, 1))
    schedule = planned(build.concatenate([start, build.scan("add", x, 1, FLOAT64)], 1))
    *pieces, kernel = kernels(schedule)
    assert (kernel.kind.name, len(kernel.then)) == ("scan", 1)
    assert moved_nbytes(schedule) == pytest.approx(
        8 * rows * 100_000 * (2 + len(pieces)), rel=0.03
    )


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("read", ["scanned", "folded"])
@pytest.mark.parametrize("is_kept", [False, True])
def test_an_array_that_is_written_in_parts_is_not_read_again(
    axis: int, read: str, is_kept: bool
) -> None:
    a, b = [array(ROWS, COLUMNS) for _ in range(2)]
    both = build.concatenate([call("negative", a), call("add", b, b)], axis)
    made = build.scan("add", both, 0, FLOAT64) if read == "scanned" else total(both)
    roots = [both, made] if is_kept else [made]
    del a, b, both, made  # nobody else holds them
    schedule = planned(*roots)
    (kernel,) = [each for each in kernels(schedule) if not each.follows]
    assert sorted(len(body.stores) for body in kernel.phases) == 2 * [is_kept + (read == "scanned")]
    expected = 2 * (1 + is_kept + (read == "scanned")) * NBYTES
    assert moved_nbytes(schedule) == pytest.approx(expected, rel=0.03)


def much_that_its_parts_share() -> list[Node]:
    a, b = [array(ROWS, COLUMNS) for _ in range(2)]
    both = call("sin", call("multiply", a, b))
    joined = build.concatenate([both, call("multiply", both, b)], 0)
    return [joined, total(joined)]


def nothing_in_common() -> list[Node]:
    one, other, third = [array(ROWS, COLUMNS) for _ in range(3)]
    return [call("negative", one), written(other, neighbours(third))]


def a_border() -> list[Node]:
    a, b = array(ROWS, COLUMNS), array(ROWS, COLUMNS)
    row = build.view(a, (1, COLUMNS), 0, (COLUMNS, 1))
    return [call("negative", a), build.update(b, call("negative", row), 0, (COLUMNS, 1))]


def half_of_it() -> list[Node]:
    a, b = array(ROWS, COLUMNS), array(ROWS, COLUMNS)
    rows = build.view(a, (120, COLUMNS), 0, (COLUMNS, 1))
    return [call("negative", a), build.update(b, call("add", rows, rows), 0, (COLUMNS, 1))]


def short_rows() -> list[Node]:
    a, b = array(5000, 20), array(5000, 20)
    part = build.view(a, (4998, 18), 21, (20, 1))
    return [call("negative", a), build.update(b, call("add", part, part), 21, (20, 1))]


def out_of_step() -> list[Node]:
    a = array(ROWS, COLUMNS)
    turned = build.view(a, (COLUMNS - 210, ROWS), 0, (1, COLUMNS))
    return [call("negative", a), call("add", turned, turned)]


def one_writes_what_the_other_reads_elsewhere() -> list[Node]:
    a, b = array(ROWS, COLUMNS), array(ROWS, COLUMNS)
    above = build.view(b, (ROWS - 1, COLUMNS), 0, (COLUMNS, 1))
    below = build.view(b, (ROWS - 1, COLUMNS), COLUMNS, (COLUMNS, 1))
    into_a = build.update(a, call("add", above, below), COLUMNS, (COLUMNS, 1))
    return [into_a, written(b, call("negative", inner(b)))]


def the_fold_of_all_first() -> list[Node]:
    a, b = array(ROWS, COLUMNS), array(ROWS, COLUMNS)
    everywhere = build.view(total(a), (ROWS - 2, COLUMNS - 2), 0, (0, 0))
    return [written(b, call("multiply", inner(a), everywhere))]


def results_for_different_rows() -> list[Node]:
    a = array(ROWS, COLUMNS)
    lower = build.view(a, (ROWS - 1, COLUMNS), COLUMNS, (COLUMNS, 1))
    return [build.reduce("add", part, (1,), FLOAT64) for part in (a, lower)]


def folds_of_different_dimensions() -> list[Node]:
    a = array(ROWS, COLUMNS)
    return [build.reduce("add", a, (0,), FLOAT64), build.reduce("add", inner(a), (1,), FLOAT64)]


def columns_of_what_is_stored_turned() -> list[Node]:
    a = array(ROWS, COLUMNS)
    turned = build.view(a, (COLUMNS, ROWS - 2), COLUMNS, (1, COLUMNS))
    return [call("negative", turned), build.reduce("add", a, (0,), FLOAT64)]


def a_fold_and_a_scan() -> list[Node]:
    a = array(ROWS, COLUMNS)
    return [build.reduce("add", a, (1,), FLOAT64), build.scan("add", inner(a), 1, FLOAT64)]


def products_along_rows() -> list[Node]:
    a, b = array(ROWS, COLUMNS), array(ROWS, COLUMNS)
    return [build.scan("multiply", written(b, neighbours(a)), 1, FLOAT64)]


def rows_that_go_on_in_the_next_ones() -> list[Node]:
    a = array(ROWS, COLUMNS)
    scan = build.scan("add", a, 1, FLOAT64)
    later = build.view(scan, (ROWS - 1, COLUMNS), 9, (COLUMNS, 1))
    return [scan, build.scan("add", later, 1, FLOAT64)]


@pytest.mark.parametrize(
    "program",
    [
        nothing_in_common, a_border, half_of_it, short_rows, out_of_step,
        one_writes_what_the_other_reads_elsewhere, the_fold_of_all_first,
        results_for_different_rows, folds_of_different_dimensions, a_fold_and_a_scan,
        much_that_its_parts_share,
        columns_of_what_is_stored_turned, products_along_rows, rows_that_go_on_in_the_next_ones,
    ],
)
def test_where_that_saves_nothing_or_is_not_safe_they_are_two(
    program: Callable[[], list[Node]],
) -> None:
    schedule = planned(*program())
    assert not any(kernel.where for kernel in kernels(schedule))
    assert len(kernels(schedule)) >= 2


@pytest.mark.parametrize(("program", "reason"), [
    (half_of_it, "40 % of what they range over is of both"),
    (short_rows, "18 elements of a row are of both"),
    (one_writes_what_the_other_reads_elsewhere, "it writes what that one reads"),
    (out_of_step, "in different orders"),
    (results_for_different_rows, "they have results for different rows"),
    (folds_of_different_dimensions, "they fold different dimensions"),
    (a_fold_and_a_scan, "one of them folds, the other one scans"),
    (much_that_its_parts_share, "of which it computes much only once"),
    (rows_that_go_on_in_the_next_ones, "run into the next rows"),
    (columns_of_what_is_stored_turned, "another array in the order of its columns"),
])
def test_the_plan_says_why_two_kernels_of_one_input_are_two(
    program: Callable[[], list[Node]], reason: str
) -> None:
    cuts = planned(*program()).cuts
    assert any(reason in cut.reason and "two kernels, over" in cut.reason for cut in cuts), cuts
    assert not planned(*both_read_one()[1]).cuts


def test_of_what_has_to_wait_for_a_fold_nothing_more_is_said() -> None:
    reasons = [cut.reason for cut in planned(*the_fold_of_all_first()).cuts]
    assert "a reduction's result is read in another order" in reasons
    assert not any("two kernels" in reason for reason in reasons)


def test_work_items_of_a_gpu_ask_for_themselves() -> None:
    _, nodes = an_update_of_itself()
    (kernel,) = kernels(planned(*nodes, traits=with_schedule(TRAITS, "gpu")))
    assert kernel.where == (((1, ROWS - 1), (1, COLUMNS - 1)),)


def test_without_fusion_there_is_none() -> None:
    _, nodes = both_read_one()
    assert not any(kernel.where for kernel in kernels(planned(*nodes, fuse=False)))
