"""Distributions as formulas on random numbers, with NumPy's checks of their parameters.

A formula gets a `Draw` or a `SingleDraw` and is written with NumPy's functions, which record lazy
operands and compute all others. All but the discrete ones are inverse distribution functions of one
uniform number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from clfuse.arrays import handle as handles
from clfuse.arrays.conversion import from_host, host_scalar
from clfuse.arrays.expressions import broadcast_shapes, shape_text
from clfuse.arrays.handle import Handle, native_dtype
from clfuse.arrays.promotion import FLOAT64
from clfuse.frozen import frozen
from clfuse.ir.size_limits import ADDRESSABLE_NBYTES, require_room

from .bits import Draw, Philox4x32, SingleDraw, as_array

Check = Callable[..., tuple[type[Exception], str] | None]


# -- what NumPy asks of parameters that are arrays ------------------------------------------------


def _any(mask: Any) -> bool:
    return bool(np.any(mask))


def _non_negative(place: int, name: str) -> Check:
    def check(*parameters: Any) -> tuple[type[Exception], str] | None:
        value = parameters[place]
        bad = np.logical_and(np.logical_not(np.isnan(value)), np.signbit(value))
        return (ValueError, f"{name} < 0") if _any(bad) else None

    return check


def _positive(name: str) -> Check:
    def check(value: Any) -> tuple[type[Exception], str] | None:
        return (ValueError, f"{name} <= 0") if _any(np.less_equal(value, 0)) else None

    return check


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


def _laplace(draw: Any, loc: Any, scale: Any) -> Any:
    u = draw.inner()
    return np.where(
        np.less(u, 0.5), loc + scale * np.log(2.0 * u), loc - scale * np.log(2.0 - 2.0 * u)
    )


def _logistic(draw: Any, loc: Any, scale: Any) -> Any:
    u = draw.inner()
    return loc + scale * np.log(u / (1.0 - u))


def _weibull(draw: Any, a: Any) -> Any:
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


@frozen
class Distribution:
    """A formula on a draw and the parameters, and what is wrong with parameters that are arrays.

    `checked` are the places of the parameters whose values the check looks at: those of lazy arrays
    are computed then, as NumPy raises at the call.
    """

    formula: Callable[..., Any]
    check: Check = _nothing
    checked: tuple[int, ...] = ()


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
    "laplace": Distribution(_laplace, _non_negative(1, "scale"), (1,)),
    "logistic": Distribution(_logistic, _non_negative(1, "scale"), (1,)),
    "gumbel": Distribution(
        lambda draw, loc, scale: loc - scale * np.log(0.0 - np.log(draw.inner())),
        _non_negative(1, "scale"),
        (1,),
    ),
    "rayleigh": Distribution(
        lambda draw, scale: scale * np.sqrt(2.0 * exponential(draw)),
        _non_negative(0, "scale"),
        (0,),
    ),
    "weibull": Distribution(_weibull, _non_negative(0, "a"), (0,)),
    "pareto": Distribution(lambda draw, a: np.expm1(exponential(draw) / a), _positive("a"), (0,)),
    "power": Distribution(_power, _positive("a"), (0,)),
    "triangular": Distribution(_triangular, _sides, (0, 1, 2)),
    "standard_cauchy": Distribution(lambda draw: np.tan(np.pi * (draw.inner() - 0.5))),
    "bernoulli": Distribution(
        lambda draw, p: np.less(draw.uniform(), p).astype(np.int64), _probability, (0,)
    ),
}


# -- drawing --------------------------------------------------------------------------------------


def requested_size(size: Any) -> tuple[int, ...] | None:
    """A `size` argument as a shape; None stays None. Errors as NumPy's generators raise them."""
    if size is None:
        return None
    if type(size) is int and 0 <= size <= ADDRESSABLE_NBYTES // 8:
        return (size,)
    from clfuse.arrays.views import requested_shape

    if isinstance(size, bool | np.bool_):
        raise TypeError(f"expected a sequence of integers or a single integer, got {str(size)!r}")
    shape = requested_shape(size)
    if any(extent < 0 for extent in shape):
        raise ValueError("negative dimensions are not allowed")
    return require_room(shape, FLOAT64)


def _parameter(value: Any) -> Any:
    """A parameter as float64: a Python float or a lazy scalar, or an array, where it has axes."""
    if isinstance(value, Handle):
        if not np.can_cast(value._dtype, np.float64, "safe"):
            raise TypeError(
                f"Cannot cast array data from {value._dtype!r} to dtype('float64') according to "
                "the rule 'safe'"
            )
        return value.astype(np.float64, copy=False)
    array = np.asarray(value)
    if array.ndim == 0:
        return value
    return array.astype(np.float64, casting="safe")


def _is_array(value: Any) -> bool:
    return isinstance(value, Handle | np.ndarray) and bool(value.shape)


def _host_number(value: Any) -> Any:
    return host_scalar(value) if isinstance(value, Handle) else value


def _is_extent(low: float, high: float) -> bool:
    return 0.0 < high - low < math.inf


def _is_scale(loc: float, scale: float) -> bool:
    return scale > 0.0


_LINEAR: Final[dict[str, tuple[str, Callable[..., bool], Callable[..., float]]]] = {
    "uniform": ("uniform", _is_extent, lambda low, high: high - low),
    "normal": ("normal", _is_scale, lambda loc, scale: scale),
}
"""Distributions that scale numbers made of bits and add their first parameter: which numbers, what
parameters NumPy need not look at, and how much they scale."""


def _few_of(name: str, generator: Philox4x32, parameters: Sequence[Any], size: Any) -> Any:
    """`sample` of a small draw, or of one number, by arithmetic alone; None where it takes more."""
    numbers, is_good, scaled = _LINEAR[name]
    for value in parameters:
        if type(value) is not float and type(value) is not int:
            return None
    first, second = map(float, parameters)
    if not is_good(first, second):
        return None
    scale = scaled(first, second)
    if size is None:
        return first + scale * generator.number(numbers)
    return generator.few(numbers, size, first, scale)


def sample(
    name: str,
    examiner: Callable[..., Any] | None,
    generator: Philox4x32,
    parameters: Sequence[Any],
    size: Any,
) -> Any:
    """Draw from `DISTRIBUTIONS[name]`.

    Parameters
    ----------
    name : str
    examiner : callable or None
        NumPy's own method; called for no numbers it says what is wrong with scalar parameters.
    generator : Philox4x32
    parameters : sequence of scalar or array_like
        Broadcast against each other and against `size`.
    size : None, int or tuple of ints

    Returns
    -------
    float or lazy array
        Of NumPy's shape; a Python number where all parameters are scalars and there is no size.

    Raises
    ------
    ValueError, OverflowError, TypeError
        What NumPy raises for these parameters and this size.
    """
    row = DISTRIBUTIONS[name]
    if name in _LINEAR and (few := _few_of(name, generator, parameters, size)) is not None:
        return few
    if all(type(value) is float or type(value) is int for value in parameters):
        if examiner is not None:
            examiner(*parameters, 0)
        return _of_numbers(row, generator, [float(value) for value in parameters], size)
    given = [_parameter(value) for value in parameters]
    shape = requested_size(size)
    arrays = [value for value in given if _is_array(value)]
    if not arrays and (shape is None or row.checked):
        given = [
            _host_number(value) if shape is None or place in row.checked else value
            for place, value in enumerate(given)
        ]
    if arrays:
        failure = row.check(*given)
        if failure is not None:
            raise failure[0](failure[1])
        shape = _full_shape(broadcast_shapes(*[tuple(value.shape) for value in arrays]), size)
    elif examiner is not None:
        examiner(*[0.0 if isinstance(value, Handle) else value for value in given], 0)
    given = [value if _is_array(value) else _as_float(value) for value in given]
    if not arrays and all(type(value) is float for value in given):
        return _of_numbers(row, generator, given, shape)
    if shape is None:
        with np.errstate(all="ignore"):
            return row.formula(SingleDraw(generator), *given).item()
    draw = Draw(generator, shape)
    lazy = [from_host(value) if isinstance(value, np.ndarray) else value for value in given]
    return as_array(row.formula(draw, *lazy))


def _of_numbers(
    row: Distribution, generator: Philox4x32, parameters: Sequence[float], size: Any
) -> Any:
    """`sample` where the parameters are good numbers."""
    if size is None:
        with np.errstate(all="ignore"):
            return row.formula(SingleDraw(generator), *parameters).item()
    shape = requested_size(size)
    assert shape is not None
    draw = Draw(generator, shape)
    made = draw.made_here(lambda here: row.formula(here, *parameters))
    return as_array(row.formula(draw, *parameters)) if made is None else made


def _as_float(value: Any) -> Any:
    """A scalar parameter, now known to be good: a Python float unless it is lazy."""
    return value if isinstance(value, Handle) else float(value)


def integers(generator: Philox4x32, low: int, high: int, shape: Any, dtype: np.dtype) -> Any:
    """Whole numbers from `low` to `high`, both included, of `dtype`; a Python int without a shape.

    No value is more than one part in 2**32 more frequent than another.
    """
    count = high - low + 1
    if shape is None:
        return low + generator.below(count)
    below = Draw(generator, shape).below(count)
    if low:
        below = below + np.uint64(low % (1 << 64))  # modulo 2**64, as is the cast
    return as_array(below.astype(dtype))


def integers_between(
    generator: Philox4x32, low: np.ndarray, high: np.ndarray, size: Any, dtype: np.dtype
) -> Any:
    """`integers` with arrays of bounds that NumPy found to be good."""
    shape = _full_shape(broadcast_shapes(low.shape, high.shape), size)
    first = low.astype(np.uint64)  # modulo 2**64, as are the sums and the cast
    counts = high.astype(np.uint64) - first + np.uint64(1)
    below = Draw(generator, shape).below_each(from_host(counts))
    return as_array((below + from_host(first)).astype(dtype))


def _full_shape(common: tuple[int, ...], size: Any) -> tuple[int, ...]:
    """The shape of a draw with parameters of the shape `common`; ValueError as NumPy's."""
    shape = requested_size(size)
    if shape is None:
        return common
    if broadcast_shapes(common, shape) != shape:
        raise ValueError(
            f"Output size {shape_text(shape)} is not compatible with broadcast dimensions of "
            f"inputs {shape_text(common)}."
        )
    return shape


def is_native_float(dtype: Any, name: str) -> np.dtype:
    """`dtype` as float64 or float32; TypeError as NumPy raises it for others."""
    wanted: np.dtype = np.dtype(dtype)
    found = native_dtype(wanted)
    if wanted not in (np.dtype(np.float64), np.dtype(np.float32)) or found is None:
        raise TypeError(f"Unsupported dtype {wanted!r} for {name}")
    return wanted


def check_output(out: Any) -> None:
    """NumPy's ValueError for an array that it does not draw into."""
    if not (out.flags.forc and out.flags.writeable):
        raise ValueError(
            "Supplied output array must be contiguous, writable, aligned, and in machine "
            "byte-order."
        )


def into(out: Any, size: Any, dtype: np.dtype) -> tuple[int, ...]:
    """The shape of what is drawn into `out`; NumPy's errors where it does not suit."""
    if not isinstance(out, Handle | np.ndarray):
        raise TypeError(f"Cannot convert {type(out).__name__} to numpy.ndarray")
    check_output(out)
    if isinstance(out, Handle):
        dtype = native_dtype(dtype) or dtype  # CLFUSE_FP64=downcast
    if out.dtype != dtype:
        raise TypeError(
            f"Supplied output array has the wrong type. Expected {dtype}, got {out.dtype}"
        )
    shape = tuple(out.shape)
    wanted = requested_size(size)
    if wanted is not None and wanted != shape:
        raise ValueError("size must match out.shape when used together")
    return shape


def deliver_draws(value: Any, out: Any) -> Any:
    """The numbers written into `out`."""
    if isinstance(out, np.ndarray):
        np.copyto(out, np.asarray(value))
    else:
        handles.write(out, handles.node_of(value))
    return out
