"""Scans along every axis give NumPy's dtype, shape and value, and fuse with what is around them.

Integers are exact; floats are where no rounding is (small integers, infinities and NaN), and close
to the exact sum where there is. Products of floats and sums of halves are NumPy's to the bit on a
CPU; on a GPU they are where no rounding is, and overflow and vanish where NumPy's do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import Batch, host
from tests.support.hostile import DTYPES, FLOATS, INTEGERS, hostile, layouts, ordinary
from tests.support.rounds import covering

UFUNCS = ("add", "subtract", "multiply", "maximum", "minimum", "fmax", "fmin", "logical_and",
          "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor")
SUMS = ("add", "subtract")
LONG = 70_001  # several pieces and a tail, whatever the vector width


@pytest.fixture(params=["cpu", "gpu"], autouse=True)
def schedule(request: pytest.FixtureRequest, xp: ModuleType) -> Iterator[None]:
    """Every test under both schedules."""
    if xp is np:
        yield
        return
    with xp.config.override(schedule=request.param, debug=True):
        yield


def data_for(name: str, dtype: str, shape: tuple[int, ...], schedule: str) -> Any:
    """Values whose scans no rounding touches, or any where NumPy's own order is kept."""
    integers = np.dtype(dtype).kind in "biu"
    exact_order = name == "multiply" or (name in SUMS and dtype == "float16")
    if schedule == "gpu" and exact_order and not integers:
        if name in SUMS:
            return ordinary(3, shape, dtype) % 4
        return np.random.default_rng(3).choice([-1, 0.5, 1, 2, -2], shape).astype(dtype)
    if integers or name not in (*SUMS, "multiply") or (exact_order and dtype[:5] == "float"):
        return ordinary(3, shape, dtype, "hostile")
    return ordinary(3, shape, dtype)


# Work-items of a group are told apart by size alone, lanes by every dtype's own shuffles.
@pytest.mark.parametrize(
    ("schedule", "dtype"),
    [("cpu", dtype) for dtype in DTYPES] + [("gpu", "bool"), ("gpu", "int8"), ("gpu", "float16"),
                                            ("gpu", "complex128")],
    indirect=["schedule"])
def test_every_ufunc_scans_every_dtype(dtype: str, xp: ModuleType) -> None:
    batch = Batch(xp)
    schedule = "cpu" if xp is np else xp.config.settings.schedule
    for shape, axis in (((67,), 0), ((5, 33), 0)):
        for name in UFUNCS:
            if shape != (67,) and name in UFUNCS[3:]:
                continue
            data = data_for(name, dtype, shape, schedule)
            if dtype[:7] == "complex" and name == "multiply":
                data = np.sign(data.real).astype(dtype) * 1j
            batch.same(f"{name} {shape} {axis}",
                       lambda m, n=name, d=data, a=axis: getattr(m, n).accumulate(m.array(d), a),
                       zero_signs=name in (*SUMS, "multiply") and dtype[:7] != "complex")
    batch.check()


def test_every_axis_of_every_shape_and_layout_is_scanned(xp: ModuleType) -> None:
    batch = Batch(xp)
    for shape in ((0,), (1,), (3, 0), (1, 7), (2, 3, 4)):
        data = ordinary(4, shape, "int32")
        for axis in (None, *range(-len(shape), len(shape))):
            batch.same(f"{shape} {axis}", lambda m, d=data, a=axis: m.cumsum(m.array(d), axis=a))
    data = ordinary(5, (6, 7, 5), "float64")
    for label, key in layouts(data):
        for axis in (None, 1):
            def scan(m: Any, key: Any = key, axis: Any = axis) -> Any:
                x = m.array(data)
                made = m.cumsum(x.T if key is None else x[key], axis)
                return made, made.strides if made.size else ()
            batch.same(f"{label} {axis}", scan)
    batch.same("broadcast", lambda m: m.cumsum(m.broadcast_to(m.arange(5), (4, 5)), 0))
    batch.same("constant", lambda m: m.cumsum(m.full(20, 2.5)))
    batch.same("0-d", lambda m: m.cumsum(m.array(3)))
    batch.same("axis of a 0-d", lambda m: m.cumsum(m.array(3), 0))
    batch.same("a scalar's", lambda m: m.arange(5).sum().cumsum())
    batch.check()


def test_long_arrays_are_scanned_in_pieces(xp: ModuleType) -> None:
    batch = Batch(xp)
    for name, dtype in (("add", "int16"), ("add", "int64"), ("add", "float16"), ("add", "float32"),
                        ("add", "complex64"), ("maximum", "float32"), ("logical_and", "bool"),
                        ("bitwise_xor", "int16"), ("fmin", "float16")):
        flat = ordinary(2, LONG, dtype)
        if dtype == "bool":
            flat[:50_000] = True
        for shape, axis in (((LONG,), 0), ((2, 35_000), 1), ((35_000, 2), 0), ((700, 100), 0)):
            data = flat[:int(np.prod(shape))].reshape(shape)
            batch.same(f"{name} {dtype} {shape} {axis}", lambda m, n=name, d=data, a=axis:
                       getattr(m, n).accumulate(m.array(d), a))
    batch.check()


@pytest.mark.parametrize(
    ("schedule", "dtype"), [*[("cpu", dtype) for dtype in FLOATS], ("gpu", "float32")],
    indirect=["schedule"])
def test_nan_infinity_and_signed_zeros_go_on_as_under_numpy(dtype: str, xp: ModuleType) -> None:
    special = np.array([1, -0.0, np.inf, 2, -np.inf, 3, np.nan, 0, 1], dtype)
    zeros = np.array([-0.0, -0.0, 0.0, -0.0], dtype)
    batch = Batch(xp)
    for length in (67, LONG):
        for start in (0, 40, 40_000):
            data = np.ones(length, dtype)
            part = special[:max(0, length - start)]
            data[start:start + part.size] = part
            for name in ("add", "maximum", "fmin"):
                batch.same(f"{name} {length} {start}",
                           lambda m, n=name, d=data: getattr(m, n).accumulate(m.array(d)))
    batch.same("zeros", lambda m: m.cumsum(m.array(zeros)))
    batch.same("zeros in rows", lambda m: m.cumsum(m.array(np.tile(zeros, (9, 5))), 1))
    batch.check()


def test_sums_of_floats_are_close_to_the_exact_ones(xp: ModuleType) -> None:
    data = ordinary(6, LONG, "float32", "unit")
    exact = np.cumsum(data.astype(np.longdouble))
    error = np.abs(host(xp.cumsum(xp.array(data))).astype(np.longdouble) - exact)
    weight = np.cumsum(np.abs(data).astype(np.longdouble)) * np.finfo("float32").eps
    assert np.all(error <= weight * 20)
    products = data[:2000] / 4 + 1
    found, expected = host(xp.cumprod(xp.array(products))), np.cumprod(products)
    if xp is np or xp.config.settings.schedule == "cpu":
        assert np.array_equal(found, expected)
    np.testing.assert_allclose(found, expected, rtol=2000 * np.finfo("float32").eps)


@pytest.mark.parametrize("schedule", ["gpu"], indirect=True)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_products_leave_the_range_where_numpys_do(dtype: str, xp: ModuleType) -> None:
    """Factors of a piece overflow or vanish by themselves; the running product only at times."""
    most, length = np.finfo(dtype).maxexp - 1, 9_000
    up, down = 2.0 ** (most // 2), 2.0 ** -(most // 2)
    rng = np.random.default_rng(4)
    walks = {
        "inside": np.tile([down, down, up, up], length // 4),
        "up first": np.tile([up, up, down, down], length // 4),
        "up for good": np.concatenate([np.full(5, up), np.full(length, down)]),
        "down for good": np.concatenate([np.full(7, down), np.full(length, -up)]),
        "a zero after that": np.concatenate([np.full(5, up), np.full(100, down), [0.0, up]]),
        "a zero before that": np.concatenate([[0.0], np.full(length, up)]),
        "an infinity": np.concatenate([np.full(70, -1.0), [np.inf], np.full(5, down), [0.0, 1]]),
        "NaN": np.concatenate([np.full(700, -1.0), [np.nan], np.full(500, down)]),
        "signs": rng.choice([-1.0, 1.0], length),
        "a subnormal factor": np.array([np.finfo(dtype).smallest_subnormal, up, -up, 2, 0.5]),
        "never back": np.concatenate([np.full(length, 2.0**-6), [0.5], np.full(length, 2.0**6)]),
    }
    batch = Batch(xp)
    for label, factors in walks.items():
        data = factors.astype(dtype)
        batch.same(label, lambda m, d=data: m.cumprod(m.array(d)))
        batch.same(f"{label}, rows", lambda m, d=data: m.cumprod(m.array(np.stack([d, -d])), 1))
        batch.same(f"{label}, columns",
                   lambda m, d=data: m.cumprod(m.array(np.stack([d, -d]).T), 0))
        batch.same(f"{label}, divided", lambda m, d=data: m.divide.accumulate(m.array(d)))
        batch.same(f"{label}, divided rows",
                   lambda m, d=data: m.divide.accumulate(m.array(np.stack([d, -d])), 1))
    batch.check()


def test_quotients_are_close_to_the_exact_ones(xp: ModuleType) -> None:
    for dtype, length in (("float64", LONG), ("float32", LONG), ("float16", 900)):
        data = (1 + ordinary(6, length, "float64", "unit") * 1e-3).astype(dtype)
        exact = data[0] / np.cumprod(np.append([1], data[1:].astype(np.longdouble)))
        found = host(xp.divide.accumulate(xp.array(data)))
        assert found.dtype == dtype
        error = np.abs(found.astype(np.longdouble) / exact - 1)
        assert error.max() < 1.5 * length * np.finfo(dtype).eps
    whole = xp.divide.accumulate(xp.array([9, 2, 5]))
    assert host(whole).tolist() == np.divide.accumulate([9, 2, 5]).tolist()


@pytest.mark.parametrize("schedule", ["gpu"], indirect=True)
def test_regrouped_scans_are_close_to_the_exact_ones(xp: ModuleType) -> None:
    near_one = 1 + ordinary(6, LONG, "float64", "unit") * 1e-3
    angles = near_one * 1j
    for data in (near_one, np.exp(angles)):
        np.testing.assert_allclose(host(xp.cumprod(xp.array(data))), np.cumprod(data), rtol=1e-9)
    halves = ordinary(6, LONG, "float16", "unit")
    found = host(xp.cumsum(xp.array(halves))).astype(np.float64)
    exact = np.cumsum(halves.astype(np.float64))
    assert np.all(np.abs(found - exact) <= 2.0**-10 * np.abs(exact) + 1e-2)


@pytest.mark.parametrize("schedule", ["cpu"], indirect=True)
def test_every_signature_agrees_with_numpy(xp: ModuleType) -> None:
    x = ordinary(7, (4, 6), "int32")
    f = ordinary(8, (4, 6), "float32", "halves")
    f[1, 2] = np.nan

    def into(m: Any, dtype: str, *args: Any, **kwargs: Any) -> Any:
        out = m.zeros((4, 6), dtype)
        made = m.cumsum(m.array(x), *args, out=out, **kwargs)
        return out, made is out

    def onto_itself(m: Any) -> Any:
        a = m.array(x)
        b = a[1:] + 0
        m.cumsum(a, 0, out=a)
        a[1:] += m.cumsum(a[:-1], 1)
        a.cumsum(1, out=a)
        return a, b

    batch = Batch(xp)
    for dtype in ("int8", "int32", "float32", "float64", "complex64", "bool"):
        batch.same(f"dtype {dtype}", lambda m, d=dtype: m.cumsum(m.array(x), dtype=d))
        batch.same(f"out {dtype}", lambda m, d=dtype: into(m, d, 1))
        batch.same(f"out and dtype {dtype}", lambda m, d=dtype: into(m, d, 0, "int16"))
    batch.same("onto itself", onto_itself)
    for call in ("m.array(x).cumsum()", "m.array(x).cumprod(1)", "m.cumprod(m.array(x), -1)",
                 "m.nancumsum(m.array(f))", "m.nancumprod(m.array(f), 0)",
                 "m.nancumsum(m.array(x))", "m.add.accumulate(m.array(x), axis=(1,))",
                 "m.subtract.accumulate(m.array(x))", "m.cumsum([1, 2, 3])",
                 "m.logical_or.accumulate(m.array(f))",
                 "m.cumulative_sum(m.array(x), axis=1, include_initial=True)",
                 "m.cumulative_prod(m.array(x[0]))", "m.cumulative_sum(m.array(x))",
                 "m.cumulative_sum(m.array(3))", "m.add.accumulate(m.array(3))",
                 "m.add.accumulate(m.array(x), axis=None)", "m.cumsum(m.array(x), 2)",
                 "m.add.accumulate(m.array(x), (0, 1))",
                 "m.cumsum(m.array(x), 0, out=m.zeros(3))", "m.cumsum(m.array(x), out='no')",
                 "m.cumsum(m.array(x), 0, out=m.zeros((6, 4)))"):
        if "cumulative" in call and not hasattr(np, "cumulative_sum"):
            continue
        batch.same(call, lambda m, c=call: eval(c, {"m": m, "x": x, "f": f}))
    batch.check()


@pytest.mark.clfuse_only
def test_scans_fuse_with_their_producers_and_consumers(
        xp: ModuleType, launched: Callable[[Callable[[], object]], int],
        planned_for: Callable[..., None]) -> None:
    planned_for(xp.config.settings.schedule)
    data = ordinary(9, LONG, "float64")
    x, square = xp.array(data), xp.array(data[:62_500].reshape(250, 250))

    def one_row() -> None:
        total = xp.sqrt(xp.cumsum(xp.abs(x) * 2) + 1)
        assert np.array_equal(host(total), np.sqrt(np.cumsum(np.abs(data) * 2) + 1))

    def two_scans() -> None:
        up, down = xp.cumsum(x), xp.cumsum(x[::-1])
        xp.evaluate(up, down, up - down)
        both = np.cumsum(data), np.cumsum(data[::-1])
        assert np.array_equal(host(up), both[0])
        assert np.array_equal(host(down), both[1])

    def costly_producer() -> None:
        y = xp.exp2(xp.abs(x)) * xp.exp2(-xp.abs(x))
        assert np.array_equal(host(xp.cumsum(y)), np.arange(1.0, LONG + 1))

    def table() -> None:
        table = square.cumsum(0).cumsum(1)
        expected = data[:62_500].reshape(250, 250).cumsum(0).cumsum(1)
        assert np.array_equal(host(table), expected)

    assert launched(one_row) == 2
    assert launched(two_scans) == 2
    assert launched(costly_producer) == 2
    assert launched(table) in (2, 3)  # columns are in pieces where work-items are many
    before = xp.stats()["fallbacks"]
    with xp.config.override(fusion="off"):
        one_row()
        table()
    assert xp.stats()["fallbacks"] == before


def test_integers_wrap_around_in_long_scans(xp: ModuleType) -> None:
    batch = Batch(xp)
    for dtype in INTEGERS[::2]:
        data = np.resize(hostile(dtype), LONG)
        for name in ("cumsum", "cumprod"):
            batch.same(f"{name} {dtype}",
                       lambda m, n=name, d=data, t=dtype: getattr(m, n)(m.array(d), dtype=t))
    batch.check()


@pytest.mark.parametrize(("dtype", "shape", "first"), covering(
    ("float64", "float32", "int16", "complex64", "bool"),
    ((1000,), (70_001,), (37, 333), (40, 256)),
    (0, 1, 3),
), ids=str)  # fmt: skip
def test_results_go_past_the_caches_wherever_rows_begin(
    xp: ModuleType, dtype: str, shape: tuple[int, ...], first: int
) -> None:
    values = np.random.default_rng(3).integers(-3, 9, shape).astype(dtype)
    with xp.config.override(stream_bytes=0, debug=True, host_us=0):
        part = (..., slice(first, None))
        expected = np.add.accumulate(values[part], axis=-1)
        found = xp.add.accumulate(xp.array(values)[part], axis=-1)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        into, copied = np.ones(shape, expected.dtype), xp.ones(shape, expected.dtype)
        xp.evaluate(copied)
        into[part] = expected
        copied[part] = xp.add.accumulate(xp.array(values)[part], axis=-1)
        np.testing.assert_allclose(copied, into, rtol=1e-5)
        down = xp.add.accumulate(xp.array(values)[part], axis=0)
        np.testing.assert_allclose(down, np.add.accumulate(values[part], axis=0), rtol=1e-5)
