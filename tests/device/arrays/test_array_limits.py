"""The most dimensions, and the largest extents, that NumPy's arrays have."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import assert_bitwise
from tests.support.releases import IS_BEFORE_2_4


def test_arrays_of_64_dimensions_are_made_of_lists(xp: ModuleType) -> None:
    nested: Any = 1.5
    for _ in range(64):
        nested = [nested]
    made = xp.array(nested, dtype="float64")
    assert_bitwise(made + 1, np.array(nested) + 1)
    assert made.ndim == 64


@pytest.mark.skipif(IS_BEFORE_2_4, reason="other words")
@pytest.mark.parametrize("extent", [2**62, 2**63 - 1, 2**63, 2**64])
def test_extents_that_no_integer_counts(extent: int, xp: ModuleType) -> None:
    with pytest.raises(ValueError, match="too big|exceeded") as wanted:
        np.empty(extent)
    with pytest.raises(ValueError, match="too big|exceeded") as found:
        xp.empty(extent)
    assert str(found.value) == str(wanted.value)
