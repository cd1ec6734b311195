"""Many small equal writes to one array are few kernels; what depends on order stays in order."""

from __future__ import annotations

import time

import numpy as np
import pytest

from clfuse.ir import build
from clfuse.ir.layout import contiguous_strides
from clfuse.ir.nodes import Node
from clfuse.ir.snapshot import take
from clfuse.schedule.planner import plan
from clfuse.schedule.records import Copy
from clfuse.schedule.rewrite import chains
from clfuse.schedule.rewrite.write_regions import History, Region, elements_at_least
from tests.support.recording import TRAITS, array, call, kernels, moved_nbytes, number, planned

Part = tuple[tuple[int, ...], int, tuple[int, ...]]


def row(width: int, index: int, start: int = 0, stop: int | None = None) -> Part:
    """Shape, offset and strides of ``a[index, start:stop]``, rows of `width` elements."""
    return ((width if stop is None else stop) - start,), index * width + start, (1,)


def read(node: Node, part: Part) -> Node:
    return build.view(node, *part)


def write(node: Node, part: Part, value: Node) -> Node:
    shape, offset, strides = part
    return build.update(node, build.broadcast(value, shape), offset, strides)


def increments(a: Node, parts: list[Part]) -> Node:
    """``a[part] = a[part] + 1`` one after another."""
    for part in parts:
        a = write(a, part, call("add", read(a, part), number(1.0)))
    return a


ROWS = {
    "all rows": list(range(40)),
    "every second row": list(range(0, 40, 2)),
    "in reverse": list(range(39, -1, -1)),
    "shuffled": np.random.default_rng(1).permutation(40).tolist(),
}


def test_elements_of_writes_that_cannot_be_adjacent_are_skipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[int] = []

    class Counted(History):
        def __init__(self, writes: list[Region], reads: list[tuple[Region, int]]) -> None:
            looked.append(len(writes))
            super().__init__(writes, reads)

    monkeypatch.setattr(chains, "History", Counted)
    inner: Part = ((18, 28), 31, (30, 1))
    steps = planned(increments(array(20, 30), [inner, row(30, 0)] * 12))
    assert not looked
    assert len(kernels(steps)) > 1
    # Eight rows of eight have room exactly, also behind a write of everything.
    whole: Part = ((8, 30), 0, (30, 1))
    rows = planned(increments(array(8, 30), [whole, *[row(30, index) for index in range(8)]]))
    assert looked
    assert len(kernels(rows)) <= 2


def test_the_elements_of_a_region_are_counted_from_below() -> None:
    generator = np.random.default_rng(4)
    for _ in range(300):
        rank = int(generator.integers(4))
        shape = tuple(generator.integers(0, 4, rank).tolist())
        strides = tuple(generator.integers(-9, 10, rank).tolist())
        exact = len({int(np.dot(index, strides)) for index in np.ndindex(*shape)})
        assert elements_at_least((shape, 50, strides)) <= exact
    for shape in ((), (3,), (3, 1, 5), (2, 0), (2, 3, 4)):
        assert elements_at_least((shape, 7, contiguous_strides(shape))) == int(np.prod(shape))


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_equal_writes_to_different_rows_are_one_kernel_in_place(rows: list[int]) -> None:
    schedule = planned(increments(array(40, 6), [row(6, index) for index in rows]))
    (kernel,) = kernels(schedule)
    assert len(schedule.launches) == 1
    assert moved_nbytes(schedule) == 2 * 8 * 6 * len(rows)
    assert kernel.kind.name == "map"


def test_columns_parts_of_rows_and_elements_are_one_kernel_each() -> None:
    for parts in (
        [((20,), column, (30,)) for column in range(30)],
        [row(30, index, 3, 11) for index in range(20)],
        [((4,), 30 * index + 28, (-7,)) for index in range(20)],
        [((), 30 * i + j, ()) for i in range(1, 19) for j in range(1, 29)],
    ):
        schedule = planned(increments(array(20, 30), parts))
        assert len(schedule.launches) == len(kernels(schedule)) == 1
        elements = sum(int(np.prod(shape)) for shape, _, _ in parts)
        assert moved_nbytes(schedule) == 2 * 8 * elements


def test_a_loop_of_statements_over_two_arrays_is_one_kernel() -> None:
    a, c, x = array(50, 4), array(50, 4), array(50, 8)
    for index in range(50):
        here = row(4, index)
        a = write(a, here, call("add", read(a, here), number(1.0)))
        a = write(a, here, call("multiply", read(a, here), read(x, row(8, index, 2, 6))))
        c = write(c, here, call("add", read(c, here), read(a, here)))
    assert len(planned(a, c).launches) == 1


def test_reductions_of_rows_are_folded_together() -> None:
    x, s = array(30, 100), array(64)
    for index in range(30):
        total = build.reduce("add", read(x, row(100, index)), (0,), x.dtype)
        s = write(s, ((), index, ()), total)
    assert len(planned(s).launches) == 2  # the sums, and their place in `s`


def test_scalars_that_differ_are_one_table_and_one_kernel() -> None:
    a = array(40, 6)
    for index in ROWS["shuffled"]:
        here = row(6, index)
        scaled = call("multiply", read(a, here), number(index % 7))
        a = write(a, here, call("add", scaled, number(0.5 + index)))
    schedule = planned(a)
    (kernel,) = kernels(schedule)
    tables = [launch for launch in schedule.launches if launch is not kernel]
    assert [len(table.scalars) for table in tables] == [40, 40]  # type: ignore[union-attr]
    assert moved_nbytes(schedule) == 2 * 8 * 6 * 40 + 2 * 8 * 40


def test_a_scalar_that_all_writes_have_stays_an_argument() -> None:
    a = array(40, 6)
    for index in range(40):
        a = write(a, row(6, index), number(2.0))
    schedule = planned(a)
    assert len(schedule.launches) == len(kernels(schedule)) == 1
    assert moved_nbytes(schedule) == 8 * 6 * 40


def test_rows_that_need_the_row_before_have_few_of_them_at_hand() -> None:
    a = array(13, 3)
    for index in range(1, 13):
        a = write(a, row(3, index), call("add", read(a, row(3, index - 1)), number(1.0)))
    assert [len(kernel.stores) for kernel in kernels(planned(a))] == [3, 3, 3, 3]


def test_a_row_that_needs_the_next_row_reads_its_old_values() -> None:
    a = array(12, 3)
    for index in range(11):
        a = write(a, row(3, index), call("add", read(a, row(3, index + 1)), number(1.0)))
    schedule = planned(a)
    assert len(kernels(schedule)) <= 2  # one writes, one may bring the last row along


def test_two_passes_over_all_rows_are_one_kernel() -> None:
    passes = [row(3, index) for index in range(16)] * 2
    assert len(planned(increments(array(16, 3), passes)).launches) == 1


def test_what_was_asked_for_in_between_is_kept() -> None:
    middle = increments(array(16, 3), [row(3, index) for index in range(8)])
    end = increments(middle, [row(3, index) for index in range(8, 16)])
    schedule = planned(middle, end)
    assert len(set(schedule.keeps.values())) == 2
    assert len([launch for launch in schedule.launches if not isinstance(launch, Copy)]) <= 4


def test_few_writes_stay_as_they_were() -> None:
    parts = [row(3, index) for index in range(5)]
    schedule = planned(increments(array(16, 3), parts))
    assert sum(len(kernel.stores) for kernel in kernels(schedule)) == 5


def test_planning_time_is_linear_in_the_writes() -> None:
    def seconds(count: int) -> float:
        parts = [row(4, index) for index in range(count)]
        snapshot = take([increments(array(count, 4), parts)])
        start = time.process_time()
        assert len(plan(snapshot, TRAITS).launches) == 1
        return time.process_time() - start

    seconds(1000)
    assert seconds(16000) < 40 * max(seconds(1600), 0.01)


def elements(region: Region) -> set[int]:
    shape, offset, strides = region
    where = np.full(shape, offset)
    for axis, stride in enumerate(strides):
        where = where + np.expand_dims(
            np.arange(shape[axis]) * stride, tuple(set(range(len(shape))) - {axis})
        )
    return set(where.ravel().tolist())


def test_overlaps_are_those_of_the_elements() -> None:
    generator = np.random.default_rng(0)
    for case in range(60):
        extents = tuple(generator.integers(2, 7, 3).tolist())
        scale = int(generator.integers(1, 4))
        steps = contiguous_strides(extents)

        def region(extents: tuple[int, ...] = extents, scale: int = scale, steps=steps) -> Region:  # type: ignore[no-untyped-def]
            shape, strides, offset = [], [], 0
            for extent, step in zip(extents, steps, strict=True):
                kind = generator.integers(4)
                first = int(generator.integers(extent))
                if kind == 0:
                    offset += first * step
                elif kind == 1:
                    shape.append(extent - first)
                    strides.append(step)
                    offset += first * step
                elif kind == 2:
                    shape.append(first + 1)
                    strides.append(-step)
                    offset += first * step
                else:
                    shape.append(extent)
                    strides.append(step)
            # The innermost run of `scale` elements makes blocks.
            return (*shape, scale), offset * scale, (*[s * scale for s in strides], 1)

        writes = [region() for _ in range(12)]
        reads = [(region(), int(generator.integers(13))) for _ in range(12)]
        history = History(writes, reads)
        assert history.known
        touched = [elements(part) for part in writes]
        for time_, own in enumerate(touched, 1):
            earlier = [t for t in range(1, time_) if touched[t - 1] & own]
            assert history.before[time_ - 1] == max(earlier, default=0), case
        for place, (part, when) in enumerate(reads):
            hits = [t for t in range(1, 13) if touched[t - 1] & elements(part)]
            assert history.last[place] == max([t for t in hits if t <= when], default=0), case
            assert history.following[place] == min([t for t in hits if t > when], default=13), case
