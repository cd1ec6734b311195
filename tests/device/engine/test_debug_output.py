"""What CLFUSE_DEBUG prints: plans at level 2, OpenCL C at 3, launches at 4."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

from clfuse import config
from clfuse.engine import executable
from clfuse.errors import SettingError
from clfuse.runtime.launches import launch

pytestmark = pytest.mark.clfuse_only


@pytest.fixture
def printed(
    xp: ModuleType, capfd: pytest.CaptureFixture[str]
) -> Callable[[object, int], list[str]]:
    """The lines that a program prints at a level."""

    def run(level: object, size: int) -> list[str]:
        capfd.readouterr()
        with config.override(debug=level, host_us=0, build_after_ms=0):
            x = xp.asarray(np.arange(size) / 4)
            y = xp.sqrt(x) * 3
            np.testing.assert_array_equal(np.asarray(y), np.sqrt(np.arange(size) / 4) * 3)
            total = float((x + 1).sum())
        assert total == (np.arange(size) / 4 + 1).sum()
        return capfd.readouterr().err.splitlines()

    return run


@pytest.mark.parametrize("level", [0, 1, False, True, "sync"])
def test_low_levels_print_nothing(printed, level: object) -> None:
    assert printed(level, 901) == []


@pytest.mark.parametrize("level", [2, 3, 4])
def test_levels_print_plans_then_sources_then_launches(printed, level: int) -> None:
    lines = printed(level, 902 + level)
    assert all(line.startswith("clfuse: ") for line in lines)
    plans = [line for line in lines if re.match(r"clfuse: plan \d+: \d launch", line)]
    assert len(plans) == 2
    assert "clfuse:    fused: sqrt, multiply" in lines
    sources = [line for line in lines if line.startswith("clfuse: __kernel void map_sqrt_multiply")]
    assert len(sources) == (level >= 3)
    launches = [line for line in lines if line.startswith("clfuse: launch ")]
    assert any("map_sqrt_multiply, waited for" in line for line in launches) == (level >= 4)


def test_a_known_plan_is_not_printed_again_but_its_launches_are(printed) -> None:
    printed(4, 911)
    lines = printed(4, 911)
    assert not [line for line in lines if "plan " in line]
    assert len([line for line in lines if line.startswith("clfuse: launch ")]) >= 2


def test_launches_of_every_kind_are_printed_and_right(
    xp: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    @xp.kernel
    def scatter(i, x, places, y):
        y[places[i]] = x[i]

    values = np.arange(500.0)
    places = np.arange(500)[::-1].copy()
    before = xp.stats()["kernels_launched"]
    with config.override(debug=4, host_us=0, build_after_ms=0):
        y = xp.zeros(500)
        scatter(500, xp.asarray(values), xp.asarray(places), y)
        np.testing.assert_array_equal(np.asarray(y), values[::-1])
        np.testing.assert_array_equal(np.asarray(xp.cumsum(y)), np.cumsum(values[::-1]))
        np.testing.assert_array_equal(np.asarray(y[y > 100]), values[::-1][values[::-1] > 100])
        assert float(xp.asarray(values) @ y) == values @ values[::-1]
    launched = xp.stats()["kernels_launched"] - before
    lines = capfd.readouterr().err.splitlines()
    assert len([line for line in lines if line.startswith("clfuse: launch ")]) == launched > 3


def test_nobody_looks_on_afterwards() -> None:
    before = list(executable.when_planned), list(launch.observers)
    with config.override(debug=4):
        assert len(executable.when_planned) == len(before[0]) + 1
        assert len(launch.observers) == len(before[1]) + 1
    assert (executable.when_planned, launch.observers) == before


@pytest.mark.parametrize("level", ["5", "-1", "all"])
def test_there_are_no_other_levels(level: str) -> None:
    with (
        pytest.raises(SettingError, match="it takes 0, 1, 2, 3, 4 or sync"),
        config.override(debug=level),
    ):
        pass
