"""Random programs run alike under NumPy and under clfuse, on the device of the run.

``CLFUSE_FUZZ_PROGRAMS`` says how many (500), ``CLFUSE_FUZZ_SEED`` where to begin (0: the same
programs in every CI run; ``random``: others each time). A failure prints a script; the same seed
goes to ``python -m tests.fuzz --seed N``.
"""

from __future__ import annotations

import os
import random
from contextlib import nullcontext
from types import ModuleType

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz.generate import generate
from tests.fuzz.runner import check, report
from tests.fuzz.shrink import shrink

PROGRAMS = int(os.environ.get("CLFUSE_FUZZ_PROGRAMS", "500"))
SEED = os.environ.get("CLFUSE_FUZZ_SEED", "0")
FIRST = random.randrange(2 ** 32) if SEED == "random" else int(SEED)
BATCHES = min(PROGRAMS, 10)  # tests, so that several processes can share them
SHRINK_SECONDS = 30

_reports: dict[int, str | None] = {}


def _report(program_seed: int, xp: ModuleType) -> str | None:
    """What is wrong with a program, shrunk once however often Hypothesis asks."""
    if program_seed not in _reports:
        tested = generate(program_seed)
        difference = check(tested, xp)
        _reports[program_seed] = None if difference is None else report(
            *shrink(tested, difference, lambda p: check(p, xp), SHRINK_SECONDS))
    return _reports[program_seed]


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_programs_run_as_under_numpy(batch: int, xp: ModuleType) -> None:
    # Hypothesis draws the seeds; programs are made small by tests.fuzz.shrink, which knows them.
    @settings(max_examples=max(1, PROGRAMS // BATCHES), deadline=None, database=None,
              phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @seed(FIRST + batch)
    @given(st.integers(0, 2 ** 32 - 1))
    def run(program_seed: int) -> None:
        # Every plan is checked too: liveness and bounds.
        checked = xp.config.override(debug=True) if hasattr(xp, "config") else nullcontext()
        with checked:
            found = _report(program_seed, xp)
        if found is not None:
            pytest.fail(f"python -m tests.fuzz --seed {program_seed}\n{found}", pytrace=False)

    run()
