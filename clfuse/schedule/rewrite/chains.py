"""Chains of writes to parts of one array, cut into stretches whose order does not matter.

``for b in rows: a[b] += 1`` is recorded as a chain: every write reads the one before it, as a whole
and through views. A `Stretch` is a piece of a chain that nothing reads in between, whose writes
touch disjoint elements and read nothing that the stretch writes before. `rerolling` makes few
writes of it. All questions of overlap go to `write_regions`, which compares elements: the rest of
this pass visits each node once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from itertools import chain as joined
from typing import Final

from clfuse.dataclass import mutable
from clfuse.ir.nodes import Kind
from clfuse.schedule.graph import Graph

from .write_regions import History, Region, elements_at_least

MIN_WRITES: Final = 8
"""Writes that are worth rerolling into one: fewer cost less than the analysis."""

NOBODY: Final = -1
SEVERAL: Final = -2


def held(graph: Graph) -> list[bool]:
    """Which nodes are needed for themselves, so that they must stay what they are.

    A state of an array that is held, by what was recorded of it and not asked for, is computed
    from its inputs when it is looked at, like any value: it is kept from the second time on.
    """
    return [
        requested or (live and (computed or kind is not Kind.UPDATE))
        for kind, live, computed, requested in zip(
            graph.kinds, graph.live, graph.computed, graph.requested, strict=True
        )
    ]


def overwritten(graph: Graph) -> dict[int, int]:
    """Node -> the node to read instead, for writes whose region the next write covers again.

    As in a loop over ``a[b] += 1; a[b] *= 2``: nothing but that region was read in between, and
    those reads take what was written there.
    """
    inputs_of = graph.inputs
    if not any(
        kind is Kind.UPDATE
        and graph.kinds[inputs_of[node][0]] is Kind.UPDATE
        and _same_region(graph, inputs_of[node][0], node)
        for node, kind in enumerate(graph.kinds)
    ):
        return {}
    is_held = held(graph)
    after: dict[int, int] = {}
    views: dict[int, list[int]] = {}
    spoiled: set[int] = set()
    for node, (kind, inputs) in enumerate(zip(graph.kinds, graph.inputs, strict=True)):
        if kind is Kind.UPDATE:
            old, value = inputs
            if graph.kinds[old] is Kind.UPDATE:
                if old in after or not _same_region(graph, old, node):
                    spoiled.add(old)
                after[old] = node
            if graph.kinds[value] is Kind.UPDATE:
                spoiled.add(value)
        elif kind is Kind.VIEW:
            (operand,) = inputs
            if graph.kinds[operand] is Kind.UPDATE:
                views.setdefault(operand, []).append(node)
                value = graph.inputs[operand][1]
                same = graph.params[node] == graph.params[operand]
                if not same or graph.shapes[node] != graph.shapes[value] or is_held[node]:
                    spoiled.add(operand)
        else:
            spoiled.update(operand for operand in inputs if graph.kinds[operand] is Kind.UPDATE)
    instead: dict[int, int] = {}
    for node in after:
        if node not in spoiled and not is_held[node]:
            old, value = graph.inputs[node]
            instead[node] = instead.get(old, old)
            for view in views.get(node, ()):
                instead[view] = instead.get(value, value)
    return instead


def _same_region(graph: Graph, one: int, other: int) -> bool:
    if graph.params[one] != graph.params[other]:
        return False
    return graph.shapes[graph.inputs[one][1]] == graph.shapes[graph.inputs[other][1]]


def _may_be_disjoint(writes: list[Region], size: int) -> bool:
    """Whether `MIN_WRITES` writes in a row have room beside each other in an array of `size`
    elements: time steps of a whole array have not, and their elements need not be looked at."""
    counts = [elements_at_least(region) for region in writes]
    room = sum(counts[: MIN_WRITES - 1])
    for count, gone in zip(counts[MIN_WRITES - 1 :], [0, *counts], strict=False):
        room += count - gone
        if room <= size:
            return True
    return False


@mutable
class Stretch:
    """Writes of disjoint regions, in order; `base` is what the first one writes into."""

    base: int
    updates: list[int]


@mutable
class Source:
    """What a view of a value inside a chain may read instead.

    `place` is ``base`` (what the stretch starts from), ``end`` (what it results in), or ``any``:
    the view shows the same before, after, and at every moment between.
    """

    place: str
    stretch: Stretch


@mutable
class Chain:
    """`updates`, each written into the one before; `views` of them, by position in `updates`."""

    base: int
    updates: list[int]
    views: list[tuple[int, int]] = field(default_factory=list)  # (view, position; -1: of the base)


class Stretches:
    """The pass and its result.

    With `ends`, views that nothing in the stretch reads may be moved to its end. That can close a
    circle, which `rerolling` finds. Without, there are more stretches and never a circle.

    found (list of Stretch)
    sources: view -> Source
    """

    def __init__(self, graph: Graph, *, ends: bool) -> None:
        self.graph = graph
        self.found: list[Stretch] = []
        self.sources: dict[int, Source] = {}
        self._held = held(graph)
        chains = [chain for chain in self._chains() if len(chain.updates) >= MIN_WRITES]
        if chains:
            reader = self._readers()
            for chain in chains:
                self._cut(chain, reader, ends)

    def keep(self, ends: set[int]) -> None:
        """Forget all stretches but those with these last updates."""
        self.found = [stretch for stretch in self.found if stretch.updates[-1] in ends]
        self.sources = {
            view: source
            for view, source in self.sources.items()
            if source.stretch.updates[-1] in ends
        }

    def _chains(self) -> list[Chain]:
        """All chains; a read of one of their values as a whole makes that value `held`."""
        kinds, inputs = self.graph.kinds, self.graph.inputs
        is_held = self._held
        update, view = Kind.UPDATE, Kind.VIEW
        chains: list[Chain] = []
        chain_of: dict[int, Chain] = {}
        position: dict[int, int] = {}
        for node in [node for node, kind in enumerate(kinds) if kind is update]:
            old, value = inputs[node]
            if value in chain_of:
                is_held[value] = True
            chain = chain_of.get(old)
            if chain is not None and chain.updates[-1] == old:
                chain.updates.append(node)
            else:
                if chain is not None:
                    is_held[old] = True
                chain = Chain(old, [node])
                chains.append(chain)
            chain_of[node] = chain
            position[node] = len(chain.updates) - 1
        others: dict[int, list[int]] = {}
        for node in [node for node, kind in enumerate(kinds) if kind is view]:
            (operand,) = inputs[node]
            chain = chain_of.get(operand)
            if chain is not None:
                chain.views.append((node, position[operand]))
            else:
                others.setdefault(operand, []).append(node)
        wholes = [
            operands
            for kind, operands in zip(kinds, inputs, strict=True)
            if kind is not update and kind is not view
        ]
        for operand in set(joined.from_iterable(wholes)).intersection(chain_of):
            is_held[operand] = True
        for chain in chains:
            chain.views += [(node, -1) for node in others.get(chain.base, ())]
        return chains

    def _readers(self) -> list[int]:
        """The one update whose value each node goes into; NOBODY or SEVERAL where there is none."""
        kinds, inputs_of = self.graph.kinds, self.graph.inputs
        update = Kind.UPDATE
        reader = [SEVERAL if held else NOBODY for held in self._held]
        for node in range(len(kinds) - 1, -1, -1):
            inputs: Sequence[int] = inputs_of[node]
            mine = reader[node]
            if kinds[node] is update:
                if kinds[inputs[0]] is not update:
                    reader[inputs[0]] = SEVERAL
                inputs = inputs[1:]
                mine = node
            for operand in inputs:
                seen = reader[operand]
                if seen != mine:
                    reader[operand] = mine if seen == NOBODY else SEVERAL
        return reader

    def _cut(self, chain: Chain, reader: list[int], ends: bool) -> None:
        graph = self.graph
        time = {update: number for number, update in enumerate(chain.updates, 1)}
        shapes, params, inputs = graph.shapes, graph.params, graph.inputs
        writes = [(shapes[inputs[update][1]], *params[update]) for update in chain.updates]
        if not _may_be_disjoint(writes, graph.sizes[chain.base]):
            return
        views = [
            (view, position + 1)
            for view, position in chain.views
            if graph.sizes[view] and (position >= 0 or reader[view] in time)
        ]
        reads = [((shapes[view], *params[view]), when) for view, when in views]
        # The same views, asked for at the time of the write that they go into.
        own = [time.get(reader[view], 0) for view, _ in views]
        reads += [(region, when) for (region, _), when in zip(reads, own, strict=True) if when]
        history = History(writes, reads)
        if not history.known:
            return
        before = history.before.tolist()
        last = history.last.tolist()
        following = history.following.tolist()
        again = iter(following[len(views) :])
        after_own = [next(again) if when else 0 for when in own]
        count = len(writes)
        latest = [0] * (count + 1)  # what views of this time must not have behind them
        movable: list[list[int]] = [[] for _ in range(count + 1)]
        for number, (_, when) in enumerate(views):
            if ends and not own[number]:
                movable[when].append(number)
            else:
                latest[when] = max(latest[when], last[number])
        first = 1
        limit = count + 1
        bounds = [1]
        for when in range(1, count + 1):
            if when > first and (before[when - 1] >= first or when >= limit):
                bounds.append(when)
                first = when
                limit = count + 1
            for number in movable[when]:
                if last[number] >= first:
                    limit = min(limit, following[number])
            update = chain.updates[when - 1]
            if when < count and (self._held[update] or latest[when] >= first):
                bounds.append(when + 1)
                first = when + 1
                limit = count + 1
        stretch_at: list[tuple[Stretch, int] | None] = [None] * (count + 1)
        for start, stop in zip(bounds, [*bounds[1:], count + 1], strict=True):
            if stop - start >= MIN_WRITES:
                base = chain.base if start == 1 else chain.updates[start - 2]
                stretch = Stretch(base, chain.updates[start - 1 : stop - 1])
                self.found.append(stretch)
                stretch_at[start:stop] = [(stretch, start)] * (stop - start)
        for number, (view, when) in enumerate(views):
            place = stretch_at[own[number]]
            if place is None or when < place[1] - 1:
                place = stretch_at[when]
            if place is None:
                continue
            stretch, start = place
            stop = start + len(stretch.updates)
            if when == stop - 1 or last[number] >= start:
                self.sources[view] = Source("end", stretch)
            elif following[number] >= stop or (
                start <= own[number] <= following[number] and after_own[number] >= stop
            ):
                self.sources[view] = Source("any", stretch)
            else:
                self.sources[view] = Source("base", stretch)
