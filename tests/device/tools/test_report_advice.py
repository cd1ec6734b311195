"""Advice of a report: each rule on a program that has the fault, and on one that has not.

What a part of the run takes is not asked for here: it depends on the machine.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from clfuse._core import loading
from clfuse.tools.report import advice
from clfuse.tools.report.rules import dtypes, piece, source
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

MASKS = """
    import clfuse as np
    z = np.linspace(0, 3, 100_000)
    for i in range(40):
        m = z < 2
        z[m] = z[m] ** 2 + 0.1
    print(float(z.sum()))
"""

LABELS = """
    import clfuse as np
    x = np.linspace(0, 3, 80_000).reshape(20_000, 4)
    labels = np.arange(20_000) % 30
    means = np.array([x[labels == k].mean(axis=0) for k in range(30)])
    print(float(means.sum()))
"""

WITHOUT_MASKS = """
    import clfuse as np
    z = np.linspace(0, 3, 100_000)
    for i in range(40):
        m = z < 2
        z = np.where(m, z ** 2 + 0.1, z)
        if z.max() > 1e9:
            break
    print(float(z.sum(where=m)))
"""

PRODUCT = """
    import clfuse as np
    x = np.linspace(0, 1, 400_000, dtype=np.float32).reshape(100_000, 4)
    w = np.array([0.5, 0.25, 0.125, 1.0])
    print(float(np.exp(-(x @ w)).sum()))
"""

OWN_CONVERSIONS = """
    import clfuse as np
    x = np.linspace(0, 1, 400_000, dtype=np.float32).reshape(100_000, 4)
    w = np.array([0.5, 0.25, 0.125, 1.0], dtype=np.float32)
    print(float(np.exp(-(x @ w)).var()), float(x.std()), np.median(x), float(x.mean()))
"""

WHOLE_NUMBERS = """
    import clfuse as np
    x = np.linspace(0, 1, 100_000, dtype=np.float32)
    y = np.arange(100_000) % 2
    print(float((y * np.exp(x)).sum()))
"""

WIDE = """
    import clfuse as np
    x = np.linspace(0, 1, 300_000)
    for i in range(40):
        x = x + 0.001 * np.sin(x)
    print(float(x.sum()))
"""

NARROW = """
    import clfuse as np
    x = np.linspace(0, 1, 300_000, dtype=np.float32)
    for i in range(40):
        x = x + 0.001 * np.sin(x)
    print(float(x.sum()))
"""

WIDE_ON_PURPOSE = """
    import clfuse as np
    x = np.linspace(0, 1, 300_000, dtype=np.float64)
    for i in range(40):
        x = x + 0.001 * np.sin(x)
    print(float(x.sum()))
"""

PATHS = """
    import clfuse as np
    found = []
    for p in range(2000):
        path = 100 * np.exp(np.linspace(0, 1, 40) * 0.2)
        found.append(max(float(path.mean()) - 90, 0.0))
    print(sum(found))
"""

STEPS = """
    import clfuse as np
    x, v = np.ones(40), np.zeros(40)
    def force(x):
        return -x + 0.1 * np.sin(x)
    for i in range(2000):
        v = v + 0.01 * force(x)
        x = x + 0.01 * v
    print(float(x.sum()))
"""

PYTHONS_OWN = """
    import clfuse as np
    total = 0.0
    for i in range(300_000):
        total += (i % 7) * 0.5
    print(total, np.ones(3).sum())
"""

WINDOWS = """
    import clfuse as np
    a = np.linspace(0, 1, 40 * 40).reshape(40, 40)
    out = np.zeros((40, 40))
    for k in range(4):
        for i in range(1, 39):
            for j in range(1, 39):
                out[i, j] = np.mean(a[i - 1 : i + 2, j - 1 : j + 2])
    print(out.sum())
"""

PAIRS = """
    import clfuse as np
    a = np.linspace(0, 1, 40 * 3).reshape(40, 3)
    d = np.zeros((40, 40))
    for k in range(4):
        for i in range(40):
            for j in range(40):
                d[i, j] = np.sqrt(((a[i] - a[j]) ** 2).sum())
    print(d.sum())
"""

NO_KERNEL = """
    import numpy as np
    print(np.arange(5).sum())
"""


@pytest.fixture(autouse=True)
def without_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules judge what happened, however long it took."""
    monkeypatch.setattr(piece, "LEAST_SHARE", 0.0)


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
    ("mask_in_loop", MASKS, 6),
    ("doubled_dtype", PRODUCT, 5),
    ("double_precision", WIDE, 5),
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
    ("mask_in_loop", WITHOUT_MASKS),
    ("mask_in_loop", LABELS),
    ("look_in_loop", MASKS),
    ("jit_for_loop", MASKS),
    ("doubled_dtype", OWN_CONVERSIONS),
    ("double_precision", NARROW),
    ("double_precision", WIDE_ON_PURPOSE),
    ("no_compiled_part", NO_KERNEL),
])  # fmt: skip
def test_a_rule_is_silent_without_it(
    rule: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rule not in {each.rule for each in advice.advice(reported(text, tmp_path))}


@pytest.mark.parametrize(("text", "what", "words"), [
    (ROWS, "over rows", "`min`, `mean` with `axis=1`"),
    (ROWS_THEMSELVES, "over rows", "`median` with `axis=1`"),
    (WINDOWS, "over windows", "`mean` over its last axes"),
    (PAIRS, "over pairs of rows", "`sum` with `axis=-1`"),
])  # fmt: skip
def test_loops_are_told_what_to_write_for_them(
    text: str, what: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = reported(text, tmp_path, host_us=1000)
    (found,) = [each for each in advice.advice(summary) if each.rule == "element_loop"]
    assert found.line == 6
    assert what in found.title
    assert words in found.text


@pytest.mark.parametrize(("text", "line", "words"), [
    (PATHS, 4, "as an axis"), (STEPS, 6, "(`v`, `x`)"),
])  # fmt: skip
def test_small_arrays_get_an_axis_or_jit(
    text: str, line: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = reported(text, tmp_path, host_us=1000)
    (found,) = [each for each in advice.advice(summary) if each.rule == "small_arrays"]
    assert found.line == line
    assert words in found.text


@pytest.mark.parametrize(("rule", "text"), [
    ("small_arrays", PYTHONS_OWN),
    ("small_arrays", PAIRS),
])  # fmt: skip
def test_small_arrays_are_not_seen_elsewhere(
    rule: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = reported(text, tmp_path, host_us=1000)
    assert rule not in {each.rule for each in advice.advice(summary) if each.line == 6}


@pytest.mark.parametrize(("state", "is_told"), [
    ("not built", True), ("in use", False), ("off (CLFUSE_COMPILED)", False),
])  # fmt: skip
def test_a_missing_compiled_part_is_told(
    state: str, is_told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    summary = reported(LOOK, tmp_path)
    line = next(iter(summary.collector.evaluations))
    summary.collector.sampler.elapsed[line, "record"] = summary.elapsed_ns
    monkeypatch.setattr(loading, "state", lambda: state)
    assert ("no_compiled_part" in {each.rule for each in advice.advice(summary)}) == is_told


def test_what_saves_most_comes_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = [each.saves_ns for each in advice.advice(reported(LOOK, tmp_path))]
    assert len(saved) > 1
    assert saved == sorted(saved, reverse=True)


def test_other_dtypes_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = reported(WHOLE_NUMBERS, tmp_path)
    (found,) = [each for each in advice.advice(summary) if each.rule == "doubled_dtype"]
    assert "Another operand is int64" in found.text


def test_looks_whose_kernels_take_the_time_are_no_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(piece, "LEAST_SHARE", 1e-6)
    summary = reported(LOOK, tmp_path)
    for plan in summary.collector.plans:
        for entries in plan.entries.values():
            for entry in entries:
                entry.timed, entry.elapsed_ns, entry.count = 1, summary.elapsed_ns, 1.0
    assert "look_in_loop" not in {each.rule for each in advice.advice(summary)}


def test_products_for_powers_are_the_powers() -> None:
    for exponent in range(3, source.LARGEST_EXPONENT + 1):
        assert eval(dtypes._product_for("x", exponent), {"x": 3}) == 3**exponent


def test_all_rules_have_a_test() -> None:
    marks = test_a_rule_finds_its_fault.pytestmark  # type: ignore[attr-defined]
    tested = {case[0] for mark in marks for case in mark.args[1]}
    elsewhere = {"small_arrays", "no_compiled_part"}
    assert tested | elsewhere == {rule.__name__ for rule in advice.RULES}


def test_little_of_the_run_is_not_worth_a_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(piece, "LEAST_SHARE", 2.0)
    rules = {each.rule for each in advice.advice(reported(LOOK, tmp_path))}
    assert rules <= {"doubled_dtype"}  # this one asks for other things than a share
    assert "look_in_loop" not in rules
