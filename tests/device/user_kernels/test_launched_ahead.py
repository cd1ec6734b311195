"""Calls of kernels that were always looked at next are launched at the call
(``_core/speculative_launches.pxi``): values, errors and what others see are those of calls that
were recorded, and where the guess is wrong the kernel records again."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse import config
from clfuse._core import loading
from clfuse.engine.evaluate import forget_plans
from tests.support.rounds import rounds
from tests.support.threads import in_threads

pytestmark = [
    pytest.mark.clfuse_only,
    pytest.mark.skipif(loading.load() is None, reason="the compiled part is not there"),
]

SIZE = 300
ALONE = 2
MANY = 12
"""Calls after which it is sure that the next one is launched ahead."""


@pytest.fixture(autouse=True)
def soon() -> Iterator[None]:
    """Guess after two calls, where usually it takes eight."""
    core = loading.load()
    gc.collect()  # what other tests have left to be computed
    before = core.launch_ahead_after(ALONE)
    with config.override(build_after_ms=0):
        yield
    core.launch_ahead_after(before)


@pytest.fixture
def direct() -> None:
    """For tests that count what is launched at the call."""
    if cf.get_device().simulation is not None:
        pytest.skip("launches of a simulated device are looked at first: none is made at the call")


def kernels() -> tuple[Any, Any, Any, Any]:
    """Kernels that nobody has called."""

    @cf.kernel
    def axpy(i, a, x, y):
        y[i] = a * x[i] + y[i]

    @cf.kernel
    def copied(i, x, y):
        y[i] = 2 * x[i]

    @cf.kernel
    def product(i, x, y):
        return x[i] * y[i]

    @cf.kernel
    def both(i, x, y, z):
        y[i] = x[i] + 1
        z[i] = x[i] - y[i]

    return axpy, copied, product, both


def arrays() -> tuple[Any, Any]:
    return cf.array(np.arange(float(SIZE))), cf.array(np.full(SIZE, 3.0))


def launched(action: Callable[[], Any]) -> int:
    """How many kernels are launched by something."""
    before = cf.stats()["kernels_launched"]
    action()
    return cf.stats()["kernels_launched"] - before


def at_the_call(call: Callable[[], Any], look: Callable[[], Any], times: int = MANY) -> list[int]:
    """How many kernels each of several calls launches before somebody looks."""
    found = []
    for _ in range(times):
        found.append(launched(call))
        look()
    return found


@pytest.mark.usefixtures("direct")
def test_a_call_that_is_always_looked_at_is_launched_at_once() -> None:
    axpy, _, _, _ = kernels()
    x, y = arrays()
    counts = at_the_call(lambda: axpy(SIZE, 0.5, x, y), lambda: cf.evaluate(y))
    assert counts[0] == 0
    assert counts[-5:] == [1] * 5
    assert launched(lambda: cf.evaluate(y)) == 0
    np.testing.assert_array_equal(y.get(), 3 + 0.5 * MANY * np.arange(SIZE))


@pytest.mark.parametrize(("look", "at_once"), [
    (lambda y: y.get(), 1), (lambda y: np.asarray(y), 1), (lambda y: cf.evaluate(), 1),
    (lambda y: cf.evaluate(y, wait=False), 1), (str, 1), (lambda y: float((y + 1)[3]), 0),
])
@pytest.mark.usefixtures("direct")
def test_every_way_to_look_at_all_that_was_written_counts(
    look: Callable[[Any], Any], at_once: int
) -> None:
    _, copied, _, _ = kernels()
    x, y = arrays()
    counts = at_the_call(lambda: copied(SIZE, x, y), lambda: look(y))
    np.testing.assert_array_equal(y.get(), 2 * np.arange(SIZE))
    assert counts[-3:] == [at_once] * 3


@pytest.mark.usefixtures("direct")
def test_a_fold_is_launched_at_the_call_and_is_what_it_was() -> None:
    _, _, product, _ = kernels()
    x, y = arrays()
    values = []
    counts = at_the_call(
        lambda: values.append(product.reduce(SIZE, x, y)), lambda: float(values[-1])
    )
    assert counts[0] == 0
    assert counts[-1] > 0
    assert {type(value) for value in values} == {type(values[0])}
    assert {float(value) for value in values} == {3.0 * sum(range(SIZE))}
    assert product.reduce(SIZE, x, y, op="max") == 3.0 * (SIZE - 1)
    assert product.reduce(SIZE, x, y, op="argmax") == SIZE - 1
    assert list(product.scan(SIZE, x, y).get()[:3]) == [0, 3, 9]


def test_a_fold_of_a_kernel_that_writes_leaves_what_it_writes() -> None:
    @cf.kernel
    def moved(i, x, y):
        y[i] = y[i] + x[i]
        return x[i] - y[i]

    x, y = arrays()
    for turn in range(1, MANY):
        total = float(moved.reduce(SIZE, x, y))
        expected = 3.0 + turn * np.arange(SIZE)
        assert total == (np.arange(SIZE) - expected).sum()
        if turn % 3 == 0:
            np.testing.assert_array_equal(y.get(), expected)
    np.testing.assert_array_equal(y.get(), 3.0 + (MANY - 1) * np.arange(SIZE))


def test_what_is_written_to_is_seen_by_folds_and_array_code() -> None:
    axpy, _, product, _ = kernels()
    x, y = arrays()
    for turn in range(1, MANY):
        axpy(SIZE, 1.0, x, y)
        cf.evaluate(y)
        assert product.reduce(SIZE, x, y) == np.dot(
            np.arange(SIZE), 3.0 + turn * np.arange(SIZE)
        )
        np.testing.assert_array_equal((y * 2).get(), 6 + 2.0 * turn * np.arange(SIZE))


@pytest.mark.usefixtures("direct")
def test_a_wrong_guess_is_made_once() -> None:
    axpy, _, _, _ = kernels()
    x, y = arrays()

    def look() -> None:
        cf.evaluate(y)

    def call() -> None:
        axpy(SIZE, 1.0, x, y)

    assert at_the_call(call, look)[-1] == 1
    call()
    z = y * 2  # might have been of the same kernel
    cf.evaluate(z)
    assert at_the_call(call, lambda: cf.evaluate(y + 1), 3) == [0, 0, 0]
    assert at_the_call(call, look, 4 * ALONE)[: 4 * ALONE - 1] == [0] * (4 * ALONE - 1)
    assert at_the_call(call, look, 3)[-1] == 1
    np.testing.assert_array_equal(
        y.get(), 3.0 + np.arange(SIZE) * (MANY + 1 + 3 + 4 * ALONE + 3)
    )


@pytest.mark.usefixtures("direct")
def test_several_calls_in_a_row_are_still_one_launch() -> None:
    axpy, _, _, _ = kernels()
    x, y = arrays()

    def several() -> None:
        for _ in range(5):
            axpy(SIZE, 1.0, x, y)
        cf.evaluate(y)

    at_the_call(lambda: axpy(SIZE, 1.0, x, y), lambda: cf.evaluate(y))
    assert launched(several) == 2
    assert [launched(several) for _ in range(4)] == [1] * 4
    np.testing.assert_array_equal(y.get(), 3.0 + np.arange(SIZE) * (MANY + 25))


@pytest.mark.usefixtures("direct")
def test_a_kernel_that_was_never_alone_may_be_later() -> None:
    axpy, _, _, _ = kernels()
    x, y = arrays()
    for _ in range(20):
        for _ in range(3):
            axpy(SIZE, 1.0, x, y)
        cf.evaluate(y)
    counts = at_the_call(lambda: axpy(SIZE, 1.0, x, y), lambda: cf.evaluate(y), 40)
    assert (counts[0], counts[-1]) == (0, 1)
    np.testing.assert_array_equal(y.get(), 3.0 + 100 * np.arange(SIZE))


def test_other_arrays_are_not_guessed_of() -> None:
    axpy, _, _, _ = kernels()
    x, y = arrays()
    at_the_call(lambda: axpy(SIZE, 1.0, x, y), lambda: cf.evaluate(y))
    other = cf.zeros(SIZE) + 1
    cf.evaluate(other)
    assert launched(lambda: axpy(SIZE, 1.0, x, other)) == 0
    np.testing.assert_array_equal(other.get(), np.arange(SIZE) + 1)
    parts = y.reshape(2, SIZE // 2)
    half = SIZE // 2
    at_the_call(lambda: axpy(half, 1.0, x[:half], parts[0]), lambda: cf.evaluate(y))
    assert launched(lambda: axpy(half, 1.0, x[:half], parts[1])) == 0
    expected = 3.0 + MANY * np.arange(SIZE)
    expected[:half] += MANY * np.arange(half)
    expected[half:] += np.arange(half)
    np.testing.assert_array_equal(y.get(), expected)


@pytest.mark.usefixtures("direct")
def test_arrays_by_turns_are_guessed_of() -> None:
    _, copied, _, _ = kernels()
    x, y = arrays()
    counts = []
    for turn in range(MANY):
        given = (x, y) if turn % 2 else (y, x)
        counts.append(launched(partial(copied, SIZE, *given)))
        cf.evaluate(given[1])
    assert counts[-3:] == [1] * 3
    assert set(x.get()) == {3 * 2.0 ** (MANY - 1)}
    assert set(y.get()) == {3 * 2.0 ** MANY}


@pytest.mark.parametrize("numbers", [
    [0.5, 0.25, -1.0], [0.0, -0.0, 1.0], [float("nan"), 1.0], [float("inf"), 0.0], [1, 2.5, True],
    [np.float64(2), 2.0, np.float32(0.1)],
])
def test_numbers_are_those_of_the_call(numbers: list[Any]) -> None:
    @cf.kernel
    def scaled(i, a, b, x, y):
        y[i] = a * x[i] + b

    x, y = arrays()
    for turn in range(MANY):
        a, b = numbers[turn % len(numbers)], numbers[turn // 2 % len(numbers)]
        scaled(SIZE, a, b, x, y)
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(y.get(), a * np.arange(float(SIZE)) + b)
        assert np.array_equal(np.signbit(y.get()), np.signbit(a * np.arange(float(SIZE)) + b)) or (
            a != a or b != b
        )


def test_numbers_that_are_constants_of_the_kernel_may_change() -> None:
    @cf.kernel
    def scaled(i, a, b, x, y):
        y[i] = a * x[i] + 2.0 * b

    @cf.kernel
    def weighted(i, a, x):
        return a * x[i] != 0

    @cf.kernel
    def shifted(i, a, x, y):
        y[i] = a * x[i] + 2.0

    x, y = arrays()
    for a in [2.0] * MANY + [3.0, -1.0]:
        shifted(SIZE, a, x, y)
        np.testing.assert_array_equal(y.get(), a * np.arange(SIZE) + 2)
    for a, b in [(2.0, 2.0)] * MANY + [(3.0, 2.0), (2.0, 4.0), (-1.0, 5.0)]:
        scaled(SIZE, a, b, x, y)
        np.testing.assert_array_equal(y.get(), a * np.arange(SIZE) + 2 * b)
    for a in [2.0, 1.0] * MANY + [0.0] * MANY + [1.0, 0.0]:
        scaled(SIZE, a, 2.0, x, y)
        np.testing.assert_array_equal(y.get(), a * np.arange(SIZE) + 4)
        assert bool(weighted.reduce(SIZE, a, x, op="any")) == bool(a)
        assert int(weighted.reduce(SIZE, a, x, op="sum")) == (SIZE - 1) * bool(a)


@pytest.mark.parametrize("mode", ["raise", "ignore", "warn"])
def test_folds_are_of_the_mode_of_the_call(mode: str) -> None:
    _, _, product, _ = kernels()
    x, y = cf.array(np.full(SIZE, 1e200)), cf.array(np.full(SIZE, 1e107))  # the sum overflows
    with cf.errstate(over=mode), config.override(ahead=False):
        expected = outcome(lambda: float(product.reduce(SIZE, x, y)))
    values: list[Any] = []
    at_the_call(lambda: values.append(product.reduce(SIZE, x, y)), lambda: float(values[-1]))
    with cf.errstate(over=mode):
        assert outcome(lambda: float(product.reduce(SIZE, x, y))) == expected
    assert (expected is FloatingPointError) == (mode == "raise")


def outcome(action: Callable[[], Any]) -> Any:
    """What it gives, or the class of what it raises."""
    try:
        return action()
    except FloatingPointError as error:
        return type(error)


def test_what_does_not_fit_raises_and_changes_nothing() -> None:
    axpy, _, _, _ = kernels()
    x, y = cf.array(np.arange(SIZE)), cf.array(np.full(SIZE, 3))
    at_the_call(lambda: axpy(SIZE, 2, x, y), lambda: cf.evaluate(y))
    before = y.get().copy()
    with pytest.raises(OverflowError):
        axpy(SIZE, 2**70, x, y)
    with pytest.raises(IndexError):
        axpy(SIZE + 1, 2, x, y)
    np.testing.assert_array_equal(y.get(), before)


def test_contents_that_somebody_holds_stay() -> None:
    axpy, copied, _, _ = kernels()
    x, y = arrays()
    at_the_call(lambda: axpy(SIZE, 1.0, x, y), lambda: cf.evaluate(y))
    kept = y.copy()
    recorded = y * 2 + 1
    view = y[10:20]
    axpy(SIZE, 1.0, x, y)
    cf.evaluate(y)
    expected = 3.0 + MANY * np.arange(SIZE)
    np.testing.assert_array_equal(kept.get(), expected)
    np.testing.assert_array_equal(recorded.get(), expected * 2 + 1)
    np.testing.assert_array_equal(view.get(), (expected + np.arange(SIZE))[10:20])
    at_the_call(lambda: copied(SIZE, x, y), lambda: cf.evaluate(y))
    lent = np.from_dlpack(y) if hasattr(y, "__dlpack__") else y.get()
    before = lent.copy()
    copied(SIZE, kept, y)
    cf.evaluate(y)
    np.testing.assert_array_equal(y.get(), 2 * expected)
    assert np.array_equal(lent, before) or np.array_equal(lent, 2 * expected)


def test_a_look_at_a_part_of_what_was_written_is_another() -> None:
    _, _, _, both = kernels()
    x, y = arrays()
    z = cf.zeros(SIZE) + 7
    counts = at_the_call(lambda: both(SIZE, x, y, z), lambda: cf.evaluate(y, z))
    assert counts[0] == 0
    np.testing.assert_array_equal(y.get(), np.arange(SIZE) + 1)
    np.testing.assert_array_equal(z.get(), np.full(SIZE, -1.0))
    assert at_the_call(lambda: both(SIZE, x, y, z), lambda: cf.evaluate(z))[-1] == 0


@pytest.mark.usefixtures("direct")
def test_settings_are_those_of_the_call() -> None:
    axpy, _, _, _ = kernels()
    x, y = arrays()

    def count() -> int:
        found = launched(lambda: axpy(SIZE, 1.0, x, y))
        cf.evaluate(y)
        return found

    turns = 0
    for settings in (
        {}, {"ahead": False}, {"fusion": False}, {"check": "bounds"}, {"kernels": "python"},
        {"debug": True}, {"host_us": 10_000}, {},
    ):
        with config.override(**settings):
            counts = [count() for _ in range(MANY)]
        turns += MANY
        assert counts[-1] == (settings in ({}, {"debug": True})), settings
        np.testing.assert_array_equal(y.get(), 3.0 + turns * np.arange(SIZE))


def test_plans_that_were_forgotten_are_not_used() -> None:
    axpy, _, product, _ = kernels()
    x, y = arrays()
    at_the_call(lambda: axpy(SIZE, 1.0, x, y), lambda: cf.evaluate(y))
    at_the_call(lambda: product.reduce(SIZE, x, x), lambda: None)
    forget_plans()
    assert launched(lambda: axpy(SIZE, 1.0, x, y)) == 0
    np.testing.assert_array_equal(y.get(), 3.0 + (MANY + 1) * np.arange(SIZE))


def test_without_memory_the_call_is_recorded_without_loss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, copied, _, _ = kernels()
    x, y = arrays()
    at_the_call(lambda: copied(SIZE, x, y), lambda: cf.evaluate(y))
    device = cf.get_device()
    before = y.get().copy()
    kept = {size: held[:] for size, held in device.pool._bins.items()}

    def none(*args: Any, **kwargs: Any) -> Any:
        raise MemoryError("none left")

    def empty() -> None:
        for held in device.pool._bins.values():
            held.clear()

    with monkeypatch.context() as patched:
        patched.setattr(type(device.pool), "take", none)
        empty()
        assert launched(lambda: copied(SIZE, x, y)) == 0
        empty()
        with pytest.raises(MemoryError):
            cf.evaluate(y)
    for size, held in kept.items():
        device.pool._bins[size] = held
    np.testing.assert_array_equal(y.get(), before)


def test_a_profile_and_explain_see_what_comes() -> None:
    axpy, _, _, _ = kernels()
    x, y = arrays()
    at_the_call(lambda: axpy(SIZE, 1.0, x, y), lambda: cf.evaluate(y))
    with cf.profile() as measured:
        axpy(SIZE, 1.0, x, y)
        cf.evaluate(y)
    assert "multiply_add" in str(measured)
    np.testing.assert_array_equal(y.get(), 3.0 + (MANY + 1) * np.arange(SIZE))


def test_threads_that_call_one_kernel_on_their_arrays() -> None:
    axpy, _, product, _ = kernels()
    wrong: list[Any] = []

    def run(number: int) -> None:
        x, y = cf.arange(100.0) + number, cf.zeros(100) + 1
        values = np.arange(100.0) + number
        for turn in range(1, 60):
            axpy(100, 1.0, x, y)
            cf.evaluate(y)
            total = float(product.reduce(100, x, y))
            if total != np.dot(values, 1 + turn * values):
                wrong.append((number, turn, total))

    in_threads(run)
    assert not wrong


def drawn(seed: int, calls: int = 120) -> None:
    """Calls of kernels on parts of a few arrays, in runs of the same call, with looks, array code
    and held copies between them; as the bodies in Python leave them."""
    axpy, copied, product, both = kernels()
    random = np.random.default_rng(seed)
    whole = np.arange(2.0 * SIZE)
    theirs = [whole % 7, whole * 0 + 3, whole % 5]
    ours = [cf.array(array) for array in theirs]
    held: list[tuple[Any, Any]] = []
    for _ in range(calls // 6):
        which = int(random.integers(4))
        places = [(int(random.integers(3)), int(random.integers(3)) * 100) for _ in range(3)]
        number = float(random.integers(-2, 3))
        habit = int(random.integers(3))
        for turn in range(int(random.integers(1, 12))):
            at = habit if random.random() < 0.9 else int(random.integers(6))
            a, b, c = [ours[array][start : start + SIZE] for array, start in places]
            d, e, f = [theirs[array][start : start + SIZE] for array, start in places]
            if which == 0 and places[0] != places[1]:
                overlap = places[0][0] == places[1][0]
                if not overlap:
                    axpy(SIZE, number, a, b)
                    e[...] = number * d + e
            elif which == 1 and places[0][0] != places[1][0]:
                copied(SIZE, a, b)
                e[...] = 2 * d
            elif which == 2:
                total = product.reduce(SIZE, a, b)
                assert at == 2 or float(total) == np.dot(d, e), (seed, turn)
            elif which == 3 and len({array for array, _ in places}) == 3:
                both(SIZE, a, b, c)
                e[...] = d + 1
                f[...] = d - e
            if at == 0:
                cf.evaluate(b)
            elif at == 1:
                cf.evaluate(b, c)
            elif at == 3:
                held.append((b * 2, e * 2))
            elif at == 4:
                ours[places[2][0]] += 1
                theirs[places[2][0]] += 1
            elif at == 5:
                held.append((b.copy(), e.copy()))
            if any(np.abs(array).max() >= 1e6 for array in theirs):
                for array, other in zip(ours, theirs, strict=True):
                    array[...] = 1
                    other[...] = 1
    for mine, other in [*held, *zip(ours, theirs, strict=True)]:
        np.testing.assert_array_equal(mine.get(), other, err_msg=f"seed {seed}")


@pytest.mark.parametrize("seed", range(rounds(20)))
def test_any_sequence_of_calls_and_looks_agrees_with_numpy(seed: int) -> None:
    drawn(seed)
