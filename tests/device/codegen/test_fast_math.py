"""``CLFUSE_FP=fast`` relaxes kernels that only calculate, and no others."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import Batch, host
from tests.support.hostile import hostile, ordinary

pytestmark = pytest.mark.clfuse_only


def test_fast_floating_point_leaves_exact_steps_exact(xp: ModuleType,
                                                      setting: Callable[..., None]) -> None:
    """Fast-math would cancel the rounding to half and the error term of a sum, and miss NaN."""
    values = hostile("float32")
    halves = [np.ascontiguousarray(g).ravel() for g in np.meshgrid(*[hostile("float16")] * 2)]
    wide = ordinary(1, 1003, "float32", "unit") * np.float32(1e6)

    def totals(m: ModuleType) -> list[Any]:
        long = m.array(ordinary(2, 400_001, "float32", "positive"))
        return [long.sum(), long.mean(), long.reshape(-1, 1).sum(0),
                m.array(halves[0][90:99]).sum()]

    strict = [host(total) for total in totals(xp)]
    setting(fp="fast")
    batch = Batch(xp)
    batch.same("half +", lambda m: m.array(halves[0]) + m.array(halves[1]))
    batch.same("half *", lambda m: m.array(halves[0]) * m.array(halves[1]))
    batch.same("to half", lambda m: m.array(values).astype("float16"))
    batch.same("double to half", lambda m: m.array(hostile("float64")).astype("float16"))
    for name in ("isnan", "isinf", "isfinite", "signbit", "floor", "nan_to_num"):
        batch.same(name, lambda m, n=name: getattr(m, n)(m.array(values)))
    batch.same("== itself", lambda m: (lambda a: a == a)(m.array(values)))
    batch.same("maximum", lambda m: m.maximum(m.array(values), m.array(values[::-1])))
    batch.same("max", lambda m: m.max(m.array(values)))
    batch.same("argmin", lambda m: m.argmin(m.array(values)))
    batch.same("complex", lambda m: m.array(values[:20] + 1j) * 2, ulp=4)
    # What is relaxed is still about right.
    batch.same("arithmetic", lambda m: m.sin(m.array(wide) * 1e-6) * 2 + m.array(wide) / 3,
               bound=np.abs(wide) * 1e-4 + 1e-4)
    batch.check()
    for fast, expected in zip(totals(xp), strict, strict=True):
        assert host(fast).tobytes() == expected.tobytes()
