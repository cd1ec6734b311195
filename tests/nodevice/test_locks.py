"""No lock of the package, and no import, holds up the thread that has it, or a forked process."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "clfuse"

OTHERS = {"engine/evaluate.py": 1, "runtime/devices/ending.py": 1, "runtime/memory/staging.py": 1,
          "process/locks.py": 1}
"""Modules that make locks by themselves, and how many: what evaluations take, a fork takes, too;
what nobody takes twice."""

WITH_LOCKS = """
import os, signal, sys, threading, time
import clfuse as np
from clfuse.process import locks
from clfuse.engine import background
from clfuse.functions.random import bits
from clfuse.policy import warm_start
from clfuse.runtime.devices import selection
from clfuse.runtime.files import geometries
from clfuse.runtime.launches import program

assert len(locks.made) > 8, len(locks.made)
"""

TWICE = WITH_LOCKS + """
for lock in list(locks.made):
    with lock, lock:
        pass
"""

FORKED = WITH_LOCKS + """
held, may_end = threading.Event(), threading.Event()

def hold():
    for lock in list(locks.made):
        if lock not in (background._lock, selection._lock):  # a fork waits for these
            lock.acquire()
    held.set()
    may_end.wait()

threading.Thread(target=hold, daemon=True).start()
held.wait()
child = os.fork()
if not child:
    signal.alarm(20)
    for lock in list(locks.made):
        lock.acquire()
    with np.errstate(all="raise"):
        pass
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


IMPORTED = """
import os, signal, sys, threading, time
from importlib.machinery import PathFinder
import clfuse as np

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name != "clfuse.engine.explain":
            return None
        spec = PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module

        def exec_module(module):
            begun.set()
            time.sleep(0.5)
            execute(module)

        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Slow())
begun = threading.Event()

def imports():
    import clfuse.engine.explain

threading.Thread(target=imports, daemon=True).start()
begun.wait()
child = os.fork()
if not child:
    signal.alarm(20)
    imports()
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def run(code: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], text=True, capture_output=True, timeout=100
    )
    assert ended.returncode == 0, ended.stderr


def test_a_thread_may_take_each_lock_twice() -> None:
    run(TWICE)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no forks")
def test_locks_of_other_threads_are_free_after_a_fork() -> None:
    run(FORKED)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no forks")
def test_a_fork_waits_for_imports_of_other_threads() -> None:
    run(IMPORTED)


def test_all_locks_are_made_in_one_place() -> None:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        count = len(re.findall(r"\bthreading\.R?Lock\(\)", path.read_text()))
        if count:
            found[path.relative_to(PACKAGE).as_posix()] = count
    assert found == OTHERS
