"""Evaluation: snapshot -> NumPy, or a known or new plan -> launches.

Plans are kept by structure. A loop that records the same step again only looks its plan up,
allocates and launches (`executable`).
"""

from __future__ import annotations

import atexit
import functools
import gc
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clfuse import events
from clfuse._core import loading
from clfuse.config import settings
from clfuse.counters import counters
from clfuse.dtypes import needs_fp64
from clfuse.errors import AllocationError, fp64_error
from clfuse.interpreter import interpret, no_modules
from clfuse.ir import build, journal, known_graphs, trace
from clfuse.ir import nodes as ir
from clfuse.ir.nodes import Kind, Node
from clfuse.ir.snapshot import Snapshot, take
from clfuse.ops.table import UFUNCS
from clfuse.policy import choice
from clfuse.policy.choice import Choice
from clfuse.process import forks, imports
from clfuse.runtime.context import lost
from clfuse.runtime.context.pool import when_short as pools_short
from clfuse.runtime.context.pool import when_tight as pools_tight
from clfuse.runtime.devices import ending
from clfuse.runtime.devices.device import Device
from clfuse.runtime.devices.selection import current_device, is_any_open, when_renewed
from clfuse.runtime.memory import buffers, sharing, spilling

from . import background, plans

if TYPE_CHECKING:
    import numpy.typing as npt

    from clfuse.runtime.context.pool import Pool

    from .executable import Planned

lock = threading.RLock()
"""One evaluation at a time. Recording needs no lock, graphs are immutable; but what is written to
an array is recorded as what comes after its contents, so that writes take turns where there are
several threads. Order: this, then `ir.nodes.finding`, then those of devices."""

when_grown: Final[list[Callable[[], None]]] = [lambda: None]
"""Called after memory was taken: for an input, or by an evaluation (`auto_flush`). Until memory has
grown by CLFUSE_MAX_PINNED_BYTES since `grown_from` it does nothing."""

grown_from: Final = [0]
"""`device_bytes_now` when it was last looked at what recorded work holds."""


def pending(nodes: Sequence[Node]) -> list[Node]:
    """Those that are not computed, each once; constants never are."""
    return list(
        {
            node: None
            for node in nodes
            if node.buffer is None
            and node.op.kind is not Kind.CONSTANT
            and node.buffer is None  # a late node may turn out to be one that is in memory
        }
    )


def _left(nodes: Sequence[Node]) -> list[Node]:
    """Those that have to be computed, once evaluations that ended early are finished below them."""
    if journal.journal[0] is not None:
        journal.settle()
    roots = pending(nodes)
    if roots and journal.rests:
        journal.finish_below(roots, compute_otherwise)
        roots = pending(roots)
    return roots


def evaluate_nodes(nodes: Sequence[Node], *, wait: bool = False) -> None:
    """Compute `nodes`: afterwards each has its buffer (constants excepted, they need none)."""
    with lock:
        roots = _left(nodes)
        if roots:
            # The collector would scan the snapshot and the plan again and again, and free nothing.
            collects = gc.isenabled()
            try:
                gc.disable()
                _run(known_graphs.find(roots) or take(roots))
            except (ImportError, AttributeError) as error:
                if not no_modules.is_cause(error):
                    raise
                if left := pending(roots):
                    snapshot = take(left)
                    no_modules.calculate(snapshot, _device_for(snapshot), error)
            finally:
                if collects:
                    background.let_collect()
            ir.begin_turn()
            when_grown[0]()
    if wait:
        for device in {node.buffer.device for node in nodes if node.buffer is not None}:
            device.finish()


class Left(Exception):
    """NumPy would have computed what was to be evaluated in a block of `by_kernels_alone`."""


_thread: Final = threading.local()


@contextmanager
def by_kernels_alone() -> Iterator[None]:
    """Have evaluations of this thread run kernels, for the length of a block.

    For who knows a better way for NumPy than the operations that were recorded.

    Raises Left: there are no kernels yet, or none are worth it; nothing was computed. It is noted
        that they were asked for.
    """
    _thread.is_strict = True
    try:
        yield
    finally:
        _thread.is_strict = False


def _leave_to_caller() -> None:
    if getattr(_thread, "is_strict", False):
        raise Left


def evaluate_all(*, wait: bool = False, raising: bool = True) -> None:
    """Compute everything that was recorded and that somebody still holds.

    What cannot be computed does not keep the rest from it. It stays recorded and is not tried
    again along with everything else: observing it raises the error. `raising` says whether
    the caller gets the first one, too: a statement that only happens to record something is not
    what went wrong.
    """
    with lock:
        cells = ir.sweep()
        # What a thread that traces has recorded, or left behind, cannot be computed.
        try:
            evaluate_nodes(trace.without_traced([cell.node for cell in cells]), wait=wait)
        except Exception:
            ir.forget(_broken(cells))
            if raising:
                raise
        ir.sweep()


def _settle() -> None:
    """Compute what was recorded before the process is forked, and let nobody evaluate meanwhile.

    Otherwise every process would compute it again, and by NumPy. Where no device was used yet, each
    can use them, and this is no moment to begin with it.
    """
    lock.acquire()
    background.finish()
    imports.wait_for_others()
    if not is_any_open():
        return
    if ir.waiting_count() and trace.active() is None:
        # What cannot be computed stays recorded: both processes say why when they look at it.
        evaluate_all(raising=False)


def _end() -> None:
    """Make ready for what is looked at while the interpreter is taken apart, by `__del__` and by
    generators: no module can be imported then."""
    background.end()
    ending.let_others_rest(lock)
    if ir.waiting_count():
        "add" in UFUNCS  # noqa: B015 (imports the tables of operations)


atexit.register(_end)

if hasattr(os, "register_at_fork"):
    forks.before.insert(0, _settle)
    os.register_at_fork(after_in_parent=lock.release, after_in_child=lock.release)


def _broken(cells: Sequence[ir.Storage]) -> list[ir.Storage]:
    """Compute these cells, which failed together, by halves; those that cannot be computed.

    A kernel that somebody wrote and that cannot be built, a dtype that the device lacks, memory
    that cannot be had, a library call that raises: each belongs to few cells.
    """
    if len(cells) == 1:
        return list(cells)
    broken: list[ir.Storage] = []
    middle = len(cells) // 2
    for half in (cells[:middle], cells[middle:]):
        try:
            evaluate_nodes(trace.without_traced([cell.node for cell in half]))
        except Exception:  # noqa: BLE001 (observing one of them raises it)
            broken += _broken(half)
    return broken


def _device_for(snapshot: Snapshot) -> Device:
    """Where the inputs are; where they are on several devices, or on one that was lost, the current
    one gets copies.

    Raises DeviceError: a device was lost, and one of them was in its memory alone.
    """
    places = {buffer.device for buffer in snapshot.buffers}
    if len(places) == 1:
        (place,) = places
        if not place.lost:
            return place  # type: ignore[no-any-return]
    current = current_device()
    if places:
        moved = {}
        for node in snapshot.nodes:
            if node.buffer is not None and node.buffer.device is not current:
                if node.buffer not in moved:
                    moved[node.buffer] = buffers.transfer(node.buffer, current)
                node.buffer = moved[node.buffer]
        snapshot.buffers = [moved.get(buffer, buffer) for buffer in snapshot.buffers]
    return current


def _run(snapshot: Snapshot) -> None:
    trace.require_bytes(snapshot.buffers)
    device = _device_for(snapshot)
    if device.forked:
        interpret.require(snapshot, device)
        interpret.run(snapshot, device, why="a forked process has no device")
        return
    if background.is_left():
        no_modules.calculate(snapshot, device)
        return
    planned = plans.find(snapshot, device)
    is_waiting = settings.host_us and settings.build_after_ms
    if planned is not None and planned.kernels is not None and planned.is_awaited and is_waiting:
        work = planned.kernels
        _calculate_meanwhile(snapshot, device, lambda: work)
        return
    if planned is not None and _is_only_watched(planned, snapshot):
        way, is_known = Choice.RUN, False
    else:
        way, is_known = choice.choose(snapshot, device, planned, behind=background.is_possible())
    is_behind = way is Choice.BEHIND
    if is_behind and not background.is_prepared(device):
        prepare = functools.partial(background.prepare, device, choice.note_kernels)
        _calculate_meanwhile(snapshot, device, prepare)
        return
    if is_behind or way is Choice.BUILD:
        planned = plans.make(snapshot, device)
        way, is_known = choice.judge(
            snapshot, device, planned, is_small=is_known, is_trial=is_behind
        )
    if way in choice.INTERPRET:
        if planned is None:
            known_graphs.note(snapshot)
        _leave_to_caller()
        _bring(snapshot)
        is_sparing = way is Choice.INTERPRET_SPARING
        interpret.run(snapshot, device, sparing=is_sparing, why=choice.why(way, planned))
        if is_known:
            _settle_rest(device)
        return
    assert planned is not None
    pool = device.pool
    if pool is not None and pool.is_tight and not (
        pool.is_calm() or _has_room(planned, snapshot, pool)
    ):
        _run_in_tiles(snapshot, device)
        return
    if not planned.is_built:
        if is_behind:
            _calculate_meanwhile(snapshot, device, functools.partial(plans.begin, planned, device))
            return
        _build(planned, snapshot, device)
        choice.note_built(snapshot, device)
    else:
        counters["plans_reused"] += 1
    if planned.by_host:
        _run_by_host(snapshot, device)
        return
    if planned.is_due():
        from .tuning import launches

        launches.look(planned, device)
    is_short, refused = False, None
    try:
        planned.run(snapshot, device)
    except AllocationError:
        is_short = True
    except journal.Refused as error:
        refused = error
    if is_short:  # the frames of the error, which hold arrays, are gone
        _run_in_tiles(snapshot, device)
        return
    if refused is not None:
        _finish_otherwise(snapshot, refused)
        return
    uses = planned.uses
    if uses & (uses - 1) == 0 and planned.structure.ready is None:
        planned.structure.ready = planned.ready(device)


def _is_only_watched(planned: Planned, snapshot: Snapshot) -> bool:
    """Whether the compiled part would evaluate this, without a choice, if nobody wanted to see the
    launches or to time one: who computes must not depend on that."""
    ready = planned.structure.ready
    if ready is None:
        return False
    from . import executable

    is_watched = ready.left <= 0 or executable.is_observed()
    return is_watched and bool(ready.is_meant(snapshot.buffers))


def _calculate_meanwhile(
    snapshot: Snapshot, device: Device, begin: Callable[[], background.Work]
) -> None:
    """Have NumPy compute what gets kernels by work in the background, which is begun before, or
    afterwards where NumPy needs all cores."""
    work = None if choice.fills_cores(snapshot) else begin()
    _leave_to_caller()
    _bring(snapshot)
    try:
        interpret.run(snapshot, device, sparing=True, why=choice.MEANWHILE)
    finally:
        work = work or begin()
    choice.wait_for_kernels(snapshot)
    if work.is_done:  # the thread may have ended before something was lent
        choice.note_kernels()


def _build(planned: Planned, snapshot: Snapshot, device: Device) -> None:
    """Build the plan's kernels, or others for the same values where the driver refuses one."""
    from clfuse import progress

    from . import refused_builds

    planned.kernels = None
    if progress.is_wanted() and background.is_possible() and not events.listeners:
        # The compiler cannot be interrupted, but a wait for a thread that calls it.
        background.wait_for(background.begin(planned.builds(device)))
    refused_builds.build(planned, snapshot, device)


def _has_room(planned: Planned, snapshot: Snapshot, pool: Pool) -> bool:
    """Whether a plan can have the memory that it takes; then its operands lie on the device."""
    from . import out_of_core

    if not out_of_core.fits(planned.schedule, snapshot, pool):
        return False
    try:
        out_of_core.bring(snapshot)
    except AllocationError:
        return False
    return True


def _run_in_tiles(snapshot: Snapshot, device: Device) -> None:
    """Compute what there is no memory for in parts."""
    from . import out_of_core

    roots = [snapshot.nodes[position] for position in snapshot.roots]
    # What it holds could not be spilled.
    snapshot.nodes, snapshot.buffers = [], []
    out_of_core.run(pending(roots), device, evaluate_nodes, functools.partial(_launch, device))


def _launch(device: Device, nodes: Sequence[Node]) -> None:
    """Compute nodes on the device, as a whole.

    Raises AllocationError: there is not the memory for it.
    """
    from . import out_of_core

    # What is computed as a whole may be the rest of a plan for which there was no memory.
    roots = _left(nodes)
    if not roots:
        return
    snapshot = take(roots)
    out_of_core.bring(snapshot)
    planned = find_plan(snapshot, device)
    if planned.by_host:
        _run_by_host(snapshot, device)
        return
    try:
        planned.run(snapshot, device)
    except journal.Refused as refused:
        raise refused.error from None


def _run_by_host(snapshot: Snapshot, device: Device) -> None:
    """Have NumPy compute what the driver refuses kernels for."""
    from . import refused_builds

    _bring(snapshot)
    refused_builds.run(snapshot, device, evaluate_nodes)


def _finish_otherwise(snapshot: Snapshot, refused: journal.Refused) -> None:
    """Compute what a plan has not computed of which the driver refuses a launch."""
    roots = [snapshot.nodes[root] for root in snapshot.roots]
    journal.finish_below(pending(roots), compute_otherwise)
    roots = pending(roots)
    if roots:
        compute_otherwise(roots, refused)


def compute_otherwise(nodes: Sequence[Node], refused: journal.Refused) -> None:
    """Compute nodes without a launch that the driver refuses.

    Raises Exception: what the driver has said, where there is no other way.
    """
    from . import refused_builds as other_ways

    snapshot = take(nodes)
    device = _device_for(snapshot)
    del snapshot
    other_ways.compute(nodes, refused, device, evaluate_nodes)


MOST_REST: Final = 256
"""Operations that may wait, to be calculated with others that are NumPy's."""

_rest_in_vain: Final = [0, 0]
"""How often in a row what waited was not small, and how many evaluations will not look at it."""


def _settle_rest(device: Device) -> None:
    """Calculate what else was recorded, if that is NumPy's, too.

    What depends on recorded arrays is recorded. Where a loop observes one of two arrays in every
    round, all that depends on the other one would be recorded, in this round and the next, and
    NumPy would compute it later: weights that are adapted, while only the loss is observed.
    """
    if not ir.waiting_count() or trace.active() is not None:
        return
    if _rest_in_vain[1]:
        _rest_in_vain[1] -= 1
        return
    cells = ir.sweep()
    roots = pending(trace.without_traced([cell.node for cell in cells]))
    if not roots or journal.rests:
        return
    rest = take(roots) if len(cells) <= MOST_REST else None
    is_here = rest is not None and {buffer.device for buffer in rest.buffers} <= {device}
    if rest is not None and is_here and choice.is_left(rest, device):
        _rest_in_vain[0] = 0
        _bring(rest)
        interpret.run(rest, device, sparing=True, why=choice.SMALL)
        return
    _rest_in_vain[0] = min(_rest_in_vain[0] + 1, 10)
    _rest_in_vain[1] = 1 << _rest_in_vain[0]


def _bring(snapshot: Snapshot) -> None:
    """Have the arguments lie on the host from here on, in the memory where they are: NumPy will
    read them again."""
    if not any(type(buffer) is buffers.Buffer for buffer in snapshot.buffers):
        return
    lent = {}
    for node in snapshot.nodes:
        buffer = node.buffer
        if type(buffer) is buffers.Buffer:
            found = buffers.lend_memory(buffer, node.dtype, node.shape)
            if found is not None:
                node.buffer = lent[buffer] = found
    if lent:
        snapshot.buffers = [lent.get(buffer, buffer) for buffer in snapshot.buffers]


def find_plan(snapshot: Snapshot, device: Device) -> Planned:
    """The plan for this structure on this device, with its kernels, made now if there is none; it
    may have none (`Planned.by_host`)."""
    planned = plans.find(snapshot, device)
    if planned is not None:
        counters["plans_reused"] += 1
    else:
        planned = plans.make(snapshot, device)
    if not planned.is_built:
        _build(planned, snapshot, device)
    return planned


def forget_plans() -> None:
    """Plan anew from here on: a device's traits have changed."""
    with lock:
        plans.forget()
        _rest_in_vain[:] = [0, 0]
        choice.reset()
        known_graphs.forget()


pools_tight.append(plans.forget_ready)
pools_short.append(spilling.spill)


def _forget_lost(device: Device) -> None:
    """Let go of all that was made for a device that was lost."""
    forget_plans()


when_renewed.append(_forget_lost)


def upload(array: npt.NDArray[Any]) -> Node:
    """A leaf with a snapshot of a host array, on the current device."""
    current = current_device()
    if needs_fp64(array.dtype) and not current.fp64:
        if settings.fp64 != "downcast":
            raise fp64_error(current.name, array.dtype)
        array = array.astype(np.complex64 if array.dtype.kind == "c" else np.float32)
    leaf = build.leaf(buffers.hold(current, array), array.shape, array.dtype)
    when_grown[0]()
    return leaf


def share(array: npt.NDArray[Any], *, exported: bool = False) -> Node | None:
    """A leaf on the host array's own memory, or None where the current device cannot; `exported` as
    `runtime.memory.sharing` has it."""
    current = current_device()
    if needs_fp64(array.dtype) and not current.fp64:
        return None
    shared = sharing.share(current, array, exported=exported)
    return None if shared is None else build.leaf(shared, array.shape, array.dtype)


def host_view(node: Node) -> npt.NDArray[Any]:
    """The node's value as a read-only host array, without a copy where memory is shared."""
    if node.buffer is None and node.op.kind is Kind.CONSTANT:
        value = np.asarray(node.param)
        value.flags.writeable = False
        return value
    if type(node.buffer) is not buffers.HostBuffer:
        evaluate_nodes([node])
        trace.require_bytes([node.buffer])
    return buffers.host_view(node.buffer, node.dtype, node.shape)


def host_copy(node: Node) -> npt.NDArray[Any]:
    """The node's value as a host array of its own, writable."""
    if type(node.buffer) is buffers.HostBuffer:
        return buffers.download(node.buffer, node.dtype, node.shape)
    if node.buffer is None and node.op.kind is Kind.CONSTANT:
        return np.array(node.param)
    evaluate_nodes([node])
    trace.require_bytes([node.buffer])
    return buffers.download(node.buffer, node.dtype, node.shape)


_core: Final = loading.load()
if _core is not None:
    _core.connect_losses(lost.waiting, lost.check_pinned, lost.latest)
    evaluate_nodes = functools.update_wrapper(
        _core.evaluating(
            evaluate_nodes,
            {
                "begin_turn": ir.begin_turn,
                "counters": counters,
                "forget_at": ir.forget_at,
                "journal": journal.journal,
                "settle": journal.settle,
                "grown_from": grown_from,
                "known": known_graphs.known,
                "lock": lock,
                "numbers": known_graphs.numbers,
                "turn": ir.turn,
                "when_grown": when_grown,
            },
        ),
        evaluate_nodes,
    )
