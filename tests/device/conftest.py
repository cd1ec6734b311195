"""Fixtures of the tests of the runtime (the device, a kernel on it, its queue held up) and of
kernels in Python (both ways that a call may take)."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse.language import calls
from clfuse.language.arrays import NotArrays
from clfuse.runtime import buffers, launch, program
from clfuse.runtime import device as devices
from tests.queued import AXPY, AXPY_ARGUMENTS, Gate


@pytest.fixture
def device():
    return devices.get_device()


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
    """Calls of kernels as array operations where they can be, or as launches."""
    if request.param == "launch":
        monkeypatch.setattr(calls, "Translation", Refusing)
    return str(request.param)
