"""Draws from `formulas.DISTRIBUTIONS`: parameters, shapes, NumPy's errors, arrays drawn into."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from clfuse._core import loading
from clfuse.arrays import handle as handles
from clfuse.arrays.conversion import NotNative, from_host, host_scalar
from clfuse.arrays.expressions import broadcast_shapes, shape_text
from clfuse.arrays.handle import Handle, native_dtype, node_of
from clfuse.arrays.host_array import known_elements
from clfuse.arrays.promotion import FLOAT64, INT64
from clfuse.engine.evaluate import evaluate_nodes
from clfuse.ir.size_limits import ADDRESSABLE_NBYTES, require_room

from . import formulas
from .bits import Draw, Philox4x32, SingleDraw, as_array
from .formulas import DISTRIBUTIONS, Distribution
from .single_draws import single
from .small_draws import made_here

_core: Final = loading.load()


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


def _parameter(value: Any, dtype: np.dtype) -> Any:
    """A parameter of float64 or int64: a Python number or a lazy scalar, or an array, where it has
    axes."""
    if isinstance(value, Handle):
        if not np.can_cast(value._dtype, dtype, "safe") and value._shape:
            raise TypeError(
                f"Cannot cast array data from {value._dtype!r} to {dtype!r} according to "
                "the rule 'safe'"
            )
        return value.astype(dtype, copy=False)
    array = np.asarray(value)
    if array.ndim == 0:
        return value
    return array.astype(dtype, casting="safe")


def ends(value: Any) -> np.ndarray:
    """What NumPy's checks of ranges find in an array, as four numbers: extremes, NaN, and -0. Of an
    empty array there are none, in a shape that goes with those of the others."""
    dtype = value.dtype
    flat = value.reshape(-1)
    if not len(flat):
        return np.empty((0, 1), dtype)
    parts = [np.fmin.reduce(flat), np.fmax.reduce(flat)]
    if dtype.kind == "f":
        is_zero = np.logical_and(np.equal(flat, 0), np.signbit(flat))
        parts += [np.isnan(flat).any(), is_zero.any()]
    recorded = [node_of(part) for part in parts if isinstance(part, Handle)]
    if recorded:
        evaluate_nodes(recorded)
    least, most, *special = [_host_number(part) for part in parts]
    odd = [number for number, there in zip((np.nan, -0.0), special, strict=False) if there]
    return np.array([least, most, *odd, *[least] * (2 - len(odd))], dtype)


def _is_array(value: Any) -> bool:
    return isinstance(value, Handle | np.ndarray) and bool(value.shape)


def _host_number(value: Any) -> Any:
    return host_scalar(value) if isinstance(value, Handle) else value


_Scaled = tuple[float, float]


def _between(low: float, high: float) -> _Scaled | None:
    return (low, high - low) if 0.0 < high - low < math.inf else None


def _around(loc: float, scale: float) -> _Scaled | None:
    return (loc, scale) if scale > 0.0 else None


def _from_zero(scale: float) -> _Scaled | None:
    return (0.0, scale) if scale > 0.0 else None


LINEAR: Final[dict[str, tuple[str, Callable[..., _Scaled | None]]]] = {
    "uniform": ("uniform", _between),
    "normal": ("normal", _around),
    "exponential": ("exponential", _from_zero),
    "rayleigh": ("rayleigh", _from_zero),
    "laplace": ("laplace", _around),
    "logistic": ("logistic", _around),
    "gumbel": ("gumbel", _around),
}
"""Distributions that scale numbers without parameters: which, and where these begin and how much
they are scaled; None for parameters that NumPy has to look at."""


def _few_of(name: str, generator: Philox4x32, parameters: Sequence[Any], size: Any) -> Any:
    """`sample` of a small draw, or of one number, by arithmetic alone; None where it takes more."""
    numbers, scaled = LINEAR[name]
    formula = formulas.STANDARD.get(numbers)
    if formula is not None and (size is not None or _core is None):
        return None
    for value in parameters:
        if type(value) is not float and type(value) is not int:
            return None
    found = scaled(*map(float, parameters))
    if found is None:
        return None
    start, scale = found
    if formula is not None:
        return start + scale * single(generator, formula, ())
    if size is None:
        return start + scale * generator.number(numbers)
    return generator.few(numbers, size, start, scale)


_MOST_EXAMINED: Final = 256

_EXAMINED: Final[dict[Any, None]] = {}
"""Numbers that NumPy's methods found to be good: asking takes 1 us and more."""


def _examine(examiner: Callable[..., Any], parameters: tuple[Any, ...]) -> None:
    """Have NumPy raise what is wrong with parameters that are Python's numbers."""
    about = examiner, parameters, tuple(map(type, parameters))
    if about not in _EXAMINED or 0 in parameters:  # -0.0 is equal to 0.0, and refused
        examiner(*parameters, 0)
        if len(_EXAMINED) >= _MOST_EXAMINED:
            _EXAMINED.clear()
        _EXAMINED[about] = None


def _few_drawn(
    row: Distribution, generator: Philox4x32, parameters: Sequence[Any], size: Any
) -> Any:
    """`sample` of a small draw, or of one number, that the compiled part makes; None where it takes
    more."""
    for place, value in enumerate(parameters):
        if type(value) is not int and (type(value) is not float or place in row.whole):
            return None
    assert row.few is not None
    asked = row.few(*parameters)
    if asked is None or handles.lacks_fp64():
        return None
    if size is None:
        return generator.drawn(asked)
    return generator.few_drawn(size, row.weight, asked)


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
    if row.few is not None and (few := _few_drawn(row, generator, parameters, size)) is not None:
        return few
    if name in LINEAR and (few := _few_of(name, generator, parameters, size)) is not None:
        return few
    if row.is_wide and handles.lacks_fp64():
        raise NotNative("in double precision, which the device has not")
    kinds = [INT64 if place in row.whole else FLOAT64 for place in range(len(parameters))]
    if all(type(value) is float or type(value) is int for value in parameters):
        if examiner is not None:
            _examine(examiner, tuple(parameters))
        given = [_number(value, kind) for value, kind in zip(parameters, kinds, strict=True)]
        return _of_numbers(row, generator, given, size)
    given = [_parameter(value, kind) for value, kind in zip(parameters, kinds, strict=True)]
    shape = requested_size(size)
    arrays = [value for value in given if _is_array(value)]
    if not arrays and (shape is None or row.checked):
        given = [
            _host_number(value) if shape is None or place in row.checked else value
            for place, value in enumerate(given)
        ]
    if arrays:
        known = _known(given, kinds)
        _check(row, examiner, known or given)
        shape = _full_shape(broadcast_shapes(*[tuple(value.shape) for value in arrays]), size)
        if known is not None:
            made = made_here(generator, shape, row.draws, row.weight, row.formula, known)
            if made is not None:
                return made
    elif examiner is not None:
        examiner(*[0.0 if isinstance(value, Handle) else value for value in given], 0)
    given = [
        value if _is_array(value) else _number(value, kind)
        for value, kind in zip(given, kinds, strict=True)
    ]
    if not arrays and not any(isinstance(value, Handle) for value in given):
        return _of_numbers(row, generator, given, shape)
    assert shape is not None
    draws = [Draw(generator, shape, row.weight) for _ in range(row.draws)]
    lazy = [from_host(value) if isinstance(value, np.ndarray) else value for value in given]
    return as_array(row.formula(*draws, *lazy))


_MOST_KNOWN: Final = 4096


def _known(given: Sequence[Any], kinds: Sequence[np.dtype]) -> list[Any] | None:
    """Parameters with small arrays as NumPy's; None where some are not, or are not on the host."""
    known: list[Any] = []
    for value, kind in zip(given, kinds, strict=True):
        if isinstance(value, Handle):
            value = known_elements(value) if value._shape else None
            if value is None:
                return None
        if not _is_array(value):
            value = _number(value, kind)
        elif value.size > _MOST_KNOWN:
            return None
        known.append(value)
    return known


def _check(row: Distribution, examiner: Callable[..., Any] | None, given: Sequence[Any]) -> None:
    """Raise NumPy's error for parameters some of which are arrays."""
    if row.check is not None:
        with np.errstate(all="ignore"):
            failure = row.check(*given)
        if failure is not None:
            raise failure[0](failure[1])
    elif examiner is not None:
        found = [ends(value) if _is_array(value) else _host_number(value) for value in given]
        # No number is drawn: NumPy before 2.1 looks for one of zipf(2000.0) without end.
        examiner(*found, (0, 4))


def _is_exact(parameter: Any) -> bool:
    """Whether a double holds it."""
    return type(parameter) is float or abs(parameter) < formulas.EXACT


def _of_numbers(
    row: Distribution, generator: Philox4x32, parameters: Sequence[Any], size: Any
) -> Any:
    """`sample` where the parameters are good numbers."""
    if size is None and _core is not None and all(map(_is_exact, parameters)):
        return single(generator, row.formula, tuple(parameters), row.draws)
    if size is None:
        singles = [SingleDraw(generator) for _ in range(row.draws)]
        with np.errstate(all="ignore"):
            return row.formula(*singles, *parameters).item()
    made = made_here(generator, size, row.draws, row.weight, row.formula, parameters)
    if made is not None:
        return made
    shape = requested_size(size)
    assert shape is not None
    draws = [Draw(generator, shape, row.weight) for _ in range(row.draws)]
    return as_array(row.formula(*draws, *parameters))


def _number(value: Any, kind: np.dtype) -> Any:
    """A scalar parameter, now known to be good: a Python number unless it is lazy."""
    if isinstance(value, Handle):
        return value
    return int(value) if kind is INT64 else float(value)


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
