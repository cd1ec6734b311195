"""A chart of what the benchmark measured, drawn with matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from .measure import Row

__all__ = ["draw"]

COLORS = {
    "numexpr": "tab:olive",
    "jax": "tab:purple",
    "torch": "tab:orange",
    "clfuse": "tab:blue",
    "limit": "black",
}
LABELS = {"limit": "hand-written OpenCL", "torch": "torch.compile", "jax": "JAX"}


def draw(rows: Sequence[Row], title: str, path: Path) -> None:
    """Write a PNG (or what the path's ending says) with a group of bars for every program.

    A bar's length is how many times faster than NumPy a contender is, on a logarithmic scale.

    Raises ImportError: matplotlib is not installed.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = [name for name in COLORS if any(name in row.timings for row in rows)]
    figure, axes = pyplot.subplots(figsize=(9, 1 + 0.16 * len(rows) * (len(names) + 1)))
    height = 1 / (len(names) + 1)
    for place, name in enumerate(names):
        ratios = [row.seconds("numpy") / row.seconds(name) for row in rows]
        shown = [
            (number + place * height, ratio)
            for number, ratio in enumerate(ratios)
            if not math.isnan(ratio)
        ]
        axes.barh(
            [position for position, _ in shown], [ratio - 1 for _, ratio in shown], height, left=1,
            label=LABELS.get(name, name), color=COLORS[name],
        )
    axes.set_xscale("log")
    axes.axvline(1, color="gray", linewidth=1)
    axes.set_yticks(
        [number + height * (len(names) - 1) / 2 for number in range(len(rows))],
        [row.program.name for row in rows],
    )
    axes.invert_yaxis()
    axes.set_xlabel("times faster than NumPy (logarithmic)")
    axes.set_title(title, fontsize=9)
    axes.legend(loc="best", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
