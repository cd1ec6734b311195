"""What kernels of a class must not exceed on any target, and the table of what they have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from tests.vendors.classes import CLASSES
from tests.vendors.compiling import TARGETS, Result
from tests.vendors.figures import Figures

__all__ = ["BARS", "Bar", "exceeded", "table"]


@dataclass(frozen=True, slots=True)
class Bar:
    """The most that a kernel may have, and the least that its widest load must be.

    Attributes
    ----------
    spilled_nbytes, stack_nbytes : int
        See `Figures`.
    registers : int
        Of a work-item, on NVIDIA's and AMD's chips.
    load_nbytes : int
        0 where any load will do.
    """

    spilled_nbytes: int = 0
    stack_nbytes: int = 0
    registers: int = 255
    load_nbytes: int = 0


BARS: Final[dict[str, Bar]] = {name: Bar() for name in CLASSES} | {
    "map contiguous": Bar(registers=128, load_nbytes=16),
}
"""With 255 registers a group of 256 work-items still runs anywhere."""

BARS_THERE: Final[dict[tuple[str, str], Bar]] = {
    # Counters of digits in an array that is indexed by the digit, in radix_count and radix_scatter.
    ("sort", "sm_70"): Bar(stack_nbytes=64),
    ("sort", "sm_90"): Bar(stack_nbytes=64),
    # A tile of a sort: sixteen keys of a work-item and where they go; of 128 registers.
    ("sort", "gfx1100"): Bar(spilled_nbytes=124, stack_nbytes=4),
    # A thread runs 32 work-items there, with 64 words of each in its registers: too few for a block
    # of a product, for 20 steps of Mandelbrot and for gamma numbers in double precision.
    ("matmul", "pvc"): Bar(stack_nbytes=256),
    ("map", "pvc"): Bar(stack_nbytes=256),
    ("draws", "pvc"): Bar(stack_nbytes=512),
    # Rounds of 13 points: 26 doubles, and as many sums and differences, twice.
    ("fourier", "pvc"): Bar(stack_nbytes=1024),
    # Sums that keep the errors of their additions, of two values an element; of arg-folds sixteen
    # values of eight bytes, and where they lie.
    ("reduce", "pvc"): Bar(stack_nbytes=512),
    # A stencil of doubles in boxes, and 16 partial sums that are added in pairs.
    ("rows", "pvc"): Bar(stack_nbytes=32),
}
"""(class, target) -> its bar there, where it is another one: what kernels have today, with why."""


def bar_for(kernel_class: str, target: str) -> Bar:
    """The bar of a class on a target."""
    return BARS_THERE.get((kernel_class, target), BARS[kernel_class])


def exceeded(result: Result) -> Iterator[str]:
    """What is worse than its bar, a line each."""
    kernel_class = result.program.kernel_class
    for target, kernels in result.figures.items():
        bar = bar_for(kernel_class, target)
        is_counted = target.startswith(("sm_", "gfx"))
        for name, found in kernels.items():
            for what, value, most in (
                ("bytes of spilled registers", found.spilled_nbytes, bar.spilled_nbytes),
                ("bytes of stack", found.stack_nbytes, bar.stack_nbytes),
                ("registers", found.registers if is_counted else 0, bar.registers),
            ):
                if value > most:
                    yield f"{target}: {name} ({kernel_class}) has {value} {what}; the bar is {most}"
            if found.load_nbytes < bar.load_nbytes:
                yield (
                    f"{target}: {name} ({kernel_class}) loads {found.load_nbytes} bytes at a time;"
                    f" the bar is {bar.load_nbytes}"
                )


def worst(found: Iterable[Figures]) -> Figures:
    """The largest of each figure, but of widest loads the narrowest."""
    kernels = list(found)
    return Figures(
        max(one.registers for one in kernels),
        max(one.spilled_nbytes for one in kernels),
        max(one.stack_nbytes for one in kernels),
        max(one.local_nbytes for one in kernels),
        min((one.load_nbytes for one in kernels if one.load_nbytes), default=0),
    )


def table(results: Iterable[Result]) -> list[str]:
    """Lines of a table: for each class and target the worst of each figure, and the bar."""
    found: dict[tuple[str, str], list[Figures]] = defaultdict(list)
    for result in results:
        for target, kernels in result.figures.items():
            found[result.program.kernel_class, target] += kernels.values()
    header = ("class", "target", "kernels", "registers", "spilled", "stack", "local", "load", "bar")
    rows = [header]
    for kernel_class in CLASSES:
        for target in TARGETS:
            kernels = found.get((kernel_class, target))
            if not kernels:
                continue
            most, bar = worst(kernels), bar_for(kernel_class, target)
            figures = (most.registers, most.spilled_nbytes, most.stack_nbytes, most.local_nbytes,
                       most.load_nbytes)
            most_allowed = (bar.registers, bar.spilled_nbytes, bar.stack_nbytes, bar.load_nbytes)
            rows.append((kernel_class, target, str(len(kernels)), *map(str, figures),
                         " ".join(map(str, most_allowed))))
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    return [
        "  ".join(
            text.ljust(width) if column < 2 or column == len(header) - 1 else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
