"""Fixtures of the tests of the runtime: the device, a kernel on it, its queue held up."""

from __future__ import annotations

import numpy as np
import pytest

from clfuse.runtime import buffers, launch, program
from clfuse.runtime import device as devices
from tests.queued import AXPY, AXPY_ARGUMENTS, Gate


@pytest.fixture
def device():
    return devices.get_device()


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
