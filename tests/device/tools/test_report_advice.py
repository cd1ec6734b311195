"""Advice of a report: each rule on a program that has the fault, and on one that has not.

What a part of the run takes is not asked for here: it depends on the machine.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from clfuse.tools.report import advice, source_rules
from tests.support.reported import reported

pytestmark = pytest.mark.clfuse_only

LOOK = """
    import clfuse as np
    x = np.linspace(0, 1, 300_000)
    for i in range(40):
        x = x + 0.001 * np.sin(x)
        if x.max() > 1e9:
            break
    print(x.sum())
"""

NO_LOOK = """
    import clfuse as np
    x = np.linspace(0, 1, 300_000)
    for i in range(40):
        x = x + 0.001 * np.sin(x)
    print(x.sum())
"""

ROUNDS = """
    import clfuse as np
    x = np.linspace(0, 1, 300)
    y = np.ones(300)
    for i in range(150):
        for k in range(12):
            x = np.where(x > 2, x - 2, x + 0.01 * np.cos(y * x))
            y = 0.5 * (y + np.roll(x, k % 3))
        np.evaluate(x, y)
    print(float(x.sum()))
"""

JITTED_ROUNDS = """
    import clfuse as np
    @np.jit
    def step(x, y):
        for k in range(12):
            x = np.where(x > 2, x - 2, x + 0.01 * np.cos(y * x))
            y = 0.5 * (y + np.roll(x, k % 3))
        return x, y
    x = np.linspace(0, 1, 300)
    y = np.ones(300)
    for i in range(150):
        x, y = step(x, y)
        np.evaluate(x, y)
    print(float(x.sum()))
"""

MIXED = """
    import clfuse as np
    x = np.linspace(0, 1, 100_000, dtype=np.float32)
    w = np.ones(100_000) * 1.5
    print(float(np.sqrt(x * w + 1).sum()))
"""

OF_ONE_DTYPE = """
    import clfuse as np
    x = np.linspace(0, 1, 100_000, dtype=np.float32)
    w = np.ones(100_000, dtype=np.float32) * 1.5
    print(float(np.sqrt(2 * x * w + 1).sum()))
"""

ON_PURPOSE = """
    import clfuse as np
    x = np.linspace(0, 1, 100_000, dtype=np.float32)
    print(float(np.sqrt(x.astype(np.float64) * np.ones(100_000) * 1.5 + 1).sum()))
"""

FALLS_BACK = """
    import clfuse as np
    x = np.linspace(0, 1, 20_000)
    total = 0.0
    for i in range(30):
        total += float(np.power.accumulate(x + 0 * i)[5000])
    print(total)
"""

RECORDED = """
    import clfuse as np
    x = np.linspace(0, 1, 20_000)
    total = 0.0
    for i in range(30):
        total += float((x * i)[5000:].sum())
    print(total)
"""

ELEMENTS = """
    import clfuse as np
    x = np.linspace(0, 1, 4000).tolist()
    y = [0.0] * 4000
    for k in range(60):
        for i in range(1, 4000):
            y[i] = 0.5 * (x[i] + x[i - 1])
    print(np.array(y).sum())
"""

WHOLE_ARRAYS = """
    import clfuse as np
    x = np.linspace(0, 1, 60_000)
    y = np.zeros(60_000)
    for _ in range(60):
        y[1:] = 0.5 * (x[1:] + x[:-1])
    print(y.sum())
"""

GROWS = """
    import clfuse as np
    x = np.linspace(0, 1, 1000)
    for i in range(1, 11):
        y = x
        for k in range(i):
            y = np.sin(y) + k
        print(float(y.sum()))
"""

SAME_STRUCTURE = """
    import clfuse as np
    x = np.linspace(0, 1, 1000)
    for i in range(1, 11):
        y = x
        for k in range(3):
            y = np.sin(y) + i
        print(float(y.sum()))
"""

COPIES = """
    import clfuse as np
    x = np.linspace(0, 1, 200_000).get()
    total = 0.0
    for i in range(30):
        total += float((np.asarray(x) + i).max())
    print(total)
"""

COPIES_ONCE = """
    import clfuse as np
    x = np.asarray(np.linspace(0, 1, 200_000).get())
    total = 0.0
    for i in range(30):
        total += float((x + i).max())
    print(total)
"""

ROWS = """
    import clfuse as np
    a = np.linspace(0, 1, 400 * 64).reshape(400, 64)
    means = np.zeros(400)
    for k in range(8):
        for i in range(400):
            row = a[i] - a[i].min()
            means[i] = row.mean()
    print(means.sum())
"""

ROWS_THEMSELVES = """
    import clfuse as np
    a = np.linspace(0, 1, 400 * 64).reshape(400, 64)
    means = []
    for k in range(8):
        for row in a:
            means.append(np.median(row))
    print(np.array(means).sum())
"""

ROWS_AT_ONCE = """
    import clfuse as np
    a = np.linspace(0, 1, 400 * 64).reshape(400, 64)
    for k in range(8):
        means = (a - a.min(axis=1, keepdims=True)).mean(axis=1)
    print(means.sum())
"""

CUBES = """
    import clfuse as np
    x = np.linspace(-1, 1, 100_000)
    y = (
        1 +
        0.2 * x**3)
    print(float(y.sum()))
"""

PRODUCTS = """
    import clfuse as np
    x = np.linspace(-1, 1, 100_000)
    n = 3
    print(float((x**2 + x * x * x + abs(x)**0.5 + (np.arange(3)**3).sum()).sum()) if n**3 else 0)
"""

PICTURE = """
    import clfuse as np
    x = (np.arange(100_000) % 251).astype(np.uint8)
    np.evaluate(x)
    print(float((np.sqrt(x.astype(float)) + 1).sum()))
"""

SMALL_PICTURE = """
    import clfuse as np
    x = (np.arange(100_000) % 251).astype(np.uint8)
    np.evaluate(x)
    print(float((np.sqrt(x.astype(np.float32)) + 1).sum()))
"""

PICTURE_ON_PURPOSE = """
    import clfuse as np
    x = (np.arange(100_000) % 251).astype(np.uint8)
    np.evaluate(x)
    print(float((np.sqrt(x.astype(np.float64)) + 1).sum()))
"""

NO_KERNEL = """
    import numpy as np
    print(np.arange(5).sum())
"""


@pytest.fixture(autouse=True)
def without_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules judge what happened, however long it took."""
    monkeypatch.setattr(advice, "LEAST_SHARE", 0.0)


@pytest.mark.parametrize(("rule", "text", "line"), [
    ("look_in_loop", LOOK, 6),
    ("jit_for_loop", ROUNDS, 3),
    ("doubled_dtype", MIXED, 5),
    ("fallback_in_loop", FALLS_BACK, 6),
    ("element_loop", ELEMENTS, 6),
    ("new_structures", GROWS, 8),
    ("copies_in_loop", COPIES, 6),
    ("wide_of_narrow", PICTURE, 5),
    ("whole_power", CUBES, 6),
    ("first_builds", NO_LOOK, 6),
])  # fmt: skip
def test_a_rule_finds_its_fault(
    rule: str, text: str, line: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [each for each in advice.advice(reported(text, tmp_path)) if each.rule == rule]
    assert len(found) == 1
    # The first line of a group of them may be any of those that are recorded together.
    assert found[0].line == line or (rule == "jit_for_loop" and found[0].line >= line)
    assert found[0].path.endswith("program.py")


@pytest.mark.parametrize(("rule", "text"), [
    ("look_in_loop", NO_LOOK),
    ("look_in_loop", ROUNDS),  # `np.evaluate` is no look
    ("look_in_loop", JITTED_ROUNDS),
    ("jit_for_loop", JITTED_ROUNDS),
    ("jit_for_loop", GROWS),
    ("doubled_dtype", OF_ONE_DTYPE),
    ("doubled_dtype", ON_PURPOSE),
    ("fallback_in_loop", RECORDED),
    ("element_loop", WHOLE_ARRAYS),
    ("new_structures", SAME_STRUCTURE),
    ("copies_in_loop", COPIES_ONCE),
    ("element_loop", ROWS_AT_ONCE),
    ("wide_of_narrow", SMALL_PICTURE),
    ("wide_of_narrow", PICTURE_ON_PURPOSE),
    ("wide_of_narrow", MIXED),
    ("whole_power", PRODUCTS),
    ("first_builds", NO_KERNEL),
])  # fmt: skip
def test_a_rule_is_silent_without_it(
    rule: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rule not in {each.rule for each in advice.advice(reported(text, tmp_path))}


@pytest.mark.parametrize(
    ("text", "folds"), [(ROWS, "`min`, `mean`"), (ROWS_THEMSELVES, "`median`")]
)
def test_loops_over_rows_are_told_of_the_axis(
    text: str, folds: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = reported(text, tmp_path, host_us=1000)
    (found,) = [each for each in advice.advice(summary) if each.rule == "element_loop"]
    assert found.line == 6
    assert f"{folds} with `axis=1`" in found.text


def test_looks_whose_kernels_take_the_time_are_no_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advice, "LEAST_SHARE", 1e-6)
    summary = reported(LOOK, tmp_path)
    for plan in summary.collector.plans:
        for entries in plan.entries.values():
            for entry in entries:
                entry.timed, entry.elapsed_ns, entry.count = 1, summary.elapsed_ns, 1.0
    assert "look_in_loop" not in {each.rule for each in advice.advice(summary)}


def test_products_for_powers_are_the_powers() -> None:
    for exponent in range(3, source_rules.LARGEST_EXPONENT + 1):
        assert eval(advice._product_for("x", exponent), {"x": 3}) == 3**exponent


def test_all_rules_have_a_test() -> None:
    marks = test_a_rule_finds_its_fault.pytestmark  # type: ignore[attr-defined]
    tested = {case[0] for mark in marks for case in mark.args[1]}
    assert tested == {rule.__name__ for rule in advice.RULES}


def test_little_of_the_run_is_not_worth_a_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advice, "LEAST_SHARE", 2.0)
    rules = {each.rule for each in advice.advice(reported(LOOK, tmp_path))}
    assert rules <= {"doubled_dtype", "element_loop"}  # these ask for other things than a share
    assert "look_in_loop" not in rules
