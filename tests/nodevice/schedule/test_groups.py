"""Work-groups of reductions on a GPU (`clfuse.schedule.shape.groups`), and what row programs hold
in registers (`clfuse.schedule.finish.holding`)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clfuse.codegen.kernels import render
from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.schedule.records import Held, Kernel, Load
from clfuse.schedule.traffic import reads_of, writes_of
from clfuse.target.traits import DeviceTraits, with_schedule
from tests.support.recording import array, call, kernels, planned, softmax

H100 = with_schedule(
    DeviceTraits(name="H100", compute_units=132, kind="gpu", local_nbytes=49152), "gpu"
)
SMALL = with_schedule(DeviceTraits(compute_units=2, kind="gpu", max_work_group=64), "gpu")
FLOAT32 = np.dtype(np.float32)
ENOUGH = 2048 * 132


def sums(axis: int, *shape: int) -> Node:
    return build.reduce("add", array(*shape, dtype=FLOAT32), (axis,), FLOAT32)


def rows32(*shape: int) -> Node:
    """softmax in single precision."""
    x = array(*shape, dtype=FLOAT32)
    column = (*shape[:-1], 1)
    most = build.reshape(build.reduce("maximum", x, (1,), FLOAT32), column)
    powers = call("exp", call("subtract", x, most))
    total = build.reshape(build.reduce("add", powers, (1,), FLOAT32), column)
    return call("divide", powers, total)


def spread(x: Node, axis: int) -> Node:
    """Sums of the squared distances from the means along an axis."""
    kept = tuple([1 if place == axis else extent for place, extent in enumerate(x.shape)])
    total = build.reshape(build.reduce("add", x, (axis,), x.dtype), kept)
    count = build.constant(x.dtype.type(x.shape[axis]))
    distance = call("subtract", x, call("divide", total, count))
    return build.reduce("add", call("multiply", distance, distance), (axis,), x.dtype)


def beside(kernel: Kernel) -> int:
    return kernel.work_group // kernel.fold_items


@pytest.mark.parametrize("shape", [(64_000, 1000), (8000, 1250), (1_000_000, 64), (5_000_000, 2)])
def test_sums_of_columns_have_work_items_enough(shape: tuple[int, int]) -> None:
    schedule = planned(sums(0, *shape), traits=H100)
    first, second = kernels(schedule)
    assert first.work_items >= ENOUGH
    assert (first.vector, second.vector) == (0, 0)  # neighbours have neighbouring columns
    partial = sum(nbytes for _, _, nbytes in writes_of(first, schedule))
    assert partial <= math.prod(shape) * 4 / 32


def test_columns_enough_have_a_work_item_each() -> None:
    (kernel,) = kernels(planned(sums(0, 40, 4_000_000), traits=H100))
    assert (kernel.fold_items, beside(kernel)) == (1, 256)


def test_neighbours_take_whole_sectors() -> None:
    for shape in ((64_000, 1000), (100_000, 100), (3000, 8)):
        for kernel in kernels(planned(sums(0, *shape), traits=H100)):
            assert beside(kernel) * 4 >= 32, shape


def test_columns_that_are_not_split_share_a_group_of_work_items() -> None:
    (kernel,) = kernels(planned(spread(array(250, 64, dtype=FLOAT32), 0), traits=H100))
    assert (kernel.fold_items, beside(kernel)) == (32, 8)
    assert kernel.work_items == 64 * 32


def test_short_rows_share_a_group() -> None:
    items = {}
    for length in (9, 20, 64, 65, 1000, 2048, 100_000):
        kernel, *_ = kernels(planned(sums(1, 50_000, length), traits=H100))
        items[length] = kernel.fold_items or kernel.work_group
        rows = -(-50_000 // (kernel.work_group // items[length]))
        assert kernel.work_items == min(rows, 1 << 16) * kernel.work_group
    assert items == {9: 8, 20: 8, 64: 8, 65: 16, 1000: 128, 2048: 256, 100_000: 256}


def test_groups_are_no_larger_than_the_device_has_them() -> None:
    for root in (sums(0, 5000, 3), sums(1, 5000, 3000), rows32(5000, 300)):
        for kernel in kernels(planned(root, traits=SMALL)):
            assert kernel.work_group == 64
            assert kernel.fold_items <= 64


@pytest.mark.parametrize("length", [20, 100, 1000, 8192])
def test_softmax_reads_and_writes_each_element_once(length: int) -> None:
    schedule = planned(rows32(3000, length), traits=H100)
    (kernel,) = kernels(schedule)
    whole = 3000 * length * 4
    assert [nbytes for _, _, nbytes in reads_of(kernel, schedule)] == [whole]
    assert [nbytes for _, _, nbytes in writes_of(kernel, schedule)] == [whole]
    assert [sum(isinstance(item, Load) for item in phase.body) for phase in kernel.phases] == [
        1, 0, 0,
    ]
    assert kernel.held * kernel.fold_items >= length
    text = render(kernel, H100, lambda value: value).source
    assert text.count(f"nth < {kernel.held}; nth++") == 3


def test_rows_that_are_too_long_for_registers_are_loaded_again() -> None:
    schedule = planned(rows32(3000, 20_000), traits=H100)
    (kernel,) = kernels(schedule)
    assert [len(phase.stores) for phase in kernel.phases] == [0, 1, 1]
    assert not any(isinstance(item, Held) for phase in kernel.phases for item in phase.body)
    assert kernel.dropped == frozenset()


def test_what_a_program_asks_for_is_stored_though_it_is_held() -> None:
    x = array(3000, 100, dtype=FLOAT32)
    most = build.reshape(build.reduce("maximum", x, (1,), FLOAT32), (3000, 1))
    powers = call("exp", call("subtract", x, most))
    total = build.reduce("add", powers, (1,), FLOAT32)
    result = call("divide", powers, build.reshape(total, (3000, 1)))
    schedule = planned(result, powers, traits=H100)
    (kernel,) = kernels(schedule)
    assert [len(phase.stores) for phase in kernel.phases] == [0, 1, 1]
    assert any(isinstance(item, Held) for phase in kernel.phases for item in phase.body)
    assert kernel.dropped == frozenset()


def test_moments_read_each_element_once() -> None:
    for shape, axis in (((2000, 4000), 1), ((500, 4096), 0)):
        schedule = planned(spread(array(*shape, dtype=FLOAT32), axis), traits=H100)
        (kernel,) = kernels(schedule)
        loads = [item for phase in kernel.phases for item in phase.body if isinstance(item, Load)]
        assert len(loads) == 1, shape


def test_registers_are_few_enough() -> None:
    """Doubles are twice as large: half as many are held, and no more."""
    (held,) = kernels(planned(softmax(array(3000, 4096)), traits=H100))
    (again,) = kernels(planned(softmax(array(3000, 4097)), traits=H100))
    assert (held.held, held.fold_items) == (16, 256)
    assert any(isinstance(item, Held) for phase in held.phases for item in phase.body)
    assert not any(isinstance(item, Held) for phase in again.phases for item in phase.body)


def test_other_values_of_a_phase_are_loaded_by_each() -> None:
    """A vector that all rows are multiplied by is in the caches, and takes no registers."""
    x, factors = array(3000, 1000, dtype=FLOAT32), array(1000, dtype=FLOAT32)
    total = build.reshape(build.reduce("add", x, (1,), FLOAT32), (3000, 1))
    weights = build.broadcast(factors, (3000, 1000))
    scaled = call("multiply", call("subtract", x, total), weights)
    schedule = planned(scaled, traits=H100)
    (kernel,) = kernels(schedule)
    last = kernel.phases[-1]
    assert sum(isinstance(item, Held) for item in last.body) == 1
    assert sum(isinstance(item, Load) for item in last.body) == 1


def test_a_group_waits_twice_for_each_fold() -> None:
    (kernel,) = kernels(planned(sums(1, 50_000, 2048), traits=H100))
    text = render(kernel, H100, lambda value: value).source
    assert text.count("barrier(") == 3  # one more before local memory is written to again


def sines(middle: int) -> Node:
    """Rounds of steps between two folds of rows; what `middle` of them make is read later, too."""
    x = array(3000, 300, dtype=FLOAT32)
    column = (3000, 1)
    most = build.reshape(build.reduce("maximum", x, (1,), FLOAT32), column)
    y = call("subtract", x, most)
    for _ in range(middle):
        y = call("sin", y)
    z = y
    for _ in range(40):
        z = call("sin", z)
    total = build.reshape(build.reduce("add", z, (1,), FLOAT32), column)
    return call("divide", y, total)


@pytest.mark.parametrize("middle", [1, 40])
def test_a_loop_of_steps_leaves_what_later_phases_hold(middle: int) -> None:
    """What a phase of the middle stores is not stored after all, and still needed."""
    (kernel,) = kernels(planned(sines(middle), traits=H100))
    _, between, last = kernel.phases
    (held,) = [item for item in last.body if isinstance(item, Held)]
    assert between.lent == {held.source}
    assert not between.stores
    text = render(kernel, H100, lambda value: value).source
    assert text.count("h1[nth] = ") == 1
    assert text.count("= h1[nth];") == 1


def test_what_work_items_have_added_up_is_added_in_pairs() -> None:
    (kernel,) = kernels(planned(sums(1, 50_000, 64), traits=H100))
    assert (kernel.fold_items, kernel.compensated) == (8, False)
    text = render(kernel, H100, lambda value: value).source
    places = [f"s0[across * 8 + ({item})]" for item in range(8)]
    while len(places) > 1:
        half = len(places) // 2
        places = [f"(({places[item]} + {places[item + half]}))" for item in range(half)]
    assert f"q0 = {places[0]};" in text


@pytest.mark.parametrize(
    ("axis", "shape", "most"), [(1, (50_000, 4096), 16), (0, (128, 10**6), 128)]
)
def test_sums_of_many_elements_keep_their_errors(
    axis: int, shape: tuple[int, int], most: int
) -> None:
    """NumPy adds rows in eight parts of a block, and down columns one after the other."""
    (kernel,) = kernels(planned(sums(axis, *shape), traits=H100))
    assert shape[axis] // kernel.fold_items == most
    assert not kernel.compensated
    longer = tuple([extent * 2 if place == axis else extent for place, extent in enumerate(shape)])
    (kernel,) = kernels(planned(sums(axis, *longer), traits=H100))
    assert kernel.compensated


def test_rows_enough_have_half_as_many_work_items_each() -> None:
    for rows, items in ((64_000, 64), (1000, 128)):
        (kernel,) = kernels(planned(rows32(rows, 1000), traits=H100))
        assert (kernel.fold_items, kernel.held) == (items, 1024 // items)
    (double,) = kernels(planned(softmax(array(64_000, 1000)), traits=H100))
    assert double.fold_items == 128


def test_elements_in_registers_are_asked_for_but_the_last() -> None:
    (kernel,) = kernels(planned(rows32(64_000, 1000), traits=H100))
    source = render(kernel, H100, lambda value: value).source
    assert source.count("if (exists && (nth < 15 || t < length))") == 3
    assert "if (t < length)" not in source


def test_what_a_group_has_found_is_loaded_before_it_is_compared() -> None:
    (kernel,) = kernels(planned(rows32(64_000, 1000), traits=H100))
    lines = render(kernel, H100, lambda value: value).source.splitlines()
    compared = [line for line in lines if "!=" in line and "s0[" in line]
    assert compared == []


def test_groups_of_two_trees_wait_four_times_a_unit() -> None:
    (kernel,) = kernels(planned(rows32(64_000, 1000), traits=H100))
    assert render(kernel, H100, lambda value: value).source.count("barrier(") == 4
    one = kernels(planned(sums(1, 64_000, 1000), traits=H100))[0]
    source = render(one, H100, lambda value: value).source
    assert source.rstrip().removesuffix("}").rstrip().removesuffix("}").rstrip().endswith(
        "barrier(CLK_LOCAL_MEM_FENCE);"
    )
