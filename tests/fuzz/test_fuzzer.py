"""The fuzzer itself: it repeats, it is sound, it sees faults, and what it reports is small.

NumPy stands for the module under test here, as it is or with one fault; no device is needed.
"""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.fuzz import call_runner, calls, text_runner, texts
from tests.fuzz.generate import generate
from tests.fuzz.program import Program
from tests.fuzz.runner import Difference, check, expectations, report
from tests.fuzz.shrink import shrink
from tests.support.releases import IS_BEFORE_2_4

if IS_BEFORE_2_4:
    pytestmark = pytest.mark.skip("random programs meet faults of NumPy 2.0 that end the process")

PROGRAMS = 150
ENOUGH = 1500     # programs in which each fault must show
MOST_STEPS = 5    # of a reproducer

Function = Callable[..., Any]


def numpy_but(**changed: Function) -> types.ModuleType:
    """NumPy with some functions replaced."""
    module = types.ModuleType("mutant")
    module.__dict__.update({name: getattr(np, name) for name in dir(np)
                            if not name.startswith("__")})
    module.__dict__.update(changed)
    for name, function in changed.items():
        if isinstance(getattr(np, name), np.ufunc):  # only its call is replaced
            for method in ("accumulate", "at", "outer", "reduce", "reduceat"):
                setattr(function, method, getattr(getattr(np, name), method))
    return module


def _sum_without_keepdims(a: Any, **options: Any) -> Any:
    return np.sum(a, **{k: v for k, v in options.items() if k != "keepdims"})


def _maximum_drops_nan(a: Any, b: Any, **options: Any) -> Any:
    return np.fmax(a, b, **options)


def _flip_copies(a: Any, **options: Any) -> Any:
    return np.flip(a, **options).copy()


def _reshape_copies(a: Any, shape: Any) -> Any:
    return np.array(np.reshape(a, shape))


def _coarse_sine(a: Any, **options: Any) -> Any:
    result = np.sin(a, **options)
    if np.asarray(result).dtype == "float64" and isinstance(result, np.ndarray):
        result[...] = result.astype("float32")
    return result


def _sum_in_half(a: Any, **options: Any) -> Any:
    result = np.sum(a, **options)
    return result + 1 if np.size(a) > 1000 else result


def _add_wraps_wider(a: Any, b: Any, **options: Any) -> Any:
    result = np.add(a, b, **options)
    return result.astype("int64") if np.asarray(result).dtype == "int16" else result


def _where_loses_zero_sign(m: Any, a: Any, b: Any) -> Any:
    return np.where(m, a, b) + 0


def _mean_of_integers_in_float32(a: Any, **options: Any) -> Any:
    if np.asarray(a).dtype.kind in "iu" and "dtype" not in options:
        return np.float64(1) * np.mean(a, **options, dtype="float32")
    return np.mean(a, **options)


def _std_ignores_ddof(a: Any, **options: Any) -> Any:
    return np.std(a, **{k: v for k, v in options.items() if k != "ddof"})


def _out_is_not_written(a: Any, b: Any, **options: Any) -> Any:
    return np.subtract(a, b, **{k: v for k, v in options.items() if k not in ("out", "where")})


def _axis_errors_are_plain(a: Any, first: int, second: int) -> Any:
    try:
        return np.swapaxes(a, first, second)
    except ValueError as error:
        raise RuntimeError(str(error)) from error


FAULTS: dict[str, Function] = {
    "sum": _sum_without_keepdims, "maximum": _maximum_drops_nan, "flip": _flip_copies,
    "reshape": _reshape_copies, "sin": _coarse_sine, "add": _add_wraps_wider,
    "where": _where_loses_zero_sign, "mean": _mean_of_integers_in_float32,
    "std": _std_ignores_ddof, "subtract": _out_is_not_written, "swapaxes": _axis_errors_are_plain,
    "broadcast_to": lambda a, shape: np.array(np.broadcast_to(a, shape)),
    "stack": lambda arrays, axis=0: np.stack(arrays[::-1], axis=axis),
    "left_shift": lambda a, b, **o: np.left_shift(a, np.bitwise_and(b, 7), **o),
}


def test_a_seed_gives_the_same_program_every_time() -> None:
    for seed in range(20):
        assert generate(seed).script() == generate(seed).script()


def test_numpy_agrees_with_itself() -> None:
    for seed in range(PROGRAMS):
        assert check(generate(seed), np) is None, generate(seed).script("numpy")


def test_a_printed_program_is_a_script_that_runs() -> None:
    for seed in range(40):
        tested = generate(seed)
        if check(tested, np) is None and not _raises(tested):
            exec(compile(tested.script("numpy"), f"seed {seed}", "exec"), {"print": lambda *a: 0})


def _raises(tested: Program) -> bool:
    return any(seen.error is not None for seen in expectations(tested)[0])


# Every fault is looked for among the same programs.
_generated = functools.cache(generate)


def _first_failure(name: str, fault: Function) -> tuple[Program, Difference] | None:
    xp = numpy_but(**{name: fault})
    for seed in range(ENOUGH):
        tested = _generated(seed)
        difference = check(tested, xp) if name in tested.script() else None
        if difference is not None:
            return tested, difference
    return None


@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_function_is_found_and_shrunk_to_a_few_lines(name: str) -> None:
    failure = _first_failure(name, FAULTS[name])
    assert failure is not None, f"{ENOUGH} programs did not notice a wrong {name}"
    xp = numpy_but(**{name: FAULTS[name]})
    small, difference = shrink(*failure, lambda p: check(p, xp), seconds=10)
    assert len(small.steps) <= MOST_STEPS, report(small, difference)
    assert name in small.script(), report(small, difference)


def test_a_larger_sum_that_is_off_by_one_is_noticed() -> None:
    assert _first_failure("sum", _sum_in_half) is not None


def test_numpy_agrees_with_itself_and_a_seed_gives_one_text() -> None:
    for seed in range(40):
        blocks = texts.generate(seed)
        assert blocks == texts.generate(seed)
        assert text_runner.check_twice(blocks, np, seed) is None, text_runner.script(blocks)


def _warns_where_numpy_does_not(a: Any, axis: Any = None) -> Any:
    warnings.warn("sorted", UserWarning, stacklevel=2)
    return np.sort(a, axis=axis)


def _searches_right_the_second_time(a: Any, v: Any, calls: list[int] = []) -> Any:  # noqa: B006
    calls.append(0)
    return np.searchsorted(a, v, "left" if len(calls) < 4 else "right")


TEXT_FAULTS: dict[str, Function] = {
    "swapaxes": lambda a, *axes: np.swapaxes(a, *axes).copy(),  # shares no memory
    "sort": _warns_where_numpy_does_not,
    "searchsorted": _searches_right_the_second_time,
    "squeeze": lambda a: np.asarray(np.squeeze(a)),  # no scalar
    "broadcast_to": lambda a, shape: np.require(np.broadcast_to(a, shape), requirements="W"),
}


@pytest.mark.parametrize("name", TEXT_FAULTS)
def test_a_wrong_function_is_found_by_texts_and_shrunk(name: str) -> None:
    xp = numpy_but(**{name: TEXT_FAULTS[name]})
    for seed in range(ENOUGH):
        blocks = texts.generate(seed)
        if text_runner.check_twice(blocks, xp, seed) is not None:
            break
    else:
        pytest.fail(f"{ENOUGH} texts did not notice a wrong {name}")
    small = text_runner.shrink(blocks, lambda b: text_runner.check_twice(b, xp, seed) is not None)
    assert name in text_runner.script(small)


def test_numpy_agrees_with_itself_and_a_seed_gives_one_call() -> None:
    for seed in range(1500):
        call = calls.generate(seed)
        assert call == calls.generate(seed)
        assert call_runner.check(call, np) is None, call.script()


CALL_FAULTS: dict[str, Function] = {
    "interp": lambda x, xp, fp, *a, **o: np.interp(x, xp, fp),  # forgets left, right and period
    "meshgrid": lambda *a, **o: [np.array(g) for g in np.meshgrid(*a, **o)],  # a list of copies
    "cross": lambda a, b, *r, **o: np.cross(b, a, *r, **o),
    "vander": lambda x, N=None, increasing=False: np.vander(x, N),
    "trim_zeros": lambda f, *a, **o: np.array(np.trim_zeros(f, *a, **o)),  # no view
    "percentile": lambda a, q, *r, **o: np.float64(1) * np.percentile(a, q, *r, **o),
    "hstack": lambda *a, **o: np.hstack(*a, **o).copy("F"),
    "diagflat": lambda v, k=0: np.diagflat(v, abs(k)),
    "select": lambda c, v, default=0: np.select(c, v),
}


@pytest.mark.parametrize("name", CALL_FAULTS)
def test_a_wrong_function_is_found_by_calls(name: str) -> None:
    xp = numpy_but(**{name: CALL_FAULTS[name]})
    places = [n for n, (text, _, _) in enumerate(calls.functions()) if text == f"np.{name}"]
    seeds = range(places[0], ENOUGH * 100, len(calls.functions()))
    assert any(call_runner.check(calls.generate(seed), xp) for seed in seeds), name
