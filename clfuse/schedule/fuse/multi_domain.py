"""Loop fusion over unequal ranges: one kernel, with a body for each part of the joined range.

    b[:] = a + 1                            one kernel over all of a, with two bodies:
    c[1:-1] = a[2:] - a[:-2]                in [1, n - 1) both statements, elsewhere the first

Two kernels would read the array twice. Elements are read and written in step: an index more in one
kernel is one more in the other. A kernel that reads the other's results must read the very element
of the same index; where the other has not written, the array is as it was. Neither range need lie
within the other: differences along the rows and down the columns of an array are one kernel, too.

Element-wise kernels are joined, in any number, with folds or with scans that write or read the
same: two steps of the star stencil of the Parallel Research Kernels, its increment and the norm of
its result move four arrays then instead of six. Folds go over the same dimensions, along rows or
down columns; each has the elements of its own range, and together they have results for the rows
of one of them. Maps turn their dimensions to those of a fold.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from clfuse.schedule import cost
from clfuse.schedule.lower.lowering import Lowering, Pending
from clfuse.schedule.memory.buffers import reads_of, writes_of
from clfuse.schedule.records import Access, Cut, Index, Kernel, Load, Prefix, Scalar, Step, Store
from clfuse.schedule.shape.geometry import permute_map
from clfuse.target.traits import DeviceTraits

from .box_bodies import Arrays, Cells, cells_of_parts, folded_values, scans_in_order, touched_items
from .boxes import Apart, decompose_offset, has_parts
from .rows import contents_before

LEAST_ROW: Final = 64
"""Elements of a row that are of both ranges: at the ends of shorter ones, where a box begins and
ends, elements one by one take what is saved."""

LEAST_PART: Final = 0.5
"""Of all that they range over, what is of both: a border is better left to a kernel of its own."""

MOST_ITEMS: Final = 64
"""Loads and operations of either: longer bodies do not wait for memory, and their text is written
twice."""

MOST_BETWEEN: Final = 16
"""Launches between two that are joined, each of which is looked at."""

MOST_STARTS: Final = 4
"""Places of one range in the other that are tried."""

MOST_REASONS: Final = 16
"""Pairs of kernels of one plan of which `explain` says why they are two."""

_PLAIN: Final = (Load, Index, Scalar, Step, Prefix)


def join_guarded(lowering: Lowering, traits: DeviceTraits) -> None:
    """Join kernels of a lowering whose ranges overlap and that read the same."""
    _Joining(lowering, traits).run()


class _Joining:
    def __init__(self, lowering: Lowering, traits: DeviceTraits) -> None:
        self._lowering = lowering
        self._pending = lowering.pending
        self._traits = traits
        self._arrays = Arrays(lowering)
        self._writers = Counter(
            value for entry in self._pending for value in {*writes_of(entry.launch)}
        )
        self._gone: dict[int, int] = {}  # the place of what was joined, and of what it is in
        self._cells: dict[int, Cells] = {}
        self._explained = {cut.node for cut in lowering.placement.cuts}
        self._reasons = 0

    def run(self) -> None:
        latest: dict[int, int] = {}
        for place, entry in enumerate(self._pending):
            kernel = entry.launch
            if not isinstance(kernel, Kernel) or kernel.kind.by_tiles:
                continue
            used = touched_items(kernel)
            loads = {item.value for item in used if isinstance(item, Load)}
            earlier = {self._now(latest[value]) for value in loads if value in latest}
            into, apart = place, None
            for other in sorted(earlier, reverse=True):
                try:
                    if self._join(into, other):
                        into = other  # which may have something in common with an earlier one
                except Apart as reason:
                    apart = apart or (other, str(reason))
            if apart is not None and into == place:
                self._note(place, *apart)
            latest.update([(item.value, into) for item in used])
        if self._gone:
            gone = self._drop_unread().union(self._gone)
            self._pending[:] = [
                entry for place, entry in enumerate(self._pending) if place not in gone
            ]

    def _now(self, place: int) -> int:
        """Where that launch is now."""
        while place in self._gone:
            place = self._gone[place]
        return place

    def _join(self, place: int, other: int) -> bool:
        """Join a launch into an earlier one; False for two that this pass does not join.

        Raises Apart: they cannot be, and nothing else says why.
        """
        kernel, launch = self._pending[place].launch, self._pending[other].launch
        assert isinstance(kernel, Kernel)
        assert isinstance(launch, Kernel)
        is_equal = sorted(launch.extents) == sorted(kernel.extents)
        if is_equal and not (has_parts(kernel) or has_parts(launch)):
            return False  # equal ranges are joined before, or cannot be
        if not folded_values(launch).isdisjoint(value for value, _ in reads_of(kernel)):
            return False  # a fold that has to be done before: that value has its reason
        written = writes_of(launch)
        if not self._arrays.of(self._filled_from(place)).isdisjoint(self._arrays.of(written)):
            raise Apart("the one makes what the other's array is filled with before")
        _check_kind(kernel)
        self._arrays.shared = {value for value in written if self._writers[value] > 1}
        first = self._cells.get(other)
        if first is None:
            _check_kind(launch)
            first = cells_of_parts(launch, self._arrays, self._traits.operation_nbytes)
            first = first or Cells(launch, self._arrays)
        self._check_moves(other, place)
        self._replace(other, place, self._joined(first, kernel))
        return True

    def _replace(self, first: int, second: int, made: Cells) -> None:
        one, two = self._pending[first], self._pending[second]
        self._writers.subtract({*writes_of(one.launch)} & {*writes_of(two.launch)})
        for value in writes_of(one.launch):
            self._lowering.apart.pop(value, None)
        self._cells.pop(second, None)
        self._cells[first] = made
        self._pending[first] = Pending(one.level, made.kernel(), [*one.updates, *two.updates])
        self._gone[second] = first

    def _drop_unread(self) -> set[int]:
        """Store nothing that only the kernel itself has read; the launches that do nothing else."""
        lowering = self._lowering
        read = lowering.values_needed_later()
        for place, entry in enumerate(self._pending):
            if place not in self._gone:
                read |= {value for value, _ in reads_of(entry.launch)}
                for node in entry.updates:
                    read.update(contents_before(lowering, node))
        dropped = {store.value for cells in self._cells.values() for store in cells.stores} - read
        gone = {  # until another result of theirs is read
            place: {*writes_of(entry.launch)} for place, entry in enumerate(self._pending)
            if place not in self._gone and place not in self._cells
        }
        while kept := [
            place for place, written in gone.items()
            if not written <= dropped or not isinstance(self._pending[place].launch, Kernel)
        ]:
            for place in kept:
                dropped -= gone.pop(place)
        nodes = {lowering.values.node[value] for value in dropped}
        for place, cells in self._cells.items():
            unread = dropped.intersection([store.value for store in cells.stores])
            if unread:
                entry = self._pending[place]
                updates = [node for node in entry.updates if node not in nodes]
                self._pending[place] = Pending(entry.level, cells.without(unread).kernel(), updates)
        cuts = lowering.placement.cuts
        cuts[:] = [cut for cut in cuts if cut.node < 0 or cut.node not in nodes]
        return set(gone)

    def _filled_from(self, place: int) -> set[int]:
        """What the rest of an array is computed from, before a launch that updates it, where that
        lies nowhere yet."""
        lowering = self._lowering
        return {
            value for node in self._pending[place].updates if lowering.placement.is_filled(node)
            for value in contents_before(lowering, node)
        }

    def _reads(self, place: int) -> set[int]:
        """What a launch, and what is done before it, read."""
        return self._filled_from(place).union(
            [value for value, _ in reads_of(self._pending[place].launch)]
        )

    def _check_moves(self, first: int, second: int) -> None:
        """Whether a launch may run at the place of an earlier one: none between them makes what it
        reads, or touches what it may write over."""
        if second - first > MOST_BETWEEN:
            raise Apart(f"{second - first - 1} launches lie between them")
        launch = self._pending[second].launch
        loads = self._arrays.of(self._reads(second))
        stores = self._arrays.of(writes_of(launch))
        for place in range(first + 1, second):
            if place in self._gone:
                continue
            other = self._pending[place].launch
            made = self._arrays.of(writes_of(other))
            read = self._arrays.of(self._reads(place))
            if not made.isdisjoint(loads | stores) or not stores.isdisjoint(read):
                raise Apart("a launch between them needs the one or is needed by the other")

    def _joined(self, first: Cells, second: Kernel) -> Cells:
        """Both over the range that holds both of theirs, elements that are the same in step."""
        if len(first.extents) != len(second.extents):
            raise Apart(f"ranges of {len(first.extents)} and {len(second.extents)} dimensions")
        found: list[tuple[int, Cells]] = []
        why = "no array says where the one range begins in the other"
        sides = zip(first.extents, second.extents, strict=True)
        single = [dim for dim, extents in enumerate(sides) if extents == (1, 1)]
        for start in _starts([*first.loads, *first.stores], touched_items(second), single):
            try:
                shared, made = self._joined_at(start, first, second)
                self._check_size(made)
            except Apart as reason:
                why = str(reason)  # itself would hold this frame, and all arrays with it
                continue
            found.append((shared, made))
        if not found:
            raise Apart(why)
        return max(found, key=lambda each: each[0])[1]

    def _joined_at(self, at: _Start, first: Cells, second: Kernel) -> tuple[int, Cells]:
        """How many elements they share, and both as one."""
        start, along = at.start, at.along
        if list(at.order) != sorted(at.order):
            if first.whole.reduced and second.reduced:
                raise Apart("they fold different dimensions")
            if first.whole.reduced:
                second = permute_map(second, at.order)
            elif second.reduced:
                back = [at.order.index(dim) for dim in range(len(at.order))]
                first, along = first.permuted(back), at.order[along]
                start = tuple([start[dim] for dim in back])
            else:
                raise Apart("they go over what they share in different orders")
        maps: list[Load | Store] = []
        maps += [] if first.whole.reduced else [*first.loads, *first.stores]
        maps += [] if second.reduced else touched_items(second)
        if any(_is_across(item.access, along) for item in maps):
            raise Apart("one of them goes over another array in the order of its columns")
        one, two = first.extents, second.extents
        if along == len(one) - 1 and any(map(scans_in_order, (first.whole, second))):
            raise Apart("one of them scans in NumPy's order what lies side by side, row by row")
        shared = _check_worth(one, two, start, along)
        low = [min(begin, 0) for begin in start]
        extents = tuple(
            [
                max(a, begin + b) - least
                for a, b, begin, least in zip(one, two, start, low, strict=True)
            ]
        )
        for kernel, own in ((first.whole, one), (second, two)):
            if kernel.kind.has_given_pieces and own != extents:
                raise Apart("one of them counts in pieces of its own range")
        placed = first.placed(extents, [-least for least in low])
        there = [begin - least for begin, least in zip(start, low, strict=True)]
        return shared, placed.joined(second, there)

    def _check_size(self, made: Cells) -> None:
        traits = self._traits
        longest = max([len(cell.items) for cell in made.cells])
        if longest > traits.max_steps:
            raise Apart(f"together {longest} loads and operations")
        stored = {store.value for store in made.stores}
        used = stored | {load.value for load in made.loads}
        if len(stored) > cost.MAX_STORES or len(used) > cost.max_arguments(traits):
            raise Apart(f"together {len(stored)} results, {len(used)} arrays")

    def _note(self, place: int, other: int, reason: str) -> None:
        """Let `explain` say why two kernels that touch the same are two."""
        if self._reasons == MOST_REASONS:
            return
        first, second = self._pending[other].launch, self._pending[place].launch
        assert isinstance(first, Kernel)
        assert isinstance(second, Kernel)
        values = self._lowering.values
        shared = {
            item.value for item in touched_items(first)
            if values.node[item.value] not in self._explained
        }
        nbytes = sum({
            item.value: math.prod(second.extents) * item.dtype.itemsize
            for item in touched_items(second) if isinstance(item, Load) and item.value in shared
        }.values())
        if not nbytes:
            return
        self._reasons += 1
        ranges = " and ".join("x".join(map(str, each.extents)) for each in (first, second))
        self._lowering.placement.cuts.append(
            Cut(
                f"what {self._label(second)} and {self._label(first)} both touch",
                f"two kernels, over {ranges}: {reason}",
                nbytes,
            )
        )

    def _label(self, kernel: Kernel) -> str:
        for store in [*kernel.results, *kernel.stores]:
            node = self._lowering.values.node[store.value]
            if node is not None:
                return self._lowering.graph.label(node)
        return kernel.kind.name


def _check_kind(kernel: Kernel) -> None:
    """Whether its bodies, each in boxes of its own, are element-wise but for folds or scans."""
    items = [item for body in kernel.phases for item in body.body]
    what = kernel.kind.stays_apart
    if kernel.then and not kernel.where:
        what = "goes over its rows several times"
    elif kernel.boxed:
        what = "is one of several for parts of a joined array"
    elif len(items) > MOST_ITEMS:
        what = f"has {len(items)} loads and operations"
    elif not what and not all(isinstance(item, _PLAIN) for item in items):
        what = "goes on with what another one has folded"
    if what:
        raise Apart(f"one of them {what}")


def _check_worth(
    one: tuple[int, ...], two: tuple[int, ...], start: tuple[int, ...], along: int
) -> int:
    """Elements of both ranges, the second of which begins at `start` of the first; what lies side
    by side in memory is so `along` a dimension.

    Raises Apart: what both touch is not worth the text for the ends.
    """
    sides = [
        (max(begin, 0), min(a, begin + b), min(begin, 0), max(a, begin + b))
        for a, b, begin in zip(one, two, start, strict=True)
    ]
    lengths = [high - low for low, high, _, _ in sides]
    if min(lengths) <= 0:
        raise Apart("their ranges have nothing in common")
    shared, whole = math.prod(lengths), math.prod([high - low for _, _, low, high in sides])
    if lengths[along] < LEAST_ROW:
        raise Apart(f"{lengths[along]} elements of a row are of both: its ends take what is saved")
    if shared < LEAST_PART * whole:
        raise Apart(f"{100 * shared / whole:.0f} % of what they range over is of both")
    return shared


def _is_across(access: Access, along: int) -> bool:
    """Whether elements lie side by side in another dimension."""
    return abs(access.strides[along]) > 1 and 1 in map(abs, access.strides)


class _Start(NamedTuple):
    """Where the range of the one begins in that of the other, `order` being which of its dimensions
    are those of the other."""

    order: tuple[int, ...]
    start: tuple[int, ...]
    along: int
    """The dimension along which elements lie side by side."""


def _starts(
    of_first: Iterable[Load | Store], of_second: Iterable[Load | Store], single: Sequence[int]
) -> list[_Start]:
    """Where in the range of the one the other one's may begin, the likeliest first; both have one
    index of the dimensions `single`.

    Elements in step: what both store, in arrays of one shape; else where loads of both, or a load
    and a store, are the same element.
    """
    of_first, of_second = list(of_first), list(of_second)
    stores = [item for item in of_second if isinstance(item, Store)]
    pairs: list[tuple[Load | Store, Load | Store]] = [
        (each, other)
        for each in of_first if isinstance(each, Store)
        for other in stores
    ]
    known = defaultdict(list)
    for each in of_first:
        known[each.value].append(each)
    pairs += [(each, other) for other in of_second for each in known[other.value]]
    found: dict[_Start, None] = {}
    for each, other in pairs:
        strides, others = [
            tuple([0 if dim in single else step for dim, step in enumerate(item.access.strides)])
            for item in (each, other)
        ]
        order = _order(strides, others)
        if order is not None:
            along = min(range(len(strides)), key=lambda dim: strides[dim] or math.inf)
            apart = other.access.offset - each.access.offset
            for start in decompose_offset(apart, strides, single):
                found[_Start(order, start, along)] = None
        if len(found) >= MOST_STARTS:
            break
    return list(found)[:MOST_STARTS]


def _order(strides: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...] | None:
    """The order of dimensions in which an array's strides are those of another access to it."""
    if strides == others:
        return tuple(range(len(strides)))
    if sorted(strides) != sorted(others) or len(set(strides)) < len(strides):
        return None
    return tuple([others.index(stride) for stride in strides])
