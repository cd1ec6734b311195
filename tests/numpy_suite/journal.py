"""The journal of a test run: one line a step, so that nothing is lost when the process dies."""

from __future__ import annotations

import json
from pathlib import Path

COMPLETE = ("", "complete", "")
"""The line after the last test of a file."""


def read_journal(path: Path) -> dict[str, tuple[str, str]]:
    """Test -> outcome and message; ``crash`` for one that began and never ended."""
    outcomes: dict[str, tuple[str, str]] = {}
    if not path.exists():
        return outcomes
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            test, outcome, message = json.loads(line)
            if not test:
                continue
            if outcomes.get(test, ("",))[0] in ("", "began"):
                outcomes[test] = (outcome, message)
    return {
        t: ("crash", "the process died") if o == "began" else (o, m)
        for t, (o, m) in outcomes.items()
    }


def is_complete(path: Path) -> bool:
    """Whether every test of the file has run."""
    return path.exists() and json.dumps(COMPLETE) in path.read_text(encoding="utf-8").splitlines()


def write_journal(path: Path, test: str, outcome: str, message: str = "") -> None:
    """Add one line."""
    with path.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps([test, outcome, message]) + "\n")
