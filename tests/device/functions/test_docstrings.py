"""Every public function has a docstring with its parameters, and an example that is right."""

from __future__ import annotations

import doctest
import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import clfuse
from clfuse.functions.documenting import FILE
from tests import docstrings

pytestmark = pytest.mark.clfuse_only


def functions() -> dict[str, object]:
    """Public name -> function that is not NumPy's own."""
    found = {name: getattr(clfuse, name) for name in dir(clfuse) if not name.startswith("_")}
    return {
        name: value for name, value in found.items()
        if callable(value) and not inspect.isclass(value) and value is not getattr(np, name, None)
    }


def test_every_function_has_parameters_and_an_example() -> None:
    bare = []
    for name, function in functions().items():
        text = inspect.getdoc(function) or ""
        if "deprecated" in (inspect.getdoc(getattr(np, name, None)) or "").partition("\n\n")[0]:
            continue  # in an older NumPy, which has more words for its successor: trapz
        takes = isinstance(function, clfuse.ufunc) or inspect.signature(function).parameters
        if (takes and "Parameters\n----" not in text) or len(text) < 60:
            bare.append(name)
    assert bare == []


def test_the_file_is_what_signatures_and_words_make() -> None:
    written, made = Path(FILE).read_text(encoding="utf-8"), docstrings.text()
    if written.splitlines()[0] == made.splitlines()[0]:  # with this release of NumPy
        assert written == made, "run: python -m tests.docstrings"


def test_every_parameter_that_has_words_is_one() -> None:
    used = {
        parameter for name, _, _ in docstrings.examples()
        for parameter in inspect.signature(getattr(clfuse, name)).parameters
    }
    assert used <= set(docstrings.PARAMETERS)
    if hasattr(np, "unstack"):  # older releases have fewer functions
        assert used == set(docstrings.PARAMETERS)


def test_no_sentence_of_numpys_is_copied() -> None:
    """Ten words in a row are no accident."""
    for name, _, _ in docstrings.examples():
        ours = (inspect.getdoc(getattr(clfuse, name)) or "").split(">>>")[0].split()
        theirs = " ".join((inspect.getdoc(getattr(np, name)) or "").split())
        runs = [" ".join(ours[start : start + 10]) for start in range(len(ours) - 9)]
        assert [run for run in runs if run in theirs] == [], name


@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated")  # 2.5
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("name", sorted({name for name, _, _ in docstrings.examples()}))
def test_examples_are_right(name: str, setting: Any) -> None:
    setting(host_us=50)  # as for their readers
    module = ModuleType("examples")
    function = getattr(clfuse, name)
    parser = doctest.DocTestParser()
    text = inspect.getdoc(function) or ""
    test = parser.get_doctest(text, vars(module), name, None, 0)
    assert test.examples
    runner = doctest.DocTestRunner(
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS, verbose=False
    )
    runner.run(test)
    assert runner.failures == 0, text
