"""Tables of what the benchmark measured: as text, Markdown and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from .measure import Row
from .recording import Figure

__all__ = ["failures", "markdown", "recording_lines", "to_json"]

MISSING = "-"

HEADINGS = (
    "program",
    "NumPy ms",
    "clfuse ms",
    "jit ms",
    "vs NumPy",
    "vs best peer",
    "vs limit",
    "vs unfused",
    "first s",
    "kernels",
    "peak MB (results)",
    "GB/s",
    "of copy",
)


def geometric_mean(values: Iterable[float]) -> float:
    """The geometric mean of those that are numbers; NaN where none is.

    >>> geometric_mean([2.0, 8.0, float("nan")])
    4.0
    """
    logarithms = [math.log(value) for value in values if not math.isnan(value)]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else math.nan


def number(value: float, form: str = ".2f", unit: str = "") -> str:
    """A number as text, with a dash for one that was not measured."""
    return MISSING if math.isnan(value) else f"{value:{form}}{unit}"


def cells(row: Row) -> tuple[str, ...]:
    """One line of the table."""
    peer = row.best_peer
    footprint = row.footprint
    timing = row.timings.get("clfuse")
    kernels = peak = MISSING
    if footprint is not None:
        kernels = str(footprint.kernels)
        kernels += f" + {footprint.library_calls} library" if footprint.library_calls else ""
        kernels += f" + {footprint.fallbacks} host" if footprint.fallbacks else ""
        peak = f"{footprint.peak_nbytes / 1e6:.1f} ({footprint.result_nbytes / 1e6:.1f})"
    return (
        row.program.name,
        number(row.seconds("numpy") * 1e3, ".3g"),
        number(row.seconds("clfuse") * 1e3, ".3g"),
        number(row.seconds("jit") * 1e3, ".3g"),
        number(row.ratio("numpy"), ".2f", "x"),
        f"{number(row.ratio(peer), '.2f', 'x')} ({peer})" if peer else MISSING,
        number(row.ratio("limit"), ".2f", "x"),
        number(row.ratio("unfused"), ".2f", "x"),
        number(math.nan if timing is None else timing.first_s, ".2f"),
        kernels,
        peak,
        number(row.bandwidth / 1e9, ".1f"),
        number(row.copy_fraction * 100, ".0f", "%"),
    )


def means(rows: Sequence[Row]) -> dict[str, float]:
    """The geometric means of the ratios, by whom they are to."""
    return {
        "numpy": geometric_mean(row.ratio("numpy") for row in rows),
        "best_peer": geometric_mean(row.ratio(row.best_peer) for row in rows if row.best_peer),
        "limit": geometric_mean(row.ratio("limit") for row in rows),
        "unfused": geometric_mean(row.ratio("unfused") for row in rows),
    }


def last_line(rows: Sequence[Row]) -> tuple[str, ...]:
    """The table's last line."""
    ratios = [number(mean, ".2f", "x") for mean in means(rows).values()]
    return ("geometric mean", "", "", "", *ratios, "", "", "", "", "")


def markdown(rows: Sequence[Row], title: str) -> str:
    """The table in Markdown, its columns aligned so that it reads as text too."""
    lines = [HEADINGS, *(cells(row) for row in rows), last_line(rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]

    def line(texts: Sequence[str]) -> str:
        padded = (
            text.ljust(width) if column == 0 else text.rjust(width)
            for column, (text, width) in enumerate(zip(texts, widths, strict=True))
        )
        return f"| {' | '.join(padded)} |"

    rule = "|".join(
        "-" * (width + 2) if column == 0 else "-" * (width + 1) + ":"
        for column, width in enumerate(widths)
    )
    body = "\n".join(line(texts) for texts in lines[1:])
    return f"{title}\n\n{line(HEADINGS)}\n|{rule}|\n{body}\n\n{LEGEND}\n"


LEGEND = (
    "Medians; a ratio above 1 means that clfuse is faster. Jit: the program under clfuse.jit; the "
    "ratios are\nwithout it. First: seconds of the first run, with planning and compiling. Peak: "
    "the most device memory\nbeyond the inputs, and in brackets what the results alone take. GB/s: "
    "bytes that the kernels read and\nwrite, by the plan; of copy: as a part of what a copy reaches"
    " in the same run. Limit: OpenCL written by\nhand. Unfused: one kernel per operation."
)


def failures(rows: Sequence[Row]) -> list[str]:
    """A line for every contender that failed or was wrong."""
    return [
        f"{row.program.name}: {name}: {timing.failure}"
        for row in rows
        for name, timing in row.timings.items()
        if timing.failure
    ]


def recording_lines(figures: Sequence[Figure]) -> list[str]:
    """The costs of laziness, a line each."""
    width = max(len(figure.name) for figure in figures)
    return [
        f"{figure.name:{width}}  {figure.value:8.3g} {figure.unit:8} "
        f"(at most {figure.target:g}{'' if figure.reached else ': NOT REACHED'})"
        for figure in figures
    ]


def to_json(rows: Sequence[Row], figures: Sequence[Figure], context: dict[str, Any]) -> str:
    """Everything that was measured; NaN becomes null."""
    document = {
        "context": context,
        "programs": {row.program.name: as_record(row) for row in rows},
        "geometric_means": means(rows),
        "recording": [
            {
                "name": figure.name,
                "value": figure.value,
                "unit": figure.unit,
                "target": figure.target,
            }
            for figure in figures
        ],
    }
    return json.dumps(without_nan(document), indent=1) + "\n"


def as_record(row: Row) -> dict[str, Any]:
    """One program's measurements as plain values."""
    footprint = row.footprint
    return {
        "what": row.program.what,
        "contenders": {
            name: {
                "median_s": timing.median_s,
                "least_s": timing.least_s,
                "first_s": timing.first_s,
                "error": timing.error,
                "failure": timing.failure,
                "times_s": timing.times,
                "ratio": row.ratio(name),
            }
            for name, timing in row.timings.items()
        },
        "best_peer": row.best_peer,
        "kernels": None if footprint is None else footprint.kernels,
        "library_calls": None if footprint is None else footprint.library_calls,
        "fallbacks": None if footprint is None else footprint.fallbacks,
        "nbytes": None if footprint is None else footprint.nbytes,
        "peak_nbytes": None if footprint is None else footprint.peak_nbytes,
        "result_nbytes": None if footprint is None else footprint.result_nbytes,
        "bytes_per_s": row.bandwidth,
        "copy_bytes_per_s": row.copy_nbytes / row.copy_s,
        "copy_fraction": row.copy_fraction,
    }


def without_nan(value: Any) -> Any:
    """`value` with null for every number that JSON cannot write."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_nan(item) for item in value]
    return value
