"""Chains of maps over neighbours are one kernel, tile by tile: launches, bytes, and when not."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from clfuse.ir import build
from clfuse.ir.layout import contiguous_strides
from clfuse.ir.nodes import Node
from clfuse.schedule.fuse.tile_layouts import MOST_OVERHEAD
from clfuse.schedule.fuse.time_tiles import MOST_STAGES
from clfuse.schedule.records import Kernel, Schedule
from tests.support.recording import TRAITS, array, call, kernels, moved_nbytes, number, planned

TILES = replace(TRAITS, tile_nbytes=1 << 18, local_nbytes=1 << 18)
SHAPES = [(1_000_000,), (1000, 1500)]


def shifted(a: Node, width: int = 1) -> list[Node]:
    """Views of all but a border, one for each neighbour along an axis."""
    strides = contiguous_strides(a.shape)
    inner = tuple([extent - 2 * width for extent in a.shape])
    middle = width * sum(strides)
    return [
        build.view(a, inner, middle + step * stride, strides)
        for stride in strides
        for step in (-width, width)
    ]


def mean(a: Node, width: int = 1) -> Node:
    """Of the neighbours."""
    first, *others = shifted(a, width)
    for other in others:
        first = call("add", first, other)
    return call("multiply", first, number(0.25))


def step(a: Node, into: Node | None = None, width: int = 1) -> Node:
    """The mean of the neighbours, written to all but the border."""
    strides = contiguous_strides(a.shape)
    middle = width * sum(strides)
    return build.update(a if into is None else into, mean(a, width), middle, strides)


def tiles(schedule: Schedule) -> list[Kernel]:
    return [kernel for kernel in kernels(schedule) if kernel.kind.name == "tiles"]


def stages(schedule: Schedule) -> list[int]:
    return [len(kernel.tiling.stages) for kernel in tiles(schedule) if kernel.tiling]


def steps(a: Node, count: int) -> Node:
    for _ in range(count):
        a = step(a)
    return a


@pytest.mark.parametrize("shape", SHAPES, ids=len)
def test_ten_steps_are_two_kernels_that_move_the_array_twice(shape: tuple[int, ...]) -> None:
    schedule = planned(steps(array(*shape), 10), traits=TILES)
    assert stages(schedule) == [5, 5]
    assert len(kernels(schedule)) <= 2 + 2 * 2 * len(shape), "the rest copies borders"
    assert moved_nbytes(schedule) <= 2 * 16 * math.prod(shape) + 100 * 8 * sum(shape)


@pytest.mark.parametrize("count", [2, 3, MOST_STAGES, MOST_STAGES + 1, 3 * MOST_STAGES - 1])
def test_steps_are_shared_evenly_among_kernels(count: int) -> None:
    found = stages(planned(steps(array(1_000_000), count), traits=TILES))
    assert sum(found) == count
    assert len(found) == -(-count // MOST_STAGES)
    assert min(found) >= 2


def test_two_arrays_that_take_turns_are_read_at_their_borders() -> None:
    a, b = array(1000, 1500), array(1000, 1500)
    for _ in range(8):
        a, b = step(a, into=b), a
    both = planned(a, traits=TILES)  # `b` is somebody's
    assert stages(both) == [8]
    assert moved_nbytes(both) <= 24 * 1000 * 1500 + 100 * 8 * 2500
    del b
    one = planned(a, traits=TILES)
    assert stages(one) == [8]
    assert moved_nbytes(one) <= 16 * 1000 * 1500 + 100 * 8 * 2500


def test_an_intermediate_asked_for_is_stored_by_the_same_kernel() -> None:
    middle = steps(array(1000, 1500), 2)
    schedule = planned(steps(middle, 2), middle, traits=TILES)
    assert stages(schedule) == [4]
    assert moved_nbytes(schedule) <= 3 * 8 * 1000 * 1500 + 100 * 8 * 2500


def test_maps_of_shrinking_shapes_are_one_kernel() -> None:
    a = array(1000, 1500)
    blurred = mean(a)
    for _ in range(3):  # too much to compute again for every neighbour
        blurred = call("exp", call("sin", blurred))
    edges = mean(blurred)
    del blurred
    schedule = planned(edges, traits=TILES)
    assert stages(schedule) == [2]
    assert len(schedule.launches) == 1
    assert moved_nbytes(schedule) <= 16 * 1000 * 1500


@pytest.mark.parametrize(
    "traits",
    [TRAITS, replace(TILES, schedule="gpu")],
    ids=["no local memory", "gpu"],
)
def test_other_devices_take_a_kernel_a_step(traits) -> None:
    assert not tiles(planned(steps(array(1000, 1500), 4), traits=traits))


def test_arrays_that_stay_in_the_caches_take_a_kernel_a_step() -> None:
    assert not tiles(planned(steps(array(500, 1000), 4), traits=TILES))


def test_updates_in_place_are_not_made_elsewhere_to_save_a_read() -> None:
    """As of fields that drive each other: both are changed where they lie."""
    a, b = array(1000, 1500), array(1000, 1500)

    def driven(one: Node, other: Node, near: int) -> Node:
        views = [build.view(each, (998, 1498), 1501, (1500, 1)) for each in (one, other)]
        beside = build.view(other, (998, 1498), near, (1500, 1))
        value = call("subtract", views[0], call("subtract", views[1], beside))
        return build.update(one, value, 1501, (1500, 1))

    a = driven(a, b, 1)
    b = driven(b, a, 3001)
    assert not tiles(planned(a, b, traits=TILES))


def test_tiles_that_are_mostly_border_are_refused_and_why() -> None:
    a = array(1000, 1500)
    for _ in range(3):
        a = step(a, width=60)
    schedule = planned(a, traits=TILES)
    assert not tiles(schedule)
    (reason,) = {cut.reason for cut in schedule.cuts if "not one kernel" in cut.reason}
    assert "done again for neighbouring tiles" in reason


def test_the_plan_says_what_became_one_kernel() -> None:
    schedule = planned(steps(array(1000, 1500), 4), traits=TILES)
    (reason,) = [cut.reason for cut in schedule.cuts if "are one kernel" in cut.reason]
    assert reason.startswith("4 steps are one kernel, tiles of ")


def test_no_more_is_computed_again_than_is_said() -> None:
    schedule = planned(steps(array(3000, 3000), 8), traits=TILES)
    for kernel in tiles(schedule):
        assert kernel.tiling
        computed = elements = 0.0
        for stage in kernel.tiling.stages:
            sides = zip(stage.low, stage.high, kernel.tiling.lengths, strict=True)
            computed += math.prod([length + high - low for low, high, length in sides])
            elements += math.prod(kernel.tiling.lengths)
        assert computed / elements < 1 + MOST_OVERHEAD + 0.02


def test_local_memory_is_no_more_than_the_device_has() -> None:
    for count in range(2, 9):
        for shape in SHAPES:
            for kernel in tiles(planned(steps(array(*shape), count), traits=TILES)):
                assert kernel.tiling
                arrays = kernel.tiling.arrays
                assert sum(dtype.itemsize * size for dtype, size in arrays) <= TILES.tile_nbytes


def test_a_row_along_the_end_is_written_by_itself() -> None:
    """Boundaries that change are no border that stays: each step is a kernel."""
    a = array(1000, 1500)
    for _ in range(3):
        a = step(a)
        row = build.view(a, (1500,), 1500, (1,))
        a = build.update(a, row, 0, (1,))
    planned(a, traits=TILES)
