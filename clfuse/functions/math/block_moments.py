"""Mean and variance of long axes, computed in blocks that stay in the cache.

A variance needs the mean first, so it reads its array twice. An array that does not fit into the
cache is fetched from memory twice. In blocks of some thousand elements the second pass finds the
block in the cache (one kernel with two phases). Mostly there is no second pass, because the blocks
before predict the mean (`codegen.kinds.moments`). The parts are put together by

    sum((x - m)**2)  =  sum over blocks of  sum((x - m_b)**2) + d * (2 * sum(x - m_b) + n_b * d)
                                                                d = m_b - m

which cancels nothing and is as accurate as two passes. With exact means the distances from them
would add up to zero (Chan, Golub and LeVeque, 1979, have no such sum); with rounded ones they do
not, and without it values of 1e6 + N(0, 1) in float64 lost five digits.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np

from clfuse.arrays.expressions import combine, convert, scalar
from clfuse.arrays.promotion import FLOAT32, FLOAT64
from clfuse.dataclass import frozen
from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.target.traits import REREAD_NBYTES, WHOLE_NBYTES

LONG_NBYTES: Final = 1 << 18
"""An axis whose walk touches more than this many bytes is read in blocks."""

BLOCK_NBYTES: Final = 1 << 14
"""Bytes that the walk over a block touches: they are in the first-level cache, and so few that the
sums need no compensation. Variances of 64 MB: 4 to 10% less processor time than with 64 KiB, up to
8% less than with 8 KiB."""

COLUMNS_NBYTES: Final = 1 << 17
"""The same for a walk across rows, whose pieces of rows are fewer the longer it is."""

ROW_NBYTES: Final = 256
"""What a walk across rows takes of each at least: some cache lines side by side. Of shorter rows,
some together count as one."""

UNEVEN_NBYTES: Final = 1024
"""So they do up to here where a row is no whole number of vectors."""

VECTOR_NBYTES: Final = 64
"""The widest vectors there are."""


@frozen
class Part:
    """Some blocks of one length: their elements and their sums.

    `elements` has the shape ``(before, blocks, length, wide)``, `sums` ``(before, blocks, wide)``;
    `after` divides `wide`, which has the columns of some rows side by side.
    """

    elements: Node
    sums: Node
    length: int
    after: int

    def apart(self, node: Node) -> Node:
        """A node of the shape of `sums` with the columns of all rows below each other."""
        before, blocks, wide = node.shape
        return build.reshape(node, (before, blocks * wide // self.after, self.after))

    def means(self) -> Node:
        """The mean of every block; the largest number where the sum has overflowed, so that the
        variance of finite numbers is infinite, as NumPy's, and not NaN."""
        dtype = self.sums.dtype
        means = combine(np.divide, self.sums, scalar(self.length, dtype))
        most = scalar(np.finfo(dtype).max, dtype)
        least = scalar(np.finfo(dtype).min, dtype)
        return combine(np.maximum, combine(np.minimum, means, most), least)

    def squares(self, mean: Node) -> Node:
        """The squared distances of every block's elements from `mean` (before, 1, after), added
        up."""
        dtype = self.sums.dtype
        means = self.means()
        before, blocks, wide = means.shape
        distance = combine(
            np.subtract, self.elements, build.reshape(means, (before, blocks, 1, wide))
        )
        within = build.reduce("add", combine(np.multiply, distance, distance), (2,), dtype)
        within = self.apart(within)
        off = self.apart(build.reduce("add", distance, (2,), dtype))
        shift = combine(np.subtract, self.apart(means), mean)
        between = combine(np.multiply, shift, scalar(self.length, dtype))
        between = combine(np.add, combine(np.add, off, off), between)
        between = combine(np.multiply, between, shift)
        return build.reduce("add", combine(np.add, within, between), (1,), dtype)


class Blocks:
    """The blocks of a node along adjacent axes.

    shape (tuple of int): of results: without the axes.
    parts (list of Part): one, or two where the last block is shorter.
    """

    def __init__(self, node: Node, axes: tuple[int, ...], dtype: np.dtype) -> None:
        node = convert(node, dtype)
        shape = node.shape
        self.shape = shape[: axes[0]] + shape[axes[-1] + 1 :]
        self.before = math.prod(shape[: axes[0]])
        self.after = math.prod(shape[axes[-1] + 1 :])
        self.count = math.prod(shape[axes[0] : axes[-1] + 1])
        together = 1 if self.after == 1 else rows_together(self.after * dtype.itemsize)
        rows = self.count // together
        if self.after == 1:
            length = block_length(rows, BLOCK_NBYTES // dtype.itemsize)
        else:
            length = block_length(rows, rows_of_block(self.after * dtype.itemsize, together))
        blocks = rows // length
        rest = self.count - blocks * length * together
        self.parts = [self._part(node, 0, blocks, length, together)]
        if rest:
            self.parts.append(self._part(node, self.count - rest, 1, rest, 1))

    def _part(self, node: Node, start: int, blocks: int, length: int, together: int) -> Part:
        wide = self.after * together
        shape = (self.before, blocks, length, wide)
        strides = (self.count * self.after, length * wide, wide, 1)
        kept = tuple(
            [stride if extent != 1 else 0 for stride, extent in zip(strides, shape, strict=True)]
        )
        elements = build.view(node, shape, start * self.after, kept)
        sums = build.reduce("add", elements, (2,), node.dtype)
        return Part(elements, sums, length, self.after)

    def total(self) -> Node:
        """The sum along the axes, of `shape`."""
        dtype = self.parts[0].sums.dtype
        totals = [build.reduce("add", part.apart(part.sums), (1,), dtype) for part in self.parts]
        return build.reshape(_added(totals), self.shape)

    def squares(self) -> Node:
        """The squared distances from the mean, added up; of `shape`."""
        dtype = self.parts[0].sums.dtype
        mean = combine(np.divide, self.total(), scalar(self.count, dtype))
        mean = build.reshape(mean, (self.before, 1, self.after))
        return build.reshape(_added([part.squares(mean) for part in self.parts]), self.shape)


def _added(nodes: list[Node]) -> Node:
    total = nodes[0]
    for node in nodes[1:]:
        total = combine(np.add, total, node)
    return total


def are_worth_while(shape: tuple[int, ...], axes: tuple[int, ...], dtype: np.dtype) -> bool:
    """Whether reductions along `axes` of an array of this shape should go by blocks."""
    if dtype not in (FLOAT32, FLOAT64) or not axes or axes[-1] - axes[0] + 1 != len(axes):
        return False
    count = math.prod(shape[axes[0] : axes[-1] + 1])
    return count * _touched(math.prod(shape[axes[-1] + 1 :]), dtype) > LONG_NBYTES


def _touched(after: int, dtype: np.dtype) -> int:
    """Bytes of a row that a walk across rows takes together."""
    return min(after * dtype.itemsize, ROW_NBYTES)


@lru_cache(maxsize=1024)
def block_length(count: int, most: int) -> int:
    """Elements of a block: a divisor of `count` where there is one of a fitting size.

    >>> block_length(16_000_000, 2048), block_length(125_000, 512)
    (2000, 500)
    """
    for length in range(most, most // 4, -1):
        if count % length == 0:
            return length
    return min(most, count)


def rows_of_block(row_nbytes: int, together: int) -> int:
    """How many rows of several columns a block has, of which `together` count as one: fewer where
    whole rows are then walked at once.

    Half rows, one block of them after the other, took 1.8 times as long (columns of (30000, 300)
    float32).

    >>> rows_of_block(256, 1), rows_of_block(1200, 1), rows_of_block(20_000, 1)
    (512, 431, 512)
    """
    most = max(1, COLUMNS_NBYTES // (min(row_nbytes, ROW_NBYTES) * together))
    walked = -(-row_nbytes * together // VECTOR_NBYTES) * VECTOR_NBYTES
    return min(most, REREAD_NBYTES // walked) if walked <= WHOLE_NBYTES else most


def rows_together(row_nbytes: int) -> int:
    """How many rows of several columns are walked as one.

    >>> rows_together(8), rows_together(12), rows_together(256), rows_together(260)
    (32, 32, 1, 16)
    """
    even = row_nbytes % VECTOR_NBYTES == 0
    if row_nbytes >= (ROW_NBYTES if even else UNEVEN_NBYTES):
        return 1
    together = VECTOR_NBYTES // math.gcd(row_nbytes, VECTOR_NBYTES)
    while together * row_nbytes < ROW_NBYTES:
        together *= 2
    return together
