"""Functions that NumPy composes of others, and those that we do: values, dtypes, shapes and errors
are NumPy's, and nothing falls back to the host.

What they are composed of is the subject, not its kernels, which have tests of their own: NumPy
calculates these small arrays (`test_small_programs`), and 400 kernels need not be built.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import Batch, assert_same_error

RNG = np.random.default_rng(5)
A = RNG.random((6, 5))
V = RNG.random(9)
W = RNG.integers(0, 9, 12)
GAPS = np.where(A > 0.8, np.nan, A)
GAPS[2] = np.nan
P, Q = np.array([1.0, -3, 2]), np.array([2.0, 1])
METHODS = ("averaged_inverted_cdf", "closest_observation", "weibull", "midpoint")


@pytest.fixture(autouse=True)
def nothing_on_the_host(
    xp: ModuleType, request: pytest.FixtureRequest, shares_memory: bool
) -> Iterator[None]:
    """No fallback, except where NumPy bins by rules of its own, and where it takes the place of a
    device without double precision."""
    counts_bins = "histograms" in request.node.name and not shares_memory
    lacks_double = not xp.get_device().traits.fp64
    before = xp.stats()["fallbacks"]
    with xp.config.override(host_us=1_000_000):
        yield
    assert counts_bins or lacks_double or xp.stats()["fallbacks"] == before


def recorded(value: Any, m: ModuleType) -> Any:
    """`value` with the module's arrays for NumPy's, also inside lists and tuples."""
    if isinstance(value, np.ndarray):
        return m.asarray(value)
    if type(value) in (list, tuple):
        return type(value)(recorded(item, m) for item in value)
    return value


class Calls(Batch):
    """Collects calls by the function's name; results agree to a few ulp of what went in."""

    def call(self, name: str, *args: Any, **kwargs: Any) -> None:
        def made(m: ModuleType) -> Any:
            arrays = {key: recorded(value, m) for key, value in kwargs.items()}
            return getattr(m, name)(*recorded(args, m), **arrays)

        label = f"{name} {[getattr(a, 'shape', a) for a in args]} {list(kwargs.items())}"
        self.same(label, made, ulp=64)


@pytest.mark.filterwarnings("ignore:All-NaN:RuntimeWarning")
def test_ranks(xp: ModuleType) -> None:
    calls = Calls(xp)
    for name, q in (("median", ()), ("percentile", (30,)), ("quantile", ([0.1, 0.9],))):
        for x in (W, GAPS, A.astype("e")):
            calls.call(name, x, *q)
            if x.ndim > 1:
                calls.call(name, x, *q, axis=-1, keepdims=True)
                calls.call("nan" + name, x, *q, axis=0)
    for method in METHODS:
        calls.call("percentile", V, [0, 33, 100], method=method)
        calls.call("nanpercentile", GAPS, [0, 33, 100, 50.0], axis=1, method=method)
        calls.call("nanquantile", GAPS.astype("f"), 0.37, method=method)
    calls.call("nanquantile", GAPS, [[0.1, 0.2], [0.3, 1]], axis=(0, 1))
    for name in ("nanquantile", "quantile"):
        calls.call(name, GAPS, 2.0)
        calls.call(name, A, 0.5, axis=7)
    calls.call("nanmedian", A * np.nan)
    calls.call("nanargmax", GAPS)
    calls.call("nanargmin", GAPS, axis=1)  # ValueError: a row of NaN
    calls.check()


def test_moments_and_histograms(xp: ModuleType) -> None:
    calls = Calls(xp)
    for name in ("cov", "corrcoef"):
        calls.call(name, A)
        calls.call(name, V, V[::-1].copy())
        calls.call(name, W.astype("f"))
    calls.call("cov", A, aweights=np.arange(5.0), rowvar=True)
    calls.call("cov", A, fweights=np.arange(5))
    calls.call("average", A, axis=0, weights=np.arange(6.0))
    calls.call("average", A, weights=A, returned=True)
    calls.call("average", A, axis=1, weights=np.zeros(5))  # ZeroDivisionError
    calls.call("histogram", V, bins="auto")
    calls.call("histogram", V, bins=4, weights=V)
    calls.call("histogram_bin_edges", V, bins="sturges")
    calls.call("histogram2d", V, V[::-1].copy(), bins=3)
    calls.same("histogramdd", lambda m: [
        m.histogramdd(m.asarray(A[:, :2]), bins=(3, 4))[0],
        *m.histogramdd(m.asarray(A[:, :2]), bins=(3, 4))[1],
    ])
    calls.check()


def test_polynomials_and_windows(xp: ModuleType) -> None:
    calls = Calls(xp)
    for name in ("polyadd", "polysub", "polymul", "polydiv"):
        calls.call(name, P, Q)
        calls.call(name, W, Q)
    for name in ("polyder", "polyint", "roots"):
        calls.call(name, P)
    calls.call("polyint", P, 2, k=[1, 2])
    calls.call("polyval", P, V)
    calls.call("poly", V[:3])
    calls.call("polyfit", np.arange(9.0), np.arange(9.0) ** 2, 2)
    calls.call("polyfit", V, V[:3], 1)  # TypeError
    for count in (0, 1, 8):
        for name in ("bartlett", "blackman", "hamming", "hanning"):
            calls.same(name, lambda m, name=name, n=count: getattr(m, name)(n), bound=1e-15)
    calls.call("kaiser", 9, 14.0)
    calls.call("i0", A * 20 - 10)
    calls.call("unwrap", A * 20, axis=0)
    calls.call("unwrap", W, period=5)
    calls.check()


def test_convolution_and_bits(xp: ModuleType) -> None:
    calls = Calls(xp)
    wide = np.array([1.0, np.inf, 3, 4])
    for one, two in (
        (P, V), (W > 4, W[:3] > 2), (V.astype("e"), P.astype("e")),
        (wide, np.array([np.inf, 1, 2])), (RNG.random(99) + 1, RNG.random(40)),
        (W.astype("i1") * 50, W.astype("i1")), (V + 1j, P * 1j),
    ):  # fmt: skip
        for mode in ("full", "same", "valid"):
            calls.call("convolve", one, two, mode)
            calls.call("correlate", one, two, mode)
    for x in (W.reshape(3, 4), W > 3):
        for order in ("big", "little"):
            calls.call("packbits", x, bitorder=order)
            for count in (None, -3, 200):
                calls.call("unpackbits", x.astype("u1"), axis=0, count=count, bitorder=order)
    calls.check()


def test_sets(xp: ModuleType) -> None:
    calls = Calls(xp)
    for x in (W.reshape(3, 4), np.array([1, np.nan, 2, np.nan, 1]), W[:0]):
        calls.call("unique", x, return_index=True, return_inverse=True, return_counts=True)
        calls.call("unique_counts", x)
        for name in ("intersect1d", "union1d", "setdiff1d", "setxor1d", "isin"):
            calls.call(name, x, np.array([2.0, np.nan]))
    calls.call("unique", np.array([1, np.nan, np.nan]), equal_nan=False)
    calls.call("intersect1d", W, W[:4], return_indices=True)
    calls.call("isin", W, [1, 2], invert=True, kind="sort")
    calls.call("sort_complex", W)
    calls.check()


def test_positions_and_parts(xp: ModuleType) -> None:
    calls = Calls(xp)
    for order in "CF":
        calls.call("ravel_multi_index", (W % 3, W % 4), (3, 4), order=order)
        calls.call("unravel_index", W, (3, 4), order=order)
    calls.call("ravel_multi_index", (W, W), (3, 4))  # ValueError
    calls.call("ravel_multi_index", (W, W - 5), (3, 4), mode=("clip", "wrap"))
    calls.call("unravel_index", W + 9, (3, 4))  # ValueError
    calls.call("tril_indices", 4, 1, 5)
    calls.call("triu_indices_from", A, k=1)
    calls.call("diag_indices_from", A)  # ValueError
    calls.call("mask_indices", 3, np.triu)
    calls.call("block", [[A, A], [A, A]])
    calls.call("delete", V, [1, 2])
    calls.call("delete", A, [True] * 5, axis=1)
    calls.call("delete", V, 99)  # IndexError
    calls.call("insert", V, [1, 2], [7, 8])
    calls.call("insert", A, 1, V[:5], axis=0)
    calls.call("trim_zeros", np.array([0, 0, 1, 2, 0, 3, 0]))
    calls.call("asarray_chkfinite", V / 0)  # ValueError
    calls.call("real_if_close", V + 0j)
    calls.call("pad", V, 3, mode="mean")
    calls.call("pad", A, [(1, 2), (3, 1)], mode="linear_ramp", end_values=5)
    calls.call("nan_to_num", np.array([1 + 1j * np.nan, np.inf + 2j]))
    calls.same("piecewise", lambda m: m.piecewise(m.asarray(V), [m.asarray(V < 0.3)], [1, 2]))
    for shape in ((3, 5), (7, 3), (3, 3, 3), (2, 3, 4)):
        for value in ([1, 2],):
            for wrap in (False, True):
                def filled(m: ModuleType, shape=shape, value=value, wrap=wrap) -> Any:
                    made = m.zeros(shape)
                    m.fill_diagonal(made, value, wrap)
                    return made

                calls.same(f"fill_diagonal {shape} {value} {wrap}", filled)
    calls.check()


def test_a_scalar_mask_selects_all_or_nothing(xp: ModuleType) -> None:
    calls = Calls(xp)
    for truth in (True, False):
        calls.same("read", lambda m, t=truth: m.asarray(A)[m.asarray(t)])

        def written(m: ModuleType, truth: bool = truth) -> Any:
            made = m.zeros((2, 3))
            made[m.asarray(truth)] = m.arange(3.0)
            return made

        calls.same("write", written)
    calls.check()


def test_statistics_of_equal_shapes_are_of_their_own_elements(xp: ModuleType) -> None:
    batch = Batch(xp)
    for dtype in ("bool", "float32", "complex64"):
        for factor in (1, 3):  # the second of a shape and dtype is recorded from memory
            values = (np.arange(60).reshape(12, 5) % 7 * factor).astype(dtype)
            for axis in (None, 0, (0, 1), -1):
                for name in ("mean", "std", "var"):
                    batch.same(
                        f"{name} {dtype} {factor} {axis}",
                        lambda m, v=values, a=axis, n=name: [
                            getattr(m.asarray(v), n)(a),
                            getattr(m, n)(m.asarray(v), a, keepdims=True),
                            getattr(m, n)(m.asarray(v)[1:].T, axis=a),
                            getattr(m, n)(m.asarray(v), None, "float64"),
                        ],
                        ulp=4,
                    )
            batch.same("ddof", lambda m, v=values: m.asarray(v).std(1, ddof=1), ulp=4)
    batch.check()
    for wrong in ({"axis": 2}, {"axis": (0, 0)}, {"axis": 1.0}, {"axis": "x"}):
        for _ in range(2):
            assert_same_error(lambda m, w=wrong: m.asarray(np.ones((3, 4))).mean(**w), xp)
