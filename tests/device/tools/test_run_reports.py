"""``python -m clfuse run --stats --explain --profile``: what is printed beside a program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.clfuse_only

SCRIPT = """
import numpy as np
x = np.arange(1_000_000.0)
print(float((x * 2).sum()))
"""


def test_plans_times_and_counters_are_printed_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    monkeypatch.setenv("CLFUSE_HOST_US", "0")
    monkeypatch.setenv("CLFUSE_FUSION", "on")
    finished = subprocess.run(
        [sys.executable, "-m", "clfuse", "run", "--stats", "--explain", "--profile", "script.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == "999999000000.0\n"
    lines = finished.stderr.splitlines()
    assert any(line.startswith("clfuse: plan 0: ") for line in lines)
    assert any("fused: " in line and "multiply" in line for line in lines)
    assert any(line.split()[-1] == "GB/s" for line in lines)
    counted = {line.split()[0]: line.split()[1] for line in lines if line.startswith("  ")}
    assert int(counted["kernels_launched"]) >= 1
    assert "fallbacks" not in counted  # what is zero is left out
