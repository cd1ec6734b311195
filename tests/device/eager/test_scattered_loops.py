"""Loops that ask for elements and write where index arrays say: sieves, queues, relaxations."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import host
from tests.support.marks import compiled


@pytest.fixture(autouse=True)
def small_is_numpys(setting: Callable[..., None]) -> None:
    setting(host_us=50, build_after_ms=50)


def totients(m: ModuleType, limit: int) -> Any:
    phi = m.arange(-1, limit)
    for i in range(2, limit + 1):
        if phi[i] == i - 1:
            multiples = m.arange(2 * i, limit + 1, i)
            phi[multiples] -= phi[multiples] // i
    return phi


@compiled
def test_an_array_that_is_read_by_elements_stays_where_it_is(
    xp: ModuleType, shares_memory: bool
) -> None:
    limit = 30_000 if shares_memory else 2_000  # where each assignment is planned
    before = xp.stats()
    found = host(totients(xp, limit))
    np.testing.assert_array_equal(found, totients(np, limit))
    if not shares_memory:  # every assignment copies, until kernels write through indices
        return
    after = xp.stats()
    assert after["bytes_to_device"] == before["bytes_to_device"]
    assert after["kernels_launched"] == before["kernels_launched"]


@pytest.mark.parametrize("count", [1, 3, 40, 4000])
def test_what_was_recorded_is_written_where_index_arrays_say(xp: ModuleType, count: int) -> None:
    def program(m: ModuleType) -> Any:
        x = m.arange(50_000) * 3
        seen = 0
        for step in range(5):
            seen += int(x[step])
            places = m.arange(count) * 7 % 50_000
            x[places[::-1]] = x[places] * 2 + m.arange(count)
            x[m.minimum(places, 9)] += seen
        return x

    np.testing.assert_array_equal(host(program(xp)), program(np))


def test_an_index_out_of_range_changes_nothing(xp: ModuleType) -> None:
    x = xp.arange(1000)
    assert x[3] == 3
    places = xp.arange(3) + 998
    with pytest.raises(IndexError, match="1000 is out of bounds"):
        x[places] = xp.arange(3) * 2
    np.testing.assert_array_equal(host(x), np.arange(1000))
