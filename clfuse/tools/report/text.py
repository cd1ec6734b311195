"""Figures of a report as text, for terminals: the lines that took time, kernels, and advice."""

from __future__ import annotations

from typing import Final

from .advice import advice
from .summary import Summary
from .words import count, size, time_of

__all__ = ["figures"]

MOST_ROWS: Final = 20
"""Of each table: those that took longest."""

COLUMNS: Final = 60
"""Of a line of the source."""


def figures(summary: Summary) -> str:
    """What the page says, without the timeline and the plans."""
    about = summary.circumstances
    parts = [
        f"{about.command}: {time_of(summary.elapsed_ns)}, kernels {time_of(summary.device_ns)}"
        f" in {count(summary.counted['kernels_launched'])} launches,"
        f" {count(summary.counted['host_evaluations'])} evaluations by NumPy"
    ]
    if went := summary.went():
        parts.append(f"where the time went: {went}")
    if about.outcome:
        parts.append(f"it did not come to its end: {about.outcome}")
    busy = [(file, line) for file, line in summary.all_lines() if not line.is_idle]
    longest = sorted(busy, key=lambda each: -(each[1].host_ns + each[1].device_ns))[:MOST_ROWS]
    if longest:
        parts.append(f"{'host':>9} {'device':>9}  line")
    for file, line in busy:
        if any(line is each for _, each in longest):
            where = f"{line.number:>4}"
            if file.path != about.script:
                where = f"{about.title(file.path)}:{line.number}"
            parts.append(
                f"{time_of(line.host_ns):>9} {time_of(line.device_ns):>9}  {where}"
                f"  {line.text[:COLUMNS]}".rstrip()
            )
    if summary.kernels:
        parts.append(f"{'launches':>9} {'time':>9} {'bytes':>9}  kernel")
    for kernel in summary.kernels[:MOST_ROWS]:
        parts.append(
            f"{count(kernel.count):>9} {time_of(kernel.elapsed_ns):>9}"
            f" {size(kernel.nbytes):>9}  {kernel.name}"
        )
    parts += [f"advice: {each.title}. {each.text}" for each in advice(summary)]
    return "\n".join(parts)
