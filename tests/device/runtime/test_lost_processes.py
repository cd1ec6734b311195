"""Processes whose device is lost: they end and fork as any other; on a GPU a kernel that really
faults is named, and work goes on."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from clfuse.runtime.devices import selection

pytestmark = pytest.mark.clfuse_only

# --- the end --------------------------------------------------------------------------------------

ENDS = """
import os, sys
import numpy as np
import clfuse as cf
from clfuse.runtime.devices import selection as devices
from clfuse.tools.check.driver_faults import failing
x = cf.arange(200_000.0) * 2
cf.evaluate(x)
view = np.asarray(x)
try:
    shared = cf.asarray(np.ones(200_000), copy=False)
except ValueError:  # the device has memory of its own
    shared = cf.asarray(np.ones(200_000))
y = shared + x
cf.evaluate(y)
device = cf.get_device()
faults = [failing(device, name, -9999) for name in (
    "clFinish", "clWaitForEvents", "clEnqueueMarkerWithWaitList", "clEnqueueUnmapMemObject",
    "clEnqueueReadBuffer", "clEnqueueMapBuffer", "clGetEventInfo")]
[fault.__enter__() for fault in faults]
del shared, y, view
MIDDLE
print("end")
"""
FORK = """
child = os.fork()
if not child:
    try:
        print(float(x[1]))
    except cf.DeviceError as error:
        print("was lost" in str(error), flush=True)
    os._exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
"""


def ended(middle: str) -> subprocess.CompletedProcess[str]:
    return in_a_process(ENDS.replace("MIDDLE", middle))


def in_a_process(code: str) -> subprocess.CompletedProcess[str]:
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, timeout=120, cwd=top,
        env={**os.environ, "CLFUSE_HOST_US": "0", "CLFUSE_BUILD_AFTER_MS": "0"},
    )  # fmt: skip


def test_a_process_ends_although_nothing_can_be_waited_for() -> None:
    done = ended("")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "end\n"
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_process_forks_though_nothing_can_be_waited_for() -> None:
    done = ended(FORK)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True\nend\n"
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


# --- a real fault ---------------------------------------------------------------------------------

FAULT = """
import numpy as np
import clfuse as cf
from clfuse import config
from clfuse.runtime.launches import launch, program
from clfuse.runtime.memory import buffers
SOURCE = "__kernel void wild(__global int *x) { x[((long)1 << 38) + get_global_id(0)] = 1; }"
with config.override(host_us=50):
    kept = cf.asarray(np.arange(100.0))
def faults(device):
    gone = cf.arange(1e6) * 2
    cf.evaluate(gone)
    built = program.build(device, SOURCE, "wild", (None,))
    target = buffers.allocate(device, 1000)
    first = "no error"
    try:
        launch.enqueue(built, (1024,), (64,), (target.mem,))
        cf.asnumpy(gone)
    except cf.DeviceError as error:
        first = str(error)
    print(first)
    assert device.lost
    try:
        cf.asnumpy(gone)
    except cf.DeviceError as error:
        assert "was lost" in str(error), error
    else:
        raise AssertionError("an array of a lost device has a value")
    return first
def works(device):
    assert not device.lost
    assert float((cf.arange(1e6) * 2).sum()) == 999999e6
    assert (cf.asnumpy(kept * 2) == np.arange(100.0) * 2).all()
device = cf.get_device()
works(device)
first = faults(device)
assert "launched last: wild" in first, first
try:
    device = cf.set_device(device.index)
except cf.DeviceError as error:  # NVIDIA's driver, for the rest of the process
    assert "no new context" in str(error), error
    works(cf.set_device("cpu"))
else:
    works(device)
print("end")
"""

FAULT_IN_SYNC = FAULT[: FAULT.index("device = cf.get_device()")] + """
with config.override(debug="sync"):
    first = faults(cf.get_device())
assert "kernel wild failed" in first, first
print("end")
"""


@pytest.mark.parametrize("code", [FAULT, FAULT_IN_SYNC], ids=["later", "sync"])
def test_a_kernel_that_faults_on_a_gpu_is_named(code: str) -> None:
    """In a process of its own: other contexts may go with the one that is lost."""
    import pyopencl as cl

    if not selection.get_device().handle.type & cl.device_type.GPU:
        pytest.skip("on a CPU the process itself would be killed")
    done = in_a_process(code)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("end\n")
