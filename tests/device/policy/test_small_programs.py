"""Small programs are left to NumPy on the host, and nothing shows it but the time.

The fuzz runs random programs that way too (`test_fuzz`); here is what it cannot see.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from clfuse.policy import allowance
from tests.support.hostile import hostile
from tests.support.marks import compiled
from tests.support.rounds import rounds

pytestmark = pytest.mark.clfuse_only

ALWAYS = 1_000_000

STEPS = 500
"""Of a loop that is small beside the copy of a million elements with which it begins."""


@pytest.fixture(autouse=True)
def small(
    xp: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # nothing has earned kernels before
    with xp.config.override(host_us=50):
        yield


def counted(xp: ModuleType, call: Callable[[], object]) -> tuple[object, int, int]:
    """The result, and how many evaluations were NumPy's and how many kernels ran."""
    xp.synchronize()
    before = xp.stats()
    result = call()
    after = xp.stats()
    return (result, after["host_evaluations"] - before["host_evaluations"],
            after["kernels_launched"] - before["kernels_launched"])


def test_a_program_on_few_elements_launches_nothing(xp: ModuleType) -> None:
    values = hostile("float64")
    x = xp.asarray(values)

    def program(np: ModuleType, x: object) -> list[object]:
        return [np.sin(x) * 2 + 1, np.exp(x).sum(), x[::-2], np.cumsum(x), np.roll(x, 3),
                x.reshape(1, -1).argmax(axis=1), np.where(x > 0, x, -x), np.float32(1) / x[1:4],
                np.concatenate([x, x[:2]]), x[np.asarray([0, -1, 2])], x[x > 1], np.sort(x),
                x.astype("f2"), np.stack([x, x]).T.mean(axis=1)]

    found, _, kernels = counted(xp, lambda: [np.asarray(r) for r in program(xp, x)])
    assert kernels == 0
    with np.errstate(all="ignore"):
        for mine, theirs in zip(found, program(np, values), strict=True):
            assert_array_equal(mine, theirs)
            assert mine.dtype == theirs.dtype


@compiled
def test_a_large_program_runs_in_kernels_with_small_arrays(
    xp: ModuleType, shares_memory: bool
) -> None:
    weights = xp.linspace(0, 1, 5) ** 2
    assert counted(xp, weights.tolist)[1:] == (0, 0)  # made, and calculated, at the call
    x = np.random.default_rng(1).random((200_000, 5))
    large = xp.asarray(x)
    with xp.config.override(build_after_ms=0):
        weighted, host, kernels = counted(xp, lambda: np.asarray((large * weights).sum(axis=1)))
    assert (host, kernels) == (0, 1)
    assert_array_equal(weighted, (x * np.linspace(0, 1, 5) ** 2).sum(axis=1))
    # And back: what a kernel has left is read where it lies.
    rows = (large * weights).sum(axis=0)
    rows.tolist()
    ratio, _, kernels = counted(xp, lambda: np.asarray(rows / rows[0].clip(1)))
    assert kernels == (0 if shares_memory else 1)
    totals = np.asarray(rows)
    assert_array_equal(ratio, totals / totals[0].clip(1))


@pytest.mark.usefixtures("shared_memory")
def test_one_element_of_a_large_array_is_read_without_a_kernel(xp: ModuleType) -> None:
    x = xp.arange(1_000_000.) + 1
    xp.evaluate(x)
    value, _, kernels = counted(xp, lambda: float(x[123_456] * 2))
    assert (value, kernels) == (246_914.0, 0)


def test_what_was_computed_keeps_its_value_through_writes(xp: ModuleType) -> None:
    a = xp.arange(6.)
    b = a[1:4]
    seen = np.asarray(a)
    b += 10
    a[0] = -1
    kept = a.copy()
    a *= 2
    assert_array_equal(seen, np.arange(6.))
    assert_array_equal(kept, [-1, 11, 12, 13, 4, 5])
    assert_array_equal(a, [-2, 22, 24, 26, 8, 10])
    assert_array_equal(b, [22, 24, 26])
    # A kernel may take the memory over, the host's copy stays.
    with xp.config.override(host_us=0):
        a += 1
        assert_array_equal(a, [-1, 23, 25, 27, 9, 11])
    assert_array_equal(seen, np.arange(6.))
    assert_array_equal(a + kept, [-2, 34, 37, 40, 13, 16])


def test_the_same_numbers_are_drawn_on_the_host_and_by_kernels(xp: ModuleType) -> None:
    def draws(host_us: int) -> list[np.ndarray]:
        with xp.config.override(host_us=host_us):
            rng = xp.random.default_rng(5)
            drawn = [rng.random(33), rng.random((3, 7), dtype="f4"), rng.integers(0, 10, 50),
                     rng.integers(0, 2 ** 40, 50), rng.uniform(2, 5, 30), rng.standard_normal(9),
                     rng.integers(0, 256, 20, dtype="u1"), rng.permutation(12)]
            return [np.asarray(values) for values in drawn]

    for mine, theirs in zip(draws(ALWAYS), draws(0), strict=True):
        assert_array_equal(mine, theirs)


def test_small_draws_have_the_numbers_of_kernels_in_any_order(
    xp: ModuleType,
) -> None:
    def draws(host_us: int) -> list[np.ndarray]:
        with xp.config.override(host_us=host_us):
            rng, drawn = xp.random.default_rng(9), []
            for turn in range(rounds(300)):
                drawn += [rng.normal(1, 2, size=2), rng.random((2, 3)), rng.integers(0, 2**40, 4)]
                if turn % 7 == 0:
                    drawn += [rng.standard_normal(5, dtype="f4"), rng.uniform(2, 3, 3)]
                if turn % 50 == 0:
                    rng.random()
                    drawn += [rng.random(3000), rng.choice(5, (2, 2)), rng.normal(size=(0, 3))]
            state = rng.bit_generator.state
            drawn.append(rng.random(3))
            rng.bit_generator.state = state
            drawn.append(rng.random(3))
            assert_array_equal(drawn[-1], drawn[-2])
            drawn[0][:] = 5  # an array of its own
            return [np.asarray(values) for values in drawn]

    for mine, theirs in zip(draws(50), draws(0), strict=True):
        assert mine.dtype == theirs.dtype
        assert_array_equal(mine, theirs)


def test_a_chain_of_small_normal_draws_runs_few_kernels(xp: ModuleType) -> None:
    def chain() -> float:
        rng, x, best = xp.random.default_rng(4), xp.zeros(3), 0.0
        for _ in range(500):
            y = x + rng.normal(scale=0.5, size=3)
            if rng.random() < float(np.exp(-(y @ y))) * 2:
                x = y
            best = max(best, float(abs(x).max()))
        return best

    best, _, kernels = counted(xp, chain)
    assert 0.5 < best < 10
    assert kernels <= 8


def test_compiled_functions_take_and_give_small_arrays(xp: ModuleType) -> None:
    @xp.jit
    def step(x: object, y: object) -> object:
        return x * 2 + y

    x = xp.arange(5.)
    for _ in range(3):
        x = step(x, xp.ones(5)) - 1
    assert_array_equal(x, np.arange(5.) * 8)


def test_unfused_programs_are_never_left_to_numpy(xp: ModuleType) -> None:
    with xp.config.override(fusion="off"):
        assert counted(xp, lambda: (xp.arange(5.) * 2 + 1).tolist())[1] == 0


def test_explain_says_that_a_program_is_small(xp: ModuleType) -> None:
    plan = xp.explain(xp.asarray(np.arange(700.)) * 2)
    assert plan.small
    assert plan.kernels
    assert "CLFUSE_HOST_US" in str(plan)
    assert not xp.explain(xp.arange(5e6) * 2).small


def test_an_array_goes_from_one_device_to_another(xp: ModuleType) -> None:
    x = xp.arange(5.) * 2
    x.tolist()
    for device in xp.devices():
        with xp.device(device), xp.config.override(host_us=0):
            assert_array_equal(x + 1, np.arange(5.) * 2 + 1)


def test_whether_a_program_is_small_does_not_depend_on_plans(
    xp: ModuleType, shares_memory: bool
) -> None:
    x, y, z = np.arange(20_000.0), np.arange(45_000.0), np.arange(200_000.0)
    devices = [xp.asarray(y) + 0, xp.asarray(z) + 0]  # on the device once they were computed
    for _ in range(2):
        with xp.config.override(host_us=0):
            assert counted(xp, (xp.asarray(x) * 3 + 1).get)[1:] == (0, 1)
            xp.evaluate(*devices)
            for device in devices:
                assert counted(xp, (device * 3 + 1).get)[1:] == (0, 1)
        assert counted(xp, (xp.asarray(x) * 3 + 1).get)[2] == 0
        kernels = counted(xp, (devices[0] * 3 + 1).get)[2]
        assert kernels == (0 if shares_memory else 1), "a launch takes as long, a copy longer"
        assert counted(xp, (devices[1] * 3 + 1).get)[1:] == (0, 1)


def test_without_waiting_for_kernels_the_bits_are_always_equal(xp: ModuleType) -> None:
    x = np.arange(18_002.0)
    programs = [
        lambda array: xp.exp(-array / 7e3) * 1.0625,
        lambda array: (array * 1.1875).sum(),
        lambda array: (array * 1e-4 + 0.34375).cumprod(),
    ]
    for program in programs:
        with xp.config.override(build_after_ms=0):
            results = [np.asarray(program(xp.asarray(x))) for _ in range(3)]
        for result in results[1:]:
            np.testing.assert_array_equal(result, results[0])


def test_what_is_evaluated_once_needs_memory_of_few_arrays(
    xp: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allowance, "_core", None)  # all of it is recorded
    x = xp.arange(9001.0)
    xp.evaluate(x)
    recorded = x
    for number in range(200):
        recorded = np.sqrt(recorded * 0.5 + number)
    tracemalloc.start()
    _, host, kernels = counted(xp, recorded.get)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (host, kernels) == (1, 0)
    assert peak < 9 * x.nbytes


def swapped_towards_the_end(x: Any) -> Any:
    for _ in range(STEPS):
        x[len(x) // 2], x[-2] = x[-2], x[len(x) // 2]
        x = x[:-2]
    return x


def swapped_with_copies(x: Any) -> Any:
    for step in range(STEPS):
        i, j = step * 7919 % len(x), step * 104729 % len(x)
        x[i], x[j] = x[j].copy(), x[i].copy()
    return x


def reversed_by_swaps(x: Any) -> Any:
    for i in range(STEPS):
        x[i], x[-1 - i] = x[-1 - i], x[i]
    return x


def sorted_by_insertion(x: Any) -> Any:
    for i in range(1, STEPS):
        key = x[i].copy()
        x[i] = x[i - 1]
        x[i - 1] = key
    return x


def shifted_rows(x: Any) -> Any:
    rows = x.reshape(-1, 10)
    for i in range(STEPS):
        kept = rows[i : i + 2, ::-1].copy()
        rows[i : i + 2] = rows[i + 1 : i + 3]
        rows[i + 1 : i + 3] = kept
    return x


def taken_from_a_queue(x: Any) -> Any:
    total = 0.0
    for _ in range(STEPS):
        head = x[0]
        total = total + head
        x[-1] = head * 2
        x = x[1:-1]
    return x + total


@pytest.mark.parametrize("program", [
    swapped_towards_the_end, swapped_with_copies, reversed_by_swaps, sorted_by_insertion,
    shifted_rows, taken_from_a_queue])
@pytest.mark.usefixtures("shared_memory")
def test_what_is_overwritten_is_read_before_with_one_copy(
        xp: ModuleType, program: Callable[[Any], Any]) -> None:
    values = np.arange(1_000_000.) + 1
    with xp.config.override(host_us=0):
        x = xp.asarray(values)
        xp.evaluate(x)
        found = program(x)
    tracemalloc.start()
    try:
        _, host, kernels = counted(xp, lambda: xp.evaluate(x))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (host, kernels) == (1, 0)
    assert peak < 1.5 * values.nbytes
    assert_array_equal(found, program(values))
    assert_array_equal(x, values)
