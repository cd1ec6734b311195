"""The bug that the guide's page about debugging plants is seen by the tools that the page names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import clfuse
from tests.support.changed_copy import TOP, copy_package, run_with

pytestmark = pytest.mark.clfuse_only

PAGE = TOP / "clfuse" / "guide" / "contributing" / "debugging.md"
DIFF = re.compile(r"(?ms)^```diff\n--- (\S+)\n-(.*?)\n\+(.*?)\n```$")
PROGRAM = re.compile(r"(?ms)^```python\n(import numpy.*?)^```$")
RIGHT = "[0.00045401 0.000454   0.000454  ]"


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A folder with a copy of the package that has the bug, and the program."""
    if clfuse.get_device().traits.kind != "cpu":
        pytest.skip("the bug is in kernels for CPUs")
    text = PAGE.read_text("utf-8")
    (changed,) = DIFF.findall(text)
    file, right, wrong = changed
    program = PROGRAM.search(text)
    assert program
    copy_package(tmp_path)
    template = tmp_path / file
    source = template.read_text("utf-8")
    assert source.count(right) == 1
    template.write_text(source.replace(right, wrong), "utf-8")
    (tmp_path / "wrong.py").write_text(program[1], "utf-8")
    return tmp_path


def test_the_tools_see_a_planted_bug(planted: Path) -> None:
    run = "-m", "clfuse", "run", "wrong.py"
    by_numpy = run_with(planted, *run, CLFUSE_HOST_US="1000000")
    assert by_numpy.stdout.strip() == RIGHT
    by_gpus_kernels = run_with(planted, *run, CLFUSE_SCHEDULE="gpu")
    assert by_gpus_kernels.stdout.strip() == RIGHT
    simulated = run_with(planted, *run, CLFUSE_SIMULATE="h100", CLFUSE_SCHEDULE="cpu")
    assert simulated.stdout.strip() == "[0.00045401 0.000454          nan]"
    shown = run_with(planted, *run, CLFUSE_DEBUG="3").stderr
    assert "clfuse: plan 0: 1 launch(es), 24 B moved" in shown
    assert "clfuse:         for (; j < high - 1; j++) {" in shown
