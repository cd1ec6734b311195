"""Bytes of global memory that a kernel moves, array by array.

Every array counts once a kernel: shifted reads of it come from the cache.
"""

from __future__ import annotations

import math
from typing import Final

from clfuse.ir.launch_nodes import ArrayParameter
from clfuse.target.traits import DeviceTraits

from .records import Kernel, Launch, LibraryCall, Load, Pass, Prefix, Schedule, Step, UserLaunch

Use = tuple[int, str, int]
"""(value number, dtype name, bytes moved)."""


def reads_of(kernel: Kernel, schedule: Schedule) -> list[Use]:
    """What the kernel loads."""
    kept = kernel.extents[: len(kernel.extents) - kernel.reduced]
    moved: dict[int, tuple[str, int]] = {}
    # Value -> step -> which of so many elements -> bytes: loads that take turns (of the columns of
    # points) share none.
    turns: dict[int, dict[int, dict[int, int]]] = {}
    written: set[int] = set()
    parts = []
    for phase in kernel.phases:
        parts += [(phase, phase.body, _lengths(phase)), (phase, phase.epilogue, [kept])]
    for phase, items, lengths in parts:
        before = dict(moved) if kernel.where else {}
        for item in items:
            if isinstance(item, Prefix) and item.partial is not None:
                moved[item.partial] = (str(item.dtype), schedule.values[item.partial].nbytes)
            # What an earlier phase has written is still in the caches.
            if not isinstance(item, Load) or item.value in written:
                continue
            elements = _elements(item, lengths)
            whole = schedule.values[item.value].nbytes
            nbytes = min(elements * item.dtype.itemsize + before.get(item.value, ("", 0))[1], whole)
            known = moved.get(item.value, ("", 0))[1]
            if kernel.kind.by_tiles and not phase.stores:  # borders of arrays, none read twice
                nbytes = min(known + nbytes, whole)
            elif not kernel.where:
                step, turn = _turn(item, lengths)
                shares = turns.setdefault(item.value, {}).setdefault(step, {})
                shares[turn] = max(shares.get(turn, 0), nbytes)
                nbytes = min(sum(shares.values()), whole)
            moved[item.value] = (str(item.dtype), max(known, nbytes))
        if not kernel.where:
            written.update(store.value for store in phase.stores)
    if kernel.selection is not None:
        starts, packed = kernel.selection.starts, kernel.selection.packed
        moved[starts] = ("int64", schedule.values[starts].nbytes)
        if packed is not None:
            moved[packed.value] = (str(packed.dtype), schedule.values[packed.value].nbytes)
    if kernel.scatter is not None:
        store = kernel.stores[0]
        nbytes = math.prod(kernel.extents) * store.dtype.itemsize
        for value in {kernel.scatter.table, kernel.scatter.old} - {None}:
            assert value is not None
            if value == kernel.scatter.table or kernel.scatter.how != "set":
                moved[value] = (str(store.dtype), min(nbytes, schedule.values[value].nbytes))
    return [(value, dtype, nbytes) for value, (dtype, nbytes) in moved.items()]


def _lengths(phase: Kernel) -> list[tuple[int, ...]]:
    """How long the boxes of a body are, or all that the loops of a phase range over."""
    boxes = [tuple([high - low for low, high in box]) for box in phase.where]
    return boxes or [phase.extents]


def _elements(load: Load, lengths: list[tuple[int, ...]]) -> int:
    """How many elements a load touches in boxes of these lengths."""
    return sum(
        [
            math.prod(
                [
                    length
                    for length, stride in zip(each, load.access.strides, strict=True)
                    if stride or load.position is not None
                ]
            )
            for each in lengths
        ]
    )


def _turn(load: Load, lengths: list[tuple[int, ...]]) -> tuple[int, int]:
    """The step between the elements that a load takes, and which of so many these are.

    1 and 0 where it may take each. A step of 0 is one element for all iterations.
    """
    access = load.access
    if load.position is not None or access.jumps:
        return 1, 0
    strides = [
        stride
        for each in lengths
        for length, stride in zip(each, access.strides, strict=True)
        if length > 1
    ]
    step = math.gcd(*strides)
    return step, access.offset % step if step else access.offset


def _iterations(phase: Kernel) -> int:
    """Of the loops of one phase, or of one body in its boxes."""
    return sum([math.prod(each) for each in _lengths(phase)])


def writes_of(kernel: Kernel, schedule: Schedule) -> list[Use]:
    """What the kernel stores, partial results included."""
    kept = math.prod(kernel.extents[: len(kernel.extents) - kernel.reduced])
    uses: list[Use] = []
    for phase in kernel.phases:
        for stores, count in ((phase.stores, _iterations(phase)), (phase.results, kept)):
            for store in stores:
                nbytes = count * store.dtype.itemsize
                if kernel.scatter is not None and not kernel.scatter.bins:
                    nbytes = min(nbytes, schedule.values[store.value].nbytes)
                elif kernel.kind.stores_side_by_side:
                    nbytes = schedule.values[store.value].nbytes
                uses.append((store.value, str(store.dtype), nbytes))
    for phase in kernel.passes:
        for accumulator in phase.accumulators:
            for value, dtype in (
                (accumulator.partial, str(accumulator.dtype)),
                (accumulator.partial_position, "int64"),
            ):
                if value is not None:
                    uses.append((value, dtype, schedule.values[value].nbytes))
    return _merged(uses) if kernel.where else uses


def _merged(uses: list[Use]) -> list[Use]:
    """Each value once, with what several bodies write of it."""
    found: dict[int, Use] = {}
    for value, dtype, nbytes in uses:
        before = found[value][2] if value in found else 0
        found[value] = value, dtype, before + nbytes
    return list(found.values())


def reads_of_call(call: LibraryCall, schedule: Schedule) -> list[Use]:
    """What a library call loads, with what its epilogue does."""
    uses = [(o.value, str(o.dtype), math.prod(o.shape) * o.dtype.itemsize) for o in call.operands]
    if call.epilogue is not None:
        uses += [use for use in reads_of(call.epilogue, schedule) if use[0] != call.target]
    return uses


def writes_of_call(call: LibraryCall, schedule: Schedule) -> list[Use]:
    """What a library call stores."""
    if call.epilogue is not None:
        return writes_of(call.epilogue, schedule)
    return [(call.target, str(call.dtype), math.prod(call.shape) * call.dtype.itemsize)]


def kernel_nbytes(kernel: Kernel, schedule: Schedule) -> int:
    """Bytes that a kernel moves, every array once."""
    uses = reads_of(kernel, schedule) + writes_of(kernel, schedule)
    return sum([nbytes for _, _, nbytes in uses])


def call_nbytes(call: LibraryCall, schedule: Schedule) -> int:
    """Bytes that a library call moves."""
    uses = reads_of_call(call, schedule) + writes_of_call(call, schedule)
    return sum(nbytes for _, _, nbytes in uses)


def pass_nbytes(step: Pass, schedule: Schedule) -> int:
    """Bytes that one of the launches of a library call moves."""
    return sum(schedule.values[value].nbytes for value in step.reads + step.writes)


def uses_of_launch(launch: UserLaunch, schedule: Schedule) -> tuple[list[Use], list[Use]]:
    """What a user's kernel reads and what it writes, as far as its parameters tell: their views."""
    sides: tuple[list[Use], list[Use]] = ([], [])
    for parameter in launch.spec.parameters:
        if isinstance(parameter, ArrayParameter):
            value = launch.buffers[parameter.slot]
            nbytes = math.prod(parameter.shape) * parameter.dtype.itemsize * launch.round.count
            use = value, str(parameter.dtype), min(nbytes, schedule.values[value].nbytes)
            for letter, uses in zip("rw", sides, strict=True):
                if letter in parameter.mode:
                    uses.append(use)
    tables = [(value, "table", schedule.values[value].nbytes) for value in launch.tables]
    return sides[0] + tables, sides[1]


def is_inline(schedule: Schedule, traits: DeviceTraits) -> bool:
    """Whether one core has done all kernels of a plan before several would have begun.

    What a user's kernel in OpenCL C takes is not known.
    """
    cores = max(traits.compute_units, 2)
    left = traits.inline_nbytes * cores / (cores - 1)
    for step in schedule.launches:
        if isinstance(step, UserLaunch):
            work = getattr(step.spec.source, "work", None)
            if work is None:
                return False
            left -= traits.operation_nbytes * work * step.round.count
        if isinstance(step, Pass) or left < 0:
            return False
        if isinstance(step, Kernel):
            left -= kernel_nbytes(step, schedule)
            left -= traits.operation_nbytes * _work(step, traits)
            if left < 0:
                return False
    return True


UNKNOWN_NBYTES: Final = 256
"""What a work-item of a kernel counts of which nobody knows what it does."""

GPU_SPEED: Final = 100
"""What a GPU moves and calculates while a CPU of two cores does one."""


def is_unknown(step: Launch) -> bool:
    """Whether nobody knows what a step takes, which users wrote in OpenCL C: it is waited for as
    what is long, since a wait of the driver's could not be ended."""
    return isinstance(step, UserLaunch) and getattr(step.spec.source, "work", None) is None


def estimated_nbytes(
    step: Launch, work_items: int, schedule: Schedule, traits: DeviceTraits
) -> float:
    """How long a step of so many work-items takes, as the bytes that a CPU moves in that time."""
    nbytes = 0.0
    if isinstance(step, Kernel):
        nbytes = kernel_nbytes(step, schedule) + traits.operation_nbytes * _work(step, traits)
    elif isinstance(step, UserLaunch):
        work = getattr(step.spec.source, "work", None)
        if work is None:
            nbytes = UNKNOWN_NBYTES * work_items
        else:
            nbytes = traits.operation_nbytes * work * step.round.count
    elif isinstance(step, Pass):
        nbytes = pass_nbytes(step, schedule)
    elif isinstance(step, LibraryCall):
        nbytes = call_nbytes(step, schedule)
        if step.name == "matmul":
            products = math.prod(step.shape) * step.operands[0].shape[-1]
            nbytes += traits.operation_nbytes * traits.costs.blas_additions * products
    return nbytes / (1 if traits.kind == "cpu" else GPU_SPEED)


def _work(kernel: Kernel, traits: DeviceTraits) -> float:
    """Operations of a kernel, in additions."""
    kept = kernel.extents[: len(kernel.extents) - kernel.reduced]
    work = 0.0
    for phase in kernel.phases:
        for items, count in ((phase.body, _iterations(phase)), (phase.epilogue, math.prod(kept))):
            weight = float(len(phase.accumulators)) if items is phase.body else 0.0
            for item in items:
                if isinstance(item, Step):
                    weight += item.op.weight
                elif isinstance(item, Prefix):
                    weight += 1
                elif isinstance(item, Load) and item.position is not None:
                    weight += traits.gather_weight
            work += weight * count
    return work
