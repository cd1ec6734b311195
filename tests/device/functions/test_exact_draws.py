"""Draws under ``exact_random``: NumPy's numbers and errors, whatever the draws are given."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.clfuse_only

DRAWS = (
    "r.permutation(a)", "r.permutation(L)", "g.permutation(P)", "g.permutation(P, axis=1)",
    "r.choice(a)", "r.choice(a, (2, 2))", "r.choice(L, p=[.2, .3, .5])", "g.choice(P, 2)",
    "g.choice(a, 0)", "r.normal(a, 1)", "g.normal(a, a + 1, (2, 6))", "r.normal(0, -1)",
    "r.randint(0, 5, (2, 3), dtype=np.int8)", "r.randint(0, 5, 3, dtype='uint8')",
    "g.integers(0, [3, 4])", "g.integers(5)", "r.multinomial(10, [.2, .8])", "g.dirichlet(a + 1)",
    "r.bytes(4)", "r.rand()", "r.rand(2, 2)", "g.random(out=a)", "g.shuffle(a)", "r.shuffle(L)",
    "g.shuffle(P, axis=1)", "g.permuted(a)", "g.permuted(P, axis=1, out=P)", "r.choice([])",
    "r.choice(a, 3, p=a)", "g.choice(4, 9, replace=False)", "r.choice(6, 3, False, a / a.sum())",
    "s.choice(['a', 'b'])", "g.uniform(a[0], a[5])", "r.multivariate_normal(a[:2], np.eye(2))",
    "g.multivariate_normal(mean=a[:2], cov=np.eye(2), size=3)", "g.random((2, 3), dtype='f4')",
    "g.multivariate_hypergeometric([3, 4], 3)", "r.exponential(scale=a + 1)", "r.poisson(P)",
    "s.gamma(2, size=(3,))", "r.uniform(a.min(), a.max(), 3)", "g.normal(a * 2.0, size=6)",
    "g.random(out=a, dtype='f4')", "g.random(out=a[::2])", "r.rand(a)", "r.permutation(5)",
)  # fmt: skip


def drawn(module: ModuleType, text: str) -> Any:
    """What a draw gives, or the class of its error; and what it leaves of what it was given."""
    random = module.random
    random.seed(3)
    a = module.arange(6.0)
    space = {
        "np": module, "r": random, "g": random.default_rng(3), "s": random.RandomState(3),
        "a": a, "P": module.arange(6.0).reshape(2, 3), "L": [1, 2, 3],
    }  # fmt: skip
    found: list[Any] = []
    for _ in range(2):
        try:
            value = eval(text, space)
        except (TypeError, ValueError) as error:
            found.append(type(error))
            continue
        is_array = type(value) is module.ndarray
        if is_array and value.flags.writeable and value.size:
            before = np.asarray(value).tolist()
            value[...] = value + 1
            found.append((str(value.dtype), value.shape, before))
        found.append((is_array, np.asarray(value).tolist()))
    return found, np.asarray(a).tolist(), np.asarray(space["P"]).tolist(), space["L"]


@pytest.mark.parametrize("text", DRAWS)
def test_a_draw_is_numpys(
    xp: ModuleType, setting: Callable[..., None], text: str
) -> None:
    setting(exact_random=True)
    assert drawn(xp, text) == drawn(np, text)


def test_draws_are_counted_as_what_the_host_did(
    xp: ModuleType, setting: Callable[..., None]
) -> None:
    setting(exact_random=True)
    rng = xp.random.default_rng(1)
    before = xp.stats()["fallbacks"]
    assert rng.normal(size=3).shape == (3,)
    assert rng.choice(xp.arange(4), 2).shape == (2,)
    assert xp.stats()["fallbacks"] == before + 2
    setting(fallback="raise")
    with pytest.raises(xp.FallbackError):
        rng.normal(size=3)


@pytest.mark.parametrize("host_us", [0, 50])
@pytest.mark.parametrize("text", [
    "g.random(out=a)", "g.random(None, 'f8', a)", "g.standard_normal(out=a, size=6)",
    "g.standard_exponential(None, 'f8', 'zig', a)", "g.standard_gamma(2.0, out=a)",
    "g.standard_gamma(2.0, None, 'f8', a)",
])  # fmt: skip
def test_draws_into_an_array_give_it_and_leave_copies(
    xp: ModuleType, setting: Callable[..., None], text: str, host_us: int
) -> None:
    setting(exact_random=True, host_us=host_us)
    a, theirs = xp.arange(6.0), np.arange(6.0)
    copy, later, view = a.copy(), a + 1, a[1:3]
    assert eval(text, {"g": xp.random.default_rng(3), "a": a}) is a
    eval(text, {"g": np.random.default_rng(3), "a": theirs})
    assert (a.tolist(), view.tolist()) == (theirs.tolist(), theirs[1:3].tolist())
    assert (copy.tolist(), later.tolist()) == ([0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6])
