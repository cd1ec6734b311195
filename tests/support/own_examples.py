"""A plugin of pytest: doctests of clfuse's docstrings alone. Functions that NumPy computes have
NumPy's own, whose examples show its arrays in its way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[Any]) -> None:
    spaces = np, np.linalg, np.fft, np.random, np.testing
    numpys = {
        getattr(space, name).__doc__
        for space in spaces
        for name in space.__all__
        if hasattr(space, name)
    }
    left = [
        item for item in items
        if getattr(item, "dtest", None) is not None and item.dtest.docstring in numpys
    ]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]
