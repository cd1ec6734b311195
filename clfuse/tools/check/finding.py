"""The finding of a part of the check, and the time that the part may take."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import field

from clfuse.dataclass import mutable

__all__ = ["Budget", "Finding"]


@mutable
class Finding:
    """One part's result.

    what: what was done: ``"57 programs"``.
    problems: what is wrong, a text each.
    left_out: why the part, or some of it, was not done here; empty where it was.
    """

    what: str = ""
    problems: list[str] = field(default_factory=list)
    left_out: str = ""


@mutable
class Budget:
    """A part's time, its random seed, and whom it tells how far it is."""

    seconds: float
    seed: int = 0
    tell: Callable[[str], None] = lambda text: None
    begin: float = field(default_factory=time.monotonic)

    @property
    def is_spent(self) -> bool:
        return time.monotonic() - self.begin > self.seconds
