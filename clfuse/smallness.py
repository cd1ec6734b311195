"""Whether a program is left to NumPy; `evaluate` asks here before it looks for a plan.

A launch takes longer than NumPy needs for a few thousand elements, and a kernel that was not built
yet takes a fifth of a second. So what costs NumPy less than ``CLFUSE_HOST_US`` microseconds is
calculated on the host (`interpret`).

The decision needs only what a `Snapshot` holds: shapes, operations, and where the arguments lie.
What was calculated before, or is built already, has no say. One thing more has: where arrays are
not small but not large either, and no kernel is built, NumPy calculates until building would have
taken no longer (`waits`). Programs that evaluate a hundred things once build nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .config import settings
from .graph.ir import Kind, Node
from .graph.snapshot import Snapshot
from .interpret import host_function, size_of
from .runtime.buffers import HostBuffer

if TYPE_CHECKING:
    from .runtime.device import Device

NODE_NS: Final = 400
"""Work that an operation may bring along, 1000 additions: recording it takes longer."""

ADDITION_NS: Final = 0.4
"""What an addition of two elements takes; rows count their weights in additions."""

MAP_NS: Final = 20_000
"""What it takes to see a buffer of a device that shares the host's memory."""

LIBRARY_ADDITIONS: Final = 30
"""Additions an element of a library's operands: a sort of some thousand elements."""

GATHER_ADDITIONS: Final = 12

PHILOX_NS: Final = 30_000
"""A hundred calls of NumPy's."""

CALL_NS: Final = 800
"""What calling one of NumPy's functions takes beside the work."""

WAITING: Final = 100
"""Work of one evaluation, in ``CLFUSE_HOST_US``, for which kernels are built at once, unless it is
so much by its operations alone: 5 ms."""

WAITING_SIZE: Final = 1 << 17
"""Elements of an array from which on kernels are built at once: it is a large one."""

WAITING_NODE: Final = 400
"""Nanoseconds of work for an operation, per microsecond of ``CLFUSE_HOST_US``, from which on
kernels are so much faster that a loop must not wait: 20 us, an addition of 50,000 elements."""

_LAUNCHED: Final = frozenset((Kind.COUNTS, Kind.COMPACT, Kind.EXPAND))
"""Kinds for which a device needs launches of their own, and whose sizes the program waits for."""

_spent_ns: dict[int, float] = {}
"""Hash of a structure that has no plan -> what NumPy has taken for it so far."""

STRUCTURES_KEPT: Final = 1 << 14
"""Entries of `_spent_ns`, of about 100 bytes."""

_CALLING: Final = frozenset(("philox_bits", "philox_more_bits"))


def circumstances(snapshot: Snapshot) -> tuple[int, int]:
    """What `is_small` depends on besides the structure, the device and the settings of plans: what
    may be left to NumPy, and how many arguments lie on the host."""
    return settings.host_us, [type(buffer) for buffer in snapshot.buffers].count(HostBuffer)


def is_small(snapshot: Snapshot, device: Device) -> bool:
    """Whether NumPy has calculated the snapshot before a kernel would have started."""
    return _cost_ns(snapshot, device, _budget_ns(snapshot, NODE_NS)) is not None


def waits(snapshot: Snapshot, device: Device) -> bool:
    """Whether NumPy calculates a snapshot for which no kernels are built yet: where it has not
    worked on its like for as long as building takes, and would not be much slower.

    Whoever waits no longer than he would have paid at once pays twice what was best, at most. Of
    arrays that are not small two evaluations show a loop.

    It depends on what the program has evaluated, and in no way on clocks: the same program gets the
    same bits on every run. Within one run an expression may change its last bits once, where a
    kernel adds in another order than NumPy, or has another sine: ``CLFUSE_BUILD_AFTER_MS=0`` is for
    those who mind.
    """
    if not settings.build_after_ms:
        return False
    smallish = _budget_ns(snapshot, settings.host_us * WAITING_NODE)
    cost = _cost_ns(snapshot, device, max(settings.host_us * WAITING * 1000.0, smallish))
    if cost is None or max(size_of(node.shape) for node in snapshot.nodes) > WAITING_SIZE:
        return False
    patience = settings.build_after_ms * 1e6
    is_smallish = cost <= smallish
    cost += CALL_NS * len(snapshot.nodes)
    structure = hash(tuple(snapshot.items))
    spent = _spent_ns.get(structure, 0.0) + cost
    if spent > (patience if is_smallish else 2.5 * cost):
        return False
    if len(_spent_ns) >= STRUCTURES_KEPT:
        _spent_ns.clear()
    _spent_ns[structure] = spent
    return True


def forget() -> None:
    """Wait anew from here on: plans are forgotten too."""
    _spent_ns.clear()


def _budget_ns(snapshot: Snapshot, node_ns: float) -> float:
    return settings.host_us * 1000.0 + node_ns * len(snapshot.nodes)


def _cost_ns(snapshot: Snapshot, device: Device, most: float) -> float | None:
    """What NumPy takes for the elements of a snapshot, calls apart; None where it is more than
    `most`, or not for NumPy."""
    if not settings.host_us or not settings.fusion or not device.traits.fp64:
        return None
    budget = most
    for buffer in snapshot.buffers:
        if type(buffer) is not HostBuffer:
            if not device.traits.unified_memory:
                return None
            budget -= MAP_NS
    nodes = snapshot.nodes
    roots = frozenset(snapshot.roots)
    for position, item in enumerate(snapshot.items):
        op = item[0]
        if op is None:
            continue
        kind = op.kind
        if kind is Kind.CONSTANT:
            continue
        if kind is Kind.MAP:
            if host_function(op) is None:
                return None
            budget -= ADDITION_NS * op.weight * size_of(item[1])
            if op.name in _CALLING:
                budget -= PHILOX_NS
        elif kind is Kind.LAUNCH:  # OpenCL C, which nobody but a device reads
            return None
        elif kind is Kind.VIEW or kind is Kind.IOTA:
            if position in roots:
                budget -= ADDITION_NS * size_of(item[1])
        else:
            if kind in _LAUNCHED:
                budget += settings.host_us * 1000.0
            budget -= ADDITION_NS * _additions(kind, nodes[position])
        if budget < 0:
            return None
    return most - budget


def _additions(kind: Kind, node: Node) -> float:
    if kind is Kind.UPDATE:
        old, value = node.inputs
        # What was calculated here is written to in place, if nobody else reads it.
        is_copied = old.buffer is not None or old.op.kind is not Kind.UPDATE
        return size_of(value.shape) + (size_of(node.shape) if is_copied else 0)
    work = sum([size_of(operand.shape) for operand in node.inputs], size_of(node.shape))
    if node.op.name == "matmul":
        return work + size_of(node.shape) * node.inputs[0].shape[-1]
    if kind is Kind.LIBRARY:
        return work * LIBRARY_ADDITIONS
    return work * (GATHER_ADDITIONS if kind is Kind.GATHER else 1)
