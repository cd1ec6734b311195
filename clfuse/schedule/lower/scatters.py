"""Scatters as kernels: counts in local memory, and elements stored at computed places.

    places   2 0 2 1 | 0 2 2 2           one row of counts a piece, which a sum over the pieces
    tally    1 1 2   | 1 0 3             makes the result

    old      a b c d   places 3 1 3      "set" where places may repeat: the last one stays
    mark     0 1 0 1                     a bit for each place, and whether one is set twice: if not,
                                         the next kernels return at once, and all are stored
    table    . . . .                     a number for each place
    exchange . 2 . 1                     any of those that come here, where clearing costs more
    maximum  . 2 . 3                     the last of them
    set      a y c z   values x y z      stored by those whose number is there

    places   0 1 1 1 4 4                 in order, by a sort before
    segments fold(x[1], w[1], w[2], w[3])    by the first work-item of a place, as NumPy does

    of many  0 1 1 | 1 4 4                piece by piece: what lies in one is folded there, its ends
    pieces   -  1  | 1 -                  go to the next kernel, which has fewer elements

A tally adds up weights in the order of the elements, and pieces are added in their order: the sums
are the same on every run. Other operations are atomic, and their order cannot matter.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from clfuse.ir.layout import contiguous_strides
from clfuse.schedule.kinds import MAP, SCATTER, TALLY
from clfuse.schedule.partition.placement import Placement
from clfuse.schedule.records import Access, Index, Kernel, Load, Scatter, Step, Store
from clfuse.schedule.shape import geometry as g
from clfuse.target.scatters import COUNTING_GROUP, WEIGHING_GROUP
from clfuse.target.traits import DeviceTraits

from .emission import Emitter, Registers, ValueTable, identity

MARKED_SHARE: Final = 64
"""Elements of an array for each that is written, up to which places are marked by bits: clearing
these is a share of the writes then."""

CLEARED_SHARE: Final = 8
"""Elements of an array for each that is written, up to which the whole table is cleared: as many
words in a row cost no more than one at a random place."""

PIECE: Final = 16
"""Elements that a work-item folds by their places before it leaves its ends to the next kernel: an
eighth as many elements."""

FOLDED_AT_ONCE: Final = 1024
"""Elements up to which the first work-item of a place folds all of that place: as many as there are
at most, one after another."""

REGROUPED: Final = 1 << 15
"""Elements from which on those of one place are folded piece by piece, where that only changes the
rounding: before, a work-item folds all of them in NumPy's order."""

_OF_PIECES: Final = {
    name: name
    for name in ("add", "multiply", "maximum", "minimum", "fmax", "fmin", "bitwise_and",
                 "bitwise_or", "bitwise_xor")
} | {"subtract": "add"}  # fmt: skip
"""Ufunc -> how its elements are combined among each other before they are with what lies there."""

_BITS: Final = 32
"""Of a word of marks."""

_INT32: Final = np.dtype(np.int32)
_INT64: Final = np.dtype(np.int64)


def scatter_kernels(placement: Placement, values: ValueTable, node: int) -> list[Kernel]:
    """The kernels that make a node of one of `SCATTERS`, in order."""
    op = placement.graph.ops[node]
    assert op is not None
    return _MAKERS[op.name](placement, values, node)


def _tally(placement: Placement, values: ValueTable, node: int) -> list[Kernel]:
    graph = placement.graph
    place, *weights = graph.inputs[node]
    (count,) = graph.shapes[place]
    pieces, bins = graph.shapes[node]
    emitter = Emitter(placement, values, placement.level[node], (count,), Registers())
    access = identity((count,))
    position = emitter.emit(place, access)
    var, dtype, how = position, graph.dtypes[place], "count"
    for weight in weights:
        var, dtype, how = emitter.emit(weight, access), graph.dtypes[weight], "add"
    store = Store(var, dtype, values.of_node[node], graph.dtypes[node], Access(0, (0,)))
    kernel = Kernel(
        TALLY, (count,), emitter.items, [store], 1, chunk=0, scatter=Scatter(position, how, bins)
    )
    kernel.chunks = pieces
    kernel.chunk_length = -(-count // pieces)
    return [kernel]


def _scatter(placement: Placement, values: ValueTable, node: int) -> list[Kernel]:
    graph = placement.graph
    old, position, value = graph.inputs[node]
    how, shape, offset, strides, base, plain = graph.params[node]
    level = placement.level[node]
    named = graph.shapes[position] or (1,)
    kernels: list[Kernel] = []
    table, tested = None, 0
    if how == "set" and not plain:
        size, count = graph.sizes[old], math.prod(named)
        # Of more elements than places some go to one place.
        tested = 1 + -(-size // _BITS) if count <= size <= count * MARKED_SHARE else 0
        clears = count * CLEARED_SHARE >= size
        cleared = tested + (size if clears else 0)
        table = values.temporary(
            (tested + size) * _INT32.itemsize,
            f"places of {graph.label(node)}",
            "which of the elements at one place is the last",
        )
        steps = ["mark"] if tested else []
        steps += ["maximum" if tested else "last"] if clears else ["exchange", "maximum"]
        for step in steps:
            emitter = Emitter(placement, values, level, named, Registers())
            place = emitter.emit(position, identity(named))
            turn = _number(emitter, identity(named))
            at = base if step == "mark" else tested + base
            store = Store(turn, _INT64, table, _INT32, Access(at, (0,) * len(named)))
            scatter = Scatter(
                place, step, old=table if kernels else None, cleared=0 if kernels else cleared,
                tested=tested,
            )  # fmt: skip
            kernels.append(Kernel(SCATTER, named, emitter.items, [store], scatter=scatter))
    emitter = Emitter(placement, values, level, shape, Registers())
    place = emitter.emit(position, _spread(graph.shapes[position], shape))
    var = emitter.emit(value, _spread(graph.shapes[value], shape))
    turn = -1 if table is None else _number(emitter, _spread(named, shape))
    access = Access(offset, strides)
    store = Store(var, graph.dtypes[value], values.of_node[node], graph.dtypes[node], access)
    scatter = Scatter(place, how, 0, values.of(old), table, tested + base, turn, tested=tested)
    kernels.append(Kernel(SCATTER, shape, emitter.items, [store], scatter=scatter))
    return kernels


def _segments(placement: Placement, values: ValueTable, node: int) -> list[Kernel]:
    """Elements in order of their places: those of one place are folded one after another."""
    graph = placement.graph
    old, places, value = graph.inputs[node]
    (count,) = graph.shapes[places]
    emitter = Emitter(placement, values, placement.level[node], (count,), Registers())
    access = identity((count,))
    position, var = emitter.emit(places, access), emitter.emit(value, access)
    store = Store(
        var, graph.dtypes[value], values.of_node[node], graph.dtypes[node], Access(0, (0,))
    )
    scatter = Scatter(position, graph.params[node], old=values.of(old), ordered=True)
    return [Kernel(SCATTER, (count,), emitter.items, [store], scatter=scatter)]


_MAKERS: Final = {"tally": _tally, "scatter": _scatter, "segments": _segments}


def _number(emitter: Emitter, access: Access) -> int:
    """A register with the number, from 1 on, of the element that an access names."""
    var = emitter.registers.new()
    emitter.items.append(Index(var, Access(access.offset + 1, access.strides)))
    return var


def _spread(shape: tuple[int, ...], onto: tuple[int, ...]) -> Access:
    """How an array of `shape` is read where it is broadcast onto others."""
    strides = [
        0 if extent == 1 else stride
        for extent, stride in zip(shape, contiguous_strides(shape), strict=True)
    ]
    return Access(0, (*(0,) * (len(onto) - len(shape)), *strides))


def finish_scatter(kernel: Kernel, traits: DeviceTraits, values: ValueTable) -> list[Kernel]:
    """Fix the geometry of a kernel whose pieces, if it has some, are given."""
    scatter = kernel.scatter
    assert scatter is not None
    kernel.schedule = traits.schedule
    (store,) = kernel.stores
    elements = values.nbytes[store.value] // store.dtype.itemsize
    kernel.wide_index = g.needs_wide_index(kernel, traits) or elements >= g.index_limit(traits)
    kernel.vector = len(kernel.extents) - 1
    if kernel.kind is TALLY and traits.schedule == "cpu":
        kernel.work_items = min(kernel.chunks, traits.work_items)
        if any(isinstance(item, Step) for item in kernel.body):
            kernel.width = g.width_for(kernel, traits, kernel.chunk_length)
        return [kernel]
    if kernel.kind is TALLY:
        most = WEIGHING_GROUP if scatter.how == "add" else COUNTING_GROUP
        kernel.work_group = min(most, 1 << (traits.max_work_group.bit_length() - 1))
        kernel.work_items = min(kernel.chunks, g.MOST_GROUPS) * kernel.work_group
        return [kernel]
    if scatter.ordered and scatter.how in _OF_PIECES and kernel.extents[0] >= REGROUPED:
        return _fold_in_pieces(kernel, traits, values)
    _count_items(kernel, traits, math.prod(kernel.extents))
    if not scatter.cleared:
        return [kernel]
    zeros = Kernel(
        MAP,
        (scatter.cleared,),
        [Index(0, Access(0, (0,)))],
        [Store(0, _INT64, store.value, store.dtype, Access(0, (1,)))],
        label=f"{kernel.label}_zeros",
    )
    return [g.finish_map(zeros, traits), kernel]


def _count_items(kernel: Kernel, traits: DeviceTraits, units: int) -> None:
    kernel.work_group = traits.work_group
    kernel.work_items = g.round_up(max(min(units, traits.work_items), 1), kernel.work_group)


def _fold_in_pieces(kernel: Kernel, traits: DeviceTraits, values: ValueTable) -> list[Kernel]:
    """The kernels that fold what is in order of its places, each an eighth as many elements."""
    scatter, (store,) = kernel.scatter, kernel.stores
    assert scatter is not None
    loads = {item.var: item for item in kernel.body if isinstance(item, Load)}
    places, folded = loads[scatter.position], loads[store.var]
    (count,) = kernel.extents
    kernels: list[Kernel] = []
    while count > FOLDED_AT_ONCE:
        pieces = -(-count // PIECE)
        ends = []
        for load in (places, folded):
            left = values.temporary(
                2 * pieces * load.dtype.itemsize,
                f"{scatter.how} of pieces",
                f"elements of one place are folded in pieces of {PIECE}",
            )
            ends.append(Store(load.var, load.dtype, left, load.dtype, Access(0, (0,))))
        part = replace(
            kernel,
            extents=(count,),
            body=[places, folded],
            stores=[store, *ends],
            scatter=replace(scatter, old=store.value if kernels else scatter.old, piece=PIECE),
            label=f"{kernel.label}_pieces",
        )
        _count_items(part, traits, pieces)
        kernels.append(part)
        places, folded = [
            Load(load.var, end.value, load.dtype, Access(0, (1,)))
            for load, end in zip((places, folded), ends, strict=True)
        ]
        count = 2 * pieces
    last = replace(
        kernel, extents=(count,), body=[places, folded],
        scatter=replace(scatter, old=store.value),
    )  # fmt: skip
    _count_items(last, traits, count)
    return [*kernels, last]


def combined_among(how: str) -> str:
    """The ufunc that combines elements of one place with each other.

    >>> combined_among("subtract")
    'add'
    """
    return _OF_PIECES[how]
