"""How far a correct library may be from NumPy at each element; the runner asks after each step.

The bounds live in arrays of their own (float64; complex128 for complex variables, one bound for
each part) that have the shape, and alias in the way, of the values: a statement that moves values
is simply executed a second time on the bounds. Arithmetic gets a bound by first-order error
analysis. A bound of zero means: the same bits. What would amplify an inexact value without limit
(comparison, rounding, a cast to integers, division by something near zero) raises `Unbounded`, and
the generator takes another step instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Both NumPy and clfuse are within 4 units of the exact result.
TRANSCENDENTAL_ULPS = 8.0
HALF_EPS = float(np.finfo(np.float16).eps)
HALF_ULPS = 2.0     # float16 goes through float32 on both sides
COMPLEX_ULPS = 32.0  # in units of the modulus; a complex function is several real ones
LIBRARY_ULPS = 2.0  # a product with a constant
UNSIGNED_ZERO = 5e-324  # for zeros whose sign the standard leaves open

EXACT = frozenset("""
    add subtract multiply divide true_divide floor_divide remainder mod fmod divmod negative
    positive absolute abs fabs sign rint floor ceil trunc sqrt square reciprocal equal not_equal
    less less_equal greater greater_equal logical_and logical_or logical_xor logical_not
    bitwise_and bitwise_or bitwise_xor invert left_shift right_shift maximum minimum fmax fmin
    isnan isinf isfinite signbit copysign nextafter spacing heaviside gcd lcm ldexp frexp modf
    conjugate conj bitwise_count clip where
""".split())
UNSIGNED_ZEROS = frozenset("maximum minimum fmax fmin clip".split())
NEARLY_EXACT = frozenset("deg2rad rad2deg degrees radians".split())
# Their derivative is at most 1 everywhere, so a bound passes through unchanged.
CONTRACTIONS = frozenset("sin cos tanh arctan arcsinh".split())
PASSING = frozenset("maximum minimum clip where".split())
EXACT_FOR_COMPLEX = frozenset("""
    add subtract negative positive conjugate conj equal not_equal less less_equal greater
    greater_equal logical_and logical_or logical_xor logical_not isnan isinf isfinite where
    maximum minimum
""".split())


class Unbounded(Exception):
    """No useful bound: the generator leaves such a step out, the shrinker such a program."""


def no_bound(value: Any) -> Array:
    """Zero bounds with the layout of a value, so that views of them alias as views of it do."""
    dtype = "complex128" if np.asarray(value).dtype.kind == "c" else "float64"
    return np.zeros_like(value, dtype=dtype, subok=False)


def like(value: Any, bound: Any) -> Array:
    """These bounds in the layout of `value`."""
    made = no_bound(value)
    assign(made, bound)
    return made


def assign(target: Array, bound: Any, where: Any = True) -> None:
    """Write bounds on numbers into bounds of an array, for both parts of complex ones."""
    amount = np.abs(bound)
    parts = (target.real, target.imag) if target.dtype.kind == "c" else (target,)
    for part in parts:
        np.copyto(part, amount, where=where)


def is_exact(bounds: Sequence[Array]) -> bool:
    return not any(np.any(b) for b in bounds)


def spacing(result: Array) -> Array:
    """One unit in the last place of each element (of the modulus, if complex), as float64."""
    if result.dtype.kind == "c":
        parts = result.real.dtype
        result = np.maximum(np.abs(result.real), np.abs(result.imag)).astype(parts)
    finite = np.where(np.isfinite(result), result, 0)
    return np.abs(np.spacing(finite.astype(result.dtype))).astype(np.float64)


def for_ufunc(name: str, inputs: Sequence[Any], bounds: Sequence[Array], result: Array) -> Array:
    """Bounds of ``name(*inputs)``, whose value under NumPy is `result`, in no special layout."""
    result = np.asarray(result)
    values = [np.asarray(i) for i in inputs]
    exact = is_exact(bounds)
    if result.dtype.kind not in "fc":
        if not exact:
            raise Unbounded(f"{name} of inexact values gives {result.dtype}")
        if any(v.dtype.kind == "c" for v in values) and name not in EXACT_FOR_COMPLEX:
            raise Unbounded(f"{name} of complex values gives {result.dtype}")
        return np.zeros(result.shape)
    sizes = [np.abs(b) for b in bounds]
    if result.dtype.kind == "c" or any(v.dtype.kind == "c" for v in values):
        return _complex(name, values, sizes, result, exact)
    if exact:
        if name in EXACT:
            bound = np.zeros(result.shape)
            if name in UNSIGNED_ZEROS:
                bound[result == 0] = UNSIGNED_ZERO
            return bound
        if name in NEARLY_EXACT:
            bound = LIBRARY_ULPS * spacing(result)
        elif name == "power" and result.dtype.kind in "iu":
            bound = np.zeros(result.shape)
        else:
            ulps = HALF_ULPS if result.dtype.itemsize == 2 else TRANSCENDENTAL_ULPS
            bound = ulps * spacing(result)
        # Infinity and NaN are decided by the inputs alone, unless the result is next to overflow.
        return np.where(_next_to_overflow(result), np.inf,
                        np.where(np.isfinite(result), bound, 0.0))
    with np.errstate(all="ignore"):
        bound = _propagated(name, values, sizes, result)
    return _unknown_where_not_finite(bound, result)


def _next_to_overflow(result: Array) -> Array:
    return np.isfinite(result) & (np.abs(result) > np.finfo(result.dtype).max / 2)


def _unknown_where_not_finite(bound: Array, result: Array) -> Array:
    bound = np.where(np.isfinite(bound), bound, np.inf)
    return np.where(np.isfinite(result) & ~_next_to_overflow(result), bound, np.inf)


def _propagated(name: str, values: Sequence[Array], sizes: Sequence[Array],
                result: Array) -> Array:
    one = spacing(result)
    if name in ("add", "subtract"):
        return sizes[0] + sizes[1] + one
    if name == "multiply":
        a, b = (np.abs(v.astype(np.float64)) for v in values)
        return a * sizes[1] + b * sizes[0] + sizes[0] * sizes[1] + one
    if name == "square":
        return 2 * np.abs(values[0].astype(np.float64)) * sizes[0] + sizes[0] ** 2 + one
    if name in ("divide", "true_divide"):
        a, b = (np.abs(v.astype(np.float64)) for v in values)
        if np.any(b <= 4 * sizes[1]):
            raise Unbounded("a divisor that may be zero")
        return (sizes[0] + a / b * sizes[1]) / (b - sizes[1]) + one
    if name in ("negative", "positive", "absolute", "abs", "fabs"):
        return sizes[0] + 0.0
    if name in PASSING:
        arrays = sizes[1:] if name == "where" else sizes
        bound = np.maximum.reduce([np.broadcast_to(s, result.shape) for s in arrays])
        return bound + np.where(bound > 0, one, np.where(result == 0, UNSIGNED_ZERO, 0))
    if name in CONTRACTIONS:
        return sizes[0] + TRANSCENDENTAL_ULPS * one
    raise Unbounded(f"{name} of inexact values")


def _complex(name: str, values: Sequence[Array], sizes: Sequence[Array], result: Array,
             exact: bool) -> Array:
    """Bounds on the modulus of the error, for functions that take or give complex numbers."""
    if exact and name in EXACT_FOR_COMPLEX:
        return np.zeros(result.shape)
    finite = np.isfinite(result)
    with np.errstate(all="ignore"):
        if name in ("add", "subtract"):
            bound = sizes[0] + sizes[1] + 2 * spacing(result)
        elif name in ("negative", "positive", "conjugate", "conj"):
            bound = sizes[0] + 0.0
        elif name in ("multiply", "square"):
            # NumPy contracts complex products on some machines, so parts that cancel are inexact.
            both = values if name == "multiply" else (values[0], values[0])
            spread = sizes if name == "multiply" else (sizes[0], sizes[0])
            a, b = (np.abs(v.astype(np.complex128)) for v in both)
            unit = np.finfo(result.dtype).eps
            bound = (4 * unit * a * b + a * spread[1] + b * spread[0] + spread[0] * spread[1]
                     + 4 * spacing(result))
        elif name in ("absolute", "abs"):
            bound = sizes[0] + 4 * spacing(result)
        elif exact:
            unit = float(np.finfo(result.dtype).eps)
            bound = (HALF_ULPS if result.dtype.itemsize == 2 else COMPLEX_ULPS) * (
                spacing(result) + unit * np.abs(result).astype(np.float64))
            if name in ("power", "float_power"):
                # exp(b log a): what the product is off by is a relative error of the result.
                turns = np.abs(values[1]) * np.abs(np.log(values[0].astype(np.complex128)))
                bound = bound * (1 + np.where(np.isfinite(turns), turns, 0))
        else:
            raise Unbounded(f"{name} of inexact complex values")
    if exact and name not in ("divide", "true_divide", "multiply", "square"):
        # Special values of complex functions have tests of their own.
        bound = np.where(finite, bound, np.inf)
    return np.where(finite & np.isfinite(bound), bound, np.inf)


def for_reduction(name: str, value: Array, bound: Array, result: Array, axis: Any, *,
                  where: Any = True, ddof: int = 0, initial: Any = None) -> Array:
    """Bounds of a reduction of `value` (already cast to the dtype that it is done in)."""
    value, result = np.asarray(value), np.asarray(result)
    exact = is_exact([bound])
    keep = result.ndim == value.ndim and result.ndim > 0
    if result.dtype.kind not in "fc":
        if not exact:
            raise Unbounded(f"{name} of inexact values gives {result.dtype}")
        return np.zeros(result.shape)
    kept = np.broadcast_to(np.asarray(where, dtype=bool), value.shape)
    size = np.where(kept, np.abs(bound), 0.0)

    def total(numbers: Array, function: Any = np.add) -> Array:
        return np.asarray(function.reduce(numbers, axis=_axes(axis, value.ndim), keepdims=keep))

    if name in ("max", "min", "amax", "amin"):
        if value.dtype.kind == "c" and not exact:
            raise Unbounded("the order of inexact complex values")
        most = np.asarray(np.maximum.reduce(size, axis=_axes(axis, value.ndim), keepdims=keep,
                                            initial=0.0))
        if value.dtype.kind == "c":
            # Of several that are no numbers it is one, which depends on the order.
            most = np.where(total(kept & np.isnan(value)) > 1, np.inf, most)
        return np.where(result == 0, np.maximum(most, UNSIGNED_ZERO), most)
    with np.errstate(all="ignore"):
        wide = np.where(kept, np.abs(value).astype(np.float64), 0.0)
        broken = np.asarray(~np.isfinite(value)) & kept
        count = np.maximum(total(kept.astype(np.float64)), 1.0)
        unit = float(np.finfo(result.dtype).eps)
        # Errors of a sum of n terms grow like sqrt(n) in practice, in whatever order it is done.
        rounding = 4 * unit * (np.sqrt(count) + 4)
        magnitude = total(np.where(np.isfinite(wide), wide, 0.0))
        if initial is not None:
            magnitude = magnitude + np.abs(initial)
        most = total(np.where(np.isfinite(wide), wide, 0.0), np.maximum) if wide.size else 0.0
        limit = float(np.finfo(result.dtype).max) / 4
        if name in ("sum", "mean"):
            finite = np.where(kept & np.isfinite(value), value, 0)
            free = exact and _sums_exactly(finite, result.dtype) and initial is None
            made = total(size) + (0.0 if free and name == "sum" else rounding * magnitude)
            if free and name == "mean":
                made = np.asarray(LIBRARY_ULPS * spacing(result))
            if name == "mean" and not free:
                made = made / count + spacing(result)
            # The sign of a zero sum depends on the order.
            made = np.where(result == 0, np.maximum(made, UNSIGNED_ZERO), made)
            overflows = magnitude > limit
        elif name == "prod":
            if not exact:
                raise Unbounded("a product of inexact values")
            made = rounding * np.abs(result).astype(np.float64)
            made = made + 4 * count * spacing(result)
            logs = np.where(kept & (wide > 0) & np.isfinite(wide), np.abs(np.log2(wide)), 0.0)
            # In some order of multiplication an intermediate may overflow or vanish.
            overflows = total(logs) > np.finfo(result.dtype).maxexp - 2
        elif name in ("var", "std"):
            if not exact:
                raise Unbounded("a variance of inexact values")
            made = _variance_bound(name, result, rounding, most, ddof, count)
            overflows = most ** 2 * count > limit
        else:
            raise Unbounded(f"no bound is known for {name}")
        hurt = np.asarray(total(broken.astype(np.float64)) > 0)
        made = np.where(overflows, np.inf, made)
        if name in ("sum", "mean", "prod") and exact and value.dtype.kind != "c":
            # Infinity and NaN come out alike in every order, if nothing else overflowed.
            made = np.where(hurt, np.where(overflows, np.inf, 0.0), made)
        else:
            made = np.where(hurt, np.inf, made)
        lost = ~np.isfinite(result) & ~hurt
    if np.any(lost & (count <= ddof)):
        lost = lost & (count > ddof)  # 0/0 on both sides
        made = np.where(count <= ddof, 0.0, made)
    nothing = total(kept.astype(np.float64)) == 0
    made = np.where(lost & ~nothing, np.inf, made)
    return np.where(nothing, np.where(result == 0, UNSIGNED_ZERO, 0.0), made)


def for_scan(name: str, value: Array, bound: Array, result: Array, axis: int) -> Array:
    """Bounds of a scan of `value` (already cast to the dtype that it is done in)."""
    if value.ndim == 0:
        value, bound = value.reshape(1), np.asarray(bound).reshape(1)
    exact = is_exact([bound])
    if result.dtype.kind not in "fc" or name != "add" or result.dtype.char == "e":
        if not exact:
            raise Unbounded(f"{name} along an axis of inexact values")
        if result.dtype.kind == "c" or (result.dtype.kind == "f" and name == "maximum"):
            raise Unbounded("which of two equal numbers comes out, or how products are fused")
        finite = np.where(np.isfinite(value), value, 0)
        if name != "add" or result.dtype.char != "e" or _sums_exactly(finite, result.dtype):
            return np.zeros(result.shape)
        # NumPy rounds after each element: sums of ones end at 2048. Sums of pieces do not.
        wide = np.add.accumulate(finite.astype(np.float64), axis=axis)
        sizes = np.add.accumulate(np.abs(finite).astype(np.float64), axis=axis)
        with np.errstate(all="ignore"):
            made = np.abs(result.astype(np.float64) - wide) + 64 * HALF_EPS * sizes
        return np.where(np.isfinite(made), made, np.inf)

    def total(numbers: Array) -> Array:
        return np.asarray(np.add.accumulate(numbers, axis=axis))

    with np.errstate(all="ignore"):
        finite = np.where(np.isfinite(value), value, 0)
        magnitude = total(np.abs(finite).astype(np.float64))
        count = total(np.ones(value.shape))
        rounding = 4 * float(np.finfo(result.dtype).eps) * (np.sqrt(count) + 4)
        made = total(np.abs(bound).astype(np.float64))
        if not (exact and _sums_exactly(finite, result.dtype)):
            made = made + rounding * magnitude
            made = np.where(result == 0, np.maximum(made, UNSIGNED_ZERO), made)
        overflows = magnitude > float(np.finfo(result.dtype).max) / 4
        hurt = total(np.asarray(~np.isfinite(value)).astype(np.float64)) > 0
        # Infinity and NaN come out alike in every order, if nothing else overflowed.
        kept = 0.0 if exact and value.dtype.kind != "c" else np.inf
        made = np.where(hurt, kept, made)
        return np.where(overflows | (~np.isfinite(result) & ~hurt), np.inf, made)


def _axes(axis: Any, ndim: int) -> Any:
    return tuple(range(ndim)) if axis is None else axis


def _sums_exactly(value: Array, dtype: np.dtype[Any]) -> bool:
    """Whether every partial sum is a small multiple of 1/8, so that the order does not matter."""
    if value.dtype.kind not in "fc":
        return float(np.sum(np.abs(value.astype(np.float64)))) < 2.0 ** np.finfo(dtype).nmant
    parts = (value.real, value.imag) if value.dtype.kind == "c" else (value,)
    for part in parts:
        eighths = part.astype(np.float64) * 8
        if np.any(eighths != np.rint(eighths)):
            return False
        if float(np.sum(np.abs(eighths))) >= 2.0 ** np.finfo(dtype).nmant:
            return False
    return True


def _variance_bound(name: str, result: Array, rounding: Array, most: Array, ddof: int,
                    count: Array) -> Array:
    variance = np.abs(result).astype(np.float64)
    if name == "std":
        variance = variance ** 2
    scale = count / np.maximum(count - ddof, 1.0)
    spread = np.sqrt(variance)
    off = scale * ((rounding * most) ** 2 + rounding * most * spread) + rounding * variance
    if name == "var":
        return np.asarray(off + spacing(result))
    return np.asarray(np.sqrt(variance + off) - np.sqrt(np.maximum(variance - off, 0.0))
                      + 2 * spacing(result))
