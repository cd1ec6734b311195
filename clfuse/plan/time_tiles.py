"""Kernels that read neighbours of each other's results become one, tile by tile; called by
`planner` before memory.

    b[1:-1] = a[:-2] + a[2:]        tile of the result      [      8 .. 16      ]
    c[1:-1] = b[:-2] + b[2:]        what it needs of b    [      7 ..   17      ]    in local memory
                                    what it needs of a  [        6 ..     18      ]  from memory

As kernels of their own each of these reads and writes a whole array. As stages of one kernel, run
tile by tile, they find the tile in the core's cache, and values that nobody else needs never reach
memory. What tiles need of each other is computed in both. What an update leaves as it was comes
from the array that it is an update of.

Measured on two cores (EPYC, PoCL), processor time of ten steps over 2000 x 2000 elements, as one
kernel by ten: five points of float64 .57, the game of life in int32 .65 (plain loops; five steps a
kernel, tiles of 64 x 512).
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from ..graph.ir import Kind
from ..graph.layout import contiguous_strides
from ..traits import DeviceTraits
from . import cost
from .geometry import needs_wide_index, round_up, width_for
from .iterations import complement
from .lowering import Lowering, Pending
from .memory import reads_of, writes_of
from .rows import contents_before
from .schedule import (
    Access,
    Border,
    Cut,
    Index,
    Kernel,
    Load,
    Scalar,
    Scratch,
    Stage,
    Step,
    Store,
    Tiling,
)

MOST_STAGES: Final = 8
"""Kernels that become one: each more saves less, and takes as long to build."""

MOST_OVERHEAD: Final = 0.15
"""Of the operations, those that are done again for another tile."""

CACHES: Final = 8
"""Kernels that move less than so many times what a tile may have are left alone: their arrays stay
in the caches by themselves."""

ROWS: Final = (32, 64, 128, 256, 512, 1024)
"""Elements of a tile's rows that are tried."""

ROW_COST: Final = 32
"""Elements that could be computed while a row begins and ends."""

BETWEEN: Final = (8, 16, 32, 64)
"""And of the dimensions between the first and the last."""

TILES_PER_ITEM: Final = 2
"""A device's units have this many tiles each at least, or the tiles become smaller."""

MOST_PASSED: Final = 16
"""Launches that a group lets come before itself, in search of one that follows."""

_LINE: Final = 64
"""Bytes."""

Ints = tuple[int, ...]


def join_stages(lowering: Lowering, traits: DeviceTraits) -> None:
    """Turn chains of maps over neighbours into kernels of kind ``tiles``, in place."""
    if traits.tile_nbytes and traits.schedule == "cpu":
        _TimeTiles(lowering, traits).join()


@dataclass(slots=True)
class _Made:
    """A value that a map stores: over what shape, and from which index on along each axis."""

    value: int
    dtype: np.dtype
    shape: Ints
    start: Ints
    store: Store
    node: int
    is_update: bool


@dataclass(slots=True)
class _Member:
    """A map that may be a stage."""

    index: int
    kernel: Kernel
    made: list[_Made]
    weight: float
    reads: dict[int, int]  # value -> bytes
    written: int  # bytes


@dataclass(slots=True)
class _Layout:
    """How a group's values lie in tiles."""

    low: list[Ints]
    high: list[Ints]
    direct: list[bool]
    need: dict[int, tuple[Ints, Ints]]
    scratch: dict[int, Scratch]
    arrays: list[tuple[np.dtype, int]]
    lengths: Ints
    extents: Ints
    overhead: float


@dataclass(slots=True)
class _Group:
    members: list[_Member] = field(default_factory=list)
    made: dict[int, _Made] = field(default_factory=dict)
    starts: list[dict[int, list[Ints]]] = field(default_factory=list)
    """For each member: value of the group that it loads -> the first indices of the loads."""


class _TimeTiles:
    """The pass: who writes and reads every value."""

    def __init__(self, lowering: Lowering, traits: DeviceTraits) -> None:
        self.lowering = lowering
        self.traits = traits
        self.readers: defaultdict[int, set[int]] = defaultdict(set)
        self.updated: defaultdict[int, list[int]] = defaultdict(list)
        """Value -> the updates of it."""
        self.writers: defaultdict[int, int] = defaultdict(int)
        self.loads: list[set[int]] = []
        for index, entry in enumerate(lowering.pending):
            read = {value for value, _ in reads_of(entry.launch)}
            for node in entry.updates:
                base = self._value_of_base(node)
                if base is None:
                    read.update(contents_before(lowering, node))
                else:
                    self.updated[base].append(node)
            for value in read:
                self.readers[value].add(index)
            for value in writes_of(entry.launch):
                self.writers[value] += 1
            self.loads.append(read)
        self.kept = lowering.values_needed_later()
        self.place_of = {
            node: index for index, entry in enumerate(lowering.pending) for node in entry.updates
        }
        self.merged: dict[int, Pending] = {}
        self.gone: set[int] = set()

    def _value_of_base(self, node: int) -> int | None:
        """The value in memory that an update's old contents are; None where they are computed."""
        placement = self.lowering.placement
        old = placement.writes.base(node)
        if self.lowering.graph.kinds[old] is Kind.LEAF:
            return self.lowering.values.leaf(old)
        if placement.stored[old] and placement.level[old] < placement.level[node]:
            return self.lowering.values.of_node[old]
        return None

    def join(self) -> None:
        """Find groups, in order, and replace the launches of each by one."""
        pending = self.lowering.pending
        group = _Group()
        passed: list[int] = []  # what could begin a group of its own
        index = 0
        while index < len(pending) or group.members:
            if index < len(pending) and len(passed) < MOST_PASSED:
                if index in self.gone and index not in self.merged:
                    index += 1
                    continue
                member = None if index in self.merged else self._member(index)
                if member is not None and self._joins(group, member):
                    index += 1
                    continue
                if not group.members or not self._depends(group, index):
                    if group.members and member is not None:
                        passed.append(index)
                    index += 1
                    continue
            index = min([self._close(group, index), *passed])
            group = _Group()
            passed = []
        if self.merged:
            self.lowering.pending = [
                self.merged.get(index, entry)
                for index, entry in enumerate(pending)
                if index in self.merged or index not in self.gone
            ]

    def _depends(self, group: _Group, index: int) -> bool:
        """Whether launch `index` needs what the group makes."""
        if not self.loads[index].isdisjoint(group.made):
            return True
        return any(
            self._value_of_base(node) in group.made
            for node in self.merged.get(index, self.lowering.pending[index]).updates
        )

    def _member(self, index: int) -> _Member | None:
        """The launch as a stage; None where it can be none."""
        entry = self.lowering.pending[index]
        kernel = entry.launch
        if not isinstance(kernel, Kernel) or kernel.kind != "map" or kernel.then or kernel.where:
            return None
        if kernel.boxed or entry.shape != kernel.extents or not 1 <= len(kernel.extents) <= 3:
            return None
        if 0 in kernel.extents or needs_wide_index(kernel):
            return None
        weight = 0.0
        reads: dict[int, int] = {}
        values = self.lowering.values
        for item in kernel.body:
            if isinstance(item, Load):
                if item.position is not None or item.other is not None or item.access.seams:
                    return None
                if item.dtype.kind not in "biuf" or item.dtype.char == "e":
                    return None
                elements = math.prod(
                    [
                        extent
                        for extent, stride in zip(kernel.extents, item.access.strides, strict=True)
                        if stride
                    ]
                )
                nbytes = min(elements * item.dtype.itemsize, values.nbytes[item.value])
                reads[item.value] = max(reads.get(item.value, 0), nbytes)
                weight += 1.0
            elif isinstance(item, Step):
                if item.dtype.kind == "c" or any(dtype.kind == "c" for dtype in item.dtypes):
                    return None
                weight += item.op.weight
            elif not isinstance(item, Index | Scalar):
                return None
        made = [self._made(kernel, store) for store in kernel.stores]
        if None in made:
            return None
        written = sum([store.dtype.itemsize for store in kernel.stores])
        return _Member(
            index,
            kernel,
            made,  # type: ignore[arg-type]
            weight,
            reads,
            written * math.prod(kernel.extents),
        )

    def _made(self, kernel: Kernel, store: Store) -> _Made | None:
        """What a store makes, where it makes all of an array, or a box of an update."""
        lowering = self.lowering
        graph = lowering.graph
        node = lowering.values.node[store.value]
        if node is None or self.writers[store.value] != 1 or store.dtype.char == "e":
            return None
        if store.dtype.kind not in "biuf":
            return None
        shape = graph.shapes[node]
        start = _start(store.access, shape, kernel.extents)
        is_update = lowering.is_written_in_place(node)
        if start is None or (shape != kernel.extents and not is_update):
            return None
        if is_update and (
            len(lowering.placement.writes.regions(node)) != 1
            or self._value_of_base(node) is None
            or graph.dtypes[lowering.placement.writes.base(node)] != store.dtype
        ):
            return None
        return _Made(store.value, store.dtype, shape, start, store, node, is_update)

    def _joins(self, group: _Group, member: _Member) -> bool:
        """Add `member` to the group if they can be one kernel; any member can begin one."""
        starts: dict[int, list[Ints]] = {}
        for item in member.kernel.body:
            if isinstance(item, Load) and item.value in group.made:
                made = group.made[item.value]
                start = _start(item.access, made.shape, member.kernel.extents)
                if start is None or made.dtype != item.dtype:
                    return False
                starts.setdefault(item.value, []).append(start)
        if not group.members:
            # Others must be able to follow.
            if not self._is_large(member):
                return False
        else:
            first = group.members[0]
            if len(first.kernel.extents) != len(member.kernel.extents):
                return False
            if len(group.members) == MOST_STAGES:
                return False
            if not starts:
                return False
            if not all(self._base_is_known(group, made) for made in member.made):
                return False
            if not self._fits(group, member):
                return False
        grown = _Group(
            [*group.members, member],
            {**group.made, **{made.value: made for made in member.made}},
            [*group.starts, starts],
        )
        if group.members and self._layout(grown, self._ends(grown)) is None:
            return False
        group.members, group.made, group.starts = grown.members, grown.made, grown.starts
        return True

    def _is_large(self, member: _Member) -> bool:
        return sum(member.reads.values()) + member.written >= CACHES * self.traits.tile_nbytes

    def _fits(self, group: _Group, member: _Member) -> bool:
        """Whether one kernel may have so many operations and arguments."""
        kernels = [each.kernel for each in [*group.members, member]]
        items = [item for kernel in kernels for item in kernel.body]
        if sum(isinstance(item, Step) for item in items) > self.traits.max_steps:
            return False
        buffers = {item.value for item in items if isinstance(item, Load)} - set(group.made)
        buffers.update(group.made)
        buffers.update([made.value for made in member.made])
        scalars = sum(isinstance(item, Scalar) for item in items)
        nbytes = cost.BUFFER_NBYTES * len(buffers) + 8.0 * scalars
        return nbytes <= max(self.traits.max_parameter_nbytes, 4 * cost.BUFFER_NBYTES)

    def _base_is_known(self, group: _Group, made: _Made) -> bool:
        """Whether what an update leaves as it was is in memory before the group."""
        return not made.is_update or self._root(group, made) is not None

    def _root(self, group: _Group, made: _Made) -> int | None:
        """The node that an update shows outside of its region, in memory before the group."""
        writes = self.lowering.placement.writes
        node = made.node
        while True:
            base = self._value_of_base(node)
            if base is None:
                return None
            older = group.made.get(base)
            if older is None:
                return writes.base(node)
            if not older.is_update or older.store.access != made.store.access:
                return None
            if older.shape != made.shape or writes.regions(older.node) != writes.regions(node):
                return None
            node = older.node

    def _ends(self, group: _Group) -> set[int]:
        """The values that nobody in the group reads."""
        read = {value for starts in group.starts for value in starts}
        return {value for value in group.made if value not in read}

    def _needed(self, group: _Group) -> set[int]:
        """The values that somebody outside of the group needs in memory."""
        inside = {member.index for member in group.members}
        needed = self._ends(group)
        for value, made in group.made.items():
            if value in self.kept or not self.readers[value] <= inside:
                needed.add(value)
                continue
            for node in self.updated[value]:
                if self.place_of.get(node) in inside or self._follows(group, made, node):
                    continue
                needed.add(value)
        return needed

    def _follows(self, group: _Group, made: _Made, node: int) -> bool:
        """Whether an update outside of the group, of a value in it, can be one of its root."""
        writes = self.lowering.placement.writes
        return (
            made.is_update
            and self._root(group, made) is not None
            and writes.regions(node) == writes.regions(made.node)
        )

    def _layout(self, group: _Group, outputs: set[int]) -> _Layout | None:
        """Tiles in which the group's operations are few more than without; None: there are none."""
        members = group.members
        rank = len(members[0].kernel.extents)
        zero = (0,) * rank
        need: dict[int, tuple[Ints, Ints]] = {value: (zero, zero) for value in outputs}
        read: dict[int, int] = {}
        low: list[Ints] = [zero] * len(members)
        high: list[Ints] = [zero] * len(members)
        for number in range(len(members) - 1, -1, -1):
            member = members[number]
            wanted = [(made.start, *need[made.value]) for made in member.made]
            low[number] = tuple(
                [min([l[d] - start[d] for start, l, _ in wanted]) for d in range(rank)]
            )
            high[number] = tuple(
                [max([h[d] - start[d] for start, _, h in wanted]) for d in range(rank)]
            )
            for value, starts in group.starts[number].items():
                read.setdefault(value, number)
                lows, highs = need.get(value, (None, None))
                for start in starts:
                    first = tuple([a + s for a, s in zip(low[number], start, strict=True)])
                    last = tuple([b + s for b, s in zip(high[number], start, strict=True)])
                    lows = first if lows is None else tuple(map(min, lows, first))
                    highs = last if highs is None else tuple(map(max, highs, last))
                assert lows is not None and highs is not None
                need[value] = lows, highs
        direct = []
        # What stage after stage has in scratch: an array is free again after its last reader.
        arrays: list[tuple[np.dtype, Ints]] = []
        free_from: list[int] = []
        array_of: dict[int, int] = {}
        for number, member in enumerate(members):
            starts = {made.start for made in member.made}
            is_direct = len(starts) == 1 and not any(made.value in read for made in member.made)
            direct.append(is_direct)
            if is_direct:
                continue
            for made in member.made:
                span = tuple([b - a for a, b in zip(low[number], high[number], strict=True)])
                place = next(
                    (
                        place
                        for place, (dtype, _) in enumerate(arrays)
                        if dtype == made.dtype and free_from[place] <= number
                    ),
                    None,
                )
                if place is None:
                    place = len(arrays)
                    arrays.append((made.dtype, span))
                    free_from.append(0)
                else:
                    arrays[place] = (made.dtype, tuple(map(max, arrays[place][1], span)))
                array_of[made.value] = place
                free_from[place] = read.get(made.value, number) + 1
        ends = [
            tuple([s + e for s, e in zip(made.start, member.kernel.extents, strict=True)])
            for member in members
            for made in member.made
            if made.value in outputs
        ]
        extents = tuple([max(end[d] for end in ends) for d in range(rank)])
        chosen = self._lengths(members, low, high, arrays, extents)
        if chosen is None:
            return None
        most, overhead = chosen
        scratch = {}
        strides_of = []
        elements = []
        for dtype, span in arrays:
            lengths = [length + s for length, s in zip(most, span, strict=True)]
            lengths[-1] = round_up(lengths[-1], _LINE // dtype.itemsize)
            strides_of.append(contiguous_strides(tuple(lengths)))
            elements.append((dtype, math.prod(lengths)))
        for number, member in enumerate(members):
            if direct[number]:
                continue
            for made in member.made:
                place = array_of[made.value]
                lows = tuple([a + s for a, s in zip(low[number], made.start, strict=True)])
                scratch[made.value] = Scratch(place, made.shape, lows, strides_of[place])
        lengths = self._balanced(most, extents)
        return _Layout(
            low, high, direct, need, scratch, elements, lengths, extents, overhead
        )

    def _lengths(
        self,
        members: list[_Member],
        low: list[Ints],
        high: list[Ints],
        arrays: list[tuple[np.dtype, Ints]],
        extents: Ints,
    ) -> tuple[Ints, float] | None:
        """The tile with the fewest operations that are done twice, and their share."""
        rank = len(extents)
        budget = self.traits.tile_nbytes
        best: tuple[float, Ints, float] | None = None
        rows = [(length,) for length in ROWS]
        if rank == 3:
            rows = [(between, length) for between in BETWEEN for (length,) in rows]
        if rank == 1:
            rows = [()]
        total = sum([member.weight for member in members])
        for inner in rows:
            # Bytes of a tile of no elements along the first dimension, and of each more.
            least = each = 0
            for dtype, span in arrays:
                lengths = [length + s for length, s in zip(inner, span[1:], strict=True)]
                if lengths:
                    lengths[-1] = round_up(lengths[-1], _LINE // dtype.itemsize)
                nbytes = dtype.itemsize * math.prod(lengths)
                each += nbytes
                least += nbytes * (span[0] + (0 if lengths else _LINE))
            first = (budget - least) // max(each, 1)
            if rank == 1:
                first -= first % _LINE
            if first < 1:
                continue
            lengths_ = (min(first, 1 << 16), *inner)
            again = spent = 0.0
            for member, lows, highs in zip(members, low, high, strict=True):
                volume = 1.0
                for d, (length, extent) in enumerate(zip(lengths_, extents, strict=True)):
                    if length < extent:
                        volume *= (length + highs[d] - lows[d]) / length
                again += member.weight * volume
                spent += member.weight * volume * (1 + ROW_COST / min(lengths_[-1], extents[-1]))
            overhead = again / total - 1
            if overhead <= MOST_OVERHEAD and (best is None or spent < best[0]):
                best = spent, lengths_, overhead
        return None if best is None else best[1:]

    def _balanced(self, most: Ints, extents: Ints) -> Ints:
        """Tiles of at most these lengths, so many that all units have work to the end."""
        across = math.prod(
            [-(-extent // length) for length, extent in zip(most[1:], extents[1:], strict=True)]
        )
        wanted = -(-TILES_PER_ITEM * self.traits.compute_units // across)
        pieces = max(wanted, -(-extents[0] // most[0]))
        pieces = -(-pieces // wanted) * wanted if pieces > wanted else pieces
        first = max(1, -(-extents[0] // pieces))
        if len(most) == 1:
            first = round_up(first, _LINE)
        return (min(first, most[0]), *most[1:])

    def _close(self, group: _Group, index: int) -> int:
        """Make one launch of the group, or of its first members; where to go on."""
        while len(group.members) > 1:
            outputs = self._needed(group)
            layout = self._layout(group, outputs)
            if layout is not None and self._pays(group, outputs, layout):
                self._merge(group, outputs, layout)
                return index
            last = group.members.pop()
            group.starts.pop()
            for made in last.made:
                del group.made[made.value]
            index = last.index
        return max(index, group.members[0].index + 1)

    def _pays(self, group: _Group, outputs: set[int], layout: _Layout) -> bool:
        """Whether fewer bytes are moved, by more than the operations cost that are done again."""
        apart = sum([sum(each.reads.values()) + each.written for each in group.members])
        reads: dict[int, int] = {}
        operations = 0.0
        for member in group.members:
            for value, nbytes in member.reads.items():
                if value not in group.made:
                    reads[value] = max(reads.get(value, 0), nbytes)
            operations += member.weight * math.prod(member.kernel.extents)
        together = sum(reads.values()) + sum(
            [
                made.dtype.itemsize * math.prod(member.kernel.extents)
                for member in group.members
                for made in member.made
                if made.value in outputs
            ]
        )
        again = layout.overhead * operations * self.traits.operation_nbytes
        return apart - together > again

    def _merge(self, group: _Group, outputs: set[int], layout: _Layout) -> None:
        lowering = self.lowering
        writes = lowering.placement.writes
        roots = {
            value: self._root(group, made)
            for value, made in group.made.items()
            if made.is_update
        }
        inside = {member.index for member in group.members}
        for value in group.made:
            root = roots.get(value)
            if value not in outputs and root is not None:
                for node in list(self.updated[value]):
                    if self.place_of.get(node) not in inside:
                        self._rebase(node, root)
        stages: list[Stage] = []
        phases: list[Kernel] = []
        for number, member in enumerate(group.members):
            stage, touched = self._stage(group, outputs, layout, number, roots)
            stages.append(stage)
            phases += touched
        for value in outputs:
            root = roots.get(value)
            made = group.made[value]
            if root is not None and writes.base(made.node) != root:
                self._rebase(made.node, root)
        first, *then = phases
        tiling = Tiling(layout.extents, layout.lengths, stages, layout.scratch, layout.arrays)
        tiles = math.prod(
            [
                -(-extent // length)
                for extent, length in zip(layout.extents, layout.lengths, strict=True)
            ]
        )
        kernel = replace(
            first,
            kind="tiles",
            then=then,
            tiling=tiling,
            vector=len(first.extents) - 1,
            work_items=min(tiles, self.traits.work_items),
        )
        last = lowering.pending[group.members[-1].index]
        updates = [
            made.node for value, made in group.made.items() if made.is_update and value in outputs
        ]
        self.gone.update([member.index for member in group.members])
        place = group.members[-1].index
        self.merged[place] = Pending(last.level, kernel, updates)
        self.loads[place] = {value for value, _ in reads_of(kernel)}
        for node in updates:
            self.place_of[node] = place
        dropped = {made.node for value, made in group.made.items() if value not in outputs}
        graph = lowering.graph
        kept = [cut for cut in lowering.placement.cuts if cut.node not in dropped]
        label = graph.label(group.members[-1].made[0].node)
        reason = (
            f"{len(stages)} steps are one kernel, tiles of "
            f"{'x'.join(map(str, layout.lengths))} in local memory: "
            f"{layout.overhead:.1%} of the operations are done again for neighbouring tiles"
        )
        lowering.placement.cuts = [*kept, Cut(label, reason, 0)]

    def _rebase(self, node: int, root: int) -> None:
        writes = self.lowering.placement.writes
        old = self._value_of_base(node)
        if old is not None and node in self.updated[old]:
            self.updated[old] = [each for each in self.updated[old] if each != node]
        writes.rebase(node, root)
        base = self._value_of_base(node)
        assert base is not None
        self.updated[base].append(node)

    def _stage(
        self,
        group: _Group,
        outputs: set[int],
        layout: _Layout,
        number: int,
        roots: dict[int, int | None],
    ) -> tuple[Stage, list[Kernel]]:
        """A member as a stage, and what it touches in memory as kernels."""
        member = group.members[number]
        kernel = member.kernel
        kernel.vector = len(kernel.extents) - 1
        kernel.schedule = "cpu"
        kernel.width = width_for(kernel, self.traits, layout.lengths[-1])
        stage = Stage(kernel, layout.low[number], layout.high[number])
        loads = [item for item in kernel.body if isinstance(item, Load)]
        body = [item for item in loads if item.value not in group.made]
        stores = [made.store for made in member.made if made.value in outputs]
        touched = [Kernel("map", kernel.extents, body, stores)]
        for made in member.made:
            if layout.direct[number]:
                continue
            if made.value in outputs:
                stage.copied.append((made.store, made.start))
            border = self._border(group, layout, made, number, roots)
            if border is not None:
                stage.borders.append(border)
                access = made.store.access
                boxes = complement(made.shape, kernel.extents, access.offset, access.strides)
                assert boxes is not None
                strides = contiguous_strides(made.shape)
                for box in boxes:
                    offset = sum([low * s for (low, _), s in zip(box, strides, strict=True)])
                    load = Load(0, border.base, made.dtype, Access(offset, strides))
                    touched.append(
                        Kernel("map", tuple([high - low for low, high in box]), [load], [])
                    )
        return stage, touched

    def _border(
        self,
        group: _Group,
        layout: _Layout,
        made: _Made,
        number: int,
        roots: dict[int, int | None],
    ) -> Border | None:
        """What stages read of an update outside of its region; None where they read nothing."""
        if not made.is_update:
            return None
        extents = group.members[number].kernel.extents
        box = tuple([(s, s + e) for s, e in zip(made.start, extents, strict=True)])
        reads_outside = any(
            start < low or start + extent > high
            for reader, starts in zip(group.members, group.starts, strict=True)
            for first in starts.get(made.value, ())
            for start, extent, (low, high) in zip(
                first, reader.kernel.extents, box, strict=True
            )
        )
        if not reads_outside:
            return None
        root = roots[made.value]
        assert root is not None
        values = self.lowering.values
        is_leaf = self.lowering.graph.kinds[root] is Kind.LEAF
        base = values.leaf(root) if is_leaf else values.of_node[root]
        low, high = layout.need[made.value]
        return Border(made.value, base, made.dtype, made.shape, box, low, high)


def _start(access: Access, shape: Ints, extents: Ints) -> Ints | None:
    """The first index along each axis where an access walks a box of `shape`, axis by axis and
    element by element; None where it does not.

    >>> _start(Access(7, (6, 1)), (4, 6), (2, 4)), _start(Access(0, (1, 6)), (4, 6), (4, 4))
    ((1, 1), None)
    """
    if access.seams or len(shape) != len(extents):
        return None
    rest = access.offset
    if rest < 0:
        return None
    found = []
    for stride, step, length, extent in zip(
        access.strides, contiguous_strides(shape), shape, extents, strict=True
    ):
        if stride != step and extent > 1:
            return None
        start, rest = divmod(rest, step)
        if start + extent > length:
            return None
        found.append(start)
    return tuple(found)
