"""Merged calls: which calls of a batch may be one call, and that call.

Calls are taken apart into runs of one kernel and rounds of several by turns:

    for b in range(n): work(10, a[b])                      # n rounds of one phase
    for b in range(n): work(10, a[b]); scale(10, a[b])     # n rounds of two

All rounds of a phase are one call, with the number of the round as a further index, where the
offsets are regular and `accesses.conflict` proves that no call touches what another one writes. All
rounds of a phase come before those of the next one then, which `accesses.crossing` has to allow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any, Final, Protocol

import numpy as np

from clfuse.arrays.conversion import host_node
from clfuse.dataclass import frozen
from clfuse.ir.nodes import Node
from clfuse.user_kernels.language.array_route.accesses import Access, Affine, Domain, crossing
from clfuse.user_kernels.language.array_route.arrays import NotArrays, Translation
from clfuse.user_kernels.language.array_route.operands import Array, Column, OutOfBounds
from clfuse.user_kernels.language.array_route.recipe import Recipe
from clfuse.user_kernels.language.source.tree import Function

FEW: Final = 4
"""Rounds that are recorded one after the other in any case: one index more is no gain for them."""

MOST_PHASES: Final = 32
"""Of a round: how far apart equal calls are looked for."""

_KEPT: Final = 64
"""Batches of a recipe, by their number of calls and their steps, that are remembered."""

DTYPES: Final = {int: np.int64, float: np.float64, complex: np.complex128, bool: np.bool_}
"""Of vectors of Python's numbers."""


class Calls(Protocol):
    """Calls of one recipe on the same storage cells, in their order.

    recipe: of one call.
    cells: numbers of the storage cells, in the order of the recipe.
    offsets, numbers: of all calls, one behind the other.
    widths: how many of them are one call's.
    """

    recipe: Recipe
    cells: tuple[int, ...]
    offsets: list[int]
    numbers: list[Any]
    widths: tuple[int, int]


class Table:
    """A number that differs from call to call: a vector, one element a call."""

    __slots__ = ("node",)

    def __init__(self, node: Node) -> None:
        self.node = node


@dataclass(slots=True, eq=False)
class Alike:
    """What a recipe was made of, to make one of many calls: the same with one index more."""

    function: Function
    domain: Domain
    arrays: dict[str, Array]
    scalars: dict[str, Any]
    integers: dict[str, int]
    made: dict[Any, Together | None] = field(default_factory=dict)

    def together(
        self, columns: list[tuple[int, int]], count: int, numbers: list[Any]
    ) -> Together | None:
        """`count` calls as one; None where they depend on each other.

        `columns` has (first offset, step) of every array.
        """
        first: dict[int, int] = {}
        key: list[Any] = [count, *[isinstance(number, Table) for number in numbers]]
        for array in self.arrays.values():
            offset, step = columns[array.number]
            key += [offset - first.setdefault(array.cell, offset), step]
        known = tuple(key)
        if known not in self.made:
            if len(self.made) >= _KEPT:
                self.made.clear()
            self.made[known] = self._translated(columns, count, numbers)
        return self.made[known]

    def _translated(
        self, columns: list[tuple[int, int]], count: int, numbers: list[Any]
    ) -> Together | None:
        arrays = {}
        for name, array in self.arrays.items():
            offset, step = columns[array.number]
            shape, strides = (count, *array.shape), (step, *array.strides)
            arrays[name] = replace(array, offset=offset, shape=shape, strides=strides)
        scalars = {
            name: Column(given.position, given.type)
            if isinstance(numbers[given.position], Table) else given
            for name, given in self.scalars.items()
        }
        domain = ((0, count), *self.domain)
        try:
            made = Translation(self.function, domain, arrays, scalars, self.integers, 1)
        except (NotArrays, OutOfBounds):
            return None
        return Together(made.recipe, made.accesses, arrays)


@frozen
class Together:
    """Many calls as one.

    accesses: of all calls; the first index is the number of the call.
    arrays: by parameter, where they lay when this was made: it serves everywhere else too.
    """

    recipe: Recipe
    accesses: list[Access]
    arrays: dict[str, Array]

    def accesses_at(self, offsets: Sequence[int], cells: Sequence[int]) -> list[Access]:
        """The accesses where the arrays have these offsets and the storage cells these numbers."""
        found = []
        for access in self.accesses:
            array = self.arrays[access.array]
            moved = offsets[array.number] - array.offset
            offset, strides, shape = access.layout
            place = access.place
            if place is not None:
                place = place + Affine(moved * access.nbytes)
            found.append(replace(
                access, storage=cells[access.storage], place=place,
                layout=(offset + moved, strides, shape),
            ))
        return found


@frozen
class Phase:
    """The calls that come at one place of every round: their offsets and numbers, a row a call."""

    series: Calls
    table: np.ndarray
    columns: list[list[Any]]

    def calls(self) -> Iterator[tuple[list[int], Sequence[Any]]]:
        """Offsets and numbers, call by call."""
        rows = zip(*self.columns, strict=True) if self.columns else repeat(())
        return zip(self.table.tolist(), rows, strict=False)

    def order(self) -> np.ndarray:
        """The rounds by offsets."""
        return np.lexsort(self.table.T[::-1])


@frozen
class One:
    """What a phase is as one call: offsets are those of its first round in order of offsets."""

    together: Together
    offsets: tuple[int, ...]
    numbers: tuple[Any, ...]


def turns(order: Sequence[int], every: Sequence[Calls]) -> Iterator[list[Phase]]:
    """The calls in order, as runs of rounds: the phases of each.

    Parameters
    ----------
    order : sequence of int
        Of every call the number of its series.
    every : sequence of Calls
    """
    tables = [np.array(s.offsets, np.int64).reshape(-1, s.widths[0]) for s in every]
    columns = [[s.numbers[k :: s.widths[1]] for k in range(s.widths[1])] for s in every]
    if len(every) == 1:
        yield [Phase(every[0], tables[0], columns[0])]
        return
    numbers = np.array(order, np.uint8)
    ranks = np.empty(len(numbers), np.int64)  # which call of its series each one is
    for number, series in enumerate(every):
        (calls,) = np.nonzero(numbers == number)
        ranks[calls] = np.arange(len(series.offsets) // series.widths[0])
    start = 0
    while start < len(numbers):
        period, stop = _rounds(numbers, start)
        found = []
        for first in range(start, start + period):
            number, rows = numbers[first], ranks[first:stop:period]
            own = [[column[row] for row in rows.tolist()] for column in columns[number]]
            found.append(Phase(every[number], tables[number][rows], own))
        yield found
        start = stop


def _rounds(numbers: np.ndarray, start: int) -> tuple[int, int]:
    """The calls of a round from `start` on, and where as many such rounds as possible end."""
    best, end = 1, start + 1
    # Fewer rounds than `FEW` would be recorded one call after the other, too.
    for period in range(1, min(MOST_PHASES, (len(numbers) - start) // FEW) + 1):
        length = period + _agreeing(numbers[start:], numbers[start + period :])
        stop = start + length // period * period
        if stop > end and stop - start > period:
            best, end = period, stop
    return best, end


def _agreeing(one: np.ndarray, other: np.ndarray) -> int:
    """How many elements agree before the first that do not."""
    done, chunk = 0, 64
    while done < len(other):
        part = other[done : done + chunk]
        differ = one[done : done + len(part)] != part
        if differ.any():
            return done + int(differ.argmax())
        done += len(part)
        chunk *= 2
    return done


def as_one(phases: Sequence[Phase]) -> list[One] | None:
    """Every phase as one call, if their offsets are evenly spaced, and if all rounds of a phase may
    come before the next one, in any order; None otherwise."""
    orders = [phase.order() for phase in phases]
    found = []
    for phase, order in zip(phases, orders, strict=True):
        one = _as_one(phase, order)
        if one is None:
            return None
        found.append(one)
    if len(found) > 1:
        in_step = all((order == orders[0]).all() for order in orders)
        accesses = [
            one.together.accesses_at(one.offsets, phase.series.cells)
            for phase, one in zip(phases, found, strict=True)
        ]
        for place, later in enumerate(accesses):
            if any(crossing(earlier, later, in_step) for earlier in accesses[:place]):
                return None
    return found


def _as_one(phase: Phase, order: np.ndarray) -> One | None:
    table = phase.table[order]
    steps = np.diff(table, axis=0)
    if (steps != steps[0]).any():
        return None
    numbers: list[Any] = []
    for column in phase.columns:
        first = column[0]
        if all(value is first for value in column):
            numbers.append(first)
        elif type(first) in DTYPES:
            try:
                values: Any = np.array([column[k] for k in order], DTYPES[type(first)])
            except OverflowError:
                return None
            numbers.append(Table(host_node(values)))
        else:
            return None
    starts = [(int(first), int(step)) for first, step in zip(table[0], steps[0], strict=True)]
    made = phase.series.recipe.alike.together(starts, len(table), numbers)
    if made is None:
        return None
    plain = [n.node if isinstance(n, Table) else n for n in numbers]
    return One(made, tuple([first for first, _ in starts]), tuple(plain))
