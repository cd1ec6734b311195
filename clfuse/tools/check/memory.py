"""Leaks: memory, open files and threads while varied programs run again and again.

This is the part of the check that shows whether evaluations leave something behind.
"""

from __future__ import annotations

import gc
import importlib
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from .finding import Budget, Finding

__all__ = ["check"]

WARM: Final = 0.4
"""The part of the time after which nothing may grow any more: plans, programs and pools are there
then."""

LEAST_ROUNDS: Final = 3
"""Rounds before that, however long they take."""

MOST_GROWTH_NBYTES: Final = 6 << 20
"""Of the process, from then on. Allocators keep what is in pieces; 1,000 bytes an evaluation would
be more."""

MOST_HANDLES: Final = 4
"""Open files and threads that others in the process may begin to use meanwhile."""


def _in_place(xp: Any, size: int) -> Any:
    x = xp.arange(float(size))
    x[1:] += x[:-1]
    x *= 2
    return x.sum()


def _raises(xp: Any, size: int) -> Any:
    try:
        return xp.zeros(size) + xp.zeros(size + 1)
    except ValueError:
        return xp.zeros(3)


PROGRAMS: Final[Sequence[Callable[[Any, int], Any]]] = (
    lambda xp, n: (xp.arange(n) * 2 + 1).sum(),
    lambda xp, n: xp.sqrt(xp.ones((n % 97 + 2, 40))).mean(axis=0),
    _in_place,
    lambda xp, n: xp.asarray(np.arange(n, dtype="f4"))[::-1].cumsum(),
    lambda xp, n: xp.ones((30, 30)) @ xp.ones((30, 30)),
    lambda xp, n: xp.sort(xp.random.random(n)),
    lambda xp, n: xp.where(xp.arange(n) % 3 == 0, 1.0, 2.0)[5:],
    _raises,
)


def resident_nbytes() -> int | None:
    """Of this process, now; None where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def handles() -> int:
    """Open files and threads."""
    try:
        files = len(os.listdir("/proc/self/fd"))
    except OSError:
        files = 0
    return files + threading.active_count()


def _round(xp: Any, number: int) -> int:
    """Every program once, on the host, on the device, and as it comes; how many evaluations."""
    size = 100 + number % 50
    for changes in ({"host_us": 0, "build_after_ms": 0}, {"host_us": 1_000_000}, {}):
        with xp.config.override(**changes):
            for program in PROGRAMS:
                np.asarray(program(xp, size))
    return 3 * len(PROGRAMS)


def check(budget: Budget) -> Finding:
    """Rounds of the programs until the time is spent."""
    xp = importlib.import_module("clfuse")
    finding, count, rounds = Finding(), 0, 0

    def run(share: float) -> tuple[int | None, int, int]:
        """Rounds until `share` of the time is spent; what is in use then."""
        nonlocal count, rounds
        until = Budget(budget.seconds * share, begin=budget.begin)
        least = rounds + LEAST_ROUNDS
        while not until.is_spent or rounds < least:
            count += _round(xp, rounds)
            rounds += 1
            budget.tell(f"{count} evaluations")
        gc.collect()
        return resident_nbytes(), handles(), xp.stats()["device_bytes_now"]

    before, files, on_device = run(WARM)
    measured = count
    middle, _, _ = run((1 + WARM) / 2)
    after, files_after, on_device_after = run(1)
    measured = count - measured
    finding.what = f"{measured} evaluations"
    if before is None or middle is None or after is None:
        finding.left_out = "the system does not say how much memory a process has"
    else:
        # What is left behind grows all the time; pools and a driver's threads grow once.
        grown = 2 * min(middle - before, after - middle)
        finding.what += f", {max(after - before, 0) / 2**20:.1f} MiB more memory"
        if grown > MOST_GROWTH_NBYTES:
            finding.problems.append(
                f"the process grew by {(after - before) / 2**20:.1f} MiB in {measured} evaluations"
                f" that leave nothing; {MOST_GROWTH_NBYTES / 2**20:.0f} MiB were to be expected"
            )
    if on_device_after > on_device:
        finding.problems.append(
            f"{on_device_after - on_device} bytes more of the device's memory are in use"
        )
    if files_after - files > MOST_HANDLES:
        finding.problems.append(f"{files_after - files} more open files and threads")
    return finding
