"""Calls of the driver that fail: the right value or an error that says so, and work that goes on
afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse import config
from clfuse.counters import counters
from clfuse.errors import AllocationError, DeviceError, KernelBuildError
from clfuse.evaluate import forget_plans
from clfuse.runtime import buffers, launch, memory
from clfuse.runtime import device as devices
from clfuse.runtime.device import Device
from tests import driver_faults
from tests.driver_faults import failing
from tests.own_memory import own_memory

pytestmark = pytest.mark.clfuse_only

#: Elements whose bytes are staged when they go up.
N = 50_000

NO_MEMORY, RESOURCES, QUEUE, OWN = -4, -5, -36, -9999


def fresh(known: Device) -> Device:
    """Another device for the same hardware, with a context of its own."""
    inline = known.inline and type(known.inline)(known.inline.handle)
    return Device(known.handle, known.handle.platform, known.index, inline)


@pytest.fixture
def victim(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """A device that may be lost: the other tests' is another one."""
    original = devices.get_device()
    known = [fresh(each) if each is original else each for each in devices.listed()]
    monkeypatch.setattr(devices, "_listed", known)
    monkeypatch.setattr(devices, "_defaults", {})
    monkeypatch.setattr(devices, "_chosen", None)
    forget_plans()
    with config.override(host_us=0, build_after_ms=0, fallback="allow"):
        yield cf.set_device(original.index)
    forget_plans()
    for each in known:
        if each.index == original.index and not each.lost:
            each.finish()


# --- programs -------------------------------------------------------------------------------------


def data(number: int) -> Any:
    return np.random.default_rng(number).random(N)


def fused(m: Any) -> list[Any]:
    """Uploads, two kernels, downloads."""
    x, y = m.asarray(data(1)), m.asarray(data(2))
    z = m.sqrt(x * x + y * y) * 3 - x
    return [z, z.sum() > N, (z > 1).sum()]


def updated(m: Any) -> list[Any]:
    """A loop that is known from its second round on; what is written is read again."""
    x = m.asarray(data(3))
    for _ in range(8):
        x[1:] += x[:-1] * 0.5
        x *= 0.75
        float(x[7])
    return [x]


def short(m: Any) -> list[Any]:
    """What PoCL runs in the calling thread."""
    x = m.asarray(data(9)[:300])
    for _ in range(8):
        x *= 0.5
        x[1:] += x[:-1]
        float(x[7])
    return [x]


def replayed(m: Any) -> list[Any]:
    def step(x: Any, y: Any) -> Any:
        return m.maximum(x * 0.5 + y, y * y)

    step = cf.jit(step) if m is cf else step
    x, y = m.asarray(data(4)), m.asarray(data(5))
    for _ in range(4):
        x = step(x, y)
    return [x]


@cf.kernel
def rotate(i, x, y, c):
    x[i], y[i] = c * x[i] - y[i], c * y[i] + x[i]


def rotated(m: Any) -> list[Any]:
    """Kernels in Python, each looked at: they are launched ahead in the end."""
    x, y = m.asarray(data(6)), m.asarray(data(7))
    for _ in range(14):
        if m is cf:
            rotate(N, x, y, 0.5)
            cf.evaluate(x, y)
        else:
            x, y = 0.5 * x - y, 0.5 * y + x
    return [x, y]


def moved(m: Any) -> list[Any]:
    """Uploads and downloads that wait, copies, and a call of NumPy's."""
    x = m.asarray(np.tile(data(8), 6))
    y = x.copy()
    y += 1
    return [y[::-1], m.sort(x - 1), x]


PROGRAMS: list[Callable[[Any], list[Any]]] = [fused, updated, short, replayed, rotated, moved]


def run(work: Callable[[Any], list[Any]]) -> list[Any]:
    return [np.asarray(cf.asnumpy(value)) for value in work(cf)]


def assert_right(work: Callable[[Any], list[Any]], results: list[Any]) -> None:
    for actual, expected in zip(results, work(np), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_the_programs_of_this_file_are_run_by_kernels(victim: Device) -> None:
    for work in PROGRAMS:
        before = counters["kernels_launched"]
        assert_right(work, run(work))
        assert counters["kernels_launched"] > before, work.__name__


# --- every call of a driver -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["in place", "mapped", "the driver's memory"])
@pytest.mark.parametrize("work", PROGRAMS, ids=lambda work: work.__name__)
@pytest.mark.parametrize("name", driver_faults.FUNCTIONS)
def test_a_call_that_fails_gives_the_right_value_or_an_error(
    victim: Device, name: str, work: Callable[[Any], list[Any]], kind: str
) -> None:
    kept = on_the_host()
    for status in (RESOURCES, QUEUE, OWN, NO_MEMORY):
        for times in (1, None):
            device = cf.set_device(victim.index)
            with ExitStack() as stack:
                if kind == "the driver's memory":
                    stack.enter_context(own_memory(device))
                elif kind == "mapped":
                    memory.pool_of(device).in_place = False
                forget_plans()
                calls = driver_faults.calls_of(device, name, lambda: run(work))
                if not calls:
                    return
                for first in {0, calls - 1} if times else {calls // 2}:
                    if device.lost:
                        break
                    forget_plans()
                    case = (name, status, times, first)
                    refusal = None
                    try:
                        with failing(device, name, status, first=first, times=times):
                            results = run(work)
                    except (DeviceError, AllocationError, KernelBuildError) as error:
                        refusal = error
                    if refusal is None:
                        assert_right(work, results)
                    else:
                        assert isinstance(refusal, DeviceError) == device.lost, case
                        is_about_building = isinstance(refusal, KernelBuildError)
                        assert not is_about_building or name == "clBuildProgram", case
                    assert_array_is_there(kept)
                    if not device.lost:
                        assert_right(work, run(work))
            if device.lost:
                with pytest.raises(DeviceError, match="was lost"):
                    launch.finish(device)
                assert cf.set_device(victim.index) is not device
            assert_right(work, run(work))
            assert_array_is_there(kept)
            assert_array_is_there(kept * 2 / 2)


def on_the_host() -> Any:
    """An array that waits on the host until a kernel needs it."""
    with config.override(host_us=50):
        made = cf.asarray(np.arange(100.0))
    assert type(made._storage.node.buffer) is buffers.HostBuffer
    return made


def assert_array_is_there(array: Any) -> None:
    np.testing.assert_array_equal(cf.asnumpy(array), np.arange(100.0))
