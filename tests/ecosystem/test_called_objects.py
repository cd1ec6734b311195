"""Objects that packages call as functions, and the methods of SciPy's sparse arrays."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clfuse
from clfuse.arrays.conversion import host_view
from clfuse.interop.opened_objects import Callback
from clfuse.interop.third_party_patches import called_back, deeply
from tests.ecosystem.comparing import agree

linalg = pytest.importorskip("scipy.linalg")
interpolate = pytest.importorskip("scipy.interpolate")
optimize = pytest.importorskip("scipy.optimize")
sparse = pytest.importorskip("scipy.sparse")
pandas = pytest.importorskip("pandas")


CIRCLE = np.stack([np.cos(np.linspace(0, 6.28, 9)), np.sin(np.linspace(0, 6.28, 9))])


TURNING = np.array(
    [[4.0, 3.0, 1.0, -1.0], [-4.5, -3.5, -1.0, 1.0], [9.0, 6.0, -4.0, 4.5], [6.0, 4.0, -3.0, 3.5]]
)


class Square:
    """A function of the program's that is an object."""

    shift = 2.0

    def __init__(self, m: Any) -> None:
        self.m = m

    def __call__(self, x: Any) -> Any:
        return self.m.asarray(x) ** 2 - self.shift


class Step:
    """A step of `basinhopping`, whose size that changes."""

    stepsize = 0.5

    def __init__(self, m: Any) -> None:
        self.m, self.rng = m, np.random.default_rng(3)

    def __call__(self, x: Any) -> Any:
        step = self.rng.uniform(-self.stepsize, self.stepsize, x.shape)
        return self.m.asarray(x) + self.m.asarray(step)


CALLED: dict[str, Callable[[Any], Any]] = {
    "funm": lambda m: linalg.funm(m.asarray([[1.0, 2.0], [0.0, 3.0]]), Square(m)),
    "sorted by a function": lambda m: linalg.schur(
        m.asarray(TURNING) * 1, sort=lambda x: x >= 0.0
    )[0],
    "sorted by parts": lambda m: linalg.schur(m.asarray(TURNING) * 1, sort=lambda x, y: x < 0)[0],
    "basis of one": lambda m: interpolate.Rbf(
        m.arange(5.0), m.sin(m.arange(5.0)), function=lambda r: m.asarray(r) ** 3
    )(m.asarray([0.5, 1.5])),
    "basis of two": lambda m: interpolate.Rbf(
        m.arange(5.0), m.sin(m.arange(5.0)), function=lambda self, r: m.exp(-r / self.epsilon)
    )(m.asarray([0.5, 1.5])),
    "pieces": lambda m: interpolate.NdPPoly(
        m.arange(48.0).reshape(3, 2, 4, 2) / 9, (m.linspace(0, 1, 5), m.linspace(0, 1, 3))
    )(m.asarray([[0.3, 0.4]])),
    "root from numbers": lambda m: optimize.root(Square(m), [1.0, 1.0]).x,
    "in options": lambda m: optimize.shgo(
        lambda x: ((m.asarray(x) - 0.5) ** 2).sum(), [(0, 2), (0, 2)],
        minimizer_kwargs={"method": "L-BFGS-B", "jac": lambda x: 2 * (m.asarray(x) - 0.5)},
    ).x,
    "steps": lambda m: optimize.basinhopping(
        lambda x: (m.asarray(x) ** 2).sum() + m.cos(3 * m.asarray(x)).sum(), m.ones(1), niter=60,
        rng=1, take_step=(step := Step(m)), interval=5,
    ).fun + step.stepsize,
    "root": lambda m: optimize.root(Square(m), m.ones(3)).x,
    "series": lambda m: pandas.Series([m.arange(3), m.arange(2)]).map(m.sum).to_numpy(),
    "tensordot": lambda m: sparse.coo_array(m.eye(3)).tensordot(m.ones((3, 2)), 1),
    "lists of axes": lambda m: sparse.coo_array(m.ones((2, 3, 4))).tensordot(
        m.ones((4, 3)), (m.asarray([2, 1]), m.asarray([0, 1]))
    ),
    "periodic": lambda m: interpolate.splprep(m.asarray(CIRCLE) + 0, s=0, per=1)[1],
    "maximum": lambda m: sparse.csr_array(m.eye(3)).maximum(m.ones((3, 3))),
}  # fmt: skip


def half(m: Any) -> Callable[[Any], Any]:
    """A function of the program's that gives one number."""
    return lambda values: m.percentile(values, 50)


TABLE = pandas.DataFrame({"a": np.arange(8.0), "b": np.arange(8.0) ** 2})
GROUPS = [0, 1] * 4

CALLED_BY_PANDAS: dict[str, Callable[[Any], Any]] = {
    "groups of a column": lambda m: TABLE.a.groupby(GROUPS).apply(half(m)),
    "groups of a table": lambda m: TABLE.groupby(GROUPS).apply(lambda group: half(m)(group.b)),
    "labels": lambda m: pandas.Index([1.0, 2.0]).map(half(m)),
    "several": lambda m: TABLE.agg([half(m), "sum"]).T["sum"],
    "by name": lambda m: TABLE.groupby(GROUPS).agg(middle=("a", half(m))),
    "dictionary": lambda m: pandas.Series({"middle": half(m)(TABLE.a)}),
}


@pytest.mark.parametrize("host_us", [0, 50])
@pytest.mark.parametrize("name", CALLED_BY_PANDAS)
def test_tables_are_made_of_the_numbers_that_functions_give(name: str, host_us: int) -> None:
    with clfuse.config.override(host_us=host_us):
        agree(lambda m: CALLED_BY_PANDAS[name](m).to_numpy())


def test_arrays_in_tables_are_shown_as_numpys() -> None:
    shown = [
        pandas.DataFrame({"a": pandas.Series([m.arange(2.0), m.ones(1)])}).to_string()
        for m in (np, clfuse)
    ]
    assert shown[0] == shown[1]


@pytest.mark.parametrize("host_us", [0, 50])
@pytest.mark.parametrize("name", CALLED)
def test_called_objects_give_numpys_results(name: str, host_us: int) -> None:
    with clfuse.config.override(host_us=host_us):
        agree(CALLED[name], rtol=1e-6)


def test_what_stands_for_an_object_is_one_of_its_class() -> None:
    from clfuse.interop.third_party_patches import called_back

    made = called_back(Square(clfuse))
    assert isinstance(made, Square)
    assert made.shift == 2.0
    assert type(made(np.ones(2))) is np.ndarray
    assert called_back(Square) is Square


def test_objects_without_a_call_are_given_as_they_are() -> None:
    from clfuse.interop.third_party_patches import called_back

    bits = clfuse.random.Philox4x32(3)
    assert called_back(bits) is bits


def test_scipys_table_of_functions_knows_opened_ones() -> None:
    api = pytest.importorskip("scipy._lib._array_api")
    if not hasattr(api, "xp_capabilities_table"):
        pytest.skip("a release without the table")
    assert api.xp_capabilities_table[interpolate.make_interp_spline]
    with pytest.raises(KeyError):
        api.xp_capabilities_table[Square]


def test_a_function_that_is_called_back_is_wrapped_once() -> None:
    given = deeply(host_view, called_back)
    once = given(lambda x: x)
    assert type(once) is Callback
    assert given(once) is once


def test_functions_of_private_modules_are_scipys_own() -> None:
    integrate = pytest.importorskip("scipy.integrate")
    rk = importlib.import_module("scipy.integrate._ivp.rk")
    assert not hasattr(rk.rk_step, "of_package")
    assert hasattr(integrate.solve_ivp, "of_package")
    calls = []

    def decay(t: float, y: Any) -> Any:
        calls.append(type(y))
        return clfuse.asarray(-y) * 0.5

    found = integrate.solve_ivp(decay, (0.0, 2.0), clfuse.asarray([1.0, 2.0]), rtol=1e-8)
    np.testing.assert_allclose(found.y[:, -1], np.exp(-1.0) * np.array([1.0, 2.0]), rtol=1e-6)
    assert set(calls) == {np.ndarray}
