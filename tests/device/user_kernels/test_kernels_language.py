"""Every feature of the kernels' language gives what the same body gives in plain Python.

Each kernel runs as array operations where it can, and as a launch of generated OpenCL C always.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from tests.support.agreement import SIMULATED
from tests.support.hostile import hostile

pytestmark = pytest.mark.clfuse_only
HALF = 0.5
STEPS = 3


@cf.device_function
def clipped(v, low, high):
    if v < low:
        return low
    if v > high:
        return high
    return v


@cf.device_function
def both_ends(x, k):
    return x[k], x[-1]


@cf.kernel
def arithmetic(i, a, x, y, out):
    s = x[i] + y[i]
    d = x[i] - y[i]
    out[0, i] = s * a
    out[1, i] = d
    out[2, i] = x[i] / y[i]
    out[3, i] = x[i] // y[i]
    out[4, i] = x[i] % y[i]
    out[5, i] = x[i] ** 2
    out[6, i] = -x[i]
    out[7, i] = abs(x[i])
    out[8, i] += 1
    out[9, i] *= HALF


@cf.kernel
def integers(i, x, y, out):
    out[0, i] = x[i] * y[i]
    out[1, i] = x[i] // y[i]
    out[2, i] = x[i] % y[i]
    out[3, i] = x[i] & y[i] | 3 ^ x[i]
    out[4, i] = ~x[i]
    out[5, i] = (x[i] >> 1) + (y[i] << 2)
    out[6, i] = i // 3 - i % 4 * len(x) + x.shape[0] - x.size
    out[7, i] = x[i] ** 3
    out[8, i] = int(x[i] / 3)
    out[9, i] = min(x[i], y[i], 7) + max(i, 4)


@cf.kernel
def conditions(i, x, y, out):
    out[0, i] = x[i] < y[i] <= 2 * x[i]
    out[1, i] = x[i] < 0 or (y[i] > 0 and not x[i] == y[i])  # noqa: SIM201
    out[2, i] = 1.5 if x[i] != y[i] else y[i]
    out[3, i] = x[i] and y[i]
    out[4, i] = x[i] or 3
    if x[i] > 0:
        t = x[i]
    elif y[i] > 0:
        t = y[i]
    else:
        t = -1.0
    out[5, i] = t
    out[6, i] = clipped(x[i], -1.0, 1.0) + clipped(y[i], 0.0, 2.0)
    if i < 3:
        out[7, i] = 3
    elif i == 5 or (i > 7 and i != 9):
        out[7, i] = 4
    if x[i] > 1 and i > 2:
        out[8, i] = x[i - 3]
    if i < len(x) - 1 and x[i + 1] >= 0:
        out[9, i] = x[i + 1]


@cf.kernel
def functions(i, x, out):
    out[0, i] = math.sin(x[i]) + math.pi
    out[1, i] = np.exp(-abs(x[i]))
    out[2, i] = math.floor(x[i]) % 5 if abs(x[i]) < 1e6 else -1
    out[3, i] = np.where(np.isnan(x[i]), 0, x[i])
    out[4, i] = np.clip(x[i], -2, 2)
    out[5, i] = math.sqrt(abs(x[i])) + np.float32(x[i])
    out[6, i] = math.hypot(x[i], 3)
    out[7, i] = bool(x[i])
    first, last = both_ends(x, i)
    out[8, i] = first + last
    first, last = last, first
    out[9, i] = first - x[-2]


@cf.kernel
def loops(i, x, out):
    s = 0.0
    for k in range(STEPS):
        s += x[i] * k
    out[0, i] = s
    for k in range(3, 9):
        out[k, i] = k * x[i]
    n = 0
    for k in range(10, 0, -4):
        n = n + k
    out[1, i] = n
    out[2, i] = k


@cf.kernel
def jumps(i, x, out):
    n = i
    k = 0
    while n > 0 and k < 50:
        k += 1
        if n % 3 == 1:
            n -= 1
            continue
        if k > 40:
            break
        n = n // 2
    out[0, i] = k
    t = cf.local_array(4, np.float32)
    for j in range(4):
        t[j] = j * i
    for j in range(i):
        if j == 7:
            return
        t[j % 4] = x[j]
        out[1, i] = t[0] - t[-1]
    out[2, i] = t[i % 4]


CASES: list[tuple[Any, str, bool]] = [
    (arithmetic, "float64", True), (arithmetic, "float32", True), (integers, "int64", True),
    (integers, "uint8", True), (integers, "int16", True), (conditions, "float64", True),
    (conditions, "float32", True), (functions, "float64", True), (loops, "float64", True),
    (jumps, "float32", False),
]


def arguments(kernel: Any, dtype: str) -> tuple[int, list[Any]]:
    """Hostile operands in an order that meets most with most, and an output."""
    values = hostile(dtype)
    values = values[: len(values) | 1]
    x = np.concatenate([values, values[::-1], values[:7]])
    y = np.concatenate([values[3:], values, values[:10]])
    names = kernel.__clfuse_source__.parameters
    given: list[Any] = [x, y] if "y" in names else [x]
    if "a" in names:
        given.insert(0, 3)
    out = np.full((10, len(x)), 5, np.float64 if np.dtype(dtype).kind == "f" else dtype)
    return len(x), [*given, out]


@pytest.mark.parametrize(("kernel", "dtype", "is_arrays"), CASES,
                         ids=[f"{k.__name__}-{d}" for k, d, _ in CASES])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_kernel_gives_what_its_body_gives_in_python(
    kernel: Any, dtype: str, is_arrays: bool, route: str
) -> None:
    kernel._signatures.clear()
    n, given = arguments(kernel, dtype)
    device = [cf.asarray(a) if isinstance(a, np.ndarray) else a for a in given]
    taken = kernel.route(n, *device)
    assert (taken == "array operations") == (is_arrays and route == "arrays"), taken
    kernel(n, *device)
    kernel.python(n, *given)
    actual, expected = device[-1].get(), given[-1]
    for row, (one, other) in enumerate(zip(actual, expected, strict=True)):
        if np.dtype(dtype).kind in "iu":
            np.testing.assert_array_equal(one, other, err_msg=f"row {row}")
        else:
            np.testing.assert_allclose(one, other, rtol=4e-7 if dtype == "float32" else 1e-14,
                                       err_msg=f"row {row}")
    kernel._signatures.clear()


@cf.kernel
def smoothed(i, j, g, h):
    if 0 < i < g.shape[0] - 1 and 0 < j < g.shape[1] - 1:
        h[i, j] = 0.25 * (g[i - 1, j] + g[i + 1, j] + g[i, j - 1] + g[i, j + 1])
    else:
        left = g[i, j - 1] if j > 0 else -1.0
        h[i, j] = left + i


def test_two_indices_and_views(route: str) -> None:
    smoothed._signatures.clear()
    base = np.random.default_rng(1).random((9, 14))
    views: list[tuple[str, Callable[[Any], Any]]] = [
        ("all", lambda a: a), ("turned", lambda a: a.T), ("part", lambda a: a[1:8:2, ::-1]),
    ]
    for name, view in views:
        g, h = base.copy(), np.zeros_like(base)
        on_g, on_h = cf.asarray(g), cf.asarray(h)
        shape = view(g).shape
        smoothed.python(shape, view(g), view(h))
        smoothed(shape, view(on_g), view(on_h))
        np.testing.assert_array_equal(on_h.get(), h, err_msg=name)
        inner = ((1, shape[0] - 1), (1, shape[1] - 1))
        smoothed.python(inner, view(h), view(g))
        smoothed(inner, view(on_h), view(on_g))
        np.testing.assert_array_equal(on_g.get(), g, err_msg=name)
    smoothed._signatures.clear()


@cf.kernel
def weighted(i, x, w):
    if w[i] < 0:
        return 0.0
    return x[i] * w[i]


@cf.kernel
def parts(i, j, x):
    return x[i, j], i + j


def test_reductions_and_scans_of_what_a_kernel_returns(route: str) -> None:
    x = np.linspace(-3, 5, 301)
    w = np.cos(np.arange(301.0))
    on_x, on_w = cf.asarray(x), cf.asarray(w)
    values = weighted.python(301, x, w)
    for op in ("sum", "prod", "min", "max", "argmin", "argmax", "any", "all"):
        expected = getattr(np, op)(values)
        found = weighted.reduce(301, on_x, on_w, op=op)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)
        assert found.dtype == expected.dtype
    np.testing.assert_allclose(weighted.scan(301, on_x, on_w).get(), values.cumsum(), rtol=1e-12)
    np.testing.assert_allclose(weighted.scan(301, on_x, on_w, op="max").get(),
                               np.maximum.accumulate(values), rtol=1e-12)
    exclusive = weighted.scan(301, on_x, on_w, exclusive=True).get()
    np.testing.assert_allclose(exclusive, np.r_[0, values.cumsum()[:-1]], rtol=1e-12, atol=1e-12)
    total, steps = parts.reduce((7, 43), cf.asarray(x.reshape(7, 43)))
    assert float(total) == pytest.approx(x.sum())
    assert int(steps) == 7 * 43 * (3 + 21)
    assert float(weighted.reduce(0, on_x, on_w)) == 0
    with pytest.raises(ValueError, match="zero-size"):
        weighted.reduce(0, on_x, on_w, op="max")
    with pytest.raises(ValueError, match="op='mean'"):
        weighted.reduce(3, on_x, on_w, op="mean")
    with pytest.raises(cf.KernelError, match="returns a value"):
        weighted(3, on_x, on_w)
    weighted._signatures.clear()
    parts._signatures.clear()


@cf.kernel
def complex_numbers(i, z, out, real):
    w = z[i] * z[i].real + 2j
    out[i] = w / (1 + z[i])
    real[i] = abs(w) + w.imag


@cf.kernel
def mixed(i, b, k, h, out):
    out[i] = h[i] * k[i] if b[i] else 0.5
    b[i] = not b[i]
    h[i] = h[i] + i


def test_complex_numbers_bools_and_halves(route: str) -> None:
    z = (np.linspace(-2, 2, 33) + 1j * np.linspace(1, -3, 33)).astype(np.complex64)
    given = [z, np.zeros(33, np.complex128), np.zeros(33)]
    device = [cf.asarray(a) for a in given]
    complex_numbers._signatures.clear()
    complex_numbers(33, *device)
    complex_numbers.python(33, *given)
    for one, other in zip(device, given, strict=True):
        np.testing.assert_allclose(one.get(), other, rtol=1e-6)
    given = [np.arange(33) % 3 == 0, np.arange(33, dtype=np.int16), np.linspace(0, 9, 33).astype(
        np.float16), np.zeros(33)]
    device = [cf.asarray(a) for a in given]
    mixed._signatures.clear()
    mixed(33, *device)
    mixed.python(33, *given)
    for one, other in zip(device, given, strict=True):
        np.testing.assert_array_equal(one.get(), other)
    mixed._signatures.clear()
    complex_numbers._signatures.clear()


@cf.kernel
def counted(i, x, whole, h, f, first):
    k = x[i] % len(h)
    cf.atomic.add(h, k, 1)
    cf.atomic.sub(whole, 0, x[i])
    cf.atomic.max(whole, 1, x[i])
    cf.atomic.min(whole, 2, x[i])
    cf.atomic.xor(whole, 3, x[i])
    cf.atomic.or_(whole, 4, x[i])
    cf.atomic.and_(whole, 5, x[i])
    cf.atomic.add(f, (k % 2, 1), 0.5)
    if cf.atomic.compare_exchange(first, k, -1, i) == -1:
        cf.atomic.exchange(h, -1, 100)


def test_atomics() -> None:
    for dtype in ("int32", "uint64", "int64"):
        x = np.random.default_rng(3).integers(0, 1000, 5000).astype(dtype)
        whole = np.array([0, 3, 99, 0, 0, -1]).astype(dtype)
        given = [x, whole, np.zeros(7, dtype), np.zeros((2, 3), np.float32),
                 np.full(7, -1, np.int64)]
        device = [cf.asarray(a) for a in given]
        counted(5000, *device)
        counted.python(5000, *given)
        for one, other in zip(device[1:4], given[1:4], strict=True):
            one, other = one.get(), other.copy()
            one[-1:], other[-1:] = 0, 0
            np.testing.assert_array_equal(one, other)
        winners = device[4].get()
        assert ((winners >= 0) == (np.bincount((x % 7).astype(int), minlength=7) > 0)).all()
    floats = np.zeros(1)
    on_device = cf.asarray(floats)

    @cf.kernel
    def added(i, f):
        cf.atomic.add(f, 0, i * 1.0)

    added(2000, on_device)
    assert float(on_device[0]) == 1999 * 1000


@cf.kernel(group=16)
def turned_in_groups(i, j, x, y):
    t = cf.group.local_array((2, 16), np.float64)
    k = cf.group.local_id()
    t[0, k] = x[i, j]
    t[1, k] = x[i, j] * 2
    cf.group.barrier()
    y[i, j] = t[0, cf.group.size() - 1 - k] + t[1, -1] + cf.group.group_id()


def test_work_groups() -> None:
    x, y = np.arange(96.0).reshape(3, 32), np.zeros((3, 32))
    on_y = cf.asarray(y)
    turned_in_groups((3, 32), cf.asarray(x), on_y)
    turned_in_groups.python((3, 32), x, y)
    np.testing.assert_array_equal(on_y.get(), y)
    with pytest.raises(ValueError, match="groups of 16"):
        turned_in_groups((3, 30), cf.asarray(x), on_y)


@cf.kernel
def drawn(i, seed, out):
    out[0, i] = cf.philox.uniform(seed, i)
    out[1, i] = cf.philox.normal(seed, i, 5)
    out[2, i] = cf.philox.bits(seed, i) % np.uint64(1000)


def test_random_numbers_by_counter(route: str) -> None:
    drawn._signatures.clear()
    out = np.zeros((3, 500))
    on_device = cf.asarray(out)
    drawn(500, 2**40 + 1, on_device)
    drawn.python(500, 2**40 + 1, out)
    np.testing.assert_array_equal(on_device.get()[::2], out[::2])
    # The simulator calculates some functions less exactly.
    np.testing.assert_allclose(on_device.get()[1], out[1], rtol=1e-9 if SIMULATED else 1e-13)
    drawn._signatures.clear()


@cf.kernel
def gathered(i, x, idx, y):
    y[i] = x[idx[i], 1] if idx[i] >= 0 else -1.0


@cf.kernel
def scattered(i, x, idx, y):
    y[idx[i], i % 2] = x[i, 0] + x[i, 1]


def test_bounds_are_checked_where_asked_for(route: str) -> None:
    gathered._signatures.clear()
    x = cf.asarray(np.arange(20.0).reshape(10, 2))
    idx = cf.asarray(np.array([3, -1, 9, 0]))
    y = cf.zeros(4)
    with cf.config.override(check="bounds"):
        gathered(4, x, idx, y)
        assert y.tolist() == [7, -1, 19, 1]
        idx[2] = 10
        with pytest.raises(IndexError, match=r"kernel gathered.*`x` in line \d+: index 10 .* 10"):
            gathered(4, x, idx, y)
        with pytest.raises(IndexError, match=r"kernel scattered.*`y` in line \d+: index -1 "):
            scattered(4, x, idx, cf.zeros((20, 2)))
    with cf.config.override(kernels="python"):
        with pytest.raises(IndexError, match=r"kernel gathered.*`x` in line \d+: index 10 .* 10"):
            gathered(4, x, idx, y)
        idx[2] = 2
        gathered(4, x, idx, y)
        assert y.tolist() == [7, -1, 5, 1]
        assert float(weighted.reduce(4, y, y)) == pytest.approx(49 + 25 + 1)
    gathered._signatures.clear()


@pytest.mark.parametrize("setting", [{"check": "bounds"}, {"kernels": "python"}], ids=str)
def test_an_index_out_of_bounds_leaves_the_arrays_as_they_were(setting: dict[str, str]) -> None:
    """Computed before, recorded only, and shared with another view."""
    x, known = cf.asarray(np.arange(20.0).reshape(10, 2)), cf.zeros((10, 2))
    recorded = cf.ones((10, 2))
    recorded *= 2
    with cf.config.override(**setting):
        for y in (known, recorded, known[::-1]):
            with pytest.raises(IndexError, match="`y` in line"):
                scattered(3, x, cf.asarray(np.array([3, 2, 10])), y)
        scattered(1, x, cf.asarray(np.array([3])), recorded[:4])
    assert known.tolist() == [[0, 0]] * 10
    assert recorded.tolist() == [[2, 2]] * 3 + [[1, 2]] + [[2, 2]] * 6


def test_a_known_index_out_of_bounds_is_an_error_at_the_call() -> None:
    @cf.kernel
    def beyond(i, x, y):
        y[i] = x[i + 1]

    x = cf.ones(8)
    with pytest.raises(IndexError, match=r"kernel beyond.*`x` in line \d+: index 8 .* size 8"):
        beyond(8, x, cf.zeros(8))
    beyond(7, x, cf.zeros(8))
    with pytest.raises(ValueError, match="read-only"):
        beyond(7, x, cf.broadcast_to(x, (2, 8))[0])
    with pytest.raises(TypeError, match=r"1 index\(es\) and 1 argument"):
        beyond(7, x)


def test_python_has_kernel_values_where_its_numbers_would_raise(route: str) -> None:
    @cf.kernel
    def divided(i, a, n, out):
        out[0, i] = i // (i - 3) + i % (i - 3) - n // (i - 2)
        out[1, i] = i / (i - 3)
        out[2, i] = (i - 3.0) // (i - 3) + (i - 5.0) % (i - 5)
        q, r = divmod(i, i - 3)
        out[3, i] = q * 10 + r
        t, s = 1.0, n
        t /= i - 2
        s //= i - 4
        out[4, i] = t + s
        out[5, i] = a**0.5 + (i - 3.0) ** -1
        out[6, i] = (a * (i + 1)) ** 1.5
        out[7, i] = 10.0 ** (100.0 * i)

    out = np.zeros((8, 12))
    actual = cf.asarray(out)
    divided(12, -2.5, 7, actual)
    divided.python(12, -2.5, 7, out)
    np.testing.assert_allclose(actual.get(), out, rtol=1e-13)


def test_outer_numbers_are_looked_at_in_every_call() -> None:
    scale = 2.0

    @cf.kernel
    def scaled(i, x):
        x[i] *= scale

    x = cf.ones(3)
    scaled(3, x)
    scale = 5.0
    scaled(3, x)
    scale = np.float32(0.5)
    scaled(3, x)
    assert x.tolist() == [5, 5, 5]


@cf.kernel
def against_all(i, x, m, out):
    s = 0.0
    p = 1.0
    n = 3
    d = 0.0
    for j in range(len(x)):
        d = x[j] - x[i]
        s += d * d * m[i, j]
        n += j
    for j in range(100):
        p *= 1 + j * 0.001
    out[0, i] = s
    out[1, i] = n + j
    out[2, i] = d
    out[3, i] = p


def test_loops_that_add_up_are_reductions(route: str) -> None:
    against_all._signatures.clear()
    random = np.random.default_rng(4)
    x, m, out = random.random(150), random.random((150, 150)), np.zeros((4, 150))
    on_x, on_m, on_out = cf.asarray(x), cf.asarray(m), cf.asarray(out)
    taken = against_all.route(150, on_x, on_m, on_out)
    assert (taken == "array operations") == (route == "arrays"), taken
    against_all(150, on_x, on_m, on_out)
    against_all.python(150, x, m, out)
    np.testing.assert_allclose(on_out.get(), out, rtol=1e-13)
    against_all._signatures.clear()


@cf.kernel
def edges(i, j, x, out):
    n, m = out.shape
    part = cf.local_array((2, 3), np.float64)
    rows, columns = part.shape
    part[rows - 1, columns - 1] = 0.5
    if 0 < i < n - 1 and 0 < j < m - 1:
        out[i, j] = x[i, j] * part[1, 2] + n + 100 * m + rows
    else:
        out[i, j] = columns


@cf.kernel
def insides(i, j, x, out):
    n, m = x.shape
    out[i, j] = x[i, j] if 0 < i < n - 1 and j < m - 2 else 0.0


def test_sizes_are_taken_from_shapes(route: str) -> None:
    x = np.arange(30.0).reshape(5, 6)
    for kernel in (edges, insides):
        expected = np.zeros((5, 6))
        kernel.python((5, 6), x, expected)
        out = cf.zeros((5, 6))
        kernel((5, 6), x, out)
        np.testing.assert_array_equal(out.get(), expected)


@cf.kernel
def walks(i, start, stop, step, out):
    count, last = 0, 0
    for k in range(start[i], stop[i], step[i]):
        if count == 40:
            break
        count += 1
        last = k
    for k in range(start[i], stop[i], -3):
        if count == 80:
            break
        count += 1
        last += k // 8
    out[i, 0] = count
    out[i, 1] = last


def test_ranges_may_end_where_integers_do() -> None:
    low, high = -(2**63), 2**63 - 1
    ends = [low, low + 5, low + 31, -7, -1, 0, 3, high - 60, high - 3, high]
    steps = [low, -(2**62), -40, -1, 1, 2, 5, 2**62, high]
    rows = np.array([(a, b, c) for a in ends for b in ends for c in steps], np.int64).T.copy()
    expected = np.zeros((rows.shape[1], 2), np.int64)
    walks.python(len(expected), *rows, expected)
    out = cf.zeros(expected.shape, dtype=np.int64)
    walks(len(expected), *rows, out)
    np.testing.assert_array_equal(out.get(), expected)
