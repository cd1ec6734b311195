"""Parts of the check: driver calls that fail (`faults`), and Ctrl-C at any call (`interrupts`)."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from . import driver_faults, ended_early
from .finding import Budget, Finding

__all__ = ["faults", "interrupts"]

TRIALS = 6
"""Of each program and way; its plan is made and built once."""

MOST_SHOWN = 3


def _trials(budget: Budget, ways: list[Callable[..., Any]], what: str) -> Finding:
    xp = importlib.import_module("clfuse")
    finding, count, seed = Finding(), 0, budget.seed
    while not budget.is_spent and len(finding.problems) < MOST_SHOWN:
        done, problems = ended_early.run(xp, [seed], TRIALS, ways)
        count += done
        finding.problems += problems
        seed += 1
        budget.tell(f"{count} trials")
    finding.what = f"{count} evaluations {what}"
    return finding


def faults(budget: Budget) -> Finding:
    """Trials with calls that fail, until the time is spent."""
    if not driver_faults.CAN_FAIL:
        return Finding(left_out="calls of the driver can be made to fail on Linux alone")
    return _trials(budget, [ended_early.faulty], "whose driver failed")


def interrupts(budget: Budget) -> Finding:
    """Trials with KeyboardInterrupt, until the time is spent."""
    return _trials(budget, [ended_early.interrupted, ended_early.recorded], "interrupted")
