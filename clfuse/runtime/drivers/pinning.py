"""Pinning of PoCL's threads: each on a core of its own.

Linux may wake two of PoCL's threads on one core and leave them there for milliseconds: every second
process takes 1.6 times as long then (3.1, two cores). Intel's runtime does not feel it, because the
thread that waits takes work, too.

PoCL binds thread number k to core number k where a variable of the environment says so when it
makes the threads. That is right where it has a thread for every core of the computer and the
process may use them all: threads that share a few cores of many, or that may not go where they are
told to, are left alone.

Source: http://portablecl.org/docs/html/env_variables.html
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["loader_environment"]

VARIABLE: Final = "POCL_AFFINITY"

COUNTS: Final = ("POCL_MAX_PTHREAD_COUNT", "POCL_CPU_MAX_CU_COUNT", "POCL_MAX_COMPUTE_UNITS")
"""What changes how many threads PoCL makes, in one version or another."""


@contextmanager
def loader_environment() -> Iterator[None]:
    """Have PoCL bind its threads, if it makes them in this block and the user has not said how."""
    if any(name in os.environ for name in (VARIABLE, *COUNTS)) or not _has_all_cores():
        yield
        return
    os.environ[VARIABLE] = "1"
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)


def _has_all_cores() -> bool:
    """Whether this process may run on every core of the computer, and these have no gaps."""
    try:
        allowed = os.sched_getaffinity(0)
    except (AttributeError, OSError):  # not Linux
        return False
    return allowed == set(range(os.cpu_count() or 0)) and len(allowed) == os.sysconf(
        "SC_NPROCESSORS_CONF"
    )
