"""Advice: what a run shows that the program could do otherwise, one function a rule.

Each says what was seen, in numbers, and what to write instead. What takes less than a part of the
run (`rules.piece.LEAST_SHARE`) is not worth a word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from clfuse._core import loading

from .places import NOWHERE
from .rules.dtypes import double_precision, doubled_dtype, whole_power, wide_of_narrow
from .rules.loops import (
    copies_in_loop,
    element_loop,
    fallback_in_loop,
    jit_for_loop,
    look_in_loop,
    mask_in_loop,
    new_structures,
    small_arrays,
)
from .rules.piece import Advice, is_worth
from .summary import Summary
from .words import time_of

__all__ = ["RULES", "Advice", "advice"]


def first_builds(summary: Summary) -> Iterator[Advice]:
    """Much of the run is the compiler's, once."""
    waited: dict[int, int] = {}
    for build in summary.collector.builds:
        if not build.is_behind:
            waited[build.line] = waited.get(build.line, 0) + build.end_ns - build.start_ns
    spent = sum(waited.values())
    place = summary.place(max(waited, key=lambda line: waited[line])) if waited else None
    if place is None or not is_worth(spent / 4, summary):
        return
    yield Advice(
        "first_builds",
        f"The program waits {time_of(spent)} for kernels to be built",
        "They are kept: the next run finds them, and its report shows what the program takes from"
        " then on. `python -m clfuse warm` with the program's name builds them beforehand.",
        *place, spent,
    )  # fmt: skip


def no_compiled_part(summary: Summary) -> Iterator[Advice]:
    """Recording takes long, and clfuse's compiled part is not there."""
    state = loading.state()
    if state in ("in use", "not asked for yet") or state.startswith("off"):
        return
    spent: dict[int, int] = {}
    for (line, kind), elapsed in summary.collector.sampler.elapsed.items():
        if kind == "record":
            spent[line] = spent.get(line, 0) + elapsed
    total = sum(spent.values())
    known = {line: elapsed for line, elapsed in spent.items() if line != NOWHERE}
    place = summary.place(max(known, key=lambda line: known[line])) if known else None
    if place is None or not is_worth(total / 2, summary):
        return
    yield Advice(
        "no_compiled_part",
        f"clfuse's compiled part is {state}",
        f"Recording and small arrays take {time_of(total)} in plain Python; in C they take a"
        " tenth to two thirds of it. Install a C compiler and Python's headers (Debian, Ubuntu:"
        " `apt-get install gcc python3-dev`), and then clfuse again with `--force-reinstall"
        " --no-deps --no-cache-dir`, or a wheel that has it.",
        *place, total / 2,
    )  # fmt: skip


RULES: Final[tuple[Callable[[Summary], Iterator[Advice]], ...]] = (
    jit_for_loop, look_in_loop, mask_in_loop, element_loop, small_arrays, fallback_in_loop,
    copies_in_loop, new_structures, doubled_dtype, double_precision, wide_of_narrow, whole_power,
    first_builds, no_compiled_part,
)


def advice(summary: Summary) -> list[Advice]:
    """What all rules say of a run; what saves most comes first."""
    found = [each for rule in RULES for each in rule(summary) if each.line != NOWHERE]
    return sorted(found, key=lambda each: -each.saves_ns)
