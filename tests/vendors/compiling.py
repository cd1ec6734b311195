"""Compiles programs for all targets, several batches side by side."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.vendors import amd, intel, nvidia
from tests.vendors.figures import CompileError, Figures
from tests.vendors.programs import Batch, Program, alone, batches
from tests.vendors.running import TIMEOUT_S, TooSlowError, limit_s
from tests.vendors.toolchain import Toolchain, find

__all__ = ["TARGETS", "Result", "Vendor", "compile_all"]


@dataclass(frozen=True, slots=True)
class Vendor:
    """One vendor's compiler and the chips that it compiles for: `chips` have double precision,
    `single` have not."""

    name: str
    figures: Callable[[Toolchain, tuple[str, ...], Path, str], dict[str, dict[str, Figures]]]
    chips: tuple[str, ...]
    single: tuple[str, ...] = ()

    def chips_for(self, batch: Batch) -> tuple[str, ...]:
        """The chips that can run a batch."""
        return self.chips if batch.needs_fp64 else self.chips + self.single


VENDORS: Final = (
    Vendor("nvidia", nvidia.figures, ("sm_70", "sm_90")),
    Vendor("amd", amd.figures, ("gfx90a", "gfx1100")),
    Vendor("intel", intel.figures, ("pvc",), ("tgllp", "dg2-g10")),
)

SLOW_S: Final = 60
"""Where there is not time for all: hundreds of remainders of sixteen bytes each, as a test of long
loops makes them, take Intel's compiler minutes and gigabytes."""

TARGETS: Final = tuple([chip for vendor in VENDORS for chip in vendor.chips + vendor.single])


@dataclass(slots=True)
class Result:
    """What the compilers say of one program.

    `figures` are by target and kernel; `problems` the logs of those that refused, by vendor.
    `seconds` is its part of the time that its batch took.
    """

    program: Program
    figures: dict[str, dict[str, Figures]]
    problems: dict[str, str]
    seconds: float


def compile_all(
    programs: Iterable[Program], workers: int = 2, until: float = float("inf")
) -> Iterator[Result]:
    """Yield the result of each program, in the order in which they are done.

    Programs whose batch is not begun before the time `until` (`time.monotonic`) are left out, and
    then also those whose batch takes a compiler longer than `SLOW_S`.
    """
    tools = find()
    # Batches with much the same heads are neighbours: keys mix what is compiled before `until`.
    order = sorted(batches(programs), key=lambda batch: batch.programs[0].key)
    with ThreadPoolExecutor(workers) as pool:
        waiting = [pool.submit(_compiled, tools, batch, until) for batch in order]
        for done in as_completed(waiting):
            yield from done.result()


def _compiled(tools: Toolchain, batch: Batch, until: float) -> list[Result]:
    if time.monotonic() >= until:
        return []
    if until < float("inf"):
        limit_s.set(SLOW_S)
        try:
            return _compiled(tools, batch, float("inf"))
        except TooSlowError:
            return []
        finally:
            limit_s.set(TIMEOUT_S)
    begin = time.monotonic()
    figures: dict[str, dict[str, Figures]] = {}
    problems = {}
    for vendor in VENDORS:
        try:
            figures.update(_by_vendor(tools, vendor, batch))
        except TooSlowError as error:
            if limit_s.get() < TIMEOUT_S:
                raise
            problems[vendor.name] = str(error)
        except CompileError as error:
            problems[vendor.name] = str(error)
    if problems and len(batch.programs) > 1:
        # Somebody in it is wrong, or they are together: each by itself says who.
        return [
            result for program in batch.programs
            for result in _compiled(tools, alone(program), float("inf"))
        ]
    seconds = (time.monotonic() - begin) / len(batch.programs)
    results = [
        Result(program, _of(program, batch, figures), dict(problems), seconds)
        for program in batch.programs
    ]
    if len(batch.programs) == 1:
        return results
    # A function that several kernels call may be called where one kernel has it inlined: what a
    # kernel has in memory because of that is not its own.
    apart = []
    for result in results:
        kernels = [one for found in result.figures.values() for one in found.values()]
        if any(one.spilled_nbytes or one.stack_nbytes for one in kernels):
            apart += _compiled(tools, alone(result.program), float("inf"))
        else:
            apart.append(result)
    return apart


def _by_vendor(
    tools: Toolchain, vendor: Vendor, batch: Batch
) -> dict[str, dict[str, Figures]]:
    with tempfile.TemporaryDirectory(prefix="clfuse-vendors-") as folder:
        source = Path(folder) / "batch.cl"
        source.write_text(batch.source, encoding="utf-8")
        found = vendor.figures(tools, vendor.chips_for(batch), source, batch.options)
    for chip, kernels in found.items():
        if set(kernels) != set(batch.names):
            raise CompileError(
                f"{chip}: kernels {sorted(batch.names)} became {sorted(kernels)}")
    return found


def _of(
    program: Program, batch: Batch, figures: dict[str, dict[str, Figures]]
) -> dict[str, dict[str, Figures]]:
    """The figures of one program of a batch, under its own kernels' names."""
    if len(batch.programs) == 1:
        return figures
    name = batch.names[batch.programs.index(program)]
    return {chip: {program.names[0]: kernels[name]} for chip, kernels in figures.items()}


def processors() -> int:
    """How many batches are compiled side by side where nobody says it."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
