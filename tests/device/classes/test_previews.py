"""The text of a large array at a prompt: its corners alone are computed, and it stays recorded."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from clfuse.engine import previews

pytestmark = pytest.mark.clfuse_only

GIVEN = np.random.default_rng(5).random((300, 400))


def updated(m: ModuleType, x: Any) -> Any:
    y = x * 2
    y[1:-1, ::3] = 5
    y[:, 2] += y[:, 3]
    return y


def deep(m: ModuleType, x: Any) -> Any:
    for _ in range(40):
        x = m.sqrt(x) + 0.25
    return x


CHEAP: dict[str, Callable[[ModuleType, Any], Any]] = {
    "map": lambda m, x: x * 2 - 1,
    "float32": lambda m, x: (x * 100).astype("f4") / 3,
    "complex": lambda m, x: x * (1 + 2j),
    "bool": lambda m, x: x > 0.5,
    "row": lambda m, x: x + m.arange(400.0),
    "column": lambda m, x: x * m.arange(300.0)[:, None],
    "transposed": lambda m, x: (x * 2).T + 1,
    "turned": lambda m, x: (x * 2)[::-1, ::-2],
    "flat": lambda m, x: (x + 1).reshape(-1),
    "rolled": lambda m, x: m.roll(x * 3, 7, axis=1),
    "joined": lambda m, x: m.concatenate([x * 2, x[:5] - 1]),
    "written": updated,
    "deep": deep,
    "chosen": lambda m, x: m.where(x > 0.5, x, -x),
    "neighbours": lambda m, x: x[1:-1, 1:-1] - x[:-2, 1:-1] - x[2:, 1:-1],
    "made here": lambda m, x: m.arange(90_000) ** 2,
    "four axes": lambda m, x: x.reshape(30, 10, 20, 20) * 2,
}

DEAR: dict[str, Callable[[ModuleType, Any], Any]] = {
    "mean": lambda m, x: x - x.mean(),
    "sum": lambda m, x: x.reshape(-1)[:5000] + (x * 2).sum(),
    "cumsum": lambda m, x: m.cumsum(x * 2),
    "sort": lambda m, x: m.sort(x * 2, axis=None),
    "indices": lambda m, x: (x * 2)[m.arange(300) % 7],
}


@pytest.fixture(autouse=True, params=["numpy", "kernels"])
def prompt(request: Any, xp: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A prompt, at which large arrays are somewhat smaller; NumPy or kernels compute."""
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    monkeypatch.setattr(previews, "LEAST_ELEMENTS", 2000)
    with xp.config.override(
        host_us=50 if request.param == "numpy" else 0, build_after_ms=0, background="off"
    ):
        yield


def is_computed(x: Any) -> bool:
    return x._storage.node.buffer is not None


def on_device(xp: ModuleType) -> Any:
    with xp.config.override(host_us=0):
        x = xp.asarray(GIVEN) + xp.zeros((300, 400))
        xp.evaluate(x)
    return x


def recorded(xp: ModuleType, make: Callable[[ModuleType, Any], Any], x: Any) -> Any:
    """An array that is not computed, whatever its size."""
    with xp.config.override(host_us=0):
        return make(xp, x)


@pytest.mark.parametrize("name", CHEAP)
def test_corners_are_numpys_text(name: str, xp: ModuleType) -> None:
    expected = CHEAP[name](np, GIVEN)
    x = recorded(xp, CHEAP[name], on_device(xp))
    assert repr(x) == repr(expected)
    assert not is_computed(x)
    assert str(x) == str(expected)
    assert not is_computed(x)
    np.testing.assert_allclose(x.get(), expected, rtol=1e-6)
    assert repr(x) == repr(expected)


@pytest.mark.parametrize("name", DEAR)
def test_what_needs_much_is_computed_once(name: str, xp: ModuleType) -> None:
    expected = DEAR[name](np, GIVEN)
    x = recorded(xp, DEAR[name], on_device(xp))
    assert repr(x) == repr(expected)
    assert is_computed(x)


def test_an_array_on_the_host_is_not_sent_as_a_whole(xp: ModuleType) -> None:
    given = np.arange(1_000_000.0).reshape(1000, 1000)
    with xp.config.override(host_us=50):
        x = xp.asarray(given)
    y = recorded(xp, lambda m, x: x * 2, x)
    before = xp.stats()["bytes_to_device"]
    assert repr(y) == repr(given * 2)
    assert xp.stats()["bytes_to_device"] - before < given.nbytes // 100
    assert not is_computed(y)


def test_edges_are_as_many_as_numpy_shows(xp: ModuleType) -> None:
    x = recorded(xp, lambda m, x: x * 2, on_device(xp))
    with np.printoptions(edgeitems=5, threshold=100):
        assert repr(x) == repr(GIVEN * 2)
    assert not is_computed(x)
    with np.printoptions(threshold=10**9):
        assert repr(x) == repr(GIVEN * 2)
    assert is_computed(x)


def test_a_later_write_is_not_in_an_earlier_text(xp: ModuleType) -> None:
    x = recorded(xp, lambda m, x: x * 2, on_device(xp))
    assert repr(x) == repr(GIVEN * 2)
    x[0, 0] = 7
    expected = GIVEN * 2
    expected[0, 0] = 7
    assert repr(x) == repr(expected)
    assert_array_equal(x.get(), expected)


def test_a_notebook_says_that_it_is_not_computed(xp: ModuleType) -> None:
    x = recorded(xp, lambda m, x: x * 2, on_device(xp))
    assert "float64, 960,000 bytes, not computed yet</small>" in x._repr_html_()
    xp.evaluate(x)
    assert "not computed" not in x._repr_html_()


def test_small_arrays_and_long_programs_are_computed(
    xp: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(previews, "MOST_NODES", 20)
    x = recorded(xp, deep, on_device(xp))
    assert repr(x) == repr(deep(np, GIVEN))
    assert is_computed(x)
    monkeypatch.setattr(previews, "LEAST_ELEMENTS", GIVEN.size + 1)
    y = recorded(xp, lambda m, x: x * 2, on_device(xp))
    assert repr(y) == repr(GIVEN * 2)
    assert is_computed(y)


def test_a_program_without_a_prompt_computes(
    xp: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(sys, "ps1")
    x = recorded(xp, lambda m, x: x * 2, on_device(xp))
    assert repr(x) == repr(GIVEN * 2)
    assert is_computed(x)
