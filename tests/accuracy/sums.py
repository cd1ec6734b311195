"""Errors of sums and what is made of them, as multiples of NumPy's: ``python -m tests.accuracy
sums``.

An error is a part of the sum of the magnitudes (of the variance, for variances); its root mean
square over many samples is what is compared. Exact values are `math.fsum`'s, and of variances
longdouble's. What is rounded once from the exact value is never called worse than NumPy's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

DTYPES: Final = ("float16", "float32", "float64", "complex64", "complex128")
KINDS: Final = ("uniform", "normal", "offset", "wide")

LENGTHS: Final = (1, 2, 3, 8, 9, 100, 129, 1000, 4097, 10**4, 10**5, 10**6, 10**7)
PLANES: Final[Sequence[tuple[tuple[int, ...], Any]]] = (
    ((300, 1001), 1), ((1001, 300), 0), ((3000, 17), 0), ((3000, 17), 1), ((20, 30, 50), 1),
    ((30, 100_000), 1), ((100_000, 30), 0), ((400, 250), None), ((40, 30, 20), (0, 2)),
)  # fmt: skip

SAMPLED: Final = 4_000_000
"""Elements of all samples of a case together, MOST samples at most, LEAST at least."""
LEAST, MOST = 4, 300

CALLS: Final[dict[str, Callable[..., Any]]] = {
    "sum": lambda m, x, axis: m.sum(x, axis=axis),
    "mean": lambda m, x, axis: m.mean(x, axis=axis),
    "var": lambda m, x, axis: m.var(x, axis=axis),
    "std": lambda m, x, axis: m.std(x, axis=axis),
    "dot": lambda m, x, axis: m.dot(x, x),
    "cumsum": lambda m, x, axis: m.cumsum(x, axis=axis)[..., -1],
}


@dataclass(frozen=True, slots=True)
class Compared:
    """One call on one kind of sample: root mean squares of errors.

    Attributes
    ----------
    ours, numpys : float
        Of clfuse and NumPy.
    rounded : float
        Of exact values rounded to the dtype.
    """

    call: str
    dtype: str
    kind: str
    shape: tuple[int, ...]
    axis: Any
    samples: int
    ours: float
    numpys: float
    rounded: float

    @property
    def ratio(self) -> float:
        """Ours as a multiple of NumPy's, or of one rounding where that is more."""
        least = max(self.numpys, self.rounded)
        return self.ours / least if least else (math.inf if self.ours else 0.0)

    def __str__(self) -> str:
        axis = "" if self.axis is None else f" along {self.axis}"
        return (f"{self.call} of {self.kind} {self.dtype} {self.shape}{axis}: {self.ours:.3g}, "
                f"NumPy {self.numpys:.3g}, one rounding {self.rounded:.3g}: {self.ratio:.2f} "
                f"({self.samples} samples)")


def draw(kind: str, dtype: str, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """A sample; sums of float16 stay in its range."""

    def real() -> Array:
        if kind == "uniform":
            return random.random(shape)
        normal = random.standard_normal(shape)
        if kind == "offset":
            return normal + 1000
        return normal if kind == "normal" else normal * 10.0 ** random.integers(-3, 3, shape)

    if np.dtype(dtype).kind == "c":
        return (real() + 1j * real()).astype(dtype)
    values = real()
    if dtype == "float16":
        values = values / max(1.0, 2.0 ** math.ceil(math.log2(values.size * 0.02)))
    return values.astype(dtype)


def rows(value: Array, axis: Any) -> Array:
    """What is summed, as rows."""
    if axis is None:
        return value.reshape(1, -1)
    axes = axis if isinstance(axis, tuple) else (axis,)
    last = tuple(range(value.ndim - len(axes), value.ndim))
    moved = np.moveaxis(value, axes, last)
    return moved.reshape(-1, math.prod(moved.shape[-len(axes):]))


def exact_sums(lines: Array) -> Array:
    """Of each row, by `math.fsum`."""
    if lines.dtype.kind == "c":
        return exact_sums(lines.real) + 1j * exact_sums(lines.imag)
    return np.array([math.fsum(line) for line in lines.astype(float).tolist()])


def exact(call: str, value: Array, axis: Any) -> tuple[Array, Array]:
    """(exact values, what an error is divided by)."""
    lines = rows(value, axis)
    count = lines.shape[1]
    if call in ("var", "std"):
        wide = lines.astype(np.clongdouble if lines.dtype.kind == "c" else np.longdouble)
        spread = np.abs(wide - wide.mean(1, keepdims=True)) ** 2
        found = spread.mean(1)
        found = np.sqrt(found) if call == "std" else found
        return found, np.where(found == 0, 1, found)
    if call == "dot":
        # The products of floats are exact in doubles; those of doubles in two longdoubles, nearly.
        wide = lines.astype(np.clongdouble if lines.dtype.kind == "c" else np.longdouble)
        return (wide * wide).sum(1), (np.abs(wide) ** 2).sum(1)
    found = exact_sums(lines)
    scale = np.abs(lines.astype(np.result_type(lines.dtype, float))).sum(1)
    scale = np.where(scale == 0, 1, scale)
    return (found / count, scale / count) if call == "mean" else (found, scale)


def calls_of(dtype: str, shape: tuple[int, ...], axis: Any) -> list[str]:
    """Those that NumPy calculates in the dtype and whose exact values are cheap."""
    chosen = ["sum", "mean", "var", "std"]
    if len(shape) == 1 and dtype != "float16":
        chosen.append("cumsum")
    if len(shape) == 1 and dtype == "float32":
        chosen.append("dot")
    return chosen


def compared(
    xp: ModuleType, dtype: str, kind: str, shape: tuple[int, ...], axis: Any,
    sampled: int = SAMPLED, most: int = MOST, calls: Sequence[str] = tuple(CALLS),
) -> Iterator[Compared]:
    """Measure those of the calls that can be on samples of one kind."""
    samples = max(LEAST, min(most, sampled // math.prod(shape)))
    names = [name for name in calls_of(dtype, shape, axis) if name in calls]
    errors: dict[str, list[list[Array]]] = {name: [[], [], []] for name in names}
    for seed in range(samples):
        value = draw(kind, dtype, shape, np.random.default_rng([seed, *shape]))
        ours = xp.asarray(value)
        for name in names:
            wanted, scale = exact(name, value, axis)
            with np.errstate(all="ignore"):
                numpys = np.asarray(CALLS[name](np, value, axis))
                found = np.asarray(CALLS[name](xp, ours, axis))
                best = wanted.astype(numpys.dtype)
            for list_, result in zip(errors[name], (found, numpys, best), strict=True):
                wide = np.ravel(result).astype(np.clongdouble)
                list_.append(np.abs(wide - wanted) / scale)
    for name in names:
        means = [float(np.sqrt(np.mean(np.square(np.concatenate(each))))) for each in errors[name]]
        yield Compared(name, dtype, kind, shape, axis, samples, *means)


def cases(largest: int) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Shapes and axes of no more elements."""
    for length in LENGTHS:
        if length <= largest:
            yield (length,), None
    for shape, axis in PLANES:
        if math.prod(shape) <= largest:
            yield shape, axis
