"""The guide's page about accuracy is made of figures of every function on both runtimes."""

from __future__ import annotations

import re

import pytest

from clfuse.tools.check.functions import FUNCTIONS
from tests.accuracy import figures, sums

LABELS = [function.label for function in FUNCTIONS]


@pytest.mark.parametrize("runtime", list(figures.RUNTIMES))
def test_every_function_was_measured(runtime: str) -> None:
    where, found = figures.read(runtime)
    assert where
    assert list(found) == LABELS, "python -m tests.accuracy measure NAME, on both; then write"
    for function in FUNCTIONS:
        one = found[function.label]
        all_halves = function.dtype == "float16" and function.arity == 1
        assert one.count >= (15_000 if all_halves else 80_000), function.label
        assert 0 < one.mean <= one.worst, function.label
        assert one.where, function.label


@pytest.mark.parametrize("runtime", list(figures.RUNTIMES))
def test_what_is_worse_than_promised_has_a_reason(runtime: str) -> None:
    assert figures.unexplained(figures.read(runtime)[1]) == []


@pytest.mark.parametrize("runtime", list(figures.RUNTIMES))
def test_sums_of_every_dtype_were_compared(runtime: str) -> None:
    found = figures.read_sums(runtime)
    for dtype in sums.DTYPES:
        for call in ("sum", "mean", "var", "std"):
            assert 0 < found[dtype][call] < figures.MORE_THAN_NUMPYS, (dtype, call)


def test_the_page_is_made_of_the_figures() -> None:
    assert figures.PAGE.read_text(encoding="utf-8") == figures.page(), (
        "python -m tests.accuracy write makes it anew"
    )


def test_every_note_of_the_tables_is_explained() -> None:
    text = figures.PAGE.read_text(encoding="utf-8")
    before, _, tables = text.partition(figures.BEGIN)
    used = set(re.findall(r"\| `\w+` \((\w)\) \|", tables))
    assert used == set(figures.NOTES.values())
    assert used == set(re.findall(r"(?m)^- \((\w)\) ", before))


def test_a_function_that_is_missing_or_worse_is_seen() -> None:
    good = figures.Figures(100_000, 3.9, 0.2, 0.5, 0.1, "1.0")
    found = dict.fromkeys(LABELS, good)
    assert figures.unexplained(found) == []
    found["tan(float32)"] = figures.Figures(100_000, 4.1, 0.2, 0.5, 0.1, "1.0")
    found["tan(complex64)"] = figures.Figures(100_000, 6.1, 0.2, 0.5, 0.1, "1.0")
    found["sin(complex64)"] = figures.Figures(100_000, 5.9, 0.2, 0.5, 0.1, "1.0")
    found["exp(float64)"] = figures.Figures(100_000, float("nan"), 0.2, 0.5, 0.1, "1.0")
    assert figures.unexplained(found) == [
        "exp(float64): nan", "tan(float32): 4.1", "tan(complex64): 6.1"
    ]
