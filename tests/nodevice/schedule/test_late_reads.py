"""A write of a part of an array copies no more of it than what is read again as it was."""

from __future__ import annotations

import numpy as np
import pytest

from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.schedule.memory.buffers import reads_of
from clfuse.schedule.memory.hazards import MAX_NBYTES
from clfuse.schedule.records import Copy
from clfuse.schedule.rewrite.write_regions import apart
from clfuse.schedule.verify import PlanError, verify
from tests.support.recording import FLOAT64, array, call, kernels, moved_nbytes, planned

SIZES = pytest.mark.parametrize(
    "size", [8000, MAX_NBYTES // 8 + 1], ids=["followed by bytes", "followed as a whole"]
)


def element(x: Node, index: int) -> Node:
    return build.view(x, (), index, ())


def part(x: Node, start: int, length: int) -> Node:
    return build.view(x, (length,), start, (1,))


def swapped(x: Node, one: int, other: int) -> Node:
    """``x[one], x[other] = x[other], x[one]``."""
    first, second = element(x, one), element(x, other)
    return build.update(build.update(x, second, one, ()), first, other, ())


@SIZES
def test_swaps_move_the_elements_that_they_swap(size: int) -> None:
    x = array(size)
    for step in range(6):  # fewer than `rolling` looks at
        x = swapped(x, 7 * step, 100 - 5 * step)
    schedule = planned(x)
    assert schedule.slots.count(8 * size) == 1
    assert not any(isinstance(launch, Copy) for launch in schedule.launches)
    assert moved_nbytes(schedule) <= 6 * 6 * 8


@SIZES
def test_a_shift_of_few_elements_onto_themselves_copies_those(size: int) -> None:
    x = array(size)
    for start in (3, 5, 4):
        x = build.update(x, part(x, start, 100), start + 1, (1,))
    schedule = planned(x)
    assert schedule.slots.count(8 * size) == 1
    assert moved_nbytes(schedule) == 3 * 4 * 800


@SIZES
def test_what_is_read_elsewhere_is_read_from_the_array_late(size: int) -> None:
    x = array(size)
    early = part(x, 50, 10)
    for step in range(4):
        x = build.update(x, build.reduce("add", part(x, 0, 9), (0,), FLOAT64), step, ())
    x = build.update(x, call("exp", early), 70, (1,))
    del early
    schedule = planned(x)
    assert schedule.slots.count(8 * size) == 1
    assert not any(isinstance(launch, Copy) for launch in schedule.launches)
    assert moved_nbytes(schedule) == 4 * (9 + 3) * 8 + 160


def test_an_element_that_a_write_covers_is_copied_before_it() -> None:
    x = array(8000)
    early = element(x, 5)
    once = build.update(x, call("negative", element(x, 1)), 0, ())
    x = build.update(once, build.reduce("add", part(once, 0, 3), (0,), FLOAT64), 5, ())
    del once
    x = build.update(x, call("add", early, element(x, 5)), 9, ())
    del early
    schedule = planned(x)
    assert schedule.slots.count(64000) == 1
    first, copy, second, third = kernels(schedule)
    assert [where.offset for _, where in reads_of(copy)] == [5]
    assert copy.stores[0].value in [value for value, _ in reads_of(third)]
    assert first.stores[0].value != second.stores[0].value


def test_many_elements_read_as_they_were_copy_their_array() -> None:
    x = array(8000)
    early = part(x, 0, 4000)
    x = build.update(x, part(x, 4000, 2000), 1000, (1,))
    x = build.update(x, early, 2000, (1,))
    schedule = planned(x)
    assert any("outside of" in cut.what for cut in schedule.cuts)


def test_what_another_array_is_filled_from_is_not_overwritten() -> None:
    x = array(8000)
    total = build.reduce("add", array(100), (0,), FLOAT64)
    later = build.update(call("negative", x), total, 5, ())
    now = build.update(x, array(10), 0, (1,))
    del x
    planned(later, now)  # which follows every byte


def test_who_holds_the_array_keeps_it() -> None:
    x = array(8000)
    schedule = planned(swapped(x, 3, 4), call("exp", x), x)
    assert schedule.slots.count(64000) == 2


@SIZES
def test_a_copy_that_comes_too_late_is_found(size: int) -> None:
    x = array(size)
    for start in (3, 5):
        x = build.update(x, part(x, start, 100), start + 1, (1,))
    schedule = planned(x)
    copy, *others = schedule.launches
    schedule.launches[:] = [*others[:1], copy, *others[1:]]
    with pytest.raises(PlanError, match="holds"):
        verify(schedule)


def test_regions_that_touch_are_never_called_apart() -> None:
    random = np.random.default_rng(0)
    known = 0
    for _ in range(2000):
        regions = []
        for _ in range(2):
            rank = random.integers(0, 3)
            shape = tuple(random.integers(1, 5, rank).tolist())
            strides = tuple(random.integers(-4, 13, rank).tolist())
            regions.append((shape, int(random.integers(20, 60)), strides))
        touched = []
        for shape, offset, strides in regions:
            places = np.full(shape, offset)
            for axis, stride in enumerate(strides):
                steps = np.arange(shape[axis]) * stride
                places += steps.reshape((-1,) + (1,) * (len(shape) - axis - 1))
            touched.append(set(places.ravel().tolist()))
        assert apart(*regions) == touched[0].isdisjoint(touched[1])
        known += touched[0].isdisjoint(touched[1])
    assert 200 < known < 1800
