"""Evaluations that do not fit into a device's memory: in tiles that are streamed through it;
`evaluate` comes here when there is no memory for a plan.

    y = exp(x) * w + c        x, y: 100 GB on the host; 80 GB on the device
    rows 0 to 1,000:          the kernel runs ...
    rows 1,000 to 2,000:      ... while these rows of x go to the device
    rows -1,000 to 0:         ... and the last rows of y come from there

A tile is a part of what is asked for, along one axis. It is recorded as operations on parts of the
operands (`graph.slices`), planned and launched as anything else is; one plan serves all tiles.
Folds of that axis are folds of tiles, whose results are folded in the end. A scan begins with the
last element of the tile before. What tiles need all of, as a mean that is subtracted, is computed
before. Results lie on the host, and nothing but these changes: until the last tile is done
everything is recorded as it was.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .counters import counters
from .errors import AllocationError
from .graph import build
from .graph.ir import Kind, Node, reduction
from .graph.layout import contiguous_strides
from .graph.slices import Slices, is_given
from .runtime import buffers, spilling
from .runtime.buffers import HostBuffer
from .runtime.pool import block_size, host_nbytes
from .runtime.streams import Transfers
from .unfinished import journal, settle

if TYPE_CHECKING:
    from .graph.snapshot import Snapshot
    from .plan.schedule import Schedule
    from .runtime.device import Device
    from .runtime.pool import Pool

__all__ = ["bring", "describe", "fits", "run"]

TILE_NBYTES: Final = 1 << 28
"""What a tile takes of operands and results, at most: the transfer of so much takes longer than all
else that a tile costs."""

TILES_IN_MEMORY: Final = 8
"""As many tiles would be in memory at the same time: operands of the next one, the one that is
computed with its temporaries, and results of the one before."""

STREAMED_NBYTES: Final = 1 << 12
"""Up to this size an operand on the host goes to the device as a whole."""

MEASURED_ROWS: Final = 256
"""Indices of an axis of which it is looked how much they need, to know what one more takes."""

MOST_AXES: Final = 4
"""Axes that are tried, the first one first, then the longest ones."""

PART, FOLD, SCAN = "part", "fold", "scan"

Evaluate = Callable[[Sequence[Node]], None]
Launch = Callable[[Sequence[Node]], None]
"""Computes nodes on the device by a plan for them together; raises AllocationError."""


# -- whether it fits ------------------------------------------------------------------------------


def needed_nbytes(schedule: Schedule, snapshot: Snapshot) -> int:
    """Device memory that a plan takes with its operands, temporaries and results."""
    slots = [
        nbytes for number, nbytes in enumerate(schedule.slots) if number not in schedule.reuses
    ]
    return sum(map(block_size, [*slots, *[buffer.nbytes for buffer in snapshot.buffers]]))


def fits(schedule: Schedule, snapshot: Snapshot, pool: Pool) -> bool:
    """Whether a plan can have the memory that it takes, if all else is spilled."""
    largest = max([0, *schedule.slots, *[buffer.nbytes for buffer in snapshot.buffers]])
    if largest > pool.largest_nbytes:
        return False
    return needed_nbytes(schedule, snapshot) <= pool.limit_nbytes


def bring(snapshot: Snapshot) -> None:
    """Have all operands lie on the device before anything is launched, and note that they are used.

    Raises
    ------
    AllocationError
        There is no room for all of them.
    """
    spilling.note(snapshot.buffers)
    for buffer in snapshot.buffers:
        buffer.on_device()


def describe(
    roots: Sequence[Node], schedule: Schedule, snapshot: Snapshot, pool: Pool
) -> list[str]:
    """What `explain` says of memory: nothing where there is enough."""
    lines = []
    if not fits(schedule, snapshot, pool):
        lines.append(
            f"memory: {needed_nbytes(schedule, snapshot):,} bytes of {pool.limit_nbytes:,}, one"
            f" allocation {min(pool.largest_nbytes, pool.limit_nbytes):,}; instead of the above"
        )
        for node in roots:
            target = next(_targets(node, pool), None)
            how = f"{node.op.name} {node.shape} of {node.dtype}"
            if target is None:
                lines.append(f"   {how}: as a whole, after its operands")
                continue
            before = f", after {len(target.before)} other(s)" if target.before else ""
            rows = _rows([target], pool)
            lines.append(
                f"   {how}: tiles of {rows:,} of {target.extent:,} along axis {target.axis}"
                f"{' of its input' if target.how == FOLD else ''}{before}"
            )
    for number, buffer in enumerate(snapshot.buffers):
        if type(getattr(buffer, "_owned", None)) is spilling.Spilled:
            lines.append(f"spilled: input {number} ({buffer.nbytes:,} bytes) lies on the host")
    return lines


# -- what is computed how --------------------------------------------------------------------------


@dataclass(slots=True)
class _Target:
    """An array that is computed in tiles.

    `how` says whether tiles are parts of it along `axis`, or it is a fold, or a scan, of such parts
    of its input. `row_nbytes` is what an index of that axis takes in operands and results,
    `fixed_nbytes` what all tiles need; `before` what has to be computed first.
    """

    node: Node
    how: str
    axis: int
    extent: int
    row_nbytes: int
    fixed_nbytes: int
    before: list[Node]


def _nbytes(node: Node) -> int:
    return math.prod(node.shape) * node.dtype.itemsize


def _nbytes_read(node: Node) -> int:
    """What all of a node takes: a view no more than what it is a view of."""
    nbytes = _nbytes(node)
    while node.buffer is None and node.op.kind is Kind.VIEW:
        (node,) = node.inputs
        nbytes = min(nbytes, _nbytes(node))
    return nbytes


def _ways(node: Node, pool: Pool) -> Iterator[tuple[str, int]]:
    """How a node may be computed in tiles, and along which axis; the best way first."""
    inputs, kind = node.inputs, node.op.kind  # in this order, of late nodes
    longest = sorted(range(1, len(node.shape)), key=lambda axis: -node.shape[axis])
    parts = [(PART, axis) for axis in [0, *longest][:MOST_AXES] if axis < len(node.shape)]
    if kind is Kind.REDUCE or (kind is Kind.ARGREDUCE and node.inputs[0].dtype.kind != "c"):
        axis = next((axis for axis in node.param if inputs[0].shape[axis] > 1), node.param[0])
        fold = (FOLD, axis)
        # Rows of the input lie together; but the result of each tile has to be kept.
        is_first = axis == 0 and TILES_IN_MEMORY * _nbytes(node) <= pool.limit_nbytes
        yield from [fold, *parts] if is_first else [*parts, fold]
    elif kind is Kind.SCAN:
        (axis,) = node.param
        scan = (SCAN, axis)
        others = [(how, other) for how, other in parts if other != axis]
        yield from [scan, *others] if axis == 0 else [*others, scan]
    else:
        yield from parts


def _targets(node: Node, pool: Pool) -> Iterator[_Target]:
    """The ways to compute a node in tiles, as far as one index of the axis fits into memory."""
    for how, axis in _ways(node, pool):
        source = node if how == PART else node.inputs[0]
        extent = source.shape[axis]
        if extent < 2 or 0 in source.shape:
            continue
        few = _measure(source, axis, 1)
        many = _measure(source, axis, min(extent, MEASURED_ROWS))
        row = -(-(many.streamed - few.streamed) // (min(extent, MEASURED_ROWS) - 1))
        fixed = few.fixed + max(few.streamed - row, 0)
        if how == FOLD:
            fixed += _nbytes(node)
        else:
            row += _nbytes(node) // extent
        if row + fixed <= pool.limit_nbytes and node not in few.before:
            yield _Target(node, how, axis, extent, max(row, 1), fixed, few.before)


@dataclass(slots=True)
class _Measured:
    """What a part of a node takes: bytes that are brought for it, bytes that every part needs, and
    what has to be computed before."""

    streamed: int
    fixed: int
    before: list[Node]


def _measure(source: Node, axis: int, rows: int) -> _Measured:
    """What the first `rows` indices along an axis take."""
    parts: dict[tuple[Node, int], int] = {}

    def cut(leaf: Node, along: int, start: int, stop: int) -> Node:
        made = _viewed(leaf, along, start, stop)
        key = leaf, along
        parts[key] = max(parts.get(key, 0), _nbytes(made)) if _is_streamed(leaf) else 0
        return made

    slices = Slices(cut)
    slices.part(source, axis, 0, rows)
    resident = [leaf for leaf, _ in parts if not _is_streamed(leaf)]
    read = dict.fromkeys([*slices.whole, *resident])
    later = sum([count * node.dtype.itemsize for node, count in slices.later.items()])
    return _Measured(sum(parts.values()) + later, sum(map(_nbytes_read, read)), slices.missing())


def _is_streamed(leaf: Node) -> bool:
    """Whether tiles bring their parts of it to the device."""
    buffer = leaf.buffer
    return (
        type(buffer) is HostBuffer and buffer.memory is None and _nbytes(leaf) > STREAMED_NBYTES
    )


def _below(node: Node) -> list[Node]:
    """What to compute before a node that is computed as a whole, so that it takes less memory."""
    if node.op.kind not in _WHOLE:
        return _whole_below(node)
    found = [each for each in node.inputs if not is_given(each)]
    launches = [each for each in found if each.op.kind is Kind.LAUNCH]
    for launch in launches:
        found.remove(launch)
        found += [each for each in launch.inputs if not is_given(each)]
    return list(dict.fromkeys(found))


def _whole_below(node: Node) -> list[Node]:
    """The folds, and what else takes more operands than results, that are next below a node."""
    found: dict[Node, None] = {}
    stack, seen = list(node.inputs), set(node.inputs)
    while stack:
        each = stack.pop()
        inputs = each.inputs
        if is_given(each):
            continue
        if each.op.kind in _WHOLE or each.op.kind in _FOLDS:
            found[each] = None
            continue
        for operand in inputs:
            if operand not in seen:
                seen.add(operand)
                stack.append(operand)
    return list(found)


_FOLDS: Final = frozenset((Kind.REDUCE, Kind.ARGREDUCE, Kind.SCAN))
_WHOLE: Final = frozenset((Kind.LIBRARY, Kind.COUNTS, Kind.COMPACT, Kind.EXPAND, Kind.PART))
"""Kinds that are computed as a whole, of operands in memory."""


# -- what is done ----------------------------------------------------------------------------------


def run(
    roots: Sequence[Node], device: Device, error: AllocationError | None, evaluate: Evaluate,
    launch: Launch,
) -> None:
    """Compute nodes for which there was no memory together.

    Parameters
    ----------
    roots : sequence of Node
        None of them is computed.
    error : AllocationError or None
        What was said if it was tried.
    evaluate, launch : callable
        As `evaluate.evaluate_nodes`, and on the device without a way back to here.

    Raises
    ------
    AllocationError
        One of them cannot be computed in tiles. It is recorded as before.
    """
    pool = device.pool
    assert pool is not None
    if pool.spills and pool.limit_nbytes - pool.used_nbytes < (room := _room_nbytes(pool)):
        spilling.spill(pool, room)
    waiting = list(roots)
    while waiting:
        first: dict[Node, None] = {}
        ready: list[_Target] = []
        whole: list[Node] = []
        for node in waiting:
            target = next(_targets(node, pool), None)
            if target is None:
                whole.append(node)
            elif target.before:
                first.update(dict.fromkeys(target.before))
            else:
                ready.append(target)
        for extent in dict.fromkeys([target.extent for target in ready]):
            together = [target for target in ready if target.extent == extent]
            _Stream(together, device, evaluate, launch).run()
        for node in whole:
            first.update(dict.fromkeys(_as_a_whole(node, device, launch)))
        missing = [node for node in first if node.buffer is None]
        if missing:
            evaluate(missing)
        waiting = [node for node in waiting if node.buffer is None]


def _room_nbytes(pool: Pool) -> int:
    """What tiles take, where there is as much."""
    return min(pool.limit_nbytes // 2, TILES_IN_MEMORY * TILE_NBYTES)


def _as_a_whole(node: Node, device: Device, launch: Launch) -> list[Node]:
    """Compute a node of which there are no parts; or return what to compute before.

    Raises
    ------
    AllocationError
        There is not the memory for it, and nothing to compute before.
    """

    def cut(leaf: Node, axis: int, start: int, stop: int) -> Node:
        return _compacted(_viewed(leaf, axis, start, stop), device)

    slices = Slices(cut, functools.partial(_compacted, device=device))
    made = slices.narrowed(node)
    before = slices.missing()
    if before:
        return before
    short: AllocationError | None = None
    try:
        launch([made])
    except AllocationError as error:
        short = error.with_traceback(None)  # whose frames hold arrays
    if short is not None:
        before = _below(node) if _is_possible(node, device) else []
        if not before:
            raise _refused(node, short) from None
        return before
    if made is not node:
        journal[0] = _put, ([(node, made.buffer)],)
        settle()
    return []


def _is_possible(node: Node, device: Device) -> bool:
    """Whether there is room for a node by itself, with operands that it takes from memory."""
    pool = device.pool
    assert pool is not None
    stored = [node, *(node.inputs if node.op.kind in _WHOLE else ())]
    sizes = [block_size(_nbytes(each)) for each in stored]
    return max(sizes) <= pool.largest_nbytes and sum(sizes) <= pool.limit_nbytes


def _refused(node: Node, error: AllocationError) -> AllocationError:
    return AllocationError(
        f"{error}; {node.op.name} {node.shape} of {node.dtype} cannot be computed in tiles, and is"
        " recorded as it was"
    )


# -- tiles -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Tile:
    """A part of the targets: its nodes, target by target, and what has to be uploaded for it."""

    start: int
    stop: int
    roots: list[list[Node]]
    uploads: list[tuple[Any, Any]]
    after: Any = None


class _Stream:
    """Computes targets of one extent, tile by tile.

    Attributes
    ----------
    rows : int
        Of a tile; fewer where there was no memory.
    is_ahead : bool
        Whether the next tile goes to the device while one is computed.
    """

    def __init__(
        self, targets: list[_Target], device: Device, evaluate: Evaluate, launch: Launch
    ) -> None:
        assert device.pool is not None
        self.targets = targets
        self.device = device
        self.extent = targets[0].extent
        self._evaluate = evaluate
        self._launch = launch
        self.rows = _rows(targets, device.pool)
        self.is_ahead = True
        self._has_spilled = False
        self._least = 2 if any(target.how == FOLD for target in targets) else 1
        self._results = _results_of(targets)
        self._transfers = Transfers(device)
        self._compact: dict[Node, Node] = {}

    def run(self) -> None:
        """Compute all, and give the nodes their buffers."""
        start = 0
        previous: _Tile | None = None
        tile: _Tile | None = None
        while start < self.extent:
            try:
                if tile is None:
                    tile = self._prepared(start)
                    self._upload(tile)
                following = None
                if self.is_ahead and tile.stop < self.extent and not self._carries():
                    following = self._prepared(tile.stop)
                self._launch([node for nodes in tile.roots for node in nodes])
                tile.after = self._transfers.now()
                if following is not None:
                    self._upload(following)
            except AllocationError as error:
                tile = following = None
                self._smaller(error.with_traceback(None))
                if previous is not None:
                    self._collect(previous)
                    previous = None
                continue
            counters["tiles"] += 1
            for result, nodes in zip(self._results, tile.roots, strict=True):
                result.computed(nodes)
            if previous is not None:
                self._collect(previous)
            previous, start, tile = tile, tile.stop, following
        if previous is not None:
            self._collect(previous)
        self._finish()

    def _carries(self) -> bool:
        """Whether a tile is made of what the one before has computed."""
        return any(target.how == SCAN for target in self.targets)

    def _smaller(self, error: AllocationError) -> None:
        """Take less memory for a tile.

        Raises
        ------
        AllocationError
            It cannot be less.
        """
        pool = self.device.pool
        assert pool is not None
        if self.is_ahead:
            self.is_ahead = False
        elif not self._has_spilled and pool.spills and spilling.spill(pool, pool.limit_nbytes):
            self._has_spilled = True  # operands in memory are brought in parts from here on
        elif self.rows > self._least:
            self.rows = max(self.rows // 2, self._least)
            self._has_spilled = False
        else:
            node = self.targets[0].node
            raise AllocationError(
                f"{error}; {node.op.name} {node.shape} of {node.dtype} is computed in tiles, and a"
                f" tile of {self.rows} of {self.extent} along axis {self.targets[0].axis} is too"
                " large; it is recorded as it was"
            ) from None

    def _prepared(self, start: int) -> _Tile:
        """The nodes of the tile that begins there, and memory for its operands."""
        while True:
            tile, missing = self._recorded(start)
            if not missing:
                return tile
            # Some tiles alone need it, such as a row that is written.
            del tile
            self._evaluate(missing)

    def _recorded(self, start: int) -> tuple[_Tile, list[Node]]:
        """As `_prepared`; and what has to be computed before it can be."""
        stop = min(start + self.rows, self.extent)
        uploads: list[tuple[Any, Any]] = []
        leaves: dict[tuple[int, int, int, int], Node] = {}

        def cut(leaf: Node, axis: int, low: int, high: int) -> Node:
            if not _is_streamed(leaf):
                return _viewed(leaf, axis, low, high)
            key = id(leaf.buffer), axis, low, high
            if key not in leaves:
                array = leaf.buffer.read(leaf.dtype, leaf.shape)
                array = array[(slice(None),) * axis + (slice(low, high),)]
                buffer = buffers.allocate(self.device, array.nbytes)
                uploads.append((buffer, array))
                leaves[key] = build.leaf(buffer, array.shape, array.dtype)
            return leaves[key]

        slices = Slices(cut, self._given)
        roots = [result.nodes(slices, start, stop) for result in self._results]
        tile = _Tile(start, stop, roots, uploads)
        tile.after = self._transfers.now()
        return tile, slices.missing()

    def _given(self, node: Node) -> Node:
        """What to read in place of a view of an array on the host, that is smaller."""
        found = self._compact.get(node)
        if found is None:
            found = self._compact[node] = _compacted(node, self.device)
        return found

    def _upload(self, tile: _Tile) -> None:
        for buffer, array in tile.uploads:
            self._transfers.send(buffer, np.ascontiguousarray(array), tile.after)
        tile.uploads = []

    def _collect(self, tile: _Tile) -> None:
        """Bring what a tile has computed to the host."""
        for result, nodes in zip(self._results, tile.roots, strict=True):
            result.take(nodes, tile.start, tile.stop, self._transfers, tile.after)

    def _finish(self) -> None:
        made: list[tuple[Node, HostBuffer]] = []
        for result in self._results:
            array = np.asarray(result.whole(self.device, self._evaluate), order="C")
            made.append((result.target.node, HostBuffer(self.device, array)))
        journal[0] = _put, (made,)
        settle()


def _put(made: list[tuple[Node, Any]]) -> None:
    """Give nodes what was computed for them."""
    for node, buffer in made:
        if node.buffer is None:
            node.buffer = buffer
            node.inputs = ()


def _results_of(targets: list[_Target]) -> list[_Result]:
    """Memory of the host for what is computed.

    Raises
    ------
    AllocationError
        It has not as much.
    """
    needed = sum([_nbytes(target.node) for target in targets if target.how != FOLD])
    there = host_nbytes()
    if not there or needed <= there:
        with suppress(MemoryError):
            return [_Result(target) for target in targets]
    node = targets[0].node
    raise AllocationError(
        f"{needed:,} bytes asked for on the host, which has {there:,} in all: {node.op.name}"
        f" {node.shape} of {node.dtype} is too large for the device, and its result would lie on"
        " the host; use smaller arrays or work in parts; it is recorded as it was"
    )


def _rows(targets: Sequence[_Target], pool: Pool) -> int:
    """How many indices of the axis a tile has at first."""
    extent = targets[0].extent
    row = sum([target.row_nbytes for target in targets])
    room = max(pool.limit_nbytes - sum([target.fixed_nbytes for target in targets]), 0)
    most = min(TILE_NBYTES, room // TILES_IN_MEMORY, pool.largest_nbytes // 2)
    return min(max(most // row, 2), -(-extent // 2))


@dataclass(slots=True)
class _Result:
    """What comes of the tiles of a target.

    `array` is all of it, but of a fold; `parts` are the results of its tiles. `carry` is the last
    element of a scan so far.
    """

    target: _Target
    array: Any = None
    parts: list[tuple[int, list[Any]]] = field(default_factory=list)
    carry: Node | None = None

    def __post_init__(self) -> None:
        node = self.target.node
        if self.target.how != FOLD:
            self.array = np.empty(node.shape, node.dtype)

    def nodes(self, slices: Slices, start: int, stop: int) -> list[Node]:
        """What to compute for the tile."""
        target = self.target
        node, axis = target.node, target.axis
        if target.how == PART:
            return [slices.part(node, axis, start, stop)]
        part = slices.part(node.inputs[0], axis, start, stop)
        if target.how == SCAN:
            return self._scanned(part)
        if node.op.kind is Kind.ARGREDUCE:
            extreme = "maximum" if node.op.name == "argmax" else "minimum"
            return [
                Node(node.op, (part,), node.shape, node.dtype, node.param),
                build.reduce(extreme, part, node.param, part.dtype),
            ]
        if node.dtype == np.float16:  # as a fold in one kernel, which rounds once
            return [build.reduce(node.op.name, part, node.param, np.dtype(np.float32))]
        return [Node(node.op, (part,), node.shape, node.dtype, node.param)]

    def _scanned(self, part: Node) -> list[Node]:
        """The scan of a part, after what was scanned before; and its last element."""
        node, axis = self.target.node, self.target.axis
        extent = part.shape[axis]
        if self.carry is not None:
            part = build.concatenate([self.carry, part], axis)
        scanned = part
        if part.shape[axis] > 1:
            scanned = Node(node.op, (part,), part.shape, node.dtype, node.param)
        if self.carry is not None:
            scanned = _viewed(scanned, axis, 1, extent + 1)
        return [scanned, _viewed(scanned, axis, extent - 1, extent)]

    def computed(self, nodes: list[Node]) -> None:
        """The tile was launched."""
        if self.target.how == SCAN:
            self.carry = nodes[1]

    def take(
        self, nodes: list[Node], start: int, stop: int, transfers: Transfers, after: Any
    ) -> None:
        """Bring the results of a tile to the host."""
        target = self.target
        if target.how != FOLD:
            place = (slice(None),) * target.axis + (slice(start, stop),)
            transfers.receive(nodes[0].buffer, self.array[place], after)
            return
        found = [np.empty(node.shape, node.dtype) for node in nodes]
        for node, array in zip(nodes, found, strict=True):
            transfers.receive(node.buffer, array, after)
        self.parts.append((start, found))

    def whole(self, device: Device, evaluate: Evaluate) -> Any:
        """All of the target, as an array on the host."""
        target = self.target
        if target.how != FOLD:
            return self.array
        node = target.node
        tiles = [found for _, found in self.parts]
        stacks = [np.stack(arrays) for arrays in zip(*tiles, strict=True)]
        if node.op.kind is Kind.ARGREDUCE:
            return self._first_extreme(*stacks)
        (stack,) = stacks
        leaf = build.leaf(HostBuffer(device, stack), stack.shape, stack.dtype)
        op = reduction(Kind.REDUCE, node.op.name, stack.dtype, stack.dtype)
        folded = Node(op, (leaf,), node.shape, stack.dtype, (0,))
        evaluate([folded])
        array = buffers.download(folded.buffer, folded.dtype, folded.shape)
        return array.astype(node.dtype, copy=False)

    def _first_extreme(self, positions: Any, extremes: Any) -> Any:
        """The position of the first extreme of all, from those of the tiles, and these extremes."""
        node, axis = self.target.node, self.target.axis
        extents = node.inputs[0].shape
        after = math.prod([extents[other] for other in node.param if other > axis])
        starts = np.array([start for start, _ in self.parts], np.int64) * after
        positions = positions + starts.reshape((-1,) + (1,) * (positions.ndim - 1))
        choose = np.argmax if node.op.name == "argmax" else np.argmin
        place = choose(extremes, axis=0)
        return np.take_along_axis(positions, np.expand_dims(place, 0), 0)[0]


def _compacted(node: Node, device: Device) -> Node:
    """A leaf with the elements of a view, where these are fewer than an array on the host has."""
    views = []
    below = node
    while below.buffer is None and below.op.kind is Kind.VIEW:
        views.append(below)
        (below,) = below.inputs
    if below.buffer is None or not _is_streamed(below) or _nbytes(node) >= _nbytes(below):
        return node
    array = below.buffer.read(below.dtype, below.shape)
    for view in reversed(views):
        offset, strides = view.param
        array = np.ascontiguousarray(array)  # as for every view, what it counts is in C order
        size = array.itemsize
        array = np.ndarray(
            view.shape, array.dtype, array, offset * size, tuple([each * size for each in strides])
        )
    return build.leaf(HostBuffer(device, array.copy()), node.shape, node.dtype)


def _viewed(node: Node, axis: int, start: int, stop: int) -> Node:
    """A part of a node as a view of it."""
    strides = contiguous_strides(node.shape)
    shape = (*node.shape[:axis], stop - start, *node.shape[axis + 1 :])
    return build.view(node, shape, start * strides[axis], strides)
