"""PoCL's threads have a core each where the process may use all cores, and are free elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from clfuse.runtime.drivers import pinning

pytestmark = [
    pytest.mark.clfuse_only,
    pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="only Linux binds threads"),
]

PROGRAM = """
import os, sys
if sys.argv[1:]:
    os.sched_setaffinity(0, {int(sys.argv[1])})
def threads():
    return {int(name) for name in os.listdir("/proc/self/task")}
import numpy, pyopencl
before = threads()
import clfuse
found = [d for d in clfuse.devices() if d.platform_name.startswith("Portable")]
for device in found:
    device.context
cores = [os.sched_getaffinity(thread) for thread in threads() - before]
# Other runtimes may bind a thread to some core, too.
alone = {min(each) for each in cores if len(each) == 1}
print(bool(found), alone >= os.sched_getaffinity(0), os.environ.get("POCL_AFFINITY"))
"""


def told(*arguments: str, **changes: str) -> tuple[bool, str]:
    """Whether there is PoCL, and what else `PROGRAM` prints."""
    unset = ("POCL_AFFINITY", *pinning.COUNTS)
    variables = {k: v for k, v in os.environ.items() if k not in unset}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True, text=True, check=True, env={**variables, **changes}, timeout=120,
    )  # fmt: skip
    found, _, rest = done.stdout.strip().partition(" ")
    return found == "True", rest


def test_every_core_has_a_thread_with_an_unchanged_environment() -> None:
    count = len(os.sched_getaffinity(0))
    found, rest = told()
    if not found:
        pytest.skip("there is no PoCL")
    assert rest == f"{1 < count == os.sysconf('SC_NPROCESSORS_CONF')} None"


def test_who_says_otherwise_is_heard() -> None:
    if len(os.sched_getaffinity(0)) == 1:
        pytest.skip("there is one core")
    assert told(POCL_AFFINITY="0")[1] == "False 0"
    assert told(POCL_MAX_PTHREAD_COUNT="1")[1] == "False None"


def test_a_process_on_some_cores_still_has_its_devices() -> None:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) == 1:
        pytest.skip("there is one core")
    assert told(str(cores[-1]))[0] == told()[0]
