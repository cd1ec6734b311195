"""Counts what the journals of NumPy's tests hold: by file, and of those left out by reason."""

from __future__ import annotations

import fnmatch
from collections import Counter
from pathlib import Path

from .journal import read_journal

WANTED = 95.0  # percent, of every file

Patterns = list[tuple[str, str]]


def reason_to_leave_out(title: str, patterns: Patterns) -> str | None:
    """Why the test is left out; None where it counts."""
    return next((why for pattern, why in patterns if fnmatch.fnmatchcase(title, pattern)), None)


def report(
    files: list[str], results: Path, patterns: Patterns, known: Patterns, failures: bool
) -> int:
    """Print one line a file, one a reason; 1 if a file has less than `WANTED` percent, else 0.

    `patterns` are tests that do not count, `known` those of which it is written why they fail.
    """
    print(f"{'file':40} {'passed':>7} {'failed':>7} {'left out':>9} {'passed %':>9}")
    short = False
    total: Counter[str] = Counter()
    out: Counter[str] = Counter()
    out_passed: Counter[str] = Counter()
    why_failed: Counter[str] = Counter()
    for name in files:
        stem = name.replace("/", ".")
        reference = read_journal(results / f"numpy-{stem}.jsonl")
        ours = read_journal(results / f"clfuse-{stem}.jsonl")
        counts: Counter[str] = Counter()
        failed = []
        for test, (outcome, _) in reference.items():
            if outcome != "passed":
                continue  # nor does NumPy here
            why = reason_to_leave_out(f"{name}::{test.partition('::')[2]}", patterns)
            passed = ours.get(test, ("",))[0] == "passed"
            if test not in ours:
                counts["not run"] += 1
            elif why is not None:
                counts["left out"] += 1
                out[why] += 1
                out_passed[why] += passed
            else:
                counts["passed" if passed else "failed"] += 1
                if not passed:
                    failed.append(test)
                    title = f"{name}::{test.partition('::')[2]}"
                    why_failed[reason_to_leave_out(title, known) or "not known"] += 1
        total += counts
        short |= _print_counts(name, counts) < WANTED
        for test in failed if failures else ():
            print(f"    {test.partition('::')[2]}: {_first_lines(*ours[test])}")
    _print_counts("all", total)
    for why, count in why_failed.most_common():
        print(f"failed: {count:5}: {why}")
    for why, count in out.most_common():
        print(f"left out: {count:5}, of which {out_passed[why]:5} pass: {why}")
    return int(short)


def _print_counts(name: str, counts: Counter[str]) -> float:
    counted = counts["passed"] + counts["failed"]
    share = 100 * counts["passed"] / counted if counted else 0.0 if counts["not run"] else 100.0
    rest = f"  ({counts['not run']} not run)" if counts["not run"] else ""
    numbers = f"{counts['passed']:7} {counts['failed']:7} {counts['left out']:9} {share:9.1f}"
    print(f"{name:40} {numbers}{rest}")
    return share


def _first_lines(outcome: str, message: str) -> str:
    lines = [line[1:].strip() for line in message.splitlines() if line.startswith("E  ")]
    return f"{outcome} {' / '.join(lines[:3])}"[:200]
