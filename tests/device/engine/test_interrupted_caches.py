"""What plans, graphs and recorded functions are found by holds together where an interrupt comes
while one is kept and another one forgotten: later programs run, and no more is kept than before."""

from __future__ import annotations

from contextlib import suppress
from types import CodeType
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse.engine import evaluate, plans
from clfuse.ir import known_graphs
from clfuse.tools.check.ended_early import Interrupt
from clfuse.tracing import jit as jitted

pytestmark = pytest.mark.clfuse_only

MOST = 3


class InFunction(Interrupt):
    """Interrupts one function."""

    name = ""

    def is_meant(self, code: CodeType) -> bool:
        return super().is_meant(code) and code.co_name == self.name


def program(number: int) -> None:
    """Another structure for each number, evaluated as often as makes a graph known."""
    for _ in range(known_graphs.LEARN_AFTER + 2):
        x = cf.arange(50.0)
        for _ in range(number % 6 + 1):
            x = cf.sqrt(x * x + 1)
        cf.evaluate(x)
        expected = np.sqrt(np.arange(50.0) ** 2 + number % 6 + 1)
        np.testing.assert_allclose(x.get(), expected, 1e-13)


def call(function: Any, number: int) -> None:
    """Another signature for each number."""
    size = number % 6 + 2
    np.testing.assert_array_equal(function(cf.arange(float(size))), np.arange(size) * 2 + 1)


@pytest.mark.parametrize("name", ["make", "learn", "unlist", "forget", "forget_plans"])
def test_a_cache_of_plans_holds_together(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "PLANS_KEPT", MOST)
    monkeypatch.setattr(known_graphs, "MOST_KNOWN", MOST)
    monkeypatch.setattr(InFunction, "name", name)
    interrupts = 0
    with cf.config.override(host_us=0):
        for number in range(6):
            program(number)
        for at in range(1, 40):
            interrupt = InFunction(at)
            with suppress(KeyboardInterrupt), interrupt:
                program(at)
                evaluate.forget_plans()
            interrupts += bool(interrupt.where)
            for number in range(at + 1, at + 7):
                program(number)
            if not interrupt.where:
                break
        assert len(plans.kept) <= MOST + 1
        assert len(known_graphs.known) <= MOST + 1
        for listed, kept in (
            (plans._numbers, plans.kept),
            (known_graphs.numbers, known_graphs.known),
        ):
            found = {(key, number) for key, numbers in listed.items() for number in numbers}
            assert found == set(kept)
    evaluate.forget_plans()
    assert interrupts > 1


def test_the_signatures_of_a_function_hold_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jitted, "SIGNATURES_KEPT", MOST)
    monkeypatch.setattr(InFunction, "name", "call")
    monkeypatch.setattr(jitted, "warn_user", lambda *arguments: None)
    function = cf.jit(lambda x: x * 2 + 1)
    interrupts = 0
    for number in range(6):
        call(function, number)
    for at in range(1, 60):
        interrupt = InFunction(at)
        with suppress(KeyboardInterrupt), interrupt:
            call(function, at)
        for number in range(at + 1, at + 7):
            call(function, number)
            call(function, number)
        if not interrupt.where:
            break
        interrupts += 1
    assert interrupts > 20
