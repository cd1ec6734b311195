"""Destructors of memory cope with half-made objects of interrupted calls, and lose no interrupt."""

from __future__ import annotations

import gc
import sys
import threading
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse._core import loading
from clfuse.counters import counters
from clfuse.engine.evaluate import lock
from clfuse.ir.trace import GivenAway, _alive
from clfuse.runtime.context.pool import block_size
from clfuse.runtime.memory.blocks import Block, Counted
from clfuse.runtime.memory.buffers import _HostMemory, host_view
from clfuse.runtime.memory.sharing import _Shared

pytestmark = pytest.mark.clfuse_only


@pytest.fixture
def unraisable(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    found: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda about: found.append(about.exc_value))
    return found


@pytest.mark.parametrize("kind", [Block, Counted, _Shared, _HostMemory])
def test_an_object_that_was_half_made_goes_without_a_word(
    kind: type, unraisable: list[Any]
) -> None:
    before = counters["device_bytes_now"]
    made = kind.__new__(kind)
    del made
    assert unraisable == []
    assert counters["device_bytes_now"] == before


class Interrupted:
    """A pool without blocks, that is interrupted."""

    def __init__(self) -> None:
        self._bins: dict[int, list[Any]] = {}

    def give(self, block: Any, size: int) -> None:
        raise KeyboardInterrupt


@pytest.mark.skipif(loading.load() is None, reason="a destructor in Python loses interrupts")
def test_an_interrupt_of_a_destructor_comes_in_the_program(
    unraisable: list[Any],
) -> None:
    before = counters["device_bytes_now"]
    block = Block(Interrupted(), 100, object(), 128)  # type: ignore[arg-type]
    assert counters["device_bytes_now"] == before + 100
    went_on = []

    def let_go() -> None:
        nonlocal block
        del block
        for _ in range(10):
            went_on.append(1)

    with pytest.raises(KeyboardInterrupt):
        let_go()
    assert len(went_on) < 10
    assert unraisable == []
    assert counters["device_bytes_now"] == before


class Signals:
    """Interrupts a destructor at each of its calls and at its beginning, one after the other."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.count = 0

    def __call__(self, frame: Any, event: str, argument: Any) -> Any:
        if event != "call":
            return None
        if frame.f_code.co_name != "__del__" and (
            frame.f_back is None or frame.f_back.f_code.co_name != "__del__"
        ):
            return None
        self.count += 1
        if self.count == self.at:
            raise KeyboardInterrupt
        return None


def let_go(held: list[Any], at: int) -> bool:
    """Whether an interrupt at this place of the destructors came where the program goes on."""
    signals = Signals(at)
    try:
        sys.settrace(signals)
        held.clear()
        sys.settrace(None)
        for _ in range(1000):
            pass
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    assert signals.count < at, "an interrupt was lost"
    return False


@pytest.mark.skipif(loading.load() is None, reason="a destructor in Python loses interrupts")
@pytest.mark.parametrize("kind", ["shared", "viewed", "given away"])
def test_a_destructor_comes_to_its_end_whatever_interrupts_it(
    kind: str, unraisable: list[Any]
) -> None:
    if kind != "given away" and not cf.get_device().traits.unified_memory:
        pytest.skip("the device has memory of its own: nobody shares it")

    def made() -> tuple[list[Any], Any]:
        if kind == "shared":
            array = np.arange(1000.0)
            x = cf.asarray(array, copy=False)
            return [x], None
        if kind == "given away":
            return [GivenAway("f", None)], None
        x = cf.arange(100_000.0) * 2
        cf.evaluate(x)
        buffer = x._storage.node.buffer
        return [host_view(buffer, np.dtype(float), x.shape)], buffer

    interrupted = 0
    for at in range(1, 9):
        gc.collect()
        before = counters["device_bytes_now"], _alive[0]
        held, buffer = made()
        interrupted += let_go(held, at)
        if buffer is not None:
            assert buffer.exported == 0
        del buffer
        gc.collect()
        assert (counters["device_bytes_now"], _alive[0]) == before
        assert unraisable == []
    assert interrupted


class Looking:
    """Looks at an array when the collector finds it."""

    def __init__(self, array: Any, begun: threading.Event) -> None:
        self.array, self.begun, self.itself = array, begun, self

    def __del__(self) -> None:
        self.begun.set()
        (self.array * 2).tolist()


def test_a_collection_where_memory_is_short_holds_no_lock(
    xp: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = xp.get_device()
    xp.evaluate(xp.zeros(3))
    pool, begun, made = device.pool, threading.Event(), []
    gc.collect()
    monkeypatch.setattr(gc, "isenabled", lambda: False)  # evaluations leave it off
    gc.disable()
    try:
        Looking(xp.arange(1000), begun)
        plain = type(pool)._make

        def make(self: Any, nbytes: int, size: int) -> Any:
            made.append(size)
            return None if len(made) == 1 else plain(self, nbytes, size)

        monkeypatch.setattr(type(pool), "_make", make)
        size = block_size(12_345)
        thread = threading.Thread(target=pool._take_fresh, args=(12_345, size), daemon=True)
        with lock:
            thread.start()
            assert begun.wait(60)
            assert device.lock.acquire(timeout=20)
            device.lock.release()
        thread.join(60)
        assert not thread.is_alive()
    finally:
        gc.enable()
