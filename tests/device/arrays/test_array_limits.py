"""The most dimensions that NumPy's arrays have."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from tests.support.agreement import assert_bitwise


def test_arrays_of_64_dimensions_are_made_of_lists(xp: ModuleType) -> None:
    nested: Any = 1.5
    for _ in range(64):
        nested = [nested]
    made = xp.array(nested, dtype="float64")
    assert_bitwise(made + 1, np.array(nested) + 1)
    assert made.ndim == 64
