"""Parts of what a node is, made of parts of its operands: compared with slices of the whole, which
NumPy calculates node by node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clfuse.engine.tile_nodes import Slices, is_given
from clfuse.interpreter import interpret
from clfuse.ir import build
from clfuse.ir.layout import contiguous_strides
from clfuse.ir.nodes import Kind, Node
from clfuse.ir.snapshot import take
from clfuse.runtime.memory.buffers import HostBuffer

FLOAT, INT = np.dtype(np.float64), np.dtype(np.int64)

ROWS, COLUMNS = 12, 5


def leaf(array: Any) -> Node:
    return build.leaf(HostBuffer(None, array), array.shape, array.dtype)  # type: ignore[arg-type]


def value(node: Node) -> Any:
    """What a node is, by NumPy, as the graph says it."""
    if node.buffer is None:
        copied = Node(node.op, node.inputs, node.shape, node.dtype, node.param)
        snapshot = take([copied])
        interpret.require(snapshot, None)  # type: ignore[arg-type]
        interpret.run(snapshot, None)  # type: ignore[arg-type]
        node = copied
    return node.buffer.read(node.dtype, node.shape)


def cut(node: Node, axis: int, start: int, stop: int) -> Node:
    array = value(node)[(slice(None),) * axis + (slice(start, stop),)]
    return leaf(np.array(array, order="C"))


TABLE = np.random.default_rng(0).normal(size=(ROWS, COLUMNS))
ROW = np.arange(COLUMNS) * 0.5


def add(one: Node, other: Node) -> Node:
    shape = np.broadcast_shapes(one.shape, other.shape)
    return build.apply("add", (one, other), FLOAT, shape)


def transposed(node: Node) -> Node:
    return build.view(node, node.shape[::-1], 0, (1, node.shape[1]))


def graphs() -> dict[str, Node]:
    """One graph of each kind, with several axes where it can be cut."""
    x, row = leaf(TABLE), leaf(ROW)
    doubled = add(x, x)
    numbers = build.cast(build.iota(ROWS * COLUMNS), FLOAT)
    inner = build.view(doubled, (10, 3), COLUMNS + 1, (COLUMNS, 1))
    position = build.view(build.iota(ROWS), (ROWS, 1), 0, (1, 0))
    return {
        "map": doubled,
        "broadcast": add(doubled, row),
        "of a column": add(x, build.view(row, (1, COLUMNS), 0, (0, 1))),
        "iota": numbers,
        "reshaped": build.reshape(numbers, (ROWS, COLUMNS)),
        "flat": build.reshape(doubled, (ROWS * COLUMNS,)),
        "merged axes": build.view(doubled, (20, 3), 0, (3, 1)),
        "inner": inner,
        "transposed": add(transposed(doubled), build.constant(np.float64(1))),
        "reversed": build.view(doubled, (ROWS, COLUMNS), 59, (-COLUMNS, -1)),
        "windows": build.view(numbers, (50, 4), 3, (1, 1)),
        "diagonal": build.view(doubled, (COLUMNS,), 0, (COLUMNS + 1,)),
        "filled": build.full(np.float64(3), (ROWS, COLUMNS)),
        "stretched": build.view(row, (ROWS, COLUMNS), 0, (0, 1)),
        "stencil": add(
            build.view(doubled, (10, COLUMNS), 0, (COLUMNS, 1)),
            build.view(doubled, (10, COLUMNS), 2 * COLUMNS, (COLUMNS, 1)),
        ),
        "inner written": build.update(doubled, inner, COLUMNS + 1, (COLUMNS, 1)),
        "every third row": build.update(
            doubled, build.full(np.float64(7), (4, COLUMNS)), 0, (3 * COLUMNS, 1)
        ),
        "rows from the end": build.update(
            x, add(inner, inner), 10 * COLUMNS + 1, (-COLUMNS, 1)
        ),
        "one row": build.update(doubled, row, 4 * COLUMNS, (1,)),
        "a column": build.update(doubled, build.full(np.float64(1), (ROWS,)), 2, (COLUMNS,)),
        "diagonal written": build.update(doubled, row, 0, (COLUMNS + 1,)),
        "joined rows": build.concatenate([x, doubled, x], 0),
        "joined columns": build.concatenate([x, doubled], 1),
        "rows folded": build.reduce("add", doubled, (1,), FLOAT),
        "columns folded": build.reduce("maximum", doubled, (0,), FLOAT),
        "positions": build.arg_reduce("argmax", doubled, (1,)),
        "scanned rows": build.scan("add", doubled, 1, FLOAT),
        "scanned columns": build.scan("add", doubled, 0, FLOAT),
        "chosen": build.gather(x, position, (ROWS, 3), 0, (1, 2)),
        "product": build.library("matmul", [x, transposed(x)], (ROWS, ROWS), FLOAT),
    }


NAMES = list(graphs())


@pytest.mark.parametrize("name", NAMES)
def test_a_part_is_the_slice_of_the_whole(name: str) -> None:
    node = graphs()[name]
    whole = value(node)
    for axis, extent in enumerate(node.shape):
        for start in range(extent):
            for stop in {start + 1, min(start + 3, extent), extent}:
                slices = Slices(cut)
                part = slices.part(node, axis, start, stop)
                expected = whole[(slice(None),) * axis + (slice(start, stop),)]
                assert part.shape == expected.shape
                np.testing.assert_allclose(value(part), expected, rtol=1e-13)


NOT_CUT = {"scanned columns": [0], "scanned rows": [1]}
"""Along which axes something has to be in memory before."""


@pytest.mark.parametrize("name", NAMES)
def test_what_has_to_be_in_memory_before_is_said(name: str) -> None:
    node = graphs()[name]
    for axis in range(len(node.shape)):
        slices = Slices(cut)
        slices.part(node, axis, 0, 1)
        assert bool(slices.later) == (axis in NOT_CUT.get(name, []))
        assert all(each in slices.later or not is_given(each) for each in slices.missing())


def test_parts_need_no_more_rows_than_they_read() -> None:
    needed: list[tuple[int, int, int]] = []

    def noted(node: Node, axis: int, start: int, stop: int) -> Node:
        needed.append((axis, start, stop))
        return cut(node, axis, start, stop)

    def needs(node: Node, axis: int, start: int, stop: int) -> list[tuple[int, int, int]]:
        needed.clear()
        Slices(noted).part(node, axis, start, stop)
        return sorted(set(needed))

    made = graphs()
    assert needs(made["map"], 0, 2, 4) == [(0, 2, 4)]
    assert needs(made["map"], 1, 2, 4) == [(1, 2, 4)]
    assert needs(made["transposed"], 0, 2, 4) == [(1, 2, 4)]
    assert needs(made["reversed"], 0, 0, 2) == [(0, 10, 12)]
    assert needs(made["stencil"], 0, 3, 5) == [(0, 3, 5), (0, 5, 7)]
    assert needs(made["flat"], 0, 7, 13) == [(0, 1, 3)]
    assert needs(made["rows folded"], 0, 7, 8) == [(0, 7, 8)]
    assert needs(made["joined rows"], 0, 10, 14) == [(0, 0, 2), (0, 10, 12)]


def test_an_element_of_a_computed_array_needs_its_row_alone() -> None:
    doubled = graphs()["map"]
    element = build.view(doubled, (), 3 * COLUMNS + 2, ())
    needed = []

    def noted(node: Node, axis: int, start: int, stop: int) -> Node:
        needed.append((axis, start, stop))
        return cut(node, axis, start, stop)

    made = Slices(noted).narrowed(element)
    assert needed in ([(0, 3, 4)], [(1, 2, 3)])
    assert value(made) == 2 * TABLE[3, 2]


def test_a_part_of_a_deep_graph_needs_no_recursion() -> None:
    node = leaf(TABLE)
    for _ in range(20_000):
        node = add(node, build.constant(np.float64(1)))
    part = Slices(cut).part(node, 0, 1, 2)
    depth = 0
    while part.buffer is None:
        assert part.op.kind is Kind.MAP
        assert part.shape == (1, COLUMNS)
        part, depth = part.inputs[0], depth + 1
    assert depth == 20_000


def test_parts_do_not_change_the_graph() -> None:
    node = graphs()["inner written"]
    before = node.inputs, node.param, node.shape, value(node)
    Slices(cut).part(node, 0, 3, 6)
    assert (node.inputs, node.param, node.shape) == before[:3]
    assert node.buffer is None
    assert contiguous_strides(node.shape) == (COLUMNS, 1)
    np.testing.assert_array_equal(value(node), before[3])
