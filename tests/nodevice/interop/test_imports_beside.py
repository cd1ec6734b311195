"""``import clfuse`` while another thread imports what it changes."""

from __future__ import annotations

import subprocess
import sys

BESIDE = """
import sys, threading, time
from importlib.machinery import PathFinder
import numpy

if "numpy.random" in sys.modules:  # as NumPy 1 has it
    sys.exit()
problems = []

def imports():
    try:
        import numpy.random
    except BaseException as error:
        problems.append(error)

thread = threading.Thread(target=imports)

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "clfuse.namespace":  # the last module that is imported before the changes
            thread.start()
        if name != "numpy.random":
            return None
        spec = PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module

        def exec_module(module):
            time.sleep(2)
            execute(module)

        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Slow())
import clfuse
thread.join()
assert not problems, problems
assert numpy.random.default_rng.__wrapped__
"""


def test_a_module_that_another_thread_imports_is_waited_for() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", BESIDE], text=True, capture_output=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
