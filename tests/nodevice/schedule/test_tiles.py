"""Loads across the rows: which kernels go through their elements tile by tile."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from clfuse.codegen.kernels import render
from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.target.traits import with_schedule
from tests.support.recording import TRAITS, array, call, kernels, moved_nbytes, planned

ROWS, COLUMNS = 1500, 2900


def transposed(a: Node) -> Node:
    rows, columns = a.shape
    return build.view(a, (columns, rows), 0, (1, columns))


def copied(a: Node) -> Node:
    return call("negative", transposed(a))


def added(a: Node) -> Node:
    return call("add", transposed(a), array(*a.shape[::-1]))


@pytest.mark.parametrize("program", [copied, added])
def test_transposed_arrays_are_read_in_tiles_and_no_byte_more(program) -> None:
    schedule = planned(program(array(COLUMNS, ROWS)))
    (kernel,) = kernels(schedule)
    assert kernel.tile_rows > 0
    assert kernel.chunk_length <= 512 < kernel.extents[-1] == COLUMNS
    nbytes = 8 * ROWS * COLUMNS
    assert moved_nbytes(schedule) == (2 + (program is added)) * nbytes


def test_the_rows_of_a_tile_lie_where_the_load_runs_on() -> None:
    a = array(1200, 20, 600)
    swapped = build.view(a, (600, 20, 1200), 0, (1, 600, 12000))
    (kernel,) = kernels(planned(call("negative", swapped)))
    assert kernel.tile_rows > 0
    (load,) = kernel.body[:1]
    assert load.access.strides == (600, 1, 12000)


def test_whole_rows_where_tiles_gain_nothing() -> None:
    short = transposed(array(1000, 4000))
    small = transposed(array(1100, 100))
    beside = call("add", array(ROWS, COLUMNS), array(ROWS, COLUMNS))
    every_ninth = build.view(array(ROWS, 9 * COLUMNS), (ROWS, COLUMNS), 0, (9 * COLUMNS, 9))
    for node in (short, small, beside, every_ninth):
        (kernel,) = kernels(planned(call("negative", node)))
        assert kernel.tile_rows == 0
    (kernel,) = kernels(planned(copied(array(COLUMNS, ROWS)), traits=with_schedule(TRAITS, "gpu")))
    assert kernel.tile_rows == 0


def test_tiles_are_flatter_where_many_work_items_wait() -> None:
    few, many = (
        kernels(planned(copied(array(2000, 2000)), traits=replace(TRAITS, work_items=items)))[0]
        for items in (16, 400)
    )
    assert few.tile_rows > many.tile_rows
    assert -(-2000 // many.tile_rows) * many.chunks >= 400


def rendered(node: Node, **traits: int) -> str:
    (kernel,) = kernels(planned(node, traits=replace(TRAITS, **traits)))
    return render(kernel, TRAITS, lambda value: value).source


def test_loads_across_rows_are_column_vectors_that_are_turned() -> None:
    (kernel,) = kernels(planned(added(array(COLUMNS, ROWS))))
    assert (kernel.block, kernel.tile_rows) == (4, 32)
    assert [load.turned for load in kernel.body[:2]] == [True, False]
    source = rendered(added(array(COLUMNS, ROWS)))
    assert source.count("double4 t_") == 1
    assert source.count("t_0[") == 1 + 4 + 1  # declared, filled row by row, used
    (single,) = kernels(planned(copied(array(2904, ROWS, dtype=np.float32))))
    assert single.block == 8


def test_no_blocks_with_unaligned_rows_or_two_part_elements() -> None:
    assert "double4" not in rendered(added(array(COLUMNS + 1, ROWS)))
    for dtype, lanes in ((np.float64, 0), (np.float32, 8), (np.uint8, 16)):
        node = call("multiply", *[
            transposed(array(1101, 300, dtype=dtype)), array(300, 1101, dtype=dtype)])
        (kernel,) = kernels(planned(node, traits=replace(TRAITS, stream_nbytes=0)))
        assert kernel.block == lanes
    (kernel,) = kernels(planned(copied(array(COLUMNS, ROWS, dtype=np.complex128))))
    assert (kernel.block, kernel.tile_rows) == (0, 128)


def test_vectors_are_whole_where_the_device_would_split_them() -> None:
    (kernel,) = kernels(planned(call("add", array(10_000), array(10_000))))
    parts, whole = (
        render(kernel, replace(TRAITS, whole_vectors=whole), lambda value: value).source
        for whole in (False, True)
    )
    assert (parts.count("vload8"), parts.count("vstore8"), parts.count("anywhere")) == (2, 1, 0)
    assert (whole.count("vload"), whole.count("vstore")) == (0, 0)
    assert whole.count("typedef double8 double8_anywhere") == 1
    assert whole.count("*(__global const double8_anywhere *)") == 2


def test_large_row_and_column_readers_are_two_kernels() -> None:
    """From memory it comes twice all the same; in a cache once."""

    def programs(side: int) -> tuple[list[Node], list[Node]]:
        a, b = array(side, side), array(side, side)
        alone = [call("add", b, transposed(a)), call("negative", a)]
        return alone, [*alone, call("subtract", b, a)]

    for side, expected in ((2900, 2), (500, 1)):
        alone, together = programs(side)
        assert len(kernels(planned(*alone))) == expected
        assert len(kernels(planned(*together))) == 1  # the third reads what both read
    assert len(kernels(planned(*programs(2900)[0], traits=with_schedule(TRAITS, "gpu")))) == 1
