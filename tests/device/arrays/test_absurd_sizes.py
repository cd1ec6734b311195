"""Sizes that no array can have are errors at the call, as in NumPy; what needs no room is none."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

FAR = 1 << 50  # elements: more bytes than a process has addresses
UNCOUNTED = 1 << 62  # more bytes than an integer counts

CALLS: dict[str, Callable[[ModuleType, int], Any]] = {
    "arange": lambda m, n: m.arange(0, n),
    "arange of floats": lambda m, n: m.arange(0.0, float(n)),
    "zeros": lambda m, n: m.zeros(n),
    "ones": lambda m, n: m.ones(n),
    "full": lambda m, n: m.full(n, 1.5),
    "empty": lambda m, n: m.empty(n),
    "full_like": lambda m, n: m.full_like(m.ones(3), 1, shape=n),
    "linspace": lambda m, n: m.linspace(0, 1, n),
    "logspace": lambda m, n: m.logspace(0, 1, n),
    "eye": lambda m, n: m.eye(n),
    "tri": lambda m, n: m.tri(n),
    "indices": lambda m, n: m.indices((n, n)),
    "tile": lambda m, n: m.tile(m.arange(10), n),
    "random": lambda m, n: m.random.default_rng(1).random(n),
    "normal": lambda m, n: m.random.default_rng(1).normal(size=(n, 2)),
}

VIEWS: dict[str, Callable[[ModuleType, Any], Any]] = {
    "operator": lambda m, x: x + 1,
    "negative": lambda m, x: -x,
    "copy": lambda m, x: x.copy(),
    "astype": lambda m, x: x.astype("f4"),
    "cumsum": lambda m, x: m.cumsum(x),
    "concatenate": lambda m, x: m.concatenate([x, x]),
    "pad": lambda m, x: m.pad(x, 1),
    "roll": lambda m, x: m.roll(x, 1),
    "with a column": lambda m, x: x[:8] * m.broadcast_to(m.ones((1, 1)), (FAR, 1)),
}


@pytest.mark.parametrize("name", CALLS)
def test_sizes_that_no_array_has_are_errors_at_the_call(xp: ModuleType, name: str) -> None:
    with pytest.raises(MemoryError):
        CALLS[name](xp, FAR if name not in ("eye", "tri", "indices") else 1 << 26)
    with pytest.raises(ValueError, match="array is too big"):
        CALLS[name](xp, UNCOUNTED)


@pytest.mark.parametrize("name", VIEWS)
def test_views_too_large_to_compute_with_are_no_operands(
    xp: ModuleType, name: str
) -> None:
    view = xp.broadcast_to(xp.ones(1), (FAR,))
    assert view.shape == (FAR,)
    assert view[5:8].tolist() == [1, 1, 1]
    with pytest.raises(MemoryError):
        VIEWS[name](xp, view)
    with pytest.raises(ValueError, match="array is too big"):
        xp.broadcast_to(xp.ones(1), (UNCOUNTED,))


@pytest.mark.clfuse_only
def test_what_is_folded_at_once_may_exceed_memory(xp: ModuleType) -> None:
    x = xp.arange(1 << 21, dtype="float32")
    distances = x[:, None] - x[None, :]  # 16 TB, recorded
    assert distances[5, 3] == 2
    assert abs(distances[:7, :9]).sum() == sum(abs(i - j) for i in range(7) for j in range(9))
