"""Work-items that go different ways beside each other.

Intel's compiler (2026.2, AVX-512) joins work-items to vectors; where they did not go the same way,
some stored what others were to store.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest


@pytest.mark.clfuse_only
@pytest.mark.parametrize("dtype", ["uint64", "float32", "float64"])
@pytest.mark.parametrize("size", [2, 3, 40, 4099])
def test_parts_of_an_array_are_stored_apart(xp: ModuleType, size: int, dtype: str) -> None:
    with xp.config.override(schedule="gpu"):
        x = xp.full((size,), np.dtype(dtype).type(6))
        x[1:] *= x[:-1]
        mantissa, exponent = xp.frexp(x)
        xp.evaluate(x, mantissa, exponent)
    expected = [6] + [36] * (size - 1)
    assert x.tolist() == expected
    assert mantissa.tolist() == np.frexp(np.array(expected, dtype))[0].tolist()
    assert exponent.tolist() == np.frexp(np.array(expected, dtype))[1].tolist()


@pytest.mark.clfuse_only
def test_joined_arrays_of_one_element_are_stored_apart(xp: ModuleType) -> None:
    with xp.config.override(schedule="gpu"):
        one = xp.arange(1)
        both = xp.concatenate([xp.isin(one, one), one])
        mask = both < float("nan")
        both[mask] = one
        logs = xp.logaddexp(both, one)
        xp.evaluate(both, logs, mask)
    assert both.tolist() == [1, 0]
    np.testing.assert_allclose(np.asarray(logs), np.logaddexp([1, 0], [0, 0]))
