"""Background: kernels are built by a thread of their own while NumPy computes.

    round   1 2 3 ...       NumPy
            4               the structure has earned its kernels: planned, rendered, begun to build
            5 6 ... 19      NumPy; the thread waits for the compiler
            20 ...          kernels

Compilers do not hold Python's lock, so that NumPy is as fast meanwhile. Planning and rendering do,
and two threads that take the lock from each other take several times as long as one after the
other: they stay where they are. What plans is imported here, though, and the device is opened: that
takes a third of a second in a process, a second where a driver's caches are empty.

What fails in the thread is tried again by whoever needs it, who gets the error. The thread ends
when nothing is left to do.

The end of the process waits for the thread for a moment only (`SOON_S`). A call of the driver that
takes longer is left behind (`process.left_calls`); then NumPy computes what is looked at
later, as the thread may hold locks that building and opening the device need.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

from clfuse.config import settings
from clfuse.process import locks

if TYPE_CHECKING:
    from clfuse.runtime.devices.device import Device

__all__ = [
    "Work", "begin", "end", "finish", "is_left", "is_possible", "is_prepared", "let_collect",
    "prepare", "wait_for",
]  # fmt: skip

IMPORTED: Final = ("clfuse.runtime.drivers.opencl", "clfuse.engine.executable")
"""What the first plan of a process needs, and NumPy does not."""

LONGEST_S: Final = 60.0
"""Seconds that a fork waits for the compiler, and the end of a process that cannot leave it."""

SOON_S: Final = 0.4
"""Seconds that the end of the process waits for the compiler: most kernels take it less."""

SHORTEST_S: Final = 0.0005

LONGEST_STEP_S: Final = 0.02
"""Of the steps in which somebody waits for the compiler."""


class Work:
    """Functions that are called in the thread, one after the other, until one fails; and what is
    called when that is done."""

    __slots__ = ("_calls", "_then", "done", "is_done", "total")

    def __init__(
        self, calls: Sequence[Callable[[], object]], then: Callable[[], object] | None
    ) -> None:
        self._calls = calls
        self._then = then
        self.done, self.total = 0, len(calls)
        self.is_done = False

    def run(self) -> None:
        try:
            for call in self._calls:
                if _ended:
                    break
                call()
                self.done += 1
        except Exception:  # noqa: BLE001 (who needs it tries again, and gets the error)
            pass
        finally:
            self._calls = ()
            self.is_done = True
            if self._then is not None:
                self._then()


_lock: Final = locks.make()
_waiting: Final[deque[Work]] = deque()
_thread: Final[list[threading.Thread]] = []
_ended: Final[list[bool]] = []
_left: Final[list[bool]] = []
_preparing: Final[list[Work]] = []


class _Collector:
    """Python's collector of garbage: it rests while the thread works.

    Otherwise it would run destructors there. One that looks at an array would wait for the lock of
    evaluations, which a thread may hold that waits for this one.
    """

    def __init__(self) -> None:
        self.is_wanted = False
        self._working = 0  # threads: a destructor may have begun another one

    @property
    def is_paused(self) -> bool:
        return self._working > 0

    def pause(self) -> None:
        with _lock:
            if not self._working:
                self.is_wanted = gc.isenabled()
            self._working += 1
            gc.disable()

    def go_on(self) -> None:
        with _lock:
            self._working -= 1
            if not self._working and self.is_wanted:
                gc.enable()

    def begin_anew(self) -> None:
        """In a forked process, where no thread works."""
        if self._working:
            self._working = 0
            if self.is_wanted:
                gc.enable()


_collector: Final = _Collector()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_collector.begin_anew)


def let_collect() -> None:
    """``gc.enable()``, now or when the thread has nothing to do."""
    _collector.is_wanted = True
    if not _collector.is_paused:
        gc.enable()


def is_possible() -> bool:
    """Whether the thread may be used: there is a core for it, and nothing is to be shown at the
    moment when it happens."""
    if _ended or settings.debug or settings.background == "off":
        return False
    return settings.background == "on" or _cores() > 1


def begin(calls: Sequence[Callable[[], object]], then: Callable[[], object] | None = None) -> Work:
    """Begin to call functions in the thread, and `then` another one; none of them reads an
    array."""
    work = Work(calls, then)
    with _lock:
        _waiting.append(work)
        if not any(thread.is_alive() for thread in _thread):
            thread = threading.Thread(target=_work, name="clfuse builds", daemon=True)
            thread.start()  # before it is noted: an interrupt must not leave one that never runs
            # One that a destructor or a signal's handler has begun meanwhile may be there.
            _thread[:] = [*filter(threading.Thread.is_alive, _thread), thread]
    return work


def is_prepared(device: Device) -> bool:
    """Whether a plan can be made without an import, or opening the device, that takes long."""
    if _preparing:
        return _preparing[0].is_done
    return device.is_open and all(name in sys.modules for name in IMPORTED)


def prepare(device: Device, then: Callable[[], object]) -> Work:
    """Begin to import what the first plan needs, and to open the device, if nobody has; `then` is
    called at the end."""
    if not _preparing:
        from clfuse.runtime.drivers import threads

        threads.prepare()
        calls: list[Callable[[], object]] = [
            lambda: device.usable,
            *(functools.partial(import_module, name) for name in IMPORTED),
        ]
        _preparing.append(begin(calls, then))
    return _preparing[0]


def wait_for(work: Work) -> None:
    """Wait until work is done: an interrupt ends the wait, not the work."""
    from clfuse.progress import Bar

    pause = SHORTEST_S
    with Bar("building kernels", work.total, " kernels") as bar:
        while not work.is_done:
            time.sleep(pause)
            pause = min(pause * 1.1, LONGEST_STEP_S)
            bar.at(work.done)


def finish(longest_s: float = LONGEST_S) -> None:
    """Wait until nothing is left to do, but no longer than so many seconds."""
    with _lock:
        threads = list(_thread)
    for thread in threads:
        if thread.is_alive():
            thread.join(longest_s)


def end() -> None:
    """Begin nothing more, and end or leave what has begun: the process ends."""
    _ended.append(True)
    finish(SOON_S)
    if any(thread.is_alive() for thread in _thread):
        from clfuse.process import left_calls

        if left_calls.leave():
            _left.append(True)
        else:
            finish()


def is_left() -> bool:
    """Whether the process ends while the thread is in a call of the driver."""
    return bool(_left)


def _work() -> None:
    _collector.pause()
    while True:
        with _lock:
            if not _waiting:
                others = [each for each in _thread if each is not threading.current_thread()]
                _collector.go_on()  # from here on nothing is made here that it would look at
                _thread[:] = others
                return
            work = _waiting.popleft()
        try:
            work.run()
        except BaseException:
            _collector.go_on()
            raise


@functools.cache
def _cores() -> int:
    """Those that the process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
