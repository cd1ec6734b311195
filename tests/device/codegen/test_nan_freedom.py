"""Arg-reductions of what cannot be NaN where the operands are finite: their loops watch for none,
and find it all the same where an operand is NaN or infinite."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import Batch

ROWS, COLUMNS = 1024, 301

PAIRS: dict[str, Callable[[ModuleType, Any, Any], Any]] = {
    "squares": lambda m, p, q: (p - q) ** 2 + (q + p) ** 2,
    "distance": lambda m, p, q: m.sqrt((p - q) * (p - q) + q * q),
    "city blocks": lambda m, p, q: m.abs(p - q) + abs(q),
    "nothing far away": lambda m, p, q: m.exp(-m.maximum(m.abs(p - q), 1e4)) + m.abs(q),
    "product": lambda m, p, q: p * q + p,
    "larger": lambda m, p, q: m.maximum(p - q, q - 1) + 1,
    "less": lambda m, p, q: -((p + q) ** 2) - abs(p),
}
"""Where no finite operands give NaN."""

OTHERS: dict[str, Callable[[ModuleType, Any, Any], Any]] = {
    "infinities apart": lambda m, p, q: p * p * q - q * q * p,
    "nothing of infinity": lambda m, p, q: (p + q) * (p - q) * q,
    "quotient": lambda m, p, q: p / q,
}
"""Where some do."""


def arrays(dtype: str, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    random = np.random.default_rng(seed)
    p, q = random.normal(size=ROWS).astype(dtype), random.normal(size=COLUMNS).astype(dtype)
    largest = np.finfo(dtype).max
    for values in (p, q):
        for special in (0.0, -0.0, largest, -largest, np.finfo(dtype).tiny):
            values[random.integers(0, len(values), 3)] = special
    return p, q


def with_some(values: np.ndarray[Any, Any], special: float, places: list[int]) -> Any:
    changed = values.copy()
    changed[places] = special
    return changed


CASES = [
    (name, "float64", ("argmin", "argmax")[place % 2])
    for place, name in enumerate(PAIRS | OTHERS)
]
CASES += [("distance", "float32", "argmin"), ("less", "float32", "argmax")]


@pytest.mark.parametrize(("name", "dtype", "fold"), CASES)
def test_nan_is_found_wherever_it_comes_from(
    name: str, dtype: str, fold: str, xp: ModuleType
) -> None:
    batch = Batch(xp)
    function = (PAIRS | OTHERS)[name]
    p, q = arrays(dtype, 7)
    cases = {"finite": (p, q)}
    for special in (np.nan, np.inf, -np.inf):
        cases[f"p {special}"] = with_some(p, special, [0, 5, ROWS - 1]), q
        for place in (0, 17, 287, 288, COLUMNS - 1):  # in vectors, and behind the last of them
            cases[f"q[{place}] {special}"] = p, with_some(q, special, [place])
        cases[f"both {special}"] = with_some(p, special, [3]), with_some(q, special, [40, 41, 300])
    with np.errstate(all="ignore"):
        for label, (one, two) in cases.items():
            batch.same(
                label,
                lambda m, a=one, b=two: getattr(m, fold)(
                    function(m, m.asarray(a)[:, None], m.asarray(b)[None]), axis=1
                ),
            )
        batch.check()


@pytest.mark.clfuse_only
@pytest.mark.parametrize("name", [*PAIRS, *OTHERS])
def test_loops_watch_for_nan_only_where_finite_operands_give_it(
    name: str, xp: ModuleType, planned_for: Callable[..., None]
) -> None:
    planned_for("cpu")
    p, q = arrays("float64", 7)
    made = (PAIRS | OTHERS)[name](xp, xp.asarray(p)[:, None], xp.asarray(q)[None]).argmin(1)
    source = xp.explain(made).kernels[-1].source
    assert ("u0_0 +=" in source) is (name in OTHERS)
    assert ("isfinite(" in source and "finite0" in source) is (name in PAIRS)


@pytest.mark.clfuse_only
def test_rows_that_read_vectors_of_their_own_are_watched(
    xp: ModuleType, planned_for: Callable[..., None]
) -> None:
    """To look through these would take as long as to watch."""
    x = xp.asarray(np.random.default_rng(0).normal(size=(ROWS, COLUMNS)))
    planned_for("cpu")
    source = xp.explain(((x - 1) ** 2).argmin(1)).kernels[-1].source
    assert "u0_0 +=" in source
