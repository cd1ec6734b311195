"""What ``CLFUSE_DEBUG`` prints to the standard error: from level 2 on new plans, from 3 on their
OpenCL C, at 4 launches.

Level 4 waits after every launch, so that the time is the kernel's own.
"""

from __future__ import annotations

import itertools
import sys
import time
from typing import Any, Final

from clfuse.config import settings
from clfuse.runtime.launches import launch, stepping
from clfuse.runtime.launches.program import Program
from clfuse.schedule.records import Schedule
from clfuse.target.traits import DeviceTraits

from .executable import when_planned
from .explain import Plan, explained

__all__ = ["follow_level", "show_plans"]

PLANS: Final = 2
SOURCES: Final = 3
LAUNCHES: Final = 4

_numbers = itertools.count()


def follow_level(level: int) -> None:
    """Print from here on what a level prints."""
    _include(when_planned, _print_plan, level >= PLANS)
    _include(launch.observers, _print_launch, level >= LAUNCHES)


def show_plans() -> None:
    """Print every new plan from here on, whatever the level."""
    if settings.debug_level < PLANS:
        when_planned.append(_show_plan)


def _show_plan(schedule: Schedule, traits: DeviceTraits, device: str) -> None:
    """`_print_plan`, which `follow_level` does not take away."""
    _print_plan(schedule, traits, device)


def _include(functions: list[Any], function: Any, wanted: bool) -> None:
    if wanted and function not in functions:
        functions.append(function)
    elif not wanted and function in functions:
        functions.remove(function)


def _print_plan(schedule: Schedule, traits: DeviceTraits, device: str) -> None:
    kernels = explained(schedule, traits)
    lines = [f"plan {next(_numbers)}: {Plan(kernels, tuple(schedule.cuts), device)}"]
    if settings.debug_level >= SOURCES:
        lines += [text for kernel in kernels if (text := _own_text(kernel.source))]
    _print("\n".join(lines))


def _own_text(source: str) -> str:
    """A kernel without the functions before it, which are hundreds of lines."""
    return source[max(source.find("__kernel"), 0) :].rstrip()


def _print_launch(program: Program, event: Any) -> None:
    start_ns = time.perf_counter_ns()
    stepping.finish(program.device, program.name)
    elapsed_us = (time.perf_counter_ns() - start_ns) / 1000
    _print(f"launch {program.name}, waited for {elapsed_us:,.0f} us")


def _print(text: str) -> None:
    print("\n".join([f"clfuse: {line}" for line in text.splitlines()]), file=sys.stderr)
