"""Locks that a thread may take again, and that are free in a forked process.

Destructors, which the collector of garbage runs at any allocation, and handlers of signals run in
the midst of a thread that holds a lock. They may look at an array, and take the same lock. A fork
copies the locks that other threads hold, and none of these threads: nobody would release them.
"""

from __future__ import annotations

import os
import threading
from typing import Final
from weakref import WeakSet

__all__ = ["made", "make"]

made: Final[WeakSet[threading.RLock]] = WeakSet()
"""All locks that there are, but those whose comments say why they are others."""


def make() -> threading.RLock:
    """A lock."""
    lock = threading.RLock()
    made.add(lock)
    return lock


def _renew() -> None:
    """Release what threads have held that are not in this process."""
    for lock in list(made):
        if not lock._is_owned():  # type: ignore[attr-defined]
            lock._at_fork_reinit()  # type: ignore[attr-defined]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
