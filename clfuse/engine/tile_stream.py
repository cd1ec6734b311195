"""Streams arrays tile by tile: transfers run beside kernels.

While a tile is computed, the operands of the next one go to the device, and the results of the one
before come from there. Nothing but the arrays' nodes changes, when all is done.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from clfuse.counters import counters
from clfuse.dataclass import mutable
from clfuse.errors import AllocationError
from clfuse.ir import build
from clfuse.ir.journal import journal, settle
from clfuse.ir.nodes import Kind, Node, reduction
from clfuse.progress import Bar
from clfuse.runtime.context.pool import host_nbytes
from clfuse.runtime.memory import buffers, spilling
from clfuse.runtime.memory.buffers import HostBuffer
from clfuse.runtime.memory.streams import Transfers

from .tile_cuts import (
    FOLD,
    PART,
    SCAN,
    Target,
    compact_view,
    is_streamed,
    nbytes_of,
    rows_of,
    view_part,
)
from .tile_nodes import Slices

if TYPE_CHECKING:
    from clfuse.runtime.devices.device import Device

__all__ = ["Evaluate", "Launch", "Stream", "commit_tiles"]

Evaluate = Callable[[Sequence[Node]], None]
Launch = Callable[[Sequence[Node]], None]
"""Computes nodes on the device by a plan for them together; raises AllocationError."""


@mutable
class _Tile:
    """A part of the targets: its nodes, target by target, and what has to be uploaded for it."""

    start: int
    stop: int
    roots: list[list[Node]]
    uploads: list[tuple[Any, Any]]
    after: Any = None


class Stream:
    """Computes targets of one extent, tile by tile.

    rows (int): of a tile; fewer where there was no memory.
    is_ahead (bool): whether the next tile goes to the device while one is computed.
    """

    def __init__(
        self, targets: list[Target], device: Device, evaluate: Evaluate, launch: Launch
    ) -> None:
        assert device.pool is not None
        self.targets = targets
        self.device = device
        self.extent = targets[0].extent
        self._evaluate = evaluate
        self._launch = launch
        self.rows = rows_of(targets, device.pool)
        self.is_ahead = True
        self._has_spilled = False
        self._least = 2 if any(target.how == FOLD for target in targets) else 1
        self._results = _results_of(targets)
        self._transfers = Transfers(device)
        self._compact: dict[Node, Node] = {}

    def run(self) -> None:
        """Compute all, and give the nodes their buffers."""
        with Bar("computing in tiles", self.extent, " rows") as bar:
            self._run(bar)

    def _run(self, bar: Bar) -> None:
        start = 0
        previous: _Tile | None = None
        tile: _Tile | None = None
        while start < self.extent:
            bar.at(start)
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

        Raises AllocationError: it cannot be less.
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
            if not is_streamed(leaf):
                return view_part(leaf, axis, low, high)
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
            found = self._compact[node] = compact_view(node, self.device)
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
        journal[0] = commit_tiles, (made,)
        settle()


def commit_tiles(made: list[tuple[Node, Any]]) -> None:
    """Give nodes what was computed for them."""
    for node, buffer in made:
        if node.buffer is None:
            node.buffer = buffer
            node.inputs = ()


def _results_of(targets: list[Target]) -> list[_Result]:
    """Memory of the host for what is computed.

    Raises AllocationError: it has not as much.
    """
    needed = sum([nbytes_of(target.node) for target in targets if target.how != FOLD])
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


@mutable
class _Result:
    """What comes of the tiles of a target.

    `array` is all of it, but of a fold; `parts` are the results of its tiles. `carry` is the last
    element of a scan so far.
    """

    target: Target
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
            scanned = view_part(scanned, axis, 1, extent + 1)
        return [scanned, view_part(scanned, axis, extent - 1, extent)]

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
