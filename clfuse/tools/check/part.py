"""``python -m clfuse.tools.check.part NAME SECONDS SEED``: one part of the check.

It runs in a process of its own, and writes lines of JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Final

from . import accuracy, faults, memory, values
from .finding import Budget, Finding

__all__ = ["PARTS", "main"]

PARTS: Final[Mapping[str, Callable[[Budget], Finding]]] = {
    "values": values.check,
    "accuracy": accuracy.check,
    "faults": faults.faults,
    "interrupts": faults.interrupts,
    "memory": memory.check,
}
"""In the order in which they are done."""


def _say(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def main(arguments: Sequence[str]) -> int:
    """Run a part; the last line is its finding."""
    name, seconds, seed = arguments
    budget = Budget(float(seconds), int(seed), lambda text: _say(progress=text))
    _say(finding=asdict(PARTS[name](budget)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
