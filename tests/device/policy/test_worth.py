"""Planning and building pay for themselves, or NumPy computes."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from clfuse.engine.evaluate import forget_plans
from clfuse.policy import tiering
from tests.support.marks import compiled

pytestmark = [
    pytest.mark.clfuse_only, compiled, pytest.mark.usefixtures("shared_memory", "first_run"),
]  # fmt: skip

SIZE = 20_011
VALUES = np.linspace(0.1, 0.9, SIZE)


def long_round(module: ModuleType, x: Any, number: int) -> Any:
    """Some 600 operations, no two numbers the same ones, and none a loop."""
    for is_root in np.random.default_rng(number).random(200) < 0.5:
        x = module.sqrt(x + 0.5) if is_root else module.square(x) - 0.25
        x = x * 0.5 + 0.1
    return x


def test_rounds_that_are_ever_others_are_not_all_planned(xp: ModuleType) -> None:
    x = xp.asarray(VALUES)
    before = xp.stats()["plans_made"]
    for number in range(12):
        for _ in range(3):  # a structure that comes a third time is a loop
            found = long_round(xp, x, number)
            xp.evaluate(found)
        assert_allclose(found.get(), long_round(np, VALUES, number), rtol=1e-9)
    assert xp.stats()["plans_made"] - before <= 4


def test_what_is_planned_is_paid_for(xp: ModuleType) -> None:
    x = xp.asarray(VALUES)
    for _ in range(40):
        y = xp.exp(-x) * 2 + xp.sqrt(x)
        xp.evaluate(y)
    assert 0 <= tiering._paid_ns[0] < tiering.CREDIT_NS
    forget_plans()
    assert tiering._paid_ns[0] == 0
