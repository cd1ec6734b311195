"""`verify` follows every byte of a plan: launches in a wrong order or on wrong bytes are found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.schedule.memory.hazards import MAX_NBYTES
from clfuse.schedule.records import Kernel, Schedule
from clfuse.schedule.verify import PlanError, verify
from tests.support.recording import (
    FLOAT64,
    array,
    call,
    joined_apart,
    kernels,
    number,
    planned,
    roll,
)

N = 1000
LARGE = MAX_NBYTES // 8 + 1


def shifted_add(size: int) -> Node:
    """What ``x[1:] += x[:-1]`` makes of an array."""
    x = array(size)
    ahead, behind = (build.view(x, (size - 1,), start, (1,)) for start in (1, 0))
    return build.update(x, call("add", ahead, behind), 1, (1,))


def sum_then_overwrite(size: int) -> tuple[Node, ...]:
    x = array(size)
    total = build.reduce("add", call("sin", x), (0,), FLOAT64)
    return total, build.update(x, array(size - 3), 0, (1,))


def two_updates(size: int) -> tuple[Node, ...]:
    """An array's maximum after its first element was written, and after its last was."""
    once = build.update(array(size), array(1), 0, (1,))
    most = build.reduce("maximum", once, (0,), FLOAT64)
    return most, build.update(once, call("negative", array(1)), size - 1, (1,))


def in_the_bytes_of_its_input(schedule: Schedule) -> None:
    """Let the update that is asked for lie in the bytes of what it updates."""
    (update,) = [value for value in schedule.values if value.update is not None]
    buffer = schedule.values[update.update.old].buffer
    schedule.reuses[update.slot] = buffer


def backwards(schedule: Schedule) -> None:
    schedule.launches.reverse()


def without_the_first(schedule: Schedule) -> None:
    del schedule.launches[0]


@pytest.mark.parametrize("size", [N, LARGE], ids=["followed by bytes", "followed as a whole"])
@pytest.mark.parametrize(
    ("program", "damage"),
    [
        pytest.param(sum_then_overwrite, backwards, id="write after read"),
        pytest.param(two_updates, backwards, id="read after write"),
        pytest.param(two_updates, without_the_first, id="never written"),
    ],
)
def test_launches_in_a_wrong_order_are_found(
    program: Callable[[int], tuple[Node, ...]], damage: Callable[[Schedule], None], size: int
) -> None:
    schedule = planned(*program(size))
    damage(schedule)
    with pytest.raises(PlanError, match="holds"):
        verify(schedule)


def test_elements_read_and_written_in_no_order_are_found() -> None:
    schedule = planned(shifted_add(N))
    in_the_bytes_of_its_input(schedule)
    schedule.launches = kernels(schedule)[-1:]
    with pytest.raises(PlanError, match="which comes first"):
        verify(schedule)


def test_a_part_that_nobody_wrote_is_found() -> None:
    schedule = planned(shifted_add(N))
    assert len(schedule.launches) == 2  # the first copies the first element
    without_the_first(schedule)
    with pytest.raises(PlanError, match=r"holds.* nothing where it reads"):
        verify(schedule)


@pytest.mark.parametrize(("start", "is_right"), [(300, True), (299, False)])
def test_what_an_update_in_place_leaves_alone_may_be_read_later(
    start: int, is_right: bool
) -> None:
    x = array(N)
    tail = build.view(x, (400,), start, (1,))
    schedule = planned(build.update(x, array(300), 0, (1,)), call("negative", tail))
    in_the_bytes_of_its_input(schedule)
    schedule.launches = [  # without the copy that the update needs elsewhere, and it first
        launch
        for launch in reversed(kernels(schedule))
        if "copy" not in launch.label or launch.extents == (300,)
    ]
    if is_right:
        verify(schedule)
    else:
        with pytest.raises(PlanError, match="holds value"):
            verify(schedule)


@pytest.mark.parametrize("size", [N, LARGE])
def test_parts_updated_in_place_box_by_box_are_no_hazard(size: int) -> None:
    other = joined_apart(size)
    x = array(*other.shape)
    schedule = planned(build.update(x, call("add", x, other), 0, (1,)))
    assert len(kernels(schedule)) == 17
    assert all(isinstance(launch, Kernel) and launch.boxed for launch in schedule.launches)


@pytest.mark.parametrize("size", [N, LARGE])
def test_an_array_rolled_in_place_is_one_kernel_and_no_hazard(size: int) -> None:
    x = array(size)
    rolled = build.view(roll(x, 1, 0), (size - 1,), 1, (1,))
    schedule = planned(build.update(x, call("add", build.view(x, (size - 1,), 1, (1,)), rolled), 1,
                                    (1,)))
    assert len(kernels(schedule)) <= 2  # the old contents are copied first where they lie alone


def test_two_buffers_that_take_turns_are_no_hazard() -> None:
    grid = array(N)
    for _ in range(4):
        inner = call("add", build.view(grid, (N - 2,), 0, (1,)),
                     build.view(grid, (N - 2,), 2, (1,)))
        grid = build.update(grid, call("multiply", inner, number(0.5)), 1, (1,))
    schedule = planned(grid)
    assert len(schedule.slots) == 2
    # The copy of the border into the first buffer is what the later turns rely on.
    without_the_first(schedule)
    with pytest.raises(PlanError, match="nothing"):
        verify(schedule)
