"""JAX's functions take our arrays, and its arrays are operands and indices of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clfuse

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

THEIRS = jnp.arange(6.0).reshape(2, 3)

PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "jax.numpy": lambda m, a: jnp.sin(a) + jnp.where(a > 2, THEIRS, a),
    "of numbers": lambda m, a: jnp.exp(a.sum() / 100) + jnp.full(2, a[0, 1]),
    "joined": lambda m, a: jnp.concatenate([a, THEIRS, jnp.array([a[0], a[1]])]),
    "linalg": lambda m, a: jnp.linalg.norm(a) + jax.scipy.special.logsumexp(a),
    "jit": lambda m, a: jax.jit(lambda x, y: x * y + y)(a, a.mean()),
    "enclosed": lambda m, a: jax.jit(lambda x: x * a + a[0, 1])(THEIRS),
    "a product": lambda m, a: jax.jit(lambda x: x @ a.T)(THEIRS),
    "grad": lambda m, a: jax.grad(lambda x: (x**2).sum())(a),
    "vmap": lambda m, a: jax.vmap(jnp.sum)(a),
    "scan": lambda m, a: jax.lax.scan(lambda total, x: (total + x, total), 0.0, a[0])[1],
    "trees": lambda m, a: jax.tree_util.tree_map(jnp.cos, {"x": a, "y": [a[0]]})["y"][0],
    "indices": lambda m, a: THEIRS[m.asarray([1, 0])] + THEIRS.at[:, m.asarray([2])].set(a[0, 1]),
    "a mask": lambda m, a: THEIRS[a > 3],
    "operators": lambda m, a: [THEIRS * a, a - THEIRS, a[0, 1] / (THEIRS + 1), THEIRS @ a.T],
    "to the device": lambda m, a: jax.device_put(a),
    "their indices": lambda m, a: [a[jnp.array([1, 0])], a[THEIRS > 2], a[:, jnp.array(1)]],
    "their parts": lambda m, a: [m.real(THEIRS), m.concatenate([a, THEIRS]), m.sin(THEIRS)],
}


@pytest.mark.parametrize("host_us", [0, 50])
@pytest.mark.parametrize("name", PROGRAMS)
def test_jax_takes_our_arrays(name: str, host_us: int) -> None:
    values = np.arange(6.0).reshape(2, 3) * 2
    expected = PROGRAMS[name](np, values)
    with clfuse.config.override(host_us=host_us):
        actual = PROGRAMS[name](clfuse, clfuse.asarray(values) + 0)
    if not isinstance(expected, list):
        actual, expected = [actual], [expected]
    for one, other in zip(actual, expected, strict=True):
        assert isinstance(one, jax.Array) == isinstance(other, jax.Array)
        assert one.dtype == other.dtype
        np.testing.assert_allclose(clfuse.asnumpy(one), np.asarray(other), rtol=1e-6)
