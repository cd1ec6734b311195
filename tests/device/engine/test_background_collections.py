"""The thread that builds kernels runs no destructors, which may wait for who waits for it."""

from __future__ import annotations

import gc
import time
from types import ModuleType
from typing import Any

import pytest

from clfuse.engine import background, evaluate

pytestmark = pytest.mark.clfuse_only


class Looking:
    """Looks at an array when it goes; the collector finds it."""

    def __init__(self, array: Any, seen: list[float]) -> None:
        self.array, self.seen, self.circle = array, seen, self

    def __del__(self) -> None:
        self.seen.append(float((self.array * 2).sum()))


def allocate() -> None:
    """As much as lets the collector look at everything, again and again."""
    kept: list[Any] = []
    for _ in range(20):
        kept.append([[] for _ in range(10_000)])


def test_destructors_do_not_run_in_the_thread(xp: ModuleType) -> None:
    x = xp.arange(1000.0) + 1
    seen: list[float] = []
    gc.collect()
    with evaluate.lock:
        Looking(x, seen)
        work = background.begin([allocate])
        end = time.monotonic() + 60
        while not work.is_done and time.monotonic() < end:
            time.sleep(0.01)
        is_done = work.is_done
    assert is_done
    background.finish()
    assert gc.isenabled()
    gc.collect()
    assert seen == [1_001_000]


def test_evaluations_beside_the_thread_leave_the_collector_on(xp: ModuleType) -> None:
    begun: list[bool] = []

    def wait() -> None:
        begun.append(True)
        while len(begun) < 2:
            time.sleep(0.001)

    background.begin([wait])
    while not begun:
        time.sleep(0.001)
    assert (xp.arange(1000.0) + 1).sum() == 500_500
    begun.append(True)
    background.finish()
    assert gc.isenabled()


def test_the_collector_goes_on_with_the_last_thread(xp: ModuleType) -> None:
    """A destructor within `begin` may have begun another one."""
    collector = background._Collector()
    for is_wanted in (True, False):
        (gc.enable if is_wanted else gc.disable)()
        try:
            collector.pause()
            collector.pause()
            collector.go_on()
            assert not gc.isenabled()
            collector.go_on()
            assert gc.isenabled() is is_wanted
            collector.pause()
            collector.begin_anew()
            assert gc.isenabled() is is_wanted
        finally:
            gc.enable()
