"""Nobody waits for kernels that take a compiler longer than NumPy takes for one evaluation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from clfuse import config
from clfuse.ir.nodes import Node
from clfuse.ir.snapshot import Snapshot, take
from clfuse.policy import allowance, tiering, warm_start
from clfuse.policy.tiering import Tier
from clfuse.target.costs import Costs
from tests.support.recording import TRAITS, array, call

COSTS = Costs(addition_ns=1.0, planning_ns=1e3, building_ns=1e3, function_building_ns=1e7)


@pytest.fixture(autouse=True)
def first_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(allowance, "_core", None)
    monkeypatch.setattr(tiering, "TRUSTED_PLANS", -math.inf)
    warm_start.forget()
    tiering.forget()
    with config.override(host_us=50, build_after_ms=50):
        yield
    tiering.forget()


def device(costs: Costs) -> Any:
    """One whose memory the host shares, which is open."""
    return SimpleNamespace(
        costs=costs, traits=TRAITS, fp64=True, shares_memory=True, is_open=True, may_wait=False
    )


def chain(size: int, name: str) -> Snapshot:
    """40 operations of which no two are alike, by where they have their operands."""
    first, second = array(size), array(size)
    nodes: list[Node] = [first, second]
    for turn in range(40):
        operand = nodes[-1 - turn * turn % min(len(nodes), 7)]
        nodes.append(call("add", call(name, operand), nodes[-1]))
    return take([nodes[-1]])


def tier(snapshot: Snapshot, costs: Costs) -> Tier:
    tiering.forget()
    return tiering.tier_of(snapshot, device(costs), behind=True)


@pytest.mark.parametrize(("size", "expected"), [(200_000, Tier.BEHIND), (2_000_000, Tier.NOW)])
def test_kernels_of_sines_are_awaited_if_numpy_takes_longer(
    size: int, expected: Tier
) -> None:
    """40 sines take a compiler .4 s here, NumPy .09 and .9 s."""
    assert tier(chain(size, "sin"), COSTS) is expected


def test_what_compilers_take_little_for_is_waited_for_as_before() -> None:
    """80 square roots and sums: NumPy takes .4 s."""
    assert tier(chain(2_000_000, "sqrt"), COSTS) is Tier.NOW
    assert tier(chain(300_000, "sin"), Costs(addition_ns=1.0, function_building_ns=1e5)) is Tier.NOW


def test_kernels_that_an_earlier_run_has_built_are_waited_for() -> None:
    snapshot = chain(300_000, "sin")
    assert tier(snapshot, COSTS) is Tier.BEHIND
    warm_start.note(tiering._name(snapshot))
    assert tier(snapshot, COSTS) is Tier.NOW


def test_sines_that_come_once_are_not_built_aside() -> None:
    """A compiler would take ten times what NumPy takes for it."""
    costs = Costs(addition_ns=1.0, function_building_ns=3e7)
    assert tier(chain(200_000, "sin"), costs) is Tier.WAIT
    snapshot = chain(200_000, "sin")
    tiering.forget()
    found = [tiering.tier_of(snapshot, device(costs), behind=True) for _ in range(2)]
    assert found == [Tier.WAIT, Tier.BEHIND]
