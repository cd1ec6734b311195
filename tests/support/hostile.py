"""Values that break kernels, one array per dtype, for every test that compares clfuse with NumPy.

``hostile(dtype)`` gives the ends, the signs, the special values and the near misses of a dtype;
``ordinary(...)`` gives seeded random data of a chosen character; ``SHAPES`` and ``layouts`` give
the shapes and the strided, flipped, transposed and broadcast views that index arithmetic must
survive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import DTypeLike, NDArray

BOOLS = ("bool",)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float16", "float32", "float64")
COMPLEXES = ("complex64", "complex128")
DTYPES = BOOLS + INTEGERS + FLOATS + COMPLEXES

# 0-d, empty at each place, size-1 axes, one vector body and its tail, four dimensions.
SHAPES: tuple[tuple[int, ...], ...] = (
    (), (0,), (1,), (5,), (67,), (0, 3), (3, 0), (1, 4), (4, 1), (3, 4), (2, 3, 4), (1, 3, 1),
    (2, 1, 0, 3), (2, 3, 2, 5),
)


def hostile(dtype: DTypeLike) -> NDArray[np.generic]:
    """The hostile values of a dtype as a 1-d array, without duplicates of the same bytes.

    Floats: both zeros, both infinities, NaN, the smallest and largest subnormal, the smallest and
    largest normal, one and its neighbours, halves (where rounding rules differ), multiples of pi
    and angles that need a long range reduction. Integers: both ends and their neighbours, zero and
    its neighbours, and shift counts around every width. Complex: the pairs of a short list.
    """
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        return _hostile_integers(dtype)
    if dtype.kind == "f":
        return _hostile_floats(dtype)
    if dtype.kind == "c":
        return _hostile_complexes(dtype)
    raise TypeError(f"no hostile values for dtype {dtype}: bool, integer, float and complex only")


def _hostile_integers(dtype: np.dtype[np.generic]) -> NDArray[np.generic]:
    limits = np.iinfo(dtype)
    wanted = [limits.min, limits.min + 1, limits.min // 2, -128, -65, -64, -9, -7, -3, -2, -1,
              0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127,
              limits.max // 2, limits.max // 2 + 1, limits.max - 1, limits.max]
    return np.array(sorted({v for v in wanted if limits.min <= v <= limits.max}), dtype=dtype)


def _hostile_floats(dtype: np.dtype[np.generic]) -> NDArray[np.generic]:
    limits = np.finfo(dtype)
    tiny, largest, eps = limits.tiny, limits.max, limits.eps
    one = dtype.type(1)
    wanted = [0.0, limits.smallest_subnormal, 3 * limits.smallest_subnormal,
              np.nextafter(tiny, dtype.type(0)), tiny, eps, np.nextafter(one, dtype.type(0)), one,
              one + eps, 0.1, 0.3, 0.5, 1.5, 2.0, 2.5, 3.0, 3.5, 7.0, 10.0, 80.0,
              np.pi / 4, np.pi / 2, np.pi, 2 * np.pi, 1000.7, 65504.0 if dtype.itemsize == 2 else
              1e5 + 0.5, largest / 2, largest, np.inf]
    if dtype.itemsize >= 4:
        wanted += [2.0 ** 23 + 1, 1e10]
    if dtype.itemsize == 8:
        wanted += [2.0 ** 52 + 1, 1e22]
    with np.errstate(all="ignore"):
        positive = np.array(wanted).astype(dtype)
    return np.concatenate([positive, -positive, np.array([np.nan], dtype=dtype)])


def _hostile_complexes(dtype: np.dtype[np.generic]) -> NDArray[np.generic]:
    real = np.dtype(f"f{dtype.itemsize // 2}")
    largest = float(np.finfo(real).max)
    part = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 7.25, np.inf, -np.inf, np.nan, largest],
                    dtype=real)
    values = np.empty((part.size, part.size), dtype=dtype)
    values.real = part[:, None]
    values.imag = part[None, :]
    return values.ravel()


def ordinary(seed: int, shape: Sequence[int] | int, dtype: DTypeLike, character: str = "small",
             ) -> NDArray[np.generic]:
    """Seeded random data: ``small`` integers (whose sums are exact), ``halves``, ``unit`` (uniform
    in (-1, 1)), ``positive`` (uniform in (0.1, 4)), ``hostile`` (drawn from `hostile`)."""
    dtype = np.dtype(dtype)
    random = np.random.default_rng(seed)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if dtype.kind == "b":
        return np.asarray(random.integers(0, 2, shape)).astype(bool)
    if character == "hostile":
        return np.asarray(random.choice(hostile(dtype), shape))
    if dtype.kind in "iu":
        low = 0 if dtype.kind == "u" or character == "positive" else -9
        return np.asarray(random.integers(low, 10, shape)).astype(dtype)

    def draw() -> NDArray[np.generic]:
        if character == "small":
            return np.asarray(random.integers(-9, 10, shape)).astype("float64")
        if character == "halves":
            return np.asarray(random.integers(-40, 41, shape)) / 8
        if character == "unit":
            return np.asarray(random.uniform(-1, 1, shape))
        if character == "positive":
            return np.asarray(random.uniform(0.1, 4, shape))
        raise ValueError(f"unknown character {character!r}; small, halves, unit, positive, hostile")

    if dtype.kind == "c":
        return (draw() + 1j * draw()).astype(dtype)
    return draw().astype(dtype)


def layouts(data: NDArray[np.generic]) -> Iterator[tuple[str, tuple[object, ...] | None]]:
    """Names and index keys of views of `data` that differ in strides; None stands for transpose."""
    yield "whole", (...,)
    if data.ndim:
        yield "every second", (slice(None, None, 2), ...)
        yield "backwards", (slice(None, None, -1), ...)
        yield "every third backwards", (..., slice(None, None, -3))
        yield "inner part", (slice(1, -1), ...)
        yield "none of it", (slice(0, 0), ...)
        yield "new axes", (None, ..., None)
    if data.ndim >= 2:
        yield "transposed", None
        yield "one row", (0, ...) if data.shape[0] else (slice(None), ...)
