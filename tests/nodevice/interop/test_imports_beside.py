"""``import clfuse`` while another thread imports what it changes."""

from __future__ import annotations

import os
import subprocess
import sys

BESIDE = """
import sys, threading, time
import numpy

if "numpy.random" in sys.modules:  # as NumPy 1 has it
    sys.exit()
begun = threading.Event()

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy.random.mtrand" and not begun.is_set():
            begun.set()
            while "clfuse.namespace" not in sys.modules:
                time.sleep(0.01)
            time.sleep(1)

sys.meta_path.insert(0, Slow())
problems = []

def imports():
    try:
        import numpy.random
    except BaseException as error:
        problems.append(error)

thread = threading.Thread(target=imports)
thread.start()
begun.wait()
import clfuse
thread.join()
assert not problems, problems
assert numpy.random.default_rng.__wrapped__
"""


def test_a_module_that_another_thread_imports_is_waited_for() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", BESIDE], text=True, capture_output=True, timeout=100, env=os.environ
    )
    assert ended.returncode == 0, ended.stderr
