"""The end of a process: no abort, whatever threads compute, and values for who looks late."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.clfuse_only

DAEMONS = """
import threading, time
import clfuse as np

def work():
    number = 0
    while True:
        number += 1
        x = np.arange(1000.0 + number % 7, dtype="float32") * 2 + number
        (x @ x).item(), np.sort(x).get(), x.sum().item()

np.arange(10).sum().item()
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.7)
"""

LATE = """
import atexit, builtins, os
import clfuse as np

def total(x):
    return (x * 2).sum().item()

class Kept:
    def __init__(self, value):
        self.x = np.arange(1000) + value
    def __del__(self, write=os.write, total=total):
        write(1, b"%d\\n" % total(self.x))

def values(write=os.write, total=total):
    kept = np.arange(1000) + 3
    try:
        yield
    finally:
        write(1, b"%d\\n" % total(kept))

kept, builtins.kept_longer = Kept(1), Kept(2)
opened = values()
next(opened)
atexit.register(lambda x: os.write(1, b"%d\\n" % total(x)), np.arange(1000) + 4)
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CLFUSE_HOST_US": "0", "PYTHONWARNINGS": "ignore"}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, text=True, capture_output=True, timeout=120
    )


def test_daemon_threads_that_compute_do_not_abort_the_process() -> None:
    ended = run(DAEMONS)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_destructors_and_functions_at_exit_have_recorded_values() -> None:
    ended = run(LATE)
    assert (ended.returncode, ended.stderr) == (0, "")
    sums = sorted(map(int, ended.stdout.split()))
    assert sums == [999_000 + 2_000 * value for value in (1, 2, 3, 4)]
