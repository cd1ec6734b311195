"""Medians, percentiles and quantiles that NumPy takes from the device's memory in one call."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import assert_bitwise, host
from tests.support.hostile import ordinary


@pytest.mark.clfuse_only
def test_an_order_statistic_of_one_lane_is_one_library_call(
    xp: ModuleType, launched: Callable[[Callable[[], object]], int]
) -> None:
    if not xp.get_device().traits.unified_memory:
        pytest.skip("the device has memory of its own")
    data = ordinary(13, (150, 200), "float64", "unit")
    x = xp.asarray(data)
    xp.evaluate(x)
    calls: tuple[Callable[[Any, Any], Any], ...] = (
        lambda m, x: m.median(x),
        lambda m, x: m.median(x, 1, keepdims=True),
        lambda m, x: m.percentile(x, [5, 50, 99.5], axis=0),
        lambda m, x: m.quantile(a=x[::2, ::-1], q=0.3, method="nearest"),
    )
    for call in calls:
        before = xp.stats()["library_calls"]
        found: list[Any] = []
        assert launched(lambda call=call, found=found: found.append(call(xp, x))) == 0
        assert xp.stats()["library_calls"] - before == 1
        assert_bitwise(host(found[0]), call(np, data))
    # What writes to its argument, or to another array, does not go that way.
    target = xp.zeros(200)
    assert xp.median(x, 0, target) is target
    assert_bitwise(host(target), np.median(data, 0))
    assert xp.median(x + 0, overwrite_input=True) == np.median(data)
    with pytest.raises(ValueError, match=r"range \[0, 100\]"):
        xp.percentile(x, 101)
