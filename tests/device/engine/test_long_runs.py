"""What a process holds does not grow with what it evaluates; threads that take turns at every few
instructions, and a process without the interpreter's lock, compute NumPy's values."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.fuzz import long, threads

pytestmark = pytest.mark.clfuse_only

GROWTH_MB: Final = 4
"""By which resident memory may change from one look to the next: what a driver's threads take."""

FIRST_TIMES: Final = 30
"""Objects of a kind that may be more after 500 evaluations: shapes that came first then."""


@pytest.mark.parametrize("names", [
    "jitted kernels texts_in_c", "views masks held_cycles", "draws mistakes recorded_in_vain",
    "host_arrays products texts",
])
def test_evaluations_of_known_programs_leave_nothing_behind(names: str) -> None:
    taken, problems = long.run(
        2000, names.split(), lines=4, every=20, host_us=(0, 1_000_000), show=lambda line: None
    )
    assert not problems, problems[0]
    # What is met for the first time is known after three quarters, whichever device has it.
    (_, before), (_, after) = taken[-2], taken[-1]
    for kind in set(after.handles) - {"objects", "device_kB"}:
        assert after.handles[kind] - before.handles[kind] < FIRST_TIMES, kind
    assert after.handles["files"] == before.handles["files"]
    assert after.handles["objects"] - before.handles["objects"] < 150  # one an evaluation: 500
    assert after.mb - before.mb < GROWTH_MB


def test_what_stays_is_seen() -> None:
    """A program that keeps an array of each evaluation is found."""
    kept = []

    def leaks(xp: object, draw: object) -> list[object]:
        kept.append(long.PROGRAMS["views"][0](long.cf, long.random.Random(len(kept) % 5)))
        return []

    long.PROGRAMS["leaks"] = leaks, 1  # type: ignore[assignment]
    try:
        taken, _ = long.run(
            1000, ["leaks"], lines=2, every=1 << 30, host_us=(0,), show=lambda line: None
        )
    finally:
        del long.PROGRAMS["leaks"]
    assert taken[-1][1].handles["Storage"] - taken[-2][1].handles["Storage"] > 400


def test_threads_that_switch_at_each_instruction_lose_nothing() -> None:
    done, problems = threads.run(4, round_s=4)
    assert not problems, problems[0]
    assert done


WITHOUT_A_LOCK: Final = """
import sys
sys._is_gil_enabled = lambda: False
import clfuse._core.loading
assert clfuse._core.loading.load() is None
from tests.fuzz import long
names = [name for name in long.PROGRAMS if name not in ("new_structures", "functions_of_its_own")]
_, problems = long.run(500, names, lines=1, every=1, show=lambda line: None)
print(problems)
"""


def test_an_interpreter_without_a_lock_gets_numpys_values() -> None:
    """Nothing that counts references, or that takes a line of Python for one step, is used then."""
    folder = Path(__file__).parents[3]
    found = subprocess.run(
        [sys.executable, "-c", WITHOUT_A_LOCK], capture_output=True, text=True, cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)}, check=False,
    )  # fmt: skip
    assert found.stdout == "[]\n", found.stderr
