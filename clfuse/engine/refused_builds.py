"""Refused builds and launches: the same values by smaller kernels, then by NumPy.

    a kernel of 12 operations is refused, twice
    -> 6 operations a kernel at most
    -> each operation by itself
    -> NumPy

Where a kernel is not built, nothing has been launched, so nothing is computed twice. Where a launch
is refused, the launches before it have their buffers (`resume`). Kernels that somebody wrote are
his: their errors are raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from clfuse.config import settings
from clfuse.errors import AllocationError, KernelBuildWarning, warn_user
from clfuse.interpreter import interpret
from clfuse.interpreter.host_functions import host_function
from clfuse.interpreter.rng import NEARLY
from clfuse.ir.journal import Refused
from clfuse.ir.nodes import Kind, Node, Op
from clfuse.ir.scalar_functions import Function
from clfuse.ir.snapshot import LIVE, Snapshot, take
from clfuse.schedule.records import Kernel, LibraryCall, Pass, Schedule, Step, UserLaunch

from .executable import Planned, make_plan

REFUSED: Final = "the driver refuses its kernels"
"""Why NumPy calculates."""

if TYPE_CHECKING:
    from clfuse.runtime.devices.device import Device

Launched = Kernel | LibraryCall | Pass | UserLaunch

STORED_NBYTES: Final = 1e6
"""What an operation counts in bytes where kernels shall be small: none is done a second time rather
than stored."""

WARNED_AT_MOST: Final = 1024
"""Kernels that are remembered as having been warned of."""

BY_NUMPY: Final = "NumPy computes its values instead"
BY_SMALLER: Final = "smaller kernels compute its values instead"

_warned: Final[dict[str, None]] = {}
"""The kernels of which the user was warned: a name, and where its report is."""


def build(planned: Planned, snapshot: Snapshot, device: Device) -> None:
    """Build the plan's kernels, or those of another plan for the same values.

    `planned` becomes that other plan, so that what was refused is not tried again when it comes
    back; where no kernels are left, it is `by_host`.

    Raises KernelBuildError: a kernel that somebody wrote was refused, or one without which it
        cannot run.

    Warns
    -----
    KernelBuildWarning
        Once a kernel, when all others are built.
    """
    try:
        planned.build(device)
        return
    except Refused as refused:
        first = latest = refused
    refused_schedule = planned.schedule
    for schedule in _others(planned, first, snapshot, device):
        _require_ours(latest)
        planned.schedule = schedule
        try:
            planned.build(device)
            break
        except Refused as refused:
            latest = refused
    else:
        _require_ours(latest)
        if _is_stuck(snapshot):
            raise latest.error
        planned.by_host = planned.is_built = True
    path = getattr(first.error, "path", "")
    if planned.by_host:
        _warn(path, str(first.error), BY_NUMPY)
    elif planned.schedule is not refused_schedule:
        _warn(path, str(first.error), BY_SMALLER)


def _others(
    planned: Planned, refused: Refused, snapshot: Snapshot, device: Device
) -> Iterator[Schedule]:
    """Schedules for the same values; first the same one: what failed for want of memory may not
    fail again."""
    yield planned.schedule
    for options in _smaller(refused, device):
        yield make_plan(snapshot, device, **options).schedule


def _smaller(refused: Refused, device: Device) -> list[dict[str, Any]]:
    """Options of plans whose kernels are smaller than those that were refused."""
    if not settings.fusion:
        return []
    traits = device.traits
    ways: list[dict[str, Any]] = [{"fuse": False}]
    operations = _operation_count(refused.kernels)
    if operations > 1:
        small = replace(traits, max_steps=operations // 2, operation_nbytes=STORED_NBYTES)
        ways.insert(0, {"fuse": True, "traits": small})
    return ways


def compute(
    nodes: Sequence[Node],
    refused: Refused,
    device: Device,
    evaluate: Callable[[Sequence[Node]], None],
) -> None:
    """Compute nodes without a launch that the driver refuses; `evaluate` runs kernels that somebody
    wrote.

    Raises Exception: what the driver has said, where somebody wrote what was refused.

    Warns
    -----
    KernelBuildWarning
        Once a kernel, when they are computed.
    """
    _require_ours(refused)
    is_by_numpy = True
    for options in _smaller(refused, device):
        snapshot = _untouched(nodes)  # what a way has computed before it was refused is there
        try:
            planned = make_plan(snapshot, device, **options)
            planned.build(device)
            planned.run(snapshot, device)
        except Refused as latest:
            _require_ours(latest)
        except AllocationError:
            break  # smaller kernels store more
        else:
            is_by_numpy = False
            break
    left = [node for node in nodes if node.buffer is None]
    if is_by_numpy and left:
        run(take(left), device, evaluate)
    said = str(refused.error.__cause__ or refused.error)
    what = f"the driver refuses a launch of {_names(refused.kernels)}: {said}"
    _warn("", what, BY_NUMPY if is_by_numpy else BY_SMALLER)


def _untouched(nodes: Sequence[Node]) -> Snapshot:
    """A snapshot of which nothing is written over: there may be another way after this one."""
    found = take([node for node in nodes if node.buffer is None])
    flags = bytes([flag | LIVE if node.buffer is not None else flag
                   for flag, node in zip(found.flags, found.nodes, strict=True)])
    return Snapshot(found.nodes, found.items, flags, found.roots, found.buffers)


def _operation_count(kernels: Sequence[Launched]) -> int:
    """Operations of the kernel with the most of them."""
    return max([len(_operations(phase)) for kernel in kernels for phase in _phases(kernel)] + [0])


def _phases(kernel: Launched) -> list[Kernel]:
    if isinstance(kernel, LibraryCall):
        return [] if kernel.epilogue is None else kernel.epilogue.computed
    return kernel.computed if isinstance(kernel, Kernel) else []


def _operations(kernel: Kernel) -> list[Op]:
    return [item.op for item in [*kernel.body, *kernel.epilogue] if isinstance(item, Step)]


def _require_ours(refused: Refused) -> None:
    """Raise the error of a kernel in which there is something that the user wrote."""
    for kernel in refused.kernels:
        if isinstance(kernel, UserLaunch) or any(
            isinstance(op.row, Function) for phase in _phases(kernel) for op in _operations(phase)
        ):
            raise refused.error


def _names(kernels: Sequence[Launched]) -> str:
    """What kernels are called where they are explained."""
    names = [getattr(kernel, "label", "") or getattr(kernel, "name", "") for kernel in kernels]
    return ", ".join(filter(None, names)) or "a kernel"


def _warn(path: str, what: str, instead: str) -> None:
    key = path or what
    if key in _warned:
        return
    if len(_warned) >= WARNED_AT_MOST:
        del _warned[next(iter(_warned))]
    _warned[key] = None
    warn_user(f"{what}; {instead}, which are right", KernelBuildWarning)


# -- on the host ----------------------------------------------------------------------------------


def run(snapshot: Snapshot, device: Device, evaluate: Callable[[Sequence[Node]], None]) -> None:
    """Calculate the snapshot by NumPy, but for kernels that somebody wrote: `evaluate` runs these,
    one after the other, with their operands in memory."""
    beyond = [node for node in snapshot.nodes if _is_beyond(node)]
    for node in beyond:
        for nodes in (_operands(node), [node]):
            evaluate(nodes)
    if beyond:
        evaluate([snapshot.nodes[root] for root in snapshot.roots])
        return
    with _nearly(snapshot):
        interpret.run(snapshot, device, sparing=True, why=REFUSED)


def _is_stuck(snapshot: Snapshot) -> bool:
    """Whether there is nothing left that `run` could do apart: a kernel that somebody wrote has all
    of its operands in memory."""
    beyond = [node for node in snapshot.nodes if _is_beyond(node)]
    return bool(beyond) and all(
        operand.buffer is not None or operand.op.kind is Kind.CONSTANT
        for node in beyond
        for operand in _operands(node)
    )


def _is_beyond(node: Node) -> bool:
    """Whether NumPy has nothing for a node: it is what a kernel that somebody wrote made."""
    if node.buffer is not None:
        return False
    op = node.op
    if op.kind is not Kind.MAP:
        return op.kind is Kind.PART
    return host_function(op) is None and op.name not in NEARLY


def _operands(node: Node) -> list[Node]:
    """What has to be in memory before the node is computed by itself."""
    found: list[Node] = []
    for below in node.inputs:
        found += below.inputs if below.op.kind is Kind.LAUNCH else [below]
    return found


@contextmanager
def _nearly(snapshot: Snapshot) -> Iterator[None]:
    """A block in which NumPy has functions for all operations: for some they differ from a kernel's
    by the last digits, so that nobody else shall use them."""
    lent = []
    for item in snapshot.items:
        op = item[0]
        if op is not None and op.kind is Kind.MAP and host_function(op) is None:
            op.host = NEARLY.get(op.name)
            lent.append(op)
    try:
        yield
    finally:
        for op in lent:
            op.host = None
