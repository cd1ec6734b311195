"""Random orders: every element once, the same on every device, and as NumPy's functions take and
give them. Beyond `FEW` elements every one finds its place by itself."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse.functions.random.bits import Draw
from clfuse.functions.random.permutations import FEW
from clfuse.interpreter.rng import NEARLY
from tests.support.agreement import host

COUNTS = (1, 2, 7, FEW, FEW + 1, 10_007, 1 << 16, 100_003)


@pytest.mark.parametrize("count", COUNTS)
def test_every_number_comes_once(xp: ModuleType, count: int) -> None:
    rng, again = xp.random.default_rng(count), xp.random.default_rng(count)
    first, second = host(rng.permutation(count)), host(rng.permutation(count))
    assert first.dtype == np.int64
    for made in (first, second):
        np.testing.assert_array_equal(np.sort(made), np.arange(count))
    np.testing.assert_array_equal(first, host(again.permutation(count)))
    if count > 7:
        assert (first != second).any()


def test_kernels_have_numpys_bits(xp: ModuleType) -> None:
    count = FEW + 7
    rng = xp.random.default_rng(3)
    state = rng.bit_generator.state
    found = host(rng.permutation(count))
    rng.bit_generator.state = state
    (seed,) = host(Draw(rng.bit_generator, (1,)).bits())
    places = np.arange(count, dtype=np.uint32)
    key, other = np.uint32(int(seed) & 0xFFFFFFFF), np.uint32(int(seed) >> 32)
    np.testing.assert_array_equal(found, NEARLY["shuffled_place"](places, count, key, other))


def test_orders_are_as_random_as_they_should_be() -> None:
    rng = np.random.default_rng(0)
    count, tries = 4099, 300
    places = np.arange(count, dtype=np.uint32)
    fixed, rising, firsts = [], [], []
    for _ in range(tries):
        key, other = rng.integers(0, 1 << 32, 2, dtype=np.uint32)
        made = NEARLY["shuffled_place"](places, np.uint32(count), key, other).astype(np.int64)
        fixed.append((made == places).sum())
        rising.append((made[1:] > made[:-1]).sum())
        firsts.append(made[0])
    assert abs(np.mean(fixed) - 1) < 5 / tries**0.5  # Poisson's distribution with mean 1
    expected, spread = (count - 1) / 2, ((count + 1) / 12) ** 0.5
    assert abs(np.mean(rising) - expected) < 5 * spread / tries**0.5
    assert 0.8 < np.std(rising) / spread < 1.2
    frequencies = np.histogram(firsts, 10, (0, count))[0]
    assert ((frequencies - tries / 10) ** 2 / (tries / 10)).sum() < 33.7


@pytest.mark.parametrize("shape", [(50,), (5000,), (5000, 3), (40, 6, 5)])
def test_elements_move_along_an_axis(xp: ModuleType, shape: tuple[int, ...]) -> None:
    data = np.arange(np.prod(shape)).reshape(shape)
    for axis in range(len(shape)):
        rng = xp.random.default_rng(1)
        made = host(rng.permutation(xp.array(data), axis=axis))
        assert made.shape == shape
        np.testing.assert_array_equal(np.sort(made, axis=axis), data)
        shuffled = xp.array(data)
        view = shuffled[...]
        assert xp.random.default_rng(1).shuffle(shuffled, axis=axis) is None
        np.testing.assert_array_equal(host(shuffled), made)
        np.testing.assert_array_equal(host(view), made)


def test_a_part_of_an_array_is_shuffled_in_place(xp: ModuleType) -> None:
    array = xp.arange(20_000)
    xp.random.default_rng(2).shuffle(array[5000:15_000:2])
    made = host(array)
    moved = np.zeros(20_000, bool)
    moved[5000:15_000:2] = True
    np.testing.assert_array_equal(made[~moved], np.arange(20_000)[~moved])
    np.testing.assert_array_equal(np.sort(made[moved]), np.arange(20_000)[moved])
    assert (made[moved] != np.arange(20_000)[moved]).any()


@pytest.mark.parametrize(("count", "size"), [(10, 4), (10, 10), (100_000, 50), (20_000, (80, 90))])
def test_nothing_is_chosen_twice_without_replacement(
    xp: ModuleType, count: int, size: Any
) -> None:
    rng = xp.random.default_rng(4)
    for made in (rng.choice(count, size, replace=False),
                 rng.choice(xp.arange(count), size, replace=False),
                 xp.random.RandomState(5).choice(count, size, replace=False)):
        numbers = host(made)
        assert numbers.shape == (size if isinstance(size, tuple) else (size,))
        assert len(np.unique(numbers)) == numbers.size
        assert numbers.min() >= 0
        assert numbers.max() < count


def test_choices_have_their_probabilities(xp: ModuleType) -> None:
    p = [0.5, 0.125, 0, 0.375]
    for draw in (xp.random.default_rng(4).choice, xp.random.RandomState(4).choice):
        made = host(draw(4, 40_000, p=p))
        assert np.abs(np.bincount(made, minlength=4) / 40_000 - p).max() < 0.02
        named = host(draw(xp.array([2.5, 3.5, 4.5, 5.5]), (3, 2), p=xp.array(p)))
        assert set(named.ravel()) <= {2.5, 3.5, 5.5}


@pytest.mark.parametrize("call", [
    "g.choice(5, 6, replace=False)", "g.choice(3, 2, p=[.5, .6, .1])",
    "g.choice(3, 2, p=[.5, .5])", "g.choice(3, 2, p=[-.5, .5, 1])", "g.permutation(2.5)",
    "g.permutation(xp.zeros((2, 3)), axis=2)", "g.shuffle(5)", "g.choice(0, 1, replace=False)",
    "g.shuffle(xp.broadcast_to(xp.arange(3), (2, 3)))", "g.permutation(-3)", "g.permutation(0)",
    "g.choice(xp.zeros((2, 2)), 3, replace=False)",
])
def test_errors_are_numpys(xp: ModuleType, call: str) -> None:
    raised = []
    for m in (np, xp):
        try:
            eval(call, {"g": m.random.default_rng(1), "xp": m})
            raised.append(None)
        except Exception as error:
            raised.append((type(error), str(error)))
    assert raised[0] == raised[1]


def test_orders_are_drawn_anew_in_a_replayed_trace(xp: ModuleType) -> None:
    rng = xp.random.default_rng(8)
    mixed = xp.jit(lambda x: rng.permutation(x))
    data = xp.arange(9000)
    found = [host(mixed(data)).copy() for _ in range(3)]
    for made in found:
        np.testing.assert_array_equal(np.sort(made), np.arange(9000))
    assert (found[0] != found[1]).any()
    assert (found[1] != found[2]).any()


def numpys(key: int, position: int) -> np.random.Generator:
    """NumPy's generator for one draw on the host."""
    bits = np.random.Philox(0)
    state = bits.state
    state["state"]["key"] = np.array([key, position], np.uint64)
    state["state"]["counter"] = np.zeros(4, np.uint64)
    bits.state = state
    return np.random.Generator(bits)


@pytest.mark.clfuse_only
@pytest.mark.parametrize("position", [0, 7, (1 << 64) - 1])
@pytest.mark.parametrize("count", [1, 2, 3, 40, FEW])
def test_few_are_in_the_order_of_numpys_generator(
    xp: ModuleType, count: int, position: int
) -> None:
    """Of a Philox that is keyed by key and position, whoever draws it."""
    rng = xp.random.default_rng(6)
    state = rng.bit_generator.state
    state["state"]["position"] = position
    rows = max(1, min(FEW // count, 3))
    whole = np.broadcast_to(np.arange(count), (rows, count))
    for draw in (
        lambda g, a: g.permutation(count), lambda g, a: g.permutation(a(range(count))),
        lambda g, a: g.permuted(a(whole), axis=1), lambda g, a: g.permuted(a(whole.T), axis=0),
        lambda g, a: g.choice(count, (count + 1) // 2, replace=False),
        lambda g, a: g.choice(count, p=np.full(count, 1 / count)),
    ):  # fmt: skip
        rng.bit_generator.state = state
        wanted = draw(numpys(state["state"]["key"], position), np.array)
        np.testing.assert_array_equal(host(draw(rng, xp.array)), wanted)


@pytest.mark.clfuse_only
def test_many_are_in_one_order_wherever_that_is_made(
    xp: ModuleType, setting: Callable[..., None]
) -> None:
    count = FEW + 5
    calls: list[Callable[[Any, Any], Any]] = [
        lambda g, a: g.permutation(count), lambda g, a: g.permutation(a),
        lambda g, a: g.permutation(a.reshape(-1, 3)[: FEW + 1], axis=1),
        lambda g, a: g.permuted(a.reshape(3, -1), axis=1),
    ]  # fmt: skip
    found = []
    for host_us in (0, 100_000):
        setting(host_us=host_us, build_after_ms=100)
        rng = xp.random.default_rng(12)
        numbers = xp.arange(3 * count) * 2
        found.append([host(call(rng, numbers)) for call in calls])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
