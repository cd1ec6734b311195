"""Accuracy: errors of the rounded functions in units in the last place (ulp).

The part of the check compares them with NumPy's wider types. The error of a complex number is its
distance in the plane, in units in the last place of the larger part.
"""

from __future__ import annotations

import importlib
import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clfuse.dataclass import frozen

from .finding import Budget, Finding
from .functions import FUNCTIONS, Function
from .points import operands

__all__ = ["Errors", "amplification", "check", "errors", "on_device", "wider"]

Array = NDArray[Any]

OF_OPERAND: Final = ("logaddexp", "logaddexp2")
"""The greater operand and a correction: where that cancels, it is their ulp that counts."""


@frozen
class Errors:
    """How far results are from exact ones.

    count: of how many results.
    worst: the largest error in ulp.
    mean: the mean of the errors in ulp.
    where: the operands of the worst.
    """

    count: int
    worst: float
    mean: float
    where: tuple[Any, ...]


def distances(actual: Array, exact: Array, scale: Array) -> Array:
    """|actual - exact| in ulp of `scale`. An infinity counts as the number behind the largest, NaN
    as infinitely far."""
    part = np.finfo(actual.dtype).dtype
    largest = np.finfo(part).max
    last = np.longdouble(np.spacing(np.nextafter(largest, part.type(0))))
    beyond = np.longdouble(largest) + last
    with np.errstate(all="ignore"):
        unit = np.spacing(np.minimum(np.abs(scale), largest).astype(part)).astype(np.longdouble)
        unit = np.where(np.isfinite(unit), np.abs(unit), last)
        if actual.dtype.kind == "c":
            # One part may be a number where the other is too large for one.
            unit = np.fmax(unit, np.abs(scale) * np.longdouble(np.finfo(part).eps) / 2)
        apart = [
            np.clip(one.astype(np.longdouble), -beyond, beyond) - np.clip(other, -beyond, beyond)
            for one, other in zip(_parts(actual), _parts(exact), strict=True)
        ]
        found = np.abs(apart[0]) if len(apart) == 1 else np.hypot(*apart)
        result = np.asarray((found / unit).astype(float))
    return np.where(np.isnan(result), np.inf, result)


def _parts(array: Array) -> list[Array]:
    return [array.real, array.imag] if array.dtype.kind == "c" else [array]


def scale_of(function: Function, given: tuple[Array, ...], exact: Array) -> Array:
    """The number whose ulp counts: the result, or what the function's formula loses it from."""
    scale = np.maximum.reduce([np.abs(part) for part in _parts(exact)])
    if function.name in OF_OPERAND:
        one, other = (operand.astype(scale.dtype) for operand in given)
        apart = np.abs(one - other)
        # The difference of the operands is rounded, and so is its exponential.
        power = np.exp if function.name == "logaddexp" else np.exp2
        rounded = apart * power(-apart)
        scale = np.fmax(np.fmax(scale, np.abs(np.maximum(one, other))), rounded)
    elif function.name == "gammaln":
        scale = np.where(given[0] < 0, np.fmax(scale, 1), scale)  # beside its zeros
    elif function.name == "sinc":
        with np.errstate(all="ignore"):
            scale = np.fmax(scale, 1 / np.fmax(np.abs(np.pi * given[0].astype(scale.dtype)), 1))
    return np.asarray(scale)


def amplification(function: Function, given: tuple[Array, ...]) -> Array:
    """How many times the formula that NumPy has, too, makes an error larger: not below 1."""
    factor = np.ones(len(given[0]))
    with np.errstate(all="ignore"):
        if function.name in ("power", "float_power") and function.is_complex:
            base, exponent = (operand.astype(complex) for operand in given)
            factor += np.abs(exponent) * np.abs(np.log(base))
        elif function.name == "sinc":
            factor += np.abs(np.pi * given[0].astype(float))
        elif function.name == "exp2" and function.is_complex:
            factor += np.abs(given[0].imag.astype(float))
    return np.where(np.isfinite(factor), factor, np.inf)


def errors(function: Function, given: tuple[Array, ...], actual: Array, exact: Array) -> Errors:
    """The errors of the results `actual` of the operands `given`; see `scale_of` and
    `amplification`."""
    found = distances(actual, exact, scale_of(function, given, exact))
    found = found / amplification(function, given)
    worst = int(np.argmax(found))
    return Errors(len(found), float(found[worst]), float(np.mean(found)),
                  tuple(operand[worst] for operand in given))  # fmt: skip


def on_device(function: Function, given: tuple[Array, ...]) -> Array:
    """What a kernel gives, however few the operands are."""
    xp = importlib.import_module("clfuse")
    with xp.config.override(host_us=0, build_after_ms=0), np.errstate(all="ignore"):
        launched = xp.stats()["kernels_launched"]
        result = np.asarray(xp.asnumpy(function.calculate(xp, given)))
        if xp.stats()["kernels_launched"] == launched:
            raise RuntimeError(f"{function.label} was not calculated by a kernel")
    return result


def wider(function: Function, given: tuple[Array, ...]) -> Array | None:
    """The results in a wider type of NumPy's; None where there is none."""
    is_double = function.dtype in ("float64", "complex128")
    if is_double and np.finfo(np.longdouble).nmant <= np.finfo(float).nmant:
        return None
    type_ = np.result_type(np.longdouble if is_double else np.float64, function.dtype)
    with np.errstate(all="ignore"):
        found = function.calculate(np, tuple(operand.astype(type_) for operand in given))
    if found is None:
        return None
    wide = np.clongdouble if found.dtype.kind == "c" else np.longdouble
    return np.asarray(found).astype(wide)


# ---- the check ----

OF_PYTHON: Final = {
    "erf": math.erf, "erfc": math.erfc, "gamma": math.gamma, "gammaln": math.lgamma,
}  # fmt: skip
"""Exact to a unit of a double (gamma: to some)."""

COUNT: Final = 1000
"""Points of each function; of those of one float16 all that there are, which are many: a part."""

GROUP: Final = 5
"""Functions of one dtype in one evaluation: fewer programs to build."""

MOST_SHOWN: Final = 10


def check(budget: Budget) -> Finding:
    """All functions, in any order, until the time is spent: against NumPy's wider types."""
    random = np.random.default_rng(budget.seed)
    groups = _groups()
    finding, done = Finding(), 0
    left: set[str] = set()
    worst = ("", 0.0)
    for place in random.permutation(len(groups)):
        if budget.is_spent or len(finding.problems) >= MOST_SHOWN:
            left.update(function.label for function in groups[place])
            continue
        for function, found in _measured(groups[place], budget.seed):
            if found is None:
                left.add(function.label)
                continue
            done += 1
            if not found.worst <= function.limit:
                where = ", ".join(repr(operand.item()) for operand in found.where)
                finding.problems.append(
                    f"{function.label} is {found.worst:.3g} ulp off at {where}; "
                    f"{function.limit} are promised"
                )
            elif found.worst > worst[1]:
                worst = (function.label, found.worst)
        budget.tell(f"{done} functions")
    finding.what = f"{done} functions, the worst within the limits {worst[1]:.2f} ulp ({worst[0]})"
    if left:
        finding.left_out = f"{len(left)} not measured"
    return finding


def _groups() -> list[list[Function]]:
    found = []
    for dtype in dict.fromkeys(function.dtype for function in FUNCTIONS):
        for arity in (1, 2):
            same = [each for each in FUNCTIONS if each.dtype == dtype and each.arity == arity]
            found += [same[i : i + GROUP] for i in range(0, len(same), GROUP)]
    return found


def _measured(group: list[Function], seed: int) -> list[tuple[Function, Errors | None]]:
    xp = importlib.import_module("clfuse")
    given = [tuple(operand[:: max(1, len(operand) // COUNT)] for operand in
                   operands(function, COUNT, seed)) for function in group]  # fmt: skip
    with xp.config.override(host_us=0, build_after_ms=0), np.errstate(all="ignore"):
        results = [
            function.calculate(xp, each) for function, each in zip(group, given, strict=True)
        ]
        recorded = [result for result in results if result is not None]
        xp.evaluate(*recorded)
        ours = [None if result is None else np.asarray(xp.asnumpy(result)) for result in results]
    found: list[tuple[Function, Errors | None]] = []
    for function, each, actual in zip(group, given, ours, strict=True):
        wanted = _reference(function, each)
        if wanted is None or actual is None:
            found.append((function, None))
        else:
            found.append((function, errors(function, each, actual, wanted)))
    return found


def _reference(function: Function, given: tuple[Array, ...]) -> Array | None:
    """What `wider` gives, but for what loses digits there, too; of special functions Python's own,
    which is exact enough."""
    if function.name in OF_PYTHON and (function.dtype == "float32" or "erf" in function.name):
        exactly = OF_PYTHON[function.name]
        return np.array([exactly(x) for x in given[0].tolist()], np.longdouble)
    if function.name == "log1p" and function.is_complex:
        z = given[0].astype(np.clongdouble)
        if function.dtype == "complex128" and np.finfo(np.longdouble).nmant < 60:
            return None
        near = np.log1p(z.real * (z.real + 2) + z.imag * z.imag) / 2
        small = np.maximum(np.abs(z.real), np.abs(z.imag)) < 0.5
        real = np.where(small, near, np.log(np.hypot(1 + z.real, z.imag)))
        return np.asarray(real + 1j * np.arctan2(z.imag, 1 + z.real))
    return wider(function, given)
