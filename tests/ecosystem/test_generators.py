"""Packages that draw random numbers: from our generators, or from NumPy's state."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clfuse
from clfuse.interop.third_party_patches import PACKAGES

stats = pytest.importorskip("scipy.stats")
optimize = pytest.importorskip("scipy.optimize")
spatial = pytest.importorskip("scipy.spatial")
vq = pytest.importorskip("scipy.cluster.vq")
sparse = pytest.importorskip("scipy.sparse")
interpolative = pytest.importorskip("scipy.linalg.interpolative")

POINTS = np.random.default_rng(3).normal(size=(12, 3))


def distance(m: Any, **given: Any) -> Any:
    return spatial.distance.directed_hausdorff(m.asarray(POINTS), m.asarray(POINTS[:5]), **given)[0]


def resampled(m: Any, **given: Any) -> Any:
    lane = m.asarray(POINTS)[:, 0]
    return stats.bootstrap((lane,), m.mean, n_resamples=20, **given).standard_error


DRAWING: dict[str, Callable[..., Any]] = {
    "distance": distance,
    "bootstrap": resampled,
    "evolution": lambda m, **given: optimize.differential_evolution(
        lambda x: ((m.asarray(x) - 1) ** 2).sum(), [(-2, 2)] * 2, maxiter=5, **given
    ).x,
    "clusters": lambda m, **given: vq.kmeans2(m.asarray(POINTS), 2, **given)[0],
    "columns": lambda m, **given: interpolative.interp_decomp(m.asarray(POINTS), 2, **given)[1],
    "sparse": lambda m, **given: sparse.random_array((9, 9), density=0.3, **given).toarray(),
    "rotations": lambda m, **given: spatial.transform.Rotation.random(3, **given).as_quat(),
    "cube": lambda m, **given: stats.qmc.LatinHypercube(2, **given).random(4),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWING)
def test_scipy_draws_from_our_generators(name: str) -> None:
    found = [DRAWING[name](clfuse, rng=clfuse.random.default_rng(seed)) for seed in (5, 5, 6)]
    assert np.array_equal(found[0], found[1])
    assert type(found[0]) is not clfuse.ndarray
    assert name in ("distance", "columns") or not np.array_equal(found[0], found[2])


@pytest.mark.parametrize("name", DRAWING)
def test_exact_generators_give_what_numpys_do(name: str) -> None:
    with clfuse.config.override(exact_random=True):
        ours = DRAWING[name](clfuse, rng=clfuse.random.default_rng(5))
    np.testing.assert_allclose(ours, DRAWING[name](np, rng=np.random.default_rng(5)), 1e-9)


def test_what_packages_draw_goes_on_in_the_generator() -> None:
    rng, same = clfuse.random.default_rng(5), clfuse.random.default_rng(5)
    drawn = stats.norm.rvs(size=4, random_state=rng)
    assert type(drawn) is np.ndarray
    drawn[0] = 0  # the package's own
    assert np.array_equal(drawn[1:], np.asarray(same.normal(size=4))[1:])
    assert float(rng.random()) == float(same.random())


@pytest.mark.parametrize("make", [clfuse.random.default_rng, clfuse.random.RandomState])
def test_what_stands_for_a_generator_is_one(make: Callable[[int], Any]) -> None:
    stands = PACKAGES["scipy"](make(5))
    assert isinstance(stands, np.random.Generator | np.random.RandomState)
    assert type(stands.normal(size=3)) is np.ndarray
    for other in (copy.deepcopy(stands), pickle.loads(pickle.dumps(stands))):
        assert other.normal() == pytest.approx(copy.deepcopy(stands).normal())
    spawned = make(5).spawn(1)[0] if hasattr(stands, "spawn") else None
    assert spawned is None or type(stands.spawn(1)[0].normal(size=2)) is np.ndarray


def test_a_seed_is_that_of_packages_without_generators() -> None:
    sklearn = pytest.importorskip("sklearn.utils")
    clfuse.random.seed(7)
    first = stats.norm.rvs(size=3), sklearn.shuffle(np.arange(20))
    clfuse.random.seed(7)
    again = stats.norm.rvs(size=3), sklearn.shuffle(np.arange(20))
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    np.random.seed(7)
    np.testing.assert_array_equal(first[0], stats.norm.rvs(size=3))


def test_the_module_is_the_state_it_draws_from() -> None:
    found = []
    for _ in range(2):
        clfuse.random.seed(7)
        found.append(stats.norm.rvs(size=3, random_state=clfuse.random))
    np.testing.assert_array_equal(*found)
    clfuse.random.seed(7)
    np.testing.assert_array_equal(found[0], np.asarray(clfuse.random.normal(size=3)))
