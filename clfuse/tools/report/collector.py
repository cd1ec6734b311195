"""The collector: what happens while a program runs, as far as its report says it.

Two sources. Where the host is, a thread looks up some 120 times a second (`Sampler`). What clfuse
does, clfuse tells (`clfuse.events`, and the observers of launches that `clfuse.profile` has, too):
no decision is made here, and none is made otherwise because somebody listens.

Being told of each evaluation costs some microseconds. A program that evaluates thousands of times a
second is watched for a part of the time (`MOST_SHARE`), and what was launched meanwhile is counted
by the counters of `clfuse.stats`: it is spread over what ran before.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from clfuse import events
from clfuse.counters import counters
from clfuse.dataclass import mutable
from clfuse.ir.nodes import Kind

from .places import NOWHERE, Places
from .sampler import Sampler

__all__ = ["Build", "Collector", "Copied", "Entry", "PlanSeen"]

MOST_SHARE: Final = 0.015
"""The part of the program's time that watching may take."""

GRACE_NS: Final = 4_000_000_000
"""It may take that part of this much at once, when the program begins."""

RUN_NS: Final = 150_000
"""What an evaluation takes longer that is watched: it goes through Python, and its events are made
and read. Of one kernel on PoCL 66 us of the thread; of 60 operations on Intel's runtime, whose
events with times cost more, 600 us, launches and recording included."""

LAUNCH_NS: Final = 80_000
"""As much for each launch."""

RECORD_NS: Final = 5_000
"""And for each operation that is recorded."""

MOST_PLANS: Final = 400
"""Plans that are kept to be shown. Of others, time is known by the line that asked for values."""

MOST_ON_TIMELINE: Final = 30_000
"""Launches, builds and copies that keep their times, each."""

DRAIN_AT: Final = 512
"""Events of launches that are kept before those that are done are read."""

OWNED_NBYTES: Final = 1 << 16
"""Arrays from this size on are known by the line that has made them."""


@dataclass(slots=True, eq=False)
class Entry:
    """One step of a plan, for operations of the same lines.

    plan, step: numbers of the plan and of the step in it; -1 where the plan is not known.
    shares: line -> its part of the work.
    count, timed: launches, and those whose time is known.
    elapsed_ns: of those.
    source: the OpenCL C of a kernel that was launched.
    """

    plan: int
    step: int
    name: str
    shares: dict[int, float]
    nbytes: int = 0
    source: str = ""
    count: float = 0.0
    timed: int = 0
    elapsed_ns: int = 0
    is_host: bool = False

    @property
    def total_ns(self) -> float:
        """Time of all launches, those included of which none was measured."""
        return self.elapsed_ns / self.timed * self.count if self.timed else 0.0


@dataclass(slots=True, eq=False)
class PlanSeen:
    """A plan that was made.

    `looks` are the lines that asked for its values, and how often; `entries` what ran of it.
    """

    number: int
    schedule: Any
    items: list[Any]
    lines: tuple[int, ...]
    computed: list[list[int]]
    device: str
    traits: Any
    made_at: int
    is_traced: bool = False
    has_masks: bool = False
    looks: dict[int, float] = field(default_factory=dict)
    entries: dict[tuple[int, ...], list[Entry]] = field(default_factory=dict)


@mutable
class Build:
    """A kernel that the driver has built, on the host's clock."""

    name: str
    start_ns: int
    end_ns: int
    line: int
    is_behind: bool


@mutable
class Copied:
    """Copies between host and device that one line has made in one direction."""

    count: int = 0
    nbytes: int = 0
    elapsed_ns: int = 0


class Collector:
    """Watches from `start` to `stop`.

    places: the statements of the program; or whether a file belongs to it.
    """

    def __init__(self, places: Places | Callable[[str], bool]) -> None:
        self.places = places if isinstance(places, Places) else Places(places)
        self.sampler = Sampler(self.places, self._tick, lambda: self._line)
        self.plans: list[PlanSeen] = []
        self.others: dict[int, Entry] = {}
        self.unseen = 0.0
        self.launched: list[tuple[int, int, Entry]] = []  # start and end, on the host's clock
        self.builds: list[Build] = []
        # Start, end, direction, bytes, line.
        self.copies: list[tuple[int, int, bool, int, int]] = []
        self.copies_of: dict[tuple[int, bool], Copied] = {}  # by line and direction
        self.fallbacks: dict[tuple[int, str, str], int] = {}
        self.numpy: dict[tuple[int, str], list[float]] = {}  # (line, why) -> count, nanoseconds
        self.evaluations: dict[int, float] = {}
        self.selecting: set[int] = set()  # lines that wait for the number of elements of a mask
        # Moment, bytes, and the lines that hold them, where those were looked up.
        self.memory: list[tuple[int, int, dict[int, int] | None]] = []
        self.plans_left = 0
        self.before: dict[str, int] = {}
        self.after: dict[str, int] = {}
        self.start_ns = self.end_ns = 0
        self.watched_ns = 0
        self._spent_ns = 0
        self._of_schedule: dict[int, PlanSeen] = {}
        self._of_trace: weakref.WeakKeyDictionary[Any, tuple[int, ...]] = (
            weakref.WeakKeyDictionary()
        )
        self._running: dict[int, Entry] = {}
        self._line = NOWHERE
        self._pending: list[tuple[Entry, Any, int, Any]] = []
        self._offsets: dict[Any, int] = {}
        self._recent: dict[Entry, int] = {}
        self._recent_numpy: dict[tuple[int, str], float] = {}
        self._recent_runs = 0
        self._recent_looks: dict[tuple[int, bool], int] = {}  # (line, whether NumPy computed)
        self._at_pause: tuple[int, int] | None = None
        self._on_since = 0
        self._timed: list[Any] = []
        self._owners: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._memory_seen = 0
        self._thread = 0
        self._process = os.getpid()

    # -- from beginning to end ---------------------------------------------------------------------

    def start(self) -> None:
        """Listen from here on, to what the calling thread does and to what clfuse does."""
        self.before = dict(counters)
        self._thread = threading.get_ident()
        self.start_ns = time.perf_counter_ns()
        events.listeners.append(self)
        self._resume()
        self.sampler.start(self._thread)

    def stop(self) -> None:
        """Listen no more, and read what is left."""
        self.end_ns = time.perf_counter_ns()
        self.after = dict(counters)
        self.sampler.stop()
        self._resume()  # counts what was not watched
        self._pause()
        events.listeners.remove(self)
        for device in {program.device for _, _, _, program in self._pending}:
            device.finish()
        self._drain(len(self._pending))
        for device in self._timed:
            if not device.lost:
                from clfuse.runtime.launches import launch

                launch.end_timing(device)

    @property
    def devices(self) -> list[Any]:
        """Those that kernels ran on."""
        return list(self._timed)

    @property
    def watched_share(self) -> float:
        """The part of the time in which evaluations were watched."""
        return min(self.watched_ns / max(self.end_ns - self.start_ns, 1), 1.0)

    # -- how much is watched -----------------------------------------------------------------------

    def _tick(self, now_ns: int) -> None:
        """What the sampler's thread does after each look."""
        if os.getpid() != self._process:
            return
        if not self.memory or self.memory[-1][1] != counters["device_bytes_now"]:
            self._note_memory(now_ns, None)
        most = MOST_SHARE * (now_ns - self.start_ns + GRACE_NS)
        if self._spent_ns > most and self._at_pause is None:
            self._pause()
        elif self._spent_ns < most / 2 and self._at_pause is not None:
            self._resume()

    def _pause(self) -> None:
        now = time.perf_counter_ns()
        self.watched_ns += now - self._on_since
        self._at_pause = counters["kernels_launched"], counters["host_evaluations"]
        events.recorders.remove(self.recorded)
        events.watchers.remove(self)
        self._observe(False)

    def _resume(self) -> None:
        if self._at_pause is not None:
            launched = counters["kernels_launched"] - self._at_pause[0]
            computed = counters["host_evaluations"] - self._at_pause[1]
            self._spread(launched, computed)
            self._at_pause = None
        elif self._on_since:
            return
        self._recent, self._recent_numpy, self._recent_looks = {}, {}, {}
        self._recent_runs = 0
        self._on_since = time.perf_counter_ns()
        events.recorders.append(self.recorded)
        events.watchers.append(self)
        self._observe(True)

    def _spread(self, launched: int, computed: int) -> None:
        """Count what ran while nobody watched as what ran just before."""
        seen = sum(self._recent.values())
        for entry, count in self._recent.items():
            entry.count += count * launched / seen
        if not seen:
            self.unseen += launched
        # A look has several launches, or is one evaluation of NumPy's.
        of_kernels, of_numpy = launched / max(seen, 1), computed / max(self._recent_runs, 1)
        for (line, by_numpy), count in self._recent_looks.items():
            more = count * (of_numpy if by_numpy else of_kernels)
            self.evaluations[line] = self.evaluations.get(line, 0.0) + more
        for key, part in self._recent_numpy.items():
            found = self.numpy[key]
            mean = found[1] / found[0]
            found[0] += part * computed / self._recent_runs
            found[1] += part * computed / self._recent_runs * mean

    def _observe(self, wanted: bool) -> None:
        """Be told of launches, once there is something to launch: not before is the engine's part
        for kernels imported."""
        engine = sys.modules.get("clfuse.engine.executable")
        if engine is None:
            return
        if wanted and self._launched not in engine.observers:
            engine.observers.append(self._launched)
        elif not wanted and self._launched in engine.observers:
            engine.observers.remove(self._launched)

    # -- what happens rarely -----------------------------------------------------------------------

    def planned(self, schedule: Any, snapshot: Any, device: Any) -> None:
        if self._at_pause is None:
            self._observe(True)
        if len(self.plans) >= MOST_PLANS:
            self.plans_left += 1
            return
        from .provenance import computed_by, lines_of

        plan = PlanSeen(
            len(self.plans), schedule, snapshot.items, lines_of(snapshot.nodes),
            computed_by(schedule, snapshot.items), device.name, device.traits,
            time.perf_counter_ns(), has_masks=_counts(snapshot.items),
        )  # fmt: skip
        self._of_schedule[id(schedule)] = plan
        self.plans.append(plan)

    def traced(self, key: object, schedule: Any, snapshot: Any) -> None:
        from .provenance import lines_of

        self._of_trace[key] = lines_of(snapshot.nodes)
        plan = self._of_schedule.get(id(schedule))
        if plan is not None:
            plan.is_traced = True

    def built(self, name: str, start_ns: int, end_ns: int) -> None:
        is_behind = threading.current_thread().name == "clfuse builds"
        line = NOWHERE if is_behind else self.places.find(sys._getframe(1))
        self.builds.append(Build(name, start_ns, end_ns, line, is_behind))

    def copied(self, is_to_device: bool, nbytes: int, start_ns: int, end_ns: int) -> None:
        line = self.places.find(sys._getframe(1))
        found = self.copies_of.setdefault((line, is_to_device), Copied())
        found.count += 1
        found.nbytes += nbytes
        found.elapsed_ns += end_ns - start_ns
        if len(self.copies) < MOST_ON_TIMELINE:
            self.copies.append((start_ns, end_ns, is_to_device, nbytes, line))

    def fell_back(self, name: str, reason: str) -> None:
        key = self.places.find(sys._getframe(1)), name, reason
        self.fallbacks[key] = self.fallbacks.get(key, 0) + 1

    # -- every operation, every evaluation ---------------------------------------------------------

    def recorded(self, node: Any) -> None:
        """An operation was recorded: by which statement."""
        self._spent_ns += RECORD_NS
        node.line = self.places.find(sys._getframe(1))

    def running(self, schedule: Any, snapshot: Any, device: Any) -> None:
        from .provenance import lines_of

        if id(schedule) not in self._of_schedule and not self.plans_left:
            self.planned(schedule, snapshot, device)  # it was made before somebody listened
        self._begin(schedule, lines_of(snapshot.nodes), device, True)
        for node in snapshot.nodes:
            if node.buffer is not None and node.buffer.nbytes >= OWNED_NBYTES:
                self._owners.setdefault(node.buffer, getattr(node, "line", NOWHERE))

    def replaying(self, key: object, schedule: Any, device: Any) -> None:
        self._begin(schedule, self._of_trace.get(key, ()), device, False)

    def _begin(self, schedule: Any, lines: tuple[int, ...], device: Any, is_look: bool) -> None:
        self._spent_ns += RUN_NS
        if device not in self._timed:
            from clfuse.runtime.launches import launch

            launch.begin_timing(device)
            self._timed.append(device)
        line, has_asked = self.places.find_asker(sys._getframe(2))
        self._line = line
        if is_look and has_asked:
            self._count_look(line, by_numpy=False)
        plan = self._of_schedule.get(id(schedule))
        if plan is None:
            self._running = {}
            return
        plan.looks[line] = plan.looks.get(line, 0.0) + 1
        if plan.has_masks:
            self.selecting.add(line)
        if all(each == NOWHERE for each in lines):
            lines = plan.lines
        entries = plan.entries.get(lines)
        if entries is None:
            entries = plan.entries[lines] = self._entries(plan, lines, line)
        self._running = {
            id(step[0]): entry
            for step, entry in zip(schedule.steps, entries, strict=True)
        }

    @staticmethod
    def _entries(plan: PlanSeen, lines: Sequence[int], asked_by: int) -> list[Entry]:
        from .provenance import kind_of, shares, with_readers

        filled = [asked_by if each == NOWHERE else each for each in with_readers(lines, plan.items)]
        return [
            Entry(
                plan.number, number, kind_of(step),
                shares(positions, filled, plan.items) or {asked_by: 1.0},
            )
            for number, (step, positions) in enumerate(
                zip(plan.schedule.steps, plan.computed, strict=True)
            )
        ]  # fmt: skip

    def _other(self, name: str) -> Entry:
        entry = self.others.get(self._line)
        if entry is None:
            entry = self.others[self._line] = Entry(-1, -1, name, {self._line: 1.0})
        return entry

    def _launched(self, step: Any, event: Any) -> None:
        if event is None:
            return  # it was launched before somebody watched
        self._spent_ns += LAUNCH_NS
        entry = self._running.get(id(step.kernel)) or self._other(step.rendered.name)
        if entry.plan >= 0:
            entry.name = step.rendered.name
        entry.source = step.rendered.source
        entry.nbytes = step.nbytes
        entry.count += 1
        self._recent[entry] = self._recent.get(entry, 0) + 1
        self._pending.append((entry, event, time.perf_counter_ns(), step.program))
        if len(self._pending) >= DRAIN_AT:
            self._drain(DRAIN_AT // 2)

    def called(self, step: Any, start_ns: int, end_ns: int) -> None:
        entry = self._running.get(id(step))
        if entry is None:
            return
        entry.name = getattr(step, "name", "copy")
        entry.is_host = True
        entry.count += 1
        entry.timed += 1
        entry.elapsed_ns += end_ns - start_ns
        if len(self.launched) < MOST_ON_TIMELINE:
            self.launched.append((start_ns, end_ns, entry))

    def stored(self, nodes: Any) -> None:
        for node in nodes:
            buffer = node.buffer
            if buffer is not None and buffer.nbytes >= OWNED_NBYTES:
                line = getattr(node, "line", NOWHERE)
                line = self._line if line == NOWHERE else line
                self._owners[buffer] = line
        now = counters["device_bytes_now"]
        if abs(now - self._memory_seen) > self._memory_seen / 20 + OWNED_NBYTES:
            self._memory_seen = now
            self._note_memory(time.perf_counter_ns(), self._held())

    def interpreted(self, snapshot: Any, why: str, start_ns: int, end_ns: int) -> None:
        self._spent_ns += RUN_NS // 3
        asked_by, has_asked = self.places.find_asker(sys._getframe(1))
        self._line = asked_by
        lines = {getattr(node, "line", NOWHERE) for node in snapshot.nodes} - {NOWHERE}
        lines = lines or {asked_by}
        if _counts(snapshot.items):
            self.selecting.add(asked_by)
        self._recent_runs += 1
        for line in lines:
            found = self.numpy.setdefault((line, why), [0.0, 0.0])
            found[0] += 1 / len(lines)
            found[1] += (end_ns - start_ns) / len(lines)
            recent = self._recent_numpy.get((line, why), 0.0)
            self._recent_numpy[line, why] = recent + 1 / len(lines)
        if has_asked:
            self._count_look(asked_by, by_numpy=True)
        self.stored(snapshot.nodes)

    def _count_look(self, line: int, by_numpy: bool) -> None:
        self.evaluations[line] = self.evaluations.get(line, 0.0) + 1
        key = line, by_numpy
        self._recent_looks[key] = self._recent_looks.get(key, 0) + 1

    # -- memory ------------------------------------------------------------------------------------

    def _held(self) -> dict[int, int]:
        """Bytes that live, by the line that has made them."""
        held: dict[int, int] = {}
        for buffer, line in list(self._owners.items()):
            copy = getattr(buffer, "copy", None)  # of an array on the host, for kernels
            nbytes = buffer.nbytes + (0 if copy is None else copy.nbytes)
            held[line] = held.get(line, 0) + nbytes
        return held

    def _note_memory(self, now_ns: int, held: dict[int, int] | None) -> None:
        if len(self.memory) >= MOST_ON_TIMELINE:
            del self.memory[1::2]
        self.memory.append((now_ns, counters["device_bytes_now"], held))

    # -- times of launches -------------------------------------------------------------------------

    def _drain(self, count: int) -> None:
        """Read the times of the oldest launches, as far as they are done."""
        done = 0
        for entry, event, host_ns, program in self._pending[:count]:
            times = _times(event, program.device)
            if times is None:
                break
            done += 1
            queued_ns, start_ns, end_ns = times
            if end_ns < 0:
                continue
            offset = self._offsets.get(program.device)
            if offset is None or host_ns - queued_ns < offset:
                offset = self._offsets[program.device] = host_ns - queued_ns
            entry.timed += 1
            entry.elapsed_ns += end_ns - start_ns
            if len(self.launched) < MOST_ON_TIMELINE:
                self.launched.append((start_ns + offset, end_ns + offset, entry))
        del self._pending[:done]


def _counts(items: Sequence[tuple[Any, ...]]) -> bool:
    """Whether a snapshot counts what a mask selects."""
    return any(item[0] is not None and item[0].kind is Kind.COUNTS for item in items)


def _times(event: Any, device: Any) -> tuple[int, int, int] | None:
    """When a launch was queued, began and ended, on the device's clock; None where it is not done,
    and negative numbers where nobody knows."""
    if device.lost:
        return -1, -1, -1
    from clfuse.runtime.launches import launch

    return launch.times_of(event)
