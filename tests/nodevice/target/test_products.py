"""Tiles of matrix products follow the device: small ones where large ones leave it idle, pieces of
the inner extent where there are few tiles at all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from clfuse.codegen.matmul import render_matmul
from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.schedule.records import Kernel, LibraryCall
from clfuse.target.products import count_of, pieces_of_inner, tile_of_product
from clfuse.target.traits import DeviceTraits, with_schedule
from tests.support.recording import array, planned

GPU = with_schedule(
    DeviceTraits(
        name="GPU", kind="gpu", compute_units=132, local_nbytes=48 << 10, unified_memory=False
    ),
    "gpu",
)
SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


def side(shape: tuple[int, ...], dtype: np.dtype = SINGLE) -> tuple[int, int] | None:
    tile = tile_of_product(shape, dtype, GPU)
    return None if tile is None else (tile.rows, tile.columns)


def product(left: Node, right: Node, dtype: np.dtype = SINGLE) -> Node:
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    return build.library("matmul", (left, right), (*batch, left.shape[-2], right.shape[-1]), dtype)


def test_whole_rounds_take_large_tiles() -> None:
    assert side((8192, 8192)) == (128, 128)
    assert side((8192, 8192), DOUBLE) == (128, 64)


def test_one_tile_more_than_whole_rounds_takes_smaller_ones() -> None:
    tile = tile_of_product((2896, 2896), SINGLE, GPU)
    assert tile is not None
    assert count_of((2896, 2896), tile) == 46 * 23  # 23 x 23 of the large ones are 4 x 132 + 1
    assert (tile.rows, tile.columns) == (64, 128)


def test_few_results_take_small_tiles() -> None:
    assert side((256, 256)) == (64, 64)
    assert side((1000, 64, 64)) == (64, 64)
    assert side((20, 4000)) is None
    assert side((1000, 64, 64), np.dtype(np.complex64)) is None


def test_two_groups_fit_a_multiprocessor() -> None:
    for shape in ((8192, 8192), (2896, 2896), (256, 256)):
        for dtype in (SINGLE, DOUBLE):
            tile = tile_of_product(shape, dtype, GPU)
            assert tile is not None
            results = tile.each_row * tile.each_column * dtype.itemsize // 4
            assert results <= 64
            assert tile.local_nbytes <= 26 << 10
            assert tile.rows * tile.depth % (tile.group * tile.lanes) == 0
            assert tile.columns * tile.depth % (tile.group * tile.lanes) == 0


def test_a_device_of_few_registers_has_no_shared_tiles() -> None:
    assert tile_of_product((8192, 8192), SINGLE, replace(GPU, item_words=64)) is None


@pytest.mark.parametrize(("shape", "inner", "pieces"), [
    ((64, 64), 250_000, 250),  # a divisor, near twice the multiprocessors
    ((64, 64), 250_007, 264),
    ((256, 256), 256, 8),
    ((256, 256), 64, 1),  # would not pay for a launch
    ((2896, 2896), 2896, 1),
    ((1000, 64, 64), 4000, 1),
])  # fmt: skip
def test_inner_extents_are_cut_for_idle_multiprocessors(
    shape: tuple[int, ...], inner: int, pieces: int
) -> None:
    assert pieces_of_inner(shape, inner, SINGLE, GPU) == pieces


def test_pieces_are_one_batch_and_a_fold() -> None:
    x = array(250_000, 64, dtype=SINGLE)
    turned = build.view(x, (64, 250_000), 0, (1, 64))
    call, *folds = planned(product(turned, x), traits=GPU).launches
    assert isinstance(call, LibraryCall)
    assert call.shape == (250, 64, 64)
    assert [operand.strides for operand in call.operands] == [(64_000, 1, 64), (64_000, 64, 1)]
    assert all(isinstance(fold, Kernel) and fold.kind.folds for fold in folds)


def test_pieces_that_leave_something_over_have_one_product_more() -> None:
    x, y = array(64, 250_007, dtype=SINGLE), array(250_007, 64, dtype=SINGLE)
    calls = [each for each in planned(product(x, y), traits=GPU).launches
             if isinstance(each, LibraryCall)]
    assert [call.shape for call in calls] == [(264, 64, 64), (64, 64)]
    pieces, left_over = [call.operands[0].shape[-1] for call in calls]
    assert 264 * pieces + left_over == 250_007


def test_products_of_a_cpu_are_not_cut() -> None:
    x, y = array(64, 250_000, dtype=SINGLE), array(250_000, 64, dtype=SINGLE)
    (call,) = planned(product(x, y)).launches
    assert isinstance(call, LibraryCall)
    assert call.shape == (64, 64)


def source_of(left: Node, right: Node) -> str:
    call = planned(product(left, right), traits=GPU).launches[0]
    assert isinstance(call, LibraryCall)
    return render_matmul(call, GPU, lambda value: value).source


def test_vectors_are_loaded_where_all_lie_at_their_places() -> None:
    x, y = array(2048, 2048, dtype=SINGLE), array(2048, 2048, dtype=SINGLE)
    assert source_of(x, y).count("*(__global const float4*)") == 4  # before the loop and in it
    odd = array(2048, 2047, dtype=SINGLE)
    beside = array(2047, 2048, dtype=SINGLE)
    assert source_of(odd, beside).count("*(__global const float4*)") == 2
    shifted = build.view(y, (1024, 2044), 1, (2048, 1))
    assert source_of(array(2048, 1024, dtype=SINGLE), shifted).count(
        "*(__global const float4*)"
    ) == 2
