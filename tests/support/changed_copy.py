"""A copy of the package to be changed, and programs that run with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).parents[2]


def copy_package(folder: Path) -> None:
    """Copy the package and its templates into a folder; the pages of the guide stay behind."""
    ignored = shutil.ignore_patterns("__pycache__", "guide")
    for name in ("clfuse", "kernels"):
        shutil.copytree(TOP / name, folder / name, ignore=ignored)


def run_with(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the copy that a folder has; the folder is also the current one."""
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=300,
        cwd=folder, env={**os.environ, "PYTHONPATH": path, **variables},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done
