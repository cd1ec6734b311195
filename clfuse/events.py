"""Events: what happens while a program runs, for who shows it (``python -m clfuse run --report``).

As a rule nobody listens, and each place that could tell costs a look at an empty list. Who listens
changes nothing of what is decided: no array, node or snapshot is kept beyond the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

__all__ = ["Listener", "Watcher", "listeners", "recorders", "watchers"]


class Listener(Protocol):
    """Is told what happens rarely, or takes long."""

    def planned(self, schedule: Any, snapshot: Any, device: Any) -> None:
        """A plan was made: records of kernels for this snapshot, on this device."""

    def traced(self, key: object, schedule: Any, snapshot: Any) -> None:
        """A part of a function that `clfuse.jit` has traced has a plan; `key` stands for it."""

    def built(self, name: str, start_ns: int, end_ns: int) -> None:
        """The driver has built a kernel, on the clock of `time.perf_counter_ns`."""

    def copied(self, is_to_device: bool, nbytes: int, start_ns: int, end_ns: int) -> None:
        """Bytes were copied between host and device."""

    def fell_back(self, name: str, reason: str) -> None:
        """NumPy has done an operation on the host because no kernel does it."""


class Watcher(Protocol):
    """Is told of every evaluation."""

    def running(self, schedule: Any, snapshot: Any, device: Any) -> None:
        """The kernels of a plan are launched next, for this snapshot."""

    def replaying(self, key: object, schedule: Any, device: Any) -> None:
        """As `running`, of what was `traced`."""

    def called(self, step: Any, start_ns: int, end_ns: int) -> None:
        """A step of the plan that is running was no kernel of ours: a copy or a library call."""

    def stored(self, nodes: Any) -> None:
        """These nodes have got their memory."""

    def interpreted(self, snapshot: Any, why: str, start_ns: int, end_ns: int) -> None:
        """NumPy has computed a snapshot."""


listeners: Final[list[Listener]] = []

watchers: Final[list[Watcher]] = []

recorders: Final[list[Callable[[Any], None]]] = []
"""Called with each node that a statement of the program has recorded, before the next statement.
The compiled part has this list, too."""
