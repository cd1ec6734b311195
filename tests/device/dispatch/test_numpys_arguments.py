"""Functions that are given NumPy's arrays alone, of classes or dtypes that no kernel has: NumPy
computes them as they are, and plain results are arrays of ours."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse.dispatch.overrides import are_numpys

pytestmark = pytest.mark.clfuse_only

CALLS = (
    "np.dot(m, m)", "np.exp(m)", "np.diag(m)", "np.diag(np.diag(m))", "np.multiply(m, 2)",
    "np.sum(m, axis=0)", "np.concatenate([m, m], 1)", "np.linalg.inv(m)", "np.asarray(m)",
    "np.sum(k)", "np.sqrt(k)", "np.mean(k)", "np.concatenate([k, k])", "np.asarray(k)",
    "np.unique(s)", "np.sort(s)", "np.char.upper(s)", "np.where(s == 'b')", "np.sum(o[:1])",
    "np.max(d)", "np.diff(d)", "np.sort(t, order='y')", "np.dot(m, a)", "np.dot(k, k)",
    "np.unique(s, return_counts=True)", "np.split(m, 2)", "np.put(k, [0], 9)",
    "np.copyto(s, 'z')", "np.place(m, m > 3, [7])", "np.fill_diagonal(m, 5)", "np.add(k, a[:3])",
    "np.add(o, o)", "np.dot(s, s)", "np.sum(s)", "np.concatenate([s, a[0]])", "np.cumsum(m, out=m)",
    "np.isin(s, ['b', 'c'])", "np.full(2, d[0])", "np.bincount(k.astype(int))",
    "np.histogram(k, 3)", "np.meshgrid(s, s)", "np.take(s, [1, 0])", "np.array([k, k])",
    "np.vstack((m, m))", "np.ma.masked_equal(a, 3)", "np.stack([s, s])",
)  # fmt: skip


def shown(value: Any, module: ModuleType) -> Any:
    if isinstance(value, tuple | list):
        return [shown(item, module) for item in value]
    kind = "ndarray" if type(value) is module.ndarray else type(value).__name__
    if not hasattr(value, "dtype"):
        return kind, value
    # Strings, dates and objects are NumPy's in either case.
    kind = "ndarray" if type(value) is np.ndarray else kind
    return kind, str(value.dtype), value.shape, str(np.asanyarray(value).tolist())


@pytest.mark.parametrize("text", CALLS)
def test_a_call_gives_and_leaves_what_numpys_does(xp: ModuleType, text: str) -> None:
    seen = []
    for module in (np, xp):
        space = {
            "np": module, "a": module.arange(4.0),
            "m": np.asmatrix([[2.0, 1.0], [1.0, 3.0]]), "s": np.array(["b", "a", "b"]),
            "k": np.ma.masked_array([1.0, 2.0, 4.0], [False, True, False]),
            "o": np.array([1, None], object), "d": np.array(["2020-01-05", "2021-03-01"], "M8[D]"),
            "t": np.array([(1, 5.0), (2, 3.0)], [("x", int), ("y", float)]),
        }  # fmt: skip
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                answer = shown(eval(text, dict(space)), module)
            except (TypeError, ValueError) as error:
                answer = type(error)
        left = [shown(space[name], module) for name in "mskodt"]
        told = [str(item.message) for item in warned]
        seen.append((answer, left, told))
    assert seen[0] == seen[1]


def test_arguments_of_ours_are_seen_where_they_are(xp: ModuleType) -> None:
    ours, scalar = xp.arange(3.0), xp.arange(3.0).sum()
    assert are_numpys((np.arange(3), 1, "a", None, np.float32(2), [1, np.arange(2)], float))
    assert not are_numpys((np.arange(3), ours))
    assert not are_numpys(([1, ours],))
    assert not are_numpys(([[1]],))
    assert not are_numpys((slice(0, scalar),))
    assert not are_numpys(({"x": 1},))
    assert are_numpys(())
    assert are_numpys(((),))


def test_what_the_host_does_alone_is_counted(xp: ModuleType) -> None:
    m = np.asmatrix(np.eye(2))
    before = xp.stats()["fallbacks"]
    xp.dot(m, m)
    assert xp.stats()["fallbacks"] == before + 1
    with xp.config.override(fallback="raise"), pytest.raises(xp.FallbackError):
        xp.dot(m, m)
