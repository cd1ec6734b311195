"""Kernels that somebody wrote, against the same as array code; ``python -m clfuse bench kernels``.

BabelStream's five kernels and all of them as one program, nstream, GUPS with an atomic xor, and a
loop over the rows of an array. (A copy of a whole array moves no bytes here: both are one value.)
Each is measured as kernels in OpenCL C, as the same kernels without
fusion, and as array code, by turns in one run; every result is compared with NumPy's.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy

import clfuse as np
from clfuse import config
from clfuse.bench.limit import Copy

__all__ = ["Row", "lines", "rows"]

SCALAR: Final = 0.4
"""BabelStream's."""

ELEMENTS, QUICK_ELEMENTS = 1 << 23, 1 << 16
"""Of an array: 64 MB of doubles, past the caches."""

ROWS, QUICK_ROWS = 100_000, 1_000

UPDATES: Final = 4
"""Of each word of the table of GUPS, on average."""

COPY = np.ElementwiseKernel("T a", "T c", "c = a", "copy")
MUL = np.ElementwiseKernel("T c, T s", "T b", "b = s * c", "mul")
ADD = np.ElementwiseKernel("T a, T b", "T c", "c = a + b", "add")
TRIAD = np.ElementwiseKernel("T b, T c, T s", "T a", "a = b + s * c", "triad")
NSTREAM = np.ElementwiseKernel("T b, T c, T s", "T a", "a += b + s * c", "nstream")
DOT = np.ReductionKernel("T a, T b", "T sum", "a * b", "a + b", "sum = a", "0", "dot")
GUPS = np.RawKernel("""
    // As many updates as the table has words, UPDATES times: x is a hash of the update's number.
    __kernel void gups(__global uint *table, const uint mask)
    {
        uint x = (uint)get_global_id(0) * 2654435761u;
        x ^= x >> 15; x *= 2246822519u; x ^= x >> 13;
        atomic_xor(table + (x & mask), x);
    }""", "gups")
WORK = np.RawKernel(
    "__kernel void work(__global double *a) { a[get_global_id(0)] += 1; }", "work"
)


@dataclass
class Row:
    """One program: `kernels` and `arrays` are run on fresh arrays of `made`, and give arrays.

    Attributes
    ----------
    nbytes : int
        What has to move.
    seconds : dict
        Median of every way: ``kernels``, ``unfused``, ``arrays``.
    copy_s : float
        Median of a copy by hand, at the same time.
    right : bool
        Whether all of them gave what NumPy gives.
    """

    name: str
    kernels: Callable[[Any, list[Any]], list[Any]]
    arrays: Callable[[Any, list[Any]], list[Any]]
    made: Callable[[], list[numpy.ndarray]]
    nbytes: int
    seconds: dict[str, float] = field(default_factory=dict)
    copy_s: float = 0.0
    right: bool = True


def _babel(kernels: str) -> Callable[[Any, list[Any]], list[Any]]:
    """Some of BabelStream's kernels, one after the other; the arrays that they change."""

    def run(xp: Any, given: list[Any]) -> list[Any]:
        a, b, c = given
        results = []
        for kernel in kernels.split():
            if kernel == "copy":
                COPY(a, c)
            elif kernel == "mul":
                MUL(c, SCALAR, b)
            elif kernel == "add":
                ADD(a, b, c)
            elif kernel == "triad":
                TRIAD(b, c, SCALAR, a)
            else:
                results.append(DOT(a, b))
        return [*results, a, b, c]

    return run


def _babel_arrays(kernels: str) -> Callable[[Any, list[Any]], list[Any]]:
    def run(xp: Any, given: list[Any]) -> list[Any]:
        a, b, c = given
        results = []
        for kernel in kernels.split():
            if kernel == "copy":
                c[:] = a
            elif kernel == "mul":
                b[:] = SCALAR * c
            elif kernel == "add":
                c[:] = a + b
            elif kernel == "triad":
                a[:] = b + SCALAR * c
            else:
                results.append((a * b).sum())
        return [*results, a, b, c]

    return run


def _nstream(xp: Any, given: list[Any]) -> list[Any]:
    a, b, c = given
    NSTREAM(b, c, SCALAR, a)
    return [a]


def _nstream_arrays(xp: Any, given: list[Any]) -> list[Any]:
    a, b, c = given
    a += b + SCALAR * c
    return [a]


def _gups(xp: Any, given: list[Any]) -> list[Any]:
    (table,) = given
    GUPS((UPDATES * table.size // 64,), (64,), (table, table.size - 1))
    return [table]


def _gups_arrays(xp: Any, given: list[Any]) -> list[Any]:
    (table,) = given
    x = xp.arange(UPDATES * table.size, dtype="uint32") * xp.uint32(2654435761)
    x ^= x >> xp.uint32(15)
    x *= xp.uint32(2246822519)
    x ^= x >> xp.uint32(13)
    xp.bitwise_xor.at(table, (x & xp.uint32(table.size - 1)).astype("int64"), x)
    return [table]


def _rows(xp: Any, given: list[Any]) -> list[Any]:
    (a,) = given
    for row in range(len(a)):
        WORK((10,), (1,), (a[row],))
    return [a]


def _rows_arrays(xp: Any, given: list[Any]) -> list[Any]:
    (a,) = given
    for row in range(len(a)):
        a[row] += 1
    return [a]


def rows(*, quick: bool = False) -> list[Row]:
    """All programs."""
    n = QUICK_ELEMENTS if quick else ELEMENTS
    size = 8 * n

    def three() -> list[numpy.ndarray]:
        return [numpy.full(n, value) for value in (0.1, 0.2, 0.0)]

    babel = [("copy", 2), ("mul", 2), ("add", 3), ("triad", 3), ("dot", 2),
             ("copy mul add triad dot", 5)]
    found = [
        Row("stream" if " " in names else names, _babel(names), _babel_arrays(names), three,
            arrays * size)
        for names, arrays in babel
    ]
    found.append(Row("nstream", _nstream, _nstream_arrays, three, 4 * size))
    words = n // 4
    found.append(Row("gups", _gups, _gups_arrays, lambda: [numpy.arange(words, dtype="uint32")],
                     8 * words * UPDATES))
    count = QUICK_ROWS if quick else ROWS
    found.append(Row("rows", _rows, _rows_arrays, lambda: [numpy.zeros((count, 10))],
                     160 * count))
    return found


def measure(row: Row, repetitions: int, copy: Copy) -> Row:
    """Run a program all ways by turns, and compare what comes of the first turn with NumPy."""
    ways: dict[str, tuple[Any, str]] = {
        "kernels": (row.kernels, "on"), "unfused": (row.kernels, "off"),
        "arrays": (row.arrays, "on"),
    }
    expected = [numpy.array(each) for each in row.arrays(numpy, row.made())]
    times: dict[str, list[float]] = {name: [] for name in ways}
    given = {name: [np.array(each) for each in row.made()] for name in ways}
    copies = []
    for turn in range(repetitions + 1):  # the first builds
        start = time.perf_counter()
        copy.run()
        copies.append(time.perf_counter() - start)
        for name, (run, fusion) in ways.items():
            with config.override(fusion=fusion):
                np.evaluate(*given[name])
                np.synchronize()
                start = time.perf_counter()
                results = run(np, given[name])
                np.evaluate(*results)
                np.synchronize()
                elapsed = time.perf_counter() - start
            if turn:
                times[name].append(elapsed)
                continue
            row.right &= all(
                numpy.allclose(ours.get(), theirs, rtol=1e-12, atol=0)
                for ours, theirs in zip(results, expected, strict=True)
            )
    row.seconds = {name: statistics.median(each) for name, each in times.items()}
    row.copy_s = statistics.median(copies[1:])
    return row


def lines(*, quick: bool, repetitions: int) -> Iterator[str]:
    """The table, line by line."""
    yield f"{'kernels':10} {'ms':>8} {'GB/s':>7} {'of copy':>8} {'unfused':>8} {'arrays':>8}"
    copy = Copy(np.get_device(), 1_000_000) if quick else Copy(np.get_device())
    for row in rows(quick=quick):
        measure(row, repetitions, copy)
        own = row.seconds["kernels"]
        rate = row.nbytes / own / 1e9
        part = rate / (copy.nbytes / row.copy_s / 1e9)
        wrong = "" if row.right else "  WRONG"
        yield (
            f"{row.name:10} {own * 1e3:8.2f} {rate:7.2f} {part:8.2f} "
            f"{row.seconds['unfused'] / own:7.2f}x {row.seconds['arrays'] / own:7.2f}x{wrong}"
        )
