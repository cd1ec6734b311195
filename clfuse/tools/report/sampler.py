"""The sampler: a thread that looks where the program is, up to 120 times a second."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from clfuse._core import loading

from .places import NOWHERE, PYTHON, WAIT, Places

__all__ = ["Sampler"]

INTERVAL_S: Final = 0.008
"""Between two looks, where these are cheap enough."""

MOST_SHARE: Final = 0.01
"""The part of the time that the looks may take: 20 to 150 us each, with the thread that is woken
and gets Python's lock. Where they take more, there are fewer."""

MOST_LOOKS: Final = 12_000
"""Stretches that are kept, a minute's looks at most; then the thread looks half as often."""

LONGEST_S: Final = 0.2
"""Between two looks, however long the program runs."""

_core: Final = loading.load()


class Sampler:
    """Looks at one thread.

    Parameters
    ----------
    places : Places
    tick : callable
        Called after each look, with the time in nanoseconds.
    asker : callable
        The line that has asked for values last.

    stretches (list of list): start and end in nanoseconds, line, and what the host did
        (`places.STATES`).
    elapsed (dict of (int, str) to int): (line, state) -> nanoseconds.
    """

    def __init__(
        self, places: Places, tick: Callable[[int], None], asker: Callable[[], int]
    ) -> None:
        self.stretches: list[list[Any]] = []
        self.elapsed: dict[tuple[int, str], int] = {}
        self._places = places
        self._tick = tick
        self._asker = asker
        self._waits_seen = 0  # of the time of all waits, what was seen as such
        self._ended = threading.Event()
        self._last_ns = 0
        self._watched = 0
        self._thread = threading.Thread(target=self._work, name="clfuse report", daemon=True)

    def start(self, thread: int) -> None:
        """Look at the thread of this number until `stop`."""
        self._watched = thread
        self._last_ns = time.perf_counter_ns()
        self._waits_seen = _waited_ns()
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._ended.set()
        if self._thread.is_alive():  # not so in a process that was forked
            self._thread.join()

    def _work(self) -> None:
        least_s = interval_s = INTERVAL_S
        mean_s = 0.0  # of the last looks; the first one is dear
        start_s = time.thread_time()
        while not self._ended.wait(interval_s):
            self._look()
            if len(self.stretches) > MOST_LOOKS and least_s < LONGEST_S:
                least_s *= 2
                self.stretches[:] = _halved(self.stretches)
            self._tick(self._last_ns)
            end_s = time.thread_time()
            mean_s += (end_s - start_s - mean_s) / 16
            start_s = end_s
            interval_s = max(least_s, min(mean_s / MOST_SHARE, LONGEST_S))

    def _look(self) -> None:
        # No name for a frame outlives this call: it would hold the program's arrays.
        key = self._places.look(sys._current_frames().get(self._watched))
        if key[1] == PYTHON and _core is not None and _core.is_waiting():
            key = key[0], WAIT
        now = time.perf_counter_ns()
        # Where kernels keep all cores busy, this thread gets one when they are done: it would see
        # no wait at all. What the waits that have ended took is known, and was before this look.
        unseen_ns = min(max(_waited_ns() - self._waits_seen, 0), now - self._last_ns)
        if key[1] == WAIT:
            self._waits_seen += now - self._last_ns
        elif unseen_ns:
            self._waits_seen += unseen_ns
            asker = self._asker()
            line = key[0] if asker == NOWHERE else asker
            self._note((line, WAIT), self._last_ns + unseen_ns)
        self._note(key, now)

    def _note(self, key: tuple[int, str], end_ns: int) -> None:
        """The time from the last look to this moment was for this."""
        self.elapsed[key] = self.elapsed.get(key, 0) + end_ns - self._last_ns
        last = self.stretches[-1] if self.stretches else None
        if last is not None and (last[2], last[3]) == key:
            last[1] = end_ns
        else:
            self.stretches.append([self._last_ns, end_ns, *key])
        self._last_ns = end_ns


def _waited_ns() -> int:
    """How long the waits for devices were that have ended."""
    waits = sys.modules.get("clfuse.runtime.context.waits")  # there, once a device is used
    return 0 if waits is None else waits.waited_ns()


def _halved(stretches: list[list[Any]]) -> list[list[Any]]:
    """Half as many: of two neighbours the longer one stands for both."""
    found = []
    for first in range(0, len(stretches) - 1, 2):
        one, two = stretches[first], stretches[first + 1]
        longer = one if one[1] - one[0] >= two[1] - two[0] else two
        found.append([one[0], two[1], *longer[2:]])
    return found
