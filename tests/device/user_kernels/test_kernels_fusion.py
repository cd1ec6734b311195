"""Kernels fuse with array code and with each other; what is not provably safe does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clfuse as cf

pytestmark = pytest.mark.clfuse_only
N = 1000


@cf.kernel
def axpy(i, a, x, y):
    y[i] = a * x[i] + y[i]


@cf.kernel
def scale(i, x, z):
    z[i] = x[i] * 2


@cf.kernel
def product(i, x, y):
    return x[i] * y[i]


@cf.kernel
def first_everywhere(i, x, z):
    z[i] = x[0] + x[i]


@cf.kernel
def next_one(i, x, y):
    x[i + 1] = y[i]


@cf.kernel
def one_before(i, x, y):
    y[i] = x[i - 1] + x[i]


@cf.kernel
def scattered(i, x, n, y):
    y[n[i]] = x[i]


@cf.kernel
def transposed(i, j, x, y):
    y[j, i] = x[i, j] + 1


def launches(*arrays: Any) -> int:
    return len(cf.explain(*arrays).kernels)


def operands(count: int = 3) -> tuple[list[Any], list[Any]]:
    random = np.random.default_rng(11)
    host = [random.integers(-9, 9, N) * 0.5 for _ in range(count)]
    device = [cf.asarray(a) for a in host]
    cf.evaluate(*device)
    return host, device


def test_kernels_array_code_and_reductions_are_one_kernel() -> None:
    (x, y, z), (on_x, on_y, on_z) = operands()
    axpy(N, 3.0, on_x, on_y)
    scale(N, on_y, on_z)
    w = np.add(on_z, 1) * on_x
    assert launches(on_y, on_z, w) == 1
    total = product.reduce(N, on_z, w)
    assert launches(total) <= 2  # the second adds up what the work-items have found
    y = 3 * x + y
    z = y * 2
    np.testing.assert_array_equal(w.get(), (z + 1) * x)
    np.testing.assert_array_equal(on_y.get(), y)
    assert float(total) == (z * ((z + 1) * x)).sum()


def test_explain_names_the_kernels_that_became_array_operations() -> None:
    _, (on_x, on_y, on_z) = operands()
    places = cf.asarray(np.random.default_rng(2).permutation(N))
    scale(N, on_x, on_y)
    scattered(N, on_y, places, on_z)
    axpy(N, 1.0, on_z, on_x)
    plan = cf.explain(on_x)
    assert plan.written == ("scale", "axpy")
    assert "became array operations: scale, axpy" in str(plan)
    assert "scale, axpy" in plan._repr_html_()
    total = product.reduce(N, on_y, on_y)
    assert cf.explain(total).written == ("scale", "product")
    cf.evaluate(on_x, total)
    assert cf.explain(on_x + 1).written == ()


def test_what_is_overwritten_unseen_is_never_stored() -> None:
    (x, *_), (on_x, on_y, on_z) = operands()
    scale(N, on_x, on_z)
    scale(N, on_z, on_y)
    scale(N, on_x, on_z)  # the first values of z live in registers
    plan = cf.explain(on_y, on_z)
    assert len(plan.kernels) == 1
    assert len(plan.kernels[0].writes) == 2
    np.testing.assert_array_equal(on_y.get(), 4 * x)
    np.testing.assert_array_equal(on_z.get(), 2 * x)


def test_an_element_every_iteration_reads_comes_after_its_write() -> None:
    (x, y, _), (on_x, on_y, on_z) = operands()
    axpy(N, 3.0, on_x, on_y)
    first_everywhere(N, on_y, on_z)
    y = 3 * x + y
    np.testing.assert_array_equal(on_z.get(), y[0] + y)
    np.testing.assert_array_equal(on_y.get(), y)
    assert "where another reads" in first_everywhere.route(N, on_y, on_y)


def test_neighbours_are_read_after_they_were_written() -> None:
    (x, y, _), (on_x, on_y, _) = operands()
    next_one(N - 1, on_x, on_y)
    one_before(((1, N),), on_x, on_y)
    x[1:] = y[:-1]
    y[1:] = x[:-1] + x[1:]
    np.testing.assert_array_equal(on_y.get(), y)
    np.testing.assert_array_equal(on_x.get(), x)
    assert "where another reads" in one_before.route(((1, N),), on_x, on_x)


def test_a_scatter_is_a_launch_between_before_and_after() -> None:
    (x, y, _), (on_x, on_y, _) = operands()
    places = np.random.default_rng(2).permutation(N)
    scale(N, on_x, on_y)
    scattered(N, on_x, cf.asarray(places), on_y[::-1])
    axpy(N, 1.0, on_y, on_x)
    plan = cf.explain(on_x)
    assert [k.kind for k in plan.kernels] == ["map", "launch", "map"]
    assert "is written at a place computed from data" in str(plan)
    y = 2 * x
    y[::-1][places] = x
    np.testing.assert_array_equal(on_x.get(), x + y)


def test_overlapping_views_of_one_buffer() -> None:
    (x, *_), (on_x, *_) = operands()
    axpy(N - 3, 2.0, on_x[3:], on_x[:-3].copy())
    assert "where another reads" in axpy.route(N - 3, 2.0, on_x[3:], on_x[:-3])
    assert axpy.route(N // 2, 2.0, on_x[::2], on_x[1::2]) == "array operations"
    axpy(N // 2, 2.0, on_x[::2], on_x[1::2])
    axpy(N // 2, 2.0, on_x[N // 2:], on_x[: N // 2])
    scale(N - 1, on_x[1:].copy(), on_x[:-1])
    for target, source in ((x[1::2], x[::2]), (x[: N // 2], x[N // 2:])):
        target += 2 * source
    x[:-1] = 2 * x[1:].copy()
    np.testing.assert_array_equal(on_x.get(), x)


def test_transposed_views() -> None:
    x = np.arange(36.0).reshape(6, 6)
    on_x = cf.asarray(x)
    y = cf.zeros((6, 6))
    transposed((6, 6), on_x, y)
    transposed((6, 6), y.T, on_x)
    assert "where another reads" in transposed.route((6, 6), on_x, on_x)
    assert transposed.route((6, 6), on_x, on_x.T) == "array operations"
    transposed((6, 6), on_x, on_x.T)
    np.testing.assert_array_equal(y.get(), (x + 1).T)
    np.testing.assert_array_equal(on_x.get(), (x + 2).T + 1)


def test_a_kernel_that_overwrites_what_a_pending_one_reads() -> None:
    (x, y, _), (on_x, on_y, on_z) = operands()
    old = on_x[3:7]
    kept = on_x + on_y
    scale(N, on_x, on_z)
    axpy(N, 5.0, on_y, on_x)
    scale(N - 1, on_y[1:], on_x[:-1])
    np.testing.assert_array_equal(on_z.get(), 2 * x)
    np.testing.assert_array_equal(kept.get(), x + y)
    x += 5 * y
    x[:-1] = 2 * y[1:]
    np.testing.assert_array_equal(on_x.get(), x)
    np.testing.assert_array_equal(old.get(), x[3:7])
