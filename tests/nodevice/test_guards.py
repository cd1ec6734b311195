"""Kernels over unequal ranges that read the same are one: how many there are, and their bytes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clfuse.graph import build
from clfuse.graph.ir import Node
from clfuse.traits import with_schedule

from .recording import TRAITS, array, call, kernels, moved_nbytes, planned

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


def an_update_of_itself() -> tuple[int, list[Node]]:
    a, b = array(ROWS, COLUMNS), array(ROWS, COLUMNS)
    return 4, [call("negative", a), written(b, call("add", inner(b), neighbours(a)))]


def of_its_own_size() -> tuple[int, list[Node]]:
    a = array(ROWS * COLUMNS)
    low, high = [build.view(a, (ROWS * COLUMNS - 1,), start, (1,)) for start in (0, 1)]
    return 3, [call("negative", a), call("subtract", high, low)]


@pytest.mark.parametrize("program", [
    both_read_one, one_reads_what_the_other_stores, an_update_of_itself, of_its_own_size,
])
def test_a_range_within_another_is_a_body_of_its_kernel(
    program: Callable[[], tuple[int, list[Node]]],
) -> None:
    arrays, nodes = program()
    schedule = planned(*nodes)
    (kernel,) = kernels(schedule)
    (rest,) = kernel.then
    assert len(kernel.stores) == 2
    assert len(rest.stores) == 1
    assert moved_nbytes(schedule) == pytest.approx(arrays * NBYTES, rel=0.02)


def nothing_in_common() -> list[Node]:
    one, other, third = [array(ROWS, COLUMNS) for _ in range(3)]
    return [call("negative", one), written(other, neighbours(third))]


def a_border() -> list[Node]:
    a, b = array(ROWS, COLUMNS), array(ROWS, COLUMNS)
    row = build.view(a, (1, COLUMNS), 0, (COLUMNS, 1))
    return [call("negative", a), build.update(b, call("negative", row), 0, (COLUMNS, 1))]


def short_rows() -> list[Node]:
    a, b = array(5000, 20), array(5000, 20)
    part = build.view(a, (4998, 18), 21, (20, 1))
    return [call("negative", a), build.update(b, call("add", part, part), 21, (20, 1))]


def out_of_step() -> list[Node]:
    a = array(ROWS, COLUMNS)
    turned = build.view(a, (COLUMNS - 210, ROWS), 0, (1, COLUMNS))
    return [call("negative", a), call("add", turned, turned)]


def each_writes_what_the_other_reads() -> list[Node]:
    a, b = array(ROWS, COLUMNS), array(ROWS, COLUMNS)
    into_a = build.update(a, call("negative", b), 0, (COLUMNS, 1))
    return [into_a, written(b, neighbours(into_a))]


@pytest.mark.parametrize(
    "program",
    [nothing_in_common, a_border, short_rows, out_of_step, each_writes_what_the_other_reads],
)
def test_where_that_saves_nothing_or_is_not_safe_they_are_two(
    program: Callable[[], list[Node]],
) -> None:
    schedule = planned(*program())
    assert not any(kernel.where for kernel in kernels(schedule))
    assert len(kernels(schedule)) >= 2


def test_work_items_of_a_gpu_ask_for_themselves() -> None:
    _, nodes = an_update_of_itself()
    (kernel,) = kernels(planned(*nodes, traits=with_schedule(TRAITS, "gpu")))
    assert kernel.where == (((1, ROWS - 1), (1, COLUMNS - 1)),)


def test_without_fusion_there_is_none() -> None:
    _, nodes = both_read_one()
    assert not any(kernel.where for kernel in kernels(planned(*nodes, fuse=False)))
