"""What NumPy had to calculate in the end is calculated at the call from the third time on; lists of
numbers and of arrays are NumPy's at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from clfuse.engine.evaluate import forget_plans
from clfuse.policy import feedback
from tests.support.marks import compiled

pytestmark = pytest.mark.clfuse_only


@pytest.fixture(autouse=True)
def numpys(xp: ModuleType) -> Iterator[None]:
    """NumPy calculates what is small; and nothing waits of what earlier tests have recorded, which
    would be calculated beside it."""
    xp.evaluate()
    with xp.config.override(host_us=50, build_after_ms=0):
        yield


def recorded(xp: ModuleType, program: Callable[[], Any]) -> tuple[int, Any]:
    """How many operations a program records, and what it gives."""
    before = xp.stats()["nodes_recorded"]
    found = program()
    return xp.stats()["nodes_recorded"] - before, found


def iterated(module: ModuleType, given: Any) -> Any:
    """Products of a matrix that came from the host with a vector, scaled."""
    matrix = module.asarray(given) * 0.5
    x = module.ones(len(given))
    for _ in range(5):
        x = matrix @ x
        x = x / module.sqrt(x @ x)
    return x


@compiled
def test_a_small_program_on_an_uploaded_array_records_at_first(
    xp: ModuleType,
) -> None:
    given = np.linspace(0.1, 1, 2500).reshape(50, 50)
    expected = iterated(np, given)
    counts = []
    for _ in range(4):
        count, found = recorded(xp, lambda: iterated(xp, given))
        counts.append(count)
        assert_allclose(np.asarray(found), expected, rtol=1e-13)
    assert counts[0] > 0
    assert counts[2:] == [0, 0]


GIVEN = np.linspace(0.1, 1, 2500)


def short(xp: ModuleType) -> Any:
    return np.asarray(xp.asarray(GIVEN) * 0.5 + 1)


def long(xp: ModuleType) -> Any:
    x = xp.asarray(GIVEN) * 0.5
    for _ in range(300):
        x = xp.sin(x)
    return np.asarray(x)


def test_what_has_kernels_is_recorded_beside_small_ones(xp: ModuleType) -> None:
    for _ in range(2):
        long(xp)
    assert xp.stats()["kernels_launched"] > 0
    for _ in range(3):
        for _ in range(feedback.WITHOUT_KERNELS - 1):
            count, found = recorded(xp, lambda: short(xp))
            assert count > 0
            assert_array_equal(found, GIVEN * 0.5 + 1)
        before = xp.stats()["kernels_launched"]
        long(xp)
        assert xp.stats()["kernels_launched"] - before == 1


@compiled
def test_another_loop_of_that_size_is_numpys_in_the_end(xp: ModuleType) -> None:
    for _ in range(2):
        long(xp)
    for _ in range(feedback.WITHOUT_KERNELS + feedback.AFTER_LARGE):
        short(xp)
    for _ in range(3):
        count, found = recorded(xp, lambda: short(xp))
        assert count == 0
        assert_array_equal(found, GIVEN * 0.5 + 1)
    expected = long(np)
    before = xp.stats()["kernels_launched"]
    for _ in range(3):
        assert_allclose(long(xp), expected, rtol=1e-12)
    assert xp.stats()["kernels_launched"] - before >= 2, "the kernels are still worth it"


@compiled
def test_another_amount_of_work_is_another_operation(xp: ModuleType) -> None:
    given = np.linspace(0.1, 1, 2500)
    for _ in range(3):
        np.asarray(xp.asarray(given) * 0.5)
    assert recorded(xp, lambda: xp.asarray(given) * 0.5)[0] == 0
    assert recorded(xp, lambda: xp.asarray(given[:2000]) * 0.5)[0] > 0


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "bool", "complex128"])
@pytest.mark.parametrize(
    "value",
    [
        [1, 2, 3, 4], (1.5, -0.0, np.inf, 2), [np.float64(1.5), np.int64(-2), True, np.float32(7)],
        [[1, 2, 3, 4]], [7], [], [1, 2], [[1, 2, 3, 4], [5, 6, 7, 8]], [1, [2, 3], 4, 5],
        [1j, 2, 3, 4], [2**70, 0, 0, 0], [-1, 300, 2**40, 0], [np.nan, 1, 2, 3], ["1", 2, 3, 4],
        [None, 1, 2, 3],
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("index", [1, (1, slice(None)), slice(0, 2), (2, 3), [0, 2]], ids=repr)
def test_lists_are_written_to_rows_as_numpy_does(
    xp: ModuleType, dtype: str, value: Any, index: Any
) -> None:
    theirs, ours = np.zeros((3, 4), dtype), xp.zeros((3, 4), dtype)
    try:
        theirs[index] = value
        expected: Any = None
    except (TypeError, ValueError, OverflowError) as error:
        expected = type(error)
    if expected is None:
        ours[index] = value
    else:
        with pytest.raises(expected):
            ours[index] = value
        theirs = np.zeros((3, 4), dtype)
    if expected is None:
        assert_array_equal(np.asarray(ours), theirs)


@pytest.mark.parametrize(
    ("index", "value"),
    [
        (1, [[1, 2, 3, 4]]), (1, [1, 2, 3, 4]), (1, [7]), (1, [1, 2]), (slice(0, 2), [[1], [2]]),
        ((2, 3), (1.5, -0.0, np.inf, 2)), ((2, 3), [1, [2, 3], 4]), ((2, 3), [2**70, 0]),
        ((2, 3), []), ((1, slice(None)), ((1, 2), 3)), (slice(None), [[[1, 2, 3, 4]]]),
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_lists_are_written_by_kernels_as_numpy_does(
    xp: ModuleType, setting: Callable[..., None], dtype: str, index: Any, value: Any
) -> None:
    def outcome(m: ModuleType) -> Any:
        written = m.zeros((3, 4), dtype) + m.ones((3, 4), dtype)
        try:
            written[index] = value
        except (TypeError, ValueError, OverflowError) as error:
            return type(error)
        return np.asarray(written).tolist()

    if xp is not np:
        setting(host_us=0)
    assert outcome(xp) == outcome(np)


@compiled
def test_lists_of_numbers_written_to_rows_record_nothing(xp: ModuleType) -> None:
    def program() -> Any:
        table = xp.zeros((300, 4))
        for i in range(300):
            table[i, :] = [i, i + 1, i + 2.5, np.float64(i)]
        return table

    count, table = recorded(xp, program)
    assert count == 0
    assert_array_equal(np.asarray(table)[7], [7, 8, 9.5, 7])


@compiled
def test_a_list_written_to_a_large_array_costs_no_launch(xp: ModuleType) -> None:
    if not xp.get_device().traits.unified_memory:
        pytest.skip("an array in memory of its own is written to there")
    table = xp.zeros((60_000, 4))
    before = xp.stats()
    for i in range(100):
        table[i] = [i, 1, 2, 3]
    assert xp.stats()["nodes_recorded"] == before["nodes_recorded"]
    assert_array_equal(np.asarray(table)[:100, 0], np.arange(100))
    assert not np.asarray(table)[100:].any()


@pytest.mark.parametrize("join", ["array", "vstack", "stack", "concatenate", "hstack"])
@pytest.mark.parametrize("length", [300, 20_000])
def test_many_small_arrays_are_joined_at_once(xp: ModuleType, join: str, length: int) -> None:
    parts = [xp.ones(3) * i for i in range(length)]
    count, made = recorded(xp, lambda: getattr(xp, join)(parts))
    assert count <= 1
    expected = getattr(np, join)([np.ones(3) * i for i in range(length)])
    assert type(made) is type(parts[0])
    assert_array_equal(np.asarray(made), expected)


def test_many_arrays_some_only_recorded_are_joined_as_ever(xp: ModuleType) -> None:
    late = xp.asarray(np.linspace(0, 1, 100_000)) * 2
    parts = [xp.ones(3) * i for i in range(300)] + [late[:3]]
    expected = np.array([np.ones(3) * i for i in range(300)] + [np.linspace(0, 1, 100_000)[:3] * 2])
    assert_array_equal(np.asarray(xp.array(parts)), expected)
    assert_array_equal(np.asarray(xp.vstack(parts)), expected)


def taking_turns(module: ModuleType, x: Any, parts: int) -> Any:
    """What is too much for the call, of arrays that are calculated at the call."""
    total = module.sinh(x * 0.25)
    for k in range(1, parts):
        total = total + module.sinh(x * (k / parts))
    return total


def counted(xp: ModuleType, x: Any, parts: int) -> tuple[int, int]:
    """Kernels launched and operations recorded by a round, whose values are NumPy's or nearly."""
    before = xp.stats()
    found = np.asarray(taking_turns(xp, x, parts))
    after = xp.stats()
    assert_allclose(found, taking_turns(np, np.asarray(x), parts), rtol=1e-13)
    return tuple(after[name] - before[name] for name in ("kernels_launched", "nodes_recorded"))


@pytest.fixture
def calculated(xp: ModuleType) -> Any:
    """An array of which parts were asked for, so that NumPy calculates with it at the call."""
    x = xp.asarray(np.linspace(0, 1, 4000))
    x[3] = 0.5
    return x


@contextmanager
def costs(xp: ModuleType, **changes: float) -> Iterator[None]:
    """Other costs of the current device."""
    device = xp.get_device()
    traits = device.untuned_traits
    forget_plans()
    try:
        with device.trying(replace(traits, costs=replace(traits.costs, **changes))):
            yield
    finally:
        forget_plans()


@compiled
def test_programs_by_turns_are_numpys_where_launches_cost_more(
    xp: ModuleType, calculated: Any
) -> None:
    if xp.get_device().traits.kind != "cpu":
        pytest.skip("about CPUs")
    built = xp.stats()["programs_built"]
    with costs(xp, launch_ns=1e7, inline_launch_ns=1e7):
        rounds = [counted(xp, calculated, 12) for _ in range(4)]
    assert rounds[0][0] == 0
    assert rounds[0][1] > 0
    assert rounds[1:] == [(0, 0), (0, 0), (0, 0)]
    assert xp.stats()["programs_built"] == built


def test_cheap_launches_stay_with_the_kernels(
    xp: ModuleType, calculated: Any
) -> None:
    with costs(xp, wake_ns=1.0, launch_ns=1.0, inline_launch_ns=1.0, inline_ns=1.0):
        for _ in range(4):
            kernels, recorded_nodes = counted(xp, calculated, 13)
            assert kernels > 0
            assert recorded_nodes > 0


def test_many_steps_in_one_evaluation_have_kernels(
    xp: ModuleType,
) -> None:
    """Threads are woken once for all of them."""

    def step(u: Any, v: Any) -> None:
        v[1:-1, 1:-1] = 0.25 * (u[1:-1, :-2] + u[1:-1, 2:] + u[:-2, 1:-1] + u[2:, 1:-1])

    grids = [xp.asarray(np.random.default_rng(k).random((150, 150))) for k in range(2)]
    launches = []
    with xp.config.override(host_us=50, build_after_ms=0):
        for steps in (1, 60):
            before = xp.stats()["kernels_launched"]
            for turn in range(steps):
                step(grids[turn % 2], grids[1 - turn % 2])
            assert np.isfinite(float(grids[0].sum()))
            launches.append(xp.stats()["kernels_launched"] - before)
    assert launches[0] == 0
    assert launches[1] > 0


OBSERVED: dict[str, Callable[[ModuleType, Any, Any], Any]] = {
    "sum": lambda module, x, y: float((x + 1).sum()),
    "distance": lambda module, x, y: float(module.sqrt(((x - y) ** 2).sum())),
    "extremes": lambda module, x, y: (float((x * y).max()), int((x - y).argmin())),
    "mask": lambda module, x, y: int((x > y).sum()),
    "mean": lambda module, x, y: float(module.mean(module.abs(x - y))),
}


@compiled
@pytest.mark.parametrize("name", OBSERVED)
@pytest.mark.parametrize("size", [20_000, 60_000])
def test_short_expressions_observed_each_time_are_numpys(
    xp: ModuleType, name: str, size: int
) -> None:
    """Two launches take longer, and to record an operation as long as NumPy has it."""
    if xp.get_device().traits.kind != "cpu":
        pytest.skip("about CPUs")
    x, y = np.arange(float(size)) % 97, np.arange(float(size)) % 89
    expected = OBSERVED[name](np, x, y)
    given = xp.asarray(x), xp.asarray(y)
    built = xp.stats()["programs_built"]
    for _ in range(5):
        assert_allclose(OBSERVED[name](xp, *given), expected, rtol=1e-13)
    assert recorded(xp, lambda: OBSERVED[name](xp, *given))[0] == 0
    assert xp.stats()["programs_built"] == built


def test_long_expressions_keep_their_kernels_beside_short_ones(xp: ModuleType) -> None:
    x = xp.asarray(np.arange(20_000.0) % 97)

    def long() -> Any:
        y = x
        for k in range(60):
            y = y * 0.5 + k
        return np.asarray(y)

    for _ in range(4):
        float((x * 0.5).sum())
        long()
    before = xp.stats()["kernels_launched"]
    for _ in range(3):
        float((x * 0.5).sum())
        long()
    assert xp.stats()["kernels_launched"] - before == 3


def test_a_stencil_that_is_observed_at_every_step_is_numpys(xp: ModuleType) -> None:
    if xp.get_device().traits.kind != "cpu":
        pytest.skip("about CPUs")

    def step(u: Any) -> float:
        old = u.copy()
        around = old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:]
        u[1:-1, 1:-1] = around * 0.25
        return float(((u - old) ** 2).sum())

    theirs = np.add.outer(np.arange(150.0), np.arange(150.0) ** 2)
    ours = xp.array(theirs)
    built = xp.stats()["programs_built"]
    for _ in range(6):
        assert_allclose(step(ours), step(theirs), rtol=1e-13)
    assert_array_equal(np.asarray(ours), theirs)
    assert xp.stats()["programs_built"] == built


def descent(module: ModuleType, x: Any, y: Any, rounds: int) -> tuple[list[float], Any]:
    """Weights that are adapted, while only the loss is looked at."""
    weights, mean = module.zeros(x.shape[1]), module.zeros(x.shape[1])
    losses = []
    for _ in range(rounds):
        error = module.tanh(x @ weights) - y
        losses.append(float((error**2).mean()))
        gradient = x.T @ error / len(y)
        mean = 0.9 * mean + 0.1 * gradient
        weights = weights - 0.5 * mean
    return losses, weights


@compiled
def test_what_a_loop_does_not_look_at_is_computed_beside(xp: ModuleType) -> None:
    table = np.sin(np.arange(200.0 * 20)).reshape(200, 20)
    wanted = np.cos(np.arange(200.0))
    expected, weights = descent(np, table, wanted, 60)
    begun = xp.asarray(table) + 0, xp.asarray(wanted) + 0  # recorded, and what comes of them
    before = xp.stats()["nodes_recorded"]
    losses, found = descent(xp, *begun, 60)
    assert_allclose(losses, expected, rtol=1e-12)
    assert_allclose(np.asarray(found), weights, rtol=1e-12)
    assert xp.stats()["nodes_recorded"] - before < 150, "of 600"


def in_pairs(module: ModuleType, x: Any, y: Any, rounds: int) -> tuple[list[float], Any]:
    """Two arrays in turn made of each other, of which one is looked at."""
    seen = []
    for _ in range(rounds):
        a = (x - x.mean()) / (x.std() + 1e-9)
        b = (y - y.mean()) / (y.std() + 1e-9)
        seen.append(float(a[7]))
        x, y = a * 0.5 + b * 0.1, b + 0.01 * a
    return seen, y


@compiled
def test_what_is_left_to_numpy_is_not_recorded_beside_it(xp: ModuleType) -> None:
    """Too much for the call, too little for launches: all of it becomes NumPy's at the call."""
    if xp.get_device().traits.kind != "cpu":
        pytest.skip("about CPUs")
    given = np.sin(np.arange(20_000.0)), np.cos(np.arange(20_000.0) * 3)
    expected, other = in_pairs(np, *given, 60)
    with costs(xp, launch_ns=1e7, inline_launch_ns=1e7):
        before = xp.stats()["nodes_recorded"]
        found, y = in_pairs(xp, *map(xp.asarray, given), 60)
        assert xp.stats()["nodes_recorded"] - before < 320, "of 960"
        assert_allclose(found, expected, rtol=1e-10)
        assert_allclose(np.asarray(y), other, rtol=1e-10)


def test_what_waits_in_large_arrays_is_not_computed_for_small(
    xp: ModuleType,
) -> None:
    large = xp.asarray(np.arange(2_000_000.0)) * 2
    small = xp.asarray(np.arange(10.0))
    launched = xp.stats()["kernels_launched"], xp.stats()["host_evaluations"]
    for k in range(50):
        large = large + 1
        assert float((small * k).sum()) == 45 * k
    assert xp.stats()["kernels_launched"] == launched[0]
    assert float(large[3]) == 56


@pytest.mark.parametrize("value", [0, 1.5, "array"])
def test_masks_write_to_recorded_small_arrays_at_the_call(xp: ModuleType, value: Any) -> None:
    base = np.linspace(-1, 1, 4000).reshape(40, 100)
    theirs, mask = base @ base.T, base @ base.T > 0.3
    theirs[mask] = np.arange(mask.sum()) if value == "array" else value
    x = xp.asarray(base)
    for _ in range(3):
        ours = x @ x.T
        chosen = ours > 0.3
        ours[chosen] = xp.arange(int(mask.sum())) if value == "array" else value
        assert_allclose(np.asarray(ours), theirs, rtol=1e-12)


@compiled
def test_batches_of_a_recorded_table_are_taken_at_the_call(xp: ModuleType) -> None:
    values = np.arange(15_000.0 * 4).reshape(15_000, 4)
    table = xp.asarray(values) * 0.5
    order = np.random.default_rng(1).permutation(15_000)
    before = xp.stats()["nodes_recorded"]
    for start in range(0, 15_000, 150):
        index = xp.asarray(order[start : start + 150])
        assert_array_equal(np.asarray(table[index]), values[order[start : start + 150]] * 0.5)
    assert xp.stats()["nodes_recorded"] - before < 60


def test_writes_of_recorded_arrays_are_numpys_at_any_index(xp: ModuleType) -> None:
    """The compiled part records the usual ones itself."""
    values = np.arange(60.0).reshape(3, 4, 5)
    indices: list[Any] = [
        1, -1, slice(1, 3), (slice(None), 2), (slice(None, None, -1), slice(3, 0, -2)),
        (Ellipsis, 1), (0, slice(1, 1)), (slice(None), slice(0, 2), slice(4, None, -3)),
        (slice(0, 1), 2), slice(None), (slice(None), slice(None), slice(None)), (2, 3, 4),
        (slice(2, 3),), (None, 1), (slice(0, 3, 2), 1, slice(1, 4)),
    ]  # fmt: skip
    with xp.config.override(host_us=0):
        for index in indices:
            theirs = values * 2
            ours = xp.asarray(values) * 2
            part = values[index] * 3
            view = ours[index]
            kept = ours + 0
            ours[index] = xp.asarray(values)[index] * 3
            theirs[index] = part
            assert_array_equal(np.asarray(ours), theirs)
            if part.shape:  # else it is an element, as it was
                assert_array_equal(np.asarray(view), theirs[index])
            assert_array_equal(np.asarray(kept), values * 2)
            turned, mine = theirs.T, ours.T
            turned[1:3] = np.ones((2, 4, 3)) * 7
            mine[1:3] = xp.ones((2, 4, 3)) * 7
            assert_array_equal(np.asarray(ours), theirs)
            ours[...] = ours[::-1] * 1
            theirs[...] = theirs[::-1] * 1
            assert_array_equal(np.asarray(ours), theirs)
        with pytest.raises(ValueError, match="could not broadcast"):
            (xp.asarray(values) * 2)[0:2] = xp.asarray(values) * 3
        with pytest.raises(IndexError):
            (xp.asarray(values) * 2)[3] = xp.asarray(values)[0] * 3


@pytest.mark.parametrize("number", [0, 0.0, -0.0, 2, -1.5, np.nan], ids=str)
@pytest.mark.parametrize("name", ["copysign", "divide", "arctan2", "multiply", "less"])
def test_numbers_before_recorded_arrays_keep_their_sign(
    xp: ModuleType, name: str, number: Any
) -> None:
    values = np.array([0.0, -0.0, 1.5, -2.5, np.inf])
    function, theirs = getattr(xp, name), getattr(np, name)
    with xp.config.override(host_us=0):
        for _ in range(2):  # the second one is recorded in C
            x = xp.asarray(values)
            for found, expected in (
                (function(number, x), theirs(number, values)),
                (function(x, number), theirs(values, number)),
            ):
                np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-15)
                if expected.dtype == float:
                    signs = np.signbit(np.asarray(found)) == np.signbit(expected)
                    assert (signs | np.isnan(expected)).all()
