"""Runs random calls of `tests.fuzz.calls` under NumPy and under another module, and compares them.

Compared are the kind of the result, dtype, shape, memory order, values, whether it may be written
to; the class of the error; warnings, but those of numbers, which may come when a value is looked
at; the operands after the call, and once more after a write through each result.
"""

from __future__ import annotations

import re
import signal
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType, ModuleType
from typing import Any, Final

import numpy as np

from clfuse.errors import FallbackWarning
from tests.fuzz.call_operands import made
from tests.fuzz.calls import RandomCall
from tests.fuzz.wrong_calls import public
from tests.support import agreement

SECONDS: Final = 20
"""More than any of NumPy's calls here takes; a longer one is left out."""

UNSPECIFIED: Final = frozenset(
    """
    empty empty_like ndarray eig eigh svd qr argpartition partition argsort roots lstsq tensorsolve
""".split()
)
"""Of these only the form is compared: what is in the memory, signs of vectors, orders of equals."""

ANY_ORDER: Final = frozenset(
    "nonzero where unravel_index histogramdd histogram2d eig eigvals einsum nanquantile"
    " nanpercentile".split()
)
"""NumPy's results are parts of a larger array, or their axes are turned; ours lie by themselves."""

TOLERANCE: Final = {2: 2e-2, 4: 2e-4, 8: 1e-9, 16: 1e-9}
"""Of the largest number that took part, by the bytes of a real number: faults are larger."""


@dataclass
class Outcome:
    """What a call showed."""

    error: BaseException | None = None
    late: BaseException | None = None
    result: Any = None
    operands: dict[str, Any] = field(default_factory=dict)
    before: dict[str, Any] = field(default_factory=dict)
    written: dict[str, Any] = field(default_factory=dict)
    warned: set[str] = field(default_factory=set)


KNOWN: Final[tuple[tuple[str, str, str], ...]] = (
    (r"unique_\w+", "positional-only", "NumPy's dispatcher refuses the name, ours has none"),
    (r"std|var", "unexpected keyword", "methods take what the functions take"),
    (r"any|all", "construct a dtype", "NumPy's methods have a hidden dtype in the place of `out`"),
    (r"unstack|rollaxis", "no attribute 'ndim'", "lists are taken, too"),
    (r"isreal|iscomplex", "scalar", "NumPy answers in Python's bool for a number of Python's"),
    (r"repeat", "negative dimensions", "NumPy takes a negative number of copies of nothing"),
    (r"min|max|amin|amax|all|any|dot|sum|prod|multi_dot|mean", "NumPy: ('scalar'",
     "what is written to is returned, whatever the operands are"),
    (r"ndarray", "form", "the buffer is copied: it may be written to"),
    (r"i?fftshift", "not enough values", "a number has no axes to shift"),
    (r"(un)?packbits", "out of bounds", "NumPy takes a number for a vector here"),
    (r"\w+", "read-only; NumPy: ", "of two mistakes another one is named"),
    (r"histogram", "-9223372036854775808", "NumPy adds whole numbers as weights in float64"),
    (r"indices", "negative dimensions", "they are refused in every form"),
    (r"nanmin|nanmax", "nan", "NumPy begins at NaN for lists, and drops it for arrays"),
)  # fmt: skip
"""Function, part of what is said -> why it stays so."""


class TooLong(BaseException):
    """NumPy did not end."""


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TooLong


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """The parts of a result, with where they stand."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{place}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        yield place, f"{type(value).__name__} of {len(value)}"
        for number, item in enumerate(value):
            yield from _leaves(item, f"{place}[{number}]")
    else:
        yield place, value


def _form(value: Any, m: ModuleType) -> Any:
    """What there is to see of a value but its numbers; the host's copy of these."""
    if isinstance(value, m.generic | np.generic):
        return ("scalar", str(value.dtype)), np.array(value)
    if isinstance(value, m.ndarray | np.ndarray):
        flags = value.flags
        order = ("C" if flags.c_contiguous else "") + ("F" if flags.f_contiguous else "")
        return (
            "array",
            str(value.dtype),
            tuple(value.shape),
            order,
            bool(flags.writeable),
        ), np.array(value)
    if isinstance(value, int | float | complex) and not isinstance(value, bool):
        return (type(value).__name__,), np.array(value)
    if isinstance(value, bool | str | bytes | np.dtype | type | slice) or value is None:
        return value, None
    return type(value).__name__, None


def outcome(call: RandomCall, m: ModuleType) -> Outcome:
    """What the call shows under `m`."""
    found = Outcome()
    names: dict[str, Any] = {"np": m, "made": made}
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(SECONDS)
    try:
        with warnings.catch_warnings(record=True) as warned, m.errstate(all="ignore"):
            warnings.simplefilter("always")
            try:
                for name, text in call.operands:
                    names[name] = eval(text, names)
                found.before = _operands(call, names, m)
                warned.clear()
                result = eval(call.text, names)
                found.warned = {
                    public(w.category).__name__
                    for w in warned
                    if not issubclass(w.category, RuntimeWarning | FallbackWarning)
                }
                found.result = [(place, *_form(leaf, m)) for place, leaf in _leaves(result)]
            except Exception as error:  # whatever it is, it is the result
                found.error = error
            try:
                found.operands = _operands(call, names, m)
                if found.error is None:
                    _write_to(result, m)
                    found.written = _operands(call, names, m)
            except Exception as error:  # nothing of this may fail
                found.late = error
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return found


def _write_to(result: Any, m: ModuleType) -> None:
    """Another number into each array of a result."""
    for number, (_, leaf) in enumerate(_leaves(result)):
        if isinstance(leaf, m.ndarray | np.ndarray) and leaf.flags.writeable:
            leaf[...] = number + 1 if leaf.dtype.kind in "biufc" else leaf


def _operands(call: RandomCall, names: dict[str, Any], m: ModuleType) -> dict[str, Any]:
    return {
        name: np.array(names[name])
        for name, _ in call.operands
        if isinstance(names.get(name), m.ndarray | np.ndarray)
    }


def check(call: RandomCall, xp: ModuleType) -> str | None:
    """The first difference between NumPy and `xp`, in words, or None; none of `KNOWN`."""
    found = _difference_of(call, xp)
    name = call.function.rpartition(".")[2]
    is_known = found is not None and any(
        re.fullmatch(names, name) and part in found for names, part, _ in KNOWN
    )
    return None if is_known else found


def _difference_of(call: RandomCall, xp: ModuleType) -> str | None:
    try:
        expected = outcome(call, np)
    except TooLong:
        return None
    try:
        actual = outcome(call, xp)
    except TooLong:
        return "it does not end"
    if agreement.needs_double(actual.error):
        return None
    if expected.error is not None or actual.error is not None:
        wanted = type(expected.error) if expected.error else None
        if wanted is None or not isinstance(actual.error, public(wanted)):
            return f"error: {_named(actual.error)}; NumPy: {_named(expected.error)}"
    if actual.late is not None and expected.late is None:
        return f"late: {_named(actual.late)}"
    if expected.late is not None:
        return None
    name = call.function.rpartition(".")[2]
    if expected.error is None:
        difference = _compare_results(
            actual.result,
            expected,
            _unspecified(call),
            name in ANY_ORDER or any("'broadcast'" in text for _, text in call.operands),
        )
        if difference:
            return difference
    open_to = {"ComplexWarning"} if "out" in call.text else set()  # NumPy may read what was there
    if expected.error is None and actual.warned - open_to != expected.warned - open_to:
        return f"warning: {actual.warned or 'none'}; NumPy: {expected.warned or 'none'}"
    for what, ours, theirs in (
        ("after the call", actual.operands, expected.operands),
        ("after a write to the result", actual.written, expected.written),
    ):
        for operand, values in theirs.items():
            if "overwrite_input" in call.text or (name in UNSPECIFIED and what == "after the call"):
                continue
            if ", 'numpy')" in dict(call.operands)[operand] and what != "after the call":
                continue  # NumPy's own arrays are copied where they come in
            problem = _difference(ours[operand], values, _scale(expected))
            if problem and expected.error is not None:  # NumPy may have begun to write
                problem = _difference(ours[operand], expected.before[operand], _scale(expected))
            if problem:
                return f"operand: {operand} {what}: {problem}"
    return None


def _scale(expected: Outcome) -> float:
    """The largest finite number that took part."""
    arrays = [
        *expected.operands.values(),
        *(values for _, _, values in expected.result or () if values is not None),
    ]
    largest = 1.0
    for values in arrays:
        if values.dtype.kind in "biufc" and values.size:
            with np.errstate(all="ignore"):
                sizes = np.abs(
                    values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)
                )
            largest = max(largest, float(np.max(sizes, where=np.isfinite(sizes), initial=0.0)))
    return largest


def _unspecified(call: RandomCall) -> bool:
    """Whether NumPy leaves the values open: also where a ufunc computes no element."""
    name = call.function.rpartition(".")[2]
    given = [keyword for keyword, _ in call.keywords]
    is_ufunc = name == "clip" or isinstance(getattr(np, name, None), np.ufunc)
    if name == "unpackbits":  # it leaves what was in the memory where there are no bytes
        return any(re.search(r"\(0,|, 0[,)]", text) for _, text in call.operands)
    return name in UNSPECIFIED or (is_ufunc and "where" in given and "out" not in given)


def _compare_results(
    actual: list[Any],
    expected: Outcome,
    unspecified: bool,
    any_order: bool,
) -> str | None:
    if len(actual) != len(expected.result):
        return f"form: {[a[1] for a in actual]}; NumPy: {[e[1] for e in expected.result]}"
    for (place, ours, values), (_, theirs, wanted) in zip(actual, expected.result, strict=True):
        if any_order and isinstance(ours, tuple) and isinstance(theirs, tuple):
            ours, theirs = ours[:3], theirs[:3]
        if not _alike(ours, theirs):
            return f"form: r{place} is {ours}; NumPy: {theirs}"
        if wanted is not None and not unspecified:
            problem = _difference(values, wanted, _scale(expected))
            if problem:
                return f"value: r{place}: {problem}"
    return None


def _alike(ours: Any, theirs: Any) -> bool:
    return bool(type(ours) is type(theirs) and ours == theirs)


def _difference(actual: Any, wanted: Any, scale: float) -> str | None:
    """Why numbers are not the same, up to the rounding of any good algorithm."""
    if actual.dtype != wanted.dtype or actual.shape != wanted.shape:
        return f"{actual.dtype}{actual.shape}; NumPy: {wanted.dtype}{wanted.shape}"
    if agreement.SIMULATED or wanted.dtype.kind not in "biufc":
        return None
    if wanted.dtype.kind not in "fc":
        right = actual == wanted
    else:
        tolerance = TOLERANCE[wanted.real.dtype.itemsize] * scale
        parts = [(actual.real, wanted.real), (actual.imag, wanted.imag)]
        right = np.ones(wanted.shape, bool)
        with np.errstate(all="ignore"):
            for ours, theirs in parts[: 1 if wanted.dtype.kind == "f" else 2]:
                ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
                right &= (
                    (ours == theirs)
                    | (np.isnan(ours) & np.isnan(theirs))
                    | (np.abs(ours - theirs) <= tolerance)
                )
            if wanted.dtype.kind == "c":  # which part of it is no number is nobody's promise
                right |= ~np.isfinite(wanted) & ~np.isfinite(actual)
    if np.all(right):
        return None
    return f"{actual.tolist()}; NumPy: {wanted.tolist()}"[:500]


def _named(error: BaseException | None) -> str:
    if error is None:
        return "none"
    return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"


def shrink(call: RandomCall, difference: str, xp: ModuleType) -> tuple[RandomCall, str]:
    """The call without the keywords that the difference does not need."""
    kind = difference.split(":")[0]
    for place in reversed(range(len(call.keywords))):
        smaller = call.without(place)
        found = check(smaller, xp)
        if found is not None and found.split(":")[0] == kind:
            call, difference = smaller, found
    return call, difference


def report(seed: int, call: RandomCall, difference: str) -> str:
    """A call for a bug report."""
    return f"seed {seed}, {difference}\n\n{call.script()}"
