"""The report of the check: runs its parts, and writes what they have found.

Each part is a process: a driver that ends it, or does not come back, is what the check is to say.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, field
from importlib import metadata
from pathlib import Path
from queue import Empty, Queue
from typing import Any, Final

import numpy as np

from clfuse.dataclass import mutable

from .finding import Budget, Finding
from .part import PARTS
from .privacy import public

__all__ = ["PARTS", "Report", "apart", "check", "here"]

SHARES: Final = {
    "values": 0.25, "accuracy": 0.35, "faults": 0.15, "interrupts": 0.1, "memory": 0.15,
}  # fmt: skip
"""Of the time, of each part."""

PATIENCE: Final = 5.0
"""How many times its time a part may take: kernels that are built for the first time are counted in
it, but not broken off."""

LEAST_PATIENCE_S: Final = 120.0

MOST_LINES: Final = 30
"""Of what a process that failed has said."""


@mutable
class Report:
    """What was found.

    about: versions and the device: what -> text.
    findings: part -> its finding.
    seconds: part -> how long it took.
    """

    about: dict[str, str]
    findings: dict[str, Finding] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def is_right(self) -> bool:
        return not any(finding.problems for finding in self.findings.values())

    def lines(self) -> Iterator[str]:
        """The report as text, without what is private."""
        for name, text in self.about.items():
            yield public(f"{name:12} {text}")
        for name, finding in self.findings.items():
            verdict = "WRONG" if finding.problems else "ok" if finding.what else "left out"
            text = f"{name:12} {verdict:8} {self.seconds[name]:4.0f} s  {finding.what}"
            if finding.left_out:
                text += f" ({finding.left_out})" if finding.what else finding.left_out
            yield public(text)
        for name, finding in self.findings.items():
            for problem in finding.problems:
                yield public(f"\n{name}: {problem}")
        if self.is_right:
            yield "nothing wrong was found"
        else:
            yield "\nThis report holds no names and folders; please attach it to an issue."

    def to_json(self) -> str:
        """The same for programs."""
        facts = {
            "about": self.about,
            "right": self.is_right,
            "parts": {
                name: {**asdict(finding), "seconds": round(self.seconds[name], 1)}
                for name, finding in self.findings.items()
            },
        }
        return json.dumps(_public(facts), indent=1) + "\n"


def _public(facts: Any) -> Any:
    if isinstance(facts, str):
        return public(facts)
    if isinstance(facts, list):
        return [_public(each) for each in facts]
    if isinstance(facts, dict):
        return {name: _public(each) for name, each in facts.items()}
    return facts


def about(device: Any) -> dict[str, str]:
    """Versions of what takes part, and the device."""
    from clfuse._core import loading
    from clfuse.config import SETTINGS, settings

    def version(package: str) -> str:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            return "not installed as a package"

    loading.load()
    changed = [
        f"{row.env}={getattr(settings, row.name)}"
        for row in SETTINGS if getattr(settings, row.name) != row.default
    ]  # fmt: skip
    traits = device.traits
    return {
        "checked": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "clfuse": f"{version('clfuse')}, compiled part {loading.state()}",
        "numpy": np.__version__,
        "python": f"{platform.python_version()}, pyopencl {version('pyopencl')}",
        "machine": f"{platform.system()} {platform.release()}, {platform.machine()}, "
                   f"{os.cpu_count()} cores",
        "device": f"{device.name} ({device.platform_name})",
        "driver": f"{traits.driver}, {traits.version}"
                  + (f", simulated: {device.simulation}" if device.simulation else ""),
        "settings": " ".join(changed) or "none",
    }  # fmt: skip


Way = Callable[[str, Budget], Finding]


def here(name: str, budget: Budget) -> Finding:
    """Run a part in this process."""
    return PARTS[name](budget)


def apart(name: str, budget: Budget) -> Finding:
    """Run a part in another process."""
    command = [sys.executable, "-W", "ignore", "-m", "clfuse.tools.check.part", name,
               str(budget.seconds), str(budget.seed)]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               encoding="utf-8", errors="replace", env=_environment())  # fmt: skip
    lines: Queue[str | None] = Queue()
    said: list[str] = []
    readers = [
        threading.Thread(target=_read, args=(process.stdout, lines.put), daemon=True),
        threading.Thread(target=_read, args=(process.stderr, said.append), daemon=True),
    ]
    for reader in readers:
        reader.start()
    end = time.monotonic() + max(PATIENCE * budget.seconds, LEAST_PATIENCE_S)
    finding: Finding | None = None
    try:
        while readers[0].is_alive() or not lines.empty():
            try:
                line = lines.get(timeout=0.2)
            except Empty:
                if time.monotonic() > end:
                    process.kill()
                    return Finding(problems=[
                        f"the process did not come back in {end - budget.begin:.0f} s"
                    ])  # fmt: skip
                continue
            facts = _facts(line)
            if "progress" in facts:
                budget.tell(str(facts["progress"]))
            elif "finding" in facts:
                finding = Finding(**facts["finding"])
    finally:
        if process.poll() is None and finding is None:
            process.kill()
        status = process.wait()
        for reader in readers:
            reader.join(5)
    if status == 0 and finding is not None:
        return finding
    problem = f"the process ended with {_status(status)}" + (
        ", after its results" if finding is not None else "")
    finding = finding or Finding()
    finding.problems.append("\n    ".join([problem, *said[-MOST_LINES:]]))
    return finding


def _read(stream: Any, take: Callable[[str], None]) -> None:
    with stream:
        for line in stream:
            take(line.rstrip("\n"))


def _facts(line: str | None) -> dict[str, Any]:
    """What a line of a part says; drivers write to the standard output, too."""
    try:
        found = json.loads(line or "")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _status(status: int) -> str:
    if status >= 0:
        return f"exit code {status}"
    try:
        return f"signal {signal.Signals(-status).name}"
    except ValueError:
        return f"signal {-status}"


def _environment() -> dict[str, str]:
    """The process finds the same clfuse, wherever it is started."""
    folder = str(Path(__file__).parents[3])
    paths = [folder, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONFAULTHANDLER": "1"}


def check(
    device: Any, seconds: float, *, seed: int = 0, names: Sequence[str] = tuple(PARTS),
    way: Way | None = None, tell: Callable[[str], None] = lambda text: None,
) -> Report:  # fmt: skip
    """Run the parts, one after the other.

    device (Device): the one that is used; processes select it by ``CLFUSE_DEVICE``.
    seconds: for all of them; the first build of each kernel comes on top.
    seed: of what is drawn.
    names: which parts.
    way: `apart`, which is the default, or `here`.
    tell: is told how far it is.
    """
    report = Report(about(device))
    total = sum(SHARES[name] for name in names)
    for name in names:
        def told(text: str, name: str = name) -> None:
            tell(f"{name}: {text}")

        told("starting")
        budget = Budget(seconds * SHARES[name] / total, seed, told)
        report.findings[name] = (way or apart)(name, budget)
        report.seconds[name] = time.monotonic() - budget.begin
    tell("")
    return report
