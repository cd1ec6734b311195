"""`verify` refuses plans whose accesses leave their arrays, or that store what nobody asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from clfuse.ir import build
from clfuse.schedule.records import Access, Copy, Index, Load, Schedule
from clfuse.schedule.verify import PlanError, verify
from tests.nodevice.schedule.test_time_tiles import TILES, steps, tiles
from tests.support.recording import array, call, kernels, number, planned

N = 1000


def negated() -> Schedule:
    x = array(N)  # held, so that it is not written over
    return planned(call("negative", x))


def counted() -> Schedule:
    index = build.cast(build.iota(N), np.dtype(np.float64))
    return planned(call("multiply", index, number(2.0)))


def with_load(schedule: Schedule, **changes: Any) -> None:
    (kernel,) = kernels(schedule)
    kernel.body[:] = [
        replace(item, **changes) if isinstance(item, Load) else item for item in kernel.body
    ]


def with_store(schedule: Schedule, access: Access) -> None:
    (kernel,) = kernels(schedule)
    kernel.stores[:] = [replace(store, access=access) for store in kernel.stores]


def without_memory(schedule: Schedule) -> None:
    """What is computed lies nowhere."""
    (kernel,) = kernels(schedule)
    schedule.values[kernel.stores[0].value].slot = None


def without_input(schedule: Schedule) -> None:
    (kernel,) = kernels(schedule)
    (load,) = [item for item in kernel.body if isinstance(item, Load)]
    schedule.values[load.value].buffer = None


def copied(schedule: Schedule, nbytes: int) -> None:
    (kernel,) = kernels(schedule)
    (load,) = [item for item in kernel.body if isinstance(item, Load)]
    schedule.launches.append(Copy(load.value, kernel.stores[0].value, nbytes))


ENDS = [
    (Access(1, (1,)), "elements 1 to 1000 of 1000"),
    (Access(-1, (1,)), "elements -1 to 998 of 1000"),
    (Access(998, (-1,)), "elements -1 to 998 of 1000"),
    (Access(0, (2,)), "elements 0 to 1998 of 1000"),
    (Access(0, (1, 1)), "has another rank"),
    (Access(0, (1,), jumps=((0, 500, 1),)), "elements 0 to 1000 of 1000"),
    (Access(0, (1,), jumps=((0, 500, -501),)), "elements -1 to 499 of 1000"),
    (Access(0, (2,), within=((0, 0, 501),)), "elements 0 to 1000 of 1000"),
    (Access(-2, (1,), within=((0, 1, N),)), "elements -1 to 997 of 1000"),
]


@pytest.mark.parametrize("damage", [with_load, with_store])
@pytest.mark.parametrize(("access", "said"), ENDS, ids=[str(each) for each, _ in ENDS])
def test_elements_outside_of_an_array_are_found(
    access: Access, said: str, damage: Callable[..., None]
) -> None:
    schedule = negated()
    damage(schedule, access=access)
    with pytest.raises(PlanError, match=said):
        verify(schedule)


@pytest.mark.parametrize(
    "access",
    [
        Access(999, (-1,)),
        Access(0, (2,), within=((0, 0, 500),)),
        Access(1, (1,), jumps=((0, 999, -N),)),
        Access(0, (0,)),
        Access(5000, (1,), within=((0, 3, 3),)),  # touches nothing
    ],
    ids=str,
)
def test_loads_up_to_the_ends_of_an_array_are_right(access: Access) -> None:
    schedule = negated()
    with_load(schedule, access=access)
    verify(schedule)


@pytest.mark.parametrize(
    ("damage", "said"),
    [(without_memory, "writes value .*, which has no memory"),
     (without_input, "reads value .*, which has no memory")],
)
def test_values_without_memory_are_found(damage: Callable[[Schedule], None], said: str) -> None:
    schedule = negated()
    damage(schedule)
    with pytest.raises(PlanError, match=said):
        verify(schedule)


def test_a_copy_of_more_bytes_than_there_are_is_found() -> None:
    schedule = negated()
    copied(schedule, 8 * N + 8)
    with pytest.raises(PlanError, match="copies 8008 bytes of a smaller value"):
        verify(schedule)


def test_an_index_of_another_rank_is_found() -> None:
    schedule = counted()
    (kernel,) = kernels(schedule)
    assert any(isinstance(item, Index) for item in kernel.body)
    kernel.body[:] = [
        replace(item, access=Access(0, (1, 1))) if isinstance(item, Index) else item
        for item in kernel.body
    ]
    with pytest.raises(PlanError, match="an index of another rank"):
        verify(schedule)


def test_what_is_stored_without_a_reason_is_found() -> None:
    schedule = planned(call("sin", call("negative", array(N))), fuse=False)
    assert len(schedule.launches) == 2
    schedule.cuts.clear()
    with pytest.raises(PlanError, match="is stored without a reason"):
        verify(schedule)


def test_a_tile_that_is_left_is_found() -> None:
    def damaged(**changes: Any) -> Schedule:
        schedule = planned(steps(array(1000, 1500), 3), traits=TILES)
        (kernel,) = tiles(schedule)
        assert kernel.tiling is not None
        scratch = kernel.tiling.scratch
        for value in scratch:
            scratch[value] = replace(scratch[value], **changes)
        return schedule

    with pytest.raises(PlanError, match="leaves its tile along axis 0"):
        verify(damaged(low=(1, 1)))
    with pytest.raises(PlanError, match="leaves its tile along axis 1"):
        verify(damaged(strides=(1, 1)))


def test_local_memory_that_is_too_small_for_a_tile_is_found() -> None:
    schedule = planned(steps(array(1000, 1500), 3), traits=TILES)
    (kernel,) = tiles(schedule)
    assert kernel.tiling is not None
    arrays = kernel.tiling.arrays
    arrays[:] = [(dtype, count // 2) for dtype, count in arrays]
    with pytest.raises(PlanError, match="leaves its local memory"):
        verify(schedule)
