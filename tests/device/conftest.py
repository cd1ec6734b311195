"""Fixtures of the tests of the runtime (the device, a kernel on it, its queue held up) and of
kernels in Python (both ways that a call may take)."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse.engine.evaluate import forget_plans
from clfuse.runtime.context import pool as pools
from clfuse.runtime.devices import selection
from clfuse.runtime.launches import launch, program
from clfuse.runtime.memory import buffers
from clfuse.target.traits import DeviceTraits, with_schedule
from clfuse.user_kernels.language.array_route.arrays import NotArrays
from clfuse.user_kernels.language.calls import call_cache, decorator
from tests.support.queued import AXPY, AXPY_ARGUMENTS, Gate


@pytest.fixture
def device():
    return selection.get_device()


@pytest.fixture(autouse=True)
def enough_memory() -> None:
    """Nobody remembers the calls for memory that failed in another test."""
    for pool in list(pools.all_pools):
        pool.relax()


@pytest.fixture
def uncollected() -> Iterator[None]:
    """For tests that count bytes: arrays that other tests have left in cycles go before it, and no
    garbage is collected while it runs."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def shares_memory(xp: ModuleType) -> bool:
    """Whether arrays on the device lie in the host's memory, where NumPy sees them, too."""
    return bool(xp is np or xp.get_device().traits.unified_memory)


@pytest.fixture
def shared_memory(shares_memory: bool) -> None:
    """For tests of what only such a device can do."""
    if not shares_memory:
        pytest.skip("the device has memory of its own: NumPy cannot see what lies there")


@pytest.fixture
def host_calculates(xp: ModuleType) -> None:
    """For tests of what NumPy calculates: for a device without double precision it does nothing,
    whose values would depend on the size of an array."""
    if xp is not np and not xp.get_device().traits.fp64:
        pytest.skip("NumPy calculates nothing for a device without double precision")


@pytest.fixture
def planned_for(xp: ModuleType) -> Iterator[Callable[..., None]]:
    """Plan until the test ends as for a device whose costs are written down: the counts of a cost
    model must not depend on where the test runs. ``planned_for("cpu", compute_units=8)``."""
    with ExitStack() as stack:

        def plan(schedule: str, **costs: Any) -> None:
            device = xp.get_device()
            plain = DeviceTraits()
            written = {name: getattr(plain, name) for name in COSTS} | costs
            traits = with_schedule(replace(device.untuned_traits, **written), schedule)
            forget_plans()
            stack.callback(forget_plans)
            stack.enter_context(device.trying(traits))

        yield plan


COSTS = (
    "compute_units", "vector_bytes", "light_vector_bytes", "local_nbytes", "max_work_group",
    "stream_nbytes", "operation_nbytes", "launch_nbytes", "inline_nbytes", "asks_ahead",
    "reads_past", "sorts_slowly", "gather_weight", "max_steps", "unrolled_weight",
)  # fmt: skip


@pytest.fixture
def axpy(device):
    return program.build(device, AXPY, "axpy", AXPY_ARGUMENTS)


@pytest.fixture
def gate(device):
    """The device's queue, held up until the test opens the gate."""
    buffers.upload(device, np.zeros(1))
    launch.finish(device)
    closed = Gate(device)
    yield closed
    closed.open()
    launch.finish(device)


class Refusing:
    """Stands for `Translation`: no kernel is array operations."""

    def __init__(self, *args: Any) -> None:
        raise NotArrays("the test asks for a launch")


@pytest.fixture(params=["arrays", "launch"])
def route(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Calls of kernels as array operations where they can be, or as launches. What kernels know of
    calls that came before, of another test's route, is forgotten."""
    for kernel in list(call_cache.made):
        kernel.known.clear()
        kernel._signatures.clear()
    if request.param == "launch":
        monkeypatch.setattr(decorator, "Translation", Refusing)
    return str(request.param)
