"""The cost model: what NumPy takes for a snapshot, and whether that is less than a launch.

A launch takes longer than NumPy needs for a few thousand elements, and a kernel that was not built
yet takes a fifth of a second. So NumPy computes a snapshot that costs it less than
``CLFUSE_HOST_US`` microseconds.

The decision depends only on what a `Snapshot` holds: shapes, operations, and where the arguments
lie. It does not depend on what was computed before, or is built already. `tiering` decides about
snapshots that are not small and have no kernels yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from clfuse._core import loading
from clfuse.config import settings
from clfuse.interpreter.host_functions import host_function, is_part_of_product
from clfuse.interpreter.prepared import VIEWED, size_of
from clfuse.ir.nodes import Kind, Node
from clfuse.ir.snapshot import LIVE, Snapshot
from clfuse.runtime.memory.buffers import HostBuffer
from clfuse.target.costs import Costs

_core = loading.load()

if TYPE_CHECKING:
    from clfuse.runtime.devices.device import Device

_LAUNCHED: Final = frozenset((Kind.COUNTS, Kind.COMPACT, Kind.EXPAND))
"""Kinds for which a device needs launches of their own, and whose sizes the program waits for."""

ENDLESS_NS: Final = 1e12
"""More than any evaluation takes: `cost_ns` only says whether it is for NumPy at all."""

NEAR: Final = 64
"""Places from an operation to an input that belongs to the same step of a loop, or to the one
before; what lies farther away was there before the loop."""

RUN: Final = 24
"""Operations in a row that tell one from another."""

FUNCTION_WEIGHT: Final = 8
"""Additions from which on an operation is many lines of a kernel: `exp` is the lightest."""

LARGE_PRODUCT: Final = 1 << 22
"""Multiplications of a product of matrices for which BLAS takes its threads: some milliseconds."""

SHORT_ROW: Final = 32
"""Elements of a row below which a fold takes NumPy longer for its inner loops than for these."""

_CALLING: Final = frozenset(("philox_bits", "philox_more_bits"))


def circumstances(snapshot: Snapshot) -> tuple[int, int]:
    """What `is_small` depends on besides the structure, the device and the settings of plans: what
    may be left to NumPy, and how many arguments lie on the host."""
    return settings.host_us, [type(buffer) for buffer in snapshot.buffers].count(HostBuffer)


def is_small(snapshot: Snapshot, device: Device) -> bool:
    """Whether NumPy has calculated the snapshot before a kernel would have started."""
    return cost_ns(
        snapshot, device, budget_ns(snapshot, device.costs.node_ns)
    ) is not None


def is_of_kernels(snapshot: Snapshot) -> bool:
    """Whether calls of kernels in Python are in it. NumPy has array code on the host at the call;
    kernels are recorded, and going through their operations one by one takes ten times as long as a
    launch, however small the arrays."""
    return snapshot.fact(
        "calls kernels", lambda: any(hasattr(node, "kernel") for node in snapshot.nodes)
    )


def fills_cores(snapshot: Snapshot) -> bool:
    """Whether a product of matrices is in it that BLAS makes with threads on all cores. They wait
    for each other awake: beside a compiler it was seen to take ten times as long."""
    return snapshot.fact("fills cores", lambda: any(map(_is_large_product, snapshot.nodes)))


def _is_large_product(node: Node) -> bool:
    if node.op is None or node.op.name != "matmul" or node.dtype.kind not in "fc":
        return False
    return size_of(node.shape) * node.inputs[0].shape[-1] >= LARGE_PRODUCT


def budget_ns(snapshot: Snapshot, node_ns: float) -> float:
    """``CLFUSE_HOST_US``, and so much more for every operation."""
    return settings.host_us * 1000.0 + node_ns * len(snapshot.nodes)


def unlike_operations(snapshot: Snapshot) -> int:
    """Operations that are unlike each other by what they do, where their inputs come from, and what
    was done before. Those of a step that is repeated count once: kernels have it as a loop."""
    return _unlike(snapshot)[0]


def unlike_functions(snapshot: Snapshot) -> int:
    """Those of them that are exponentials, sines and their kind."""
    return _unlike(snapshot)[1]


def _unlike(snapshot: Snapshot) -> tuple[int, int]:
    return snapshot.fact("unlike operations", lambda: _count_unlike(snapshot))


def _count_unlike(snapshot: Snapshot) -> tuple[int, int]:
    items = snapshot.items
    numbers: dict[tuple[Any, ...], int] = {}
    sequence = []
    is_function = []
    for place, item in enumerate(items):
        if item[0] is not None and len(item) > 1:
            sources = [source for source in item[3:] if len(items[source]) > 1]  # no constants
            apart = [place - source if place - source <= NEAR else -source for source in sources]
            sequence.append(numbers.setdefault((*item[:3], *apart), len(numbers)))
            is_function.append(item[0].kind is Kind.MAP and item[0].weight >= FUNCTION_WEIGHT)
    runs = zip(*[sequence[start:] for start in range(RUN)], strict=False)
    places = {run: place for place, run in enumerate(runs)}.values()
    tail = is_function[max(len(sequence) - RUN + 1, 0) :]
    functions = sum([is_function[place] for place in places]) + sum(tail)
    return len(places) + len(tail), functions


def cost_ns(snapshot: Snapshot, device: Device, most: float) -> float | None:
    """What NumPy takes for the elements of a snapshot, calls apart; None where it is more than
    `most`, or not for NumPy."""
    if not settings.host_us or not settings.fusion or not device.fp64:
        return None
    if snapshot.structure is None:
        return _cost_ns(snapshot, device, most)
    places = tuple([type(buffer) is HostBuffer for buffer in snapshot.buffers])
    about = "cost", places, device.costs, device.shares_memory, settings.host_us
    cost = snapshot.fact(about, lambda: _cost_ns(snapshot, device, ENDLESS_NS))
    return cost if cost is not None and cost <= most else None


def _cost_ns(snapshot: Snapshot, device: Device, most: float) -> float | None:
    costs = device.costs
    addition_ns = costs.addition_ns
    budget = most
    for buffer in snapshot.buffers:
        if type(buffer) is not HostBuffer:
            if not device.shares_memory:
                return None
            budget -= costs.map_ns
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
            size = size_of(item[1])
            if is_part_of_product(op):
                budget -= addition_ns * costs.blas_additions * size
            else:
                budget -= addition_ns * op.weight * size + fresh_ns(nodes[position], costs)
                if len(item[1]) > 1:
                    loops = inner_loops(item[1], [each.shape for each in nodes[position].inputs])
                    budget -= addition_ns * costs.loop_additions * loops
            if op.name in _CALLING and _core is None:
                budget -= costs.philox_ns
        elif kind is Kind.LAUNCH:  # OpenCL C, which nobody but a device reads
            return None
        elif kind is Kind.VIEW or kind is Kind.IOTA:
            if position in roots:
                budget -= addition_ns * size_of(item[1])
        else:
            if kind in _LAUNCHED:
                budget += settings.host_us * 1000.0
            node = nodes[position]
            if kind is Kind.UPDATE:
                size = size_of(node.inputs[1].shape)
                budget -= addition_ns * size
                if _is_copied(node.inputs[0], snapshot.flags[item[3]]):
                    size = size_of(item[1])
                    budget -= addition_ns * size + fresh_ns(node, costs)
                continue
            budget -= addition_ns * _additions(kind, node, costs)
            budget -= fresh_ns(node, costs)
        if budget < 0:
            return None
    return most - budget


def launch_ns(snapshot: Snapshot, device: Device) -> float:
    """The work from which on kernels for a snapshot are quicker than NumPy, at least: as many
    launches as there are folds to one number, one after the other, and one behind them. Nothing on
    a device with memory of its own, on which arrays are to stay."""
    if not device.shares_memory:
        return 0.0
    costs = device.costs
    launches = snapshot.fact("launches", lambda: _launches(snapshot))
    kernels = costs.wake_ns + launches * costs.launch_ns
    return kernels / (1 - costs.kernel_share)


def _launches(snapshot: Snapshot) -> int:
    folds: list[int] = []
    launches = 1
    for item in snapshot.items:
        op = item[0]
        below = max([folds[number] for number in item[3:]], default=0) if op is not None else 0
        if op is not None and op.kind is Kind.REDUCE and size_of(item[1]) == 1:
            below += 1
            launches = max(launches, below)
        elif op is not None and op.kind is Kind.MAP:
            launches = max(launches, below + 1)
        folds.append(below)
    return launches


def inner_loops(shape: tuple[int, ...], operands: Sequence[tuple[int, ...]]) -> float:
    """How many inner loops NumPy makes for an operation on operands of these shapes; 0 where one
    goes over everything. Axes become one where each operand is stretched along both, or along
    neither."""
    rank = len(shape)
    size = inner = 1
    before: list[bool] | None = None
    for place in range(1, rank + 1):
        extent = shape[rank - place]
        if extent == 1:
            continue
        stretched = [len(each) < place or each[len(each) - place] == 1 for each in operands]
        if before is not None and stretched != before and inner == 1:
            inner = size
        before = stretched
        size *= extent
    return size / inner if inner > 1 else 0.0


def _is_copied(old: Node, flags: int) -> bool:
    """Whether the array is copied before it is written to; in place where nobody else reads it."""
    if old.buffer is not None:
        return bool(flags & LIVE)
    return old.op.kind in VIEWED


def fresh_ns(node: Node, costs: Costs) -> float:
    """What memory takes for a result that is no part of another, beside the calculation."""
    nbytes = size_of(node.shape) * node.dtype.itemsize
    return nbytes * costs.fresh_nbyte_ns if nbytes > costs.cached_nbytes else 0.0


def _additions(kind: Kind, node: Node, costs: Costs) -> float:
    work = sum([size_of(operand.shape) for operand in node.inputs], size_of(node.shape))
    if node.op.name == "matmul":
        products = size_of(node.shape) * node.inputs[0].shape[-1]
        return work + products * (costs.blas_additions if node.dtype.kind in "fc" else 1)
    if kind is Kind.LIBRARY:
        return work * costs.library_additions
    if kind is Kind.REDUCE:
        extents = [extent for extent in node.inputs[0].shape if extent != 1]
        is_short = len(extents) > 1 and 0 < extents[-1] < SHORT_ROW
        loops = work / extents[-1] if is_short else 0.0
        return work + loops * costs.fold_loop_additions
    if kind is Kind.GATHER:  # of what is read from only the chosen elements are touched
        return (work - size_of(node.inputs[0].shape)) * costs.gather_additions
    return work
