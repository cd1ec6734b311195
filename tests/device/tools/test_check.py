"""``python -m clfuse doctor --check``: it finds nothing here, finds what is wrong, and says where.
"""

from __future__ import annotations

import getpass
import json
import mmap
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse import __main__ as command_line
from clfuse.codegen.lines import expressions
from clfuse.engine.evaluate import forget_plans
from clfuse.ops.table import UFUNCS
from clfuse.tools.check import accuracy, ended_early, faults, memory, privacy, report, values
from clfuse.tools.check.finding import Budget, Finding
from clfuse.tools.check.functions import FUNCTIONS
from clfuse.tools.check.points import operands

pytestmark = pytest.mark.clfuse_only


def one(label: str) -> Any:
    return next(function for function in FUNCTIONS if function.label == label)


@pytest.fixture
def wrong_row(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A row of the op table that is off by a hundred-thousandth, for the check of it alone."""
    monkeypatch.setitem(UFUNCS["logaddexp"].expressions, "float",
                        "(logaddexp_{T}({0}, {1}) * ({T})(1.00001f))")
    monkeypatch.setattr(expressions, "_steps", {})  # later tests would have what is wrong, too
    both = [one("logaddexp(float32)"), one("hypot(float32)")]
    monkeypatch.setattr(accuracy, "_groups", lambda: [both])
    forget_plans()
    yield
    forget_plans()


@pytest.mark.parametrize("name", list(report.PARTS))
def test_every_part_does_something_and_finds_nothing_wrong(name: str) -> None:
    finding = report.here(name, Budget(0.2))
    assert finding.problems == []
    assert re.search(r"[1-9]\d* ", finding.what) or finding.left_out


def test_a_wrong_library_function_is_named_with_its_operand(wrong_row: Any) -> None:
    finding = accuracy.check(Budget(60))
    assert len(finding.problems) == 1
    found = re.fullmatch(r"logaddexp\(float32\) is ([\d.e+]+) ulp off at .*; 4 are promised",
                         finding.problems[0])
    assert found is not None
    assert 60 < float(found[1]) < 200  # 1e-5 are 84 to 168 units of 2**-23


def test_every_rounded_row_is_measured() -> None:
    rows = {row.name for row in UFUNCS.values() if row.ulp or row.complex_ulp}
    assert {function.name for function in FUNCTIONS} == rows | {"sinc"}
    grouped = [function for group in accuracy._groups() for function in group]
    assert sorted(grouped, key=str) == sorted(FUNCTIONS, key=str)


@pytest.mark.parametrize("label", ["tan(float64)", "log(complex64)", "power(float32)",
                                   "gamma(float64)", "logaddexp(float64)", "sinc(float32)"])
def test_operands_are_numbers_of_which_the_function_is_one(label: str) -> None:
    function = one(label)
    given = operands(function, 2000)
    assert len(given) == function.arity
    for operand in given:
        assert operand.dtype == function.dtype
        assert 1500 < len(operand) <= 2000
        assert np.isfinite(operand).all()
    first = operands(function, 2000)
    assert all((a.tobytes() == b.tobytes()) for a, b in zip(first, given, strict=True))


def test_an_error_counts_in_units_of_the_last_place() -> None:
    exact = np.array([1.0, 1.5, 2.0, 0.0, 3e38, 1e30], np.longdouble)
    actual = np.array([1 + 2**-23, 1.5 - 2**-22, 2 + 2**-22, 2**-149, np.inf, np.nan], np.float32)
    found = accuracy.distances(actual, exact, exact)
    assert found[:4].tolist() == [1, 2, 1, 1]
    assert found[4] > 1e6  # 3.4e38 is not 3e38
    assert found[5] == np.inf
    assert accuracy.distances(np.array([np.inf], "f4"), np.array([3.4028235e38 * (1 + 2**-25)],
                              np.longdouble), np.array([3.4e38], np.longdouble))[0] < 1.01


def test_a_wrong_value_is_shown_with_its_program(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["a = np.arange(7)", "r0 = np.roll(a, 2)", "r1 = a * 2"]
    assert values.difference(cf, lines) == ""
    monkeypatch.setattr(values, "generate", lambda seed: lines)
    monkeypatch.setattr(cf, "roll", lambda a, n: a)
    finding = values.check(Budget(0.01))
    assert 1 <= len(finding.problems) <= values.MOST_SHOWN
    assert finding.problems[0].startswith("r0 is np.int64(0) at (0,); NumPy: np.int64(5), with ")
    assert "    r0 = np.roll(a, 2)" in finding.problems[0]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("r0 = x.astype('f4')", "r0 is float64 (7,); NumPy: float32 (7,)"),
        ("r0 = x[100]", "r0 = x[100]: no error; NumPy: IndexError"),
    ],
)
def test_other_dtypes_and_errors_are_wrong(line: str, problem: str) -> None:
    class Wrong:
        def astype(self, dtype: str) -> Any:
            return cf.arange(7.0)

        def __getitem__(self, index: int) -> int:
            return 0

    stand_in = SimpleNamespace(arange=lambda n: Wrong(), ndarray=cf.ndarray, evaluate=cf.evaluate)
    assert values.difference(stand_in, ["x = np.arange(7)", line]) == problem


def test_programs_are_the_same_for_the_same_seed() -> None:
    assert [values.generate(seed) for seed in range(20)] == [
        values.generate(seed) for seed in range(20)
    ]


def test_a_write_made_twice_is_found_where_it_was_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ended_early, "generate", lambda seed: ((7, 7), ["x += 1"]))
    assert faults.interrupts(Budget(0.01)).problems == []
    record = ended_early.Subject.record

    def twice(self: Any, shape: Any, lines: Any, *rest: Any) -> Any:
        return record(self, shape, lines if self.xp is np else [*lines, *lines], *rest)

    monkeypatch.setattr(ended_early.Subject, "record", twice)
    finding = faults.interrupts(Budget(0.01))
    assert "seed 0, interrupted at " in finding.problems[0]
    assert "x is " in finding.problems[0]


def test_what_evaluations_leave_behind_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []

    def leaves(xp: Any, size: int) -> Any:
        # Pages of its own: what earlier tests have let go of is not taken again.
        pages = mmap.mmap(-1, 1 << 22)
        pages.write(b"\1" * len(pages))
        kept.append(pages)
        return xp.zeros(3)

    monkeypatch.setattr(memory, "PROGRAMS", (leaves,))
    finding = memory.check(Budget(0.5))
    if memory.resident_nbytes() is None:
        assert finding.left_out
    else:
        assert re.match(r"the process grew by \d+\.\d MiB in \d+ evaluations", finding.problems[0])


@pytest.fixture
def python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Puts a shell script in the place of Python where parts run in a process of their own."""

    def replace(commands: str) -> None:
        script = tmp_path / "python"
        script.write_text(f"#!/bin/sh\n{commands}\n")
        script.chmod(0o755)
        monkeypatch.setattr(report, "sys", SimpleNamespace(executable=str(script)))

    return replace


def test_a_process_that_a_driver_ends_is_a_finding(python: Callable[[str], None]) -> None:
    python("echo 'not json'\necho 'a last word' >&2\nkill -SEGV $$")
    finding = report.apart("values", Budget(1))
    assert finding.problems == ["the process ended with signal SIGSEGV\n    a last word"]


def test_a_process_that_does_not_come_back_is_ended(
    monkeypatch: pytest.MonkeyPatch, python: Callable[[str], None]
) -> None:
    python("exec sleep 100")
    monkeypatch.setattr(report, "LEAST_PATIENCE_S", 0.5)
    finding = report.apart("values", Budget(0.01))
    assert len(finding.problems) == 1
    assert re.fullmatch(r"the process did not come back in \d s", finding.problems[0])


def test_a_part_runs_in_a_process_of_its_own(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    told: list[str] = []
    finding = report.apart("interrupts", Budget(0.01, tell=told.append))
    assert finding.problems == []
    assert finding.what == "12 evaluations interrupted"
    assert told == ["12 trials"]


# ---- the command line ----


def test_the_command_says_what_is_wrong_and_ends_with_1(
    wrong_row: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path
) -> None:
    monkeypatch.setattr(report, "apart", report.here)
    monkeypatch.setattr(report, "PARTS", {"accuracy": accuracy.check})
    monkeypatch.setattr(report.check, "__kwdefaults__",
                        {**report.check.__kwdefaults__, "names": ("accuracy",)})
    file = tmp_path / "found.json"
    assert command_line.main(["doctor", "--check", "--seconds", "5", "--json", str(file)]) == 1
    printed = capsys.readouterr().out
    assert re.search(r"(?m)^accuracy     WRONG ", printed)
    assert "\naccuracy: logaddexp(float32) is " in printed
    facts = json.loads(file.read_text())
    assert facts["right"] is False
    assert facts["parts"]["accuracy"]["problems"][0].startswith("logaddexp(float32) is ")
    assert facts["about"]["numpy"] == np.__version__


def test_the_command_ends_with_0_where_nothing_is_wrong(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(report, "apart", lambda name, budget: Finding(f"{name} was done"))
    assert command_line.main(["doctor", "--check"]) == 0
    printed = capsys.readouterr().out
    for name in report.PARTS:
        assert re.search(rf"(?m)^{name} +ok .*{name} was done$", printed)
    assert printed.endswith("nothing wrong was found\n")
    assert cf.get_device().traits.driver in printed


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--check", "--seconds", "0"], "--seconds 0: it takes a number above 0, up to 86400"),
        (["--check", "--seconds", "nan"], "--seconds nan: it takes a number above 0"),
        (["--check", "--seconds", "x"], "invalid float value: 'x'"),
        (["--check", "--json", "/nowhere/at/all.json"], "there is no folder /nowhere/at"),
        (["--seconds", "3"], "--seconds belongs to --check"),
        (["--json", "a.json"], "--json belongs to --check"),
    ],
)
def test_wrong_arguments_are_said(arguments: list[str], text: str, capsys: Any) -> None:
    with pytest.raises(SystemExit) as error:
        command_line.main(["doctor", *arguments])
    assert error.value.code == 2
    assert text in capsys.readouterr().err


def test_a_device_that_is_not_there_is_said(capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("CLFUSE_DEVICE", os.environ.get("CLFUSE_DEVICE", ""))
    assert command_line.main(["doctor", "--check", "--device", "abacus"]) == 1
    assert "no usable device" in capsys.readouterr().err


# ---- what the report does not say ----


def test_a_report_has_no_private_paths_and_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "jane")
    monkeypatch.setattr(privacy.platform, "node", lambda: "janes-laptop.example.org")
    monkeypatch.setenv("HOME", "/home/jane")
    texts = [
        str(Path(cf.__file__).parent / "evaluate.py"), f"{sys.prefix}/lib/thing.so",
        "/home/jane/secret project/a.py:12", "/tmp/clfuse-abc/kernel.cl", "C:\\Users\\jane\\x.py",
        "jane@janes-laptop", "on janes-laptop.example.org", str(Path.cwd() / "program.py"),
    ]
    found = report.Report(
        {"machine": "Linux"}, {"values": Finding("3", [f"failed: {text}" for text in texts])},
        {"values": 1.0},
    )
    written = "\n".join(found.lines()) + found.to_json()
    for word in ("jane", "laptop", "/home", "/tmp", "Users", str(Path(cf.__file__).parents[1]),
                 sys.prefix, str(Path.cwd())):
        assert word not in written, word
    for kept in ("evaluate.py", "thing.so", "kernel.cl", "x.py", "program.py", "<user>", "<host>"):
        assert kept in written, kept


def test_what_is_public_stays_in_a_report() -> None:
    text = "/etc/OpenCL/vendors/pocl.icd float32 / float64 at 0.5 (2 of 3), a/b, 1e-5"
    assert privacy.public(text) == text
