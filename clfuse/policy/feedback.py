"""Feedback: operations that NumPy computed although they were recorded run eagerly the next time.

An operation on arrays that all came from the host may begin a chain that one kernel computes, and
so may one that takes NumPy more than some microseconds: it is recorded, with all that depends on
it. Where the program then turns out to be small, NumPy computes the chain anyway, and repeating
``A = np.array(a) * .1; x = A @ x`` cost ten times what it costs eagerly. So an operation that was
small and was left to NumPy twice is not recorded a third time, unless an operation of its kind is
evaluated for which a kernel may be worth it. Where no such kernel ran for some time, that is over.

A plan is left to NumPy, too, before its kernels are built, where its launches take longer than
NumPy does: a launch is worth some 200,000 additions of a CPU, and ``((a - b) ** 2).sum()`` has two.
So is a plan whose operands NumPy computed eagerly, round after round, where copying them for the
kernels takes longer.

An operation is known by its work alone, in additions: its elements times the weight of its row; a
reduction by the elements that it reads. Results have NumPy's bits either way, except for operations
that are recorded as others: a product of two vectors is recorded as a sum.
"""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING, Any, Final

from clfuse.counters import counters
from clfuse.interpreter.prepared import VIEWED, size_of
from clfuse.ir.nodes import Kind
from clfuse.ir.snapshot import Snapshot, shape_at
from clfuse.runtime.memory.buffers import HostBuffer

from .cost import cost_ns

if TYPE_CHECKING:
    from clfuse.runtime.devices.device import Device

__all__ = [
    "forget", "is_eager", "is_quicker", "keeps_kernels", "known", "large", "left_to_numpy",
    "of_kernels", "small", "wait", "works",
]  # fmt: skip

MOST_KNOWN: Final = 1024
"""Entries of each set here; arrays of ever other sizes would fill them."""

TWICE: Final = 2
"""Small evaluations after which work is known."""

AFTER_LARGE: Final = 8
"""The same of work that was met in an evaluation that was not small: in a loop that has such ones
and a few small ones a kernel is worth waiting for."""

known: Final[set[float]] = set()
"""Work of operations that are eager, though they might be recorded; the compiled part reads this
very set."""

_met: Final[dict[float, int]] = {}
"""Work -> how many small evaluations had it, since it was in one that was not."""

_of_large: Final[set[float]] = set()
"""Work that was met in evaluations that were not small."""

of_kernels: Final[set[float]] = set()
"""Work of plans that came back and whose kernels are worth it; the compiled part reads it, too."""

WITHOUT_KERNELS: Final = 16
"""Evaluations by NumPy with the work of kernels, and no kernels in between, after which that work
is like other work: another loop of the program has begun, on arrays of the same size."""

_without: Final[list[int]] = [0, 0]
"""Those evaluations so far, and the launches of kernels before the first of them."""

_WORKING: Final = (Kind.REDUCE, Kind.ARGREDUCE, Kind.SCAN)
"""Kinds whose work is what they read."""


def small(snapshot: Snapshot) -> bool:
    """Note that NumPy computes a snapshot because it is small. Whether all of it would have been
    eager if its arguments had been on the host."""
    is_known = True
    found = works(snapshot)
    _pass_without_kernels(found)
    for work in found:
        if work in known:
            continue
        is_known = False
        if work in of_kernels:
            continue
        met = _limited(_met)[work] = _met.get(work, 0) + 1
        if met >= (AFTER_LARGE if work in _of_large else TWICE):
            _limited(known).add(work)
    return is_known


def wait(snapshot: Snapshot) -> None:
    """Note that NumPy computes a snapshot because it has not earned its kernels."""
    if of_kernels:
        _pass_without_kernels(works(snapshot))


def _pass_without_kernels(found: Set[float]) -> None:
    """Note that NumPy computes what may have the work of kernels."""
    if of_kernels.isdisjoint(found):
        return
    launched = counters["kernels_launched"]
    if launched != _without[1]:
        _without[:] = 0, launched
    _without[0] += 1
    if _without[0] >= WITHOUT_KERNELS:
        of_kernels.difference_update(found)


def large(snapshot: Snapshot, device: Device) -> None:
    """Note that a snapshot is evaluated that is not small; nothing, where two launches would take
    longer than NumPy."""
    costs = device.costs
    few = (costs.wake_ns + 2 * costs.launch_ns) / (1 - costs.kernel_share)
    if device.shares_memory and cost_ns(snapshot, device, few) is not None:
        return
    for work in works(snapshot):
        _limited(_of_large).add(work)
        _met.pop(work, None)
        known.discard(work)


def is_quicker(
    snapshot: Snapshot, device: Device, launches: int, *, inline: bool, is_copied: bool = True
) -> bool:
    """Whether NumPy takes less than so many launches, of kernels that read what the snapshot
    does; whether the calling thread runs these, and whether copies are counted."""
    if device.traits.kind != "cpu":
        return False
    costs = device.costs
    copied = [
        buffer.nbytes
        for buffer in snapshot.buffers
        if is_copied
        and type(buffer) is HostBuffer
        and buffer.memory is None
        and buffer.copy is None
    ]
    kernels = len(copied) * costs.copy_ns + sum(copied) * costs.copied_nbyte_ns
    if inline:
        kernels += costs.inline_ns + launches * costs.inline_launch_ns
    else:
        kernels += costs.wake_ns + launches * costs.launch_ns
    calls = sum(
        [item[0] is not None and item[0].kind not in VIEWED for item in snapshot.items]
    )
    share = costs.inline_share if inline else costs.kernel_share
    most = (kernels - costs.call_ns * calls) / (1 - share)
    return most > 0 and cost_ns(snapshot, device, most) is not None


def left_to_numpy(snapshot: Snapshot) -> bool:
    """Note that NumPy computes a snapshot because that `is_quicker`: operations of its kind become
    eager, unless other kernels with them are worth it. Whether they were eager before."""
    found = works(snapshot)
    _pass_without_kernels(found)
    found = found - of_kernels
    is_known = found <= known
    for work in found:
        _of_large.discard(work)
        _limited(known).add(work)
    return is_known


def is_eager(snapshot: Snapshot) -> bool:
    """Whether nothing in it would be recorded if its arguments lay on the host."""
    return works(snapshot) <= known


def keeps_kernels(snapshot: Snapshot) -> None:
    """Note that a plan came back, and that its kernels are worth it."""
    for work in works(snapshot):
        _limited(of_kernels).add(work)
        known.discard(work)


def forget() -> None:
    """Know nothing."""
    _met.clear()
    _without[:] = 0, 0
    for each in (known, _of_large, of_kernels):
        each.clear()


def works(snapshot: Snapshot) -> frozenset[float]:
    """The work of the operations of a snapshot."""
    return snapshot.fact("works", lambda: _works(snapshot))


def _works(snapshot: Snapshot) -> frozenset[float]:
    found: set[float] = set()
    items = snapshot.items
    for item in items:
        op = item[0]
        if op is None:
            continue
        if op.kind is Kind.MAP:
            found.add(float(op.weight * size_of(item[1])))
        elif op.kind in _WORKING:
            found.add(float(size_of(shape_at(items, item[3]))))
    return frozenset(found)


def _limited(works: Any) -> Any:
    if len(works) >= MOST_KNOWN:
        works.clear()
    return works
