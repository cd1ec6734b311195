"""Operands at which functions are compared with exact values.

They lie near zeros, singularities and branch cuts, at large and subnormal arguments, and everywhere
between.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .functions import Function

__all__ = ["operands"]

Array = NDArray[Any]

AROUND: Final[dict[str, tuple[float, ...]]] = {
    "gamma": (1, 2, 1.4616321449683623, *(-k for k in range(1, 30))),
    "gammaln": (1, 2, -2.4570247382208006, -2.7476826467274127, -3.1435808883499800,
                -3.955294284858598, *(-k for k in range(1, 30))),
    "sinc": tuple(range(-40, 41)),
}  # fmt: skip
"""Zeros, poles and extrema that are a function's own."""

SPECIAL: Final = (
    0.5, 1.0, 2.0, math.e, 1 / math.e, math.sqrt(0.5), math.log(2), *(k * math.pi / 4 for k in
    (*range(1, 33), 51, 64, 100, 128, 355, 1000, 4096, 10**5, 10**6, 2.0**30)), 113 * math.pi / 2,
)  # fmt: skip
"""Zeros, poles, extrema, and where implementations change their method."""

NEAR_MULTIPLES: Final = (6381956970095103 * 2.0**797, 16367173 * 2.0**72, 5.319372648326541e255)
"""Of all doubles and of all floats those that are nearest to a multiple of pi / 2. Sources: J.-M.
Muller, Elementary Functions, section on range reduction; Kahan's search by continued fractions."""

MORE: Final = 3
"""As many are drawn for one that is kept: the others lie where the result is no number."""


def operands(function: Function, count: int, seed: int = 0) -> tuple[Array, ...]:
    """`count` arguments for which NumPy gives a number; of one float16 all that there are.

    Examples
    --------
    >>> from .functions import Function
    >>> x, = operands(Function("log", 1, "float32", 4), 1000)
    >>> x.dtype, x.shape, bool((x > 0).all())
    (dtype('float32'), (1000,), True)
    """
    random = np.random.default_rng([seed, *function.label.encode()])
    if function.dtype == "float16" and function.arity == 1:
        drawn: tuple[Array, ...] = (np.arange(2**16, dtype=np.uint16).view(np.float16),)
        count = 2**16
    elif function.is_complex:
        drawn = _complex(function, MORE * count, random)
    else:
        drawn = _real(function, MORE * count, random)
    with np.errstate(all="ignore"):
        kept = _has_number(function, drawn)
    chosen = np.flatnonzero(kept)
    if len(chosen) > count:
        chosen = np.sort(random.choice(chosen, count, replace=False))
    return tuple(np.ascontiguousarray(operand[chosen]) for operand in drawn)


def _has_number(function: Function, drawn: tuple[Array, ...]) -> Array:
    """Where a result is finite and can be told: NumPy's wider one, too."""
    if function.name == "gamma":
        x = drawn[0].astype(float)
        most = 34.5 if function.dtype == "float32" else 171
        return np.asarray((x < most) & (x > -most) & (x != np.floor(x)) | ((x > 0) & (x < most)))
    if function.name == "gammaln":
        x = drawn[0].astype(float)
        numbers = (x > 0) | (x != np.floor(x))
        return np.asarray(np.isfinite(x) & numbers & (np.abs(x) < 1e15))
    if function.name in ("erf", "erfc"):
        return np.asarray(np.isfinite(drawn[0]))
    finite = np.logical_and.reduce([np.isfinite(operand) for operand in drawn])
    if function.name == "sinc":
        finite &= np.isfinite(drawn[0].dtype.type(np.pi) * drawn[0])
    wide = tuple(np.where(finite, operand, 1).astype(_wider(operand.dtype)) for operand in drawn)
    results = [function.calculate(np, wide), function.calculate(np, drawn)]
    # The exact one rounds to a number, or NumPy's does not: that is an error to be counted.
    exact = results[0].astype(results[1].dtype)
    if function.is_complex and function.arity == 2:
        # Of an angle that leaves the range there is nothing to be said.
        finite &= np.isfinite(drawn[1] * np.log(drawn[0]))
    return np.asarray(finite & np.isfinite(exact))


def _wider(dtype: np.dtype[Any]) -> Any:
    return np.result_type(dtype, np.longdouble)


def _float(values: Array, dtype: str) -> Array:
    with np.errstate(all="ignore"):
        return values.astype(dtype)


def _any_magnitude(count: int, dtype: str, random: np.random.Generator) -> Array:
    """Random bits: all exponents are as frequent, subnormal ones among them."""
    size = np.dtype(dtype).itemsize
    bits = random.integers(0, 2 ** (8 * size) - 1, count, f"u{size}", endpoint=True)
    return bits.view(dtype)


def _subnormal(count: int, dtype: str, random: np.random.Generator) -> Array:
    info = np.finfo(dtype)
    units = 2.0 ** (random.random(count) * (info.nmant + 3))
    return _float(units * float(info.smallest_subnormal), dtype) * _sign(count, dtype, random)


def _sign(count: int, dtype: str, random: np.random.Generator) -> Array:
    return random.choice(np.array([-1, 1], dtype), count)


def _ends(name: str, dtype: str) -> float:
    """Beyond which a function of the exponential family leaves the range of the dtype."""
    most = math.log(float(np.finfo(dtype).max))
    return most / math.log(2) if name == "exp2" else most


def _uniform(function: Function, count: int, random: np.random.Generator) -> Array:
    """Uniform in several intervals, those where the function is a number and changes."""
    end = _ends(function.name, function.dtype)
    if function.name in ("gamma", "gammaln"):
        end = 34 if function.dtype == "float32" else 170
    widths = random.choice(np.array([1.0, 1.0, 3.0, 30.0, end * 1.03]), count)
    return _float((2 * random.random(count) - 1) * widths, function.dtype)


def _beside(places: Array, dtype: str, random: np.random.Generator) -> Array:
    """Near to numbers: by any power of two, and by some units in the last place."""
    nmant = np.finfo(dtype).nmant
    by = np.ldexp(random.random(len(places)), -random.integers(0, nmant + 2, len(places)))
    near = _float(places * (1 + by * random.choice([-1, 1], len(places))), dtype)
    few = random.integers(-4, 5, len(places)).astype(dtype)
    beside = _float(places, dtype)
    beside = beside + few * np.spacing(beside)
    return np.where(random.random(len(places)) < 0.7, near, beside)


def _special(function: Function, count: int, random: np.random.Generator) -> Array:
    own = AROUND.get(function.name, ())
    places = np.array([*SPECIAL, *(-place for place in SPECIAL)])
    chosen = random.choice(places, count)
    if own:
        chosen = np.where(random.random(count) < 0.7, random.choice(np.array(own, float), count),
                          chosen)
    return _beside(chosen, function.dtype, random)


def _multiples(count: int, dtype: str, random: np.random.Generator) -> Array:
    """The numbers next to large multiples of pi / 2, and those that are known to be nearest."""
    nmant = np.finfo(dtype).nmant
    most = min(np.finfo(dtype).maxexp, 50)
    k = np.rint(2.0 ** (random.random(count) * (most - 1)))
    multiples = (k * np.longdouble(math.pi / 2) + k * np.longdouble(6.123233995736766e-17)).astype(
        float
    )
    most_hard = float(np.finfo(dtype).max)
    hard = np.array([value for value in NEAR_MULTIPLES if value < most_hard] or [11.0])
    scaled = random.choice(hard, count) * 2.0 ** random.integers(-nmant, 1, count)
    chosen = np.where(random.random(count) < 0.9, multiples, scaled)
    return _float(chosen, dtype) * _sign(count, dtype, random)


def _one(function: Function, count: int, random: np.random.Generator) -> Array:
    """Operands of a real function of one variable."""
    dtype = function.dtype
    share = count // 10
    drawn = np.concatenate([
        _any_magnitude(3 * share, dtype, random),
        _uniform(function, 3 * share, random),
        _special(function, 2 * share, random),
        _multiples(share, dtype, random),
        _subnormal(count - 9 * share, dtype, random),
    ])  # fmt: skip
    return random.permutation(drawn)


def _real(function: Function, count: int, random: np.random.Generator) -> tuple[Array, ...]:
    if function.arity == 1:
        return (_one(function, count, random),)
    dtype = function.dtype
    x, y = (_one(function, count, random) for _ in range(2))
    which = random.integers(0, 4, count)
    with np.errstate(all="ignore"):
        if function.name in ("power", "float_power"):
            # Results of all magnitudes: the exponent is a part of the range by the logarithm.
            wanted = (2 * random.random(count) - 1) * math.log(float(np.finfo(dtype).max))
            x = np.where(which == 0, x, np.abs(x))
            log = np.log(np.abs(x.astype(float)))
            y = np.where(which == 1, y, _float(wanted / np.where(log == 0, 1, log), dtype))
            y = np.where(x < 0, np.rint(y), y)
        elif function.name in ("logaddexp", "logaddexp2"):
            # Both near each other, and where the sum of the exponentials is near 1.
            near = _float(x + (2 * random.random(count) - 1) * 60, dtype)
            below = -np.abs(_float(x, dtype)).astype(float)
            rest = np.log1p(-np.exp(below)) if function.name == "logaddexp" else np.log2(
                1 - np.exp2(below))
            y = np.where(which < 2, near, np.where(which == 2, _float(rest, dtype), y))
            x = np.where(which == 2, _float(below, dtype), x)
        else:
            ratio = 2.0 ** ((2 * random.random(count) - 1) * np.finfo(dtype).nmant * 1.2)
            near = _float(x.astype(float) * ratio, dtype)
            y = np.where(which < 2, near * _sign(count, dtype, random), y)
    return x, np.ascontiguousarray(y.astype(dtype))


def _complex(function: Function, count: int, random: np.random.Generator) -> tuple[Array, ...]:
    """Real and imaginary parts of any magnitude, and near the ends of branch cuts. No part is zero:
    what its sign does is told by other tests."""
    part = "float32" if function.dtype == "complex64" else "float64"
    found = []
    for _ in range(function.arity):
        real, imaginary = (
            np.concatenate([
                _any_magnitude(count // 8, part, random),
                _uniform(Function("", 1, part, 0), count // 2, random),
                _float(2.0 ** (20 * random.random(count // 8) - 10), part),
                _multiples(count // 16, part, random),
                _uniform(Function("exp", 1, part, 0), count - count // 2 - 2 * (count // 8)
                         - count // 16, random),
            ])
            for _ in range(2)
        )  # fmt: skip
        real, imaginary = random.permutation(real), random.permutation(imaginary)
        which = random.integers(0, 6, count)
        info = np.finfo(part)
        # The ends of the branch cuts are 1, -1, i and -i, zeros of others the multiples of pi / 2.
        ends = random.choice(np.array([1, -1, 0, math.pi / 2, -math.pi, 2, 0.5]), count)
        offset, other = (
            2.0 ** -(random.random(count) * (info.nmant + 8)) * random.choice([-1.0, 1.0], count)
            for _ in range(2)
        )
        near, beside = _float(ends + offset, part), _float(other, part)
        angle = random.random(count) * 2 * math.pi
        radius = 1 + offset * 2.0**-4
        real = np.where(which == 0, near, np.where(which == 1, beside, real))
        imaginary = np.where(which == 0, beside, np.where(which == 1, near, imaginary))
        real = np.where(which == 2, _float(radius * np.cos(angle), part), real)
        imaginary = np.where(which == 2, _float(radius * np.sin(angle), part), imaginary)
        if function.arity == 2:
            # Powers overflow almost everywhere: logarithms and exponents are small numbers.
            real, imaginary = (
                np.where(random.random(count) < 0.8, _float(8 * random.random(count) - 4, part),
                         each)
                for each in (real, imaginary)
            )
        value = np.empty(count, function.dtype)
        least = info.smallest_subnormal
        value.real = np.where(real == 0, least, real)
        value.imag = np.where(imaginary == 0, least, imaginary)
        found.append(value)
    return tuple(found)
