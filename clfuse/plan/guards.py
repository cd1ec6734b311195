"""Element-wise kernels over unequal ranges as one, which does in every box what belongs there;
`planner` asks when the others have been joined.

    b[:] = a + 1                            one kernel over all of a, with two bodies:
    c[1:-1] = a[2:] - a[:-2]                in [1, n - 1) both statements, elsewhere the first

Without, what both read is read twice. The range of the second one must lie within that of the
first, whose elements it reads and writes in step: an index more here is one more there. What it
reads of the first one's results must be the very element. Two steps of the star stencil of the
Parallel Research Kernels and its increment move four arrays then instead of five.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from ..graph.ir import Kind
from ..graph.layout import contiguous_strides
from ..traits import DeviceTraits
from . import cost
from .geometry import accesses, with_accesses
from .iterations import outside
from .lowering import Lowering, Pending
from .memory import reads_of, writes_of
from .schedule import Access, Index, Item, Kernel, Load, Scalar, Step, Store

LEAST_ROW: Final = 64
"""Elements of a row of the smaller range: at the ends of shorter ones, where the box begins and
ends, elements one by one take what is saved."""

LEAST_PART: Final = 0.5
"""Of the larger range, that the smaller one covers: a border is better left to a kernel of its
own."""

MOST_ITEMS: Final = 64
"""Loads and operations of both: longer bodies do not wait for memory, and their text is written
twice."""

MOST_BETWEEN: Final = 16
"""Launches between two that are joined, each of which is looked at."""

_PLAIN: Final = (Load, Index, Scalar, Step)


def join_guarded(lowering: Lowering, traits: DeviceTraits) -> None:
    """Join kernels of `lowering` whose ranges lie in one another and that read the same."""
    pending = lowering.pending
    arrays = _Arrays(lowering)
    latest: dict[int, int] = {}
    gone: set[int] = set()
    for place, entry in enumerate(pending):
        kernel = entry.launch
        if not isinstance(kernel, Kernel) or not _is_plain(kernel):
            continue
        touched = {item.value for item in kernel.body if isinstance(item, Load)}
        earlier = sorted({latest[value] for value in touched if value in latest}, reverse=True)
        for other in earlier:
            if place - other > MOST_BETWEEN or other in gone:
                continue
            first = pending[other]
            if not _may_move(entry, pending[other + 1 : place], arrays):
                continue
            made = _joined(first, entry, arrays, traits)
            if made is not None:
                pending[other] = made
                gone.add(place)
                latest = {value: at for value, at in latest.items() if at != other}
                break
        if place not in gone:
            stored = {store.value for store in kernel.stores}
            latest.update(dict.fromkeys(touched | stored, place))
    if gone:
        lowering.pending[:] = [e for place, e in enumerate(pending) if place not in gone]


def _is_plain(kernel: Kernel) -> bool:
    return (
        kernel.kind == "map"
        and not (kernel.then or kernel.where or kernel.boxed or kernel.tiling)
        and len(kernel.body) <= MOST_ITEMS
        and all(isinstance(item, _PLAIN) for item in kernel.body)
        and not any(access.jumps or access.within for access in accesses(kernel))
    )


class _Arrays:
    """Which values may lie in the same bytes: an array, and what updates make of it."""

    def __init__(self, lowering: Lowering) -> None:
        self._lowering = lowering
        self._roots: dict[int, int] = {}

    def of(self, values: Iterable[int]) -> set[int]:
        """The first of each array of which these are updates; of others themselves."""
        return {self._root(value) for value in values}

    def _root(self, value: int) -> int:
        seen = []
        while value not in self._roots:
            seen.append(value)
            older = self._older(value)
            if older is None or older == value:
                self._roots[value] = value
                break
            value = older
        root = self._roots[value]
        self._roots.update(dict.fromkeys(seen, root))
        return root

    def _older(self, value: int) -> int | None:
        lowering = self._lowering
        node = lowering.values.node[value]
        if node is None or not lowering.is_written_in_place(node):
            return None
        base = lowering.placement.writes.base(node)
        if lowering.graph.kinds[base] is Kind.LEAF:
            return lowering.values.leaf(base)
        return lowering.values.of_node.get(base)


def _may_move(entry: Pending, between: Iterable[Pending], arrays: _Arrays) -> bool:
    """Whether a launch may run before others: none makes what it reads, or touches what it may
    write over."""
    loads = arrays.of(value for value, _ in reads_of(entry.launch))
    stores = arrays.of(writes_of(entry.launch))
    for other in between:
        made = arrays.of(writes_of(other.launch))
        if not made.isdisjoint(loads | stores):
            return False
        if not stores.isdisjoint(arrays.of(value for value, _ in reads_of(other.launch))):
            return False
    return True


def _joined(
    first: Pending, second: Pending, arrays: _Arrays, traits: DeviceTraits
) -> Pending | None:
    large, small = first.launch, second.launch
    assert isinstance(large, Kernel)
    assert isinstance(small, Kernel)
    if not _fits(large, small):
        return None
    # What one writes the other neither writes nor reads, but for the very element that it stored.
    written = {store.value for store in large.stores}
    other = arrays.of(
        item.value for item in [*small.body, *small.stores]
        if isinstance(item, Store) or (isinstance(item, Load) and item.value not in written)
    )
    if not arrays.of(written).isdisjoint(other):
        return None
    loads = arrays.of(item.value for item in large.body if isinstance(item, Load))
    if not loads.isdisjoint(arrays.of(store.value for store in small.stores)):
        return None
    for start in _starts(large, small):
        moved = _moved(small, start)
        made = _registers_joined(large, moved)
        if made is None:
            continue
        stores = [*large.stores, *made.stores]
        if len(stores) > cost.MAX_STORES or len(made.body) > traits.max_steps:
            return None
        extents = large.extents
        box = tuple(
            (begin, begin + extent) for begin, extent in zip(start, small.extents, strict=True)
        )
        rest = Kernel("map", extents, list(large.body), list(large.stores),
                      where=tuple(outside(box, extents)))
        kernel = Kernel("map", extents, made.body, stores, where=(box,), then=[rest])
        return Pending(first.level, kernel, [*first.updates, *second.updates])
    return None


def _fits(large: Kernel, small: Kernel) -> bool:
    """Whether one range could lie in the other, and what both read is worth it."""
    if len(large.extents) != len(small.extents) or large.extents == small.extents:
        return False
    if any(one < other for one, other in zip(large.extents, small.extents, strict=True)):
        return False
    if small.extents[-1] < LEAST_ROW:
        return False
    return math.prod(small.extents) >= LEAST_PART * math.prod(large.extents)


def _starts(large: Kernel, small: Kernel) -> list[tuple[int, ...]]:
    """Where in the larger range the smaller one may begin, the likeliest first.

    Elements in step: of arrays of the larger range's shape, where the smaller one's are; else
    where one load of both is the same element.
    """
    whole = contiguous_strides(large.extents)
    offsets = [store.access.offset for store in small.stores if store.access.strides == whole]
    known = {
        item.value: item.access for item in [*large.body, *large.stores]
        if isinstance(item, Load | Store)
    }
    for item in small.body:
        if isinstance(item, Load) and item.value in known:
            access = known[item.value]
            if item.access.strides == access.strides == whole:
                offsets.append(item.access.offset - access.offset)
    found: dict[tuple[int, ...], None] = {}
    for offset in offsets:
        if offset < 0:
            continue
        start = []
        for stride in whole:
            start.append(offset // stride if stride else 0)
            offset -= start[-1] * stride
        fits = all(
            begin + extent <= end
            for begin, extent, end in zip(start, small.extents, large.extents, strict=True)
        )
        if fits:
            found[tuple(start)] = None
    return list(found)


def _moved(kernel: Kernel, start: tuple[int, ...]) -> Kernel:
    """The same with indices that begin there."""

    def moved(access: Access) -> Access:
        back = sum(begin * step for begin, step in zip(start, access.strides, strict=True))
        return Access(access.offset - back, access.strides)

    return replace(
        kernel,
        body=with_accesses(kernel.body, moved),
        stores=[replace(store, access=moved(store.access)) for store in kernel.stores],
    )


def _registers_joined(large: Kernel, small: Kernel) -> Kernel | None:
    """Both bodies as one, loads that are the same once; None where they share no load, or the
    second one reads what the first has not written by then."""
    stored = {(store.value, store.access): store for store in large.stores}
    written = {store.value for store in large.stores}
    loaded = {
        (item.value, item.dtype, item.access): item.var
        for item in large.body if isinstance(item, Load) and item.position is None
    }
    read = {item.value for item in large.body if isinstance(item, Load)}
    count = 1 + max([item.var for item in large.body], default=-1)
    registers: dict[int, int] = {}
    body: list[Item] = list(large.body)
    shares = False
    for item in small.body:
        if isinstance(item, Load):
            shares |= item.value in read or item.value in written
            if item.value in written:
                store = stored.get((item.value, item.access))
                if store is None or item.position is not None:
                    return None
                if store.var_dtype != item.dtype or store.dtype != item.dtype:
                    return None
                if item.dtype.char == "e":
                    return None
                registers[item.var] = store.var
                continue
            known = loaded.get((item.value, item.dtype, item.access))
            if known is not None and item.position is None:
                registers[item.var] = known
                continue
            position = None if item.position is None else registers[item.position]
            made: Item = replace(item, var=count, position=position)
        elif isinstance(item, Step):
            operands = tuple([registers[operand] for operand in item.operands])
            made = replace(item, var=count, operands=operands)
        else:
            made = replace(item, var=count)
        registers[item.var] = count
        count += 1
        body.append(made)
    if not shares:
        return None
    stores = [replace(store, var=registers[store.var]) for store in small.stores]
    return replace(small, body=body, stores=stores)
