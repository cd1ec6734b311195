"""Small arrays that programs make are NumPy's work, at the call; large ones need no memory."""

from __future__ import annotations

import copy
import inspect
import os
import pickle
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.support.marks import compiled

pytestmark = pytest.mark.clfuse_only

ROOT = Path(__file__).parents[3]



@pytest.fixture(autouse=True)
def small(xp: ModuleType) -> Iterator[None]:
    with xp.config.override(host_us=50):
        yield


@pytest.mark.parametrize("compiled", ["on", "off"])
def test_calls_that_make_arrays_give_raise_and_warn_as_numpys(compiled: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "support" / "sources.py")],
        env={**os.environ, "CLFUSE_COMPILED": compiled, "CLFUSE_HOST_US": "50",
             "CLFUSE_FALLBACK": "allow"},
        capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stderr
    state, *different = done.stdout.splitlines()
    if compiled == "on" and state == "not built":
        pytest.skip("nothing is compiled here")
    assert state == ("in use" if compiled == "on" else "off (CLFUSE_COMPILED)")
    assert not different, "\n".join(different)


def spent(xp: ModuleType, call: Callable[[], Any]) -> dict[str, int]:
    """What a call adds to the counters."""
    xp.synchronize()
    before = xp.stats()
    call()
    after = xp.stats()
    return {name: after[name] - before[name] for name in after}


MAKERS: dict[str, Callable[[Any, int], Any]] = {
    "zeros": lambda np, n: np.zeros(n),
    "full": lambda np, n: np.full((n, 1), 2.5),
    "arange": lambda np, n: np.arange(1, 2 * n, 2),
    "linspace": lambda np, n: np.linspace(0, 1, n),
    "eye": lambda np, n: np.eye(n, 2),
    "ones_like": lambda np, n: np.ones_like(np.zeros(n)),
    "tri": lambda np, n: np.tri(n, 2),
}


@pytest.mark.usefixtures("host_calculates")
@compiled
@pytest.mark.parametrize("name", MAKERS)
def test_a_small_array_is_there_at_once_a_large_one_is_deferred(
    name: str, xp: ModuleType
) -> None:
    make = MAKERS[name]

    def calculated() -> None:
        x = make(xp, 30)
        (x * 2 + 1)[0]

    counts = spent(xp, calculated)
    assert not any(counts[name] for name in ("nodes_recorded", "host_evaluations", "plans_made"))
    large: list[Any] = []
    counts = spent(xp, lambda: large.append(make(xp, 3_000_000)))
    assert counts["device_bytes_now"] == counts["bytes_to_device"] == 0
    assert spent(xp, lambda: large.append((large[0] * 2.0).sum()))["kernels_launched"] == 0
    counts = spent(xp, lambda: float(large[1]))
    assert counts["bytes_to_device"] == 0
    assert counts["device_bytes_now"] < 1 << 20


@pytest.mark.usefixtures("host_calculates")
@compiled
def test_a_small_grid_is_there_at_once(xp: ModuleType) -> None:
    counts = spent(xp, lambda: (xp.mgrid[0:30, -1:1:2j] * 2 + 1)[0, 0])
    assert not any(counts[name] for name in ("nodes_recorded", "host_evaluations", "plans_made"))


@pytest.mark.parametrize("name", MAKERS)
def test_however_much_numpy_may_do_what_is_made_is_numpys(name: str, xp: ModuleType) -> None:
    with xp.config.override(host_us=1_000_000):
        for count in (30, 65_537, 70_000):
            assert_array_equal(np.asarray(MAKERS[name](xp, count)), MAKERS[name](np, count))


@compiled
def test_the_first_array_of_a_program_is_made_at_the_call_too() -> None:
    program = "import clfuse as np; x = np.arange(5.0); y = x + 1; y[0]; np.evaluate(); " \
              "print(np.stats()['nodes_recorded'])"  # fmt: skip
    environment = {**os.environ, "CLFUSE_HOST_US": "50"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.stdout == "0\n", done.stderr


def test_what_is_made_is_nobody_elses(xp: ModuleType) -> None:
    mine = np.arange(6.0)
    rows = [[1.0, 2.0], [3.0, 4.0]]
    for made in (xp.array(mine), xp.asarray(mine), xp.asanyarray(mine), xp.ascontiguousarray(mine)):
        made[0] = 7
        assert mine[0] == 0
        mine[1] = -1
        assert made[1] == 1
        mine[1] = 1
    x = xp.asarray(mine)
    assert xp.asarray(x) is x
    assert xp.asanyarray(x) is x
    y, z = xp.array(x), xp.array([x, x])
    x[2] = 9
    assert (y[2], z[0, 2], z[1, 2]) == (2, 2, 2)
    given = xp.array(rows)
    given[0, 0] = 5
    assert rows[0][0] == 1
    like = xp.zeros_like(x)
    like += 1
    assert_array_equal(np.asarray(x), [0, 1, 9, 3, 4, 5])
    taken = x[::2]
    assert xp.array(taken).base is None
    assert xp.zeros(3).base is None
    assert xp.array(xp.zeros((3, 4)).T).flags.f_contiguous


def test_a_kernel_takes_small_arrays_along(xp: ModuleType) -> None:
    values = np.random.default_rng(4).random((50_000, 5))
    x = xp.array(values)
    xp.evaluate(x)

    def scaled(np: ModuleType, x: Any) -> Any:
        return x * np.arange(5) + np.zeros(5) - np.linspace(0, 1, 5)

    def equal(np: ModuleType, x: Any) -> Any:
        return (np.arange(10)[:, None] == (x[:, 0] * 10).astype(int)).sum(1)

    def many(np: ModuleType, x: Any) -> Any:
        for number in range(16):
            x = x + np.arange(5.0) * number
        return x

    def nearest(np: ModuleType, x: Any) -> Any:
        centres = np.array([[0.1, 0.2], [0.5, 0.5], [0.9, 0.7]])
        return ((x[:, None, :2] - centres) ** 2).sum(2).argmin(1)

    def written(np: ModuleType, x: Any) -> Any:
        y = np.ones((50_000, 5))
        y[:, :] = np.arange(5)
        return y + x

    pieces = 1 if xp.get_device().traits.schedule == "cpu" else 2
    for program, kernels in (
        (scaled, 1), (equal, pieces), (many, 1), (nearest, 1), (written, 1)
    ):
        results: list[Any] = []
        counts = spent(xp, lambda p=program, r=results: (r.append(p(xp, x)), xp.evaluate(r[0])))
        assert counts["kernels_launched"] == kernels, program
        assert_array_equal(np.asarray(results[0]), program(np, values))


def test_a_loop_with_other_small_arrays_makes_one_plan(xp: ModuleType) -> None:
    values = np.random.default_rng(4).random((400_000, 3))
    x = xp.array(values)

    def moved(number: float) -> None:
        found = x + xp.array([number, 2.0, 1.0]) * xp.arange(3)
        xp.evaluate(found)
        assert_array_equal(np.asarray(found), values + np.array([number, 2.0, 1.0]) * np.arange(3))

    moved(0.5)
    counts = spent(xp, lambda: [moved(number / 7) for number in range(5)])
    assert counts["plans_made"] == 0
    assert counts["kernels_launched"] == 5


def test_a_traced_function_has_sources_and_no_uploads(xp: ModuleType) -> None:
    @xp.jit  # type: ignore[untyped-decorator]
    def spread(x: Any) -> Any:
        total = xp.zeros(4) + xp.linspace(0, 1, 4)
        for number in range(3):
            total = total + xp.arange(4.0) * number
        return x[:, None] * total + xp.eye(4)[1]

    values = np.random.default_rng(4).random(50_000)
    x = xp.array(values)
    xp.evaluate(x)
    for _ in range(3):
        results: list[Any] = []
        counts = spent(xp, lambda r=results: (r.append(spread(x)), xp.evaluate(r[0])))
    assert counts["bytes_to_device"] == 0
    assert counts["kernels_launched"] == 2  # the row, and what it is multiplied by
    total = np.linspace(0, 1, 4) + np.arange(4.0) * 3
    np.testing.assert_allclose(np.asarray(results[0]), values[:, None] * total + np.eye(4)[1])


def test_small_sources_are_recorded_where_numpy_may_not_compute(xp: ModuleType) -> None:
    for setting in ({"host_us": 0}, {"fusion": "off"}):
        with xp.config.override(**setting):
            x = xp.arange(5.0) * 2
            counts = spent(xp, lambda x=x: x.tolist())
            assert counts["kernels_launched"] > 0, setting
            assert counts["host_evaluations"] == 0


def _in_other_shape(np: ModuleType, r: Any) -> Any:
    r.shape = (3, 2)
    r[0] = 7
    return r


def _resized(np: ModuleType, r: Any) -> Any:
    r.resize((2, 5), refcheck=False)
    r += 1
    return r


def _written_through_a_view(np: ModuleType, r: Any) -> Any:
    row, column = r[0], r[:, 1]
    row += 10
    column[:] = -1
    r *= 2
    return [r, row, column]


def _read_before(np: ModuleType, r: Any) -> Any:
    seen = np.asarray(r) + 0
    kept = r
    r += 1
    r[1] = r[0]
    return [seen, kept, r, r[0, 0]]


def _bytes_of(np: ModuleType, r: Any) -> Any:
    r.dtype = "i8"
    return r + 0


def _sorted(np: ModuleType, r: Any) -> Any:
    r[::-1].sort(axis=0)
    r.fill(r[0, 0])
    return r


def _taken_over(np: ModuleType, r: Any) -> Any:
    turned = (r.T + 1).T
    turned[0] -= r[1]
    np.multiply(r, 2, out=r)
    np.add(turned, r, out=turned[::-1])
    return [turned, r]


def _copied_in_many_ways(np: ModuleType, r: Any) -> Any:
    copies = [r.copy(), copy.copy(r), copy.deepcopy(r), pickle.loads(pickle.dumps(r)), np.array(r)]
    r[:] = 0
    return [*copies, r]


USES = (
    _in_other_shape, _resized, _written_through_a_view, _read_before, _bytes_of, _sorted,
    _taken_over, _copied_in_many_ways,
    lambda np, r: [r.real, r.flat[2:4], r.ravel(), r.view("u4"), list(r), r.tolist(), r.sum(0)],
    lambda np, r: [np.stack([r, r]), np.where(r > 2, r, -r), r @ r.T, r.astype("f4"), r[r > 3]],
    lambda np, r: [r + r[None], r[0] * r, r - r.T.copy().T, abs(-r), r.swapaxes(0, 1)],
)  # fmt: skip


def _outcome(np: ModuleType, use: Callable[..., Any], r: Any) -> list[Any]:
    try:
        found = use(np, r)
    except ValueError as error:
        return [type(error).__name__]
    return found if isinstance(found, list) else [found]


MADE = (
    lambda np, x: x + x,
    lambda np, x: np.zeros((2, 3)) + 2.5,
    lambda np, x: np.array([[1.0, 5.0, 3.0], [4.0, 2.0, 0.0]]),
    lambda np, x: np.sqrt(x),
)


@pytest.mark.filterwarnings("ignore:Setting the (shape|dtype):DeprecationWarning")  # NumPy 2.5
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("make", MADE)
def test_what_was_calculated_is_an_array_like_any_other(
    make: Callable[..., Any], use: Callable[..., Any], xp: ModuleType
) -> None:
    values = np.arange(6.0).reshape(2, 3)
    mine, theirs = xp.asarray(values), values.copy()
    found, expected = _outcome(xp, use, make(xp, mine)), _outcome(np, use, make(np, theirs))
    for one, other in zip(found, expected, strict=True):
        assert_array_equal(np.asarray(one), other)
        assert np.asarray(one).dtype == np.asarray(other).dtype
    assert_array_equal(np.asarray(mine), theirs)


def test_kernels_and_compiled_functions_take_eager_values(xp: ModuleType) -> None:
    values = np.random.default_rng(4).random((50_000, 3))
    large, row = xp.array(values), xp.arange(3.0) + 1

    @xp.jit  # type: ignore[untyped-decorator]
    def stepped(x: Any, y: Any) -> Any:
        y[1] = 5
        return x * y

    recorded = large * row
    row[0] = 9  # after it was recorded
    assert_array_equal(np.asarray(recorded), values * [1, 2, 3])
    assert_array_equal(np.asarray(row), [9, 2, 3])
    for factor in (1.0, 2.0, 3.0):
        y = row * factor
        assert_array_equal(np.asarray(stepped(large, y)), values * np.asarray(y))
        assert_array_equal(np.asarray(y), [9 * factor, 5, 3 * factor])


def test_threads_may_ask_at_once_for_what_was_calculated(xp: ModuleType) -> None:
    x = xp.arange(50.0)
    wrong: list[int] = []
    results = [x + number for number in range(200)]
    start = threading.Barrier(4)

    def look(step: int) -> None:
        start.wait()
        for number in range(200)[::step]:
            if results[number][1:].tolist() != [number + k for k in range(1, 50)]:
                wrong.append(number)

    threads = [threading.Thread(target=look, args=(step,)) for step in (1, -1, 1, -1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


FUNCTIONS = (
    "zeros", "empty", "array", "asarray", "arange", "linspace", "eye", "full", "ones", "zeros_like",
    "copy", "concatenate", "dot", "where", "vstack", "sum", "transpose", "atleast_2d", "diag",
    "real", "flip", "sort", "putmask",
)  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_methods_of_classes_as_numpys_are(xp: ModuleType, name: str) -> None:
    def is_bound(np: ModuleType) -> bool:
        kind = type("Kind", (), {"function": getattr(np, name)})
        return hasattr(kind().function, "__self__") and isinstance(kind().function.__self__, kind)

    assert is_bound(xp) == is_bound(np)
    function = getattr(xp, name)
    assert pickle.loads(pickle.dumps(function)) is copy.deepcopy(function) is function
    assert function.__name__ == name
    assert inspect.isroutine(function)


def test_names_of_arguments_may_be_computed(xp: ModuleType) -> None:
    of = "".join  # such a name is another object than the same one in a function's code
    assert_array_equal(xp.zeros(**{of(["sh", "ape"]): 3}), np.zeros(3))
    assert_array_equal(xp.eye(2, **{of(["", "M"]): 3}), np.eye(2, M=3))
    assert_array_equal(xp.arange(1, **{of(["st", "op"]): 5, of(["st", "ep"]): 2}), [1, 3])
    assert xp.arange(5.0).sum(**{of(["dt", "ype"]): int}).dtype == int


def test_a_list_is_as_it_was_when_an_array_is_made_of_it(xp: ModuleType) -> None:
    rows = [xp.ones(2), xp.zeros(2)]
    made = xp.array(rows, dtype=int, ndmin=3)
    assert_array_equal(made, [[[1, 1], [0, 0]]])
    assert [type(row) for row in rows] == [type(made)] * 2


LARGE: dict[str, Callable[[Any], Any]] = {
    "zeros_like": lambda np: np.zeros_like(np.zeros(3), shape=(5000, 5000)),
    "full_like": lambda np: np.full_like(np.zeros(3), 2.0, shape=25_000_000),
    "arange": lambda np: np.arange(0, stop=25_000_000),
    "arange by names": lambda np: np.arange(1, stop=50_000_000, step=2),
    "eye": lambda np: np.eye(5, M=5_000_000),
}


@pytest.mark.parametrize("name", LARGE)
def test_what_is_large_by_a_named_argument_is_not_made(xp: ModuleType, name: str) -> None:
    LARGE[name](xp)[:3].get()  # what that imports
    tracemalloc.start()
    try:
        made = LARGE[name](xp)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    wanted = LARGE[name](np)
    assert (made.shape, made.dtype) == (wanted.shape, wanted.dtype)


def test_getters_of_attributes_want_an_array(xp: ModuleType) -> None:
    for name in ("real", "imag", "T"):
        getter = getattr(xp.ndarray, name).fget
        with pytest.raises(TypeError):
            getter()
        with pytest.raises((TypeError, AttributeError)):
            getter(3)
        repr(getter)


def test_too_many_arguments_are_numpys_error(xp: ModuleType) -> None:
    for arguments in (range(1, 8), range(1, 40)):
        with pytest.raises(TypeError):
            xp.zeros(*arguments)
        with pytest.raises(TypeError):
            xp.array([xp.ones(2)], *arguments)
        with pytest.raises(TypeError):
            xp.ones(3).reshape(3, **dict.fromkeys(map(str, arguments), 1))
