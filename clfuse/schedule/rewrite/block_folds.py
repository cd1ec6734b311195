"""Folds of an array that others fold block by block, in two stages over the same blocks.

    x.mean(), x.std(), x.min():    sums and squares of blocks, in one kernel
    (`functions.math.block_moments`);
                                   minimum: another kernel, which reads x again

    minimum of all  =  minimum of the blocks' minima, which the first kernel makes too
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Container
from typing import Final

import numpy as np

from clfuse.dataclass import frozen
from clfuse.ir.layout import contiguous_strides
from clfuse.ir.nodes import Kind, loop
from clfuse.schedule.graph import Graph

from .rebuilding import Replacing

ALONG: Final = 2
"""The axis of a block's elements, in the shape ``(before, blocks, length, wide)``."""

LEAST_LENGTH: Final = 64
"""Shorter blocks leave too much for what folds their results."""

MOST_LOOKED_AT: Final = 32
"""Operations between an array and its fold: with more, reading the array again costs less."""

ANY_DTYPE: Final = ("minimum", "maximum", "fmin", "fmax", "logical_and", "logical_or")
"""Folds whose result is one of the elements; sums and products are more exact in wide types."""

ARITHMETIC: Final = ("add", "multiply", "bitwise_and", "bitwise_or", "bitwise_xor")


@frozen
class Piece:
    """The blocks of one length: a view of their array, and how many elements they are."""

    view: int
    shape: tuple[int, ...]
    offset: int

    @property
    def size(self) -> int:
        """Elements of the blocks side by side, for each of what is before them."""
        return math.prod(self.shape[1:])


@frozen
class Split:
    """How a fold's axes are cut: what is before and behind them, and the pieces in between."""

    before: int
    after: int
    pieces: tuple[Piece, ...]


def fold_in_blocks(graph: Graph) -> Graph:
    """`graph` with these folds in two stages; itself where there are none."""
    layouts = _layouts(graph)
    if not layouts:
        return graph
    splits: dict[int, Split] = {}
    for node in range(len(graph)):
        if graph.kinds[node] is not Kind.REDUCE or not _is_associative(graph, node):
            continue
        for source in _sources(graph, graph.inputs[node][0], layouts):
            found = [_split(graph, node, pieces) for pieces in layouts[source]]
            split = next((each for each in found if each is not None), None)
            if split is not None:
                splits[node] = split
                break
    return _InBlocks(graph, splits).result if splits else graph


def _layouts(graph: Graph) -> dict[int, list[list[Piece]]]:
    """Array -> every way in which it is folded in blocks: the pieces, in order."""
    found: defaultdict[int, dict[int, Piece]] = defaultdict(dict)
    for node, kind in enumerate(graph.kinds):
        if kind is not Kind.REDUCE or graph.params[node] != (ALONG,):
            continue
        view = graph.inputs[node][0]
        shape = graph.shapes[view]
        if graph.kinds[view] is Kind.VIEW and len(shape) == 4:
            offset, _ = graph.params[view]
            found[graph.inputs[view][0]][view] = Piece(view, shape, offset)
    layouts = {}
    for source, pieces in found.items():
        firsts = [piece for piece in pieces.values() if not piece.offset]
        layouts[source] = [
            [first, *(piece for piece in pieces.values() if piece.offset == first.size)]
            for first in firsts
            if first.shape[ALONG] >= LEAST_LENGTH
        ]
    return layouts


def _is_associative(graph: Graph, node: int) -> bool:
    """Whether a fold may go by blocks: real numbers and truth values, nothing in half precision
    that would be rounded twice."""
    op, dtype = graph.ops[node], graph.dtypes[node]
    assert op is not None
    if dtype.kind == "c" or graph.dtypes[graph.inputs[node][0]] is not dtype:
        return False
    return op.name in ANY_DTYPE or (op.name in ARITHMETIC and dtype.char != "e")


def _sources(graph: Graph, operand: int, layouts: Container[int]) -> list[int]:
    """Arrays with blocks that an operand is, or is computed from, element by element.

    None where anything else than such arrays and scalars is in it: what is repeated along an axis
    may have no place in blocks of another shape, and folds are there later than the blocks.
    """
    shape = graph.shapes[operand]
    found = []
    seen = {operand}
    stack = [operand]
    while stack:
        node = stack.pop()
        kind = graph.kinds[node]
        if node in layouts and graph.shapes[node] == shape:
            found.append(node)
            continue
        if kind is Kind.CONSTANT or (kind is Kind.LEAF and graph.shapes[node] in (shape, ())):
            continue
        if kind is not Kind.MAP or graph.shapes[node] != shape or len(seen) > MOST_LOOKED_AT:
            return []
        new = [below for below in graph.inputs[node] if below not in seen]
        seen.update(new)
        stack += new
    return found


def _split(graph: Graph, node: int, pieces: list[Piece]) -> Split | None:
    """How the blocks cut a fold's axes, or None where they are blocks of others."""
    shape, axes = graph.shapes[graph.inputs[node][0]], graph.params[node]
    if axes[-1] - axes[0] + 1 != len(axes):
        return None
    before, after = math.prod(shape[: axes[0]]), math.prod(shape[axes[-1] + 1 :])
    size = math.prod(shape[axes[0] :])
    place = 0
    for piece in pieces:
        _, strides = graph.params[piece.view]
        _, _, length, wide = piece.shape
        wanted = (size, length * wide, wide, 1)
        lies = all(
            extent == 1 or stride == step
            for extent, stride, step in zip(piece.shape, strides, wanted, strict=True)
        )
        if not lies or piece.offset != place or piece.shape[0] != before or wide % after:
            return None
        place += piece.size
    return Split(before, after, tuple(pieces)) if place == size else None


class _InBlocks(Replacing):
    """The graph with these folds in two stages."""

    def _replaced(self, node: int, split: Split) -> int:
        graph = self.graph
        array = self.moved[graph.inputs[node][0]]
        before, after = split.before, split.after
        whole = -1
        for piece in split.pieces:
            offset, strides = graph.params[piece.view]
            blocks = self._view(array, piece.shape, offset, strides)
            kept = (*piece.shape[:ALONG], *piece.shape[ALONG + 1 :])
            folded = self._like(node, kept, (ALONG,), (blocks,))
            apart = (before, math.prod(kept[1:]) // after, after)
            folded = self._view(folded, apart, 0, contiguous_strides(apart))
            folded = self._like(node, (before, after), (1,), (folded,))
            whole = folded if whole < 0 else self._both(node, whole, folded)
        shape = graph.shapes[node]
        return self._view(whole, shape, 0, contiguous_strides(shape))

    def _both(self, node: int, one: int, other: int) -> int:
        """The fold of two results."""
        op = self.graph.ops[node]
        assert op is not None
        dtype: np.dtype = self.graph.dtypes[node]
        both = loop(op.name, (dtype, dtype), dtype)
        return self._node(both, self.result.shapes[one], (one, other))

