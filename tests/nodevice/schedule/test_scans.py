"""Scans in plans, as counts of kernels and bytes; no device is needed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.ops.table import REDUCTIONS
from clfuse.schedule.kinds import is_sequential
from clfuse.target.traits import DeviceTraits, with_schedule
from tests.support.recording import (
    FLOAT64,
    TRAITS,
    array,
    call,
    kernels,
    moved_nbytes,
    number,
    planned,
)

N = 1_000_000
GPU = with_schedule(DeviceTraits(compute_units=2), "gpu")
FEW = 64 * 8  # bytes of the folds of some pieces


def cumsum(node: Node, axis: int = 0) -> Node:
    return build.scan("add", node, axis, node.dtype)


@pytest.mark.parametrize("traits", [TRAITS, GPU], ids=["cpu", "gpu"])
def test_one_long_row_is_read_twice_and_written_once(traits: DeviceTraits) -> None:
    doubled = call("multiply", array(N), number(2.0))
    schedule = planned(call("sqrt", cumsum(doubled)), traits=traits)
    assert [kernel.kind.name for kernel in kernels(schedule)] == ["reduce", "scan"]
    assert 0 < moved_nbytes(schedule) - 3 * 8 * N < 40 * FEW
    assert len(schedule.slots) == 2
    assert [cut.what for cut in schedule.cuts] == ["add of pieces"]


def test_one_long_row_is_read_once_where_groups_may_wait() -> None:
    traits = replace(with_schedule(DeviceTraits(compute_units=64), "gpu"), groups_progress=True)
    schedule = planned(call("sqrt", cumsum(call("multiply", array(N), number(2.0)))), traits=traits)
    cleared, scan = kernels(schedule)
    assert [cleared.kind.name, scan.kind.name] == ["map", "scan"]
    assert scan.work_items == scan.chunks * 256
    assert scan.chunk_length == 256 * scan.unroll
    words = 32 + 2 * 4 * scan.chunks  # the ticket; 16 bits of a double each, of two folds a tile
    assert cleared.extents == (words,)
    assert moved_nbytes(schedule) == 2 * 8 * N + 2 * 4 * words


def test_tiles_of_a_scan_fit_into_local_memory() -> None:
    traits = replace(with_schedule(DeviceTraits(compute_units=64), "gpu"), local_nbytes=4096)
    (_, scan) = kernels(planned(cumsum(array(N)), traits=traits))
    assert 8 * (scan.work_group * (scan.unroll + 1) * 33 // 32) <= 4096
    short = with_schedule(DeviceTraits(compute_units=64), "gpu")
    (scan,) = kernels(planned(cumsum(array(100_000, 40), 1), traits=short))
    assert (scan.work_group, scan.unroll) == (64, 1)


@pytest.mark.parametrize("axis", [0, 1])
def test_many_rows_are_scanned_in_one_pass(axis: int) -> None:
    x = array(1000, 1000)
    schedule = planned(call("add", cumsum(x, axis), call("negative", x)))
    (kernel,) = kernels(schedule)
    assert kernel.kind.name == "scan"
    assert kernel.width == 8
    assert moved_nbytes(schedule) == 2 * 8 * N


def test_a_costly_producer_is_stored_where_the_result_goes() -> None:
    x = array(N)
    costly = call("sin", call("exp", x))
    schedule = planned(cumsum(costly))
    assert len(kernels(schedule)) == 2
    assert 0 < moved_nbytes(schedule) - 4 * 8 * N < 3 * FEW
    assert 0 < sum(schedule.slots) - 8 * N <= FEW


def test_scans_along_one_axis_share_their_kernels() -> None:
    x, y = array(N), array(N)
    largest = build.scan("maximum", y, 0, FLOAT64)
    schedule = planned(cumsum(x), largest, call("subtract", largest, cumsum(x)))
    assert len(kernels(schedule)) == 2
    assert 0 < moved_nbytes(schedule) - (2 * 2 + 3) * 8 * N < 6 * FEW


def test_a_scan_of_a_scan_and_a_sum_of_one_go_through_memory() -> None:
    x = array(1000, 1000)
    table = cumsum(cumsum(x, 0), 1)
    assert len(kernels(planned(table))) == 2
    total = build.reduce("add", cumsum(x, 0), (0, 1), FLOAT64)
    assert [cut.nbytes for cut in planned(total).cuts if cut.node >= 0] == [8 * N]


def test_what_overflows_on_the_way_is_whole_on_a_cpu() -> None:
    float16, int32 = np.dtype(np.float16), np.dtype(np.int32)
    assert is_sequential("multiply", FLOAT64)
    assert is_sequential("add", float16)
    assert not is_sequential("add", FLOAT64)
    assert not is_sequential("multiply", int32)
    for name, dtype in (("multiply", FLOAT64), ("add", float16)):
        (kernel,) = kernels(planned(build.scan(name, array(N, dtype=dtype), 0, dtype)))
        assert kernel.chunks == 1
        assert kernel.work_items == 1


@pytest.mark.parametrize("waits", [False, True], ids=["pieces", "look-back"])
@pytest.mark.parametrize(("shape", "axis"), [
    ((10_000_000,), 0), ((10, 1_000_000), 1), ((1_000_000, 10), 0), ((3200, 3200), 0),
    ((3200, 3200), 1), ((20, 25_000, 20), 1),
])
def test_no_scan_of_a_gpu_has_few_work_items(
    waits: bool, shape: tuple[int, ...], axis: int
) -> None:
    """Ten million elements, of every fold and dtype, along every axis of every shape."""
    traits = replace(
        with_schedule(DeviceTraits(compute_units=132, local_nbytes=48 << 10), "gpu"),
        groups_progress=waits,
    )
    for name, fold in REDUCTIONS.items():
        for char in "?bBhHiIqQefdFD":
            dtype = np.dtype(char)
            if fold.identity_of(dtype.name) is None:
                continue
            made = build.scan(name, array(*shape, dtype=dtype), axis, dtype)
            large = [
                kernel for kernel in kernels(planned(made, traits=traits))
                if math.prod(kernel.extents) >= 10_000_000
            ]
            assert 1 <= len(large) <= 2
            # Without waiting groups the running product of floats is one group's for each row.
            walks = name == "multiply" and char in "efd" and not waits
            least = 256 if walks else 9_000
            for kernel in large:
                assert kernel.work_items >= least, (name, char, kernel.label, kernel.work_items)


def test_a_result_takes_over_an_input_that_dies() -> None:
    made = call("negative", cumsum(call("sqrt", array(1000, 1000)), 1))
    schedule = planned(made)
    assert len(schedule.launches) == 1
    assert list(schedule.reuses) == list(range(len(schedule.slots))) == [0]


def test_reshapes_of_a_folds_carry_broadcast_like_others() -> None:
    total = build.reduce("add", array(3, 24), (0,), FLOAT64)
    for carried in (total, cumsum(array(24))):
        shown = build.reshape(carried, (2, 12))
        planned(call("add", shown, array(12)))


def test_one_element_along_the_axis_is_no_scan() -> None:
    x = array(1, 5)
    assert cumsum(x) is x
