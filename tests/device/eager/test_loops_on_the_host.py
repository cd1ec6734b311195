"""Loops over rows and elements of arrays that were recorded, or that the device has, end on the
host: NumPy calculates there, in one memory, and nobody sees it.

As `test_present`, where arrays lie on the host from the start.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from clfuse.arrays.host_array import ROWS_OF_A_LOOP
from tests.support.marks import compiled

pytestmark = pytest.mark.clfuse_only


@pytest.fixture(autouse=True)
def small(xp: ModuleType) -> Iterator[None]:
    with xp.config.override(host_us=50):
        yield


def test_elements_of_a_large_array_are_scalars_of_that_time(xp: ModuleType) -> None:
    x = xp.arange(400_000.).reshape(400, 1000) + 1
    xp.evaluate(x)
    first, row = x[3, 4], x[5, :6]
    x += 1
    assert (float(first), float(x[3, 4])) == (3005.0, 3006.0)
    assert_array_equal(row @ xp.ones(6), np.arange(5002., 5008).sum())


@compiled
def test_a_loop_over_rows_of_what_was_recorded_ends_on_the_host(xp: ModuleType) -> None:
    def smoothed(np: ModuleType, a: Any) -> Any:
        b = np.sin(a) + a
        for i in range(1, len(b)):
            b[i] = b[i - 1] * 0.5 + b[i]
        return b

    values = np.linspace(0, 1, 250 * 80).reshape(250, 80)
    before = xp.stats()["nodes_recorded"]
    found = np.asarray(smoothed(xp, xp.linspace(0, 1, 250 * 80).reshape(250, 80)))
    np.testing.assert_allclose(found, smoothed(np, values), rtol=1e-13)
    assert xp.stats()["nodes_recorded"] - before < 250


@compiled
@pytest.mark.usefixtures("shared_memory")
def test_a_loop_over_recorded_windows_ends_on_the_host(xp: ModuleType) -> None:
    def filtered(m: ModuleType, image: Any) -> Any:
        padded = m.pad(m.sqrt(image * 2.0), 2, mode="edge")
        found = m.zeros_like(image)
        for i in range(image.shape[0]):
            for j in range(image.shape[1]):
                found[i, j] = (padded[i : i + 5, j : j + 5] * 0.5).sum()
        return found

    values = np.random.default_rng(3).random((110, 120))
    before = xp.stats()["nodes_recorded"]
    found = filtered(xp, xp.asarray(values))
    np.testing.assert_allclose(np.asarray(found), filtered(np, values), rtol=1e-12)
    assert xp.stats()["nodes_recorded"] - before < 400, "of 39,600"


def test_slices_of_stencils_are_no_windows(xp: ModuleType) -> None:
    x = xp.sqrt(xp.linspace(0, 1, 90_000).reshape(300, 300))
    for _ in range(2 * ROWS_OF_A_LOOP):
        y = x[1:-1, 1:] + x[1:-1, :-1]
    assert x._storage.node.buffer is None
    root = np.sqrt(np.linspace(0, 1, 90_000).reshape(300, 300))
    np.testing.assert_allclose(np.asarray(y), root[1:-1, 1:] + root[1:-1, :-1], rtol=1e-15)


@pytest.fixture
def stored(xp: ModuleType) -> tuple[Any, Any]:
    """An array of 3.2 MB in the device's memory, and the same as NumPy's."""
    x = xp.arange(400_000.).reshape(400, 1000) + 1
    xp.evaluate(x)
    return x, np.arange(400_000.).reshape(400, 1000) + 1


@compiled
def test_a_loop_over_recorded_elements_ends_on_the_host(xp: ModuleType) -> None:
    values = np.random.default_rng(4).integers(0, 255, (40, 40)).astype(np.uint8)

    def dithered(m: ModuleType, image: Any) -> Any:
        image = (image.astype(float) * 2.0)[:30, :30].copy()
        for i in range(29):
            for j in range(29):
                old = image[i, j]
                new = 255.0 if old > 127 else 0.0
                image[i, j] = new
                image[i, j + 1] += (old - new) * 0.5
                image[i + 1, j] += (old - new) * 0.5
        return image

    expected = dithered(np, values)
    before = xp.stats()
    image = dithered(xp, xp.asarray(values))
    after = xp.stats()
    assert_array_equal(np.asarray(image), expected)
    names = "host_evaluations", "kernels_launched", "plans_made", "plans_reused"
    assert sum(after[name] - before[name] for name in names) <= 3 * ROWS_OF_A_LOOP


@compiled
def test_a_loop_over_rows_of_a_large_array_copies_nothing(
        xp: ModuleType, stored: Any, shares_memory: bool) -> None:
    def solved(np: ModuleType, a: Any) -> Any:
        x = np.zeros(200)
        for i in range(200):
            x[i] = (1 - a[i, :i] @ x[:i]) / a[i, i]
            a[i, 5:20:3] -= x[i]
            a[i, 0] = a[:3, i].sum()
        return x

    mine, theirs = stored
    before = xp.stats()
    found, expected = solved(xp, mine), solved(np, theirs)
    if not shares_memory:
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        return
    assert_array_equal(found, expected)
    after = xp.stats()
    for name in ("plans_made", "plans_reused", "kernels_launched", "bytes_to_host",
                 "bytes_to_device", "device_bytes_now"):
        assert after[name] == before[name], name
    assert_array_equal(mine, theirs)


def test_writes_to_a_large_array_on_the_device_are_not_seen(
        xp: ModuleType, stored: Any) -> None:
    x, y = stored
    flat, other = x.reshape(-1), x.copy()
    earlier = np.asarray(x)[7]
    assert float(x[3, 4] - x[3, 3]) == 1
    kept: list[tuple[Any, Any]] = [(earlier, y[7].copy())]
    steps = (lambda a: a * 2, lambda a: a[1:3], lambda a: a[::2, ::3].copy(), lambda a: a.T + 0,
             lambda a: a.sum(axis=0), lambda a: a.reshape(1000, 400) + 0)
    for number, step in enumerate(steps):
        xp.evaluate(x)
        assert float(x[9, 9]) == y[9, 9]  # from here on it is read where the device has it
        pending, aliased = step(x) + 0, np.asarray(x)[number]
        kept += [(pending, step(y) + 0), (aliased, y[number].copy())]
        if number % 2:
            xp.evaluate(pending)  # its kernel may not have run when the host writes
        for a in (x, y):
            a[number] *= 3
            a[:, number] = a[number, 0]
            a[number, 2] = -1
            np.add(a[5], 1, out=a[5])
        flat[number * 1000 + 9] = y[number, 9] = number
        if number % 3 == 1:
            x *= 0.5  # a kernel writes, where nobody else looks
            y *= 0.5
            assert float(x[2, 2]) == y[2, 2]
    for mine, theirs in kept:
        assert_array_equal(mine, theirs)
    assert_array_equal(x, y)
    assert_array_equal(flat, y.ravel())
    assert_array_equal(other, np.arange(400_000.).reshape(400, 1000) + 1)


def test_large_arrays_stay_lazy_where_single_rows_are_read(
        xp: ModuleType, stored: Any) -> None:
    x, y = stored
    assert_array_equal(x[7, ::-2], y[7, ::-2])
    before = xp.stats()
    z = (xp.sin(x) * 2 + x[::-1]).sum(axis=1) + x[0, :400]
    x[:, 1:] -= x[:, :-1]
    assert xp.stats()["kernels_launched"] == before["kernels_launched"]
    np.testing.assert_allclose(z, (np.sin(y) * 2 + y[::-1]).sum(axis=1) + y[0, :400], rtol=1e-12)
    y[:, 1:] -= y[:, :-1].copy()
    assert_array_equal(x, y)


@compiled
@pytest.mark.usefixtures("shared_memory")
def test_a_loop_over_recorded_columns_ends_in_one_memory(xp: ModuleType) -> None:
    def covariance(np: ModuleType, data: Any) -> Any:
        data -= data.mean(axis=0)
        size = data.shape[1]
        found = np.zeros((size, size))
        for i in range(size):
            found[i:, i] = found[i, i:] = data[:, i] @ data[:, i:] / 3.0
        return found

    values = np.random.default_rng(5).random((410, 400))
    x = xp.asarray(values) + 0.0
    before = xp.stats()["nodes_recorded"]
    found = covariance(xp, x)
    np.testing.assert_allclose(found, covariance(np, values.copy()), rtol=1e-9, atol=1e-12)
    assert xp.stats()["nodes_recorded"] - before < 200


def test_rows_on_the_host_are_written_to_a_large_array_there(xp: ModuleType) -> None:
    if not xp.get_device().traits.unified_memory:
        pytest.skip("the device has memory of its own")
    values = np.random.default_rng(1).random((400, 500))
    x, y = xp.asarray(values), xp.zeros((400, 500))
    x[0, 0] = 0
    before = xp.stats()
    for row in range(400):
        y[row] = x[row] * 2 + x[row - 1]
    after = xp.stats()
    assert before["kernels_launched"] == after["kernels_launched"]
    values[0, 0] = 0
    assert_array_equal(np.asarray(y), values * 2 + np.roll(values, 1, 0))
    y[0] = 1
    assert_array_equal(np.asarray(y + 1)[:2], [values[0] * 0 + 2, values[1] * 2 + values[0] + 1])


def escaping(np: ModuleType, n: int, rounds: int) -> Any:
    """An escape loop that goes on with what has not escaped yet, by masks and index arrays."""
    rows, columns = np.mgrid[0:n, 0:n]
    c = (np.linspace(-2, 0.5, n)[rows] + np.linspace(-1.2, 1.2, n)[columns] * 1j).reshape(-1)
    rows, columns = rows.reshape(-1), columns.reshape(-1)
    z = np.zeros(n * n, np.complex128)
    count, last = np.zeros((n, n), np.int64), np.zeros((n, n), np.complex128)
    for number in range(rounds):
        np.multiply(z, z, z)
        np.add(z, c, z)
        gone = abs(z) > 2
        count[rows[gone], columns[gone]] = number + 1
        last[rows[gone], columns[gone]] = z[gone]
        np.logical_not(gone, gone)
        z, c, rows, columns = z[gone], c[gone], rows[gone], columns[gone]
    return count, last, z


@compiled
def test_a_loop_of_selections_and_scatters_stops_planning(
    xp: ModuleType,
) -> None:
    if not xp.get_device().traits.unified_memory:
        pytest.skip("selections are the device's")
    wanted = {}
    for rounds in (4, 12):
        before = xp.stats()
        found = escaping(xp, 200, rounds)
        after = xp.stats()
        wanted[rounds] = [after[name] - before[name] for name in ("host_evaluations",
                                                                  "kernels_launched")]
        for actual, expected in zip(found, escaping(np, 200, rounds), strict=True):
            np.testing.assert_allclose(actual.get(), expected, rtol=1e-12)
    # One fewer where the policy has learnt of it meanwhile: the rounds that were added take none.
    assert wanted[12][0] <= wanted[4][0]
    assert wanted[12][1] == wanted[4][1]
