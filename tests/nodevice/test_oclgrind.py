"""The subset for Oclgrind names tests that exist; what they find is ci/test's business."""

from __future__ import annotations

import subprocess
import sys

from tests.oclgrind import ROOT, SUBSET, reports, subset_of


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


def test_loads_beside_atomics_are_no_races_and_stores_are() -> None:
    race = "Read-write data race at global memory address 0x7a000000000000\n\tKernel: k\n"
    load = "\t  %27 = load volatile i32, i32 addrspace(1)* %26, align 4\n\tAt line 19\n"
    change = "\t  %15 = call spir_func i32 @_Z10atomic_maxPU3AS1Vii(i32 addrspace(1)* %29)\n"
    store = "\t  store i32 %30, i32 addrspace(1)* %29, align 4\n"
    assert reports(race + load + change) == []
    assert len(reports(race + load + store)) == 1
    assert len(reports(race + load.replace(" volatile", "") + change)) == 1
    assert len(reports(race.replace("Read-write", "Write-write") + load + change)) == 1
