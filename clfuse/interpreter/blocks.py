"""Element-wise operations in blocks that stay in the cache, as numexpr does them.

    a = x * y + z; b = sqrt(a) / a       NumPy reads nine large arrays, and writes four of them

Between large arrays NumPy waits for memory. So operations of one shape that follow each other are
a group, which goes through its arrays block by block: what only its own operations read lies in a
few small arrays, which are written again and again. Results have NumPy's bits: its own functions
compute them, and none of these looks at an element's neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from clfuse.ir.nodes import Kind, Op
from clfuse.ir.snapshot import Snapshot, shape_at

from .host_functions import cast, host_function
from .rng import NEARLY, NUMBERS

__all__ = ["BLOCK", "LEAST", "Group", "grouped"]

BLOCK: Final = 1 << 16
"""Bytes of a block of the widest dtype: a core's second cache holds several."""

LEAST: Final = 1 << 15
"""Elements of arrays that go in blocks: smaller ones stay in the cache as a whole."""

MOST: Final = 128
"""Operations of a group: their results lie in memory at the same time, where they are kept."""

Array = Any
Shape = tuple[int, ...]

_Call = tuple[Op, Callable[..., Array] | None, tuple[int, ...], int, bool]
"""An operation, its function (None for a cast), the places of its operands and of its result, and
whether the function writes there itself."""


def grouped(
    snapshot: Snapshot, order: Iterable[int], kept: Collection[int], apart: Collection[int]
) -> tuple[list[int], list[Group]]:
    """The steps for an order of positions: positions, and ``-1 - number`` of groups. The values at
    the positions `kept` must stay, those `apart` are in no group."""
    steps: list[int] = []
    found: list[list[int]] = []
    for step in _steps(snapshot, order, apart):
        if len(step) > 1:
            found.append(step)
            steps.append(-len(found))
        else:
            steps += step
    if not found:
        return steps, []
    readers: dict[int, list[int]] = {}
    for position, item in enumerate(snapshot.items):
        if item[0] is not None:
            for number in item[3:]:
                readers.setdefault(number, []).append(position)
    groups = []
    for members in found:
        own = set(members)
        results = [
            position
            for position in members
            if position in kept or not own.issuperset(readers.get(position, ()))
        ]
        groups.append(Group(snapshot, members, results))
    return steps, groups


def _steps(
    snapshot: Snapshot, order: Iterable[int], apart: Collection[int]
) -> Iterator[list[int]]:
    """Positions that belong together, and each of the others alone.

    What depends on no operation of a group that is open goes before it. No two open groups depend
    on each other.
    """
    items = snapshot.items
    opened: dict[Shape, list[int]] = {}
    shape_of: dict[int, Shape] = {}

    def close(shape: Shape) -> list[int]:
        members = opened.pop(shape)
        for member in members:
            del shape_of[member]
        return members

    for position in order:
        item = items[position]
        is_member = position not in apart and _is_member(snapshot, item)
        shape = item[1] if is_member else None
        if item[0] is not None:
            for number in item[3:]:
                if shape_of.get(number, shape) != shape:
                    yield close(shape_of[number])
            if item[0].kind is Kind.UPDATE:  # of what an operation that waits may read as it was
                for each in list(opened):
                    yield close(each)
        if shape is None:
            yield [position]
            continue
        shape_of[position] = shape
        members = opened.setdefault(shape, [])
        members.append(position)
        if len(members) == MOST:
            yield close(shape)
    for each in list(opened):
        yield close(each)


def _is_member(snapshot: Snapshot, item: tuple[Any, ...]) -> bool:
    op = item[0]
    if op is None or op.kind is not Kind.MAP or math.prod(item[1]) < LEAST:
        return False
    if host_function(op) is None or op.name in NUMBERS or op.name in NEARLY:
        return False
    shapes = [shape_at(snapshot.items, number) for number in item[3:]]
    return item[1] in shapes or np.broadcast_shapes(*shapes) == item[1]


class _Slots:
    """The small arrays of a group: numbers of what they hold, and which are free again."""

    def __init__(self) -> None:
        self.dtypes: list[np.dtype[Any]] = []
        self._free: dict[np.dtype[Any], list[int]] = {}

    def take(self, dtype: np.dtype[Any]) -> int:
        free = self._free.get(dtype)
        if free:
            return free.pop()
        self.dtypes.append(dtype)
        return len(self.dtypes) - 1

    def give(self, slot: int) -> None:
        self._free.setdefault(self.dtypes[slot], []).append(slot)


class Group:
    """Operations on arrays of one shape that are done in blocks.

    Attributes
    ----------
    inputs : dict of int, positions of what it reads
    results : list of int, positions of what is needed of it
    """

    __slots__ = ("_calls", "_dtypes", "_reads", "_shape", "_size", "_slots", "inputs", "results")

    def __init__(
        self, snapshot: Snapshot, members: Sequence[int], results: Sequence[int]
    ) -> None:
        items = snapshot.items
        self._shape: Shape = items[members[0]][1]
        own = set(members)
        self.results = list(results)
        self._dtypes = [items[position][0].dtype for position in results]
        # What a block has, by place: what is read, the results, and small arrays.
        self._reads: list[tuple[int, np.dtype[Any]]] = []
        places: dict[tuple[int, np.dtype[Any]], int] = {}
        for position in members:
            op, _, _, *operands = items[position]
            for number, dtype in zip(operands, op.input_dtypes, strict=True):
                if number not in own:
                    # A single element is cast before all blocks.
                    is_one = math.prod(shape_at(items, number)) == 1
                    read = number, dtype if is_one else snapshot.nodes[number].dtype
                    if places.setdefault(read, len(places)) == len(self._reads):
                        self._reads.append(read)
        self.inputs = dict.fromkeys(number for number, _ in self._reads)
        place_of = {position: len(places) + place for place, position in enumerate(results)}
        first = len(places) + len(results)
        last = {number: position for position in members for number in items[position][3:]}
        slots = _Slots()
        self._calls: list[_Call] = []
        for position in members:
            op = items[position][0]
            sources = []
            casts = []
            for number, dtype in zip(items[position][3:], op.input_dtypes, strict=True):
                has = snapshot.nodes[number].dtype
                place = place_of[number] if number in own else places.get((number, dtype), -1)
                if place < 0 or (number in own and has is not dtype):
                    whole = place_of[number] if number in own else places[number, has]
                    casts.append(slots.take(dtype))
                    place = first + casts[-1]
                    self._calls.append((op, None, (whole,), place, False))
                sources.append(place)
            if position not in place_of:
                place_of[position] = first + slots.take(op.dtype)
            function = None if op.name == "cast" else op.host
            ufunc = function.func if isinstance(function, partial) else function
            has_out = isinstance(ufunc, np.ufunc)
            self._calls.append((op, function, tuple(sources), place_of[position], has_out))
            for slot in casts:
                slots.give(slot)
            for number in dict.fromkeys(items[position][3:]):
                if number in own and last[number] == position and place_of[number] >= first:
                    slots.give(place_of[number] - first)
        self._slots = slots.dtypes
        dtypes = [*self._dtypes, *self._slots, *(dtype for _, dtype in self._reads)]
        self._size = max(BLOCK // max(dtype.itemsize for dtype in dtypes), 1)

    def calculate(self, values: list[Array], note: Callable[[Op], None]) -> None:
        """Compute the results from the values of the inputs, and put them there; call `note` with
        every operation before it is done."""
        given = [cast(values[number], dtype) for number, dtype in self._reads]
        results = [np.empty(self._shape, dtype) for dtype in self._dtypes]
        is_flat = all(
            value.size == 1 or (value.shape == self._shape and value.flags.c_contiguous)
            for value in given
        )
        if is_flat:
            count, row = math.prod(self._shape), 1
            lanes: Shape = ()
            parts = [value.reshape(-1) if value.size > 1 else value for value in given]
            parts = [value.reshape(()) if value.size == 1 else value for value in parts]
            outs = [result.reshape(-1) for result in results]
        else:
            count, *rest = self._shape
            lanes, row = tuple(rest), math.prod(rest)
            parts, outs = given, results
        step = min(max(self._size // row, 1), count)
        ndim = 1 + len(lanes)
        cut = [
            place
            for place, value in enumerate(parts)
            if value.ndim == ndim and value.shape[0] == count > 1
        ]
        small = [np.empty((step, *lanes), dtype) for dtype in self._slots]
        held = [*parts, *outs, *small]
        first = len(parts)
        for start in range(0, count, step):
            stop = start + step
            for place in cut:
                held[place] = parts[place][start:stop]
            for place, result in enumerate(outs, first):
                held[place] = result[start:stop]
            if stop > count:
                for place, array in enumerate(small, first + len(outs)):
                    held[place] = array[: count - start]
            for op, function, sources, place, has_out in self._calls:
                note(op)
                operands = [held[source] for source in sources]
                if function is None:
                    _cast_into(held[place], *operands)
                elif has_out:
                    function(*operands, out=held[place])
                else:
                    held[place][...] = function(*operands)
        for position, result in zip(self.results, results, strict=True):
            values[position] = result


def _cast_into(result: Array, value: Array) -> None:
    """`host_functions.cast`, to memory that is there."""
    if value.dtype.kind == "c" and result.dtype.kind not in "cb":
        value = value.real
    np.copyto(result, value, casting="unsafe")
