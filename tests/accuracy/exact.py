"""Exact values of the rounded functions, by mpmath, as longdouble (an error of 1/1000 of a double's
ulp). They are kept in files, by what they were calculated of.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import mpmath
import numpy as np
from mpmath import mpc, mpf
from numpy.typing import NDArray

from clfuse.tools.check.functions import Function

Array = NDArray[Any]

PRECISION: Final = 128
"""Bits of functions of floats, which mpmath calculates to as many as it is asked for."""

MORE_PRECISION: Final = 256
"""Where a formula cancels: it loses some 106 bits."""

CANCELLING: Final = ("gammaln", "logaddexp", "logaddexp2")

MOST_EXPONENT: Final = 16_000
"""Of a longdouble; everything beyond is infinity or 0 to all our dtypes."""

if np.finfo(np.longdouble).nmant < 63:
    raise ImportError("exact values want a longdouble with 64 bits")


def _log_of_sum(x: Any, y: Any) -> Any:
    big, small = max(x, y), min(x, y)
    return big + mpmath.log1p(mpmath.exp(small - big))


def _log2_of_sum(x: Any, y: Any) -> Any:
    big, small = max(x, y), min(x, y)
    return big + mpmath.log1p(mpmath.power(2, small - big)) / mpmath.log(2)


def _cbrt(x: Any) -> Any:
    return -mpmath.cbrt(-x) if x < 0 else mpmath.cbrt(x)


def _gammaln(x: Any) -> Any:
    if x > 30 or x < -1000:
        return mpmath.loggamma(x).real
    return mpmath.log(abs(mpmath.gamma(x)))


REAL: Final[dict[str, Callable[..., Any]]] = {
    "exp": mpmath.exp, "exp2": lambda x: mpmath.power(2, x), "expm1": mpmath.expm1,
    "log": mpmath.log, "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "log10": lambda x: mpmath.log(x) / mpmath.log(10), "log1p": mpmath.log1p,
    "sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan,
    "arcsin": mpmath.asin, "arccos": mpmath.acos, "arctan": mpmath.atan,
    "sinh": mpmath.sinh, "cosh": mpmath.cosh, "tanh": mpmath.tanh,
    "arcsinh": mpmath.asinh, "arccosh": mpmath.acosh, "arctanh": mpmath.atanh,
    "cbrt": _cbrt, "power": mpmath.power, "float_power": mpmath.power,
    "arctan2": mpmath.atan2, "hypot": mpmath.hypot,
    "logaddexp": _log_of_sum, "logaddexp2": _log2_of_sum,
    "erf": mpmath.erf, "erfc": mpmath.erfc, "gamma": mpmath.gamma, "gammaln": _gammaln,
    "sinc": lambda x: mpmath.sincpi(x),
}  # fmt: skip


def _log1p(z: Any) -> Any:
    return mpc(mpmath.log1p(z.real * (z.real + 2) + z.imag * z.imag) / 2,
               mpmath.atan2(z.imag, 1 + z.real))


def _expm1(z: Any) -> Any:
    half = mpmath.sin(z.imag / 2)
    return mpc(mpmath.expm1(z.real) * mpmath.cos(z.imag) - 2 * half * half,
               mpmath.exp(z.real) * mpmath.sin(z.imag))


def _atanh(z: Any) -> Any:
    x, y = z.real, z.imag
    away = (1 - x) * (1 - x) + y * y
    return mpc(mpmath.log1p(4 * x / away) / 4, mpmath.atan2(2 * y, (1 - x) * (1 + x) - y * y) / 2)


def _atan(z: Any) -> Any:
    turned = _atanh(mpc(-z.imag, z.real))
    return mpc(turned.imag, -turned.real)


def _asinh(z: Any) -> Any:
    """By the formulas of Hull, Fairgrieve and Tang (1997), which lose nothing."""
    turned = mpmath.asin(mpc(-z.imag, z.real))
    return mpc(turned.imag, -turned.real)


def _acosh(z: Any) -> Any:
    found = mpmath.acos(z)
    return mpc(found.imag, -found.real) if z.imag < 0 else mpc(-found.imag, found.real)


def _power(base: Any, exponent: Any) -> Any:
    return mpmath.exp(exponent * mpmath.log(base))


COMPLEX: Final[dict[str, Callable[..., Any]]] = {
    "absolute": lambda z: mpmath.hypot(z.real, z.imag),
    "sign": lambda z: z / mpmath.hypot(z.real, z.imag), "sqrt": mpmath.sqrt,
    "exp": mpmath.exp, "exp2": lambda z: mpmath.exp(z * mpmath.log(2)), "expm1": _expm1,
    "log": mpmath.log, "log2": lambda z: mpmath.log(z) / mpmath.log(2),
    "log10": lambda z: mpmath.log(z) / mpmath.log(10), "log1p": _log1p,
    "sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan,
    "sinh": mpmath.sinh, "cosh": mpmath.cosh, "tanh": mpmath.tanh,
    "arcsin": mpmath.asin, "arccos": mpmath.acos, "arctan": _atan,
    "arcsinh": _asinh, "arccosh": _acosh, "arctanh": _atanh,
    "power": _power, "float_power": _power,
}  # fmt: skip


def exact(function: Function, given: tuple[Array, ...], folder: Path | None = None) -> Array:
    """The exact results of the operands; read from `folder` where they were calculated before."""
    digest = hashlib.sha256(Path(__file__).read_bytes() + function.label.encode())
    for operand in given:
        digest.update(operand.tobytes())
    path = folder / f"{function.label}-{digest.hexdigest()[:24]}.npy" if folder else None
    if path is not None and path.is_file():
        return np.asarray(np.load(path).view(_kind(function)))
    found = _calculated(function, given)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # numpy.save has no portable form for longdouble: its bytes.
        np.save(path, found.view(np.uint8))
    return found


def _kind(function: Function) -> Any:
    is_complex = function.is_complex and function.name != "absolute"
    return np.clongdouble if is_complex else np.longdouble


def _calculated(function: Function, given: tuple[Array, ...]) -> Array:
    table = COMPLEX if function.is_complex else REAL
    calculate = table[function.name]
    # Exact: every number of ours is a double.
    columns = [operand.astype("c16" if function.is_complex else "f8").tolist() for operand in given]
    number = mpc if function.is_complex else mpf
    cancels = function.is_complex or function.name in CANCELLING
    with mpmath.workprec(MORE_PRECISION if cancels else PRECISION):
        results = [calculate(*map(number, row)) for row in zip(*columns, strict=True)]
        if _kind(function) is np.clongdouble:
            found = np.empty(len(results), np.clongdouble)
            found.real = _longdoubles([mpc(each).real for each in results])
            found.imag = _longdoubles([mpc(each).imag for each in results])
            return found
        return _longdoubles([mpf(each) for each in results])


def _longdoubles(numbers: list[Any]) -> Array:
    """mpmath's numbers, cut to 63 bits."""
    parts = [_cut(number) for number in numbers]
    mantissas = np.array([mantissa for mantissa, _ in parts], np.int64).astype(np.longdouble)
    exponents = np.array([exponent for _, exponent in parts], np.int32)
    with np.errstate(all="ignore"):
        return np.asarray(np.ldexp(mantissas, exponents))


def _cut(number: Any) -> tuple[int, int]:
    sign, mantissa, exponent, bits = number._mpf_
    if not mantissa:
        if exponent:
            raise ArithmeticError(f"mpmath gives {number}")
        return 0, 0
    shift = max(int(bits) - 63, 0)
    cut = int(mantissa) >> shift
    return -cut if sign else cut, int(max(min(exponent + shift, MOST_EXPONENT), -MOST_EXPONENT))


