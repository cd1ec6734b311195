"""Interrupts while NumPy makes an array of ours its own: it drops what comes before `__array__`.

``numpy.asarray(x)`` asks for a buffer, then for `__array_interface__`, and calls `__array__` last.
An error of the first two only has it ask for the next, unless it is about memory. So an interrupt
of one of them is raised again by those that follow, for the same array.
"""

from __future__ import annotations

import threading
from typing import Any, Final

__all__ = ["ARRAY", "BUFFER", "INTERFACE", "again", "begin", "keep"]

BUFFER: Final = 0

INTERFACE: Final = 1

ARRAY: Final = 2

_kept: Final[list[tuple[int, int, int]]] = []
"""The thread, the array's `id`, and which way was interrupted; nothing as a rule."""


def begin() -> None:
    """NumPy asks for the first time: what was kept before is of somebody else."""
    if _kept:
        _kept.clear()


def keep(array: Any, way: int) -> None:
    """A way was interrupted."""
    _kept[:] = [(threading.get_ident(), id(array), way)]


def again(array: Any, way: int) -> None:
    """Raise KeyboardInterrupt where a way before this one was interrupted for the same array."""
    if not _kept:
        return
    thread, which, interrupted = _kept.pop()
    if (thread, which) == (threading.get_ident(), id(array)) and interrupted < way:
        if way != ARRAY:
            keep(array, way)
        raise KeyboardInterrupt
