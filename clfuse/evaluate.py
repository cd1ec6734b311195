"""The whole pipeline on one screen: snapshot -> plan -> render -> build -> launch.

`api` calls this when a value is observed. Plans are kept by structure, so a loop that records the
same step again only looks its plan up, allocates and launches.

Everything that can fail (planning, building, allocating) happens before the first launch, and no
node changes until the last one: a failure leaves every array as it was.
"""

from __future__ import annotations

import gc
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from . import experience, interpret, patience, smallness
from .config import settings
from .counters import counters
from .dtypes import needs_fp64
from .errors import DeviceDtypeError, KernelBuildError
from .graph import build, ir, recognition, trace
from .graph.ir import TABLE, Kind, Node
from .graph.snapshot import Snapshot, take
from .plan.planner import plan
from .plan.schedule import (
    Copy,
    Kernel,
    Launch,
    LibraryCall,
    Schedule,
    SortPass,
    UserLaunch,
    is_renderable,
)
from .plan.traffic import call_nbytes, pass_nbytes, reads_of, uses_of_launch, writes_of
from .plan.verify import verify
from .render.arguments import BufferArgument, ConstantArgument, LocalArgument
from .runtime import buffers, host, launch, program, sharing, storage
from .runtime.buffers import Buffer
from .runtime.device import Device, get_device
from .runtime.launch import BoundKernel

if TYPE_CHECKING:
    import numpy.typing as npt

    from .render.kernels import Rendered
    from .runtime.program import Program

PLANS_KEPT: Final = 256
"""Plans in the cache; the least recently used goes first. A plan holds its programs, which take
megabytes each."""

ITEMS_KEPT: Final = 1 << 20
"""Recorded operations that the plans in the cache were made for, all together: each has a tuple of
about 150 bytes, and a long loop leaves plans of CLFUSE_MAX_NODES that are never used again."""

BIND_AT: Final = 2
"""Uses of a plan after the first from which its kernels have objects of their own: each takes 10 to
30 us to make."""

lock = threading.RLock()
"""One evaluation at a time: recording needs no lock, graphs are immutable."""


@dataclass(slots=True)
class Prepared:
    """A kernel launch with everything but its buffers and scalars fixed.

    `arguments` holds ``(value, None)`` for buffers, ``(conversion, position)`` for constants of the
    snapshot, and the number itself for integers. `nbytes` is what it moves, every array once.
    `bound` is a kernel object of its own, once the plan has come back.
    """

    kernel: Kernel | LibraryCall | SortPass | UserLaunch
    rendered: Rendered
    program: Program
    arguments: list[Any]
    nbytes: int
    bound: BoundKernel | None = None


@dataclass(slots=True)
class Planned:
    """A plan with its programs, and the structure that it is for (no buffers, no nodes).

    `too_large` is what `smallness.is_small` knew besides the structure when it last said no;
    `is_left` says that NumPy is quicker, which has calculated much of what the kernels read, once
    the plan has come back.
    """

    structure: Snapshot
    schedule: Schedule
    steps: list[Prepared | Copy | LibraryCall]
    uses: int = 0
    too_large: tuple[int, int] | None = None
    is_left: bool | None = None


observers: Final[list[Callable[[Prepared, Any], None]]] = []
"""Called with every kernel's launch and event while somebody profiles."""

when_grown: Final[list[Callable[[], None]]] = [lambda: None]
"""Called after memory was taken: for an input, or by an evaluation (`automatic`)."""

_plans: OrderedDict[tuple[Any, int], Planned] = OrderedDict()
"""(summary of the structure, running number) -> plan: plans of one summary are compared in full."""

_numbers: dict[Any, list[int]] = {}
"""Summary -> the running numbers of its plans."""


def evaluate_nodes(nodes: Sequence[Node], *, wait: bool = False) -> None:
    """Compute `nodes`: afterwards each has its buffer (constants excepted, they need none)."""
    with lock:
        roots = list(
            {
                node: None
                for node in nodes
                if node.buffer is None
                and node.op.kind is not Kind.CONSTANT
                and node.buffer is None  # a late node may turn out to be one that is in memory
            }
        )
        if roots:
            # The collector would look through what is listed and planned again and again, in vain.
            collects = gc.isenabled()
            gc.disable()
            try:
                _run(recognition.find(roots) or take(roots))
            finally:
                if collects:
                    gc.enable()
            ir.begin_turn()
            when_grown[0]()
    if wait:
        for device in {node.buffer.device for node in nodes if node.buffer is not None}:
            launch.finish(device)


def evaluate_all(*, wait: bool = False) -> None:
    """Compute everything that was recorded and that somebody still holds."""
    with lock:
        cells = ir.sweep()
        # What a thread that traces has recorded, or left behind, cannot be computed.
        try:
            evaluate_nodes(trace.untraced([cell.node for cell in cells]), wait=wait)
        except KernelBuildError:
            _evaluate_apart(cells)
            raise
        ir.sweep()


def _settle() -> None:
    """Compute what was recorded before the process is forked, and let nobody evaluate meanwhile.

    Otherwise every process would compute it again, and by NumPy.
    """
    lock.acquire()
    if ir.waiting_count() and trace.active() is None:
        evaluate_all()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_settle, after_in_parent=lock.release, after_in_child=lock.release)


def _evaluate_apart(cells: Sequence[ir.Storage]) -> None:
    """Compute each cell by itself, because a kernel that somebody wrote cannot be built.

    Those that need it are forgotten: looking at them raises again, evaluating everything does not.
    """
    broken = []
    for cell in cells:
        try:
            evaluate_nodes(trace.untraced([cell.node]))
        except KernelBuildError:
            broken.append(cell)
    ir.forget(broken)


def _device_for(snapshot: Snapshot) -> Device:
    """Where the inputs are; where they are on several devices, the current one gets copies."""
    places = {buffer.device for buffer in snapshot.buffers}
    if len(places) == 1:
        return places.pop()  # type: ignore[no-any-return]
    current = get_device()
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
        interpret.run(snapshot, device)
        return
    circumstances = smallness.circumstances(snapshot)
    planned = _known_plan(_key(snapshot, device), snapshot)
    if planned is None or planned.too_large != circumstances:
        if smallness.is_small(snapshot, device):
            experience.left_to_numpy(snapshot)
            interpret.run(snapshot, device)
            return
        if planned is None and patience.waits(snapshot, device):
            interpret.run(snapshot, device, sparing=True)
            return
        if planned is None:
            planned = find_plan(snapshot, device)
            patience.built(snapshot, device)
            experience.given_kernels(snapshot)
        planned.too_large = circumstances
    else:
        if planned.is_left is None:
            launches = [step for step in planned.steps if isinstance(step, Prepared)]
            planned.is_left = experience.takes_turns(snapshot, device, len(launches))
        if planned.is_left:
            experience.took_turns(snapshot)
            interpret.run(snapshot, device, sparing=True)
            return
        counters["plans_reused"] += 1
    schedule = planned.schedule
    slots: list[Buffer] = []
    for number, nbytes in enumerate(schedule.slots):
        reused = schedule.reuses.get(number)
        if reused is None:
            slots.append(buffers.allocate(device, nbytes))
        else:
            slots.append(snapshot.buffers[reused].on_device())
    places: list[Buffer | None] = []
    for value in schedule.values:
        if value.slot is not None:
            places.append(slots[value.slot])
        else:
            places.append(None if value.buffer is None else snapshot.buffers[value.buffer])
    if planned.uses == BIND_AT:
        for step in planned.steps:
            if isinstance(step, Prepared):
                step.bound = _bound(step)
    for step in planned.steps:
        _launch(step, places, snapshot)
    for position, value_number in schedule.keeps.items():
        node = snapshot.nodes[position]
        buffer = places[value_number]
        assert buffer is not None
        node.buffer = buffer.of(node.dtype, node.shape)
        node.inputs = ()
    for position in schedule.recomputed:
        snapshot.nodes[position].computed = True


def _launch(
    step: Prepared | Copy | LibraryCall, places: list[Buffer | None], snapshot: Snapshot
) -> None:
    if isinstance(step, Prepared):
        if step.bound is not None:
            event = step.bound.enqueue(places, snapshot.nodes, wants_event=bool(observers))
            counters["user_launches"] += isinstance(step.kernel, UserLaunch)
            for observer in observers:
                observer(step, event)
            return
        arguments = []
        for argument in step.arguments:
            if type(argument) is tuple:
                value, position = argument
                if position is None:
                    arguments.append(places[value].mem)  # type: ignore[union-attr]
                elif value is None:
                    arguments.append(snapshot.nodes[position].param)
                else:
                    arguments.append(value(snapshot.nodes[position].param))
            else:
                arguments.append(argument)
        event = launch.enqueue(
            step.program, step.rendered.global_size, step.rendered.local_size, arguments
        )
        counters["user_launches"] += isinstance(step.kernel, UserLaunch)
        for observer in observers:
            observer(step, event)
    else:
        numbers = step.scalars if isinstance(step, LibraryCall) else ()
        scalars = [(place, snapshot.nodes[number].param) for place, number in numbers]
        run_without_kernel(step, places, scalars)


def _bound(step: Prepared) -> BoundKernel:
    """The launch with a kernel object of its own."""
    fixed: dict[int, Any] = {}
    values: list[tuple[int, int]] = []
    scalars: list[tuple[int, int]] = []
    for number, binding in enumerate(step.rendered.bindings):
        if isinstance(binding, BufferArgument):
            values.append((number, binding.value))
        elif isinstance(binding, ConstantArgument):
            scalars.append((number, binding.position))
        elif isinstance(binding, LocalArgument):
            fixed[number] = launch.local_memory(binding.nbytes)
        else:
            fixed[number] = binding.number
    rendered = step.rendered
    return BoundKernel(
        step.program, rendered.global_size, rendered.local_size, fixed, values, scalars
    )


def run_without_kernel(
    step: Copy | LibraryCall,
    places: Sequence[Buffer | None],
    scalars: Sequence[tuple[int, np.generic]],
) -> None:
    """Run a step that is no kernel of ours, with the buffers of the plan's values.

    `scalars` are operands of a library call: place among the operands, and value.
    """
    if isinstance(step, Copy):
        host.copy(places[step.source], places[step.target], step.nbytes)  # type: ignore[arg-type]
    elif step.name == TABLE:
        if step.param is not None:
            values = np.frombuffer(step.param, step.dtype)
        else:
            values = np.array([value for _, value in scalars], step.dtype)
        host.write(places[step.target], values)  # type: ignore[arg-type]
    else:
        with interpret.warning_of(step.called):
            host.call(
                step.name,
                [
                    (places[o.value], o.dtype, o.shape, o.offset, o.strides)  # type: ignore[misc]
                    for o in step.operands
                ],
                (places[step.target], step.dtype, step.shape),  # type: ignore[arg-type]
                step.param,
                scalars,
            )


def _key(snapshot: Snapshot, device: Device) -> tuple[Any, ...]:
    """What plans are kept under."""
    return (
        device,
        settings.planning,
        len(snapshot.items),
        snapshot.roots,
        snapshot.items[snapshot.roots[0]][1],
    )


def _known_plan(key: tuple[Any, ...], snapshot: Snapshot) -> Planned | None:
    """The plan for this structure, if it was made before."""
    for number in _numbers.get(key, ()):
        planned = _plans[key, number]
        if planned.structure.same_structure(snapshot):
            planned.uses += 1
            if planned.uses == 1:
                patience.came_back()
            if planned.uses == recognition.LEARN_AFTER:
                recognition.learn(snapshot, planned.structure)
            _plans.move_to_end((key, number))
            return planned
    return None


def is_planned(snapshot: Snapshot, device: Device) -> bool:
    """Whether there is a plan for this structure (for `explain`)."""
    key = _key(snapshot, device)
    return any(
        _plans[key, number].structure.same_structure(snapshot) for number in _numbers.get(key, ())
    )


def find_plan(snapshot: Snapshot, device: Device) -> Planned:
    """The plan for this structure on this device, made now if there is none."""
    key = _key(snapshot, device)
    known = _known_plan(key, snapshot)
    if known is not None:
        counters["plans_reused"] += 1
        return known
    planned = make_plan(snapshot, device, fuse=settings.fusion)
    counters["plans_made"] += 1
    number = counters["plans_made"]
    _plans[key, number] = planned
    _numbers.setdefault(key, []).append(number)
    items = sum(len(kept.structure.items) for kept in _plans.values())
    while len(_plans) > 1 and (len(_plans) > PLANS_KEPT or items > ITEMS_KEPT):
        (old_key, old_number), old = _plans.popitem(last=False)
        items -= len(old.structure.items)
        _numbers[old_key].remove(old_number)
        if not _numbers[old_key]:
            del _numbers[old_key]
    return planned


def forget_plans() -> None:
    """Plan anew from here on: a device's traits have changed."""
    with lock:
        _plans.clear()
        _numbers.clear()
        patience.forget()
        experience.forget()
        recognition.forget()


def make_plan(snapshot: Snapshot, device: Device, *, fuse: bool) -> Planned:
    """Plan, render and build; nothing runs yet."""
    from .render.launches import render_launch
    from .render.matmul import render_matmul
    from .render.repeats import Repeats
    from .render.sorting import render_sort
    from .render.templates import keep_in

    kept = storage.cache_folder()
    keep_in(kept and kept / "templates")
    traits = device.traits
    if not traits.fp64:
        for node in snapshot.nodes:
            if needs_fp64(node.dtype):
                raise fp64_error(device, node.dtype)
    schedule = plan(snapshot, traits, fuse=fuse)
    if settings.debug:
        verify(schedule)
    root = storage_roots(schedule)
    repeats = Repeats(traits, root)
    steps: list[Prepared | Copy | LibraryCall] = []
    for step in schedule.launches:
        if isinstance(step, Kernel):
            rendered = repeats.render(step)
            moved = sum(nbytes for _, _, nbytes in reads_of(step, schedule))
            moved += sum(nbytes for _, _, nbytes in writes_of(step, schedule))
            steps.append(_built(step, rendered, device, moved))
        elif isinstance(step, SortPass):
            rendered = render_sort(step, traits, root)
            steps.append(_built(step, rendered, device, pass_nbytes(step, schedule)))
        elif isinstance(step, UserLaunch):
            rendered = render_launch(step, traits, root)
            reads, writes = uses_of_launch(step, schedule)
            moved = sum(nbytes for _, _, nbytes in reads + writes)
            prepared = _built(step, rendered, device, moved)
            launch.check_sizes(prepared.program, rendered.global_size, rendered.local_size)
            steps.append(prepared)
        elif isinstance(step, LibraryCall) and traits.schedule == "gpu" and is_renderable(step):
            rendered = render_matmul(step, traits, root)
            steps.append(_built(step, rendered, device, call_nbytes(step, schedule)))
        else:
            steps.append(step)
    structure = Snapshot([], snapshot.items, snapshot.flags, snapshot.roots, [])
    return Planned(structure, schedule, steps)


def _built(
    step: Kernel | LibraryCall | SortPass | UserLaunch,
    rendered: Rendered,
    device: Device,
    nbytes: int,
) -> Prepared:
    built = program.build(
        device, rendered.source, rendered.name, rendered.dtypes, relaxed=rendered.relaxed
    )
    return Prepared(step, rendered, built, _arguments(rendered), nbytes)


def storage_roots(schedule: Schedule) -> Callable[[int], int]:
    """Value -> the first value in the same bytes."""
    first: dict[Any, int] = {}
    roots = []
    for number, value in enumerate(schedule.values):
        if value.slot is not None:
            place: Any = ("slot", value.slot)
            if value.slot in schedule.reuses:
                place = ("buffer", schedule.reuses[value.slot])
        else:
            place = ("buffer", value.buffer) if value.buffer is not None else ("none", number)
        roots.append(first.setdefault(place, number))
    return roots.__getitem__


def _arguments(rendered: Rendered) -> list[Any]:
    arguments: list[Any] = []
    for binding in rendered.bindings:
        if isinstance(binding, BufferArgument):
            arguments.append((binding.value, None))
        elif isinstance(binding, ConstantArgument):
            # bool and half have no scalar argument: they are passed as int and float.
            arguments.append((_PASSED_AS.get(binding.dtype.char), binding.position))
        elif isinstance(binding, LocalArgument):
            arguments.append(launch.local_memory(binding.nbytes))
        else:
            arguments.append(binding.number)
    return arguments


_PASSED_AS: Final[dict[str, type]] = {"i": int, "f": float}


def fp64_error(device: Device, dtype: np.dtype[Any]) -> DeviceDtypeError:
    """The error for double precision on a device that has none."""
    return DeviceDtypeError(
        f"{dtype} on {device.name}: the device has no double precision; use float32, set "
        "CLFUSE_FP64=downcast to compute in float32, or select another device (CLFUSE_DEVICE)"
    )


def upload(array: npt.NDArray[Any]) -> Node:
    """A leaf with a snapshot of a host array, on the current device."""
    current = get_device()
    if needs_fp64(array.dtype) and not current.traits.fp64:
        if settings.fp64 != "downcast":
            raise fp64_error(current, array.dtype)
        array = array.astype(np.complex64 if array.dtype.kind == "c" else np.float32)
    leaf = build.leaf(buffers.hold(current, array), array.shape, array.dtype)
    when_grown[0]()
    return leaf


def share(array: npt.NDArray[Any]) -> Node | None:
    """A leaf on the host array's own memory, or None where the current device cannot."""
    current = get_device()
    if needs_fp64(array.dtype) and not current.traits.fp64:
        return None
    shared = sharing.share(current, array)
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
    if node.buffer is None and node.op.kind is Kind.CONSTANT:
        return np.array(node.param)
    evaluate_nodes([node])
    trace.require_bytes([node.buffer])
    return buffers.download(node.buffer, node.dtype, node.shape)


def launches_of(planned: Planned) -> list[Launch]:
    """The launches of a plan, in order (for `explain`)."""
    return planned.schedule.launches
