"""autograd differentiates programs on our arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import clfuse

anp = pytest.importorskip("autograd.numpy")
autograd = pytest.importorskip("autograd")

POINTS = np.linspace(-1.0, 1.0, 60).reshape(20, 3)
WEIGHTS = np.array([0.1, 0.2, 0.3])


def loss(w: Any, x: Any) -> Any:
    return anp.sum(anp.tanh(anp.dot(x, w)) ** 2) + anp.mean(w * w)


def descended(w: Any, x: Any) -> Any:
    for _ in range(5):
        w = w - 0.1 * autograd.grad(loss)(w, x)
    return w


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "gradient": autograd.grad(loss),
    "of the second argument": autograd.grad(loss, 1),
    "Jacobian": lambda w, x: autograd.jacobian(lambda w: anp.dot(x, w) * anp.sum(w))(w),
    "Hessian": lambda w, x: autograd.hessian(loss)(w, x),
    "of each element": lambda w, x: autograd.elementwise_grad(anp.tanh)(x),
    "steps": descended,
    "of a number": lambda w, x: autograd.grad(lambda a: anp.sin(a) * a)((x * x).sum()),
    "of linear algebra": lambda w, x: autograd.grad(
        lambda w: anp.linalg.det(anp.outer(w, w) + anp.eye(3)) + anp.linalg.norm(w)
    )(w),
}


@pytest.mark.parametrize("host_us", [0, 50])
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_at_our_arrays(name: str, host_us: int) -> None:
    expected = PROGRAMS[name](WEIGHTS, POINTS)
    with clfuse.config.override(host_us=host_us):
        actual = PROGRAMS[name](clfuse.asarray(WEIGHTS), clfuse.asarray(POINTS))
        assert_allclose(clfuse.asnumpy(actual), expected, rtol=1e-12)


def test_single_numbers_are_differentiated_in_their_dtype() -> None:
    for kind in ("float32", "float64", "complex128"):
        number = clfuse.asarray(WEIGHTS.astype(kind)).sum()
        found = autograd.holomorphic_grad if kind == "complex128" else autograd.grad
        actual = found(lambda a: a * a)(number)
        assert_allclose(complex(actual), 2 * complex(number), rtol=1e-6)
        assert np.asarray(actual).dtype == kind
