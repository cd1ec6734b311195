"""Waits for what takes long: they go in steps, and an interrupt ends them and not the work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clfuse
from clfuse import progress
from clfuse.runtime.context import waits
from clfuse.runtime.launches import launch
from clfuse.runtime.memory import blocks, buffers, parts
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
    monkeypatch.setattr(launch, "_expect", lambda program: None)  # nothing asks in the waits
    device.finish()
    monkeypatch.setattr(waits, "in_steps", None)
    with clfuse.config.override(host_us=0, build_after_ms=0), clfuse.device(device):
        for _ in range(8):
            x = clfuse.asarray(np.arange(1000.0)) * 2
            clfuse.evaluate(x)
    assert not waits.is_long()


def test_the_work_of_known_plans_adds_up(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever launches: the engine, a bound kernel, or what runs a known plan without Python."""
    monkeypatch.setattr(launch, "_expect", lambda program: None)
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
    for name in ("COPIED_AT_ONCE", "TOUCHED_AT_ONCE"):
        monkeypatch.setattr(blocks, name, 1 << 20)
    values = np.random.default_rng(1).random(500_001)
    for each in (values, values[::-1]):
        buffer = buffers.upload(device, each)
        np.testing.assert_array_equal(buffers.download(buffer, np.float64, each.shape), each)


def test_a_snapshot_is_interrupted_between_its_parts(
    device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits on the host, and what is copied to a device from another order."""

    class Interrupted(progress.Bar):
        def at(self, done: float = 0.0) -> None:
            if done:
                raise KeyboardInterrupt

    for name in ("COPIED_AT_ONCE", "TOUCHED_AT_ONCE"):
        monkeypatch.setattr(blocks, name, 1 << 20)
    monkeypatch.setattr(parts, "Bar", Interrupted)
    values = np.arange(1_000_000.0)
    for snapshot in (
        lambda: parts.fresh_copy(values, 1 << 20),
        lambda: buffers.hold(device, values),
        lambda: buffers.upload(device, values[::-1]),
    ):
        with pytest.raises(KeyboardInterrupt):
            snapshot()
    monkeypatch.undo()
    with clfuse.device(device):
        found = (clfuse.asarray(values) + 1).get()
    np.testing.assert_array_equal(found, np.arange(1_000_000.0) + 1)


def test_kernels_of_unknown_work_are_waited_for_in_steps(
    device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the same launch was quick twice; another number of work-items is another launch."""
    if device.simulation is not None:
        pytest.skip("a launch is waited for at once")
    reached = []
    reach = waits._reach
    monkeypatch.setattr(waits, "_reach", lambda marker: (reached.append(1), reach(marker)))
    monkeypatch.setattr(waits, "QUICK_S", 1e9)
    code = "__kernel void add(__global double *y) { y[get_global_id(0)] += 1; }"
    with clfuse.config.override(host_us=0, build_after_ms=0, inline=False), clfuse.device(device):
        add = clfuse.RawKernel(code, "add")
        y = clfuse.zeros(100)
        clfuse.evaluate(y)
        device.finish()
        counts = []
        for size in (100, 100, 100, 50):
            reached.clear()
            add((size,), (1,), (y,))
            clfuse.evaluate(y)
            counts.append(len(reached))
        assert counts == [1, 1, 0, 1]
        np.testing.assert_array_equal(y.get(), np.repeat([4.0, 3.0], 50))


LAST_WAIT = """
import sys
import numpy
import pyopencl as cl
import clfuse as np
from clfuse.runtime.context import waits
waits.QUIET_S = 0.0
x = np.asarray(numpy.arange(1000.0)) + np.zeros(1000)
np.evaluate(x)
np.synchronize()
device = np.get_device()
gate = cl.UserEvent(device.context)
cl.enqueue_barrier(device.queue, wait_for=[gate])
waits.add(2 * waits.LONG)
raise KeyboardInterrupt
"""


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_second_interrupt_ends_the_last_wait(tmp_path: Path) -> None:
    """The first has ended the program, and what it has launched still runs."""
    (tmp_path / "program.py").write_text(LAST_WAIT, encoding="utf-8")
    environment = {**os.environ, "CLFUSE_HOST_US": "0", "CLFUSE_BUILD_AFTER_MS": "0"}
    process = subprocess.Popen(
        [sys.executable, "program.py"], cwd=tmp_path, stderr=subprocess.PIPE, text=True,
        env=environment,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        lines = [process.stderr.readline()]
        while lines[-1] and "Ctrl-C ends it" not in lines[-1]:
            lines.append(process.stderr.readline())
        assert lines[-1], "".join(lines)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == -signal.SIGINT
    finally:
        process.kill()
        process.stderr.close()


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
