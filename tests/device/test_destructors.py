"""Destructors of memory cope with half-made objects of interrupted calls, and lose no interrupt."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from clfuse import compiled
from clfuse.counters import counters
from clfuse.runtime.buffers import _HostMemory
from clfuse.runtime.memory import Block, Counted
from clfuse.runtime.sharing import _Shared

pytestmark = pytest.mark.clfuse_only


@pytest.fixture
def unraisable(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    found: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda about: found.append(about.exc_value))
    return found


@pytest.mark.parametrize("kind", [Block, Counted, _Shared, _HostMemory])
def test_an_object_that_was_half_made_goes_without_a_word(
    kind: type, unraisable: list[Any]
) -> None:
    before = counters["device_bytes_now"]
    made = kind.__new__(kind)
    del made
    assert unraisable == []
    assert counters["device_bytes_now"] == before


class Interrupted:
    """A pool without blocks, that is interrupted."""

    def __init__(self) -> None:
        self._bins: dict[int, list[Any]] = {}

    def give(self, block: Any, size: int) -> None:
        raise KeyboardInterrupt


@pytest.mark.skipif(compiled.load() is None, reason="a destructor in Python loses interrupts")
def test_an_interrupt_of_a_destructor_comes_where_the_program_goes_on(
    unraisable: list[Any],
) -> None:
    before = counters["device_bytes_now"]
    block = Block(Interrupted(), 100, object(), 128)  # type: ignore[arg-type]
    assert counters["device_bytes_now"] == before + 100
    went_on = []

    def let_go() -> None:
        nonlocal block
        del block
        for _ in range(10):
            went_on.append(1)

    with pytest.raises(KeyboardInterrupt):
        let_go()
    assert len(went_on) < 10
    assert unraisable == []
    assert counters["device_bytes_now"] == before
