"""``a[i] += c`` in a loop is joined before it is planned, where order does not matter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from clfuse import config
from clfuse.ir import build, nodes
from clfuse.ir.nodes import Kind, Node
from clfuse.ir.snapshot import take
from clfuse.ir.updates import Modification, modify_view
from tests.support.recording import array, kernels, moved_nbytes, number, planned

ADD = nodes.loop("add", (np.dtype(float), np.dtype(float)), np.dtype(float))

Part = tuple[tuple[int, ...], int, tuple[int, ...]]


def rows(indices: Iterable[int], width: int = 10) -> list[Part]:
    return [((width,), index * width, (1,)) for index in indices]


def add_to(a: Node, parts: list[Part], operand: Any = None) -> Node:
    """``a[part] += operand(number of the part)``, a constant if there is none."""
    for count, part in enumerate(parts):
        shape, offset, strides = part
        value = number(1.0) if operand is None else operand(count)
        a = modify_view(a, ADD, value, shape, offset, strides)
    return a


def written(node: Node) -> np.ndarray:
    """How often each element is added to, by the nodes that are planned."""
    counts = np.zeros(node.shape).reshape(-1)
    while node.op.kind is Kind.UPDATE:
        old, value = node.inputs
        places = np.full(value.shape, node.param[0])
        for axis, (extent, stride) in enumerate(zip(value.shape, node.param[1], strict=True)):
            steps = np.arange(extent) * stride
            places += steps.reshape((-1,) + (1,) * (len(value.shape) - axis - 1))
        np.add.at(counts, places.reshape(-1), 1)
        node = old
    return counts.reshape(-1)


JOINED = {
    "rows": (rows(range(1, 40)), 1),
    "rows in reverse": (rows(range(39, 1, -1)), 1),
    "every third row": (rows(range(1, 40, 3)), 1),
    "columns": ([((40,), column, (10,)) for column in range(1, 10)], 1),
    "a part of columns, upwards": ([((20,), 390 + column, (-20,)) for column in range(9)], 1),
    "elements": ([((), 10 * i + j, ()) for i in range(1, 9) for j in range(0, 10, 2)], 1),
    "rows of two places": (rows([*range(2, 12), *range(20, 31)]), 2),
}


@pytest.mark.parametrize("name", JOINED)
def test_disjoint_parts_on_a_grid_are_one_write(name: str) -> None:
    parts, writes = JOINED[name]
    a = array(40, 10)
    expected = written(add_to(a, parts[:1]))  # one statement is never joined
    for part in parts[1:]:
        expected = expected + written(add_to(a, [part]))
    joined = add_to(a, parts)
    assert expected.max() == 1
    assert (written(joined) == expected).all()
    assert len(take([joined]).nodes) == 2 + 3 * writes
    schedule = planned(add_to(array(40, 10), parts))
    assert len(schedule.launches) == len(kernels(schedule)) == writes
    assert moved_nbytes(schedule) == 2 * 8 * expected.sum()


def test_all_rows_are_one_operation_in_place() -> None:
    schedule = planned(add_to(array(40, 10), rows(range(40))))
    assert len(schedule.launches) == 1
    assert schedule.slots == [40 * 10 * 8]
    assert len(schedule.reuses) == 1
    assert moved_nbytes(schedule) == 2 * 8 * 400


def test_each_part_takes_its_own_view_of_an_array() -> None:
    c = array(20, 30)

    def row_of_c(count: int) -> Node:
        return build.view(c, (10,), 30 * (19 - count // 2) + 4, (2,))

    a = add_to(array(40, 10), rows(range(0, 40, 2)), lambda count: row_of_c(2 * count))
    snapshot = take([a])
    assert len(snapshot.nodes) == 6  # two arrays, two views, the sum, the write
    views = [node for node in snapshot.nodes if node.op.kind is Kind.VIEW]
    assert {(view.shape, view.param) for view in views} == {
        ((20, 10), (0, (20, 1))),
        ((20, 10), (574, (-30, 2))),
    }


APART = {
    "parts that overlap": [((2, 10), 10 * index, (10, 1)) for index in range(30)],
    "one part again and again": rows([7] * 30),
    "parts far apart": rows([2, 3, 500, 7000, 1100, 13, 17, 1900, 23, 2900, 3100, 3700]),
    "few parts": rows(range(7)),
}


@pytest.mark.parametrize("name", APART)
def test_other_parts_stay_statements(name: str) -> None:
    parts = APART[name]
    a = add_to(array(8000, 10), parts)
    assert len(take([a]).nodes) == 2 + 3 * len(parts)


def in_order_of_time(node: Node) -> list[Node]:
    """The writes that a chain of statements has become."""
    chain = []
    while node.op.kind is Kind.UPDATE:
        chain.append(node)
        node = node.inputs[0]
    return chain[::-1]


def test_scattered_parts_are_one_write_over_all_between() -> None:
    indices = [31, 2, 3, 29, 5, 11, 7, 13, 37, 17, 19, 23]
    (write,) = in_order_of_time(add_to(array(40, 10), rows(indices)))
    value = write.inputs[1]
    assert value.op.name == "where"
    assert (value.shape, write.param) == ((36, 10), (20, (10, 1)))
    mask = np.frombuffer(value.inputs[0].param, np.bool_)
    assert np.flatnonzero(mask).tolist() == sorted(index - 2 for index in indices)
    schedule = planned(add_to(array(40, 10), rows(indices)))
    assert len(schedule.launches) == 2  # the table, and one kernel
    assert moved_nbytes(schedule) == 2 * 8 * 360 + 36
    assert len(schedule.slots) == 2  # and not of another array


def test_parts_that_come_again_are_written_to_by_as_many_writes() -> None:
    times = [4, 9, 4, 25, 4, 33, *range(0, 40, 2), 9, *range(40)]
    writes = in_order_of_time(add_to(array(40, 10), rows(times)))
    # All rows are one operation on the whole array; then 23 of them, 4 and 9, 4, and 4 once more.
    assert [write.inputs[1].shape for write in writes] == [(39, 10), *[(10,)] * 4]
    assert [write.param[0] // 10 for write in writes] == [0, 4, 9, 4, 4]
    assert np.frombuffer(writes[0].inputs[1].inputs[0].param, np.bool_).sum() == 23
    assert writes[0].inputs[0].op.name == "add"


def test_each_part_takes_its_own_view_in_any_order() -> None:
    c = array(80, 10)
    places = 1 + np.random.default_rng(1).permutation(38)[:25]
    others = np.random.default_rng(2).permutation(80)[:25]

    def row_of_c(count: int) -> Node:
        return build.view(c, (10,), 10 * int(others[count]), (1,))

    (write,) = in_order_of_time(add_to(array(40, 10), rows(places.tolist()), row_of_c))
    mask, after, _ = write.inputs[1].inputs
    gathered = after.inputs[1]
    assert gathered.op.kind is Kind.GATHER
    start_of = np.frombuffer(gathered.inputs[1].param, np.int64)
    first = write.param[0] // 10
    chosen = np.flatnonzero(np.frombuffer(mask.param, np.bool_))
    assert dict(zip((chosen + first).tolist(), (start_of[chosen] // 10).tolist(), strict=True)) == (
        dict(zip(places.tolist(), others.tolist(), strict=True)))


def test_a_state_that_is_held_stays() -> None:
    a = array(40, 10)
    middle = add_to(a, rows(range(20)))
    last = add_to(middle, rows(range(20, 40)))
    assert type(last) is type(middle) is Modification
    assert last.inputs[0] is middle
    assert middle.inputs[0] is a


def test_what_depends_on_the_one_before_is_not_joined() -> None:
    a = array(40, 10)
    for index in range(1, 40):
        row = build.view(a, (10,), 10 * index - 10, (1,))
        a = modify_view(a, ADD, row, (10,), 10 * index, (1,))
    assert len(take([a]).nodes) == 1 + 4 * 39


def test_nothing_is_joined_without_fusion() -> None:
    with config.override(fusion="off"):
        assert len(take([add_to(array(40, 10), rows(range(40)))]).nodes) == 2 + 3 * 40
