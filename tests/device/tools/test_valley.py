"""``bench valley``: its loops compute what NumPy computes, and its table has what it says."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from numpy.testing import assert_allclose

from clfuse.tools.bench import valley

pytestmark = pytest.mark.clfuse_only


@pytest.mark.parametrize("program", valley.PROGRAMS)
def test_its_loops_are_numpys(program: str, xp: ModuleType) -> None:
    given = np.random.default_rng(5).random((2, 40))
    found = []
    for module in (np, xp):
        state = tuple(module.array(array) for array in given)
        for _ in range(4):
            state, result = valley.PROGRAMS[program](module, *state)
        found.append([np.asarray(array) for array in (*state, result)])
    for expected, actual in zip(*found, strict=True):
        assert_allclose(actual, expected, rtol=1e-9, atol=1e-9)


def test_the_table_has_a_line_for_each_ending_and_a_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        valley, "measure",
        lambda program, size, ending: valley.Cell(program, ending, size, size / 100, 0.5, 7.0),
    )
    found = list(valley.lines(["heat"], sizes=(50, 200)))
    assert len(found) == 2 + len(valley.ENDINGS) + 1
    assert " ".join(found[2].split()) == "heat sum 0.50 ( 0.50, 7) 2.00 ( 0.50, 7)"
    assert found[-1] == "geometric mean 1.00; above 1.15: 3 of 6"


def test_a_cell_is_measured_in_processes_of_its_own() -> None:
    cell = valley.measure("heat", 100, "sum")
    assert (cell.program, cell.ending, cell.size) == ("heat", "sum", 100)
    assert cell.ratio > 0
    assert cell.steady > 0
    assert cell.longest_ms > 0
    with pytest.raises(RuntimeError, match="no such loop"):
        valley._timed("numpy", "no such loop", 10, "sum", 1)
