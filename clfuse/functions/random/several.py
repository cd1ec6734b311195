"""Draws of several numbers together: parts of 1, outcomes of many trials, normal vectors.

Numbers of outcomes are split in halves, again and again: how many of a group fall into its first
half is binomial, or hypergeometric. So many outcomes take few steps, each of which draws for all
groups at once.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from clfuse._core import loading
from clfuse.arrays import handle as handles
from clfuse.arrays.conversion import NotNative, host_view
from clfuse.arrays.handle import Handle
from clfuse.errors import warn_user

from .bits import Philox4x32
from .distributions import ends, requested_size
from .formulas import binomial, hypergeometric, scaled_gamma
from .small_draws import Maker

__all__ = ["dirichlet", "multinomial", "multivariate_hypergeometric", "multivariate_normal"]

_core: Final = loading.load()

_MOST_COLORED: Final = 10**9
"""Elements of all colors together, from which on numbers of them are not exact."""

_WEIGHT: Final = 200.0
"""What the host takes for a number, in additions."""


_MOST_TRIALS: Final = 1 << 53
"""Above it not every number is a double's."""


def _is_row(chances: np.ndarray) -> bool:
    """Whether the compiled part takes them as they are."""
    return chances.ndim == 1 and chances.dtype == np.float64 and chances.flags.c_contiguous


def _vector(value: Any) -> np.ndarray:
    """A parameter on the host."""
    return np.asarray(host_view(value) if isinstance(value, Handle) else value)


def _extents(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape; `NotNative` where there is nothing in it."""
    if 0 in shape:
        raise NotNative("of no numbers")
    return shape


def _in_double() -> None:
    if handles.lacks_fp64():
        raise NotNative("in double precision, which the device has not")


def dirichlet(bits: Philox4x32, examiner: Any, alpha: Any, size: Any) -> Any:
    """Gamma numbers over their sum: (*size, k) float64."""
    given = alpha if not isinstance(alpha, Handle) else host_view(alpha)
    examiner.dirichlet(given, 0)
    shapes = np.asarray(given, np.float64)
    if not shapes.any():
        raise NotNative("of no part above 0")
    shape = requested_size(size) or ()
    extents = _extents((len(shapes), *shape))
    _in_double()
    maker = Maker(bits, extents, _WEIGHT)
    draws = maker.draw(extents), maker.draw(extents)
    column = maker.known(shapes.reshape(-1, *(1,) * len(shape)))
    if np.less(shapes, 1.0).any():
        numbers, lowered = scaled_gamma(*draws, column)
        parts = numbers * np.exp(lowered - np.max(lowered, axis=0))
    else:
        parts = draws[0].accepted("gamma", column)
    return maker.delivered(_turned(parts / np.sum(parts, axis=0)))


def _turned(rows: Any) -> Any:
    """With the first axis as the last one."""
    return rows if rows.ndim == 1 else np.moveaxis(rows, 0, -1)


def _padded(column: np.ndarray) -> np.ndarray:
    """With rows of zeros up to a power of two."""
    room = 1 << max(len(column) - 1, 0).bit_length()
    padded = np.zeros((room, *column.shape[1:]), column.dtype)
    padded[: len(column)] = column
    return padded


def _halves(column: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The sums of the first and of the second half of all rows, then of both halves, and so on."""
    sums = [column]
    while len(sums[-1]) > 1:
        sums.append(sums[-1][::2] + sums[-1][1::2])
    for halves in sums[-2::-1]:
        yield halves[::2], halves[1::2]


def _split(first: Any, both: Any) -> Any:
    """What falls into both halves of all groups, as rows, of what falls into the first."""
    halves = np.stack([first, both - first], axis=1)
    return halves.reshape(2 * first.shape[0], *first.shape[1:])


def multinomial(bits: Philox4x32, examiner: Any, n: Any, pvals: Any, size: Any) -> Any:
    """How often each outcome comes: (*size, k) int64."""
    chances = _vector(pvals)
    is_one_draw = size is None and type(n) is int and 0 <= n < _MOST_TRIALS
    if _core is not None and is_one_draw and _is_row(chances):
        few = _core.few_outcomes(bits, n, chances)
        if few is not None:
            return few
    counts = _vector(n)
    if counts.ndim and not (counts.size and np.can_cast(counts.dtype, np.int64, "safe")):
        raise NotNative("of no whole numbers")
    number = counts[()] if isinstance(n, Handle) else n
    examiner.multinomial(ends(counts)[:2] if counts.ndim else number, [1.0])
    examiner.multinomial(0, chances)
    try:
        common = np.broadcast_shapes(counts.shape, chances.shape[:-1])
        shape = common if size is None else requested_size(size) or ()
        if np.broadcast_shapes(shape, common) != shape:
            raise NotNative("of another shape")
    except ValueError:
        raise NotNative("of shapes that do not fit") from None
    extents = _extents((1, *shape))
    _in_double()
    column = np.moveaxis(chances.astype(np.float64), -1, 0).copy()
    # As NumPy has it; each partial sum is rounded, whatever the shape.
    sums = np.add.accumulate(column[:-1], 0)[-1:]
    column[-1] = np.maximum(1.0 - sums[0], 0.0) if len(sums) else 1.0
    more = (1,) * (len(shape) + 1 - column.ndim)
    column = _padded(column.reshape(len(column), *more, *column.shape[1:]))
    maker = Maker(bits, (max(len(column) // 2, 1), *shape), _WEIGHT)
    trials = np.broadcast_to(maker.known(counts.astype(np.int64)), extents)
    for first, second in _halves(column):
        with np.errstate(all="ignore"):
            share = np.where(first > 0, np.minimum(first / (first + second), 1.0), 0.0)
        draw = maker.draw((len(first), *shape))
        trials = _split(binomial(draw, trials, maker.known(share)), trials)
    return maker.delivered(_turned(trials[: chances.shape[-1]]))


def multivariate_hypergeometric(
    bits: Philox4x32, examiner: Any, colors: Any, nsample: Any, size: Any, method: str
) -> Any:
    """How many of each color are in a sample: (*size, k) int64."""
    given = colors if not isinstance(colors, Handle) else host_view(colors)
    number = int(_vector(nsample))
    examiner.multivariate_hypergeometric(given, number, 0, method=method)
    row = np.asarray(given, np.int64)
    if not len(row) or int(row.sum()) >= _MOST_COLORED:
        raise NotNative("of none, or of very many")
    shape = requested_size(size) or ()
    extents = _extents((1, *shape))
    _in_double()
    column = _padded(row).reshape(-1, *(1,) * len(shape))
    maker = Maker(bits, (max(len(column) // 2, 1), *shape), _WEIGHT)
    sample = np.broadcast_to(maker.known(np.array(number)), extents)
    for first, second in _halves(column):
        draw = maker.draw((len(first), *shape))
        drawn = hypergeometric(draw, maker.known(first), maker.known(second), sample)
        sample = _split(drawn, sample)
    return maker.delivered(_turned(sample[: len(row)]))


def multivariate_normal(
    bits: Philox4x32,
    examiner: Any,
    mean: Any,
    cov: Any,
    size: Any,
    check_valid: str,
    tol: float,
    method: str,
) -> Any:
    """Standard normal vectors times a factor of the covariance: (*size, k) float64."""
    centre, matrix = _vector(mean), _vector(cov)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        examiner.multivariate_normal(centre, matrix, 0, check_valid, tol, method=method)
    for warning in seen:  # NumPy's compiled code warns its caller, which is not the user's
        warn_user(str(warning.message), warning.category)
    extents = _extents((*(requested_size(size) or ()), len(centre)))
    _in_double()
    matrix = matrix.astype(np.float64)
    if method == "cholesky":
        factor = np.linalg.cholesky(matrix)
    elif method == "eigh":
        values, vectors = np.linalg.eigh(matrix)
        factor = vectors * np.sqrt(np.abs(values))
    else:
        vectors, values, _ = np.linalg.svd(matrix)
        factor = vectors * np.sqrt(values)
    rows = math.prod(extents[:-1]), extents[-1]
    maker = Maker(bits, rows, _WEIGHT)
    normal = maker.draw(rows).normal()
    made = maker.known(centre.astype(np.float64)) + normal @ maker.known(factor.T.copy())
    return maker.delivered(made.reshape(extents))
