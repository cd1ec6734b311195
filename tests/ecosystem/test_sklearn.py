"""scikit-learn with clfuse arrays: by array API dispatch where an estimator has it."""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clfuse
from tests.ecosystem.comparing import agree
from tests.support.marks import compiled

sklearn = pytest.importorskip("sklearn")
from sklearn import (
    cluster,
    decomposition,
    discriminant_analysis,
    ensemble,
    feature_extraction,
    linear_model,
    metrics,
    model_selection,
    naive_bayes,
    neighbors,
    pipeline,
    preprocessing,
    svm,
    tree,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning",
                                        "ignore::RuntimeWarning", "ignore::UserWarning")

POINTS = np.random.default_rng(2).standard_normal((60, 5))
CLASSES = (POINTS[:, 0] + POINTS[:, 1] > 0).astype(int)
TARGETS = POINTS @ np.arange(5.0)


def predicted(estimator: Any, m: Any, targets: Any) -> Any:
    return estimator.fit(m.asarray(POINTS), m.asarray(targets)).predict(m.asarray(POINTS))


DISPATCHED: dict[str, Callable[[Any], Any]] = {
    "ridge": lambda m: predicted(linear_model.Ridge(solver="svd"), m, TARGETS),
    "lda": lambda m: predicted(
        discriminant_analysis.LinearDiscriminantAnalysis(), m, CLASSES),
    "bayes": lambda m: predicted(naive_bayes.GaussianNB(), m, CLASSES),
    "pipeline": lambda m: predicted(pipeline.make_pipeline(
        preprocessing.StandardScaler(), linear_model.Ridge(solver="svd")), m, TARGETS),
    "pca": lambda m: abs(decomposition.PCA(3, svd_solver="full").fit_transform(m.asarray(POINTS))),
    "scaler": lambda m: preprocessing.MinMaxScaler().fit_transform(m.asarray(POINTS)),
    "normalizer": lambda m: preprocessing.Normalizer().fit_transform(m.asarray(POINTS)),
    "distances": lambda m: metrics.pairwise.euclidean_distances(m.asarray(POINTS)),
    "split": lambda m: model_selection.train_test_split(m.asarray(POINTS), random_state=0)[0],
}
SCORES: dict[str, Callable[[Any], Any]] = {
    "r2": lambda m: metrics.r2_score(m.asarray(TARGETS), m.asarray(TARGETS) * 1.1),
    "accuracy": lambda m: metrics.accuracy_score(m.asarray(CLASSES), 1 - m.asarray(CLASSES)),
    "auc": lambda m: metrics.roc_auc_score(m.asarray(CLASSES), m.asarray(POINTS)[:, 0]),
}
BY_NUMPY: dict[str, Callable[[Any], Any]] = {
    "forest": lambda m: predicted(
        ensemble.RandomForestRegressor(3, random_state=0), m, TARGETS),
    "svc": lambda m: predicted(svm.SVC(), m, CLASSES),
    "kmeans": lambda m: cluster.KMeans(3, random_state=0, n_init=1).fit_predict(m.asarray(POINTS)),
}


@pytest.mark.parametrize("name", [*DISPATCHED, *SCORES, *BY_NUMPY])
def test_estimators_take_our_arrays_as_numpys(name: str) -> None:
    agree({**DISPATCHED, **SCORES, **BY_NUMPY}[name], rtol=1e-7)


def test_dispatch_keeps_what_estimators_make_on_the_device() -> None:
    """In a process of its own: SciPy reads SCIPY_ARRAY_API when it is imported."""
    code = "import tests.ecosystem.test_sklearn as t; t.dispatched()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=170,
                          env={**os.environ, "SCIPY_ARRAY_API": "1", "CLFUSE_HOST_US": "50"})
    assert done.returncode == 0, done.stderr


def dispatched() -> None:
    with sklearn.config_context(array_api_dispatch=True):
        for body in DISPATCHED.values():
            assert type(agree(body, rtol=1e-7)) is clfuse.ndarray
        for body in SCORES.values():
            agree(body, rtol=1e-7)


def test_parameters_that_have_to_be_numpys_may_be_ours() -> None:
    image = pytest.importorskip("sklearn.feature_extraction.image")
    grid, mask = np.arange(20.0).reshape(4, 5) % 7, np.arange(20).reshape(4, 5) % 3 > 0
    ours = image.img_to_graph(clfuse.array(grid), mask=clfuse.array(mask))
    np.testing.assert_array_equal(ours.toarray(), image.img_to_graph(grid, mask=mask).toarray())


def tree_of(name: str, m: Any) -> Any:
    return getattr(neighbors, name)(m.asarray(POINTS) * 1, leaf_size=5)


TREES: dict[str, Callable[[Any, Any], Any]] = {
    "pairs": lambda m, tree: tree.two_point_correlation(m.asarray(POINTS) * 1, m.linspace(0, 1, 5)),
    "radii": lambda m, tree: np.sort(
        tree.query_radius(m.asarray(POINTS)[:1] * 1, m.full(1, 2.0))[0]
    ),
    "density": lambda m, tree: tree.kernel_density(m.asarray(POINTS)[:3] * 1, 0.5),
}


@pytest.mark.parametrize("kind", ["KDTree", "BallTree"])
def test_trees_of_both_precisions_take_radii_of_ours(kind: str) -> None:
    module = importlib.import_module(f"sklearn.neighbors._{kind[:-4].lower()}_tree")
    public, double, single = (getattr(module, kind + suffix) for suffix in ("", "64", "32"))
    radii = np.linspace(0, 3, 4)
    for tree_class, dtype in ((double, "f8"), (single, "f4")):
        points = POINTS.astype(dtype)
        expected = tree_class(points).two_point_correlation(points[:3], radii)
        found = tree_class(clfuse.asarray(points)).two_point_correlation(
            clfuse.asarray(points)[:3], clfuse.linspace(0, 3, 4)
        )
        np.testing.assert_array_equal(np.asarray(found), expected)
    made = public(POINTS)
    assert isinstance(made, double)
    assert issubclass(public, double)
    assert not isinstance(made, single)
    assert not isinstance(double(POINTS), public)
    assert type(pickle.loads(pickle.dumps(made))) is public


@pytest.mark.parametrize("kind", ["KDTree", "BallTree"])
@pytest.mark.parametrize("name", TREES)
def test_trees_take_arrays_on_the_device(name: str, kind: str) -> None:
    with clfuse.config.override(host_us=0):
        agree(lambda m: TREES[name](m, tree_of(kind, m)), rtol=1e-6)


ON_THE_DEVICE: dict[str, Callable[[Any], Any]] = {
    "class": lambda m: feature_extraction.image.img_to_graph(
        m.asarray(POINTS)[:4, :3] * 1, return_as=m.ndarray
    ),
    "start": lambda m: decomposition.SparsePCA(
        2, U_init=m.asarray(POINTS)[:, :2] * 1, V_init=m.eye(5)[:2] * 1, random_state=0
    ).fit(m.asarray(POINTS)).components_,
    "set": lambda m: decomposition.SparsePCA(2, random_state=0).set_params(
        U_init=m.asarray(POINTS)[:, :2] * 1, V_init=m.eye(5)[:2] * 1
    ).fit(m.asarray(POINTS)).components_,
}  # fmt: skip


@pytest.mark.parametrize("name", ON_THE_DEVICE)
def test_arrays_on_the_device_are_taken_as_numpys(name: str) -> None:
    with clfuse.config.override(host_us=0):
        agree(ON_THE_DEVICE[name], rtol=1e-6)


@compiled
@pytest.mark.parametrize("host_us", [0, 50])
def test_the_tree_of_an_estimator_takes_arrays(host_us: int) -> None:
    points = POINTS.astype(np.float32)
    made = tree.DecisionTreeClassifier(random_state=0).fit(points, points[:, 0] > 0)
    with clfuse.config.override(host_us=host_us):
        for name in ("apply", "predict", "decision_path"):
            method = getattr(made.tree_, name)
            difference = method(clfuse.asarray(points) * 1) != method(points)
            assert not difference.sum()
    assert type(pickle.loads(pickle.dumps(made.tree_))) is type(made.tree_)
