"""Joined arrays (rolled, padded, concatenated, stacked, repeated, windowed) are read in place: one
kernel, which reads every array once and writes its result once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse.arrays.handle import fresh, node_of
from clfuse.codegen.kernels import render
from clfuse.ir.nodes import Node
from clfuse.schedule.records import Access, Kernel, Load
from clfuse.schedule.verify import PlanError, verify
from tests.support.recording import TRAITS, array, kernels, moved_nbytes, planned

N = 60
GRID = 8 * N * N  # bytes


def cross(grid: Any, padded: Any) -> Any:
    """The sum of the four neighbours, of an array with one element put around it."""
    around = padded[1:-1, :-2] + padded[1:-1, 2:] + padded[:-2, 1:-1] + padded[2:, 1:-1]
    return around - 4 * grid


def life(cells: Any) -> Any:
    rows = cf.roll(cells, 1, 0) + cells + cf.roll(cells, -1, 0)
    around = cf.roll(rows, 1, 1) + rows + cf.roll(rows, -1, 1) - cells
    return ((around == 3) | ((cells == 1) & (around == 2))).astype(cells.dtype)


def heat(u: Any) -> Any:
    return sum(cf.roll(u, shift, axis) for axis in range(3) for shift in (1, -1)) - 6 * u


def windows(x: Any, shape: Any, axis: Any) -> Any:
    return cf.lib.stride_tricks.sliding_window_view(x, shape, axis)


PROGRAMS: dict[str, tuple[Callable[[Any], Any], float]] = {
    # name: (program of a grid, bytes that it moves, in grids)
    "eight rolls": (life, 2),
    "a grid rolled along both axes, stored": (lambda x: cf.roll(x, (5, 7), (0, 1)), 2),
    "rolled vectors": (lambda x: cf.roll(x[0], 1) + cf.roll(x[0], -2), 2 / N),
    "edges": (lambda x: cross(x, cf.pad(x, 1, mode="edge")), 2),
    "constant": (lambda x: cross(x, cf.pad(x, 1, constant_values=2)), 2),
    "other constants": (lambda x: cf.pad(x, 1, constant_values=((1, 2), (3, 4)))[:N, :N], 2),
    "wrapped": (lambda x: cross(x, cf.pad(x, 1, mode="wrap")), 2),
    "reflected": (lambda x: cross(x, cf.pad(x, 2, mode="reflect")[1:-1, 1:-1]), 2),
    "symmetric, stored": (lambda x: cf.pad(x, ((0, 0), (0, N)), mode="symmetric"), 3),
    "concatenated": (lambda x: cf.concatenate([x, x[: N // 2], 2 * x]), 3.5),
    "flipped and rolled": (lambda x: cf.flip(cf.roll(x, 3, 1), 1) + x, 2),
    "turned": (lambda x: cf.rot90(cf.roll(x, 3, 1)) + 1, 2),
    "stacked": (lambda x: cf.stack([x, 2 * x, x + 1], -1), 4),
    "tiled": (lambda x: cf.tile(x, (2, 3)) + 1, 7),
    "repeated": (lambda x: cf.repeat(x, 2, 1) * 2, 3),
    "gradient": (lambda x: cf.gradient(x, axis=0), 2),
    "length of the gradient": (lambda x: cf.hypot(*cf.gradient(x)), 2),
    "differences": (lambda x: cf.diff(x, axis=1, prepend=0.0), 2),
    "moving average": (lambda x: windows(cf.pad(x, ((0, 0), (2, 2))), 5, 1).mean(-1), 2),
    "largest around": (
        lambda x: windows(cf.pad(x, 1, mode="edge"), (3, 3), (0, 1)).max((-1, -2)),
        2,
    ),
    "sum of rows": (lambda x: (cf.roll(x, 1, 1) * x).sum(1), 1 + 1 / N),
    "sum of columns": (lambda x: (cf.roll(x, 1, 0) * x).sum(0), 1 + 1 / N),
    "largest and where": (lambda x: cf.pad(x, 1).argmax(1), 1 + 1 / N),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_kernel_reads_every_array_once(name: str) -> None:
    program, grids = PROGRAMS[name]
    (kernel,), nbytes = moved_by(program(fresh(array(N, N))))
    # A padded kernel's loads are counted over all of its iteration, which has a rim.
    assert nbytes == pytest.approx(grids * GRID, rel=0.08)
    assert render(kernel, TRAITS, lambda value: value).source.count("__kernel") == 1


def moved_by(result: Any) -> tuple[list[Kernel], int]:
    schedule = planned(node_of(result))
    assert not schedule.cuts
    return kernels(schedule), moved_nbytes(schedule)


def test_a_stencil_of_three_dimensions_is_one_kernel() -> None:
    u = fresh(array(10, 20, 30))
    (kernel,), nbytes = moved_by(heat(u))
    assert nbytes == 2 * 8 * 6000
    loads = [item for item in kernel.body if isinstance(item, Load)]
    assert len(loads) == 7


def test_other_shifts_and_sizes_have_the_same_text() -> None:
    def source(rows: int, columns: int, shift: int) -> str:
        x = fresh(array(rows, columns))
        (kernel,), _ = moved_by(cf.roll(x, shift, 0) + cf.roll(x, -shift - 1, 1) * 2)
        return render(kernel, TRAITS, lambda value: value).source

    assert source(300, 400, 1) == source(500, 700, 11)


def test_sums_of_a_concatenation_store_it_by_one_kernel() -> None:
    x = fresh(array(N, N))
    schedule = planned(node_of(cf.concatenate([x, 2 * x, x[:3]]).sum(1)))
    assert [kernel.kind.name for kernel in kernels(schedule)] == ["map", "reduce"]


def test_seams_across_summed_columns_are_stored_first_on_a_cpu() -> None:
    x = fresh(array(N, N))
    total = node_of((cf.roll(x, 1, 1) * x).sum(0))
    assert [kernel.kind.name for kernel in kernels(planned(total))] == ["map", "reduce"]
    (kernel,) = kernels(planned(total, traits=replace(TRAITS, schedule="gpu", work_group=64)))
    assert kernel.reduced == 1


def test_a_value_is_not_stored_for_who_loads_its_inputs() -> None:
    cells = fresh(array(100, 100, dtype=np.int32))
    schedule = planned(node_of(life(life(cells))))
    assert len(kernels(schedule)) == 2
    assert moved_nbytes(schedule) == 4 * 4 * 100 * 100


def test_results_are_not_written_over_what_a_roll_still_reads() -> None:
    schedule = planned(rolled_away())
    (kernel,) = kernels(schedule)
    assert schedule.values[kernel.stores[0].value].slot not in schedule.reuses


def rolled_away() -> Node:
    x = fresh(array(N))
    return node_of(cf.roll(x, 1) + 1)


def test_the_verifier_sees_loads_beyond_a_seam() -> None:
    schedule = planned(rolled_away())
    (kernel,) = kernels(schedule)
    (place,) = [at for at, item in enumerate(kernel.body) if isinstance(item, Load)]
    load = kernel.body[place]
    assert isinstance(load, Load)
    assert load.access == Access(N - 1, (1,), ((0, 1, -N),))
    for wrong in (
        Access(N - 1, (1,), ((0, 2, -N),)),
        Access(N - 1, (1,)),
        Access(N - 1, (1,), (), ((0, 0, 2),)),
    ):
        kernel.body[place] = replace(load, access=wrong)
        with pytest.raises(PlanError):
            verify(schedule)
    kernel.body[place] = replace(load, access=Access(N - 1, (1,), (), ((0, 0, 1),)))
    verify(schedule)
