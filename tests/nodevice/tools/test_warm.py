"""What ``python -m clfuse warm`` refuses, before anything runs."""

from __future__ import annotations

import pytest

from clfuse.tools import warm


@pytest.mark.parametrize(("arguments", "why"), [
    ([], "expected a program"),
    (["--runs"], "expected one argument"),
    (["--runs", "0", "x.py"], "expected 1 or more"),
    (["--runs=some", "x.py"], "invalid"),
    (["-"], "put it into a file"),
])  # fmt: skip
def test_wrong_command_lines(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        warm.main(arguments)
    assert ended.value.code == 2
    assert why in capsys.readouterr().err
