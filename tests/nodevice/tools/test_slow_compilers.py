"""Programs on which a vendor's compiler takes minutes are left out where time is short."""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

from tests.vendors import compiling, running

SLEEPS = [sys.executable, "-c", "import time; time.sleep(30)"]


@pytest.fixture
def batch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A batch of one program that no compiler finishes."""
    monkeypatch.setattr(compiling, "SLOW_S", 0.2)
    monkeypatch.setattr(compiling, "_by_vendor", lambda *_: running.run(SLEEPS))
    return SimpleNamespace(programs=[SimpleNamespace(key="slow")])


def test_a_slow_program_is_left_out_where_time_is_short(batch: Any) -> None:
    tools: Any = None
    assert compiling._compiled(tools, batch, time.monotonic() + 60) == []
    assert running.limit_s.get() == running.TIMEOUT_S


def test_a_slow_program_is_a_problem_where_all_must_compile(batch: Any) -> None:
    tools: Any = None
    before = running.limit_s.set(0.2)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compiling, "TIMEOUT_S", 0.2)
            patch.setattr(compiling, "_of", lambda *_: {})
            (result,) = compiling._compiled(tools, batch, float("inf"))
    finally:
        running.limit_s.reset(before)
    assert all("took more than 0.2 s" in log for log in result.problems.values())
    assert len(result.problems) == len(compiling.VENDORS)
