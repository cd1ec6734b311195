"""What an iteration of a kernel costs, as far as its text tells."""

from __future__ import annotations

import numpy as np
import pytest

from clfuse.user_kernels.language.source.lower import lower
from clfuse.user_kernels.language.source.syntax import read_source
from clfuse.user_kernels.language.source.types import FLOAT, ArrayType
from clfuse.user_kernels.language.source.weight import weight_of
from tests.support import kernel_bodies


@pytest.mark.parametrize(("body", "weight"), [
    ("y[i] = a * x[i]", 12.0),
    ("for k in range(10):\n    y[k] = a * x[k]", 121.0),
    ("if x[i] > a:\n    y[i] = 2.0 * x[i]\nelse:\n    y[i] = x[i]", 24.0),
    ("for k in range(len(x)):\n    y[k] = a", None),
    ("while y[i] < a:\n    y[i] = 2.0 * y[i] + 1.0", None),
])
def test_what_an_iteration_costs_is_known_of_its_text(body: str, weight: float | None) -> None:
    array = ArrayType(np.dtype(np.float64), 1)
    kinds = {"a": FLOAT, "x": array, "y": array}
    source = read_source(kernel_bodies.function_of(body, "i, a, x, y", {}))
    found = weight_of(lower(source, kinds, ("i",)))
    if weight is None:
        assert found is None
    else:
        assert found == pytest.approx(weight, rel=0.4)
