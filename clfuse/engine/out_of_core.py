"""Out-of-core evaluation: arrays that do not fit into a device's memory, streamed in tiles.

    y = exp(x) * w + c        x, y: 100 GB on the host; 80 GB on the device
    rows 0 to 1,000:          the kernel runs ...
    rows 1,000 to 2,000:      ... while these rows of x go to the device
    rows -1,000 to 0:         ... and the last rows of y come from there

A tile is a part of a result, along one axis. It is recorded as operations on parts of the operands
(`tile_nodes`), planned and launched as anything else is; one plan serves all tiles. Folds of that
axis are folds of tiles, whose results are then folded. A scan begins with the last element of the
tile before. Values that tiles need as a whole, such as a mean that is subtracted, are computed
before. Results lie on the host, and nothing else changes: until the last tile is done everything is
recorded as it was.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from clfuse.errors import AllocationError
from clfuse.ir.journal import journal, settle
from clfuse.ir.nodes import Node
from clfuse.runtime.context.pool import block_size
from clfuse.runtime.memory import spilling
from clfuse.runtime.memory.blocks import note_use

from .tile_cuts import (
    FOLD,
    TILE_NBYTES,
    TILES_IN_MEMORY,
    WHOLE,
    Target,
    below,
    compact_view,
    nbytes_of,
    rows_of,
    targets,
    view_part,
)
from .tile_nodes import Slices
from .tile_stream import Evaluate, Launch, Stream, commit_tiles

if TYPE_CHECKING:
    from clfuse.ir.snapshot import Snapshot
    from clfuse.runtime.context.pool import Pool
    from clfuse.runtime.devices.device import Device
    from clfuse.schedule.records import Schedule

__all__ = ["bring", "describe", "fits", "run"]


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

    Raises AllocationError: there is no room for all of them.
    """
    note_use(snapshot.buffers)
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
            target = next(targets(node, pool), None)
            how = f"{node.op.name} {node.shape} of {node.dtype}"
            if target is None:
                lines.append(f"   {how}: as a whole, after its operands")
                continue
            before = f", after {len(target.before)} other(s)" if target.before else ""
            rows = rows_of([target], pool)
            lines.append(
                f"   {how}: tiles of {rows:,} of {target.extent:,} along axis {target.axis}"
                f"{' of its input' if target.how == FOLD else ''}{before}"
            )
    for number, buffer in enumerate(snapshot.buffers):
        if type(getattr(buffer, "_owned", None)) is spilling.Spilled:
            lines.append(f"spilled: input {number} ({buffer.nbytes:,} bytes) lies on the host")
    return lines


# -- what is done ----------------------------------------------------------------------------------


def run(roots: Sequence[Node], device: Device, evaluate: Evaluate, launch: Launch) -> None:
    """Compute nodes for which there was no memory together.

    roots: None of them is computed.
    evaluate, launch: as `evaluate.evaluate_nodes`, and on the device without a way back to here.

    Raises AllocationError: one of them cannot be computed in tiles. It is recorded as before.
    """
    pool = device.pool
    assert pool is not None
    if pool.spills and pool.limit_nbytes - pool.used_nbytes < (room := _room_nbytes(pool)):
        spilling.spill(pool, room)
    waiting = list(roots)
    while waiting:
        first: dict[Node, None] = {}
        ready: list[Target] = []
        whole: list[Node] = []
        for node in waiting:
            target = next(targets(node, pool), None)
            if target is None:
                whole.append(node)
            elif target.before:
                first.update(dict.fromkeys(target.before))
            else:
                ready.append(target)
        for extent in dict.fromkeys([target.extent for target in ready]):
            together = [target for target in ready if target.extent == extent]
            Stream(together, device, evaluate, launch).run()
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

    Raises AllocationError: there is not the memory for it, and nothing to compute before.
    """

    def cut(leaf: Node, axis: int, start: int, stop: int) -> Node:
        return compact_view(view_part(leaf, axis, start, stop), device)

    slices = Slices(cut, functools.partial(compact_view, device=device))
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
        before = below(node) if _is_possible(node, device) else []
        if not before:
            raise _refused(node, short) from None
        return before
    if made is not node:
        journal[0] = commit_tiles, ([(node, made.buffer)],)
        settle()
    return []


def _is_possible(node: Node, device: Device) -> bool:
    """Whether there is room for a node by itself, with operands that it takes from memory."""
    pool = device.pool
    assert pool is not None
    stored = [node, *(node.inputs if node.op.kind in WHOLE else ())]
    sizes = [block_size(nbytes_of(each)) for each in stored]
    return max(sizes) <= pool.largest_nbytes and sum(sizes) <= pool.limit_nbytes


def _refused(node: Node, error: AllocationError) -> AllocationError:
    return AllocationError(
        f"{error}; {node.op.name} {node.shape} of {node.dtype} cannot be computed in tiles, and is"
        " recorded as it was"
    )
