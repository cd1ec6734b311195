"""``python -m clfuse warm``: run a program until its kernels are in the cache.

A process is started for each run, as a user would. In all of them kernels are built where they are
earned, not behind NumPy's back, so that no run ends before its compiler does. What one run has
found worth its kernels the next one has from the start (`policy.warm_start`), which may lead it to
others. It ends with the first run that builds nothing and finds nothing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from clfuse.policy.choice import count_earned
from clfuse.runtime.files.storage import cache_folder

from .caches import cache_folders

__all__ = ["main"]

RUNS: Final = 4
"""At most, unless asked for more: a program that draws its shapes at random never ends."""

SETTINGS: Final = {"CLFUSE_BACKGROUND": "off"}


def main(arguments: Sequence[str]) -> int:
    """Run the command line; the exit code is that of the program's last run."""
    reader = argparse.ArgumentParser(
        prog="python -m clfuse warm",
        usage="python -m clfuse warm [--runs N] [OPTION ...] "
        "(SCRIPT | -m MODULE | -c CODE) [ARGUMENT ...]",
        description="Run a program until its kernels are compiled and kept, for the next run to"
        " find. Options are those of `run`. The program runs some times, whole, and what it prints"
        " is shown the first time: it must do no harm twice.",
        add_help=False,
    )
    reader.add_argument("--runs", type=_count, default=RUNS, metavar="N",
                        help=f"at most so many (default: {RUNS})")  # fmt: skip
    reader.add_argument("-h", "--help", action="help")
    given = list(arguments)
    own: list[str] = []
    while given and (given[0] in ("-h", "--help", "--runs") or given[0].startswith("--runs=")):
        own.append(given.pop(0))
        if own[-1] == "--runs":
            own += given[:1]
            del given[:1]
    options = reader.parse_args(own)
    if not given:
        reader.error("expected a program: SCRIPT, -m MODULE or -c CODE")
    if given[0] == "-":
        reader.error("a program is read from the standard input once; put it into a file")
    if cache_folder() is None:
        print("clfuse warm: there is no folder to keep kernels in", file=sys.stderr)
        return 1
    return _until_nothing_is_built(given, options.runs)


def _until_nothing_is_built(program: list[str], runs: int) -> int:
    kept, earned = _kept(), count_earned()
    for run in range(1, runs + 1):
        start = time.monotonic()
        code = subprocess.run(
            [sys.executable, "-m", "clfuse", "run", *program],
            stdout=None if run == 1 else subprocess.DEVNULL,
            env=os.environ | SETTINGS, check=False,
        ).returncode  # fmt: skip
        seconds = time.monotonic() - start
        before, kept = kept, _kept()
        built = len(kept - before)
        found = count_earned() - earned
        earned += found
        kernels = f"{built} files more in the caches" if built else "nothing to build"
        print(f"clfuse warm: run {run}: {seconds:.1f} s, {kernels}", file=sys.stderr, flush=True)
        if code or not (built or found):
            return code
    print(f"clfuse warm: run {runs} still built some; --runs N for more", file=sys.stderr)
    return 0


def _kept() -> set[Path]:
    """The files in the caches, ours and the drivers', but for those that a driver leaves behind."""
    return {
        path
        for folder in cache_folders().values()
        for path in folder.rglob("*")
        if not path.name.startswith("tempfile")
    }


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError(f"expected 1 or more, got {text}")
    return count
