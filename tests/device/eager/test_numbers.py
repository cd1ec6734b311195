"""Arrays of one number, numbers and lists of numbers in place of arrays: NumPy's at the call."""

from __future__ import annotations

import inspect
import warnings
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse.tools.bench import functions
from tests.support.marks import compiled

pytestmark = pytest.mark.clfuse_only

NUMBER = 3.9

CALLS: tuple[str, ...] = (
    "np.asarray(number).flatten()", "np.asarray(number) + 1", "(np.array([number]) + 1) % 2",
    "np.zeros(1) + number", "np.ones((1, 1)) @ np.ones((1, 1))", "np.array(number).item()",
    "np.asarray(number).reshape(-1)[0]", "np.rad2deg(np.asarray(number))", "np.full((1,), number)",
    "np.append(np.arange(0.0, np.float64(number), 0.5), number)", "np.append([], number)",
    "np.append(number, [1.0])", "np.logspace(start=1, stop=5, base=0.5, num=5)",
    "np.linspace(start=0, stop=1)", "np.arange(1, 9, step=2)", "np.arange(3, 9)",
    "np.dot(number, 2.0)", "np.inner([1.0, 2.0], [3.0, number])", "np.ravel(number)",
    "np.atleast_1d(number)", "np.atleast_2d([1.0, number])", "np.transpose([[1, 2], [3, 4]])",
    "np.flip([1, 2, 3])", "np.flip(number)", "np.array_split([1, 2, 3, 4], 2)[1]",
    "np.empty_like([1, 2]).shape", "np.ones_like(number)", "np.full_like([1, 2], number)",
    "np.real(number)", "np.real([1j, 2.0])", "np.percentile(number, 30)", "np.squeeze([[number]])",
    "np.histogram([1.0, number], 3)[0]", "np.cumsum(number)", "np.einsum('i,i', [1, 2], [3, 4])",
    "np.reshape(number, (1, 1))", "np.median(number)", "np.diagonal([[1, 2], [3, 4]])",
)  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_numbers_are_numpys_arrays(xp: ModuleType, call: str) -> None:
    expected = eval(call, {"np": np, "number": NUMBER})
    found = eval(call, {"np": xp, "number": NUMBER})
    assert np.shape(found) == np.shape(expected)
    assert getattr(found, "dtype", type(found)) == getattr(expected, "dtype", type(expected))
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-12)


@compiled
@pytest.mark.parametrize("call", CALLS)
def test_nothing_of_them_is_recorded(xp: ModuleType, call: str) -> None:
    names = {"np": xp, "number": NUMBER}
    with xp.config.override(host_us=50):
        eval(call, names)
        before = xp.stats()["nodes_recorded"]
        eval(call, names)
        assert xp.stats()["nodes_recorded"] == before


def test_one_number_is_a_constant_of_a_kernel(xp: ModuleType) -> None:
    with xp.config.override(host_us=50, build_after_ms=0):
        x = xp.asarray(np.arange(100_003.0))
        plan = xp.explain(x * xp.array(2.0) + xp.array([3.0]))
        assert [len(kernel.reads) for kernel in plan.kernels] == [1]
        np.testing.assert_array_equal(x * xp.array(2.0), np.arange(100_003.0) * 2)


WRITING = ("copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask")


def by_name(call: str, module: ModuleType) -> dict[str, Any] | None:
    """The arguments of an expression of `functions.calls` by their names; None where NumPy's
    function takes none by name."""
    name = call.partition("(")[0]
    met: list[Any] = []
    module_names = {**functions.arguments(module, 50), "np": module}
    eval(f"note{call[len(name):]}", {**module_names, "note": lambda *a, **k: met.append((a, k))})
    places, named = met[0]
    try:
        parameters = inspect.signature(eval(f"np.{name}", {"np": np})).parameters.values()
    except (ValueError, AttributeError):  # no signature; no such function in an older NumPy
        return None
    own = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    if len(places) > len(own):
        return None
    return {**dict(zip(own, places, strict=False)), **named}


def test_functions_take_their_arguments_by_name(xp: ModuleType) -> None:
    count = 0
    for call in functions.calls():
        name = call.partition("(")[0]
        if name.startswith(("random.", "g.")) or name in ("empty", "empty_like", *WRITING):
            continue
        given = by_name(call, np)
        if given is None:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected = eval(f"np.{name}", {"np": np})(**given)
            except (TypeError, ValueError):  # a ufunc has no names, seven columns no halves
                continue
            found = eval(f"np.{name}", {"np": xp})(**by_name(call, xp))  # type: ignore[arg-type]
        if isinstance(expected, np.ndarray | np.generic):
            np.testing.assert_allclose(
                np.asarray(found), expected, rtol=1e-6, atol=1e-9, err_msg=call
            )
        count += 1
    assert count > 200
