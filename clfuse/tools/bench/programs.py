"""The benchmark's programs, each once, as a plain NumPy function.

A program's function takes the library as its first argument, so that NumPy, clfuse, JAX and torch
run the same lines. Where a library spells something differently, its variant is in `peers`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from clfuse.dataclass import frozen

__all__ = ["PROGRAMS", "Program"]

Arrays = tuple[Any, ...]

SEED = 7
# Quick inputs have about this part of the elements: enough for every vector loop and its tail.
QUICK = 1 / 100
BINS = 1024


@frozen
class Program:
    """One program of the benchmark.

    name: its name on the command line and in tables.
    what: what it computes, on what.
    compute: ``compute(np, *inputs)`` with NumPy or a library like it; returns an array or a tuple
        of arrays.
    inputs: ``inputs(rng, part)`` -> NumPy arrays; `part` is 1, less for quick runs, more where a
        device has room for it.
    rtol: how far a result may be from NumPy's, as a part of the largest value; 0 asks for the same
        bits.
    """

    name: str
    what: str
    compute: Callable[..., Any]
    inputs: Callable[[numpy.random.Generator, float], Arrays]
    rtol: float

    def make_inputs(self, quick: bool = False, scale: float = 1) -> Arrays:
        """The program's inputs, the same in every process; `scale` times as many elements."""
        return self.inputs(numpy.random.default_rng(SEED), QUICK if quick else scale)


def results(value: Any) -> Arrays:
    """A program's results as a tuple, also where there is one."""
    return value if isinstance(value, tuple) else (value,)


def error(expected: Any, actual: Any) -> float:
    """How far host arrays are apart: the largest difference as a part of the largest value.

    Infinite for another shape or dtype, and for a NaN that only one of them has.
    """
    wanted, got = numpy.asarray(expected), numpy.asarray(actual)
    if wanted.shape != got.shape or wanted.dtype != got.dtype:
        return float("inf")
    if numpy.array_equal(wanted, got):
        return 0.0
    difference = numpy.abs(wanted.astype(float) - got.astype(float))
    if numpy.isnan(difference).any():
        return float("inf")
    return float(difference.max() / max(float(numpy.abs(wanted).max()), 1e-300))


def share_apart(expected: Any, actual: Any) -> float:
    """Which part of the elements is not the same; 1 for another shape or dtype."""
    wanted, got = numpy.asarray(expected), numpy.asarray(actual)
    if wanted.shape != got.shape or wanted.dtype != got.dtype:
        return 1.0
    return float(numpy.mean(wanted != got))


def length(full: int, part: float) -> int:
    """A vector's length: a multiple of 16, as the hand-written kernels ask for."""
    return max(int(full * part) // 16 * 16, 16)


def side(full: int, part: float) -> int:
    """The side of a square whose area is `part` of the full one."""
    return max(int(full * part**0.5) // 8 * 8, 16)


# -- element by element ----------------------------------------------------------------------------


def triad(np: Any, b: Any, c: Any) -> Any:
    return b + 3 * c


def sincos(np: Any, x: Any) -> Any:
    return np.sin(x) ** 2 + np.cos(x) ** 2


def poly_chain(np: Any, x: Any) -> Any:
    y = x
    for _ in range(10):
        y = y * x + 0.5
    return y


def black_scholes(np: Any, spot: Any, strike: Any, years: Any) -> Any:
    rate, volatility = 0.08, 0.3

    def normal_cdf(d: Any) -> Any:
        k = 1 / (1 + 0.2316419 * np.abs(d))
        series = (
            0.31938153 * k
            - 0.356563782 * k * k
            + 1.781477937 * k * k * k
            - 1.821255978 * k * k * k * k
            + 1.330274429 * k * k * k * k * k
        )
        w = 1 - 0.3989422804014327 * np.exp(-d * d / 2) * series
        return np.where(d < 0, 1 - w, w)

    root = np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + volatility * volatility / 2) * years) / (
        volatility * root
    )
    d2 = d1 - volatility * root
    w1, w2 = normal_cdf(d1), normal_cdf(d2)
    discounted = strike * np.exp(-rate * years)
    return spot * w1 - discounted * w2, discounted * (1 - w2) - spot * (1 - w1)


def options(dtype: str) -> Callable[[numpy.random.Generator, float], Arrays]:
    def inputs(rng: numpy.random.Generator, part: float) -> Arrays:
        n = length(4_000_000, part)
        columns = rng.random(n) * 20 + 80, rng.random(n) * 20 + 80, rng.random(n) + 0.5
        return tuple(column.astype(dtype) for column in columns)

    return inputs


def mandelbrot(np: Any, x: Any, y: Any) -> Any:
    zr, zi, count = 0 * x, 0 * y, 0 * x
    for _ in range(20):
        a, b = zr * zr, zi * zi
        inside = a + b < 4
        zi = np.where(inside, 2 * zr * zi + y, zi)
        zr = np.where(inside, a - b + x, zr)
        count = np.where(inside, count + 1, count)
    return count


def plane(rng: numpy.random.Generator, part: float) -> Arrays:
    n = side(1000, part)
    y, x = numpy.mgrid[-1.5 : 1.5 : n * 1j, -2 : 1 : n * 1j]
    return numpy.ascontiguousarray(x), numpy.ascontiguousarray(y)


def small(np: Any, x: Any, y: Any) -> Any:
    for _ in range(20):
        x = np.exp(-(x - y) * (x - y)) + 0.1 * x
    return x


# -- stencils --------------------------------------------------------------------------------------


def jacobi2d(np: Any, grid: Any) -> Any:
    a = grid.copy()
    for _ in range(10):
        a[1:-1, 1:-1] = 0.2 * (
            a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]
        )
    return a


def life(np: Any, cells: Any) -> Any:
    for _ in range(4):
        rows = np.roll(cells, 1, 0) + cells + np.roll(cells, -1, 0)
        around = np.roll(rows, 1, 1) + rows + np.roll(rows, -1, 1) - cells
        cells = ((around == 3) | ((cells == 1) & (around == 2))).astype(cells.dtype)
    return cells


# -- reductions and scans --------------------------------------------------------------------------


def sum_of_squares(np: Any, x: Any) -> Any:
    return ((x - 0.5) ** 2).sum()


def var_all(np: Any, x: Any) -> Any:
    return x.var()


def nbody(np: Any, x: Any, y: Any, z: Any, mass: Any) -> Any:
    dx, dy, dz = x - x[:, None], y - y[:, None], z - z[:, None]
    squared = dx * dx + dy * dy + dz * dz + 0.01
    weight = mass / (squared * np.sqrt(squared))
    return (dx * weight).sum(1), (dy * weight).sum(1), (dz * weight).sum(1)


def standardize(np: Any, a: Any) -> Any:
    return (a - a.mean(0)) / a.std(0)


def softmax(np: Any, a: Any) -> Any:
    e = np.exp(a - a.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def distance_argmin(np: Any, p: Any, q: Any) -> Any:
    return ((p[:, None] - q[None]) ** 2).sum(2).argmin(1)


def cumsum(np: Any, x: Any) -> Any:
    return np.cumsum(x * 2)


# -- libraries' work -------------------------------------------------------------------------------


def matmul(np: Any, a: Any, b: Any) -> Any:
    return a @ b


def sort(np: Any, x: Any) -> Any:
    return np.sort(x)


# -- selecting, indexing, counting ----------------------------------------------------------------


def mask_select(np: Any, x: Any) -> Any:
    return (x[x > 0.5] * 2).sum()


def colsum(np: Any, a: Any) -> Any:
    return (a * 2).sum(0)


def transpose_add(np: Any, a: Any) -> Any:
    return a + a.T


def gather(np: Any, x: Any, places: Any) -> Any:
    return x[places] + 1


def histogram(np: Any, values: Any) -> Any:
    return np.bincount(values, minlength=BINS)


def random_pi(np: Any, samples: Any) -> Any:
    x, y = np.random.random(samples.shape), np.random.random(samples.shape)
    return (x * x + y * y < 1).mean() * 4


# -- inputs ----------------------------------------------------------------------------------------


def uniform(count: int, full: int, dtype: Any) -> Callable[[numpy.random.Generator, float], Arrays]:
    """Inputs: `count` vectors of uniform random numbers."""

    def inputs(rng: numpy.random.Generator, part: float) -> Arrays:
        n = length(full, part)
        return tuple(rng.random(n, dtype=dtype) for _ in range(count))

    return inputs


def squares(count: int, full: int, dtype: Any) -> Callable[[numpy.random.Generator, float], Arrays]:
    """Inputs: `count` square matrices of uniform random numbers."""

    def inputs(rng: numpy.random.Generator, part: float) -> Arrays:
        n = side(full, part)
        return tuple(rng.random((n, n), dtype=dtype) for _ in range(count))

    return inputs


def bodies(rng: numpy.random.Generator, part: float) -> Arrays:
    return tuple(rng.random(side(1500, part) + 4) for _ in range(4))


def table(rng: numpy.random.Generator, part: float) -> Arrays:
    return (rng.random((int(125_000 * part), 64), dtype="f4"),)


def logits(rng: numpy.random.Generator, part: float) -> Arrays:
    return (rng.standard_normal((int(8000 * part), 1000), dtype="f4"),)


def points(rng: numpy.random.Generator, part: float) -> Arrays:
    return rng.random((side(4000, part), 3)), rng.random((side(1000, part), 3))


def short_vectors(rng: numpy.random.Generator, part: float) -> Arrays:
    return rng.random(1000), rng.random(1000)


def soup(rng: numpy.random.Generator, part: float) -> Arrays:
    n = side(2000, part)
    return ((rng.random((n, n)) < 0.3).astype("i4"),)


def places(rng: numpy.random.Generator, part: float) -> Arrays:
    n = length(8_000_000, part)
    return rng.random(n), rng.permutation(n)


def bins(rng: numpy.random.Generator, part: float) -> Arrays:
    return (rng.integers(0, BINS, length(8_000_000, part)),)


def sample_count(rng: numpy.random.Generator, part: float) -> Arrays:
    """As many elements as there are samples: their values do not matter."""
    return (numpy.empty(length(16_000_000, part), "i1"),)


# float32 results of a few hundred operations, or of long sums; float64 ones.
F32 = 2e-5
F64 = 1e-12
# A mean of 160,000 random samples and more: eight standard deviations.
SAMPLED = 1e-2

PROGRAMS: dict[str, Program] = {
    program.name: program
    for program in (
        Program("triad", "b + 3c, 16M float32", triad, uniform(2, 16_000_000, "f4"), 0),
        Program(
            "sincos", "sin(x)**2 + cos(x)**2, 8M float32", sincos, uniform(1, 8_000_000, "f4"), F32
        ),
        Program(
            "poly_chain",
            "y = y*x + 0.5 ten times, 8M float64",
            poly_chain,
            uniform(1, 8_000_000, "f8"),
            0,
        ),
        Program("black_scholes_f32", "4M options, float32", black_scholes, options("f4"), F32),
        Program("black_scholes_f64", "4M options, float64", black_scholes, options("f8"), F64),
        Program(
            "sum_of_squares",
            "((x - .5)**2).sum(), 16M float64",
            sum_of_squares,
            uniform(1, 16_000_000, "f8"),
            F64,
        ),
        Program("nbody", "all-pairs forces, 1500 bodies, float64", nbody, bodies, F64),
        Program(
            "jacobi2d",
            "five-point stencil, 2000x2000 float64, 10 steps",
            jacobi2d,
            squares(1, 2000, "f8"),
            0,
        ),
        Program("mandelbrot", "1000x1000 float64, 20 iterations", mandelbrot, plane, 0),
        Program(
            "standardize",
            "(a - mean) / std along columns, 125000x64 float32",
            standardize,
            table,
            1e-3,
        ),
        Program("softmax", "along rows, 8000x1000 float32", softmax, logits, F32),
        Program("var_all", "x.var(), 16M float32", var_all, uniform(1, 16_000_000, "f4"), 1e-4),
        Program(
            "distance_argmin", "nearest of 1000 points to 4000, float64", distance_argmin, points, 0
        ),
        Program("life", "game of life, 2000x2000 int32, 4 steps", life, soup, 0),
        Program("cumsum", "cumsum(2x), 8M float64", cumsum, uniform(1, 8_000_000, "f8"), F64),
        Program(
            "small", "20 steps of exp(-(x-y)**2) + 0.1x, 1000 float64", small, short_vectors, F64
        ),
        Program("matmul_f32", "1024x1024 float32", matmul, squares(2, 1024, "f4"), F32),
        Program("sort_f32", "2M float32", sort, uniform(1, 2_000_000, "f4"), 0),
        Program(
            "mask_select",
            "(x[x > .5] * 2).sum(), 8M float64",
            mask_select,
            uniform(1, 8_000_000, "f8"),
            F64,
        ),
        Program("colsum", "(2a).sum(0), 8000x1000 float32", colsum, logits, 1e-4),
        Program(
            "transpose_add", "a + a.T, 4000x4000 float32", transpose_add, squares(1, 4000, "f4"), 0
        ),
        Program("gather", "x[i] + 1 at random places, 8M float64", gather, places, 0),
        Program("histogram", "bincount into 1024 bins, 8M int64", histogram, bins, 0),
        Program(
            "random_pi", "16M pairs of random numbers in a circle", random_pi, sample_count, SAMPLED
        ),
    )
}
