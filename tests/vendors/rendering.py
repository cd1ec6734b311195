"""``python -m tests.vendors.rendering FOLDER``: renders kernels of every class on a simulated H100.

These are the kernels of the table, the same everywhere: the benchmark's programs, by arrays, in
Python and by hand, and `SAMPLES`. Inputs are small; a GPU's kernels are the same for all sizes. The
tests' own kernels come from pytest, see `recording`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy

from clfuse.target.simulated_devices import SIMULATED_DEVICES

__all__ = ["DEVICE", "render"]

DEVICE: Final = "h100"
"""Whose traits the kernels of the table are rendered for."""

PART: Final = 1 / 400
"""The benchmark's inputs are this part of the whole ones."""

LIMIT_ROWS: Final = 64
"""Of the inputs of programs by hand, whose sizes are multiples of their vectors."""


def contiguous_maps(np: Any) -> Any:
    """Maps of whole arrays, with one to four inputs, in float32 and float64."""
    for dtype in (np.float32, np.float64):
        arrays = [np.asarray(numpy.linspace(1, 2, 4096).astype(dtype)) for _ in range(4)]
        a, b, c, d = arrays
        half = dtype(0.5)
        yield from (
            a + half, a * b, a + half * b, a * b + c, a * b + c * d, np.sqrt(a) / b, np.exp(-a * b),
            np.where(a > b, c, d), np.maximum(a, b) - c, np.sin(a) ** 2 + np.cos(b) ** 2,
        )


def other_maps(np: Any) -> Any:
    """Maps of views, of other dtypes, and with loads at computed positions."""
    for char in "bhilqBHILQefdFD?":
        numbers = np.asarray((numpy.arange(4096) % 100).astype(char))
        # The first is whole, the others are views that begin anywhere, turned or with gaps.
        yield from (numbers == numbers[::-1], numbers[1:] | numbers[:-1]
                    if char in "bhilqBHILQ?" else numbers[1:] + numbers[:-1], numbers[::3] == 1)
        yield numbers[np.asarray(numpy.arange(0, 4096, 7))]
        yield numbers.reshape(64, 64).T + numbers.reshape(64, 64)
    yield np.random.default_rng(1).permutation(5000)
    integers = np.asarray(numpy.arange(4096))
    yield from (integers // 7, integers % 7, integers.astype(np.float32) / 3)


def folds(np: Any) -> Any:
    """Folds of everything, of rows and of columns, and what follows them; scans."""
    for char in "bilqBfdFDe":
        table = np.asarray((numpy.arange(200 * 300) % 100).astype(char).reshape(200, 300))
        for axis in (None, 0, 1):
            yield table.sum(axis)
            if char not in "FD":
                yield from (table.max(axis), table.argmin(axis))
        yield np.cumsum(table, axis=1)
        yield np.cumsum(table.ravel())
    for char in "fd":
        table = np.asarray(numpy.linspace(0, 1, 200 * 300).astype(char).reshape(200, 300))
        yield from (table.mean(0), table.var(1), table.std(0), (table * table).sum(1))
        yield (table - table.mean(1, keepdims=True)) / table.std(1, keepdims=True)
        yield np.logical_and.accumulate(table > 0.5, axis=1)


def selections_and_sorts(np: Any) -> Any:
    """Masks, sorts and products of matrices."""
    for char in "bilqfde":
        numbers = np.asarray(((numpy.arange(200_000) * 7919) % 101).astype(char))
        yield from (numbers[numbers > 50], np.sort(numbers), np.argsort(numbers))
        rows = numbers.reshape(4000, 50)
        yield from (np.sort(rows), np.argsort(rows), np.sort(rows, kind="stable"))
    for char in "ilfdFD":
        square = np.asarray((numpy.arange(128 * 128) % 7).astype(char).reshape(128, 128))
        yield from (square @ square, square @ square + 1)


def counts_and_writes(np: Any) -> Any:
    """Counts and sums by places, and what is stored at places or combined there."""
    places = np.asarray((numpy.arange(20_000) * 7919) % 5000)
    yield np.histogram(places, 64, range=(0, 5000))[0]
    for bins in (10, 1000, 5000, 100_000):
        yield np.bincount(places % min(bins, 5000), minlength=bins)
        yield np.bincount(places % min(bins, 5000), places * 0.5, minlength=bins)
    for char in "bilBILefdFD":
        values = np.asarray((numpy.arange(20_000) % 50).astype(char))
        for change in ("set", "same", "add"):
            target = np.zeros(5000, char) + values[:5000]
            if change == "add":
                np.add.at(target, places, values)
            else:
                target[places] = values if change == "set" else 7
            yield target
        if char in "iI":
            np.multiply.at(target, places, values)
            yield target
        if char not in "FD":
            np.maximum.at(target, places, values)
            yield target
        table = np.zeros((500, 40), char)
        table[places[:900] % 500, ::2] = values[:20]
        yield table


def draws(np: Any) -> Any:
    """Random numbers: made of bits, and drawn until they are accepted."""
    rng = np.random.default_rng(1)
    yield from (rng.random(5000), rng.standard_normal(5000), rng.integers(0, 9, 5000))
    yield from (
        rng.standard_gamma(2.0, 5000), rng.standard_gamma(0.5, 5000, dtype=np.float32),
        rng.poisson(30.0, 5000), rng.binomial(90, 0.3, 5000), rng.zipf(2.0, 5000),
        rng.hypergeometric(60, 70, 80, 5000), rng.vonmises(0.0, 2.0, 5000),
    )
    shapes = np.asarray(numpy.linspace(0.5, 9, 5000))
    yield from (rng.standard_gamma(shapes), rng.poisson(shapes), rng.beta(shapes, 2.0))
    yield rng.poisson(3.0, (500, 40)).sum(1)


SAMPLES: Final[tuple[Callable[[Any], Any], ...]] = (
    contiguous_maps, other_maps, folds, selections_and_sorts, counts_and_writes, draws,
)


def render(folder: Path) -> None:
    """Render all of them in this process, which must be about to import clfuse for the first time.

    What cannot run here (a benchmark's program that needs more than the simulated device has) is an
    error.
    """
    os.environ.update(
        CLFUSE_SIMULATE=DEVICE, CLFUSE_DEVICE="pocl", CLFUSE_HOST_US="0", CLFUSE_TUNING="off",
        CLFUSE_FALLBACK="allow",
    )
    import clfuse as np
    from clfuse.tools.bench import kernel_programs, limit, programs
    from tests.support.compiling import Compiling
    from tests.vendors.recording import record

    device = np.get_device()
    if SIMULATED_DEVICES[DEVICE].name not in device.name:
        raise RuntimeError(f"kernels would be rendered for {device.name}")
    record(folder)
    Compiling(all_optimized=False).watch()  # they run once
    with np.config.override(build_after_ms=0), numpy.errstate(all="ignore"):
        for sample in SAMPLES:
            for result in sample(np):
                np.evaluate(result)
        for program in programs.PROGRAMS.values():
            inputs = program.inputs(numpy.random.default_rng(0), PART)
            outputs = program.compute(np, *[np.asarray(array) for array in inputs])
            np.evaluate(*[one for one in programs.results(outputs) if isinstance(one, np.ndarray)])
            by_hand = limit.Limit(device).bind(program, by_vectors(inputs))
            if by_hand is not None:
                by_hand()
        for written in kernel_programs.programs(quick=True):
            for run in (written.kernels, written.arrays, written.opencl):
                if run is not None:
                    np.evaluate(*run(np, [np.array(array) for array in written.made()]))
    np.synchronize()


def by_vectors(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs without what is left of a vector at the end."""
    return tuple([
        array[: len(array) - len(array) % LIMIT_ROWS] if array.ndim == 1 else array
        for array in inputs
    ])


if __name__ == "__main__":
    render(Path(sys.argv[1]))
