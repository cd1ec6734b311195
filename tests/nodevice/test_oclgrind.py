"""The subset for Oclgrind names tests that exist; what they find is ci/test's business."""

from __future__ import annotations

import subprocess
import sys

from tests.oclgrind import ROOT, SUBSET, subset_of


def test_every_test_of_the_subset_exists() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    found = subprocess.run([*command, *SUBSET], cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout[-2000:] + found.stderr[-2000:]


def test_cases_that_plan_for_a_schedule_by_themselves_run_once() -> None:
    cpu, gpu = map(set, map(subset_of, ("cpu", "gpu")))
    assert cpu | gpu == set(SUBSET)
    assert {name for name in cpu - gpu if "[cpu" not in name} == set()
    assert {name for name in gpu - cpu if "[gpu" not in name} == set()
    assert cpu - gpu
    assert gpu - cpu
