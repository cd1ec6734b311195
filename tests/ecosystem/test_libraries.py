"""matplotlib, pandas, SciPy, einops and IPython with clfuse arrays as arguments."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clfuse
from tests.ecosystem.comparing import HOLES, LINE, MATRIX, VALUES, agree, agree_on_pixels
from tests.support.agreement import assert_bitwise, host

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning",
                                        "ignore::RuntimeWarning")

GRID = np.random.default_rng(1).random((10, 12))

# -- matplotlib -----------------------------------------------------------------------------------

PICTURES: dict[str, Callable[[Any, Any], Any]] = {
    "plot": lambda a, m: a.plot(m.asarray(LINE), m.sin(m.asarray(LINE))),
    "holes": lambda a, m: a.plot(m.asarray(HOLES)),
    "scatter": lambda a, m: a.scatter(m.asarray(LINE), m.asarray(LINE) ** 2, c=m.asarray(LINE)),
    "imshow": lambda a, m: a.imshow(m.asarray(GRID)),
    "hist": lambda a, m: a.hist(m.asarray(LINE), bins=5),
    "hist2d": lambda a, m: a.hist2d(m.asarray(LINE), m.asarray(LINE) ** 2),
    "bar": lambda a, m: a.bar(m.arange(4), m.asarray([1, 2, 3, 2.0])),
    "contourf": lambda a, m: a.contourf(m.arange(12), m.arange(10), m.asarray(GRID)),
    "pcolormesh": lambda a, m: a.pcolormesh(m.asarray(GRID)),
    "fill": lambda a, m: a.fill_between(m.arange(50), m.asarray(LINE), m.asarray(LINE).mean()),
    "errorbar": lambda a, m: a.errorbar(m.arange(50), m.asarray(LINE), yerr=m.asarray(LINE)),
    "boxplot": lambda a, m: a.boxplot(m.asarray(GRID)),
    "violinplot": lambda a, m: a.violinplot(m.asarray(GRID)),
    "limits": lambda a, m: (a.set_xlim(m.asarray(LINE).min(), m.asarray(LINE).max()),
                            a.axhline(m.asarray(LINE).mean()), a.set_xticks(m.arange(3))),
}


@pytest.mark.parametrize("name", PICTURES)
def test_matplotlib_draws_the_same_picture(name: str) -> None:
    pytest.importorskip("matplotlib")
    agree_on_pixels(PICTURES[name])


# -- pandas ---------------------------------------------------------------------------------------


def test_pandas_takes_arrays_as_columns_indices_and_operands() -> None:
    pd = pytest.importorskip("pandas")
    for body in (
        lambda m: pd.Series(m.asarray(LINE)).values,
        lambda m: pd.DataFrame(m.asarray(VALUES)).values,
        lambda m: pd.DataFrame({"a": m.asarray(LINE), "b": m.asarray(LINE) * 2}).values,
        lambda m: pd.Series(m.asarray(LINE), index=m.arange(50)).loc[3],
        lambda m: pd.DataFrame({"a": LINE}).assign(b=m.asarray(LINE)).values,
        lambda m: (pd.Series(LINE) + m.asarray(LINE)).values,
        lambda m: (m.asarray(LINE) + pd.Series(LINE)).values, lambda m: m.sqrt(pd.Series(LINE)),
        lambda m: (pd.Series(LINE) > m.asarray(LINE).mean()).values,
        lambda m: pd.Series(LINE).iloc[m.asarray([1, 2])].values,
        lambda m: pd.DataFrame(VALUES).loc[m.asarray([0, 2])].values,
        lambda m: pd.Series(LINE).where(m.asarray(LINE) > 0.5, 0).values,
        lambda m: pd.cut(m.asarray(LINE), 4).codes, lambda m: pd.isna(m.asarray(HOLES)),
        lambda m: (pd.DataFrame(VALUES) @ m.ones(6)).values,
        lambda m: m.ones(8) @ pd.DataFrame(VALUES), lambda m: m.asarray(pd.DataFrame(VALUES)),
        lambda m: pd.Series(m.asarray(LINE)).rolling(3).mean().values,
        lambda m: pd.concat([pd.Series(m.asarray(LINE))] * 2).values,
    ):
        agree(body)
    assert pd.DataFrame({"a": clfuse.zeros(3, "i2")}).dtypes["a"] == np.int16


# -- SciPy ----------------------------------------------------------------------------------------

SCIPY: dict[str, Callable[[Any, Any], Any]] = {
    "special.gamma": lambda s, m: s.gamma(m.asarray(LINE) + 1),
    "special.logsumexp": lambda s, m: s.logsumexp(m.asarray(VALUES), axis=1),
    "ndimage.gaussian_filter": lambda s, m: s.gaussian_filter(m.asarray(GRID), 1),
    "ndimage.label": lambda s, m: s.label(m.asarray(GRID) > 0.5)[0],
    "ndimage.map_coordinates": lambda s, m: s.map_coordinates(
        m.asarray(GRID), m.asarray([[1.5, 2], [3, 4.2]])),
    "linalg.solve": lambda s, m: s.solve(m.asarray(MATRIX), m.ones(6)),
    "linalg.svdvals": lambda s, m: s.svdvals(m.asarray(MATRIX)),
    "linalg.expm": lambda s, m: s.expm(m.asarray(MATRIX) / 10),
    "stats.zscore": lambda s, m: s.zscore(m.asarray(VALUES)),
    "stats.norm.cdf": lambda s, m: s.norm.cdf(m.asarray(LINE)),
    "stats.pearsonr": lambda s, m: s.pearsonr(m.asarray(LINE), m.asarray(LINE) ** 2).statistic,
    "stats.ttest_ind": lambda s, m: tuple(s.ttest_ind(m.asarray(LINE), m.asarray(LINE) * 2)),
    "stats.linregress": lambda s, m: s.linregress(m.asarray(LINE), m.asarray(LINE) * 2 + 1).slope,
    "integrate.simpson": lambda s, m: s.simpson(m.asarray(LINE)),
    "integrate.quad": lambda s, m: s.quad(lambda x: m.sin(m.asarray(x)), 0, 1)[0],
    "integrate.solve_ivp": lambda s, m: s.solve_ivp(
        lambda t, y: -m.asarray(y) * 2, (0, 1), m.asarray([1.0, 2])).y,
    "optimize.minimize": lambda s, m: s.minimize(
        lambda x: ((m.asarray(x) - 3) ** 2).sum(), m.zeros(3)).x,
    "optimize.brentq": lambda s, m: s.brentq(lambda x: m.sin(m.asarray(x)), 3, 4),
    "optimize.curve_fit": lambda s, m: s.curve_fit(
        lambda x, a, b: a * m.asarray(x) + b, m.asarray(LINE), 2 * m.asarray(LINE) + 1)[0],
    "signal.savgol_filter": lambda s, m: s.savgol_filter(m.asarray(LINE), 5, 2),
    "signal.fftconvolve": lambda s, m: s.fftconvolve(m.asarray(LINE), m.asarray(LINE)),
    "fft.dct": lambda s, m: s.dct(m.asarray(LINE)),
    "interpolate.CubicSpline": lambda s, m: s.CubicSpline(m.arange(50.0), m.asarray(LINE))(
        m.asarray([1.5])),
    "spatial.distance.cdist": lambda s, m: s.distance.cdist(m.asarray(VALUES), m.asarray(VALUES)),
    "sparse.csr_array": lambda s, m: s.csr_array(MATRIX) @ m.ones(6),
    "cluster.vq.whiten": lambda s, m: s.vq.whiten(m.asarray(VALUES)),
}


@pytest.mark.parametrize("name", SCIPY)
def test_scipy_takes_our_arrays(name: str) -> None:
    scipy = pytest.importorskip("scipy")
    package = getattr(scipy, name.split(".")[0])
    agree(lambda m: SCIPY[name](package, m), rtol=1e-6)


# -- einops ---------------------------------------------------------------------------------------


def test_einops_by_the_array_api() -> None:
    pytest.importorskip("einops")
    from einops import array_api

    for body in (
        lambda m: array_api.rearrange(m.asarray(VALUES), "(a b) c -> b (a c)", a=2),
        lambda m: array_api.reduce(m.asarray(VALUES), "(a b) c -> a c", "mean", a=2),
        lambda m: array_api.repeat(m.asarray(VALUES), "a b -> a b 3"),
        lambda m: array_api.pack([m.asarray(VALUES), m.asarray(VALUES)], "a *")[0],
    ):
        assert type(agree(body)) is clfuse.ndarray


# -- notebooks ------------------------------------------------------------------------------------


def test_a_notebook_shows_previews_and_the_plan_as_html() -> None:
    formatters = pytest.importorskip("IPython.core.formatters")
    x = clfuse.arange(10_000.0).reshape(100, 100) < 5
    shown, _ = formatters.DisplayFormatter().format(x)
    assert shown["text/plain"] == repr(np.arange(1e4).reshape(100, 100) < 5)
    assert "shape (100, 100), bool, 10,000 bytes" in shown["text/html"]
    assert shown["text/html"].count("...") == shown["text/plain"].count("...")
    with clfuse.config.override(host_us=0):
        shown, _ = formatters.DisplayFormatter().format(clfuse.explain(clfuse.arange(9.0) * 2))
    assert "<table>" in shown["text/html"]
    assert "__kernel" in shown["text/html"]


# -- doors: packages that ask for NumPy's own class -----------------------------------------------

PANDAS: dict[str, Callable[[Any, Any], Any]] = {
    "masks of rows": lambda pd, m: pd.DataFrame({"a": m.arange(5.0)})[m.arange(5) > 2],
    "masks of loc": lambda pd, m: pd.DataFrame({"a": m.arange(5.0)}).loc[m.arange(5) > 2, "a"],
    "masks of a series": lambda pd, m: pd.Series(m.arange(5))[m.arange(5) % 2 == 0],
    "keys of groups": lambda pd, m: pd.Series(GRID[0]).groupby(m.arange(12) % 2).sum(),
    "lists of keys": lambda pd, m: pd.Series(GRID[0]).groupby(
        [m.arange(12) % 2, m.arange(12) % 3]).sum(),
    "unique": lambda pd, m: pd.unique(m.array([3, 1, 3])),
    "factorize": lambda pd, m: pd.factorize(m.array([3, 1, 3]))[0],
    "operands of two axes": lambda pd, m: m.array([[1.0], [2]]) * pd.DataFrame(MATRIX[:2]),
    "sums of columns": lambda pd, m: m.sum(pd.DataFrame(MATRIX)),
    "running sums": lambda pd, m: m.cumsum(pd.Series(GRID[0], index=range(5, 17))),
    "what a function makes of groups": lambda pd, m: pd.DataFrame(
        {"k": [1, 1, 2], "x": [1.0, 2, 4]}).groupby("k").agg(
            lambda x: m.mean(m.nan_to_num(m.asarray(x)) * m.linspace(1, 1, 100_000)[: len(x)])),
    "clipping": lambda pd, m: m.clip(pd.DataFrame(MATRIX), 0.2, m.full(MATRIX.shape, 0.5)),
}


@pytest.mark.parametrize("name", PANDAS)
def test_pandas_takes_our_arrays_where_it_asks_for_numpys_class(name: str) -> None:
    pandas = pytest.importorskip("pandas")
    ours, expected = PANDAS[name](pandas, clfuse), PANDAS[name](pandas, np)
    assert type(ours) is type(expected)
    if hasattr(expected, "index"):
        assert ours.equals(expected)
    else:
        np.testing.assert_array_equal(ours, expected)


def test_what_pandas_is_given_may_be_written_to_there() -> None:
    pandas = pytest.importorskip("pandas")
    x = clfuse.arange(4)
    series = pandas.Series(x)
    series[1] = 9
    frame = pandas.DataFrame({"a": x, "b": x * 2.0})
    frame["c"] = x
    frame.loc[x > 1, "b"] = -1
    frame.iloc[0, 2] = 7
    frame.loc[:, "a"] = x + 1
    assert series.tolist() == [0, 9, 2, 3]
    assert frame.to_numpy().tolist() == [[1, 0, 7], [2, 2, 1], [3, -1, 2], [4, -1, 3]]
    assert x.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("body", [
    lambda ski, m: ski.util.view_as_windows(m.asarray(GRID), (2, 2)),
    lambda ski, m: ski.morphology.dilation(m.asarray(GRID)),
    lambda ski, m: ski.transform.rotate(m.asarray(GRID), 30),
    lambda ski, m: ski.segmentation.watershed(m.asarray(-GRID), m.asarray(GRID > 0.8) * 1),
    lambda ski, m: ski.filters.rank.mean((m.asarray(GRID) * 200).astype("u1"), m.ones((3, 3), "B")),
])  # fmt: skip
def test_scikit_image_takes_our_arrays(body: Callable[[Any, Any], Any]) -> None:
    skimage = pytest.importorskip("skimage")
    np.testing.assert_array_equal(np.asarray(body(skimage, clfuse)), body(skimage, np))


def test_scikit_image_draws_into_our_arrays() -> None:
    draw = pytest.importorskip("skimage.draw")
    ours, expected = clfuse.zeros((9, 9)), np.zeros((9, 9))
    for image in (ours, expected):
        draw.set_color(image, draw.disk((4, 4), 3), 2.5)
        image[4] += 1
    np.testing.assert_array_equal(np.asarray(ours), expected)


def test_scipy_solves_with_operators_of_ours() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    matrix = MATRIX @ MATRIX.T + np.eye(6)
    found = sparse.linalg.cg(clfuse.array(matrix), clfuse.ones(6))[0]
    np.testing.assert_allclose(matrix @ found, np.ones(6), rtol=1e-4)


# -- lazy numbers, where compiled code looks at the memory of a number ----------------------------


def _lazy(function: str = "mean") -> Any:
    """A number that is not computed yet: `clfuse`'s, as reductions of large arrays give it."""
    made = getattr(clfuse.linspace(0, 1, 300_000) * 2 + 1, function)()
    assert type(made).__module__ == "clfuse"
    return made


LAZY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "lists": lambda pd, m, i: pd.Series([m, 2.0, m]),
    "records": lambda pd, m, i: pd.DataFrame([{"m": m, "i": i}, {"m": 1.0, "i": 2}]),
    "columns": lambda pd, m, i: pd.DataFrame({"m": [m, m], "i": [i, i]}),
    "rows": lambda pd, m, i: pd.DataFrame([[m, i], (m, i)]),
    "one number": lambda pd, m, i: pd.Series(m, index=[0, 1]),
    "values by label": lambda pd, m, i: pd.Series({"a": m, "b": m}),
    "indices": lambda pd, m, i: pd.Index([m, 3.0]),
    "filling": lambda pd, m, i: pd.Series([1.0, None]).fillna(m),
    "membership": lambda pd, m, i: pd.Series([2.0, 3.0, i]).isin([i]),
}


@pytest.mark.parametrize("name", LAZY)
def test_pandas_makes_the_dtypes_of_numbers_of_lazy_ones(name: str) -> None:
    pandas = pytest.importorskip("pandas")
    ours = LAZY[name](pandas, _lazy(), _lazy("argmax"))
    expected = LAZY[name](pandas, _lazy().get()[()], _lazy("argmax").get()[()])
    assert ours.equals(expected)
    assert str(getattr(ours, "dtypes", "")) == str(getattr(expected, "dtypes", ""))


def test_pandas_stores_lazy_numbers_in_columns_as_they_are() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0]})
    m = _lazy()
    frame["b"] = m
    frame.loc[0, "a"] = m
    frame.at[1, "a"] = m
    frame.iloc[0, 1] = m
    frame.loc[2] = [m, m]
    assert frame.dtypes.tolist() == [np.float64] * 2
    assert frame.to_numpy().tolist() == [[float(m)] * 2] * 3


def test_json_writes_lazy_numbers_where_it_writes_numpys() -> None:
    import io
    import json

    m = _lazy()
    document = {"m": m, "rows": [{"m": [m, (m, 1)]}], m: 2}
    expected = {"m": float(m), "rows": [{"m": [float(m), (float(m), 1)]}], float(m): 2}
    assert json.dumps(document) == json.dumps(expected)
    assert json.dumps(document, indent=1) == json.dumps(expected, indent=1)
    stream = io.StringIO()
    json.dump(m, stream)
    assert stream.getvalue() == repr(float(m))
    with pytest.raises(TypeError, match="int64 is not JSON serializable"):
        json.dumps(_lazy("argmax"))
    circle: list[Any] = [1]
    circle.append(circle)
    with pytest.raises(ValueError, match="Circular"):
        json.dumps(circle)


def test_asking_a_number_for_its_class_makes_another_of_it() -> None:
    import sqlite3
    import statistics

    m = _lazy()
    assert statistics.mean([m, m + 1]) == statistics.mean([float(m), float(m) + 1])
    assert type(type(m)(2)) is np.float64
    with sqlite3.connect(":memory:") as database:
        assert database.execute("select ?", (m,)).fetchone() == (float(m),)


# -- what SciPy writes to ------------------------------------------------------------------------


def test_sparse_factors_solve_for_our_arrays() -> None:
    linalg = pytest.importorskip("scipy.sparse.linalg")
    matrix = pytest.importorskip("scipy.sparse").csc_matrix([[4.0, 1.0], [1.0, 3.0]])
    for solve in (linalg.factorized(matrix), linalg.splu(matrix).solve, linalg.spilu(matrix).solve):
        np.testing.assert_allclose(solve(clfuse.asarray([6.0, 7.0])), [1.0, 2.0], rtol=1e-14)
        np.testing.assert_allclose(solve(np.array([6.0, 7.0])), [1.0, 2.0], rtol=1e-14)
    factors = linalg.splu(matrix)
    assert isinstance(factors, linalg.SuperLU)
    assert factors.shape == (2, 2)
    x = factors.solve(clfuse.ones(2), trans="T")
    np.testing.assert_allclose(x, [2 / 11, 3 / 11], rtol=1e-14)


def test_scipy_writes_its_output_into_our_arrays() -> None:
    ndimage = pytest.importorskip("scipy.ndimage")
    ours, expected = clfuse.zeros((10, 12)), np.zeros((10, 12))
    for m, image in ((clfuse, ours), (np, expected)):
        source = m.array(GRID)
        ndimage.gaussian_filter(source, 1, output=image)
        rows = source[::2]
        ndimage.uniform_filter(rows, 3, output=rows)
        image += source
    np.testing.assert_array_equal(np.asarray(ours), expected)


@pytest.mark.parametrize("count", [7, 300_000])
def test_sparse_matrices_fill_what_they_make_like_our_elements(count: int) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    rows, columns, values = np.arange(count) % 50, np.arange(count) % 41, np.arange(1.0, count + 1)
    found = []
    for m in (clfuse, np):
        matrix = sparse.coo_matrix((values, (rows, columns)), shape=(50, 41))
        matrix.data = m.sqrt(m.asarray(matrix.data)) / 2
        found.append((matrix - 2 * matrix.tocsr().tocoo()).toarray())
    np.testing.assert_allclose(*found, rtol=1e-12)


SPARSE = ["csr_array", "csr_matrix", "coo_array", "dok_matrix", "dia_array"]


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_matrices_beside_arrays_are_as_beside_numpys(name: str) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    values = np.arange(6.0).reshape(2, 3)
    matrix = getattr(sparse, name)(values)
    calls: list[Any] = [
        lambda x: matrix + x, lambda x: x + matrix, lambda x: matrix - 2 * x, lambda x: x - matrix,
        lambda x: matrix == x, lambda x: x == matrix, lambda x: matrix != x, lambda x: x != matrix,
        lambda x: matrix < x + 1, lambda x: x <= matrix, lambda x: x > matrix,
        lambda x: matrix / (x + 1), lambda x: matrix @ x.T, lambda x: x.T @ matrix,
        lambda x: operator.iadd(x, matrix), lambda x: operator.isub(x[:1], matrix.tocsr()[[0]]),
    ]  # fmt: skip
    for call in calls:
        ours, theirs = call(clfuse.array(values)), call(values.copy())
        dense = [host(x.toarray() if sparse.issparse(x) else x) for x in (ours, theirs)]
        assert_bitwise(*dense)
    for x in (values, clfuse.array(values)):
        with pytest.raises(ValueError, match=r"dimensions|shapes|broadcast"):
            matrix + x[:, :2]
        with pytest.raises(ValueError, match=r"dimensions|shapes|broadcast"):
            operator.gt(x[:1], matrix.tocsr()[:, :2])


@pytest.mark.parametrize("dtype", ["str", "category", "Int64", "float64", "complex128", "string"])
def test_sets_of_the_columns_of_tables(dtype: str) -> None:
    pandas = pytest.importorskip("pandas")
    column = pandas.Series([3, 1, 3, 2]).astype(dtype)
    for call in (
        lambda m: m.unique(column),
        lambda m: m.unique(column, return_counts=True)[1],
        lambda m: m.isin(column, column[:1]),
        lambda m: m.intersect1d(column, column[1:3]),
    ):
        ours, theirs = call(clfuse), call(np)
        assert np.asarray(ours).dtype == np.asarray(theirs).dtype
        assert np.asarray(ours).tolist() == np.asarray(theirs).tolist()


def test_scipy_leaves_arrays_alone_that_may_not_be_written_to() -> None:
    ndimage = pytest.importorskip("scipy.ndimage")
    x = clfuse.array(GRID)
    x.flags.writeable = False
    with pytest.raises((ValueError, RuntimeError)):
        ndimage.gaussian_filter(GRID, 1, output=x)
    np.testing.assert_array_equal(np.asarray(x), GRID)


@pytest.mark.parametrize("body", [
    lambda m: pytest.importorskip("scipy.spatial.transform").Rotation.from_euler("z", 0.3).apply(
        m.eye(3)),
    lambda m: pytest.importorskip("scipy.stats").bootstrap(
        (m.array(GRID[0]),), m.mean, rng=np.random.default_rng(1), n_resamples=40).standard_error,
    lambda m: pytest.importorskip("scipy.sparse.linalg").LinearOperator(
        (6, 6), matvec=lambda v: m.array(MATRIX[:6, :6]) @ m.asarray(v)) @ m.ones(6),
])  # fmt: skip
def test_scipys_compiled_code_takes_our_arrays(body: Callable[[Any], Any]) -> None:
    ours = body(clfuse)
    np.testing.assert_allclose(ours, body(np), rtol=1e-12)
    assert not isinstance(ours, np.ndarray) or ours.flags.writeable


def test_elements_are_numpys_after_scipy_asked_for_a_namespace() -> None:
    from clfuse.arrays import host_array

    stats = pytest.importorskip("scipy.stats")
    x = clfuse.arange(50.0)
    # Other tests keep to the standard.
    before, host_array.standard[0] = host_array.standard[0], False
    try:
        stats.ttest_ind(x, x + 1)
        assert [type(value) for value in x[:2]] == [np.float64] * 2
    finally:
        host_array.standard[0] = before


def test_error_functions_of_scipy_are_recorded() -> None:
    special = pytest.importorskip("scipy.special")
    values = np.r_[np.linspace(-30, 30, 501), 0.0, -0.0, np.inf, -np.inf, np.nan]
    for dtype in (np.float64, np.float32, np.float16, np.int8, np.complex64):
        with np.errstate(invalid="ignore"):
            own = values[:501].astype(dtype) if dtype is np.int8 else values.astype(dtype)
        for function in (special.erf, special.erfc):
            before = clfuse.stats()["fallbacks"]
            with clfuse.config.override(host_us=0):
                actual = function(clfuse.asarray(own))
                assert isinstance(actual, clfuse.ndarray)
                fell_back = clfuse.stats()["fallbacks"] - before
                found = actual.get()
            expected = function(own)
            assert found.dtype == expected.dtype
            assert fell_back == (dtype is np.complex64)
            precision = 1e-5 if expected.dtype.itemsize < 8 or dtype is np.complex64 else 1e-13
            np.testing.assert_allclose(found, expected, precision, 1e-300)


SYMBOLIC: dict[str, Callable[[Any, Any], Any]] = {
    "times": lambda x, m: x * m.arange(3.0),
    "minus": lambda x, m: x - m.ones((2, 2)),
    "divided": lambda x, m: x / m.arange(1, 4),
    "power": lambda x, m: x ** m.arange(3),
    "from the left": lambda x, m: m.arange(3.0) * x,
    "without axes": lambda x, m: x * m.array(2.0),
    "an element": lambda x, m: x * m.arange(3.0)[1],
    "a sum": lambda x, m: x + m.linspace(0, 1, 200_000).sum(),
    "one": lambda x, m: x * m.array([2.0]),
}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbols_of_sympy_calculate_with_arrays(name: str) -> None:
    symbol = pytest.importorskip("sympy").Symbol("x")
    expected, actual = SYMBOLIC[name](symbol, np), SYMBOLIC[name](symbol, clfuse)
    assert str(actual) == str(expected)
    assert np.shape(actual) == np.shape(expected)


GRAPHS: dict[str, Callable[[Any, Any], Any]] = {
    "by its class": lambda nx, m: nx.Graph(m.asarray([[0.0, 2.0], [2.0, 0.0]])),
    "directed": lambda nx, m: nx.DiGraph(m.asarray([[0, 1], [0, 1]])),
    "by a function": lambda nx, m: nx.to_networkx_graph(m.ones((3, 3))),
    "of edges": lambda nx, m: nx.Graph([(1, 2), (2, 3)]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_networkx_takes_a_matrix_for_a_graph(name: str) -> None:
    nx = pytest.importorskip("networkx")
    expected, actual = GRAPHS[name](nx, np), GRAPHS[name](nx, clfuse)
    assert sorted(actual.edges(data=True)) == sorted(expected.edges(data=True))


def test_control_takes_arrays_in_lists_of_lists() -> None:
    control = pytest.importorskip("control")
    agree(lambda m: control.combine_tf([[m.eye(2), m.zeros((2, 1))]])(1j))
