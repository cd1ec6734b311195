"""Calls of kernels that came before are recorded by a shorter way
(`user_kernels.language.calls.call_cache`), and nobody can tell but by the time: whatever changes
from one call to the next, the values and the errors are those of the body in Python."""

from __future__ import annotations

import gc
import math
import types
import weakref
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse import config
from clfuse._core import loading
from clfuse.errors import KernelError
from clfuse.ir.nodes import Kind
from clfuse.user_kernels.language.calls.decorator import Kernel
from tests.support.threads import in_threads

pytestmark = pytest.mark.clfuse_only

SCALE = 2.0
OWN = types.ModuleType("own")
OWN.offset = 3.0  # type: ignore[attr-defined]

TURNS = 6


@cf.kernel
def axpy(i, a, x, y):
    y[i] = a * x[i] + y[i]


@cf.kernel
def moved(i, k, x, y):
    y[i] = x[i + k]


@cf.kernel
def inner(i, j, x, y):
    y[i, j] = x[i - 1, j] + x[i + 1, j] - x[i, j - 1]


@cf.kernel
def taken(i, places, x, y):
    y[i] = x[places[i]]


@cf.kernel
def product(i, x, y):
    return x[i] * y[i]


@cf.kernel
def both(i, a, x, y):
    y[i] = x[i] + a
    return x[i] * a, x[i] > a


@cf.kernel
def surrounded(i, x, y):
    y[i] = SCALE * x[i] + OWN.offset


def count_python(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels whose calls were recorded in Python from now on."""
    names: list[str] = []
    record = Kernel._record

    def noted(self: Kernel, *args: Any) -> Any:
        names.append(self.__name__)
        return record(self, *args)

    monkeypatch.setattr(Kernel, "_record", noted)
    return names


def arrays() -> tuple[list[np.ndarray], list[Any]]:
    """Equal arrays of NumPy's and of clfuse's."""
    flat = np.arange(48.0) - 20
    theirs = [
        flat, flat.astype(np.float32), flat.astype(np.int64), flat.astype(np.int32),
        flat.reshape(6, 8), flat.reshape(8, 6).astype(np.float32), flat * (1 + 2j),
    ]
    return [array.copy() for array in theirs], [cf.array(array) for array in theirs]


VIEWS = (
    lambda x: x[:24], lambda x: x[24:], lambda x: x[::2], lambda x: x[::-2], lambda x: x[3:27],
)
PLANES = (
    lambda x: x[:6, :6], lambda x: x.T[:6, :6], lambda x: x[:6, 5::-1], lambda x: x[5::-1, :6],
)
NUMBERS = (2.0, 2, -1, True, 0.0, np.float32(3), np.int64(-2), 0.5)


def a_call(random: np.random.Generator, given: list[Any]) -> tuple[Any, Any, list[Any]]:
    """Kernel, range and arguments: every choice is made with the same numbers for both libraries,
    and no iteration touches what another writes."""
    which = random.integers(6)
    first, second = random.integers(0, 4, 2)
    view, other = random.integers(len(VIEWS), size=2)
    plane, beside = random.integers(len(PLANES), size=2)
    number = NUMBERS[random.integers(len(NUMBERS))]
    if which == 0:
        x, y = given[first], given[second]
        if second > 1:  # integers take integers
            number, x = int(number), given[2 + first % 2]
        same = x is y
        x, y = VIEWS[view](x), VIEWS[view if same else other](y)
        if second == 3 and x.dtype != np.int32:
            y = VIEWS[view](given[2])  # x is of it, too
        return axpy, 24, [number, x, y]
    if which == 1:
        k = int(random.integers(0, 9))
        return moved, 16, [k, given[0], given[1]]
    if which == 2:
        x, y = (given[4], given[5]) if random.integers(2) else (given[5], given[4])
        return inner, ((1, 5), (1, 5)), [PLANES[plane](x), PLANES[beside](y)]
    if which == 3:
        places = given[2 + first % 2]
        places[:24] = (places[:24] % 40 + 40) % 40
        return taken, 24, [places, given[0], given[1]]
    if which == 4:  # two parts of one array, by turns
        x = given[6]
        parts = (x[:8], x[8:16]) if random.integers(2) else (x[16:24], x[:8])
        return axpy, 8, [2, *parts]
    return surrounded, int(random.integers(20, 23)), [given[first], given[second % 2]]


@pytest.mark.parametrize("seed", range(6))
def test_any_sequence_of_calls_agrees_with_python(seed: int) -> None:
    theirs, ours = arrays()
    one, two = np.random.default_rng(seed), np.random.default_rng(seed)
    for turn in range(60):
        kernel, ranges, given = a_call(one, theirs)
        _, _, mine = a_call(two, ours)
        kernel.python(ranges, *given)
        kernel(ranges, *mine)
        if turn % 3 == 0:
            for number, (a, b) in enumerate(zip(theirs, ours, strict=True)):
                np.testing.assert_array_equal(b.get(), a, err_msg=f"{turn}: {number}")


@pytest.mark.parametrize("op", ["sum", "prod", "min", "max", "argmin", "argmax", "any", "all"])
def test_folds_of_values_are_numpys(op: str) -> None:
    for turn in range(TURNS):
        x = np.arange(40.0) % 7 - turn
        for dtype in (np.float64, np.float32, np.int32):
            a = x.astype(dtype)
            mine = cf.array(a)
            found = product.reduce(40, mine, mine, op=op)
            expected = getattr(np, op)(a * a)
            assert found.dtype == expected.dtype
            assert found == expected
            assert product.reduce(20, mine[::2], mine[20:], op=op) == getattr(np, op)(
                a[::2] * a[20:]
            )


def test_several_values_and_writes_of_one_kernel() -> None:
    x, y = cf.arange(30.0), cf.zeros(30)
    for turn in range(TURNS):
        total, count = both.reduce(30, float(turn), x, y)
        assert (float(total), int(count)) == (435.0 * turn, 29 - turn)
        np.testing.assert_array_equal(y.get(), np.arange(30.0) + turn)
        sums, _ = both.scan(30, 2, x, y)
        assert float(sums[-1]) == 870


def test_a_call_that_came_before_takes_no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    if loading.load() is None:
        pytest.skip("the compiled part is not there")
    x, y = cf.arange(300.0), cf.zeros(300)
    z = cf.zeros((20, 300))

    def step() -> None:
        axpy(300, 2.0, x, y)
        cf.evaluate(y)
        moved(280, 3, x, y)
        cf.evaluate(y)
        surrounded(300, x, z[4])
        cf.evaluate(z)
        float(product.reduce(300, x, y))
        axpy(300, product.reduce(300, x, y), x, y)
        cf.evaluate(y)

    for _ in range(8):
        step()
    names = count_python(monkeypatch)
    step()
    assert names == []


def graph(node: Any, numbers: dict[int, int]) -> Any:
    """What was recorded, down to what is in memory."""
    known = numbers.setdefault(id(node), len(numbers))
    if known < len(numbers) - 1:
        return known
    if node.buffer is not None:
        return "stored", node.shape, node.dtype
    name = getattr(node, "kernel", None)
    if node.op.kind is Kind.CONSTANT:
        return node.param.tobytes(), node.dtype, name
    inputs = [graph(operand, numbers) for operand in node.inputs]
    return node.op, node.shape, node.dtype, node.param, name, inputs


@cf.kernel
def mixed(i, k, a, x, y, z):
    inside = x[i + k] * a
    if inside > 1:
        y[i] = inside + i
    y[i + 20] = x[39 - i] - z[y.shape[0] - 1 - i]
    z[i] = int(inside) % 7


@cf.kernel
def corner(i, j, a, x, y):
    x[i, j] = y[j, i] + a
    return x[i, j], a, i - j


CALLS = {
    "axpy": (axpy, 40, lambda x, y, z: (2, x, y)),
    "axpy of float32": (axpy, 40, lambda x, y, z: (0.1, x.astype("f4"), y.astype("f4"))),
    "axpy of what shares": (axpy, 16, lambda x, y, z: (-0.0, y[:16], y[16:32])),
    "axpy of every second": (axpy, 20, lambda x, y, z: (True, x[::2], y[::-2])),
    "axpy of a column": (axpy, 8, lambda x, y, z: (1.5, x[:8], y.reshape(8, 5)[:, 2])),
    "axpy of one element": (axpy, 1, lambda x, y, z: (1.5, x[3:4], y[3:4])),
    "moved": (moved, 30, lambda x, y, z: (3, x, y)),
    "inner": (inner, ((1, 4), (1, 7)), lambda x, y, z: (x.reshape(5, 8), y.reshape(8, 5).T)),
    "taken": (taken, 40, lambda x, y, z: (z % 9, x, y)),
    "both": (both, 40, lambda x, y, z: (3, x, y)),
    "mixed": (mixed, 20, lambda x, y, z: (4, 0.5, x, y, z)),
    "corner": (corner, (5, 5), lambda x, y, z: (2, x[:25].reshape(5, 5), y[:25].reshape(5, 5))),
    "surrounded": (surrounded, 40, lambda x, y, z: (x, y)),
    "product": (product, 40, lambda x, y, z: (x, x)),
    "product of the whole": (product, 40, lambda x, y, z: (x, z)),
}


@pytest.mark.parametrize("name", CALLS)
def test_both_ways_record_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, ranges, arguments = CALLS[name]
    with config.override(host_us=0):
        x, y, z = cf.arange(40.0) * 1, cf.arange(40.0) * 2, cf.arange(40) * 3
        given = arguments(x, y, z)
        arrays = [each for each in given if isinstance(each, cf.ndarray)]

        def recorded() -> list[Any]:
            cf.evaluate(*arrays)
            results = ()
            if kernel.__clfuse_source__.returns_value:
                results = kernel._values(ranges, given, {})
            else:
                kernel(ranges, *given)
            numbers: dict[int, int] = {}
            return [graph(each._storage.node, numbers) for each in (*arrays, *results)]

        for _ in range(8):
            recorded()
        names = count_python(monkeypatch)
        found = recorded()
        assert names == ([] if loading.load() is not None else [kernel.__name__])
        kernel.known.clear()
        assert recorded() == found
        assert names[-1:] == [kernel.__name__]


def test_scalars_that_are_not_computed_yet_are_arguments() -> None:
    x, y, expected = cf.arange(200.0), cf.ones(200), np.ones(200)
    for turn in range(TURNS):
        alpha = product.reduce(200, y, y) * 0 + turn
        axpy(200, alpha, x, y)
        expected = turn * np.arange(200.0) + expected
        axpy(200, cf.float32(turn), x, y)
        expected = turn * np.arange(200.0) + expected
        np.testing.assert_array_equal(y.get(), expected)


def test_what_was_read_before_keeps_its_value() -> None:
    x, y, expected = cf.arange(500.0), cf.zeros(500), np.zeros(500)
    kept, wanted = [], []
    for turn in range(2 * TURNS):
        kept.append(y[1::2] * 1)
        wanted.append(expected[1::2] * 1)
        axpy(500, 1.0, x, y)
        expected = np.arange(500.0) + expected
        y[turn] = -1
        expected[turn] = -1
        if turn % 4 == 3:
            assert product.reduce(500, x, y) == np.dot(np.arange(500.0), expected)
    np.testing.assert_array_equal(y.get(), expected)
    for mine, theirs in zip(kept, wanted, strict=True):
        np.testing.assert_array_equal(mine.get(), theirs)


def known(action: Any, times: int = TURNS) -> None:
    for _ in range(times):
        action()
        cf.evaluate()


def test_wrong_calls_raise_what_they_raised_the_first_time() -> None:
    x, y, whole = cf.arange(10.0), cf.zeros(10), cf.arange(10)
    known(lambda: (axpy(10, 2.0, x, y), axpy(10, 2, whole, whole), product.reduce(10, x, y)))
    before, numbers = y.get(), whole.get()
    with pytest.raises(TypeError, match="argument"):
        axpy(10, 2.0, x)
    with pytest.raises(TypeError, match="multiple values"):
        axpy(10, 2.0, x, y, a=3)
    with pytest.raises(TypeError, match="unexpected keyword"):
        axpy(10, 2.0, x, z=y)
    with pytest.raises(IndexError, match="axpy"):
        axpy(11, 2.0, x, y)
    with pytest.raises(OverflowError):
        axpy(10, 2**70, whole, whole)
    with pytest.raises(ValueError, match="read-only"):
        axpy(10, 2.0, x, cf.broadcast_to(y, (10,)))
    with pytest.raises(ValueError, match="read-only"):
        axpy(10, 2.0, x, np.zeros(10))
    with pytest.raises(KernelError):
        axpy(10, 2j, x, y)
    with pytest.raises(KernelError, match="returns a value"):
        product(10, x, y)
    with pytest.raises(KernelError, match="returns no value"):
        axpy.reduce(10, 2.0, x, y)
    with pytest.raises(ValueError, match="op="):
        product.reduce(10, x, y, op="mean")
    with pytest.raises(TypeError):
        product.reduce()
    np.testing.assert_array_equal(y.get(), before)
    np.testing.assert_array_equal(whole.get(), numbers)


def test_arguments_by_name_and_of_numpy_are_the_same() -> None:
    x, y = cf.arange(10.0), cf.zeros(10)
    known(lambda: axpy(10, 2.0, x, y))
    y[:] = 0
    axpy(10, y=y, x=x, a=2.0)
    axpy(ranges=10, a=1.0, x=np.arange(10.0), y=y)
    np.testing.assert_array_equal(y.get(), 3 * np.arange(10.0))
    assert product.reduce(10, y=x, x=x) == 285
    assert product.reduce(range(2, 10), x, x) == 284


def test_ranges_that_are_equal_but_of_another_kind() -> None:
    x, y = cf.arange(10.0), cf.zeros(10)
    known(lambda: axpy(4, 1.0, x, y))
    y[:] = 0
    for ranges in (4, np.int64(4), (4,), (np.int32(4),), range(4), ((0, 4),), (range(4),)):
        axpy(ranges, 1.0, x, y)
        axpy(ranges, 1.0, x, y)
    axpy(True, 1.0, x[5:], y[5:])
    np.testing.assert_array_equal(y.get(), [0, 14, 28, 42, 0, 5, 0, 0, 0, 0])


@pytest.mark.parametrize("changes", [
    {"fusion": False}, {"check": "bounds"}, {"kernels": "python"}, {"fp": "fast"}, {"host_us": 0},
])  # fmt: skip
def test_settings_may_change_in_between(changes: dict[str, Any]) -> None:
    x, y, expected = cf.arange(10.0), cf.zeros(10), np.zeros(10)
    for _ in range(TURNS):
        for setting in ({}, changes):
            with config.override(**setting):
                axpy(10, 3.0, x, y)
                expected += 3 * np.arange(10.0)
                moved(6, 2, x, y[4:])
                expected[4:] = np.arange(2.0, 8.0)
                assert product.reduce(10, x, y) == np.dot(np.arange(10.0), expected)
        with config.override(**changes), pytest.raises(IndexError):
            axpy(12, 3.0, x, y)


def test_numbers_of_the_surroundings_may_change_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    factor = 1.0

    @cf.kernel
    def scaled(i, x, y):
        y[i] = factor * x[i]

    def set_factor(value: Any) -> None:
        nonlocal factor
        factor = value

    x, y = cf.arange(10.0), cf.zeros(10)
    for turn in (1.0, 2.0, 2.0, 2.0, 2.0, 2, True, 2.0, -0.0, 0.0):
        set_factor(turn)
        scaled(10, x, y)
        assert y[3] == turn * 3
        assert math.copysign(1, float(y[3])) == math.copysign(1, turn)
    for turn in (2.0, 2.0, 2.0, 2.0, 5.0):
        monkeypatch.setitem(globals(), "SCALE", turn)
        monkeypatch.setattr(OWN, "offset", turn + 1)
        surrounded(10, x, y)
        assert y[3] == turn * 3 + turn + 1
        surrounded(10, x, y)
        cf.evaluate(y)
    monkeypatch.delattr(OWN, "offset")
    with pytest.raises(KernelError, match="no such name"):
        surrounded(10, x, y)
    monkeypatch.delitem(globals(), "SCALE")
    with pytest.raises(NameError, match="SCALE"):
        surrounded(10, x, y)
    assert y[3] == 21


def test_calls_that_came_before_hold_no_arrays() -> None:
    def step() -> weakref.ref[Any]:
        x, y = cf.arange(50_000.0) * 2, cf.zeros(50_000)
        for _ in range(TURNS):
            axpy(50_000, 1.0, x, y)
            cf.evaluate(y)
        assert float(product.reduce(50_000, x, y)) > 0
        return weakref.ref(y)

    step()
    gc.collect()
    before = cf.stats()["device_bytes_now"]
    references = [step() for _ in range(3)]
    gc.collect()
    assert [reference() for reference in references] == [None] * 3
    assert cf.stats()["device_bytes_now"] == before


def test_calls_in_a_function_that_is_traced() -> None:
    def step(x: Any, y: Any) -> Any:
        axpy(10, 2.0, x, y)
        return product.reduce(10, x, y)

    x, y = cf.arange(10.0), cf.zeros(10)
    known(lambda: step(x, y))
    traced = cf.jit(step)
    for turn in range(TURNS):
        x, y = cf.arange(10.0) + turn, cf.zeros(10)
        values = np.arange(10.0) + turn
        assert traced(x, y) == np.dot(values, 2 * values)
        np.testing.assert_array_equal(y.get(), 2 * values)


def test_several_threads_call_one_kernel() -> None:
    wrong: list[Any] = []

    def run(number: int) -> None:
        x, y = cf.arange(100.0) + number, cf.zeros(100)
        for turn in range(1, 40):
            axpy(100, 1.0, x, y)
            total = float(product.reduce(100, x, y))
            values = np.arange(100.0) + number
            if total != turn * np.dot(values, values):
                wrong.append((number, turn, total))

    in_threads(run)
    assert not wrong


def launches(action: Any) -> int:
    cf.evaluate()
    before = cf.stats()["kernels_launched"]
    action()
    cf.evaluate()
    return cf.stats()["kernels_launched"] - before


def test_single_calls_become_one_launch_where_others_follow() -> None:
    @cf.kernel
    def work(i, a):
        a[i] = a[i] + 1

    a, expected = cf.zeros((400, 300)), np.zeros((400, 300))
    for _ in range(TURNS):  # somebody looks after each
        work(300, a[0])
        cf.evaluate(a)
        expected[0] += 1

    def rows() -> None:
        for b in range(400):
            work(300, a[b])

    first, second = launches(rows), launches(rows)
    expected += 2
    np.testing.assert_array_equal(a.get(), expected)
    assert first <= 2
    assert second == 1


def test_kernels_by_turns_on_the_same_arrays_take_no_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if loading.load() is None:
        pytest.skip("the compiled part is not there")

    @cf.kernel
    def copied(i, a, c):
        c[i] = a[i]

    @cf.kernel
    def scaled(i, b, c):
        b[i] = 2.0 * c[i]

    def rounds() -> None:  # nobody looks between them, or at what each of the calls has left
        for _ in range(TURNS):
            copied(300, a, c)
            scaled(300, b, c)
            copied(300, b, a)
            copied(300, b, c)

    a, b, c = cf.arange(300.0), cf.zeros(300), cf.zeros(300)
    for _ in range(3):
        rounds()
        cf.evaluate(a, b, c)
    names = count_python(monkeypatch)
    rounds()
    assert names == []
    expected = np.arange(300.0) * 2.0 ** (4 * TURNS)
    for array in (a, b, c):
        np.testing.assert_array_equal(array.get(), expected)
