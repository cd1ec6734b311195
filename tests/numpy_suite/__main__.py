"""Runs NumPy's own tests on clfuse and counts, by file: ``python -m tests.numpy_suite [FILE ...]``.

The tests are those in the installed NumPy. A test counts if it passes on NumPy itself on this
machine; `left_out.txt` names those that test what clfuse does not want to have (NumPy's C
internals), each with the reason, and `failures.txt` those that are known to fail.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from .counting import report
from .journal import COMPLETE, is_complete, write_journal

HERE = Path(__file__).parent
NUMPY = Path(np.__file__).parent
FOLDERS = ("_core", "lib", "linalg", "fft", "random", "ma", "matrixlib", "polynomial")
CRASHES = 20  # restarts of one file after a test killed the process
OUT_OF_TIME = 75


def reasons(name: str) -> list[tuple[str, str]]:
    """Pattern of test names, and why those tests are left out (or, in `failures.txt`, fail)."""
    found = []
    reason = ""
    for line in (HERE / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            reason = line[2:]
        elif line.strip():
            found.append((line.strip(), reason))
    return found


def name_of(path: Path) -> str:
    """``_core/test_umath``: how files are named in `left_out.txt` and on the command line."""
    return f"{path.parent.parent.name}/{path.stem}"


def run(module: str, path: Path, journal: Path, deadline: float) -> bool:
    """Run what the journal lacks; whether all of it was run before the deadline."""
    environment = {
        "CLFUSE_EXACT_RANDOM": "on",
        "NUMPY_EXPERIMENTAL_DTYPE_API": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        **os.environ,
        "CLFUSE_SUITE_MODULE": module,
        "CLFUSE_SUITE_JOURNAL": str(journal),
        "PYTHONPATH": os.pathsep.join([str(HERE.parent.parent), os.environ.get("PYTHONPATH", "")]),
    }
    if is_complete(journal):
        return True
    for _ in range(CRASHES):
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            return False
        environment["CLFUSE_SUITE_BUDGET_S"] = str(left_s)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "tests.numpy_suite.plugin",
            "-p",
            "no:cacheprovider",
            "-c",
            os.devnull,
            f"--rootdir={NUMPY.parent}",
            "--import-mode=importlib",
            "-m",
            "not slow",
            "--tb=short",
            str(path),
        ]
        log = journal.with_suffix(".log")
        with log.open("w", encoding="utf-8") as output:
            status = subprocess.run(
                command, env=environment, stdout=output, stderr=output, check=False
            ).returncode
        if status == OUT_OF_TIME:
            return False
        if 0 <= status <= 5:
            break
    write_journal(journal, *COMPLETE)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.numpy_suite", description=__doc__)
    parser.add_argument(
        "files", nargs="*", help="such as _core/test_umath; all that are not left out by default"
    )
    parser.add_argument(
        "--results", type=Path, default=Path("build/numpy-suite"), help="folder for the journals"
    )
    parser.add_argument(
        "--budget",
        type=float,
        default=float("inf"),
        metavar="S",
        help="stop after S seconds; the next call goes on there",
    )
    parser.add_argument("--failures", action="store_true", help="show what failed")
    parser.add_argument("--count", action="store_true", help="run nothing, count what has been run")
    asked = parser.parse_args()
    asked.results.mkdir(parents=True, exist_ok=True)
    patterns = reasons("left_out.txt")
    files = [
        path for folder in FOLDERS for path in sorted((NUMPY / folder / "tests").glob("test_*.py"))
    ]
    files = [
        path
        for path in files
        if (
            name_of(path) in asked.files
            if asked.files
            else not any(fnmatch.fnmatchcase(name_of(path), pattern) for pattern, _ in patterns)
        )
    ]
    deadline = time.monotonic() + asked.budget
    complete = True
    for path in files:
        stem = name_of(path).replace("/", ".")
        for module in ("numpy", "clfuse"):
            if not asked.count:
                complete &= run(module, path, asked.results / f"{module}-{stem}.jsonl", deadline)
    known = reasons("failures.txt")
    names = [name_of(path) for path in files]
    worst = report(names, asked.results, patterns, known, asked.failures)
    if not complete:
        print("out of time: call again to go on")
        return OUT_OF_TIME
    return worst


if __name__ == "__main__":
    sys.exit(main())
