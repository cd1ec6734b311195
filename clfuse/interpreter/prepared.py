"""What follows from a structure alone of how NumPy goes through it."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from clfuse.ir.nodes import Kind
from clfuse.ir.snapshot import LIVE, Snapshot

from .order import Calculation, calculation, last_readers, reads_of

if TYPE_CHECKING:
    from .blocks import Group

VIEWED: Final = frozenset((Kind.VIEW, Kind.IOTA, Kind.CONSTANT))
"""Kinds that are calculated again rather than kept when somebody still refers to them."""


@lru_cache(maxsize=4096)
def size_of(shape: tuple[int, ...]) -> int:
    """How many elements an array of this shape has."""
    return math.prod(shape)


class Prepared:
    """How NumPy goes through a structure.

    Attributes
    ----------
    stored : set of int, the positions of what is kept
    way : Calculation
    sums : dict, multiplication -> the sum that alone reads it, for `gemv`
    groups : list of Group
        What is done in blocks: in the order of `way`, ``-1 - number`` stands for one.
    """

    __slots__ = ("groups", "stored", "sums", "way")

    def __init__(self, snapshot: Snapshot, sparing: bool) -> None:
        self.stored = _stored(snapshot)
        self.way = calculation(snapshot, self.stored, sparing)
        self.sums: dict[int, int] = {}
        self.groups: list[Group] = []
        if sparing:
            from .gemv import products  # nothing for small programs

            self.sums = products(snapshot, self.stored)
            self._find_groups(snapshot)

    def _find_groups(self, snapshot: Snapshot) -> None:
        from .blocks import grouped

        order = self.way.order
        apart = {*self.sums, *self.sums.values()}
        steps, self.groups = grouped(snapshot, order, self.stored, apart)
        if self.groups:
            reads = reads_of(snapshot, steps, self.groups)
            self.way = Calculation(steps, self.way.copied, last_readers(reads, self.stored))


def _stored(snapshot: Snapshot) -> set[int]:
    """The positions of what was asked for, and of what else somebody holds and would calculate
    again: also of all the elements of such a value in another shape."""
    items = snapshot.items
    stored = set(snapshot.roots)
    for position, flag in enumerate(snapshot.flags):
        if flag & LIVE:
            op = items[position][0]
            if op is None:
                continue
            if op.kind is Kind.VIEW:
                (below,) = items[position][3:]
                source = items[below][0]
                if source is None or source.kind in VIEWED:
                    continue
                if size_of(items[position][1]) == size_of(items[below][1]):
                    stored.add(position)
            elif op.kind not in VIEWED:
                stored.add(position)
    return stored
