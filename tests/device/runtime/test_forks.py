"""A process that is forked where a driver is loaded computes, by NumPy if there is no other way."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.clfuse_only,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks"),
]

PROGRAM = """
import os, signal, sys
{before}
child = os.fork()
if not child:
    signal.alarm(60)
    import clfuse as np
    for number in range(3):
        assert (np.arange(1000.0) * 2 + number).sum() == 999_000 + 1000 * number
    np.get_device().name
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

LISTED = "import clfuse; from clfuse.runtime.devices import selection; selection.listed()"

BEFORE = {
    "listed": LISTED,
    "another is used": LISTED + """
import numpy
for candidate in selection.listed():
    if clfuse.config.settings.device.lower() not in candidate.platform_name.lower():
        with clfuse.device(candidate):
            clfuse.evaluate(clfuse.arange(1000.0) * 2)
""",
    "somebody else": "import clfuse; from clfuse.runtime.devices import listing;"
    " listing.list_devices()",
    "a thread lists": LISTED.replace("selection.listed()", "import threading, time") + """
thread = threading.Thread(target=selection.listed)
thread.start()
while thread.is_alive() and "pyopencl" not in sys.modules:
    time.sleep(0.001)
""",
}


@pytest.mark.parametrize("before", BEFORE)
def test_a_forked_process_computes_where_devices_were_listed(before: str) -> None:
    environment = {**os.environ, "CLFUSE_HOST_US": "0", "CLFUSE_BUILD_AFTER_MS": "0"}
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM.format(before=BEFORE[before])],
        env=environment, text=True, capture_output=True, timeout=150,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
