"""Arrays that are looked at in the midst of the imports that the first plan of a process needs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.clfuse_only

INTERRUPTED = """
import sys
import clfuse as np

x = np.arange(1000) + 1
seen = []

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r} and not seen:
            seen.append(None)
            seen[0] = (x * 2).sum().item()

sys.meta_path.insert(0, Interrupts())
assert (x * 3).sum().item() == 1_501_500
assert seen == [1_001_000], seen
assert (x * 4).sum().item() == 2_002_000
"""
"""A finder stands for a destructor, or a signal's handler, that runs in the thread that imports."""


@pytest.mark.parametrize("name", ["clfuse.schedule.planner", "clfuse.schedule.fourier_tables"])
def test_arrays_can_be_looked_at_within_an_import(name: str) -> None:
    environment = {**os.environ, "CLFUSE_HOST_US": "0", "CLFUSE_BUILD_AFTER_MS": "0"}
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(name=name)], env=environment, text=True,
        capture_output=True, timeout=100,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
