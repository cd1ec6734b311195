"""Loads at computed positions in plans: what fuses with them, and who may write where they read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.ir.value_ranges import range_of
from clfuse.schedule.dataflow import operations_of
from clfuse.schedule.records import Copy, Kernel, LibraryCall, Load
from tests.support.recording import array, call, kernels, moved_nbytes, number, planned

N = 1_000_000
TABLE = 1000
INT32 = np.dtype(np.int32)
INT64 = np.dtype(np.int64)


def gather(source: Node, position: Node) -> Node:
    return build.gather(source, position, position.shape, 0, (0,) * len(position.shape))


def integer(value: int) -> Node:
    return build.constant(np.int64(value))


def scatter(old: Node, position: Node, value: Node) -> Node:
    layout = (old.dtype.char, old.shape, 0, build.contiguous_strides(old.shape))
    param = (layout, (position.shape, value.shape), (("array", 0),))
    return build.library("setitem", (old, position, value), old.shape, old.dtype, param)


def positions_of(kernel: Kernel) -> list[Load]:
    items = kernel.body + kernel.epilogue
    return [item for item in items if isinstance(item, Load) and item.position is not None]


def test_a_lookup_and_what_is_done_with_it_are_one_kernel() -> None:
    table, index, w = array(TABLE), array(N, dtype=np.int32), array(N)
    looked_up = gather(table, index)
    schedule = planned(call("add", call("multiply", looked_up, w), number(1.0)))
    (kernel,) = kernels(schedule)
    assert operations_of(kernel.body) == ["gather", "multiply", "add"]
    assert moved_nbytes(schedule) == 8 * TABLE + 4 * N + 8 * N + 8 * N


def test_an_index_that_is_computed_is_never_stored() -> None:
    table, x = array(TABLE), array(N, dtype=np.int64)
    index = call("remainder", x, integer(TABLE))
    schedule = planned(call("negative", gather(table, index)))
    assert len(schedule.launches) == 1
    assert len(schedule.slots) == 1


def test_the_source_of_a_gather_is_stored_and_the_cut_says_why() -> None:
    table, index = array(TABLE), array(N, dtype=np.int32)
    schedule = planned(call("multiply", gather(call("exp", table), index), number(2.0)))
    assert [kernel.extents for kernel in kernels(schedule)] == [(TABLE,), (N,)]
    (cut,) = schedule.cuts
    assert cut.reason == "read at computed positions"
    assert cut.nbytes == 8 * TABLE


def test_a_gather_is_folded_where_it_is_read() -> None:
    table, index = array(TABLE), array(N, dtype=np.int32)
    schedule = planned(build.reduce("add", gather(table, index), (0,), np.dtype(np.float64)))
    first, second = kernels(schedule)
    assert positions_of(first)
    assert not positions_of(second)
    assert max(schedule.slots) < 8 * TABLE


def test_what_argmin_found_is_looked_up_in_its_own_kernel() -> None:
    distances, names = array(N, 10), array(10)
    found = build.arg_reduce("argmin", distances, (1,))
    (kernel,) = kernels(planned(gather(names, found)))
    assert kernel.kind.name == "reduce"
    (load,) = positions_of(kernel)
    assert load in kernel.epilogue


def test_rows_are_loaded_in_vectors() -> None:
    matrix, rows = array(TABLE, 64), array(N // 100, dtype=np.int32)
    start = build.reshape(call("multiply", rows, build.constant(np.int32(64)), dtype=INT32),
                          (N // 100, 1))
    chosen = build.gather(matrix, start, (N // 100, 64), 0, (0, 1))
    (kernel,) = kernels(planned(call("negative", chosen)))
    (load,) = positions_of(kernel)
    assert kernel.vector == 1
    assert load.access.strides == (0, 1)
    assert next(item for item in kernel.body if isinstance(item, Load)).access.strides[1] == 0


def test_strided_rows_of_a_gather_are_not_packed() -> None:
    points, start = array(3000), array(500, 1, dtype=np.int32)
    chosen = build.gather(points, start, (500, 900), 0, (0, 3))
    schedule = planned(call("multiply", chosen, array(500, 900)))
    (kernel,) = kernels(schedule)
    assert len(positions_of(kernel)) == 1


def test_without_fusion_a_gather_is_a_kernel_of_its_own() -> None:
    table, index = array(TABLE), array(N, dtype=np.int32)
    schedule = planned(call("negative", gather(table, index)), fuse=False)
    assert len(kernels(schedule)) == 2


def test_results_are_not_written_where_a_gather_still_reads() -> None:
    x, index, y = array(N), array(N, dtype=np.int32), array(N)
    total = call("add", call("add", x, y), gather(x, index))
    del x, y
    schedule = planned(total)
    (kernel,) = kernels(schedule)
    (store,) = kernel.stores
    taken = schedule.reuses[schedule.values[store.value].slot]
    assert taken != schedule.values[positions_of(kernel)[0].value].buffer  # but that of `y`


def test_an_update_gathered_from_its_old_self_is_not_in_place() -> None:
    x, index = array(N), array(10, dtype=np.int32)
    changed = build.update(x, gather(x, index), 5, (1,))
    del x
    schedule = planned(changed)
    (writer,) = [kernel for kernel in kernels(schedule) if positions_of(kernel)]
    assert schedule.values[writer.stores[0].value].slot not in schedule.reuses


def test_an_update_in_place_follows_the_gather_of_the_old() -> None:
    x, index, value = array(N), array(N, dtype=np.int32), array(10)
    before = gather(x, index)
    changed = build.update(x, value, 5, (1,))
    del x
    schedule = planned(before, changed)
    first, second = kernels(schedule)
    assert positions_of(first)
    assert second.extents == (10,)
    assert not any(isinstance(launch, Copy) for launch in schedule.launches)
    taken = schedule.reuses[schedule.values[second.stores[0].value].slot]
    assert taken == schedule.values[positions_of(first)[0].value].buffer


def test_a_gather_after_an_update_reads_what_was_written() -> None:
    x, index, value = array(N), array(N, dtype=np.int32), array(10)
    changed = build.update(x, value, 5, (1,))
    after = gather(changed, index)
    del x
    schedule = planned(after)
    first, second = kernels(schedule)
    assert first.extents == (10,)
    assert positions_of(second)[0].value == first.stores[0].value


@pytest.mark.parametrize("held", [False, True], ids=["dead", "held"])
def test_a_scatter_is_in_place_where_the_old_is_not_needed(held: bool) -> None:
    x, index, value = array(N), array(10, dtype=np.int32), array(10)
    old = [x] if held else []
    changed = scatter(x, index, value)
    del x
    schedule = planned(changed)
    (launch,) = schedule.launches
    assert isinstance(launch, LibraryCall)
    target = schedule.values[launch.target].slot
    assert (target in schedule.reuses) is not held
    assert len(old) == held


def test_of_two_scatters_into_one_array_the_last_is_in_place() -> None:
    x, index, value = array(N), array(10, dtype=np.int32), array(10)
    other = call("negative", value)
    changed = [scatter(x, index, value), scatter(x, index, other), gather(x, index)]
    del x
    schedule = planned(*changed)
    calls = [launch for launch in schedule.launches if isinstance(launch, LibraryCall)]
    reused = [schedule.values[launch.target].slot in schedule.reuses for launch in calls]
    assert reused == [False, True]


def test_a_scattered_scalar_is_passed_and_not_stored() -> None:
    x, index = array(N), array(10, dtype=np.int32)
    schedule = planned(scatter(x, index, number(5.0)))
    (launch,) = schedule.launches
    assert isinstance(launch, LibraryCall)
    assert len(launch.operands) == 2
    assert [place for place, _ in launch.scalars] == [2]


COUNT = 7
IOTA = np.arange(COUNT)
EXPRESSIONS: dict[str, tuple[Callable[[Node], Node], Any]] = {
    "itself": (lambda i: i, IOTA),
    "part": (lambda i: build.view(i, (3,), 5, (-2,)), IOTA[5::-2]),
    "shifted": (lambda i: call("subtract", i, integer(3)), IOTA - 3),
    "scaled": (lambda i: call("multiply", call("subtract", i, integer(3)), integer(-4)),
               (IOTA - 3) * -4),
    "wrapped": (lambda i: call("remainder", call("subtract", i, integer(3)), integer(5)),
                (IOTA - 3) % 5),
    "masked": (lambda i: call("bitwise_and", call("subtract", i, integer(3)), integer(5)),
               (IOTA - 3) & 5),
    "halved": (lambda i: call("right_shift", call("subtract", i, integer(9)), integer(1)),
               (IOTA - 9) >> 1),
    "divided": (lambda i: call("floor_divide", call("subtract", i, integer(9)), integer(4)),
                (IOTA - 9) // 4),
    "clipped": (lambda i: call("minimum", call("maximum", i, integer(2)), integer(4)),
                np.clip(IOTA, 2, 4)),
    "negative": (lambda i: call("negative", i), -IOTA),
    "joined": (lambda i: build.concatenate([i, call("negative", i)], 0),
               np.concatenate([IOTA, -IOTA])),
    "narrow": (lambda i: build.cast(i, np.dtype(np.int8)), IOTA.astype("i1")),
    "summed": (lambda i: build.reduce("add", i, (0,), INT64), IOTA.sum()),
    "gathered": (lambda i: gather(call("add", i, integer(5)), build.cast(i, INT32)), IOTA + 5),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_the_range_of_an_expression_holds_all_its_elements(name: str) -> None:
    make, values = EXPRESSIONS[name]
    low, high = range_of(make(build.iota(COUNT)))
    assert low <= values.min()
    assert values.max() <= high
    assert high - low <= 50


def test_what_may_wrap_around_has_the_range_of_its_dtype() -> None:
    x = array(5, dtype=np.int8)
    assert range_of(x) == (-128, 127)
    wrapping = call("add", x, build.constant(np.int8(100)))
    assert range_of(wrapping) == (-128, 127)
    narrowed = build.cast(call("multiply", build.iota(300), integer(1)), np.dtype(np.uint8))
    assert range_of(narrowed) == (0, 255)
    floats = build.cast(array(5), INT64)
    assert range_of(floats) == (-(2**63), 2**63 - 1)
