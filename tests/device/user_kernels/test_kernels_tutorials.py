"""Kernels as people write them after tutorials of Numba, Taichi, CuPy and PyKokkos: as clfuse runs
them, with checked bounds, and in plain Python they leave the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clfuse as cf

pytestmark = pytest.mark.clfuse_only
RANDOM = np.random.default_rng(3)


@cf.kernel
def bodies(i, place, mass, pull, soft):
    ax, ay = 0.0, 0.0
    for j in range(place.shape[0]):
        if j == i:
            continue
        dx, dy = place[j, 0] - place[i, 0], place[j, 1] - place[i, 1]
        squared = dx**2 + dy**2 + soft**2
        inverse = 1.0 / (squared * math.sqrt(squared))
        ax += mass[j] * dx * inverse
        ay += mass[j] * dy * inverse
    pull[i, 0], pull[i, 1] = ax, ay


@cf.kernel
def life(i, j, old, new):
    n, m = old.shape
    count = 0
    for di in range(-1, 2):
        for dj in range(-1, 2):
            if di == 0 and dj == 0:
                continue
            count += old[(i + di) % n, (j + dj) % m]
    new[i, j] = 1 if count == 3 or (old[i, j] == 1 and count == 2) else 0


@cf.kernel
def histogram(i, x, bins, low, high):
    place = int((x[i] - low) / (high - low) * len(bins))
    if 0 <= place < len(bins):
        cf.atomic.add(bins, place, 1)


@cf.device_function
def sphere(x, y, z, radius):
    return math.sqrt(x * x + y * y + z * z) - radius


@cf.device_function
def scene(x, y, z):
    return min(sphere(x, y, z - 3, 1.0), sphere(x - 1, y, z - 4, 0.5), y + 1.0)


@cf.kernel
def march(i, j, image):
    h, w = image.shape
    dx, dy, dz = (j - w / 2) / w, (h / 2 - i) / h, 1.0
    length = math.sqrt(dx * dx + dy * dy + dz * dz)
    dx /= length
    dy /= length
    dz /= length
    t, hit = 0.0, False
    for _ in range(40):
        d = scene(t * dx, t * dy, t * dz)
        if d < 1e-3:
            hit = True
            break
        t += d
        if t > 20:
            break
    image[i, j] = t if hit else -1.0


@cf.kernel
def sparse(row, first, columns, values, x, y):
    total = 0.0
    for k in range(first[row], first[row + 1]):
        total += values[k] * x[columns[k]]
    y[row] = total


@cf.kernel
def resized(i, j, source, target):
    y = i * (source.shape[0] - 1) / (target.shape[0] - 1)
    x = j * (source.shape[1] - 1) / (target.shape[1] - 1)
    y0, x0 = int(y), int(x)
    y1, x1 = min(y0 + 1, source.shape[0] - 1), min(x0 + 1, source.shape[1] - 1)
    fy, fx = y - y0, x - x0
    target[i, j] = (1 - fy) * ((1 - fx) * source[y0, x0] + fx * source[y0, x1]) + fy * (
        (1 - fx) * source[y1, x0] + fx * source[y1, x1]
    )


@cf.kernel(group=8)
def tiled(i, j, a, b, c):
    row = cf.group.local_array(8, np.float64)
    lane = cf.group.local_id()
    total = 0.0
    for t in range(a.shape[1] // 8):
        row[lane] = a[i, t * 8 + lane]
        cf.group.barrier()
        for k in range(8):
            total += row[k] * b[t * 8 + k, j]
        cf.group.barrier()
    c[i, j] = total


@cf.kernel
def nearest(i, points, centres, labels, sums, counts):
    best, least = 0, math.inf
    for k in range(centres.shape[0]):
        d = 0.0
        for axis in range(points.shape[1]):
            apart = points[i, axis] - centres[k, axis]
            d += apart * apart
        if d < least:
            least = d
            best = k
    labels[i] = best
    cf.atomic.add(counts, best, 1)
    for axis in range(points.shape[1]):
        cf.atomic.add(sums, (best, axis), points[i, axis])


@cf.kernel
def median(i, j, source, target):
    window = cf.local_array(9, np.float64)
    n = 0
    for a in range(-1, 2):
        for b in range(-1, 2):
            window[n] = source[i + a, j + b]
            n += 1
    for a in range(9):
        for b in range(a + 1, 9):
            if window[b] < window[a]:
                window[a], window[b] = window[b], window[a]
    target[i, j] = window[4]


@cf.kernel
def searched(i, table, values, places):
    low, high = 0, len(table)
    while low < high:
        middle = (low + high) // 2
        if table[middle] < values[i]:
            low = middle + 1
        else:
            high = middle
    places[i] = low


@cf.kernel
def handed_on(i, values):
    """A loop of which each round hands on what the one before had."""
    a, b = 0, 1
    for _ in range(i):
        a, b = b, a + b
    values[i] = a


@cf.kernel
def escaped(i, c, counts):
    z = 0j
    n = 0
    while abs(z) <= 2 and n < 30:
        z = z * z + c[i]
        n += 1
    counts[i] = n


def _sparse() -> list[Any]:
    matrix = RANDOM.random((30, 30)) * (RANDOM.random((30, 30)) < 0.2)
    first = np.r_[0, np.cumsum((matrix != 0).sum(1))].astype("i4")
    columns = np.nonzero(matrix)[1].astype("i4")
    return [first, columns, matrix[matrix != 0], RANDOM.random(30), np.zeros(30)]


PROGRAMS: list[tuple[Any, Any, Callable[[], list[Any]]]] = [
    (bodies, 40, lambda: [RANDOM.random((40, 2)), RANDOM.random(40), np.zeros((40, 2)), 0.1]),
    (life, (17, 23), lambda: [(RANDOM.random((17, 23)) < 0.4).astype("i4"),
                              np.zeros((17, 23), "i4")]),
    (histogram, 1000, lambda: [RANDOM.random(1000) * 2 - 0.5, np.zeros(16, "i8"), 0.0, 1.0]),
    (march, (12, 16), lambda: [np.zeros((12, 16))]),
    (sparse, 30, _sparse),
    (resized, (20, 15), lambda: [RANDOM.random((9, 7)), np.zeros((20, 15))]),
    (tiled, (8, 24), lambda: [RANDOM.random((8, 32)), RANDOM.random((32, 24)),
                              np.zeros((8, 24))]),
    (nearest, 60, lambda: [RANDOM.random((60, 2)), RANDOM.random((4, 2)), np.zeros(60, "i4"),
                           np.zeros((4, 2)), np.zeros(4, "i8")]),
    (median, ((1, 7), (1, 8)), lambda: [RANDOM.random((8, 9)), np.zeros((8, 9))]),
    (searched, 20, lambda: [np.sort(RANDOM.random(37)), RANDOM.random(20), np.zeros(20, int)]),
    (handed_on, 60, lambda: [np.zeros(60, "i8")]),
    (escaped, 50, lambda: [RANDOM.random(50) * 3 - 2 + 1j * RANDOM.random(50),
                           np.zeros(50, "i4")]),
]


@pytest.mark.parametrize("check", ["off", "bounds"])
@pytest.mark.parametrize(
    ("kernel", "ranges", "made"), PROGRAMS, ids=[kernel.__name__ for kernel, _, _ in PROGRAMS]
)
def test_what_tutorials_have(
    kernel: Any, ranges: Any, made: Callable[[], list[Any]], check: str
) -> None:
    given = made()
    ours = [cf.asarray(each) if isinstance(each, np.ndarray) else each for each in given]
    with cf.config.override(host_us=0, check=check):
        kernel(ranges, *ours)
        cf.evaluate(*[each for each in ours if isinstance(each, cf.ndarray)])
    kernel.python(ranges, *given)
    for mine, theirs in zip(ours, given, strict=True):
        np.testing.assert_allclose(np.asarray(mine), theirs, rtol=1e-12, atol=1e-12)


def test_steps_of_a_bitonic_sort_follow_each_other() -> None:
    @cf.kernel
    def exchanged(i, x, j, k):
        other = i ^ j
        if other > i:
            rises = (i & k) == 0
            a, b = x[i], x[other]
            if (rises and a > b) or (not rises and a < b):
                x[i] = b
                x[other] = a

    values = RANDOM.integers(0, 99, 64)
    x = cf.asarray(values)
    k = 2
    while k <= 64:
        j = k // 2
        while j > 0:
            exchanged(64, x, j, k)
            j //= 2
        k *= 2
    np.testing.assert_array_equal(x.get(), np.sort(values))


def test_arguments_that_are_no_arrays_of_numbers_are_named() -> None:
    @cf.kernel
    def copied(i, x, y):
        x[i] = y[i]

    x = cf.zeros(3)
    with pytest.raises(cf.KernelError, match=r"argument 2 is list.*clfuse.asarray"):
        copied(3, x, [1.0, 2.0, 3.0])
    with pytest.raises(cf.KernelError, match="argument 2 is an array of dtype '<U1'"):
        copied(3, x, np.array(["a", "b", "c"]))
    with pytest.raises(cf.KernelError, match="argument 2 is an array of dtype '>f8'"):
        copied(3, x, np.zeros(3, ">f8"))
    with pytest.raises(ValueError, match=r"`x`.*read-only; of a NumPy array .*clfuse.asarray"):
        copied(3, np.zeros(3), x)
