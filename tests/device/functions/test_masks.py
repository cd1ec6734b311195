"""Boolean masks select, find and replace elements as NumPy's do, on the device.

What is selected has the length that NumPy gives it, at the call; writing through a mask changes
what shares the storage and nothing that was read before.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import Batch, assert_bitwise, host
from tests.support.hostile import DTYPES, ordinary
from tests.support.rounds import covering

LONG = 20_011  # several pieces and a tail
MASKS = {
    "none": np.zeros(LONG, bool),
    "all": np.ones(LONG, bool),
    "first": np.arange(LONG) == 0,
    "last": np.arange(LONG) == LONG - 1,
    "few": ordinary(1, LONG, "float64", "unit") > 0.999,
    "half": ordinary(2, LONG, "bool"),
    "most": ordinary(3, LONG, "float64", "unit") > -0.99,
    "stretches": np.arange(LONG) % 5000 < 2500,
}


@pytest.fixture(params=["cpu", "gpu"], autouse=True)
def schedule(request: pytest.FixtureRequest, xp: ModuleType) -> Iterator[None]:
    """Every test under both schedules."""
    if xp is np:
        yield
        return
    with xp.config.override(schedule=request.param, debug=True):
        yield


@pytest.fixture
def native(xp: ModuleType) -> Iterator[None]:
    """Nothing may fall to the host."""
    if xp is np:
        yield
        return
    with xp.config.override(fallback="raise"):
        yield


# Work-items of a group are told apart by the size of an element alone.
@pytest.mark.usefixtures("native")
@pytest.mark.parametrize(
    ("schedule", "dtypes"),
    [("cpu", DTYPES), ("gpu", ("bool", "int16", "float16", "float32", "int64", "complex128"))],
    indirect=["schedule"], ids=["cpu", "gpu"])
def test_every_dtype_is_selected_and_replaced(dtypes: tuple[str, ...], xp: ModuleType) -> None:
    batch = Batch(xp)
    for dtype in dtypes:
        data = ordinary(4, LONG, dtype, "small" if dtype[0] in "iub" else "hostile")

        def pack(m: Any, data: Any = data) -> Any:
            x, mask = m.array(data), m.array(MASKS["half"])
            return x[mask], m.where(mask, x, x[0])[mask][::-1]

        def unpack(m: Any, data: Any = data) -> Any:
            x, mask = m.array(data), m.array(MASKS["half"])
            before = x + x
            # A copy: NumPy itself reads elements here that it has written before.
            x[mask] = x[:int(MASKS["half"].sum())][::-1].copy()
            return x, before

        batch.same(f"select {dtype}", pack)
        batch.same(f"replace {dtype}", unpack)
    batch.check()


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("name", MASKS)
def test_every_density_is_selected_found_and_replaced(name: str, xp: ModuleType) -> None:
    data, chosen = ordinary(5, LONG, "float32", "unit"), MASKS[name]

    def write(m: Any) -> Any:
        x, mask = m.array(data), m.array(chosen)
        x[mask] = m.arange(chosen.sum(), dtype="float64")
        y = x * 2
        y[mask] += x[mask] * 3
        y[~mask] -= 1
        y[mask] = 7 if chosen.sum() == 1 else y[mask] - y.max()
        return x, y

    batch = Batch(xp)
    for length in (LONG, 67, 2, 1):
        part = slice(LONG - length, None)
        batch.same(f"select {length}", lambda m, p=part: m.array(data)[p][m.array(chosen)[p]])
        batch.same(f"find {length}", lambda m, p=part: m.flatnonzero(m.array(chosen)[p]))
    batch.same("of an expression",
               lambda m: (m.array(data) * 2)[m.array(chosen) & (m.array(data) < 0.5)])
    batch.same("replace", write)
    batch.same("nothing of nothing", lambda m: m.zeros((0, 3))[m.zeros(0, bool)])
    batch.check()


@pytest.mark.usefixtures("native")
def test_masks_of_leading_axes_and_of_views_select_as_numpys(xp: ModuleType) -> None:
    data = ordinary(6, (30, 40, 5), "int16")
    chosen = ordinary(7, (30, 40), "bool")

    def views(m: Any) -> Any:
        x, mask = m.array(data), m.array(chosen)
        flipped, turned = x[::-1, ::2], x.transpose(1, 0, 2)
        return [x[mask], x[mask[:, 0]], flipped[mask[:, ::2]], turned[mask.T], x[:, 3][mask[:, 3]],
                x[x > 2], x.T[x.T > 2], x[mask, ...],
                m.broadcast_to(x[0, 0], (40, 5))[mask[0]], x[list(chosen[:, 0])]]

    def found(m: Any) -> Any:
        x = m.array(data)
        return [*m.nonzero(x), *(x > 3).nonzero(), *m.where(x[0] < 0), m.argwhere(x[:, :3] == 1),
                m.flatnonzero(x[:, ::3] > 0), m.count_nonzero(x)]

    def named(m: Any) -> Any:
        x = m.array(data)
        return [m.compress(chosen[0], x, axis=1), m.compress(chosen[:, 0], x, 0),
                x.compress(chosen[0, :5], axis=-1), m.compress(m.array(data.ravel() > 4), x),
                m.extract(x[..., 0] > 1, x[..., 1]), m.extract(m.array(chosen), x[..., 2])]

    def written(m: Any) -> Any:
        x, mask = m.array(data), m.array(chosen)
        shared, rows = x[::-1], m.array(chosen[:, 1])
        x[mask] = m.arange(5)
        x[rows] = x[rows] * x[rows][0]
        shared[rows] += 1
        x[mask] = m.array(data)[mask][::-1]
        x[..., 2][mask] = m.arange(chosen.sum())
        m.array(data)[mask] = 3
        return x, shared

    batch = Batch(xp)
    for function in (views, found, named, written):
        batch.same(function.__name__, function)
    batch.check()


def test_masks_that_numpy_refuses_are_refused(xp: ModuleType) -> None:
    data, chosen = np.arange(12.0).reshape(3, 4), np.array([True, False, True])

    def assign(key: Any, value: Any) -> Callable[[Any], Any]:
        def run(m: Any) -> Any:
            x = m.array(data)
            x[m.array(key)] = m.array(value)
            return x
        return run

    batch = Batch(xp)
    batch.same("too short", lambda m: m.array(data)[m.array(chosen[:2])])
    batch.same("too long", lambda m: m.array(data)[m.array(np.ones((3, 4, 1), bool))])
    batch.same("too many values", assign(chosen, np.ones((3, 4))))
    batch.same("too few values", assign(data > 5, np.ones(3)))
    batch.same("none for none", assign(data > 50, np.ones(0)))
    batch.same("one for none", assign(data > 50, np.ones(1)))
    batch.same("two for none", assign(data > 50, np.ones(2)))
    batch.same("one for all", assign(data > 5, np.ones(1)))
    batch.same("nonzero of 0-d", lambda m: m.nonzero(m.array(3)))
    batch.same("long condition", lambda m: m.compress([1, 0, 1, 1], m.array(data), axis=0))
    batch.same("short condition", lambda m: m.compress([False, True], m.array(data), axis=1))
    batch.check()


@pytest.mark.clfuse_only
def test_a_mask_is_counted_once_and_read_where_it_lies(
        xp: ModuleType, launched: Callable[[Callable[[], object]], int]) -> None:
    data, chosen = ordinary(8, LONG, "float64"), MASKS["half"]
    x, y, mask = xp.array(data), xp.array(-data), xp.array(chosen)

    def both() -> None:
        one, other = x[mask], y[mask]
        xp.evaluate(one, other)
        assert_bitwise(one, data[chosen])
        assert_bitwise(other, -data[chosen])

    def in_place() -> None:
        z = x + 0
        z[mask] += y[mask] * 2
        expected = data.copy()
        expected[chosen] -= data[chosen] * 2
        assert_bitwise(host(z), expected)

    assert launched(both) == 2  # counts, and one kernel for the two
    assert launched(both) == 1
    assert launched(in_place) == 1
    gc.collect()
    before = xp.stats()["device_bytes_now"]
    assert launched(lambda: xp.evaluate(x[x > 0])) == 2
    gc.collect()
    assert xp.stats()["device_bytes_now"] == before


@pytest.mark.parametrize("mask", MASKS)
def test_sums_of_what_a_mask_selects_are_numpys(xp: ModuleType, mask: str) -> None:
    """Neither NaN nor infinities outside of the mask reach the sum."""
    if mask == "none":
        pytest.skip("nothing is selected")
    chosen = MASKS[mask]
    for dtype in ("float64", "float32", "complex128", "int8", "uint16", "bool"):
        values = ordinary(7, LONG, dtype)
        if values.dtype.kind in "fc":
            values[~chosen] = np.array([np.nan, np.inf, -np.inf])[np.arange(LONG) % 3][~chosen]
        a, m = xp.asarray(values), xp.asarray(chosen)
        rtol = 1e-5 if dtype == "float32" else 1e-12
        sums = a[m].sum(), a[m].mean()
        if xp is not np:
            xp.evaluate(*sums)
        for actual, expected in zip(sums, (values[chosen].sum(), values[chosen].mean()),
                                    strict=True):
            assert actual.dtype == expected.dtype
            scale = np.abs(values[chosen].astype(complex)).sum()
            assert abs(complex(actual) - complex(expected)) <= rtol * scale
    table = ordinary(8, LONG - LONG % 10, "float64").reshape(-1, 10)
    rows = chosen[: len(table)]
    actual = host(xp.asarray(table)[xp.asarray(rows)].sum(0))
    assert np.allclose(actual, table[rows].sum(0), 1e-10, 1e-8)


@pytest.mark.clfuse_only
def test_a_sum_of_what_a_mask_selects_packs_nothing(xp: ModuleType, native: None) -> None:
    a = xp.asarray(ordinary(5, 20 * LONG, "float64", "unit"))
    total = a[a > 0.5].mean()
    assert [kernel.kind for kernel in xp.explain(total).kernels].count("compact") == 0
    packed = xp.cumsum(a[a > 0.5])
    assert [kernel.kind for kernel in xp.explain(packed).kernels].count("compact") == 1


FOLDS: dict[str, Callable[[Any], Any]] = {
    "min": lambda chosen: chosen.min(),
    "max": lambda chosen: chosen.max(),
    "prod": lambda chosen: (chosen / 8).prod(),
    "any": lambda chosen: (chosen > 0.25).any(),
    "all": lambda chosen: (chosen > 0.25).all(),
    "count": lambda chosen: (chosen > 0.25).sum(),
    "mean of an expression": lambda chosen: (chosen * 2 + 1).mean(),
    "squares": lambda chosen: (chosen * chosen).sum(),
    "fmax": lambda chosen: np.fmax.reduce(chosen),
    "from the largest": lambda chosen: (chosen - chosen.max()).sum(),
}


FOLDED = covering([*FOLDS], ("float64", "float16", "int16"), ("last", "half"))


@pytest.mark.parametrize("fold", FOLDS)
def test_folds_of_what_a_mask_selects_are_numpys(xp: ModuleType, fold: str) -> None:
    """What lies outside of the mask reaches no result: NaN, infinities, the ends of integers."""
    for of, dtype, mask in FOLDED:
        if of != fold:
            continue
        chosen = MASKS[mask]
        values = ordinary(9, LONG, dtype, "unit" if dtype[0] == "f" else "small")
        if values.dtype.kind == "f":
            outside = np.array([np.nan, np.inf, -np.inf], values.dtype)
            values[~chosen] = outside[np.arange(LONG) % 3][~chosen]
        a, m = xp.asarray(values), xp.asarray(chosen)
        with np.errstate(all="ignore"):
            expected = FOLDS[fold](values[chosen])
            result = FOLDS[fold](a[m])
            if xp is not np:
                xp.evaluate(result)
        assert result.dtype == expected.dtype
        rtol = 2e-2 if expected.dtype == np.float16 else 1e-11
        np.testing.assert_allclose(host(result), expected, rtol=rtol, err_msg=f"{mask} {dtype}")


@pytest.mark.parametrize("name", ["min", "max", "argmin"])
def test_a_selection_of_nothing_has_no_least_element(xp: ModuleType, name: str) -> None:
    a = xp.asarray(ordinary(5, LONG, "float64"))
    with pytest.raises(ValueError, match=r"zero-size array to reduction|of an empty sequence"):
        getattr(a[a > 1e300], name)()
    assert (a[a > 1e300].sum(), a[a > 1e300].prod()) == (0, 1)


@pytest.mark.clfuse_only
def test_a_selection_is_folded_where_it_lies(xp: ModuleType, native: None) -> None:
    a = xp.asarray(ordinary(5, 20 * LONG, "float64", "unit"))

    def several() -> tuple[Any, ...]:
        chosen = a[a > 0.5]
        return chosen.min(), chosen.max(), (chosen * 2).sum(), (chosen > 0.75).any()

    kinds = [kernel.kind for kernel in xp.explain(*several()).kernels]
    assert set(kinds) == {"reduce"}
    low, *others = several()
    chosen = a[a > 0.5]
    kinds = [kernel.kind for kernel in xp.explain(low, *others, chosen).kernels]
    assert kinds.count("compact") == 1

    def total() -> bytes:
        result = (a[a > 0.5] * 3).sum()
        xp.evaluate(result)
        return host(result).tobytes()

    assert len({total() for _ in range(5)}) == 1  # the same on every run


@pytest.mark.clfuse_only
def test_means_over_equal_counts_need_no_kernel_of_their_own(xp: ModuleType) -> None:
    """Two selections may happen to be of one length: their divisors are one constant."""
    data = xp.asarray(ordinary(6, 4 * LONG, "float64"))

    def sources(*counts: int) -> list[str]:
        means = [(data * place).sum() / float(count) for place, count in enumerate(counts, 2)]
        return [kernel.source for kernel in xp.explain(*means).kernels]

    assert sources(100, 100, 120) == sources(100, 110, 120)


def test_masks_beside_indices_select_and_are_written_through(xp: ModuleType) -> None:
    rng = np.random.default_rng(3)
    a = rng.random((4, 6, 5))
    m4, m6, m5 = np.array([True, False, True, True]), rng.random(6) > 0.4, rng.random(5) > 0.3
    m46 = rng.random((4, 6)) > 0.5
    indices: list[Any] = [
        (slice(None), m6), (..., m5), (m46, 2), (m46, slice(1, 3)), (1, m6), (None, m4),
        (m4, [0, 2, 1]), (slice(None), m6, 0), (m4, slice(None), np.array([0, 4, 2])),
        (np.zeros(4, bool), 1), (slice(None), np.zeros(5, bool)), (0, m46), (m5, 0), (m4, m6[:3]),
    ]
    for index in indices:
        for device_masks in (False, True):
            given = tuple(
                xp.asarray(item) if device_masks and isinstance(item, np.ndarray) else item
                for item in index
            )
            try:
                expected = a[index]
                changed = a.copy()
                changed[index] = 7
            except IndexError as error:
                with pytest.raises(IndexError, match=re.escape(str(error))):
                    xp.asarray(a)[given]
                continue
            np.testing.assert_array_equal(host(xp.asarray(a)[given]), expected)
            x = xp.asarray(a) + 0
            x[given] = 7
            np.testing.assert_array_equal(host(x), changed)


@pytest.mark.clfuse_only
@pytest.mark.parametrize("name", MASKS)
def test_where_a_mask_of_few_elements_is_true_needs_no_kernel(
        name: str, xp: ModuleType, launched: Callable[[Callable[[], object]], int]) -> None:
    if not xp.get_device().traits.unified_memory:
        pytest.skip("the device has memory of its own")
    square = np.resize(MASKS[name], (300, 400))  # so many that positions may be shared memory
    data = ordinary(9, square.size, "float64").reshape(square.shape)
    for chosen, values in ((MASKS[name], data.reshape(-1)[:LONG]), (square, data)):
        mask, x = xp.array(chosen), xp.array(values)
        xp.evaluate(mask, x)
        found: list[Any] = []
        with xp.config.override(host_us=50):
            assert launched(lambda mask=mask, found=found: found.extend(xp.nonzero(mask))) == 0
            for place, expected in zip(found, np.nonzero(chosen), strict=True):
                assert_bitwise(host(place), expected)
            assert_bitwise(host(x[tuple(found)]), values[chosen])
            assert_bitwise(host(xp.argwhere(mask & (x > 0))), np.argwhere(chosen & (values > 0)))
            if chosen.any():
                found[0][0] = 10**6  # what was known of these indices is known no more
                with pytest.raises(IndexError, match="out of bounds"):
                    x[tuple(found)]
