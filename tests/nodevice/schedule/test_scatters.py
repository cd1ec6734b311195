"""Counts and writes at computed places as plans: who makes them, in how many launches and pieces,
what is fused, and what is copied."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.ir.snapshot import take
from clfuse.schedule.planner import plan
from clfuse.schedule.records import Kernel, LibraryCall, Schedule
from clfuse.schedule.traffic import kernel_nbytes
from clfuse.schedule.verify import verify
from clfuse.target.scatters import copies_of, room_for, tally_pieces
from clfuse.target.traits import DeviceTraits, with_schedule
from tests.support.recording import array, call

GPU = with_schedule(
    DeviceTraits(
        kind="gpu", compute_units=132, local_nbytes=48 << 10, unified_memory=False,
        max_parameter_nbytes=4096,
    ),
    "gpu",
)
CPU = DeviceTraits(compute_units=2)
INT32, INT64, FLOAT32 = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.float32)


def planned(traits: DeviceTraits, *roots: Node) -> Schedule:
    snapshot = take(list(roots))
    schedule = plan(snapshot, traits)
    verify(schedule)
    return schedule


def kinds(schedule: Schedule) -> list[str]:
    return [
        launch.kind.name if isinstance(launch, Kernel) else type(launch).__name__
        for launch in schedule.launches
    ]


def written(old: Node, position: Node, value: Node, how: str = "set", *, plain: bool = False
            ) -> Node:
    """`old` with `value` at the places `position`."""
    param = (how, position.shape, 0, (0,) * len(position.shape), 0, plain)
    return build.library("scatter", (old, position, value), old.shape, old.dtype, param)


def test_places_and_weights_are_computed_where_they_are_counted() -> None:
    place = call("remainder", array(1 << 20, dtype="i4"), build.constant(np.int32(64)))
    tally = build.library("tally", [place], (200, 64), INT32)
    schedule = planned(GPU, build.reduce("add", build.cast(tally, INT64), (0,), INT64))
    assert kinds(schedule)[0] == "tally"
    kernel = schedule.launches[0]
    assert isinstance(kernel, Kernel)
    assert kernel_nbytes(kernel, schedule) == 4 * (1 << 20) + 4 * 200 * 64
    assert (kernel.work_items, kernel.work_group) == (200 * 256, 256)


def counted(count: int, bins: int, *weights: Node) -> Node:
    """How often numbers occur, or sums of weights, as they are recorded for a CPU."""
    place = call("remainder", array(count, dtype="i4"), build.constant(np.int32(bins)))
    dtype = weights[0].dtype if weights else INT64
    return build.library("weigh" if weights else "bincount", [place, *weights], (bins,), dtype)


def test_a_cpu_counts_many_elements_in_pieces() -> None:
    count = 1 << 20
    schedule = planned(CPU, counted(count, 64))
    assert kinds(schedule) == ["tally", "reduce"]
    kernel = schedule.launches[0]
    assert isinstance(kernel, Kernel)
    assert (kernel.chunks, kernel.work_items, kernel.work_group) == (32, 32, 1)
    assert kernel_nbytes(kernel, schedule) == 4 * count + 4 * 32 * 64
    assert "tally" in kinds(planned(CPU, counted(count, 100_000)))


@pytest.mark.parametrize(("char", "wide"), [("f4", "f8"), ("f8", "f8"), ("i2", "i8"), ("u8", "i8")])
def test_a_cpu_adds_weights_in_their_widest_kind(char: str, wide: str) -> None:
    weights = array(1 << 20, dtype=char)
    schedule = planned(CPU, counted(1 << 20, 64, weights))
    assert kinds(schedule) == ["tally", "reduce"]
    kernel = schedule.launches[0]
    assert isinstance(kernel, Kernel)
    assert [store.dtype for store in kernel.stores] == [np.dtype(wide)]


def test_a_cpu_leaves_few_counts_and_all_writes_to_numpy() -> None:
    write = written(array(900, dtype="f4"), array(70, dtype="i4"), array(70, dtype="f4"))
    flags = array(1 << 20, dtype="?")
    for node in (counted(5000, 64), counted(1 << 20, 1 << 20), write, counted(1 << 20, 9, flags)):
        assert isinstance(planned(CPU, node).launches[-1], LibraryCall)


def test_of_few_equal_places_the_last_takes_three_launches() -> None:
    write = written(
        array(9000, dtype="f4"), array(70, dtype="i4"), call("sin", array(70, dtype="f4"))
    )
    schedule = planned(GPU, write)
    assert kinds(schedule) == ["scatter"] * 3
    moved = [kernel_nbytes(one, schedule) for one in schedule.launches[-3:]
             if isinstance(one, Kernel)]
    assert moved == [70 * 8, 70 * 12, 70 * 16]  # never all of the array, nor of its table


@pytest.mark.parametrize(("size", "count", "steps"), [
    (1000, 1000, ["mark", "maximum", "set"]), (8000, 1000, ["mark", "maximum", "set"]),
    (64_000, 1000, ["mark", "exchange", "maximum", "set"]),
    (64_001, 1000, ["exchange", "maximum", "set"]), (999, 1000, ["last", "set"]),
])
def test_many_places_are_tested_before_the_last_is_found(
    size: int, count: int, steps: list[str]
) -> None:
    write = written(array(size, dtype="f4"), array(count, dtype="i4"), array(count, dtype="f4"))
    launches = [each for each in planned(GPU, write).launches if isinstance(each, Kernel)]
    scatters = [each.scatter for each in launches if each.scatter is not None]
    assert [each.how for each in scatters] == steps
    marks = 1 + -(-size // 32) if "mark" in steps else 0
    assert {each.tested for each in scatters} == {marks}
    zeros = [each.extents for each in launches if each.scatter is None]
    words = marks + (size if "exchange" not in steps else 0)
    assert zeros == ([(words,)] if words else [])


def test_distinct_places_are_one_launch() -> None:
    write = written(
        array(900, dtype="f4"), array(70, dtype="i4"), array(70, dtype="f4"), plain=True
    )
    assert kinds(planned(GPU, write)) == ["scatter"]


def test_what_replaces_an_element_may_be_made_of_it() -> None:
    def changed(*, elsewhere: bool) -> Node:
        old, index = array(9000, dtype="f4"), array(70, dtype="i4")
        place = array(70, dtype="i4") if elsewhere else index
        read = build.gather(old, place, (70,), 0, (0,))
        return written(old, index, call("add", read, read))

    assert kinds(planned(GPU, changed(elsewhere=False))) == ["scatter"] * 3
    # What is read elsewhere comes first.
    assert kinds(planned(GPU, changed(elsewhere=True))) == ["map"] + ["scatter"] * 3


def test_an_array_that_somebody_holds_is_copied_first() -> None:
    held = call("sin", array(900, dtype="f4"))
    write = written(held, array(70, dtype="i4"), build.constant(np.float32(1)), plain=True)
    assert kinds(planned(GPU, held, write)) == ["map", "Copy", "scatter"]


@pytest.mark.parametrize(
    ("count", "bins", "weighs", "pieces"),
    [(64_000_000, 1024, False, 1056), (64_000_000, 100_000, False, 0), (10, 5, False, 1),
     (1_000_000, 12_000, False, 84), (64_000_000, 1024, True, 4224), (64_000_000, 6_500, True, 0)],
)  # fmt: skip
def test_pieces_of_counts(count: int, bins: int, weighs: bool, pieces: int) -> None:
    nbytes = 8 if weighs else 4
    assert tally_pieces(GPU, count, bins, nbytes, weighs=weighs) == pieces


def test_few_places_have_several_counters_each() -> None:
    assert [copies_of(bins, 4) for bins in (2, 64, 256, 1024, 5000)] == [16, 16, 8, 2, 1]
    assert [room_for(bins) for bins in (1, 17, 1000, 1025)] == [16, 32, 1024, 2048]


def test_groups_are_no_larger_than_the_device_takes() -> None:
    small: Any = with_schedule(DeviceTraits(kind="gpu", max_work_group=48), "gpu")
    tally = build.library("tally", [array(5000, dtype="i4")], (4, 64), INT32)
    (kernel,) = planned(small, tally).launches
    assert isinstance(kernel, Kernel)
    assert kernel.work_group == 32


@pytest.mark.parametrize(("how", "counts"), [
    ("add", [1_000_000, 125_000, 15_626, 1_954, 246]), ("divide", [1_000_000]),
])
def test_elements_of_one_place_are_folded_by_many_work_items(how: str, counts: list[int]) -> None:
    places, values = array(1_000_000, dtype="i4"), array(1_000_000, dtype="f4")
    old = array(1000, dtype="f4")
    folded = build.library("segments", (old, places, values), old.shape, old.dtype, how)
    launches = [each for each in planned(GPU, folded).launches if isinstance(each, Kernel)]
    assert [each.extents for each in launches] == [(count,) for count in counts]
    for each in launches[:-1]:
        assert each.work_items >= each.extents[0] // 16
