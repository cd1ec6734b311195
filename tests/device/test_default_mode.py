"""Short processes with the settings as they are, which tests change: `tests.fuzz.default_mode`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fuzz import default_mode
from tests.fuzz.default_process import draw_plan

pytestmark = pytest.mark.clfuse_only

SEED = 32


def test_a_process_with_threads_and_forks_ends_well(tmp_path: Path) -> None:
    assert draw_plan(SEED).parts == ("fork_in_threads",)
    device = os.environ.get("CLFUSE_DEVICE", "")
    result = default_mode.run_one(SEED, device, tmp_path, late_s=60)
    assert not result.problem, result
