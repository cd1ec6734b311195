"""Numbers in words: times, bytes, rates and counts as the page says them."""

from __future__ import annotations

import os

__all__ = ["count", "rate", "short_path", "size", "time_of", "times"]


def time_of(elapsed_ns: float) -> str:
    """A time with its unit.

    >>> time_of(1500), time_of(2.5e6), time_of(7.25e9)
    ('1.5 us', '2.50 ms', '7.25 s')
    """
    if elapsed_ns >= 1e9:
        return f"{elapsed_ns / 1e9:.2f} s"
    if elapsed_ns >= 1e6:
        digits = 0 if elapsed_ns >= 1e8 else 1 if elapsed_ns >= 1e7 else 2
        return f"{elapsed_ns / 1e6:.{digits}f} ms"
    return f"{elapsed_ns / 1e3:.1f} us" if elapsed_ns else "0 s"


def size(nbytes: float) -> str:
    """Bytes with their unit.

    >>> size(12), size(16_000_000)
    ('12 B', '16.0 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if abs(nbytes) < 1000:
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1000
    return f"{nbytes:.1f} TB"


def rate(nbytes: float, elapsed_ns: float) -> str:
    """Bytes a second, in GB/s."""
    return f"{nbytes / elapsed_ns:.1f} GB/s" if elapsed_ns else ""


def count(number: float) -> str:
    """How many; those that were not all counted are rounded.

    >>> count(3.0), count(1234567.0)
    ('3', '1,234,567')
    """
    return f"{round(number):,}"


def times(number: float) -> str:
    """How often.

    >>> times(1.0), times(12.4)
    ('once', '12 times')
    """
    return "once" if round(number) <= 1 else f"{count(number)} times"


def short_path(path: str) -> str:
    """A path as seen from the current folder, where it lies below it."""
    relative = os.path.relpath(path) if os.path.isabs(path) else path
    return path if relative.startswith("..") else relative
