"""``bench functions``: its calls give what NumPy gives, there is one of every function, and its
table has what it says."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse import namespace
from clfuse.tools.bench import functions
from clfuse.tools.bench.command import parse

pytestmark = pytest.mark.clfuse_only

SIZE = 64

NOT_TIMED = set(
    "array2string array_repr array_str format_float_positional format_float_scientific "  # texts
    "broadcast_shapes einsum_path may_share_memory shares_memory "  # about arrays
    "iscomplexobj isrealobj ndim shape size require "
    "from_dlpack frombuffer fromfile fromfunction fromiter fromstring "  # other people's data
    "isnat polydiv row_stack ndarray".split()  # dates, one of few numbers, an alias, a class
)

DRAWN = ("random.", "g.", "empty", "unique_values")
"""Other numbers than NumPy's, or in no particular order."""


def test_every_function_is_called_but_for_those_that_are_named() -> None:
    native = {name for name, kind in namespace.coverage().items() if kind == "native"}
    assert native - functions.names_of(functions.calls()) == NOT_TIMED & native


def values(found: Any) -> Any:
    """Arrays and numbers as NumPy has them."""
    if isinstance(found, (tuple, list)):
        return [values(each) for each in found]
    return None if found is None else np.asarray(found)


@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated")  # NumPy 2.5
@pytest.mark.usefixtures("shared_memory")  # elsewhere NumPy is asked for little
def test_calls_give_what_numpys_give(xp: ModuleType) -> None:
    given = {module: functions.arguments(module, SIZE) for module in (np, xp)}
    wrong = []
    for call in functions.calls():
        found = []
        for module, names in given.items():
            prefix = "" if call.startswith("g.") else "np."
            with xp.config.override(host_us=1_000_000):  # kernels have other tests
                found.append(values(eval(prefix + call, {**names, "np": module})))
        if call.startswith(DRAWN):
            continue
        try:
            np.testing.assert_equal(str(found[1]).count("array"), str(found[0]).count("array"))
            for ours, theirs in zip(_flat(found[1]), _flat(found[0]), strict=True):
                assert ours.dtype == theirs.dtype
                np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8)
        except AssertionError as error:
            wrong.append(f"{call}: {error}")
    assert not wrong, "\n".join(wrong)


def _flat(value: Any) -> list[Any]:
    if isinstance(value, list):
        return [each for part in value for each in _flat(part)]
    return [] if value is None else [value]


def test_the_table_tells_what_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(call: str, size: int, given: Any) -> functions.Measured:
        return functions.Measured(call, size, 2.0, 3.0 if call.startswith("sort(") else 0.5)

    monkeypatch.setattr(functions, "measure", measured)
    found = list(functions.lines([], sizes=(10, 20)))
    assert [line.split()[1] for line in found[1:-2]] == ["sort(z)", "sort(m,0)"] * 2
    assert "above 1.2: 2 of" in found[-1]
    named = list(functions.lines(["sort", "linalg.norm"], sizes=(10,)))
    assert len(named) == 1 + 2 + 2 + 1


def test_a_call_is_measured(xp: ModuleType) -> None:
    given = {module: functions.arguments(module, SIZE) for module in (np, xp)}
    found = functions.measure("divmod(z,y)", SIZE, given)
    assert found.numpy_us > 0
    assert found.ratio > 0


def test_an_unknown_function_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse(["functions", "cumsum"]).programs == ["cumsum"]
    with pytest.raises(SystemExit):
        parse(["functions", "cumsun"])
    assert "no function cumsun among these" in capsys.readouterr().err
