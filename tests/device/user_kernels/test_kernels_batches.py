"""Loops of calls on parts of arrays leave what the same loop leaves in Python; regular ones are one
launch."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse._core import loading
from clfuse.user_kernels.language.calls import call_batching
from clfuse.user_kernels.language.calls.merged_calls import turns
from tests.support.rounds import rounds

pytestmark = pytest.mark.clfuse_only


@cf.kernel
def work(i, a):
    a[i] = a[i] + 1


@cf.kernel
def blend(i, t, a, c):
    if i > 0:
        a[i] = a[i] * t + c[i - 1]


@cf.kernel
def shifted(i, a):
    a[i + 1] = a[i + 1] * 2
    a[0] = 5 if i == 0 else a[0]


def rows(call: Any, a: Any, c: Any) -> None:
    for b in range(20):
        call(work, 7, a[b])


def backwards_and_apart(call: Any, a: Any, c: Any) -> None:
    for b in (18, 12, 0, 6):
        call(work, 7, a[b])
    for b in range(19, -1, -3):
        call(blend, 7, 2.0, a[b], c[b])


def numbers(call: Any, a: Any, c: Any) -> None:
    for b in range(20):
        call(blend, 6, 0.5 * b, a[b], c[19 - b])
    for b in range(20):
        call(blend, 5, b, a[b, 1:], c[b])


def repeated(call: Any, a: Any, c: Any) -> None:
    for b in (3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5):
        call(work, 7, a[b])
    for _ in range(6):
        call(work, 7, a[0])


def windows(call: Any, a: Any, c: Any) -> None:
    flat = a.reshape(-1)
    for b in range(0, 40, 2):
        call(blend, 7, 0.5, flat[b:b + 7], flat[b + 7:b + 14])
    for b in range(12):
        call(work, 3, flat[b:b + 3])


def between(call: Any, a: Any, c: Any) -> None:
    kept = []
    for b in range(20):
        call(work, 7, a[b])
        if b % 5 == 2:
            kept.append(a[b] + a[b - 1])
        if b % 7 == 3:
            c[b] = a[b]
        if b == 11:
            a[3:14] *= 2
        if b == 13:
            kept.append(float(a[13, 2]) * c[0])
    for k, value in enumerate(kept):
        c[k] = value


def columns(call: Any, a: Any, c: Any) -> None:
    for j in range(7):
        call(blend, 20, 3.0, a[:, j], c[:, 6 - j])
    for j in range(7):
        call(blend, 20, 3.0, a[:, j], a[:, (j + 1) % 7])


def two_kernels(call: Any, a: Any, c: Any) -> None:
    for b in range(20):
        call(work, 7, a[b])
        call(shifted, 6, c[b])


def almost_alike(call: Any, a: Any, c: Any) -> None:
    """Calls that differ from the one before in one thing each."""
    for _ in range(2):
        for t in (2.0, 2, True, np.float32(1.5), 0.5):
            call(blend, 7, t, a[1], c[1])
            call(blend, 7, t, a[2], c[2])
        call(blend, 6, 0.5, a[3], c[3])
        call(blend, (6,), 0.5, a[4], c[4])
        call(blend, ((1, 6),), 0.5, a[5], c[5])
        call(blend, 6, 0.5, a[6, ::-1], c[6])
        call(blend, 6, 0.5, a[7], c[7, ::-1])
        call(blend, 6, 0.5, a[:7, 2], c[8])
        call(blend, 6, 0.5, a[9, :6], c[9])
        call(blend, 6, 0.5, c[10], a[10])
        call(blend, 6, 0.5, a[11], a[12])
        call(blend, 6, 0.5, a[13], a[12])
        call(work, 7, a[15])
        call(work, 7, a[16].view(np.int64))


def meeting(call: Any, a: Any, c: Any) -> None:
    for b in range(20):
        call(blend, 7, 0.5, a[b], c[b])
        call(work, 7, a[19 - b])


LOOPS: list[tuple[Callable[..., None], int]] = [
    (rows, 1), (backwards_and_apart, 2), (numbers, 4), (repeated, 0), (windows, 0), (between, 0),
    (columns, 0), (two_kernels, 0), (almost_alike, 0),
    (meeting, 0),
]


@pytest.mark.parametrize(("loop", "launches"), LOOPS, ids=[f.__name__ for f, _ in LOOPS])
def test_loops_of_calls(loop: Callable[..., None], launches: int) -> None:
    random = np.random.default_rng(5)
    a, c = random.random((20, 7)), random.random((20, 7))
    on_a, on_c = cf.asarray(a), cf.asarray(c)
    before = cf.stats()["kernels_launched"]
    loop(lambda kernel, *args: kernel(*args), on_a, on_c)
    loop(lambda kernel, *args: kernel.python(*args), a, c)
    cf.evaluate(on_a, on_c)
    made = cf.stats()["kernels_launched"] - before
    np.testing.assert_array_equal(on_a.get(), a)
    np.testing.assert_array_equal(on_c.get(), c)
    if launches:
        assert made <= launches


def test_calls_on_the_same_bytes_make_no_batch() -> None:
    a = np.random.default_rng(5).random((20, 7))
    on_a = cf.asarray(a)
    for _ in range(6):
        work(7, on_a[3])
    before = cf.stats()["kernels_launched"]
    cf.evaluate(on_a)
    assert cf.stats()["kernels_launched"] - before == 1
    a[3] += 6
    for _ in range(3):
        for b in range(20):
            work(7, on_a[b])
        before = cf.stats()["kernels_launched"]
        cf.evaluate(on_a)
        assert cf.stats()["kernels_launched"] - before == 1
    np.testing.assert_allclose(on_a.get(), a + 3)


@cf.kernel
def mixed(i, t, a, c):
    c[i] = a[6 - i] * t + c[i]


def by_turns(call: Any, a: Any, c: Any) -> None:
    for b in range(20):
        call(work, 7, a[b])
        call(mixed, 7, 0.5, a[b], c[b])
        call(work, 7, a[b])


def by_turns_with_numbers(call: Any, a: Any, c: Any) -> None:
    for b in range(19, -1, -1):
        call(mixed, 7, 0.25 * b, a[b], c[b])
        call(mixed, 7, b, c[b], a[b])


def by_turns_in_columns(call: Any, a: Any, c: Any) -> None:
    for j in range(7):
        call(work, 20, a[:, j])
        call(blend, 20, 0.5, a[:, j], c[:, j])


def one_after_the_other(call: Any, a: Any, c: Any) -> None:
    for b in range(20):
        call(work, 7, a[b])
    for b in range(20):
        call(blend, 7, 0.5, a[b], c[b])
        call(work, 7, c[b])


@pytest.mark.parametrize(("loop", "most"), [
    (by_turns, 2), (by_turns_with_numbers, 2), (by_turns_in_columns, 2), (one_after_the_other, 6),
], ids=lambda f: getattr(f, "__name__", None))
def test_kernels_by_turns_on_the_same_rows_are_a_call_each(
    loop: Callable[..., None], most: int
) -> None:
    random = np.random.default_rng(6)
    a, c = random.integers(0, 9, (2, 20, 7)).astype(float)
    on_a, on_c = cf.asarray(a), cf.asarray(c)
    loop(lambda kernel, *args: kernel(*args), on_a, on_c)
    loop(lambda kernel, *args: kernel.python(*args), a, c)
    plan = cf.explain(on_a, on_c)
    np.testing.assert_array_equal(on_a.get(), a)
    np.testing.assert_array_equal(on_c.get(), c)
    assert len(plan.kernels) <= most


def test_turns_that_touch_what_others_write_stay_in_order() -> None:
    """Rounds over rows, columns and parts of them that may overlap with those of other rounds."""
    def part(array: Any, kind: int, b: int, shift: int) -> Any:
        if kind == 0:
            return array[b + shift]
        if kind == 1:
            return array[8 - b + shift]
        if kind == 2:
            return array[shift:shift + 7, b % 9]
        flat = array.reshape(-1)
        return flat[(4 + kind) * b + shift:][:7]

    random = np.random.default_rng(7)
    for _ in range(rounds(60)):
        a, c = random.integers(0, 9, (2, 16, 9)).astype(float)
        on_a, on_c = cf.asarray(a), cf.asarray(c)
        calls = []
        for _ in range(random.integers(2, 5)):
            kernel = random.choice([work, mixed, blend])
            kinds = random.choice([0, 0, 0, 1, 2, 3, 4, 5, 6], 2)
            calls.append((kernel, kinds, random.integers(0, 2, 2), random.integers(0, 2, 2)))
        for b in range(int(random.integers(3, 9))):
            for kernel, kinds, shifts, which in calls:
                for one, other, call in (
                    (on_a, on_c, kernel), (a, c, kernel.python)
                ):
                    views = [part((one, other)[array], kind, b, shift)
                             for kind, shift, array in zip(kinds, shifts, which, strict=True)]
                    if kernel is work:
                        call(7, views[0])
                    elif not np.shares_memory(*[
                        part((a, c)[array], kind, b, shift)
                        for kind, shift, array in zip(kinds, shifts, which, strict=True)
                    ]):
                        call(7, 0.5, *views)
        np.testing.assert_array_equal(on_a.get(), a)
        np.testing.assert_array_equal(on_c.get(), c)


def test_a_copy_of_a_batchs_array_keeps_what_it_was() -> None:
    a, c = cf.zeros((12, 7)), cf.ones((12, 7))
    cf.evaluate(a, c)
    for b in range(6):
        work(7, a[b])
        mixed(7, 1.0, a[b], c[b])
    before = a.copy()
    for b in range(6, 12):
        work(7, a[b])
        mixed(7, 1.0, before[b], c[b])
        mixed(7, 1.0, c[b], before[b])
    rows = np.arange(12) < 6
    np.testing.assert_array_equal(a.get()[:, 0], 1)
    np.testing.assert_array_equal(c.get()[:, 0], np.where(rows, 2, 1))
    np.testing.assert_array_equal(before.get()[:, 0], 1)


def test_what_is_wrong_with_a_later_call_is_an_error_then() -> None:
    a = cf.zeros((5, 7))
    cf.evaluate(a)
    fixed = a[3]
    fixed.flags.writeable = False
    work(7, a[0])
    work(7, a[1])
    with pytest.raises(ValueError, match="read-only"):
        work(7, fixed)
    with pytest.raises(TypeError):
        work(7, a[2], 1)
    with pytest.raises(TypeError):
        work((7, 1), a[2])
    with pytest.raises(IndexError):
        work(8, a[2])
    with cf.config.override(check="bounds"):
        work(7, a[4])
    np.testing.assert_array_equal(a.get()[:, 0], [1, 1, 0, 0, 1])


def test_settings_count_from_the_next_call_of_a_batch_on() -> None:
    a, c = np.arange(140.0).reshape(20, 7), np.ones((20, 7))
    on_a, on_c = cf.asarray(a), cf.asarray(c)
    ran = []

    @cf.kernel
    def told(i, t, a, c):
        a[i] = a[i] * t + c[6 - i]

    plain = told.__wrapped__

    for settings in ({}, {"kernels": "python"}, {"fusion": False}, {"check": "bounds"}, {}):
        with cf.config.override(**settings):
            before = cf.stats()["nodes_recorded"]
            for b in range(5):
                told(7, 0.5 * b, on_a[b], on_c[b])
                for i in range(7):
                    plain(i, 0.5 * b, a[b], c[b])
            ran.append(cf.stats()["nodes_recorded"] - before)
    np.testing.assert_array_equal(on_a.get(), a)
    assert ran[2] > ran[0], "without fusion calls are recorded one by one"


def test_a_call_like_the_one_before_asks_no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    if loading.state() != "in use":
        pytest.skip(f"the compiled module is {loading.state()}")

    def again(self: Any, ranges: Any, args: Any) -> bool:
        raise AssertionError("the compiled case did not take it")

    a, c = cf.zeros((20, 7)), cf.ones((20, 7))
    cf.evaluate(a, c)
    with cf.config.override(host_us=0, fusion=True):
        mixed(7, 2.0, a[0], c[0])
        monkeypatch.setattr(call_batching.Series, "again", again)
        for b in range(1, 20):
            mixed(7, 2.0 + b, a[b], c[b])
    np.testing.assert_array_equal(c.get(), 1)
    with pytest.raises(AssertionError, match="did not take"):
        work(7, a[0])
        work(6, a[1])


def test_threads_may_append_to_one_batch() -> None:
    a, c = cf.zeros((4000, 7)), cf.ones((4000, 7))
    cf.evaluate(a, c)
    start = threading.Barrier(4)

    def append(first: int) -> None:
        start.wait()
        for b in range(first, 4000, 4):
            mixed(7, 0.5 * b, c[b], a[b])
            if b % 1000 == first:
                cf.evaluate(a)

    threads = [threading.Thread(target=append, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(a.get(), np.repeat(0.5 * np.arange(4000)[:, None], 7, 1))


def test_a_batch_that_nobody_looks_at_is_forgotten() -> None:
    a = cf.zeros((100, 7))
    cf.evaluate(a)
    for b in range(100):
        work(7, a[b])
    cell = weakref.ref(a._storage)
    gc.disable()
    try:
        del a
        assert cell() is None
    finally:
        gc.enable()


def test_batches_in_functions_that_are_traced() -> None:
    @cf.jit
    def step(a: Any, t: float) -> Any:
        for b in range(5):
            blend(7, t, a[b], a[b + 5])
        return a[:5].sum()

    a = np.arange(140.0).reshape(20, 7)
    on_a = cf.asarray(a)
    for t in (0.5, 0.25, 2.0):
        found = step(on_a, t)
        for b in range(5):
            blend.python(7, t, a[b], a[b + 5])
        assert float(found) == pytest.approx(a[:5].sum())
    np.testing.assert_array_equal(on_a.get(), a)


def test_copies_move_nothing_and_calls_stay_apart_unfused() -> None:
    @cf.kernel
    def copied(i, x, y):
        y[i] = x[i]

    @cf.kernel
    def counted(i, x):
        x[i] = x[i] + 1

    x, y = cf.arange(4000.0) * 2, cf.zeros(4000)
    cf.evaluate(x, y)
    copied(4000, x, y)
    before = cf.stats()
    cf.evaluate(x, y)
    after = cf.stats()
    assert all(after[name] == before[name] for name in ("kernels_launched", "host_evaluations"))
    x += 1
    assert (float(x[7]), float(y[7])) == (15.0, 14.0)
    launched = {}
    for fusion in (True, False):
        with cf.config.override(fusion=fusion, host_us=0):
            rows = cf.zeros((40, 10))
            cf.evaluate(rows)
            before = cf.stats()
            for row in range(40):
                counted(10, rows[row])
            assert rows.sum() == 400
            launched[fusion] = cf.stats()["kernels_launched"] - before["kernels_launched"]
    assert launched[False] >= 40 > launched[True]


def test_few_calls_by_turns_are_recorded_without_a_search(
    xp: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched = []
    monkeypatch.setattr(call_batching, "turns", lambda *args: searched.append(args) or turns(*args))

    def program(call: Any, a: Any, c: Any) -> None:
        for _ in range(3):
            call(work, 7, a[2])
            call(blend, 7, 0.5, a[2], c[3])
            call(blend, 7, 2.5, c[3], a[2])

    values = np.arange(140.0).reshape(20, 7)
    with xp.config.override(fusion=True):
        a, c = xp.asarray(values), xp.asarray(values * 2)
        program(lambda kernel, *args: kernel(*args), a, c)
        found = [xp.asnumpy(a), xp.asnumpy(c)]
    wanted = [values.copy(), values * 2]
    program(lambda kernel, *args: kernel.python(*args), *wanted)
    assert not searched
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    a = xp.asarray(values)
    with xp.config.override(fusion=True):
        for row in range(20):
            work(7, a[row])
        np.testing.assert_array_equal(xp.asnumpy(a), values + 1)
    assert len(searched) == 1, "many calls are"


@cf.kernel
def reads_halves(i, x, halves, out):
    out[i] = halves[i + 5]
    x[i] = -1


def test_rows_of_equal_layout_are_compared_by_bytes() -> None:
    """Row 2 of the halves lies in row 1 of the wholes, though their places are equal."""
    def program(call: Any, a: Any, out: Any) -> None:
        wholes, halves = a.reshape(8, 10), a.view(np.int32)[:80].reshape(8, 10)
        for row in range(1, 8):
            call(reads_halves, 5, wholes[row], halves[row], out[row])

    a, out = np.arange(1, 81), np.zeros((8, 5), np.int32)
    on_a, on_out = cf.asarray(a), cf.asarray(out)
    program(lambda kernel, *args: kernel(*args), on_a, on_out)
    program(lambda kernel, *args: kernel.python(*args), a, out)
    np.testing.assert_array_equal(on_out.get(), out)
    np.testing.assert_array_equal(on_a.get(), a)
