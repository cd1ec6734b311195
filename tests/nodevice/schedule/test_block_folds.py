"""Folds that share passes with those of others, as counts of kernels and bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from clfuse.functions.math.block_moments import Blocks
from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.schedule.records import Kernel
from clfuse.target.traits import with_schedule
from tests.support.recording import (
    FLOAT64,
    TRAITS,
    array,
    call,
    kernels,
    moved_nbytes,
    number,
    planned,
)

N = 1_000_000
WAITING = replace(TRAITS, stream_nbytes=0)


def squares(x: Node, *axes: int) -> Node:
    """Of the distances from the mean, added up as `functions.math.statistics` does."""
    return Blocks(x, axes, FLOAT64).squares()


def total(x: Node, *axes: int) -> Node:
    return Blocks(x, axes, FLOAT64).total()


def fold(name: str, x: Node, *axes: int) -> Node:
    return build.reduce(name, x, axes, FLOAT64)


def passes(found: list[Kernel]) -> list[Kernel]:
    """The kernels that go over all elements."""
    return [kernel for kernel in found if np.prod(kernel.extents) >= N // 2]


@pytest.mark.parametrize("schedule", ["cpu", "gpu"])
@pytest.mark.parametrize("length", [N, N + 7, 999_983])
def test_mean_deviation_minimum_and_maximum_read_once(
    length: int, schedule: str
) -> None:
    x = array(length)
    roots = [total(x, 0), squares(x, 0), fold("minimum", x, 0), fold("maximum", x, 0)]
    found = planned(*roots, traits=with_schedule(TRAITS, schedule))
    if schedule == "cpu":
        assert moved_nbytes(found) < 1.05 * 8 * length
    assert len(passes(kernels(found))) == 1


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_folds_of_derived_values_along_the_same_axes_read_once(axes: tuple[int, ...]) -> None:
    x = array(*{(0,): (20_000, 50), (1,): (2, 500_000), (0, 1): (1000, 1000)}[axes])
    high = call("maximum", call("multiply", x, x), number(0.5))
    roots = [squares(x, *axes), fold("add", call("absolute", x), *axes), fold("add", high, *axes)]
    found = planned(*roots)
    assert len(passes(kernels(found))) == 1
    assert moved_nbytes(found) < 1.1 * 8 * N


def test_what_repeats_along_an_axis_is_not_stored_for_blocks() -> None:
    x = array(20_000, 50)
    found = planned(squares(x, 0), fold("add", call("multiply", x, array(50)), 0))
    assert moved_nbytes(found) < 2.1 * 8 * N


def test_folds_along_other_axes_keep_their_own_kernel() -> None:
    x = array(20_000, 50)
    along_rows = planned(squares(x, 0), fold("minimum", x, 1))
    assert len(passes(kernels(along_rows))) == 2
    centred = call("subtract", x, build.reshape(total(x, 0), (1, 50)))
    late = planned(total(x, 0), fold("maximum", call("absolute", centred), 0))
    assert len(passes(kernels(late))) == 2


def test_half_and_complex_sums_are_not_rounded_in_blocks() -> None:
    for dtype in (np.dtype(np.float16), np.dtype(np.complex64)):
        x = array(N)
        y = call("multiply", x, x)
        narrow = build.reduce("add", build.cast(y, dtype), (0,), dtype)
        found = kernels(planned(total(x, 0), narrow))
        assert len(passes(found)) == 2


def test_a_fold_alone_and_folds_of_short_rows_have_no_blocks() -> None:
    x = array(20_000, 5, 10)
    short = fold("add", build.view(x, (1, 50_000, 20, 1), 0, (0, 20, 1, 1)), 2)
    assert len(passes(kernels(planned(short, fold("maximum", x, 0, 1, 2))))) == 2
    (whole, *_) = kernels(planned(fold("maximum", x, 0, 1, 2)))
    assert len(whole.accumulators) == 1


def centred(u: Node) -> Node:
    """``u - u.mean(0) - u.mean(1)[:, None]``"""
    rows, columns = u.shape
    over = call("divide", total(u, 0), build.constant(np.float64(rows)))
    along = call("divide", fold("add", u, 1), build.constant(np.float64(columns)))
    return call(
        "subtract",
        call("subtract", u, build.reshape(over, (1, columns))),
        build.reshape(along, (rows, 1)),
    )


def test_row_means_wait_for_column_means_to_share_a_pass() -> None:
    found = planned(centred(array(4000, 4000)))
    assert len(passes(kernels(found))) == 2
    assert moved_nbytes(found) < 3.1 * 8 * 4000**2


def test_they_do_not_wait_where_the_array_comes_from_a_cache() -> None:
    found = planned(centred(array(1000, 1000)))
    assert len(passes(kernels(found))) == 3


def test_they_do_not_wait_where_somebody_else_reads_them_before() -> None:
    u = array(300, 300)
    along = fold("add", u, 1)
    early = total(call("multiply", u, build.reshape(along, (300, 1))), 0)
    both = call("subtract", call("subtract", u, build.reshape(early, (1, 300))),
                build.reshape(along, (300, 1)))  # fmt: skip
    found = kernels(planned(both, traits=WAITING))  # which follows every byte
    assert [kernel.then != [] for kernel in found] == [False] * len(found)


def test_nor_where_what_they_read_is_written_to_meanwhile() -> None:
    u = array(300, 300)
    along = fold("add", u, 1)
    wide = build.reshape(along, (300, 1))
    changed = build.update(u, call("negative", wide), 0, (300, 1))
    over = build.reshape(fold("add", changed, 0), (1, 300))
    planned(call("subtract", call("subtract", u, over), wide), changed, traits=WAITING)
    planned(call("subtract", call("subtract", changed, over), wide), traits=WAITING)


def test_nor_where_a_launch_that_waits_itself_reads_them() -> None:
    u, w = array(300, 300), array(300, 300)
    down, along = fold("add", w, 0), fold("add", u, 1)
    late = fold("add", call("multiply", w, build.reshape(down, (1, 300))), 0)
    wide, row = build.reshape(along, (300, 1)), build.reshape(late, (1, 300))
    first = call("subtract", call("subtract", u, wide), build.reshape(down, (1, 300)))
    second = call("multiply", call("subtract", u, wide), row)
    other = fold("add", first, 1)
    for roots in ((first, second), (second, first), (second, other), (second, late)):
        planned(*roots, traits=WAITING)
