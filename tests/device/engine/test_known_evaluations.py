"""Evaluations and looks at values that came before go a shorter way, in compiled code: nobody can
tell but by the time how values come to Python, and evaluations count as all others."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse import config
from clfuse.engine import plans
from clfuse.engine.evaluate import forget_plans
from clfuse.ir import nodes
from clfuse.runtime.devices import selection as runtime

pytestmark = pytest.mark.clfuse_only

TURNS = 6

HOSTILE: dict[str, list[Any]] = {
    "bool": [True, False], "int8": [-128, 127], "uint8": [0, 255], "int16": [-32768], "uint16": [1],
    "int32": [-(2**31), 7], "uint32": [2**32 - 1], "int64": [-(2**63), 2**63 - 1],
    "uint64": [2**64 - 1], "float16": [0.5, -0.0, np.inf], "float32": [1e-42, -np.inf, 3.7],
    "float64": [np.nan, -0.0, 5e-324, 1e308], "complex64": [1 + 2j, 3], "complex128": [0, -1j],
}


def told(convert: Any, scalar: Any) -> str:
    """What a conversion gives or raises, and warns of."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            found = convert(scalar)
            text = f"{type(found).__name__} {found!r}"
        except (TypeError, ValueError, OverflowError) as error:
            text = f"{type(error).__name__} {error}"
    return f"{text} {[(str(w.message), w.category) for w in seen]}"


CONVERSIONS = (float, int, bool, complex, lambda x: x.item(), lambda x: x.item(0))


@pytest.mark.parametrize("on_host", [True, False])
@pytest.mark.parametrize("dtype", HOSTILE)
def test_python_numbers_of_lazy_scalars_are_those_of_numpys(dtype: str, on_host: bool) -> None:
    if dtype in ("float64", "complex128") and not runtime.get_device().traits.fp64:
        pytest.skip("the device has no double precision")
    for value in HOSTILE[dtype]:
        theirs = np.array([value], dtype)
        with config.override(host_us=config.settings.host_us if on_host else 0):
            assert cf.asarray(theirs).dtype == theirs.dtype
            for convert in CONVERSIONS:
                expected = told(convert, theirs.max())
                assert told(convert, cf.array(theirs).max()) == expected
                scalar = cf.array(theirs).max()
                cf.evaluate(scalar)
                assert told(convert, scalar) == expected
                assert told(convert, scalar) == expected


def test_evaluate_takes_what_it_took() -> None:
    x = cf.arange(3000.0)
    for _ in range(TURNS):
        y, z, total = x + 1, x * 2, x.sum()
        cf.evaluate(y, [z, (total,)], np.arange(3), None, 5)
        cf.evaluate(y, wait=False)
        cf.evaluate(y, total)
        cf.synchronize()
        cf.evaluate()
        assert (float(y[1]), float(z[1]), float(total)) == (2, 2, 2999 * 1500)
    with pytest.raises(TypeError):
        cf.evaluate(x, waits=True)


def test_evaluations_that_came_before_count_as_all_others() -> None:
    with config.override(host_us=0, build_after_ms=0):
        x = cf.arange(3000.0)
        held = [x * 1 for _ in range(20)]
        for _ in range(300):
            turn = nodes.turn[0]
            y = x * 3 + 1
            cf.evaluate(y)
            assert nodes.turn[0] == turn + 1
            assert not nodes.operations
            assert len(nodes.recorded) <= 2 * nodes.FORGET_AT
        cf.evaluate(*held)
        evaluated: list[int] = []
        with config.override(max_pinned_bytes=30 * x.nbytes):
            large = cf.arange(1_000_000.0)  # freed bytes leave no room for pending work
            cf.evaluate(large)
            del large
            kept = x + 1  # holds what nobody else needs
            for turn in range(100):
                y = x * 3 + 1
                cf.evaluate(y)
                if kept._storage.node.buffer is not None:
                    evaluated.append(turn)
                kept = kept + y
        assert evaluated
        assert len(evaluated) < 50


def test_plans_that_run_the_shorter_way_are_kept_longest(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    with config.override(host_us=0, build_after_ms=0):
        x = cf.arange(3000.0)
        cf.evaluate(x)
        forget_plans()
        monkeypatch.setattr(plans, "PLANS_KEPT", 4)
        for turn in range(30):
            before = cf.stats()["plans_made"]
            assert float((x * 3 - x).sum()) == 2999 * 3000
            if turn > 1:
                assert cf.stats()["plans_made"] == before
            other = x
            for _ in range(turn % 10 + 1):
                other = other * 0.5 + 1
            cf.evaluate(other)
            assert len(plans.kept) <= 4
