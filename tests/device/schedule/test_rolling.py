"""Loops of small writes, joined into few kernels, leave what NumPy leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse.engine import auto_flush


@pytest.fixture(autouse=True)
def _no_loop_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """No loop of an earlier test is expected to go on, whose rounds are others."""
    cf.evaluate()
    monkeypatch.setattr(auto_flush, "_loop", auto_flush._Loop())


def neighbours(np: Any, a: Any, c: Any) -> list[Any]:
    for b in range(1, 20):
        a[b] = a[b - 1] + c[b]  # a chain
    for b in range(19):
        c[b] = c[b + 1] * 2  # what was there before
    return [a, c]


def statements(np: Any, a: Any, c: Any) -> list[Any]:
    for b in range(20):
        a[b] += 1
        a[b] *= c[b]
        c[b] = np.maximum(a[b], c[19 - b])
    return [a, c]


def parts(np: Any, a: Any, c: Any) -> list[Any]:
    for b in range(20):
        a[b, :3] -= c[b, 4:]
        c[b, ::-2] = a[b, ::2]
    for j in range(7):
        a[:, j] += c[:, (j + 1) % 7]
    for b in range(19, 0, -2):
        a[b:, 0] += 1  # overlaps
    return [a, c]


def repeated(np: Any, a: Any, c: Any) -> list[Any]:
    for b in [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 11, 12, 13, 14, 15, 16, 17, 18]:
        a[b] += c[b]
        c[b, 2:2] += 1  # nothing
    return [a, c]


def scalars(np: Any, a: Any, c: Any) -> list[Any]:
    for b in range(20):
        for j in range(7):
            a[b, j] = c[b, 6 - j] + 1
    for b in range(20):
        c[b] = b
    d = np.zeros(20, a.dtype)
    for b in range(20):
        d[b] = a[b].max()
    e, f = np.zeros(20), np.zeros(20)
    for b in range(20):
        e[b] = 0  # what is there
        f[b] = np.zeros(0) @ np.zeros(0)
    return [a, c, d, e, f]


def held(np: Any, a: Any, c: Any) -> list[Any]:
    kept = []
    other = a.T
    for b in range(20):
        t = a[b] * 2
        a[b] = t
        kept += [t, other[:, b] + 1, a[b]] if b % 3 else [a.copy()]
    total = a.sum()
    for b in range(20):
        a[b] += total.astype(a.dtype)
    return [a, *kept[::-1], c]


def tables(np: Any, a: Any, c: Any) -> list[Any]:
    d = np.zeros((20, 7), bool)
    for b in [7, 2, 19, 0, 12, 5, 16, 9, 14, 1, 18, 3, 11, 6, 13, 4, 17, 8, 15, 10]:
        a[b] = a[b] * (b % 3) + b
        c[b] = -b
        d[b, 1:] |= b % 4 == 0
    for b in range(20):
        for j in range(7):
            c[b, j] += b * j % 5
    e = np.zeros(20, "float16")
    for b in range(20):
        e[b] = b / 8 if b % 5 else -0.0
    return [a, c, d, e, np.signbit(e)]


def modified(np: Any, a: Any, c: Any) -> list[Any]:
    kept = []
    for b in range(20):
        a[b] += c[b]  # every row
    for j in range(6, -1, -1):
        a[:, j] -= c[:, 3]  # columns, from one that stays
    for b in range(0, 20, 2):
        for j in range(0, 7, 3):
            a[b, j] *= 3  # elements on a grid
    for b in [*range(3), *range(11, 19)]:
        a[b, ::-2] += c[19 - b, 1]  # rows apart, backwards
    for b in range(19):
        a[b : b + 2] += 1  # overlaps
    for b in range(10):
        a[b] += a[19 - b]  # what another row holds by then
        kept.append(a[3] if b == 4 else a[b : b + 2].sum())
    for b in range(10):
        c[b] += a[b].astype(c.dtype)
        c[19 - b] += c[0]
    d = np.ones((9, 1, 4), a.dtype)
    for b in range(9):
        d[b] += a[:1, :4]
        d[b, 0, 1:3] *= 2
    return [a, c, d, *kept]


ANYHOW = [13, 2, 17, 5, 7, 3, 11, 0, 19, 16, 6, 8]


def anyhow(np: Any, a: Any, c: Any) -> list[Any]:
    for b in ANYHOW:
        a[b] += c[b]  # rows in no order
    f = c * 2
    for b in ANYHOW:
        c[b] -= f[19 - b, 2]  # of others, in the same distances
    for b, other in zip(ANYHOW, ANYHOW[::-1], strict=True):
        a[b, 1:4] *= c[other, ::2][:3]  # of others anyhow
    d = a.copy()
    for b in [3, 3, *ANYHOW, 4, 3, *ANYHOW, 4]:
        a[b] += c[b]  # some again and again
    for b in [14, *ANYHOW, 2, 2]:
        d[b] = d[b] * c[b] + c[b, 0]
    for b in ANYHOW:
        d[b, ::2] = b  # scalars that differ
    for b in ANYHOW:
        d[b, 1] = c[18 - b % 3, 1] + d[b, 2]  # no distances at all
    e = np.zeros((60, 7), a.dtype)
    for b in ANYHOW:
        e[3 * b + 1 : 3 * b + 3] += d[b]
    for b in ANYHOW:
        e[b : b + 2] -= 1  # overlaps
    return [a, c, d, e]


PROGRAMS = [neighbours, statements, parts, repeated, scalars, tables, held, modified, anyhow]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("dtype", ["float64", "int8"])
def test_loops_of_small_writes_agree_with_numpy(program: Any, dtype: str) -> None:
    values = np.arange(-70, 70).reshape(20, 7)
    start = values.astype(dtype), (values % 11).astype("int8")
    if dtype == "float64":
        start[0].flat[::13] = [np.nan, np.inf, -np.inf, -0.0, 1e308, 5e-324, 0, 1, 2, 3, 4]
    with np.errstate(all="ignore"):
        expected = program(np, *[array.copy() for array in start])
    with cf.config.override(debug=True):
        actual = program(cf, *[cf.asarray(array) for array in start])
        for one, other in zip(actual, expected, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(np.asarray(one), other)


def test_thousands_of_small_writes_are_a_handful_of_launches() -> None:
    a = cf.zeros((3000, 10))
    c = cf.ones((3000, 10))
    cf.evaluate()  # also what other tests have left in cycles of references
    before = cf.stats()["kernels_launched"]
    for b in range(3000):
        a[b] = a[b] * 2 + c[b]
    assert float(a[1234, 5]) == 1.0
    cf.evaluate()
    assert cf.stats()["kernels_launched"] - before <= 4


@pytest.mark.parametrize("again", [False, True])
def test_thousands_of_scattered_small_writes_are_few_launches(again: bool) -> None:
    random = np.random.default_rng(7)
    rows = random.integers(0, 5000, 3000) if again else random.permutation(5000)[:3000]
    expected = np.zeros((5000, 10))
    np.add.at(expected, rows, 1)
    a, c = cf.zeros((5000, 10)), cf.zeros((5000, 10))
    cf.evaluate()  # also what other tests have left in cycles of references
    before = cf.stats()["kernels_launched"]
    for b in rows.tolist():
        a[b] += 1
    np.testing.assert_array_equal(np.asarray(a), expected)
    assert cf.stats()["kernels_launched"] - before <= np.bincount(rows).max() + 8
    before = cf.stats()["kernels_launched"]
    if not again:
        for b in rows.tolist():
            c[b] = c[b] * 2 + a[b]
        np.testing.assert_array_equal(np.asarray(c), expected)
        assert cf.stats()["kernels_launched"] - before <= 4


def test_automatic_evaluation_cuts_a_loop_between_statements() -> None:
    a = cf.zeros((3000, 10))
    c = cf.ones((3000, 10))
    cf.evaluate()  # also what earlier tests have recorded
    with cf.config.override(max_nodes=1500):
        before = cf.stats()
        for b in range(3000):
            a[b] = a[b] * 2 + c[b]
        cf.evaluate(a)
        after = cf.stats()
    assert after["kernels_launched"] - before["kernels_launched"] == 6
    assert after["device_bytes_now"] == before["device_bytes_now"]
    assert float(a.sum()) == 30_000.0


def test_scalars_of_a_replayed_loop_are_those_of_the_call() -> None:
    def loop(np: Any, a: Any, steps: tuple[Any, ...]) -> None:
        for b in range(12):
            a[b] += steps[b]
            a[b] *= b

    function = cf.jit(lambda a, *steps: loop(cf, a, steps))
    actual, expected = cf.zeros((12, 3)), np.zeros((12, 3))
    for start in range(3):
        steps = tuple(np.float64(start + number) for number in range(12))
        function(actual, *steps)
        loop(np, expected, steps)
    np.testing.assert_array_equal(np.asarray(actual), expected)


def test_equal_loops_use_one_plan() -> None:
    a = cf.zeros((16, 10))
    cf.evaluate(a)
    made = []
    for _ in range(6):
        for b in range(16):
            a[b] += 1
        cf.evaluate(a)
        made.append(cf.stats()["plans_made"])
    assert made[-1] == made[1]
    assert float(a.sum()) == 960.0
