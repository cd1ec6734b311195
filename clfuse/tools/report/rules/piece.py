"""What rules share: a piece of advice, and what is worth one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..summary import Summary

__all__ = ["LARGE", "LEAST_SHARE", "MANY", "Advice", "is_worth", "least_ns"]

LEAST_SHARE: Final = 0.05
"""The part of the run that something takes to be worth advice."""

MANY: Final = 20
"""Rounds from which something is in a loop."""

LARGE: Final = 1 << 16
"""Elements of an array whose bytes count."""


@dataclass(frozen=True)
class Advice:
    """One piece: the rule's name, what was seen in one line, what to do, and where.

    `saves_ns` is what the run may be shorter at the most; 0 where nobody knows.
    """

    rule: str
    title: str
    text: str
    path: str
    line: int
    saves_ns: float = 0.0


def least_ns(summary: Summary) -> float:
    """What something takes to be worth advice, in nanoseconds."""
    return LEAST_SHARE * summary.elapsed_ns


def is_worth(elapsed_ns: float, summary: Summary) -> bool:
    """Whether so much of the run is worth a word."""
    return elapsed_ns >= least_ns(summary)
