"""Waits for what takes long: they go in steps, and an interrupt ends them and not the work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import clfuse
from clfuse.runtime.context import waits
from clfuse.runtime.memory import buffers
from tests.support.queued import Gate

pytestmark = pytest.mark.clfuse_only


class Interrupt:
    """Stands for `time`: the first sleep is interrupted."""

    monotonic = staticmethod(time.monotonic)

    def __init__(self) -> None:
        self.sleeps = 0

    def sleep(self, seconds: float) -> None:
        self.sleeps += 1
        if self.sleeps == 1:
            raise KeyboardInterrupt
        time.sleep(seconds)


@pytest.fixture
def given(device: Any) -> Any:
    """An array on the device."""
    with clfuse.config.override(host_us=0, build_after_ms=0), clfuse.device(device):
        x = clfuse.asarray(np.arange(1000.0)) + clfuse.zeros(1000)
        clfuse.evaluate(x)
    return x


@pytest.fixture
def held(device: Any) -> Iterator[Gate]:
    """A queue that is held up, and in which there is much to do."""
    device.finish()
    found = Gate(device)
    waits.add(2 * waits.LONG)
    yield found
    found.open()
    device.finish()
    assert not waits.is_long()


WAITS: dict[str, Callable[[Any, Any], Any]] = {
    "finish": lambda device, x: device.finish(),
    "synchronize": lambda device, x: clfuse.synchronize(),
    "evaluate": lambda device, x: clfuse.evaluate(x),
    "get": lambda device, x: x.get(),
    "asarray": lambda device, x: np.asarray(x),
    "asarray of a part": lambda device, x: np.asarray(x[::2]),
    "array": lambda device, x: np.array(x, np.float32),
    "float": lambda device, x: float(x[3]),
    "upload": lambda device, x: buffers.upload(device, np.zeros(1 << 18)),
}


@pytest.mark.parametrize("name", WAITS)
def test_a_long_wait_is_interrupted(
    name: str, given: Any, held: Gate, device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = clfuse.config.override(host_us=0, build_after_ms=0, inline=False)
    with settings, clfuse.device(device):
        x = given * 2
        clfuse.evaluate(x, wait=False)
        clock = Interrupt()
        monkeypatch.setattr(waits, "time", clock)
        with pytest.raises(KeyboardInterrupt):
            WAITS[name](device, x)
        assert clock.sleeps == 1
        y = x + 1
        held.open()
        np.testing.assert_array_equal(y.get(), np.arange(1000.0) * 2 + 1)
        np.testing.assert_array_equal(x.get(), np.arange(1000.0) * 2)


def test_short_work_is_waited_for_by_the_driver(
    device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    device.finish()
    monkeypatch.setattr(waits, "in_steps", None)
    with clfuse.config.override(host_us=0, build_after_ms=0), clfuse.device(device):
        for _ in range(8):
            x = clfuse.asarray(np.arange(1000.0)) * 2
            clfuse.evaluate(x)
    assert not waits.is_long()


def test_the_work_of_known_plans_adds_up(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever launches: the engine, a bound kernel, or what runs a known plan without Python."""
    added = []
    with clfuse.config.override(host_us=0, build_after_ms=0, inline=False), clfuse.device(device):
        x = clfuse.asarray(np.arange(3e5))
        clfuse.evaluate(x * 2)
        total = waits._core.work_added if waits._core is not None else lambda: waits._added[0]
        for _ in range(8):
            y = x * 2
            clfuse.evaluate(y, wait=False)
            added.append(total())
            device.finish()
            assert total() == 0
    speed = 1 if device.traits.kind == "cpu" else 100
    assert added[0] >= 2 * 3e5 * 8 / speed
    assert added == [added[0]] * 8


def test_copies_go_in_parts(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers, "COPIED_AT_ONCE", 1 << 20)
    values = np.random.default_rng(1).random(500_001)
    buffer = buffers.upload(device, values)
    np.testing.assert_array_equal(buffers.download(buffer, np.float64, values.shape), values)


def test_a_loop_without_looks_waits_for_its_device(
    device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each way to run a plan: new plans, known ones, and those of `clfuse.jit`."""
    if device.simulation is not None:
        pytest.skip("a launch is waited for at once")
    step = clfuse.jit(lambda x: x * 0.5 + 1)
    with clfuse.config.override(host_us=0, build_after_ms=0, inline=False), clfuse.device(device):
        x = clfuse.asarray(np.arange(3e5))
        for run in (lambda: step(x), lambda: clfuse.evaluate(x * 2, wait=False)):
            for _ in range(8):
                run()
            device.finish()
            run()
            held = Gate(device)
            waits.add(waits.DEEP)
            run()  # the first marker, behind the gate
            waits.add(waits.DEEP)
            clock = Interrupt()
            monkeypatch.setattr(waits, "time", clock)
            with pytest.raises(KeyboardInterrupt):
                run()
            monkeypatch.undo()
            assert clock.sleeps == 1
            held.open()
            run()
            device.finish()
            assert not waits.is_deep()
        np.testing.assert_array_equal(step(x).get(), np.arange(3e5) * 0.5 + 1)
