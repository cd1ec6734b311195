"""Remainder loops: the end of a row in shorter vectors, before single elements.

    1000 floats     62 vectors of 16, 1 of 8    instead of 62 vectors and 8 single elements

A single element takes as long as a vector: the remainder of 8 was a sixth of the time of a softmax
of such rows. The folds of shorter vectors have accumulators of their own, ``v0_r8``.
"""

from __future__ import annotations

from typing import Final

from clfuse.dataclass import frozen
from clfuse.schedule.records import Kernel, Step

from .body import Body
from .expressions import Expressions, Register
from .folds import Fold
from .loops import compute
from .nan_tracking import WatchedFold

__all__ = ["Rest", "rests_of"]

LEAST_SHARE: Final = 10
"""A rest of less single elements than this part of a row's vectors is not worth the text."""

LEAST_WEIGHT: Final = 4.0
"""Operations of an element, in additions. Sums and sums of squares of short rows took .85 to 1.2 of
the time, softmax and sums of exponentials .47 to .95 (both runtimes of an EPYC). Maxima always
gain: to compare single elements, NaN and all, takes several times as long as to add them."""

MOST: Final = 2
"""Shorter vectors of different lengths."""


@frozen
class Rest:
    """The loop over vectors of `width`: lines that declare accumulators, its body, and the lines
    that fold these into the row's."""

    width: int
    start: list[str]
    body: list[str]
    joining: list[str]


def rests_of(
    kernel: Kernel,
    body: Body,
    folds: list[Fold],
    writers: dict[int, Expressions],
    uniform: dict[int, Register],
) -> list[Rest]:
    """The loops between a row's vectors and its single elements, longer ones first."""
    return [
        _rest(kernel, body, folds, {key: writers[key] for key in writers if key <= width}, uniform)
        for width in _widths(kernel, body, folds)
    ]


def _widths(kernel: Kernel, body: Body, folds: list[Fold]) -> list[int]:
    """The lengths of the vectors that are worth it."""
    extent, width = kernel.extents[kernel.vector], kernel.width
    rest = extent % width
    if kernel.schedule != "cpu" or width == 1 or body.seams or kernel.compensated:
        return []
    if kernel.chunk == kernel.vector or rest * LEAST_SHARE < extent // width:
        return []
    watched = any(isinstance(fold, WatchedFold) for fold in folds)
    if any(fold.is_argument for fold in folds) or not (watched or _weight(kernel) >= LEAST_WEIGHT):
        return []
    halves = [width >> power for power in range(1, width.bit_length() - 1)]
    return [half for half in halves if rest & half][:MOST]


def _weight(kernel: Kernel) -> float:
    """What is done with an element of the loop, in additions."""
    return sum([item.op.weight for item in kernel.body if isinstance(item, Step)])


def _rest(
    kernel: Kernel,
    body: Body,
    folds: list[Fold],
    writers: dict[int, Expressions],
    uniform: dict[int, Register],
) -> Rest:
    width = max(writers)
    writer, single = writers[width], writers[1]
    start: list[str] = []
    joining: list[str] = []
    lines, registers = compute(body, kernel, width, uniform)
    for fold in folds:
        number = fold.number
        value = f"v{number}_r{width}"
        item, _ = fold.item(writer, registers)
        start += fold.start(writer, value, "")
        lines += fold.fold(writer, value, "", item, "")
        joining += [
            "{",
            *fold.renamed(writer, value),
            *fold.across_lanes(writers, width),
            *fold.fold(single, f"q{number}", "", f"l{number}", ""),
            "}",
        ]
    return Rest(width, start, lines, joining)
