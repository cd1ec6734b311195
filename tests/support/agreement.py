"""Assertions that say whether two libraries agree; every differential test calls them.

`assert_bitwise` (same dtype, shape and bits; NaN equals NaN), `assert_ulp` (within so many units in
the last place), `assert_within` (within an absolute bound for each element), `assert_same_error`
(same exception class at the same call), and `Batch`, which runs one function under NumPy and
under the module under test, and evaluates everything that it recorded in one go: a kernel build
costs a tenth of a second, so a hundred results should be one program and not a hundred.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Oclgrind computes a few instructions wrongly and lacks others. Under it memory accesses are the
# subject, and tests/oclgrind.py says so here: dtypes, shapes and errors still count, values do not.
SIMULATED = os.environ.get("CLFUSE_TEST_SIMULATOR") == "1"
MOST_SHOWN = 8      # differing elements that a message lists
MOST_FAILURES = 25  # differing results that a message lists


def host(value: Any) -> NDArray[np.generic]:
    """The value as a NumPy array on the host, whichever library made it."""
    get = getattr(value, "get", None)
    return np.asarray(get() if callable(get) else value)


def is_recorded(xp: ModuleType, value: Any) -> bool:
    """Whether the value is an array or a scalar of the module under test, perhaps not computed."""
    return xp is not np and type(value).__module__.split(".")[0] == xp.__name__


def difference_of_form(actual: Any, expected: Any) -> str | None:
    """What differs in dtype and shape, asked of the objects themselves, or None."""
    expected_dtype, expected_shape = np.asarray(expected).dtype, np.shape(expected)
    if getattr(actual, "dtype", None) != expected_dtype:
        return f"dtype {getattr(actual, 'dtype', type(actual))}, NumPy has {expected_dtype}"
    if tuple(actual.shape) != expected_shape:
        return f"shape {tuple(actual.shape)}, NumPy has {expected_shape}"
    return None


def same_bits(actual: NDArray[Any], expected: NDArray[Any]) -> NDArray[np.bool_]:
    """Where the values are the same: zeros by sign, NaN equal to any NaN, complex by parts."""
    if expected.dtype.kind == "c":
        return same_bits(actual.real, expected.real) & same_bits(actual.imag, expected.imag)
    if expected.dtype.kind != "f":
        return np.asarray(actual == expected)
    both_nan = np.isnan(actual) & np.isnan(expected)
    return np.asarray(both_nan | ((actual == expected)
                                  & (np.signbit(actual) == np.signbit(expected))))


def ulps_apart(actual: NDArray[Any], expected: NDArray[Any],
               of: np.dtype[Any] | None = None) -> NDArray[np.float64]:
    """Distance in units in the last place of `expected` (in dtype `of`, its own by default).

    Infinite where one is NaN or infinite and the other is not the same; 0 where both are.
    `expected` may have a wider dtype: then the distance to the exact result comes out.
    """
    dtype = np.dtype(of or actual.dtype)
    limits = np.finfo(dtype)
    wide = np.promote_types(expected.dtype, np.float64)
    one, other = actual.astype(wide), expected.astype(wide)
    with np.errstate(all="ignore"):
        rounded = expected.astype(dtype)
        # Of the largest number NumPy's spacing is infinite; results past it round to infinity.
        most = limits.max / 2
        size = np.where(np.isnan(rounded), 1, np.minimum(np.abs(rounded), most))
        spacing = np.maximum(np.spacing(size.astype(dtype)).astype(wide),
                             wide.type(limits.smallest_subnormal))
        other = np.where(np.isinf(rounded) & np.isinf(one), np.sign(other) * wide.type(np.inf),
                         other)
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        distance = np.where(same, 0.0, np.abs(one - other) / spacing)
    return np.where(np.isnan(distance), np.inf, distance).astype(np.float64)


def describe(actual: NDArray[Any], expected: NDArray[Any], wrong: NDArray[np.bool_],
             inputs: Sequence[ArrayLike] = (), measure: NDArray[Any] | None = None) -> str:
    """The first few elements that differ, with the inputs that gave them."""
    places = np.argwhere(np.atleast_1d(wrong))
    lines = [f"{len(places)} of {max(1, wrong.size)} elements differ"]
    spread = []
    for given in inputs:
        try:
            spread.append(np.broadcast_to(np.asarray(given), wrong.shape))
        except ValueError:
            continue
    for place in places[:MOST_SHOWN]:
        index = tuple(int(i) for i in place)[:wrong.ndim]
        given = ", ".join(repr(s[index]) for s in spread)
        off = "" if measure is None else f" ({float(measure[index]):.3g} off)"
        lines.append(f"  at {index}: {actual[index]!r}, expected {expected[index]!r}{off}"
                     + (f", from {given}" if given else ""))
    return "\n".join(lines)


def problem_bitwise(actual: Any, expected: Any, inputs: Sequence[ArrayLike] = (),
                    zero_signs: bool = True) -> str | None:
    """Why the two are not the same, or None."""
    form = difference_of_form(actual, expected)
    if form:
        return form
    got, wanted = host(actual), np.asarray(expected)
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        return f"host copy is {got.dtype}{got.shape}, the array said {wanted.dtype}{wanted.shape}"
    if SIMULATED:
        return None
    right = same_bits(got, wanted)
    if not zero_signs:
        right = right | (got == wanted)
        if got.dtype.kind == "c":  # a zero beside a NaN has a sign, too
            right = right | np.logical_and(*[
                (one == other) | (np.isnan(one) & np.isnan(other))
                for one, other in ((got.real, wanted.real), (got.imag, wanted.imag))
            ])
    return None if right.all() else describe(got, wanted, ~right, inputs)


def problem_ulp(actual: Any, expected: Any, ulp: float, inputs: Sequence[ArrayLike] = (),
                ) -> str | None:
    """Why `actual` is further than `ulp` units from `expected`, or None."""
    form = difference_of_form(actual, expected)
    if form:
        return form
    got, wanted = host(actual), np.asarray(expected)
    if wanted.dtype.kind not in "fc" or ulp == 0:
        return problem_bitwise(actual, expected, inputs)
    distance = (_complex_ulps if wanted.dtype.kind == "c" else ulps_apart)(got, wanted)
    wrong = (distance > ulp) & (not SIMULATED)
    return describe(got, wanted, wrong, inputs, distance) if wrong.any() else None


def _complex_ulps(actual: NDArray[Any], expected: NDArray[Any]) -> NDArray[np.float64]:
    """Distance as a number, in units of the modulus: parts may cancel, the number may not."""
    parts = np.finfo(actual.dtype).dtype
    finite = np.isfinite(expected) & np.isfinite(actual)
    with np.errstate(all="ignore"):
        spacing = np.spacing(np.abs(expected).astype(parts)).astype(np.float64)
        distance = np.abs(actual.astype(expected.dtype) - expected) / spacing
        special = np.maximum(ulps_apart(actual.real, expected.real, parts),
                             ulps_apart(actual.imag, expected.imag, parts))
    return np.where(finite, distance, special).astype(np.float64)


def problem_within(actual: Any, expected: Any, bound: NDArray[Any],
                   around: NDArray[Any] | None = None, inputs: Sequence[ArrayLike] = (),
                   ) -> str | None:
    """Why the two differ by more than `bound` anywhere; where it is 0 the bits must be the same.

    `bound` is absolute, one number for each element (complex: one for each part); infinite where
    nothing is asked. It is around `expected`, or around a more exact `around`, if given. A finite
    expectation is never met by NaN.
    """
    form = difference_of_form(actual, expected)
    if form:
        return form
    got, wanted = host(actual), np.asarray(expected)
    centre = wanted if around is None else around
    if wanted.dtype.kind == "c":
        right = (_near(got.real, wanted.real, centre.real, bound.real)
                 & _near(got.imag, wanted.imag, centre.imag, bound.imag))
    else:
        right = _near(got, wanted, centre, np.real(bound))
    if right.all() or SIMULATED:
        return None
    if wanted.dtype.kind not in "fc":
        return describe(got, wanted, ~right, inputs)
    allowed = np.broadcast_to(np.abs(bound), right.shape)[~right][:MOST_SHOWN]
    return describe(got, wanted, ~right, inputs) + f"\n  allowed: {allowed}"


def _near(actual: NDArray[Any], expected: NDArray[Any], centre: NDArray[Any],
          bound: NDArray[Any]) -> NDArray[np.bool_]:
    """Where real numbers are as expected, or within the bound of the centre."""
    same = same_bits(actual, expected)
    if expected.dtype.kind != "f" or not np.any(bound):
        return same
    with np.errstate(all="ignore"):
        off = np.abs(actual.astype(np.longdouble) - centre.astype(np.longdouble))
        return np.asarray(same | ((off <= bound) & (bound > 0)) | np.isposinf(bound))


def assert_bitwise(actual: Any, expected: Any, *, zero_signs: bool = True) -> None:
    """Same dtype, shape and bits (NaN equals NaN)."""
    problem = problem_bitwise(actual, expected, zero_signs=zero_signs)
    assert problem is None, problem


def assert_ulp(actual: Any, expected: Any, ulp: float = 4) -> None:
    """Same dtype and shape, floats within `ulp` units in the last place."""
    problem = problem_ulp(actual, expected, ulp)
    assert problem is None, problem


def assert_within(actual: Any, expected: Any, bound: ArrayLike) -> None:
    """Same dtype and shape, each element within its bound."""
    problem = problem_within(actual, expected, np.asarray(bound))
    assert problem is None, problem


def error_of(call: Callable[[], object]) -> Exception | None:
    """What the call raises, or None."""
    try:
        call()
    except Exception as error:  # whatever NumPy raises is what is asked for
        return error
    return None


def is_simulators(error: BaseException | None) -> bool:
    """Whether the error is that Oclgrind lacks an instruction, which no other runtime does."""
    return SIMULATED and error is not None and "INVALID_KERNEL_NAME" in str(error)


def needs_double(error: BaseException | None) -> bool:
    """Whether the error is that the device has no double precision. What needs it is not compared
    there: an error with this name and what would help is what clfuse promises."""
    return type(error).__name__ == "DeviceDtypeError" and "no double precision" in str(error)


def same_class(actual: BaseException | None, expected: BaseException | None) -> bool:
    """Whether an ``except`` clause written for NumPy's error catches the actual one."""
    if expected is None or actual is None:
        return expected is actual
    return isinstance(actual, type(expected))


def assert_same_error(function: Callable[[Any], object], xp: ModuleType) -> None:
    """The function raises under `xp`, at the call, the class that it raises under NumPy."""
    expected = error_of(lambda: function(np))
    actual = error_of(lambda: function(xp))
    assert expected is not None, "NumPy raises nothing here: the test is wrong"
    if actual is not None and needs_double(actual):
        raise actual
    assert same_class(actual, expected), (
        f"{type(actual).__name__ if actual else 'no error'} ({actual}), NumPy raises "
        f"{type(expected).__name__} ({expected})")


def given(data: ArrayLike) -> Callable[[Any], Any]:
    """What makes the data an array of a module: always the same one of each module.

    Several results of one array read it once and compute equal parts of themselves once, so they
    are a shorter program than of an array each; they are compared with NumPy's one by one.
    """
    return functools.cache(lambda m: m.array(data))


class Batch:
    """Results recorded under the module under test beside NumPy's, evaluated and compared at once.

    Parameters
    ----------
    xp : module
        The module under test.

    Examples
    --------
    >>> batch = Batch(np)
    >>> batch.same("sum", lambda m: m.sum(m.asarray([1, 2])))
    >>> batch.check()
    """

    def __init__(self, xp: ModuleType) -> None:
        self.xp = xp
        self._pending: list[tuple[str, Any, Callable[[Any], str | None]]] = []
        self._failures: list[str] = []
        self._left_out: list[Exception] = []

    def same(self, label: str, function: Callable[[Any], Any], *, ulp: float = 0,
             bound: ArrayLike | None = None, around: NDArray[Any] | None = None,
             zero_signs: bool = True, inputs: Sequence[ArrayLike] = ()) -> None:
        """Run `function(module)` under both; a tuple or list of results is compared one by one.

        Results must agree bitwise, or within `ulp`, or within `bound` of NumPy's (of the values
        `around`, if given); if NumPy raises, the module under test must raise that class at the
        call.
        """
        expected: Any = None
        expected_error = actual_error = None
        try:
            expected = function(np)
        except Exception as error:  # NumPy decides which error is right
            expected_error = error
        try:
            actual = function(self.xp)
        except Exception as error:  # any other class is a failure, reported with its label
            actual_error = error
            if needs_double(error):
                self._left_out.append(error)
                return
        if expected_error is not None or actual_error is not None:
            if not same_class(actual_error, expected_error):
                self._failures.append(
                    f"{label}: {_named(actual_error)}, NumPy: {_named(expected_error)}")
            return
        if isinstance(expected, (tuple, list)):
            if len(actual) != len(expected):
                self._failures.append(f"{label}: {len(actual)} results, NumPy {len(expected)}")
                return
            for i, (one, other) in enumerate(zip(actual, expected, strict=True)):
                self._add(f"{label}[{i}]", one, other, ulp, bound, None, zero_signs, inputs)
            return
        self._add(label, actual, expected, ulp, bound, around, zero_signs, inputs)

    def _add(self, label: str, actual: Any, expected: Any, ulp: float, bound: ArrayLike | None,
             around: NDArray[Any] | None, zero_signs: bool, inputs: Sequence[ArrayLike]) -> None:
        # A later write under NumPy must not change what is expected now.
        wanted = np.array(expected) if isinstance(expected, np.ndarray) else expected

        def compare(got: Any) -> str | None:
            if not isinstance(wanted, (np.ndarray, np.generic)):
                return None if got == wanted else f"{got!r}, NumPy has {wanted!r}"
            if bound is not None:
                return problem_within(got, wanted, np.asarray(bound), around, inputs)
            if ulp:
                return problem_ulp(got, wanted, ulp, inputs)
            return problem_bitwise(got, wanted, inputs, zero_signs)

        self._pending.append((label, actual, compare))

    def check(self) -> None:
        """Evaluate what was recorded in one call and report every difference.

        Where everything needs a double precision that the device has not, this is the error.
        """
        evaluate = getattr(self.xp, "evaluate", None)
        arrays = [actual for _, actual, _ in self._pending if is_recorded(self.xp, actual)]
        if evaluate is not None and arrays:
            try:
                evaluate(*arrays)
            except Exception as error:  # told below, result by result
                if not (is_simulators(error) or needs_double(error)):
                    self._failures.append(f"evaluate of {len(arrays)} results: {_named(error)}")
        compared = 0
        for label, actual, compare in self._pending:
            problem = None
            try:
                problem = compare(actual)
                compared += 1
            except Exception as error:  # one broken kernel must not hide the other results
                if needs_double(error):
                    self._left_out.append(error)
                elif not is_simulators(error):
                    problem = _named(error)
            if problem:
                self._failures.append(f"{label}: {problem}")
        self._pending.clear()
        if self._left_out and not compared and not self._failures:
            raise self._left_out[0]
        failures, self._failures = self._failures, []
        if failures:
            more = len(failures) - MOST_FAILURES
            shown = "\n".join(failures[:MOST_FAILURES])
            raise AssertionError(f"{len(failures)} results differ\n{shown}"
                                 + (f"\n... and {more} more" if more > 0 else ""))


def _named(error: BaseException | None) -> str:
    if error is None:
        return "no error"
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}"
