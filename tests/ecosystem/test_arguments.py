"""What SciPy, scikit-learn and matplotlib ask for by NumPy's class, or write to: arguments that are
no data."""

from __future__ import annotations

import functools
import inspect
import operator
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clfuse
from clfuse.arrays.conversion import host_view
from clfuse.interop.opened_objects import Callback
from clfuse.interop.third_party_patches import deeply
from tests.ecosystem.comparing import LINE, MATRIX, VALUES, agree, agree_on_pixels
from tests.support.processes import python

linalg = pytest.importorskip("scipy.linalg")
ndimage = pytest.importorskip("scipy.ndimage")
optimize = pytest.importorskip("scipy.optimize")
signal = pytest.importorskip("scipy.signal")
stats = pytest.importorskip("scipy.stats")

SIGNS = (VALUES > 0).astype(float)


def written(call: Callable[[Any], Any], m: Any, dtype: Any = float, shape: Any = (8, 6)) -> Any:
    """What `call` leaves in the array that it gets."""
    made = m.zeros(shape, dtype)
    call(made)
    return made * 2


OUTPUTS: dict[str, Callable[[Any], Any]] = {
    "gaussian": lambda m: written(
        lambda o: ndimage.gaussian_filter(m.asarray(VALUES), 1, output=o), m
    ),
    "label": lambda m: written(lambda o: ndimage.label(m.asarray(SIGNS), output=o), m, np.int32),
    "erosion": lambda m: written(
        lambda o: ndimage.binary_erosion(m.asarray(SIGNS), output=o), m, bool
    ),
    "gradient": lambda m: written(
        lambda o: ndimage.morphological_gradient(m.asarray(VALUES), 3, output=o), m
    ),
    "distances": lambda m: written(
        lambda o: ndimage.distance_transform_edt(m.asarray(SIGNS), distances=o), m
    ),
    "indices": lambda m: written(
        lambda o: ndimage.distance_transform_edt(
            m.asarray(SIGNS), return_distances=False, return_indices=True, indices=o
        ), m, np.int32, (2, 8, 6)
    ),
}  # fmt: skip


@pytest.mark.parametrize("host_us", [0, 50])
@pytest.mark.parametrize("name", OUTPUTS)
def test_scipy_writes_to_our_arrays(name: str, host_us: int) -> None:
    with clfuse.config.override(host_us=host_us):
        agree(OUTPUTS[name])


def pairs(m: Any, kind: str) -> Any:
    """How many pairs are near each other, by the weights of their points."""
    spatial = pytest.importorskip("scipy.spatial")
    tree = getattr(spatial, kind)(m.asarray(VALUES) * 1)
    return tree.count_neighbors(
        spatial.KDTree(m.asarray(VALUES) + 0.5), m.linspace(0, 4, 4),
        weights=(m.ones(8) * 2, m.ones(8) * 3),
    )  # fmt: skip


def grown(m: Any, kind: str) -> Any:
    """The faces of a body that gets points one after the other; all begins anew with the last."""
    spatial = pytest.importorskip("scipy.spatial")
    body = getattr(spatial, kind)(m.asarray(VALUES[:5, :2]) * 1, incremental=True)
    body.add_points(m.asarray(VALUES[5:7, :2]) * 1)
    body.add_points(m.asarray(VALUES[7:, :2]) * 1, restart=True)
    return body.points


ARGUMENTS: dict[str, Callable[[Any], Any]] = {
    "hull": lambda m: grown(m, "ConvexHull"),
    "triangles": lambda m: grown(m, "Delaunay"),
    "cells": lambda m: grown(m, "Voronoi"),
    "spectrum of one with itself": lambda m: signal.csd(
        x := m.asarray(LINE) * 1, x, nperseg=16
    )[1],
    "heights": lambda m: signal.find_peaks(m.sin(m.asarray(LINE) * 9), height=m.full(50, 0.5))[0],
    "a bracket": lambda m: optimize.root_scalar(
        lambda x: x * x - 2, bracket=m.asarray([0.0, 2])
    ).root,
    "bounds": lambda m: optimize.minimize(
        lambda x: m.sum((x - 2) ** 2), m.zeros(2), bounds=m.asarray([[-1.0, 1], [-1, 3]])
    ).x,
    "a filter": lambda m: signal.sosfilt(signal.butter(3, m.asarray(LINE)[3], output="sos"),
                                         m.asarray(LINE)),
    "a rotation": lambda m: pytest.importorskip("scipy.spatial.transform").Rotation.from_euler(
        "xyz", m.asarray(VALUES)[0, :3]).apply(m.asarray(VALUES)[1, :3]),
    "weights of KDTree": lambda m: pairs(m, "KDTree"),
    "weights of cKDTree": lambda m: pairs(m, "cKDTree"),
    "a ufunc": lambda m: linalg.funm(m.asarray(MATRIX) * 1, m.sqrt),
    "a partial function": lambda m: linalg.funm(
        m.asarray(MATRIX) * 1, functools.partial(m.multiply, 2.0)
    ),
    "an order by f2py": lambda m: linalg.schur(
        m.asarray(MATRIX) * 1, sort=lambda x, y: m.hypot(x, y) > 2
    )[2],
    "a low rank": lambda m: pytest.importorskip("scipy.linalg.interpolative").svd(
        m.asarray(MATRIX), 2)[1],
}  # fmt: skip


@pytest.mark.parametrize("host_us", [0, 50])
@pytest.mark.parametrize("name", ARGUMENTS)
def test_scipy_takes_our_arrays_for_numpys(name: str, host_us: int) -> None:
    with clfuse.config.override(host_us=host_us):
        agree(ARGUMENTS[name], rtol=1e-6)


def test_results_have_fields_that_are_no_items() -> None:
    kind = type(stats.kstest(LINE, "norm"))
    ours = kind(clfuse.array(0.5), 0.25, statistic_location=clfuse.ones(2), statistic_sign=1)
    seen = deeply(host_view)(ours)
    assert type(seen) is kind
    assert tuple(seen) == (0.5, 0.25)
    assert type(seen.statistic_location) is np.ndarray
    assert seen.statistic_sign == 1


@pytest.mark.parametrize("host_us", [0, 50])
@pytest.mark.parametrize("method", ["BFGS", "CG", "L-BFGS-B", "SLSQP", "TNC", "trust-ncg"])
def test_scipy_calls_back_for_our_arrays(method: str, host_us: int) -> None:
    def found(m: Any) -> Any:
        goal = m.arange(3.0) + 1
        return optimize.minimize(
            lambda x: m.sum((x - goal) ** 2), m.zeros(3), method=method,
            jac=lambda x: 2 * (x - goal),
            hess=(lambda x: 2 * m.eye(3)) if method == "trust-ncg" else None,
        ).x  # fmt: skip

    with clfuse.config.override(host_us=host_us):
        agree(found, rtol=1e-5)


SERIES: dict[str, Callable[[Any, Any], Any]] = {
    "a ufunc": lambda m, s: m.maximum(s, m.asarray(LINE) + 0.1),
    "on the right": lambda m, s: m.arctan2(m.asarray(LINE), s),
    "in place": lambda m, s: operator.iadd(m.asarray(LINE) + 0, s),
    "masked": lambda m, s: s.groupby(pytest.importorskip("pandas").arrays.IntegerArray(
        m.arange(50) // 10, m.zeros(50, bool))).sum(),
}  # fmt: skip


@pytest.mark.parametrize("host_us", [0, 50])
@pytest.mark.parametrize("name", SERIES)
def test_pandas_answers_for_ufuncs_on_our_arrays(name: str, host_us: int) -> None:
    pandas = pytest.importorskip("pandas")
    expected = SERIES[name](np, pandas.Series(LINE))
    with clfuse.config.override(host_us=host_us):
        actual = SERIES[name](clfuse, pandas.Series(LINE))
    assert type(actual) is type(expected) is pandas.Series
    pandas.testing.assert_series_equal(actual, expected)


def test_callbacks_travel_to_processes_as_functions() -> None:
    callback = Callback(abs_of, lambda value: value)
    assert pickle.loads(pickle.dumps(callback)) is abs_of
    assert list(inspect.signature(callback).parameters) == ["value", "power"]


def abs_of(value: float, power: int = 1) -> float:
    return abs(value) ** power


def test_generators_of_ours_are_generators_to_packages() -> None:
    rng = clfuse.random.default_rng(3)
    assert np.random.default_rng(rng) is rng
    state = clfuse.random.RandomState(3)
    assert np.random.default_rng(state).random(3).shape == (3,)
    assert type(np.random.default_rng(3)) is np.random.Generator


DUCK = """
import numpy as np, scipy.linalg
class Kept:
    def __init__(self, values): self.values = values
    def __array__(self, dtype=None, copy=None): return np.asarray(self.values, dtype)
x = np.arange(9.0).reshape(3, 3) + np.eye(3)
kept = Kept(x)
print(round(float(scipy.linalg.det(kept)), 6), np.sum(kept), np.stack([kept, x]).shape)
y = np.asarray(kept)
y[0, 0] = 7
print(x[0, 0], (kept.__array__() + x).sum())
"""


def test_arrays_of_the_programs_classes_reach_packages(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(DUCK)
    plain = python("script.py", cwd=tmp_path)
    assert plain.returncode == 0, plain.stderr
    found = python("-m", "clfuse", "run", "script.py", cwd=tmp_path)
    assert (found.stdout, found.returncode) == (plain.stdout, 0), found.stderr


def searched(m: Any) -> Any:
    linear = pytest.importorskip("sklearn.linear_model")
    selection = pytest.importorskip("sklearn.model_selection")
    x, y = m.asarray(VALUES), m.asarray(VALUES)[:, 0] * 2
    grid = selection.GridSearchCV(linear.Ridge(), {"alpha": m.logspace(-2, 2, 5)}, cv=2).fit(x, y)
    path = linear.enet_path(x, y, alphas=m.asarray([0.1, 0.01]), precompute=x.T @ x)
    lasso = linear.LassoCV(alphas=m.logspace(-3, 0, 4), cv=2).fit(x, y)
    return [grid.best_params_["alpha"], path[1], lasso.alpha_]


def test_scikit_learn_takes_our_arrays_for_numpys() -> None:
    agree(searched, rtol=1e-6)


DRAWN: dict[str, Callable[[Any, Any], Any]] = {
    "streams by colour": lambda a, m: a.streamplot(
        m.arange(6.0), m.arange(8.0), m.asarray(VALUES), m.asarray(VALUES) * 0 + 1,
        color=m.asarray(VALUES), linewidth=m.asarray(VALUES) ** 2, density=0.3,
    ),
    "colours": lambda a, m: a.scatter(
        m.arange(8), m.arange(8), c=m.abs(m.asarray(VALUES)[:, :3]).clip(0, 1)
    ),
    "an error bar": lambda a, m: a.errorbar(
        m.arange(5), m.asarray(LINE)[:5], yerr=m.asarray(LINE)[:10].reshape(2, 5)
    ),
    "boxes": lambda a, m: a.boxplot([m.asarray(LINE), m.asarray(LINE)[:9]]),
    "a marker": lambda a, m: a.plot([0, 1], marker=m.asarray([[0.0, 0], [1, 0], [0, 1]])),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWN)
def test_matplotlib_takes_our_arrays_for_numpys(name: str) -> None:
    pytest.importorskip("matplotlib")
    agree_on_pixels(DRAWN[name])


def test_matplotlib_keeps_values_that_it_sorts() -> None:
    tri = pytest.importorskip("matplotlib.tri")

    def interpolated(m: Any) -> Any:
        x, y = m.asarray(VALUES[:, 0]), m.asarray(VALUES[:, 1])
        return tri.CubicTriInterpolator(tri.Triangulation(x, y), x + y)(x * 0.9, y * 0.9).filled(0)

    agree(interpolated, rtol=1e-8)


PICKLED = ("scipy.optimize", "scipy.stats", "scipy.ndimage", "scipy.signal", "scipy.special",
           "sklearn.metrics", "cv2", "pywt", "pandas")


@pytest.mark.parametrize("name", PICKLED)
def test_functions_of_packages_travel_to_other_processes(name: str) -> None:
    module = pytest.importorskip(name)
    functions = {key: value for key, value in vars(module).items()
                 if key[0] != "_" and inspect.isfunction(value)}
    assert len(functions) > 5
    for key, value in functions.items():
        assert pickle.loads(pickle.dumps(value)) is value, key


def test_processes_without_clfuse_get_the_packages_functions(tmp_path: Path) -> None:
    pickled = pickle.dumps([optimize.rosen, ndimage.gaussian_filter, signal.get_window])
    program = ("import pickle, sys\n"
               f"rosen, smooth, window = pickle.loads({pickled!r})\n"
               "assert 'clfuse' not in sys.modules\n"
               "assert rosen([1.0, 2.0]) == 100 and window('boxcar', 3).sum() == 3\n")
    done = python("-c", program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


PROBABILITIES = np.array([0.2, 0.3, 0.5])

SAMPLED: dict[str, Callable[[Any, Any], Any]] = {
    "quantiles of a normal distribution": lambda m, s: s.NumericalInverseHermite(
        pytest.importorskip("scipy.stats").norm()
    ).ppf(m.asarray([0.5, 0.9])),
    "quantiles of a few": lambda m, s: s.DiscreteGuideTable(m.asarray(PROBABILITIES)).ppf(
        m.asarray([0.1, 0.4, 0.9])
    ),
    "drawn of a few": lambda m, s: s.DiscreteAliasUrn(
        m.asarray(PROBABILITIES), random_state=3
    ).rvs(40),
    "drawn after a journey": lambda m, s: pickle.loads(pickle.dumps(
        s.DiscreteAliasUrn(m.asarray(PROBABILITIES), random_state=3)
    )).rvs(40),
}


@pytest.mark.parametrize("name", SAMPLED)
def test_compiled_classes_take_our_arrays(name: str) -> None:
    sampling = pytest.importorskip("scipy.stats.sampling")
    agree(lambda m: SAMPLED[name](m, sampling))


def test_a_compiled_class_is_still_its_own() -> None:
    sampling = pytest.importorskip("scipy.stats.sampling")
    kind = sampling.DiscreteGuideTable
    made = kind(clfuse.asarray(PROBABILITIES))
    assert made.ppf(clfuse.asarray([0.1, 0.4, 0.9])).tolist() == [0, 1, 2]
    assert isinstance(made, kind)
    assert pickle.loads(pickle.dumps(kind)) is kind
    with pytest.raises(sampling.UNURANError):
        kind(clfuse.asarray([-0.2, 0.5, 0.7]))


@pytest.mark.parametrize("host_us", [0, 50])
def test_what_is_written_to_is_what_is_returned(host_us: int) -> None:
    distance = pytest.importorskip("scipy.spatial.distance")
    with clfuse.config.override(host_us=host_us):
        points, between, pairs = clfuse.asarray(VALUES), clfuse.zeros((8, 8)), clfuse.zeros(28)
        assert distance.cdist(points, points + 1, out=between) is between
        assert distance.pdist(points, out=pairs) is pairs
        np.testing.assert_allclose(between, distance.cdist(VALUES, VALUES + 1))
        np.testing.assert_allclose(pairs, distance.pdist(VALUES))
