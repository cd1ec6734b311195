"""Many threads that take turns at every few instructions, on arrays of their own and shared ones.

    python -m tests.fuzz.threads --seconds 600

Each thread runs programs of `tests.fuzz.long` and compares them with NumPy; between them it writes
to its part of a shared array, reads arrays that nobody writes to, records upon what others have
recorded, and calls functions and kernels that all of them call. A thread that waits for good ends
the process with the places of all threads.
"""

from __future__ import annotations

import argparse
import faulthandler
import random
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from typing import Any

import numpy as np

import clfuse as cf
from tests.fuzz import long
from tests.fuzz.command_line import ended

COUNT = 16
PART = 1000
"""Elements of the shared array that one thread writes to."""

SWITCH_S = 1e-6
PATIENCE_S = 300

LEFT_OUT = ("mistakes", "new_structures", "functions_of_its_own")
"""Programs that change the warnings of the whole process, or build kernels all the time."""


class Shared:
    """What all threads of a round use."""

    def __init__(self, seed: int) -> None:
        self.given = np.random.default_rng(seed).integers(0, 9, (40, 50)).astype(float)
        self.read = cf.asarray(self.given)
        self.recorded = self.read * 3 + 1  # who comes first computes it
        self.written = cf.zeros(COUNT * PART)
        self.problems: list[str] = []
        self.done = 0


def _work(shared: Shared, number: int, seed: int, until: float, names: Sequence[str]) -> None:
    draw = random.Random(seed)
    part = slice(number * PART, (number + 1) * PART)
    added = 0
    while time.monotonic() < until and not shared.problems:
        for _ in range(draw.randint(1, 3)):
            shared.written[part] += number + 1
            added += number + 1
        if draw.random() < 0.5:
            found = set(np.array(shared.written[part]).tolist())
            if found != {added}:
                raise AssertionError(f"part {number}: {found}, not {added}")
        kind = draw.randrange(4)
        if kind == 0:
            axis = draw.choice([0, 1])
            _require((shared.read + number).sum(axis), (shared.given + number).sum(axis))
        elif kind == 1:
            _require(shared.recorded[1:] * number, (shared.given * 3 + 1)[1:] * number)
        elif kind == 2:
            _require(shared.recorded - shared.read, shared.given * 2 + 1)
        else:
            shared.recorded.max().item()
        name, one = draw.choice(names), draw.randrange(1 << 30)
        program = long.PROGRAMS[name][0]
        found_values = long.looked(program(cf, random.Random(one)))
        problem = long.difference(found_values, long.looked(program(np, random.Random(one))))
        if problem:
            raise AssertionError(f"{name}, seed {one}: {problem}")
        shared.done += 1
    found = set(np.array(shared.written[part]).tolist())
    if found != {added} and not shared.problems:
        raise AssertionError(f"part {number} in the end: {found}, not {added}")


def _require(actual: Any, wanted: Any) -> None:
    np.testing.assert_array_equal(np.array(actual), wanted)


def run(seconds: float, seed: int = 0, round_s: float = 10) -> tuple[int, list[str]]:
    """How many programs were run, and what was wrong; it ends at the first problem."""
    names = [name for name in long.PROGRAMS if name not in LEFT_OUT]
    before = sys.getswitchinterval()
    end = time.monotonic() + seconds
    done = 0
    draw = random.Random(seed)
    while time.monotonic() < end:
        shared = Shared(draw.randrange(1 << 30))
        until = min(end, time.monotonic() + round_s)

        def work(number: int, shared: Shared, until: float, one: int) -> None:
            try:
                with np.errstate(all="ignore"):
                    _work(shared, number, one, until, names)
            except BaseException:
                shared.problems.append(traceback.format_exc())

        faulthandler.dump_traceback_later(round_s + PATIENCE_S, exit=True)
        sys.setswitchinterval(SWITCH_S)
        try:
            with cf.config.override(host_us=draw.choice([0, 50, 1_000_000])):
                threads = [
                    threading.Thread(
                        target=work, args=(number, shared, until, draw.randrange(1 << 30))
                    )
                    for number in range(COUNT)
                ]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
        finally:
            sys.setswitchinterval(before)
            faulthandler.cancel_dump_traceback_later()
        done += shared.done
        if shared.problems:
            return done, shared.problems
    return done, []


def main() -> int:
    """Run the command line; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.threads", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    done, problems = run(options.seconds, options.seed)
    return ended(problems, 3, f"{done} programs in {COUNT} threads")


if __name__ == "__main__":
    sys.exit(main())
