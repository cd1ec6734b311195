"""Temporal tiling: stencils that read neighbours of each other's results become one kernel.

    b[1:-1] = a[:-2] + a[2:]        tile of the result      [      8 .. 16      ]
    c[1:-1] = b[:-2] + b[2:]        what it needs of b    [      7 ..   17      ]    in local memory
                                    what it needs of a  [        6 ..     18      ]  from memory

As kernels of their own each of these reads and writes a whole array. As stages of one kernel, run
tile by tile, they find the tile in the core's cache, and values that nothing else needs never reach
memory. Elements that several tiles need are computed in each of them. The elements that an update
does not write come from the array that it updates.

Ten steps of five points over 2000 x 2000 float64 take .6 of the processor time of a kernel a step,
of three points over four million .4; four steps of the game of life .7 (EPYC, Zen 5).
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from typing import Final

from clfuse.schedule.kinds import MAP, TILES
from clfuse.schedule.lower.lowering import Lowering, Pending
from clfuse.schedule.memory.buffers import reads_of, writes_of
from clfuse.schedule.records import (
    MUTATIONS,
    Access,
    Cut,
    Index,
    Input,
    Kernel,
    LibraryCall,
    Load,
    Scalar,
    Stage,
    Step,
    Store,
    Tiling,
    UserLaunch,
)
from clfuse.schedule.shape.geometry import needs_wide_index, width_for
from clfuse.target.traits import DeviceTraits

from .rows import contents_before
from .tile_layouts import (
    Group,
    Layout,
    Made,
    Member,
    Walk,
    around_region,
    border_of,
    excess_of,
    is_in_place,
    is_plain,
    is_read_around,
    lay_out,
    walk_of,
)

MOST_STAGES: Final = 8
"""Kernels that become one: each more saves less, and takes as long to build."""

MOST_DIMENSIONS: Final = 2
"""Of what is cut into tiles: of three, so much is done again that nothing is gained (seven points
of float64, 160 x 160 x 160: 1.0 of the time of a kernel a step, both runtimes)."""

LEAST_NBYTES: Final = 1 << 23
"""What a kernel reads and writes of its largest array, or it is left alone: smaller ones stay in
the caches by themselves. Ten steps of five points took 0.8 to 1.2 of the time of single ones for
arrays of 1 to 6 MB, 0.76 for 8 MB, 0.6 for 16 MB (both runtimes; 32 MB of third cache)."""

LEAST_SAVED: Final = 0.25
"""Of the bytes that a group's kernels move: what is read again soon comes from a cache, too."""

MOST_PASSED: Final = 16
"""Launches that a group lets come before itself, in search of one that follows."""


def join_stages(lowering: Lowering, traits: DeviceTraits) -> None:
    """Turn chains of maps over neighbours into kernels of kind ``tiles``, in place."""
    if not traits.tile_nbytes or traits.schedule != "cpu":
        return
    if _is_large(max(lowering.values.nbytes, default=0)):
        _TimeTiles(lowering, traits).join()


def _is_large(nbytes: int) -> bool:
    """Whether an array of so many bytes, read and written, goes through memory."""
    return 2 * nbytes >= LEAST_NBYTES


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
        self.members: dict[int, Member | None] = {}
        self.refusals: dict[int, str] = {}
        """Launch -> why it is no stage of a group whose results it reads."""

    def _value_of_base(self, node: int) -> int | None:
        """The value in memory that an update's old contents are; None where they are computed."""
        if self.lowering.placement.is_filled(node):
            return None
        return self.lowering.values.of(self.lowering.placement.writes.base(node))

    def join(self) -> None:
        """Find groups, in order, and replace the launches of each by one."""
        pending = self.lowering.pending
        group = Group()
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
            group = Group()
            passed = []
        if self.merged:
            self.lowering.pending = [
                self.merged.get(index, entry)
                for index, entry in enumerate(pending)
                if index in self.merged or index not in self.gone
            ]

    def _depends(self, group: Group, index: int) -> bool:
        """Whether launch `index` needs what the group makes."""
        if not self.loads[index].isdisjoint(group.made):
            return True
        return any(
            self._value_of_base(node) in group.made
            for node in self.merged.get(index, self.lowering.pending[index]).updates
        )

    def _member(self, index: int) -> Member | None:
        """The launch as a stage; None where it can be none."""
        if index not in self.members:
            self.members[index] = self._as_member(index)
        return self.members[index]

    def _as_member(self, index: int) -> Member | None:
        entry = self.lowering.pending[index]
        kernel = entry.launch
        if not isinstance(kernel, Kernel) or not kernel.kind.elementwise:
            return None
        if kernel.then or kernel.where:
            return None
        if kernel.boxed or entry.shape != kernel.extents or 0 in kernel.extents:
            return None
        if not 1 <= len(kernel.extents) <= MOST_DIMENSIONS:
            return None
        # The last tile ends past the last element, and has as many of one byte as fit, and borders.
        if needs_wide_index(kernel, self.traits, 2 * self.traits.tile_nbytes):
            return None
        weight = 0.0
        reads: dict[int, int] = {}
        nbytes_of = self.lowering.values.nbytes
        around: set[int] = set()
        for item in kernel.body:
            if isinstance(item, Load):
                if item.position is not None or item.access.within or not is_plain(item.dtype):
                    return None
                elements = math.prod(
                    [
                        extent
                        for extent, stride in zip(kernel.extents, item.access.strides, strict=True)
                        if stride
                    ]
                )
                nbytes = min(elements * item.dtype.itemsize, nbytes_of[item.value])
                reads[item.value] = max(reads.get(item.value, 0), nbytes)
                around.update([dim for dim, _, _ in item.access.jumps])
                weight += 1.0
            elif isinstance(item, Step):
                if item.dtype.kind == "c" or any(dtype.kind == "c" for dtype in item.dtypes):
                    return None
                weight += item.op.weight
            elif not isinstance(item, Index | Scalar):
                return None
        made = []
        for store in kernel.stores:
            each = self._made(kernel, store)
            if each is None:
                return None
            made.append(each)
        written = sum([store.dtype.itemsize for store in kernel.stores])
        return Member(
            index,
            kernel,
            made,
            weight,
            reads,
            written * math.prod(kernel.extents),
            frozenset(around),
            any(isinstance(item, Index) for item in kernel.body),
        )

    def _made(self, kernel: Kernel, store: Store) -> Made | None:
        """What a store makes, where it makes all of an array, or a box of an update."""
        lowering = self.lowering
        graph = lowering.graph
        node = lowering.values.node[store.value]
        if node is None or self.writers[store.value] != 1 or not is_plain(store.dtype):
            return None
        shape = graph.shapes[node]
        walk = walk_of(store.access, shape, kernel.extents)
        is_update = lowering.is_written_in_place(node)
        if walk is None or walk.around or (shape != kernel.extents and not is_update):
            return None
        if is_update and (
            len(lowering.placement.writes.regions(node)) != 1
            or self._value_of_base(node) is None
            or graph.dtypes[lowering.placement.writes.base(node)] != store.dtype
        ):
            return None
        return Made(store.value, store.dtype, shape, walk.start, store, node, is_update)

    def _joins(self, group: Group, member: Member) -> bool:
        """Add `member` to the group if they can be one kernel; any large one can begin one."""
        follows = not group.made.keys().isdisjoint(member.reads)
        if not (follows if group.members else self._is_large(member)):
            return False
        grown = Group(
            [*group.members, member],
            {**group.made, **{made.value: made for made in member.made}},
            around=group.around | member.around,
        )
        if grown.around == group.around:
            grown.walks, grown.inputs = [*group.walks], {**group.inputs}
        reason = self._complete(grown)
        if not reason and self._is_changed_between(group, member):
            reason = "an array that is read is written to in between, where it lies"
        if not reason and len(grown.members) > 1:
            layout = lay_out(grown, self._ends(grown), self.traits)
            reason = layout if isinstance(layout, str) else ""
        if reason:
            self.refusals[member.index] = reason
            return False
        group.members, group.made = grown.members, grown.made
        group.walks, group.around, group.inputs = grown.walks, grown.around, grown.inputs
        return True

    def _complete(self, group: Group) -> str:
        """Fill in how the members read; a reason where they cannot be one kernel."""
        members = group.members
        extents = members[0].kernel.extents
        if len(members) > MOST_STAGES:
            return f"one kernel has {MOST_STAGES} steps at most"
        if any(len(each.kernel.extents) != len(extents) for each in members):
            return "they have other dimensions"
        for member in members[len(group.walks) :]:
            if group.around and (member.kernel.extents != extents or member.numbers_elements):
                return "what goes around is read over other elements, too"
            walks: dict[int, list[tuple[Access, Walk]]] = {}
            for item in member.kernel.body:
                if not isinstance(item, Load):
                    continue
                made = group.made.get(item.value)
                if made is None and not group.around:
                    continue  # from memory
                if made is None and not any(item.access.strides) and not item.access.jumps:
                    continue
                shape = extents if made is None else made.shape
                walk = walk_of(item.access, shape, member.kernel.extents)
                if walk is None or (made is not None and made.dtype != item.dtype):
                    return "neighbours are not at the same distance everywhere"
                if made is None:
                    known = group.inputs.setdefault(item.value, (item.dtype, extents))
                    if known[0] != item.dtype:
                        return "an array is read as two types"
                walks.setdefault(item.value, []).append((item.access, walk))
            group.walks.append(walks)
            if group.around and any(made.shape != extents for made in member.made):
                return "what goes around is a part of an array"
            updates = [made for made in member.made if made.is_update]
            if any(self._root(group, made) is None for made in updates):
                return "what an update leaves as it was is computed in the same kernel"
        return excess_of(group, self.traits)

    def _is_changed_between(self, group: Group, member: Member) -> bool:
        """Whether a launch before `member` is better done in place, where the group reads."""
        read = {value for each in group.members for value in each.reads}
        first = group.members[-1].index + 1 if group.members else member.index
        for index in range(first, member.index):
            entry = self.merged.get(index, self.lowering.pending[index])
            launch = entry.launch
            changed = {self._value_of_base(node) for node in entry.updates}
            if isinstance(launch, UserLaunch):
                changed.update(launch.changed)
            elif isinstance(launch, LibraryCall) and launch.name in MUTATIONS:
                changed.update([operand.value for operand in launch.operands[:1]])
            if not changed.isdisjoint(read):
                return True
        return False

    def _is_large(self, member: Member) -> bool:
        largest = max([*member.reads.values(), member.written // len(member.made)])
        return _is_large(largest)

    def _root(self, group: Group, made: Made) -> int | None:
        """The node that an update shows outside of its region, in memory before the group; None
        where that is computed."""
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

    def _ends(self, group: Group) -> set[int]:
        """The values that nothing in the group reads."""
        read = {value for walks in group.walks for value in walks}
        return {value for value in group.made if value not in read}

    def _needed(self, group: Group) -> set[int]:
        """The values that are needed in memory outside of the group."""
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

    def _follows(self, group: Group, made: Made, node: int) -> bool:
        """Whether an update outside of the group, of a value in it, can be one of its root."""
        writes = self.lowering.placement.writes
        return (
            made.is_update
            and self._root(group, made) is not None
            and writes.regions(node) == writes.regions(made.node)
        )

    def _close(self, group: Group, index: int) -> int:
        """Make one launch of the group, or of its first members; where to go on."""
        follow = self._following(group, index)
        if 0 < follow < len(group.members):  # two kernels of as many stages
            for _ in range((len(group.members) - follow) // 2):
                index = self._drop_last(group)
        while len(group.members) > 1:
            outputs = self._needed(group)
            layout = lay_out(group, outputs, self.traits)
            reason = layout if isinstance(layout, str) else self._loss(group, outputs, layout)
            if not reason:
                assert isinstance(layout, Layout)
                self._merge(group, outputs, layout)
                return index
            index = self._drop_last(group)
            self.refusals[index] = reason
        first = group.members[0]
        if index in self.refusals and not self.loads[index].isdisjoint(group.made):
            label = self.lowering.graph.label(first.made[0].node)
            reason = f"not one kernel with what reads it: {self.refusals[index]}"
            self.lowering.apart[first.made[0].value] = Cut(label, reason, 0)
        return max(index, first.index + 1)

    def _drop_last(self, group: Group) -> int:
        """Take the last member out of the group; which launch it is."""
        last = group.members.pop()
        for made in last.made:
            del group.made[made.value]
        group.walks, group.inputs = [], {}
        group.around = frozenset().union(*[member.around for member in group.members])
        self._complete(group)
        return last.index

    def _following(self, group: Group, index: int) -> int:
        """How many more launches from `index` on, at most as many as the group has, could be stages
        after it if there were no end to them."""
        count = 0
        made = set(group.made)
        for other in range(index, min(index + MOST_PASSED, len(self.lowering.pending))):
            member = self._member(other)
            if member is not None and not made.isdisjoint(member.reads):
                made.update([each.value for each in member.made])
                count += 1
                if count == len(group.members):
                    break
        return count

    def _loss(self, group: Group, outputs: set[int], layout: Layout) -> str:
        """Why one kernel would be no better than several; empty where fewer bytes are moved, by
        more than the operations cost that are done again."""
        apart = sum([sum(each.reads.values()) + each.written for each in group.members])
        reads: dict[int, int] = {}
        operations = 0.0
        for member in group.members:
            for value, nbytes in member.reads.items():
                if value not in group.made:
                    reads[value] = max(reads.get(value, 0), nbytes)
            operations += member.weight * math.prod(member.kernel.extents)
        together = sum(reads.values())
        for member in group.members:
            for made in member.made:
                if made.value in outputs:
                    nbytes = made.dtype.itemsize * math.prod(member.kernel.extents)
                    # Tiles cannot write into what others read: the rest may have to be copied, and
                    # what could be overwritten by its own kernel is another line of the cache.
                    rest = self.lowering.values.nbytes[made.value] - nbytes
                    together += nbytes + 2 * rest
                    if is_in_place(member, made, self._value_of_base(made.node)):
                        together += nbytes
        again = layout.overhead * operations * self.traits.operation_nbytes
        saved = apart - together
        if saved > max(again, LEAST_SAVED * apart):
            return ""
        if saved <= LEAST_SAVED * apart:
            return f"{max(saved, 0):.2g} bytes fewer of {apart:.2g} would be moved"
        return f"it would save {saved:.2g} bytes, and do operations again for {again:.2g}"

    def _merge(self, group: Group, outputs: set[int], layout: Layout) -> None:
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
        for number in range(len(group.members)):
            stage, touched = self._stage(group, outputs, layout, number, roots)
            stages.append(stage)
            phases += touched
        for value in outputs:
            root = roots.get(value)
            made = group.made[value]
            if root is not None and writes.base(made.node) != root:
                self._rebase(made.node, root)
        first, *then = phases
        tiling = Tiling(
            layout.extents, layout.lengths, group.around, stages, layout.scratch, layout.arrays
        )
        tiles = math.prod(
            [
                -(-extent // length)
                for extent, length in zip(layout.extents, layout.lengths, strict=True)
            ]
        )
        kernel = replace(
            first,
            kind=TILES,
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
        group: Group,
        outputs: set[int],
        layout: Layout,
        number: int,
        roots: dict[int, int | None],
    ) -> tuple[Stage, list[Kernel]]:
        """A member as a stage, and what it touches in memory as kernels."""
        member = group.members[number]
        kernel = member.kernel
        kernel.vector = len(kernel.extents) - 1
        kernel.schedule = "cpu"
        kernel.width = width_for(kernel, self.traits, layout.lengths[-1])
        walks = [pair for pairs in group.walks[number].values() for pair in pairs]
        starts = {access: walk.start for access, walk in walks}
        stage = Stage(kernel, layout.low[number], layout.high[number], starts)
        for value, before in layout.loaded.items():
            if before == number:
                dtype, shape = group.inputs[value]
                stage.inputs.append(Input(value, dtype, shape, *layout.need[value]))
        body = [
            item
            for item in kernel.body
            if isinstance(item, Load) and item.value not in group.made
        ]
        stores = [made.store for made in member.made if made.value in outputs]
        touched = [Kernel(MAP, kernel.extents, [*body], stores)]
        for made in [] if layout.direct[number] else member.made:
            starts[made.store.access] = made.start
            if made.value in outputs:
                stage.copied.append((made.store, made.start))
            root = roots.get(made.value)
            if root is not None and is_read_around(group, made, kernel):
                border = border_of(made, kernel, self.lowering.values.of(root), layout)
                stage.borders.append(border)
                touched += around_region(border, made, kernel)
        return stage, touched
