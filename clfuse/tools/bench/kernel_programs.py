"""The programs of ``python -m clfuse bench kernels``, as kernels and as array code.

They are BabelStream, nstream, a stencil with a norm, sums of what comes before, columns of what an
inner part becomes, transpose, y'Ax, gather, GUPS, Lennard-Jones forces, a loop over rows,
Mandelbrot.

Each is written as kernels in Python and as array code, the short ones as kernels in OpenCL C too;
`numba_programs` has them for Numba. A program is a function of NumPy or clfuse and of the arrays,
and returns what is compared with NumPy: what it changed, and its results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy

import clfuse as np

__all__ = ["Program", "programs"]

Compute = Callable[[Any, list[Any]], list[Any]]

SCALAR: Final = 0.4
"""BabelStream's."""

UPDATES: Final = 4
"""Of each word of the table of GUPS, on average."""

ITERATIONS: Final = 10
"""Of the Parallel Research Kernels, as their own tests run them."""

ESCAPE: Final = 50
"""Steps after which a point counts as one that stays."""

CUTOFF: Final = 6.25
"""Of the forces of Lennard and Jones, squared, where the particles are 1.2 apart."""


@dataclass(frozen=True)
class Program:
    """One program, in all the ways in which it is written.

    nbytes: what has to move.
    made: makes the arrays; always the same values.
    kernels, arrays: kernels in Python, and array code.
    opencl: kernels in OpenCL C.
    unfused_part: without fusion it is run on this part of the rows, and its time taken as often: a
        launch a row takes minutes to plan.
    steps: how often `kernels` and `arrays` go through it in a run.
    """

    name: str
    nbytes: int
    made: Callable[[], list[numpy.ndarray[Any, Any]]] = field(repr=False)
    kernels: Compute = field(repr=False)
    arrays: Compute = field(repr=False)
    opencl: Compute | None = field(repr=False, default=None)
    unfused_part: int = 1
    steps: int = 1


# -- BabelStream and nstream -----------------------------------------------------------------------


@np.kernel
def copy(i, a, c):
    c[i] = a[i]


@np.kernel
def mul(i, b, c):
    b[i] = SCALAR * c[i]


@np.kernel
def add(i, a, b, c):
    c[i] = a[i] + b[i]


@np.kernel
def triad(i, a, b, c):
    a[i] = b[i] + SCALAR * c[i]


@np.kernel
def dot(i, a, b):
    return a[i] * b[i]


@np.kernel
def nstream(i, a, b, c):
    a[i] += b[i] + SCALAR * c[i]


COPY = np.ElementwiseKernel("T a", "T c", "c = a", "copy")
MUL = np.ElementwiseKernel("T c, T s", "T b", "b = s * c", "mul")
ADD = np.ElementwiseKernel("T a, T b", "T c", "c = a + b", "add")
TRIAD = np.ElementwiseKernel("T b, T c, T s", "T a", "a = b + s * c", "triad")
NSTREAM = np.ElementwiseKernel("T b, T c, T s", "T a", "a += b + s * c", "nstream")
DOT = np.ReductionKernel("T a, T b", "T sum", "a * b", "a + b", "sum = a", "0", "dot")


def _copy_arrays(a: Any, b: Any, c: Any) -> None:
    c[:] = a


def _mul_arrays(a: Any, b: Any, c: Any) -> None:
    b[:] = SCALAR * c


def _add_arrays(a: Any, b: Any, c: Any) -> None:
    c[:] = a + b


def _triad_arrays(a: Any, b: Any, c: Any) -> None:
    a[:] = b + SCALAR * c


def _nstream_arrays(a: Any, b: Any, c: Any) -> None:
    a += b + SCALAR * c


STEPS: Final[dict[str, tuple[int, tuple[Callable[..., Any], ...]]]] = {
    "copy": (2, (lambda a, b, c: copy(len(a), a, c), _copy_arrays, lambda a, b, c: COPY(a, c))),
    "mul": (2, (lambda a, b, c: mul(len(a), b, c), _mul_arrays, lambda a, b, c: MUL(c, SCALAR, b))),
    "add": (3, (lambda a, b, c: add(len(a), a, b, c), _add_arrays, lambda a, b, c: ADD(a, b, c))),
    "triad": (3, (
        lambda a, b, c: triad(len(a), a, b, c), _triad_arrays,
        lambda a, b, c: TRIAD(b, c, SCALAR, a),
    )),
    "dot": (2, (
        lambda a, b, c: dot.reduce(len(a), a, b), lambda a, b, c: (a * b).sum(),
        lambda a, b, c: DOT(a, b),
    )),
    "nstream": (4, (
        lambda a, b, c: nstream(len(a), a, b, c), _nstream_arrays,
        lambda a, b, c: NSTREAM(b, c, SCALAR, a),
    )),
}
"""Arrays that have to move, and the step as kernel, as array code, and in OpenCL C."""


def _babel(names: str, way: int) -> Compute:
    """Some of these steps, one after the other; what they return, and the arrays."""
    steps = [STEPS[name][1][way] for name in names.split()]

    def run(xp: Any, given: list[Any]) -> list[Any]:
        returned = [step(*given) for step in steps]
        return [*(value for value in returned if value is not None and value.ndim == 0), *given]

    return run


# -- a stencil with a norm -------------------------------------------------------------------------


@np.kernel
def star(i, j, old, new):
    new[i, j] += (
        0.25 * (old[i + 1, j] - old[i - 1, j] + old[i, j + 1] - old[i, j - 1])
        + 0.125 * (old[i + 2, j] - old[i - 2, j] + old[i, j + 2] - old[i, j - 2])
    )


@np.kernel
def increment(i, j, a):
    a[i, j] += 1


@np.kernel
def magnitude(i, j, a):
    return abs(a[i, j])


def _stencil(xp: Any, given: list[Any]) -> list[Any]:
    old, new = given
    n, m = old.shape
    star(((2, n - 2), (2, m - 2)), old, new)
    increment((n, m), old)
    return [magnitude.reduce((n, m), new), old, new]


def _stencil_arrays(xp: Any, given: list[Any]) -> list[Any]:
    old, new = given
    up, down, left, right = old[1:-3], old[3:-1], old[:, 1:-3], old[:, 3:-1]
    near = down[:, 2:-2] - up[:, 2:-2] + right[2:-2] - left[2:-2]
    far = old[4:, 2:-2] - old[:-4, 2:-2] + old[2:-2, 4:] - old[2:-2, :-4]
    new[2:-2, 2:-2] += 0.25 * near + 0.125 * far
    old += 1
    return [abs(new).sum(), old, new]


# -- over unequal ranges: sums of what comes before, columns of what an inner part becomes ---------


@np.kernel
def element(i, x):
    return x[i]


@np.kernel
def centre(i, start, x, y):
    y[i] = start[i] + 0.5 * x[i]


def _prefix(xp: Any, given: list[Any]) -> list[Any]:
    x, y = given
    starts = element.scan(len(x), x, exclusive=True)
    centre(len(x), starts, x, y)
    return [starts, y]


def _prefix_arrays(xp: Any, given: list[Any]) -> list[Any]:
    x, y = given
    starts = xp.concatenate((xp.zeros(1), xp.cumsum(x[:-1])))
    y[:] = starts + 0.5 * x
    return [starts, y]


@np.kernel
def smooth(i, j, a, b):
    b[i, j] = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])


def _columns(xp: Any, given: list[Any]) -> list[Any]:
    a, b = given
    n, m = a.shape
    smooth(((1, n - 1), (1, m - 1)), a, b)
    return [b.sum(axis=0), b]


def _columns_arrays(xp: Any, given: list[Any]) -> list[Any]:
    a, b = given
    down, along = a[:-2, 1:-1] + a[2:, 1:-1], a[1:-1, :-2] + a[1:-1, 2:]
    b[1:-1, 1:-1] = 0.25 * (down + along)
    return [b.sum(axis=0), b]


# -- transpose, y'Ax, gather -----------------------------------------------------------------------


@np.kernel
def transpose(i, j, a, b):
    b[i, j] += a[j, i]


def _transpose(xp: Any, given: list[Any]) -> list[Any]:
    a, b = given
    transpose(b.shape, a, b)
    increment(a.shape, a)
    return [a, b]


def _transpose_arrays(xp: Any, given: list[Any]) -> list[Any]:
    a, b = given
    b += a.T
    a += 1
    return [a, b]


@np.kernel
def weighted(i, y, matrix, x):
    total = 0.0
    for j in range(matrix.shape[1]):
        total += matrix[i, j] * x[j]
    return y[i] * total


def _inner(xp: Any, given: list[Any]) -> list[Any]:
    y, matrix, x = given
    return [weighted.reduce(len(y), y, matrix, x)]


def _inner_arrays(xp: Any, given: list[Any]) -> list[Any]:
    y, matrix, x = given
    return [(y * (matrix * x).sum(1)).sum()]


@np.kernel
def gather(i, values, places, out):
    out[i] = SCALAR * values[places[i]]


def _gather(xp: Any, given: list[Any]) -> list[Any]:
    values, places, out = given
    gather(len(places), values, places, out)
    return [out]


def _gather_arrays(xp: Any, given: list[Any]) -> list[Any]:
    values, places, out = given
    out[:] = SCALAR * values[places]
    return [out]


# -- GUPS ------------------------------------------------------------------------------------------


@np.kernel
def gups(i, table):
    x = np.uint32(i) * np.uint32(2654435761)
    x = x ^ (x >> np.uint32(15))
    x = x * np.uint32(2246822519)
    x = x ^ (x >> np.uint32(13))
    np.atomic.xor(table, x & np.uint32(len(table) - 1), x)


GUPS = np.RawKernel("""
    __kernel void gups(__global uint *table, const uint mask)
    {
        uint x = (uint)get_global_id(0) * 2654435761u;
        x ^= x >> 15; x *= 2246822519u; x ^= x >> 13;
        atomic_xor(table + (x & mask), x);
    }""", "gups")


def _gups(xp: Any, given: list[Any]) -> list[Any]:
    (table,) = given
    gups(UPDATES * table.size, table)
    return [table]


def _gups_opencl(xp: Any, given: list[Any]) -> list[Any]:
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


# -- Lennard-Jones ---------------------------------------------------------------------------------


@np.kernel
def forces(i, place, counts, neighbours, force):
    x, y, z = place[i, 0], place[i, 1], place[i, 2]
    fx, fy, fz = 0.0, 0.0, 0.0
    for k in range(counts[i]):
        j = neighbours[i, k]
        dx, dy, dz = x - place[j, 0], y - place[j, 1], z - place[j, 2]
        squared = dx * dx + dy * dy + dz * dz
        if squared < CUTOFF:
            inverse = 1.0 / squared
            sixth = inverse * inverse * inverse
            strength = 48.0 * sixth * (sixth - 0.5) * inverse
            fx += dx * strength
            fy += dy * strength
            fz += dz * strength
    force[i, 0] = fx
    force[i, 1] = fy
    force[i, 2] = fz


def _forces(xp: Any, given: list[Any]) -> list[Any]:
    place, counts, neighbours, force = given
    forces(len(place), place, counts, neighbours, force)
    return [force]


def _forces_arrays(xp: Any, given: list[Any]) -> list[Any]:
    place, counts, neighbours, force = given
    apart = [place[:, None, axis] - place[:, axis][neighbours] for axis in range(3)]
    squared = apart[0] * apart[0] + apart[1] * apart[1] + apart[2] * apart[2]
    listed = xp.arange(neighbours.shape[1]) < counts[:, None]
    inverse = 1.0 / xp.where(listed, squared, 1.0)
    sixth = inverse * inverse * inverse
    strength = 48.0 * sixth * (sixth - 0.5) * inverse
    strength = xp.where(listed & (squared < CUTOFF), strength, 0.0)
    for axis in range(3):
        force[:, axis] = (apart[axis] * strength).sum(1)
    return [force]


def _particles(side: int) -> list[numpy.ndarray[Any, Any]]:
    """Places in a cube near a grid's points, numbers of neighbours, neighbours, no forces.

    Neighbours are up to 2.3 of the grid's distance away, of which those beyond `CUTOFF` count not.
    """
    random = numpy.random.default_rng(0)
    grid = numpy.stack(numpy.meshgrid(*[numpy.arange(side)] * 3, indexing="ij"), -1).reshape(-1, 3)
    place = 1.2 * grid + random.uniform(-0.1, 0.1, grid.shape)
    steps = numpy.stack(numpy.meshgrid(*[numpy.arange(-2, 3)] * 3, indexing="ij"), -1)
    steps = steps.reshape(-1, 3)
    length = (steps * steps).sum(1)
    steps = steps[(length > 0) & (length <= 5)]
    beside = grid[:, None] + steps
    inside = ((beside >= 0) & (beside < side)).all(2)
    numbers = beside @ numpy.array([side * side, side, 1])
    first = numpy.argsort(~inside, axis=1, kind="stable")
    neighbours = numpy.take_along_axis(numpy.where(inside, numbers, 0), first, 1)
    counts = inside.sum(1, dtype=numpy.int32)
    return [place, counts, neighbours.astype(numpy.int32), numpy.zeros_like(place)]


# -- a loop over rows ------------------------------------------------------------------------------


@np.kernel
def work(i, a):
    a[i] = a[i] + 1


WORK = np.RawKernel("__kernel void work(__global double *a) { a[get_global_id(0)] += 1; }", "work")


def _rows(xp: Any, given: list[Any]) -> list[Any]:
    (a,) = given
    for row in range(len(a)):
        work(10, a[row])
    return [a]


def _rows_opencl(xp: Any, given: list[Any]) -> list[Any]:
    (a,) = given
    for row in range(len(a)):
        WORK((10,), (1,), (a[row],))
    return [a]


def _rows_arrays(xp: Any, given: list[Any]) -> list[Any]:
    (a,) = given
    for row in range(len(a)):
        a[row] += 1
    return [a]


# -- as the Parallel Research Kernels run them -----------------------------------------------------


def _iterated(program: Program) -> Program:
    """A program that goes through its arrays `ITERATIONS` times before a result is read, as its
    authors' programs do: nstream, stencil and transpose of the Parallel Research Kernels
    (https://github.com/ParRes/Kernels)."""

    def several(run: Compute) -> Compute:
        def runs(xp: Any, given: list[Any]) -> list[Any]:
            for _ in range(ITERATIONS - 1):
                run(xp, given)
            return run(xp, given)

        return runs

    return replace(
        program, name=f"{program.name}{ITERATIONS}", nbytes=ITERATIONS * program.nbytes,
        kernels=several(program.kernels), arrays=several(program.arrays), opencl=None,
        steps=ITERATIONS,
    )


def _benchmarked(way: int) -> Compute:
    """BabelStream as its main program runs it: all five in a row, again and again, and each dot is
    looked at."""
    run = _babel("copy mul add triad dot", way)

    def runs(xp: Any, given: list[Any]) -> list[Any]:
        sums = [run(xp, given)[0] for _ in range(ITERATIONS)]
        return [*sums, *given]

    return runs


# -- an escape loop --------------------------------------------------------------------------------


@np.kernel
def mandelbrot(i, j, limit, out):
    n, m = out.shape[0], out.shape[1]
    c, d = -2.0 + 3.0 * j / m, -1.5 + 3.0 * i / n
    x, y = 0.0, 0.0
    count = 0
    while x * x + y * y <= 4.0 and count < limit:
        x, y = x * x - y * y + c, 2.0 * x * y + d
        count += 1
    out[i, j] = count


def _mandelbrot(xp: Any, given: list[Any]) -> list[Any]:
    (out,) = given
    mandelbrot(out.shape, ESCAPE, out)
    return [out]


def _mandelbrot_arrays(xp: Any, given: list[Any]) -> list[Any]:
    (out,) = given
    n, m = out.shape
    c = -2.0 + 3.0 * xp.arange(m) / m
    d = (-1.5 + 3.0 * xp.arange(n) / n)[:, None]
    x, y = xp.zeros((n, m)), xp.zeros((n, m))
    inside = xp.ones((n, m), dtype=bool)
    count = xp.zeros((n, m), dtype=out.dtype)
    with xp.errstate(all="ignore"):
        for _ in range(ESCAPE):
            inside &= x * x + y * y <= 4.0
            count += inside
            x, y = x * x - y * y + c, 2.0 * x * y + d
    out[:] = count
    return [out]


# -- all of them -----------------------------------------------------------------------------------


def programs(*, quick: bool = False) -> list[Program]:
    """All programs, with arrays of 64 MB of doubles, past the caches; `quick`: small ones."""
    n = 1 << 16 if quick else 1 << 23
    size = 8 * n
    random = numpy.random.default_rng(0)

    def three() -> list[numpy.ndarray[Any, Any]]:
        return [numpy.full(n, value) for value in (0.1, 0.2, 0.0)]

    found = []
    for names in (*STEPS, "copy mul add triad dot"):
        arrays = 5 if " " in names else STEPS[names][0]
        found.append(Program(
            "stream" if " " in names else names, arrays * size, three,
            _babel(names, 0), _babel(names, 1), _babel(names, 2),
        ))
    side = 256 if quick else 2896
    plane = 8 * side * side

    def ramp() -> list[numpy.ndarray[Any, Any]]:
        old = numpy.add.outer(numpy.arange(float(side)) ** 2, numpy.arange(float(side)))
        return [old, numpy.zeros_like(old)]

    found.append(Program("stencil", 4 * plane, ramp, _stencil, _stencil_arrays))
    parts = random.random(n)
    found.append(Program(
        "prefix", 3 * size, lambda: [parts, numpy.zeros(n)], _prefix, _prefix_arrays,
    ))
    found.append(Program("columns", 2 * plane, ramp, _columns, _columns_arrays))
    found.append(Program("transpose", 4 * plane, ramp, _transpose, _transpose_arrays))

    def matrix() -> list[numpy.ndarray[Any, Any]]:
        line = numpy.linspace(-1, 1, side)
        return [line, numpy.add.outer(line, line * line), line + 0.5]

    found.append(Program("yAx", plane, matrix, _inner, _inner_arrays))
    places = random.integers(0, n, n)
    found.append(Program(
        "gather", 3 * size, lambda: [numpy.arange(float(n)), places, numpy.zeros(n)],
        _gather, _gather_arrays,
    ))
    words = n // 4
    found.append(Program(
        "gups", 8 * words * UPDATES, lambda: [numpy.arange(words, dtype="uint32")],
        _gups, _gups_arrays, _gups_opencl,
    ))
    particles = _particles(8 if quick else 40)
    found.append(Program(
        "forces", sum(array.nbytes for array in particles), lambda: particles,
        _forces, _forces_arrays,
    ))
    count = 1_000 if quick else 100_000
    found.append(Program(
        "rows", 160 * count, lambda: [numpy.zeros((count, 10))], _rows, _rows_arrays, _rows_opencl,
        100,
    ))
    pixels = side // 2
    found.append(Program(
        "mandelbrot", 4 * pixels * pixels, lambda: [numpy.zeros((pixels, pixels), numpy.int32)],
        _mandelbrot, _mandelbrot_arrays,
    ))
    again = [each for each in found if each.name in ("nstream", "stencil", "transpose")]
    found.append(Program(
        f"stream{ITERATIONS}", ITERATIONS * 5 * size, three, _benchmarked(0), _benchmarked(1),
        _benchmarked(2), steps=ITERATIONS,
    ))
    return [*found, *map(_iterated, again)]
