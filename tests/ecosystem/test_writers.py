"""Packages that write to what they are given, where they are allowed to, and to results of
functions of the program's."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clfuse
from clfuse.arrays.shared_storage import seen_by_numpy
from clfuse.interop.opening import open_to_ours
from clfuse.interop.third_party_patches import in_host_view
from tests.ecosystem.comparing import agree
from tests.support.agreement import host

COLUMNS = np.array([[1.0, 2.0], [3.0, 5.0], [4.0, 4.5]])


IRREGULAR = np.random.default_rng(5).normal(size=(20, 2))


def _set(made: Any, place: Any, value: float) -> Any:
    made.iloc[place] = value
    return made


IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "scale": lambda x, get: get("sklearn.preprocessing").scale(x, copy=False),
    "normalize": lambda x, get: get("sklearn.preprocessing").normalize(x, copy=False),
    "scaler": lambda x, get: get("sklearn.preprocessing").StandardScaler(copy=False).fit_transform(
        x
    ),
    "components": lambda x, get: get("sklearn.decomposition").PCA(
        1, copy=False, svd_solver="full"
    ).fit_transform(x),
    "regression": lambda x, get: get("sklearn.linear_model").LinearRegression(copy_X=False).fit(
        x, np.array([1.0, 2.0, 3.0])
    ).coef_,
    "detrend": lambda x, get: get("scipy.signal").detrend(x, overwrite_data=True),
    "solve": lambda x, get: get("scipy.linalg").solve(
        np.array([[2.0, 1.0], [1.0, 3.0]]), x[0], overwrite_b=True
    ),
    "eigenvectors": lambda x, get: get("scipy.sparse.linalg").lobpcg(
        get("scipy.sparse").diags_array(np.arange(1.0, 21.0)),
        x.T.repeat(10, 1)[:, :20].T + IRREGULAR, Y=np.eye(20, 1), largest=False, maxiter=60,
    )[0],
    "smoothed by place": lambda x, get: get("scipy.ndimage").prewitt(x * 2, 0, x),
    "distances by place": lambda x, get: get("scipy.ndimage").distance_transform_edt(
        x > 2, None, True, False, x
    ) or 0,
    "transform by place": lambda x, get: get("scipy.fft").dct(x, 2, None, -1, None, True),
    "transform": lambda x, get: get("scipy.fft").dst(x, 1, overwrite_x=True),
    "inverse by place": lambda x, get: get("scipy.linalg").inv(x[:2], True),
    "signs": lambda x, get: get("sklearn.utils.extmath").svd_flip(
        np.subtract(x, 4, out=x), None
    )[0],
    "phases": lambda x, get: get("control").unwrap(x[:, 0], 2.0),
    "moments": lambda x, get: get("sklearn.utils.sparsefuncs").incr_mean_variance_axis(
        get("scipy.sparse").csr_matrix(COLUMNS), axis=0,
        last_mean=x[0], last_var=x[1], last_n=x[2],
    )[0],
    "series": lambda x, get: _set(get("pandas").Series(x[1], copy=False), 0, 9).to_numpy(),
    "frame": lambda x, get: _set(get("pandas").DataFrame(x, copy=False), (0, 1), 9).to_numpy(),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_PLACE)
def test_what_may_be_overwritten_is(name: str) -> None:
    left = []
    for m in (np, clfuse):
        x = m.array(COLUMNS)
        kept = x.copy()
        result = host(IN_PLACE[name](x, pytest.importorskip))
        left.append((result, host(x)))
        np.testing.assert_array_equal(host(kept), COLUMNS)
    for expected, actual in zip(*left, strict=True):
        np.testing.assert_allclose(actual, expected, 1e-12, 1e-12)


def test_an_output_given_by_place_is_the_result() -> None:
    filters = pytest.importorskip("scipy.ndimage")
    x, out = clfuse.array(COLUMNS), clfuse.zeros((3, 2))
    assert filters.distance_transform_edt(x > 2, None, True, False, out) is None
    assert np.asarray(out).any()
    distance = pytest.importorskip("scipy.spatial.distance")
    out = clfuse.zeros((3, 3))
    assert distance.cdist(x, x, "euclidean", out=out) is out


FILTER = np.array([[0.5, 0.2, 0.1, 1.0, -0.4, 0.1], [0.3, 0.1, 0.2, 1.0, 0.2, 0.3]])

ASKING: dict[str, Callable[[Any, Any], Any]] = {
    "sections": lambda m, get: get("scipy.signal").sosfilt(m.asarray(FILTER), m.arange(9.0)),
    "twice": lambda m, get: get("scipy.signal").sosfiltfilt(m.asarray(FILTER), m.arange(30.0)),
}


@pytest.mark.parametrize("host_us", [0, 50])
@pytest.mark.parametrize("name", ASKING)
def test_what_asks_for_writable_memory_gets_it(name: str, host_us: int) -> None:
    with clfuse.config.override(host_us=host_us):
        agree(lambda m: ASKING[name](m, pytest.importorskip))


def test_a_function_that_may_not_write_is_repeated_once() -> None:
    calls = []

    def double(x: Any) -> Any:
        calls.append(x)
        return np.multiply(x, 2, *[x])

    call = open_to_ours(double, in_host_view)
    x, kept = clfuse.arange(3.0), clfuse.arange(3.0)
    kept.flags.writeable = False
    call(x)
    call(x)
    np.testing.assert_array_equal(host(x), [0, 4, 8])
    assert len(calls) == 3
    with pytest.raises(ValueError, match="read-only"):
        call(kept)
    np.testing.assert_array_equal(host(kept), [0, 1, 2])


def test_a_method_that_may_not_write_is_called_once() -> None:
    class Model:
        calls = 0

        def fit(self, x: Any) -> None:
            self.calls += 1
            np.multiply(x, 2, *[x])

    model = Model()
    fit = open_to_ours(Model.fit, in_host_view)
    with pytest.raises(ValueError, match="read-only"):
        fit(model, clfuse.arange(3.0))
    assert model.calls == 1


def test_threads_write_to_parts_of_one_array() -> None:
    def fill(part: Any, value: float) -> None:
        start.wait()
        seen_by_numpy(part)[...] = value

    for _ in range(50):
        x = clfuse.zeros((4, 1000))
        start = threading.Barrier(4)
        threads = [threading.Thread(target=fill, args=(x[row], row + 1.0)) for row in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        np.testing.assert_array_equal(host(x), np.arange(1.0, 5)[:, None] * np.ones(1000))


def _sparse(kind: str, m: Any) -> Any:
    """A sparse matrix that keeps arrays of `m`, which are not computed yet."""
    sparse = pytest.importorskip("scipy.sparse")
    values, columns = m.arange(1.0, 7) * 1.5, m.array([2, 0, 2, 1, 0, 1])
    starts = m.array([0, 2, 3, 6])
    if kind == "coo":
        return sparse.coo_matrix((values, (m.array([0, 0, 1, 2, 2, 2]), columns)))
    if kind == "dia":
        return sparse.dia_matrix((values.reshape(2, 3), m.array([0, 1])), shape=(3, 3))
    if kind == "bsr":
        blocks = (m.arange(16.0) * 0.5).reshape(4, 2, 2)
        return sparse.bsr_array((blocks, m.array([1, 0, 0, 1]), m.array([0, 2, 4])))
    matrix = getattr(sparse, kind[:3] + "_matrix")((values, columns, starts), shape=(3, 3))
    if kind == "csr, set":
        matrix.data = m.exp(-m.array(matrix.data))
    return matrix


def _multiplied(matrix: Any) -> Any:
    matrix *= 2
    return matrix


def _changed(matrix: Any, place: Any, value: Any) -> Any:
    matrix.data[place] = value
    return matrix


def _called(matrix: Any, name: str, *arguments: Any) -> Any:
    getattr(matrix, name)(*arguments)
    return matrix


SPARSE: dict[str, Callable[[Any, Any], Any]] = {
    "product": lambda x, m: _multiplied(x),
    "element": lambda x, m: _changed(x, 0, 9.0),
    "kept": lambda x, m: _changed(x.tocoo(copy=False), slice(2), 7.0),
    "copy": lambda x, m: _changed(x.copy(), 1, 8.0),
    "transposed": lambda x, m: _changed(x.T, 1, 8.0),
    "diagonal": lambda x, m: _called(x.tolil().tocsr(), "setdiag", m.arange(3.0)[: x.shape[0] - 1]),
    "zeros": lambda x, m: _called(_changed(x.tocsr(), 1, 0.0), "eliminate_zeros"),
    "order": lambda x, m: _called(x.tocsc() if x.format == "coo" else x, "sum_duplicates"),
    "rows": lambda x, m: operator.setitem(x := x.tocsr(), 1, m.array([1.0, 2, 3, 4])[: x.shape[1]])
    or x,
    "laplacian": lambda x, m: pytest.importorskip("scipy.sparse.csgraph").laplacian(x, normed=True),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Changing the sparsity")
@pytest.mark.parametrize("kind", ["coo", "csr", "csc", "csr, set", "dia", "bsr"])
@pytest.mark.parametrize("name", SPARSE)
def test_sparse_matrices_write_to_arrays_they_keep(name: str, kind: str) -> None:
    if kind == "dia" and name == "order":
        pytest.skip("it has none")
    found = []
    with clfuse.config.override(host_us=0):
        for m in (np, clfuse):
            matrix = _sparse(kind, m)
            found.append((SPARSE[name](matrix, m).toarray(), matrix.toarray()))
    np.testing.assert_allclose(found[1][0], found[0][0], 1e-12)
    np.testing.assert_allclose(found[1][1], found[0][1], 1e-12)


def test_a_sparse_matrix_shares_the_memory_of_its_arrays() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    with clfuse.config.override(host_us=0):
        values = clfuse.arange(1.0, 4) * 2
        matrix = sparse.csr_array((values, clfuse.arange(3), clfuse.arange(4)))
        matrix.data[0] = 50
        values[1] = 60
    np.testing.assert_array_equal(host(values), [50, 60, 6])
    np.testing.assert_array_equal(matrix.diagonal(), [50, 60, 6])


WITHOUT_LEAVE: dict[str, Callable[[Any, Any], Any]] = {
    "scale": lambda x, get: get("sklearn.preprocessing").scale(x),
    "frame": lambda x, get: _set(get("pandas").DataFrame(x), (0, 1), 9).to_numpy(),
}


@pytest.mark.parametrize("name", WITHOUT_LEAVE)
def test_what_is_copied_stays(name: str) -> None:
    x = clfuse.array(COLUMNS)
    WITHOUT_LEAVE[name](x, pytest.importorskip)
    np.testing.assert_array_equal(host(x), COLUMNS)


WRITTEN_RESULTS: dict[str, Callable[[Any, Any], Any]] = {
    "to infinity": lambda m, get: get("scipy.integrate").tanhsinh(
        lambda x: m.exp(-(m.asarray(x) ** 2)), -np.inf, np.inf
    ).integral,
    "series": lambda m, get: get("scipy.integrate").nsum(
        lambda k: 1 / m.asarray(k) ** 2, 1, np.inf
    ).sum,
    "root": lambda m, get: get("scipy.optimize.elementwise").find_root(
        lambda x: m.asarray(x) ** 3 - 5, (0, 3)
    ).x,
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN_RESULTS)
def test_scipy_writes_to_what_functions_return(name: str) -> None:
    integrate = pytest.importorskip("scipy.integrate")
    if not hasattr(integrate, "tanhsinh"):
        pytest.skip("SciPy before 1.15")
    agree(lambda m: WRITTEN_RESULTS[name](m, pytest.importorskip), rtol=1e-8)


def _windows(m: Any, pandas: Any) -> Any:
    class Ahead(pandas.api.indexers.BaseIndexer):  # type: ignore[misc]
        def get_window_bounds(
            self, num_values: Any = 0, min_periods: Any = None, center: Any = None,
            closed: Any = None, step: Any = None,
        ) -> Any:  # fmt: skip
            start = m.arange(num_values, dtype="int64")
            return start, m.minimum(start + self.window_size, num_values)

    table = pandas.DataFrame({"a": np.arange(5.0) ** 2})
    rolling = table.rolling(Ahead(window_size=2), min_periods=1)
    return np.hstack([rolling.sum(), rolling.median(), rolling.max(), rolling.quantile(0.3)])


OF_PANDAS: dict[str, Callable[[Any, Any], Any]] = {
    "take": lambda m, pandas: pandas.api.extensions.take(m.asarray([10, 20, 30]), [0, -1]),
    "extension": lambda m, pandas: pandas.arrays.NumpyExtensionArray(m.arange(3.0)).to_numpy(),
    "windows": _windows,
}


@pytest.mark.parametrize("name", OF_PANDAS)
def test_pandas_takes_our_arrays_for_numpys(name: str) -> None:
    pandas = pytest.importorskip("pandas")
    agree(lambda m: OF_PANDAS[name](m, pandas))
