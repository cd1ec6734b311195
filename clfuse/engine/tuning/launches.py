"""Tuning of the kernels of a plan that comes again and again.

Known plans run without Python. After as many runs as `Tuning` says one is left to Python, which
launches one of its kernels on a queue whose events hold times: as it stands, or as one of its
candidates. Nothing waits; the time is looked at when Python comes by the next time. A candidate's
text is written then, and built by the thread of `background`.

All of it is called with `evaluate.lock` held. A profile, or whoever else wants to see launches,
changes no decision: nothing is timed, tried or chosen meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from clfuse.config import settings
from clfuse.engine import background
from clfuse.engine.executable import (
    Prepared,
    Rendering,
    bind_planned,
    is_observed,
    prepared,
    program_of,
    tuned_after,
)
from clfuse.engine.resume import is_refusal
from clfuse.errors import KernelBuildError
from clfuse.ir.journal import Refused
from clfuse.runtime.files import geometries
from clfuse.runtime.files.geometries import Kept
from clfuse.runtime.launches import launch
from clfuse.schedule.dataflow import storage_roots
from clfuse.schedule.records import Kernel, Schedule
from clfuse.schedule.shape.variants import choices

from . import kept
from .trials import AT_ONCE, NEVER, ORDINARY, Limits, Trials, What

if TYPE_CHECKING:
    from clfuse.engine.executable import Planned
    from clfuse.runtime.devices.device import Device
    from clfuse.runtime.launches.launch import BoundKernel

__all__ = ["Tuning", "at_once", "begin", "look", "running"]

WORTH: Final = 2
"""A kernel that moves less than so many times what moves during a launch is not worth it."""

BESIDE: Final = 0.1
"""The part of a build's time that is lost on a device which has nothing to do with it."""

LAUNCH_NS: Final = 10_000
"""Of a launch, in the time of which `DeviceTraits.launch_nbytes` move."""

ASIDE_NS: Final = 100_000
"""What a run costs that Python makes because it is time to look, beside the look: between large
kernels the caches hold nothing of Python's. Measured: 90 to 300 us with it (two cores)."""

_limits: Final[list[Limits]] = [ORDINARY]

running: Final[list[Tuning]] = []
"""What was begun `at_once`."""


@contextmanager
def at_once() -> Iterator[None]:
    """For the length of a block, plans are tuned as soon as they come again, whatever it costs, and
    programs are built at once."""
    before = tuned_after[0]
    _limits[:], tuned_after[:] = [AT_ONCE], [1]
    try:
        yield
    finally:
        _limits[:], tuned_after[:] = [ORDINARY], [before]
        running.clear()


class _Timed:
    """What a step has in place of its bound kernel for one run: a launch with a time."""

    def __init__(self, tuned: _Tuned, number: int, bound: BoundKernel) -> None:
        self._tuned, self._number, self._bound = tuned, number, bound
        self.program = bound.program
        self.is_direct = False

    def enqueue(
        self,
        buffers: list[Any],
        scalars: Sequence[Any],
        tickets: list[Any],
        *,
        wants_event: bool = False,
    ) -> Any:
        """As `BoundKernel.enqueue`; where the driver refuses a candidate, what stands is launched
        instead."""
        tuned, number = self._tuned, self._number
        stands = tuned.step.bound
        assert stands is not None
        before = len(tickets)
        try:
            event = self._bound.enqueue_timed(buffers, scalars, tickets)
        except Exception as error:
            is_refused = is_refusal(error) or isinstance(error, KernelBuildError)
            if len(tickets) > before or not is_refused:
                raise
            tuned.trials.lost(tuned.looked_for_ns())
            tuned.trials.refused(number)
            return stands.enqueue(buffers, scalars, tickets, wants_event=wants_event)
        tuned.pending = number, event, tuned.looked_for_ns()
        return event


class _Tuned:
    """One kernel of a plan: as it was planned, as it stands, and its candidates."""

    def __init__(
        self,
        index: int,
        step: Prepared,
        kernel: Kernel,
        fields: list[tuple[str, int]],
        key: str,
        guess_ns: float,
    ) -> None:
        self.index, self.kernel, self.key = index, kernel, key
        self.first = self.step = step  # what stood when it began, and what stands
        self.known = step.kept
        self.skipped = 0 if step.kept is None else step.kept.tried
        self.fields = fields[self.skipped :]
        self.trials = Trials(len(self.fields), _limits[0], guess_ns)
        self.changes: dict[int, dict[str, int]] = {
            0: {} if step.kept is None else dict(step.kept.changes)
        }
        self.made: dict[int, Prepared] = {0: step}
        self.pending: tuple[int, Any, float] | None = None
        self.rendering: Rendering | None = None
        self.written = 0
        self.building: background.Work | None = None
        self.build_ns = 0.0
        self.look_ns = 0  # when the last look began

    def looked_for_ns(self) -> float:
        """What the look that was last has cost so far."""
        return ASIDE_NS + time.perf_counter_ns() - self.look_ns


class Tuning:
    """The trials of a plan's kernels.

    left (int): runs until it has to be looked at, by who counts them: the last of them is the one
        that comes then.
    """

    def __init__(
        self,
        tuned: list[_Tuned],
        schedule: Schedule,
        device: Device,
        bound: Callable[[Prepared], BoundKernel],
        use: Callable[[int, Prepared], None],
    ) -> None:
        self._tuned, self._schedule, self._device = tuned, schedule, device
        self._bound, self._use = bound, use
        self._share = 1.0 if device.traits.kind == "cpu" else BESIDE
        self._about = geometries.about(device.traits)
        self._turn = 0
        self._grant()

    @property
    def is_done(self) -> bool:
        """Whether all its trials are over."""
        return not self._tuned

    def ran(self, runs: int) -> None:
        """There were so many runs more."""
        for tuned in self._tuned:
            tuned.trials.ran(runs)

    def look(self) -> tuple[int, Prepared] | None:
        """What is to be launched in place of a step at the run that comes now, after `left` runs:
        the step's number, and what has a time. None where nothing is."""
        start_ns = time.perf_counter_ns()
        self.ran(self.left)
        found = None
        if not is_observed():
            for tuned in [*self._tuned[self._turn :], *self._tuned[: self._turn]]:
                tuned.look_ns = start_ns
                self._collect(tuned)
                if found is None and not tuned.trials.is_done:
                    found = self._act(tuned)
                if tuned.trials.is_done:
                    self._keep(tuned)
            if found is None:  # else who is timed has it
                self._tuned[0].trials.lost(self._tuned[0].looked_for_ns())
            self._tuned = [tuned for tuned in self._tuned if not tuned.trials.is_done]
            self._turn = (self._turn + 1) % max(len(self._tuned), 1)
        self._grant()
        return found

    def _grant(self) -> None:
        """Say when to look again."""
        self.left = min([tuned.trials.due_after() for tuned in self._tuned], default=NEVER)

    def _collect(self, tuned: _Tuned) -> None:
        """Note the time of what was launched before, and whether a build has ended."""
        if tuned.pending is not None:
            number, event, overhead_ns = tuned.pending
            times = launch.times_of(event)
            if times is None:
                return
            tuned.pending = None
            _, start_ns, end_ns = times
            if start_ns < 0:
                tuned.trials.lost(overhead_ns)
            else:
                before = tuned.trials.best
                tuned.trials.timed(number, max(end_ns - start_ns, 1), overhead_ns)
                if tuned.trials.best != before:
                    self._change(tuned)
        work = tuned.building
        if work is not None and work.is_done:
            tuned.building = None
            self._built(tuned, work.done == work.total)

    def _act(self, tuned: _Tuned) -> tuple[int, Prepared] | None:
        """Do what is next for a kernel; what is to be launched with a time."""
        if tuned.pending is not None or tuned.building is not None:
            return None
        action = tuned.trials.next()
        number = action.number
        if action.what is What.WRITE:
            self._write(tuned, number)
        elif action.what is What.BUILD:
            self._build(tuned)
        elif action.what is What.TIME:
            step = tuned.made[number]
            assert step.bound is not None
            timed: Any = _Timed(tuned, number, step.bound)
            return tuned.index, replace(step, bound=timed)
        return None

    def _write(self, tuned: _Tuned, number: int) -> None:
        """Write a candidate: one change more than what stands."""
        start_ns = time.perf_counter_ns()
        name, value = tuned.fields[number - 1]
        changes = {**tuned.changes[tuned.trials.best], name: value}
        root = storage_roots(self._schedule)
        first = tuned.first
        made = kept.rendered_as(tuned.kernel, first.rendered, changes, self._device.traits, root)
        if made is None:
            tuned.trials.lost(time.perf_counter_ns() - start_ns)
            tuned.trials.refused(number)
            return
        tuned.changes[number], tuned.written = changes, number
        tuned.rendering = Rendering([tuned.kernel], made, first.nbytes, first.work)
        sources = [each.rendered.source for each in tuned.made.values()]
        is_built = made.source in sources
        if is_built and not self._prepare(tuned, number):
            return
        if not is_built:
            self._keep(tuned)  # the run may well end before a build is worth it
        tuned.trials.written(number, time.perf_counter_ns() - start_ns, is_built=is_built)

    def _build(self, tuned: _Tuned) -> None:
        """Begin to build the candidate that was written."""
        rendering = tuned.rendering
        assert rendering is not None

        def build() -> None:
            start_ns = time.perf_counter_ns()
            program_of(rendering, self._device)
            tuned.build_ns = time.perf_counter_ns() - start_ns

        if _limits[0] is AT_ONCE:
            work = background.Work([build], None)
            work.run()
            self._built(tuned, work.done == work.total)
        elif background.is_possible():
            tuned.building = background.begin([build])
        else:
            self._built(tuned, False)

    def _built(self, tuned: _Tuned, is_there: bool) -> None:
        """The candidate was built, or was not."""
        number = tuned.written
        if not is_there:
            tuned.trials.refused(number)
        elif self._prepare(tuned, number):
            tuned.trials.built(number, self._share * tuned.build_ns)

    def _prepare(self, tuned: _Tuned, number: int) -> bool:
        """Make what launches a candidate that is built; False where the driver refuses it."""
        rendering, tuned.rendering = tuned.rendering, None
        assert rendering is not None
        try:
            made = prepared(rendering, self._device)
            assert isinstance(made, Prepared)
            made.bound = self._bound(made)
        except Refused:
            tuned.trials.refused(number)
            return False
        except Exception as error:
            if not is_refusal(error):
                raise
            tuned.trials.refused(number)
            return False
        tuned.made[number] = made
        return True

    def _change(self, tuned: _Tuned) -> None:
        """Have the best launched from here on."""
        tuned.step = tuned.made[tuned.trials.best]
        self._keep(tuned)
        self._use(tuned.index, tuned.step)

    def _keep(self, tuned: _Tuned) -> None:
        """Keep what was found out so far."""
        trials = tuned.trials
        before_ns, after_ns = trials.times_ns()
        if before_ns < ORDINARY.least_ns:
            return
        known = tuned.known
        if known is not None:  # what stood when this began was better than what was planned
            before_ns *= known.before_ns / max(known.after_ns, 1)
        changes = tuple(sorted(tuned.changes[trials.best].items()))
        tried = tuned.skipped + trials.tried
        name = tuned.first.rendered.name
        found = Kept(name, changes, round(before_ns), round(after_ns), tried, tuned.key)
        if found.changes != (() if tuned.step.kept is None else tuned.step.kept.changes) or (
            tuned.step.kept is None or found.tried != tuned.step.kept.tried
        ):
            tuned.step.kept = found
            geometries.note(self._about, found)


def begin(
    steps: Sequence[Any],
    schedule: Schedule,
    device: Device,
    bound: Callable[[Prepared], BoundKernel],
    use: Callable[[int, Prepared], None],
) -> Tuning | None:
    """Begin with the kernels of a plan that were bound; None where there is nothing to tune.

    steps: as `Planned.steps` has them.
    schedule: of which they are.
    device: where they run.
    bound: gives a step a kernel object of its own, with the same scalars as the plan's have.
    use: puts a step into the place of the one of this number.
    """
    if not settings.tuning or settings.debug:
        return None
    least = WORTH * device.traits.launch_nbytes
    found = []
    for index, (step, launches) in enumerate(zip(steps, schedule.steps, strict=True)):
        if not isinstance(step, Prepared) or step.bound is None:
            continue
        kernel = launches[0]
        if len(launches) > 1 or not isinstance(kernel, Kernel) or step.program.inline:
            continue
        if step.work < least and _limits[0] is not AT_ONCE:
            continue
        fields = [each for each in choices(kernel, device.traits) if not kept.is_forced(each[0])]
        known = step.kept
        if fields and (known is None or known.tried < len(fields)):
            key = kept.key_of(kernel, step.rendered) if known is None else known.key
            guess_ns = LAUNCH_NS * step.work / device.traits.launch_nbytes
            found.append(_Tuned(index, step, kernel, fields, key, guess_ns))
    if not found:
        return None
    tuning = Tuning(found, schedule, device, bound, use)
    if _limits[0] is AT_ONCE:
        running.append(tuning)
    return tuning


def look(planned: Planned, device: Device) -> None:
    """Look at the tuning of a plan that is due: `Planned.timed` is what it launches next."""
    tuning: Tuning | None = planned.tuning
    structure = planned.structure
    if tuning is None:
        steps = planned.steps

        def use(index: int, step: Prepared) -> None:
            steps[index] = step
            if structure.ready is not None:
                structure.ready = planned.ready(device)

        tuning = begin(steps, planned.schedule, device, bind_planned, use)
        if tuning is not None:
            tuning.ran(planned.uses + tuned_after[0])
            planned.tuning = tuning
    else:
        planned.timed = tuning.look()
        if tuning.is_done:
            planned.tuning = tuning = None
    planned.left = NEVER if tuning is None else tuning.left
    if structure.ready is not None:
        structure.ready.left = planned.left - 1
