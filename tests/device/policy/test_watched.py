"""Who watches changes nothing: the same evaluations are NumPy's, and the same kernels run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from clfuse import events
from clfuse.engine import executable, plans
from clfuse.tools.report.collector import Collector
from tests.device.policy.test_experience import costs
from tests.device.policy.test_small_programs import counted
from tests.support.marks import compiled

pytestmark = [pytest.mark.clfuse_only, compiled]

SIZE = 20_000
VALUES = np.linspace(0, 1, SIZE)


@contextmanager
def reported(xp: ModuleType) -> Iterator[None]:
    collector = Collector(lambda file: file == __file__)
    collector.start()
    try:
        assert events.watchers == [collector]
        yield
    finally:
        collector.stop()


WATCHERS: dict[str, Callable[[ModuleType], AbstractContextManager[Any]]] = {
    "nobody": lambda xp: nullcontext(),
    "a profile": lambda xp: xp.profile(),
    "a report": reported,
}


def evaluate(xp: ModuleType, x: Any, y: Any) -> tuple[int, int]:
    """How many evaluations of an expression were NumPy's, and how many kernels ran."""
    found = xp.sqrt(x * 2 + y)
    _, host, kernels = counted(xp, partial(xp.evaluate, found))
    assert_array_equal(found.get(), np.sqrt(x.get() * 2 + y.get()))
    return host, kernels


@pytest.fixture
def operands(xp: ModuleType) -> Iterator[tuple[Any, list[Any], list[Any]]]:
    """An array on the device; arrays whose evaluations with it make a plan and use it; and arrays
    on the host, for which NumPy is quicker, because a copy of them costs much."""
    if xp.get_device().traits.kind != "cpu":
        pytest.skip("no plan is left to NumPy there")
    with xp.config.override(host_us=0):
        computed, other = (xp.asarray(VALUES) / k for k in (2, 3))
        xp.evaluate(computed, other)
    free = dict.fromkeys(
        ("wake_ns", "launch_ns", "inline_ns", "inline_launch_ns", "node_ns", "copy_ns"), 0.0
    )
    with (
        costs(xp, **free, copied_nbyte_ns=1e6),
        xp.config.override(host_us=1, build_after_ms=0, background="off"),
    ):
        copied, *uploaded = [xp.asarray(VALUES * k) for k in range(1, 5)]
        with xp.config.override(host_us=0):
            xp.evaluate(copied + 1)
        yield computed, [*[copied] * 6, other], uploaded


@pytest.mark.parametrize("watcher", WATCHERS)
def test_a_known_plan_runs_whoever_watches(
    watcher: str, operands: tuple[Any, list[Any], list[Any]], xp: ModuleType
) -> None:
    """What runs without a choice runs without one while somebody watches."""
    computed, known, uploaded = operands
    with WATCHERS[watcher](xp):
        assert executable.is_observed() == (watcher != "nobody")
        assert [evaluate(xp, x, computed) for x in known] == [(0, 1)] * 7
        assert [evaluate(xp, x, computed) for x in uploaded] == [(0, 1)] * 3


@pytest.mark.parametrize("watcher", WATCHERS)
def test_a_choice_is_the_same_whoever_watches(
    watcher: str, operands: tuple[Any, list[Any], list[Any]], xp: ModuleType
) -> None:
    """It is NumPy's: so the test above is about plans that run without a choice."""
    computed, known, uploaded = operands
    with WATCHERS[watcher](xp):
        assert [evaluate(xp, x, computed) for x in known] == [(0, 1)] * 7
        plans.forget_ready()
        assert [evaluate(xp, x, computed) for x in uploaded] == [(1, 0)] * 3
