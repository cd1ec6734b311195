"""``python -m clfuse warm``: what it has built the next run finds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.clfuse_only

PROGRAM = """
import sys
import numpy as np
x = np.linspace(0, 1, 200_000)
for _ in range(4):
    x = np.exp(-x) + np.sin(x)
    total = float(x.sum())
print(round(total, 6), sys.argv[1:])
"""


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "clfuse", *arguments], capture_output=True, text=True, check=False,
        env=os.environ | {"XDG_CACHE_HOME": str(folder), "CLFUSE_HOST_US": "0"},
    )  # fmt: skip


def kept(folder: Path) -> set[Path]:
    """What lies in the caches, but for what PoCL leaves behind."""
    return {path for path in folder.rglob("*") if not path.name.startswith("tempfile")}


def test_what_is_warm_is_built_no_more(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PROGRAM)
    (cache := tmp_path / "cache").mkdir(mode=0o700)
    warmed = command(cache, "warm", str(script), "--an", "argument")
    assert warmed.returncode == 0, warmed.stderr
    assert warmed.stdout.count("['--an', 'argument']") == 1  # the first run's
    lines = [line for line in warmed.stderr.splitlines() if line.startswith("clfuse warm:")]
    assert "more in the caches" in lines[0]
    assert lines[-1].endswith("nothing to build")
    before = kept(cache)
    again = command(cache, "run", str(script), "--an", "argument")
    assert again.stdout == warmed.stdout
    assert kept(cache) == before


def test_a_program_that_fails_ends_it(tmp_path: Path) -> None:
    (cache := tmp_path / "cache").mkdir(mode=0o700)
    done = command(cache, "warm", "-c", "import sys; print(1); sys.exit(3)")
    assert (done.returncode, done.stdout) == (3, "1\n")
    assert done.stderr.count("clfuse warm: run") == 1
