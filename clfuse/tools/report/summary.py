"""The summary of a run: what a `Collector` has seen, by files, lines and kernels."""

from __future__ import annotations

import linecache
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clfuse.dataclass import mutable

from .collector import Build, Collector, Copied, Entry, PlanSeen
from .places import NOWHERE, PYTHON, STATES
from .words import time_of

if TYPE_CHECKING:
    from clfuse.schedule.records import Launch

__all__ = ["Circumstances", "File", "KernelSeen", "Line", "Summary", "summarized"]


@dataclass(slots=True, eq=False)
class KernelSeen:
    """Launches of one name, for the same lines.

    shares: file and line -> its part of the work.
    is_host: it is no kernel: a library on the host has computed it.
    """

    number: int
    name: str
    shares: dict[tuple[str, int], float]
    count: float = 0.0
    elapsed_ns: float = 0.0
    nbytes: float = 0.0
    is_host: bool = False
    plans: list[int] = field(default_factory=list)

    @property
    def lines(self) -> set[tuple[str, int]]:
        """The lines whose operations it computes."""
        return set(self.shares)


@mutable
class Line:
    """What one line of the source has taken; nanoseconds and bytes."""

    number: int
    text: str
    host: dict[str, int] = field(default_factory=dict)
    device_ns: float = 0.0
    nbytes: float = 0.0
    launches: float = 0.0
    kernels: list[KernelSeen] = field(default_factory=list)
    evaluations: float = 0.0
    numpy: dict[str, list[float]] = field(default_factory=dict)  # why -> count, nanoseconds
    fallbacks: dict[tuple[str, str], int] = field(default_factory=dict)
    copies: dict[bool, Copied] = field(default_factory=dict)
    builds: list[Build] = field(default_factory=list)
    has_masks: bool = False  # it selects elements by a mask
    held_nbytes: int = 0  # at the peak of memory

    @property
    def host_ns(self) -> int:
        """Time of the host."""
        return sum(self.host.values())

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to say of it."""
        return not (
            self.host or self.kernels or self.numpy or self.fallbacks or self.evaluations
            or self.copies or self.held_nbytes
        )  # fmt: skip


@mutable
class File:
    """A file of the program, with all of its lines."""

    path: str
    lines: list[Line]


@dataclass(frozen=True)
class Circumstances:
    """What the report says beside what was collected.

    outcome: how the program has ended; empty where it came to its end.
    unused: why nothing of the program used clfuse; empty where something did.
    copy_rate: bytes a second that a copy on the device reads and writes, together.
    texts: the sources of what is in no file.
    titles: how files are called that are none of the user's by name: cells of notebooks.
    """

    command: str
    script: str
    outcome: str = ""
    unused: str = ""
    copy_rate: float | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)

    def title(self, path: str) -> str:
        """How a file is called beside a line's number."""
        return self.titles.get(path) or path.rpartition("/")[2]


@mutable
class Summary:
    """All that the page says; times in nanoseconds.

    places (list of (str, int)): number of a statement, as the collector has it -> file and line.
    peak: place in `collector.memory` where memory was largest.
    """

    circumstances: Circumstances
    collector: Collector
    files: list[File]
    kernels: list[KernelSeen]
    of_entry: dict[Entry, KernelSeen]
    counted: dict[str, int]
    peak: int

    @property
    def elapsed_ns(self) -> int:
        """How long the program ran."""
        return self.collector.end_ns - self.collector.start_ns

    @property
    def device_ns(self) -> float:
        """Time of all kernels."""
        return sum([kernel.elapsed_ns for kernel in self.kernels if not kernel.is_host])

    def host(self) -> dict[str, int]:
        """What the program's thread has spent with what (`places.STATES`), the longest first."""
        found: dict[str, int] = {}
        for (_, state), elapsed in self.collector.sampler.elapsed.items():
            found[state] = found.get(state, 0) + elapsed
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def went(self) -> str:
        """The same in words, without what took less than a hundredth."""
        host = self.host()
        total = sum(host.values())
        return "; ".join([
            f"{STATES[state]} {time_of(elapsed)} ({100 * elapsed / total:.0f}%)"
            for state, elapsed in host.items() if elapsed >= total / 100 > 0
        ])  # fmt: skip

    def place(self, line: int) -> tuple[str, int] | None:
        """File and line of a number of the collector's."""
        return None if line == NOWHERE else self.collector.places.known[line]

    def line(self, place: tuple[str, int]) -> Line | None:
        """The line at a place."""
        for each in self.files:
            if each.path == place[0] and 0 < place[1] <= len(each.lines):
                return each.lines[place[1] - 1]
        return None

    def all_lines(self) -> list[tuple[File, Line]]:
        """Every line of every file."""
        return [(each, line) for each in self.files for line in each.lines]


def _entries(collector: Collector) -> list[Entry]:
    found = [entry for plan in collector.plans for each in plan.entries.values() for entry in each]
    return [entry for entry in [*found, *collector.others.values()] if entry.count]


def _kernels(
    collector: Collector, places: list[tuple[str, int]]
) -> tuple[list[KernelSeen], dict[Entry, KernelSeen]]:
    """What ran, the longest first; entries of the same name and lines together."""
    found: dict[Any, KernelSeen] = {}
    of_entry: dict[Entry, KernelSeen] = {}
    for entry in _entries(collector):
        shares = {places[n]: part for n, part in entry.shares.items() if n != NOWHERE}
        key = entry.name, frozenset(shares), entry.is_host
        kernel = found.get(key)
        if kernel is None:
            kernel = found[key] = KernelSeen(0, entry.name, shares, is_host=entry.is_host)
        kernel.count += entry.count
        kernel.elapsed_ns += entry.total_ns
        kernel.nbytes += entry.nbytes * entry.count
        if entry.plan >= 0 and entry.plan not in kernel.plans:
            kernel.plans.append(entry.plan)
        of_entry[entry] = kernel
    kernels = sorted(found.values(), key=lambda kernel: -kernel.elapsed_ns)
    for number, kernel in enumerate(kernels):
        kernel.number = number
    return kernels, of_entry


def _files(collector: Collector, circumstances: Circumstances) -> dict[str, File]:
    """The script, and what else of the program was met, in that order."""
    script = circumstances.script
    paths = dict.fromkeys([script, *[path for path, _ in collector.places.known]])
    files = {}
    for path in paths:
        text = circumstances.texts.get(path)
        texts = linecache.getlines(path) if text is None else text.splitlines()
        lines = [Line(number, each.rstrip("\r\n")) for number, each in enumerate(texts, 1)]
        files[path] = File(path, lines)
    return files


def summarized(collector: Collector, circumstances: Circumstances) -> Summary:
    """What a collector has seen, after its end."""
    places = collector.places.known
    files = _files(collector, circumstances)
    kernels, of_entry = _kernels(collector, places)

    def line_of(number: int) -> Line | None:
        if number == NOWHERE:
            return None
        path, line = places[number]
        lines = files[path].lines
        return lines[line - 1] if 0 < line <= len(lines) else None

    for (number, state), elapsed in collector.sampler.elapsed.items():
        line = line_of(number)
        if line is not None:
            line.host[state] = line.host.get(state, 0) + elapsed
    for kernel in kernels:
        for (path, number), part in kernel.shares.items():
            if not 0 < number <= len(files[path].lines):
                continue
            line = files[path].lines[number - 1]
            line.kernels.append(kernel)
            if not kernel.is_host:
                line.device_ns += kernel.elapsed_ns * part
                line.nbytes += kernel.nbytes * part
                line.launches += kernel.count
    for number, count in collector.evaluations.items():
        if line := line_of(number):
            line.evaluations += count
    for (number, why), (times, elapsed_ns) in collector.numpy.items():
        if line := line_of(number):
            found = line.numpy.setdefault(why, [0.0, 0.0])
            found[0] += times
            found[1] += elapsed_ns
    for (number, name, reason), calls in collector.fallbacks.items():
        if line := line_of(number):
            line.fallbacks[name, reason] = line.fallbacks.get((name, reason), 0) + calls
    for (number, direction), copied in collector.copies_of.items():
        if line := line_of(number):
            line.copies[direction] = copied
    for number in collector.selecting:
        if line := line_of(number):
            line.has_masks = True
    for build in collector.builds:
        if line := line_of(build.line):
            line.builds.append(build)
    memory = collector.memory
    peak = max(range(len(memory)), key=lambda place: memory[place][1], default=0)
    owned = [place for place, each in enumerate(memory) if each[2]]
    if owned:
        # Who held it is looked up after an evaluation: that of the largest of those moments.
        peak = max(owned, key=lambda place: memory[place][1])
        for number, nbytes in (memory[peak][2] or {}).items():
            if line := line_of(number):
                line.held_nbytes += nbytes
    counted = {
        name: value - collector.before.get(name, 0)
        for name, value in collector.after.items()
        if not name.startswith("device_bytes")
    }
    return Summary(
        circumstances, collector, _in_use(files, circumstances.script), kernels, of_entry,
        counted, peak,
    )  # fmt: skip


def _in_use(files: dict[str, File], script: str) -> list[File]:
    """The script, and the files with lines of which there is something to say."""

    def is_busy(file: File) -> bool:
        return any(
            line.kernels or line.numpy or line.fallbacks or line.evaluations
            or line.host_ns > LEAST_NS
            for line in file.lines
        )  # fmt: skip

    return [file for path, file in files.items() if path == script or is_busy(file)]


LEAST_NS = 20_000_000
"""Of the host, for a file of the program to be shown that did nothing else."""


def python_ns(line: Line) -> int:
    """Time of Python and of small arrays."""
    return line.host.get(PYTHON, 0)


def operations_of_step(step: list[Launch], plan: PlanSeen, position: list[int]) -> list[str]:
    """Names of the operations of a step, in order of the program."""
    names = []
    for each in position:
        op = plan.items[each][0]
        if op is not None and len(plan.items[each]) > 3:
            names.append(op.name)
    return names or [type(step[0]).__name__.lower()]
