"""Counters of what has happened since the start: kernels, programs, plans, bytes, fallbacks.

A counter is changed with one ``counters[name] += n``. Between the load and the store of such a line
CPython switches neither threads nor runs the garbage collector, so no lock is taken on the hot
paths.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["bytes_text", "counters", "reset_peak", "snapshot", "when_seeded"]

#: name -> value; bytes for the names that say so, events for the rest.
counters: dict[str, int] = {
    "kernels_launched": 0,
    "programs_built": 0,
    "plans_made": 0,
    "plans_reused": 0,
    "fallbacks": 0,
    "library_calls": 0,
    "user_launches": 0,
    "host_evaluations": 0,
    "bytes_to_device": 0,
    "bytes_to_host": 0,
    "device_bytes_now": 0,
    "device_bytes_peak": 0,
    "spills": 0,
    "bytes_spilled": 0,
    "tiles": 0,
    "nodes_recorded": 0,
    "jit_traces": 0,
    "jit_replays": 0,
}


when_seeded: list[Callable[[], None]] = []
"""Called where a program seeds random numbers whose stream is not NumPy's."""


def snapshot() -> dict[str, int]:
    """Return a copy of all counters, which later work does not change.

    Examples
    --------
    >>> before = snapshot()
    >>> counters["nodes_recorded"] += 2
    >>> snapshot()["nodes_recorded"] - before["nodes_recorded"]
    2
    """
    return dict(counters)


def reset_peak() -> None:
    """Let ``device_bytes_peak`` start again from what is allocated now."""
    counters["device_bytes_peak"] = counters["device_bytes_now"]


def bytes_text(nbytes: float) -> str:
    """Bytes in words.

    >>> bytes_text(12), bytes_text(3_456_000)
    ('12 B', '3.5 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if nbytes < 1000:
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1000
    return f"{nbytes:.1f} TB"
