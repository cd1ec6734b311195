"""Wrong calls: NumPy's exception class and words at the same moment, for thousands of them.

Those of `tests.fuzz.wrong_calls` come from NumPy's signatures, those of `tests.fuzz.numpy_refusals`
from NumPy's own tests; `tests.fuzz.wrong_statements` draws writes, operators, ufunc methods, linear
algebra and damaged files at random. What differs on purpose is written down here, with the reason.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.fuzz import numpy_refusals, wrong_calls, wrong_statements
from tests.support.releases import IS_BEFORE_2_4

FUZZ_SEED = int(os.environ.get("CLFUSE_FUZZ_SEED", "0"))
CALLS_THAT_DIFFER = {
    "np.meshgrid(": "more than 32 axes: NumPy's broadcasting iterator has no more",
    "np.fromfunction(abs": "what is called with the indices may raise before the shape is refused",
}
"""Start of the call -> why NumPy's class is not wanted."""

TESTS_THAT_DIFFER = {
    "TestArgmaxArgminCommon::test_compare_error_with_out": "an array of texts is NumPy's own",
    "TestBooleanIndexing::test_assignment_cast_error": "one value is wrong: stand-ins have none",
    "TestConcatenate::test_operator_concat": "Python's classes have no slot for it: it adds",
    "TestCApiAccess": "C's sequence protocol adds the length to negative indices of any class",
    "TestIndexing::test_index_no_floats": "a float in a slice and one as an index: both are wrong",
    "TestIndexing::test_too_many_fancy_indices_special_case": "a limit of NumPy's iterator",
    "TestEinsumPath::test_path_type_input_invalid": "paths are ours to choose",
    "TestFlags::test_writeable_from_readonly": "the array is a copy: nothing is shared",
    "TestFlat::test_maxdims": "a limit of NumPy's iterator",
    "TestResize": "who else refers to an array is not looked at",
    "TestUfunc::test_output_ellipsis_errors": "position and keyword look the same in `reduce`",
    "TestSpecialMethods": "the C side of __array_wrap__ and __array_ufunc__",
    "TestRandomDist::test_permuted_not_writeable": "drawn by NumPy's own generator",
    "TestSeed::test_invalid_initialization": "a bit generator of the test's own",
}
"""Part of a test's name -> why NumPy's class is not wanted."""

OTHER_WORDS = 0.005
"""Part of the calls with the right class whose words are not NumPy's: those of random generators,
which NumPy has in C."""


# Of a call with two mistakes every release names the one that it meets first.
if IS_BEFORE_2_4:
    pytestmark = pytest.mark.skip("classes of errors are compared with NumPy 2.4 and later")


@pytest.fixture(autouse=True)
def small_programs_on_the_host(
    xp: ModuleType,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some checks look at values: that must build no kernels. And no file must be left here."""
    if xp is not np:
        request.getfixturevalue("setting")(host_us=50, fallback="allow")
    monkeypatch.chdir(tmp_path)


def test_wrong_arguments_raise_what_numpy_raises(xp: ModuleType) -> None:
    """The class of every error, and of those of NumPy's class the words."""
    calls = list(wrong_calls.wrong_calls(FUZZ_SEED, most_of_a_kind=2))
    assert len(calls) > 5000
    differences, compared, other_words = [], 0, []
    for call in calls:
        found = call.run(xp)
        if not call.text.startswith(tuple(CALLS_THAT_DIFFER)):
            differences += filter(None, [wrong_calls.difference(call, found)])
        if found is not None and wrong_calls.public(type(found)) is call.error:
            compared += 1
            if not call.has_words(found):
                other_words.append(f"{call.text}: {found} instead of {call.words}")
    assert not differences, "\n".join(differences[:20])
    assert compared > 5000
    assert len(other_words) < OTHER_WORDS * compared, "\n".join(other_words[:40])


@pytest.mark.parametrize("kind", wrong_statements.KINDS)
def test_wrong_statements_raise_numpys_error_and_change_nothing(
    xp: ModuleType, kind: str
) -> None:
    statements = list(wrong_statements.wrong_statements(kind, 300, FUZZ_SEED))
    found = [wrong_statements.difference(statement, xp) for statement in statements]
    differences = [text for text in found if text is not None]
    assert not differences, "\n".join(differences[:20])


@pytest.mark.clfuse_only
def test_what_numpys_tests_expect_to_fail_fails_alike(
    xp: ModuleType, request: pytest.FixtureRequest
) -> None:
    for mark in ("thread_unsafe", "slow", "parallel_threads", "leaks_references", "valgrind_error"):
        request.config.addinivalue_line("markers", f"{mark}: NumPy's")
    compared, differences = 0, []
    for case in numpy_refusals.refusing():
        count, found = numpy_refusals.differences(case, xp)
        compared += count
        if not any(part in case.name for part in TESTS_THAT_DIFFER):
            differences += found
    assert compared > 1500
    assert not differences, "\n".join(differences[:20])


@pytest.mark.clfuse_only
def test_what_fails_by_its_type_is_left_to_numpy(xp: ModuleType) -> None:
    x = xp.arange(9.0).reshape(3, 3)
    for call in (lambda m, x: m.average(x, axis=[0]), lambda m, x: m.std(x, ddof=1j),
                 lambda m, x: m.tri(2.5)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of floats as extents: NumPy 2.5
            expected = call(np, np.arange(9.0).reshape(3, 3))
            np.testing.assert_allclose(np.asarray(call(xp, x)), expected)
