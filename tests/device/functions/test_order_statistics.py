"""Medians and quantiles of one long lane: kernels narrow down where the elements lie, and NumPy's
own code does the rest, so that all is as NumPy's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse.arrays.conversion import NotNative
from clfuse.functions.rebound import LEAST_RANKED
from clfuse.functions.sorting import order_statistics
from clfuse.functions.sorting.order_statistics import Lane, is_understood

pytestmark = [pytest.mark.clfuse_only, pytest.mark.usefixtures("by_kernels_of_a_cpu")]

RNG = np.random.default_rng(43)

N = LEAST_RANKED + 1

Call = Callable[[Any, Any], Any]

CALLS: dict[str, Call] = {
    "median": lambda m, x: m.median(x),
    "percentiles": lambda m, x: m.percentile(x, [0, 5, 50, 95, 100]),
    "quantile": lambda m, x: m.quantile(x, 0.3),
    "table": lambda m, x: m.quantile(x, np.array([[0.1, 0.2], [0.5, 0.9]])),
    "single precision": lambda m, x: m.quantile(x, np.float32(0.7)),
    "kept": lambda m, x: m.median(x, axis=0, keepdims=True),
}


@pytest.fixture(autouse=True)
def by_kernels_of_a_cpu(xp: ModuleType) -> Iterator[None]:
    device = xp.get_device()
    if device.traits.schedule != "cpu" or not device.shares_memory:
        pytest.skip("sorted on the device")
    with xp.config.override(host_us=0):
        yield


@pytest.fixture
def narrowed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many ranks are looked for by kernels, each time."""
    looked_for: list[int] = []
    plain = order_statistics._Ranks._look_for

    def look_for(self: Any, ranks: Any) -> None:
        plain(self, ranks)
        looked_for.append(len(ranks))

    monkeypatch.setattr(order_statistics._Ranks, "_look_for", look_for)
    return looked_for


def values(kind: str) -> np.ndarray:
    if kind in ("u1", "i2", "i8", "u8"):
        info = np.iinfo(kind)
        return RNG.integers(info.min, info.max, N, kind, endpoint=True)
    x = RNG.standard_normal(N)
    if kind in ("f2", "f4"):
        return x.astype(kind)
    if kind == "few":
        return np.floor(x)
    if kind == "equal":
        return np.full(N, 2.5)
    if kind == "sorted":
        return np.sort(x)[::-1]
    if kind == "infinities":
        x[RNG.random(N) < 0.4] = np.inf
        x[RNG.random(N) < 0.1] = -np.inf
    if kind == "one NaN":
        x[N // 3] = np.nan
    if kind == "mostly NaN":
        x[RNG.random(N) < 0.9] = np.nan
    return x


KINDS = ("f8", "f4", "f2", "u1", "i2", "i8", "u8", "few", "equal", "sorted", "infinities",
         "one NaN", "mostly NaN")  # fmt: skip


def agree(xp: ModuleType, call: Call, x: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # infinities are interpolated
        expected = call(np, x)
        found = call(xp, xp.asarray(x))
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_all_is_as_numpys(xp: ModuleType, narrowed: list[int], kind: str) -> None:
    x = values(kind)
    for call in CALLS.values():
        agree(xp, call, x)
    assert len(narrowed) >= len(CALLS) - 1 or kind == "mostly NaN"


@pytest.mark.parametrize(
    "method",
    ["inverted_cdf", "averaged_inverted_cdf", "closest_observation", "hazen", "lower", "higher",
     "midpoint", "nearest", "median_unbiased", "interpolated_inverted_cdf"],
)  # fmt: skip
def test_every_method_is_numpys(xp: ModuleType, narrowed: list[int], method: str) -> None:
    for kind in ("f4", "i2"):
        agree(xp, lambda m, x: m.percentile(x, [1, 33.3, 99.9], method=method), values(kind))
    assert narrowed


@pytest.mark.parametrize("kind", ["f8", "f4", "f2", "infinities", "one NaN", "mostly NaN"])
def test_what_is_not_nan_is_one_lane_too(xp: ModuleType, narrowed: list[int], kind: str) -> None:
    x = values(kind)
    if kind != "mostly NaN":
        x = np.concatenate([x, x[:9]])
        x[RNG.random(x.size) < 1e-6] = np.nan
    for call in (
        lambda m, x: m.nanmedian(x), lambda m, x: m.nanpercentile(x, [5, 50], method="hazen"),
        lambda m, x: m.nanquantile(x, 0.3, axis=-1), lambda m, x: m.nanmedian(x.reshape(2, -1)),
        lambda m, x: m.nanmedian(x, keepdims=True),
    ):  # fmt: skip
        agree(xp, call, x[: x.size // 2 * 2])
    assert narrowed or kind == "mostly NaN"


def test_nothing_but_nan_is_said_as_by_numpy(xp: ModuleType) -> None:
    x = np.full(N, np.nan)
    for m in (np, xp):
        with pytest.warns(RuntimeWarning, match="All-NaN"):
            assert np.isnan(m.nanmedian(m.asarray(x)))


def test_all_axes_of_a_matrix_are_one_lane(xp: ModuleType, narrowed: list[int]) -> None:
    x = values("f8")[: N // 3 * 3].reshape(-1, 3)
    agree(xp, lambda m, x: m.median(x), x)
    agree(xp, lambda m, x: m.median(x[:, ::2].T * 2), x)
    assert len(narrowed) == 1, "the second one is shorter than a long lane"
    agree(xp, lambda m, x: m.median(x, keepdims=True), x)
    agree(xp, lambda m, x: m.median(x, None, None, False, True), x)
    agree(xp, lambda m, x: m.quantile(x, 0.4, None), x)
    agree(xp, lambda m, x: m.percentile(x, 20, axis=(0, 1)), x)


def test_elements_where_they_are_not_looked_for(
    xp: ModuleType, narrowed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sample says little of where the elements are: then NumPy partitions them all."""
    monkeypatch.setattr(order_statistics, "WIDTH", 0.0)
    monkeypatch.setattr(order_statistics, "MARGIN", 0)
    for kind in ("f8", "i8", "one NaN"):
        for call in CALLS.values():
            agree(xp, call, values(kind))
    assert narrowed


def test_many_quantiles_are_numpys(xp: ModuleType, narrowed: list[int]) -> None:
    agree(xp, lambda m, x: m.percentile(x, np.arange(0, 101, 4)), values("f8"))
    assert not narrowed


def test_errors_are_numpys(xp: ModuleType) -> None:
    x = xp.asarray(values("f8"))
    with pytest.raises(ValueError, match=r"range \[0, 100\]"):
        xp.percentile(x, 101)
    with pytest.raises(ValueError, match="not a valid method"):
        xp.quantile(x, 0.5, method="middle")
    with pytest.raises(np.exceptions.AxisError):
        xp.median(x, axis=1)


def test_nothing_else_can_be_asked_of_a_lane() -> None:
    lane = np.broadcast_to(np.float64(0), (9,)).view(Lane)
    for wrong in (
        lambda: lane + 1, lambda: np.mean(lane), lambda: lane.sum(), lambda: lane.tolist(),
        lambda: lane.T, lambda: np.sort(lane), lambda: np.concatenate([lane, lane]),
        lambda: lane[0, 0], lambda: lane[np.arange(9) > 4], lambda: lane.astype(int),
    ):
        with pytest.raises(NotNative):
            wrong()


def test_code_that_reads_the_memory_is_not_used(
    xp: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Reading:
        __wrapped__ = staticmethod(lambda a, q=0: np.partition(np.asarray(a), 2)[2])

        def __call__(self, a: Any, q: Any = 0) -> Any:
            return np.median(a)

    for reference in (np.median, np.percentile, np.quantile):
        assert is_understood(reference)
    reading = Reading()
    assert not is_understood(reading)
    x = values("i2")
    assert order_statistics.of_lane(reading, xp.asarray(x))(x) == np.median(x)


def test_numpy_does_it_where_it_would_count(xp: ModuleType, narrowed: list[int]) -> None:
    x = values("f8")
    with xp.config.override(host_us=1_000_000):
        agree(xp, CALLS["median"], x)
    assert not narrowed
