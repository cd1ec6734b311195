"""Executables: a plan with its programs, made once for a structure and run at every evaluation.

Steps that often fail (planning, building, allocating) come before the first launch. No node changes
until the last launch, unless the evaluation ends early: then `resume` says which nodes do.
"""

from __future__ import annotations

import functools
import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clfuse import events
from clfuse._core import loading
from clfuse.codegen.arguments import (
    BufferArgument,
    ConstantArgument,
    CountArgument,
    LocalArgument,
    TableArgument,
)
from clfuse.codegen.joined import join
from clfuse.codegen.launches import render_launch
from clfuse.codegen.matmul import render_matmul
from clfuse.codegen.passes import render_pass
from clfuse.codegen.repeats import Repeats
from clfuse.config import PLANNING, settings
from clfuse.counters import counters
from clfuse.dataclass import mutable
from clfuse.dtypes import needs_fp64
from clfuse.errors import DeviceError, KernelBuildError, fp64_error
from clfuse.interpreter import interpret
from clfuse.ir.journal import Refused, journal, settle
from clfuse.ir.known_graphs import structure_of
from clfuse.ir.nodes import TABLE, Kind, Node
from clfuse.ir.snapshot import Snapshot
from clfuse.policy.choice import Verdict
from clfuse.runtime.context import waits
from clfuse.runtime.context.pool import block_size
from clfuse.runtime.host import host_steps
from clfuse.runtime.launches import launch, program, stepping, tables
from clfuse.runtime.launches.launch import BoundKernel
from clfuse.runtime.memory import buffers
from clfuse.runtime.memory.buffers import Buffer
from clfuse.schedule.dataflow import storage_roots
from clfuse.schedule.device_libraries import is_ours
from clfuse.schedule.planner import plan
from clfuse.schedule.records import Copy, Kernel, Launch, LibraryCall, Pass, Schedule, UserLaunch
from clfuse.schedule.traffic import (
    call_nbytes,
    estimated_nbytes,
    is_inline,
    is_unknown,
    kernel_nbytes,
    pass_nbytes,
    uses_of_launch,
)
from clfuse.schedule.verify import verify

from .background import Work
from .rerecord import record_again
from .resume import is_refusal, leave
from .tuning import kept

if TYPE_CHECKING:
    from clfuse.codegen.kernels import Rendered
    from clfuse.runtime.devices.device import Device
    from clfuse.runtime.files.geometries import Kept
    from clfuse.runtime.launches.program import Program
    from clfuse.target.traits import DeviceTraits

BIND_AT: Final = 2
"""Uses of a plan after the first from which its kernels have objects of their own: each takes 10 to
30 us to make."""

NEVER: Final = 1 << 60
"""Runs until a plan's tuning is looked at, where it has none."""

tuned_after: Final = [62]
"""Runs of a plan, from `BIND_AT` on, after which it is looked at what could be tuned."""


@mutable
class Prepared:
    """A kernel launch with everything but its buffers and scalars fixed.

    `arguments` holds ``(value, None)`` for buffers, ``(conversion, position)`` for constants of the
    snapshot, and the number itself for integers. `nbytes` is what it moves, every array once, and
    `work` what `runtime.context.waits` counts.
    `bound` is a kernel object of its own, once the plan has come back. `kept` says what tuning has
    chosen, of kernels whose trials are over.
    """

    kernel: Kernel | LibraryCall | Pass | UserLaunch
    rendered: Rendered
    program: Program
    arguments: list[Any]
    nbytes: int
    work: float
    bound: BoundKernel | None = None
    kept: Kept | None = None


@mutable
class Rendering:
    """The OpenCL C of a step: of these kernels, which move so many bytes.

    Where tuning has chosen another geometry, `planned` is what stands in for one that does not
    build, and `kept` says what was chosen.
    """

    kernels: Sequence[Kernel | LibraryCall | Pass | UserLaunch]
    rendered: Rendered
    nbytes: int
    work: float
    inline: bool = False
    planned: Rendering | None = None
    kept: Kept | None = None


_Part = Rendering | Copy | LibraryCall


@mutable
class Planned:
    """A plan, with its programs once it `is_built`, and the structure that it is for (no buffers,
    no nodes).

    `verdict` is what `policy` has decided of it, `by_host` says that nothing but NumPy can compute
    it (`refused_builds`). `kernels` are those that are built in the background, from what is
    `rendered`.

    After `left` runs `tuning` has to be looked at: `engine.tuning.launches`. `timed` is a step's
    number, and what is launched in its place at the next run.
    """

    structure: Snapshot
    schedule: Schedule
    steps: list[Prepared | Copy | LibraryCall]
    is_built: bool = False
    uses: int = 0
    verdict: Verdict = field(default_factory=Verdict)
    by_host: bool = False
    kernels: Work | None = None
    rendered: list[_Part] = field(default_factory=list)
    tuning: Any = None
    left: int = NEVER
    timed: tuple[int, Prepared] | None = None

    def ready(self, device: Device) -> Any:
        """What runs the plan again without Python, or None: ``_core/known_evaluations.pxi``.

        For plans of kernels alone, which were bound.
        """
        steps = self.steps
        verdict = self.verdict
        if _core is None or verdict.is_left or verdict.circumstances is None:
            return None
        if verdict.circumstances[0] != settings.host_us:
            return None
        pool = device.pool
        if pool is None or pool.is_tight or not all(map(_is_direct, steps)):
            return None
        launches = sum([isinstance(step.kernel, UserLaunch) for step in steps])  # type: ignore
        _core.connect_evaluation(_names())
        return _core.Ready(self, device, block_size, launches, self.left - 1)

    def is_due(self) -> bool:
        """Whether its tuning is to be looked at before the run that comes next, which is
        counted."""
        ready = self.structure.ready
        if ready is not None:
            self.left = ready.left + 1
        self.left -= 1
        if ready is not None:
            ready.left = max(self.left - 1, 0)
        return self.left <= 0

    def launch_count(self) -> int:
        """How many launches of kernels it has."""
        return sum(
            [
                isinstance(step, Pass | UserLaunch)
                or (isinstance(step, Kernel) and not step.follows)
                for step in self.schedule.launches
            ]
        )

    def is_inline(self, device: Device) -> bool:
        """Whether the calling thread runs its kernels."""
        if device.inline is None or not settings.inline:
            return False
        return is_inline(self.schedule, device.traits)

    def build(self, device: Device) -> None:
        """Render and build its kernels, if that was not done; raises `Refused`."""
        if not self.is_built:
            parts = self.rendered or _parts(self.schedule, device, self.is_inline(device))
            self.rendered = []
            self.steps = [prepared(part, device) for part in parts]
            self.is_built = True

    @property
    def is_awaited(self) -> bool:
        """Whether its kernels are being built in the background."""
        return self.kernels is not None and not self.kernels.is_done

    def builds(self, device: Device) -> list[Callable[[], object]]:
        """Render its kernels; what builds them, for another thread. `build` finds them then."""
        self.rendered = _parts(self.schedule, device, self.is_inline(device))
        return [
            functools.partial(program_of, part, device)
            for part in self.rendered
            if isinstance(part, Rendering)
        ]

    def run(self, snapshot: Snapshot, device: Device) -> None:
        """Launch on `device`, and give each root its buffer; raises `Refused`."""
        if waits.is_deep():
            waits.keep_up(device.queue)
        schedule = self.schedule
        for watcher in events.watchers:
            watcher.running(schedule, snapshot, device)
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
        if self.uses == BIND_AT:
            for step in self.steps:
                if isinstance(step, Prepared):
                    step.bound = bind_planned(step)
            if settings.tuning:
                self.left = tuned_after[0]
        steps, timed = self.steps, self.timed
        if timed is not None:
            number, step = timed
            steps, self.timed = [*steps[:number], step, *steps[number + 1 :]], None
        nodes = snapshot.nodes
        tickets: list[Any] = []
        journal[0] = self.leave, (nodes, places, tickets)
        try:
            for step in steps:
                _launch(step, places, nodes, tickets)
            for position, value_number in schedule.keeps.items():
                node = nodes[position]
                buffer = places[value_number]
                assert buffer is not None
                node.buffer = buffer.of(node.dtype, node.shape)
                node.inputs = ()
            for position in schedule.recomputed:
                nodes[position].computed = True
            journal[0] = None
        except BaseException as error:
            settle()
            done = len(tickets)
            if is_refusal(error) and done < len(steps):
                raise Refused(schedule.steps[done], error) from error  # type: ignore[arg-type]
            raise
        for watcher in events.watchers:
            watcher.stored([nodes[position] for position in schedule.keeps])

    def leave(
        self,
        nodes: list[Node],
        places: list[Buffer | None],
        tickets: list[Any],
        whole: bool = False,
    ) -> bool:
        """Put the nodes in order after a run that ended early, as `resume.leave`."""
        constants = [
            node if type(node) is Node and node.op.kind is Kind.CONSTANT else None for node in nodes
        ]
        schedule, steps, items = self.schedule, self.steps, self.structure.items

        def continued(number: int, places: list[Buffer | None], tickets: list[Any]) -> None:
            _launch(steps[number], places, constants, tickets)

        def again(
            value: int, places: list[Buffer | None], is_done: list[bool], begun: set[int]
        ) -> Node | None:
            positions = [each for each, stored in schedule.stored.items() if stored == value]
            if not positions:
                return None
            return record_again(positions[0], items, constants, schedule, places, is_done, begun)

        keeps = [(nodes[position], value) for position, value in schedule.keeps.items()]
        return leave(schedule, continued, keeps, places, tickets, whole=whole, again=again)


observers: Final[list[Callable[[Prepared, Any], None]]] = []
"""Called with every kernel's launch and event while somebody profiles."""

def is_observed() -> bool:
    """Whether somebody wants to see launches, so that all go through Python."""
    return bool(observers or launch.observers)


_core: Final = loading.load()


def _is_direct(step: Prepared | Copy | LibraryCall) -> bool:
    """Whether the driver is called for it without pyopencl."""
    return isinstance(step, Prepared) and step.bound is not None and step.bound.is_direct


def _names() -> dict[str, Any]:
    """What ``_core/known_evaluations.pxi`` uses of clfuse."""
    return {
        "Block": buffers.Block,
        "Buffer": Buffer,
        "allocate": buffers.allocate,
        "counters": counters,
        "is_refusal": is_refusal,
        "observers": (observers, launch.observers),
        "planning": PLANNING,
    }


when_planned: Final[list[Callable[[Schedule, DeviceTraits, str], None]]] = []
"""Who wants to see every new plan: with the traits that it is for, and the device's name."""


def make_plan(
    snapshot: Snapshot, device: Device, *, fuse: bool, traits: DeviceTraits | None = None
) -> Planned:
    """Plan, for other `traits` than the device's if they are given; nothing is built yet."""
    traits = device.traits if traits is None else traits
    if not traits.fp64:
        for node in snapshot.nodes:
            # A comparison's operands may be, too: NumPy compares int64 and float32 as float64.
            for dtype in (node.dtype, *node.op.input_dtypes):
                if needs_fp64(dtype):
                    raise fp64_error(device.name, dtype)
    schedule = plan(snapshot, traits, fuse=fuse)
    if settings.debug_level:
        verify(schedule)
    for function in when_planned:
        function(schedule, traits, device.name)
    for listener in events.listeners:
        listener.planned(schedule, snapshot, device)
    return Planned(structure_of(snapshot), schedule, [])


def _parts(schedule: Schedule, device: Device, inline: bool) -> list[_Part]:
    """What a plan does, its kernels rendered."""
    traits = device.traits
    root = storage_roots(schedule)
    repeats = Repeats(traits, root)
    chosen = kept.of_plan(traits, root) if settings.tuning else None
    parts: list[_Part] = []

    def work_of(launches: Sequence[Launch], rendered: Rendered) -> float:
        items = math.prod(rendered.global_size)
        known = sum([estimated_nbytes(each, items, schedule, traits) for each in launches])
        return known + waits.LONG * any(is_unknown(each) for each in launches)

    for launches in schedule.steps:
        step = launches[0]
        if isinstance(step, Kernel):
            together = [each for each in launches if isinstance(each, Kernel)]
            texts = [repeats.render(each) for each in together]
            rendered = join(texts) if len(texts) > 1 else texts[0]
            moved = sum([kernel_nbytes(each, schedule) for each in together])
            part = Rendering(together, rendered, moved, work_of(launches, rendered), inline)
            found = chosen(step, rendered) if chosen and len(together) == 1 else None
            if found is not None:
                part = replace(part, rendered=found[0], planned=part, kept=found[1])
            parts.append(part)
        elif isinstance(step, Pass):
            rendered = render_pass(step, traits, root)
            moved = pass_nbytes(step, schedule)
            parts.append(Rendering([step], rendered, moved, work_of(launches, rendered)))
        elif isinstance(step, UserLaunch):
            rendered = render_launch(step, traits, root)
            reads, writes = uses_of_launch(step, schedule)
            moved = sum(nbytes for _, _, nbytes in reads + writes)
            parts.append(Rendering([step], rendered, moved, work_of(launches, rendered), inline))
        elif isinstance(step, LibraryCall) and is_ours(step, traits):
            rendered = render_matmul(step, traits, root)
            moved = call_nbytes(step, schedule)
            parts.append(Rendering([step], rendered, moved, work_of(launches, rendered)))
        else:
            parts.append(step)
    return parts


def program_of(part: Rendering, device: Device) -> Program:
    rendered = part.rendered
    return program.build(
        device, rendered.source, rendered.name, rendered.dtypes, relaxed=rendered.relaxed,
        inline=part.inline,
    )


def prepared(part: _Part, device: Device) -> Prepared | Copy | LibraryCall:
    """A step that can run; raises `Refused`."""
    if not isinstance(part, Rendering):
        return part
    rendered = part.rendered
    try:
        built = program_of(part, device)
        local = [each.nbytes for each in rendered.bindings if isinstance(each, LocalArgument)]
        launch.check_sizes(built, rendered.global_size, rendered.local_size, sum(local))
    except KernelBuildError as error:
        if part.planned is not None:
            return prepared(part.planned, device)
        raise Refused(part.kernels, error) from error
    arguments = _arguments(rendered, device)
    return Prepared(
        part.kernels[0], rendered, built, arguments, part.nbytes, part.work, kept=part.kept
    )


def _arguments(rendered: Rendered, device: Device) -> list[Any]:
    arguments: list[Any] = []
    for binding in rendered.bindings:
        if isinstance(binding, BufferArgument):
            arguments.append((binding.value, None))
        elif isinstance(binding, ConstantArgument):
            # bool and half have no scalar argument: they are passed as int and float.
            arguments.append((_PASSED_AS.get(binding.dtype.char), binding.position))
        elif isinstance(binding, LocalArgument):
            arguments.append(launch.local_memory(binding.nbytes))
        elif isinstance(binding, CountArgument):
            arguments.append(launch.count_of_items(device))
        elif isinstance(binding, TableArgument):
            arguments.append(tables.table_on(device, binding.table))
        else:
            arguments.append(binding.number)
    return arguments


_PASSED_AS: Final[dict[str, type]] = {"i": int, "f": float}


def _launch(
    step: Prepared | Copy | LibraryCall,
    places: list[Buffer | None],
    nodes: Sequence[Any],
    tickets: list[Any],
) -> None:
    """Do a step, and add its ticket. Of `nodes` the constants are read."""
    if isinstance(step, Prepared):
        if step.bound is not None:
            event = step.bound.enqueue(places, nodes, tickets, wants_event=bool(observers))
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
                    arguments.append(nodes[position].param)
                else:
                    arguments.append(value(nodes[position].param))
            else:
                arguments.append(argument)
        event = launch.enqueue(
            step.program, step.rendered.global_size, step.rendered.local_size, arguments, tickets
        )
        waits.add(step.work)
        counters["user_launches"] += isinstance(step.kernel, UserLaunch)
        for observer in observers:
            observer(step, event)
    else:
        numbers = step.scalars if isinstance(step, LibraryCall) else ()
        scalars = [(place, nodes[number].param) for place, number in numbers]
        run_without_kernel(step, places, scalars, tickets)


def bind(
    step: Prepared, scalar: Callable[[ConstantArgument], tuple[int | None, Any]]
) -> BoundKernel:
    """The launch with a kernel object of its own.

    `scalar` says of a constant which number it has among those that come with every launch; or
    None, and the value that it always has.
    """
    fixed: dict[int, Any] = {}
    values: list[tuple[int, int]] = []
    scalars: list[tuple[int, int]] = []
    for number, binding in enumerate(step.rendered.bindings):
        if isinstance(binding, BufferArgument):
            values.append((number, binding.value))
        elif isinstance(binding, ConstantArgument):
            position, always = scalar(binding)
            if position is None:
                fixed[number] = always
            else:
                scalars.append((number, position))
        elif isinstance(binding, LocalArgument):
            fixed[number] = launch.local_memory(binding.nbytes)
        elif isinstance(binding, CountArgument):
            fixed[number] = launch.count_of_items(step.program.device)
        elif isinstance(binding, TableArgument):
            fixed[number] = tables.table_on(step.program.device, binding.table)
        else:
            fixed[number] = binding.number
    rendered = step.rendered
    return BoundKernel(
        step.program, rendered.global_size, rendered.local_size, fixed, values, scalars, step.work
    )


def bind_planned(step: Prepared) -> BoundKernel:
    """The launch of a plan's step, whose scalars are constants of the snapshot."""
    return bind(step, lambda constant: (constant.position, None))


def run_without_kernel(
    step: Copy | LibraryCall,
    places: Sequence[Buffer | None],
    scalars: Sequence[tuple[int, np.generic]],
    tickets: list[Any],
) -> None:
    """Run a step that is no kernel of ours, with the buffers of the plan's values; add its ticket.

    `scalars` are operands of a library call: place among the operands, and value.
    """
    before = len(tickets)
    start_ns = time.perf_counter_ns() if events.watchers else 0
    _run_without_kernel(step, places, scalars, tickets)
    if start_ns:
        end_ns = time.perf_counter_ns()
        for watcher in events.watchers:
            watcher.called(step, start_ns, end_ns)
    if len(tickets) == before:
        tickets.append(None)
    if stepping.is_on():
        target = places[step.target]
        assert target is not None
        stepping.finish(target.device, step.name if isinstance(step, LibraryCall) else "copy")


def _run_without_kernel(
    step: Copy | LibraryCall,
    places: Sequence[Buffer | None],
    scalars: Sequence[tuple[int, np.generic]],
    tickets: list[Any],
) -> None:
    if isinstance(step, Copy):
        host_steps.copy(places[step.source], places[step.target], step.nbytes)  # type: ignore[arg-type]
    elif step.name == TABLE:
        if step.param is not None:
            values = np.frombuffer(step.param, step.dtype)
        else:
            values = np.array([value for _, value in scalars], step.dtype)
        host_steps.write(places[step.target], values)  # type: ignore[arg-type]
    elif step.maker is None or not _made_on_device(step, places):
        with interpret.warning_of(step.called):
            host_steps.call(
                step.name,
                [
                    (places[o.value], o.dtype, o.shape, o.offset, o.strides)  # type: ignore[misc]
                    for o in step.operands
                ],
                (places[step.target], step.dtype, step.shape),  # type: ignore[arg-type]
                step.param,
                scalars,
                tickets,
            )


def _made_on_device(step: LibraryCall, places: Sequence[Buffer | None]) -> bool:
    """Have a library of the device make the call; False where it refuses, and NumPy shall."""
    from clfuse.runtime.launches import device_libraries

    try:
        device_libraries.call(step, places)
    except DeviceError:
        raise
    except RuntimeError as error:
        warnings.warn(f"{step.name}: {error}; NumPy did it on the host", RuntimeWarning, 2)
        return False
    return True
