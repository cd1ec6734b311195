"""Distributions as formulas on random numbers, with NumPy's checks of their parameters.

A formula gets as many draws as its row says: `Draw`, `SingleDraw`, or what stands for a small draw.
It is written with NumPy's functions, which record lazy operands and compute all others. Most are
inverse distribution functions of one uniform number. What is drawn until it is accepted
(`Draw.accepted`) is a function of the element's number and of its parameters, too, and others are
made of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from clfuse.arrays.promotion import FLOAT64
from clfuse.dataclass import frozen

from .bits import Drawn

__all__ = ["DISTRIBUTIONS", "Distribution", "exponential"]

Check = Callable[..., tuple[type[Exception], str] | None]

FLOAT32: Final = np.dtype(np.float32)


# -- what NumPy asks of parameters that are arrays ------------------------------------------------


def _any(mask: Any) -> bool:
    return bool(np.any(mask))


def _non_negative(place: int, name: str) -> Check:
    def check(*parameters: Any) -> tuple[type[Exception], str] | None:
        value = parameters[place]
        bad = np.logical_and(np.logical_not(np.isnan(value)), np.signbit(value))
        return (ValueError, f"{name} < 0") if _any(bad) else None

    return check


def _positive(value: Any) -> tuple[type[Exception], str] | None:
    return (ValueError, "a <= 0") if _any(np.less_equal(value, 0)) else None


def _range(low: Any, high: Any) -> tuple[type[Exception], str] | None:
    extent = np.subtract(high, low)
    if _any(np.logical_not(np.isfinite(extent))):
        return OverflowError, "Range exceeds valid bounds"
    return (ValueError, "high - low < 0") if _any(np.signbit(extent)) else None


def _sides(left: Any, mode: Any, right: Any) -> tuple[type[Exception], str] | None:
    for bad, text in (
        (np.greater(left, mode), "left > mode"),
        (np.greater(mode, right), "mode > right"),
        (np.equal(left, right), "left == right"),
    ):
        if _any(bad):
            return ValueError, text
    return None


def _probability(p: Any) -> tuple[type[Exception], str] | None:
    fits = np.logical_and(np.greater_equal(p, 0), np.less_equal(p, 1))
    return (ValueError, "p < 0, p > 1 or p contains NaNs") if _any(np.logical_not(fits)) else None


def _nothing(*parameters: Any) -> None:
    return None


# -- formulas -------------------------------------------------------------------------------------


def exponential(draw: Any, dtype: np.dtype = FLOAT64) -> Any:
    """Exponential with mean 1."""
    return 0.0 - np.log(draw.positive(dtype))  # 0 rather than -0 where the logarithm is 0


def _laplace(draw: Any) -> Any:
    u = draw.inner()
    return np.where(np.less(u, 0.5), np.log(2.0 * u), 0.0 - np.log(2.0 - 2.0 * u))


def _logistic(draw: Any) -> Any:
    u = draw.inner()
    return np.log(u / (1.0 - u))


def _gumbel(draw: Any) -> Any:
    return 0.0 - np.log(0.0 - np.log(draw.inner()))


def _rayleigh(draw: Any) -> Any:
    return np.sqrt(2.0 * exponential(draw))


STANDARD: Final[dict[str, Callable[[Any], Any]]] = {
    "exponential": exponential, "gumbel": _gumbel, "laplace": _laplace, "logistic": _logistic,
    "rayleigh": _rayleigh,
}
"""Formulas of numbers that parameters only scale and shift."""


def _weibull(draw: Any, a: Any) -> Any:
    if type(a) is float and a:
        return np.power(exponential(draw), 1.0 / a)
    # NumPy: 0 for a == 0, where the power would be of 1 / 0.
    return np.where(np.equal(a, 0.0), 0.0, np.power(exponential(draw), 1.0 / _nonzero(a)))


def _nonzero(a: Any) -> Any:
    return np.where(np.equal(a, 0.0), 1.0, a)


def _power(draw: Any, a: Any) -> Any:
    return np.power(0.0 - np.expm1(0.0 - exponential(draw)), 1.0 / a)


def _triangular(draw: Any, left: Any, mode: Any, right: Any) -> Any:
    u = draw.uniform()
    base = right - left
    rising = left + np.sqrt(u * (mode - left) * base)
    falling = right - np.sqrt((1.0 - u) * (right - mode) * base)
    return np.where(np.less_equal(u * base, mode - left), rising, falling)


# -- waiting, and numbers of events ---------------------------------------------------------------

_LARGEST: Final = np.iinfo(np.int64).max


def _whole(numbers: Any) -> Any:
    """Floats as int64, the largest one where they are beyond it."""
    inside = np.less(numbers, float(_LARGEST))
    return np.where(inside, np.where(inside, numbers, 0.0).astype(np.int64), _LARGEST)


_LEAST: Final = 1e-300
_MOST: Final = 1.0 - 2.0**-53
"""Where a chance is less, or more, nothing is divided by zero: numbers of 53 bits tell no
difference."""


_SLOWEST: Final = 1e-15
"""An exponential number of 53 bits, below 37, over a larger rate is far below 2**63."""


def _geometric(draw: Any, p: Any) -> Any:
    is_known = type(p) is float and p < 1.0
    chance = min(max(p, _LEAST), _MOST) if is_known else np.minimum(np.maximum(p, _LEAST), _MOST)
    rate = 0.0 - np.log1p(0.0 - chance)
    tried = np.maximum(np.ceil(exponential(draw) / rate), 1.0)
    if is_known:
        return tried.astype(np.int64) if rate > _SLOWEST else _whole(tried)
    return np.where(np.less(p, 1.0), _whole(tried), 1)


def _logseries(draw: Any, other: Any, p: Any) -> Any:
    # A. W. Kemp, Efficient generation of logarithmically distributed pseudo-random variables, 1981.
    v = draw.inner()
    chance = max(p, _LEAST) if type(p) is float else np.maximum(p, _LEAST)
    q = 0.0 - np.expm1(np.log1p(0.0 - chance) * other.inner())
    q = np.minimum(q, _MOST)
    many = np.floor(1.0 + np.log(v) / np.log(q))
    found = np.where(np.greater_equal(v, q), 1.0, np.where(np.less_equal(v, q * q), many, 2.0))
    return _whole(np.where(np.greater_equal(v, p), 1.0, found))


def _poisson(draw: Any, mean: Any) -> Any:
    return draw.accepted("poisson", mean).astype(np.int64)


def _negative_binomial(draw: Any, other: Any, n: Any, p: Any) -> Any:
    return _poisson(other, draw.accepted("gamma", n) * ((1.0 - p) / p))


def _double(value: Any) -> Any:
    return float(value) if type(value) is int else value.astype(np.float64)


def binomial(draw: Any, n: Any, p: Any) -> Any:
    """How many of `n` trials succeed (int64): the rarer outcome is drawn."""
    if type(p) is float:
        drawn = draw.accepted("binomial", _double(n), min(p, 1.0 - p)).astype(np.int64)
        return n - drawn if p > 0.5 else drawn
    often = np.greater(p, 0.5)
    drawn = draw.accepted("binomial", _double(n), np.where(often, 1.0 - p, p)).astype(np.int64)
    return np.where(often, n - drawn, drawn)


def hypergeometric(draw: Any, good: Any, bad: Any, sample: Any) -> Any:
    """How many good ones are in a sample (int64): the rarer ones in the smaller part are drawn."""
    rest = good + bad - sample
    count = np.minimum(sample, rest)
    drawn = draw.accepted(
        "hypergeometric", *[_double(each) for each in (
            np.minimum(good, bad), np.maximum(good, bad), count)]
    ).astype(np.int64)  # fmt: skip
    drawn = np.where(np.greater(good, bad), count - drawn, drawn)
    return np.where(np.less(rest, sample), good - drawn, drawn)


# -- made of gamma and normal numbers -------------------------------------------------------------


def _wald(draw: Any, other: Any, mean: Any, scale: Any) -> Any:
    # J. R. Michael, W. R. Schucany, R. W. Haas, Generating random variates using transformations
    # with multiple roots (1976); 1 + w less the root is 1 over their sum.
    normal = draw.normal()
    w = normal * normal * (mean / (2.0 * scale))
    ratio = 1.0 + w + np.sqrt(w * (w + 2.0))
    first = np.less_equal(other.uniform() * (1.0 + ratio), ratio)
    return np.where(first, mean / ratio, mean * ratio)


def _quotient(above: Any, below: Any) -> Any:
    """Infinite where gamma numbers of tiny shapes vanish: NumPy's generator warns of no zeros."""
    vanishes = np.equal(below, 0.0)
    finite = above / np.where(vanishes, 1.0, below)
    return np.where(vanishes, np.copysign(np.inf, above), finite)


def _chisquare(draw: Any, df: Any) -> Any:
    return 2.0 * draw.accepted("gamma", df * 0.5)


def _noncentral_chisquare(draw: Any, other: Any, df: Any, nonc: Any) -> Any:
    return _chisquare(other, df + 2.0 * draw.accepted("poisson", nonc * 0.5))


def _f(draw: Any, other: Any, dfnum: Any, dfden: Any) -> Any:
    return _quotient(_chisquare(draw, dfnum) * dfden, _chisquare(other, dfden) * dfnum)


def _noncentral_f(draw: Any, other: Any, third: Any, dfnum: Any, dfden: Any, nonc: Any) -> Any:
    above = _noncentral_chisquare(draw, other, dfnum, nonc) * dfden
    return _quotient(above, _chisquare(third, dfden) * dfnum)


def _standard_t(draw: Any, other: Any, df: Any) -> Any:
    above = np.sqrt(df * 0.5) * draw.normal()
    return _quotient(above, np.sqrt(other.accepted("gamma", df * 0.5)))


_LEAST_SHAPE: Final = 1e-290


def scaled_gamma(draw: Any, other: Any, shape: Any) -> tuple[Any, Any]:
    """Gamma numbers of any shape as products of a number and of the exponential of another, which
    does not vanish where the shape is small."""
    if type(shape) is float and shape >= 1.0:
        return draw.accepted("gamma", shape), 0.0
    small = np.less(shape, 1.0)
    numbers = draw.accepted("gamma", np.where(small, shape + 1.0, shape))
    lowered = np.log(other.positive()) / np.maximum(shape, _LEAST_SHAPE)
    return numbers, np.where(small, lowered, 0.0)


def _beta(draw: Any, other: Any, third: Any, fourth: Any, a: Any, b: Any) -> Any:
    (one, first), (two, second) = scaled_gamma(draw, other, a), scaled_gamma(third, fourth, b)
    larger = np.maximum(first, second)
    one, two = one * np.exp(first - larger), two * np.exp(second - larger)
    return one / (one + two)


def _vonmises(draw: Any, mu: Any, kappa: Any) -> Any:
    angle = 2.0 * np.arctan(draw.accepted("von_mises", kappa)) + mu
    turned = np.fmod(np.abs(angle) + np.pi, 2.0 * np.pi) - np.pi
    return np.where(np.less(angle, 0.0), 0.0 - turned, turned)


# -- what NumPy asks of several parameters together -----------------------------------------------

_MOST_EVENTS: Final = np.iinfo(np.int64).max - np.sqrt(np.iinfo(np.int64).max) * 10
"""NumPy's bound of the mean of a Poisson distribution."""

_MOST_OF_A_KIND: Final = 10**9


def _failures(n: Any, p: Any) -> tuple[type[Exception], str] | None:
    mean = (1.0 - p) / p * (n + 10.0 * np.sqrt(n))
    for bad, text in (
        (np.isnan(n), "n must not be NaN"),
        (np.less_equal(n, 0), "n <= 0"),
        (np.logical_not(np.logical_and(np.greater(p, 0), np.less_equal(p, 1))),
         "p <= 0, p > 1 or p contains NaNs"),
        (np.greater(mean, _MOST_EVENTS),
         "n too large or p too small, see Generator.negative_binomial Notes"),
    ):  # fmt: skip
        if _any(bad):
            return ValueError, text
    return None


def _kinds(good: Any, bad: Any, sample: Any) -> tuple[type[Exception], str] | None:
    for wrong, text in (
        (np.less(good, 0), "ngood < 0"),
        (np.less(bad, 0), "nbad < 0"),
        (np.less(sample, 0), "nsample < 0"),
        (np.greater_equal(np.maximum(good, bad), _MOST_OF_A_KIND),
         f"both ngood and nbad must be less than {_MOST_OF_A_KIND}"),
        (np.less(good + bad, sample), "ngood + nbad < nsample"),
    ):  # fmt: skip
        if _any(wrong):
            return ValueError, text
    return None


# -- what is drawn until it is accepted, and no more --------------------------------------------

EXACT: Final = 2.0**53
"""Below it floats are whole numbers' own."""


def _gamma_asked(shape: float, scale: float = 1.0) -> Drawn | None:
    is_good = 0.0 < shape < np.inf and 0.0 < scale < np.inf
    return ("gamma", (float(shape),), 0.0, float(scale), False) if is_good else None


def _chisquare_asked(df: float) -> Drawn | None:
    return _gamma_asked(df * 0.5, 2.0)


def _poisson_asked(mean: float) -> Drawn | None:
    return ("poisson", (float(mean),), 0.0, 1.0, True) if 0.0 <= mean < EXACT else None


def _binomial_asked(n: int, p: float) -> Drawn | None:
    if not (0 <= n < EXACT and 0.0 <= p <= 1.0):
        return None
    if p > 0.5:
        return "binomial", (float(n), 1.0 - p), float(n), -1.0, True
    return "binomial", (float(n), float(p)), 0.0, 1.0, True


def _hypergeometric_asked(good: int, bad: int, sample: int) -> Drawn | None:
    rest = good + bad - sample
    if not (0 <= good < _MOST_OF_A_KIND and 0 <= bad < _MOST_OF_A_KIND and sample >= 0 <= rest):
        return None
    count = min(sample, rest)
    start, sign = (count, -1) if good > bad else (0, 1)
    if rest < sample:
        start, sign = good - start, -sign
    numbers = float(min(good, bad)), float(max(good, bad)), float(count)
    return "hypergeometric", numbers, float(start), float(sign), True


def _zipf_asked(a: float) -> Drawn | None:
    return ("zipf", (float(a),), 0.0, 1.0, True) if 1.0 < a < np.inf else None


# -- the table ------------------------------------------------------------------------------------

@frozen
class Distribution:
    """A formula on a draw and the parameters, and what is wrong with parameters that are arrays.

    `checked` are the places of the parameters whose values the check looks at: those of lazy arrays
    are computed then, as NumPy raises at the call. Without a check NumPy's method is asked about
    the extremes of each. `whole` are the places of those that are int64. `draws` says how many
    draws the formula gets, `weight` what the host takes for a number, in additions; `is_wide` that
    float32 cannot stand for float64. `few` says of good numbers as parameters what the compiled
    part draws of them, and None of others.
    """

    formula: Callable[..., Any]
    check: Check | None = _nothing
    checked: tuple[int, ...] = ()
    whole: tuple[int, ...] = ()
    draws: int = 1
    weight: float = 14.0
    is_wide: bool = False
    few: Callable[..., Drawn | None] | None = None


def _new(
    formula: Callable[..., Any],
    parameters: int,
    weight: float,
    draws: int = 1,
    *,
    check: Check | None = None,
    whole: tuple[int, ...] = (),
    is_wide: bool = False,
    few: Callable[..., Drawn | None] | None = None,
) -> Distribution:
    places = tuple(range(parameters))
    return Distribution(formula, check, places, whole, draws, weight, is_wide, few)


DISTRIBUTIONS: Final[dict[str, Distribution]] = {
    "uniform": Distribution(
        lambda draw, low, high: low + (high - low) * draw.uniform(), _range, (0, 1)
    ),
    "normal": Distribution(
        lambda draw, loc, scale: loc + scale * draw.normal(), _non_negative(1, "scale"), (1,)
    ),
    "lognormal": Distribution(
        lambda draw, mean, sigma: np.exp(mean + sigma * draw.normal()),
        _non_negative(1, "sigma"),
        (1,),
    ),
    "exponential": Distribution(
        lambda draw, scale: scale * exponential(draw), _non_negative(0, "scale"), (0,)
    ),
    "laplace": Distribution(
        lambda draw, loc, scale: loc + scale * _laplace(draw), _non_negative(1, "scale"), (1,)
    ),
    "logistic": Distribution(
        lambda draw, loc, scale: loc + scale * _logistic(draw), _non_negative(1, "scale"), (1,)
    ),
    "gumbel": Distribution(
        lambda draw, loc, scale: loc + scale * _gumbel(draw), _non_negative(1, "scale"), (1,)
    ),
    "rayleigh": Distribution(
        lambda draw, scale: scale * _rayleigh(draw), _non_negative(0, "scale"), (0,)
    ),
    "weibull": Distribution(_weibull, _non_negative(0, "a"), (0,)),
    "pareto": Distribution(lambda draw, a: np.expm1(exponential(draw) / a), _positive, (0,)),
    "power": Distribution(_power, _positive, (0,)),
    "triangular": Distribution(_triangular, _sides, (0, 1, 2)),
    "standard_cauchy": Distribution(lambda draw: np.tan(np.pi * (draw.inner() - 0.5))),
    "bernoulli": Distribution(
        lambda draw, p: np.less(draw.uniform(), p).astype(np.int64), _probability, (0,)
    ),
    "geometric": _new(_geometric, 1, 60, is_wide=True),
    "logseries": _new(_logseries, 1, 90, 2, is_wide=True),
    "poisson": _new(_poisson, 1, 90, is_wide=True, few=_poisson_asked),
    "negative_binomial": _new(_negative_binomial, 2, 160, 2, check=_failures, is_wide=True),
    "binomial": _new(binomial, 2, 110, whole=(0,), is_wide=True, few=_binomial_asked),
    "hypergeometric": _new(
        hypergeometric, 3, 260, check=_kinds, whole=(0, 1, 2), is_wide=True,
        few=_hypergeometric_asked,
    ),
    "zipf": _new(
        lambda draw, a: draw.accepted("zipf", a).astype(np.int64), 1, 140, is_wide=True,
        few=_zipf_asked,
    ),
    "wald": _new(_wald, 2, 60, 2),
    "standard_gamma": _new(
        lambda draw, shape: draw.accepted("gamma", shape), 1, 60, few=_gamma_asked
    ),
    "standard_gamma float32": _new(
        lambda draw, shape: draw.accepted("gamma", shape, dtype=FLOAT32), 1, 60
    ),
    "gamma": _new(
        lambda draw, shape, scale: scale * draw.accepted("gamma", shape), 2, 60, few=_gamma_asked
    ),
    "chisquare": _new(_chisquare, 1, 60, few=_chisquare_asked),
    "noncentral_chisquare": _new(_noncentral_chisquare, 2, 160, 2, is_wide=True),
    "f": _new(_f, 2, 120, 2),
    "noncentral_f": _new(_noncentral_f, 3, 220, 3, is_wide=True),
    "standard_t": _new(_standard_t, 1, 90, 2),
    "beta": _new(_beta, 2, 200, 4),
    "vonmises": _new(_vonmises, 2, 110, is_wide=True),
}
