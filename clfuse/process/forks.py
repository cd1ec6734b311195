"""What is done before a process is forked, ahead of what other modules do then.

Python calls the functions of the module that was imported last first. `logging` takes its lock
there: whoever then waits for a thread that imports a package, which makes a logger, waits for ever.
So `go_first` is called after such modules were imported.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Final

__all__ = ["before", "go_first"]

before: Final[list[Callable[[], None]]] = []
"""Functions that are called in this order, once a fork."""

_begun: Final[set[int]] = set()
"""Threads that fork."""


def _call() -> None:
    thread = threading.get_ident()
    if thread not in _begun:
        _begun.add(thread)
        for function in before:
            function()


def _end() -> None:
    _begun.discard(threading.get_ident())


def go_first() -> None:
    """Have the functions be called before those of all modules that were imported until now."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_call)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_call, after_in_parent=_end, after_in_child=_begun.clear)
