"""What NumPy had to calculate in the end is calculated at the call from the third time on; lists of
numbers and of arrays are NumPy's at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytestmark = pytest.mark.clfuse_only


@pytest.fixture(autouse=True)
def numpys(xp: ModuleType) -> Iterator[None]:
    """NumPy calculates what is small."""
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


def test_a_small_program_on_an_array_that_came_as_a_whole_is_recorded_at_first(
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


def test_what_has_kernels_is_recorded_ever_after(xp: ModuleType) -> None:
    given = np.linspace(0.1, 1, 2500)

    def small() -> Any:
        return np.asarray(xp.asarray(given) * 0.5 + 1)

    def large() -> Any:
        x = xp.asarray(given) * 0.5
        for _ in range(300):
            x = xp.sin(x)
        return np.asarray(x)

    large()
    assert xp.stats()["kernels_launched"] > 0
    for _ in range(4):
        count, found = recorded(xp, small)
        assert count > 0
        assert_array_equal(found, given * 0.5 + 1)


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


def test_lists_of_numbers_written_to_rows_record_nothing(xp: ModuleType) -> None:
    def program() -> Any:
        table = xp.zeros((300, 4))
        for i in range(300):
            table[i, :] = [i, i + 1, i + 2.5, np.float64(i)]
        return table

    count, table = recorded(xp, program)
    assert count == 0
    assert_array_equal(np.asarray(table)[7], [7, 8, 9.5, 7])


def test_a_list_that_is_written_to_a_large_array_costs_no_launch(xp: ModuleType) -> None:
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


def test_many_arrays_some_of_which_were_only_recorded_are_joined_as_ever(xp: ModuleType) -> None:
    late = xp.asarray(np.linspace(0, 1, 100_000)) * 2
    parts = [xp.ones(3) * i for i in range(300)] + [late[:3]]
    expected = np.array([np.ones(3) * i for i in range(300)] + [np.linspace(0, 1, 100_000)[:3] * 2])
    assert_array_equal(np.asarray(xp.array(parts)), expected)
    assert_array_equal(np.asarray(xp.vstack(parts)), expected)
