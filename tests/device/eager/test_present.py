"""Small arrays on the host are written to in place and calculated with at once; nobody sees it.

The differential tests say nothing of that: they run with CLFUSE_HOST_US=0. The fuzz does.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from clfuse.policy import choice
from tests.support.hostile import hostile
from tests.support.marks import compiled

pytestmark = pytest.mark.clfuse_only

DTYPES = ("bool", "int8", "uint64", "float16", "float32", "float64", "complex128")


@pytest.fixture(autouse=True)
def small(xp: ModuleType) -> Iterator[None]:
    with xp.config.override(host_us=50):
        yield


def memory_of(x: Any) -> int:
    """The address of the elements, while nobody holds them."""
    return int(np.asarray(x).__array_interface__["data"][0])


@compiled
def test_a_loop_over_elements_runs_in_one_memory_without_plans(xp: ModuleType) -> None:
    def factorized(np: ModuleType, a: Any) -> Any:
        for i in range(len(a)):
            for j in range(i):
                a[i, j] -= np.dot(a[i, :j], a[j, :j])
                a[i, j] /= a[j, j]
            a[i, i] -= a[i, :i] @ a[i, :i]
            a[i, i] = np.sqrt(a[i, i])
            if a[i, i] > 100:
                break
        return a

    matrix = np.eye(12) * 9 + np.random.default_rng(3).random((12, 12))
    x = xp.asarray(matrix)
    x[0, 0] = x[0, 0]  # `asarray` may hold the elements until now
    place, before = memory_of(x), xp.stats()
    assert_array_equal(factorized(xp, x), factorized(np, matrix.copy()))
    after = xp.stats()
    assert memory_of(x) == place
    assert all(before[name] == after[name] for name in
               ("plans_made", "plans_reused", "host_evaluations", "kernels_launched"))


@compiled
def test_an_uploaded_array_is_recorded_until_parts_are_used(
    xp: ModuleType,
) -> None:
    values = np.linspace(0, 1, 1000)

    def evaluations(operation: Any, *arrays: Any) -> int:
        choice.reset()  # the third time nothing is recorded in any case
        before = xp.stats()
        made = operation(*arrays)
        assert_array_equal(np.asarray(made), operation(*[np.asarray(array) for array in arrays]))
        after = xp.stats()
        names = "host_evaluations", "kernels_launched"
        return sum(after[name] - before[name] for name in names)

    def part(x: Any) -> None:
        x[1:]

    def element(x: Any) -> None:
        x[3]

    def written(x: Any) -> None:
        x[3] = 0.5

    def looped_over(x: Any) -> None:
        next(iter(x))

    operations = (lambda x: x + 1, lambda x: 1 - x, lambda x: -x, lambda x: x * x,
                  lambda x: x / np.ones(1000), lambda x: np.sqrt(x))
    for use in (part, element, written, looped_over):
        x = xp.asarray(values)
        for operation in operations:
            assert evaluations(operation, x) == 1, use
        use(x)
        for operation in operations:
            assert evaluations(operation, x) == 0, use
    few, many = xp.asarray(values[:9]), xp.asarray(values)
    assert evaluations(lambda x: x + 1, few) == 0
    assert evaluations(lambda x, y: x - y, many, xp.asarray(values)) == 1
    many[0] = 0
    assert evaluations(lambda x, y: x - y, many, xp.asarray(values)) == 0
    assert evaluations(lambda x, y: x - y, xp.asarray(values), many) == 0
    for x in (xp.asarray(values), many):
        x += x
        x -= 0.25
        np.multiply(x, x, out=x)
        assert_array_equal(np.asarray(x), (values * 2 - 0.25) ** 2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_and_parts_are_read_and_written_as_by_numpy(xp: ModuleType, dtype: str) -> None:
    values = np.resize(hostile(dtype), (5, 7))
    x, y = xp.asarray(values), values.copy()
    chosen = [(2, 3), (-1, -7), (slice(None), 2), (slice(4, None, -2), slice(1, 0)), 3, Ellipsis,
              (1, None, slice(None, None, -3)), (), (slice(1, 1),), (np.int8(1), np.uint64(2)),
              np.array([0, -1, 0]), (np.array([1, 2]), slice(2)), values == values[2, 2]]
    for index in chosen:
        found, expected = x[index], y[index]
        assert_array_equal(np.asarray(found), expected)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert isinstance(found, np.generic) == isinstance(expected, np.generic)
        rows, their_rows = x[1:, ::2][::-1], y[1:, ::2][::-1]
        for value in (1, True, expected.ravel()[0] if expected.size else 0, values[0, 0]):
            x[index] = value
            y[index] = value
            rows[1, :2] = value
            their_rows[1, :2] = value
            assert_array_equal(np.asarray(x), y)
            assert_array_equal(np.asarray(rows), their_rows)
    for index in ((5, 0), (0, 0, 0), 7, (0, -8), "a", 1.5):
        with pytest.raises(IndexError):
            y[index]  # type: ignore[call-overload]
        with pytest.raises(IndexError):
            x[index]
        with pytest.raises(IndexError):
            x[index] = 1
    with pytest.raises(ValueError, match="broadcast"):
        x[:, 1] = xp.asarray(values)[0]
    assert_array_equal(np.asarray(x), y)


def test_whoever_has_seen_the_elements_keeps_them(xp: ModuleType, shares_memory: bool) -> None:
    values = np.arange(12.).reshape(3, 4)
    x = xp.asarray(values)
    x[0, 0] = 0
    row, flat = x[1], x.reshape(-1)
    holders: list[tuple[Any, Any]] = []

    def hold(make: Any) -> None:
        seen = make()
        holders.append((seen, np.array(np.asarray(seen))))

    def write(value: float) -> None:
        nonlocal row
        x[1, 1] = value
        x[2] *= 2
        row += value
        row[0] = -value
        flat[::5] = x[0, 1:4]
        np.add(x, 1, out=x)
        xp.subtract(x, x[::-1, ::-1], out=x)
        x[x > 3] = value

    exported = [lambda: np.from_dlpack(_Exported(x))] if shares_memory else []
    steps = (*exported, lambda: np.asarray(x), lambda: np.asarray(x)[:, 1],
             lambda: np.array(x)[::2], x.copy, lambda: x[1, 2], lambda: x + 0,
             lambda: xp.asarray(x).copy(), lambda: x.T @ x, lambda: x.sum(axis=0), lambda: +row,
             lambda: x[[0, 2]], lambda: np.asarray(row), lambda: x.astype("f8"),
             lambda: xp.concatenate([x]), lambda: xp.where(x > 1, x, x))
    for number, step in enumerate(steps):
        hold(step)
        before = np.array(np.asarray(x))
        write(number + 0.5)
        assert not np.array_equal(before, np.asarray(x))
        for seen, then in holders:
            assert_array_equal(np.asarray(seen), then)
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(x)[0, 0] = 1


class _Exported:
    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**{**options, "copy": False})

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


def test_recorded_work_reads_the_values_of_its_time(xp: ModuleType) -> None:
    large = xp.arange(300_000.)
    x = xp.asarray(np.arange(3.))
    pending = [large[:3] + x, (large.reshape(-1, 3) * x).sum(axis=0)]
    x[1] = 100
    x += 1
    pending.append(large[3:6] - x)
    assert_array_equal(pending[0], [0, 2, 4])
    assert_array_equal(pending[1], np.arange(3) * np.arange(3e5).reshape(-1, 3).sum(axis=0))
    assert_array_equal(pending[2], [2, -97, 2])


def test_kernels_and_the_host_take_turns_on_one_array(xp: ModuleType) -> None:
    x, y = xp.asarray(np.arange(8.)), np.arange(8.)
    for step in range(4):
        x[step] += 1
        y[step] += 1
        with xp.config.override(host_us=0):  # the copy on the device must be a new one
            x *= 2
            xp.evaluate(x)
        y *= 2
        seen = np.asarray(x)
        assert x[step] == y[step]
        x[step] = x[step + 1] - 3
        assert_array_equal(seen, y)
        y[step] = y[step + 1] - 3
        assert_array_equal(x, y)


def test_what_fails_writes_nothing(xp: ModuleType) -> None:
    x = xp.asarray(np.arange(6))
    x[0] = 0
    for statement in (lambda: x.__setitem__(2, 2 ** 70), lambda: x.__iadd__(0.5),
                      lambda: x.__setitem__(slice(3), xp.asarray(np.arange(2))),
                      lambda: xp.divide(x, 2, out=x), lambda: x.__ipow__(-1),
                      lambda: x.__setitem__(xp.asarray(np.array([1, 9])), 5)):
        with pytest.raises((OverflowError, TypeError, ValueError, IndexError)):
            statement()
        assert_array_equal(x, np.arange(6))
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        x += 1
    assert_array_equal(x, np.arange(6))


def test_what_is_known_of_an_array_is_forgotten_at_a_write(xp: ModuleType) -> None:
    index, mask = xp.asarray(np.array([0, 1, 2])), xp.asarray(np.array([True, False, True]))
    table = xp.arange(200_000.)
    assert_array_equal(table[index] * 1, [0, 1, 2])
    assert_array_equal(table[:3][mask], [0, 2])
    index[1] = 199_999
    mask[1] = True
    assert_array_equal(table[index] * 1, [0, 199_999, 2])
    assert_array_equal(table[:3][mask], [0, 1, 2])
    index[0] = 200_000
    with pytest.raises(IndexError):
        table[index]


def test_updates_of_a_program_computed_as_a_whole_are_in_place(
        xp: ModuleType) -> None:
    x, y = xp.arange(50.), np.arange(50.)
    kept = []
    for step in range(20):  # recorded: nothing lies on the host yet
        x[step] = x[step + 1] * 2 + x[5]
        y[step] = y[step + 1] * 2 + y[5]
        x[10:] += x[:-10]
        y[10:] += y[:-10]
        if step % 7 == 3:
            kept.append((x + 0, y + 0, x[3:9], y[3:9]))
    assert_array_equal(x, y)
    for found, expected, part, their_part in kept:
        assert_array_equal(found, expected)
        assert_array_equal(part, their_part)


def test_an_update_of_what_does_not_lie_in_c_order_is_not_lost(xp: ModuleType) -> None:
    index = np.array([[[0, 1], [1, 0]], [[1, 1], [0, 0]], [[1, 0], [0, 1]]])

    def program(np: ModuleType, i: Any) -> Any:
        chosen = np.arange(2.)[i.T]
        chosen[1:] += chosen[:-1] + 1
        return chosen

    recorded = xp.asarray(index) + xp.arange(2) * 0
    assert_array_equal(program(xp, recorded), program(np, index))


def test_a_counted_mask_of_two_axes_selects_on_the_host_too(xp: ModuleType) -> None:
    """Counting stores it as a vector."""
    x = xp.asarray(np.random.default_rng(2).random((60, 70)))
    z = xp.sin(xp.arange(4200.)).reshape(60, 70) * 1j
    mask = xp.abs(z + x) > 0.5
    chosen = np.abs(np.asarray(z) + np.asarray(x)) > 0.5
    y = np.array(x)
    for _ in range(3):
        assert_array_equal(x[mask], y[chosen])
        x[mask] *= 2
        y[chosen] *= 2
    assert_array_equal(x, y)


def test_transposed_views_of_what_lies_on_the_host_are_numpys(xp: ModuleType) -> None:
    def turned(np: ModuleType, x: Any) -> list[Any]:
        x[0, 0, 0] = -1
        views = [x.T, x[1:].T, x.T[::-1], x.swapaxes(0, 2)[1], np.moveaxis(x[:, 1], 0, 1),
                 np.transpose(x, (1, 2, 0))[:, :2].T, x[1, 2].T]
        made = [2 * view for view in views]
        for step, view in enumerate(views):
            view += step
            view[0] *= 2
            view.T[-1:] -= 1
        return [x, *made, *views, np.reshape(views[0], (-1, 4)), *[view + view for view in views]]

    values = np.arange(60.0).reshape(3, 4, 5)
    x, y = xp.asarray(values), values.copy()
    for number, (one, other) in enumerate(zip(turned(xp, x), turned(np, y), strict=True)):
        assert_array_equal(np.asarray(one), other, err_msg=str(number))
        assert one.strides == other.strides, number
        assert one.flags.c_contiguous == other.flags.c_contiguous, number


def test_a_view_of_many_views_still_sees_the_array(xp: ModuleType) -> None:
    x, y = xp.asarray(np.arange(50.0)), np.arange(50.0)
    x[0] = y[0] = 9
    part, their_part = x, y
    for step in range(1, 40):
        part, their_part = part[1:], their_part[1:]
        part[-1] += step
        their_part[-1] += step
        part *= 1.5
        their_part *= 1.5
    assert_array_equal(np.asarray(x), y)
    assert_array_equal(np.asarray(part[::-1] + 1), their_part[::-1] + 1)


def test_few_elements_are_selected_without_a_launch(xp: ModuleType) -> None:
    def chosen(np: ModuleType, x: Any) -> Any:
        y = np.sqrt(x * x + 0.25)
        found = y[y > 0.75] * 2
        y[y < 0.6] = 0
        y[(y > 1) & (x > 0)] = found[:1]
        return np.concatenate([y, found, y[y == 0]])

    values = np.linspace(-1, 1, 2000)
    before = xp.stats()
    assert_array_equal(np.asarray(chosen(xp, xp.asarray(values) + 0)), chosen(np, values))
    after = xp.stats()
    assert after["kernels_launched"] == before["kernels_launched"]
    rows = xp.asarray(np.arange(300_000.0).reshape(3, -1)) + 0  # more than is selected at once
    assert_array_equal(np.asarray(rows[rows[:, 0] > 0]), np.asarray(rows)[1:])


def test_what_a_library_gives_is_calculated_with_at_once(xp: ModuleType) -> None:
    matrix = np.random.default_rng(2).random((60, 60)) + np.eye(60) * 9
    x = xp.asarray(matrix)
    before = xp.stats()
    inverse = xp.linalg.inv(x)
    inverse[0] += 1
    found = -inverse * 2
    if xp.get_device().traits.unified_memory:
        assert xp.stats()["host_evaluations"] == before["host_evaluations"]
    expected = np.linalg.inv(matrix)
    expected[0] += 1
    assert_array_equal(np.asarray(found), -expected * 2)
    assert_array_equal(np.asarray(x), matrix)


@compiled
def test_who_asks_for_the_namespace_gets_scalars_of_it(xp: ModuleType) -> None:
    x = xp.asarray(np.arange(3.0))
    assert type(x.sum()) is type(x[1]) is np.float64
    assert x.__array_namespace__() is xp
    assert x.sum().__array_namespace__() is x[1].__array_namespace__() is xp
    assert (x.sum(), x[1]) == (3.0, 1.0)


def test_index_arrays_write_at_once_to_what_was_recorded(xp: ModuleType) -> None:
    x = xp.arange(20000.0) * 2
    held = x[:3] + 0
    index = xp.asarray(np.arange(0, 20000, 7)[::-1].copy())
    x[index] = -1.0
    x[index[:5]] = index[:5]
    expected = np.arange(20000.0) * 2
    expected[::7] = -1
    expected[np.arange(0, 20000, 7)[::-1][:5]] = np.arange(0, 20000, 7)[::-1][:5]
    assert_array_equal(x.get(), expected)
    assert held.tolist() == [0, 2, 4]
    with pytest.raises(IndexError, match="out of bounds"):
        x[xp.asarray(np.array([3, 20000]))] = 5
    with pytest.raises(ValueError, match="shape mismatch"):
        x[index] = xp.asarray(np.ones(3))
    assert_array_equal(x.get(), expected)


def test_an_array_of_rows_by_index_arrays(xp: ModuleType) -> None:
    table = np.arange(60.0).reshape(3, 4, 5)
    x = xp.asarray(table)
    x[0, 0, 0]
    i, j = np.array([0, 2]), np.array([3, 1])
    for index in [(i, j), (i, slice(None), j), (0, i), (..., i), (slice(1), i), (i, None, j),
                  (table[:, :, 0] > 20,), (slice(None), table[0] > 7), (i, j, i), (j % 3, 2, ...)]:
        given = tuple(xp.asarray(n) if isinstance(n, np.ndarray) else n for n in index)
        assert_array_equal(x[given].get(), table[index])
        x[given] += 1
        table[index] += 1
        assert_array_equal(x.get(), table)


@pytest.mark.parametrize("size", [16, 40_000])
@pytest.mark.parametrize("part", [np.s_[:], np.s_[..., 1:-1], np.s_[1:]], ids=str)
def test_views_of_what_was_made_read_only_are_read_only(
    xp: ModuleType, part: Any, size: int
) -> None:
    views = [
        lambda x: x.T, lambda x: x[::-1], lambda x: x[None], lambda x: x.swapaxes(0, 1),
        lambda x: x.view(), lambda x: x[0], lambda x: next(iter(x)), lambda x: x[...],
        lambda x: np.flip(x), lambda x: x[1:].reshape(-1), lambda x: x.T[1:].T,
    ]  # fmt: skip
    x = xp.arange(float(size)).reshape(4, -1)[part]
    before = x[1:]
    x.flags.writeable = False
    for view in [make(x) for make in views]:
        if xp.shares_memory(view, x):
            assert not view.flags.writeable
            with pytest.raises(ValueError, match="read-only"):
                view[0] = -1
            with pytest.raises(ValueError, match="read-only"):
                view += 1
    before[...] = 5  # it was made while that was allowed
    assert x[1:].tolist() == before.tolist()
    x.flags.writeable = True
    x.T[0] = 3
    assert set(x[:, 0].tolist()) == {3}
