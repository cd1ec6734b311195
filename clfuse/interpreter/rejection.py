"""Numbers that are drawn until one is accepted, by NumPy: those of ``kernels/lib/rejection.cl``,
but for the last digits. The compiled part has the same bits, and takes a hundredth of the time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from .rng import DRAWN, NEARLY, NUMBERS

__all__ = ["DRAWN"]

Array = Any
Propose = Callable[..., tuple[Array, Array]]
"""Of two arrays of 64 random bits and of the parameters: numbers, and which are accepted."""

_FLOAT64: Final = np.dtype(np.float64)
_MOST_ATTEMPTS: Final = 256
_ATTEMPT_BIT: Final = np.int64(32)
_FEW_EVENTS: Final = 10.0
_MOST: Final = 2.0**63
_log_gamma: Final = np.frompyfunc(math.lgamma, 1, 1)


def _words(index: Array, key: Array, position: Array, attempt: int) -> tuple[Array, Array]:
    turned = key ^ (np.int64(attempt) << _ATTEMPT_BIT)
    first, second = [
        NUMBERS[name](np.dtype(np.uint64))(index, turned, position)
        for name in ("philox_bits", "philox_more_bits")
    ]
    return first, second


def _number(name: str, bits: Array, dtype: np.dtype[Any] = _FLOAT64) -> Array:
    row = f"{name}_of_bits_{dtype}"
    return NUMBERS[row](dtype)(bits) if row in NUMBERS else NEARLY[row](bits)


def _accepted(propose: Propose, dtype: np.dtype[Any], drawn: list[Array], left: Array) -> Array:
    """Numbers of the elements at the places `left`; of others they are the first parameter."""
    made = np.array(drawn[3], dtype)
    for attempt in range(1, _MOST_ATTEMPTS):
        if not len(left):
            break
        index, key, position, *parameters = [each[left] for each in drawn]
        with np.errstate(all="ignore"):
            numbers, good = propose(*_words(index, key, position, attempt), *parameters)
        made[left[good]] = numbers[good]
        left = left[~good]
    return made


def _row(
    propose: Propose,
    tried: Callable[..., Array] | None = None,
    otherwise: Callable[..., None] | None = None,
    dtype: np.dtype[Any] = _FLOAT64,
) -> Callable[..., Array]:
    """The function of a row: `tried` says of which elements proposals are made, of the first
    parameter alone where it is None; `otherwise` changes the numbers of the others."""

    def draw(*operands: Array) -> Array:
        whole = np.broadcast_arrays(*operands)
        drawn = [np.array(each).reshape(-1) for each in whole]
        mask = np.ones(len(drawn[0]), bool) if tried is None else tried(*drawn[3:])
        made = _accepted(propose, dtype, drawn, np.flatnonzero(mask))
        if otherwise is not None:
            with np.errstate(all="ignore"):
                otherwise(made, *drawn)
        return made.reshape(whole[0].shape)

    return draw


def _is_number(value: Array, *others: Array) -> Array:
    return value == value


# -- gamma ----------------------------------------------------------------------------------------


def _gamma(dtype: np.dtype[Any]) -> Callable[..., Array]:
    def propose(first: Array, second: Array, shape: Array) -> tuple[Array, Array]:
        d = np.where(shape < 1, shape + 1, shape) - dtype.type(1 / 3)
        x, u = _number("normal", first, dtype), _number("open", second, dtype)
        y = x / np.sqrt(9 * d)
        rest = 3 * (np.log1p(y) - y) - y * y * (3 + y)
        squeezed = u < 1 - dtype.type(0.0331) * x * x * x * x
        good = (1 + y > 0) & (squeezed | (np.log(u) < x * x / 2 + d * rest))
        return d * (1 + y) ** 3, good

    def lower(made: Array, index: Array, key: Array, position: Array, shape: Array) -> None:
        small = shape < 1
        bits, _ = _words(index[small], key[small], position[small], 0)
        of = shape[small]
        factor = np.exp(np.log(_number("positive", bits, dtype)) / of)
        made[small] = np.where(of > 0, made[small] * factor, of)

    return _row(propose, _is_number, lower, dtype)


# -- numbers of events ----------------------------------------------------------------------------


def _log_factorial(k: Array) -> Array:
    return _log_gamma(k + 1.0).astype(np.float64)


def _steep(u: Array, a: Array, b: Array, scale: Array) -> tuple[Array, Array]:
    """A proposal's distance from the centre, and by what it is steeper than the hat."""
    near = 0.5 - np.abs(u)
    return (2 * a / near + b) * u, scale / (a / (near * near) + b)


def _poisson(first: Array, second: Array, mean: Array) -> tuple[Array, Array]:
    u, v = _number("open", first) - 0.5, _number("open", second)
    b = 0.931 + 2.53 * np.sqrt(mean)
    a = -0.059 + 0.02483 * b
    moved, steep = _steep(u, a, b, 1.1239 + 1.1328 / (b - 3.4))
    k = np.floor(moved + mean + 0.43)
    near = 0.5 - np.abs(u)
    quick = (near >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
    possible = (k >= 0) & ((near >= 0.013) | (v <= near))
    chance = k * np.log(mean) - mean - _log_factorial(np.maximum(k, 0))
    return k, quick | (possible & (np.log(v * steep) <= chance))


def _binomial(first: Array, second: Array, count: Array, p: Array) -> tuple[Array, Array]:
    u, v = _number("open", first) - 0.5, _number("open", second)
    deviation = np.sqrt(count * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    moved, steep = _steep(u, a, b, (2.83 + 5.1 / b) * deviation)
    k = np.floor(moved + count * p + 0.5)
    quick = (0.5 - np.abs(u) >= 0.07) & (v <= 0.92 - 4.2 / b)
    possible = (k >= 0) & (k <= count)
    mode, at = np.floor((count + 1) * p), np.clip(k, 0, count)
    chance = _log_factorial(mode) + _log_factorial(count - mode) - _log_factorial(at)
    chance += (at - mode) * np.log(p / (1 - p)) - _log_factorial(count - at)
    return k, quick | (possible & (np.log(v * steep) <= chance))


def _mean(*parameters: Array) -> Array:
    if len(parameters) < 3:
        return math.prod(parameters)
    rare, other, count = parameters
    return count * rare / np.maximum(rare + other, 2)


def _are_many(*parameters: Array) -> Array:
    return _mean(*parameters) >= _FEW_EVENTS


def _add_up(made: Array, drawn: tuple[Array, ...], none: Any, step: Any) -> None:
    """Numbers of few events: up to the one with which chances sum up to a uniform number."""
    index, key, position, *parameters = drawn
    few = _mean(*parameters) < _FEW_EVENTS
    parameters = [each[few] for each in parameters]
    mean = _mean(*parameters)
    u = _number("open", _words(index[few], key[few], position[few], 0)[0])
    weight = none(*parameters)
    sums, k, found = weight.copy(), 0, np.zeros(len(u))
    more = u > sums
    while more.any():
        k += 1
        weight = weight * step(k, *parameters)
        more &= weight > 0
        sums = sums + weight
        found[more] = k
        more &= (u > sums) & ((weight > 2.0**-60) | (k < mean))
    made[few] = found


def _few_poisson(made: Array, *drawn: Array) -> None:
    _add_up(made, drawn, lambda mean: np.exp(-mean), lambda k, mean: mean / k)


def _few_binomial(made: Array, *drawn: Array) -> None:
    _add_up(
        made, drawn, lambda n, p: np.exp(n * np.log1p(-p)),
        lambda k, n, p: p / (1 - p) * ((n - k + 1) / k),
    )  # fmt: skip


def _hypergeometric(
    first: Array, second: Array, rare: Array, other: Array, count: Array
) -> tuple[Array, Array]:
    u, v = _number("open", first), _number("open", second)
    among = rare + other
    mean = count * rare / np.maximum(among, 2)
    variance = (among - count) * mean * (other / np.maximum(among, 2)) / (np.maximum(among, 2) - 1)
    deviation = np.sqrt(variance + 0.5)
    scale = 2 * math.sqrt(2 / math.e) * deviation + 3 - 2 * math.sqrt(3 / math.e)
    x = mean + 0.5 + scale * (v - 0.5) / u
    end = np.minimum(np.minimum(count, rare) + 1, np.floor(mean + 0.5 + 16 * deviation))
    possible = (x >= 0) & (x < end)

    def log_chance(k: Array) -> Array:
        parts = (k, rare - k, count - k, other - count + k)
        return -sum(_log_factorial(part) for part in parts)

    k = np.floor(np.where(possible, x, 0))
    mode = np.floor((count + 1) * (rare + 1) / (among + 2))
    return k, possible & (2 * np.log(u) <= log_chance(k) - log_chance(mode))


def _few_hypergeometric(made: Array, *drawn: Array) -> None:
    def none(rare: Array, other: Array, count: Array) -> Array:
        without = _log_factorial(other) - _log_factorial(other - count)
        among = _log_factorial(rare + other) - _log_factorial(rare + other - count)
        return np.exp(without - among)

    _add_up(
        made, drawn, none,
        lambda k, rare, other, n: (rare - k + 1) / k * ((n - k + 1) / (other - n + k)),
    )  # fmt: skip


# -- others ---------------------------------------------------------------------------------------


def _zipf(first: Array, second: Array, a: Array) -> tuple[Array, Array]:
    u, v = _number("open", first), _number("open", second)
    power = np.minimum(a - 1, 1000.0)
    kept = u * _MOST**-power + (1 - u)
    x = np.floor(np.exp(-np.log(kept) / power))
    step, log_2 = power * np.log1p(1 / x), power * math.log(2)
    height = v * x * (np.expm1(step) / np.expm1(log_2))
    return x, (x >= 1) & (x < _MOST) & (height <= np.exp(step - log_2))


def _von_mises(first: Array, second: Array, kappa: Array) -> tuple[Array, Array]:
    half = math.pi / 2 * (2 * _number("open", first) - 1)
    v = _number("open", second)
    k = np.minimum(kappa, 1e150)
    r = 1 + np.sqrt(4 * k * k + 1)
    root = np.sqrt(2 * r)
    rho, short = 2 * k / (r + root), (r - 2 * k + root) / (r + root)
    y = (r + root) / 4 * (short * (1 + rho)) ** 2 / (1 + rho * rho + 2 * rho * np.cos(2 * half))
    return short / (1 + rho) * np.tan(half), (y * (2 - y) >= v) | (np.log(y / v) + 1 >= y)


DRAWN.update({
    "gamma_draw_float64": _gamma(_FLOAT64),
    "gamma_draw_float32": _gamma(np.dtype(np.float32)),
    "poisson_draw_float64": _row(_poisson, _are_many, _few_poisson),
    "binomial_draw_float64": _row(_binomial, _are_many, _few_binomial),
    "hypergeometric_draw_float64": _row(_hypergeometric, _are_many, _few_hypergeometric),
    "zipf_draw_float64": _row(_zipf),
    "von_mises_draw_float64": _row(_von_mises, _is_number),
})
"""Rows of the op tables, of the elements' numbers in their stream, key, position and parameters."""
