"""What tests of decisions share: each is a process that has just started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from clfuse.engine.evaluate import forget_plans
from clfuse.policy import warm_start


@pytest.fixture
def first_run(xp: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No plans, nothing that waits, and no earlier run that has earned kernels."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with xp.config.override(host_us=0, build_after_ms=0):
        xp.evaluate(xp.arange(3.0) * 2)  # what plans is there
        xp.evaluate()  # nothing waits of what earlier tests have recorded
    forget_plans()
    warm_start.forget()
    with xp.config.override(host_us=50, build_after_ms=50):
        yield
    forget_plans()
