"""The subset for Oclgrind names tests that exist; what they find is ci/test's business."""

from __future__ import annotations

import subprocess
import sys

from tests.oclgrind import ROOT, SUBSET


def test_every_test_of_the_subset_exists() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    found = subprocess.run([*command, *SUBSET], cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout[-2000:] + found.stderr[-2000:]
