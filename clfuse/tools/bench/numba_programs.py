"""The programs of `kernel_programs` for Numba, ``@njit(parallel=True)``.

Each takes the arrays and returns what the others return. They are what a user of Numba alone would
write: one loop nest where one pass over the memory is enough. Those that add up are compiled a
second time with ``fastmath={"reassoc"}``: the compiler may then add in another order, as clfuse's
folds do, and use vectors for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy
from numba import get_num_threads, njit, prange

from . import kernel_programs
from .kernel_programs import ESCAPE, ITERATIONS, SCALAR, UPDATES

__all__ = ["PROGRAMS", "REASSOCIATED"]


@njit(parallel=True)
def copy(a, b, c):
    for i in prange(len(a)):
        c[i] = a[i]


@njit(parallel=True)
def mul(a, b, c):
    for i in prange(len(a)):
        b[i] = SCALAR * c[i]


@njit(parallel=True)
def add(a, b, c):
    for i in prange(len(a)):
        c[i] = a[i] + b[i]


@njit(parallel=True)
def triad(a, b, c):
    for i in prange(len(a)):
        a[i] = b[i] + SCALAR * c[i]


def dot(a, b, c):
    total = 0.0
    for i in prange(len(a)):
        total += a[i] * b[i]
    return total


@njit(parallel=True)
def nstream(a, b, c):
    for i in prange(len(a)):
        a[i] += b[i] + SCALAR * c[i]


@njit(parallel=True)
def prefix(x, y):
    starts = numpy.empty(len(x))
    total = 0.0
    for i in range(len(x)):
        starts[i] = total
        y[i] = total + 0.5 * x[i]
        total += x[i]
    return starts


@njit(parallel=True)
def columns(a, b):
    n, m = a.shape
    sums = numpy.zeros(m)
    for i in prange(n):
        if 0 < i < n - 1:
            for j in range(1, m - 1):
                b[i, j] = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])
        sums += b[i]
    return sums


def stencil(old, new):
    n, m = old.shape
    for i in prange(2, n - 2):
        for j in range(2, m - 2):
            new[i, j] += 0.25 * (
                old[i + 1, j] - old[i - 1, j] + old[i, j + 1] - old[i, j - 1]
            ) + 0.125 * (old[i + 2, j] - old[i - 2, j] + old[i, j + 2] - old[i, j - 2])
    norm = 0.0
    for i in prange(n):
        for j in range(m):
            old[i, j] += 1
            norm += abs(new[i, j])
    return norm


@njit(parallel=True)
def transpose(a, b):
    n, m = b.shape
    for i in prange(n):
        for j in range(m):
            b[i, j] += a[j, i]
    for i in prange(m):
        for j in range(n):
            a[i, j] += 1


def weighted(y, matrix, x):
    result = 0.0
    for i in prange(len(y)):
        total = 0.0
        for j in range(matrix.shape[1]):
            total += matrix[i, j] * x[j]
        result += y[i] * total
    return result


@njit(parallel=True)
def gather(values, places, out):
    for i in prange(len(places)):
        out[i] = SCALAR * values[places[i]]


@njit(parallel=True)
def gups(table):
    # Numba has no atomic operations on CPUs: each thread makes the updates of a part of the table.
    threads = get_num_threads()
    mask = numpy.uint32(len(table) - 1)
    for thread in prange(threads):
        first, last = thread * len(table) // threads, (thread + 1) * len(table) // threads
        for i in range(UPDATES * len(table)):
            x = numpy.uint32(numpy.uint32(i) * numpy.uint32(2654435761))
            x ^= x >> numpy.uint32(15)
            x = numpy.uint32(x * numpy.uint32(2246822519))
            x ^= x >> numpy.uint32(13)
            place = x & mask
            if first <= place < last:
                table[place] ^= x


one_force = njit(kernel_programs.forces.__wrapped__)
"""The body of the kernel in Python: what happens to one particle is written once."""


@njit(parallel=True)
def forces(place, counts, neighbours, force):
    for i in prange(len(place)):
        one_force(i, place, counts, neighbours, force)


one_point = njit(kernel_programs.mandelbrot.__wrapped__)


@njit(parallel=True)
def mandelbrot(out):
    for i in prange(out.shape[0]):
        for j in range(out.shape[1]):
            one_point(i, j, ESCAPE, out)


@njit(parallel=True)
def work(a):
    for i in prange(10):
        a[i] = a[i] + 1


def rows(a):
    for row in range(len(a)):
        work(a[row])


def _stream(dot: Callable[..., Any]) -> Callable[..., Any]:
    def stream(a, b, c):
        copy(a, b, c)
        mul(a, b, c)
        add(a, b, c)
        triad(a, b, c)
        return dot(a, b, c)

    return stream


def _all_of(function: Callable[..., Any]) -> Callable[[Any, list[Any]], list[Any]]:
    """What it returns, and all arrays."""

    def run(xp: Any, given: list[Any]) -> list[Any]:
        returned = function(*given)
        return [*(() if returned is None else (returned,)), *given]

    return run


def _last_of(function: Callable[..., Any]) -> Callable[[Any, list[Any]], list[Any]]:
    """What it returns; the last array where it returns nothing."""

    def run(xp: Any, given: list[Any]) -> list[Any]:
        returned = function(*given)
        return [given[-1] if returned is None else returned]

    return run


def _several(function: Callable[..., Any]) -> Callable[[Any, list[Any]], list[Any]]:
    """What it returns the last time, and all arrays."""
    every = _all_of(function)

    def run(xp: Any, given: list[Any]) -> list[Any]:
        for _ in range(ITERATIONS - 1):
            function(*given)
        return every(xp, given)

    return run


def _adding(**options: Any) -> dict[str, Callable[[Any, list[Any]], list[Any]]]:
    """The programs that add up, compiled with these options."""
    compiled = njit(parallel=True, **options)
    of_dot, of_stencil = compiled(dot), compiled(stencil)
    stream = _stream(of_dot)

    def benchmarked(xp: Any, given: list[Any]) -> list[Any]:
        return [*[stream(*given) for _ in range(ITERATIONS)], *given]

    return {
        "dot": _all_of(of_dot), "stream": _all_of(stream), "stencil": _all_of(of_stencil),
        "yAx": _last_of(compiled(weighted)), f"stream{ITERATIONS}": benchmarked,
        f"stencil{ITERATIONS}": _several(of_stencil),
    }


PROGRAMS: Final[dict[str, Callable[[Any, list[Any]], list[Any]]]] = {
    **{f.__name__: _all_of(f) for f in (copy, mul, add, triad, nstream, transpose)},
    "prefix": lambda xp, given: [prefix(*given), given[1]],
    "columns": lambda xp, given: [columns(*given), given[1]],
    **{f.__name__: _last_of(f) for f in (gather, gups, forces, rows, mandelbrot)},
    **{f"{f.__name__}{ITERATIONS}": _several(f) for f in (nstream, transpose)},
    **_adding(),
}

REASSOCIATED: Final = _adding(fastmath={"reassoc"})
"""Those that add up, in any order."""
