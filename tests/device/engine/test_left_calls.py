"""A process ends soon, whatever call of the driver its background thread is in."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time

import pytest

pytestmark = [
    pytest.mark.clfuse_only,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the GNU C library's way"),
]

LATE = """
import builtins, ctypes, os, sys, threading, time
import clfuse as np
from clfuse.engine import background, evaluate

class Late:
    def __init__(self):
        self.x = np.arange(1000) + 1
    def __del__(self, write=os.write, total=sum):
        write(1, b"late %d\\n" % total((self.x * 2).tolist()))
"""

LONG_CALL = LATE + """

begun = []
def call():
    begun.append(True)
    ctypes.CDLL(None).sleep(100)

background.begin([call])
while not begun:
    time.sleep(0.001)
builtins.kept = Late()
print("last line", time.time(), flush=True)
sys.exit(7)
"""

LONG_EVALUATION = LATE + """
begun = threading.Event()

def work():
    with evaluate.lock:
        begun.set()
        ctypes.CDLL(None).sleep(100)

np.get_device()
threading.Thread(target=work, daemon=True).start()
begun.wait()
builtins.kept = Late()
print("last line", time.time(), flush=True)
sys.exit(7)
"""

LOCKS_AT_REST = LATE + """
begun, may_go_on = threading.Event(), threading.Event()
device = np.get_device()

def work():
    with device.lock:
        begun.set()
        may_go_on.wait()
        device.queue

import atexit
from clfuse.runtime.devices import ending
plain = ending.let_others_rest

def let_others_rest(lock):
    threading.Timer(0.05, may_go_on.set).start()
    plain(lock)

ending.let_others_rest = let_others_rest
threading.Thread(target=work, daemon=True).start()
begun.wait()

@atexit.register
def take(lock=device.lock):
    with lock:
        print("taken", flush=True)

atexit.unregister(evaluate._end)
atexit.register(evaluate._end)  # before `take`
print("last line", time.time(), flush=True)
"""

BUILT_LATE = """
import builtins, random, sys, time
import clfuse as np
from clfuse.engine import background

device = np.get_device()
number = random.randrange(1 << 40)
steps = "".join(f"x = exp(x) * sin(x + {n}.5f);" for n in range(40))
text = f"kernel void k(global float *a) {{ float x = a[{number} % 7]; {steps} a[0] = x; }}"

def call():
    from clfuse.runtime.launches import program
    for n in range(1000):
        program.build(device, text.replace("0] =", f"{n}] ="), "k", [None])

class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(1)

builtins.slow = Slow()  # it goes when threads that want the interpreter's lock are ended
background.SOON_S = 0
background.begin([call])
time.sleep(0.1)
print("last line", time.time(), flush=True)
"""

LATEST_S = 10
"""From the last line to the end, on a machine that does much else."""


def run(code: str) -> tuple[subprocess.CompletedProcess[str], float]:
    """How a process has ended, and how many seconds after its last line."""
    environment = {**os.environ, "CLFUSE_BACKGROUND": "on", "CLFUSE_HOST_US": "0"}
    ended = subprocess.run(
        [sys.executable, "-c", code], env=environment, text=True, capture_output=True, timeout=90
    )
    now = time.time()
    found = re.search(r"last line ([0-9.]+)", ended.stdout)
    assert found, ended.stderr
    return ended, now - float(found[1])


def test_a_long_call_of_the_driver_is_left_behind() -> None:
    ended, late_s = run(LONG_CALL)
    assert (ended.returncode, ended.stderr) == (7, "")
    assert "late 1001000" in ended.stdout
    assert late_s < LATEST_S


def test_a_long_evaluation_of_another_thread_is_left_behind() -> None:
    ended, late_s = run(LONG_EVALUATION)
    assert (ended.returncode, ended.stderr) == (7, "")
    assert "late 1001000" in ended.stdout
    assert late_s < LATEST_S


def test_threads_at_rest_hold_no_locks() -> None:
    ended, late_s = run(LOCKS_AT_REST)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "taken" in ended.stdout
    assert late_s < LATEST_S


def test_a_thread_that_leaves_the_compiler_late_does_no_harm() -> None:
    ended, late_s = run(BUILT_LATE)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert late_s < LATEST_S
