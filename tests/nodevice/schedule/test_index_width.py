"""Indices have 32 bits only where no loop leaves them, also not where it ends: loops of a GPU go
past the end by as many elements as there are work-items.

The devices are written down: an H100's 132 multiprocessors make 1,081,344 work-items.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from clfuse.codegen.kernels import render
from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.schedule.records import Access, Accumulator, Kernel, LibraryCall, Load, SortPass, Store
from clfuse.schedule.shape.geometry import index_limit, needs_wide_index
from clfuse.target.traits import DeviceTraits, with_schedule
from tests.nodevice.schedule.test_sorting import places_of, sorted_
from tests.support.recording import FLOAT64, array, call, kernels, planned, softmax

H100 = with_schedule(DeviceTraits(name="H100", compute_units=132, kind="gpu"), "gpu")
LARGEST = replace(H100, work_items=1 << 22)
CPU = with_schedule(DeviceTraits(compute_units=8, vector_bytes=64), "cpu")
MANY = replace(CPU, work_items=1 << 14)
DEVICES = {"H100": H100, "more": LARGEST, "CPU": CPU, "many": MANY}
MOST = 2**31 - 1
INT8 = np.dtype(np.int8)


def test_an_h100_has_more_work_items_than_were_held_in_reserve() -> None:
    assert H100.work_items == 1_081_344
    assert index_limit(H100) == 2**31 - 1_081_344
    assert index_limit(LARGEST) == 2**31 - (1 << 22)
    assert index_limit(CPU) == 2**31 - (1 << 16)
    assert index_limit(MANY) == 2**31 - (1 << 21)


def last_index(kernel: Kernel) -> int:
    """What the index of a kernel's outermost loop is when it stops, at most."""
    count = math.prod(kernel.extents)
    if kernel.schedule == "cpu":
        # Runs of units, and pieces that are whole vectors.
        rounding = kernel.width * kernel.unroll * max(kernel.chunks, 1)
        return count + max(kernel.work_items, rounding) - 1
    if kernel.nd_range is not None:
        # A work-item takes a vector or an element; those of rows stride over what is left.
        *rows, row = kernel.extents
        sizes = kernel.nd_range[0][1:]
        ends = [extent + size for extent, size in zip(rows[::-1], sizes, strict=True)]
        return max([row + kernel.width * kernel.work_group, *ends])
    groups = kernel.work_items // kernel.work_group
    if any(kernel.local_tile):
        return count + groups  # of tiles, which are fewer
    is_by_groups = kernel.kind.name == "scan" or (
        kernel.kind.name == "reduce" and kernel.vector >= len(kernel.extents) - kernel.reduced)
    return count - 1 + (max(groups, 2 * kernel.work_group) if is_by_groups
                             else kernel.work_items)


def roots(count: int) -> dict[str, Node]:
    """An operation of every kind over `count` elements, or a few less."""
    rows = count // 1000
    shapes = (count,), (rows, 1000), (8, count // 8)
    flat, tall, wide = (array(*shape, dtype=INT8) for shape in shapes)
    every = np.dtype(np.int64)
    return {
        "map": call("add", flat, flat),
        "turned": call("add", wide, build.view(array(count // 8, 8, dtype=INT8),
                                               (8, count // 8), 0, (1, 8))),
        "rows": build.reduce("add", tall, (1,), every),
        "columns": build.reduce("add", tall, (0,), every),
        "whole": build.reduce("add", flat, (0,), every),
        "softmax": softmax(array(rows, 1000)),
        "scan": build.scan("add", flat, 0, every),
        "scans": build.scan("add", tall, 0, every),
    }


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", list(roots(2000)))
def test_no_loop_of_any_kind_leaves_32_bits(device: str, name: str) -> None:
    traits = DEVICES[device]
    limit = index_limit(traits)
    for count in (limit - 1, limit - 1000, 2**31 - 2**17, 2**31 - 2**16 - 1, 2**31 - 1000):
        found = kernels(planned(roots(count)[name], traits=traits))
        # Later ones fold what the first leaves, which is little, and have its indices.
        assert found[0].wide_index == (math.prod(found[0].extents) >= limit)
        for kernel in found:
            assert kernel.wide_index or last_index(kernel) <= MOST, kernel.label
    (narrow, *_), (wide, *_) = (
        kernels(planned(roots(count)["map"], traits=traits)) for count in (limit - 1, limit)
    )
    assert (narrow.wide_index, wide.wide_index) == (False, True)


def test_the_text_counts_in_64_bits_there() -> None:
    for count, index in ((index_limit(H100) - 1, "int"), (index_limit(H100), "long")):
        (kernel,) = kernels(planned(roots(count)["map"], traits=H100))
        source = render(kernel, H100, lambda value: value).source
        assert f"const {index} item = get_global_id(0);" in source


def test_results_that_lie_far_away_count_too() -> None:
    far = Access(3 << 30, (1,))
    near = Access(0, (1000, 1))
    total = Accumulator(1, "add", 0, FLOAT64)
    kernel = Kernel(
        "reduce", (1000, 1000), [Load(0, 0, FLOAT64, near)], [], 1, [total],
        results=[Store(1, FLOAT64, 1, FLOAT64, far)],
    )
    assert needs_wide_index(kernel, CPU)
    kernel.results = [Store(1, FLOAT64, 1, FLOAT64, Access(0, (1,)))]
    assert not needs_wide_index(kernel, CPU)
    kernel.results = [Store(1, FLOAT64, 1, FLOAT64, Access(0, (3 << 21,)))]
    assert needs_wide_index(kernel, CPU)


def test_sorts_whose_indices_do_not_fit_are_the_hosts() -> None:
    def by_passes(root: Node, traits: DeviceTraits = H100) -> bool:
        launches = planned(root, traits=traits).launches
        assert {type(launch) for launch in launches} in ({SortPass}, {LibraryCall})
        return isinstance(launches[0], SortPass)

    assert by_passes(sorted_(array(1 << 28, dtype=INT8)))
    assert by_passes(sorted_(array(1 << 20, 8, dtype=INT8)))
    assert by_passes(sorted_(array(1 << 27, 2, dtype=INT8)))
    column = build.view(array(1 << 12, 1 << 20, dtype=INT8), (1 << 12,), 5, (1 << 20,))
    assert not by_passes(places_of(column))
