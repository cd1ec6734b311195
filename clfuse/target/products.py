"""Tiles of matrix products on GPUs: how many results a group and a work-item have, and into how
many pieces the inner extent is cut where the tiles alone are too few for the device.

A group of 128 or 256 work-items makes a tile of results; every work-item has a block of them in its
registers. Larger blocks load less from local memory; smaller tiles leave fewer multiprocessors idle
in the last round of groups.
"""

from __future__ import annotations

import math

import numpy as np

from clfuse.dataclass import frozen
from clfuse.target.traits import DeviceTraits

__all__ = ["ACROSS", "ProductTile", "pieces_of_inner", "tile_of_product"]

ACROSS = 16
"""Work-items of a group along a row of results."""

VECTOR_NBYTES = 16
"""What a work-item of a GPU loads with one instruction."""

BRING_COST = 4
"""Four bytes' way from global to local memory, in products of four bytes."""

TILE_WORDS = 128
"""Registers of 32 bits that the largest blocks need: two groups of 256 on a multiprocessor that has
65,536 of them."""

LOCAL_SHARE = 0.55
"""How much of the local memory that a group may have the tiles take, so that two groups run at once
where a multiprocessor has a little more than that."""

LOAD_COST = 4
"""A vector's load from local memory, in products of four bytes: a warp's takes the one path to
local memory as long as four multiprocessor quarters take to issue a product each."""

MIN_PIECE = 32
"""Inner extent of a piece: shorter ones are little work beside the partial results' way through
memory."""

MAX_PIECES = 512

LAUNCH_SLOTS = 1_000_000
"""The launch that adds the pieces, in products of a multiprocessor: 5 us of 128 a cycle."""

BYTE_SLOTS = 10
"""A byte of partial results, in products: a multiprocessor moves 13 bytes in the time of 128 of
them (H100)."""


@frozen
class ProductTile:
    """Schedule of one product: `down` x 16 work-items, blocks of `each_row` x `each_column`
    results, `depth` products of every result a step, vectors of `lanes` elements."""

    down: int
    each_row: int
    each_column: int
    depth: int
    lanes: int

    @property
    def group(self) -> int:
        """Work-items of a group."""
        return self.down * ACROSS

    @property
    def rows(self) -> int:
        """Rows of a group's tile."""
        return self.down * self.each_row

    @property
    def columns(self) -> int:
        """Columns of a group's tile."""
        return ACROSS * self.each_column

    @property
    def unrolled(self) -> int:
        """Products of every result that are written out one after the other: with more, operands
        that wait beside the sums take more than 128 registers, and half as many groups run (ptxas
        for sm_90)."""
        return self.lanes // 2

    @property
    def local_nbytes(self) -> int:
        """Local memory of a group: two buffers for both operands, rows a vector apart from a power
        of two, so that what is stored turned around meets other banks."""
        itemsize = VECTOR_NBYTES // self.lanes
        return 2 * self.depth * (self.rows + self.columns + 2 * self.lanes) * itemsize

    @property
    def cost(self) -> float:
        """What one step of the inner extent takes a multiprocessor, for a tile."""
        loads = (self.each_row + self.each_column) / self.lanes
        products = self.each_row * self.each_column * 4 / self.lanes
        words = (self.rows + self.columns) * 4 / self.lanes
        return self.group * (products + LOAD_COST * loads) + BRING_COST * words


_TILES = {
    4: (ProductTile(16, 8, 8, 8, 4), ProductTile(8, 8, 8, 8, 4), ProductTile(16, 4, 4, 16, 4)),
    8: (ProductTile(16, 8, 4, 8, 2), ProductTile(8, 8, 4, 8, 2)),
}


def tile_of_product(
    shape: tuple[int, ...], dtype: np.dtype, traits: DeviceTraits
) -> ProductTile | None:
    """The tile for a product of that shape (batch dimensions, rows, columns); None where the device
    or the shape suits none.

    The one that takes the least time, which whole rounds of groups take.
    """
    tiles = _suitable(shape, dtype, traits)
    return min(tiles, key=lambda tile: _time(shape, tile, traits), default=None)


def count_of(shape: tuple[int, ...], tile: ProductTile) -> int:
    """How many tiles a product of that shape has."""
    down, along = -(-shape[-2] // tile.rows), -(-shape[-1] // tile.columns)
    return math.prod(shape[:-2]) * down * along


def pieces_of_inner(
    shape: tuple[int, ...], inner: int, dtype: np.dtype, traits: DeviceTraits
) -> int:
    """Into how many pieces of equal length the inner extent is cut; 1 where that takes longer.

    A divisor of the extent, where one is near: what is left over is a product of its own.
    """
    tiles = _suitable(shape, dtype, traits)
    if not tiles:
        return 1
    whole = min(_time(shape, tile, traits) for tile in tiles)
    best, most = 1, 0.0
    for tile in tiles:
        room = 2 * traits.compute_units // count_of(shape, tile)
        count = _near_divisor(inner, min(room, inner // MIN_PIECE, MAX_PIECES))
        nbytes = 2 * count * math.prod(shape) * dtype.itemsize
        spared = (whole - _time((count, *shape), tile, traits) / count) * inner
        spared -= LAUNCH_SLOTS + BYTE_SLOTS * nbytes / traits.compute_units
        if count > 1 and spared > most:
            best, most = count, spared
    return best


def _suitable(shape: tuple[int, ...], dtype: np.dtype, traits: DeviceTraits) -> list[ProductTile]:
    # A product of whole numbers of eight bytes is several instructions, with registers of its own.
    if traits.item_words < TILE_WORDS or (dtype.kind != "f" and dtype.itemsize > 4):
        return []
    return [
        tile
        for tile in _TILES.get(dtype.itemsize, ())
        if tile.group <= traits.max_work_group
        and tile.local_nbytes <= LOCAL_SHARE * traits.local_nbytes
        # A tile that is mostly outside of the matrix is work for nothing.
        and shape[-2] > tile.rows // 2 and shape[-1] > tile.columns // 2
    ]


def _time(shape: tuple[int, ...], tile: ProductTile, traits: DeviceTraits) -> float:
    """What one step of the inner extent takes the busiest multiprocessor."""
    return -(-count_of(shape, tile) // traits.compute_units) * tile.cost


def _near_divisor(inner: int, wanted: int) -> int:
    """The largest divisor that is more than half of what is wanted, or that."""
    near = range(wanted, wanted // 2, -1)
    return next((count for count in near if inner % count == 0), max(wanted, 1))
