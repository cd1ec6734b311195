"""Arrays that lie across the rows of a GPU's kernel: what goes through tiles in local memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from clfuse.codegen.kernels import render
from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.schedule.records import Kernel, Load
from clfuse.schedule.shape.local_tiles import pitch_of
from clfuse.target.traits import DeviceTraits, with_schedule
from tests.nodevice.schedule.test_tiles import transposed
from tests.support.recording import array, call, kernels, planned

GPU = with_schedule(DeviceTraits(kind="gpu", compute_units=16, local_nbytes=48 << 10), "gpu")


def only_kernel(*roots: Node, traits: DeviceTraits = GPU) -> Kernel:
    (kernel,) = kernels(planned(*roots, traits=traits))
    return kernel


def turned(kernel: Kernel) -> list[bool]:
    """Of every load and store, in order."""
    loads = [item for item in kernel.body if isinstance(item, Load)]
    return [item.turned for item in [*loads, *kernel.stores]]


@pytest.mark.parametrize(("dtype", "tile"), [
    (np.float64, (32, 32)), (np.float32, (32, 32)), (np.complex128, (32, 32)),
    (np.int16, (64, 64)), (np.uint8, (64, 64)),
])
def test_transposed_operand_goes_through_a_tile(dtype: Any, tile: tuple[int, int]) -> None:
    kernel = only_kernel(call("add", array(300, 700, dtype=dtype),
                              transposed(array(700, 300, dtype=dtype))))
    assert (kernel.local_tile, kernel.mirrored) == (tile, False)
    assert turned(kernel) == [False, True, False]
    assert kernel.work_items == min(
        -(-300 // tile[0]) * -(-700 // tile[1]) * kernel.work_group, GPU.work_items)


def test_square_read_both_ways_comes_from_memory_once() -> None:
    a, b = array(300, 300), array(300, 300)
    assert only_kernel(call("add", a, transposed(a))).mirrored
    assert not only_kernel(call("add", b, transposed(a))).mirrored
    both = call("add", call("add", a, transposed(a)), transposed(b))
    assert not only_kernel(both).mirrored
    part, shifted = (
        build.view(a, (299, 299), offset, strides)
        for offset, strides in ((0, (300, 1)), (1, (1, 300)))
    )
    assert not only_kernel(call("add", part, shifted)).mirrored
    source = render(only_kernel(call("add", a, transposed(a))), GPU, lambda value: value).source
    assert source.count("a0[") == 1  # one load, of both tiles


def test_one_result_across_is_turned_not_its_operands() -> None:
    kernel = only_kernel(call("add", transposed(array(700, 300)), transposed(array(700, 300))))
    assert turned(kernel) == [False, False, True]
    source = render(kernel, GPU, lambda value: value).source
    assert source.count("__local") == 1


def test_lanes_that_share_memory_need_no_tile() -> None:
    narrow = build.view(array(5000, 3, dtype=np.float32), (3, 5000), 0, (1, 3))
    columns = build.view(array(300, 9 * 700), (300, 700), 0, (9 * 700, 9))
    beside = call("add", array(300, 700), array(300, 700))
    for node in (call("negative", narrow), call("negative", columns), beside):
        assert only_kernel(node).local_tile == (0, 0)


def test_tiles_are_as_flat_as_their_rows_are_few() -> None:
    kernel = only_kernel(call("add", array(8, 5000), transposed(array(5000, 8))))
    assert kernel.local_tile == (8, 128)


def test_tiles_fit_in_local_memory() -> None:
    operands = [transposed(array(700, 300)) for _ in range(3)]
    straight = [array(300, 700) for _ in range(4)]
    node = straight[0]
    for operand in [*straight[1:], *operands]:
        node = call("add", node, operand)
    for nbytes, side, count in ((64 << 10, 16, 3), (8 << 10, 16, 1), (2 << 10, 0, 0)):
        traits = replace(GPU, local_nbytes=nbytes)
        kernel = only_kernel(node, traits=traits)
        assert (kernel.local_tile, sum(turned(kernel))) == ((side, side), count)
        source = render(kernel, traits, lambda value: value).source
        assert source.count("__local") == count
        elements = side * pitch_of(side, np.dtype(np.float64))
        assert source.count(f"[{elements}];") == count
        assert 8 * elements * count <= nbytes // 2


def test_columns_of_a_tile_lie_in_different_banks() -> None:
    for dtype, length in (("u1", 64), ("u2", 64), ("f4", 32), ("f4", 8), ("f4", 16)):
        pitch = pitch_of(length, np.dtype(dtype)) * np.dtype(dtype).itemsize
        assert pitch % 4 == 0
        assert pitch // 4 % 2 == 1  # words, of which 32 lie side by side
