"""Counts what the journals of NumPy's tests hold, by file."""

from __future__ import annotations

import fnmatch
from pathlib import Path

from .journal import read_journal

WANTED = 95.0  # percent, of every file


def report(files: list[str], results: Path, patterns: list[tuple[str, str]], failures: bool) -> int:
    """Print one line a file; 1 if one of them has less than `WANTED` percent, else 0."""
    print(f"{'file':34} {'passed':>7} {'failed':>7} {'left out':>9} {'passed %':>9}")
    worst = 0
    total = [0, 0, 0]
    for name in files:
        stem = name.replace("/", ".")
        reference = read_journal(results / f"numpy-{stem}.jsonl")
        ours = read_journal(results / f"clfuse-{stem}.jsonl")
        passed, failed, out = [], [], []
        for test, (outcome, _) in reference.items():
            if outcome != "passed" or test not in ours:
                continue
            title = f"{name}::{test.partition('::')[2]}"
            if any(fnmatch.fnmatchcase(title, pattern) for pattern, _ in patterns):
                out.append(test)
            elif ours[test][0] == "passed":
                passed.append(test)
            else:
                failed.append(test)
        count = len(passed) + len(failed)
        share = 100 * len(passed) / count if count else 100.0
        worst |= share < WANTED
        for place, found in enumerate((passed, failed, out)):
            total[place] += len(found)
        unrun = sum(
            outcome == "passed" and test not in ours for test, (outcome, _) in reference.items()
        )
        print(
            f"{name:34} {len(passed):7} {len(failed):7} {len(out):9} {share:9.1f}"
            + (f"  ({unrun} not run)" if unrun else "")
        )
        if failures:
            for test in failed:
                lines = [line for line in ours[test][1].splitlines() if line.startswith("E  ")]
                print(
                    f"    {test.partition('::')[2]}: {ours[test][0]} "
                    + " / ".join(x[1:].strip() for x in lines[:3])[:200]
                )
    count = total[0] + total[1]
    print(
        f"{'all':34} {total[0]:7} {total[1]:7} {total[2]:9} {100 * total[0] / max(count, 1):9.1f}"
    )
    return int(worst)
