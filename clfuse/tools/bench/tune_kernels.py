"""The kernels of the benchmark's programs, tuned at once (``bench --tune``).

Each program runs until all of its kernels have tried their candidates. What ordinary runs of any
program lose two percent of their time for takes seconds here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import clfuse
from clfuse import config
from clfuse.engine.evaluate import forget_plans
from clfuse.engine.tuning import launches
from clfuse.runtime.files import geometries
from clfuse.runtime.files.geometries import Kept

from .contenders import upload
from .programs import PROGRAMS, results

__all__ = ["tune_programs"]

MOST_RUNS: Final = 1000
MOST_S: Final = 60.0
"""Of a program: one whose kernels are not done then goes on where it is met the next time."""

FIRST_RUNS: Final = 3
"""After which a program's plans have come back."""


def tune_programs(
    names: Sequence[str], *, quick: bool = False, progress: Callable[[str], None] = print
) -> Iterator[tuple[str, Kept]]:
    """Tune the kernels of programs on the current device.

    Yields
    ------
    name : str
        A program's.
    kept : Kept
        What was found out about one of its kernels.
    """
    device = geometries.about(clfuse.get_device().traits)
    for name in names:
        progress(name)
        before = {each.key: each for each in geometries.of_device(device)}
        program = PROGRAMS[name]
        arrays = upload(program.make_inputs(quick))
        with config.override(build_after_ms=0), launches.at_once():
            forget_plans()
            start = time.perf_counter()
            for run in range(MOST_RUNS):
                values = results(program.compute(clfuse, *arrays))
                clfuse.evaluate(*values)
                clfuse.synchronize()
                del values
                is_done = all(each.is_done for each in launches.running)
                if (run >= FIRST_RUNS and is_done) or time.perf_counter() - start > MOST_S:
                    break
        for each in geometries.of_device(device):
            if before.get(each.key) != each:
                yield name, each
    forget_plans()
