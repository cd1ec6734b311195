"""The end of the process: other threads stop computing before drivers are unloaded.

Daemon threads run until the interpreter is gone. One that comes back from a driver's call then is
ended within it, and C++ calls `terminate` (CPython issue 87135); one that begins a call while the
driver's library is taken apart crashes in it. So when all programs' own functions at exit have run,
the thread that ends the interpreter keeps the others from all that needs a driver, and waits until
none of them is in one. They wait until the process is gone. One that is in a driver all the same is
left there (`process.left_calls`).
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from clfuse.errors import DeviceError
from clfuse.process import locks

from . import selection
from .device import Device

if TYPE_CHECKING:
    import pyopencl as cl

__all__ = ["let_others_rest"]

LONGEST_S: Final = 2.0
"""Seconds that an evaluation of another thread is waited for; then it is left."""

REST_S: Final = 0.02
"""Seconds in which a thread that is not at rest gets somewhere else: it has no driver to wait for,
all devices have finished."""

ALIKE: Final = 3
"""How often in a row all threads must be where they were: one that is behind others in the queue
for the interpreter's lock moves late."""

MOST_LOOKS: Final = 8
"""A thread that has nothing to do with devices may go on for ever: one that imports a large
package, one that collects garbage."""

_ending: Final[list[int]] = []
"""The thread that ends the interpreter."""

_of_evaluations: Final[list[Any]] = []
"""The lock that evaluations take."""

_never: Final = threading.Lock()
"""No `locks.make`: nobody takes it twice."""


def _rest() -> None:
    """Wait for the end of the process, but for the thread that brings it, with no lock held."""
    if _ending and threading.get_ident() != _ending[0]:
        for lock in (*_of_evaluations, *locks.made):
            with suppress(RuntimeError):  # it is not, or not any more, this thread's
                while True:
                    lock.release()
        _never.acquire()


class _EndingDevice(Device):
    """A device that is there for one thread alone."""

    @property
    def context(self) -> cl.Context:
        _rest()
        return super().context

    @property
    def queue(self) -> cl.CommandQueue:
        _rest()
        return super().queue

    def finish(self) -> None:
        _rest()
        super().finish()


def _places() -> dict[int, tuple[Any, int]]:
    """Where other threads are. What is compiled has no frames: a thread in it is where it is called
    from."""
    own = threading.get_ident()
    return {
        thread: (frame.f_code, frame.f_lasti)
        for thread, frame in sys._current_frames().items()
        if thread != own
    }


def let_others_rest(lock: Any) -> None:
    """Keep all other threads from `lock`, which evaluations take, and from the devices."""
    if threading.active_count() == 1 or not selection.is_any_open():
        return
    from clfuse.process import left_calls

    left_calls.let_sleep()
    _never.acquire()
    _of_evaluations.append(lock)
    _ending.append(threading.get_ident())
    is_left = not lock.acquire(timeout=LONGEST_S)
    if is_left:
        left_calls.leave()
    opened = [candidate for candidate in selection.listed() if type(candidate) is Device]
    for candidate in opened:
        candidate.__class__ = _EndingDevice
    for candidate in opened:
        with suppress(DeviceError):
            candidate.finish()
    before, alike = _places(), 0
    for _ in range(MOST_LOOKS):
        if not before or alike == ALIKE:
            break
        time.sleep(REST_S)
        now = _places()
        alike = alike + 1 if now == before else 0
        before = now
    if is_left and not lock.acquire(blocking=False):
        # Who holds it is ended when it wants the interpreter's lock, and will not release it.
        lock._at_fork_reinit()
        lock.acquire()
